/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device: its limits, its state, and how to count for its statistics. */
#ifndef VRNIC_H
#define VRNIC_H

#include <linux/bits.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "base/objects.h"
#include "base/stats.h"
#include "engine/threads.h"
#include "lib/ids.h"
#include "native/pacer.h"
#include "raw/steer.h"

struct vrnic_faults;
struct vrnic_qp;
struct vrnic_wire;

#define VRNIC_MAX_WR		16384
#define VRNIC_MAX_MSG		BIT(31)	/* IBTA 9.7.7 */

/**
 * struct vrnic_dev - a device
 * @ibdev: the core's part
 * @ndev: the network device below this device; a reference is held
 * @ndev_tracker: for the reference on @ndev
 * @net: cookie of the network namespace in which the device was made. The device belongs to it as
 *	long as it lives, also when @ndev has moved to another one
 * @keys: regions, and windows (tagged pointers), by (local or remote key) >> 8; read under RCU
 * @avs: address vectors by number; read under RCU
 * @types: types of the native interface by number; read under RCU
 * @gsi: the GSI queue pair, or NULL; read under RCU
 * @engine: the threads that run the device's rings
 * @stats: statistics of each CPU
 * @counters: counters of queue pairs by number: verbs/qp_counter.c
 * @counted: sum of the counters that are gone; protected by the lock of @counters
 * @objects: number of objects, by enum vrnic_object
 * @of_users: those of @objects that belong to processes, not to kernel consumers
 * @dm_pages: pages of device memory that processes have
 * @faults: faults to inject, for tests
 * @port_up: port state that was announced last; protected by RTNL
 * @left: the interface was unregistered, or moved to another namespace; written under RTNL
 * @rescan: work that looks at the port's state again, and has the core look at the addresses of lo
 * @mcast_lock: protects @attached and writes of @groups
 * @groups: struct vrnic_group by GID; read under RCU
 * @attached: members of all groups
 * @opener: work that opens @wire
 * @wire_err: why @opener failed the last time, or 0
 * @wire_tried: when that was, in jiffies
 * @wire: sockets of the device's network namespace; NULL until the device needs them; set once
 * @wired: entry in the list of devices of @wire, if @wire is set
 * @link: entry in the table of devices by interface (base/port.c); read under RCU
 * @steer: the rules by which queue pairs get raw packets
 * @pacer: decides which peers on other hosts may send a portion
 */
struct vrnic_dev {
	struct ib_device ibdev;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	u64 net;
	struct vrnic_ids keys;
	struct xarray avs;
	struct vrnic_ids types;
	struct vrnic_qp __rcu *gsi;
	struct vrnic_engine engine;
	struct vrnic_stats __percpu *stats;
	struct xarray counters;
	u64 counted[VRNIC_QP_STAT_NR];
	atomic_t objects[VRNIC_OBJECTS];
	atomic_t of_users[VRNIC_OBJECTS];
	atomic_long_t dm_pages;
	struct vrnic_faults *faults;
	bool port_up;
	bool left;
	struct work_struct rescan;
	spinlock_t mcast_lock;	/* protects @attached and writes of @groups */
	struct rhashtable groups;
	u32 attached;
	struct work_struct opener;
	int wire_err;
	unsigned long wire_tried;
	struct vrnic_wire *wire;
	struct list_head wired;
	struct hlist_node link;
	struct vrnic_steer steer;
	struct vrnic_pacer pacer;
};

static inline struct vrnic_dev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct vrnic_dev, ibdev);
}

/* Does the device belong to @net? */
static inline bool vrnic_in_net(const struct vrnic_dev *dev, const struct net *net)
{
	return dev->net == net->net_cookie;
}

/* Do two devices belong to one network namespace? */
static inline bool vrnic_same_net(const struct vrnic_dev *a, const struct vrnic_dev *b)
{
	return a->net == b->net;
}

#define vrnic_count(dev, stat) \
	this_cpu_inc((dev)->stats->count[VRNIC_STAT_##stat])
#define vrnic_count_add(dev, stat, n) \
	this_cpu_add((dev)->stats->count[VRNIC_STAT_##stat], n)

/* Count data that loopback moves from the port of @from to the port of @to, without packets. */
static inline void vrnic_count_moved(const struct vrnic_dev *from,
				     const struct vrnic_dev *to, u64 bytes)
{
	vrnic_count_add(from, XMIT_BYTES, bytes);
	vrnic_count_add(to, RCVD_BYTES, bytes);
}

#endif /* VRNIC_H */
