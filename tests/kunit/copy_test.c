// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs of pages, positions in lists of segments, and the copy, against models. */

#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/prandom.h>

#include "mem/mem.h"
#include "mem/seg.h"

#define ORDER		4
#define ARENA_PAGES	BIT(ORDER)
#define ARENA_BYTES	(ARENA_PAGES * PAGE_SIZE)
#define ROUNDS		3000
#define MAX_SEGS	8

/**
 * struct arena - memory that lists of segments are made of
 * @base: contiguous pages
 * @perm: their order in the page lists
 * @used: pages that are part of a segment
 * @mr: one for each segment
 * @pages: their page lists
 * @sgl: the list
 * @seg: its segments
 * @bytes: in @sgl
 */
struct arena {
	u8 *base;
	u8 perm[ARENA_PAGES];
	unsigned int used;
	struct vrnic_mr mr[MAX_SEGS];
	void *pages[MAX_SEGS][ARENA_PAGES];
	struct vrnic_sgl sgl;
	struct vrnic_seg seg[MAX_SEGS];
	u64 bytes;
};

/* struct bench - two of them, and what the copy should have made */
struct bench {
	struct rnd_state rnd;
	struct arena src;
	struct arena dst;
	u8 *flat_src;
	u8 *flat_dst;
};

static void free_arena(void *base)
{
	free_pages((unsigned long)base, ORDER);
}

static int arena_init(struct kunit *test, struct arena *a)
{
	a->base = (u8 *)__get_free_pages(GFP_KERNEL, ORDER);
	if (!a->base)
		return -ENOMEM;
	return kunit_add_action_or_reset(test, free_arena, a->base);
}

static int copy_init(struct kunit *test)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	if (!b)
		return -ENOMEM;
	test->priv = b;
	b->src.sgl.seg = b->src.seg;
	b->dst.sgl.seg = b->dst.seg;
	prandom_seed_state(&b->rnd, 20260101);
	b->flat_src = kunit_kzalloc(test, ARENA_BYTES, GFP_KERNEL);
	b->flat_dst = kunit_kzalloc(test, ARENA_BYTES, GFP_KERNEL);
	if (!b->flat_src || !b->flat_dst)
		return -ENOMEM;
	return arena_init(test, &b->src) ?: arena_init(test, &b->dst);
}

static u32 below(struct bench *b, u32 n)
{
	return prandom_u32_state(&b->rnd) % n;
}

/* Mostly in order, so that there are runs of several pages. */
static void shuffle(struct bench *b, struct arena *a)
{
	u32 i, x, y;

	for (i = 0; i < ARENA_PAGES; i++)
		a->perm[i] = i;
	for (i = below(b, 6); i; i--) {
		x = below(b, ARENA_PAGES);
		y = below(b, ARENA_PAGES);
		swap(a->perm[x], a->perm[y]);
	}
}

static u64 random_length(struct bench *b, u64 room)
{
	switch (below(b, 4)) {
	case 0:
		return 0;
	case 1:
		return below(b, min_t(u64, room, 17) + 1);
	default:
		return below(b, room + 1);
	}
}

/* A segment of @n pages; of one page it may be a plain address. */
static struct vrnic_seg random_seg(struct bench *b, struct arena *a, u32 i, u32 n)
{
	u32 off = below(b, PAGE_SIZE);
	u32 p;

	for (p = 0; p < n; p++)
		a->pages[i][p] = a->base + a->perm[a->used + p] * PAGE_SIZE;
	a->used += n;
	if (n == 1 && below(b, 2))
		return (struct vrnic_seg){
			.kva = a->pages[i][0] + off,
			.len = random_length(b, PAGE_SIZE - off),
		};
	a->mr[i].pages = a->pages[i];
	a->mr[i].nr_pages = n;
	return (struct vrnic_seg){
		.mr = &a->mr[i],
		.off = off,
		.len = random_length(b, n * PAGE_SIZE - off),
	};
}

static void random_list(struct bench *b, struct arena *a)
{
	u32 i, n, nr = 1 + below(b, MAX_SEGS);

	shuffle(b, a);
	a->used = 0;
	a->bytes = 0;
	memset(a->seg, 0, sizeof(a->seg));
	a->sgl = (struct vrnic_sgl){ .seg = a->seg };
	for (i = 0; i < nr && a->used < ARENA_PAGES; i++) {
		n = 1 + below(b, min(3U, ARENA_PAGES - a->used));
		a->sgl.seg[i] = random_seg(b, a, i, n);
		a->bytes += a->sgl.seg[i].len;
	}
	a->sgl.nr = i;
}

/* The model: where byte @i of a segment is, one at a time. */
static u8 *seg_byte(const struct vrnic_seg *seg, u64 i)
{
	if (seg->kva)
		return seg->kva + i;
	return seg->mr->pages[(seg->off + i) / PAGE_SIZE] +
	       (seg->off + i) % PAGE_SIZE;
}

static void flatten(const struct vrnic_sgl *sgl, u8 *flat)
{
	unsigned int s;
	u64 i;

	for (s = 0; s < sgl->nr; s++)
		for (i = 0; i < sgl->seg[s].len; i++)
			*flat++ = *seg_byte(&sgl->seg[s], i);
}

static void rewind_list(struct vrnic_sgl *sgl)
{
	sgl->cur = 0;
	sgl->pos = 0;
}

/* In bursts, as a flow does it: open anew, skip what is done, copy some more. */
static void copy_in_bursts(struct bench *b, u64 total)
{
	u64 n, done = 0;

	while (done < total) {
		n = below(b, 3) ? total - done : 1 + below(b, total - done);
		rewind_list(&b->dst.sgl);
		rewind_list(&b->src.sgl);
		vrnic_sgl_skip(&b->dst.sgl, done);
		vrnic_sgl_skip(&b->src.sgl, done);
		vrnic_sgl_copy(&b->dst.sgl, &b->src.sgl, n, done + n == total);
		done += n;
	}
}

static void random_copies(struct kunit *test)
{
	struct bench *b = test->priv;
	u64 total, moved = 0;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		random_list(b, &b->src);
		random_list(b, &b->dst);
		prandom_bytes_state(&b->rnd, b->src.base, ARENA_BYTES);
		memset(b->dst.base, round, ARENA_BYTES);
		total = min(b->src.bytes, b->dst.bytes);
		total = total ? 1 + below(b, total) : 0;
		flatten(&b->src.sgl, b->flat_src);
		copy_in_bursts(b, total);
		flatten(&b->dst.sgl, b->flat_dst);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(b->flat_src, b->flat_dst, total), 0,
				    "round %d, %llu bytes", round, total);
		KUNIT_ASSERT_NULL(test, memchr_inv(b->flat_dst + total, round & 0xff,
						   b->dst.bytes - total));
		moved += total;
	}
	/* the lists are such that something happens */
	KUNIT_EXPECT_GT(test, moved, (u64)ROUNDS * 256);
}

/* Not a byte of the arena outside of the list changes. */
static void copies_stay_inside(struct kunit *test)
{
	struct bench *b = test->priv;
	u64 total, i;
	int round, s;

	for (round = 0; round < ROUNDS / 10; round++) {
		random_list(b, &b->src);
		random_list(b, &b->dst);
		memset(b->src.base, 0x5a, ARENA_BYTES);
		memset(b->dst.base, 0xa5, ARENA_BYTES);
		total = min(b->src.bytes, b->dst.bytes);
		copy_in_bursts(b, total);
		for (s = 0; s < b->dst.sgl.nr; s++)
			for (i = 0; i < b->dst.sgl.seg[s].len && total; i++, total--)
				*seg_byte(&b->dst.sgl.seg[s], i) = 0xa5;
		KUNIT_ASSERT_NULL(test, memchr_inv(b->dst.base, 0xa5, ARENA_BYTES));
	}
}

/* Every position that skipping reaches is the one that counting reaches. */
static void skip_agrees_with_counting(struct kunit *test)
{
	struct bench *b = test->priv;
	u64 n, len;
	u8 *at;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		random_list(b, &b->src);
		if (!b->src.bytes)
			continue;
		prandom_bytes_state(&b->rnd, b->src.base, ARENA_BYTES);
		flatten(&b->src.sgl, b->flat_src);
		n = below(b, b->src.bytes);
		vrnic_sgl_skip(&b->src.sgl, n / 3);
		vrnic_sgl_skip(&b->src.sgl, n - n / 3);
		at = vrnic_sgl_run(&b->src.sgl, b->src.bytes - n, &len);
		KUNIT_ASSERT_EQ(test, *at, b->flat_src[n]);
		KUNIT_ASSERT_GT(test, len, 0);
		KUNIT_ASSERT_LE(test, len, b->src.bytes - n);
	}
}

/* How far memory goes on from byte @pos without a jump. */
static u64 count_run(const struct vrnic_seg *seg, u64 pos, u64 want)
{
	u64 n = 1;

	while (n < want && seg_byte(seg, pos + n) == seg_byte(seg, pos) + n)
		n++;
	return n;
}

static void expect_run(struct kunit *test, const struct vrnic_seg *seg, u64 pos,
		       u64 want)
{
	u64 len = 0;
	void *at = vrnic_seg_run(seg, pos, want, &len);

	KUNIT_EXPECT_PTR_EQ(test, at, (void *)seg_byte(seg, pos));
	KUNIT_EXPECT_EQ(test, len, count_run(seg, pos, want));
}

/* The list of pages is as long as it has to be: KASAN sees a read behind it. */
static void runs_of_pages(struct kunit *test)
{
	static const u8 order[] = { 0, 1, 2, 5, 4, 6, 7, 7, 8, 3 };
	static const u32 around[] = { 0, 1, 7, PAGE_SIZE - 1 };
	struct bench *b = test->priv;
	void **pages = kunit_kcalloc(test, ARRAY_SIZE(order), sizeof(*pages),
				     GFP_KERNEL);
	struct vrnic_mr mr = { .pages = pages };
	struct vrnic_seg seg = { .mr = &mr };
	u32 i, p, w;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		pages[i] = b->src.base + order[i] * PAGE_SIZE;
	for (i = 0; i < ARRAY_SIZE(around); i++) {
		seg.off = around[i];
		seg.len = ARRAY_SIZE(order) * PAGE_SIZE - seg.off;
		for (p = 0; p < ARRAY_SIZE(order); p++) {
			u64 pos = p * PAGE_SIZE + around[(i + p) % 4] - seg.off;

			if (pos >= seg.len)
				continue;
			expect_run(test, &seg, pos, seg.len - pos);
			for (w = 0; w < ARRAY_SIZE(around); w++)
				expect_run(test, &seg, pos,
					   min(seg.len - pos, 1ULL + around[w]));
		}
	}
}

static void run_of_plain_memory(struct kunit *test)
{
	struct bench *b = test->priv;
	struct vrnic_seg seg = { .kva = b->src.base + 3, .len = 10000 };
	u64 len;

	KUNIT_EXPECT_PTR_EQ(test, vrnic_seg_run(&seg, 77, 9000, &len),
			    (void *)b->src.base + 80);
	KUNIT_EXPECT_EQ(test, len, 9000);
}

#define RUN_PAGES	(ARENA_PAGES / 2)

/*
 * Makes a late look visible: the list of the source's pages, which are one run, lies in
 * the target's first page, and the copy writes a list of other pages there. Code that
 * looks at the list again afterwards copies from the other pages.
 */
static void hide_list(struct bench *b, struct vrnic_mr *dst, struct vrnic_mr *src)
{
	void **other = (void **)b->src.base;
	u32 i;

	memset(b->src.base, 0x11, RUN_PAGES * PAGE_SIZE);
	memset(b->src.base + RUN_PAGES * PAGE_SIZE, 0x22, RUN_PAGES * PAGE_SIZE);
	src->pages = (void **)b->dst.base;
	for (i = 0; i < RUN_PAGES; i++) {
		src->pages[i] = b->src.base + i * PAGE_SIZE;
		other[i] = b->src.base + (RUN_PAGES + i) * PAGE_SIZE;
		/* no two of these are neighbours */
		dst->pages[i] = b->dst.base + 2 * i * PAGE_SIZE;
	}
}

static void expect_run_copied(struct kunit *test, const struct vrnic_mr *dst)
{
	u32 i;

	for (i = 1; i < RUN_PAGES; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(dst->pages[i], 0x11, PAGE_SIZE));
}

static void a_run_is_looked_for_once(struct kunit *test)
{
	struct bench *b = test->priv;
	u64 n = RUN_PAGES * PAGE_SIZE;
	struct vrnic_mr dst = { .pages = b->dst.pages[0] }, src = {};
	struct vrnic_seg to = { .mr = &dst, .len = n }, from = { .mr = &src, .len = n };

	hide_list(b, &dst, &src);
	vrnic_seg_copy(&to, 0, &from, 0, n, true);
	expect_run_copied(test, &dst);

	hide_list(b, &dst, &src);
	b->dst.sgl = (struct vrnic_sgl){ .nr = 1, .seg = &to };
	b->src.sgl = (struct vrnic_sgl){ .nr = 1, .seg = &from };
	vrnic_sgl_copy(&b->dst.sgl, &b->src.sgl, n, true);
	expect_run_copied(test, &dst);
}

/* The largest unit that a message of @n bytes to @dst ends with. */
static size_t last_unit(const u8 *dst, size_t n)
{
	size_t unit = 8;

	while (unit > n || (uintptr_t)(dst + n) % unit)
		unit /= 2;
	return unit;
}

static void copy_plain(struct bench *b, u8 *dst, u8 *src, size_t n)
{
	vrnic_sgl_kva(&b->dst.sgl, dst, n);
	vrnic_sgl_kva(&b->src.sgl, src, n);
	vrnic_sgl_copy(&b->dst.sgl, &b->src.sgl, n, true);
}

/*
 * Order made visible without a second CPU: source and target overlap so that
 * the head of the message, once it is stored, replaces what the last unit is
 * loaded from. If the last unit were moved with the rest, or before it, other
 * bytes would arrive.
 */
static void expect_last(struct kunit *test, size_t start, size_t n, size_t unit)
{
	struct bench *b = test->priv;
	u8 *src = b->src.base + start, *dst = src + n - unit;
	u8 model[256];

	prandom_bytes_state(&b->rnd, b->src.base, sizeof(model));
	memcpy(model, b->src.base, sizeof(model));
	memmove(model + start + n - unit, model + start, n - unit);
	memmove(model + start + 2 * (n - unit), model + start + n - unit, unit);
	copy_plain(b, dst, src, n);
	KUNIT_ASSERT_EQ_MSG(test, memcmp(model, b->src.base, sizeof(model)), 0,
			    "%zu bytes, last unit %zu", n, unit);
}

static void last_unit_is_stored_last(struct kunit *test)
{
	struct bench *b = test->priv;
	size_t unit, start, n;
	int tried;

	for (unit = 1; unit <= 8; unit *= 2) {
		tried = 0;
		for (start = 0; start < 8; start++) {
			for (n = unit + 1; n <= 100; n++) {
				if (last_unit(b->src.base + start + n - unit, n) != unit)
					continue;
				expect_last(test, start, n, unit);
				tried++;
			}
		}
		KUNIT_EXPECT_GT(test, tried, 20);
	}
}

/* All small sizes at all alignments, with what lies around them. */
static void small_messages(struct kunit *test)
{
	struct bench *b = test->priv;
	u8 model[64];
	u32 n, to, from;

	prandom_bytes_state(&b->rnd, b->src.base, 64);
	for (n = 1; n <= 32; n++)
		for (to = 0; to < 16; to++)
			for (from = 0; from < 16; from++) {
				memset(b->dst.base, 0xee, sizeof(model));
				memset(model, 0xee, sizeof(model));
				memcpy(model + to, b->src.base + from, n);
				copy_plain(b, b->dst.base + to, b->src.base + from, n);
				KUNIT_ASSERT_EQ(test, memcmp(model, b->dst.base,
							     sizeof(model)), 0);
			}
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(runs_of_pages),
	KUNIT_CASE(run_of_plain_memory),
	KUNIT_CASE(a_run_is_looked_for_once),
	KUNIT_CASE(skip_agrees_with_counting),
	KUNIT_CASE(random_copies),
	KUNIT_CASE(copies_stay_inside),
	KUNIT_CASE(last_unit_is_stored_last),
	KUNIT_CASE(small_messages),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "vrnic_copy",
	.init = copy_init,
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);
