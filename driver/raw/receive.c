// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes frames from the queue of a queue pair into its receives, from the destination address to
 * the end of the payload; a VLAN tag that the interface has taken out is put back.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "mem/seg.h"
#include "queue/datagram.h"
#include "queue/qp.h"
#include "queue/recv.h"
#include "queue/target.h"
#include "raw/raw.h"
#include "roce/roce.h"
#include "vrnic.h"

static void put_range(struct sk_buff *skb, u32 from, u32 to, struct vrnic_sgl *dst)
{
	struct skb_seq_state state;
	u32 done = 0, n;
	const u8 *data;

	skb_prepare_seq_read(skb, from, to, &state);
	while ((n = skb_seq_read(done, &data, &state))) {
		n = min(n, to - from - done);
		done += n;
		vrnic_sgl_write(dst, data, n, from + done == skb->len);
	}
}

static void put_frame(struct sk_buff *skb, struct vrnic_sgl *dst)
{
	struct vlan_hdr tag;
	u32 at = 0;

	if (skb_vlan_tag_present(skb)) {
		/* behind the addresses, ahead of the EtherType */
		at = 2 * ETH_ALEN;
		tag.h_vlan_TCI = skb->vlan_proto;
		tag.h_vlan_encapsulated_proto = htons(skb_vlan_tag_get(skb));
		put_range(skb, 0, at, dst);
		vrnic_sgl_write(dst, &tag, sizeof(tag), false);
	}
	put_range(skb, at, skb->len, dst);
}

/* Return: 0; -EAGAIN or -EINVAL: as vrnic_datagram_begin(). */
static int deliver_frame(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 len = skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
	struct vrnic_cqe cqe = {
		.opcode = IB_WC_RECV,
		.byte_len = len,
		.imm = skb->mark,
		.flags = VRNIC_CQE_TAG,
	};
	int err;

	err = vrnic_datagram_begin(qp, len);
	if (err)
		return err;
	put_frame(skb, &qp->recv_sgl);
	vrnic_sgl_put(&qp->recv_sgl);
	vrnic_recv_complete(qp, &cqe, false);
	return 0;
}

/**
 * vrnic_raw_receive() - receive the frames that wait in the queue
 * @qp: queue pair, in a state in which it receives
 * @budget: bounds this burst
 *
 * A frame is dropped if there is no receive for it, or if memory of the receive is being brought
 * in: the wire does not wait either.
 *
 * Return: true if there was something to do.
 */
bool vrnic_raw_receive(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb;
	bool busy = false;

	if (skb_queue_empty_lockless(&qp->rxq))
		return false;
	/* only modify_qp() and a flush hold this lock, besides */
	if (!vrnic_target_catch(qp)) {
		qp->run.wait_until = ktime_get_ns() + VRNIC_TARGET_BUSY_NS;
		vrnic_queue_after(&qp->run, VRNIC_TARGET_BUSY_NS);
		return false;
	}
	/* a frame may find a receive that fails the queue pair: the others are to be flushed */
	while (vrnic_budget_left(budget) && vrnic_qp_receives(qp) &&
	       (skb = vrnic_rxq_take(qp))) {
		budget->bytes -= min_t(u64, budget->bytes, skb->len);
		if (deliver_frame(qp, skb))
			vrnic_count(qp->dev, RAW_DROPPED);
		consume_skb(skb);
		vrnic_budget_spend(budget, 1);
		busy = true;
	}
	vrnic_target_unlock(qp);
	return busy;
}
