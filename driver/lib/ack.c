// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is outstanding, and what an acknowledgment means: see lib/ack.h. */

#include <linux/bug.h>
#include <linux/minmax.h>

#include "lib/ack.h"

/* ---- requester ---- */

/**
 * vrnic_flight_start() - initialise a requester that has sent nothing yet
 * @f: requester; its window @ops is allocated
 * @psn: PSN of the first packet
 */
void vrnic_flight_start(struct vrnic_flight *f, u32 psn)
{
	/* far from zero, so that counts before the first one do not wrap below zero */
	f->una = (1ULL << 32) | (psn & VRNIC_PSN_MASK);
	f->cur = f->una;
	f->top = f->una;
	f->next = f->una;
	f->fence = f->una;
}

/**
 * vrnic_flight_add() - add an operation to the window
 * @f: requester
 * @w: entry at @f->tail; its number of packets is known
 * @fenced: the operation waits for earlier ones that are answered by more than an acknowledgment
 */
void vrnic_flight_add(struct vrnic_flight *f, struct vrnic_wop *w, bool fenced)
{
	w->first = f->next;
	w->after = fenced ? f->fence : 0;
	f->next += w->pkts;
	if (w->answered)
		f->fence = f->next;
	f->tail++;
}

/**
 * vrnic_flight_oldest() - find the operation of packet @f->una
 * @f: requester
 * @index: set to the operation's index in the window
 *
 * Return: operation, or NULL if all are settled.
 */
struct vrnic_wop *vrnic_flight_oldest(struct vrnic_flight *f, u32 *index)
{
	struct vrnic_wop *w;

	/* operations that have left the window count as settled */
	if ((s32)(f->head - f->oldest) > 0)
		f->oldest = f->head;
	for (; f->oldest != f->tail; f->oldest++) {
		w = vrnic_wop_at(f, f->oldest);
		if (vrnic_wop_end(w) <= f->una)
			continue;
		*index = f->oldest;
		return w;
	}
	return NULL;
}

/**
 * vrnic_flight_sent() - note that packet @f->cur was sent
 * @f: requester
 * @w: operation of the packet
 * @n: number of PSNs that the packet takes: 1, or, for a READ, one for each packet of the answer
 */
void vrnic_flight_sent(struct vrnic_flight *f, const struct vrnic_wop *w, u32 n)
{
	WARN_ON_ONCE(f->una < w->after);
	if (w->answered && f->cur == f->top)
		f->reads++;
	f->cur += n;
	if (f->hold)
		f->hold = max(f->hold, f->cur);
	f->top = max(f->top, f->cur);
}

/**
 * vrnic_flight_acked() - note that the peer has acknowledged all packets before @limit
 * @f: requester
 * @limit: count; no more than @f->top
 *
 * Return: false if the answer to one of these packets is missing. The acknowledgment then settles
 * only packets before the operation that the answer belongs to.
 */
bool vrnic_flight_acked(struct vrnic_flight *f, u64 limit)
{
	u32 i;

	for (i = f->head; i != f->tail && f->una < limit; i++) {
		struct vrnic_wop *w = vrnic_wop_at(f, i);

		if (vrnic_wop_end(w) <= f->una)
			continue;
		if (w->answered)
			return false;
		f->una = min(vrnic_wop_end(w), limit);
	}
	return true;
}

/* Packet @n of an answer to @w has come. Does the answer to one request of @w end there? */
static bool ends_answer(const struct vrnic_wop *w, u64 n)
{
	return n == w->pkts || (w->chunk && !(n % w->chunk));
}

/**
 * vrnic_flight_answered() - note that packets of an answer came, and were used
 * @f: requester; the first of the packets answers @f->una
 * @w: operation that is answered
 * @pkts: number of packets; the operation lacks as many, all of which were sent for
 */
void vrnic_flight_answered(struct vrnic_flight *f, const struct vrnic_wop *w, u32 pkts)
{
	while (pkts--) {
		f->una++;
		if (ends_answer(w, f->una - w->first) && !WARN_ON_ONCE(!f->reads))
			f->reads--;
	}
}

/*
 * The first packet that a peer that keeps packets behind a gap has not kept. A responder keeps no
 * request that is answered by more than an acknowledgment: vrnic_early_drop_answered().
 */
static u64 not_kept(struct vrnic_flight *f)
{
	u32 i;

	for (i = f->head; i != f->tail; i++) {
		struct vrnic_wop *w = vrnic_wop_at(f, i);

		if (w->answered && w->first >= f->una)
			return min(w->first, f->top);
	}
	return f->top;
}

/**
 * vrnic_flight_moved() - note that there was progress: @f->una has moved
 * @f: requester
 *
 * After a loss, only the packets before @f->hold are sent again. If the peer acknowledges more than
 * these, it has kept packets behind the gap. The requester then need not send these again: a NAK
 * tells if one of them is missing.
 */
void vrnic_flight_moved(struct vrnic_flight *f)
{
	bool kept = f->hold && f->una > f->hold;

	f->cur = max(f->cur, kept ? not_kept(f) : f->una);
	f->hold = kept && f->cur < f->top ? f->cur + 1 : 0;
}

/* The requester sends again from @f->una on. All packets before @f->top stay outstanding. */
void vrnic_flight_go_back(struct vrnic_flight *f)
{
	f->cur = f->una;
	f->send = f->head;
	f->hold = 0;
}

/* ---- responder ---- */

/**
 * vrnic_served_start() - initialise a responder that has executed nothing yet
 * @s: responder
 * @psn: PSN of the first packet
 */
void vrnic_served_start(struct vrnic_served *s, u32 psn)
{
	s->psn = psn & VRNIC_PSN_MASK;
	s->ack_psn = vrnic_psn_add(psn, -1);
}

/**
 * vrnic_served_data() - note that packets of a SEND or WRITE were executed
 * @s: responder
 * @pkts: number of packets
 * @ackreq: the requester asked for an acknowledgment
 */
void vrnic_served_data(struct vrnic_served *s, u32 pkts, bool ackreq)
{
	s->psn = vrnic_psn_add(s->psn, pkts);
	s->ack_psn = vrnic_psn_add(s->psn, -1);
	s->due |= ackreq;
}

/**
 * vrnic_served_answered() - note that a request was executed whose answer acknowledges it
 * @s: responder
 * @pkts: number of packets of the answer
 */
void vrnic_served_answered(struct vrnic_served *s, u32 pkts)
{
	s->psn = vrnic_psn_add(s->psn, pkts);
	s->due = false;
}

/**
 * vrnic_served_take_ack() - take the acknowledgment that is due, to send it
 * @s: responder
 * @psn: set to the PSN of the acknowledgment
 *
 * Return: false if none is due.
 */
bool vrnic_served_take_ack(struct vrnic_served *s, u32 *psn)
{
	if (!s->due)
		return false;
	s->due = false;
	*psn = s->ack_psn;
	return true;
}

/*
 * The PSN of a NAK that the responder sends now. A NAK acknowledges all packets before its PSN, so
 * no acknowledgment is due any more.
 */
u32 vrnic_served_take_nak(struct vrnic_served *s)
{
	s->due = false;
	return s->psn;
}

/*
 * Remember the answer to a request, in the place of the oldest one; the caller fills in the rest.
 * The ring has as many entries as the requester may have such requests outstanding, so the
 * requester does not ask for the oldest answer again.
 */
struct vrnic_res *vrnic_res_new(struct vrnic_served *s, u8 op, u32 psn, u32 pkts)
{
	struct vrnic_res *res = &s->res[s->next_res];

	s->next_res = (s->next_res + 1) % s->nr_res;
	*res = (struct vrnic_res) { .op = op, .psn = psn, .pkts = pkts };
	return res;
}

/**
 * vrnic_res_find() - find an answer that the requester asks for again, in part or whole
 * @s: responder
 * @op: enum vrnic_bth_op of the request
 * @psn: PSN of the request
 *
 * Return: answer, or NULL if it was forgotten.
 */
struct vrnic_res *vrnic_res_find(struct vrnic_served *s, u8 op, u32 psn)
{
	u32 i;

	/* the newest first, as an old answer may have the same PSN: PSNs are used in a circle */
	for (i = 1; i <= s->nr_res; i++) {
		struct vrnic_res *res =
			&s->res[(s->next_res + s->nr_res - i) % s->nr_res];

		if (res->op == op && res->pkts &&
		    vrnic_psn_diff(psn, res->psn) >= 0 &&
		    vrnic_psn_diff(psn, res->psn) < (s32)res->pkts)
			return res;
	}
	return NULL;
}
