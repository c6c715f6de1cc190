// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S5: progress of several contexts in one call. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "native.h"

#define CONTEXTS	4
#define LEN		(1 << 20)

/**
 * several - contexts of one client that post to one peer
 * @bed: its b is the peer
 * @node: each has a context
 * @context: those of @node, as the library wants them
 */
FIXTURE(several)
{
	struct nbed bed;
	struct node node[CONTEXTS];
	struct vrnic_context *context[CONTEXTS];
};

static int open_some(struct node *node, int nr, struct nbed *bed,
		     struct vrnic_context **context, const struct vrnic_context_attr *attr)
{
	struct node_info target = node_info(&bed->b);
	int i, ret = 0;

	for (i = 0; i < nr && !ret; i++) {
		node[i].client = bed->a.client;
		ret = node_open(&node[i], 4096, attr);
		if (!ret)
			ret = node_join(&node[i], &target);
		context[i] = node[i].context;
	}
	return ret;
}

static int close_some(struct node *node, int nr)
{
	int i, one, ret = 0;

	for (i = 0; i < nr; i++) {
		one = node_close(&node[i]);
		ret = ret ? ret : one;
	}
	return ret;
}

FIXTURE_SETUP(several)
{
	NEED_NATIVE();
	ASSERT_OK(nbed_open(&self->bed, LEN, CONTEXT()));
	ASSERT_OK(open_some(self->node, CONTEXTS, &self->bed, self->context,
			    CONTEXT(.flags = VRNIC_CONTEXT_SHARED, .inject_slots = 1024,
				    .receive_slots = 1024)));
}

FIXTURE_TEARDOWN(several)
{
	EXPECT_OK(close_some(self->node, CONTEXTS));
	EXPECT_OK(nbed_close(&self->bed));
}

static int put_from(struct node *n, const struct vrnic_done *done)
{
	return vrnic_put(n->to, WR(.local = n->buf.addr, .mr = n->buf.mr, .length = 8,
				   .remote = n->peer.addr, .rkey = n->peer.rkey), done);
}

/* The record of an operation is there before the next one starts: when the last one is done. */
static int records_are_there(struct node *n)
{
	int ret = put_from(n, DONE(.remote = n->counter));

	return ret ? ret : counter_done(n->counter);
}

/* @nr operations are done, and their callbacks are to be called. */
static int ready(struct node *n, struct told *told, int nr)
{
	int i, ret = 0;

	for (i = 0; i < nr && !ret; i++)
		ret = put_from(n, DONE(TELL(told)));
	return ret ? ret : records_are_there(n);
}

static int sum(const struct told *told)
{
	int i, n = 0;

	for (i = 0; i < CONTEXTS; i++)
		n += told[i].count;
	return n;
}

/* ---- how much, and whose ---- */

#define EXPECT_EACH(expected)						\
	do {								\
		for (i = 0; i < CONTEXTS; i++)				\
			EXPECT_EQ(expected, told[i].count)		\
				TH_LOG("context %d", i);		\
	} while (0)

TEST_F(several, s5_advance_contexts_shares_out_its_limit)
{
	struct told told[CONTEXTS] = {};
	int i;

	for (i = 0; i < CONTEXTS; i++)
		ASSERT_OK(ready(&self->node[i], &told[i], 100));
	EXPECT_EQ(40, vrnic_advance_contexts(self->context, CONTEXTS, 40));
	EXPECT_EACH(10);
	/* less than one for each: they take turns */
	for (i = 0; i < CONTEXTS; i++)
		EXPECT_EQ(1, vrnic_advance_contexts(self->context, CONTEXTS, 1));
	EXPECT_EACH(11);
	for (i = 0; i < CONTEXTS; i++)
		EXPECT_EQ(3, vrnic_advance_contexts(self->context, CONTEXTS, 3));
	EXPECT_EACH(14);
	EXPECT_EQ(0, vrnic_advance_contexts(self->context, CONTEXTS, 0));
	EXPECT_EACH(14);
	EXPECT_EQ(4 * 86, vrnic_advance_contexts(self->context, CONTEXTS, INT32_MAX));
	EXPECT_EACH(100);
	EXPECT_EQ(0, vrnic_advance_contexts(self->context, CONTEXTS, 10));
}

TEST_F(several, s5_advance_contexts_gives_to_others_what_some_do_not_need)
{
	struct told told[CONTEXTS] = {};

	ASSERT_OK(ready(&self->node[0], &told[0], 200));
	ASSERT_OK(ready(&self->node[CONTEXTS - 1], &told[CONTEXTS - 1], 5));
	EXPECT_EQ(100, vrnic_advance_contexts(self->context, CONTEXTS, 100));
	EXPECT_EQ(95, told[0].count);
	EXPECT_EQ(5, told[CONTEXTS - 1].count);
	EXPECT_EQ(105, vrnic_advance_contexts(self->context, CONTEXTS, 1000));
	EXPECT_EQ(200, told[0].count);
}

/* An operation that posts the next one as soon as it is done. */
struct chain {
	struct node *node;
	int count, end;
	int inside, together, error;
};

static void next_link(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct chain *c = arg;

	/* another thread is in a callback of this context */
	c->together += __atomic_exchange_n(&c->inside, 1, __ATOMIC_ACQ_REL);
	if (status->status || status->cookie != (uint64_t)c->count)
		c->error = -ERANGE;
	if (++c->count < c->end && !c->error)
		c->error = put_from(c->node, DONE(.callback = next_link, .arg = c,
						  .cookie = c->count));
	__atomic_store_n(&c->inside, 0, __ATOMIC_RELEASE);
}

static int chain_start(struct chain *c, struct node *node, int end)
{
	*c = (struct chain){ .node = node, .end = end };
	return put_from(node, DONE(.callback = next_link, .arg = c));
}

/* The first context never has nothing to do. */
TEST_F(several, s5_advance_contexts_busy_first_does_not_starve_the_last)
{
	struct told backlog = {}, last = {};
	struct chain busy[CONTEXTS - 1];
	int i, calls;

	for (i = 0; i < CONTEXTS - 1; i++) {
		ASSERT_OK(chain_start(&busy[i], &self->node[i], 1 << 30));
		ASSERT_OK(ready(&self->node[i], &backlog, 300));
	}
	ASSERT_OK(ready(&self->node[CONTEXTS - 1], &last, 1));
	for (calls = 0; !last.count && calls < 100; calls++)
		ASSERT_EQ(1, vrnic_advance_contexts(self->context, CONTEXTS, 1));
	EXPECT_LE(calls, CONTEXTS);
	/* if there is one for each, at once */
	ASSERT_OK(ready(&self->node[CONTEXTS - 1], &last, 1));
	EXPECT_EQ(CONTEXTS, vrnic_advance_contexts(self->context, CONTEXTS, CONTEXTS));
	EXPECT_EQ(2, last.count);
	for (i = 0; i < CONTEXTS - 1; i++)
		EXPECT_OK(busy[i].error);
}

/* Operations that waited for room are posted, with a limit of 0, too. */
TEST(s5_advance_contexts_posts_what_was_queued)
{
	struct vrnic_context *context[CONTEXTS];
	struct node node[CONTEXTS] = {};
	struct nbed bed = {};
	uint64_t end;
	int i, j;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, LEN, CONTEXT()));
	ASSERT_OK(open_some(node, CONTEXTS, &bed, context, CONTEXT(.inject_slots = 2)));
	for (i = 0; i < CONTEXTS; i++)
		for (j = 0; j < 50; j++)
			ASSERT_OK(put_from(&node[i], DONE(.remote = node[i].counter,
							  .flags = VRNIC_QUEUE)));
	end = now_ns() + WAIT_NS;
	for (i = 0; i < CONTEXTS && now_ns() < end;) {
		ASSERT_EQ(0, vrnic_advance_contexts(context, CONTEXTS, 0));
		if (!vrnic_counter_read(node[i].counter))
			i++;
		else
			usleep(100);
	}
	EXPECT_EQ(CONTEXTS, i);
	EXPECT_OK(close_some(node, CONTEXTS));
	EXPECT_OK(nbed_close(&bed));
}

/* ---- misuse ---- */

static int all_forms(struct vrnic_context *const *contexts, unsigned int count, int max)
{
	int ret = vrnic_advance_contexts(contexts, count, max);

	if (ret != vrnic_advance_contexts_try(contexts, count, max) ||
	    ret != vrnic_advance_contexts_wait(contexts, count, max, 0))
		return -ERANGE;
	return ret;
}

TEST_F(several, s5_advance_contexts_refuses_nonsense)
{
	struct told told[CONTEXTS] = {};
	struct vrnic_context *kept = self->context[2];

	ASSERT_OK(ready(&self->node[0], &told[0], 1));
	EXPECT_EQ(-EINVAL, all_forms(NULL, CONTEXTS, 10));
	EXPECT_EQ(-EINVAL, all_forms(self->context, 0, 10));
	EXPECT_EQ(-EINVAL, all_forms(self->context, CONTEXTS, -1));
	self->context[2] = NULL;
	EXPECT_EQ(-EINVAL, all_forms(self->context, CONTEXTS, 10));
	self->context[2] = kept;
	EXPECT_EQ(0, told[0].count);
	EXPECT_EQ(1, vrnic_advance_contexts(self->context, CONTEXTS, 10));
	/* naming one twice is no harm */
	self->context[1] = self->context[0];
	ASSERT_OK(ready(&self->node[0], &told[0], 20));
	EXPECT_EQ(20, vrnic_advance_contexts(self->context, 2, 100));
}

/* A callback that advances all contexts, its own among them. */
struct nested {
	struct vrnic_context **context;
	bool skip;
	int ret, count;
};

static void advance_all(struct vrnic_context *context, const struct vrnic_status *status,
			void *arg)
{
	struct nested *n = arg;

	n->count++;
	n->ret = n->skip ? vrnic_advance_contexts_try(n->context, CONTEXTS, 100) :
			   vrnic_advance_contexts(n->context, CONTEXTS, 100);
}

TEST_F(several, s5_advance_contexts_in_a_callback)
{
	struct nested nested = { .context = self->context };
	struct told told[CONTEXTS] = {};
	int i, round;

	for (round = 0; round < 2; round++) {
		nested.skip = round;
		ASSERT_OK(put_from(&self->node[1], DONE(.callback = advance_all, .arg = &nested)));
		for (i = 0; i < CONTEXTS; i++)
			ASSERT_OK(ready(&self->node[i], &told[i], 1));
		EXPECT_EQ(1, vrnic_advance(self->context[1], 1));
		EXPECT_EQ(round + 1, nested.count);
		/* the others have been advanced in any case */
		EXPECT_EQ(nested.skip ? CONTEXTS - 1 : -EDEADLK, nested.ret);
		EXPECT_EQ((round + 1) * CONTEXTS - 1, sum(told));
		EXPECT_EQ(1, vrnic_advance(self->context[1], 100));
		EXPECT_EACH(round + 1);
	}
}

/* ---- waiting ---- */

TEST_F(several, s5_advance_contexts_wait_ends_in_time)
{
	struct told told = {};
	uint64_t begin = now_ns(), cpu = cpu_ns(), took;

	EXPECT_EQ(-ETIME, vrnic_advance_contexts_wait(self->context, CONTEXTS, 10, 0));
	EXPECT_EQ(-ETIME, vrnic_advance_contexts_wait(self->context, CONTEXTS, 10,
						      300 * MSEC_NS));
	took = now_ns() - begin;
	EXPECT_GE(took, 300 * MSEC_NS);
	/* it has slept */
	EXPECT_LT(cpu_ns() - cpu, took / 2);
	/* what is there takes no time, and a limit of 0 leaves it there */
	ASSERT_OK(ready(&self->node[2], &told, 3));
	EXPECT_EQ(0, vrnic_advance_contexts_wait(self->context, CONTEXTS, 0, VRNIC_NO_TIMEOUT));
	EXPECT_EQ(2, vrnic_advance_contexts_wait(self->context, CONTEXTS, 2, 0));
	EXPECT_EQ(1, vrnic_advance_contexts_wait(self->context, CONTEXTS, 2, VRNIC_NO_TIMEOUT));
	EXPECT_EQ(-ETIME, vrnic_advance_contexts_wait(self->context, CONTEXTS, 2, 0));
}

/* A thread that waits, and what it came back with. */
struct waiter {
	struct vrnic_context **context;
	unsigned int nr;
	pthread_t thread;
	int ret, done;
};

static void *wait_for_any(void *arg)
{
	struct waiter *w = arg;

	w->ret = vrnic_advance_contexts_wait(w->context, w->nr, 10, VRNIC_NO_TIMEOUT);
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int waiter_start(struct waiter *w, struct vrnic_context **context, unsigned int nr)
{
	int ret;

	*w = (struct waiter){ .context = context, .nr = nr };
	ret = pthread_create(&w->thread, NULL, wait_for_any, w);
	if (!ret)
		usleep(20000);	/* so that it sleeps, as a rule */
	return ret;
}

static bool is_waiting(struct waiter *w)
{
	return !__atomic_load_n(&w->done, __ATOMIC_ACQUIRE);
}

static void count_message(struct vrnic_context *context, const struct vrnic_message *message,
			  void *arg)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

/* More than lie on a stack; each wakes the thread. */
#define MANY	20

TEST(s5_advance_contexts_wait_wakes_for_each)
{
	struct vrnic_context *context[MANY];
	struct vrnic_endpoint *back;
	struct node node[MANY] = {};
	struct nbed bed = {};
	struct node_info info;
	struct waiter w;
	int i, got = 0;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, LEN, CONTEXT()));
	ASSERT_OK(open_some(node, MANY, &bed, context, CONTEXT()));
	for (i = 0; i < MANY; i++) {
		ASSERT_OK(vrnic_dispatch_set(context[i], 1, count_message, &got));
		info = node_info(&node[i]);
		ASSERT_OK(vrnic_endpoint_create(bed.b.context, &info.address, &back));
		ASSERT_OK(waiter_start(&w, context, i % 2 ? MANY : i + 1));
		ASSERT_TRUE(is_waiting(&w));
		ASSERT_OK(vrnic_send(back, SEND(.id = 1), NULL));
		ASSERT_OK(pthread_join(w.thread, NULL));
		EXPECT_EQ(1, w.ret);
		EXPECT_EQ(i + 1, got);
		ASSERT_OK(vrnic_endpoint_destroy(back));
	}
	EXPECT_OK(close_some(node, MANY));
	EXPECT_OK(nbed_close(&bed));
}

/* Room in a ring wakes nobody, and what is queued is posted all the same. */
TEST(s5_advance_contexts_wait_posts_what_is_queued)
{
	struct vrnic_context *context[2];
	struct node node[2] = {};
	struct told told = {};
	struct nbed bed = {};
	int i, ret;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, LEN, CONTEXT()));
	ASSERT_OK(open_some(node, 2, &bed, context, CONTEXT(.inject_slots = 2)));
	for (i = 0; i < 100; i++)
		ASSERT_OK(put_from(&node[1], DONE(TELL(&told), .flags = VRNIC_QUEUE)));
	while (told.count < 100) {
		ret = vrnic_advance_contexts_wait(context, 2, 10, WAIT_NS);
		ASSERT_LT(0, ret);
	}
	EXPECT_EQ(100, told.count);
	EXPECT_OK(close_some(node, 2));
	EXPECT_OK(nbed_close(&bed));
}

static void nothing(int sig)
{
}

TEST_F(several, s5_advance_contexts_wait_is_interrupted)
{
	struct sigaction act = { .sa_handler = nothing };
	struct waiter w;

	ASSERT_OK(sigaction(SIGUSR1, &act, NULL));
	ASSERT_OK(waiter_start(&w, self->context, CONTEXTS));
	/* a signal that comes before the sleep is none that interrupts it */
	while (is_waiting(&w)) {
		ASSERT_OK(pthread_kill(w.thread, SIGUSR1));
		usleep(2000);
	}
	ASSERT_OK(pthread_join(w.thread, NULL));
	EXPECT_EQ(-EINTR, w.ret);
}

TEST_F(several, s5_advance_contexts_wait_needs_descriptors)
{
	struct vrnic_context *many[200];
	struct rlimit limit, few;
	int i;

	for (i = 0; i < 200; i++)
		many[i] = self->context[i % CONTEXTS];
	ASSERT_OK(getrlimit(RLIMIT_NOFILE, &limit));
	few = limit;
	few.rlim_cur = 100;
	ASSERT_OK(setrlimit(RLIMIT_NOFILE, &few));
	EXPECT_EQ(-EINVAL, vrnic_advance_contexts_wait(many, 200, 1, MSEC_NS));
	ASSERT_OK(setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-ETIME, vrnic_advance_contexts_wait(many, 200, 1, MSEC_NS));
}

/* A device that goes, in a network namespace that nothing else is in. */
#define DEVICE	"vrnic_apart"

FIXTURE(apart)
{
	struct vrnic_client *client;
	struct vrnic_context *context[2];
};

FIXTURE_SETUP(apart)
{
	int i;

	NEED_NATIVE();
	ASSERT_OK(unshare(CLONE_NEWNET));
	ASSERT_OK(system("ip link set lo up"));
	ASSERT_OK(system("rdma link add " DEVICE " type vrnic netdev lo"));
	ASSERT_OK(vrnic_client_open(DEVICE, &self->client));
	for (i = 0; i < 2; i++)
		ASSERT_OK(vrnic_context_create(self->client, NULL, &self->context[i]));
}

FIXTURE_TEARDOWN(apart)
{
	int i;

	for (i = 0; i < 2; i++)
		EXPECT_OK(vrnic_context_destroy(self->context[i]));
	EXPECT_OK(vrnic_client_close(self->client));
}

TEST_F(apart, s5_advance_contexts_wait_ends_with_the_device)
{
	struct waiter w;

	ASSERT_OK(waiter_start(&w, self->context, 2));
	ASSERT_TRUE(is_waiting(&w));
	ASSERT_OK(system("rdma link del " DEVICE));
	ASSERT_OK(pthread_join(w.thread, NULL));
	EXPECT_EQ(-EIO, w.ret);
	EXPECT_EQ(-EIO, all_forms(self->context, 2, 1));
}

/* ---- other threads ---- */

/* A thread that advances a context, and stays in a callback until the test posts @out. */
struct holder {
	struct vrnic_context *context;
	sem_t in, out;
};

static void hold(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct holder *h = arg;

	sem_post(&h->in);
	sem_wait(&h->out);
}

static void *advance_once(void *arg)
{
	struct holder *h = arg;

	while (!vrnic_advance(h->context, 1))
		;
	return NULL;
}

TEST_F(several, s5_advance_contexts_try_skips_what_another_thread_advances)
{
	struct holder h = { .context = self->context[0] };
	struct told told[CONTEXTS] = {};
	pthread_t thread;
	int i;

	sem_init(&h.in, 0, 0);
	sem_init(&h.out, 0, 0);
	EXPECT_EQ(0, vrnic_advance_contexts_try(self->context, CONTEXTS, 10));
	ASSERT_OK(put_from(&self->node[0], DONE(.callback = hold, .arg = &h)));
	for (i = 0; i < CONTEXTS; i++)
		ASSERT_OK(ready(&self->node[i], &told[i], 5));
	ASSERT_OK(pthread_create(&thread, NULL, advance_once, &h));
	sem_wait(&h.in);
	EXPECT_EQ(15, vrnic_advance_contexts_try(self->context, CONTEXTS, 100));
	EXPECT_EQ(0, told[0].count);
	EXPECT_EQ(15, sum(told));
	/* there is nothing more, but that is not known of the one that was left out */
	EXPECT_EQ(0, vrnic_advance_contexts_try(self->context, CONTEXTS, 100));
	EXPECT_EQ(-EBUSY, vrnic_advance_contexts_try(self->context, 1, 100));
	sem_post(&h.out);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(5, vrnic_advance_contexts_try(self->context, CONTEXTS, 100));
	EXPECT_EACH(5);
}

enum how { TRY, LOCK, WAIT, HOWS };

/* One of two threads that advance the same contexts until all chains are at their end. */
struct advancer {
	struct vrnic_context **context;
	struct chain *chain;
	enum how how;
	int made, error;
	pthread_t thread;
};

static bool all_at_the_end(struct chain *c)
{
	int i;

	for (i = 0; i < CONTEXTS; i++)
		if (__atomic_load_n(&c[i].count, __ATOMIC_RELAXED) < c[i].end &&
		    !__atomic_load_n(&c[i].error, __ATOMIC_RELAXED))
			return false;
	return true;
}

static int advance_how(struct advancer *a)
{
	int ret;

	switch (a->how) {
	case TRY:
		ret = vrnic_advance_contexts_try(a->context, CONTEXTS, 3);
		return ret == -EBUSY ? 0 : ret;
	case LOCK:
		return vrnic_advance_contexts(a->context, CONTEXTS, 3);
	default:
		ret = vrnic_advance_contexts_wait(a->context, CONTEXTS, 3, 20 * MSEC_NS);
		return ret == -ETIME ? 0 : ret;
	}
}

static void *advance_chains(void *arg)
{
	struct advancer *a = arg;
	uint64_t end = now_ns() + WAIT_NS;
	int ret;

	while (!all_at_the_end(a->chain) && now_ns() < end && !a->error) {
		ret = advance_how(a);
		if (ret < 0 || ret > 3)
			a->error = ret;
		else
			a->made += ret;
		if (!ret)
			sched_yield();
	}
	return NULL;
}

static void two_threads(struct __test_metadata *_metadata, FIXTURE_DATA(several) *self,
			enum how one, enum how other)
{
	int i, n = scaled(2000);
	struct chain chain[CONTEXTS];
	struct advancer a[2] = {
		{ .context = self->context, .chain = chain, .how = one },
		{ .context = self->context, .chain = chain, .how = other },
	};

	for (i = 0; i < CONTEXTS; i++)
		ASSERT_OK(chain_start(&chain[i], &self->node[i], n));
	for (i = 0; i < 2; i++)
		ASSERT_OK(pthread_create(&a[i].thread, NULL, advance_chains, &a[i]));
	for (i = 0; i < 2; i++) {
		ASSERT_OK(pthread_join(a[i].thread, NULL));
		EXPECT_OK(a[i].error);
	}
	/* each callback once, in order, and those of a context one at a time */
	for (i = 0; i < CONTEXTS; i++) {
		EXPECT_EQ(n, chain[i].count);
		EXPECT_EQ(0, chain[i].together);
		EXPECT_OK(chain[i].error);
	}
	EXPECT_EQ(CONTEXTS * n, a[0].made + a[1].made);
}

TEST_F(several, s5_advance_contexts_try_by_two_threads)
{
	two_threads(_metadata, self, TRY, TRY);
}

TEST_F(several, s5_advance_contexts_by_two_threads)
{
	two_threads(_metadata, self, LOCK, TRY);
	two_threads(_metadata, self, LOCK, LOCK);
}

TEST_F(several, s5_advance_contexts_wait_by_two_threads)
{
	two_threads(_metadata, self, WAIT, TRY);
	two_threads(_metadata, self, WAIT, WAIT);
}

TEST_HARNESS_MAIN
