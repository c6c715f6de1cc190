/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The sockets of a network namespace, as devices, address vectors and native links use them. */
#ifndef VRNIC_SOCKET_H
#define VRNIC_SOCKET_H

struct dst_entry;
struct net;
struct sk_buff;
struct vrnic_dev;

int vrnic_wire_init(void);
void vrnic_wire_exit(void);
void vrnic_wire_on_hello(void (*fn)(struct net *net, struct sk_buff *skb));
void vrnic_wire_prepare(struct vrnic_dev *dev);
int vrnic_wire_open(struct vrnic_dev *dev);
void vrnic_wire_close(struct vrnic_dev *dev);
void vrnic_route_put(struct vrnic_dev *dev, struct dst_entry *dst);

#endif /* VRNIC_SOCKET_H */
