/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the engine runs: the owner of each ring (queue pair, FIFO) has a struct vrnic_runnable. */
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
	VRNIC_IDLE,	/* nothing is left to do now; a timer or new work starts the next run */
	VRNIC_EXPECTS,	/* there is more to send as soon as a peer answers */
	VRNIC_MORE,	/* the budget is used up, and there is more to do */
};

struct vrnic_runnable;

/**
 * struct vrnic_runnable_ops - functions of the ring's owner that the engine calls
 * @run: execute descriptors within the budget. One runner calls this at a time; it may sleep unless
 *	the budget's @atomic is set.
 * @spare: doorbells would bring nothing: let the process post without them. NULL: all have to ring,
 *	and no thread ever stays
 * @ask: ask for doorbells again. The runner looks at the ring once more afterwards, for what was
 *	posted before the process could see this.
 * @gather: @on: let the process ring for several requests at once; !@on: ask for each doorbell.
 *	Return: may there be requests without a doorbell? Called in any context, with the run bit
 *	held, but not while @run runs. NULL: every post rings
 * @atomic: may a doorbell, or vrnic_poke(), call @run now, with softirqs held off? NULL: no
 * @soft: as @atomic, but only by vrnic_poke(); set if doorbells run the ring with softirqs on
 * @deliver: deliver the parcel of a run (struct vrnic_parcel); other runs may go on meanwhile.
 *	Called with softirqs held off; not NULL if runs leave parcels
 */
struct vrnic_runnable_ops {
	enum vrnic_verdict (*run)(struct vrnic_runnable *r, struct vrnic_budget *budget);
	void (*spare)(struct vrnic_runnable *r);
	void (*ask)(struct vrnic_runnable *r);
	bool (*gather)(struct vrnic_runnable *r, bool on);
	bool (*atomic)(struct vrnic_runnable *r);
	bool (*soft)(struct vrnic_runnable *r);
	void (*deliver)(struct vrnic_runnable *r, struct vrnic_parcel *parcel);
};

/**
 * struct vrnic_gather - one doorbell for many requests; see gather.c
 * @timer: checks whether doorbells still come
 * @calls: number of doorbells; protected by VRNIC_RUN_BUSY, and read by @timer
 * @served: number of doorbells that brought a descriptor; protected as @calls
 * @descs: number of descriptors that the doorbells brought; protected as @calls
 * @calls_before: value of @calls when @timer last fired
 * @served_before: value of @served when @timer last fired
 * @descs_before: value of @descs when @timer last fired
 * @us: microseconds from one check to the next
 * @idle: periods in a row without a doorbell, up to now
 * @flowed: periods with doorbells since the gathering began
 * @streak: doorbells of a stream in a row; protected by VRNIC_RUN_BUSY
 * @patience: streak at which gathering begins; protected by VRNIC_RUN_BUSY, and written by @timer
 */
struct vrnic_gather {
	struct hrtimer timer;
	u32 calls;
	u32 served;
	u32 descs;
	u32 calls_before;
	u32 served_before;
	u32 descs_before;
	u32 us;
	u32 idle;
	u32 flowed;
	u32 streak;
	u32 patience;
};

/**
 * struct vrnic_runnable - something that the engine runs
 * @ops: functions of the ring's owner
 * @crew: threads that run it when no process or softirq does
 * @state: VRNIC_RUN_* bits, atomic
 * @link: in @crew's queue, or in none; protected by @crew's lock
 * @timer: has a thread run the ring when it fires
 * @parked: where vrnic_park() waits for the end of VRNIC_RUN_BUSY
 * @brief: the present runner will be done within microseconds, so a process or softirq may spin for
 *	it. Clear once the runner has sent packets that must stay in order. Written by the runner
 * @after: tasklet that gives VRNIC_RUN_BUSY back when the packets that the runner sent have left
 *	the backlog of its CPU
 * @in_order: the runner has sent packets that must stay in order: those that another CPU sends
 *	might overtake them. Protected by VRNIC_RUN_BUSY, as all that follows
 * @unfinished: a thread has to run the ring when @after is done
 * @rounds: rounds of the network's softirq that @after may still wait for
 * @caller: process that rang last; only compared
 * @left: time, in cycles, when the last doorbell was served
 * @streak: doorbells in a row that came sooner after the one before than it takes to serve one
 * @patience: streak at which a thread takes over
 * @alone: cycles to post and run a descriptor without a thread: a moving average; 0: not known
 * @polled: a thread stays with the ring
 * @spared: the ring waits for its timer, and its process was told not to ring meanwhile
 * @wait_until: time, in ns, before which the ring's next operation must not run; 0: it may run
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
	bool polled;
	bool spared;
	u64 wait_until;
	struct vrnic_gather gather;
};

#define VRNIC_RUN_BUSY		0	/* the run bit: a runner has the ring, or a queue has it */
#define VRNIC_RUN_AGAIN		1	/* there may be work that the runner has not seen */
#define VRNIC_RUN_PARKED	2	/* nobody may run the ring */
#define VRNIC_RUN_STAY		3	/* the next thread is to stay with the ring */
#define VRNIC_RUN_GATHER	4	/* doorbells may be late; a timer checks */
#define VRNIC_RUN_RUNG		5	/* the owner has announced descriptors */
#define VRNIC_RUN_WAITED	6	/* a process or softirq waits to run the ring next */

#endif /* VRNIC_RUNNABLE_H */
