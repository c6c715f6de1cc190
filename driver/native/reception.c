// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes records into a reception FIFO. When the FIFO is full, the sender stalls, and nothing is
 * lost.
 *
 * The ring itself is the credit: the process's index says how much the process has consumed. A
 * sender that finds too little room puts itself on the FIFO's list, asks for a doorbell, and looks
 * once more (P3 in ring.h, with the roles exchanged).
 */

#include <linux/eventfd.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "mem/seg.h"
#include "native/native.h"
#include "queue/ring.h"
#include "vrnic.h"

/* Protects the lists of stalled injectors of all FIFOs. Stalls are rare, so one lock will do. */
static DEFINE_SPINLOCK(stall_lock);

static u32 receive_room(const struct vrnic_ring *ring)
{
	u32 used = vrnic_ring_used(ring);

	/* an invalid index counts as a full ring */
	return used <= ring->entries ? ring->entries - used : 0;
}

static void receive_put_slot(struct vrnic_ring *ring, u32 at,
			     const struct vrnic_record *rec)
{
	memcpy(vrnic_ring_slot(ring, at), rec, sizeof(*rec));
}

/*
 * Slots to skip so that a record of @n slots does not wrap around the end.
 * Caller holds receive_lock.
 */
static u32 receive_padding(const struct vrnic_ring *ring, u32 n)
{
	u32 left = ring->entries - (ring->idx & (ring->entries - 1));

	return n <= left ? 0 : left;
}

static void receive_put_padding(struct vrnic_ring *ring, u32 n)
{
	struct vrnic_record pad = { .kind = VRNIC_REC_PAD, .num_slots = n };

	if (n)
		receive_put_slot(ring, ring->idx, &pad);
}

/* Copy the segments, one after the other, into the slots from @at on. */
static void receive_put_data(struct vrnic_ring *ring, u32 at,
			     const struct vrnic_seg *seg, unsigned int nr_segs)
{
	struct vrnic_seg to = { .kva = vrnic_ring_slot(ring, at) };
	unsigned int i;
	u64 pos = 0;

	for (i = 0; i < nr_segs; i++) {
		vrnic_seg_copy(&to, pos, &seg[i], 0, seg[i].len, false);
		pos += seg[i].len;
	}
}

static u32 record_slots(const struct vrnic_record *rec)
{
	if (rec->kind != VRNIC_REC_MESSAGE)
		return 1;
	return 1 + DIV_ROUND_UP(rec->header_len + rec->length, VRNIC_SLOT_SIZE);
}

static void receive_notify(struct vrnic_fifo *to)
{
	if (vrnic_ring_armed(&to->receive, true) && to->eventfd)
		vrnic_eventfd_signal(to->eventfd);
	/* waitqueue_active() needs the full barrier of vrnic_ring_armed() */
	if (waitqueue_active(&to->wait))
		wake_up_all(&to->wait);
}

/**
 * vrnic_record_post() - put a record into a reception FIFO
 * @to: the FIFO
 * @rec: record; its number of slots is filled in here
 * @seg: MESSAGE: segments with header and data
 * @nr_segs: number of segments
 *
 * Return: 0, or -EAGAIN if there is no room.
 */
int vrnic_record_post(struct vrnic_fifo *to, struct vrnic_record *rec,
		      const struct vrnic_seg *seg, unsigned int nr_segs)
{
	struct vrnic_ring *ring = &to->receive;
	u32 skip, n = record_slots(rec);

	rec->num_slots = n;
	spin_lock(&to->receive_lock);
	skip = receive_padding(ring, n);
	if (skip + n > receive_room(ring)) {
		spin_unlock(&to->receive_lock);
		return -EAGAIN;
	}
	receive_put_padding(ring, skip);
	receive_put_slot(ring, ring->idx + skip, rec);
	receive_put_data(ring, ring->idx + skip + 1, seg, nr_segs);
	vrnic_ring_produce(ring, skip + n);
	spin_unlock(&to->receive_lock);
	vrnic_count(to->dev, RECORDS);
	receive_notify(to);
	return 0;
}

/* Caller holds stall_lock. */
static void injector_unstall(struct vrnic_injector *inj)
{
	struct vrnic_fifo *on = inj->stalled_on;

	lockdep_assert_held(&stall_lock);
	if (!on)
		return;
	list_del(&inj->stall);
	inj->stalled_on = NULL;
	vrnic_fifo_put(on);
}

/* Caller holds stall_lock, and a reference on @on. */
static void injector_stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	lockdep_assert_held(&stall_lock);
	injector_unstall(inj);
	refcount_inc(&on->refs);
	inj->stalled_on = on;
	list_add_tail(&inj->stall, &on->stalled);
}

/**
 * vrnic_stall() - have an injector run again when there is room
 * @inj: injector; the caller holds its run bit, and gives it back next
 * @on: FIFO whose reception ring has no room for the record
 *
 * A run that comes too early does no harm: it finds the ring full, and stalls again.
 */
void vrnic_stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	vrnic_count(inj->fifo->dev, RECEPTION_STALLS);
	spin_lock(&stall_lock);
	if (on->closed)
		vrnic_queue(&inj->run);
	else if (inj->stalled_on != on)
		injector_stall(inj, on);
	spin_unlock(&stall_lock);
	vrnic_stalled_wake(on, false);
}

/* Take @inj off the list: it is about to be freed, or does not wait any more. */
void vrnic_unstall(struct vrnic_injector *inj)
{
	spin_lock(&stall_lock);
	injector_unstall(inj);
	spin_unlock(&stall_lock);
}

/*
 * Stalled injectors are not called for each slot that becomes free, but when the longest record
 * fits with its padding: that takes half of the smallest ring.
 */
static bool receive_has_room(struct vrnic_fifo *fifo)
{
	return receive_room(&fifo->receive) > fifo->receive.entries / 2;
}

/**
 * vrnic_stalled_wake() - the process consumed records: let stalled senders go on
 * @fifo: FIFO with the reception ring
 * @always: wake all senders, which will find that the FIFO is gone
 */
void vrnic_stalled_wake(struct vrnic_fifo *fifo, bool always)
{
	struct vrnic_injector *inj;

	if (!always && !list_empty_careful(&fifo->stalled))
		vrnic_ring_ask_doorbell(&fifo->receive);
	spin_lock(&stall_lock);
	fifo->closed |= always;
	while (!list_empty(&fifo->stalled) && (always || receive_has_room(fifo))) {
		inj = list_first_entry(&fifo->stalled, struct vrnic_injector,
				       stall);
		/* not the last reference: the owner of @fifo has one */
		injector_unstall(inj);
		/* the owner of @inj cannot free it before it had stall_lock */
		vrnic_queue(&inj->run);
	}
	if (list_empty(&fifo->stalled))
		vrnic_ring_spare_doorbell(&fifo->receive);
	spin_unlock(&stall_lock);
}
