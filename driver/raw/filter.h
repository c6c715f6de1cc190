/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What an interface has to let in, so that the frames of a rule come. */
#ifndef VRNIC_FILTER_H
#define VRNIC_FILTER_H

struct net_device;
struct vrnic_rule;

int vrnic_filter_open(struct net_device *ndev, const struct vrnic_rule *rule);
void vrnic_filter_close(struct net_device *ndev, const struct vrnic_rule *rule);

#endif /* VRNIC_FILTER_H */
