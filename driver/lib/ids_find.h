/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Finding an object by its number, in a few instructions. */
#ifndef VRNIC_IDS_FIND_H
#define VRNIC_IDS_FIND_H

#include <linux/rhashtable.h>
#include <linux/swab.h>
#include <linux/types.h>

#include "lib/ids.h"

/**
 * struct vrnic_id - a number in use
 * @node: in struct vrnic_ids.table
 * @id: the number
 * @entry: object that the number names; may have a tag in its low bits
 * @rcu: for kfree_rcu()
 */
struct vrnic_id {
	struct rhash_head node;
	u32 id;
	void *entry;
	struct rcu_head rcu;
};

/*
 * The numbers are random, but a user may make many objects, and keep those whose numbers fall into
 * one bucket. So the hash has a secret seed, and when a bucket is too full, rhashtable rehashes the
 * table with a new seed. The high bits of a product depend on most bits of the number, but the
 * table uses the low bits of the hash, so the bytes are swapped.
 */
static inline u32 vrnic_id_hash(const void *key, u32 len, u32 seed)
{
	return swab32(*(const u32 *)key * (seed | 1));
}

static inline int vrnic_id_cmp(struct rhashtable_compare_arg *arg,
			       const void *obj)
{
	return ((const struct vrnic_id *)obj)->id != *(const u32 *)arg->key;
}

static const struct rhashtable_params vrnic_ids_params = {
	.key_len = sizeof(u32),
	.key_offset = offsetof(struct vrnic_id, id),
	.head_offset = offsetof(struct vrnic_id, node),
	.hashfn = vrnic_id_hash,
	.obj_cmpfn = vrnic_id_cmp,
	.automatic_shrinking = true,
};

/**
 * vrnic_ids_find() - find the object that a number names
 * @ids: set
 * @id: number that a user or a peer claims
 *
 * Return: object or NULL.
 * Context: RCU read-side critical section.
 */
static inline void *vrnic_ids_find(struct vrnic_ids *ids, u32 id)
{
	struct vrnic_id *found;

	found = rhashtable_lookup(&ids->table, &id, vrnic_ids_params);
	return found ? found->entry : NULL;
}

#endif /* VRNIC_IDS_FIND_H */
