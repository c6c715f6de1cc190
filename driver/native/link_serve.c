// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receives the messages of a native link. This end checks, executes and answers a request of the
 * peer. The checks are those that native/local.c makes for a peer on this host. An answer has to
 * belong to a request of this end.
 *
 * A request with invalid contents gets an answer that says so, and the link goes on. Only a message
 * that this driver would never send gets a NAK, and ends the link.
 *
 * The data of each packet are copied to their destination when the packet comes. The destination is
 * looked up again for each packet, so deregistration never waits for a whole message.
 */

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "lib/hdr.h"
#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_rx.h"
#include "native/native.h"
#include "native/type.h"
#include "roce/roce.h"
#include "vrnic.h"

/*
 * Most bytes packed for answers that the peer has not acknowledged yet. A vrnic peer asks for
 * VRNIC_PACK_BYTES at a time; the rest is for acknowledgments that are late.
 */
#define ANSWERS_BYTES	(4 * VRNIC_PACK_BYTES)

/* ---- checks ---- */

static void check_counters(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	if (!vrnic_rx_may_name(link, h->counter[0]) ||
	    !vrnic_rx_may_name(link, h->counter[1]))
		vrnic_rx_refuse_access(link, VRNIC_VERR_COUNTER);
}

/*
 * Check the memory of the whole operation, with its first message, before a byte moves. @whole: the
 * first packet has all of the operation's data
 */
static void check_memory(struct vrnic_link *link, int access, bool whole)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg seg;
	int verr;

	/* the memory of a single packet is looked up when its data are placed */
	if (h->pos || whole)
		return;
	verr = vrnic_rx_region(link, h->addr, h->total, access,
			       &link->qp->hold.remote, &seg);
	if (verr)
		vrnic_rx_refuse_access(link, verr);
	else
		vrnic_seg_put(&seg);
}

/* @there: bytes of data in the first packet */
static void check_request(struct vrnic_link *link, u32 there)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	/* the last of the puts was refused, so nothing is left */
	if (h->op == VRNIC_NWIRE_PUTS && h->pos == h->total)
		return;
	/* this process learns of an error whatever its counters are; serve_error() checks them */
	if (h->op != VRNIC_NWIRE_ERROR)
		check_counters(link);
	if (link->rx.status != IB_WC_SUCCESS)
		return;
	if (h->flags & VRNIC_NWIRE_ROWS)
		vrnic_rx_rows_begin(link, vrnic_nhdr_rows(h));
	else if (h->flags & VRNIC_NWIRE_TYPED)
		vrnic_rx_typed_check(link);
	else if (h->op == VRNIC_NWIRE_TYPE)
		vrnic_rx_rows_check(link);
	else if (h->op == VRNIC_NWIRE_PUT)
		check_memory(link, IB_ACCESS_REMOTE_WRITE, h->total && h->total == there);
	else if (h->op == VRNIC_NWIRE_GET)
		check_memory(link, IB_ACCESS_REMOTE_READ, false);
}

/* Is there room for an answer? The peer makes room when it acknowledges earlier answers. */
static bool can_answer(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	if (link->answers == VRNIC_LINK_ANSWERS)
		return false;
	return h->op != VRNIC_NWIRE_GET || !(h->flags & VRNIC_NWIRE_TYPED) ||
	       link->answer_bytes + VRNIC_PACK_BYTES <= ANSWERS_BYTES;
}

/* Does open_place(), or what else places data, know where those of such a message go? */
static bool data_have_place(const struct vrnic_nhdr *h)
{
	switch (h->op) {
	case VRNIC_NWIRE_PUT:
	case VRNIC_NWIRE_PUTS:
	case VRNIC_NWIRE_GET:
	case VRNIC_NWIRE_TYPE:
		return true;
	default:
		return false;
	}
}

/*
 * Make sure that there is a buffer for data that have no other place until all have come. If the
 * process cannot pay for it, nobody does: see below. Each link has one, until it rests. @patient:
 * the caller may sleep
 */
static bool has_buf(struct vrnic_link *link, bool patient)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (!rx->h.data || data_have_place(&rx->h) || rx->buf)
		return true;
	WRITE_ONCE(rx->buf, vrnic_native_alloc(link, VRNIC_MAX_MESSAGE, patient) ?:
		   kzalloc(VRNIC_MAX_MESSAGE, GFP_ATOMIC | __GFP_NOWARN));
	return rx->buf;
}

/* Start to receive a request, if it can be answered. Return: 0; -EAGAIN: not now. */
static int serve_start_request(struct vrnic_link *link, const struct vrnic_pkt *pkt)
{
	struct vrnic_link_rx *rx = &link->rx;
	u32 there = pkt->len;

	if (rx->h.op == VRNIC_NWIRE_PING)
		return 0;
	if (vrnic_nhdr_is_quiet(&rx->h)) {
		check_request(link, there);
		return 0;
	}
	/* a run that may not sleep has asked whether the packet is light */
	if (!can_answer(link) || !has_buf(link, !pkt->light))
		return -EAGAIN;
	/* use the answer of an earlier request, if that did not come to its end */
	if (!rx->answer)
		/*
		 * Not charged: a peer that gets no answer would ask again at once, for as long as
		 * the process has no memory. can_answer() bounds how many answers there are.
		 */
		rx->answer = kzalloc(sizeof(*rx->answer), GFP_ATOMIC | __GFP_NOWARN);
	if (!rx->answer)
		return -EAGAIN;
	INIT_LIST_HEAD(&rx->answer->link);
	check_request(link, there);
	return 0;
}

/* ---- the start of a message ---- */

/* Who waits for the next answer? */
static struct vrnic_nawait *first_await(struct vrnic_link *link)
{
	struct vrnic_nawait *await;

	spin_lock_bh(&link->lock);
	await = list_first_entry_or_null(&link->asks, struct vrnic_nawait, link);
	spin_unlock_bh(&link->lock);
	return await;
}

/*
 * Start to receive an answer. It must be that to the oldest request without one. It must have as
 * many bytes of data as the request wants, or none if it says that the request was not executed.
 */
static int serve_start_answer(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nhdr *h = &rx->h;
	bool again = h->flags & VRNIC_NWIRE_AGAIN;
	bool good = h->status == IB_WC_SUCCESS && !again;
	struct vrnic_nawait *await = first_await(link);

	if (!await || await->id != h->id)
		return -EPROTO;
	/* nothing that a flight asks for depends on room */
	if (h->data != (good ? await->wants : 0) || (again && await->flight))
		return -EPROTO;
	rx->await = await;
	return 0;
}

/*
 * Can a message of this kind be received without sleeping, and without more work than its bytes
 * tell? Types, and remote gets, take memory. Typed data have many places.
 */
static bool is_light(u8 op, u8 flags)
{
	return op != VRNIC_NWIRE_TYPE && op != VRNIC_NWIRE_RGET && !(flags & VRNIC_NWIRE_TYPED);
}

/*
 * Does a look at the number tell whether the peer may name the counter? A counter may have many
 * bindings.
 */
static bool counter_is_light(struct vrnic_link *link, u32 id)
{
	return !id || vrnic_granted(link, id) || vrnic_counter_is_open(id, link->fifo->owner);
}

static bool asks_typed(const struct vrnic_nawait *await)
{
	return await && await->op->d.flags & VRNIC_NDESC_TYPED;
}

/* Can a message with this header be received in softirq? */
static bool message_is_light(struct vrnic_link *link, u8 op, u8 flags, u32 counter0, u32 counter1)
{
	if (op == VRNIC_NWIRE_ANSWER)
		return !asks_typed(first_await(link));
	return is_light(op, flags) && counter_is_light(link, counter0) &&
	       counter_is_light(link, counter1);
}

/* Find the header of a message, in the packet or copied to @room. Return: NULL if there is none. */
static const struct vrnic_nwire *find_header(struct sk_buff *skb, struct vrnic_nwire *room)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);

	if (pkt->len < sizeof(*room))
		return NULL;
	return skb_header_pointer(skb, pkt->payload, sizeof(*room), room);
}

static bool read_header(struct sk_buff *skb, struct vrnic_nhdr *h)
{
	struct vrnic_nwire w;
	const struct vrnic_nwire *at = find_header(skb, &w);

	if (!at)
		return false;
	/* it need not be aligned in the packet */
	if (at != &w)
		memcpy(&w, at, sizeof(w));
	return vrnic_nwire_read(&w, h);
}

static int serve_start(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);

	if (!read_header(skb, &rx->h))
		return -EPROTO;
	if (rx->h.op != VRNIC_NWIRE_PING)
		vrnic_link_note_use(link);
	pkt->payload += sizeof(struct vrnic_nwire);
	pkt->len -= sizeof(struct vrnic_nwire);
	/* vrnic_native_light() saw something else: have it sent again */
	if (pkt->light && !message_is_light(link, rx->h.op, rx->h.flags, rx->h.counter[0],
					    rx->h.counter[1]))
		return -EAGAIN;
	if (rx->h.op == VRNIC_NWIRE_PUTS && !(pkt->info & VRNIC_PKT_END))
		return -EPROTO;
	if (!rx->refused)
		rx->placed = 0;
	rx->put = rx->h.op == VRNIC_NWIRE_PUTS ? rx->h.pos : 0;
	rx->left = rx->h.data;
	rx->status = IB_WC_SUCCESS;
	rx->vendor_err = VRNIC_VERR_NONE;
	rx->await = NULL;
	rx->unknown = false;
	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return serve_start_answer(link);
	return serve_start_request(link, pkt);
}

/* ---- its data ---- */

/* Find the destination of a packet's data. Return: 0 or enum vrnic_vendor_err. */
static int open_place(struct vrnic_link *link, u32 len, struct vrnic_seg *seg)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_fifo *fifo = link->fifo;
	struct vrnic_hold *hold = &link->qp->hold;
	u64 off = rx->h.data - rx->left;
	struct vrnic_nawait *await = rx->await;

	switch (rx->h.op) {
	case VRNIC_NWIRE_PUT:
		return vrnic_rx_region(link, rx->h.addr + rx->h.pos + off, len,
					 IB_ACCESS_REMOTE_WRITE, &hold->remote, seg);
	case VRNIC_NWIRE_ANSWER:
		if (!await->into.len)
			return vrnic_seg_region(fifo->dev, fifo->pd, await->key,
						await->injected, await->addr + off, len,
						await->injected ? IB_ACCESS_REMOTE_WRITE :
								  IB_ACCESS_LOCAL_WRITE,
						await->injected ? &hold->remote : &hold->local,
						seg);
		*seg = await->into;
		seg->off += off;
		seg->len = len;
		return 0;
	case VRNIC_NWIRE_TYPE:
		*seg = (struct vrnic_seg) {
			.kva = (void *)rx->rows + rx->h.pos + off,
			.len = len,
		};
		return 0;
	default:
		*seg = (struct vrnic_seg){ .kva = rx->buf + off, .len = len };
		return 0;
	}
}

static bool is_typed(const struct vrnic_link *link)
{
	const struct vrnic_link_rx *rx = &link->rx;

	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return asks_typed(rx->await);
	return rx->h.flags & VRNIC_NWIRE_TYPED;
}

static void serve_place(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_sgl *sgl = &link->qp->recv_sgl;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	int verr;

	if (vrnic_rx_takes_rows(&link->rx))
		vrnic_rx_take_rows(link, skb);
	if (!pkt->len || link->rx.status != IB_WC_SUCCESS)
		return;
	if (is_typed(link)) {
		vrnic_rx_place_typed(link, skb);
		return;
	}
	verr = open_place(link, vrnic_pkt_bytes(pkt), &sgl->seg[0]);
	if (verr && link->rx.h.op == VRNIC_NWIRE_ANSWER)
		vrnic_rx_refuse(link, IB_WC_LOC_PROT_ERR, verr);
	else if (verr)
		vrnic_rx_refuse_access(link, verr);
	if (verr)
		return;
	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	vrnic_pkt_copy(skb, sgl, vrnic_rx_is_final(link, pkt));
	vrnic_sgl_put(sgl);
}

/* ---- its end ---- */

static void send_answer(struct vrnic_link *link, struct vrnic_nhdr *h)
{
	struct vrnic_nmsg *msg = link->rx.answer;
	bool dead;

	link->rx.answer = NULL;
	h->data = vrnic_nmsg_bytes(msg) - sizeof(msg->hdr);
	vrnic_nwire_fill(&msg->hdr, h);
	spin_lock_bh(&link->lock);
	dead = link->dead;
	if (!dead) {
		msg->answer = true;
		link->answers++;
		vrnic_link_enqueue(link, msg);
	}
	spin_unlock_bh(&link->lock);
	/* no doorbell: this run of the queue pair sends the answer after it has received packets */
	if (dead)
		vrnic_nmsg_free(link, msg);
}

/*
 * The message is a PUT, or PUTS, and has no answer. Return: 0; -EREMOTEIO if it failed; or -EPROTO.
 */
static int finish_quiet(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	int err = 0;

	if (rx->status == IB_WC_SUCCESS && rx->h.op == VRNIC_NWIRE_PUTS)
		err = vrnic_rx_puts(link, skb);
	else if (rx->status == IB_WC_SUCCESS)
		vrnic_rx_put(link);
	if (err)
		return err;
	rx->refused = rx->status != IB_WC_SUCCESS;
	if (rx->refused)
		vrnic_pace_failed(link);
	return rx->refused ? -EREMOTEIO : 0;
}

static void finish_request(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nhdr answer = { .op = VRNIC_NWIRE_ANSWER, .id = rx->h.id };

	if (rx->status == IB_WC_SUCCESS)
		vrnic_rx_execute(link, &answer);
	if (rx->status != IB_WC_SUCCESS)
		vrnic_nmsg_release(rx->answer);
	answer.status = rx->status;
	answer.vendor_err = rx->vendor_err;
	send_answer(link, &answer);
}

/* The process gets the status that the peer sent, so replace a value that is no ib_wc_status. */
static u8 known_status(u8 status)
{
	return min_t(u8, status, IB_WC_GENERAL_ERR);
}

static void finish_answer(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nawait *await = rx->await;
	struct vrnic_nreq *req;

	rx->await = NULL;
	if (rx->status != IB_WC_SUCCESS) {
		await->status = rx->status;
		await->vendor_err = rx->vendor_err;
	} else {
		await->status = known_status(rx->h.status);
		await->vendor_err = rx->h.vendor_err;
	}
	await->again = rx->h.flags & VRNIC_NWIRE_AGAIN;
	await->value = rx->h.pos;
	await->answered = true;
	spin_lock_bh(&link->lock);
	list_del(&await->link);
	spin_unlock_bh(&link->lock);
	if (await->flight) {
		vrnic_nflight_answered(link, await->flight);
		return;
	}
	req = container_of(await, struct vrnic_nreq, await);
	if (req->sent)
		vrnic_nreq_complete(link, req);
}

/* ---- packets ---- */

/* Is it PUTS again, which now begins behind the put that this end has refused? */
static bool is_rest(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_nhdr h;

	return link->rx.h.op == VRNIC_NWIRE_PUTS && vrnic_pkt(skb)->info & VRNIC_PKT_START &&
	       read_header(skb, &h) && h.op == VRNIC_NWIRE_PUTS && h.pos > link->rx.put;
}

/*
 * This end has refused the last packet of a message. Take SKIP in its place. If the packet itself
 * comes again, the NAK was lost, or is on its way: refuse it again, and execute nothing twice.
 */
static int receive_refused(struct vrnic_link *link, const struct vrnic_pkt *pkt)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (!(pkt->info & VRNIC_PKT_SKIP))
		return -EREMOTEIO;
	rx->refused = false;
	rx->left = 0;
	WRITE_ONCE(link->heard, jiffies);
	return 0;
}

static int receive_packet(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	bool end = pkt->info & VRNIC_PKT_END;
	u32 len;
	int err;

	if (rx->refused && !is_rest(link, skb))
		return receive_refused(link, pkt);
	if (pkt->info & VRNIC_PKT_SKIP)
		return -EPROTO;
	if (pkt->info & VRNIC_PKT_START) {
		err = serve_start(link, skb);
		if (err) {
			/* no message has begun */
			rx->left = 0;
			return err;
		}
		rx->refused = false;
	}
	if (rx->h.op != VRNIC_NWIRE_PING)
		WRITE_ONCE(link->spoke, jiffies);
	len = vrnic_pkt_bytes(pkt);
	if (len > rx->left || end == !!(rx->left - len))
		return -EPROTO;
	/* small puts have a place each: vrnic_rx_puts() */
	if (len && rx->status == IB_WC_SUCCESS && !rx->unknown && rx->h.op != VRNIC_NWIRE_PUTS)
		serve_place(link, skb);
	rx->left -= len;
	if (rx->h.op == VRNIC_NWIRE_PUT || rx->h.op == VRNIC_NWIRE_MESSAGE)
		vrnic_pace_landed(link, len);
	if (!end)
		return 0;
	WRITE_ONCE(link->heard, jiffies);
	if (vrnic_nhdr_is_quiet(&rx->h))
		return finish_quiet(link, skb);
	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		finish_answer(link);
	else if (rx->h.op != VRNIC_NWIRE_PING)
		finish_request(link);
	return 0;
}

/* The data of typed transfers have many places, so each packet is received by itself. */
u32 vrnic_native_left(const struct vrnic_link *link)
{
	const struct vrnic_link_rx *rx = &link->rx;

	if (rx->refused || (rx->h.op == VRNIC_NWIRE_ANSWER && !rx->await))
		return 0;
	return is_typed(link) ? 0 : rx->left;
}

/**
 * vrnic_native_light() - can a packet be received without sleeping?
 * @link: link that the packet came over; the caller holds the run bit of its queue pair
 * @skb: packet
 *
 * Return: false if a thread has to receive it.
 */
bool vrnic_native_light(struct vrnic_link *link, struct sk_buff *skb)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	const struct vrnic_nwire *w;
	struct vrnic_nwire room;

	if (!(pkt->info & VRNIC_PKT_NATIVE) || pkt->info & VRNIC_PKT_SKIP)
		return true;
	if (!(pkt->info & VRNIC_PKT_START))
		return link->rx.h.op == VRNIC_NWIRE_ANSWER ? !asks_typed(link->rx.await) :
			is_light(link->rx.h.op, link->rx.h.flags);
	/* serve_start() reads the header as a whole, and refuses what cannot be read */
	w = find_header(skb, &room);
	return !w || message_is_light(link, w->op, w->flags, get_unaligned_be32(&w->counter[0]),
				      get_unaligned_be32(&w->counter[1]));
}

/**
 * vrnic_native_receive() - receive a packet of a message
 * @link: link that the packet came over
 * @skb: packet; packets come in order, first, middle and last
 * @why: set if the message failed: enum ib_wc_status, in the 8 bits above enum vrnic_vendor_err,
 *	and in the 8 bits above the index of the put
 *
 * Return: 0; -EAGAIN: this end cannot take the packet now, and the peer has to send it again;
 * -EREMOTEIO: the message failed, and the peer has to send SKIP in place of the packet; -EPROTO:
 * this driver would not send such a packet.
 */
int vrnic_native_receive(struct vrnic_link *link, struct sk_buff *skb, u32 *why)
{
	const struct vrnic_link_rx *rx = &link->rx;
	int err = receive_packet(link, skb);

	*why = rx->status | rx->vendor_err << 8 | rx->put << 16;
	return err;
}
