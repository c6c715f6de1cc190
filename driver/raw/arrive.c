// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Puts frames into the queue of their queue pair, and has a thread run the queue pair. What was
 * merged, or has no checksum yet because it was never on a wire, is made into the frames that a
 * wire would have brought.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "queue/qp.h"
#include "raw/raw.h"
#include "roce/roce.h"
#include "vrnic.h"

/* Most frames that one packet of the host is split into. */
#define SPLIT_MAX	1024

static void raw_drop(struct vrnic_qp *qp, struct sk_buff *skb)
{
	vrnic_count(qp->dev, RCVD_DROPPED);
	kfree_skb(skb);
}

/* Put a frame into the queue; its data starts with the Ethernet header. */
static bool raw_enqueue(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 bytes = skb->len;
	bool room;

	spin_lock(&qp->rxq.lock);
	/* under the lock: see vrnic_rxq_purge() */
	room = vrnic_qp_receives(qp) &&
	       vrnic_room_put(&qp->rxq_room, &qp->rxq, skb_peek_tail(&qp->rxq), skb);
	if (room) {
		qp->rcvd_pkts++;
		qp->rcvd_bytes += bytes;
	}
	spin_unlock(&qp->rxq.lock);
	if (!room) {
		raw_drop(qp, skb);
		return false;
	}
	vrnic_count(qp->dev, RCVD_PKTS);
	vrnic_count_add(qp->dev, RCVD_BYTES, bytes);
	return true;
}

static bool arrive_one(struct vrnic_qp *qp, struct sk_buff *skb, u32 tag)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_csum_hwoffload_help(skb, 0)) {
		raw_drop(qp, skb);
		return false;
	}
	/* the stack is done with the mark */
	skb->mark = tag;
	return raw_enqueue(qp, skb);
}

/*
 * May @skb be split? A guest may have merged frames of a few bytes, which would take very much
 * memory one by one. What does not find room is not worth the work, which is done in a softirq for
 * each queue pair that gets the frame.
 */
static bool may_split(const struct vrnic_qp *qp, const struct sk_buff *skb)
{
	u32 each = max_t(u32, skb_shinfo(skb)->gso_size, 1);
	u32 n = DIV_ROUND_UP(skb->len, each);

	return n <= SPLIT_MAX &&
	       vrnic_room_for(&qp->rxq_room, n * (sizeof(*skb) + SKB_TRUESIZE(each)));
}

/* Split what was merged. */
static bool arrive_many(struct vrnic_qp *qp, struct sk_buff *skb, u32 tag)
{
	struct sk_buff *segs = NULL, *next;
	bool any = false, good = true;

	/* the split writes into headers, which the host's clone shares */
	if (may_split(qp, skb) && !skb_cow_head(skb, 0))
		segs = skb_gso_segment(skb, 0);
	if (IS_ERR_OR_NULL(segs)) {
		raw_drop(qp, skb);
		return false;
	}
	consume_skb(skb);
	skb_list_walk_safe(segs, skb, next) {
		skb_mark_not_on_list(skb);
		/* behind one that was dropped, none is worth its checksum */
		if (good)
			good = arrive_one(qp, skb, tag);
		else
			raw_drop(qp, skb);
		any |= good;
	}
	return any;
}

/**
 * vrnic_raw_arrive() - receive a frame
 * @qp: queue pair; the caller has a reference
 * @skb: frame; its data starts behind the Ethernet header; this function consumes it
 * @tag: number that the rule has for the completion
 *
 * Context: softirqs are held off.
 */
void vrnic_raw_arrive(struct vrnic_qp *qp, struct sk_buff *skb, u32 tag)
{
	bool any;

	/* a packet socket may be reading it */
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb) {
		vrnic_count(qp->dev, RCVD_DROPPED);
		return;
	}
	/* a copy waits in the queue, not pages of a sender that waits for them to be free again */
	if (!vrnic_qp_receives(qp) || skb_orphan_frags_rx(skb, GFP_ATOMIC)) {
		raw_drop(qp, skb);
		return;
	}
	skb_orphan(skb);
	skb_dst_drop(skb);
	/* what others keep for a packet on its way must not stay as long as it waits */
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	skb_push(skb, ETH_HLEN);
	any = skb_is_gso(skb) ? arrive_many(qp, skb, tag) : arrive_one(qp, skb, tag);
	if (any)
		vrnic_queue(&qp->run);
}
