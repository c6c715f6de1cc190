// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCE flow for native descriptors: the peer's FIFO is on another host, at
 * the other end of a native link (native_link.c).
 *
 * Both ends ask. Whoever has a descriptor sends a request, and its injector goes
 * away until the answer is there; who gets a request checks it as the loopback
 * flow checks a descriptor of a local peer, executes it, and answers. A request
 * that names nonsense has an answer that says so, and the link goes on. Only
 * what no module of ours would send is a NAK, and ends the link.
 *
 * Data goes from the packets to where it belongs; memory is looked up for each
 * packet. What is sent is held until the peer has acknowledged it, because a lost
 * packet is made again from it.
 */

#include <linux/ktime.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "flow.h"
#include "link.h"
#include "native.h"
#include "roce.h"

/* Slots of a link's ring that answers leave to the requests of two injectors. */
#define KEEP_SLOTS	4

/* The peer's reception FIFO is full: 50 us, and twice as long, up to 13 ms. */
#define AGAIN_FIRST_NS	50000ULL
#define AGAIN_DOUBLED	8

/* Types that a peer tells of: bytes of rows. More of them, and they are forgotten. */
#define TYPES_BYTES	SZ_4M

/* So much of a typed transfer is packed at a time. */
#define PACK_BYTES	SZ_256K

static struct vrnic_nmsg *to_msg(u64 cookie)
{
	return (struct vrnic_nmsg *)(uintptr_t)cookie;
}

/* ---- messages ---- */

static void msg_add(struct vrnic_nmsg *msg, const struct vrnic_seg *seg)
{
	if (seg->len)
		msg->seg[msg->nr++] = *seg;
}

static void msg_release(struct vrnic_nmsg *msg)
{
	while (msg->nr)
		vrnic_seg_put(&msg->seg[--msg->nr]);
	kvfree(msg->buf);
	msg->buf = NULL;
}

static void answer_free(struct vrnic_nmsg *msg)
{
	if (!msg)
		return;
	msg_release(msg);
	kfree(msg);
}

static u64 msg_bytes(const struct vrnic_nmsg *msg)
{
	u64 bytes = sizeof(msg->hdr);
	unsigned int i;

	for (i = 0; i < msg->nr; i++)
		bytes += msg->seg[i].len;
	return bytes;
}

/**
 * vrnic_native_open() - the memory of a message that is to be sent
 * @sgl: filled in; need not be put
 * @cookie: of its descriptor
 */
void vrnic_native_open(struct vrnic_sgl *sgl, u64 cookie)
{
	struct vrnic_nmsg *msg = to_msg(cookie);
	unsigned int i;

	vrnic_sgl_kva(sgl, &msg->hdr, sizeof(msg->hdr));
	for (i = 0; i < msg->nr; i++) {
		sgl->seg[sgl->nr] = msg->seg[i];
		/* the message has the reference */
		sgl->seg[sgl->nr++].held = true;
	}
}

static bool link_has_room(struct vrnic_link *link, u32 keep)
{
	const struct vrnic_ring *ring = &link->qp->sq;
	u32 used = READ_ONCE(ring->hdr->prod) -
		   /* pairs with the release in vrnic_ring_consume() */
		   smp_load_acquire(&ring->hdr->cons);

	return used + keep < ring->entries;
}

/* Caller holds link->lock, and there is room. */
static void link_enqueue(struct vrnic_link *link, struct vrnic_nmsg *msg)
{
	struct vrnic_ring *ring = &link->qp->sq;
	u32 prod = READ_ONCE(ring->hdr->prod);
	struct vrnic_desc *d = vrnic_ring_slot(ring, prod);

	lockdep_assert_held(&link->lock);
	*d = (struct vrnic_desc) {
		.opcode = VRNIC_OP_NATIVE,
		.num_slots = 1,
		.cookie = (uintptr_t)msg,
		.num_sge = 1,
		.sge[0].length = msg_bytes(msg),
	};
	list_add_tail(&msg->link, &link->msgs);
	/* P1 */
	smp_store_release(&ring->hdr->prod, prod + 1);
}

/* ---- requests out ---- */

static unsigned int slot_of(const struct vrnic_injector *inj)
{
	return inj != &inj->fifo->inject;
}

static struct vrnic_injector *injector_of(struct vrnic_nreq *req)
{
	return container_of(req, struct vrnic_injector, req);
}

/**
 * vrnic_wire_waits() - is there no answer yet to what this injector asked for
 * @inj: injector
 */
bool vrnic_wire_waits(const struct vrnic_injector *inj)
{
	/* pairs with the release in complete_req() */
	return inj->req.posted && smp_load_acquire(&inj->req.pending);
}

/**
 * vrnic_wire_forget() - be done with a request
 * @inj: injector; it does not wait for the answer
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

static enum vrnic_step fail_local(struct vrnic_nop *op, int verr)
{
	return vrnic_nop_fail(op, IB_WC_LOC_PROT_ERR, verr);
}

static enum vrnic_step fail_peer(struct vrnic_nop *op)
{
	return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
}

/* The engine that runs the link's queue pair has it from now on. */
static bool link_post(struct vrnic_link *link, struct vrnic_nreq *req,
		      struct vrnic_nhdr *h, unsigned int slot)
{
	struct vrnic_qp *qp = link->qp;

	spin_lock(&link->lock);
	if (link->dead) {
		spin_unlock(&link->lock);
		return false;
	}
	/* answers leave room for both injectors' requests */
	WARN_ON_ONCE(!link_has_room(link, 0));
	req->id += 2;
	req->id = (req->id & ~1U) | slot;
	h->id = req->id;
	vrnic_nwire_fill(&req->msg.hdr, h);
	req->pending = true;
	link->pending[slot] = req;
	link_enqueue(link, &req->msg);
	/* whoever kills the link waits for this */
	refcount_inc(&qp->refs);
	spin_unlock(&link->lock);
	vrnic_kick(&qp->run);
	vrnic_qp_put(qp);
	return true;
}

/* Send what @inj->req was prepared for. */
static enum vrnic_step ask(struct vrnic_injector *inj, struct vrnic_nhdr *h)
{
	struct vrnic_nreq *req = &inj->req;

	req->msg.req = req;
	req->posted = true;
	req->sent = false;
	req->answered = false;
	req->again = false;
	req->status = IB_WC_SUCCESS;
	req->vendor_err = VRNIC_VERR_NONE;
	req->value = 0;
	if (link_post(inj->link, req, h, slot_of(inj)))
		return VRNIC_STEP_WAIT;
	msg_release(&req->msg);
	vrnic_wire_forget(inj);
	return fail_peer(&inj->op);
}

/* Memory of this side, with a reference of its own. */
static int open_local(struct vrnic_injector *inj, u64 addr, u64 len, bool write,
		      struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = inj->fifo;
	int access = write ? IB_ACCESS_LOCAL_WRITE : 0;

	if (inj->rget)
		access = IB_ACCESS_REMOTE_READ;
	return vrnic_seg_region(fifo->dev, fifo->pd, inj->op.d.lkey, inj->rget,
				addr, len, access, NULL, seg);
}

/* Counters that the peer is to count down. */
static void put_counters(const struct vrnic_injector *inj, struct vrnic_nhdr *h)
{
	h->counter[0] = inj->op.d.target_counter;
	h->counter[1] = inj->rget ? inj->op.d.remote_counter : 0;
}

/* All of the local memory is checked before the first byte moves. */
static int check_whole(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	if (inj->op.done || d->flags & (VRNIC_NDESC_VIRTUAL | VRNIC_NDESC_INLINE))
		return 0;
	verr = open_local(inj, d->local_addr, d->length,
			  d->opcode == VRNIC_NOP_GET, &seg);
	if (!verr)
		vrnic_seg_put(&seg);
	return verr;
}

/*
 * The local memory of the next @n bytes; may be less then, of memory that is
 * pinned. Return: 0, enum vrnic_vendor_err, or -EAGAIN.
 */
static int open_move(struct vrnic_injector *inj, u64 *n, bool get)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 addr = d->local_addr + inj->op.done;
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_seg seg[2] = {};
	int verr = 0;

	req->into = (struct vrnic_seg){};
	if (!*n)
		return 0;
	if (d->flags & VRNIC_NDESC_INLINE) {
		if (vrnic_native_ring(inj, inj->op.done, *n, seg) == 2)
			msg_add(&req->msg, &seg[0]);
		else
			seg[1] = seg[0];
	} else if (d->flags & VRNIC_NDESC_VIRTUAL) {
		verr = vrnic_virtual_pin(inj, addr, *n, get, &seg[1]);
		req->pinned = !verr;
		*n = verr ? *n : seg[1].len;
		req->into = seg[1];
	} else if (!get) {
		verr = open_local(inj, addr, *n, false, &seg[1]);
	}
	if (!verr && !get)
		msg_add(&req->msg, &seg[1]);
	req->key = d->lkey;
	req->addr = addr;
	return verr;
}

static enum vrnic_step ask_move(struct vrnic_injector *inj)
{
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nop *op = &inj->op;
	u64 n = min_t(u64, d->length - op->done, VRNIC_NWIRE_BURST);
	struct vrnic_nhdr h = {
		.op = get ? VRNIC_NWIRE_GET : VRNIC_NWIRE_PUT,
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.pos = op->done,
	};
	int verr = check_whole(inj);

	if (!verr)
		verr = open_move(inj, &n, get);
	if (verr == -EAGAIN)
		return VRNIC_STEP_WAIT;
	if (verr)
		return fail_local(op, verr);
	put_counters(inj, &h);
	inj->req.n = n;
	if (get)
		h.arg = n;
	else
		h.data = n;
	return ask(inj, &h);
}

static enum vrnic_step ask_rmw(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_RMW,
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.pos = inj->op.rmw.operand,
		.cookie = inj->op.rmw.compare,
		.arg = d->arg,
	};
	struct vrnic_seg seg;
	int verr;

	/* the value must have a place before there is one */
	if (d->lkey) {
		verr = open_local(inj, d->local_addr, d->length, true, &seg);
		if (verr)
			return fail_local(&inj->op, verr);
		vrnic_seg_put(&seg);
	}
	put_counters(inj, &h);
	return ask(inj, &h);
}

static enum vrnic_step ask_message(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	bool in_ring = d->flags & VRNIC_NDESC_INLINE || !d->length;
	u64 ring = d->header_len + (in_ring ? d->length : 0);
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_MESSAGE,
		.data = d->header_len + d->length,
		.key = d->header_len,
		.total = d->length,
		.arg = d->arg,
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
		verr = open_local(inj, d->local_addr, d->length, false, &seg[2]);
	}
	if (verr)
		return fail_local(&inj->op, verr);
	nr = vrnic_native_ring(inj, 0, ring, seg);
	for (i = 0; i < nr; i++)
		msg_add(&req->msg, &seg[i]);
	if (!in_ring)
		msg_add(&req->msg, &seg[2]);
	put_counters(inj, &h);
	return ask(inj, &h);
}

/* Counters that descriptors name which run at the peer, in our name. */
static void grant(struct vrnic_link *link, u32 id)
{
	unsigned int i;

	lockdep_assert_held(&link->lock);
	for (i = 0; i < VRNIC_LINK_GRANTS; i++)
		if (link->grants[i] == id)
			return;
	link->grants[link->next_grant++ % VRNIC_LINK_GRANTS] = id;
}

static void grant_all(struct vrnic_link *link, const struct vrnic_ndesc *d,
		      unsigned int nr)
{
	spin_lock(&link->lock);
	for (; nr; nr--, d++) {
		grant(link, d->remote_counter);
		grant(link, d->target_counter);
	}
	spin_unlock(&link->lock);
}

static enum vrnic_step ask_rget(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_nhdr h = { .op = VRNIC_NWIRE_RGET, .data = d->length };
	struct vrnic_nmsg *msg = &inj->req.msg;
	struct vrnic_seg descs, copy = { .len = d->length };
	int verr;

	verr = open_local(inj, d->local_addr, d->length, false, &descs);
	if (verr)
		return fail_local(&inj->op, verr);
	/* what is granted has to be what is sent */
	copy.kva = kvmalloc(d->length, GFP_KERNEL | __GFP_NOWARN);
	if (copy.kva)
		vrnic_seg_copy(&copy, 0, &descs, 0, d->length, false);
	vrnic_seg_put(&descs);
	if (!copy.kva)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_FULL);
	grant_all(inj->link, copy.kva, d->length / sizeof(*d));
	msg->buf = copy.kva;
	msg_add(msg, &copy);
	put_counters(inj, &h);
	return ask(inj, &h);
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

	return ask(inj, &h);
}

/* ---- typed transfers (S3): the data are packed on the wire ---- */

static bool was_told(struct vrnic_injector *inj, const struct vrnic_type *type)
{
	return xa_load(&inj->link->told, type->number) ==
	       xa_mk_value(type->serial);
}

/* Rows as they were before they were counted from the lowest byte. */
static void copy_rows(struct vrnic_type_row *to, const struct vrnic_rows *rows,
		      u64 from, u64 nr)
{
	u64 i;

	for (i = 0; i < nr; i++) {
		to[i] = rows->row[from + i];
		to[i].offset = (s64)((u64)to[i].offset + (u64)rows->lower);
	}
}

/* Tell the peer the type of its memory, in pieces if it is long. */
static enum vrnic_step tell_type(struct vrnic_injector *inj,
				 const struct vrnic_type *type)
{
	u64 total = type->rows.nr * sizeof(struct vrnic_type_row);
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

	req->msg.buf = kvmalloc(n, GFP_KERNEL | __GFP_NOWARN);
	if (!req->msg.buf)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_TYPE);
	copy_rows(req->msg.buf, &type->rows,
		  req->told / sizeof(struct vrnic_type_row),
		  n / sizeof(struct vrnic_type_row));
	seg.kva = req->msg.buf;
	msg_add(&req->msg, &seg);
	req->telling = true;
	req->n = n;
	return ask(inj, &h);
}

static int open_typed(struct vrnic_injector *inj, bool write,
		      struct vrnic_seg *seg)
{
	struct vrnic_nreq *req = &inj->req;

	if (!vrnic_nop_typed_range(inj, false, &req->addr, &req->span))
		return VRNIC_VERR_BOUNDS;
	req->key = inj->op.d.lkey;
	return open_local(inj, req->addr, req->span, write, seg);
}

/* Pack the next @n bytes. */
static int pack(struct vrnic_injector *inj, struct vrnic_seg *storage, u64 n)
{
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_seg seg = { .len = n };

	req->msg.buf = kvmalloc(n, GFP_KERNEL | __GFP_NOWARN);
	if (!req->msg.buf)
		return VRNIC_VERR_TYPE;
	vrnic_half_copy(&req->half, storage, req->msg.buf, n, true, false);
	seg.kva = req->msg.buf;
	msg_add(&req->msg, &seg);
	return 0;
}

static int typed_begin(struct vrnic_injector *inj)
{
	int verr;

	if (inj->typed_begun)
		return 0;
	verr = vrnic_nop_typed_begin(inj);
	if (!verr)
		vrnic_half_begin(&inj->req.half,
				 &inj->typed->type[VRNIC_SIDE_LOCAL]->rows);
	inj->req.told = 0;
	return verr;
}

static enum vrnic_step move_typed(struct vrnic_injector *inj)
{
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 n = min_t(u64, d->length - inj->op.done, PACK_BYTES);
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_nhdr h = {
		.op = get ? VRNIC_NWIRE_GET : VRNIC_NWIRE_PUT,
		.flags = VRNIC_NWIRE_TYPED,
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.pos = inj->op.done,
		.type = inj->typed->type[VRNIC_SIDE_REMOTE]->number,
	};
	struct vrnic_seg seg;
	int verr;

	verr = open_typed(inj, get, &seg);
	if (verr)
		return fail_local(&inj->op, verr);
	req->was = req->half;
	if (!get)
		verr = pack(inj, &seg, n);
	vrnic_seg_put(&seg);
	if (verr)
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR, verr);
	put_counters(inj, &h);
	req->n = n;
	req->into = (struct vrnic_seg){};
	if (get)
		h.arg = n;
	else
		h.data = n;
	return ask(inj, &h);
}

static enum vrnic_step ask_typed(struct vrnic_injector *inj)
{
	const struct vrnic_type *type;
	int verr = typed_begin(inj);

	if (verr)
		return fail_local(&inj->op, verr);
	type = inj->typed->type[VRNIC_SIDE_REMOTE];
	return was_told(inj, type) ? move_typed(inj) : tell_type(inj, type);
}

/* The peer has some more rows. */
static enum vrnic_step told(struct vrnic_injector *inj)
{
	const struct vrnic_type *type = inj->typed->type[VRNIC_SIDE_REMOTE];
	struct vrnic_nreq *req = &inj->req;

	req->told += req->n;
	if (req->told < type->rows.nr * sizeof(struct vrnic_type_row))
		return VRNIC_STEP_MORE;
	req->told = 0;
	/* without memory for that, it is told again each time */
	if (xa_is_err(xa_store(&inj->link->told, type->number,
			       xa_mk_value(type->serial), GFP_KERNEL)))
		return vrnic_nop_fail(&inj->op, IB_WC_LOC_QP_OP_ERR,
				      VRNIC_VERR_TYPE);
	return VRNIC_STEP_MORE;
}

/* The peer has forgotten the type: nothing has moved, and it is told again. */
static enum vrnic_step forgotten(struct vrnic_injector *inj)
{
	xa_erase(&inj->link->told,
		 inj->typed->type[VRNIC_SIDE_REMOTE]->number);
	inj->req.half = inj->req.was;
	return VRNIC_STEP_MORE;
}

/* A peer that injected this may count only what is open to peers. */
static bool own_counter_fits(const struct vrnic_injector *inj)
{
	u32 id = inj->op.d.local_counter;

	return !inj->rget || !id ||
	       vrnic_counter_is_open(id, inj->fifo->uctx);
}

static enum vrnic_step ask_any(struct vrnic_injector *inj)
{
	struct vrnic_nreq *req = &inj->req;

	req->msg.nr = 0;
	req->telling = false;
	req->n = 0;
	if (!inj->op.done && !own_counter_fits(inj))
		return vrnic_nop_fail(&inj->op, IB_WC_REM_ACCESS_ERR,
				      VRNIC_VERR_COUNTER);
	if (inj->op.d.flags & VRNIC_NDESC_TYPED)
		return ask_typed(inj);
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

static enum vrnic_step moved(struct vrnic_injector *inj,
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

static enum vrnic_step fetched(struct vrnic_injector *inj)
{
	struct vrnic_seg local, value = { .kva = &inj->op.value };
	const struct vrnic_ndesc *d = &inj->op.d;
	int verr;

	inj->op.value = inj->req.value;
	if (!d->lkey)
		return VRNIC_STEP_DONE;
	verr = open_local(inj, d->local_addr, d->length, true, &local);
	if (verr)
		return fail_local(&inj->op, verr);
	vrnic_seg_copy(&local, 0, &value, 0, d->length, true);
	vrnic_seg_put(&local);
	return VRNIC_STEP_DONE;
}

/* Of a NOTIFY that is for this side: the peer said what failed of its counter. */
static enum vrnic_step notified(struct vrnic_injector *inj)
{
	const struct vrnic_address *peer = &inj->link->peer;
	struct vrnic_record rec = {
		.kind = VRNIC_REC_NOTIFY,
		.opcode = VRNIC_NOP_NOTIFY,
		.status = inj->req.value & 0xff,
		.vendor_err = inj->req.value >> 8 & 0xff,
		.arg = inj->op.d.arg,
		.cookie = inj->op.d.cookie,
		.source = peer->fifo,
		.task = peer->task,
	};

	if (inj->op.d.flags & VRNIC_NDESC_BACK ||
	    !vrnic_record_post(inj->fifo, &rec, NULL, 0))
		return VRNIC_STEP_DONE;
	vrnic_stall(inj, inj->fifo);
	return VRNIC_STEP_WAIT;
}

/* No room at the peer. Remote gets try for a while, messages for ever. */
static enum vrnic_step wait_again(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;
	u64 ns = AGAIN_FIRST_NS << min_t(u32, op->tries, AGAIN_DOUBLED);

	if (op->d.opcode == VRNIC_NOP_RGET && !op->finished)
		return vrnic_native_wait_full(inj);
	if (op->tries < U16_MAX)
		op->tries++;
	inj->wait_until = ktime_get_ns() + ns;
	vrnic_count(inj->fifo->dev, RECEPTION_STALLS);
	return VRNIC_STEP_WAIT;
}

static enum vrnic_step collect(struct vrnic_injector *inj,
			       struct vrnic_budget *budget)
{
	struct vrnic_nreq *req = &inj->req;
	struct vrnic_nop *op = &inj->op;

	if (req->status != IB_WC_SUCCESS)
		return vrnic_nop_fail(op, req->status, req->vendor_err);
	if (op->d.flags & VRNIC_NDESC_TYPED && req->telling)
		return told(inj);
	if (op->d.flags & VRNIC_NDESC_TYPED && req->again)
		return forgotten(inj);
	if (req->again)
		return wait_again(inj);
	switch (op->d.opcode) {
	case VRNIC_NOP_PUT:
	case VRNIC_NOP_GET:
		return moved(inj, budget);
	case VRNIC_NOP_RMW:
		return fetched(inj);
	case VRNIC_NOP_MESSAGE:
		vrnic_count_add(inj->fifo->dev, BYTES_SENT,
				op->d.header_len + op->d.length);
		fallthrough;
	case VRNIC_NOP_RGET:
		op->done = op->d.length;
		return VRNIC_STEP_DONE;
	default:
		return notified(inj);
	}
}

/**
 * vrnic_wire_native() - execute a native descriptor whose peer is elsewhere
 * @inj: injector; its operation was checked, it has the link, and waits for no
 *	answer
 * @budget: what moved is taken off
 */
enum vrnic_step vrnic_wire_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget)
{
	enum vrnic_step step;

	if (!inj->req.posted)
		return ask_any(inj);
	step = collect(inj, budget);
	/* but for a record that has no room here, it has been used */
	if (step != VRNIC_STEP_WAIT || inj->wait_until)
		vrnic_wire_forget(inj);
	return step;
}

/**
 * vrnic_wire_tell() - let the peer know that what it injected failed
 * @inj: injector of injected descriptors; waits for no answer
 *
 * Return: false if it does not know yet.
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
		if (ask(inj, &h) == VRNIC_STEP_WAIT)
			return false;
		inj->op = was;
		return true;
	}
	again = inj->req.again && inj->req.status == IB_WC_SUCCESS;
	vrnic_wire_forget(inj);
	if (again)
		wait_again(inj);
	return !again;
}

/* ---- the link's run: what is on its way ---- */

/* The injector has it back. Caller has the run bit, or nobody runs the link. */
static void complete_req(struct vrnic_link *link, struct vrnic_nreq *req)
{
	struct vrnic_injector *inj = injector_of(req);

	spin_lock(&link->lock);
	link->pending[req->id & 1] = NULL;
	spin_unlock(&link->lock);
	if (link->rx.req == req)
		link->rx.req = NULL;
	msg_release(&req->msg);
	/* pairs with the acquire in vrnic_wire_waits() */
	smp_store_release(&req->pending, false);
	vrnic_queue(&inj->run);
}

/**
 * vrnic_native_sent() - a message of a link is not needed any more
 * @link: link
 * @cookie: of its descriptor
 * @status: enum ib_wc_status
 */
void vrnic_native_sent(struct vrnic_link *link, u64 cookie, u8 status)
{
	struct vrnic_nmsg *msg = to_msg(cookie);
	struct vrnic_nreq *req = msg->req;

	spin_lock(&link->lock);
	list_del_init(&msg->link);
	if (link->dead && list_empty(&link->msgs))
		wake_up(&link->idle);
	spin_unlock(&link->lock);
	if (!req) {
		answer_free(msg);
		return;
	}
	/* after a failure the link is flushed, and its requests with it */
	if (status != IB_WC_SUCCESS)
		return;
	req->sent = true;
	if (req->answered)
		complete_req(link, req);
}

/* Nothing can be posted from now on. */
void vrnic_link_broken(struct vrnic_link *link)
{
	spin_lock(&link->lock);
	WRITE_ONCE(link->dead, true);
	spin_unlock(&link->lock);
}

static void fail_pending(struct vrnic_link *link)
{
	struct vrnic_nreq *req;
	int i;

	for (i = 0; i < ARRAY_SIZE(link->pending); i++) {
		/* a dead link gets no new ones */
		req = READ_ONCE(link->pending[i]);
		if (!req)
			continue;
		if (!req->answered) {
			req->status = IB_WC_RETRY_EXC_ERR;
			req->vendor_err = VRNIC_VERR_PEER;
		}
		complete_req(link, req);
	}
}

/**
 * vrnic_link_flushed() - a link has failed, and none of its messages is needed
 * @link: link; broken
 */
void vrnic_link_flushed(struct vrnic_link *link)
{
	fail_pending(link);
	/* pairs with the barrier in watch(): who comes later sees that it is dead */
	smp_mb();
	vrnic_endpoints_lost(link);
}

/* Half a round trip is most of what it takes; and nobody waits for the dead. */
#define LINGER_MS	200

static bool msgs_gone(struct vrnic_link *link)
{
	bool gone;

	spin_lock(&link->lock);
	gone = list_empty(&link->msgs);
	spin_unlock(&link->lock);
	return gone;
}

/**
 * vrnic_link_linger() - let the peer have what was sent
 * @link: link; broken, so nothing is added
 */
void vrnic_link_linger(struct vrnic_link *link)
{
	wait_event_timeout(link->idle, msgs_gone(link),
			   msecs_to_jiffies(LINGER_MS));
}

static void forget_types(struct vrnic_link *link)
{
	struct vrnic_rows *rows;
	unsigned long number;

	xa_for_each(&link->types, number, rows) {
		xa_erase(&link->types, number);
		kvfree(rows->row);
		kfree(rows);
	}
	link->types_bytes = 0;
	link->rx.type = NULL;
}

static void msgs_drop(struct vrnic_link *link)
{
	struct vrnic_nmsg *msg, *next;

	list_for_each_entry_safe(msg, next, &link->msgs, link) {
		list_del_init(&msg->link);
		if (!msg->req)
			answer_free(msg);
	}
}

/* The same when the queue pair is gone, whatever it was doing. */
void vrnic_link_drain(struct vrnic_link *link)
{
	msgs_drop(link);
	answer_free(link->rx.answer);
	link->rx.answer = NULL;
	fail_pending(link);
	forget_types(link);
	kvfree(link->rx.rows);
	xa_destroy(&link->told);
}

/* ---- requests in ---- */

static void refuse(struct vrnic_link *link, u8 status, int verr)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (rx->status != IB_WC_SUCCESS)
		return;
	if (rx->h.op != VRNIC_NWIRE_ANSWER)
		vrnic_count(link->fifo->dev, REMOTE_ERRORS);
	rx->status = status;
	rx->vendor_err = verr;
}

static void refuse_access(struct vrnic_link *link, int verr)
{
	refuse(link, IB_WC_REM_ACCESS_ERR, verr);
}

/* May the peer name this counter? Or does it run what we injected? */
static bool counter_fits(struct vrnic_link *link, u32 id)
{
	bool fits = !id || vrnic_counter_is_open(id, link->fifo->uctx);
	unsigned int i;

	if (fits)
		return true;
	spin_lock(&link->lock);
	for (i = 0; i < VRNIC_LINK_GRANTS; i++)
		fits |= link->grants[i] == id;
	spin_unlock(&link->lock);
	return fits;
}

static void check_counters(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	if (!counter_fits(link, h->counter[0]) ||
	    !counter_fits(link, h->counter[1]))
		refuse_access(link, VRNIC_VERR_COUNTER);
}

static void count(struct vrnic_link *link, u64 n)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	int i, missing = 0;

	for (i = 0; i < ARRAY_SIZE(h->counter); i++)
		if (h->counter[i])
			missing |= vrnic_counter_down(h->counter[i],
						      link->fifo->uctx, n);
	if (missing)
		refuse(link, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_COUNTER);
}

static int open_remote(struct vrnic_link *link, u64 addr, u64 len, int access,
		       struct vrnic_held *held, struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = link->fifo;

	return vrnic_seg_region(fifo->dev, fifo->pd, link->rx.h.key, true, addr,
				len, access, held, seg);
}

/* All of it is checked before the first byte moves. */
static void check_memory(struct vrnic_link *link, int access)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg seg;
	int verr;

	if (h->pos)
		return;
	verr = open_remote(link, h->addr, h->total, access,
			   &link->qp->hold.remote, &seg);
	if (verr)
		refuse_access(link, verr);
	else
		vrnic_seg_put(&seg);
}

/* The whole storage; its type was checked against that once and for all. */
static int open_storage(struct vrnic_link *link, int access,
			struct vrnic_seg *seg)
{
	const struct vrnic_rows *rows = link->rx.type;
	u64 base = link->rx.h.addr;
	u64 addr = base + rows->lower;

	if (rows->lower < 0 ? addr >= base : addr < base)
		return VRNIC_VERR_BOUNDS;
	return open_remote(link, addr, rows->span, access,
			   &link->qp->hold.remote, seg);
}

/*
 * A type that the peer told of, and a position in it: pieces of a transfer come
 * one after the other. What is not known is asked for again.
 */
static void check_typed(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_rows *rows = xa_load(&link->types, rx->h.type);
	int access = rx->h.op == VRNIC_NWIRE_PUT ? IB_ACCESS_REMOTE_WRITE :
						   IB_ACCESS_REMOTE_READ;
	struct vrnic_seg seg;
	int verr;

	rx->unknown = !rows;
	if (!rows)
		return;
	if (rx->h.total != rows->bytes || rx->h.arg > PACK_BYTES ||
	    (rx->h.pos && (rx->type != rows || rx->half.pos != rx->h.pos))) {
		refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	rx->type = rows;
	verr = open_storage(link, access, &seg);
	if (verr) {
		refuse_access(link, verr);
		return;
	}
	vrnic_seg_put(&seg);
	if (!rx->h.pos)
		vrnic_half_begin(&rx->half, rows);
}

/* Room for rows: all of them when the first come. */
static void check_rows(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	const struct vrnic_nhdr *h = &rx->h;

	if (!h->pos) {
		kvfree(rx->rows);
		rx->rows = NULL;
		rx->rows_there = 0;
		rx->rows_bytes = h->total;
		if (h->total <= TYPES_BYTES)
			rx->rows = kvmalloc(h->total, GFP_KERNEL | __GFP_NOWARN);
	}
	if (!rx->rows || h->total != rx->rows_bytes || h->pos != rx->rows_there)
		refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
}

static void check_request(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;

	check_counters(link);
	if (link->rx.status != IB_WC_SUCCESS)
		return;
	if (h->flags & VRNIC_NWIRE_TYPED)
		check_typed(link);
	else if (h->op == VRNIC_NWIRE_TYPE)
		check_rows(link);
	else if (h->op == VRNIC_NWIRE_PUT)
		check_memory(link, IB_ACCESS_REMOTE_WRITE);
	else if (h->op == VRNIC_NWIRE_GET)
		check_memory(link, IB_ACCESS_REMOTE_READ);
}

/* Before anything is executed, there has to be a way to answer. */
static int start_request(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (!link_has_room(link, KEEP_SLOTS))
		return -EAGAIN;
	/* one may be left of a message that was broken off */
	if (!rx->answer)
		rx->answer = kzalloc(sizeof(*rx->answer),
				     GFP_KERNEL | __GFP_NOWARN);
	if (!rx->answer)
		return -EAGAIN;
	INIT_LIST_HEAD(&rx->answer->link);
	check_request(link);
	return 0;
}

/* To what was asked, and once; with data only where some was asked for. */
static int start_answer(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nhdr *h = &rx->h;
	struct vrnic_nreq *req;
	bool good = h->status == IB_WC_SUCCESS && !(h->flags & VRNIC_NWIRE_AGAIN);
	bool get;

	spin_lock(&link->lock);
	req = link->pending[h->id & 1];
	spin_unlock(&link->lock);
	if (!req || req->id != h->id || req->answered)
		return -EPROTO;
	get = injector_of(req)->op.d.opcode == VRNIC_NOP_GET && !req->telling;
	if (h->data != (get && good ? req->n : 0))
		return -EPROTO;
	rx->req = req;
	return 0;
}

static int start(struct vrnic_link *link, struct sk_buff *skb)
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
	rx->left = rx->h.data;
	rx->status = IB_WC_SUCCESS;
	rx->vendor_err = VRNIC_VERR_NONE;
	rx->req = NULL;
	rx->unknown = false;
	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return start_answer(link);
	return start_request(link);
}

/* Where the packet's data goes. Return: 0 or enum vrnic_vendor_err. */
static int open_place(struct vrnic_link *link, u32 len, struct vrnic_seg *seg)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_fifo *fifo = link->fifo;
	struct vrnic_hold *hold = &link->qp->hold;
	u64 off = rx->h.data - rx->left;
	struct vrnic_nreq *req = rx->req;

	switch (rx->h.op) {
	case VRNIC_NWIRE_PUT:
		return open_remote(link, rx->h.addr + rx->h.pos + off, len,
				   IB_ACCESS_REMOTE_WRITE, &hold->remote, seg);
	case VRNIC_NWIRE_ANSWER:
		if (!req->into.len)
			return vrnic_seg_region(fifo->dev, fifo->pd, req->key,
						false, req->addr + off, len,
						IB_ACCESS_LOCAL_WRITE,
						&hold->local, seg);
		*seg = req->into;
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

/* The last bytes of an operation become visible last. */
static bool is_final(const struct vrnic_link *link, const struct vrnic_pkt *pkt)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	const struct vrnic_nop *op;

	if (!(pkt->info & VRNIC_PKT_END))
		return false;
	if (h->op == VRNIC_NWIRE_PUT)
		return h->pos + h->data == h->total;
	if (h->op != VRNIC_NWIRE_ANSWER)
		return false;
	op = &injector_of(link->rx.req)->op;
	return op->done + h->data == op->d.length;
}

static bool is_typed(const struct vrnic_link *link)
{
	const struct vrnic_link_rx *rx = &link->rx;

	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		return injector_of(rx->req)->op.d.flags & VRNIC_NDESC_TYPED;
	return rx->h.flags & VRNIC_NWIRE_TYPED;
}

/* Of the side that asked: the memory that it may have its data put into. */
static int open_asked(struct vrnic_link *link, struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = link->fifo;
	struct vrnic_nreq *req = link->rx.req;

	return vrnic_seg_region(fifo->dev, fifo->pd, req->key, false, req->addr,
				req->span, IB_ACCESS_LOCAL_WRITE,
				&link->qp->hold.local, seg);
}

/* From the packet to where its type says; there is no buffer in between. */
static void scatter(struct vrnic_half *half, const struct vrnic_seg *storage,
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

static void place_typed(struct vrnic_link *link, struct sk_buff *skb)
{
	bool answer = link->rx.h.op == VRNIC_NWIRE_ANSWER;
	struct vrnic_half *half = answer ? &link->rx.req->half : &link->rx.half;
	struct vrnic_seg seg;
	int verr;

	verr = answer ? open_asked(link, &seg) :
			open_storage(link, IB_ACCESS_REMOTE_WRITE, &seg);
	if (verr) {
		refuse(link, answer ? IB_WC_LOC_PROT_ERR : IB_WC_REM_ACCESS_ERR,
		       verr);
		return;
	}
	scatter(half, &seg, skb, is_final(link, vrnic_pkt(skb)));
	vrnic_seg_put(&seg);
}

static void place(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_sgl *sgl = &link->qp->recv_sgl;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	int verr;

	if (is_typed(link)) {
		place_typed(link, skb);
		return;
	}
	verr = open_place(link, pkt->len, &sgl->seg[0]);
	if (verr && link->rx.h.op == VRNIC_NWIRE_ANSWER)
		refuse(link, IB_WC_LOC_PROT_ERR, verr);
	else if (verr)
		refuse_access(link, verr);
	if (verr)
		return;
	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	vrnic_pkt_copy(skb, sgl, is_final(link, pkt));
	vrnic_sgl_put(sgl);
}

/* ---- executing, once all of a message is there ---- */

/* All rows are there: they are a type, or nonsense. */
static int types_add(struct vrnic_link *link, struct vrnic_rows *rows)
{
	struct vrnic_rows *old;

	if (vrnic_rows_check(rows))
		return -EINVAL;
	if (link->types_bytes + link->rx.rows_bytes > TYPES_BYTES)
		forget_types(link);
	old = xa_store(&link->types, link->rx.h.key, rows, GFP_KERNEL);
	if (xa_is_err(old))
		return xa_err(old);
	link->types_bytes += link->rx.rows_bytes;
	if (old) {
		kvfree(old->row);
		kfree(old);
	}
	link->rx.type = NULL;
	return 0;
}

static void do_type(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_rows *rows;

	rx->rows_there += rx->h.data;
	if (rx->rows_there < rx->rows_bytes)
		return;
	rows = kzalloc(sizeof(*rows), GFP_KERNEL | __GFP_NOWARN);
	if (rows) {
		rows->nr = rx->rows_bytes / sizeof(*rows->row);
		rows->row = rx->rows;
	}
	if (!rows || types_add(link, rows)) {
		kfree(rows);
		kvfree(rx->rows);
		refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
	}
	rx->rows = NULL;
}

/* Packed, because there are no packets yet. */
static void get_typed(struct vrnic_link *link)
{
	struct vrnic_nmsg *answer = link->rx.answer;
	u32 n = link->rx.h.arg;
	struct vrnic_seg storage, seg = { .len = n };
	int verr;

	answer->buf = kvmalloc(n, GFP_KERNEL | __GFP_NOWARN);
	if (!answer->buf) {
		refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
		return;
	}
	verr = open_storage(link, IB_ACCESS_REMOTE_READ, &storage);
	if (verr) {
		refuse_access(link, verr);
		return;
	}
	vrnic_half_copy(&link->rx.half, &storage, answer->buf, n, true, false);
	vrnic_seg_put(&storage);
	seg.kva = answer->buf;
	msg_add(answer, &seg);
	count(link, n);
}

static void do_get(struct vrnic_link *link)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg seg;
	int verr;

	verr = open_remote(link, h->addr + h->pos, h->arg, IB_ACCESS_REMOTE_READ,
			   NULL, &seg);
	if (verr) {
		refuse_access(link, verr);
		return;
	}
	msg_add(link->rx.answer, &seg);
	if (h->arg)
		count(link, h->arg);
}

static void do_put(struct vrnic_link *link)
{
	if (link->rx.h.data)
		count(link, link->rx.h.data);
}

static void do_rmw(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	const struct vrnic_ndesc_rmw rmw = {
		.operand = h->pos,
		.compare = h->cookie,
	};
	struct vrnic_seg seg;
	void *word;
	int verr;

	verr = open_remote(link, h->addr, h->total, IB_ACCESS_REMOTE_ATOMIC,
			   &link->qp->hold.remote, &seg);
	if (verr) {
		refuse_access(link, verr);
		return;
	}
	word = vrnic_seg_word(&seg, h->total);
	if (word)
		answer->pos = vrnic_native_rmw(word, h->total, h->arg, &rmw);
	vrnic_seg_put(&seg);
	if (!word) {
		refuse_access(link, VRNIC_VERR_ALIGN);
		return;
	}
	vrnic_count(link->fifo->dev, ATOMICS);
	count(link, 1);
}

/* A record that tells of the peer. Return: false if there is no room. */
static bool post_record(struct vrnic_link *link, struct vrnic_record *rec,
			const struct vrnic_seg *seg, struct vrnic_nhdr *answer)
{
	rec->source = link->peer.fifo;
	rec->task = link->peer.task;
	if (!vrnic_record_post(link->fifo, rec, seg, seg ? 1 : 0))
		return true;
	answer->flags |= VRNIC_NWIRE_AGAIN;
	return false;
}

static void do_message(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg seg = { .kva = link->rx.buf, .len = h->data };
	struct vrnic_record rec = {
		.kind = VRNIC_REC_MESSAGE,
		.opcode = VRNIC_NOP_MESSAGE,
		.header_len = h->key,
		.length = h->total,
		.arg = h->arg,
	};

	if (post_record(link, &rec, &seg, answer))
		count(link, 1);
}

static void do_rget(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	struct vrnic_seg descs = { .kva = link->rx.buf, .len = h->data };

	switch (vrnic_rget_deliver(link->fifo, &link->peer, link, &descs)) {
	case 0:
		count(link, 1);
		break;
	case -EAGAIN:
		answer->flags |= VRNIC_NWIRE_AGAIN;
		break;
	case -EPIPE:
		refuse(link, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
		break;
	default:
		refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_FULL);
	}
}

static void do_notify(struct vrnic_link *link, struct vrnic_nhdr *answer)
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

/* What was injected failed at the peer: there is a record, and its counters fail. */
static void do_error(struct vrnic_link *link, struct vrnic_nhdr *answer)
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
		vrnic_counter_fail(h->counter[i], link->fifo->uctx, &failure,
				   h->total);
}

static void execute(struct vrnic_link *link, struct vrnic_nhdr *answer)
{
	if (link->rx.unknown) {
		answer->flags |= VRNIC_NWIRE_AGAIN;
		return;
	}
	switch (link->rx.h.op) {
	case VRNIC_NWIRE_PUT:
		do_put(link);
		break;
	case VRNIC_NWIRE_GET:
		if (link->rx.h.flags & VRNIC_NWIRE_TYPED)
			get_typed(link);
		else
			do_get(link);
		break;
	case VRNIC_NWIRE_TYPE:
		do_type(link);
		break;
	case VRNIC_NWIRE_RMW:
		do_rmw(link, answer);
		break;
	case VRNIC_NWIRE_MESSAGE:
		do_message(link, answer);
		break;
	case VRNIC_NWIRE_RGET:
		do_rget(link, answer);
		break;
	case VRNIC_NWIRE_NOTIFY:
		do_notify(link, answer);
		break;
	default:
		do_error(link, answer);
	}
}

static void send_answer(struct vrnic_link *link, struct vrnic_nhdr *h)
{
	struct vrnic_nmsg *msg = link->rx.answer;
	bool dead;

	link->rx.answer = NULL;
	h->data = msg_bytes(msg) - sizeof(msg->hdr);
	vrnic_nwire_fill(&msg->hdr, h);
	spin_lock(&link->lock);
	dead = link->dead;
	if (!dead)
		link_enqueue(link, msg);
	spin_unlock(&link->lock);
	/* this run goes on with sending when it has received */
	if (dead)
		answer_free(msg);
}

static void finish_request(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nhdr answer = { .op = VRNIC_NWIRE_ANSWER, .id = rx->h.id };

	if (rx->status == IB_WC_SUCCESS)
		execute(link, &answer);
	if (rx->status != IB_WC_SUCCESS)
		msg_release(rx->answer);
	answer.status = rx->status;
	answer.vendor_err = rx->vendor_err;
	send_answer(link, &answer);
}

/* What the peer says of itself is told, so it has to be something known. */
static u8 known_status(u8 status)
{
	return min_t(u8, status, IB_WC_GENERAL_ERR);
}

static void finish_answer(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_nreq *req = rx->req;

	rx->req = NULL;
	if (rx->status != IB_WC_SUCCESS) {
		req->status = rx->status;
		req->vendor_err = rx->vendor_err;
	} else {
		req->status = known_status(rx->h.status);
		req->vendor_err = rx->h.vendor_err;
	}
	req->again = rx->h.flags & VRNIC_NWIRE_AGAIN;
	req->value = rx->h.pos;
	req->answered = true;
	if (req->sent)
		complete_req(link, req);
}

/**
 * vrnic_native_receive() - a packet of a message
 * @link: link that it came over
 * @skb: packet; the next one, and first, middle and last come in that order
 *
 * Return: 0; -EAGAIN: it is to be sent again; or -EPROTO: nobody of ours sends
 * that.
 */
int vrnic_native_receive(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	bool end = pkt->info & VRNIC_PKT_END;
	int err;

	if (pkt->info & VRNIC_PKT_START) {
		err = start(link, skb);
		if (err)
			return err;
	}
	if (pkt->len > rx->left || end != (pkt->len == rx->left))
		return -EPROTO;
	if (pkt->len && rx->status == IB_WC_SUCCESS && !rx->unknown)
		place(link, skb);
	rx->left -= pkt->len;
	if (!end)
		return 0;
	if (rx->h.op == VRNIC_NWIRE_ANSWER)
		finish_answer(link);
	else
		finish_request(link);
	return 0;
}
