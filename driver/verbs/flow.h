/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A flow is how a queue pair's operations reach the peer. The loopback flow executes them directly
 * on the memory and queues of a peer on this host; the RoCE flow sends packets.
 */
#ifndef VRNIC_FLOW_H
#define VRNIC_FLOW_H

#include <rdma/ib_verbs.h>

#include "queue/opcode.h"

struct vrnic_budget;
struct vrnic_datagram;
struct vrnic_dev;
struct vrnic_op;
struct vrnic_parcel;
struct vrnic_qp;

/* verbs/loop.c */
enum vrnic_step vrnic_loop_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				   struct vrnic_budget *budget);

/* verbs/ud.c */
enum vrnic_step vrnic_loop_execute_ud(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget);

/* Time to come back after vrnic_wire_ready(); the sockets of a namespace are opened once. */
#define VRNIC_WIRE_OPENING_NS	(NSEC_PER_MSEC)

/* roce/ud_wire.c */
void vrnic_ud_transmit(struct vrnic_qp *qp, struct vrnic_op *op,
		       const struct vrnic_datagram *dg,
		       const struct rdma_ah_attr *attr,
		       const union ib_gid *sgid, int oif);

/* roce/tx.c */
void vrnic_roce_parcel(struct vrnic_qp *qp, struct vrnic_parcel *parcel);
void vrnic_roce_deliver(struct vrnic_qp *qp, struct vrnic_parcel *parcel);

/* roce/req.c */
void vrnic_roce_begin(struct vrnic_qp *qp, const struct vrnic_budget *budget);
bool vrnic_roce_expects(const struct vrnic_qp *qp);
u32 vrnic_roce_ahead(const struct vrnic_qp *qp);
u32 vrnic_roce_una(const struct vrnic_qp *qp);
bool vrnic_roce_send(struct vrnic_qp *qp, struct vrnic_budget *budget);

/* roce/window.c */
bool vrnic_roce_rests(const struct vrnic_qp *qp);
void vrnic_roce_rest(struct vrnic_qp *qp);

/* roce/req_send.c */
enum vrnic_step vrnic_roce_execute_uc(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget);

/* roce/socket.c */
int vrnic_wire_ready(struct vrnic_dev *dev);
bool vrnic_force_roce(void);
void vrnic_roce_leave(struct vrnic_qp *qp);

/* roce/flow.c */
int vrnic_roce_connect(struct vrnic_qp *qp, const struct ib_qp_attr *attr);
int vrnic_roce_reroute(struct vrnic_qp *qp, const struct rdma_ah_attr *attr);
u32 vrnic_roce_remembers(const struct vrnic_qp *qp);
void vrnic_roce_ready(struct vrnic_qp *qp);
void vrnic_roce_disconnect(struct vrnic_qp *qp);
bool vrnic_roce_receive(struct vrnic_qp *qp, struct vrnic_budget *budget);
bool vrnic_roce_left(struct vrnic_qp *qp);
bool vrnic_roce_flush(struct vrnic_qp *qp);
bool vrnic_roce_idle(const struct vrnic_qp *qp);

#endif /* VRNIC_FLOW_H */
