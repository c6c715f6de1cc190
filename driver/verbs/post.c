// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting by kernel consumers. A consumer may be in atomic context, and may hold locks that its
 * completion handlers take. So an engine thread runs the ring, never the function that posts.
 */

#include "engine/engine.h"
#include "queue/qp.h"
#include "queue/ring.h"
#include "queue/rq.h"
#include "roce/av_route.h"
#include "verbs/verbs.h"

static const u8 wr_opcode[] = {
	[IB_WR_RDMA_WRITE] = VRNIC_OP_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = VRNIC_OP_RDMA_WRITE_WITH_IMM,
	[IB_WR_SEND] = VRNIC_OP_SEND,
	[IB_WR_SEND_WITH_IMM] = VRNIC_OP_SEND_WITH_IMM,
	[IB_WR_RDMA_READ] = VRNIC_OP_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = VRNIC_OP_ATOMIC_CMP_AND_SWP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = VRNIC_OP_ATOMIC_FETCH_AND_ADD,
	[IB_WR_SEND_WITH_INV] = VRNIC_OP_SEND_WITH_INV,
	[IB_WR_LOCAL_INV] = VRNIC_OP_LOCAL_INV,
};

static void *sq_at(struct vrnic_qp *qp, u32 slot, u32 byte)
{
	return vrnic_ring_slot(&qp->sq, slot + byte / VRNIC_SLOT_SIZE) +
	       byte % VRNIC_SLOT_SIZE;
}

static void put_segments(struct vrnic_qp *qp, u32 slot,
			 const struct ib_send_wr *wr)
{
	u32 byte = offsetof(struct vrnic_desc, sge);
	int i;

	for (i = 0; i < wr->num_sge; i++, byte += sizeof(struct vrnic_sge)) {
		struct vrnic_sge *sge = sq_at(qp, slot, byte);

		sge->addr = wr->sg_list[i].addr;
		sge->length = wr->sg_list[i].length;
		sge->lkey = wr->sg_list[i].lkey;
	}
}

/* Copy inline data slot by slot, as the ring may wrap between two slots. */
static void put_inline(struct vrnic_qp *qp, u32 slot,
		       const struct ib_send_wr *wr)
{
	u32 byte = offsetof(struct vrnic_desc, data);
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const u8 *from = (const u8 *)(uintptr_t)wr->sg_list[i].addr;
		u32 left = wr->sg_list[i].length;

		while (left) {
			u32 room = VRNIC_SLOT_SIZE - byte % VRNIC_SLOT_SIZE;
			u32 n = min(left, room);

			memcpy(sq_at(qp, slot, byte), from, n);
			from += n;
			byte += n;
			left -= n;
		}
	}
}

static u64 inline_length(const struct ib_send_wr *wr)
{
	u64 total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	return total;
}

static void put_ud(struct vrnic_desc *d, const struct ib_ud_wr *wr)
{
	d->ah = container_of(wr->ah, struct vrnic_ah, ibah)->av->id;
	d->dest_qpn = wr->remote_qpn;
	d->qkey = wr->remote_qkey;
}

static void put_atomic(struct vrnic_desc *d, const struct ib_atomic_wr *wr)
{
	d->remote_addr = wr->remote_addr;
	d->rkey = wr->rkey;
	d->atomic.compare = wr->compare_add;
	d->atomic.swap_add = d->opcode == VRNIC_OP_ATOMIC_CMP_AND_SWP ?
				     wr->swap : wr->compare_add;
}

static void put_reg(struct vrnic_desc *d, const struct ib_reg_wr *wr)
{
	d->opcode = VRNIC_OP_REG_MR;
	d->reg.mr = (uintptr_t)wr->mr;
	d->reg.key = wr->key;
	d->reg.access = wr->access;
}

/* Fill in the fields that depend on the opcode. */
static void put_operation(struct vrnic_qp *qp, struct vrnic_desc *d,
			  const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		put_reg(d, reg_wr(wr));
		break;
	case IB_WR_LOCAL_INV:
	case IB_WR_SEND_WITH_INV:
		d->imm = wr->ex.invalidate_rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		put_atomic(d, atomic_wr(wr));
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		d->imm = (__force u32)wr->ex.imm_data;
		d->remote_addr = rdma_wr(wr)->remote_addr;
		d->rkey = rdma_wr(wr)->rkey;
		break;
	default:
		d->imm = (__force u32)wr->ex.imm_data;
		/* ib_drain_sq() posts WRITEs on UD, too, but they have no address handle */
		if (qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI)
			put_ud(d, ud_wr(wr));
	}
}

static int check_wr(struct vrnic_qp *qp, const struct ib_send_wr *wr)
{
	if (wr->opcode != IB_WR_REG_MR &&
	    (wr->opcode >= ARRAY_SIZE(wr_opcode) || !wr_opcode[wr->opcode]))
		return -EOPNOTSUPP;
	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE &&
	    inline_length(wr) > qp->cap.max_inline_data)
		return -EINVAL;
	return 0;
}

/* Post one request. The caller holds qp->post_lock, which protects the producer index. */
static int post_one(struct vrnic_qp *qp, const struct ib_send_wr *wr)
{
	u32 prod = READ_ONCE(qp->sq.hdr->prod);
	struct vrnic_desc *d = vrnic_ring_slot(&qp->sq, prod);
	bool is_inline = wr->send_flags & IB_SEND_INLINE;
	u32 bytes = is_inline ? inline_length(wr) : 0;
	u32 slots = vrnic_desc_slots(is_inline ? 0 : wr->num_sge, bytes);
	int err = check_wr(qp, wr);

	lockdep_assert_held(&qp->post_lock);
	if (err)
		return err;
	/* the producer's half of P2: queue/ring.h */
	if (prod + slots - smp_load_acquire(&qp->sq.hdr->cons) > qp->sq.entries)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->opcode = wr->opcode == IB_WR_REG_MR ? VRNIC_OP_REG_MR :
						 wr_opcode[wr->opcode];
	d->flags = wr->send_flags & (VRNIC_DESC_FENCE | VRNIC_DESC_SIGNALED |
				     VRNIC_DESC_SOLICITED | VRNIC_DESC_INLINE);
	d->num_slots = slots;
	d->cookie = wr->wr_id;
	if (is_inline) {
		d->inline_len = bytes;
		put_inline(qp, prod, wr);
	} else {
		d->num_sge = wr->num_sge;
		put_segments(qp, prod, wr);
	}
	put_operation(qp, d, wr);
	/* the producer's half of P1 */
	smp_store_release(&qp->sq.hdr->prod, prod + slots);
	return 0;
}

int vrnic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad)
{
	struct vrnic_qp *qp = to_vqp(ibqp);
	unsigned long flags;
	int err = 0;

	*bad = wr;
	/* requests of an XRC target would have nowhere to complete */
	if (vrnic_qp_is_users(qp) || READ_ONCE(qp->state) < IB_QPS_RTS)
		return -EINVAL;
	spin_lock_irqsave(&qp->post_lock, flags);
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->post_lock, flags);
	vrnic_queue(&qp->run);
	return err;
}

int vrnic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad)
{
	struct vrnic_qp *qp = to_vqp(ibqp);
	int err;

	*bad = wr;
	if (qp->owner || !vrnic_qp_has_rq(qp) || READ_ONCE(qp->state) == IB_QPS_RESET)
		return -EINVAL;
	err = vrnic_rq_post(&qp->rq, wr, bad);
	/* as in P3: post, then look at the state. In ERR, have a thread flush the request */
	smp_mb();
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		vrnic_queue(&qp->run);
	return err;
}
