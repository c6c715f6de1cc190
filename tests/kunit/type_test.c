// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Types and typed transfers (S3): every mode in both directions, in bursts of
 * any length, between pages in any order, against a model that copies byte by
 * byte.
 */

#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "base/stats.h"
#include "lib/ids.h"
#include "lib/type_rows.h"
#include "mem/mem.h"
#include "mem/seg.h"
#include "native/type.h"
#include "vrnic.h"

#define ROUNDS		200
#define STORE_PAGES	16
#define STORE_BYTES	(STORE_PAGES * PAGE_SIZE)
#define ROOM		(STORE_BYTES - PAGE_SIZE)	/* of it is for a type */
#define MAX_ROWS	24

/* struct store - one side's memory: pages in some order, as a region has them */
struct store {
	u8 *base;
	void *pages[STORE_PAGES];
	u32 off;
	struct vrnic_mr mr;
};

/* struct bed - what a test works on */
struct bed {
	struct rnd_state rnd;
	struct vrnic_dev *dev;
	u64 owner;
	struct store store[VRNIC_SIDES];
	struct vrnic_type *type[VRNIC_SIDES];
	struct vrnic_type_row given[VRNIC_SIDES][MAX_ROWS];
	u32 nr[VRNIC_SIDES];
	u8 *flat;
	u8 *model;
};

static u32 below(struct bed *b, u32 n)
{
	return prandom_u32_state(&b->rnd) % n;
}

static void free_store(void *base)
{
	free_pages_exact(base, STORE_BYTES);
}

static void ids_exit(void *dev)
{
	vrnic_ids_exit(&((struct vrnic_dev *)dev)->types);
}

static void free_stats(void *stats)
{
	free_percpu((void __percpu *)stats);
}

static int dev_init(struct kunit *test, struct bed *b)
{
	int err;

	b->dev = kunit_kzalloc(test, sizeof(*b->dev), GFP_KERNEL);
	if (!b->dev)
		return -ENOMEM;
	b->dev->stats = alloc_percpu(struct vrnic_stats);
	if (!b->dev->stats)
		return -ENOMEM;
	err = kunit_add_action_or_reset(test, free_stats,
					(__force void *)b->dev->stats);
	if (err)
		return err;
	err = vrnic_ids_init(&b->dev->types);
	return err ?: kunit_add_action_or_reset(test, ids_exit, b->dev);
}

static int store_init(struct kunit *test, struct store *s)
{
	u32 i;

	s->base = alloc_pages_exact(STORE_BYTES, GFP_KERNEL);
	if (!s->base)
		return -ENOMEM;
	for (i = 0; i < STORE_PAGES; i++)
		s->pages[i] = s->base + i * PAGE_SIZE;
	s->mr.pages = s->pages;
	s->mr.nr_pages = STORE_PAGES;
	return kunit_add_action_or_reset(test, free_store, s->base);
}

static int type_init(struct kunit *test)
{
	struct bed *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	int err;

	if (!b)
		return -ENOMEM;
	test->priv = b;
	b->owner = 1;
	prandom_seed_state(&b->rnd, 20260102);
	b->flat = kunit_kzalloc(test, STORE_BYTES, GFP_KERNEL);
	b->model = kunit_kzalloc(test, STORE_BYTES, GFP_KERNEL);
	if (!b->flat || !b->model)
		return -ENOMEM;
	err = dev_init(test, b) ?: store_init(test, &b->store[0]);
	return err ?: store_init(test, &b->store[1]);
}

static struct vrnic_type *make(struct bed *b, const struct vrnic_type_row *rows,
			       u32 nr)
{
	struct vrnic_type_row *row = kvmalloc_array(nr, sizeof(*row), GFP_KERNEL);

	if (!row)
		return ERR_PTR(-ENOMEM);
	memcpy(row, rows, nr * sizeof(*row));
	return vrnic_type_create(b->dev, b->owner, row, nr);
}

static void set_type(struct kunit *test, enum vrnic_side side,
		     const struct vrnic_type_row *rows, u32 nr)
{
	struct bed *b = test->priv;

	memcpy(b->given[side], rows, nr * sizeof(*rows));
	b->nr[side] = nr;
	b->type[side] = make(b, rows, nr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(b->type[side]));
}

static void drop_types(struct bed *b)
{
	vrnic_type_destroy(b->type[0]);
	vrnic_type_destroy(b->type[1]);
}

static struct vrnic_type *get(struct bed *b, enum vrnic_side side)
{
	return vrnic_type_get(b->dev, b->owner, b->type[side]->number);
}

/*
 * Rows of @bytes together, anywhere in the room, overlapping or not, up or down;
 * offsets count from a base in the middle of it.
 */
static u32 random_rows(struct bed *b, struct vrnic_type_row *row, u64 bytes)
{
	static const u8 usual[] = { 1, 2, 4, 8, 8, 8, 12, 16, 24, 64, 100, 250 };
	s64 span, at, stride;
	u64 max;
	u32 i;

	for (i = 0; bytes; i++) {
		row[i].bytes = below(b, 8) ? usual[below(b, ARRAY_SIZE(usual))] :
					     1 + below(b, 6000);
		if (row[i].bytes > bytes || i == MAX_ROWS - 1)
			row[i].bytes = bytes;
		max = min(div64_u64(bytes, row[i].bytes), 500ULL);
		row[i].count = i == MAX_ROWS - 1 ? 1 : 1 + below(b, max);
		stride = below(b, 3) ? row[i].bytes + below(b, 100) : below(b, 5000);
		if (row[i].count > 1)
			stride = min_t(s64, stride, div64_u64(ROOM - row[i].bytes,
							      row[i].count - 1));
		span = (row[i].count - 1) * stride + row[i].bytes;
		at = below(b, ROOM - span + 1);
		row[i].stride = stride;
		if (!below(b, 4)) {
			row[i].stride = -stride;
			at += (row[i].count - 1) * stride;
		}
		row[i].offset = at - ROOM / 2;
		bytes -= row[i].bytes * row[i].count;
	}
	return i;
}

static void random_types(struct kunit *test)
{
	struct bed *b = test->priv;
	u64 bytes = 1 + below(b, below(b, 3) ? 3000 : ROOM / 2);
	struct vrnic_type_row rows[MAX_ROWS];
	u32 nr;

	nr = random_rows(b, rows, bytes);
	set_type(test, VRNIC_SIDE_LOCAL, rows, nr);
	if (below(b, 8))
		nr = random_rows(b, rows, bytes);
	set_type(test, VRNIC_SIDE_REMOTE, rows, nr);
}

static void shuffle(struct bed *b, struct store *s)
{
	u32 i, x, y;

	for (i = below(b, 2) ? below(b, 40) : 0; i; i--) {
		x = below(b, STORE_PAGES);
		y = below(b, STORE_PAGES);
		swap(s->pages[x], s->pages[y]);
	}
	s->off = below(b, PAGE_SIZE);
	if (below(b, 2))
		s->off &= ~15;
}

/* The base that a type's offsets count from, as an offset in the store. */
static u64 base_of(const struct store *s)
{
	return s->off + ROOM / 2;
}

static u8 *store_byte(const struct store *s, u64 at)
{
	return (u8 *)s->pages[at / PAGE_SIZE] + at % PAGE_SIZE;
}

/* The storage of a type, as the engine opens it. */
static struct vrnic_seg open_store(struct bed *b, enum vrnic_side side)
{
	struct vrnic_type *type = b->type[side];
	struct store *s = &b->store[side];

	return (struct vrnic_seg){
		.mr = &s->mr,
		.off = base_of(s) + vrnic_type_lower(type),
		.len = vrnic_type_span(type),
	};
}

/* The model: where byte @i of the data lies, by its row, chunk and offset. */
struct place {
	u32 row;
	u64 chunk;
	u64 byte;
};

static u64 place_next(const struct vrnic_type_row *row, struct place *p)
{
	u64 at = row[p->row].offset + p->chunk * row[p->row].stride + p->byte;

	if (++p->byte == row[p->row].bytes) {
		p->byte = 0;
		if (++p->chunk == row[p->row].count) {
			p->chunk = 0;
			p->row++;
		}
	}
	return at;
}

/* What the target's store has to hold afterwards, page after page. */
static void model_copy(struct bed *b, enum vrnic_side dst, u64 bytes)
{
	struct place to = {}, from = {};
	u64 i, t, f;

	for (i = 0; i < STORE_BYTES; i++)
		b->model[i] = *store_byte(&b->store[dst], i);
	for (i = 0; i < bytes; i++) {
		t = base_of(&b->store[dst]) + place_next(b->given[dst], &to);
		f = base_of(&b->store[!dst]) + place_next(b->given[!dst], &from);
		b->model[t] = *store_byte(&b->store[!dst], f);
	}
}

static void flatten(struct bed *b, enum vrnic_side side)
{
	u64 i;

	for (i = 0; i < STORE_BYTES; i++)
		b->flat[i] = *store_byte(&b->store[side], i);
}

static void fill(struct bed *b)
{
	prandom_bytes_state(&b->rnd, b->store[0].base, STORE_BYTES);
	prandom_bytes_state(&b->rnd, b->store[1].base, STORE_BYTES);
	shuffle(b, &b->store[0]);
	shuffle(b, &b->store[1]);
}

/* In bursts, each with segments of its own, as a flow does it. */
static void copy_in_bursts(struct kunit *test, struct vrnic_typed *t,
			   enum vrnic_side dst)
{
	struct bed *b = test->priv;
	u64 n, left = t->left;

	while (left) {
		struct vrnic_seg to = open_store(b, dst);
		struct vrnic_seg from = open_store(b, !dst);

		n = below(b, 3) ? U64_MAX : below(b, left + 1);
		KUNIT_ASSERT_EQ(test, min(n, left),
				vrnic_typed_copy(t, &to, &from,
						 dst == VRNIC_SIDE_REMOTE, n));
		left -= min(n, left);
		KUNIT_ASSERT_EQ(test, left, t->left);
	}
}

static u32 transfer(struct kunit *test, u32 mode, enum vrnic_side dst)
{
	struct bed *b = test->priv;
	struct vrnic_typed *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u64 bytes = vrnic_type_bytes(b->type[dst]);
	u32 done_as;

	KUNIT_ASSERT_NOT_NULL(test, t);
	fill(b);
	model_copy(b, dst, bytes);
	KUNIT_ASSERT_EQ(test, 0, vrnic_typed_begin(t, get(b, 0), get(b, 1), mode));
	done_as = t->mode;
	copy_in_bursts(test, t, dst);
	vrnic_typed_end(t);
	kunit_kfree(test, t);
	flatten(b, dst);
	KUNIT_ASSERT_EQ_MSG(test, memcmp(b->model, b->flat, STORE_BYTES), 0,
			    "mode %u, %llu bytes in %u and %u rows", mode, bytes,
			    b->nr[0], b->nr[1]);
	return done_as;
}

/* Equal types, where that is asked for, also begin at the same place. */
static bool equal_types(struct bed *b)
{
	return vrnic_type_lower(b->type[0]) == vrnic_type_lower(b->type[1]) &&
	       vrnic_rows_equal(&b->type[0]->rows, &b->type[1]->rows);
}

static void random_transfers(struct kunit *test)
{
	static const u32 modes[] = { VRNIC_TYPED_AUTO, VRNIC_TYPED_CHUNKS,
				     VRNIC_TYPED_PACKED };
	struct bed *b = test->priv;
	u32 i, round, same = 0;

	for (round = 0; round < ROUNDS; round++) {
		random_types(test);
		for (i = 0; i < ARRAY_SIZE(modes); i++)
			transfer(test, modes[i], below(b, 2));
		if (equal_types(b)) {
			transfer(test, VRNIC_TYPED_SAME, below(b, 2));
			same++;
		}
		drop_types(b);
	}
	KUNIT_EXPECT_GT(test, same, ROUNDS / 20);
}

#define ROW(_offset, _bytes, _count, _stride)				\
	((struct vrnic_type_row){ .offset = _offset, .bytes = _bytes,	\
				  .count = _count, .stride = _stride })
#define SET(test, side, ...) do {					\
	struct vrnic_type_row __rows[] = { __VA_ARGS__ };		\
									\
	set_type(test, side, __rows, ARRAY_SIZE(__rows));		\
} while (0)

/* S3.6: tables 2 and 4 of the text */
static void s3_6_worked_example(struct kunit *test)
{
	static const u8 origin[] = { 1, 2, 5, 7 }, target[] = { 0, 3, 5, 6 };
	struct bed *b = test->priv;
	struct vrnic_pair *pair;
	u32 i, n = 0;
	u64 c;

	SET(test, VRNIC_SIDE_LOCAL, ROW(1, 2, 1, 0), ROW(5, 1, 1, 0),
	    ROW(7, 1, 1, 0));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 1, 1, 0), ROW(3, 1, 1, 0),
	    ROW(5, 2, 1, 0));
	pair = vrnic_pair_get(b->type[0], b->type[1]);
	KUNIT_ASSERT_NOT_NULL(test, pair);
	for (i = 0; i < pair->nr; i++) {
		KUNIT_EXPECT_EQ(test, pair->row[i].bytes, 1);
		for (c = 0; c < pair->row[i].count; c++, n++) {
			KUNIT_ASSERT_LT(test, n, 4);
			KUNIT_EXPECT_EQ(test, origin[n], 1 + pair->row[i].side[0].offset +
					c * pair->row[i].side[0].stride);
			KUNIT_EXPECT_EQ(test, target[n], pair->row[i].side[1].offset +
					c * pair->row[i].side[1].stride);
		}
	}
	KUNIT_EXPECT_EQ(test, n, 4);
	vrnic_pair_put(pair);
	KUNIT_EXPECT_EQ(test, transfer(test, VRNIC_TYPED_AUTO, VRNIC_SIDE_REMOTE),
			VRNIC_TYPED_CHUNKS);
	drop_types(b);
}

/* Of what overlaps in the target the last counts, in every mode. */
static void last_of_overlapping_chunks(struct kunit *test)
{
	struct bed *b = test->priv;
	u32 mode;

	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 8, 100, 16));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 10, 60, 3), ROW(500, 8, 25, 0));
	for (mode = VRNIC_TYPED_AUTO; mode <= VRNIC_TYPED_CHUNKS; mode++)
		if (mode != VRNIC_TYPED_SAME)
			transfer(test, mode, VRNIC_SIDE_REMOTE);
	drop_types(b);
}

/* Too many rows: packed, unless that is ruled out; still right. */
static void explosion(struct kunit *test)
{
	struct bed *b = test->priv;
	struct vrnic_typed *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 12, 1 << 20, 20));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 8, 3 << 19, 20));
	KUNIT_ASSERT_EQ(test, 0, vrnic_typed_begin(t, get(b, 0), get(b, 1),
						   VRNIC_TYPED_AUTO));
	KUNIT_EXPECT_EQ(test, t->mode, VRNIC_TYPED_PACKED);
	vrnic_typed_end(t);
	KUNIT_ASSERT_EQ(test, 0, vrnic_typed_begin(t, get(b, 0), get(b, 1),
						   VRNIC_TYPED_CHUNKS));
	KUNIT_EXPECT_EQ(test, t->mode, VRNIC_TYPED_CHUNKS);
	KUNIT_EXPECT_NULL(test, t->pair);
	vrnic_typed_end(t);
	drop_types(b);
}

/* Types that cut each other to bits: packed, though there is a table. */
static void shreds(struct kunit *test)
{
	struct bed *b = test->priv;

	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 12, 1000, 20));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 8, 1500, 20));
	KUNIT_EXPECT_EQ(test, transfer(test, VRNIC_TYPED_AUTO, VRNIC_SIDE_REMOTE),
			VRNIC_TYPED_PACKED);
	KUNIT_EXPECT_EQ(test, transfer(test, VRNIC_TYPED_CHUNKS, VRNIC_SIDE_LOCAL),
			VRNIC_TYPED_CHUNKS);
	drop_types(b);
}

/* Columns of a matrix: chunks that are far apart, of the sizes that matter. */
static void far_chunks(struct kunit *test)
{
	static const s64 strides[] = { 528, 1024, -2048, 4096, 3000, -4080 };
	struct bed *b = test->priv;
	u32 i, round;
	u64 bytes;

	for (bytes = 1; bytes <= 32; bytes *= 2) {
		for (i = 0; i < ARRAY_SIZE(strides); i++) {
			SET(test, VRNIC_SIDE_LOCAL, ROW(0, bytes, 7, strides[i]));
			SET(test, VRNIC_SIDE_REMOTE,
			    ROW(64, bytes, 7, strides[(i * 5 + 1) % 6]));
			for (round = 0; round < 4; round++)
				transfer(test, VRNIC_TYPED_AUTO, round & 1);
			drop_types(b);
		}
	}
}

static void begin_refuses(struct kunit *test)
{
	struct bed *b = test->priv;
	struct vrnic_typed *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 8, 4, 16));
	SET(test, VRNIC_SIDE_REMOTE, ROW(1, 8, 4, 16));
	KUNIT_EXPECT_EQ(test, -EINVAL, vrnic_typed_begin(t, get(b, 0), get(b, 1), 4));
	KUNIT_EXPECT_EQ(test, -EINVAL, vrnic_typed_begin(t, get(b, 0), get(b, 1),
							 VRNIC_TYPED_SAME));
	KUNIT_EXPECT_EQ(test, 0, vrnic_typed_begin(t, get(b, 0), get(b, 0),
						   VRNIC_TYPED_SAME));
	vrnic_typed_end(t);
	drop_types(b);
	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 8, 4, 16));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 8, 5, 16));
	KUNIT_EXPECT_EQ(test, -EINVAL, vrnic_typed_begin(t, get(b, 0), get(b, 1),
							 VRNIC_TYPED_AUTO));
	drop_types(b);
}

/* A type is found by its own context only, and not once it is destroyed. */
static void found_by_its_owner(struct kunit *test)
{
	struct bed *b = test->priv;
	u64 other = b->owner + 1;
	struct vrnic_type *held;
	u32 number;

	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 8, 4, 16));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 8, 4, 16));
	number = b->type[0]->number;
	KUNIT_EXPECT_NE(test, number, 0);
	KUNIT_EXPECT_NULL(test, vrnic_type_get(b->dev, other, number));
	KUNIT_EXPECT_NULL(test, vrnic_type_get(b->dev, b->owner, 0));
	held = get(b, 0);
	KUNIT_ASSERT_PTR_EQ(test, held, b->type[0]);
	drop_types(b);
	KUNIT_EXPECT_NULL(test, vrnic_type_get(b->dev, b->owner, number));
	/* what is under way keeps it */
	KUNIT_EXPECT_EQ(test, vrnic_type_bytes(held), 32);
	vrnic_type_put(held);
}

/* Tables are kept, are not too many, and go with either type. */
static void tables_are_kept(struct kunit *test)
{
	struct bed *b = test->priv;
	struct vrnic_pair *first, *again;
	struct vrnic_type *others[12];
	u32 i;

	SET(test, VRNIC_SIDE_LOCAL, ROW(0, 8, 4, 16));
	SET(test, VRNIC_SIDE_REMOTE, ROW(0, 4, 8, 16));
	first = vrnic_pair_get(b->type[0], b->type[1]);
	again = vrnic_pair_get(b->type[0], b->type[1]);
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_PTR_EQ(test, first, again);
	vrnic_pair_put(again);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = make(b, &ROW(0, 1, 32, 2 + i), 1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(others[i]));
		vrnic_pair_put(vrnic_pair_get(b->type[0], others[i]));
		KUNIT_EXPECT_LE(test, b->type[0]->nr_pairs, 8);
	}
	KUNIT_EXPECT_EQ(test, b->type[0]->nr_pairs, 8);
	/* the first table was pushed out, but a holder of a reference may use it */
	KUNIT_EXPECT_EQ(test, first->row[0].bytes, 4);
	again = vrnic_pair_get(b->type[0], b->type[1]);
	KUNIT_EXPECT_PTR_NE(test, first, again);
	vrnic_pair_put(first);
	vrnic_pair_put(again);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		vrnic_type_destroy(others[i]);
	KUNIT_EXPECT_EQ(test, b->type[0]->nr_pairs, 1);
	vrnic_type_destroy(b->type[1]);
	KUNIT_EXPECT_EQ(test, b->type[0]->nr_pairs, 0);
	vrnic_type_destroy(b->type[0]);
}

static struct kunit_case type_cases[] = {
	KUNIT_CASE(s3_6_worked_example),
	KUNIT_CASE(last_of_overlapping_chunks),
	KUNIT_CASE(explosion),
	KUNIT_CASE(shreds),
	KUNIT_CASE(far_chunks),
	KUNIT_CASE(begin_refuses),
	KUNIT_CASE(found_by_its_owner),
	KUNIT_CASE(tables_are_kept),
	KUNIT_CASE(random_transfers),
	{}
};

static struct kunit_suite type_suite = {
	.name = "vrnic_type",
	.init = type_init,
	.test_cases = type_cases,
};

kunit_test_suite(type_suite);
