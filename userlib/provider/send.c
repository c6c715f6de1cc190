// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Building descriptors: operations and the parts of a request. See send.h. */

#include <errno.h>

#include "cq.h"
#include "send.h"

#define RC	(1U << IBV_QPT_RC)
#define UC	(1U << IBV_QPT_UC)
#define UD	(1U << IBV_QPT_UD)
#define RAW	(1U << IBV_QPT_RAW_PACKET)
#define XRC	(1U << IBV_QPT_XRC_SEND)
#define DATA_AT	offsetof(struct vrnic_desc, data)

const struct vrnic_send_op vrnic_send_ops[VRNIC_SEND_OPS] = {
	[IBV_WR_RDMA_WRITE] = {
		.opcode = VRNIC_OP_RDMA_WRITE, .types = RC | XRC | UC,
		.payload = VRNIC_PAYLOAD_GATHER,
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		.opcode = VRNIC_OP_RDMA_WRITE_WITH_IMM, .types = RC | XRC | UC,
		.payload = VRNIC_PAYLOAD_GATHER, .with_imm = true,
	},
	[IBV_WR_SEND] = {
		.opcode = VRNIC_OP_SEND, .types = RC | XRC | UC | UD | RAW,
		.payload = VRNIC_PAYLOAD_GATHER,
	},
	[IBV_WR_SEND_WITH_IMM] = {
		.opcode = VRNIC_OP_SEND_WITH_IMM, .types = RC | XRC | UC | UD,
		.payload = VRNIC_PAYLOAD_GATHER, .with_imm = true,
	},
	[IBV_WR_RDMA_READ] = {
		.opcode = VRNIC_OP_RDMA_READ, .types = RC | XRC,
		.payload = VRNIC_PAYLOAD_SCATTER,
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		.opcode = VRNIC_OP_ATOMIC_CMP_AND_SWP, .types = RC | XRC,
		.payload = VRNIC_PAYLOAD_ONE,
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		.opcode = VRNIC_OP_ATOMIC_FETCH_AND_ADD, .types = RC | XRC,
		.payload = VRNIC_PAYLOAD_ONE,
	},
	[IBV_WR_LOCAL_INV] = {
		.opcode = VRNIC_OP_LOCAL_INV, .types = RC | XRC | UC,
		.payload = VRNIC_PAYLOAD_NONE, .with_imm = true,
	},
	[IBV_WR_BIND_MW] = {
		.opcode = VRNIC_OP_BIND_MW, .types = RC | XRC | UC,
		.payload = VRNIC_PAYLOAD_NONE,
	},
	/* UC has no such packet: IBTA 9.2, table of opcodes */
	[IBV_WR_SEND_WITH_INV] = {
		.opcode = VRNIC_OP_SEND_WITH_INV, .types = RC | XRC,
		.payload = VRNIC_PAYLOAD_GATHER, .with_imm = true,
	},
#ifdef HAVE_FLUSH
	/* XRC: the descriptor has no room for the number of an SRQ */
	[IBV_WR_FLUSH] = {
		.opcode = VRNIC_OP_FLUSH, .types = RC,
		.payload = VRNIC_PAYLOAD_NONE,
	},
#endif
	[IBV_WR_ATOMIC_WRITE] = {
		.opcode = VRNIC_OP_ATOMIC_WRITE, .types = RC | XRC,
		.payload = VRNIC_PAYLOAD_VALUE,
	},
};

static bool sge_count_fits(const struct vrnic_qp *qp, size_t num)
{
	switch (qp->build.op->payload) {
	case VRNIC_PAYLOAD_GATHER:
	case VRNIC_PAYLOAD_SCATTER:
		return num <= qp->max_sge;
	case VRNIC_PAYLOAD_ONE:
		return num == 1;
	default:
		return false;
	}
}

/* vrnic_desc_set_sges(), of any number. */
int vrnic_desc_set_list(struct vrnic_qp *qp, size_t num, const struct ibv_sge *list)
{
	size_t bytes = num * sizeof(*list);
	int ret;

	if (!sge_count_fits(qp, num))
		return EINVAL;
	ret = vrnic_desc_resize(qp, vrnic_desc_slots(bytes));
	if (ret)
		return ret;
	vrnic_desc_set_len(qp, num);
	vrnic_ring_copy_in(&qp->sq, qp->build.slot, DATA_AT, list, bytes);
	return 0;
}

/* Return: the sum, or SIZE_MAX if it is more than @limit. */
static size_t total_length(size_t num, const struct ibv_data_buf *list,
			   size_t limit)
{
	size_t total = 0;

	for (size_t i = 0; i < num; i++) {
		if (list[i].length > limit - total)
			return SIZE_MAX;
		total += list[i].length;
	}
	return total;
}

/**
 * vrnic_desc_set_inline() - copy data into the descriptor that is being built
 * @qp: the queue pair
 * @num: how many pieces
 * @list: the pieces
 *
 * Return: 0 or an errno.
 */
int vrnic_desc_set_inline(struct vrnic_qp *qp, size_t num,
			  const struct ibv_data_buf *list)
{
	size_t at = DATA_AT, total;
	int ret;

	if (qp->build.op->payload != VRNIC_PAYLOAD_GATHER)
		return EINVAL;
	total = total_length(num, list, qp->max_inline);
	if (total == SIZE_MAX)
		return EINVAL;
	ret = vrnic_desc_resize(qp, vrnic_desc_slots(total));
	if (ret)
		return ret;
	qp->build.desc->flags |= VRNIC_DESC_INLINE;
	vrnic_desc_set_len(qp, total);
	for (size_t i = 0; i < num; at += list[i++].length)
		vrnic_ring_copy_in(&qp->sq, qp->build.slot, at, list[i].addr,
				   list[i].length);
	return 0;
}

/* ATOMIC WRITE: the eight bytes to be written. */
int vrnic_desc_set_value(struct vrnic_qp *qp, const void *value)
{
	struct vrnic_desc *desc = qp->build.desc;

	desc->flags |= VRNIC_DESC_INLINE;
	vrnic_desc_set_len(qp, sizeof(uint64_t));
	memcpy(desc->data, value, sizeof(uint64_t));
	return 0;
}

/* XRC: name the SRQ at the target. The data may be set before or afterwards. */
void vrnic_desc_set_srqn(struct vrnic_qp *qp, uint32_t srqn)
{
	struct vrnic_desc *desc = qp->build.desc;

	qp->build.in_slots = VRNIC_XRC_IN_SLOTS(srqn);
	qp->build.in_len = VRNIC_XRC_IN_LEN(srqn);
	desc->num_slots = (desc->num_slots & VRNIC_XRC_SLOTS) | qp->build.in_slots;
	vrnic_desc_set_len(qp, desc->num_sge & VRNIC_XRC_LEN);
}

int vrnic_desc_set_ud(struct vrnic_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		      uint32_t qkey)
{
	struct vrnic_desc *desc = qp->build.desc;

	if (!ah || qp->vqp.qp.qp_type != IBV_QPT_UD)
		return EINVAL;
	desc->ah = to_vah(ah)->id;
	desc->dest_qpn = qpn;
	desc->qkey = qkey;
	return 0;
}

void vrnic_desc_set_atomic(struct vrnic_qp *qp, uint64_t addr, uint32_t rkey,
			   uint64_t swap_add, uint64_t compare)
{
	vrnic_desc_set_remote(qp, addr, rkey);
	qp->build.desc->atomic.swap_add = swap_add;
	qp->build.desc->atomic.compare = compare;
}

/* A bind of no bytes opens nothing to peers, and needs no region. */
int vrnic_desc_set_bind(struct vrnic_qp *qp, const struct ibv_mw *mw,
			uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct vrnic_desc *desc = qp->build.desc;

	if (!mw || (!info->mr && info->length))
		return EINVAL;
	desc->bind.addr = info->addr;
	desc->bind.length = info->length;
	desc->bind.lkey = info->mr ? info->mr->lkey : 0;
	desc->bind.old_rkey = mw->rkey;
	desc->bind.new_rkey = rkey;
	desc->bind.access = info->mw_access_flags;
	return 0;
}

#define STREAM_POSTS	8

/*
 * Does the program post a stream, that is, has it posted STREAM_POSTS times without a poll in vain
 * in between? Then one doorbell for several posts may be better.
 */
static bool streams(struct vrnic_qp *qp)
{
	struct ibv_cq *cq = qp->vqp.qp.send_cq;
	unsigned int vain;

	if (!cq)
		return false;
	vain = __atomic_load_n(&to_vcq(cq)->vain, __ATOMIC_RELAXED) +
	       __atomic_load_n(&to_vctx(cq->context)->vain, __ATOMIC_RELAXED);
	qp->streak = vain == qp->vain ? qp->streak + 1 : 0;
	qp->vain = vain;
	return qp->streak >= STREAM_POSTS;
}

/* Hand the built descriptors to the kernel. */
void vrnic_sq_publish(struct vrnic_qp *qp)
{
	vrnic_ring_tell_stream(&qp->sq, streams(qp));
	vrnic_ring_publish(&qp->sq);
}

/* Has the program asked for an event? Then it may go to sleep without another verb. */
static bool armed(struct ibv_cq *cq)
{
	return cq && vrnic_cq_is_armed(to_vcq(cq));
}

static bool may_be_late(const struct vrnic_qp *qp)
{
	return vrnic_ring_may_gather(&qp->sq) &&
	       !armed(qp->vqp.qp.send_cq) && !armed(qp->vqp.qp.recv_cq);
}

/*
 * Call the kernel if it wants a doorbell: now or, in a stream of requests, a little later. The
 * caller has published the ring, and released its lock.
 *
 * Return: 0 or an errno: EIO when the device is gone.
 */
int vrnic_sq_kick(struct vrnic_qp *qp)
{
	uint32_t flags = vrnic_ring_flags(&qp->sq);

	if (flags & VRNIC_RING_ERROR)
		return EIO;
	if (!(flags & VRNIC_RING_DOORBELL))
		return 0;
	if (!may_be_late(qp))
		return vrnic_doorbell_ring(qp->vqp.qp.context, qp->vqp.qp.qp_num);
	vrnic_doorbell_later(&qp->vqp.qp);
	return 0;
}
