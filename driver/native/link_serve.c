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

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "lib/hdr.h"
#include "lib/link_wire.h"
#include "lib/type_rows.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "native/type.h"
#include "roce/roce.h"
#include "vrnic.h"

/*
 * Limits for the types that the peer of a link sends: bytes of rows, and number of types. If one
 * more type exceeds a limit, this end forgets all others. The peer sends them again when needed.
 */
#define TYPES_BYTES	SZ_4M
#define TYPES_MAX	1024

/*
 * Most bytes packed for answers that the peer has not acknowledged yet. A vrnic peer asks for
 * VRNIC_PACK_BYTES at a time; the rest is for acknowledgments that are late.
 */
#define ANSWERS_BYTES	(4 * VRNIC_PACK_BYTES)

/* ---- types that the peer has sent ---- */

static struct hlist_head *types_like(struct vrnic_link *link, u32 number)
{
	return &link->types[hash_32(number, VRNIC_LINK_TYPE_BITS)];
}

static struct vrnic_link_type *type_find(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_type *type;

	hlist_for_each_entry(type, types_like(link, number), node)
		if (type->number == number)
			return type;
	return NULL;
}

static void type_free(struct vrnic_link *link, struct vrnic_link_type *type)
{
	if (link->rx.type == &type->rows)
		link->rx.type = NULL;
	hlist_del(&type->node);
	link->types_nr--;
	link->types_bytes -= type->bytes;
	vrnic_host_uncharge(link->host, type->bytes);
	kvfree(type->rows.row);
	kfree(type);
}

void vrnic_types_forget(struct vrnic_link *link)
{
	struct vrnic_link_type *type;
	struct hlist_node *next;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(link->types); i++)
		hlist_for_each_entry_safe(type, next, &link->types[i], node)
			type_free(link, type);
}

/* Free the rows of a type of which not all rows have come. */
void vrnic_rx_rows_free(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (!rx->rows)
		return;
	vrnic_host_uncharge(link->host, rx->rows_bytes);
	kvfree(rx->rows);
	rx->rows = NULL;
}

/*
 * Charge the memory to the peer's host, and to the process with the FIFO, which has chosen who
 * knows the FIFO's address.
 */
static void *alloc_charged(struct vrnic_link *link, u64 bytes)
{
	struct mem_cgroup *was;
	void *mem;

	if (!vrnic_host_charge(link->host, bytes))
		return NULL;
	was = vrnic_charge_begin(link->fifo);
	/*
	 * The memory cgroup of the FIFO's owner pays. If that is at its limit, __GFP_NORETRY
	 * makes the allocation reclaim once and then fail. The reclaim delays only threads that
	 * run rings of this cgroup.
	 */
	mem = kvmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN);
	vrnic_charge_end(was);
	if (!mem)
		vrnic_host_uncharge(link->host, bytes);
	return mem;
}

/* What is small, and no more than the link's own bounds allow: the process pays alone. */
static void *link_zalloc(struct vrnic_link *link, size_t bytes)
{
	struct mem_cgroup *was = vrnic_charge_begin(link->fifo);
	void *mem = kzalloc(bytes, VRNIC_GFP_LINK);

	vrnic_charge_end(was);
	return mem;
}

/* ---- checks ---- */

static void serve_refuse(struct vrnic_link *link, u8 status, int verr)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (rx->status != IB_WC_SUCCESS)
		return;
	if (rx->h.op != VRNIC_NWIRE_ANSWER)
		vrnic_count(link->fifo->dev, REMOTE_ERRORS);
	rx->status = status;
	rx->vendor_err = verr;
}

static void serve_refuse_access(struct vrnic_link *link, int verr)
{
	serve_refuse(link, IB_WC_REM_ACCESS_ERR, verr);
}

/*
 * May a message of the peer name this counter? Yes, if it is open or bound to the peer, or if it is
 * in a descriptor that this end injected over the link.
 */
static bool counter_fits(struct vrnic_link *link, u32 id)
{
	return !id || vrnic_granted(link, id) ||
	       vrnic_counter_may_name(id, link->fifo->uctx, &link->peer);
}

static void check_counters(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	if (!counter_fits(link, h->counter[0]) ||
	    !counter_fits(link, h->counter[1]))
		serve_refuse_access(link, VRNIC_VERR_COUNTER);
}

static void serve_count(struct vrnic_link *link, u64 n)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	int i, missing = 0;

	for (i = 0; i < ARRAY_SIZE(h->counter); i++)
		if (h->counter[i])
			missing |= vrnic_counter_down(h->counter[i],
						      link->fifo->uctx, n);
	if (missing)
		serve_refuse(link, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_COUNTER);
}

static int serve_open_region(struct vrnic_link *link, u64 addr, u64 len, int access,
			     struct vrnic_held *held, struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = link->fifo;

	return vrnic_seg_region(fifo->dev, fifo->pd, link->rx.h.key, true, addr,
				len, access, held, seg);
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
	verr = serve_open_region(link, h->addr, h->total, access,
				 &link->qp->hold.remote, &seg);
	if (verr)
		serve_refuse_access(link, verr);
	else
		vrnic_seg_put(&seg);
}

/* Open the whole storage of the type: one check of key and bounds covers all of its chunks. */
static int open_storage(struct vrnic_link *link, int access,
			struct vrnic_seg *seg)
{
	const struct vrnic_rows *rows = link->rx.type;
	u64 base = link->rx.h.addr;
	u64 addr = base + rows->lower;

	if (rows->lower < 0 ? addr >= base : addr < base)
		return VRNIC_VERR_BOUNDS;
	return serve_open_region(link, addr, rows->span, access,
				 &link->qp->hold.remote, seg);
}

/*
 * Find the type that a typed request names, and check that the request goes on where the last one
 * of the transfer ended. If this end does not know the type, it answers AGAIN, and the peer sends
 * the type again.
 */
static void check_typed(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_link_type *type = type_find(link, rx->h.type);
	const struct vrnic_rows *rows = type ? &type->rows : NULL;
	int access = rx->h.op == VRNIC_NWIRE_PUT ? IB_ACCESS_REMOTE_WRITE :
						   IB_ACCESS_REMOTE_READ;
	struct vrnic_seg seg;
	int verr;

	rx->unknown = !rows;
	if (!rows)
		return;
	if (rx->h.total != rows->bytes || rx->h.arg > VRNIC_PACK_BYTES ||
	    (rx->h.pos && (rx->type != rows || rx->half.pos != rx->h.pos))) {
		serve_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	rx->type = rows;
	verr = open_storage(link, access, &seg);
	if (verr) {
		serve_refuse_access(link, verr);
		return;
	}
	vrnic_seg_put(&seg);
	if (!rx->h.pos)
		vrnic_half_begin(&rx->half, rows);
}

/* The first rows of a type come: allocate room for all of its rows, which are @bytes. */
static void rows_begin(struct vrnic_link *link, u64 bytes)
{
	struct vrnic_link_rx *rx = &link->rx;

	vrnic_rx_rows_free(link);
	rx->rows_there = 0;
	rx->rows_bytes = bytes;
	if (bytes > TYPES_BYTES) {
		serve_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	rx->rows = alloc_charged(link, bytes);
	if (!rx->rows)
		serve_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
}

/* Rows come in order. */
static void check_rows(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	const struct vrnic_nhdr *h = &rx->h;

	if (!h->pos)
		rows_begin(link, h->total);
	if (!rx->rows || h->total != rx->rows_bytes || h->pos != rx->rows_there)
		serve_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
}

/* @there: bytes of data in the first packet */
static void check_request(struct vrnic_link *link, u32 there)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	/* this process learns of an error whatever its counters are; serve_error() checks them */
	if (h->op != VRNIC_NWIRE_ERROR)
		check_counters(link);
	if (link->rx.status != IB_WC_SUCCESS)
		return;
	if (h->flags & VRNIC_NWIRE_ROWS)
		rows_begin(link, vrnic_nhdr_rows(h));
	else if (h->flags & VRNIC_NWIRE_TYPED)
		check_typed(link);
	else if (h->op == VRNIC_NWIRE_TYPE)
		check_rows(link);
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

/* Start to receive a request, if it can be answered. Return: 0; -EAGAIN: not now. */
static int serve_start_request(struct vrnic_link *link, u32 there)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (rx->h.op == VRNIC_NWIRE_PING)
		return 0;
	if (vrnic_nhdr_is_quiet(&rx->h)) {
		check_request(link, there);
		return 0;
	}
	if (!can_answer(link))
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
	return !id || vrnic_granted(link, id) || vrnic_counter_is_open(id, link->fifo->uctx);
}

static bool asks_typed(const struct vrnic_nawait *await)
{
	return await && await->op->d.flags & VRNIC_NDESC_TYPED;
}

/* Can the message be received in softirq? */
static bool message_is_light(struct vrnic_link *link, const struct vrnic_nhdr *h)
{
	if (h->op == VRNIC_NWIRE_ANSWER)
		return !asks_typed(first_await(link));
	return is_light(h->op, h->flags) && counter_is_light(link, h->counter[0]) &&
	       counter_is_light(link, h->counter[1]);
}

static int serve_start(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_nwire w;

	if (pkt->len < sizeof(w) ||
	    skb_copy_bits(skb, pkt->payload, &w, sizeof(w)) ||
	    !vrnic_nwire_read(&w, &rx->h))
		return -EPROTO;
	pkt->payload += sizeof(w);
	pkt->len -= sizeof(w);
	/* vrnic_native_light() saw something else: have it sent again */
	if (pkt->light && !message_is_light(link, &rx->h))
		return -EAGAIN;
	rx->left = rx->h.data;
	rx->status = IB_WC_SUCCESS;
	rx->vendor_err = VRNIC_VERR_NONE;
	rx->await = NULL;
	rx->unknown = false;
	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return serve_start_answer(link);
	return serve_start_request(link, pkt->len);
}

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
		return serve_open_region(link, rx->h.addr + rx->h.pos + off, len,
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

/* Does @pkt end the operation? Programs poll on the last bytes, so the copy stores these last. */
static bool is_final(const struct vrnic_link *link, const struct vrnic_pkt *pkt)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	const struct vrnic_nop *op;

	if (!(pkt->info & VRNIC_PKT_END))
		return false;
	if (h->op == VRNIC_NWIRE_PUT)
		return h->pos + h->data - vrnic_nhdr_rows(h) == h->total;
	if (h->op != VRNIC_NWIRE_ANSWER)
		return false;
	op = link->rx.await->op;
	return op->done + h->data == op->d.length;
}

static bool is_typed(const struct vrnic_link *link)
{
	const struct vrnic_link_rx *rx = &link->rx;

	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return asks_typed(rx->await);
	return rx->h.flags & VRNIC_NWIRE_TYPED;
}

/* The request of a typed GET, whose answer is coming: flights are not typed. */
static struct vrnic_nreq *typed_req(struct vrnic_link *link)
{
	return container_of(link->rx.await, struct vrnic_nreq, await);
}

/* The answer to a typed GET of this end has come: open the whole storage for its data. */
static int open_asked(struct vrnic_link *link, struct vrnic_seg *seg)
{
	struct vrnic_nreq *req = typed_req(link);
	struct vrnic_fifo *fifo = link->fifo;

	return vrnic_seg_region(fifo->dev, fifo->pd, req->await.key, false, req->await.addr,
				req->span, IB_ACCESS_LOCAL_WRITE,
				&link->qp->hold.local, seg);
}

/* Copy from the packet to the places that the type names, without a buffer in between. */
static void serve_scatter(struct vrnic_half *half, const struct vrnic_seg *storage,
			  struct sk_buff *skb, bool final)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	unsigned int done = 0, n;
	struct skb_seq_state seq;
	const u8 *data;

	skb_prepare_seq_read(skb, pkt->payload, pkt->payload + pkt->len, &seq);
	while (done < pkt->len && (n = skb_seq_read(done, &data, &seq))) {
		n = min(n, pkt->len - done);
		vrnic_half_copy(half, storage, (void *)data, n, false,
				final && done + n == pkt->len);
		done += n;
	}
	skb_abort_seq_read(&seq);
}

/* Make a type of the rows, all of which have come. Return: NULL: no valid type, or no memory. */
static struct vrnic_link_type *type_new(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_link_type *type;

	type = link_zalloc(link, sizeof(*type));
	if (!type) {
		serve_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
		return NULL;
	}
	type->number = number;
	type->bytes = rx->rows_bytes;
	type->rows.nr = rx->rows_bytes / sizeof(*type->rows.row);
	type->rows.row = rx->rows;
	if (!vrnic_rows_check(&type->rows))
		return type;
	kfree(type);
	return NULL;
}

/* Add a type, in place of one with the same number. It owns the rows in @link->rx from now on. */
static void types_add(struct vrnic_link *link, struct vrnic_link_type *type)
{
	struct vrnic_link_type *old = type_find(link, type->number);

	if (old)
		type_free(link, old);
	if (link->types_nr == TYPES_MAX ||
	    link->types_bytes + type->bytes > TYPES_BYTES)
		vrnic_types_forget(link);
	hlist_add_head(&type->node, types_like(link, type->number));
	link->types_nr++;
	link->types_bytes += type->bytes;
	link->rx.rows = NULL;
}

/* All rows of a type have come. */
static void types_learn(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_type *type = type_new(link, number);

	if (type) {
		types_add(link, type);
		return;
	}
	vrnic_rx_rows_free(link);
	serve_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
}

/*
 * Take the rows with which the data begin (S3.3) out of a packet. After the last of them the type
 * is known, and what follows are data of it.
 */
static void serve_take_rows(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 n = min_t(u64, pkt->len, rx->rows_bytes - rx->rows_there);

	if (skb_copy_bits(skb, pkt->payload, (void *)rx->rows + rx->rows_there, n)) {
		serve_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	pkt->payload += n;
	pkt->len -= n;
	rx->rows_there += n;
	if (rx->rows_there < rx->rows_bytes)
		return;
	types_learn(link, rx->h.type);
	if (rx->status == IB_WC_SUCCESS)
		check_typed(link);
}

static bool takes_rows(const struct vrnic_link_rx *rx)
{
	return rx->h.flags & VRNIC_NWIRE_ROWS && rx->rows_there < rx->rows_bytes;
}

static void serve_place_typed(struct vrnic_link *link, struct sk_buff *skb)
{
	bool answer = link->rx.h.op == VRNIC_NWIRE_ANSWER;
	struct vrnic_half *half = answer ? &typed_req(link)->half : &link->rx.half;
	struct vrnic_seg seg;
	int verr;

	verr = answer ? open_asked(link, &seg) :
			open_storage(link, IB_ACCESS_REMOTE_WRITE, &seg);
	if (verr) {
		serve_refuse(link, answer ? IB_WC_LOC_PROT_ERR : IB_WC_REM_ACCESS_ERR,
			     verr);
		return;
	}
	serve_scatter(half, &seg, skb, is_final(link, vrnic_pkt(skb)));
	vrnic_seg_put(&seg);
}

static void serve_place(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_sgl *sgl = &link->qp->recv_sgl;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	int verr;

	if (takes_rows(&link->rx))
		serve_take_rows(link, skb);
	if (!pkt->len || link->rx.status != IB_WC_SUCCESS)
		return;
	if (is_typed(link)) {
		serve_place_typed(link, skb);
		return;
	}
	verr = open_place(link, vrnic_pkt_bytes(pkt), &sgl->seg[0]);
	if (verr && link->rx.h.op == VRNIC_NWIRE_ANSWER)
		serve_refuse(link, IB_WC_LOC_PROT_ERR, verr);
	else if (verr)
		serve_refuse_access(link, verr);
	if (verr)
		return;
	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	vrnic_pkt_copy(skb, sgl, is_final(link, pkt));
	vrnic_sgl_put(sgl);
}

/* ---- execution, once all of a message has come ---- */

static void serve_type(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	rx->rows_there += rx->h.data;
	if (rx->rows_there == rx->rows_bytes)
		types_learn(link, rx->h.key);
}

/*
 * Pack the data for the answer into a buffer. The type may have many chunks, but a message has few
 * segments. Its packets are made later, and again if one is lost.
 */
static void serve_get_typed(struct vrnic_link *link)
{
	struct vrnic_nmsg *answer = link->rx.answer;
	u32 n = link->rx.h.arg;
	struct vrnic_seg storage, seg = { .len = n };
	int verr;

	answer->buf = alloc_charged(link, n);
	if (!answer->buf) {
		serve_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
		return;
	}
	answer->charged = n;
	link->answer_bytes += n;
	verr = open_storage(link, IB_ACCESS_REMOTE_READ, &storage);
	if (verr) {
		serve_refuse_access(link, verr);
		return;
	}
	vrnic_half_copy(&link->rx.half, &storage, answer->buf, n, true, false);
	vrnic_seg_put(&storage);
	seg.kva = answer->buf;
	vrnic_nmsg_add(answer, &seg);
	serve_count(link, n);
}

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

	verr = serve_open_region(link, h->addr + h->pos, h->arg, IB_ACCESS_REMOTE_READ,
				 NULL, &seg);
	if (verr) {
		serve_refuse_access(link, verr);
		return;
	}
	vrnic_nmsg_add(answer, &seg);
	answer->taken = h->arg;
	memcpy(answer->counter, h->counter, sizeof(answer->counter));
}

static void serve_put(struct vrnic_link *link)
{
	u32 bytes = link->rx.h.data - vrnic_nhdr_rows(&link->rx.h);

	if (bytes)
		serve_count(link, bytes);
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

	verr = serve_open_region(link, h->addr, h->total, IB_ACCESS_REMOTE_ATOMIC,
				 &link->qp->hold.remote, &seg);
	if (verr) {
		serve_refuse_access(link, verr);
		return;
	}
	word = vrnic_seg_word(&seg, h->total);
	if (word)
		answer->pos = vrnic_native_rmw(word, h->total, h->arg, &rmw);
	vrnic_seg_put(&seg);
	if (!word) {
		serve_refuse_access(link, VRNIC_VERR_ALIGN);
		return;
	}
	vrnic_count(link->fifo->dev, ATOMICS);
	serve_count(link, 1);
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
		serve_count(link, 1);
}

static void serve_rget(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg descs = { .kva = link->rx.buf, .len = h->data };

	switch (vrnic_rget_deliver(link->fifo, &link->peer, link->fifo, link, &descs, false)) {
	case 0:
		serve_count(link, 1);
		break;
	case -ENOMEM:
		vrnic_rget_make_room(link->fifo, h->data);
		fallthrough;
	case -EAGAIN:
		answer->flags |= VRNIC_NWIRE_AGAIN;
		break;
	default:
		serve_refuse(link, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
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

	vrnic_counter_failure(h->counter[0], link->fifo->uctx, &failure);
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
	for (i = 0; i < ARRAY_SIZE(h->counter); i++)
		if (counter_fits(link, h->counter[i]))
			vrnic_counter_fail(h->counter[i], link->fifo->uctx, &failure,
					   h->total);
}

static void serve_execute(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	if (link->rx.unknown) {
		answer->flags |= VRNIC_NWIRE_AGAIN;
		return;
	}
	switch (link->rx.h.op) {
	case VRNIC_NWIRE_PUT:
		serve_put(link);
		break;
	case VRNIC_NWIRE_GET:
		if (link->rx.h.flags & VRNIC_NWIRE_TYPED)
			serve_get_typed(link);
		else
			serve_get(link);
		break;
	case VRNIC_NWIRE_TYPE:
		serve_type(link);
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

/* The message is a PUT, which has no answer. Return: 0, or -EREMOTEIO if it failed. */
static int finish_quiet(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (rx->status == IB_WC_SUCCESS)
		serve_put(link);
	rx->refused = rx->status != IB_WC_SUCCESS;
	return rx->refused ? -EREMOTEIO : 0;
}

static void finish_request(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nhdr answer = { .op = VRNIC_NWIRE_ANSWER, .id = rx->h.id };

	if (rx->status == IB_WC_SUCCESS)
		serve_execute(link, &answer);
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

	if (rx->refused)
		return receive_refused(link, pkt);
	if (pkt->info & VRNIC_PKT_SKIP)
		return -EPROTO;
	if (pkt->info & VRNIC_PKT_START) {
		err = serve_start(link, skb);
		if (err)
			return err;
	}
	len = vrnic_pkt_bytes(pkt);
	if (len > rx->left || end == !!(rx->left - len))
		return -EPROTO;
	if (len && rx->status == IB_WC_SUCCESS && !rx->unknown)
		serve_place(link, skb);
	rx->left -= len;
	if (!end)
		return 0;
	WRITE_ONCE(link->heard, jiffies);
	if (vrnic_nhdr_is_quiet(&rx->h))
		return finish_quiet(link);
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
	struct vrnic_nhdr h;
	struct vrnic_nwire w;

	if (!(pkt->info & VRNIC_PKT_NATIVE) || pkt->info & VRNIC_PKT_SKIP)
		return true;
	if (!(pkt->info & VRNIC_PKT_START))
		return link->rx.h.op == VRNIC_NWIRE_ANSWER ? !asks_typed(link->rx.await) :
			is_light(link->rx.h.op, link->rx.h.flags);
	/* serve_start() refuses what cannot be read */
	return skb_copy_bits(skb, pkt->payload, &w, sizeof(w)) || !vrnic_nwire_read(&w, &h) ||
	       message_is_light(link, &h);
}

/**
 * vrnic_native_receive() - receive a packet of a message
 * @link: link that the packet came over
 * @skb: packet; packets come in order, first, middle and last
 * @why: set if the message failed: enum ib_wc_status, and enum vrnic_vendor_err in the 8 bits above
 *
 * Return: 0; -EAGAIN: this end cannot take the packet now, and the peer has to send it again;
 * -EREMOTEIO: the message failed, and the peer has to send SKIP in place of the packet; -EPROTO:
 * this driver would not send such a packet.
 */
int vrnic_native_receive(struct vrnic_link *link, struct sk_buff *skb, u32 *why)
{
	const struct vrnic_link_rx *rx = &link->rx;
	int err = receive_packet(link, skb);

	*why = rx->status | rx->vendor_err << 8;
	return err;
}
