// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues. The kernel writes the entries. A process reads them from the mapped ring, a
 * kernel consumer gets them by poll_cq().
 */

#include <linux/ktime.h>

#include "base/objects.h"
#include "base/trace.h"
#include "base/udata.h"
#include "compat/compat.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "vrnic.h"

/* A completion found no room: tell the owner, so that no completion is lost silently. */
static void cq_overflow(struct vrnic_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};

	vrnic_count(to_vdev(cq->ibcq.device), CQ_OVERFLOWS);
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static void cq_event(struct vrnic_cq *cq)
{
	vrnic_count(to_vdev(cq->ibcq.device), EVENTS);
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* An event tells of all entries that there are. The caller holds cq->lock. */
static void cq_tell(struct vrnic_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	cq->told = cq->ring.idx;
	WRITE_ONCE(cq->ring.hdr->told, cq->told);
}

/*
 * Does an event have to wait, because there are too few entries that neither an event told of nor
 * the consumer has taken? Then it is due. The caller holds cq->lock.
 */
static bool cq_waits(struct vrnic_cq *cq)
{
	u32 untold, untaken;

	lockdep_assert_held(&cq->lock);
	if (likely(cq->count <= 1 && !(cq->period && !cq->count)))
		return false;
	untold = cq->ring.idx - cq->told;
	untaken = cq->ring.idx - READ_ONCE(cq->ring.hdr->cons);
	if (cq->count && min(untold, untaken) >= min_t(u32, cq->count, cq->ring.entries))
		return false;
	if (!cq->due && cq->period)
		hrtimer_start(&cq->timer, ns_to_ktime(cq->period * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	cq->due = true;
	return true;
}

/*
 * Does the consumer still want the event that is raised now? The caller holds cq->lock. The timer
 * may run on: it finds nothing due, or tells of what is due next a little early.
 */
static bool cq_wakes_now(struct vrnic_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	cq->due = false;
	if (!vrnic_ring_take(&cq->ring))
		return false;
	cq_tell(cq);
	return true;
}

/* Does the entry just written raise an event? A failure does not wait. Caller holds cq->lock. */
static bool cq_wakes(struct vrnic_cq *cq, bool solicited, bool failure)
{
	lockdep_assert_held(&cq->lock);
	if (solicited)
		cq->solicited = cq->ring.idx;
	if (likely(!vrnic_ring_asks(&cq->ring, solicited) && !cq->due))
		return false;
	if (!failure && cq_waits(cq))
		return false;
	return cq_wakes_now(cq);
}

static enum hrtimer_restart cq_timer_fired(struct hrtimer *timer)
{
	struct vrnic_cq *cq = container_of(timer, struct vrnic_cq, timer);
	unsigned long flags;
	bool wake;

	spin_lock_irqsave(&cq->lock, flags);
	wake = cq->due && cq_wakes_now(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (wake)
		cq_event(cq);
	return HRTIMER_NORESTART;
}

/* Write an entry. The caller holds cq->lock. Return: false if the ring is full. */
static bool cq_write(struct vrnic_cq *cq, const struct vrnic_cqe *cqe)
{
	struct vrnic_cqe *slot = vrnic_ring_slot(&cq->ring, cq->ring.idx);

	lockdep_assert_held(&cq->lock);
	if (unlikely(!vrnic_ring_room(&cq->ring)))
		return false;
	/* not @phase, which makes the entry valid: vrnic_cqe_publish() writes it last */
	memcpy(slot, cqe, offsetof(struct vrnic_cqe, phase));
	slot->network_hdr = cqe->network_hdr;
	slot->flags = cqe->flags;
	slot->vlan = cqe->vlan;
	slot->sq_done = cqe->sq_done;
	if (cq->timestamps)
		slot->timestamp = ktime_get_raw_ns();
	vrnic_cqe_publish(&cq->ring, slot);
	return true;
}

/**
 * vrnic_cq_post() - report a completion
 * @cq: the completion queue
 * @cqe: the completion; its @phase is ignored
 * @solicited: also wake consumers that wait for solicited completions; a failure always does
 *
 * Return: 0, or -EOVERFLOW: the completion queue is in error, and the caller has to move the queue
 * pair to error.
 * Context: any; the caller holds no spinlock that a completion handler may take.
 */
int vrnic_cq_post(struct vrnic_cq *cq, const struct vrnic_cqe *cqe,
		  bool solicited)
{
	bool was_failed, written = false, wake = false, failure = cqe->status != IB_WC_SUCCESS;
	unsigned long flags;

	trace_vrnic_complete(cq->ibcq.res.id, cqe);
	spin_lock_irqsave(&cq->lock, flags);
	was_failed = cq->failed;
	if (likely(!was_failed))
		written = cq_write(cq, cqe);
	if (unlikely(!written)) {
		cq->failed = true;
		WRITE_ONCE(cq->ring.hdr->flags, VRNIC_RING_ERROR);
	}
	if (likely(written))
		wake = cq_wakes(cq, solicited || failure, failure);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (likely(written)) {
		vrnic_count(to_vdev(cq->ibcq.device), COMPLETIONS);
		if (wake)
			cq_event(cq);
		return 0;
	}
	if (!was_failed)
		cq_overflow(cq);
	return -EOVERFLOW;
}

static int cq_read_request(struct vrnic_cq *cq, struct ib_udata *udata)
{
	struct vrnic_create_cq_req req;
	int err;

	err = vrnic_udata_request(udata, &req, sizeof(req),
				  offsetofend(struct vrnic_create_cq_req, reserved));
	if (err)
		return err;
	if (req.reserved || req.flags & ~VRNIC_CQ_TIMESTAMP)
		return -EOPNOTSUPP;
	cq->timestamps = req.flags & VRNIC_CQ_TIMESTAMP;
	return 0;
}

/* Allocate @ring, and tell the process how to map it. */
static int cq_ring(struct vrnic_ring *ring, u32 cqe, struct ib_udata *udata)
{
	struct vrnic_create_cq_resp resp = {};
	int err;

	err = vrnic_ring_alloc(ring, cqe, sizeof(struct vrnic_cqe), GFP_KERNEL_ACCOUNT);
	if (err || !udata)
		return err;
	err = vrnic_ring_export(ring, vrnic_udata_ucontext(udata), false, &resp.ring);
	if (err)
		goto err_free;
	err = vrnic_udata_respond(udata, &resp, sizeof(resp),
				  offsetofend(struct vrnic_create_cq_resp, ring));
	if (err)
		goto err_free;
	return 0;

err_free:
	vrnic_ring_free(ring);
	return err;
}

int vrnic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct ib_udata *udata)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	int err;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > VRNIC_MAX_CQE ||
	    attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	err = cq_read_request(cq, udata);
	if (err)
		return err;
	if (attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		cq->timestamps = true;
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize);
	hrtimer_setup(&cq->timer, cq_timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	if (!vrnic_object_get(to_vdev(ibcq->device), VRNIC_OBJECT_CQ, udata))
		return -ENOMEM;
	err = cq_ring(&cq->ring, attr->cqe, udata);
	if (err) {
		vrnic_object_put(to_vdev(ibcq->device), VRNIC_OBJECT_CQ, udata);
		return err;
	}
	ibcq->cqe = cq->ring.entries;
	return 0;
}

/*
 * The core is about to wait for what completion events of a kernel consumer have started; those of
 * queue pairs came to an end with them. An event that is due must not start anything after that.
 */
int vrnic_pre_destroy_cq(struct ib_cq *ibcq)
{
	struct vrnic_cq *cq = to_vcq(ibcq);

	spin_lock_irq(&cq->lock);
	cq->due = false;	/* modify_cq() does not start the timer any more */
	spin_unlock_irq(&cq->lock);
	hrtimer_cancel(&cq->timer);
	return 0;
}

int vrnic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	struct vrnic_ring ring;

	/* the core has not done so for a process, nor for a queue that it did not allocate */
	vrnic_pre_destroy_cq(ibcq);
	/*
	 * ib_free_cq() waits for the end of a poll in a softirq, but the core's softirq arms the
	 * queue after that. A softirq is an RCU read-side critical section, so wait for it here.
	 * (The queue of a process has the same poll_ctx, 0, but no such softirq.)
	 */
	if (!cq->ring.map && ibcq->poll_ctx == IB_POLL_SOFTIRQ)
		synchronize_rcu();
	/* an operator may be looking at the ring: see vrnic_fill_cq() */
	spin_lock_irq(&cq->lock);
	ring = cq->ring;
	cq->ring = (struct vrnic_ring) {};
	spin_unlock_irq(&cq->lock);
	vrnic_ring_free(&ring);
	vrnic_object_put(to_vdev(ibcq->device), VRNIC_OBJECT_CQ, udata);
	return 0;
}

/* Most completions to copy or look at with interrupts off, or between two cond_resched(). */
#define CQ_BATCH	64

/* Copy @n completions from index @first on. They are published, so they do not change any more. */
static void cq_copy(const struct vrnic_cq *cq, struct vrnic_ring *ring, u32 first,
		    u32 n)
{
	struct vrnic_cqe *to;
	u32 i;

	for (i = 0; i < n; i++) {
		to = vrnic_ring_slot(ring, ring->idx);
		memcpy(to, vrnic_ring_slot(&cq->ring, first + i), sizeof(*to));
		vrnic_cqe_publish(ring, to);
	}
}

/* Swap the rings. The caller holds cq->lock, and has copied all completions. */
static void cq_replace(struct vrnic_cq *cq, struct vrnic_ring *ring)
{
	u32 shift = ring->idx - cq->ring.idx;

	lockdep_assert_held(&cq->lock);
	cq->told += shift;
	cq->solicited += shift;
	WRITE_ONCE(ring->hdr->told, cq->told);
	WRITE_ONCE(ring->hdr->arm, READ_ONCE(cq->ring.hdr->arm));
	if (cq->failed)
		vrnic_ring_error(ring);
	swap(cq->ring, *ring);
}

/*
 * Copy the completions that @cq's consumer has not taken yet to @ring, and make @ring the ring of
 * @cq. Runners add completions meanwhile, so the last few are copied with the lock held. @cons is
 * read once, so their number only grows, and the loop ends when it exceeds @max at the latest.
 *
 * Return: 0, or -EINVAL if the completions do not fit into @ring.
 */
static int cq_move(struct vrnic_cq *cq, struct vrnic_ring *ring)
{
	u32 cons = READ_ONCE(cq->ring.hdr->cons);
	u32 max = min(cq->ring.entries, ring->entries);
	bool wake = false;
	u32 all, left;

	lockdep_assert_held(&cq->resize);
	for (;;) {
		spin_lock_irq(&cq->lock);
		all = cq->ring.idx - cons;
		left = all - ring->idx;
		if (all > max || left <= CQ_BATCH)
			break;
		spin_unlock_irq(&cq->lock);
		for (; left > CQ_BATCH; left -= CQ_BATCH) {
			cq_copy(cq, ring, cons + ring->idx, CQ_BATCH);
			cond_resched();
		}
	}
	if (all <= max) {
		cq_copy(cq, ring, cons + ring->idx, left);
		cq_replace(cq, ring);
		/* a smaller queue waits for fewer */
		wake = cq->due && !cq_waits(cq) && cq_wakes_now(cq);
	}
	spin_unlock_irq(&cq->lock);
	if (wake)
		cq_event(cq);
	return all > max ? -EINVAL : 0;
}

int vrnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	struct vrnic_ring ring = {};
	int err;

	if (cqe < 1 || cqe > VRNIC_MAX_CQE)
		return -EINVAL;
	/* vrnic_poll_cq() would have to renumber cq->poll_idx for the new ring */
	if (!udata)
		return -EOPNOTSUPP;
	err = cq_ring(&ring, cqe, udata);
	if (err)
		return err;
	mutex_lock(&cq->resize);
	err = cq_move(cq, &ring);
	if (!err)
		ibcq->cqe = cq->ring.entries;
	mutex_unlock(&cq->resize);
	vrnic_ring_free(&ring);
	return err;
}

/*
 * Return: false if the queue pair has been destroyed: then nobody wants to know. A consumer need
 * not have seen the end of all requests, for example if its receives are in an SRQ.
 */
static bool fill_wc(const struct vrnic_cqe *cqe, struct ib_wc *wc)
{
	struct vrnic_qp *qp = vrnic_qp_get(cqe->qpn);

	if (!qp)
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->cookie;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->src_qp = cqe->src_qp;
	wc->pkey_index = cqe->pkey_index;
	wc->port_num = 1;
	if (cqe->wc_flags & VRNIC_WC_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->imm;
	}
	if (cqe->wc_flags & VRNIC_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = (__force __be32)cqe->imm;
	}
	if (cqe->wc_flags & VRNIC_WC_GRH) {
		wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = cqe->network_hdr;
	}
	if (cqe->vlan) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = cqe->vlan - 1;
	}
	wc->qp = qp->ibqp;
	vrnic_qp_put(qp);
	return true;
}

/* For kernel consumers: a process polls the ring that it maps. */
int vrnic_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	unsigned int looks = 0;
	unsigned long flags;
	int n = 0;

	if (cq->ring.map)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, flags);
	while (n < num && cq->poll_idx != cq->ring.idx) {
		n += fill_wc(vrnic_ring_slot(&cq->ring, cq->poll_idx++), wc + n);
		/* those that nobody wants may be many */
		if (++looks % CQ_BATCH)
			continue;
		spin_unlock_irqrestore(&cq->lock, flags);
		spin_lock_irqsave(&cq->lock, flags);
	}
	WRITE_ONCE(cq->ring.hdr->cons, cq->poll_idx);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/*
 * Is there an entry that no event told of, and one that the process has not taken? They need not be
 * the same: a provider that drops the completions of a queue pair moves the others.
 */
static bool cq_missed(const struct vrnic_cq *cq, bool solicited)
{
	u32 behind = solicited ? cq->ring.idx - cq->solicited : 0;
	u32 untold = cq->ring.idx - cq->told;

	lockdep_assert_held(&cq->lock);
	return behind < untold && READ_ONCE(cq->ring.hdr->cons) != cq->ring.idx;
}

/*
 * The provider calls this if there is an entry that no event told of. A process that found the
 * queue empty before may go to sleep now without another look, so an entry that came in between
 * raises the event. One that an earlier event told of does not: most programs ask again before they
 * poll.
 */
int vrnic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct vrnic_cq *cq = to_vcq(ibcq);
	bool wake = false;
	unsigned long irq;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq);
	/* a thread of the process may ask for any completion now: that must not be weakened */
	if (solicited)
		cmpxchg(&cq->ring.hdr->arm, VRNIC_ARM_NONE, VRNIC_ARM_SOLICITED);
	else
		WRITE_ONCE(cq->ring.hdr->arm, VRNIC_ARM_NEXT);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = READ_ONCE(cq->ring.hdr->cons) != cq->ring.idx;
	if (cq->ring.map && cq_missed(cq, solicited) && !cq_waits(cq))
		wake = cq_wakes_now(cq);
	spin_unlock_irqrestore(&cq->lock, irq);
	if (wake)
		cq_event(cq);
	return missed;
}

/**
 * vrnic_modify_cq() - let events wait for more completions
 * @ibcq: completion queue
 * @count: completions that no event told of and nobody has polled; 0 is no condition
 * @period: microseconds from the first of them; 0 is no condition
 *
 * An event that a consumer has asked for comes when one of the two is reached. With 0 and 0, and
 * with a count of 1, it comes at once, as it does for a completion that failed. A count above the
 * queue's size stands for all of it.
 *
 * Return: 0.
 */
int vrnic_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	bool wake = false;

	spin_lock_irq(&cq->lock);
	cq->count = count;
	cq->period = period;
	if (cq->due) {
		cq->due = false;	/* it may have to wait for another time */
		wake = !cq_waits(cq) && cq_wakes_now(cq);
	}
	spin_unlock_irq(&cq->lock);
	if (wake)
		cq_event(cq);
	return 0;
}
