/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* GIDs, and the devices of this host that have them. */
#ifndef VRNIC_GID_H
#define VRNIC_GID_H

#include <rdma/ib_verbs.h>

struct vrnic_dev;

int vrnic_add_gid(const struct ib_gid_attr *attr, void **context);
int vrnic_del_gid(const struct ib_gid_attr *attr, void **context);
bool vrnic_owns(struct vrnic_dev *dev, const union ib_gid *gid);
bool vrnic_gid_is_local(struct vrnic_dev *from, const union ib_gid *gid);
bool vrnic_reaches(struct vrnic_dev *from, const union ib_gid *gid,
		   struct vrnic_dev *to);
void vrnic_gid_owners(u64 net, const union ib_gid *gid,
		      bool (*fn)(struct vrnic_dev *dev, void *arg), void *arg);

#endif /* VRNIC_GID_H */
