// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Plain verbs and libvrnic on one device, one protection domain, one region. */
#include "native.h"

#define LEN	65536

FIXTURE(mixed)
{
	struct bed bed;		/* verbs: device, domain, a pair, buffers */
	struct vrnic_client *client;
	struct node a, b;	/* on the same device and domain */
};

FIXTURE_SETUP(mixed)
{
	struct node_info info;

	NEED_NATIVE();
	ASSERT_OK(bed_open(&self->bed, LEN, &(struct pair_opts){}));
	ASSERT_OK(vrnic_client_from_verbs(self->bed.dev.ctx, self->bed.dev.pd,
					  &self->client));
	self->a.client = self->client;
	self->b.client = self->client;
	ASSERT_OK(node_open(&self->a, LEN, NULL));
	ASSERT_OK(node_open(&self->b, LEN, NULL));
	info = node_info(&self->b);
	ASSERT_OK(node_join(&self->a, &info));
}

FIXTURE_TEARDOWN(mixed)
{
	if (!self->client)
		return;
	EXPECT_OK(node_close(&self->a));
	EXPECT_OK(node_close(&self->b));
	EXPECT_OK(vrnic_client_close(self->client));
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(mixed, client_is_what_it_was_made_of)
{
	EXPECT_EQ(self->bed.dev.ctx, vrnic_client_verbs(self->client));
	EXPECT_EQ(self->bed.dev.pd, vrnic_client_pd(self->client));
}

/* Halves of one region, by an RC WRITE and by a put. */
TEST_F(mixed, one_region_two_ways)
{
	struct bed *bed = &self->bed;
	uint32_t seed;

	for (seed = 0; seed < 100; seed++) {
		buf_fill(&bed->src, seed);
		memset(bed->dst.addr, 0, LEN);
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN / 2,
			       .local = &bed->src, .remote = &bed->dst));
		ASSERT_OK(vrnic_put(self->a.to, WR(.local = bed->src.addr + LEN / 2,
						   .mr = bed->src.mr, .length = LEN / 2,
						   .remote = (uintptr_t)bed->dst.addr + LEN / 2,
						   .rkey = bed->dst.mr->rkey),
				    DONE(.remote = self->a.counter)));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_OK(counter_done(self->a.counter));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, seed, 0));
	}
}

/* What one way brought, the other takes on. */
TEST_F(mixed, relay)
{
	struct bed *bed = &self->bed;

	buf_fill(&bed->src, 5);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &bed->src, .remote = &self->a.buf));
	ASSERT_OK(vrnic_put(self->a.to, WR(.local = self->a.buf.addr, .mr = self->a.buf.mr,
					   .length = LEN, .remote = self->a.peer.addr,
					   .rkey = self->a.peer.rkey),
			    DONE(.remote = self->a.counter)));
	ASSERT_OK(counter_done(self->a.counter));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .len = LEN,
			.local = &bed->dst, .remote = &self->b.buf));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 5, 0));
}

/* Verbs atomics and native ones on one word. */
TEST_F(mixed, atomics_of_both)
{
	struct bed *bed = &self->bed;
	int i, ret;

	for (i = 0; i < 200; i++) {
		/* each way has its own runner, and this ring may be full */
		while ((ret = vrnic_rmw(self->a.to, RMW(.op = VRNIC_RMW_ADD, .width = 8,
							.remote = (uintptr_t)bed->dst.addr,
							.rkey = bed->dst.mr->rkey, .operand = 1),
					DONE(.remote = self->a.counter))) == -EAGAIN)
			sched_yield();
		ASSERT_OK(ret);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
				.local = &bed->src, .remote = &bed->dst,
				.value = 1000));
	}
	ASSERT_OK(counter_done(self->a.counter));
	EXPECT_EQ(200 * 1001, *(uint64_t *)bed->dst.addr);
}

/* Each has its own state. */
TEST_F(mixed, queue_pair_in_error_does_not_touch_the_fifo)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_ERR));
	buf_fill(&self->a.buf, 6);
	ASSERT_OK(vrnic_put(self->a.to, WR(.local = self->a.buf.addr, .mr = self->a.buf.mr,
					   .length = LEN, .remote = self->a.peer.addr,
					   .rkey = self->a.peer.rkey),
			    DONE(.remote = self->a.counter)));
	ASSERT_OK(counter_done(self->a.counter));
	EXPECT_EQ(-1, buf_differs(&self->b.buf, 0, LEN, 6, 0));
}

/* The domain is in use: verbs say so. */
TEST_F(mixed, domain_is_busy)
{
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->bed.dev.pd));
}

/* Without a domain the client makes its own. */
TEST_F(mixed, own_domain)
{
	struct vrnic_client *client;
	struct node node = {};

	ASSERT_OK(vrnic_client_from_verbs(self->bed.dev.ctx, NULL, &client));
	ASSERT_NE(NULL, vrnic_client_pd(client));
	EXPECT_NE(self->bed.dev.pd, vrnic_client_pd(client));
	node.client = client;
	ASSERT_OK(node_open(&node, LEN, NULL));
	EXPECT_OK(node_close(&node));
	EXPECT_OK(vrnic_client_close(client));
}

TEST_HARNESS_MAIN
