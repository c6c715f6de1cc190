// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters: one array for each CPU, added up when a process reads them. */

#include "base/stats.h"
#include "vrnic.h"

/* in the order of enum vrnic_stat, which the same list makes */
#define X(sym, stat_name) { .name = stat_name },
static const struct rdma_stat_desc vrnic_stat_descs[] = { VRNIC_STATS(X) };
#undef X

/*
 * How long, in ms, the core shows values again instead of asking the driver. This spares the
 * firmware of a hardware NIC. Here it costs little to add up the counters of all CPUs, so the core
 * may ask again in the next jiffy.
 */
#define LIFESPAN_MS	0

struct rdma_hw_stats *vrnic_alloc_hw_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(vrnic_stat_descs,
					  ARRAY_SIZE(vrnic_stat_descs), LIFESPAN_MS);
}

/* The sum of a counter over all CPUs. The CPUs may be counting meanwhile. */
u64 vrnic_stat_sum(const struct vrnic_dev *dev, enum vrnic_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(dev->stats, cpu)->count[stat];
	return sum;
}
