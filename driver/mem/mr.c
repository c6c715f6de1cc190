// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: user memory, pinned or on demand, kernel memory, device memory, and memory of
 * other drivers.
 */

#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#include "base/objects.h"
#include "base/udata.h"
#include "compat/compat.h"
#include "lib/ids_find.h"
#include "mem/dm.h"
#include "mem/dmabuf.h"
#include "mem/mem.h"
#include "mem/mw.h"
#include "mem/odp.h"
#include "mem/seg.h"
#include "vrnic.h"

#define KEY_INDEX_MAX	(BIT(24) - 2)	/* the keys of the last index are VRNIC_NULL_LKEY's */
#define PAGES_AT_ONCE	4096

/**
 * vrnic_key_alloc() - allocate a new key for @entry
 * @dev: device
 * @entry: region, or window tagged with VRNIC_KEY_WINDOW
 * @key: 24 bits of index, and 8 random bits that consumers may change
 *
 * Return: 0 or a negative errno.
 */
int vrnic_key_alloc(struct vrnic_dev *dev, void *entry, u32 *key)
{
	u32 index;
	int err = vrnic_ids_alloc(&dev->keys, entry, GFP_KERNEL_ACCOUNT, 1, KEY_INDEX_MAX,
				  &index);

	if (!err)
		*key = index << 8 | get_random_u32() >> 24;
	return err;
}

void vrnic_key_free(struct vrnic_dev *dev, u32 key)
{
	vrnic_ids_free(&dev->keys, key >> 8);
}

void vrnic_mr_put(struct vrnic_mr *mr)
{
	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->gone);
}

/* Does a process make regions of this kind? Only kernel consumers make the other kinds. */
static bool is_users(enum vrnic_mr_kind kind)
{
	return kind == VRNIC_MR_USER || kind == VRNIC_MR_ODP || kind == VRNIC_MR_DM ||
	       kind == VRNIC_MR_DMABUF;
}

/**
 * vrnic_mr_new() - make a region that has no keys yet
 * @pd: protection domain
 * @kind: where its pages will come from
 * @access: IB_ACCESS_*
 *
 * Return: the region, or NULL if there is no memory, or there are too many regions.
 */
struct vrnic_mr *vrnic_mr_new(struct ib_pd *pd, enum vrnic_mr_kind kind, int access)
{
	struct vrnic_dev *dev = to_vdev(pd->device);
	struct vrnic_mr *mr;

	if (!vrnic_object_get(dev, VRNIC_OBJECT_MR, is_users(kind)))
		return NULL;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		vrnic_object_put(dev, VRNIC_OBJECT_MR, is_users(kind));
		return NULL;
	}
	mr->kind = kind;
	mr->access = access;
	mr->ibmr.pd = pd;
	mr->ibmr.device = pd->device;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->gone);
	atomic_set(&mr->windows, VRNIC_MR_CLOSED);
	return mr;
}

/* Free a region that has no keys and no users (any more). */
void vrnic_mr_free(struct vrnic_mr *mr)
{
	vrnic_object_put(to_vdev(mr->ibmr.device), VRNIC_OBJECT_MR, is_users(mr->kind));
	kfree_rcu(mr, rcu);
}

/* Give the region its keys. The keys cannot be used before @valid is set. */
int vrnic_mr_keys(struct vrnic_mr *mr)
{
	struct vrnic_dev *dev = to_vdev(mr->ibmr.device);
	int err;

	err = vrnic_key_alloc(dev, mr, &mr->lkey);
	if (err)
		return err;
	err = vrnic_key_alloc(dev, mr, &mr->rkey);
	if (err) {
		vrnic_key_free(dev, mr->lkey);
		return err;
	}
	mr->ibmr.lkey = mr->lkey;
	mr->ibmr.rkey = mr->rkey;
	return 0;
}

/* Ends native links whose messages hold a region for long. Set by vrnic_mr_on_long_use(). */
static void (*let_go)(const struct vrnic_mr *mr);

/* Set let_go to @fn, of a higher layer. Called before there are regions. */
void vrnic_mr_on_long_use(void (*fn)(const struct vrnic_mr *mr))
{
	let_go = fn;
}

/*
 * Wait until no task uses the region. Runs are short, but a message of a native link holds the
 * region until a peer on another host acknowledges it. After a second, end such links.
 */
static void mr_wait_unused(struct vrnic_mr *mr)
{
	while (!wait_for_completion_timeout(&mr->gone, HZ))
		let_go(mr);
}

/* Take the keys away, and wait until no task uses the region. */
static void mr_retire(struct vrnic_mr *mr)
{
	struct vrnic_dev *dev = to_vdev(mr->ibmr.device);

	vrnic_key_free(dev, mr->lkey);
	vrnic_key_free(dev, mr->rkey);
	vrnic_mr_put(mr);
	mr_wait_unused(mr);
}

struct ib_mr *vrnic_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct vrnic_mr *mr = vrnic_mr_new(ibpd, VRNIC_MR_DMA, access);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = U64_MAX;
	err = vrnic_mr_keys(mr);
	if (err) {
		vrnic_mr_free(mr);
		return ERR_PTR(err);
	}
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;
}

/* kvmalloc() refuses more than 2 GiB, which a region of a terabyte needs for its table of pages. */
static void *table_alloc(size_t bytes)
{
	return bytes > INT_MAX ? __vmalloc(bytes, GFP_KERNEL_ACCOUNT) :
				 kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
}

/* Fill the table that translates offsets in constant time: one kernel address for each page. */
static int mr_fill_pages(struct vrnic_mr *mr)
{
	struct sg_page_iter iter;
	u32 i = 0;

	mr->nr_pages = ib_umem_num_pages(mr->umem);
	mr->pages = table_alloc(array_size(mr->nr_pages, sizeof(*mr->pages)));
	if (!mr->pages)
		return -ENOMEM;
	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0) {
		if (WARN_ON_ONCE(i == mr->nr_pages))
			break;
		mr->pages[i++] = page_address(sg_page_iter_page(&iter));
		if (!(i % PAGES_AT_ONCE))
			cond_resched();
	}
	return 0;
}

/* Pin [@start, @start + @length), and let the region translate to these pages. */
static int mr_pin(struct vrnic_mr *mr, u64 start, u64 length, u64 iova)
{
	struct ib_umem *umem;
	int err;

	umem = ib_umem_get_va(mr->ibmr.device, start, length, mr->access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	err = mr_fill_pages(mr);
	if (err) {
		ib_umem_release(umem);
		mr->umem = NULL;
		return err;
	}
	mr->offset = ib_umem_offset(umem);
	mr->length = length;
	mr->iova = mr->access & IB_ZERO_BASED ? 0 : iova;
	mr->ibmr.iova = mr->iova;
	mr->ibmr.length = length;
	return 0;
}

static void mr_unpin(struct vrnic_mr *mr)
{
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
	mr->pages = NULL;
	mr->umem = NULL;
}

#define USER_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |	\
		     IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |	\
		     IB_ACCESS_MW_BIND | IB_ZERO_BASED |		\
		     IB_ACCESS_HUGETLB | VRNIC_ACCESS_FLUSH |		\
		     IB_ACCESS_RELAXED_ORDERING | IB_ACCESS_ON_DEMAND)

/* Unknown rights are an error, unless they are optional: a device may ignore those. */
static bool access_is_known(int access)
{
	return !(access & ~(USER_ACCESS | IB_ACCESS_OPTIONAL));
}

/* Register memory without pinning it. No window can be bound to the region, as that may last. */
static int mr_on_demand(struct vrnic_mr *mr, u64 start, u64 length, u64 iova)
{
	mr->odp = vrnic_odp_new(mr, start, length);
	if (IS_ERR(mr->odp))
		return PTR_ERR(mr->odp);
	mr->offset = offset_in_page(start);
	mr->length = length;
	mr->iova = mr->access & IB_ZERO_BASED ? 0 : iova;
	mr->ibmr.iova = mr->iova;
	mr->ibmr.length = length;
	return 0;
}

/* Get the memory of a new region: pin it, or make what brings its pages in when they are used. */
static int mr_begin(struct vrnic_mr *mr, u64 start, u64 length, u64 iova)
{
	int err;

	if (mr->kind == VRNIC_MR_ODP)
		return mr_on_demand(mr, start, length, iova);
	err = mr_pin(mr, start, length, iova);
	if (!err)
		vrnic_mr_windows_open(mr);
	return err;
}

/* Undo mr_begin(), and free the region. Nobody uses it. */
static void mr_end(struct vrnic_mr *mr)
{
	if (mr->kind == VRNIC_MR_ODP)
		vrnic_odp_put(mr->odp);
	else
		mr_unpin(mr);
	vrnic_mr_free(mr);
}

static bool length_is_valid(u64 start, u64 length, int access)
{
	if (access & IB_ACCESS_ON_DEMAND && vrnic_odp_is_implicit(start, length))
		return true;
	return length && length <= VRNIC_MAX_MR;
}

struct ib_mr *vrnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata)
{
	struct vrnic_mr *mr;
	int err;

	if (!length_is_valid(start, length, access) || vrnic_udata_empty(udata))
		return ERR_PTR(-EINVAL);
	if (!access_is_known(access))
		return ERR_PTR(-EOPNOTSUPP);
	mr = vrnic_mr_new(ibpd, access & IB_ACCESS_ON_DEMAND ? VRNIC_MR_ODP : VRNIC_MR_USER,
			  access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = mr_begin(mr, start, length, iova);
	if (err) {
		vrnic_mr_free(mr);
		return ERR_PTR(err);
	}
	err = vrnic_mr_keys(mr);
	if (err) {
		mr_end(mr);
		return ERR_PTR(err);
	}
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;
}

/* The region of @pd that @sge lies in. Return: the offset from its first page, or an errno. */
static int advise_find(struct ib_pd *pd, const struct ib_sge *sge, int access,
		       struct vrnic_odp **odp, u64 *off)
{
	struct vrnic_dev *dev = to_vdev(pd->device);
	struct vrnic_mr *mr;
	int err = -ENOENT;

	rcu_read_lock();
	mr = vrnic_ids_find(&dev->keys, sge->lkey >> 8);
	if (!mr || xa_pointer_tag(mr) || mr->kind != VRNIC_MR_ODP || READ_ONCE(mr->closing) ||
	    mr->lkey != sge->lkey)
		goto out;
	err = -EPERM;
	if (mr->ibmr.pd != pd || (mr->access & access) != access)
		goto out;
	err = -EINVAL;
	if (sge->addr < mr->iova || sge->addr - mr->iova > mr->length ||
	    sge->length > mr->length - (sge->addr - mr->iova))
		goto out;
	err = -ENOENT;
	if (!vrnic_odp_get_unless_gone(mr->odp))
		goto out;
	*odp = mr->odp;
	*off = sge->addr - mr->iova + mr->offset;
	err = 0;
out:
	rcu_read_unlock();
	return err;
}

static int advise_one(struct ib_pd *pd, const struct ib_sge *sge, enum vrnic_odp_how how,
		      bool wait)
{
	struct vrnic_odp *odp;
	u64 off;
	int err;

	err = advise_find(pd, sge, how == VRNIC_ODP_WRITE ? IB_ACCESS_LOCAL_WRITE : 0, &odp, &off);
	if (err)
		return err;
	if (sge->length && !wait)
		err = vrnic_odp_page_in_later(odp, off, sge->length, how);
	if (sge->length && (wait || err == -EBUSY))
		err = vrnic_odp_page_in(odp, off, sge->length, how);
	vrnic_odp_put(odp);
	return err;
}

/* ibv_advise_mr(): bring pages of regions in before they are used. */
int vrnic_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sges, u32 nr, struct uverbs_attr_bundle *attrs)
{
	enum vrnic_odp_how how;
	int err;
	u32 i;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		how = VRNIC_ODP_READ;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		how = VRNIC_ODP_WRITE;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		how = VRNIC_ODP_SNAPSHOT;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		err = advise_one(pd, &sges[i], how, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
		if (err)
			return err;
	}
	return 0;
}

/* Only user memory has huge pages, or comes on demand. */
#define DM_ACCESS	(USER_ACCESS & ~(IB_ACCESS_HUGETLB | IB_ACCESS_ON_DEMAND))

/*
 * The core has checked that the region is in the device memory, and that its addresses begin at 0.
 * The region may be empty, as with hardware. The core keeps the device memory until it has
 * deregistered the region.
 */
struct ib_mr *vrnic_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct vrnic_dm *dm = to_vdm(ibdm);
	struct vrnic_mr *mr;
	int err;

	if (attr->access_flags & ~(DM_ACCESS | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = vrnic_mr_new(ibpd, VRNIC_MR_DM, attr->access_flags);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->pages = dm->pages + (attr->offset >> PAGE_SHIFT);
	mr->offset = offset_in_page(attr->offset);
	mr->nr_pages = PFN_UP(mr->offset + attr->length);
	mr->length = attr->length;
	mr->ibmr.length = attr->length;
	err = vrnic_mr_keys(mr);
	if (err) {
		vrnic_mr_free(mr);
		return ERR_PTR(err);
	}
	vrnic_mr_windows_open(mr);
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;
}

/* Fill the table of pages with those of the dma-buf, from @first on. Return: 0 or an error. */
static int mr_fill_dmabuf(struct vrnic_mr *mr, u64 first)
{
	u64 at = first;
	u32 i;

	mr->pages = table_alloc(array_size(mr->nr_pages, sizeof(*mr->pages)));
	if (!mr->pages)
		return -ENOMEM;
	for (i = 0; i < mr->nr_pages; i++, at += PAGE_SIZE) {
		mr->pages[i] = vrnic_dmabuf_at(mr->dmabuf, at);
		if (!vrnic_dmabuf_is_right(mr->dmabuf, at)) {
			kvfree(mr->pages);
			return -EOPNOTSUPP;
		}
		if (!(i % PAGES_AT_ONCE))
			cond_resched();
	}
	return 0;
}

/* Let the region translate to memory of the dma-buf @fd. */
static int mr_map_dmabuf(struct vrnic_mr *mr, int fd, u64 offset, u64 length, u64 iova)
{
	int err;

	mr->dmabuf = vrnic_dmabuf_get(&mr->ibmr.device->dev, fd, offset, length,
				      ib_access_writable(mr->access));
	if (IS_ERR(mr->dmabuf))
		return PTR_ERR(mr->dmabuf);
	mr->offset = offset_in_page(offset);
	mr->nr_pages = PFN_UP(mr->offset + length);
	err = mr_fill_dmabuf(mr, offset & PAGE_MASK);
	if (err) {
		vrnic_dmabuf_put(mr->dmabuf);
		return err;
	}
	mr->length = length;
	mr->iova = mr->access & IB_ZERO_BASED ? 0 : iova;
	mr->ibmr.iova = mr->iova;
	mr->ibmr.length = length;
	return 0;
}

static void mr_unmap_dmabuf(struct vrnic_mr *mr)
{
	kvfree(mr->pages);
	vrnic_dmabuf_put(mr->dmabuf);
}

/* The memory is mapped as a whole, and stays where it is, as long as there is the region. */
struct ib_mr *vrnic_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
				       int access, struct ib_udata *udata)
{
	struct vrnic_mr *mr;
	int err;

	if (!length || length > VRNIC_MAX_MR || vrnic_udata_empty(udata))
		return ERR_PTR(-EINVAL);
	if (access & ~(DM_ACCESS | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = vrnic_mr_new(ibpd, VRNIC_MR_DMABUF, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = mr_map_dmabuf(mr, fd, offset, length, iova);
	if (err)
		goto err_free;
	err = vrnic_mr_keys(mr);
	if (err)
		goto err_unmap;
	vrnic_mr_windows_open(mr);
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;

err_unmap:
	mr_unmap_dmabuf(mr);
err_free:
	vrnic_mr_free(mr);
	return ERR_PTR(err);
}

/*
 * Stop all use of @mr's memory until mr_resume(). Return: 0, or -ERESTARTSYS: the process is being
 * killed, and the use goes on.
 */
static int mr_pause(struct vrnic_mr *mr)
{
	long left;

	WRITE_ONCE(mr->valid, false);
	vrnic_mr_put(mr);
	while (!(left = wait_for_completion_killable_timeout(&mr->gone, HZ)))
		let_go(mr);
	if (left > 0)
		return 0;
	if (refcount_inc_not_zero(&mr->refs)) {
		WRITE_ONCE(mr->valid, true);
		return left;
	}
	/* the last reference was put just now, so @gone will be completed at once */
	wait_for_completion(&mr->gone);
	return 0;
}

/**
 * vrnic_mr_drain() - wait until nobody uses a region, and let nobody in until vrnic_mr_reopen()
 * @mr: region with pages on demand; only vrnic_odp.lock lets a task do this
 *
 * Only runs use such regions, and runs are short.
 */
void vrnic_mr_drain(struct vrnic_mr *mr)
{
	WRITE_ONCE(mr->valid, false);
	vrnic_mr_put(mr);
	wait_for_completion(&mr->gone);
}

static void mr_resume(struct vrnic_mr *mr)
{
	reinit_completion(&mr->gone);
	WRITE_ONCE(mr->valid, true);
	/* pairs with vrnic_mr_get(): if it gets a reference, it sees the new memory and @valid */
	smp_wmb();
	refcount_set(&mr->refs, 1);
}

void vrnic_mr_reopen(struct vrnic_mr *mr)
{
	mr_resume(mr);
}

/* Swap the memory of @mr and @from, and copy @from's rights to @mr. */
static void mr_swap_memory(struct vrnic_mr *mr, struct vrnic_mr *from)
{
	swap(mr->umem, from->umem);
	swap(mr->pages, from->pages);
	mr->nr_pages = from->nr_pages;
	mr->offset = from->offset;
	mr->length = from->length;
	mr->iova = from->iova;
	mr->access = from->access;
	mr->ibmr.pd = from->ibmr.pd;
	mr->ibmr.iova = mr->iova;
	mr->ibmr.length = mr->length;
}

/*
 * Do mr_swap_memory() for a region that may be in use. A window may have been bound since
 * vrnic_rereg_user_mr() looked, because pinning takes long: so check this here.
 */
static int mr_exchange(struct vrnic_mr *mr, struct vrnic_mr *with)
{
	int err;

	if (!vrnic_mr_windows_close(mr))
		return -EBUSY;
	err = mr_pause(mr);
	if (err)
		goto out_open;
	mr_swap_memory(mr, with);
	mr_resume(mr);
out_open:
	vrnic_mr_windows_open(mr);
	return err;
}

/* Change rights and protection domain only: the pinned memory stays. */
static int rereg_rights(struct vrnic_mr *mr, int access, struct ib_pd *pd)
{
	struct vrnic_mr new = {
		.ibmr.pd = pd,
		.access = access,
		.umem = mr->umem,
		.pages = mr->pages,
		.nr_pages = mr->nr_pages,
		.offset = mr->offset,
		.length = mr->length,
		.iova = access & IB_ZERO_BASED ? 0 : mr->iova,
	};

	return mr_exchange(mr, &new);
}

static int rereg_memory(struct vrnic_mr *mr, u64 start, u64 length, u64 iova,
			int access, struct ib_pd *pd)
{
	struct vrnic_mr new = {
		.ibmr.device = mr->ibmr.device,
		.ibmr.pd = pd,
		.access = access,
	};
	int err;

	if (!length || length > VRNIC_MAX_MR)
		return -EINVAL;
	err = mr_pin(&new, start, length, iova);
	if (err)
		return err;
	err = mr_exchange(mr, &new);
	mr_unpin(&new);
	return err;
}

/*
 * The region keeps its keys, which peers may know. New memory is pinned first, so that the region
 * is unchanged if pinning fails.
 */
struct ib_mr *vrnic_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata)
{
	struct vrnic_mr *mr = to_vmr(ibmr);
	int err;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (mr->kind == VRNIC_MR_ODP || access & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EOPNOTSUPP);
	if (mr->kind != VRNIC_MR_USER || vrnic_udata_empty(udata))
		return ERR_PTR(-EINVAL);
	if (atomic_read(&mr->windows))
		return ERR_PTR(-EBUSY);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!access_is_known(access))
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_PD))
		pd = ibmr->pd;
	if (flags & IB_MR_REREG_TRANS)
		err = rereg_memory(mr, start, length, iova, access, pd);
	else if (ib_access_writable(access) && !mr->umem->writable)
		err = rereg_memory(mr, mr->umem->address, mr->length, mr->iova,
				   access, pd);
	else
		err = rereg_rights(mr, access, pd);
	return err ? ERR_PTR(err) : NULL;
}

/**
 * vrnic_key_invalidate() - invalidate a key, for LOCAL_INV and for SEND with invalidate
 * @user: queue pair with the LOCAL_INV, or that gets the SEND; the protection domain has to match
 * @key: key of a fast registration region or of a type 2 window
 * @remote: the invalidation comes with a SEND of the peer
 *
 * Return: 0, -EAGAIN (the memory is still in use), or enum vrnic_vendor_err.
 */
int vrnic_key_invalidate(const struct vrnic_key_user *user, u32 key, bool remote)
{
	void *entry;
	int ret;

	rcu_read_lock();
	entry = vrnic_ids_find(&user->dev->keys, key >> 8);
	if (!entry)
		ret = VRNIC_VERR_KEY;
	else if (xa_pointer_tag(entry))
		ret = vrnic_mw_invalidate(user, xa_untag_pointer(entry), key,
					  remote);
	else
		ret = vrnic_fast_invalidate(user, entry, key, remote);
	rcu_read_unlock();
	return ret;
}

/* No notifier drains the region while it ends here. Page-ins may go on, but nobody sees them. */
static void on_demand_retire(struct vrnic_mr *mr)
{
	WRITE_ONCE(mr->closing, true);
	vrnic_odp_close_begin(mr->odp);
	vrnic_key_free(to_vdev(mr->ibmr.device), mr->lkey);
	vrnic_key_free(to_vdev(mr->ibmr.device), mr->rkey);
	vrnic_mr_drain(mr);
	vrnic_odp_close_end(mr->odp);
	mr_end(mr);
}

int vrnic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct vrnic_mr *mr = to_vmr(ibmr);

	/* IBTA C10-71: a region with bound windows must not be deregistered */
	if (!vrnic_mr_windows_close(mr))
		return -EBUSY;
	if (mr->kind == VRNIC_MR_ODP) {
		on_demand_retire(mr);
		return 0;
	}
	WRITE_ONCE(mr->valid, false);
	mr_retire(mr);
	if (mr->kind == VRNIC_MR_USER)
		mr_unpin(mr);
	else if (mr->kind == VRNIC_MR_DMABUF)
		mr_unmap_dmabuf(mr);
	else if (mr->kind == VRNIC_MR_FAST || mr->kind == VRNIC_MR_GAPS)
		vrnic_fast_end(mr);
	vrnic_mr_free(mr);
	return 0;
}
