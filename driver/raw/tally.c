// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters of flows. */

#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "base/objects.h"
#include "raw/tally.h"
#include "vrnic.h"

static struct vrnic_counters *to_counters(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct vrnic_counters, ibcounters);
}

int vrnic_create_counters(struct ib_counters *ibcounters, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_dev *dev = to_vdev(ibcounters->device);
	struct vrnic_tally *tally;

	if (!vrnic_object_get(dev, VRNIC_OBJECT_COUNTERS, true))
		return -ENOMEM;
	tally = kzalloc(sizeof(*tally), GFP_KERNEL_ACCOUNT);
	if (!tally) {
		vrnic_object_put(dev, VRNIC_OBJECT_COUNTERS, true);
		return -ENOMEM;
	}
	refcount_set(&tally->refs, 1);
	to_counters(ibcounters)->tally = tally;
	return 0;
}

int vrnic_destroy_counters(struct ib_counters *ibcounters)
{
	vrnic_tally_put(to_counters(ibcounters)->tally);
	vrnic_object_put(to_vdev(ibcounters->device), VRNIC_OBJECT_COUNTERS, true);
	return 0;
}

/*
 * The values are in the order of enum ib_counters_description. The provider puts them where the
 * program wants them. A program that asks for fewer gets the first; for more, zeroes.
 */
int vrnic_read_counters(struct ib_counters *ibcounters, struct ib_counters_read_attr *read,
			struct uverbs_attr_bundle *attrs)
{
	const struct vrnic_tally *tally = to_counters(ibcounters)->tally;

	if (read->ncounters > IB_COUNTER_PACKETS)
		read->counters_buff[IB_COUNTER_PACKETS] = atomic64_read(&tally->frames);
	if (read->ncounters > IB_COUNTER_BYTES)
		read->counters_buff[IB_COUNTER_BYTES] = atomic64_read(&tally->bytes);
	return 0;
}

/* Get a reference on what @ibcounters counts in. The caller has a reference on @ibcounters. */
struct vrnic_tally *vrnic_tally_get(struct ib_counters *ibcounters)
{
	struct vrnic_tally *tally = to_counters(ibcounters)->tally;

	refcount_inc(&tally->refs);
	return tally;
}

void vrnic_tally_put(struct vrnic_tally *tally)
{
	if (tally && refcount_dec_and_test(&tally->refs))
		kfree_rcu(tally, rcu);
}
