// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests in bursts and pauses of random length: the runner of the ring comes
 * and goes all the while, and must leave no request behind when it goes.
 */
#include "harness.h"

#define LEN	4096
#define DEPTH	64
#define ROUNDS	4000

BED(stream, LEN, .max_wr = DEPTH, .cqe = 2 * DEPTH);

/* Up to about 200 us, without a system call. */
static void pause_for(unsigned int turns)
{
	volatile unsigned int i;

	for (i = 0; i < turns; i++)
		;
}

/* Only the last request of a burst is signaled: nothing else would wake us. */
static int burst(struct side *side, struct bed *bed, unsigned int n)
{
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = POST(side, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			   .loff = 8 * i, .len = 8, .remote = &bed->dst,
			   .roff = 8 * i, .unsignaled = i + 1 < n, .wr_id = i);
		if (ret)
			return ret;
	}
	return wait_send(side);
}

TEST_F(stream, bursts_and_pauses)
{
	struct bed *bed = &self->bed;
	unsigned int round, n;

	srand(1);
	buf_fill(&bed->src, 1);
	for (round = 0; round < ROUNDS; round++) {
		n = 1 + rand() % (DEPTH / 2);
		ASSERT_DONE(burst(bed->a, bed, n));
		ASSERT_EQ(n - 1, bed->a->wc.wr_id);
		pause_for(rand() % 4 ? 0 : rand() % 200000);
	}
	EXPECT_EQ(0, memcmp(bed->src.addr, bed->dst.addr, 8 * DEPTH / 2));
}

/* Take what is there; the number of requests that it stands for. */
static unsigned int reap(struct ibv_cq *cq, struct ibv_wc *wc)
{
	return ibv_poll_cq(cq, 1, wc) == 1 ? DEPTH / 4 : 0;
}

/*
 * Nothing but posting, of @total requests, with up to @depth under way; and pauses, of
 * @turns at most: 0 or a negative errno.
 */
static int post_quickly(struct bed *bed, unsigned int total, unsigned int depth,
			unsigned int turns)
{
	struct ibv_sge sge = sge_of(&bed->src, 0, 8);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma.remote_addr = (uintptr_t)bed->dst.addr,
		.wr.rdma.rkey = bed->dst.mr->rkey,
	};
	struct patience p = {};
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	unsigned int posted = 0, done = 0;

	while (posted < total) {
		wr.send_flags = ++posted % (DEPTH / 4) ? 0 : IBV_SEND_SIGNALED;
		if (ibv_post_send(bed->a->qp, &wr, &bad))
			return -ENOMEM;
		while (posted - done > depth && still_patient(&p, done))
			done += reap(bed->a->scq, &wc);
		if (posted - done > depth)
			return -ETIMEDOUT;
		if (wc.status != IBV_WC_SUCCESS)
			return -EIO;
		if (turns && posted % 4096 == 0)
			pause_for(rand() % turns);
	}
	return 0;
}

/*
 * So quick that a thread takes the ring over, on machines that have a CPU for it. The
 * pauses have it leave again.
 */
TEST_F(stream, posted_as_fast_as_it_goes)
{
	ASSERT_OK(post_quickly(&self->bed, 20 * ROUNDS, DEPTH / 2, 200000));
}

#define TIMED	4	/* bursts */

/*
 * A period of the gathering in which several requests are done here: the usual one, but
 * where that is shorter, as on a debug kernel, every stream would end at once.
 */
static long period_for(struct bed *bed, long usual)
{
	struct timespec from, to;
	unsigned int i;
	long us;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < TIMED; i++)
		if (burst(bed->a, bed, DEPTH / 2))
			return -EIO;
	clock_gettime(CLOCK_MONOTONIC, &to);
	us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
	return 8 * us / (TIMED * DEPTH / 2) > usual ? 100000 : usual;
}

/* A stream needs fewer system calls than it has requests. */
TEST_F(stream, doorbells_are_gathered)
{
	long usual = module_param("gather_us");
	struct bed *bed = &self->bed;
	int status = IBV_WC_SUCCESS;
	unsigned int round;
	long long before;
	long period;

	if (statistic("doorbells") < 0)
		SKIP(return, "%s does not count doorbells", dev_name());
	ASSERT_LE(0, usual);
	buf_fill(&bed->src, 1);
	period = period_for(bed, usual);
	ASSERT_LE(0, period);
	TH_LOG("periods of %ld us", period);
	ASSERT_OK(set_module_param("gather_us", period));
	before = statistic("doorbells");
	for (round = 0; round < 200 && status == IBV_WC_SUCCESS; round++)
		status = burst(bed->a, bed, DEPTH / 2);
	EXPECT_DONE(status);
	EXPECT_LT(statistic("doorbells") - before, 200 * DEPTH / 2 / 2);
	EXPECT_OK(set_module_param("gather_us", usual));
}

/*
 * What is on the wire takes room in the ring until it is acknowledged, but its doorbell
 * was rung: what comes behind it may wait for others all the same. However slow the
 * machine is, the stream has not ended.
 */
TEST_F(stream, doorbells_are_gathered_on_a_wire)
{
	long usual = module_param("gather_us");
	struct wire_bed wire;
	long long before;

	if (statistic("doorbells") < 0)
		SKIP(return, "%s does not count doorbells", dev_name());
	ASSERT_LE(0, usual);
	ASSERT_OK(wire_bed_open(&wire, LEN, &(struct pair_opts){ .max_wr = DEPTH }));
	ASSERT_OK(set_module_param("gather_us", 100000));
	before = statistic("doorbells");
	EXPECT_OK(post_quickly(&wire.bed, 20 * ROUNDS, DEPTH - DEPTH / 4, 0));
	EXPECT_LT(statistic("doorbells") - before, 20 * ROUNDS / 4);
	EXPECT_OK(set_module_param("gather_us", usual));
	EXPECT_OK(wire_bed_close(&wire));
}

static unsigned char look(const struct buf *buf, size_t at)
{
	return __atomic_load_n((unsigned char *)buf->addr + at, __ATOMIC_ACQUIRE);
}

/* Write @round byte by byte, without asking for a word of it: how many bytes. */
static int write_unasked(struct bed *bed, unsigned int round)
{
	unsigned int i, n = DEPTH / 2 - round % 16;
	int ret = 0;

	memset(bed->src.addr, round, LEN);
	for (i = 0; i < n && !ret; i++)
		ret = POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			   .loff = i, .len = 1, .remote = &bed->dst, .roff = i,
			   .unsignaled = true);
	return ret ? -ret : (int)n;
}

/* The places of what nobody polled for are free when a request behind it was polled for. */
static int settle(struct bed *bed)
{
	return RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 1,
		   .remote = &bed->dst);
}

/* A program that does not poll, but looks at the memory, waits for a moment only. */
TEST_F(stream, nobody_polls)
{
	struct bed *bed = &self->bed;
	struct patience p = {};
	unsigned int round;
	int n;

	for (round = 1; round < 100; round++) {
		n = write_unasked(bed, round);
		ASSERT_LT(0, n);
		while (look(&bed->dst, n - 1) != round && still_patient(&p, round))
			;
		ASSERT_EQ(round, look(&bed->dst, n - 1));
		ASSERT_DONE(settle(bed));
	}
}

/* What was posted and not rung for is not in the way of an end. */
TEST_F(stream, modified_in_the_middle)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = 5 };
	unsigned int round;
	int n;

	for (round = 1; round < 100; round++) {
		n = write_unasked(bed, round);
		ASSERT_LT(0, n);
		ASSERT_OK(ibv_modify_qp(bed->a->qp, &attr,
					IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
		/* the change runs the ring before it returns */
		ASSERT_EQ(round, look(&bed->dst, n - 1));
		ASSERT_DONE(settle(bed));
	}
}

/* Doorbells that were due for queue pairs that are gone are nobody's error. */
TEST_F(stream, gone_before_its_doorbell)
{
	struct bed *bed = &self->bed;
	struct pair pair;
	unsigned int round, i;

	for (round = 0; round < 100; round++) {
		ASSERT_OK(bed_pair_open(bed, &pair, NULL));
		ASSERT_OK(pair_connect(&pair));
		for (i = 0; i < 24; i++)
			ASSERT_OK(POST(&pair.a, .op = IBV_WR_RDMA_WRITE,
				       .local = &bed->src, .len = 8,
				       .remote = &bed->dst, .unsignaled = true));
		ASSERT_OK(pair_close(&pair));
	}
}

/* The region goes away while the ring is busy with it, again and again. */
TEST_F(stream, memory_leaves_between_bursts)
{
	struct bed *bed = &self->bed;
	struct buf buf;
	unsigned int round, i;

	for (round = 0; round < ROUNDS / 40; round++) {
		ASSERT_OK(buf_open(&buf, bed->b->pd, LEN, 0, ACCESS_REMOTE));
		for (i = 0; i < 40; i++)
			ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE,
					.local = &bed->src, .len = 8,
					.remote = &buf));
		buf_close(&buf);
	}
}

TEST_HARNESS_MAIN
