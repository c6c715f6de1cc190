/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* UD multicast groups. */
#ifndef VRNIC_MCAST_H
#define VRNIC_MCAST_H

#include <rdma/ib_verbs.h>

struct net;
struct net_device;
struct vrnic_dev;
struct vrnic_qp;

#define VRNIC_MAX_GROUPS	8192		/* multicast groups with members */
#define VRNIC_MAX_MEMBERS	256		/* queue pairs in a group; each gets a copy */
#define VRNIC_MAX_ATTACHED	BIT(16)		/* members of all groups of a device */

int vrnic_mcast_init(struct vrnic_dev *dev);
void vrnic_mcast_exit(struct vrnic_dev *dev);
int vrnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int vrnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
struct vrnic_qp *vrnic_mcast_next(struct vrnic_dev *dev, const union ib_gid *gid,
				  unsigned long *number);
unsigned int vrnic_mcast_members(struct vrnic_dev *dev,
				 const union ib_gid *gid,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg);
unsigned int vrnic_mcast_receive(struct net *net, struct net_device *ndev,
				 const union ib_gid *from,
				 const union ib_gid *to,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg);

#endif /* VRNIC_MCAST_H */
