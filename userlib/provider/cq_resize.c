// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keeping all threads away from a completion queue's ring while one thread replaces it. From the
 * moment when the kernel moves the completions until the new ring is mapped, nobody may use the
 * old ring. This takes a system call, so a thread that needs the ring meanwhile sleeps. A thread
 * that has slept gets its turn before the queue is resized again.
 */

#include "cq.h"
#include "vrnic.h"

void vrnic_cq_init(struct vrnic_cq *cq, bool one_thread)
{
	vrnic_lock_init(&cq->lock, one_thread);
	vrnic_lock_init(&cq->arm_lock, one_thread);
	pthread_mutex_init(&cq->sides_lock, NULL);
	pthread_mutex_init(&cq->gate, NULL);
	pthread_cond_init(&cq->opened, NULL);
}

void vrnic_cq_fini(struct vrnic_cq *cq)
{
	pthread_cond_destroy(&cq->opened);
	pthread_mutex_destroy(&cq->gate);
	pthread_mutex_destroy(&cq->sides_lock);
	vrnic_sides_free(cq);
	vrnic_lock_destroy(&cq->arm_lock);
	vrnic_lock_destroy(&cq->lock);
}

/* Caller holds @cq->gate. */
static void set_resizing(struct vrnic_cq *cq, bool resizing)
{
	vrnic_lock(&cq->lock);
	vrnic_lock(&cq->arm_lock);
	cq->resizing = resizing;
	vrnic_unlock(&cq->arm_lock);
	vrnic_unlock(&cq->lock);
}

/* From here to vrnic_cq_resize_end() no other thread uses the ring. */
void vrnic_cq_resize_begin(struct vrnic_cq *cq)
{
	pthread_mutex_lock(&cq->gate);
	while (cq->resizing || cq->waiting)
		pthread_cond_wait(&cq->opened, &cq->gate);
	set_resizing(cq, true);
	pthread_mutex_unlock(&cq->gate);
}

void vrnic_cq_resize_end(struct vrnic_cq *cq)
{
	pthread_mutex_lock(&cq->gate);
	set_resizing(cq, false);
	pthread_cond_broadcast(&cq->opened);
	pthread_mutex_unlock(&cq->gate);
}

/**
 * vrnic_cq_await_resize() - sleep until nobody resizes a completion queue
 * @cq: the completion queue
 * @lock: one of its locks; held before and after the call, and released in between
 *
 * vrnic_cq_resize_begin() waits while a thread is in here. So a thread waits for the end of one
 * resize only, and has @lock before the next one begins.
 */
void vrnic_cq_await_resize(struct vrnic_cq *cq, struct vrnic_lock *lock)
{
	vrnic_unlock(lock);
	pthread_mutex_lock(&cq->gate);
	cq->waiting++;
	while (cq->resizing)
		pthread_cond_wait(&cq->opened, &cq->gate);
	vrnic_lock(lock);
	if (!--cq->waiting)
		pthread_cond_broadcast(&cq->opened);
	pthread_mutex_unlock(&cq->gate);
}
