/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Crews: threads that share one queue. Only the files in engine/ use this header. */
#ifndef VRNIC_CREW_H
#define VRNIC_CREW_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct mem_cgroup;
struct task_struct;
struct vrnic_engine;

/**
 * struct vrnic_thread - an engine thread
 * @crew: the crew that has this thread
 * @task: the thread
 * @idle: in @crew's list while the thread sleeps and has not been woken; protected by @crew's lock
 */
struct vrnic_thread {
	struct vrnic_crew *crew;
	struct task_struct *task;
	struct list_head idle;
};

/**
 * struct vrnic_crew - threads that share one queue
 * @lock: protects what follows, down to @wanted
 * @queue: runnables that wait for their turn
 * @idle: threads that sleep
 * @wanted: @queue has a runnable and no thread is idle: one that stays with a ring has to leave it
 * @engine: the engine that has this crew
 * @link: in @engine's list; @engine's lock protects this and @refs
 * @refs: contexts whose rings this crew runs; unused in the device's own crew; 0: the threads are
 *	about to begin or end, so no context may find the crew
 * @uid: user who opened the first of these contexts
 * @owner: while the threads begin: the task whose cgroups they join; NULL: they stay in the root
 *	cgroups
 * @memcg: memory cgroup that is charged for allocations of the threads; NULL: none
 * @joined: completed by each thread when it has joined the cgroups
 * @err: why the last thread could not join the cgroups; 0: it did
 * @nr: number of @threads
 * @threads: the threads
 *
 * A device has its own crew in the root cgroups, and one in each other set of cgroups in which a
 * process has a context.
 */
struct vrnic_crew {
	spinlock_t lock;	/* protects what follows, down to @wanted */
	struct list_head queue;
	struct list_head idle;
	bool wanted;
	struct vrnic_engine *engine;
	struct list_head link;
	unsigned int refs;
	kuid_t uid;
	struct task_struct *owner;
	struct mem_cgroup *memcg;
	struct completion joined;
	int err;
	unsigned int nr;
	struct vrnic_thread threads[];
};

#define VRNIC_MAX_CREWS		1024	/* crews of users' contexts, for each device */
#define VRNIC_MAX_USER_CREWS	128	/* crews of one user, except root */

#endif /* VRNIC_CREW_H */
