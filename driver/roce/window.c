// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of a requester's window. A consumer's queue pair has all of it from the beginning.
 *
 * There may be thousands of native links, most of which are idle. So theirs begin with room for a
 * few operations, which needs no memory, get more when they are full, and give it back when the
 * link rests. Mostly softirqs run a link, and they cannot wait for memory. If a window cannot grow,
 * a thread runs the link, and tries with more patience: a control group that is full of page cache
 * has memory only for those who reclaim. Meanwhile, or without memory, the link is slow, but goes
 * on.
 */

#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "engine/engine.h"
#include "queue/link_ops.h"
#include "queue/qp.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "verbs/flow.h"

#define GROWTH	8	/* a power of two */

static void start_few(struct vrnic_req *q)
{
	q->fly.ops = q->few;
	WRITE_ONCE(q->fly.nr_ops, ARRAY_SIZE(q->few));
}

/* Allocate what the requester of a queue pair needs. Return: 0 or -ENOMEM. */
int vrnic_window_init(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (qp->type == IB_QPT_UC || qp->xrc == VRNIC_XRC_TGT)
		return 0;
	if (qp->link) {
		start_few(q);
		return 0;
	}
	q->fly.nr_ops = VRNIC_WINDOW_OPS;
	q->fly.ops = kvcalloc(VRNIC_WINDOW_OPS, sizeof(*q->fly.ops), qp->gfp);
	/* a copy that begins in the last slots does not wrap, but goes on behind them */
	q->slots = kvcalloc(VRNIC_WINDOW_SLOTS + VRNIC_MAX_SLOTS, VRNIC_SLOT_SIZE,
			    qp->gfp);
	return q->fly.ops && q->slots ? 0 : -ENOMEM;
}

/* Free this, also after a failure. */
void vrnic_window_free(struct vrnic_req *q)
{
	if (q->fly.ops != q->few)
		kvfree(q->fly.ops);
	kvfree(q->slots);
}

/* Return: false if there is no memory, or the window may not be larger. */
static bool window_widen(struct vrnic_qp *qp, bool patient)
{
	struct vrnic_flight *f = &to_req(qp)->fly;
	u32 i, nr = min_t(u32, f->nr_ops * GROWTH, VRNIC_LINK_OPS);
	struct vrnic_wop *ops;

	ops = qp->link_ops->alloc(qp->link, nr * sizeof(*ops), patient);
	if (!ops)
		return false;
	for (i = f->head; i != f->tail; i++)
		ops[i & (nr - 1)] = *vrnic_wop_at(f, i);
	if (f->ops != to_req(qp)->few)
		kfree(f->ops);
	f->ops = ops;
	/* vrnic_roce_rests() may look */
	WRITE_ONCE(f->nr_ops, nr);
	return true;
}

/**
 * vrnic_window_grow() - get room for more operations in flight
 * @qp: requester; its window is full
 *
 * Return: false if there is no memory now, or the window may not be larger.
 */
bool vrnic_window_grow(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (!qp->link || q->fly.nr_ops == VRNIC_LINK_OPS)
		return false;
	if (window_widen(qp, false))
		return true;
	/* a thread has tried since, and found none: not again before the window has moved on */
	if (!q->wants_room && q->fly.tail - q->tried >= q->fly.nr_ops) {
		q->wants_room = true;
		vrnic_queue(&qp->run);
	}
	return false;
}

/* If the window could not grow before, try again, as this run may sleep. */
void vrnic_window_grow_patiently(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (likely(!q->wants_room))
		return;
	q->wants_room = false;
	q->tried = q->fly.tail;
	if (q->fly.nr_ops < VRNIC_LINK_OPS)
		window_widen(qp, true);
}

/**
 * vrnic_roce_rests() - has a queue pair nothing that vrnic_roce_rest() would give back now?
 * @qp: queue pair of a native link
 *
 * Context: any. Runs of the queue pair may change the answer.
 */
bool vrnic_roce_rests(const struct vrnic_qp *qp)
{
	const struct vrnic_roce *roce;
	bool rests;

	/* a connection that fails while it is made is freed after a grace period */
	rcu_read_lock();
	/* pairs with the release in vrnic_roce_connect() */
	roce = smp_load_acquire(&qp->roce);
	rests = !roce || READ_ONCE(roce->req.fly.head) != READ_ONCE(roce->req.fly.tail) ||
		(READ_ONCE(roce->req.fly.nr_ops) <= VRNIC_LINK_OPS_FEW &&
		 !READ_ONCE(roce->burst.page.page));
	rcu_read_unlock();
	return rests;
}

/**
 * vrnic_roce_rest() - give back memory that a native link needs only while it sends
 * @qp: queue pair; the caller holds the run bit
 *
 * Does nothing if operations are in flight, or packets are to be sent.
 */
void vrnic_roce_rest(struct vrnic_qp *qp)
{
	struct vrnic_roce *roce = qp->roce;

	if (!roce || !vrnic_roce_idle(qp) || roce->burst.skb)
		return;
	/* the page for copies */
	vrnic_burst_drop(&roce->burst);
	if (roce->req.fly.ops != roce->req.few) {
		kfree(roce->req.fly.ops);
		start_few(&roce->req);
	}
}
