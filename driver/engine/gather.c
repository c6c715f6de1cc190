// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gathering: one doorbell for many requests.
 *
 * A doorbell is a system call, and costs about as much as a small request. A process that posts a
 * stream of requests need not ring for each: while its doorbells are gathered, it rings for every
 * few requests, and before it waits. A timer catches requests for which the process does not ring:
 * the timer checks whether the stream still flows. If the stream does not flow, the timer ends the
 * gathering and has a thread look at the ring. The period grows with the stream, up to a
 * millisecond: a request without a doorbell waits about as long as the stream flowed, and not much
 * longer than the longest period.
 *
 * Gathering begins when the process says that it posts a stream, that is, when it did not wait for
 * anything in between. Gathering ends when there was no doorbell for two periods, or when each
 * doorbell brought one request only. If gathering was of no use, or left a request waiting, the
 * next one takes twice as many doorbells to begin.
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
 * Look more rarely the longer the stream flows, and soon after the first period without a doorbell.
 */
static void next_period(struct vrnic_gather *g)
{
	u32 first = READ_ONCE(gather_us);

	g->us = g->idle ? first : min(2 * g->us, max(first, PERIOD_MAX_US));
}

/* Timers that are due at about the same time are one interrupt. */
static u64 slack_ns(const struct vrnic_gather *g)
{
	return g->us * (u64)NSEC_PER_USEC / 8;
}

/*
 * The return value is that of the timer's function. hrtimer_forward() would not do: if a timer
 * fired within its slack, hrtimer_forward() leaves the expiry where it is, and the timer fires
 * again and again until the slack has passed.
 */
static enum hrtimer_restart once_more(struct vrnic_gather *g)
{
	hrtimer_set_expires_range_ns(&g->timer, ktime_add_us(ktime_get(), g->us),
				     slack_ns(g));
	return HRTIMER_RESTART;
}

/*
 * Since the timer last fired, did doorbells come that brought more than one request each? One
 * period without a doorbell proves nothing: after a pause of a virtual CPU, its timer fires first.
 */
static bool gather_flows(struct vrnic_gather *g)
{
	u32 calls = READ_ONCE(g->calls) - g->calls_before;
	u32 descs = READ_ONCE(g->descs) - g->descs_before;

	g->calls_before += calls;
	g->descs_before += descs;
	g->idle = calls ? 0 : g->idle + 1;
	g->flowed += !!calls;
	return calls ? descs >= 2 * calls : g->idle < IDLE_PERIODS;
}

/*
 * The gathering is over. @good: it saved doorbells, and kept no request waiting, or kept one
 * waiting only briefly compared with the length of the stream.
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
	bool left;

	/* a doorbell is being served: on a slow machine that takes longer than a period */
	if (test_bit(VRNIC_RUN_BUSY, &r->state))
		return once_more(g);
	if (gather_flows(g) && READ_ONCE(gather_us)) {
		next_period(g);
		return once_more(g);
	}
	/* a runner has @r: the gathering goes on, or vrnic_gather_end() ends it */
	if (!vrnic_take(r, true))
		return once_more(g);
	left = r->ops->gather(r, false);
	gather_learn(g, g->flowed >= LONG_PERIODS || (g->idle && !left));
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
	g->descs_before = g->descs;
	g->idle = 0;
	g->flowed = 0;
	g->us = READ_ONCE(gather_us);
	r->ops->gather(r, true);
	hrtimer_start_range_ns(&g->timer, ns_to_ktime(g->us * (u64)NSEC_PER_USEC),
			       slack_ns(g), HRTIMER_MODE_REL);
}

/**
 * vrnic_gather_note() - a doorbell was served
 * @r: the runnable that it was for; the caller holds VRNIC_RUN_BUSY
 * @stream: the process that rang posts one request after the other
 * @descs: descriptors that this doorbell brought
 */
void vrnic_gather_note(struct vrnic_runnable *r, bool stream, u32 descs)
{
	struct vrnic_gather *g = &r->gather;

	if (!r->ops->gather)
		return;
	WRITE_ONCE(g->calls, g->calls + 1);
	WRITE_ONCE(g->descs, g->descs + descs);
	g->streak = stream && descs ? g->streak + 1 : 0;
	if (g->streak < READ_ONCE(g->patience) || !READ_ONCE(gather_us))
		return;
	g->streak = 0;
	gather_begin(r);
}

/**
 * vrnic_gather_end() - end the gathering: every post rings again
 * @r: the runnable, parked. The caller of vrnic_unpark() has to look for requests that came without
 *	a doorbell.
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
