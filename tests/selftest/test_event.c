// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Asynchronous events that no other program of the suite asks for. */
#include "harness.h"

BED(event, 4096);

TEST_F(event, none_in_peace)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
}

/* IBTA 11.6.3: the first packet in RTR tells that the connection stands. */
TEST_F(event, communication_established)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = bed->pair.opts;
	struct ibv_async_event event = {};
	struct pair pair;

	ASSERT_OK(bed_pair_open(bed, &pair, NULL));
	ASSERT_OK(side_to_init(&pair.b, &opts));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, 64, 0));
	ASSERT_OK(side_to_rtr(&pair.b, &opts, pair.a.qp->qp_num,
			      &pair.a.dev->gid));
	ASSERT_OK(side_connect(&pair.a, &opts, pair.b.qp->qp_num,
			       &pair.b.dev->gid));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_EQ(IBV_EVENT_COMM_EST, wait_event(pair.b.dev->ctx, &event));
	EXPECT_EQ(pair.b.qp, event.element.qp);
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_OK(pair_close(&pair));
}

/* Destroying an object waits until its events are acknowledged, no longer. */
TEST_F(event, unread_events_do_not_hold_an_object)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .srq = true };
	struct pair pair;

	ASSERT_OK(bed_pair_open(bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(qp_to(pair.b.qp, IBV_QPS_ERR));
	ASSERT_TRUE(readable(bed->b->dev->ctx->async_fd, WAIT_SECONDS * 1000));
	ASSERT_OK(ibv_destroy_qp(pair.b.qp));
	pair.b.qp = NULL;
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
	EXPECT_OK(pair_close(&pair));
}

/* An error of one context is no event of another. */
TEST_F(event, stays_in_its_context)
{
	struct bed *bed = &self->bed;
	struct ibv_context *other = dev_open_context();

	ASSERT_NE(NULL, other);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &bed->src, .remote = &bed->dst,
			  .rkey = ~0u));
	EXPECT_FALSE(readable(other->async_fd, 20));
	EXPECT_OK(ibv_close_device(other));
}

TEST_HARNESS_MAIN
