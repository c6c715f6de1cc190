/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Devices: making them, events of their interface, what they tell operators, and the PMA. */
#ifndef VRNIC_DEVICE_H
#define VRNIC_DEVICE_H

#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>

struct ib_grh;
struct ib_mad;
struct ib_wc;
struct net_device;
struct rdma_counter;
struct rdma_hw_stats;
struct sk_buff;

/* device.c */
int vrnic_device_add(const char *name, struct net_device *ndev);
void vrnic_device_event(struct net_device *ndev, unsigned long event);
void vrnic_device_addr_event(struct net_device *ndev);

/* sysfs.c */
extern const struct attribute_group vrnic_attr_group;

/* netlink.c */
int vrnic_netlink_init(void);
void vrnic_netlink_exit(void);

/* pma.c */
int vrnic_process_mad(struct ib_device *ibdev, int flags, u32 port,
		      const struct ib_wc *wc, const struct ib_grh *grh,
		      const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index);

/* restrack.c */
int vrnic_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int vrnic_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int vrnic_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int vrnic_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* VRNIC_DEVICE_H */
