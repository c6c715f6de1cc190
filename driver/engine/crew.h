/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The threads that share a queue: what the engine alone knows of them. */
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
 * @wanted: a runnable waits and no thread is on its way: a thread that stays with a ring is to come
 * @engine: the engine that has this crew
 * @link: in @engine's list; protected by @engine's lock, as all that follows
 * @refs: contexts whose rings this crew runs; unused in the device's own crew; 0: the threads are
 *	about to begin or end
 * @uid: user who opened the first of these contexts
 * @owner: while threads begin: the task whose cgroups they join; NULL: they stay in the root
 *	cgroups
 * @memcg: pays for what the threads allocate; NULL: nobody pays, and allocations start no I/O
 * @joined: completed when a thread has begun
 * @err: why a thread could not join the cgroups
 * @nr: number of @threads
 * @threads: the threads
 *
 * A device has a crew of its own in the root cgroups. It has others in the cgroups of processes,
 * and at the cost of these processes.
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
