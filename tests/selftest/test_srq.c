// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: limits, the limit event, sharing, draining. */
#include "harness.h"

BED(srq, 65536, .srq = true);

TEST_F(srq, query_tells_what_was_created)
{
	struct ibv_srq_attr attr = {};

	ASSERT_OK(ibv_query_srq(self->bed.b->srq, &attr));
	EXPECT_GE(attr.max_wr, 64);
	EXPECT_GE(attr.max_sge, 4);
	EXPECT_EQ(0, attr.srq_limit);
}

TEST_F(srq, numbers_differ)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *other = ibv_create_srq(self->bed.b->pd, &attr);
	uint32_t first, second, again;

	ASSERT_NE(NULL, other);
	ASSERT_OK(ibv_get_srq_num(self->bed.b->srq, &first));
	ASSERT_OK(ibv_get_srq_num(other, &second));
	EXPECT_NE(first, second);
	ASSERT_OK(ibv_get_srq_num(other, &again));
	EXPECT_EQ(second, again);
	EXPECT_OK(ibv_destroy_srq(other));
}

TEST_F(srq, beyond_the_limits_is_refused)
{
	struct ibv_device_attr *dev = self->bed.dev.attr;
	struct ibv_srq_init_attr attr = { .attr = { .max_sge = 1 } };

	attr.attr.max_wr = dev->max_srq_wr + 1;
	EXPECT_NULL(ibv_create_srq(self->bed.b->pd, &attr));
	attr.attr.max_wr = 16;
	attr.attr.max_sge = dev->max_srq_sge + 1;
	EXPECT_NULL(ibv_create_srq(self->bed.b->pd, &attr));
}

TEST_F(srq, largest_number_of_segments)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 16, .max_sge = self->bed.dev.attr->max_srq_sge },
	};
	struct ibv_srq *srq = ibv_create_srq(self->bed.b->pd, &attr);

	ASSERT_NE(NULL, srq);
	EXPECT_OK(ibv_destroy_srq(srq));
}

TEST_F(srq, busy_while_a_queue_pair_uses_it)
{
	EXPECT_EQ(EBUSY, ibv_destroy_srq(self->bed.b->srq));
}

TEST_F(srq, receives_cannot_be_posted_to_its_queue_pair)
{
	struct ibv_recv_wr wr = {}, *bad;

	EXPECT_NE(0, ibv_post_recv(self->bed.b->qp, &wr, &bad));
}

TEST_F(srq, limit_event_comes_once)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct ibv_async_event event = {};
	int i;

	for (i = 0; i < 8; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 64, 64, i));
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(4, attr.srq_limit);
	for (i = 0; i < 4; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
				.len = 64));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 64));
	ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED,
		  wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(bed->b->srq, event.element.srq);
	/* disarmed: the limit is zero again, and no second event comes */
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(0, attr.srq_limit);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 64));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
}

/* What has fallen below the limit before it is armed: of an empty queue, nothing more is taken. */
TEST_F(srq, limit_event_comes_at_once)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct bed *bed = &self->bed;
	struct ibv_async_event event;
	int i;

	for (i = 0; i < 2; i++) {
		attr.srq_limit = 2;
		ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
		ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, wait_event(bed->b->dev->ctx, &event));
		EXPECT_EQ(bed->b->srq, event.element.srq);
		ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
		EXPECT_EQ(0, attr.srq_limit);
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 64, 64, i));
	}
	/* as many as the limit are not below it */
	attr.srq_limit = 2;
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
	/* and 0 is no limit */
	attr.srq_limit = 0;
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
}

TEST_F(srq, limit_beyond_its_size_is_refused)
{
	struct ibv_srq_attr attr = {};

	ASSERT_OK(ibv_query_srq(self->bed.b->srq, &attr));
	attr.srq_limit = attr.max_wr + 1;
	EXPECT_NE(0, ibv_modify_srq(self->bed.b->srq, &attr, IBV_SRQ_LIMIT));
}

#define SENDERS	4

static int open_more(struct bed *bed, struct side *a, struct side *b)
{
	struct pair_opts opts = bed->pair.opts;
	struct ibv_qp_init_attr attr = {
		.send_cq = bed->b->scq, .recv_cq = bed->b->rcq,
		.srq = bed->b->srq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 0, 1, 0, 0 },
	};
	int ret = side_open(a, bed->a->dev, &opts, false);

	b->dev = bed->b->dev;
	b->pd = bed->b->pd;
	b->qp = ibv_create_qp(b->pd, &attr);
	if (ret || !b->qp)
		return -EIO;
	ret = side_connect(a, &opts, b->qp->qp_num, &b->dev->gid);
	return ret ? ret : side_connect(b, &opts, a->qp->qp_num, &a->dev->gid);
}

/* The one of @b that has @qpn, or SENDERS. */
static int whose(const struct side *b, uint32_t qpn)
{
	int s = 0;

	while (s < SENDERS && b[s].qp->qp_num != qpn)
		s++;
	return s;
}

/*
 * Each message goes to one receive, whichever queue pair it came by. The receives are
 * taken in order, but queue pairs that work on different processors end theirs in any:
 * only those of one queue pair complete in the order in which they were posted.
 */
TEST_F(srq, shared_by_several_queue_pairs)
{
	struct bed *bed = &self->bed;
	struct side a[SENDERS] = {}, b[SENDERS] = {};
	int i, s, seen[SENDERS] = {}, last[SENDERS];
	bool done[40] = {};
	uint64_t id;

	for (s = 0; s < SENDERS; s++)
		ASSERT_OK(open_more(bed, &a[s], &b[s]));
	for (i = 0; i < 40; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 64, 64, i));
	for (s = 0; s < SENDERS; s++) {
		memset(bed->src.addr + s * 64, s + 1, 64);
		last[s] = -1;
	}
	for (i = 0; i < 40; i++)
		ASSERT_OK(POST(&a[i % SENDERS], .op = IBV_WR_SEND, .len = 64,
			       .local = &bed->src, .loff = i % SENDERS * 64));
	for (i = 0; i < 40; i++) {
		ASSERT_DONE(wait_recv(bed->b));
		id = bed->b->rwc.wr_id;
		ASSERT_LT(id, 40);
		EXPECT_FALSE(done[id]);
		done[id] = true;
		s = whose(b, bed->b->rwc.qp_num);
		ASSERT_LT(s, SENDERS);
		EXPECT_LT(last[s], (int)id);
		last[s] = id;
		EXPECT_EQ(-1, buf_is_not(&bed->dst, id * 64, 64, s + 1));
		seen[s]++;
	}
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
	for (s = 0; s < SENDERS; s++) {
		EXPECT_EQ(10, seen[s]);
		EXPECT_OK(ibv_destroy_qp(b[s].qp));
		EXPECT_OK(side_close(&a[s]));
	}
}

/* An error takes the queue pair down, not the receives of the others. */
TEST_F(srq, survives_a_queue_pair_in_error)
{
	struct bed *bed = &self->bed;
	struct ibv_async_event event = {};
	struct side a = {}, b = {};

	ASSERT_OK(open_more(bed, &a, &b));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 5));
	ASSERT_OK(qp_to(b.qp, IBV_QPS_ERR));
	ASSERT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED,
		  wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(b.qp, event.element.qp);
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 64));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(5, bed->b->rwc.wr_id);
	EXPECT_OK(ibv_destroy_qp(b.qp));
	EXPECT_OK(side_close(&a));
}

TEST_HARNESS_MAIN
