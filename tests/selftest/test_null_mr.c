// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The region that is nowhere: writes to it vanish, reads from it are zero. */
#include <rdma/vrnic-abi.h>

#include "harness.h"

#define LEN	(64 * 1024)
#define SKIP_A	1000
#define SKIP_B	(5 * 4096 + 7)

FIXTURE(null)
{
	struct wire_bed wire;
	struct bed local;
	struct bed *bed;
	struct ibv_mr *a, *b;
};

FIXTURE_VARIANT(null)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(null, local) { .wire = false };
FIXTURE_VARIANT_ADD(null, wire) { .wire = true };

FIXTURE_SETUP(null)
{
	const struct pair_opts opts = { .max_sge = 4, .timeout = 18 };

	self->bed = variant->wire ? &self->wire.bed : &self->local;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, &opts) :
				  bed_open(&self->local, LEN, &opts));
	self->a = ibv_alloc_null_mr(self->bed->a->pd);
	if (!self->a && errno == EOPNOTSUPP)
		SKIP(return, "the device has no null regions");
	ASSERT_NE(NULL, self->a);
	self->b = ibv_alloc_null_mr(self->bed->b->pd);
	ASSERT_NE(NULL, self->b);
}

FIXTURE_TEARDOWN(null)
{
	if (self->a)
		EXPECT_OK(ibv_dereg_mr(self->a));
	if (self->b)
		EXPECT_OK(ibv_dereg_mr(self->b));
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->local));
}

static struct ibv_sge nothing(const struct ibv_mr *mr, uint64_t addr, uint32_t len)
{
	return (struct ibv_sge){ .addr = addr, .length = len, .lkey = mr->lkey };
}

TEST_F(null, has_a_local_key_alone)
{
	EXPECT_EQ(SIZE_MAX, self->a->length);
	EXPECT_EQ(NULL, self->a->addr);
	EXPECT_EQ(0, self->a->rkey);
	EXPECT_NE(0, ibv_rereg_mr(self->a, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
}

/* Zeroes between the bytes of a message, which nobody has to have in memory. */
TEST_F(null, sends_zeroes)
{
	struct bed *bed = self->bed;
	struct ibv_sge sgl[4] = {
		sge_of(&bed->src, 0, 100), nothing(self->a, ~0ULL - 5, SKIP_A),
		sge_of(&bed->src, 100, 1000), nothing(self->a, 0, SKIP_B),
	};
	size_t at = 0;

	buf_fill(&bed->src, 1);
	memset(bed->dst.addr, 0x5a, LEN);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sgl, .num_sge = 4,
			.remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->dst, at, 100, 1, 0));
	at += 100;
	EXPECT_EQ(-1, buf_is_not(&bed->dst, at, SKIP_A, 0));
	at += SKIP_A;
	EXPECT_EQ(-1, buf_differs(&bed->dst, at, 1000, 1, 100));
	at += 1000;
	EXPECT_EQ(-1, buf_is_not(&bed->dst, at, SKIP_B, 0));
	at += SKIP_B;
	EXPECT_EQ(-1, buf_is_not(&bed->dst, at, LEN - at, 0x5a));
}

TEST_F(null, sends_nothing_but_zeroes)
{
	struct bed *bed = self->bed;
	struct ibv_sge all = nothing(self->a, 4711, LEN);

	memset(bed->dst.addr, 0x5a, LEN);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .sgl = &all, .num_sge = 1));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ((uint32_t)LEN, bed->b->rwc.byte_len);
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
}

/* A receiver that wants some parts of a message only. */
TEST_F(null, skips_parts_of_a_message)
{
	struct bed *bed = self->bed;
	struct ibv_sge sgl[4] = {
		nothing(self->b, 1, SKIP_A), sge_of(&bed->dst, 0, 100),
		nothing(self->b, 2, SKIP_B), sge_of(&bed->dst, 100, 200),
	};

	buf_fill(&bed->src, 2);
	memset(bed->dst.addr, 0x5a, LEN);
	ASSERT_OK(post_recv_sgl(bed->b, sgl, 4, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = SKIP_A + 100 + SKIP_B + 200));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 100, 2, SKIP_A));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 100, 200, 2, SKIP_A + 100 + SKIP_B));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 300, LEN - 300, 0x5a));
}

TEST_F(null, takes_what_is_read)
{
	struct bed *bed = self->bed;
	struct ibv_sge sgl[2] = { nothing(self->a, 0, SKIP_B), sge_of(&bed->src, 0, 64) };

	buf_fill(&bed->dst, 3);
	memset(bed->src.addr, 0x5a, LEN);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .sgl = sgl, .num_sge = 2,
			.remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->src, 0, 64, 3, SKIP_B));
	EXPECT_EQ(-1, buf_is_not(&bed->src, 64, LEN - 64, 0x5a));
}

/* What was written is not what is read after it. */
TEST_F(null, forgets)
{
	struct bed *bed = self->bed;
	struct ibv_sge all = nothing(self->a, 0, LEN);

	memset(bed->dst.addr, 0x77, LEN);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .sgl = &all, .num_sge = 1,
			.remote = &bed->dst));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &all, .num_sge = 1,
			.remote = &bed->dst));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
}

/* The old value of an atomic operation is not wanted. */
TEST_F(null, takes_the_result_of_an_atomic)
{
	struct bed *bed = self->bed;
	struct ibv_sge old = nothing(self->a, 16, 8);

	*(uint64_t *)bed->dst.addr = 40;
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .sgl = &old, .num_sge = 1,
			.remote = &bed->dst, .value = 2));
	EXPECT_EQ(42, *(uint64_t *)bed->dst.addr);
}

TEST_F(null, is_not_for_peers)
{
	struct bed *bed = self->bed;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 64,
			  .raddr = 4096, .rkey = VRNIC_NULL_LKEY));
}

TEST_F(null, has_no_windows)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->bed->a->pd, IBV_MW_TYPE_2);

	ASSERT_NE(NULL, mw);
	EXPECT_STATUS(IBV_WC_MW_BIND_ERR,
		      RUN(self->bed->a, .op = IBV_WR_BIND_MW, .mw = mw,
			  .mw_rkey = ibv_inc_rkey(mw->rkey),
			  .bind = { .mr = self->a, .addr = 0, .length = 4096,
				    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE }));
	EXPECT_OK(ibv_dealloc_mw(mw));
}

TEST_HARNESS_MAIN
