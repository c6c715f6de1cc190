/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the rules of flow steering count, for ibv_read_counters(). */
#ifndef VRNIC_TALLY_H
#define VRNIC_TALLY_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <rdma/ib_verbs.h>

/**
 * struct vrnic_tally - counts of the rules that name one struct ib_counters
 * @rcu: to free it after a grace period: frames that are on their way through the rules count
 * @refs: one reference of the counters, and one of each rule
 * @frames: frames that matched
 * @bytes: their bytes, from the destination address to the end of the payload
 */
struct vrnic_tally {
	struct rcu_head rcu;
	refcount_t refs;
	atomic64_t frames;
	atomic64_t bytes;
};

struct vrnic_counters {
	struct ib_counters ibcounters;
	struct vrnic_tally *tally;
};

struct vrnic_tally *vrnic_tally_get(struct ib_counters *ibcounters);
void vrnic_tally_put(struct vrnic_tally *tally);

int vrnic_create_counters(struct ib_counters *ibcounters, struct uverbs_attr_bundle *attrs);
int vrnic_destroy_counters(struct ib_counters *ibcounters);
int vrnic_read_counters(struct ib_counters *ibcounters, struct ib_counters_read_attr *read,
			struct uverbs_attr_bundle *attrs);

#endif /* VRNIC_TALLY_H */
