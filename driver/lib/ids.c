// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Random numbers that name objects: keys, queue pairs, FIFOs, counters, types. */

#include <linux/random.h>
#include <linux/slab.h>

#include "lib/ids_find.h"

/* If half of the numbers are in use, all of so many tries fail once in 2^32 times. */
#define TRIES	32

int vrnic_ids_init(struct vrnic_ids *ids)
{
	return rhashtable_init(&ids->table, &vrnic_ids_params);
}

/* The caller has freed every number. */
void vrnic_ids_exit(struct vrnic_ids *ids)
{
	WARN_ON(atomic_read(&ids->table.nelems));
	rhashtable_destroy(&ids->table);
}

/**
 * vrnic_ids_alloc() - allocate a number for @entry
 * @ids: set
 * @entry: object that the number names
 * @gfp: flags for the allocation: they say whether a memory cgroup pays, and whether it may sleep
 * @min: smallest number
 * @max: largest number
 * @id: set to the number
 *
 * Return: 0, -ENOMEM, or -EBUSY if no free number was found.
 * Context: process context; may sleep, if @gfp allows it.
 */
int vrnic_ids_alloc(struct vrnic_ids *ids, void *entry, gfp_t gfp, u32 min, u32 max,
		    u32 *id)
{
	struct vrnic_id *new = kzalloc(sizeof(*new), gfp);
	int i, err = -EBUSY;

	if (!new)
		return -ENOMEM;
	new->entry = entry;
	for (i = 0; i < TRIES; i++) {
		new->id = min + get_random_u32() % (max - min + 1);
		err = rhashtable_lookup_insert_fast(&ids->table, &new->node,
						    vrnic_ids_params);
		if (!err) {
			*id = new->id;
			return 0;
		}
		if (err != -EEXIST)
			break;
	}
	kfree(new);
	return err == -EEXIST ? -EBUSY : err;
}

/*
 * No code finds @id from now on. Code that found it before may use it until its RCU read-side
 * critical section ends.
 */
void vrnic_ids_free(struct vrnic_ids *ids, u32 id)
{
	struct vrnic_id *old;

	rcu_read_lock();
	old = rhashtable_lookup(&ids->table, &id, vrnic_ids_params);
	if (!WARN_ON(!old) &&
	    !rhashtable_remove_fast(&ids->table, &old->node, vrnic_ids_params))
		kfree_rcu(old, rcu);
	rcu_read_unlock();
}
