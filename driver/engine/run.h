/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the parts of the engine offer to each other: engine/engine.c decides who runs a ring,
 * engine/thread.c has the work of the threads, engine/crew.c starts and ends the threads, and
 * engine/gather.c lets doorbells be late.
 */
#ifndef VRNIC_ENGINE_RUN_H
#define VRNIC_ENGINE_RUN_H

#include "engine/budget.h"
#include "engine/crew.h"
#include "engine/engine.h"

/* Calls in a row that come faster than they are served, before a thread stays with the ring. */
#define VRNIC_PATIENCE_MIN	16

/* engine.c */
bool vrnic_take(struct vrnic_runnable *r, bool brief);
enum vrnic_verdict vrnic_run(struct vrnic_runnable *r, struct vrnic_budget *budget);
bool vrnic_give_back(struct vrnic_runnable *r, bool more);
void vrnic_leave(struct vrnic_runnable *r, bool more);
bool vrnic_release_parked(struct vrnic_runnable *r);

/* engine/thread.c */
void vrnic_thread_add(struct vrnic_runnable *r);
bool vrnic_thread_withdraw(struct vrnic_runnable *r);
bool vrnic_thread_stays(const struct vrnic_runnable *r);
void vrnic_crew_turns(struct vrnic_thread *thread);

#endif /* VRNIC_ENGINE_RUN_H */
