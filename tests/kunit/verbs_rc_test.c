// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RC between two queue pairs of a kernel consumer, however it polls and posts. */

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "compat/compat.h"
#include "consumer.h"
#include "queue/qp.h"

#define MSG	5000	/* more than a page, and not a multiple of anything */

static const struct polling {
	const char *name;
	enum ib_poll_context ctx;
} pollings[] = {
	{ "direct", IB_POLL_DIRECT },
	{ "softirq", IB_POLL_SOFTIRQ },
	{ "workqueue", IB_POLL_WORKQUEUE },
};

KUNIT_ARRAY_PARAM_DESC(polling, pollings, name);

static void pair_polled(struct kunit *test, struct end **a, struct end **b)
{
	const struct polling *p = test->param_value;
	struct consumer *c = test->priv;

	c->ctx = p->ctx;
	new_pair(test, a, b);
}

static void *random_buffer(struct kunit *test, size_t bytes)
{
	void *buf = new_buffer(test, bytes);

	get_random_bytes(buf, bytes);
	return buf;
}

static void send_receive(struct kunit *test)
{
	void *from = random_buffer(test, MSG), *to = new_buffer(test, MSG);
	struct request *send, *recv;
	struct end *a, *b;

	pair_polled(test, &a, &b);
	recv = post_recv(test, b, to, MSG);
	send = post_send(test, a, IB_WR_SEND_WITH_IMM, from, MSG - 3, 0xabcd);
	expect_done(test, a, send, IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, MSG - 3);
	KUNIT_EXPECT_EQ(test, recv->wc.wc_flags, IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), 0xabcd);
	KUNIT_EXPECT_MEMEQ(test, to, from, MSG - 3);
	KUNIT_EXPECT_NULL(test, memchr_inv(to + MSG - 3, 0, 3));
}

static void write_and_read(struct kunit *test)
{
	void *from = random_buffer(test, MSG), *to = new_buffer(test, MSG);
	void *back = new_buffer(test, MSG);
	struct request *recv;
	struct end *a, *b;
	struct ib_mr *mr;

	pair_polled(test, &a, &b);
	mr = new_region(test, b, to, MSG, CONSUMER_ACCESS);
	recv = post_recv(test, b, back, MSG);
	expect_done(test, a, post_rdma(test, a, IB_WR_RDMA_WRITE_WITH_IMM, from,
				       MSG, mr->iova, mr->rkey),
		    IB_WC_RDMA_WRITE);
	expect_done(test, b, recv, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), 0x12345678);
	KUNIT_EXPECT_MEMEQ(test, to, from, MSG);
	expect_done(test, a, post_rdma(test, a, IB_WR_RDMA_READ, back, MSG - 7,
				       mr->iova + 7, mr->rkey), IB_WC_RDMA_READ);
	KUNIT_EXPECT_MEMEQ(test, back, from + 7, MSG - 7);
}

static struct request *post_atomic(struct kunit *test, struct end *end,
				   enum ib_wr_opcode opcode, u64 *old,
				   struct ib_mr *mr, u64 compare_add, u64 swap)
{
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, old, sizeof(*old));
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe,
			.opcode = opcode,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = mr->iova,
		.rkey = mr->rkey,
		.compare_add = compare_add,
		.swap = swap,
	};

	post(test, end, &wr.wr);
	return req;
}

static void atomics(struct kunit *test)
{
	u64 *old = new_buffer(test, 8), *target = new_buffer(test, 8);
	struct end *a, *b;
	struct ib_mr *mr;

	new_pair(test, &a, &b);
	mr = new_region(test, b, target, 8, CONSUMER_ACCESS);
	*target = U64_MAX - 1;
	expect_done(test, a, post_atomic(test, a, IB_WR_ATOMIC_FETCH_AND_ADD, old,
					 mr, 5, 0), IB_WC_FETCH_ADD);
	KUNIT_EXPECT_EQ(test, *old, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, *target, 3);
	expect_done(test, a, post_atomic(test, a, IB_WR_ATOMIC_CMP_AND_SWP, old,
					 mr, 4, 77), IB_WC_COMP_SWAP);
	KUNIT_EXPECT_EQ(test, *old, 3);
	KUNIT_EXPECT_EQ(test, *target, 3);
	expect_done(test, a, post_atomic(test, a, IB_WR_ATOMIC_CMP_AND_SWP, old,
					 mr, 3, 77), IB_WC_COMP_SWAP);
	KUNIT_EXPECT_EQ(test, *target, 77);
}

/* Scattered over as many segments as there may be, on both sides. */
static void many_segments(struct kunit *test)
{
	static const u32 lens[CONSUMER_SGES] = { 1, 100, 0, 4095, 3, 777, 8, 16 };
	u8 *from = random_buffer(test, MSG), *to = new_buffer(test, MSG);
	struct request *send = new_request(test), *recv = new_request(test);
	struct ib_sge out[CONSUMER_SGES], in[CONSUMER_SGES];
	struct ib_send_wr wr = {
		.wr_cqe = &send->cqe, .sg_list = out, .num_sge = CONSUMER_SGES,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};
	struct ib_recv_wr rwr = {
		.wr_cqe = &recv->cqe, .sg_list = in, .num_sge = CONSUMER_SGES,
	};
	u32 i, x = 0, y = 0;
	struct end *a, *b;

	new_pair(test, &a, &b);
	for (i = 0; i < CONSUMER_SGES; i++) {
		out[i] = sge_of(test, from + x, lens[i]);
		x += lens[i];
		in[i] = sge_of(test, to + y, lens[CONSUMER_SGES - 1 - i]);
		y += lens[CONSUMER_SGES - 1 - i];
	}
	KUNIT_ASSERT_EQ(test, ib_post_recv(b->qp, &rwr, NULL), 0);
	post(test, a, &wr);
	expect_done(test, a, send, IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, x);
	KUNIT_EXPECT_MEMEQ(test, to, from, x);
}

/* Inline data may be reused at once, whatever slots it is spread over. */
static void inline_data(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 31, 32, 33, 96, 97, 255, CONSUMER_INLINE };
	u8 *from = random_buffer(test, CONSUMER_INLINE);
	u8 *copy = new_buffer(test, CONSUMER_INLINE);
	u8 *to = new_buffer(test, CONSUMER_INLINE);
	struct request *recv, *send;
	struct end *a, *b;
	u32 lap, i;

	new_pair(test, &a, &b);
	for (lap = 0; lap < 20; lap++) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			struct ib_sge sge[2] = {
				{ .addr = (uintptr_t)copy, .length = lens[i] / 3 },
				{ .addr = (uintptr_t)copy + lens[i] / 3,
				  .length = lens[i] - lens[i] / 3 },
			};
			struct ib_send_wr wr = {
				.sg_list = sge, .num_sge = 2, .opcode = IB_WR_SEND,
				.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
			};

			recv = post_recv(test, b, to, CONSUMER_INLINE);
			send = new_request(test);
			wr.wr_cqe = &send->cqe;
			memcpy(copy, from, lens[i]);
			post(test, a, &wr);
			memset(copy, 0xff, lens[i]);
			expect_done(test, a, send, IB_WC_SEND);
			expect_done(test, b, recv, IB_WC_RECV);
			KUNIT_ASSERT_EQ(test, recv->wc.byte_len, lens[i]);
			KUNIT_ASSERT_EQ(test, memcmp(to, from, lens[i]), 0);
		}
	}
}

/* A list in one call; only the last asks for a completion. */
static void list_unsignaled(struct kunit *test)
{
	u32 *from = new_buffer(test, 32 * 4), *to = new_buffer(test, 32 * 4);
	struct ib_rdma_wr *wr = new_buffer(test, 32 * sizeof(*wr));
	struct ib_sge *sge = new_buffer(test, 32 * sizeof(*sge));
	struct request *silent = new_request(test), *last = new_request(test);
	struct end *a, *b;
	struct ib_mr *mr;
	int i;

	new_pair(test, &a, &b);
	mr = new_region(test, b, to, 32 * 4, CONSUMER_ACCESS);
	for (i = 0; i < 32; i++) {
		from[i] = i + 1;
		sge[i] = sge_of(test, from + i, 4);
		wr[i].wr.wr_cqe = &silent->cqe;
		wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		wr[i].wr.sg_list = &sge[i];
		wr[i].wr.num_sge = 1;
		wr[i].wr.next = i < 31 ? &wr[i + 1].wr : NULL;
		wr[i].remote_addr = mr->iova + 4 * i;
		wr[i].rkey = mr->rkey;
	}
	wr[31].wr.wr_cqe = &last->cqe;
	wr[31].wr.send_flags = IB_SEND_SIGNALED;
	post(test, a, &wr[0].wr);
	expect_done(test, a, last, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, to, from, 32 * 4);
	KUNIT_EXPECT_TRUE(test, stays_open(a, silent));
}

/* Until the rings, and the completion queue, have been round many times. */
static void many_laps(struct kunit *test)
{
	u32 *from = new_buffer(test, 4), *to = new_buffer(test, 4);
	struct request *send, *recv;
	struct end *a, *b;
	u32 i;

	pair_polled(test, &a, &b);
	for (i = 0; i < 20 * CONSUMER_DEPTH; i++) {
		*from = i;
		recv = post_recv(test, b, to, 4);
		send = post_send(test, a, IB_WR_SEND, from, 4, 0);
		expect_done(test, a, send, IB_WC_SEND);
		expect_done(test, b, recv, IB_WC_RECV);
		KUNIT_ASSERT_EQ(test, *to, i);
	}
}

/* What does not fit is refused, with its place in the list, and only that. */
static void full_ring(struct kunit *test)
{
	struct ib_recv_wr *wr, *first;
	const struct ib_recv_wr *bad = NULL;
	struct end *a, *b;
	u32 i, room;

	new_pair(test, &a, &b);
	room = to_vqp(b->qp)->cap.max_recv_wr;
	wr = new_buffer(test, (room + 2) * sizeof(*wr));
	first = wr;
	for (i = 0; i < room + 1; i++) {
		wr[i].wr_cqe = &new_request(test)->cqe;
		wr[i].next = &wr[i + 1];
	}
	wr[room + 1].wr_cqe = &new_request(test)->cqe;
	KUNIT_EXPECT_EQ(test, ib_post_recv(b->qp, first, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr[room]);
	/* draining needs room */
	expect_done(test, a, post_send(test, a, IB_WR_SEND, NULL, 0, 0), IB_WC_SEND);
	expect_done(test, a, post_send(test, a, IB_WR_SEND, NULL, 0, 0), IB_WC_SEND);
}

static int try_send(struct end *end, struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad = NULL;
	int err = ib_post_send(end->qp, wr, &bad);

	return err && bad != wr ? -EDOM : err;
}

static void refused_at_once(struct kunit *test)
{
	struct request *req = new_request(test);
	struct ib_sge sge[2] = {};
	struct ib_send_wr wr = { .wr_cqe = &req->cqe, .opcode = IB_WR_SEND };
	struct end *a = new_end(test, IB_QPT_RC), *b;
	struct vrnic_qp *qp;

	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EINVAL);
	end_to_init(test, a);
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EINVAL);
	new_pair(test, &a, &b);
	qp = to_vqp(a->qp);
	wr.sg_list = sge;
	wr.num_sge = qp->cap.max_send_sge + 1;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EINVAL);
	wr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IB_SEND_INLINE;
	sge[0].length = qp->cap.max_inline_data + 1;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EINVAL);
	wr.send_flags = 0;
	wr.opcode = IB_WR_LSO;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EOPNOTSUPP);
	wr.opcode = IB_WR_RDMA_READ_WITH_INV;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EOPNOTSUPP);
	wr.opcode = 0x7f;
	KUNIT_EXPECT_EQ(test, try_send(a, &wr), -EOPNOTSUPP);
	KUNIT_EXPECT_TRUE(test, stays_open(a, req));
}

/* What precedes a request that is refused is executed, and the rest is not. */
static void bad_one_in_a_list(struct kunit *test)
{
	struct ib_send_wr wr[3] = {};
	const struct ib_send_wr *bad = NULL;
	struct request *send[3], *recv;
	struct end *a, *b;
	int i;

	new_pair(test, &a, &b);
	for (i = 0; i < 3; i++) {
		send[i] = new_request(test);
		wr[i].wr_cqe = &send[i]->cqe;
		wr[i].opcode = IB_WR_SEND;
		wr[i].send_flags = IB_SEND_SIGNALED;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].opcode = IB_WR_LSO;
	recv = post_recv(test, b, new_buffer(test, 8), 8);
	KUNIT_EXPECT_EQ(test, ib_post_send(a->qp, wr, &bad), -EOPNOTSUPP);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_send_wr *)&wr[1]);
	expect_done(test, b, recv, IB_WC_RECV);
	expect_done(test, a, send[0], IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, stays_open(a, send[2]));
}

/* With a lock held and interrupts off; consumers do. */
static void post_under_a_lock(struct kunit *test)
{
	u32 *from = new_buffer(test, 4), *to = new_buffer(test, 4);
	struct request *send = new_request(test), *recv = new_request(test);
	struct ib_sge out = sge_of(test, from, 4), in = sge_of(test, to, 4);
	struct ib_send_wr wr = {
		.wr_cqe = &send->cqe, .sg_list = &out, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};
	struct ib_recv_wr rwr = {
		.wr_cqe = &recv->cqe, .sg_list = &in, .num_sge = 1,
	};
	unsigned long flags;
	struct end *a, *b;
	spinlock_t lock;	/* the consumer's own; protects nothing */
	int err;

	spin_lock_init(&lock);
	pair_polled(test, &a, &b);
	*from = 0x600d;
	spin_lock_irqsave(&lock, flags);
	err = ib_post_recv(b->qp, &rwr, NULL) ?: ib_post_send(a->qp, &wr, NULL);
	spin_unlock_irqrestore(&lock, flags);
	KUNIT_ASSERT_EQ(test, err, 0);
	expect_done(test, a, send, IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, *to, 0x600d);
}

struct timed {
	struct hrtimer timer;
	struct ib_qp *qp;
	struct ib_send_wr wr;
	int err;
};

static enum hrtimer_restart post_in_interrupt(struct hrtimer *timer)
{
	struct timed *t = container_of(timer, struct timed, timer);

	t->err = in_hardirq() ? ib_post_send(t->qp, &t->wr, NULL) : -EDOM;
	return HRTIMER_NORESTART;
}

static void post_from_an_interrupt(struct kunit *test)
{
	struct timed *t = new_buffer(test, sizeof(*t));
	u32 *from = new_buffer(test, 4), *to = new_buffer(test, 4);
	struct request *send = new_request(test), *recv;
	struct ib_sge sge = sge_of(test, from, 4);
	struct end *a, *b;

	pair_polled(test, &a, &b);
	recv = post_recv(test, b, to, 4);
	*from = 0x600d;
	t->qp = a->qp;
	t->wr = (struct ib_send_wr){
		.wr_cqe = &send->cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};
	hrtimer_setup(&t->timer, post_in_interrupt, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&t->timer, ns_to_ktime(NSEC_PER_MSEC), HRTIMER_MODE_REL_HARD);
	msleep(20);
	hrtimer_cancel(&t->timer);
	KUNIT_ASSERT_EQ(test, t->err, 0);
	expect_done(test, a, send, IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, *to, 0x600d);
}

#define VOLLEYS	1000

/**
 * struct player - one side of a game that is played by completion handlers
 * @recv: a ball came
 * @send: a ball is away
 * @qp: queue pair
 * @sge: the ball
 * @left: volleys to go; the sides share it
 * @over: there are none left, or something went wrong
 * @err: what
 */
struct player {
	struct ib_cqe recv;
	struct ib_cqe send;
	struct ib_qp *qp;
	struct ib_sge sge;
	atomic_t *left;
	struct completion *over;
	int err;
};

static int player_receive(struct player *p)
{
	struct ib_recv_wr wr = {
		.wr_cqe = &p->recv, .sg_list = &p->sge, .num_sge = 1,
	};

	return ib_post_recv(p->qp, &wr, NULL);
}

static int player_send(struct player *p)
{
	struct ib_send_wr wr = {
		.wr_cqe = &p->send, .sg_list = &p->sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};

	return ib_post_send(p->qp, &wr, NULL);
}

static void player_fail(struct player *p, int err)
{
	p->err = err;
	complete(p->over);
}

static void ball_came(struct ib_cq *cq, struct ib_wc *wc)
{
	struct player *p = container_of(wc->wr_cqe, struct player, recv);
	int err;

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status != IB_WC_SUCCESS) {
		player_fail(p, -EIO);
		return;
	}
	if (atomic_dec_and_test(p->left)) {
		complete(p->over);
		return;
	}
	err = player_receive(p) ?: player_send(p);
	if (err)
		player_fail(p, err);
}

static void ball_away(struct ib_cq *cq, struct ib_wc *wc)
{
	struct player *p = container_of(wc->wr_cqe, struct player, send);

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		player_fail(p, -EIO);
}

static struct player *new_player(struct kunit *test, struct end *end,
				 atomic_t *left, struct completion *over)
{
	struct player *p = new_buffer(test, sizeof(*p));

	p->recv.done = ball_came;
	p->send.done = ball_away;
	p->qp = end->qp;
	p->sge = sge_of(test, new_buffer(test, 64), 64);
	p->left = left;
	p->over = over;
	KUNIT_ASSERT_EQ(test, player_receive(p), 0);
	return p;
}

/* Handlers post from where the core polls: a softirq, or a work item. */
static void post_from_handlers(struct kunit *test)
{
	struct completion *over = new_buffer(test, sizeof(*over));
	atomic_t *left = new_buffer(test, sizeof(*left));
	const struct polling *polling = test->param_value;
	unsigned long limit = jiffies + 20 * HZ;
	struct player *pa, *pb;
	struct end *a, *b;

	pair_polled(test, &a, &b);
	init_completion(over);
	atomic_set(left, VOLLEYS);
	pa = new_player(test, a, left, over);
	pb = new_player(test, b, left, over);
	KUNIT_ASSERT_EQ(test, player_send(pa), 0);
	while (!completion_done(over) && time_before(jiffies, limit)) {
		if (polling->ctx == IB_POLL_DIRECT) {
			ib_process_cq_direct(a->cq, -1);
			ib_process_cq_direct(b->cq, -1);
		}
		usleep_range(20, 50);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(left), 0);
	KUNIT_EXPECT_EQ(test, pa->err, 0);
	KUNIT_EXPECT_EQ(test, pb->err, 0);
}

/* Everything that was posted has completed when draining returns. */
static void drain(struct kunit *test)
{
	struct request *recv[10], *send[10];
	void *buf = new_buffer(test, 64);
	struct end *a, *b;
	int i;

	pair_polled(test, &a, &b);
	for (i = 0; i < 10; i++)
		recv[i] = post_recv(test, a, buf, 64);
	/* nobody receives: they wait for a retry when the drain comes */
	for (i = 0; i < 10; i++)
		send[i] = post_send(test, a, IB_WR_SEND, buf, 64, 0);
	ib_drain_qp(a->qp);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_TRUE(test, completion_done(&recv[i]->done));
		KUNIT_EXPECT_EQ(test, recv[i]->wc.status, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_TRUE(test, completion_done(&send[i]->done));
		KUNIT_EXPECT_NE(test, send[i]->wc.status, IB_WC_SUCCESS);
	}
}

static struct kunit_case rc_cases[] = {
	KUNIT_CASE_PARAM(send_receive, polling_gen_params),
	KUNIT_CASE_PARAM(write_and_read, polling_gen_params),
	KUNIT_CASE_PARAM(many_laps, polling_gen_params),
	KUNIT_CASE_PARAM(post_under_a_lock, polling_gen_params),
	KUNIT_CASE_PARAM(post_from_an_interrupt, polling_gen_params),
	KUNIT_CASE_PARAM(post_from_handlers, polling_gen_params),
	KUNIT_CASE_PARAM(drain, polling_gen_params),
	KUNIT_CASE(atomics),
	KUNIT_CASE(many_segments),
	KUNIT_CASE(inline_data),
	KUNIT_CASE(list_unsignaled),
	KUNIT_CASE(full_ring),
	KUNIT_CASE(refused_at_once),
	KUNIT_CASE(bad_one_in_a_list),
	{}
};

static struct kunit_suite rc_suite = {
	.name = "vrnic_verbs_rc",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = rc_cases,
};

kunit_test_suite(rc_suite);
