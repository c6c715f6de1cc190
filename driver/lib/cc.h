/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How fast a flow may send when the network is congested: DCQCN, with times and steps that follow
 * the flow's round trip and rate. This file needs nothing from ib_core and reads no clock: callers
 * pass times in. A tick is the time in which the rate may rise once: see lib/cc.c.
 */
#ifndef VRNIC_CC_H
#define VRNIC_CC_H

#include <linux/types.h>

#define VRNIC_CC_ONE	1024	/* largest alpha: most congested */

/**
 * struct vrnic_cc - the rate of one flow
 * @rate: bytes a second that the flow may send; 0: no limit
 * @target: rate that @rate goes back to
 * @line: rate of the flow before it was limited
 * @alpha: how congested the path is, of VRNIC_CC_ONE
 * @times: number of ticks without a notification since the last cut
 * @volumes: steps of the byte counter since the last cut: one for each VOLUME packets
 * @bytes: bytes sent since the last step of the byte counter, or the last cut
 * @notes: notifications in the present tick
 * @in_period: bytes sent in the present tick
 * @period_at: start of the present tick, in ns
 * @cut_at: time of the last cut, in ns
 * @sent: bytes sent since @meter_at
 * @meter_at: start of the measurement of the flow's own rate, in ns; 0: not measured
 */
struct vrnic_cc {
	u64 rate;
	u64 target;
	u64 line;
	u32 alpha;
	u32 times;
	u32 volumes;
	u64 bytes;
	u32 notes;
	u64 in_period;
	u64 period_at;
	u64 cut_at;
	u64 sent;
	u64 meter_at;
};

/**
 * struct vrnic_cc_scale - units for a flow's times and steps
 * @now: present time, in ns
 * @period: a round trip, or a time that stands for it if it is not known, in ns; not 0
 * @unit: bytes of a packet; not 0
 * @rate: bytes a second that the flow can have sent without a limit; 0: not known
 */
struct vrnic_cc_scale {
	u64 now;
	u64 period;
	u32 unit;
	u64 rate;
};

void vrnic_cc_notified(struct vrnic_cc *cc, const struct vrnic_cc_scale *s);
void vrnic_cc_passed(struct vrnic_cc *cc, const struct vrnic_cc_scale *s);
void vrnic_cc_sent(struct vrnic_cc *cc, u64 bytes, u32 unit);

/* Time that @bytes take at @rate, in ns; @bytes is the size of a few packets. */
static inline u64 vrnic_cc_ns(u64 bytes, u64 rate)
{
	return bytes * 1000000000 / rate;
}

#endif /* VRNIC_CC_H */
