// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine, with a runnable that is run for packets and for descriptors, as that of
 * a queue pair on the wire: softirqs are held off, the run bit is free when softirqs run,
 * and a runner that waits goes on.
 */

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/sched.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "engine/threads.h"
#include "engine_common.h"

#define CALLERS		4
#define CALLS		2000

/**
 * struct probe - a runnable that looks at how it is run
 * @r: for the engine
 * @peer: softirq that answers what the next run sends
 * @runs: times that it was run
 * @packets: came from the network
 * @descs: were posted, and announced after that
 * @seen_packets: packets of @packets that runs saw
 * @seen_descs: descriptors of @descs that runs with @rung set saw
 * @inside: runners that run it now
 * @overlaps: times that there was more than one runner
 * @verdict: result of the next run; VRNIC_IDLE afterwards
 * @answered: the next run's peer answers at once
 * @announced: so many further runs announce a descriptor
 * @ordered: the next run sends a packet that must not be overtaken
 * @queue: rounds that packets have to wait; NULL: not looked at
 * @queued: value of @queue at the last run
 * @leaves: the next run leaves work to another runner
 * @stream: runs report that the ring's owner posts a stream
 * @taken: descriptors that the next run takes
 * @parcel: runs leave one
 * @linger: the next run goes on until another runner waits for it
 * @was_waited: another runner did wait
 * @sleepy: a run was allowed to sleep
 * @rung: vrnic_budget.rung of the last run
 * @busy_then: the peer found it busy
 * @delivered: parcels that were delivered
 * @held: parcels that were delivered while the run bit was held
 * @gathers: calls of vrnic_runnable_ops.gather
 * @test: the test's task, and @tested: runs by this task
 * @who: task of the last run
 */
struct probe {
	struct vrnic_runnable r;
	struct tasklet_struct peer;
	atomic_t runs;
	atomic_t packets;
	atomic_t descs;
	int seen_packets;
	int seen_descs;
	atomic_t inside;
	int overlaps;
	enum vrnic_verdict verdict;
	bool answered;
	int announced;
	bool ordered;
	const int *queue;
	int queued;
	bool leaves;
	bool stream;
	u32 taken;
	bool parcel;
	bool linger;
	bool was_waited;
	bool sleepy;
	bool rung;
	bool busy_then;
	atomic_t delivered;
	int held;
	int gathers;
	struct task_struct *test;
	int tested;
	struct task_struct *who;
};

/**
 * struct rig - an engine with a runnable, beside a network
 * @engine: the engine
 * @p: what it runs
 * @callers: threads that have not ended
 * @dev: network device
 * @napi: its receiver
 * @waiting: rounds of softirqs until no packet waits there; less than 0: for ever
 * @elsewhere: CPU of the thread that kicking_elsewhere() runs on
 */
struct rig {
	struct vrnic_engine engine;
	struct probe *p;
	atomic_t callers;
	struct net_device *dev;
	struct napi_struct napi;
	int waiting;
	unsigned int elsewhere;
};

static bool is_busy(const struct probe *p)
{
	return test_bit(VRNIC_RUN_BUSY, &p->r.state);
}

static void linger(struct probe *p)
{
	unsigned long limit = jiffies + PATIENCE;

	p->linger = false;
	while (!vrnic_is_waited(&p->r) && time_before(jiffies, limit))
		cpu_relax();
	WRITE_ONCE(p->was_waited, vrnic_is_waited(&p->r));
}

static enum vrnic_verdict probe_run(struct vrnic_runnable *r,
				    struct vrnic_budget *budget)
{
	struct probe *p = container_of(r, struct probe, r);
	enum vrnic_verdict verdict = p->verdict;

	if (atomic_inc_return(&p->inside) > 1)
		p->overlaps++;
	p->verdict = VRNIC_IDLE;
	p->who = current;
	p->tested += current == p->test && !in_serving_softirq();
	p->sleepy |= budget->atomic && !softirq_count();
	p->rung = budget->rung;
	budget->stream = p->stream;
	budget->taken += p->taken;
	p->taken = 0;
	if (budget->rung)
		p->seen_descs = atomic_read(&p->descs);
	p->seen_packets = atomic_read(&p->packets);
	if (p->answered)
		tasklet_schedule(&p->peer);
	p->answered = false;
	if (p->announced) {
		p->announced--;
		vrnic_queue(r);
	}
	budget->left = p->leaves;
	p->leaves = false;
	if (p->queue)
		p->queued = *p->queue;
	if (p->ordered)
		vrnic_sends_in_order(r);
	p->ordered = false;
	if (budget->atomic && p->parcel)
		budget->parcel.full = true;
	atomic_dec(&p->inside);
	atomic_inc(&p->runs);
	if (p->linger)
		linger(p);
	return verdict;
}

static bool probe_gather(struct vrnic_runnable *r, bool on)
{
	struct probe *p = container_of(r, struct probe, r);

	p->gathers++;
	/* something comes in just now */
	if (on)
		vrnic_poke(r, false);
	return false;
}

static bool probe_atomic(struct vrnic_runnable *r)
{
	return true;
}

static void probe_deliver(struct vrnic_runnable *r, struct vrnic_parcel *parcel)
{
	struct probe *p = container_of(r, struct probe, r);

	p->held += is_busy(p);
	atomic_inc(&p->delivered);
}

static const struct vrnic_runnable_ops probe_ops = {
	.run = probe_run,
	.gather = probe_gather,
	.atomic = probe_atomic,
	.deliver = probe_deliver,
};

static void answer(struct tasklet_struct *peer)
{
	struct probe *p = from_tasklet(p, peer, peer);

	p->busy_then = is_busy(p);
	atomic_inc(&p->packets);
	vrnic_poke(&p->r, true);
}

/* Before the runnable that it pokes is retired. */
static void kill_peer(void *peer)
{
	tasklet_kill(peer);
}

static int wire_init(struct kunit *test)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);

	if (!rig)
		return -ENOMEM;
	rig->p = kunit_kzalloc(test, sizeof(*rig->p), GFP_KERNEL);
	if (!rig->p)
		return -ENOMEM;
	test->priv = rig;
	start_engine(test, &rig->engine, vrnic_engine_threads());
	add_runnable(test, &rig->engine, &rig->p->r, &probe_ops);
	tasklet_setup(&rig->p->peer, answer);
	return kunit_add_action_or_reset(test, kill_peer, &rig->p->peer);
}

static struct probe *probe(struct kunit *test)
{
	struct rig *rig = test->priv;

	return rig->p;
}

static void poke(struct probe *p, bool small)
{
	local_bh_disable();
	vrnic_poke(&p->r, small);
	local_bh_enable();
}

static void expect_at_rest(struct kunit *test, struct probe *p, int runs)
{
	KUNIT_EXPECT_TRUE(test, eventually(&p->runs, runs));
	rest(&p->r);
	settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&p->runs), runs);
	KUNIT_EXPECT_FALSE(test, is_busy(p));
	KUNIT_EXPECT_FALSE(test, p->sleepy);
	KUNIT_EXPECT_EQ(test, p->overlaps, 0);
}

static void a_kick_holds_softirqs_off(struct kunit *test)
{
	struct probe *p = probe(test);

	p->sleepy = false;
	vrnic_kick(&p->r);
	KUNIT_EXPECT_EQ(test, softirq_count(), 0);
	KUNIT_EXPECT_PTR_EQ(test, p->who, current);
	expect_at_rest(test, p, 1);
}

/* A peer that answers at once is served before the kick returns, but not by it. */
static void an_answer_finds_it_free(struct kunit *test)
{
	struct probe *p = probe(test);

	vrnic_kick(&p->r);
	p->answered = true;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 3);
	KUNIT_EXPECT_FALSE(test, p->busy_then);
	KUNIT_EXPECT_EQ(test, p->seen_packets, 1);
}

/* Others announce all the while: a caller serves them for a while, then goes. */
static void a_call_has_one_budget(struct kunit *test)
{
	struct probe *p = probe(test);

	p->test = current;
	p->announced = 10000;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 10001);
	KUNIT_EXPECT_GT(test, p->tested, 1);
	KUNIT_EXPECT_LT(test, p->tested, 8000);
}

static int kicking_thread(void *arg)
{
	struct rig *rig = arg;

	vrnic_kick(&rig->p->r);
	atomic_dec(&rig->callers);
	return 0;
}

/* What one thread sends is out of this CPU's queues before another one may send. */
static void of_several_callers_each_keeps_it(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct probe *p = rig->p;

	vrnic_kick(&p->r);
	start_caller(test, kicking_thread, rig, &rig->callers);
	KUNIT_ASSERT_TRUE(test, eventually(&rig->callers, 0));
	p->answered = true;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 4);
	KUNIT_EXPECT_TRUE(test, p->busy_then);
}

/* While more is to be sent than may be under way, the sender takes the answers. */
static void an_expected_answer_is_waited_for(struct kunit *test)
{
	struct probe *p = probe(test);

	p->answered = true;
	p->verdict = VRNIC_EXPECTS;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 2);
	KUNIT_EXPECT_TRUE(test, p->busy_then);
	KUNIT_EXPECT_PTR_EQ(test, p->who, current);
	KUNIT_EXPECT_EQ(test, p->seen_packets, 1);
}

static void a_parcel_is_delivered_when_it_is_free(struct kunit *test)
{
	struct probe *p = probe(test);

	vrnic_kick(&p->r);
	p->parcel = true;
	vrnic_kick(&p->r);
	poke(p, true);
	expect_at_rest(test, p, 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->delivered), 2);
	KUNIT_EXPECT_EQ(test, p->held, 0);
	/* nor is one lost if a thread goes on, whose runs have none, or if it is held on to */
	p->verdict = VRNIC_MORE;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 5);
	p->verdict = VRNIC_EXPECTS;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 6);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->delivered), 4);
}

/*
 * Packets of a softirq may lie in a queue of its CPU. Until softirqs have gone on,
 * no other runner may send, and no thread runs the runnable.
 */
static void what_a_poke_sent_is_not_overtaken(struct kunit *test)
{
	struct probe *p = probe(test);

	p->ordered = true;
	local_bh_disable();
	vrnic_poke(&p->r, false);
	KUNIT_EXPECT_TRUE(test, is_busy(p));
	vrnic_poke(&p->r, false);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->runs), 1);
	local_bh_enable();
	/* the runner that did not get the bit is served */
	expect_at_rest(test, p, 2);
}

static void a_thread_waits_for_what_a_poke_sent(struct kunit *test)
{
	struct probe *p = probe(test);

	p->ordered = true;
	p->verdict = VRNIC_MORE;
	local_bh_disable();
	vrnic_poke(&p->r, true);
	KUNIT_EXPECT_TRUE(test, is_busy(p));
	KUNIT_EXPECT_TRUE(test, list_empty(&p->r.link));
	mdelay(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->runs), 1);
	local_bh_enable();
	expect_at_rest(test, p, 2);
	KUNIT_EXPECT_PTR_NE(test, p->who, current);
}

static int napi_round(struct napi_struct *napi, int budget)
{
	struct rig *rig = container_of(napi, struct rig, napi);

	if (!READ_ONCE(rig->waiting)) {
		napi_complete(napi);
		return 0;
	}
	if (rig->waiting > 0)
		rig->waiting--;
	return budget;
}

static void end_traffic(void *arg)
{
	struct rig *rig = arg;

	WRITE_ONCE(rig->waiting, 0);
	napi_disable(&rig->napi);
	netif_napi_del(&rig->napi);
	free_netdev(rig->dev);
}

/* Packets wait in this CPU's queue for @rounds, and some of them are a softirq's. */
static void send_behind_others(struct kunit *test, int rounds)
{
	struct rig *rig = test->priv;
	struct probe *p = rig->p;

	rig->dev = alloc_netdev_dummy(0);
	KUNIT_ASSERT_NOT_NULL(test, rig->dev);
	netif_napi_add(rig->dev, &rig->napi, napi_round);
	napi_enable(&rig->napi);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_traffic, rig), 0);
	p->ordered = true;
	local_bh_disable();
	rig->waiting = rounds;
	napi_schedule(&rig->napi);
	vrnic_poke(&p->r, false);
	vrnic_poke(&p->r, false);
	local_bh_enable();
}

static void what_waits_behind_others_is_not_overtaken(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct probe *p = rig->p;

	p->queue = &rig->waiting;
	send_behind_others(test, 5);
	expect_at_rest(test, p, 2);
	KUNIT_EXPECT_EQ(test, p->queued, 0);
}

/* The tasklet does not wait for later packets. */
static void a_flood_keeps_nobody(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct probe *p = rig->p;

	send_behind_others(test, -1);
	expect_at_rest(test, p, 2);
	KUNIT_EXPECT_EQ(test, READ_ONCE(rig->waiting), -1);
}

/* It comes to rest while it may not be run. */
static void what_a_poke_sent_is_not_left_when_it_is_parked(struct kunit *test)
{
	struct probe *p = probe(test);

	p->ordered = true;
	local_bh_disable();
	vrnic_poke(&p->r, true);
	set_bit(VRNIC_RUN_PARKED, &p->r.state);
	local_bh_enable();
	vrnic_park(&p->r);
	vrnic_unpark(&p->r);
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 2);
}

static void a_poke_announces_nothing(struct kunit *test)
{
	struct probe *p = probe(test);

	poke(p, false);
	KUNIT_EXPECT_FALSE(test, p->rung);
	vrnic_kick(&p->r);
	KUNIT_EXPECT_TRUE(test, p->rung);
	poke(p, true);
	KUNIT_EXPECT_FALSE(test, p->rung);
	expect_at_rest(test, p, 3);
}

/* A runner that does not get the bit leaves its news to the holder. */
static void a_poke_takes_what_is_announced_meanwhile(struct kunit *test)
{
	struct probe *p = probe(test);

	p->announced = true;
	poke(p, false);
	KUNIT_EXPECT_TRUE(test, p->rung);
	expect_at_rest(test, p, 2);
}

/* If no runner comes for work that a run left, the next run takes it at once. */
static void what_is_left_is_not_lost(struct kunit *test)
{
	struct probe *p = probe(test);

	p->leaves = true;
	poke(p, true);
	expect_at_rest(test, p, 2);
	p->leaves = true;
	vrnic_kick(&p->r);
	expect_at_rest(test, p, 4);
	p->leaves = true;
	p->ordered = true;
	poke(p, false);
	expect_at_rest(test, p, 6);
}

/* Something comes in when the kick is over but for its accounts. */
static void a_late_packet_is_not_left(struct kunit *test)
{
	struct probe *p = probe(test);

	p->stream = true;
	p->taken = 1;
	vrnic_kick(&p->r);
	KUNIT_EXPECT_GE(test, p->gathers, 1);
	KUNIT_EXPECT_FALSE(test, is_busy(p));
	KUNIT_EXPECT_GE(test, atomic_read(&p->runs), 2);
	vrnic_kick(&p->r);
	KUNIT_EXPECT_GE(test, atomic_read(&p->runs), 3);
}

static int kicking_elsewhere(void *arg)
{
	const struct rig *rig = arg;

	set_cpus_allowed_ptr(current, cpumask_of(rig->elsewhere));
	return kicking_thread(arg);
}

/*
 * A runner that finds a brief one waits, and goes on itself. Each stays on a CPU of its own: a
 * lingering runner is not preempted, so on the same CPU the other one could not wait for it.
 */
static void who_waits_goes_on(struct kunit *test)
{
	unsigned long limit = jiffies + PATIENCE;
	struct rig *rig = test->priv;
	struct probe *p = rig->p;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	migrate_disable();
	rig->elsewhere = cpumask_any_but(cpu_online_mask, smp_processor_id());
	p->linger = true;
	start_caller(test, kicking_elsewhere, rig, &rig->callers);
	while (!atomic_read(&p->runs) && time_before(jiffies, limit))
		cpu_relax();
	/* on a slow machine a wait may end before the other one looks */
	while (!READ_ONCE(p->was_waited) && time_before(jiffies, limit))
		vrnic_kick(&p->r);
	migrate_enable();
	KUNIT_EXPECT_TRUE(test, p->was_waited);
	KUNIT_ASSERT_TRUE(test, eventually(&rig->callers, 0));
	KUNIT_EXPECT_GE(test, atomic_read(&p->runs), 2);
	KUNIT_EXPECT_FALSE(test, is_busy(p));
	KUNIT_EXPECT_EQ(test, p->overlaps, 0);
}

static void announce(void *arg, unsigned int how)
{
	struct probe *p = arg;

	switch (how % 4) {
	case 0:
		atomic_inc(&p->descs);
		vrnic_queue(&p->r);
		break;
	case 1:
		WRITE_ONCE(p->ordered, how & 8);
		atomic_inc(&p->packets);
		poke(p, how & 4);
		break;
	default:
		atomic_inc(&p->descs);
		vrnic_kick(&p->r);
	}
}

static int caller_thread(void *arg)
{
	struct rig *rig = arg;

	random_calls(announce, rig->p, (unsigned long)current, CALLS);
	atomic_dec(&rig->callers);
	return 0;
}

/* The last packet and the last descriptor were seen, and never were two inside. */
static void many_callers(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct probe *p = rig->p;
	int i;

	p->parcel = true;
	for (i = 0; i < CALLERS; i++)
		start_caller(test, caller_thread, rig, &rig->callers);
	KUNIT_ASSERT_TRUE(test, eventually(&rig->callers, 0));
	rest(&p->r);
	KUNIT_EXPECT_FALSE(test, is_busy(p));
	KUNIT_EXPECT_EQ(test, p->seen_packets, atomic_read(&p->packets));
	KUNIT_EXPECT_EQ(test, p->seen_descs, atomic_read(&p->descs));
	KUNIT_EXPECT_EQ(test, atomic_read(&p->packets) + atomic_read(&p->descs),
			CALLERS * CALLS);
	KUNIT_EXPECT_EQ(test, p->overlaps, 0);
	KUNIT_EXPECT_FALSE(test, p->sleepy);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(a_kick_holds_softirqs_off),
	KUNIT_CASE(an_answer_finds_it_free),
	KUNIT_CASE(a_call_has_one_budget),
	KUNIT_CASE(of_several_callers_each_keeps_it),
	KUNIT_CASE(an_expected_answer_is_waited_for),
	KUNIT_CASE(a_parcel_is_delivered_when_it_is_free),
	KUNIT_CASE(what_a_poke_sent_is_not_overtaken),
	KUNIT_CASE(a_thread_waits_for_what_a_poke_sent),
	KUNIT_CASE(what_waits_behind_others_is_not_overtaken),
	KUNIT_CASE(a_flood_keeps_nobody),
	KUNIT_CASE(what_a_poke_sent_is_not_left_when_it_is_parked),
	KUNIT_CASE(a_poke_announces_nothing),
	KUNIT_CASE(a_poke_takes_what_is_announced_meanwhile),
	KUNIT_CASE(what_is_left_is_not_lost),
	KUNIT_CASE(a_late_packet_is_not_left),
	KUNIT_CASE(who_waits_goes_on),
	KUNIT_CASE(many_callers),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "vrnic_engine_wire",
	.init = wire_init,
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);
