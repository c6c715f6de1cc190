// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device and its port: identity, capabilities, and events of the interface below. */

#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/utsname.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "base/fault.h"
#include "base/gid.h"
#include "base/objects.h"
#include "base/port.h"
#include "base/stats.h"
#include "base/udata.h"
#include "compat/comp_cntr.h"
#include "compat/compat.h"
#include "device.h"
#include "engine/threads.h"
#include "lib/ids.h"
#include "mem/dm.h"
#include "mem/mem.h"
#include "mem/mmap.h"
#include "mem/mw.h"
#include "mem/odp.h"
#include "queue/cq.h"
#include "queue/mcast.h"
#include "queue/qp.h"
#include "queue/srq.h"
#include "raw/raw.h"
#include "raw/rss.h"
#include "raw/steer.h"
#include "raw/tally.h"
#include "roce/arrive.h"
#include "roce/socket.h"
#include "ucontext.h"
#include "verbs/verbs.h"
#include "vrnic.h"

/*
 * Serialises vrnic_device_add(): else two callers could both find that an interface has no device,
 * and both add one.
 */
static DEFINE_MUTEX(add_lock);

/*
 * The interface that a device is being added to. NULL: no device is being added, or the interface
 * had a NETDEV_UNREGISTER meanwhile: it ended, or moved to another namespace (even if it has come
 * back since). Protected by RTNL.
 */
static struct net_device *adding_to;

#define VRNIC_GID_TABLE		256

#define VRNIC_DEVICE_CAPS						\
	(IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |	\
	 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |		\
	 IB_DEVICE_SRQ_RESIZE | IB_DEVICE_XRC |				\
	 IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |		\
	 IB_DEVICE_MEM_MGT_EXTENSIONS | VRNIC_CAP_FLUSH)

#define RC_ODP_CAPS	(IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |	\
			 IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV)

/* What may use memory with its pages on demand: all that there is, but for native operations. */
static void on_demand_caps(struct ib_device_attr *attr)
{
	struct ib_odp_caps *caps = &attr->odp_caps;

	if (!vrnic_odp_supported())
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	caps->general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = RC_ODP_CAPS | VRNIC_ODP_RC_NEW;
	caps->per_transport_caps.xrc_odp_caps = RC_ODP_CAPS;
	caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
					       IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_SRQ_RECV;
	caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
					       IB_ODP_SUPPORT_SRQ_RECV;
}

/* There are no offloads: raw_packet_caps is 0. */
static void raw_caps(const struct vrnic_dev *dev, struct ib_device_attr *attr)
{
	if (!vrnic_raw_supported(dev))
		return;
	attr->max_raw_ethy_qp = attr->max_qp;
	attr->max_wq_type_rq = attr->max_qp;
	attr->rss_caps.max_rwq_indirection_tables = vrnic_object_max(VRNIC_OBJECT_RWQ_TABLE);
	attr->rss_caps.max_rwq_indirection_table_size = 1 << VRNIC_RSS_LOG_MAX;
	attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
	attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
}

static int vrnic_query_device(struct ib_device *ibdev,
			      struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	if (vrnic_udata_empty(udata))
		return -EINVAL;
	*attr = (struct ib_device_attr) {
		.fw_ver = VRNIC_ABI_VERSION,
		.sys_image_guid = ibdev->node_guid,
		.vendor_id = 0xffffff,	/* no OUI: software */
		.max_mr_size = VRNIC_MAX_MR,
		.page_size_cap = PAGE_SIZE,
		.max_qp = vrnic_object_max(VRNIC_OBJECT_QP),
		.max_qp_wr = VRNIC_MAX_WR,
		.device_cap_flags = VRNIC_DEVICE_CAPS,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG | IBK_SG_GAPS_REG,
		.max_send_sge = VRNIC_MAX_SGE,
		.max_recv_sge = VRNIC_MAX_SGE,
		.max_sge_rd = VRNIC_MAX_SGE,
		.max_cq = vrnic_object_max(VRNIC_OBJECT_CQ),
		.max_cqe = VRNIC_MAX_CQE,
		.cq_caps.max_cq_moderation_count = U16_MAX,
		.cq_caps.max_cq_moderation_period = U16_MAX,
		.max_mr = vrnic_object_max(VRNIC_OBJECT_MR),
		.max_mw = vrnic_object_max(VRNIC_OBJECT_MW),
		.max_pd = vrnic_object_max(VRNIC_OBJECT_PD),
		.max_qp_rd_atom = VRNIC_MAX_RD_ATOM,
		.max_qp_init_rd_atom = VRNIC_MAX_RD_ATOM,
		.max_res_rd_atom = VRNIC_MAX_RD_ATOM << 10,
		.atomic_cap = IB_ATOMIC_GLOB,
		.max_mcast_grp = VRNIC_MAX_GROUPS,
		.max_mcast_qp_attach = VRNIC_MAX_MEMBERS,
		.max_total_mcast_qp_attach = VRNIC_MAX_ATTACHED,
		.max_ah = vrnic_object_max(VRNIC_OBJECT_AH),
		.max_srq = vrnic_object_max(VRNIC_OBJECT_SRQ),
		.max_srq_wr = VRNIC_MAX_WR,
		.max_srq_sge = VRNIC_MAX_SGE,
		.max_fast_reg_page_list_len = VRNIC_PAGE_LIST,
		.max_pkeys = 1,
		.timestamp_mask = U64_MAX,
		.max_dm_size = vrnic_dm_max(),
		.hca_core_clock = 1000000,	/* in kHz: timestamps are in nanoseconds */
	};
	raw_caps(to_vdev(ibdev), attr);
	on_demand_caps(attr);
	return 0;
}

static bool port_is_up(const struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev);
}

/* An interface that reports no speed, such as lo, counts as 100 Gbit/s: memory is its limit. */
static void port_speed(struct vrnic_dev *dev, struct ib_port_attr *attr)
{
	const struct ethtool_ops *ops = dev->ndev->ethtool_ops;

	if (ops && ops->get_link_ksettings &&
	    !ib_get_eth_speed(&dev->ibdev, 1, &attr->active_speed,
			      &attr->active_width))
		return;
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
}

/* In Mbit/s; 0: the interface does not know. */
static u32 link_speed(struct net_device *ndev)
{
	struct ethtool_link_ksettings link = {};
	int err = -ENODEV;

	rtnl_lock();
	if (ndev->reg_state == NETREG_REGISTERED)
		err = __ethtool_get_link_ksettings(ndev, &link);
	rtnl_unlock();
	return err || link.base.speed == (u32)SPEED_UNKNOWN ? 0 : link.base.speed;
}

/* In units of 100 Mbit/s. What is not known is as in port_speed(), where the core has 1 Gbit/s. */
static int __maybe_unused vrnic_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct net_device *ndev = to_vdev(ibdev)->ndev;
	u32 mbits = SPEED_100000;

	if (ndev->ethtool_ops && ndev->ethtool_ops->get_link_ksettings)
		mbits = link_speed(ndev) ?: SPEED_1000;
	*speed = port_is_up(ndev) ? DIV_ROUND_UP(mbits, SPEED_100) : 0;
	return 0;
}

static int vrnic_query_port(struct ib_device *ibdev, u32 port,
			    struct ib_port_attr *attr)
{
	struct vrnic_dev *dev = to_vdev(ibdev);

	attr->state = port_is_up(dev->ndev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = attr->state == IB_PORT_ACTIVE ?
				   IB_PORT_PHYS_STATE_LINK_UP :
				   IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = vrnic_active_mtu(dev);
	attr->gid_tbl_len = VRNIC_GID_TABLE;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = VRNIC_MAX_MSG;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->ip_gids = true;
	attr->max_vl_num = 1;
	port_speed(dev, attr);
	return 0;
}

static int vrnic_port_immutable(struct ib_device *ibdev, u32 port,
				struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->gid_tbl_len = VRNIC_GID_TABLE;
	immutable->pkey_tbl_len = 1;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static int vrnic_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			    u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static enum rdma_link_layer vrnic_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static void vrnic_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u", VRNIC_ABI_VERSION);
}

static void vrnic_dealloc_driver(struct ib_device *ibdev)
{
	struct vrnic_dev *dev = to_vdev(ibdev);

	vrnic_port_close(dev);
	/* RCU readers that found the device by its interface or GID may use what is freed below */
	synchronize_rcu();
	vrnic_faults_drop(dev);
	vrnic_late_drop(dev);
	cancel_work_sync(&dev->rescan);
	vrnic_wire_close(dev);
	vrnic_pacer_stop(&dev->pacer);
	vrnic_engine_stop(&dev->engine);
	WARN_ON(!xa_empty(&dev->avs));
	vrnic_objects_gone(dev);
	WARN_ON(atomic_long_read(&dev->dm_pages));
	vrnic_mcast_exit(dev);
	vrnic_ids_exit(&dev->types);
	vrnic_ids_exit(&dev->keys);
	xa_destroy(&dev->avs);
	WARN_ON(!xa_empty(&dev->counters));
	xa_destroy(&dev->counters);
	free_percpu(dev->stats);
	vrnic_faults_free(dev);
	netdev_put(dev->ndev, &dev->ndev_tracker);
}

/*
 * The interface was unregistered, or moved, while the core had the device disabled, because it was
 * new, or was moved itself: remove the device.
 */
static void leave_late(struct vrnic_dev *dev)
{
	/* pairs with the barrier in event_dev() */
	smp_mb();
	if (READ_ONCE(dev->left))
		ib_unregister_device_queued(&dev->ibdev);
}

/* Have rescan_work() find what has become of the interface. */
static void rescan_later(struct vrnic_dev *dev)
{
	/* rescan_work() puts the reference */
	if (ib_device_try_get(&dev->ibdev) && !schedule_work(&dev->rescan))
		ib_device_put(&dev->ibdev);
}

/*
 * The core has given the device its name, and enables it. The device's folder in debugfs has the
 * same name. Events of the interface that came before were lost.
 */
static int vrnic_enable_driver(struct ib_device *ibdev)
{
	struct vrnic_dev *dev = to_vdev(ibdev);

	vrnic_faults_show(dev);
	leave_late(dev);
	rescan_later(dev);
	return 0;
}

static const struct ib_device_ops vrnic_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)VRNIC_DRIVER_ID,
	.uverbs_abi_ver = VRNIC_ABI_VERSION,

	.add_gid = vrnic_add_gid,
	.advise_mr = vrnic_advise_mr,
	.alloc_dm = vrnic_alloc_dm,
	.alloc_hw_port_stats = vrnic_alloc_hw_stats,
	.alloc_mr = vrnic_alloc_mr,
	.alloc_mw = vrnic_alloc_mw,
	.alloc_pd = vrnic_alloc_pd,
	.alloc_ucontext = vrnic_alloc_ucontext,
	.alloc_xrcd = vrnic_alloc_xrcd,
	.attach_mcast = vrnic_attach_mcast,
	.counter_alloc_stats = vrnic_qp_counter_alloc_stats,
	.counter_bind_qp = vrnic_qp_counter_bind_op,
	.counter_dealloc = vrnic_qp_counter_dealloc,
	.counter_unbind_qp = vrnic_qp_counter_unbind_op,
	.counter_update_stats = vrnic_qp_counter_update_stats,
	.create_ah = vrnic_create_ah,
	.create_counters = vrnic_create_counters,
	.create_cq = vrnic_create_cq_op,
	.create_flow = vrnic_create_flow,
	.create_qp = vrnic_create_qp,
	.create_rwq_ind_table = vrnic_create_rwq_ind_table,
	.create_srq = vrnic_create_srq,
	.create_user_ah = vrnic_create_ah,
	.create_wq = vrnic_create_wq,
	.dealloc_dm = vrnic_dealloc_dm,
	.dealloc_driver = vrnic_dealloc_driver,
	.dealloc_mw = vrnic_dealloc_mw,
	.dealloc_pd = vrnic_dealloc_pd,
	.dealloc_ucontext = vrnic_dealloc_ucontext,
	.dealloc_xrcd = vrnic_dealloc_xrcd,
	.del_gid = vrnic_del_gid,
	.dereg_mr = vrnic_dereg_mr,
	.destroy_ah = vrnic_destroy_ah,
	.destroy_counters = vrnic_destroy_counters,
	.destroy_cq = vrnic_destroy_cq,
	.destroy_flow = vrnic_destroy_flow,
	.destroy_qp = vrnic_destroy_qp,
	.destroy_rwq_ind_table = vrnic_destroy_rwq_ind_table,
	.destroy_srq = vrnic_destroy_srq,
	.destroy_wq = vrnic_destroy_wq,
	.detach_mcast = vrnic_detach_mcast,
	.device_group = &vrnic_attr_group,
	.disassociate_ucontext = vrnic_disassociate_ucontext,
	.enable_driver = vrnic_enable_driver,
	.fill_res_cq_entry = vrnic_fill_cq,
	.fill_res_mr_entry = vrnic_fill_mr,
	.fill_res_qp_entry = vrnic_fill_qp,
	VRNIC_FILL_SRQ_OP
	.get_dev_fw_str = vrnic_fw_str,
	.get_dma_mr = vrnic_get_dma_mr,
	.get_hw_stats = vrnic_get_hw_stats,
	.get_link_layer = vrnic_link_layer,
	.get_port_immutable = vrnic_port_immutable,
	.map_mr_sg = vrnic_map_mr_sg,
	.mmap = vrnic_mmap,
	.mmap_free = vrnic_mmap_free,
	.modify_ah = vrnic_modify_ah,
	.modify_cq = vrnic_modify_cq,
	.modify_qp = vrnic_modify_qp,
	.modify_srq = vrnic_modify_srq,
	.modify_wq = vrnic_modify_wq,
	.poll_cq = vrnic_poll_cq,
	.post_recv = vrnic_post_recv,
	.post_send = vrnic_post_send,
	.post_srq_recv = vrnic_post_srq_recv,
	.pre_destroy_cq = vrnic_pre_destroy_cq,
	.process_mad = vrnic_process_mad,
	.query_ah = vrnic_query_ah,
	.query_device = vrnic_query_device,
	.query_pkey = vrnic_query_pkey,
	.query_port = vrnic_query_port,
	.query_qp = vrnic_query_qp,
	.query_srq = vrnic_query_srq,
	.query_ucontext = vrnic_query_ucontext,
	.read_counters = vrnic_read_counters,
	.reg_dm_mr = vrnic_reg_dm_mr,
	.reg_user_mr = vrnic_reg_user_mr_op,
	.reg_user_mr_dmabuf = vrnic_reg_user_mr_dmabuf_op,
	.req_notify_cq = vrnic_req_notify_cq,
	.rereg_user_mr = vrnic_rereg_user_mr,
	VRNIC_COMP_CNTR_OPS
	VRNIC_COUNTER_OPS
	VRNIC_QUERY_PORT_SPEED_OP
	VRNIC_RESIZE_CQ_OP,
	VRNIC_REPORT_PORT_EVENT_OP

	INIT_RDMA_OBJ_SIZE(ib_ah, vrnic_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_counters, vrnic_counters, ibcounters),
	INIT_RDMA_OBJ_SIZE(ib_cq, vrnic_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, vrnic_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, vrnic_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, vrnic_ibqp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, vrnic_rwq_table, ibtbl),
	INIT_RDMA_OBJ_SIZE(ib_srq, vrnic_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, vrnic_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, vrnic_xrcd, ibxrcd),
};

static void port_event(struct vrnic_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = 1,
		.event = type,
	};

	ib_dispatch_event(&event);
}

static void port_update(struct vrnic_dev *dev)
{
	bool up = port_is_up(dev->ndev);

	ASSERT_RTNL();
	if (up == dev->port_up)
		return;
	dev->port_up = up;
	port_event(dev, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/*
 * Look at the port's state again, in case an event was lost, and have the core look at the
 * addresses of lo, which it follows only when it is told to.
 */
static void rescan_work(struct work_struct *work)
{
	struct vrnic_dev *dev = container_of(work, struct vrnic_dev, rescan);

	rtnl_lock();
	port_update(dev);
	rtnl_unlock();
	if (dev->ndev->flags & IFF_LOOPBACK)
		rdma_roce_rescan_device(&dev->ibdev);
	ib_device_put(&dev->ibdev);
}

static int device_init(struct vrnic_dev *dev, struct net_device *ndev)
{
	char name[IFNAMSIZ + 8];
	int err;

	xa_init_flags(&dev->avs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ |
		      XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->counters, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	INIT_HLIST_NODE(&dev->link);
	INIT_WORK(&dev->rescan, rescan_work);
	vrnic_pacer_init(&dev->pacer);
	vrnic_wire_prepare(dev);
	err = vrnic_faults_alloc(dev);
	if (err)
		return err;
	vrnic_late_init(dev);
	err = vrnic_ids_init(&dev->keys);
	if (err)
		goto err_faults;
	err = vrnic_ids_init(&dev->types);
	if (err)
		goto err_keys;
	err = vrnic_mcast_init(dev);
	if (err)
		goto err_types;
	dev->stats = alloc_percpu(struct vrnic_stats);
	if (!dev->stats) {
		err = -ENOMEM;
		goto err_mcast;
	}
	snprintf(name, sizeof(name), "vrnic-%s", ndev->name);
	err = vrnic_engine_start(&dev->engine, name, vrnic_engine_threads());
	if (err)
		goto err_stats;
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);
	dev->ndev = ndev;
	/* if the interface has just moved, adding_end() removes the device */
	rcu_read_lock();
	dev->net = vrnic_net(ndev)->net_cookie;
	rcu_read_unlock();
	vrnic_steer_init(&dev->steer, ndev);
	dev->port_up = port_is_up(ndev);
	return 0;

err_stats:
	free_percpu(dev->stats);
err_mcast:
	vrnic_mcast_exit(dev);
err_types:
	vrnic_ids_exit(&dev->types);
err_keys:
	vrnic_ids_exit(&dev->keys);
err_faults:
	vrnic_faults_free(dev);
	return err;
}

static int register_ibdev(struct vrnic_dev *dev, const char *name)
{
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	/* the core leaves this one out: most devices do not ask the kernel for events */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->ndev->dev_addr);
	ibdev->driver_def = vrnic_uapi_defs;
	strscpy(ibdev->node_desc, "vrnic", sizeof(ibdev->node_desc));
	err = ib_device_set_netdev(ibdev, dev->ndev, 1);
	if (err)
		return err;
	vrnic_port_open(dev);
	return ib_register_device(ibdev, name, NULL);
}

/*
 * The core puts a new device into the initial network namespace. In the core's exclusive mode, the
 * process that asked for the device may not see it there, so this function puts it into the
 * namespace of its interface. It does so before the device is registered, with a reference that
 * keeps the namespace until then. In the shared mode a device is visible in every namespace.
 */
static int register_in_netns(struct vrnic_dev *dev, const char *name)
{
	struct net *net;
	int err;

	net = vrnic_net_get(dev->ndev);
	if (!net)
		return -ENODEV;
	if (!rdma_dev_access_netns(&dev->ibdev, net))
		write_pnet(&dev->ibdev.coredev.rdma_net, net);
	err = register_ibdev(dev, name);
	put_net(net);
	return err;
}

/*
 * Open the UDP sockets at once if the interface leads to other hosts. Otherwise the first queue
 * pair that connects to another host opens them, or the first datagram to one.
 */
static void open_wire(struct vrnic_dev *dev, struct net_device *ndev)
{
	int err;

	if (ndev->flags & (IFF_LOOPBACK | IFF_NOARP))
		return;
	err = vrnic_wire_open(dev);
	if (err == -EADDRINUSE)
		pr_warn("vrnic: UDP port 4791 is taken (by rdma_rxe?): the device on %s reaches this host only\n",
			ndev->name);
	else if (err)
		pr_warn("vrnic: no socket for the device on %s: error %d\n",
			ndev->name, err);
}

/* Also one that the core has disabled. The caller has add_lock, so none is added meanwhile. */
static bool has_device(const struct net_device *ndev)
{
	bool has;

	lockdep_assert_held(&add_lock);
	rcu_read_lock();
	has = vrnic_port_dev(ndev);
	rcu_read_unlock();
	return has;
}

static int device_new(const char *name, struct net_device *ndev)
{
	struct vrnic_dev *dev;
	int err;

	dev = ib_alloc_device(vrnic_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	err = device_init(dev, ndev);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		return err;
	}
	/* from here on ib_dealloc_device() undoes device_init(), by vrnic_dealloc_driver() */
	ib_set_device_ops(&dev->ibdev, &vrnic_dev_ops);
	open_wire(dev, ndev);
	err = register_in_netns(dev, name);
	if (err)
		ib_dealloc_device(&dev->ibdev);
	return err;
}

/* Return: false if the interface was unregistered, or has left @net, since it was looked up. */
static bool adding_begin(struct net_device *ndev, const struct net *net)
{
	bool there;

	rtnl_lock();
	there = ndev->reg_state == NETREG_REGISTERED && net_eq(dev_net(ndev), net);
	adding_to = there ? ndev : NULL;
	rtnl_unlock();
	return there;
}

/*
 * If the interface was unregistered while the device was being added, the notifier may have run too
 * early to find the device and remove it. The device's reference would keep the interface for ever,
 * or, if the interface was moved, parts of the device would be in both namespaces. So remove the
 * device here. From here on, the notifier finds the device.
 */
static int adding_end(struct net_device *ndev)
{
	int err = 0;

	rtnl_lock();
	if (adding_to != ndev) {
		vrnic_device_event(ndev, NETDEV_UNREGISTER);
		err = -ENODEV;
	}
	adding_to = NULL;
	rtnl_unlock();
	return err;
}

/**
 * vrnic_device_add() - add a device (`rdma link add`)
 * @name: name of the device, or a pattern with %d
 * @ndev: interface below the device
 *
 * Return: 0, -EEXIST (there is a device on @ndev), or another negative errno.
 */
int vrnic_device_add(const char *name, struct net_device *ndev)
{
	/* only to compare it: where the caller has just found the interface */
	const struct net *net = dev_net(ndev);
	int err = -ENODEV, gone;

	/* the core gives the addresses of a VLAN to the device on the interface below the VLAN */
	if (is_vlan_dev(ndev))
		return -EOPNOTSUPP;
	mutex_lock(&add_lock);
	if (!adding_begin(ndev, net))
		goto out;
	err = has_device(ndev) ? -EEXIST : device_new(name, ndev);
	gone = adding_end(ndev);
	err = err ?: gone;
out:
	mutex_unlock(&add_lock);
	return err;
}

/*
 * Note that an interface leaves its device, and get the device. While the core has the device
 * disabled, there is none to get: then leave_late() removes it.
 */
static struct vrnic_dev *event_dev(struct net_device *ndev, bool leaves)
{
	struct vrnic_dev *dev;

	rcu_read_lock();
	dev = vrnic_port_dev(ndev);
	if (dev && leaves) {
		WRITE_ONCE(dev->left, true);
		WRITE_ONCE(dev->steer.over, true);
	}
	/* pairs with the barrier in leave_late(): it sees @left, or this gets the device */
	smp_mb();
	if (dev && !ib_device_try_get(&dev->ibdev))
		dev = NULL;
	rcu_read_unlock();
	return dev;
}

/*
 * An event of @ndev, which may be the interface of a device. (A new MTU or name needs no update:
 * both are read when they are needed.)
 */
void vrnic_device_event(struct net_device *ndev, unsigned long event)
{
	struct vrnic_dev *dev = event_dev(ndev, event == NETDEV_UNREGISTER);

	ASSERT_RTNL();
	if (event == NETDEV_UNREGISTER && adding_to == ndev)
		adding_to = NULL;
	if (!dev)
		return;
	switch (event) {
	case NETDEV_UNREGISTER:
		vrnic_steer_leave(&dev->steer);
		ib_unregister_device_queued(&dev->ibdev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		port_update(dev);
		break;
	}
	ib_device_put(&dev->ibdev);
}

/* An address of @ndev came or went. */
void vrnic_device_addr_event(struct net_device *ndev)
{
	struct vrnic_dev *dev;

	if (!(ndev->flags & IFF_LOOPBACK))
		return;
	rcu_read_lock();
	dev = vrnic_port_dev(ndev);
	if (dev)
		rescan_later(dev);
	rcu_read_unlock();
}
