// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Self-paced transfers (S4).
 *
 * The origin offers a message (vrnic_rts_send()), with a table for its "origin
 * RGET descriptors": one row for each portion after the first. The target
 * (vrnic_accept()) makes a batch of descriptors for each portion, to be run by
 * the origin's engine, and lets row k of the table fetch batch k + 1:
 *
 *	batch k		RGET	sends row k of the table to the target's engine
 *			PUT	portion k
 *	row k		RGET	sends batch k + 1 to the origin's engine
 *	last batch	PUT, NOTIFY at the origin, NOTIFY at the target
 *
 * It writes the table with one put and sends batch 0. The engines do the rest:
 * portion k + 1 is asked for while portion k moves.
 *
 * All that comes from the peer is a claim: numbers of transfers are looked up,
 * and must be those of transfers with that peer.
 */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

#define HEADER_MAX	1024		/* of the user's, in an offer */
#define TABLE_MIN	255U		/* rows offered, even if the message is small */
#define TABLE_MAX	16383U		/* rows: a mebibyte */
#define PORTION		(1ULL << 20)	/* unless told otherwise */
#define PORTION_MIN	(1ULL << 16)	/* of what is cut automatically */
#define PORTIONS_MAX	(1U << 20)

/* Cookies of what the engines run: number of the transfer, and: */
#define COOKIE_TARGET	(1ULL << 32)	/* the target's number, not the origin's */
#define COOKIE_LAST	(1ULL << 33)	/* nothing comes after it */

/**
 * struct vrnic_transfer - a transfer under way
 * @ep: the peer
 * @id: our number for it
 * @incoming: we are the target
 * @peer_id: incoming: the origin's number for it
 * @length: bytes
 * @done: whom to tell; its counters are held
 * @status: counter for what fails on the way; incoming ones have it
 * @piece: table, or batches
 */
struct vrnic_transfer {
	struct vrnic_endpoint *ep;
	uint32_t id;
	bool incoming;
	uint32_t peer_id;
	uint64_t length;
	struct vrnic_done done;
	struct vrnic_counter *status;
	struct vrnic_piece piece;
};

/**
 * struct verdict - what REFUSED and BROKEN messages hold
 * @id: the origin's number for the transfer
 * @status: enum ibv_wc_status
 * @vendor_err: enum vrnic_vendor_err
 * @reserved: zero
 */
struct verdict {
	uint32_t id;
	uint32_t status;
	uint32_t vendor_err;
	uint32_t reserved;
};

/* ---- transfers by number ---- */

#define ID_SLOT_BITS	20
#define ID_SLOT(id)	((id) & ((1U << ID_SLOT_BITS) - 1))

static int table_grow(struct vrnic_transfers *t)
{
	uint32_t nr = t->nr ? t->nr * 2 : 16;
	struct vrnic_transfer **slot;
	uint16_t *uses;

	if (nr > 1U << ID_SLOT_BITS)
		return -ENOMEM;
	slot = realloc(t->slot, nr * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	t->slot = slot;
	uses = realloc(t->uses, nr * sizeof(*uses));
	if (!uses)
		return -ENOMEM;
	t->uses = uses;
	memset(slot + t->nr, 0, (nr - t->nr) * sizeof(*slot));
	memset(uses + t->nr, 0, (nr - t->nr) * sizeof(*uses));
	t->nr = nr;
	return 0;
}

static int table_add(struct vrnic_transfers *t, struct vrnic_transfer *x)
{
	uint32_t i = 0;
	int ret;

	while (i < t->nr && t->slot[i])
		i++;
	if (i == t->nr) {
		ret = table_grow(t);
		if (ret)
			return ret;
	}
	t->slot[i] = x;
	t->uses[i]++;
	x->id = i | (uint32_t)t->uses[i] << ID_SLOT_BITS;
	return 0;
}

static struct vrnic_transfer *table_find(const struct vrnic_transfers *t,
					 uint32_t id)
{
	uint32_t i = ID_SLOT(id);

	return i < t->nr && t->slot[i] && t->slot[i]->id == id ? t->slot[i] :
								 NULL;
}

/* Return: the transfer that the origin knows as @id, or NULL. */
static struct vrnic_transfer *table_find_peer(const struct vrnic_transfers *t,
					      uint32_t source, uint32_t id)
{
	struct vrnic_transfer *x;
	uint32_t i;

	for (i = 0; i < t->nr; i++) {
		x = t->slot[i];
		if (x && x->incoming && x->peer_id == id &&
		    x->ep->peer.fifo == source)
			return x;
	}
	return NULL;
}

static void table_remove(struct vrnic_transfers *t,
			 const struct vrnic_transfer *x)
{
	t->slot[ID_SLOT(x->id)] = NULL;
}

static struct vrnic_transfer *transfer_new(struct vrnic_endpoint *ep,
					   uint64_t length, bool incoming,
					   const struct vrnic_done *done)
{
	struct vrnic_transfer *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->ep = ep;
	x->length = length;
	x->incoming = incoming;
	if (done)
		x->done = *done;
	if (table_add(&ep->context->transfers, x)) {
		free(x);
		return NULL;
	}
	vrnic_counter_get(x->done.local);
	vrnic_counter_get(x->done.remote);
	return x;
}

/* It is out of the table. Caller has locked the context. */
static void transfer_free(struct vrnic_transfer *x)
{
	vrnic_pool_free(x->ep, &x->piece);
	if (x->status)
		vrnic_counter_destroy(x->status);
	vrnic_counter_put(x->done.local);
	vrnic_counter_put(x->done.remote);
	free(x);
}

/* One that could not be started. Caller has locked the context. */
static void transfer_drop(struct vrnic_context *ctx, struct vrnic_transfer *x)
{
	table_remove(&ctx->transfers, x);
	transfer_free(x);
}

/* ---- how transfers end ---- */

/*
 * The engine takes what arrives off the target's counter, and has an error noted
 * there if a put fails; not if the chain of remote gets does.
 */
static void settle(struct vrnic_transfer *x, const struct vrnic_status *status)
{
	struct vrnic_counter *local = x->done.local;

	if (!x->incoming) {
		vrnic_counter_end_by_hand(local, x->length, status);
		vrnic_counter_end_by_hand(x->done.remote, x->length, status);
	} else if (status->status && local && !local->dead &&
		   !vrnic_cell_errors(local->cell)) {
		vrnic_counter_fail(local, status);
	}
}

/* It is out of the table; no lock is held. The last step is the user's. */
static void end(struct vrnic_context *ctx, struct vrnic_transfer *x,
		uint32_t status, uint32_t vendor_err)
{
	const struct vrnic_status told = {
		.status = status,
		.vendor_err = vendor_err,
		.opcode = x->incoming ? VRNIC_NOP_PUT : VRNIC_NOP_MESSAGE,
		.cookie = x->done.cookie,
		.value = status ? 0 : x->length,
	};
	vrnic_callback callback = x->done.callback;
	void *arg = x->done.arg;

	settle(x, &told);
	vrnic_lock(ctx);
	transfer_free(x);
	vrnic_unlock(ctx);
	vrnic_tell(ctx, callback, arg, &told);
}

/*
 * Tell the peer. Without the memory for it the peer is not told, and keeps its
 * transfer until it destroys the endpoint; so it does if we die.
 */
static int send_verdict(struct vrnic_endpoint *ep, uint32_t dispatch,
			uint32_t id, uint32_t status, uint32_t vendor_err)
{
	static const struct vrnic_done done = { .flags = VRNIC_QUEUE };
	struct verdict verdict = {
		.id = id,
		.status = status,
		.vendor_err = vendor_err,
	};
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_MESSAGE,
			.flags = VRNIC_NDESC_INLINE,
			.header_len = sizeof(verdict),
			.arg = dispatch,
		},
		.parts = { { .iov_base = &verdict, .iov_len = sizeof(verdict) } },
		.nr_parts = 1,
	};

	return vrnic_post_locked(ep->context, ep, &req, &done, true);
}

/* Take it out of the table, if it is a transfer of that kind with that peer. */
static struct vrnic_transfer *take(struct vrnic_context *ctx, uint32_t id,
				   bool incoming, uint32_t source)
{
	struct vrnic_transfer *x;

	vrnic_lock(ctx);
	x = table_find(&ctx->transfers, id);
	if (x && (x->incoming != incoming || x->ep->peer.fifo != source))
		x = NULL;
	if (x)
		table_remove(&ctx->transfers, x);
	vrnic_unlock(ctx);
	return x;
}

/* It failed here, which the peer may not know. */
static void fail(struct vrnic_context *ctx, struct vrnic_transfer *x,
		 uint32_t status, uint32_t vendor_err)
{
	vrnic_lock(ctx);
	if (x->incoming)
		send_verdict(x->ep, VRNIC_DISPATCH_REFUSED, x->peer_id, status,
			     vendor_err);
	else
		send_verdict(x->ep, VRNIC_DISPATCH_BROKEN, x->id, status,
			     vendor_err);
	vrnic_unlock(ctx);
	end(ctx, x, status, vendor_err);
}

/* A descriptor that we posted for a transfer: only its failure is of interest. */
static void posted(struct vrnic_context *ctx, const struct vrnic_status *status,
		   void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg;
	struct vrnic_transfer *x;

	if (!status->status)
		return;
	vrnic_lock(ctx);
	x = table_find(&ctx->transfers, id);
	if (x)
		table_remove(&ctx->transfers, x);
	vrnic_unlock(ctx);
	if (!x)
		return;
	if (x->incoming)
		fail(ctx, x, status->status, status->vendor_err);
	else	/* the offer itself did not arrive */
		end(ctx, x, status->status, status->vendor_err);
}

static struct vrnic_done posted_done(const struct vrnic_transfer *x)
{
	return (struct vrnic_done){
		.flags = VRNIC_QUEUE,
		.callback = posted,
		.arg = (void *)(uintptr_t)x->id,
		.cookie = x->done.cookie,
	};
}

/* ---- the origin ---- */

/* Portions of 64 KiB and less, if the table does not get too large by that. */
static uint32_t table_rows(uint64_t length)
{
	uint64_t rows = length / PORTION_MIN;

	if (rows < TABLE_MIN)
		rows = TABLE_MIN;
	if (rows >= length)
		rows = length ? length - 1 : 0;
	return rows < TABLE_MAX ? (uint32_t)rows : TABLE_MAX;
}

static struct vrnic_rts describe(const struct vrnic_transfer *x,
				 const void *local, const struct ibv_mr *mr)
{
	struct vrnic_rts rts = {
		.length = x->length,
		.remote = (uintptr_t)local,
		.rkey = mr->rkey,
		.id = x->id,
	};

	if (x->piece.chunk) {
		rts.table = (uintptr_t)x->piece.mem;
		rts.table_rkey = vrnic_pool_mr(&x->piece)->rkey;
		rts.table_rows = x->piece.rows;
	}
	return rts;
}

static int post_offer(struct vrnic_transfer *x, const struct vrnic_rts *rts,
		      const void *header, size_t header_len)
{
	struct vrnic_done done = posted_done(x);
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_MESSAGE,
			.flags = VRNIC_NDESC_INLINE,
			.header_len = sizeof(*rts),
			.length = header_len,
			.arg = VRNIC_DISPATCH_RTS,
		},
		.parts = {
			{ .iov_base = (void *)rts, .iov_len = sizeof(*rts) },
			{ .iov_base = (void *)header, .iov_len = header_len },
		},
		.nr_parts = 2,
	};

	done.flags = x->done.flags;
	return vrnic_post_locked(x->ep->context, x->ep, &req, &done, true);
}

static int offer(struct vrnic_transfer *x, const void *local,
		 const struct ibv_mr *mr, const void *header, size_t header_len)
{
	struct vrnic_rts rts;
	int ret;

	ret = vrnic_pool_alloc(x->ep, table_rows(x->length), &x->piece);
	if (ret)
		return ret;
	rts = describe(x, local, mr);
	ret = post_offer(x, &rts, header, header_len);
	if (ret)
		return ret;
	vrnic_counter_take_by_hand(x->done.local, x->length);
	vrnic_counter_take_by_hand(x->done.remote, x->length);
	return 0;
}

/* Counters of this client, and nothing that cannot be had. */
static bool done_fits(const struct vrnic_context *ctx,
		      const struct vrnic_done *done)
{
	return !done ||
	       ((!done->local || done->local->client == ctx->client) &&
		(!done->remote || done->remote->client == ctx->client) &&
		!(done->flags & ~(uint32_t)VRNIC_QUEUE));
}

VRNIC_EXPORT
int vrnic_rts_send(struct vrnic_endpoint *endpoint, const void *local,
		   const struct ibv_mr *mr, size_t length, const void *header,
		   size_t header_len, const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret = -ENOMEM;

	if (!endpoint || !mr || (!header && header_len) || length > INT64_MAX ||
	    (uintptr_t)local > UINTPTR_MAX - length ||
	    !done_fits(endpoint->context, done))
		return -EINVAL;
	if (header_len > HEADER_MAX)
		return -EMSGSIZE;
	vrnic_lock(endpoint->context);
	x = transfer_new(endpoint, length, false, done);
	if (x) {
		ret = offer(x, local, mr, header, header_len);
		if (ret)
			transfer_drop(endpoint->context, x);
	}
	vrnic_unlock(endpoint->context);
	return ret;
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

/**
 * struct plan - an accepted transfer, cut
 * @rts: the offer
 * @local: where to
 * @rkey: key of that
 * @portion: bytes of each portion but the last
 * @nr: portions
 */
struct plan {
	const struct vrnic_rts *rts;
	uint64_t local;
	uint32_t rkey;
	uint64_t portion;
	uint32_t nr;
};

static uint64_t ceil_div(uint64_t n, uint64_t by)
{
	return n / by + !!(n % by);
}

/* As large as they should be, unless the origin's table is too short for that. */
static uint64_t portion_of(const struct vrnic_rts *rts)
{
	uint64_t room = (uint64_t)rts->table_rows + 1;

	if (ceil_div(rts->length, PORTION) <= room)
		return PORTION;
	return ceil_div(rts->length, room);
}

static int cut(struct plan *plan, const struct vrnic_pace *pace)
{
	const struct vrnic_rts *rts = plan->rts;
	uint64_t nr;

	plan->portion = pace && pace->portion ? pace->portion : portion_of(rts);
	nr = rts->length ? ceil_div(rts->length, plan->portion) : 1;
	if (nr > (uint64_t)rts->table_rows + 1 || nr > PORTIONS_MAX)
		return -EINVAL;
	plan->nr = (uint32_t)nr;
	return 0;
}

/* Batches of two descriptors, then the last one of up to three. */
static struct vrnic_ndesc *batch(const struct vrnic_transfer *x, uint32_t k)
{
	return (struct vrnic_ndesc *)x->piece.mem + (size_t)k * 2;
}

static uint32_t last_descs(const struct plan *plan)
{
	return plan->rts->length ? 3 : 2;
}

static uint64_t batch_bytes(const struct plan *plan, uint32_t k)
{
	return (k + 1 < plan->nr ? 2 : last_descs(plan)) *
	       sizeof(struct vrnic_ndesc);
}

/* What is to be put into the origin's table lies behind the batches. */
static struct vrnic_ndesc *image(const struct vrnic_transfer *x,
				 const struct plan *plan)
{
	return batch(x, plan->nr - 1) + last_descs(plan);
}

static uint32_t rows_needed(const struct plan *plan)
{
	return (plan->nr - 1) * 3 + last_descs(plan);
}

/* Runs at the origin: has the target's engine fetch the next batch. */
static struct vrnic_ndesc ask_next(const struct vrnic_transfer *x,
				   const struct plan *plan, uint32_t k)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET,
		.num_slots = 1,
		.cookie = x->id | COOKIE_TARGET,
		.length = sizeof(struct vrnic_ndesc),
		.local_addr = plan->rts->table +
			      (uint64_t)k * sizeof(struct vrnic_ndesc),
		.lkey = plan->rts->table_rkey,
	};
}

/* Runs at the target, sent by the origin: the next batch goes over. */
static struct vrnic_ndesc origin_row(const struct vrnic_transfer *x,
				     const struct plan *plan, uint32_t k)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET,
		.num_slots = 1,
		.cookie = plan->rts->id,
		.length = batch_bytes(plan, k + 1),
		.local_addr = (uintptr_t)batch(x, k + 1),
		.lkey = vrnic_pool_mr(&x->piece)->rkey,
	};
}

static struct vrnic_ndesc put_portion(const struct vrnic_transfer *x,
				      const struct plan *plan, uint32_t k)
{
	uint64_t at = k * plan->portion, left = plan->rts->length - at;

	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT,
		.num_slots = 1,
		.cookie = x->id | COOKIE_TARGET |
			  (k + 1 == plan->nr ? COOKIE_LAST : 0),
		.length = left < plan->portion ? left : plan->portion,
		.local_addr = plan->rts->remote + at,
		.lkey = plan->rts->rkey,
		.remote_addr = plan->local + at,
		.rkey = plan->rkey,
		.remote_counter = x->done.local ? x->done.local->number : 0,
		.target_counter = x->status->number,
	};
}

static struct vrnic_ndesc notify(const struct vrnic_transfer *x,
				 const struct plan *plan, bool back)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY,
		.flags = back ? VRNIC_NDESC_BACK : 0,
		.num_slots = 1,
		.cookie = back ? x->id | COOKIE_TARGET : plan->rts->id,
		.target_counter = x->status->number,
		.arg = back ? VRNIC_DISPATCH_ARRIVED : VRNIC_DISPATCH_TAKEN,
	};
}

static void write_batch(const struct vrnic_transfer *x, const struct plan *plan,
			uint32_t k)
{
	struct vrnic_ndesc *d = batch(x, k);
	bool last = k + 1 == plan->nr;

	if (!last)
		*d++ = ask_next(x, plan, k);
	if (plan->rts->length)
		*d++ = put_portion(x, plan, k);
	if (last) {
		*d++ = notify(x, plan, false);
		*d++ = notify(x, plan, true);
	}
}

static void write_all(const struct vrnic_transfer *x, const struct plan *plan)
{
	uint32_t k;

	for (k = 0; k < plan->nr; k++)
		write_batch(x, plan, k);
	for (k = 0; k + 1 < plan->nr; k++)
		image(x, plan)[k] = origin_row(x, plan, k);
}

static int post_from_pool(struct vrnic_transfer *x, uint8_t opcode,
			  const void *from, uint64_t length, uint64_t remote,
			  uint32_t rkey)
{
	struct vrnic_done done = posted_done(x);
	struct vrnic_request req = {
		.desc = {
			.opcode = opcode,
			.length = length,
			.local_addr = (uintptr_t)from,
			.lkey = vrnic_pool_mr(&x->piece)->lkey,
			.remote_addr = remote,
			.rkey = rkey,
		},
	};

	return vrnic_post_locked(x->ep->context, x->ep, &req, &done, true);
}

/* The table with one put, and the first batch; both or, with luck, neither. */
static int start(struct vrnic_transfer *x, const struct plan *plan)
{
	const struct vrnic_rts *rts = plan->rts;
	int ret;

	ret = vrnic_post_room(x->ep->context, 2);
	if (ret && !(ret == -EAGAIN && x->done.flags & VRNIC_QUEUE))
		return ret;
	if (plan->nr > 1) {
		ret = post_from_pool(x, VRNIC_NOP_PUT, image(x, plan),
				     (plan->nr - 1) * sizeof(struct vrnic_ndesc),
				     rts->table, rts->table_rkey);
		if (ret)
			return ret;
	}
	return post_from_pool(x, VRNIC_NOP_RGET, batch(x, 0),
			      batch_bytes(plan, 0), 0, 0);
}

/* Counters first: the engines may be quick. */
static int begin(struct vrnic_transfer *x, const struct plan *plan)
{
	struct vrnic_counter *local = x->done.local;
	int ret;

	ret = vrnic_counter_create(x->ep->context->client, 0, &x->status);
	if (ret)
		return ret;
	ret = vrnic_pool_alloc(x->ep, rows_needed(plan), &x->piece);
	if (ret)
		return ret;
	write_all(x, plan);
	if (local)
		vrnic_cell_add(local->cell, (int64_t)x->length);
	ret = start(x, plan);
	if (ret && local)
		vrnic_cell_add(local->cell, -(int64_t)x->length);
	return ret;
}

static int accept_locked(struct vrnic_endpoint *ep, const struct plan *plan,
			 const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret;

	x = transfer_new(ep, plan->rts->length, true, done);
	if (!x)
		return -ENOMEM;
	x->peer_id = plan->rts->id;
	ret = begin(x, plan);
	if (ret)
		transfer_drop(ep->context, x);
	return ret;
}

static bool accept_fits(const struct vrnic_endpoint *ep,
			const struct vrnic_rts *rts, uint64_t local,
			const struct vrnic_done *done)
{
	if (ep->peer.fifo != rts->source || rts->length > INT64_MAX ||
	    rts->remote > UINT64_MAX - rts->length ||
	    local > UINT64_MAX - rts->length)
		return false;
	/* of the target's there is only one end to be told of */
	return done_fits(ep->context, done) &&
	       !(done && (done->remote || done->target));
}

VRNIC_EXPORT
int vrnic_accept(struct vrnic_endpoint *endpoint, const struct vrnic_rts *rts,
		 void *local, const struct ibv_mr *mr,
		 const struct vrnic_pace *pace, const struct vrnic_done *done)
{
	struct plan plan = { .rts = rts, .local = (uintptr_t)local };
	int ret;

	if (!endpoint || !rts || !mr ||
	    !accept_fits(endpoint, rts, plan.local, done))
		return -EINVAL;
	plan.rkey = mr->rkey;
	ret = cut(&plan, pace);
	if (ret)
		return ret;
	vrnic_lock(endpoint->context);
	ret = accept_locked(endpoint, &plan, done);
	vrnic_unlock(endpoint->context);
	return ret;
}

VRNIC_EXPORT
int vrnic_reject(struct vrnic_endpoint *endpoint, const struct vrnic_rts *rts)
{
	int ret;

	if (!endpoint || !rts || endpoint->peer.fifo != rts->source)
		return -EINVAL;
	vrnic_lock(endpoint->context);
	ret = send_verdict(endpoint, VRNIC_DISPATCH_REFUSED, rts->id,
			   IBV_WC_REM_OP_ERR, VRNIC_VERR_NONE);
	vrnic_unlock(endpoint->context);
	return ret;
}

/* ---- what arrives ---- */

/* Nobody is here to take offers: say so, if we know the way. */
static void refuse(struct vrnic_context *ctx, const struct vrnic_rts *rts)
{
	struct vrnic_endpoint *ep;
	uint32_t i;

	ctx->dropped++;
	vrnic_lock(ctx);
	for (i = 0; i < ctx->nr_endpoints; i++) {
		ep = ctx->endpoints[i];
		if (!ep || ep->dead || ep->peer.fifo != rts->source)
			continue;
		send_verdict(ep, VRNIC_DISPATCH_REFUSED, rts->id,
			     IBV_WC_REM_OP_ERR, VRNIC_VERR_NONE);
		break;
	}
	vrnic_unlock(ctx);
}

static void offered(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	const uint8_t *header = (const uint8_t *)(rec + 1) + rec->header_len;
	vrnic_rts_handler handler;
	struct vrnic_rts rts;
	void *arg;

	if (rec->header_len != sizeof(rts)) {
		ctx->dropped++;
		return;
	}
	memcpy(&rts, rec + 1, sizeof(rts));
	/* what the peer says of itself does not count */
	rts.source = rec->source;
	rts.task = rec->task;
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

static struct vrnic_transfer *take_broken(struct vrnic_context *ctx,
					  uint32_t source, uint32_t id)
{
	struct vrnic_transfer *x;

	vrnic_lock(ctx);
	x = table_find_peer(&ctx->transfers, source, id);
	if (x)
		table_remove(&ctx->transfers, x);
	vrnic_unlock(ctx);
	return x;
}

static void judged(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	struct vrnic_transfer *x;
	struct verdict verdict;

	if (rec->header_len != sizeof(verdict)) {
		ctx->dropped++;
		return;
	}
	memcpy(&verdict, rec + 1, sizeof(verdict));
	if (rec->arg == VRNIC_DISPATCH_REFUSED)
		x = take(ctx, verdict.id, false, rec->source);
	else
		x = take_broken(ctx, rec->source, verdict.id);
	if (!x)
		return;
	/* a verdict is never good news, whatever the peer may say */
	end(ctx, x, verdict.status ? verdict.status : IBV_WC_GENERAL_ERR,
	    verdict.vendor_err);
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
	default:
		ctx->dropped++;
		break;
	}
}

/* The end of a transfer, as it should be. */
void vrnic_pace_notify(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (rec->arg != VRNIC_DISPATCH_TAKEN &&
	    rec->arg != VRNIC_DISPATCH_ARRIVED)
		return;
	x = take(ctx, (uint32_t)rec->cookie, incoming, rec->source);
	if (x)
		end(ctx, x, rec->status, rec->vendor_err);
}

/*
 * What we injected at the peer failed. After a put that was not the last one the
 * chain goes on, and its end says that it failed.
 */
void vrnic_pace_error(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (rec->opcode == VRNIC_NOP_PUT && !(rec->cookie & COOKIE_LAST))
		return;
	x = take(ctx, (uint32_t)rec->cookie, incoming, rec->source);
	if (x)
		fail(ctx, x, rec->status, rec->vendor_err);
}

/* ---- the end of endpoints and contexts ---- */

/*
 * The user destroys the endpoint: transfers are forgotten, nobody is called.
 * Who waits for a counter is not left waiting.
 */
void vrnic_pace_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	struct vrnic_transfers *t = &ctx->transfers;
	struct vrnic_transfer *x;
	uint32_t i;

	for (i = 0; i < t->nr; i++) {
		x = t->slot[i];
		if (!x || x->ep != ep)
			continue;
		settle(x, &(struct vrnic_status){
			.status = IBV_WC_WR_FLUSH_ERR,
			.vendor_err = VRNIC_VERR_CANCELED,
			.cookie = x->done.cookie,
		});
		transfer_drop(ctx, x);
	}
}

/* Transfers belong to endpoints, and those are gone. */
void vrnic_pace_destroy(struct vrnic_context *ctx)
{
	free(ctx->transfers.slot);
	free(ctx->transfers.uses);
}
