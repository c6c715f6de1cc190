// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow steering: which raw packet queue pair gets a frame, and what the host gets. */
#include "raw_bed.h"

FIXTURE(flow) {
	struct raw_bed bed;
};

FIXTURE_SETUP(flow)
{
	ASSERT_OK(raw_bed_open(&self->bed));
}

FIXTURE_TEARDOWN(flow)
{
	EXPECT_OK(raw_bed_close(&self->bed));
}

static const uint8_t group[ETH_ALEN] = { 0x01, 0x00, 0x5e, 1, 2, 3 };
static const uint8_t nobody[ETH_ALEN] = { 0x02, 0xff, 0, 1, 2, 3 };

static struct ibv_flow *make(struct ibv_qp *qp, struct rule rule)
{
	return ibv_create_flow(qp, &rule.attr);
}

static struct ibv_flow *take_all(struct ibv_qp *qp, uint16_t priority)
{
	return make(qp, normal(priority));
}

/* What a rule that cannot be had ends with; 0 if it can. */
static int refusal(struct ibv_qp *qp, struct rule rule)
{
	struct ibv_flow *flow = make(qp, rule);

	if (!flow)
		return errno;
	ibv_destroy_flow(flow);
	return 0;
}

/* ---- what rules match ---- */

/* A frame to be matched, in which tests change one thing. */
struct shape {
	uint8_t dst[ETH_ALEN], src[ETH_ALEN];
	int tag;
	bool v6, tcp;
	struct ip4 ip4;
	struct ip6 ip6;
	uint16_t sport, dport;
};

static struct shape shape_of(const struct raw_bed *bed)
{
	struct shape s = {
		.tag = -1,
		.ip4 = { "192.0.2.1", "192.0.2.2", IPPROTO_UDP, 0x20, 33, 0x4000 },
		.ip6 = { "2001:db8::1", "2001:db8::2", IPPROTO_UDP, 0x20, 33, 0x12345 },
		.sport = 1234, .dport = 5678,
	};

	memcpy(s.dst, bed->mac, ETH_ALEN);
	memcpy(s.src, bed->peer_mac, ETH_ALEN);
	return s;
}

static struct frame frame_of(struct shape s)
{
	struct frame f;

	if (s.tcp) {
		s.ip4.proto = IPPROTO_TCP;
		s.ip6.next = IPPROTO_TCP;
	}
	put_eth(&f, s.dst, s.src, s.tag);
	if (s.v6)
		put_ip6(&f, &s.ip6, 40);
	else
		put_ip4(&f, &s.ip4, 40);
	put_udp(&f, s.sport, s.dport, 32);
	put_data(&f, 32, 1);
	return f;
}

/* With @rule, queue pair A gets @yes, and B, which gets what is left, @no. */
static void decides(struct __test_metadata *_metadata, struct raw_bed *bed, struct rule rule,
		    struct shape yes, struct shape no)
{
	struct ibv_flow *rest = take_all(bed->b.qp, 9), *flow = make(bed->a.qp, rule);
	struct frame f;

	ASSERT_NE(NULL, rest);
	ASSERT_NE(NULL, flow) TH_LOG("%s", strerror(errno));
	f = frame_of(yes);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	f = frame_of(no);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_EQ(0, ibv_poll_cq(bed->a.cq, 1, &bed->a.wc));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_flow(rest));
}

/* DECIDES(ADD's arguments for the rule; the field of the frame, and another value for it) */
#define DECIDES(yes, field, other, of, spec, ...)				\
	do {									\
		struct rule __rule = normal(0);					\
		struct shape __no = (yes);					\
										\
		ADD(&__rule, of, spec, __VA_ARGS__);				\
		__no.field = (other);						\
		decides(_metadata, &self->bed, __rule, (yes), __no);		\
	} while (0)

TEST_F(flow, matches_addresses)
{
	struct shape yes = shape_of(&self->bed), no = yes;
	struct rule rule = normal(0);

	add_dst_mac(&rule, yes.dst);
	memcpy(no.dst, nobody, ETH_ALEN);
	decides(_metadata, &self->bed, rule, yes, no);

	rule = normal(0);
	ADD(&rule, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
	    .val.src_mac = { 0x02, 0xaa }, .mask.src_mac = { 0xff, 0xff });
	memcpy(yes.src, (uint8_t[]){ 0x02, 0xaa, 1, 2, 3, 4 }, ETH_ALEN);
	no = yes;
	no.src[1] = 0xab;
	decides(_metadata, &self->bed, rule, yes, no);
}

TEST_F(flow, matches_ether_type)
{
	struct shape yes = shape_of(&self->bed);

	DECIDES(yes, v6, true, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
		.val.ether_type = htons(ETH_P_IP), .mask.ether_type = 0xffff);
	/* behind the tag */
	yes.tag = 5;
	DECIDES(yes, v6, true, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
		.val.ether_type = htons(ETH_P_IP), .mask.ether_type = 0xffff);
}

TEST_F(flow, matches_vlan)
{
	struct shape yes = shape_of(&self->bed);

	/* the VLAN's number, whatever the priority */
	yes.tag = 0x6007;
	DECIDES(yes, tag, 0x6008, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
		.val.vlan_tag = htons(7), .mask.vlan_tag = htons(0xfff));
	DECIDES(yes, tag, 0x4007, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
		.val.vlan_tag = htons(0x6007), .mask.vlan_tag = 0xffff);
	/* a frame without a tag is in no VLAN, not even in VLAN 0 */
	yes.tag = 0x6000;
	DECIDES(yes, tag, -1, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
		.val.vlan_tag = htons(0), .mask.vlan_tag = htons(0xfff));
}

TEST_F(flow, matches_ipv4)
{
	struct shape yes = shape_of(&self->bed);

	DECIDES(yes, ip4.src, "192.0.2.3", ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4,
		.val.src_ip = inet_addr("192.0.2.1"), .mask.src_ip = 0xffffffff);
	DECIDES(yes, ip4.dst, "192.0.3.2", ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4,
		.val.dst_ip = inet_addr("192.0.2.0"), .mask.dst_ip = inet_addr("255.255.255.0"));
	/* values that the mask leaves out do not matter */
	DECIDES(yes, v6, true, ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4,
		.val.src_ip = 1, .val.dst_ip = 2);
}

TEST_F(flow, matches_ipv4_ext)
{
	struct shape yes = shape_of(&self->bed);

	DECIDES(yes, ip4.src, "192.0.2.3", ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.src_ip = inet_addr("192.0.2.1"), .mask.src_ip = 0xffffffff);
	DECIDES(yes, ip4.proto, IPPROTO_TCP, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.proto = IPPROTO_UDP, .mask.proto = 0xff);
	DECIDES(yes, ip4.tos, 0x21, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.tos = 0x20, .mask.tos = 0xff);
	DECIDES(yes, ip4.ttl, 34, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.ttl = 33, .mask.ttl = 0xff);
	/* IB_IPV4_DONT_FRAG, IB_IPV4_MORE_FRAG */
	DECIDES(yes, ip4.frag, 0, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.flags = 2, .mask.flags = 6);
	DECIDES(yes, ip4.frag, 0x2000, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
		.val.flags = 0, .mask.flags = 4);
}

TEST_F(flow, matches_ipv6)
{
	struct shape yes = shape_of(&self->bed);

	yes.v6 = true;
	DECIDES(yes, ip6.src, "2001:db8::3", ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.src_ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 },
		.mask.src_ip = { 0xff, 0xff, 0xff, 0xff, [15] = 0xff });
	DECIDES(yes, ip6.dst, "2001:db8::3", ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.dst_ip = { [15] = 2 }, .mask.dst_ip = { [15] = 0xff });
	DECIDES(yes, ip6.label, 0x12344, ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.flow_label = htonl(0x12345), .mask.flow_label = htonl(0xfffff));
	DECIDES(yes, ip6.next, IPPROTO_TCP, ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.next_hdr = IPPROTO_UDP, .mask.next_hdr = 0xff);
	DECIDES(yes, ip6.class, 0x24, ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.traffic_class = 0x20, .mask.traffic_class = 0xfc);
	DECIDES(yes, ip6.hops, 32, ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6,
		.val.hop_limit = 33, .mask.hop_limit = 0xff);
}

TEST_F(flow, matches_ports)
{
	struct shape yes = shape_of(&self->bed);

	for (int i = 0; i < 4; i++) {
		int type = i & 1 ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP;

		yes.tcp = i & 1;
		yes.v6 = i & 2;
		DECIDES(yes, sport, 1235, ibv_flow_spec_tcp_udp, type,
			.val.src_port = htons(1234), .mask.src_port = 0xffff);
		DECIDES(yes, dport, 5679, ibv_flow_spec_tcp_udp, type,
			.val.dst_port = htons(5678), .mask.dst_port = 0xffff);
		DECIDES(yes, tcp, !yes.tcp, ibv_flow_spec_tcp_udp, type);
	}
}

/* All parts of a rule have to match. */
TEST_F(flow, matches_all_or_nothing)
{
	struct shape yes = shape_of(&self->bed), no;
	struct rule rule = normal(0);

	add_dst_mac(&rule, yes.dst);
	ADD(&rule, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
	    .val.src_ip = inet_addr("192.0.2.1"), .mask.src_ip = 0xffffffff);
	ADD(&rule, ibv_flow_spec_tcp_udp, IBV_FLOW_SPEC_UDP,
	    .val.dst_port = htons(5678), .mask.dst_port = 0xffff);
	no = yes;
	memcpy(no.dst, nobody, ETH_ALEN);
	decides(_metadata, &self->bed, rule, yes, no);
	no = yes;
	no.ip4.src = "192.0.2.9";
	decides(_metadata, &self->bed, rule, yes, no);
	no = yes;
	no.dport = 5;
	decides(_metadata, &self->bed, rule, yes, no);
}

/* ---- who gets a frame ---- */

/* The lower number wins, whichever rule was first. */
TEST_F(flow, priorities)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = to_host(bed, 1);

	for (int i = 0; i < 2; i++) {
		struct ibv_flow *first = take_all(bed->a.qp, i ? 3 : 2);
		struct ibv_flow *second = take_all(bed->b.qp, i ? 2 : 3);

		ASSERT_NE(NULL, first);
		ASSERT_NE(NULL, second);
		ASSERT_OK(net_send(bed, &f));
		EXPECT_OK(raw_expect(i ? &bed->b : &bed->a, &f));
		EXPECT_EQ(0, poll_stray(i ? bed->a.cq : bed->b.cq));
		EXPECT_OK(ibv_destroy_flow(first));
		EXPECT_OK(ibv_destroy_flow(second));
	}
}

/* Rules of one priority share, and a queue pair with two rules gets one copy. */
TEST_F(flow, one_priority)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *flows[] = {
		take_all(bed->a.qp, 2), take_all(bed->b.qp, 2), take_all(bed->a.qp, 2),
	};
	struct frame f = to_host(bed, 1);

	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_EQ(0, poll_stray(bed->a.cq));
	for (int i = 0; i < 3; i++)
		EXPECT_OK(ibv_destroy_flow(flows[i]));
}

/* What a rule takes, the host does not get; what it leaves, the host gets. */
TEST_F(flow, takes_from_the_host)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = to_host(bed, 1);
	struct ibv_flow *flow;

	ASSERT_OK(net_send(bed, &f));
	EXPECT_EQ(1, host_recv(bed));
	flow = take_all(bed->a.qp, 0);
	ASSERT_NE(NULL, flow);
	f = to_host(bed, 2);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_OK(ibv_destroy_flow(flow));
	f = to_host(bed, 3);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_EQ(3, host_recv(bed));
	EXPECT_EQ(0, poll_stray(bed->a.cq));
}

/* But packet sockets see it: those who look for a fault would miss it. */
TEST_F(flow, taps_see_what_is_taken)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = to_host(bed, 1);
	uint8_t got[sizeof(f.at)];
	struct ibv_flow *flow;
	int tap = tap_open(RAW_LINK);

	ASSERT_LE(0, tap);
	flow = take_all(bed->a.qp, 0);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	ASSERT_TRUE(readable(tap, WAIT_SECONDS * 1000));
	EXPECT_EQ((ssize_t)f.len, recv(tap, got, sizeof(got), 0));
	EXPECT_EQ(0, memcmp(got, f.at, f.len));
	EXPECT_OK(ibv_destroy_flow(flow));
	close(tap);
}

TEST_F(flow, dont_trap)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = to_host(bed, 4);
	struct rule rule = normal(0);
	struct ibv_flow *flow, *next;

	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	flow = make(bed->a.qp, rule);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_EQ(4, host_recv(bed));
	next = take_all(bed->b.qp, 1);
	ASSERT_NE(NULL, next);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_FALSE(readable(bed->host, 20));
	EXPECT_OK(ibv_destroy_flow(next));
	EXPECT_OK(ibv_destroy_flow(flow));
}

TEST_F(flow, sniffer)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *sniffer = make(bed->a.qp, rule_of(IBV_FLOW_ATTR_SNIFFER, 0)), *flow;
	struct frame f = to_host(bed, 5);

	ASSERT_NE(NULL, sniffer);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_EQ(5, host_recv(bed));
	flow = take_all(bed->b.qp, 0);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_FALSE(readable(bed->host, 20));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_flow(sniffer));
}

/* Default rules get what no normal rule takes, and the host gets it, too. */
TEST_F(flow, all_default)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *rest = make(bed->a.qp, rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0)), *flow;
	struct frame f = to_host(bed, 6);

	ASSERT_NE(NULL, rest);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_EQ(6, host_recv(bed));
	memcpy(f.at, nobody, ETH_ALEN);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	flow = take_all(bed->b.qp, 0xffff);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_EQ(0, poll_stray(bed->a.cq));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_flow(rest));
}

TEST_F(flow, multicast_default)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow *flow = make(bed->a.qp, rule_of(IBV_FLOW_ATTR_MC_DEFAULT, 0));
	struct frame f = to_host(bed, 7);

	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_EQ(7, host_recv(bed));
	memcpy(f.at, group, ETH_ALEN);
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->a, &f));
	EXPECT_EQ(0, poll_stray(bed->a.cq));
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* ---- what the interface lets in ---- */

/* Does @command succeed with @filter on what it prints? */
#define SHOWS(command, filter)	(!system(command " | grep -q '" filter "'"))
#define LINK_SHOWS(filter)	SHOWS("ip -d link show " RAW_LINK, filter)
#define GROUP_SHOWS		SHOWS("ip maddr show dev " RAW_LINK, "01:00:5e:01:02:03")

/* A NIC drops what is for other addresses, unless it is told not to; and only as long. */
TEST_F(flow, interface_lets_in)
{
	struct ibv_qp *qp = self->bed.a.qp;
	struct rule rule = normal(0);
	struct ibv_flow *flow, *again;

	ASSERT_TRUE(LINK_SHOWS("promiscuity 0"));
	ASSERT_TRUE(LINK_SHOWS("allmulti 0"));
	flow = make(qp, rule_of(IBV_FLOW_ATTR_SNIFFER, 0));
	again = make(qp, rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0));
	EXPECT_TRUE(LINK_SHOWS("promiscuity 2"));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_flow(again));
	EXPECT_TRUE(LINK_SHOWS("promiscuity 0"));

	flow = make(qp, rule_of(IBV_FLOW_ATTR_MC_DEFAULT, 0));
	EXPECT_TRUE(LINK_SHOWS("allmulti 1"));
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_TRUE(LINK_SHOWS("allmulti 0"));

	add_dst_mac(&rule, group);
	flow = make(qp, rule);
	again = make(qp, rule);
	EXPECT_TRUE(GROUP_SHOWS);
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_TRUE(GROUP_SHOWS);
	EXPECT_OK(ibv_destroy_flow(again));
	EXPECT_FALSE(GROUP_SHOWS);

	/* a rule without an address takes what comes anyway */
	flow = take_all(qp, 0);
	EXPECT_TRUE(LINK_SHOWS("promiscuity 0"));
	EXPECT_OK(ibv_destroy_flow(flow));
}

/* ---- actions ---- */

TEST_F(flow, drop)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = to_host(bed, 8);
	struct rule rule = normal(0);
	struct ibv_flow *flow, *rest;

	ADD(&rule, ibv_flow_spec_tcp_udp, IBV_FLOW_SPEC_UDP,
	    .val.dst_port = htons(RAW_HOST_PORT), .mask.dst_port = 0xffff);
	ADD(&rule, ibv_flow_spec_action_drop, IBV_FLOW_SPEC_ACTION_DROP);
	flow = make(bed->a.qp, rule);
	rest = take_all(bed->b.qp, 1);
	ASSERT_NE(NULL, flow);
	ASSERT_NE(NULL, rest);
	ASSERT_OK(net_send(bed, &f));
	f = frame_of(shape_of(bed));
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(raw_expect(&bed->b, &f));
	EXPECT_EQ(0, poll_stray(bed->a.cq));
	EXPECT_FALSE(readable(bed->host, 20));
	EXPECT_OK(ibv_destroy_flow(rest));
	EXPECT_OK(ibv_destroy_flow(flow));
}

TEST_F(flow, tag)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(bed->ctx, &attr);
	struct ibv_poll_cq_attr poll = {};
	struct frame f = to_host(bed, 9);
	struct rule rule = normal(0);
	struct ibv_flow *flow;
	struct raw c = {};
	struct patience patience = {};

	ASSERT_NE(NULL, cq);
	ADD(&rule, ibv_flow_spec_action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = 0xabc123);
	ASSERT_OK(buf_open(&c.in, bed->pd, RECVS * RECV_BYTES, 0, IBV_ACCESS_LOCAL_WRITE));
	c.qp = raw_qp(bed->pd, bed->a.scq, ibv_cq_ex_to_cq(cq));
	ASSERT_NE(NULL, c.qp);
	ASSERT_OK(raw_start(&c));
	flow = make(c.qp, rule);
	ASSERT_NE(NULL, flow);
	ASSERT_OK(net_send(bed, &f));
	while (ibv_start_poll(cq, &poll))
		ASSERT_TRUE(still_patient(&patience, 0));
	EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
	EXPECT_EQ(0xabc123, ibv_wc_read_flow_tag(cq));
	EXPECT_EQ(f.len, ibv_wc_read_byte_len(cq));
	ibv_end_poll(cq);
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(raw_close(&c));
	EXPECT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* One struct ibv_counters for two flows; their values where the program wants them. */
TEST_F(flow, counters)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_counters_init_attr init = {};
	struct ibv_counters *counters = ibv_create_counters(bed->ctx, &init);
	struct ibv_counter_attach_attr frames = { .counter_desc = IBV_COUNTER_PACKETS, .index = 2 };
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES, .index = 0 };
	struct frame f = to_host(bed, 10), tagged = frame_of(shape_of(bed));
	struct rule rule = normal(0);
	struct ibv_flow *one, *two;
	uint64_t values[4];
	struct shape s = shape_of(bed);

	ASSERT_NE(NULL, counters);
	s.tag = 3;
	tagged = frame_of(s);
	ASSERT_OK(ibv_attach_counters_point_flow(counters, &frames, NULL));
	ASSERT_OK(ibv_attach_counters_point_flow(counters, &bytes, NULL));
	ADD(&rule, ibv_flow_spec_counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = counters);
	one = make(bed->a.qp, rule);
	ASSERT_NE(NULL, one);
	ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(raw_expect(&bed->a, &f));
	ASSERT_OK(net_send(bed, &tagged));
	ASSERT_OK(raw_expect(&bed->a, &tagged));
	memset(values, 0xff, sizeof(values));
	ASSERT_OK(ibv_read_counters(counters, values, 4, 0));
	EXPECT_EQ(f.len + tagged.len, values[0]);
	EXPECT_EQ(0, values[1]);
	EXPECT_EQ(2, values[2]);
	EXPECT_EQ(0, values[3]);

	/* another flow counts in the same place, and both go on as before without the first */
	EXPECT_EQ(EBUSY, ibv_attach_counters_point_flow(counters, &bytes, NULL));
	EXPECT_NE(0, ibv_destroy_counters(counters));
	two = make(bed->b.qp, rule);
	ASSERT_NE(NULL, two);
	ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(raw_expect(&bed->b, &f));
	ASSERT_OK(ibv_read_counters(counters, values, 4, 0));
	EXPECT_EQ(4, values[2]);
	EXPECT_OK(ibv_destroy_flow(one));
	ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(raw_expect(&bed->b, &f));
	ASSERT_OK(ibv_read_counters(counters, values, 3, 0));
	EXPECT_EQ(5, values[2]);
	EXPECT_OK(ibv_destroy_flow(two));
	EXPECT_OK(ibv_destroy_counters(counters));
}

TEST_F(flow, counters_count_what_is_dropped)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_counters_init_attr init = {};
	struct ibv_counters *counters = ibv_create_counters(bed->ctx, &init);
	struct ibv_counter_attach_attr frames = { .counter_desc = IBV_COUNTER_PACKETS };
	struct frame f = to_host(bed, 10);
	struct rule rule = normal(0);
	struct patience patience = {};
	struct ibv_flow *flow;
	uint64_t count = 0;

	ASSERT_NE(NULL, counters);
	ASSERT_OK(ibv_attach_counters_point_flow(counters, &frames, NULL));
	ADD(&rule, ibv_flow_spec_action_drop, IBV_FLOW_SPEC_ACTION_DROP);
	ADD(&rule, ibv_flow_spec_counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = counters);
	flow = make(bed->a.qp, rule);
	ASSERT_NE(NULL, flow);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(net_send(bed, &f));
	while (count < 3) {
		ASSERT_OK(ibv_read_counters(counters, &count, 1, 0));
		ASSERT_TRUE(still_patient(&patience, count));
	}
	EXPECT_EQ(3, count);
	EXPECT_OK(ibv_destroy_flow(flow));
	EXPECT_OK(ibv_destroy_counters(counters));
}

/* ---- what cannot be had ---- */

TEST_F(flow, unsupported)
{
	struct ibv_qp *qp = self->bed.a.qp;
	struct rule rule = normal(0);

	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	EXPECT_EQ(EOPNOTSUPP, refusal(qp, rule));
	rule = normal(0);
	ADD(&rule, ibv_flow_spec_tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL,
	    .val.tunnel_id = htonl(1), .mask.tunnel_id = htonl(1));
	EXPECT_EQ(EOPNOTSUPP, refusal(qp, rule));
	rule = normal(0);
	ADD(&rule, ibv_flow_spec_ipv4, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_IPV4,
	    .val.src_ip = 1, .mask.src_ip = 1);
	EXPECT_EQ(EOPNOTSUPP, refusal(qp, rule));
	rule = normal(0);
	ADD(&rule, ibv_flow_spec_gre, IBV_FLOW_SPEC_GRE, .mask.protocol = 0xffff);
	EXPECT_EQ(EOPNOTSUPP, refusal(qp, rule));
	rule = normal(0);
	ADD(&rule, ibv_flow_spec_mpls, IBV_FLOW_SPEC_MPLS, .mask.label = 1);
	EXPECT_EQ(EOPNOTSUPP, refusal(qp, rule));
}

TEST_F(flow, senseless)
{
	struct ibv_qp *qp = self->bed.a.qp;
	struct rule rule = normal(0);

	add_dst_mac(&rule, group);
	add_dst_mac(&rule, group);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = normal(0);
	ADD(&rule, ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4, .mask.src_ip = 1);
	ADD(&rule, ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6, .mask.hop_limit = 1);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = normal(0);
	ADD(&rule, ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH,
	    .val.ether_type = htons(ETH_P_IPV6), .mask.ether_type = 0xffff);
	ADD(&rule, ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4, .mask.src_ip = 1);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = normal(0);
	ADD(&rule, ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT,
	    .val.proto = IPPROTO_TCP, .mask.proto = 0xff);
	ADD(&rule, ibv_flow_spec_tcp_udp, IBV_FLOW_SPEC_UDP, .mask.dst_port = 1);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0);
	add_dst_mac(&rule, group);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = rule_of(IBV_FLOW_ATTR_SNIFFER, 0);
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	rule = normal(0);
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	ADD(&rule, ibv_flow_spec_action_drop, IBV_FLOW_SPEC_ACTION_DROP);
	EXPECT_EQ(EINVAL, refusal(qp, rule));

	EXPECT_EQ(EINVAL, refusal(qp, rule_of(4, 0)));
	rule = normal(0);
	rule.attr.port = 2;
	EXPECT_EQ(EINVAL, refusal(qp, rule));
}

/* Only raw packet queue pairs have flows. */
TEST_F(flow, other_queue_pairs)
{
	struct raw_bed *bed = &self->bed;
	static const struct {
		enum ibv_qp_type type;
		int error;
	} tries[] = {
		{ IBV_QPT_UD, EOPNOTSUPP }, { IBV_QPT_RC, EINVAL },
	};

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = tries[i].type, .send_cq = bed->a.scq, .recv_cq = bed->a.cq,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1 },
		};
		struct ibv_qp *qp = ibv_create_qp(bed->pd, &init);

		ASSERT_NE(NULL, qp);
		EXPECT_EQ(tries[i].error, refusal(qp, normal(0)));
		EXPECT_OK(ibv_destroy_qp(qp));
	}
}

#define MANY	4096

/* There is an end to what a program can have; and all that it had is free again. */
TEST_F(flow, limit)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_flow **flows = calloc(MANY, sizeof(*flows));
	struct frame f = to_host(bed, 11);
	int most[2], n;

	for (int round = 0; round < 2; round++) {
		for (n = 0; n < MANY; n++) {
			flows[n] = take_all(bed->a.qp, n);
			if (!flows[n])
				break;
		}
		EXPECT_EQ(ENOMEM, errno);
		most[round] = n;
		ASSERT_OK(net_send(bed, &f));
		EXPECT_OK(raw_expect(&bed->a, &f));
		while (n)
			ASSERT_OK(ibv_destroy_flow(flows[--n]));
	}
	EXPECT_GE(most[0], 256);
	EXPECT_LT(most[0], MANY);
	EXPECT_EQ(most[0], most[1]);
	free(flows);
}

TEST_HARNESS_MAIN
