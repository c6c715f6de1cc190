// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engine, with a runnable that only counts: one runner at a time, no work
 * left behind, none done in a ring that is parked.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include "engine/budget.h"
#include "engine/crew.h"
#include "engine/engine.h"
#include "engine/threads.h"
#include "engine_common.h"

#define KICKERS		4
#define KICKS		500

/**
 * struct counter - a runnable that counts
 * @r: for the engine
 * @runs: times that it was run
 * @posted: work that was announced
 * @taken: work of @posted that a run has seen
 * @inside: runners that run it now
 * @overlaps: times that there was more than one runner
 * @more: so many further runs return VRNIC_MORE
 * @kick_self: so many further runs announce new work
 * @stream: runs report that the ring's owner posts a stream
 * @brings: descriptors that the next run takes
 * @gathers: the engine allows doorbells to be few
 * @forgotten: work came in without a doorbell
 * @spared: the process is not to ring
 * @wait_ns: the operation after those of the next run has to wait so long
 * @gives_up: the next run ends the ring's wait
 * @delay_ns: the next run asks for another one after this time
 * @sleep_ms: a run takes so long
 * @until: the next run ends when this completes
 * @stuck: @until did not complete in time
 * @test: the test's task, and @tested: runs by this task
 * @who: task of the last run, and @noio: its allocations start no I/O
 * @when: time of the last run
 * @entered: a run began
 * @order: where runs note their @id
 * @id: letter of this runnable
 */
struct counter {
	struct vrnic_runnable r;
	atomic_t runs;
	atomic_t posted;
	int taken;
	atomic_t inside;
	int overlaps;
	int more;
	int kick_self;
	bool stream;
	u32 brings;
	bool gathers;
	bool forgotten;
	bool spared;
	u64 wait_ns;
	bool gives_up;
	u64 delay_ns;
	unsigned int sleep_ms;
	struct completion *until;
	bool stuck;
	struct task_struct *test;
	int tested;
	struct task_struct *who;
	bool noio;
	u64 when;
	struct completion entered;
	char *order;
	char id;
};

/* struct rig - an engine with one thread, another with two, and threads that kick */
struct rig {
	struct vrnic_engine engine;
	struct vrnic_engine two;
	struct counter *a;
	struct counter *b;
	struct counter *holder;
	atomic_t kickers;
};

static void note(struct counter *c)
{
	size_t n;

	c->who = current;
	c->tested += current == c->test;
	c->noio = current->flags & PF_MEMALLOC_NOIO;
	c->when = ktime_get_ns();
	if (c->order) {
		n = strlen(c->order);
		c->order[n] = c->id;
	}
	complete(&c->entered);
}

static enum vrnic_verdict count_run(struct vrnic_runnable *r,
				    struct vrnic_budget *budget)
{
	struct counter *c = container_of(r, struct counter, r);
	u64 delay = c->delay_ns;

	if (atomic_inc_return(&c->inside) > 1)
		c->overlaps++;
	c->taken = atomic_read(&c->posted);
	budget->stream = c->stream;
	budget->taken += c->brings;
	c->brings = 0;
	note(c);
	if (c->sleep_ms)
		msleep(c->sleep_ms);
	if (c->until)
		c->stuck = !wait_for_completion_timeout(c->until, PATIENCE);
	c->until = NULL;
	/* a second runner would get in here */
	cond_resched();
	c->delay_ns = 0;
	if (delay)
		vrnic_queue_after(r, delay);
	if (c->kick_self) {
		c->kick_self--;
		vrnic_kick(r);
	}
	atomic_dec(&c->inside);
	atomic_inc(&c->runs);
	if (!c->more)
		return VRNIC_IDLE;
	c->more--;
	return VRNIC_MORE;
}

static bool count_gather(struct vrnic_runnable *r, bool on)
{
	struct counter *c = container_of(r, struct counter, r);

	WRITE_ONCE(c->gathers, on);
	return !on && c->forgotten;
}

static const struct vrnic_runnable_ops counter_ops = {
	.run = count_run,
	.gather = count_gather,
};

static struct counter *new_counter(struct kunit *test, struct vrnic_engine *engine, char id,
				   const struct vrnic_runnable_ops *ops)
{
	struct counter *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->id = id;
	c->test = current;
	init_completion(&c->entered);
	add_runnable(test, engine, &c->r, ops);
	return c;
}

static int engine_init(struct kunit *test)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);

	if (!rig)
		return -ENOMEM;
	start_engine(test, &rig->engine, 1);
	start_engine(test, &rig->two, 2);
	test->priv = rig;
	rig->a = new_counter(test, &rig->engine, 'a', &counter_ops);
	rig->b = new_counter(test, &rig->engine, 'b', &counter_ops);
	rig->holder = new_counter(test, &rig->engine, '-', &counter_ops);
	return 0;
}

static void kick_runs_here(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	vrnic_kick(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
	KUNIT_EXPECT_PTR_EQ(test, c->who, current);
	settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
}

#define HOLD_MS	300

/* Keep the thread busy for a while, so that queued runnables stay queued. */
static void hold_thread(struct kunit *test)
{
	struct rig *rig = test->priv;

	rig->holder->sleep_ms = HOLD_MS;
	vrnic_queue(&rig->holder->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&rig->holder->entered,
							    PATIENCE));
}

static void queue_runs_in_the_thread(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	hold_thread(test);
	vrnic_queue(&c->r);
	vrnic_queue(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 0);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&c->entered, PATIENCE));
	KUNIT_EXPECT_PTR_EQ(test, c->who, rig->engine.own->threads[0].task);
	/* the second call came before the first was served: one run does */
	settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
}

/* The kernel may write memory out over its rings, so allocations must start no I/O. */
static void the_thread_allocates_without_io(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	vrnic_queue(&c->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&c->entered, PATIENCE));
	KUNIT_EXPECT_TRUE(test, c->noio);
}

/* Work beyond the caller's budget goes to the thread. */
static void rest_goes_to_the_thread(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	c->more = 3;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 4));
	KUNIT_EXPECT_PTR_EQ(test, c->who, rig->engine.own->threads[0].task);
	settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 4);
}

static void work_during_a_run_is_not_lost(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	c->kick_self = true;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 2);
	c->kick_self = true;
	vrnic_queue(&c->r);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 4));
	KUNIT_EXPECT_EQ(test, c->overlaps, 0);
}

/* Others ring all the while: a caller serves them for a while, then goes. */
static void a_call_has_one_budget(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	c->kick_self = 1000;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 1001));
	KUNIT_EXPECT_GT(test, c->tested, 1);
	KUNIT_EXPECT_LT(test, c->tested, 100);
	KUNIT_EXPECT_EQ(test, c->overlaps, 0);
}

static void parked_does_not_run(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	vrnic_park(&c->r);
	vrnic_kick(&c->r);
	vrnic_queue(&c->r);
	settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 0);
	vrnic_unpark(&c->r);
	vrnic_kick(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
}

/* Between vrnic_queue() and the thread's turn. */
static void park_overtakes_the_queue(struct kunit *test)
{
	struct rig *rig = test->priv;

	hold_thread(test);
	vrnic_queue(&rig->a->r);
	vrnic_park(&rig->a->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->a->runs), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&rig->a->r.link));
	vrnic_unpark(&rig->a->r);
	/* until the holder sleeps no more */
	msleep(HOLD_MS);
	settle();
	vrnic_kick(&rig->a->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->a->runs), 1);
}

/* Parking does not wait for a thread either, which may have no CPU time. */
static void park_does_not_wait_for_a_turn(struct kunit *test)
{
	struct rig *rig = test->priv;
	DECLARE_COMPLETION_ONSTACK(parked);

	rig->holder->until = &parked;
	vrnic_queue(&rig->holder->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&rig->holder->entered,
							    PATIENCE));
	vrnic_queue(&rig->a->r);
	vrnic_park(&rig->a->r);
	complete(&parked);
	vrnic_unpark(&rig->a->r);
	KUNIT_EXPECT_TRUE(test, eventually(&rig->holder->runs, 1));
	KUNIT_EXPECT_FALSE(test, rig->holder->stuck);
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->a->runs), 0);
}

/* A busy thread delays no work that another thread could do. */
static void another_thread_takes_what_waits(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *first = new_counter(test, &rig->two, '1', &counter_ops);
	struct counter *second = new_counter(test, &rig->two, '2', &counter_ops);

	first->until = &second->entered;
	vrnic_queue(&first->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&first->entered, PATIENCE));
	vrnic_queue(&second->r);
	KUNIT_EXPECT_TRUE(test, eventually(&first->runs, 1));
	KUNIT_EXPECT_FALSE(test, first->stuck);
	KUNIT_EXPECT_EQ(test, atomic_read(&second->runs), 1);
	KUNIT_EXPECT_PTR_NE(test, first->who, second->who);
}

/* A ring belongs to no thread: a free thread takes each turn. */
static void no_ring_belongs_to_a_thread(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *first = new_counter(test, &rig->two, '1', &counter_ops);
	struct counter *second = new_counter(test, &rig->two, '2', &counter_ops);
	struct counter *third = new_counter(test, &rig->two, '3', &counter_ops);
	DECLARE_COMPLETION_ONSTACK(end);

	first->until = &third->entered;
	second->until = &end;
	vrnic_queue(&first->r);
	vrnic_queue(&second->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&first->entered, PATIENCE));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&second->entered, PATIENCE));
	/* both threads are busy; the first turn that ends is the second one's */
	vrnic_queue(&third->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&third->runs), 0);
	complete(&end);
	KUNIT_EXPECT_TRUE(test, eventually(&first->runs, 1));
	KUNIT_EXPECT_FALSE(test, first->stuck);
	KUNIT_EXPECT_PTR_EQ(test, third->who, second->who);
}

/* The module is loaded by a process in the root cgroups. */
static void in_the_root_cgroups_the_devices_own_crew_serves(struct kunit *test)
{
	struct vrnic_engine *engine = &((struct rig *)test->priv)->engine;
	struct vrnic_crew *crew = vrnic_crew_get(engine);

	KUNIT_EXPECT_PTR_EQ(test, crew, engine->own);
	KUNIT_EXPECT_TRUE(test, list_empty(&engine->crews));
	vrnic_crew_put(crew);
}

/* Also if it has more to do. */
static void park_waits_for_the_run(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	c->more = 1;
	c->sleep_ms = 30;
	vrnic_queue(&c->r);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&c->entered, PATIENCE));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->inside), 1);
	vrnic_park(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->inside), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
	vrnic_unpark(&c->r);
}

static void timer_runs_it_later(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;
	u64 start = ktime_get_ns();

	c->delay_ns = 20 * NSEC_PER_MSEC;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 2));
	KUNIT_EXPECT_GE(test, c->when - start, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_PTR_EQ(test, c->who, rig->engine.own->threads[0].task);
}

/* A run that asks for a time, which comes before the run asks for a later one, too. */
static enum vrnic_verdict two_times_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	struct counter *c = container_of(r, struct counter, r);
	unsigned long flags;

	if (c->delay_ns) {
		/* the timer's interrupt comes late */
		local_irq_save(flags);
		vrnic_queue_after(r, c->delay_ns);
		ndelay(2 * c->delay_ns);
		vrnic_queue_after(r, 3600ULL * NSEC_PER_SEC);
		local_irq_restore(flags);
		c->delay_ns = 0;
	}
	atomic_inc(&c->runs);
	return VRNIC_IDLE;
}

static const struct vrnic_runnable_ops two_times_ops = { .run = two_times_run };

static void the_timer_is_not_put_off(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = new_counter(test, &rig->engine, 't', &two_times_ops);

	c->delay_ns = 5 * NSEC_PER_USEC;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 2));
}

static void park_cancels_the_timer(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;

	c->delay_ns = 20 * NSEC_PER_MSEC;
	vrnic_kick(&c->r);
	vrnic_park(&c->r);
	vrnic_unpark(&c->r);
	msleep(60);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
}

static enum vrnic_verdict wait_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	struct counter *c = container_of(r, struct counter, r);

	if (c->gives_up)
		r->wait_until = 0;
	if (vrnic_must_wait(r))
		return VRNIC_IDLE;
	count_run(r, budget);
	if (c->wait_ns)
		r->wait_until = ktime_get_ns() + c->wait_ns;
	c->wait_ns = 0;
	vrnic_must_wait(r);
	return VRNIC_IDLE;
}

static void count_spare(struct vrnic_runnable *r)
{
	container_of(r, struct counter, r)->spared = true;
}

static void count_ask(struct vrnic_runnable *r)
{
	container_of(r, struct counter, r)->spared = false;
}

static const struct vrnic_runnable_ops waiter_ops = {
	.run = wait_run,
	.spare = count_spare,
	.ask = count_ask,
	.gather = count_gather,
};

/* A counter whose next operation must not run for @ns. */
static struct counter *new_waiter(struct kunit *test, u64 ns)
{
	struct counter *c = new_counter(test, &((struct rig *)test->priv)->engine, 'w',
					&waiter_ops);

	c->r.wait_until = ktime_get_ns() + ns;
	return c;
}

/* Its timer runs it, so doorbells would be in vain until then. */
static void a_ring_that_waits_spares_doorbells(struct kunit *test)
{
	struct counter *c = new_waiter(test, NSEC_PER_SEC);
	u64 until = c->r.wait_until;
	bool spared;

	vrnic_kick(&c->r);
	spared = READ_ONCE(c->spared);
	/* unless this machine needed a second for that */
	if (ktime_get_ns() < until)
		KUNIT_EXPECT_TRUE(test, spared);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 1));
	KUNIT_EXPECT_GE(test, c->when, until);
	KUNIT_EXPECT_FALSE(test, c->spared);
}

/* A park cancels the timer; the run after it sets the timer again. */
static void a_ring_waits_on_after_a_park(struct kunit *test)
{
	struct counter *c = new_waiter(test, 100 * NSEC_PER_MSEC);

	vrnic_kick(&c->r);
	vrnic_park(&c->r);
	vrnic_unpark(&c->r);
	vrnic_kick(&c->r);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&c->entered, PATIENCE));
	KUNIT_EXPECT_FALSE(test, c->spared);
}

/* As when the requests are flushed, or other work comes first: a run that sets no timer asks. */
static void a_run_that_does_not_wait_asks_for_doorbells(struct kunit *test)
{
	struct counter *c = new_waiter(test, 3600 * NSEC_PER_SEC);

	vrnic_kick(&c->r);
	KUNIT_EXPECT_TRUE(test, c->spared);
	c->gives_up = true;
	vrnic_kick(&c->r);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
	KUNIT_EXPECT_FALSE(test, c->spared);
}

static void kick_stream(struct counter *c)
{
	c->stream = true;
	c->brings = 2;
	vrnic_kick(&c->r);
}

/* A stream may ring less often, until the timer sees that it has ended. */
static void a_stream_gathers(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;
	int i;

	vrnic_kick(&c->r);
	KUNIT_EXPECT_FALSE(test, c->gathers);
	kick_stream(c);
	KUNIT_EXPECT_TRUE(test, c->gathers);
	for (i = 0; i < 100 && READ_ONCE(c->gathers); i++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(c->gathers));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 2);
}

/* Work announced during a run is run with it, and counts as no doorbell of its own. */
static void an_answer_is_no_doorbell(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	c->r.gather.patience = 2;
	c->kick_self = true;
	kick_stream(c);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 2);
	KUNIT_EXPECT_FALSE(test, c->gathers);
	c->kick_self = true;
	kick_stream(c);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 4);
	KUNIT_EXPECT_TRUE(test, c->gathers);
}

/* The ring is being served all the while: a slow machine's stream has not ended. */
static void a_long_run_is_no_silence(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	c->forgotten = true;
	kick_stream(c);
	c->sleep_ms = 20;
	kick_stream(c);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(c->gathers));
}

/* Post on, but nothing can be done, until the timer has looked twice. Return: is it content? */
static bool gathers_in_vain(struct counter *c)
{
	kick_stream(c);
	while (READ_ONCE(c->gathers) && READ_ONCE(c->r.gather.flowed) < 3)
		vrnic_kick(&c->r);
	return READ_ONCE(c->gathers);
}

/* What such doorbells announced waits for another reason: they say nothing of the stream. */
static void a_doorbell_in_vain_proves_nothing(struct kunit *test)
{
	struct counter *c = ((struct rig *)test->priv)->a;
	int tries = 0;

	/* if this test gets no CPU for some periods, the timer finds silence */
	while (!gathers_in_vain(c) && tries < 50) {
		c->r.gather.patience = 1;
		tries++;
	}
	KUNIT_EXPECT_LT(test, tries, 50);
}

/* Requests of a ring that waits are not late for want of a doorbell. */
static void a_wait_is_no_reason_to_gather_less(struct kunit *test)
{
	struct counter *c = new_waiter(test, 0);
	int i;

	c->forgotten = true;
	c->r.gather.patience = 2;
	kick_stream(c);
	c->wait_ns = 3600 * NSEC_PER_SEC;
	kick_stream(c);
	for (i = 0; i < 100 && READ_ONCE(c->gathers); i++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(c->gathers));
	KUNIT_EXPECT_LT(test, c->r.gather.patience, 3);
}

/* Work without a doorbell is run all the same. */
static void the_timer_finds_what_was_forgotten(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	c->forgotten = true;
	kick_stream(c);
	KUNIT_EXPECT_TRUE(test, eventually(&c->runs, 2));
	KUNIT_EXPECT_PTR_NE(test, c->who, current);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(c->gathers));
}

static void park_ends_the_gathering(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct counter *c = rig->a;

	kick_stream(c);
	vrnic_park(&c->r);
	KUNIT_EXPECT_FALSE(test, c->gathers);
	vrnic_unpark(&c->r);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->runs), 1);
}

/* Two that have much to do take turns, so that none starves. */
static void turns_alternate(struct kunit *test)
{
	struct rig *rig = test->priv;
	char order[16] = "";

	rig->a->order = order;
	rig->b->order = order;
	rig->a->more = 4;
	rig->b->more = 4;
	hold_thread(test);
	vrnic_queue(&rig->a->r);
	vrnic_queue(&rig->b->r);
	KUNIT_EXPECT_TRUE(test, eventually(&rig->a->runs, 5));
	KUNIT_EXPECT_TRUE(test, eventually(&rig->b->runs, 5));
	KUNIT_EXPECT_STREQ(test, order, "ababababab");
}

struct kicker {
	struct rig *rig;
	unsigned int seed;
};

static void announce(void *arg, unsigned int how)
{
	struct rig *rig = arg;
	struct counter *c = how & 4 ? rig->a : rig->b;

	atomic_inc(&c->posted);
	if (how & 1)
		vrnic_kick(&c->r);
	else
		vrnic_queue(&c->r);
	if (how & 2)
		cond_resched();
}

static int kicker_thread(void *arg)
{
	struct kicker *k = arg;

	random_calls(announce, k->rig, k->seed, KICKS);
	atomic_dec(&k->rig->kickers);
	return 0;
}

static void start_kicker(struct kunit *test, int i)
{
	struct kicker *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	struct rig *rig = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, k);
	k->rig = rig;
	k->seed = i + 1;
	start_caller(test, kicker_thread, k, &rig->kickers);
}

static void start_kickers(struct kunit *test)
{
	int i;

	for (i = 0; i < KICKERS; i++)
		start_kicker(test, i);
}

/* The last announcement of each was seen, and never were two inside. */
static void expect_all_taken(struct kunit *test, struct counter *c)
{
	rest(&c->r);
	KUNIT_EXPECT_EQ(test, c->taken, atomic_read(&c->posted));
	KUNIT_EXPECT_GT(test, atomic_read(&c->runs), 0);
	KUNIT_EXPECT_EQ(test, c->overlaps, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->inside), 0);
}

static void many_kickers(struct kunit *test)
{
	struct rig *rig = test->priv;

	start_kickers(test);
	KUNIT_ASSERT_TRUE(test, eventually(&rig->kickers, 0));
	expect_all_taken(test, rig->a);
	expect_all_taken(test, rig->b);
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->a->posted) +
			atomic_read(&rig->b->posted), KICKERS * KICKS);
}

/* Return: how often the ring was parked until the kickers were through. */
static int park_until_quiet(struct rig *rig, int *broken)
{
	int runs, parks = 0;

	while (atomic_read(&rig->kickers) && parks < 100000) {
		vrnic_park(&rig->a->r);
		runs = atomic_read(&rig->a->runs);
		usleep_range(20, 50);
		*broken += atomic_read(&rig->a->inside);
		*broken += runs != atomic_read(&rig->a->runs);
		vrnic_unpark(&rig->a->r);
		vrnic_kick(&rig->a->r);
		parks++;
	}
	return parks;
}

/* As modify_qp() does it, all the while others announce work. */
static void park_among_kickers(struct kunit *test)
{
	struct rig *rig = test->priv;
	int parks = 0, broken = 0, round;

	/* on a busy machine, a round of them may be through before this one runs */
	for (round = 0; round < 50 && parks < 2; round++) {
		start_kickers(test);
		parks += park_until_quiet(rig, &broken);
		KUNIT_ASSERT_TRUE(test, eventually(&rig->kickers, 0));
	}
	KUNIT_EXPECT_GT(test, parks, 1);
	KUNIT_EXPECT_EQ(test, broken, 0);
	expect_all_taken(test, rig->a);
	expect_all_taken(test, rig->b);
}

static struct kunit_case engine_cases[] = {
	KUNIT_CASE(kick_runs_here),
	KUNIT_CASE(queue_runs_in_the_thread),
	KUNIT_CASE(the_thread_allocates_without_io),
	KUNIT_CASE(rest_goes_to_the_thread),
	KUNIT_CASE(work_during_a_run_is_not_lost),
	KUNIT_CASE(a_call_has_one_budget),
	KUNIT_CASE(parked_does_not_run),
	KUNIT_CASE(park_overtakes_the_queue),
	KUNIT_CASE(park_does_not_wait_for_a_turn),
	KUNIT_CASE(park_waits_for_the_run),
	KUNIT_CASE(timer_runs_it_later),
	KUNIT_CASE(the_timer_is_not_put_off),
	KUNIT_CASE(park_cancels_the_timer),
	KUNIT_CASE(a_ring_that_waits_spares_doorbells),
	KUNIT_CASE(a_ring_waits_on_after_a_park),
	KUNIT_CASE(a_run_that_does_not_wait_asks_for_doorbells),
	KUNIT_CASE(a_stream_gathers),
	KUNIT_CASE(an_answer_is_no_doorbell),
	KUNIT_CASE(a_long_run_is_no_silence),
	KUNIT_CASE(a_doorbell_in_vain_proves_nothing),
	KUNIT_CASE(a_wait_is_no_reason_to_gather_less),
	KUNIT_CASE(the_timer_finds_what_was_forgotten),
	KUNIT_CASE(park_ends_the_gathering),
	KUNIT_CASE(turns_alternate),
	KUNIT_CASE(another_thread_takes_what_waits),
	KUNIT_CASE(no_ring_belongs_to_a_thread),
	KUNIT_CASE(in_the_root_cgroups_the_devices_own_crew_serves),
	KUNIT_CASE(many_kickers),
	KUNIT_CASE(park_among_kickers),
	{}
};

static struct kunit_suite engine_suite = {
	.name = "vrnic_engine",
	.init = engine_init,
	.test_cases = engine_cases,
};

kunit_test_suite(engine_suite);
