// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion events: one for one request to be notified, none lost. */
#include "harness.h"

BED(channel, 8192, .channel = true);

static int write_one(struct bed *bed)
{
	return POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		    .local = &bed->src, .remote = &bed->dst);
}

TEST_F(channel, event_after_a_completion)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq = NULL;

	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 0));
	ASSERT_OK(write_one(bed));
	ASSERT_OK(wait_channel(bed->a->channel, &cq));
	EXPECT_EQ(bed->a->scq, cq);
	EXPECT_EQ(bed->a, (struct side *)cq->cq_context);
	/* the completion is there when the event is */
	EXPECT_EQ(1, ibv_poll_cq(bed->a->scq, 1, &bed->a->wc));
}

TEST_F(channel, no_event_without_asking)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(write_one(bed));
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_FALSE(readable(bed->a->channel->fd, 20));
}

TEST_F(channel, one_event_for_many_completions)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;
	int i;

	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 0));
	for (i = 0; i < 10; i++)
		ASSERT_OK(write_one(bed));
	for (i = 0; i < 10; i++)
		ASSERT_DONE(wait_send(bed->a));
	ASSERT_OK(wait_channel(bed->a->channel, &cq));
	EXPECT_FALSE(readable(bed->a->channel->fd, 20));
}

TEST_F(channel, asking_makes_no_event_for_what_was_taken)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(write_one(bed));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 0));
	EXPECT_FALSE(readable(bed->a->channel->fd, 20));
	ASSERT_OK(write_one(bed));
	ASSERT_OK(wait_channel(bed->a->channel, &cq));
}

/* A completion that nobody takes. When the sender has its own, the receiver has one. */
static enum ibv_wc_status receive_one(struct bed *bed, int flags)
{
	if (post_recv(bed->b, &bed->dst, 0, 64, 0))
		return IBV_WC_GENERAL_ERR;
	return RUN(bed->a, .op = IBV_WR_SEND, .len = 8, .local = &bed->src, .flags = flags);
}

/* A poll finds nothing, then one comes, then the program asks and sleeps: UCX polls no more. */
TEST_F(channel, asking_tells_of_one_that_came_before)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_EQ(0, ibv_poll_cq(bed->b->rcq, 1, &bed->b->wc));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	EXPECT_EQ(bed->b->rcq, cq);
	ASSERT_DONE(wait_recv(bed->b));
}

/* Most programs ask again before they poll. That is no reason for a second event. */
TEST_F(channel, one_that_an_event_told_of_is_not_told_again)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_FALSE(readable(bed->b->channel->fd, 20));
	/* but it is asked for still */
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	EXPECT_FALSE(readable(bed->b->channel->fd, 20));
}

TEST_F(channel, asking_for_solicited_ones_tells_of_those)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	EXPECT_FALSE(readable(bed->b->channel->fd, 20));
	ASSERT_DONE(receive_one(bed, IBV_SEND_SOLICITED));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	ASSERT_DONE(receive_one(bed, IBV_SEND_SOLICITED));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
}

/* The entries have other numbers in the new ring. */
TEST_F(channel, what_events_told_of_survives_a_resize)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_DONE(wait_recv(bed->b));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	ASSERT_OK(ibv_resize_cq(bed->b->rcq, 300));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_FALSE(readable(bed->b->channel->fd, 20));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	ASSERT_DONE(receive_one(bed, 0));
	ASSERT_OK(ibv_resize_cq(bed->b->rcq, 500));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
}

/* The classic loop: wait, ack, arm, drain. Nothing may be missed. */
TEST_F(channel, the_usual_loop_misses_nothing)
{
	struct bed *bed = &self->bed;
	struct ibv_wc wc[16];
	struct ibv_cq *cq;
	int done = 0, n, i;

	for (i = 0; i < 60; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, i));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	for (i = 0; i < 60; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .len = 8,
			       .local = &bed->src));
	while (done < 60) {
		ASSERT_OK(wait_channel(bed->b->channel, &cq));
		ASSERT_OK(ibv_req_notify_cq(cq, 0));
		while ((n = ibv_poll_cq(cq, 16, wc)) > 0)
			done += n;
		ASSERT_EQ(0, n);
	}
	EXPECT_EQ(60, done);
}

TEST_F(channel, ping_pong_on_events)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, i));
		ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .len = 8,
			       .local = &bed->src));
		ASSERT_OK(wait_channel(bed->b->channel, &cq));
		ASSERT_EQ(bed->b->rcq, cq);
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_DONE(wait_send(bed->a));
	}
}

TEST_F(channel, solicited_only)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 1));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_FALSE(readable(bed->b->channel->fd, 20));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src, .flags = IBV_SEND_SOLICITED));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	ASSERT_DONE(wait_recv(bed->b));
}

TEST_F(channel, solicited_write_with_immediate)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(post_recv(bed->b, NULL, 0, 0, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM,
			.flags = IBV_SEND_SOLICITED));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
}

/* An error is always worth an event. */
TEST_F(channel, solicited_only_tells_errors)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_ERR));
	ASSERT_OK(wait_channel(bed->b->channel, &cq));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->b));
}

/* Asked for any first, then for solicited only: any stays; IBTA 11.4.2.2. */
TEST_F(channel, next_is_not_weakened_to_solicited)
{
	struct bed *bed = &self->bed;
	struct ibv_cq *cq;

	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 1));
	ASSERT_OK(write_one(bed));
	ASSERT_OK(wait_channel(bed->a->channel, &cq));
}

TEST_F(channel, busy_while_queues_use_it)
{
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(self->bed.a->channel));
}

TEST_F(channel, non_blocking)
{
	struct bed *bed = &self->bed;
	int fd = bed->a->channel->fd;
	struct ibv_cq *cq;
	void *context;

	ASSERT_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	EXPECT_EQ(-1, ibv_get_cq_event(bed->a->channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
}

/* A queue that is destroyed takes its unread events with it. */
TEST_F(channel, destroyed_with_an_event_pending)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, 0));
	ASSERT_OK(write_one(bed));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_TRUE(readable(bed->a->channel->fd, WAIT_SECONDS * 1000));
	ASSERT_OK(ibv_destroy_qp(bed->a->qp));
	bed->a->qp = NULL;
	ASSERT_OK(ibv_destroy_cq(bed->a->scq));
	bed->a->scq = NULL;
	EXPECT_FALSE(readable(bed->a->channel->fd, 20));
}

TEST_HARNESS_MAIN
