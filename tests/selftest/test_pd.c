// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains: lifetime, and that one does not reach into another. */
#include "harness.h"

BED(pd, 4096);

TEST_F(pd, many)
{
	struct ibv_pd *pd[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pd); i++) {
		pd[i] = ibv_alloc_pd(self->bed.dev.ctx);
		ASSERT_NE(NULL, pd[i]);
	}
	for (i = 0; i < ARRAY_SIZE(pd); i++)
		EXPECT_OK(ibv_dealloc_pd(pd[i]));
}

TEST_F(pd, busy_while_it_has_a_region)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->bed.dev.ctx);
	struct buf buf;

	ASSERT_NE(NULL, pd);
	ASSERT_OK(buf_open(&buf, pd, 4096, 0, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	buf_close(&buf);
	EXPECT_OK(ibv_dealloc_pd(pd));
}

TEST_F(pd, busy_while_it_has_a_queue_pair)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->bed.dev.ctx);
	struct pair_opts opts = pair_defaults(NULL);
	struct side side = { .pd = pd };

	ASSERT_NE(NULL, pd);
	ASSERT_OK(side_open(&side, &self->bed.dev, &opts, false));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_OK(side_close(&side));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

FIXTURE(foreign)
{
	struct bed bed;
	struct side near, far;	/* where a and b are, with another domain */
	struct buf buf;
};

FIXTURE_SETUP(foreign)
{
	ASSERT_OK(bed_open(&self->bed, 4096, NULL));
	self->near.dev = self->bed.a->dev;
	self->near.pd = ibv_alloc_pd(self->near.dev->ctx);
	ASSERT_NE(NULL, self->near.pd);
	self->far.dev = self->bed.b->dev;
	self->far.pd = ibv_alloc_pd(self->far.dev->ctx);
	ASSERT_NE(NULL, self->far.pd);
	ASSERT_OK(buf_open(&self->buf, self->far.pd, 4096, 0, ACCESS_REMOTE));
	ASSERT_OK(buf_twin(&self->buf, &self->near, ACCESS_REMOTE));
}

FIXTURE_TEARDOWN(foreign)
{
	buf_close(&self->buf);
	EXPECT_OK(ibv_dealloc_pd(self->near.pd));
	EXPECT_OK(ibv_dealloc_pd(self->far.pd));
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(foreign, local_segment)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &self->buf, .remote = &bed->dst));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 4096, 0));
}

TEST_F(foreign, write_target)
{
	struct bed *bed = &self->bed;

	memset(bed->src.addr, 1, 8);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &bed->src, .remote = &self->buf));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 4096, 0));
}

TEST_F(foreign, read_target)
{
	struct bed *bed = &self->bed;

	memset(self->buf.addr, 1, 4096);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_READ, .len = 8,
			  .local = &bed->src, .remote = &self->buf));
	EXPECT_EQ(-1, buf_is_not(&bed->src, 0, 4096, 0));
}

TEST_F(foreign, receive_buffer)
{
	struct bed *bed = &self->bed;

	memset(bed->src.addr, 1, 8);
	ASSERT_OK(post_recv(bed->b, &self->buf, 0, 4096, 0));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			  .local = &bed->src));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(bed->b));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 4096, 0));
}

TEST_HARNESS_MAIN
