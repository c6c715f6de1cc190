// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* UD and GSI over the wire: one packet for each message, without acknowledgment. */

#include <net/ip.h>
#include <net/ipv6.h>

#include "base/gid.h"
#include "compat/compat.h"
#include "engine/engine.h"
#include "lib/hdr.h"
#include "queue/datagram.h"
#include "queue/op.h"
#include "queue/qp.h"
#include "roce/av_route.h"
#include "roce/roce.h"
#include "roce/socket.h"
#include "verbs/flow.h"
#include "vrnic.h"

/*
 * Does @av have the addresses and interface of @path? Its handle may have been modified meanwhile.
 */
static bool leads_there(const struct vrnic_av *av, const struct vrnic_path *path, int oif)
{
	return av->oif == oif && !memcmp(&av->sgid, &path->sgid, sizeof(path->sgid)) &&
	       !memcmp(&av->attr.grh.dgid, &path->dgid, sizeof(path->dgid));
}

/*
 * Find the route of a datagram: that of the previous one, if the network still accepts it. All
 * queue pairs that use the address vector share the route, whatever their source ports are. Under
 * RCU.
 *
 * The vector keeps only routes that the network caches itself. A route that the network makes for
 * each look-up, as for a multicast address, is memory for which no process pays, and each vector
 * could keep one.
 */
static void find_route(struct vrnic_qp *qp, u32 ah, struct vrnic_path *path, int oif)
{
	struct dst_entry *kept, *found;
	struct vrnic_av *av;
	u32 cookie;

	av = xa_load(&qp->dev->avs, ah);
	if (!av || !leads_there(av, path, oif))
		return;
	kept = vrnic_av_route(av, &cookie);
	path->dst = kept;
	path->cookie = cookie;
	found = vrnic_path_route(qp, path);
	if (found && !vrnic_dst_is_cached(found))
		found = NULL;
	/* store a new route, or the same route with a new cookie, which dst_check() needs */
	if (found != kept || path->cookie != cookie)
		vrnic_av_keep(qp->dev, av, found, path->cookie);
}

/**
 * vrnic_ud_transmit() - send a datagram to the wire
 * @qp: sender
 * @op: operation; its data are in @qp->sgl
 * @dg: datagram
 * @attr: address vector
 * @sgid: sender's address
 * @oif: index of the interface that has @sgid
 *
 * The request completes when this returns, so the packet has a copy of the data.
 */
void vrnic_ud_transmit(struct vrnic_qp *qp, struct vrnic_op *op,
		       const struct vrnic_datagram *dg,
		       const struct rdma_ah_attr *attr,
		       const union ib_gid *sgid, int oif)
{
	u32 dqpn = vrnic_op_desc(op)->dest_qpn;
	struct vrnic_deth deth = {
		.qkey = cpu_to_be32(dg->qkey),
		.sqpn = cpu_to_be32(dg->src_qpn),
	};
	__be32 imm = (__force __be32)dg->imm;
	struct vrnic_tx tx = {
		.opcode = VRNIC_SVC_UD | (dg->with_imm ? VRNIC_BTH_SEND_ONLY_IMM :
							 VRNIC_BTH_SEND_ONLY),
		.solicited = dg->solicited,
		.copy = true,
		.dqpn = dqpn,
		.psn = qp->ud_psn++,
		.src = &qp->sgl,
		.len = dg->len,
	};
	struct vrnic_path path;

	memcpy(tx.ext, &deth, sizeof(deth));
	tx.ext_len = sizeof(deth);
	if (dg->with_imm) {
		memcpy(tx.ext + tx.ext_len, &imm, sizeof(imm));
		tx.ext_len += sizeof(imm);
	}
	qp->sgl.cur = 0;
	qp->sgl.pos = 0;
	if (vrnic_path_init(&path, qp->dev, sgid, attr, oif, qp->ibqp->qp_num, dqpn)) {
		vrnic_count(qp->dev, UD_DROPPED);
		return;
	}
	vrnic_sends_in_order(&qp->run);
	/* vrnic_wire_end() waits for RCU readers, so the route's network namespace stays */
	rcu_read_lock();
	find_route(qp, vrnic_op_desc(op)->ah, &path, oif);
	vrnic_roce_xmit(qp, &path, &tx);
	vrnic_path_drop(&path);
	rcu_read_unlock();
}

/* Make the GRH: an IPv6 header, or an IPv4 header in the last 20 bytes. */
static void put_grh(struct vrnic_datagram *dg, const struct sk_buff *skb,
		    bool ipv6)
{
	u32 len = ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);

	memcpy(dg->grh + VRNIC_GRH_BYTES - len, skb_network_header(skb), len);
	dg->network_hdr = ipv6 ? RDMA_NETWORK_IPV6 : RDMA_NETWORK_IPV4;
}

static void ud_put_payload(struct vrnic_datagram *dg, struct vrnic_sgl *dst)
{
	vrnic_pkt_copy(dg->arg, dst, true);
}

/*
 * Is the destination an address of this device? vrnic_mcast_receive() has found the members of a
 * multicast group. A packet that names a queue pair must not have a group as its destination.
 */
static bool for_device(struct vrnic_qp *qp, struct sk_buff *skb)
{
	union ib_gid from, to;

	if (vrnic_pkt(skb)->qpn == VRNIC_BTH_QPN)
		return true;
	vrnic_pkt_gids(skb, &from, &to);
	return vrnic_reaches(qp->dev, &to, qp->dev);
}

/**
 * vrnic_ud_receive() - receive a datagram from the wire
 * @qp: target
 * @skb: packet; freed here
 */
void vrnic_ud_receive(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_deth *deth = vrnic_pkt_ext(skb);
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_datagram dg = {
		.qkey = be32_to_cpu(deth->qkey),
		.src_qpn = be32_to_cpu(deth->sqpn) & VRNIC_BTH_QPN,
		.len = pkt->len,
		.vlan = pkt->vlan,
		.with_imm = pkt->info & VRNIC_PKT_IMM,
		.solicited = pkt->solicited,
		.put = ud_put_payload,
		.arg = skb,
	};

	/* trains have no extension headers; vrnic_pkt_welcome() admits only packets with a DETH */
	if (WARN_ON_ONCE(pkt->train)) {
		kfree_skb(skb);
		return;
	}
	if (dg.with_imm)
		dg.imm = (__force u32)*(const __be32 *)(deth + 1);
	put_grh(&dg, skb, pkt->ipv6);
	if (!for_device(qp, skb) || vrnic_ud_deliver(qp, &dg))
		vrnic_count(qp->dev, UD_DROPPED);
	kfree_skb(skb);
}
