// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How a runner fetches the next descriptor of a send ring, and completes the oldest one. */

#include "base/fault.h"
#include "base/trace.h"
#include "queue/cq.h"
#include "queue/link_ops.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/ring.h"
#include "queue/sq_ring.h"
#include "vrnic.h"

/* The producer index is invalid, so no entry is trusted: make the ring empty, and fail @qp. */
static void sq_ring_broken(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, RING_ERRORS);
	WRITE_ONCE(qp->sq.idx, READ_ONCE(qp->sq.hdr->prod));
	vrnic_ring_consume(&qp->sq, 0);
	vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
}

/* Copy slot @i of the descriptor that is @ahead slots behind the oldest one. */
static __always_inline void copy_slot(struct vrnic_qp *qp, u32 ahead, u32 i)
{
	u32 at = (qp->sq.idx + ahead + i) & (qp->sq.entries - 1);

	memcpy(qp->op.slots + i * VRNIC_SLOT_SIZE, qp->sq.slots + (size_t)at * VRNIC_SLOT_SIZE,
	       VRNIC_SLOT_SIZE);
}

static void copy_first(struct vrnic_qp *qp, u32 ahead)
{
	/* a message of a link, which has one slot */
	if (unlikely(qp->link))
		qp->link_ops->describe(qp->link_ops->fetch(qp->link), vrnic_op_desc(&qp->op));
	else
		copy_slot(qp, ahead, 0);
}

static noinline void copy_others(struct vrnic_qp *qp, u32 ahead, u32 n)
{
	u32 i;

	if (qp->link)
		return;
	for (i = 1; i < n; i++)
		copy_slot(qp, ahead, i);
}

/* Does fault injection want this request to fail? It spares GSI queue pairs and native links. */
static bool must_fail(struct vrnic_qp *qp)
{
	return qp->type != IB_QPT_GSI && !qp->link &&
	       vrnic_fault(qp, VRNIC_FAULT_COMPLETION);
}

/*
 * Take the number of the SRQ out of the descriptor of an XRC initiator: only here, others read
 * op->srqn. Return: 0 or enum vrnic_vendor_err.
 */
static int take_srqn(struct vrnic_qp *qp, struct vrnic_op *op)
{
	struct vrnic_desc *d = vrnic_op_desc(op);

	if (qp->xrc != VRNIC_XRC_INI || !(d->num_slots & VRNIC_XRC_DESC))
		return VRNIC_VERR_SLOTS;
	op->srqn = VRNIC_XRC_SRQN(d->num_slots, d->num_sge);
	d->num_slots &= VRNIC_XRC_SLOTS;
	d->num_sge &= VRNIC_XRC_LEN;
	return 0;
}

/*
 * Check how many slots the descriptor claims, of which @avail are there. The number is larger than
 * any if it has that of an SRQ in its upper bits. Return: 0 or enum vrnic_vendor_err.
 */
static int check_slots(struct vrnic_qp *qp, struct vrnic_op *op, u32 avail)
{
	struct vrnic_desc *d = vrnic_op_desc(op);
	u32 most = min_t(u32, avail, VRNIC_MAX_SLOTS);
	int verr;

	if (likely(d->num_slots && d->num_slots <= most))
		return 0;
	verr = take_srqn(qp, op);
	if (verr)
		return verr;
	return d->num_slots && d->num_slots <= most ? 0 : VRNIC_VERR_SLOTS;
}

/**
 * vrnic_sq_fetch() - take a private copy of the next descriptor
 * @qp: queue pair; the copy goes to @qp->op
 * @ahead: slots of descriptors that were fetched before and are not complete yet
 *
 * Code after this reads only the copy, because the process may change the ring at any time.
 *
 * Return: false if there is no descriptor. A descriptor that claims a wrong number of slots is
 * fetched as a failed one of one slot.
 */
bool vrnic_sq_fetch(struct vrnic_qp *qp, u32 ahead)
{
	struct vrnic_op *op = &qp->op;
	struct vrnic_desc *d = vrnic_op_desc(op);
	u32 avail = vrnic_sq_posted(qp) - qp->sq.idx;
	int verr;

	if (avail > qp->sq.entries) {
		sq_ring_broken(qp);
		return false;
	}
	/* avail < ahead: the process moved prod back behind slots that were fetched; do not wrap */
	if (avail <= ahead)
		return false;
	avail -= ahead;
	copy_first(qp, ahead);
	op->active = true;
	op->moved = false;
	op->status = IB_WC_SUCCESS;
	op->vendor_err = VRNIC_VERR_NONE;
	op->srqn = 0;
	op->info = NULL;
	op->total = 0;
	op->done = 0;
	op->member = 0;
	op->tries = 0;
	op->rnr_left = qp->attr.rnr_retry;
	op->retry_left = qp->attr.retry_cnt;
	verr = check_slots(qp, op, avail);
	if (verr) {
		d->num_slots = 1;
		vrnic_op_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
		return true;
	}
	if (d->num_slots > 1)
		copy_others(qp, ahead, d->num_slots);
	if (must_fail(qp))
		vrnic_op_fail(op, vrnic_fault_own(qp, VRNIC_FAULT_COMPLETION),
			      VRNIC_VERR_INJECTED);
	vrnic_count(qp->dev, DESCRIPTORS);
	qp->descriptors++;
	trace_vrnic_fetch(qp, d);
	return true;
}

/* Not inline: most requests of a stream have none. */
static noinline void post_cqe(struct vrnic_qp *qp)
{
	const struct vrnic_op *op = &qp->op;
	struct vrnic_cqe cqe = {
		.cookie = vrnic_op_desc(&qp->op)->cookie,
		.qpn = qp->qpn,
		.status = op->status,
		.vendor_err = op->vendor_err,
		.flags = VRNIC_CQE_SEND,
		.sq_done = qp->sq_done,
	};

	if (op->info) {
		cqe.opcode = op->info->wc;
		if (op->info->data == VRNIC_DATA_IN)
			cqe.byte_len = op->total;
	}
	if (vrnic_cq_post(to_vcq(qp->ibqp->send_cq), &cqe, false))
		vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
}

/* As vrnic_qp_count(), for a send request. */
static void count_send(struct vrnic_qp *qp)
{
	if (unlikely(qp->comp))
		vrnic_comp_add_send(qp->comp, vrnic_op_desc(&qp->op)->opcode, qp->op.total,
				    qp->op.status);
}

/**
 * vrnic_sq_complete() - report the result of the oldest descriptor
 * @qp: queue pair; the descriptor is in @qp->op
 *
 * The slots are freed first, as a process that sees the completion may post again at once, and must
 * find room.
 */
void vrnic_sq_complete(struct vrnic_qp *qp)
{
	struct vrnic_op *op = &qp->op;
	const struct vrnic_desc *d = vrnic_op_desc(op);

	qp->sq_done++;
	op->active = false;
	/* a wait of this operation must not count for the next one */
	qp->send_wait.odp = NULL;
	qp->peer_wait.odp = NULL;
	if (qp->link) {
		qp->sq.idx++;
		qp->link_ops->sent(qp->link, d->cookie, op->status);
		return;
	}
	vrnic_ring_consume(&qp->sq, d->num_slots);
	count_send(qp);
	if (op->status == IB_WC_SUCCESS && !qp->sig_all &&
	    !(d->flags & VRNIC_DESC_SIGNALED))
		return;
	post_cqe(qp);
}
