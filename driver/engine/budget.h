/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a run may use up, and what it leaves behind. */
#ifndef VRNIC_BUDGET_H
#define VRNIC_BUDGET_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct vrnic_parcel - data that a run leaves for delivery after the run bit was given back
 * @full: there are data; only the function that makes them and the one that delivers them know them
 * @room: space for the data
 */
struct vrnic_parcel {
	bool full;
	u64 room[14];
};

/**
 * struct vrnic_budget - what one run may use up, and what it reports
 * @bytes: bytes that may be moved
 * @descs: units of other work that may be done. One unit is a descriptor that was completed, with
 *	success or not, a copy for one more target, or a request that was flushed
 * @atomic: the runner must not sleep: it is in softirq, or holds softirqs off
 * @rung: told to the run: the owner announced descriptors since the last run, or need not announce
 *	them. If false, the run may leave new descriptors to the doorbell that is about to come
 * @stream: told by the run: the process that posts would rather ring less often
 * @taken: told by the run: descriptors that were taken from the ring
 * @left: told by the run: there is more to do, and another runner is about to come for it
 * @parcel: filled by the run if @atomic is set
 */
struct vrnic_budget {
	u64 bytes;
	u32 descs;
	bool atomic;
	bool rung;
	bool stream;
	u32 taken;
	bool left;
	struct vrnic_parcel parcel;
};

/* Use up @units of @budget's descs. */
static inline void vrnic_budget_spend(struct vrnic_budget *budget, u32 units)
{
	budget->descs -= min(budget->descs, units);
}

static inline bool vrnic_budget_left(const struct vrnic_budget *budget)
{
	return budget->descs && budget->bytes;
}

/* What is left of @budget; a caller compares two of these to see whether anything was used up. */
static inline u64 vrnic_budget_sum(const struct vrnic_budget *budget)
{
	return budget->descs + budget->bytes;
}

/*
 * A step was taken when @budget's sum was @before. Every step costs at least one unit, also a step
 * that failed, was refused or found nothing to do. So a loop on vrnic_budget_left() ends.
 */
static inline void vrnic_budget_step(struct vrnic_budget *budget, u64 before)
{
	if (vrnic_budget_sum(budget) == before)
		vrnic_budget_spend(budget, 1);
}

#endif /* VRNIC_BUDGET_H */
