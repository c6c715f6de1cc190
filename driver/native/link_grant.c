// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Grants: counters that the peer of a link may name although they are not open to all peers. They
 * are in descriptors that this end injected over the link. A grant lasts as long as its counter and
 * the link. A table that is full drops grants whose counters are gone before it grows, so a process
 * cannot make the table grow by making and destroying counters.
 */

#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "native/link.h"
#include "native/native.h"

#define SLOTS_MIN	64U
#define SLOTS_MAX	SZ_8K		/* grants_nr_live() looks at all slots in microseconds */

/* Find the slot of @id, or the empty slot for it. At least half of the slots are empty. */
static u32 *grant_slot(const struct vrnic_grants *g, u32 id)
{
	u32 i = hash_32(id, ilog2(g->size));

	while (g->slot[i] && g->slot[i] != id)
		i = (i + 1) & (g->size - 1);
	return &g->slot[i];
}

static void grants_put(struct vrnic_grants *g, u32 id)
{
	u32 *slot = grant_slot(g, id);

	g->nr += !*slot;
	*slot = id;
}

/**
 * vrnic_granted() - may the peer of a link name this counter, which is not open?
 * @link: link
 * @id: number that the peer claims; not 0
 *
 * Return: true if this end has injected a descriptor that names the counter.
 */
bool vrnic_granted(struct vrnic_link *link, u32 id)
{
	struct vrnic_grants *g = &link->grants;
	bool granted;

	spin_lock_bh(&link->lock);
	granted = g->size && *grant_slot(g, id);
	spin_unlock_bh(&link->lock);
	return granted;
}

/* Is there room for @nr more grants? The caller holds link->lock. */
static bool grants_fit(const struct vrnic_grants *g, u32 nr)
{
	return g->nr + nr <= g->size / 2;
}

static bool grant_is_live(struct vrnic_link *link, u32 id)
{
	return id && vrnic_counter_is_own(id, link->fifo->owner);
}

static u32 grants_nr_live(struct vrnic_link *link)
{
	const struct vrnic_grants *g = &link->grants;
	u32 i, nr = 0;

	for (i = 0; i < g->size; i++)
		nr += grant_is_live(link, g->slot[i]);
	return nr;
}

/* Move the grants to another table, without those whose counters are gone. */
static void grants_move(struct vrnic_link *link, struct vrnic_grants *to)
{
	struct vrnic_grants *g = &link->grants;
	u32 i;

	lockdep_assert_held(&link->lock);
	for (i = 0; i < g->size; i++)
		if (grant_is_live(link, g->slot[i]))
			grants_put(to, g->slot[i]);
	swap(*g, *to);
}

/*
 * Replace the table by one with room for @nr more grants.
 * Return: 0: look for room again; -ENOMEM or -ENOSPC: the table is unchanged.
 */
static int grants_make_room(struct vrnic_link *link, u32 nr)
{
	struct vrnic_grants new = {};
	u32 want;

	spin_lock_bh(&link->lock);
	want = grants_nr_live(link) + nr;
	spin_unlock_bh(&link->lock);
	if (want > SLOTS_MAX / 2)
		return -ENOSPC;
	new.size = clamp_t(u32, roundup_pow_of_two(4 * want), SLOTS_MIN, SLOTS_MAX);
	new.slot = kvcalloc(new.size, sizeof(*new.slot), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!new.slot)
		return -ENOMEM;
	spin_lock_bh(&link->lock);
	/* the table may have changed while the lock was not held */
	if (grants_nr_live(link) + nr <= new.size / 2)
		grants_move(link, &new);
	spin_unlock_bh(&link->lock);
	kvfree(new.slot);
	return 0;
}

/* Grant the two counters of each descriptor. Return: false if there is no room. */
static bool grants_add(struct vrnic_link *link, const struct vrnic_ndesc *d, u32 nr)
{
	struct vrnic_grants *g = &link->grants;
	u32 i;

	lockdep_assert_held(&link->lock);
	if (!grants_fit(g, 2 * nr))
		return false;
	for (i = 0; i < nr; i++) {
		if (d[i].remote_counter)
			grants_put(g, d[i].remote_counter);
		if (d[i].target_counter)
			grants_put(g, d[i].target_counter);
	}
	return true;
}

/**
 * vrnic_grant() - let the peer of a link name the counters of some descriptors
 * @link: link
 * @d: descriptors, which this end is about to inject
 * @nr: number of descriptors
 *
 * Return: 0; -ENOMEM or -ENOSPC: nothing was granted.
 */
int vrnic_grant(struct vrnic_link *link, const struct vrnic_ndesc *d, u32 nr)
{
	bool added;
	int err;

	for (;;) {
		spin_lock_bh(&link->lock);
		added = grants_add(link, d, nr);
		spin_unlock_bh(&link->lock);
		if (added)
			return 0;
		err = grants_make_room(link, 2 * nr);
		if (err)
			return err;
	}
}

void vrnic_grants_free(struct vrnic_link *link)
{
	kvfree(link->grants.slot);
	link->grants = (struct vrnic_grants){};
}
