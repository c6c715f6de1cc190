/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The queue pairs of this host, by number. */
#ifndef VRNIC_QP_TABLE_H
#define VRNIC_QP_TABLE_H

#include <rdma/ib_verbs.h>

struct net;
struct net_device;
struct vrnic_dev;
struct vrnic_qp;

int vrnic_qp_publish(struct vrnic_qp *qp);
void vrnic_qp_hide(struct vrnic_qp *qp);
struct vrnic_qp *vrnic_qp_get(u32 qpn);
struct vrnic_qp *vrnic_gsi_get(struct vrnic_dev *dev);
struct vrnic_qp *vrnic_qp_of(struct ib_qp *ibqp);
void vrnic_qp_put(struct vrnic_qp *qp);
int vrnic_qps_init(void);
void vrnic_qps_exit(void);
struct vrnic_qp *vrnic_gsi_by_gid(struct vrnic_dev *from,
				  const union ib_gid *gid);
struct vrnic_qp *vrnic_gsi_by_net(struct net *net, struct net_device *ndev,
				  const union ib_gid *gid);

#endif /* VRNIC_QP_TABLE_H */
