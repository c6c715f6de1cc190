/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The engine decides who runs a ring, when, and for how long. The engine does not know what is in
 * the rings.
 */
#ifndef VRNIC_ENGINE_H
#define VRNIC_ENGINE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/timex.h>
#include <linux/types.h>
#include <linux/wait.h>

struct mem_cgroup;
struct task_struct;

/**
 * struct vrnic_parcel - data that a run leaves for delivery after the run bit was given back
 * @full: there are data; only the function that makes them and the one that delivers them know them
 * @room: space for the data
 */
struct vrnic_parcel {
	bool full;
	u64 room[14];
};

/**
 * struct vrnic_budget - what one run may use up, and what it reports
 * @bytes: bytes that may be moved
 * @descs: units of other work that may be done. One unit is a descriptor that was completed, with
 *	success or not, a copy for one more target, or a request that was flushed
 * @atomic: the runner must not sleep: it is in softirq, or holds softirqs off
 * @rung: told to the run: the owner announced descriptors since the last run, or need not announce
 *	them. If false, the run may leave new descriptors to the doorbell that is about to come
 * @stream: told by the run: the process that posts would rather ring less often
 * @taken: told by the run: descriptors that were taken from the ring
 * @left: told by the run: there is more to do, and another runner is about to come for it
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

/* Use up @units of @budget's descs. */
static inline void vrnic_budget_spend(struct vrnic_budget *budget, u32 units)
{
	budget->descs -= min(budget->descs, units);
}

static inline bool vrnic_budget_left(const struct vrnic_budget *budget)
{
	return budget->descs && budget->bytes;
}

/* What is left of @budget; a caller compares two of these to see whether anything was used up. */
static inline u64 vrnic_budget_sum(const struct vrnic_budget *budget)
{
	return budget->descs + budget->bytes;
}

/*
 * A step was taken when @budget's sum was @before. Every step costs at least one unit, also a step
 * that failed, was refused or found nothing to do. So a loop on vrnic_budget_left() ends.
 */
static inline void vrnic_budget_step(struct vrnic_budget *budget, u64 before)
{
	if (vrnic_budget_sum(budget) == before)
		vrnic_budget_spend(budget, 1);
}

/* What a run of a ring found. */
enum vrnic_verdict {
	VRNIC_IDLE,	/* nothing is left to do, or the ring waits for its timer */
	VRNIC_EXPECTS,	/* the ring goes on as soon as a peer answers */
	VRNIC_MORE,	/* the budget is used up */
};

struct vrnic_runnable;

/**
 * struct vrnic_runnable_ops - what the engine does with a runnable
 * @run: do some work. One runner calls this at a time, in process context unless the budget says
 *	otherwise.
 * @stay: the runner will poll for new work from now on, so nobody need announce it. NULL: no runner
 *	ever stays
 * @leave: the runner stops polling. Work that is announced from now on is not missed; the caller
 *	looks once more for work that came before.
 * @gather: @on: from now on doorbells may be few and late; !@on: not any more. Returns whether work
 *	may have come that was not announced. Any context, but never while @run runs. NULL: every
 *	doorbell is needed
 * @atomic: may @run be called now, with softirqs held off? NULL: no
 * @deliver: deliver the parcel of a run; other runs may go on meanwhile. Called with softirqs held
 *	off; not NULL if runs leave parcels
 */
struct vrnic_runnable_ops {
	enum vrnic_verdict (*run)(struct vrnic_runnable *r,
				  struct vrnic_budget *budget);
	void (*stay)(struct vrnic_runnable *r);
	void (*leave)(struct vrnic_runnable *r);
	bool (*gather)(struct vrnic_runnable *r, bool on);
	bool (*atomic)(struct vrnic_runnable *r);
	void (*deliver)(struct vrnic_runnable *r, struct vrnic_parcel *parcel);
};

/**
 * struct vrnic_gather - one doorbell for many requests; see gather.c
 * @timer: checks whether the stream still flows
 * @calls: number of doorbells; protected by VRNIC_RUN_BUSY, and read by @timer
 * @descs: number of descriptors that the doorbells brought; protected as @calls
 * @calls_before: value of @calls when @timer last fired
 * @descs_before: value of @descs when @timer last fired
 * @us: the present period
 * @idle: periods in a row without a doorbell
 * @flowed: periods with doorbells since the gathering began
 * @streak: doorbells of a stream in a row; protected by VRNIC_RUN_BUSY
 * @patience: streak at which gathering begins; protected by VRNIC_RUN_BUSY, and written by @timer
 */
struct vrnic_gather {
	struct hrtimer timer;
	u32 calls;
	u32 descs;
	u32 calls_before;
	u32 descs_before;
	u32 us;
	u32 idle;
	u32 flowed;
	u32 streak;
	u32 patience;
};

/**
 * struct vrnic_runnable - something that the engine runs
 * @ops: what the engine does with the runnable
 * @crew: threads that run it when no caller does
 * @state: VRNIC_RUN_* bits, atomic
 * @link: in @crew's queue, or in none; protected by @crew's lock
 * @timer: queues the runnable when it fires
 * @parked: wait queue of vrnic_park(), for the end of VRNIC_RUN_BUSY
 * @brief: the present runner will soon be done, so other callers may wait for it. Not set once the
 *	runner has sent packets that must stay in order. Written by the runner
 * @after: tasklet that gives VRNIC_RUN_BUSY back when the packets that were sent have left the
 *	queues of this CPU
 * @in_order: the runner has sent packets that must stay in order: what another CPU sends may
 *	overtake them. Protected by VRNIC_RUN_BUSY, as all that follows
 * @unfinished: a thread has to go on after @after
 * @rounds: rounds of the network's softirq that @after may still wait for
 * @caller: process that rang last; only compared
 * @left: time, in cycles, when the last caller was done
 * @streak: calls in a row that came sooner after the previous call than a call takes
 * @patience: streak at which a thread takes over
 * @alone: cycles for each descriptor, posting included, when callers run the ring: a moving average
 *	over streaks; 0: not known
 * @gather: one doorbell for many requests
 *
 * A runnable has to be parked before it is freed, and freed after an RCU grace period.
 */
struct vrnic_runnable {
	const struct vrnic_runnable_ops *ops;
	struct vrnic_crew *crew;
	unsigned long state;
	struct list_head link;
	struct hrtimer timer;
	wait_queue_head_t parked;
	bool brief;
	struct tasklet_struct after;
	bool in_order;
	bool unfinished;
	u32 rounds;
	const void *caller;
	cycles_t left;
	u32 streak;
	u32 patience;
	u64 alone;
	struct vrnic_gather gather;
};

#define VRNIC_RUN_BUSY		0	/* a runner has it, or will have it */
#define VRNIC_RUN_AGAIN		1	/* there may be new work */
#define VRNIC_RUN_PARKED	2	/* must not be run */
#define VRNIC_RUN_STAY		3	/* a thread is to stay with it */
#define VRNIC_RUN_GATHER	4	/* doorbells may be late; a timer checks */
#define VRNIC_RUN_RUNG		5	/* its owner has announced work */
#define VRNIC_RUN_WAITED	6	/* a caller waits for the runner, to go on with its work */

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

void vrnic_runnable_init(struct vrnic_runnable *r, struct vrnic_crew *crew,
			 const struct vrnic_runnable_ops *ops);
void vrnic_kick(struct vrnic_runnable *r);
void vrnic_poke(struct vrnic_runnable *r, bool small);
void vrnic_queue(struct vrnic_runnable *r);
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns);
void vrnic_sends_in_order(struct vrnic_runnable *r);
void vrnic_park(struct vrnic_runnable *r);
void vrnic_unpark(struct vrnic_runnable *r);

/* Does a caller wait that will go on with @r? Then the present run of @r may end. */
static inline bool vrnic_is_waited(const struct vrnic_runnable *r)
{
	return READ_ONCE(r->brief) && test_bit(VRNIC_RUN_WAITED, &r->state);
}

/* May doorbells of @r be late? Only @r's runner asks: the gathering cannot end during a run. */
static inline bool vrnic_is_gathering(const struct vrnic_runnable *r)
{
	return test_bit(VRNIC_RUN_GATHER, &r->state);
}

void vrnic_gather_init(struct vrnic_runnable *r);
void vrnic_gather_note(struct vrnic_runnable *r, bool stream, u32 descs);
void vrnic_gather_end(struct vrnic_runnable *r);

#endif /* VRNIC_ENGINE_H */
