/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock that a peer takes to use a queue pair as its target.
 *
 * Peers that belong to other users take it, on threads that run all users' rings. So a holder must
 * not sleep, only the queue pair's owner waits for the lock, and any other runner that finds it
 * taken comes back later.
 */
#ifndef VRNIC_TARGET_H
#define VRNIC_TARGET_H

#include <linux/mutex.h>
#include <linux/time64.h>

struct vrnic_qp;

/* How long a runner stays away from a locked target: about as long as a burst takes. */
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
