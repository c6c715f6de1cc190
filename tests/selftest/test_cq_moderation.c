// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Events that wait for several completions, or for some time: ibv_modify_cq(). */
#include <time.h>

#include "harness.h"

#define LONG_US		65535	/* the longest period */

#define OPTS		.channel = true, .cqe = 64

BED(moderation, 8192, OPTS);

static int moderate(struct bed *bed, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period },
	};

	return ibv_modify_cq(bed->b->rcq, &attr);
}

/* Completions that nobody takes. When the sender has its own, the receiver has one. */
static int receive(struct bed *bed, int n, int flags)
{
	int ret = 0;

	for (; n && !ret; n--) {
		ret = post_recv(bed->b, &bed->dst, 0, 64, 0);
		if (!ret)
			ret = RUN(bed->a, .op = IBV_WR_SEND, .len = 8, .local = &bed->src,
				  .flags = flags);
	}
	return ret;
}

static bool has_event(struct bed *bed)
{
	return readable(bed->b->channel->fd, 20);
}

static int get_event(struct bed *bed)
{
	struct ibv_cq *cq;

	return wait_channel(bed->b->channel, &cq);
}

static int take(struct bed *bed, int n)
{
	int ret = 0;

	for (; n && !ret; n--)
		ret = wait_recv(bed->b);
	return ret;
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ll + ts.tv_nsec / 1000;
}

TEST_F(moderation, limits_are_told)
{
	struct ibv_device_attr_ex attr;

	ASSERT_OK(ibv_query_device_ex(self->bed.b->qp->context, NULL, &attr));
	EXPECT_EQ(65535, attr.cq_mod_caps.max_cq_count);
	EXPECT_EQ(65535, attr.cq_mod_caps.max_cq_period);
}

TEST_F(moderation, an_event_for_a_number_of_completions)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 3, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
	/* one for each request to be notified, as ever */
	ASSERT_OK(receive(bed, 8, 0));
	EXPECT_FALSE(has_event(bed));
}

TEST_F(moderation, an_event_after_some_time)
{
	struct bed *bed = &self->bed;
	int64_t begin;

	ASSERT_OK(moderate(bed, 0, LONG_US));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	begin = now_us();
	ASSERT_OK(receive(bed, 3, 0));
	ASSERT_OK(get_event(bed));
	EXPECT_LE(LONG_US, now_us() - begin);
	ASSERT_OK(take(bed, 3));
	EXPECT_FALSE(has_event(bed));
}

TEST_F(moderation, whichever_comes_first)
{
	struct bed *bed = &self->bed;
	int64_t begin;
	int tries = 0;

	ASSERT_OK(moderate(bed, 50, 1000));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
	ASSERT_OK(take(bed, 1));
	/* a machine may be slow once, but not each time */
	ASSERT_OK(moderate(bed, 2, LONG_US));
	do {
		ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
		begin = now_us();
		ASSERT_OK(receive(bed, 2, 0));
		ASSERT_OK(get_event(bed));
		ASSERT_OK(take(bed, 2));
	} while (now_us() - begin >= LONG_US && ++tries < 100);
	EXPECT_GT(100, tries);
}

/* The time runs from the first completion, whatever comes after it. */
TEST_F(moderation, a_stream_does_not_put_it_off)
{
	struct bed *bed = &self->bed;
	int64_t begin = now_us();

	ASSERT_OK(moderate(bed, 0, 20000));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	while (!readable(bed->b->channel->fd, 0)) {
		ASSERT_OK(receive(bed, 1, 0));
		ASSERT_OK(take(bed, 1));
		ASSERT_GT(WAIT_SECONDS * 1000000ll, now_us() - begin);
	}
	ASSERT_OK(get_event(bed));
}

/* However soon it is polled: programs spin for it, and then fetch the event. */
TEST_F(moderation, one_is_at_once)
{
	struct bed *bed = &self->bed;
	int i;

	ASSERT_OK(moderate(bed, 1, 0));
	for (i = 0; i < 1000; i++) {
		ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .len = 8, .local = &bed->src));
		ASSERT_OK(take(bed, 1));
		ASSERT_OK(get_event(bed));
		ASSERT_DONE(wait_send(bed->a));
	}
}

/* Most programs ask again before they poll, and while more completions come. */
TEST_F(moderation, asking_again_does_not_hurry_it)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(receive(bed, 2, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
	/* these were told of: the next four count */
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 3, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, asking_tells_of_enough_that_came_before)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(receive(bed, 4, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(get_event(bed));
}

/* The time runs from the asking, if the completion came before that. */
TEST_F(moderation, asking_tells_of_a_few_after_some_time)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 1000));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, those_that_were_polled_do_not_count)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(receive(bed, 10, 0));
	ASSERT_OK(take(bed, 10));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 3, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, a_failure_does_not_wait)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 50, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 1, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_ERR));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, solicited_ones)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_OK(receive(bed, 6, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, IBV_SEND_SOLICITED));
	ASSERT_OK(get_event(bed));
	ASSERT_OK(take(bed, 7));
	/* the solicited one is the first of four; the others need not be */
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 1));
	ASSERT_OK(receive(bed, 1, IBV_SEND_SOLICITED));
	ASSERT_OK(receive(bed, 2, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, none_is_due_once_it_is_off)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 50, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 3, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(moderate(bed, 4, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(moderate(bed, 0, 0));
	ASSERT_OK(get_event(bed));
	ASSERT_OK(take(bed, 3));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, a_period_that_comes_later)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 50, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 3, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(moderate(bed, 50, 1000));
	ASSERT_OK(get_event(bed));
}

/* As there cannot be more completions than the queue has entries. */
TEST_F(moderation, no_more_than_the_queue_has)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 65535, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, bed->b->rcq->cqe - 1, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

TEST_F(moderation, a_resize_keeps_what_is_due)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 4, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 3, 0));
	ASSERT_OK(ibv_resize_cq(bed->b->rcq, 200));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(receive(bed, 1, 0));
	ASSERT_OK(get_event(bed));
}

/* More would not find room. */
TEST_F(moderation, a_smaller_queue_tells_of_what_fills_it)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(moderate(bed, 65535, 0));
	ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
	ASSERT_OK(receive(bed, 4, 0));
	EXPECT_FALSE(has_event(bed));
	ASSERT_OK(ibv_resize_cq(bed->b->rcq, 4));
	ASSERT_EQ(4, bed->b->rcq->cqe);
	ASSERT_OK(get_event(bed));
}

/* The timer runs while its queue goes, at different moments, some of them long before its end. */
TEST_F(moderation, destroyed_while_an_event_is_due)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_OK(moderate(bed, 50, i % 4 ? 1 + i * 10 : LONG_US));
		ASSERT_OK(ibv_req_notify_cq(bed->b->rcq, 0));
		ASSERT_OK(receive(bed, 1, 0));
		ASSERT_OK(ibv_destroy_qp(bed->b->qp));
		ASSERT_OK(ibv_destroy_cq(bed->b->rcq));
		bed->b->qp = NULL;
		bed->b->rcq = NULL;
		ASSERT_OK(bed_close(bed));
		ASSERT_OK(bed_open(bed, 8192, &(struct pair_opts){ OPTS }));
	}
}

TEST_F(moderation, what_cannot_be_changed)
{
	struct ibv_modify_cq_attr attr = {};

	EXPECT_EQ(EINVAL, ibv_modify_cq(self->bed.b->rcq, &attr));
	attr.attr_mask = IBV_CQ_ATTR_MODERATE | 1u << 30;
	EXPECT_EQ(EINVAL, ibv_modify_cq(self->bed.b->rcq, &attr));
}

TEST_HARNESS_MAIN
