/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Events of queue pairs, and the state changes that errors and draining cause. */
#ifndef VRNIC_QP_ERROR_H
#define VRNIC_QP_ERROR_H

#include <rdma/ib_verbs.h>

struct vrnic_qp;

void vrnic_rings_fail(struct vrnic_qp *qp);
void vrnic_qp_error(struct vrnic_qp *qp, enum ib_event_type event);
void vrnic_qp_event(struct vrnic_qp *qp, enum ib_event_type event);
void vrnic_sq_error(struct vrnic_qp *qp);
void vrnic_sq_drained(struct vrnic_qp *qp);

#endif /* VRNIC_QP_ERROR_H */
