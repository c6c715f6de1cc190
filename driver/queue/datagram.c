// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A datagram leaves a queue pair, or arrives at one: that of UD, from this host or another one, or
 * a raw packet.
 */

#include "mem/seg.h"
#include "queue/datagram.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/recv.h"

/**
 * vrnic_datagram_open() - find the memory of a datagram that is to be sent
 * @qp: sender
 * @op: operation that vrnic_op_check() accepted
 *
 * Return: 0: @qp->sgl describes the memory, and the caller has to put it; -EAGAIN: it is being
 * brought in; or enum vrnic_vendor_err.
 */
int vrnic_datagram_open(struct vrnic_qp *qp, struct vrnic_op *op)
{
	int verr = vrnic_op_open(qp, op);

	if (verr)
		return verr;
	verr = vrnic_sgl_ready_all(&qp->sgl, op->total, false, &qp->send_wait);
	if (verr)
		vrnic_sgl_put(&qp->sgl);
	return verr;
}

/* Does @to take @dg, by type, state and Q_Key? Needs no lock; without, the state may yet change. */
bool vrnic_ud_accepts(const struct vrnic_qp *to, const struct vrnic_datagram *dg)
{
	enum ib_qp_state state = READ_ONCE(to->state);

	if (to->type != IB_QPT_UD && to->type != IB_QPT_GSI)
		return false;
	if (state != IB_QPS_RTR && state != IB_QPS_RTS &&
	    state != IB_QPS_SQD && state != IB_QPS_SQE)
		return false;
	return to->attr.qkey == dg->qkey;
}

/* The receive names memory that @to may not write: fail the receive and @to. */
static void fail_target(struct vrnic_qp *to, u8 status, int verr)
{
	struct vrnic_cqe cqe = { .status = status, .vendor_err = verr };

	vrnic_recv_complete(to, &cqe, true);
	vrnic_qp_error(to, -1);
}

/* RoCE has no service level, so the completion's sl tells a program which IP version @dg had. */
static u8 sl_of(const struct vrnic_datagram *dg)
{
	return dg->network_hdr == RDMA_NETWORK_IPV4 ? VRNIC_WC_SL_IPV4 :
						      VRNIC_WC_SL_IPV6;
}

static void complete_target(struct vrnic_qp *to, const struct vrnic_datagram *dg)
{
	struct vrnic_cqe cqe = {
		.opcode = IB_WC_RECV,
		.byte_len = dg->len + VRNIC_GRH_BYTES,
		.src_qp = dg->src_qpn,
		.sl = sl_of(dg),
		.wc_flags = VRNIC_WC_GRH,
		.network_hdr = dg->network_hdr,
		.vlan = dg->vlan,
	};

	if (dg->with_imm) {
		cqe.imm = dg->imm;
		cqe.wc_flags |= VRNIC_WC_WITH_IMM;
	}
	vrnic_recv_complete(to, &cqe, dg->solicited);
}

/* Find the memory of the receive, of which @n bytes are to be written now. */
static int open_recv(struct vrnic_qp *to, u64 n)
{
	int verr = vrnic_sgl_local(&to->key_user, to->recv.sge, to->recv.num_sge,
				   IB_ACCESS_LOCAL_WRITE, NULL, &to->recv_sgl);

	if (verr)
		return verr;
	verr = vrnic_sgl_ready_all(&to->recv_sgl, n, true, &to->recv_wait);
	if (verr)
		vrnic_sgl_put(&to->recv_sgl);
	return verr;
}

/**
 * vrnic_datagram_begin() - open the receive that gets a datagram
 * @to: target; the caller holds its resp_lock
 * @len: bytes that are to be written to @to->recv_sgl
 *
 * Return: 0: the caller has to write, to put @to->recv_sgl, and to complete the receive; -EAGAIN:
 * memory of the receive is being brought in; -EINVAL: @to has no valid receive posted, or it is too
 * small. A receive that is too small stays for the next datagram.
 */
int vrnic_datagram_begin(struct vrnic_qp *to, u32 len)
{
	int verr;

	if (vrnic_recv_take(to))
		return -EINVAL;
	/* anybody may send a datagram that is too long, so the target's receive must not fail */
	if (len > vrnic_sge_total(to->recv.sge, to->recv.num_sge))
		return -EINVAL;
	verr = open_recv(to, len);
	if (verr == -EAGAIN)
		return verr;
	if (verr) {
		fail_target(to, IB_WC_LOC_PROT_ERR, verr);
		return -EINVAL;
	}
	return 0;
}

/**
 * vrnic_ud_deliver() - put a datagram into a receive of its target
 * @to: target; the caller holds its resp_lock
 * @dg: datagram
 *
 * Return: 0; -EAGAIN or -EINVAL: as vrnic_datagram_begin(); -EINVAL also if @to does not take the
 * datagram.
 */
int vrnic_ud_deliver(struct vrnic_qp *to, struct vrnic_datagram *dg)
{
	struct vrnic_sgl *dst = &to->recv_sgl;
	int err;

	if (!vrnic_ud_accepts(to, dg))
		return -EINVAL;
	err = vrnic_datagram_begin(to, dg->len + VRNIC_GRH_BYTES);
	if (err)
		return err;
	vrnic_sgl_write(dst, dg->grh, VRNIC_GRH_BYTES, false);
	dg->put(dg, dst);
	vrnic_sgl_put(dst);
	complete_target(to, dg);
	return 0;
}
