/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A kernel consumer: what block and file protocols over RDMA do, on vrnic0.
 *
 * Whatever is made here goes by itself when the test ends, however it ends:
 * queue pairs are drained by consumer_exit(), and then everything is destroyed
 * in reverse order.
 */
#ifndef VRNIC_KUNIT_CONSUMER_H
#define VRNIC_KUNIT_CONSUMER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <rdma/ib_verbs.h>

#define CONSUMER_DEPTH	64	/* requests of a queue */
#define CONSUMER_SGES	8
#define CONSUMER_INLINE	256
#define CONSUMER_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |	\
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/**
 * struct consumer - what all tests need; test->priv
 * @dev: vrnic0
 * @pd: protection domain
 * @gid: of 127.0.0.1
 * @ctx: how completion queues of this test are polled
 * @ends: to be drained
 */
struct consumer {
	struct ib_device *dev;
	struct ib_pd *pd;
	const struct ib_gid_attr *gid;
	enum ib_poll_context ctx;
	struct list_head ends;
};

/**
 * struct end - a queue pair and its completion queue
 * @link: in struct consumer.ends
 * @cq: for sends and receives
 * @qp: queue pair
 * @events: bits 1 << IB_EVENT_*
 */
struct end {
	struct list_head link;
	struct ib_cq *cq;
	struct ib_qp *qp;
	unsigned long events;
};

/**
 * struct request - one that was posted
 * @cqe: leads to it from the completion
 * @done: it completed
 * @wc: how
 */
struct request {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
};

int consumer_init(struct kunit *test);
void consumer_exit(struct kunit *test);

struct ib_cq *consumer_cq(struct kunit *test, int entries);
struct end *consumer_end(struct kunit *test, struct ib_qp_init_attr *init);
struct end *new_end(struct kunit *test, enum ib_qp_type type);
void end_to_init(struct kunit *test, struct end *end);
void end_to_rtr(struct kunit *test, struct end *end, struct end *peer);
void end_to_rts(struct kunit *test, struct end *end);
void connect_ends(struct kunit *test, struct end *a, struct end *b);
void new_pair(struct kunit *test, struct end **a, struct end **b);
void end_ah_attr(struct kunit *test, struct rdma_ah_attr *ah);
struct end *new_datagram_end(struct kunit *test);
struct ib_ah *keep_ah(struct kunit *test, struct ib_ah *ah);
bool end_saw(struct end *end, enum ib_event_type event);

void *new_buffer(struct kunit *test, size_t bytes);
struct ib_sge sge_of(struct kunit *test, void *buf, u32 len);
struct ib_mr *new_mr(struct kunit *test, u32 pages);
void map_buffer(struct kunit *test, struct ib_mr *mr, void *buf, u32 len);
struct ib_mr *new_region(struct kunit *test, struct end *end, void *buf,
			 u32 len, int access);

struct request *new_request(struct kunit *test);
void post(struct kunit *test, struct end *end, struct ib_send_wr *wr);
struct request *post_recv(struct kunit *test, struct end *end, void *buf,
			  u32 len);
struct request *post_send(struct kunit *test, struct end *end,
			  enum ib_wr_opcode opcode, void *buf, u32 len, u32 ex);
struct request *post_rdma(struct kunit *test, struct end *end,
			  enum ib_wr_opcode opcode, void *buf, u32 len,
			  u64 addr, u32 rkey);
struct request *post_reg(struct kunit *test, struct end *end, struct ib_mr *mr,
			 int access);
struct request *send_datagram(struct kunit *test, struct end *from,
			      struct ib_ah *ah, u32 qpn, u32 qkey,
			      void *buf, u32 len);
bool completes(struct end *end, struct request *req);
bool stays_open(struct end *end, struct request *req);
void expect_status(struct kunit *test, struct end *end, struct request *req,
		   enum ib_wc_status status);
void expect_done(struct kunit *test, struct end *end, struct request *req,
		 enum ib_wc_opcode opcode);

#endif /* VRNIC_KUNIT_CONSUMER_H */
