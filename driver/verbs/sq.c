// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The run of a send ring: fetch a descriptor, execute it, complete it.
 *
 * One runner at a time does all this (VRNIC_RUN_BUSY). It executes descriptors strictly in order,
 * and each operation is complete before the next one starts. So an operation with the fence flag
 * has nothing to wait for, and a slot is free for reuse as soon as its descriptor is complete. The
 * exception is RC over the wire, which has a window of operations: roce/req.c.
 */

#include <linux/ktime.h>

#include "base/trace.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "queue/hold.h"
#include "queue/link_ops.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/recv.h"
#include "queue/ring.h"
#include "queue/sq_ring.h"
#include "raw/raw.h"
#include "roce/rate.h"
#include "verbs/flow.h"
#include "verbs/verbs.h"
#include "vrnic.h"

static void sq_fail_op(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, LOCAL_ERRORS);
	qp->rare.local_errors++;
	vrnic_sq_complete(qp);
	vrnic_sq_error(qp);
}

static enum vrnic_step sq_execute(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_op *op = &qp->op;
	int verr;

	if (op->status != IB_WC_SUCCESS)
		return VRNIC_STEP_FAIL;
	if (!op->info) {
		verr = vrnic_op_check(qp, op);
		if (unlikely(verr))
			return vrnic_op_fail(op, verr == VRNIC_VERR_LENGTH ?
					     IB_WC_LOC_LEN_ERR :
					     IB_WC_LOC_QP_OP_ERR, verr);
	}
	/* by far the most frequent case first */
	if (likely(qp->type == IB_QPT_RC && !qp->roce && !op->info->execute))
		return vrnic_loop_execute(qp, op, budget);
	if (op->info->execute) {
		/* LOCAL_INV and REG_MR wait until no run uses the region, not even this one */
		vrnic_hold_release(qp);
		return op->info->execute(qp, op);
	}
	if (qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI)
		return vrnic_loop_execute_ud(qp, op, budget);
	if (qp->type == IB_QPT_RAW_PACKET)
		return vrnic_raw_execute(qp, op, budget);
	if (qp->roce)
		return vrnic_roce_execute_uc(qp, op, budget);
	return vrnic_loop_execute(qp, op, budget);
}

/* As sq_execute(), at the allowed rate. Over a connection, roce/tx.c charges packets. */
static noinline enum vrnic_step sq_execute_paced(struct vrnic_qp *qp,
						 struct vrnic_budget *budget)
{
	enum vrnic_step step;
	u64 room, used, kept;

	room = vrnic_rate_room(qp, &qp->run.wait_until);
	if (!room)
		return VRNIC_STEP_WAIT;
	used = min(budget->bytes, room);
	kept = budget->bytes - used;
	budget->bytes = used;
	step = sq_execute(qp, budget);
	used -= budget->bytes;
	budget->bytes += kept;
	if (!qp->roce)
		vrnic_rate_sent(qp, used);
	return step;
}

/* Execute the current or next operation, or a part. Return: true if there may be more to do now. */
static bool sq_step(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	enum vrnic_step step;

	/* spares the call */
	if (unlikely(qp->run.wait_until) && vrnic_must_wait(&qp->run))
		return false;
	if (!qp->op.active) {
		if (!vrnic_sq_fetch(qp, 0))
			return false;
		budget->taken++;
	}
	step = likely(!vrnic_rate_limits(qp)) ? sq_execute(qp, budget) :
						sq_execute_paced(qp, budget);
	trace_vrnic_execute(qp, &qp->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
	case VRNIC_STEP_DROP:
		vrnic_sq_complete(qp);
		vrnic_budget_spend(budget, 1);
		return true;
	case VRNIC_STEP_FAIL:
		sq_fail_op(qp);
		return true;
	case VRNIC_STEP_MORE:
		budget->bytes = 0;
		return true;
	case VRNIC_STEP_WAIT:
		/* sets the timer, unless the time to wait for has passed during the step */
		return !vrnic_must_wait(&qp->run);
	}
	return false;
}

static void flush_op(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, FLUSHED);
	qp->rare.flushed++;
	vrnic_op_fail(&qp->op, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_NONE);
	vrnic_sq_complete(qp);
}

/* Complete the next send request with WR_FLUSH_ERR, in order. Return: true if there was one. */
static bool flush_sq(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	qp->run.wait_until = 0;
	if (!vrnic_roce_flush(qp)) {
		if (!qp->op.active && !vrnic_sq_fetch(qp, 0))
			return false;
		flush_op(qp);
	}
	vrnic_budget_spend(budget, 1);
	return true;
}

/* Does roce/req.c run the ring, with many operations in progress? Only for RC over the wire. */
static bool has_window(const struct vrnic_qp *qp)
{
	return qp->roce && qp->type == IB_QPT_RC;
}

/* SQD: finish the operations that were begun, then report that the ring is drained. */
static bool drain_sq(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	if (has_window(qp)) {
		if (vrnic_roce_send(qp, budget))
			return true;
		if (!vrnic_roce_idle(qp))
			return false;
	} else if (qp->op.active) {
		return sq_step(qp, budget);
	}
	vrnic_sq_drained(qp);
	return false;
}

/* Handle packets. The caller does so before it sends, as answers make room for requests. */
static bool sq_receive(struct vrnic_qp *qp, enum ib_qp_state state,
		       struct vrnic_budget *budget)
{
	if (state < IB_QPS_RTR || state > IB_QPS_SQE)
		return false;
	if (!qp->roce && skb_queue_empty_lockless(&qp->rxq))
		return false;
	if (qp->type == IB_QPT_RAW_PACKET)
		return vrnic_raw_receive(qp, budget);
	return vrnic_roce_receive(qp, budget);
}

static bool sq_run_step(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (state != IB_QPS_RTS)
		vrnic_hold_release(qp);
	if (sq_receive(qp, state, budget))
		return true;
	if (state == IB_QPS_ERR && budget->atomic) {
		/* report MORE, so that a thread flushes: vrnic_recv_flush() takes a mutex */
		budget->descs = 0;
		return true;
	}
	switch (state) {
	case IB_QPS_RTS:
		return has_window(qp) ? vrnic_roce_send(qp, budget) :
					sq_step(qp, budget);
	case IB_QPS_SQD:
		return drain_sq(qp, budget);
	case IB_QPS_SQE:
		return flush_sq(qp, budget);
	case IB_QPS_ERR:
		if (qp->link)
			qp->link_ops->broken(qp->link);
		if (flush_sq(qp, budget))
			return true;
		if (!qp->link)
			return vrnic_recv_flush(qp, budget);
		qp->link_ops->flushed(qp->link);
		return false;
	default:
		return false;
	}
}

/* Was the budget just enough? Then the verdict is not MORE, and no thread is woken for nothing. */
static bool nothing_left(struct vrnic_qp *qp)
{
	return !qp->roce && !qp->link && READ_ONCE(qp->state) == IB_QPS_RTS &&
	       skb_queue_empty_lockless(&qp->rxq) &&
	       !qp->op.active && !vrnic_ring_avail(&qp->sq);
}

static bool sq_expects(const struct vrnic_qp *qp)
{
	return has_window(qp) && READ_ONCE(qp->state) == IB_QPS_RTS &&
	       vrnic_roce_expects(qp);
}

static enum vrnic_verdict sq_run(struct vrnic_runnable *r,
				 struct vrnic_budget *budget)
{
	struct vrnic_qp *qp = container_of(r, struct vrnic_qp, run);
	enum vrnic_verdict verdict = VRNIC_MORE;
	u64 before;

	if (has_window(qp))
		vrnic_roce_begin(qp, budget);
	while (vrnic_budget_left(budget)) {
		before = vrnic_budget_sum(budget);
		if (!sq_run_step(qp, budget)) {
			verdict = sq_expects(qp) ? VRNIC_EXPECTS : VRNIC_IDLE;
			break;
		}
		vrnic_budget_step(budget, before);
		if (vrnic_is_waited(r)) {
			verdict = VRNIC_IDLE;
			break;
		}
	}
	vrnic_hold_release(qp);
	if (qp->link)
		qp->link_ops->ran(qp->link);
	else
		budget->stream = vrnic_ring_streams(&qp->sq);
	if (has_window(qp) && vrnic_is_gathering(r))
		vrnic_ring_gather_behind(&qp->sq, vrnic_roce_ahead(qp));
	if (budget->atomic && has_window(qp)) {
		vrnic_roce_parcel(qp, &budget->parcel);
		budget->left = vrnic_roce_left(qp);
	}
	return nothing_left(qp) ? VRNIC_IDLE : verdict;
}

static void sq_spare(struct vrnic_runnable *r)
{
	vrnic_ring_spare_doorbell(&container_of(r, struct vrnic_qp, run)->sq);
}

static void sq_ask(struct vrnic_runnable *r)
{
	vrnic_ring_ask_doorbell(&container_of(r, struct vrnic_qp, run)->sq);
}

static bool sq_gather(struct vrnic_runnable *r, bool on)
{
	return vrnic_ring_gather(&container_of(r, struct vrnic_qp, run)->sq, on);
}

/*
 * May the ring be run with softirqs held off? RC and UC over the wire do not sleep. What a native
 * link has to sleep for, it leaves to a thread. All other flows take a mutex, resp_lock.
 */
static bool sq_atomic(struct vrnic_runnable *r)
{
	const struct vrnic_qp *qp = container_of(r, struct vrnic_qp, run);

	return READ_ONCE(qp->roce);
}

static void sq_deliver(struct vrnic_runnable *r, struct vrnic_parcel *parcel)
{
	vrnic_roce_deliver(container_of(r, struct vrnic_qp, run), parcel);
}

/* How the engine runs a queue pair. */
const struct vrnic_runnable_ops vrnic_sq_ops = {
	.run = sq_run,
	.spare = sq_spare,
	.ask = sq_ask,
	.gather = sq_gather,
	.atomic = sq_atomic,
	.deliver = sq_deliver,
};

/* The same of a native link: nobody maps its ring. */
const struct vrnic_runnable_ops vrnic_link_sq_ops = {
	.run = sq_run,
	.atomic = sq_atomic,
	.deliver = sq_deliver,
};
