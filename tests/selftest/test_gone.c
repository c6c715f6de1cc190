// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device goes while a process uses it: its calls say so, and what it has can be freed. */
#include <stdlib.h>

#include "harness.h"

#define DEVICE	"vrnic_gone"

FIXTURE(gone) {
	struct bed bed;
};

/* In a network namespace of the test's own, which also ends with it. */
FIXTURE_SETUP(gone)
{
	const struct pair_opts opts = { .srq = true, .max_wr = 16 };

	unsetenv("VRNIC_PEER_DEV");
	unsetenv("VRNIC_GID");
	ASSERT_OK(rdma_link_apart(DEVICE));
	ASSERT_OK(setenv("VRNIC_DEV", DEVICE, 1));
	ASSERT_OK(bed_open(&self->bed, 4096, &opts));
}

FIXTURE_TEARDOWN(gone)
{
	EXPECT_OK(bed_close(&self->bed));
}

static int take_device_away(void)
{
	return rdma_link_del(DEVICE);
}

TEST_F(gone, polls_say_so)
{
	struct bed *bed = &self->bed;
	struct ibv_wc wc;

	ASSERT_OK(take_device_away());
	EXPECT_GT(0, ibv_poll_cq(bed->a->scq, 1, &wc));
	EXPECT_GT(0, ibv_poll_cq(bed->b->rcq, 1, &wc));
}

/* What was complete before is not lost. */
TEST_F(gone, after_what_was_complete)
{
	struct bed *bed = &self->bed;
	struct ibv_wc wc;

	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			.remote = &bed->dst));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 5));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_OK(take_device_away());
	EXPECT_EQ(1, ibv_poll_cq(bed->b->rcq, 1, &wc));
	EXPECT_EQ(5, wc.wr_id);
	EXPECT_GT(0, ibv_poll_cq(bed->b->rcq, 1, &wc));
}

TEST_F(gone, posts_say_so)
{
	struct bed *bed = &self->bed;
	struct ibv_recv_wr *bad, wr = {};

	ASSERT_OK(take_device_away());
	EXPECT_EQ(EIO, POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			    .remote = &bed->dst));
	EXPECT_EQ(EIO, ibv_post_recv(bed->a->qp, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	EXPECT_EQ(EIO, ibv_post_srq_recv(bed->b->srq, &wr, &bad));
}

/* In the middle of a stream, when doorbells may wait. */
TEST_F(gone, a_stream_is_told)
{
	struct bed *bed = &self->bed;
	int i, ret = 0;

	for (i = 0; i < 64; i++) {
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			       .remote = &bed->dst));
		if (i % 8 == 7) {
			for (int k = 0; k < 8; k++)
				ASSERT_DONE(wait_send(bed->a));
		}
	}
	ASSERT_OK(take_device_away());
	for (i = 0; i < 8 && !ret; i++)
		ret = POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			   .remote = &bed->dst);
	EXPECT_EQ(EIO, ret);
	EXPECT_EQ(1, i);
}

TEST_HARNESS_MAIN
