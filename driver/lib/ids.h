/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Numbers that name objects. They are random, so that no process can predict the next one. A
 * look-up takes a few instructions under RCU, however many numbers there are. (That of an xarray
 * costs four times as much, if numbers are spread over 24 bits.)
 */
#ifndef VRNIC_IDS_H
#define VRNIC_IDS_H

#include <linux/gfp_types.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>

/**
 * struct vrnic_ids - a set of numbers
 * @table: struct vrnic_id by number
 */
struct vrnic_ids {
	struct rhashtable table;
};

int vrnic_ids_init(struct vrnic_ids *ids);
void vrnic_ids_exit(struct vrnic_ids *ids);
int vrnic_ids_alloc(struct vrnic_ids *ids, void *entry, gfp_t gfp, u32 min, u32 max, u32 *id);
void vrnic_ids_free(struct vrnic_ids *ids, u32 id);

#endif /* VRNIC_IDS_H */
