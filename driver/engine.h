/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The engine: who runs a ring, when, and for how long. It knows nothing of what
 * is in the rings.
 */
#ifndef VRNIC_ENGINE_H
#define VRNIC_ENGINE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

struct task_struct;

/* What one run of a ring may use up before others get their turn. */
struct vrnic_budget {
	u64 bytes;
	u32 descs;
};

/* What a run of a ring found. */
enum vrnic_verdict {
	VRNIC_IDLE,	/* nothing left to do, or it waits for its timer */
	VRNIC_MORE,	/* the budget is used up */
};

/**
 * struct vrnic_runnable - something that the engine runs; to be parked before
 * it is freed, and freed after an RCU grace period
 * @run: do some work. Called in process context, by one runner at a time.
 * @runner: the thread that runs it when no caller does
 * @state: VRNIC_RUN_* bits, atomic
 * @link: in @runner's list while queued; protected by @runner's lock
 * @timer: queues it when it fires
 * @parked: waits for @state to lose VRNIC_RUN_BUSY
 */
struct vrnic_runnable {
	enum vrnic_verdict (*run)(struct vrnic_runnable *r,
				  struct vrnic_budget *budget);
	struct vrnic_runner *runner;
	unsigned long state;
	struct list_head link;
	struct hrtimer timer;
	wait_queue_head_t parked;
};

#define VRNIC_RUN_BUSY		0	/* a runner has it, or will have it */
#define VRNIC_RUN_AGAIN		1	/* there may be new work */
#define VRNIC_RUN_PARKED	2	/* must not be run */

/**
 * struct vrnic_runner - an engine thread
 * @task: the thread
 * @lock: protects @queue
 * @queue: runnables that wait for their turn
 */
struct vrnic_runner {
	struct task_struct *task;
	spinlock_t lock;	/* protects @queue */
	struct list_head queue;
};

/**
 * struct vrnic_engine - the threads of a device
 * @nr: how many there are
 * @next: the one that the next runnable gets, modulo @nr
 * @runners: the threads
 */
struct vrnic_engine {
	unsigned int nr;
	atomic_t next;
	struct vrnic_runner *runners;
};

int vrnic_engine_start(struct vrnic_engine *engine, const char *name);
void vrnic_engine_stop(struct vrnic_engine *engine);

void vrnic_runnable_init(struct vrnic_runnable *r, struct vrnic_engine *engine,
			 enum vrnic_verdict (*run)(struct vrnic_runnable *,
						   struct vrnic_budget *));
void vrnic_kick(struct vrnic_runnable *r);
void vrnic_queue(struct vrnic_runnable *r);
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns);
void vrnic_park(struct vrnic_runnable *r);
void vrnic_unpark(struct vrnic_runnable *r);

#endif /* VRNIC_ENGINE_H */
