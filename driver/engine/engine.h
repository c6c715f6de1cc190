/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The engine: who runs a ring, when, and for how long. It knows nothing of what
 * is in the rings.
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
 * struct vrnic_parcel - what a run leaves to be delivered when another one may come
 * @full: there is something; only its maker and its deliverer know what
 * @room: for that
 */
struct vrnic_parcel {
	bool full;
	u64 room[14];
};

/**
 * struct vrnic_budget - what a runner may use up before others get their turn, and what
 *	a run of its has to tell
 * @bytes: to be moved
 * @descs: units of other work: a descriptor that was completed, whatever became of it,
 *	a copy for one more target, a request that was flushed
 * @atomic: the runner is in softirq, or holds softirqs off: must not sleep
 * @rung: told to the run: its owner announced descriptors since the last one, or need
 *	not announce them. If not, those that are new may be left to who is about to
 * @stream: told by the run: who posts would rather ring less often
 * @taken: told by the run: descriptors that were taken from the ring
 * @left: told by the run: there is more to do, for which somebody else is on his way
 * @parcel: filled by the run, if @atomic
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

/* What is left in all, to see whether anything was used up. */
static inline u64 vrnic_budget_sum(const struct vrnic_budget *budget)
{
	return budget->descs + budget->bytes;
}

/*
 * A step was taken when @budget's sum was @before. Nothing is for nothing: what failed,
 * was refused, or found that there was nothing to do is a unit of work, too. So who
 * loops while vrnic_budget_left() comes to an end.
 */
static inline void vrnic_budget_step(struct vrnic_budget *budget, u64 before)
{
	if (vrnic_budget_sum(budget) == before)
		vrnic_budget_spend(budget, 1);
}

/* What a run of a ring found. */
enum vrnic_verdict {
	VRNIC_IDLE,	/* nothing left to do, or it waits for its timer */
	VRNIC_EXPECTS,	/* it goes on as soon as a peer answers */
	VRNIC_MORE,	/* the budget is used up */
};

struct vrnic_runnable;

/**
 * struct vrnic_runnable_ops - what the engine does with a runnable
 * @run: do some work. Called by one runner at a time, in process context unless
 *	the budget says otherwise.
 * @stay: the runner will look for new work all the while: nobody need call it.
 *	NULL: it never stays
 * @leave: it will not any more. What is announced from then on is not missed;
 *	what came in before is looked for once more.
 * @gather: from now on, calls may be few, and late; or they may not any more.
 *	Returns whether something may have come in that was not announced. In any
 *	context, but not beside @run. NULL: every call is needed
 * @atomic: may it be run with softirqs held off, as it is now? NULL: no
 * @deliver: see to the parcel of a run, beside other runs. With softirqs held off;
 *	not NULL if runs leave any
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
 * @timer: looks whether the stream still flows
 * @calls: doorbells, and @descs: descriptors that they brought; protected by
 *	VRNIC_RUN_BUSY, and read by @timer
 * @calls_before: what @timer saw when it last fired, and so @descs_before
 * @us: the present period
 * @idle: periods in a row without a doorbell
 * @flowed: periods with doorbells since it began
 * @streak: doorbells of a stream, in a row; as what follows, protected by
 *	VRNIC_RUN_BUSY
 * @patience: streak at which gathering begins; written by @timer
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
 * struct vrnic_runnable - something that the engine runs; to be parked before
 * it is freed, and freed after an RCU grace period
 * @ops: what to do with it
 * @crew: the threads that run it when no caller does
 * @state: VRNIC_RUN_* bits, atomic
 * @link: in @crew's queue, or in none; protected by @crew's lock
 * @timer: queues it when it fires
 * @parked: waits for @state to lose VRNIC_RUN_BUSY
 * @brief: its runner will soon be done, and has sent nothing that must not be
 *	overtaken: written by that, read by who may wait
 * @after: gives VRNIC_RUN_BUSY back when what was sent has left its CPU's queues
 * @in_order: its runner has sent what must not be overtaken; as what follows, protected
 *	by VRNIC_RUN_BUSY
 * @unfinished: a thread has to go on, after that
 * @rounds: times that the network's softirq may go on before that
 * @caller: process that rang last, to be compared only
 * @left: when the last caller left it, in cycles
 * @streak: callers in a row that came back faster than they were served
 * @patience: streak at which a thread takes over
 * @alone: cycles per descriptor, posting included, when callers drive: a moving
 *	average over streaks; 0: not known
 * @gather: how doorbells are saved
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
#define VRNIC_RUN_STAY		3	/* the thread is to stay with it */
#define VRNIC_RUN_GATHER	4	/* doorbells may be late; a timer looks */
#define VRNIC_RUN_RUNG		5	/* its owner has announced work */
#define VRNIC_RUN_WAITED	6	/* somebody waits for its runner, to go on from there */

/**
 * struct vrnic_thread - an engine thread
 * @crew: that it is one of
 * @task: the thread
 * @idle: in @crew's list while it sleeps and nobody has called it; protected by @crew's
 *	lock
 */
struct vrnic_thread {
	struct vrnic_crew *crew;
	struct task_struct *task;
	struct list_head idle;
};

/**
 * struct vrnic_crew - threads that take what waits from one queue: a device's own, in the
 *	root cgroups, or those that it has in the cgroups of some processes, at their cost
 * @lock: protects what follows, down to @wanted
 * @queue: runnables that wait for their turn
 * @idle: threads that sleep
 * @wanted: something waits, and no thread is on its way to it: one that stays with a
 *	ring is to come
 * @engine: whose it is
 * @link: in its list; protected by its lock, as what follows
 * @refs: contexts whose rings it runs; the device's own has none; 0: its threads begin, or end
 * @uid: user who opened the first of these
 * @owner: in whose cgroups its threads begin, while they do; NULL: those of all threads
 * @memcg: pays for what its threads allocate; NULL: nobody does, and no I/O is started
 * @joined: a thread has begun
 * @err: why it could not
 * @nr: number of @threads
 * @threads: the threads
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

#define VRNIC_MAX_CREWS		1024	/* that users' contexts make, for each device */
#define VRNIC_MAX_USER_CREWS	128	/* of these, one user's; root's are not counted */

/**
 * struct vrnic_engine - the threads of a device
 * @own: the device's own crew: runs what is no process's
 * @lock: protects @crews, and their @link and @refs
 * @crews: those of processes, with those that begin or end just now
 * @threads: of each crew
 * @name: the device's, for the threads' names
 */
struct vrnic_engine {
	struct vrnic_crew *own;
	spinlock_t lock;	/* protects @crews, and their @link and @refs */
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

/* Is somebody here who goes on with it? Then its run may end. */
static inline bool vrnic_is_waited(const struct vrnic_runnable *r)
{
	return READ_ONCE(r->brief) && test_bit(VRNIC_RUN_WAITED, &r->state);
}

/* May doorbells be late? To be asked by the runner: it does not end meanwhile. */
static inline bool vrnic_is_gathering(const struct vrnic_runnable *r)
{
	return test_bit(VRNIC_RUN_GATHER, &r->state);
}

void vrnic_gather_init(struct vrnic_runnable *r);
void vrnic_gather_note(struct vrnic_runnable *r, bool stream, u32 descs);
void vrnic_gather_end(struct vrnic_runnable *r);

#endif /* VRNIC_ENGINE_H */
