/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the library alone has of rings and shared memory: records of reception rings, how far
 * the engine is in an injection ring, and the cells of counters.
 *
 * Barriers and their partners (driver/queue/ring.h and driver/native/counter.c have the
 * other half; ../ring.h has those of all rings):
 *
 *  C1 vrnic_ring_filled(), vrnic_ring_pending()   acquire of prod before a record is read
 *       with the engine's release of prod after it wrote the record
 *  C4 VRNIC_WAIT                  a system call: the kernel puts the caller on
 *       the wait queue, then looks at prod and cons (or at the cell) itself,
 *       and the writer of a record looks at the queue after a full barrier.
 *       So no record between our look and our sleep is missed.
 *  N1 vrnic_cell_errors(), vrnic_cell_remaining()   acquire of the cell
 *       with the engine's release of it after the data, and after the fields
 *       that say what failed
 */
#ifndef LIBVRNIC_RECORD_H
#define LIBVRNIC_RECORD_H

#include "../ring.h"

/**
 * vrnic_ring_consumed() - did the engine take all slots before this one
 * @ring: injection ring
 * @end: an earlier value of @ring->next
 *
 * After 2^32 slots without a look an old @end passes for a recent one; it does
 * no harm, because the answer is yes again once the ring is empty.
 */
static inline bool vrnic_ring_consumed(const struct vrnic_ring *ring,
				       uint32_t end)
{
	return ring->next - end >= ring->next - vrnic_ring_cons(ring);
}

/* As vrnic_ring_flags(): call the kernel? */
static inline bool vrnic_ring_wants_doorbell(const struct vrnic_ring *ring)
{
	return vrnic_ring_flags(ring) & VRNIC_RING_DOORBELL;
}

/* Slots of the reception ring that hold records; more than the ring: nonsense. */
static inline uint32_t vrnic_ring_filled(const struct vrnic_ring *ring)
{
	/* C1 */
	return __atomic_load_n(&ring->hdr->prod, __ATOMIC_ACQUIRE) - ring->next;
}

/* The next record, if there is one. */
static inline struct vrnic_record *
vrnic_ring_peek(const struct vrnic_ring *ring)
{
	return vrnic_ring_filled(ring) ? vrnic_ring_slot(ring, ring->next) :
					 NULL;
}

/* Are there records that were not given back? For threads that do not take them. */
static inline bool vrnic_ring_pending(const struct vrnic_ring *ring)
{
	/* C1 */
	return __atomic_load_n(&ring->hdr->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&ring->hdr->cons, __ATOMIC_RELAXED);
}

static inline int64_t vrnic_cell_remaining(const struct vrnic_counter_cell *cell)
{
	/* N1 */
	return __atomic_load_n(&cell->remaining, __ATOMIC_ACQUIRE);
}

static inline uint32_t vrnic_cell_errors(const struct vrnic_counter_cell *cell)
{
	/* N1 */
	return __atomic_load_n(&cell->errors, __ATOMIC_ACQUIRE);
}

/* Ordered before what the engine takes away by P1. */
static inline void vrnic_cell_add(struct vrnic_counter_cell *cell, int64_t n)
{
	__atomic_fetch_add(&cell->remaining, n, __ATOMIC_RELAXED);
}

#endif /* LIBVRNIC_RECORD_H */
