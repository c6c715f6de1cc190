/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What each descriptor opcode means: checks, executor, completion. */
#ifndef VRNIC_OPCODE_H
#define VRNIC_OPCODE_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

/* A message of a native link. Not in the ABI: only the ring of a native link has it. */
#define VRNIC_OP_NATIVE		VRNIC_OP_MAX

struct vrnic_budget;
struct vrnic_op;
struct vrnic_qp;

/* How far an executor got. */
enum vrnic_step {
	VRNIC_STEP_DONE,	/* complete the operation */
	VRNIC_STEP_MORE,	/* the budget is used up: go on later */
	VRNIC_STEP_WAIT,	/* try again at vrnic_qp.wait_until */
	VRNIC_STEP_FAIL,	/* complete the operation with vrnic_op.status */
};

/* How a descriptor uses its local segments. */
enum vrnic_data {
	VRNIC_DATA_NONE,
	VRNIC_DATA_OUT,		/* gathered: read access, inline possible */
	VRNIC_DATA_IN,		/* scattered: needs IB_ACCESS_LOCAL_WRITE */
};

/**
 * struct vrnic_opdef - a row of the opcode table
 * @name: name, for people
 * @qp_types: BIT(IB_QPT_*)
 * @wc: enum ib_wc_opcode of the completion
 * @data: how the opcode uses the segments
 * @kernel_only: not valid in a ring that a process maps
 * @execute: runs the operation; NULL: the flow to the peer runs it
 */
struct vrnic_opdef {
	const char *name;
	u32 qp_types;
	u8 wc;
	enum vrnic_data data;
	bool kernel_only;
	enum vrnic_step (*execute)(struct vrnic_qp *qp, struct vrnic_op *op);
};

const struct vrnic_opdef *vrnic_opdef(u8 opcode);
int vrnic_op_open(struct vrnic_qp *qp, struct vrnic_op *op);
int vrnic_op_check(struct vrnic_qp *qp, struct vrnic_op *op);
enum vrnic_step vrnic_op_fail(struct vrnic_op *op, u8 status, int vendor_err);

#endif /* VRNIC_OPCODE_H */
