/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The threads of a device, as the device and the contexts of processes use them. */
#ifndef VRNIC_THREADS_H
#define VRNIC_THREADS_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct vrnic_crew;

/**
 * struct vrnic_engine - the threads of a device
 * @own: the device's own crew: it runs what belongs to no process
 * @lock: protects @crews, and the @link and @refs of each
 * @crews: the crews of processes, also those that are about to begin or end
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
