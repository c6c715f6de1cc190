/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The receives of a queue pair that is the target of messages. */
#ifndef VRNIC_RECV_H
#define VRNIC_RECV_H

#include <linux/types.h>

struct vrnic_budget;
struct vrnic_cqe;
struct vrnic_qp;

u32 vrnic_rnr_ns(u8 code);
int vrnic_recv_take(struct vrnic_qp *qp);
void vrnic_recv_complete(struct vrnic_qp *qp, struct vrnic_cqe *cqe,
			 bool solicited);
bool vrnic_recv_flush(struct vrnic_qp *qp, struct vrnic_budget *budget);

#endif /* VRNIC_RECV_H */
