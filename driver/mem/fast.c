// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast registration: a kernel consumer collects memory in a region, posts REG_MR, which makes it
 * accessible, and LOCAL_INV, which ends that.
 */

#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "mem/mem.h"
#include "mem/seg.h"
#include "vrnic.h"

/* Free the tables of a region that has no users (any more). */
void vrnic_fast_end(struct vrnic_mr *mr)
{
	kvfree(mr->pages);
	kvfree(mr->mapped);
}

struct ib_mr *vrnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	struct vrnic_mr *mr;
	int err = -ENOMEM;

	if (type != IB_MR_TYPE_MEM_REG || max_num_sg > VRNIC_PAGE_LIST)
		return ERR_PTR(-EINVAL);
	mr = vrnic_mr_new(ibpd, VRNIC_MR_FAST, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_num_sg;
	mr->pages = kvcalloc(max_num_sg, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	mr->mapped = kvcalloc(max_num_sg, sizeof(*mr->mapped), GFP_KERNEL_ACCOUNT);
	if (!mr->pages || !mr->mapped)
		goto err_free;
	err = vrnic_mr_keys(mr);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	vrnic_fast_end(mr);
	vrnic_mr_free(mr);
	return ERR_PTR(err);
}

/* The device has no DMA device, so the RDMA core uses kernel addresses as DMA addresses. */
static int set_page(struct ib_mr *ibmr, u64 dma_addr)
{
	struct vrnic_mr *mr = to_vmr(ibmr);

	if (mr->nr_mapped == mr->max_pages)
		return -ENOMEM;
	mr->mapped[mr->nr_mapped++] = (void *)(uintptr_t)(dma_addr & PAGE_MASK);
	return 0;
}

int vrnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset)
{
	struct vrnic_mr *mr = to_vmr(ibmr);

	if (ibmr->page_size != PAGE_SIZE)
		return -EINVAL;
	mr->nr_mapped = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

/*
 * REG_MR: make the pages that vrnic_map_mr_sg() collected accessible under new keys. Return: 0,
 * enum vrnic_vendor_err, or -EAGAIN while a run still uses the pages of the last REG_MR: another
 * queue pair's LOCAL_INV waits for it.
 */
int vrnic_mr_fast_reg(const struct vrnic_key_user *user, const struct vrnic_desc *d)
{
	struct vrnic_mr *mr = to_vmr((struct ib_mr *)(uintptr_t)d->reg.mr);
	u32 tag = d->reg.key & 0xff;

	if (mr->kind != VRNIC_MR_FAST || mr->valid)
		return VRNIC_VERR_KEY;
	if (mr->ibmr.pd != user->pd)
		return VRNIC_VERR_PD;
	if (refcount_read(&mr->refs) > 1)
		return -EAGAIN;
	memcpy(mr->pages, mr->mapped, array_size(mr->nr_mapped, sizeof(*mr->pages)));
	mr->nr_pages = mr->nr_mapped;
	WRITE_ONCE(mr->lkey, (mr->lkey & ~0xffU) | tag);
	WRITE_ONCE(mr->rkey, (mr->rkey & ~0xffU) | tag);
	mr->access = d->reg.access;
	mr->iova = mr->ibmr.iova;
	mr->length = mr->ibmr.length;
	mr->offset = offset_in_page(mr->iova);
	vrnic_mr_windows_open(mr);
	/* pairs with vrnic_mr_get(), which reads the fields above after @valid */
	smp_store_release(&mr->valid, true);
	return 0;
}

/*
 * For vrnic_key_invalidate(); the region may be of any kind. Return: 0, enum vrnic_vendor_err, or
 * -EAGAIN while a run uses the region: invalidation is complete only when none does. A bound window
 * may last for any time, so it is an error.
 */
int vrnic_fast_invalidate(const struct vrnic_key_user *user, struct vrnic_mr *mr, u32 key,
			  bool remote)
{
	if (mr->kind != VRNIC_MR_FAST ||
	    (key != READ_ONCE(mr->rkey) &&
	     (remote || key != READ_ONCE(mr->lkey))))
		return VRNIC_VERR_KEY;
	if (mr->ibmr.pd != user->pd)
		return VRNIC_VERR_PD;
	if (!vrnic_mr_windows_close(mr))
		return VRNIC_VERR_BIND;
	WRITE_ONCE(mr->valid, false);
	/* pairs with vrnic_mr_get(): either that sees @valid cleared, or we see its reference */
	smp_mb();
	return refcount_read(&mr->refs) > 1 ? -EAGAIN : 0;
}
