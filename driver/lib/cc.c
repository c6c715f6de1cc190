// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. A
 * notification cuts the rate by a share that depends on how often notifications come (alpha).
 * Afterwards the rate comes back half way to its old value, several times (fast recovery). Then it
 * probes for more (additive increase, at last hyper increase), driven by a timer and by a counter
 * of bytes.
 *
 * A NIC starts from its line rate, with constants that are tuned to this rate. vrnic knows neither,
 * so when the first notification comes, a flow starts with the rate that it can have had, or, if
 * that is not known, with the rate that it measures from then on. The rate may rise once in a tick:
 * the time in which the flow may send some packets, but at least a round trip. (A slow flow gets no
 * notifications while it sends nothing, which is no reason to go faster.) A raise is a number of
 * packets a second, so that flows that share a bottleneck rise alike, plus a small part of the
 * rate, for few flows on a fast link. Notifications within a round trip after a cut are about
 * packets from before the cut, so there is at most one cut in a round trip.
 */

#include <linux/types.h>

#include "lib/cc.h"

#define ALPHA_SHIFT	5	/* in a tick, alpha goes 1 / 2^5 of the way to its new value */
#define FAST		5	/* steps of fast recovery */
#define VOLUME		256	/* the byte counter makes a step after so many packets */
#define STEP		16	/* packets a second by which the target rises in TICK_MAX ns */
#define SHARE		128	/* besides, the target rises by this part of itself */
#define HYPER		2	/* size of a hyper step, in ordinary steps */
#define PERIODS_MAX	256	/* most ticks that are made up for after a silence */
#define METER_MAX	16	/* round trips after which a measurement is too old */
#define LEAST		100	/* packets a second that are always allowed */
#define ENOUGH		4	/* the limit ends above this many times the line rate */

#define SECOND		1000000000ULL
#define NOTE_EVERY	50000	/* least ns between two notifications: roce/rate.c, annex A17 */
/* A tick is the time that so many packets take, within these bounds, and at least a round trip. */
#define TICK_PKTS	8
#define TICK_MIN	300000ULL	/* ns */
#define TICK_MAX	4000000ULL

/*
 * Measure @cc->line, the flow's rate without a limit, for at least a round trip. Return: false if
 * the measurement is not over, or gave nothing.
 */
static bool cc_measured(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	u64 took = s->now - cc->meter_at;

	if (!cc->meter_at || took > METER_MAX * s->period) {
		cc->meter_at = s->now;
		cc->sent = 0;
		return false;
	}
	if (took < s->period)
		return false;
	/* no overflow: in the measured time, a flow sends far less than 2^34 bytes */
	cc->line = cc->sent * SECOND / took;
	cc->meter_at = 0;
	return cc->line;
}

static u64 not_below(u64 rate, u32 unit)
{
	u64 least = (u64)LEAST * unit;

	return rate > least ? rate : least;
}

static void cc_cut(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	cc->target = cc->rate;
	cc->rate -= cc->rate * cc->alpha / (2 * VRNIC_CC_ONE);
	cc->rate = not_below(cc->rate, s->unit);
	cc->times = 0;
	cc->volumes = 0;
	cc->bytes = 0;
	cc->cut_at = s->now;
}

/*
 * A tick of @took ns is over: alpha follows the share of notifications that came in the tick among
 * those that could have come. One could have come for each packet, but no more than one in
 * NOTE_EVERY ns.
 */
static void cc_follow(struct vrnic_cc *cc, u64 took, u32 unit)
{
	u64 most = cc->in_period / unit + 1, share;

	if (most > took / NOTE_EVERY)
		most = took / NOTE_EVERY;
	share = cc->notes * (u64)VRNIC_CC_ONE / most;
	if (share > VRNIC_CC_ONE)
		share = VRNIC_CC_ONE;
	cc->alpha -= cc->alpha >> ALPHA_SHIFT;
	cc->alpha += share >> ALPHA_SHIFT;
	cc->in_period = 0;
	cc->notes = 0;
}

/**
 * vrnic_cc_notified() - a notification has come: the network is congested
 * @cc: flow
 * @s: scale
 */
void vrnic_cc_notified(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	if (!cc->rate) {
		if (s->rate)
			cc->line = s->rate;
		else if (!cc_measured(cc, s))
			return;
		cc->rate = not_below(cc->line, s->unit);
		cc->alpha = VRNIC_CC_ONE;
		cc->period_at = s->now;
		cc->in_period = 0;
		cc->notes = 0;
	} else {
		vrnic_cc_passed(cc, s);
		cc->notes++;
		/*
		 * vrnic_cc_passed() may have lifted the limit; and until a round trip after a cut,
		 * notifications are about packets that were sent before the cut
		 */
		if (!cc->rate || s->now - cc->cut_at < s->period)
			return;
	}
	cc_cut(cc, s);
}

static void cc_raise(struct vrnic_cc *cc, u64 step)
{
	u32 least = cc->times < cc->volumes ? cc->times : cc->volumes;
	u32 most = cc->times < cc->volumes ? cc->volumes : cc->times;

	if (least > FAST)
		cc->target += step * HYPER * (least - FAST);
	else if (most >= FAST)
		cc->target += step;
	cc->rate = (cc->rate + cc->target) / 2;
	if (cc->rate > ENOUGH * cc->line)
		cc->rate = 0;
}

/* The length of a tick, in ns. Sets @step to the raise of a tick. @cc->rate is not 0. */
static u64 tick_of(const struct vrnic_cc *cc, const struct vrnic_cc_scale *s, u64 *step)
{
	u64 tick = vrnic_cc_ns((u64)TICK_PKTS * s->unit, cc->rate);

	if (tick < TICK_MIN)
		tick = TICK_MIN;
	if (tick > TICK_MAX)
		tick = TICK_MAX;
	if (tick < s->period)
		tick = s->period;
	*step = s->unit * STEP + cc->target / SHARE;
	if (tick < TICK_MAX)
		*step = *step * tick / TICK_MAX;
	return tick;
}

/**
 * vrnic_cc_passed() - raise the rate for the ticks that have passed
 * @cc: flow
 * @s: scale
 */
void vrnic_cc_passed(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	u64 tick, step, n;

	if (!cc->rate)
		return;
	tick = tick_of(cc, s, &step);
	n = (s->now - cc->period_at) / tick;
	cc->period_at += n * tick;
	if (n > PERIODS_MAX)
		n = PERIODS_MAX;
	for (; n && cc->rate; n--) {
		bool noted = cc->notes;

		cc_follow(cc, tick, s->unit);
		if (noted) {
			/*
			 * in a tick with a notification the rate rises, too: where cuts and these
			 * raises cancel out, the rate is what the path can carry
			 */
			cc->rate += step;
			continue;
		}
		cc->times++;
		cc_raise(cc, step);
	}
}

/**
 * vrnic_cc_sent() - count bytes that the flow sent
 * @cc: flow
 * @bytes: number of bytes
 * @unit: bytes of a packet
 *
 * After VOLUME packets the byte counter makes a step. The rate rises by one packet in the time that
 * these packets take.
 */
void vrnic_cc_sent(struct vrnic_cc *cc, u64 bytes, u32 unit)
{
	cc->sent += bytes;
	if (!cc->rate)
		return;
	cc->bytes += bytes;
	cc->in_period += bytes;
	if (cc->bytes < (u64)VOLUME * unit)
		return;
	cc->bytes = 0;
	cc->volumes++;
	cc_raise(cc, cc->rate / VOLUME);
}
