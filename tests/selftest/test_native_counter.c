// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters: exact under concurrency, and no thread waits for an event that has happened. */
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"
#include "native_raw.h"

#define LEN	65536

NBED(counter, LEN);

static int put(struct nbed *bed, size_t len)
{
	return nbed_put(bed, 0, 0, len, DONE(.target = bed->a.peer.counter));
}

TEST_F(counter, add_set_read)
{
	struct vrnic_counter *c = self->bed.a.counter;

	EXPECT_EQ(0, vrnic_counter_read(c));
	vrnic_counter_add(c, 5);
	vrnic_counter_add(c, 1ULL << 40);
	EXPECT_EQ((1LL << 40) + 5, vrnic_counter_read(c));
	vrnic_counter_set(c, -7);
	EXPECT_EQ(-7, vrnic_counter_read(c));
	vrnic_counter_add(c, 8);
	EXPECT_EQ(1, vrnic_counter_read(c));
	vrnic_counter_set(c, INT64_MAX);
	EXPECT_EQ(INT64_MAX, vrnic_counter_read(c));
	EXPECT_EQ(0, vrnic_counter_error(c, NULL));
}

/* Data may arrive before it is expected. */
TEST_F(counter, below_zero_and_back)
{
	struct nbed *bed = &self->bed;

	ASSERT_OK(put(bed, 100));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(-100, vrnic_counter_read(bed->b.open));
	EXPECT_OK(vrnic_counter_wait(bed->b.open, 0, 0));
	vrnic_counter_add(bed->b.open, 100);
	EXPECT_EQ(0, vrnic_counter_read(bed->b.open));
	EXPECT_OK(vrnic_counter_wait(bed->b.open, 0, 0));
	EXPECT_OK(vrnic_counter_wait(bed->b.open, 0, VRNIC_NO_TIMEOUT));
}

TEST_F(counter, threshold)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *c = bed->b.open;

	vrnic_counter_set(c, 1000);
	EXPECT_OK(vrnic_counter_wait(c, 1000, 0));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 999, 0));
	EXPECT_OK(vrnic_counter_wait(c, INT64_MAX, 0));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, INT64_MIN, 0));
	ASSERT_OK(put(bed, 600));
	EXPECT_OK(vrnic_counter_wait(c, 400, WAIT_NS));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 399, MSEC_NS));
	ASSERT_OK(put(bed, 500));
	EXPECT_OK(vrnic_counter_wait(c, -100, WAIT_NS));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, -101, MSEC_NS));
}

TEST_F(counter, timeout_takes_as_long_as_it_says)
{
	struct vrnic_counter *c = self->bed.a.counter;
	uint64_t start = now_ns();

	vrnic_counter_set(c, 1);
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 0, 50 * MSEC_NS));
	EXPECT_GE(now_ns() - start, 50 * MSEC_NS);
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 0, 0));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 0, 1));
}

struct waiting {
	struct vrnic_counter *counter;
	int64_t threshold;
	uint64_t timeout;
	int ret;
	int64_t seen;
	pthread_t thread;
	int tid;
};

static void *wait_for(void *arg)
{
	struct waiting *w = arg;

	w->ret = vrnic_counter_wait(w->counter, w->threshold, w->timeout);
	w->seen = vrnic_counter_read(w->counter);
	return NULL;
}

static int start_waiting(struct waiting *w)
{
	return pthread_create(&w->thread, NULL, wait_for, w);
}

/* Each of many waiters goes when its own threshold is reached. */
TEST_F(counter, waiters_with_thresholds)
{
	struct nbed *bed = &self->bed;
	struct waiting w[8];
	int i;

	vrnic_counter_set(bed->b.open, 8000);
	for (i = 0; i < 8; i++) {
		w[i] = (struct waiting){ bed->b.open, 1000 * i, WAIT_NS };
		ASSERT_OK(start_waiting(&w[i]));
	}
	usleep(10000);
	for (i = 0; i < 8; i++)
		ASSERT_OK(put(bed, 1000));
	for (i = 0; i < 8; i++) {
		ASSERT_OK(pthread_join(w[i].thread, NULL));
		EXPECT_OK(w[i].ret);
		EXPECT_LE(w[i].seen, w[i].threshold);
	}
}

/* Somebody goes to sleep just as it happens: no wake-up is lost. */
TEST_F(counter, wake_up_races)
{
	struct nbed *bed = &self->bed;
	struct rng rng = { 3 };
	struct waiting w;
	int i, spin;

	for (i = 0; i < scaled(2000); i++) {
		vrnic_counter_set(bed->b.open, 64);
		w = (struct waiting){ bed->b.open, 0, WAIT_NS };
		ASSERT_OK(start_waiting(&w));
		spin = rng_below(&rng, 2000);
		while (spin--)
			__asm__ volatile("" ::: "memory");
		if (rng_below(&rng, 8) == 0)
			usleep(rng_below(&rng, 200));
		ASSERT_OK(put(bed, 64));
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_OK(w.ret);
		ASSERT_EQ(0, vrnic_counter_read(bed->b.open));
	}
}

/* The waiter's time ends just as it happens: one of the two, and then both true. */
TEST_F(counter, timeout_races)
{
	struct nbed *bed = &self->bed;
	struct rng rng = { 4 };
	struct waiting w;
	int i, late = 0;

	for (i = 0; i < scaled(1000); i++) {
		vrnic_counter_set(bed->b.open, 64);
		w = (struct waiting){ bed->b.open, 0,
				      1000 * rng_below(&rng, 300) };
		ASSERT_OK(start_waiting(&w));
		usleep(rng_below(&rng, 200));
		ASSERT_OK(put(bed, 64));
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_TRUE(!w.ret || w.ret == -ETIME);
		late += !!w.ret;
		ASSERT_OK(vrnic_counter_wait(bed->b.open, 0, WAIT_NS));
	}
	TH_LOG("%d of %d were late", late, i);
}

/* A failure wakes a thread that waits for success. */
TEST_F(counter, failure_wakes)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	struct waiting w = { bed->a.counter, 0, WAIT_NS };
	int i;

	for (i = 0; i < 20; i++) {
		vrnic_counter_set(bed->a.counter, 1000000);
		ASSERT_OK(start_waiting(&w));
		usleep(i & 1 ? 2000 : 0);
		ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
						  .length = 8, .remote = bed->a.peer.addr,
						  .rkey = ~bed->a.peer.rkey),
				    DONE(.remote = bed->a.counter, .cookie = i)));
		ASSERT_OK(pthread_join(w.thread, NULL));
		EXPECT_EQ(-EIO, w.ret);
		EXPECT_EQ(1, vrnic_counter_error(bed->a.counter, &error));
		EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
		EXPECT_EQ(i, error.cookie);
		EXPECT_EQ(VRNIC_NOP_PUT, error.opcode);
		EXPECT_EQ(1, error.count);
	}
}

/* The first failure is kept, and all are counted. */
TEST_F(counter, first_failure_is_told)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct vrnic_error error = {};
	int i;

	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr + LEN, .rkey = a->peer.rkey),
			    DONE(.remote = a->counter, .cookie = 100)));
	for (i = 1; i < 10; i++)
		ASSERT_OK(vrnic_get(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
					      .remote = a->peer.addr, .rkey = ~a->peer.rkey),
				    DONE(.local = a->counter, .cookie = 100 + i)));
	EXPECT_EQ(-EIO, vrnic_fence_wait(a->to, WAIT_NS, NULL));
	EXPECT_EQ(10, vrnic_counter_error(a->counter, &error));
	EXPECT_EQ(10, error.count);
	EXPECT_EQ(100, error.cookie);
	EXPECT_EQ(VRNIC_NOP_PUT, error.opcode);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	vrnic_counter_set(a->counter, 0);
	EXPECT_EQ(0, vrnic_counter_error(a->counter, &error));
	EXPECT_EQ(0, error.count);
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(.remote = a->counter)));
	EXPECT_OK(counter_done(a->counter));
}

static void nothing(int sig)
{
}

TEST_F(counter, signal_interrupts)
{
	struct sigaction act = { .sa_handler = nothing };
	struct waiting w = { self->bed.a.counter, 0, WAIT_NS };
	int i;

	ASSERT_OK(sigaction(SIGUSR1, &act, NULL));
	vrnic_counter_set(w.counter, 1);
	ASSERT_OK(start_waiting(&w));
	for (i = 0; i < 50000 && !__atomic_load_n(&w.ret, __ATOMIC_RELAXED); i++) {
		usleep(1000);
		pthread_kill(w.thread, SIGUSR1);
	}
	ASSERT_OK(pthread_join(w.thread, NULL));
	EXPECT_EQ(-EINTR, w.ret);
}

/* One file descriptor for each of many counters in one epoll set. */
TEST_F(counter, epoll_on_many)
{
	struct nbed *bed = &self->bed;
	struct epoll_event event;
	struct vrnic_counter *c[16];
	int i, n, epfd = epoll_create1(0);

	ASSERT_GE(epfd, 0);
	for (i = 0; i < 16; i++) {
		ASSERT_OK(vrnic_counter_create(bed->b.client,
					       VRNIC_COUNTER_PEERS, &c[i]));
		vrnic_counter_set(c[i], 1000);
		event = (struct epoll_event){ .events = EPOLLIN, .data.u32 = i };
		ASSERT_OK(epoll_ctl(epfd, EPOLL_CTL_ADD, vrnic_counter_fd(c[i]),
				    &event));
	}
	EXPECT_EQ(0, epoll_wait(epfd, &event, 1, 10));
	for (i = 15; i >= 0; i--) {
		uint32_t target = vrnic_counter_number(c[i]);
		uint64_t value;

		ASSERT_OK(nbed_put(bed, 0, 0, 600, DONE(.target = target)));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		EXPECT_EQ(0, epoll_wait(epfd, &event, 1, 0));
		ASSERT_OK(nbed_put(bed, 0, 0, 400, DONE(.target = target)));
		n = epoll_wait(epfd, &event, 1, WAIT_SECONDS * 1000);
		ASSERT_EQ(1, n);
		EXPECT_EQ(i, event.data.u32);
		ASSERT_EQ(8, read(vrnic_counter_fd(c[i]), &value, 8));
	}
	for (i = 0; i < 16; i++)
		EXPECT_OK(vrnic_counter_destroy(c[i]));
	close(epfd);
}

/* A file that is asked for afterwards is readable at once. */
TEST_F(counter, file_of_what_has_happened)
{
	struct vrnic_counter *c = self->bed.a.counter;

	ASSERT_OK(nbed_put(&self->bed, 0, 0, 8, DONE(.remote = c)));
	ASSERT_OK(counter_done(c));
	EXPECT_TRUE(readable(vrnic_counter_fd(c), 0));
	EXPECT_EQ(vrnic_counter_fd(c), vrnic_counter_fd(c));
}

TEST_F(counter, file_is_readable_after_a_failure)
{
	struct node *a = &self->bed.a;

	vrnic_counter_set(a->counter, 1000);
	EXPECT_FALSE(readable(vrnic_counter_fd(a->counter), 10));
	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = ~a->peer.rkey),
			    DONE(.remote = a->counter)));
	EXPECT_TRUE(readable(vrnic_counter_fd(a->counter), WAIT_SECONDS * 1000));
}

/* Threads with a context each, all on one counter of the target. */
#define THREADS		4
#define PUTS		2000

struct putter {
	struct node node;
	struct node_info target;
	uint64_t sum;
	uint32_t seed;
	int error;
	pthread_t thread;
};

static int put_many(struct putter *p)
{
	struct node *n = &p->node;
	struct rng rng = { p->seed };
	int i, ret;
	size_t len;

	for (i = 0; i < PUTS; i++) {
		len = 1 + rng_below(&rng, 300);
		while ((ret = vrnic_put(n->to, WR(.local = n->buf.addr, .mr = n->buf.mr,
						  .length = len, .remote = p->target.addr,
						  .rkey = p->target.rkey),
					DONE(.target = p->target.counter,
					     .remote = n->counter))) == -EAGAIN)
			vrnic_advance(n->context, 10);
		if (ret)
			return ret;
		p->sum += len;
	}
	return counter_done(n->counter);
}

static void *putter_thread(void *arg)
{
	struct putter *p = arg;

	p->error = put_many(p);
	return NULL;
}

TEST_F(counter, exact_with_threads)
{
	struct putter *p = calloc(THREADS, sizeof(*p));
	struct node_info target = node_info(&self->bed.b);
	uint64_t sum = 0;
	int i;

	ASSERT_NE(NULL, p);
	for (i = 0; i < THREADS; i++) {
		p[i].target = target;
		p[i].seed = i;
		ASSERT_OK(node_open(&p[i].node, 4096, NULL));
		ASSERT_OK(node_join(&p[i].node, &target));
	}
	for (i = 0; i < THREADS; i++)
		ASSERT_OK(pthread_create(&p[i].thread, NULL, putter_thread, &p[i]));
	for (i = 0; i < THREADS; i++) {
		ASSERT_OK(pthread_join(p[i].thread, NULL));
		EXPECT_OK(p[i].error);
		sum += p[i].sum;
	}
	EXPECT_EQ(-(int64_t)sum, vrnic_counter_read(self->bed.b.open));
	for (i = 0; i < THREADS; i++)
		EXPECT_OK(node_close(&p[i].node));
	free(p);
}

static int putter_process(int fd, const void *arg)
{
	struct putter p = { .seed = *(const int *)arg };
	struct node_info mine = {};
	int ret = node_open(&p.node, 4096, NULL);

	(void)mine;
	if (!ret)
		ret = node_meet(&p.node, fd);
	p.target = p.node.peer;
	if (!ret)
		ret = put_many(&p);
	if (!ret && write(fd, &p.sum, sizeof(p.sum)) != sizeof(p.sum))
		ret = -EPIPE;
	return ret ? ret : node_close(&p.node);
}

/* The owner expects more while the peers count it down. */
TEST(exact_with_processes)
{
	struct peer peers[THREADS];
	struct node node = {};
	uint64_t sum, sums = 0;
	int i;

	NEED_NATIVE();
	for (i = 0; i < THREADS; i++)
		ASSERT_OK(peer_start(&peers[i], putter_process, &i));
	ASSERT_OK(node_open(&node, LEN, NULL));
	for (i = 0; i < THREADS; i++) {
		if (node.to)
			ASSERT_OK(vrnic_endpoint_destroy(node.to));
		ASSERT_OK(node_meet(&node, peers[i].fd));
	}
	for (i = 0; i < 100000; i++)
		vrnic_counter_add(node.open, 1);
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(sizeof(sum), read(peers[i].fd, &sum, sizeof(sum)));
		sums += sum;
		EXPECT_OK(peer_end(&peers[i]));
	}
	EXPECT_EQ(100000 - (int64_t)sums, vrnic_counter_read(node.open));
	EXPECT_OK(node_close(&node));
}

/* Without another look at the counter, which may be gone. */
static void *only_wait(void *arg)
{
	struct waiting *w = arg;

	__atomic_store_n(&w->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->ret = vrnic_counter_wait(w->counter, w->threshold, w->timeout);
	return NULL;
}

/* Once the thread has told its number, it sleeps only where it waits for the counter. */
static bool is_asleep(struct waiting *w)
{
	int tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
	char path[64], state = 0;
	FILE *stat;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	stat = fopen(path, "r");
	if (!stat)
		return false;
	if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(stat);
	return state == 'S';
}

/* A counter may go while it is waited for, ... */
TEST_F(counter, destroyed_while_waited_for)
{
	struct waiting w = { .timeout = WAIT_NS };
	int i;

	for (i = 0; i < scaled(100); i++) {
		ASSERT_OK(vrnic_counter_create(self->bed.a.client, 0, &w.counter));
		vrnic_counter_set(w.counter, 1);
		w.tid = 0;
		ASSERT_OK(pthread_create(&w.thread, NULL, only_wait, &w));
		while (!is_asleep(&w))
			usleep(200);
		ASSERT_OK(vrnic_counter_destroy(w.counter));
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_EQ(-ECANCELED, w.ret);
	}
}

/* ... and while operations are under way that would count it down. */
TEST_F(counter, destroyed_under_way)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *c;
	int i, j;

	for (i = 0; i < scaled(200); i++) {
		ASSERT_OK(vrnic_counter_create(bed->a.client,
					       VRNIC_COUNTER_PEERS, &c));
		for (j = 0; j < 50; j++)
			ASSERT_OK(nbed_put(bed, 0, 0, LEN,
					   DONE(.local = c, .remote = c,
						.flags = VRNIC_QUEUE)));
		ASSERT_OK(vrnic_counter_destroy(c));
		vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
	}
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

/* ---- groups (S4.6) ---- */

#define BIT(i)	(1ULL << (i))

FIXTURE(group)
{
	struct nbed bed;
	struct vrnic_counter_group *group;
	struct vrnic_counter *c[VRNIC_GROUP_COUNTERS];
};

/* b has a group with a counter for each bit; a lets them fall. */
FIXTURE_SETUP(group)
{
	struct node *b = &self->bed.b;
	uint32_t i;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&self->bed, LEN, NULL));
	ASSERT_OK(vrnic_counter_group_create(b->client, 0, &self->group));
	for (i = 0; i < VRNIC_GROUP_COUNTERS; i++)
		ASSERT_OK(vrnic_counter_create_in(self->group, i, VRNIC_COUNTER_PEERS,
						  &self->c[i]));
}

FIXTURE_TEARDOWN(group)
{
	int i;

	for (i = 0; i < VRNIC_GROUP_COUNTERS; i++)
		if (self->c[i])
			EXPECT_OK(vrnic_counter_destroy(self->c[i]));
	if (self->group)
		EXPECT_OK(vrnic_counter_group_destroy(self->group));
	EXPECT_OK(nbed_close(&self->bed));
}

static uint64_t word(const struct vrnic_counter_group *group)
{
	return __atomic_load_n(vrnic_counter_group_word(group), __ATOMIC_ACQUIRE);
}

static uint64_t failed(const struct vrnic_counter_group *group)
{
	uint64_t bits;

	vrnic_counter_group_read(group, &bits);
	return bits;
}

/* Bytes come for a counter, and have been counted when this returns. */
static int come(struct nbed *bed, const struct vrnic_counter *c, size_t bytes)
{
	int ret = nbed_put(bed, 0, 0, bytes, DONE(.target = vrnic_counter_number(c)));

	return ret ? ret : vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
}

/* A bit for each of 64 transfers, all in one word. */
TEST_F(group, s4_6_one_word_tells_of_64)
{
	uint64_t all = UINT64_MAX, expected = 0;
	struct rng rng = { 46 };
	int i, n;

	EXPECT_EQ(all, word(self->group));
	for (i = 0; i < VRNIC_GROUP_COUNTERS; i++) {
		vrnic_counter_add(self->c[i], 100);
		EXPECT_EQ(i < 63 ? all << (i + 1) : 0, word(self->group));
	}
	for (n = 0; n < 2 * VRNIC_GROUP_COUNTERS; n++) {
		i = rng_below(&rng, VRNIC_GROUP_COUNTERS);
		while (vrnic_counter_read(self->c[i]) <= 0)
			i = (i + 1) % VRNIC_GROUP_COUNTERS;
		if (vrnic_counter_read(self->c[i]) == 40)
			expected |= BIT(i);
		ASSERT_OK(come(&self->bed, self->c[i], expected & BIT(i) ? 40 : 60));
		ASSERT_EQ(expected, word(self->group));
	}
	EXPECT_EQ(all, word(self->group));
	EXPECT_EQ(0, failed(self->group));
}

/* The bit says what the counter says, whatever the process does with it. */
TEST_F(group, s4_6_bits_follow_add_and_set)
{
	static const struct {
		bool set;
		int64_t n;
	} steps[] = {
		{ true, 5 }, { true, 0 }, { false, 1 }, { true, -3 }, { false, 2 }, { false, 1 },
		{ false, 1 }, { false, 7 }, { true, INT64_MIN }, { true, INT64_MAX }, { true, -1 },
		{ false, 1 }, { false, 1 }, { true, 1 }, { true, 0 },
	};
	struct vrnic_counter *c = self->c[63];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i].set)
			vrnic_counter_set(c, steps[i].n);
		else
			vrnic_counter_add(c, steps[i].n);
		ASSERT_EQ(vrnic_counter_read(c) <= 0 ? UINT64_MAX : UINT64_MAX >> 1,
			  word(self->group)) TH_LOG("step %u", i);
	}
}

/* Bytes that come early are no reason to say that all have come. */
TEST_F(group, s4_6_below_zero_and_back)
{
	struct vrnic_counter *c = self->c[7];

	ASSERT_OK(come(&self->bed, c, 100));
	EXPECT_EQ(UINT64_MAX, word(self->group));
	vrnic_counter_add(c, 100);
	EXPECT_EQ(UINT64_MAX, word(self->group));
	vrnic_counter_add(c, 100);
	EXPECT_EQ(~BIT(7), word(self->group));
	ASSERT_OK(come(&self->bed, c, 100));
	EXPECT_EQ(UINT64_MAX, word(self->group));
}

/* A post arms the counters that it names. */
TEST_F(group, s4_6_posts_arm)
{
	struct nbed *bed = &self->bed;
	uint64_t end = now_ns() + WAIT_NS, done = 0;
	struct vrnic_counter_group *group;
	struct vrnic_counter *c[2];

	ASSERT_OK(vrnic_counter_group_create(bed->a.client, 0, &group));
	ASSERT_OK(vrnic_counter_create_in(group, 3, 0, &c[0]));
	ASSERT_OK(vrnic_counter_create_in(group, 5, 0, &c[1]));
	EXPECT_EQ(BIT(3) | BIT(5), word(group));
	/* b does not look, so the put waits */
	ASSERT_GT(node_fill(&bed->a, 512, NULL), 0);
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(.local = c[0], .remote = c[1],
					      .flags = VRNIC_QUEUE)));
	EXPECT_EQ(0, word(group));
	EXPECT_EQ(-ETIME, vrnic_counter_group_wait(group, BIT(3) | BIT(5), 0, MSEC_NS, &done));
	EXPECT_EQ(0, done);
	while (word(group) != (BIT(3) | BIT(5)) && now_ns() < end) {
		vrnic_advance(bed->b.context, 10);
		vrnic_advance(bed->a.context, 10);
	}
	EXPECT_EQ(BIT(3) | BIT(5), word(group));
	EXPECT_OK(vrnic_counter_group_wait(group, BIT(3) | BIT(5), VRNIC_WAIT_ALL, WAIT_NS,
					   &done));
	EXPECT_EQ(BIT(3) | BIT(5), done);
	EXPECT_OK(vrnic_counter_destroy(c[0]));
	EXPECT_EQ(BIT(5), word(group));
	EXPECT_OK(vrnic_counter_destroy(c[1]));
	EXPECT_OK(vrnic_counter_group_destroy(group));
}

/* A failure is an end, too, and the second word tells it from a success. */
TEST_F(group, s4_6_failures_set_both_bits)
{
	struct node *a = &self->bed.a;
	struct vrnic_counter_group *group;
	struct vrnic_counter *c[2];
	uint64_t done = 0;
	uint32_t i;

	ASSERT_OK(vrnic_counter_group_create(a->client, 0, &group));
	for (i = 0; i < 2; i++) {
		ASSERT_OK(vrnic_counter_create_in(group, i, 0, &c[i]));
		vrnic_counter_add(c[i], 1000);
	}
	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = ~a->peer.rkey),
			    DONE(.remote = c[1])));
	EXPECT_EQ(-EIO, vrnic_counter_group_wait(group, 3, VRNIC_WAIT_ALL, WAIT_NS, &done));
	EXPECT_EQ(2, done);
	EXPECT_EQ(2, word(group));
	EXPECT_EQ(2, failed(group));
	EXPECT_EQ(-EIO, vrnic_counter_group_wait(group, 2, 0, 0, NULL));
	EXPECT_EQ(-ETIME, vrnic_counter_group_wait(group, 1, 0, MSEC_NS, NULL));
	/* more to come does not undo a failure, ... */
	vrnic_counter_add(c[1], 1000);
	EXPECT_EQ(2, word(group));
	/* ... only vrnic_counter_set() does */
	vrnic_counter_set(c[1], 10);
	EXPECT_EQ(0, word(group));
	EXPECT_EQ(0, failed(group));
	vrnic_counter_set(c[1], 0);
	EXPECT_EQ(2, word(group));
	EXPECT_EQ(0, failed(group));
	for (i = 0; i < 2; i++)
		EXPECT_OK(vrnic_counter_destroy(c[i]));
	EXPECT_OK(vrnic_counter_group_destroy(group));
}

/**
 * struct group_waiting - a thread that waits for counters of a group
 * @seen: what it was told
 */
struct group_waiting {
	struct vrnic_counter_group *group;
	uint64_t mask;
	uint32_t flags;
	uint64_t timeout;
	int ret;
	uint64_t seen;
	pthread_t thread;
	int tid;
};

static void *group_wait(void *arg)
{
	struct group_waiting *w = arg;

	__atomic_store_n(&w->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->ret = vrnic_counter_group_wait(w->group, w->mask, w->flags, w->timeout, &w->seen);
	return NULL;
}

static int group_sleeper(struct group_waiting *w)
{
	struct waiting who = {};
	int ret;

	w->tid = 0;
	ret = pthread_create(&w->thread, NULL, group_wait, w);
	while (!ret && !is_asleep(&who)) {
		usleep(200);
		who.tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
	}
	return ret;
}

TEST_F(group, s4_6_waits_for_any_and_for_all)
{
	struct group_waiting any = { self->group, 0xf0, 0, WAIT_NS };
	struct group_waiting all = { self->group, 0xf0, VRNIC_WAIT_ALL, WAIT_NS };
	int i;

	for (i = 0; i < 8; i++)
		vrnic_counter_add(self->c[i], 64);
	ASSERT_OK(group_sleeper(&any));
	ASSERT_OK(group_sleeper(&all));
	/* nobody waits for this one */
	ASSERT_OK(come(&self->bed, self->c[0], 64));
	for (i = 5; i < 8; i++) {
		ASSERT_OK(come(&self->bed, self->c[i], 64));
		if (i > 5)
			continue;
		ASSERT_OK(pthread_join(any.thread, NULL));
		EXPECT_OK(any.ret);
		EXPECT_EQ(0x20, any.seen);
	}
	EXPECT_EQ(-ETIME, vrnic_counter_group_wait(self->group, 0xff, VRNIC_WAIT_ALL, 0,
						   &any.seen));
	EXPECT_EQ(0xe1, any.seen);
	ASSERT_OK(come(&self->bed, self->c[4], 64));
	ASSERT_OK(pthread_join(all.thread, NULL));
	EXPECT_OK(all.ret);
	EXPECT_EQ(0xf0, all.seen);
}

/* Somebody goes to sleep just as the last of them is done: no wake-up is lost. */
TEST_F(group, s4_6_wake_up_races)
{
	struct group_waiting w = { self->group, 3, VRNIC_WAIT_ALL, WAIT_NS };
	struct rng rng = { 3 };
	int i, spin;

	for (i = 0; i < scaled(2000); i++) {
		vrnic_counter_add(self->c[0], 64);
		vrnic_counter_add(self->c[1], 64);
		ASSERT_OK(pthread_create(&w.thread, NULL, group_wait, &w));
		spin = rng_below(&rng, 2000);
		while (spin--)
			__asm__ volatile("" ::: "memory");
		if (rng_below(&rng, 8) == 0)
			usleep(rng_below(&rng, 200));
		ASSERT_OK(nbed_put(&self->bed, 0, 0, 64,
				   DONE(.target = vrnic_counter_number(self->c[i & 1]))));
		ASSERT_OK(nbed_put(&self->bed, 0, 0, 64,
				   DONE(.target = vrnic_counter_number(self->c[~i & 1]))));
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_OK(w.ret);
		ASSERT_EQ(3, w.seen);
		ASSERT_EQ(3, word(self->group) & 3);
	}
}

/**
 * struct faller - a thread that lets a counter fall by 8, as often as it is asked to
 * @fall: how
 * @asked: how often it is to do so; -1: no more
 * @fell: how often it did
 * @spin: how long the thread that asks takes until it arms the counter
 */
struct faller {
	struct nbed *bed;
	struct vrnic_counter *c;
	int bell;
	int (*fall)(struct faller *f);
	int asked;
	int fell;
	int spin;
	int ret;
	pthread_t thread;
};

static int fall_by_put(struct faller *f)
{
	return come(f->bed, f->c, 8);
}

/* Faster, so that both threads meet more often. */
static int fall_by_call(struct faller *f)
{
	const struct vrnic_count count = {
		.id = vrnic_counter_number(f->c), .bytes = 8,
	};

	return ioctl(f->bell, VRNIC_COUNT, &count) ? -errno : 0;
}

static void *fall_on(void *arg)
{
	struct faller *f = arg;
	int asked;

	for (;;) {
		asked = __atomic_load_n(&f->asked, __ATOMIC_ACQUIRE);
		if (asked < 0)
			return NULL;
		if (asked == f->fell) {
			sched_yield();
			continue;
		}
		if (f->fall(f))
			f->ret = -EIO;
		__atomic_store_n(&f->fell, asked, __ATOMIC_RELEASE);
	}
}

static void ask_fall(struct faller *f)
{
	__atomic_store_n(&f->asked, f->asked + 1, __ATOMIC_RELEASE);
}

/*
 * Arm the counter just when it falls: a little later next time if the fall comes after this, a
 * little earlier if it came before. So on two CPUs both happen at once in many rounds.
 */
static void arm(struct faller *f, int64_t was, struct rng *rng)
{
	int spin = f->spin + rng_below(rng, 64);

	while (spin--)
		__asm__ volatile("" ::: "memory");
	if (vrnic_counter_read(f->c) == was)
		f->spin += 1 + f->spin / 32;
	else
		f->spin -= f->spin / 32 + !!f->spin;
	if (f->spin > 1000000)
		f->spin = 0;
	vrnic_counter_add(f->c, 8);
}

static void await_fall(struct faller *f)
{
	while (__atomic_load_n(&f->fell, __ATOMIC_ACQUIRE) != f->asked)
		sched_yield();
}

/**
 * struct lies - how often the word said what is not so
 * @lost: a bit was not set although the counter was done
 * @stale: a bit was set although the counter was armed
 */
struct lies {
	int lost, stale;
};

/*
 * Two rounds: the counter is armed, and falls to zero, at the same time, in either order; and
 * it falls to zero and is armed again at the same time. What the word says counts when the thread
 * that armed the counter is done with that.
 */
static void two_rounds(struct faller *f, const struct vrnic_counter_group *group, uint64_t bit,
		       struct rng *rng, struct lies *lies)
{
	ask_fall(f);
	arm(f, 0, rng);
	await_fall(f);
	lies->lost += !(word(group) & bit);

	vrnic_counter_add(f->c, 8);
	lies->stale += !!(word(group) & bit);
	ask_fall(f);
	arm(f, 8, rng);
	lies->stale += !!(word(group) & bit);
	await_fall(f);
	lies->stale += !!(word(group) & bit);
	/* from 8 to zero */
	ask_fall(f);
	await_fall(f);
	lies->lost += !(word(group) & bit);
}

/* Not for long: on busy CPUs the threads wait for each other most of the time. */
static struct lies race(struct faller *f, const struct vrnic_counter_group *group, uint64_t bit,
			int rounds)
{
	uint64_t end = now_ns() + 5000 * MSEC_NS;
	struct rng rng = { 64 };
	struct lies lies = {};

	if (pthread_create(&f->thread, NULL, fall_on, f)) {
		f->ret = -EAGAIN;
		return lies;
	}
	while (rounds-- > 0 && now_ns() < end)
		two_rounds(f, group, bit, &rng, &lies);
	__atomic_store_n(&f->asked, -1, __ATOMIC_RELEASE);
	pthread_join(f->thread, NULL);
	return lies;
}

/* No bit is lost, and none is left from before. */
TEST_F(group, s4_6_arming_races_with_the_fall)
{
	struct faller f = { .bed = &self->bed, .c = self->c[9], .fall = fall_by_put };
	struct lies lies = race(&f, self->group, BIT(9), scaled(5000));

	EXPECT_OK(f.ret);
	EXPECT_EQ(0, lies.lost);
	EXPECT_EQ(0, lies.stale);
	EXPECT_EQ(0, vrnic_counter_read(self->c[9]));
	EXPECT_EQ(UINT64_MAX, word(self->group));
}

TEST_F(group, s4_6_arming_races_with_the_call)
{
	struct faller f = { .c = self->c[10], .fall = fall_by_call };
	struct lies lies;

	f.bell = raw_open_bell(vrnic_client_verbs(self->bed.b.client));
	ASSERT_GE(f.bell, 0);
	lies = race(&f, self->group, BIT(10), scaled(100000));
	EXPECT_OK(f.ret);
	EXPECT_EQ(0, lies.lost);
	EXPECT_EQ(0, lies.stale);
	EXPECT_EQ(0, vrnic_counter_read(self->c[10]));
	close(f.bell);
}

/* Many threads arm one counter, and one lets it fall: the word is right in the end. */
static void *arm_often(void *arg)
{
	struct vrnic_counter *c = arg;
	int i;

	for (i = 0; i < 1000; i++)
		vrnic_counter_add(c, 8);
	return NULL;
}

TEST_F(group, s4_6_threads_arm_one_counter)
{
	struct faller f = { .c = self->c[11] };
	pthread_t thread[THREADS];
	int i, round;

	f.bell = raw_open_bell(vrnic_client_verbs(self->bed.b.client));
	ASSERT_GE(f.bell, 0);
	for (round = 0; round < scaled(20); round++) {
		for (i = 0; i < THREADS; i++)
			ASSERT_OK(pthread_create(&thread[i], NULL, arm_often, f.c));
		for (i = 0; i < THREADS * 1000; i++)
			ASSERT_OK(fall_by_call(&f));
		for (i = 0; i < THREADS; i++)
			ASSERT_OK(pthread_join(thread[i], NULL));
		ASSERT_EQ(0, vrnic_counter_read(f.c));
		ASSERT_EQ(UINT64_MAX, word(self->group));
	}
	close(f.bell);
}

/* A process that writes to the words deceives itself, and not the kernel. */
TEST_F(group, s4_6_the_kernel_does_not_believe_the_words)
{
	uint64_t *words = (uint64_t *)vrnic_counter_group_word(self->group);
	struct group_waiting w = { self->group, 2, 0, WAIT_NS };
	uint64_t done;

	vrnic_counter_add(self->c[0], 64);
	words[0] = 0;
	words[1] = UINT64_MAX << 1;
	/* the kernel is asked, because the words say that nothing is done */
	EXPECT_EQ(-ETIME, vrnic_counter_group_wait(self->group, 1, 0, MSEC_NS, &done));
	words[1] = 0;
	EXPECT_OK(vrnic_counter_group_wait(self->group, 3, 0, WAIT_NS, &done));
	EXPECT_EQ(2, done);
	vrnic_counter_add(self->c[1], 64);
	ASSERT_OK(group_sleeper(&w));
	words[0] = UINT64_MAX;
	words[1] = UINT64_MAX;
	usleep(1000);
	words[0] = 0;
	words[1] = 0;
	EXPECT_TRUE(is_asleep(&(struct waiting){ .tid = w.tid }));
	ASSERT_OK(come(&self->bed, self->c[1], 64));
	ASSERT_OK(pthread_join(w.thread, NULL));
	EXPECT_OK(w.ret);
	EXPECT_EQ(2, word(self->group));
}

/* A counter may go while it is waited for; the group goes when it has no counter any more. */
TEST_F(group, s4_6_destroyed_while_waited_for)
{
	struct group_waiting w = { .timeout = WAIT_NS };
	struct vrnic_counter *c[2];
	int i, j;

	for (i = 0; i < scaled(100); i++) {
		ASSERT_OK(vrnic_counter_group_create(self->bed.b.client, 0, &w.group));
		for (j = 0; j < 2; j++) {
			ASSERT_OK(vrnic_counter_create_in(w.group, 62 + j, 0, &c[j]));
			vrnic_counter_set(c[j], 1);
		}
		w.mask = 3ULL << 62;
		w.flags = i & 1 ? VRNIC_WAIT_ALL : 0;
		ASSERT_OK(group_sleeper(&w));
		ASSERT_EQ(-EBUSY, vrnic_counter_group_destroy(w.group));
		ASSERT_OK(vrnic_counter_destroy(c[0]));
		if (i & 2) {
			ASSERT_OK(vrnic_counter_destroy(c[1]));
			ASSERT_OK(vrnic_counter_group_destroy(w.group));
		}
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_EQ(-ECANCELED, w.ret);
		if (!(i & 2)) {
			ASSERT_OK(vrnic_counter_destroy(c[1]));
			ASSERT_OK(vrnic_counter_group_destroy(w.group));
		}
	}
}

/* The next counter has the bit before the sleeper has looked: it waited for the former one. */
TEST_F(group, s4_6_a_successor_is_not_waited_for)
{
	struct group_waiting w = { .mask = 1, .timeout = WAIT_NS };
	struct vrnic_counter *c;
	int i;

	ASSERT_OK(vrnic_counter_group_create(self->bed.b.client, 0, &w.group));
	ASSERT_OK(vrnic_counter_create_in(w.group, 0, 0, &c));
	for (i = 0; i < scaled(100); i++) {
		vrnic_counter_set(c, 1);
		ASSERT_OK(group_sleeper(&w));
		ASSERT_OK(vrnic_counter_destroy(c));
		ASSERT_OK(vrnic_counter_create_in(w.group, 0, 0, &c));
		vrnic_counter_set(c, 1);
		ASSERT_OK(pthread_join(w.thread, NULL));
		ASSERT_EQ(-ECANCELED, w.ret);
	}
	ASSERT_OK(vrnic_counter_destroy(c));
	ASSERT_OK(vrnic_counter_group_destroy(w.group));
}

/* A counter and its group go while bytes come for it; the next one has the bit at once. */
TEST_F(group, s4_6_destroyed_under_way)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter_group *group;
	struct vrnic_counter *c;
	int i, j;

	for (i = 0; i < scaled(200); i++) {
		ASSERT_OK(vrnic_counter_group_create(bed->a.client, 0, &group));
		for (j = 0; j < 3; j++) {
			ASSERT_OK(vrnic_counter_create_in(group, 1, 0, &c));
			ASSERT_EQ(2, word(group));
			ASSERT_OK(nbed_put(bed, 0, 0, LEN,
					   DONE(.local = c, .remote = c, .flags = VRNIC_QUEUE)));
			ASSERT_OK(vrnic_counter_destroy(c));
			ASSERT_EQ(0, word(group));
		}
		ASSERT_OK(vrnic_counter_group_destroy(group));
		vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
	}
}

TEST_F(group, s4_6_a_signal_interrupts)
{
	struct sigaction act = { .sa_handler = nothing };
	struct group_waiting w = { self->group, 1, 0, WAIT_NS };
	int i;

	ASSERT_OK(sigaction(SIGUSR1, &act, NULL));
	vrnic_counter_set(self->c[0], 1);
	ASSERT_OK(pthread_create(&w.thread, NULL, group_wait, &w));
	for (i = 0; i < 50000 && !__atomic_load_n(&w.ret, __ATOMIC_RELAXED); i++) {
		usleep(1000);
		pthread_kill(w.thread, SIGUSR1);
	}
	ASSERT_OK(pthread_join(w.thread, NULL));
	EXPECT_EQ(-EINTR, w.ret);
}

TEST_F(group, s4_6_refuses_what_makes_no_sense)
{
	struct vrnic_counter_group *group;
	struct vrnic_counter *c;

	EXPECT_EQ(-EBUSY, vrnic_counter_create_in(self->group, 0, 0, &c));
	EXPECT_EQ(-EINVAL, vrnic_counter_create_in(self->group, 64, 0, &c));
	EXPECT_EQ(-EINVAL, vrnic_counter_create_in(self->group, UINT32_MAX, 0, &c));
	EXPECT_EQ(-EINVAL, vrnic_counter_create_in(NULL, 0, 0, &c));
	EXPECT_EQ(-EINVAL, vrnic_counter_group_create(self->bed.a.client, 1, &group));
	EXPECT_EQ(-EINVAL, vrnic_counter_group_wait(self->group, 0, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, vrnic_counter_group_wait(self->group, 1, 2, 0, NULL));
	EXPECT_EQ(-EINVAL, vrnic_counter_group_wait(NULL, 1, 0, 0, NULL));
	EXPECT_EQ(-EBUSY, vrnic_counter_group_destroy(self->group));
	ASSERT_OK(vrnic_counter_group_create(self->bed.a.client, 0, &group));
	EXPECT_EQ(-EINVAL, vrnic_counter_group_wait(group, 1, 0, 0, NULL));
	EXPECT_OK(vrnic_counter_group_destroy(group));
}

/* The kernel's own answers, which the library does not ask for. */
TEST_F(group, s4_6_refuses_waits_that_make_no_sense)
{
	struct vrnic_wait_group wait = { .mask = 1, .timeout_ns = 1 };
	int bell = raw_open_bell(vrnic_client_verbs(self->bed.b.client));
	uint32_t i;

	ASSERT_GE(bell, 0);
	for (i = 0; i < 1000; i++) {
		wait.group = i;
		ASSERT_EQ(-1, ioctl(bell, VRNIC_WAIT_GROUP, &wait));
		ASSERT_EQ(EINVAL, errno);
	}
	ASSERT_EQ(-1, ioctl(bell, VRNIC_WAIT_GROUP, NULL));
	ASSERT_EQ(EFAULT, errno);
	close(bell);
}

/* It sleeps for what nobody will bring, and is killed. */
static int sleeps_on_a_group(int fd, const void *arg)
{
	struct group_waiting w = { .mask = 1, .timeout = VRNIC_NO_TIMEOUT };
	struct vrnic_counter *c;
	struct node node = {};
	int ret = node_open(&node, LEN, NULL);

	(void)arg;
	if (!ret)
		ret = vrnic_counter_group_create(node.client, 0, &w.group);
	if (!ret)
		ret = vrnic_counter_create_in(w.group, 0, VRNIC_COUNTER_PEERS, &c);
	if (ret)
		return ret;
	vrnic_counter_set(c, INT64_MAX);
	node.open = c;
	ret = node_meet(&node, fd);
	if (!ret)
		ret = group_sleeper(&w);
	if (!ret)
		ret = say(fd);
	for (;;)
		pause();
	return ret;
}

/* A process dies while it sleeps, and while bytes come for its group. */
TEST(s4_6_a_process_dies_while_it_waits)
{
	char before[256], after[256];
	struct patience p = {};
	struct node node = {};
	struct peer peer;
	int i;

	NEED_NATIVE();
	ASSERT_LE(0, native_objects(before, sizeof(before)));
	ASSERT_OK(peer_start(&peer, sleeps_on_a_group, NULL));
	ASSERT_OK(node_open(&node, LEN, NULL));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(hear(peer.fd));
	for (i = 0; i < 50; i++)
		vrnic_put(node.to, WR(.local = node.buf.addr, .mr = node.buf.mr, .length = LEN,
				      .remote = node.peer.addr, .rkey = node.peer.rkey),
			  DONE(.target = node.peer.counter, .flags = VRNIC_QUEUE));
	ASSERT_OK(peer_kill(&peer));
	vrnic_fence_wait(node.to, WAIT_NS, NULL);
	EXPECT_OK(node_close(&node));
	/* some of the killed process go a while later */
	do {
		ASSERT_LE(0, native_objects(after, sizeof(after)));
	} while (strcmp(before, after) && still_patient(&p, 0) && !usleep(10000));
	EXPECT_STREQ(before, after);
}

TEST_HARNESS_MAIN
