// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine's threads. They run what system calls and softirqs leave to them, each runnable in its
 * turn. And they stay with a ring for a while if that is faster.
 *
 * A process that posts faster than its doorbells are served may gain by not ringing them: a thread
 * takes over the ring and stays with it, on a CPU that has nothing else to do, and the process only
 * writes to memory. Whether this is faster depends on how far apart the two CPUs are, so the engine
 * measures it: the thread leaves a ring that it serves no faster than the process itself did.
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
#define TRIAL		256	/* descriptors after which a thread looks whether staying pays */

#define THREAD_BYTES	SZ_1M
#define THREAD_DESCS	256

/* Wake a thread that sleeps. If there is none, ask a thread that stays with a ring to leave it. */
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

/* Put @r, whose run bit the caller has, into the queue. Return: false if @r is being parked. */
static bool thread_enqueue_unparked(struct vrnic_runnable *r, bool call)
{
	struct vrnic_crew *crew = r->crew;
	unsigned long flags;
	bool parked;

	spin_lock_irqsave(&crew->lock, flags);
	/* vrnic_park() sets the bit and then takes this lock to look in the queue: it finds @r */
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
 * Pass the run bit of @r on: to the queue, or to vrnic_park(). @r may be unparked before the run
 * bit is given back; then try again, as a thread still has to do the work. When this returns,
 * another runner may have run @r, and @r and its crew may be gone.
 */
static void thread_enqueue(struct vrnic_runnable *r, bool call)
{
	WRITE_ONCE(r->brief, false);
	while (!thread_enqueue_unparked(r, call) && vrnic_release_parked(r))
		;
}

/**
 * vrnic_thread_add() - have a thread run a runnable
 * @r: the runnable; the caller hands its run bit over to the thread
 */
void vrnic_thread_add(struct vrnic_runnable *r)
{
	thread_enqueue(r, true);
}

/**
 * vrnic_thread_withdraw() - take a runnable out of the queue
 * @r: the runnable; it is being parked, so nobody puts it into the queue again
 *
 * Return: true if the caller has the run bit of @r now; false if @r was not in the queue.
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
 * Take the runnable that @thread runs next out of the queue. If there is none, list @thread as
 * idle, so that call_thread() wakes it.
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
 * Does a runnable wait for which no thread was idle? Only one of the threads that ask gets true.
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

/* May this thread stay with @r? Not if another task wants its CPU, or a runnable wants a thread. */
static bool may_stay(struct vrnic_runnable *r)
{
	return !test_bit(VRNIC_RUN_PARKED, &r->state) && !need_resched() &&
	       single_task_running() && !kthread_should_stop() && !is_wanted(r->crew);
}

/**
 * vrnic_thread_stays() - may threads stay with a ring?
 * @r: runnable of the ring
 *
 * Return: false if the ring cannot be polled, or the administrator does not want it (stay_us).
 */
bool vrnic_thread_stays(const struct vrnic_runnable *r)
{
	return r->ops->spare && READ_ONCE(stay_us);
}

/**
 * struct trial - measures whether it pays that a thread stays with a ring
 * @since: when the present trial began, in cycles
 * @descs: descriptors served in the present trial
 * @total: descriptors served since the thread came
 * @pays: in the last trial, the thread was faster than the process alone; true before the first
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
 * Stay with @r until @r was idle for a while, until its owner alone would be faster, or until the
 * thread or its CPU is needed elsewhere. If staying was worth little, the next stay takes a streak
 * of twice as many doorbells.
 */
static void thread_stay(struct vrnic_runnable *r)
{
	struct trial trial = { .since = get_cycles(), .pays = true };
	u64 limit = READ_ONCE(stay_us) * NSEC_PER_USEC;
	u64 busy = local_clock();
	struct vrnic_budget budget;

	r->polled = true;
	r->spared = false;
	r->ops->spare(r);
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
	r->polled = false;
	r->ops->ask(r);
	if (trial.pays && trial.total > 4 * r->patience)
		r->patience = VRNIC_PATIENCE_MIN;
	else
		r->patience = min(2 * r->patience, PATIENCE_MAX);
}

/*
 * Give @r its turn. If there is more to do, @r goes to the tail of the queue. No thread is woken
 * for it, because this thread looks into the queue next.
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
 * vrnic_crew_turns() - give runnables their turns until the thread is stopped
 * @thread: the calling thread
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
