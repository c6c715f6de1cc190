// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Verbs are thread-safe: the same object from several threads, and many objects. */
#include <pthread.h>

#include "harness.h"

#define THREADS	4
#define ROUNDS	400
#define LEN	65536

BED(threads, LEN, .max_wr = 512, .cqe = 4096);

struct worker {
	struct bed *bed;
	int id;
	int done;
	int error;
	pthread_t thread;
};

static int run_workers(struct bed *bed, struct worker *w, void *(*fn)(void *))
{
	int i, ret = 0;

	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .bed = bed, .id = i };
		if (pthread_create(&w[i].thread, NULL, fn, &w[i]))
			return -EAGAIN;
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		ret |= w[i].error;
	}
	return ret;
}

/* Each thread posts to the one queue pair; a fetch-and-add counts them all. */
static void *post_to_one(void *arg)
{
	struct worker *w = arg;
	struct patience p = {};
	int ret;

	while (w->done < ROUNDS && still_patient(&p, w->done)) {
		ret = POST(w->bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			   .local = &w->bed->src, .loff = 64 * w->id,
			   .remote = &w->bed->dst, .value = 1,
			   .wr_id = w->id);
		if (!ret)
			w->done++;
		else if (ret == ENOMEM)
			sched_yield();
		else
			w->error = ret;
	}
	return NULL;
}

static void *poll_some(void *arg)
{
	struct worker *w = arg;
	struct patience p = {};
	struct ibv_wc wc;
	int n;

	while (w->done < THREADS * ROUNDS && still_patient(&p, w->done)) {
		n = ibv_poll_cq(w->bed->a->scq, 1, &wc);
		if (n > 0 && wc.status == IBV_WC_SUCCESS)
			w->done++;
		else if (n)
			w->error = EIO;
		else
			sched_yield();
	}
	return NULL;
}

TEST_F(threads, post_to_one_queue_pair)
{
	struct bed *bed = &self->bed;
	struct worker w[THREADS], poller = { .bed = bed };

	ASSERT_OK(pthread_create(&poller.thread, NULL, poll_some, &poller));
	EXPECT_OK(run_workers(bed, w, post_to_one));
	ASSERT_OK(pthread_join(poller.thread, NULL));
	EXPECT_OK(poller.error);
	EXPECT_EQ(THREADS * ROUNDS, poller.done);
	EXPECT_EQ(THREADS * ROUNDS, *(uint64_t *)bed->dst.addr);
}

static int shared_count;

static void *poll_shared(void *arg)
{
	struct worker *w = arg;
	struct patience p = {};
	struct ibv_wc wc[4];
	int n, count;

	while ((count = __atomic_load_n(&shared_count, __ATOMIC_RELAXED)) < ROUNDS &&
	       still_patient(&p, count)) {
		n = ibv_poll_cq(w->bed->a->scq, 4, wc);
		if (n < 0)
			w->error = EIO;
		else if (!n)
			sched_yield();
		else
			__atomic_fetch_add(&shared_count, n, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Several threads poll one queue: each completion is taken exactly once. */
TEST_F(threads, poll_one_completion_queue)
{
	struct bed *bed = &self->bed;
	struct worker w[THREADS];
	int i;

	shared_count = 0;
	for (i = 0; i < ROUNDS; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			       .local = &bed->src, .remote = &bed->dst));
	EXPECT_OK(run_workers(bed, w, poll_shared));
	EXPECT_EQ(ROUNDS, shared_count);
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

/* Everything made, used and destroyed, by all threads at once. */
static void *make_and_break(void *arg)
{
	struct worker *w = arg;
	struct pair pair;
	struct buf buf;
	int i;

	for (i = 0; i < 30 && !w->error; i++) {
		w->error = bed_pair_open(w->bed, &pair, NULL);
		if (w->error)
			break;
		w->error = pair_connect(&pair);
		if (!w->error)
			w->error = buf_open(&buf, w->bed->dev.pd, 5000, i,
					    ACCESS_REMOTE);
		if (!w->error) {
			buf_fill(&buf, i);
			w->error = RUN(&pair.a, .op = IBV_WR_RDMA_WRITE,
				       .local = &buf, .len = 5000,
				       .remote = &w->bed->dst,
				       .roff = w->id * 8192);
			if (!w->error &&
			    buf_differs(&w->bed->dst, w->id * 8192, 5000, i, 0) >= 0)
				w->error = EBADMSG;
			buf_close(&buf);
		}
		if (pair_close(&pair))
			w->error = EBUSY;
	}
	return NULL;
}

TEST_F(threads, make_and_break_objects)
{
	struct worker w[THREADS];

	EXPECT_OK(run_workers(&self->bed, w, make_and_break));
}

static void *modify(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < 100; i++)
		qp_to(w->bed->a->qp, (i + w->id) & 1 ? IBV_QPS_ERR :
						       IBV_QPS_RESET);
	return NULL;
}

/* States change under the feet of posters: errors, but no harm. */
TEST_F(threads, modify_one_queue_pair)
{
	struct bed *bed = &self->bed;
	struct worker w[THREADS];
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 100; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			       .local = &bed->src, .remote = &bed->dst));
	EXPECT_OK(run_workers(bed, w, modify));
	while (ibv_poll_cq(bed->a->scq, 1, &wc) > 0)
		;
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	while (ibv_poll_cq(bed->a->scq, 1, &wc) > 0)
		;
	ASSERT_OK(pair_connect(&bed->pair));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &bed->src, .remote = &bed->dst));
}

TEST_HARNESS_MAIN
