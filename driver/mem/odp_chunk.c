// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The pages of a region whose pages come on demand: how they come into its tables, and how the
 * kernel takes them out again. mem/odp.c tells who may use them.
 */

#include <linux/bitops.h>
#include <linux/mmu_notifier.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "compat/umem_odp.h"
#include "mem/mem.h"
#include "mem/odp_chunk.h"
#include "vrnic.h"

#define MAX_CHUNKS	BIT(20)		/* of an implicit region: 512 GiB */

/*
 * Let nobody use the region's memory. Runs that find it closed try again later. Return: the region
 * to open again, or NULL if it was deregistered.
 */
static struct vrnic_mr *drain(struct vrnic_odp *odp)
{
	lockdep_assert_held(&odp->lock);
	if (odp->mr)
		vrnic_mr_drain(odp->mr);
	return odp->mr;
}

/* Take the pages of [@start, @end) out of the table. Nobody uses the region. */
static void chunk_clear(struct vrnic_chunk *c, unsigned long start, unsigned long end)
{
	unsigned long i, first = vrnic_chunk_index(c, start);

	lockdep_assert_held(&c->umem->umem_mutex);
	for (i = first; i < first + ((end - start) >> PAGE_SHIFT); i++) {
		if (!c->pages[i])
			continue;
		/* peers may have written to it, and the process's page table does not tell so */
		if (test_and_clear_bit(i, c->writable))
			set_page_dirty(compound_head(virt_to_page(c->pages[i])));
		WRITE_ONCE(c->pages[i], NULL);
		c->present--;
	}
	vrnic_umem_odp_unmap(c->umem, start, end);
}

static bool chunk_has(struct vrnic_chunk *c, unsigned long start, unsigned long end)
{
	unsigned long i, first = vrnic_chunk_index(c, start);

	lockdep_assert_held(&c->umem->umem_mutex);
	for (i = first; c->present && i < first + ((end - start) >> PAGE_SHIFT); i++)
		if (c->pages[i])
			return true;
	return false;
}

/*
 * No page-in that began before this may enter its pages into the table. Return: does the table have
 * pages of the range?
 */
static bool begin_invalidate(struct ib_umem_odp *umem, struct vrnic_chunk *c, unsigned long start,
			     unsigned long end, unsigned long seq)
{
	bool has;

	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(&umem->notifier, seq);
	has = c && chunk_has(c, start, end);
	mutex_unlock(&umem->umem_mutex);
	return has;
}

static void free_unused(struct vrnic_chunk *c);

/* Memory of the process is about to change. May be called before chunk_new() is done. */
static bool invalidate(struct mmu_interval_notifier *mni, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	/* pairs with the release in chunk_new() */
	struct vrnic_chunk *c = smp_load_acquire(&umem->private);
	unsigned long start = max_t(u64, ib_umem_start(umem), range->start);
	unsigned long end = min_t(u64, ib_umem_end(umem), range->end);
	struct vrnic_mr *mr;

	if (!mmu_notifier_range_blockable(range))
		return false;
	if (!c) {
		begin_invalidate(umem, NULL, start, end, seq);
		return true;
	}
	mutex_lock(&c->odp->lock);
	if (begin_invalidate(umem, c, start, end, seq)) {
		vrnic_count(to_vdev(c->odp->ibdev), ODP_INVALIDATIONS);
		mr = drain(c->odp);
		mutex_lock(&umem->umem_mutex);
		chunk_clear(c, start, end);
		mutex_unlock(&umem->umem_mutex);
		if (mr)
			vrnic_mr_reopen(mr);
	}
	if (range->event == MMU_NOTIFY_UNMAP)
		free_unused(c);
	mutex_unlock(&c->odp->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

static struct vrnic_chunk *chunk_new(struct vrnic_odp *odp, unsigned long start)
{
	struct ib_umem_odp *umem;
	struct vrnic_chunk *c;

	c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return ERR_PTR(-ENOMEM);
	c->odp = odp;
	c->start = start;
	mutex_init(&c->filling);
	umem = vrnic_umem_odp_child(odp->anchor, start, VRNIC_CHUNK_BYTES, &notifier_ops);
	if (IS_ERR(umem)) {
		kfree(c);
		return ERR_CAST(umem);
	}
	c->umem = umem;
	/* pairs with the acquire in invalidate() */
	smp_store_release(&umem->private, (void *)c);
	return c;
}

/* Free a chunk that no reader finds. Waits for invalidate(), so the caller holds no lock of its. */
static void chunk_release(struct vrnic_chunk *c)
{
	mutex_lock(&c->umem->umem_mutex);
	chunk_clear(c, c->start, vrnic_chunk_end(c));
	mutex_unlock(&c->umem->umem_mutex);
	ib_umem_odp_release(c->umem);
	mutex_destroy(&c->filling);
	kfree(c);
}

/* Number of the chunk in @odp->table. */
static unsigned long table_index(const struct vrnic_odp *odp, unsigned long va)
{
	return (va >> VRNIC_CHUNK_SHIFT) - (odp->va >> VRNIC_CHUNK_SHIFT);
}

/**
 * vrnic_chunk_find() - find the chunk with an address
 * @odp: pages of the region
 * @va: address, in the region
 *
 * Context: an RCU read-side critical section, in which the chunk may be used; or the caller has a
 * reference on the region, and uses pages that are in the table.
 * Return: the chunk, or NULL.
 */
struct vrnic_chunk *vrnic_chunk_find(struct vrnic_odp *odp, unsigned long va)
{
	if (!odp->nr)
		return xa_load(&odp->chunks, va >> VRNIC_CHUNK_SHIFT);
	/* pairs with the release in chunk_store() */
	return smp_load_acquire(&odp->table[table_index(odp, va)]);
}

/* Caller holds odp->lock; the entry is reserved if there is no table. Return: 0 or -ENOMEM. */
static int chunk_store(struct vrnic_odp *odp, unsigned long va, struct vrnic_chunk *c)
{
	lockdep_assert_held(&odp->lock);
	if (odp->nr) {
		/* pairs with the acquire in vrnic_chunk_find() */
		smp_store_release(&odp->table[table_index(odp, va)], c);
		return 0;
	}
	if (!c) {
		xa_erase(&odp->chunks, va >> VRNIC_CHUNK_SHIFT);
		odp->nr_chunks--;
		return 0;
	}
	/* fails if another task has used and freed the reserved entry, and there is no memory */
	if (xa_is_err(xa_store(&odp->chunks, va >> VRNIC_CHUNK_SHIFT, c, GFP_NOWAIT)))
		return -ENOMEM;
	odp->nr_chunks++;
	return 0;
}

/* The chunk was taken out of the region, a grace period ago. */
static void chunk_unused(struct work_struct *work)
{
	struct vrnic_chunk *c = container_of(to_rcu_work(work), struct vrnic_chunk, rcu);
	struct vrnic_odp *odp = c->odp;
	struct ib_device *ibdev = odp->ibdev;

	chunk_release(c);
	vrnic_odp_put(odp);
	ib_device_put(ibdev);
}

/*
 * Free a chunk if it has no pages, and no page-in uses it. The chunk's notifier may call this, so
 * the chunk itself ends in a work.
 */
static void free_unused(struct vrnic_chunk *c)
{
	struct vrnic_odp *odp = c->odp;

	lockdep_assert_held(&odp->lock);
	/* a region that was deregistered frees its chunks in vrnic_chunks_release() */
	if (!odp->mr || c->present || c->busy || vrnic_chunk_find(odp, c->start) != c ||
	    !ib_device_try_get(odp->ibdev))
		return;
	chunk_store(odp, c->start, NULL);
	kref_get(&odp->refs);
	INIT_RCU_WORK(&c->rcu, chunk_unused);
	vrnic_odp_queue(&c->rcu);
}

/* Free all chunks of a region that is not used any more. */
void vrnic_chunks_release(struct vrnic_odp *odp)
{
	struct vrnic_chunk *c;
	unsigned long i;

	for (i = 0; i < odp->nr; i++) {
		if (odp->table[i])
			chunk_release(odp->table[i]);
		cond_resched();
	}
	xa_for_each(&odp->chunks, i, c) {
		chunk_release(c);
		cond_resched();
	}
	xa_destroy(&odp->chunks);
	kvfree(odp->table);
}

/* Find the chunk with @va, and keep it from being freed. Return: NULL if there is none. */
static struct vrnic_chunk *chunk_use(struct vrnic_odp *odp, unsigned long va)
{
	struct vrnic_chunk *c;

	mutex_lock(&odp->lock);
	c = vrnic_chunk_find(odp, va);
	if (c)
		c->busy++;
	mutex_unlock(&odp->lock);
	return c;
}

/**
 * vrnic_chunk_unuse() - a page-in is done with a chunk
 * @c: chunk, from vrnic_chunk_need(). It is freed if it is empty
 */
void vrnic_chunk_unuse(struct vrnic_chunk *c)
{
	struct vrnic_odp *odp = c->odp;

	mutex_lock(&odp->lock);
	c->busy--;
	free_unused(c);
	mutex_unlock(&odp->lock);
}

/* Add a new chunk, in use. Return: it, or the one that is there already, or an error pointer. */
static struct vrnic_chunk *chunk_add(struct vrnic_odp *odp, struct vrnic_chunk *new)
{
	struct vrnic_chunk *c;
	int err = 0;

	mutex_lock(&odp->lock);
	c = vrnic_chunk_find(odp, new->start);
	if (!c) {
		c = new;
		err = chunk_store(odp, new->start, new);
	}
	if (!err)
		c->busy++;
	mutex_unlock(&odp->lock);
	return err ? ERR_PTR(err) : c;
}

/**
 * vrnic_chunk_need() - find the chunk with an address, or make it
 * @odp: pages of the region
 * @va: address, in the region
 *
 * Return: the chunk, in use, or an error pointer.
 * Context: may sleep.
 */
struct vrnic_chunk *vrnic_chunk_need(struct vrnic_odp *odp, unsigned long va)
{
	struct vrnic_chunk *c = chunk_use(odp, va), *new;
	int err;

	if (c)
		return c;
	if (READ_ONCE(odp->nr_chunks) >= MAX_CHUNKS)
		return ERR_PTR(-EOVERFLOW);
	new = chunk_new(odp, va & ~(VRNIC_CHUNK_BYTES - 1));
	if (IS_ERR(new))
		return new;
	err = odp->nr ? 0 : xa_reserve(&odp->chunks, va >> VRNIC_CHUNK_SHIFT, GFP_KERNEL_ACCOUNT);
	if (err) {
		chunk_release(new);
		return ERR_PTR(err);
	}
	c = chunk_add(odp, new);
	if (c != new)
		chunk_release(new);
	return c;
}

/*
 * Is the page in the kernel's own page table? memfd_secret() takes its pages out of there, and
 * unlike pinning, the core's look-up does not refuse them.
 */
static bool is_mapped(const void *page)
{
	u8 byte;

	return !copy_from_kernel_nofault(&byte, page, sizeof(byte));
}

/*
 * Enter the pages of [@start, @end) into the table, as far as the core has them. What does not come
 * into the table does not stay with the core either: invalidate() looks at the table alone. Return:
 * 0, or -EFAULT: there is one that nobody may use.
 */
static int chunk_fill(struct vrnic_chunk *c, unsigned long start, unsigned long end)
{
	unsigned long i, pfn, va, first = vrnic_chunk_index(c, start);
	void *page;
	int ret = 0;

	lockdep_assert_held(&c->umem->umem_mutex);
	for (i = first; i < first + ((end - start) >> PAGE_SHIFT); i++) {
		pfn = vrnic_umem_odp_pfn(c->umem, i);
		if (!(pfn & HMM_PFN_VALID))
			continue;
		page = page_address(hmm_pfn_to_page(pfn));
		if (c->pages[i] != page && !is_mapped(page)) {
			va = start + ((i - first) << PAGE_SHIFT);
			vrnic_umem_odp_unmap(c->umem, va, va + PAGE_SIZE);
			ret = -EFAULT;
			continue;
		}
		if (pfn & HMM_PFN_WRITE)
			set_bit(i, c->writable);
		c->present += !c->pages[i];
		/* pairs with the barrier in chunk_ready(), which then looks at @writable */
		smp_store_release(&c->pages[i], page);
	}
	return ret;
}

/**
 * vrnic_chunk_page_in() - bring pages of a chunk in
 * @c: chunk, in use
 * @start: address of the first page
 * @end: address behind the last page
 * @how: for what
 *
 * Return: 0 or a negative errno.
 * Context: may sleep for long.
 */
int vrnic_chunk_page_in(struct vrnic_chunk *c, unsigned long start, unsigned long end,
			enum vrnic_odp_how how)
{
	int ret;

	mutex_lock(&c->filling);
	ret = vrnic_umem_odp_map_and_lock(c->umem, start, end - start,
					  vrnic_umem_odp_access(how == VRNIC_ODP_WRITE),
					  how != VRNIC_ODP_SNAPSHOT);
	if (ret >= 0) {
		ret = chunk_fill(c, start, end);
		mutex_unlock(&c->umem->umem_mutex);
	}
	mutex_unlock(&c->filling);
	return ret;
}
