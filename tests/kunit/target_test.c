// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The lock of a queue pair as a target: while a thread has it, peers that need it
 * wait without delaying others, and strangers do not need it.
 */

#include <linux/completion.h>
#include <linux/debug_locks.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>

#include "consumer.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/target.h"

#define MSG	64

/**
 * struct holder - a thread that sleeps with a lock, as only a test may
 * @lock: a queue pair's
 * @task: the thread
 * @has: it has the lock
 */
struct holder {
	struct mutex *lock;	/* not for anything here */
	struct task_struct *task;
	struct completion has;
};

static int hold(void *arg)
{
	struct holder *h = arg;

	mutex_lock(h->lock);
	complete(&h->has);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 100);
	mutex_unlock(h->lock);
	return 0;
}

static void let_go(void *holder)
{
	kthread_stop(((struct holder *)holder)->task);
}

/* Not by this thread: it allocates memory, which lockdep would report. */
static struct holder *take(struct kunit *test, struct end *end)
{
	struct holder *h = new_buffer(test, sizeof(*h));

	h->lock = &to_vqp(end->qp)->resp_lock;
	init_completion(&h->has);
	h->task = kthread_run(hold, h, "holder");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, h->task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, let_go, h), 0);
	wait_for_completion(&h->has);
	return h;
}

static void give(struct kunit *test, struct holder *h)
{
	kunit_release_action(test, let_go, h);
}

static struct request *send(struct kunit *test, struct end *from)
{
	return post_send(test, from, IB_WR_SEND, new_buffer(test, MSG), MSG, 0);
}

/* On the same thread, if there is only one. */
static void expect_others_go_on(struct kunit *test)
{
	struct request *got;
	struct end *a, *b;

	new_pair(test, &a, &b);
	got = post_recv(test, b, new_buffer(test, MSG), MSG);
	expect_done(test, a, send(test, a), IB_WC_SEND);
	expect_done(test, b, got, IB_WC_RECV);
}

static void busy_target_holds_up_its_peer_alone(struct kunit *test)
{
	struct request *sent, *got;
	struct end *a, *b;
	struct holder *h;

	new_pair(test, &a, &b);
	got = post_recv(test, b, new_buffer(test, MSG), MSG);
	h = take(test, b);
	sent = send(test, a);
	expect_others_go_on(test);
	KUNIT_EXPECT_TRUE(test, stays_open(a, sent));
	give(test, h);
	expect_done(test, a, sent, IB_WC_SEND);
	expect_done(test, b, got, IB_WC_RECV);
}

/* It names a queue pair whose peer it is not: it need not wait to be told so. */
static void stranger_does_not_need_the_lock(struct kunit *test)
{
	struct end *a, *b, *stranger = new_end(test, IB_QPT_RC);
	struct holder *h;

	new_pair(test, &a, &b);
	end_to_init(test, stranger);
	end_to_rtr(test, stranger, b);
	end_to_rts(test, stranger);
	h = take(test, b);
	expect_status(test, stranger, send(test, stranger), IB_WC_RETRY_EXC_ERR);
	give(test, h);
}

static void flush_waits_for_its_turn(struct kunit *test)
{
	struct request *got;
	struct end *a, *b;
	struct holder *h;

	new_pair(test, &a, &b);
	got = post_recv(test, b, new_buffer(test, MSG), MSG);
	h = take(test, b);
	vrnic_qp_error(to_vqp(b->qp), -1);
	expect_others_go_on(test);
	KUNIT_EXPECT_TRUE(test, stays_open(b, got));
	give(test, h);
	expect_status(test, b, got, IB_WC_WR_FLUSH_ERR);
}

#ifdef CONFIG_PROVE_LOCKING
/* lockdep keeps in mind what it has seen: it is to see this with a lock of our own. */
static DEFINE_MUTEX(own);

static bool is_reported(void)
{
	bool reported;

	/* it says nothing, and looks no more, until it is told to go on */
	debug_locks_silent = 1;
	fs_reclaim_acquire(GFP_KERNEL);
	reported = !debug_locks;
	debug_locks = 1;
	debug_locks_silent = 0;
	if (!reported)
		fs_reclaim_release(GFP_KERNEL);
	return reported;
}

static void allocation_with_it_is_reported(struct kunit *test)
{
	struct end *end, *peer;

	new_pair(test, &end, &peer);
	if (!debug_locks)
		kunit_skip(test, "lockdep has given up");
	mutex_lock(&own);
	vrnic_target_lock(to_vqp(end->qp));
	KUNIT_EXPECT_TRUE(test, is_reported());
	vrnic_target_unlock(to_vqp(end->qp));
	mutex_unlock(&own);
}
#else
static void allocation_with_it_is_reported(struct kunit *test)
{
	kunit_skip(test, "there is no lockdep");
}
#endif

static struct kunit_case target_cases[] = {
	KUNIT_CASE(busy_target_holds_up_its_peer_alone),
	KUNIT_CASE(stranger_does_not_need_the_lock),
	KUNIT_CASE(flush_waits_for_its_turn),
	KUNIT_CASE(allocation_with_it_is_reported),
	{}
};

static struct kunit_suite target_suite = {
	.name = "vrnic_target",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = target_cases,
};

kunit_test_suite(target_suite);
