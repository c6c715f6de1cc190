// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The opcode table, the checks of every descriptor, and the operations that need no peer.
 */

#include <linux/ktime.h>

#include "compat/compat.h"
#include "mem/mem.h"
#include "mem/mw.h"
#include "mem/seg.h"
#include "queue/link_ops.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/ring.h"
#include "queue/target.h"
#include "vrnic.h"

/* Note the reason of a failure in @op. Return: VRNIC_STEP_FAIL, which the caller passes on. */
enum vrnic_step vrnic_op_fail(struct vrnic_op *op, u8 status, int vendor_err)
{
	op->status = status;
	op->vendor_err = vendor_err;
	return VRNIC_STEP_FAIL;
}

static enum vrnic_step exec_nop(struct vrnic_qp *qp, struct vrnic_op *op)
{
	return VRNIC_STEP_DONE;
}

/* @ret: 0, enum vrnic_vendor_err, or -EAGAIN: a run still uses the region */
static enum vrnic_step key_step(struct vrnic_qp *qp, struct vrnic_op *op, int ret)
{
	if (ret == -EAGAIN) {
		op->waits = VRNIC_WAIT_KEY;
		qp->run.wait_until = ktime_get_ns() + VRNIC_TARGET_BUSY_NS;
		return VRNIC_STEP_WAIT;
	}
	return ret ? vrnic_op_fail(op, IB_WC_LOC_QP_OP_ERR, ret) :
		     VRNIC_STEP_DONE;
}

static enum vrnic_step exec_local_inv(struct vrnic_qp *qp, struct vrnic_op *op)
{
	return key_step(qp, op,
			vrnic_key_invalidate(&qp->key_user, vrnic_op_desc(op)->imm, false));
}

static enum vrnic_step exec_bind_mw(struct vrnic_qp *qp, struct vrnic_op *op)
{
	int verr = vrnic_mw_bind(&qp->key_user, vrnic_op_desc(op));

	return verr ? vrnic_op_fail(op, IB_WC_MW_BIND_ERR, verr) :
		      VRNIC_STEP_DONE;
}

static enum vrnic_step exec_reg_mr(struct vrnic_qp *qp, struct vrnic_op *op)
{
	return key_step(qp, op, vrnic_mr_fast_reg(&qp->key_user, vrnic_op_desc(op)));
}

#define RC	BIT(IB_QPT_RC)
#define UC	BIT(IB_QPT_UC)
#define UD	(BIT(IB_QPT_UD) | BIT(IB_QPT_GSI))
#define RAW	BIT(IB_QPT_RAW_PACKET)

static const struct vrnic_opdef opcodes[VRNIC_OP_MAX + 1] = {
	[VRNIC_OP_NOP] = {
		.name = "NOP", .qp_types = RC | UC | UD | RAW,
		.wc = IB_WC_SEND, .execute = exec_nop,
	},
	[VRNIC_OP_SEND] = {
		.name = "SEND", .qp_types = RC | UC | UD | RAW,
		.wc = IB_WC_SEND, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_SEND_WITH_IMM] = {
		.name = "SEND_WITH_IMM", .qp_types = RC | UC | UD,
		.wc = IB_WC_SEND, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_SEND_WITH_INV] = {
		.name = "SEND_WITH_INV", .qp_types = RC,
		.wc = IB_WC_SEND, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_RDMA_WRITE] = {
		.name = "RDMA_WRITE", .qp_types = RC | UC,
		.wc = IB_WC_RDMA_WRITE, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_RDMA_WRITE_WITH_IMM] = {
		.name = "RDMA_WRITE_WITH_IMM", .qp_types = RC | UC,
		.wc = IB_WC_RDMA_WRITE, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_RDMA_READ] = {
		.name = "RDMA_READ", .qp_types = RC,
		.wc = IB_WC_RDMA_READ, .data = VRNIC_DATA_IN,
	},
	[VRNIC_OP_ATOMIC_CMP_AND_SWP] = {
		.name = "ATOMIC_CMP_AND_SWP", .qp_types = RC,
		.wc = IB_WC_COMP_SWAP, .data = VRNIC_DATA_IN,
	},
	[VRNIC_OP_ATOMIC_FETCH_AND_ADD] = {
		.name = "ATOMIC_FETCH_AND_ADD", .qp_types = RC,
		.wc = IB_WC_FETCH_ADD, .data = VRNIC_DATA_IN,
	},
	[VRNIC_OP_ATOMIC_WRITE] = {
		.name = "ATOMIC_WRITE", .qp_types = RC,
		.wc = VRNIC_WC_ATOMIC_WRITE, .data = VRNIC_DATA_OUT,
	},
	[VRNIC_OP_FLUSH] = {
		.name = "FLUSH", .qp_types = RC, .wc = VRNIC_WC_FLUSH,
	},
	[VRNIC_OP_LOCAL_INV] = {
		.name = "LOCAL_INV", .qp_types = RC | UC,
		.wc = IB_WC_LOCAL_INV, .execute = exec_local_inv,
	},
	[VRNIC_OP_BIND_MW] = {
		.name = "BIND_MW", .qp_types = RC | UC,
		.wc = 5 /* IBV_WC_BIND_MW, for which the kernel has no name */,
		.execute = exec_bind_mw,
	},
	[VRNIC_OP_REG_MR] = {
		.name = "REG_MR", .qp_types = RC | UC, .wc = IB_WC_REG_MR,
		.kernel_only = true, .execute = exec_reg_mr,
	},
	[VRNIC_OP_NATIVE] = {
		.name = "NATIVE", .qp_types = RC, .wc = 0xff /* it makes no completion */,
		.data = VRNIC_DATA_OUT, .kernel_only = true,
	},
};

/* Return: the row of @opcode, or NULL if there is none. */
const struct vrnic_opdef *vrnic_opdef(u8 opcode)
{
	return opcode < ARRAY_SIZE(opcodes) ? &opcodes[opcode] : NULL;
}

/*
 * The descriptor must claim exactly as many slots as its segments or inline data need. Sets
 * @op->total. Return: 0 or enum vrnic_vendor_err.
 */
static int check_data(struct vrnic_qp *qp, struct vrnic_op *op)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);

	if (d->flags & VRNIC_DESC_INLINE) {
		if (op->info->data != VRNIC_DATA_OUT)
			return VRNIC_VERR_OPCODE;
		if (d->inline_len > VRNIC_MAX_INLINE ||
		    d->num_slots != vrnic_desc_slots(0, d->inline_len))
			return VRNIC_VERR_SLOTS;
		op->total = d->inline_len;
		return 0;
	}
	if (d->num_sge > VRNIC_MAX_SGE ||
	    d->num_slots != vrnic_desc_slots(d->num_sge, 0))
		return VRNIC_VERR_SLOTS;
	op->total = likely(d->num_sge == 1) ? d->sge[0].length :
					      vrnic_sge_total(d->sge, d->num_sge);
	return op->total > VRNIC_MAX_MSG ? VRNIC_VERR_LENGTH : 0;
}

/* An atomic needs one segment with room for the old 8 bytes, ATOMIC WRITE has 8 bytes inline. */
static int check_atomic(const struct vrnic_desc *d)
{
	switch (d->opcode) {
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		if (d->num_sge != 1 || d->sge[0].length < sizeof(u64))
			return VRNIC_VERR_LENGTH;
		break;
	case VRNIC_OP_ATOMIC_WRITE:
		if (!(d->flags & VRNIC_DESC_INLINE) ||
		    d->inline_len != sizeof(u64))
			return VRNIC_VERR_LENGTH;
		break;
	}
	return 0;
}

/**
 * vrnic_op_check() - may the queue pair execute this descriptor?
 * @qp: queue pair
 * @op: operation with a private copy of the descriptor; sets @op->info and @op->total
 *
 * Return: 0 or enum vrnic_vendor_err.
 */
int vrnic_op_check(struct vrnic_qp *qp, struct vrnic_op *op)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);
	const struct vrnic_opdef *info = vrnic_opdef(d->opcode);
	bool native = d->opcode == VRNIC_OP_NATIVE;
	int verr;

	op->info = info;
	if (!info || !(info->qp_types & BIT(qp->type)) ||
	    (info->kernel_only && qp->owner) ||
	    native != !!qp->link)
		return VRNIC_VERR_OPCODE;
	/* where other descriptors have the number of the SRQ, that of FLUSH has its length */
	if (unlikely(qp->xrc) && d->opcode == VRNIC_OP_FLUSH)
		return VRNIC_VERR_OPCODE;
	if (info->data == VRNIC_DATA_NONE)
		return d->num_slots == 1 ? 0 : VRNIC_VERR_SLOTS;
	verr = check_data(qp, op);
	return verr ?: check_atomic(d);
}

/**
 * vrnic_op_open() - find the local memory of an operation
 * @qp: queue pair
 * @op: operation that vrnic_op_check() accepted
 *
 * Return: 0: @qp->sgl describes the memory, and the caller has to put it; or enum vrnic_vendor_err.
 */
int vrnic_op_open(struct vrnic_qp *qp, struct vrnic_op *op)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);

	if (op->info->data == VRNIC_DATA_NONE) {
		qp->sgl.nr = 0;
		return 0;
	}
	if (d->opcode == VRNIC_OP_NATIVE) {
		qp->link_ops->open(&qp->sgl, d->cookie);
		return 0;
	}
	if (d->flags & VRNIC_DESC_INLINE) {
		vrnic_sgl_kva(&qp->sgl,
			      op->slots + offsetof(struct vrnic_desc, data),
			      op->total);
		return 0;
	}
	return vrnic_sgl_local(&qp->key_user, d->sge, d->num_sge,
			       op->info->data == VRNIC_DATA_IN ?
			       IB_ACCESS_LOCAL_WRITE : 0, &qp->hold.local,
			       &qp->sgl);
}
