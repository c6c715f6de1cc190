// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tests of the provider's data path with rings in ordinary memory: the test plays the
 * kernel. No module and no device is needed. Output: TAP.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ring_test.h"

unsigned int doorbells, late, failures;
struct vrnic_context context = { .one_cpu = true };

/* These three functions stand in for doorbell.c. */
int vrnic_doorbell_ring(struct ibv_context *ctx, uint32_t qpn)
{
	doorbells++;
	return 0;
}

void vrnic_doorbell_later(struct ibv_qp *qp)
{
	late++;
}

void vrnic_doorbell_ring_late(struct vrnic_context *ctx)
{
	doorbells++;
	ctx->late.set = 0;
}

void ring_make(struct vrnic_ring *ring, uint32_t entries, uint32_t stride, uint32_t start)
{
	size_t bytes = VRNIC_RING_DATA + (size_t)entries * stride;

	*ring = (struct vrnic_ring){
		.hdr = aligned_alloc(4096, (bytes + 4095) & ~4095UL),
		.bytes = bytes, .entries = entries, .stride = stride,
		.next = start, .cons = start,
	};
	if (!ring->hdr)
		abort();
	memset(ring->hdr, 0, VRNIC_RING_DATA);
	/* the provider must not rely on zeroes in the slots */
	memset((uint8_t *)ring->hdr + VRNIC_RING_DATA, 0xa5, bytes - VRNIC_RING_DATA);
	ring->slots = (uint8_t *)ring->hdr + VRNIC_RING_DATA;
	ring->hdr->prod = start;
	ring->hdr->cons = start;
}

void qp_make(struct fixture *f, enum ibv_qp_type type, uint32_t entries, uint32_t start)
{
	memset(f, 0, sizeof(*f));
	ring_make(&f->qp.sq, entries, VRNIC_SLOT_SIZE, start);
	ring_make(&f->qp.rq.ring, 4, 64, start);
	vrnic_lock_init(&f->qp.sq_lock, false);
	vrnic_lock_init(&f->qp.rq.lock, false);
	f->qp.rq.max_sge = 3;
	f->qp.max_sge = 30;
	f->qp.max_inline = 500;
	f->qp.vqp.qp.qp_type = type;
	f->qp.vqp.qp.state = IBV_QPS_RTS;
	f->qp.vqp.qp.qp_num = 0x11;
	vrnic_wr_init(&f->qp);
	f->ibqp = &f->qp.vqp.qp;
	f->ibqp->context = &context.vctx.context;
	f->ibqp->send_cq = &f->cq.vcq.cq;
	f->cq.vcq.cq.context = &context.vctx.context;
	f->ex = &f->qp.vqp.qp_ex;
	doorbells = 0;
	late = 0;
}

void qp_free(struct fixture *f)
{
	free(f->qp.sq.hdr);
	free(f->qp.rq.ring.hdr);
}

const struct vrnic_desc *desc_at(const struct fixture *f, uint32_t i)
{
	return vrnic_ring_slot(&f->qp.sq, i);
}

uint32_t prod(const struct fixture *f)
{
	return f->qp.sq.hdr->prod;
}

uint8_t payload_at(const struct fixture *f, uint32_t i, size_t n)
{
	size_t size = (size_t)f->qp.sq.entries * VRNIC_SLOT_SIZE;
	size_t slot = (i & (f->qp.sq.entries - 1)) * VRNIC_SLOT_SIZE;

	return f->qp.sq.slots[(slot + 32 + n) % size];
}

void make_sges(struct ibv_sge *sge, int num)
{
	for (int i = 0; i < num; i++)
		sge[i] = (struct ibv_sge){ 0x1000ULL * (i + 1), 100 + i, 7 + i };
}

void check_sges(const struct fixture *f, uint32_t slot, const struct ibv_sge *sge, int num)
{
	const uint8_t *bytes = (const uint8_t *)sge;

	for (size_t n = 0; n < num * sizeof(*sge); n++)
		CHECK(payload_at(f, slot, n) == bytes[n]);
}

void cq_make(struct vrnic_cq *cq, uint32_t entries)
{
	memset(cq, 0, sizeof(*cq));
	cq->vcq.cq.context = &context.vctx.context;
	ring_make(&cq->ring, entries, sizeof(struct vrnic_cqe), 0);
	memset(cq->ring.slots, 0, entries * sizeof(struct vrnic_cqe));
	vrnic_cq_init(cq, false);
	vrnic_cq_ex_init(cq, VRNIC_CQ_EX_FIELDS);
}

void cq_put(struct vrnic_cq *cq, uint32_t i, uint32_t qpn)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(&cq->ring, i);

	cqe->cookie = i;
	cqe->qpn = qpn;
	cqe->status = IBV_WC_SUCCESS;
	cqe->opcode = IBV_WC_RECV;
	cqe->byte_len = i * 3;
	__atomic_store_n(&cqe->phase, 1 + ((i / cq->ring.entries) & 1),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&cq->ring.hdr->prod, i + 1, __ATOMIC_RELAXED);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "write", test_write },
	{ "doorbell", test_doorbell },
	{ "stream", test_stream },
	{ "gather", test_gather },
	{ "sge_wrap", test_sge_wrap },
	{ "inline_wrap", test_inline_wrap },
	{ "full", test_full },
	{ "refused", test_refused },
	{ "refused_ud", test_refused_ud },
	{ "atomic", test_atomic },
	{ "keys", test_keys },
	{ "ud", test_ud },
	{ "wr_batch", test_wr_batch },
	{ "wr_flush", test_wr_flush },
	{ "wr_undo", test_wr_undo },
	{ "recv", test_recv },
	{ "poll", test_poll },
	{ "forget", test_forget },
	{ "poll_ex", test_poll_ex },
	{ "arm", test_arm },
	{ "arm_filled", test_arm_filled },
	{ "armed", test_armed },
	{ "map_fails", test_map_fails },
	{ "one_cpu", test_one_cpu },
	{ "gone", test_gone },
	{ "credit", test_credit },
	{ "credit_undo", test_credit_undo },
	{ "credit_recv", test_credit_recv },
	{ "credit_many", test_credit_many },
	{ "comp_cntr", test_comp_cntr },
	{ "comp_cntr_rings", test_comp_cntr_rings },
	{ "comp_cntr_refused", test_comp_cntr_refused },
	{ "resize_starves_nobody", test_resize_starves_nobody },
	{ "post_beside_resize", test_post_beside_resize },
	{ "srq_resize", test_srq_resize },
	{ "srq_map_fails", test_srq_map_fails },
	{ "stress", test_stress },
};

#define HANG_SECONDS	300

int main(void)
{
	size_t num = sizeof(tests) / sizeof(*tests);
	unsigned int failed = 0;

	alarm(HANG_SECONDS);
	printf("TAP version 13\n1..%zu\n", num);
	for (size_t i = 0; i < num; i++) {
		failures = 0;
		tests[i].run();
		failed += !!failures;
		printf("%sok %zu %s\n", failures ? "not " : "", i + 1, tests[i].name);
	}
	return !!failed;
}
