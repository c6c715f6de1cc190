// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S5: fences without accounting, and advance. */
#include <pthread.h>
#include <semaphore.h>

#include "native.h"
#include "native_raw.h"

#define LEN	(1 << 20)

NBED(fence, LEN, .inject_slots = 2048);

TEST_F(fence, s5_1_endpoint_is_client_context_task)
{
	struct vrnic_context *c[4];
	struct vrnic_endpoint *to[4];
	struct vrnic_context_attr attr = {};
	struct vrnic_address address;
	struct vrnic_peer peer;
	char name[32];
	int i;

	snprintf(name, sizeof(name), "fence-%d", getpid());
	attr.name = name;
	for (i = 0; i < 4; i++) {
		attr.task = i / 2;
		attr.number = i % 2;
		ASSERT_OK(vrnic_context_create(self->bed.b.client, &attr, &c[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_OK(vrnic_endpoint_find(self->bed.a.context, name, i / 2,
					      i % 2, &to[i]));
		vrnic_context_address(c[i], &address);
		vrnic_endpoint_peer(to[i], &peer);
		EXPECT_EQ(address.fifo, peer.fifo);
		EXPECT_EQ(i / 2, peer.task);
	}
	EXPECT_EQ(-ENOENT, vrnic_endpoint_find(self->bed.a.context, name, 2, 0,
					       &to[0]));
	EXPECT_EQ(-ENOENT, vrnic_endpoint_find(self->bed.a.context, name, 0, 2,
					       &to[0]));
	EXPECT_EQ(-ENOENT, vrnic_endpoint_find(self->bed.a.context, "no such name",
					       0, 0, &to[0]));
	for (i = 0; i < 4; i++) {
		EXPECT_OK(vrnic_endpoint_destroy(to[i]));
		EXPECT_OK(vrnic_context_destroy(c[i]));
	}
}

/* The order in which callbacks come is that of the queue. */
struct sequence {
	int count, bad;
};

static void in_order(struct vrnic_context *context,
		     const struct vrnic_status *status, void *arg)
{
	struct sequence *s = arg;

	/* a fence's cookie is that of what failed before it */
	s->bad += status->status || (status->opcode != VRNIC_NOP_FENCE &&
				     status->cookie != (uint64_t)s->count);
	s->count++;
}

TEST_F(fence, s5_2_queue_is_executed_in_order)
{
	struct nbed *bed = &self->bed;
	struct sequence s = {};
	struct vrnic_done done = { .callback = in_order, .arg = &s };
	struct rng rng = { 5 };
	int i, ret;

	for (i = 0; i < 1000; i++) {
		size_t len = 1 + (rng_below(&rng, 10) ? rng_below(&rng, 100) :
						       rng_below(&rng, LEN));

		done.cookie = i;
		switch (rng_below(&rng, 4)) {
		case 0:
			ret = vrnic_fence(bed->a.to, &done);
			break;
		case 1:
			ret = nbed_get(bed, 0, 0, len, &done);
			break;
		default:
			ret = nbed_put(bed, 0, 0, len, &done);
		}
		ASSERT_OK(ret);
	}
	ASSERT_OK(advance_until(bed->a.context, &s.count, 1000));
	EXPECT_EQ(0, s.bad);
}

/* At the moment the fence is told, all before it is in place. */
struct arrival {
	struct nbed *bed;
	int puts, count, bad;
};

#define PIECE	64

static void all_there(struct vrnic_context *context,
		      const struct vrnic_status *status, void *arg)
{
	struct arrival *a = arg;

	a->bad += !!status->status;
	a->bad += !nbed_arrived(a->bed, 50, 0, 0, (size_t)a->puts * PIECE);
	a->count++;
}

static const int puts_before[] = { 0, 1, 2, 10, 100, 1000 };

TEST_F(fence, s5_3_done_when_all_before_it_is)
{
	struct nbed *bed = &self->bed;
	struct arrival a = { bed };
	unsigned int i;
	int j;

	buf_fill(&bed->a.buf, 50);
	for (i = 0; i < ARRAY_SIZE(puts_before); i++) {
		memset(bed->b.buf.addr, 0, LEN);
		a.puts = puts_before[i];
		for (j = 0; j < a.puts; j++)
			ASSERT_OK(nbed_put(bed, j * PIECE, j * PIECE, PIECE, NULL));
		ASSERT_OK(vrnic_fence(bed->a.to, DONE(.callback = all_there,
						      .arg = &a)));
		ASSERT_OK(advance_until(bed->a.context, &a.count, i + 1));
		EXPECT_EQ(0, a.bad) TH_LOG("%d puts", a.puts);
	}
}

/* A fence also covers operations so large that engine threads do them. */
TEST_F(fence, s5_3_large_puts_and_gets)
{
	struct nbed *bed = &self->bed;
	int i;

	for (i = 0; i < 20; i++) {
		buf_fill(&bed->a.buf, i);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(nbed_put(bed, 0, 0, LEN, NULL));
		ASSERT_OK(nbed_put(bed, 0, 0, LEN, NULL));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		ASSERT_TRUE(nbed_arrived(bed, i, 0, 0, LEN));
		memset(bed->a.buf.addr, 0, LEN);
		ASSERT_OK(nbed_get(bed, 0, 0, LEN, NULL));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		ASSERT_EQ(-1, buf_differs(&bed->a.buf, 0, LEN, i, 0));
	}
}

/* Operations behind the fence wait for their turn, and the fence does not wait for them. */
TEST_F(fence, s5_3_later_operations_behind_it)
{
	struct nbed *bed = &self->bed;
	struct told fences = {}, puts = {};
	int i;

	for (i = 0; i < 200; i++) {
		ASSERT_OK(nbed_put(bed, 0, 0, 4096, DONE(TELL(&puts))));
		ASSERT_OK(vrnic_fence(bed->a.to, DONE(TELL(&fences))));
	}
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(TELL(&puts))));
	ASSERT_OK(advance_until(bed->a.context, &puts.count, 201));
	EXPECT_EQ(200, fences.count);
	EXPECT_EQ(IBV_WC_SUCCESS, fences.status.status);
	EXPECT_EQ(VRNIC_NOP_FENCE, fences.status.opcode);
}

/* One slot and one record, and no memory that grows with what is before it. */
TEST(s5_4_costs_one_descriptor)
{
	struct vrnic_record record;
	struct raw_pair pair = {};
	struct vrnic_ndesc put, fence;
	uint32_t before;
	int i, round;

	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&pair, 4096, 256, 4096));
	put = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8,
		.endpoint = pair.a_to_b,
		.local_addr = (uintptr_t)pair.a.buf.addr,
		.lkey = pair.a.buf.mr->lkey,
		.remote_addr = (uintptr_t)pair.b.buf.addr,
		.rkey = pair.b.buf.mr->rkey,
	};
	fence = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_FENCE, .num_slots = 1,
		.flags = VRNIC_NDESC_SIGNALED, .endpoint = pair.a_to_b,
	};
	for (round = 0; round < 3; round++) {
		for (i = 0; i < (round ? round * 2000 : 1); i++)
			raw_fill(&pair.a, &put, NULL, 0);
		before = pair.a.inject->prod;
		fence.cookie = round;
		ASSERT_OK(raw_post(&pair.a, &fence, NULL, 0));
		EXPECT_EQ(before + 1, pair.a.inject->prod);
		ASSERT_OK(raw_take(&pair.a, &record));
		EXPECT_EQ(VRNIC_NOP_FENCE, record.opcode);
		EXPECT_EQ(round, record.cookie);
		EXPECT_EQ(IBV_WC_SUCCESS, record.status);
		EXPECT_EQ(1, record.num_slots);
		EXPECT_EQ(-EAGAIN, raw_try(&pair.a, &record));
		EXPECT_EQ(before + 1, pair.a.inject->cons);
	}
	EXPECT_OK(raw_pair_close(&pair));
}

static int bad_put(struct nbed *bed, uint64_t cookie)
{
	struct node *a = &bed->a;

	return vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				   .remote = a->peer.addr, .rkey = ~a->peer.rkey),
			 DONE(.cookie = cookie));
}

TEST_F(fence, s5_5_tells_the_first_that_failed)
{
	struct nbed *bed = &self->bed;
	struct vrnic_status status = {};
	struct told told = {};
	int i;

	for (i = 0; i < 100; i++)
		ASSERT_OK(i == 40 || i == 60 ? bad_put(bed, i) :
			  nbed_put(bed, 0, 0, 8, DONE(.cookie = i)));
	ASSERT_OK(vrnic_fence(bed->a.to, DONE(TELL(&told), .cookie = 7777,
					      .remote = bed->a.counter)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, told.status);
	EXPECT_EQ(VRNIC_VERR_KEY, told.status.vendor_err);
	EXPECT_EQ(VRNIC_NOP_PUT, told.status.opcode);
	EXPECT_EQ(40, told.status.cookie);
	EXPECT_EQ(-EIO, counter_done(bed->a.counter));
	vrnic_counter_set(bed->a.counter, 0);
	/* told once: the next fence is about what came after */
	ASSERT_OK(nbed_put(bed, 0, 0, 8, NULL));
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_EQ(IBV_WC_SUCCESS, status.status);
	ASSERT_OK(bad_put(bed, 90));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, status);
	EXPECT_EQ(90, status.cookie);
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

/* A fence does not tell failures of other endpoints. */
TEST_F(fence, s5_5_each_endpoint_for_itself)
{
	struct nbed *bed = &self->bed;
	struct node_info info = node_info(&bed->b);
	struct vrnic_endpoint *other;

	ASSERT_OK(vrnic_endpoint_create(bed->a.context, &info.address, &other));
	ASSERT_OK(bad_put(bed, 1));
	EXPECT_OK(vrnic_fence_wait(other, WAIT_NS, NULL));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_OK(vrnic_endpoint_destroy(other));
}

#define ENDPOINTS	5

TEST_F(fence, s5_5_all_endpoints)
{
	struct nbed *bed = &self->bed;
	struct node peers[ENDPOINTS] = {};
	struct vrnic_endpoint *to[ENDPOINTS];
	struct vrnic_status status = {};
	struct node *a = &bed->a;
	struct node_info info;
	struct vrnic_wr wr = { .local = a->buf.addr, .mr = a->buf.mr };
	int i, j, round;

	buf_fill(&a->buf, 55);
	for (i = 0; i < ENDPOINTS; i++) {
		ASSERT_OK(node_open(&peers[i], LEN, NULL));
		info = node_info(&peers[i]);
		ASSERT_OK(vrnic_endpoint_create(a->context, &info.address, &to[i]));
	}
	for (round = 0; round < 3; round++) {
		for (j = 0; j < 20; j++)
			for (i = 0; i < ENDPOINTS; i++) {
				wr.remote = (uintptr_t)peers[i].buf.addr;
				wr.length = j ? 1000 : LEN;
				wr.rkey = peers[i].buf.mr->rkey;
				if (round == 1 && i == 2 && j == 7)
					wr.rkey ^= 1;
				ASSERT_OK(vrnic_put(to[i], &wr, DONE(.cookie = i * 100 + j)));
			}
		EXPECT_EQ(round == 1 ? -EIO : 0,
			  vrnic_fence_all_wait(a->context, WAIT_NS, &status));
		if (round == 1)
			EXPECT_EQ(207, status.cookie);
		for (i = 0; i < ENDPOINTS; i++) {
			EXPECT_EQ(-1, buf_differs(&peers[i].buf, 0, LEN, 55, 0));
			memset(peers[i].buf.addr, 0, LEN);
		}
	}
	for (i = 0; i < ENDPOINTS; i++) {
		EXPECT_OK(vrnic_endpoint_destroy(to[i]));
		EXPECT_OK(node_close(&peers[i]));
	}
	EXPECT_OK(vrnic_fence_all_wait(a->context, WAIT_NS, NULL));
}

/* ---- regions ---- */

TEST_F(fence, s5_region_begin_and_end_are_checked)
{
	struct vrnic_context *a = self->bed.a.context, *b = self->bed.b.context;
	int i;

	EXPECT_EQ(-EINVAL, vrnic_fence_begin(NULL));
	EXPECT_EQ(-EINVAL, vrnic_fence_end(NULL));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOENT, vrnic_fence_end(a));
		EXPECT_OK(vrnic_fence_begin(a));
		/* they do not nest, and what was refused changes nothing */
		EXPECT_EQ(-EALREADY, vrnic_fence_begin(a));
		EXPECT_EQ(-EALREADY, vrnic_fence_begin(a));
		/* another context's region is not this one's */
		EXPECT_EQ(-ENOENT, vrnic_fence_end(b));
		EXPECT_OK(vrnic_fence_begin(b));
		EXPECT_OK(vrnic_fence_end(a));
		EXPECT_EQ(-ENOENT, vrnic_fence_end(a));
		EXPECT_OK(vrnic_fence_end(b));
	}
	/* a context goes with its region */
	EXPECT_OK(vrnic_fence_begin(a));
}

TEST_F(fence, s5_region_fences_cover_what_was_posted_in_it)
{
	struct nbed *bed = &self->bed;
	struct vrnic_status status = {};
	int i, round;

	for (round = 0; round < 3; round++) {
		buf_fill(&bed->a.buf, round);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(vrnic_fence_begin(bed->a.context));
		for (i = 0; i < 100; i++)
			ASSERT_OK(round == 1 && i == 40 ? bad_put(bed, i) :
				  nbed_put(bed, i * 4096, i * 4096, 4096, DONE(.cookie = i)));
		EXPECT_EQ(round == 1 ? -EIO : 0, round == 2 ?
			  vrnic_fence_all_wait(bed->a.context, WAIT_NS, &status) :
			  vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
		if (round == 1)
			EXPECT_EQ(40, status.cookie);
		EXPECT_EQ(round != 1, nbed_arrived(bed, round, 0, 0, 100 * 4096));
		/* any number of fences; the failure was told once */
		EXPECT_OK(vrnic_fence_all_wait(bed->a.context, WAIT_NS, NULL));
		ASSERT_OK(vrnic_fence_end(bed->a.context));
	}
}

/* Outside of a region fences are what they are in it, also for what was posted in one. */
TEST_F(fence, s5_region_is_no_border)
{
	struct nbed *bed = &self->bed;
	struct vrnic_status status = {};

	ASSERT_OK(bad_put(bed, 1));
	ASSERT_OK(vrnic_fence_begin(bed->a.context));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_EQ(1, status.cookie);
	ASSERT_OK(bad_put(bed, 2));
	ASSERT_OK(vrnic_fence_end(bed->a.context));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_EQ(2, status.cookie);
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

/* What is posted to other contexts meanwhile has nothing to do with it. */
TEST_F(fence, s5_region_of_one_context)
{
	struct nbed *bed = &self->bed;
	struct node_info info = node_info(&bed->b);
	struct node other = { .client = bed->a.client };

	ASSERT_OK(node_open(&other, 4096, NULL));
	ASSERT_OK(node_join(&other, &info));
	ASSERT_OK(vrnic_fence_begin(bed->a.context));
	ASSERT_OK(vrnic_put(other.to, WR(.local = other.buf.addr, .mr = other.buf.mr, .length = 8,
					 .remote = info.addr, .rkey = ~info.rkey), NULL));
	EXPECT_OK(vrnic_fence_all_wait(bed->a.context, WAIT_NS, NULL));
	EXPECT_EQ(-EIO, vrnic_fence_all_wait(other.context, WAIT_NS, NULL));
	EXPECT_EQ(-ENOENT, vrnic_fence_end(other.context));
	ASSERT_OK(vrnic_fence_end(bed->a.context));
	EXPECT_OK(node_close(&other));
}

/* No descriptor is posted for it. */
TEST_F(fence, s5_region_costs_nothing)
{
	struct nbed *bed = &self->bed;
	long long before;
	int i;

	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	before = statistic("native_descriptors");
	ASSERT_LT(0, before);
	for (i = 0; i < 10; i++) {
		ASSERT_OK(vrnic_fence_begin(bed->a.context));
		ASSERT_OK(vrnic_fence_end(bed->a.context));
	}
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(before + 1, statistic("native_descriptors"));
}

/* Threads that begin and end regions of one context, which has one at a time. */
struct beginner {
	struct vrnic_context *context;
	int *inside, together, error;
	pthread_t thread;
};

static void *begin_and_end(void *arg)
{
	struct beginner *b = arg;
	int i, ret;

	for (i = 0; i < 2000 && !b->error; i++) {
		ret = vrnic_fence_begin(b->context);
		if (ret == -EALREADY) {
			sched_yield();
			continue;
		}
		b->together += __atomic_fetch_add(b->inside, 1, __ATOMIC_ACQ_REL);
		if (i % 100 == 0)
			sched_yield();
		__atomic_fetch_sub(b->inside, 1, __ATOMIC_ACQ_REL);
		b->error = ret ? ret : vrnic_fence_end(b->context);
	}
	return NULL;
}

TEST(s5_region_of_a_shared_context)
{
	struct beginner b[2] = {};
	struct nbed bed = {};
	int i, inside = 0;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, 4096, CONTEXT(.flags = VRNIC_CONTEXT_SHARED)));
	for (i = 0; i < 2; i++) {
		b[i] = (struct beginner){ .context = bed.a.context, .inside = &inside };
		ASSERT_OK(pthread_create(&b[i].thread, NULL, begin_and_end, &b[i]));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_OK(pthread_join(b[i].thread, NULL));
		EXPECT_OK(b[i].error);
		EXPECT_EQ(0, b[i].together);
	}
	EXPECT_EQ(-ENOENT, vrnic_fence_end(bed.a.context));
	EXPECT_OK(nbed_close(&bed));
}

/* Fences that are waited for with counters. */
TEST_F(fence, counters)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *local;
	int i;

	ASSERT_OK(vrnic_counter_create(bed->a.client, 0, &local));
	for (i = 0; i < 100; i++) {
		ASSERT_OK(nbed_put(bed, 0, 0, 100, NULL));
		ASSERT_OK(vrnic_fence(bed->a.to, DONE(.local = local,
						      .remote = bed->a.counter)));
	}
	ASSERT_OK(counter_done(local));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(0, vrnic_counter_read(local));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	EXPECT_OK(vrnic_counter_destroy(local));
}

/* The peer dies: the fence says so, and does not wait for ever. */
TEST_F(fence, peer_goes)
{
	struct nbed *bed = &self->bed;
	struct vrnic_status status = {};

	ASSERT_OK(nbed_put(bed, 0, 0, LEN, NULL));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	ASSERT_OK(node_close(&bed->b));
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(.cookie = 5)));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_EQ(5, status.cookie);
	EXPECT_NE(IBV_WC_SUCCESS, status.status);
}

static void count_message(struct vrnic_context *context,
			  const struct vrnic_message *message, void *arg)
{
	++*(int *)arg;
}

TEST_F(fence, timeout)
{
	struct nbed *bed = &self->bed;
	static uint8_t data[3000];
	int i, got = 0;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, count_message, &got));
	/* a receiver that is full keeps what is behind it */
	for (i = 0; i < 40; i++)
		ASSERT_OK(vrnic_send(bed->a.to, SEND(.id = 1, .data = data, .length = 3000), NULL));
	EXPECT_EQ(-ETIME, vrnic_fence_wait(bed->a.to, 20 * MSEC_NS, NULL));
	ASSERT_OK(advance_until(bed->b.context, &got, 40));
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

struct fence_waiter {
	struct vrnic_endpoint *to;
	int ret;
};

static void *wait_for_ever(void *arg)
{
	struct fence_waiter *w = arg;

	w->ret = vrnic_fence_wait(w->to, VRNIC_NO_TIMEOUT, NULL);
	return NULL;
}

/* Behind what a full receiver keeps; in the ring, and where there is no room there. */
TEST(waits_end_with_the_endpoint)
{
	static uint8_t data[3000];
	struct fence_waiter w;
	struct nbed bed;
	pthread_t thread;
	int full;

	NEED_NATIVE();
	for (full = 0; full < 2; full++) {
		memset(&bed, 0, sizeof(bed));
		ASSERT_OK(nbed_open(&bed, 4096, CONTEXT(.flags = VRNIC_CONTEXT_SHARED,
							.inject_slots = full ? 256 : 2048)));
		if (full)
			ASSERT_LT(0, node_fill(&bed.a, 3000, NULL));
		for (int i = 0; i < 40 && !full; i++)
			ASSERT_OK(vrnic_send(bed.a.to, SEND(.id = 1, .data = data, .length = 3000),
					     NULL));
		w = (struct fence_waiter){ .to = bed.a.to };
		ASSERT_OK(pthread_create(&thread, NULL, wait_for_ever, &w));
		usleep(50000);	/* so that it is waiting, as a rule */
		ASSERT_OK(vrnic_endpoint_destroy(bed.a.to));
		bed.a.to = NULL;
		ASSERT_OK(pthread_join(thread, NULL));
		EXPECT_EQ(-ECANCELED, w.ret);
		ASSERT_OK(nbed_close(&bed));
	}
}

/* Several contexts from several threads at once, each advancing its own. */
#define THREADS	4

struct mill {
	struct node node;
	int error;
	pthread_t thread;
};

static int grind(struct node *n)
{
	struct told told = {};
	int i, j, ret = 0;

	for (i = 0; i < 100 && !ret; i++) {
		for (j = 0; j < 20 && !ret; j++)
			ret = vrnic_put(n->to, WR(.local = n->buf.addr, .mr = n->buf.mr,
						  .length = 500 * j + 1, .remote = n->peer.addr,
						  .rkey = n->peer.rkey),
					DONE(TELL(&told), .flags = VRNIC_QUEUE));
		if (!ret)
			ret = vrnic_fence_wait(n->to, WAIT_NS, NULL);
		if (!ret)
			ret = advance_until(n->context, &told.count, 20 * (i + 1));
	}
	return ret;
}

static void *mill_thread(void *arg)
{
	struct mill *mill = arg;

	mill->error = grind(&mill->node);
	return NULL;
}

TEST_F(fence, contexts_in_parallel)
{
	struct mill *m = calloc(THREADS, sizeof(*m));
	struct node_info target = node_info(&self->bed.b);
	int i;

	ASSERT_NE(NULL, m);
	for (i = 0; i < THREADS; i++) {
		/* all of one client, whose objects they share */
		m[i].node.client = self->bed.a.client;
		ASSERT_OK(node_open(&m[i].node, 16384, NULL));
		ASSERT_OK(node_join(&m[i].node, &target));
	}
	for (i = 0; i < THREADS; i++)
		ASSERT_OK(pthread_create(&m[i].thread, NULL, mill_thread, &m[i]));
	for (i = 0; i < THREADS; i++) {
		ASSERT_OK(pthread_join(m[i].thread, NULL));
		EXPECT_OK(m[i].error);
		EXPECT_OK(node_close(&m[i].node));
	}
	free(m);
}

/* One context for all threads, which was asked for. */
struct sharer {
	struct node *node;
	struct told told;
	int error;
	pthread_t thread;
};

static void count_shared(struct vrnic_context *context,
			 const struct vrnic_status *status, void *arg)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

static void *share(void *arg)
{
	struct sharer *s = arg;
	uint64_t end = now_ns() + WAIT_NS;
	int i, ret;

	for (i = 0; i < 1000 && !s->error; i++) {
		while ((ret = vrnic_put(s->node->to, WR(.local = s->node->buf.addr,
							.mr = s->node->buf.mr, .length = 64,
							.remote = s->node->peer.addr,
							.rkey = s->node->peer.rkey),
					DONE(.callback = count_shared,
					     .arg = &s->told.count,
					     .target = s->node->peer.counter))) == -EAGAIN)
			vrnic_advance(s->node->context, 10);
		s->error = ret;
	}
	while (__atomic_load_n(&s->told.count, __ATOMIC_RELAXED) < 1000 &&
	       !s->error && now_ns() < end) {
		ret = vrnic_advance(s->node->context, 10);
		s->error = ret < 0 ? ret : 0;
		sched_yield();
	}
	return NULL;
}

TEST(shared_context)
{
	struct sharer s[THREADS] = {};
	struct nbed bed = {};
	int i;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, 4096, CONTEXT(.flags = VRNIC_CONTEXT_SHARED,
						.inject_slots = 64)));
	vrnic_counter_set(bed.b.open, THREADS * 1000 * 64);
	for (i = 0; i < THREADS; i++) {
		s[i].node = &bed.a;
		ASSERT_OK(pthread_create(&s[i].thread, NULL, share, &s[i]));
	}
	for (i = 0; i < THREADS; i++) {
		ASSERT_OK(pthread_join(s[i].thread, NULL));
		EXPECT_OK(s[i].error);
		EXPECT_EQ(1000, s[i].told.count);
	}
	EXPECT_EQ(0, vrnic_counter_read(bed.b.open));
	EXPECT_OK(nbed_close(&bed));
}

/* A thread that calls vrnic_advance(), and stays in a callback until the test posts @out. */
struct holder {
	struct nbed *bed;
	sem_t in, out;
};

static void hold(struct vrnic_context *context,
		 const struct vrnic_status *status, void *arg)
{
	struct holder *h = arg;

	sem_post(&h->in);
	sem_wait(&h->out);
}

static void *advance_once(void *arg)
{
	struct holder *h = arg;

	while (!vrnic_advance(h->bed->a.context, 1))
		;
	return NULL;
}

TEST_F(fence, advance_try)
{
	struct holder h = { &self->bed };
	pthread_t thread;

	sem_init(&h.in, 0, 0);
	sem_init(&h.out, 0, 0);
	EXPECT_EQ(0, vrnic_advance_try(self->bed.a.context, 10));
	ASSERT_OK(nbed_put(&self->bed, 0, 0, 8, DONE(.callback = hold, .arg = &h)));
	ASSERT_OK(pthread_create(&thread, NULL, advance_once, &h));
	sem_wait(&h.in);
	EXPECT_EQ(-EBUSY, vrnic_advance_try(self->bed.a.context, 10));
	sem_post(&h.out);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(0, vrnic_advance_try(self->bed.a.context, 10));
}

static int post_and_take(struct raw_pair *pair, struct vrnic_ndesc *d,
			 const void *more, struct vrnic_record *record)
{
	int ret;

	d->flags |= VRNIC_NDESC_SIGNALED;
	d->endpoint = pair->a_to_b;
	ret = raw_post(&pair->a, d, more, more ? VRNIC_SLOT_SIZE : 0);
	return ret ? ret : raw_take(&pair->a, record);
}

/* A fence that makes no sense fails itself, and what failed before waits for the next. */
TEST(a_malformed_fence_tells_of_itself)
{
	struct vrnic_ndesc put = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8, .cookie = 1,
	};
	struct vrnic_ndesc bad = {
		.opcode = VRNIC_NOP_FENCE, .num_slots = 1, .cookie = 2,
		.flags = VRNIC_NDESC_BACK,
	};
	struct vrnic_ndesc fence = {
		.opcode = VRNIC_NOP_FENCE, .num_slots = 1, .cookie = 3,
	};
	struct vrnic_record record;
	struct raw_pair pair = {};

	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&pair, 64, 256, 4096));
	ASSERT_OK(post_and_take(&pair, &put, NULL, &record));
	EXPECT_NE(IBV_WC_SUCCESS, record.status);
	ASSERT_OK(post_and_take(&pair, &bad, NULL, &record));
	EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err);
	EXPECT_EQ(VRNIC_NOP_FENCE, record.failed_opcode);
	EXPECT_EQ(2, record.failed_cookie);
	ASSERT_OK(post_and_take(&pair, &fence, NULL, &record));
	EXPECT_EQ(VRNIC_NOP_PUT, record.failed_opcode);
	EXPECT_EQ(1, record.failed_cookie);
	ASSERT_OK(post_and_take(&pair, &fence, NULL, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	EXPECT_OK(raw_pair_close(&pair));
}

/*
 * A fence counts nowhere but here. Behind a put, it must not count down a counter of the put's
 * target, which no peer may name.
 */
TEST(a_fence_counts_at_no_target)
{
	struct vrnic_ndesc put = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8,
	};
	struct vrnic_ndesc fence = { .num_slots = 1, .flags = VRNIC_NDESC_SIGNALED };
	struct raw_counter counter = {};
	struct vrnic_record record;
	struct raw_pair pair = {};
	int i;

	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&pair, 64, 256, 4096));
	ASSERT_OK(raw_counter(&pair.b, 0, &counter));
	put.endpoint = pair.a_to_b;
	fence.endpoint = pair.a_to_b;
	put.local_addr = (uintptr_t)pair.a.buf.addr;
	put.lkey = pair.a.buf.mr->lkey;
	put.remote_addr = (uintptr_t)pair.b.buf.addr;
	put.rkey = pair.b.buf.mr->rkey;
	fence.target_counter = counter.number;
	for (i = 0; i < 2; i++) {
		fence.opcode = i ? VRNIC_NOP_FENCE_ALL : VRNIC_NOP_FENCE;
		raw_fill(&pair.a, &put, NULL, 0);
		raw_fill(&pair.a, &fence, NULL, 0);
		ASSERT_OK(raw_ring(&pair.a));
		ASSERT_OK(raw_take(&pair.a, &record));
		EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err);
		EXPECT_EQ(0, counter.cell->remaining);
	}
	EXPECT_OK(raw_counter_destroy(&pair.b, &counter));
	EXPECT_OK(raw_pair_close(&pair));
}

TEST_F(fence, a_target_counter_is_invalid)
{
	struct vrnic_done done = { .target = self->bed.a.peer.counter };

	EXPECT_EQ(-EINVAL, vrnic_fence(self->bed.a.to, &done));
	EXPECT_EQ(-EINVAL, vrnic_fence_all(self->bed.a.context, &done));
}

/* Reserved values are refused. */
TEST(reserved_fields_are_zero)
{
	struct vrnic_ndesc_rmw operands = { .operand = 1 };
	struct vrnic_record record;
	struct raw_pair pair = {};
	struct vrnic_ndesc rmw, get;

	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&pair, 64, 256, 4096));
	rmw = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RMW, .num_slots = 2, .length = 8,
		.arg = VRNIC_RMW_ADD, .rkey = pair.b.buf.mr->rkey,
		.remote_addr = (uintptr_t)pair.b.buf.addr,
	};
	get = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_GET, .num_slots = 1, .length = 8,
		.lkey = pair.a.buf.mr->lkey, .rkey = pair.b.buf.mr->rkey,
		.local_addr = (uintptr_t)pair.a.buf.addr,
		.remote_addr = (uintptr_t)pair.b.buf.addr,
	};
	ASSERT_OK(post_and_take(&pair, &rmw, &operands, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	ASSERT_OK(post_and_take(&pair, &get, NULL, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	operands.reserved[5] = 1;
	ASSERT_OK(post_and_take(&pair, &rmw, &operands, &record));
	EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err);
	get.arg = 1;
	ASSERT_OK(post_and_take(&pair, &get, NULL, &record));
	EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err);
	EXPECT_OK(raw_pair_close(&pair));
}

TEST_HARNESS_MAIN
