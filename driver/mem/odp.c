// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On-demand paging.
 *
 * A region of this kind pins nothing. It has tables of pages, like any region, but most entries
 * may be missing. A run asks vrnic_odp_ready() for the bytes that it is about to use. If a page is
 * missing, the pager (odp_pager.c), a work of the kernel, brings it in, and the run tries again
 * from a timer: runs must not sleep. When the process's memory changes (munmap, fork, reclaim), the
 * kernel calls invalidate() (odp_chunk.c), which takes the pages out of the tables.
 *
 * A user of a page has a reference on the region, and runs are short. So invalidate() lets no new
 * user in, waits until those there are have gone, and then takes pages away. Code that holds a
 * reference on such a region must therefore not allocate memory with reclaim, cause a page fault,
 * or wait for those who do; resp_lock has the same rule.
 *
 * There is a table for each chunk of 512 KiB in which a page was used. A chunk without pages is
 * freed when a page-in that failed leaves it empty, or when the process has unmapped all of it.
 *
 * Locks: vrnic_odp.lock, and inside of it ib_umem_odp.umem_mutex. invalidate() takes both while
 * others hold the process's mmap_lock or reclaim memory, so holders do neither. Outside of both is
 * vrnic_chunk.filling. A reader of a table needs no lock: it has a reference on the region.
 */

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "compat/umem_odp.h"
#include "mem/mem.h"
#include "mem/odp_chunk.h"
#include "mem/seg.h"
#include "vrnic.h"

bool vrnic_odp_supported(void)
{
	return IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING);
}

static void odp_free(struct vrnic_odp *odp)
{
	mmdrop(odp->mm);
	mutex_destroy(&odp->lock);
	kfree_rcu(odp, rcu);
}

static void odp_release(struct kref *refs)
{
	struct vrnic_odp *odp = container_of(refs, struct vrnic_odp, refs);

	vrnic_chunks_release(odp);
	ib_umem_odp_release(odp->anchor);
	odp_free(odp);
}

/**
 * vrnic_odp_get_unless_gone() - take a reference on the pages of a region
 * @odp: pages of a region that was found under RCU
 *
 * Return: false if the region was deregistered.
 */
bool vrnic_odp_get_unless_gone(struct vrnic_odp *odp)
{
	return kref_get_unless_zero(&odp->refs);
}

/* Context: may sleep; the caller holds no reference on the region that a notifier waits for. */
void vrnic_odp_put(struct vrnic_odp *odp)
{
	kref_put(&odp->refs, odp_release);
}

/* Make the table of chunks, which has one word for each. An implicit region has none. */
static int odp_table(struct vrnic_odp *odp, u64 start, u64 length)
{
	unsigned long first = start >> VRNIC_CHUNK_SHIFT;
	unsigned long last;

	if (start + length - 1 < start)
		return -EOVERFLOW;
	last = (start + length - 1) >> VRNIC_CHUNK_SHIFT;
	odp->table = kvcalloc(last - first + 1, sizeof(*odp->table), GFP_KERNEL_ACCOUNT);
	if (!odp->table)
		return -ENOMEM;
	odp->va = start & PAGE_MASK;
	odp->nr = last - first + 1;
	return 0;
}

static int odp_init(struct vrnic_odp *odp, struct vrnic_mr *mr, u64 start, u64 length)
{
	int err = 0, i;

	kref_init(&odp->refs);
	mutex_init(&odp->lock);
	xa_init_flags(&odp->chunks, XA_FLAGS_ACCOUNT);
	spin_lock_init(&odp->run_lock);
	for (i = 0; i < VRNIC_ODP_ASKED; i++)
		odp->asked[i] = VRNIC_NO_PAGE;
	odp->ibdev = mr->ibmr.device;
	odp->mr = mr;
	/* the core looks at the mm when a chunk is made, and keeps no reference until then */
	odp->mm = current->mm;
	mmgrab(odp->mm);
	if (!vrnic_odp_is_implicit(start, length))
		err = odp_table(odp, start, length);
	if (err)
		return err;
	/* the tables have an entry for each small page, also of a huge one */
	odp->anchor = vrnic_umem_odp_implicit(odp->ibdev, mr->access & ~IB_ACCESS_HUGETLB);
	return PTR_ERR_OR_ZERO(odp->anchor);
}

/**
 * vrnic_odp_new() - let a region have its pages on demand
 * @mr: region, with its rights
 * @start: address in the current process
 * @length: bytes; see vrnic_odp_is_implicit()
 *
 * Return: the pages of the region, or an error pointer.
 */
struct vrnic_odp *vrnic_odp_new(struct vrnic_mr *mr, u64 start, u64 length)
{
	struct vrnic_odp *odp;
	int err;

	if (!current->mm)
		return ERR_PTR(-EINVAL);
	odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	err = odp_init(odp, mr, start, length);
	if (!err)
		return odp;
	kvfree(odp->table);
	odp_free(odp);
	return ERR_PTR(err);
}

/*
 * Begin to deregister the region: no notifier drains it until vrnic_odp_close_end(). In between,
 * the caller waits until nobody uses the region.
 */
void vrnic_odp_close_begin(struct vrnic_odp *odp)
{
	mutex_lock(&odp->lock);
}

void vrnic_odp_close_end(struct vrnic_odp *odp)
{
	odp->mr = NULL;
	mutex_unlock(&odp->lock);
}

/*
 * Return: the first address in [@va, @end) whose page is not there, or is not in this chunk. One
 * barrier for all of the pages: where it is an instruction, one for each page takes a quarter of
 * the time that the copy does.
 */
static unsigned long chunk_ready(const struct vrnic_chunk *c, unsigned long va, unsigned long end,
				 bool write)
{
	unsigned long first = vrnic_chunk_index(c, va), last, i = first;

	end = min(end, vrnic_chunk_end(c));
	last = vrnic_chunk_index(c, end - 1) + 1;
	while (i < last && READ_ONCE(c->pages[i]))
		i++;
	/* pairs with the release in chunk_fill() */
	smp_rmb();
	if (write)
		i = find_next_zero_bit(c->writable, i, first);
	if (i <= first)
		return va;
	return min(end, c->start + (i << PAGE_SHIFT));
}

/**
 * vrnic_odp_ready() - may a run use these bytes now?
 * @mr: region; the caller has a reference, and the bytes are in its bounds
 * @off: offset from the beginning of the region's first page
 * @n: bytes; set to how many from @off on may be used until the reference is put
 * @need: bytes of them without which the run can do nothing
 * @write: to write to them; else to read
 * @wait: the page that the operation waits for, if this says so: has to come back with the next try
 *
 * If some may not, the pager was asked for them.
 *
 * Return: 0, or VRNIC_VERR_FAULT: the process does not have all of the bytes that are needed.
 */
int vrnic_odp_ready(struct vrnic_mr *mr, u64 off, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait)
{
	struct vrnic_odp *odp = mr->odp;
	unsigned long begin = odp->va + off, end = begin + *n, va = begin;
	unsigned long stop = va;
	struct vrnic_chunk *c;

	if (!*n)
		return 0;
	rcu_read_lock();
	do {
		va = stop;
		c = vrnic_chunk_find(odp, va);
		if (c)
			stop = chunk_ready(c, va, end, write);
	} while (stop > va && stop < end);
	rcu_read_unlock();
	*n = stop - begin;
	if (stop == end)
		return 0;
	if (*n < need && vrnic_odp_is_bad(odp, stop, write, wait))
		return VRNIC_VERR_FAULT;
	vrnic_odp_ask(odp, stop - odp->va, end - stop, write);
	return 0;
}

/*
 * Where a run would read and write that did not ask vrnic_odp_ready(), which is a fault of this
 * driver, so that it does no harm.
 */
static u8 nowhere[PAGE_SIZE];

/**
 * vrnic_odp_run() - vrnic_seg_run() for a region with pages on demand
 * @mr: region
 * @off: offset from the beginning of the region's first page; vrnic_odp_ready() has said yes
 * @want: bytes that the caller can use
 * @len: set to the bytes at the returned address, 1 to @want
 *
 * Return: kernel address of the byte.
 */
void *vrnic_odp_run(const struct vrnic_mr *mr, u64 off, u64 want, u64 *len)
{
	unsigned long va = mr->odp->va + off, i = 0;
	struct vrnic_chunk *c = vrnic_chunk_find(mr->odp, va);
	u64 run = PAGE_SIZE - offset_in_page(va);
	void *page = NULL;

	if (c) {
		i = vrnic_chunk_index(c, va);
		page = READ_ONCE(c->pages[i]);
	}
	if (WARN_ON_ONCE(!page)) {
		*len = min(run, want);
		return nowhere + offset_in_page(va);
	}
	while (run < want && ++i < VRNIC_CHUNK_PAGES &&
	       READ_ONCE(c->pages[i]) == page + (run + offset_in_page(va)))
		run += PAGE_SIZE;
	*len = min(run, want);
	return page + offset_in_page(va);
}
