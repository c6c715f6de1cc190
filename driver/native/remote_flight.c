// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Puts to another host that the injector of a ring does not wait for. It posts each as a message of
 * the link, and goes on with the next descriptor. The link, which keeps the order of its messages,
 * tells when the peer has executed a put, or why it has not. Only then does the injector count the
 * put and deliver its record.
 *
 * A put lives in three places, one after the other: on the link, in @landed of its injector, and in
 * @landing, once the injector has taken it from there.
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

/* Most data in the ring that are copied, so that their slots are free at once. */
#define INLINE_MAX	SZ_4K

/**
 * vrnic_nflight_fits() - can the operation go on without its injector?
 * @inj: injector of a ring, with a link
 *
 * Return: true for a put of one message, of registered memory or of data in the ring. For others,
 * vrnic_wire_native() makes requests that the injector waits for.
 */
bool vrnic_nflight_fits(const struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;

	return op->d.opcode == VRNIC_NOP_PUT && !inj->req.posted &&
	       !(op->d.flags & (VRNIC_NDESC_TYPED | VRNIC_NDESC_VIRTUAL)) &&
	       op->d.length <= (op->d.flags & VRNIC_NDESC_INLINE ? INLINE_MAX : VRNIC_NWIRE_BURST);
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

/* Find the data. Return: 0 or enum vrnic_vendor_err. */
static int find_data(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	if (d->flags & VRNIC_NDESC_INLINE) {
		copy_inline(inj, flight);
		return 0;
	}
	verr = vrnic_wire_open_own(inj, d->local_addr, d->length, false, &seg);
	if (verr)
		return verr;
	if (d->length)
		vrnic_nmsg_add(&flight->msg, &seg);
	else
		vrnic_seg_put(&seg);
	return 0;
}

static void fill_header(struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &flight->op.d;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_PUT,
		.data = d->length,
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.counter = { d->target_counter },
	};

	vrnic_nwire_fill(&flight->msg.hdr, &h);
}

/*
 * Hand the put to the link. Its queue pair runs later, for all puts of this run of the injector:
 * vrnic_nflights_push(). Return: false: the link is dead.
 */
static bool nflight_enqueue(struct vrnic_link *link, struct vrnic_nflight *flight)
{
	struct vrnic_injector *inj = flight->inj;
	bool dead;

	spin_lock_bh(&link->lock);
	dead = link->dead;
	if (!dead) {
		/* VRNIC_LINK_KEEP_SLOTS: answers leave room for all puts of an injector */
		WARN_ON_ONCE(!vrnic_link_has_room(link, 0));
		vrnic_link_enqueue(link, &flight->msg);
		/* vrnic_destroy_qp() waits for this: the link may end after the unlock */
		if (list_empty(&link->pushed)) {
			refcount_inc(&link->qp->refs);
			list_add_tail(&link->pushed, &inj->pushed);
		}
	}
	spin_unlock_bh(&link->lock);
	return !dead;
}

/*
 * Return: memory for a put, charged to the process with the ring, or NULL. The caller may be a
 * softirq that interrupted any process.
 */
static struct vrnic_nflight *nflight_alloc(struct vrnic_injector *inj, gfp_t gfp)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	size_t bytes = d->flags & VRNIC_NDESC_INLINE ? d->length : 0;
	struct mem_cgroup *was = vrnic_charge_begin(inj->fifo);
	struct vrnic_nflight *flight;

	flight = kmalloc(struct_size(flight, data, bytes), gfp | __GFP_ACCOUNT | __GFP_NOWARN);
	vrnic_charge_end(was);
	return flight;
}

static struct vrnic_nflight *nflight_new(struct vrnic_injector *inj, bool atomic)
{
	struct vrnic_nflight *flight = nflight_alloc(inj, GFP_NOWAIT);

	if (flight || atomic)
		return flight;
	/* the puts before this one need not wait for memory */
	vrnic_nflights_push(inj);
	/* there is another way: do not reclaim for long, and kill no process for it */
	return nflight_alloc(inj, GFP_KERNEL | __GFP_NORETRY);
}

static void nflight_init(struct vrnic_nflight *flight, struct vrnic_injector *inj)
{
	flight->msg.nr = 0;
	flight->msg.buf = NULL;
	flight->msg.charged = 0;
	flight->msg.answer = false;
	flight->msg.posted = true;
	flight->msg.req = NULL;
	flight->msg.flight = flight;
	flight->inj = inj;
	flight->op = inj->op;
}

/**
 * vrnic_nflight_post() - post a put, and let it go on by itself
 * @inj: injector; its operation was checked, and vrnic_nflight_fits() is true
 * @budget: its bytes are reduced by those of the put
 *
 * Return: VRNIC_STEP_DONE: @inj->op.away is set; VRNIC_STEP_WAIT: there are VRNIC_LINK_FLIGHTS
 * already, and the injector runs when one has landed; VRNIC_STEP_MORE: this run must not sleep, and
 * has no memory; VRNIC_STEP_FAIL. Another run without memory makes a request and waits for it: then
 * as vrnic_wire_native().
 */
enum vrnic_step vrnic_nflight_post(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_nflight *flight;
	int verr;

	if (inj->nr_flights == VRNIC_LINK_FLIGHTS)
		return VRNIC_STEP_WAIT;
	flight = nflight_new(inj, budget->atomic);
	if (!flight)
		return budget->atomic ? VRNIC_STEP_MORE : vrnic_wire_native(inj, budget);
	nflight_init(flight, inj);
	verr = find_data(inj, flight);
	if (verr) {
		kfree(flight);
		return vrnic_nop_fail(op, IB_WC_LOC_PROT_ERR, verr);
	}
	fill_header(flight);
	if (!nflight_enqueue(inj->link, flight)) {
		vrnic_nmsg_release(&flight->msg);
		kfree(flight);
		return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	}
	list_add_tail(&flight->entry, &inj->flights);
	inj->nr_flights++;
	op->away = true;
	op->ep = NULL;
	budget->bytes -= min_t(u64, budget->bytes, op->d.length);
	return VRNIC_STEP_DONE;
}

/**
 * vrnic_nflights_push() - run the links that puts were posted to
 * @inj: injector whose run ends, or is about to do what takes longer
 */
void vrnic_nflights_push(struct vrnic_injector *inj)
{
	struct vrnic_link *link, *next;
	struct vrnic_qp *qp;

	list_for_each_entry_safe(link, next, &inj->pushed, pushed) {
		qp = link->qp;
		/* without the reference, the link may go */
		list_del_init(&link->pushed);
		vrnic_link_run(qp);
		vrnic_qp_put(qp);
	}
}

/**
 * vrnic_nflight_landed() - a link is done with a put
 * @put: the put; its injector frees it
 * @status: enum ib_wc_status of the message
 *
 * The memory of the put is given back here, as the injector may have to wait for a slow process.
 *
 * Return: true if the injector has to run: vrnic_nflights_run(). The caller keeps the FIFO until then.
 */
bool vrnic_nflight_landed(struct vrnic_nflight *flight, u8 status)
{
	if (status != IB_WC_SUCCESS && flight->op.status == IB_WC_SUCCESS)
		vrnic_nop_fail(&flight->op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	vrnic_nmsg_release(&flight->msg);
	/* if the list was not empty, the injector will run for the put that is there */
	return llist_add(&flight->landed, &flight->inj->landed);
}

/* Have an injector run for puts that have landed, here if this is a softirq. */
void vrnic_nflights_run(struct vrnic_injector *inj)
{
	if (in_softirq())
		vrnic_poke(&inj->run, false);
	else
		vrnic_queue(&inj->run);
}

/**
 * vrnic_nflights_next() - find the next put that has landed
 * @inj: injector; the caller holds its run bit
 *
 * Return: the put, in the order of each link; or NULL. It stays the next one until
 * vrnic_nflight_free().
 */
struct vrnic_nflight *vrnic_nflights_next(struct vrnic_injector *inj)
{
	if (!inj->landing && !llist_empty(&inj->landed))
		inj->landing = llist_reverse_order(llist_del_all(&inj->landed));
	return inj->landing ? llist_entry(inj->landing, struct vrnic_nflight, landed) : NULL;
}

/* Free the put that vrnic_nflights_next() returned. */
void vrnic_nflight_free(struct vrnic_injector *inj, struct vrnic_nflight *flight)
{
	inj->landing = flight->landed.next;
	list_del(&flight->entry);
	inj->nr_flights--;
	vrnic_nop_landed(inj->fifo, &flight->op);
	kfree(flight);
}
