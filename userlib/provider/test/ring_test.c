// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tests of the provider's data path with rings in ordinary memory: the test plays the
 * kernel. No module and no device is needed. Output: TAP.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../abi.h"
#include "../cq.h"
#include "../send.h"

#define BASE_COOKIE	0x1122334455667700ULL

#define MAX_PRINTED	5	/* failures of one test that are printed */

static unsigned int doorbells, late, failures;
static struct vrnic_context context = { .one_cpu = true };

#define CHECK(cond)							       \
	do {								       \
		if (!(cond) && failures++ < MAX_PRINTED)		       \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);    \
	} while (0)

/* These three functions stand in for doorbell.c. */
int vrnic_doorbell_ring(struct ibv_qp *qp)
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

static void ring_make(struct vrnic_ring *ring, uint32_t entries,
		      uint32_t stride, uint32_t start)
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

struct fixture {
	struct vrnic_qp qp;
	struct vrnic_cq cq;
	struct ibv_send_wr *bad;
	struct ibv_qp *ibqp;
	struct ibv_qp_ex *ex;
};

static void qp_make(struct fixture *f, enum ibv_qp_type type, uint32_t entries,
		    uint32_t start)
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

static void qp_free(struct fixture *f)
{
	free(f->qp.sq.hdr);
	free(f->qp.rq.ring.hdr);
}

static const struct vrnic_desc *desc_at(const struct fixture *f, uint32_t i)
{
	return vrnic_ring_slot(&f->qp.sq, i);
}

static uint32_t prod(const struct fixture *f)
{
	return f->qp.sq.hdr->prod;
}

/* Byte @n after the header of the descriptor in slot @i, where the kernel expects it. */
static uint8_t payload_at(const struct fixture *f, uint32_t i, size_t n)
{
	size_t size = (size_t)f->qp.sq.entries * VRNIC_SLOT_SIZE;
	size_t slot = (i & (f->qp.sq.entries - 1)) * VRNIC_SLOT_SIZE;

	return f->qp.sq.slots[(slot + 32 + n) % size];
}

static void make_sges(struct ibv_sge *sge, int num)
{
	for (int i = 0; i < num; i++)
		sge[i] = (struct ibv_sge){ 0x1000ULL * (i + 1), 100 + i, 7 + i };
}

static void check_sges(const struct fixture *f, uint32_t slot,
		       const struct ibv_sge *sge, int num)
{
	const uint8_t *bytes = (const uint8_t *)sge;

	for (size_t n = 0; n < num * sizeof(*sge); n++)
		CHECK(payload_at(f, slot, n) == bytes[n]);
}

static void test_write(void)
{
	struct ibv_sge sge = { 0x1000, 100, 7 };
	struct ibv_send_wr wr = {
		.wr_id = BASE_COOKIE, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = 0xcafe,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		.wr.rdma = { .remote_addr = 0xabcdef, .rkey = 0x42 },
	};
	const struct vrnic_desc *d;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 8, 0);
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	d = desc_at(&f, 0);
	CHECK(prod(&f) == 1 && !doorbells);
	CHECK(d->opcode == VRNIC_OP_RDMA_WRITE_WITH_IMM && d->num_slots == 1);
	CHECK(d->flags == (VRNIC_DESC_SIGNALED | VRNIC_DESC_FENCE));
	CHECK(d->cookie == BASE_COOKIE && d->imm == 0xcafe);
	CHECK(d->remote_addr == 0xabcdef && d->rkey == 0x42);
	CHECK(d->num_sge == 1 && d->sge[0].addr == 0x1000 &&
	      d->sge[0].length == 100 && d->sge[0].lkey == 7);
	qp_free(&f);
}

/* A list of requests has one doorbell, or none if the kernel does not want one. */
static void test_doorbell(void)
{
	struct ibv_send_wr wr[3] = {};
	struct fixture f;

	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .opcode = IBV_WR_SEND,
			.next = i < 2 ? &wr[i + 1] : NULL };
	qp_make(&f, IBV_QPT_RC, 8, 0);
	CHECK(!vrnic_post_send(f.ibqp, wr, &f.bad) && !doorbells);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	CHECK(!vrnic_post_send(f.ibqp, wr, &f.bad) && doorbells == 1);
	CHECK(prod(&f) == 6 && desc_at(&f, 5)->num_sge == 0);
	qp_free(&f);
}

/* After eight posts in a row the provider sets stream; a poll in vain ends the stream. */
static void test_stream(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 32, 0);
	for (int i = 0; i < 7; i++)
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(!f.qp.sq.hdr->stream);
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(f.qp.sq.hdr->stream);
	f.cq.vain++;
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(!f.qp.sq.hdr->stream);
	qp_free(&f);
}

/* The kernel lets three slots wait. Before the program may sleep, the provider rings for them. */
static void test_gather(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 32, -5);
	ring_make(&f.cq.ring, 8, sizeof(struct vrnic_cqe), 0);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	f.qp.sq.hdr->gather = 3;
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(late == 2 && !doorbells);
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(late == 2 && doorbells == 1);
	f.qp.sq.hdr->cons = f.qp.sq.hdr->prod;
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(late == 3 && doorbells == 1);
	vrnic_cq_arm(&f.cq, true);
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(late == 3 && doorbells == 2);
	f.qp.sq.hdr->flags = 0;
	CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(late == 3 && doorbells == 2);
	free(f.cq.ring.hdr);
	qp_free(&f);
}

/* Try every start in the ring and every number of segments, while the index wraps. */
static void test_sge_wrap(void)
{
	struct ibv_sge sge[30];
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge };
	struct fixture f;

	make_sges(sge, 30);
	for (uint32_t start = -4; start != 8; start++)
		for (wr.num_sge = 0; wr.num_sge <= 30; wr.num_sge++) {
			uint32_t slots = 1 + (wr.num_sge > 2 ? (wr.num_sge + 1) / 4 : 0);

			qp_make(&f, IBV_QPT_RC, 8, start);
			CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
			CHECK(prod(&f) == start + slots);
			CHECK(desc_at(&f, start)->num_slots == slots);
			CHECK(desc_at(&f, start)->num_sge == (uint32_t)wr.num_sge);
			check_sges(&f, start, sge, wr.num_sge);
			qp_free(&f);
		}
}

static void test_inline_wrap(void)
{
	uint8_t data[500];
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge,
				  .num_sge = 3, .send_flags = IBV_SEND_INLINE };
	struct fixture f;

	for (int i = 0; i < 500; i++)
		data[i] = i * 7 + 1;
	for (uint32_t start = 0; start < 8; start++)
		for (uint32_t len = 0; len <= 480; len += 5) {
			uint32_t slots = len <= 32 ? 1 : 1 + (len - 32 + 63) / 64;

			sge[0] = (struct ibv_sge){ (uintptr_t)data, len / 5, 0 };
			sge[1] = (struct ibv_sge){ (uintptr_t)data + len / 5, 0, 0 };
			sge[2] = (struct ibv_sge){ (uintptr_t)data + len / 5,
						   len - len / 5, 0 };
			qp_make(&f, IBV_QPT_UC, 8, start);
			CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
			CHECK(prod(&f) == start + slots);
			CHECK(desc_at(&f, start)->num_slots == slots);
			CHECK(desc_at(&f, start)->inline_len == len);
			CHECK(desc_at(&f, start)->flags == VRNIC_DESC_INLINE);
			for (uint32_t n = 0; n < len; n++)
				CHECK(payload_at(&f, start, n) == data[n]);
			qp_free(&f);
		}
}

/* A full ring stops a list; the requests before are posted. */
static void test_full(void)
{
	struct ibv_send_wr wr[5] = {};
	struct fixture f;

	for (int i = 0; i < 5; i++)
		wr[i] = (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .wr_id = i,
			.next = i < 4 ? &wr[i + 1] : NULL };
	qp_make(&f, IBV_QPT_RC, 4, UINT32_MAX - 1);
	CHECK(vrnic_post_send(f.ibqp, wr, &f.bad) == ENOMEM);
	CHECK(f.bad == &wr[4] && prod(&f) == 2);
	CHECK(vrnic_post_send(f.ibqp, wr, &f.bad) == ENOMEM && f.bad == wr);
	f.qp.sq.hdr->cons = 0;	/* the kernel has taken two */
	CHECK(vrnic_post_send(f.ibqp, wr, &f.bad) == ENOMEM);
	CHECK(f.bad == &wr[2] && prod(&f) == 4);
	qp_free(&f);
}

static int post_one(struct fixture *f, struct ibv_send_wr wr)
{
	uint32_t before = prod(f);
	int ret = vrnic_post_send(f->ibqp, &wr, &f->bad);

	CHECK(!ret || (f->bad == &wr && prod(f) == before &&
		       f->qp.sq.next == before));
	return ret;
}

/* When the device is gone posts fail, because nobody would take the requests. */
static void test_gone(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = {}, *bad;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 8, 0);
	f.qp.sq.hdr->flags = VRNIC_RING_ERROR;
	f.qp.rq.ring.hdr->flags = VRNIC_RING_ERROR;
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == EIO && f.bad == &wr);
	CHECK(vrnic_post_recv(f.ibqp, &recv, &bad) == EIO && bad == &recv);
	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	CHECK(ibv_wr_complete(f.ex) == EIO);
	qp_free(&f);
}

/* None of these may leave anything in the ring. */
static void test_refused(void)
{
	static char data[501];
	struct ibv_sge big = { (uintptr_t)data, 501, 0 };
	struct ibv_sge sge[31];
	const struct ibv_send_wr refused[] = {
		{ .opcode = IBV_WR_TSO },
		{ .opcode = 99 },
#ifdef HAVE_FLUSH
		{ .opcode = IBV_WR_FLUSH },
#endif
		{ .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM },
		{ .opcode = IBV_WR_SEND, .num_sge = 31, .sg_list = sge },
		{ .opcode = IBV_WR_SEND, .num_sge = -1, .sg_list = sge },
		{ .opcode = IBV_WR_SEND, .num_sge = -1, .sg_list = sge,
		  .send_flags = IBV_SEND_INLINE },
		{ .opcode = IBV_WR_SEND, .num_sge = 1, .sg_list = &big,
		  .send_flags = IBV_SEND_INLINE },
		{ .opcode = IBV_WR_RDMA_READ, .num_sge = 1, .sg_list = sge,
		  .send_flags = IBV_SEND_INLINE },
		{ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .num_sge = 2, .sg_list = sge },
		{ .opcode = IBV_WR_ATOMIC_WRITE, .num_sge = 1, .sg_list = sge },
	};
	struct ibv_send_wr good = { .opcode = IBV_WR_SEND };
	struct fixture f;

	make_sges(sge, 31);
	qp_make(&f, IBV_QPT_RC, 16, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		CHECK(post_one(&f, refused[i]) == EINVAL);
	CHECK(!post_one(&f, good));
	f.qp.vqp.qp.state = IBV_QPS_RTR;
	CHECK(post_one(&f, good) == EINVAL);
	qp_free(&f);
}

static void test_refused_ud(void)
{
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr without_ah = { .opcode = IBV_WR_SEND };
	struct fixture f;

	qp_make(&f, IBV_QPT_UD, 16, 0);
	CHECK(post_one(&f, write) == EINVAL);
	CHECK(post_one(&f, without_ah) == EINVAL);
	qp_free(&f);
}

static void test_atomic(void)
{
	uint64_t value = 0x0123456789abcdefULL;
	struct ibv_sge sge = { 0x1000, 8, 7 }, val = { (uintptr_t)&value, 8, 0 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .num_sge = 1, .sg_list = &sge,
		.wr.atomic = { .remote_addr = 0x2000, .compare_add = 11,
			       .swap = 12, .rkey = 3 },
	};
	const struct vrnic_desc *d;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 16, 0);
	CHECK(!post_one(&f, wr));
	d = desc_at(&f, 0);
	CHECK(d->atomic.compare == 11 && d->atomic.swap_add == 12);
	CHECK(d->atomic.sge.lkey == 7 && d->remote_addr == 0x2000 && d->rkey == 3);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	CHECK(!post_one(&f, wr));
	CHECK(desc_at(&f, 1)->atomic.swap_add == 11);

	wr = (struct ibv_send_wr){
		.opcode = IBV_WR_ATOMIC_WRITE, .num_sge = 1, .sg_list = &val,
		.send_flags = IBV_SEND_INLINE, .wr.rdma = { 0x3000, 4 },
	};
	CHECK(!post_one(&f, wr));
	d = desc_at(&f, 2);
	CHECK(d->inline_len == 8 && !memcmp(d->data, &value, 8));
	CHECK(d->flags == VRNIC_DESC_INLINE && d->remote_addr == 0x3000);
	qp_free(&f);
}

static void test_keys(void)
{
	struct ibv_mr mr = { .lkey = 0x77 };
	struct ibv_mw mw = { .rkey = 0x1201, .type = IBV_MW_TYPE_2 };
	struct ibv_send_wr inv = {
		.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 0x99,
	};
	struct ibv_send_wr bind = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { &mw, 0x1202,
			     { &mr, 0x5000, 64, IBV_ACCESS_REMOTE_WRITE } },
	};
	const struct vrnic_desc *d;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 16, 0);
	CHECK(!post_one(&f, inv) && desc_at(&f, 0)->imm == 0x99);
	CHECK(!post_one(&f, bind));
	d = desc_at(&f, 1);
	CHECK(d->bind.old_rkey == 0x1201 && d->bind.new_rkey == 0x1202);
	CHECK(d->bind.lkey == 0x77 && d->bind.addr == 0x5000 &&
	      d->bind.length == 64 && d->bind.access == IBV_ACCESS_REMOTE_WRITE);
	qp_free(&f);
}

static void test_ud(void)
{
	struct ibv_sge sge = { 0x1000, 8, 7 };
	struct vrnic_ah ah = { .id = 5 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM, .num_sge = 1, .sg_list = &sge,
		.imm_data = 6,
		.wr.ud = { .ah = &ah.ah, .remote_qpn = 17, .remote_qkey = 18 },
	};
	const struct vrnic_desc *d;
	struct fixture f;

	qp_make(&f, IBV_QPT_UD, 16, 0);
	CHECK(!post_one(&f, wr));
	d = desc_at(&f, 0);
	CHECK(d->ah == 5 && d->dest_qpn == 17 && d->qkey == 18 && d->imm == 6);
	qp_free(&f);
}

static void test_wr_batch(void)
{
	struct ibv_sge sge[30];
	struct fixture f;

	make_sges(sge, 30);
	qp_make(&f, IBV_QPT_RC, 16, 14);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	ibv_wr_start(f.ex);
	f.ex->wr_id = 1;
	f.ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ibv_wr_rdma_write(f.ex, 9, 0x100);
	ibv_wr_set_sge_list(f.ex, 10, sge);
	f.ex->wr_id = 2;
	ibv_wr_rdma_read(f.ex, 9, 0x100);
	ibv_wr_set_sge(f.ex, 1, 2, 3);
	CHECK(prod(&f) == 14 && !doorbells);
	CHECK(!ibv_wr_complete(f.ex));
	CHECK(prod(&f) == 18 && doorbells == 1);
	CHECK(desc_at(&f, 14)->flags == VRNIC_DESC_SIGNALED);
	CHECK(desc_at(&f, 14)->num_slots == 3 && desc_at(&f, 14)->num_sge == 10);
	check_sges(&f, 14, sge, 10);
	CHECK(desc_at(&f, 17)->cookie == 2 && desc_at(&f, 17)->num_sge == 1);
	qp_free(&f);
}

static void test_wr_flush(void)
{
#ifdef HAVE_FLUSH
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 16, 14);
	ibv_wr_start(f.ex);
	ibv_wr_flush(f.ex, 9, 0x100, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	ibv_wr_set_sge(f.ex, 1, 2, 3);
	CHECK(!ibv_wr_complete(f.ex));
	CHECK(desc_at(&f, 14)->num_slots == 1);
	CHECK(desc_at(&f, 14)->flush_len == 64);
	CHECK(desc_at(&f, 14)->flush == (VRNIC_FLUSH_GLOBAL | VRNIC_FLUSH_MR));
	qp_free(&f);
#else
	puts("# libibverbs has no FLUSH");
#endif
}

/* An error anywhere undoes the batch, and the next batch is not affected. */
static void test_wr_undo(void)
{
	struct ibv_sge sge[31];
	struct fixture f;

	make_sges(sge, 31);
	qp_make(&f, IBV_QPT_RC, 8, 3);
	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_sge_list(f.ex, 31, sge);
	ibv_wr_send(f.ex);
	ibv_wr_set_inline_data(f.ex, sge, 10);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);
	CHECK(prod(&f) == 3 && f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	for (int i = 0; i < 9; i++)
		ibv_wr_send(f.ex);
	CHECK(ibv_wr_complete(f.ex) == ENOMEM && f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_sge_list(f.ex, 30, sge);
	ibv_wr_abort(f.ex);
	CHECK(f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	ibv_wr_atomic_cmp_swp(f.ex, 1, 8, 2, 3);
	ibv_wr_set_sge_list(f.ex, 2, sge);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);

	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_ud_addr(f.ex, NULL, 1, 2);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);

	ibv_wr_start(f.ex);
	ibv_wr_atomic_cmp_swp(f.ex, 1, 8, 2, 3);
	ibv_wr_set_sge(f.ex, 7, 0x1000, 8);
	CHECK(!ibv_wr_complete(f.ex) && prod(&f) == 4);
	CHECK(desc_at(&f, 3)->atomic.compare == 2 &&
	      desc_at(&f, 3)->atomic.swap_add == 3);
	qp_free(&f);
}

static void test_recv(void)
{
	struct ibv_sge sge[4];
	struct ibv_recv_wr wr[5] = {}, *bad;
	const struct vrnic_recv_desc *d;
	struct fixture f;

	make_sges(sge, 4);
	for (int i = 0; i < 5; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = 10 + i, .sg_list = sge,
			.num_sge = i % 4, .next = i < 4 ? &wr[i + 1] : NULL };
	qp_make(&f, IBV_QPT_RC, 8, UINT32_MAX);
	CHECK(vrnic_post_recv(f.ibqp, wr, &bad) == ENOMEM && bad == &wr[4]);
	CHECK(f.qp.rq.ring.hdr->prod == 3 && !doorbells);
	for (int i = 0; i < 4; i++) {
		d = vrnic_ring_slot(&f.qp.rq.ring, UINT32_MAX + i);
		CHECK(d->cookie == 10ULL + i && d->num_sge == (uint32_t)i);
		CHECK(!d->reserved && !memcmp(d->sge, sge, i * sizeof(*sge)));
	}
	f.qp.rq.ring.hdr->cons = 3;
	f.qp.rq.ring.hdr->flags = VRNIC_RING_DOORBELL;
	CHECK(!vrnic_post_recv(f.ibqp, &wr[4], &bad) && doorbells == 1);
	wr[4].num_sge = 4;
	CHECK(vrnic_post_recv(f.ibqp, &wr[4], &bad) == EINVAL && bad == &wr[4]);
	f.qp.vqp.qp.state = IBV_QPS_RESET;
	CHECK(vrnic_post_recv(f.ibqp, &wr[0], &bad) == EINVAL && bad == wr);
	qp_free(&f);
}

static void cq_make(struct vrnic_cq *cq, uint32_t entries)
{
	memset(cq, 0, sizeof(*cq));
	cq->vcq.cq.context = &context.vctx.context;
	ring_make(&cq->ring, entries, sizeof(struct vrnic_cqe), 0);
	memset(cq->ring.slots, 0, entries * sizeof(struct vrnic_cqe));
	vrnic_cq_init(cq, false);
	vrnic_cq_ex_init(cq, VRNIC_CQ_EX_FIELDS);
}

/* Play the kernel: write completion @i. */
static void cq_put(struct vrnic_cq *cq, uint32_t i, uint32_t qpn)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(&cq->ring, i);

	cqe->cookie = i;
	cqe->qpn = qpn;
	cqe->status = IBV_WC_SUCCESS;
	cqe->opcode = IBV_WC_RECV;
	cqe->byte_len = i * 3;
	__atomic_store_n(&cqe->phase, 1 + ((i / cq->ring.entries) & 1),
			 __ATOMIC_RELEASE);
}

static void test_poll(void)
{
	struct ibv_wc wc[8];
	struct vrnic_cq cq;
	uint32_t i, got = 0;

	cq_make(&cq, 4);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	for (i = 0; i < 100; got = i) {
		uint32_t batch = 1 + i % 4;

		for (uint32_t k = 0; k < batch; k++)
			cq_put(&cq, i++, 7);
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == (int)batch);
		CHECK(wc[0].wr_id == got && wc[batch - 1].wr_id == i - 1);
		CHECK(wc[0].qp_num == 7 && wc[0].byte_len == got * 3);
		CHECK(wc[0].opcode == IBV_WC_RECV && cq.ring.hdr->cons == i);
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	}
	cq.ring.hdr->flags = VRNIC_RING_ERROR;
	cq_put(&cq, i, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 1);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == -EIO);
	free(cq.ring.hdr);
}

static void test_forget(void)
{
	struct ibv_wc wc[8];
	struct vrnic_cq cq;

	cq_make(&cq, 8);
	for (uint32_t i = 0; i < 8; i++)
		cq_put(&cq, i, i % 2 ? 7 : 8);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, wc) == 1);
	vrnic_cq_forget_qp(&cq.vcq.cq, 8);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 2, wc) == 2);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 3 && wc[1].qp_num == 7);
	CHECK(cq.ring.hdr->cons == 6);	/* two completions are left */
	vrnic_cq_forget_qp(&cq.vcq.cq, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	CHECK(cq.ring.hdr->cons == 8);	/* dropped entries are given back, too */
	free(cq.ring.hdr);
}

static void test_poll_ex(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct vrnic_cq cq;
	struct ibv_cq_ex *ex = &cq.vcq.cq_ex;

	cq_make(&cq, 4);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	cq_put(&cq, 0, 7);
	cq_put(&cq, 1, 9);
	CHECK(!ibv_start_poll(ex, &attr));
	CHECK(ex->wr_id == 0 && ibv_wc_read_qp_num(ex) == 7);
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));	/* no deadlock with start_poll */
	CHECK(!ibv_next_poll(ex));
	CHECK(ex->wr_id == 1 && ibv_wc_read_qp_num(ex) == 9);
	CHECK(ibv_next_poll(ex) == ENOENT);
	CHECK(cq.ring.hdr->cons == 2);	/* entries that were taken are given back at once */
	ibv_end_poll(ex);
	CHECK(cq.ring.hdr->cons == 2);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	cq_put(&cq, 2, 7);
	CHECK(!ibv_start_poll(ex, &attr));
	ibv_end_poll(ex);
	CHECK(cq.ring.hdr->cons == 3);
	attr.comp_mask = 1;
	CHECK(ibv_start_poll(ex, &attr) == EINVAL);
	free(cq.ring.hdr);
}

static void test_arm(void)
{
	struct vrnic_cq cq;

	cq_make(&cq, 4);
	vrnic_req_notify_cq(&cq.vcq.cq, 1);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_SOLICITED);
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	vrnic_req_notify_cq(&cq.vcq.cq, 1);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	free(cq.ring.hdr);
}

/* Once a poll has noted that the event came, posts need no longer ring at once. */
static void test_armed(void)
{
	struct ibv_wc wc;
	struct vrnic_cq cq;

	cq_make(&cq, 4);
	CHECK(!vrnic_cq_is_armed(&cq));
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(vrnic_cq_is_armed(&cq));
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 0 && vrnic_cq_is_armed(&cq));
	cq.ring.hdr->arm = VRNIC_ARM_NONE;
	cq_put(&cq, 0, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 1 && !vrnic_cq_is_armed(&cq));
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(vrnic_cq_is_armed(&cq));
	free(cq.ring.hdr);
}

/* ---- credit: requests are under way until their completion was polled ---- */

static void credit_make(struct fixture *f, uint32_t sends, uint32_t recvs)
{
	qp_make(f, IBV_QPT_RC, 32, -3);
	cq_make(&f->cq, 64);
	f->ibqp->recv_cq = f->ibqp->send_cq;
	f->qp.credit.max = sends;
	f->qp.rq.credit.max = recvs;
	CHECK(!vrnic_credit_open(&f->qp));
}

static void credit_free(struct fixture *f)
{
	vrnic_credit_close(&f->qp);
	vrnic_cq_fini(&f->cq);
	free(f->cq.ring.hdr);
	qp_free(f);
}

/* Play the kernel: take all requests, and complete the @done-th one. */
static void complete_send(struct fixture *f, uint32_t i, uint32_t done)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(&f->cq.ring, i);

	f->qp.sq.hdr->cons = f->qp.sq.hdr->prod;
	cqe->flags = VRNIC_CQE_SEND;
	cqe->sq_done = done;
	cq_put(&f->cq, i, f->ibqp->qp_num);
}

static void test_credit(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct fixture f;
	struct ibv_wc wc;

	credit_make(&f, 3, 0);
	for (int i = 0; i < 3; i++)
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM && f.bad == &wr);
	complete_send(&f, 0, 2);	/* the first one was not signaled */
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM);
	CHECK(vrnic_poll_cq(&f.cq.vcq.cq, 1, &wc) == 1);
	for (int i = 0; i < 2; i++)
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM);
	credit_free(&f);
}

/* A batch that is aborted does not count its requests as posted, nor does a refused one. */
static void test_credit_undo(void)
{
	struct ibv_send_wr bad = { .opcode = IBV_WR_SEND, .num_sge = 31 };
	struct fixture f;

	credit_make(&f, 3, 0);
	for (int round = 0; round < 4; round++) {
		CHECK(vrnic_post_send(f.ibqp, &bad, &f.bad) == EINVAL);
		ibv_wr_start(f.ex);
		for (int i = 0; i < 3; i++)
			ibv_wr_send(f.ex);
		ibv_wr_abort(f.ex);
	}
	ibv_wr_start(f.ex);
	for (int i = 0; i < 4; i++)
		ibv_wr_send(f.ex);
	CHECK(ibv_wr_complete(f.ex) == ENOMEM);
	ibv_wr_start(f.ex);
	for (int i = 0; i < 3; i++)
		ibv_wr_send(f.ex);
	CHECK(!ibv_wr_complete(f.ex));
	credit_free(&f);
}

static void test_credit_recv(void)
{
	struct ibv_recv_wr wr = {}, *bad;
	struct fixture f;
	struct ibv_wc wc;

	credit_make(&f, 3, 2);
	for (int i = 0; i < 2; i++)
		CHECK(!vrnic_post_recv(f.ibqp, &wr, &bad));
	f.qp.rq.ring.hdr->cons = f.qp.rq.ring.hdr->prod;
	CHECK(vrnic_post_recv(f.ibqp, &wr, &bad) == ENOMEM && bad == &wr);
	cq_put(&f.cq, 0, f.ibqp->qp_num);
	CHECK(vrnic_poll_cq(&f.cq.vcq.cq, 1, &wc) == 1);
	CHECK(!vrnic_post_recv(f.ibqp, &wr, &bad));
	CHECK(vrnic_post_recv(f.ibqp, &wr, &bad) == ENOMEM);
	credit_free(&f);
}

#define CREDIT_QPS	100

/*
 * A poll finds the right one of many queue pairs, also after all were removed from the completion
 * queue and added again. vrnic_cq_forget_qp(), as at RESET, sets the count of one to 0, and of no
 * other.
 */
static void test_credit_many(void)
{
	static struct fixture f[CREDIT_QPS];
	struct vrnic_cq *cq = &f[0].cq;
	struct ibv_wc wc;

	cq_make(cq, 4);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < CREDIT_QPS; i++) {
			f[i].qp.vqp.qp.qp_num = 0x100 + i * 8;
			f[i].qp.vqp.qp.send_cq = &cq->vcq.cq;
			f[i].qp.credit.max = 1;
			CHECK(!vrnic_credit_open(&f[i].qp));
		}
		for (int i = 0; i < CREDIT_QPS; i++) {
			uint32_t n = round * CREDIT_QPS + i;
			struct vrnic_cqe *cqe = vrnic_ring_slot(&cq->ring, n);

			cqe->flags = VRNIC_CQE_SEND;
			cqe->sq_done = n;
			cq_put(cq, n, 0x100 + i * 8);
			CHECK(vrnic_poll_cq(&cq->vcq.cq, 1, &wc) == 1);
			CHECK(f[i].qp.polled[VRNIC_SIDE_SEND].done == n);
		}
		vrnic_cq_forget_qp(&cq->vcq.cq, 0x100);
		CHECK(!f[0].qp.polled[VRNIC_SIDE_SEND].done);
		CHECK(f[1].qp.polled[VRNIC_SIDE_SEND].done);
		for (int i = 0; i < CREDIT_QPS; i++)
			vrnic_credit_close(&f[i].qp);
	}
	vrnic_cq_fini(cq);
	free(cq->ring.hdr);
}

/* ---- resizing: the rings lie in a file, which the process maps ---- */

#define RESIZE_RINGS	4	/* the new ring is never where the old one is */
#define RESIZE_ENTRIES	8
#define RESIZE_SPAN	(2 * 4096)

static unsigned int resizes;
static bool dontfork_fails;

/* Stands in for the function of libibverbs, which returns -1 and not an errno. */
int ibv_dontfork_range(void *base, size_t size)
{
	if (!dontfork_fails)
		return 0;
	errno = ENOMEM;
	return -1;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

/* Stands in for the kernel's command. It yields, so that other threads use the ring meanwhile. */
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size)
{
	struct vrnic_cmd_resize_cq_resp *answer = (void *)resp;

	sched_yield();
	answer->ring = (struct vrnic_ring_info){
		.offset = ++resizes % RESIZE_RINGS * RESIZE_SPAN,
		.bytes = RESIZE_SPAN,
		.entries = RESIZE_ENTRIES,
		.stride = sizeof(struct vrnic_cqe),
	};
	return 0;
}

static void cq_in_file(struct vrnic_cq *cq)
{
	int fd = memfd_create("rings", 0);

	if (fd < 0 || ftruncate(fd, RESIZE_RINGS * RESIZE_SPAN))
		abort();
	context.vctx.context.cmd_fd = fd;
	cq->vcq.cq.context = &context.vctx.context;
	vrnic_cq_init(cq, false);
	CHECK(!vrnic_resize_cq(&cq->vcq.cq, RESIZE_ENTRIES));
}

static void cq_close_file(struct vrnic_cq *cq)
{
	vrnic_ring_unmap(&cq->ring, cq->vcq.cq.context);
	vrnic_cq_fini(cq);
	close(context.vctx.context.cmd_fd);
}

struct resizer {
	struct ibv_cq *cq;
	bool stop;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
		CHECK(!vrnic_resize_cq(r->cq, RESIZE_ENTRIES));
	return NULL;
}

static void use_one_cpu(cpu_set_t *before)
{
	int first = 0;
	cpu_set_t one;

	if (sched_getaffinity(0, sizeof(*before), before))
		abort();
	while (!CPU_ISSET(first, before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

/* The kernel writes to a new ring that could not be mapped: polls fail. */
static void test_map_fails(void)
{
	struct vrnic_cq cq = {};
	struct ibv_wc wc;

	cq_in_file(&cq);
	dontfork_fails = true;
	CHECK(vrnic_resize_cq(&cq.vcq.cq, RESIZE_ENTRIES) == ENOMEM);
	dontfork_fails = false;
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == -EIO);
	cq_close_file(&cq);
}

/* The CPUs that the thread may use count, not those of the machine. */
static void test_one_cpu(void)
{
	cpu_set_t before;

	use_one_cpu(&before);
	CHECK(vrnic_has_one_cpu());
	sched_setaffinity(0, sizeof(before), &before);
	CHECK(vrnic_has_one_cpu() == (CPU_COUNT(&before) == 1));
}

#define POLLS_BESIDE	10000

/* A thread that polls or arms gets a turn, however often the queue is resized. */
static void test_resize_starves_nobody(void)
{
	cpu_set_t before;
	struct vrnic_cq cq = {};
	struct resizer r = { .cq = &cq.vcq.cq };
	pthread_t thread;
	struct ibv_wc wc;

	use_one_cpu(&before);
	cq_in_file(&cq);
	if (pthread_create(&thread, NULL, resize_on, &r))
		abort();
	for (int i = 0; i < POLLS_BESIDE; i++) {
		CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 0);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cq_close_file(&cq);
	sched_setaffinity(0, sizeof(before), &before);
}

#define POSTS_BESIDE	300000

/* A post reads nothing in the mapping of a completion ring, which another thread may replace. */
static void test_post_beside_resize(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct resizer r;
	pthread_t thread;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 32, 0);
	cq_in_file(&f.cq);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	f.qp.sq.hdr->gather = 3;
	r = (struct resizer){ .cq = &f.cq.vcq.cq };
	if (pthread_create(&thread, NULL, resize_on, &r))
		abort();
	for (int i = 0; i < POSTS_BESIDE; i++) {
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
		f.qp.sq.hdr->cons = f.qp.sq.hdr->prod;
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK(late == POSTS_BESIDE);
	cq_close_file(&f.cq);
	qp_free(&f);
}

#define STRESS_COUNT	100000

/* Play the engine: take descriptors one by one, and check each. */
static void *engine(void *arg)
{
	struct fixture *f = arg;
	struct vrnic_ring_hdr *hdr = f->qp.sq.hdr;
	uint32_t idx = 0;

	for (uint64_t n = 0; n < STRESS_COUNT; n++) {
		const struct vrnic_desc *d;

		while (__atomic_load_n(&hdr->prod, __ATOMIC_ACQUIRE) == idx)
			sched_yield();
		d = desc_at(f, idx);
		CHECK(d->cookie == n && d->inline_len == n % 500);
		CHECK(!(n % 500) || payload_at(f, idx, n % 500 - 1) == (uint8_t)n);
		idx += d->num_slots;
		__atomic_store_n(&hdr->cons, idx, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* No descriptor is lost, torn or overwritten while the provider and the engine run. */
static void test_stress(void)
{
	uint8_t data[500];
	struct ibv_sge sge = { .addr = (uintptr_t)data };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_INLINE };
	struct fixture f;
	pthread_t thread;

	qp_make(&f, IBV_QPT_RC, 16, 0);
	if (pthread_create(&thread, NULL, engine, &f))
		abort();
	for (; wr.wr_id < STRESS_COUNT; wr.wr_id++) {
		int ret;

		sge.length = wr.wr_id % 500;
		memset(data, wr.wr_id, sge.length);
		while ((ret = vrnic_post_send(f.ibqp, &wr, &f.bad)) == ENOMEM)
			sched_yield();
		CHECK(!ret);
	}
	pthread_join(thread, NULL);
	qp_free(&f);
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
	{ "armed", test_armed },
	{ "map_fails", test_map_fails },
	{ "one_cpu", test_one_cpu },
	{ "gone", test_gone },
	{ "credit", test_credit },
	{ "credit_undo", test_credit_undo },
	{ "credit_recv", test_credit_recv },
	{ "credit_many", test_credit_many },
	{ "resize_starves_nobody", test_resize_starves_nobody },
	{ "post_beside_resize", test_post_beside_resize },
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
