// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of the rings, charged to the process that maps it, and other memory that processes map. */

#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "queue/mmap.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "ucontext.h"

static size_t ring_bytes(const struct vrnic_ring *ring)
{
	return PAGE_ALIGN(VRNIC_RING_DATA +
			  ((size_t)ring->entries << ring->shift));
}

/* As vmalloc_user(), which has no flags: @gfp decides whether a memory cgroup is charged. */
static void *mem_alloc(size_t bytes, gfp_t gfp)
{
	return __vmalloc(bytes, gfp | __GFP_ZERO);
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
	ring->hdr = mem_alloc(ring_bytes(ring), gfp);
	if (!ring->hdr)
		return -ENOMEM;
	ring->slots = (void *)ring->hdr + VRNIC_RING_DATA;
	return 0;
}

static struct vrnic_mmap *mmap_insert(struct ib_ucontext *uctx, void *mem,
				      size_t bytes)
{
	struct vrnic_mmap *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	int err;

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->mem = mem;
	err = rdma_user_mmap_entry_insert(uctx, &map->rdma, bytes);
	if (err) {
		kfree(map);
		return ERR_PTR(err);
	}
	return map;
}

/**
 * vrnic_mmap_new() - allocate memory that a process may map
 * @uctx: the process's context
 * @bytes: size, a multiple of the page size
 *
 * Return: zeroed memory with its mmap entry, or NULL. rdma_user_mmap_entry_remove() undoes this.
 */
struct vrnic_mmap *vrnic_mmap_new(struct ib_ucontext *uctx, size_t bytes)
{
	void *mem = mem_alloc(bytes, GFP_KERNEL_ACCOUNT);
	struct vrnic_mmap *map;

	if (!mem)
		return NULL;
	map = mmap_insert(uctx, mem, bytes);
	if (!IS_ERR(map))
		return map;
	vfree(mem);
	return NULL;
}

/**
 * vrnic_ring_export() - let a process map a ring
 * @ring: from vrnic_ring_alloc(); vrnic_mmap_free() frees its memory from now on
 * @uctx: the process's context
 * @info: to be filled in; tells the process how to map the ring
 *
 * Return: 0 or a negative errno; on failure the ring is unchanged.
 */
int vrnic_ring_export(struct vrnic_ring *ring, struct ib_ucontext *uctx,
		      struct vrnic_ring_info *info)
{
	struct vrnic_mmap *map = mmap_insert(uctx, ring->hdr, ring_bytes(ring));

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

/* ib_device_ops.mmap_free: the entry was removed, and no process maps the memory any more. */
void vrnic_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct vrnic_mmap *map = container_of(entry, struct vrnic_mmap, rdma);

	vfree(map->mem);
	kfree(map);
}

/* The page tables hold references on the pages, so a page may outlive the vfree() of its entry. */
static int map_pages(struct vm_area_struct *vma, void *mem)
{
	unsigned long addr;
	int err = 0;

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (addr = vma->vm_start; addr < vma->vm_end && !err;
	     addr += PAGE_SIZE, mem += PAGE_SIZE)
		err = vm_insert_page(vma, addr, vmalloc_to_page(mem));
	return err;
}

int vrnic_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct vrnic_mmap *map;
	int err;

	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	map = container_of(entry, struct vrnic_mmap, rdma);
	if (map->private) {
		vm_flags_set(vma, VM_DONTCOPY);
		if (current->mm != to_vuc(uctx)->mm) {
			err = -EPERM;
			goto out_put;
		}
	}
	/* rdma_user_mmap_entry_get() has made sure that the VMA is as long as the entry */
	err = map_pages(vma, map->mem);
out_put:
	rdma_user_mmap_entry_put(entry);
	return err;
}
