// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Local memory that was not registered (S1): pinned and translated for as long
 * as a burst moves it, so never more than a burst's pages at a time. The counter
 * falls as each portion has moved; what has moved is unpinned by then.
 *
 * The address is one of the process that made the FIFO. Usually that is who
 * rings the doorbell: then its own page tables translate (native/local.c), and
 * nothing need be pinned. Pages that are not there come here. A disk may have to be waited
 * for, a file system that the process itself runs, or its own handler of userfaults: for
 * as long as they please, and nothing tells before the fault that it will not take long.
 * So nobody faults with the run bit held. The process that rang does so after its run
 * (vrnic_virtual_fault()), and may be killed meanwhile; for a thread of the engine a
 * work item does. Either has a reference on the pages' array and nothing else: the FIFO
 * and its device may go meanwhile.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "native/native.h"

/* A burst of 1 MiB, wherever in a page it starts. */
#define VIRTUAL_PAGES	(SZ_1M / PAGE_SIZE + 1)

/**
 * struct vrnic_virtual - pages that are pinned, or being pinned, now
 * @refs: the injector, and who pins them where that may take long
 * @mr: stands for them, as a region would
 * @work: pins them, if nobody else does
 * @mm: memory of the process that owns them; its count is held
 * @fifo: number of the FIFO whose injector goes on then
 * @pending: somebody is at it: all below is his own. Cleared with release.
 * @faulter: the task that is to do it itself, after its run; only compared, by itself
 * @ready: it is done, and nobody has used it yet
 * @addr: what is to be pinned, or was
 * @want: how many pages
 * @write: they will be written to
 * @nr: how many are pinned; or a negative errno
 * @page: the pages
 * @kva: kernel address of each
 *
 * Protected by the injector's run bit, but for what @pending says.
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

/* Pins what may take long; module unload waits for it. */
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

/* Of a process that need not be the current one. */
static long pin_locked(struct vrnic_virtual *virt, unsigned int flags)
{
	mmap_assert_locked(virt->mm);
	return vrnic_pin_user_pages_remote(virt->mm, virt->addr, virt->want,
					   gup_flags(virt) | flags, virt->page);
}

/* Wait as long as it takes; userfaultfd is not waited for, it is an error here. */
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

/* Only what is there, and without waiting for the lock. Return: 0 or less if nothing is. */
static long pin_quickly(struct vrnic_virtual *virt)
{
	long nr = 0;

	if (!mmget_not_zero(virt->mm))
		return 0;
	if (mmap_read_trylock(virt->mm)) {
		nr = pin_locked(virt, FOLL_NOFAULT);
		mmap_read_unlock(virt->mm);
	}
	/* the last user's exit would wait for this very thread */
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

/* @virt->nr is known. */
static void pinned(struct vrnic_virtual *virt)
{
	virt->ready = true;
	/* pairs with the acquire in vrnic_virtual_pin() */
	smp_store_release(&virt->pending, false);
	virtual_put(virt);
}

/* The injector may be gone, and the number another one's: a call too many does no harm. */
static void go_on(u32 id)
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
	pinned(virt);
	go_on(fifo);
	module_put(THIS_MODULE);
}

/**
 * vrnic_virtual_faults() - has the current task to fetch pages itself, after its run
 * @inj: injector that it has just run, or found running
 *
 * Return: for vrnic_virtual_fault(), which has to be called; or NULL.
 */
struct vrnic_virtual *vrnic_virtual_faults(struct vrnic_injector *inj)
{
	/* pairs with the release in virtual_get() */
	struct vrnic_virtual *virt = smp_load_acquire(&inj->virt);

	/* only this task writes that it is this one */
	return virt && READ_ONCE(virt->faulter) == current ? virt : NULL;
}

/**
 * vrnic_virtual_fault() - fetch pages of the current process, however long that takes
 * @virt: what vrnic_virtual_faults() said
 * @leave: a thread is to go on; else the caller has to
 *
 * The caller holds nothing that others wait for. Ends early if it is killed.
 */
void vrnic_virtual_fault(struct vrnic_virtual *virt, bool leave)
{
	u32 fifo = virt->fifo;

	WRITE_ONCE(virt->faulter, NULL);
	virt->nr = pin_user_pages_fast(virt->addr, virt->want, gup_flags(virt),
				       virt->page);
	pinned(virt);
	if (leave)
		go_on(fifo);
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

/*
 * Who does what may take long: the process itself, if it is here; else a work item.
 * Return: -EAGAIN; or 0: nobody can, which @virt->nr says.
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

/* @whole: nothing, or all that can be had. */
static int pin(struct vrnic_virtual *virt, u64 addr, unsigned int want,
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
	/* what cannot be had at all looks the same as what is not there */
	return virt->nr > 0 ? 0 : pin_later(virt);
}

/**
 * vrnic_virtual_pin() - pin memory of the process that owns a FIFO
 * @inj: injector of that FIFO; nothing is pinned for it now
 * @addr: virtual address
 * @len: bytes, not 0
 * @write: it will be written to
 * @seg: the memory, from @addr on; may be shorter than @len. A message's data is as a
 *	whole, or there is an address in it that is not the process's
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

/* Undo vrnic_virtual_pin(); @dirty: it was written to. */
void vrnic_virtual_unpin(struct vrnic_injector *inj, bool dirty)
{
	struct vrnic_virtual *virt = inj->virt;

	unpin_user_pages_dirty_lock(virt->page, virt->nr, dirty);
	virt->nr = 0;
}

/* The injector is parked for good. Who is waiting for pages is not waited for. */
void vrnic_virtual_free(struct vrnic_injector *inj)
{
	if (inj->virt)
		virtual_put(inj->virt);
	inj->virt = NULL;
}
