// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How fast a queue pair may send: no faster than its consumer's limit, and, over the wire, than
 * congestion control allows. What a queue pair sends is a debt, which time pays off. A sender in
 * debt does not block: its timer runs the queue pair again when the debt is paid.
 *
 * Congestion on the wire: routers mark packets (ECN), the receiver notifies the sender (CNP, annex
 * A17.9.3), and lib/cc.c sets the sender's rate.
 */

#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>

#include "lib/cc.h"
#include "lib/hdr.h"
#include "queue/qp.h"
#include "roce/rate.h"
#include "roce/roce.h"
#include "vrnic.h"

#define CNP_EVERY	(50 * NSEC_PER_USEC)
#define PERIOD_MIN	CNP_EVERY
#define PERIOD_MAX	(100 * NSEC_PER_MSEC)
#define PERIOD_USUAL	(4 * NSEC_PER_MSEC)	/* for a responder, which measures no round trip */
/* A queue pair that sends nothing saves up for later packets, but no more than this time. */
#define SLACK		NSEC_PER_MSEC
/* Bytes that a queue pair without a debt may always send at once, if @roce is NULL. */
#define LOCAL_UNIT	4096
/* Most debt, in units of unit_of(): more than a sender can send at once, with headers. */
#define DEBT_UNITS	8

static u32 unit_of(const struct vrnic_qp *qp)
{
	if (qp->roce)
		return qp->roce->mtu + VRNIC_HDR_BYTES;
	if (qp->type == IB_QPT_RAW_PACKET)
		return READ_ONCE(qp->dev->ndev->mtu) + VLAN_ETH_HLEN;
	return LOCAL_UNIT;
}

/* Bytes a second that the consumer and congestion control allow; 0: no limit. */
static u64 rate_of(const struct vrnic_qp *qp)
{
	u64 left = qp->roce ? qp->roce->cc.rate : 0;

	return min_not_zero(qp->limit, left);
}

static struct vrnic_cc_scale scale_of(const struct vrnic_qp *qp, u64 now)
{
	u64 rtt = qp->roce->req.rtt ?: PERIOD_USUAL;

	return (struct vrnic_cc_scale) {
		.now = now,
		.period = clamp_t(u64, rtt, PERIOD_MIN, PERIOD_MAX),
		.unit = qp->roce->mtu,
	};
}

/**
 * vrnic_rate_room() - bytes that a queue pair may send now
 * @qp: sender; its run bit is held
 * @until: set if nothing may be sent: time, in ns, to ask again
 *
 * Return: bytes, with headers, enough for one packet at least; 0: nothing now; VRNIC_RATE_ANY: no
 * limit.
 */
u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until)
{
	u64 rate = rate_of(qp), now;

	if (!rate)
		return VRNIC_RATE_ANY;
	now = ktime_get_ns();
	if (qp->roce) {
		struct vrnic_cc_scale scale = scale_of(qp, now);

		vrnic_cc_passed(&qp->roce->cc, &scale);
		rate = rate_of(qp);
		if (!rate)
			return VRNIC_RATE_ANY;
	}
	if (qp->paid_at > now) {
		/*
		 * what the queue pair sent after it had asked here makes no larger debt at this
		 * rate; forgive the rest, or it could not send for long
		 */
		qp->paid_at = min(qp->paid_at,
				  now + vrnic_cc_ns(DEBT_UNITS * unit_of(qp), rate));
		*until = qp->paid_at;
		return 0;
	}
	qp->paid_at = max_t(u64, qp->paid_at, now - SLACK);
	return unit_of(qp) + (now - qp->paid_at) * (rate / 1000) / NSEC_PER_MSEC;
}

/**
 * vrnic_rate_sent() - charge a queue pair for bytes that it sent
 * @qp: sender; its run bit is held
 * @bytes: number of bytes, with headers
 */
void vrnic_rate_sent(struct vrnic_qp *qp, u64 bytes)
{
	u64 rate;

	if (qp->roce)
		vrnic_cc_sent(&qp->roce->cc, bytes, qp->roce->mtu);
	rate = rate_of(qp);
	if (rate)
		qp->paid_at += vrnic_cc_ns(bytes, rate);
}

static void send_cnp(struct vrnic_qp *qp)
{
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_CNP,
		.dqpn = qp->attr.dest_qp_num,
		.ext_len = VRNIC_CNP_BYTES,
	};

	BUILD_BUG_ON(VRNIC_CNP_BYTES > VRNIC_EXT_MAX);
	vrnic_count(qp->dev, NP_CNP_SENT);
	vrnic_roce_xmit(qp, &qp->roce->path, &tx);
}

/**
 * vrnic_rate_marked() - packets came that routers had marked: notify their sender
 * @qp: receiver
 * @count: number of packets
 */
void vrnic_rate_marked(struct vrnic_qp *qp, u32 count)
{
	struct vrnic_roce *roce = qp->roce;
	u64 now = ktime_get_ns();

	vrnic_count_add(qp->dev, NP_ECN_MARKED_ROCE_PACKETS, count);
	if (roce->told_at && now - roce->told_at < CNP_EVERY)
		return;
	roce->told_at = now;
	send_cnp(qp);
}

/**
 * vrnic_rate_congested() - packets of this queue pair met congestion: lower its rate
 * @qp: sender
 */
void vrnic_rate_congested(struct vrnic_qp *qp)
{
	struct vrnic_cc_scale scale = scale_of(qp, ktime_get_ns());
	const struct vrnic_req *q = &qp->roce->req;

	/* the rate until now: the requester sends at most a window in each round trip */
	if (q->rtt)
		scale.rate = (u64)q->window * qp->roce->mtu * NSEC_PER_SEC / q->rtt;
	vrnic_cc_notified(&qp->roce->cc, &scale);
}

/**
 * vrnic_rate_notified() - a CNP came: lower the rate
 * @qp: sender
 */
void vrnic_rate_notified(struct vrnic_qp *qp)
{
	vrnic_count(qp->dev, RP_CNP_HANDLED);
	vrnic_rate_congested(qp);
}
