// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The opcode table, and the checks that a descriptor goes through. */

#include <kunit/test.h>

#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/ring.h"

#define RC	BIT(IB_QPT_RC)
#define UC	BIT(IB_QPT_UC)
#define UD	(BIT(IB_QPT_UD) | BIT(IB_QPT_GSI))
#define RAW	BIT(IB_QPT_RAW_PACKET)

/* What each operation is allowed on, and what its segments are for. */
static const struct expected {
	u32 types;
	bool has_data;
	bool may_inline;
	u32 exact;	/* bytes that it always moves, or 0 */
} expected[VRNIC_OP_MAX] = {
	[VRNIC_OP_NOP] = { .types = RC | UC | UD | RAW },
	[VRNIC_OP_SEND] = { RC | UC | UD | RAW, true, true },
	[VRNIC_OP_SEND_WITH_IMM] = { RC | UC | UD, true, true },
	[VRNIC_OP_SEND_WITH_INV] = { RC, true, true },
	[VRNIC_OP_RDMA_WRITE] = { RC | UC, true, true },
	[VRNIC_OP_RDMA_WRITE_WITH_IMM] = { RC | UC, true, true },
	[VRNIC_OP_RDMA_READ] = { RC, true, false },
	[VRNIC_OP_ATOMIC_CMP_AND_SWP] = { RC, true, false, 8 },
	[VRNIC_OP_ATOMIC_FETCH_AND_ADD] = { RC, true, false, 8 },
	[VRNIC_OP_ATOMIC_WRITE] = { RC, true, true, 8 },
	[VRNIC_OP_FLUSH] = { .types = RC },
	[VRNIC_OP_LOCAL_INV] = { .types = RC | UC },
	[VRNIC_OP_BIND_MW] = { .types = RC | UC },
	[VRNIC_OP_REG_MR] = { .types = RC | UC },
};

/* struct bench - a queue pair that is good for checks only */
struct bench {
	struct vrnic_qp qp;
	struct vrnic_op op;
	u8 slots[VRNIC_MAX_SLOTS * VRNIC_SLOT_SIZE] __aligned(8);
	struct vrnic_desc *d;
};

static int opcode_init(struct kunit *test)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	if (!b)
		return -ENOMEM;
	b->qp.type = IB_QPT_RC;
	b->op.slots = b->slots;
	b->d = vrnic_op_desc(&b->op);
	test->priv = b;
	return 0;
}

static void every_opcode_has_a_row(struct kunit *test)
{
	int op, other;

	for (op = 0; op < VRNIC_OP_MAX; op++) {
		const struct vrnic_opdef *def = vrnic_opdef(op);

		KUNIT_ASSERT_NOT_NULL(test, def);
		KUNIT_ASSERT_NOT_NULL(test, def->name);
		KUNIT_EXPECT_EQ(test, def->qp_types, expected[op].types);
		KUNIT_EXPECT_EQ(test, def->kernel_only, op == VRNIC_OP_REG_MR);
		for (other = 0; other < op; other++)
			KUNIT_EXPECT_STRNEQ(test, def->name,
					    vrnic_opdef(other)->name);
	}
}

static void no_row_beyond_the_last(struct kunit *test)
{
	struct bench *b = test->priv;
	int op;

	for (op = VRNIC_OP_MAX; op <= U8_MAX; op++) {
		b->d->opcode = op;
		b->d->num_slots = 1;
		/* that of native links is for their queue pairs only */
		KUNIT_EXPECT_EQ(test, !vrnic_opdef(op), op != VRNIC_OP_NATIVE);
		KUNIT_EXPECT_EQ(test, vrnic_op_check(&b->qp, &b->op),
				VRNIC_VERR_OPCODE);
	}
}

/* The smallest descriptor of an opcode that makes sense. */
static void fill(struct bench *b, u8 opcode)
{
	b->op = (struct vrnic_op){ .slots = b->slots };
	memset(b->slots, 0, sizeof(b->slots));
	b->d->opcode = opcode;
	b->d->num_slots = 1;
	if (opcode == VRNIC_OP_ATOMIC_WRITE) {
		b->d->flags = VRNIC_DESC_INLINE;
		b->d->inline_len = 8;
	} else if (expected[opcode].exact) {
		b->d->num_sge = 1;
		b->d->sge[0].length = 8;
	}
}

static void queue_pair_types(struct kunit *test)
{
	static const enum ib_qp_type types[] = {
		IB_QPT_SMI, IB_QPT_GSI, IB_QPT_RC, IB_QPT_UC, IB_QPT_UD,
		IB_QPT_RAW_PACKET,
	};
	struct bench *b = test->priv;
	int op, t;

	for (op = 0; op < VRNIC_OP_MAX; op++) {
		for (t = 0; t < ARRAY_SIZE(types); t++) {
			bool good = expected[op].types & BIT(types[t]);

			fill(b, op);
			b->qp.type = types[t];
			KUNIT_EXPECT_EQ_MSG(test, vrnic_op_check(&b->qp, &b->op),
					    good ? 0 : VRNIC_VERR_OPCODE,
					    "opcode %d, type %d", op, types[t]);
		}
	}
}

/* A process's ring can ask for everything but registration. */
static void kernel_only(struct kunit *test)
{
	struct bench *b = test->priv;
	int op;

	b->qp.owner = 1;	/* only compared with 0 */
	for (op = 0; op < VRNIC_OP_MAX; op++) {
		fill(b, op);
		KUNIT_EXPECT_EQ(test, vrnic_op_check(&b->qp, &b->op),
				op == VRNIC_OP_REG_MR ? VRNIC_VERR_OPCODE : 0);
	}
}

/*
 * What follows asserts, so that it stops at the first failure: there may be
 * thousands of the kind, more than the kernel's log can hold.
 */

/* Slots that hold @n things, @first of them in the first, @more in each other. */
static u32 count_slots(u32 n, u32 first, u32 more)
{
	u32 slots = 1, room = first;

	while (room < n) {
		room += more;
		slots++;
	}
	return slots;
}

static void check_sges(struct kunit *test, u8 opcode, u32 num_sge, u16 slots)
{
	struct bench *b = test->priv;
	bool fits = num_sge <= VRNIC_MAX_SGE &&
		    slots == count_slots(num_sge, 2, 4);
	bool good = fits;

	fill(b, opcode);
	b->d->flags = 0;
	b->d->num_sge = num_sge;
	b->d->num_slots = slots;
	if (opcode == VRNIC_OP_ATOMIC_WRITE)
		good = false;
	else if (expected[opcode].exact)
		good = fits && num_sge == 1;
	KUNIT_ASSERT_EQ_MSG(test, !vrnic_op_check(&b->qp, &b->op), good,
			    "opcode %u, %u segments in %u slots", opcode,
			    num_sge, slots);
	if (!fits)
		KUNIT_ASSERT_EQ(test, vrnic_op_check(&b->qp, &b->op),
				VRNIC_VERR_SLOTS);
}

static void slots_and_segments(struct kunit *test)
{
	static const u32 wild[] = { 33, 34, 64, 0x7fffffff, 0x80000001, U32_MAX };
	u32 op, sges, slots, i;

	for (op = 0; op < VRNIC_OP_MAX; op++) {
		if (!expected[op].has_data)
			continue;
		for (slots = 0; slots <= VRNIC_MAX_SLOTS + 1; slots++) {
			for (sges = 0; sges <= VRNIC_MAX_SGE; sges++)
				check_sges(test, op, sges, slots);
			for (i = 0; i < ARRAY_SIZE(wild); i++)
				check_sges(test, op, wild[i], slots);
		}
		check_sges(test, op, 1, U16_MAX);
	}
}

static void check_inline(struct kunit *test, u8 opcode, u32 len, u16 slots)
{
	struct bench *b = test->priv;
	bool good = expected[opcode].may_inline && len <= VRNIC_MAX_INLINE &&
		    slots == count_slots(len, 32, 64);

	if (expected[opcode].exact)
		good &= len == expected[opcode].exact;
	fill(b, opcode);
	b->d->flags = VRNIC_DESC_INLINE;
	b->d->inline_len = len;
	b->d->num_slots = slots;
	KUNIT_ASSERT_EQ_MSG(test, !vrnic_op_check(&b->qp, &b->op), good,
			    "opcode %u, %u bytes inline in %u slots", opcode,
			    len, slots);
	if (good)
		KUNIT_ASSERT_EQ(test, b->op.total, len);
}

static void slots_and_inline_data(struct kunit *test)
{
	static const u32 wild[] = { 1000, 4096, 0x7fffffff, 0x80000000, U32_MAX };
	u32 op, len, slots, i;

	for (op = 0; op < VRNIC_OP_MAX; op++) {
		if (!expected[op].has_data)
			continue;
		for (slots = 0; slots <= VRNIC_MAX_SLOTS + 1; slots++) {
			for (len = 0; len <= VRNIC_MAX_INLINE + 1; len += 1 + len % 3)
				check_inline(test, op, len, slots);
			check_inline(test, op, VRNIC_MAX_INLINE, slots);
			check_inline(test, op, VRNIC_MAX_INLINE + 1, slots);
			for (i = 0; i < ARRAY_SIZE(wild); i++)
				check_inline(test, op, wild[i], slots);
		}
	}
}

/* Operations without data take one slot, whatever their other fields say. */
static void slots_without_data(struct kunit *test)
{
	struct bench *b = test->priv;
	int op, slots;

	for (op = 0; op < VRNIC_OP_MAX; op++) {
		if (expected[op].has_data)
			continue;
		for (slots = 0; slots <= VRNIC_MAX_SLOTS + 1; slots++) {
			fill(b, op);
			b->d->num_slots = slots;
			b->d->num_sge = U32_MAX;
			KUNIT_EXPECT_EQ(test, vrnic_op_check(&b->qp, &b->op),
					slots == 1 ? 0 : VRNIC_VERR_SLOTS);
			KUNIT_EXPECT_EQ(test, b->op.total, 0);
		}
	}
}

static void check_lengths(struct kunit *test, u32 num_sge, u32 each, int verr)
{
	struct bench *b = test->priv;
	struct vrnic_sge *sge;
	u32 i;

	fill(b, VRNIC_OP_RDMA_WRITE);
	b->d->num_sge = num_sge;
	b->d->num_slots = vrnic_desc_slots(num_sge, 0);
	/* they go on in the slots behind the first */
	sge = b->d->sge;
	for (i = 0; i < num_sge; i++)
		sge[i].length = each;
	KUNIT_EXPECT_EQ(test, vrnic_op_check(&b->qp, &b->op), verr);
	KUNIT_EXPECT_EQ(test, b->op.total, (u64)num_sge * each);
}

static void message_length(struct kunit *test)
{
	check_lengths(test, 1, 1U << 31, 0);
	check_lengths(test, 1, (1U << 31) + 1, VRNIC_VERR_LENGTH);
	check_lengths(test, 2, 1U << 30, 0);
	check_lengths(test, 2, (1U << 30) + 1, VRNIC_VERR_LENGTH);
	check_lengths(test, 32, 1U << 26, 0);
	/* the sum is 0 in 32 bits */
	check_lengths(test, 32, 1U << 27, VRNIC_VERR_LENGTH);
	check_lengths(test, 32, U32_MAX, VRNIC_VERR_LENGTH);
}

static void atomic_length(struct kunit *test)
{
	struct bench *b = test->priv;
	u32 len;

	for (len = 0; len < 16; len++) {
		fill(b, VRNIC_OP_ATOMIC_FETCH_AND_ADD);
		b->d->sge[0].length = len;
		KUNIT_EXPECT_EQ(test, vrnic_op_check(&b->qp, &b->op),
				len < 8 ? VRNIC_VERR_LENGTH : 0);
	}
}

static struct kunit_case opcode_cases[] = {
	KUNIT_CASE(every_opcode_has_a_row),
	KUNIT_CASE(no_row_beyond_the_last),
	KUNIT_CASE(queue_pair_types),
	KUNIT_CASE(kernel_only),
	KUNIT_CASE(slots_and_segments),
	KUNIT_CASE(slots_and_inline_data),
	KUNIT_CASE(slots_without_data),
	KUNIT_CASE(message_length),
	KUNIT_CASE(atomic_length),
	{}
};

static struct kunit_suite opcode_suite = {
	.name = "vrnic_opcode",
	.init = opcode_init,
	.test_cases = opcode_cases,
};

kunit_test_suite(opcode_suite);
