/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How the code that executes descriptors takes them from the send ring, and completes them. */
#ifndef VRNIC_SQ_RING_H
#define VRNIC_SQ_RING_H

#include <linux/types.h>

struct vrnic_qp;

bool vrnic_sq_fetch(struct vrnic_qp *qp, u32 ahead);
void vrnic_sq_complete(struct vrnic_qp *qp);

#endif /* VRNIC_SQ_RING_H */
