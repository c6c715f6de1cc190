// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCEv2 requester when an answer does not come: timers, retries, going back
 * to what may be lost, and how much is on the way afterwards.
 */

#include <linux/ktime.h>

#include "roce_req.h"

#define RNR_FOREVER	7

static u64 timeout_ns(const struct vrnic_qp *qp)
{
	return 4096ULL << qp->attr.timeout;
}

/*
 * When to look whether something was lost, if nobody answers: some times the
 * usual time, but not so early that a peer that was only held up is bothered.
 */
static u64 first_wait(const struct vrnic_qp *qp)
{
	const struct vrnic_req *q = &qp->roce->req;

	return clamp(2 * q->rtt + 4 * q->rtt_var, timeout_ns(qp) / 8,
		     timeout_ns(qp));
}

/* As TCP does it: RFC 6298. */
static void take_time(struct vrnic_req *q)
{
	s64 took = ktime_get_ns() - q->timed_at;

	if (q->rtt) {
		q->rtt_var += (abs(took - (s64)q->rtt) - (s64)q->rtt_var) / 4;
		q->rtt += (took - (s64)q->rtt) / 8;
	} else {
		q->rtt = took;
		q->rtt_var = took / 2;
	}
	q->timed = 0;
}

/**
 * vrnic_req_progress() - packets were acknowledged: time and retries start anew
 * @qp: requester
 * @before: its @una before that
 */
void vrnic_req_progress(struct vrnic_qp *qp, u64 before)
{
	struct vrnic_req *q = to_req(qp);

	if (q->timed && q->una > q->timed)
		take_time(q);
	q->deadline = 0;
	q->since = 0;
	q->wait = 0;
	q->rnr_left = qp->attr.rnr_retry;
	q->retry_left = qp->attr.retry_cnt;
	q->window = min_t(u64, q->window + q->una - before, VRNIC_WINDOW_PKTS);
	if (q->cur <= q->una) {
		q->cur = q->una;
		q->reads = 0;
	}
}

static void go_back(struct vrnic_req *q)
{
	q->cur = q->una;
	q->send = q->head;
	q->reads = 0;
	q->acked_at = q->una;
	/* an answer may be to either packet */
	q->timed = 0;
}

/**
 * vrnic_req_go_back_lost() - a loss: what is on the way is sent again, so have
 * less of it
 * @q: requester
 */
void vrnic_req_go_back_lost(struct vrnic_req *q)
{
	q->window = max_t(u32, q->window / 2, VRNIC_WINDOW_MIN);
	go_back(q);
}

/**
 * vrnic_req_go_back_once() - go back because of an answer: once, until there is
 * progress or a timeout
 * @q: requester
 */
void vrnic_req_go_back_once(struct vrnic_req *q)
{
	if (q->went_back == q->una)
		return;
	q->went_back = q->una;
	vrnic_req_go_back_lost(q);
}

/**
 * vrnic_req_rnr() - the peer has no receive posted: leave it alone for a while
 * @qp: requester
 * @code: how long, as IBTA table 45 has it
 */
void vrnic_req_rnr(struct vrnic_qp *qp, u8 code)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	vrnic_count(qp->dev, RCVD_RNR_ERR);
	w = vrnic_req_oldest(q, &i);
	if (!w || q->rnr_until)
		return;
	if (!q->rnr_left) {
		vrnic_count(qp->dev, RETRY_RNR_EXCEEDED_ERR);
		vrnic_req_fail(qp, w, IB_WC_RNR_RETRY_EXC_ERR, VRNIC_VERR_RNR);
		return;
	}
	if (q->rnr_left != RNR_FOREVER)
		q->rnr_left--;
	vrnic_count(qp->dev, RNR_WAITS);
	q->rnr_until = ktime_get_ns() + vrnic_rnr_ns(code);
	q->deadline = 0;
	q->since = 0;
	q->wait = 0;
	go_back(q);
}

/*
 * Nobody answered in time. The time that the consumer set makes up one try, but
 * what was lost is looked for several times within it.
 */
static void timed_out(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	q->deadline = 0;
	vrnic_count(qp->dev, ACK_TIMEOUTS);
	w = vrnic_req_oldest(q, &i);
	if (!w)
		return;
	if (now - q->since >= timeout_ns(qp)) {
		if (!q->retry_left) {
			vrnic_count(qp->dev, RETRY_EXCEEDED_ERR);
			vrnic_req_fail(qp, w, IB_WC_RETRY_EXC_ERR,
				       VRNIC_VERR_PEER);
			return;
		}
		q->retry_left--;
		q->since = now;
		vrnic_count(qp->dev, RETRIES);
	}
	q->went_back = 0;
	vrnic_req_go_back_lost(q);
}

/**
 * vrnic_req_clock() - do what is due by now
 * @qp: requester
 */
void vrnic_req_clock(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now;

	if (!q->timer_at && !q->rnr_until && !q->deadline)
		return;
	now = ktime_get_ns();
	if (q->timer_at && now >= q->timer_at)
		q->timer_at = 0;
	if (q->rnr_until && now >= q->rnr_until)
		q->rnr_until = 0;
	if (q->deadline && now >= q->deadline)
		timed_out(qp, now);
}

static void set_deadline(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);

	if (!q->since)
		q->since = now;
	q->wait = q->wait ? 2 * q->wait : first_wait(qp);
	/* the last look within a try is at its end */
	q->deadline = min(now + q->wait, q->since + timeout_ns(qp));
	if (q->deadline <= now)
		q->deadline = now + first_wait(qp);
}

/**
 * vrnic_req_set_timer() - have the timer run if an answer is due, or the peer is
 * to be left alone
 * @qp: requester
 */
void vrnic_req_set_timer(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now = 0, at;

	if (q->una < q->cur && !q->deadline && qp->attr.timeout) {
		now = ktime_get_ns();
		set_deadline(qp, now);
	}
	at = q->rnr_until ?: q->deadline;
	if (!at || (q->timer_at && q->timer_at <= at))
		return;
	if (!now)
		now = ktime_get_ns();
	q->timer_at = at;
	vrnic_queue_after(&qp->run, at > now ? at - now : 1);
}
