/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RoCEv2 requester: what its files share.
 *
 *	roce/req.c	the window: admits operations, sends and retires them
 *	roce/window.c	memory of the window
 *	roce/req_send.c	what each operation sends
 *	roce/req_ack.c	takes in the answers of the responder
 *	roce/req_retry.c	timers, retries, going back to a lost packet
 */
#ifndef VRNIC_ROCE_REQ_H
#define VRNIC_ROCE_REQ_H

#include "queue/qp.h"
#include "roce/roce.h"

#define VRNIC_BURST	16	/* packets of a message, before the run handles received ones */
#define VRNIC_BURST_OPS	64	/* messages; so many small ones fill a buffer: roce/tx.c */

static inline struct vrnic_req *to_req(struct vrnic_qp *qp)
{
	return &qp->roce->req;
}

/* The ACK timeout of a queue pair that has one, in ns. */
static inline u64 ack_timeout(const struct vrnic_qp *qp)
{
	return 4096ULL << qp->attr.timeout;
}

/* May another packet be sent? */
static inline bool window_open(const struct vrnic_req *q)
{
	return q->fly.cur - q->fly.una < q->window && (!q->fly.hold || q->fly.cur < q->fly.hold);
}

/* roce/window.c */
int vrnic_window_init(struct vrnic_qp *qp);
void vrnic_window_free(struct vrnic_req *q);
bool vrnic_window_grow(struct vrnic_qp *qp);
void vrnic_window_grow_patiently(struct vrnic_qp *qp);

/* roce/req.c */
void vrnic_req_load(struct vrnic_qp *qp, u32 i);
void vrnic_req_fail(struct vrnic_qp *qp, struct vrnic_wop *w, u8 status,
		    int verr);
void vrnic_req_retire(struct vrnic_qp *qp, u8 status, u8 verr);
bool vrnic_req_complete(struct vrnic_qp *qp, struct vrnic_budget *budget);

/* roce/req_send.c */
bool vrnic_req_send_op(struct vrnic_qp *qp, struct vrnic_wop *w,
		       struct vrnic_budget *budget);

/* roce/req_retry.c */
void vrnic_req_progress(struct vrnic_qp *qp, u64 before);
void vrnic_req_go_back_lost(struct vrnic_qp *qp);
void vrnic_req_go_back_once(struct vrnic_qp *qp);
void vrnic_req_gap(struct vrnic_qp *qp);
void vrnic_req_rnr(struct vrnic_qp *qp, u8 code);
void vrnic_req_refused(struct vrnic_qp *qp, struct vrnic_wop *w, bool skip);
void vrnic_req_clock(struct vrnic_qp *qp);
void vrnic_req_set_timer(struct vrnic_qp *qp);

#endif /* VRNIC_ROCE_REQ_H */
