// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rate of a flow under congestion: each rule by itself, and then many flows
 * that share a link whose queue marks what it forwards, in a time of our own.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/cc.h"

#include "unit.h"

#define T	4000000ULL	/* a period */
#define US	1000ULL
#define SEC	1000000000ULL
#define UNIT_BYTES	1024

static struct vrnic_cc_scale at(u64 now)
{
	return (struct vrnic_cc_scale){
		.now = now, .period = T, .unit = UNIT_BYTES,
	};
}

static void notify(struct vrnic_cc *cc, u64 now)
{
	struct vrnic_cc_scale s = at(now);

	vrnic_cc_notified(cc, &s);
}

static void pass(struct vrnic_cc *cc, u64 now)
{
	struct vrnic_cc_scale s = at(now);

	vrnic_cc_passed(cc, &s);
}

/* A flow of 100 MB/s that was just cut for the first time, at 12 T. */
static void begin(struct vrnic_cc *cc)
{
	memset(cc, 0, sizeof(*cc));
	notify(cc, 10 * T);
	vrnic_cc_sent(cc, 800000, UNIT_BYTES);
	notify(cc, 12 * T);
}

static void no_limit_without_a_notification(void)
{
	struct vrnic_cc cc = { 0 };

	vrnic_cc_sent(&cc, 1 << 30, UNIT_BYTES);
	pass(&cc, SEC);
	CHECK_EQ(0, cc.rate);
}

static void the_first_cut_halves_what_was_measured(void)
{
	struct vrnic_cc cc;

	begin(&cc);
	CHECK_EQ(100000000, cc.line);
	CHECK_EQ(100000000, cc.target);
	CHECK_EQ(50000000, cc.rate);
	CHECK_EQ(VRNIC_CC_ONE, cc.alpha);
}

static void a_measurement_takes_a_period(void)
{
	struct vrnic_cc cc = { 0 };

	notify(&cc, 10 * T);
	vrnic_cc_sent(&cc, 400000, UNIT_BYTES);
	notify(&cc, 11 * T - 1);
	CHECK_EQ(0, cc.rate);
	notify(&cc, 11 * T);
	CHECK_EQ(50000000, cc.rate);
}

/* Silence between two notifications is no slow flow. */
static void an_old_measurement_does_not_count(void)
{
	struct vrnic_cc cc = { 0 };

	notify(&cc, 10 * T);
	vrnic_cc_sent(&cc, 400000, UNIT_BYTES);
	notify(&cc, SEC);
	CHECK_EQ(0, cc.rate);
	vrnic_cc_sent(&cc, 400000, UNIT_BYTES);
	notify(&cc, SEC + T);
	CHECK_EQ(50000000, cc.rate);
}

/* With a known bound nothing is measured: the first notification cuts. */
static void the_first_notification_cuts_at_once(void)
{
	struct vrnic_cc_scale s = at(10 * T);
	struct vrnic_cc cc = { 0 };

	s.rate = 80000000;
	vrnic_cc_notified(&cc, &s);
	CHECK_EQ(80000000, cc.line);
	CHECK_EQ(40000000, cc.rate);
}

/* A period may be far shorter than a tick; so are the next cuts. */
static void a_cut_follows_as_soon_as_it_can_be_told(void)
{
	struct vrnic_cc_scale s = at(10 * T);
	struct vrnic_cc cc = { 0 };

	s.rate = 80000000;
	s.period = 50 * US;
	vrnic_cc_notified(&cc, &s);
	s.now += 50 * US;
	vrnic_cc_notified(&cc, &s);
	CHECK_EQ(20000000, cc.rate);
}

/* What a second raises the rate by is the same, however long a step takes. */
static void fast_flows_are_raised_in_smaller_steps(void)
{
	u64 target[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct vrnic_cc_scale s = at(10 * T);
		struct vrnic_cc cc = { 0 };

		s.rate = 100000000;
		s.period = i ? 50 * US : T;
		vrnic_cc_notified(&cc, &s);
		/* the five of fast recovery, and then those that count */
		s.now += 5 * (i ? 300 * US : T);
		vrnic_cc_passed(&cc, &s);
		target[i] = cc.target;
		CHECK(cc.target > 100000000);
	}
	CHECK(target[1] < target[0] + (target[0] - 100000000));
}

static void one_cut_a_period(void)
{
	struct vrnic_cc cc;
	u64 t;

	begin(&cc);
	for (t = 12 * T; t < 13 * T; t += 50 * US)
		notify(&cc, t);
	CHECK_EQ(50000000, cc.rate);
	notify(&cc, 13 * T);
	CHECK_EQ(25398817, cc.rate);
	CHECK_EQ(50797634, cc.target);
}

static void fast_recovery_comes_half_way_back(void)
{
	struct vrnic_cc cc;

	begin(&cc);
	pass(&cc, 13 * T);
	CHECK_EQ(75000000, cc.rate);
	pass(&cc, 14 * T);
	CHECK_EQ(87500000, cc.rate);
	pass(&cc, 16 * T);
	CHECK_EQ(96875000, cc.rate);
	CHECK_EQ(100000000, cc.target);
}

/* By some packets a second and a little of the rate, from the fifth on. */
static void then_it_probes(void)
{
	struct vrnic_cc cc;

	begin(&cc);
	pass(&cc, 16 * T);
	CHECK_EQ(100000000, cc.target);
	pass(&cc, 17 * T);
	CHECK_EQ(100797634, cc.target);
	pass(&cc, 19 * T);
	CHECK_EQ(102405364, cc.target);
}

static void a_calm_path_is_trusted_again(void)
{
	struct vrnic_cc cc;

	begin(&cc);
	pass(&cc, 22 * T);
	CHECK(cc.alpha < VRNIC_CC_ONE * 8 / 10);
	notify(&cc, 22 * T);
	/* the cut is by half of what was left of alpha */
	CHECK(cc.rate > cc.target * 6 / 10);
}

/* Alpha goes to the share of the packets that were marked. */
static void alpha_follows_the_marks(void)
{
	struct vrnic_cc cc;
	u64 t = 12 * T;
	int i;

	begin(&cc);
	for (i = 0; i < 400; i++) {
		vrnic_cc_sent(&cc, 20 * UNIT_BYTES, UNIT_BYTES);
		for (t += T / 8; (t - 12 * T) % T; t += T / 8)
			if ((t - 12 * T) % T <= T / 2)
				notify(&cc, t);
	}
	/* four of twenty */
	CHECK(cc.alpha > VRNIC_CC_ONE * 12 / 100);
	CHECK(cc.alpha < VRNIC_CC_ONE * 22 / 100);
}

static void notifications_hold_the_rate_down(void)
{
	struct vrnic_cc cc;
	u64 t;

	begin(&cc);
	for (t = 12 * T; t < 40 * T; t += 50 * US) {
		pass(&cc, t);
		notify(&cc, t);
	}
	CHECK_EQ(100 * UNIT_BYTES, cc.rate);
}

static void in_the_end_there_is_no_limit(void)
{
	struct vrnic_cc cc;
	u64 t = 12 * T;

	begin(&cc);
	while (cc.rate && t < 2 * SEC) {
		t += T / 4;
		vrnic_cc_sent(&cc, cc.rate / 1000, UNIT_BYTES);
		pass(&cc, t);
	}
	CHECK_EQ(0, cc.rate);
	CHECK(t < SEC);
}

/* After hours of silence the loop of steps ends, and soon. */
static void silence_is_bounded(void)
{
	struct vrnic_cc cc;

	begin(&cc);
	pass(&cc, 24 * 3600 * SEC);
	CHECK(!cc.rate || cc.rate >= 100000000);
	CHECK(cc.times <= 256);
}

/*
 * Flows on one link, in steps of 10 us. The link marks packets, and drops what
 * its queue has no room for; marks come back after the queue and the wire, at
 * most one each 50 us and flow.
 */
#define STEP		(10 * US)
#define FLOWS_MAX	64
#define RING		32768
#define QUEUE_MAX	400	/* packets */

struct flow {
	struct vrnic_cc cc;
	u64 free_at, bytes, told_at;
};

struct sim {
	struct flow flow[FLOWS_MAX];
	u8 back[RING][FLOWS_MAX];	/* notifications on their way back */
	u64 queue, average, queue_max, done, dropped;
	u32 random;
};

static u32 draw(struct sim *sim)
{
	sim->random = sim->random * 1664525 + 1013904223;
	return sim->random >> 8;
}

static u64 wire(u64 queue, u64 link)
{
	return 100 * US + queue * SEC / link;
}

/* RED: none at 40 packets, a fifth at 240, all above; of an average, as it is. */
static bool marks(struct sim *sim)
{
	u64 low = 40 * UNIT_BYTES, high = 240 * UNIT_BYTES;

	sim->average += sim->queue / 64;
	sim->average -= sim->average / 64;
	if (sim->average <= low)
		return false;
	if (sim->average >= high)
		return true;
	return draw(sim) % (u32)(5 * (high - low)) < sim->average - low;
}

static void flow_step(struct sim *sim, int i, u64 now, u64 link)
{
	struct flow *f = &sim->flow[i];
	struct vrnic_cc_scale s = at(now);
	u64 rtt = wire(sim->queue, link), later, most;

	/* as in rate.c */
	s.period = rtt > 50 * US ? rtt : 50 * US;
	s.rate = 128 * UNIT_BYTES * SEC / rtt;
	if (sim->back[now / STEP % RING][i]) {
		sim->back[now / STEP % RING][i] = 0;
		vrnic_cc_notified(&f->cc, &s);
	}
	vrnic_cc_passed(&f->cc, &s);
	if (f->free_at > now)
		return;
	vrnic_cc_sent(&f->cc, UNIT_BYTES, UNIT_BYTES);
	/* a window of 128 packets in a round trip, whatever the rate */
	most = 128 * UNIT_BYTES * SEC / rtt;
	f->free_at = now + vrnic_cc_ns(UNIT_BYTES, f->cc.rate && f->cc.rate < most ?
				       f->cc.rate : most);
	if (sim->queue >= QUEUE_MAX * UNIT_BYTES) {
		sim->dropped++;
		return;
	}
	sim->queue += UNIT_BYTES;
	f->bytes += UNIT_BYTES;
	if (!marks(sim) || now - f->told_at < 50 * US)
		return;
	f->told_at = now;
	later = now + rtt;
	if (later - now < RING * STEP)
		sim->back[later / STEP % RING][i] = 1;
}

static void sim_run(struct sim *sim, int flows, u64 link, u64 from, u64 to)
{
	u64 now, take;
	int i, first;

	for (now = from; now < to; now += STEP) {
		first = draw(sim) % flows;
		for (i = 0; i < flows; i++)
			flow_step(sim, (first + i) % flows, now, link);
		take = link * STEP / SEC;
		take = take < sim->queue ? take : sim->queue;
		sim->queue -= take;
		sim->done += take;
		if (sim->queue > sim->queue_max)
			sim->queue_max = sim->queue;
	}
}

static double jain(const struct sim *sim, int flows)
{
	double sum = 0, squares = 0;
	int i;

	for (i = 0; i < flows; i++) {
		sum += sim->flow[i].bytes;
		squares += (double)sim->flow[i].bytes * sim->flow[i].bytes;
	}
	return sum * sum / (flows * squares);
}

/* Two seconds to settle, then two that count. */
static void incast(int flows, u64 link, double least)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	double used, fair;
	int i;

	sim->random = 1;
	sim_run(sim, flows, link, SEC, 3 * SEC);
	for (i = 0; i < flows; i++)
		sim->flow[i].bytes = 0;
	sim->done = 0;
	sim->queue_max = 0;
	sim->dropped = 0;
	sim_run(sim, flows, link, 3 * SEC, 5 * SEC);
	used = (double)sim->done / (2 * link);
	fair = jain(sim, flows);
	printf("# %d flows, %llu MB/s: %.3f of the link, Jain %.3f, ", flows,
	       (unsigned long long)(link / 1000000), used, fair);
	printf("queue at most %llu packets, %llu dropped\n",
	       (unsigned long long)(sim->queue_max / UNIT_BYTES),
	       (unsigned long long)sim->dropped);
	CHECK(used >= least);
	CHECK(fair >= (flows > 2 ? 0.9 : 0.85));
	/* less than two packets in a hundred */
	CHECK(sim->dropped * 50 * UNIT_BYTES <= sim->done);
	free(sim);
}

static void two_share_a_link(void)
{
	/* two have no others that fill the gap after a cut */
	incast(2, 100000000, 0.8);
}

static void sixteen_share_a_link(void)
{
	incast(16, 100000000, 0.9);
}

static void sixteen_share_a_slow_link(void)
{
	incast(16, 12500000, 0.9);
}

static void sixty_four_share_a_link(void)
{
	incast(64, 100000000, 0.9);
}

static const struct unit_test tests[] = {
	UNIT(no_limit_without_a_notification),
	UNIT(the_first_cut_halves_what_was_measured),
	UNIT(the_first_notification_cuts_at_once),
	UNIT(a_cut_follows_as_soon_as_it_can_be_told),
	UNIT(fast_flows_are_raised_in_smaller_steps),
	UNIT(a_measurement_takes_a_period), UNIT(an_old_measurement_does_not_count),
	UNIT(one_cut_a_period), UNIT(fast_recovery_comes_half_way_back),
	UNIT(then_it_probes), UNIT(a_calm_path_is_trusted_again),
	UNIT(alpha_follows_the_marks),
	UNIT(notifications_hold_the_rate_down), UNIT(in_the_end_there_is_no_limit),
	UNIT(silence_is_bounded), UNIT(two_share_a_link),
	UNIT(sixteen_share_a_link), UNIT(sixteen_share_a_slow_link),
	UNIT(sixty_four_share_a_link),
};

UNIT_MAIN(tests)
