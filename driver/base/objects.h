/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How many objects of each kind consumers may make. */
#ifndef VRNIC_OBJECTS_H
#define VRNIC_OBJECTS_H

#include <linux/bits.h>
#include <linux/types.h>

struct vrnic_dev;

/* So many objects of each kind are left for kernel consumers when processes have all of theirs. */
#define VRNIC_KERNEL_SHARE	BIT(16)

enum vrnic_object {
	VRNIC_OBJECT_PD,
	VRNIC_OBJECT_CQ,
	VRNIC_OBJECT_SRQ,
	VRNIC_OBJECT_QP,
	VRNIC_OBJECT_MR,
	VRNIC_OBJECT_MW,
	VRNIC_OBJECT_AH,
	VRNIC_OBJECT_XRCD,
	VRNIC_OBJECT_FLOW,
	VRNIC_OBJECT_COUNTERS,
	VRNIC_OBJECT_RWQ_TABLE,
	VRNIC_OBJECT_COMP_CNTR,
	VRNIC_OBJECTS
};

int vrnic_object_max(enum vrnic_object kind);
bool vrnic_object_get(struct vrnic_dev *dev, enum vrnic_object kind, bool user);
void vrnic_object_put(struct vrnic_dev *dev, enum vrnic_object kind, bool user);
void vrnic_objects_gone(const struct vrnic_dev *dev);

#endif /* VRNIC_OBJECTS_H */
