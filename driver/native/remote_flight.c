// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Operations over a link that the injector of a ring does not wait for: puts, gets and
 * read-modify-writes of registered memory, and puts of data in the ring. The injector posts each as
 * a message of the link, and goes on with the next descriptor. Only when the link is done with a
 * flight does the injector count it and deliver its record.
 *
 * The link keeps the order of its messages. The peer executes them in this order, but makes the
 * answer to a GET from its memory later. So the injector posts nothing that changes memory behind a
 * GET, and nothing that reads memory behind what is still going to change it: waits_for_answers().
 * A link is done with a PUT when the peer has acknowledged it, and with others when their answer
 * has come as well. It hands its flights back in the order of their posting.
 *
 * A flight lives in three places, one after the other: on the link, in @landed of its injector, and
 * in @landing, once the injector has taken it from there. Small puts wait before that in @puts of
 * their injector, to share a message: native/link_puts.c.
 */

#include <linux/llist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/opcode.h"
#include "queue/qp_table.h"
#include "vrnic.h"

/*
 * An injector keeps some of its flights, to use them again: to allocate and charge one is a good
 * part of the work for a small put. These have room for a few bytes of data.
 */
#define SPARE_FLIGHTS	(VRNIC_LINK_FLIGHTS / 2)
#define SPARE_ROOM	VRNIC_NPUT_BYTES

/* Most data in the ring that are copied, so that their slots are free at once. */
#define INLINE_MAX	SZ_4K

/**
 * vrnic_nflight_fits() - can the operation go on without its injector?
 * @inj: injector of a ring, with a link
 *
 * Return: true for a put, get or read-modify-write of one message, of registered memory or of data
 * in the ring. For others, vrnic_wire_native() makes requests that the injector waits for.
 */
bool vrnic_nflight_fits(const struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	bool in_ring = d->flags & VRNIC_NDESC_INLINE;

	if (inj->req.posted || d->flags & (VRNIC_NDESC_TYPED | VRNIC_NDESC_VIRTUAL))
		return false;
	switch (d->opcode) {
	case VRNIC_NOP_PUT:
		return d->length <= (in_ring ? INLINE_MAX : VRNIC_NWIRE_BURST);
	case VRNIC_NOP_GET:
		return d->length <= VRNIC_NWIRE_BURST;
	default:
		return d->opcode == VRNIC_NOP_RMW;
	}
}

/* Is the operation a put that can share a packet with others? */
static bool is_small(const struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;

	return d->opcode == VRNIC_NOP_PUT && d->length && d->length <= SPARE_ROOM;
}

/* The slots of the ring are free once the descriptor is consumed, so copy the data in them. */
static void copy_inline(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg copy = { .kva = flight->data, .len = d->length }, ring[2];
	unsigned int i, nr = vrnic_native_ring(inj, d->local_addr, d->length, ring);
	u64 done = 0;

	for (i = 0; i < nr; done += ring[i++].len)
		vrnic_seg_copy(&copy, done, &ring[i], 0, ring[i].len, false);
	vrnic_nmsg_add(&flight->msg, &copy);
}

/* Copy the data of a small put. The injector keeps the region, for the next one. */
static int copy_put(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg copy = { .kva = flight->data, .len = d->length }, seg;
	struct vrnic_fifo *fifo = inj->fifo;
	int verr;

	verr = vrnic_seg_region(fifo->dev, fifo->pd, d->lkey, false, d->local_addr, d->length, 0,
				&inj->local, &seg);
	if (verr)
		return verr;
	vrnic_seg_read(&seg, flight->data, d->length);
	vrnic_seg_put(&seg);
	vrnic_nmsg_add(&flight->msg, &copy);
	return 0;
}

/* Find the data to put. Return: 0 or enum vrnic_vendor_err. */
static int find_data(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	if (d->flags & VRNIC_NDESC_INLINE) {
		copy_inline(inj, flight);
		return 0;
	}
	if (is_small(inj))
		return copy_put(inj, flight);
	verr = vrnic_wire_open_own(inj, d->local_addr, d->length, false, &seg);
	if (verr)
		return verr;
	if (d->length)
		vrnic_nmsg_add(&flight->msg, &seg);
	else
		vrnic_seg_put(&seg);
	return 0;
}

/*
 * Check the memory for what the peer answers, before the peer does anything. The answer looks it up
 * again. Return: 0 or enum vrnic_vendor_err.
 */
static int check_own(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	flight->await.key = d->lkey;
	flight->await.addr = d->local_addr;
	/* an RMW without a key wants no old value in memory */
	if (d->opcode == VRNIC_NOP_RMW && !d->lkey)
		return 0;
	verr = vrnic_wire_open_own(inj, d->local_addr, d->length, true, &seg);
	if (!verr)
		vrnic_seg_put(&seg);
	return verr;
}

static void fill_header(struct vrnic_nflight *flight)
{
	struct vrnic_nhdr h;

	if (flight->puts) {
		vrnic_nputs_fill(flight);
		return;
	}
	vrnic_wire_header(&flight->op, &h);
	h.id = flight->asks ? flight->await.id : 0;
	vrnic_nwire_fill(&flight->msg.hdr, &h);
}

/* Add the flight to those of the link, with the puts that share its message behind it. */
static void add_flights(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	LIST_HEAD(others);

	if (flight->puts)
		list_splice_init(&flight->link, &others);
	list_add_tail(&flight->link, &link->flights);
	list_splice_tail(&others, &link->flights);
}

/*
 * Hand the flights back that are over, up to the first that is not. Return: true if there were
 * some, so that their injector has to run.
 */
static bool hand_back(struct vrnic_link *link)
{
	struct vrnic_nflight *flight;
	bool any = false;

	lockdep_assert_held(&link->lock);
	while (!list_empty(&link->flights)) {
		flight = list_first_entry(&link->flights, struct vrnic_nflight, link);
		if (!flight->over)
			break;
		list_del(&flight->link);
		llist_add(&flight->landed, &flight->inj->landed);
		any = true;
	}
	return any;
}

/*
 * Hand the flight to the link. Its queue pair runs later, for all flights of this run of the
 * injector: vrnic_nflights_push(). Return: false: the link is dead.
 */
static bool nflight_enqueue(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	struct vrnic_injector *inj = flight->inj;
	bool dead;

	spin_lock_bh(&link->lock);
	dead = link->dead;
	if (!dead) {
		vrnic_link_note_use(link);
		if (flight->asks)
			vrnic_link_ask(link, &flight->await);
		fill_header(flight);
		add_flights(link, flight);
		vrnic_link_enqueue(link, &flight->msg);
		/* vrnic_destroy_link_qp() waits for this: the link may end after the unlock */
		if (list_empty(&link->pushed)) {
			refcount_inc(&link->qp->refs);
			list_add_tail(&link->pushed, &inj->pushed);
		}
	}
	spin_unlock_bh(&link->lock);
	return !dead;
}

static struct vrnic_nflight *take_spare(struct vrnic_injector *inj)
{
	struct vrnic_nflight *flight = llist_entry(inj->spare, struct vrnic_nflight, landed);

	inj->spare = flight->landed.next;
	inj->nr_spare--;
	return flight;
}

/* Return: memory for a flight with @bytes of data, or NULL. The caller may be a softirq. */
static struct vrnic_nflight *nflight_alloc(struct vrnic_injector *inj, size_t bytes, gfp_t gfp)
{
	struct vrnic_nflight *flight;
	struct mem_cgroup *was;

	if (bytes <= SPARE_ROOM && inj->spare)
		return take_spare(inj);
	bytes = max_t(size_t, bytes, SPARE_ROOM);
	was = vrnic_charge_begin(inj->fifo);
	flight = kmalloc(struct_size(flight, data, bytes), gfp | __GFP_ACCOUNT | __GFP_NOWARN);
	vrnic_charge_end(was);
	if (flight)
		flight->room = bytes;
	return flight;
}

/* Free a flight that is nowhere any more, or keep it. */
static void nflight_put(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	vrnic_nputs_put(inj, flight->puts);
	flight->puts = NULL;
	if (flight->room != SPARE_ROOM || inj->nr_spare == SPARE_FLIGHTS) {
		kfree(flight);
		return;
	}
	flight->landed.next = inj->spare;
	inj->spare = &flight->landed;
	inj->nr_spare++;
}

/* Free the flights that an injector keeps. Nobody runs it any more. */
void vrnic_nflights_free_spare(struct vrnic_injector *inj)
{
	while (inj->spare)
		kfree(take_spare(inj));
	vrnic_nputs_free_spare(inj);
}

static void nflight_init(struct vrnic_nflight *flight, struct vrnic_injector *inj)
{
	flight->lane = NULL;
	flight->msg.nr = 0;
	flight->msg.buf = NULL;
	flight->msg.charged = 0;
	flight->msg.answer = false;
	flight->msg.posted = true;
	flight->msg.req = NULL;
	flight->msg.flight = flight;
	flight->puts = NULL;
	flight->inj = inj;
	flight->op = inj->op;
	flight->asks = inj->op.d.opcode != VRNIC_NOP_PUT;
	flight->sent = false;
	flight->over = false;
	if (!flight->asks)
		return;
	flight->await = (struct vrnic_nawait){
		.op = &flight->op,
		.flight = flight,
		.wants = inj->op.d.opcode == VRNIC_NOP_GET ? inj->op.d.length : 0,
	};
}

/**
 * vrnic_nflight_new() - make a flight of an operation
 * @inj: injector with the operation. This may interrupt any process, and charges the owner of @inj
 * @bytes: room for data
 *
 * Return: the flight, or NULL.
 */
struct vrnic_nflight *vrnic_nflight_new(struct vrnic_injector *inj, size_t bytes)
{
	struct vrnic_nflight *flight = nflight_alloc(inj, bytes, GFP_NOWAIT);

	if (flight)
		nflight_init(flight, inj);
	return flight;
}

/* The same with room for data that are copied; if this run may sleep, with more patience. */
static struct vrnic_nflight *nflight_get(struct vrnic_injector *inj, bool atomic)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	size_t bytes = is_small(inj) || d->flags & VRNIC_NDESC_INLINE ? d->length : 0;
	struct vrnic_nflight *flight = vrnic_nflight_new(inj, bytes);

	if (flight || atomic)
		return flight;
	/* the flights before this one need not wait for memory */
	vrnic_nflights_push(inj);
	/* what reclaims must not keep a region */
	vrnic_held_put(&inj->local);
	/* there is another way: do not reclaim for long, and kill no process for it */
	flight = nflight_alloc(inj, bytes, GFP_KERNEL | __GFP_NORETRY);
	if (flight)
		nflight_init(flight, inj);
	return flight;
}

static void note_flight(struct vrnic_injector *inj, const struct vrnic_nflight *flight, int n)
{
	inj->nr_flights += n;
	if (flight->lane)
		inj->nr_laned += n;
	else if (flight->op.d.opcode == VRNIC_NOP_GET)
		inj->nr_gets += n;
	else if (flight->op.d.opcode == VRNIC_NOP_RMW)
		inj->nr_rmws += n;
}

/* From now on the operation of @inj goes on as @flight. */
void vrnic_nflight_depart(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	note_flight(inj, flight, 1);
	inj->op.away = true;
	inj->op.ep = NULL;
}

/* As many flights as an injector may have, and as a peer has answers for. */
static bool has_place(const struct vrnic_injector *inj)
{
	if (inj->nr_flights - inj->nr_laned == VRNIC_LINK_FLIGHTS)
		return false;
	return inj->op.d.opcode == VRNIC_NOP_PUT ||
	       inj->nr_gets + inj->nr_rmws < VRNIC_LINK_ASKS;
}

/*
 * The link is dead: the small puts that were to go over it fail. The link hands them back behind
 * those before them, which may still be on their way.
 */
static void fail_puts(struct vrnic_link *link, struct vrnic_nflight *first)
{
	u32 left = 1 + vrnic_nputs_behind(first);
	struct vrnic_injector *inj = first->inj;
	struct vrnic_nflight *flight = first;
	bool any;

	vrnic_nmsg_release(&first->msg);
	spin_lock_bh(&link->lock);
	add_flights(link, first);
	for (; left; left--, flight = list_next_entry(flight, link)) {
		vrnic_nop_fail(&flight->op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
		flight->sent = true;
		flight->over = true;
	}
	any = hand_back(link);
	spin_unlock_bh(&link->lock);
	if (any)
		vrnic_nflights_run(inj);
}

/* Post the small puts that this run has collected, in one message. */
static void post_puts(struct vrnic_injector *inj)
{
	struct vrnic_nflight *first = inj->puts;

	inj->puts = NULL;
	if (first && !nflight_enqueue(inj->puts_link, first))
		fail_puts(inj->puts_link, first);
	else if (first && first->puts)
		vrnic_count(inj->fifo->dev, PUTS_TOGETHER);
}

/* Collect a small put. If those before it cannot have it in their message, they are posted. */
static void collect_put(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	struct vrnic_nflight *first = inj->puts;

	if (first && inj->puts_link == inj->link && vrnic_nputs_join(inj->link, first, flight)) {
		list_add_tail(&flight->link, &first->link);
		return;
	}
	post_puts(inj);
	INIT_LIST_HEAD(&flight->link);
	inj->puts = flight;
	inj->puts_link = inj->link;
}

/* Post the operation, or collect it. Return: false: its link is dead. */
static bool nflight_depart(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	if (is_small(inj)) {
		collect_put(inj, flight);
		return true;
	}
	post_puts(inj);
	return nflight_enqueue(inj->link, flight);
}

/**
 * vrnic_nflight_post() - post an operation, and let it go on by itself
 * @inj: injector; its operation was checked, and vrnic_nflight_fits() is true
 * @budget: its bytes are reduced by those of the operation
 *
 * Return: VRNIC_STEP_DONE: @inj->op.away is set; VRNIC_STEP_WAIT: there are as many as may be, and
 * the injector runs when one has landed; VRNIC_STEP_MORE: this run must not sleep, and has no
 * memory; VRNIC_STEP_FAIL. Another run without memory makes a request and waits for it: then as
 * vrnic_wire_native().
 */
enum vrnic_step vrnic_nflight_post(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_nflight *flight;
	int verr;

	if (!has_place(inj))
		return VRNIC_STEP_WAIT;
	flight = nflight_get(inj, budget->atomic);
	if (!flight)
		return budget->atomic ? VRNIC_STEP_MORE : vrnic_wire_native(inj, budget);
	verr = flight->asks ? check_own(inj, flight) : find_data(inj, flight);
	if (verr) {
		nflight_put(inj, flight);
		return vrnic_nop_fail(op, IB_WC_LOC_PROT_ERR, verr);
	}
	if (!nflight_depart(inj, flight)) {
		vrnic_nmsg_release(&flight->msg);
		nflight_put(inj, flight);
		return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	}
	vrnic_nflight_depart(inj, flight);
	budget->bytes -= min_t(u64, budget->bytes, op->d.length);
	return VRNIC_STEP_DONE;
}

/**
 * vrnic_nflights_push() - post what was collected, and run the links that flights were posted to
 * @inj: injector whose run ends, or is about to do what takes longer
 */
void vrnic_nflights_push(struct vrnic_injector *inj)
{
	struct vrnic_link *link, *next;
	struct vrnic_qp *qp;

	post_puts(inj);
	list_for_each_entry_safe(link, next, &inj->pushed, pushed) {
		qp = link->qp;
		/* without the reference, the link may go */
		list_del_init(&link->pushed);
		vrnic_link_run(qp);
		vrnic_qp_put(qp);
	}
}

/* ---- what becomes of a flight: the link's run, or its end ---- */

/* Nobody waits for the answer any more. */
static void await_end(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	lockdep_assert_held(&link->lock);
	if (!flight->asks || flight->await.answered)
		return;
	flight->await.answered = true;
	list_del(&flight->await.link);
	if (link->rx.await == &flight->await)
		link->rx.await = NULL;
}

/* The link has failed. What has come from the peer before has been done. */
static void nflight_lost(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	struct vrnic_nop *op = &flight->op;

	flight->over = true;
	if (op->status == IB_WC_SUCCESS && !(flight->asks && flight->await.answered))
		vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	await_end(link, flight);
}

/**
 * vrnic_nflight_refused() - the peer could not execute a flight
 * @link: the link; the caller holds the run bit of its queue pair
 * @flight: the flight with the message; vrnic_nflight_sent() is to come
 * @status: enum ib_wc_status
 * @verr: enum vrnic_vendor_err
 * @index: which of several puts it was
 *
 * Return: what becomes of the message. FALSE: the peer has to answer, rather than to refuse.
 */
enum vrnic_refusal vrnic_nflight_refused(struct vrnic_link *link, struct vrnic_nflight *flight,
					 u8 status, u8 verr, u8 index)
{
	enum vrnic_refusal refusal = VRNIC_REFUSAL_SKIP;

	if (flight->asks)
		return VRNIC_REFUSAL_FALSE;
	if (flight->puts) {
		spin_lock_bh(&link->lock);
		refusal = vrnic_nputs_refused(flight, index, &flight);
		spin_unlock_bh(&link->lock);
	}
	if (refusal == VRNIC_REFUSAL_SKIP || refusal == VRNIC_REFUSAL_REST)
		vrnic_nop_fail(&flight->op, status, verr);
	return refusal;
}

/* Note the same for the flight itself, or for one that shared the message. */
static void note_sent(struct vrnic_link *link, struct vrnic_nflight *flight, u8 status)
{
	flight->sent = true;
	if (status != IB_WC_SUCCESS)
		nflight_lost(link, flight);
	else
		flight->over = !flight->asks || flight->await.answered;
	vrnic_link_ask_acked(link, &flight->await);
}

/**
 * vrnic_nflight_sent() - the peer has acknowledged the message of a flight, or the link has failed
 * @link: the link; the caller holds the run bit of its queue pair, or the queue pair has ended
 * @flight: the flight
 * @status: enum ib_wc_status of the message
 *
 * The memory of a put is given back here, as the injector may have to wait for a slow process.
 */
void vrnic_nflight_sent(struct vrnic_link *link, struct vrnic_nflight *flight, u8 status)
{
	u32 i, nr = 1 + vrnic_nputs_behind(flight), done = vrnic_nputs_done(flight);

	spin_lock_bh(&link->lock);
	vrnic_nmsg_unlink(link, &flight->msg);
	vrnic_nmsg_release(&flight->msg);
	for (i = 0; i < nr; i++, flight = list_next_entry(flight, link))
		note_sent(link, flight, i < done ? IB_WC_SUCCESS : status);
	link->landed |= hand_back(link);
	spin_unlock_bh(&link->lock);
}

/* Store the old value of an RMW where the descriptor asked for it. */
static void place_value(struct vrnic_nflight *flight)
{
	const struct vrnic_fifo *fifo = flight->inj->fifo;
	const struct vrnic_ndesc *d = &flight->op.d;
	struct vrnic_seg local, value = { .kva = &flight->op.value };
	int verr;

	flight->op.value = flight->await.value;
	if (!d->lkey)
		return;
	verr = vrnic_seg_region(fifo->dev, fifo->pd, d->lkey, false, d->local_addr, d->length,
				IB_ACCESS_LOCAL_WRITE, NULL, &local);
	if (verr) {
		vrnic_nop_fail(&flight->op, IB_WC_LOC_PROT_ERR, verr);
		return;
	}
	vrnic_seg_copy(&local, 0, &value, 0, d->length, true);
	vrnic_seg_put(&local);
}

/**
 * vrnic_nflight_answered() - the answer to a flight has come, and its data are in their place
 * @link: the link; the caller holds the run bit of its queue pair
 * @flight: the flight
 */
void vrnic_nflight_answered(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	const struct vrnic_nawait *await = &flight->await;

	if (await->status != IB_WC_SUCCESS)
		vrnic_nop_fail(&flight->op, await->status, await->vendor_err);
	else if (flight->op.d.opcode == VRNIC_NOP_RMW)
		place_value(flight);
	spin_lock_bh(&link->lock);
	flight->over = flight->sent;
	link->landed |= hand_back(link);
	spin_unlock_bh(&link->lock);
}

/**
 * vrnic_nflights_lost() - no answer comes over a link any more
 * @link: the link; no flight's message is in use. The caller holds the run bit of its queue pair,
 *	or the queue pair has ended
 */
void vrnic_nflights_lost(struct vrnic_link *link)
{
	struct vrnic_nflight *flight;

	spin_lock_bh(&link->lock);
	list_for_each_entry(flight, &link->flights, link)
		if (!flight->over)
			nflight_lost(link, flight);
	link->landed |= hand_back(link);
	spin_unlock_bh(&link->lock);
}

/* ---- the injector's run: flights that have landed ---- */

/* @op: what a lane has made of the flight */
void vrnic_nflight_result(struct vrnic_nflight *flight, const struct vrnic_nop *op)
{
	flight->op.status = op->status;
	flight->op.vendor_err = op->vendor_err;
	flight->op.done = op->done;
	flight->op.value = op->value;
}

/* Have an injector run for flights that have landed, here if this is a softirq. */
void vrnic_nflights_run(struct vrnic_injector *inj)
{
	if (in_softirq())
		vrnic_poke(&inj->run, false);
	else
		vrnic_queue(&inj->run);
}

/**
 * vrnic_nflights_next() - find the next flight that has landed
 * @inj: injector; the caller holds its run bit
 *
 * Return: the flight, in the order of each link; or NULL. It stays the next one until
 * vrnic_nflight_free().
 */
struct vrnic_nflight *vrnic_nflights_next(struct vrnic_injector *inj)
{
	if (!inj->landing && !llist_empty(&inj->landed))
		inj->landing = llist_reverse_order(llist_del_all(&inj->landed));
	return inj->landing ? llist_entry(inj->landing, struct vrnic_nflight, landed) : NULL;
}

/* Free the flight that vrnic_nflights_next() returned. */
void vrnic_nflight_free(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	inj->landing = flight->landed.next;
	note_flight(inj, flight, -1);
	if (flight->lane)
		vrnic_lane_landed(flight);
	vrnic_nop_landed(inj->fifo, &flight->op);
	nflight_put(inj, flight);
}
