/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RoCEv2 responder: what its files share.
 *
 *	roce/resp.c	takes requests in order, acknowledges them
 *	roce/resp_exec.c	what each request does
 *	roce/resp_reply.c	answers with data, which a requester may ask for again
 */
#ifndef VRNIC_ROCE_RESP_H
#define VRNIC_ROCE_RESP_H

#include "queue/qp.h"
#include "roce/roce.h"

/* What became of a request. */
enum vrnic_rx {
	VRNIC_RX_DONE,	/* executed */
	VRNIC_RX_DROP,	/* refused, or dropped: the request is not executed */
	VRNIC_RX_AGAIN,	/* the region to invalidate is in use, or a page is brought in: try again */
};

static inline struct vrnic_resp *to_resp(struct vrnic_qp *qp)
{
	return &qp->roce->resp;
}

/* The SRQ that a request of XRC names; 0 for other requests. */
static inline u32 vrnic_resp_srqn(struct sk_buff *skb)
{
	return vrnic_pkt(skb)->info & VRNIC_PKT_XRCETH ? vrnic_pkt_srqn(skb) : 0;
}

/* roce/resp.c */
void vrnic_resp_send(struct vrnic_qp *qp, struct vrnic_tx *tx);
void vrnic_resp_put_aeth(struct vrnic_qp *qp, struct vrnic_tx *tx, u8 syndrome);
void vrnic_resp_answer(struct vrnic_qp *qp, u8 opcode, u8 syndrome, u32 psn);
void vrnic_resp_nak(struct vrnic_qp *qp, u8 syndrome);
void vrnic_resp_nak_failed(struct vrnic_qp *qp, u32 why);

/* roce/resp_exec.c */
bool vrnic_resp_allows(const struct vrnic_qp *qp, int access);
bool vrnic_resp_has_room(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt);
enum vrnic_rx vrnic_resp_execute(struct vrnic_qp *qp, struct sk_buff *skb);
int vrnic_resp_open(struct vrnic_qp *qp, u32 rkey, u64 va, u64 len, int access);

/* roce/resp_reply.c */
void vrnic_resp_atomic_ack(struct vrnic_qp *qp, const struct vrnic_res *res);

#endif /* VRNIC_ROCE_RESP_H */
