/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The process's half of a context's two rings and of its counters, and every
 * memory barrier of the library.
 *
 * Barriers and their partners (driver/queue/ring.h and driver/native/counter.c have the
 * other half):
 *
 *  P1 vrnic_ring_publish()        release of prod after the slots were filled,
 *       and after counters were raised by what the engine will take off them
 *       with the engine's acquire of prod
 *  P2 vrnic_ring_room()           acquire of cons before slots are reused
 *       with the engine's release of cons after it used them
 *  P3 vrnic_ring_wants_doorbell() prod, full fence, look at the flag
 *       with the engine's flag, full barrier, look at prod again.
 *  P3 vrnic_ring_may_gather()     prod, full fence (that of the flag), look at gather
 *       with the engine's gather, full barrier, look at prod again.
 *     On the reception ring: cons instead of prod. If a sender waits for room, the
 *       engine sets the flag and looks at cons again.
 *  C1 vrnic_ring_peek()           acquire of prod before a record is read
 *       with the engine's release of prod after it wrote the record
 *  C2 vrnic_ring_release()        release of cons after the record was read
 *       with the engine's acquire of cons before it reuses the slots
 *  C3 vrnic_ring_arm()            arm, full fence, look at prod
 *       with the engine's prod, full barrier, look at arm
 *  C4 VRNIC_WAIT                  a system call: the kernel puts the caller on
 *       the wait queue, then looks at prod and cons (or at the cell) itself,
 *       and the writer of a record looks at the queue after a full barrier.
 *       So no record between our look and our sleep is missed.
 *  N1 vrnic_cell_errors(), vrnic_cell_remaining()   acquire of the cell
 *       with the engine's release of it after the data, and after the fields
 *       that say what failed
 */
#ifndef LIBVRNIC_RING_H
#define LIBVRNIC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/vrnic-abi.h>

/**
 * struct vrnic_ring - one ring, as the process sees it
 * @hdr: first page of the mapping; NULL: no ring
 * @slots: the slots
 * @bytes: length of the mapping
 * @entries: a power of two
 * @next: the next slot to fill, or to take
 * @cons: injection ring: the engine's index when it was last looked at
 */
struct vrnic_ring {
	struct vrnic_ring_hdr *hdr;
	uint8_t *slots;
	size_t bytes;
	uint32_t entries;
	uint32_t next;
	uint32_t cons;
};

static inline void *vrnic_ring_slot(const struct vrnic_ring *ring, uint32_t i)
{
	return ring->slots +
	       (size_t)(i & (ring->entries - 1)) * VRNIC_SLOT_SIZE;
}

/**
 * vrnic_ring_room() - may slots be filled
 * @ring: injection ring
 * @n: how many, from @ring->next on
 *
 * The engine's index is only looked at when the last look does not do: its
 * cache line moves between CPUs.
 */
static inline bool vrnic_ring_room(struct vrnic_ring *ring, uint32_t n)
{
	if (ring->next - ring->cons + n <= ring->entries)
		return true;
	/* P2 */
	ring->cons = __atomic_load_n(&ring->hdr->cons, __ATOMIC_ACQUIRE);
	return ring->next - ring->cons + n <= ring->entries;
}

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
	/* P2 */
	uint32_t cons = __atomic_load_n(&ring->hdr->cons, __ATOMIC_ACQUIRE);

	return ring->next - end >= ring->next - cons;
}

/* Hand all that was filled to the engine. */
static inline void vrnic_ring_publish(struct vrnic_ring *ring)
{
	/* P1 */
	__atomic_store_n(&ring->hdr->prod, ring->next, __ATOMIC_RELEASE);
}

/* After vrnic_ring_publish() or vrnic_ring_release(): call the kernel? */
static inline bool vrnic_ring_wants_doorbell(const struct vrnic_ring *ring)
{
	/* P3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) &
	       VRNIC_RING_DOORBELL;
}

/* Tell the engine whether doorbells may be few; write the cache line only on a change. */
static inline void vrnic_ring_tell_stream(struct vrnic_ring *ring, bool stream)
{
	if (__atomic_load_n(&ring->hdr->stream, __ATOMIC_RELAXED) != stream)
		__atomic_store_n(&ring->hdr->stream, stream, __ATOMIC_RELAXED);
}

/**
 * vrnic_ring_may_gather() - may the doorbell wait for more
 * @ring: injection ring, whose doorbell is wanted
 *
 * The engine says how far it may fall behind; it looks by itself a little later.
 */
static inline bool vrnic_ring_may_gather(const struct vrnic_ring *ring)
{
	const struct vrnic_ring_hdr *hdr = ring->hdr;

	return ring->next - __atomic_load_n(&hdr->cons, __ATOMIC_RELAXED) <
	       __atomic_load_n(&hdr->gather, __ATOMIC_RELAXED);
}

static inline bool vrnic_ring_failed(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) &
	       VRNIC_RING_ERROR;
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

/* Give all that was taken back to the engine. */
static inline void vrnic_ring_release(struct vrnic_ring *ring)
{
	/* C2 */
	__atomic_store_n(&ring->hdr->cons, ring->next, __ATOMIC_RELEASE);
}

/* Are there records that were not given back? For threads that do not take them. */
static inline bool vrnic_ring_pending(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&ring->hdr->cons, __ATOMIC_RELAXED);
}

static inline bool vrnic_ring_is_armed(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->arm, __ATOMIC_RELAXED) !=
	       VRNIC_ARM_NONE;
}

/* Ask for an event. Return: is there something already? */
static inline bool vrnic_ring_arm(struct vrnic_ring *ring)
{
	__atomic_store_n(&ring->hdr->arm, VRNIC_ARM_NEXT, __ATOMIC_RELAXED);
	/* C3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return vrnic_ring_pending(ring);
}

/**
 * vrnic_ring_copy_in() - fill bytes that may go on at the ring's start
 * @ring: injection ring
 * @offset: where to start, from the first byte of @ring->next on
 * @src: what to copy
 * @len: bytes; with @offset at most the size of the ring
 */
static inline void vrnic_ring_copy_in(const struct vrnic_ring *ring,
				      size_t offset, const void *src,
				      size_t len)
{
	size_t size = (size_t)ring->entries * VRNIC_SLOT_SIZE;
	size_t pos = ((size_t)(ring->next & (ring->entries - 1)) *
		      VRNIC_SLOT_SIZE + offset) & (size - 1);
	size_t first = len < size - pos ? len : size - pos;

	if (!len)	/* then @src may be NULL, which memcpy() must not see */
		return;
	memcpy(ring->slots + pos, src, first);
	if (first < len)
		memcpy(ring->slots, (const uint8_t *)src + first, len - first);
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

#endif /* LIBVRNIC_RING_H */
