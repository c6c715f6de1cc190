/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The engine decides who runs a ring, when, and for how long. It does not know what is in the ring.
 * The runner, a thread, process or softirq, holds the ring's run bit: VRNIC_RUN_BUSY.
 */
#ifndef VRNIC_ENGINE_H
#define VRNIC_ENGINE_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/types.h>

#include "engine/runnable.h"

struct vrnic_crew;

void vrnic_runnable_init(struct vrnic_runnable *r, struct vrnic_crew *crew,
			 const struct vrnic_runnable_ops *ops);
void vrnic_kick(struct vrnic_runnable *r);
void vrnic_poke(struct vrnic_runnable *r, bool small);
void vrnic_queue(struct vrnic_runnable *r);
void vrnic_queue_at(struct vrnic_runnable *r, u64 at);
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns);
bool vrnic_must_wait(struct vrnic_runnable *r);
void vrnic_sends_in_order(struct vrnic_runnable *r);
void vrnic_park(struct vrnic_runnable *r);
void vrnic_unpark(struct vrnic_runnable *r);

/* Does a process or softirq wait to run @r next? Then this run may end and leave the rest. */
static inline bool vrnic_is_waited(const struct vrnic_runnable *r)
{
	return READ_ONCE(r->brief) && test_bit(VRNIC_RUN_WAITED, &r->state);
}

/* May doorbells of @r be late? Only for @r's runner, as gathering does not end during a run. */
static inline bool vrnic_is_gathering(const struct vrnic_runnable *r)
{
	return test_bit(VRNIC_RUN_GATHER, &r->state);
}

void vrnic_gather_init(struct vrnic_runnable *r);
void vrnic_gather_note(struct vrnic_runnable *r, bool stream, u32 descs);
void vrnic_gather_end(struct vrnic_runnable *r);

#endif /* VRNIC_ENGINE_H */
