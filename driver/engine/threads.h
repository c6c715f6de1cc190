/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The engine's threads: a device starts and ends them, a context gets a crew for its rings. */
#ifndef VRNIC_THREADS_H
#define VRNIC_THREADS_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct vrnic_crew;

/**
 * struct vrnic_engine - the threads of a device, in crews (engine/crew.h)
 * @own: the device's own crew, for work of no process and for processes in the root cgroups
 * @lock: protects @crews, and the @link and @refs of each
 * @crews: the crews in other cgroups, also those whose threads are about to begin or end
 * @threads: number of threads in each crew
 * @name: name of the device, for the names of the threads
 */
struct vrnic_engine {
	struct vrnic_crew *own;
	spinlock_t lock;	/* protects @crews, and the @link and @refs of each */
	struct list_head crews;
	unsigned int threads;
	char name[24];
};

unsigned int vrnic_engine_threads(void);
int vrnic_engine_start(struct vrnic_engine *engine, const char *name, unsigned int threads);
void vrnic_engine_stop(struct vrnic_engine *engine);
struct vrnic_crew *vrnic_crew_get(struct vrnic_engine *engine);
void vrnic_crew_put(struct vrnic_crew *crew);

#endif /* VRNIC_THREADS_H */
