// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters: exact under concurrency, and no thread waits for an event that has happened. */
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

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
	start = now_ns();
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 0, 0));
	EXPECT_EQ(-ETIME, vrnic_counter_wait(c, 0, 1));
	EXPECT_LT(now_ns() - start, 1000 * MSEC_NS);
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
	for (i = 0; i < 2000 && !__atomic_load_n(&w.ret, __ATOMIC_RELAXED); i++) {
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

TEST_HARNESS_MAIN
