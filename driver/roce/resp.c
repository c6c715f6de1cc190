// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: a queue pair as the target of a requester on another host. IBTA 9.7 for RC, 9.8
 * for UC. This file takes requests in order, and handles those that come too early, or again.
 * roce/resp_exec.c executes them.
 *
 * All of this runs with the queue pair's run bit, mostly in softirq.
 */

#include <linux/ktime.h>
#include <linux/slab.h>

#include "engine/engine.h"
#include "lib/ack.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "queue/link_ops.h"
#include "queue/qp.h"
#include "queue/target.h"
#include "roce/resp.h"
#include "roce/roce.h"
#include "vrnic.h"

int vrnic_resp_init(struct vrnic_qp *qp, const struct ib_qp_attr *attr)
{
	struct vrnic_served *s = &to_resp(qp)->served;

	/* an XRC initiator has no such attribute, and gets no requests */
	s->nr_res = qp->xrc == VRNIC_XRC_INI ? 1 : max_t(u32, attr->max_dest_rd_atomic, 1);
	s->res = kcalloc(s->nr_res, sizeof(*s->res), qp->gfp);
	if (!s->res)
		return -ENOMEM;
	vrnic_served_start(s, attr->rq_psn);
	return 0;
}

void vrnic_resp_free(struct vrnic_qp *qp)
{
	kfree(to_resp(qp)->served.res);
}

/* Is a READ being answered? Then requests behind it have to wait. */
bool vrnic_resp_busy(const struct vrnic_qp *qp)
{
	return qp->roce->resp.reply.active;
}

/**
 * vrnic_resp_waits() - does the next request wait for a page, or until a region is not in use?
 * @qp: target
 *
 * Return: true if it does; then the timer runs.
 */
bool vrnic_resp_waits(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	if (likely(!r->retry_at))
		return false;
	if (ktime_get_ns() < r->retry_at) {
		vrnic_queue_at(&qp->run, r->retry_at);
		return true;
	}
	r->retry_at = 0;
	return false;
}

/* Send a packet to the requester. */
void vrnic_resp_send(struct vrnic_qp *qp, struct vrnic_tx *tx)
{
	if (tx->opcode != VRNIC_BTH_ACK)
		to_resp(qp)->replied = true;
	tx->dqpn = qp->attr.dest_qp_num;
	vrnic_roce_xmit(qp, &qp->roce->path, tx);
}

/* Put an AETH into @tx as the first extension header; the caller may add others. */
void vrnic_resp_put_aeth(struct vrnic_qp *qp, struct vrnic_tx *tx, u8 syndrome)
{
	vrnic_aeth_fill((struct vrnic_aeth *)tx->ext, syndrome,
			to_resp(qp)->served.msn);
	tx->ext_len = sizeof(struct vrnic_aeth);
}

/* Send an answer without data. */
void vrnic_resp_answer(struct vrnic_qp *qp, u8 opcode, u8 syndrome, u32 psn)
{
	struct vrnic_tx tx = { .opcode = opcode, .psn = psn };

	vrnic_resp_put_aeth(qp, &tx, syndrome);
	vrnic_resp_send(qp, &tx);
}

/**
 * vrnic_resp_take_ack() - is an acknowledgment due?
 * @qp: target
 * @tx: if so, filled in with the acknowledgment
 *
 * Return: true if so.
 */
bool vrnic_resp_take_ack(struct vrnic_qp *qp, struct vrnic_tx *tx)
{
	u32 psn;

	if (!vrnic_served_take_ack(&to_resp(qp)->served, &psn))
		return false;
	*tx = (struct vrnic_tx){
		.opcode = VRNIC_BTH_ACK,
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn,
	};
	vrnic_resp_put_aeth(qp, tx, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED);
	return true;
}

static void resp_send_ack(struct vrnic_qp *qp)
{
	struct vrnic_tx tx;

	if (!vrnic_resp_take_ack(qp, &tx))
		return;
	vrnic_roce_xmit(qp, &qp->roce->path, &tx);
	qp->roce->burst.ack = qp->roce->burst.nr == 1;
}

/*
 * Send an acknowledgment if one is due. The requester calls this before each of its packets, so it
 * must cost next to nothing if none is due: not even what it takes to clear a struct vrnic_tx.
 */
void vrnic_resp_ack(struct vrnic_qp *qp)
{
	if (vrnic_served_owes_ack(&to_resp(qp)->served))
		resp_send_ack(qp);
}

void vrnic_resp_nak(struct vrnic_qp *qp, u8 syndrome)
{
	u32 psn = vrnic_served_take_nak(&to_resp(qp)->served);

	vrnic_resp_answer(qp, VRNIC_BTH_ACK, syndrome, psn);
}

/* The message of a native link failed: tell the peer why, in place of an MSN. */
void vrnic_resp_nak_failed(struct vrnic_qp *qp, u32 why)
{
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_ACK,
		.psn = vrnic_served_take_nak(&to_resp(qp)->served),
		.ext_len = sizeof(struct vrnic_aeth),
	};

	vrnic_aeth_fill((struct vrnic_aeth *)tx.ext, VRNIC_AETH_NAK | VRNIC_NAK_FAILED, why);
	vrnic_resp_send(qp, &tx);
}

/* Answer an atomic, a FLUSH or an ATOMIC WRITE, which @res remembers, by its one packet. */
static void resp_reply_once(struct vrnic_qp *qp, const struct vrnic_res *res, u32 info)
{
	if (info & VRNIC_PKT_ATOMIC)
		vrnic_resp_atomic_ack(qp, res);
	else
		vrnic_resp_answer(qp, VRNIC_BTH_READ_RESP_ONLY,
				  VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED, res->psn);
}

/*
 * An executed request came again: its answer was lost, or is on its way. Send the answer again,
 * unless the responder has forgotten it.
 */
static void resp_duplicate(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	struct vrnic_res *res;
	u64 off;

	vrnic_count(qp->dev, DUPLICATE_REQUEST);
	vrnic_early_again(&r->early, pkt->psn);
	if (pkt->info & VRNIC_PKT_DATA) {
		r->served.due = true;
		return;
	}
	res = vrnic_res_find(&r->served, pkt->opcode, pkt->psn);
	if (!res)
		return;
	if (pkt->info & (VRNIC_PKT_ATOMIC | VRNIC_PKT_OTHER)) {
		resp_reply_once(qp, res, pkt->info);
		return;
	}
	/* the request has to be the READ that was executed, or the rest of it */
	off = (u64)vrnic_psn_diff(pkt->psn, res->psn) * qp->roce->mtu;
	if (be64_to_cpu(reth->va) != res->va + off ||
	    be32_to_cpu(reth->rkey) != res->rkey ||
	    be32_to_cpu(reth->len) > res->len - off)
		return;
	r->reply = (struct vrnic_reply) {
		.active = true,
		/* the answer to the rest begins with FIRST or ONLY, like any answer: IBTA 9.7.5 */
		.first = true,
		.replay = true,
		.psn = pkt->psn,
		.va = res->va + off,
		.rkey = res->rkey,
		.left = be32_to_cpu(reth->len),
		.srqn = vrnic_resp_srqn(skb),
	};
}

/*
 * A packet came too early: one before it is lost, or late. If the packet is kept already, the
 * requester has gone back after a NAK, and the missing packet was lost once more; but not if that
 * was refused, and SKIP is to come in its place.
 */
static void too_early(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_resp *r = to_resp(qp);
	int err;

	vrnic_count(qp->dev, OUT_OF_SEQ_REQUEST);
	if (r->naked && vrnic_pkt(skb)->info & VRNIC_PKT_ANSWERED) {
		kfree_skb(skb);
		return;
	}
	err = vrnic_early_keep(&r->early, skb, r->served.psn);
	if (err == -EEXIST && !r->refused)
		r->again = true;
	/* a packet that is not kept makes vrnic_resp_gap() send a NAK, too */
	if (err)
		kfree_skb(skb);
}

/**
 * vrnic_resp_gap() - after all received packets were handled, send a NAK if one is missing
 * @qp: target
 *
 * If the missing packet may just be late, the timer runs instead. There is one NAK for each time
 * that the requester goes back.
 */
void vrnic_resp_gap(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);
	u64 now, due;

	/* the packet that waits for a page is not missing: those behind it came in good time */
	if (!vrnic_early_any(&r->early) || r->reply.active || r->retry_at)
		return;
	vrnic_early_peek(&r->early, r->served.psn);
	now = ktime_get_ns();
	due = vrnic_early_age(&r->early, now);
	if (due)
		vrnic_queue_at(&qp->run, due);
	if (!vrnic_early_any(&r->early) || (r->naked && !r->again))
		return;
	due = vrnic_early_due(&r->early);
	if (due > now) {
		vrnic_queue_at(&qp->run, due);
		return;
	}
	r->naked = true;
	r->again = false;
	vrnic_early_asked(&r->early, r->served.psn);
	vrnic_early_drop_answered(&r->early);
	vrnic_resp_nak(qp, VRNIC_AETH_NAK | VRNIC_NAK_PSN);
	if (qp->link && vrnic_req_queued(qp))
		qp->link_ops->congested(qp->link, true);
}

/* If the missing packet has come, put the first early packet behind it back into the queue. */
static void next_early(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);
	struct sk_buff *skb;

	if (skb_queue_empty(&r->early.list))
		return;
	skb = vrnic_early_peek(&r->early, r->served.psn);
	if (!skb || vrnic_pkt(skb)->psn != r->served.psn)
		return;
	vrnic_early_take(&r->early, skb);
	vrnic_pkt(skb)->kept = true;
	vrnic_rxq_return(qp, skb);
	/* this run takes it: the softirq that brought it is over */
	qp->roce->due++;
}

/* RC: is the packet the next one, as it is not ahead? If not, answer the duplicate. */
static bool in_sequence_rc(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_resp *r = to_resp(qp);

	if (vrnic_pkt(skb)->psn != r->served.psn) {
		resp_duplicate(qp, skb);
		return false;
	}
	vrnic_early_learn(&r->early, skb);
	vrnic_early_came(&r->early, r->served.psn, !vrnic_pkt(skb)->kept && !r->refused);
	r->naked = false;
	r->again = false;
	return true;
}

/*
 * UC: the requester does not repeat lost packets, so a message that lost a packet is dropped up to
 * its end. The first packet of the next message is accepted whatever its PSN is. Return: false if
 * the packet is in a message that is being dropped, because the message lost a packet or was
 * refused: drop_message().
 */
static bool in_sequence_uc(struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	struct vrnic_resp *r = to_resp(qp);
	bool start = pkt->info & VRNIC_PKT_START;

	if (pkt->psn != r->served.psn || start) {
		if (r->kind)
			vrnic_count(qp->dev, UC_DROPPED);
		r->kind = 0;
		r->uc_drop = !start;
		r->served.psn = pkt->psn;
	}
	if (!r->uc_drop)
		return true;
	r->served.psn = vrnic_psn_add(r->served.psn, 1);
	return false;
}

static void resp_advance(struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	struct vrnic_resp *r = to_resp(qp);

	r->refused = false;
	if (pkt->info & VRNIC_PKT_DATA)
		vrnic_served_data(&r->served, vrnic_pkt_count(pkt),
				  pkt->ackreq && qp->type == IB_QPT_RC);
	else if (pkt->info & VRNIC_PKT_READ)
		vrnic_served_answered(&r->served, vrnic_psn_count(r->reply.left,
								  qp->roce->mtu));
	else
		vrnic_served_answered(&r->served, 1);
	if (pkt->info & VRNIC_PKT_END) {
		r->kind = 0;
		r->served.msn++;
	} else {
		r->kind = pkt->info & VRNIC_PKT_DATA;
	}
}

/* May a train be executed as one packet? Only if a single check holds for all its packets. */
static bool goes_whole(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	const struct vrnic_resp *r = &qp->roce->resp;

	return pkt->psn == r->served.psn && !r->uc_drop &&
	       skb_queue_empty(&r->early.list) && vrnic_resp_has_room(qp, pkt);
}

/**
 * vrnic_resp_request() - execute a request, or keep or drop it
 * @qp: target
 * @skb: packet or train; this function consumes it
 */
void vrnic_resp_request(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	enum vrnic_rx rx;

	if (pkt->train && !goes_whole(qp, pkt))
		vrnic_pkt_uncouple(qp, skb);
	if (qp->type == IB_QPT_RC && vrnic_psn_diff(pkt->psn, r->served.psn) > 0) {
		too_early(qp, skb);
		return;
	}
	if (qp->type == IB_QPT_RC ? !in_sequence_rc(qp, skb) :
				    !in_sequence_uc(qp, pkt))
		goto out;
	rx = vrnic_resp_execute(qp, skb);
	if (rx == VRNIC_RX_AGAIN) {
		/* when the packet came has been noted: its wait for the page is no lateness */
		pkt->kept = true;
		vrnic_rxq_return(qp, skb);
		qp->roce->due++;
		r->retry_at = ktime_get_ns() + vrnic_page_patience(&r->page_tries);
		return;
	}
	r->page_tries = 0;
	if (rx == VRNIC_RX_DONE) {
		resp_advance(qp, pkt);
		/* the MSN of the answer counts the request */
		if (pkt->info & (VRNIC_PKT_ATOMIC | VRNIC_PKT_OTHER))
			resp_reply_once(qp, vrnic_res_find(&r->served, pkt->opcode, pkt->psn),
					pkt->info);
		next_early(qp);
	} else if (qp->type == IB_QPT_UC) {
		r->served.psn = vrnic_psn_add(r->served.psn, 1);
	}
out:
	kfree_skb(skb);
}
