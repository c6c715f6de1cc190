/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the engine runs: each ring is a part of something that has a struct vrnic_runnable. */
#ifndef VRNIC_RUNNABLE_H
#define VRNIC_RUNNABLE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/timex.h>
#include <linux/types.h>
#include <linux/wait.h>

struct vrnic_budget;
struct vrnic_crew;
struct vrnic_parcel;

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

#endif /* VRNIC_RUNNABLE_H */
