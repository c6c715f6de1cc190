/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Building descriptors in the slots of a send ring: what ibv_post_send() and the
 * ibv_wr functions have in common. A descriptor starts with one slot and is
 * extended when its data is known. The kernel sees nothing before the ring is
 * published. So to give a descriptor up, the provider puts vrnic_qp.sq.next back.
 *
 * All functions but vrnic_sq_kick() are called with vrnic_qp.sq_lock held.
 */
#ifndef VRNIC_PROVIDER_SEND_H
#define VRNIC_PROVIDER_SEND_H

#include <errno.h>

#include "vrnic.h"

/* enum vrnic_payload - what data a request of an operation carries */
enum vrnic_payload {
	VRNIC_PAYLOAD_NONE,
	VRNIC_PAYLOAD_GATHER,	/* segments or inline data */
	VRNIC_PAYLOAD_SCATTER,	/* segments */
	VRNIC_PAYLOAD_ONE,	/* one segment */
	VRNIC_PAYLOAD_VALUE,	/* eight bytes, inline */
};

/* Does the data come as a list of segments? */
static inline bool vrnic_payload_is_list(uint8_t payload)
{
	return payload >= VRNIC_PAYLOAD_GATHER && payload <= VRNIC_PAYLOAD_ONE;
}

/**
 * struct vrnic_send_op - an operation
 * @opcode: enum vrnic_opcode; 0: no such operation
 * @payload: enum vrnic_payload
 * @with_imm: immediate data or a key to invalidate goes along
 * @types: a bit for each enum ibv_qp_type whose queue pairs have the operation
 */
struct vrnic_send_op {
	uint8_t opcode;
	uint8_t payload;
	bool with_imm;
	uint16_t types;
};

#define VRNIC_SEND_OPS		(IBV_WR_ATOMIC_WRITE + 1)
extern const struct vrnic_send_op vrnic_send_ops[VRNIC_SEND_OPS];

#define VRNIC_SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | \
				 IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/* Return: the operation's row, or NULL if queue pairs of the type lack it. */
static inline const struct vrnic_send_op *
vrnic_send_op(enum ibv_wr_opcode opcode, enum ibv_qp_type type)
{
	const struct vrnic_send_op *op;

	/* types of queue pairs that send are 2 (RC) to 9 (XRC); never shift by a larger number */
	if ((unsigned int)opcode >= VRNIC_SEND_OPS || type > IBV_QPT_XRC_SEND)
		return NULL;
	op = &vrnic_send_ops[opcode];
	return op->types >> type & 1 ? op : NULL;
}

/**
 * vrnic_desc_start() - start a descriptor in the next slot
 * @qp: the queue pair
 * @op: the operation
 * @cookie: wr_id
 * @flags: IBV_SEND_*
 *
 * Return: 0 or ENOMEM.
 */
static inline int vrnic_desc_start(struct vrnic_qp *qp,
				   const struct vrnic_send_op *op,
				   uint64_t cookie, unsigned int flags)
{
	uint32_t slot = qp->sq.next;
	struct vrnic_desc *desc;

	if (!vrnic_credit_room(&qp->credit) ||
	    !vrnic_ring_room(&qp->sq, slot + 1))
		return ENOMEM;
	desc = vrnic_ring_slot(&qp->sq, slot);
	desc->opcode = op->opcode;
	desc->flags = (flags & ~IBV_SEND_INLINE) | qp->always;
	desc->num_slots = 1;
	desc->imm = 0;
	desc->cookie = cookie;
	desc->remote_addr = 0;
	desc->rkey = 0;
	desc->num_sge = 0;
	qp->build = (struct vrnic_build){ .op = op, .desc = desc, .slot = slot };
	qp->sq.next = slot + 1;
	qp->credit.posted++;
	return 0;
}

/* Give up the descriptor that was started last. */
static inline void vrnic_desc_cancel(struct vrnic_qp *qp)
{
	qp->sq.next = qp->build.slot;
	qp->credit.posted--;
}

/* Make the descriptor @slots long, counted from its first slot. Return: 0 or ENOMEM. */
static inline int vrnic_desc_resize(struct vrnic_qp *qp, uint32_t slots)
{
	uint32_t end = qp->build.slot + slots;

	if (!vrnic_ring_room(&qp->sq, end))
		return ENOMEM;
	qp->build.desc->num_slots = slots | qp->build.in_slots;
	qp->sq.next = end;
	return 0;
}

/* Slots of a descriptor with @bytes of segments or data after its header. */
static inline uint32_t vrnic_desc_slots(size_t bytes)
{
	if (bytes <= VRNIC_DESC_DATA)
		return 1;
	return 1 + (bytes - VRNIC_DESC_DATA + VRNIC_SLOT_SIZE - 1) /
		   VRNIC_SLOT_SIZE;
}

/* Set how many segments, or bytes of inline data, the descriptor has. */
static inline void vrnic_desc_set_len(struct vrnic_qp *qp, uint32_t len)
{
	qp->build.desc->num_sge = len | qp->build.in_len;
}

static inline void vrnic_desc_set_remote(struct vrnic_qp *qp, uint64_t addr, uint32_t rkey)
{
	qp->build.desc->remote_addr = addr;
	qp->build.desc->rkey = rkey;
}

/* May requests be posted? Only from RTS on, by IBTA 10.3.1. Return: 0 or EINVAL. */
static inline int vrnic_sq_ready(const struct vrnic_qp *qp)
{
	switch (qp->vqp.qp.state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
		return 0;
	default:
		return EINVAL;
	}
}

int vrnic_desc_set_list(struct vrnic_qp *qp, size_t num, const struct ibv_sge *list);

/**
 * vrnic_desc_set_sges() - set the local segments of the descriptor that is being built
 * @qp: the queue pair
 * @num: how many
 * @list: the segments; abi_check.c checks that struct vrnic_sge has the same layout
 *
 * Return: 0 or an errno.
 */
static inline int vrnic_desc_set_sges(struct vrnic_qp *qp, size_t num,
				      const struct ibv_sge *list)
{
	/* by far the most frequent case: the descriptor has a slot, and room for one */
	if (num != 1 || !vrnic_payload_is_list(qp->build.op->payload) || !qp->max_sge ||
	    qp->sq.next != qp->build.slot + 1)
		return vrnic_desc_set_list(qp, num, list);
	vrnic_desc_set_len(qp, 1);
	memcpy(&qp->build.desc->sge[0], list, sizeof(*list));
	return 0;
}

int vrnic_desc_set_inline(struct vrnic_qp *qp, size_t num,
			  const struct ibv_data_buf *list);
int vrnic_desc_set_value(struct vrnic_qp *qp, const void *value);
void vrnic_desc_set_srqn(struct vrnic_qp *qp, uint32_t srqn);
int vrnic_desc_set_ud(struct vrnic_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		      uint32_t qkey);
void vrnic_desc_set_atomic(struct vrnic_qp *qp, uint64_t addr, uint32_t rkey,
			   uint64_t swap_add, uint64_t compare);
int vrnic_desc_set_bind(struct vrnic_qp *qp, const struct ibv_mw *mw,
			uint32_t rkey, const struct ibv_mw_bind_info *info);
void vrnic_sq_publish(struct vrnic_qp *qp);
int vrnic_sq_kick(struct vrnic_qp *qp);

#endif /* VRNIC_PROVIDER_SEND_H */
