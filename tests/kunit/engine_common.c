// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the suites of the engine share. */

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "engine/engine.h"
#include "engine/threads.h"
#include "engine_common.h"

static void stop_engine(void *engine)
{
	vrnic_engine_stop(engine);
}

void start_engine(struct kunit *test, struct vrnic_engine *engine,
		  unsigned int threads)
{
	KUNIT_ASSERT_EQ(test, vrnic_engine_start(engine, "vrnic-kunit", threads), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_engine, engine), 0);
}

/* Park the runnable for good. After a grace period, no caller looks at it any more. */
static void retire(void *r)
{
	vrnic_park(r);
	synchronize_rcu();
}

void add_runnable(struct kunit *test, struct vrnic_engine *engine,
		  struct vrnic_runnable *r,
		  const struct vrnic_runnable_ops *ops)
{
	vrnic_runnable_init(r, engine->own, ops);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, retire, r), 0);
}

static void stop_caller(void *task)
{
	kthread_stop_put(task);
}

/* @callers counts the thread; @fn takes it from there before it returns. */
void start_caller(struct kunit *test, int (*fn)(void *arg), void *arg,
		  atomic_t *callers)
{
	struct task_struct *task = kthread_create(fn, arg, "caller");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* it may have ended by itself before it is stopped */
	get_task_struct(task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_caller, task), 0);
	atomic_inc(callers);
	wake_up_process(task);
}

/* In bursts, between which others get the CPU and the engine comes to rest. */
void random_calls(void (*call)(void *arg, unsigned int how), void *arg,
		  unsigned int seed, int calls)
{
	int i;

	for (i = 0; i < calls; i++) {
		seed = seed * 1103515245 + 12345;
		call(arg, seed >> 16);
		if (i % 64 == 0)
			usleep_range(50, 100);
	}
}

bool eventually(const atomic_t *value, int wanted)
{
	unsigned long limit = jiffies + PATIENCE;

	while (atomic_read(value) != wanted && time_before(jiffies, limit))
		usleep_range(100, 200);
	return atomic_read(value) == wanted;
}

/*
 * Wait until nobody runs @r, and nothing is announced to it. If that does not come, the caller's
 * checks fail.
 */
void rest(const struct vrnic_runnable *r)
{
	const unsigned long busy = BIT(VRNIC_RUN_BUSY) | BIT(VRNIC_RUN_AGAIN);
	unsigned long limit = jiffies + PATIENCE;

	while (READ_ONCE(r->state) & busy && time_before(jiffies, limit))
		usleep_range(1000, 2000);
}

/* Long enough for a thread that has something to do to have done it, but on a slow machine. */
void settle(void)
{
	msleep(20);
}
