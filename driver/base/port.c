// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The port of a device: its interface and namespace, and which device receives a packet. */

#include <linux/hashtable.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "base/port.h"
#include "base/stats.h"
#include "vrnic.h"

/* Devices by their interface; read under RCU. */
static DEFINE_HASHTABLE(devs, 6);
static DEFINE_SPINLOCK(devs_lock);	/* protects writes of devs */

/* 88 bytes: IPv6, UDP, BTH, XRCETH, RETH, immediate data and ICRC, around the data of a WRITE. */
enum ib_mtu vrnic_active_mtu(const struct vrnic_dev *dev)
{
	int mtu = READ_ONCE(dev->ndev->mtu) - 88;

	return mtu < 256 ? IB_MTU_256 : ib_mtu_int_to_enum(mtu);
}

/**
 * vrnic_net() - get the network namespace of an interface, to dereference it
 * @ndev: interface
 *
 * An interface may move to another namespace. The namespace that it leaves may then be freed, but
 * not before a grace period has passed. A device does not move with it: vrnic_in_net().
 *
 * Return: the namespace, valid until the RCU read-side critical section ends.
 * Context: RCU read lock.
 */
struct net *vrnic_net(const struct net_device *ndev)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "nothing keeps the namespace");
	return dev_net(ndev);
}

/*
 * As vrnic_net(), with a reference for put_net(); NULL if the namespace is about to end.
 * Context: any.
 */
struct net *vrnic_net_get(const struct net_device *ndev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(vrnic_net(ndev));
	rcu_read_unlock();
	return net;
}

/* The interface that a device may be on: @ndev, or the interface below @ndev if @ndev is a VLAN. */
struct net_device *vrnic_lower(struct net_device *ndev)
{
	return is_vlan_dev(ndev) ? vlan_dev_real_dev(ndev) : ndev;
}

/* From now on @dev receives packets that come through its interface. */
void vrnic_port_open(struct vrnic_dev *dev)
{
	spin_lock(&devs_lock);
	hash_add_rcu(devs, &dev->link, (unsigned long)dev->ndev);
	spin_unlock(&devs_lock);
}

/* After a grace period, no code finds @dev by its interface any more. */
void vrnic_port_close(struct vrnic_dev *dev)
{
	spin_lock(&devs_lock);
	hash_del_rcu(&dev->link);
	spin_unlock(&devs_lock);
}

/*
 * The device on an interface, or NULL. The core may have it disabled. The caller holds the RCU read
 * lock.
 */
struct vrnic_dev *vrnic_port_dev(const struct net_device *ndev)
{
	struct vrnic_dev *dev;

	hash_for_each_possible_rcu(devs, dev, link, (unsigned long)ndev)
		if (dev->ndev == ndev)
			return dev;
	return NULL;
}

/*
 * The device that receives packets that come through @ndev (an interface or a VLAN), or NULL. The
 * caller holds the RCU read lock.
 */
struct vrnic_dev *vrnic_hearer(struct net_device *ndev)
{
	return vrnic_port_dev(vrnic_lower(ndev));
}

/* Count packets that came through @ndev and were dropped, at the device in @net that hears them. */
void vrnic_dev_count(struct net *net, struct net_device *ndev,
		     enum vrnic_stat stat, u32 count)
{
	struct vrnic_dev *dev;

	rcu_read_lock();
	dev = vrnic_hearer(ndev);
	if (dev && vrnic_in_net(dev, net))
		this_cpu_add(dev->stats->count[stat], count);
	rcu_read_unlock();
}

/* Index of the interface that has a GID: the interface of the device, or a VLAN on it. */
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
