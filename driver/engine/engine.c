// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine decides who runs a ring, when, and for how long.
 *
 * Any caller may run a ring. A doorbell runs the ring in the caller's own context, within a budget,
 * so there is no context switch between the descriptor and its execution. Threads (engine/thread.c)
 * run what is left then, what kernel consumers post, as these may be in atomic context, and what
 * waited for a timer.
 *
 * A ring has one runner at a time: the runner sets VRNIC_RUN_BUSY, which stays set while the ring
 * is in a thread's queue. Other callers set VRNIC_RUN_AGAIN. The runner looks at VRNIC_RUN_AGAIN
 * after it gave VRNIC_RUN_BUSY back, so work is never left behind, and never done twice.
 *
 * Softirqs run what comes from the network. Take two processes of this machine that talk to each
 * other. The doorbell of the first one sends a packet. The softirq that receives this packet runs
 * the ring of the second process, but still on the CPU of the first. If the second process rings
 * meanwhile on its own CPU, it waits for the softirq, which will soon be done, and then runs its
 * ring itself. So each process does its own work on its own CPU. As a rule, a doorbell gives the
 * run bit back before softirqs run again, and a softirq before it handles the next packet, because
 * that packet may be for the same ring.
 */

#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sizes.h>

#include "compat/compat.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "engine/run.h"

static unsigned int caller_bytes = SZ_1M;
module_param(caller_bytes, uint, 0644);
MODULE_PARM_DESC(caller_bytes, "bytes that a doorbell may move in its caller's context (default 1 MiB)");

#define CALLER_DESCS	64
#define CALLER_TURNS	64
#define POKE_BYTES	SZ_256K
#define POKE_RUNS	4

/*
 * The network's softirq takes at least 64 packets in a round, and by default no more than 1,000
 * wait: after so many rounds, what was sent has left, whatever comes in later.
 */
#define ROUNDS		32

/* Most that a timer may be late. */
#define SLACK_NS	(50 * NSEC_PER_USEC)

/* Longest that a caller waits for a runner that will soon be done. */
#define WAIT_NS		(20 * NSEC_PER_USEC)

/*
 * Give the run bit back, then look for work that came in while the bit was held, and for which no
 * other caller waits. Return: true if the caller has the run bit again.
 *
 * The clear is a release: what this runner did happens before what the next one does. The full
 * barrier pairs with the one in test_and_set_bit() of run_claim(): either this side sees AGAIN, or
 * the other side sees BUSY clear.
 */
static bool release_or_again(struct vrnic_runnable *r)
{
	bool brief = r->brief, again;

	/*
	 * The caller of vrnic_park() may free @r as soon as the bit is clear, but only after a
	 * grace period. So @r can be used until the unlock.
	 */
	rcu_read_lock();
	clear_bit_unlock(VRNIC_RUN_BUSY, &r->state);
	/* pairs with run_claim(), claim_soon() and vrnic_park() */
	smp_mb__after_atomic();
	if (test_bit(VRNIC_RUN_PARKED, &r->state)) {
		wake_up_all(&r->parked);
		again = false;
	} else {
		again = test_bit(VRNIC_RUN_AGAIN, &r->state) &&
			!(brief && test_bit(VRNIC_RUN_WAITED, &r->state)) &&
			!test_and_set_bit(VRNIC_RUN_BUSY, &r->state);
	}
	rcu_read_unlock();
	return again;
}

/*
 * Give the run bit back to vrnic_park(), which waits for it. Return: true if the parking has ended
 * meanwhile and there is work; then the caller has the run bit again.
 */
bool vrnic_release_parked(struct vrnic_runnable *r)
{
	return release_or_again(r);
}

/**
 * vrnic_take() - take the run bit if nobody has it
 * @r: what to run, or what to give back unchanged with vrnic_leave()
 * @brief: the caller will soon be done
 *
 * Return: true if the caller has the run bit.
 */
bool vrnic_take(struct vrnic_runnable *r, bool brief)
{
	if (test_bit(VRNIC_RUN_PARKED, &r->state) ||
	    test_and_set_bit(VRNIC_RUN_BUSY, &r->state))
		return false;
	WRITE_ONCE(r->brief, brief);
	r->in_order = false;
	return true;
}

/* Announce work; true if the caller is to do it, and has the run bit. */
static bool run_claim(struct vrnic_runnable *r, bool brief)
{
	set_bit(VRNIC_RUN_AGAIN, &r->state);
	smp_mb__after_atomic(); /* pairs with release_or_again() */
	return vrnic_take(r, brief);
}

/* Announce work of the ring's owner; true if the caller is to do it, and has the run bit. */
static bool claim_rung(struct vrnic_runnable *r)
{
	/* before AGAIN: a run that has seen AGAIN sees RUNG, too */
	set_bit(VRNIC_RUN_RUNG, &r->state);
	return run_claim(r, false);
}

/*
 * As run_claim(), for a caller that will soon be done. If another brief runner has @r, wait for it
 * first. Softirqs are held off, so that the waiting caller is not interrupted.
 */
static bool claim_soon(struct vrnic_runnable *r)
{
	bool mine;
	u64 since;

	/*
	 * before AGAIN: release_or_again() that sees AGAIN sees WAITED, and leaves the work to us
	 */
	set_bit(VRNIC_RUN_WAITED, &r->state);
	mine = run_claim(r, true);
	if (!mine && READ_ONCE(r->brief)) {
		since = local_clock();
		while (test_bit(VRNIC_RUN_BUSY, &r->state) && READ_ONCE(r->brief) &&
		       local_clock() - since < WAIT_NS)
			cpu_relax();
	}
	clear_bit(VRNIC_RUN_WAITED, &r->state);
	if (mine)
		return true;
	/* pairs with release_or_again(): it sees that nobody waits, or we see BUSY clear */
	smp_mb__after_atomic();
	return run_claim(r, true);
}

/**
 * vrnic_run() - one run, with the run bit held
 * @r: what to run
 * @budget: what it may use up
 *
 * Return: what the run found.
 */
enum vrnic_verdict vrnic_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	enum vrnic_verdict verdict;

	if (test_bit(VRNIC_RUN_PARKED, &r->state))
		return VRNIC_IDLE;
	clear_bit(VRNIC_RUN_AGAIN, &r->state);
	/* what was posted before AGAIN was set is visible to this run */
	smp_mb__after_atomic();
	budget->rung = test_and_clear_bit(VRNIC_RUN_RUNG, &r->state) ||
		       test_bit(VRNIC_RUN_GATHER, &r->state) || !budget->atomic;
	verdict = r->ops->run(r, budget);
	/* release_or_again() finds AGAIN and does what is left, unless a caller waits to do it */
	if (budget->left)
		set_bit(VRNIC_RUN_AGAIN, &r->state);
	return verdict;
}

/* A caller in a streak served @descs descriptors until @now: update the average of their cost. */
static void note_alone(struct vrnic_runnable *r, cycles_t now, u32 descs)
{
	u64 each = (u64)(now - r->left) / descs;

	r->alone = r->alone ? (7 * r->alone + each) / 8 : each;
}

/*
 * Time of service to compare posting with. A gathering process posts several requests in @cycles,
 * and a thread is to take over even if that process is a little slower than the engine.
 */
static u64 service_time(const struct vrnic_runnable *r, cycles_t cycles)
{
	return test_bit(VRNIC_RUN_GATHER, &r->state) ? 2 * cycles : cycles;
}

/*
 * A caller that came at @came leaves, having used up @spent. A caller that comes back in less time
 * than its service takes could post while a thread serves it. A process that waits for an answer
 * takes longer, as its peer has to be served in between. Return: true if a thread is to take over.
 */
static bool is_overtaken(struct vrnic_runnable *r, cycles_t came,
			 const struct vrnic_budget *spent)
{
	cycles_t now = get_cycles();
	bool quick = came - r->left < service_time(r, now - came);

	if (quick && spent->descs)
		note_alone(r, now, spent->descs);
	vrnic_gather_note(r, spent->stream, spent->taken);
	r->left = now;
	r->streak = quick ? r->streak + 1 : 0;
	if (r->streak < r->patience || !vrnic_thread_stays(r))
		return false;
	r->streak = 0;
	set_bit(VRNIC_RUN_STAY, &r->state);
	return true;
}

/*
 * Run @r for a caller, and again if work was announced meanwhile: an answer of a peer on this
 * machine comes before the run ends, and is no other call. @left: what is left of the caller's
 * budget. Return: false if a thread has to go on.
 */
static bool serve_here(struct vrnic_runnable *r, struct vrnic_budget *left)
{
	u64 before;

	while (vrnic_budget_left(left)) {
		before = vrnic_budget_sum(left);
		if (vrnic_run(r, left) == VRNIC_MORE)
			return false;
		if (!test_bit(VRNIC_RUN_AGAIN, &r->state) ||
		    test_bit(VRNIC_RUN_PARKED, &r->state))
			return true;
		vrnic_budget_step(left, before);
	}
	return false;
}

/* serve_here() a doorbell. Return: false if a thread has to go on. */
static bool serve_call(struct vrnic_runnable *r, struct vrnic_budget *left)
{
	struct vrnic_budget spent = { .descs = left->descs };
	u64 before = vrnic_budget_sum(left);
	cycles_t came = get_cycles();

	left->taken = 0;
	if (!serve_here(r, left))
		return false;
	spent.descs -= left->descs;
	spent.taken = left->taken;
	spent.stream = left->stream;
	vrnic_budget_step(left, before);
	return !is_overtaken(r, came, &spent);
}

static void parcel_deliver(struct vrnic_runnable *r, struct vrnic_parcel *parcel)
{
	if (parcel->full)
		r->ops->deliver(r, parcel);
	parcel->full = false;
}

/*
 * Is something that the runner of @r sent still in a queue of this CPU? Only what this CPU sends
 * later stays behind it. In softirq the answer is known only when the present softirq has ended.
 */
static bool is_under_way(struct vrnic_runnable *r)
{
	if (!r->in_order)
		return false;
	preempt_disable();
	r->in_order = local_softirq_pending() & BIT(NET_RX_SOFTIRQ);
	preempt_enable();
	return r->in_order;
}

/* Keep the run bit until what was sent has left the queues of this CPU. */
static void leave_later(struct vrnic_runnable *r, bool unfinished)
{
	r->unfinished = unfinished;
	r->rounds = ROUNDS;
	/* this tasklet runs after the network's softirq, on this CPU */
	tasklet_schedule(&r->after);
}

/**
 * vrnic_give_back() - a runner has done its share: give the run bit back
 * @r: the runnable that it ran
 * @more: there is more to do, for a thread
 *
 * Return: true if the caller still has the run bit, and a thread has to go on.
 */
bool vrnic_give_back(struct vrnic_runnable *r, bool more)
{
	if (is_under_way(r)) {
		leave_later(r, more);
		return false;
	}
	return more || release_or_again(r);
}

/* As vrnic_give_back(); if there is more to do, a thread goes on. */
void vrnic_leave(struct vrnic_runnable *r, bool more)
{
	if (vrnic_give_back(r, more))
		vrnic_thread_add(r);
}

/* The budget of one turn: a part of what is @left of the call's budget. */
static struct vrnic_budget turn_of(const struct vrnic_budget *left)
{
	return (struct vrnic_budget){
		.bytes = min_t(u64, left->bytes, READ_ONCE(caller_bytes)),
		.descs = min_t(u32, left->descs, CALLER_DESCS),
		.atomic = true,
	};
}

/*
 * As vrnic_run(), for a caller on the wire. @turn: budget of this run; @left: rest of the call's.
 */
static enum vrnic_verdict run_turn(struct vrnic_runnable *r, struct vrnic_budget *turn,
				   struct vrnic_budget *left)
{
	enum vrnic_verdict verdict;
	u64 before = vrnic_budget_sum(left);

	*turn = turn_of(left);
	left->bytes -= turn->bytes;
	left->descs -= turn->descs;
	verdict = vrnic_run(r, turn);
	left->bytes += turn->bytes;
	left->descs += turn->descs;
	left->taken += turn->taken;
	left->stream = turn->stream;
	vrnic_budget_step(left, before);
	return vrnic_budget_left(left) ? verdict : VRNIC_MORE;
}

/*
 * As serve_here(), with softirqs held off. The run bit is given back before softirqs run, so that
 * answers of a peer on this machine find it free. Two cases keep it longer. If there is more to
 * send than may be under way, this process waits here for answers, and goes on itself: softirqs
 * would hold up others. If several tasks ring, the run bit is kept until softirqs have run: what
 * the next task sends must not overtake what this one sent.
 */
static bool serve_atomic(struct vrnic_runnable *r, struct vrnic_budget *left)
{
	struct vrnic_budget budget;
	bool others = r->caller != current;
	enum vrnic_verdict verdict;
	bool again;

	r->caller = current;
	do {
		if (!r->ops->atomic(r)) {
			vrnic_thread_add(r);
			return false;
		}
		verdict = run_turn(r, &budget, left);
		if (verdict != VRNIC_IDLE || others) {
			parcel_deliver(r, &budget.parcel);
			WRITE_ONCE(r->brief, false);
			local_bh_enable();
			local_bh_disable();
			if (verdict == VRNIC_MORE) {
				vrnic_leave(r, true);
				return false;
			}
			if (is_under_way(r)) {
				leave_later(r, false);
				return false;
			}
		}
		again = release_or_again(r);
		parcel_deliver(r, &budget.parcel);
	} while (again);
	return true;
}

/* serve_atomic() of a caller that came at @came is over. Return: true if there is more to do. */
static bool serve_settle(struct vrnic_runnable *r, cycles_t came, struct vrnic_budget *left)
{
	/* what was taken completes when it is answered, which may be now */
	struct vrnic_budget spent = {
		.descs = left->taken,
		.taken = left->taken,
		.stream = left->stream,
	};

	/* a runner that has @r by now has more to do than to keep this account */
	if (!vrnic_take(r, true))
		return false;
	left->taken = 0;
	left->stream = false;
	if (is_overtaken(r, came, &spent)) {
		vrnic_thread_add(r);
		return false;
	}
	return release_or_again(r);
}

static void kick_atomic(struct vrnic_runnable *r)
{
	struct vrnic_budget left = {
		.bytes = (u64)READ_ONCE(caller_bytes) * CALLER_TURNS,
		.descs = CALLER_DESCS * CALLER_TURNS,
	};
	cycles_t came = get_cycles();
	bool mine;

	local_bh_disable();
	mine = claim_soon(r);
	while (mine) {
		mine = serve_atomic(r, &left);
		/* softirqs run here */
		local_bh_enable();
		local_bh_disable();
		mine = mine && serve_settle(r, came, &left);
	}
	local_bh_enable();
}

/* Other processes may ring during this call: what they post uses up this call's budget, too. */
static void kick_here(struct vrnic_runnable *r)
{
	struct vrnic_budget left = {
		.bytes = READ_ONCE(caller_bytes),
		.descs = CALLER_DESCS,
	};

	do {
		if (!serve_call(r, &left)) {
			vrnic_leave(r, true);
			return;
		}
	} while (release_or_again(r));
}

/**
 * vrnic_kick() - run @r here and now, within the caller's budget
 * @r: what to run
 *
 * Context: process context, may sleep.
 */
void vrnic_kick(struct vrnic_runnable *r)
{
	if (r->ops->atomic && r->ops->atomic(r)) {
		set_bit(VRNIC_RUN_RUNG, &r->state);
		kick_atomic(r);
		return;
	}
	if (claim_rung(r))
		kick_here(r);
}

/* Run @r in softirq, with the run bit held. */
static void run_poked(struct vrnic_runnable *r)
{
	enum vrnic_verdict verdict;
	struct vrnic_budget budget;
	bool again = true;
	int runs;

	for (runs = 0; again; runs++) {
		if (runs == POKE_RUNS || !r->ops->atomic(r)) {
			vrnic_thread_add(r);
			return;
		}
		budget = (struct vrnic_budget){
			.bytes = POKE_BYTES,
			.descs = CALLER_DESCS,
			.atomic = true,
		};
		verdict = vrnic_run(r, &budget);
		if (r->in_order) {
			parcel_deliver(r, &budget.parcel);
			leave_later(r, verdict == VRNIC_MORE);
			return;
		}
		again = verdict != VRNIC_MORE && release_or_again(r);
		if (verdict == VRNIC_MORE)
			vrnic_thread_add(r);
		parcel_deliver(r, &budget.parcel);
	}
}

/**
 * vrnic_poke() - run @r here and now, in softirq, for what came from the network
 * @r: what to run; its run function obeys the budget's @atomic
 * @small: little came, which is better done here than left to another runner; of much that comes,
 *	each runner does its share
 *
 * What takes longer, or may sleep, goes to a thread.
 */
void vrnic_poke(struct vrnic_runnable *r, bool small)
{
	if (small ? claim_soon(r) : run_claim(r, true))
		run_poked(r);
}

/*
 * The tasklet of leave_later(): softirqs of this CPU have gone on since the runner sent something.
 */
static void leave_now(struct tasklet_struct *after)
{
	struct vrnic_runnable *r = container_of(after, struct vrnic_runnable, after);

	if (is_under_way(r) && --r->rounds)
		tasklet_schedule(after);
	else if (r->unfinished)
		vrnic_thread_add(r);
	else if (release_or_again(r))
		run_poked(r);
}

/**
 * vrnic_sends_in_order() - a run is about to send something that must not be overtaken
 * @r: the runnable
 *
 * What is sent lies in a queue of this CPU until softirqs run or go on, and what another CPU sends
 * does not wait for it. So no caller is to wait for this runner. And the run bit of @r is kept
 * until the queue is empty, except for a doorbell that has nothing more to send.
 *
 * Context: the caller is the runner of @r.
 */
void vrnic_sends_in_order(struct vrnic_runnable *r)
{
	WARN_ON_ONCE(!test_bit(VRNIC_RUN_BUSY, &r->state));
	WRITE_ONCE(r->brief, false);
	r->in_order = true;
}

/**
 * vrnic_queue() - have a thread run @r
 * @r: the runnable
 *
 * Context: any.
 */
void vrnic_queue(struct vrnic_runnable *r)
{
	if (claim_rung(r))
		vrnic_thread_add(r);
}

/**
 * vrnic_queue_after() - have a thread run @r later
 * @r: what to run; called from within its run function
 * @ns: nanoseconds from now
 */
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns)
{
	/* timers of several rings that are due at about the same time are one interrupt */
	hrtimer_start_range_ns(&r->timer, ns_to_ktime(ns),
			       min_t(u64, ns / 16, SLACK_NS), HRTIMER_MODE_REL);
}

static enum hrtimer_restart runnable_timer_fired(struct hrtimer *timer)
{
	vrnic_queue(container_of(timer, struct vrnic_runnable, timer));
	return HRTIMER_NORESTART;
}

/**
 * vrnic_park() - make sure that nobody runs @r until vrnic_unpark()
 * @r: what to park
 *
 * Waits for the current run, which its budget bounds. Does not wait for what is in the ring, nor
 * for @r's turn in the queue of threads, as these may get no CPU time.
 * Context: process context, may sleep; not from within @r's run function.
 */
void vrnic_park(struct vrnic_runnable *r)
{
	set_bit(VRNIC_RUN_PARKED, &r->state);
	/* pairs with the barriers in run_claim() and release_or_again() */
	smp_mb__after_atomic();
	if (!vrnic_thread_withdraw(r))
		wait_event(r->parked, !test_and_set_bit(VRNIC_RUN_BUSY, &r->state));
	tasklet_kill(&r->after);
	hrtimer_cancel(&r->timer);
	vrnic_gather_end(r);
}

/**
 * vrnic_unpark() - let @r run again
 * @r: what vrnic_park() parked
 */
void vrnic_unpark(struct vrnic_runnable *r)
{
	clear_bit(VRNIC_RUN_PARKED, &r->state);
	clear_bit_unlock(VRNIC_RUN_BUSY, &r->state);
}

/**
 * vrnic_runnable_init() - set up a runnable
 * @r: the runnable, to be filled in
 * @crew: threads that go on where callers do not; outlives @r
 * @ops: what to do with @r
 */
void vrnic_runnable_init(struct vrnic_runnable *r, struct vrnic_crew *crew,
			 const struct vrnic_runnable_ops *ops)
{
	r->ops = ops;
	r->streak = 0;
	r->brief = false;
	r->caller = NULL;
	r->in_order = false;
	r->patience = VRNIC_PATIENCE_MIN;
	r->left = get_cycles();
	r->crew = crew;
	r->state = 0;
	INIT_LIST_HEAD(&r->link);
	tasklet_setup(&r->after, leave_now);
	init_waitqueue_head(&r->parked);
	hrtimer_setup(&r->timer, runnable_timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	vrnic_gather_init(r);
}
