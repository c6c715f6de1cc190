// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Remote gets (S4): descriptors that a peer sends here, to be run here, by this
 * FIFO's engine, with that peer's rights. A transfer paces itself by chains of
 * them, and neither process runs meanwhile; so what arrives is run by a thread.
 *
 * They have a queue of their own, beside the injection ring: a ring that stands
 * still, because its next message finds no room, does not hold them up. The
 * queue is bounded. A remote get that finds it full is tried again for a while,
 * then fails; so two full queues cannot wait for each other for ever.
 */

#include <linux/slab.h>

#include "flow.h"
#include "native.h"
#include "trace.h"

#define RGETS_MAX	1024

/**
 * struct vrnic_rget - what one remote get brought
 * @link: in struct vrnic_rgets.queue
 * @from: the peer that sent it, whose rights count
 * @way: link that it came over, with a reference; NULL: the peer is on this host
 * @nr: descriptors; 0: a notice that @from is gone
 * @next: the next one to run
 * @d: private copies
 */
struct vrnic_rget {
	struct list_head link;
	struct vrnic_address from;
	struct vrnic_link *way;
	u32 nr;
	u32 next;
	struct vrnic_ndesc d[];
};

void vrnic_rgets_init(struct vrnic_rgets *rgets)
{
	spin_lock_init(&rgets->lock);
	INIT_LIST_HEAD(&rgets->queue);
}

void vrnic_rget_free(struct vrnic_rget *rget)
{
	if (rget && rget->way)
		vrnic_link_put(rget->way);
	kfree(rget);
}

/**
 * vrnic_notice_new() - make the notice that a peer is gone, for when it is
 * @peer: the peer
 */
struct vrnic_rget *vrnic_notice_new(const struct vrnic_address *peer)
{
	struct vrnic_rget *notice = kzalloc(sizeof(*notice), GFP_KERNEL_ACCOUNT);

	if (notice)
		notice->from = *peer;
	return notice;
}

/**
 * vrnic_notice_send() - have a notice become a record
 * @to: who is to be told
 * @notice: what vrnic_notice_new() made; belongs to @to from now on
 *
 * However full the queue is: there are not more of them than endpoints.
 */
void vrnic_notice_send(struct vrnic_fifo *to, struct vrnic_rget *notice)
{
	struct vrnic_rgets *rgets = &to->rgets;
	bool closed;

	spin_lock(&rgets->lock);
	closed = rgets->closed;
	if (!closed) {
		list_add_tail(&notice->link, &rgets->queue);
		rgets->nr++;
	}
	spin_unlock(&rgets->lock);
	if (closed)
		vrnic_rget_free(notice);
	else
		vrnic_queue(&to->rget.run);
}

static int rgets_add(struct vrnic_rgets *rgets, struct vrnic_rget *rget)
{
	int ret = 0;

	spin_lock(&rgets->lock);
	if (rgets->closed)
		ret = -EPIPE;
	else if (rgets->nr >= RGETS_MAX)
		ret = -EAGAIN;
	else
		list_add_tail(&rget->link, &rgets->queue);
	rgets->nr += !ret;
	spin_unlock(&rgets->lock);
	return ret;
}

static struct vrnic_rget *rgets_take(struct vrnic_rgets *rgets)
{
	struct vrnic_rget *rget;

	spin_lock(&rgets->lock);
	rget = list_first_entry_or_null(&rgets->queue, struct vrnic_rget, link);
	if (rget) {
		list_del(&rget->link);
		rgets->nr--;
	}
	spin_unlock(&rgets->lock);
	return rget;
}

/**
 * vrnic_rgets_close() - take nothing in any more, forget what is there
 * @fifo: its @rget injector is parked for good
 */
void vrnic_rgets_close(struct vrnic_fifo *fifo)
{
	struct vrnic_rget *rget;

	spin_lock(&fifo->rgets.lock);
	fifo->rgets.closed = true;
	spin_unlock(&fifo->rgets.lock);
	while ((rget = rgets_take(&fifo->rgets)))
		vrnic_rget_free(rget);
}

/**
 * vrnic_rget_deliver() - hand descriptors to a FIFO's engine
 * @to: the FIFO
 * @from: who sends them
 * @link: how they came, and what they ask for goes back; NULL: from this host
 * @descs: the descriptors
 *
 * Return: 0, -ENOMEM, -EAGAIN (the queue is full), -EPIPE (the FIFO is gone).
 */
int vrnic_rget_deliver(struct vrnic_fifo *to, const struct vrnic_address *from,
		       struct vrnic_link *link, const struct vrnic_seg *descs)
{
	u32 nr = descs->len / sizeof(struct vrnic_ndesc);
	struct vrnic_seg copy = { .len = descs->len };
	struct vrnic_rget *rget;
	int ret;

	rget = kmalloc(struct_size(rget, d, nr), GFP_KERNEL | __GFP_NOWARN);
	if (!rget)
		return -ENOMEM;
	rget->from = *from;
	rget->way = link;
	if (link)
		refcount_inc(&link->refs);
	rget->nr = nr;
	rget->next = 0;
	copy.kva = rget->d;
	vrnic_seg_copy(&copy, 0, descs, 0, descs->len, false);
	ret = rgets_add(&to->rgets, rget);
	if (ret) {
		vrnic_rget_free(rget);
		return ret;
	}
	vrnic_count(to->dev, RGETS);
	vrnic_queue(&to->rget.run);
	return 0;
}

/* ---- running what was injected ---- */

static void free_rget(struct vrnic_injector *inj)
{
	vrnic_rget_free(inj->rget);
	inj->rget = NULL;
}

/* Have one with something to do in @inj->rget. Return: false if there is none. */
static bool next_rget(struct vrnic_injector *inj)
{
	struct vrnic_rget *rget = inj->rget;

	if (rget && rget->nr && rget->next == rget->nr)
		free_rget(inj);
	if (!inj->rget)
		inj->rget = rgets_take(&inj->fifo->rgets);
	return inj->rget;
}

/* Have the next descriptor of @inj->rget in @inj->op. */
static void fetch(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	*op = (struct vrnic_nop) {
		.active = true,
		.d = inj->rget->d[inj->rget->next++],
	};
	trace_vrnic_native_fetch(inj->fifo->id, &op->d);
}

static enum vrnic_step execute(struct vrnic_injector *inj,
			       struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	int verr;

	if (!op->checked) {
		verr = vrnic_nop_check(op, true);
		if (verr)
			return vrnic_nop_fail(op, IB_WC_REM_INV_REQ_ERR, verr);
	}
	if (inj->link)
		return vrnic_wire_native(inj, budget);
	return vrnic_loop_native(inj, budget);
}

static void failed(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	op->finished = true;
	op->failure = (struct vrnic_failure) {
		.cookie = op->d.cookie,
		.opcode = op->d.opcode,
		.status = op->status,
		.vendor_err = op->vendor_err,
	};
	vrnic_count(inj->fifo->dev, NATIVE_ERRORS);
	vrnic_nop_failed(inj, &op->failure);
}

/* Let the peer know. Return: false if there is no room for that yet. */
static bool tell_peer(struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;
	struct vrnic_record rec = {
		.kind = VRNIC_REC_ERROR,
		.opcode = op->d.opcode,
		.status = op->status,
		.vendor_err = op->vendor_err,
		.cookie = op->d.cookie,
		.value = op->done,
		.source = inj->fifo->id,
		.task = inj->fifo->address.task,
	};

	if (inj->link)
		return vrnic_wire_tell(inj);
	if (!vrnic_record_post(inj->peer, &rec, NULL, 0))
		return true;
	vrnic_stall(inj, inj->peer);
	return false;
}

/* A peer is gone: let the own process know. Return: false if there is no room. */
static bool tell_gone(struct vrnic_injector *inj)
{
	struct vrnic_record rec = {
		.kind = VRNIC_REC_ERROR,
		.status = IB_WC_RETRY_EXC_ERR,
		.vendor_err = VRNIC_VERR_PEER,
		.source = inj->rget->from.fifo,
		.task = inj->rget->from.task,
	};

	if (vrnic_record_post(inj->fifo, &rec, NULL, 0)) {
		vrnic_stall(inj, inj->fifo);
		return false;
	}
	free_rget(inj);
	return true;
}

/* What came with it is dropped. */
static void drop(struct vrnic_injector *inj)
{
	vrnic_wire_forget(inj);
	inj->op.active = false;
	inj->rget->next = inj->rget->nr;
}

/* Whoever injected it can be reached. */
static bool hold_peer(struct vrnic_injector *inj)
{
	struct vrnic_link *link = inj->rget->way;

	vrnic_injector_reach(inj, link);
	if (link)
		return !READ_ONCE(link->dead);
	return vrnic_injector_hold(inj, &inj->rget->from);
}

/* Return: true if there may be more to do at once. */
static bool fail_op(struct vrnic_injector *inj)
{
	if (!inj->op.finished)
		failed(inj);
	if (!tell_peer(inj))
		return vrnic_injector_ready(inj);
	drop(inj);
	return true;
}

static bool done_op(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	int verr = 0;

	if (inj->op.d.opcode == VRNIC_NOP_RGET)
		verr = vrnic_nop_count(inj, 1);
	if (verr) {
		vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, verr);
		return fail_op(inj);
	}
	inj->op.active = false;
	vrnic_budget_spend(budget, 1);
	return true;
}

/* Return: true if there may be more to do at once. */
static bool step(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (vrnic_injector_waits(inj) || vrnic_wire_waits(inj))
		return false;
	if (!inj->op.active && !next_rget(inj))
		return false;
	if (!inj->rget->nr)
		return tell_gone(inj);
	if (!inj->op.active)
		fetch(inj);
	if (!hold_peer(inj)) {
		drop(inj);
		return true;
	}
	if (inj->op.finished)
		return fail_op(inj);
	step = execute(inj, budget);
	trace_vrnic_native_execute(inj->fifo->id, &inj->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
		return done_op(inj, budget);
	case VRNIC_STEP_FAIL:
		return fail_op(inj);
	case VRNIC_STEP_MORE:
		budget->bytes = 0;
		return true;
	case VRNIC_STEP_WAIT:
		return vrnic_injector_ready(inj);
	}
	return false;
}

static enum vrnic_verdict rget_run(struct vrnic_runnable *r,
				   struct vrnic_budget *budget)
{
	struct vrnic_injector *inj =
		container_of(r, struct vrnic_injector, run);
	enum vrnic_verdict verdict = VRNIC_MORE;
	u64 before;

	while (vrnic_budget_left(budget)) {
		before = vrnic_budget_sum(budget);
		if (!step(inj, budget)) {
			verdict = VRNIC_IDLE;
			break;
		}
		vrnic_budget_step(budget, before);
	}
	vrnic_injector_release(inj);
	return verdict;
}

/* A queue of remote gets, as the engine runs it. */
const struct vrnic_runnable_ops vrnic_rget_ops = {
	.run = rget_run,
};
