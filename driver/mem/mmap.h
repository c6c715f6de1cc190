/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Kernel memory that processes map. */
#ifndef VRNIC_MMAP_H
#define VRNIC_MMAP_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct vm_area_struct;

/**
 * struct vrnic_mmap - memory that processes map: a ring, counters, or device memory
 * @rdma: the core's part
 * @mem: the memory
 * @private: only the process that opened the context may map it, and the mapping is not copied at
 *	fork()
 */
struct vrnic_mmap {
	struct rdma_user_mmap_entry rdma;
	void *mem;
	bool private;
};

void *vrnic_mmap_mem(size_t bytes, gfp_t gfp);
struct vrnic_mmap *vrnic_mmap_insert(struct ib_ucontext *uctx, void *mem, size_t bytes,
				     bool private);
struct vrnic_mmap *vrnic_mmap_new(struct ib_ucontext *uctx, size_t bytes, bool private);
int vrnic_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void vrnic_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* VRNIC_MMAP_H */
