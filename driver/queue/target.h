/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock of a queue pair as the target of its peers.
 *
 * Peers of other users turn up with it, on threads that everybody's rings share. So
 * nobody sleeps who has it, nobody but the queue pair's owner waits for it, and
 * whoever finds it taken comes back later.
 */
#ifndef VRNIC_TARGET_H
#define VRNIC_TARGET_H

#include <linux/mutex.h>
#include <linux/time64.h>

struct vrnic_qp;

/* When to come back: a burst takes about as long. */
#define VRNIC_TARGET_BUSY_NS	(20 * NSEC_PER_USEC)

void vrnic_target_init(struct vrnic_qp *qp);
void vrnic_target_lock(struct vrnic_qp *qp);
bool vrnic_target_trylock(struct vrnic_qp *qp);
bool vrnic_target_catch(struct vrnic_qp *qp);
void vrnic_target_unlock(struct vrnic_qp *qp);

#ifdef CONFIG_LOCKDEP
void vrnic_lock_is_shared(struct mutex *lock);
void vrnic_targets_init(void);
#else
static inline void vrnic_lock_is_shared(struct mutex *lock) { }
static inline void vrnic_targets_init(void) { }
#endif

#endif /* VRNIC_TARGET_H */
