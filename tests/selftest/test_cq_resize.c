// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_resize_cq: nothing is lost, a size that is too small is refused. */
#include "harness.h"

BED(resize, 4096, .cqe = 32, .max_wr = 256);

static int post_writes(struct bed *bed, int first, int n)
{
	int i, ret = 0;

	for (i = first; i < first + n && !ret; i++)
		ret = POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			   .local = &bed->src, .len = 8, .remote = &bed->dst);
	return ret;
}

/* A drained send queue has put all its completions into the queue. */
static int settle(struct bed *bed)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_qp_init_attr init;
	time_t end = time(NULL) + WAIT_SECONDS;

	if (ibv_modify_qp(bed->a->qp, &attr, IBV_QP_STATE))
		return -EIO;
	do {
		if (ibv_query_qp(bed->a->qp, &attr, IBV_QP_STATE, &init))
			return -EIO;
		usleep(1000);
	} while (attr.sq_draining && time(NULL) < end);
	return attr.sq_draining ? -ETIMEDOUT : qp_to(bed->a->qp, IBV_QPS_RTS);
}

TEST_F(resize, grows_with_completions_inside)
{
	struct bed *bed = &self->bed;
	int i;

	ASSERT_OK(post_writes(bed, 0, 20));
	usleep(20000);	/* so that most are inside */
	ASSERT_OK(ibv_resize_cq(bed->a->scq, 300));
	EXPECT_GE(bed->a->scq->cqe, 300);
	ASSERT_OK(post_writes(bed, 20, 200));
	for (i = 0; i < 220; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

TEST_F(resize, shrinks)
{
	struct bed *bed = &self->bed;
	int i;

	ASSERT_OK(ibv_resize_cq(bed->a->scq, 300));
	ASSERT_OK(post_writes(bed, 0, 5));
	usleep(20000);	/* so that most are inside */
	ASSERT_OK(ibv_resize_cq(bed->a->scq, 8));
	EXPECT_GE(bed->a->scq->cqe, 8);
	for (i = 0; i < 5; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
}

TEST_F(resize, too_small_for_what_is_inside_is_refused)
{
	struct bed *bed = &self->bed;
	int i;

	ASSERT_OK(post_writes(bed, 0, 30));
	ASSERT_OK(settle(bed));
	EXPECT_NE(0, ibv_resize_cq(bed->a->scq, 1));
	for (i = 0; i < 30; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
}

TEST_F(resize, after_wrapping_around)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 100; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE,
				.local = &bed->src, .len = 8,
				.remote = &bed->dst));
	ASSERT_OK(post_writes(bed, 0, 25));
	usleep(20000);	/* so that most are inside */
	ASSERT_OK(ibv_resize_cq(bed->a->scq, 64));
	for (i = 0; i < 25; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
}

TEST_F(resize, during_traffic)
{
	struct bed *bed = &self->bed;
	int i, next = 0, size;

	for (i = 0; i < 400; i++) {
		if (i + 16 > next) {
			ASSERT_OK(post_writes(bed, next, 16));
			next += 16;
			size = 64 + (next % 7) * 40;
			ASSERT_OK(ibv_resize_cq(bed->a->scq, size));
		}
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
}

TEST_F(resize, beyond_the_limit_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_NE(0, ibv_resize_cq(bed->a->scq, bed->dev.attr->max_cqe + 1));
	EXPECT_NE(0, ibv_resize_cq(bed->a->scq, 0));
}

TEST_HARNESS_MAIN
