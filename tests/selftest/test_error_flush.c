// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Errors of a message, and their effect on all other requests. */
#include "harness.h"

#define LEN	8192

BED(flush, LEN);

TEST_F(flush, error_state_flushes_both_queues)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_OK(post_recv(bed->a, &bed->src, 0, 64, i));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
	for (i = 0; i < 10; i++) {
		ASSERT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->a));
		EXPECT_EQ(i, bed->a->rwc.wr_id);
		EXPECT_EQ(bed->a->qp->qp_num, bed->a->rwc.qp_num);
	}
	for (i = 0; i < 10; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .wr_id = i,
			       .local = &bed->src, .len = 8));
	for (i = 0; i < 10; i++) {
		ASSERT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
		EXPECT_EQ(i, bed->a->wc.wr_id);
	}
}

/* Unsignaled requests complete as well if they complete in error. */
TEST_F(flush, unsignaled_requests_are_flushed_visibly)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 8, .unsignaled = true));
}

TEST_F(flush, posting_in_error_completes_flushed)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
	ASSERT_OK(post_recv(bed->a, &bed->src, 0, 64, 3));
	ASSERT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->a));
	EXPECT_EQ(3, bed->a->rwc.wr_id);
}

/* Requests before the error are done, requests after it are flushed. */
TEST_F(flush, in_the_middle_of_the_queue)
{
	struct bed *bed = &self->bed;
	int i, status;

	memset(bed->src.addr, 7, LEN);
	for (i = 0; i < 9; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			       .local = &bed->src, .len = 8,
			       .remote = &bed->dst, .roff = i * 8,
			       .rkey = i == 4 ? ~0u : 0));
	for (i = 0; i < 9; i++) {
		status = i < 4 ? IBV_WC_SUCCESS :
			 i == 4 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR;
		ASSERT_STATUS(status, wait_send(bed->a));
		EXPECT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 32, 7));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 32, LEN - 32, 0));
}

TEST_F(flush, local_error_in_the_middle)
{
	struct bed *bed = &self->bed;
	int i, status;

	for (i = 0; i < 9; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			       .local = &bed->src, .len = 8,
			       .remote = &bed->dst, .roff = i * 8,
			       .lkey = i == 4 ? ~0u : 0));
	for (i = 0; i < 9; i++) {
		status = i < 4 ? IBV_WC_SUCCESS :
			 i == 4 ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR;
		ASSERT_STATUS(status, wait_send(bed->a));
		EXPECT_EQ(i, bed->a->wc.wr_id);
	}
}

/* IBTA 9.9.2: too long for the receive; both ends are told, both in error. */
TEST_F(flush, message_longer_than_the_receive)
{
	struct bed *bed = &self->bed;

	memset(bed->src.addr, 7, LEN);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 100, 1));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 100, 2));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 101));
	EXPECT_STATUS(IBV_WC_LOC_LEN_ERR, wait_recv(bed->b));
	EXPECT_EQ(1, bed->b->rwc.wr_id);
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->b));
	EXPECT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
	EXPECT_OK(qp_wait(bed->b->qp, IBV_QPS_ERR));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 100, LEN - 100, 0));
}

TEST_F(flush, long_message_into_a_short_receive)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 4096, 1));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = LEN));
	EXPECT_STATUS(IBV_WC_LOC_LEN_ERR, wait_recv(bed->b));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 4096, LEN - 4096, 0));
}

TEST_F(flush, no_event_until_the_last_wqe_is_an_srqs)
{
	ASSERT_OK(qp_to(self->bed.a->qp, IBV_QPS_ERR));
	EXPECT_FALSE(readable(self->bed.dev.ctx->async_fd, 20));
}

/* In the middle of a large transfer; nobody waits for ever. */
TEST_F(flush, error_during_traffic)
{
	struct bed *bed = &self->bed;
	int i, j, status, failed;

	for (i = 0; i < 20; i++) {
		failed = 0;
		for (j = 0; j < 30; j++)
			ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE,
				       .local = &bed->src, .len = LEN,
				       .remote = &bed->dst));
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
		for (j = 0; j < 30; j++) {
			status = wait_send(bed->a);
			ASSERT_TRUE(status == IBV_WC_SUCCESS ||
				    status == IBV_WC_WR_FLUSH_ERR);
			/* no success after the first flushed one */
			ASSERT_FALSE(failed && status == IBV_WC_SUCCESS);
			failed |= status;
		}
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
		ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
		ASSERT_OK(pair_connect(&bed->pair));
	}
}

TEST_F(flush, peer_destroyed_during_traffic)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .timeout = 8, .retry = 1 };
	struct pair pair;
	int i, j, status, failed;

	for (i = 0; i < 10; i++) {
		failed = 0;
		ASSERT_OK(bed_pair_open(bed, &pair, &opts));
		ASSERT_OK(pair_connect(&pair));
		for (j = 0; j < 30; j++)
			ASSERT_OK(POST(&pair.a, .op = IBV_WR_RDMA_WRITE,
				       .local = &bed->src, .len = LEN,
				       .remote = &bed->dst));
		ASSERT_OK(ibv_destroy_qp(pair.b.qp));
		pair.b.qp = NULL;
		for (j = 0; j < 30; j++) {
			status = wait_send(&pair.a);
			if (status && !failed++)
				EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR, status);
			else if (failed)
				EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, status);
		}
		EXPECT_OK(pair_close(&pair));
	}
}

TEST_HARNESS_MAIN
