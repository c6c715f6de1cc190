/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared memory that the library uses, and the provider does not: records of reception rings, how
 * far the engine is in an injection ring, and the cells of counters.
 *
 * Barriers and their partners (driver/queue/ring.h and driver/native/counter.c have the
 * other half; ../ring.h has those of all rings):
 *
 *  C1 vrnic_ring_filled(), vrnic_ring_pending()   acquire of prod before a record is read
 *       with the engine's release of prod after it wrote the record
 *  C4 VRNIC_WAIT                  a system call: the kernel puts the caller on
 *       the wait queue, then looks at prod and cons (or at the cell) itself,
 *       and the writer of a record looks at the queue after a full barrier.
 *       So no record that comes between the caller's look and its sleep is missed.
 *  N1 vrnic_cell_errors(), vrnic_cell_remaining()   acquire of the cell
 *       with the engine's release of it after the data, and after the fields
 *       that say what failed. So is a word of a group
 *  G1, G2, G3                     between a thread that raises a counter of a group, in group.c,
 *       and the kernel that lets it fall: driver/native/counter_group.c explains them
 */
#ifndef LIBVRNIC_RECORD_H
#define LIBVRNIC_RECORD_H

#include "../ring.h"

/**
 * vrnic_ring_consumed() - has the engine taken all slots before this one
 * @ring: injection ring
 * @end: an earlier value of @ring->next
 *
 * Return: true if so. It may wrongly be false if 2^32 slots were filled since @end. This does no
 * harm, because it is true whenever the ring is empty.
 */
static inline bool vrnic_ring_consumed(const struct vrnic_ring *ring,
				       uint32_t end)
{
	return ring->next - end >= ring->next - vrnic_ring_cons(ring);
}

/* Has the kernel to be called? Ask after vrnic_ring_publish() or vrnic_ring_release(). */
static inline bool vrnic_ring_wants_doorbell(const struct vrnic_ring *ring)
{
	return vrnic_ring_flags(ring) & VRNIC_RING_DOORBELL;
}

/* Slots of a reception ring that hold records. A number above @ring->entries: prod is invalid. */
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

/* Has any record not been given back? For threads without advance_lock, which protects @next. */
static inline bool vrnic_ring_pending(const struct vrnic_ring *ring)
{
	/* C1 */
	return __atomic_load_n(&ring->hdr->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&ring->hdr->cons, __ATOMIC_RELAXED);
}

/**
 * struct vrnic_cell - where the values of a counter are
 * @mem: the values, shared with the kernel
 * @group: group of the counter, or NULL
 * @bit: the counter's bit in the words of @group
 */
struct vrnic_cell {
	struct vrnic_counter_cell *mem;
	struct vrnic_counter_group *group;
	uint64_t bit;
};

void vrnic_group_changed(struct vrnic_cell *cell);

static inline int64_t vrnic_cell_remaining(const struct vrnic_cell *cell)
{
	/* N1 */
	return __atomic_load_n(&cell->mem->remaining, __ATOMIC_ACQUIRE);
}

static inline uint32_t vrnic_cell_errors(const struct vrnic_cell *cell)
{
	/* N1 */
	return __atomic_load_n(&cell->mem->errors, __ATOMIC_ACQUIRE);
}

/* P1 orders this before the engine takes bytes off for a descriptor that is published later. */
static inline void vrnic_cell_add(struct vrnic_cell *cell, int64_t n)
{
	__atomic_fetch_add(&cell->mem->remaining, n, __ATOMIC_RELAXED);
	if (__builtin_expect(!!cell->group, 0))
		vrnic_group_changed(cell);
}

#endif /* LIBVRNIC_RECORD_H */
