// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that came for a queue pair: into its queue, and the pair is run. Fault
 * injection is here, where what the network did to them would show: they get
 * lost, spoiled, late or doubled.
 */

#include <linux/ktime.h>

#include "base/trace.h"
#include "roce/roce.h"

/* Packets that fault injection may hold up on a device. */
#define LATE_MAX	1024

/*
 * On some architectures a softirq runs on the stack of whatever it interrupted.
 * Executing a packet and answering it goes through the network again: not from
 * far down.
 */
static bool stack_is_low(void)
{
	if (IS_ENABLED(CONFIG_SOFTIRQ_ON_OWN_STACK))
		return false;
	return (current_stack_pointer & (THREAD_SIZE - 1)) < THREAD_SIZE / 2;
}

/**
 * vrnic_pkt_run() - there are packets for a queue pair
 * @qp: queue pair
 * @small: they are
 */
void vrnic_pkt_run(struct vrnic_qp *qp, bool small)
{
	/*
	 * Datagrams go into a pair that local senders use too: with its mutex. And
	 * what a native link asks for may have to wait for memory.
	 */
	if ((qp->type == IB_QPT_RC || qp->type == IB_QPT_UC) && !qp->link &&
	    !stack_is_low())
		vrnic_poke(&qp->run, small);
	else
		vrnic_queue(&qp->run);
}

static bool service_fits(const struct vrnic_qp *qp, u8 opcode)
{
	if (opcode == VRNIC_BTH_CNP)
		return qp->type == IB_QPT_RC || qp->type == IB_QPT_UC;
	switch (opcode & VRNIC_SVC_MASK) {
	case VRNIC_SVC_RC:
		/* a native link has no other requests */
		if (qp->link)
			return vrnic_pkt_info(opcode) & VRNIC_PKT_RESP;
		return qp->type == IB_QPT_RC;
	case VRNIC_SVC_NATIVE:
		return qp->link;
	case VRNIC_SVC_UC:
		return qp->type == IB_QPT_UC;
	default:
		return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
	}
}

/**
 * vrnic_pkt_fits() - is a packet one that a queue pair of this type gets?
 * @qp: queue pair, found by the packet's number
 * @pkt: packet
 */
bool vrnic_pkt_fits(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	bool to_gsi = pkt->qpn == 1, is_gsi = qp->type == IB_QPT_GSI;

	/* the number of a GSI pair on this host is not one that packets may use */
	return to_gsi == is_gsi && service_fits(qp, pkt->opcode);
}

static void trace_packets(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	u32 n;

	for (n = 0; n < vrnic_pkt_count(pkt); n++)
		trace_vrnic_packet(qp->qpn, false, pkt->opcode,
				   vrnic_psn_add(pkt->psn, n), pkt->len);
}

/*
 * May the packet take a place that others then do not get? A connection's are those of
 * its peer. The path may change at this moment, so who executes a packet looks again;
 * softirqs hold off its end. (The ICRC is no secret: it would keep nobody out.) A
 * datagram is from anybody, but who sends it has to know the Q_Key.
 */
static bool is_welcome(const struct vrnic_qp *qp, struct sk_buff *skb)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	const struct vrnic_deth *deth = vrnic_pkt_ext(skb);
	const struct vrnic_roce *roce;

	if (state < IB_QPS_RTR || state > IB_QPS_SQE)
		return false;
	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC)
		return be32_to_cpu(deth->qkey) == READ_ONCE(qp->attr.qkey);
	/* pairs with the release of vrnic_roce_connect() */
	roce = smp_load_acquire(&qp->roce);
	return roce && vrnic_pkt_is_from(skb, &roce->path);
}

/* Return: false: the queue is full. */
static bool wait_for_run(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct sk_buff *prev;
	bool room;

	spin_lock(&qp->rxq.lock);
	/* what says that it is too much is not to wait behind what is too much */
	prev = vrnic_pkt(skb)->info & VRNIC_PKT_CNP ? NULL : skb_peek_tail(&qp->rxq);
	room = vrnic_room_put(&qp->rxq, prev, skb, &qp->rxq_bytes, VRNIC_RXQ_BYTES);
	spin_unlock(&qp->rxq.lock);
	return room;
}

/*
 * Its turn comes when the pair is run. With softirqs held off. Return: false if it was
 * dropped.
 */
static bool enqueue(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 count = vrnic_pkt_count(vrnic_pkt(skb));
	u32 bytes = vrnic_pkt_bytes(vrnic_pkt(skb));

	lockdep_assert_in_softirq();

	if (!is_welcome(qp, skb))
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
 * vrnic_rxq_take() - the packet whose turn it is
 * @qp: queue pair; its run bit is held
 *
 * Return: packet, or NULL: none waits.
 */
struct sk_buff *vrnic_rxq_take(struct vrnic_qp *qp)
{
	struct sk_buff *skb;

	if (skb_queue_empty_lockless(&qp->rxq))
		return NULL;
	spin_lock_bh(&qp->rxq.lock);
	skb = skb_peek(&qp->rxq);
	if (skb)
		vrnic_room_take(&qp->rxq, skb, &qp->rxq_bytes);
	spin_unlock_bh(&qp->rxq.lock);
	return skb;
}

/* A packet that was taken is the next one again, or a part of it is. */
void vrnic_rxq_return(struct vrnic_qp *qp, struct sk_buff *skb)
{
	spin_lock_bh(&qp->rxq.lock);
	vrnic_room_put(&qp->rxq, NULL, skb, &qp->rxq_bytes, VRNIC_ROOM_ANY);
	spin_unlock_bh(&qp->rxq.lock);
}

void vrnic_rxq_purge(struct vrnic_qp *qp)
{
	struct sk_buff *skb;

	while ((skb = vrnic_rxq_take(qp)))
		kfree_skb(skb);
}

/* ---- packets that fault injection holds up ---- */

/*
 * Such a packet does not keep its queue pair: that may go meanwhile, as it may
 * while a packet is on a slow network. It knows the pair's number, which only this
 * host does if it is a GSI pair's.
 */
static void hold_up(struct vrnic_qp *qp, struct sk_buff *skb, u32 us)
{
	struct vrnic_faults *all = &qp->dev->faults;
	struct sk_buff_head *late = &all->late;
	struct sk_buff *at;

	skb->mark = qp->qpn;
	skb->tstamp = ktime_add_us(ktime_get(), us);
	spin_lock_bh(&late->lock);
	skb_queue_reverse_walk(late, at)
		if (!ktime_before(skb->tstamp, at->tstamp))
			break;
	/* at the end of the walk this is the head of the list */
	__skb_queue_after(late, at, skb);
	if (skb_peek(late) == skb)
		hrtimer_start(&all->timer, skb->tstamp, HRTIMER_MODE_ABS_SOFT);
	spin_unlock_bh(&late->lock);
}

/* The first packet if it is due by @now; else the timer is set for it. */
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

static void arrive_late(struct vrnic_dev *dev, struct sk_buff *skb)
{
	struct vrnic_qp *qp = vrnic_qp_get(skb->mark);

	/* the number may be another one's by now */
	if (!qp || qp->dev != dev || !vrnic_pkt_fits(qp, vrnic_pkt(skb)))
		kfree_skb(skb);
	else if (enqueue(qp, skb))
		vrnic_pkt_run(qp, false);
	if (qp)
		vrnic_qp_put(qp);
}

static enum hrtimer_restart late_due(struct hrtimer *timer)
{
	struct vrnic_dev *dev = container_of(timer, struct vrnic_dev,
					     faults.timer);
	ktime_t now = ktime_get();
	struct sk_buff *skb;

	while ((skb = take_due(&dev->faults, now)))
		arrive_late(dev, skb);
	return HRTIMER_NORESTART;
}

/* A packet for @qp that waits to be overtaken, or NULL. */
static struct sk_buff *take_swapped(struct vrnic_qp *qp)
{
	struct sk_buff_head *late = &qp->dev->faults.late;
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
	skb_queue_head_init(&dev->faults.late);
	hrtimer_setup(&dev->faults.timer, late_due, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

/* The device has no queue pairs any more: nothing comes. */
void vrnic_late_drop(struct vrnic_dev *dev)
{
	hrtimer_cancel(&dev->faults.timer);
	skb_queue_purge(&dev->faults.late);
}

/* Return: true if @skb is held up. */
static bool is_late(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (skb_queue_len_lockless(&qp->dev->faults.late) >= LATE_MAX)
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

/* With all that may befall a packet. Return: as vrnic_pkt_arrive(). */
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
	any = enqueue(qp, skb);
	if (more)
		any |= enqueue(qp, more);
	while ((more = take_swapped(qp)))
		any |= enqueue(qp, more);
	return any;
}

/**
 * vrnic_pkt_arrive() - a packet came from the network
 * @qp: queue pair that it is for
 * @skb: packet; gone afterwards
 *
 * Return: true if the queue pair is to be run.
 */
bool vrnic_pkt_arrive(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (static_branch_unlikely(&vrnic_faults_armed))
		return arrive_faulty(qp, skb);
	return enqueue(qp, skb);
}
