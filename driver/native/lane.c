// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lanes: where messages wait for room at a peer, so that what is sent to others does not.
 *
 * A ring is executed in order. If a message finds the peer's reception FIFO full, the injector of
 * the ring copies it, with the data in its slots, gives it to a lane, and goes on. What goes to the
 * same peer follows it there, fences of its endpoint too, until the lane is empty. So the order of
 * operations on one peer is kept.
 *
 * A lane has an injector of its own, which a thread of the crew runs. It executes; then the
 * injector of the ring counts, notes failures, and delivers records. If there is no lane, or no
 * room in it, the operation stays where it is, and the ring waits. So it does for what needs more
 * than a copy of its slots: pages of the process, which the process itself may have to bring; a
 * type, which may be destroyed once its slot is free; descriptors in the memory of the process.
 */

#include <linux/ktime.h>
#include <linux/slab.h>

#include "base/trace.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "native/lane.h"
#include "native/link.h"
#include "native/native.h"
#include "vrnic.h"

/* Most operations in a lane, and most bytes in the slots of one of them. */
#define LANE_OPS	64
#define LANE_BYTES	SZ_8K

#define RETRY_NS	1000000ULL	/* if there is no memory */

/**
 * struct vrnic_lane - operations on one peer that wait, and what executes them
 * @rcu: for the RCU grace period before its release
 * @all: in struct vrnic_fifo.lanes
 * @inj: executes the operations
 * @nr: number of operations that have not landed; 0: the lane is free. The run bit of the ring
 *	protects this and @peer
 * @peer: address of the peer
 * @lock: protects what follows; bh
 * @queue: struct vrnic_nflight that wait, and the one in progress, which is the first
 */
struct vrnic_lane {
	struct rcu_head rcu;
	struct list_head all;
	struct vrnic_injector inj;
	u32 nr;
	struct vrnic_address peer;
	spinlock_t lock;	/* protects what follows; bh */
	struct list_head queue;
};

static const struct vrnic_runnable_ops lane_ops;

/* ---- the ring's side; the caller holds its run bit, or has parked it ---- */

static struct vrnic_lane *lane_new(struct vrnic_fifo *fifo)
{
	struct mem_cgroup *was = vrnic_charge_begin(fifo);
	struct vrnic_lane *lane = kzalloc(sizeof(*lane), GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN);

	vrnic_charge_end(was);
	if (!lane)
		return NULL;
	vrnic_injector_init(&lane->inj, fifo, &lane_ops);
	lane->inj.lane = lane;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->queue);
	list_add_tail(&lane->all, &fifo->lanes);
	fifo->nr_lanes++;
	return lane;
}

static struct vrnic_lane *lane_busy(struct vrnic_fifo *fifo, const struct vrnic_endpoint *ep)
{
	struct vrnic_lane *lane;

	list_for_each_entry(lane, &fifo->lanes, all)
		if (lane->nr && vrnic_address_is(&lane->peer, &ep->peer))
			return lane;
	return NULL;
}

/**
 * vrnic_lane_busy() - has what goes to a peer to follow others in a lane?
 * @fifo: FIFO; the caller holds the run bit of its ring
 * @ep: endpoint that leads to the peer
 *
 * Return: true if operations on the peer are in a lane.
 */
bool vrnic_lane_busy(struct vrnic_fifo *fifo, const struct vrnic_endpoint *ep)
{
	return fifo->inject.nr_laned && lane_busy(fifo, ep);
}

/* Return: the lane for the endpoint's peer, or a free one, or NULL. */
static struct vrnic_lane *lane_of(struct vrnic_fifo *fifo, const struct vrnic_endpoint *ep)
{
	struct vrnic_lane *lane = lane_busy(fifo, ep);

	if (lane)
		return lane->nr < LANE_OPS ? lane : NULL;
	list_for_each_entry(lane, &fifo->lanes, all)
		if (!lane->nr)
			return lane;
	return fifo->nr_lanes < VRNIC_LANES ? lane_new(fifo) : NULL;
}

/* Bytes of the slots behind the descriptor's first, if anybody is going to look at them. */
static size_t slot_bytes(const struct vrnic_nop *op)
{
	return op->status == IB_WC_SUCCESS ? (op->d.num_slots - 1) * VRNIC_SLOT_SIZE : 0;
}

/* Does a copy of the slots have all that the operation needs? */
static bool fits_lane(const struct vrnic_nop *op)
{
	if (op->status != IB_WC_SUCCESS)
		return true;
	return slot_bytes(op) <= LANE_BYTES && op->d.opcode != VRNIC_NOP_RGET &&
	       !(op->d.flags & (VRNIC_NDESC_VIRTUAL | VRNIC_NDESC_TYPED));
}

static struct vrnic_nflight *lane_flight(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_nflight *flight;
	struct vrnic_seg seg[2], copy;
	unsigned int i, nr;
	u64 done = 0;

	flight = vrnic_nflight_new(inj, slot_bytes(op));
	if (!flight)
		return NULL;
	copy = (struct vrnic_seg){ .kva = flight->data, .len = slot_bytes(op) };
	nr = vrnic_native_ring(inj, VRNIC_SLOT_SIZE, slot_bytes(op), seg);
	for (i = 0; i < nr; done += seg[i++].len)
		vrnic_seg_copy(&copy, done, &seg[i], 0, seg[i].len, false);
	return flight;
}

/**
 * vrnic_lane_post() - let an operation wait in a lane
 * @inj: injector of the ring; its operation was checked, or has failed, and nothing of it was done
 *
 * Return: VRNIC_STEP_DONE: @inj->op.away is set; VRNIC_STEP_WAIT: there is no room in a lane.
 */
enum vrnic_step vrnic_lane_post(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_endpoint *ep = op->ep;
	struct vrnic_nflight *flight;
	struct vrnic_lane *lane;
	bool first;

	if (!fits_lane(op))
		return VRNIC_STEP_WAIT;
	lane = lane_of(inj->fifo, ep);
	if (!lane)
		return VRNIC_STEP_WAIT;
	flight = lane_flight(inj);
	if (!flight) {
		inj->run.wait_until = ktime_get_ns() + RETRY_NS;
		return VRNIC_STEP_WAIT;
	}
	vrnic_unstall(inj);
	inj->run.wait_until = 0;
	flight->lane = lane;
	lane->peer = ep->peer;
	lane->nr++;
	ep->laned++;
	vrnic_nflight_depart(inj, flight);
	spin_lock_bh(&lane->lock);
	first = list_empty(&lane->queue);
	list_add_tail(&flight->link, &lane->queue);
	spin_unlock_bh(&lane->lock);
	if (first)
		vrnic_queue(&lane->inj.run);
	return VRNIC_STEP_DONE;
}

/* An operation of a lane was counted, and its record was delivered. */
void vrnic_lane_landed(struct vrnic_nflight *flight)
{
	struct vrnic_endpoint *ep = flight->op.ep;

	flight->lane->nr--;
	ep->laned--;
	if (ep->gone && !ep->link)
		flight->inj->nr_orphans--;
}

/**
 * vrnic_lane_leave() - an endpoint was destroyed: fail what waits in a lane for another host
 * @ep: the endpoint; its link is about to go. What waits for a peer on this host goes on
 */
void vrnic_lane_leave(struct vrnic_endpoint *ep)
{
	struct vrnic_fifo *fifo = ep->fifo;
	struct vrnic_nflight *flight;
	struct vrnic_lane *lane;

	if (!ep->link)
		fifo->inject.nr_orphans += ep->laned;
	lane = ep->laned && ep->link ? lane_busy(fifo, ep) : NULL;
	if (!lane)
		return;
	vrnic_park(&lane->inj.run);
	list_for_each_entry(flight, &lane->queue, link)
		if (flight->op.ep == ep)
			vrnic_nop_fail(&flight->op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_ENDPOINT);
	if (lane->inj.op.active && lane->inj.op.ep == ep)
		vrnic_nop_fail(&lane->inj.op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_ENDPOINT);
	vrnic_unpark(&lane->inj.run);
	vrnic_queue(&lane->inj.run);
}

/* ---- the lane's run ---- */

static struct vrnic_nflight *lane_first(struct vrnic_lane *lane)
{
	struct vrnic_nflight *flight;

	spin_lock_bh(&lane->lock);
	flight = list_first_entry_or_null(&lane->queue, struct vrnic_nflight, link);
	spin_unlock_bh(&lane->lock);
	return flight;
}

/* Copy the next operation. Return: false if there is none. */
static bool lane_fetch(struct vrnic_lane *lane)
{
	struct vrnic_injector *inj = &lane->inj;
	struct vrnic_nflight *flight = lane_first(lane);

	if (!flight)
		return false;
	inj->op = flight->op;
	inj->op.active = true;
	inj->op.away = false;
	inj->slots = flight->data;
	return true;
}

static enum vrnic_step lane_execute(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_endpoint *ep = inj->op.ep;

	/* the endpoint may be gone, and its link, too */
	if (inj->op.status != IB_WC_SUCCESS)
		return VRNIC_STEP_FAIL;
	/* all before it is done; the injector of the ring has the failures that it tells of */
	if (inj->op.d.opcode == VRNIC_NOP_FENCE)
		return VRNIC_STEP_DONE;
	vrnic_injector_reach(inj, ep->link);
	if (ep->link)
		return vrnic_wire_native(inj, budget);
	if (!vrnic_injector_hold(inj, &ep->peer))
		return vrnic_nop_fail(&inj->op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	return vrnic_loop_native(inj, budget);
}

/* The operation is done or has failed: hand it back to the injector of the ring. */
static void lane_land(struct vrnic_lane *lane)
{
	struct vrnic_injector *inj = &lane->inj;
	struct vrnic_nflight *flight = lane_first(lane);

	vrnic_wire_forget(inj);
	vrnic_nop_typed_end(inj);
	if (inj->op.status == IB_WC_SUCCESS)
		vrnic_nop_count_target(inj);
	vrnic_nflight_result(flight, &inj->op);
	inj->op.active = false;
	inj->op.ep = NULL;
	inj->slots = NULL;
	inj->run.wait_until = 0;
	spin_lock_bh(&lane->lock);
	list_del(&flight->link);
	spin_unlock_bh(&lane->lock);
	llist_add(&flight->landed, &inj->fifo->inject.landed);
	vrnic_nflights_run(&inj->fifo->inject);
}

/* Do one step. Return: true if there may be more to do at once. */
static bool lane_step(struct vrnic_lane *lane, struct vrnic_budget *budget)
{
	struct vrnic_injector *inj = &lane->inj;
	enum vrnic_step step;

	if (vrnic_wire_waits(inj))
		return false;
	if (inj->op.status == IB_WC_SUCCESS && vrnic_must_wait(&inj->run))
		return false;
	if (!inj->op.active && !lane_fetch(lane))
		return false;
	step = lane_execute(inj, budget);
	trace_vrnic_native_execute(inj->fifo->id, &inj->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
	case VRNIC_STEP_FAIL:
		lane_land(lane);
		vrnic_budget_spend(budget, 1);
		return true;
	case VRNIC_STEP_MORE:
		budget->bytes = 0;
		return true;
	case VRNIC_STEP_DROP:	/* no native message is unreliable */
		break;
	case VRNIC_STEP_WAIT:
		return vrnic_injector_ready(inj);
	}
	return false;
}

static enum vrnic_verdict lane_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	struct vrnic_injector *inj = container_of(r, struct vrnic_injector, run);
	enum vrnic_verdict verdict = VRNIC_MORE;
	u64 before;

	while (vrnic_budget_left(budget)) {
		before = vrnic_budget_sum(budget);
		if (!lane_step(inj->lane, budget)) {
			verdict = VRNIC_IDLE;
			break;
		}
		vrnic_budget_step(budget, before);
	}
	vrnic_injector_release(inj);
	return verdict;
}

static const struct vrnic_runnable_ops lane_ops = {
	.run = lane_run,
};

/* ---- the end ---- */

/**
 * vrnic_lanes_park() - stop the lanes of a FIFO that is being destroyed
 * @fifo: FIFO whose ring is parked
 */
void vrnic_lanes_park(struct vrnic_fifo *fifo)
{
	struct vrnic_lane *lane;

	list_for_each_entry(lane, &fifo->lanes, all)
		vrnic_park(&lane->inj.run);
}

/* Put the peers in whose reception FIFOs the lanes wait for room. vrnic_lanes_park() was called. */
void vrnic_lanes_unstall(struct vrnic_fifo *fifo)
{
	struct vrnic_lane *lane;

	list_for_each_entry(lane, &fifo->lanes, all)
		vrnic_unstall(&lane->inj);
}

/**
 * vrnic_lanes_drain() - fail what is left, for the injector of the ring to count
 * @fifo: FIFO; vrnic_lanes_park() was called, and no link uses it
 */
void vrnic_lanes_drain(struct vrnic_fifo *fifo)
{
	struct vrnic_nflight *flight, *next;
	struct vrnic_lane *lane;

	list_for_each_entry(lane, &fifo->lanes, all) {
		/* the first flight has the operation in progress */
		if (lane->inj.op.active)
			vrnic_nflight_result(lane_first(lane), &lane->inj.op);
		lane->inj.op.ep = NULL;
		vrnic_injector_free(&lane->inj);
		list_for_each_entry_safe(flight, next, &lane->queue, link) {
			list_del(&flight->link);
			vrnic_nop_fail(&flight->op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_ENDPOINT);
			llist_add(&flight->landed, &fifo->inject.landed);
		}
	}
}

/* Free the lanes, once all of their flights have landed. */
void vrnic_lanes_free(struct vrnic_fifo *fifo)
{
	struct vrnic_lane *lane, *next;

	list_for_each_entry_safe(lane, next, &fifo->lanes, all) {
		WARN_ON_ONCE(lane->nr);
		kfree_rcu(lane, rcu);
	}
}
