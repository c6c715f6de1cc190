// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Running a send ring: fetch a descriptor, have it executed, complete it.
 *
 * Everything here is done by one runner at a time (VRNIC_RUN_BUSY). A send ring
 * is executed strictly in order and each operation is complete before the next
 * one starts; so the fence flag holds by itself, and a slot is free for reuse
 * as soon as its descriptor is complete.
 */

#include <linux/ktime.h>

#include "flow.h"
#include "opcode.h"
#include "trace.h"
#include "vrnic.h"

/* The producer index is wild: nothing in the ring can be believed any more. */
static void ring_broken(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, RING_ERRORS);
	qp->sq.idx = READ_ONCE(qp->sq.hdr->prod);
	vrnic_ring_consume(&qp->sq, 0);
	vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
}

static void copy_slots(struct vrnic_qp *qp, u32 first, u32 n)
{
	u32 i;

	for (i = first; i < n; i++)
		memcpy(qp->op.slots + i * VRNIC_SLOT_SIZE,
		       vrnic_ring_slot(&qp->sq, qp->sq.idx + i),
		       VRNIC_SLOT_SIZE);
}

/*
 * Take a private copy of the next descriptor. What it says about itself is
 * looked at only in the copy.
 *
 * Return: false if there is none.
 */
static bool fetch(struct vrnic_qp *qp)
{
	struct vrnic_op *op = &qp->op;
	struct vrnic_desc *d = vrnic_op_desc(op);
	u32 avail = vrnic_ring_avail(&qp->sq);

	if (!avail)
		return false;
	if (avail > qp->sq.entries) {
		ring_broken(qp);
		return false;
	}
	copy_slots(qp, 0, 1);
	op->active = true;
	op->done = 0;
	op->total = 0;
	op->status = IB_WC_SUCCESS;
	op->vendor_err = VRNIC_VERR_NONE;
	op->rnr_left = qp->attr.rnr_retry;
	op->retry_left = qp->attr.retry_cnt;
	op->info = NULL;
	if (!d->num_slots || d->num_slots > min_t(u32, avail, VRNIC_MAX_SLOTS)) {
		d->num_slots = 1;
		vrnic_op_fail(op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_SLOTS);
		return true;
	}
	copy_slots(qp, 1, d->num_slots);
	vrnic_count(qp->dev, DESCRIPTORS);
	trace_vrnic_fetch(qp, d);
	return true;
}

/*
 * Report what became of the descriptor. Its slots are free before: whoever sees
 * the completion may post again at once.
 */
static void complete_op(struct vrnic_qp *qp)
{
	struct vrnic_op *op = &qp->op;
	const struct vrnic_desc *d = vrnic_op_desc(op);
	struct vrnic_cqe cqe = {
		.cookie = d->cookie,
		.qpn = qp->qpn,
		.status = op->status,
		.vendor_err = op->vendor_err,
	};

	if (op->info) {
		cqe.opcode = op->info->wc;
		if (op->info->data == VRNIC_DATA_IN)
			cqe.byte_len = op->total;
	}
	op->active = false;
	vrnic_ring_consume(&qp->sq, d->num_slots);
	if (op->status == IB_WC_SUCCESS && !qp->sig_all &&
	    !(d->flags & VRNIC_DESC_SIGNALED))
		return;
	if (vrnic_cq_post(vrnic_send_cq(qp), &cqe, false))
		vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
}

static void fail_op(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, LOCAL_ERRORS);
	complete_op(qp);
	vrnic_sq_error(qp);
}

static enum vrnic_step execute(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_op *op = &qp->op;
	int verr;

	if (op->status != IB_WC_SUCCESS)
		return VRNIC_STEP_FAIL;
	if (!op->info) {
		verr = vrnic_op_check(qp, op);
		if (verr)
			return vrnic_op_fail(op, verr == VRNIC_VERR_LENGTH ?
					     IB_WC_LOC_LEN_ERR :
					     IB_WC_LOC_QP_OP_ERR, verr);
	}
	if (op->info->execute) {
		/* it may wait for the last user of a region: not for us */
		vrnic_loop_release(qp);
		return op->info->execute(qp, op);
	}
	if (qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI)
		return vrnic_loop_execute_ud(qp, op, budget);
	return vrnic_loop_execute(qp, op, budget);
}

/* Its time has not come; the timer may have been cancelled since it was set. */
static bool must_wait(struct vrnic_qp *qp)
{
	u64 now;

	if (!qp->wait_until)
		return false;
	now = ktime_get_ns();
	if (now < qp->wait_until) {
		vrnic_queue_after(&qp->run, qp->wait_until - now);
		return true;
	}
	qp->wait_until = 0;
	return false;
}

/* Return: true if there may be more to do at once. */
static bool step(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (must_wait(qp))
		return false;
	if (!qp->op.active && !fetch(qp))
		return false;
	step = execute(qp, budget);
	trace_vrnic_execute(qp, &qp->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
		complete_op(qp);
		budget->descs--;
		return true;
	case VRNIC_STEP_FAIL:
		fail_op(qp);
		return true;
	case VRNIC_STEP_MORE:
		budget->descs = 0;
		return true;
	case VRNIC_STEP_WAIT:
		/* on a slow machine its time may have come by now */
		return !must_wait(qp);
	}
	return false;
}

static void flush_op(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, FLUSHED);
	vrnic_op_fail(&qp->op, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_NONE);
	complete_op(qp);
}

/* Send requests end in WR_FLUSH_ERR, in order. */
static bool flush_sq(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	qp->wait_until = 0;
	if (!qp->op.active && !fetch(qp))
		return false;
	flush_op(qp);
	budget->descs--;
	return true;
}

static bool run_step(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (state != IB_QPS_RTS)
		vrnic_loop_release(qp);
	switch (state) {
	case IB_QPS_RTS:
		return step(qp, budget);
	case IB_QPS_SQD:
		if (qp->op.active)
			return step(qp, budget);
		vrnic_sq_drained(qp);
		return false;
	case IB_QPS_SQE:
		return flush_sq(qp, budget);
	case IB_QPS_ERR:
		if (flush_sq(qp, budget))
			return true;
		budget->descs--;
		return vrnic_recv_flush(qp);
	default:
		return false;
	}
}

static enum vrnic_verdict sq_run(struct vrnic_runnable *r,
				 struct vrnic_budget *budget)
{
	struct vrnic_qp *qp = container_of(r, struct vrnic_qp, run);

	enum vrnic_verdict verdict = VRNIC_MORE;

	while (budget->descs && budget->bytes) {
		if (!run_step(qp, budget)) {
			verdict = VRNIC_IDLE;
			break;
		}
	}
	vrnic_loop_release(qp);
	return verdict;
}

static void sq_stay(struct vrnic_runnable *r)
{
	vrnic_ring_spare_doorbell(&container_of(r, struct vrnic_qp, run)->sq);
}

static void sq_leave(struct vrnic_runnable *r)
{
	vrnic_ring_ask_doorbell(&container_of(r, struct vrnic_qp, run)->sq);
}

/* A queue pair, as the engine runs it. */
const struct vrnic_runnable_ops vrnic_sq_ops = {
	.run = sq_run,
	.stay = sq_stay,
	.leave = sq_leave,
};
