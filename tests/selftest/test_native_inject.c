// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * S4.3: remote gets, whose payload is descriptors. They run with the rights of the
 * peer that injected them: nothing moves that this peer's keys could not reach.
 */
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "native.h"
#include "native_raw.h"

#define LEN	65536
#define SLOTS	64

FIXTURE(inject)
{
	struct raw_pair pair;
	struct raw_counter mine, its;	/* a's and b's, open to peers */
	struct vrnic_ndesc *batch;	/* what a injects: in a's buffer */
};

FIXTURE_SETUP(inject)
{
	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&self->pair, SLOTS, 256, LEN));
	ASSERT_OK(raw_counter(&self->pair.a, VRNIC_COUNTER_OPEN, &self->mine));
	ASSERT_OK(raw_counter(&self->pair.b, VRNIC_COUNTER_OPEN, &self->its));
	self->batch = (struct vrnic_ndesc *)self->pair.a.buf.addr;
	buf_fill(&self->pair.b.buf, 8);
}

FIXTURE_TEARDOWN(inject)
{
	if (!self->pair.a.dev.ctx)
		return;
	EXPECT_OK(raw_counter_destroy(&self->pair.a, &self->mine));
	EXPECT_OK(raw_counter_destroy(&self->pair.b, &self->its));
	EXPECT_OK(raw_pair_close(&self->pair));
}

#define DATA	4096	/* in a's buffer, where fetched data goes */

/* b's memory into a's: what b's engine is asked to do. */
static struct vrnic_ndesc fetch(FIXTURE_DATA(inject) *self, uint32_t lkey,
				uint64_t addr, size_t len)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1,
		.length = len, .local_addr = addr, .lkey = lkey,
		.remote_addr = (uintptr_t)self->pair.a.buf.addr + DATA,
		.rkey = self->pair.a.buf.mr->rkey,
		.target_counter = self->mine.number,
	};
}

static struct vrnic_ndesc notify(uint8_t flags, uint32_t arg)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY, .num_slots = 1, .flags = flags,
		.arg = arg, .cookie = arg * 10,
	};
}

static int rget(FIXTURE_DATA(inject) *self, unsigned int n)
{
	struct raw_fifo *a = &self->pair.a;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1,
		.flags = VRNIC_NDESC_SIGNALED,
		.endpoint = self->pair.a_to_b, .cookie = 0x4e7,
		.length = n * sizeof(d), .local_addr = (uintptr_t)self->batch,
		.lkey = a->buf.mr->lkey,
	};

	return raw_post(a, &d, NULL, 0);
}

static struct raw_fifo *owner(FIXTURE_DATA(inject) *self, bool at_b)
{
	return at_b ? &self->pair.b : &self->pair.a;
}

/* The next record of a kind at one side; others are passed over. */
static int record_of(FIXTURE_DATA(inject) *self, bool at_b,
		     enum vrnic_record_kind kind, struct vrnic_record *record)
{
	int ret;

	do {
		ret = raw_take(owner(self, at_b), record);
	} while (!ret && record->kind != kind);
	return ret;
}

TEST_F(inject, s4_3_descriptors_travel_and_run)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;

	self->mine.cell->remaining = 5000;
	self->batch[0] = fetch(self, pair->b.buf.mr->rkey,
			       (uintptr_t)pair->b.buf.addr + 100, 5000);
	self->batch[1] = notify(0, 11);
	self->batch[2] = notify(VRNIC_NDESC_BACK, 22);
	ASSERT_OK(rget(self, 3));
	ASSERT_OK(record_of(self, true, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(11, record.arg);
	EXPECT_EQ(110, record.cookie);
	EXPECT_EQ(pair->a.address.fifo, record.source);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	ASSERT_OK(record_of(self, false, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(22, record.arg);
	EXPECT_EQ(pair->b.address.fifo, record.source);
	EXPECT_EQ(0, self->mine.cell->remaining);
	EXPECT_EQ(-1, buf_differs(&pair->a.buf, DATA, 5000, 8, 100));
}

TEST_F(inject, s4_3_sixteen_descriptors)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	unsigned int i, round;
	uint64_t from;

	for (round = 0; round < 200; round++) {
		self->mine.cell->remaining = 15 * 64;
		for (i = 0; i < 15; i++) {
			from = (uintptr_t)pair->b.buf.addr + 64 * i;
			self->batch[i] = fetch(self, pair->b.buf.mr->rkey, from, 64);
			self->batch[i].remote_addr += 64 * i;
		}
		self->batch[15] = notify(VRNIC_NDESC_BACK, round);
		ASSERT_OK(rget(self, 16));
		ASSERT_OK(record_of(self, false, VRNIC_REC_NOTIFY, &record));
		ASSERT_EQ(round, record.arg);
		ASSERT_EQ(0, self->mine.cell->remaining);
		ASSERT_EQ(-1, buf_differs(&pair->a.buf, DATA, 15 * 64, 8, 0));
	}
}

/* A chain: b's engine sends a remote get back, and a's engine runs that. */
TEST_F(inject, s4_4_chain_goes_to_and_fro)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_ndesc *there = (struct vrnic_ndesc *)pair->b.buf.addr;
	struct vrnic_record record;

	/* at b, for a's engine: put a's words into b */
	there[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64,
		.local_addr = (uintptr_t)pair->a.buf.addr + 2 * DATA,
		.lkey = pair->a.buf.mr->rkey,
		.remote_addr = (uintptr_t)pair->b.buf.addr + DATA,
		.rkey = pair->b.buf.mr->rkey,
	};
	there[1] = notify(VRNIC_NDESC_BACK, 33);
	memset(pair->a.buf.addr + 2 * DATA, 0x3e, 64);
	/* at a, for b's engine: send those to a */
	self->batch[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET, .num_slots = 1,
		.length = 2 * sizeof(there[0]),
		.local_addr = (uintptr_t)there, .lkey = pair->b.buf.mr->rkey,
	};
	ASSERT_OK(rget(self, 1));
	ASSERT_OK(record_of(self, true, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(33, record.arg);
	EXPECT_EQ(-1, buf_is_not(&pair->b.buf, DATA, 64, 0x3e));
}

/* The peer that injected it gets a record with the error, and nothing has moved. */
static void expect_refused(struct __test_metadata *_metadata,
			   FIXTURE_DATA(inject) *self, unsigned int n,
			   const char *what)
{
	struct vrnic_record record = {};
	struct buf *buf = &self->pair.a.buf;

	memset(buf->addr + DATA, 0x66, LEN - DATA);
	ASSERT_OK(rget(self, n)) TH_LOG("%s", what);
	EXPECT_OK(record_of(self, false, VRNIC_REC_ERROR, &record))
		TH_LOG("%s", what);
	EXPECT_NE(IBV_WC_SUCCESS, record.status) TH_LOG("%s", what);
	EXPECT_EQ(-1, buf_is_not(buf, DATA, LEN - DATA, 0x66)) TH_LOG("%s", what);
	EXPECT_EQ(0, self->mine.cell->remaining) TH_LOG("%s", what);
}

TEST_F(inject, needs_a_key_that_opens)
{
	struct raw_fifo *b = &self->pair.b;
	uint64_t addr = (uintptr_t)b->buf.addr;
	struct ibv_mr *local, *write_only, *foreign;
	struct rng rng = { 77 };
	struct ibv_pd *pd;
	int i;

	local = ibv_reg_mr(b->dev.pd, b->buf.addr, LEN, IBV_ACCESS_LOCAL_WRITE);
	write_only = ibv_reg_mr(b->dev.pd, b->buf.addr, LEN,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	pd = ibv_alloc_pd(b->dev.ctx);
	ASSERT_NE(NULL, pd);
	foreign = ibv_reg_mr(pd, b->buf.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, local);
	ASSERT_NE(NULL, write_only);
	ASSERT_NE(NULL, foreign);

	self->batch[0] = fetch(self, local->rkey, addr, 64);
	expect_refused(_metadata, self, 1, "key without remote rights");
	self->batch[0] = fetch(self, local->lkey, addr, 64);
	expect_refused(_metadata, self, 1, "local key");
	self->batch[0] = fetch(self, b->buf.mr->lkey, addr, 64);
	expect_refused(_metadata, self, 1, "local key of open memory");
	self->batch[0] = fetch(self, write_only->rkey, addr, 64);
	expect_refused(_metadata, self, 1, "key without remote read");
	self->batch[0] = fetch(self, foreign->rkey, addr, 64);
	expect_refused(_metadata, self, 1, "key of another domain");
	self->batch[0] = fetch(self, 0, addr, 64);
	expect_refused(_metadata, self, 1, "key 0");
	self->batch[0] = fetch(self, b->buf.mr->rkey, addr + LEN - 63, 64);
	expect_refused(_metadata, self, 1, "beyond the end");
	self->batch[0] = fetch(self, b->buf.mr->rkey, addr - 1, 64);
	expect_refused(_metadata, self, 1, "before the start");
	self->batch[0] = fetch(self, b->buf.mr->rkey, addr, ~0ULL);
	expect_refused(_metadata, self, 1, "2^64 - 1 bytes");
	self->batch[0] = fetch(self, 0, addr, 64);
	self->batch[0].flags = VRNIC_NDESC_VIRTUAL;
	expect_refused(_metadata, self, 1, "any address");
	for (i = 0; i < 500; i++) {
		self->batch[0] = fetch(self, b->buf.mr->rkey ^
				       (1U << (i % 32)) ^ (i < 32 ? 0 : rng_next(&rng) & ~0xffU),
				       addr, 64);
		if (self->batch[0].lkey != b->buf.mr->rkey)
			expect_refused(_metadata, self, 1, "guessed key");
	}
	EXPECT_OK(ibv_dereg_mr(local));
	EXPECT_OK(ibv_dereg_mr(write_only));
	EXPECT_OK(ibv_dereg_mr(foreign));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

static bool may_be_injected(int opcode)
{
	return opcode == VRNIC_NOP_PUT || opcode == VRNIC_NOP_GET || opcode == VRNIC_NOP_MESSAGE ||
	       opcode == VRNIC_NOP_RGET || opcode == VRNIC_NOP_NOTIFY ||
	       opcode == VRNIC_NOP_WAIT;
}

/* Only put, get, message, remote get, notify and wait, and these without extras. */
TEST_F(inject, only_six_opcodes)
{
	struct raw_fifo *b = &self->pair.b;
	struct vrnic_ndesc good = fetch(self, b->buf.mr->rkey,
					(uintptr_t)b->buf.addr, 64);
	int op;

	for (op = 0; op < 256; op++) {
		if (may_be_injected(op))
			continue;
		self->batch[0] = good;
		self->batch[0].opcode = op;
		expect_refused(_metadata, self, 1, "opcode");
	}
	self->batch[0] = good;
	self->batch[0].flags = VRNIC_NDESC_INLINE;
	self->batch[0].num_slots = 2;
	expect_refused(_metadata, self, 2, "inline");
	self->batch[0] = good;
	self->batch[0].flags = VRNIC_NDESC_TYPED;
	self->batch[0].num_slots = 2;
	expect_refused(_metadata, self, 2, "typed");
	self->batch[0] = good;
	self->batch[0].num_slots = 0;
	expect_refused(_metadata, self, 1, "no slots");
	self->batch[0] = good;
	self->batch[0].num_slots = 3;
	expect_refused(_metadata, self, 1, "three slots");
}

/* b's memory to a's reception FIFO: what b's engine is asked to send. */
static struct vrnic_ndesc send_back(FIXTURE_DATA(inject) *self, size_t off, size_t len)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_MESSAGE, .num_slots = 1, .length = len,
		.local_addr = (uintptr_t)self->pair.b.buf.addr + off,
		.lkey = self->pair.b.buf.mr->rkey, .arg = 77, .cookie = 0x123456789abcdefULL,
		.target_counter = self->mine.number,
	};
}

/* S4.5: a portion may go through the reception FIFO of the peer that injected the descriptor. */
TEST_F(inject, s4_5_messages_come_back)
{
	static const size_t lens[] = { 0, 1, 64, 65, 4095, VRNIC_MAX_MESSAGE };
	struct vrnic_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		self->mine.cell->remaining = 1;
		self->batch[0] = send_back(self, 100, lens[i]);
		self->batch[1] = notify(VRNIC_NDESC_BACK, i);
		ASSERT_OK(rget(self, 2));
		ASSERT_OK(record_of(self, false, VRNIC_REC_MESSAGE, &record));
		EXPECT_EQ(lens[i], record.length);
		EXPECT_EQ(0, record.header_len);
		EXPECT_EQ(77, record.arg);
		EXPECT_EQ(0x123456789abcdefULL, record.cookie);
		EXPECT_EQ(self->pair.b.address.fifo, record.source);
		ASSERT_OK(record_of(self, false, VRNIC_REC_NOTIFY, &record));
		EXPECT_EQ(i, record.arg);
		EXPECT_EQ(0, self->mine.cell->remaining);
	}
}

/* An injected message has neither header nor flags: there is nothing behind its slot. */
TEST_F(inject, s4_5_messages_without_extras)
{
	struct vrnic_ndesc good = send_back(self, 0, 64);
	unsigned int i;

	self->batch[0] = good;
	self->batch[0].header_len = 1;
	expect_refused(_metadata, self, 1, "a header");
	self->batch[0].header_len = VRNIC_MAX_MESSAGE - 64;
	self->batch[0].num_slots = 64;
	expect_refused(_metadata, self, 1, "a header, and slots");
	self->batch[0] = good;
	self->batch[0].length = VRNIC_MAX_MESSAGE + 1;
	expect_refused(_metadata, self, 1, "4097 bytes");
	self->batch[0] = good;
	self->batch[0].lkey ^= 0x100;
	expect_refused(_metadata, self, 1, "another key");
	self->batch[0] = good;
	self->batch[0].local_addr += LEN - 63;
	expect_refused(_metadata, self, 1, "beyond the end");
	for (i = 0; i < 8; i++) {
		self->batch[0] = good;
		self->batch[0].flags = 1 << i;
		expect_refused(_metadata, self, 1, "a flag");
	}
}

/* A refused descriptor behind a good one: the error is told, and later ones run. */
TEST_F(inject, refused_after_a_good_one)
{
	struct raw_fifo *b = &self->pair.b;
	struct vrnic_ndesc good = fetch(self, b->buf.mr->rkey,
					(uintptr_t)b->buf.addr, 112);
	uint8_t *data = self->pair.a.buf.addr + DATA;
	struct vrnic_record record;
	int op;

	good.target_counter = 0;
	for (op = 0; op < 256; op++) {
		if (may_be_injected(op))
			continue;
		self->batch[0] = good;
		self->batch[1] = good;
		self->batch[1].opcode = op;
		memset(data, 0, 112);
		ASSERT_OK(rget(self, 2));
		ASSERT_OK(record_of(self, false, VRNIC_REC_ERROR, &record))
			TH_LOG("opcode %d", op);
		EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err)
			TH_LOG("opcode %d", op);
		EXPECT_EQ(0, memcmp(data, b->buf.addr, 112))
			TH_LOG("opcode %d", op);
	}
	self->batch[0] = notify(VRNIC_NDESC_BACK, 7);
	ASSERT_OK(rget(self, 1));
	ASSERT_OK(record_of(self, false, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(7, record.arg);
}

/* Of the process that runs it, only counters that are open to peers may fall. */
TEST_F(inject, counters_are_validated)
{
	struct raw_fifo *b = &self->pair.b;
	struct raw_counter closed;
	struct vrnic_record record;

	ASSERT_OK(raw_counter(b, 0, &closed));
	self->its.cell->remaining = 64;
	self->mine.cell->remaining = 64;
	self->batch[0] = fetch(self, b->buf.mr->rkey, (uintptr_t)b->buf.addr, 64);
	self->batch[0].local_counter = self->its.number;
	self->batch[1] = notify(VRNIC_NDESC_BACK, 1);
	ASSERT_OK(rget(self, 2));
	ASSERT_OK(record_of(self, false, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(0, self->its.cell->remaining);
	EXPECT_EQ(0, self->mine.cell->remaining);
	self->batch[0].local_counter = closed.number;
	expect_refused(_metadata, self, 1, "closed counter");
	self->batch[0].local_counter = self->its.number ^ 0x10;
	expect_refused(_metadata, self, 1, "no such counter");
	EXPECT_EQ(0, closed.cell->remaining);
	EXPECT_EQ(0, closed.cell->errors);
	EXPECT_OK(raw_counter_destroy(b, &closed));
}

/*
 * Relayed: b sends descriptors on that lie where a said, as if b had chosen them. @counter
 * is one of b's. A record at b tells the result.
 */
static int relay(FIXTURE_DATA(inject) *self, uint32_t counter,
		 struct vrnic_record *record)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_ndesc *there = (struct vrnic_ndesc *)pair->b.buf.addr;
	int ret;

	there[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64,
		.local_addr = (uintptr_t)pair->a.buf.addr + 2 * DATA,
		.lkey = pair->a.buf.mr->rkey,
		.remote_addr = (uintptr_t)pair->b.buf.addr + DATA,
		.rkey = pair->b.buf.mr->rkey,
		.remote_counter = counter,
	};
	there[1] = notify(VRNIC_NDESC_BACK, 33);
	self->batch[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET, .num_slots = 1,
		.length = 2 * sizeof(there[0]),
		.local_addr = (uintptr_t)there, .lkey = pair->b.buf.mr->rkey,
	};
	ret = rget(self, 1);
	return ret ? ret : raw_take(&pair->b, record);
}

/* A peer chooses what is relayed: counters that are neither open nor bound are safe. */
TEST_F(inject, relayed_descriptors_name_open_counters)
{
	struct raw_pair *pair = &self->pair;
	struct raw_counter closed;
	struct vrnic_record record;

	ASSERT_OK(raw_counter(&pair->b, 0, &closed));
	closed.cell->remaining = 64;
	ASSERT_OK(relay(self, closed.number, &record));
	EXPECT_EQ(VRNIC_REC_ERROR, record.kind);
	EXPECT_EQ(VRNIC_VERR_COUNTER, record.vendor_err);
	EXPECT_EQ(64, closed.cell->remaining);
	EXPECT_EQ(0, closed.cell->errors);

	self->its.cell->remaining = 64;
	ASSERT_OK(relay(self, self->its.number, &record));
	EXPECT_EQ(VRNIC_REC_NOTIFY, record.kind);
	EXPECT_EQ(0, self->its.cell->remaining);

	ASSERT_OK(raw_counter_bind(&pair->b, &closed, pair->handle_b, true));
	ASSERT_OK(relay(self, closed.number, &record));
	EXPECT_EQ(VRNIC_REC_NOTIFY, record.kind);
	EXPECT_EQ(0, closed.cell->remaining);

	ASSERT_OK(raw_counter_bind(&pair->b, &closed, pair->handle_b, false));
	EXPECT_EQ(-EINVAL, raw_counter_bind(&pair->b, &closed, pair->handle_b, false));
	ASSERT_OK(relay(self, closed.number, &record));
	EXPECT_EQ(VRNIC_REC_ERROR, record.kind);
	EXPECT_EQ(0, closed.cell->remaining);
	EXPECT_OK(raw_counter_destroy(&pair->b, &closed));
}

#define BINDINGS	1024	/* of an endpoint */

/* The number of bindings is bounded, and so is a walk over them. */
TEST_F(inject, an_endpoint_has_so_many_bindings_and_no_more)
{
	struct raw_pair *pair = &self->pair;
	struct raw_counter *counters = calloc(BINDINGS + 1, sizeof(*counters));
	unsigned int i;

	ASSERT_NE(NULL, counters);
	for (i = 0; i <= BINDINGS; i++)
		ASSERT_OK(raw_counter(&pair->b, 0, &counters[i]));
	for (i = 0; i < BINDINGS; i++)
		ASSERT_OK(raw_counter_bind(&pair->b, &counters[i], pair->handle_b, true));
	EXPECT_EQ(-ENOMEM, raw_counter_bind(&pair->b, &counters[BINDINGS], pair->handle_b, true));
	/* one that is bound already is bound once more */
	EXPECT_OK(raw_counter_bind(&pair->b, &counters[0], pair->handle_b, true));
	EXPECT_OK(raw_counter_destroy(&pair->b, &counters[0]));
	EXPECT_OK(raw_counter_bind(&pair->b, &counters[BINDINGS], pair->handle_b, true));
	for (i = 1; i <= BINDINGS; i++)
		EXPECT_OK(raw_counter_destroy(&pair->b, &counters[i]));
	free(counters);
}

/* When a descriptor fails the rest of its remote get is dropped; later remote gets run. */
TEST_F(inject, rest_is_dropped)
{
	struct raw_fifo *b = &self->pair.b;
	uint64_t addr = (uintptr_t)b->buf.addr;
	struct vrnic_record record;

	self->batch[0] = fetch(self, ~b->buf.mr->rkey, addr, 64);
	self->batch[1] = fetch(self, b->buf.mr->rkey, addr, 64);
	self->batch[2] = notify(0, 1);
	expect_refused(_metadata, self, 3, "first of three");
	EXPECT_EQ(-EAGAIN, raw_try(b, &record));
	self->batch[0] = notify(0, 2);
	ASSERT_OK(rget(self, 1));
	ASSERT_OK(record_of(self, true, VRNIC_REC_NOTIFY, &record));
	EXPECT_EQ(2, record.arg);
}

static const uint64_t bad_lengths[] = {
	0, 1, 63, 65, 17 * 64, 1 << 20, 1ULL << 32, 1ULL << 63, ~63ULL, ~0ULL,
};

/* Lengths that are no number of descriptors: an error here, nothing at the peer. */
TEST_F(inject, length_of_a_remote_get)
{
	struct raw_fifo *a = &self->pair.a;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_lengths); i++) {
		d = (struct vrnic_ndesc){
			.opcode = VRNIC_NOP_RGET, .num_slots = 1,
			.flags = VRNIC_NDESC_SIGNALED, .cookie = i,
			.endpoint = self->pair.a_to_b, .length = bad_lengths[i],
			.local_addr = (uintptr_t)self->batch,
			.lkey = a->buf.mr->lkey,
		};
		self->batch[0] = notify(0, 9);
		ASSERT_OK(raw_post(a, &d, NULL, 0));
		ASSERT_OK(raw_take(a, &record));
		EXPECT_EQ(VRNIC_REC_COMPLETION, record.kind);
		EXPECT_EQ(i, record.cookie);
		EXPECT_NE(IBV_WC_SUCCESS, record.status) TH_LOG("case %u", i);
		EXPECT_EQ(-EAGAIN, raw_try(&self->pair.b, &record));
	}
}

/* NOTIFY is for injected descriptors only. */
TEST_F(inject, notify_is_not_for_rings)
{
	struct vrnic_ndesc d = notify(0, 1);
	struct vrnic_record record;

	d.endpoint = self->pair.a_to_b;
	d.flags = VRNIC_NDESC_SIGNALED;
	ASSERT_OK(raw_post(&self->pair.a, &d, NULL, 0));
	ASSERT_OK(raw_take(&self->pair.a, &record));
	EXPECT_EQ(VRNIC_REC_COMPLETION, record.kind);
	EXPECT_NE(IBV_WC_SUCCESS, record.status);
	EXPECT_EQ(VRNIC_VERR_OPCODE, record.vendor_err);
}

/* b's own ring is apart from the queue of remote gets. */
TEST_F(inject, full_queue_of_remote_gets_does_not_stop_the_own)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	int i, round, got;

	/* b's reception FIFO fills with notifications: the remote gets wait */
	self->batch[0] = notify(0, 5);
	for (i = 0; i < 16; i++)
		self->batch[i] = notify(0, i);
	for (round = 0; round < 40; round++)
		ASSERT_OK(rget(self, 16));
	d = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64,
		.endpoint = pair->b_to_a, .local_addr = (uintptr_t)pair->b.buf.addr,
		.lkey = pair->b.buf.mr->lkey,
		.remote_addr = (uintptr_t)pair->a.buf.addr + DATA,
		.rkey = pair->a.buf.mr->rkey,
		.target_counter = self->mine.number,
	};
	self->mine.cell->remaining = 64;
	ASSERT_OK(raw_post(&pair->b, &d, NULL, 0));
	for (i = 0; i < 500000 && self->mine.cell->remaining; i++)
		usleep(100);
	EXPECT_EQ(0, self->mine.cell->remaining);
	/* and all notifications come as the FIFO is emptied */
	for (got = 0; got < 16 * 40; got++) {
		ASSERT_OK(record_of(self, true, VRNIC_REC_NOTIFY, &record));
		ASSERT_EQ(got % 16, record.arg);
	}
	for (i = 0; i < 40; i++)
		ASSERT_OK(record_of(self, false, VRNIC_REC_COMPLETION, &record));
}

/* Each endpoint to a FIFO that goes gets one record about its end. */
TEST_F(inject, peer_is_gone)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	uint32_t endpoint, handle, gone = pair->b.address.fifo;
	uint32_t task = pair->b.address.task;
	int i;

	ASSERT_OK(raw_endpoint(&pair->a, &pair->b.address, &endpoint, &handle));
	EXPECT_EQ(-EAGAIN, raw_try(&pair->a, &record));
	ASSERT_OK(raw_endpoint_destroy(&pair->b, pair->handle_b));
	ASSERT_OK(raw_counter_destroy(&pair->b, &self->its));
	ASSERT_OK(raw_close(&pair->b));
	for (i = 0; i < 2; i++) {
		ASSERT_OK(raw_take(&pair->a, &record));
		EXPECT_EQ(VRNIC_REC_ERROR, record.kind);
		EXPECT_EQ(0, record.opcode);
		EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, record.status);
		EXPECT_EQ(VRNIC_VERR_PEER, record.vendor_err);
		EXPECT_EQ(gone, record.source);
		EXPECT_EQ(task, record.task);
	}
	EXPECT_EQ(-EAGAIN, raw_try(&pair->a, &record));
	ASSERT_OK(raw_endpoint_destroy(&pair->a, handle));
	/* what the teardown expects */
	other_side();
	ASSERT_OK(raw_open(&pair->b, SLOTS, 256, LEN));
	other_side();
	ASSERT_OK(raw_counter(&pair->b, VRNIC_COUNTER_OPEN, &self->its));
	ASSERT_OK(raw_endpoint(&pair->b, &pair->a.address, &pair->b_to_a,
			       &pair->handle_b));
}

/* Is it complete within @ms? Then its record is taken. */
static bool completes(struct raw_fifo *fifo, int ms)
{
	struct vrnic_record record;
	int i;

	for (i = 0; i < ms; i++) {
		if (!raw_try(fifo, &record))
			return true;
		usleep(1000);
	}
	return false;
}

#define DESCS_MAX	4096	/* that wait at a peer */
#define DESCS_MAX_WIRE	1024	/* the same on another host */

/*
 * A remote get that finds its queue at the peer full goes on when there is room, and
 * nobody has to ring for that.
 */
TEST_F(inject, full_queue_is_tried_again)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	int room = over_a_wire() ? DESCS_MAX_WIRE : DESCS_MAX;
	int i, posted = 0;

	self->batch[0] = notify(0, 1);
	do {
		ASSERT_OK(rget(self, 1));
		posted++;
		/* so many fit; beyond that, one that takes long has found no room */
	} while (completes(&pair->a, posted <= room ? WAIT_SECONDS * 1000 : 200) &&
		 posted < 3 * DESCS_MAX);
	ASSERT_GT(3 * DESCS_MAX, posted)
		TH_LOG("the queue has no end");
	ASSERT_LT(room, posted);
	for (i = 0; i < posted; i++) {
		ASSERT_OK(raw_take(&pair->b, &record));
		EXPECT_EQ(VRNIC_REC_NOTIFY, record.kind);
	}
	ASSERT_OK(raw_take(&pair->a, &record));
	EXPECT_EQ(VRNIC_REC_COMPLETION, record.kind);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
}

/* Notifications that b's engine is to send to a, which does not take them. */
static int fill_own_reception(FIXTURE_DATA(inject) *self, int batches)
{
	struct raw_fifo *a = &self->pair.a;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1,
		.endpoint = self->pair.a_to_b, .length = 16 * sizeof(d),
		.local_addr = (uintptr_t)self->batch, .lkey = a->buf.mr->lkey,
	};
	int i, ret = 0;

	for (i = 0; i < 16; i++)
		self->batch[i] = notify(VRNIC_NDESC_BACK, i);
	for (i = 0; i < batches && !ret; i++)
		ret = raw_post(a, &d, NULL, 0);
	return ret;
}

/* ---- the process that pays for waiting descriptors ---- */

#define ROUNDS		3
#define LEAST_BYTES	(128 << 10)	/* of ROUNDS * SLOTS batches, most of which wait */

static char top[64], group[80];

static int group_write(const char *folder, const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return write_file(path, text);
}

static void leave_group(void)
{
	group_write(top, "cgroup.procs", "0");
	rmdir(group);
	umount(top);
	rmdir(top);
}

/* A memory group; a process that calls enter_group() enters it. */
static int make_group(void)
{
	int ret;

	snprintf(top, sizeof(top), "/tmp/cgroup-%d", getpid());
	snprintf(group, sizeof(group), "%s/pays", top);
	if (mkdir(top, 0700) || mount("none", top, "cgroup2", 0, NULL))
		return -errno;
	ret = group_write(top, "cgroup.subtree_control", "+memory");
	if (!ret && mkdir(group, 0700))
		ret = -errno;
	if (ret)
		leave_group();
	return ret;
}

static int enter_group(void)
{
	return group_write(group, "cgroup.procs", "0");
}

/* What the kernel keeps for the group, in bytes. */
static long long group_slab(void)
{
	long long bytes = -ENOENT;
	char path[160], name[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", group);
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %lld", name, &bytes) == 2 &&
	       strcmp(name, "slab_unreclaimable"))
		;
	if (f)
		fclose(f);
	return bytes;
}

/* The kernel adds a group's figures up every two seconds, unless they are large. */
static int group_slab_reaches(long long least)
{
	int tries = WAIT_SECONDS * 10;

	while (group_slab() < least) {
		if (!tries--)
			return -ETIMEDOUT;
		usleep(100000);
	}
	return 0;
}

/**
 * struct payer - the process that pays, and its peer, which is not in the group
 * @a: FIFO of the payer
 * @b: FIFO of the peer
 * @a_to_b, @handle: endpoint of the payer
 */
struct payer {
	struct raw_fifo a, b;
	uint32_t a_to_b, handle;
};

FIXTURE(payer)
{
	struct payer *payer;	/* of all processes */
	bool grouped;
	long was;
};

FIXTURE_SETUP(payer)
{
	NEED_NATIVE();
	self->was = module_param("caller_bytes");
	self->grouped = !make_group();
	if (!self->grouped)
		return;
	self->payer = mmap(NULL, sizeof(*self->payer), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->payer);
	ASSERT_OK(raw_open(&self->payer->b, SLOTS, 256, LEN));
	ASSERT_OK(set_module_param("caller_bytes", 4096));
}

FIXTURE_TEARDOWN(payer)
{
	if (!self->payer)
		return;
	EXPECT_OK(set_module_param("caller_bytes", self->was));
	EXPECT_OK(raw_close(&self->payer->b));
	leave_group();
}

/* In the group, with descriptors that the payer's remote gets bring. */
static int payer_open(struct payer *payer, uint32_t slots)
{
	struct vrnic_ndesc *batch;
	int i, ret;

	ret = enter_group();
	if (!ret)
		ret = raw_open(&payer->a, slots, 256, LEN);
	if (!ret)
		ret = raw_endpoint(&payer->a, &payer->b.address, &payer->a_to_b, &payer->handle);
	if (ret)
		return ret;
	batch = (struct vrnic_ndesc *)payer->a.buf.addr;
	for (i = 0; i < 16; i++)
		batch[i] = notify(0, i);
	return 0;
}

/*
 * A put that exceeds the caller's budget, so that a thread goes on, and behind it remote
 * gets whose descriptors wait at the peer.
 */
static void fill_behind_a_put(struct payer *payer, int n)
{
	struct raw_fifo *a = &payer->a, *b = &payer->b;
	struct vrnic_ndesc put = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .endpoint = payer->a_to_b,
		.length = LEN, .local_addr = (uintptr_t)a->buf.addr, .lkey = a->buf.mr->lkey,
		.remote_addr = (uintptr_t)b->buf.addr, .rkey = b->buf.mr->rkey,
	}, d = put;
	int i;

	d.opcode = VRNIC_NOP_RGET;
	d.length = 16 * sizeof(d);
	raw_fill(a, &put, NULL, 0);
	for (i = 1; i < n; i++)
		raw_fill(a, &d, NULL, 0);
}

static int post_behind_a_put(struct payer *payer)
{
	struct raw_fifo *a = &payer->a;
	int ret;

	fill_behind_a_put(payer, SLOTS);
	ret = raw_ring(a);
	while (!ret && __atomic_load_n(&a->inject->cons, __ATOMIC_ACQUIRE) != a->inject->prod)
		usleep(1000);
	return ret;
}

TEST_F(payer, what_a_thread_delivers_is_charged_to_who_posted_it)
{
	struct payer *payer = self->payer;
	long long before;
	int i;

	if (!self->grouped)
		SKIP(return, "no groups that count memory");
	ASSERT_OK(payer_open(payer, SLOTS));
	before = group_slab();
	EXPECT_LE(0, before);
	for (i = 0; i < ROUNDS; i++)
		EXPECT_OK(post_behind_a_put(payer));
	EXPECT_OK(group_slab_reaches(before + LEAST_BYTES));
	EXPECT_OK(raw_endpoint_destroy(&payer->a, payer->handle));
	EXPECT_OK(raw_close(&payer->a));
}

/*
 * The process that opened the device fills a ring, and ends. A child of it has the files,
 * and rings, when it may, until it is killed. The result is told through @told.
 */
static void fill_and_go(struct payer *payer, int told, int may)
{
	int ret = payer_open(payer, 4 * SLOTS);
	pid_t self = getpid();
	char c;

	if (!ret) {
		fill_behind_a_put(payer, 4 * SLOTS - 1);
		ret = fork();
	}
	if (ret)
		_exit(ret < 0);
	while (getppid() == self)
		usleep(1000);
	if (write(told, "", 1) != 1 || read(may, &c, 1) != 1)
		_exit(1);
	while (!ioctl(payer->a.bell, VRNIC_ADVANCE, payer->a.address.fifo))
		usleep(1000);
	_exit(1);
}

TEST_F(payer, what_was_posted_is_charged_when_its_process_has_gone)
{
	int told[2], may[2], status;
	long long before;
	pid_t opener, heir;
	char c;

	if (!self->grouped)
		SKIP(return, "no groups that count memory");
	ASSERT_OK(pipe(told));
	ASSERT_OK(pipe(may));
	ASSERT_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	opener = fork();
	if (!opener)
		fill_and_go(self->payer, told[1], may[0]);
	close(told[1]);
	ASSERT_EQ(opener, waitpid(opener, &status, 0));
	ASSERT_EQ(0, status);
	/* the child is there, and its parent's memory is not */
	ASSERT_EQ(1, read(told[0], &c, 1));
	before = group_slab();
	EXPECT_LE(0, before);
	ASSERT_EQ(1, write(may[1], "", 1));
	EXPECT_OK(group_slab_reaches(before + LEAST_BYTES));
	EXPECT_EQ(0, waitpid(-1, &status, WNOHANG));
	group_write(group, "cgroup.kill", "1");
	heir = waitpid(-1, &status, 0);
	EXPECT_LT(0, heir);
	EXPECT_TRUE(WIFSIGNALED(status));
}

#define BATCHES	40	/* more records than a's reception FIFO has slots */

/* A peer that takes no records delays only the descriptors that it injected itself. */
TEST_F(inject, a_full_peer_holds_up_nobody_else)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	uint32_t endpoint, handle;
	struct raw_fifo c;
	int i;

	ASSERT_OK(raw_open(&c, SLOTS, 256, LEN));
	ASSERT_OK(raw_endpoint(&c, &pair->b.address, &endpoint, &handle));
	ASSERT_OK(fill_own_reception(self, BATCHES));
	*(struct vrnic_ndesc *)c.buf.addr = notify(VRNIC_NDESC_BACK, 77);
	for (i = 0; i < 100; i++) {
		ASSERT_OK(raw_post(&c, &(struct vrnic_ndesc){
			.opcode = VRNIC_NOP_RGET, .num_slots = 1,
			.endpoint = endpoint, .length = sizeof(struct vrnic_ndesc),
			.local_addr = (uintptr_t)c.buf.addr,
			.lkey = c.buf.mr->lkey,
		}, NULL, 0));
		ASSERT_OK(raw_take(&c, &record));
		EXPECT_EQ(VRNIC_REC_NOTIFY, record.kind);
		EXPECT_EQ(77, record.arg);
	}
	/* and nothing of its own is lost */
	for (i = 0; i < 16 * BATCHES; i++) {
		ASSERT_OK(raw_take(&pair->a, &record));
		ASSERT_EQ(VRNIC_REC_NOTIFY, record.kind);
		ASSERT_EQ(i % 16, record.arg);
	}
	EXPECT_OK(raw_endpoint_destroy(&c, handle));
	EXPECT_OK(raw_close(&c));
}

/* Peers come and go: their descriptors are done and told, and their queues go. */
TEST_F(inject, more_peers_than_queues_are_kept)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	uint32_t endpoint, handle;
	struct raw_fifo c;
	int i, got = 0;

	for (i = 0; i < 100; i++) {
		ASSERT_OK(raw_open(&c, SLOTS, 256, LEN));
		ASSERT_OK(raw_endpoint(&c, &pair->b.address, &endpoint, &handle));
		*(struct vrnic_ndesc *)c.buf.addr = notify(0, i);
		ASSERT_OK(raw_post(&c, &(struct vrnic_ndesc){
			.opcode = VRNIC_NOP_RGET, .num_slots = 1,
			.endpoint = endpoint, .length = sizeof(struct vrnic_ndesc),
			.local_addr = (uintptr_t)c.buf.addr,
			.lkey = c.buf.mr->lkey,
		}, NULL, 0));
		ASSERT_OK(record_of(self, true, VRNIC_REC_NOTIFY, &record));
		got += record.arg == (uint32_t)i;
		ASSERT_OK(raw_endpoint_destroy(&c, handle));
		ASSERT_OK(raw_close(&c));
	}
	EXPECT_EQ(100, got);
}

/* Two engines that send remote gets to each other for ever starve nobody. */
TEST_F(inject, endless_chain)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_ndesc *there = (struct vrnic_ndesc *)pair->b.buf.addr;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	struct nbed bed = {};
	int i;

	/* each fetches the other's, which fetches this one */
	self->batch[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .length = 64,
		.local_addr = (uintptr_t)there, .lkey = pair->b.buf.mr->rkey,
	};
	there[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .length = 64,
		.local_addr = (uintptr_t)self->batch, .lkey = pair->a.buf.mr->rkey,
	};
	ASSERT_OK(rget(self, 1));
	ASSERT_OK(raw_take(&pair->a, &record));
	EXPECT_EQ(VRNIC_REC_COMPLETION, record.kind);
	/* others go on, and so do these two */
	ASSERT_OK(nbed_open(&bed, LEN, NULL));
	for (i = 0; i < 200; i++) {
		ASSERT_OK(nbed_put(&bed, 0, 0, LEN, DONE(.remote = bed.a.counter)));
		ASSERT_OK(counter_done(bed.a.counter));
	}
	EXPECT_OK(nbed_close(&bed));
	d = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_FENCE, .num_slots = 1,
		.flags = VRNIC_NDESC_SIGNALED, .endpoint = pair->a_to_b,
	};
	ASSERT_OK(raw_post(&pair->a, &d, NULL, 0));
	ASSERT_OK(raw_take(&pair->a, &record));
	EXPECT_EQ(VRNIC_NOP_FENCE, record.opcode);
	/* it ends with the memory, or with either of the two */
}

TEST_HARNESS_MAIN
