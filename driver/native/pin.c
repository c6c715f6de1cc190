// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Local memory that was not registered (S1): pinned and translated while a burst moves it, so never
 * more than a burst's pages at a time. The counter falls as each portion has moved; by then the
 * portion is unpinned.
 *
 * The address is in the process that made the FIFO. Usually that process rings the doorbell: then
 * its own page tables translate (native/local.c), and nothing need be pinned. Pages that are not
 * present are pinned here. Such a fault may have to wait for a disk, for a file system that the
 * process itself serves, or for its own handler of userfaults, for any time, and this cannot be
 * known before the fault. So no runner faults with the run bit held. The process that rang faults
 * after its run (vrnic_virtual_fault()), and may be killed meanwhile. For a thread of the engine, a
 * work item faults. Both have a reference on the array of pages and on nothing else: the FIFO and
 * its device may go meanwhile.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "engine/engine.h"
#include "mem/mem.h"
#include "mem/seg.h"
#include "native/native.h"

/* A burst of 1 MiB that may start anywhere in a page. */
#define VIRTUAL_PAGES	(SZ_1M / PAGE_SIZE + 1)

/**
 * struct vrnic_virtual - pages that are pinned, or being pinned, now
 * @refs: references of the injector, and of the task that pins pages where that may take long
 * @mr: represents the pages as a region would
 * @work: pins the pages if the process does not
 * @mm: memory of the process that owns the pages; its mm_count is held
 * @fifo: number of the FIFO whose injector goes on afterwards
 * @pending: a task is about to pin the pages, and owns all below. Cleared with release.
 * @faulter: task that is to pin the pages itself, after its run; only that task compares this
 * @ready: the pages are pinned, and have not been used yet
 * @addr: address that is to be pinned, or was pinned
 * @want: number of pages
 * @write: the pages will be written to
 * @nr: number of pages that are pinned; or a negative errno
 * @page: the pages
 * @kva: kernel address of each page
 *
 * The injector's run bit protects all members while @pending is not set.
 */
struct vrnic_virtual {
	refcount_t refs;
	struct vrnic_mr mr;
	struct work_struct work;
	struct mm_struct *mm;
	u32 fifo;
	bool pending;
	struct task_struct *faulter;
	bool ready;
	u64 addr;
	unsigned int want;
	bool write;
	long nr;
	struct page *page[VIRTUAL_PAGES];
	void *kva[VIRTUAL_PAGES];
};

/* Runs work items that may take long; module unload waits for them. */
static struct workqueue_struct *pin_wq;

int vrnic_virtual_init(void)
{
	pin_wq = alloc_workqueue("vrnic-pin", WQ_UNBOUND, 0);
	return pin_wq ? 0 : -ENOMEM;
}

void vrnic_virtual_exit(void)
{
	destroy_workqueue(pin_wq);
}

static unsigned int gup_flags(const struct vrnic_virtual *virt)
{
	return virt->write ? FOLL_WRITE : 0;
}

/* Pin pages of a process that need not be the current one. */
static long pin_locked(struct vrnic_virtual *virt, unsigned int flags)
{
	mmap_assert_locked(virt->mm);
	return vrnic_pin_user_pages_remote(virt->mm, virt->addr, virt->want,
					   gup_flags(virt) | flags, virt->page);
}

/* Pin pages, however long that takes. A userfault is an error here, and is not waited for. */
static long pin_patiently(struct vrnic_virtual *virt)
{
	long nr;

	if (!mmget_not_zero(virt->mm))
		return -ESRCH;
	mmap_read_lock(virt->mm);
	nr = pin_locked(virt, 0);
	mmap_read_unlock(virt->mm);
	mmput(virt->mm);
	return nr;
}

/* Pin only pages that are present, without waiting for the lock. Return: 0 or less if none are. */
static long pin_quickly(struct vrnic_virtual *virt)
{
	long nr = 0;

	if (!mmget_not_zero(virt->mm))
		return 0;
	if (mmap_read_trylock(virt->mm)) {
		nr = pin_locked(virt, FOLL_NOFAULT);
		mmap_read_unlock(virt->mm);
	}
	/* the exit of the mm's last user would wait for this very thread */
	mmput_async(virt->mm);
	return nr;
}

static void unpin_unused(struct vrnic_virtual *virt)
{
	if (virt->ready && virt->nr > 0)
		unpin_user_pages(virt->page, virt->nr);
	virt->ready = false;
}

static void virtual_put(struct vrnic_virtual *virt)
{
	if (!refcount_dec_and_test(&virt->refs))
		return;
	unpin_unused(virt);
	mmdrop(virt->mm);
	kvfree(virt);
}

/* @virt->nr is known: let the injector use the result. */
static void virtual_pinned(struct vrnic_virtual *virt)
{
	virt->ready = true;
	/* pairs with the acquire in vrnic_virtual_pin() */
	smp_store_release(&virt->pending, false);
	virtual_put(virt);
}

/*
 * The injector may be gone and its number be that of another FIFO, for which one run more is
 * harmless.
 */
static void injector_go_on(u32 id)
{
	struct vrnic_fifo *fifo = vrnic_fifo_get(id);

	if (!fifo)
		return;
	vrnic_queue(&fifo->inject.run);
	vrnic_fifo_put(fifo);
}

static void pin_work(struct work_struct *work)
{
	struct vrnic_virtual *virt = container_of(work, struct vrnic_virtual,
						  work);
	u32 fifo = virt->fifo;

	virt->nr = pin_patiently(virt);
	virtual_pinned(virt);
	injector_go_on(fifo);
	module_put(THIS_MODULE);
}

/**
 * vrnic_virtual_faults() - has the current task to fetch pages itself, after its run?
 * @inj: injector that the task has just run, or found running
 *
 * Return: pages for vrnic_virtual_fault(), which the caller has to call; or NULL.
 */
struct vrnic_virtual *vrnic_virtual_faults(struct vrnic_injector *inj)
{
	/* pairs with the release in virtual_get() */
	struct vrnic_virtual *virt = smp_load_acquire(&inj->virt);

	/* only this task writes itself into @faulter */
	return virt && READ_ONCE(virt->faulter) == current ? virt : NULL;
}

/**
 * vrnic_virtual_fault() - fetch pages of the current process, however long that takes
 * @virt: result of vrnic_virtual_faults()
 * @leave: a thread is to go on with the ring; else the caller has to
 *
 * The caller holds nothing that others wait for. Ends early if the task is killed.
 */
void vrnic_virtual_fault(struct vrnic_virtual *virt, bool leave)
{
	u32 fifo = virt->fifo;

	WRITE_ONCE(virt->faulter, NULL);
	virt->nr = pin_user_pages_fast(virt->addr, virt->want, gup_flags(virt),
				       virt->page);
	virtual_pinned(virt);
	if (leave)
		injector_go_on(fifo);
}

static struct vrnic_virtual *virtual_get(struct vrnic_injector *inj)
{
	struct vrnic_virtual *virt = inj->virt;

	if (virt)
		return virt;
	virt = kvzalloc(sizeof(*virt), GFP_KERNEL_ACCOUNT);
	if (!virt)
		return NULL;
	refcount_set(&virt->refs, 1);
	virt->mr.pages = virt->kva;
	virt->mm = inj->fifo->mm;
	mmgrab(virt->mm);
	virt->fifo = inj->fifo->id;
	INIT_WORK(&virt->work, pin_work);
	/* pairs with the acquire in vrnic_virtual_faults() */
	smp_store_release(&inj->virt, virt);
	return virt;
}

/* Use the pages that virtual_pinned() announced, if they were pinned for this burst. */
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

/*
 * Choose the task that may wait for the pages: the process itself if this is its call, else a work
 * item. Return: -EAGAIN; or 0 if neither can, which @virt->nr tells.
 */
static int pin_later(struct vrnic_virtual *virt)
{
	bool own = current->mm == virt->mm;

	if (!own && !try_module_get(THIS_MODULE)) {
		virt->nr = -ESHUTDOWN;
		return 0;
	}
	refcount_inc(&virt->refs);
	virt->pending = true;
	if (own)
		WRITE_ONCE(virt->faulter, current);
	else
		queue_work(pin_wq, &virt->work);
	return -EAGAIN;
}

/* @whole: fail unless all pages can be pinned */
static int virtual_pin(struct vrnic_virtual *virt, u64 addr, unsigned int want,
		       bool write, bool whole)
{
	if (take_ready(virt, addr, want, write))
		return 0;
	virt->addr = addr;
	virt->want = want;
	virt->write = write;
	virt->nr = pin_quickly(virt);
	if (whole && virt->nr > 0 && virt->nr < want) {
		unpin_user_pages(virt->page, virt->nr);
		virt->nr = 0;
	}
	/* an address that cannot be pinned looks the same as a page that is not present */
	return virt->nr > 0 ? 0 : pin_later(virt);
}

/**
 * vrnic_virtual_pin() - pin memory of the process that owns a FIFO
 * @inj: injector of the FIFO; no pages are pinned for it now
 * @addr: virtual address
 * @len: bytes, not 0
 * @write: the memory will be written to
 * @seg: set to the memory from @addr on; may be shorter than @len. For a message, only if an
 *	address in it is not the process's
 *
 * Return: 0, enum vrnic_vendor_err, or -EAGAIN: the injector is called again when the pages are
 * there. Undone by vrnic_virtual_unpin().
 */
int vrnic_virtual_pin(struct vrnic_injector *inj, u64 addr, u64 len,
		      bool write, struct vrnic_seg *seg)
{
	struct vrnic_virtual *virt = virtual_get(inj);
	u64 offset = offset_in_page(addr);
	long i;

	if (!virt || addr + len < addr)
		return VRNIC_VERR_FAULT;
	/* pairs with the release in virtual_pinned() */
	if (smp_load_acquire(&virt->pending))
		return -EAGAIN;
	len = min_t(u64, len, VIRTUAL_PAGES * PAGE_SIZE - offset);
	if (virtual_pin(virt, addr & PAGE_MASK, DIV_ROUND_UP(offset + len, PAGE_SIZE),
			write, inj->op.d.opcode == VRNIC_NOP_MESSAGE))
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

/* Undo vrnic_virtual_pin(); @dirty: the memory was written to. */
void vrnic_virtual_unpin(struct vrnic_injector *inj, bool dirty)
{
	struct vrnic_virtual *virt = inj->virt;

	unpin_user_pages_dirty_lock(virt->page, virt->nr, dirty);
	virt->nr = 0;
}

/* The injector is parked for good. A task that waits for pages is not waited for. */
void vrnic_virtual_free(struct vrnic_injector *inj)
{
	if (inj->virt)
		virtual_put(inj->virt);
	inj->virt = NULL;
}
