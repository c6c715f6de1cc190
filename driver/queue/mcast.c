// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD multicast: which queue pairs are in which group.
 *
 * A sender finds the group, and one member after the other, under RCU alone. So senders wait
 * neither for each other, nor for callers that join or leave. A caller that joins or leaves waits
 * for memory and RTNL without the lock, because callers of other users need the lock.
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
 * struct vrnic_group - a group that has or had members; in vrnic_dev.groups
 * @node: entry in the table, by @gid; read under RCU
 * @rcu: for kfree_rcu()
 * @gid: the group's GID
 * @members: struct vrnic_member by number; read under RCU
 * @nr: number of members, with those that are being added; protected by vrnic_dev.mcast_lock
 * @announced: has this host joined the group on the network, or is it about to? Written under RTNL,
 *	with vrnic_dev.mcast_lock held
 */
struct vrnic_group {
	struct rhash_head node;
	struct rcu_head rcu;
	union ib_gid gid;
	struct xarray members;
	u32 nr;
	bool announced;
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
	spin_lock_init(&dev->mcast_lock);
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

/*
 * Have the interface join the IP group for its first member, or leave it after its last one. An
 * interface that was unregistered has left all. If it was moved, the groups that it has joined in
 * the other namespace are not this device's.
 */
static void mcast_announce(struct vrnic_dev *dev, const union ib_gid *gid, bool join)
{
	ASSERT_RTNL();
	if (dev->left)
		return;
	if (ipv6_addr_v4mapped((const struct in6_addr *)gid->raw))
		mcast_announce4(dev->ndev, gid, join);
	else
		mcast_announce6(dev->ndev, gid, join);
}

static struct vrnic_group *group_find(struct vrnic_dev *dev, const union ib_gid *gid)
{
	lockdep_assert_held(&dev->mcast_lock);
	return rhashtable_lookup_fast(&dev->groups, gid, groups_params);
}

static struct vrnic_group *group_alloc(const union ib_gid *gid)
{
	struct vrnic_group *g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);

	if (!g)
		return NULL;
	g->gid = *gid;
	xa_init_flags(&g->members, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	return g;
}

static int group_insert(struct vrnic_dev *dev, struct vrnic_group *g)
{
	if (atomic_read(&dev->groups.nelems) >= VRNIC_MAX_GROUPS)
		return -ENOMEM;
	return rhashtable_insert_fast(&dev->groups, &g->node, groups_params);
}

/* A group goes when it has no members, and the network does not take this host for one. */
static void group_put(struct vrnic_dev *dev, struct vrnic_group *g)
{
	lockdep_assert_held(&dev->mcast_lock);
	if (g->nr || g->announced)
		return;
	rhashtable_remove_fast(&dev->groups, &g->node, groups_params);
	xa_destroy(&g->members);
	kfree_rcu(g, rcu);
}

/*
 * Join the group on the network if it has members, and leave it if it has none. A group may get its
 * first member, or lose its last, while this waits for RTNL; so the group's present state counts.
 */
static void group_settle(struct vrnic_dev *dev, const union ib_gid *gid)
{
	struct vrnic_group *g;
	bool change;

	rtnl_lock();
	spin_lock(&dev->mcast_lock);
	g = group_find(dev, gid);
	change = g && g->announced != (g->nr && is_announced(dev));
	if (change)
		g->announced = !g->announced;
	if (change && g->announced) {
		/* as long as it is announced, the group stays */
		spin_unlock(&dev->mcast_lock);
		mcast_announce(dev, gid, true);
		goto out;
	}
	if (g)
		group_put(dev, g);
	spin_unlock(&dev->mcast_lock);
	if (change)
		mcast_announce(dev, gid, false);
out:
	rtnl_unlock();
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

/* Count a future member, so that the group stays. If it is the first one, @new is the group. */
static struct vrnic_group *group_enter(struct vrnic_dev *dev, struct vrnic_qp *qp,
				       struct vrnic_group *new)
{
	struct vrnic_group *g;
	int err;

	lockdep_assert_held(&dev->mcast_lock);
	err = may_join(dev, qp);
	if (err)
		return ERR_PTR(err);
	g = group_find(dev, &new->gid);
	if (!g) {
		err = group_insert(dev, new);
		if (err)
			return ERR_PTR(err);
		g = new;
	}
	g->nr++;
	qp->groups++;
	dev->attached++;
	return g;
}

static void group_leave(struct vrnic_dev *dev, struct vrnic_group *g, struct vrnic_qp *qp)
{
	lockdep_assert_held(&dev->mcast_lock);
	dev->attached--;
	qp->groups--;
	g->nr--;
	group_put(dev, g);
}

/* The caller has counted the member, so the group stays without the lock. */
static int member_add(struct vrnic_group *g, struct vrnic_qp *qp)
{
	struct vrnic_member *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return -ENOMEM;
	m->qp = qp;
	m->count = 1;
	if (xa_alloc(&g->members, &m->number, m, XA_LIMIT(0, VRNIC_MAX_MEMBERS - 1),
		     GFP_KERNEL)) {
		kfree(m);
		return -ENOMEM;
	}
	return 0;
}

static int mcast_join(struct vrnic_dev *dev, struct vrnic_qp *qp, const union ib_gid *gid)
{
	struct vrnic_group *new = group_alloc(gid), *g;
	int err;

	if (!new)
		return -ENOMEM;
	spin_lock(&dev->mcast_lock);
	g = group_enter(dev, qp, new);
	spin_unlock(&dev->mcast_lock);
	if (g != new)
		kfree(new);
	if (IS_ERR(g))
		return PTR_ERR(g);
	err = member_add(g, qp);
	if (err) {
		spin_lock(&dev->mcast_lock);
		group_leave(dev, g, qp);
		spin_unlock(&dev->mcast_lock);
	}
	return err;
}

/* Attach a queue pair that is attached already. Return: false if it is not. */
static bool mcast_join_again(struct vrnic_dev *dev, struct vrnic_qp *qp,
			     const union ib_gid *gid)
{
	struct vrnic_member *m;
	struct vrnic_group *g;

	spin_lock(&dev->mcast_lock);
	g = group_find(dev, gid);
	m = g ? member_find(g, qp) : NULL;
	if (m)
		m->count++;
	spin_unlock(&dev->mcast_lock);
	return m;
}

/*
 * The core refuses to destroy an attached queue pair. It may attach a queue pair to one GID several
 * times, with different LIDs, which mean nothing here. So the last detachment ends the membership.
 */
int vrnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_qp *qp = to_vqp(ibqp);
	int err;

	if (mcast_join_again(dev, qp, gid))
		return 0;
	err = mcast_join(dev, qp, gid);
	if (err || is_announced(dev))
		group_settle(dev, gid);
	return err;
}

int vrnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_qp *qp = to_vqp(ibqp);
	struct vrnic_member *m;
	struct vrnic_group *g;
	bool settle = false;

	spin_lock(&dev->mcast_lock);
	g = group_find(dev, gid);
	m = g ? member_find(g, qp) : NULL;
	if (m && !--m->count) {
		xa_erase(&g->members, m->number);
		kfree_rcu(m, rcu);
		settle = g->announced && g->nr == 1;
		group_leave(dev, g, qp);
	}
	spin_unlock(&dev->mcast_lock);
	if (settle)
		group_settle(dev, gid);
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
	if (dev && vrnic_in_net(dev, net) && !vrnic_owns(dev, from))
		n = vrnic_mcast_members(dev, to, fn, arg);
	rcu_read_unlock();
	return n;
}
