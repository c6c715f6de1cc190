// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that writes anything into its own native rings, and injects anything at
 * its peer. It harms only itself: others go on, the engine comes to rest, and the
 * kernel's log has no complaint, which the test machine checks.
 */
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "native.h"
#include "native_raw.h"

#define LEN		65536
#define SLOTS		128
#define SEED		20250118
#define GARBAGE		200000	/* slots of random descriptors in all */
#define ROUND		64	/* of them, for one doorbell */
#define SECRET_LEN	4096	/* of b's memory that nobody was given */

FIXTURE(abuse)
{
	struct raw_pair pair;	/* a is abused, b is its peer */
	struct raw_counter mine, its;
	struct nbed bed;	/* others in the same process */
	struct peer other;	/* and in another one */
	uint32_t type, type_handle;
	struct rng rng;
};

static bool bystander_works(struct nbed *bed, uint32_t seed)
{
	buf_fill(&bed->a.buf, seed);
	return !nbed_put(bed, 0, 0, LEN, DONE(.remote = bed->a.counter)) &&
	       !counter_done(bed->a.counter) &&
	       nbed_arrived(bed, seed, 0, 0, LEN);
}

/* The other process puts to itself until it is told to stop. */
static int other_main(int fd, const void *arg)
{
	struct nbed bed = {};
	uint32_t i = 0;
	int ret = nbed_open(&bed, LEN, NULL);

	if (!ret)
		ret = say(fd);
	while (!ret && !readable(fd, 5))
		if (!bystander_works(&bed, i++))
			ret = -EIO;
	return ret ? ret : nbed_close(&bed);
}

#define STAT_TIMES	") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu"

static long ticks_of(const char *pid)
{
	unsigned long user = 0, sys = 0;
	char path[300], line[512];
	long ticks = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f) && strstr(line, "(vrnic") &&
	    sscanf(strchr(line, ')'), STAT_TIMES, &user, &sys) == 2)
		ticks = user + sys;
	if (f)
		fclose(f);
	return ticks;
}

/* Clock ticks that the engine's threads have run so far. */
static long engine_ticks(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	long sum = 0;

	while (dir && (d = readdir(dir)))
		if (isdigit(d->d_name[0]))
			sum += ticks_of(d->d_name);
	if (dir)
		closedir(dir);
	return sum;
}

/* The engine must not run on with descriptors that cannot proceed. */
static bool engine_rests(void)
{
	long before;
	int i;

	/* the engine may have other work, and time that a CPU was away counts, too */
	for (i = 0; i < 10; i++) {
		before = engine_ticks();
		usleep(300000);
		if (engine_ticks() - before < sysconf(_SC_CLK_TCK) / 8)
			return true;
	}
	return false;
}

FIXTURE_SETUP(abuse)
{
	static const struct vrnic_type_row row = { 0, 8, 10, 24 };

	NEED_NATIVE();
	self->rng.state = SEED;
	ASSERT_OK(peer_start(&self->other, other_main, NULL));
	ASSERT_OK(hear(self->other.fd));
	ASSERT_OK(nbed_open(&self->bed, LEN, NULL));
	ASSERT_OK(raw_pair_open(&self->pair, SLOTS, 256, LEN));
	ASSERT_OK(raw_counter(&self->pair.a, VRNIC_COUNTER_OPEN, &self->mine));
	ASSERT_OK(raw_counter(&self->pair.b, VRNIC_COUNTER_OPEN, &self->its));
	ASSERT_OK(raw_type(&self->pair.a, &row, 1, &self->type,
			   &self->type_handle));
}

FIXTURE_TEARDOWN(abuse)
{
	if (!self->other.pid)
		return;
	EXPECT_TRUE(bystander_works(&self->bed, 77));
	EXPECT_OK(peer_end(&self->other));
	EXPECT_OK(raw_type_destroy(&self->pair.a, self->type_handle));
	EXPECT_OK(raw_counter_destroy(&self->pair.a, &self->mine));
	EXPECT_OK(raw_counter_destroy(&self->pair.b, &self->its));
	EXPECT_OK(raw_pair_close(&self->pair));
	EXPECT_TRUE(engine_rests());
	EXPECT_OK(nbed_close(&self->bed));
}

/* All records of both sides, thrown away. */
static void drain(struct raw_pair *pair)
{
	struct vrnic_ring_hdr *a = pair->a.receive, *b = pair->b.receive;

	__atomic_store_n(&a->cons, __atomic_load_n(&a->prod, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	__atomic_store_n(&b->cons, __atomic_load_n(&b->prod, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	raw_ring(&pair->a);
	raw_ring(&pair->b);
}

/* Both anew, with their counters and types, whatever the rings were made into. */
static int renew(FIXTURE_DATA(abuse) *self)
{
	static const struct vrnic_type_row row = { 0, 8, 10, 24 };
	int ret = raw_type_destroy(&self->pair.a, self->type_handle);

	if (!ret)
		ret = raw_counter_destroy(&self->pair.a, &self->mine);
	if (!ret)
		ret = raw_counter_destroy(&self->pair.b, &self->its);
	if (!ret)
		ret = raw_reopen(&self->pair);
	if (!ret)
		ret = raw_counter(&self->pair.a, VRNIC_COUNTER_OPEN, &self->mine);
	if (!ret)
		ret = raw_counter(&self->pair.b, VRNIC_COUNTER_OPEN, &self->its);
	return ret ? ret : raw_type(&self->pair.a, &row, 1, &self->type,
				    &self->type_handle);
}

static bool pair_works(FIXTURE_DATA(abuse) *self, uint64_t cookie)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = LEN,
		.flags = VRNIC_NDESC_SIGNALED, .cookie = cookie,
		.endpoint = pair->a_to_b,
		.local_addr = (uintptr_t)pair->a.buf.addr,
		.lkey = pair->a.buf.mr->lkey,
		.remote_addr = (uintptr_t)pair->b.buf.addr,
		.rkey = pair->b.buf.mr->rkey,
	};

	buf_fill(&pair->a.buf, cookie);
	return !raw_post(&pair->a, &d, NULL, 0) &&
	       !raw_take(&pair->a, &record) && record.cookie == cookie &&
	       record.status == IBV_WC_SUCCESS &&
	       buf_differs(&pair->b.buf, 0, LEN, cookie, 0) < 0;
}

/* Descriptors with which one thing is wrong; each is told by its record. */
static const struct bad_desc {
	const char *name;
	struct vrnic_ndesc d;
	uint32_t vendor_err;
} bad_descs[] = {
#define BAD(what, err, ...) { what, { __VA_ARGS__ }, err }
	BAD("opcode 0", VRNIC_VERR_OPCODE, .opcode = 0, .num_slots = 1),
	BAD("an opcode of verbs", VRNIC_VERR_OPCODE,
	    .opcode = VRNIC_OP_RDMA_WRITE, .num_slots = 1),
	BAD("opcode after the last", VRNIC_VERR_OPCODE,
	    .opcode = VRNIC_NOP_WAIT + 1, .num_slots = 1),
	BAD("opcode 255", VRNIC_VERR_OPCODE, .opcode = 255, .num_slots = 1),
	BAD("rmw without its second slot", VRNIC_VERR_SLOTS,
	    .opcode = VRNIC_NOP_RMW, .num_slots = 1, .length = 8),
	BAD("typed without its second slot", VRNIC_VERR_SLOTS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 80,
	    .flags = VRNIC_NDESC_TYPED),
	BAD("header without its slots", VRNIC_VERR_SLOTS,
	    .opcode = VRNIC_NOP_MESSAGE, .num_slots = 1, .header_len = 64,
	    .flags = VRNIC_NDESC_INLINE),
	BAD("inline data without its slots", VRNIC_VERR_SLOTS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64,
	    .flags = VRNIC_NDESC_INLINE),
	BAD("2^64 - 1 bytes inline", VRNIC_VERR_LENGTH,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = ~0ULL,
	    .flags = VRNIC_NDESC_INLINE),
	BAD("inline data within its descriptor", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 2, .length = 1, .local_addr = 63,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("inline data in the slots of the next one", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 2, .length = 64, .local_addr = 65,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("inline data before its descriptor", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 3, .length = 128, .local_addr = -64,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("inline data 4 GiB away", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 2, .length = 64,
	    .local_addr = (1ULL << 32) + 64,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("2^63 - 1 bytes in the right place", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 2, .length = INT64_MAX, .local_addr = 64,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("no inline data, behind the slots", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 0, .local_addr = 65,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("a slot behind the inline data", VRNIC_VERR_SLOTS,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 3, .length = 64, .local_addr = 64,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("the data of a message in its header", VRNIC_VERR_BOUNDS,
	    .opcode = VRNIC_NOP_MESSAGE, .num_slots = 2, .length = 8, .header_len = 8,
	    .local_addr = 71, .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("a place for registered memory", VRNIC_VERR_OPCODE,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8, .local_addr = 64,
	    .flags = VRNIC_NDESC_PLACED),
	BAD("a place for what was got", VRNIC_VERR_OPCODE,
	    .opcode = VRNIC_NOP_GET, .num_slots = 2, .length = 8, .local_addr = 64,
	    .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED),
	BAD("message of 2^64 - 1 bytes", VRNIC_VERR_LENGTH,
	    .opcode = VRNIC_NOP_MESSAGE, .num_slots = 1, .length = ~0ULL),
	BAD("message of 4097 bytes", VRNIC_VERR_LENGTH,
	    .opcode = VRNIC_NOP_MESSAGE, .num_slots = 1, .length = 4097),
	BAD("put of nobody's memory", VRNIC_VERR_KEY,
	    .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8,
	    .lkey = 0xdeadbeef, .rkey = 0xdeadbeef),
#undef BAD
};

TEST_F(abuse, bad_descriptors_are_told)
{
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_descs); i++) {
		d = bad_descs[i].d;
		d.flags |= VRNIC_NDESC_SIGNALED;
		d.endpoint = self->pair.a_to_b;
		d.cookie = 1000 + i;
		ASSERT_OK(raw_post(&self->pair.a, &d, NULL, 0));
		EXPECT_OK(raw_take(&self->pair.a, &record))
			TH_LOG("%s", bad_descs[i].name);
		EXPECT_EQ(1000 + i, record.cookie) TH_LOG("%s", bad_descs[i].name);
		EXPECT_NE(IBV_WC_SUCCESS, record.status)
			TH_LOG("%s", bad_descs[i].name);
		EXPECT_EQ(bad_descs[i].vendor_err, record.vendor_err)
			TH_LOG("%s", bad_descs[i].name);
		ASSERT_OK(renew(self));
		ASSERT_TRUE(pair_works(self, i)) TH_LOG("%s", bad_descs[i].name);
	}
}

/* An endpoint that there is not. */
TEST_F(abuse, endpoints_of_nobody)
{
	static const uint32_t off[] = { 1, 2, 7, 0xffff, 1U << 31, ~0U };
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_FENCE, .num_slots = 1,
		.flags = VRNIC_NDESC_SIGNALED,
	};
	struct vrnic_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		d.endpoint = self->pair.a_to_b + off[i];
		ASSERT_OK(raw_post(&self->pair.a, &d, NULL, 0));
		ASSERT_OK(raw_take(&self->pair.a, &record));
		EXPECT_EQ(VRNIC_VERR_ENDPOINT, record.vendor_err);
	}
	EXPECT_TRUE(pair_works(self, 3));
}

/* Far from where the kernel is: before it, beyond the ring, half the world away. */
static const uint32_t wild[] = {
	-1, -2, -64, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xdeadbeef,
};

TEST_F(abuse, wild_producer_index)
{
	unsigned int i, tries;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		ASSERT_TRUE(pair_works(self, i));
		__atomic_fetch_add(&self->pair.a.inject->prod, wild[i],
				   __ATOMIC_SEQ_CST);
		raw_ring(&self->pair.a);
		/* its owner is told; the peer has nothing to do with it */
		for (tries = 0; tries < 60000; tries++) {
			if (self->pair.a.inject->flags & VRNIC_RING_ERROR)
				break;
			usleep(1000);
		}
		EXPECT_TRUE(self->pair.a.inject->flags & VRNIC_RING_ERROR);
		EXPECT_FALSE(self->pair.b.inject->flags & VRNIC_RING_ERROR);
		ASSERT_OK(renew(self));
	}
}

static int message(struct raw_fifo *from, uint32_t endpoint, uint64_t cookie)
{
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE, .num_slots = 2, .length = 64,
		.flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_SIGNALED,
		.endpoint = endpoint, .cookie = cookie, .arg = 1,
	};
	uint8_t data[64] = {};

	return raw_post(from, &d, data, sizeof(data));
}

/* A receiver that lies about what it took: no harm beyond its own ring. */
TEST_F(abuse, wild_consumer_index)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		ASSERT_TRUE(pair_works(self, i));
		pair->b.receive->cons += wild[i];
		raw_ring(&pair->b);
		ASSERT_OK(message(&pair->a, pair->a_to_b, i));
		usleep(1000);
		EXPECT_FALSE(pair->a.inject->flags & VRNIC_RING_ERROR);
		/* the sender is told of an error, or waits until the peer is gone */
		raw_try(&pair->a, &record);
		ASSERT_OK(renew(self));
	}
}

/* The kernel does not read back the index that it publishes. */
TEST_F(abuse, what_the_kernel_writes_is_overwritten)
{
	struct raw_pair *pair = &self->pair;
	uint32_t prod = 0;
	int i;

	for (i = 0; i < 200; i++) {
		pair->a.inject->cons = rng_next(&self->rng);
		pair->a.inject->flags = rng_next(&self->rng) | VRNIC_RING_DOORBELL;
		pair->a.inject->flags &= ~VRNIC_RING_ERROR;
		pair->a.receive->flags = rng_next(&self->rng);
		pair->a.receive->arm = rng_next(&self->rng);
		pair->a.receive->prod = prod;
		ASSERT_TRUE(pair_works(self, i));
		prod = pair->a.receive->prod;
	}
}

/* Cells of counters are the process's: it may write what it likes. */
TEST_F(abuse, garbage_in_counters)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64,
		.flags = VRNIC_NDESC_SIGNALED, .endpoint = pair->a_to_b,
		.local_addr = (uintptr_t)pair->a.buf.addr,
		.lkey = pair->a.buf.mr->lkey,
		.remote_addr = (uintptr_t)pair->b.buf.addr,
		.rkey = pair->b.buf.mr->rkey,
		.local_counter = self->mine.number,
		.remote_counter = self->mine.number,
		.target_counter = self->its.number,
	};
	uint64_t *words = self->mine.page;
	int i;

	for (i = 0; i < 300; i++) {
		words[rng_below(&self->rng, 512)] = rng_next(&self->rng);
		*(uint64_t *)self->mine.cell = i & 1 ? INT64_MIN : rng_next(&self->rng);
		self->its.cell->errors = rng_next(&self->rng);
		if (i & 1)
			d.rkey ^= 1;
		ASSERT_OK(raw_post(&pair->a, &d, NULL, 0));
		ASSERT_OK(raw_take(&pair->a, &record));
		d.rkey = pair->b.buf.mr->rkey;
	}
	EXPECT_TRUE(pair_works(self, 9));
}

/* An address in a's or b's buffer, with room for @len bytes: mostly. */
static uint64_t random_addr(FIXTURE_DATA(abuse) *self, bool at_b, uint64_t len)
{
	struct raw_fifo *fifo = at_b ? &self->pair.b : &self->pair.a;

	return (uintptr_t)fifo->buf.addr +
	       (rng_below(&self->rng, LEN - len) & ~63ULL);
}

static uint32_t random_counter(FIXTURE_DATA(abuse) *self, bool at_b)
{
	if (rng_below(&self->rng, 2))
		return 0;
	return at_b ? self->its.number : self->mine.number;
}

static uint8_t random_opcode(struct rng *rng, bool injected)
{
	static const uint8_t three[] = {
		VRNIC_NOP_PUT, VRNIC_NOP_RGET, VRNIC_NOP_NOTIFY,
	};

	return injected ? three[rng_below(rng, 3)] :
			  VRNIC_NOP_PUT + rng_below(rng, 8);
}

static uint8_t random_flags(struct rng *rng, uint8_t opcode)
{
	static const uint8_t kinds[] = {
		0, VRNIC_NDESC_INLINE, VRNIC_NDESC_VIRTUAL, VRNIC_NDESC_TYPED,
	};
	uint8_t flags = rng_below(rng, 2) ? VRNIC_NDESC_SIGNALED : 0;

	switch (opcode) {
	case VRNIC_NOP_PUT:
		return flags | kinds[rng_below(rng, 4)];
	case VRNIC_NOP_GET:
		return flags | (kinds[rng_below(rng, 4)] & ~VRNIC_NDESC_INLINE);
	case VRNIC_NOP_MESSAGE:
		return flags | kinds[rng_below(rng, 3)];
	}
	return flags;
}

static uint64_t random_length(struct rng *rng, const struct vrnic_ndesc *d)
{
	if (d->opcode == VRNIC_NOP_RGET)
		return sizeof(*d) * (1 + rng_below(rng, VRNIC_RGET_DESCS));
	if (d->opcode == VRNIC_NOP_RMW)
		return rng_below(rng, 2) ? 4 : 8;
	if (d->flags & VRNIC_NDESC_TYPED)
		return 80;
	return rng_below(rng, 200);
}

/* The data of half the inline descriptors lies where they say, of which half have a gap. */
static void random_place(struct rng *rng, struct vrnic_ndesc *d)
{
	if (!(d->flags & VRNIC_NDESC_INLINE) || rng_below(rng, 2))
		return;
	d->flags |= VRNIC_NDESC_PLACED;
	d->local_addr = VRNIC_SLOT_SIZE + (rng_below(rng, 2) ? rng_below(rng, 150) : 0);
	if (d->opcode == VRNIC_NOP_MESSAGE)
		d->local_addr += d->header_len;
}

static unsigned int slots_of(const struct vrnic_ndesc *d)
{
	uint64_t bytes = 0;

	if (d->opcode == VRNIC_NOP_RMW || d->flags & VRNIC_NDESC_TYPED)
		return 2;
	if (d->opcode == VRNIC_NOP_MESSAGE)
		bytes = d->header_len;
	if (d->flags & VRNIC_NDESC_PLACED)
		bytes = d->local_addr - VRNIC_SLOT_SIZE;
	if (d->flags & VRNIC_NDESC_INLINE)
		bytes += d->length;
	return 1 + (bytes + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE;
}

/* One that is right; an injected one for b's engine if it is in a's buffer. */
static struct vrnic_ndesc right_desc(FIXTURE_DATA(abuse) *self, bool injected,
				     bool at_b)
{
	struct raw_pair *pair = &self->pair;
	const struct ibv_mr *here = at_b ? pair->b.buf.mr : pair->a.buf.mr;
	const struct ibv_mr *there = at_b ? pair->a.buf.mr : pair->b.buf.mr;
	struct vrnic_ndesc d = {
		.opcode = random_opcode(&self->rng, injected),
		.endpoint = at_b ? pair->b_to_a : pair->a_to_b,
		.cookie = rng_next(&self->rng),
		.lkey = injected ? here->rkey : here->lkey,
		.rkey = there->rkey,
		.local_counter = random_counter(self, at_b),
		.remote_counter = random_counter(self, injected ? !at_b : at_b),
		.target_counter = random_counter(self, !at_b),
	};

	d.flags = injected ? 0 : random_flags(&self->rng, d.opcode);
	d.length = random_length(&self->rng, &d);
	d.local_addr = random_addr(self, at_b, 2048);
	d.remote_addr = random_addr(self, !at_b, 2048);
	if (d.opcode == VRNIC_NOP_MESSAGE)
		d.header_len = rng_below(&self->rng, 100);
	if (d.opcode == VRNIC_NOP_RMW || d.opcode == VRNIC_NOP_MESSAGE ||
	    d.opcode == VRNIC_NOP_NOTIFY)
		d.arg = rng_below(&self->rng, 6);
	random_place(&self->rng, &d);
	d.num_slots = slots_of(&d);
	return d;
}

/*
 * A virtual get may write to any memory of this process, as it should: also around the buffer of a,
 * where raw_close() looks for what the engine must not write.
 */
static void keep_in_buffer(FIXTURE_DATA(abuse) *self, struct vrnic_ndesc *d)
{
	uint64_t at = d->local_addr - (uintptr_t)self->pair.a.buf.addr;

	if (d->opcode == VRNIC_NOP_GET && (at > LEN || d->length > LEN - at))
		d->flags &= ~VRNIC_NDESC_VIRTUAL;
}

/* Right, or with a word or two that are not, or nothing but garbage. */
static struct vrnic_ndesc random_desc(FIXTURE_DATA(abuse) *self, bool injected,
				      bool at_b)
{
	struct vrnic_ndesc d = right_desc(self, injected, at_b);
	uint32_t words[sizeof(d) / sizeof(uint32_t)];
	struct rng *rng = &self->rng;
	int wrong = rng_below(rng, 4);

	if (rng_below(rng, 16) == 0)
		rng_fill(rng, &d, sizeof(d));
	memcpy(words, &d, sizeof(d));
	for (; wrong > 1; wrong--)
		words[rng_below(rng, ARRAY_SIZE(words))] ^=
			rng_below(rng, 2) ? rng_next(rng) :
					    1U << rng_below(rng, 32);
	memcpy(&d, words, sizeof(d));
	keep_in_buffer(self, &d);
	return d;
}

/* Remote gets fetch random descriptors, too: both buffers are full of them. */
static void fill_buffers(FIXTURE_DATA(abuse) *self)
{
	struct vrnic_ndesc *a = (struct vrnic_ndesc *)self->pair.a.buf.addr;
	struct vrnic_ndesc *b = (struct vrnic_ndesc *)self->pair.b.buf.addr;
	unsigned int i;

	/* a's are for b's engine, where b is here and a is there */
	for (i = 0; i < LEN / sizeof(*a); i++) {
		a[i] = random_desc(self, true, true);
		b[i] = random_desc(self, true, false);
	}
}

/* What follows a descriptor in its slots: a typed one's types are real. */
static void put_desc(FIXTURE_DATA(abuse) *self, uint32_t at)
{
	struct raw_fifo *a = &self->pair.a;
	struct vrnic_ndesc_typed typed = {
		.local_type = self->type, .remote_type = self->type,
		.mode = rng_below(&self->rng, 5),
	};
	struct vrnic_ndesc d = random_desc(self, false, false);
	uint8_t *slots = a->inject_slots;

	memcpy(slots + at % a->inject_entries * VRNIC_SLOT_SIZE, &d, sizeof(d));
	if (d.flags & VRNIC_NDESC_TYPED)
		memcpy(slots + (at + 1) % a->inject_entries * VRNIC_SLOT_SIZE,
		       &typed, sizeof(typed));
}

/*
 * Fill the ring with ROUND slots of descriptors, one behind the other. The last descriptor may need
 * more slots than the round has; what is in these further slots is arbitrary.
 */
static void fill_round(FIXTURE_DATA(abuse) *self)
{
	struct raw_fifo *a = &self->pair.a;
	uint32_t prod = a->inject->prod, i;
	struct vrnic_ndesc d;

	for (i = 0; i < ROUND; i += d.num_slots % 8 + !(d.num_slots % 8)) {
		put_desc(self, prod + i);
		memcpy(&d, a->inject_slots + (prod + i) % a->inject_entries *
		       VRNIC_SLOT_SIZE, sizeof(d));
	}
	__atomic_store_n(&a->inject->prod, prod + ROUND, __ATOMIC_SEQ_CST);
}

/*
 * In error, or with a transfer that waits for room that nobody makes: nothing moves.
 * What is slow, as over a wire on a busy machine, is not stuck.
 */
static bool stuck(struct raw_fifo *a)
{
	uint32_t cons = a->inject->cons, before;
	int i;

	for (i = 0; i < 10; i++) {
		if (a->inject->flags & VRNIC_RING_ERROR)
			return true;
		if (a->inject->prod == a->inject->cons)
			return false;
		usleep(200);
		before = cons;
		cons = a->inject->cons;
		if (cons != before)
			i = 0;
	}
	return true;
}

TEST_F(abuse, random_descriptors)
{
	long long errors = statistic("native_errors");
	long long rgets = statistic("remote_gets"), before = rgets, now;
	int i, renewed = 0, rounds = scaled(GARBAGE) / ROUND;

	for (i = 0; i < rounds; i++) {
		/* what the last round did has written over much of this */
		fill_buffers(self);
		fill_round(self);
		raw_ring(&self->pair.a);
		drain(&self->pair);
		if (i % 64 == 0)
			ASSERT_TRUE(bystander_works(&self->bed, i));
		/* none of the wrong ones has closed the way of the rest */
		if (i % 64 == 63) {
			now = statistic("remote_gets");
			ASSERT_GT(now, before) TH_LOG("round %d", i);
			before = now;
		}
		if (stuck(&self->pair.a)) {
			ASSERT_OK(renew(self));
			renewed++;
		}
	}
	errors = statistic("native_errors") - errors;
	rgets = statistic("remote_gets") - rgets;
	TH_LOG("%d slots, %d new FIFOs, %lld failed, %lld remote gets",
	       i * ROUND, renewed, errors, rgets);
	/*
	 * Right ones have to get through, and wrong ones not. Between hosts, a peer whose portions
	 * fail is soon asked for the next ones only after a while (native/pacer.c), so a FIFO full
	 * of garbage waits, and is replaced here.
	 */
	EXPECT_GT(rgets, over_a_wire() ? i / 8 : i);
	EXPECT_GT(errors, i);
	ASSERT_OK(renew(self));
	EXPECT_TRUE(pair_works(self, 3));
}

/* All rings and counters are written to at random while they are in use. */
struct scribbler {
	struct { uint8_t *at; size_t bytes; } area[8];
	int nr;
	bool stop;
};

static void add_area(struct scribbler *s, void *at, size_t bytes)
{
	s->area[s->nr].at = at;
	s->area[s->nr++].bytes = bytes;
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct rng rng = { SEED };
	uint64_t dice;
	int i = 0, n;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		n = rng_below(&rng, s->nr);
		dice = rng_next(&rng);
		*(volatile uint32_t *)(s->area[n].at +
				       (dice >> 33) % s->area[n].bytes / 4 * 4) =
			dice & 1 ? (uint32_t)rng_next(&rng) : (dice >> 8) & 0x7f;
		if (++i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void add_fifo(struct scribbler *s, struct raw_fifo *fifo)
{
	add_area(s, fifo->inject, 256);
	add_area(s, fifo->inject_slots, fifo->inject_bytes - VRNIC_RING_DATA);
	add_area(s, fifo->receive, 256);
}

TEST_F(abuse, rings_change_under_the_kernels_feet)
{
	struct scribbler s = {};
	pthread_t thread;
	int i, round;

	for (round = 0; round < scaled(30); round++) {
		memset(&s, 0, sizeof(s));
		add_fifo(&s, &self->pair.a);
		add_fifo(&s, &self->pair.b);
		add_area(&s, self->mine.page, 4096);
		ASSERT_OK(pthread_create(&thread, NULL, scribble, &s));
		fill_buffers(self);
		for (i = 0; i < 50; i++) {
			fill_round(self);
			raw_ring(&self->pair.a);
			raw_ring(&self->pair.b);
		}
		__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
		ASSERT_OK(pthread_join(thread, NULL));
		ASSERT_OK(renew(self));
		ASSERT_TRUE(bystander_works(&self->bed, round));
	}
	EXPECT_TRUE(pair_works(self, 4));
}

/* No injected descriptor reached memory that no key opens. */
TEST_F(abuse, memory_without_a_key_stays_what_it_is)
{
	struct raw_fifo *b = &self->pair.b;
	struct buf secret = {};
	int i;

	ASSERT_OK(buf_open(&secret, b->dev.pd, SECRET_LEN, 0, ACCESS_REMOTE));
	buf_fill(&secret, 1);
	for (i = 0; i < scaled(300); i++) {
		if (i % 16 == 0)
			fill_buffers(self);
		fill_round(self);
		raw_ring(&self->pair.a);
		drain(&self->pair);
		if (stuck(&self->pair.a)) {
			/* its domain goes with b's device: and so does the region */
			ASSERT_EQ(-1, buf_differs(&secret, 0, SECRET_LEN, 1, 0));
			ASSERT_TRUE(buf_guards_intact(&secret));
			buf_close(&secret);
			ASSERT_OK(renew(self));
			ASSERT_OK(buf_open(&secret, b->dev.pd, SECRET_LEN, 0,
					   ACCESS_REMOTE));
			buf_fill(&secret, 1);
		}
	}
	EXPECT_EQ(-1, buf_differs(&secret, 0, SECRET_LEN, 1, 0));
	EXPECT_TRUE(buf_guards_intact(&secret));
	buf_close(&secret);
}

TEST_HARNESS_MAIN
