// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
 * SIGCOMM 2015. A notification cuts the rate by a share that says how often they
 * come (alpha); afterwards it comes back half way to where it was, several times
 * (fast recovery), and then probes for more (additive, at last hyper increase),
 * by a timer and by a counter of bytes.
 *
 * A NIC has its line rate to start from, and constants that were tuned to it.
 * Here neither is known, so the flow begins with what it may have been sending
 * when the first notification comes, or, if nobody knows, with what is measured
 * then. A period is a round trip, and a step is some packets a second, which
 * makes the steps of flows that share a bottleneck alike; and a small part of the
 * rate, for few flows on a fast link. What came before a round trip has passed
 * says nothing about the last cut: one cut a period. What a slow flow was not
 * told while it sent nothing is no reason to go faster: it is raised by time in
 * which it may send some packets.
 */

#include <linux/types.h>

#include "lib/cc.h"

#define ALPHA_SHIFT	5	/* alpha moves by that power of two a period */
#define FAST		5	/* steps of fast recovery */
#define VOLUME		256	/* packets that count as much as a period */
#define STEP		16	/* packets a second that TICK_MAX raises the rate by */
#define SHARE		128	/* and it raises it by this part of what it was */
#define HYPER		2	/* a hyper step, in ordinary ones */
#define PERIODS_MAX	256	/* that are made up for after a silence */
#define METER_MAX	16	/* periods after which a measurement is too old */
#define LEAST		100	/* packets a second that are always allowed */
#define ENOUGH		4	/* times the line: there is no limit any more */

#define SECOND		1000000000ULL
#define NOTE_EVERY	50000	/* ns between notifications: rate.c, annex A17 */
/* Between raises are so many packets, but within these bounds; and a round trip. */
#define TICK_PKTS	8
#define TICK_MIN	300000ULL	/* ns */
#define TICK_MAX	4000000ULL

/* Measure for a period at least. Return: false if that is not over. */
static bool measured(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	u64 took = s->now - cc->meter_at;

	if (!cc->meter_at || took > METER_MAX * s->period) {
		cc->meter_at = s->now;
		cc->sent = 0;
		return false;
	}
	if (took < s->period)
		return false;
	/* a flow sends far less than 2^34 bytes in the time that is measured */
	cc->line = cc->sent * SECOND / took;
	cc->meter_at = 0;
	return cc->line;
}

static u64 not_below(u64 rate, u32 unit)
{
	u64 least = (u64)LEAST * unit;

	return rate > least ? rate : least;
}

static void cut(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
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
 * Alpha follows the share of notifications that came in a period among those that
 * could have: one for each packet, but not more than a receiver sends.
 */
static void follow(struct vrnic_cc *cc, u64 took, u32 unit)
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
 * vrnic_cc_notified() - the network is congested
 * @cc: flow
 * @s: scale
 */
void vrnic_cc_notified(struct vrnic_cc *cc, const struct vrnic_cc_scale *s)
{
	if (!cc->rate) {
		if (s->rate)
			cc->line = s->rate;
		else if (!measured(cc, s))
			return;
		cc->rate = not_below(cc->line, s->unit);
		cc->alpha = VRNIC_CC_ONE;
		cc->period_at = s->now;
		cc->in_period = 0;
		cc->notes = 0;
	} else {
		vrnic_cc_passed(cc, s);
		cc->notes++;
		/* of packets that were sent before the cut; or no limit is left */
		if (!cc->rate || s->now - cc->cut_at < s->period)
			return;
	}
	cut(cc, s);
}

static void raise(struct vrnic_cc *cc, u64 step)
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

/* From one raise to the next, in ns, and how much it is by. There is a rate. */
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
 * vrnic_cc_passed() - time passed without a notification
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

		follow(cc, tick, s->unit);
		if (noted) {
			/* what cuts and this leave is what the path can bear */
			cc->rate += step;
			continue;
		}
		cc->times++;
		raise(cc, step);
	}
}

/**
 * vrnic_cc_sent() - the flow sent something
 * @cc: flow
 * @bytes: how much
 * @unit: bytes of a packet
 *
 * The steps of the byte counter are as large as those of the timer would be if
 * one fell into the time that the volume took.
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
	raise(cc, cc->rate / VOLUME);
}
