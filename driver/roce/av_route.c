// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The route that an address vector keeps, from one datagram to the next. */

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <net/dst.h>

#include "roce/av_route.h"
#include "roce/socket.h"
#include "vrnic.h"

/*
 * Take the route from a vector for ever: a sender that has found it under RCU cannot store one
 * either. The caller does this before the vector leaves dev->avs, so only vectors in dev->avs have
 * routes. If two callers come at once, the first puts the route, within a grace period.
 */
void vrnic_av_forget(struct vrnic_dev *dev, struct vrnic_av *av)
{
	struct dst_entry *dst;
	unsigned long flags;

	rcu_read_lock();
	spin_lock_irqsave(&av->lock, flags);
	av->gone = true;
	dst = av->dst;
	av->dst = NULL;
	spin_unlock_irqrestore(&av->lock, flags);
	vrnic_route_put(dev, dst);
	rcu_read_unlock();
}

/**
 * vrnic_avs_forget() - drop the routes that the address vectors of a device keep
 * @dev: device, whose network namespace is about to end; no look-up finds a route for it any more
 *
 * A grace period later, none of its address vectors has a route.
 * Context: process context, may sleep.
 */
void vrnic_avs_forget(struct vrnic_dev *dev)
{
	struct vrnic_av *av;
	unsigned long id;

	for (id = 0;; id++) {
		rcu_read_lock();
		av = xa_find(&dev->avs, &id, ULONG_MAX, XA_PRESENT);
		if (av)
			vrnic_av_forget(dev, av);
		rcu_read_unlock();
		if (!av)
			return;
		cond_resched();
	}
}

/**
 * vrnic_av_route() - get the route that an address vector keeps
 * @av: address vector; the caller is an RCU reader
 * @cookie: set to the cookie for dst_check(), which the caller has to call
 *
 * Return: the route, with a reference for the caller; or NULL.
 */
struct dst_entry *vrnic_av_route(struct vrnic_av *av, u32 *cookie)
{
	struct dst_entry *dst;
	unsigned long flags;

	spin_lock_irqsave(&av->lock, flags);
	dst = dst_clone(av->dst);
	*cookie = av->cookie;
	spin_unlock_irqrestore(&av->lock, flags);
	return dst;
}

/**
 * vrnic_av_keep() - let an address vector keep another route, unless it may keep none any more
 * @dev: device of the vector
 * @av: address vector; the caller has been an RCU reader since before the look-up of @dst
 * @dst: route, or NULL; the caller keeps its own reference
 * @cookie: for dst_check()
 */
void vrnic_av_keep(struct vrnic_dev *dev, struct vrnic_av *av, struct dst_entry *dst,
		   u32 cookie)
{
	struct dst_entry *old = NULL;
	unsigned long flags;

	spin_lock_irqsave(&av->lock, flags);
	if (!av->gone) {
		old = av->dst;
		av->dst = dst_clone(dst);
		av->cookie = cookie;
	}
	spin_unlock_irqrestore(&av->lock, flags);
	vrnic_route_put(dev, old);
}
