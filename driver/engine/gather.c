// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gathering: one doorbell for many requests.
 *
 * A doorbell is a system call, and costs about as much as a small request. A process that posts a
 * stream of requests need not ring for each: while its doorbells are gathered, it rings once for
 * several requests, and before it waits. But the process may wait in a way that its library does
 * not see, and then does not ring for its last requests. So a timer checks whether doorbells still
 * come. If not, the timer ends the gathering and has a thread run the ring. The period of the timer
 * grows with the stream, up to a millisecond: a request without a doorbell waits about as long as
 * the stream lasted, and not much longer than the longest period.
 *
 * Gathering begins after a streak of doorbells at which the process said that it posts a stream,
 * that is, did not wait in between. It ends when no doorbell came for two periods, or when the
 * doorbells of a period brought fewer than two requests each. If gathering was of no use, or left a
 * request waiting after a short stream, the streak has to be twice as long the next time.
 */

#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "engine/run.h"

static unsigned int gather_us = 200;
module_param(gather_us, uint, 0644);
MODULE_PARM_DESC(gather_us, "microseconds after which a ring is looked at whose doorbells are gathered; 0: every post rings (default 200)");

#define STREAK_MIN	1U
#define STREAK_MAX	4096U
#define IDLE_PERIODS	2
#define LONG_PERIODS	4
#define PERIOD_MAX_US	1000U

/*
 * A long stream needs few checks, so the period doubles while doorbells come, or a runner is busy.
 * After a period without a doorbell the next check comes early, because a request may be waiting.
 */
static void next_period(struct vrnic_gather *g)
{
	u32 first = max(READ_ONCE(gather_us), 1U);

	g->us = g->idle ? first : min(2 * g->us, max(first, PERIOD_MAX_US));
}

/* How late the timer may fire, so that one interrupt can serve several timers. */
static u64 slack_ns(const struct vrnic_gather *g)
{
	return g->us * (u64)NSEC_PER_USEC / 8;
}

/*
 * Start the next period. Return: what the timer's function has to return. hrtimer_forward() would
 * not do: if the timer fired within its slack, hrtimer_forward() leaves the expiry where it is, and
 * the timer fires again and again until the slack has passed.
 */
static enum hrtimer_restart once_more(struct vrnic_gather *g)
{
	hrtimer_set_expires_range_ns(&g->timer, ktime_add_us(ktime_get(), g->us),
				     slack_ns(g));
	return HRTIMER_RESTART;
}

/*
 * Since the timer last fired, did doorbells bring two requests or more on average? Those that
 * brought none do not count: the requests that they announced have to wait for another reason. One
 * period without a doorbell proves nothing: after a pause of a virtual CPU, its timer fires first.
 */
static bool gather_flows(struct vrnic_gather *g)
{
	u32 calls = READ_ONCE(g->calls) - g->calls_before;
	u32 served = READ_ONCE(g->served) - g->served_before;
	u32 descs = READ_ONCE(g->descs) - g->descs_before;

	g->calls_before += calls;
	g->served_before += served;
	g->descs_before += descs;
	g->idle = calls ? 0 : g->idle + 1;
	g->flowed += !!calls;
	return calls ? descs >= 2 * served : g->idle < IDLE_PERIODS;
}

/*
 * The gathering is over. @good: it saved doorbells, and kept no request waiting for long, compared
 * with the length of the stream. Then the next one begins after half as long a streak.
 */
static void gather_learn(struct vrnic_gather *g, bool good)
{
	u32 patience = good ? g->patience / 2 : g->patience * 2;

	WRITE_ONCE(g->patience, clamp(patience, STREAK_MIN, STREAK_MAX));
}

static enum hrtimer_restart gather_timer_fired(struct hrtimer *timer)
{
	struct vrnic_gather *g = container_of(timer, struct vrnic_gather, timer);
	struct vrnic_runnable *r = container_of(g, struct vrnic_runnable, gather);
	bool left, late;

	/* a runner has the ring, so no request is forgotten; it may need longer than a period */
	if (test_bit(VRNIC_RUN_BUSY, &r->state)) {
		next_period(g);
		return once_more(g);
	}
	if (gather_flows(g) && READ_ONCE(gather_us)) {
		next_period(g);
		return once_more(g);
	}
	/* a runner took @r just now: check later. Or @r is parked, and the timer ends soon */
	if (!vrnic_take(r, true))
		return once_more(g);
	left = r->ops->gather(r, false);
	/* requests of a ring that waits are not late for want of a doorbell */
	late = left && !r->spared;
	gather_learn(g, g->flowed >= LONG_PERIODS || (g->idle && !late));
	clear_bit(VRNIC_RUN_GATHER, &r->state);
	if (left)
		set_bit(VRNIC_RUN_RUNG, &r->state);
	vrnic_leave(r, left);
	return HRTIMER_NORESTART;
}

static void gather_begin(struct vrnic_runnable *r)
{
	struct vrnic_gather *g = &r->gather;

	if (test_and_set_bit(VRNIC_RUN_GATHER, &r->state))
		return;
	g->calls_before = g->calls;
	g->served_before = g->served;
	g->descs_before = g->descs;
	g->idle = 0;
	g->flowed = 0;
	/* the parameter may have become 0 since the caller looked */
	g->us = max(READ_ONCE(gather_us), 1U);
	r->ops->gather(r, true);
	hrtimer_start_range_ns(&g->timer, ns_to_ktime(g->us * (u64)NSEC_PER_USEC),
			       slack_ns(g), HRTIMER_MODE_REL);
}

/**
 * vrnic_gather_note() - count a doorbell, and begin to gather after a streak of a stream
 * @r: the runnable that it was for; the caller has the run bit
 * @stream: the process said that it posts a stream
 * @descs: descriptors that this doorbell brought
 */
void vrnic_gather_note(struct vrnic_runnable *r, bool stream, u32 descs)
{
	struct vrnic_gather *g = &r->gather;

	if (!r->ops->gather)
		return;
	WRITE_ONCE(g->calls, g->calls + 1);
	WRITE_ONCE(g->served, g->served + !!descs);
	WRITE_ONCE(g->descs, g->descs + descs);
	g->streak = stream && descs ? g->streak + 1 : 0;
	if (g->streak < READ_ONCE(g->patience) || !READ_ONCE(gather_us))
		return;
	g->streak = 0;
	gather_begin(r);
}

/**
 * vrnic_gather_end() - end the gathering: every post rings again
 * @r: the runnable, parked. After vrnic_unpark() it has to be run, for requests that came without a
 *	doorbell.
 */
void vrnic_gather_end(struct vrnic_runnable *r)
{
	hrtimer_cancel(&r->gather.timer);
	if (test_and_clear_bit(VRNIC_RUN_GATHER, &r->state))
		r->ops->gather(r, false);
}

void vrnic_gather_init(struct vrnic_runnable *r)
{
	struct vrnic_gather *g = &r->gather;

	*g = (struct vrnic_gather){ .patience = STREAK_MIN };
	hrtimer_setup(&g->timer, gather_timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
}
