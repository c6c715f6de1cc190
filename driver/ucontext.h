/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The context of a process. */
#ifndef VRNIC_UCONTEXT_H
#define VRNIC_UCONTEXT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct mem_cgroup;
struct mm_struct;
struct vrnic_crew;

/**
 * struct vrnic_ucontext - an open device file
 * @ibuc: the core's part
 * @mm: memory of the process that opened the file; its mm_count is held
 * @memcg: memory cgroup of the process when it opened the file; a reference is held. It pays for
 *	what is kept for the context, also when the process has gone and others have the file. May
 *	be NULL
 * @crew: the engine threads in the cgroups of the process; a reference is held
 * @counter_lock: protects @counter_pages
 * @counter_pages: struct vrnic_counter_page
 */
struct vrnic_ucontext {
	struct ib_ucontext ibuc;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	struct vrnic_crew *crew;
	struct mutex counter_lock;	/* protects @counter_pages */
	struct list_head counter_pages;
};

static inline struct vrnic_ucontext *to_vuc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct vrnic_ucontext, ibuc);
}

extern const struct uapi_definition vrnic_uapi_defs[];
int vrnic_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
void vrnic_dealloc_ucontext(struct ib_ucontext *uctx);
void vrnic_disassociate_ucontext(struct ib_ucontext *uctx);

#endif /* VRNIC_UCONTEXT_H */
