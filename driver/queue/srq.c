// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */

#include <linux/atomic.h>

#include "base/objects.h"
#include "base/udata.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "queue/rq.h"
#include "queue/srq.h"
#include "vrnic.h"

static atomic_t next_srqn = ATOMIC_INIT(1);

static int srq_respond(struct vrnic_srq *srq, struct ib_udata *udata)
{
	struct vrnic_create_srq_resp resp = { .srqn = srq->srqn };
	int err;

	if (!udata)
		return 0;
	err = vrnic_ring_export(&srq->rq.ring, vrnic_udata_ucontext(udata),
				&resp.rq);
	if (err)
		return err;
	return vrnic_udata_respond(udata, &resp, sizeof(resp),
				   offsetofend(struct vrnic_create_srq_resp, reserved));
}

int vrnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	struct vrnic_dev *dev = to_vdev(ibsrq->device);
	struct vrnic_srq *srq = to_vsrq(ibsrq);
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > VRNIC_MAX_WR ||
	    init->attr.max_sge > VRNIC_MAX_SGE || vrnic_udata_empty(udata))
		return -EINVAL;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_SRQ, udata))
		return -ENOMEM;
	err = vrnic_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge,
			    GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_put;
	srq->srqn = atomic_inc_return(&next_srqn);
	err = srq_respond(srq, udata);
	if (err)
		goto err_ring;
	init->attr.max_wr = srq->rq.max_wr;
	return 0;

err_ring:
	vrnic_ring_free(&srq->rq.ring);
err_put:
	vrnic_object_put(dev, VRNIC_OBJECT_SRQ, udata);
	return err;
}

/* A process maps the ring, so its size cannot change: IB_DEVICE_SRQ_RESIZE is not advertised. */
int vrnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_LIMIT) {
		if (attr->srq_limit > srq->rq.max_wr)
			return -EINVAL;
		spin_lock_irq(&srq->rq.lock);
		WRITE_ONCE(srq->rq.limit, attr->srq_limit);
		spin_unlock_irq(&srq->rq.lock);
	}
	return 0;
}

int vrnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);

	attr->max_wr = srq->rq.max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->rq.limit);
	return 0;
}

int vrnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct vrnic_rq *rq = &to_vsrq(ibsrq)->rq;
	struct vrnic_ring ring;

	/* an operator may be looking at the ring: see vrnic_fill_srq() */
	spin_lock_irq(&rq->lock);
	ring = rq->ring;
	rq->ring = (struct vrnic_ring) {};
	spin_unlock_irq(&rq->lock);
	vrnic_ring_free(&ring);
	vrnic_object_put(to_vdev(ibsrq->device), VRNIC_OBJECT_SRQ, udata);
	return 0;
}

int vrnic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);

	if (srq->rq.ring.map) {
		*bad = wr;
		return -EINVAL;
	}
	return vrnic_rq_post(&srq->rq, wr, bad);
}

static void srq_event(struct vrnic_srq *srq, enum ib_event_type type)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.event = type,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

/**
 * vrnic_srq_take() - take the oldest receive request, and raise the limit event if it is due
 * @srq: shared receive queue
 * @recv: private copy of the request, to be filled in
 *
 * Return: as vrnic_rq_take().
 */
int vrnic_srq_take(struct vrnic_srq *srq, struct vrnic_recv *recv)
{
	unsigned long flags;
	bool limit = false;
	int ret;

	spin_lock_irqsave(&srq->rq.lock, flags);
	ret = vrnic_rq_take(&srq->rq, recv);
	if (!ret && srq->rq.limit &&
	    vrnic_ring_avail(&srq->rq.ring) < srq->rq.limit) {
		/* the event disarms the limit; the consumer arms it again with modify_srq() */
		WRITE_ONCE(srq->rq.limit, 0);
		limit = true;
	}
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	if (limit)
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	if (ret == -EOVERFLOW)
		srq_event(srq, IB_EVENT_SRQ_ERR);
	return ret;
}
