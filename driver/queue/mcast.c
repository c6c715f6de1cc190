// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD multicast: which queue pairs are in which group.
 *
 * A sender finds the group, and one member after the other, under RCU alone. So a sender waits
 * neither for other senders, nor for a task that attaches or detaches, and may wait for the RTNL.
 */

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>

#include "base/gid.h"
#include "base/port.h"
#include "queue/mcast.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "vrnic.h"

/**
 * struct vrnic_group - a group that has members; in vrnic_dev.groups
 * @node: entry in the table, by @gid; read under RCU
 * @rcu: for kfree_rcu()
 * @gid: the group's GID
 * @members: struct vrnic_member by number; written with vrnic_dev.mcast_lock held, read under RCU
 * @nr: number of members; protected by vrnic_dev.mcast_lock
 */
struct vrnic_group {
	struct rhash_head node;
	struct rcu_head rcu;
	union ib_gid gid;
	struct xarray members;
	u32 nr;
};

/**
 * struct vrnic_member - one queue pair in one group
 * @rcu: for kfree_rcu()
 * @qp: the queue pair; it is detached before it is destroyed
 * @number: index in vrnic_group.members
 * @count: how often the queue pair was attached; protected by vrnic_dev.mcast_lock
 */
struct vrnic_member {
	struct rcu_head rcu;
	struct vrnic_qp *qp;
	u32 number;
	u32 count;
};

/* Users choose the GIDs, but cannot make them collide: rhashtable seeds its hash at random. */
static const struct rhashtable_params groups_params = {
	.key_len = sizeof(union ib_gid),
	.key_offset = offsetof(struct vrnic_group, gid),
	.head_offset = offsetof(struct vrnic_group, node),
	.automatic_shrinking = true,
};

int vrnic_mcast_init(struct vrnic_dev *dev)
{
	mutex_init(&dev->mcast_lock);
	return rhashtable_init(&dev->groups, &groups_params);
}

/* Every queue pair is gone by now, and every group went with its last member. */
void vrnic_mcast_exit(struct vrnic_dev *dev)
{
	WARN_ON(atomic_read(&dev->groups.nelems));
	rhashtable_destroy(&dev->groups);
}

static void mcast_announce4(struct net_device *ndev, const union ib_gid *gid,
			    bool join)
{
	struct in_device *in_dev = __in_dev_get_rtnl(ndev);
	__be32 group;

	memcpy(&group, gid->raw + 12, sizeof(group));
	/* no in_dev: the interface is being removed, and has left its groups already */
	if (!in_dev || !ipv4_is_multicast(group))
		return;
	if (join)
		ip_mc_inc_group(in_dev, group);
	else
		ip_mc_dec_group(in_dev, group);
}

static void mcast_announce6(struct net_device *ndev, const union ib_gid *gid,
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

/* Does the interface have a network behind it, which has to know what groups to deliver? */
static bool is_announced(const struct vrnic_dev *dev)
{
	return !(dev->ndev->flags & (IFF_LOOPBACK | IFF_NOARP));
}

/* Have the interface join the IP group for its first member, or leave it after its last one. */
static void mcast_announce(struct vrnic_dev *dev, const union ib_gid *gid, bool join)
{
	struct net_device *ndev = dev->ndev;

	if (!is_announced(dev))
		return;
	rtnl_lock();
	if (ipv6_addr_v4mapped((const struct in6_addr *)gid->raw))
		mcast_announce4(ndev, gid, join);
	else
		mcast_announce6(ndev, gid, join);
	rtnl_unlock();
}

static struct vrnic_group *group_new(struct vrnic_dev *dev,
				     const union ib_gid *gid)
{
	struct vrnic_group *g;
	int err;

	if (atomic_read(&dev->groups.nelems) >= VRNIC_MAX_GROUPS)
		return ERR_PTR(-ENOMEM);
	g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);
	if (!g)
		return ERR_PTR(-ENOMEM);
	g->gid = *gid;
	xa_init_flags(&g->members, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	err = rhashtable_insert_fast(&dev->groups, &g->node, groups_params);
	if (err) {
		kfree(g);
		return ERR_PTR(err);
	}
	return g;
}

static void group_free(struct vrnic_dev *dev, struct vrnic_group *g)
{
	rhashtable_remove_fast(&dev->groups, &g->node, groups_params);
	xa_destroy(&g->members);
	kfree_rcu(g, rcu);
}

static struct vrnic_member *member_find(struct vrnic_group *g,
					const struct vrnic_qp *qp)
{
	struct vrnic_member *m;
	unsigned long number;

	xa_for_each(&g->members, number, m)
		if (m->qp == qp)
			return m;
	return NULL;
}

static int member_add(struct vrnic_dev *dev, struct vrnic_group *g,
		      struct vrnic_qp *qp)
{
	struct vrnic_member *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int err;

	if (!m)
		return -ENOMEM;
	m->qp = qp;
	m->count = 1;
	err = xa_alloc(&g->members, &m->number, m,
		       XA_LIMIT(0, VRNIC_MAX_MEMBERS - 1), GFP_KERNEL);
	if (err) {
		kfree(m);
		return -ENOMEM;
	}
	g->nr++;
	qp->groups++;
	dev->attached++;
	return 0;
}

static void member_remove(struct vrnic_dev *dev, struct vrnic_group *g,
			  struct vrnic_member *m)
{
	dev->attached--;
	m->qp->groups--;
	g->nr--;
	xa_erase(&g->members, m->number);
	kfree_rcu(m, rcu);
}

/* A queue pair may be in no more announced groups than a socket: igmp_max_memberships. */
static int may_join(const struct vrnic_dev *dev, const struct vrnic_qp *qp)
{
	int max;

	if (dev->attached >= VRNIC_MAX_ATTACHED)
		return -ENOMEM;
	rcu_read_lock();
	max = READ_ONCE(vrnic_net(dev->ndev)->ipv4.sysctl_igmp_max_memberships);
	rcu_read_unlock();
	return is_announced(dev) && qp->groups >= max ? -ENOBUFS : 0;
}

static int mcast_join(struct vrnic_dev *dev, struct vrnic_group *g,
		      struct vrnic_qp *qp, const union ib_gid *gid)
{
	int err = may_join(dev, qp);

	if (err)
		return err;
	if (!g) {
		g = group_new(dev, gid);
		if (IS_ERR(g))
			return PTR_ERR(g);
	}
	err = member_add(dev, g, qp);
	if (!err && g->nr == 1)
		mcast_announce(dev, gid, true);
	if (!g->nr)
		group_free(dev, g);
	return err;
}

/*
 * The core refuses to destroy an attached queue pair. It may attach a queue pair to one GID several
 * times, with different LIDs, which mean nothing here. So the last detachment ends the membership.
 */
int vrnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_qp *qp = to_vqp(ibqp);
	struct vrnic_member *m;
	struct vrnic_group *g;
	int err = 0;

	mutex_lock(&dev->mcast_lock);
	g = rhashtable_lookup_fast(&dev->groups, gid, groups_params);
	m = g ? member_find(g, qp) : NULL;
	if (m)
		m->count++;
	else
		err = mcast_join(dev, g, qp, gid);
	mutex_unlock(&dev->mcast_lock);
	return err;
}

static void mcast_leave(struct vrnic_dev *dev, struct vrnic_group *g,
			struct vrnic_member *m)
{
	member_remove(dev, g, m);
	if (g->nr)
		return;
	mcast_announce(dev, &g->gid, false);
	group_free(dev, g);
}

int vrnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_member *m;
	struct vrnic_group *g;

	mutex_lock(&dev->mcast_lock);
	g = rhashtable_lookup_fast(&dev->groups, gid, groups_params);
	m = g ? member_find(g, to_vqp(ibqp)) : NULL;
	if (m && !--m->count)
		mcast_leave(dev, g, m);
	mutex_unlock(&dev->mcast_lock);
	return m ? 0 : -EINVAL;
}

/**
 * vrnic_mcast_next() - get the next member of a group
 * @dev: only queue pairs of this device are members here
 * @gid: group
 * @number: lowest number of a member to look at; set to that of the member that was found
 *
 * Numbers are below VRNIC_MAX_MEMBERS. A queue pair that joins or leaves between two calls may be
 * missed.
 *
 * Return: the queue pair, with a reference held, or NULL if there are no more members.
 */
struct vrnic_qp *vrnic_mcast_next(struct vrnic_dev *dev, const union ib_gid *gid,
				  unsigned long *number)
{
	struct vrnic_qp *qp = NULL;
	struct vrnic_member *m;
	struct vrnic_group *g;

	rcu_read_lock();
	g = rhashtable_lookup(&dev->groups, gid, groups_params);
	m = g ? xa_find(&g->members, number, VRNIC_MAX_MEMBERS, XA_PRESENT) : NULL;
	while (m && !refcount_inc_not_zero(&m->qp->refs))
		m = xa_find_after(&g->members, number, VRNIC_MAX_MEMBERS, XA_PRESENT);
	if (m)
		qp = m->qp;
	rcu_read_unlock();
	return qp;
}

/**
 * vrnic_mcast_members() - call a function for each member of a group, for a packet from the network
 * @dev: only queue pairs of this device are members here
 * @gid: group
 * @fn: called for each member, must not sleep
 * @arg: for @fn
 *
 * Return: number of members; no more than VRNIC_MAX_MEMBERS.
 */
unsigned int vrnic_mcast_members(struct vrnic_dev *dev,
				 const union ib_gid *gid,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg)
{
	unsigned long number;
	struct vrnic_member *m;
	struct vrnic_group *g;
	unsigned int n = 0;

	rcu_read_lock();
	g = rhashtable_lookup(&dev->groups, gid, groups_params);
	if (!g)
		goto out;
	xa_for_each(&g->members, number, m) {
		if (!refcount_inc_not_zero(&m->qp->refs))
			continue;
		fn(m->qp, arg);
		vrnic_qp_put(m->qp);
		n++;
	}
out:
	rcu_read_unlock();
	return n;
}

/**
 * vrnic_mcast_receive() - hand a multicast packet from the network to the members of its group
 * @net: network namespace
 * @ndev: interface that the packet came through
 * @from: GID of the sender. If it is the receiving device's own, send_group() has delivered already
 * @to: group
 * @fn: called for each member, must not sleep
 * @arg: for @fn
 *
 * Return: number of members that got the packet.
 */
unsigned int vrnic_mcast_receive(struct net *net, struct net_device *ndev,
				 const union ib_gid *from,
				 const union ib_gid *to,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg)
{
	struct vrnic_dev *dev;
	unsigned int n = 0;

	rcu_read_lock();
	dev = vrnic_hearer(ndev);
	if (dev && net_eq(dev_net(dev->ndev), net) && !vrnic_owns(dev, from))
		n = vrnic_mcast_members(dev, to, fn, arg);
	rcu_read_unlock();
	return n;
}
