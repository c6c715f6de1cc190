// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sends frames. The request is complete when the interface has the frame, so the frame has a copy
 * of the data. As in hardware, a frame to the interface's own address comes back to the device and
 * does not go to the network, and a frame to a group does both.
 */

#include <linux/capability.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <net/net_namespace.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/frame.h"
#include "mem/seg.h"
#include "queue/datagram.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/target.h"
#include "raw/raw.h"
#include "raw/steer.h"
#include "roce/rate.h"
#include "vrnic.h"

/* A frame up to this size is in one piece. Of others, so much is: enough for all headers. */
#define LINEAR_MAX	2048
#define LINEAR_HEAD	256

/* A frame is longer than this on no interface that may be below a device. */
#define MTU_MAX		SZ_64K

/*
 * A full queue of the interface is waited for so often, so long at first, and twice as long each
 * time: 25 ms in all. Not more often, as others may see each of the tries: packet sockets, or a
 * mirror.
 */
#define FULL_TRIES	8
#define FULL_NS		(100 * NSEC_PER_USEC)

/*
 * May the calling process have the frames of the interface, as with a packet socket? The core asks
 * for CAP_NET_RAW only; but a container may have this in its own network, and see the devices of
 * others.
 */
bool vrnic_raw_allowed(const struct vrnic_dev *dev)
{
	const struct net *net = current->nsproxy->net_ns;

	/* an interface that has left the device may be in another namespace */
	return vrnic_in_net(dev, net) && !READ_ONCE(dev->steer.over) &&
	       ns_capable(net->user_ns, CAP_NET_RAW);
}

/* Has the interface Ethernet frames? */
bool vrnic_raw_supported(const struct vrnic_dev *dev)
{
	return dev->ndev->type == ARPHRD_ETHER || dev->ndev->type == ARPHRD_LOOPBACK;
}

static enum vrnic_step raw_wait(struct vrnic_qp *qp, u64 ns, enum vrnic_op_wait what)
{
	qp->op.waits = what;
	qp->run.wait_until = ktime_get_ns() + ns;
	return VRNIC_STEP_WAIT;
}

/* Make a buffer for a frame of @len bytes: in one piece, or with fragments. */
static struct sk_buff *frame_alloc(const struct net_device *ndev, u32 len)
{
	u32 linear = len > LINEAR_MAX ? LINEAR_HEAD : len;
	u32 head = LL_RESERVED_SPACE(ndev);
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(head + linear + READ_ONCE(ndev->needed_tailroom), len - linear,
				   get_order(SZ_16K), &err, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, head);
	skb_put(skb, linear);
	skb->data_len = len - linear;
	skb->len = len;
	return skb;
}

static void frame_fill(struct sk_buff *skb, struct vrnic_sgl *src)
{
	int i;

	src->cur = 0;
	src->pos = 0;
	vrnic_sgl_read(src, skb->data, skb_headlen(skb));
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		vrnic_sgl_read(src, skb_frag_address(frag), skb_frag_size(frag));
	}
}

/* Tell the stack where headers are, as far as they are what they seem. */
static void set_headers(struct sk_buff *skb, struct net_device *ndev)
{
	u32 net = ETH_HLEN;

	skb->dev = ndev;
	skb_reset_mac_header(skb);
	skb->protocol = eth_hdr(skb)->h_proto;
	if (eth_type_vlan(skb->protocol) && skb_headlen(skb) >= ETH_HLEN + VLAN_HLEN)
		net += VLAN_HLEN;
	skb_set_network_header(skb, net);
	skb_probe_transport_header(skb);
}

static struct sk_buff *frame_make(struct vrnic_qp *qp, u32 len)
{
	struct net_device *ndev = qp->dev->ndev;
	struct sk_buff *skb = frame_alloc(ndev, len);

	if (!skb)
		return NULL;
	frame_fill(skb, &qp->sgl);
	set_headers(skb, ndev);
	return skb;
}

/* A copy of a frame to a group goes to the device's other queue pairs. */
static void loop_group(struct vrnic_qp *qp, struct vrnic_op *op, struct sk_buff *skb)
{
	struct vrnic_steer *steer = &qp->dev->steer;
	struct sk_buff *copy;

	/* @op->member: not again when the frame waited for the network */
	if (list_empty(&steer->rules) || op->member++)
		return;
	copy = skb_clone(skb, GFP_ATOMIC);
	if (!copy)
		return;
	__skb_pull(copy, ETH_HLEN);
	local_bh_disable();
	rcu_read_lock();
	if (!vrnic_steer_frame(steer, copy, qp))
		kfree_skb(copy);
	rcu_read_unlock();
	local_bh_enable();
}

/* The frame comes to the interface, as if from the network. */
static int loop_own(struct sk_buff *skb, struct net_device *ndev)
{
	skb->protocol = eth_type_trans(skb, ndev);
	return netif_rx(skb) == NET_RX_SUCCESS ? 0 : -ENOBUFS;
}

/* Return: 0; NET_XMIT_DROP: a queue was full; or a negative errno. */
static int frame_send(struct vrnic_qp *qp, struct vrnic_op *op, struct sk_buff *skb)
{
	struct net_device *ndev = qp->dev->ndev;
	const u8 *to = eth_hdr(skb)->h_dest;

	if (READ_ONCE(qp->dev->steer.over) || !netif_running(ndev) || !netif_carrier_ok(ndev)) {
		kfree_skb(skb);
		return -ENETDOWN;
	}
	/* all frames of lo come back */
	if (ndev->flags & IFF_LOOPBACK)
		return dev_queue_xmit(skb);
	if (is_multicast_ether_addr(to))
		loop_group(qp, op, skb);
	else if (ether_addr_equal(to, ndev->dev_addr))
		return loop_own(skb, ndev);
	return dev_queue_xmit(skb);
}

static void raw_count_sent(struct vrnic_qp *qp, u32 len)
{
	vrnic_count(qp->dev, SENT_PKTS);
	vrnic_count_add(qp->dev, XMIT_BYTES, len);
	vrnic_count_add(qp->dev, BYTES_SENT, len);
	qp->sent_pkts++;
	qp->xmit_bytes += len;
}

/* Make and send the frame. A frame that could not be sent counts as lost, as on any Ethernet. */
static enum vrnic_step send_frame(struct vrnic_qp *qp, struct vrnic_op *op, u32 mtu)
{
	struct sk_buff *skb;
	int err = -ENOMEM;

	vrnic_sends_in_order(&qp->run);
	skb = frame_make(qp, op->total);
	/* in the copy: the program may change the data meanwhile */
	if (skb && !vrnic_frame_len_ok(skb->data, op->total, mtu)) {
		kfree_skb(skb);
		return vrnic_op_fail(op, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH);
	}
	if (skb)
		err = frame_send(qp, op, skb);
	if (err == NET_XMIT_DROP && op->tries < FULL_TRIES)
		return raw_wait(qp, FULL_NS << op->tries++, VRNIC_WAIT_FULL);
	if (err && err != NET_XMIT_CN)
		vrnic_count(qp->dev, SEND_ERR);
	else
		raw_count_sent(qp, op->total);
	return VRNIC_STEP_DONE;
}

/**
 * vrnic_raw_execute() - execute a SEND of a raw packet queue pair
 * @qp: sender
 * @op: operation that vrnic_op_check() accepted
 * @budget: bounds this run
 *
 * Return: what to do next with the operation.
 */
enum vrnic_step vrnic_raw_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				  struct vrnic_budget *budget)
{
	u32 mtu = min_t(u32, READ_ONCE(qp->dev->ndev->mtu), MTU_MAX);
	enum vrnic_step step;
	u64 spent;
	int verr;

	if (op->total < VRNIC_ETH_BYTES ||
	    op->total > VRNIC_ETH_BYTES + VRNIC_TAG_BYTES + mtu)
		return vrnic_op_fail(op, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH);
	verr = vrnic_datagram_open(qp, op);
	if (verr == -EAGAIN)
		return raw_wait(qp, vrnic_page_patience(&op->tries), VRNIC_WAIT_PAGE);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	step = send_frame(qp, op, mtu);
	vrnic_sgl_put(&qp->sgl);
	if (step == VRNIC_STEP_DONE) {
		spent = min(budget->bytes, op->total);
		budget->bytes -= spent;
		/* the caller charges what the budget has lost; the frame may be longer */
		vrnic_rate_sent(qp, op->total - spent);
	}
	return step;
}
