// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which packets a RoCEv2 requester sends for each operation. roce/tx.c makes them. */

#include <linux/bottom_half.h>
#include <linux/ktime.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/ack.h"
#include "lib/cc.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/target.h"
#include "roce/rate.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "verbs/flow.h"
#include "vrnic.h"

/*
 * Packets are slow that take a longer share of the ACK timeout than this. The requester looks for
 * losses after an eighth of it, at the earliest.
 */
#define SLOW	16

static void put_reth(struct vrnic_tx *tx, u64 va, u32 rkey, u32 len)
{
	struct vrnic_reth reth = {
		.va = cpu_to_be64(va),
		.rkey = cpu_to_be32(rkey),
		.len = cpu_to_be32(len),
	};

	memcpy(tx->ext + tx->ext_len, &reth, sizeof(reth));
	tx->ext_len += sizeof(reth);
}

static void put_word(struct vrnic_tx *tx, __be32 word)
{
	memcpy(tx->ext + tx->ext_len, &word, sizeof(word));
	tx->ext_len += sizeof(word);
}

/* The opcode of a packet of a SEND or WRITE, without the bits of the service. */
static u8 data_opcode(u8 opcode, bool first, bool last)
{
	bool write = opcode == VRNIC_OP_RDMA_WRITE ||
		     opcode == VRNIC_OP_RDMA_WRITE_WITH_IMM;

	if (!last)
		return (write ? VRNIC_BTH_WRITE_FIRST : VRNIC_BTH_SEND_FIRST) +
		       !first;
	switch (opcode) {
	case VRNIC_OP_SEND:
	case VRNIC_OP_NATIVE:
		return first ? VRNIC_BTH_SEND_ONLY : VRNIC_BTH_SEND_LAST;
	case VRNIC_OP_SEND_WITH_IMM:
		return first ? VRNIC_BTH_SEND_ONLY_IMM : VRNIC_BTH_SEND_LAST_IMM;
	case VRNIC_OP_SEND_WITH_INV:
		return first ? VRNIC_BTH_SEND_ONLY_INV : VRNIC_BTH_SEND_LAST_INV;
	case VRNIC_OP_RDMA_WRITE:
		return first ? VRNIC_BTH_WRITE_ONLY : VRNIC_BTH_WRITE_LAST;
	default:
		return first ? VRNIC_BTH_WRITE_ONLY_IMM :
			       VRNIC_BTH_WRITE_LAST_IMM;
	}
}

/* The service of the queue pair's requests. */
static u8 req_service(const struct vrnic_qp *qp)
{
	if (qp->link)
		return VRNIC_SVC_NATIVE;
	return qp->type == IB_QPT_UC ? VRNIC_SVC_UC : VRNIC_SVC_RC;
}

/* Begin the extension headers of a request. vrnic_roce_xmit() adds XRC's service to the opcode. */
static void begin_ext(const struct vrnic_qp *qp, struct vrnic_tx *tx)
{
	tx->ext_len = 0;
	if (unlikely(qp->xrc))
		put_word(tx, cpu_to_be32(qp->op.srqn));
}

/* Return: byte of the operation's data that its packet @n begins with. */
static u64 packet_off(const struct vrnic_qp *qp, const struct vrnic_wop *w, u64 n)
{
	if (!w->head || !n)
		return n * qp->roce->mtu;
	return w->head + (n - 1) * qp->roce->mtu;
}

/*
 * Fill in the headers of the packet of a SEND or WRITE that starts at byte @off. @head: as in
 * struct vrnic_wop
 */
static void fill_data(struct vrnic_qp *qp, struct vrnic_tx *tx, u64 off, u32 head)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	u32 most = head && !off ? head : qp->roce->mtu;
	u64 left = qp->op.total - off;
	bool last = left <= most;
	u8 op = data_opcode(d->opcode, !off, last);
	u32 info = vrnic_bth_info(op);

	tx->opcode = op | req_service(qp);
	tx->dqpn = qp->attr.dest_qp_num;
	tx->src = &qp->sgl;
	tx->len = last ? left : most;
	begin_ext(qp, tx);
	tx->solicited = last && d->flags & VRNIC_DESC_SOLICITED;
	if (info & VRNIC_PKT_RETH)
		put_reth(tx, d->remote_addr, d->rkey, qp->op.total);
	if (info & VRNIC_PKT_IMM)
		put_word(tx, (__force __be32)d->imm);
	if (info & VRNIC_PKT_IETH)
		put_word(tx, cpu_to_be32(d->imm));
}

/*
 * The peer refused this packet: the packet only says that the peer is to go on with the next one.
 */
static void fill_skip(struct vrnic_tx *tx, bool first)
{
	tx->opcode = VRNIC_SVC_NATIVE | (first ? VRNIC_BTH_SKIP_ONLY : VRNIC_BTH_SKIP_LAST);
	tx->len = 0;
}

/*
 * Send packet @q->fly.cur of @w, which takes @pkts PSNs. Return: false if no other can be sent now.
 */
static bool send_next(struct vrnic_qp *qp, const struct vrnic_wop *w,
		      struct vrnic_tx *tx, u32 pkts)
{
	struct vrnic_req *q = to_req(qp);
	bool again = q->fly.cur < q->fly.top;
	int err;

	tx->psn = q->fly.cur;
	/* the owner of data that a peer GETs over a link may write to them: it did not post them */
	tx->copy = again ||
		   (qp->link && !(vrnic_op_desc(&qp->op)->flags & VRNIC_DESC_POSTED));
	if (again) {
		vrnic_count(qp->dev, RETRANSMITTED_PKTS);
		qp->rare.retransmitted_pkts++;
	}
	if (tx->ackreq)
		q->acked_at = q->fly.cur;
	if (tx->ackreq && !q->timed && !again) {
		q->timed = q->fly.cur;
		q->timed_at = ktime_get_ns();
	}
	vrnic_resp_ack(qp);
	err = vrnic_roce_xmit(qp, &qp->roce->path, tx);
	vrnic_flight_sent(&q->fly, w, pkts);
	/* a packet that could not be sent counts as lost; the requester sends it after a timeout */
	return err != -ENOMEM && err != -EHOSTUNREACH;
}

/*
 * Packets after which the requester asks for an acknowledgment. Packets that are acknowledged
 * together make room for one burst. After a loss there are fewer, because a burst that meets a full
 * queue loses most of its packets. And there are fewer if the consumer's limit would make them take
 * so long that the requester looked for losses meanwhile.
 */
static u32 ack_every(const struct vrnic_qp *qp)
{
	const struct vrnic_req *q = &qp->roce->req;
	u32 every = q->window < VRNIC_WINDOW_PKTS ? q->window / 8 : VRNIC_ACK_EVERY;
	u64 packet;

	if (likely(!qp->limit) || !qp->attr.timeout)
		return every;
	packet = max_t(u64, vrnic_cc_ns(qp->roce->mtu, qp->limit), 1);
	return min_t(u64, every, ack_timeout(qp) / SLOW / packet);
}

/* Pages with the next bytes are being brought in. */
static void send_later(struct vrnic_qp *qp)
{
	vrnic_queue_after(&qp->run, vrnic_page_patience(&to_req(qp)->page_tries));
}

/*
 * Find the memory of the operation in qp->op, from byte @off on. @want: bytes to be sent soon.
 * Return: bytes that can be sent now, a packet at least; 0: none, and *@verr tells why, with
 * -EAGAIN: not yet.
 */
static u64 open_data(struct vrnic_qp *qp, u64 off, u64 want, int *verr)
{
	u64 n = want, packet = min_t(u64, want, qp->roce->mtu);

	*verr = vrnic_op_open(qp, &qp->op);
	if (*verr)
		return 0;
	vrnic_sgl_skip(&qp->sgl, off);
	*verr = vrnic_sgl_ready(&qp->sgl, &n, packet, false, &qp->send_wait);
	if (!*verr && likely(n >= packet))
		return n;
	vrnic_sgl_put(&qp->sgl);
	*verr = *verr ?: -EAGAIN;
	return 0;
}

/* Return: false if nothing more can be sent now. */
static bool send_data(struct vrnic_qp *qp, struct vrnic_wop *w,
		      struct vrnic_budget *budget, u32 room)
{
	struct vrnic_req *q = to_req(qp);
	u64 off = packet_off(qp, w, q->fly.cur - w->first);
	struct vrnic_tx tx;
	u32 n, every = ack_every(qp);
	bool ok = true;
	u64 there;
	int verr;

	there = open_data(qp, off, min_t(u64, w->total - off, VRNIC_BURST * qp->roce->mtu), &verr);
	if (verr == -EAGAIN) {
		send_later(qp);
		return false;
	}
	if (verr) {
		vrnic_req_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return true;
	}
	for (n = 0; ok && n < room && q->fly.cur < vrnic_wop_end(w) &&
	     window_open(q) && budget->bytes; n++) {
		fill_data(qp, &tx, off, w->head);
		if (unlikely(tx.len > there)) {
			if (!n)
				send_later(qp);
			ok = n;
			break;
		}
		there -= tx.len;
		if (w->skip && q->fly.cur + 1 == vrnic_wop_end(w))
			fill_skip(&tx, !off);
		tx.ackreq = q->fly.cur + 1 == vrnic_wop_end(w) ||
			    q->fly.cur + 1 - q->fly.una == q->window ||
			    q->fly.cur + 1 == q->fly.hold ||
			    q->fly.cur - q->acked_at >= every;
		ok = send_next(qp, w, &tx, 1);
		off += tx.len;
		budget->bytes -= min_t(u64, budget->bytes, tx.len);
	}
	vrnic_sgl_put(&qp->sgl);
	if (n)
		q->page_tries = 0;
	return ok;
}

/*
 * If a READ's answer has a gap, and packets behind it are kept, ask only for the gap. Return: for
 * how many of the @n packets from @q->fly.cur on to ask; 0: for none before the gap is closed.
 */
static u32 req_missing(struct vrnic_req *q, u32 n)
{
	struct sk_buff *kept;
	s32 gap;

	if (q->fly.cur >= q->fly.top)
		return n;
	skb_queue_walk(&q->early.list, kept) {
		gap = vrnic_psn_diff(vrnic_pkt(kept)->psn, q->fly.una);
		if (vrnic_pkt(kept)->opcode != VRNIC_BTH_ACK && gap > 0)
			return q->fly.cur == q->fly.una ? min_t(u32, n, gap) : 0;
	}
	return n;
}

static bool send_read(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_req *q = to_req(qp);
	u32 at = q->fly.cur - w->first;
	u32 n = req_missing(q, min(w->chunk - at % w->chunk, w->pkts - at));
	u64 off = (u64)at * qp->roce->mtu;
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_READ_REQUEST,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
	};

	if (!n || (q->fly.cur != q->fly.una && q->fly.cur + n - q->fly.una > q->window))
		return false;
	begin_ext(qp, &tx);
	put_reth(&tx, d->remote_addr + off, d->rkey,
		 min_t(u64, (u64)n * qp->roce->mtu, w->total - off));
	return send_next(qp, w, &tx, n);
}

static bool send_atomic(struct vrnic_qp *qp, const struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_atomiceth eth = {
		.va = cpu_to_be64(d->remote_addr),
		.rkey = cpu_to_be32(d->rkey),
		.swap_add = cpu_to_be64(d->atomic.swap_add),
		.compare = cpu_to_be64(d->atomic.compare),
	};
	struct vrnic_tx tx = {
		.opcode = d->opcode == VRNIC_OP_ATOMIC_CMP_AND_SWP ?
				  VRNIC_BTH_CMP_SWAP : VRNIC_BTH_FETCH_ADD,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
	};

	begin_ext(qp, &tx);
	memcpy(tx.ext + tx.ext_len, &eth, sizeof(eth));
	tx.ext_len += sizeof(eth);
	return send_next(qp, w, &tx, 1);
}

static bool send_atomic_write(struct vrnic_qp *qp, const struct vrnic_wop *w)
{
	struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_ATOMIC_WRITE,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
		.src = &qp->sgl,
		.len = sizeof(u64),
	};

	begin_ext(qp, &tx);
	put_reth(&tx, d->remote_addr, d->rkey, sizeof(u64));
	vrnic_sgl_kva(&qp->sgl, d->data, sizeof(u64));
	return send_next(qp, w, &tx, 1);
}

static bool send_flush(struct vrnic_qp *qp, const struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	u32 what = d->flush & VRNIC_FETH_TYPE;
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_FLUSH,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
	};

	if (d->flush & VRNIC_FLUSH_MR)
		what |= 1 << VRNIC_FETH_RANGE_SHIFT;
	put_word(&tx, cpu_to_be32(what));
	put_reth(&tx, d->remote_addr, d->rkey, d->flush_len);
	return send_next(qp, w, &tx, 1);
}

/**
 * vrnic_req_send_op() - send the next packets of an operation
 * @qp: requester; the operation is in qp->op
 * @w: the operation
 * @budget: its bytes bound this burst
 *
 * Return: false if the requester can send nothing more now.
 */
bool vrnic_req_send_op(struct vrnic_qp *qp, struct vrnic_wop *w,
		       struct vrnic_budget *budget)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_req *q = to_req(qp);
	u64 until, room;

	if (!window_open(q) ||
	    !vrnic_flight_may_send(&q->fly, w, max_t(u32, qp->attr.max_rd_atomic, 1)))
		return false;
	room = vrnic_rate_room(qp, &until);
	if (!room) {
		vrnic_queue_at(&qp->run, until);
		return false;
	}
	switch (d->opcode) {
	case VRNIC_OP_RDMA_READ:
		return send_read(qp, w);
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		return send_atomic(qp, w);
	case VRNIC_OP_ATOMIC_WRITE:
		return send_atomic_write(qp, w);
	case VRNIC_OP_FLUSH:
		return send_flush(qp, w);
	default:
		return send_data(qp, w, budget,
				 min_t(u64, room / (qp->roce->mtu + VRNIC_HDR_BYTES),
				       VRNIC_BURST));
	}
}

static enum vrnic_step uc_wait(struct vrnic_qp *qp, struct vrnic_op *op)
{
	op->waits = VRNIC_WAIT_PAGE;
	qp->run.wait_until = ktime_get_ns() + vrnic_page_patience(&op->tries);
	return VRNIC_STEP_WAIT;
}

/**
 * vrnic_roce_execute_uc() - send a message of a UC queue pair
 * @qp: requester
 * @op: operation that vrnic_op_check() accepted
 * @budget: its bytes bound this burst
 *
 * The request completes when all its packets are sent, so they have copies of the data.
 *
 * Return: VRNIC_STEP_DONE, VRNIC_STEP_MORE or VRNIC_STEP_FAIL.
 */
enum vrnic_step vrnic_roce_execute_uc(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget)
{
	struct vrnic_req *q = to_req(qp);
	u64 there, begun = op->done;
	struct vrnic_tx tx = {};
	int verr;

	there = open_data(qp, op->done, min(op->total - op->done, budget->bytes + qp->roce->mtu),
			  &verr);
	if (verr == -EAGAIN)
		return uc_wait(qp, op);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	local_bh_disable();
	do {
		fill_data(qp, &tx, op->done, 0);
		if (tx.len > there)
			break;
		there -= tx.len;
		tx.psn = q->fly.next++;
		tx.copy = true;
		/* without this packet the peer drops the rest of the message, so do not send it */
		if (vrnic_roce_xmit(qp, &qp->roce->path, &tx)) {
			op->done = op->total;
			break;
		}
		op->done += tx.len;
		budget->bytes -= min_t(u64, budget->bytes, tx.len + VRNIC_HDR_BYTES);
	} while (op->done < op->total && budget->bytes);
	vrnic_roce_push(qp);
	local_bh_enable();
	vrnic_sgl_put(&qp->sgl);
	if (op->done == op->total)
		return VRNIC_STEP_DONE;
	if (unlikely(op->done == begun))
		return uc_wait(qp, op);
	op->tries = 0;
	return VRNIC_STEP_MORE;
}
