// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCEv2 flow of a queue pair: how it begins and ends, and how a run handles received packets.
 */

#include <linux/bottom_half.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>

#include "base/port.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/ack.h"
#include "lib/hdr.h"
#include "queue/link_ops.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/target.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "verbs/flow.h"
#include "vrnic.h"

/* There may be very many: none of their memory is rounded up to a power of two. */
static struct kmem_cache *connections;

static void roce_release(struct rcu_head *rcu)
{
	kmem_cache_free(connections, container_of(rcu, struct vrnic_roce, rcu));
}

/* In RTR, the first message from the peer establishes the connection: IBTA 11.6.3.1. */
static void flow_note_contact(struct vrnic_qp *qp)
{
	if (qp->comm_est || READ_ONCE(qp->state) != IB_QPS_RTR)
		return;
	qp->comm_est = true;
	vrnic_qp_event(qp, IB_EVENT_COMM_EST);
}

static void receive_connected(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);

	if (!qp->roce || !vrnic_pkt_is_from(skb, &qp->roce->path)) {
		vrnic_count_add(qp->dev, RCVD_DROPPED, vrnic_pkt_count(pkt));
		kfree_skb(skb);
		return;
	}
	if (pkt->info & VRNIC_PKT_CNP) {
		vrnic_rate_notified(qp);
		kfree_skb(skb);
		return;
	}
	if (pkt->ce) {
		vrnic_rate_marked(qp, vrnic_pkt_count(pkt));
		if (qp->link)
			qp->link_ops->congested(qp->link, false);
		/* the packet, or a part of the train, may come here again: count it only once */
		pkt->ce = false;
	}
	flow_note_contact(qp);
	if (pkt->info & VRNIC_PKT_RESP)
		vrnic_req_answer(qp, skb);
	else
		vrnic_resp_request(qp, skb);
}

/*
 * Is the next packet small, and did it come after this run began? Then another CPU's softirq waits
 * for the run bit, or is about to, and can handle the packet at once.
 */
static bool is_others(struct vrnic_qp *qp)
{
	struct sk_buff *skb;

	if (qp->type != IB_QPT_RC || !qp->roce || qp->roce->due)
		return false;
	skb = skb_peek(&qp->rxq);
	return skb && vrnic_pkt_small(skb);
}

/*
 * May this run handle the next packet now? Requests wait while the responder answers a READ, or
 * while the first of them invalidates a region that other operations use. The next request or
 * answer may also wait until a page is brought in. CNPs do not wait. next_packet() asks again for
 * each packet: if it drops an answer with a wrong ICRC, the packet behind that answer may be a
 * request.
 */
static bool may_take(struct vrnic_qp *qp)
{
	struct sk_buff *skb = skb_peek(&qp->rxq);

	if (!skb || is_others(qp))
		return false;
	if (!qp->roce || vrnic_pkt(skb)->info & VRNIC_PKT_CNP)
		return true;
	if (vrnic_pkt(skb)->info & VRNIC_PKT_RESP)
		return !vrnic_req_waits(qp);
	return !(vrnic_resp_busy(qp) || vrnic_resp_waits(qp));
}

/*
 * Is the next packet one that this run must leave to a thread, because the packet's request may
 * sleep? Then use up the budget, so that the engine has a thread go on.
 */
static bool needs_thread(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb = skb_peek(&qp->rxq);

	if (!qp->link || !budget->atomic || !skb)
		return false;
	vrnic_pkt(skb)->light = qp->link_ops->light(qp->link, skb);
	if (vrnic_pkt(skb)->light)
		return false;
	budget->descs = 0;
	return true;
}

static struct sk_buff *next_packet(struct vrnic_qp *qp,
				   struct vrnic_budget *budget)
{
	struct sk_buff *skb;

	while (may_take(qp) && !needs_thread(qp, budget)) {
		skb = vrnic_rxq_take(qp);
		if (!skb)
			return NULL;
		if (qp->roce && qp->roce->due)
			qp->roce->due--;
		budget->bytes -= min_t(u64, budget->bytes,
				       vrnic_pkt_bytes(vrnic_pkt(skb)) + 64);
		if (vrnic_pkt_intact(skb))
			return skb;
		/* one packet of the train is wrong, but the others may be right: check each */
		if (vrnic_pkt(skb)->train) {
			vrnic_pkt_uncouple(qp, skb);
			if (vrnic_pkt_intact(skb))
				return skb;
		}
		vrnic_count(qp->dev, BAD_ICRC);
		kfree_skb(skb);
	}
	return NULL;
}

/**
 * vrnic_roce_left() - has a run left the next packet to the softirq that brought it?
 * @qp: queue pair whose run ends
 *
 * Return: true if it has.
 */
bool vrnic_roce_left(struct vrnic_qp *qp)
{
	return is_others(qp) && READ_ONCE(qp->state) < IB_QPS_ERR;
}

/* Handle the next packet, or go on with the answer to a READ. Return: false if neither can be. */
static bool receive_one(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb;

	skb = next_packet(qp, budget);
	if (skb)
		receive_connected(qp, skb);
	else if (qp->roce && vrnic_resp_busy(qp))
		return vrnic_resp_reply(qp, budget);
	return skb;
}

static bool receive_all(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy = false;

	/* softirqs are off as in vrnic_roce_send(); a thread may have to sleep for a native link */
	if (!qp->link)
		local_bh_disable();
	while (budget->bytes && READ_ONCE(qp->state) != IB_QPS_ERR &&
	       receive_one(qp, budget))
		busy = true;
	if (qp->roce) {
		vrnic_resp_gap(qp);
		/*
		 * Complete answered operations now: the softirq that waits for the run bit would
		 * handle its packet first. The acknowledgment takes as long as all the rest, and
		 * may come later: vrnic_roce_parcel().
		 */
		if (budget->atomic)
			vrnic_req_complete(qp, budget);
		else
			vrnic_resp_ack(qp);
		vrnic_roce_push(qp);
	}
	if (!qp->link)
		local_bh_enable();
	/* needs_thread() */
	return busy || !budget->descs;
}

/* Deliver datagrams, under resp_lock: senders on this host deliver to this queue pair, too. */
static bool receive_datagrams(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb;
	bool busy = false;

	if (!vrnic_target_catch(qp)) {
		/* set the timer here: only in RTS does vrnic_must_wait() set it */
		qp->run.wait_until = ktime_get_ns() + VRNIC_TARGET_BUSY_NS;
		vrnic_queue_after(&qp->run, VRNIC_TARGET_BUSY_NS);
		return false;
	}
	while (vrnic_budget_left(budget)) {
		skb = next_packet(qp, budget);
		if (!skb)
			break;
		vrnic_ud_receive(qp, skb);
		vrnic_budget_spend(budget, 1);
		busy = true;
	}
	vrnic_target_unlock(qp);
	return busy;
}

/* Does the responder have work without a packet: a READ to answer, or a gap to ask for? */
static bool is_pending(const struct vrnic_qp *qp)
{
	return qp->roce && (vrnic_resp_busy(qp) ||
			    vrnic_early_any(&qp->roce->resp.early));
}

/**
 * vrnic_roce_receive() - handle the packets that came for a queue pair
 * @qp: queue pair, in a state in which it receives
 * @budget: bounds this burst
 *
 * Return: true if there was something to do.
 */
bool vrnic_roce_receive(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	if (skb_queue_empty_lockless(&qp->rxq) && !is_pending(qp))
		return false;
	if (qp->type == IB_QPT_RC || qp->type == IB_QPT_UC)
		return receive_all(qp, budget);
	return receive_datagrams(qp, budget);
}

/*
 * Drop received packets, but in SQE, where the queue pair still receives, and flush the window's
 * oldest operation. Return: false if there is none.
 */
bool vrnic_roce_flush(struct vrnic_qp *qp)
{
	struct vrnic_req *q;

	if (READ_ONCE(qp->state) != IB_QPS_SQE)
		vrnic_rxq_purge(qp);
	if (!qp->roce)
		return false;
	q = to_req(qp);
	qp->roce->resp.reply.active = false;
	vrnic_early_purge(&qp->roce->req.early);
	vrnic_early_purge(&qp->roce->resp.early);
	if (q->fly.head == q->fly.tail)
		return false;
	vrnic_count(qp->dev, FLUSHED);
	qp->rare.flushed++;
	vrnic_req_retire(qp, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_NONE);
	return true;
}

/* Is the window empty: does no operation wait for an acknowledgment? */
bool vrnic_roce_idle(const struct vrnic_qp *qp)
{
	return qp->roce->req.fly.head == qp->roce->req.fly.tail;
}

static int path_to_peer(struct vrnic_path *path, struct vrnic_qp *qp,
			const struct rdma_ah_attr *ah, u32 dqpn)
{
	int err = vrnic_path_init(path, qp->dev, &ah->grh.sgid_attr->gid, ah,
				  vrnic_gid_oif(qp->dev, ah->grh.sgid_attr), qp->qpn, dqpn);

	/* ECN: the peer sends a CNP for a marked packet, and roce/rate.c then lowers the rate */
	path->tos |= INET_ECN_ECT_0;
	return err;
}

/* Number of READs and atomic operations that a connected responder remembers. */
u32 vrnic_roce_remembers(const struct vrnic_qp *qp)
{
	return qp->roce->resp.served.nr_res;
}

/**
 * vrnic_roce_connect() - connect a queue pair that goes to RTR to its peer over the wire
 * @qp: parked, and not in RTR yet; its attributes are still the old ones
 * @attr: new attributes, with the GID of the address vector
 *
 * Return: 0 or a negative errno; after a failure the caller has to undo nothing.
 */
int vrnic_roce_connect(struct vrnic_qp *qp, const struct ib_qp_attr *attr)
{
	const struct rdma_ah_attr *ah = &attr->ah_attr;
	struct vrnic_roce *roce;
	int err;

	roce = kmem_cache_zalloc(connections, qp->gfp);
	if (!roce)
		return -ENOMEM;
	roce->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	vrnic_early_init(&roce->req.early, qp->rxq_room.user);
	vrnic_early_init(&roce->resp.early, qp->rxq_room.user);
	err = path_to_peer(&roce->path, qp, ah, attr->dest_qp_num);
	if (err)
		goto err_free;
	/* pairs with the acquire of vrnic_pkt_welcome() in roce/arrive.c */
	smp_store_release(&qp->roce, roce);
	vrnic_wire_join(roce->path.wire, qp);
	err = vrnic_resp_init(qp, attr);
	if (err)
		goto err_disconnect;
	err = vrnic_window_init(qp);
	if (err)
		goto err_disconnect;
	return 0;

err_disconnect:
	/* frees @roce, too, after an RCU grace period */
	vrnic_roce_disconnect(qp);
	return err;
err_free:
	kmem_cache_free(connections, roce);
	return err;
}

/* In SQD, give a queue pair another path to the same peer. Return: 0 or a negative errno. */
int vrnic_roce_reroute(struct vrnic_qp *qp, const struct rdma_ah_attr *attr)
{
	struct vrnic_path path;
	int err;

	err = path_to_peer(&path, qp, attr, qp->attr.dest_qp_num);
	if (err)
		return err;
	vrnic_path_drop(&qp->roce->path);
	qp->roce->path = path;
	return 0;
}

/* Start the requester of a queue pair that goes to RTS: its first PSN is known. */
void vrnic_roce_ready(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	q->rung = qp->sq.idx;
	vrnic_flight_start(&q->fly, qp->attr.sq_psn);
	q->acked_at = q->fly.una;
	q->window = VRNIC_WINDOW_PKTS;
	q->rnr_left = qp->attr.rnr_retry;
	q->retry_left = qp->attr.retry_cnt;
}

/* End the connection of a queue pair, which is parked. */
void vrnic_roce_disconnect(struct vrnic_qp *qp)
{
	struct vrnic_roce *roce = qp->roce;

	vrnic_rxq_purge(qp);
	if (!roce)
		return;
	vrnic_burst_drop(&roce->burst);
	vrnic_roce_leave(qp);
	vrnic_early_purge(&roce->req.early);
	vrnic_early_purge(&roce->resp.early);
	vrnic_resp_free(qp);
	vrnic_window_free(&roce->req);
	WRITE_ONCE(qp->roce, NULL);
	call_rcu(&roce->rcu, roce_release);
}

int vrnic_roce_init(void)
{
	connections = KMEM_CACHE(vrnic_roce, 0);
	return connections ? 0 : -ENOMEM;
}

/* Called when no queue pair is connected. */
void vrnic_roce_exit(void)
{
	rcu_barrier();	/* for roce_release() */
	kmem_cache_destroy(connections);
}
