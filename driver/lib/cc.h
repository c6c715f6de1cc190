/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How fast a flow may send when the network is congested: DCQCN, with times and steps that fit
 * whatever the network turns out to be. This file needs nothing from ib_core and reads no clock:
 * callers pass times in.
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
 * @times: number of periods without a notification since the last cut
 * @volumes: number of volumes of VOLUME packets that were sent since the last cut
 * @bytes: bytes sent since the last of these
 * @notes: notifications in the present period
 * @in_period: bytes sent in the present period
 * @period_at: start of the present period, in ns
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
 * @period: a round trip, or a time that replaces it, in ns; not 0
 * @unit: bytes of a packet; not 0
 * @rate: bytes a second that the flow can have been sending without a limit; 0: not known
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
