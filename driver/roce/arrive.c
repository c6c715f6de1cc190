// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Puts packets into the queue of their queue pair, and runs the queue pair. Fault injection loses,
 * spoils, delays, reorders and doubles packets here, where faults of a network would show.
 */

#include <linux/ktime.h>

#include "base/fault.h"
#include "base/trace.h"
#include "compat/compat.h"
#include "engine/engine.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "roce/arrive.h"
#include "roce/roce.h"
#include "vrnic.h"

/* Most packets that fault injection may hold up on a device. */
#define LATE_MAX	1024

/**
 * vrnic_pkt_run() - run a queue pair that has received packets, here or on a thread
 * @qp: queue pair
 * @small: the packets are small
 */
void vrnic_pkt_run(struct vrnic_qp *qp, bool small)
{
	/* a thread runs the others: UD and GSI take the mutex that local senders take */
	if (qp->type == IB_QPT_RC || qp->type == IB_QPT_UC)
		vrnic_poke(&qp->run, small);
	else
		vrnic_queue(&qp->run);
}

/* An XRC initiator gets answers, and an XRC target gets requests. */
static bool xrc_fits(const struct vrnic_qp *qp, u32 info)
{
	return qp->xrc == (info & VRNIC_PKT_RESP ? VRNIC_XRC_INI : VRNIC_XRC_TGT);
}

static bool service_fits(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	if (pkt->opcode == VRNIC_BTH_CNP)
		return qp->type == IB_QPT_RC || qp->type == IB_QPT_UC;
	if (unlikely(qp->xrc || pkt->info & VRNIC_PKT_XRC))
		return pkt->info & VRNIC_PKT_XRC && xrc_fits(qp, pkt->info);
	switch (pkt->opcode & VRNIC_SVC_MASK) {
	case VRNIC_SVC_RC:
		/*
		 * a native link's requests are VRNIC_SVC_NATIVE, but their answers are those of RC
		 */
		if (qp->link)
			return pkt->info & VRNIC_PKT_RESP;
		return qp->type == IB_QPT_RC;
	case VRNIC_SVC_NATIVE:
		return qp->link;
	case VRNIC_SVC_UC:
		return qp->type == IB_QPT_UC;
	default:
		return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
	}
}

/* May a queue pair of this type get this packet? */
static bool pkt_fits(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	bool to_gsi = pkt->qpn == 1, is_gsi = qp->type == IB_QPT_GSI;

	/*
	 * a GSI queue pair is 1 on the wire; a packet must not name it by its number in the module
	 */
	return to_gsi == is_gsi && service_fits(qp, pkt);
}

static void trace_packets(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	u8 opcode = pkt->opcode | (pkt->info & VRNIC_PKT_XRC ? VRNIC_SVC_XRC : 0);
	u32 n;

	for (n = 0; n < vrnic_pkt_count(pkt); n++)
		trace_vrnic_packet(qp->qpn, false, opcode,
				   vrnic_psn_add(pkt->psn, n), pkt->len);
}

/**
 * vrnic_pkt_welcome() - may a packet take room in a queue pair's queue?
 * @qp: queue pair
 * @skb: packet
 *
 * All packets come by here, whether they name their queue
 * pair, go to one of its groups, or were held up. So code behind the queue may read the headers
 * that the service of the queue pair has.
 *
 * A connected queue pair admits only packets from its peer's address. (The ICRC is no secret, so it
 * would keep no forged packet out.) The path may change meanwhile, so receive_connected() checks it
 * again. It cannot be freed: the softirq is an RCU reader. A datagram may come from any sender that
 * knows the Q_Key.
 *
 * Return: true if it may.
 */
bool vrnic_pkt_welcome(const struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_deth *deth = vrnic_pkt_ext(skb);
	const struct vrnic_roce *roce;

	if (!pkt_fits(qp, vrnic_pkt(skb)))
		return false;
	if (!vrnic_qp_receives(qp))
		return false;
	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC)
		return be32_to_cpu(deth->qkey) == READ_ONCE(qp->attr.qkey);
	/* pairs with the release in vrnic_roce_connect() */
	roce = smp_load_acquire(&qp->roce);
	return roce && vrnic_pkt_is_from(skb, &roce->path);
}

/* Put a packet into the queue. Return: false if the queue is full, or takes none any more. */
static bool wait_for_run(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct sk_buff *prev;
	bool room;

	spin_lock(&qp->rxq.lock);
	/* a CNP goes first: it must not wait behind the packets that cause congestion */
	prev = vrnic_pkt(skb)->info & VRNIC_PKT_CNP ? NULL : skb_peek_tail(&qp->rxq);
	/* once more, under the lock: see vrnic_rxq_purge() */
	room = vrnic_qp_receives(qp) &&
	       vrnic_room_put(&qp->rxq_room, &qp->rxq, prev, skb);
	if (room) {
		qp->rcvd_pkts += vrnic_pkt_count(vrnic_pkt(skb));
		qp->rcvd_bytes += vrnic_pkt_bytes(vrnic_pkt(skb));
	}
	spin_unlock(&qp->rxq.lock);
	return room;
}

/*
 * Queue a packet for the next run of the queue pair. Softirqs are held off. Return: false if the
 * packet was dropped.
 */
static bool arrive_enqueue(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 count = vrnic_pkt_count(vrnic_pkt(skb));
	u32 bytes = vrnic_pkt_bytes(vrnic_pkt(skb));

	lockdep_assert_in_softirq();

	if (!vrnic_pkt_welcome(qp, skb))
		goto drop;
	if (trace_vrnic_packet_enabled())
		trace_packets(qp, vrnic_pkt(skb));
	if (!wait_for_run(qp, skb))
		goto drop;
	vrnic_count_add(qp->dev, RCVD_PKTS, count);
	vrnic_count_add(qp->dev, RCVD_BYTES, bytes);
	return true;

drop:
	vrnic_count_add(qp->dev, RCVD_DROPPED, count);
	kfree_skb(skb);
	return false;
}

/**
 * vrnic_rxq_take() - take the next packet out of a queue pair's queue
 * @qp: queue pair; its run bit is held
 *
 * Return: the packet, or NULL if none waits.
 */
struct sk_buff *vrnic_rxq_take(struct vrnic_qp *qp)
{
	struct sk_buff *skb;

	if (skb_queue_empty_lockless(&qp->rxq))
		return NULL;
	spin_lock_bh(&qp->rxq.lock);
	skb = skb_peek(&qp->rxq);
	if (skb)
		vrnic_room_take(&qp->rxq_room, &qp->rxq, skb);
	spin_unlock_bh(&qp->rxq.lock);
	return skb;
}

/*
 * Put a packet at the head of the queue, even if the queue is full: a request to be tried again, an
 * early packet whose turn has come, or a packet that vrnic_pkt_uncouple() split off its train.
 */
void vrnic_rxq_return(struct vrnic_qp *qp, struct sk_buff *skb)
{
	spin_lock_bh(&qp->rxq.lock);
	vrnic_room_return(&qp->rxq_room, &qp->rxq, skb);
	spin_unlock_bh(&qp->rxq.lock);
}

/*
 * Drop what is in the queue. If the state was changed before to one in which the queue pair does
 * not receive, nothing comes any more: softirqs look at the state with the queue's lock held, and
 * those that had it before this function saw the old state, but are done.
 */
void vrnic_rxq_purge(struct vrnic_qp *qp)
{
	struct sk_buff *skb;

	spin_lock_bh(&qp->rxq.lock);
	spin_unlock_bh(&qp->rxq.lock);
	while ((skb = vrnic_rxq_take(qp)))
		kfree_skb(skb);
}

/* ---- packets that fault injection holds up ---- */

/*
 * Hold up a packet for @us. It has no reference on its queue pair, which may end meanwhile.
 * skb->mark has the queue pair's number in the module: the packet itself names any GSI queue pair
 * as 1.
 */
static void hold_up(struct vrnic_qp *qp, struct sk_buff *skb, u32 us)
{
	struct vrnic_faults *all = qp->dev->faults;
	struct sk_buff_head *late = &all->late;
	struct sk_buff *at;

	skb->mark = qp->qpn;
	skb->tstamp = ktime_add_us(ktime_get(), us);
	spin_lock_bh(&late->lock);
	skb_queue_reverse_walk(late, at)
		if (!ktime_before(skb->tstamp, at->tstamp))
			break;
	/* if the walk found no earlier packet, @at is the head of the list */
	__skb_queue_after(late, at, skb);
	if (skb_peek(late) == skb)
		hrtimer_start(&all->timer, skb->tstamp, HRTIMER_MODE_ABS_SOFT);
	spin_unlock_bh(&late->lock);
}

/* Take the first late packet if it is due by @now; else set the timer for it, and return NULL. */
static struct sk_buff *take_due(struct vrnic_faults *all, ktime_t now)
{
	struct sk_buff *skb;

	spin_lock_bh(&all->late.lock);
	skb = skb_peek(&all->late);
	if (skb && ktime_after(skb->tstamp, now)) {
		hrtimer_start(&all->timer, skb->tstamp, HRTIMER_MODE_ABS_SOFT);
		skb = NULL;
	}
	if (skb)
		__skb_unlink(skb, &all->late);
	spin_unlock_bh(&all->late.lock);
	return skb;
}

static void arrive_late(struct vrnic_faults *all, struct sk_buff *skb)
{
	struct vrnic_qp *qp = vrnic_qp_get(skb->mark);

	/* another queue pair may have the number by now */
	if (!qp || qp->dev->faults != all)
		kfree_skb(skb);
	else if (arrive_enqueue(qp, skb))
		vrnic_pkt_run(qp, false);
	if (qp)
		vrnic_qp_put(qp);
}

static enum hrtimer_restart late_due(struct hrtimer *timer)
{
	struct vrnic_faults *all = container_of(timer, struct vrnic_faults, timer);
	ktime_t now = ktime_get();
	struct sk_buff *skb;

	while ((skb = take_due(all, now)))
		arrive_late(all, skb);
	return HRTIMER_NORESTART;
}

/* Take a packet for @qp that the packet just queued was to overtake; NULL if there is none. */
static struct sk_buff *take_swapped(struct vrnic_qp *qp)
{
	struct sk_buff_head *late = &qp->dev->faults->late;
	struct sk_buff *skb, *found = NULL;

	if (skb_queue_empty_lockless(late))
		return NULL;
	spin_lock_bh(&late->lock);
	skb_queue_walk(late, skb) {
		if (skb->mark != qp->qpn || !vrnic_pkt(skb)->swapped)
			continue;
		found = skb;
		__skb_unlink(skb, late);
		break;
	}
	spin_unlock_bh(&late->lock);
	return found;
}

void vrnic_late_init(struct vrnic_dev *dev)
{
	skb_queue_head_init(&dev->faults->late);
	hrtimer_setup(&dev->faults->timer, late_due, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

/* Free all late packets. The device has no queue pairs any more, so no others come. */
void vrnic_late_drop(struct vrnic_dev *dev)
{
	hrtimer_cancel(&dev->faults->timer);
	skb_queue_purge(&dev->faults->late);
}

/* Hold @skb up if a fault strikes. Return: true if it is held up. */
static bool is_late(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (skb_queue_len_lockless(&qp->dev->faults->late) >= LATE_MAX)
		return false;
	if (vrnic_fault(qp, VRNIC_FAULT_DELAY)) {
		hold_up(qp, skb, vrnic_fault_own(qp, VRNIC_FAULT_DELAY));
		return true;
	}
	if (vrnic_fault(qp, VRNIC_FAULT_REORDER)) {
		vrnic_pkt(skb)->swapped = true;
		hold_up(qp, skb, vrnic_fault_own(qp, VRNIC_FAULT_REORDER));
		return true;
	}
	return false;
}

/* As vrnic_pkt_arrive(), for the case that some fault is armed: decide which strike @skb. */
static bool arrive_faulty(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct sk_buff *more = NULL;
	bool any;

	if (vrnic_fault(qp, VRNIC_FAULT_DROP)) {
		kfree_skb(skb);
		return false;
	}
	if (vrnic_fault(qp, VRNIC_FAULT_CORRUPT))
		vrnic_pkt(skb)->spoiled = true;
	if (is_late(qp, skb))
		return false;
	if (vrnic_fault(qp, VRNIC_FAULT_DUPLICATE))
		more = skb_clone(skb, GFP_ATOMIC);
	any = arrive_enqueue(qp, skb);
	if (more)
		any |= arrive_enqueue(qp, more);
	while ((more = take_swapped(qp)))
		any |= arrive_enqueue(qp, more);
	return any;
}

/**
 * vrnic_pkt_arrive() - queue a packet that came from the network
 * @qp: queue pair that the packet is for
 * @skb: packet; this function consumes it
 *
 * Return: true if the caller has to run the queue pair.
 */
bool vrnic_pkt_arrive(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (static_branch_unlikely(&vrnic_faults_armed))
		return arrive_faulty(qp, skb);
	return arrive_enqueue(qp, skb);
}
