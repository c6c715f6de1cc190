/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Functions that the files in engine/ call of each other: engine.c decides who runs a ring,
 * thread.c is what the threads do, crew.c starts and ends them, gather.c lets doorbells be late.
 */
#ifndef VRNIC_ENGINE_RUN_H
#define VRNIC_ENGINE_RUN_H

#include "engine/budget.h"
#include "engine/crew.h"
#include "engine/engine.h"

/* vrnic_runnable.patience at first: a streak of so many doorbells makes a thread stay. */
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
