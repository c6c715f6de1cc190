// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ibv_wr functions. Descriptors are built in the ring between wr_start and
 * wr_complete, which publishes them all. After an error the provider ignores the rest of the
 * batch, and wr_complete takes the batch back and returns the first error.
 */

#include <errno.h>

#include "send.h"

#define WR_FLAGS	VRNIC_SEND_FLAGS

static struct vrnic_qp *ex_to_vqp(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vrnic_qp, vqp.qp_ex);
}

/* The batch is lost: calls until wr_complete have no effect. */
static void fail(struct vrnic_qp *qp, int error)
{
	if (!qp->error)
		qp->error = error;
	qp->build.desc = NULL;
}

static void check(struct vrnic_qp *qp, int error)
{
	if (error)
		fail(qp, error);
}

/*
 * Start a descriptor. wr_flags may have all flags of ibv_post_send(), so that a program can use one
 * variable for both. But IBV_SEND_INLINE has no effect: the inline functions make data inline.
 *
 * Return: the descriptor, or NULL if the batch is lost.
 */
static struct vrnic_desc *start(struct vrnic_qp *qp, enum ibv_wr_opcode opcode)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	const struct vrnic_send_op *op;

	if (qp->error)
		return NULL;
	op = vrnic_send_op(opcode, qp->vqp.qp.qp_type);
	if (!op || ex->wr_flags & ~WR_FLAGS)
		fail(qp, EINVAL);
	else
		check(qp, vrnic_desc_start(qp, op, ex->wr_id, ex->wr_flags));
	return qp->build.desc;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	vrnic_lock(&qp->sq_lock);
	qp->first = qp->sq.next;
	qp->first_posted = qp->credit.posted;
	qp->build.desc = NULL;
	qp->error = vrnic_sq_ready(qp);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	qp->sq.next = qp->first;
	qp->credit.posted = qp->first_posted;
	vrnic_unlock(&qp->sq_lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);
	int ret = qp->error;

	if (ret) {
		wr_abort(ex);
		return ret;
	}
	vrnic_sq_publish(qp);
	vrnic_unlock(&qp->sq_lock);
	return vrnic_sq_kick(qp);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	start(ex_to_vqp(ex), IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct vrnic_desc *desc = start(ex_to_vqp(ex), IBV_WR_SEND_WITH_IMM);

	if (desc)
		desc->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrnic_desc *desc = start(ex_to_vqp(ex), IBV_WR_SEND_WITH_INV);

	if (desc)
		desc->imm = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrnic_desc *desc = start(ex_to_vqp(ex), IBV_WR_LOCAL_INV);

	if (desc)
		desc->imm = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (start(qp, IBV_WR_RDMA_READ))
		vrnic_desc_set_remote(qp, addr, rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (start(qp, IBV_WR_RDMA_WRITE))
		vrnic_desc_set_remote(qp, addr, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);
	struct vrnic_desc *desc = start(qp, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (!desc)
		return;
	vrnic_desc_set_remote(qp, addr, rkey);
	desc->imm = imm;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (start(qp, IBV_WR_ATOMIC_CMP_AND_SWP))
		vrnic_desc_set_atomic(qp, addr, rkey, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (start(qp, IBV_WR_ATOMIC_FETCH_AND_ADD))
		vrnic_desc_set_atomic(qp, addr, rkey, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t addr, const void *value)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (!start(qp, IBV_WR_ATOMIC_WRITE))
		return;
	vrnic_desc_set_remote(qp, addr, rkey);
	check(qp, vrnic_desc_set_value(qp, value));
}

#ifdef HAVE_FLUSH
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);
	struct vrnic_desc *desc = start(qp, IBV_WR_FLUSH);

	if (!desc)
		return;
	if (len > UINT32_MAX || level > IBV_FLUSH_MR ||
	    type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)) {
		fail(qp, EINVAL);
		return;
	}
	vrnic_desc_set_remote(qp, addr, rkey);
	desc->flush = type | (level == IBV_FLUSH_MR ? VRNIC_FLUSH_MR : 0);
	desc->flush_len = len;
}

static void flush_init(struct ibv_qp_ex *ex)
{
	ex->wr_flush = wr_flush;
}
#else
static void flush_init(struct ibv_qp_ex *ex)
{
}
#endif

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (start(qp, IBV_WR_BIND_MW))
		check(qp, vrnic_desc_set_bind(qp, mw, rkey, info));
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (!qp->build.desc)
		return;
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		vrnic_desc_set_srqn(qp, srqn);
	else
		fail(qp, EINVAL);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (qp->build.desc)
		check(qp, vrnic_desc_set_ud(qp, ah, qpn, qkey));
}

/* May data be set? FLUSH carries none, but its man page lets a program set some: ignore it. */
static bool takes_data(const struct vrnic_qp *qp)
{
	return qp->build.desc && qp->build.op->opcode != VRNIC_OP_FLUSH;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num,
			    const struct ibv_sge *list)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (takes_data(qp))
		check(qp, vrnic_desc_set_sges(qp, num, list));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num,
				    const struct ibv_data_buf *list)
{
	struct vrnic_qp *qp = ex_to_vqp(ex);

	if (takes_data(qp))
		check(qp, vrnic_desc_set_inline(qp, num, list));
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* The bits IBV_QP_EX_WITH_* do not follow the numbers of enum ibv_wr_opcode. */
static const struct {
	enum ibv_wr_opcode opcode;
	uint64_t flag;
} wr_flags_of[] = {
	{ IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	{ IBV_WR_SEND, IBV_QP_EX_WITH_SEND },
	{ IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM },
	{ IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	{ IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV },
	{ IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW },
	{ IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV },
#ifdef HAVE_FLUSH
	{ IBV_WR_FLUSH, IBV_QP_EX_WITH_FLUSH },
#endif
	{ IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE },
};

/* Return: IBV_QP_EX_WITH_* that queue pairs of the type have. */
uint64_t vrnic_wr_supported(enum ibv_qp_type type)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < sizeof(wr_flags_of) / sizeof(*wr_flags_of); i++)
		if (vrnic_send_op(wr_flags_of[i].opcode, type))
			flags |= wr_flags_of[i].flag;
	return flags;
}

/*
 * Set every function for every type of queue pair, so that a program that uses an operation which
 * the type lacks gets an error from wr_complete, and does not call a NULL pointer.
 */
void vrnic_wr_init(struct vrnic_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	flush_init(ex);
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
