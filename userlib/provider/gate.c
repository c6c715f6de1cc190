// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keeping all threads away from a ring while one thread replaces it, in a completion queue or in a
 * shared receive queue. From the moment when the kernel moves the entries until the new ring is
 * mapped, nobody may use the old ring. This takes a system call, so a thread that needs the ring
 * meanwhile sleeps. A thread that has slept gets its turn before the ring is replaced again.
 */

#include "vrnic.h"

/**
 * vrnic_gate_init() - make an open gate
 * @gate: to be filled in
 * @lock: lock of the ring
 * @other: one more lock, which threads take instead of @lock, or inside of it; or NULL
 */
void vrnic_gate_init(struct vrnic_gate *gate, struct vrnic_lock *lock, struct vrnic_lock *other)
{
	pthread_mutex_init(&gate->mutex, NULL);
	pthread_cond_init(&gate->opened, NULL);
	gate->lock = lock;
	gate->other = other;
}

void vrnic_gate_fini(struct vrnic_gate *gate)
{
	pthread_cond_destroy(&gate->opened);
	pthread_mutex_destroy(&gate->mutex);
}

/* Caller holds @gate->mutex. */
static void set_closed(struct vrnic_gate *gate, bool closed)
{
	vrnic_lock(gate->lock);
	if (gate->other)
		vrnic_lock(gate->other);
	gate->closed = closed;
	if (gate->other)
		vrnic_unlock(gate->other);
	vrnic_unlock(gate->lock);
}

/* From here to vrnic_gate_open() no other thread uses the ring. */
void vrnic_gate_close(struct vrnic_gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (gate->closed || gate->waiting)
		pthread_cond_wait(&gate->opened, &gate->mutex);
	set_closed(gate, true);
	pthread_mutex_unlock(&gate->mutex);
}

void vrnic_gate_open(struct vrnic_gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	set_closed(gate, false);
	pthread_cond_broadcast(&gate->opened);
	pthread_mutex_unlock(&gate->mutex);
}

/**
 * vrnic_gate_await() - sleep until a gate is open
 * @gate: the gate
 * @lock: one of its locks; held before and after the call, and released in between
 *
 * vrnic_gate_close() waits while a thread is in here. So a thread waits for one replacement only,
 * and has @lock before the next one begins.
 */
void vrnic_gate_await(struct vrnic_gate *gate, struct vrnic_lock *lock)
{
	vrnic_unlock(lock);
	pthread_mutex_lock(&gate->mutex);
	gate->waiting++;
	while (gate->closed)
		pthread_cond_wait(&gate->opened, &gate->mutex);
	vrnic_lock(lock);
	if (!--gate->waiting)
		pthread_cond_broadcast(&gate->opened);
	pthread_mutex_unlock(&gate->mutex);
}
