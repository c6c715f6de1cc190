// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCEv2 requester when an answer does not come: timers, retries, going back to what may be
 * lost, and how many packets may be in flight afterwards.
 *
 * The consumer's ACK timeout is one try. Within it, the requester looks for losses several times:
 * it sends again from the oldest packet that is not settled.
 */

#include <linux/ktime.h>

#include "engine/engine.h"
#include "lib/ack.h"
#include "queue/qp.h"
#include "queue/recv.h"
#include "roce/req.h"
#include "roce/roce.h"
#include "vrnic.h"

#define RNR_FOREVER	7
#define RTT_MIN_SHIFT	12	/* rtt_min grows by 2^-12 of itself with each sample */
#define QUEUED_NS	NSEC_PER_MSEC	/* a busy CPU may delay a packet for less than this */
#define QUEUED_GROWTH	12	/* packets for which a window in a queue grows by one */

/*
 * Time, in ns, that the requester waits for an answer before it looks for a loss. It is a multiple
 * of the usual time to an answer, but not less than a fraction of the ACK timeout, as the peer may
 * only be slow: rdma_rxe yields the CPU after 1024 packets. The fraction is an eighth for some time
 * after a loss, and a half otherwise, when a long wire or a slow peer is more likely. A native link
 * looks four times as early: it often has one message in flight, and no later one that would show
 * its loss.
 */
static u64 first_wait(const struct vrnic_qp *qp)
{
	const struct vrnic_req *q = &qp->roce->req;
	u64 usual = max(2 * q->rtt + 4 * q->rtt_var, q->patience);
	u64 least = ack_timeout(qp) / (q->fly.una < q->lossy ? 8 : 2);

	if (qp->link)
		least /= 4;
	return clamp(usual, least, ack_timeout(qp));
}

/*
 * Smooth the time of an answer as TCP does: RFC 6298. Also keep the least time, but forget it
 * within some thousand samples, as the path may have become longer.
 */
static void take_time(struct vrnic_req *q)
{
	s64 took = ktime_get_ns() - q->timed_at;

	q->rtt_min = min_not_zero(q->rtt_min + (q->rtt_min >> RTT_MIN_SHIFT), (u64)took);
	if (q->rtt) {
		q->rtt_var += (abs(took - (s64)q->rtt) - (s64)q->rtt_var) / 4;
		q->rtt += (took - (s64)q->rtt) / 8;
	} else {
		q->rtt = took;
		q->rtt_var = took / 2;
	}
	q->timed = 0;
	q->patience = 0;
}

/*
 * An answer came after a look for losses. The packet may have been late, not lost: on a very long
 * wire each answer is. Only packets that were sent once are timed, so this is the first time known.
 */
static void take_late(struct vrnic_req *q)
{
	u64 took = ktime_get_ns() - q->looked;

	q->patience = took + took / 4;
	q->looked = 0;
}

/*
 * Do packets stand in a queue? A quarter above the least time tells, because a flow that began when
 * the queue was full knows no shorter time than that of a queue that has drained a little.
 */
static bool is_queued(const struct vrnic_req *q)
{
	return q->rtt > q->rtt_min + q->rtt_min / 4 + QUEUED_NS;
}

/* Do the packets of this queue pair, or their acknowledgments, stand in a queue on the wire? */
bool vrnic_req_queued(const struct vrnic_qp *qp)
{
	return is_queued(&qp->roce->req);
}

/* The least window that losses leave. A small one does not slow down packets that queue anyway. */
static u32 window_min(const struct vrnic_req *q)
{
	return is_queued(q) ? VRNIC_WINDOW_QUEUED : VRNIC_WINDOW_MIN;
}

/*
 * Packets that have to be acknowledged before the window grows by one, which makes two for each
 * window. For a flow whose share of a queue is a few packets that is much, as all others grow, too:
 * there, the window grows by at most one packet for QUEUED_GROWTH.
 */
static u32 growth(const struct vrnic_req *q)
{
	return max_t(u32, q->window / 2, is_queued(q) ? QUEUED_GROWTH : 1);
}

static void grow(struct vrnic_req *q, u64 arrived)
{
	q->arrived += arrived;
	while (q->window < VRNIC_WINDOW_PKTS && q->arrived >= growth(q)) {
		q->arrived -= growth(q);
		q->window++;
	}
	q->arrived = min_t(u64, q->arrived, VRNIC_WINDOW_PKTS);
}

/**
 * vrnic_req_progress() - packets were settled: reset timers and retries
 * @qp: requester
 * @before: fly.una before that
 */
void vrnic_req_progress(struct vrnic_qp *qp, u64 before)
{
	struct vrnic_req *q = to_req(qp);

	if (q->looked)
		take_late(q);
	if (q->timed && q->fly.una > q->timed)
		take_time(q);
	q->deadline = 0;
	q->since = 0;
	q->wait = 0;
	q->rnr_left = qp->attr.rnr_retry;
	q->rnr_since = 0;
	q->retry_left = qp->attr.retry_cnt;
	vrnic_flight_moved(&q->fly);
	grow(q, q->fly.una - before);
}

static void go_back(struct vrnic_req *q)
{
	vrnic_flight_go_back(&q->fly);
	q->acked_at = q->fly.una;
	/* nothing tells which of the two transmissions of a packet an answer belongs to */
	q->timed = 0;
}

/**
 * vrnic_req_go_back_lost() - handle a loss: go back, and have fewer packets in flight
 * @qp: requester
 *
 * The requester sends @probe packets from the lost one on, and waits. If the peer has kept the
 * packets behind them, it acknowledges these, too, and they need not be sent again. Otherwise the
 * rest follows.
 *
 * Losses among packets that were in flight together (before @recover) are one sign of congestion,
 * so they shrink the window once. It takes a round trip to learn of each, so each further one
 * doubles @probe. But the peer may have most of the packets already, so @probe is a quarter of the
 * window at most: many flows that share a link have small windows.
 *
 * A queue that overflows tells of congestion as an ECN mark does, but later.
 */
void vrnic_req_go_back_lost(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (q->fly.una >= q->recover) {
		if (is_queued(q))
			vrnic_rate_congested(qp);
		q->window = max(q->window / 2, window_min(q));
		q->recover = q->fly.top;
		q->probe = VRNIC_PROBE;
	} else {
		q->probe = max_t(u32, min(2 * q->probe, q->window / 4), VRNIC_PROBE);
	}
	q->lossy = q->fly.una + VRNIC_CLEAN_PKTS;
	go_back(q);
	q->fly.hold = q->fly.una + q->probe;
}

/**
 * vrnic_req_go_back_once() - go back because an answer is missing before one that came
 * @qp: requester
 *
 * Further early answers say the same, so this goes back once, until there is progress or a timeout.
 */
void vrnic_req_go_back_once(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (q->went_back == q->fly.una)
		return;
	q->went_back = q->fly.una;
	vrnic_req_go_back_lost(qp);
}

/**
 * vrnic_req_gap() - ask again for an answer that is missing before an early one, and overdue
 * @qp: requester
 *
 * An answer that waits for a page is not missing: it is here.
 */
void vrnic_req_gap(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 due;

	if (q->answer_at || !vrnic_early_any(&q->early) || q->went_back == q->fly.una)
		return;
	vrnic_early_peek(&q->early, q->fly.una);
	if (!vrnic_early_any(&q->early))
		return;
	due = vrnic_early_due(&q->early);
	if (due > ktime_get_ns()) {
		vrnic_queue_at(&qp->run, due);
		return;
	}
	vrnic_early_asked(&q->early, q->fly.una);
	vrnic_req_go_back_once(qp);
	/* one packet; send_read() then asks for the missing answers only */
	q->fly.hold = q->fly.una + 1;
}

/*
 * A native link does not count RNR retries. Instead, its peer has to be ready within the time in
 * which a peer that does not answer at all is given up.
 */
static bool rnr_too_long(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now = ktime_get_ns();

	if (!qp->link)
		return false;
	if (!q->rnr_since)
		q->rnr_since = now;
	return now - q->rnr_since > (qp->attr.retry_cnt + 1) * ack_timeout(qp);
}

/**
 * vrnic_req_rnr() - an RNR NAK came: wait for as long as it says, then go back
 * @qp: requester
 * @code: time to wait, by IBTA table 45
 */
void vrnic_req_rnr(struct vrnic_qp *qp, u8 code)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	vrnic_count(qp->dev, RCVD_RNR_ERR);
	w = vrnic_flight_oldest(&q->fly, &i);
	if (!w || q->rnr_until)
		return;
	if (!q->rnr_left || rnr_too_long(qp)) {
		vrnic_count(qp->dev, RETRY_RNR_EXCEEDED_ERR);
		vrnic_req_fail(qp, w, IB_WC_RNR_RETRY_EXC_ERR, VRNIC_VERR_RNR);
		return;
	}
	if (q->rnr_left != RNR_FOREVER)
		q->rnr_left--;
	vrnic_count(qp->dev, RNR_WAITS);
	qp->rare.rnr_waits++;
	q->rnr_until = ktime_get_ns() + vrnic_rnr_ns(code);
	q->deadline = 0;
	q->since = 0;
	/* a time that includes the wait for the peer to be ready tells nothing about the wire */
	q->looked = 0;
	q->wait = 0;
	go_back(q);
}

/**
 * vrnic_req_refused() - go back to a packet that the peer refused
 * @qp: requester of a native link
 * @w: message that ends with this packet
 * @skip: send SKIP in its place; else it is not the same any more
 */
void vrnic_req_refused(struct vrnic_qp *qp, struct vrnic_wop *w, bool skip)
{
	struct vrnic_req *q = to_req(qp);

	w->skip = skip;
	q->deadline = 0;
	q->since = 0;
	q->looked = 0;
	q->wait = 0;
	go_back(q);
	/* the peer has kept the packets behind this one, if it has room for them */
	q->fly.hold = q->fly.una + 1;
}

/*
 * No answer came before the deadline: look for a loss. If the try is over, count a retry, or let
 * the oldest operation fail.
 */
static void timed_out(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	q->deadline = 0;
	vrnic_count(qp->dev, ACK_TIMEOUTS);
	qp->rare.ack_timeouts++;
	w = vrnic_flight_oldest(&q->fly, &i);
	if (!w)
		return;
	if (now - q->since >= ack_timeout(qp)) {
		if (!q->retry_left) {
			vrnic_count(qp->dev, RETRY_EXCEEDED_ERR);
			vrnic_req_fail(qp, w, IB_WC_RETRY_EXC_ERR,
				       VRNIC_VERR_PEER);
			return;
		}
		q->retry_left--;
		q->since = now;
		vrnic_count(qp->dev, RETRIES);
		qp->rare.retries++;
	}
	/* the look before this one had no answer either: the path has no room for this flow */
	if (q->looked)
		q->window = window_min(q);
	q->looked = q->since;
	q->went_back = 0;
	/* other flows may look at the same time, so send only VRNIC_PROBE packets again */
	q->probe = 0;
	vrnic_req_go_back_lost(qp);
}

/* Does an answer of the peer wait behind a request that has to wait here? */
static bool waits_behind(struct vrnic_qp *qp)
{
	struct sk_buff *skb;
	bool answer = false;

	if (!vrnic_resp_busy(qp) && !qp->roce->resp.retry_at)
		return false;
	spin_lock_bh(&qp->rxq.lock);
	skb_queue_walk(&qp->rxq, skb) {
		answer = vrnic_pkt(skb)->info & VRNIC_PKT_RESP;
		if (answer)
			break;
	}
	spin_unlock_bh(&qp->rxq.lock);
	return answer;
}

/**
 * vrnic_req_clock() - handle the times that are over by now: timer, RNR wait, deadline
 * @qp: requester
 */
void vrnic_req_clock(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now;

	if (!q->rnr_until && !q->deadline)
		return;
	now = ktime_get_ns();
	if (q->rnr_until && now >= q->rnr_until)
		q->rnr_until = 0;
	if (!q->deadline || now < q->deadline)
		return;
	/* it is no silence of the peer when what it sent waits here */
	if (q->answer_at || waits_behind(qp))
		q->deadline = now + NSEC_PER_MSEC;
	else
		timed_out(qp, now);
}

/*
 * A part of @wait that differs from queue pair to queue pair. Otherwise flows that met the same
 * full queue would look for losses together again and again, and the last of them never find room.
 */
static u64 retry_spread(const struct vrnic_qp *qp, u64 wait)
{
	return wait / 512 * (qp->qpn % 256);
}

static void set_deadline(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);

	if (!q->since)
		q->since = now;
	q->wait = q->wait ? 2 * q->wait + retry_spread(qp, q->wait) : first_wait(qp);
	/* the last look of a try comes no later than the end of the try */
	q->deadline = min(now + q->wait, q->since + ack_timeout(qp));
	if (q->deadline <= now)
		q->deadline = now + first_wait(qp);
}

/**
 * vrnic_req_set_timer() - set the timer for the end of an RNR wait, or for the next deadline
 * @qp: requester
 */
void vrnic_req_set_timer(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 at;

	if (q->fly.una < q->fly.cur && !q->deadline && qp->attr.timeout)
		set_deadline(qp, ktime_get_ns());
	at = q->rnr_until ?: q->deadline;
	if (at)
		vrnic_queue_at(&qp->run, at);
}
