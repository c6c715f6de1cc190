// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */

#include <linux/atomic.h>
#include <linux/sched.h>
#include <rdma/uverbs_std_types.h>

#include "base/objects.h"
#include "base/udata.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "queue/rq.h"
#include "queue/srq.h"
#include "queue/xrc.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

static atomic_t next_srqn = ATOMIC_INIT(1);

static int srq_respond(struct vrnic_srq *srq, struct ib_udata *udata)
{
	struct vrnic_create_srq_resp resp = { .srqn = srq->srqn };
	int err;

	if (!udata)
		return 0;
	err = vrnic_ring_export(&srq->rq.ring, vrnic_udata_ucontext(udata), false,
				&resp.rq);
	if (err)
		return err;
	return vrnic_udata_respond(udata, &resp, sizeof(resp),
				   offsetofend(struct vrnic_create_srq_resp, reserved));
}

/* Give the SRQ its number. Peers name an XRC SRQ by it, and find the SRQ from now on. */
static int srq_number(struct vrnic_srq *srq)
{
	int err;

	if (srq->ibsrq.srq_type != IB_SRQT_XRC) {
		srq->srqn = atomic_inc_return(&next_srqn);
		return 0;
	}
	err = vrnic_xsrq_publish(srq);
	if (!err)
		srq->ibsrq.ext.xrc.srq_num = srq->srqn;
	return err;
}

int vrnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	struct vrnic_dev *dev = to_vdev(ibsrq->device);
	struct vrnic_srq *srq = to_vsrq(ibsrq);
	int err;

	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > VRNIC_MAX_WR ||
	    init->attr.max_sge > VRNIC_MAX_SGE || vrnic_udata_empty(udata))
		return -EINVAL;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_SRQ, udata))
		return -ENOMEM;
	mutex_init(&srq->resize);
	err = vrnic_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge,
			    GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_put;
	err = srq_number(srq);
	if (err)
		goto err_ring;
	err = srq_respond(srq, udata);
	if (err)
		goto err_hide;
	init->attr.max_wr = srq->rq.max_wr;
	return 0;

err_hide:
	if (srq->xsrq)
		vrnic_xsrq_hide(srq);
err_ring:
	vrnic_ring_free(&srq->rq.ring);
err_put:
	vrnic_object_put(dev, VRNIC_OBJECT_SRQ, udata);
	return err;
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

/* Is the limit event due? The event disarms the limit; the consumer arms it again. */
static bool srq_fell_below(struct vrnic_srq *srq)
{
	lockdep_assert_held(&srq->rq.lock);
	if (!srq->rq.limit || vrnic_ring_avail(&srq->rq.ring) >= srq->rq.limit)
		return false;
	WRITE_ONCE(srq->rq.limit, 0);
	return true;
}

/*
 * The limit was armed. The queue may be below it already, and then no message need find that: from
 * an empty queue, no message takes a request.
 */
static void srq_armed(struct vrnic_srq *srq)
{
	bool due;

	spin_lock_irq(&srq->rq.lock);
	due = srq_fell_below(srq);
	spin_unlock_irq(&srq->rq.lock);
	if (due)
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
}

/* Arm the limit event, or disarm it with 0. */
static int srq_arm(struct vrnic_srq *srq, u32 limit)
{
	int err = -EINVAL;

	spin_lock_irq(&srq->rq.lock);
	if (limit <= srq->rq.max_wr) {
		WRITE_ONCE(srq->rq.limit, limit);
		err = 0;
	}
	spin_unlock_irq(&srq->rq.lock);
	if (!err)
		srq_armed(srq);
	return err;
}

/* Allocate a ring for @max_wr requests, and tell the process, if there is one, how to map it. */
static int srq_ring(const struct vrnic_srq *srq, struct vrnic_ring *ring, u32 max_wr,
		    struct uverbs_attr_bundle *attrs)
{
	struct vrnic_ring_info info = {};
	int err;

	err = vrnic_rq_ring(ring, max_wr, srq->rq.max_sge, GFP_KERNEL_ACCOUNT);
	if (err || !attrs)
		return err;
	err = vrnic_ring_export(ring, attrs->context, false, &info);
	if (!err)
		err = uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_SRQ_RESIZE_RESP, &info,
						    sizeof(info));
	if (err)
		vrnic_ring_free(ring);
	return err;
}

/* Most requests that srq_move() copies between two cond_resched(). */
#define SRQ_BATCH	64

/* Copy the requests from index @first to before @end, which keep their indices. */
static void srq_copy(const struct vrnic_ring *from, struct vrnic_ring *to, u32 first, u32 end)
{
	for (; first != end; first++)
		memcpy(vrnic_ring_slot(to, first), vrnic_ring_slot(from, first),
		       1U << from->shift);
}

/*
 * Swap the rings. @copied: index behind the last request that was copied. A process posts nothing
 * during the call, so its index is not read again. A kernel consumer may have posted more.
 */
static int srq_replace(struct vrnic_rq *rq, struct vrnic_ring *ring, u32 copied, u32 limit)
{
	u32 end = rq->ring.map ? copied : rq->ring.idx + vrnic_ring_avail(&rq->ring);

	lockdep_assert_held(&rq->lock);
	if (end - rq->ring.idx > min(rq->ring.entries, ring->entries) || limit > ring->entries)
		return -EINVAL;
	/* what was posted and taken meanwhile is not needed */
	if (end - copied > end - rq->ring.idx)
		copied = rq->ring.idx;
	srq_copy(&rq->ring, ring, copied, end);
	ring->idx = rq->ring.idx;
	ring->hdr->cons = ring->idx;
	ring->hdr->prod = end;
	swap(rq->ring, *ring);
	WRITE_ONCE(rq->max_wr, rq->ring.entries);
	WRITE_ONCE(rq->limit, limit);
	return 0;
}

/*
 * Copy the requests that no message has taken yet to @ring, and make @ring the ring of @srq.
 * Runners take requests meanwhile, so requests are copied that are gone when the rings are swapped:
 * the new ring begins behind these. @limit: the limit to arm, or NULL to keep that of @srq.
 *
 * Return: 0, or -EINVAL if the requests, or the limit, do not fit into @ring.
 */
static int srq_move(struct vrnic_srq *srq, struct vrnic_ring *ring, const u32 *limit)
{
	struct vrnic_rq *rq = &srq->rq;
	u32 at, end, n;
	int err;

	lockdep_assert_held(&srq->resize);
	spin_lock_irq(&rq->lock);
	at = rq->ring.idx;
	end = at + vrnic_ring_avail(&rq->ring);
	spin_unlock_irq(&rq->lock);
	if (end - at > min(rq->ring.entries, ring->entries))
		return -EINVAL;
	for (; at != end; at += n) {
		n = min_t(u32, end - at, SRQ_BATCH);
		srq_copy(&rq->ring, ring, at, at + n);
		cond_resched();
	}
	spin_lock_irq(&rq->lock);
	err = srq_replace(rq, ring, end, limit ? *limit : rq->limit);
	spin_unlock_irq(&rq->lock);
	return err;
}

static int srq_resize(struct vrnic_srq *srq, u32 max_wr, const u32 *limit,
		      struct uverbs_attr_bundle *attrs)
{
	struct vrnic_ring ring = {};
	int err;

	if (!max_wr || max_wr > VRNIC_MAX_WR)
		return -EINVAL;
	err = srq_ring(srq, &ring, max_wr, attrs);
	if (err)
		return err;
	mutex_lock(&srq->resize);
	err = srq_move(srq, &ring, limit);
	mutex_unlock(&srq->resize);
	/* the old ring, or the new one if it is not used */
	vrnic_ring_free(&ring);
	if (!err && limit)
		srq_armed(srq);
	return err;
}

static int UVERBS_HANDLER(VRNIC_METHOD_SRQ_RESIZE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *ibsrq = uverbs_attr_get_obj(attrs, VRNIC_ATTR_SRQ_RESIZE_HANDLE);
	struct vrnic_resize_srq_req req;
	int err;

	err = uverbs_copy_from_or_zero(&req, attrs, VRNIC_ATTR_SRQ_RESIZE_REQ);
	if (err)
		return err;
	if (req.reserved || req.flags & ~VRNIC_RESIZE_SRQ_LIMIT)
		return -EOPNOTSUPP;
	return srq_resize(to_vsrq(ibsrq), req.max_wr,
			  req.flags & VRNIC_RESIZE_SRQ_LIMIT ? &req.limit : NULL, attrs);
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_SRQ_RESIZE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_SRQ_RESIZE_HANDLE,
			UVERBS_OBJECT_SRQ,
			UVERBS_ACCESS_READ,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_SRQ_RESIZE_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_resize_srq_req, reserved),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_SRQ_RESIZE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_ring_info, stride),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(vrnic_srq_methods,
		   UVERBS_OBJECT_SRQ,
		   &UVERBS_METHOD(VRNIC_METHOD_SRQ_RESIZE));

const struct uapi_definition vrnic_srq_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_SRQ, &vrnic_srq_methods),
	{},
};

/* This command has no answer, so a process would go on with the old ring: it has SRQ_RESIZE. */
int vrnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	const u32 *limit = mask & IB_SRQ_LIMIT ? &attr->srq_limit : NULL;
	struct vrnic_srq *srq = to_vsrq(ibsrq);

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR) || (mask & IB_SRQ_MAX_WR && udata))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR)
		return srq_resize(srq, attr->max_wr, limit, NULL);
	return limit ? srq_arm(srq, *limit) : 0;
}

int vrnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);

	attr->max_wr = READ_ONCE(srq->rq.max_wr);
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->rq.limit);
	return 0;
}

int vrnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);
	struct vrnic_rq *rq = &srq->rq;
	struct vrnic_ring ring;

	if (srq->xsrq)
		vrnic_xsrq_hide(srq);
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
	bool limit;
	int ret;

	spin_lock_irqsave(&srq->rq.lock, flags);
	ret = vrnic_rq_take(&srq->rq, recv);
	recv->srqn = srq->srqn;
	recv->serial = srq->serial;
	limit = !ret && srq_fell_below(srq);
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	if (limit)
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	if (ret == -EOVERFLOW)
		srq_event(srq, IB_EVENT_SRQ_ERR);
	return ret;
}
