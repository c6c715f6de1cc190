/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion counters, as queue pairs see them: verbs/comp_cntr.c makes them. */
#ifndef VRNIC_COMP_H
#define VRNIC_COMP_H

#include <linux/types.h>

struct vrnic_comp_cell;

/* What a counter may count. The order is that of the bits of enum ib_qp_attach_comp_cntr_op. */
enum vrnic_comp_op {
	VRNIC_COMP_SEND,
	VRNIC_COMP_RECV,
	VRNIC_COMP_RDMA_READ,
	VRNIC_COMP_REMOTE_RDMA_READ,
	VRNIC_COMP_RDMA_WRITE,
	VRNIC_COMP_REMOTE_RDMA_WRITE,
	VRNIC_COMP_OPS
};

/**
 * struct vrnic_comp - a completion counter
 * @cell: its values, which the process maps
 * @bytes: success counts the bytes of a request; else the request
 */
struct vrnic_comp {
	struct vrnic_comp_cell *cell;
	bool bytes;
};

/**
 * struct vrnic_qp_comp - the counters of a queue pair
 * @of: for each enum vrnic_comp_op its counter, or NULL; once set, constant. A counter stays as
 *	long as its queue pairs
 */
struct vrnic_qp_comp {
	struct vrnic_comp *of[VRNIC_COMP_OPS];
};

void vrnic_comp_add(struct vrnic_qp_comp *comp, enum vrnic_comp_op op, u64 bytes, u8 status);
void vrnic_comp_add_send(struct vrnic_qp_comp *comp, u8 opcode, u64 bytes, u8 status);

#endif /* VRNIC_COMP_H */
