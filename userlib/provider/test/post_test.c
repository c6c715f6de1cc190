// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posts with ibv_post_send() and ibv_post_recv(). */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "ring_test.h"

void test_write(void)
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
void test_doorbell(void)
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
void test_stream(void)
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
void test_gather(void)
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
void test_sge_wrap(void)
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

void test_inline_wrap(void)
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
void test_full(void)
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
void test_gone(void)
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
void test_refused(void)
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

void test_refused_ud(void)
{
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr without_ah = { .opcode = IBV_WR_SEND };
	struct fixture f;

	qp_make(&f, IBV_QPT_UD, 16, 0);
	CHECK(post_one(&f, write) == EINVAL);
	CHECK(post_one(&f, without_ah) == EINVAL);
	qp_free(&f);
}

void test_atomic(void)
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

void test_keys(void)
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

void test_ud(void)
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

void test_recv(void)
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
void test_stress(void)
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
