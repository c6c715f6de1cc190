// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that wait, for a run or for one that is missing: which may, and how much memory
 * they hold.
 */

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/ip.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "base/fault.h"
#include "base/stats.h"
#include "base/user.h"
#include "lib/hdr.h"
#include "queue/qp.h"
#include "roce/roce.h"
#include "verbs/flow.h"
#include "vrnic.h"

#define PEER		0xc0000201U	/* 192.0.2.1 */
#define OWN		0xc0000202U
#define STRANGER	0xc0000203U
#define PORT		0xc123
#define QKEY		0x1234U
#define PAYLOAD		64
#define SIZE		(sizeof(struct vrnic_bth) + PAYLOAD + VRNIC_ICRC_BYTES)
#define HDRS		(sizeof(struct iphdr) + sizeof(struct udphdr))

/**
 * struct rig - queue pairs that packets come for
 * @dev: their device
 * @qp: connected to PEER
 */
struct rig {
	struct vrnic_dev *dev;
	struct vrnic_qp *qp;
};

static void gid4(union ib_gid *gid, u32 addr)
{
	ipv6_addr_set_v4mapped(htonl(addr), (struct in6_addr *)gid);
}

static void purge(void *arg)
{
	vrnic_rxq_purge(arg);
}

static struct vrnic_qp *add_qp(struct kunit *test, enum ib_qp_type type)
{
	struct rig *rig = test->priv;
	struct vrnic_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->dev = rig->dev;
	qp->type = type;
	qp->state = IB_QPS_RTS;
	qp->attr.qkey = QKEY;
	skb_queue_head_init(&qp->rxq);
	qp->rxq_room.most = VRNIC_RXQ_BYTES;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, purge, qp));
	if (type != IB_QPT_RC)
		return qp;
	qp->roce = kunit_kzalloc(test, sizeof(*qp->roce), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, qp->roce);
	gid4(&qp->roce->path.sgid, OWN);
	gid4(&qp->roce->path.dgid, PEER);
	return qp;
}

static void free_stats(void *stats)
{
	free_percpu((struct vrnic_stats __percpu *)stats);
}

static int arrive_init(struct kunit *test)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);

	if (!rig)
		return -ENOMEM;
	test->priv = rig;
	rig->dev = kunit_kzalloc(test, sizeof(*rig->dev), GFP_KERNEL);
	if (!rig->dev)
		return -ENOMEM;
	rig->dev->faults = kunit_kzalloc(test, sizeof(*rig->dev->faults), GFP_KERNEL);
	if (!rig->dev->faults)
		return -ENOMEM;
	skb_queue_head_init(&rig->dev->faults->late);
	rig->dev->stats = alloc_percpu(struct vrnic_stats);
	if (!rig->dev->stats ||
	    kunit_add_action_or_reset(test, free_stats, (void *)rig->dev->stats))
		return -ENOMEM;
	rig->qp = add_qp(test, IB_QPT_RC);
	return 0;
}

static void put_headers(struct sk_buff *skb, u32 from)
{
	struct iphdr *ip = skb_put_zero(skb, HDRS);
	struct udphdr *udp = (struct udphdr *)(ip + 1);

	ip->saddr = htonl(from);
	ip->daddr = htonl(OWN);
	udp->source = htons(PORT);
}

/* @n packets of one buffer, with PSNs from @psn on. */
static struct sk_buff *packets(struct kunit *test, u8 opcode, u32 from, u32 psn, u32 n)
{
	struct sk_buff *skb = alloc_skb(HDRS + n * SIZE, GFP_KERNEL);
	struct vrnic_bth *bth;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->dev = init_net.loopback_dev;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_network_header(skb);
	put_headers(skb, from);
	skb_set_transport_header(skb, sizeof(struct iphdr));
	skb_pull(skb, HDRS);
	for (i = 0; i < n; i++) {
		bth = skb_put_zero(skb, SIZE);
		vrnic_bth_fill(bth, opcode, 0, false, 17, psn + i, false);
		memset(bth + 1, psn + i, PAYLOAD);
	}
	return skb;
}

static void parse(struct kunit *test, struct sk_buff *skb, u32 nth)
{
	if (!vrnic_pkt_parse(skb, nth * SIZE, SIZE)) {
		kfree_skb(skb);
		KUNIT_FAIL_AND_ABORT(test, "not a packet");
	}
}

static struct sk_buff *packet(struct kunit *test, u8 opcode, u32 from, u32 psn)
{
	struct sk_buff *skb = packets(test, opcode, from, psn, 1);

	parse(test, skb, 0);
	return skb;
}

static bool arrive(struct vrnic_qp *qp, struct sk_buff *skb)
{
	bool there;

	local_bh_disable();
	there = vrnic_pkt_arrive(qp, skb);
	local_bh_enable();
	return there;
}

/* ---- the queue of a queue pair ---- */

/* Send it packets of a buffer of @truesize each until one is dropped. Return: how many. */
static u32 fill(struct kunit *test, struct vrnic_qp *qp, u32 truesize)
{
	struct sk_buff *skb;
	u32 n;

	for (n = 0; n < 100000; n++) {
		skb = packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, n);
		skb->truesize = truesize;
		if (!arrive(qp, skb))
			break;
	}
	return n;
}

static void a_queue_is_bounded_by_bytes(struct kunit *test)
{
	struct rig *rig = test->priv;
	u32 n = fill(test, rig->qp, SZ_64K);

	KUNIT_EXPECT_LE(test, n * SZ_64K, SZ_4M);
	KUNIT_EXPECT_GE(test, n * SZ_64K, SZ_4M - SZ_128K);
	vrnic_rxq_purge(rig->qp);
	KUNIT_EXPECT_EQ(test, 0, rig->qp->rxq_room.bytes);
	/* there is room again */
	KUNIT_EXPECT_EQ(test, n, fill(test, rig->qp, SZ_64K));
}

static void all_queues_together_are_bounded(struct kunit *test)
{
	u32 n, all = 0;

	for (n = 0; n < 16; n++)
		all += fill(test, add_qp(test, IB_QPT_RC), SZ_256K);
	KUNIT_EXPECT_LE(test, (u64)all * SZ_256K, SZ_32M + SZ_16M);
	KUNIT_EXPECT_GE(test, (u64)all * SZ_256K, SZ_4M);
	/* full queues have left room for the first packet of others */
	KUNIT_EXPECT_EQ(test, 1, fill(test, add_qp(test, IB_QPT_RC), SZ_2M));
	for (n = 0, all = 0; n < 32; n++)
		all += fill(test, add_qp(test, IB_QPT_RC), SZ_2M);
	KUNIT_EXPECT_LE(test, (u64)all * SZ_2M, SZ_32M + SZ_16M);
	/* and the last ones found no room, though they had nothing themselves */
	KUNIT_EXPECT_EQ(test, 0, fill(test, add_qp(test, IB_QPT_RC), SZ_2M));
}

static void end_user(void *user)
{
	vrnic_user_put(user);
}

static struct vrnic_user *add_user(struct kunit *test, uid_t uid)
{
	struct vrnic_user *user = vrnic_user_get(KUIDT_INIT(uid));

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(user));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, end_user, user));
	return user;
}

static struct vrnic_qp *add_qp_of(struct kunit *test, struct vrnic_user *user)
{
	struct vrnic_qp *qp = add_qp(test, IB_QPT_RC);

	qp->rxq_room.user = user;
	return qp;
}

static void one_user_leaves_room_for_others(struct kunit *test)
{
	struct vrnic_user *greedy = add_user(test, 70001), *other = add_user(test, 70002);
	struct vrnic_qp *full[16];
	u32 n, all = 0;

	for (n = 0; n < ARRAY_SIZE(full); n++) {
		full[n] = add_qp_of(test, greedy);
		all += fill(test, full[n], SZ_256K);
	}
	KUNIT_EXPECT_LE(test, (u64)all * SZ_256K, SZ_16M + SZ_8M);
	KUNIT_EXPECT_GE(test, (u64)all * SZ_256K, SZ_2M);
	/* full queues have left room for the first packet of others of the same user */
	KUNIT_EXPECT_EQ(test, 1, fill(test, add_qp_of(test, greedy), SZ_1M));
	for (n = 0; n < 32; n++)
		fill(test, add_qp_of(test, greedy), SZ_1M);
	KUNIT_EXPECT_EQ(test, 0, fill(test, add_qp_of(test, greedy), SZ_1M));
	/* now this user has no room at all, but another one has, and so has root */
	for (n = 0; n < 8; n++) {
		KUNIT_EXPECT_LE(test, 1, fill(test, add_qp_of(test, other), SZ_4K));
		KUNIT_EXPECT_LE(test, 1, fill(test, add_qp(test, IB_QPT_RC), SZ_4K));
	}
	/* one list may hold no more than a CPU keeps to itself before it updates the sum */
	for (n = 0; n < ARRAY_SIZE(full); n++)
		vrnic_rxq_purge(full[n]);
	KUNIT_EXPECT_LE(test, 1, fill(test, full[0], SZ_256K));
}

static void a_user_is_found_while_it_is_there(struct kunit *test)
{
	struct vrnic_user *user = add_user(test, 70001);

	KUNIT_EXPECT_PTR_EQ(test, user, add_user(test, 70001));
	KUNIT_EXPECT_PTR_NE(test, user, add_user(test, 70002));
	KUNIT_EXPECT_NULL(test, vrnic_user_get(GLOBAL_ROOT_UID));
}

/* After a send that failed, a queue pair receives as before. */
static void a_send_error_keeps_what_came(struct kunit *test)
{
	struct vrnic_qp *qp = add_qp(test, IB_QPT_UD);

	vrnic_rxq_return(qp, packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 0));
	WRITE_ONCE(qp->state, IB_QPS_SQE);
	KUNIT_EXPECT_FALSE(test, vrnic_roce_flush(qp));
	KUNIT_EXPECT_EQ(test, 1, skb_queue_len(&qp->rxq));
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_FALSE(test, vrnic_roce_flush(qp));
	KUNIT_EXPECT_EQ(test, 0, skb_queue_len(&qp->rxq));
}

/* A clone holds all of its buffer, but the next clone holds no more. */
static void a_buffer_counts_once(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct sk_buff *skb = packets(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 0, 4), *one;
	u32 i;

	skb->truesize = SZ_64K;
	for (i = 0; i < 4; i++) {
		one = skb_clone(skb, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, one);
		parse(test, one, i);
		KUNIT_ASSERT_TRUE(test, arrive(rig->qp, one));
		KUNIT_EXPECT_EQ(test, SZ_64K + (i + 1) * sizeof(*skb), rig->qp->rxq_room.bytes);
	}
	kfree_skb(skb);
	for (i = 4; i--; ) {
		KUNIT_EXPECT_GE(test, rig->qp->rxq_room.bytes, SZ_64K);
		kfree_skb(vrnic_rxq_take(rig->qp));
	}
	KUNIT_EXPECT_EQ(test, 0, rig->qp->rxq_room.bytes);
}

/* What comes between clones of a buffer, and goes again, changes nothing. */
static void a_buffer_counts_once_whatever_comes_between(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct sk_buff *skb = packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 0), *one;
	u32 before;

	one = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, one);
	KUNIT_ASSERT_TRUE(test, arrive(rig->qp, skb));
	KUNIT_ASSERT_TRUE(test, arrive(rig->qp, one));
	before = rig->qp->rxq_room.bytes;
	vrnic_rxq_return(rig->qp, packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 1));
	one = vrnic_rxq_take(rig->qp);
	KUNIT_EXPECT_EQ(test, before, rig->qp->rxq_room.bytes);
	skb = vrnic_rxq_take(rig->qp);
	vrnic_rxq_return(rig->qp, one);
	vrnic_rxq_return(rig->qp, skb);
	kfree_skb(vrnic_rxq_take(rig->qp));
	kfree_skb(vrnic_rxq_take(rig->qp));
	kfree_skb(vrnic_rxq_take(rig->qp));
	KUNIT_EXPECT_EQ(test, 0, rig->qp->rxq_room.bytes);
}

static void a_stranger_does_not_fill_the_queue(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct vrnic_qp *qp = rig->qp;

	KUNIT_EXPECT_FALSE(test, arrive(qp, packet(test, VRNIC_BTH_WRITE_MIDDLE, STRANGER, 0)));
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&qp->rxq));
	KUNIT_EXPECT_TRUE(test, arrive(qp, packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 0)));
	/* nor does anybody that of one which has no peer on the wire */
	qp = add_qp(test, IB_QPT_RC);
	qp->roce = NULL;
	KUNIT_EXPECT_FALSE(test, arrive(qp, packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, 0)));
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&qp->rxq));
}

static void who_does_not_know_the_qkey_does_not_fill_the_queue(struct kunit *test)
{
	struct vrnic_qp *qp = add_qp(test, IB_QPT_UD);
	struct vrnic_deth deth = { .qkey = cpu_to_be32(QKEY + 1) };
	struct sk_buff *skb;

	skb = packet(test, VRNIC_SVC_UD | VRNIC_BTH_SEND_ONLY, STRANGER, 0);
	memcpy(vrnic_pkt_ext(skb), &deth, sizeof(deth));
	KUNIT_EXPECT_FALSE(test, arrive(qp, skb));
	skb = packet(test, VRNIC_SVC_UD | VRNIC_BTH_SEND_ONLY, STRANGER, 0);
	deth.qkey = cpu_to_be32(QKEY);
	memcpy(vrnic_pkt_ext(skb), &deth, sizeof(deth));
	KUNIT_EXPECT_TRUE(test, arrive(qp, skb));
}

/* The first word of the extension headers is made the Q_Key, where a datagram has it. */
static bool gets(struct kunit *test, struct sk_buff *skb)
{
	const struct vrnic_deth *deth = vrnic_pkt_ext(skb);
	struct vrnic_qp *qp = add_qp(test, IB_QPT_UD);

	qp->attr.qkey = be32_to_cpu(deth->qkey);
	return arrive(qp, skb);
}

/* A packet to a group names no queue pair, so nothing else has compared their services. */
static void a_datagram_queue_pair_gets_no_other_service(struct kunit *test)
{
	static const u8 others[] = {
		VRNIC_BTH_SEND_ONLY, VRNIC_BTH_WRITE_ONLY, VRNIC_BTH_READ_RESP_MIDDLE,
		VRNIC_SVC_UC | VRNIC_BTH_SEND_ONLY,
		VRNIC_SVC_UC | VRNIC_BTH_WRITE_MIDDLE, VRNIC_SVC_NATIVE | VRNIC_BTH_SEND_ONLY,
	};
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		KUNIT_EXPECT_FALSE_MSG(test, gets(test, packet(test, others[i], STRANGER, 0)),
				       "opcode 0x%02x", others[i]);
	/* of a train, the word is its size */
	skb = packets(test, VRNIC_BTH_READ_RESP_MIDDLE, STRANGER, 0, 3);
	parse(test, skb, 0);
	KUNIT_EXPECT_EQ(test, 2, vrnic_pkt_couple(skb, 0, SIZE));
	KUNIT_EXPECT_FALSE(test, gets(test, skb));
	KUNIT_EXPECT_TRUE(test, gets(test, packet(test, VRNIC_SVC_UD | VRNIC_BTH_SEND_ONLY,
						  STRANGER, 0)));
}

/* ---- packets that came too early ---- */

#define MISSING		100	/* PSN */

static void purge_early(void *early)
{
	vrnic_early_purge(early);
}

/* The last packet before MISSING came. */
static struct vrnic_early *early(struct kunit *test)
{
	struct vrnic_early *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct sk_buff *skb;

	KUNIT_ASSERT_NOT_NULL(test, e);
	vrnic_early_init(e, NULL);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, purge_early, e));
	skb = packet(test, VRNIC_BTH_SEND_ONLY, PEER, MISSING - 1);
	vrnic_early_learn(e, skb);
	kfree_skb(skb);
	return e;
}

static int keep_skb(struct vrnic_early *e, struct sk_buff *skb)
{
	int err = vrnic_early_keep(e, skb, MISSING);

	if (err)
		kfree_skb(skb);
	return err;
}

static int keep(struct kunit *test, struct vrnic_early *e, u32 psn)
{
	return keep_skb(e, packet(test, VRNIC_BTH_SEND_ONLY, PEER, psn));
}

static void early_keeps_no_more_than_the_window(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	u32 n, kept = 0;

	for (n = 1; n < 2000; n++)
		kept += !keep(test, e, MISSING + n);
	KUNIT_EXPECT_EQ(test, VRNIC_WINDOW_PKTS - 1, kept);
	KUNIT_EXPECT_EQ(test, kept, skb_queue_len(&e->list));
}

static void early_from_another_port_is_not_kept(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	struct sk_buff *skb = packet(test, VRNIC_BTH_SEND_ONLY, PEER, MISSING + 1);

	udp_hdr(skb)->source = htons(PORT + 1);
	KUNIT_EXPECT_EQ(test, -ENOSPC, keep_skb(e, skb));
	KUNIT_EXPECT_EQ(test, 0, keep(test, e, MISSING + 1));
	/* nor is one while it is not known which port that is */
	e = early(test);
	e->port = 0;
	KUNIT_EXPECT_EQ(test, -ENOSPC, keep(test, e, MISSING + 1));
}

static void of_two_that_differ_none_is_kept(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	struct sk_buff *skb;

	KUNIT_ASSERT_EQ(test, 0, keep(test, e, MISSING + 1));
	KUNIT_ASSERT_EQ(test, 0, keep(test, e, MISSING + 2));
	/* one that comes again may ask for an acknowledgment */
	skb = packet(test, VRNIC_BTH_SEND_ONLY, PEER, MISSING + 1);
	vrnic_pkt(skb)->ackreq = true;
	KUNIT_EXPECT_EQ(test, -EEXIST, keep_skb(e, skb));
	KUNIT_EXPECT_EQ(test, 2, skb_queue_len(&e->list));

	skb = packet(test, VRNIC_BTH_SEND_ONLY, PEER, MISSING + 1);
	skb->data[SIZE - VRNIC_ICRC_BYTES - 1] ^= 1;
	KUNIT_EXPECT_EQ(test, -EBADMSG, keep_skb(e, skb));
	KUNIT_ASSERT_EQ(test, 1, skb_queue_len(&e->list));
	KUNIT_EXPECT_EQ(test, MISSING + 2, vrnic_pkt(skb_peek(&e->list))->psn);

	skb = packet(test, VRNIC_BTH_WRITE_MIDDLE, PEER, MISSING + 2);
	KUNIT_EXPECT_EQ(test, -EBADMSG, keep_skb(e, skb));
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&e->list));
	KUNIT_EXPECT_TRUE(test, vrnic_early_any(e));
	KUNIT_EXPECT_EQ(test, 0, e->room.bytes);
}

static void early_memory_is_bounded(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	struct sk_buff *skb;
	u32 n, kept = 0;

	for (n = 1; n < VRNIC_WINDOW_PKTS; n++) {
		skb = packet(test, VRNIC_BTH_SEND_ONLY, PEER, MISSING + n);
		skb->truesize = SZ_64K;
		kept += !keep_skb(e, skb);
	}
	KUNIT_EXPECT_LE(test, kept * SZ_64K, SZ_1M);
	KUNIT_EXPECT_GE(test, kept * SZ_64K, SZ_512K);
	vrnic_early_purge(e);
	KUNIT_EXPECT_EQ(test, 0, e->room.bytes);
}

/* All that came in a few buffers of 64 KiB is kept, in whatever order. */
static void an_early_buffer_counts_once(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	struct sk_buff *skb, *one;
	u32 from, n;

	for (from = MISSING + 1; from < MISSING + 97; from += 32) {
		skb = packets(test, VRNIC_BTH_SEND_ONLY, PEER, from, 32);
		skb->truesize = SZ_64K;
		for (n = 0; n < 32; n++) {
			one = skb_clone(skb, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, one);
			parse(test, one, n * 7 % 32);
			KUNIT_EXPECT_EQ(test, 0, keep_skb(e, one));
		}
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, 96, skb_queue_len(&e->list));
	KUNIT_EXPECT_EQ(test, 3 * SZ_64K + 96 * sizeof(*skb), e->room.bytes);
	vrnic_early_peek(e, MISSING + 50);
	KUNIT_EXPECT_EQ(test, 47, skb_queue_len(&e->list));
	vrnic_early_purge(e);
	KUNIT_EXPECT_EQ(test, 0, e->room.bytes);
}

static void what_is_not_kept_is_asked_for(struct kunit *test)
{
	struct vrnic_early *e = early(test);

	KUNIT_EXPECT_FALSE(test, vrnic_early_any(e));
	KUNIT_ASSERT_EQ(test, -ENOSPC, keep(test, e, MISSING + 500));
	vrnic_early_peek(e, MISSING);
	KUNIT_EXPECT_TRUE(test, vrnic_early_any(e));
	KUNIT_EXPECT_EQ(test, 0, vrnic_early_due(e));
	vrnic_early_asked(e, MISSING);
	KUNIT_EXPECT_FALSE(test, vrnic_early_any(e));
	/* what comes behind that was on its way when it was asked for */
	KUNIT_ASSERT_EQ(test, -ENOSPC, keep(test, e, MISSING + 501));
	KUNIT_EXPECT_FALSE(test, vrnic_early_any(e));

	/* or it comes again by itself */
	e = early(test);
	KUNIT_ASSERT_EQ(test, -ENOSPC, keep(test, e, MISSING + 500));
	vrnic_early_peek(e, MISSING + 500);
	KUNIT_EXPECT_TRUE(test, vrnic_early_any(e));
	vrnic_early_peek(e, MISSING + 501);
	KUNIT_EXPECT_FALSE(test, vrnic_early_any(e));
}

static void early_packets_do_not_stay_for_ever(struct kunit *test)
{
	struct vrnic_early *e = early(test);
	u64 now = ktime_get_ns(), due;

	KUNIT_EXPECT_EQ(test, 0, vrnic_early_age(e, now));
	KUNIT_ASSERT_EQ(test, 0, keep(test, e, MISSING + 1));
	due = vrnic_early_age(e, now);
	KUNIT_EXPECT_GT(test, due, now);
	KUNIT_EXPECT_EQ(test, 1, skb_queue_len(&e->list));
	KUNIT_EXPECT_EQ(test, 0, vrnic_early_age(e, due));
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&e->list));
	KUNIT_EXPECT_EQ(test, 0, e->room.bytes);
}

static struct kunit_case arrive_cases[] = {
	KUNIT_CASE(a_queue_is_bounded_by_bytes),
	KUNIT_CASE(all_queues_together_are_bounded),
	KUNIT_CASE(one_user_leaves_room_for_others),
	KUNIT_CASE(a_user_is_found_while_it_is_there),
	KUNIT_CASE(a_send_error_keeps_what_came),
	KUNIT_CASE(a_buffer_counts_once),
	KUNIT_CASE(a_buffer_counts_once_whatever_comes_between),
	KUNIT_CASE(a_stranger_does_not_fill_the_queue),
	KUNIT_CASE(who_does_not_know_the_qkey_does_not_fill_the_queue),
	KUNIT_CASE(a_datagram_queue_pair_gets_no_other_service),
	KUNIT_CASE(early_keeps_no_more_than_the_window),
	KUNIT_CASE(early_from_another_port_is_not_kept),
	KUNIT_CASE(of_two_that_differ_none_is_kept),
	KUNIT_CASE(early_memory_is_bounded),
	KUNIT_CASE(an_early_buffer_counts_once),
	KUNIT_CASE(what_is_not_kept_is_asked_for),
	KUNIT_CASE(early_packets_do_not_stay_for_ever),
	{}
};

static struct kunit_suite arrive_suite = {
	.name = "vrnic_arrive",
	.init = arrive_init,
	.test_cases = arrive_cases,
};

kunit_test_suite(arrive_suite);
