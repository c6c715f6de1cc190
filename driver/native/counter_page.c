// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of counters, and of the words of groups, in pieces of 64 bytes. They belong to the
 * process's context, and are kept until the context ends.
 */

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/mmap.h"
#include "native/counter.h"
#include "native/native.h"
#include "ucontext.h"

#define PAGE_CELLS	(PAGE_SIZE / sizeof(struct vrnic_counter_cell))

/**
 * struct vrnic_counter_page - a page of counters, and of the words of groups
 * @link: entry in struct vrnic_ucontext.counter_pages
 * @map: memory of the page, which the process maps
 * @used: cells in use; atomic bits
 */
struct vrnic_counter_page {
	struct list_head link;
	struct vrnic_mmap *map;
	DECLARE_BITMAP(used, PAGE_CELLS);
};

static struct vrnic_counter_page *page_new(struct vrnic_ucontext *uc)
{
	struct vrnic_counter_page *page = kzalloc(sizeof(*page),
						  GFP_KERNEL_ACCOUNT);

	if (!page)
		return NULL;
	page->map = vrnic_mmap_new(&uc->ibuc, PAGE_SIZE, true);
	if (!page->map) {
		kfree(page);
		return NULL;
	}
	list_add(&page->link, &uc->counter_pages);
	return page;
}

/* Find a page with room. Return: the page, or NULL; @i: its first free piece. */
static struct vrnic_counter_page *page_find(struct vrnic_ucontext *uc, unsigned int *i)
{
	struct vrnic_counter_page *page;

	lockdep_assert_held(&uc->counter_lock);
	list_for_each_entry(page, &uc->counter_pages, link) {
		*i = find_first_zero_bit(page->used, PAGE_CELLS);
		if (*i < PAGE_CELLS)
			return page;
	}
	return NULL;
}

/**
 * vrnic_place_get() - take 64 bytes that the process maps, in an old or a new page
 * @uc: context of the process
 * @place: filled in; the memory is zero
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_place_get(struct vrnic_ucontext *uc, struct vrnic_place *place)
{
	struct vrnic_counter_page *page;
	unsigned int i;
	int err = 0;

	mutex_lock(&uc->counter_lock);
	page = page_find(uc, &i);
	if (!page) {
		page = page_new(uc);
		i = 0;
	}
	if (page) {
		/* the page that has room becomes the first of the list */
		list_move(&page->link, &uc->counter_pages);
		set_bit(i, page->used);
		place->page = page;
		place->index = i;
		place->mem = (struct vrnic_counter_cell *)page->map->mem + i;
		memset(place->mem, 0, sizeof(struct vrnic_counter_cell));
	} else {
		err = -ENOMEM;
	}
	mutex_unlock(&uc->counter_lock);
	return err;
}

/* The page has to be there still: see vrnic_counter_pages_free(). */
void vrnic_place_put(const struct vrnic_place *place)
{
	clear_bit(place->index, place->page->used);
}

/* Return: offset of the page, for mmap(2). */
u64 vrnic_place_offset(const struct vrnic_place *place)
{
	return rdma_user_mmap_get_offset(&place->page->map->rdma);
}

/**
 * vrnic_counter_pages_free() - free the pages of a context that ends
 * @uc: context; the core has destroyed its counters
 */
void vrnic_counter_pages_free(struct vrnic_ucontext *uc)
{
	struct vrnic_counter_page *page, *next;

	if (list_empty(&uc->counter_pages))
		return;
	rcu_barrier();	/* for cell_release() (counter.c) */
	list_for_each_entry_safe(page, next, &uc->counter_pages, link) {
		rdma_user_mmap_entry_remove(&page->map->rdma);
		kfree(page);
	}
}
