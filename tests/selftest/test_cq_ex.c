// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Extended completion queues: ibv_start_poll and what it reads. */
#include "harness.h"

#define LEN	8192

FIXTURE(cq_ex)
{
	struct bed bed;
	struct ibv_cq_ex *scq, *rcq;	/* of a, and of b: one sends, one receives */
	struct side a, b;
	uint64_t flags;
};

static struct ibv_cq_ex *create(struct ibv_context *ctx, uint64_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = flags };

	return ibv_create_cq_ex(ctx, &attr);
}

static int create_qp(struct side *side, const struct side *like, struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = IBV_QPT_RC,
		.cap = { 32, 32, 2, 2, 0 },
	};

	side->dev = like->dev;
	side->peer = like->peer;
	side->pd = like->pd;
	side->qp = ibv_create_qp(side->pd, &attr);
	return side->qp ? 0 : -errno;
}

FIXTURE_SETUP(cq_ex)
{
	struct pair_opts opts = pair_defaults(NULL);
	struct bed *bed = &self->bed;
	struct dev *dev = &bed->dev;

	ASSERT_OK(bed_open(bed, LEN, NULL));
	self->flags = IBV_WC_STANDARD_FLAGS;
	if (dev->ex.completion_timestamp_mask)
		self->flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	self->scq = create(dev->ctx, self->flags);
	if (!self->scq && errno == EOPNOTSUPP)
		SKIP(return, "the provider has no extended completion queues");
	ASSERT_NE(NULL, self->scq);
	self->rcq = create(bed->b->dev->ctx, self->flags);
	ASSERT_NE(NULL, self->rcq);
	ASSERT_OK(create_qp(&self->a, bed->a, self->scq));
	ASSERT_OK(create_qp(&self->b, bed->b, self->rcq));
	ASSERT_OK(side_connect(&self->a, &opts, self->b.qp->qp_num,
			       &self->b.dev->gid));
	ASSERT_OK(side_connect(&self->b, &opts, self->a.qp->qp_num,
			       &self->a.dev->gid));
}

FIXTURE_TEARDOWN(cq_ex)
{
	if (self->a.qp)
		EXPECT_OK(ibv_destroy_qp(self->a.qp));
	if (self->b.qp)
		EXPECT_OK(ibv_destroy_qp(self->b.qp));
	if (self->scq)
		EXPECT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(self->scq)));
	if (self->rcq)
		EXPECT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(self->rcq)));
	EXPECT_OK(bed_close(&self->bed));
}

/* Start a poll, waiting for the first completion: 0 or an errno. */
static int start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};
	time_t end = time(NULL) + WAIT_SECONDS;
	int ret;

	while ((ret = ibv_start_poll(cq, &attr)) == ENOENT && time(NULL) <= end)
		usleep(100);
	return ret;
}

TEST_F(cq_ex, empty)
{
	struct ibv_poll_cq_attr attr = {};

	EXPECT_EQ(ENOENT, ibv_start_poll(self->scq, &attr));
}

TEST_F(cq_ex, unknown_attributes_are_refused)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	EXPECT_EQ(EINVAL, ibv_start_poll(self->scq, &attr));
}

TEST_F(cq_ex, fields_of_a_send)
{
	ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		       .wr_id = 0x1122334455667788, .local = &self->bed.src,
		       .remote = &self->bed.dst));
	ASSERT_OK(start(self->scq));
	EXPECT_EQ(0x1122334455667788, self->scq->wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, self->scq->status);
	EXPECT_EQ(IBV_WC_RDMA_WRITE, ibv_wc_read_opcode(self->scq));
	EXPECT_EQ(self->a.qp->qp_num, ibv_wc_read_qp_num(self->scq));
	EXPECT_EQ(ENOENT, ibv_next_poll(self->scq));
	ibv_end_poll(self->scq);
}

TEST_F(cq_ex, fields_of_a_receive)
{
	ASSERT_OK(post_recv(&self->b, &self->bed.dst, 0, LEN, 7));
	ASSERT_OK(POST(&self->a, .op = IBV_WR_SEND_WITH_IMM, .len = 1234,
		       .local = &self->bed.src, .imm = 0xcafe));
	ASSERT_OK(start(self->rcq));
	EXPECT_EQ(7, self->rcq->wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, self->rcq->status);
	EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(self->rcq));
	EXPECT_EQ(1234, ibv_wc_read_byte_len(self->rcq));
	EXPECT_EQ(htobe32(0xcafe), ibv_wc_read_imm_data(self->rcq));
	EXPECT_TRUE(ibv_wc_read_wc_flags(self->rcq) & IBV_WC_WITH_IMM);
	EXPECT_EQ(self->b.qp->qp_num, ibv_wc_read_qp_num(self->rcq));
	EXPECT_EQ(0, ibv_wc_read_slid(self->rcq));
	EXPECT_EQ(0, ibv_wc_read_sl(self->rcq));
	EXPECT_EQ(0, ibv_wc_read_dlid_path_bits(self->rcq));
	ibv_end_poll(self->rcq);
}

TEST_F(cq_ex, errors)
{
	ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE, .len = 8, .wr_id = 3,
		       .local = &self->bed.src, .remote = &self->bed.dst,
		       .rkey = ~0u));
	ASSERT_OK(start(self->scq));
	EXPECT_EQ(3, self->scq->wr_id);
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, self->scq->status);
	ibv_wc_read_vendor_err(self->scq);
	ibv_end_poll(self->scq);
}

TEST_F(cq_ex, several_in_one_poll)
{
	uint64_t ts = 0, last = 0;
	int i, n = 0, ret;

	for (i = 0; i < 16; i++)
		ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			       .wr_id = i, .local = &self->bed.src,
			       .remote = &self->bed.dst));
	while (n < 16) {
		ASSERT_OK(start(self->scq));
		do {
			ASSERT_EQ(n, self->scq->wr_id);
			if (self->flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
				ts = ibv_wc_read_completion_ts(self->scq);
			EXPECT_GE(ts, last);
			last = ts;
			n++;
			ret = ibv_next_poll(self->scq);
		} while (!ret);
		ASSERT_EQ(ENOENT, ret);
		ibv_end_poll(self->scq);
	}
}

/* The plain poll works on it too, and the two may take turns. */
TEST_F(cq_ex, mixed_with_plain_poll)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 200; i++) {
		ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			       .wr_id = i, .local = &self->bed.src,
			       .remote = &self->bed.dst));
		if (i & 1) {
			ASSERT_OK(poll_one(ibv_cq_ex_to_cq(self->scq), &wc));
			ASSERT_EQ(i, wc.wr_id);
		} else {
			ASSERT_OK(start(self->scq));
			ASSERT_EQ(i, self->scq->wr_id);
			ibv_end_poll(self->scq);
		}
	}
}

TEST_F(cq_ex, timestamp_moves_on)
{
	uint64_t first;

	if (!(self->flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
		SKIP(return, "the device does not advertise timestamps");
	ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE));
	ASSERT_OK(start(self->scq));
	first = ibv_wc_read_completion_ts(self->scq);
	ibv_end_poll(self->scq);
	EXPECT_NE(0, first);
	usleep(2000);
	ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE));
	ASSERT_OK(start(self->scq));
	EXPECT_GT(ibv_wc_read_completion_ts(self->scq), first);
	ibv_end_poll(self->scq);
}

/* In the same unit: a stamp lies between two looks at the clock before and after it. */
TEST_F(cq_ex, timestamps_are_of_the_raw_clock)
{
	struct ibv_values_ex before = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_values_ex after = before, unknown = { .comp_mask = 1U << 31 };
	uint64_t stamp;

	if (!(self->flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
		SKIP(return, "the device does not advertise timestamps");
	ASSERT_OK(ibv_query_rt_values_ex(self->bed.dev.ctx, &before));
	ASSERT_OK(POST(&self->a, .op = IBV_WR_RDMA_WRITE));
	ASSERT_OK(start(self->scq));
	stamp = ibv_wc_read_completion_ts(self->scq);
	ibv_end_poll(self->scq);
	ASSERT_OK(ibv_query_rt_values_ex(self->bed.dev.ctx, &after));
	EXPECT_EQ(0, before.raw_clock.tv_sec);
	EXPECT_LE(before.raw_clock.tv_nsec, stamp);
	EXPECT_LE(stamp, after.raw_clock.tv_nsec);
	EXPECT_EQ(EOPNOTSUPP, ibv_query_rt_values_ex(self->bed.dev.ctx, &unknown));
}

/* What the device does not have is not promised by a queue. */
TEST_F(cq_ex, unsupported_flags_are_refused)
{
	EXPECT_NULL(create(self->bed.dev.ctx, 1ULL << 40));
	EXPECT_NULL(create(self->bed.dev.ctx, IBV_WC_EX_WITH_CVLAN));
	EXPECT_NULL(create(self->bed.dev.ctx, IBV_WC_EX_WITH_TM_INFO));
}

TEST_HARNESS_MAIN
