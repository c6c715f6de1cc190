// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Local memory that was not registered (S1): pinned and translated for as long
 * as a burst moves it, so never more than a burst's pages at a time. The counter
 * falls as each portion has moved; what has moved is unpinned by then.
 *
 * The address is one of the process that made the FIFO. Usually that is who
 * rings the doorbell. A thread of the engine borrows the process's memory
 * instead, if the process is still there.
 */

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "native.h"

/* A burst of 1 MiB, wherever in a page it starts. */
#define VIRTUAL_PAGES	(SZ_1M / PAGE_SIZE + 1)

/**
 * struct vrnic_virtual - pages that are pinned now
 * @mr: stands for them, as a region would
 * @nr: how many
 * @page: the pages
 * @kva: kernel address of each
 */
struct vrnic_virtual {
	struct vrnic_mr mr;
	unsigned int nr;
	struct page *page[VIRTUAL_PAGES];
	void *kva[VIRTUAL_PAGES];
};

static struct vrnic_virtual *virtual_get(struct vrnic_injector *inj)
{
	struct vrnic_virtual *virt = inj->virt;

	if (virt)
		return virt;
	virt = kvzalloc(sizeof(*virt), GFP_KERNEL);
	if (!virt)
		return NULL;
	virt->mr.pages = virt->kva;
	inj->virt = virt;
	return virt;
}

static long pin_remote(struct mm_struct *mm, u64 addr, unsigned int nr,
		       unsigned int flags, struct page **page)
{
	long pinned;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	mmap_read_lock(mm);
	pinned = vrnic_pin_user_pages_remote(mm, addr, nr, flags, page);
	mmap_read_unlock(mm);
	mmput(mm);
	return pinned;
}

static long pin(struct mm_struct *mm, u64 addr, unsigned int nr, bool write,
		struct page **page)
{
	unsigned int flags = write ? FOLL_WRITE : 0;

	if (current->mm == mm)
		return pin_user_pages_fast(addr, nr, flags, page);
	return pin_remote(mm, addr, nr, flags, page);
}

/**
 * vrnic_virtual_pin() - pin memory of the process that owns a FIFO
 * @inj: injector of that FIFO; nothing is pinned for it now
 * @addr: virtual address
 * @len: bytes, not 0
 * @write: it will be written to
 * @seg: the memory, from @addr on; may be shorter than @len
 *
 * Return: 0 or enum vrnic_vendor_err. Undone by vrnic_virtual_unpin().
 */
int vrnic_virtual_pin(struct vrnic_injector *inj, u64 addr, u64 len,
		      bool write, struct vrnic_seg *seg)
{
	struct vrnic_virtual *virt = virtual_get(inj);
	u64 offset = offset_in_page(addr);
	unsigned int i;
	long nr;

	if (!virt || addr + len < addr)
		return VRNIC_VERR_FAULT;
	len = min_t(u64, len, VIRTUAL_PAGES * PAGE_SIZE - offset);
	nr = DIV_ROUND_UP(offset + len, PAGE_SIZE);
	nr = pin(inj->fifo->mm, addr & PAGE_MASK, nr, write, virt->page);
	if (nr <= 0)
		return VRNIC_VERR_FAULT;
	virt->nr = nr;
	for (i = 0; i < virt->nr; i++)
		virt->kva[i] = page_address(virt->page[i]);
	*seg = (struct vrnic_seg) {
		.mr = &virt->mr,
		.held = true,
		.off = offset,
		.len = min_t(u64, len, nr * PAGE_SIZE - offset),
	};
	return 0;
}

/* Undo vrnic_virtual_pin(); @dirty: it was written to. */
void vrnic_virtual_unpin(struct vrnic_injector *inj, bool dirty)
{
	struct vrnic_virtual *virt = inj->virt;

	unpin_user_pages_dirty_lock(virt->page, virt->nr, dirty);
	virt->nr = 0;
}

void vrnic_virtual_free(struct vrnic_injector *inj)
{
	kvfree(inj->virt);
	inj->virt = NULL;
}
