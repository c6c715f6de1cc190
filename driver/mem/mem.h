/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Keys that name memory, and memory regions. */
#ifndef VRNIC_MEM_H
#define VRNIC_MEM_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <rdma/ib_verbs.h>

struct uverbs_attr_bundle;
struct vrnic_desc;
struct vrnic_dev;
struct vrnic_dmabuf;
struct vrnic_key_user;
struct vrnic_odp;
struct vrnic_seg;

#define VRNIC_PAGE_LIST		512		/* pages or extents of a fast registration */
#define VRNIC_MAX_MR		((u64)BIT(31) << PAGE_SHIFT)	/* bytes of a region */

enum vrnic_mr_kind {
	VRNIC_MR_DMA,	/* all of kernel memory; addresses are kernel addresses */
	VRNIC_MR_USER,	/* pinned user memory */
	VRNIC_MR_ODP,	/* user memory that is not pinned: mem/odp.c */
	VRNIC_MR_FAST,	/* page list, filled in by REG_MR */
	VRNIC_MR_GAPS,	/* list of extents, filled in by REG_MR */
	VRNIC_MR_DM,	/* device memory; addresses are offsets from the start of the region */
	VRNIC_MR_DMABUF, /* memory of another driver: mem/dmabuf.c */
};

/**
 * struct vrnic_extent - bytes of a region that lie together, wherever they begin and end
 * @end: offset in the region of the byte behind them; they begin where the extent before ends
 * @kva: kernel address of the first one
 */
struct vrnic_extent {
	u64 end;
	void *kva;
};

/**
 * struct vrnic_mr - a memory region
 * @ibmr: the RDMA core's part
 * @rcu: for the RCU grace period between the end of the keys and the release
 * @refs: one reference of the owner, and one of each bound window, segment or struct vrnic_held
 * @gone: completed when the last reference was put
 * @kind: where the pages come from
 * @valid: the region may be used; VRNIC_MR_FAST, VRNIC_MR_GAPS: written when a send ring is run
 * @access: IB_ACCESS_*
 * @lkey: local key
 * @rkey: remote key; its index differs from that of @lkey
 * @iova: address of the first byte, as users of the keys see it
 * @length: bytes
 * @offset: offset of the first byte in the first page
 * @pages: kernel address of each page; NULL for VRNIC_MR_DMA, VRNIC_MR_ODP and VRNIC_MR_GAPS; for
 *	VRNIC_MR_DM a part of the table of the device memory, which lives as long as its regions
 * @nr_pages: number of entries in @pages
 * @extents: VRNIC_MR_GAPS: where the bytes are
 * @nr_extents: number of entries in @extents
 * @max_mapped: VRNIC_MR_FAST, VRNIC_MR_GAPS: room in @pages or @extents, and in @mapped
 * @mapped: VRNIC_MR_FAST, VRNIC_MR_GAPS: what the next REG_MR makes accessible, as a void * or a
 *	struct vrnic_extent each. Its user fills it while peers may still use @pages or @extents,
 *	under the keys of the last REG_MR
 * @nr_mapped: number of entries in @mapped
 * @umem: VRNIC_MR_USER: the pinned memory
 * @odp: VRNIC_MR_ODP: the pages that are there
 * @dmabuf: VRNIC_MR_DMABUF: the memory that is mapped
 * @closing: VRNIC_MR_ODP: the region is being deregistered. Until then, users that find it not
 *	valid try again
 * @windows: number of memory windows bound to the region, or VRNIC_MR_CLOSED
 */
struct vrnic_mr {
	struct ib_mr ibmr;
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	enum vrnic_mr_kind kind;
	bool valid;
	int access;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	u32 offset;
	void **pages;
	u32 nr_pages;
	struct vrnic_extent *extents;
	u32 nr_extents;
	u32 max_mapped;
	void *mapped;
	u32 nr_mapped;
	struct ib_umem *umem;
	struct vrnic_odp *odp;
	struct vrnic_dmabuf *dmabuf;
	bool closing;
	atomic_t windows;
};

/* Value of vrnic_mr.windows that refuses binds. It does not stop any other use of the region. */
#define VRNIC_MR_CLOSED	(-1)

/*
 * Refuse all binds of windows to the region from here on. Return: false if a window is bound. Check
 * and close are one atomic step: if a window is being bound at the same time, it is seen here, or
 * window_mr_get() refuses it. Other uses of the region go on.
 */
static inline bool vrnic_mr_windows_close(struct vrnic_mr *mr)
{
	return atomic_cmpxchg(&mr->windows, 0, VRNIC_MR_CLOSED) <= 0;
}

/* Let windows be bound to the region (again). */
static inline void vrnic_mr_windows_open(struct vrnic_mr *mr)
{
	WARN_ON_ONCE(atomic_read(&mr->windows) != VRNIC_MR_CLOSED);
	/*
	 * pairs with atomic_inc_unless_negative() in window_mr_get(): bind_check() sees the bounds
	 */
	atomic_set_release(&mr->windows, 0);
}

static inline struct vrnic_mr *to_vmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct vrnic_mr, ibmr);
}

/* mem.c */
bool vrnic_mr_get(struct vrnic_mr *mr);

/* mr.c */
struct ib_mr *vrnic_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *vrnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata);
struct ib_mr *vrnic_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);
struct ib_mr *vrnic_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
				       int access, struct ib_udata *udata);
struct ib_mr *vrnic_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata);
int vrnic_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sges, u32 nr, struct uverbs_attr_bundle *attrs);
int vrnic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
void vrnic_mr_on_long_use(void (*fn)(const struct vrnic_mr *mr));
void vrnic_mr_put(struct vrnic_mr *mr);
void vrnic_mr_drain(struct vrnic_mr *mr);
void vrnic_mr_reopen(struct vrnic_mr *mr);
int vrnic_key_alloc(struct vrnic_dev *dev, void *entry, u32 *key);
void vrnic_key_free(struct vrnic_dev *dev, u32 key);
int vrnic_key_invalidate(const struct vrnic_key_user *user, u32 key, bool remote);
struct vrnic_mr *vrnic_mr_new(struct ib_pd *pd, enum vrnic_mr_kind kind, int access);
void vrnic_mr_free(struct vrnic_mr *mr);
int vrnic_mr_keys(struct vrnic_mr *mr);

/* fast.c */
struct ib_mr *vrnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg);
int vrnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset);
int vrnic_mr_fast_reg(const struct vrnic_key_user *user, const struct vrnic_desc *d);
int vrnic_fast_invalidate(const struct vrnic_key_user *user, struct vrnic_mr *mr, u32 key,
			  bool remote);
void *vrnic_extent_run(const struct vrnic_mr *mr, u64 off, u64 want, u64 *len);
void vrnic_fast_end(struct vrnic_mr *mr);

/* Pointer tag of windows in vrnic_dev.keys. Regions have no tag. */
#define VRNIC_KEY_WINDOW	1

#endif /* VRNIC_MEM_H */
