// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How many CPUs this thread, and threads that it starts, may use. */

#include "vrnic.h"

/* sched_getaffinity() fails if the kernel has more CPUs than fit into @cpus: that is not one. */
bool vrnic_has_one_cpu(void)
{
	cpu_set_t cpus;

	return !sched_getaffinity(0, sizeof(cpus), &cpus) &&
	       CPU_COUNT(&cpus) == 1;
}
