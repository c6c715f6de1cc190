// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_post_send(). */

#include <errno.h>

#include "send.h"

/* Inline data of a struct ibv_send_wr comes as segments. */
static int put_inline(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[VRNIC_MAX_SGE];

	if ((unsigned int)wr->num_sge > VRNIC_MAX_SGE)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
		};
	return vrnic_desc_set_inline(qp, wr->num_sge, bufs);
}

/*
 * The value of an ATOMIC WRITE is copied into the descriptor, so the program has to set
 * IBV_SEND_INLINE: nothing would check a local key.
 */
static int put_value(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	if (!(wr->send_flags & IBV_SEND_INLINE) || wr->num_sge != 1 ||
	    wr->sg_list[0].length != sizeof(uint64_t))
		return EINVAL;
	return vrnic_desc_set_value(qp,
				    (void *)(uintptr_t)wr->sg_list[0].addr);
}

static int put_payload(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	switch (qp->build.op->payload) {
	case VRNIC_PAYLOAD_NONE:
		return wr->send_flags & IBV_SEND_INLINE ? EINVAL : 0;
	case VRNIC_PAYLOAD_VALUE:
		return put_value(qp, wr);
	default:
		if (wr->send_flags & IBV_SEND_INLINE)
			return put_inline(qp, wr);
		return vrnic_desc_set_sges(qp, (unsigned int)wr->num_sge,
					   wr->sg_list);
	}
}

/* Fill in what the operation needs beside its data. */
static int put_operands(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->build.op->with_imm)
		qp->build.desc->imm = wr->imm_data;	/* or invalidate_rkey */
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (qp->vqp.qp.qp_type != IBV_QPT_UD)
			return 0;
		return vrnic_desc_set_ud(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
					 wr->wr.ud.remote_qkey);
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		vrnic_desc_set_remote(qp, wr->wr.rdma.remote_addr,
				      wr->wr.rdma.rkey);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		vrnic_desc_set_atomic(qp, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.rkey, wr->wr.atomic.swap,
				      wr->wr.atomic.compare_add);
		return 0;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		vrnic_desc_set_atomic(qp, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.rkey,
				      wr->wr.atomic.compare_add, 0);
		return 0;
	case IBV_WR_BIND_MW:
		return vrnic_desc_set_bind(qp, wr->bind_mw.mw, wr->bind_mw.rkey,
					   &wr->bind_mw.bind_info);
	default:
		/* FLUSH: struct ibv_send_wr cannot say what to flush */
		return EINVAL;
	}
}

/* Set the SRQ of a request that the peer gets; local ones may name it, too. */
static void put_srqn(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		vrnic_desc_set_srqn(qp, wr->qp_type.xrc.remote_srqn);
}

static int put_send(struct vrnic_qp *qp, const struct ibv_send_wr *wr)
{
	const struct vrnic_send_op *op;
	int ret;

	op = vrnic_send_op(wr->opcode, qp->vqp.qp.qp_type);
	if (!op || wr->send_flags & ~VRNIC_SEND_FLAGS)
		return EINVAL;
	ret = vrnic_desc_start(qp, op, wr->wr_id, wr->send_flags);
	if (ret)
		return ret;
	put_srqn(qp, wr);
	ret = put_payload(qp, wr);
	if (!ret)
		ret = put_operands(qp, wr);
	if (ret)
		vrnic_desc_cancel(qp);
	return ret;
}

static int put_list(struct vrnic_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	int ret = vrnic_sq_ready(qp);

	for (; wr && !ret; wr = wr->next) {
		ret = put_send(qp, wr);
		if (ret)
			break;
	}
	if (ret)
		*bad = wr;
	return ret;
}

/* Ring one doorbell for the whole list, or for the requests before the first bad one. */
int vrnic_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	struct vrnic_qp *qp = to_vqp(ibqp);
	uint32_t first;
	int err, ret;
	bool posted;

	vrnic_lock(&qp->sq_lock);
	first = qp->sq.next;
	ret = put_list(qp, wr, bad);
	posted = qp->sq.next != first;
	if (posted)
		vrnic_sq_publish(qp);
	vrnic_unlock(&qp->sq_lock);
	if (!posted)
		return ret;
	err = vrnic_sq_kick(qp);
	if (err && !ret)
		*bad = wr;
	return ret ? ret : err;
}
