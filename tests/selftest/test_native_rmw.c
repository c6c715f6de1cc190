// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Read-modify-write: fetch x compare x {set, add, and, or, xor} on 32 and 64 bits. */
#include <pthread.h>

#include "native.h"

#define LEN	4096

NBED(rmw, LEN);

static const struct op {
	uint32_t op, width;
	uint64_t before, operand, compare, after;
} ops[] = {
	{ VRNIC_RMW_FETCH, 8, 5, 99, 5, 5 },
	{ VRNIC_RMW_SET, 8, 5, ~0ULL, 0, ~0ULL },
	{ VRNIC_RMW_ADD, 8, 0xffffffff, 1, 0, 0x100000000 },
	{ VRNIC_RMW_ADD, 8, ~0ULL, 1, 0, 0 },
	{ VRNIC_RMW_ADD, 8, 5, -6ULL, 0, ~0ULL },
	{ VRNIC_RMW_AND, 8, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0,
	  0x0f000f000f000f00 },
	{ VRNIC_RMW_OR, 8, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0,
	  0xfff0fff0fff0fff0 },
	{ VRNIC_RMW_XOR, 8, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0,
	  0xf0f0f0f0f0f0f0f0 },
	{ VRNIC_RMW_FETCH, 4, 5, 99, 5, 5 },
	{ VRNIC_RMW_SET, 4, 5, 0x89abcdef, 0, 0x89abcdef },
	{ VRNIC_RMW_ADD, 4, 0xffffffff, 2, 0, 1 },
	{ VRNIC_RMW_AND, 4, 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00 },
	{ VRNIC_RMW_OR, 4, 0xff00ff00, 0x0ff00ff0, 0, 0xfff0fff0 },
	{ VRNIC_RMW_XOR, 4, 0xff00ff00, 0x0ff00ff0, 0, 0xf0f0f0f0 },
#define EQUAL(op) VRNIC_RMW_COMPARE | VRNIC_RMW_##op
	{ EQUAL(FETCH), 8, 7, 1, 7, 7 },
	{ EQUAL(SET), 8, 7, 1, 7, 1 },
	{ EQUAL(SET), 8, 7, 1, 8, 7 },
	{ EQUAL(SET), 8, 1ULL << 32, 1, 0, 1ULL << 32 },
	{ EQUAL(ADD), 8, 7, 1, 7, 8 },
	{ EQUAL(ADD), 8, 7, 1, 6, 7 },
	{ EQUAL(AND), 8, 7, 1, 7, 1 },
	{ EQUAL(AND), 8, 7, 1, 1, 7 },
	{ EQUAL(OR), 8, 6, 1, 6, 7 },
	{ EQUAL(OR), 8, 6, 1, 7, 6 },
	{ EQUAL(XOR), 8, 7, 5, 7, 2 },
	{ EQUAL(XOR), 8, 7, 5, 0, 7 },
	{ EQUAL(SET), 4, 7, 1, 7, 1 },
	{ EQUAL(SET), 4, 7, 1, 8, 7 },
	{ EQUAL(ADD), 4, 7, 1, 7, 8 },
	{ EQUAL(AND), 4, 7, 1, 1, 7 },
	{ EQUAL(OR), 4, 6, 1, 6, 7 },
	{ EQUAL(XOR), 4, 7, 5, 7, 2 },
#undef EQUAL
};

static int run(struct nbed *bed, const struct op *o, size_t at, void *result,
	       const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	return vrnic_rmw(a->to, RMW(.op = o->op, .width = o->width, .remote = a->peer.addr + at,
				    .rkey = a->peer.rkey, .operand = o->operand,
				    .compare = o->compare, .result = result,
				    .mr = result ? a->buf.mr : NULL), done);
}

/* Neighbours are left alone, above all the other half of the 8 bytes. */
TEST_F(rmw, table)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	uint8_t *word = bed->b.buf.addr + 64;
	uint64_t value, old;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		size_t w = ops[i].width, at = w == 4 && i & 1 ? 68 : 64;

		word = bed->b.buf.addr + at;
		memset(bed->b.buf.addr, 0x5a, LEN);
		memset(bed->a.buf.addr, 0x5a, LEN);
		memcpy(word, &ops[i].before, w);
		ASSERT_OK(run(bed, &ops[i], at, bed->a.buf.addr + 8,
			      DONE(TELL(&told), .local = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		ASSERT_OK(advance_until(bed->a.context, &told.count, i + 1));
		value = 0;
		memcpy(&value, word, w);
		EXPECT_EQ(ops[i].after, value) TH_LOG("row %u", i);
		old = 0;
		memcpy(&old, bed->a.buf.addr + 8, w);
		EXPECT_EQ(ops[i].before, old) TH_LOG("row %u", i);
		EXPECT_EQ(ops[i].before, told.status.value) TH_LOG("row %u", i);
		EXPECT_EQ(VRNIC_NOP_RMW, told.status.opcode);
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, at, 0x5a));
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, at + w, LEN - at - w, 0x5a));
		EXPECT_EQ(-1, buf_is_not(&bed->a.buf, 8 + w, 64, 0x5a));
	}
}

/* Three ways to be told, each of which falls by 1. */
TEST_F(rmw, counts_as_one)
{
	static const struct op add = { VRNIC_RMW_ADD, 8, 0, 3 };
	struct nbed *bed = &self->bed;
	int i;

	vrnic_counter_set(bed->b.open, 100);
	for (i = 0; i < 100; i++)
		ASSERT_OK(run(bed, &add, 0, NULL,
			      DONE(.remote = bed->a.counter,
				   .target = bed->a.peer.counter)));
	EXPECT_EQ(0, counter_done(bed->a.counter));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	EXPECT_EQ(0, vrnic_counter_read(bed->b.open));
	EXPECT_EQ(300, *(uint64_t *)bed->b.buf.addr);
}

TEST_F(rmw, without_result)
{
	static const struct op set = { VRNIC_RMW_SET, 4, 0, 77 };

	ASSERT_OK(run(&self->bed, &set, 0, NULL,
		      DONE(.remote = self->bed.a.counter)));
	ASSERT_OK(counter_done(self->bed.a.counter));
	EXPECT_EQ(77, *(uint32_t *)self->bed.b.buf.addr);
}

/* Several origins and the target's own processor on one word: nothing is lost. */
#define ADDERS	3
#define ADDS	1500

struct adder {
	struct node node;
	uint32_t width;
	int error;
	pthread_t thread;
};

static int add_one(struct node *n, uint32_t width)
{
	int ret;

	while ((ret = vrnic_rmw(n->to, RMW(.op = VRNIC_RMW_ADD, .width = width,
					   .remote = n->peer.addr, .rkey = n->peer.rkey,
					   .operand = 1), DONE(.remote = n->counter))) == -EAGAIN)
		vrnic_advance(n->context, 10);
	return ret;
}

static void *add_many(void *arg)
{
	struct adder *a = arg;
	int i;

	for (i = 0; i < ADDS && !a->error; i++)
		a->error = add_one(&a->node, a->width);
	if (!a->error)
		a->error = counter_done(a->node.counter);
	return NULL;
}

static void add_with(struct __test_metadata *_metadata, struct nbed *bed,
		     uint32_t width)
{
	struct adder *adders = calloc(ADDERS, sizeof(*adders));
	struct node_info target = node_info(&bed->b);
	uint32_t *half = (uint32_t *)bed->b.buf.addr;
	uint64_t *word = (uint64_t *)bed->b.buf.addr;
	int i;

	ASSERT_NE(NULL, adders);
	for (i = 0; i < ADDERS; i++) {
		adders[i].width = width;
		ASSERT_OK(node_open(&adders[i].node, 64, NULL));
		ASSERT_OK(node_join(&adders[i].node, &target));
		ASSERT_OK(pthread_create(&adders[i].thread, NULL, add_many,
					 &adders[i]));
	}
	for (i = 0; i < 100000; i++) {
		if (width == 8)
			__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
		else
			__atomic_fetch_add(half, 1, __ATOMIC_RELAXED);
		if (i % 1000 == 0)
			sched_yield();
	}
	for (i = 0; i < ADDERS; i++) {
		ASSERT_OK(pthread_join(adders[i].thread, NULL));
		EXPECT_OK(adders[i].error);
		EXPECT_OK(node_close(&adders[i].node));
	}
	EXPECT_EQ(100000 + ADDERS * ADDS, *word);
	free(adders);
}

TEST_F(rmw, atomic_against_all_others_64)
{
	add_with(_metadata, &self->bed, 8);
}

TEST_F(rmw, atomic_against_all_others_32)
{
	add_with(_metadata, &self->bed, 4);
}

/* Compare and set as a lock: the thread that sees the old value has the lock. */
TEST_F(rmw, compare_and_set_picks_one)
{
	struct op lock = { VRNIC_RMW_COMPARE | VRNIC_RMW_SET, 8, 0, 1, 0 };
	struct told told[10] = {};
	int i, won = 0;

	for (i = 0; i < 10; i++) {
		lock.operand = i + 1;
		ASSERT_OK(run(&self->bed, &lock, 0, NULL, DONE(TELL(&told[i]))));
	}
	ASSERT_OK(advance_until(self->bed.a.context, &told[9].count, 1));
	for (i = 0; i < 10; i++)
		won += !told[i].status.value;
	EXPECT_EQ(1, won);
	EXPECT_EQ(0, told[0].status.value);
	EXPECT_EQ(1, *(uint64_t *)self->bed.b.buf.addr);
}

static const struct bad {
	uint32_t op, width;
	size_t at;
} bad[] = {
	{ 6, 8, 0 }, { 0xff, 8, 0 }, { 0x200, 8, 0 }, { ~0U, 8, 0 },
	{ VRNIC_RMW_COMPARE | 6, 8, 0 },
	{ VRNIC_RMW_ADD, 0, 0 }, { VRNIC_RMW_ADD, 1, 0 }, { VRNIC_RMW_ADD, 2, 0 },
	{ VRNIC_RMW_ADD, 16, 0 }, { VRNIC_RMW_ADD, ~0U, 0 },
};

TEST_F(rmw, refuses_what_makes_no_sense)
{
	struct vrnic_error error = {};
	struct op op = {};
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		op.op = bad[i].op;
		op.width = bad[i].width;
		ret = run(&self->bed, &op, bad[i].at, NULL, NULL);
		EXPECT_EQ(-EINVAL, ret) TH_LOG("case %u", i);
	}
	for (i = 1; i < 8; i++) {
		op.op = VRNIC_RMW_ADD;
		op.width = i == 4 ? 8 : i & 1 ? 4 : 8;
		ret = run(&self->bed, &op, i, NULL,
			  DONE(.remote = self->bed.a.counter));
		if (!ret) {
			ret = counter_done(self->bed.a.counter);
			vrnic_counter_error(self->bed.a.counter, &error);
			EXPECT_EQ(VRNIC_VERR_ALIGN, error.vendor_err);
			vrnic_counter_set(self->bed.a.counter, 0);
		}
		EXPECT_TRUE(ret == -EINVAL || ret == -EIO) TH_LOG("offset %u", i);
	}
	EXPECT_EQ(-1, buf_is_not(&self->bed.b.buf, 0, LEN, 0));
}

/* It needs the right to remote atomics, and the word in the region. */
TEST_F(rmw, rights_and_bounds)
{
	static const struct op add = { VRNIC_RMW_ADD, 8, 0, 1 };
	struct node *a = &self->bed.a;
	struct vrnic_error error = {};
	struct ibv_mr *mr;

	mr = ibv_reg_mr(vrnic_client_pd(self->bed.b.client), self->bed.b.buf.addr,
			LEN, ACCESS_REMOTE & ~IBV_ACCESS_REMOTE_ATOMIC);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(vrnic_rmw(a->to, RMW(.op = VRNIC_RMW_ADD, .width = 8, .remote = a->peer.addr,
				       .rkey = mr->rkey, .operand = 1),
			    DONE(.remote = a->counter)));
	EXPECT_EQ(-EIO, counter_done(a->counter));
	vrnic_counter_error(a->counter, &error);
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
	EXPECT_EQ(VRNIC_VERR_ACCESS, error.vendor_err);
	vrnic_counter_set(a->counter, 0);
	EXPECT_OK(ibv_dereg_mr(mr));
	ASSERT_OK(run(&self->bed, &add, LEN, NULL, DONE(.remote = a->counter)));
	EXPECT_EQ(-EIO, counter_done(a->counter));
	vrnic_counter_error(a->counter, &error);
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	vrnic_counter_set(a->counter, 0);
}

TEST_HARNESS_MAIN
