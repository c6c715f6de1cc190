/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's part of an open uverbs file: a context. */
#ifndef VRNIC_UCONTEXT_H
#define VRNIC_UCONTEXT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct mem_cgroup;
struct mm_struct;
struct vrnic_crew;
struct vrnic_user;

/**
 * struct vrnic_ucontext - an open uverbs file of a device
 * @ibuc: the core's part
 * @number: not 0, and not the number of any other context, now or later. Objects tell by it whose
 *	they are, because a new context may be at the address of one that has gone
 * @mm: memory of the process that opened the file; its mm_count is held
 * @memcg: memory cgroup of the process when it opened the file, or NULL; a reference is held. It
 *	pays for memory that the driver keeps for the context, also when this process has exited
 *	and another process has the file
 * @crew: the engine threads in the cgroups of the process; a reference is held
 * @user: user who opened the file; NULL: root; a reference is held
 * @place_lock: protects @place_pages
 * @place_pages: list of struct vrnic_place_page, the pages of counters
 */
struct vrnic_ucontext {
	struct ib_ucontext ibuc;
	u64 number;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	struct vrnic_crew *crew;
	struct vrnic_user *user;
	struct mutex place_lock;	/* protects @place_pages */
	struct list_head place_pages;
};

static inline struct vrnic_ucontext *to_vuc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct vrnic_ucontext, ibuc);
}

extern const struct uapi_definition vrnic_uapi_defs[];
int vrnic_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
int vrnic_query_ucontext(struct ib_ucontext *uctx, struct uverbs_attr_bundle *attrs);
void vrnic_dealloc_ucontext(struct ib_ucontext *uctx);
void vrnic_disassociate_ucontext(struct ib_ucontext *uctx);

#endif /* VRNIC_UCONTEXT_H */
