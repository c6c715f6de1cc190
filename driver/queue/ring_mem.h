/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The memory of a ring. This file needs nothing from ib_core. */
#ifndef VRNIC_RING_MEM_H
#define VRNIC_RING_MEM_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

struct ib_ucontext;
struct vrnic_mmap;

/**
 * struct vrnic_ring - one ring, as the kernel sees it
 * @hdr: first page of the mapping
 * @slots: the entries
 * @entries: a power of two
 * @shift: an entry is 1 << @shift bytes
 * @idx: the kernel's own index: the next entry to take (send, injection and receive rings) or to
 *	fill (completion and reception rings). Protected by the runnable's run bit (send, injection)
 *	or by the lock of the RQ, SRQ, CQ or reception FIFO.
 * @map: what the process maps the ring by; NULL if a kernel consumer has the ring
 */
struct vrnic_ring {
	struct vrnic_ring_hdr *hdr;
	void *slots;
	u32 entries;
	u8 shift;
	u32 idx;
	struct vrnic_mmap *map;
};

int vrnic_ring_alloc(struct vrnic_ring *ring, u32 entries, u32 stride, gfp_t gfp);
int vrnic_ring_export(struct vrnic_ring *ring, struct ib_ucontext *uctx, bool private,
		      struct vrnic_ring_info *info);
void vrnic_ring_free(struct vrnic_ring *ring);
void vrnic_ring_reset(struct vrnic_ring *ring);

#endif /* VRNIC_RING_MEM_H */
