// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Packets of one buffer that are executed as one: which they are, and what is in them. */

#include <kunit/skbuff.h>
#include <kunit/test.h>
#include <linux/ip.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/net_namespace.h>

#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/qp.h"
#include "roce/roce.h"

#define PAYLOAD		64
#define SIZE		(sizeof(struct vrnic_bth) + PAYLOAD + VRNIC_ICRC_BYTES)
#define PACKETS		6
#define FIRST_PSN	1000

/* Byte @i of the payload of packet @n. */
static u8 pattern(u32 n, u32 i)
{
	return n * 37 + i;
}

/* A buffer of packets in the middle of a WRITE, with an IPv4 and a UDP header. */
static struct sk_buff *burst(struct kunit *test)
{
	u32 hdrs = sizeof(struct iphdr) + sizeof(struct udphdr), n, i;
	struct vrnic_bth *bth;
	struct sk_buff *skb;
	u8 *payload;

	skb = kunit_zalloc_skb(test, hdrs + PACKETS * SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->dev = init_net.loopback_dev;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_network_header(skb);
	skb_put(skb, hdrs);
	skb_set_transport_header(skb, sizeof(struct iphdr));
	skb_pull(skb, hdrs);
	for (n = 0; n < PACKETS; n++) {
		bth = skb_put_zero(skb, SIZE);
		vrnic_bth_fill(bth, VRNIC_BTH_WRITE_MIDDLE, 0, false, 17,
			       FIRST_PSN + n, false);
		payload = (u8 *)(bth + 1);
		for (i = 0; i < PAYLOAD; i++)
			payload[i] = pattern(n, i);
	}
	return skb;
}

static struct vrnic_bth *nth(struct sk_buff *skb, u32 n)
{
	return (struct vrnic_bth *)(skb->data + n * SIZE);
}

/* The packets behind the @at-th that are coupled with it. */
static u32 coupled(struct kunit *test, struct sk_buff *skb, u32 at)
{
	KUNIT_ASSERT_TRUE(test, vrnic_pkt_parse(skb, at * SIZE, SIZE));
	return vrnic_pkt_couple(skb, at * SIZE, SIZE);
}

static void train_is_all(struct kunit *test)
{
	struct sk_buff *skb = burst(test);

	KUNIT_EXPECT_EQ(test, PACKETS - 1, coupled(test, skb, 0));
	KUNIT_EXPECT_EQ(test, PACKETS, vrnic_pkt_count(vrnic_pkt(skb)));
	KUNIT_EXPECT_EQ(test, PACKETS * PAYLOAD, vrnic_pkt_bytes(vrnic_pkt(skb)));
	KUNIT_EXPECT_EQ(test, FIRST_PSN, vrnic_pkt(skb)->psn);
	KUNIT_EXPECT_EQ(test, PACKETS - 3, coupled(test, skb, 2));
	/* the last one has nothing behind it, and is no train */
	KUNIT_EXPECT_EQ(test, 0, coupled(test, skb, PACKETS - 1));
	KUNIT_EXPECT_FALSE(test, vrnic_pkt(skb)->train);
	KUNIT_EXPECT_EQ(test, 1, vrnic_pkt_count(vrnic_pkt(skb)));
}

/* Whatever differs in the fourth packet ends the train before it. */
static void train_ends(struct kunit *test)
{
	static const struct {
		const char *what;
		u8 opcode;
		bool solicited;
		u32 qpn;
		s32 psn;
		bool ackreq;
	} cases[] = {
		{ "the last of a message", VRNIC_BTH_WRITE_LAST, false, 17, 3, false },
		{ "another operation", VRNIC_BTH_SEND_MIDDLE, false, 17, 3, false },
		{ "another service", VRNIC_BTH_WRITE_MIDDLE | VRNIC_SVC_UC, false, 17, 3, false },
		{ "a solicited event", VRNIC_BTH_WRITE_MIDDLE, true, 17, 3, false },
		{ "another queue pair", VRNIC_BTH_WRITE_MIDDLE, false, 18, 3, false },
		{ "a PSN left out", VRNIC_BTH_WRITE_MIDDLE, false, 17, 4, false },
		{ "a PSN once more", VRNIC_BTH_WRITE_MIDDLE, false, 17, 2, false },
		{ "an acknowledgment is due", VRNIC_BTH_WRITE_MIDDLE, false, 17, 3, true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sk_buff *skb = burst(test);

		vrnic_bth_fill(nth(skb, 3), cases[i].opcode, 0, cases[i].solicited,
			       cases[i].qpn, FIRST_PSN + cases[i].psn, cases[i].ackreq);
		KUNIT_EXPECT_EQ_MSG(test, 2, coupled(test, skb, 0), "%s", cases[i].what);
	}
}

/* Where PSNs wrap, once in 16 million packets, another train begins. */
static void train_wraps(struct kunit *test)
{
	struct sk_buff *skb = burst(test);
	u32 n;

	for (n = 0; n < PACKETS; n++)
		vrnic_bth_fill(nth(skb, n), VRNIC_BTH_WRITE_MIDDLE, 0, false, 17,
			       VRNIC_PSN_MASK - 2 + n, false);
	KUNIT_EXPECT_EQ(test, 2, coupled(test, skb, 0));
	KUNIT_EXPECT_EQ(test, PACKETS - 4, coupled(test, skb, 3));
	KUNIT_EXPECT_EQ(test, 0, vrnic_pkt(skb)->psn);
}

/* Of XRC, the packets that name one SRQ: the first bytes of these are its number. */
static void train_of_one_srq(struct kunit *test)
{
	struct sk_buff *skb = burst(test);
	u32 n;

	for (n = 0; n < PACKETS; n++) {
		vrnic_bth_fill(nth(skb, n), VRNIC_BTH_WRITE_MIDDLE | VRNIC_SVC_XRC, 0, false, 17,
			       FIRST_PSN + n, false);
		memset(nth(skb, n) + 1, n == 3 ? 5 : 4, sizeof(struct vrnic_xrceth));
	}
	KUNIT_EXPECT_EQ(test, 2, coupled(test, skb, 0));
	KUNIT_EXPECT_EQ(test, 0, coupled(test, skb, 3));
	KUNIT_EXPECT_EQ(test, PACKETS - 5, coupled(test, skb, 4));
}

/* A shorter last packet is none of the train. */
static void train_of_whole_packets(struct kunit *test)
{
	struct sk_buff *skb = burst(test);

	skb_trim(skb, skb->len - 4);
	KUNIT_EXPECT_EQ(test, PACKETS - 2, coupled(test, skb, 0));
}

static void fill_all(struct sk_buff *skb, u8 opcode)
{
	u32 n;

	for (n = 0; n < PACKETS; n++)
		vrnic_bth_fill(nth(skb, n), opcode, 0, false, 17, FIRST_PSN + n, false);
	vrnic_pkt_parse(skb, 0, SIZE);
}

/* A message's first packet says where it goes, its last that it is there. */
static void train_begins_in_the_middle(struct kunit *test)
{
	static const u8 middle[] = {
		VRNIC_BTH_SEND_MIDDLE, VRNIC_BTH_WRITE_MIDDLE, VRNIC_BTH_READ_RESP_MIDDLE,
	}, none[] = {
		VRNIC_BTH_SEND_FIRST, VRNIC_BTH_SEND_LAST, VRNIC_BTH_SEND_ONLY,
		VRNIC_BTH_WRITE_FIRST, VRNIC_BTH_WRITE_LAST, VRNIC_BTH_WRITE_ONLY,
		VRNIC_BTH_READ_RESP_FIRST, VRNIC_BTH_READ_RESP_LAST,
		VRNIC_BTH_READ_RESP_ONLY, VRNIC_BTH_ACK,
	};
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		skb = burst(test);
		fill_all(skb, none[i]);
		KUNIT_EXPECT_EQ_MSG(test, 0, vrnic_pkt_couple(skb, 0, SIZE),
				    "opcode 0x%02x", none[i]);
	}
	for (i = 0; i < ARRAY_SIZE(middle); i++) {
		skb = burst(test);
		fill_all(skb, middle[i]);
		KUNIT_EXPECT_EQ_MSG(test, PACKETS - 1, coupled(test, skb, 0),
				    "opcode 0x%02x", middle[i]);
	}
}

/* Its payload is that of its packets, without what lies between. */
static void train_payload(struct kunit *test)
{
	struct sk_buff *skb = burst(test);
	struct vrnic_seg seg = {};
	struct vrnic_sgl dst = { .seg = &seg };
	u32 n, i;
	u8 *to;

	to = kunit_kzalloc(test, PACKETS * PAYLOAD + 1, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, to);
	KUNIT_ASSERT_EQ(test, PACKETS - 2, coupled(test, skb, 1));
	vrnic_sgl_kva(&dst, to, PACKETS * PAYLOAD + 1);
	vrnic_pkt_copy(skb, &dst, false);
	for (n = 1; n < PACKETS; n++)
		for (i = 0; i < PAYLOAD; i++)
			KUNIT_ASSERT_EQ_MSG(test, pattern(n, i), to[(n - 1) * PAYLOAD + i],
					    "packet %u, byte %u", n, i);
	KUNIT_EXPECT_EQ(test, 0, to[(PACKETS - 1) * PAYLOAD]);
}

/* Taken apart, it is what it was made of, in that order. */
static void train_apart(struct kunit *test)
{
	struct sk_buff *skb = burst(test), *one;
	struct vrnic_qp *qp;
	u32 n;

	qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	skb_queue_head_init(&qp->rxq);
	KUNIT_ASSERT_EQ(test, PACKETS - 1, coupled(test, skb, 0));
	vrnic_pkt_uncouple(qp, skb);
	KUNIT_EXPECT_FALSE(test, vrnic_pkt(skb)->train);
	KUNIT_EXPECT_EQ(test, sizeof(struct vrnic_bth), vrnic_pkt(skb)->payload);
	KUNIT_EXPECT_EQ(test, PACKETS - 1, skb_queue_len(&qp->rxq));
	for (n = 1; (one = vrnic_rxq_take(qp)); n++) {
		KUNIT_EXPECT_FALSE(test, vrnic_pkt(one)->train);
		KUNIT_EXPECT_EQ(test, vrnic_psn_add(FIRST_PSN, n), vrnic_pkt(one)->psn);
		KUNIT_EXPECT_EQ(test, n * SIZE + sizeof(struct vrnic_bth),
				vrnic_pkt(one)->payload);
		KUNIT_EXPECT_EQ(test, PAYLOAD, vrnic_pkt(one)->len);
		kfree_skb(one);
	}
}

static struct kunit_case train_cases[] = {
	KUNIT_CASE(train_is_all),
	KUNIT_CASE(train_ends),
	KUNIT_CASE(train_wraps),
	KUNIT_CASE(train_of_one_srq),
	KUNIT_CASE(train_of_whole_packets),
	KUNIT_CASE(train_begins_in_the_middle),
	KUNIT_CASE(train_payload),
	KUNIT_CASE(train_apart),
	{}
};

static struct kunit_suite train_suite = {
	.name = "vrnic_train",
	.test_cases = train_cases,
};

kunit_test_suite(train_suite);
