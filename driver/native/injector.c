// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What all injectors share: those of rings (native/inject.c), of lanes (native/lane.c), and of
 * remote gets (native/rget.c). An injector executes one operation at a time. It keeps the target of
 * the last one, and its regions, until its run ends. Here are the counters of an operation, too,
 * and the one operation that needs neither target nor memory: a WAIT.
 */

#include <linux/ktime.h>

#include "engine/engine.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/native.h"
#include "vrnic.h"

/* Note a failure in @op. Return: VRNIC_STEP_FAIL, for the caller to return. */
enum vrnic_step vrnic_nop_fail(struct vrnic_nop *op, u8 status, int vendor_err)
{
	op->status = status;
	op->vendor_err = vendor_err;
	return VRNIC_STEP_FAIL;
}

void vrnic_injector_init(struct vrnic_injector *inj, struct vrnic_fifo *fifo,
			 const struct vrnic_runnable_ops *ops)
{
	inj->fifo = fifo;
	inj->req.await.op = &inj->op;
	INIT_LIST_HEAD(&inj->pushed);
	init_llist_head(&inj->landed);
	INIT_LIST_HEAD(&inj->stall);
	INIT_LIST_HEAD(&inj->trigger.link);
	vrnic_runnable_init(&inj->run, fifo->crew, ops);
}

/* The run ends: put the target and the regions that the injector kept. */
void vrnic_injector_release(struct vrnic_injector *inj)
{
	inj->found = NULL;
	vrnic_held_put(&inj->local);
	vrnic_held_put(&inj->remote);
	if (inj->peer)
		vrnic_fifo_put(inj->peer);
	inj->peer = NULL;
}

/**
 * vrnic_injector_hold() - take a reference on the target, in @inj->peer, until the run ends
 * @inj: injector
 * @peer: address of the target, on this host
 *
 * Return: false if the target is gone, or cannot be reached any more.
 */
bool vrnic_injector_hold(struct vrnic_injector *inj, const struct vrnic_address *peer)
{
	struct vrnic_fifo *found = inj->peer;

	if (found && found->id == peer->fifo &&
	    found->address.secret == peer->secret)
		return true;
	if (found) {
		vrnic_held_put(&inj->remote);
		vrnic_fifo_put(found);
		inj->peer = NULL;
	}
	found = vrnic_fifo_get(peer->fifo);
	if (!found)
		return false;
	if (found->address.secret != peer->secret ||
	    !vrnic_same_net(found->dev, inj->fifo->dev)) {
		vrnic_fifo_put(found);
		return false;
	}
	inj->peer = found;
	return true;
}

/**
 * vrnic_injector_reach() - set the link to the target of the next operation
 * @inj: injector
 * @link: the link; NULL: the target is on this host. No reference is taken: endpoint_destroy()
 *	parks the injector before it leaves the link, and a remote get has a reference of its own
 */
void vrnic_injector_reach(struct vrnic_injector *inj, struct vrnic_link *link)
{
	if (link && inj->peer)
		vrnic_injector_release(inj);
	inj->link = link;
}

/*
 * The operation has to wait: set the timer, if it waits for a time. Return: true if that time has
 * passed during the step, so the caller can go on; else the timer, or the event that the operation
 * waits for, will run the injector.
 */
bool vrnic_injector_ready(struct vrnic_injector *inj)
{
	return inj->run.wait_until && !vrnic_must_wait(&inj->run);
}

/* Is it too early for the next step of an injector that has something to wait for? */
bool vrnic_injector_must_wait(struct vrnic_injector *inj)
{
	if (vrnic_trigger_fired(inj))
		inj->run.wait_until = 0;
	return vrnic_must_wait(&inj->run) || vrnic_wire_waits(inj);
}

/* Free what @inj holds, but not @inj. Nobody runs @inj any more, and no link uses @inj->req. */
void vrnic_injector_free(struct vrnic_injector *inj)
{
	vrnic_unstall(inj);
	vrnic_untrigger(inj);
	vrnic_pace_leave(inj);
	vrnic_nflights_land(inj);
	vrnic_nflights_free_spare(inj);
	vrnic_nop_landed(inj->fifo, &inj->op);
	vrnic_wire_forget(inj);
	vrnic_virtual_free(inj);
	vrnic_nop_typed_free(inj);
	vrnic_rget_free(inj->rget);
	inj->rget = NULL;
}

/* ---- the counters of an operation ---- */

/**
 * vrnic_nop_may_name() - may an injected descriptor name this counter of the peer that sent it?
 * @inj: injector; holds the peer, if the peer is on this host
 * @id: counter, or 0
 *
 * Return: false if the descriptor was relayed, and the counter is neither open nor bound to this
 * FIFO. True if the peer is on another host, which checks this itself.
 */
bool vrnic_nop_may_name(struct vrnic_injector *inj, u32 id)
{
	if (!id || !inj->relayed || !inj->peer)
		return true;
	return vrnic_counter_may_name(id, inj->peer->owner, &inj->fifo->address);
}

/**
 * vrnic_nop_count() - count down the counters of an operation
 * @inj: injector; it holds the peer, if its operation has one
 * @n: bytes, or 1
 *
 * The local counter belongs to this FIFO's process, the target counter to the peer. The remote
 * counter belongs to the process that chose the descriptor: the peer that injected it, or the owner
 * of the ring. A peer on another host has counted down its own counters.
 *
 * Return: 0 or enum vrnic_vendor_err.
 */
int vrnic_nop_count(struct vrnic_injector *inj, u64 n)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 own = inj->fifo->owner;
	u64 peer = inj->peer ? inj->peer->owner : 0;
	int missing = 0;

	if (d->target_counter && !inj->link)
		missing |= vrnic_counter_down(d->target_counter, peer, n);
	if (d->local_counter)
		missing |= vrnic_counter_down(d->local_counter, own, n);
	if (d->remote_counter && !(inj->link && inj->rget))
		missing |= vrnic_counter_down(d->remote_counter,
					      inj->rget ? peer : own, n);
	return missing ? VRNIC_VERR_COUNTER : 0;
}

/* A lane has executed an operation that moves no bytes: count it at the peer, where it is done. */
void vrnic_nop_count_target(struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;

	if (vrnic_nop_counts_bytes(op) || !op->d.target_counter || inj->link)
		return;
	if (vrnic_counter_down(op->d.target_counter, inj->peer->owner, 1))
		vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_COUNTER);
}

/* Fail the counters of the process that chose the descriptor. */
void vrnic_nop_failed(struct vrnic_injector *inj, const struct vrnic_failure *failure)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 own = inj->fifo->owner;
	u64 peer = inj->peer ? inj->peer->owner : 0;
	u64 placed = inj->op.done;

	if (!inj->rget) {
		vrnic_counter_fail(d->local_counter, own, failure, placed);
		vrnic_counter_fail(d->remote_counter, own, failure, placed);
		return;
	}
	if (!peer)
		return;
	if (vrnic_nop_may_name(inj, d->remote_counter))
		vrnic_counter_fail(d->remote_counter, peer, failure, placed);
	if (vrnic_nop_may_name(inj, d->target_counter))
		vrnic_counter_fail(d->target_counter, peer, failure, placed);
}

/* ---- WAIT ---- */

#define WAIT_LOOK_NS	NSEC_PER_SEC	/* between two looks whether the peer is still there */
#define WAIT_CROWD_NS	NSEC_PER_MSEC	/* between the first looks at a crowded counter */
#define WAIT_DOUBLED	6

static enum vrnic_step wait_failed(struct vrnic_injector *inj)
{
	const struct vrnic_trigger *t = &inj->trigger;

	/* the process may have written any status into its counter, also success */
	if (!t->status || t->status > IB_WC_GENERAL_ERR)
		return vrnic_nop_fail(&inj->op, IB_WC_GENERAL_ERR, t->vendor_err);
	return vrnic_nop_fail(&inj->op, t->status, t->vendor_err);
}

static u64 crowd_ns(struct vrnic_nop *op)
{
	if (op->tries < WAIT_DOUBLED)
		op->tries++;
	return (u64)WAIT_CROWD_NS << op->tries;
}

/**
 * vrnic_native_wait() - execute a WAIT
 * @inj: injector; its operation was checked
 *
 * Return: VRNIC_STEP_DONE; VRNIC_STEP_WAIT: the injector runs when the counter has fallen or
 * failed, and, if a peer has injected the WAIT, now and then; VRNIC_STEP_FAIL.
 */
enum vrnic_step vrnic_native_wait(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	switch (vrnic_counter_trigger(inj, op->d.lkey, op->d.length)) {
	case VRNIC_FIRED_FELL:
		return VRNIC_STEP_DONE;
	case VRNIC_FIRED_FAILED:
		return wait_failed(inj);
	case VRNIC_FIRED_GONE:
		return vrnic_nop_fail(op, inj->rget ? IB_WC_REM_ACCESS_ERR : IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_COUNTER);
	case VRNIC_FIRED_NOT:
		break;
	}
	if (!READ_ONCE(inj->trigger.counter))
		inj->run.wait_until = ktime_get_ns() + crowd_ns(op);
	else if (inj->rget)
		inj->run.wait_until = ktime_get_ns() + WAIT_LOOK_NS;
	return VRNIC_STEP_WAIT;
}
