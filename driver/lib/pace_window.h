/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receiver's window: how many bytes it may have asked for, of all its senders together, that
 * have not landed yet. It is a congestion window (RFC 5681) at the other end of the wire: it
 * doubles with each round until the wire is congested for the first time, gives way once for each
 * round with congestion, and grows slowly in the others.
 *
 * A round is over when as many bytes have landed as the window has. So its time is that in which
 * the wire brings a window, from any senders, and says nothing of the way to one of them and back.
 */
#ifndef VRNIC_PACE_WINDOW_H
#define VRNIC_PACE_WINDOW_H

#include <linux/types.h>

#define VRNIC_PACE_WINDOW_MIN	((u64)128 << 10)
#define VRNIC_PACE_WINDOW_FIRST	((u64)256 << 10)
#define VRNIC_PACE_WINDOW_MAX	((u64)64 << 20)

/**
 * struct vrnic_pace_window - a receiver's window
 * @bytes: the window
 * @landed: bytes that have landed in this round
 * @began: when this round began, in ns; 0: it has none, because nothing was asked for meanwhile
 * @took: time of a round, in ns, smoothed; 0: not known
 * @limits: a sender had to wait for the window in this round
 * @congested: the window has given way in this round
 * @probing: the wire was never congested, so the window doubles
 */
struct vrnic_pace_window {
	u64 bytes;
	u64 landed;
	u64 began;
	u64 took;
	bool limits;
	bool congested;
	bool probing;
};

void vrnic_pace_window_init(struct vrnic_pace_window *w);
void vrnic_pace_window_idle(struct vrnic_pace_window *w);
bool vrnic_pace_window_landed(struct vrnic_pace_window *w, u64 bytes);
void vrnic_pace_window_round(struct vrnic_pace_window *w, u64 now);
void vrnic_pace_window_congested(struct vrnic_pace_window *w, bool lost);

#endif /* VRNIC_PACE_WINDOW_H */
