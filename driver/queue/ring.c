// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of the rings, charged to the process that maps it. */

#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "mem/mmap.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"

static size_t ring_bytes(const struct vrnic_ring *ring)
{
	return PAGE_ALIGN(VRNIC_RING_DATA +
			  ((size_t)ring->entries << ring->shift));
}

/**
 * vrnic_ring_alloc() - allocate memory for a ring
 * @ring: to be filled in
 * @entries: rounded up to a power of two
 * @stride: bytes of an entry; a power of two
 * @gfp: GFP_KERNEL_ACCOUNT, or the caller's own flags if it must not wait for memory
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_ring_alloc(struct vrnic_ring *ring, u32 entries, u32 stride, gfp_t gfp)
{
	ring->entries = roundup_pow_of_two(max(entries, 1U));
	ring->shift = ilog2(stride);
	ring->idx = 0;
	ring->map = NULL;
	ring->hdr = vrnic_mmap_mem(ring_bytes(ring), gfp);
	if (!ring->hdr)
		return -ENOMEM;
	ring->slots = (void *)ring->hdr + VRNIC_RING_DATA;
	return 0;
}

/**
 * vrnic_ring_export() - let a process map a ring
 * @ring: from vrnic_ring_alloc(); vrnic_mmap_free() frees its memory from now on
 * @uctx: the process's context
 * @private: see struct vrnic_mmap
 * @info: to be filled in; tells the process how to map the ring
 *
 * Return: 0 or a negative errno; on failure the ring is unchanged.
 */
int vrnic_ring_export(struct vrnic_ring *ring, struct ib_ucontext *uctx, bool private,
		      struct vrnic_ring_info *info)
{
	struct vrnic_mmap *map = vrnic_mmap_insert(uctx, ring->hdr, ring_bytes(ring), private);

	if (IS_ERR(map))
		return PTR_ERR(map);
	ring->map = map;
	info->offset = rdma_user_mmap_get_offset(&map->rdma);
	info->bytes = ring_bytes(ring);
	info->entries = ring->entries;
	info->stride = 1U << ring->shift;
	return 0;
}

/*
 * Free a ring. Does nothing to a zeroed @ring, nor to one that is freed already. A process that
 * maps the ring learns from VRNIC_RING_ERROR that nobody serves it any more: the device may have
 * been removed without any action of the process.
 */
void vrnic_ring_free(struct vrnic_ring *ring)
{
	if (ring->map) {
		vrnic_ring_error(ring);
		rdma_user_mmap_entry_remove(&ring->map->rdma);
	} else {
		vfree(ring->hdr);
	}
	ring->hdr = NULL;
	ring->map = NULL;
}

/* Make the ring empty. Neither a runner nor a peer may use it. */
void vrnic_ring_reset(struct vrnic_ring *ring)
{
	if (!ring->hdr)
		return;
	/* vrnic_rings_fail() may read the index at the same time */
	WRITE_ONCE(ring->idx, 0);
	WRITE_ONCE(ring->hdr->prod, 0);
	WRITE_ONCE(ring->hdr->cons, 0);
}
