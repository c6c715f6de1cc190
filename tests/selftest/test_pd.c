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

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td, uint32_t mask)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td, .comp_mask = mask };

	return ibv_alloc_parent_domain(pd->context, &attr);
}

/* What a later version may know. */
TEST_F(pd, unknown_attributes_are_not_supported)
{
	struct ibv_td_init_attr td = { .comp_mask = 1U << 31 };

	errno = 0;
	EXPECT_NULL(parent_of(self->bed.dev.pd, NULL, 1U << 31));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_NULL(ibv_alloc_td(self->bed.dev.ctx, &td));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

/* A parent domain is the library's alone, but objects that are made in it need it. */
TEST_F(pd, busy_parent_domain)
{
	struct dev *dev = &self->bed.dev;
	struct ibv_td *td = ibv_alloc_td(dev->ctx, &(struct ibv_td_init_attr){});
	struct ibv_pd *parent;
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	ASSERT_NE(NULL, td);
	parent = parent_of(dev->pd, td, 0);
	ASSERT_NE(NULL, parent);
	EXPECT_EQ(EBUSY, ibv_dealloc_td(td));
	mr = ibv_reg_mr(parent, self->bed.src.addr, 64, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	ASSERT_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, dev->pd, NULL, 0, 0));
	mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
	ASSERT_NE(NULL, mw);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_dealloc_mw(mw));
	EXPECT_OK(ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_dealloc_td(td));
}

TEST_F(pd, busy_parent_domain_of_queues)
{
	struct dev *dev = &self->bed.dev;
	struct ibv_pd *parent = parent_of(dev->pd, NULL, 0);
	struct pair_opts opts = pair_defaults(&(struct pair_opts){ .type = IBV_QPT_UD });
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct side side = { .pd = parent };
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;

	ASSERT_NE(NULL, parent);
	srq = ibv_create_srq(parent, &srq_attr);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_destroy_srq(srq));
	cq_attr.parent_domain = parent;
	cq = ibv_create_cq_ex(dev->ctx, &cq_attr);
	ASSERT_NE(NULL, cq);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	ASSERT_OK(side_open(&side, dev, &opts, false));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	EXPECT_OK(side_close(&side));
	EXPECT_OK(ibv_dealloc_pd(parent));
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
