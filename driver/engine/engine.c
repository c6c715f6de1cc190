// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine decides who runs a ring, when, and for how long.
 *
 * The runner of a ring is the thread, process or softirq that executes its descriptors, within a
 * budget. A process that rings the doorbell runs the ring in the system call, so there is no
 * context switch between the descriptor and its execution. Threads (engine/thread.c) run what is
 * left then, what kernel consumers post, as these may be in atomic context, and what waited for a
 * timer.
 *
 * A ring has one runner at a time, which holds the run bit, VRNIC_RUN_BUSY. The bit stays set
 * while the ring waits for a thread. Code that brings work sets VRNIC_RUN_AGAIN and then tries the
 * run bit. The runner looks at VRNIC_RUN_AGAIN after it gave the run bit back, so work is never
 * left behind, and never done twice.
 *
 * Softirqs run what comes from the network. Take two processes of this machine that talk to each
 * other. The doorbell of the first one sends a packet. The softirq that receives this packet runs
 * the ring of the second process, but still on the CPU of the first. If the second process rings
 * meanwhile on its own CPU, it spins until the softirq, a brief runner, is done, and then runs its
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
 * The network's softirq takes at least 64 packets of a CPU's backlog in a round, and by default the
 * backlog has 1,000 at most: after so many rounds, what a runner sent has left the backlog.
 */
#define ROUNDS		32

/* Most that a timer may be late. */
#define SLACK_NS	(50 * NSEC_PER_USEC)

/* Longest that a process or softirq spins for a brief runner. */
#define WAIT_NS		(20 * NSEC_PER_USEC)

/*
 * Give the run bit back. If work was announced while the bit was held, take the bit again, unless a
 * process or softirq in claim_soon() waits to do this work. Return: true if the caller has the run
 * bit again.
 *
 * The clear is a release: what this runner did happens before what the next one does. The full
 * barrier pairs with the one in run_claim(): either this function sees AGAIN, or run_claim() sees
 * BUSY clear.
 */
static bool release_or_again(struct vrnic_runnable *r)
{
	bool brief = r->brief, again;

	/*
	 * Once the bit is clear, vrnic_park() returns, and its caller frees @r after a grace
	 * period. So @r can be used until the unlock.
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
 * Give the run bit back to vrnic_park(), which waits for it. Return: true if @r was unparked
 * meanwhile and there is work; then the caller has the run bit again.
 */
bool vrnic_release_parked(struct vrnic_runnable *r)
{
	return release_or_again(r);
}

/**
 * vrnic_take() - take the run bit if nobody has it
 * @r: the runnable
 * @brief: the caller will be done within microseconds
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

/* Announce work. Return: true if the caller has to do it, and has the run bit. */
static bool run_claim(struct vrnic_runnable *r, bool brief)
{
	set_bit(VRNIC_RUN_AGAIN, &r->state);
	smp_mb__after_atomic(); /* pairs with release_or_again() */
	return vrnic_take(r, brief);
}

/* As run_claim(), for work that the ring's owner has posted. */
static bool claim_rung(struct vrnic_runnable *r)
{
	/* before AGAIN: the run that clears AGAIN must see RUNG, too */
	set_bit(VRNIC_RUN_RUNG, &r->state);
	return run_claim(r, false);
}

/*
 * As run_claim(), for a brief runner. If another brief runner has @r, spin until it is done, to run
 * @r next. The caller holds softirqs off, which would delay it meanwhile.
 */
static bool claim_soon(struct vrnic_runnable *r)
{
	bool mine;
	u64 since;

	/*
	 * before AGAIN: if release_or_again() sees AGAIN, it sees WAITED, and leaves us the work
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
	/* pairs with release_or_again(): either it sees WAITED clear, or we see BUSY clear */
	smp_mb__after_atomic();
	return run_claim(r, true);
}

/*
 * Each run asks for doorbells before it looks at the ring. Only a run that ends with its timer set
 * spares them, so there is always a run to come for what is posted without a doorbell.
 */
static void ask_for_doorbells(struct vrnic_runnable *r)
{
	if (!r->spared)
		return;
	r->spared = false;
	r->ops->ask(r);
}

/* While a thread polls the ring, they are spared anyway. */
static void spare_doorbells(struct vrnic_runnable *r)
{
	if (r->polled || !r->ops->spare)
		return;
	r->spared = true;
	r->ops->spare(r);
}

/**
 * vrnic_run() - do one run; the caller has the run bit
 * @r: the runnable
 * @budget: what the run may use up
 *
 * Return: whether there is more to do; VRNIC_IDLE if @r is being parked.
 */
enum vrnic_verdict vrnic_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	enum vrnic_verdict verdict;

	if (test_bit(VRNIC_RUN_PARKED, &r->state))
		return VRNIC_IDLE;
	clear_bit(VRNIC_RUN_AGAIN, &r->state);
	/* so that this run sees what was posted, and that the timer fired, before AGAIN was set */
	smp_mb__after_atomic();
	ask_for_doorbells(r);
	budget->rung = test_and_clear_bit(VRNIC_RUN_RUNG, &r->state) ||
		       test_bit(VRNIC_RUN_GATHER, &r->state) || !budget->atomic;
	verdict = r->ops->run(r, budget);
	/* so release_or_again() has this runner do what is left, unless somebody waits to do it */
	if (budget->left)
		set_bit(VRNIC_RUN_AGAIN, &r->state);
	return verdict;
}

/* A process in a streak posted and served @descs descriptors since @left: average their cost. */
static void note_alone(struct vrnic_runnable *r, cycles_t now, u32 descs)
{
	u64 each = (u64)(now - r->left) / descs;

	r->alone = r->alone ? (7 * r->alone + each) / 8 : each;
}

/*
 * The longest time between two doorbells of a streak, if it took @cycles to serve the latter. While
 * doorbells are gathered, a process posts several requests in this time, so allow twice as long.
 */
static u64 service_time(const struct vrnic_runnable *r, cycles_t cycles)
{
	return test_bit(VRNIC_RUN_GATHER, &r->state) ? 2 * cycles : cycles;
}

/* What a doorbell brought: descriptors done, and fetched, and whether they were of a stream. */
struct brought {
	u32 descs;
	u32 taken;
	bool stream;
};

/*
 * A doorbell that came at @came was served. A process that rings again in less time than its
 * doorbell took could post while a thread serves the ring. (A process that waits for an answer
 * takes longer, as its peer is served in between.) Return: is a thread to take over?
 */
static bool is_overtaken(struct vrnic_runnable *r, cycles_t came, struct brought brought)
{
	cycles_t now = get_cycles();
	bool quick = came - r->left < service_time(r, now - came);

	if (quick && brought.descs)
		note_alone(r, now, brought.descs);
	vrnic_gather_note(r, brought.stream, brought.taken);
	r->left = now;
	r->streak = quick ? r->streak + 1 : 0;
	if (r->streak < r->patience || !vrnic_thread_stays(r))
		return false;
	r->streak = 0;
	set_bit(VRNIC_RUN_STAY, &r->state);
	return true;
}

/*
 * Run @r in a system call, and again if work was announced meanwhile, as by an answer of a peer on
 * this machine. @left: what is left of the call's budget. Return: false if a thread has to go on.
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

/* serve_here() a doorbell, and count it. Return: false if a thread has to go on. */
static bool serve_call(struct vrnic_runnable *r, struct vrnic_budget *left)
{
	u64 before = vrnic_budget_sum(left);
	cycles_t came = get_cycles();
	u32 descs = left->descs;
	struct brought brought;

	left->taken = 0;
	if (!serve_here(r, left))
		return false;
	brought = (struct brought){
		.descs = descs - left->descs, .taken = left->taken, .stream = left->stream,
	};
	vrnic_budget_step(left, before);
	return !is_overtaken(r, came, brought);
}

static void parcel_deliver(struct vrnic_runnable *r, struct vrnic_parcel *parcel)
{
	if (parcel->full)
		r->ops->deliver(r, parcel);
	parcel->full = false;
}

/*
 * May packets that the runner of @r sent still be in the backlog of this CPU? Then another CPU must
 * not send for @r, as its packets would overtake them. Not for use in the network's softirq, which
 * does not count as pending while it runs.
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

/* Keep the run bit until the packets that were sent have left the backlog of this CPU. */
static void leave_later(struct vrnic_runnable *r, bool unfinished)
{
	r->unfinished = unfinished;
	r->rounds = ROUNDS;
	/* a CPU runs tasklets after the network's softirq */
	tasklet_schedule(&r->after);
}

/**
 * vrnic_give_back() - give the run bit back at the end of a runner's turn
 * @r: the runnable
 * @more: there is more to do, and a thread has to do it
 *
 * Return: true if the caller has the run bit still, and has to hand it to a thread.
 */
bool vrnic_give_back(struct vrnic_runnable *r, bool more)
{
	if (is_under_way(r)) {
		leave_later(r, more);
		return false;
	}
	return more || release_or_again(r);
}

/* As vrnic_give_back(), and hand the run bit to a thread if there is more to do. */
void vrnic_leave(struct vrnic_runnable *r, bool more)
{
	if (vrnic_give_back(r, more))
		vrnic_thread_add(r);
}

/* The budget of one run: a part of what is @left of the system call's budget. */
static struct vrnic_budget turn_of(const struct vrnic_budget *left)
{
	return (struct vrnic_budget){
		.bytes = min_t(u64, left->bytes, READ_ONCE(caller_bytes)),
		.descs = min_t(u32, left->descs, CALLER_DESCS),
		.atomic = true,
	};
}

/*
 * As vrnic_run(), for a doorbell of a ring that sends packets. @turn: budget of this run, filled in
 * here; @left: rest of the system call's.
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
 * Serve a doorbell with softirqs held off. The run bit is given back before softirqs run, so that
 * answers of a peer on this machine find it free. Two cases keep it longer. If there is more to
 * send than may be under way, this process stays here until answers have come, and sends the rest
 * itself: softirqs would delay the task that they interrupt. If several tasks ring, the run bit is
 * kept until softirqs have run: what the next task sends must not overtake what this one sent.
 * Return: true if the run bit was given back; false if a thread or leave_now() has it.
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

/*
 * serve_atomic() of a doorbell that came at @came is over: decide whether a thread takes over.
 * Return: true if work was announced meanwhile; then the caller has the run bit again.
 */
static bool serve_settle(struct vrnic_runnable *r, cycles_t came, struct vrnic_budget *left)
{
	/* count what was fetched: it completes when the peer has acknowledged it */
	struct brought brought = {
		.descs = left->taken, .taken = left->taken, .stream = left->stream,
	};

	/* if another runner has @r by now, this doorbell is left out of the statistics */
	if (!vrnic_take(r, true))
		return false;
	left->taken = 0;
	left->stream = false;
	if (is_overtaken(r, came, brought)) {
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
		cond_resched();
		local_bh_disable();
		mine = mine && serve_settle(r, came, &left);
	}
	local_bh_enable();
}

/* If other tasks ring during this call, what they post uses up this call's budget, too. */
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
 * vrnic_kick() - a doorbell: run @r here and now, within the budget of a system call
 * @r: the runnable; if another runner has it, that one does the work
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

/*
 * Is the stack too full for a run, which may send packets, and run other rings? On some
 * architectures a softirq uses the stack of the task that it interrupted.
 */
static bool stack_is_low(void)
{
	if (IS_ENABLED(CONFIG_SOFTIRQ_ON_OWN_STACK) && in_serving_softirq())
		return false;
	return (current_stack_pointer & (THREAD_SIZE - 1)) < THREAD_SIZE / 2;
}

static bool may_poke(struct vrnic_runnable *r)
{
	return !stack_is_low() && (r->ops->soft ? r->ops->soft(r) : r->ops->atomic(r));
}

/* Run @r in softirq, with the run bit held. */
static void run_poked(struct vrnic_runnable *r)
{
	enum vrnic_verdict verdict;
	struct vrnic_budget budget;
	bool again = true;
	int runs;

	for (runs = 0; again; runs++) {
		if (runs == POKE_RUNS || !may_poke(r)) {
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
 * vrnic_poke() - run @r here and now, in softirq, for packets, or for what these have completed
 * @r: the runnable; its run function obeys the budget's @atomic
 * @small: the packets are small: spin for a brief runner of @r, and then run them here. Large ones
 *	are left to the runner that has @r.
 *
 * A thread does what exceeds the budget, or may sleep.
 */
void vrnic_poke(struct vrnic_runnable *r, bool small)
{
	if (small && !stack_is_low() ? claim_soon(r) : run_claim(r, true))
		run_poked(r);
}

/*
 * The tasklet of leave_later(): the network's softirq of this CPU has had a round since the runner
 * sent packets.
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
 * vrnic_sends_in_order() - a run is about to send packets that must not be overtaken
 * @r: the runnable
 *
 * The packets lie in the backlog of this CPU until softirqs run, and packets of another CPU do not
 * wait for them. So nobody may spin for this runner, to go on elsewhere. And the runner keeps the
 * run bit until the backlog is empty, unless it is a doorbell that has nothing more to send.
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

/* Will the timer of @r fire by @at? Only @r's runner sets it. */
static bool is_woken_by(struct vrnic_runnable *r, u64 at)
{
	return hrtimer_is_queued(&r->timer) &&
	       ktime_to_ns(hrtimer_get_softexpires(&r->timer)) <= at;
}

static void queue_at(struct vrnic_runnable *r, u64 at, u64 now)
{
	u64 ns = at > now ? at - now : 0;

	/* with some slack, one interrupt serves the timers of several rings */
	hrtimer_start_range_ns(&r->timer, ns_to_ktime(at), min_t(u64, ns / 16, SLACK_NS),
			       HRTIMER_MODE_ABS);
}

/**
 * vrnic_queue_at() - have a thread run @r at a given time
 * @r: the runnable; the caller is its run function
 * @at: time in ns, of ktime_get_ns()
 *
 * There is one timer, for the earliest of all reasons to run @r, and it is not put off: neither one
 * that is still to come, nor one whose time has come during this run, but which has not fired yet.
 * Code with a later reason calls this again in each run.
 */
void vrnic_queue_at(struct vrnic_runnable *r, u64 at)
{
	if (!is_woken_by(r, at))
		queue_at(r, at, ktime_get_ns());
}

/* As vrnic_queue_at(), @ns nanoseconds from now. */
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns)
{
	u64 now = ktime_get_ns();

	if (!is_woken_by(r, now + ns))
		queue_at(r, now + ns, now);
}

/**
 * vrnic_must_wait() - is it too early for the ring's next operation?
 * @r: the runnable; the caller is its run function
 *
 * If so, the run has to end: the ring's timer, which is set here, has a thread run it again. The
 * process need not ring until then.
 *
 * Return: is it before @r->wait_until?
 */
bool vrnic_must_wait(struct vrnic_runnable *r)
{
	u64 now;

	if (!r->wait_until)
		return false;
	now = ktime_get_ns();
	if (now >= r->wait_until) {
		r->wait_until = 0;
		return false;
	}
	spare_doorbells(r);
	vrnic_queue_at(r, r->wait_until);
	return true;
}

static enum hrtimer_restart runnable_timer_fired(struct hrtimer *timer)
{
	/* pairs with vrnic_run(): a run that does not see AGAIN sees that the timer has fired */
	smp_mb();
	vrnic_queue(container_of(timer, struct vrnic_runnable, timer));
	return HRTIMER_NORESTART;
}

/**
 * vrnic_park() - make sure that nobody runs @r until vrnic_unpark()
 * @r: the runnable
 *
 * Waits for the current run, which its budget bounds. Does not wait for what is in the ring. Takes
 * @r out of the queue of threads, as these may get no CPU time to give @r its turn.
 * Context: process context, may sleep; not from within @r's run function.
 */
void vrnic_park(struct vrnic_runnable *r)
{
	set_bit(VRNIC_RUN_PARKED, &r->state);
	/* pairs with the barriers in run_claim() and release_or_again() */
	smp_mb__after_atomic();
	if (!vrnic_thread_withdraw(r))
		wait_event(r->parked, !test_and_set_bit(VRNIC_RUN_BUSY, &r->state));
	/* a ring may be parked for long: claim_soon() must not spin until that ends */
	WRITE_ONCE(r->brief, false);
	tasklet_kill(&r->after);
	hrtimer_cancel(&r->timer);
	vrnic_gather_end(r);
}

/**
 * vrnic_unpark() - let @r run again
 * @r: the runnable
 *
 * The caller then has to call vrnic_kick() or vrnic_queue(), for what was announced meanwhile.
 */
void vrnic_unpark(struct vrnic_runnable *r)
{
	clear_bit(VRNIC_RUN_PARKED, &r->state);
	clear_bit_unlock(VRNIC_RUN_BUSY, &r->state);
}

/**
 * vrnic_runnable_init() - set up a runnable
 * @r: the runnable, to be filled in
 * @crew: threads that run @r when no process or softirq does; outlives @r
 * @ops: functions of the ring's owner
 */
void vrnic_runnable_init(struct vrnic_runnable *r, struct vrnic_crew *crew,
			 const struct vrnic_runnable_ops *ops)
{
	r->ops = ops;
	r->streak = 0;
	r->brief = false;
	r->caller = NULL;
	r->in_order = false;
	r->polled = false;
	r->spared = false;
	r->wait_until = 0;
	r->patience = VRNIC_PATIENCE_MIN;
	r->left = get_cycles();
	r->crew = crew;
	r->state = 0;
	INIT_LIST_HEAD(&r->link);
	tasklet_setup(&r->after, leave_now);
	init_waitqueue_head(&r->parked);
	hrtimer_setup(&r->timer, runnable_timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	vrnic_gather_init(r);
}
