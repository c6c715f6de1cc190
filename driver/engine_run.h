/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Between the parts of the engine: engine.c, who runs a ring; engine_thread.c, what its
 * threads do; and gather.c, when doorbells may be late.
 */
#ifndef VRNIC_ENGINE_RUN_H
#define VRNIC_ENGINE_RUN_H

#include "engine.h"

/* Callers in a row that come back faster than they are served, before a thread stays. */
#define VRNIC_PATIENCE_MIN	16

/* engine.c */
bool vrnic_take(struct vrnic_runnable *r, bool brief);
enum vrnic_verdict vrnic_run(struct vrnic_runnable *r, struct vrnic_budget *budget);
void vrnic_leave(struct vrnic_runnable *r, bool more);

/* engine_thread.c */
void vrnic_thread_add(struct vrnic_runnable *r);
bool vrnic_thread_stays(const struct vrnic_runnable *r);

#endif /* VRNIC_ENGINE_RUN_H */
