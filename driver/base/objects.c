// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How many objects of each kind a device has, and may have. */

#include <linux/atomic.h>

#include "vrnic.h"

/*
 * What is advertised, and what users get of them, all together. A region has two keys out
 * of 2^24, a window one: about half of them stay free.
 */
static const int object_max[VRNIC_OBJECTS] = {
	[VRNIC_OBJECT_PD] = 1 << 20,
	[VRNIC_OBJECT_CQ] = 1 << 20,
	[VRNIC_OBJECT_SRQ] = 1 << 20,
	[VRNIC_OBJECT_QP] = 1 << 20,
	[VRNIC_OBJECT_MR] = 1 << 21,
	[VRNIC_OBJECT_MW] = 1 << 22,
	[VRNIC_OBJECT_AH] = 1 << 20,
};

/* As advertised. */
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
 * vrnic_object_get() - may there be one more?
 * @dev: device
 * @kind: of these
 * @user: a process is to have it; else a kernel consumer
 *
 * Return: false if there are as many as the device advertises, with those that are kept
 * for kernel consumers. Context: any.
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

/* One of them is gone, or did not come to be. */
void vrnic_object_put(struct vrnic_dev *dev, enum vrnic_object kind, bool user)
{
	put_one(&dev->objects[kind]);
	if (user)
		put_one(&dev->of_users[kind]);
}

/* Each was put as it had been got. */
void vrnic_objects_gone(const struct vrnic_dev *dev)
{
	int kind;

	for (kind = 0; kind < VRNIC_OBJECTS; kind++)
		WARN_ON(atomic_read(&dev->objects[kind]) || atomic_read(&dev->of_users[kind]));
}
