// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How many objects of each kind a device has, and may have. */

#include <linux/atomic.h>

#include "base/objects.h"
#include "vrnic.h"

/*
 * The limits that the device advertises, but for XRC domains, flows and counters of flows, of which
 * no verb tells the limit. All processes together have no more objects than these. A region has two
 * keys out of 2^24, and a window has one, so about half of the keys stay free, and
 * vrnic_ids_alloc() finds a free one by chance. There are few flows, because every frame that comes
 * tries them all.
 */
static const int object_max[VRNIC_OBJECTS] = {
	[VRNIC_OBJECT_PD] = 1 << 20,
	[VRNIC_OBJECT_CQ] = 1 << 20,
	[VRNIC_OBJECT_SRQ] = 1 << 20,
	[VRNIC_OBJECT_QP] = 1 << 20,
	[VRNIC_OBJECT_MR] = 1 << 21,
	[VRNIC_OBJECT_MW] = 1 << 22,
	[VRNIC_OBJECT_AH] = 1 << 20,
	[VRNIC_OBJECT_XRCD] = 1 << 20,
	[VRNIC_OBJECT_FLOW] = 1 << 10,
	[VRNIC_OBJECT_COUNTERS] = 1 << 20,
	[VRNIC_OBJECT_RWQ_TABLE] = 1 << 16,
	[VRNIC_OBJECT_COMP_CNTR] = 1 << 20,
};

int vrnic_object_max(enum vrnic_object kind)
{
	return object_max[kind];
}

static bool get_one(atomic_t *count, int max)
{
	if (atomic_inc_return(count) <= max)
		return true;
	atomic_dec(count);
	return false;
}

static void put_one(atomic_t *count)
{
	WARN_ON_ONCE(atomic_dec_return(count) < 0);
}

/**
 * vrnic_object_get() - count one more object, if there may be one
 * @dev: device
 * @kind: kind of object
 * @user: the object is for a process, not for a kernel consumer
 *
 * Return: false if the limit is reached: for a process the advertised one, for a kernel consumer
 * that plus VRNIC_KERNEL_SHARE.
 * Context: any.
 */
bool vrnic_object_get(struct vrnic_dev *dev, enum vrnic_object kind, bool user)
{
	if (user && !get_one(&dev->of_users[kind], object_max[kind]))
		return false;
	if (get_one(&dev->objects[kind], object_max[kind] + VRNIC_KERNEL_SHARE))
		return true;
	if (user)
		put_one(&dev->of_users[kind]);
	return false;
}

/* Undo vrnic_object_get(): the object is gone, or could not be created. */
void vrnic_object_put(struct vrnic_dev *dev, enum vrnic_object kind, bool user)
{
	put_one(&dev->objects[kind]);
	if (user)
		put_one(&dev->of_users[kind]);
}

/* The device ends: warn if an object is still counted. */
void vrnic_objects_gone(const struct vrnic_dev *dev)
{
	int kind;

	for (kind = 0; kind < VRNIC_OBJECTS; kind++)
		WARN_ON(atomic_read(&dev->objects[kind]) || atomic_read(&dev->of_users[kind]));
}
