// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The run of an injection FIFO: fetch a descriptor, execute it, count it, deliver its record. The
 * steps are those of a send queue (verbs/sq.c), with three differences. Each descriptor names its
 * peer, the slots after it may hold its data (S2), and a failure ends the operation but not the
 * ring.
 *
 * One task at a time does all this: the one that has the injector's run bit (VRNIC_RUN_BUSY). It
 * executes descriptors in order, and each is complete at its target before the next one starts. But
 * operations on another host go on by themselves (native/remote_flight.c), and their link keeps
 * them in order. What is behind them on the same endpoint may be executed meanwhile, but is counted
 * and reported only when they have landed: so records come in the order of posting. And so a fence,
 * which reports the first failure since the last fence (S5), need not know how many flights are
 * before it.
 */

#include "base/trace.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/ring.h"
#include "vrnic.h"

/* ---- fences ---- */

static bool is_fence(const struct vrnic_nop *op)
{
	return op->d.opcode == VRNIC_NOP_FENCE || op->d.opcode == VRNIC_NOP_FENCE_ALL;
}

/* Copy @of to @first if it is the earlier failure. Mark @of as reported in any case. */
static void take_failure(struct vrnic_failure *first, struct vrnic_failure *of)
{
	if (of->seq && (!first->seq || of->seq < first->seq))
		*first = *of;
	of->seq = 0;
}

/*
 * Find the first failure of all endpoints, of which there may be very many: nothing is held that
 * others wait for, and the run ends behind it.
 */
static void look_at_all(struct vrnic_injector *inj, struct vrnic_failure *first,
			struct vrnic_budget *budget)
{
	struct vrnic_endpoint *ep;
	unsigned long number;

	vrnic_injector_release(inj);
	budget->bytes = 0;
	xa_for_each(&inj->fifo->endpoints, number, ep) {
		if (!ep->gone)
			take_failure(first, &ep->failure);
		cond_resched();
	}
}

static enum vrnic_step fence_end(struct vrnic_fifo *fifo, struct vrnic_nop *op)
{
	vrnic_count(fifo->dev, FENCES);
	if (!op->failure.seq)
		return VRNIC_STEP_DONE;
	return vrnic_nop_fail(op, op->failure.status, op->failure.vendor_err);
}

/* A fence over @ep. The flights before it have landed. */
static enum vrnic_step inject_fence(struct vrnic_fifo *fifo, struct vrnic_nop *op,
				    struct vrnic_endpoint *ep)
{
	op->failure = (struct vrnic_failure){};
	take_failure(&op->failure, &ep->failure);
	return fence_end(fifo, op);
}

/* A fence over all endpoints. */
static enum vrnic_step inject_fence_all(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_fifo *fifo = inj->fifo;
	struct vrnic_nop *op = &inj->op;

	op->failure = (struct vrnic_failure){};
	take_failure(&op->failure, &fifo->stray);
	if (fifo->failures != fifo->fenced) {
		fifo->fenced = fifo->failures;
		look_at_all(inj, &op->failure, budget);
	}
	return fence_end(fifo, op);
}

/* ---- flights that have landed ---- */

/* Note the failure for the next fence; the earliest one counts. */
static void inject_note_failure(struct vrnic_fifo *fifo, struct vrnic_nop *op)
{
	struct vrnic_endpoint *ep = op->ep;
	struct vrnic_failure *first = ep && !ep->gone ? &ep->failure : &fifo->stray;

	fifo->failures++;
	op->failure = (struct vrnic_failure) {
		.seq = op->seq,
		.cookie = op->d.cookie,
		.opcode = op->d.opcode,
		.status = op->status,
		.vendor_err = op->vendor_err,
	};
	/* flights fail later than operations behind them */
	if (!first->seq || op->seq < first->seq)
		*first = op->failure;
}

/* A fence that reports an earlier failure did not fail itself. */
static void note_own_failure(struct vrnic_fifo *fifo, struct vrnic_nop *op)
{
	if (is_fence(op) && op->failure.seq)
		return;
	vrnic_count(fifo->dev, NATIVE_ERRORS);
	inject_note_failure(fifo, op);
}

/* Bytes for the counters of an operation that succeeded, or, as others are counted, 1. */
static u64 counts(const struct vrnic_nop *op)
{
	return vrnic_nop_counts_bytes(op) ? op->done : 1;
}

/* Return: 0 or enum vrnic_vendor_err. 0 bytes wake nobody; the peer counts down its own counter. */
static int land_count(struct vrnic_injector *inj, struct vrnic_nop *op)
{
	const struct vrnic_ndesc *d = &op->d;
	u64 own = inj->fifo->owner;
	int missing = 0;

	if (vrnic_nop_counts_bytes(op))
		op->done = d->length;
	if (d->opcode == VRNIC_NOP_PUT)
		vrnic_count_add(inj->fifo->dev, BYTES_PUT, op->done);
	else if (d->opcode == VRNIC_NOP_GET)
		vrnic_count_add(inj->fifo->dev, BYTES_GOT, op->done);
	if (counts(op) && d->local_counter)
		missing |= vrnic_counter_down(d->local_counter, own, counts(op));
	if (counts(op) && d->remote_counter)
		missing |= vrnic_counter_down(d->remote_counter, own, counts(op));
	return missing ? VRNIC_VERR_COUNTER : 0;
}

/* A fence that was in a lane. The failures of an endpoint that is gone are nobody's to ask for. */
static void land_fence(struct vrnic_fifo *fifo, struct vrnic_nop *op)
{
	if (op->ep->gone)
		vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_ENDPOINT);
	else
		inject_fence(fifo, op, op->ep);
}

/* Has a lane counted the operation as it moved its bytes? */
static bool is_counted(const struct vrnic_nflight *flight)
{
	return flight->lane && vrnic_nop_counts_bytes(&flight->op);
}

/* A flight has landed: count it, or fail its counters and note the failure. */
static void land_finish(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &flight->op.d;
	u64 own = inj->fifo->owner;
	struct vrnic_nop *op = &flight->op;
	int verr = 0;

	op->finished = true;
	if (op->status == IB_WC_SUCCESS && op->d.opcode == VRNIC_NOP_FENCE)
		land_fence(inj->fifo, op);
	if (op->status == IB_WC_SUCCESS && !is_counted(flight))
		verr = land_count(inj, op);
	if (verr)
		vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	if (op->status == IB_WC_SUCCESS)
		return;
	note_own_failure(inj->fifo, op);
	vrnic_counter_fail(d->local_counter, own, &op->failure, op->done);
	vrnic_counter_fail(d->remote_counter, own, &op->failure, op->done);
}

/* Count and free all flights of an injector that nobody runs any more. No link has one of them. */
void vrnic_nflights_land(struct vrnic_injector *inj)
{
	struct vrnic_nflight *flight;

	while ((flight = vrnic_nflights_next(inj))) {
		if (!flight->op.finished)
			land_finish(inj, flight);
		vrnic_nflight_free(inj, flight);
	}
	WARN_ON_ONCE(inj->nr_flights);
}

/* ---- an injection ring ---- */

/* The producer index is invalid, so no slot can be trusted: skip all, and tell the process. */
static void inject_ring_broken(struct vrnic_fifo *fifo)
{
	struct vrnic_ring *ring = &fifo->ring;

	vrnic_count(fifo->dev, RING_ERRORS);
	fifo->inject.doomed = 0;
	WRITE_ONCE(ring->idx, READ_ONCE(ring->hdr->prod));
	vrnic_ring_consume(ring, 0);
	vrnic_ring_error(ring);
}

static void inject_copy_slot(struct vrnic_ring *ring, u32 i, void *to)
{
	memcpy(to, vrnic_ring_slot(ring, ring->idx + i), VRNIC_SLOT_SIZE);
}

static bool has_endpoint(const struct vrnic_ndesc *d)
{
	return d->opcode != VRNIC_NOP_FENCE_ALL && d->opcode != VRNIC_NOP_WAIT;
}

/*
 * Find an endpoint, often that of the descriptor before. No endpoint is destroyed while the
 * injector runs, so what this run has found stays.
 */
static struct vrnic_endpoint *endpoint_of(struct vrnic_injector *inj, u32 number)
{
	if (!inj->found || inj->found->number != number)
		inj->found = vrnic_endpoint_named(inj->fifo, number);
	return inj->found;
}

/* Take a private copy of the next descriptor. Return: false if there is none. */
static bool inject_fetch(struct vrnic_injector *inj)
{
	struct vrnic_ring *ring = &inj->fifo->ring;
	struct vrnic_nop *op = &inj->op;
	u32 avail = vrnic_ring_avail(ring);

	if (!avail)
		return false;
	if (avail > ring->entries) {
		inject_ring_broken(inj->fifo);
		return false;
	}
	op->active = true;
	op->over = false;
	op->finished = false;
	op->checked = false;
	op->away = false;
	op->seq = ++inj->fifo->fetched;
	op->status = IB_WC_SUCCESS;
	op->vendor_err = VRNIC_VERR_NONE;
	op->tries = 0;
	op->done = 0;
	op->value = 0;
	op->failure = (struct vrnic_failure){};
	inject_copy_slot(ring, 0, &op->d);
	op->ep = has_endpoint(&op->d) ? endpoint_of(inj, op->d.endpoint) : NULL;
	if (op->ep)
		op->ep->posted++;
	if (!op->d.num_slots || op->d.num_slots > avail) {
		op->d.num_slots = 1;
		vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_SLOTS);
	} else if (op->d.num_slots > 1) {
		inject_copy_slot(ring, 1, &op->rmw);
	}
	if (inj->doomed) {
		inj->doomed--;
		vrnic_nop_fail(op, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_CANCELED);
	}
	vrnic_count(inj->fifo->dev, NATIVE_DESCRIPTORS);
	trace_vrnic_native_fetch(inj->fifo->id, &op->d);
	return true;
}

/* Check the descriptor. Return: false if the operation has failed. */
static bool inject_check(struct vrnic_nop *op)
{
	int verr = 0;

	if (op->status == IB_WC_SUCCESS && !op->checked)
		verr = vrnic_nop_check(op, false);
	if (verr)
		vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	return op->status == IB_WC_SUCCESS;
}

static enum vrnic_step inject_execute(struct vrnic_injector *inj,
				      struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_endpoint *ep = op->ep;
	bool good = inject_check(op);

	/* whatever becomes of it, it is told behind what waits */
	if (ep && !ep->gone && ep->laned)
		return vrnic_lane_post(inj);
	if (!good)
		return VRNIC_STEP_FAIL;
	vrnic_injector_reach(inj, NULL);
	if (op->d.opcode == VRNIC_NOP_WAIT)
		return vrnic_native_wait(inj);
	if (op->d.opcode == VRNIC_NOP_FENCE_ALL)
		return inject_fence_all(inj, budget);
	if (!ep)
		return vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_ENDPOINT);
	if (op->d.opcode == VRNIC_NOP_FENCE)
		return inject_fence(inj->fifo, op, ep);
	if (vrnic_lane_busy(inj->fifo, ep))
		return vrnic_lane_post(inj);
	vrnic_injector_reach(inj, ep->link);
	if (ep->link && vrnic_nflight_fits(inj))
		return vrnic_nflight_post(inj, budget);
	/* what follows takes longer: the flights need not wait for it */
	vrnic_nflights_push(inj);
	if (ep->link) {
		/* what may sleep must not keep a region of small puts */
		vrnic_held_put(&inj->local);
		return vrnic_wire_native(inj, budget);
	}
	if (!vrnic_injector_hold(inj, &ep->peer))
		return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	return vrnic_loop_native(inj, budget);
}

/* The operation is done or has failed: count it, or fail its counters and note the failure. */
static void inject_finish(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;
	int verr = 0;

	op->finished = true;
	/* a request is left if the operation's endpoint was destroyed, with its link */
	vrnic_wire_forget(inj);
	vrnic_virtual_forget(inj);
	/* a type may end with it, and its tables, which takes long: nobody waits for that */
	if (inj->typed_begun)
		vrnic_injector_release(inj);
	vrnic_nop_typed_end(inj);
	if (op->status == IB_WC_SUCCESS && !vrnic_nop_counts_bytes(op))
		verr = vrnic_nop_count(inj, 1);
	if (verr)
		vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	if (op->status == IB_WC_SUCCESS)
		return;
	if (op->d.opcode == VRNIC_NOP_WAIT)
		inj->doomed = max(inj->doomed, min_t(u32, op->d.arg, VRNIC_WAIT_DESCS));
	/* those that fail with a WAIT tell of it */
	if (op->d.opcode == VRNIC_NOP_WAIT && inj->doomed)
		return;
	note_own_failure(inj->fifo, op);
	vrnic_nop_failed(inj, &op->failure);
}

/* Deliver the record of an operation. Return: false if there is no room. */
static bool deliver_record(struct vrnic_injector *inj, const struct vrnic_nop *op)
{
	struct vrnic_record rec = {
		.kind = VRNIC_REC_COMPLETION,
		.opcode = op->d.opcode,
		.status = op->status,
		.vendor_err = op->vendor_err,
		.cookie = op->d.cookie,
		.endpoint = op->d.endpoint,
		.value = op->d.opcode == VRNIC_NOP_RMW ? op->value : op->done,
	};

	if (is_fence(op) && op->status != IB_WC_SUCCESS) {
		rec.failed_opcode = op->failure.opcode;
		rec.failed_cookie = op->failure.cookie;
	}
	if (!vrnic_record_post(inj->fifo, &rec, NULL, 0))
		return true;
	vrnic_stall(inj, inj->fifo);
	return false;
}

/* The same, if the descriptor asked for a record. */
static bool inject_deliver(struct vrnic_injector *inj, const struct vrnic_nop *op)
{
	return !(op->d.flags & VRNIC_NDESC_SIGNALED) || deliver_record(inj, op);
}

/* Is the operation one that goes on without the injector? */
static bool flies(const struct vrnic_injector *inj)
{
	const struct vrnic_endpoint *ep = inj->op.ep;

	return ep && !ep->gone && ep->link && vrnic_nflight_fits(inj) &&
	       !vrnic_lane_busy(inj->fifo, ep);
}

/*
 * Has the operation to wait for answers? Until they have come, GETs read the memory of their peers,
 * and GETs and RMWs change that of this process. Only what leaves both alone goes on: GETs, and
 * RMWs behind RMWs, whose answers keep their order if they are from one peer; fences; and what has
 * failed.
 */
static bool waits_for_answers(const struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;

	if (!inj->nr_gets && !inj->nr_rmws)
		return false;
	if (is_fence(op) || op->d.opcode == VRNIC_NOP_WAIT || op->status != IB_WC_SUCCESS)
		return false;
	/* a lane keeps the order of what goes to its peer */
	if (op->ep && vrnic_lane_busy(inj->fifo, op->ep))
		return false;
	if (!flies(inj) || op->d.opcode == VRNIC_NOP_PUT)
		return true;
	return op->d.opcode == VRNIC_NOP_RMW && inj->nr_gets;
}

/*
 * Has the operation to wait until flights have landed? A fence has, before it is executed, and
 * others are counted and reported only then. Each flight that lands runs the injector.
 */
static bool waits_for_flights(const struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;

	if (!inj->nr_flights || op->finished || op->away)
		return false;
	if (!op->over && waits_for_answers(inj))
		return true;
	/* what is left of endpoints that are gone may wait for a peer as long as that lives */
	if (op->d.opcode == VRNIC_NOP_FENCE_ALL)
		return inj->nr_flights != inj->nr_orphans;
	if (!op->ep || (op->ep->gone && op->ep->laned))
		return false;
	if (!op->over && op->d.opcode != VRNIC_NOP_FENCE && !op->ep->laned)
		return false;
	/* the operation itself was posted last; lanes keep their order themselves */
	return op->ep->landed + op->ep->laned + 1 != op->ep->posted;
}

/*
 * Free the slots before the record is visible, and before an operation that moves no bytes is
 * counted: a process that sees either may post again at once. (Inline data were used by now.)
 */
static bool inject_complete(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;

	op->over = true;
	if (waits_for_flights(inj))
		return false;
	if (!op->finished) {
		vrnic_ring_consume(&inj->fifo->ring, op->d.num_slots);
		if (!op->away)
			inject_finish(inj);
	}
	if (!op->away && !inject_deliver(inj, op))
		return false;
	if (!op->away)
		vrnic_nop_landed(inj->fifo, op);
	op->active = false;
	vrnic_budget_spend(budget, 1);
	return true;
}

/* Count and deliver the next flight that has landed. Return: false if its record finds no room. */
static bool inject_land(struct vrnic_injector *inj, struct vrnic_nflight *flight,
			struct vrnic_budget *budget)
{
	if (!flight->op.finished)
		land_finish(inj, flight);
	if (!inject_deliver(inj, &flight->op))
		return false;
	vrnic_nflight_free(inj, flight);
	vrnic_budget_spend(budget, 1);
	return true;
}

/*
 * May this run, which must not sleep, execute the operation? Fences do not sleep, nor do flights.
 * But a fence over all endpoints may have to look at very many of them. The end of other operations
 * may sleep, too, as it unpins pages that were written to.
 */
static bool is_soft(const struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;

	if (op->d.opcode == VRNIC_NOP_FENCE_ALL)
		return op->finished || inj->fifo->failures == inj->fifo->fenced;
	if (op->finished || op->d.opcode == VRNIC_NOP_FENCE || op->d.opcode == VRNIC_NOP_WAIT)
		return true;
	return flies(inj);
}

/* Is the operation a message that has found no room at the peer? */
static bool waits_for_room(const struct vrnic_injector *inj)
{
	return inj->op.ep && inj->op.d.opcode == VRNIC_NOP_MESSAGE && !inj->req.posted;
}

static bool any_landed(const struct vrnic_injector *inj)
{
	return inj->landing || !llist_empty(&inj->landed);
}

/* Do one step. Return: true if there may be more to do at once. */
static bool inject_step(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (any_landed(inj))
		return inject_land(inj, vrnic_nflights_next(inj), budget);
	if (vrnic_injector_waits(inj))
		return false;
	if (!inj->op.active) {
		/* the owner is about to ring for descriptors that it has not announced */
		if (budget->atomic && inj->fifo->ring.idx == inj->rung)
			return false;
		if (!inject_fetch(inj))
			return false;
		budget->taken++;
	}
	if (waits_for_flights(inj))
		return false;
	if (budget->atomic && !is_soft(inj)) {
		/* report MORE, so that a thread goes on */
		budget->descs = 0;
		return true;
	}
	if (inj->op.over)
		return inject_complete(inj, budget);
	step = inject_execute(inj, budget);
	trace_vrnic_native_execute(inj->fifo->id, &inj->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
	case VRNIC_STEP_FAIL:
		return inject_complete(inj, budget);
	case VRNIC_STEP_MORE:
		budget->bytes = 0;
		return true;
	case VRNIC_STEP_DROP:	/* no native message is unreliable */
		break;
	case VRNIC_STEP_WAIT:
		if (waits_for_room(inj) && vrnic_lane_post(inj) == VRNIC_STEP_DONE)
			return inject_complete(inj, budget);
		return vrnic_injector_ready(inj);
	}
	return false;
}

static enum vrnic_verdict inject_run(struct vrnic_runnable *r,
				     struct vrnic_budget *budget)
{
	struct vrnic_injector *inj =
		container_of(r, struct vrnic_injector, run);
	enum vrnic_verdict verdict = VRNIC_MORE;
	u64 before;

	if (budget->rung)
		inj->rung = READ_ONCE(inj->fifo->ring.hdr->prod);
	while (vrnic_budget_left(budget)) {
		before = vrnic_budget_sum(budget);
		if (!inject_step(inj, budget)) {
			verdict = VRNIC_IDLE;
			break;
		}
		vrnic_budget_step(budget, before);
	}
	vrnic_injector_release(inj);
	/* pages that a task or a work item has pinned too late */
	if (!inj->op.active)
		vrnic_virtual_forget(inj);
	vrnic_nflights_push(inj);
	budget->stream = vrnic_ring_streams(&inj->fifo->ring);
	/* over the wire a doorbell costs packets, too */
	if (inj->nr_flights != inj->nr_laned && vrnic_is_gathering(r))
		vrnic_ring_gather_behind(&inj->fifo->ring, 0);
	/* if the budget was just enough for all descriptors, no thread need go on */
	if (!inj->op.active && !any_landed(inj) && !vrnic_ring_avail(&inj->fifo->ring))
		verdict = VRNIC_IDLE;
	return verdict;
}

static struct vrnic_ring *ring_of(struct vrnic_runnable *r)
{
	return &container_of(r, struct vrnic_fifo, inject.run)->ring;
}

static void inject_spare(struct vrnic_runnable *r)
{
	vrnic_ring_spare_doorbell(ring_of(r));
}

static void inject_ask(struct vrnic_runnable *r)
{
	vrnic_ring_ask_doorbell(ring_of(r));
}

static bool inject_gather(struct vrnic_runnable *r, bool on)
{
	return vrnic_ring_gather(ring_of(r), on);
}

/* Softirq counts flights that have landed, completes fences behind them, and posts the next. */
static bool inject_soft(struct vrnic_runnable *r)
{
	return true;
}

/* How the engine runs the ring of an injection FIFO. */
const struct vrnic_runnable_ops vrnic_inject_ops = {
	.soft = inject_soft,
	.run = inject_run,
	.spare = inject_spare,
	.ask = inject_ask,
	.gather = inject_gather,
};
