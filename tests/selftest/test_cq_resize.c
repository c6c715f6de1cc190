// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_resize_cq: nothing is lost, a size that is too small is refused. */
#include <pthread.h>

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

#define MANY	500

/* One doorbell for them all: a thread goes on with what is too much for the caller. */
static int post_many(struct bed *bed, int first)
{
	struct ibv_sge sge = sge_of(&bed->src, 0, 8);
	struct ibv_send_wr *bad, *wr = calloc(MANY, sizeof(*wr));
	int i, ret;

	if (!wr)
		return -ENOMEM;
	for (i = 0; i < MANY; i++) {
		wr[i].wr_id = first + i;
		wr[i].next = i + 1 < MANY ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = (uintptr_t)bed->dst.addr;
		wr[i].wr.rdma.rkey = mr_at(bed->b, &bed->dst)->rkey;
	}
	ret = ibv_post_send(bed->a->qp, wr, &bad);
	free(wr);
	return ret;
}

/* Many are inside, more than are moved in one go, and more come in meanwhile. */
TEST_F(resize, many_are_moved_while_others_come)
{
	struct pair_opts opts = { .cqe = 2 * MANY, .max_wr = 2 * MANY };
	struct bed *bed = &self->bed;
	int i, next = 0;

	ASSERT_OK(bed_close(bed));
	ASSERT_OK(bed_open(bed, 4096, &opts));
	for (i = 0; i < 10 * MANY; i++) {
		if (i % (2 * MANY) == 0) {
			ASSERT_OK(post_many(bed, next));
			usleep(20000);	/* so that most are inside */
			ASSERT_OK(post_many(bed, next + MANY));
			next += 2 * MANY;
			ASSERT_OK(ibv_resize_cq(bed->a->scq, next % (4 * MANY) ? 8 * MANY :
						2 * MANY));
		}
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

/* Completions are missing: a queue of another size does not bring them back. */
TEST_F(resize, an_overflow_is_not_forgotten)
{
	struct bed *bed = &self->bed;
	struct ibv_async_event event;
	struct ibv_wc wc;
	int i, n;

	ASSERT_OK(post_writes(bed, 0, 200));	/* into 32 entries */
	ASSERT_EQ(IBV_EVENT_CQ_ERR, wait_event(bed->dev.ctx, &event));
	ASSERT_OK(ibv_resize_cq(bed->a->scq, 300));
	for (i = 0; (n = ibv_poll_cq(bed->a->scq, 1, &wc)) > 0; i++)
		ASSERT_EQ(i, wc.wr_id);
	EXPECT_LE(32, i);
	EXPECT_LT(n, 0);
}

struct resizer {
	struct ibv_cq *cq;
	bool stop;
	int ret;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;
	int i;

	for (i = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && !r->ret; i++)
		r->ret = ibv_resize_cq(r->cq, 256 << i % 3);
	return NULL;
}

/* Another thread posts and polls meanwhile: nothing is lost, and it gets its turn. */
TEST_F(resize, by_another_thread)
{
	struct bed *bed = &self->bed;
	struct resizer r = { .cq = bed->a->scq };
	pthread_t thread;
	int i;

	ASSERT_OK(pthread_create(&thread, NULL, resize_on, &r));
	for (i = 0; i < 2000; i++) {
		if (i % 16 == 0)
			ASSERT_OK(post_writes(bed, i, 16));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_OK(r.ret);
}

TEST_F(resize, beyond_the_limit_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_NE(0, ibv_resize_cq(bed->a->scq, bed->dev.attr->max_cqe + 1));
	EXPECT_NE(0, ibv_resize_cq(bed->a->scq, 0));
}

TEST_HARNESS_MAIN
