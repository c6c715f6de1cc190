// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Local memory that is not registered (S1). A burst is what a run moves of one descriptor before
 * other rings get their turn. Only the pages of the current burst are pinned. They are unpinned
 * before the counter falls; if the peer is on another host, just after.
 *
 * The address is one of the process that made the FIFO. Usually that process rings the doorbell:
 * then its own page tables translate (native/local.c), and only pages that are not present are
 * pinned here. A page fault may wait for any time: for a disk, for a file system that the process
 * itself serves, or for its own handler of userfaults. So no task faults while it has the
 * injector's run bit. Instead, the process that rang faults after its run (vrnic_virtual_fault()),
 * and may be killed meanwhile. If a thread of the engine ran the ring, a work item faults. Both
 * have a reference on struct vrnic_virtual and on nothing else, so the FIFO and its device may go
 * meanwhile.
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

/* Pages of a burst of 1 MiB that may start anywhere in a page. */
#define VIRTUAL_PAGES	(SZ_1M / PAGE_SIZE + 1)

/**
 * struct vrnic_virtual - the pages of an injector that are pinned, or being pinned, now
 * @refs: references of the injector, and of the task or work item that faults
 * @mr: makes the pages look like a region, for struct vrnic_seg
 * @work: faults and pins the pages if the process does not
 * @mm: memory of the process that owns the pages; its mm_count is held
 * @fifo: number of the FIFO whose injector goes on afterwards
 * @pending: a task or @work is to pin the pages, and owns all below. Cleared with release.
 * @faulter: task that is to pin the pages itself, after its run; or NULL
 * @ready: the pages were pinned while @pending was set, and no burst has used them yet
 * @seq: number of the operation that they were pinned for. Another one must not use them: the
 *	process may have mapped other memory at @addr since
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
	u64 seq;
	u64 addr;
	unsigned int want;
	bool write;
	long nr;
	struct page *page[VIRTUAL_PAGES];
	void *kva[VIRTUAL_PAGES];
};

/* Runs pin_work(), which may take long; module unload waits for it. */
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

/* Pin pages of @virt's process, which need not be the current one. */
static long pin_locked(struct vrnic_virtual *virt, unsigned int flags)
{
	mmap_assert_locked(virt->mm);
	return vrnic_pin_user_pages_remote(virt->mm, virt->addr, virt->want,
					   gup_flags(virt) | flags, virt->page);
}

/* Pin pages, however long that takes. A page that only a userfault handler can fill is an error. */
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

/* Pin only pages that are present, without waiting for mmap_lock. Return: 0 or less if none is. */
static long pin_quickly(struct vrnic_virtual *virt)
{
	long nr = 0;

	if (!mmget_not_zero(virt->mm))
		return 0;
	if (mmap_read_trylock(virt->mm)) {
		nr = pin_locked(virt, FOLL_NOFAULT);
		mmap_read_unlock(virt->mm);
	}
	/* if the process has exited, mmput() tears its memory down, which may wait for this run */
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

/* The task or work item has set @virt->nr: let the injector use the result. */
static void virtual_pinned(struct vrnic_virtual *virt)
{
	virt->ready = true;
	/* pairs with the acquire in vrnic_virtual_pin() */
	smp_store_release(&virt->pending, false);
	virtual_put(virt);
}

/*
 * Have a thread run the injector of FIFO @id. If that FIFO is gone, another FIFO may have its
 * number, for which a run too many is harmless.
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
 * vrnic_virtual_faults() - must the current task fault in pages, after its run?
 * @inj: injector that the task has just run, or found running
 *
 * Return: pages for vrnic_virtual_fault(), which the caller has to call; or NULL.
 */
struct vrnic_virtual *vrnic_virtual_faults(struct vrnic_injector *inj)
{
	/* pairs with the release in virtual_get() */
	struct vrnic_virtual *virt = smp_load_acquire(&inj->virt);

	/* @faulter is set to this task, and then cleared, by this task only */
	return virt && READ_ONCE(virt->faulter) == current ? virt : NULL;
}

/**
 * vrnic_virtual_fault() - fault in and pin pages of the current process, however long that takes
 * @virt: result of vrnic_virtual_faults()
 * @leave: after the fault, have a thread run the FIFO's injection ring; else the caller runs it
 *
 * The caller holds nothing that other tasks wait for. Ends early if the task is killed.
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

/*
 * Use the pages that a task or work item has pinned for operation @seq, if they are the ones
 * wanted; else unpin them. Return: true if @virt->nr has the result.
 */
static bool take_ready(struct vrnic_virtual *virt, u64 seq, u64 addr, unsigned int want,
		       bool write)
{
	if (!virt->ready)
		return false;
	if (virt->seq == seq && virt->addr == addr && virt->want == want &&
	    virt->write == write) {
		virt->ready = false;
		return true;
	}
	unpin_unused(virt);
	return false;
}

/*
 * Choose who waits for the pages: the current task, if it is one of the process, else a work item.
 * Return: -EAGAIN; or 0 with an error in @virt->nr, if the module is being unloaded.
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

/* @whole: pin all pages or none. Return: 0: @virt->nr has the result; or -EAGAIN. */
static int virtual_pin(struct vrnic_virtual *virt, u64 seq, u64 addr, unsigned int want,
		       bool write, bool whole)
{
	if (take_ready(virt, seq, addr, want, write))
		return 0;
	virt->seq = seq;
	virt->addr = addr;
	virt->want = want;
	virt->write = write;
	virt->nr = pin_quickly(virt);
	if (whole && virt->nr > 0 && virt->nr < want) {
		unpin_user_pages(virt->page, virt->nr);
		virt->nr = 0;
	}
	/* only a fault tells an address without memory from a page that is not present */
	return virt->nr > 0 ? 0 : pin_later(virt);
}

/**
 * vrnic_virtual_pin() - pin memory of the process that made a FIFO
 * @inj: injector of the FIFO; no pages are pinned for it now
 * @addr: virtual address
 * @len: bytes, not 0
 * @write: the memory will be written to
 * @seg: set to the memory from @addr on; may be shorter than @len. The memory of a message is
 *	shorter only if the process has no memory at one of its addresses
 *
 * Return: 0, undone by vrnic_virtual_unpin(); enum vrnic_vendor_err; or -EAGAIN: the injector runs
 * again when the pages are there.
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
	if (virtual_pin(virt, inj->op.seq, addr & PAGE_MASK,
			DIV_ROUND_UP(offset + len, PAGE_SIZE), write,
			inj->op.d.opcode == VRNIC_NOP_MESSAGE))
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

/* The operation is over: unpin pages that were pinned for it, and that it did not need. */
void vrnic_virtual_forget(struct vrnic_injector *inj)
{
	struct vrnic_virtual *virt = inj->virt;

	/* pairs with the release in virtual_pinned(); what comes later is of no other operation */
	if (virt && !smp_load_acquire(&virt->pending))
		unpin_unused(virt);
}

/* The caller has parked @inj for good. A task that faults has a reference of its own on @virt. */
void vrnic_virtual_free(struct vrnic_injector *inj)
{
	if (inj->virt)
		virtual_put(inj->virt);
	inj->virt = NULL;
}
