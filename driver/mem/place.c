// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of which a process maps small pieces: counters, and the words of their groups. They belong
 * to the process's context, and are kept until the context ends.
 */

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/mmap.h"
#include "mem/place.h"
#include "ucontext.h"

#define PAGE_PLACES	(PAGE_SIZE / VRNIC_PLACE_BYTES)

/**
 * struct vrnic_place_page - a page of pieces
 * @link: entry in struct vrnic_ucontext.place_pages
 * @map: memory of the page, which the process maps
 * @used: pieces in use; atomic bits
 */
struct vrnic_place_page {
	struct list_head link;
	struct vrnic_mmap *map;
	DECLARE_BITMAP(used, PAGE_PLACES);
};

static struct vrnic_place_page *page_new(struct vrnic_ucontext *uc, bool private)
{
	struct vrnic_place_page *page = kzalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);

	if (!page)
		return NULL;
	page->map = vrnic_mmap_new(&uc->ibuc, PAGE_SIZE, private);
	if (!page->map) {
		kfree(page);
		return NULL;
	}
	list_add(&page->link, &uc->place_pages);
	return page;
}

/* Find a page with room. Return: the page, or NULL; @i: its first free piece. */
static struct vrnic_place_page *page_find(struct vrnic_ucontext *uc, bool private,
					  unsigned int *i)
{
	struct vrnic_place_page *page;

	lockdep_assert_held(&uc->place_lock);
	list_for_each_entry(page, &uc->place_pages, link) {
		if (page->map->private != private)
			continue;
		*i = find_first_zero_bit(page->used, PAGE_PLACES);
		if (*i < PAGE_PLACES)
			return page;
	}
	return NULL;
}

/**
 * vrnic_place_get() - take a piece of memory that the process maps, in an old or a new page
 * @uc: context of the process
 * @private: struct vrnic_mmap.private of the page
 * @place: filled in; the memory is zero
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_place_get(struct vrnic_ucontext *uc, bool private, struct vrnic_place *place)
{
	struct vrnic_place_page *page;
	unsigned int i;
	int err = 0;

	mutex_lock(&uc->place_lock);
	page = page_find(uc, private, &i);
	if (!page) {
		page = page_new(uc, private);
		i = 0;
	}
	if (page) {
		/* the page that has room becomes the first of the list */
		list_move(&page->link, &uc->place_pages);
		set_bit(i, page->used);
		place->page = page;
		place->index = i;
		place->mem = page->map->mem + i * VRNIC_PLACE_BYTES;
		memset(place->mem, 0, VRNIC_PLACE_BYTES);
	} else {
		err = -ENOMEM;
	}
	mutex_unlock(&uc->place_lock);
	return err;
}

/* The page has to be there still: see vrnic_place_pages_free(). */
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
 * vrnic_place_pages_free() - free the pages of a context that ends
 * @uc: context; the core has destroyed its counters
 */
void vrnic_place_pages_free(struct vrnic_ucontext *uc)
{
	struct vrnic_place_page *page, *next;

	if (list_empty(&uc->place_pages))
		return;
	rcu_barrier();	/* for cell_release() in native/counter.c, which puts places */
	list_for_each_entry_safe(page, next, &uc->place_pages, link) {
		rdma_user_mmap_entry_remove(&page->map->rdma);
		kfree(page);
	}
}
