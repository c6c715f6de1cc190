/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings shared with processes, and every memory barrier of the project.
 *
 * A ring is one mapping: a page of indices and flags (struct vrnic_ring_hdr), then a power of two
 * of entries. The process may write anything into the ring at any time. So the kernel relies on its
 * own index (@idx), and publishes it in the header but never reads it back. The kernel reads the
 * index of the other side once each time, and copies an entry before it looks at the contents.
 *
 * Barriers and their partners (userlib/ring.h has the other half):
 *
 *  P1 vrnic_ring_avail()   acquire of hdr->prod
 *       with the producer's release of prod after it filled the slots
 *  P2 vrnic_ring_consume() release of hdr->cons
 *       with the producer's acquire of cons before it reuses slots
 *  P3 vrnic_ring_ask_doorbell(): flag, full barrier, look at prod again
 *       with the producer's prod, full fence, look at the flag;
 *     on reception rings the kernel looks at cons again
 *       with the consumer's cons, full fence, look at the flag
 *  P3 vrnic_ring_gather(), which ends the gathering: gather, full barrier, look at prod again
 *       with the producer's prod, full fence, look at gather
 *  C1 vrnic_cqe_publish()  release of cqe->phase
 *       with the consumer's acquire of phase
 *  C2 vrnic_ring_room()    acquire of hdr->cons
 *       with the consumer's release of cons after it read the entries
 *  C1 vrnic_ring_produce() release of hdr->prod, on reception rings
 *       with the consumer's acquire of prod
 *  C2 vrnic_ring_used()    acquire of hdr->cons, on reception rings
 *       with the consumer's release of cons after it read the slots
 *  C3 vrnic_ring_armed(): entry, full barrier, look at arm
 *       with the consumer's arm, full fence, look at the next entry
 *
 * This file needs nothing from ib_core.
 */
#ifndef VRNIC_RING_H
#define VRNIC_RING_H

#include <linux/kernel.h>
#include <linux/atomic.h>
#include <rdma/vrnic-abi.h>

#include "queue/ring_mem.h"

#define VRNIC_GATHER_SLOTS	16	/* slots for which one doorbell is enough */
#define VRNIC_GATHER_WIRE	32	/* the same, for a doorbell that also takes packets */

static inline void *vrnic_ring_slot(const struct vrnic_ring *ring, u32 i)
{
	return ring->slots + ((size_t)(i & (ring->entries - 1)) << ring->shift);
}

/**
 * vrnic_ring_avail() - how many entries the producer has filled
 * @ring: a send or receive ring
 *
 * Return: 0 to @ring->entries. A larger number means that the producer's index is invalid, and that
 * the ring's owner has to be told.
 */
static inline u32 vrnic_ring_avail(const struct vrnic_ring *ring)
{
	/* P1 */
	return smp_load_acquire(&ring->hdr->prod) - ring->idx;
}

/**
 * vrnic_ring_consume() - move on by @n entries, and publish this to the producer
 * @ring: a send or receive ring
 * @n: number of entries
 */
static inline void vrnic_ring_consume(struct vrnic_ring *ring, u32 n)
{
	/* vrnic_ring_gather() and vrnic_ring_ask_doorbell() may read @idx at the same time */
	WRITE_ONCE(ring->idx, ring->idx + n);
	/* P2: the caller has copied the entries */
	smp_store_release(&ring->hdr->cons, ring->idx);
}

/**
 * vrnic_ring_ask_doorbell() - ask the producer for a doorbell with its next post
 * @ring: a send or receive ring whose runner is about to leave it
 *
 * Return: number of entries that came in before the producer could see the flag.
 */
static inline u32 vrnic_ring_ask_doorbell(struct vrnic_ring *ring)
{
	WRITE_ONCE(ring->hdr->flags,
		   READ_ONCE(ring->hdr->flags) | VRNIC_RING_DOORBELL);
	/* P3 */
	smp_mb();
	/* a caller that fails a queue pair runs beside the ring's runner, and ignores the result */
	return READ_ONCE(ring->hdr->prod) - READ_ONCE(ring->idx);
}

/* A runner stays with the ring for a while, so posting needs no doorbell. */
static inline void vrnic_ring_spare_doorbell(struct vrnic_ring *ring)
{
	WRITE_ONCE(ring->hdr->flags,
		   READ_ONCE(ring->hdr->flags) & ~VRNIC_RING_DOORBELL);
}

/* Would the ring's owner rather ring once for several requests? */
static inline bool vrnic_ring_streams(const struct vrnic_ring *ring)
{
	return READ_ONCE(ring->hdr->stream);
}

/**
 * vrnic_ring_gather() - set whether slots may wait for their doorbell
 * @ring: a send or injection ring
 * @on: some slots may wait, at most half of the ring, so that the ring moves on
 *
 * May be called while the ring's runner is active, and may then miss its progress.
 *
 * Return: number of slots that may have come in before the producer could see the change.
 */
static inline u32 vrnic_ring_gather(struct vrnic_ring *ring, bool on)
{
	u32 slots = min_t(u32, VRNIC_GATHER_SLOTS, ring->entries / 2);

	WRITE_ONCE(ring->hdr->gather, on ? slots : 0);
	/* P3 */
	smp_mb();
	return READ_ONCE(ring->hdr->prod) - READ_ONCE(ring->idx);
}

/**
 * vrnic_ring_gather_behind() - go on gathering behind slots that are on the wire
 * @ring: a send ring; called by its runner
 * @ahead: slots that were taken and are not complete yet. These slots take room, too, so a ring
 *	that is almost full has to move on.
 */
static inline void vrnic_ring_gather_behind(struct vrnic_ring *ring, u32 ahead)
{
	u32 slots = min_t(u32, VRNIC_GATHER_WIRE, ring->entries / 2);

	slots = min(ahead + slots, ring->entries - ring->entries / 4);

	if (READ_ONCE(ring->hdr->gather) != slots)
		WRITE_ONCE(ring->hdr->gather, slots);
}

/* The ring's owner has written an invalid index, or has gone. */
static inline void vrnic_ring_error(struct vrnic_ring *ring)
{
	WRITE_ONCE(ring->hdr->flags,
		   READ_ONCE(ring->hdr->flags) | VRNIC_RING_ERROR);
}

/**
 * vrnic_ring_room() - is there room for one more completion
 * @ring: a completion ring
 *
 * An invalid consumer index (ahead of the producer, or too far behind) counts as a full ring.
 */
static inline bool vrnic_ring_room(const struct vrnic_ring *ring)
{
	/* C2 */
	return ring->idx - smp_load_acquire(&ring->hdr->cons) < ring->entries;
}

/**
 * vrnic_ring_used() - slots that the consumer still needs
 * @ring: a reception ring
 *
 * Return: 0 to @ring->entries. A larger number means that the consumer's index is invalid.
 */
static inline u32 vrnic_ring_used(const struct vrnic_ring *ring)
{
	/* C2; a caller that waits for a record runs beside vrnic_ring_produce() */
	return READ_ONCE(ring->idx) - smp_load_acquire(&ring->hdr->cons);
}

/* Make the @n slots that the caller filled valid, and move on. */
static inline void vrnic_ring_produce(struct vrnic_ring *ring, u32 n)
{
	/* vrnic_ring_used() may read @idx at the same time */
	WRITE_ONCE(ring->idx, ring->idx + n);
	/* C1 */
	smp_store_release(&ring->hdr->prod, ring->idx);
}

/* The phase of entry @i in a ring of @entries. Never zero: the phase in new memory is zero. */
static inline u32 vrnic_cqe_phase(u32 i, u32 entries)
{
	return 1 + (i / entries & 1);
}

/* Make the entry that the caller filled valid, and move on. */
static inline void vrnic_cqe_publish(struct vrnic_ring *ring,
				     struct vrnic_cqe *cqe)
{
	/* C1 */
	smp_store_release(&cqe->phase,
			  vrnic_cqe_phase(ring->idx, ring->entries));
	ring->idx++;
	WRITE_ONCE(ring->hdr->prod, ring->idx);
}

/**
 * vrnic_ring_armed() - does the consumer want an event for what was published
 * @ring: a completion ring
 * @solicited: the completion was solicited or failed
 *
 * Return: true once for each time that the consumer armed the ring.
 */
static inline bool vrnic_ring_armed(struct vrnic_ring *ring, bool solicited)
{
	u32 arm;

	/* C3 */
	smp_mb();
	arm = READ_ONCE(ring->hdr->arm);
	if (likely(arm == VRNIC_ARM_NONE))
		return false;
	if (arm == VRNIC_ARM_SOLICITED && !solicited)
		return false;
	return xchg(&ring->hdr->arm, VRNIC_ARM_NONE) != VRNIC_ARM_NONE;
}

/**
 * vrnic_desc_slots() - slots that a descriptor with these contents takes
 * @num_sge: segments, if there is no inline data
 * @inline_len: bytes of inline data, if there are no segments
 */
static inline u32 vrnic_desc_slots(u32 num_sge, u32 inline_len)
{
	u32 slots = 1;

	if (num_sge > VRNIC_DESC_SGES)
		slots += DIV_ROUND_UP(num_sge - VRNIC_DESC_SGES, VRNIC_SLOT_SGES);
	if (inline_len > VRNIC_DESC_DATA)
		slots += DIV_ROUND_UP(inline_len - VRNIC_DESC_DATA, VRNIC_SLOT_SIZE);
	return slots;
}

#endif /* VRNIC_RING_H */
