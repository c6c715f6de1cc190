// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Kernel memory that processes map: rings, counters, device memory. */

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "mem/mmap.h"
#include "ucontext.h"

/**
 * vrnic_mmap_mem() - allocate memory for vrnic_mmap_insert()
 * @bytes: size
 * @gfp: GFP_KERNEL_ACCOUNT, or the caller's own flags if it must not wait for memory
 *
 * As vmalloc_user(), which has no flags: @gfp decides whether a memory cgroup is charged.
 *
 * Return: zeroed memory, or NULL.
 */
void *vrnic_mmap_mem(size_t bytes, gfp_t gfp)
{
	return __vmalloc(bytes, gfp | __GFP_ZERO);
}

/**
 * vrnic_mmap_insert() - let a process map memory
 * @uctx: the process's context
 * @mem: from vrnic_mmap_mem(); on success vrnic_mmap_free() frees it
 * @bytes: size, a multiple of the page size
 * @private: see struct vrnic_mmap
 *
 * Return: the mmap entry, which rdma_user_mmap_entry_remove() removes, or an ERR_PTR().
 */
struct vrnic_mmap *vrnic_mmap_insert(struct ib_ucontext *uctx, void *mem, size_t bytes,
				     bool private)
{
	struct vrnic_mmap *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	int err;

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->mem = mem;
	map->private = private;
	/* from here on it can be mapped */
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
 * @private: see struct vrnic_mmap
 *
 * Return: zeroed memory with its mmap entry, or NULL. rdma_user_mmap_entry_remove() undoes this.
 */
struct vrnic_mmap *vrnic_mmap_new(struct ib_ucontext *uctx, size_t bytes, bool private)
{
	void *mem = vrnic_mmap_mem(bytes, GFP_KERNEL_ACCOUNT);
	struct vrnic_mmap *map;

	if (!mem)
		return NULL;
	map = vrnic_mmap_insert(uctx, mem, bytes, private);
	if (!IS_ERR(map))
		return map;
	vfree(mem);
	return NULL;
}

/*
 * ib_device_ops.mmap_free: the entry was removed, and no call is mapping it. Processes may have
 * mapped it before: see map_pages().
 */
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
