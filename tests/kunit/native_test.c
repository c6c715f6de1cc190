// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Injected descriptors, as a thread runs them, and how many of them one turn does. Datagrams
 * about links, which wait for their FIFO only. The test's FIFOs are known to it alone. An
 * injector is parked, and the test runs it itself.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/percpu.h>
#include <linux/sizes.h>

#include "base/stats.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "engine_common.h"
#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/ring_mem.h"
#include "vrnic.h"

#define TURN	16	/* descriptors of a turn */
#define SLOTS	256

struct bed {
	struct vrnic_dev dev;
	struct vrnic_fifo fifo;
};

static void free_stats(void *stats)
{
	free_percpu((void __percpu *)stats);
}

static void fifo_end(void *arg)
{
	struct vrnic_fifo *fifo = arg;

	vrnic_hellos_stop(fifo);
	vrnic_rgets_park(fifo);
	vrnic_rgets_free(fifo);
	vrnic_ring_free(&fifo->receive);
	/* its last runner may still be looking at it */
	synchronize_rcu();
}

static void add_cleanup(struct kunit *test, void (*fn)(void *arg), void *arg)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fn, arg));
}

static void fifo_begin(struct kunit *test, struct bed *bed, struct vrnic_fifo *fifo)
{
	fifo->dev = &bed->dev;
	fifo->crew = bed->dev.engine.own;
	refcount_set(&fifo->refs, 1);
	spin_lock_init(&fifo->receive_lock);
	init_waitqueue_head(&fifo->wait);
	INIT_LIST_HEAD(&fifo->stalled);
	INIT_LIST_HEAD(&fifo->links);
	mutex_init(&fifo->ctrl);
	vrnic_rgets_init(fifo);
	vrnic_hellos_init(fifo);
	KUNIT_ASSERT_EQ(test, 0, vrnic_ring_alloc(&fifo->receive, SLOTS,
						  VRNIC_SLOT_SIZE, GFP_KERNEL));
	add_cleanup(test, fifo_end, fifo);
}

static int bed_init(struct kunit *test)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	bed->dev.stats = alloc_percpu(struct vrnic_stats);
	KUNIT_ASSERT_NOT_NULL(test, (void *)bed->dev.stats);
	add_cleanup(test, free_stats, (void *)bed->dev.stats);
	start_engine(test, &bed->dev.engine, 1);
	fifo_begin(test, bed, &bed->fifo);
	test->priv = bed;
	return 0;
}

static enum vrnic_verdict turn(struct vrnic_source *src, struct vrnic_budget *budget)
{
	*budget = (struct vrnic_budget){ .bytes = SZ_1M, .descs = TURN };
	return vrnic_rget_ops.run(&src->inj.run, budget);
}

/* A descriptor of a peer that does not exist any more. */
static int deliver(struct bed *bed)
{
	struct vrnic_address nobody = { .fifo = U32_MAX };
	struct vrnic_ndesc d = { .opcode = VRNIC_NOP_NOTIFY, .num_slots = 1 };
	struct vrnic_seg seg = { .kva = &d, .len = sizeof(d) };

	return vrnic_rget_deliver(&bed->fifo, &nobody, &bed->fifo, NULL, &seg, false);
}

static struct vrnic_source *only_source(struct bed *bed)
{
	struct vrnic_source *src;
	int bucket;

	hash_for_each(bed->fifo.rgets.sources, bucket, src, node)
		return src;
	return NULL;
}

/* It is dropped, and that is work. */
static void dropped_descriptors_use_up_the_budget(struct kunit *test)
{
	struct bed *bed = test->priv;
	struct vrnic_source *src;
	struct vrnic_budget budget;
	int i;

	KUNIT_ASSERT_EQ(test, 0, deliver(bed));
	src = only_source(bed);
	KUNIT_ASSERT_NOT_NULL(test, src);
	/* before or after that first one was dropped */
	vrnic_park(&src->inj.run);
	for (i = 0; i < 3 * TURN; i++)
		KUNIT_EXPECT_EQ(test, 0, deliver(bed));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, VRNIC_MORE, turn(src, &budget));
		KUNIT_EXPECT_EQ(test, 0, budget.descs);
	}
	KUNIT_EXPECT_EQ(test, VRNIC_IDLE, turn(src, &budget));
	KUNIT_EXPECT_LE(test, TURN - 1, budget.descs);
	vrnic_unpark(&src->inj.run);
}

static void send_notice(struct kunit *test, u32 peer)
{
	struct vrnic_address address = { .fifo = peer };
	struct vrnic_rget *notice = vrnic_notice_new(&address, 0, GFP_KERNEL);
	struct bed *bed = test->priv;

	KUNIT_EXPECT_NOT_NULL(test, notice);
	if (notice)
		vrnic_notice_send(&bed->fifo, notice);
}

/* Each peer that went makes a record, and that is work. */
static void notices_use_up_the_budget(struct kunit *test)
{
	struct bed *bed = test->priv;
	struct vrnic_source *src = &bed->fifo.rgets.notices;
	struct vrnic_budget budget;
	int i;

	vrnic_park(&src->inj.run);
	for (i = 0; i < 2 * TURN; i++)
		send_notice(test, i + 1);
	for (i = 1; i <= 2; i++) {
		KUNIT_EXPECT_EQ(test, VRNIC_MORE, turn(src, &budget));
		KUNIT_EXPECT_EQ(test, i * TURN, bed->fifo.receive.idx);
	}
	KUNIT_EXPECT_EQ(test, VRNIC_IDLE, turn(src, &budget));
	vrnic_unpark(&src->inj.run);
}

/* ---- datagrams about links ---- */

#define HELD	20	/* FIFOs whose owners have their locks */
#define WAITING	3	/* datagrams for each */
#define PATIENCE_S	60

/* Number @host says goodbye, which needs nothing but the FIFO's lock. */
static bool say_bye(struct vrnic_fifo *fifo, u8 host)
{
	struct vrnic_heard heard = {
		.h = { .kind = VRNIC_HELLO_BYE, .nonce = 1 },
	};

	heard.from.raw[0] = host;
	return vrnic_hello_wait(fifo, &heard);
}

static unsigned int waiting(struct vrnic_fifo *fifo)
{
	return READ_ONCE(fifo->hellos.queue.nr[VRNIC_HELLO_BYE]);
}

/* A thread of the crew looks at all of it, some time. */
static bool is_served(struct vrnic_fifo *fifo)
{
	unsigned long end = jiffies + PATIENCE_S * HZ;

	while (waiting(fifo) && time_before(jiffies, end))
		usleep_range(1000, 2000);
	return !waiting(fifo);
}

/* The crew has one thread: if it waited for one FIFO, no other would be served. */
static void who_has_his_fifo_locked_holds_up_nobody_else(struct kunit *test)
{
	struct bed *bed = test->priv;
	struct vrnic_fifo *held;
	int i, n;

	held = kunit_kcalloc(test, HELD, sizeof(*held), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, held);
	for (i = 0; i < HELD; i++) {
		fifo_begin(test, bed, &held[i]);
		KUNIT_EXPECT_TRUE(test, mutex_trylock(&held[i].ctrl));
		for (n = 0; n < WAITING; n++)
			KUNIT_EXPECT_TRUE(test, say_bye(&held[i], 0));
	}
	for (n = 0; n < WAITING; n++)
		KUNIT_EXPECT_TRUE(test, say_bye(&bed->fifo, 0));
	KUNIT_EXPECT_TRUE(test, is_served(&bed->fifo));
	for (i = 0; i < HELD; i++)
		KUNIT_EXPECT_EQ(test, WAITING, waiting(&held[i]));
	for (i = 0; i < HELD; i++) {
		mutex_unlock(&held[i].ctrl);
		KUNIT_EXPECT_TRUE(test, is_served(&held[i]));
	}
}

/* Datagrams that wait for a FIFO are bounded, in all and for each host, and go with it. */
static void datagrams_that_wait_are_bounded(struct kunit *test)
{
	struct bed *bed = test->priv;
	struct vrnic_fifo *fifo = &bed->fifo;
	unsigned int i, host = 0, all = 0;

	vrnic_park(&fifo->hellos.run);
	for (i = 0; i < 200; i++)
		host += say_bye(fifo, 0);
	KUNIT_EXPECT_EQ(test, 32, host);
	for (i = 0; i < 200; i++)
		all += say_bye(fifo, 1 + i);
	KUNIT_EXPECT_EQ(test, 128, host + all);
	KUNIT_EXPECT_EQ(test, 128, waiting(fifo));
	vrnic_unpark(&fifo->hellos.run);
}

/* One unit of the budget for each. */
static void datagrams_use_up_the_budget(struct kunit *test)
{
	struct vrnic_budget budget = { .bytes = SZ_1M, .descs = TURN };
	struct bed *bed = test->priv;
	struct vrnic_fifo *fifo = &bed->fifo;
	struct vrnic_runnable *r = &fifo->hellos.run;
	int i;

	vrnic_park(r);
	for (i = 0; i < TURN + 1; i++)
		KUNIT_EXPECT_TRUE(test, say_bye(fifo, i));
	KUNIT_EXPECT_EQ(test, VRNIC_MORE, r->ops->run(r, &budget));
	KUNIT_EXPECT_EQ(test, 1, waiting(fifo));
	budget.descs = TURN;
	KUNIT_EXPECT_EQ(test, VRNIC_IDLE, r->ops->run(r, &budget));
	KUNIT_EXPECT_EQ(test, TURN - 1, budget.descs);
	vrnic_unpark(r);
}

static struct kunit_case native_cases[] = {
	KUNIT_CASE(dropped_descriptors_use_up_the_budget),
	KUNIT_CASE(notices_use_up_the_budget),
	KUNIT_CASE(who_has_his_fifo_locked_holds_up_nobody_else),
	KUNIT_CASE(datagrams_that_wait_are_bounded),
	KUNIT_CASE(datagrams_use_up_the_budget),
	{}
};

static struct kunit_suite native_suite = {
	.name = "vrnic_native",
	.init = bed_init,
	.test_cases = native_cases,
};

kunit_test_suite(native_suite);
