// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine's threads: they run what callers and softirqs leave to them, each runnable in its
 * turn. And when a thread stays with one ring.
 *
 * A process that posts faster than its doorbells are served may gain by not ringing them: a thread
 * takes over the ring and stays with it for a while, on a CPU that has nothing else to do, and the
 * process only writes to memory. The gain depends on how far apart the CPUs are, so the engine
 * measures it: the thread leaves a ring that it serves no faster than the ring's owner would.
 */

#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>
#include <linux/sizes.h>

#include "engine/budget.h"
#include "engine/crew.h"
#include "engine/engine.h"
#include "engine/run.h"

static unsigned int stay_us = 50;
module_param(stay_us, uint, 0644);
MODULE_PARM_DESC(stay_us, "microseconds that a thread stays with an idle ring that was busy; 0: never (default 50)");

#define PATIENCE_MAX	4096
#define TRIAL		256	/* descriptors that a thread's worth is judged by */

#define THREAD_BYTES	SZ_1M
#define THREAD_DESCS	256

/* Wake a thread that sleeps. If there is none, a thread that stays with a ring is to leave it. */
static void call_thread(struct vrnic_crew *crew)
{
	struct vrnic_thread *thread;

	thread = list_first_entry_or_null(&crew->idle, struct vrnic_thread, idle);
	if (!thread) {
		WRITE_ONCE(crew->wanted, true);
		return;
	}
	list_del_init(&thread->idle);
	wake_up_process(thread->task);
}

/* Put @r into the queue, with its run bit held, unless @r is being parked. */
static bool thread_enqueue_unparked(struct vrnic_runnable *r, bool call)
{
	struct vrnic_crew *crew = r->crew;
	unsigned long flags;
	bool parked;

	spin_lock_irqsave(&crew->lock, flags);
	/* vrnic_thread_withdraw() takes this lock after the bit was set, and looks in the queue */
	parked = test_bit(VRNIC_RUN_PARKED, &r->state);
	if (!parked) {
		list_add_tail(&r->link, &crew->queue);
		if (call)
			call_thread(crew);
	}
	spin_unlock_irqrestore(&crew->lock, flags);
	return !parked;
}

/*
 * Pass the run bit of @r on: to the queue, or to the caller of vrnic_park(). The parking may be
 * over before the run bit is given back; then a thread still has to do the work. When this returns,
 * another runner may have run @r, and @r and its crew may be gone.
 */
static void thread_enqueue(struct vrnic_runnable *r, bool call)
{
	WRITE_ONCE(r->brief, false);
	while (!thread_enqueue_unparked(r, call) && vrnic_release_parked(r))
		;
}

/**
 * vrnic_thread_add() - have a thread go on with a runnable
 * @r: the runnable; its run bit is held, and passes to the thread
 */
void vrnic_thread_add(struct vrnic_runnable *r)
{
	thread_enqueue(r, true);
}

/**
 * vrnic_thread_withdraw() - take a runnable out of the queue, with its run bit held
 * @r: the runnable; it is being parked, so nobody puts it into the queue again
 *
 * Return: false if the queue does not have @r.
 */
bool vrnic_thread_withdraw(struct vrnic_runnable *r)
{
	unsigned long flags;
	bool queued;

	spin_lock_irqsave(&r->crew->lock, flags);
	queued = !list_empty(&r->link);
	list_del_init(&r->link);
	spin_unlock_irqrestore(&r->crew->lock, flags);
	return queued;
}

/*
 * The runnable that @thread runs next. If there is none, @thread counts as idle and will be woken.
 */
static struct vrnic_runnable *thread_dequeue(struct vrnic_thread *thread)
{
	struct vrnic_crew *crew = thread->crew;
	struct vrnic_runnable *r;
	unsigned long flags;

	spin_lock_irqsave(&crew->lock, flags);
	r = list_first_entry_or_null(&crew->queue, struct vrnic_runnable, link);
	list_del_init(&thread->idle);
	if (r)
		list_del_init(&r->link);
	else
		list_add(&thread->idle, &crew->idle);
	WRITE_ONCE(crew->wanted, !list_empty(&crew->queue) && list_empty(&crew->idle));
	spin_unlock_irqrestore(&crew->lock, flags);
	return r;
}

/*
 * True if a runnable waits and no thread comes for it. Only one of the threads that ask gets true.
 */
static bool is_wanted(struct vrnic_crew *crew)
{
	unsigned long flags;
	bool wanted;

	if (!READ_ONCE(crew->wanted))
		return false;
	spin_lock_irqsave(&crew->lock, flags);
	wanted = crew->wanted;
	crew->wanted = false;
	spin_unlock_irqrestore(&crew->lock, flags);
	return wanted;
}

/* No other task wants this CPU, no runnable wants this thread, and @r may be run. */
static bool may_stay(struct vrnic_runnable *r)
{
	return !test_bit(VRNIC_RUN_PARKED, &r->state) && !need_resched() &&
	       single_task_running() && !kthread_should_stop() && !is_wanted(r->crew);
}

/**
 * vrnic_thread_stays() - may a thread stay with a ring?
 * @r: the ring; its owner posts faster than the ring is served
 */
bool vrnic_thread_stays(const struct vrnic_runnable *r)
{
	return r->ops->stay && READ_ONCE(stay_us);
}

/**
 * struct trial - measures whether it pays that a thread stays with a ring
 * @since: when the present trial began, in cycles
 * @descs: descriptors served in the present trial
 * @total: descriptors served since the thread came
 * @pays: result of the last trial; true before the first
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
 * Stay with @r until @r was idle for a while, or until its owner would serve it faster. If staying
 * was worth little, the next stay takes a longer streak.
 */
static void thread_stay(struct vrnic_runnable *r)
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

/*
 * Give a queued runnable its turn. A runnable that is not finished goes to the tail of the queue.
 * No thread is woken for it: this thread comes back to the queue.
 */
static void take_turn(struct vrnic_runnable *r)
{
	struct vrnic_budget budget = {
		.bytes = THREAD_BYTES,
		.descs = THREAD_DESCS,
	};

	if (test_and_clear_bit(VRNIC_RUN_STAY, &r->state))
		thread_stay(r);
	if (vrnic_give_back(r, vrnic_run(r, &budget) == VRNIC_MORE))
		thread_enqueue(r, false);
}

/**
 * vrnic_crew_turns() - what a thread does until it is stopped
 * @thread: the thread
 */
void vrnic_crew_turns(struct vrnic_thread *thread)
{
	struct vrnic_runnable *r;

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		r = thread_dequeue(thread);
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
}
