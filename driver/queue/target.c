// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The lock that a peer's runner takes to use a queue pair as its target: vrnic_qp.resp_lock. */

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>

#include "queue/qp.h"
#include "queue/target.h"

static struct lock_class_key target_key;

static void lock_init(struct mutex *lock)
{
	mutex_init(lock);
	lockdep_set_class(lock, &target_key);
}

void vrnic_target_init(struct vrnic_qp *qp)
{
	lock_init(&qp->resp_lock);
}

/**
 * vrnic_target_lock() - keep peers from using a queue pair as their target, to modify it
 * @qp: queue pair
 *
 * Waits for the runner that has the lock, until the end of its run at most.
 * Context: process context, never an engine thread.
 */
void vrnic_target_lock(struct vrnic_qp *qp)
{
	mutex_lock(&qp->resp_lock);
	/* from here on, a debug kernel reports any call that might sleep */
	non_block_start();
}

/**
 * vrnic_target_trylock() - lock a queue pair as the target, if nobody else holds the lock
 * @qp: target
 *
 * Return: true if the lock was taken. If not, the runner has to try again from a timer, after
 * VRNIC_TARGET_BUSY_NS.
 * Context: process context.
 */
bool vrnic_target_trylock(struct vrnic_qp *qp)
{
	if (!mutex_trylock(&qp->resp_lock))
		return false;
	non_block_start();
	return true;
}

/*
 * As vrnic_target_trylock(), but spin for a while. For UD targets: many senders use them, and each
 * holds the lock only while it copies a datagram.
 */
bool vrnic_target_catch(struct vrnic_qp *qp)
{
	u64 since = local_clock();

	while (!vrnic_target_trylock(qp)) {
		if (need_resched() || local_clock() - since > VRNIC_TARGET_BUSY_NS)
			return false;
		cpu_relax();
	}
	return true;
}

void vrnic_target_unlock(struct vrnic_qp *qp)
{
	non_block_end();
	mutex_unlock(&qp->resp_lock);
}

#ifdef CONFIG_LOCKDEP

/**
 * vrnic_lock_is_shared() - teach lockdep that nobody may sleep while holding a lock
 * @lock: any lock of a class that the system calls of several users, or engine threads, take
 *
 * This tells lockdep that reclaim, page faults and holders of the RTNL take the lock. So lockdep
 * reports a cycle when code that holds such a lock allocates memory with reclaim, causes a page
 * fault, or takes the RTNL, even if there is no deadlock that time.
 */
void vrnic_lock_is_shared(struct mutex *lock)
{
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(lock);
	mutex_unlock(lock);
	fs_reclaim_release(GFP_KERNEL);

	rtnl_lock();
	mutex_lock(lock);
	mutex_unlock(lock);
	rtnl_unlock();

	if (!current->mm)
		return;
	mmap_read_lock(current->mm);
	mutex_lock(lock);
	mutex_unlock(lock);
	mmap_read_unlock(current->mm);
}

void vrnic_targets_init(void)
{
	struct mutex lock;	/* stands for the resp_lock of every queue pair */

	lock_init(&lock);
	vrnic_lock_is_shared(&lock);
	mutex_destroy(&lock);
}

#endif /* CONFIG_LOCKDEP */
