// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: lifetime, polling, sharing, overflow. */
#include "harness.h"

BED(cq, 4096);

TEST_F(cq, has_at_least_the_entries_asked_for)
{
	static const int sizes[] = { 1, 2, 3, 16, 17, 255, 256, 1000, 4096 };
	struct ibv_cq *cq;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		cq = ibv_create_cq(self->bed.dev.ctx, sizes[i], NULL, NULL, 0);
		ASSERT_NE(NULL, cq);
		EXPECT_GE(cq->cqe, sizes[i]);
		EXPECT_OK(ibv_destroy_cq(cq));
	}
}

TEST_F(cq, senseless_arguments_are_refused)
{
	struct ibv_context *ctx = self->bed.dev.ctx;

	EXPECT_NULL(ibv_create_cq(ctx, 0, NULL, NULL, 0));
	EXPECT_NULL(ibv_create_cq(ctx, -1, NULL, NULL, 0));
	EXPECT_NULL(ibv_create_cq(ctx, 16, NULL, NULL, ctx->num_comp_vectors));
}

TEST_F(cq, many)
{
	struct ibv_cq *cq[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cq); i++) {
		cq[i] = ibv_create_cq(self->bed.dev.ctx, 16, NULL, NULL, 0);
		ASSERT_NE(NULL, cq[i]);
	}
	for (i = 0; i < ARRAY_SIZE(cq); i++)
		EXPECT_OK(ibv_destroy_cq(cq[i]));
}

TEST_F(cq, busy_while_a_queue_pair_uses_it)
{
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->bed.a->scq));
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->bed.a->rcq));
}

TEST_F(cq, empty_at_first)
{
	struct ibv_wc wc[4];

	EXPECT_EQ(0, ibv_poll_cq(self->bed.a->scq, 4, wc));
	EXPECT_EQ(0, ibv_poll_cq(self->bed.a->scq, 0, wc));
}

TEST_F(cq, poll_takes_several_in_order)
{
	struct bed *bed = &self->bed;
	struct ibv_wc wc[8];
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			       .local = &bed->src, .len = 8,
			       .remote = &bed->dst, .unsignaled = i < 4));
	/* the last one is there: all are */
	for (i = 4; i < 12; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	while (i < 20) {
		int n = ibv_poll_cq(bed->a->scq, 8, wc), j;

		ASSERT_GE(n, 0);
		ASSERT_LE(n, 8);
		for (j = 0; j < n; j++, i++)
			ASSERT_EQ(i, wc[j].wr_id);
	}
}

/* The ring is passed many times; nothing is lost, repeated or reordered. */
TEST_F(cq, wraps_around)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 3000; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
				.local = &bed->src, .len = 8,
				.remote = &bed->dst));
	EXPECT_EQ(2999, bed->a->wc.wr_id);
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

/* Two queue pairs on one queue: qp_num tells them apart. */
TEST_F(cq, shared_by_queue_pairs)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_init_attr attr = {
		.send_cq = bed->a->scq,
		.recv_cq = bed->a->scq,
		.qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct pair_opts opts = pair_defaults(NULL);
	struct side other = { .dev = &bed->dev, .pd = bed->dev.pd };

	other.qp = ibv_create_qp(bed->dev.pd, &attr);
	ASSERT_NE(NULL, other.qp);
	ASSERT_OK(side_connect(&other, &opts, other.qp->qp_num, &bed->dev.gid));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 8, .remote = &bed->dst));
	EXPECT_EQ(bed->a->qp->qp_num, bed->a->wc.qp_num);
	ASSERT_OK(POST(&other, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
		       .len = 8, .remote = &bed->dst));
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_EQ(other.qp->qp_num, bed->a->wc.qp_num);
	EXPECT_OK(ibv_destroy_qp(other.qp));
}

/* Completions of a destroyed queue pair do not come out of the queue. */
TEST_F(cq, forgets_a_destroyed_queue_pair)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
		       .len = 8, .remote = &bed->dst));
	usleep(20000);
	ASSERT_OK(ibv_destroy_qp(bed->a->qp));
	bed->a->qp = NULL;
	EXPECT_GE(poll_stray(bed->a->scq), 0);
}

static int overflow(struct bed *bed, struct ibv_cq *cq, struct side *side)
{
	struct pair_opts opts = pair_defaults(NULL);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { 2 * cq->cqe + 16, 1, 1, 1, 0 },
	};
	int i, ret;

	side->dev = &bed->dev;
	side->pd = bed->dev.pd;
	side->qp = ibv_create_qp(bed->dev.pd, &attr);
	if (!side->qp)
		return -errno;
	ret = side_connect(side, &opts, side->qp->qp_num, &bed->dev.gid);
	for (i = 0; i < 2 * cq->cqe + 16 && !ret; i++)
		ret = POST(side, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			   .local = &bed->src, .len = 8, .remote = &bed->dst);
	return ret;
}

TEST_F(cq, overflow_is_an_event_and_an_error)
{
	struct bed *bed = &self->bed;
	struct ibv_async_event event = {};
	struct side side = {};
	struct ibv_wc wc;
	int i, cqe;

	side.scq = ibv_create_cq(bed->dev.ctx, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, side.scq);
	cqe = side.scq->cqe;
	ASSERT_OK(overflow(bed, side.scq, &side));
	do {
		ASSERT_LE(0, wait_event(bed->dev.ctx, &event));
	} while (event.event_type == IBV_EVENT_QP_FATAL);
	EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
	EXPECT_EQ(side.scq, event.element.cq);
	EXPECT_OK(qp_wait(side.qp, IBV_QPS_ERR));
	/* what came before the overflow is not lost */
	for (i = 0; i < cqe; i++) {
		if (ibv_poll_cq(side.scq, 1, &wc) != 1)
			break;
		EXPECT_EQ(i, wc.wr_id);
	}
	EXPECT_OK(side_close(&side));
}

TEST_F(cq, overflow_leaves_others_alone)
{
	struct bed *bed = &self->bed;
	struct ibv_async_event event;
	struct side side = {};

	side.scq = ibv_create_cq(bed->dev.ctx, 1, NULL, NULL, 0);
	ASSERT_NE(NULL, side.scq);
	ASSERT_OK(overflow(bed, side.scq, &side));
	ASSERT_LE(0, wait_event(bed->dev.ctx, &event));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 8, .remote = &bed->dst));
	EXPECT_OK(side_close(&side));
}

TEST_HARNESS_MAIN
