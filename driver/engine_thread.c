// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine's threads: what callers and softirqs leave to them, in turn; and
 * whether one stays with a ring.
 *
 * A process that posts faster than its doorbells are served may gain by not
 * ringing them: a thread takes over and stays with the ring for a while, on a
 * CPU that has nothing else to do, and the process posts into memory only. What
 * that is worth depends on how far apart the CPUs are, so it is measured: the
 * thread leaves a ring that it does not serve faster than its owner would.
 */

#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>
#include <linux/sched/stat.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "engine_run.h"

static unsigned int engine_threads = 4;
module_param(engine_threads, uint, 0444);
MODULE_PARM_DESC(engine_threads, "most engine threads of a device; never more than CPUs (default 4)");

static unsigned int stay_us = 50;
module_param(stay_us, uint, 0644);
MODULE_PARM_DESC(stay_us, "microseconds that a thread stays with an idle ring that was busy; 0: never (default 50)");

#define PATIENCE_MAX	4096
#define TRIAL		256	/* descriptors that a thread's worth is judged by */

#define THREAD_BYTES	SZ_1M
#define THREAD_DESCS	256

/**
 * vrnic_thread_add() - a thread goes on
 * @r: what to run; its run bit is held, and goes with it
 */
void vrnic_thread_add(struct vrnic_runnable *r)
{
	struct vrnic_runner *runner = r->runner;
	unsigned long flags;

	WRITE_ONCE(r->brief, false);
	spin_lock_irqsave(&runner->lock, flags);
	list_add_tail(&r->link, &runner->queue);
	spin_unlock_irqrestore(&runner->lock, flags);
	wake_up_process(runner->task);
}

static struct vrnic_runnable *dequeue(struct vrnic_runner *runner)
{
	struct vrnic_runnable *r;
	unsigned long flags;

	spin_lock_irqsave(&runner->lock, flags);
	r = list_first_entry_or_null(&runner->queue, struct vrnic_runnable, link);
	if (r)
		list_del_init(&r->link);
	spin_unlock_irqrestore(&runner->lock, flags);
	return r;
}

/* Nobody else wants this CPU or this thread, and @r may be run. */
static bool may_stay(struct vrnic_runnable *r)
{
	return !test_bit(VRNIC_RUN_PARKED, &r->state) && !need_resched() &&
	       single_task_running() && list_empty_careful(&r->runner->queue) &&
	       !kthread_should_stop();
}

/**
 * vrnic_thread_stays() - may a thread stay with it?
 * @r: a ring whose owner posts faster than it is served
 */
bool vrnic_thread_stays(const struct vrnic_runnable *r)
{
	return r->ops->stay && READ_ONCE(stay_us);
}

/**
 * struct trial - is it worth it that a thread stays
 * @since: when the present trial began, in cycles
 * @descs: descriptors served in it
 * @total: descriptors served since the thread came
 * @pays: what the last trial said; true before there was one
 */
struct trial {
	cycles_t since;
	u32 descs;
	u32 total;
	bool pays;
};

static void trial_note(struct trial *t, const struct vrnic_runnable *r,
		       u32 descs)
{
	cycles_t now;

	t->descs += descs;
	t->total += descs;
	if (t->descs < TRIAL)
		return;
	now = get_cycles();
	t->pays = (u64)(now - t->since) < r->alone * t->descs;
	t->since = now;
	t->descs = 0;
}

/*
 * Stay with @r until it was idle for a while, or its owner would be faster. If
 * staying was worth little, it takes a longer streak until the next time.
 */
static void stay(struct vrnic_runnable *r)
{
	struct trial trial = { .since = get_cycles(), .pays = true };
	u64 limit = READ_ONCE(stay_us) * NSEC_PER_USEC;
	u64 busy = local_clock();
	struct vrnic_budget budget;

	r->ops->stay(r);
	while (trial.pays && may_stay(r) && local_clock() - busy < limit) {
		budget = (struct vrnic_budget){
			.bytes = THREAD_BYTES,
			.descs = THREAD_DESCS,
		};
		if (vrnic_run(r, &budget) == VRNIC_IDLE &&
		    budget.descs == THREAD_DESCS) {
			cpu_relax();
			continue;
		}
		trial_note(&trial, r, THREAD_DESCS - budget.descs);
		busy = local_clock();
	}
	r->ops->leave(r);
	if (trial.pays && trial.total > 4 * r->patience)
		r->patience = VRNIC_PATIENCE_MIN;
	else
		r->patience = min(2 * r->patience, PATIENCE_MAX);
}

/* Give a queued runnable its turn; what is not finished goes to the tail. */
static void take_turn(struct vrnic_runnable *r)
{
	struct vrnic_budget budget = {
		.bytes = THREAD_BYTES,
		.descs = THREAD_DESCS,
	};

	if (test_and_clear_bit(VRNIC_RUN_STAY, &r->state))
		stay(r);
	vrnic_leave(r, vrnic_run(r, &budget) == VRNIC_MORE);
}

/*
 * It serves consumers that memory is written out over, NVMe and NFS: what it allocates
 * for others does not wait for that.
 */
static int runner_thread(void *arg)
{
	struct vrnic_runner *runner = arg;
	unsigned int flags = memalloc_noio_save();
	struct vrnic_runnable *r;

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		r = dequeue(runner);
		if (!r) {
			if (!kthread_should_stop())
				schedule();
			__set_current_state(TASK_RUNNING);
			continue;
		}
		__set_current_state(TASK_RUNNING);
		take_turn(r);
		cond_resched();
	}
	memalloc_noio_restore(flags);
	return 0;
}

static int runner_start(struct vrnic_runner *runner, const char *name,
			unsigned int i)
{
	struct task_struct *task;

	spin_lock_init(&runner->lock);
	INIT_LIST_HEAD(&runner->queue);
	task = kthread_create(runner_thread, runner, "%s/%u", name, i);
	if (IS_ERR(task))
		return PTR_ERR(task);
	runner->task = task;
	wake_up_process(task);
	return 0;
}

/**
 * vrnic_engine_start() - start a device's threads
 * @engine: filled in
 * @name: the device's name, for the threads' names
 *
 * Return: 0 or a negative errno.
 */
int vrnic_engine_start(struct vrnic_engine *engine, const char *name)
{
	unsigned int i, nr = clamp(engine_threads, 1U, num_online_cpus());
	int err;

	engine->runners = kcalloc(nr, sizeof(*engine->runners), GFP_KERNEL);
	if (!engine->runners)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		err = runner_start(&engine->runners[i], name, i);
		if (err) {
			engine->nr = i;
			vrnic_engine_stop(engine);
			return err;
		}
	}
	engine->nr = nr;
	return 0;
}

/* Every runnable is parked for good by now. */
void vrnic_engine_stop(struct vrnic_engine *engine)
{
	unsigned int i;

	for (i = 0; i < engine->nr; i++) {
		WARN_ON(!list_empty(&engine->runners[i].queue));
		kthread_stop(engine->runners[i].task);
	}
	kfree(engine->runners);
	engine->nr = 0;
}
