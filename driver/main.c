// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * vrnic: an RDMA NIC made of software.
 *
 * How a WRITE to a peer on this host is done: the process fills a slot of its send ring and rings
 * the doorbell (ucontext.c). In this system call the engine runs the ring (engine/engine.c,
 * verbs/sq.c), looks up the opcode (queue/opcode.c) and executes the descriptor (verbs/loop.c): it
 * finds the memory of both sides by their keys, and copies (mem/mem.c). The completion goes into a
 * mapped ring (queue/cq.c).
 */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <rdma/rdma_netlink.h>

#include "base/fault.h"
#include "compat/icrc_pick.h"
#include "device.h"
#include "mem/odp.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/qp_table.h"
#include "queue/target.h"
#include "queue/xrc.h"
#include "roce/socket.h"
#include "verbs/verbs.h"

static bool loopback = true;
module_param(loopback, bool, 0444);
MODULE_PARM_DESC(loopback, "make a device vrnic0 on lo at load (default Y)");

/* If lo gets no device, the module is loaded nevertheless: root can add the device later. */
static void add_loopback(void)
{
	int err = vrnic_device_add("vrnic%d", init_net.loopback_dev);

	if (err)
		pr_warn("vrnic: no device on lo: error %d\n", err);
}

static int __init vrnic_init(void)
{
	int err;

	vrnic_icrc_init();
	vrnic_faults_init();
	vrnic_targets_init();
	vrnic_hello_init();
	err = vrnic_odp_init();
	if (err)
		goto err_faults;
	err = vrnic_qps_init();
	if (err)
		goto err_odp;
	err = vrnic_xsrqs_init();
	if (err)
		goto err_qps;
	err = vrnic_fifos_init();
	if (err)
		goto err_xsrqs;
	err = vrnic_virtual_init();
	if (err)
		goto err_fifos;
	err = vrnic_counters_init();
	if (err)
		goto err_virtual;
	err = vrnic_link_qps_init();
	if (err)
		goto err_counters;
	err = vrnic_links_init();
	if (err)
		goto err_link_qps;
	err = vrnic_wire_init();
	if (err)
		goto err_links;
	err = vrnic_netlink_init();
	if (err)
		goto err_wire;
	if (loopback)
		add_loopback();
	return 0;

err_wire:
	vrnic_wire_exit();
err_links:
	vrnic_links_exit();
err_link_qps:
	vrnic_link_qps_exit();
err_counters:
	vrnic_counters_exit();
err_virtual:
	vrnic_virtual_exit();
err_fifos:
	vrnic_fifos_exit();
err_xsrqs:
	vrnic_xsrqs_exit();
err_qps:
	vrnic_qps_exit();
err_odp:
	vrnic_odp_exit();
err_faults:
	vrnic_faults_exit();
	return err;
}

static void __exit vrnic_exit(void)
{
	vrnic_netlink_exit();
	vrnic_wire_exit();
	vrnic_hello_exit();
	vrnic_links_exit();
	vrnic_link_qps_exit();
	vrnic_counters_exit();
	vrnic_virtual_exit();
	vrnic_fifos_exit();
	vrnic_xsrqs_exit();
	vrnic_qps_exit();
	vrnic_odp_exit();
	vrnic_faults_exit();
	/* when rmmod returns, no RCU callback is left (those that are left use no module code) */
	rcu_barrier();
}

module_init(vrnic_init);
module_exit(vrnic_exit);

MODULE_AUTHOR("The vrnic authors");
MODULE_DESCRIPTION("RDMA NIC made of software");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("1.0.0");
MODULE_ALIAS_RDMA_LINK("vrnic");
