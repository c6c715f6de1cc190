// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is true of the wire only: each test has a network namespace with a device on its
 * lo, and RoCEv2 between its own queue pairs.
 */
#include <netinet/ip.h>

#include "harness.h"

#define LEN	4096

FIXTURE(wire)
{
	struct wire_bed wire;
	struct bed *bed;
};

/* Nothing but an answer is to make it go on. */
static struct pair_opts patient = { .timeout = 22 };

FIXTURE_SETUP(wire)
{
	ASSERT_OK(wire_bed_open(&self->wire, LEN, &patient));
	self->bed = &self->wire.bed;
}

FIXTURE_TEARDOWN(wire)
{
	EXPECT_OK(wire_bed_close(&self->wire));
}

/* The two bits of the network header that a datagram came with. */
static int ecn_of(const uint8_t *grh)
{
	const struct iphdr *ip = (const struct iphdr *)(grh + GRH_BYTES - sizeof(*ip));

	if (grh[0] >> 4 == 6)
		return grh[1] >> 4 & 3;
	return ip->tos & 3;
}

/* Nobody tells the sender of a datagram that it was marked. */
TEST_F(wire, datagrams_do_not_claim_ecn)
{
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct bed *bed = self->bed;
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(0, ecn_of((const uint8_t *)bed->dst.addr));
	EXPECT_OK(pair_close(&pair));
}

/* Of all sizes, one behind the other: each has memory of its own. */
TEST_F(wire, datagrams_of_all_sizes_are_whole)
{
	static const size_t sizes[] = { 0, 1, 255, 256, 257, 1023, 1024, 1025, 2048 };
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct bed *bed = self->bed;
	struct pair pair;
	unsigned int i;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buf_fill(&bed->src, i);
		ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
				.len = sizes[i]));
		ASSERT_DONE(wait_recv(&pair.b));
		EXPECT_EQ(GRH_BYTES + sizes[i], pair.b.rwc.byte_len);
		EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, sizes[i], i, 0));
	}
	EXPECT_OK(pair_close(&pair));
}

/*
 * A kbit/s is 125 bytes a second: the acknowledgments alone would be paid for in minutes.
 * How many there are is the peer's choice.
 */
TEST_F(wire, acknowledgments_do_not_use_up_the_rate)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct bed *bed = self->bed;
	int i;

	ASSERT_EQ(0, ibv_modify_qp_rate_limit(bed->b->qp, &limit));
	for (i = 0; i < 600; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
				.len = 8, .remote = &bed->dst));
	EXPECT_DONE(RUN(bed->b, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			.remote = &bed->dst));
}

TEST_HARNESS_MAIN
