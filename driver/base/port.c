// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The port of a device: the interface that it sits on, its namespace, and who hears there. */

#include <linux/hashtable.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "vrnic.h"

/* Devices by what they sit on; readers under RCU. */
static DEFINE_HASHTABLE(devs, 6);
static DEFINE_SPINLOCK(devs_lock);	/* protects writes of devs */

/* 80 bytes: the headers of a RoCEv2 packet, at their longest, and the ICRC. */
enum ib_mtu vrnic_active_mtu(const struct vrnic_dev *dev)
{
	int mtu = READ_ONCE(dev->ndev->mtu) - 80;

	return mtu < 256 ? IB_MTU_256 : ib_mtu_int_to_enum(mtu);
}

/**
 * vrnic_net() - the network namespace that an interface is in, to look into it
 * @ndev: interface
 *
 * An interface may move to another namespace, and the one that it leaves may be freed: a
 * grace period after the move, at the earliest. A caller that only compares namespaces
 * needs no more than dev_net().
 *
 * Return: namespace. Context: RCU lock.
 */
struct net *vrnic_net(const struct net_device *ndev)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "nothing keeps the namespace");
	return dev_net(ndev);
}

/* As vrnic_net(), with a reference for put_net(); NULL: the namespace is going. Context: any. */
struct net *vrnic_net_get(const struct net_device *ndev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(vrnic_net(ndev));
	rcu_read_unlock();
	return net;
}

/* What a device may sit on: @ndev, or what is below it if that is a VLAN. */
struct net_device *vrnic_lower(struct net_device *ndev)
{
	return is_vlan_dev(ndev) ? vlan_dev_real_dev(ndev) : ndev;
}

/* What comes through its interface is for @dev from now on. */
void vrnic_port_open(struct vrnic_dev *dev)
{
	spin_lock(&devs_lock);
	hash_add_rcu(devs, &dev->link, (unsigned long)dev->ndev);
	spin_unlock(&devs_lock);
}

/* Nobody finds @dev by its interface, after a grace period. */
void vrnic_port_close(struct vrnic_dev *dev)
{
	spin_lock(&devs_lock);
	hash_del_rcu(&dev->link);
	spin_unlock(&devs_lock);
}

/* The device that hears what comes through @ndev, or NULL. Caller holds the RCU lock. */
struct vrnic_dev *vrnic_hearer(struct net_device *ndev)
{
	struct net_device *lower = vrnic_lower(ndev);
	struct vrnic_dev *dev;

	hash_for_each_possible_rcu(devs, dev, link, (unsigned long)lower)
		if (dev->ndev == lower)
			return dev;
	return NULL;
}

/* Count packets that came through @ndev and are nobody's. */
void vrnic_dev_count(struct net *net, struct net_device *ndev,
		     enum vrnic_stat stat, u32 count)
{
	struct vrnic_dev *dev;

	rcu_read_lock();
	dev = vrnic_hearer(ndev);
	if (dev && net_eq(dev_net(dev->ndev), net))
		this_cpu_add(dev->stats->count[stat], count);
	rcu_read_unlock();
}

/* The interface that a GID belongs to: the device's, or a VLAN on it. */
int vrnic_gid_oif(struct vrnic_dev *dev, const struct ib_gid_attr *attr)
{
	struct net_device *ndev;
	int oif = dev->ndev->ifindex;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	if (ndev)
		oif = ndev->ifindex;
	rcu_read_unlock();
	return oif;
}
