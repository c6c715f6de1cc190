// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device's files in /sys/class/infiniband/DEVICE/, by which programs and udev recognise it. */

#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>

#include "device.h"
#include "vrnic.h"

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "vrnic\n");
}
static DEVICE_ATTR_RO(hca_type);

/*
 * The present name of the interface. Code that unregisters the device waits for this function, and
 * may hold RTNL, so to wait for RTNL here would be a deadlock.
 */
static ssize_t parent_show(struct device *device, struct device_attribute *attr,
			   char *buf)
{
	struct vrnic_dev *dev = rdma_device_to_drv_device(device, struct vrnic_dev, ibdev);
	ssize_t len;

	if (!rtnl_trylock())
		return restart_syscall();
	len = sysfs_emit(buf, "%s\n", dev->ndev->name);
	rtnl_unlock();
	return len;
}
static DEVICE_ATTR_RO(parent);

static struct attribute *vrnic_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_parent.attr,
	NULL
};

const struct attribute_group vrnic_attr_group = { .attrs = vrnic_attrs };
