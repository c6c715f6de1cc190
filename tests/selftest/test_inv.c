// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* LOCAL_INV and SEND with invalidate, on windows of type 2. */
#include "harness.h"

#define LEN	4096
#define WINDOW_ACCESS	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(inv)
{
	struct bed bed;
	struct buf buf;
	struct ibv_mw *mw;
};

FIXTURE_SETUP(inv)
{
	struct ibv_mw_bind_info info = { .length = LEN,
					 .mw_access_flags = WINDOW_ACCESS };
	uint32_t rkey;

	ASSERT_OK(bed_open(&self->bed, LEN, NULL));
	if (!(self->bed.dev.attr->device_cap_flags &
	      IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		SKIP(return, "the device does not advertise windows of type 2B");
	ASSERT_OK(buf_open(&self->buf, self->bed.b->pd, LEN, 0,
			   ACCESS_REMOTE | IBV_ACCESS_MW_BIND));
	self->mw = ibv_alloc_mw(self->bed.b->pd, IBV_MW_TYPE_2);
	ASSERT_NE(NULL, self->mw);
	rkey = ibv_inc_rkey(self->mw->rkey);
	info.mr = self->buf.mr;
	info.addr = (uintptr_t)self->buf.addr;
	ASSERT_DONE(RUN(self->bed.b, .op = IBV_WR_BIND_MW, .mw = self->mw,
			.mw_rkey = rkey, .bind = info));
	self->mw->rkey = rkey;
}

FIXTURE_TEARDOWN(inv)
{
	if (self->mw)
		EXPECT_OK(ibv_dealloc_mw(self->mw));
	buf_close(&self->buf);
	EXPECT_OK(bed_close(&self->bed));
}

static int write_window(FIXTURE_DATA(inv) *self)
{
	return RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		   .local = &self->bed.src, .rkey = self->mw->rkey,
		   .raddr = (uintptr_t)self->buf.addr);
}

TEST_F(inv, local_invalidate)
{
	ASSERT_DONE(write_window(self));
	ASSERT_DONE(RUN(self->bed.b, .op = IBV_WR_LOCAL_INV, .wr_id = 3,
			.inv_rkey = self->mw->rkey));
	EXPECT_EQ(IBV_WC_LOCAL_INV, self->bed.b->wc.opcode);
	EXPECT_EQ(3, self->bed.b->wc.wr_id);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_window(self));
}

TEST_F(inv, local_invalidate_frees_the_region)
{
	ASSERT_DONE(RUN(self->bed.b, .op = IBV_WR_LOCAL_INV,
			.inv_rkey = self->mw->rkey));
	ASSERT_OK(ibv_dereg_mr(self->buf.mr));
	self->buf.mr = NULL;
}

TEST_F(inv, send_with_invalidate)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	buf_fill(&bed->src, 1);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND_WITH_INV, .len = 100,
			.local = &bed->src, .inv_rkey = self->mw->rkey));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(IBV_WC_RECV, bed->b->rwc.opcode);
	EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_WITH_INV);
	EXPECT_FALSE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(self->mw->rkey, bed->b->rwc.invalidated_rkey);
	EXPECT_EQ(100, bed->b->rwc.byte_len);
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 100, 1, 0));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_window(self));
}

/*
 * IBTA 9.9.3, class J: the message may have been acknowledged before its key is
 * looked at, so the sender's status is open. The receive is told, and the
 * responder's queue pair goes to error.
 */
static int invalidate(FIXTURE_DATA(inv) *self, uint32_t rkey)
{
	struct bed *bed = &self->bed;
	int ret = post_recv(bed->b, &bed->dst, 0, LEN, 0);

	if (!ret)
		ret = POST(bed->a, .op = IBV_WR_SEND_WITH_INV, .len = 8,
			   .local = &bed->src, .inv_rkey = rkey);
	return ret ? -abs(ret) : wait_recv(bed->b);
}

/* A region that its owner registered is not the peer's to invalidate. */
TEST_F(inv, remote_cannot_invalidate_an_ordinary_region)
{
	struct bed *bed = &self->bed;
	struct pair other;

	EXPECT_LT(0, invalidate(self, self->buf.mr->rkey));
	EXPECT_OK(qp_wait(bed->b->qp, IBV_QPS_ERR));
	ASSERT_OK(bed_pair_open(bed, &other, NULL));
	ASSERT_OK(pair_connect(&other));
	EXPECT_DONE(RUN(&other.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			.local = &bed->src, .remote = &self->buf));
	EXPECT_OK(pair_close(&other));
}

TEST_F(inv, wrong_key_from_the_peer)
{
	EXPECT_LT(0, invalidate(self, self->mw->rkey ^ 0x40));
	EXPECT_OK(qp_wait(self->bed.b->qp, IBV_QPS_ERR));
}

TEST_F(inv, wrong_key_locally)
{
	int status = RUN(self->bed.b, .op = IBV_WR_LOCAL_INV,
			 .inv_rkey = self->mw->rkey ^ 0x40);

	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
}

/* A window that is not bound: an error or nothing to do, but an answer. */
TEST_F(inv, of_an_unbound_window)
{
	ASSERT_DONE(RUN(self->bed.b, .op = IBV_WR_LOCAL_INV,
			.inv_rkey = self->mw->rkey));
	EXPECT_LE(0, RUN(self->bed.b, .op = IBV_WR_LOCAL_INV,
			 .inv_rkey = self->mw->rkey));
}

TEST_HARNESS_MAIN
