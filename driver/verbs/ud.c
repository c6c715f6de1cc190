// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD and GSI queue pairs send datagrams: to targets on this host directly, to others as packets. A
 * datagram either fits into a posted receive of its target, or is dropped without notice.
 */

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "base/gid.h"
#include "base/port.h"
#include "engine/budget.h"
#include "mem/seg.h"
#include "queue/datagram.h"
#include "queue/mcast.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/target.h"
#include "roce/av_route.h"
#include "verbs/flow.h"
#include "vrnic.h"

/* UDP, BTH, DETH, ICRC: bytes that the length in the IP header counts besides the data. */
#define UD_OVERHEAD	(8 + 12 + 8 + 4)

/* A datagram, its sender, and a copy of what the sender's address handle says. */
struct loop_ud {
	struct vrnic_datagram dg;
	struct vrnic_qp *qp;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
	int oif;
};

static void ud_fill_ipv4(struct loop_ud *l)
{
	const struct ib_global_route *grh = &l->attr.grh;
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tos = grh->traffic_class,
		.tot_len = htons(sizeof(ip) + UD_OVERHEAD + ALIGN(l->dg.len, 4)),
		.frag_off = htons(IP_DF),
		.ttl = grh->hop_limit,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, l->sgid.raw + 12, sizeof(ip.saddr));
	memcpy(&ip.daddr, grh->dgid.raw + 12, sizeof(ip.daddr));
	ip_send_check(&ip);
	memcpy(l->dg.grh + VRNIC_GRH_BYTES - sizeof(ip), &ip, sizeof(ip));
	l->dg.network_hdr = RDMA_NETWORK_IPV4;
}

static void ud_fill_ipv6(struct loop_ud *l)
{
	const struct ib_global_route *grh = &l->attr.grh;
	struct ipv6hdr ip = {
		.payload_len = htons(UD_OVERHEAD + ALIGN(l->dg.len, 4)),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = grh->hop_limit,
	};

	ip6_flow_hdr(&ip, grh->traffic_class, htonl(grh->flow_label));
	memcpy(&ip.saddr, l->sgid.raw, sizeof(ip.saddr));
	memcpy(&ip.daddr, grh->dgid.raw, sizeof(ip.daddr));
	memcpy(l->dg.grh, &ip, sizeof(ip));
	l->dg.network_hdr = RDMA_NETWORK_IPV6;
}

/* vrnic_datagram.put. Starts from the first byte, as each member of a group gets the same data. */
static void put_local(struct vrnic_datagram *dg, struct vrnic_sgl *dst)
{
	struct vrnic_sgl *src = dg->arg;

	src->cur = 0;
	src->pos = 0;
	vrnic_sgl_copy(dst, src, dg->len, true);
}

/* Copy the address handle's contents, as the consumer may destroy the handle meanwhile. */
static int ud_fill(struct loop_ud *l, struct vrnic_qp *qp, struct vrnic_op *op)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);
	struct vrnic_av *av;

	rcu_read_lock();
	av = xa_load(&qp->dev->avs, d->ah);
	if (!av || av->pd != qp->ibqp->pd) {
		rcu_read_unlock();
		return VRNIC_VERR_AH;
	}
	l->attr = av->attr;
	l->sgid = av->sgid;
	l->oif = av->oif;
	l->dg.vlan = av->vlan;
	rcu_read_unlock();

	l->qp = qp;
	l->dg.src_qpn = qp->ibqp->qp_num;
	l->dg.len = op->total;
	l->dg.qkey = d->qkey & 1U << 31 ? qp->attr.qkey : d->qkey;
	l->dg.with_imm = d->opcode == VRNIC_OP_SEND_WITH_IMM;
	l->dg.imm = d->imm;
	l->dg.solicited = d->flags & VRNIC_DESC_SOLICITED;
	l->dg.put = put_local;
	l->dg.arg = &qp->sgl;
	if (ipv6_addr_v4mapped((struct in6_addr *)l->sgid.raw))
		ud_fill_ipv4(l);
	else
		ud_fill_ipv6(l);
	return 0;
}

/*
 * Deliver or drop the datagram. Return: false if another runner has locked @to for too long, or if
 * memory of its receive is being brought in.
 */
static bool ud_deliver(struct vrnic_qp *to, struct loop_ud *l)
{
	int err;

	/* without the lock: a sender that @to does not accept must not delay it */
	if (!vrnic_ud_accepts(to, &l->dg)) {
		vrnic_count(l->qp->dev, UD_DROPPED);
		return true;
	}
	if (!vrnic_target_catch(to))
		return false;
	err = vrnic_ud_deliver(to, &l->dg);
	if (!err) {
		vrnic_count_moved(l->qp->dev, to->dev, l->dg.len);
		l->qp->xmit_bytes += l->dg.len;
		to->target_rcvd += l->dg.len;
	} else if (err != -EAGAIN) {
		vrnic_count(l->qp->dev, UD_DROPPED);
	}
	vrnic_target_unlock(to);
	return err != -EAGAIN;
}

static struct vrnic_qp *find_target(struct loop_ud *l, u32 qpn)
{
	const union ib_gid *dgid = &l->attr.grh.dgid;
	struct vrnic_dev *dev = l->qp->dev;
	struct vrnic_qp *to;

	if (qpn == 1)
		return vrnic_gsi_by_gid(dev, dgid);
	to = vrnic_qp_get(qpn);
	if (to && !vrnic_reaches(dev, dgid, to->dev)) {
		vrnic_qp_put(to);
		to = NULL;
	}
	return to;
}

#define TRIES	32

/*
 * Give up a datagram if its target is still locked at the last of TRIES retries. UD may lose
 * datagrams, and the sender's datagrams to other targets must not wait for this target.
 */
static bool give_up(struct vrnic_qp *qp, struct vrnic_op *op)
{
	if (op->tries++ < TRIES)
		return false;
	vrnic_count(qp->dev, UD_DROPPED);
	return true;
}

/* Have the timer try again when what the datagram needs may be there. */
static enum vrnic_step ud_wait(struct vrnic_qp *qp, u64 ns, enum vrnic_op_wait what)
{
	qp->op.waits = what;
	qp->run.wait_until = ktime_get_ns() + ns;
	return VRNIC_STEP_WAIT;
}

/* The device on an interface without a network of its own gets sockets for its first datagram. */
static enum vrnic_step send_wire(struct loop_ud *l, struct vrnic_op *op)
{
	struct vrnic_qp *qp = l->qp;

	if (vrnic_wire_ready(qp->dev) == -EAGAIN)
		return ud_wait(qp, VRNIC_WIRE_OPENING_NS, VRNIC_WAIT_WIRE);
	vrnic_ud_transmit(qp, op, &l->dg, &l->attr, &l->sgid, l->oif);
	return VRNIC_STEP_DONE;
}

/*
 * Send to the group members on this device, at one unit of the budget each, and then to the network
 * if the device has sockets.
 */
static enum vrnic_step send_group(struct loop_ud *l, struct vrnic_op *op,
				  struct vrnic_budget *budget)
{
	struct vrnic_qp *qp = l->qp, *to;
	bool busy;

	while (budget->descs) {
		to = vrnic_mcast_next(qp->dev, &l->attr.grh.dgid, &op->member);
		if (!to) {
			if (READ_ONCE(qp->dev->wire))
				vrnic_ud_transmit(qp, op, &l->dg, &l->attr, &l->sgid,
						  l->oif);
			return VRNIC_STEP_DONE;
		}
		/* a sender does not receive its own multicast: IBTA 10.5.2.2 */
		busy = to != qp && !ud_deliver(to, l);
		vrnic_qp_put(to);
		if (busy && !give_up(qp, op))
			return ud_wait(qp, VRNIC_TARGET_BUSY_NS, VRNIC_WAIT_BUSY);
		op->tries = 0;
		op->member++;
		vrnic_budget_spend(budget, 1);
	}
	return VRNIC_STEP_MORE;
}

static enum vrnic_step send_local(struct loop_ud *l, struct vrnic_op *op)
{
	struct vrnic_qp *to = find_target(l, vrnic_op_desc(op)->dest_qpn);
	bool done;

	if (!to) {
		vrnic_count(l->qp->dev, UD_DROPPED);
		return VRNIC_STEP_DONE;
	}
	done = ud_deliver(to, l);
	vrnic_qp_put(to);
	if (done || give_up(l->qp, op))
		return VRNIC_STEP_DONE;
	return ud_wait(l->qp, VRNIC_TARGET_BUSY_NS, VRNIC_WAIT_BUSY);
}

static enum vrnic_step send_one(struct loop_ud *l, struct vrnic_op *op)
{
	const union ib_gid *dgid = &l->attr.grh.dgid;
	struct vrnic_qp *qp = l->qp;

	if (!vrnic_force_roce() && vrnic_gid_is_local(qp->dev, dgid))
		return send_local(l, op);
	return send_wire(l, op);
}

static enum vrnic_step ud_send(struct loop_ud *l, struct vrnic_op *op,
			       struct vrnic_budget *budget)
{
	if (rdma_is_multicast_addr((struct in6_addr *)l->attr.grh.dgid.raw))
		return send_group(l, op, budget);
	return send_one(l, op);
}

/**
 * vrnic_loop_execute_ud() - execute a SEND of a UD or GSI queue pair
 * @qp: sender
 * @op: operation that vrnic_op_check() accepted
 * @budget: bounds this run; a datagram is never split, but some members of a group may have to wait
 *	for the next run
 *
 * Return: what to do next with the operation.
 */
enum vrnic_step vrnic_loop_execute_ud(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget)
{
	struct loop_ud l = {};
	enum vrnic_step step;
	int verr;

	if (op->total > ib_mtu_enum_to_int(vrnic_active_mtu(qp->dev)))
		return vrnic_op_fail(op, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH);
	verr = ud_fill(&l, qp, op);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	verr = vrnic_datagram_open(qp, op);
	if (verr == -EAGAIN)
		return ud_wait(qp, vrnic_page_patience(&op->tries), VRNIC_WAIT_PAGE);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	step = ud_send(&l, op, budget);
	vrnic_sgl_put(&qp->sgl);
	if (step != VRNIC_STEP_DONE)
		return step;
	vrnic_count_add(qp->dev, BYTES_SENT, op->total);
	budget->bytes -= min(budget->bytes, op->total);
	return VRNIC_STEP_DONE;
}
