// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * State changes that modify_qp() does not make: after errors, and at the end of draining (IBTA
 * 10.3.1). These functions and modify_qp() write the state under state_lock.
 */

#include "base/trace.h"
#include "engine/engine.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/ring.h"

/**
 * vrnic_qp_event() - raise an event for the consumer
 * @qp: queue pair
 * @event: IB_EVENT_*
 *
 * Context: any, but with no spinlock held: the consumer's handler may take locks.
 */
void vrnic_qp_event(struct vrnic_qp *qp, enum ib_event_type event)
{
	struct ib_event e = {
		.device = qp->ibqp->device,
		.event = event,
		.element.qp = qp->ibqp,
	};

	if (qp->ibqp->event_handler)
		qp->ibqp->event_handler(&e, qp->ibqp->qp_context);
}

/* @qp is in ERR: ask for a doorbell after every post, so that the request is flushed. */
void vrnic_rings_fail(struct vrnic_qp *qp)
{
	/* a native link rings anyway, and has no rings to ask for it */
	if (qp->link)
		return;
	if (vrnic_qp_has_rq(qp))
		vrnic_ring_ask_doorbell(&qp->rq.ring);
	vrnic_ring_ask_doorbell(&qp->sq);
}

static bool enter_error(struct vrnic_qp *qp)
{
	unsigned long flags;
	bool entered = false;

	spin_lock_irqsave(&qp->state_lock, flags);
	switch (qp->state) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		WRITE_ONCE(qp->state, IB_QPS_ERR);
		WRITE_ONCE(qp->sq_draining, false);
		entered = true;
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
	return entered;
}

/**
 * vrnic_qp_error() - move a queue pair to ERR after an error
 * @qp: queue pair
 * @event: event for the consumer, or -1 if a completion tells the consumer of the error
 *
 * A thread will flush the rings of @qp. Does nothing if @qp is in RESET, INIT or ERR.
 * Context: as vrnic_qp_event().
 */
void vrnic_qp_error(struct vrnic_qp *qp, enum ib_event_type event)
{
	if (!enter_error(qp))
		return;
	trace_vrnic_qp_error(qp, event);
	vrnic_rings_fail(qp);
	vrnic_queue(&qp->run);
	if ((int)event >= 0)
		vrnic_qp_event(qp, event);
}

/* A send request failed: an RC queue pair goes to ERR; UC, UD and GSI queue pairs go to SQE. */
void vrnic_sq_error(struct vrnic_qp *qp)
{
	unsigned long flags;

	if (qp->type == IB_QPT_RC) {
		vrnic_qp_error(qp, -1);
		return;
	}
	spin_lock_irqsave(&qp->state_lock, flags);
	if (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD) {
		WRITE_ONCE(qp->state, IB_QPS_SQE);
		WRITE_ONCE(qp->sq_draining, false);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
	vrnic_ring_ask_doorbell(&qp->sq);
}

/* The runner found no operation in progress in SQD: draining is over, so raise the event once. */
void vrnic_sq_drained(struct vrnic_qp *qp)
{
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&qp->state_lock, flags);
	tell = qp->sq_draining;
	WRITE_ONCE(qp->sq_draining, false);
	spin_unlock_irqrestore(&qp->state_lock, flags);
	if (tell && qp->attr.en_sqd_async_notify)
		vrnic_qp_event(qp, IB_EVENT_SQ_DRAINED);
}
