// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Self-paced transfers (S4).
 *
 * The origin offers a message (vrnic_rts_send()), with a table of its "origin
 * RGET descriptors": one row for each portion after the first. They lack only the location of
 * what they send. The target
 * (vrnic_accept()) makes a batch of descriptors for each portion, to be run by
 * the origin's engine, and lets row k of the table fetch batch k + 1:
 *
 *	batch k		RGET	sends row k of the table to the target's engine
 *			PUT	portion k
 *	row k		RGET	sends batch k + 1 to the origin's engine
 *	last batch	PUT, NOTIFY at the origin, NOTIFY at the target
 *
 * The target's engine executes row k when it is the turn of this origin, if several origins are on
 * other hosts (driver/native/pacer.c). So that portion 0 waits for its turn, too, there may be a
 * batch in front that has the RGET alone.
 *
 * If the target wants the message piece by piece, there are MESSAGEs to its reception FIFO in the
 * place of a PUT. A full FIFO stops the origin's engine, so the target's process sets the pace.
 *
 * The target writes the locations into the table with one typed put, and sends batch 0. The
 * engines do the rest: they ask for portion k + 1 while portion k moves.
 *
 * The offer names the counter that tracks the message at the origin, if the program made this
 * counter open to peers. Then the PUT of each portion names it, too, so that the counter falls as
 * the message is taken. Otherwise the origin's library lets its counters fall at the end.
 *
 * Everything that comes from the peer is a claim: numbers of transfers are looked up,
 * and must be those of transfers with this peer.
 */

#include <errno.h>

#include "pace.h"

#define HEADER_MAX	1024		/* bytes of the user's header in an offer */
#define TABLE_MIN	255U		/* rows offered, even if the message is small */
#define TABLE_MAX	16383U		/* rows: a mebibyte */
#define PORTION_MIN	(1ULL << 15)	/* the table has rows for portions of these bytes */

/* ---- the origin ---- */

/* Return: rows to offer, enough for portions of PORTION_MIN, unless that exceeds TABLE_MAX. */
static uint32_t table_rows(uint64_t length)
{
	uint64_t rows = length / PORTION_MIN;

	if (rows < TABLE_MIN)
		rows = TABLE_MIN;
	if (rows >= length)
		rows = length ? length - 1 : 0;
	return rows < TABLE_MAX ? (uint32_t)rows : TABLE_MAX;
}

static struct vrnic_offer describe(const struct vrnic_transfer *x,
				   const struct vrnic_rts_wr *wr,
				   const struct vrnic_send_wr *message)
{
	struct vrnic_offer offer = {
		.dispatch = message ? message->id : 0,
		.length = x->length,
		.remote = (uintptr_t)wr->local,
		.rkey = wr->mr->rkey,
		.id = x->id,
		.counter = x->tracked ? (*x->tracked)->number : 0,
	};

	if (x->piece.chunk) {
		offer.table = (uintptr_t)x->piece.mem;
		offer.table_rkey = vrnic_pool_mr(&x->piece)->rkey;
		offer.table_rows = x->piece.rows;
		offer.flags = VRNIC_OFFER_ROWS;
	}
	return offer;
}

static int post_offer(struct vrnic_transfer *x, const struct vrnic_rts_wr *wr,
		      const struct vrnic_send_wr *message)
{
	struct vrnic_offer offer = describe(x, wr, message);
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_MESSAGE,
			.flags = VRNIC_NDESC_INLINE,
			.header_len = sizeof(offer),
			.length = wr->header_len,
			.arg = message ? VRNIC_DISPATCH_LONG : VRNIC_DISPATCH_RTS,
		},
		.parts = {
			{ .iov_base = &offer, .iov_len = sizeof(offer) },
			{ .iov_base = (void *)wr->header, .iov_len = wr->header_len },
		},
		.nr_parts = 2,
	};

	return vrnic_transfer_post(x, &req, x->done.flags);
}

/* Add to the counters what the target's descriptors or vrnic_transfer_end() will take off. */
static void expect(struct vrnic_transfer *x, int64_t bytes)
{
	if (x->done.local)
		vrnic_cell_add(x->done.local->cell, bytes);
	if (x->done.remote)
		vrnic_cell_add(x->done.remote->cell, bytes);
}

/* Nothing was posted. */
static void expect_no_more(struct vrnic_transfer *x)
{
	vrnic_counter_undo(x->done.local, x->unit);
	vrnic_counter_undo(x->done.remote, x->unit);
}

/* Make the origin RGET descriptors: the target writes the locations of what they send. */
static void write_table(const struct vrnic_transfer *x)
{
	struct vrnic_ndesc *row = x->piece.mem;
	uint32_t k;

	for (k = 0; k < x->piece.rows; k++)
		row[k] = vrnic_plan_row(x->id);
}

/* Choose the counter that the offer names: peers may name only those that the program opened. */
static void track(struct vrnic_transfer *x)
{
	if (x->done.remote && x->done.remote->open)
		x->tracked = &x->done.remote;
	else if (x->done.local && x->done.local->open)
		x->tracked = &x->done.local;
}

/* Raise the counters before the offer is posted: the target may accept it at once. */
static int offer(struct vrnic_transfer *x, const struct vrnic_rts_wr *wr,
		 const struct vrnic_send_wr *message)
{
	int ret;

	ret = vrnic_pool_alloc(x->ep, table_rows(x->length), true, &x->piece);
	if (ret)
		return ret;
	write_table(x);
	/* counters of a message fall by one, at its end */
	if (message)
		x->unit = 1;
	else
		track(x);
	expect(x, (int64_t)x->unit);
	ret = post_offer(x, wr, message);
	if (ret)
		expect_no_more(x);
	return ret;
}

static int rts_check(const struct vrnic_rts_wr *wr)
{
	if (vrnic_is_extended(wr->comp_mask, 0))
		return -E2BIG;
	if (!wr->mr || (!wr->header && wr->header_len) || wr->length > INT64_MAX ||
	    (uintptr_t)wr->local > UINTPTR_MAX - wr->length)
		return -EINVAL;
	return wr->header_len > HEADER_MAX ? -EMSGSIZE : 0;
}

static int offer_locked(struct vrnic_endpoint *ep, const struct vrnic_rts_wr *wr,
			const struct vrnic_send_wr *message, const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret;

	ret = vrnic_transfer_new(ep, wr->length, false, done, &x);
	if (ret)
		return ret;
	ret = offer(x, wr, message);
	if (ret)
		vrnic_transfer_drop(ep->context, x);
	return ret;
}

/* Offer what @wr says; if @message is not NULL, to the handler for its id. */
int vrnic_offer(struct vrnic_endpoint *ep, const struct vrnic_rts_wr *wr,
		const struct vrnic_send_wr *message, const struct vrnic_done *done)
{
	int ret;

	ret = vrnic_done_check(ep->context, done);
	if (!ret)
		ret = rts_check(wr);
	if (ret)
		return ret;
	vrnic_lock(ep->context);
	ret = offer_locked(ep, wr, message, done);
	vrnic_unlock(ep->context);
	return ret;
}

VRNIC_EXPORT
int vrnic_rts_send(struct vrnic_endpoint *ep, const struct vrnic_rts_wr *wr,
		   const struct vrnic_done *done)
{
	return ep && wr ? vrnic_offer(ep, wr, NULL, done) : -EINVAL;
}

VRNIC_EXPORT
int vrnic_rts_handler_set(struct vrnic_context *context,
			  vrnic_rts_handler handler, void *arg)
{
	if (!context)
		return -EINVAL;
	vrnic_lock(context);
	context->rts_handler = handler;
	context->rts_arg = arg;
	vrnic_unlock(context);
	return 0;
}

/* ---- the target ---- */

static struct vrnic_ndesc from_pool(const struct vrnic_transfer *x, uint8_t opcode,
				    const void *from, uint64_t length)
{
	return (struct vrnic_ndesc){
		.opcode = opcode,
		.length = length,
		.local_addr = (uintptr_t)from,
		.lkey = vrnic_pool_mr(&x->piece)->lkey,
	};
}

static int post_first_batch(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_request req = {
		.desc = from_pool(x, VRNIC_NOP_RGET, vrnic_plan_batch(x, plan, 0),
				  vrnic_plan_batch_bytes(plan, 0)),
	};

	return vrnic_transfer_post(x, &req, VRNIC_QUEUE);
}

static struct vrnic_ndesc put_table(const struct vrnic_transfer *x, const struct vrnic_plan *plan,
				    uint64_t length)
{
	struct vrnic_ndesc put = from_pool(x, VRNIC_NOP_PUT, vrnic_plan_table(x, plan), length);

	put.remote_addr = plan->rts->table;
	put.rkey = plan->rts->table_rkey;
	return put;
}

/* The origin's library does not make the rows of its table: put all of them. */
static int post_rows(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_request req = {
		.desc = put_table(x, plan, (plan->batches - 1) * sizeof(struct vrnic_ndesc)),
	};

	return vrnic_transfer_post(x, &req, VRNIC_QUEUE);
}

/* Put the locations of the batches into the rows that the origin has made (S4.2). */
static int post_locations(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_ndesc_typed more = { .mode = VRNIC_TYPED_SAME };
	struct vrnic_request req = {
		.parts = { { &more, sizeof(more) } },
		.nr_parts = 1,
	};
	int ret;

	ret = vrnic_plan_location(x->ep->context->client, plan, &x->location);
	if (ret)
		return ret;
	more.local_type = x->location->number;
	more.remote_type = x->location->number;
	req.desc = put_table(x, plan, x->location->info.bytes);
	req.desc.flags = VRNIC_NDESC_TYPED;
	req.types[0] = x->location;
	req.types[1] = x->location;
	return vrnic_transfer_post(x, &req, VRNIC_QUEUE);
}

/*
 * Fill the origin's table with one put, and send batch 0 (see the head of this file). If batch 0
 * cannot be posted, the put may be on its way. That is harmless: the put holds a reference to the
 * memory that it reads, and the engines use the table only because of batch 0.
 */
static int start(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_context *ctx = x->ep->context;
	int ret;

	/* a typed put takes two; a ring of two takes one descriptor after the other */
	ret = vrnic_post_room(ctx, ctx->inject.entries < 3 ? ctx->inject.entries : 3);
	if (ret && !(ret == -EAGAIN && x->done.flags & VRNIC_QUEUE))
		return ret;
	if (plan->batches > 1) {
		ret = plan->rts->comp_mask & VRNIC_RTS_ROWS ? post_locations(x, plan) :
							      post_rows(x, plan);
		if (ret)
			return ret;
	}
	return post_first_batch(x, plan);
}

/* Raise the counter before the descriptors are posted: the engines may lower it at once. */
static int begin(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_counter *local = x->done.local;
	int ret;

	/* peers may name this counter, because its value decides nothing */
	ret = vrnic_counter_create(x->ep->context->client, VRNIC_COUNTER_PEERS,
				   &x->status);
	if (ret)
		return ret;
	/* not writable: the peer must not change descriptors that run in this process's name */
	ret = vrnic_pool_alloc(x->ep, vrnic_plan_rows(plan), false, &x->piece);
	if (ret)
		return ret;
	vrnic_plan_write(x, plan);
	if (local)
		vrnic_cell_add(local->cell, (int64_t)x->length);
	ret = start(x, plan);
	if (ret)
		vrnic_counter_undo(local, x->length);
	return ret;
}

static int accept_locked(struct vrnic_endpoint *ep, const struct vrnic_plan *plan,
			 const struct vrnic_accept_wr *wr, const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret;

	ret = vrnic_transfer_new(ep, plan->rts->length, true, done, &x);
	if (ret)
		return ret;
	x->peer_id = plan->rts->id;
	vrnic_transfer_sends(x);
	x->message = plan->message;
	if (plan->pieces) {
		x->deliver = wr->deliver;
		x->deliver_arg = wr->deliver_arg;
	}
	ret = begin(x, plan);
	if (ret)
		vrnic_transfer_drop(ep->context, x);
	return ret;
}

/* Accept a long message into @mr, all of which is for it. The context is locked. */
int vrnic_accept_message(struct vrnic_endpoint *ep, const struct vrnic_rts *rts,
			 struct vrnic_long *message, const struct ibv_mr *mr)
{
	static const struct vrnic_done done = { .flags = VRNIC_QUEUE };
	struct vrnic_plan plan = {
		.rts = rts,
		.message = message,
		.local = (uintptr_t)mr->addr,
		.rkey = mr->rkey,
		.hosts = vrnic_transfer_hosts(ep),
	};
	int ret = vrnic_plan_cut(&plan, 0);

	return ret ? ret : accept_locked(ep, &plan, NULL, &done);
}

/*
 * Does the offer come from the endpoint's peer, and has it no member that only a later library
 * sets? Return: 0, -EINVAL or -E2BIG.
 */
static int rts_is_of(const struct vrnic_endpoint *ep, const struct vrnic_rts *rts)
{
	unsigned int i;

	if (vrnic_is_extended(rts->comp_mask, VRNIC_RTS_COUNTER | VRNIC_RTS_ROWS))
		return -E2BIG;
	if (rts->reserved0 || (rts->counter && !(rts->comp_mask & VRNIC_RTS_COUNTER)))
		return -EINVAL;
	for (i = 0; i < sizeof(rts->reserved) / sizeof(rts->reserved[0]); i++)
		if (rts->reserved[i])
			return -EINVAL;
	return vrnic_is_peer(ep, &rts->peer) ? 0 : -EINVAL;
}

static bool wants_pieces(const struct vrnic_accept_wr *wr)
{
	return wr->comp_mask & VRNIC_ACCEPT_DELIVER;
}

static bool place_fits(const struct vrnic_rts *rts, const struct vrnic_accept_wr *wr)
{
	if (wants_pieces(wr))
		return wr->deliver && !wr->mr && !wr->local;
	return wr->mr && (uintptr_t)wr->local <= UINT64_MAX - rts->length;
}

static int accept_check(const struct vrnic_endpoint *ep, const struct vrnic_rts *rts,
			const struct vrnic_accept_wr *wr, const struct vrnic_done *done)
{
	int ret = rts_is_of(ep, rts);

	if (!ret)
		ret = vrnic_done_check(ep->context, done);
	if (ret)
		return ret;
	if (vrnic_is_extended(wr->comp_mask, VRNIC_ACCEPT_DELIVER))
		return -E2BIG;
	if (wants_pieces(wr) && !(ep->context->client->features & VRNIC_FEATURE_PIECES))
		return -EOPNOTSUPP;
	if (rts->length > INT64_MAX || rts->remote > UINT64_MAX - rts->length ||
	    !place_fits(rts, wr))
		return -EINVAL;
	/* the target's process learns only that its own memory is filled: by a local counter */
	return done && (done->remote || done->target) ? -EINVAL : 0;
}

VRNIC_EXPORT
int vrnic_accept(struct vrnic_endpoint *ep, const struct vrnic_rts *rts,
		 const struct vrnic_accept_wr *wr, const struct vrnic_done *done)
{
	struct vrnic_plan plan = { .rts = rts };
	int ret;

	if (!ep || !rts || !wr)
		return -EINVAL;
	ret = accept_check(ep, rts, wr, done);
	if (ret)
		return ret;
	plan.pieces = wants_pieces(wr);
	plan.local = (uintptr_t)wr->local;
	plan.rkey = plan.pieces ? 0 : wr->mr->rkey;
	vrnic_lock(ep->context);
	plan.hosts = vrnic_transfer_hosts(ep);
	ret = vrnic_plan_cut(&plan, wr->portion);
	if (!ret)
		ret = accept_locked(ep, &plan, wr, done);
	vrnic_unlock(ep->context);
	return ret;
}

VRNIC_EXPORT
int vrnic_reject(struct vrnic_endpoint *ep, const struct vrnic_rts *rts)
{
	int ret;

	if (!ep || !rts)
		return -EINVAL;
	ret = rts_is_of(ep, rts);
	if (ret)
		return ret;
	vrnic_lock(ep->context);
	ret = vrnic_transfer_tell(ep, VRNIC_DISPATCH_REFUSED, rts->id,
				  IBV_WC_REM_OP_ERR, VRNIC_VERR_NONE);
	vrnic_unlock(ep->context);
	return ret;
}

/* ---- what arrives ---- */

/* The program has no handler for offers: tell the peer, if there is an endpoint to it. */
static void refuse(struct vrnic_context *ctx, const struct vrnic_rts *rts)
{
	struct vrnic_endpoint *ep;

	ctx->dropped++;
	vrnic_lock(ctx);
	ep = vrnic_endpoint_lookup(ctx, &rts->peer);
	if (ep)
		vrnic_transfer_tell(ep, VRNIC_DISPATCH_REFUSED, rts->id,
				    IBV_WC_REM_OP_ERR, VRNIC_VERR_NONE);
	vrnic_unlock(ctx);
}

/* Read an offer. The peer claims where the message is; the kernel's record says who the peer is. */
struct vrnic_rts vrnic_rts_of(const struct vrnic_record *rec)
{
	struct vrnic_offer offer;

	memcpy(&offer, rec + 1, sizeof(offer));
	return (struct vrnic_rts){
		.comp_mask = (offer.counter ? VRNIC_RTS_COUNTER : 0) |
			     (offer.flags & VRNIC_OFFER_ROWS ? VRNIC_RTS_ROWS : 0),
		.peer = vrnic_sender(rec),
		.length = offer.length,
		.remote = offer.remote,
		.rkey = offer.rkey,
		.id = offer.id,
		.table = offer.table,
		.table_rkey = offer.table_rkey,
		.table_rows = offer.table_rows,
		.counter = offer.counter,
	};
}

static void offered(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	const uint8_t *header = (const uint8_t *)(rec + 1) + rec->header_len;
	vrnic_rts_handler handler;
	struct vrnic_rts rts;
	void *arg;

	if (rec->header_len != sizeof(struct vrnic_offer)) {
		ctx->dropped++;
		return;
	}
	rts = vrnic_rts_of(rec);
	vrnic_lock(ctx);
	handler = ctx->rts_handler;
	arg = ctx->rts_arg;
	vrnic_unlock(ctx);
	if (!handler) {
		refuse(ctx, &rts);
		return;
	}
	ctx->made++;
	handler(ctx, &rts, header, rec->length, arg);
}

static void judged(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	struct vrnic_transfer *x;
	struct vrnic_verdict verdict;

	if (rec->header_len != sizeof(verdict)) {
		ctx->dropped++;
		return;
	}
	memcpy(&verdict, rec + 1, sizeof(verdict));
	if (rec->arg == VRNIC_DISPATCH_REFUSED)
		x = vrnic_transfer_take(ctx, verdict.id, false, rec);
	else
		x = vrnic_transfer_take_theirs(ctx, rec, verdict.id);
	if (!x)
		return;
	/* a verdict is always a failure, whatever status the peer sends */
	vrnic_transfer_end(ctx, x, verdict.status ? verdict.status : IBV_WC_GENERAL_ERR,
			   verdict.vendor_err);
}

/*
 * Some of a message has come. Pieces come in order; if one failed, those behind it are not
 * delivered. A peer that sends others, or more than the message has, breaks its own message: the
 * end finds less than it should.
 */
static void piece_came(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	const uint8_t *data = (const uint8_t *)(rec + 1) + rec->header_len;
	vrnic_deliver deliver = NULL;
	struct vrnic_transfer *x;
	uint64_t offset = 0;
	void *arg = NULL;

	vrnic_lock(ctx);
	x = vrnic_transfer_find(ctx, (uint32_t)rec->cookie, true, rec);
	if (x && x->deliver && !x->ep->dead && rec->length <= x->length - x->arrived &&
	    rec->cookie >> VRNIC_COOKIE_PIECE == x->pieces) {
		deliver = x->deliver;
		arg = x->deliver_arg;
		offset = x->arrived;
		x->arrived += rec->length;
		x->pieces++;
	}
	vrnic_unlock(ctx);
	if (!deliver) {
		ctx->dropped++;
		return;
	}
	ctx->made++;
	deliver(ctx, data, rec->length, offset, arg);
}

void vrnic_pace_message(struct vrnic_context *ctx,
			const struct vrnic_record *rec)
{
	switch (rec->arg) {
	case VRNIC_DISPATCH_RTS:
		offered(ctx, rec);
		break;
	case VRNIC_DISPATCH_REFUSED:
	case VRNIC_DISPATCH_BROKEN:
		judged(ctx, rec);
		break;
	case VRNIC_DISPATCH_PIECE:
		piece_came(ctx, rec);
		break;
	case VRNIC_DISPATCH_LONG:
		vrnic_long_offered(ctx, rec);
		break;
	default:
		ctx->dropped++;
		break;
	}
}

/* A NOTIFY came, which is the regular end of a transfer. */
void vrnic_pace_notify(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & VRNIC_COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (rec->arg != VRNIC_DISPATCH_TAKEN &&
	    rec->arg != VRNIC_DISPATCH_ARRIVED)
		return;
	x = vrnic_transfer_take(ctx, (uint32_t)rec->cookie, incoming, rec);
	if (!x)
		return;
	x->counted = rec->cookie & VRNIC_COOKIE_COUNTED;
	if (!rec->status && x->deliver && x->arrived != x->length)
		vrnic_transfer_end(ctx, x, IBV_WC_BAD_RESP_ERR, VRNIC_VERR_LENGTH);
	else
		vrnic_transfer_end(ctx, x, rec->status, rec->vendor_err);
}

/*
 * The peer is gone: end all transfers with it. A callback may start further ones, which fail by
 * themselves; so take no more than there were at first.
 */
static void peer_gone(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	struct vrnic_transfer *x;
	uint32_t left;

	vrnic_lock(ctx);
	left = ctx->transfers.nr;
	vrnic_unlock(ctx);
	while (left-- && (x = vrnic_transfer_take_any(ctx, rec)))
		vrnic_transfer_end(ctx, x, rec->status, rec->vendor_err);
}

/*
 * A descriptor that this process injected at the peer failed. If it was to move data, but not of
 * the last portion, the chain of remote gets goes on, and the NOTIFY at its end tells the failure.
 * Until then the transfer stays: the engines use its descriptors.
 */
void vrnic_pace_error(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & VRNIC_COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (!rec->opcode) {
		peer_gone(ctx, rec);
		return;
	}
	if ((rec->opcode == VRNIC_NOP_PUT || rec->opcode == VRNIC_NOP_MESSAGE) &&
	    !(rec->cookie & VRNIC_COOKIE_LAST))
		return;
	x = vrnic_transfer_take(ctx, (uint32_t)rec->cookie, incoming, rec);
	if (x)
		vrnic_transfer_fail(ctx, x, rec->status, rec->vendor_err);
}
