// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues that a kernel consumer polls and arms itself. */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>

#include "consumer.h"

#define CQES	4	/* the smallest queue that these tests need */

/**
 * struct scene - a sender whose completions go to a raw queue
 * @a: sender
 * @b: receiver; it polls for itself
 * @cq: the sender's send queue
 * @wakeups: calls of its completion handler
 * @cq_events: bits 1 << IB_EVENT_*
 */
struct scene {
	struct end *a;
	struct end *b;
	struct ib_cq *cq;
	atomic_t wakeups;
	unsigned long cq_events;
};

static void wake_up_scene(struct ib_cq *cq, void *context)
{
	struct scene *s = context;

	atomic_inc(&s->wakeups);
}

static void note_cq_event(struct ib_event *event, void *context)
{
	struct scene *s = context;

	set_bit(event->event, &s->cq_events);
}

static void destroy_cq(void *cq)
{
	ib_destroy_cq(cq);
}

static struct ib_cq *new_raw_cq(struct kunit *test, struct scene *s)
{
	struct ib_cq_init_attr attr = { .cqe = CQES };
	struct consumer *c = test->priv;
	struct ib_cq *cq = ib_create_cq(c->dev, wake_up_scene, note_cq_event, s,
					&attr);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy_cq, cq), 0);
	return cq;
}

static struct scene *new_scene(struct kunit *test)
{
	struct scene *s = new_buffer(test, sizeof(*s));
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR, .qp_type = IB_QPT_RC,
	};

	s->cq = new_raw_cq(test, s);
	init.send_cq = s->cq;
	init.recv_cq = consumer_cq(test, CONSUMER_DEPTH);
	s->a = consumer_end(test, &init);
	/* the core cannot drain what it does not poll */
	list_del_init(&s->a->link);
	s->b = new_end(test, IB_QPT_RC);
	connect_ends(test, s->a, s->b);
	return s;
}

/* Have @n messages sent and received. */
static void send_some(struct kunit *test, struct scene *s, u64 first, int n,
		      bool solicited)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct request *recv;
	int i;

	if (solicited)
		wr.send_flags = IB_SEND_SOLICITED;
	for (i = 0; i < n; i++) {
		recv = post_recv(test, s->b, new_buffer(test, 8), 8);
		wr.wr_id = first + i;
		post(test, s->a, &wr);
		expect_done(test, s->b, recv, IB_WC_RECV);
	}
}

/* The receiver sees its message before the sender sees its completion. */
static int poll_one(struct scene *s, struct ib_wc *wc)
{
	unsigned long limit = jiffies + 10 * HZ;
	int n;

	while (!(n = ib_poll_cq(s->cq, 1, wc)) && time_before(jiffies, limit))
		usleep_range(20, 50);
	return n;
}

static bool woken(struct scene *s, int times)
{
	unsigned long limit = jiffies + 10 * HZ;

	while (atomic_read(&s->wakeups) != times && time_before(jiffies, limit))
		usleep_range(20, 50);
	return atomic_read(&s->wakeups) == times;
}

static void expect_next(struct kunit *test, struct scene *s, u64 wr_id)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, poll_one(s, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, wr_id);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, s->a->qp);
}

/* The last entry is usable, and the ring is sound lap after lap. */
static void poll_in_order(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct ib_wc wc;
	int lap, i;

	for (lap = 0; lap < 10; lap++) {
		send_some(test, s, lap * s->cq->cqe, s->cq->cqe, false);
		for (i = 0; i < s->cq->cqe; i++)
			expect_next(test, s, lap * s->cq->cqe + i);
		KUNIT_EXPECT_EQ(test, ib_poll_cq(s->cq, 1, &wc), 0);
	}
	KUNIT_EXPECT_EQ(test, s->cq_events, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 0);
}

static void armed_once(struct kunit *test)
{
	struct scene *s = new_scene(test);

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 0);
	send_some(test, s, 0, 3, false);
	expect_next(test, s, 0);
	expect_next(test, s, 1);
	expect_next(test, s, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 1);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	send_some(test, s, 3, 1, false);
	expect_next(test, s, 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 2);
}

/* What came in between the last poll and arming is not slept over. */
static void missed_events(struct kunit *test)
{
	struct scene *s = new_scene(test);
	const int flags = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, flags), 0);
	send_some(test, s, 0, 1, false);
	KUNIT_EXPECT_TRUE(test, woken(s, 1));
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(s->cq, flags), 0);
	expect_next(test, s, 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, flags), 0);
}

/* A send completion is never solicited; a failed one always wakes. */
static void solicited_only(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .wr_id = 1 };
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_SOLICITED), 0);
	send_some(test, s, 0, 1, true);
	expect_next(test, s, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 0);
	/* there is no receive */
	post(test, s->a, &wr);
	KUNIT_ASSERT_EQ(test, poll_one(s, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, woken(s, 1));
}

/* Nothing is lost silently: the queue says so, and so does the queue pair. */
static void overflow(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct ib_wc wc;
	int i;

	send_some(test, s, 0, s->cq->cqe + 1, false);
	KUNIT_EXPECT_TRUE(test, end_saw(s->a, IB_EVENT_QP_FATAL));
	KUNIT_EXPECT_TRUE(test, test_bit(IB_EVENT_CQ_ERR, &s->cq_events));
	/* what was in it is sound */
	for (i = 0; i < s->cq->cqe; i++)
		expect_next(test, s, i);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(s->cq, 1, &wc), 0);
}

static void poll_several(struct kunit *test)
{
	struct scene *s = new_scene(test);
	unsigned long limit = jiffies + 10 * HZ;
	struct ib_wc wc[CQES + 2];
	int i, n;

	send_some(test, s, 10, CQES, false);
	expect_next(test, s, 10);
	/* the last may still be on its way when its message is there */
	msleep(20);
	n = ib_poll_cq(s->cq, CQES + 2, wc);
	KUNIT_EXPECT_GE(test, n, CQES - 2);
	while (n < CQES - 1 && time_before(jiffies, limit)) {
		usleep_range(20, 50);
		n += ib_poll_cq(s->cq, CQES + 2 - n, wc + n);
	}
	KUNIT_ASSERT_EQ(test, n, CQES - 1);
	for (i = 0; i < CQES - 1; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, 11 + i);
}

/**
 * struct poller - stands for a CPU that is at the end of a poll in a softirq
 * @begun: softirqs are held off
 * @ended: they will be let in again
 * @gone: the thread does not use this any more
 */
struct poller {
	struct completion begun;
	bool ended;
	struct completion gone;
};

static int poll_for_long(void *arg)
{
	struct poller *p = arg;

	local_bh_disable();
	complete(&p->begun);
	mdelay(20);
	WRITE_ONCE(p->ended, true);
	local_bh_enable();
	complete(&p->gone);
	return 0;
}

/*
 * The core frees a queue although the poll that it took for ended may still arm it, so the queue
 * stays until no CPU is in a softirq that began before. One CPU alone cannot fail here.
 */
static void softirq_poll_ends_first(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct poller *p = new_buffer(test, sizeof(*p));
	struct ib_cq *cq = ib_alloc_cq(c->dev, NULL, CQES, 0, IB_POLL_SOFTIRQ);
	struct task_struct *task;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	init_completion(&p->begun);
	init_completion(&p->gone);
	task = kthread_run(poll_for_long, p, "poller");
	if (!IS_ERR(task))
		wait_for_completion(&p->begun);
	ib_free_cq(cq);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_EXPECT_TRUE(test, READ_ONCE(p->ended));
	wait_for_completion(&p->gone);
}

/* A consumer need not wait for the end of its receives: it learns of none once the QP is gone. */
static void nothing_of_a_destroyed_queue_pair(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct consumer *c = test->priv;
	struct ib_qp_init_attr init = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };
	struct ib_recv_wr wr = {};
	struct end end = {};
	struct ib_wc wc;

	end.qp = ib_create_qp(c->pd, &init);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, end.qp);
	end_to_init(test, &end);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, ib_post_recv(end.qp, &wr, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_modify_qp(end.qp, &err, IB_QP_STATE), 0);
	KUNIT_EXPECT_TRUE(test, woken(s, 1));
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(end.qp), 0);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(s->cq, 1, &wc), 0);
}

static void event_waits_for_completions(struct kunit *test)
{
	struct scene *s = new_scene(test);

	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(s->cq, 3, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	send_some(test, s, 0, 2, false);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 0);
	send_some(test, s, 2, 1, false);
	KUNIT_EXPECT_TRUE(test, woken(s, 1));
	/* what was polled does not count */
	expect_next(test, s, 0);
	expect_next(test, s, 1);
	expect_next(test, s, 2);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	send_some(test, s, 3, 2, false);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->wakeups), 1);
	/* without moderation, it does not wait any more */
	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(s->cq, 0, 0), 0);
	KUNIT_EXPECT_TRUE(test, woken(s, 2));
}

static void event_waits_for_time(struct kunit *test)
{
	struct scene *s = new_scene(test);

	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(s->cq, 100, 1000), 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(s->cq, IB_CQ_NEXT_COMP), 0);
	send_some(test, s, 0, 1, false);
	KUNIT_EXPECT_TRUE(test, woken(s, 1));
}

static void ignore(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* A queue whose event is due, of which the core has cancelled the work. */
static void freed_while_an_event_is_due(struct kunit *test, enum ib_poll_context ctx, u16 us)
{
	struct consumer *c = test->priv;
	struct ib_cq *cq = ib_alloc_cq(c->dev, NULL, 16, 0, ctx);
	struct ib_cqe cqe = { .done = ignore };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED, .wr_cqe = &cqe,
	};
	struct ib_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct end *b = new_end(test, IB_QPT_RC), end = {};
	struct request *recv;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(cq, 10, us), 0);
	end.qp = ib_create_qp(c->pd, &init);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, end.qp);
	connect_ends(test, &end, b);
	recv = post_recv(test, b, new_buffer(test, 8), 8);
	post(test, &end, &wr);
	expect_done(test, b, recv, IB_WC_RECV);
	if (us == U16_MAX)	/* the sender has its completion after that of the receiver */
		usleep_range(5000, 6000);
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(end.qp), 0);
	ib_free_cq(cq);
}

static void freed_while_events_are_due(struct kunit *test)
{
	u32 us;

	for (us = 1; us <= U16_MAX; us = us < 1000 ? us + 50 : us + U16_MAX - 1001) {
		freed_while_an_event_is_due(test, IB_POLL_WORKQUEUE, us);
		freed_while_an_event_is_due(test, IB_POLL_UNBOUND_WORKQUEUE, us);
		freed_while_an_event_is_due(test, IB_POLL_SOFTIRQ, us);
	}
}

/* The core changes the moderation by itself, if an administrator says so. */
static void adaptive_moderation(struct kunit *test)
{
	struct consumer *c = test->priv;
	bool before = c->dev->use_cq_dim;
	void *buf = new_buffer(test, 8);
	struct request *recv, *send;
	struct end *a, *b;
	int i;

	c->dev->use_cq_dim = true;
	c->ctx = IB_POLL_WORKQUEUE;
	new_pair(test, &a, &b);
	c->dev->use_cq_dim = before;
	KUNIT_ASSERT_NOT_NULL(test, a->qp->send_cq->dim);
	for (i = 0; i < 1000; i++) {
		recv = post_recv(test, b, buf, 8);
		send = post_send(test, a, IB_WR_SEND, NULL, 0, 0);
		expect_done(test, a, send, IB_WC_SEND);
		expect_done(test, b, recv, IB_WC_RECV);
	}
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(poll_in_order),
	KUNIT_CASE(poll_several),
	KUNIT_CASE(armed_once),
	KUNIT_CASE(missed_events),
	KUNIT_CASE(solicited_only),
	KUNIT_CASE(overflow),
	KUNIT_CASE(event_waits_for_completions),
	KUNIT_CASE(event_waits_for_time),
	KUNIT_CASE(freed_while_events_are_due),
	KUNIT_CASE(adaptive_moderation),
	KUNIT_CASE(softirq_poll_ends_first),
	KUNIT_CASE(nothing_of_a_destroyed_queue_pair),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "vrnic_verbs_cq",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
