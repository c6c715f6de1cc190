// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whose is a GID? One table for all devices, which each datagram is looked up in:
 * under RCU, so that who sends writes nothing that others read.
 */

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/hash.h>

#include "vrnic.h"

/**
 * struct vrnic_gid - an entry of a device's GID table
 * @node: in gids, behind what was there before; readers under RCU
 * @rcu: for kfree_rcu()
 * @dev: whose it is; readers have it until they leave the RCU section
 * @gid: the core also has it once for each version of RoCE
 */
struct vrnic_gid {
	struct hlist_node node;
	struct rcu_head rcu;
	struct vrnic_dev *dev;
	union ib_gid gid;
};

static DEFINE_HASHTABLE(gids, 10);
static DEFINE_SPINLOCK(gids_lock);	/* protects writes of gids */

/*
 * Every namespace has a 127.0.0.1, and addresses of the kind that is made up in the
 * same way everywhere. Where a device is does not change: one that moves goes.
 */
static struct hlist_head *bucket(const struct net *net, const union ib_gid *gid)
{
	u32 hash = jhash2((const u32 *)gid->raw, sizeof(gid->raw) / sizeof(u32),
			  net_hash_mix(net));

	return &gids[hash_min(hash, HASH_BITS(gids))];
}

int vrnic_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct vrnic_dev *dev = to_vdev(attr->device);
	struct vrnic_gid *g;

	g = kzalloc(sizeof(*g), GFP_KERNEL);
	if (!g)
		return -ENOMEM;
	g->dev = dev;
	g->gid = attr->gid;
	rcu_read_lock();
	spin_lock(&gids_lock);
	hlist_add_tail_rcu(&g->node, bucket(vrnic_net(dev->ndev), &g->gid));
	spin_unlock(&gids_lock);
	rcu_read_unlock();
	*context = g;
	return 0;
}

int vrnic_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct vrnic_gid *g = *context;

	spin_lock(&gids_lock);
	hlist_del_rcu(&g->node);
	spin_unlock(&gids_lock);
	kfree_rcu(g, rcu);
	*context = NULL;
	return 0;
}

static bool is_entry(const struct vrnic_gid *g, const struct net *net,
		     const union ib_gid *gid)
{
	return !memcmp(&g->gid, gid, sizeof(*gid)) &&
	       net_eq(dev_net(g->dev->ndev), net);
}

/**
 * vrnic_owns() - is @gid one of a device's own
 * @dev: device
 * @gid: anybody's claim
 */
bool vrnic_owns(struct vrnic_dev *dev, const union ib_gid *gid)
{
	struct vrnic_gid *g;
	bool owns = false;
	struct net *net;

	rcu_read_lock();
	net = vrnic_net(dev->ndev);
	hlist_for_each_entry_rcu(g, bucket(net, gid), node) {
		owns = g->dev == dev && is_entry(g, net, gid);
		if (owns)
			break;
	}
	rcu_read_unlock();
	return owns;
}

/**
 * vrnic_reaches() - does a message to @gid arrive at @to
 * @from: sender's device
 * @gid: destination
 * @to: candidate
 *
 * Loopback stays within a network namespace, as the network itself would.
 */
bool vrnic_reaches(struct vrnic_dev *from, const union ib_gid *gid,
		   struct vrnic_dev *to)
{
	return net_eq(dev_net(from->ndev), dev_net(to->ndev)) &&
	       vrnic_owns(to, gid);
}

/* Is there any device on this host that @gid leads to? */
bool vrnic_gid_is_local(struct vrnic_dev *from, const union ib_gid *gid)
{
	struct vrnic_gid *g;
	bool local = false;
	struct net *net;

	rcu_read_lock();
	net = vrnic_net(from->ndev);
	hlist_for_each_entry_rcu(g, bucket(net, gid), node) {
		local = is_entry(g, net, gid);
		if (local)
			break;
	}
	rcu_read_unlock();
	return local;
}

/**
 * vrnic_gid_owners() - look at the devices that have @gid
 * @net: in this namespace, which the caller keeps
 * @gid: link-local ones are not unique
 * @fn: called for each, under the RCU lock, until it returns true
 * @arg: for @fn
 */
void vrnic_gid_owners(const struct net *net, const union ib_gid *gid,
		      bool (*fn)(struct vrnic_dev *dev, void *arg), void *arg)
{
	struct vrnic_gid *g;

	rcu_read_lock();
	hlist_for_each_entry_rcu(g, bucket(net, gid), node)
		if (is_entry(g, net, gid) && fn(g->dev, arg))
			break;
	rcu_read_unlock();
}
