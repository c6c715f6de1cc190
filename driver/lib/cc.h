/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How fast a flow may send when the network says that it is congested: DCQCN,
 * with times and steps that fit whatever the network turns out to be. This file
 * needs nothing of ib_core, and knows no clock: times are handed in.
 */
#ifndef VRNIC_CC_H
#define VRNIC_CC_H

#include <linux/types.h>

#define VRNIC_CC_ONE	1024	/* alpha: as congested as can be */

/**
 * struct vrnic_cc - the rate of one flow
 * @rate: bytes a second that it may send; 0: as many as it likes
 * @target: what @rate goes back to
 * @line: what the flow sent before it was limited
 * @alpha: how congested the path is, of VRNIC_CC_ONE
 * @times: periods without a notification since the last cut
 * @volumes: likewise, how often VRNIC_CC_VOLUME packets were sent
 * @bytes: sent since the last of these
 * @notes: notifications in the present period
 * @in_period: bytes sent in it
 * @period_at: when it began, in ns
 * @cut_at: when the last cut was
 * @sent: bytes since @meter_at
 * @meter_at: when the flow's own rate began to be measured; 0: it is not
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
 * struct vrnic_cc_scale - what a flow's times and steps are measured in
 * @now: in ns
 * @period: a round trip, or what stands for it, in ns; not 0
 * @unit: bytes of a packet; not 0
 * @rate: bytes a second that it can have been sending without a limit; 0: not known
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

/* How long @bytes take at @rate, in ns; @bytes are those of a few packets. */
static inline u64 vrnic_cc_ns(u64 bytes, u64 rate)
{
	return bytes * 1000000000 / rate;
}

#endif /* VRNIC_CC_H */
