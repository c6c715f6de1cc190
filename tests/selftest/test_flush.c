// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FLUSH, which exists in the extended post alone, from rdma-core 45 on. */
#include "harness.h"

#ifdef HAVE_FLUSH

#define LEN		8192
#define ALL_ACCESS	(ACCESS_REMOTE | IBV_ACCESS_FLUSH_GLOBAL)

FIXTURE(flush)
{
	struct bed bed;
	struct buf buf;
};

FIXTURE_SETUP(flush)
{
	struct pair_opts opts = {
		.send_ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
		.access = ALL_ACCESS,
	};

	if (!dev_advertises(DEVICE_FLUSH_GLOBAL))
		SKIP(return, "the device does not advertise FLUSH");
	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
	ASSERT_OK(buf_open(&self->buf, self->bed.b->pd, LEN, 0, ALL_ACCESS));
}

FIXTURE_TEARDOWN(flush)
{
	buf_close(&self->buf);
	if (self->bed.a)
		EXPECT_OK(bed_close(&self->bed));
}

static int flush(struct bed *bed, uint32_t rkey, void *addr, size_t len,
		 uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = bed->a->qpx;
	int ret;

	ibv_wr_start(qp);
	qp->wr_id = 5;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, rkey, (uintptr_t)addr, len, type, level);
	ret = ibv_wr_complete(qp);
	return ret ? -abs(ret) : wait_send(bed->a);
}

TEST_F(flush, range)
{
	ASSERT_DONE(flush(&self->bed, self->buf.mr->rkey, self->buf.addr, LEN,
			  IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE));
	EXPECT_EQ(IBV_WC_FLUSH, self->bed.a->wc.opcode);
	EXPECT_EQ(5, self->bed.a->wc.wr_id);
}

TEST_F(flush, whole_region)
{
	ASSERT_DONE(flush(&self->bed, self->buf.mr->rkey, self->buf.addr, 0,
			  IBV_FLUSH_GLOBAL, IBV_FLUSH_MR));
}

/* Once the flush completed, the writes before it are visible. */
TEST_F(flush, after_writes)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_ex *qp = bed->a->qpx;

	buf_fill(&bed->src, 1);
	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, self->buf.mr->rkey, (uintptr_t)self->buf.addr);
	ibv_wr_set_sge(qp, bed->src.mr->lkey, (uintptr_t)bed->src.addr, LEN);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, self->buf.mr->rkey, (uintptr_t)self->buf.addr, LEN,
		     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ASSERT_OK(ibv_wr_complete(qp));
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_EQ(-1, buf_differs(&self->buf, 0, LEN, 1, 0));
}

TEST_F(flush, device_memory)
{
	struct ibv_alloc_dm_attr attr = { .length = LEN };
	struct side *b = self->bed.b;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	if (!self->bed.dev.ex.max_dm_size)
		SKIP(return, "the device has no memory of its own");
	dm = ibv_alloc_dm(b->dev->ctx, &attr);
	ASSERT_NE(NULL, dm);
	mr = ibv_reg_dm_mr(b->pd, dm, 8, LEN - 8, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	ASSERT_NE(NULL, mr);
	EXPECT_DONE(flush(&self->bed, mr->rkey, NULL, LEN - 8, IBV_FLUSH_GLOBAL,
			  IBV_FLUSH_RANGE));
	EXPECT_DONE(flush(&self->bed, mr->rkey, NULL, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, flush(&self->bed, mr->rkey, NULL, LEN,
						   IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_free_dm(dm));
}

TEST_F(flush, needs_the_right)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      flush(bed, bed->dst.mr->rkey, bed->dst.addr, LEN,
			    IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE));
}

TEST_F(flush, beyond_the_region_is_refused)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      flush(&self->bed, self->buf.mr->rkey, self->buf.addr,
			    LEN + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE));
}

TEST_F(flush, persistence_is_not_claimed_for_ordinary_memory)
{
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, self->bed.dst.addr, LEN,
			       ACCESS_REMOTE | IBV_ACCESS_FLUSH_PERSISTENT));
}

#else

TEST(flush)
{
	SKIP(return, "this libibverbs has no ibv_wr_flush()");
}

#endif

TEST_HARNESS_MAIN
