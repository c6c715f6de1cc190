// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams: header space, Q_Key, lengths, and what is dropped. */
#include <netinet/ip.h>

#include "harness.h"

#define LEN	16384

BED(ud, LEN, .type = IBV_QPT_UD);

static size_t mtu(struct bed *bed)
{
	return 128 << bed->dev.port.active_mtu;
}

#define SEND(...) \
	RUN(self->bed.a, .op = IBV_WR_SEND, .local = &self->bed.src, __VA_ARGS__)

TEST_F(ud, sizes_up_to_the_mtu)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 9, 63, 64, 255, 256 };
	struct bed *bed = &self->bed;
	size_t size;
	unsigned int i;

	for (i = 0; i <= ARRAY_SIZE(sizes); i++) {
		size = i < ARRAY_SIZE(sizes) ? sizes[i] : mtu(bed);
		buf_fill(&bed->src, i);
		memset(bed->dst.addr, 0, LEN);
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, i));
		ASSERT_DONE(SEND(.len = size));
		EXPECT_EQ(IBV_WC_SEND, bed->a->wc.opcode);
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(IBV_WC_RECV, bed->b->rwc.opcode);
		EXPECT_EQ(i, bed->b->rwc.wr_id);
		EXPECT_EQ(GRH_BYTES + size, bed->b->rwc.byte_len);
		EXPECT_EQ(bed->a->qp->qp_num, bed->b->rwc.src_qp);
		EXPECT_EQ(bed->b->qp->qp_num, bed->b->rwc.qp_num);
		EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_GRH);
		EXPECT_EQ(0, bed->b->rwc.pkey_index);
		EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, size, i, 0));
		EXPECT_EQ(-1, buf_is_not(&bed->dst, GRH_BYTES + size,
					 LEN - GRH_BYTES - size, 0));
	}
}

/* RoCEv2: an IPv4 header in the last 20 of the 40 bytes, or an IPv6 header. */
TEST_F(ud, network_header_names_both_ends)
{
	struct bed *bed = &self->bed;
	const uint8_t *gid = bed->a->dev->gid.raw, *to = bed->b->dev->gid.raw;
	bool ipv4 = !memcmp(gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	struct iphdr *ip = (struct iphdr *)(bed->dst.addr + 20);

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8));
	ASSERT_DONE(wait_recv(bed->b));
	if (ipv4) {
		EXPECT_EQ(0x45, bed->dst.addr[20]);
		EXPECT_EQ(IPPROTO_UDP, ip->protocol);
		EXPECT_OK(memcmp(&ip->saddr, gid + 12, 4));
		EXPECT_OK(memcmp(&ip->daddr, to + 12, 4));
	} else {
		EXPECT_EQ(6, bed->dst.addr[0] >> 4);
		EXPECT_OK(memcmp(bed->dst.addr + 8, gid, 16));
		EXPECT_OK(memcmp(bed->dst.addr + 24, to, 16));
	}
}

static bool is_ipv4(const union ibv_gid *gid)
{
	return !memcmp(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
}

/* An index of a GID of the kind that is no link-local one, or -1. */
static int gid_of_kind(struct bed *bed, bool ipv4)
{
	union ibv_gid gid;
	int i;

	for (i = 0; !ibv_query_gid(bed->dev.ctx, 1, i, &gid); i++)
		if (is_ipv4(&gid) == ipv4 && memcmp(gid.raw, "\xfe\x80", 2) &&
		    memcmp(gid.raw, (union ibv_gid){}.raw, 16))
			return i;
	return -1;
}

/*
 * UCX up to 1.18 finds out by the service level, as ConnectX reports it, in which form
 * the header is: else it drops all datagrams.
 */
TEST_F(ud, service_level_tells_the_kind_of_the_packet)
{
	struct bed other, *bed = &self->bed;
	bool ipv4 = is_ipv4(&bed->b->dev->gid);
	int index = gid_of_kind(bed, !ipv4);
	char text[16];

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(ipv4 ? 10 : 9, bed->b->rwc.sl);
	if (index < 0 || over_a_wire())
		return;
	snprintf(text, sizeof(text), "%d", index);
	setenv("VRNIC_GID", text, true);
	ASSERT_OK(bed_open(&other, LEN, &(struct pair_opts){ .type = IBV_QPT_UD }));
	ASSERT_OK(post_recv(other.b, &other.dst, 0, LEN, 0));
	ASSERT_DONE(RUN(other.a, .op = IBV_WR_SEND, .local = &other.src, .len = 8));
	ASSERT_DONE(wait_recv(other.b));
	EXPECT_EQ(ipv4 ? 9 : 10, other.b->rwc.sl);
	ASSERT_OK(bed_close(&other));
}

TEST_F(ud, immediate_zero_is_an_immediate)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND_WITH_IMM, .len = 8,
			.local = &bed->src, .imm = 0));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(0, bed->b->rwc.imm_data);
}

/* The dropped message would have come first: the good one proves the drop. */
static int good_message_is_next(struct bed *bed)
{
	int ret = RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 33);

	if (!ret)
		ret = wait_recv(bed->b);
	return ret ? ret : bed->b->rwc.byte_len == GRH_BYTES + 33 ? 0 : -EBADMSG;
}

TEST_F(ud, wrong_qkey_is_dropped)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8, .qkey = UD_QKEY + 1));
	EXPECT_OK(good_message_is_next(bed));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
}

/* IBTA 3.5.3: a Q_Key with the high bit set stands for the sender's own. */
TEST_F(ud, high_bit_takes_the_senders_qkey)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8, .qkey = 0x80000001));
	ASSERT_DONE(wait_recv(bed->b));
}

TEST_F(ud, unknown_queue_pair_is_dropped)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8, .qpn = 0xfffffe));
	EXPECT_OK(good_message_is_next(bed));
}

TEST_F(ud, connected_queue_pair_is_no_target)
{
	struct bed *bed = &self->bed;
	struct pair rc;

	ASSERT_OK(bed_pair_open(bed, &rc, NULL));
	ASSERT_OK(pair_connect(&rc));
	ASSERT_OK(post_recv(&rc.b, &bed->dst, 0, LEN, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(SEND(.len = 8, .qpn = rc.b.qp->qp_num));
	EXPECT_OK(good_message_is_next(bed));
	EXPECT_EQ(0, poll_stray(rc.b.rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(rc.b.qp));
	EXPECT_OK(pair_close(&rc));
}

TEST_F(ud, without_receive_is_dropped)
{
	struct bed *bed = &self->bed;

	ASSERT_DONE(SEND(.len = 8));
	usleep(20000);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	EXPECT_OK(good_message_is_next(bed));
}

/*
 * Beyond the MTU: whether the sender is told or not (IBTA C10-93.1.1 says not),
 * no part of it arrives.
 */
TEST_F(ud, beyond_the_mtu_never_arrives)
{
	struct bed *bed = &self->bed;
	int status;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	status = SEND(.len = mtu(bed) + 1);
	EXPECT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_LOC_LEN_ERR ||
		    status == -EINVAL);
	if (qp_state(bed->a->qp) == IBV_QPS_SQE)
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RTS));
	ASSERT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
	EXPECT_OK(good_message_is_next(bed));
}

/* A receive that is too small is never reported as a success. */
TEST_F(ud, too_small_a_receive_is_no_success)
{
	struct bed *bed = &self->bed;
	int status;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, GRH_BYTES + 50, 1));
	ASSERT_DONE(SEND(.len = 100));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, GRH_BYTES + 50,
				 LEN - GRH_BYTES - 50, 0));
	/* dropped, so that a short one takes the receive; or an error */
	ASSERT_DONE(SEND(.len = 10));
	status = wait_recv(bed->b);
	if (status)
		EXPECT_STATUS(IBV_WC_LOC_LEN_ERR, status);
	if (!status)
		EXPECT_EQ(GRH_BYTES + 10, bed->b->rwc.byte_len);
}

/* IBTA 10.3.1: a local error stops the send queue alone; SQE, then RTS again. */
TEST_F(ud, send_queue_error_can_be_mended)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, SEND(.len = 8, .lkey = ~0u));
	ASSERT_OK(qp_wait(bed->a->qp, IBV_QPS_SQE));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, SEND(.len = 8));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RTS));
	EXPECT_OK(good_message_is_next(bed));
}

TEST_F(ud, rdma_does_not_exist)
{
	struct bed *bed = &self->bed;
	int status = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			 .local = &bed->src, .remote = &bed->dst);

	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
}

TEST_F(ud, many_in_order)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 60; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 128, 128, i));
	for (i = 0; i < 60; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .len = i));
	for (i = 0; i < 60; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_EQ(i, bed->b->rwc.wr_id);
		ASSERT_EQ(GRH_BYTES + i, bed->b->rwc.byte_len);
	}
}

TEST_F(ud, to_itself)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = bed->pair.opts;
	struct side side = {};

	ASSERT_OK(side_open(&side, &bed->dev, &opts, false));
	ASSERT_OK(side_connect(&side, &opts, side.qp->qp_num, &bed->dev.gid));
	ASSERT_OK(post_recv(&side, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&side, .op = IBV_WR_SEND, .local = &bed->src, .len = 12));
	ASSERT_DONE(wait_recv(&side));
	EXPECT_EQ(side.qp->qp_num, side.rwc.src_qp);
	EXPECT_OK(side_close(&side));
}

BED(ud_srq, LEN, .type = IBV_QPT_UD, .srq = true);

TEST_F(ud_srq, receives_through_an_srq)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 9));
	buf_fill(&bed->src, 1);
	ASSERT_DONE(SEND(.len = 500));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(9, bed->b->rwc.wr_id);
	EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, 500, 1, 0));
}

TEST_HARNESS_MAIN
