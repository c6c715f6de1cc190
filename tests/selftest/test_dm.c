// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: its limits, copies, regions, windows, and processes that share or abuse it. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "native_raw.h"

#define PAGE		4096
#define LEN		(3 * PAGE)
#define DM_LEN		(2 * PAGE + 100)	/* takes three pages, not all of the third */
#define ZERO_BASED	(ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED)

static struct ibv_dm *dm_alloc(struct ibv_context *ctx, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(ctx, &attr);
}

/* Why device memory of @attr cannot be had; 0 if it can. */
static int alloc_error(struct ibv_context *ctx, struct ibv_alloc_dm_attr attr)
{
	struct ibv_dm *dm;

	errno = 0;
	dm = ibv_alloc_dm(ctx, &attr);
	return dm ? ibv_free_dm(dm) : errno;
}

#define ALLOC_ERROR(ctx, ...) alloc_error((ctx), (struct ibv_alloc_dm_attr){ __VA_ARGS__ })

static int reg_error(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dm_mr(pd, dm, off, len, access);
	return mr ? ibv_dereg_mr(mr) : errno;
}

static uint8_t pattern(size_t i, unsigned int seed)
{
	return i * 7 + (i >> 8) + seed;
}

static int dm_fill(struct ibv_dm *dm, size_t len, unsigned int seed)
{
	uint8_t *bytes = malloc(len);
	size_t i;
	int ret;

	for (i = 0; i < len; i++)
		bytes[i] = pattern(i, seed);
	ret = ibv_memcpy_to_dm(dm, 0, bytes, len);
	free(bytes);
	return ret;
}

/* Offset of the first byte in [off, off + len) of @dm that is not dm_fill()'s, or -1. */
static ssize_t dm_differs(struct ibv_dm *dm, size_t off, size_t len, unsigned int seed)
{
	uint8_t *bytes = malloc(len);
	ssize_t at = -1;
	size_t i;

	if (ibv_memcpy_from_dm(bytes, dm, off, len))
		at = 0;
	for (i = 0; i < len && at < 0; i++)
		if (bytes[i] != pattern(off + i, seed))
			at = off + i;
	free(bytes);
	return at;
}

/* The same, of what buf_fill(seed) puts at the start of a buffer. */
static bool dm_holds(struct ibv_dm *dm, size_t off, const struct buf *buf, size_t len)
{
	uint8_t *bytes = malloc(len);
	bool same = !ibv_memcpy_from_dm(bytes, dm, off, len) && !memcmp(bytes, buf->addr, len);

	free(bytes);
	return same;
}

/* Is all of it zero? */
static bool dm_is_zero(struct ibv_dm *dm, size_t len)
{
	uint8_t *bytes = malloc(len);
	bool zero = !ibv_memcpy_from_dm(bytes, dm, 0, len);
	size_t i;

	for (i = 0; i < len; i++)
		zero &= !bytes[i];
	free(bytes);
	return zero;
}

/**
 * struct dm - device memory of side b, which side a reaches
 * @wire: of the variant that sends packets
 * @local: of the other one
 * @bed: one of these
 * @ctx, @pd: of side b
 * @mr: all of @dm
 */
FIXTURE(dm)
{
	struct wire_bed wire;
	struct bed local;
	struct bed *bed;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	size_t max;
};

FIXTURE_VARIANT(dm)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(dm, memory) { .wire = false };
FIXTURE_VARIANT_ADD(dm, packets) { .wire = true };

FIXTURE_SETUP(dm)
{
	const struct pair_opts opts = { .max_sge = 4, .timeout = 18 };

	self->bed = variant->wire ? &self->wire.bed : &self->local;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, &opts) :
				  bed_open(&self->local, LEN, &opts));
	self->max = self->bed->dev.ex.max_dm_size;
	if (!self->max)
		SKIP(return, "the device has no memory of its own");
	self->ctx = self->bed->b->dev->ctx;
	self->pd = self->bed->b->pd;
	self->dm = dm_alloc(self->ctx, DM_LEN);
	ASSERT_NE(NULL, self->dm);
	self->mr = ibv_reg_dm_mr(self->pd, self->dm, 0, DM_LEN, ZERO_BASED | IBV_ACCESS_MW_BIND);
	ASSERT_NE(NULL, self->mr);
}

FIXTURE_TEARDOWN(dm)
{
	if (self->mr)
		EXPECT_OK(ibv_dereg_mr(self->mr));
	if (self->dm)
		EXPECT_OK(ibv_free_dm(self->dm));
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->local));
}

/* ---- copies ---- */

TEST_F(dm, is_zero_at_first)
{
	EXPECT_TRUE(dm_is_zero(self->dm, DM_LEN));
}

/* Words of 4 bytes, at any place, to and from any address. */
TEST_F(dm, copies_words)
{
	uint8_t there[64], back[64];
	size_t i, len, off, skew;

	for (i = 0; i < sizeof(there); i++)
		there[i] = pattern(i, 3);
	for (len = 0; len <= 36; len += 4) {
		for (off = 0; off <= 12; off += 4) {
			for (skew = 0; skew < 8; skew++) {
				ASSERT_OK(dm_fill(self->dm, 64, 9));
				ASSERT_OK(ibv_memcpy_to_dm(self->dm, off, there + skew, len));
				memset(back, 0, sizeof(back));
				ASSERT_OK(ibv_memcpy_from_dm(back + skew, self->dm, off, len));
				ASSERT_OK(memcmp(there + skew, back + skew, len));
				ASSERT_EQ(0, back[skew + len]);
				ASSERT_EQ(-1, dm_differs(self->dm, 0, off, 9));
				ASSERT_EQ(-1, dm_differs(self->dm, off + len, 8, 9));
			}
		}
	}
}

TEST_F(dm, copies_all_of_it)
{
	ASSERT_OK(dm_fill(self->dm, DM_LEN, 1));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 1));
	EXPECT_EQ(-1, dm_differs(self->dm, PAGE - 4, 8, 1));
}

TEST_F(dm, copies_nothing_elsewhere)
{
	static const struct { uint64_t off; size_t len; int err; } bad[] = {
		{ 1, 4, EINVAL }, { 2, 4, EINVAL }, { 0, 3, EINVAL }, { 4, 5, EINVAL },
		{ DM_LEN, 4, EFAULT }, { DM_LEN - 4, 8, EFAULT }, { 0, DM_LEN + 4, EFAULT },
		{ DM_LEN + 4, 0, EFAULT }, { ~3ULL, 4, EFAULT }, { ~3ULL, 8, EFAULT },
		{ 4, ~3UL, EFAULT }, { ~0ULL, ~0UL, EFAULT },
	};
	uint8_t bytes[8] = {};
	unsigned int i;

	ASSERT_OK(dm_fill(self->dm, DM_LEN, 1));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(bad[i].err, ibv_memcpy_to_dm(self->dm, bad[i].off, bytes, bad[i].len));
		EXPECT_EQ(bad[i].err, ibv_memcpy_from_dm(bytes, self->dm, bad[i].off, bad[i].len));
	}
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 1));
	EXPECT_OK(ibv_memcpy_to_dm(self->dm, DM_LEN, bytes, 0));
}

/* ---- allocation ---- */

TEST_F(dm, nonsense_is_refused)
{
	EXPECT_EQ(EINVAL, ALLOC_ERROR(self->ctx, .length = 0));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(self->ctx, .length = self->max + 1));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(self->ctx, .length = ~0UL));
	EXPECT_EQ(EOPNOTSUPP, ALLOC_ERROR(self->ctx, .length = 64, .comp_mask = 1));
	EXPECT_OK(ALLOC_ERROR(self->ctx, .length = 64, .log_align_req = 12));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(self->ctx, .length = 64, .log_align_req = 13));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(self->ctx, .length = 64, .log_align_req = ~0U));
}

/* What is told can be had, once. */
TEST_F(dm, there_is_as_much_as_is_told)
{
	struct ibv_dm *rest;

	EXPECT_EQ(ENOMEM, ALLOC_ERROR(self->ctx, .length = self->max));
	rest = dm_alloc(self->ctx, self->max - LEN);
	ASSERT_NE(NULL, rest);
	EXPECT_EQ(ENOMEM, ALLOC_ERROR(self->ctx, .length = 4));
	ASSERT_OK(dm_fill(rest, self->max - LEN, 5));
	EXPECT_EQ(-1, dm_differs(rest, 0, self->max - LEN, 5));
	EXPECT_TRUE(dm_is_zero(self->dm, DM_LEN));
	EXPECT_OK(ibv_free_dm(rest));
	/* what was given back holds nothing of its last owner */
	rest = dm_alloc(self->ctx, self->max - LEN);
	ASSERT_NE(NULL, rest);
	EXPECT_TRUE(dm_is_zero(rest, self->max - LEN));
	EXPECT_OK(ibv_free_dm(rest));
}

/* Other processes have a share of the same memory. */
TEST_F(dm, processes_share_it)
{
	struct ibv_context *other = dev_open_context();
	struct ibv_dm *theirs;

	ASSERT_NE(NULL, other);
	if (strcmp(ibv_get_device_name(other->device), ibv_get_device_name(self->ctx->device)))
		SKIP(ibv_close_device(other); return, "side b is on another device");
	theirs = dm_alloc(other, self->max - LEN);
	ASSERT_NE(NULL, theirs);
	EXPECT_EQ(ENOMEM, ALLOC_ERROR(self->ctx, .length = 4));
	EXPECT_OK(ibv_free_dm(theirs));
	EXPECT_OK(ALLOC_ERROR(self->ctx, .length = self->max - LEN));
	EXPECT_OK(ibv_close_device(other));
}

/* ---- regions ---- */

TEST_F(dm, regions_stay_inside)
{
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, 0, DM_LEN + 1, ZERO_BASED));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, 4, DM_LEN, ZERO_BASED));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, DM_LEN + 1, 0, ZERO_BASED));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, ~0ULL, 4, ZERO_BASED));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, 8, ~0UL, ZERO_BASED));
	EXPECT_OK(reg_error(self->pd, self->dm, DM_LEN - 1, 1, ZERO_BASED));
	EXPECT_OK(reg_error(self->pd, self->dm, DM_LEN, 0, ZERO_BASED));
}

TEST_F(dm, regions_have_known_rights)
{
	const int readable = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ;

	EXPECT_OK(reg_error(self->pd, self->dm, 0, 8, readable));
	EXPECT_OK(reg_error(self->pd, self->dm, 0, 8, readable | IBV_ACCESS_RELAXED_ORDERING));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, 0, 8, ACCESS_REMOTE));
	EXPECT_EQ(EINVAL, reg_error(self->pd, self->dm, 0, 8,
				    readable | IBV_ACCESS_REMOTE_WRITE));
	EXPECT_NE(0, reg_error(self->pd, self->dm, 0, 8, readable | IBV_ACCESS_ON_DEMAND));
	EXPECT_NE(0, reg_error(self->pd, self->dm, 0, 8, readable | IBV_ACCESS_HUGETLB));
}

TEST_F(dm, a_region_keeps_it)
{
	EXPECT_EQ(EBUSY, ibv_free_dm(self->dm));
	ASSERT_OK(dm_fill(self->dm, DM_LEN, 2));
	ASSERT_DONE(RUN(self->bed->a, .op = IBV_WR_RDMA_READ, .local = &self->bed->dst,
			.len = DM_LEN, .rkey = self->mr->rkey));
	EXPECT_TRUE(dm_holds(self->dm, 0, &self->bed->dst, DM_LEN));
}

TEST_F(dm, a_region_is_not_registered_anew)
{
	const int kinds[] = {
		IBV_REREG_MR_CHANGE_ACCESS, IBV_REREG_MR_CHANGE_PD,
		IBV_REREG_MR_CHANGE_TRANSLATION,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		errno = 0;
		EXPECT_NE(0, ibv_rereg_mr(self->mr, kinds[i], self->pd, self->bed->src.addr, PAGE,
					  ACCESS_REMOTE));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_DONE(RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE, .local = &self->bed->src,
			.len = DM_LEN, .rkey = self->mr->rkey));
}

/* ---- transfers ---- */

/* Across pages, by a region that begins anywhere. */
TEST_F(dm, is_written_and_read)
{
	static const struct { size_t start, addr, len; } at[] = {
		{ 0, 0, DM_LEN }, { 0, DM_LEN - 1, 1 }, { 4, 0, 8 }, { 100, 50, PAGE },
		{ PAGE - 1, 0, PAGE + 2 }, { PAGE, 8, 8 }, { 2 * PAGE, 1, 99 },
	};
	struct bed *bed = self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		size_t off = at[i].start + at[i].addr, len = at[i].len;
		struct ibv_mr *mr;
		uint8_t around[DM_LEN];

		mr = ibv_reg_dm_mr(self->pd, self->dm, at[i].start, DM_LEN - at[i].start,
				   ZERO_BASED);
		ASSERT_NE(NULL, mr);
		ASSERT_OK(dm_fill(self->dm, DM_LEN, i));
		buf_fill(&bed->src, i);
		memset(bed->dst.addr, 0, LEN);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = len,
				.raddr = at[i].addr, .rkey = mr->rkey));
		ASSERT_OK(ibv_memcpy_from_dm(around, self->dm, 0, DM_LEN));
		EXPECT_OK(memcmp(around + off, bed->src.addr, len));
		EXPECT_TRUE(!off || around[off - 1] == pattern(off - 1, i));
		EXPECT_TRUE(off + len == DM_LEN || around[off + len] == pattern(off + len, i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->dst, .len = len,
				.raddr = at[i].addr, .rkey = mr->rkey));
		EXPECT_EQ(-1, buf_differs(&bed->dst, 0, len, i, 0));
		EXPECT_EQ(-1, buf_is_not(&bed->dst, len, LEN - len, 0));
		EXPECT_OK(ibv_dereg_mr(mr));
	}
}

static int write_to(struct bed *bed, uint32_t rkey, uint64_t addr, size_t len)
{
	return RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = len,
		   .raddr = addr, .rkey = rkey);
}

/* The region ends before the memory and its page do. */
TEST_F(dm, a_region_ends_where_it_ends)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->pd, self->dm, 100, 200, ZERO_BASED);

	ASSERT_NE(NULL, mr);
	ASSERT_OK(dm_fill(self->dm, DM_LEN, 1));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, mr->rkey, 193, 8));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 1));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(dm, the_memory_ends_before_its_page)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, self->mr->rkey, DM_LEN - 4, 8));
}

TEST_F(dm, addresses_do_not_wrap)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, self->mr->rkey, ~3ULL, 8));
}

TEST_F(dm, an_empty_region_is_empty)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->pd, self->dm, DM_LEN, 0, ZERO_BASED);

	ASSERT_NE(NULL, mr);
	EXPECT_DONE(write_to(self->bed, mr->rkey, 0, 0));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, mr->rkey, 0, 1));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(dm, rights_are_kept)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->pd, self->dm, 0, 64,
					  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);

	ASSERT_NE(NULL, mr);
	EXPECT_DONE(RUN(self->bed->a, .op = IBV_WR_RDMA_READ, .local = &self->bed->dst, .len = 64,
			.rkey = mr->rkey));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, mr->rkey, 0, 8));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(dm, a_key_ends_with_its_region)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->pd, self->dm, 0, 64, ZERO_BASED);
	uint32_t rkey;

	ASSERT_NE(NULL, mr);
	rkey = mr->rkey;
	EXPECT_DONE(write_to(self->bed, rkey, 0, 8));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_to(self->bed, rkey, 0, 8));
}

/* Side b's lists of segments: device memory among other memory. */
TEST_F(dm, is_sent_and_received)
{
	struct bed *bed = self->bed;
	struct ibv_sge sgl[3] = {
		{ .addr = 10, .length = PAGE, .lkey = self->mr->lkey },
		sge_at(bed->b, &bed->dst, 0, 33),
		{ .addr = PAGE + 50, .length = 100, .lkey = self->mr->lkey },
	};
	const size_t len = PAGE + 33 + 100;
	uint8_t all[DM_LEN];

	buf_fill(&bed->src, 4);
	ASSERT_OK(post_recv_sgl(bed->b, sgl, 3, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = len));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(len, bed->b->rwc.byte_len);
	ASSERT_OK(ibv_memcpy_from_dm(all, self->dm, 0, DM_LEN));
	EXPECT_OK(memcmp(all + 10, bed->src.addr, PAGE));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 33, 4, PAGE));
	EXPECT_OK(memcmp(all + PAGE + 50, bed->src.addr + PAGE + 33, 100));

	memset(bed->src.addr, 0, LEN);
	ASSERT_OK(post_recv(bed->a, &bed->src, 0, LEN, 2));
	ASSERT_DONE(RUN(bed->b, .op = IBV_WR_SEND, .sgl = sgl, .num_sge = 3));
	ASSERT_DONE(wait_recv(bed->a));
	EXPECT_EQ(len, bed->a->rwc.byte_len);
	EXPECT_EQ(-1, buf_differs(&bed->src, 0, len, 4, 0));
}

TEST_F(dm, from_device_memory_to_device_memory)
{
	struct bed *bed = self->bed;
	struct ibv_dm *dm = dm_alloc(bed->a->dev->ctx, DM_LEN);
	struct ibv_sge sge = { .length = DM_LEN };
	struct ibv_mr *mr;

	ASSERT_NE(NULL, dm);
	mr = ibv_reg_dm_mr(bed->a->pd, dm, 0, DM_LEN, ZERO_BASED);
	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	ASSERT_OK(dm_fill(dm, DM_LEN, 6));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &sge, .num_sge = 1,
			.rkey = self->mr->rkey));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 6));
	ASSERT_OK(dm_fill(self->dm, DM_LEN, 7));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .sgl = &sge, .num_sge = 1,
			.rkey = self->mr->rkey));
	EXPECT_EQ(-1, dm_differs(dm, 0, DM_LEN, 7));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_free_dm(dm));
}

static uint64_t word_of(struct ibv_dm *dm, size_t off)
{
	uint64_t word = ~0ULL;

	ibv_memcpy_from_dm(&word, dm, off, sizeof(word));
	return word;
}

TEST_F(dm, has_atomics)
{
	struct bed *bed = self->bed;
	uint64_t five = 5, *old = (uint64_t *)bed->dst.addr;
	int i;

	ASSERT_OK(ibv_memcpy_to_dm(self->dm, PAGE, &five, 8));
	for (i = 0; i < 10; i++) {
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &bed->dst,
				.value = 3, .raddr = PAGE, .rkey = self->mr->rkey));
		ASSERT_EQ(5 + 3 * i, *old);
	}
	EXPECT_EQ(35, word_of(self->dm, PAGE));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_CMP_AND_SWP, .local = &bed->dst, .compare = 35,
			.value = 1, .raddr = PAGE, .rkey = self->mr->rkey));
	EXPECT_EQ(35, *old);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_CMP_AND_SWP, .local = &bed->dst, .compare = 35,
			.value = 2, .raddr = PAGE, .rkey = self->mr->rkey));
	EXPECT_EQ(1, *old);
	EXPECT_EQ(1, word_of(self->dm, PAGE));
}

/* A region may begin at a place that makes an aligned address an unaligned word. */
TEST_F(dm, atomics_are_aligned_in_memory)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->pd, self->dm, 4, 64, ZERO_BASED);

	ASSERT_NE(NULL, mr);
	EXPECT_NE(IBV_WC_SUCCESS,
		  RUN(self->bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &self->bed->dst,
		      .value = 1, .raddr = 8, .rkey = mr->rkey));
	EXPECT_TRUE(dm_is_zero(self->dm, DM_LEN));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* ---- windows ---- */

static int bind(struct side *side, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, size_t len)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = mr, .addr = addr, .length = len,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
		},
	};
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int ret;

	if (mw->type == IBV_MW_TYPE_1) {
		ret = ibv_bind_mw(side->qp, mw, &bind);
		return ret ? -abs(ret) : wait_send(side);
	}
	ret = RUN(side, .op = IBV_WR_BIND_MW, .mw = mw, .mw_rkey = rkey, .bind = bind.bind_info);
	if (ret == IBV_WC_SUCCESS)
		mw->rkey = rkey;
	return ret;
}

TEST_F(dm, has_windows)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	struct bed *bed = self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct ibv_mw *mw = ibv_alloc_mw(self->pd, types[i]);

		ASSERT_NE(NULL, mw);
		ASSERT_OK(dm_fill(self->dm, DM_LEN, i));
		buf_fill(&bed->src, i);
		ASSERT_DONE(bind(bed->b, mw, self->mr, PAGE - 4, 64));
		ASSERT_DONE(write_to(bed, mw->rkey, PAGE - 4, 64));
		EXPECT_TRUE(dm_holds(self->dm, PAGE - 4, &bed->src, 64));
		EXPECT_EQ(-1, dm_differs(self->dm, 0, PAGE - 4, i));
		EXPECT_EQ(-1, dm_differs(self->dm, PAGE + 60, 100, i));
		/* the region, and so the memory, stays as long as its window is bound */
		EXPECT_EQ(EBUSY, ibv_dereg_mr(self->mr));
		EXPECT_EQ(EBUSY, ibv_free_dm(self->dm));
		EXPECT_OK(ibv_dealloc_mw(mw));
	}
}

TEST_F(dm, windows_stay_inside)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->pd, IBV_MW_TYPE_2);

	ASSERT_NE(NULL, mw);
	EXPECT_STATUS(IBV_WC_MW_BIND_ERR, bind(self->bed->b, mw, self->mr, DM_LEN - 32, 64));
	EXPECT_OK(ibv_dealloc_mw(mw));
}

/* ---- other contexts and processes ---- */

/* The file of a context, once more; a library that imports it closes it. */
static struct ibv_context *import(struct ibv_context *ctx)
{
	int fd = dup(ctx->cmd_fd);
	struct ibv_context *again = ibv_import_device(fd);

	if (!again)
		close(fd);
	return again;
}

TEST_F(dm, is_imported)
{
	struct ibv_context *ctx = import(self->ctx);
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	ASSERT_NE(NULL, ctx);
	dm = ibv_import_dm(ctx, self->dm->handle);
	ASSERT_NE(NULL, dm);
	EXPECT_EQ(self->dm->handle, dm->handle);
	ASSERT_OK(dm_fill(dm, DM_LEN, 8));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 8));
	EXPECT_EQ(EFAULT, ibv_memcpy_to_dm(dm, DM_LEN, &dm, 4));
	/* registered by the importer, for a domain of the exporter */
	pd = ibv_import_pd(ctx, self->pd->handle);
	ASSERT_NE(NULL, pd);
	mr = ibv_reg_dm_mr(pd, dm, 0, DM_LEN, ZERO_BASED);
	ASSERT_NE(NULL, mr);
	buf_fill(&self->bed->src, 9);
	EXPECT_DONE(write_to(self->bed, mr->rkey, 0, DM_LEN));
	EXPECT_TRUE(dm_holds(dm, 0, &self->bed->src, DM_LEN));
	EXPECT_OK(ibv_dereg_mr(mr));
	ibv_unimport_pd(pd);
	ibv_unimport_dm(dm);
	EXPECT_OK(ibv_close_device(ctx));
	/* the exporter has it still */
	EXPECT_TRUE(dm_holds(self->dm, 0, &self->bed->src, DM_LEN));
	EXPECT_DONE(write_to(self->bed, self->mr->rkey, 0, 8));
}

TEST_F(dm, an_importer_may_free_it)
{
	struct ibv_context *ctx = import(self->ctx);
	struct ibv_dm *mine = dm_alloc(self->ctx, PAGE), *dm;

	ASSERT_NE(NULL, ctx);
	ASSERT_NE(NULL, mine);
	dm = ibv_import_dm(ctx, mine->handle);
	ASSERT_NE(NULL, dm);
	EXPECT_OK(ibv_free_dm(dm));
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_dm(ctx, mine->handle));
	EXPECT_EQ(ENOENT, errno);
	/* its last mapping is still there, and is the exporter's alone */
	EXPECT_OK(dm_fill(mine, PAGE, 1));
	EXPECT_EQ(-1, dm_differs(mine, 0, PAGE, 1));
	ibv_unimport_dm(mine);
	EXPECT_OK(ibv_close_device(ctx));
}

TEST_F(dm, nothing_else_is_imported)
{
	struct ibv_context *ctx = import(self->ctx);
	unsigned int i;

	ASSERT_NE(NULL, ctx);
	for (i = 0; i < 64; i++) {
		struct ibv_dm *dm;

		if (i == self->dm->handle)
			continue;
		errno = 0;
		dm = ibv_import_dm(ctx, i);
		ASSERT_EQ(NULL, dm);
		/* of no object, or of one of another kind */
		ASSERT_TRUE(errno == ENOENT || errno == EINVAL)
			TH_LOG("errno %d", errno);
	}
	EXPECT_EQ(NULL, ibv_import_dm(ctx, ~0U));
	EXPECT_OK(ibv_close_device(ctx));
}

/* Regions can be imported, too. */
TEST_F(dm, its_region_is_imported)
{
	struct ibv_context *ctx = import(self->ctx);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	ASSERT_NE(NULL, ctx);
	pd = ibv_import_pd(ctx, self->pd->handle);
	ASSERT_NE(NULL, pd);
	mr = ibv_import_mr(pd, self->mr->handle);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(self->mr->lkey, mr->lkey);
	EXPECT_EQ(self->mr->rkey, mr->rkey);
	EXPECT_EQ(DM_LEN, mr->length);
	ibv_unimport_mr(mr);
	EXPECT_EQ(NULL, ibv_import_mr(pd, ~0U));
	ibv_unimport_pd(pd);
	EXPECT_OK(ibv_close_device(ctx));
}

static int child_status(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child ? status : -errno;
}

/* It is one memory for parent and child. */
TEST_F(dm, forked)
{
	pid_t child;

	ASSERT_OK(dm_fill(self->dm, DM_LEN, 1));
	child = fork();
	if (!child) {
		if (dm_differs(self->dm, 0, DM_LEN, 1) >= 0)
			_exit(1);
		_exit(dm_fill(self->dm, DM_LEN, 2));
	}
	ASSERT_OK(child_status(child));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, DM_LEN, 2));
	EXPECT_DONE(RUN(self->bed->a, .op = IBV_WR_RDMA_READ, .local = &self->bed->dst,
			.len = DM_LEN, .rkey = self->mr->rkey));
	EXPECT_TRUE(dm_holds(self->dm, 0, &self->bed->dst, DM_LEN));
}

static void *map_again(struct ibv_context *ctx, const struct vrnic_dm_info *info)
{
	return mmap(NULL, info->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd,
		    info->offset);
}

/* A mapping may outlive the memory: then its pages are nobody else's. */
TEST_F(dm, a_mapping_outlives_it)
{
	struct ibv_dm *dm = dm_alloc(self->ctx, LEN), *next[4];
	struct vrnic_dm_info info;
	unsigned int i;
	uint8_t *map;

	ASSERT_NE(NULL, dm);
	ASSERT_OK(raw_dm_query(self->ctx, dm->handle, &info));
	EXPECT_EQ(LEN, info.length);
	EXPECT_EQ(LEN, info.bytes);
	map = map_again(self->ctx, &info);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_OK(dm_fill(dm, LEN, 1));
	ASSERT_EQ(pattern(LEN - 1, 1), map[LEN - 1]);
	ASSERT_OK(ibv_free_dm(dm));
	EXPECT_EQ(MAP_FAILED, map_again(self->ctx, &info));
	for (i = 0; i < ARRAY_SIZE(next); i++) {
		next[i] = dm_alloc(self->ctx, LEN);
		ASSERT_NE(NULL, next[i]);
	}
	EXPECT_EQ(pattern(LEN - 1, 1), map[LEN - 1]);
	memset(map, 0xee, LEN);
	for (i = 0; i < ARRAY_SIZE(next); i++) {
		EXPECT_TRUE(dm_is_zero(next[i], LEN));
		EXPECT_OK(ibv_free_dm(next[i]));
	}
	EXPECT_OK(munmap(map, LEN));
}

TEST_F(dm, is_mapped_as_it_is)
{
	struct vrnic_dm_info info, other;

	ASSERT_OK(raw_dm_query(self->ctx, self->dm->handle, &info));
	EXPECT_EQ(DM_LEN, info.length);
	EXPECT_EQ(LEN, info.bytes);
	EXPECT_EQ(-ENOENT, raw_dm_query(self->ctx, ~0U, &other));
	other = info;
	other.bytes += PAGE;
	EXPECT_EQ(MAP_FAILED, map_again(self->ctx, &other));
	other.bytes -= 2 * PAGE;
	EXPECT_EQ(MAP_FAILED, map_again(self->ctx, &other));
	other = info;
	other.offset += PAGE;
	EXPECT_EQ(MAP_FAILED, map_again(self->ctx, &other));
}

/* All kinds of use, until it is killed. */
static void use_for_ever(struct dev *dev, size_t max)
{
	for (;;) {
		struct ibv_dm *dm = dm_alloc(dev->ctx, max / 4), *more = dm_alloc(dev->ctx, 64);
		struct ibv_mr *mr = NULL;

		if (!dm || !more)
			_exit(1);
		mr = ibv_reg_dm_mr(dev->pd, dm, 64, max / 4 - 64, ZERO_BASED);
		if (!mr || dm_fill(dm, 4 * PAGE, 1) || ibv_dereg_mr(mr) || ibv_free_dm(more) ||
		    ibv_free_dm(dm))
			_exit(2);
	}
}

TEST_F(dm, is_free_when_its_process_was_killed)
{
	struct ibv_context *ctx;
	int i, status, tries;

	for (i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			struct dev dev;

			if (!dev_open(&dev))
				use_for_ever(&dev, self->max);
			_exit(3);
		}
		usleep(5000 + 7000 * i);
		ASSERT_OK(kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	ctx = dev_open_context();
	ASSERT_NE(NULL, ctx);
	/* the fixture's own is on this device, or on another one */
	for (tries = 0; tries < 2000 && ALLOC_ERROR(ctx, .length = self->max - LEN); tries++)
		usleep(20000);
	EXPECT_OK(ALLOC_ERROR(ctx, .length = self->max - LEN));
	EXPECT_OK(ibv_close_device(ctx));
}

/* ---- the operator ---- */

/* As many bytes as there are, from a new query. */
static long long told(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex ex;

	return ibv_query_device_ex(ctx, NULL, &ex) ? -errno : (long long)ex.max_dm_size;
}

FIXTURE(dm_limit)
{
	struct held_param held;
	struct dev dev;
};

FIXTURE_SETUP(dm_limit)
{
	if (module_param("dm_bytes") < 0)
		SKIP(return, "the driver has no such parameter");
	ASSERT_OK(param_hold(&self->held, "dm_bytes", 2 * PAGE + 5));
	ASSERT_OK(dev_open(&self->dev));
}

FIXTURE_TEARDOWN(dm_limit)
{
	if (!self->dev.ctx)
		return;
	dev_close(&self->dev);
	EXPECT_OK(param_release(&self->held));
}

TEST_F(dm_limit, is_told_in_pages)
{
	struct ibv_context *ctx = self->dev.ctx;
	struct ibv_dm *dm;

	EXPECT_EQ(2 * PAGE, told(ctx));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(ctx, .length = 2 * PAGE + 1));
	dm = dm_alloc(ctx, PAGE);
	ASSERT_NE(NULL, dm);
	EXPECT_EQ(ENOMEM, ALLOC_ERROR(ctx, .length = PAGE + 1));
	EXPECT_OK(ALLOC_ERROR(ctx, .length = PAGE));
	EXPECT_OK(ibv_free_dm(dm));
}

/* What processes have stays theirs. */
TEST_F(dm_limit, may_be_lowered)
{
	struct ibv_context *ctx = self->dev.ctx;
	struct ibv_dm *dm = dm_alloc(ctx, 2 * PAGE);

	ASSERT_NE(NULL, dm);
	ASSERT_OK(set_module_param("dm_bytes", PAGE));
	EXPECT_EQ(PAGE, told(ctx));
	EXPECT_EQ(ENOMEM, ALLOC_ERROR(ctx, .length = 4));
	EXPECT_OK(dm_fill(dm, 2 * PAGE, 1));
	EXPECT_OK(ibv_free_dm(dm));
	EXPECT_OK(ALLOC_ERROR(ctx, .length = PAGE));
	EXPECT_EQ(EINVAL, ALLOC_ERROR(ctx, .length = PAGE + 4));
}

TEST_F(dm_limit, zero_means_none)
{
	ASSERT_OK(set_module_param("dm_bytes", 0));
	EXPECT_EQ(0, told(self->dev.ctx));
	EXPECT_EQ(EOPNOTSUPP, ALLOC_ERROR(self->dev.ctx, .length = 4));
}

TEST_F(dm_limit, is_a_gibibyte_at_most)
{
	ASSERT_OK(set_module_param("dm_bytes", 1LL << 50));
	EXPECT_EQ(1 << 30, told(self->dev.ctx));
}

#define CHARGED	(8 << 20)
#define SLACK	(1 << 20)	/* charges are in batches, and the object takes some memory, too */

static long long group_bytes(const struct group *group)
{
	char text[64];

	group_read(group, "memory.current", text, sizeof(text));
	return text[0] ? atoll(text) : -ENOENT;
}

/* In the group: 0, or where it failed. */
static int pay(struct group *group)
{
	struct ibv_context *ctx;
	long long before, with, mapped, after;
	struct vrnic_dm_info info;
	struct ibv_dm *dm;
	void *map;

	if (group_enter(group))
		return 1;
	ctx = dev_open_context();
	before = group_bytes(group);
	dm = dm_alloc(ctx, CHARGED);
	with = group_bytes(group);
	if (!dm || with < before + CHARGED - SLACK)
		return 2;
	if (raw_dm_query(ctx, dm->handle, &info))
		return 3;
	map = map_again(ctx, &info);
	if (map == MAP_FAILED || ibv_free_dm(dm))
		return 4;
	/* the mapping has the pages still */
	mapped = group_bytes(group);
	munmap(map, info.bytes);
	after = group_bytes(group);
	printf("# bytes: %lld, with device memory %lld, freed but mapped %lld, unmapped %lld\n",
	       before, with, mapped, after);
	fflush(stdout);
	if (mapped < before + CHARGED - SLACK)
		return 5;
	return after > before + SLACK ? 6 : 0;
}

/* The memory cgroup of the process pays, as long as the process has the pages. */
TEST(its_process_pays)
{
	struct group group;
	const char *why;
	pid_t child;

	if (module_param("dm_bytes") < CHARGED)
		SKIP(return, "the device has not that much memory");
	why = no_groups(&group);
	if (why)
		SKIP(return, "%s", why);
	if (group_write(group.root, "cgroup.subtree_control", "+memory")) {
		group_close(&group);
		SKIP(return, "the kernel counts no memory of groups");
	}
	child = fork();
	if (!child)
		_exit(pay(&group));
	EXPECT_EQ(0, child_status(child) >> 8);
	EXPECT_OK(group_close(&group));
}

/* ---- the device goes ---- */

#define DEVICE	"vrnic_dm"

FIXTURE(dm_gone)
{
	struct dev dev;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

FIXTURE_SETUP(dm_gone)
{
	unsetenv("VRNIC_PEER_DEV");
	unsetenv("VRNIC_GID");
	ASSERT_OK(rdma_link_apart(DEVICE));
	ASSERT_OK(setenv("VRNIC_DEV", DEVICE, 1));
	ASSERT_OK(dev_open(&self->dev));
	self->dm = dm_alloc(self->dev.ctx, LEN);
	ASSERT_NE(NULL, self->dm);
	self->mr = ibv_reg_dm_mr(self->dev.pd, self->dm, 0, LEN, ZERO_BASED);
	ASSERT_NE(NULL, self->mr);
}

FIXTURE_TEARDOWN(dm_gone)
{
	dev_close(&self->dev);
}

/* Copies go to memory that nobody else sees, and all can be freed. */
TEST_F(dm_gone, while_it_is_mapped)
{
	struct vrnic_dm_info info;

	ASSERT_OK(raw_dm_query(self->dev.ctx, self->dm->handle, &info));
	ASSERT_OK(dm_fill(self->dm, LEN, 1));
	ASSERT_OK(rdma_link_del(DEVICE));
	EXPECT_EQ(-1, dm_differs(self->dm, 0, LEN, 1));
	EXPECT_OK(dm_fill(self->dm, LEN, 2));
	EXPECT_EQ(-EIO, raw_dm_query(self->dev.ctx, self->dm->handle, &info));
	EXPECT_EQ(MAP_FAILED, map_again(self->dev.ctx, &info));
	EXPECT_EQ(EIO, ALLOC_ERROR(self->dev.ctx, .length = PAGE));
	EXPECT_EQ(EIO, reg_error(self->dev.pd, self->dm, 0, 8, ZERO_BASED));
	EXPECT_OK(ibv_dereg_mr(self->mr));
	EXPECT_OK(ibv_free_dm(self->dm));
}

/* While a process allocates and frees. */
TEST_F(dm_gone, while_it_is_used)
{
	int status, ready[2];
	pid_t child;
	char c;

	ASSERT_OK(pipe(ready));
	child = fork();
	if (!child) {
		struct dev dev;

		if (!dev_open(&dev) && write(ready[1], "", 1) == 1)
			use_for_ever(&dev, 1 << 20);
		_exit(3);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &c, 1));
	close(ready[0]);
	usleep(100000);
	ASSERT_OK(rdma_link_del(DEVICE));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	/* a call said so */
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_OK(ibv_dereg_mr(self->mr));
	EXPECT_OK(ibv_free_dm(self->dm));
}

TEST_HARNESS_MAIN
