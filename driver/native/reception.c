// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writing into a reception FIFO, and what happens when it is full: the sender
 * stalls, and nothing is lost.
 *
 * The credit is the ring itself: room is what the process's index says it has
 * consumed. A sender that finds too little puts itself on the FIFO's list, asks
 * for a doorbell, and looks once more (P3 in ring.h, with the roles exchanged).
 */

#include <linux/eventfd.h>

#include "native/native.h"

/* Who waits for whose reception ring. Rare, so one lock for all will do. */
static DEFINE_SPINLOCK(stall_lock);

static u32 room(const struct vrnic_ring *ring)
{
	u32 used = vrnic_ring_used(ring);

	/* an index that cannot be counts as a full ring */
	return used <= ring->entries ? ring->entries - used : 0;
}

static void copy_slot(struct vrnic_ring *ring, u32 at,
		      const struct vrnic_record *rec)
{
	memcpy(vrnic_ring_slot(ring, at), rec, sizeof(*rec));
}

/*
 * Slots to skip so that a record of @n slots does not wrap around the end.
 * Caller holds receive_lock.
 */
static u32 padding(const struct vrnic_ring *ring, u32 n)
{
	u32 left = ring->entries - (ring->idx & (ring->entries - 1));

	return n <= left ? 0 : left;
}

static void put_padding(struct vrnic_ring *ring, u32 n)
{
	struct vrnic_record pad = { .kind = VRNIC_REC_PAD, .num_slots = n };

	if (n)
		copy_slot(ring, ring->idx, &pad);
}

/* The segments, one after the other, into the slots from @at on. */
static void put_data(struct vrnic_ring *ring, u32 at,
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

static void notify(struct vrnic_fifo *to)
{
	if (vrnic_ring_armed(&to->receive, true) && to->eventfd)
		vrnic_eventfd_signal(to->eventfd);
	/* vrnic_ring_armed() had the full barrier that this needs */
	if (waitqueue_active(&to->wait))
		wake_up_all(&to->wait);
}

/**
 * vrnic_record_post() - put a record into a reception FIFO
 * @to: FIFO
 * @rec: record; its number of slots is filled in
 * @seg: MESSAGE: header and data
 * @nr_segs: pieces of it
 *
 * Return: 0, or -EAGAIN: there is no room.
 */
int vrnic_record_post(struct vrnic_fifo *to, struct vrnic_record *rec,
		      const struct vrnic_seg *seg, unsigned int nr_segs)
{
	struct vrnic_ring *ring = &to->receive;
	u32 skip, n = record_slots(rec);

	rec->num_slots = n;
	spin_lock(&to->receive_lock);
	skip = padding(ring, n);
	if (skip + n > room(ring)) {
		spin_unlock(&to->receive_lock);
		return -EAGAIN;
	}
	put_padding(ring, skip);
	copy_slot(ring, ring->idx + skip, rec);
	put_data(ring, ring->idx + skip + 1, seg, nr_segs);
	vrnic_ring_produce(ring, skip + n);
	spin_unlock(&to->receive_lock);
	vrnic_count(to->dev, RECORDS);
	notify(to);
	return 0;
}

/* Caller holds stall_lock. */
static void unstall(struct vrnic_injector *inj)
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
static void stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	lockdep_assert_held(&stall_lock);
	unstall(inj);
	refcount_inc(&on->refs);
	inj->stalled_on = on;
	list_add_tail(&inj->stall, &on->stalled);
}

/**
 * vrnic_stall() - have an injector called when there is room
 * @inj: injector; its caller holds the run bit, and gives it back next
 * @on: FIFO whose reception ring is too full for what it has to say
 *
 * Called again although nothing changed, it only finds the ring full again.
 */
void vrnic_stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	vrnic_count(inj->fifo->dev, RECEPTION_STALLS);
	spin_lock(&stall_lock);
	if (on->closed)
		vrnic_queue(&inj->run);
	else if (inj->stalled_on != on)
		stall(inj, on);
	spin_unlock(&stall_lock);
	vrnic_stalled_wake(on, false);
}

/* @inj is about to be freed, or does not wait any more. */
void vrnic_unstall(struct vrnic_injector *inj)
{
	spin_lock(&stall_lock);
	unstall(inj);
	spin_unlock(&stall_lock);
}

/*
 * Whoever waits for room is not called for each slot that gets free, but when
 * the longest record fits with its padding: that is half of the smallest ring.
 */
static bool has_room(struct vrnic_fifo *fifo)
{
	return room(&fifo->receive) > fifo->receive.entries / 2;
}

/**
 * vrnic_stalled_wake() - the process consumed records: stalled senders go on
 * @fifo: whose reception ring it is
 * @always: the FIFO goes away: they are to find that out
 */
void vrnic_stalled_wake(struct vrnic_fifo *fifo, bool always)
{
	struct vrnic_injector *inj;

	if (!always && !list_empty_careful(&fifo->stalled))
		vrnic_ring_ask_doorbell(&fifo->receive);
	spin_lock(&stall_lock);
	fifo->closed |= always;
	while (!list_empty(&fifo->stalled) && (always || has_room(fifo))) {
		inj = list_first_entry(&fifo->stalled, struct vrnic_injector,
				       stall);
		/* @fifo's owner holds a reference as well */
		unstall(inj);
		/* not freed before its owner had stall_lock */
		vrnic_queue(&inj->run);
	}
	if (list_empty(&fifo->stalled))
		vrnic_ring_spare_doorbell(&fifo->receive);
	spin_unlock(&stall_lock);
}
