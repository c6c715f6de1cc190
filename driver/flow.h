/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A flow: the reliable, ordered channel between two ring owners. Loopback
 * executes an operation against the peer's memory and queues directly.
 */
#ifndef VRNIC_FLOW_H
#define VRNIC_FLOW_H

#include "opcode.h"

enum vrnic_step vrnic_loop_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				   struct vrnic_budget *budget);
void vrnic_loop_release(struct vrnic_qp *qp);
enum vrnic_step vrnic_loop_execute_ud(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget);

#endif /* VRNIC_FLOW_H */
