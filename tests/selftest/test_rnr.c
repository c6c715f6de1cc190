// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receiver not ready, and a peer that is not there. */
#include "harness.h"

BED(rnr, 8192);

BED(rnr_short, 4096, .rnr_timer = 1);

/* The shortest timer, 10 us: it leaves the receiver time to post. */
TEST_F(rnr_short, receive_comes_late)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .len = i + 1));
		usleep(500);
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, i));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(i + 1, bed->b->rwc.byte_len);
	}
}

/* rnr_retry = 7: it waits, however long, until a receive is posted. */
TEST_F(rnr, seven_waits_for_ever)
{
	struct bed *bed = &self->bed;

	buf_fill(&bed->src, 1);
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		       .len = 100));
	EXPECT_EQ(0, poll_stray(bed->a->scq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 8192, 0));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 100, 1, 0));
}

TEST_F(rnr, write_with_immediate_waits_too)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM, .len = 100,
		       .local = &bed->src, .remote = &bed->dst, .imm = 3));
	EXPECT_EQ(0, poll_stray(bed->a->scq));
	ASSERT_OK(post_recv(bed->b, NULL, 0, 0, 0));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_DONE(wait_recv(bed->b));
}

TEST_F(rnr, order_holds_over_the_wait)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .len = i + 1, .wr_id = i));
	for (i = 0; i < 20; i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, i));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_EQ(i + 1, bed->b->rwc.byte_len);
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
}

/* What needs no receive is not held up by the lack of one. */
TEST_F(rnr, writes_need_no_receive)
{
	struct bed *bed = &self->bed;

	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 100,
			.local = &bed->src, .remote = &bed->dst));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .len = 100,
			.local = &bed->src, .remote = &bed->dst));
}

TEST_F(rnr, queue_pair_can_be_destroyed_while_it_waits)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		       .len = 100));
	usleep(5000);
	ASSERT_OK(ibv_destroy_qp(bed->a->qp));
	bed->a->qp = NULL;
}

TEST_F(rnr, waiting_request_is_flushed)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		       .len = 100));
	usleep(5000);
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
	/* and one that did not wait */
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 100));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
}

#define BEHIND	30

/* Nothing can be done before the timer fires (code 30: 327.68 ms), so no post needs a doorbell. */
TEST(who_waits_need_not_ring)
{
	struct pair_opts opts = { .rnr_timer = 30 };
	struct bed bed = {};
	long long before;
	int i;

	ASSERT_OK(bed_open(&bed, 4096, &opts));
	ASSERT_OK(POST(bed.a, .op = IBV_WR_SEND, .local = &bed.src, .len = 1));
	before = statistic("doorbells");
	for (i = 1; i <= BEHIND; i++)
		EXPECT_OK(POST(bed.a, .op = IBV_WR_SEND, .local = &bed.src, .len = i + 1,
			       .wr_id = i));
	/* a few: the timer may fire meanwhile, and find again that it has to wait */
	if (!over_a_wire())
		EXPECT_LT(statistic("doorbells") - before, BEHIND / 2);
	for (i = 0; i <= BEHIND; i++)
		EXPECT_OK(post_recv(bed.b, &bed.dst, 0, 64, i));
	for (i = 0; i <= BEHIND; i++) {
		ASSERT_DONE(wait_send(bed.a));
		EXPECT_EQ(i, bed.a->wc.wr_id);
		ASSERT_DONE(wait_recv(bed.b));
		EXPECT_EQ(i + 1, bed.b->rwc.byte_len);
	}
	/* what comes after the wait rings again */
	EXPECT_DONE(RUN(bed.a, .op = IBV_WR_RDMA_WRITE, .len = 100, .local = &bed.src,
			.remote = &bed.dst));
	EXPECT_OK(bed_close(&bed));
}

FIXTURE(rnr_limit)
{
	struct bed bed;
};

FIXTURE_VARIANT(rnr_limit)
{
	uint8_t retry;
};

FIXTURE_VARIANT_ADD(rnr_limit, no_retry) { .retry = NO_RETRY };
FIXTURE_VARIANT_ADD(rnr_limit, one_retry) { .retry = 1 };
FIXTURE_VARIANT_ADD(rnr_limit, six_retries) { .retry = 6 };

FIXTURE_SETUP(rnr_limit)
{
	struct pair_opts opts = { .rnr_retry = variant->retry };

	ASSERT_OK(bed_open(&self->bed, 8192, &opts));
}

FIXTURE_TEARDOWN(rnr_limit)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(rnr_limit, ends_in_an_error_of_the_sender_alone)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		       .len = 100, .wr_id = 1));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		       .len = 100, .wr_id = 2));
	EXPECT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR, wait_send(bed->a));
	EXPECT_EQ(1, bed->a->wc.wr_id);
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
	EXPECT_EQ(2, bed->a->wc.wr_id);
	EXPECT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
}

/* The timer is the responder's: six waits of 81.92 ms (code 24) pass before. */
TEST(rnr_timer_is_kept)
{
	struct pair_opts opts = { .rnr_retry = 6, .rnr_timer = 24 };
	struct bed bed = {};
	struct timespec before, after;
	int64_t ms;

	ASSERT_OK(bed_open(&bed, 4096, &opts));
	clock_gettime(CLOCK_MONOTONIC, &before);
	EXPECT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR,
		      RUN(bed.a, .op = IBV_WR_SEND, .local = &bed.src,
			  .len = 8));
	clock_gettime(CLOCK_MONOTONIC, &after);
	ms = (after.tv_sec - before.tv_sec) * 1000 +
	     (after.tv_nsec - before.tv_nsec) / 1000000;
	/* a lower bound only: a slow bed takes longer, none takes less */
	EXPECT_GE(ms, 6 * 40);
	EXPECT_OK(bed_close(&bed));
}

FIXTURE(nobody)
{
	struct bed bed;
};

FIXTURE_SETUP(nobody)
{
	struct pair_opts opts = { .timeout = 8, .retry = 2 };

	ASSERT_OK(bed_open(&self->bed, 8192, &opts));
}

FIXTURE_TEARDOWN(nobody)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(nobody, destroyed_peer)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(ibv_destroy_qp(bed->b->qp));
	bed->b->qp = NULL;
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &bed->src, .remote = &bed->dst));
	EXPECT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 8192, 0));
}

TEST_F(nobody, peer_in_reset)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			  .local = &bed->src));
}

TEST_F(nobody, peer_in_error)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_READ, .len = 8,
			  .local = &bed->src, .remote = &bed->dst));
}

/* The peer's queue pair is connected, but to somebody else. */
TEST_F(nobody, peer_of_another)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = bed->pair.opts;
	struct side stranger = {};

	ASSERT_OK(side_open(&stranger, &bed->dev, &opts, false));
	ASSERT_OK(side_connect(&stranger, &opts, bed->b->qp->qp_num,
			       &bed->dev.gid));
	memset(bed->src.addr, 1, 8);
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			.local = &bed->dst, .remote = &bed->dst));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
	EXPECT_OK(side_close(&stranger));
}

/* It comes up while the sender retries: 8 tries of a second (code 18) each. */
TEST(peer_comes_up_late)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.timeout = 18, .retry = 7,
	});
	struct pair pair;
	struct bed bed;

	ASSERT_OK(bed_open(&bed, 4096, NULL));
	ASSERT_OK(bed_pair_open(&bed, &pair, &opts));
	ASSERT_OK(side_connect(&pair.a, &opts, pair.b.qp->qp_num,
			       &pair.b.dev->gid));
	ASSERT_OK(side_to_init(&pair.b, &opts));
	buf_fill(&bed.src, 4);
	ASSERT_OK(POST(&pair.a, .op = IBV_WR_RDMA_WRITE, .len = 4096,
		       .local = &bed.src, .remote = &bed.dst));
	EXPECT_EQ(0, poll_stray(pair.a.scq));
	ASSERT_OK(side_to_rtr(&pair.b, &opts, pair.a.qp->qp_num,
			      &pair.a.dev->gid));
	EXPECT_DONE(wait_send(&pair.a));
	EXPECT_EQ(-1, buf_differs(&bed.dst, 0, 4096, 4, 0));
	EXPECT_OK(pair_close(&pair));
	EXPECT_OK(bed_close(&bed));
}

TEST_HARNESS_MAIN
