// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion counters: how many requests have completed, for programs that need no more than that.
 * The values lie in memory that the process maps. The kernel only adds to them, so a process that
 * overwrites its counters harms itself alone.
 */

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>
#include <rdma/vrnic-abi.h>

#include "queue/comp.h"

/**
 * vrnic_comp_add() - count a request
 * @comp: counters of the queue pair
 * @op: what it was
 * @bytes: length of its message
 * @status: enum ib_wc_status
 *
 * The release is for the data of the message, and for the place of the request in its ring: it
 * pairs with the acquire of a program that reads the counter.
 */
void vrnic_comp_add(struct vrnic_qp_comp *comp, enum vrnic_comp_op op, u64 bytes, u8 status)
{
	struct vrnic_comp *c = comp->of[op];

	if (!c)
		return;
	if (status != IB_WC_SUCCESS)
		atomic64_fetch_add_release(1, (atomic64_t *)&c->cell->errors);
	else
		atomic64_fetch_add_release(c->bytes ? bytes : 1,
					   (atomic64_t *)&c->cell->completed);
}

/**
 * vrnic_comp_add_send() - count a send request, if its operation is one of those that are counted
 * @comp: counters of the queue pair
 * @opcode: opcode that the descriptor claims
 * @bytes: length of its message
 * @status: enum ib_wc_status
 */
void vrnic_comp_add_send(struct vrnic_qp_comp *comp, u8 opcode, u64 bytes, u8 status)
{
	switch (opcode) {
	case VRNIC_OP_SEND:
	case VRNIC_OP_SEND_WITH_IMM:
	case VRNIC_OP_SEND_WITH_INV:
		vrnic_comp_add(comp, VRNIC_COMP_SEND, bytes, status);
		break;
	case VRNIC_OP_RDMA_WRITE:
	case VRNIC_OP_RDMA_WRITE_WITH_IMM:
		vrnic_comp_add(comp, VRNIC_COMP_RDMA_WRITE, bytes, status);
		break;
	case VRNIC_OP_RDMA_READ:
		vrnic_comp_add(comp, VRNIC_COMP_RDMA_READ, bytes, status);
		break;
	}
}
