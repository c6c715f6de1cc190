// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * S5: progress of several contexts in one call, and the two callbacks of an operation: its local
 * buffer is free, and it is done at the target.
 */
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
	EXPECT_EQ(-EINVAL, vrnic_advance_contexts_wait(many, 200, 1, WAIT_NS));
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
	ASSERT_OK(rdma_link_apart(DEVICE));
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
	ASSERT_OK(rdma_link_del(DEVICE));
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

/* ---- two callbacks ---- */

NBED(callbacks, LEN, .inject_slots = 1024, .receive_slots = 1024);

/**
 * struct moments - what the two callbacks of operations were told
 * @bed: for @arrived
 * @arrived: the data have to be there, too
 * @local: calls of the first callback
 * @remote: calls of the second one
 * @bad: calls in another order, or before the data were there
 * @status: what the first one was told
 * @differs: the second one was told something else
 */
struct moments {
	struct nbed *bed;
	bool (*arrived)(const struct nbed *bed);
	int local, remote, bad;
	struct vrnic_status status;
	int differs;
};

static void at_local(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct moments *m = arg;

	m->bad += m->local != m->remote;
	m->local++;
	m->status = *status;
}

static void at_remote(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct moments *m = arg;

	m->remote++;
	m->bad += m->local != m->remote;
	m->bad += m->arrived && !m->arrived(m->bed);
	m->differs += m->status.status != status->status ||
		      m->status.vendor_err != status->vendor_err ||
		      m->status.opcode != status->opcode ||
		      m->status.cookie != status->cookie || m->status.value != status->value;
}

#define BOTH(m)								\
	.comp_mask = VRNIC_DONE_LOCAL_CALLBACK, .local_callback = at_local,	\
	.callback = at_remote, .arg = (m)

/* How often each of them was called, or -1: not as it should be. */
static int both(const struct moments *m)
{
	return m->local == m->remote && !m->bad && !m->differs ? m->local : -1;
}

static struct vrnic_wr *one_word(struct nbed *bed)
{
	static struct vrnic_wr wr;

	wr = (struct vrnic_wr){
		.local = bed->a.buf.addr,
		.mr = bed->a.buf.mr,
		.length = 8,
		.remote = bed->a.peer.addr,
		.rkey = bed->a.peer.rkey,
	};
	return &wr;
}

static int do_put(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_put(bed->a.to, one_word(bed), done);
}

static int do_get(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_get(bed->a.to, one_word(bed), done);
}

static int do_inline(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_put_inline(bed->a.to, one_word(bed), done);
}

static int do_read(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_read(bed->a.to, one_word(bed), done);
}

static int do_write(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_write(bed->a.to, one_word(bed), done);
}

static int do_rmw(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_rmw(bed->a.to, RMW(.op = VRNIC_RMW_ADD, .width = 8,
					.remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			 done);
}

static int do_send(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_send(bed->a.to, SEND(.id = 1), done);
}

static int do_fence(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_fence(bed->a.to, done);
}

static int do_fence_all(struct nbed *bed, const struct vrnic_done *done)
{
	return vrnic_fence_all(bed->a.context, done);
}

static const struct kind {
	const char *name;
	int (*post)(struct nbed *bed, const struct vrnic_done *done);
} kinds[] = {
	{ "put", do_put }, { "get", do_get }, { "put_inline", do_inline }, { "read", do_read },
	{ "write", do_write }, { "rmw", do_rmw }, { "send", do_send }, { "fence", do_fence },
	{ "fence_all", do_fence_all },
};

TEST_F(callbacks, s5_both_once_and_the_local_one_first)
{
	struct nbed *bed = &self->bed;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct moments m = {};

		for (j = 0; j < 50; j++)
			ASSERT_OK(kinds[i].post(bed, DONE(BOTH(&m), .cookie = j)));
		ASSERT_OK(advance_until(bed->a.context, &m.remote, 50));
		EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		EXPECT_EQ(50, both(&m)) TH_LOG("%s", kinds[i].name);
		EXPECT_EQ(IBV_WC_SUCCESS, m.status.status);
	}
}

/* One of them alone, and in the company of counters. */
TEST_F(callbacks, s5_one_of_them_alone)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *local;
	struct moments m = {};
	unsigned int i;

	ASSERT_OK(vrnic_counter_create(bed->a.client, 0, &local));
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		m = (struct moments){};
		ASSERT_OK(kinds[i].post(bed, DONE(.comp_mask = VRNIC_DONE_LOCAL_CALLBACK,
						  .local_callback = at_local, .arg = &m,
						  .local = local, .remote = bed->a.counter)));
		ASSERT_OK(advance_until(bed->a.context, &m.local, 1));
		EXPECT_EQ(0, vrnic_counter_read(local));
		EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
		ASSERT_OK(kinds[i].post(bed, DONE(.comp_mask = VRNIC_DONE_LOCAL_CALLBACK,
						  .callback = at_local, .arg = &m)));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		EXPECT_EQ(2, m.local) TH_LOG("%s", kinds[i].name);
	}
	/* a program that was compiled without the member has something else there */
	ASSERT_OK(do_put(bed, DONE(.local_callback = at_local, .arg = &m)));
	ASSERT_OK(do_put(bed, DONE(.local_callback = at_local, .callback = at_remote,
				   .arg = &m)));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(2, m.local);
	EXPECT_EQ(1, m.remote);
	EXPECT_OK(vrnic_counter_destroy(local));
}

static const size_t sizes[] = { 0, 1, 64, 4096, 65537, LEN };
static size_t arriving;
static uint32_t seed;

static bool is_at_the_target(const struct nbed *bed)
{
	return nbed_arrived(bed, seed, 0, 0, arriving);
}

TEST_F(callbacks, s5_remote_one_is_called_when_the_data_are_there)
{
	struct nbed *bed = &self->bed;
	struct moments m = { .bed = bed, .arrived = is_at_the_target };
	unsigned int i, n = 0;

	for (i = 0; i < scaled(10) * ARRAY_SIZE(sizes); i++) {
		seed = i + 1;
		arriving = sizes[i % ARRAY_SIZE(sizes)];
		buf_fill(&bed->a.buf, seed);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(nbed_put(bed, 0, 0, arriving, DONE(BOTH(&m))));
		ASSERT_OK(advance_until(bed->a.context, &m.remote, ++n));
		/* and the local buffer, which the callback said is free, is not needed any more */
		ASSERT_OK(vrnic_write(bed->a.to, WR(.local = bed->a.buf.addr, .length = arriving,
						    .remote = bed->a.peer.addr,
						    .rkey = bed->a.peer.rkey), DONE(BOTH(&m))));
		ASSERT_OK(advance_until(bed->a.context, &m.remote, ++n));
		EXPECT_EQ(n, both(&m));
	}
}

/* A local callback that overwrites the buffer of a put at once. */
static void overwrite(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct moments *m = arg;

	at_local(context, status, arg);
	memset(m->bed->a.buf.addr, 0xee, arriving);
}

TEST_F(callbacks, s5_local_one_is_called_when_the_buffer_is_free)
{
	struct nbed *bed = &self->bed;
	struct moments m = { .bed = bed, .arrived = is_at_the_target };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		seed = 100 + i;
		arriving = sizes[i];
		buf_fill(&bed->a.buf, seed);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(nbed_put(bed, 0, 0, arriving,
				   DONE(.comp_mask = VRNIC_DONE_LOCAL_CALLBACK,
					.local_callback = overwrite, .callback = at_remote,
					.arg = &m)));
		ASSERT_OK(advance_until(bed->a.context, &m.remote, i + 1));
		EXPECT_EQ(i + 1, both(&m)) TH_LOG("%zu bytes", arriving);
	}
}

/* The local moment of a get: the data are in the buffer. */
static void has_come(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct moments *m = arg;

	at_local(context, status, arg);
	m->bad += buf_differs(&m->bed->a.buf, 0, arriving, seed, 0) >= 0;
}

TEST_F(callbacks, s5_local_one_of_a_get_when_the_data_are_there)
{
	struct nbed *bed = &self->bed;
	struct moments m = { .bed = bed };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		seed = 200 + i;
		arriving = sizes[i];
		buf_fill(&bed->b.buf, seed);
		memset(bed->a.buf.addr, 0, LEN);
		ASSERT_OK(nbed_get(bed, 0, 0, arriving,
				   DONE(.comp_mask = VRNIC_DONE_LOCAL_CALLBACK,
					.local_callback = has_come, .callback = at_remote,
					.arg = &m)));
		ASSERT_OK(advance_until(bed->a.context, &m.remote, i + 1));
		EXPECT_EQ(i + 1, both(&m)) TH_LOG("%zu bytes", arriving);
	}
}

/* ---- failures are told to both ---- */

TEST_F(callbacks, s5_both_are_told_of_a_failure)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct moments m = {};

	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = ~a->peer.rkey),
			    DONE(BOTH(&m), .cookie = 41)));
	ASSERT_OK(advance_until(a->context, &m.remote, 1));
	EXPECT_EQ(1, both(&m));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, m.status);
	EXPECT_EQ(VRNIC_VERR_KEY, m.status.vendor_err);
	EXPECT_EQ(41, m.status.cookie);
	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr - 1, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = a->peer.rkey),
			    DONE(BOTH(&m))));
	ASSERT_OK(advance_until(a->context, &m.remote, 2));
	EXPECT_EQ(2, both(&m));
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, m.status);
	/* the fence tells of the first of them, to both of its own */
	m = (struct moments){};
	ASSERT_OK(vrnic_fence(a->to, DONE(BOTH(&m))));
	ASSERT_OK(advance_until(a->context, &m.remote, 1));
	EXPECT_EQ(1, both(&m));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, m.status);
	EXPECT_EQ(41, m.status.cookie);
}

TEST_F(callbacks, s5_both_are_told_that_the_peer_is_gone)
{
	struct nbed *bed = &self->bed;
	struct moments m = {};
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_OK(nbed_put(bed, 0, 0, LEN, DONE(BOTH(&m))));
	ASSERT_OK(node_close(&bed->b));
	for (i = 0; i < 20; i++)
		ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(BOTH(&m))));
	ASSERT_OK(advance_until(bed->a.context, &m.remote, 40));
	EXPECT_EQ(40, both(&m));
	EXPECT_NE(IBV_WC_SUCCESS, m.status.status);
}

/* What was not posted is not told, and what was queued is. */
TEST_F(callbacks, s5_none_for_what_was_refused)
{
	struct nbed *bed = &self->bed;
	struct vrnic_wr *wr = one_word(bed);
	struct moments m = {};
	int i, got = 0, sent;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, count_message, &got));
	sent = node_fill(&bed->a, 3000, NULL);
	ASSERT_LT(0, sent);
	wr->length = 4000;
	EXPECT_EQ(-EAGAIN, vrnic_put_inline(bed->a.to, wr, DONE(BOTH(&m))));
	for (i = 0; i < 10; i++)
		ASSERT_OK(vrnic_put_inline(bed->a.to, wr, DONE(BOTH(&m), .flags = VRNIC_QUEUE)));
	ASSERT_OK(nbed_until(bed, &got, sent));
	ASSERT_OK(nbed_until(bed, &m.remote, 10));
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(10, both(&m));
}

/* ---- each of them counts for the limit, and something may come between them ---- */

TEST_F(callbacks, s5_each_counts_for_the_limit)
{
	struct nbed *bed = &self->bed;
	struct moments m = {};
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_OK(do_put(bed, DONE(BOTH(&m))));
	ASSERT_OK(records_are_there(&bed->a));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(1, vrnic_advance(bed->a.context, 1));
		EXPECT_EQ((i + 2) / 2, m.local);
		EXPECT_EQ((i + 1) / 2, m.remote);
	}
	EXPECT_EQ(3, vrnic_advance(bed->a.context, 3));
	EXPECT_EQ(17, vrnic_advance(bed->a.context, 100));
	EXPECT_EQ(0, vrnic_advance(bed->a.context, 100));
	EXPECT_EQ(20, both(&m));
}

/* Later operations do not come between the two, although they have the same cookie. */
TEST_F(callbacks, s5_nothing_comes_between_the_two)
{
	struct nbed *bed = &self->bed;
	struct moments m[100] = {};
	int i, n = 0;

	for (i = 0; i < 100; i++) {
		ASSERT_OK(do_put(bed, DONE(BOTH(&m[i]))));
		n += vrnic_advance(bed->a.context, 1);
	}
	ASSERT_OK(records_are_there(&bed->a));
	for (; n < 200; n++) {
		ASSERT_EQ(1, vrnic_advance(bed->a.context, 1));
		EXPECT_EQ((n + 2) / 2, m[n / 2].local + n / 2);
		EXPECT_EQ((n + 1) / 2, m[n / 2].remote + n / 2);
	}
	for (i = 0; i < 100; i++)
		EXPECT_EQ(1, both(&m[i]));
}

/* The first callback destroys the endpoint: there is none to call the second for. */
static void destroy_endpoint(struct vrnic_context *context, const struct vrnic_status *status,
			     void *arg)
{
	struct moments *m = arg;

	m->local++;
	m->bad += vrnic_endpoint_destroy(m->bed->a.to) != 0;
	m->bed->a.to = NULL;
}

TEST_F(callbacks, s5_the_first_destroys_the_endpoint)
{
	struct nbed *bed = &self->bed;
	struct node_info info = node_info(&bed->b);
	struct moments m = { .bed = bed };
	int i;

	for (i = 1; i <= 10; i++) {
		ASSERT_OK(do_put(bed, DONE(.comp_mask = VRNIC_DONE_LOCAL_CALLBACK, .arg = &m,
					   .local_callback = destroy_endpoint,
					   .callback = at_remote)));
		ASSERT_OK(do_put(bed, DONE(.callback = at_remote, .arg = &m)));
		ASSERT_OK(advance_until(bed->a.context, &m.local, i));
		ASSERT_OK(node_join(&bed->a, &info));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		EXPECT_EQ(i, m.local);
		EXPECT_EQ(0, m.remote);
		EXPECT_EQ(0, m.bad);
	}
}

/* Endpoints and contexts that go take their callbacks with them. */
TEST_F(callbacks, s5_none_after_the_endpoint_is_destroyed)
{
	struct nbed *bed = &self->bed;
	struct node_info info = node_info(&bed->b);
	struct moments m = {};
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_OK(nbed_put(bed, 0, 0, LEN, DONE(BOTH(&m))));
	ASSERT_OK(vrnic_endpoint_destroy(bed->a.to));
	ASSERT_OK(node_join(&bed->a, &info));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(0, both(&m));
	for (i = 0; i < 10; i++)
		ASSERT_OK(do_put(bed, DONE(BOTH(&m))));
}

/* Offers are told of once, and do not take the second callback. */
TEST_F(callbacks, s5_offers_have_one)
{
	struct nbed *bed = &self->bed;
	struct moments m = {};

	EXPECT_EQ(-E2BIG, vrnic_rts_send(bed->a.to, OFFER(.local = bed->a.buf.addr,
							  .mr = bed->a.buf.mr, .length = 8),
					 DONE(BOTH(&m))));
	EXPECT_EQ(0, both(&m));
}

TEST_HARNESS_MAIN
