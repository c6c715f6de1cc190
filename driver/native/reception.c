// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes records into a reception FIFO. If the FIFO is full, the injector that has a record for it
 * stalls, and no record is lost.
 *
 * There are no credits: the consumer index of the process says how much room there is. An injector
 * that finds too little room puts itself on the FIFO's list, sets VRNIC_RING_DOORBELL, and looks
 * once more. The process looks at the flag after it has consumed records, and makes a system call
 * if the flag is set (P3 in queue/ring.h).
 */

#include <linux/eventfd.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "mem/seg.h"
#include "native/native.h"
#include "queue/ring.h"
#include "vrnic.h"

/* Protects the lists of injectors that stall on FIFOs. Stalls are rare, so one lock will do. */
static DEFINE_SPINLOCK(stall_lock);

static u32 receive_room(const struct vrnic_ring *ring)
{
	u32 used = vrnic_ring_used(ring);

	/* if the process wrote an invalid index, the ring counts as full */
	return used <= ring->entries ? ring->entries - used : 0;
}

static void receive_put_slot(struct vrnic_ring *ring, u32 at,
			     const struct vrnic_record *rec)
{
	memcpy(vrnic_ring_slot(ring, at), rec, sizeof(*rec));
}

/*
 * Return: slots to skip so that a record of @n slots does not wrap around the end of the ring.
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

/* Copy the segments, without gaps, into the slots from @at on, which do not wrap. */
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
	/* waitqueue_active() needs the full barrier of vrnic_ring_asks() */
	if (waitqueue_active(&to->wait))
		wake_up_all(&to->wait);
}

/**
 * vrnic_record_post() - put a record into a reception FIFO, and wake its reader
 * @to: the FIFO
 * @rec: record; its number of slots is filled in here
 * @seg: header and data, if @rec is a VRNIC_REC_MESSAGE; else NULL
 * @nr_segs: number of segments in @seg
 *
 * Return: 0, or -EAGAIN if there is no room. The caller then calls vrnic_stall(), or has the peer
 * send again.
 */
int vrnic_record_post(struct vrnic_fifo *to, struct vrnic_record *rec,
		      const struct vrnic_seg *seg, unsigned int nr_segs)
{
	struct vrnic_ring *ring = &to->receive;
	u32 skip, n = record_slots(rec);

	rec->num_slots = n;
	spin_lock_bh(&to->receive_lock);
	skip = receive_padding(ring, n);
	if (skip + n > receive_room(ring)) {
		spin_unlock_bh(&to->receive_lock);
		return -EAGAIN;
	}
	receive_put_padding(ring, skip);
	receive_put_slot(ring, ring->idx + skip, rec);
	receive_put_data(ring, ring->idx + skip + 1, seg, nr_segs);
	vrnic_ring_produce(ring, skip + n);
	spin_unlock_bh(&to->receive_lock);
	vrnic_count(to->dev, RECORDS);
	receive_notify(to);
	return 0;
}

/* Take @inj off the list that it is on, if any. Caller holds stall_lock. */
static void injector_unstall(struct vrnic_injector *inj)
{
	struct vrnic_fifo *on = inj->stalled_on;

	lockdep_assert_held(&stall_lock);
	if (!on)
		return;
	list_del(&inj->stall);
	inj->stalled_on = NULL;
	if (list_empty(&on->stalled))
		vrnic_ring_spare_doorbell(&on->receive);
	vrnic_fifo_put(on);
}

/* Put @inj on the list of @on. Caller holds stall_lock, and a reference on @on. */
static void injector_stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	lockdep_assert_held(&stall_lock);
	injector_unstall(inj);
	refcount_inc(&on->refs);
	inj->stalled_on = on;
	list_add_tail(&inj->stall, &on->stalled);
}

/**
 * vrnic_stall() - have an injector run again when a reception ring has room
 * @inj: injector; the caller holds its run bit, and ends its run next
 * @on: FIFO whose reception ring has no room for the injector's record
 *
 * If the injector runs before there is room, it finds the ring full, and stalls again.
 */
void vrnic_stall(struct vrnic_injector *inj, struct vrnic_fifo *on)
{
	vrnic_count(inj->fifo->dev, RECEPTION_STALLS);
	spin_lock_bh(&stall_lock);
	if (on->closed)
		vrnic_queue(&inj->run);
	else if (inj->stalled_on != on)
		injector_stall(inj, on);
	spin_unlock_bh(&stall_lock);
	vrnic_stalled_wake(on, false);
}

/* Take @inj off the list that it is on, if any: @inj is about to be freed. */
void vrnic_unstall(struct vrnic_injector *inj)
{
	spin_lock_bh(&stall_lock);
	injector_unstall(inj);
	spin_unlock_bh(&stall_lock);
}

/*
 * May stalled injectors go on? Not yet for a few free slots, but when the longest record fits with
 * its padding, even into the smallest ring (RECEIVE_SLOTS_MIN).
 */
static bool receive_has_room(struct vrnic_fifo *fifo)
{
	return receive_room(&fifo->receive) > fifo->receive.entries / 2;
}

/**
 * vrnic_stalled_wake() - the process may have consumed records: let stalled injectors go on
 * @fifo: FIFO with the reception ring
 * @always: wake all injectors, which will find that the FIFO is gone
 */
void vrnic_stalled_wake(struct vrnic_fifo *fifo, bool always)
{
	struct vrnic_injector *inj;

	if (!always && !list_empty_careful(&fifo->stalled))
		vrnic_ring_ask_doorbell(&fifo->receive);
	spin_lock_bh(&stall_lock);
	fifo->closed |= always;
	while (!list_empty(&fifo->stalled) && (always || receive_has_room(fifo))) {
		inj = list_first_entry(&fifo->stalled, struct vrnic_injector,
				       stall);
		/* not the last reference: the owner of @fifo has one */
		injector_unstall(inj);
		/* vrnic_injector_free() takes stall_lock before @inj is freed */
		vrnic_queue(&inj->run);
	}
	if (list_empty(&fifo->stalled))
		vrnic_ring_spare_doorbell(&fifo->receive);
	spin_unlock_bh(&stall_lock);
}
