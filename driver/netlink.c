// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `rdma link add NAME type vrnic netdev IF`, and events of the network interfaces below devices.
 * (The core does `rdma link del` itself.)
 */

#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/rdma_netlink.h>
#include <rdma/vrnic-abi.h>

#include "device.h"

static struct rdma_link_ops vrnic_link_ops = {
	.type = "vrnic",
	.newlink = vrnic_device_add,
};

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *arg)
{
	vrnic_device_event(netdev_notifier_info_to_dev(arg), event);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_nb = { .notifier_call = netdev_event };

/* The core follows the addresses of Ethernet interfaces only. This module follows those of lo. */
static int inetaddr_event(struct notifier_block *nb, unsigned long event,
			  void *arg)
{
	struct in_ifaddr *ifa = arg;

	vrnic_device_addr_event(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block inetaddr_nb = { .notifier_call = inetaddr_event };

static int inet6addr_event(struct notifier_block *nb, unsigned long event,
			   void *arg)
{
	struct inet6_ifaddr *ifa = arg;

	vrnic_device_addr_event(ifa->idev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block inet6addr_nb = { .notifier_call = inet6addr_event };

int vrnic_netlink_init(void)
{
	int err;

	err = register_netdevice_notifier(&netdev_nb);
	if (err)
		return err;
	err = register_inetaddr_notifier(&inetaddr_nb);
	if (err)
		goto err_netdev;
	err = register_inet6addr_notifier(&inet6addr_nb);
	if (err)
		goto err_inet;
	rdma_link_register(&vrnic_link_ops);
	return 0;

err_inet:
	unregister_inetaddr_notifier(&inetaddr_nb);
err_netdev:
	unregister_netdevice_notifier(&netdev_nb);
	return err;
}

/*
 * Before the notifiers go the devices have to be gone: unregister_netdevice_notifier() says of all
 * interfaces that they leave.
 */
void vrnic_netlink_exit(void)
{
	rdma_link_unregister(&vrnic_link_ops);
	ib_unregister_driver((enum rdma_driver_id)VRNIC_DRIVER_ID);
	unregister_inet6addr_notifier(&inet6addr_nb);
	unregister_inetaddr_notifier(&inetaddr_nb);
	unregister_netdevice_notifier(&netdev_nb);
}
