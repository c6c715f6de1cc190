// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The receives of a queue pair that is the target of messages. On one host, the runner of the
 * sender's ring executes this code, with the target's resp_lock held. For packets from the wire,
 * the runner of the target's own ring does; it holds the lock for datagrams only.
 */

#include "base/fault.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/recv.h"
#include "queue/ring.h"
#include "queue/rq.h"
#include "queue/srq.h"
#include "queue/target.h"
#include "queue/xrc.h"
#include "vrnic.h"

/* RNR timer codes, in units of 10 us; IBTA table 45. */
static const u32 rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

/* Return: how many ns a requester has to wait by the RNR timer code @code. */
u32 vrnic_rnr_ns(u8 code)
{
	return rnr_10us[code % ARRAY_SIZE(rnr_10us)] * 10000U;
}

/* With a connection over the wire, only the runner of @qp uses it as a target: no lock needed. */
static void assert_target(struct vrnic_qp *qp)
{
	lockdep_assert(qp->roce || lockdep_is_held(&qp->resp_lock));
}

static int recv_take(struct vrnic_qp *qp)
{
	unsigned long flags;
	int ret;

	if (qp->srq)
		return vrnic_srq_take(qp->srq, &qp->recv);
	spin_lock_irqsave(&qp->rq.lock, flags);
	ret = vrnic_rq_take(&qp->rq, &qp->recv);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	return ret;
}

static void recv_fail(struct vrnic_qp *qp, u8 status, u32 vendor_err)
{
	struct vrnic_cqe cqe = { .status = status, .vendor_err = vendor_err };

	vrnic_recv_complete(qp, &cqe, true);
}

/**
 * vrnic_recv_take() - make sure that @qp->recv has a receive for the next message
 * @qp: target
 *
 * Return: 0; -EAGAIN: no receive is posted; -EIO: the receive or the producer index is invalid, and
 * the target is in error now.
 */
int vrnic_recv_take(struct vrnic_qp *qp)
{
	int ret;

	assert_target(qp);
	if (qp->recv.active)
		return 0;
	if (qp->type == IB_QPT_RC && vrnic_fault(qp, VRNIC_FAULT_RNR))
		return -EAGAIN;
	ret = recv_take(qp);
	if (!ret || ret == -EAGAIN)
		return ret;
	if (ret == -EINVAL)
		recv_fail(qp, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_SLOTS);
	else
		vrnic_count(qp->dev, RING_ERRORS);
	vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
	return -EIO;
}

/**
 * vrnic_recv_complete() - report the result of @qp->recv
 * @qp: target
 * @cqe: result; cookie and queue pair number are filled in here
 * @solicited: the sender asked for a solicited event
 */
void vrnic_recv_complete(struct vrnic_qp *qp, struct vrnic_cqe *cqe,
			 bool solicited)
{
	assert_target(qp);
	qp->recv.active = false;
	cqe->cookie = qp->recv.cookie;
	cqe->qpn = qp->qpn;
	vrnic_qp_count(qp, VRNIC_COMP_RECV, cqe->byte_len, cqe->status);
	if (vrnic_cq_post(qp->recv_cq, cqe, solicited))
		vrnic_qp_error(qp, IB_EVENT_QP_FATAL);
}

static void flush_one(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, FLUSHED);
	qp->rare.flushed++;
	recv_fail(qp, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_NONE);
}

/* Flush the receive that has a part of a message. If it is from an SRQ that is gone, drop it. */
static void flush_active(struct vrnic_qp *qp)
{
	if (qp->xrc && !vrnic_xrc_regain(qp, &qp->hold))
		qp->recv.active = false;
	else
		flush_one(qp);
	/* before another runner locks this target */
	vrnic_xrc_unbind(qp, &qp->hold);
}

/**
 * vrnic_recv_flush() - flush the receives of a queue pair in ERR
 * @qp: queue pair
 * @budget: each flushed receive costs a unit
 *
 * The receives end in WR_FLUSH_ERR, first the one that has a part of a message. Receives in an SRQ
 * stay there for other queue pairs.
 *
 * Return: true if there are more. If a peer's runner holds @qp's resp_lock, this returns false, and
 * a timer runs @qp again.
 */
bool vrnic_recv_flush(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool last = false, ring = vrnic_qp_has_rq(qp);

	if (!vrnic_target_trylock(qp)) {
		vrnic_queue_after(&qp->run, VRNIC_TARGET_BUSY_NS);
		return false;
	}
	if (qp->recv.active)
		flush_active(qp);
	if (ring) {
		while (budget->descs && recv_take(qp) != -EAGAIN && qp->recv.active) {
			flush_one(qp);
			vrnic_budget_spend(budget, 1);
		}
	} else if (!qp->last_wqe && qp->xrc != VRNIC_XRC_INI) {
		qp->last_wqe = true;
		last = true;
	}
	vrnic_target_unlock(qp);
	if (last)
		vrnic_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	return ring && vrnic_ring_avail(&qp->rq.ring);
}
