// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Local memory that was not registered (S1): pinned and translated for as long
 * as a burst moves it, so never more than a burst's pages at a time. The counter
 * falls as each portion has moved; what has moved is unpinned by then.
 *
 * The address is one of the process that made the FIFO. Usually that is who
 * rings the doorbell: then its own page tables translate (flow_loop_native.c),
 * nothing need be pinned, and only pages that are not there come here. Fetching
 * them costs the process its own time. A thread of the engine serves others as
 * well: it takes what is there already, and leaves the rest to a work item, which
 * may have to wait for a disk, or for a file system that the process itself runs.
 */

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "native.h"

/* A burst of 1 MiB, wherever in a page it starts. */
#define VIRTUAL_PAGES	(SZ_1M / PAGE_SIZE + 1)

/**
 * struct vrnic_virtual - pages that are pinned, or being pinned, now
 * @mr: stands for them, as a region would
 * @work: pins them where that may take long
 * @inj: injector that it belongs to
 * @pending: @work is at it: all below is its own. Cleared with release.
 * @ready: @work has done it, and nobody has used it yet
 * @addr: what @work is to pin, or has pinned
 * @want: how many pages
 * @write: they will be written to
 * @nr: how many are pinned; or a negative errno, from @work
 * @page: the pages
 * @kva: kernel address of each
 *
 * Protected by the injector's run bit, but for what @pending says.
 */
struct vrnic_virtual {
	struct vrnic_mr mr;
	struct work_struct work;
	struct vrnic_injector *inj;
	bool pending;
	bool ready;
	u64 addr;
	unsigned int want;
	bool write;
	long nr;
	struct page *page[VIRTUAL_PAGES];
	void *kva[VIRTUAL_PAGES];
};

static unsigned int gup_flags(const struct vrnic_virtual *virt)
{
	return virt->write ? FOLL_WRITE : 0;
}

/* Of a process that is not the current one. */
static long pin_locked(struct vrnic_virtual *virt, unsigned int flags)
{
	struct mm_struct *mm = virt->inj->fifo->mm;

	mmap_assert_locked(mm);
	return vrnic_pin_user_pages_remote(mm, virt->addr, virt->want,
					   gup_flags(virt) | flags, virt->page);
}

/* Wait as long as it takes; userfaultfd is not waited for, it is an error here. */
static long pin_patiently(struct vrnic_virtual *virt)
{
	struct mm_struct *mm = virt->inj->fifo->mm;
	long nr;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	mmap_read_lock(mm);
	nr = pin_locked(virt, 0);
	mmap_read_unlock(mm);
	mmput(mm);
	return nr;
}

static void pin_work(struct work_struct *work)
{
	struct vrnic_virtual *virt = container_of(work, struct vrnic_virtual,
						  work);

	virt->nr = pin_patiently(virt);
	virt->ready = true;
	/* pairs with the acquire in vrnic_virtual_pin() */
	smp_store_release(&virt->pending, false);
	vrnic_queue(&virt->inj->run);
}

/* Only what is there. Return: 0 or less if nothing is. */
static long pin_quickly(struct vrnic_virtual *virt)
{
	struct mm_struct *mm = virt->inj->fifo->mm;
	long nr = 0;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	if (mmap_read_trylock(mm)) {
		nr = pin_locked(virt, FOLL_NOWAIT);
		mmap_read_unlock(mm);
	}
	/* the last user's exit would wait for this very thread */
	mmput_async(mm);
	return nr;
}

static struct vrnic_virtual *virtual_get(struct vrnic_injector *inj)
{
	struct vrnic_virtual *virt = inj->virt;

	if (virt)
		return virt;
	virt = kvzalloc(sizeof(*virt), GFP_KERNEL);
	if (!virt)
		return NULL;
	virt->mr.pages = virt->kva;
	virt->inj = inj;
	INIT_WORK(&virt->work, pin_work);
	inj->virt = virt;
	return virt;
}

static void unpin_unused(struct vrnic_virtual *virt)
{
	if (virt->ready && virt->nr > 0)
		unpin_user_pages(virt->page, virt->nr);
	virt->ready = false;
}

/* What @virt->work has pinned, if that was for this. */
static bool take_ready(struct vrnic_virtual *virt, u64 addr, unsigned int want,
		       bool write)
{
	if (!virt->ready)
		return false;
	if (virt->addr == addr && virt->want == want && virt->write == write) {
		virt->ready = false;
		return true;
	}
	unpin_unused(virt);
	return false;
}

static int pin(struct vrnic_virtual *virt, u64 addr, unsigned int want,
	       bool write)
{
	if (take_ready(virt, addr, want, write))
		return 0;
	virt->addr = addr;
	virt->want = want;
	virt->write = write;
	if (current->mm == virt->inj->fifo->mm) {
		virt->nr = pin_user_pages_fast(addr, want, gup_flags(virt),
					       virt->page);
		return 0;
	}
	virt->nr = pin_quickly(virt);
	if (virt->nr)
		return 0;
	virt->pending = true;
	queue_work(system_unbound_wq, &virt->work);
	return -EAGAIN;
}

/**
 * vrnic_virtual_pin() - pin memory of the process that owns a FIFO
 * @inj: injector of that FIFO; nothing is pinned for it now
 * @addr: virtual address
 * @len: bytes, not 0
 * @write: it will be written to
 * @seg: the memory, from @addr on; may be shorter than @len
 *
 * Return: 0, enum vrnic_vendor_err, or -EAGAIN: the injector is called again when
 * the pages are there. Undone by vrnic_virtual_unpin().
 */
int vrnic_virtual_pin(struct vrnic_injector *inj, u64 addr, u64 len,
		      bool write, struct vrnic_seg *seg)
{
	struct vrnic_virtual *virt = virtual_get(inj);
	u64 offset = offset_in_page(addr);
	long i;

	if (!virt || addr + len < addr)
		return VRNIC_VERR_FAULT;
	/* pairs with the release in pin_work() */
	if (smp_load_acquire(&virt->pending))
		return -EAGAIN;
	len = min_t(u64, len, VIRTUAL_PAGES * PAGE_SIZE - offset);
	if (pin(virt, addr & PAGE_MASK, DIV_ROUND_UP(offset + len, PAGE_SIZE),
		write))
		return -EAGAIN;
	if (virt->nr <= 0)
		return VRNIC_VERR_FAULT;
	for (i = 0; i < virt->nr; i++)
		virt->kva[i] = page_address(virt->page[i]);
	*seg = (struct vrnic_seg) {
		.mr = &virt->mr,
		.held = true,
		.off = offset,
		.len = min_t(u64, len, virt->nr * PAGE_SIZE - offset),
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

/* The injector is parked for good. */
void vrnic_virtual_free(struct vrnic_injector *inj)
{
	struct vrnic_virtual *virt = inj->virt;

	if (!virt)
		return;
	cancel_work_sync(&virt->work);
	unpin_unused(virt);
	kvfree(virt);
	inj->virt = NULL;
}
