// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* UD multicast: which queue pairs listen to which group. */

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>

#include "vrnic.h"

/**
 * struct vrnic_mcast - one queue pair in one group; in vrnic_dev.mcast
 * @link: protected by vrnic_dev.mcast_lock; readers also under RCU
 * @rcu: for kfree_rcu()
 * @gid: group
 * @qp: member; detached before it is destroyed
 * @count: how often it was attached; protected by vrnic_dev.mcast_lock
 */
struct vrnic_mcast {
	struct list_head link;
	struct rcu_head rcu;
	union ib_gid gid;
	struct vrnic_qp *qp;
	u32 count;
};

static struct vrnic_mcast *find(struct vrnic_dev *dev, struct vrnic_qp *qp,
				const union ib_gid *gid)
{
	struct vrnic_mcast *m;

	lockdep_assert_held(&dev->mcast_lock);
	list_for_each_entry(m, &dev->mcast, link)
		if (m->qp == qp && !memcmp(&m->gid, gid, sizeof(*gid)))
			return m;
	return NULL;
}

static bool has_members(struct vrnic_dev *dev, const union ib_gid *gid)
{
	struct vrnic_mcast *m;

	lockdep_assert_held(&dev->mcast_lock);
	list_for_each_entry(m, &dev->mcast, link)
		if (!memcmp(&m->gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static void announce4(struct net_device *ndev, const union ib_gid *gid,
		      bool join)
{
	struct in_device *in_dev = __in_dev_get_rtnl(ndev);
	__be32 group;

	memcpy(&group, gid->raw + 12, sizeof(group));
	/* an interface that is on its way out has left its groups already */
	if (!in_dev || !ipv4_is_multicast(group))
		return;
	if (join)
		ip_mc_inc_group(in_dev, group);
	else
		ip_mc_dec_group(in_dev, group);
}

static void announce6(struct net_device *ndev, const union ib_gid *gid,
		      bool join)
{
	const struct in6_addr *group = (const struct in6_addr *)gid->raw;

	if (!ipv6_addr_is_multicast(group) || !__in6_dev_get(ndev))
		return;
	if (join)
		ipv6_dev_mc_inc(ndev, group);
	else
		ipv6_dev_mc_dec(ndev, group);
}

/* The first member joins the group on the network, the last one leaves it. */
static void announce(struct vrnic_dev *dev, const union ib_gid *gid, bool join)
{
	struct net_device *ndev = dev->ndev;

	if (ndev->flags & (IFF_LOOPBACK | IFF_NOARP))
		return;
	rtnl_lock();
	if (ipv6_addr_v4mapped((const struct in6_addr *)gid->raw))
		announce4(ndev, gid, join);
	else
		announce6(ndev, gid, join);
	rtnl_unlock();
}

/*
 * The core counts attachments, and a queue pair goes only when as many have been
 * detached. It tells groups apart by their LIDs, too, which mean nothing here.
 */
int vrnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_mcast *m, *old;

	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->gid = *gid;
	m->qp = to_vqp(ibqp);
	m->count = 1;
	mutex_lock(&dev->mcast_lock);
	old = find(dev, m->qp, gid);
	if (old) {
		old->count++;
		kfree(m);
	} else {
		if (!has_members(dev, gid))
			announce(dev, gid, true);
		list_add_tail_rcu(&m->link, &dev->mcast);
	}
	mutex_unlock(&dev->mcast_lock);
	return 0;
}

/* Caller holds mcast_lock. */
static void leave(struct vrnic_dev *dev, struct vrnic_mcast *m)
{
	list_del_rcu(&m->link);
	if (!has_members(dev, &m->gid))
		announce(dev, &m->gid, false);
	kfree_rcu(m, rcu);
}

int vrnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_mcast *m;

	mutex_lock(&dev->mcast_lock);
	m = find(dev, to_vqp(ibqp), gid);
	if (m && !--m->count)
		leave(dev, m);
	mutex_unlock(&dev->mcast_lock);
	return m ? 0 : -EINVAL;
}

/**
 * vrnic_mcast_for_each() - deliver to every member of a group
 * @dev: device whose members count
 * @gid: group
 * @fn: called for each, may sleep
 * @arg: for @fn
 */
void vrnic_mcast_for_each(struct vrnic_dev *dev, const union ib_gid *gid,
			  void (*fn)(struct vrnic_qp *qp, void *arg), void *arg)
{
	struct vrnic_mcast *m;

	mutex_lock(&dev->mcast_lock);
	list_for_each_entry(m, &dev->mcast, link)
		if (!memcmp(&m->gid, gid, sizeof(*gid)))
			fn(m->qp, arg);
	mutex_unlock(&dev->mcast_lock);
}

/**
 * vrnic_mcast_members() - likewise, for what came from the network
 * @dev: device whose members count
 * @gid: group
 * @fn: called for each, must not sleep
 * @arg: for @fn
 *
 * Return: members.
 */
unsigned int vrnic_mcast_members(struct vrnic_dev *dev,
				 const union ib_gid *gid,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg)
{
	struct vrnic_mcast *m;
	unsigned int n = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(m, &dev->mcast, link) {
		if (memcmp(&m->gid, gid, sizeof(*gid)) ||
		    !refcount_inc_not_zero(&m->qp->refs))
			continue;
		fn(m->qp, arg);
		vrnic_qp_put(m->qp);
		n++;
	}
	rcu_read_unlock();
	return n;
}
