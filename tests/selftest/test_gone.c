// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device goes while a process uses it: its calls say so, and what it has can be freed. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

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

#define PIECE	(1UL << 16)

static void *take_away_soon(void *arg)
{
	int *ret = arg;

	usleep(50000);
	*ret = take_device_away();
	return NULL;
}

/*
 * Until the device is gone. The core destroys the newest objects first: the region goes before the
 * queue pair, so what waits for pages may find that the region is not there. Return: 0, or what
 * else went wrong.
 */
static int write_until_gone(struct bed *bed, struct ibv_mr *mr, uint8_t *mem)
{
	struct request write = {
		.op = IBV_WR_RDMA_WRITE, .num_sge = 1, .raddr = (uintptr_t)mem + PIECE,
		.rkey = mr->rkey, .sgl = &(struct ibv_sge){ (uintptr_t)mem, PIECE, mr->lkey },
	};
	struct ibv_wc wc;
	int n, ret;

	for (;;) {
		madvise(mem, 2 * PIECE, MADV_DONTNEED);
		ret = post_request(bed->a, &write);
		if (ret)
			return ret == EIO ? 0 : ret;
		do {
			n = ibv_poll_cq(bed->a->scq, 1, &wc);
		} while (!n);
		if (n < 0)
			return 0;
		if (wc.status)
			return wc.status == IBV_WC_WR_FLUSH_ERR ||
			       wc.status == IBV_WC_LOC_PROT_ERR ? 0 : 1000 + wc.status;
	}
}

/* Each WRITE waits for pages at both ends, and the device goes meanwhile. */
TEST_F(gone, while_pages_come)
{
	struct bed *bed = &self->bed;
	uint8_t *mem = mmap(NULL, 2 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	struct ibv_mr *mr;
	pthread_t thread;
	int ret = -1;

	ASSERT_NE(MAP_FAILED, mem);
	mr = ibv_reg_mr(bed->a->pd, NULL, SIZE_MAX, ACCESS_REMOTE | IBV_ACCESS_ON_DEMAND);
	if (!mr && errno == EOPNOTSUPP)
		SKIP(return, "this kernel has no on-demand paging");
	ASSERT_NE(NULL, mr);
	ASSERT_OK(pthread_create(&thread, NULL, take_away_soon, &ret));
	EXPECT_OK(write_until_gone(bed, mr, mem));
	pthread_join(thread, NULL);
	EXPECT_OK(ret);
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(mem, 2 * PIECE);
}

/* A completion event waits for its time. */
TEST_F(gone, while_an_event_is_due)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 10, .cq_period = 65535 },
	};
	struct bed *bed = &self->bed;

	ASSERT_OK(ibv_modify_cq(bed->b->rcq, &attr));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 5));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_OK(take_device_away());
	usleep(100000);
}

TEST_HARNESS_MAIN
