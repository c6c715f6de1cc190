// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which device has a GID? All devices share one table, in which the destination of each datagram is
 * looked up. The look-up is under RCU, so senders on several CPUs share no cache line that they
 * write.
 */

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "base/gid.h"
#include "vrnic.h"

/**
 * struct vrnic_gid - an entry of a device's GID table
 * @node: entry in gids, behind entries that were added before; read under RCU
 * @rcu: for kfree_rcu()
 * @dev: device that has the GID; readers may use it until the RCU read-side critical section ends
 * @gid: the GID; a device may have several entries with one GID, of its interface and of VLANs
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
 * The namespace is part of the hash, because namespaces have addresses in common (127.0.0.1), which
 * would fill one bucket. The namespace of an entry does not change: it is its device's.
 */
static struct hlist_head *bucket(u64 net, const union ib_gid *gid)
{
	u32 hash = jhash2((const u32 *)gid->raw, sizeof(gid->raw) / sizeof(u32), net);

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
	spin_lock(&gids_lock);
	hlist_add_tail_rcu(&g->node, bucket(dev->net, &g->gid));
	spin_unlock(&gids_lock);
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

static bool is_entry(const struct vrnic_gid *g, u64 net, const union ib_gid *gid)
{
	return !memcmp(&g->gid, gid, sizeof(*gid)) && g->dev->net == net;
}

/**
 * vrnic_owns() - does a device have this GID?
 * @dev: device
 * @gid: GID that a user or a peer claims
 *
 * Return: true if @dev has it.
 */
bool vrnic_owns(struct vrnic_dev *dev, const union ib_gid *gid)
{
	struct vrnic_gid *g;
	bool owns = false;

	rcu_read_lock();
	hlist_for_each_entry_rcu(g, bucket(dev->net, gid), node) {
		owns = g->dev == dev && is_entry(g, dev->net, gid);
		if (owns)
			break;
	}
	rcu_read_unlock();
	return owns;
}

/**
 * vrnic_reaches() - does a message to a GID arrive at a device?
 * @from: sender's device
 * @gid: destination
 * @to: device in question
 *
 * Loopback stays within a network namespace, as packets on the network do.
 *
 * Return: true if @to is in the namespace of @from and has @gid.
 */
bool vrnic_reaches(struct vrnic_dev *from, const union ib_gid *gid,
		   struct vrnic_dev *to)
{
	return vrnic_same_net(from, to) && vrnic_owns(to, gid);
}

/* Does any device in the namespace of @from have @gid? */
bool vrnic_gid_is_local(struct vrnic_dev *from, const union ib_gid *gid)
{
	struct vrnic_gid *g;
	bool local = false;

	rcu_read_lock();
	hlist_for_each_entry_rcu(g, bucket(from->net, gid), node) {
		local = is_entry(g, from->net, gid);
		if (local)
			break;
	}
	rcu_read_unlock();
	return local;
}

/**
 * vrnic_gid_owners() - call a function for the devices that have a GID
 * @net: cookie of the network namespace of the devices
 * @gid: GID; several devices may have the same link-local one
 * @fn: called for each device, under the RCU read lock, until it returns true
 * @arg: for @fn
 */
void vrnic_gid_owners(u64 net, const union ib_gid *gid,
		      bool (*fn)(struct vrnic_dev *dev, void *arg), void *arg)
{
	struct vrnic_gid *g;

	rcu_read_lock();
	hlist_for_each_entry_rcu(g, bucket(net, gid), node)
		if (is_entry(g, net, gid) && fn(g->dev, arg))
			break;
	rcu_read_unlock();
}
