/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What each opcode of a descriptor means: checks, the function that executes it, completion. */
#ifndef VRNIC_OPCODE_H
#define VRNIC_OPCODE_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

/* A message of a native link. Not in the ABI: only the kernel posts it, on a link's queue pair. */
#define VRNIC_OP_NATIVE		VRNIC_OP_MAX

/*
 * A flag of VRNIC_OP_NATIVE: the owner of the data posted the message, and leaves the data alone.
 */
#define VRNIC_DESC_POSTED	0x80

struct vrnic_budget;
struct vrnic_op;
struct vrnic_qp;

/* What the runner has to do next with an operation that was just executed, or a part of it. */
enum vrnic_step {
	VRNIC_STEP_DONE,	/* complete it with success */
	VRNIC_STEP_DROP,	/* the same: an unreliable message was lost, which nobody is told */
	VRNIC_STEP_MORE,	/* go on in the next run: the budget is used up */
	VRNIC_STEP_WAIT,	/* try again at vrnic_runnable.wait_until */
	VRNIC_STEP_FAIL,	/* complete it with vrnic_op.status */
};

/* How a descriptor uses its local segments. */
enum vrnic_data {
	VRNIC_DATA_NONE,
	VRNIC_DATA_OUT,		/* gathered: read access, inline possible */
	VRNIC_DATA_IN,		/* scattered: needs IB_ACCESS_LOCAL_WRITE */
};

/**
 * struct vrnic_opdef - a row of the opcode table
 * @name: name, for traces
 * @qp_types: types of queue pairs that have the opcode: BIT(IB_QPT_*)
 * @wc: enum ib_wc_opcode of the completion
 * @data: how the opcode uses the segments
 * @kernel_only: not valid in a ring that a process maps
 * @execute: executes an operation that needs no peer; NULL: it needs one: verbs/flow.h
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
