// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Remote gets (S4): a peer sends descriptors to a FIFO of this host (it injects them), and an
 * injector of this FIFO runs them here, with the peer's rights. A chain of remote gets moves a
 * large transfer while neither process runs, so threads of the FIFO's crew run them.
 *
 * A FIFO has one queue, with an injector of its own (struct vrnic_source), for each peer. A peer
 * that has no room for a record, or for a remote get back, holds up only what it injected itself.
 * The FIFO's own ring does not hold up the queues either. A queue is bounded. Its memory is charged
 * to the process that fills it, or to the owner of the FIFO if that process is on another host. A
 * sender that finds the queue full tries again for a while, then fails. So two full queues cannot
 * wait for each other for ever.
 *
 * A peer's first remote get makes its queue. Empty queues are kept, unless there are many.
 */

#include <linux/slab.h>

#include "base/trace.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/opcode.h"
#include "vrnic.h"

/*
 * Flags for allocations while a target FIFO may be held, whose destruction waits for the reference.
 * They succeed at once, or not at all: a single reclaim may wait for the disk, and charging a task
 * above memory.high may put it to sleep.
 */
#define RGET_GFP	(GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)

/* Flags for allocations while no target is held: vrnic_rget_make_room(). */
#define ROOM_GFP	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

/* Most descriptors of one peer that wait; fewer if the peer is on another host (see above). */
#define DESCS_MAX	4096
#define DESCS_MAX_WIRE	1024

#define SOURCES_KEPT	32	/* if a FIFO has more queues, idle ones are freed */
#define SOURCES_MAX	4096

/**
 * struct vrnic_rget - the descriptors of one remote get, or a notice that a peer is gone
 * @link: entry in struct vrnic_source.queue
 * @from: peer that sent the descriptors, and whose rights count; notice: the peer that is gone
 * @host: notice: number of the peer's host
 * @way: link that the remote get came over, with a reference; NULL: the peer is on this host
 * @relayed: a descriptor that was injected at @from sent the remote get
 * @nr: number of descriptors; 0: this is a notice
 * @next: index of the next descriptor to run
 * @d: private copies of the descriptors
 */
struct vrnic_rget {
	struct list_head link;
	struct vrnic_address from;
	u64 host;
	struct vrnic_link *way;
	bool relayed;
	u32 nr;
	u32 next;
	struct vrnic_ndesc d[];
};

void vrnic_rget_free(struct vrnic_rget *rget)
{
	if (rget && rget->way)
		vrnic_link_put(rget->way);
	kfree(rget);
}

/**
 * vrnic_notice_new() - allocate the notice that a peer is gone, while the peer is still there
 * @peer: the peer
 * @host: number of the peer's host; goes into the record
 * @gfp: flags for the allocation
 *
 * A notice is a remote get without descriptors, for vrnic_notice_send(). It is allocated early, so
 * that the owner learns of the peer's end even if there is no memory then.
 *
 * Return: the notice, or NULL.
 */
struct vrnic_rget *vrnic_notice_new(const struct vrnic_address *peer, u64 host, gfp_t gfp)
{
	struct vrnic_rget *notice = kzalloc(sizeof(*notice), gfp);

	if (!notice)
		return NULL;
	notice->from = *peer;
	notice->host = host;
	return notice;
}

/* ---- queues ---- */

static void source_init(struct vrnic_source *src, struct vrnic_fifo *fifo,
			const struct vrnic_address *peer)
{
	if (peer)
		src->peer = *peer;
	INIT_HLIST_NODE(&src->node);
	INIT_LIST_HEAD(&src->queue);
	vrnic_injector_init(&src->inj, fifo, &vrnic_rget_ops);
}

static struct vrnic_source *source_new(struct vrnic_fifo *fifo,
				       const struct vrnic_address *peer)
{
	struct vrnic_source *src = kzalloc(sizeof(*src), RGET_GFP);

	if (src)
		source_init(src, fifo, peer);
	return src;
}

static void queue_drop(struct vrnic_source *src)
{
	struct vrnic_rget *rget, *next;

	list_for_each_entry_safe(rget, next, &src->queue, link) {
		list_del(&rget->link);
		vrnic_rget_free(rget);
	}
}

/* The caller has unlinked and parked @src, or has never published it. */
static void source_free(struct vrnic_source *src)
{
	queue_drop(src);
	vrnic_injector_free(&src->inj);
	kfree_rcu(src, rcu);
}

/* Free idle sources. If their peers send again, rgets_add_new() makes new ones. */
static void reap_work(struct work_struct *work)
{
	struct vrnic_rgets *rgets = container_of(work, struct vrnic_rgets, reap);
	struct vrnic_source *src;
	struct hlist_node *next;
	HLIST_HEAD(idle);
	int bucket;

	spin_lock(&rgets->lock);
	hash_for_each_safe(rgets->sources, bucket, next, src, node) {
		if (src->busy)
			continue;
		hash_del(&src->node);
		hlist_add_head(&src->node, &idle);
		rgets->nr--;
	}
	spin_unlock(&rgets->lock);
	hlist_for_each_entry_safe(src, next, &idle, node) {
		vrnic_park(&src->inj.run);
		source_free(src);
	}
}

void vrnic_rgets_init(struct vrnic_fifo *fifo)
{
	struct vrnic_rgets *rgets = &fifo->rgets;

	spin_lock_init(&rgets->lock);
	hash_init(rgets->sources);
	INIT_WORK(&rgets->reap, reap_work);
	source_init(&rgets->notices, fifo, NULL);
}

/**
 * vrnic_rgets_park() - stop the injectors that run remote gets, and accept no more of them
 * @fifo: FIFO that is being destroyed
 */
void vrnic_rgets_park(struct vrnic_fifo *fifo)
{
	struct vrnic_rgets *rgets = &fifo->rgets;
	struct vrnic_source *src;
	int bucket;

	spin_lock(&rgets->lock);
	rgets->closed = true;
	spin_unlock(&rgets->lock);
	cancel_work_sync(&rgets->reap);
	/* from here on no source is added to the table, and none leaves it */
	hash_for_each(rgets->sources, bucket, src, node)
		vrnic_park(&src->inj.run);
	vrnic_park(&rgets->notices.inj.run);
}

/**
 * vrnic_rgets_unstall() - put the peers in whose reception FIFOs the injectors wait for room
 * @fifo: FIFO with the injectors; vrnic_rgets_park() was called. The injectors are freed later, as
 *	links may still have requests of them
 */
void vrnic_rgets_unstall(struct vrnic_fifo *fifo)
{
	struct vrnic_source *src;
	int bucket;

	hash_for_each(fifo->rgets.sources, bucket, src, node)
		vrnic_unstall(&src->inj);
	vrnic_unstall(&fifo->rgets.notices.inj);
}

/**
 * vrnic_rgets_free() - drop the remote gets that were not run, and free their sources
 * @fifo: FIFO; no reference is left and no link uses it, or it was never published
 */
void vrnic_rgets_free(struct vrnic_fifo *fifo)
{
	struct vrnic_rgets *rgets = &fifo->rgets;
	struct vrnic_source *src;
	struct hlist_node *next;
	int bucket;

	hash_for_each_safe(rgets->sources, bucket, next, src, node) {
		hash_del(&src->node);
		source_free(src);
	}
	queue_drop(&rgets->notices);
	vrnic_injector_free(&rgets->notices.inj);
}

static struct vrnic_source *find_source(struct vrnic_rgets *rgets,
					const struct vrnic_address *peer)
{
	struct vrnic_source *src;

	lockdep_assert_held(&rgets->lock);
	hash_for_each_possible(rgets->sources, src, node, peer->fifo)
		if (vrnic_address_is(&src->peer, peer))
			return src;
	return NULL;
}

/* The caller holds @rgets->lock, so reap_work() does not free @src before it is busy. */
static void source_add(struct vrnic_rgets *rgets, struct vrnic_source *src,
		       struct vrnic_rget *rget)
{
	lockdep_assert_held(&rgets->lock);
	list_add_tail(&rget->link, &src->queue);
	src->descs += rget->nr;
	src->busy = true;
	vrnic_queue(&src->inj.run);
}

/**
 * vrnic_notice_send() - have a notice written into a FIFO as a record
 * @to: FIFO whose process is to be told
 * @notice: from vrnic_notice_new(); belongs to @to from now on
 *
 * The notice goes behind the remote gets of the peer that is gone, if there are any. It does so
 * even if their queue is full: there are no more notices than endpoints, and accepted links, which
 * are fewer while there are many notices (native/link.c).
 */
void vrnic_notice_send(struct vrnic_fifo *to, struct vrnic_rget *notice)
{
	struct vrnic_rgets *rgets = &to->rgets;
	struct vrnic_source *src;
	bool closed;

	spin_lock(&rgets->lock);
	closed = rgets->closed;
	src = find_source(rgets, &notice->from);
	if (!closed) {
		source_add(rgets, src ? src : &rgets->notices, notice);
		WRITE_ONCE(rgets->nr_notices, rgets->nr_notices + 1);
	}
	spin_unlock(&rgets->lock);
	if (closed)
		vrnic_rget_free(notice);
}

static void publish_source(struct vrnic_rgets *rgets, struct vrnic_source *src)
{
	lockdep_assert_held(&rgets->lock);
	hash_add(rgets->sources, &src->node, src->peer.fifo);
	if (++rgets->nr > SOURCES_KEPT)
		schedule_work(&rgets->reap);
}

/*
 * Put @rget into the queue of its peer. If the peer has no queue, publish *@spare, and set it to
 * NULL.
 *
 * Return: 0, -EPIPE (FIFO is gone), -EAGAIN (no room), or -ENOENT: no queue, and no spare one.
 */
static int rgets_add(struct vrnic_rgets *rgets, struct vrnic_rget *rget,
		     struct vrnic_source **spare)
{
	struct vrnic_source *src;
	int ret = 0;

	spin_lock(&rgets->lock);
	src = find_source(rgets, &rget->from);
	if (rgets->closed) {
		ret = -EPIPE;
	} else if (!src && rgets->nr >= SOURCES_MAX) {
		ret = -EAGAIN;
	} else if (!src && *spare) {
		src = *spare;
		*spare = NULL;
		publish_source(rgets, src);
	} else if (!src) {
		ret = -ENOENT;
	}
	if (!ret && src->descs + rget->nr > (rget->way ? DESCS_MAX_WIRE : DESCS_MAX))
		ret = -EAGAIN;
	if (!ret)
		source_add(rgets, src, rget);
	spin_unlock(&rgets->lock);
	return ret;
}

static int rgets_add_new(struct vrnic_fifo *to, struct vrnic_rget *rget)
{
	struct vrnic_source *spare = source_new(to, &rget->from);
	int ret;

	if (!spare)
		return -ENOMEM;
	ret = rgets_add(&to->rgets, rget, &spare);
	/* not used on failure, or because another task has made the queue meanwhile */
	if (spare)
		source_free(spare);
	return ret;
}

static struct vrnic_rget *source_take(struct vrnic_source *src)
{
	struct vrnic_rgets *rgets = &src->inj.fifo->rgets;
	struct vrnic_rget *rget;

	spin_lock(&rgets->lock);
	rget = list_first_entry_or_null(&src->queue, struct vrnic_rget, link);
	src->busy = rget;
	if (rget) {
		list_del(&rget->link);
		src->descs -= rget->nr;
	}
	spin_unlock(&rgets->lock);
	return rget;
}

static struct vrnic_rget *rget_new(const struct vrnic_address *from,
				   struct vrnic_link *link,
				   const struct vrnic_seg *descs, bool relayed)
{
	u32 nr = descs->len / sizeof(struct vrnic_ndesc);
	struct vrnic_seg copy = { .len = descs->len };
	struct vrnic_rget *rget;

	rget = kmalloc(struct_size(rget, d, nr), RGET_GFP);
	if (!rget)
		return NULL;
	rget->from = *from;
	rget->way = link;
	rget->relayed = relayed;
	if (link)
		refcount_inc(&link->refs);
	rget->nr = nr;
	rget->next = 0;
	copy.kva = rget->d;
	vrnic_seg_copy(&copy, 0, descs, 0, descs->len, false);
	return rget;
}

static int rget_deliver(struct vrnic_fifo *to, const struct vrnic_address *from,
			struct vrnic_link *link, const struct vrnic_seg *descs, bool relayed)
{
	struct vrnic_rget *rget = rget_new(from, link, descs, relayed);
	struct vrnic_source *none = NULL;
	int ret;

	if (!rget)
		return -ENOMEM;
	ret = rgets_add(&to->rgets, rget, &none);
	if (ret == -ENOENT)
		ret = rgets_add_new(to, rget);
	if (ret) {
		vrnic_rget_free(rget);
		return ret;
	}
	vrnic_count(to->dev, RGETS);
	return 0;
}

/**
 * vrnic_rget_deliver() - inject descriptors into a FIFO
 * @to: the FIFO
 * @from: address of the sender
 * @payer: FIFO of this host whose process is charged for the copy, whichever task runs this
 * @link: link that the descriptors came over, and that their requests go back over; NULL: the
 *	sender is on this host
 * @descs: the descriptors
 * @relayed: the descriptor that made @from send them was itself injected
 *
 * Does not sleep, not even for memory.
 *
 * Return: 0, -EAGAIN (the queue is full), -ENOMEM (vrnic_rget_make_room() may help), -EPIPE (the
 * FIFO is gone).
 */
int vrnic_rget_deliver(struct vrnic_fifo *to, const struct vrnic_address *from,
		       const struct vrnic_fifo *payer, struct vrnic_link *link,
		       const struct vrnic_seg *descs, bool relayed)
{
	struct mem_cgroup *was = vrnic_charge_begin(payer);
	int ret = rget_deliver(to, from, link, descs, relayed);

	vrnic_charge_end(was);
	return ret;
}

/**
 * vrnic_rget_make_room() - reclaim the memory that a remote get needs
 * @payer: FIFO whose process is charged. The caller runs an injector or a link of @payer, and holds
 *	no reference on another FIFO: this may take as long as @payer's memory is scarce
 * @bytes: size of the descriptors
 *
 * The memory is not reserved: another task may take it before the caller tries again.
 */
void vrnic_rget_make_room(const struct vrnic_fifo *payer, size_t bytes)
{
	struct mem_cgroup *was = vrnic_charge_begin(payer);

	might_sleep();
	kfree(kmalloc(sizeof(struct vrnic_rget) + bytes, ROOM_GFP));
	kfree(kmalloc(sizeof(struct vrnic_source), ROOM_GFP));
	vrnic_charge_end(was);
}

/* ---- running what was injected ---- */

static void free_rget(struct vrnic_injector *inj)
{
	vrnic_rget_free(inj->rget);
	inj->rget = NULL;
}

/* Let @inj->rget have a descriptor to run, or be a notice. Return: false if none waits. */
static bool next_rget(struct vrnic_injector *inj)
{
	struct vrnic_rget *rget = inj->rget;

	if (rget && rget->nr && rget->next == rget->nr)
		free_rget(inj);
	if (!inj->rget)
		inj->rget = source_take(container_of(inj, struct vrnic_source, inj));
	return inj->rget;
}

/* Copy the next descriptor of @inj->rget to @inj->op. */
static void rget_fetch(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	*op = (struct vrnic_nop) {
		.active = true,
		.d = inj->rget->d[inj->rget->next++],
	};
	inj->relayed = inj->rget->relayed;
	trace_vrnic_native_fetch(inj->fifo->id, &op->d);
}

/* A peer may wait for open counters only. Meanwhile what it has injected itself waits behind. */
static enum vrnic_step rget_wait(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	if (op->d.arg)
		return vrnic_nop_fail(op, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_OPCODE);
	return vrnic_native_wait(inj);
}

static enum vrnic_step rget_execute(struct vrnic_injector *inj,
				    struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	int verr;

	if (!op->checked) {
		verr = vrnic_nop_check(op, true);
		if (verr)
			return vrnic_nop_fail(op, IB_WC_REM_INV_REQ_ERR, verr);
	}
	if (op->d.opcode == VRNIC_NOP_WAIT)
		return rget_wait(inj);
	if (inj->link)
		return vrnic_wire_native(inj, budget);
	return vrnic_loop_native(inj, budget);
}

static void rget_failed(struct vrnic_injector *inj)
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
	if (op->paced)
		vrnic_pace_failed(inj->link);
	vrnic_nop_failed(inj, &op->failure);
}

/*
 * Tell the peer that a descriptor that it injected failed. Return: false if the record has to wait.
 */
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

/*
 * A notice: tell the FIFO's own process that the peer is gone. Return: false if there is no room.
 */
static bool tell_gone(struct vrnic_injector *inj)
{
	struct vrnic_rgets *rgets = &inj->fifo->rgets;
	struct vrnic_record rec = {
		.kind = VRNIC_REC_ERROR,
		.status = IB_WC_RETRY_EXC_ERR,
		.vendor_err = VRNIC_VERR_PEER,
		.source = inj->rget->from.fifo,
		.task = inj->rget->from.task,
		.host = inj->rget->host,
	};

	if (vrnic_record_post(inj->fifo, &rec, NULL, 0)) {
		vrnic_stall(inj, inj->fifo);
		return false;
	}
	free_rget(inj);
	spin_lock(&rgets->lock);
	WRITE_ONCE(rgets->nr_notices, rgets->nr_notices - 1);
	spin_unlock(&rgets->lock);
	return true;
}

/* Drop the current descriptor, and the rest of its remote get. */
static void rget_drop(struct vrnic_injector *inj)
{
	vrnic_wire_forget(inj);
	vrnic_untrigger(inj);
	vrnic_pace_leave(inj);
	inj->op.active = false;
	inj->rget->next = inj->rget->nr;
}

/* Make the peer that injected the descriptor the target. Return: false if the peer is gone. */
static bool rget_hold_peer(struct vrnic_injector *inj)
{
	struct vrnic_link *link = inj->rget->way;

	vrnic_injector_reach(inj, link);
	if (link)
		return !READ_ONCE(link->dead);
	return vrnic_injector_hold(inj, &inj->rget->from);
}

/* Fail the operation. Return: true if there may be more to do at once. */
static bool rget_fail_op(struct vrnic_injector *inj)
{
	if (!inj->op.finished)
		rget_failed(inj);
	if (!tell_peer(inj))
		return vrnic_injector_ready(inj);
	rget_drop(inj);
	return true;
}

static bool rget_done_op(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	int verr = 0;

	if (inj->op.d.opcode == VRNIC_NOP_RGET || inj->op.d.opcode == VRNIC_NOP_MESSAGE)
		verr = vrnic_nop_count(inj, 1);
	if (verr) {
		vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, verr);
		return rget_fail_op(inj);
	}
	inj->op.active = false;
	vrnic_budget_spend(budget, 1);
	return true;
}

/* Do one step. Return: true if there may be more to do at once. */
static bool rget_step(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (vrnic_injector_waits(inj))
		return false;
	if (!inj->op.active && !next_rget(inj))
		return false;
	if (!inj->rget->nr)
		return tell_gone(inj);
	if (!inj->op.active)
		rget_fetch(inj);
	if (!rget_hold_peer(inj)) {
		rget_drop(inj);
		return true;
	}
	if (inj->op.finished)
		return rget_fail_op(inj);
	step = rget_execute(inj, budget);
	trace_vrnic_native_execute(inj->fifo->id, &inj->op, step);
	switch (step) {
	case VRNIC_STEP_DONE:
		return rget_done_op(inj, budget);
	case VRNIC_STEP_FAIL:
		return rget_fail_op(inj);
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

static enum vrnic_verdict rget_run(struct vrnic_runnable *r,
				   struct vrnic_budget *budget)
{
	struct vrnic_injector *inj =
		container_of(r, struct vrnic_injector, run);
	enum vrnic_verdict verdict = VRNIC_MORE;
	u64 before;

	while (vrnic_budget_left(budget)) {
		before = vrnic_budget_sum(budget);
		if (!rget_step(inj, budget)) {
			verdict = VRNIC_IDLE;
			break;
		}
		vrnic_budget_step(budget, before);
	}
	vrnic_injector_release(inj);
	return verdict;
}

/* How the engine runs a peer's queue of remote gets. */
const struct vrnic_runnable_ops vrnic_rget_ops = {
	.run = rget_run,
};
