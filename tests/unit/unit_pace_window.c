// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The window of a receiver that its senders share: each rule by itself, then on wires. */
#include <stdbool.h>

#include "lib/pace_window.h"

#include "unit.h"

#define MS	1000000ULL
#define KIB	1024ULL

/* A round of @ns, in which senders waited for the window if @limits. */
static void pass(struct vrnic_pace_window *w, u64 *now, u64 ns, bool limits)
{
	if (!w->began)
		vrnic_pace_window_round(w, *now);
	w->limits |= limits;
	*now += ns;
	CHECK(!vrnic_pace_window_landed(w, w->bytes - 1));
	CHECK(vrnic_pace_window_landed(w, 1));
	vrnic_pace_window_round(w, *now);
}

static void it_doubles_until_the_wire_is_congested(void)
{
	struct vrnic_pace_window w;
	u64 now = MS;

	vrnic_pace_window_init(&w);
	CHECK_EQ(VRNIC_PACE_WINDOW_FIRST, w.bytes);
	pass(&w, &now, MS, true);
	CHECK_EQ(2 * VRNIC_PACE_WINDOW_FIRST, w.bytes);
	pass(&w, &now, MS, true);
	CHECK_EQ(4 * VRNIC_PACE_WINDOW_FIRST, w.bytes);
	vrnic_pace_window_congested(&w, true);
	CHECK_EQ(3 * VRNIC_PACE_WINDOW_FIRST, w.bytes);
	pass(&w, &now, MS, true);
	CHECK_EQ(3 * VRNIC_PACE_WINDOW_FIRST, w.bytes);
	pass(&w, &now, MS, true);
	CHECK_EQ(3 * VRNIC_PACE_WINDOW_FIRST * 9 / 8, w.bytes);
}

static void a_window_that_nobody_waits_for_does_not_grow(void)
{
	struct vrnic_pace_window w;
	u64 now = MS;
	int i;

	vrnic_pace_window_init(&w);
	for (i = 0; i < 10; i++)
		pass(&w, &now, MS, false);
	CHECK_EQ(VRNIC_PACE_WINDOW_FIRST, w.bytes);
}

static void it_gives_way_once_a_round(void)
{
	struct vrnic_pace_window w;
	u64 now = MS, before;
	int i;

	vrnic_pace_window_init(&w);
	for (i = 0; i < 4; i++)
		pass(&w, &now, MS, true);
	before = w.bytes;
	for (i = 0; i < 10; i++)
		vrnic_pace_window_congested(&w, false);
	CHECK_EQ(before - before / 8, w.bytes);
	pass(&w, &now, MS, true);
	vrnic_pace_window_congested(&w, true);
	CHECK_EQ((before - before / 8) * 3 / 4, w.bytes);
}

static void it_has_bounds(void)
{
	struct vrnic_pace_window w;
	u64 now = MS;
	int i;

	vrnic_pace_window_init(&w);
	for (i = 0; i < 40; i++)
		pass(&w, &now, MS, true);
	CHECK_EQ(VRNIC_PACE_WINDOW_MAX, w.bytes);
	for (i = 0; i < 100; i++) {
		vrnic_pace_window_congested(&w, true);
		pass(&w, &now, MS, true);
	}
	CHECK_EQ(VRNIC_PACE_WINDOW_MIN, w.bytes);
}

static void the_time_of_a_round_is_smoothed(void)
{
	struct vrnic_pace_window w;
	u64 now = MS;
	int i;

	vrnic_pace_window_init(&w);
	CHECK_EQ(0, w.took);
	pass(&w, &now, 8 * MS, false);
	CHECK_EQ(8 * MS, w.took);
	pass(&w, &now, 16 * MS, false);
	CHECK_EQ(10 * MS, w.took);
	for (i = 0; i < 100; i++)
		pass(&w, &now, MS, false);
	CHECK(w.took >= MS && w.took < MS + MS / 100);
}

static void a_pause_is_no_round(void)
{
	struct vrnic_pace_window w;
	u64 now = MS;

	vrnic_pace_window_init(&w);
	pass(&w, &now, MS, false);
	vrnic_pace_window_congested(&w, false);
	vrnic_pace_window_idle(&w);
	now += 1000 * MS;
	/* the first bytes afterwards begin a round, and do not end one */
	CHECK(vrnic_pace_window_landed(&w, 1));
	vrnic_pace_window_round(&w, now);
	CHECK_EQ(MS, w.took);
	CHECK(!w.congested);
	pass(&w, &now, MS, false);
	CHECK_EQ(MS, w.took);
}

/*
 * A wire of @rate bytes a second with a queue of @room bytes, which drops what does not fit, or
 * marks from @marks on. Senders always have something to send. Return: share of the wire that is
 * used in 1,000 rounds, in per cent.
 */
static u64 wire(u64 rate, u64 delay, u64 room, u64 marks)
{
	u64 now = MS, began = now, moved = 0, drain, ns;
	struct vrnic_pace_window w;
	int i;

	vrnic_pace_window_init(&w);
	for (i = 0; i < 1000; i++) {
		/* what is under way beyond what the delay holds stands in the queue */
		drain = rate * (delay / 1000) / 1000000;
		if (w.bytes > drain + room)
			vrnic_pace_window_congested(&w, true);
		else if (w.bytes > drain + marks)
			vrnic_pace_window_congested(&w, false);
		ns = w.bytes * 1000000 / (rate / 1000);
		moved += w.bytes;
		pass(&w, &now, ns > delay ? ns : delay, true);
		CHECK(w.bytes <= 2 * (drain + room) || w.bytes <= VRNIC_PACE_WINDOW_FIRST * 2);
	}
	return moved * 100 / ((now - began) / 1000 * (rate / 1000) / 1000);
}

static void it_fills_wires(void)
{
	/* 100 Mbit/s, 10 and 100 Gbit/s; a short way, and one around the world */
	CHECK(wire(12500000, MS / 10, 432 * KIB, 40 * KIB) >= 95);
	CHECK(wire(12500000, MS / 10, 432 * KIB, 432 * KIB) >= 95);
	CHECK(wire(12500000, 200 * MS, 4096 * KIB, 4096 * KIB) >= 95);
	CHECK(wire(1250000000, MS / 10, 1024 * KIB, 256 * KIB) >= 95);
	CHECK(wire(1250000000, 20 * MS, 16384 * KIB, 16384 * KIB) >= 95);
	CHECK(wire(12500000000, MS / 10, 4096 * KIB, 1024 * KIB) >= 95);
}

static const struct unit_test tests[] = {
	UNIT(it_doubles_until_the_wire_is_congested),
	UNIT(a_window_that_nobody_waits_for_does_not_grow),
	UNIT(it_gives_way_once_a_round), UNIT(it_has_bounds),
	UNIT(the_time_of_a_round_is_smoothed), UNIT(a_pause_is_no_round),
	UNIT(it_fills_wires),
};

UNIT_MAIN(tests)
