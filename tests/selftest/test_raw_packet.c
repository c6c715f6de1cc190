// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packet queue pairs: whole Ethernet frames from and to a wire, at whose other end a packet
 * socket is. What comes is brought by rules, for which see test_flow.c.
 */
#include <linux/virtio_net.h>
#include <netinet/tcp.h>
#include <pthread.h>

#include "raw_bed.h"

FIXTURE(raw_packet) {
	struct raw_bed bed;
};

FIXTURE_SETUP(raw_packet)
{
	ASSERT_OK(raw_bed_open(&self->bed));
}

FIXTURE_TEARDOWN(raw_packet)
{
	EXPECT_OK(raw_bed_close(&self->bed));
}

/* A frame to the other end of the wire, with a type that no protocol has. */
static struct frame plain(const struct raw_bed *bed, size_t payload, int tag)
{
	struct frame f;

	put_eth(&f, bed->peer_mac, bed->mac, tag);
	put16(&f, 0x88b5);
	put_data(&f, payload, payload);
	return f;
}

/* The same, from there. */
static struct frame incoming(const struct raw_bed *bed, size_t payload, int tag)
{
	struct frame f = plain(bed, payload, tag);

	memcpy(f.at, bed->mac, ETH_ALEN);
	memcpy(f.at + ETH_ALEN, bed->peer_mac, ETH_ALEN);
	return f;
}

/* A rule that takes all frames. */
static struct ibv_flow *take_all(struct ibv_qp *qp)
{
	struct rule rule = normal(0);

	return ibv_create_flow(qp, &rule.attr);
}

TEST_F(raw_packet, device_says_what_it_has)
{
	struct ibv_device_attr_ex ex = {};

	ASSERT_OK(ibv_query_device_ex(self->bed.ctx, NULL, &ex));
	EXPECT_GT(ex.orig_attr.max_raw_ethy_qp, 0);
	EXPECT_TRUE(ex.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	/* no offloads */
	EXPECT_EQ(0, ex.raw_packet_caps);
	EXPECT_FALSE(ex.orig_attr.device_cap_flags & (IBV_DEVICE_RAW_IP_CSUM |
						      IBV_DEVICE_UD_IP_CSUM));
	EXPECT_TRUE(ex.packet_pacing_caps.supported_qpts & 1 << IBV_QPT_RAW_PACKET);
}

TEST_F(raw_packet, sends)
{
	static const size_t payloads[] = { 0, 1, 46, 100, 1000, 1499, 1500 };
	struct raw_bed *bed = &self->bed;

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct frame f = plain(bed, payloads[i], -1);

		ASSERT_DONE(raw_send(&bed->a, &f, 1));
		EXPECT_EQ(IBV_WC_SEND, bed->a.wc.opcode);
		EXPECT_OK(net_expect(bed, &f));
	}
}

TEST_F(raw_packet, sends_pieces)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = plain(bed, 1001, -1);

	for (int sges = 1; sges <= 4; sges++) {
		ASSERT_DONE(raw_send(&bed->a, &f, sges));
		EXPECT_OK(net_expect(bed, &f));
	}
}

TEST_F(raw_packet, sends_inline)
{
	struct raw_bed *bed = &self->bed;

	for (size_t payload = 0; payload <= 242; payload += 121) {
		struct frame f = plain(bed, payload, -1);

		ASSERT_DONE(raw_send(&bed->a, &f, 0));
		EXPECT_OK(net_expect(bed, &f));
	}
}

/* The MTU does not count a tag. */
TEST_F(raw_packet, sends_tagged)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = plain(bed, 100, 0xa123);

	ASSERT_DONE(raw_send(&bed->a, &f, 1));
	EXPECT_OK(net_expect(bed, &f));
	f = plain(bed, 1500, 5);
	ASSERT_DONE(raw_send(&bed->a, &f, 1));
	EXPECT_OK(net_expect(bed, &f));
}

TEST_F(raw_packet, sends_by_the_extended_verbs)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = bed->a.scq, .recv_cq = bed->a.cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bed->pd, .send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct frame f = plain(bed, 77, -1);
	struct ibv_qp_ex *qpx;
	struct ibv_qp *qp;

	qp = ibv_create_qp_ex(bed->ctx, &init);
	ASSERT_NE(NULL, qp);
	qpx = ibv_qp_to_qp_ex(qp);
	ASSERT_OK(raw_to_rts(qp));
	memcpy(bed->a.out.addr, f.at, f.len);
	ibv_wr_start(qpx);
	qpx->wr_id = 7;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, bed->a.out.mr->lkey, (uintptr_t)bed->a.out.addr, f.len);
	ASSERT_OK(ibv_wr_complete(qpx));
	ASSERT_OK(poll_one(bed->a.scq, &bed->a.wc));
	EXPECT_EQ(IBV_WC_SUCCESS, bed->a.wc.status);
	EXPECT_EQ(7, bed->a.wc.wr_id);
	EXPECT_OK(net_expect(bed, &f));
	EXPECT_OK(ibv_destroy_qp(qp));
}

/* A request that is not a frame fails; the queue pair sends again after that. */
static void refuses(struct __test_metadata *_metadata, struct raw_bed *bed, const struct frame *f)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct frame good = plain(bed, 50, -1);

	EXPECT_STATUS(IBV_WC_LOC_LEN_ERR, raw_send(&bed->a, f, 1));
	ASSERT_OK(qp_wait(bed->a.qp, IBV_QPS_SQE));
	ASSERT_OK(ibv_modify_qp(bed->a.qp, &attr, IBV_QP_STATE));
	ASSERT_DONE(raw_send(&bed->a, &good, 1));
	EXPECT_OK(net_expect(bed, &good));
}

TEST_F(raw_packet, refuses_what_is_no_frame)
{
	struct frame f = plain(&self->bed, 1501, -1);

	refuses(_metadata, &self->bed, &f);
	f.len = 13;
	refuses(_metadata, &self->bed, &f);
	f = plain(&self->bed, 1501, 5);
	refuses(_metadata, &self->bed, &f);
	f.len = 9000;
	refuses(_metadata, &self->bed, &f);
}

TEST_F(raw_packet, follows_the_mtu)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = plain(bed, 3000, -1);

	ASSERT_OK(system("ip link set " RAW_LINK " mtu 9000"));
	ASSERT_OK(system("ip link set " RAW_PEER " mtu 9000"));
	ASSERT_DONE(raw_send(&bed->a, &f, 3));
	EXPECT_OK(net_expect(bed, &f));
	f = plain(bed, 9000, -1);
	ASSERT_DONE(raw_send(&bed->a, &f, 3));
	EXPECT_OK(net_expect(bed, &f));
	ASSERT_OK(system("ip link set " RAW_LINK " mtu 576"));
	f = plain(bed, 577, -1);
	refuses(_metadata, bed, &f);
}

/*
 * The queue pair waits for a slow network, so nothing is lost. On several CPUs a frame that the
 * qdisc's timer sends may arrive before one that was sent by its owner.
 */
TEST_F(raw_packet, waits_for_the_network)
{
	struct raw_bed *bed = &self->bed;
	long long lost = statistic("send_err");
	uint8_t got[sizeof(struct frame)];
	unsigned int came = 0;
	struct frame f;
	int tag;

	ASSERT_OK(system("tc qdisc add dev " RAW_LINK " root tbf rate 2mbit burst 2kb limit 4kb"));
	for (int i = 0; i < 20; i++) {
		f = plain(bed, 1000 + i, -1);
		ASSERT_DONE(raw_send(&bed->a, &f, 1));
	}
	for (int i = 0; i < 20; i++) {
		ssize_t n = net_recv(bed, got, sizeof(got), &tag);

		ASSERT_LE(ETH_HLEN + 1000, n);
		ASSERT_GT(ETH_HLEN + 1020, n);
		f = plain(bed, n - ETH_HLEN, -1);
		EXPECT_EQ(0, memcmp(got, f.at, n));
		came |= 1U << (n - ETH_HLEN - 1000);
	}
	EXPECT_EQ((1U << 20) - 1, came);
	EXPECT_EQ(lost, statistic("send_err"));
}

/* But not for ever. */
TEST_F(raw_packet, gives_up_a_dead_network)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = plain(bed, 1000, -1);
	long long lost = statistic("send_err");

	ASSERT_OK(system("tc qdisc add dev " RAW_LINK " root tbf rate 64bit burst 1100 limit 1kb"));
	for (int i = 0; i < 4; i++)
		ASSERT_DONE(raw_send(&bed->a, &f, 1));
	EXPECT_LE(lost + 2, statistic("send_err"));
	/* the interface has a frame that it will not send; it goes nevertheless */
	EXPECT_OK(system("tc qdisc del dev " RAW_LINK " root"));
}

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

TEST_F(raw_packet, rate_limit)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 8000 };
	struct frame f = plain(bed, 1486, -1);
	long long begin;

	ASSERT_OK(ibv_modify_qp_rate_limit(bed->a.qp, &limit));
	begin = now_ns();
	for (int i = 0; i < 40; i++)
		ASSERT_DONE(raw_send(&bed->a, &f, 1));
	/* 60,000 bytes at a million a second */
	EXPECT_GT(now_ns() - begin, 40000000);
}

TEST_F(raw_packet, other_operations_are_refused)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_sge sge = sge_of(&bed->a.out, 0, 64);
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV,
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_send_wr wr = { .opcode = ops[i], .sg_list = &sge, .num_sge = 1 }, *bad;

		EXPECT_EQ(EINVAL, ibv_post_send(bed->a.qp, &wr, &bad));
	}
}

TEST_F(raw_packet, foreign_memory)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_sge sge = { .addr = (uintptr_t)bed->a.out.addr, .length = 64, .lkey = 0x12345 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	ASSERT_OK(ibv_post_send(bed->a.qp, &wr, &bad));
	ASSERT_OK(poll_one(bed->a.scq, &bed->a.wc));
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, bed->a.wc.status);
}

TEST_F(raw_packet, receives)
{
	static const size_t payloads[] = { 0, 1, 46, 100, 1000, 1499, 1500 };
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *flow = take_all(bed->a.qp);

	ASSERT_NE(NULL, flow);
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct frame f = incoming(bed, payloads[i], -1);

		ASSERT_OK(net_send(bed, &f));
		EXPECT_OK(raw_expect(&bed->a, &f));
		EXPECT_EQ(bed->a.qp->qp_num, bed->a.wc.qp_num);
		EXPECT_EQ(0, bed->a.wc.wc_flags);
	}
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* With its tag where the wire has it. */
TEST_F(raw_packet, receives_tagged)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *flow = take_all(bed->a.qp);
	struct frame f = incoming(bed, 100, 0x6007);

	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* A receive that is too small, or none: the frame is lost, and nothing else. */
TEST_F(raw_packet, receives_that_do_not_fit)
{
	struct raw_bed *bed = &self->bed;
	struct frame large = incoming(bed, 100, -1), small = incoming(bed, 20, -1);
	long long lost = statistic("raw_dropped");
	struct ibv_flow *flow;
	struct raw c = {};

	ASSERT_OK(raw_open(&c, bed->pd));
	ASSERT_OK(raw_to_rts(c.qp));
	flow = take_all(c.qp);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &large));
	while (statistic("raw_dropped") == lost)
		usleep(1000);
	ASSERT_OK(raw_post_recv(&c, 0, 64));
	ASSERT_OK(net_send(bed, &large));
	ASSERT_OK(net_send(bed, &small));
	EXPECT_OK(raw_expect(&c, &small));
	EXPECT_EQ(lost + 2, statistic("raw_dropped"));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(c.qp));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(raw_close(&c));
}

/* A receive that fails ends all: of the frames that came with the first, none is received. */
TEST_F(raw_packet, receive_of_foreign_memory)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = incoming(bed, 100, -1);
	struct ibv_sge sge = { .length = RECV_BYTES, .lkey = 0x12345 };
	struct ibv_recv_wr wr = { .wr_id = RECVS, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_flow *flow;
	struct raw c = {};

	ASSERT_OK(raw_open(&c, bed->pd));
	ASSERT_OK(raw_to_rts(c.qp));
	ASSERT_OK(ibv_post_recv(c.qp, &wr, &bad));
	for (int i = 0; i < 8; i++)
		ASSERT_OK(raw_post_recv(&c, i, RECV_BYTES));
	flow = take_all(c.qp);
	ASSERT_NE(NULL, flow);
	for (int i = 0; i < 8; i++)
		ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(poll_one(c.cq, &c.wc));
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, c.wc.status);
	for (int i = 0; i < 8; i++) {
		ASSERT_OK(poll_one(c.cq, &c.wc));
		EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, c.wc.status);
	}
	EXPECT_EQ(IBV_QPS_ERR, qp_state(c.qp));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(raw_close(&c));
}

TEST_F(raw_packet, receives_from_an_srq)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(bed->pd, &srq_init);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = bed->a.scq, .recv_cq = bed->a.cq,
		.srq = srq, .cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_sge sge = sge_of(&bed->a.in, 0, RECV_BYTES);
	struct ibv_recv_wr wr = { .wr_id = 0, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct frame f = incoming(bed, 100, -1);
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	ASSERT_NE(NULL, srq);
	qp = ibv_create_qp(bed->pd, &init);
	ASSERT_NE(NULL, qp);
	ASSERT_OK(raw_to_rts(qp));
	ASSERT_OK(ibv_post_srq_recv(srq, &wr, &bad));
	flow = take_all(qp);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(poll_one(bed->a.cq, &bed->a.wc));
	EXPECT_EQ(IBV_WC_SUCCESS, bed->a.wc.status);
	EXPECT_EQ(qp->qp_num, bed->a.wc.qp_num);
	EXPECT_EQ(f.len, bed->a.wc.byte_len);
	EXPECT_EQ(0, memcmp(bed->a.in.addr, f.at, f.len));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_qp(qp));
	EXPECT_OK(ibv_destroy_srq(srq));
}

/* ---- frames that stay in the device ---- */

/* A frame to the interface's own address comes back, and does not go to the network. */
TEST_F(raw_packet, own_address)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *flow = take_all(bed->b.qp);
	struct frame own = incoming(bed, 60, -1), out = plain(bed, 61, -1);

	ASSERT_NE(NULL, flow);
	ASSERT_DONE(raw_send(&bed->a, &own, 1));
	EXPECT_OK(raw_expect(&bed->b, &own));
	ASSERT_DONE(raw_send(&bed->a, &out, 1));
	EXPECT_OK(net_expect(bed, &out));
	EXPECT_EQ(0, poll_stray(bed->b.cq));
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* And goes to the host if no rule takes it. */
TEST_F(raw_packet, own_host)
{
	struct frame f = to_host(&self->bed, 42);

	ASSERT_DONE(raw_send(&self->bed.a, &f, 1));
	EXPECT_EQ(42, host_recv(&self->bed));
}

/* A frame to a group goes to the network and to the device's other queue pairs. */
TEST_F(raw_packet, group)
{
	static const uint8_t groups[][ETH_ALEN] = {
		{ 0x01, 0x00, 0x5e, 1, 2, 3 }, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *fa = take_all(bed->a.qp), *fb = take_all(bed->b.qp);

	ASSERT_NE(NULL, fa);
	ASSERT_NE(NULL, fb);
	for (int i = 0; i < 2; i++) {
		struct frame f = plain(bed, 99, i ? 5 : -1);

		memcpy(f.at, groups[i], ETH_ALEN);
		ASSERT_DONE(raw_send(&bed->a, &f, 1));
		EXPECT_OK(raw_expect(&bed->b, &f));
		EXPECT_OK(net_expect(bed, &f));
		EXPECT_EQ(0, poll_stray(bed->a.cq));
	}
	EXPECT_OK(ibv_destroy_flow(fa));
	EXPECT_OK(ibv_destroy_flow(fb));
}

/* ---- frames that were never on a wire ---- */

/* One packet of many segments, without checksums, as a sender on this machine makes them. */
static int send_merged(struct raw_bed *bed, const struct frame *f, size_t segment)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(RAW_PEER),
		.sll_protocol = htons(ETH_P_IP),
	};
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = 54, .gso_size = segment, .csum_start = 34, .csum_offset = 16,
	};
	struct iovec iov[] = { { &hdr, sizeof(hdr) }, { (void *)f->at, f->len } };
	struct msghdr msg = {
		.msg_name = &at, .msg_namelen = sizeof(at), .msg_iov = iov, .msg_iovlen = 2,
	};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW, 0), ret;

	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		return -errno;
	ret = sendmsg(fd, &msg, 0) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static struct frame tcp_frame(const struct raw_bed *bed, size_t payload)
{
	const struct ip4 ip = { .src = RAW_PEER_IP, .dst = RAW_HOST_IP, .proto = IPPROTO_TCP };
	struct tcphdr tcp = {
		.source = htons(1), .dest = htons(2), .doff = 5, .ack = 1, .window = htons(1000),
	};
	struct frame f;
	uint8_t pseudo[12];

	put_eth(&f, bed->mac, bed->peer_mac, -1);
	put_ip4(&f, &ip, 20 + payload);
	/* as the stack leaves it: the sum of the pseudo header */
	memcpy(pseudo, f.at + 26, 8);
	memcpy(pseudo + 8, (uint8_t[]){ 0, IPPROTO_TCP, (20 + payload) >> 8, 20 + payload }, 4);
	tcp.check = htons((uint16_t)~ip_sum(pseudo, sizeof(pseudo)));
	put(&f, &tcp, sizeof(tcp));
	put_data(&f, payload, 3);
	return f;
}

/* The checksum of a TCP segment in a frame without options. */
static bool tcp_is_right(const uint8_t *at, size_t len)
{
	uint8_t bytes[4096] = {};
	size_t tcp = len - 34;

	memcpy(bytes, at + 26, 8);
	memcpy(bytes + 8, (uint8_t[]){ 0, IPPROTO_TCP, tcp >> 8, tcp }, 4);
	memcpy(bytes + 12, at + 34, tcp);
	return ip_sum(bytes, (12 + tcp + 1) & ~1UL) == 0 && ip_sum(at + 14, 20) == 0;
}

TEST_F(raw_packet, merged_packets_are_split)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = tcp_frame(bed, 2500);
	struct ibv_flow *flow = take_all(bed->a.qp);
	size_t lens[] = { 54 + 1000, 54 + 1000, 54 + 500 }, at = 54;

	ASSERT_NE(NULL, flow);
	ASSERT_OK(send_merged(bed, &f, 1000));
	for (int i = 0; i < 3; i++) {
		const uint8_t *got = bed->a.in.addr + i * RECV_BYTES;

		ASSERT_OK(poll_one(bed->a.cq, &bed->a.wc));
		EXPECT_EQ(IBV_WC_SUCCESS, bed->a.wc.status);
		ASSERT_EQ(lens[i], bed->a.wc.byte_len);
		EXPECT_EQ(lens[i] - 14, (size_t)(got[16] << 8 | got[17]));
		EXPECT_EQ(0, memcmp(got + 54, f.at + at, lens[i] - 54));
		EXPECT_TRUE(tcp_is_right(got, lens[i]));
		at += lens[i] - 54;
	}
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* ---- who may ---- */

TEST_F(raw_packet, needs_the_capability)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_qp *qp;

	ASSERT_OK(drop_net_raw());
	qp = raw_qp(bed->pd, bed->a.scq, bed->a.cq);
	EXPECT_EQ(NULL, qp);
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(NULL, take_all(bed->a.qp));
	EXPECT_EQ(EPERM, errno);
}

/* As with a packet socket: a container does not have the frames of an interface outside of it. */
TEST_F(raw_packet, needs_the_network)
{
	struct raw_bed *bed = &self->bed;
	int home = open("/proc/self/ns/net", O_RDONLY);

	ASSERT_LE(0, home);
	ASSERT_OK(unshare(CLONE_NEWNET));
	EXPECT_EQ(NULL, raw_qp(bed->pd, bed->a.scq, bed->a.cq));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(NULL, take_all(bed->a.qp));
	EXPECT_EQ(EPERM, errno);
	ASSERT_OK(setns(home, CLONE_NEWNET));
	close(home);
}

/* A frame longer than what may always be sent counts whole. */
TEST_F(raw_packet, rate_limit_of_long_frames)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 16000 };
	struct frame f;
	long long begin;

	ASSERT_OK(system("ip link set " RAW_LINK " mtu 9000"));
	ASSERT_OK(system("ip link set " RAW_PEER " mtu 9000"));
	f = plain(bed, 8986, -1);
	ASSERT_OK(ibv_modify_qp_rate_limit(bed->a.qp, &limit));
	begin = now_ns();
	for (int i = 0; i < 21; i++)
		ASSERT_DONE(raw_send(&bed->a, &f, 1));
	/* 20 times 9,000 bytes at two millions a second, less a millisecond that was saved up */
	EXPECT_GT(now_ns() - begin, 80000000);
}

/* ---- ends ---- */

struct flood {
	struct raw_bed *bed;
	struct frame frame;
	bool stop;
};

static void *flood(void *arg)
{
	struct flood *flood = arg;

	while (!__atomic_load_n(&flood->stop, __ATOMIC_RELAXED))
		net_send(flood->bed, &flood->frame);
	return NULL;
}

#define FLOOD_ROUNDS	40

/* Queue pairs and rules come and go while frames come. */
TEST_F(raw_packet, ends_under_fire)
{
	struct raw_bed *bed = &self->bed;
	struct flood fire = { .bed = bed, .frame = incoming(bed, 200, -1) };
	pthread_t thread;

	ASSERT_OK(raw_keep_hook());
	ASSERT_OK(pthread_create(&thread, NULL, flood, &fire));
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct raw c = {};
		struct ibv_flow *flow;

		ASSERT_OK(raw_open(&c, bed->pd));
		ASSERT_OK(raw_start(&c));
		flow = take_all(c.qp);
		ASSERT_NE(NULL, flow);
		ASSERT_OK(poll_one(c.cq, &c.wc));
		EXPECT_EQ(IBV_WC_SUCCESS, c.wc.status);
		if (i & 1)
			ASSERT_OK(qp_to(c.qp, i & 2 ? IBV_QPS_ERR : IBV_QPS_RESET));
		EXPECT_EQ(EBUSY, ibv_destroy_qp(c.qp));
		EXPECT_OK(ibv_destroy_flow(flow));
		EXPECT_OK(raw_close(&c));
	}
	fire.stop = true;
	pthread_join(thread, NULL);
}

/* The interface goes, or moves, while frames come; the process still has its queue pairs. */
static void lose(struct __test_metadata *_metadata, struct raw_bed *bed, const char *how)
{
	struct flood fire = { .bed = bed, .frame = incoming(bed, 200, -1) };
	struct ibv_flow *flow = take_all(bed->a.qp);
	struct frame f = plain(bed, 100, -1);
	pthread_t thread;

	ASSERT_NE(NULL, flow);
	ASSERT_OK(raw_keep_hook());
	ASSERT_OK(pthread_create(&thread, NULL, flood, &fire));
	ASSERT_OK(poll_one(bed->a.cq, &bed->a.wc));
	ASSERT_OK(system(how));
	raw_post(&bed->a, &f, 1);
	usleep(100000);
	fire.stop = true;
	pthread_join(thread, NULL);
	ibv_destroy_flow(flow);
}

TEST_F(raw_packet, interface_goes)
{
	lose(_metadata, &self->bed, "ip link del " RAW_LINK);
}

TEST_F(raw_packet, interface_moves)
{
	lose(_metadata, &self->bed, "ip netns add raw_other && ip link set " RAW_LINK
	     " netns raw_other && ip netns del raw_other");
}

TEST_F(raw_packet, device_goes)
{
	lose(_metadata, &self->bed, "rdma link del " RAW_DEVICE);
}

TEST_F(raw_packet, interface_is_down)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = plain(bed, 100, -1), own = incoming(bed, 100, -1);
	long long lost;

	ASSERT_OK(system("ip link set " RAW_LINK " down"));
	lost = statistic("send_err");
	EXPECT_DONE(raw_send(&bed->a, &f, 1));
	EXPECT_DONE(raw_send(&bed->a, &own, 1));
	EXPECT_EQ(lost + 2, statistic("send_err"));
	ASSERT_OK(system("ip link set " RAW_LINK " up"));
	EXPECT_DONE(raw_send(&bed->a, &f, 1));
	EXPECT_OK(net_expect(bed, &f));
}

TEST_HARNESS_MAIN
