// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a kernel consumer sees when something is wrong: status, flush, events. */

#include "consumer.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "verbs/verbs.h"

#define MSG	64
#define RECVS	(CONSUMER_DEPTH / 2)

/* struct scene - a pair with requests that must be flushed when it fails */
struct scene {
	struct end *a;
	struct end *b;
	void *buf;
	struct request *recv_a;
	struct request *recv_b;
};

static struct scene *new_scene(struct kunit *test)
{
	struct scene *s = new_buffer(test, sizeof(*s));

	new_pair(test, &s->a, &s->b);
	s->buf = new_buffer(test, MSG);
	s->recv_a = post_recv(test, s->a, s->buf, MSG);
	return s;
}

static enum ib_qp_state state_of(struct kunit *test, struct end *end)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_qp(end->qp, &attr, IB_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* In ERR, old and new requests of both queues are flushed. */
static void expect_flushes(struct kunit *test, struct end *end)
{
	void *buf = new_buffer(test, MSG);

	KUNIT_EXPECT_EQ(test, state_of(test, end), IB_QPS_ERR);
	expect_status(test, end, post_send(test, end, IB_WR_SEND, buf, MSG, 0),
		      IB_WC_WR_FLUSH_ERR);
	expect_status(test, end, post_recv(test, end, buf, MSG),
		      IB_WC_WR_FLUSH_ERR);
}

/* A failed request takes what was posted behind it, and all receives, along. */
static void expect_failure(struct kunit *test, struct scene *s,
			   struct request *req, enum ib_wc_status status)
{
	struct request *next = post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0);

	expect_status(test, s->a, req, status);
	expect_status(test, s->a, next, IB_WC_WR_FLUSH_ERR);
	expect_status(test, s->a, s->recv_a, IB_WC_WR_FLUSH_ERR);
	expect_flushes(test, s->a);
}

static void unknown_lkey(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, s->buf, MSG);
	struct ib_send_wr wr = {
		.wr_cqe = &req->cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};

	s->recv_b = post_recv(test, s->b, new_buffer(test, MSG), MSG);
	sge.lkey ^= 1;
	post(test, s->a, &wr);
	expect_failure(test, s, req, IB_WC_LOC_PROT_ERR);
	/* the peer never heard of it */
	KUNIT_EXPECT_TRUE(test, stays_open(s->b, s->recv_b));
	KUNIT_EXPECT_EQ(test, state_of(test, s->b), IB_QPS_RTS);
}

static void unknown_rkey(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct request *req;

	s->recv_b = post_recv(test, s->b, s->buf, MSG);
	req = post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->buf, MSG, 0, 0x12345);
	expect_failure(test, s, req, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, end_saw(s->b, IB_EVENT_QP_ACCESS_ERR));
	expect_status(test, s->b, s->recv_b, IB_WC_WR_FLUSH_ERR);
	expect_flushes(test, s->b);
}

/* A local key is none that a peer may use, not even the one to all memory. */
static void local_dma_lkey_is_local(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct consumer *c = test->priv;
	u64 *target = new_buffer(test, MSG);

	memset(s->buf, 0xff, MSG);
	expect_failure(test, s, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->buf,
					  MSG, (uintptr_t)target,
					  c->pd->local_dma_lkey),
		       IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, *target, 0);
}

static void queue_pair_forbids(struct kunit *test)
{
	struct scene *s = new_scene(test);
	void *target = new_buffer(test, MSG);
	struct ib_mr *mr = new_region(test, s->b, target, MSG, CONSUMER_ACCESS);
	struct ib_qp_attr attr = { .qp_access_flags = IB_ACCESS_REMOTE_READ };

	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->b->qp, &attr, IB_QP_ACCESS_FLAGS), 0);
	memset(s->buf, 0xff, MSG);
	expect_failure(test, s, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->buf,
					  MSG, mr->iova, mr->rkey),
		       IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(target, 0, MSG));
	KUNIT_EXPECT_TRUE(test, end_saw(s->b, IB_EVENT_QP_REQ_ERR));
}

static void receive_too_small(struct kunit *test)
{
	struct scene *s = new_scene(test);

	s->recv_b = post_recv(test, s->b, s->buf, MSG - 1);
	expect_failure(test, s, post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0),
		       IB_WC_REM_INV_REQ_ERR);
	expect_status(test, s->b, s->recv_b, IB_WC_LOC_LEN_ERR);
	expect_flushes(test, s->b);
}

static void receive_with_a_bad_key(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct ib_sge sge = sge_of(test, s->buf, MSG);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	s->recv_b = new_request(test);
	wr.wr_cqe = &s->recv_b->cqe;
	sge.lkey ^= 1;
	KUNIT_ASSERT_EQ(test, ib_post_recv(s->b->qp, &wr, NULL), 0);
	expect_failure(test, s, post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0),
		       IB_WC_REM_OP_ERR);
	expect_status(test, s->b, s->recv_b, IB_WC_LOC_PROT_ERR);
}

static void no_receive(struct kunit *test)
{
	struct scene *s = new_scene(test);

	expect_failure(test, s, post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0),
		       IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, state_of(test, s->b), IB_QPS_RTS);
}

static void receive_in_time(struct kunit *test)
{
	struct ib_qp_attr attr = { .min_rnr_timer = 20 };	/* 10 ms */
	struct scene *s = new_scene(test);
	struct request *send;

	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->b->qp, &attr, IB_QP_MIN_RNR_TIMER), 0);
	send = post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0);
	expect_done(test, s->b, post_recv(test, s->b, s->buf, MSG), IB_WC_RECV);
	expect_done(test, s->a, send, IB_WC_SEND);
}

static void peer_in_error(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct scene *s = new_scene(test);

	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->b->qp, &attr, IB_QP_STATE), 0);
	expect_flushes(test, s->b);
	expect_failure(test, s, post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0),
		       IB_WC_RETRY_EXC_ERR);
}

/* It has a peer, but that peer's peer is another. */
static void peer_of_another(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct end *stranger = new_end(test, IB_QPT_RC);
	struct request *recv = post_recv(test, s->b, s->buf, MSG);

	end_to_init(test, stranger);
	end_to_rtr(test, stranger, s->b);
	end_to_rts(test, stranger);
	expect_status(test, stranger, post_send(test, stranger, IB_WR_SEND,
						s->buf, MSG, 0),
		      IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, stays_open(s->b, recv));
}

static void misaligned_atomic(struct kunit *test)
{
	struct scene *s = new_scene(test);
	u64 *target = new_buffer(test, 2 * sizeof(u64));
	struct ib_mr *mr = new_region(test, s->b, target, 16, CONSUMER_ACCESS);
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, s->buf, 8);
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = mr->iova + 4,
		.rkey = mr->rkey,
		.compare_add = U64_MAX,
	};

	post(test, s->a, &wr.wr);
	expect_failure(test, s, req, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, target[0] | target[1], 0);
}

/* A queue pair that failed can be used again, after RESET. */
static void reset_and_reconnect(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct scene *s = new_scene(test);
	struct request *recv;

	expect_failure(test, s, post_rdma(test, s->a, IB_WR_RDMA_READ, s->buf,
					  MSG, 0, 0x12345),
		       IB_WC_REM_ACCESS_ERR);
	ib_drain_qp(s->a->qp);
	ib_drain_qp(s->b->qp);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->a->qp, &attr, IB_QP_STATE), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->b->qp, &attr, IB_QP_STATE), 0);
	connect_ends(test, s->a, s->b);
	recv = post_recv(test, s->b, s->buf, MSG);
	expect_done(test, s->a, post_send(test, s->a, IB_WR_SEND, s->buf, MSG, 0),
		    IB_WC_SEND);
	expect_done(test, s->b, recv, IB_WC_RECV);
}

/* A run of as much as @descs. Return: completions that it made. */
static u32 run_flush(struct kunit *test, struct end *end, u32 descs,
		     enum vrnic_verdict verdict)
{
	struct vrnic_budget budget = { .bytes = SZ_1M, .descs = descs };
	struct vrnic_ring *ring = &to_vcq(end->cq)->ring;
	struct vrnic_qp *qp = to_vqp(end->qp);
	u32 before = ring->idx;

	KUNIT_EXPECT_EQ(test, vrnic_sq_ops.run(&qp->run, &budget), verdict);
	return ring->idx - before;
}

static void a_flushed_receive_costs_budget(struct kunit *test)
{
	struct end *end = new_end(test, IB_QPT_RC), *peer = new_end(test, IB_QPT_RC);
	struct vrnic_qp *qp = to_vqp(end->qp);
	struct request *recv[RECVS];
	int i;

	connect_ends(test, end, peer);
	for (i = 0; i < RECVS; i++)
		recv[i] = post_recv(test, end, new_buffer(test, MSG), MSG);
	vrnic_park(&qp->run);
	vrnic_qp_error(qp, -1);
	KUNIT_EXPECT_EQ(test, run_flush(test, end, 5, VRNIC_MORE), 5);
	KUNIT_EXPECT_EQ(test, run_flush(test, end, 7, VRNIC_MORE), 7);
	KUNIT_EXPECT_EQ(test, run_flush(test, end, 64, VRNIC_IDLE), RECVS - 12);
	vrnic_unpark(&qp->run);
	for (i = 0; i < RECVS; i++)
		expect_status(test, end, recv[i], IB_WC_WR_FLUSH_ERR);
}

static void only_what_the_mask_names_counts(struct kunit *test)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD, .retry_cnt = 6, .rnr_retry = 99,
	};
	struct ib_qp_init_attr init;
	struct end *a, *b;

	new_pair(test, &a, &b);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(a->qp, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, ib_modify_qp(a->qp, &attr, IB_QP_RETRY_CNT), 0);
	KUNIT_EXPECT_NE(test, ib_modify_qp(a->qp, &attr, IB_QP_RNR_RETRY), 0);
	attr.retry_cnt = 99;
	attr.rnr_retry = 3;
	KUNIT_EXPECT_EQ(test, ib_modify_qp(a->qp, &attr, IB_QP_RNR_RETRY), 0);
	KUNIT_ASSERT_EQ(test, ib_query_qp(a->qp, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.retry_cnt, 6);
	KUNIT_EXPECT_EQ(test, attr.rnr_retry, 3);
}

static struct kunit_case error_cases[] = {
	KUNIT_CASE(only_what_the_mask_names_counts),
	KUNIT_CASE(unknown_lkey),
	KUNIT_CASE(unknown_rkey),
	KUNIT_CASE(local_dma_lkey_is_local),
	KUNIT_CASE(queue_pair_forbids),
	KUNIT_CASE(receive_too_small),
	KUNIT_CASE(receive_with_a_bad_key),
	KUNIT_CASE(no_receive),
	KUNIT_CASE(receive_in_time),
	KUNIT_CASE(peer_in_error),
	KUNIT_CASE(peer_of_another),
	KUNIT_CASE(misaligned_atomic),
	KUNIT_CASE(reset_and_reconnect),
	KUNIT_CASE(a_flushed_receive_costs_budget),
	{}
};

static struct kunit_suite error_suite = {
	.name = "vrnic_verbs_error",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = error_cases,
};

kunit_test_suite(error_suite);
