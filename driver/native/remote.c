// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCE flow for native descriptors: the peer's FIFO is on another host, at the other end of a
 * native link (native/link.c). An injector, which executes the descriptors of a ring or those that
 * one peer injected, makes one request of a descriptor, or several in turn if it is long. It does
 * not run until the answer has come.
 *
 * The peer does not choose where the data of an answer go. native/link_serve.c copies them to the
 * memory in struct vrnic_nreq, and takes only as many as the request asked for.
 */

#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/link_wire.h"
#include "lib/type_rows.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "native/type.h"
#include "queue/opcode.h"
#include "queue/qp_table.h"
#include "vrnic.h"

/* If the peer's reception FIFO is full, wait 50 us, then twice as long each time, up to 13 ms. */
#define AGAIN_FIRST_NS	50000ULL
#define AGAIN_DOUBLED	8

/**
 * vrnic_wire_waits() - does this injector wait for an answer?
 * @inj: injector; the caller holds its run bit
 *
 * Return: true if the link has a request of @inj.
 */
bool vrnic_wire_waits(const struct vrnic_injector *inj)
{
	/* pairs with the release in vrnic_nreq_complete() */
	return inj->req.posted && smp_load_acquire(&inj->req.pending);
}

/**
 * vrnic_wire_forget() - end the request of an injector, if there is one
 * @inj: injector; vrnic_wire_waits() is false
 */
void vrnic_wire_forget(struct vrnic_injector *inj)
{
	struct vrnic_nreq *req = &inj->req;

	if (!req->posted)
		return;
	if (req->pinned)
		vrnic_virtual_unpin(inj, inj->op.d.opcode == VRNIC_NOP_GET);
	req->pinned = false;
	req->posted = false;
}

static enum vrnic_step remote_fail_own(struct vrnic_nop *op, int verr)
{
	return vrnic_nop_fail(op, IB_WC_LOC_PROT_ERR, verr);
}

static enum vrnic_step remote_fail_peer(struct vrnic_nop *op)
{
	return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
}

/* Post a request. The link owns it until the answer has come. Return: false: the link is dead. */
static bool link_post(struct vrnic_link *link, struct vrnic_nreq *req, struct vrnic_nhdr *h)
{
	struct vrnic_qp *qp = link->qp;

	spin_lock_bh(&link->lock);
	if (link->dead) {
		spin_unlock_bh(&link->lock);
		return false;
	}
	vrnic_link_note_use(link);
	if (!req->quiet)
		vrnic_link_ask(link, &req->await);
	h->id = req->await.id;
	vrnic_nwire_fill(&req->msg.hdr, h);
	req->pending = true;
	list_add_tail(&req->link, &link->reqs);
	vrnic_link_enqueue(link, &req->msg);
	/* vrnic_destroy_link_qp() waits for this reference, as the link may end after the unlock */
	refcount_inc(&qp->refs);
	spin_unlock_bh(&link->lock);
	vrnic_link_run(qp);
	vrnic_qp_put(qp);
	return true;
}

/*
 * Post the request with the header @h. The data, if any, are in @inj->req.msg.
 *
 * Return: VRNIC_STEP_WAIT, or, if the link is dead, VRNIC_STEP_FAIL.
 */
static enum vrnic_step remote_ask(struct vrnic_injector *inj, struct vrnic_nhdr *h)
{
	struct vrnic_nreq *req = &inj->req;

	req->msg.req = req;
	req->msg.posted = !inj->rget;
	req->posted = true;
	req->sent = false;
	req->quiet = vrnic_nhdr_is_quiet(h);
	req->await.injected = inj->rget;
	req->await.answered = req->quiet;
	req->await.again = false;
	req->await.status = IB_WC_SUCCESS;
	req->await.vendor_err = VRNIC_VERR_NONE;
	req->await.value = 0;
	req->await.wants = h->op == VRNIC_NWIRE_GET ? h->arg : 0;
	if (link_post(inj->link, req, h))
		return VRNIC_STEP_WAIT;
	vrnic_nmsg_release(&req->msg);
	vrnic_wire_forget(inj);
	return remote_fail_peer(&inj->op);
}

/*
 * Find local memory. @seg gets a reference of its own, as the request may last longer than this
 * burst. An injected descriptor names local memory by a remote key.
 */
int vrnic_wire_open_own(struct vrnic_injector *inj, u64 addr, u64 len, bool write,
			struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = inj->fifo;
	int access = write ? IB_ACCESS_LOCAL_WRITE : 0;

	if (inj->rget)
		access = write ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ;
	return vrnic_seg_region(fifo->dev, fifo->pd, inj->op.d.lkey, inj->rget,
				addr, len, access, NULL, seg);
}

/* Name the counters of the peer, which the peer's host is to count down. */
static void put_counters(const struct vrnic_injector *inj, struct vrnic_nhdr *h)
{
	h->counter[0] = inj->op.d.target_counter;
	h->counter[1] = inj->rget ? inj->op.d.remote_counter : 0;
}

/* Check the local memory of the whole operation before the first byte moves. */
static int remote_check_own(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	if (inj->op.done || d->flags & (VRNIC_NDESC_VIRTUAL | VRNIC_NDESC_INLINE))
		return 0;
	verr = vrnic_wire_open_own(inj, d->local_addr, d->length,
				   d->opcode == VRNIC_NOP_GET, &seg);
	if (!verr)
		vrnic_seg_put(&seg);
	return verr;
}

/*
 * Find the local memory of the next @n bytes. If fewer bytes can be pinned, @n is reduced.
 * Return: 0, enum vrnic_vendor_err, or -EAGAIN: pages have to be waited for.
 */
static int open_move(struct vrnic_injector *inj, u64 *n, bool get)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 addr = d->local_addr + inj->op.done;
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_seg seg[2] = {};
	int verr = 0;

	req->await.into = (struct vrnic_seg){};
	if (!*n)
		return 0;
	if (d->flags & VRNIC_NDESC_INLINE) {
		if (vrnic_native_ring(inj, addr, *n, seg) == 2)
			vrnic_nmsg_add(&req->msg, &seg[0]);
		else
			seg[1] = seg[0];
	} else if (d->flags & VRNIC_NDESC_VIRTUAL) {
		verr = vrnic_virtual_pin(inj, addr, *n, get, &seg[1]);
		req->pinned = !verr;
		*n = verr ? *n : seg[1].len;
		req->await.into = seg[1];
	} else if (!get) {
		verr = vrnic_wire_open_own(inj, addr, *n, false, &seg[1]);
	}
	if (!verr && !get)
		vrnic_nmsg_add(&req->msg, &seg[1]);
	req->await.key = d->lkey;
	req->await.addr = addr;
	return verr;
}

static enum vrnic_step ask_move(struct vrnic_injector *inj)
{
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nop *op = &inj->op;
	u64 n = min_t(u64, d->length - op->done, VRNIC_NWIRE_BURST);
	struct vrnic_nhdr h;
	int verr = remote_check_own(inj);

	if (!verr)
		verr = open_move(inj, &n, get);
	if (verr == -EAGAIN)
		return VRNIC_STEP_WAIT;
	if (verr)
		return remote_fail_own(op, verr);
	vrnic_wire_header(op, &h);
	put_counters(inj, &h);
	h.pos = op->done;
	inj->req.n = n;
	if (get)
		h.arg = n;
	else
		h.data = n;
	return remote_ask(inj, &h);
}

static enum vrnic_step ask_rmw(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nhdr h;
	struct vrnic_seg seg;
	int verr;

	vrnic_wire_header(&inj->op, &h);

	/* check the memory for the old value before the peer changes the word */
	if (d->lkey) {
		verr = vrnic_wire_open_own(inj, d->local_addr, d->length, true, &seg);
		if (verr)
			return remote_fail_own(&inj->op, verr);
		vrnic_seg_put(&seg);
	}
	return remote_ask(inj, &h);
}

static enum vrnic_step ask_message(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	bool in_ring = d->flags & VRNIC_NDESC_INLINE || !d->length;
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_MESSAGE,
		.data = d->header_len + d->length,
		.key = d->header_len,
		.total = d->length,
		.arg = d->arg,
		.cookie = inj->rget ? d->cookie : 0,
	};
	struct vrnic_seg seg[3];
	unsigned int i, nr;
	int verr = 0;

	if (!in_ring && d->flags & VRNIC_NDESC_VIRTUAL) {
		verr = vrnic_virtual_pin(inj, d->local_addr, d->length, false,
					 &seg[2]);
		if (verr == -EAGAIN)
			return VRNIC_STEP_WAIT;
		req->pinned = !verr;
		if (!verr && seg[2].len != d->length) {
			vrnic_virtual_unpin(inj, false);
			req->pinned = false;
			verr = VRNIC_VERR_FAULT;
		}
	} else if (!in_ring) {
		verr = vrnic_wire_open_own(inj, d->local_addr, d->length, false, &seg[2]);
	}
	if (verr)
		return remote_fail_own(&inj->op, verr);
	nr = vrnic_native_message(inj, seg);
	for (i = 0; i < nr; i++)
		vrnic_nmsg_add(&req->msg, &seg[i]);
	if (!in_ring)
		vrnic_nmsg_add(&req->msg, &seg[2]);
	put_counters(inj, &h);
	return remote_ask(inj, &h);
}

static enum vrnic_step ask_rget(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nhdr h = { .op = VRNIC_NWIRE_RGET, .data = d->length };
	struct vrnic_nmsg *msg = &inj->req.msg;
	struct vrnic_seg descs, copy = { .len = d->length };
	u32 nr = d->length / sizeof(*d);
	int verr;

	verr = vrnic_wire_open_own(inj, d->local_addr, d->length, false, &descs);
	if (verr)
		return remote_fail_own(&inj->op, verr);
	/* the process may change the descriptors meanwhile: grant and send the same copy */
	copy.kva = kvmalloc(d->length, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (copy.kva)
		vrnic_seg_copy(&copy, 0, &descs, 0, d->length, false);
	vrnic_seg_put(&descs);
	if (!copy.kva)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_FULL);
	/* a peer asks this end for what to send next: several peers take turns */
	if (inj->rget && !vrnic_pace_may_ask(inj, vrnic_pace_bytes(copy.kva, nr))) {
		kvfree(copy.kva);
		return VRNIC_STEP_WAIT;
	}
	/*
	 * Let the peer name the counters in the descriptors that it runs for this process. But if a
	 * peer injected this RGET, that peer chose the descriptors, and gets no rights by them.
	 */
	if (!inj->rget && vrnic_grant(inj->link, copy.kva, nr)) {
		kvfree(copy.kva);
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_FULL);
	}
	msg->buf = copy.kva;
	vrnic_nmsg_add(msg, &copy);
	put_counters(inj, &h);
	return remote_ask(inj, &h);
}

static enum vrnic_step ask_notify(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_NOTIFY,
		.flags = d->flags & VRNIC_NDESC_BACK ? VRNIC_NWIRE_BACK : 0,
		.counter = { d->target_counter },
		.arg = d->arg,
		.cookie = d->cookie,
	};

	return remote_ask(inj, &h);
}

/* ---- typed transfers (S3): the data are packed on the wire ---- */

static u64 *told_like(struct vrnic_link *link, const struct vrnic_type *type)
{
	return link->told[hash_32(type->number, VRNIC_LINK_TOLD_BITS)];
}

/* Find the note that this end has sent @type to the peer. Return: NULL if there is none. */
static u64 *find_told(struct vrnic_link *link, const struct vrnic_type *type)
{
	u64 *serial = told_like(link, type);
	unsigned int i;

	for (i = 0; i < VRNIC_LINK_TOLD_WAYS; i++)
		if (serial[i] == type->serial)
			return &serial[i];
	return NULL;
}

/* Note that this end has sent @type to the peer, in place of another note if there is no room. */
static void note_told(struct vrnic_injector *inj, const struct vrnic_type *type)
{
	struct vrnic_link *link = inj->link;

	told_like(link, type)[link->told_next++ % VRNIC_LINK_TOLD_WAYS] = type->serial;
	vrnic_count(inj->fifo->dev, TYPES_TOLD);
}

static bool was_told(struct vrnic_injector *inj, const struct vrnic_type *type)
{
	return find_told(inj->link, type);
}

/* Copy rows, and give them back the offsets that the process chose: @rows count from the lowest. */
static void copy_rows(struct vrnic_type_row *to, const struct vrnic_rows *rows,
		      u64 from, u64 nr)
{
	u64 i;

	for (i = 0; i < nr; i++) {
		to[i] = rows->row[from + i];
		to[i].offset = (s64)((u64)to[i].offset + (u64)rows->lower);
	}
}

static u64 rows_bytes(const struct vrnic_type *type)
{
	return type->rows.nr * sizeof(struct vrnic_type_row);
}

/* Send the peer the next rows of the type that describes the peer's storage. */
static enum vrnic_step tell_type(struct vrnic_injector *inj,
				 const struct vrnic_type *type)
{
	u64 total = rows_bytes(type);
	struct vrnic_nreq *req = &inj->req;
	u64 n = min_t(u64, total - req->told, VRNIC_NWIRE_BURST);
	struct vrnic_seg seg = { .len = n };
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_TYPE,
		.data = n,
		.key = type->number,
		.total = total,
		.pos = req->told,
	};

	req->msg.buf = kvmalloc(n, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!req->msg.buf)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_TYPE);
	copy_rows(req->msg.buf, &type->rows,
		  req->told / sizeof(struct vrnic_type_row),
		  n / sizeof(struct vrnic_type_row));
	seg.kva = req->msg.buf;
	vrnic_nmsg_add(&req->msg, &seg);
	req->telling = true;
	req->n = n;
	return remote_ask(inj, &h);
}

static int remote_open_typed(struct vrnic_injector *inj, bool write,
			     struct vrnic_seg *seg)
{
	struct vrnic_nreq *req = &inj->req;

	if (!vrnic_nop_typed_range(inj, false, &req->await.addr, &req->span))
		return VRNIC_VERR_BOUNDS;
	req->await.key = inj->op.d.lkey;
	return vrnic_wire_open_own(inj, req->await.addr, req->span, write, seg);
}

/*
 * Add the rows that the peer does not know (S3.3), and @n bytes of @storage behind them, packed
 * (S3.4). Return: false if there is no memory.
 */
static bool add_packed(struct vrnic_injector *inj, const struct vrnic_seg *storage, u64 n)
{
	const struct vrnic_rows *rows = &inj->typed->type[VRNIC_SIDE_REMOTE]->rows;
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_seg seg = { .len = req->rows + n };

	if (!seg.len)
		return true;
	seg.kva = kvmalloc(seg.len, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!seg.kva)
		return false;
	copy_rows(seg.kva, rows, 0, req->rows / sizeof(struct vrnic_type_row));
	if (n)
		vrnic_half_copy(&req->gather.half, storage, seg.kva + req->rows, n, true, false);
	req->msg.buf = seg.kva;
	vrnic_nmsg_add(&req->msg, &seg);
	return true;
}

/* May the rows of a type travel with the first data? Not if they are longer than a message. */
static bool rows_fit(const struct vrnic_injector *inj, const struct vrnic_type *type)
{
	return !inj->op.done && rows_bytes(type) <= VRNIC_PACK_BYTES;
}

/* Make room to note which types the peer of this link knows. */
static bool has_notes(struct vrnic_link *link)
{
	if (!link->told)
		link->told = kcalloc(1 << VRNIC_LINK_TOLD_BITS, sizeof(*link->told),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return link->told;
}

static int remote_typed_begin(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	int verr;

	if (inj->typed_begun)
		return 0;
	verr = vrnic_nop_typed_begin(inj, budget);
	if (!verr)
		vrnic_half_begin(&inj->req.gather.half,
				 &inj->typed->type[VRNIC_SIDE_LOCAL]->rows);
	inj->req.told = 0;
	inj->req.forgotten = 0;
	return verr;
}

static bool packs(const struct vrnic_injector *inj)
{
	return inj->typed->mode == VRNIC_TYPED_PACKED;
}

static bool gathers(const struct vrnic_injector *inj)
{
	return inj->op.d.opcode == VRNIC_NOP_PUT && !packs(inj);
}

/* Bytes of the next message of a typed operation. */
static u64 typed_bytes(const struct vrnic_injector *inj)
{
	const struct vrnic_rows *rows = &inj->typed->type[VRNIC_SIDE_LOCAL]->rows;
	u64 n = min_t(u64, inj->op.d.length - inj->op.done, VRNIC_PACK_BYTES);

	if (!gathers(inj))
		return n;
	return min(n, min_t(u64, rows->least, VRNIC_PACK_BYTES) * VRNIC_GATHER_CHUNKS);
}

/* Add the data of a typed request, of which the next @n bytes of the storage are a PUT's. */
static int typed_data(struct vrnic_injector *inj, bool get, u64 n)
{
	struct vrnic_seg storage;
	int verr;

	verr = remote_open_typed(inj, get, &storage);
	if (verr)
		return verr;
	if (!add_packed(inj, &storage, get || gathers(inj) ? 0 : n)) {
		vrnic_seg_put(&storage);
		return VRNIC_VERR_TYPE;
	}
	if (!gathers(inj)) {
		vrnic_seg_put(&storage);
		return 0;
	}
	storage = vrnic_ngather_seg(&inj->req.gather, &storage, n);
	vrnic_nmsg_add(&inj->req.msg, &storage);
	return 0;
}

static enum vrnic_step move_typed(struct vrnic_injector *inj)
{
	const struct vrnic_type *type = inj->typed->type[VRNIC_SIDE_REMOTE];
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nreq *req = &inj->req;
	u64 n = typed_bytes(inj);
	struct vrnic_nhdr h = {
		.op = get ? VRNIC_NWIRE_GET : VRNIC_NWIRE_PUT,
		.flags = VRNIC_NWIRE_TYPED | (get && packs(inj) ? VRNIC_NWIRE_PACK : 0),
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.pos = inj->op.done,
		.type = type->number,
	};
	int verr;

	/* packets that were made again may have left the position behind */
	vrnic_ngather_seek(&req->gather, inj->op.done);
	vrnic_half_set(&req->gather.was, &req->gather.half);
	req->rows = was_told(inj, type) ? 0 : rows_bytes(type);
	verr = typed_data(inj, get, n);
	if (verr == VRNIC_VERR_TYPE)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, verr);
	if (verr)
		return remote_fail_own(&inj->op, verr);
	put_counters(inj, &h);
	req->n = n;
	req->await.into = (struct vrnic_seg){};
	if (req->rows)
		h.flags |= VRNIC_NWIRE_ROWS;
	h.arg = get ? n : req->rows;
	h.data = req->rows + (get ? 0 : n);
	return remote_ask(inj, &h);
}

static enum vrnic_step ask_typed(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	const struct vrnic_type *type;
	int verr;

	if (!has_notes(inj->link))
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_TYPE);
	verr = remote_typed_begin(inj, budget);
	if (verr)
		return remote_fail_own(&inj->op, verr);
	type = inj->typed->type[VRNIC_SIDE_REMOTE];
	return was_told(inj, type) || rows_fit(inj, type) ? move_typed(inj) : tell_type(inj, type);
}

/* The peer has received the rows of this request: send the next ones, or note that it has all. */
static enum vrnic_step remote_told(struct vrnic_injector *inj)
{
	const struct vrnic_type *type = inj->typed->type[VRNIC_SIDE_REMOTE];
	struct vrnic_nreq *req = &inj->req;

	req->told += req->n;
	if (req->told < rows_bytes(type))
		return VRNIC_STEP_MORE;
	req->told = 0;
	note_told(inj, type);
	return VRNIC_STEP_MORE;
}

/* The peer has forgotten the type, so no byte has moved. Send the type, then this request again. */
static enum vrnic_step remote_forgotten(struct vrnic_injector *inj)
{
	u64 *serial = find_told(inj->link, inj->typed->type[VRNIC_SIDE_REMOTE]);

	/* it has just got the rows: a peer that says so for ever would get them for ever */
	if (inj->req.rows || inj->req.forgotten == inj->op.done + 1)
		return vrnic_nop_fail(&inj->op, IB_WC_BAD_RESP_ERR, VRNIC_VERR_TYPE);
	if (serial)
		*serial = 0;
	inj->req.forgotten = inj->op.done + 1;
	vrnic_half_set(&inj->req.gather.half, &inj->req.gather.was);
	return VRNIC_STEP_MORE;
}

/* A peer that injected this descriptor may name only open counters of this process. */
static bool own_counter_fits(const struct vrnic_injector *inj)
{
	u32 id = inj->op.d.local_counter;

	return !inj->rget || !id ||
	       vrnic_counter_is_open(id, inj->fifo->owner);
}

static enum vrnic_step ask_any(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_nreq *req = &inj->req;

	req->msg.nr = 0;
	req->telling = false;
	req->n = 0;
	if (!inj->op.done && !own_counter_fits(inj))
		return vrnic_nop_fail(&inj->op, IB_WC_REM_ACCESS_ERR,
				      VRNIC_VERR_COUNTER);
	if (inj->op.d.flags & VRNIC_NDESC_TYPED)
		return ask_typed(inj, budget);
	switch (inj->op.d.opcode) {
	case VRNIC_NOP_PUT:
	case VRNIC_NOP_GET:
		return ask_move(inj);
	case VRNIC_NOP_RMW:
		return ask_rmw(inj);
	case VRNIC_NOP_MESSAGE:
		return ask_message(inj);
	case VRNIC_NOP_RGET:
		return ask_rget(inj);
	default:
		return ask_notify(inj);
	}
}

/* ---- answers in ---- */

static enum vrnic_step remote_moved(struct vrnic_injector *inj,
				    struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	u32 n = inj->req.n;
	int verr;

	op->done += n;
	budget->bytes -= min_t(u64, budget->bytes, n);
	verr = n ? vrnic_nop_count(inj, n) : 0;
	if (verr)
		return vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	if (op->done < op->d.length)
		return VRNIC_STEP_MORE;
	if (op->d.opcode == VRNIC_NOP_GET)
		vrnic_count_add(inj->fifo->dev, BYTES_GOT, op->done);
	else
		vrnic_count_add(inj->fifo->dev, BYTES_PUT, op->done);
	return VRNIC_STEP_DONE;
}

static enum vrnic_step remote_fetched(struct vrnic_injector *inj)
{
	struct vrnic_seg local, value = { .kva = &inj->op.value };
	const struct vrnic_ndesc *d = &inj->op.d;
	int verr;

	inj->op.value = inj->req.await.value;
	if (!d->lkey)
		return VRNIC_STEP_DONE;
	verr = vrnic_wire_open_own(inj, d->local_addr, d->length, true, &local);
	if (verr)
		return remote_fail_own(&inj->op, verr);
	vrnic_seg_copy(&local, 0, &value, 0, d->length, true);
	vrnic_seg_put(&local);
	return VRNIC_STEP_DONE;
}

/*
 * An injected NOTIFY has reached the peer, which answered with the failure of its counter. With
 * BACK the peer has posted the record itself; else this end posts a record for its own process.
 */
static enum vrnic_step remote_notified(struct vrnic_injector *inj)
{
	const struct vrnic_address *peer = &inj->link->peer;
	struct vrnic_record rec = {
		.kind = VRNIC_REC_NOTIFY,
		.opcode = VRNIC_NOP_NOTIFY,
		.status = inj->req.await.value & 0xff,
		.vendor_err = inj->req.await.value >> 8 & 0xff,
		.arg = inj->op.d.arg,
		.cookie = inj->op.d.cookie,
		.source = peer->fifo,
		.task = peer->task,
		.host = vrnic_host_number(inj->link->host),
	};

	if (inj->op.d.flags & VRNIC_NDESC_BACK ||
	    !vrnic_record_post(inj->fifo, &rec, NULL, 0))
		return VRNIC_STEP_DONE;
	vrnic_stall(inj, inj->fifo);
	return VRNIC_STEP_WAIT;
}

/* The peer has no room. An RGET is tried again for a limited time, all else for ever. */
static enum vrnic_step wait_again(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;
	u64 ns = AGAIN_FIRST_NS << min_t(u32, op->tries, AGAIN_DOUBLED);

	if (op->d.opcode == VRNIC_NOP_RGET && !op->finished)
		return vrnic_native_wait_full(inj);
	if (op->tries < U16_MAX)
		op->tries++;
	inj->run.wait_until = ktime_get_ns() + ns;
	vrnic_count(inj->fifo->dev, RECEPTION_STALLS);
	return VRNIC_STEP_WAIT;
}

static enum vrnic_step remote_collect(struct vrnic_injector *inj,
				      struct vrnic_budget *budget)
{
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_nop *op = &inj->op;

	if (req->await.status != IB_WC_SUCCESS)
		return vrnic_nop_fail(op, req->await.status, req->await.vendor_err);
	if (op->d.flags & VRNIC_NDESC_TYPED && req->telling)
		return remote_told(inj);
	if (op->d.flags & VRNIC_NDESC_TYPED && req->await.again)
		return remote_forgotten(inj);
	if (req->await.again)
		return wait_again(inj);
	if (op->d.flags & VRNIC_NDESC_TYPED && req->rows)
		note_told(inj, inj->typed->type[VRNIC_SIDE_REMOTE]);
	switch (op->d.opcode) {
	case VRNIC_NOP_PUT:
	case VRNIC_NOP_GET:
		return remote_moved(inj, budget);
	case VRNIC_NOP_RMW:
		return remote_fetched(inj);
	case VRNIC_NOP_MESSAGE:
		vrnic_count_add(inj->fifo->dev, BYTES_SENT,
				op->d.header_len + op->d.length);
		fallthrough;
	case VRNIC_NOP_RGET:
		op->done = op->d.length;
		return VRNIC_STEP_DONE;
	default:
		return remote_notified(inj);
	}
}

/**
 * vrnic_wire_native() - execute a native descriptor whose peer is on another host
 * @inj: injector with a link; its operation was checked, and vrnic_wire_waits() is false
 * @budget: its bytes are reduced by those that moved
 *
 * Return: enum vrnic_step.
 */
enum vrnic_step vrnic_wire_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (!inj->req.posted)
		return ask_any(inj, budget);
	step = remote_collect(inj, budget);
	/* keep the answer to a NOTIFY whose record has no room yet in this end's reception FIFO */
	if (step != VRNIC_STEP_WAIT || inj->run.wait_until)
		vrnic_wire_forget(inj);
	return step;
}

/**
 * vrnic_wire_tell() - tell the peer that a descriptor that the peer injected has failed
 * @inj: injector of injected descriptors; vrnic_wire_waits() is false
 *
 * Return: false if the peer has not been told yet; true if it was told, or the link is dead.
 */
bool vrnic_wire_tell(struct vrnic_injector *inj)
{
	const struct vrnic_nop *op = &inj->op;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_ERROR,
		.status = op->status,
		.vendor_err = op->vendor_err,
		.counter = { op->d.target_counter, op->d.remote_counter },
		.total = op->done,
		.arg = op->d.opcode,
		.cookie = op->d.cookie,
	};
	struct vrnic_nop was = *op;
	bool again;

	if (!inj->req.posted) {
		inj->req.msg.nr = 0;
		inj->req.telling = false;
		if (remote_ask(inj, &h) == VRNIC_STEP_WAIT)
			return false;
		inj->op = was;
		return true;
	}
	again = inj->req.await.again && inj->req.await.status == IB_WC_SUCCESS;
	vrnic_wire_forget(inj);
	if (again)
		wait_again(inj);
	return !again;
}
