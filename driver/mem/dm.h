/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Device memory. */
#ifndef VRNIC_DM_H
#define VRNIC_DM_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct uapi_definition;
struct uverbs_attr_bundle;
struct vrnic_mmap;

/**
 * struct vrnic_dm - a piece of device memory
 * @ibdm: the core's part; its usecnt counts the regions, and the memory lives as long as they do
 * @map: the memory, and what processes map it by
 * @nr_pages: number of entries in @pages
 * @pages: kernel address of each page, for the regions
 */
struct vrnic_dm {
	struct ib_dm ibdm;
	struct vrnic_mmap *map;
	u32 nr_pages;
	void *pages[];
};

static inline struct vrnic_dm *to_vdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct vrnic_dm, ibdm);
}

extern const struct uapi_definition vrnic_dm_defs[];
u64 vrnic_dm_max(void);
struct ib_dm *vrnic_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int vrnic_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);

#endif /* VRNIC_DM_H */
