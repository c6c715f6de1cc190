// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast registration: a kernel consumer collects memory in a region, posts REG_MR, which makes it
 * accessible, and LOCAL_INV, which ends that. The memory is a list of pages, of which the first one
 * may begin late and the last one may end early; or, in a region that allows gaps, of any bytes.
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
	kvfree(mr->extents);
	kvfree(mr->mapped);
}

static bool is_fast(const struct vrnic_mr *mr)
{
	return mr->kind == VRNIC_MR_FAST || mr->kind == VRNIC_MR_GAPS;
}

/* Make the tables of a new region. Return: 0 or -ENOMEM, with what the owner frees. */
static int make_tables(struct vrnic_mr *mr, u32 max)
{
	size_t size = mr->kind == VRNIC_MR_GAPS ? sizeof(*mr->extents) : sizeof(*mr->pages);
	void *table = kvcalloc(max, size, GFP_KERNEL_ACCOUNT);

	if (mr->kind == VRNIC_MR_GAPS)
		mr->extents = table;
	else
		mr->pages = table;
	mr->mapped = kvcalloc(max, size, GFP_KERNEL_ACCOUNT);
	mr->max_mapped = max;
	return table && mr->mapped ? 0 : -ENOMEM;
}

/* Give the region its keys. REG_MR changes the tag of both: it is the same one from the start. */
static int make_keys(struct vrnic_mr *mr)
{
	int err = vrnic_mr_keys(mr);

	if (err)
		return err;
	mr->rkey = (mr->rkey & ~0xffU) | (mr->lkey & 0xff);
	mr->ibmr.rkey = mr->rkey;
	return 0;
}

struct ib_mr *vrnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	enum vrnic_mr_kind kind = type == IB_MR_TYPE_SG_GAPS ? VRNIC_MR_GAPS : VRNIC_MR_FAST;
	struct vrnic_mr *mr;
	int err;

	if ((type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS) ||
	    max_num_sg > VRNIC_PAGE_LIST)
		return ERR_PTR(-EINVAL);
	mr = vrnic_mr_new(ibpd, kind, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = make_tables(mr, max_num_sg) ?: make_keys(mr);
	if (err) {
		vrnic_fast_end(mr);
		vrnic_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* The device has no DMA device, so the RDMA core uses kernel addresses as DMA addresses. */
static int set_page(struct ib_mr *ibmr, u64 dma_addr)
{
	struct vrnic_mr *mr = to_vmr(ibmr);
	void **pages = mr->mapped;

	if (mr->nr_mapped == mr->max_mapped)
		return -ENOMEM;
	pages[mr->nr_mapped++] = (void *)(uintptr_t)(dma_addr & PAGE_MASK);
	return 0;
}

/* ib_sg_to_pages(), for bytes that begin and end anywhere. Return: as that. */
static int map_extents(struct vrnic_mr *mr, struct scatterlist *sg, int nents, unsigned int skip)
{
	struct vrnic_extent *extents = mr->mapped;
	struct ib_mr *ibmr = &mr->ibmr;
	struct scatterlist *s;
	int i;

	if (nents <= 0 || skip > sg_dma_len(sg))
		return -EINVAL;
	ibmr->iova = sg_dma_address(sg) + skip;
	ibmr->length = 0;
	for_each_sg(sg, s, nents, i) {
		if (i == mr->max_mapped)
			break;
		ibmr->length += sg_dma_len(s) - skip;
		extents[i] = (struct vrnic_extent){
			.end = ibmr->length,
			.kva = (void *)(uintptr_t)(sg_dma_address(s) + skip),
		};
		skip = 0;
	}
	mr->nr_mapped = i;
	return i;
}

int vrnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset)
{
	struct vrnic_mr *mr = to_vmr(ibmr);
	unsigned int skip = 0;

	if (mr->kind == VRNIC_MR_GAPS) {
		if (offset)
			swap(skip, *offset);
		return map_extents(mr, sg, nents, skip);
	}
	if (ibmr->page_size != PAGE_SIZE)
		return -EINVAL;
	mr->nr_mapped = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

/* Let the region be what was mapped last. Nobody uses it. */
static void take_mapped(struct vrnic_mr *mr)
{
	if (mr->kind == VRNIC_MR_GAPS) {
		memcpy(mr->extents, mr->mapped, array_size(mr->nr_mapped, sizeof(*mr->extents)));
		mr->nr_extents = mr->nr_mapped;
	} else {
		memcpy(mr->pages, mr->mapped, array_size(mr->nr_mapped, sizeof(*mr->pages)));
		mr->nr_pages = mr->nr_mapped;
		mr->offset = offset_in_page(mr->ibmr.iova);
	}
	mr->iova = mr->ibmr.iova;
	mr->length = mr->ibmr.length;
}

/*
 * REG_MR: make the memory that vrnic_map_mr_sg() collected accessible under new keys. Return: 0,
 * enum vrnic_vendor_err, or -EAGAIN while a run still uses the memory of the last REG_MR: another
 * queue pair's LOCAL_INV waits for it.
 */
int vrnic_mr_fast_reg(const struct vrnic_key_user *user, const struct vrnic_desc *d)
{
	struct vrnic_mr *mr = to_vmr((struct ib_mr *)(uintptr_t)d->reg.mr);
	u32 tag = d->reg.key & 0xff;

	if (!is_fast(mr) || mr->valid)
		return VRNIC_VERR_KEY;
	if (mr->ibmr.pd != user->pd)
		return VRNIC_VERR_PD;
	if (refcount_read(&mr->refs) > 1)
		return -EAGAIN;
	take_mapped(mr);
	WRITE_ONCE(mr->lkey, (mr->lkey & ~0xffU) | tag);
	WRITE_ONCE(mr->rkey, (mr->rkey & ~0xffU) | tag);
	mr->access = d->reg.access;
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
	if (!is_fast(mr) ||
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

/**
 * vrnic_extent_run() - vrnic_seg_run() for a region of extents
 * @mr: region
 * @off: offset of a byte in the region
 * @want: bytes that the caller can use; no more than the region has from there on
 * @len: set to the bytes at the returned address, 1 to @want
 *
 * Return: kernel address of the byte.
 */
void *vrnic_extent_run(const struct vrnic_mr *mr, u64 off, u64 want, u64 *len)
{
	const struct vrnic_extent *extents = mr->extents;
	u32 first = 0, last = mr->nr_extents - 1, middle;

	while (first < last) {
		middle = (first + last) / 2;
		if (off < extents[middle].end)
			last = middle;
		else
			first = middle + 1;
	}
	*len = min(want, extents[first].end - off);
	return extents[first].kva + off - (first ? extents[first - 1].end : 0);
}
