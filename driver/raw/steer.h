/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Flow steering: which queue pairs get the frames that come to an interface. */
#ifndef VRNIC_STEER_H
#define VRNIC_STEER_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "compat/ingress.h"

struct ib_flow;
struct ib_flow_attr;
struct ib_qp;
struct ib_udata;
struct net_device;
struct sk_buff;
struct vrnic_dev;
struct vrnic_qp;

/**
 * struct vrnic_steer - the rules of a device
 * @rules: struct vrnic_rule in the order in which frames try them; read under RCU
 * @lock: protects writes of @rules; a leaf
 * @opened: rules whose frames the interface lets in; protected by RTNL
 * @over: the interface was unregistered, or moved: no frame goes in or out any more. Written with
 *	RTNL held
 * @ingress: brings frames while @opened has rules; protected by RTNL
 */
struct vrnic_steer {
	struct list_head rules;
	spinlock_t lock;	/* protects writes of @rules */
	struct list_head opened;
	bool over;
	struct vrnic_ingress ingress;
};

void vrnic_steer_init(struct vrnic_steer *s, struct net_device *ndev);
void vrnic_steer_leave(struct vrnic_steer *s);
bool vrnic_steer_frame(struct vrnic_steer *s, struct sk_buff *skb, const struct vrnic_qp *from);

struct ib_flow *vrnic_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata);
int vrnic_destroy_flow(struct ib_flow *ibflow);

#endif /* VRNIC_STEER_H */
