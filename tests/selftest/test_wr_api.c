// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The extended post: ibv_wr_start, builders, ibv_wr_complete or abort. */
#include "harness.h"

#define LEN	8192
#define OPS	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
		 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

FIXTURE(wr)
{
	struct bed bed;
	struct ibv_qp_ex *qp;
	struct buf *src, *dst;
};

FIXTURE_SETUP(wr)
{
	struct pair_opts opts = { .send_ops = OPS, .max_inline = 64 };

	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
	self->qp = self->bed.a->qpx;
	self->src = &self->bed.src;
	self->dst = &self->bed.dst;
	ASSERT_NE(NULL, self->qp);
	buf_fill(self->src, 1);
}

FIXTURE_TEARDOWN(wr)
{
	EXPECT_OK(bed_close(&self->bed));
}

static void begin(FIXTURE_DATA(wr) *self, uint64_t wr_id)
{
	ibv_wr_start(self->qp);
	self->qp->wr_id = wr_id;
	self->qp->wr_flags = IBV_SEND_SIGNALED;
}

static void source(FIXTURE_DATA(wr) *self, size_t off, size_t len)
{
	ibv_wr_set_sge(self->qp, self->src->mr->lkey,
		       (uintptr_t)self->src->addr + off, len);
}

static uint64_t target(FIXTURE_DATA(wr) *self, size_t off)
{
	return (uintptr_t)self->dst->addr + off;
}

static int finish(FIXTURE_DATA(wr) *self)
{
	int ret = ibv_wr_complete(self->qp);

	return ret ? -abs(ret) : wait_send(self->bed.a);
}

TEST_F(wr, rdma_write)
{
	begin(self, 5);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	source(self, 0, 1000);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(5, self->bed.a->wc.wr_id);
	EXPECT_EQ(IBV_WC_RDMA_WRITE, self->bed.a->wc.opcode);
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 1000, 1, 0));
}

TEST_F(wr, rdma_write_imm)
{
	ASSERT_OK(post_recv(self->bed.b, NULL, 0, 0, 0));
	begin(self, 5);
	ibv_wr_rdma_write_imm(self->qp, self->dst->mr->rkey, target(self, 0),
			      htobe32(99));
	source(self, 0, 1000);
	ASSERT_DONE(finish(self));
	ASSERT_DONE(wait_recv(self->bed.b));
	EXPECT_EQ(htobe32(99), self->bed.b->rwc.imm_data);
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 1000, 1, 0));
}

TEST_F(wr, rdma_read)
{
	begin(self, 6);
	ibv_wr_rdma_read(self->qp, mr_at(self->bed.b, self->src)->rkey,
			 (uintptr_t)self->src->addr);
	ibv_wr_set_sge(self->qp, mr_at(self->bed.a, self->dst)->lkey,
		       target(self, 0), 1000);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(IBV_WC_RDMA_READ, self->bed.a->wc.opcode);
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 1000, 1, 0));
}

TEST_F(wr, send_and_send_imm)
{
	ASSERT_OK(post_recv(self->bed.b, self->dst, 0, 4096, 0));
	ASSERT_OK(post_recv(self->bed.b, self->dst, 4096, 4096, 1));
	begin(self, 7);
	ibv_wr_send(self->qp);
	source(self, 0, 100);
	self->qp->wr_id = 8;
	ibv_wr_send_imm(self->qp, htobe32(0));
	source(self, 100, 200);
	ASSERT_DONE(finish(self));
	ASSERT_DONE(wait_send(self->bed.a));
	EXPECT_EQ(8, self->bed.a->wc.wr_id);
	ASSERT_DONE(wait_recv(self->bed.b));
	EXPECT_FALSE(self->bed.b->rwc.wc_flags & IBV_WC_WITH_IMM);
	ASSERT_DONE(wait_recv(self->bed.b));
	EXPECT_TRUE(self->bed.b->rwc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 100, 1, 0));
	EXPECT_EQ(-1, buf_differs(self->dst, 4096, 200, 1, 100));
}

TEST_F(wr, atomics)
{
	uint64_t *word = (uint64_t *)self->dst->addr;

	*word = 10;
	begin(self, 1);
	ibv_wr_atomic_fetch_add(self->qp, self->dst->mr->rkey, target(self, 0),
				5);
	source(self, 0, 8);
	ibv_wr_atomic_cmp_swp(self->qp, self->dst->mr->rkey, target(self, 0),
			      15, 77);
	source(self, 8, 8);
	ASSERT_DONE(finish(self));
	ASSERT_DONE(wait_send(self->bed.a));
	EXPECT_EQ(77, *word);
	EXPECT_EQ(10, *(uint64_t *)self->src->addr);
	EXPECT_EQ(15, *(uint64_t *)(self->src->addr + 8));
}

TEST_F(wr, inline_data)
{
	begin(self, 1);
	self->qp->wr_flags |= IBV_SEND_INLINE;
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	ibv_wr_set_inline_data(self->qp, self->src->addr, 64);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 64, 1, 0));
}

TEST_F(wr, inline_data_list)
{
	struct ibv_data_buf list[3] = {
		{ self->src->addr, 10 }, { self->src->addr + 100, 0 },
		{ self->src->addr + 200, 20 },
	};

	begin(self, 1);
	self->qp->wr_flags |= IBV_SEND_INLINE;
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	ibv_wr_set_inline_data_list(self->qp, 3, list);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 10, 1, 0));
	EXPECT_EQ(-1, buf_differs(self->dst, 10, 20, 1, 200));
}

TEST_F(wr, segment_list)
{
	struct ibv_sge sgl[3] = {
		sge_of(self->src, 0, 100), sge_of(self->src, 4000, 300),
		sge_of(self->src, 2000, 200),
	};

	begin(self, 1);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	ibv_wr_set_sge_list(self->qp, 3, sgl);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 100, 1, 0));
	EXPECT_EQ(-1, buf_differs(self->dst, 100, 300, 1, 4000));
	EXPECT_EQ(-1, buf_differs(self->dst, 400, 200, 1, 2000));
}

TEST_F(wr, without_segments)
{
	begin(self, 9);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	ibv_wr_set_sge_list(self->qp, 0, NULL);
	ASSERT_DONE(finish(self));
}

TEST_F(wr, several_requests_at_once)
{
	int i;

	begin(self, 0);
	for (i = 0; i < 20; i++) {
		self->qp->wr_id = i;
		self->qp->wr_flags = i == 19 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(self->qp, self->dst->mr->rkey,
				  target(self, i * 100));
		source(self, i * 100, 100);
	}
	ASSERT_DONE(finish(self));
	EXPECT_EQ(19, self->bed.a->wc.wr_id);
	EXPECT_EQ(-1, buf_differs(self->dst, 0, 2000, 1, 0));
	EXPECT_EQ(0, poll_stray(self->bed.a->scq));
}

TEST_F(wr, aborted_requests_do_not_run)
{
	int i;

	for (i = 0; i < 300; i++) {
		begin(self, 1);
		ibv_wr_rdma_write(self->qp, self->dst->mr->rkey,
				  target(self, 0));
		source(self, 0, 1000);
		ibv_wr_abort(self->qp);
	}
	begin(self, 2);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 4096));
	source(self, 0, 8);
	ASSERT_DONE(finish(self));
	EXPECT_EQ(2, self->bed.a->wc.wr_id);
	EXPECT_EQ(-1, buf_is_not(self->dst, 0, 4096, 0));
	EXPECT_EQ(0, poll_stray(self->bed.a->scq));
}

/* An error in one request makes the whole batch void. */
TEST_F(wr, too_much_inline_data_voids_the_batch)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_OK(ibv_query_qp(self->bed.a->qp, &attr, IBV_QP_CAP, &init));
	ASSERT_LT(init.cap.max_inline_data, LEN);
	begin(self, 1);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	source(self, 0, 8);
	self->qp->wr_flags |= IBV_SEND_INLINE;
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	ibv_wr_set_inline_data(self->qp, self->src->addr,
			       init.cap.max_inline_data + 1);
	EXPECT_NE(0, ibv_wr_complete(self->qp));
	EXPECT_EQ(0, poll_stray(self->bed.a->scq));
	EXPECT_EQ(-1, buf_is_not(self->dst, 0, LEN, 0));
}

TEST_F(wr, full_queue_is_told_by_complete)
{
	int i;

	ibv_wr_start(self->qp);
	for (i = 0; i < 70000; i++) {
		self->qp->wr_flags = 0;
		ibv_wr_rdma_write(self->qp, self->dst->mr->rkey,
				  target(self, 0));
		source(self, 0, 8);
	}
	EXPECT_NE(0, ibv_wr_complete(self->qp));
	begin(self, 3);
	ibv_wr_rdma_write(self->qp, self->dst->mr->rkey, target(self, 0));
	source(self, 0, 8);
	ASSERT_DONE(finish(self));
}

/* Both ways of posting share one queue. */
TEST_F(wr, mixed_with_plain_post)
{
	int i;

	for (i = 0; i < 200; i++) {
		begin(self, 2 * i);
		ibv_wr_rdma_write(self->qp, self->dst->mr->rkey,
				  target(self, 0));
		source(self, 0, 8);
		ASSERT_DONE(finish(self));
		ASSERT_EQ(2 * i, self->bed.a->wc.wr_id);
		ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
				.wr_id = 2 * i + 1, .local = self->src,
				.remote = self->dst));
		ASSERT_EQ(2 * i + 1, self->bed.a->wc.wr_id);
	}
}

FIXTURE(wr_ud)
{
	struct bed bed;
};

FIXTURE_SETUP(wr_ud)
{
	struct pair_opts opts = {
		.type = IBV_QPT_UD,
		.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
}

FIXTURE_TEARDOWN(wr_ud)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(wr_ud, send)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_ex *qp = bed->a->qpx;

	buf_fill(&bed->src, 1);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(qp, htobe32(5));
	ibv_wr_set_ud_addr(qp, bed->a->ah, bed->b->qp->qp_num, UD_QKEY);
	ibv_wr_set_sge(qp, bed->src.mr->lkey, (uintptr_t)bed->src.addr, 300);
	ASSERT_OK(ibv_wr_complete(qp));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(htobe32(5), bed->b->rwc.imm_data);
	EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, 300, 1, 0));
}

/* IBTA: a datagram queue pair has no RDMA; it is refused at creation. */
TEST(ud_has_no_rdma_operations)
{
	struct pair_opts opts = {
		.type = IBV_QPT_UD, .send_ops = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct pair pair;
	struct dev dev;

	ASSERT_OK(dev_open(&dev));
	EXPECT_NE(0, pair_open(&pair, &dev, &opts));
	dev_close(&dev);
}

TEST_HARNESS_MAIN
