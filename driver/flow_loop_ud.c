// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD and GSI over the loopback: a datagram either fits a posted receive of its
 * target or is dropped; nobody is told.
 */

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "flow.h"
#include "vrnic.h"

/* UDP, BTH, DETH, ICRC: what the headers say a datagram has around its data. */
#define UD_OVERHEAD	(8 + 12 + 8 + 4)

/**
 * struct datagram - on its way
 * @qp: sender
 * @d: descriptor
 * @dgid: destination
 * @sgid: sender's GID
 * @sl: service level
 * @qkey: what the target has to have
 * @len: bytes of data
 * @grh: what a receive buffer starts with
 * @network_hdr: kind of header in @grh
 */
struct datagram {
	struct vrnic_qp *qp;
	const struct vrnic_desc *d;
	union ib_gid dgid;
	union ib_gid sgid;
	u8 sl;
	u32 qkey;
	u32 len;
	u8 grh[VRNIC_GRH_BYTES];
	u8 network_hdr;
};

static void fill_ipv4(struct datagram *dg, const struct ib_global_route *grh)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tos = grh->traffic_class,
		.tot_len = htons(sizeof(ip) + UD_OVERHEAD + ALIGN(dg->len, 4)),
		.frag_off = htons(IP_DF),
		.ttl = grh->hop_limit,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, dg->sgid.raw + 12, sizeof(ip.saddr));
	memcpy(&ip.daddr, dg->dgid.raw + 12, sizeof(ip.daddr));
	ip_send_check(&ip);
	memcpy(dg->grh + VRNIC_GRH_BYTES - sizeof(ip), &ip, sizeof(ip));
	dg->network_hdr = RDMA_NETWORK_IPV4;
}

static void fill_ipv6(struct datagram *dg, const struct ib_global_route *grh)
{
	struct ipv6hdr ip = {
		.payload_len = htons(UD_OVERHEAD + ALIGN(dg->len, 4)),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = grh->hop_limit,
	};

	ip6_flow_hdr(&ip, grh->traffic_class, htonl(grh->flow_label));
	memcpy(&ip.saddr, dg->sgid.raw, sizeof(ip.saddr));
	memcpy(&ip.daddr, dg->dgid.raw, sizeof(ip.daddr));
	memcpy(dg->grh, &ip, sizeof(ip));
	dg->network_hdr = RDMA_NETWORK_IPV6;
}

/* Copy what the address handle says; it may go away right after. */
static int fill(struct datagram *dg, struct vrnic_qp *qp, struct vrnic_op *op)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);
	struct rdma_ah_attr attr;
	struct vrnic_av *av;

	rcu_read_lock();
	av = xa_load(&qp->dev->avs, d->ah);
	if (!av || av->pd != qp->ibqp->pd) {
		rcu_read_unlock();
		return VRNIC_VERR_AH;
	}
	attr = av->attr;
	dg->sgid = av->sgid;
	rcu_read_unlock();

	dg->qp = qp;
	dg->d = d;
	dg->dgid = attr.grh.dgid;
	dg->sl = attr.sl;
	dg->len = op->total;
	dg->qkey = d->qkey & 1U << 31 ? qp->attr.qkey : d->qkey;
	if (ipv6_addr_v4mapped((struct in6_addr *)dg->sgid.raw))
		fill_ipv4(dg, &attr.grh);
	else
		fill_ipv6(dg, &attr.grh);
	return 0;
}

static bool accepts(const struct vrnic_qp *to, const struct datagram *dg)
{
	enum ib_qp_state state = READ_ONCE(to->state);

	if (to->type != IB_QPT_UD && to->type != IB_QPT_GSI)
		return false;
	if (state != IB_QPS_RTR && state != IB_QPS_RTS &&
	    state != IB_QPS_SQD && state != IB_QPS_SQE)
		return false;
	return to->attr.qkey == dg->qkey;
}

/* Something is wrong with the receive itself: it fails, and its queue pair. */
static void fail_target(struct vrnic_qp *to, u8 status, int verr)
{
	struct vrnic_cqe cqe = { .status = status, .vendor_err = verr };

	vrnic_recv_complete(to, &cqe, true);
	vrnic_qp_error(to, -1);
}

static void complete_target(struct vrnic_qp *to, const struct datagram *dg)
{
	struct vrnic_cqe cqe = {
		.opcode = IB_WC_RECV,
		.byte_len = dg->len + VRNIC_GRH_BYTES,
		.src_qp = dg->qp->ibqp->qp_num,
		.sl = dg->sl,
		.wc_flags = VRNIC_WC_GRH,
		.network_hdr = dg->network_hdr,
	};

	if (dg->d->opcode == VRNIC_OP_SEND_WITH_IMM) {
		cqe.imm = dg->d->imm;
		cqe.wc_flags |= VRNIC_WC_WITH_IMM;
	}
	vrnic_recv_complete(to, &cqe, dg->d->flags & VRNIC_DESC_SOLICITED);
}

/* Header and data go straight into the target's buffer. */
static void put_data(struct vrnic_sgl *dst, struct datagram *dg)
{
	struct vrnic_sgl *src = &dg->qp->sgl;
	u64 done = 0, run;
	void *to;

	while (done < VRNIC_GRH_BYTES) {
		to = vrnic_sgl_run(dst, VRNIC_GRH_BYTES - done, &run);
		memcpy(to, dg->grh + done, run);
		dst->pos += run;
		done += run;
	}
	/* a multicast sends the same data to each member */
	src->cur = 0;
	src->pos = 0;
	vrnic_sgl_copy(dst, src, dg->len, true);
}

static bool deliver_locked(struct vrnic_qp *to, struct datagram *dg)
{
	struct vrnic_sgl *dst = &to->recv_sgl;
	int verr;

	if (!accepts(to, dg) || vrnic_recv_take(to))
		return false;
	if (dg->len + VRNIC_GRH_BYTES >
	    vrnic_sge_total(to->recv.sge, to->recv.num_sge)) {
		fail_target(to, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH);
		return false;
	}
	verr = vrnic_sgl_local(to, to->recv.sge, to->recv.num_sge,
			       IB_ACCESS_LOCAL_WRITE, NULL, dst);
	if (verr) {
		fail_target(to, IB_WC_LOC_PROT_ERR, verr);
		return false;
	}
	put_data(dst, dg);
	vrnic_sgl_put(dst);
	complete_target(to, dg);
	return true;
}

static void deliver(struct vrnic_qp *to, struct datagram *dg)
{
	bool done;

	mutex_lock(&to->resp_lock);
	done = deliver_locked(to, dg);
	mutex_unlock(&to->resp_lock);
	if (!done)
		vrnic_count(dg->qp->dev, UD_DROPPED);
}

/* A sender does not hear itself: IBTA 10.5.2.2. */
static void deliver_member(struct vrnic_qp *to, void *arg)
{
	struct datagram *dg = arg;

	if (to != dg->qp)
		deliver(to, dg);
}

static struct vrnic_qp *find_target(struct datagram *dg)
{
	struct vrnic_dev *dev = dg->qp->dev;
	struct vrnic_qp *to;

	if (dg->d->dest_qpn == 1)
		return vrnic_gsi_by_gid(dev, &dg->dgid);
	to = vrnic_qp_get(dg->d->dest_qpn);
	if (to && !vrnic_reaches(dev, &dg->dgid, to->dev)) {
		vrnic_qp_put(to);
		to = NULL;
	}
	return to;
}

static void send(struct datagram *dg)
{
	struct vrnic_qp *to;

	if (rdma_is_multicast_addr((struct in6_addr *)dg->dgid.raw)) {
		vrnic_mcast_for_each(dg->qp->dev, &dg->dgid, deliver_member, dg);
		return;
	}
	to = find_target(dg);
	if (!to) {
		vrnic_count(dg->qp->dev, UD_DROPPED);
		return;
	}
	deliver(to, dg);
	vrnic_qp_put(to);
}

/**
 * vrnic_loop_execute_ud() - execute a SEND of a UD or GSI queue pair
 * @qp: sender
 * @op: checked by vrnic_op_check()
 * @budget: a datagram is never split
 */
enum vrnic_step vrnic_loop_execute_ud(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget)
{
	struct datagram dg = {};
	int verr;

	if (op->total > ib_mtu_enum_to_int(vrnic_active_mtu(qp->dev)))
		return vrnic_op_fail(op, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH);
	verr = fill(&dg, qp, op);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	verr = vrnic_op_open(qp, op);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	send(&dg);
	vrnic_sgl_put(&qp->sgl);
	vrnic_count_add(qp->dev, BYTES_SENT, op->total);
	budget->bytes -= min(budget->bytes, op->total);
	return VRNIC_STEP_DONE;
}
