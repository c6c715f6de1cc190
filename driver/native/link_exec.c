// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Executes requests that have come over a native link, once all of their data are here. Each has
 * been checked; what only shows now, fails it (vrnic_rx_refuse()).
 */

#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/link_rx.h"
#include "native/native.h"
#include "native/type.h"
#include "vrnic.h"

/*
 * The answer has its data in memory that this process may change as soon as its counters say that
 * they were taken. So the answer counts, when the peer has acknowledged it.
 */
static void serve_get(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_nmsg *answer = link->rx.answer;
	struct vrnic_seg seg;
	int verr;

	verr = vrnic_rx_region(link, h->addr + h->pos, h->arg, IB_ACCESS_REMOTE_READ,
			       NULL, &seg);
	if (verr) {
		vrnic_rx_refuse_access(link, verr);
		return;
	}
	vrnic_nmsg_add(answer, &seg);
	answer->taken = h->arg;
	memcpy(answer->counter, h->counter, sizeof(answer->counter));
}

void vrnic_rx_put(struct vrnic_link *link)
{
	u32 bytes = link->rx.h.data - vrnic_nhdr_rows(&link->rx.h);

	if (bytes)
		vrnic_rx_count(link, bytes);
}

static void serve_rmw(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	const struct vrnic_ndesc_rmw rmw = {
		.operand = h->pos,
		.compare = h->cookie,
	};
	struct vrnic_seg seg;
	void *word;
	int verr;

	verr = vrnic_rx_region(link, h->addr, h->total, IB_ACCESS_REMOTE_ATOMIC,
			       &link->qp->hold.remote, &seg);
	if (verr) {
		vrnic_rx_refuse_access(link, verr);
		return;
	}
	word = vrnic_seg_word(&seg, h->total);
	if (word)
		answer->pos = vrnic_native_rmw(word, h->total, h->arg, &rmw);
	vrnic_seg_put(&seg);
	if (!word) {
		vrnic_rx_refuse_access(link, VRNIC_VERR_ALIGN);
		return;
	}
	vrnic_count(link->fifo->dev, ATOMICS);
	vrnic_rx_count(link, 1);
}

/* Post a record that names the peer. Return: false if there is no room, so the answer is AGAIN. */
static bool post_record(struct vrnic_link *link, struct vrnic_record *rec,
			const struct vrnic_seg *seg, struct vrnic_nhdr *answer)
{
	rec->source = link->peer.fifo;
	rec->host = vrnic_host_number(link->host);
	rec->task = link->peer.task;
	if (!vrnic_record_post(link->fifo, rec, seg, seg ? 1 : 0))
		return true;
	answer->flags |= VRNIC_NWIRE_AGAIN;
	return false;
}

static void serve_message(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg seg = { .kva = link->rx.buf, .len = h->data };
	struct vrnic_record rec = {
		.kind = VRNIC_REC_MESSAGE,
		.opcode = VRNIC_NOP_MESSAGE,
		.header_len = h->key,
		.length = h->total,
		.arg = h->arg,
		.cookie = h->cookie,
	};

	if (post_record(link, &rec, &seg, answer))
		vrnic_rx_count(link, 1);
}

static void serve_rget(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg descs = { .kva = link->rx.buf, .len = h->data };

	switch (vrnic_rget_deliver(link->fifo, &link->peer, link->fifo, link, &descs, false)) {
	case 0:
		vrnic_rx_count(link, 1);
		break;
	case -ENOMEM:
		vrnic_rget_make_room(link->fifo, h->data);
		fallthrough;
	case -EAGAIN:
		answer->flags |= VRNIC_NWIRE_AGAIN;
		break;
	default:
		vrnic_rx_refuse(link, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	}
}

static void serve_notify(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_failure failure = {};
	struct vrnic_record rec = {
		.kind = VRNIC_REC_NOTIFY,
		.opcode = VRNIC_NOP_NOTIFY,
		.arg = h->arg,
		.cookie = h->cookie,
	};

	vrnic_counter_failure(h->counter[0], link->fifo->owner, &failure);
	rec.status = failure.status;
	rec.vendor_err = failure.vendor_err;
	answer->pos = failure.status | (u64)failure.vendor_err << 8;
	if (h->flags & VRNIC_NWIRE_BACK)
		post_record(link, &rec, NULL, answer);
}

/*
 * A descriptor that this end injected failed at the peer: post a record, and fail the counters that
 * the message names. The peer chose their numbers, so skip a counter that the peer may not name.
 * (Naming such a counter may be what made the descriptor fail.)
 */
static void serve_error(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_failure failure = {
		.cookie = h->cookie,
		.opcode = h->arg,
		.status = h->status,
		.vendor_err = h->vendor_err,
	};
	struct vrnic_record rec = {
		.kind = VRNIC_REC_ERROR,
		.opcode = h->arg,
		.status = h->status,
		.vendor_err = h->vendor_err,
		.cookie = h->cookie,
		.value = h->total,
	};
	int i;

	if (!post_record(link, &rec, NULL, answer))
		return;
	/* the rest of what was injected with it is not executed */
	vrnic_pace_failed(link);
	for (i = 0; i < ARRAY_SIZE(h->counter); i++)
		if (vrnic_rx_may_name(link, h->counter[i]))
			vrnic_counter_fail(h->counter[i], link->fifo->owner, &failure,
					   h->total);
}

void vrnic_rx_execute(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	if (link->rx.unknown) {
		answer->flags |= VRNIC_NWIRE_AGAIN;
		return;
	}
	switch (link->rx.h.op) {
	case VRNIC_NWIRE_PUT:
		vrnic_rx_put(link);
		break;
	case VRNIC_NWIRE_GET:
		if (link->rx.h.flags & VRNIC_NWIRE_TYPED)
			vrnic_rx_get_typed(link);
		else
			serve_get(link);
		break;
	case VRNIC_NWIRE_TYPE:
		vrnic_rx_rows_come(link);
		break;
	case VRNIC_NWIRE_RMW:
		serve_rmw(link, answer);
		break;
	case VRNIC_NWIRE_MESSAGE:
		serve_message(link, answer);
		break;
	case VRNIC_NWIRE_RGET:
		serve_rget(link, answer);
		break;
	case VRNIC_NWIRE_NOTIFY:
		serve_notify(link, answer);
		break;
	default:
		serve_error(link, answer);
	}
}
