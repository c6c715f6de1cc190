// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCEv2 requester: its window of operations, and how they come and go.
 *
 * Operations go from the send ring into a window, and stay there until the peer has acknowledged
 * them. Only then does the process get their slots of the ring back. A packet that has to be sent
 * again is made from the window's private copy of the descriptor, and its memory is looked up and
 * checked again.
 *
 * lib/ack.h tells how packets are counted, and what settles an operation. A long READ is several
 * requests, one for each chunk, so that its answers do not exceed the window either.
 */

#include <linux/bottom_half.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/ack.h"
#include "lib/psn.h"
#include "queue/hold.h"
#include "queue/link_ops.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/sq_ring.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "verbs/flow.h"
#include "vrnic.h"

static bool is_local(const struct vrnic_wop *w)
{
	return w->info && w->info->execute;
}

/**
 * vrnic_req_load() - copy an operation from the window to qp->op
 * @qp: requester
 * @i: index of the operation in the window
 */
void vrnic_req_load(struct vrnic_qp *qp, u32 i)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = vrnic_wop_at(&q->fly, i);

	if (q->has_loaded && q->loaded == i)
		return;
	if (qp->link)
		qp->link_ops->describe(w->cookie, vrnic_op_desc(&qp->op));
	else
		memcpy(qp->op.slots, q->slots + w->slot * VRNIC_SLOT_SIZE,
		       w->num_slots * VRNIC_SLOT_SIZE);
	qp->op.srqn = w->srqn;
	qp->op.info = w->info;
	qp->op.total = w->total;
	qp->op.done = 0;
	q->loaded = i;
	q->has_loaded = true;
}

/**
 * vrnic_req_fail() - note that an operation fails, once it is the oldest in the window
 * @qp: requester
 * @w: operation; only its first failure counts
 * @status: enum ib_wc_status
 * @verr: enum vrnic_vendor_err
 */
void vrnic_req_fail(struct vrnic_qp *qp, struct vrnic_wop *w, u8 status,
		    int verr)
{
	if (w->status != IB_WC_SUCCESS)
		return;
	w->status = status;
	w->vendor_err = verr;
	to_req(qp)->blocked = true;
}

/* Does the peer answer this opcode with more than an acknowledgment? */
static bool is_answered(u8 opcode)
{
	switch (opcode) {
	case VRNIC_OP_RDMA_READ:
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
	case VRNIC_OP_ATOMIC_WRITE:
	case VRNIC_OP_FLUSH:
		return true;
	default:
		return false;
	}
}

/* Keep what makes the descriptor again. req_admit() has made sure that there is room. */
static void keep_slots(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	struct vrnic_req *q = to_req(qp);

	w->num_slots = vrnic_op_desc(&qp->op)->num_slots;
	w->slot = q->slot_tail % VRNIC_WINDOW_SLOTS;
	if (qp->link) {
		w->cookie = vrnic_op_desc(&qp->op)->cookie;
	} else {
		memcpy(q->slots + w->slot * VRNIC_SLOT_SIZE, qp->op.slots,
		       w->num_slots * VRNIC_SLOT_SIZE);
		w->srqn = qp->op.srqn;
	}
	q->slot_tail += w->num_slots;
	q->ahead += w->num_slots;
}

static void check_op(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	struct vrnic_op *op = &qp->op;
	int verr;

	w->status = op->status;
	w->vendor_err = op->vendor_err;
	if (w->status != IB_WC_SUCCESS)
		return;
	verr = vrnic_op_check(qp, op);
	if (verr) {
		w->status = verr == VRNIC_VERR_LENGTH ? IB_WC_LOC_LEN_ERR :
							IB_WC_LOC_QP_OP_ERR;
		w->vendor_err = verr;
	}
	w->info = op->info;
}

/* Compute how many PSNs the operation takes: those of its requests, or of their answers. */
static void req_plan(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);

	w->total = qp->op.total;
	w->head = 0;
	w->answered = is_answered(d->opcode);
	switch (d->opcode) {
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		w->total = sizeof(u64);
		w->pkts = 1;
		break;
	case VRNIC_OP_RDMA_READ:
		/* two chunks in flight, if this requester may have two READs outstanding */
		w->chunk = qp->attr.max_rd_atomic > 1 ?
				   VRNIC_WINDOW_PKTS / 2 : VRNIC_WINDOW_PKTS;
		w->pkts = vrnic_psn_count(w->total, qp->roce->mtu);
		break;
	case VRNIC_OP_NATIVE:
		w->head = d->imm;
		fallthrough;
	default:
		w->pkts = !!w->head + vrnic_psn_count(w->total - w->head, qp->roce->mtu);
	}
	qp->op.total = w->total;
}

/*
 * May @w, a local operation, run as soon as req_admit() adds it? LOCAL_INV may not: earlier
 * operations may still use the region. BIND_MW and REG_MR only give access to memory, so they may,
 * unless @w has a fence and an earlier answer is missing: nobody may get access to memory that a
 * READ has not filled yet. If @w may not run now, retire_one() runs it when it is the oldest.
 */
static bool may_run_local(const struct vrnic_req *q, const struct vrnic_wop *w)
{
	return w->info->wc != IB_WC_LOCAL_INV && q->fly.una >= w->after;
}

static void run_local(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	enum vrnic_step step;

	/* the operation may wait while any run holds its region: this run must not be the one */
	vrnic_hold_release(qp);
	step = w->info->execute(qp, &qp->op);
	if (step == VRNIC_STEP_FAIL)
		vrnic_req_fail(qp, w, qp->op.status, qp->op.vendor_err);
	if (step != VRNIC_STEP_WAIT)
		w->chunk = 1;	/* local: it is done */
}

/* Has the window room for another operation, whatever its size? */
static bool may_admit(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (q->fly.tail - q->fly.head == q->fly.nr_ops && !vrnic_window_grow(qp))
		return false;
	return q->slot_tail - q->slot_head <= VRNIC_WINDOW_SLOTS - VRNIC_MAX_SLOTS;
}

/*
 * Take the next descriptor into the window, if the ring's owner has rung the doorbell for it. If
 * not, the owner is about to ring, and its own run then sends the request. (@rung may be out of
 * bounds, and then all slots count as announced: vrnic_sq_fetch() finds the error.)
 */
static bool req_admit(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;

	if (q->blocked || READ_ONCE(qp->state) != IB_QPS_RTS ||
	    q->rung == qp->sq.idx + q->ahead || !may_admit(qp))
		return false;
	q->has_loaded = false;
	if (!vrnic_sq_fetch(qp, q->ahead))
		return false;
	qp->op.active = false;
	w = vrnic_wop_at(&q->fly, q->fly.tail);
	memset(w, 0, sizeof(*w));
	check_op(qp, w);
	keep_slots(qp, w);
	q->loaded = q->fly.tail;
	q->has_loaded = true;
	if (w->status == IB_WC_SUCCESS && !is_local(w))
		req_plan(qp, w);
	vrnic_flight_add(&q->fly, w,
			 vrnic_op_desc(&qp->op)->flags & VRNIC_DESC_FENCE);
	if (w->status != IB_WC_SUCCESS)
		q->blocked = true;
	else if (is_local(w) && may_run_local(q, w))
		run_local(qp, w);
	return true;
}

/* Return: the operation of packet @q->fly.cur, or NULL if nothing in the window may be sent. */
static struct vrnic_wop *next_op(struct vrnic_req *q)
{
	struct vrnic_wop *w;

	for (; q->fly.send != q->fly.tail; q->fly.send++) {
		w = vrnic_wop_at(&q->fly, q->fly.send);
		if (w->status != IB_WC_SUCCESS || (is_local(w) && !w->chunk))
			return NULL;
		if (q->fly.cur < vrnic_wop_end(w))
			return w;
	}
	return NULL;
}

/* Send packets of the window, and take new operations in. Return: true if more can be sent now. */
static bool req_transmit(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	int n = 0;

	if (q->rnr_until)
		return false;
	while (n < VRNIC_BURST_OPS && budget->bytes) {
		w = next_op(q);
		if (!w) {
			if (!window_open(q) || q->fly.send != q->fly.tail || !req_admit(qp))
				return false;
			budget->taken++;
			continue;
		}
		vrnic_req_load(qp, q->fly.send);
		if (!vrnic_req_send_op(qp, w, budget))
			return false;
		n++;
	}
	return true;
}

static void count_done(struct vrnic_qp *qp, const struct vrnic_wop *w)
{
	switch (w->info->wc) {
	case IB_WC_RDMA_WRITE:
		vrnic_count_add(qp->dev, BYTES_WRITTEN, w->total);
		break;
	case IB_WC_RDMA_READ:
		vrnic_count_add(qp->dev, BYTES_READ, w->total);
		break;
	case IB_WC_COMP_SWAP:
	case IB_WC_FETCH_ADD:
		vrnic_count(qp->dev, ATOMICS);
		break;
	case IB_WC_SEND:
		vrnic_count_add(qp->dev, BYTES_SENT, w->total);
		break;
	}
}

/**
 * vrnic_req_retire() - complete the oldest operation, and take it out of the window
 * @qp: requester; its window is not empty
 * @status: enum ib_wc_status
 * @verr: enum vrnic_vendor_err
 */
void vrnic_req_retire(struct vrnic_qp *qp, u8 status, u8 verr)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = vrnic_wop_at(&q->fly, q->fly.head);

	vrnic_req_load(qp, q->fly.head);
	q->has_loaded = false;
	qp->op.status = status;
	qp->op.vendor_err = verr;
	if (q->fly.send == q->fly.head)
		q->fly.send++;
	q->fly.head++;
	q->slot_head += w->num_slots;
	q->ahead -= w->num_slots;
	/* all requests have arrived: the next may take another queue of the interface */
	if (vrnic_roce_idle(qp) && !qp->roce->queue.answers)
		qp->roce->queue.cpu = 0;
	vrnic_sq_complete(qp);
}

/* Return: true if an operation was completed. */
static bool retire_one(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = vrnic_wop_at(&q->fly, q->fly.head);

	if (q->fly.head == q->fly.tail)
		return false;
	if (w->status == IB_WC_SUCCESS && is_local(w) && !w->chunk) {
		vrnic_req_load(qp, q->fly.head);
		run_local(qp, w);
		if (!w->chunk) {
			vrnic_queue_at(&qp->run, qp->run.wait_until);
			return false;
		}
	}
	if (w->status != IB_WC_SUCCESS) {
		vrnic_count(qp->dev, LOCAL_ERRORS);
		qp->rare.local_errors++;
		vrnic_req_retire(qp, w->status, w->vendor_err);
		vrnic_sq_error(qp);
		return true;
	}
	if (q->fly.una < vrnic_wop_end(w))
		return false;
	count_done(qp, w);
	vrnic_req_retire(qp, IB_WC_SUCCESS, VRNIC_VERR_NONE);
	return true;
}

/**
 * vrnic_req_complete() - complete the oldest operations, if they are settled or have failed
 * @qp: requester
 * @budget: its descs bound this burst
 *
 * Return: true if an operation was completed.
 */
bool vrnic_req_complete(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy = false;

	while (budget->descs && READ_ONCE(qp->state) != IB_QPS_ERR &&
	       retire_one(qp)) {
		budget->descs--;
		busy = true;
	}
	return busy;
}

/**
 * vrnic_roce_begin() - begin a run
 * @qp: queue pair; its run bit is held
 * @budget: budget of the run, and whether the owner has rung the doorbell
 */
void vrnic_roce_begin(struct vrnic_qp *qp, const struct vrnic_budget *budget)
{
	/* the owner has rung for all that is in the send ring by now */
	if (budget->rung)
		to_req(qp)->rung = vrnic_sq_posted(qp);
	if (!budget->atomic)
		vrnic_window_grow_patiently(qp);
	qp->roce->due = budget->atomic ? skb_queue_len_lockless(&qp->rxq) : U32_MAX;
	qp->roce->resp.replied = false;
}

/**
 * vrnic_roce_expects() - will there be more to send when the peer answers, or asks?
 * @qp: queue pair. A peer that this responder sent data may ask for more, and no answer must
 *	overtake an earlier one
 *
 * Return: true if there will.
 */
bool vrnic_roce_expects(const struct vrnic_qp *qp)
{
	const struct vrnic_req *q = &qp->roce->req;

	return q->fly.send != q->fly.tail || qp->roce->resp.reply.active ||
	       qp->roce->resp.replied ||
	       (s32)(q->rung - (qp->sq.idx + q->ahead)) > 0;
}

/**
 * vrnic_roce_una() - PSN of the oldest request that the peer has not acknowledged
 * @qp: requester
 *
 * Context: any. Return: 0 if it is not connected.
 */
u32 vrnic_roce_una(const struct vrnic_qp *qp)
{
	/* pairs with the release in vrnic_roce_connect() */
	const struct vrnic_roce *roce = smp_load_acquire(&qp->roce);

	return roce ? READ_ONCE(roce->req.fly.una) : 0;
}

/* Number of slots of the send ring whose operations are in the window. */
u32 vrnic_roce_ahead(const struct vrnic_qp *qp)
{
	return qp->roce->req.ahead;
}

/* Has the requester nothing to do? Mostly so if the queue pair only responds. */
static bool is_quiet(struct vrnic_qp *qp)
{
	const struct vrnic_req *q = to_req(qp);

	return q->fly.head == q->fly.tail && q->rung == qp->sq.idx;
}

/**
 * vrnic_roce_send() - go on with the requests of an RC queue pair
 * @qp: requester; in RTS, or in SQD, in which it begins no new operation
 * @budget: bounds this burst
 *
 * Return: true if there may be more to do at once.
 */
bool vrnic_roce_send(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy;

	/* runs of a native link post messages themselves, without a doorbell */
	if (qp->link)
		to_req(qp)->rung = vrnic_sq_posted(qp);
	if (is_quiet(qp))
		return false;
	/*
	 * Hold softirqs off, so that answers of a peer on this machine are handled together, after
	 * this, and not deep in the stack, inside a call that sends a packet.
	 */
	local_bh_disable();
	vrnic_req_clock(qp);
	vrnic_req_gap(qp);
	vrnic_req_complete(qp, budget);
	busy = false;
	if (READ_ONCE(qp->state) != IB_QPS_ERR) {
		busy = req_transmit(qp, budget);
		/* local operations, and those that failed in req_transmit(), are complete by now */
		busy |= vrnic_req_complete(qp, budget);
		vrnic_req_set_timer(qp);
	}
	vrnic_roce_push(qp);
	local_bh_enable();
	return busy || !budget->descs;
}
