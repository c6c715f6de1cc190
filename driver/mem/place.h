/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Small pieces of pages that a process maps: the cells of counters. */
#ifndef VRNIC_PLACE_H
#define VRNIC_PLACE_H

#include <linux/types.h>

struct vrnic_place_page;
struct vrnic_ucontext;

#define VRNIC_PLACE_BYTES	64

/**
 * struct vrnic_place - VRNIC_PLACE_BYTES of a page that the process maps
 * @page: the page
 * @index: which of its pieces
 * @mem: the memory
 */
struct vrnic_place {
	struct vrnic_place_page *page;
	u32 index;
	void *mem;
};

int vrnic_place_get(struct vrnic_ucontext *uc, bool private, struct vrnic_place *place);
void vrnic_place_put(const struct vrnic_place *place);
u64 vrnic_place_offset(const struct vrnic_place *place);
void vrnic_place_pages_free(struct vrnic_ucontext *uc);

#endif /* VRNIC_PLACE_H */
