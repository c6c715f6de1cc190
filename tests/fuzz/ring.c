// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ring: a process that has every kind of ring mapped, and writes into all of them:
 * descriptors that are right but for a field or two, so that the engine executes much of
 * them; noise; wild indices. A vandal thread writes to rings, completion pages
 * and counters while the engine uses them. The program prints how many descriptors the engine
 * executed, and whether memory was touched that no key opens.
 *
 * The seed, the lane and the round's number determine each round of each lane:
 * -o LANE -r ROUND begins there. The vandal's writes depend on the clock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring.h"
#include "verbs_util.h"

#define BYSTANDER_LEN	512
#define REST_SECONDS	20

static const struct lane_ops * const kinds[] = {
	&lane_rc, &lane_uc, &lane_ud, &lane_raw, &lane_native, &lane_native, &lane_xrc,
};

static struct lane lanes[ARRAY_SIZE(kinds)];
static unsigned int nr_lanes;
static struct options opts;
static bool vandal_stop;

/* ---- lanes ---- */

/* One at a time: a new ring is found by comparing the mappings before and after. */
static int lane_start_anew(struct lane *lane)
{
	static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;
	int ret;

	pthread_mutex_lock(&mapping);
	pthread_mutex_lock(&lane->lock);
	lane->nr_areas = 0;
	ret = lane->ops->close(lane);
	if (!ret)
		ret = lane->ops->open(lane);
	pthread_mutex_unlock(&lane->lock);
	pthread_mutex_unlock(&mapping);
	lane->renewed++;
	return ret;
}

static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	struct rng rng;
	int ret = 0;

	while (!ret && !__atomic_load_n(&lane->stop, __ATOMIC_RELAXED)) {
		rng = rng_for(opts.seed, lane->number, opts.from + lane->rounds);
		ret = lane->ops->round(lane, &rng);
		if (ret == -EAGAIN)
			ret = lane_start_anew(lane);
		lane->rounds++;
	}
	lane->error = ret;
	return NULL;
}

static bool chosen(unsigned int i)
{
	return !opts.only || !strcmp(opts.only, kinds[i]->name);
}

static int lanes_start(void)
{
	struct lane *lane;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!chosen(i))
			continue;
		lane = &lanes[nr_lanes];
		lane->ops = kinds[i];
		lane->number = i;
		pthread_mutex_init(&lane->lock, NULL);
		ret = lane->ops->open(lane);
		if (ret)
			return ret;
		nr_lanes++;
	}
	for (i = 0; i < nr_lanes; i++)
		if (pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]))
			return -EAGAIN;
	return 0;
}

static bool lanes_stop(void)
{
	bool good = true;
	struct lane *lane;
	int ret;

	for (lane = lanes; lane < lanes + nr_lanes; lane++)
		__atomic_store_n(&lane->stop, true, __ATOMIC_RELAXED);
	for (lane = lanes; lane < lanes + nr_lanes; lane++) {
		pthread_join(lane->thread, NULL);
		ret = lane->error;
		if (ret)
			ktap_comment("lane %s stopped in round %llu: %s",
				     lane->ops->name,
				     (unsigned long long)lane->rounds,
				     strerror(-ret));
		good &= !ret;
	}
	return good;
}

/* Everything can be destroyed, and guards and secrets are unchanged. */
static bool lanes_close(void)
{
	bool good = true;
	struct lane *lane;
	int ret;

	for (lane = lanes; lane < lanes + nr_lanes; lane++) {
		ret = lane->ops->close(lane);
		if (ret)
			ktap_comment("lane %s cannot be closed: %s",
				     lane->ops->name, ret == -EFAULT ?
				     "memory was changed" : strerror(-ret));
		good &= !ret;
	}
	return good;
}

/* ---- the vandal ---- */

static void vandalize(struct lane *lane, struct rng *rng)
{
	struct area *area;
	uint32_t n;

	if (!lane->nr_areas)
		return;
	area = &lane->area[rng_below(rng, lane->nr_areas)];
	if (!rng_one_in(rng, area->dear))
		return;
	for (n = 1 + rng_below(rng, 32); n; n--)
		rng_mutate(rng, area->at, area->bytes);
}

static void *vandal_run(void *arg)
{
	struct rng rng = rng_for(opts.seed, ~0ULL, 0);
	struct lane *lane;

	while (!__atomic_load_n(&vandal_stop, __ATOMIC_RELAXED)) {
		lane = &lanes[rng_below(&rng, nr_lanes)];
		pthread_mutex_lock(&lane->lock);
		vandalize(lane, &rng);
		pthread_mutex_unlock(&lane->lock);
		usleep(5000 + rng_below(&rng, 20000));
	}
	return NULL;
}

/* ---- bystanders, which must not notice ---- */

static bool bystander_works(struct bed *bed, uint32_t seed)
{
	buf_fill(&bed->src, seed);
	if (post_recv(bed->b, &bed->dst, 0, BYSTANDER_LEN, seed))
		return false;
	return RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		   .len = BYSTANDER_LEN) == IBV_WC_SUCCESS &&
	       wait_recv(bed->b) == IBV_WC_SUCCESS &&
	       bed->b->rwc.wr_id == seed &&
	       buf_differs(&bed->dst, 0, BYSTANDER_LEN, seed, 0) < 0;
}

/* ---- results ---- */

/* Fetched by the engine, and not only to be flushed. */
static long long executed(void)
{
	return kept_statistic("descriptors") + kept_statistic("native_descriptors") -
	       kept_statistic("flushed");
}

static void progress(double seconds, long long done)
{
	unsigned long long rounds = 0, mended = 0, renewed = 0;
	unsigned int i;

	for (i = 0; i < nr_lanes; i++) {
		rounds += lanes[i].rounds;
		mended += lanes[i].mended;
		renewed += lanes[i].renewed;
	}
	ktap_comment("%.0f s: %s descriptors, %s a second; %llu rounds, %llu mended, %llu renewed",
		     seconds, grouped(done), grouped(done / seconds), rounds,
		     mended, renewed);
}

static bool lane_failed(void)
{
	unsigned int i;

	for (i = 0; i < nr_lanes; i++)
		if (lanes[i].error)
			return true;
	return false;
}

/* Until it was long enough, or enough. Return: false if a bystander suffered. */
static bool watch(struct bed *bed, long long before, long long *done)
{
	double start = now(), next = start;
	uint32_t looks = 0;
	bool good = true;

	do {
		usleep(500000);
		good = bystander_works(bed, looks++);
		*done = executed() - before;
		if (now() >= next) {
			progress(now() - start, *done);
			next = now() + 10;
		}
	} while (good && !lane_failed() &&
		 (!opts.seconds || now() - start < opts.seconds) &&
		 (!opts.count || *done < (long long)opts.count));
	progress(now() - start, *done);
	return good;
}

/* When nobody posts any more, nothing is executed any more. */
static bool comes_to_rest(void)
{
	double end = now() + REST_SECONDS;
	long long before, after = -1;

	do {
		before = after;
		usleep(500000);
		after = executed() + kept_statistic("remote_gets");
	} while (before != after && now() < end);
	return before == after;
}

int main(int argc, char **argv)
{
	struct bed bed = {};
	long long before, done;
	bool good, stopped;
	pthread_t vandal;
	int ret;

	opts = options_read(argc, argv,
			    "writes into every ring; NAME: a lane (rc, uc, ud, raw, xrc, native), COUNT: descriptors");
	ktap_begin(5);
	ktap_comment("seed %llu", (unsigned long long)opts.seed);
	before = executed();
	ret = bed_open(&bed, BYSTANDER_LEN, NULL);
	if (!ret)
		ret = lanes_start();
	if (!ret)
		ret = pthread_create(&vandal, NULL, vandal_run, NULL);
	if (ret) {
		ktap_result(false, "cannot start: %s", strerror(abs(ret)));
		return ktap_end();
	}
	good = watch(&bed, before, &done);
	__atomic_store_n(&vandal_stop, true, __ATOMIC_RELAXED);
	pthread_join(vandal, NULL);
	stopped = lanes_stop();
	ktap_result(stopped && done > 0 && done >= (long long)opts.least,
		    "rings: %s descriptors were executed", grouped(done));
	ktap_result(good && bystander_works(&bed, ~0U), "bystanders go on");
	ktap_result(comes_to_rest(), "the engine comes to rest");
	ktap_result(lanes_close(),
		    "everything can be destroyed; guards and secrets are intact");
	ktap_result(!bed_close(&bed), "so can the bystanders");
	return ktap_end();
}
