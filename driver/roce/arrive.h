/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Packets that fault injection holds up on a device. */
#ifndef VRNIC_ARRIVE_H
#define VRNIC_ARRIVE_H

struct vrnic_dev;

void vrnic_late_init(struct vrnic_dev *dev);
void vrnic_late_drop(struct vrnic_dev *dev);

#endif /* VRNIC_ARRIVE_H */
