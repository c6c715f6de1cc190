// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rings: index arithmetic where indices wrap, and with indices that lie. */

#include <kunit/test.h>

#include "queue/ring.h"
#include "queue/ring_mem.h"

#define ENTRIES		8
#define NEAR_WRAP	(U32_MAX - 2)	/* a ring of 8 laps 2^32 from here */

static void free_ring(void *ring)
{
	vrnic_ring_free(ring);
}

static struct vrnic_ring *new_ring(struct kunit *test, u32 entries, u32 stride)
{
	struct vrnic_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	KUNIT_ASSERT_EQ(test, vrnic_ring_alloc(ring, entries, stride, GFP_KERNEL), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_ring, ring), 0);
	return ring;
}

/* As if the ring had been in use for a while. */
static struct vrnic_ring *used_ring(struct kunit *test, u32 idx)
{
	struct vrnic_ring *ring = new_ring(test, ENTRIES, VRNIC_SLOT_SIZE);

	ring->idx = idx;
	ring->hdr->prod = idx;
	ring->hdr->cons = idx;
	return ring;
}

static void ring_sizes(struct kunit *test)
{
	static const struct { u32 wanted, entries; } sizes[] = {
		{ 0, 1 }, { 1, 1 }, { 2, 2 }, { 3, 4 }, { 64, 64 }, { 65, 128 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct vrnic_ring *ring = new_ring(test, sizes[i].wanted, 32);

		KUNIT_EXPECT_EQ(test, ring->entries, sizes[i].entries);
		KUNIT_EXPECT_PTR_EQ(test, ring->slots,
				    (void *)ring->hdr + VRNIC_RING_DATA);
		KUNIT_EXPECT_NULL(test, memchr_inv(ring->hdr, 0, VRNIC_RING_DATA +
						   ring->entries * 32));
	}
}

static void ring_slots_wrap(struct kunit *test)
{
	struct vrnic_ring *ring = new_ring(test, ENTRIES, VRNIC_SLOT_SIZE);
	u32 i, n;

	for (n = 0, i = NEAR_WRAP; n < 3 * ENTRIES; n++, i++)
		KUNIT_EXPECT_PTR_EQ(test, vrnic_ring_slot(ring, i),
				    ring->slots + i % ENTRIES * VRNIC_SLOT_SIZE);
}

static void ring_avail_wrap(struct kunit *test)
{
	struct vrnic_ring *ring = used_ring(test, NEAR_WRAP);
	u32 n;

	for (n = 0; n <= ENTRIES; n++) {
		ring->hdr->prod = NEAR_WRAP + n;
		KUNIT_EXPECT_EQ(test, vrnic_ring_avail(ring), n);
	}
	vrnic_ring_consume(ring, ENTRIES);
	KUNIT_EXPECT_EQ(test, vrnic_ring_avail(ring), 0);
	KUNIT_EXPECT_EQ(test, ring->idx, NEAR_WRAP + ENTRIES);
	KUNIT_EXPECT_EQ(test, ring->hdr->cons, NEAR_WRAP + ENTRIES);
}

/* Every producer index that cannot be has to look like one. */
static void ring_avail_wild(struct kunit *test)
{
	static const u32 bases[] = { 0, 5, NEAR_WRAP, 0x80000000 };
	static const u32 wild[] = {
		ENTRIES + 1, ENTRIES + 2, 0x7fffffff, 0x80000000, U32_MAX,
	};
	int b, i;

	for (b = 0; b < ARRAY_SIZE(bases); b++) {
		struct vrnic_ring *ring = used_ring(test, bases[b]);

		for (i = 0; i < ARRAY_SIZE(wild); i++) {
			ring->hdr->prod = bases[b] + wild[i];
			KUNIT_EXPECT_GT(test, vrnic_ring_avail(ring), ENTRIES);
		}
	}
}

/* What the process writes over the kernel's index harms nobody. */
static void ring_cons_overwritten(struct kunit *test)
{
	struct vrnic_ring *ring = used_ring(test, 100);

	ring->hdr->prod = 103;
	ring->hdr->cons = 0xdeadbeef;
	KUNIT_EXPECT_EQ(test, vrnic_ring_avail(ring), 3);
	vrnic_ring_consume(ring, 2);
	KUNIT_EXPECT_EQ(test, ring->hdr->cons, 102);
	KUNIT_EXPECT_EQ(test, vrnic_ring_avail(ring), 1);
}

static void ring_room(struct kunit *test)
{
	static const u32 bases[] = { ENTRIES, 1000, NEAR_WRAP, U32_MAX, 3 };
	u32 unread;
	int b;

	for (b = 0; b < ARRAY_SIZE(bases); b++) {
		struct vrnic_ring *ring = used_ring(test, bases[b]);

		for (unread = 0; unread < ENTRIES; unread++) {
			ring->hdr->cons = bases[b] - unread;
			KUNIT_EXPECT_TRUE(test, vrnic_ring_room(ring));
		}
		ring->hdr->cons = bases[b] - ENTRIES;
		KUNIT_EXPECT_FALSE(test, vrnic_ring_room(ring));
	}
}

static void ring_room_wild(struct kunit *test)
{
	struct vrnic_ring *ring = used_ring(test, NEAR_WRAP);
	static const u32 ahead[] = { 1, 2, ENTRIES, 0x80000000, 0x7fffffff };
	int i;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		ring->hdr->cons = NEAR_WRAP + ahead[i];
		KUNIT_EXPECT_FALSE(test, vrnic_ring_room(ring));
	}
}

/* A stale entry must never look valid: not in the next lap, not across 2^32. */
static void cqe_phase_alternates(struct kunit *test)
{
	u32 entries, i;

	for (entries = 1; entries <= 1U << 20; entries <<= 1) {
		for (i = 0; i != 4 * entries; i += entries) {
			KUNIT_ASSERT_NE(test, vrnic_cqe_phase(i, entries), 0);
			KUNIT_ASSERT_NE(test, vrnic_cqe_phase(i, entries),
					vrnic_cqe_phase(i - entries, entries));
			KUNIT_ASSERT_EQ(test, vrnic_cqe_phase(i, entries),
					vrnic_cqe_phase(i + entries - 1, entries));
		}
		KUNIT_ASSERT_EQ(test, vrnic_cqe_phase(0, entries), 1);
	}
}

/* A consumer that knows nothing but its own index sees each entry once. */
static void cqe_publish_laps(struct kunit *test)
{
	struct vrnic_ring *ring = new_ring(test, ENTRIES, sizeof(struct vrnic_cqe));
	u32 i, base = -2U * ENTRIES;

	ring->idx = base;
	for (i = base; i != 2 * ENTRIES; i++) {
		struct vrnic_cqe *cqe = vrnic_ring_slot(ring, i);

		KUNIT_EXPECT_NE(test, cqe->phase, vrnic_cqe_phase(i, ENTRIES));
		vrnic_cqe_publish(ring, cqe);
		KUNIT_EXPECT_EQ(test, cqe->phase, vrnic_cqe_phase(i, ENTRIES));
		KUNIT_EXPECT_EQ(test, ring->idx, i + 1);
		KUNIT_EXPECT_EQ(test, ring->hdr->prod, i + 1);
	}
}

static void ring_armed(struct kunit *test)
{
	static const struct {
		u32 arm;
		bool solicited, wakes;
		u32 left;
	} cases[] = {
		{ VRNIC_ARM_NONE, false, false, VRNIC_ARM_NONE },
		{ VRNIC_ARM_NONE, true, false, VRNIC_ARM_NONE },
		{ VRNIC_ARM_NEXT, false, true, VRNIC_ARM_NONE },
		{ VRNIC_ARM_NEXT, true, true, VRNIC_ARM_NONE },
		{ VRNIC_ARM_SOLICITED, false, false, VRNIC_ARM_SOLICITED },
		{ VRNIC_ARM_SOLICITED, true, true, VRNIC_ARM_NONE },
		/* nonsense from the process: an event more, to that process */
		{ 0xdeadbeef, false, true, VRNIC_ARM_NONE },
	};
	struct vrnic_ring *ring = used_ring(test, 0);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ring->hdr->arm = cases[i].arm;
		KUNIT_EXPECT_EQ(test, vrnic_ring_armed(ring, cases[i].solicited),
				cases[i].wakes);
		KUNIT_EXPECT_EQ(test, ring->hdr->arm, cases[i].left);
		if (cases[i].wakes)
			KUNIT_EXPECT_FALSE(test, vrnic_ring_armed(ring, true));
	}
}

static void ring_doorbell(struct kunit *test)
{
	struct vrnic_ring *ring = used_ring(test, NEAR_WRAP);

	ring->hdr->flags = VRNIC_RING_ERROR;
	ring->hdr->prod = NEAR_WRAP + 4;
	KUNIT_EXPECT_EQ(test, vrnic_ring_ask_doorbell(ring), 4);
	KUNIT_EXPECT_EQ(test, ring->hdr->flags,
			VRNIC_RING_ERROR | VRNIC_RING_DOORBELL);
	vrnic_ring_spare_doorbell(ring);
	KUNIT_EXPECT_EQ(test, ring->hdr->flags, VRNIC_RING_ERROR);
}

static void ring_reset(struct kunit *test)
{
	struct vrnic_ring *ring = used_ring(test, NEAR_WRAP);
	struct vrnic_ring none = {};

	ring->hdr->prod = 12345;
	vrnic_ring_reset(ring);
	KUNIT_EXPECT_EQ(test, vrnic_ring_avail(ring), 0);
	KUNIT_EXPECT_EQ(test, ring->hdr->cons, 0);
	vrnic_ring_reset(&none);
	vrnic_ring_free(&none);
	KUNIT_EXPECT_NULL(test, none.hdr);
}

/* Counted out by hand from the layout in the ABI. */
static void desc_slots(struct kunit *test)
{
	static const struct { u32 num_sge, inline_len, slots; } cases[] = {
		{ 0, 0, 1 }, { 1, 0, 1 }, { 2, 0, 1 }, { 3, 0, 2 }, { 6, 0, 2 },
		{ 7, 0, 3 }, { 10, 0, 3 }, { 11, 0, 4 }, { 30, 0, 8 },
		{ 31, 0, 9 }, { 32, 0, 9 },
		{ 0, 1, 1 }, { 0, 32, 1 }, { 0, 33, 2 }, { 0, 96, 2 },
		{ 0, 97, 3 }, { 0, 160, 3 }, { 0, 928, 15 }, { 0, 929, 16 },
		{ 0, VRNIC_MAX_INLINE, VRNIC_MAX_SLOTS },
		{ 0, VRNIC_MAX_INLINE + 1, VRNIC_MAX_SLOTS + 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, vrnic_desc_slots(cases[i].num_sge,
						       cases[i].inline_len),
				cases[i].slots);
}

/* How far the owner may fall behind; some room is left for it to go on. */
static void ring_gathers(struct kunit *test)
{
	static const struct { u32 entries, ahead, slots; } cases[] = {
		{ 1, 0, 0 }, { 1, 1, 1 }, { 2, 0, 1 }, { 8, 0, 4 }, { 8, 2, 6 }, { 8, 8, 6 },
		{ 128, 0, 32 }, { 128, 60, 92 }, { 128, 128, 96 },
	};
	struct vrnic_ring *ring;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ring = new_ring(test, cases[i].entries, VRNIC_SLOT_SIZE);
		vrnic_ring_gather_behind(ring, cases[i].ahead);
		KUNIT_EXPECT_EQ(test, ring->hdr->gather, cases[i].slots);
		vrnic_ring_gather(ring, false);
		KUNIT_EXPECT_EQ(test, ring->hdr->gather, 0);
	}
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(ring_sizes),
	KUNIT_CASE(ring_slots_wrap),
	KUNIT_CASE(ring_avail_wrap),
	KUNIT_CASE(ring_avail_wild),
	KUNIT_CASE(ring_cons_overwritten),
	KUNIT_CASE(ring_room),
	KUNIT_CASE(ring_room_wild),
	KUNIT_CASE(cqe_phase_alternates),
	KUNIT_CASE(cqe_publish_laps),
	KUNIT_CASE(ring_armed),
	KUNIT_CASE(ring_doorbell),
	KUNIT_CASE(ring_gathers),
	KUNIT_CASE(ring_reset),
	KUNIT_CASE(desc_slots),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "vrnic_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
