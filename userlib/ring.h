/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The process's half of the shared rings, for the provider and for libvrnic. A ring is one
 * mapping: a page of indices and flags, then a power of two of entries. The mapping is ordinary
 * coherent memory.
 *
 * Barriers and their partners (driver/queue/ring.h has the other half):
 *
 *  P1 vrnic_ring_publish()        release of prod after the entries were filled, and after
 *       counters were raised by what the engine will take off them
 *       with the kernel's acquire of prod
 *  P2 vrnic_ring_room(), vrnic_ring_cons()   acquire of cons before entries, or what they
 *       name, are reused
 *       with the kernel's release of cons after it used them
 *  P3 vrnic_ring_flags()          prod, full fence, look at the flag
 *       with the kernel's flag, full barrier, look at prod again
 *     On a reception ring: cons instead of prod. If a sender waits for room, the kernel
 *       sets the flag and looks at cons again.
 *  P3 vrnic_ring_may_gather()     prod, full fence (that of the flag), look at gather
 *       with the kernel's gather, full barrier, look at prod again
 *  C2 vrnic_ring_release()        release of cons after the entries were read
 *       with the kernel's acquire of cons before it reuses them
 *  C3 vrnic_ring_arm()            arm, full fence, look at the next entry or prod
 *       with the kernel's entry, full barrier, look at arm
 *  L1 vrnic_late_add()            release of the bit after the number
 *       with the acquire of vrnic_late_ring(), in any thread of the process
 *
 * C1 is how a consumer knows that an entry is there: provider/cq.h has it for completion
 * rings, libvrnic/record.h for reception rings.
 */
#ifndef VRNIC_USERLIB_RING_H
#define VRNIC_USERLIB_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <rdma/vrnic-abi.h>

/**
 * struct vrnic_ring - one ring, as the process sees it
 * @hdr: first page of the mapping; NULL: no ring
 * @slots: the entries
 * @bytes: length of the mapping
 * @entries: a power of two
 * @stride: bytes from one entry to the next
 * @next: index of the next entry that the process fills or takes; the one in @hdr may lag behind
 * @cons: for a ring that the process fills: @hdr->cons as last read
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

/* Does the module's answer make sense? If not, the process would write outside of the mapping. */
static inline bool vrnic_ring_info_is_sane(const struct vrnic_ring_info *info)
{
	return info->entries && !(info->entries & (info->entries - 1)) && info->stride &&
	       info->bytes >= VRNIC_RING_DATA + (uint64_t)info->entries * info->stride;
}

/* Set up @ring, which the kernel made as @info says, and which the process has mapped at @base. */
static inline void vrnic_ring_init(struct vrnic_ring *ring, void *base,
				   const struct vrnic_ring_info *info)
{
	*ring = (struct vrnic_ring){
		.hdr = base,
		.slots = (uint8_t *)base + VRNIC_RING_DATA,
		.bytes = info->bytes,
		.entries = info->entries,
		.stride = info->stride,
	};
}

static inline void *vrnic_ring_slot(const struct vrnic_ring *ring, uint32_t i)
{
	return ring->slots + (size_t)(i & (ring->entries - 1)) * ring->stride;
}

/* ---- the process fills the ring ---- */

static inline uint32_t vrnic_ring_cons(const struct vrnic_ring *ring)
{
	/* P2 */
	return __atomic_load_n(&ring->hdr->cons, __ATOMIC_ACQUIRE);
}

/**
 * vrnic_ring_room() - is there room for more entries
 * @ring: a send, receive or injection ring
 * @end: index after the last entry to be filled
 *
 * Reads the kernel's index, whose cache line moves between CPUs, only if the last value is too old.
 * Return: true if the entries before @end may be filled.
 */
static inline bool vrnic_ring_room(struct vrnic_ring *ring, uint32_t end)
{
	if (end - ring->cons <= ring->entries)
		return true;
	ring->cons = vrnic_ring_cons(ring);
	return end - ring->cons <= ring->entries;
}

/* Hand all entries before @ring->next to the kernel. */
static inline void vrnic_ring_publish(struct vrnic_ring *ring)
{
	/* P1 */
	__atomic_store_n(&ring->hdr->prod, ring->next, __ATOMIC_RELEASE);
}

/* After _publish() or _release(). Return: VRNIC_RING_*, which tell whether to call the kernel. */
static inline uint32_t vrnic_ring_flags(const struct vrnic_ring *ring)
{
	/* P3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED);
}

/* Tell the kernel whether the program posts a stream. Write the cache line only on a change. */
static inline void vrnic_ring_tell_stream(struct vrnic_ring *ring, bool stream)
{
	if (__atomic_load_n(&ring->hdr->stream, __ATOMIC_RELAXED) != stream)
		__atomic_store_n(&ring->hdr->stream, stream, __ATOMIC_RELAXED);
}

/**
 * vrnic_ring_may_gather() - may the doorbell wait until more slots are posted
 * @ring: a send or injection ring in which VRNIC_RING_DOORBELL is set
 *
 * Return: true if the kernel lets so many slots wait; its timer then looks at the ring by itself.
 */
static inline bool vrnic_ring_may_gather(const struct vrnic_ring *ring)
{
	const struct vrnic_ring_hdr *hdr = ring->hdr;
	uint32_t prod = __atomic_load_n(&hdr->prod, __ATOMIC_RELAXED);

	return prod - __atomic_load_n(&hdr->cons, __ATOMIC_RELAXED) <
	       __atomic_load_n(&hdr->gather, __ATOMIC_RELAXED);
}

/* Is the ring dead? The kernel found an invalid index, a CQ overflowed, or the device is gone. */
static inline bool vrnic_ring_failed(const struct vrnic_ring *ring)
{
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) & VRNIC_RING_ERROR;
}

/**
 * vrnic_ring_copy_in() - copy bytes into slots, also around the end of the ring
 * @ring: a send or injection ring
 * @slot: index of the slot from whose first byte @offset counts
 * @offset: of the first byte to fill
 * @src: what to copy
 * @len: bytes; with @offset at most the size of the ring
 */
static inline void vrnic_ring_copy_in(const struct vrnic_ring *ring, uint32_t slot,
				      size_t offset, const void *src, size_t len)
{
	size_t size = (size_t)ring->entries * ring->stride;
	size_t pos = ((size_t)(slot & (ring->entries - 1)) * ring->stride + offset) &
		     (size - 1);
	size_t first = len < size - pos ? len : size - pos;

	if (!len)	/* then @src may be NULL, which memcpy() must not see */
		return;
	memcpy(ring->slots + pos, src, first);
	if (first < len)
		memcpy(ring->slots, (const uint8_t *)src + first, len - first);
}

/**
 * vrnic_ring_copy_iov() - copy buffers into slots, one behind the other
 * @ring: a send or injection ring
 * @slot: index of the slot from whose first byte @offset counts
 * @offset: of the first byte to fill
 * @iov: the buffers; with @offset at most the size of the ring
 * @nr: number of buffers
 *
 * Return: the offset behind the last byte that was filled.
 */
static inline size_t vrnic_ring_copy_iov(const struct vrnic_ring *ring, uint32_t slot,
					 size_t offset, const struct iovec *iov, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; offset += iov[i++].iov_len)
		vrnic_ring_copy_in(ring, slot, offset, iov[i].iov_base, iov[i].iov_len);
	return offset;
}

/* ---- the kernel fills the ring ---- */

/*
 * Give all entries before @ring->next back to the kernel. Store only a new index: a program that
 * polls an empty ring would otherwise dirty a cache line that the kernel reads.
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
	return __atomic_load_n(&ring->hdr->arm, __ATOMIC_RELAXED) != VRNIC_ARM_NONE;
}

/**
 * vrnic_ring_arm() - ask for an event, before the caller looks for an entry once more
 * @ring: a completion or reception ring
 * @solicited: only at a solicited or failed completion
 *
 * @solicited must not weaken an earlier request for any completion, and the kernel may clear the
 * word at any time. So that case needs a compare-and-exchange.
 */
static inline void vrnic_ring_arm(struct vrnic_ring *ring, bool solicited)
{
	uint32_t none = VRNIC_ARM_NONE;

	if (solicited)
		__atomic_compare_exchange_n(&ring->hdr->arm, &none, VRNIC_ARM_SOLICITED,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&ring->hdr->arm, VRNIC_ARM_NEXT, __ATOMIC_RELAXED);
	/* C3 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Is there an entry that no event told of, and one that no poll has given back? */
static inline bool vrnic_ring_untold(const struct vrnic_ring *ring)
{
	uint32_t prod = __atomic_load_n(&ring->hdr->prod, __ATOMIC_RELAXED);

	return prod != __atomic_load_n(&ring->hdr->cons, __ATOMIC_RELAXED) &&
	       prod != __atomic_load_n(&ring->hdr->told, __ATOMIC_RELAXED);
}

/* Take back what vrnic_ring_arm() asked for. Return: VRNIC_ARM_NONE: the event has been raised. */
static inline uint32_t vrnic_ring_disarm(struct vrnic_ring *ring)
{
	return __atomic_exchange_n(&ring->hdr->arm, VRNIC_ARM_NONE, __ATOMIC_SEQ_CST);
}

/* ---- doorbells ---- */

/* Call the kernel. @request: VRNIC_DOORBELL or VRNIC_ADVANCE. Return: 0 or an errno. */
static inline int vrnic_ring_call(int fd, unsigned long request, uint32_t number)
{
	while (ioctl(fd, request, (unsigned long)number))
		if (errno != EINTR)
			return errno;
	return 0;
}

#define VRNIC_LATE	32

/**
 * struct vrnic_late - doorbells that have to be rung before the program waits
 * @set: a bit for each place in @number that is taken
 * @number: numbers of queue pairs or FIFOs. One of them may be gone when its doorbell is rung, and
 *	its number may be that of a new one: a doorbell too many does no harm.
 */
struct vrnic_late {
	uint32_t set;
	uint32_t number[VRNIC_LATE];
};

/**
 * vrnic_late_add() - note a doorbell that is to be rung before the program waits
 * @late: doorbells that are due
 * @fd: doorbell file
 * @request: VRNIC_DOORBELL or VRNIC_ADVANCE
 * @number: of the queue pair or FIFO
 *
 * If another number has the same place, its doorbell is rung now; an error of this call does not
 * concern @number. Another thread may run vrnic_late_ring() between the two atomic operations: it
 * rings for @number in place of the older one, which then waits for the kernel's timer.
 */
static inline void vrnic_late_add(struct vrnic_late *late, int fd, unsigned long request,
				  uint32_t number)
{
	uint32_t place = number % VRNIC_LATE, other, set;

	other = __atomic_exchange_n(&late->number[place], number, __ATOMIC_RELAXED);
	/* L1 */
	set = __atomic_fetch_or(&late->set, 1U << place, __ATOMIC_RELEASE);
	if (set & 1U << place && other != number)
		vrnic_ring_call(fd, request, other);
}

static inline bool vrnic_late_any(const struct vrnic_late *late)
{
	return __atomic_load_n(&late->set, __ATOMIC_RELAXED);
}

/* Ring all due doorbells. After an error the object is gone, or its next post reports the error. */
static inline void vrnic_late_ring(struct vrnic_late *late, int fd, unsigned long request)
{
	/* L1 */
	uint32_t set = __atomic_exchange_n(&late->set, 0, __ATOMIC_ACQUIRE);

	for (; set; set &= set - 1)
		vrnic_ring_call(fd, request,
				__atomic_load_n(&late->number[__builtin_ctz(set)],
						__ATOMIC_RELAXED));
}

#endif /* VRNIC_USERLIB_RING_H */
