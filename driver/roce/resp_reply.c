// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Answers of a responder that are more than an acknowledgment: the data of READs and the results of
 * atomics. The responder remembers these requests, because the requester may ask again.
 */

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/target.h"
#include "queue/xrc.h"
#include "roce/rate.h"
#include "roce/resp.h"
#include "roce/roce.h"
#include "vrnic.h"

void vrnic_resp_atomic_ack(struct vrnic_qp *qp, const struct vrnic_res *res)
{
	struct vrnic_tx tx = { .opcode = VRNIC_BTH_ATOMIC_ACK, .psn = res->psn };
	struct vrnic_atomicack ack = { .orig = cpu_to_be64(res->result) };

	vrnic_resp_put_aeth(qp, &tx, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED);
	memcpy(tx.ext + tx.ext_len, &ack, sizeof(ack));
	tx.ext_len += sizeof(ack);
	vrnic_resp_send(qp, &tx);
}

static u8 reply_opcode(const struct vrnic_reply *reply, u32 n)
{
	bool last = n == reply->left;

	if (reply->first)
		return last ? VRNIC_BTH_READ_RESP_ONLY :
			      VRNIC_BTH_READ_RESP_FIRST;
	return last ? VRNIC_BTH_READ_RESP_LAST : VRNIC_BTH_READ_RESP_MIDDLE;
}

/* The packet @psn of an answer was sent. The READ counts once, however often it is answered. */
static noinline void count_answered(struct vrnic_qp *qp, u32 psn)
{
	struct vrnic_res *res = vrnic_res_find(&to_resp(qp)->served, VRNIC_BTH_READ_REQUEST, psn);

	if (!res || res->counted || vrnic_psn_diff(psn, res->psn) != (s32)res->pkts - 1)
		return;
	res->counted = true;
	vrnic_qp_count(qp, VRNIC_COMP_REMOTE_RDMA_READ, res->len, IB_WC_SUCCESS);
}

/* Send the next packet of the answer. Return: false if it was the last, or was not sent. */
static bool reply_one(struct vrnic_qp *qp, struct vrnic_reply *reply)
{
	u32 n = min(reply->left, qp->roce->mtu);
	struct vrnic_tx tx = {
		.opcode = reply_opcode(reply, n),
		.psn = reply->psn,
		.src = &qp->recv_sgl,
		.len = n,
		/* the owner of the memory does not know of the READ, and may write at any time */
		.copy = true,
		.dqpn = qp->attr.dest_qp_num,
	};
	int err;

	if (tx.opcode != VRNIC_BTH_READ_RESP_MIDDLE)
		vrnic_resp_put_aeth(qp, &tx, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED);
	if (reply->replay) {
		vrnic_count(qp->dev, RETRANSMITTED_PKTS);
		qp->rare.retransmitted_pkts++;
	}
	to_resp(qp)->replied = true;
	err = vrnic_roce_xmit(qp, &qp->roce->path, &tx);
	reply->first = false;
	reply->psn = vrnic_psn_add(reply->psn, 1);
	reply->va += n;
	reply->left -= n;
	reply->active = reply->left;
	if (unlikely(qp->comp) && !reply->active && !err)
		count_answered(qp, tx.psn);
	return reply->active && err != -ENOMEM && err != -EHOSTUNREACH;
}

/*
 * The memory is not available any more. If the READ was answered before, the requester may have the
 * whole answer, and may have had the memory invalidated since. Then the READ and this NAK are only
 * late, and this queue pair stays as it is. A requester that really lacks the answer fails when it
 * gets the NAK.
 *
 * @verr: enum vrnic_vendor_err. A request of XRC without its SRQ is invalid, early or late.
 */
static void reply_refuse(struct vrnic_qp *qp, struct vrnic_reply *reply, int verr)
{
	bool invalid = verr == VRNIC_VERR_SRQ;

	reply->active = false;
	qp->recv_wait.odp = NULL;
	vrnic_resp_answer(qp, VRNIC_BTH_ACK,
			  VRNIC_AETH_NAK | (invalid ? VRNIC_NAK_INVALID : VRNIC_NAK_ACCESS),
			  reply->psn);
	if (reply->replay)
		return;
	vrnic_count(qp->dev, REMOTE_ERRORS);
	qp->target_errors++;
	vrnic_qp_error(qp, invalid ? IB_EVENT_QP_REQ_ERR : IB_EVENT_QP_ACCESS_ERR);
}

/*
 * Find the memory of the answer. *@n: bytes that can be sent soon; set to how many can be sent now,
 * at least a packet's. Return: as vrnic_resp_open(), or VRNIC_VERR_SRQ.
 */
static int reply_open(struct vrnic_qp *qp, const struct vrnic_reply *reply, u64 *n)
{
	u64 packet = min(reply->left, qp->roce->mtu);
	int verr;

	/* the keys of an XRC target's requests are those of the domain of the SRQ */
	if (unlikely(qp->xrc) && vrnic_xrc_bind(qp, &qp->hold, reply->srqn))
		return VRNIC_VERR_SRQ;
	/* the owner may have withdrawn the right since, also between a READ and its repetition */
	if (!vrnic_resp_allows(qp, IB_ACCESS_REMOTE_READ))
		return VRNIC_VERR_ACCESS;
	verr = vrnic_resp_open(qp, reply->rkey, reply->va, reply->left, IB_ACCESS_REMOTE_READ);
	if (verr)
		return verr;
	verr = vrnic_sgl_ready(&qp->recv_sgl, n, packet, false, &qp->recv_wait);
	if (!verr && likely(*n >= packet))
		return 0;
	vrnic_sgl_put(&qp->recv_sgl);
	return verr ?: -EAGAIN;
}

/**
 * vrnic_resp_reply() - go on with the answer to a READ
 * @qp: target
 * @budget: its bytes bound this burst
 *
 * Return: false if nothing can be sent now, for the rate, or as a page is brought in; then the
 * timer runs.
 */
bool vrnic_resp_reply(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_reply *reply = &to_resp(qp)->reply;
	u64 n, until, room, there;
	int verr;

	room = vrnic_rate_room(qp, &until);
	if (!room) {
		vrnic_queue_at(&qp->run, until);
		return false;
	}
	there = min_t(u64, reply->left, budget->bytes + qp->roce->mtu);
	verr = reply_open(qp, reply, &there);
	if (verr == -EAGAIN) {
		vrnic_queue_after(&qp->run, vrnic_page_patience(&to_resp(qp)->page_tries));
		return false;
	}
	if (verr) {
		reply_refuse(qp, reply, verr);
		return true;
	}
	to_resp(qp)->page_tries = 0;
	do {
		n = min_t(u64, reply->left, qp->roce->mtu);
		if (n > there)
			break;
		there -= n;
		budget->bytes -= min(budget->bytes, n);
		room -= min(room, n + VRNIC_HDR_BYTES);
	} while (reply_one(qp, reply) && budget->bytes && room);
	vrnic_sgl_put(&qp->recv_sgl);
	return true;
}
