// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A receiver's window: see pace_window.h. */

#include <linux/minmax.h>

#include "lib/pace_window.h"

#define GROWTH		8	/* a window grows by this part of itself */
#define YIELD_MARKED	8	/* and gives way by this part, if packets were marked */
#define YIELD_LOST	4	/* or by this one, if packets were lost */
#define SMOOTH		4

void vrnic_pace_window_init(struct vrnic_pace_window *w)
{
	*w = (struct vrnic_pace_window){ .bytes = VRNIC_PACE_WINDOW_FIRST, .probing = true };
}

/* All that was asked for has landed: a pause that follows is not the time of a round. */
void vrnic_pace_window_idle(struct vrnic_pace_window *w)
{
	w->landed = 0;
	w->began = 0;
	w->limits = false;
	w->congested = false;
}

/**
 * vrnic_pace_window_landed() - bytes have landed
 * @w: window
 * @bytes: how many
 *
 * Return: true if this ends the round, so that the caller has to call vrnic_pace_window_round().
 */
bool vrnic_pace_window_landed(struct vrnic_pace_window *w, u64 bytes)
{
	w->landed += bytes;
	return !w->began || w->landed >= w->bytes;
}

static void window_grow(struct vrnic_pace_window *w)
{
	u64 by = w->probing ? w->bytes : w->bytes / GROWTH;

	w->bytes = min(w->bytes + by, VRNIC_PACE_WINDOW_MAX);
}

/**
 * vrnic_pace_window_round() - a round is over, or the first one begins
 * @w: window
 * @now: time, in ns
 */
void vrnic_pace_window_round(struct vrnic_pace_window *w, u64 now)
{
	if (w->began) {
		u64 took = now - w->began;

		w->took = w->took ? w->took - w->took / SMOOTH + took / SMOOTH : took;
		/* a window that nobody waits for has not been tried */
		if (w->limits && !w->congested)
			window_grow(w);
	}
	w->landed = 0;
	w->began = now;
	w->limits = false;
	w->congested = false;
}

/**
 * vrnic_pace_window_congested() - packets that were asked for have met congestion
 * @w: window
 * @lost: they were lost, not only marked
 *
 * Packets of one round stood in the same queues, so they count once.
 */
void vrnic_pace_window_congested(struct vrnic_pace_window *w, bool lost)
{
	if (w->congested)
		return;
	w->congested = true;
	w->probing = false;
	w->bytes -= w->bytes / (lost ? YIELD_LOST : YIELD_MARKED);
	w->bytes = max(w->bytes, VRNIC_PACE_WINDOW_MIN);
}
