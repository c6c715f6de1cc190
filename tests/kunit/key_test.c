// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From keys to memory: everything that a user or a peer may claim about a
 * region, against a device that is only a table of keys.
 */

#include <kunit/test.h>

#include "lib/ids_find.h"
#include "mem/mem.h"
#include "mem/mw.h"
#include "mem/near.h"
#include "mem/seg.h"
#include "vrnic.h"

#define IOVA		0x10000ULL
#define LENGTH		0x3000ULL
#define ALL_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |	\
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/* struct world - as much of a device as keys need */
struct world {
	struct vrnic_dev dev;
	struct ib_pd pd;
	struct ib_pd other_pd;
	struct vrnic_key_user user;
	struct vrnic_sgl sgl;
	struct vrnic_seg seg[VRNIC_MAX_SGE];
	struct vrnic_mr *mr;
};

static void free_key(void *id, void *unused)
{
	kfree(id);
}

/* With the keys that a test left in it. */
static void destroy_keys(void *keys)
{
	rhashtable_free_and_destroy(&((struct vrnic_ids *)keys)->table,
				    free_key, NULL);
}

static struct vrnic_mr *new_mr(struct kunit *test, u64 iova, u64 length)
{
	struct world *w = test->priv;
	struct vrnic_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	mr->kind = VRNIC_MR_DMA;
	mr->valid = true;
	mr->access = ALL_RIGHTS;
	mr->ibmr.pd = &w->pd;
	mr->iova = iova;
	mr->length = length;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->gone);
	KUNIT_ASSERT_EQ(test, vrnic_key_alloc(&w->dev, mr, &mr->lkey), 0);
	KUNIT_ASSERT_EQ(test, vrnic_key_alloc(&w->dev, mr, &mr->rkey), 0);
	return mr;
}

static int keys_init(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	int err;

	if (!w)
		return -ENOMEM;
	err = vrnic_ids_init(&w->dev.keys);
	if (err)
		return err;
	err = kunit_add_action_or_reset(test, destroy_keys, &w->dev.keys);
	if (err)
		return err;
	w->user.pd = &w->pd;
	w->user.dev = &w->dev;
	w->sgl.seg = w->seg;
	test->priv = w;
	w->mr = new_mr(test, IOVA, LENGTH);
	return 0;
}

static int local(struct world *w, u32 lkey, u64 addr, u32 len, int access,
		 struct vrnic_seg *seg)
{
	struct vrnic_sge sge = { .addr = addr, .length = len, .lkey = lkey };

	return vrnic_seg_local(&w->user, &sge, access, NULL, seg);
}

/* A check that passes holds the region; one that fails leaves it alone. */
static void expect_outcome(struct kunit *test, int verr, int wanted,
			   struct vrnic_seg *seg, struct vrnic_mr *mr)
{
	KUNIT_EXPECT_EQ(test, verr, wanted);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), verr ? 1 : 2);
	if (!verr)
		vrnic_seg_put(seg);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), 1);
}

static void expect_local(struct kunit *test, struct vrnic_mr *mr, u32 lkey,
			 u64 addr, u32 len, int access, int wanted)
{
	struct vrnic_seg seg = {};
	int verr = local(test->priv, lkey, addr, len, access, &seg);

	expect_outcome(test, verr, wanted, &seg, mr);
}

static void expect_remote(struct kunit *test, struct vrnic_mr *mr, u32 rkey,
			  u64 addr, u64 len, int access, int wanted)
{
	struct world *w = test->priv;
	struct vrnic_seg seg = {};
	int verr = vrnic_seg_remote(&w->user, rkey, addr, len, access, NULL,
				    &seg);

	expect_outcome(test, verr, wanted, &seg, mr);
}

static void keys_are_two(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_mr *mr = w->mr;

	KUNIT_EXPECT_NE(test, mr->lkey >> 8, mr->rkey >> 8);
	KUNIT_EXPECT_NE(test, mr->lkey >> 8, 0);
	KUNIT_EXPECT_NE(test, mr->rkey >> 8, 0);
	expect_local(test, mr, mr->lkey, IOVA, 8, 0, 0);
	expect_remote(test, mr, mr->rkey, IOVA, 8, IB_ACCESS_REMOTE_READ, 0);
	/* one is no good as the other */
	expect_local(test, mr, mr->rkey, IOVA, 8, 0, VRNIC_VERR_KEY);
	expect_remote(test, mr, mr->lkey, IOVA, 8, IB_ACCESS_REMOTE_READ,
		      VRNIC_VERR_KEY);
}

/* The low 8 bits are as much of the key as the others. */
static void wrong_tag(struct kunit *test)
{
	struct world *w = test->priv;
	u32 flip;

	for (flip = 1; flip < 256; flip++) {
		expect_local(test, w->mr, w->mr->lkey ^ flip, IOVA, 8, 0,
			     VRNIC_VERR_KEY);
		expect_remote(test, w->mr, w->mr->rkey ^ flip, IOVA, 8,
			      IB_ACCESS_REMOTE_READ, VRNIC_VERR_KEY);
	}
}

static void unknown_keys(struct kunit *test)
{
	struct world *w = test->priv;
	u32 keys[] = { 0, 1, 255, U32_MAX, w->mr->rkey };
	int i;

	vrnic_key_free(&w->dev, w->mr->rkey);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		expect_local(test, w->mr, keys[i], IOVA, 8, 0, VRNIC_VERR_KEY);
		expect_remote(test, w->mr, keys[i], IOVA, 8,
			      IB_ACCESS_REMOTE_READ, VRNIC_VERR_KEY);
	}
}

static void not_valid(struct kunit *test)
{
	struct world *w = test->priv;

	w->mr->valid = false;
	expect_local(test, w->mr, w->mr->lkey, IOVA, 8, 0, VRNIC_VERR_KEY);
	expect_remote(test, w->mr, w->mr->rkey, IOVA, 8, IB_ACCESS_REMOTE_READ,
		      VRNIC_VERR_KEY);
}

/* Its owner has let go: nobody may take a reference any more. */
static void on_its_way_out(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_seg seg = {};

	vrnic_mr_put(w->mr);
	KUNIT_EXPECT_TRUE(test, completion_done(&w->mr->gone));
	KUNIT_EXPECT_EQ(test, local(w, w->mr->lkey, IOVA, 8, 0, &seg),
			VRNIC_VERR_KEY);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 0);
}

/* Only local access: a window's key is not good for that. */
static void window_is_no_region(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_window *win = kunit_kzalloc(test, sizeof(*win), GFP_KERNEL);
	struct vrnic_seg seg;
	void *entry;
	u32 key;

	KUNIT_ASSERT_NOT_NULL(test, win);
	entry = xa_tag_pointer(win, VRNIC_KEY_WINDOW);
	KUNIT_ASSERT_EQ(test, vrnic_key_alloc(&w->dev, entry, &key), 0);
	KUNIT_EXPECT_EQ(test, local(w, key, IOVA, 8, 0, &seg), VRNIC_VERR_KEY);
	KUNIT_EXPECT_EQ(test, vrnic_seg_whole(&w->user, key, 0, &seg),
			VRNIC_VERR_KEY);
}

/* Numbers that share a bucket do so for one secret only. */
static void buckets_cannot_be_aimed_at(struct kunit *test)
{
	DECLARE_BITMAP(used, 1024);
	u32 seed, i, id;

	for (seed = 0x9e3779b9; seed >> 28; seed += 0x10000001) {
		bitmap_zero(used, 1024);
		for (i = 0; i < 1024; i++) {
			id = i << 10;
			__set_bit(vrnic_id_hash(&id, sizeof(id), seed) % 1024, used);
		}
		KUNIT_EXPECT_GT_MSG(test, bitmap_weight(used, 1024), 256,
				    "seed %#x", seed);
	}
}

/* A thread that is about to bind a window has found it, and may be late. */
static void dead_window_stays_unbound(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_mw mw = {
		.ibmw = { .device = &w->dev.ibdev, .pd = &w->pd,
			  .type = IB_MW_TYPE_2 },
	};
	struct vrnic_desc d = {};
	struct vrnic_window *win;

	w->mr->kind = VRNIC_MR_USER;
	w->mr->access |= IB_ACCESS_MW_BIND;
	KUNIT_ASSERT_EQ(test, vrnic_alloc_mw(&mw.ibmw, NULL), 0);
	d.bind.lkey = w->mr->lkey;
	d.bind.old_rkey = mw.ibmw.rkey;
	d.bind.new_rkey = mw.ibmw.rkey;
	d.bind.addr = IOVA;
	d.bind.length = 8;
	rcu_read_lock();
	win = mw.win;
	KUNIT_EXPECT_EQ(test, vrnic_window_bind(&w->user, win, &d), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->windows), 1);
	vrnic_dealloc_mw(&mw.ibmw);
	KUNIT_EXPECT_EQ(test, vrnic_window_bind(&w->user, win, &d), VRNIC_VERR_KEY);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->windows), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1);
}

static void closed_to_windows(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_desc d = {};
	struct vrnic_window win = {
		.type = IB_MW_TYPE_1,
		.pd = &w->pd,
	};

	w->mr->kind = VRNIC_MR_USER;
	w->mr->access |= IB_ACCESS_MW_BIND;
	spin_lock_init(&win.lock);
	d.bind.lkey = w->mr->lkey;
	d.bind.addr = IOVA;
	d.bind.length = 8;
	atomic_set(&w->mr->windows, VRNIC_MR_CLOSED);
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, vrnic_window_bind(&w->user, &win, &d), VRNIC_VERR_KEY);
	rcu_read_unlock();
	/* an access through the region succeeds all the same */
	expect_remote(test, w->mr, w->mr->rkey, IOVA, 8, IB_ACCESS_REMOTE_READ, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->windows), VRNIC_MR_CLOSED);
}

static void other_protection_domain(struct kunit *test)
{
	struct world *w = test->priv;

	w->user.pd = &w->other_pd;
	expect_local(test, w->mr, w->mr->lkey, IOVA, 8, 0, VRNIC_VERR_PD);
	expect_remote(test, w->mr, w->mr->rkey, IOVA, 8, IB_ACCESS_REMOTE_READ,
		      VRNIC_VERR_PD);
}

/* Each right for itself: all the others do not make up for it. */
static void rights(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_READ,
		IB_ACCESS_REMOTE_ATOMIC,
	};
	struct world *w = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		w->mr->access = ALL_RIGHTS & ~rights[i];
		expect_remote(test, w->mr, w->mr->rkey, IOVA, 8, rights[i],
			      VRNIC_VERR_ACCESS);
		w->mr->access = rights[i];
		expect_remote(test, w->mr, w->mr->rkey, IOVA, 8, rights[i], 0);
	}
	w->mr->access = ALL_RIGHTS & ~IB_ACCESS_LOCAL_WRITE;
	expect_local(test, w->mr, w->mr->lkey, IOVA, 8, IB_ACCESS_LOCAL_WRITE,
		     VRNIC_VERR_ACCESS);
	/* reading one's own region takes no right */
	w->mr->access = 0;
	expect_local(test, w->mr, w->mr->lkey, IOVA, 8, 0, 0);
}

static const struct claim {
	const char *name;
	u64 iova, length, addr, len;
	bool good;
} claims[] = {
	{ "all of it", IOVA, LENGTH, IOVA, LENGTH, true },
	{ "first byte", IOVA, LENGTH, IOVA, 1, true },
	{ "last byte", IOVA, LENGTH, IOVA + LENGTH - 1, 1, true },
	{ "one byte before", IOVA, LENGTH, IOVA - 1, 1 },
	{ "starts before", IOVA, LENGTH, IOVA - 1, 2 },
	{ "one byte behind", IOVA, LENGTH, IOVA + LENGTH, 1 },
	{ "ends behind", IOVA, LENGTH, IOVA + LENGTH - 1, 2 },
	{ "one byte too long", IOVA, LENGTH, IOVA, LENGTH + 1 },
	{ "address 0", IOVA, LENGTH, 0, 1 },
	{ "sum wraps to 0", IOVA, LENGTH, IOVA, -IOVA },
	{ "sum wraps into it", IOVA, LENGTH, IOVA + 8, U64_MAX },
	{ "address wraps", IOVA, LENGTH, U64_MAX, 1 },
	{ "address and length wrap", IOVA, LENGTH, U64_MAX, U64_MAX },
	{ "from -8 to 8", IOVA, LENGTH, -8ULL, 16 },
	{ "length of 2^32 more", IOVA, LENGTH, IOVA, LENGTH + (1ULL << 32) },
	{ "address of 2^32 more", IOVA, LENGTH, IOVA + (1ULL << 32), 8 },
	{ "zero-based", 0, LENGTH, 0, LENGTH, true },
	{ "zero-based, behind", 0, LENGTH, LENGTH, 1 },
	{ "zero-based, below", 0, LENGTH, U64_MAX, 1 },
	{ "zero-based, wraps", 0, LENGTH, U64_MAX, 2 },
	{ "at the top", -LENGTH, LENGTH, -LENGTH, LENGTH, true },
	{ "last byte there is", -LENGTH, LENGTH, U64_MAX, 1, true },
	{ "over the top", -LENGTH, LENGTH, U64_MAX, 2 },
	{ "over the top, to 0", -LENGTH, LENGTH, 0, 1 },
	{ "all of memory", 0, U64_MAX, 0, U64_MAX, true },
	{ "all of memory, its end", 0, U64_MAX, U64_MAX - 1, 1, true },
	{ "all of memory and one more", 0, U64_MAX, U64_MAX, 1 },
	{ "one byte region", 7, 1, 7, 1, true },
	{ "one byte region, two", 7, 1, 7, 2 },
};

KUNIT_ARRAY_PARAM_DESC(claim, claims, name);

static void bounds(struct kunit *test)
{
	const struct claim *c = test->param_value;
	struct vrnic_mr *mr = new_mr(test, c->iova, c->length);
	int wanted = c->good ? 0 : VRNIC_VERR_BOUNDS;

	expect_remote(test, mr, mr->rkey, c->addr, c->len,
		      IB_ACCESS_REMOTE_WRITE, wanted);
	if (c->len <= U32_MAX)
		expect_local(test, mr, mr->lkey, c->addr, c->len, 0, wanted);
}

/* IBTA C9-88: an operation on no bytes needs no key. */
static void nothing_needs_no_key(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_seg seg;

	KUNIT_EXPECT_EQ(test, local(w, 0, 0, 0, IB_ACCESS_LOCAL_WRITE, &seg), 0);
	KUNIT_EXPECT_NULL(test, seg.mr);
	KUNIT_EXPECT_EQ(test, seg.len, 0);
	KUNIT_EXPECT_EQ(test, vrnic_seg_remote(&w->user, 0, 0, 0,
					       IB_ACCESS_REMOTE_WRITE, NULL,
					       &seg), 0);
	KUNIT_EXPECT_NULL(test, seg.mr);
	vrnic_seg_put(&seg);
}

static void whole_region(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_seg seg = {};

	KUNIT_ASSERT_EQ(test, vrnic_seg_whole(&w->user, w->mr->rkey,
					      IB_ACCESS_REMOTE_READ, &seg), 0);
	KUNIT_EXPECT_EQ(test, seg.len, LENGTH);
	KUNIT_EXPECT_PTR_EQ(test, seg.mr, w->mr);
	vrnic_seg_put(&seg);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1);
	w->mr->access = 0;
	KUNIT_EXPECT_EQ(test, vrnic_seg_whole(&w->user, w->mr->rkey,
					      IB_ACCESS_REMOTE_READ, &seg),
			VRNIC_VERR_ACCESS);
}

/* If one segment is bad, none stays held. */
static void list_is_all_or_nothing(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_sge sge[VRNIC_MAX_SGE];
	int bad, i;

	for (i = 0; i < VRNIC_MAX_SGE; i++)
		sge[i] = (struct vrnic_sge){ IOVA + i, 16, w->mr->lkey };
	for (bad = 0; bad < VRNIC_MAX_SGE; bad++) {
		sge[bad].lkey ^= 1;
		KUNIT_EXPECT_EQ(test, vrnic_sgl_local(&w->user, sge, VRNIC_MAX_SGE,
						      0, NULL, &w->sgl),
				VRNIC_VERR_KEY);
		KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1);
		sge[bad].lkey ^= 1;
	}
	KUNIT_EXPECT_EQ(test, vrnic_sgl_local(&w->user, sge, VRNIC_MAX_SGE, 0,
					      NULL, &w->sgl), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1 + VRNIC_MAX_SGE);
	vrnic_sgl_put(&w->sgl);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1);
}

static void list_total(struct kunit *test)
{
	struct vrnic_sge sge[VRNIC_MAX_SGE];
	int i;

	for (i = 0; i < VRNIC_MAX_SGE; i++)
		sge[i] = (struct vrnic_sge){ .length = U32_MAX };
	KUNIT_EXPECT_EQ(test, vrnic_sge_total(sge, VRNIC_MAX_SGE),
			(u64)U32_MAX * VRNIC_MAX_SGE);
	KUNIT_EXPECT_EQ(test, vrnic_sge_total(sge, 0), 0);
}

/* ---- the short way ---- */

#define NEAR_PAGES	3

/* A region of NEAR_PAGES pages, of which the first byte is 16 bytes into the first page. */
static struct vrnic_mr *paged_mr(struct kunit *test, u64 iova)
{
	struct vrnic_mr *mr = new_mr(test, iova, NEAR_PAGES * PAGE_SIZE - 16);
	int i;

	mr->kind = VRNIC_MR_USER;
	mr->offset = 16;
	mr->nr_pages = NEAR_PAGES;
	mr->pages = kunit_kcalloc(test, NEAR_PAGES, sizeof(*mr->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr->pages);
	/* far from each other; nobody reads them */
	for (i = 0; i < NEAR_PAGES; i++)
		mr->pages[i] = (void *)(PAGE_OFFSET + (NEAR_PAGES - i) * 16 * PAGE_SIZE);
	return mr;
}

/* Look up bytes by the region's lkey with nothing kept before, and let it go. */
static void *near(struct kunit *test, u32 key, u64 addr, u64 len, u64 n, int access)
{
	struct world *w = test->priv;
	struct vrnic_held held = {};
	void *at = vrnic_near(&held, &w->user, key, false, addr, len, n, access);

	vrnic_held_put(&held);
	return at;
}

static void near_finds_bytes_of_one_page(struct kunit *test)
{
	static const u64 iovas[] = { IOVA, 0, -(u64)NEAR_PAGES * PAGE_SIZE };
	struct vrnic_mr *mr;
	u64 iova;
	int i;

	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		iova = iovas[i];
		mr = paged_mr(test, iova);
		KUNIT_EXPECT_PTR_EQ(test, near(test, mr->lkey, iova, 8, 8, 0),
				    mr->pages[0] + 16);
		/* up to the last byte of a page, and one more */
		KUNIT_EXPECT_PTR_EQ(test, near(test, mr->lkey, iova + PAGE_SIZE - 24, 8, 8, 0),
				    mr->pages[0] + PAGE_SIZE - 8);
		KUNIT_EXPECT_NULL(test, near(test, mr->lkey, iova + PAGE_SIZE - 23, 8, 8, 0));
		KUNIT_EXPECT_PTR_EQ(test, near(test, mr->lkey, iova + PAGE_SIZE - 16, PAGE_SIZE,
					       PAGE_SIZE, 0), mr->pages[1]);
		KUNIT_EXPECT_NULL(test, near(test, mr->lkey, iova + PAGE_SIZE - 16, PAGE_SIZE + 1,
					     PAGE_SIZE + 1, 0));
		/* the message is shorter than what the receive names */
		KUNIT_EXPECT_PTR_EQ(test, near(test, mr->lkey, iova + PAGE_SIZE - 24,
					       PAGE_SIZE, 8, 0), mr->pages[0] + PAGE_SIZE - 8);
		KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), 1);
	}
}

static void near_refuses_what_the_long_way_refuses(struct kunit *test)
{
	struct world *w = test->priv;
	struct vrnic_mr *mr = paged_mr(test, IOVA);
	const u64 end = IOVA + mr->length;

	KUNIT_EXPECT_NOT_NULL(test, near(test, mr->lkey, end - 8, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, end - 7, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, end - 8, 9, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, IOVA - 1, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, -8ULL, 16, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, IOVA, U64_MAX, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->rkey, IOVA, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey ^ 1, IOVA, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, IOVA, 8, 8, IB_ACCESS_MW_BIND));
	mr->ibmr.pd = &w->other_pd;
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, IOVA, 8, 8, 0));
	mr->ibmr.pd = &w->pd;
	WRITE_ONCE(mr->valid, false);
	KUNIT_EXPECT_NULL(test, near(test, mr->lkey, IOVA, 8, 8, 0));
	/* without a table of pages, as with pages on demand */
	KUNIT_EXPECT_NULL(test, near(test, w->mr->lkey, IOVA, 8, 8, 0));
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&w->mr->refs), 1);
}

/* A region that the run keeps is checked for each operation, and no other one takes its place. */
static void near_keeps_the_first_region(struct kunit *test)
{
	struct vrnic_mr *mr = paged_mr(test, IOVA), *other = paged_mr(test, IOVA);
	struct world *w = test->priv;
	struct vrnic_held held = {};

	KUNIT_EXPECT_NULL(test, vrnic_near(&held, &w->user, mr->lkey, false, IOVA - 1, 8, 8, 0));
	KUNIT_EXPECT_PTR_EQ(test, held.mr, mr);
	KUNIT_EXPECT_NOT_NULL(test, vrnic_near(&held, &w->user, mr->lkey, false, IOVA, 8, 8, 0));
	KUNIT_EXPECT_NULL(test, vrnic_near(&held, &w->user, other->lkey, false, IOVA, 8, 8, 0));
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), 2);
	KUNIT_EXPECT_EQ(test, refcount_read(&other->refs), 1);
	vrnic_held_put(&held);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->refs), 1);
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE(keys_are_two),
	KUNIT_CASE(wrong_tag),
	KUNIT_CASE(unknown_keys),
	KUNIT_CASE(not_valid),
	KUNIT_CASE(on_its_way_out),
	KUNIT_CASE(window_is_no_region),
	KUNIT_CASE(buckets_cannot_be_aimed_at),
	KUNIT_CASE(dead_window_stays_unbound),
	KUNIT_CASE(closed_to_windows),
	KUNIT_CASE(other_protection_domain),
	KUNIT_CASE(rights),
	KUNIT_CASE_PARAM(bounds, claim_gen_params),
	KUNIT_CASE(nothing_needs_no_key),
	KUNIT_CASE(whole_region),
	KUNIT_CASE(list_is_all_or_nothing),
	KUNIT_CASE(list_total),
	KUNIT_CASE(near_finds_bytes_of_one_page),
	KUNIT_CASE(near_refuses_what_the_long_way_refuses),
	KUNIT_CASE(near_keeps_the_first_region),
	{}
};

static struct kunit_suite key_suite = {
	.name = "vrnic_key",
	.init = keys_init,
	.test_cases = key_cases,
};

kunit_test_suite(key_suite);
