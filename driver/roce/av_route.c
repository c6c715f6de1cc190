// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The route that an address handle keeps, from one datagram to the next. */

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <net/dst.h>

#include "vrnic.h"

/*
 * It keeps no route any more, whoever uses it still, under RCU. To be called before it leaves
 * dev->avs: what is not in there has no route. Who finds here that another one was quicker
 * knows that the route goes within a grace period.
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
 * vrnic_avs_forget() - the namespace goes that a device's routes lead to
 * @dev: device; no route is found for it any more
 *
 * A grace period later its address vectors have none. Context: process context, may sleep.
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
 * vrnic_av_route() - the route that an address vector keeps
 * @av: address vector; the caller is under RCU
 * @cookie: for dst_check(), which is for the caller to ask
 *
 * Return: route, with a reference of the caller's; or NULL.
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
 * vrnic_av_keep() - have an address vector keep another route
 * @dev: its device
 * @av: address vector; the caller is under RCU, and was when he looked up the route
 * @dst: route, or NULL; the caller's reference stays the caller's
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
