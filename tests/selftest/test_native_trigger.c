// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Operations that start when a counter has fallen (VRNIC_DONE_AFTER): the engine starts them, also
 * while the process sleeps. And remote gets that wait at the peer.
 */
#include <pthread.h>
#include <sys/ioctl.h>

#include "native.h"
#include "native_raw.h"

#define LEN	65536

#define AFTER(counter, left)						\
	.comp_mask = VRNIC_DONE_AFTER, .after = (counter), .after_left = (left)

NBED(trigger, LEN, .inject_slots = 64);

/* b counts a's open counter down by @len. */
static int strike(struct nbed *bed, size_t len)
{
	struct node *b = &bed->b;

	return vrnic_put(b->to, WR(.local = b->buf.addr, .mr = b->buf.mr, .length = len,
				   .remote = b->peer.addr + LEN / 2, .rkey = b->peer.rkey),
			 DONE(.target = b->peer.counter));
}

static bool untouched(struct nbed *bed)
{
	usleep(3000);
	return buf_is_not(&bed->b.buf, 0, LEN, 0) < 0;
}

TEST_F(trigger, starts_when_the_counter_has_fallen)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	buf_fill(&bed->a.buf, 1);
	vrnic_counter_set(bed->a.open, 1000);
	ASSERT_OK(nbed_put(bed, 0, 0, 5000, DONE(TELL(&told), .remote = bed->a.counter,
						 AFTER(bed->a.open, 0))));
	EXPECT_TRUE(untouched(bed));
	ASSERT_OK(strike(bed, 999));
	EXPECT_TRUE(untouched(bed));
	EXPECT_EQ(5000, vrnic_counter_read(bed->a.counter));
	ASSERT_OK(strike(bed, 1));
	/* this process sleeps */
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(nbed_arrived(bed, 1, 0, 0, 5000));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
}

TEST_F(trigger, thresholds)
{
	struct nbed *bed = &self->bed;

	buf_fill(&bed->a.buf, 2);
	vrnic_counter_set(bed->a.open, 1000);
	ASSERT_OK(nbed_put(bed, 0, 0, 100, DONE(.remote = bed->a.counter,
						AFTER(bed->a.open, 300))));
	ASSERT_OK(strike(bed, 699));
	EXPECT_TRUE(untouched(bed));
	ASSERT_OK(strike(bed, 1));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(nbed_arrived(bed, 2, 0, 0, 100));
	/* and where it has fallen so far already, at once */
	ASSERT_OK(nbed_put(bed, 0, 100, 100, DONE(.remote = bed->a.counter,
						  AFTER(bed->a.open, 300))));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(nbed_arrived(bed, 2, 0, 100, 100));
	vrnic_counter_set(bed->a.open, 0);
}

/* What is behind it in the ring waits, too, and keeps its order. */
TEST_F(trigger, what_is_behind_waits)
{
	struct nbed *bed = &self->bed;

	buf_fill(&bed->a.buf, 3);
	vrnic_counter_set(bed->a.open, 1);
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(AFTER(bed->a.open, 0))));
	ASSERT_OK(nbed_put(bed, 8, 0, 8, DONE(.remote = bed->a.counter)));
	EXPECT_TRUE(untouched(bed));
	ASSERT_OK(strike(bed, 1));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(nbed_arrived(bed, 3, 8, 0, 8));
}

/* The counter fails: so does the operation, and nothing of it is done. The next one goes on. */
TEST_F(trigger, a_counter_that_fails)
{
	struct nbed *bed = &self->bed;
	struct told told = {}, next = {};
	struct node *b = &bed->b;

	buf_fill(&bed->a.buf, 4);
	vrnic_counter_set(bed->a.counter, 8);
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(TELL(&told), AFTER(bed->a.counter, 0))));
	ASSERT_OK(nbed_put(bed, 0, 64, 8, DONE(TELL(&next))));
	EXPECT_TRUE(untouched(bed));
	/* an operation of another context of this process fails the counter */
	ASSERT_OK(vrnic_counter_destroy(bed->a.counter));
	bed->a.counter = NULL;
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_FAILED(IBV_WC_WR_FLUSH_ERR, told.status);
	EXPECT_EQ(VRNIC_VERR_CANCELED, told.status.vendor_err);
	ASSERT_OK(advance_until(bed->a.context, &next.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, next.status.status);
	EXPECT_EQ(-1, buf_is_not(&b->buf, 0, 64, 0));
	EXPECT_TRUE(nbed_arrived(bed, 4, 0, 64, 8));
	ASSERT_OK(vrnic_counter_create(bed->a.client, 0, &bed->a.counter));
}

/* An operation that fails with its WAIT is told of as that operation, once. */
TEST_F(trigger, fences_tell_of_the_operation)
{
	struct nbed *bed = &self->bed;
	struct vrnic_status status = {};
	struct vrnic_counter *counter;

	ASSERT_OK(vrnic_counter_create(bed->a.client, 0, &counter));
	vrnic_counter_set(counter, 1);
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(.cookie = 77, AFTER(counter, 0))));
	ASSERT_OK(vrnic_counter_destroy(counter));
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
	EXPECT_FAILED(IBV_WC_WR_FLUSH_ERR, status);
	EXPECT_EQ(77, status.cookie);
	EXPECT_EQ(VRNIC_NOP_PUT, status.opcode);
	EXPECT_OK(vrnic_fence_all_wait(bed->a.context, WAIT_NS, NULL));
}

/* Contexts of a's with an endpoint to b each. More than a counter's list takes. */
#define CROWD	80

struct crowd {
	struct vrnic_context *context[CROWD];
	struct vrnic_endpoint *to[CROWD];
};

static int crowd_open(struct nbed *bed, struct crowd *c)
{
	struct vrnic_address there;
	int i, ret = 0;

	vrnic_context_address(bed->b.context, &there);
	for (i = 0; i < CROWD && !ret; i++) {
		ret = vrnic_context_create(bed->a.client, NULL, &c->context[i]);
		if (!ret)
			ret = vrnic_endpoint_create(c->context[i], &there, &c->to[i]);
	}
	return ret;
}

static int crowd_close(struct crowd *c, int from, int to)
{
	int i, ret = 0;

	for (i = from; i < to && !ret; i++) {
		ret = vrnic_endpoint_destroy(c->to[i]);
		if (!ret)
			ret = vrnic_context_destroy(c->context[i]);
	}
	return ret;
}

static int crowd_put(struct nbed *bed, struct crowd *c, int i, const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	return vrnic_put(c->to[i], WR(.local = a->buf.addr + 8 * i, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr + 8 * i, .rkey = a->peer.rkey), done);
}

/* Contexts and endpoints go while they wait, before and while the counter falls. */
TEST_F(trigger, destroyed_while_it_waits)
{
	struct nbed *bed = &self->bed;
	struct crowd c = {};
	int i;

	vrnic_counter_set(bed->a.open, 1);
	ASSERT_OK(crowd_open(bed, &c));
	for (i = 0; i < CROWD; i++)
		ASSERT_OK(crowd_put(bed, &c, i, DONE(AFTER(bed->a.open, 0))));
	ASSERT_OK(crowd_close(&c, 0, CROWD / 2));
	ASSERT_OK(strike(bed, 1));
	ASSERT_OK(crowd_close(&c, CROWD / 2, CROWD));
}

/* All that wait for one counter start, each at its threshold. */
TEST_F(trigger, many_wait_for_one)
{
	struct nbed *bed = &self->bed;
	struct crowd c = {};
	int i, round;

	buf_fill(&bed->a.buf, 5);
	vrnic_counter_set(bed->a.open, 101);
	ASSERT_OK(crowd_open(bed, &c));
	for (i = 0; i < CROWD; i++)
		for (round = 0; round < 5; round++)
			ASSERT_OK(crowd_put(bed, &c, i, DONE(.remote = bed->a.counter,
							     AFTER(bed->a.open,
								   100 - 20 * round))));
	for (i = 0; i < 101; i++)
		ASSERT_OK(strike(bed, 1));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(nbed_arrived(bed, 5, 0, 0, 8 * CROWD));
	ASSERT_OK(crowd_close(&c, 0, CROWD));
}

/* A wave: each end's operation starts the other end's next one, and neither process runs. */
TEST_F(trigger, engines_start_each_other)
{
	enum { HOPS = 20 };
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a, *b = &bed->b;
	struct crowd c = {};
	unsigned int i;

	vrnic_counter_set(a->open, HOPS);
	vrnic_counter_set(b->open, HOPS);
	ASSERT_OK(crowd_open(bed, &c));
	for (i = 0; i < HOPS; i++) {
		ASSERT_OK(vrnic_put(b->to, WR(.local = b->buf.addr, .mr = b->buf.mr, .length = 1,
					      .remote = b->peer.addr + i, .rkey = b->peer.rkey),
				    DONE(.target = b->peer.counter, AFTER(b->open, HOPS - 1 - i))));
		if (i)
			ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr,
						      .length = 1, .remote = a->peer.addr + i,
						      .rkey = a->peer.rkey),
					    DONE(.target = a->peer.counter,
						 AFTER(a->open, HOPS - i))));
	}
	usleep(3000);
	EXPECT_EQ(HOPS, vrnic_counter_read(a->open));
	/* one byte of another context begins it */
	ASSERT_OK(vrnic_put(c.to[0], WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 1,
					.remote = a->peer.addr, .rkey = a->peer.rkey),
			    DONE(.target = a->peer.counter)));
	ASSERT_OK(counter_done(a->open));
	ASSERT_OK(counter_done(b->open));
	ASSERT_OK(crowd_close(&c, 0, CROWD));
}

/* Room in the ring, and in the queue for it: the WAIT and the operation stay together. */
TEST_F(trigger, queued)
{
	struct nbed *bed = &self->bed;
	uint64_t behind = bed->a.peer.addr + LEN / 2;
	struct told told = {};
	int i, n = 0;

	buf_fill(&bed->a.buf, 6);
	vrnic_counter_set(bed->a.open, 200);
	for (i = 0; i < 200; i++) {
		ASSERT_OK(nbed_put(bed, 8 * i, 8 * i, 8,
				   DONE(TELL(&told), .flags = VRNIC_QUEUE,
					AFTER(bed->a.open, 199 - i))));
		ASSERT_OK(vrnic_put_inline(bed->a.to, WR(.local = &i, .length = sizeof(i),
							 .remote = behind + 4 * i,
							 .rkey = bed->a.peer.rkey),
					   DONE(TELL(&told), .flags = VRNIC_QUEUE,
						AFTER(bed->a.open, 199 - i))));
		n += 2;
	}
	for (i = 0; i < 200; i++)
		ASSERT_OK(strike(bed, 1));
	ASSERT_OK(nbed_until(bed, &told.count, n));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_TRUE(nbed_arrived(bed, 6, 0, 0, 8 * 200));
	for (i = 0; i < 200; i++)
		EXPECT_EQ(i, ((int *)(bed->b.buf.addr + LEN / 2))[i]);
}

TEST_F(trigger, what_makes_no_sense)
{
	struct nbed *bed = &self->bed;

	EXPECT_EQ(-EINVAL, nbed_put(bed, 0, 0, 8, DONE(AFTER(NULL, 0))));
	EXPECT_EQ(-EINVAL, nbed_put(bed, 0, 0, 8, DONE(AFTER(bed->b.open, 0))));
	EXPECT_EQ(-EINVAL, nbed_put(bed, 0, 0, 8, DONE(AFTER(bed->a.open, 1ULL << 63))));
	/* it would be raised by what waits for its fall */
	EXPECT_EQ(-EINVAL, nbed_put(bed, 0, 0, 8, DONE(.local = bed->a.open,
						       AFTER(bed->a.open, 0))));
	EXPECT_EQ(-EINVAL, nbed_put(bed, 0, 0, 8, DONE(.remote = bed->a.open,
						       AFTER(bed->a.open, 0))));
	EXPECT_EQ(-E2BIG, vrnic_rts_send(bed->a.to, OFFER(.local = bed->a.buf.addr,
							  .mr = bed->a.buf.mr, .length = 8),
					 DONE(AFTER(bed->a.open, 0))));
}

/* ---- a fall and a wait at the same time ---- */

struct striker {
	struct nbed *bed;
	int rounds, ret;
	int go;
};

static void *strikes(void *arg)
{
	struct striker *s = arg;
	int i;

	for (i = 1; i <= s->rounds && !s->ret; i++) {
		while (__atomic_load_n(&s->go, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		do {
			s->ret = strike(s->bed, 1);
			if (s->ret == -EAGAIN)
				vrnic_advance(s->bed->b.context, 0);
		} while (s->ret == -EAGAIN);
	}
	return NULL;
}

/* Whichever comes first, the operation starts. */
TEST_F(trigger, falls_and_waits_race)
{
	struct striker s = { .bed = &self->bed, .rounds = scaled(5000) };
	struct nbed *bed = &self->bed;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, strikes, &s));
	for (i = 1; i <= s.rounds; i++) {
		vrnic_counter_set(bed->a.open, 1);
		__atomic_store_n(&s.go, i, __ATOMIC_RELEASE);
		ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(.remote = bed->a.counter,
						      AFTER(bed->a.open, 0))));
		ASSERT_OK(counter_done(bed->a.counter)) TH_LOG("round %d", i);
	}
	pthread_join(thread, NULL);
	EXPECT_OK(s.ret);
}

/* ---- remote gets that wait ---- */

FIXTURE(remote)
{
	struct raw_pair pair;
	struct raw_counter its, closed;
	struct vrnic_ndesc *batch;
};

FIXTURE_SETUP(remote)
{
	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&self->pair, 64, 256, LEN));
	ASSERT_OK(raw_counter(&self->pair.b, VRNIC_COUNTER_OPEN, &self->its));
	ASSERT_OK(raw_counter(&self->pair.b, 0, &self->closed));
	self->batch = (struct vrnic_ndesc *)self->pair.a.buf.addr;
	buf_fill(&self->pair.b.buf, 7);
}

FIXTURE_TEARDOWN(remote)
{
	if (!self->pair.a.dev.ctx)
		return;
	EXPECT_OK(raw_counter_destroy(&self->pair.b, &self->its));
	EXPECT_OK(raw_counter_destroy(&self->pair.b, &self->closed));
	EXPECT_OK(raw_pair_close(&self->pair));
}

static struct vrnic_ndesc wait_for(uint32_t counter, uint64_t left)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = counter, .length = left,
	};
}

static int inject(FIXTURE_DATA(remote) *self, unsigned int n)
{
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .endpoint = self->pair.a_to_b,
		.length = n * sizeof(d), .local_addr = (uintptr_t)self->batch,
		.lkey = self->pair.a.buf.mr->lkey,
	};

	return raw_post(&self->pair.a, &d, NULL, 0);
}

/* The next record at a of this kind. */
static int record_of(FIXTURE_DATA(remote) *self, enum vrnic_record_kind kind,
		     struct vrnic_record *record)
{
	int ret;

	do {
		ret = raw_take(&self->pair.a, record);
	} while (!ret && record->kind != kind);
	return ret;
}

static int count_down(struct raw_fifo *fifo, const struct raw_counter *counter, uint64_t n)
{
	struct vrnic_count count = { .id = counter->number, .bytes = n };

	return ioctl(fifo->bell, VRNIC_COUNT, &count) ? -errno : 0;
}

/* An injected remote get starts when a counter of its target has fallen. */
TEST_F(remote, a_remote_get_waits_at_its_target)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	uint8_t *to = pair->a.buf.addr + 4096;

	self->its.cell->remaining = 2;
	self->batch[0] = wait_for(self->its.number, 0);
	self->batch[1] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 500,
		.local_addr = (uintptr_t)pair->b.buf.addr, .lkey = pair->b.buf.mr->rkey,
		.remote_addr = (uintptr_t)to, .rkey = pair->a.buf.mr->rkey,
	};
	self->batch[2] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY, .num_slots = 1, .flags = VRNIC_NDESC_BACK, .arg = 9,
	};
	memset(to, 0, 500);
	ASSERT_OK(inject(self, 3));
	usleep(3000);
	EXPECT_EQ(-1, buf_is_not(&pair->a.buf, 4096, 500, 0));
	ASSERT_OK(count_down(&pair->b, &self->its, 1));
	usleep(3000);
	EXPECT_EQ(-1, buf_is_not(&pair->a.buf, 4096, 500, 0));
	ASSERT_OK(count_down(&pair->b, &self->its, 1));
	ASSERT_OK(record_of(self, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(9, record.arg);
	EXPECT_EQ(-1, buf_differs(&pair->a.buf, 4096, 500, 7, 0));
}

/* A peer waits for open counters only, and takes nothing of the ring along. */
TEST_F(remote, peers_wait_for_open_counters_only)
{
	const struct vrnic_ndesc bad[] = {
		wait_for(self->closed.number, 1ULL << 40),
		wait_for(self->its.number ^ 0x40, 1ULL << 40),
		wait_for(0, 1ULL << 40),
		wait_for(self->its.number, 1ULL << 63),
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = self->its.number, .arg = 1 },
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = self->its.number, .rkey = 1 },
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = self->its.number,
		  .local_addr = 1 },
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = self->its.number,
		  .target_counter = self->its.number },
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 1, .lkey = self->its.number,
		  .flags = VRNIC_NDESC_SIGNALED },
		{ .opcode = VRNIC_NOP_WAIT, .num_slots = 2, .lkey = self->its.number },
	};
	struct vrnic_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->batch[0] = bad[i];
		ASSERT_OK(inject(self, 1));
		ASSERT_OK(record_of(self, VRNIC_REC_ERROR, &record)) TH_LOG("number %u", i);
		EXPECT_NE(0, record.status) TH_LOG("number %u", i);
		EXPECT_EQ(VRNIC_NOP_WAIT, record.opcode);
	}
}

/* The counter fails, or goes, while the remote get waits: the peer is told. */
TEST_F(remote, the_counter_goes)
{
	struct vrnic_record record;
	struct raw_counter other;

	ASSERT_OK(raw_counter(&self->pair.b, VRNIC_COUNTER_OPEN, &other));
	other.cell->remaining = 1;
	self->batch[0] = wait_for(other.number, 0);
	ASSERT_OK(inject(self, 1));
	usleep(3000);
	ASSERT_OK(raw_counter_destroy(&self->pair.b, &other));
	ASSERT_OK(record_of(self, VRNIC_REC_ERROR, &record));
	EXPECT_EQ(VRNIC_NOP_WAIT, record.opcode);
	EXPECT_EQ(VRNIC_VERR_COUNTER, record.vendor_err);
}

TEST_HARNESS_MAIN
