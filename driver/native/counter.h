/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What counters, their groups and their bindings to endpoints share. */
#ifndef VRNIC_COUNTER_H
#define VRNIC_COUNTER_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/vrnic-abi.h>

#include "mem/place.h"

struct eventfd_ctx;
struct vrnic_dev;
struct vrnic_counter_group;
struct vrnic_endpoint;
struct vrnic_failure;
struct vrnic_ucontext;

/**
 * struct vrnic_counter - a counter (RDMA object)
 * @rcu: for the RCU grace period between the end of the counter and its release
 * @refs: references of the owner and of tasks that wait; destruction waits for the latter
 * @id: number; unique on this host
 * @dev: device
 * @owner: number of the process's context
 * @cell: the values
 * @group: group of the counter, or NULL; constant. The group stays until the counter is @gone
 * @place: where @cell is
 * @open: peers may name the counter
 * @eventfd: signalled when the counter falls to zero or fails; or NULL. Set once.
 * @wait: tasks that sleep until the counter reaches their threshold
 * @lock: protects @waiters, @threshold, @turn, and writes of an error into @cell; of a counter in a
 *	group, also its falls, and the end of its membership
 * @waiters: number of these tasks
 * @threshold: highest threshold of these tasks
 * @triggers: struct vrnic_trigger of injectors that wait, the one with the highest threshold first;
 *	protected by trigger_lock
 * @nr_triggers: number of @triggers; protected by trigger_lock
 * @trigger_level: threshold of the first of @triggers; S64_MIN: there are none
 * @gone: the counter was destroyed; written with @lock held
 * @unused: completed when the last reference was put
 * @bindings: struct vrnic_binding of endpoints; protected by bind_lock
 * @nr_bindings: number of @bindings; protected by bind_lock
 * @failed: in a list of counters whose waiters have to be told of a failure; else empty; protected
 *	by bind_lock
 * @bit: number of the counter in @group
 * @turn: value of @cell->turn, which the process may have overwritten
 */
struct vrnic_counter {
	struct rcu_head rcu;
	refcount_t refs;
	u32 id;
	struct vrnic_dev *dev;
	u64 owner;
	struct vrnic_counter_cell *cell;
	struct vrnic_counter_group *group;
	struct vrnic_place place;
	bool open;
	struct eventfd_ctx *eventfd;
	wait_queue_head_t wait;
	spinlock_t lock;	/* protects what is said above */
	u32 waiters;
	s64 threshold;
	struct list_head triggers;
	u32 nr_triggers;
	s64 trigger_level;
	bool gone;
	struct completion unused;
	struct list_head bindings;
	u32 nr_bindings;
	struct list_head failed;
	u32 bit;
	u32 turn;
};

static inline atomic64_t *vrnic_counter_remaining(struct vrnic_counter *c)
{
	return (atomic64_t *)&c->cell->remaining;
}

/* Does nothing remain, or has the counter failed? */
static inline bool vrnic_counter_is_done(struct vrnic_counter *c)
{
	return atomic64_read(vrnic_counter_remaining(c)) <= 0 || READ_ONCE(c->cell->errors);
}

/* counter.c */
struct vrnic_counter *vrnic_counter_find(u32 id, u64 owner);
void vrnic_counter_note(struct vrnic_counter *c, const struct vrnic_failure *failure, u64 placed,
			u32 times);
void vrnic_counter_tell(struct vrnic_counter *c, const struct vrnic_failure *failure);

/* binding.c */
int vrnic_counter_bind(struct vrnic_counter *c, struct vrnic_endpoint *ep);
int vrnic_counter_unbind(struct vrnic_counter *c, struct vrnic_endpoint *ep);
void vrnic_counter_unbind_all(struct vrnic_counter *c);

/* counter_group.c */
int vrnic_groups_init(void);
void vrnic_groups_exit(void);
int vrnic_group_join(struct vrnic_counter_group *group, struct vrnic_counter *c, u32 bit);
void vrnic_group_leave(struct vrnic_counter *c);
s64 vrnic_group_fall(struct vrnic_counter *c, u64 n);
void vrnic_group_fail_begin(struct vrnic_counter *c);
void vrnic_group_fail_end(struct vrnic_counter *c);
void vrnic_group_fail_wake(struct vrnic_counter *c);

#endif /* VRNIC_COUNTER_H */
