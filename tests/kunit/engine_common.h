/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the suites of the engine share: an engine of their own, its runnables,
 * threads that call it, and waiting with a limit.
 *
 * Whatever is made here goes by itself when the test ends, however it ends, in
 * reverse order: the threads first, the engine last.
 */
#ifndef VRNIC_KUNIT_ENGINE_COMMON_H
#define VRNIC_KUNIT_ENGINE_COMMON_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/jiffies.h>

#include "engine/engine.h"
#include "engine/threads.h"

#define PATIENCE	(10 * HZ)

void start_engine(struct kunit *test, struct vrnic_engine *engine,
		  unsigned int threads);
void add_runnable(struct kunit *test, struct vrnic_engine *engine,
		  struct vrnic_runnable *r,
		  const struct vrnic_runnable_ops *ops);

void start_caller(struct kunit *test, int (*fn)(void *arg), void *arg,
		  atomic_t *callers);
void random_calls(void (*call)(void *arg, unsigned int how), void *arg,
		  unsigned int seed, int calls);

bool eventually(const atomic_t *value, int wanted);
void settle(void);
void rest(const struct vrnic_runnable *r);

#endif /* VRNIC_KUNIT_ENGINE_COMMON_H */
