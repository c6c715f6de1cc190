/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Frames that an interface receives, before the protocols of the host get them. */
#ifndef VRNIC_INGRESS_H
#define VRNIC_INGRESS_H

#include <linux/netfilter.h>
#include <linux/types.h>

struct net_device;
struct sk_buff;

/**
 * struct vrnic_ingress - a listener at an interface
 * @ndev: interface
 * @frame: called with each frame, in softirq, under RCU. Packet sockets have seen the frame. Its
 *	data starts behind the Ethernet header, and its VLAN tag, if any, is out of it. Return: true
 *	if the function has taken the frame, which then does not go on to the host
 * @open: frames come; protected by RTNL
 * @ops: for netfilter, if the kernel has its hook
 */
struct vrnic_ingress {
	struct net_device *ndev;
	bool (*frame)(struct vrnic_ingress *in, struct sk_buff *skb);
	bool open;
#ifdef CONFIG_NETFILTER_INGRESS
	struct nf_hook_ops ops;
#endif
};

int vrnic_ingress_open(struct vrnic_ingress *in);
void vrnic_ingress_close(struct vrnic_ingress *in);

#endif /* VRNIC_INGRESS_H */
