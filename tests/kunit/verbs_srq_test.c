// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A shared receive queue of a kernel consumer: its size changes while it is used. */

#include <linux/kthread.h>

#include "consumer.h"

#define BYTES	8	/* of a message */
#define MANY	48	/* messages; a queue pair has room for as many */

/**
 * struct srq_scene - a sender, and a receiver with an SRQ
 * @srq: of the receiver
 * @from: sender
 * @to: receiver
 * @buf: where messages go
 * @recv: receives that were posted
 */
struct srq_scene {
	struct ib_srq *srq;
	struct end *from;
	struct end *to;
	void *buf;
	struct request *recv[MANY];
};

static void destroy_srq(void *srq)
{
	ib_destroy_srq(srq);
}

static struct ib_srq *new_srq(struct kunit *test, u32 max_wr)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = 1 } };
	struct consumer *c = test->priv;
	struct ib_srq *srq = ib_create_srq(c->pd, &init);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, srq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy_srq, srq), 0);
	return srq;
}

static struct srq_scene *new_srq_scene(struct kunit *test, u32 max_wr)
{
	struct srq_scene *s = new_buffer(test, sizeof(*s));
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = CONSUMER_DEPTH, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC,
	};

	s->buf = new_buffer(test, BYTES);
	s->srq = new_srq(test, max_wr);
	s->from = new_end(test, IB_QPT_RC);
	init.send_cq = consumer_cq(test, 4 * CONSUMER_DEPTH);
	init.recv_cq = init.send_cq;
	init.srq = s->srq;
	s->to = consumer_end(test, &init);
	/* the core drains no receives of an SRQ */
	list_del_init(&s->to->link);
	connect_ends(test, s->from, s->to);
	return s;
}

static int resize_srq(struct srq_scene *s, u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR);
}

static u32 srq_size(struct kunit *test, struct srq_scene *s)
{
	struct ib_srq_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_srq(s->srq, &attr), 0);
	return attr.max_wr;
}

static int post_to_srq(struct kunit *test, struct srq_scene *s, int i)
{
	struct ib_sge sge = sge_of(test, s->buf, BYTES);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	s->recv[i] = new_request(test);
	wr.wr_cqe = &s->recv[i]->cqe;
	return ib_post_srq_recv(s->srq, &wr, NULL);
}

static void post_srq_range(struct kunit *test, struct srq_scene *s, int first, int end)
{
	for (; first < end; first++)
		KUNIT_ASSERT_EQ(test, post_to_srq(test, s, first), 0);
}

/* The next message takes receive @first, and so on. */
static void take_srq_range(struct kunit *test, struct srq_scene *s, int first, int end)
{
	struct request *send;

	for (; first < end; first++) {
		send = post_send(test, s->from, IB_WR_SEND, s->buf, BYTES, 0);
		expect_done(test, s->to, s->recv[first], IB_WC_RECV);
		expect_done(test, s->from, send, IB_WC_SEND);
	}
}

static void srq_grows(struct kunit *test)
{
	struct srq_scene *s = new_srq_scene(test, 8);

	post_srq_range(test, s, 0, 8);
	KUNIT_EXPECT_EQ(test, post_to_srq(test, s, 8), -ENOMEM);
	KUNIT_ASSERT_EQ(test, resize_srq(s, MANY), 0);
	KUNIT_EXPECT_GE(test, srq_size(test, s), MANY);
	post_srq_range(test, s, 8, MANY);
	take_srq_range(test, s, 0, MANY);
}

static void srq_shrinks(struct kunit *test)
{
	struct srq_scene *s = new_srq_scene(test, 32);

	post_srq_range(test, s, 0, 20);
	take_srq_range(test, s, 0, 11);
	KUNIT_EXPECT_EQ(test, resize_srq(s, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, srq_size(test, s), 32);
	take_srq_range(test, s, 11, 12);
	KUNIT_ASSERT_EQ(test, resize_srq(s, 8), 0);
	KUNIT_EXPECT_EQ(test, post_to_srq(test, s, 20), -ENOMEM);
	take_srq_range(test, s, 12, 20);
	post_srq_range(test, s, 20, 25);
	take_srq_range(test, s, 20, 25);
}

/* What precedes a receive that is refused is there, and the rest is not. */
static void srq_bad_one_in_a_list(struct kunit *test)
{
	struct srq_scene *s = new_srq_scene(test, 8);
	struct ib_sge sge[2] = { sge_of(test, s->buf, BYTES) };
	struct ib_recv_wr wr[3] = {};
	const struct ib_recv_wr *bad = NULL;
	int i;

	for (i = 0; i < 3; i++) {
		s->recv[i] = new_request(test);
		wr[i].wr_cqe = &s->recv[i]->cqe;
		wr[i].sg_list = sge;
		wr[i].num_sge = 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].num_sge = 2;
	KUNIT_EXPECT_EQ(test, ib_post_srq_recv(s->srq, wr, &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr[1]);
	KUNIT_ASSERT_EQ(test, post_to_srq(test, s, 3), 0);
	take_srq_range(test, s, 0, 1);
	take_srq_range(test, s, 3, 4);
}

static void srq_bad_sizes(struct kunit *test)
{
	struct srq_scene *s = new_srq_scene(test, 32);
	struct consumer *c = test->priv;
	struct ib_srq_attr attr = { .max_wr = 8, .srq_limit = 9 };

	KUNIT_EXPECT_EQ(test, resize_srq(s, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, resize_srq(s, c->dev->attrs.max_srq_wr + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, srq_size(test, s), 32);
}

/**
 * struct srq_resizer - resizes while others post
 * @s: what it resizes
 * @stop: the test is over
 * @gone: the thread does not use this any more
 * @failed: a resize failed for another reason than what is inside
 */
struct srq_resizer {
	struct srq_scene *s;
	bool stop;
	struct completion gone;
	bool failed;
};

static int resize_srq_on(void *arg)
{
	struct srq_resizer *r = arg;
	int err, i;

	for (i = 0; !READ_ONCE(r->stop); i++) {
		err = resize_srq(r->s, 8 << i % 5);
		if (err && err != -EINVAL)
			r->failed = true;
		cond_resched();
	}
	complete(&r->gone);
	return 0;
}

/* A consumer may post while it resizes: what is posted meanwhile is moved, too. */
static void srq_posts_beside_resize(struct kunit *test)
{
	struct srq_scene *s = new_srq_scene(test, 128);
	struct srq_resizer *r = new_buffer(test, sizeof(*r));
	struct task_struct *task;
	int round, n;

	r->s = s;
	init_completion(&r->gone);
	task = kthread_run(resize_srq_on, r, "resizer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (round = 0; round < 40; round++) {
		for (n = 0; n < MANY && !post_to_srq(test, s, n); n++)
			cond_resched();
		take_srq_range(test, s, 0, n);
	}
	WRITE_ONCE(r->stop, true);
	wait_for_completion(&r->gone);
	KUNIT_EXPECT_FALSE(test, r->failed);
}

static struct kunit_case srq_cases[] = {
	KUNIT_CASE(srq_grows),
	KUNIT_CASE(srq_shrinks),
	KUNIT_CASE(srq_bad_one_in_a_list),
	KUNIT_CASE(srq_bad_sizes),
	KUNIT_CASE(srq_posts_beside_resize),
	{}
};

static struct kunit_suite srq_suite = {
	.name = "vrnic_verbs_srq",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = srq_cases,
};

kunit_test_suite(srq_suite);
