/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock that a peer's runner takes to use a queue pair as its target: vrnic_qp.resp_lock.
 *
 * Runners that belong to other users take it, some of them on threads that serve all users. So the
 * holder must not sleep. Only modify_qp() on the queue pair waits for the lock as long as it takes.
 * A runner that finds the lock taken waits 20 us at most, and then tries again later from a timer.
 */
#ifndef VRNIC_TARGET_H
#define VRNIC_TARGET_H

#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/time64.h>

struct vrnic_qp;

/* After this time a runner tries a locked target again: about what a run of another takes. */
#define VRNIC_TARGET_BUSY_NS	(20 * NSEC_PER_USEC)

/**
 * vrnic_page_patience() - how long to wait until a page that is brought in may be there
 * @tries: how often that was waited for, one time after the other
 *
 * Return: ns; longer each time, as a page may come from a disk, or from another process.
 */
static inline u64 vrnic_page_patience(u8 *tries)
{
	u8 n = min(*tries, 6);

	*tries = n + 1;
	return (u64)VRNIC_TARGET_BUSY_NS << n;
}

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
