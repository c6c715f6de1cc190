/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings shared with processes, and the memory barriers between the kernel and the process.
 *
 * A ring is one mapping: a page of indices and flags (struct vrnic_ring_hdr), then a power of two
 * of entries. The process may write anything into the ring at any time. So the kernel relies on its
 * own index (@idx), and publishes it in the header but never reads it back. The kernel reads the
 * process's index once for each decision, and copies an entry before it checks the contents.
 *
 * Barriers and their partners (userlib/ring.h has the process's half):
 *
 *  P1 vrnic_ring_avail()   acquire of hdr->prod
 *       with the producer's release of prod after it filled the slots
 *  P2 vrnic_ring_consume() release of hdr->cons
 *       with the producer's acquire of cons before it reuses slots
 *  P3 vrnic_ring_ask_doorbell(): flag, full barrier, look at prod again
 *       with the producer's prod, full fence, look at the flag;
 *     on reception rings, for which senders wait, the kernel looks at cons again
 *       with the consumer's cons, full fence, look at the flag
 *  P3 vrnic_ring_gather(), to end the gathering: gather, full barrier, look at prod again
 *       with the producer's prod, full fence, look at gather
 *  C1 vrnic_cqe_publish()  release of cqe->phase
 *       with the consumer's acquire of phase
 *  C2 vrnic_ring_room()    acquire of hdr->cons
 *       with the consumer's release of cons after it read the entries
 *  C1 vrnic_ring_produce() release of hdr->prod, on reception rings
 *       with the consumer's acquire of prod
 *  C2 vrnic_ring_used()    acquire of hdr->cons, on reception rings
 *       with the consumer's release of cons after it read the slots
 *  C3 vrnic_ring_asks(): entry, full barrier, look at arm
 *       with the consumer's arm, full fence, look at the next entry or prod
 *
 * This file needs nothing from ib_core.
 */
#ifndef VRNIC_RING_H
#define VRNIC_RING_H

#include <linux/kernel.h>
#include <linux/atomic.h>
#include <rdma/vrnic-abi.h>

#include "queue/ring_mem.h"

#define VRNIC_GATHER_SLOTS	16	/* slots that one doorbell may announce */
#define VRNIC_GATHER_WIRE	32	/* the same over the wire: doorbells cost packets */

static inline void *vrnic_ring_slot(const struct vrnic_ring *ring, u32 i)
{
	return ring->slots + ((size_t)(i & (ring->entries - 1)) << ring->shift);
}

/**
 * vrnic_ring_avail() - how many entries the producer has filled
 * @ring: a ring that its owner fills: send, receive or injection ring
 *
 * Return: 0 to @ring->entries. A larger number means that the producer's index is invalid: the
 * caller has to move the queue pair, SRQ or FIFO to error.
 */
static inline u32 vrnic_ring_avail(const struct vrnic_ring *ring)
{
	/* P1 */
	return smp_load_acquire(&ring->hdr->prod) - ring->idx;
}

/**
 * vrnic_ring_consume() - move on by @n entries, and publish this to the producer
 * @ring: a ring that its owner fills
 * @n: number of entries
 */
static inline void vrnic_ring_consume(struct vrnic_ring *ring, u32 n)
{
	/* vrnic_ring_ask_doorbell() may read @idx at the same time */
	WRITE_ONCE(ring->idx, ring->idx + n);
	/* P2: the caller has copied the entries, so the producer may overwrite them */
	smp_store_release(&ring->hdr->cons, ring->idx);
}

/**
 * vrnic_ring_ask_doorbell() - ask the process for a system call when it next moves its index
 * @ring: any ring but a completion ring; the index is prod, but cons of a reception ring
 *
 * Return: entries that the producer may have filled before it could see the flag.
 */
static inline u32 vrnic_ring_ask_doorbell(struct vrnic_ring *ring)
{
	WRITE_ONCE(ring->hdr->flags,
		   READ_ONCE(ring->hdr->flags) | VRNIC_RING_DOORBELL);
	/* P3 */
	smp_mb();
	/* vrnic_rings_fail() calls this without the run bit, so it ignores the result */
	return READ_ONCE(ring->hdr->prod) - READ_ONCE(ring->idx);
}

/* The kernel polls the ring, or waits for nothing: the process need not make system calls. */
static inline void vrnic_ring_spare_doorbell(struct vrnic_ring *ring)
{
	WRITE_ONCE(ring->hdr->flags,
		   READ_ONCE(ring->hdr->flags) & ~VRNIC_RING_DOORBELL);
}

/* Does the process post a stream of requests, so that one doorbell for several would do? */
static inline bool vrnic_ring_streams(const struct vrnic_ring *ring)
{
	return READ_ONCE(ring->hdr->stream);
}

/**
 * vrnic_ring_gather() - set whether the process may fill several slots before it rings
 * @ring: a send or injection ring; the caller has the run bit
 * @on: true: up to VRNIC_GATHER_SLOTS, but no more than half of the ring, so that the process does
 *	not find the ring full before it has to ring; false: none
 *
 * Return: slots that the process may have filled before it could see the change.
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
 * vrnic_ring_gather_behind() - as vrnic_ring_gather(), for slots behind those on the wire
 * @ring: a send ring; the caller is its runner
 * @ahead: slots that were fetched and are not acknowledged yet. They count, as cons does not move
 *	past them. A quarter of the ring stays free, so the process rings before the ring is full.
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
 * vrnic_ring_room() - look for room for one more completion
 * @ring: a completion ring
 *
 * Return: true if there is room. A ring with an invalid consumer index counts as full.
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
	/* C2; a task in vrnic_fifo_wait() does this while a runner is in vrnic_ring_produce() */
	return READ_ONCE(ring->idx) - smp_load_acquire(&ring->hdr->cons);
}

/* Publish the @n slots of a reception ring that the caller filled, and move on. */
static inline void vrnic_ring_produce(struct vrnic_ring *ring, u32 n)
{
	/* vrnic_ring_used() may read @idx at the same time */
	WRITE_ONCE(ring->idx, ring->idx + n);
	/* C1 */
	smp_store_release(&ring->hdr->prod, ring->idx);
}

/* Entry @i's phase, which alternates with each lap. Never 0, as in an entry not yet written. */
static inline u32 vrnic_cqe_phase(u32 i, u32 entries)
{
	return 1 + (i / entries & 1);
}

/* Publish the completion entry that the caller filled, and move on. */
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
 * vrnic_ring_asks() - does the consumer want an event for the entry just published
 * @ring: a completion or reception ring
 * @solicited: the completion was solicited or failed
 *
 * Return: true if so; vrnic_ring_take() then takes the request.
 */
static inline bool vrnic_ring_asks(struct vrnic_ring *ring, bool solicited)
{
	u32 arm;

	/* C3 */
	smp_mb();
	arm = READ_ONCE(ring->hdr->arm);
	return unlikely(arm != VRNIC_ARM_NONE) && (solicited || arm != VRNIC_ARM_SOLICITED);
}

/* Return: true once for each time that the consumer armed the ring. */
static inline bool vrnic_ring_take(struct vrnic_ring *ring)
{
	return xchg(&ring->hdr->arm, VRNIC_ARM_NONE) != VRNIC_ARM_NONE;
}

/* vrnic_ring_asks(), and takes the request. */
static inline bool vrnic_ring_armed(struct vrnic_ring *ring, bool solicited)
{
	return vrnic_ring_asks(ring, solicited) && vrnic_ring_take(ring);
}

/**
 * vrnic_desc_slots() - compute the size of a descriptor
 * @num_sge: number of segments; 0 if the data is inline
 * @inline_len: bytes of inline data, or 0. Return: number of slots
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
