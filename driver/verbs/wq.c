// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work queues, over which RSS queue pairs spread frames. A work queue is a raw packet queue pair
 * without sends, which the core does not know as one, and has its states.
 */

#include <linux/err.h>
#include <linux/slab.h>

#include "queue/qp.h"
#include "raw/rss.h"
#include "verbs/verbs.h"

/* The queue pair has failed, which for the consumer is a work queue. */
static void wq_event(struct ib_event *event, void *context)
{
	struct vrnic_wq *wq = context;
	struct ib_event e = {
		.device = event->device,
		.event = IB_EVENT_WQ_FATAL,
		.element.wq = &wq->ibwq,
	};

	if (wq->ibwq.event_handler)
		wq->ibwq.event_handler(&e, wq->ibwq.wq_context);
}

static void wq_init(struct vrnic_wq *wq, struct ib_pd *pd, const struct ib_wq_init_attr *attr)
{
	wq->ibwq.event_handler = attr->event_handler;
	wq->ibwq.wq_context = attr->wq_context;
	wq->ibwq.state = IB_WQS_RESET;
	wq->shell.ibqp.device = pd->device;
	wq->shell.ibqp.pd = pd;
	wq->shell.ibqp.recv_cq = attr->cq;
	wq->shell.ibqp.event_handler = wq_event;
	wq->shell.ibqp.qp_context = wq;
	wq->shell.ibqp.qp_type = IB_QPT_RAW_PACKET;
}

struct ib_wq *vrnic_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
			      struct ib_udata *udata)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RAW_PACKET,
		.recv_cq = attr->cq,
		.cap.max_recv_wr = attr->max_wr,
		.cap.max_recv_sge = attr->max_sge,
	};
	struct vrnic_wq *wq;
	int err;

	if (attr->wq_type != IB_WQT_RQ || attr->create_flags)
		return ERR_PTR(-EOPNOTSUPP);
	/* the core lets a program name none, and takes what its look-up says for the queue */
	if (IS_ERR_OR_NULL(attr->cq))
		return ERR_PTR(-EINVAL);
	wq = kzalloc(sizeof(*wq), GFP_KERNEL_ACCOUNT);
	if (!wq)
		return ERR_PTR(-ENOMEM);
	wq_init(wq, pd, attr);
	err = vrnic_create_qp(&wq->shell.ibqp, &init, udata);
	if (err) {
		kfree(wq);
		return ERR_PTR(err);
	}
	wq->ibwq.wq_num = wq->shell.ibqp.qp_num;
	attr->max_wr = init.cap.max_recv_wr;
	return &wq->ibwq;
}

static enum ib_wq_state wq_state(struct vrnic_wq *wq)
{
	switch (READ_ONCE(wq->shell.qp->state)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
		return IB_WQS_RESET;
	case IB_QPS_ERR:
		return IB_WQS_ERR;
	default:
		return IB_WQS_RDY;
	}
}

static int wq_move(struct vrnic_wq *wq, enum ib_qp_state next)
{
	struct ib_qp_attr attr = { .qp_state = next, .port_num = 1 };
	int mask = IB_QP_STATE;

	if (next == IB_QPS_INIT)
		mask |= IB_QP_PORT;
	return vrnic_modify_qp(&wq->shell.ibqp, &attr, mask, NULL);
}

static int wq_change(struct vrnic_wq *wq, enum ib_wq_state cur, enum ib_wq_state next)
{
	switch (next) {
	case IB_WQS_RESET:
		return wq_move(wq, IB_QPS_RESET);
	case IB_WQS_ERR:
		return wq_move(wq, IB_QPS_ERR);
	case IB_WQS_RDY:
		if (cur == IB_WQS_RDY)
			return 0;
		/* it is in INIT if another call is at the same place */
		return wq_move(wq, IB_QPS_INIT) ?: wq_move(wq, IB_QPS_RTR);
	default:
		return -EINVAL;
	}
}

/* From ERR the way to RDY leads over RESET. */
int vrnic_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata)
{
	struct vrnic_wq *wq = to_vwq(ibwq);
	enum ib_wq_state cur = wq_state(wq);
	int err;

	if (mask & IB_WQ_FLAGS)
		return -EOPNOTSUPP;
	if (mask & IB_WQ_CUR_STATE && attr->curr_wq_state != cur)
		return -EINVAL;
	if (!(mask & IB_WQ_STATE))
		return 0;
	err = wq_change(wq, cur, attr->wq_state);
	if (!err)
		ibwq->state = attr->wq_state;
	return err;
}

int vrnic_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct vrnic_wq *wq = to_vwq(ibwq);
	int err;

	err = vrnic_destroy_qp(&wq->shell.ibqp, udata);
	if (!err)
		kfree(wq);
	return err;
}
