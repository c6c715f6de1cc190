/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The port of a device: the network interfaces below it. */
#ifndef VRNIC_PORT_H
#define VRNIC_PORT_H

#include <rdma/ib_verbs.h>

#include "base/stats.h"

struct net;
struct net_device;
struct vrnic_dev;

void vrnic_port_open(struct vrnic_dev *dev);
void vrnic_port_close(struct vrnic_dev *dev);
struct vrnic_dev *vrnic_port_dev(const struct net_device *ndev);
struct vrnic_dev *vrnic_hearer(struct net_device *ndev);
struct net_device *vrnic_lower(struct net_device *ndev);
void vrnic_dev_count(struct net *net, struct net_device *ndev,
		     enum vrnic_stat stat, u32 count);
int vrnic_gid_oif(struct vrnic_dev *dev, const struct ib_gid_attr *attr);
struct net *vrnic_net(const struct net_device *ndev);
struct net *vrnic_net_get(const struct net_device *ndev);
enum ib_mtu vrnic_active_mtu(const struct vrnic_dev *dev);

#endif /* VRNIC_PORT_H */
