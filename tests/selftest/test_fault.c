// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fault injection: its files, and the faults that need no packets. Faults of packets
 * are in test_fault_wire.c.
 */
#include <sys/wait.h>
#include <rdma/vrnic-abi.h>

#include "fault.h"

#define LEN	8192

static const char * const kinds[] = {
	"drop", "corrupt", "delay", "reorder", "duplicate", "rnr", "completion",
	"link",
};

FIXTURE(fault)
{
	struct bed bed;
};

FIXTURE_SETUP(fault)
{
	if (!faults_can_be_there())
		SKIP(return, "no debugfs, or another driver's device");
	ASSERT_OK(bed_open(&self->bed, LEN, &(struct pair_opts){}));
	ASSERT_OK(fault_write("qpn", 0));
}

FIXTURE_TEARDOWN(fault)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		EXPECT_OK(fault_disarm(kinds[i]));
	EXPECT_OK(fault_write("qpn", 0));
	EXPECT_OK(bed_close(&self->bed));
}

/* ---- files ---- */

TEST_F(fault, nothing_is_armed_at_first)
{
	char file[60];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(file, sizeof(file), "%s/probability", kinds[i]);
		EXPECT_EQ(0, fault_read(file));
		EXPECT_LE(0, fault_count(kinds[i], "seen"));
		EXPECT_LE(0, injected(kinds[i]));
	}
	EXPECT_LE(0, fault_read("seed"));
}

TEST_F(fault, nonsense_is_refused)
{
	EXPECT_EQ(-EINVAL, fault_write("drop/probability", 101));
	EXPECT_EQ(-EINVAL, fault_write("drop/interval", 0));
	EXPECT_EQ(-EINVAL, fault_write("delay/us", 0));
	EXPECT_EQ(-EINVAL, fault_write("delay/us", 10000001));
	EXPECT_EQ(-EINVAL, fault_write("completion/status", 0));
	EXPECT_EQ(-EINVAL, fault_write("completion/status", 22));
	EXPECT_EQ(-EACCES, fault_write("drop/seen", 1));
	EXPECT_EQ(0, fault_read("drop/probability"));
}

/* Only root can read or write the files. */
TEST_F(fault, only_root_may)
{
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(fault_write("drop/probability", 1) != -EACCES ||
		      fault_read("seed") != -EACCES);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* ---- RNR ---- */

static int one_send(struct bed *bed)
{
	int ret = post_recv(bed->b, &bed->dst, 0, LEN, 0);

	if (!ret)
		ret = RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 64);
	return ret ? ret : wait_recv(bed->b);
}

/* The sender waits as for a receiver without a receive, and tries again. */
TEST_F(fault, rnr_costs_a_retry)
{
	struct bed *bed = &self->bed;
	long long before = dev_counter("rnr_waits");
	long long all = dev_counter("faults_injected");

	buf_fill(&bed->src, 1);
	ASSERT_OK(ARM("rnr", .times = 3));
	ASSERT_DONE(one_send(bed));
	EXPECT_EQ(3, injected("rnr"));
	/* three times not ready, then ready */
	EXPECT_EQ(4, fault_count("rnr", "seen"));
	EXPECT_EQ(0, fault_read("rnr/times"));
	EXPECT_EQ(before + 3, dev_counter("rnr_waits"));
	EXPECT_EQ(all + 3, dev_counter("faults_injected"));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 64, 1, 0));
	/* it is over */
	ASSERT_DONE(one_send(bed));
	EXPECT_EQ(3, injected("rnr"));
}

TEST_F(fault, rnr_can_exceed_the_retries)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .rnr_retry = 2 };
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 5));
	ASSERT_OK(ARM("rnr"));
	EXPECT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR,
		      RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 64));
	EXPECT_EQ(3, injected("rnr"));
	EXPECT_OK(qp_wait(pair.a.qp, IBV_QPS_ERR));
	/* the other side knows nothing of it, and has its receive still */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(pair.b.qp));
	EXPECT_EQ(0, poll_stray(pair.b.rcq));
	EXPECT_OK(pair_close(&pair));
}

TEST_F(fault, rnr_leaves_writes_alone)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(ARM("rnr"));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 64, .remote = &bed->dst));
	EXPECT_EQ(0, fault_count("rnr", "seen"));
}

/* ---- which events ---- */

/* Space: five are left alone; interval: of the others every second. */
TEST_F(fault, space_and_interval_count_events)
{
	struct bed *bed = &self->bed;
	int i, hit[12], before;

	ASSERT_OK(ARM("rnr", .space = 5, .interval = 2));
	for (i = 0; i < 12; i++) {
		before = injected("rnr");
		ASSERT_DONE(one_send(bed));
		hit[i] = injected("rnr") - before;
	}
	/* events 1-5; 6, 7 (fault), 8 (again); 9 (fault), 10 (again); ... */
	for (i = 0; i < 12; i++)
		EXPECT_EQ(i > 5, hit[i])
			TH_LOG("send %d", i);
}

/* Which of 64 SENDs meet a fault. */
static int pattern(struct bed *bed, uint64_t *hits)
{
	long long before;
	int i, ret;

	*hits = 0;
	for (i = 0; i < 64; i++) {
		before = injected("rnr");
		ret = one_send(bed);
		if (ret)
			return ret;
		*hits |= (uint64_t)(injected("rnr") > before) << i;
	}
	return 0;
}

TEST_F(fault, same_seed_same_faults)
{
	static const int seeds[] = { 1, 1, 2 };
	struct bed *bed = &self->bed;
	uint64_t hits[3];
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_OK(fault_write("seed", seeds[i]));
		ASSERT_OK(ARM("rnr", .probability = 30));
		ASSERT_OK(pattern(bed, &hits[i]));
	}
	EXPECT_EQ(hits[0], hits[1]);
	EXPECT_NE(hits[0], hits[2]);
	/* 30 of 100: by these seeds, so that chance has no say here */
	EXPECT_LE(8, __builtin_popcountll(hits[0]));
	EXPECT_GE(36, __builtin_popcountll(hits[0]));
}

/* Writing the seed starts the series anew, without arming again. */
TEST_F(fault, seed_starts_the_series_anew)
{
	struct bed *bed = &self->bed;
	uint64_t first, second;

	ASSERT_OK(ARM("rnr", .probability = 30));
	ASSERT_OK(fault_write("seed", 9));
	ASSERT_OK(pattern(bed, &first));
	ASSERT_OK(fault_write("seed", 9));
	ASSERT_EQ(0, fault_count("rnr", "seen"));
	ASSERT_OK(pattern(bed, &second));
	EXPECT_EQ(first, second);
}

TEST_F(fault, other_queue_pairs_are_left_alone)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .rnr_retry = NO_RETRY };
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(fault_write("qpn", pair.b.qp->qp_num));
	ASSERT_OK(ARM("rnr"));
	ASSERT_DONE(one_send(bed));
	EXPECT_EQ(0, fault_count("rnr", "seen"));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 5));
	EXPECT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR,
		      RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 64));
	EXPECT_EQ(1, injected("rnr"));
	EXPECT_OK(pair_close(&pair));
}

/* ---- completions ---- */

/* The third of five fails: those before are done, those behind are flushed. */
TEST_F(fault, completion_error_ends_the_queue_pair)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 3);
	ASSERT_OK(ARM("completion", .space = 2, .times = 1, .own = "status",
		      .value = IBV_WC_RETRY_EXC_ERR));
	for (i = 0; i < 5; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 64,
			       .loff = i * 64, .roff = i * 64, .wr_id = i,
			       .local = &bed->src, .remote = &bed->dst));
	for (i = 0; i < 2; i++)
		EXPECT_DONE(wait_send(bed->a));
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR, wait_send(bed->a));
	EXPECT_EQ(2, bed->a->wc.wr_id);
	EXPECT_EQ(VRNIC_VERR_INJECTED, bed->a->wc.vendor_err);
	for (i = 3; i < 5; i++) {
		EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
		EXPECT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
	EXPECT_EQ(1, injected("completion"));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 128, 3, 0));
	/* it was not executed */
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 128, LEN - 128, 0));
}

/* An unsignaled request that fails has a completion, as a real failure has. */
TEST_F(fault, completion_error_of_each_status)
{
	struct bed *bed = &self->bed;
	int status;

	for (status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++) {
		ASSERT_OK(ARM("completion", .own = "status", .value = status));
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .len = 8, .unsignaled = true));
		EXPECT_STATUS(status, wait_send(bed->a));
		ASSERT_OK(fault_disarm("completion"));
		EXPECT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
		ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
		ASSERT_OK(pair_connect(&bed->pair));
	}
	/* and nothing is left of it */
	EXPECT_DONE(one_send(bed));
}

/* UD goes to SQE, from where a program can come back. */
TEST_F(fault, completion_error_of_a_datagram)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(ARM("completion", .times = 1, .own = "status",
		      .value = IBV_WC_LOC_QP_OP_ERR));
	EXPECT_STATUS(IBV_WC_LOC_QP_OP_ERR,
		      RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 8));
	EXPECT_OK(qp_wait(pair.a.qp, IBV_QPS_SQE));
	EXPECT_OK(pair_close(&pair));
}

TEST_HARNESS_MAIN
