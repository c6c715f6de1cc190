/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How the core's on-demand memory differs from kernel to kernel. */
#ifndef VRNIC_COMPAT_UMEM_ODP_H
#define VRNIC_COMPAT_UMEM_ODP_H

#include <linux/err.h>
#include <linux/hmm.h>
#include <rdma/ib_umem_odp.h>

/* The core's list of pages moved into a struct hmm_dma_map in 6.16, and the rights changed. */
#ifdef VRNIC_HAVE_UMEM_ODP_MAP
static inline unsigned long vrnic_umem_odp_pfn(const struct ib_umem_odp *umem, unsigned long i)
{
	return umem->map.pfn_list[i];
}

static inline u64 vrnic_umem_odp_access(bool write)
{
	return write ? HMM_PFN_WRITE : 0;
}
#else
static inline unsigned long vrnic_umem_odp_pfn(const struct ib_umem_odp *umem, unsigned long i)
{
	return umem->pfn_list[i];
}

static inline u64 vrnic_umem_odp_access(bool write)
{
	return ODP_READ_ALLOWED_BIT | (write ? ODP_WRITE_ALLOWED_BIT : 0);
}
#endif

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#define vrnic_umem_odp_implicit		ib_umem_odp_alloc_implicit
#define vrnic_umem_odp_child		ib_umem_odp_alloc_child
#define vrnic_umem_odp_map_and_lock	ib_umem_odp_map_dma_and_lock
#define vrnic_umem_odp_unmap		ib_umem_odp_unmap_dma_pages
#else
/* Without the option, the core declares only a part of its functions. Nothing calls these then. */
static inline struct ib_umem_odp *vrnic_umem_odp_implicit(struct ib_device *ibdev, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct ib_umem_odp *
vrnic_umem_odp_child(struct ib_umem_odp *root, unsigned long start, size_t length,
		     const struct mmu_interval_notifier_ops *ops)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline int vrnic_umem_odp_map_and_lock(struct ib_umem_odp *umem, u64 start, u64 length,
					      u64 access, bool fault)
{
	return -EOPNOTSUPP;
}

static inline void vrnic_umem_odp_unmap(struct ib_umem_odp *umem, u64 start, u64 end)
{
}
#endif

#endif /* VRNIC_COMPAT_UMEM_ODP_H */
