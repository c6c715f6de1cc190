/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Other hosts, and what their links cost this host. */
#ifndef VRNIC_LINK_HOST_H
#define VRNIC_LINK_HOST_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct vrnic_host;

void vrnic_hosts_init(void);
struct vrnic_host *vrnic_host_get(u64 net, const union ib_gid *gid);
void vrnic_host_put(struct vrnic_host *host);
u64 vrnic_host_number(const struct vrnic_host *host);
bool vrnic_host_charge(struct vrnic_host *host, u64 bytes);
void vrnic_host_uncharge(struct vrnic_host *host, u64 bytes);

#endif /* VRNIC_LINK_HOST_H */
