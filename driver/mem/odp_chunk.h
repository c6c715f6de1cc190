/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The pages of a region whose pages come on demand: for mem/odp*.c only. */
#ifndef VRNIC_ODP_CHUNK_H
#define VRNIC_ODP_CHUNK_H

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "mem/odp.h"

struct ib_device;
struct ib_umem_odp;
struct vrnic_page_wait;

#define VRNIC_CHUNK_SHIFT	19
#define VRNIC_CHUNK_BYTES	BIT(VRNIC_CHUNK_SHIFT)
#define VRNIC_CHUNK_PAGES	(VRNIC_CHUNK_BYTES / PAGE_SIZE)

/**
 * struct vrnic_chunk - 512 KiB of a process's addresses, of which a region has used a page
 * @odp: the region
 * @umem: the core's part; its umem_mutex protects @present, and writes of @writable and @pages
 * @start: address of the first page
 * @present: number of entries in @pages that are set
 * @busy: page-ins that use the chunk; protected by vrnic_odp.lock
 * @filling: one page-in at a time: the core has one list of the pages that it found. No notifier
 *	waits for it, so its holder may sleep
 * @rcu: readers may look at a chunk that has no pages while it is freed
 * @writable: bit for each page: it may be written, too
 * @pages: kernel address of each page, or NULL
 */
struct vrnic_chunk {
	struct vrnic_odp *odp;
	struct ib_umem_odp *umem;
	unsigned long start;
	unsigned int present;
	unsigned int busy;
	struct mutex filling;		/* serialises page-ins */
	struct rcu_work rcu;
	DECLARE_BITMAP(writable, VRNIC_CHUNK_PAGES);
	void *pages[VRNIC_CHUNK_PAGES];
};

#define VRNIC_ODP_ASKED		32	/* page-ins of a region under way */
#define VRNIC_ODP_BAD		8
#define VRNIC_NO_PAGE		2UL	/* no address of a page, with VRNIC_TO_WRITE or without */
#define VRNIC_TO_WRITE		1UL

/**
 * struct vrnic_bad_page - a page that could not be brought in
 * @page: its address, and whether to write
 * @number: number of the page-in that has tried; 0: the entry is free
 * @at: when that was, in jiffies
 */
struct vrnic_bad_page {
	unsigned long page;
	u64 number;
	unsigned long at;
};

/**
 * struct vrnic_odp - the pages of a region
 * @refs: one of the region, one of each page-in, and one of each chunk that is being freed
 * @rcu: vrnic_odp_get_unless_gone() may look at @refs while this is freed
 * @ibdev: device
 * @mm: memory of the process that registered the region; it may be gone
 * @anchor: what the core makes chunks from
 * @lock: protects @mr and writes of the table of chunks, and serialises those who wait until nobody
 *	uses the region
 * @mr: the region; NULL when it was deregistered
 * @va: address of the region's first page in the process
 * @nr: number of entries in @table; 0: the region is implicit, and has @chunks instead
 * @table: chunks by number, from that with @va on
 * @chunks: chunks by number; read under RCU
 * @nr_chunks: number of @chunks
 * @run_lock: protects what follows
 * @asked: first page of each page-in under way, and whether to write; or VRNIC_NO_PAGE
 * @bad: pages that page-ins for runs could not bring in
 */
struct vrnic_odp {
	struct kref refs;
	struct rcu_head rcu;
	struct ib_device *ibdev;
	struct mm_struct *mm;
	struct ib_umem_odp *anchor;
	struct mutex lock;	/* protects @mr and the table of chunks; serialises drains */
	struct vrnic_mr *mr;
	unsigned long va;
	unsigned long nr;
	struct vrnic_chunk **table;
	struct xarray chunks;
	unsigned int nr_chunks;
	spinlock_t run_lock;	/* protects what follows */
	unsigned long asked[VRNIC_ODP_ASKED];
	struct vrnic_bad_page bad[VRNIC_ODP_BAD];
};

static inline unsigned long vrnic_chunk_end(const struct vrnic_chunk *c)
{
	return c->start + VRNIC_CHUNK_BYTES;
}

static inline unsigned long vrnic_chunk_index(const struct vrnic_chunk *c, unsigned long va)
{
	return (va - c->start) >> PAGE_SHIFT;
}

/* mem/odp_chunk.c */
struct vrnic_chunk *vrnic_chunk_find(struct vrnic_odp *odp, unsigned long va);
struct vrnic_chunk *vrnic_chunk_need(struct vrnic_odp *odp, unsigned long va);
void vrnic_chunk_unuse(struct vrnic_chunk *c);
int vrnic_chunk_page_in(struct vrnic_chunk *c, unsigned long start, unsigned long end,
			enum vrnic_odp_how how);
void vrnic_chunks_release(struct vrnic_odp *odp);

/* mem/odp_pager.c */
void vrnic_odp_ask(struct vrnic_odp *odp, u64 off, u64 len, bool write);
bool vrnic_odp_is_bad(struct vrnic_odp *odp, unsigned long va, bool write,
		      struct vrnic_page_wait *wait);
void vrnic_odp_queue(struct rcu_work *work);

#endif /* VRNIC_ODP_CHUNK_H */
