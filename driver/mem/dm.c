// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory that a NIC has on board, and whose addresses are offsets. Here it is memory
 * of the kernel, charged to the process that allocates it. The provider maps it, and copies to and
 * from it by loads and stores; queue pairs reach it by regions (vrnic_reg_dm_mr()), as they reach
 * all memory.
 *
 * A process may keep its mapping when the memory is freed, or the device removed: its page tables
 * hold the pages (see mmap.c), and the pages stay charged. No region leads to them any more.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>
#include <rdma/vrnic-abi.h>

#include "mem/dm.h"
#include "mem/mmap.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

#define DM_BYTES_MAX	SZ_1G

static unsigned long dm_bytes = SZ_16M;
module_param(dm_bytes, ulong, 0644);
MODULE_PARM_DESC(dm_bytes, "bytes of device memory of each device, up to 1 GiB (default 16 MiB)");

/**
 * vrnic_dm_max() - how much device memory a device has
 *
 * Return: bytes, a multiple of the page size; 0: there is no device memory.
 */
u64 vrnic_dm_max(void)
{
	return min_t(unsigned long, READ_ONCE(dm_bytes), DM_BYTES_MAX) & PAGE_MASK;
}

/* Count @nr_pages more pages, if the device has them. */
static bool dm_pages_get(struct vrnic_dev *dev, u32 nr_pages)
{
	if (atomic_long_add_return(nr_pages, &dev->dm_pages) <= vrnic_dm_max() >> PAGE_SHIFT)
		return true;
	atomic_long_sub(nr_pages, &dev->dm_pages);
	return false;
}

static void dm_pages_put(struct vrnic_dev *dev, u32 nr_pages)
{
	WARN_ON_ONCE(atomic_long_sub_return(nr_pages, &dev->dm_pages) < 0);
}

static struct vrnic_dm *dm_new(struct ib_ucontext *uctx, u32 nr_pages)
{
	struct vrnic_dm *dm;
	u32 i;

	dm = kvzalloc(struct_size(dm, pages, nr_pages), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return NULL;
	dm->map = vrnic_mmap_new(uctx, (size_t)nr_pages << PAGE_SHIFT, false);
	if (!dm->map) {
		kvfree(dm);
		return NULL;
	}
	dm->nr_pages = nr_pages;
	for (i = 0; i < nr_pages; i++)
		dm->pages[i] = page_address(vmalloc_to_page(dm->map->mem + i * PAGE_SIZE));
	return dm;
}

/* The memory begins at a page, and so do its addresses: a larger alignment would mean nothing. */
struct ib_dm *vrnic_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_dev *dev = to_vdev(ibdev);
	struct vrnic_dm *dm;
	u32 nr_pages;

	if (!vrnic_dm_max())
		return ERR_PTR(-EOPNOTSUPP);
	if (!attr->length || attr->length > vrnic_dm_max() || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	nr_pages = PFN_UP(attr->length);
	if (!dm_pages_get(dev, nr_pages))
		return ERR_PTR(-ENOMEM);
	dm = dm_new(uctx, nr_pages);
	if (!dm) {
		dm_pages_put(dev, nr_pages);
		return ERR_PTR(-ENOMEM);
	}
	return &dm->ibdm;
}

/* The core knows that the memory has no region. */
int vrnic_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_dm *dm = to_vdm(ibdm);

	rdma_user_mmap_entry_remove(&dm->map->rdma);
	dm_pages_put(to_vdev(ibdm->device), dm->nr_pages);
	kvfree(dm);
	return 0;
}

static int UVERBS_HANDLER(VRNIC_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, VRNIC_ATTR_DM_QUERY_HANDLE);
	struct vrnic_dm *dm = to_vdm(ibdm);
	struct vrnic_dm_info info = {
		.offset = rdma_user_mmap_get_offset(&dm->map->rdma),
		.bytes = (u64)dm->nr_pages << PAGE_SHIFT,
		.length = ibdm->length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_DM_QUERY_RESP, &info, sizeof(info));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_DM_QUERY_HANDLE,
			UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_DM_QUERY_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_dm_info, length),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(dm_object,
		   UVERBS_OBJECT_DM,
		   &UVERBS_METHOD(VRNIC_METHOD_DM_QUERY));

const struct uapi_definition vrnic_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &dm_object),
	{},
};
