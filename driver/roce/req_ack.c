// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a RoCEv2 requester handles the answers of the responder: acknowledgments, NAKs, and the data
 * of READs and atomics.
 */

#include <linux/ktime.h>
#include <linux/sizes.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "lib/ack.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/link_ops.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/target.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "vrnic.h"

/*
 * The responder has executed all packets before @limit. Return: false if an answer to one is
 * missing.
 */
static bool req_acked(struct vrnic_qp *qp, u64 limit)
{
	struct vrnic_req *q = to_req(qp);
	u64 before = q->fly.una;
	bool all = vrnic_flight_acked(&q->fly, limit);

	if (q->fly.una != before)
		vrnic_req_progress(qp, before);
	return all;
}

static void remote_error(struct vrnic_qp *qp, u8 code)
{
	static const u8 status[] = {
		[VRNIC_NAK_INVALID] = IB_WC_REM_INV_REQ_ERR,
		[VRNIC_NAK_ACCESS] = IB_WC_REM_ACCESS_ERR,
		[VRNIC_NAK_OPERATION] = IB_WC_REM_OP_ERR,
	};
	struct vrnic_wop *w;
	u32 i;

	w = vrnic_flight_oldest(&to_req(qp)->fly, &i);
	if (w && code < ARRAY_SIZE(status))
		vrnic_req_fail(qp, w, status[code], VRNIC_VERR_NONE);
}

/*
 * The peer of a native link could not execute the oldest message, whose last packet is @psn, or a
 * part of it. Further NAKs for a message that is skipped say the same.
 */
static void rx_failed(struct vrnic_qp *qp, struct sk_buff *skb, u64 psn)
{
	enum vrnic_refusal refusal = VRNIC_REFUSAL_FALSE;
	u32 why = vrnic_aeth_msn(vrnic_pkt_ext(skb));
	struct vrnic_wop *w;
	u32 i;

	w = vrnic_flight_oldest(&to_req(qp)->fly, &i);
	if (!qp->link || !w || w->skip || w->status != IB_WC_SUCCESS)
		return;
	vrnic_req_load(qp, i);
	if (psn + 1 == vrnic_wop_end(w))
		refusal = qp->link_ops->refused(qp->link, vrnic_op_desc(&qp->op)->cookie, why);
	if (refusal == VRNIC_REFUSAL_FALSE)
		vrnic_req_fail(qp, w, IB_WC_BAD_RESP_ERR, VRNIC_VERR_NONE);
	else if (refusal != VRNIC_REFUSAL_OLD)
		vrnic_req_refused(qp, w, refusal == VRNIC_REFUSAL_SKIP);
}

/*
 * Handle an acknowledgment or a NAK. Return: false if @skb is too early: an earlier request still
 * lacks the answer (to a READ, for example) that has to be handled before @skb.
 */
static bool rx_ack(struct vrnic_qp *qp, struct sk_buff *skb, u64 psn)
{
	u8 syndrome = vrnic_aeth_syndrome(vrnic_pkt_ext(skb));
	u8 value = syndrome & VRNIC_AETH_VALUE;
	struct vrnic_req *q = to_req(qp);

	if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_ACK)
		return req_acked(qp, psn + 1);
	if (!req_acked(qp, psn))
		return false;
	if (q->fly.una != psn)
		return true;
	if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_RNR) {
		vrnic_req_rnr(qp, value);
	} else if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_NAK) {
		if (value == VRNIC_NAK_FAILED) {
			rx_failed(qp, skb, psn);
			return true;
		}
		if (value != VRNIC_NAK_PSN) {
			remote_error(qp, value);
			return true;
		}
		vrnic_count(qp->dev, RCVD_SEQ_ERR);
		if (!q->rnr_until)
			vrnic_req_go_back_lost(qp);
	}
	return true;
}

/* Packets of an answer came in order, and their data are in place. */
static void answer_done(struct vrnic_qp *qp, struct vrnic_wop *w, u32 pkts)
{
	struct vrnic_req *q = to_req(qp);

	vrnic_flight_answered(&q->fly, w, pkts);
	vrnic_req_progress(qp, q->fly.una - pkts);
}

/*
 * Find the place of an answer's @n bytes, from byte @off on; @most may follow soon. Return: 0:
 * qp->sgl has it; -EAGAIN: a page of it is being brought in, and the answer has to wait; or enum
 * vrnic_vendor_err.
 */
static int open_answer(struct vrnic_qp *qp, u64 off, u64 n, u64 most)
{
	struct vrnic_req *q = to_req(qp);
	int verr = vrnic_op_open(qp, &qp->op);

	if (!verr) {
		vrnic_sgl_skip(&qp->sgl, off);
		verr = vrnic_sgl_ready(&qp->sgl, &most, n, true, &q->answer_wait);
		if (!verr && likely(most >= n)) {
			q->page_tries = 0;
			return 0;
		}
		vrnic_sgl_put(&qp->sgl);
	}
	if (!verr || verr == -EAGAIN) {
		q->answer_at = ktime_get_ns() + vrnic_page_patience(&q->page_tries);
		return -EAGAIN;
	}
	return verr;
}

/**
 * vrnic_req_waits() - does the next answer wait until a page is brought in?
 * @qp: requester
 *
 * Return: true if it does; then the timer runs.
 */
bool vrnic_req_waits(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (likely(!q->answer_at))
		return false;
	if (ktime_get_ns() < q->answer_at) {
		vrnic_queue_at(&qp->run, q->answer_at);
		return true;
	}
	q->answer_at = 0;
	return false;
}

static void rx_read_response(struct vrnic_qp *qp, struct sk_buff *skb,
			     struct vrnic_wop *w, u32 i)
{
	u64 off = (to_req(qp)->fly.una - w->first) * qp->roce->mtu;
	u64 left = w->total - off;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 len = vrnic_pkt_bytes(pkt);
	int verr;

	/* answer_goes_whole() has looked at a train, which is not the end of the answer */
	if (pkt->len != min_t(u64, qp->roce->mtu, left)) {
		vrnic_count(qp->dev, MALFORMED_PKTS);
		return;
	}
	vrnic_req_load(qp, i);
	verr = open_answer(qp, off, len, min_t(u64, left, SZ_64K));
	if (verr) {
		if (verr != -EAGAIN)
			vrnic_req_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return;
	}
	vrnic_pkt_copy(skb, &qp->sgl, len == left);
	vrnic_sgl_put(&qp->sgl);
	answer_done(qp, w, vrnic_pkt_count(pkt));
}

static void rx_atomic_ack(struct vrnic_qp *qp, struct sk_buff *skb,
			  struct vrnic_wop *w, u32 i)
{
	const struct vrnic_atomicack *ack =
		vrnic_pkt_ext(skb) + sizeof(struct vrnic_aeth);
	u64 orig = be64_to_cpu(get_unaligned(&ack->orig));
	int verr;

	vrnic_req_load(qp, i);
	verr = open_answer(qp, 0, sizeof(orig), sizeof(orig));
	if (verr) {
		if (verr != -EAGAIN)
			vrnic_req_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return;
	}
	vrnic_sgl_write(&qp->sgl, &orig, sizeof(orig), true);
	vrnic_sgl_put(&qp->sgl);
	answer_done(qp, w, 1);
}

/* Handle the answer to a READ, atomic, FLUSH or ATOMIC WRITE. Return: as rx_ack(). */
static bool rx_answer(struct vrnic_qp *qp, struct sk_buff *skb, u64 psn)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_req *q = to_req(qp);
	bool atomic = pkt->opcode == VRNIC_BTH_ATOMIC_ACK;
	struct vrnic_wop *w;
	u32 i;

	/* an answer acknowledges all earlier requests */
	if (!req_acked(qp, psn))
		return false;
	w = vrnic_flight_oldest(&q->fly, &i);
	if (!w || q->fly.una != psn || !w->answered || w->status)
		return true;
	switch (w->info->wc) {
	case IB_WC_RDMA_READ:
		if (!atomic)
			rx_read_response(qp, skb, w, i);
		break;
	case IB_WC_COMP_SWAP:
	case IB_WC_FETCH_ADD:
		if (atomic)
			rx_atomic_ack(qp, skb, w, i);
		break;
	default:
		if (pkt->opcode == VRNIC_BTH_READ_RESP_ONLY && !pkt->len)
			answer_done(qp, w, 1);
	}
	return true;
}

static bool rx_any(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u64 psn = vrnic_psn_extend(vrnic_pkt(skb)->psn, to_req(qp)->fly.una);

	if (vrnic_pkt(skb)->opcode == VRNIC_BTH_ACK)
		return rx_ack(qp, skb, psn);
	return rx_answer(qp, skb, psn);
}

/* The answer waits for a page: it is the next packet to be handled, then. */
static void answer_again(struct vrnic_qp *qp, struct sk_buff *skb)
{
	vrnic_pkt(skb)->kept = true;
	vrnic_rxq_return(qp, skb);
	qp->roce->due++;
}

/* Handle the early answers, up to one for which an earlier answer is missing. */
static void rx_early(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	struct sk_buff *skb;

	while ((skb = vrnic_early_peek(&q->early, q->fly.una)) && rx_any(qp, skb)) {
		vrnic_early_take(&q->early, skb);
		if (unlikely(q->answer_at)) {
			answer_again(qp, skb);
			return;
		}
		kfree_skb(skb);
	}
}

/*
 * May a train be handled as one packet? Only if it continues the answer to a READ that was sent
 * for, and nothing of it is missing, unexpected, or the answer's end. It must not pass @fly.hold
 * either: vrnic_flight_moved() has to see when that is reached.
 */
static bool answer_goes_whole(struct vrnic_qp *qp, const struct vrnic_pkt *pkt, u64 psn)
{
	struct vrnic_req *q = to_req(qp);
	u64 end = psn + vrnic_pkt_count(pkt);
	struct vrnic_wop *w;
	u32 i;

	if (psn != q->fly.una || pkt->len != qp->roce->mtu || !skb_queue_empty(&q->early.list))
		return false;
	w = vrnic_flight_oldest(&q->fly, &i);
	return w && w->answered && end < vrnic_wop_end(w) && end <= q->fly.top &&
	       (!q->fly.hold || end <= q->fly.hold);
}

/**
 * vrnic_req_answer() - handle an answer of the responder, or keep it if it came too early
 * @qp: requester
 * @skb: packet or train; this function consumes it
 */
void vrnic_req_answer(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_req *q = to_req(qp);
	u32 own = vrnic_pkt(skb)->psn;
	u64 psn = vrnic_psn_extend(own, q->fly.una);

	if (vrnic_pkt(skb)->train && !answer_goes_whole(qp, vrnic_pkt(skb), psn))
		vrnic_pkt_uncouple(qp, skb);
	if (psn < q->fly.una)
		vrnic_early_again(&q->early, own);
	else if (psn == q->fly.una)
		vrnic_early_came(&q->early, own, !vrnic_pkt(skb)->kept);
	/* an answer to a settled request, or to one that was never sent, is dropped */
	if (psn >= q->fly.una && psn < q->fly.top) {
		if (rx_any(qp, skb)) {
			if (unlikely(q->answer_at)) {
				answer_again(qp, skb);
				return;
			}
			vrnic_early_learn(&q->early, skb);
		} else if (!vrnic_early_keep(&q->early, skb, q->fly.una)) {
			return;
		}
	}
	kfree_skb(skb);
	rx_early(qp);
}
