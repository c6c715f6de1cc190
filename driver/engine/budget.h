/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What one run of a ring may use up, and what it reports to the engine. */
#ifndef VRNIC_BUDGET_H
#define VRNIC_BUDGET_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct vrnic_parcel - an acknowledgment that a run leaves, to be sent without the run bit held
 * @full: @room has something to deliver
 * @room: data that only the ring's owner knows: its run() writes them, its deliver() reads them
 */
struct vrnic_parcel {
	bool full;
	u64 room[14];
};

/**
 * struct vrnic_budget - what one run may use up, and what it reports
 * @bytes: bytes that may be moved
 * @descs: units of other work that may be done. One unit is a descriptor that was completed, with
 *	success or not, a datagram's copy for one more group member, or a request that was flushed
 * @atomic: the runner must not sleep: it is in softirq, or holds softirqs off
 * @rung: set by the engine: the owner announced descriptors since the last run, or need not
 *	announce them. If false, the run may leave new ones to the doorbell that is about to come
 * @stream: set by the run: the process posts a stream, and prefers one doorbell for many requests
 * @taken: counted by the run: descriptors that it fetched from the ring
 * @left: set by the run: it left work to the process or softirq that waits to run the ring next
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

/* Use up @units of @budget's descs, or all that are left. */
static inline void vrnic_budget_spend(struct vrnic_budget *budget, u32 units)
{
	budget->descs -= min(budget->descs, units);
}

static inline bool vrnic_budget_left(const struct vrnic_budget *budget)
{
	return budget->descs && budget->bytes;
}

/* A number that falls whenever bytes or descs are used up, for vrnic_budget_step(). */
static inline u64 vrnic_budget_sum(const struct vrnic_budget *budget)
{
	return budget->descs + budget->bytes;
}

/*
 * Account for a step of a run that began when the sum was @before. Every step costs at least one
 * unit, also one that failed or found nothing to do. So a loop on vrnic_budget_left() ends.
 */
static inline void vrnic_budget_step(struct vrnic_budget *budget, u64 before)
{
	if (vrnic_budget_sum(budget) == before)
		vrnic_budget_spend(budget, 1);
}

#endif /* VRNIC_BUDGET_H */
