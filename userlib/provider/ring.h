/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The process's half of the shared rings, and every memory barrier of the
 * provider. A ring is one mapping: a page of indices and flags, then a power of
 * two of entries. It is ordinary coherent memory.
 *
 * Barriers and their partners (driver/queue/ring.h has the other half):
 *
 *  P1 vrnic_ring_publish()        release of prod after the entries were filled
 *       with the kernel's acquire of prod
 *  P2 vrnic_ring_room()           acquire of cons before entries are reused
 *       with the kernel's release of cons after it copied them
 *  P3 vrnic_ring_flags()          prod, full fence, look at the flag
 *       with the kernel's flag, full barrier, look at prod again
 *  P3 vrnic_ring_may_gather()     prod, full fence (that of the flag), look at gather
 *       with the kernel's gather, full barrier, look at prod again
 *  C1 vrnic_ring_peek_cqe()       acquire of phase before the entry is read
 *       with the kernel's release of phase after it wrote the entry
 *  C2 vrnic_ring_release()        release of cons after the entries were read
 *       with the kernel's acquire of cons before it reuses them
 *  C3 vrnic_ring_arm()            arm, full fence, look at the next entry
 *       with the kernel's entry, full barrier, look at arm
 */
#ifndef VRNIC_PROVIDER_RING_H
#define VRNIC_PROVIDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compat.h"
#include <rdma/vrnic-abi.h>

/**
 * struct vrnic_ring - one ring, as the process sees it
 * @hdr: first page of the mapping; NULL: no ring
 * @slots: the entries
 * @bytes: length of the mapping
 * @entries: a power of two
 * @stride: bytes from one entry to the next
 * @next: the next entry to fill (send and receive rings) or to take (completion
 *	rings); what is published may lag behind
 * @cons: send and receive rings: the kernel's index when it was last looked at
 *
 * @next and @cons are protected by the lock of the ring's owner.
 */
struct vrnic_ring {
	struct vrnic_ring_hdr *hdr;
	uint8_t *slots;
	size_t bytes;
	uint32_t entries;
	uint32_t stride;
	uint32_t next;
	uint32_t cons;
};

static inline void *vrnic_ring_slot(const struct vrnic_ring *ring, uint32_t i)
{
	return ring->slots + (size_t)(i & (ring->entries - 1)) * ring->stride;
}

/**
 * vrnic_ring_room() - may entries be filled
 * @ring: a send or receive ring
 * @end: the entry after the last one to be filled
 *
 * The kernel's index is only looked at when the last look does not do: its
 * cache line moves between CPUs.
 */
static inline bool vrnic_ring_room(struct vrnic_ring *ring, uint32_t end)
{
	if (end - ring->cons <= ring->entries)
		return true;
	/* P2 */
	ring->cons = __atomic_load_n(&ring->hdr->cons, __ATOMIC_ACQUIRE);
	return end - ring->cons <= ring->entries;
}

/* Hand all that was filled to the kernel. */
static inline void vrnic_ring_publish(struct vrnic_ring *ring)
{
	/* P1 */
	__atomic_store_n(&ring->hdr->prod, ring->next, __ATOMIC_RELEASE);
}

/* After vrnic_ring_publish(): VRNIC_RING_*; has the kernel to be called? */
static inline uint32_t vrnic_ring_flags(const struct vrnic_ring *ring)
{
	/* P3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED);
}

/* Tell the kernel whether doorbells may be few; write the cache line only on a change. */
static inline void vrnic_ring_tell_stream(struct vrnic_ring *ring, bool stream)
{
	if (__atomic_load_n(&ring->hdr->stream, __ATOMIC_RELAXED) != stream)
		__atomic_store_n(&ring->hdr->stream, stream, __ATOMIC_RELAXED);
}

/**
 * vrnic_ring_may_gather() - may the doorbell wait for more
 * @ring: a send ring, whose doorbell is wanted
 *
 * The kernel says how far it may fall behind; it looks by itself a little later.
 */
static inline bool vrnic_ring_may_gather(const struct vrnic_ring *ring)
{
	const struct vrnic_ring_hdr *hdr = ring->hdr;
	uint32_t prod = __atomic_load_n(&hdr->prod, __ATOMIC_RELAXED);

	return prod - __atomic_load_n(&hdr->cons, __ATOMIC_RELAXED) <
	       __atomic_load_n(&hdr->gather, __ATOMIC_RELAXED);
}

static inline bool vrnic_ring_failed(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) &
	       VRNIC_RING_ERROR;
}

/* Publish an entry as the kernel does, in a ring that the kernel no longer writes to. */
static inline void vrnic_ring_fail(struct vrnic_ring *ring)
{
	__atomic_fetch_or(&ring->hdr->flags, VRNIC_RING_ERROR,
			  __ATOMIC_RELAXED);
}

/**
 * vrnic_ring_peek_cqe() - look at a completion
 * @ring: a completion ring
 * @i: index of the entry
 *
 * Return: the entry, or NULL if the kernel has not written it yet.
 */
static inline struct vrnic_cqe *
vrnic_ring_peek_cqe(const struct vrnic_ring *ring, uint32_t i)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(ring, i);
	uint32_t valid = 1 + !!(i & ring->entries);

	/* C1 */
	if (__atomic_load_n(&cqe->phase, __ATOMIC_ACQUIRE) != valid)
		return NULL;
	return cqe;
}

/*
 * Give all taken entries back to the kernel. A program that polls an empty ring
 * must not keep on dirtying a cache line that the kernel reads.
 */
static inline void vrnic_ring_release(struct vrnic_ring *ring)
{
	if (__atomic_load_n(&ring->hdr->cons, __ATOMIC_RELAXED) == ring->next)
		return;
	/* C2 */
	__atomic_store_n(&ring->hdr->cons, ring->next, __ATOMIC_RELEASE);
}

static inline bool vrnic_ring_is_armed(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->arm, __ATOMIC_RELAXED) !=
	       VRNIC_ARM_NONE;
}

/**
 * vrnic_ring_arm() - ask for an event
 * @ring: a completion ring
 * @solicited: only at a solicited or failed completion
 *
 * Asking for less must not take back what was asked for before, and the kernel
 * may clear the word at any time: so an exchange, not a look and a store.
 */
static inline void vrnic_ring_arm(struct vrnic_ring *ring, bool solicited)
{
	uint32_t none = VRNIC_ARM_NONE;

	if (solicited)
		__atomic_compare_exchange_n(&ring->hdr->arm, &none,
					    VRNIC_ARM_SOLICITED, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&ring->hdr->arm, VRNIC_ARM_NEXT,
				 __ATOMIC_RELAXED);
	/* C3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/**
 * vrnic_ring_copy_in() - fill bytes that may go on at the ring's start
 * @ring: a send ring
 * @slot: index of the slot from whose first byte @offset counts
 * @offset: where to start
 * @src: what to copy
 * @len: bytes; with @offset at most the size of the ring
 */
static inline void vrnic_ring_copy_in(const struct vrnic_ring *ring,
				      uint32_t slot, size_t offset,
				      const void *src, size_t len)
{
	size_t size = (size_t)ring->entries * ring->stride;
	size_t pos = ((size_t)(slot & (ring->entries - 1)) * ring->stride +
		      offset) & (size - 1);
	size_t first = len < size - pos ? len : size - pos;

	if (!len)	/* then @src may be NULL, which memcpy() must not see */
		return;
	memcpy(ring->slots + pos, src, first);
	if (first < len)
		memcpy(ring->slots, (const uint8_t *)src + first, len - first);
}

int vrnic_ring_map(struct vrnic_ring *ring, struct ibv_context *context,
		   const struct vrnic_ring_info *info);
void vrnic_ring_unmap(struct vrnic_ring *ring, struct ibv_context *context);

/* The kernel has put the ring's own indices back to zero. */
static inline void vrnic_ring_reset(struct vrnic_ring *ring)
{
	ring->next = 0;
	ring->cons = 0;
}

#endif /* VRNIC_PROVIDER_RING_H */
