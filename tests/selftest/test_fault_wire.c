// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fault injection: packets that get lost, spoiled, late or doubled. Each test has
 * a network namespace with a device on its lo, and RoCEv2 between its own queue
 * pairs; so all that is sent comes to that device.
 */
#include "fault.h"

#define LEN	65536

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

FIXTURE(wire)
{
	struct wire_bed wire;
	struct bed *bed;
};

/* A long ACK timeout: nothing but faults is to make it send again. */
static struct pair_opts patient = { .timeout = 22 };

FIXTURE_SETUP(wire)
{
	if (!faults_can_be_there())
		SKIP(return, "no debugfs, or another driver's device");
	ASSERT_OK(wire_bed_open(&self->wire, LEN, &patient));
	self->bed = &self->wire.bed;
}

FIXTURE_TEARDOWN(wire)
{
	EXPECT_OK(wire_bed_close(&self->wire));
}

/* Faults of packets that come to this side only. */
static int only(struct side *side)
{
	return fault_write("qpn", side->qp->qp_num);
}

/* All of src into dst: 16 packets to b, and acknowledgments to a. */
static int write_all(struct bed *bed, uint32_t seed)
{
	int ret;

	buf_fill(&bed->src, seed);
	ret = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
		  .len = LEN, .remote = &bed->dst);
	if (ret)
		return ret;
	return buf_differs(&bed->dst, 0, LEN, seed, 0) == -1 ? 0 : -EBADMSG;
}

static int send_one(struct bed *bed, size_t len)
{
	int ret = post_recv(bed->b, &bed->dst, 0, LEN, 0);

	if (!ret)
		ret = RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = len);
	return ret ? ret : wait_recv(bed->b);
}

/* ---- RC: whatever happens, the data are right ---- */

TEST_F(wire, nothing_is_sent_again_without_faults)
{
	struct bed *bed = self->bed;

	ASSERT_DONE(write_all(bed, 1));
	EXPECT_EQ(0, dev_counter("retransmitted_pkts"));
	EXPECT_EQ(0, dev_counter("faults_injected"));
	EXPECT_LE(17, dev_counter("rcvd_pkts"));
}

TEST_F(wire, dropped_request_is_sent_again)
{
	struct bed *bed = self->bed;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("drop", .space = 4, .times = 1));
	ASSERT_DONE(write_all(bed, 2));
	EXPECT_EQ(1, injected("drop"));
	EXPECT_LE(17, fault_count("drop", "seen"));
	EXPECT_LE(1, dev_counter("retransmitted_pkts"));
	EXPECT_LE(1, dev_counter("out_of_seq_request"));
}

/*
 * Before the first packet of a connection came, nothing that is behind it is kept. It is
 * asked for all the same: the timer would take longer than the test may.
 */
TEST_F(wire, what_is_not_kept_is_asked_for)
{
	struct bed *bed = self->bed;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("drop", .times = 1));
	ASSERT_DONE(write_all(bed, 8));
	EXPECT_EQ(1, injected("drop"));
	EXPECT_LE(1, dev_counter("rcvd_seq_err"));
	EXPECT_EQ(0, dev_counter("ack_timeouts"));
}

/* The request was executed, and comes twice. */
TEST_F(wire, dropped_answer_makes_a_duplicate)
{
	struct bed *bed = self->bed;

	ASSERT_OK(only(bed->a));
	ASSERT_OK(ARM("drop", .times = 1));
	ASSERT_DONE(send_one(bed, 8));
	EXPECT_EQ(1, injected("drop"));
	EXPECT_LE(1, dev_counter("duplicate_request"));
	/* but is received once */
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
}

TEST_F(wire, dropping_all_exceeds_the_retries)
{
	struct bed *bed = self->bed;
	struct pair_opts opts = { .timeout = 8, .retry = 2 };
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(only(&pair.b));
	ASSERT_OK(ARM("drop"));
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR,
		      RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			  .len = 64, .remote = &bed->dst));
	EXPECT_EQ(injected("drop"), fault_count("drop", "seen"));
	EXPECT_LE(3, injected("drop"));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(pair.b.qp));
	/* others are not concerned */
	EXPECT_DONE(write_all(bed, 3));
	EXPECT_OK(pair_close(&pair));
}

/* The ICRC finds each of them. */
TEST_F(wire, corrupted_packets_are_found)
{
	struct bed *bed = self->bed;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("corrupt", .interval = 5, .times = 3));
	ASSERT_DONE(write_all(bed, 4));
	EXPECT_EQ(3, injected("corrupt"));
	EXPECT_EQ(3, dev_counter("bad_icrc"));
	EXPECT_LE(3, dev_counter("retransmitted_pkts"));
}

TEST_F(wire, delay_is_kept)
{
	struct bed *bed = self->bed;
	int64_t begin;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("delay", .times = 1, .own = "us", .value = 100000));
	begin = now_us();
	ASSERT_DONE(send_one(bed, 64));
	EXPECT_LE(100000, now_us() - begin);
	EXPECT_EQ(1, injected("delay"));
	EXPECT_EQ(0, dev_counter("retransmitted_pkts"));
}

/* The shortest of two delays is over first. */
TEST_F(wire, delays_are_independent)
{
	struct bed *bed = self->bed;
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &patient));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("delay", .times = 1, .own = "us", .value = 2000000));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
		       .len = 64, .remote = &bed->dst));
	while (!injected("delay"))
		usleep(1000);
	ASSERT_OK(only(&pair.b));
	ASSERT_OK(ARM("delay", .times = 1, .own = "us", .value = 1000));
	EXPECT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 64, .remote = &bed->dst));
	EXPECT_EQ(0, ibv_poll_cq(bed->a->scq, 1, &bed->a->wc));
	EXPECT_DONE(wait_send(bed->a));
	EXPECT_OK(pair_close(&pair));
}

TEST_F(wire, reordered_packets_are_sorted)
{
	struct bed *bed = self->bed;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("reorder", .interval = 4, .own = "us", .value = 1000000));
	ASSERT_DONE(write_all(bed, 5));
	EXPECT_LE(3, injected("reorder"));
	EXPECT_LE(3, dev_counter("out_of_seq_request"));
}

/* One that nothing comes behind is not lost. */
TEST_F(wire, reordered_last_packet_comes_in_the_end)
{
	struct bed *bed = self->bed;
	int64_t begin;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("reorder", .times = 1, .own = "us", .value = 50000));
	begin = now_us();
	ASSERT_DONE(send_one(bed, 64));
	EXPECT_LE(50000, now_us() - begin);
	EXPECT_EQ(0, dev_counter("retransmitted_pkts"));
}

TEST_F(wire, duplicates_have_no_effect)
{
	struct bed *bed = self->bed;
	int i;

	ASSERT_OK(only(bed->b));
	ASSERT_OK(ARM("duplicate"));
	for (i = 1; i <= 8; i++) {
		ASSERT_DONE(send_one(bed, i));
		ASSERT_EQ(i, bed->b->rwc.byte_len);
	}
	EXPECT_EQ(8, injected("duplicate"));
	EXPECT_EQ(8, dev_counter("duplicate_request"));
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
}

/*
 * A receiver that is not ready, half a second long, after a loss. Then it is known
 * that the wire loses, and not that it is slow: the next loss is found by the first
 * of several looks within the ACK timeout, and costs no retry.
 */
TEST_F(wire, receiver_not_ready_makes_no_long_wire)
{
	struct bed *bed = self->bed;
	struct pair_opts opts = { .timeout = 18, .rnr_timer = 31 };
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(only(&pair.b));
	ASSERT_OK(ARM("drop", .times = 1));
	ASSERT_OK(ARM("rnr", .times = 1));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 64));
	ASSERT_EQ(1, injected("drop"));
	ASSERT_EQ(1, injected("rnr"));
	ASSERT_EQ(1, dev_counter("rnr_waits"));
	ASSERT_EQ(0, dev_counter("retries"));

	ASSERT_OK(ARM("drop", .times = 1));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 64, .remote = &bed->dst));
	EXPECT_EQ(1, injected("drop"));
	EXPECT_LE(2, dev_counter("ack_timeouts"));
	EXPECT_EQ(0, dev_counter("retries"));
	EXPECT_OK(pair_close(&pair));
}

#define PACKETS	(3 * 4096)	/* bytes of so many packets */
#define FETCHED	32768		/* where what is fetched lies at either side */
#define TOLD	49152		/* where it is told of to b */

/* WRITE, READ, and SEND behind a fence of what was READ; announced together. */
static int post_fenced(struct bed *bed, struct side *side)
{
	struct ibv_sge sge[] = {
		sge_of(&bed->src, 0, PACKETS), sge_of(&bed->src, FETCHED, 64),
	};
	uint64_t dst = (uintptr_t)bed->dst.addr;
	struct ibv_send_wr *bad, wr[] = {
		{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge[0],
		  .wr.rdma = { dst, bed->dst.mr->rkey } },
		{ .opcode = IBV_WR_RDMA_READ, .sg_list = &sge[1],
		  .wr.rdma = { dst + FETCHED, bed->dst.mr->rkey } },
		{ .opcode = IBV_WR_SEND, .sg_list = &sge[1],
		  .send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED },
	};
	int i;

	for (i = 0; i < 3; i++) {
		wr[i].num_sge = 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(side->qp, wr, &bad);
}

/* What comes to b when the first of those packets, or the second, and so on is lost. */
TEST_F(wire, fence_waits_for_a_read_that_was_lost)
{
	struct bed *bed = self->bed;
	struct pair_opts opts = { .timeout = 14 };
	struct pair pair;
	int lost;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(only(&pair.b));
	for (lost = 0; lost < 5; lost++) {
		buf_fill(&bed->dst, lost);
		memset(bed->src.addr, 0xee, LEN);
		ASSERT_OK(post_recv(&pair.b, &bed->dst, TOLD, 64, 0));
		ASSERT_OK(ARM("drop", .space = lost, .times = 1));
		ASSERT_OK(post_fenced(bed, &pair.a));
		ASSERT_DONE(wait_send(&pair.a));
		ASSERT_DONE(wait_recv(&pair.b));
		EXPECT_EQ(1, injected("drop"));
		EXPECT_EQ(-1, buf_differs(&bed->src, FETCHED, 64, lost, FETCHED));
		EXPECT_EQ(-1, buf_differs(&bed->dst, TOLD, 64, lost, FETCHED));
	}
	EXPECT_OK(pair_close(&pair));
}

/* All at once, both ways, with a timer that is not as patient. */
TEST_F(wire, everything_at_once)
{
	struct bed *bed = self->bed;
	struct pair_opts opts = { .timeout = 14 };
	struct pair pair;
	int i;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(ARM("drop", .probability = 3));
	ASSERT_OK(ARM("corrupt", .probability = 3));
	ASSERT_OK(ARM("delay", .probability = 3, .own = "us", .value = 300));
	ASSERT_OK(ARM("reorder", .probability = 3));
	ASSERT_OK(ARM("duplicate", .probability = 3));
	for (i = 0; i < 30; i++) {
		buf_fill(&bed->src, i);
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
				.local = &bed->src, .remote = &bed->dst));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, i, 0));
		memset(bed->src.addr, 0, LEN);
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_READ, .len = LEN,
				.local = &bed->src, .remote = &bed->dst));
		ASSERT_EQ(-1, buf_differs(&bed->src, 0, LEN, i, 0));
	}
	EXPECT_LE(1, injected("drop"));
	EXPECT_LE(1, injected("corrupt"));
	EXPECT_LE(1, injected("delay"));
	EXPECT_LE(1, injected("reorder"));
	EXPECT_LE(1, injected("duplicate"));
	EXPECT_OK(pair_close(&pair));
}

/* ---- UD: what happens to packets is what the program sees ---- */

struct ud {
	struct pair pair;
	struct buf buf;
};

static int ud_open(struct ud *ud, struct bed *bed)
{
	struct pair_opts opts = { .type = IBV_QPT_UD, .max_wr = 128,
				  .cqe = 256 };
	int ret = pair_open(&ud->pair, &bed->dev, &opts);
	int i;

	if (!ret)
		ret = pair_connect(&ud->pair);
	if (!ret)
		ret = buf_open(&ud->buf, bed->dev.pd, 4096, 0, ACCESS_REMOTE);
	for (i = 0; !ret && i < 100; i++)
		ret = post_recv(&ud->pair.b, &ud->buf, 0, 4096, i);
	return ret ? ret : only(&ud->pair.b);
}

static void ud_close(struct ud *ud)
{
	pair_close(&ud->pair);
	buf_close(&ud->buf);
}

static int ud_send(struct ud *ud, uint32_t number)
{
	return RUN(&ud->pair.a, .op = IBV_WR_SEND_WITH_IMM, .imm = number,
		   .local = &ud->buf, .len = 8);
}

/* The next datagram's number, or a negative errno. */
static int ud_next(struct ud *ud)
{
	int ret = wait_recv(&ud->pair.b);

	return ret ? -EIO : (int)be32toh(ud->pair.b.rwc.imm_data);
}

TEST_F(wire, reordered_datagrams_swap_places)
{
	struct ud ud = {};

	ASSERT_OK(ud_open(&ud, self->bed));
	ASSERT_OK(ARM("reorder", .space = 1, .times = 1, .own = "us",
		      .value = 5000000));
	ASSERT_DONE(ud_send(&ud, 1));
	ASSERT_DONE(ud_send(&ud, 2));
	ASSERT_DONE(ud_send(&ud, 3));
	ASSERT_DONE(ud_send(&ud, 4));
	EXPECT_EQ(1, ud_next(&ud));
	EXPECT_EQ(3, ud_next(&ud));
	EXPECT_EQ(2, ud_next(&ud));
	EXPECT_EQ(4, ud_next(&ud));
	ud_close(&ud);
}

TEST_F(wire, duplicated_datagram_comes_twice)
{
	struct ud ud = {};

	ASSERT_OK(ud_open(&ud, self->bed));
	ASSERT_OK(ARM("duplicate", .times = 1));
	ASSERT_DONE(ud_send(&ud, 1));
	ASSERT_DONE(ud_send(&ud, 2));
	EXPECT_EQ(1, ud_next(&ud));
	EXPECT_EQ(1, ud_next(&ud));
	EXPECT_EQ(2, ud_next(&ud));
	ud_close(&ud);
}

TEST_F(wire, corrupted_datagram_is_lost)
{
	struct ud ud = {};

	ASSERT_OK(ud_open(&ud, self->bed));
	ASSERT_OK(ARM("corrupt", .times = 1));
	ASSERT_DONE(ud_send(&ud, 1));
	ASSERT_DONE(ud_send(&ud, 2));
	EXPECT_EQ(2, ud_next(&ud));
	EXPECT_EQ(1, dev_counter("bad_icrc"));
	ud_close(&ud);
}

/* Which of the datagrams 0 to 63 arrive when half of them get lost. */
static int arrivals(struct ud *ud, int seed, uint64_t *came)
{
	int i, n, ret;

	*came = 0;
	ret = fault_write("seed", seed);
	if (!ret)
		ret = ARM("drop", .probability = 50);
	for (i = 0; !ret && i < 64; i++)
		ret = ud_send(ud, i);
	if (!ret)
		ret = fault_disarm("drop");
	if (!ret)
		ret = ud_send(ud, 64);
	if (ret)
		return ret;
	while ((n = ud_next(ud)) != 64) {
		if (n < 0 || n > 64)
			return -EIO;
		*came |= 1ULL << n;
		ret = post_recv(&ud->pair.b, &ud->buf, 0, 4096, 0);
		if (ret)
			return ret;
	}
	return post_recv(&ud->pair.b, &ud->buf, 0, 4096, 0);
}

TEST_F(wire, same_seed_same_losses)
{
	static const int seeds[] = { 7, 7, 8 };
	uint64_t came[3];
	struct ud ud = {};
	int i, lost;

	ASSERT_OK(ud_open(&ud, self->bed));
	for (i = 0; i < 3; i++) {
		ASSERT_OK(arrivals(&ud, seeds[i], &came[i]));
		lost = 64 - __builtin_popcountll(came[i]);
		EXPECT_EQ(lost, injected("drop"));
		/* by these seeds, so that chance has no say here */
		EXPECT_LE(20, lost);
		EXPECT_GE(44, lost);
	}
	EXPECT_EQ(came[0], came[1]);
	EXPECT_NE(came[0], came[2]);
	ud_close(&ud);
}

/* ---- what goes while faults are armed, and packets held up ---- */

TEST_F(wire, queue_pair_goes_before_its_packet_comes)
{
	struct bed *bed = self->bed;
	int64_t begin = now_us();
	struct ud ud = {};

	ASSERT_OK(ud_open(&ud, bed));
	ASSERT_OK(ARM("delay", .own = "us", .value = 300000));
	ASSERT_DONE(ud_send(&ud, 1));
	while (!injected("delay"))
		usleep(1000);
	ud_close(&ud);
	usleep(400000);
	ASSERT_OK(fault_disarm("delay"));
	EXPECT_DONE(write_all(bed, 6));
	EXPECT_LE(300000, now_us() - begin);
}

/* With packets that are due in ten seconds, and somebody in a file. */
TEST_F(wire, device_goes_while_faults_are_armed)
{
	struct bed *bed = self->bed;
	char path[PATH_BYTES], text[8];
	int64_t begin = now_us();
	struct ud ud = {};
	int fd;

	ASSERT_OK(ud_open(&ud, bed));
	ASSERT_OK(ARM("delay", .own = "us", .value = 10000000));
	ASSERT_DONE(ud_send(&ud, 1));
	while (!injected("delay"))
		usleep(1000);
	ud_close(&ud);
	ASSERT_OK(bed_close(bed));
	memset(bed, 0, sizeof(*bed));
	fault_path(path, "delay/us");
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_OK(rdma_link_del(WIRE_DEVICE));
	EXPECT_EQ(-1, read(fd, text, sizeof(text)));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, write(fd, "1", 1));
	EXPECT_EQ(EIO, errno);
	close(fd);
	EXPECT_EQ(-ENOENT, fault_read("seed"));
	EXPECT_GT(9000000, now_us() - begin);
	/* its successor knows nothing of all that */
	ASSERT_OK(rdma_link_add(WIRE_DEVICE, "lo"));
	EXPECT_EQ(0, fault_read("delay/probability"));
	ASSERT_OK(bed_open(bed, LEN, &patient));
	EXPECT_DONE(write_all(bed, 7));
	EXPECT_EQ(0, dev_counter("faults_injected"));
}

TEST_HARNESS_MAIN
