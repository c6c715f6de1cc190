// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Programs that post until there is no room, and only then poll. As many requests as were
 * granted may be under way, and a request is under way until its completion was polled. So a
 * completion queue with as many entries does not overflow.
 */
#include "harness.h"

#define WRS	16
#define ROUNDS	40
#define MANY	5000	/* an end for what has none */

BED(burst, 4096, .max_wr = WRS, .cqe = WRS);

static uint32_t granted(struct side *side, bool send)
{
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr;

	if (ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &init))
		return 0;
	return send ? init.cap.max_send_wr : init.cap.max_recv_wr;
}

/* WRITEs until one is refused, each @every-th with a completion: how many, or -errno. */
static int write_until_full(struct bed *bed, int every)
{
	int n, ret = 0;

	for (n = 0; n < MANY && !ret; n++)
		ret = POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			   .remote = &bed->dst, .unsignaled = n % every != every - 1);
	return ret == ENOMEM ? n - 1 : -ret;
}

TEST_F(burst, posts_until_full_then_polls)
{
	struct bed *bed = &self->bed;
	int room = granted(bed->a, true);
	int i, n, round;

	ASSERT_LE(WRS, room);
	ASSERT_LE(room, bed->a->scq->cqe);
	for (round = 0; round < ROUNDS; round++) {
		n = write_until_full(bed, 1);
		ASSERT_EQ(room, n);
		for (i = 0; i < n; i++)
			ASSERT_DONE(wait_send(bed->a));
	}
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
}

/* One completion gives back all that were posted before it. */
TEST_F(burst, unsignaled_ones_are_counted)
{
	struct bed *bed = &self->bed;
	int room = granted(bed->a, true);
	int i, n, round;

	for (round = 0; round < ROUNDS; round++) {
		n = write_until_full(bed, 4);
		ASSERT_EQ(room, n);
		for (i = 0; i < n / 4; i++)
			ASSERT_DONE(wait_send(bed->a));
	}
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

TEST_F(burst, a_list_is_taken_up_to_what_was_granted)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sge = sge_of(&bed->src, 0, 8);
	struct ibv_send_wr wr[2 * WRS + 2] = {}, *bad = NULL;
	int i, room = granted(bed->a, true);

	ASSERT_LT(room, ARRAY_SIZE(wr));
	for (i = 0; i <= room; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i < room ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)bed->dst.addr, mr_at(bed->b, &bed->dst)->rkey },
		};
	ASSERT_EQ(ENOMEM, ibv_post_send(bed->a->qp, wr, &bad));
	EXPECT_EQ(&wr[room], bad);
	for (i = 0; i < room; i++) {
		ASSERT_DONE(wait_send(bed->a));
		EXPECT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

static int recv_until_full(struct bed *bed)
{
	int n, ret = 0;

	for (n = 0; n < MANY && !ret; n++)
		ret = post_recv(bed->b, &bed->dst, 0, 64, n);
	return ret == ENOMEM || ret == -ENOMEM ? n - 1 : -1;
}

TEST_F(burst, receives_until_full_then_polls)
{
	struct bed *bed = &self->bed;
	int room = granted(bed->b, false);
	int i, round;

	ASSERT_LE(room, bed->b->rcq->cqe);
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(room, recv_until_full(bed));
		for (i = 0; i < room; i++)
			ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
		EXPECT_EQ(0, recv_until_full(bed));
		for (i = 0; i < room; i++)
			ASSERT_DONE(wait_recv(bed->b));
	}
}

/* Whatever was under way when it failed. */
TEST_F(burst, all_is_free_after_reset)
{
	struct bed *bed = &self->bed;
	int room = granted(bed->a, true);

	ASSERT_EQ(room, write_until_full(bed, 2));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	ASSERT_OK(pair_connect(&bed->pair));
	EXPECT_EQ(room, write_until_full(bed, 2));
}

TEST_HARNESS_MAIN
