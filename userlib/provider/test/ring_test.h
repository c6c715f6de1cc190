/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the tests of the provider's data path share. ring_test.c plays the kernel, and runs them. */
#ifndef VRNIC_RING_TEST_H
#define VRNIC_RING_TEST_H

#include <stdio.h>

#include "../abi.h"
#include "../cq.h"
#include "../send.h"

#define BASE_COOKIE	0x1122334455667700ULL

#define MAX_PRINTED	5	/* failures of one test that are printed */

/* Doorbells that the provider has rung, and those that may be late; failures of this test. */
extern unsigned int doorbells, late, failures;
extern struct vrnic_context context;

#define CHECK(cond)							       \
	do {								       \
		if (!(cond) && failures++ < MAX_PRINTED)		       \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);    \
	} while (0)

/**
 * struct fixture - a queue pair whose rings are ordinary memory
 * @qp: the queue pair
 * @cq: its completion queue, which has a ring after cq_make()
 * @bad: the request that ibv_post_send() refused
 * @ibqp: in @qp
 * @ex: in @qp
 */
struct fixture {
	struct vrnic_qp qp;
	struct vrnic_cq cq;
	struct ibv_send_wr *bad;
	struct ibv_qp *ibqp;
	struct ibv_qp_ex *ex;
};

void ring_make(struct vrnic_ring *ring, uint32_t entries, uint32_t stride, uint32_t start);
void qp_make(struct fixture *f, enum ibv_qp_type type, uint32_t entries, uint32_t start);
void qp_free(struct fixture *f);
const struct vrnic_desc *desc_at(const struct fixture *f, uint32_t i);
uint32_t prod(const struct fixture *f);
/* Byte @n after the header of the descriptor in slot @i, where the kernel expects it. */
uint8_t payload_at(const struct fixture *f, uint32_t i, size_t n);
void make_sges(struct ibv_sge *sge, int num);
void check_sges(const struct fixture *f, uint32_t slot, const struct ibv_sge *sge, int num);
void cq_make(struct vrnic_cq *cq, uint32_t entries);
/* Play the kernel: write completion @i. */
void cq_put(struct vrnic_cq *cq, uint32_t i, uint32_t qpn);

/* post_test.c */
void test_write(void);
void test_doorbell(void);
void test_stream(void);
void test_gather(void);
void test_sge_wrap(void);
void test_inline_wrap(void);
void test_full(void);
void test_gone(void);
void test_refused(void);
void test_refused_ud(void);
void test_atomic(void);
void test_keys(void);
void test_ud(void);
void test_recv(void);
void test_stress(void);

/* wr_test.c */
void test_wr_batch(void);
void test_wr_flush(void);
void test_wr_undo(void);

/* cq_test.c */
void test_poll(void);
void test_forget(void);
void test_poll_ex(void);
void test_arm(void);
void test_arm_filled(void);
void test_armed(void);

/* credit_test.c */
void test_credit(void);
void test_credit_undo(void);
void test_credit_recv(void);
void test_credit_many(void);

/* comp_cntr_test.c */
void test_comp_cntr(void);
void test_comp_cntr_rings(void);
void test_comp_cntr_refused(void);

/* resize_test.c */
void test_map_fails(void);
void test_one_cpu(void);
void test_resize_starves_nobody(void);
void test_post_beside_resize(void);
void test_srq_resize(void);
void test_srq_map_fails(void);

#endif /* VRNIC_RING_TEST_H */
