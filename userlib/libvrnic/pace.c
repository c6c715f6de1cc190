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
 * Everything that comes from the peer is a claim: numbers of transfers are looked up,
 * and must be those of transfers with this peer.
 */

#include <errno.h>

#include "pace.h"

#define HEADER_MAX	1024		/* of the user's, in an offer */
#define TABLE_MIN	255U		/* rows offered, even if the message is small */
#define TABLE_MAX	16383U		/* rows: a mebibyte */
#define PORTION_MIN	(1ULL << 16)	/* of what is cut automatically */

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

	return vrnic_transfer_post(x, &req, x->done.flags);
}

/* The end of the transfer takes it off. */
static void expect(struct vrnic_counter *counter, uint64_t bytes)
{
	if (counter)
		vrnic_cell_add(counter->cell, (int64_t)bytes);
}

static int offer(struct vrnic_transfer *x, const void *local,
		 const struct ibv_mr *mr, const void *header, size_t header_len)
{
	struct vrnic_rts rts;
	int ret;

	ret = vrnic_pool_alloc(x->ep, table_rows(x->length), true, &x->piece);
	if (ret)
		return ret;
	rts = describe(x, local, mr);
	ret = post_offer(x, &rts, header, header_len);
	if (ret)
		return ret;
	expect(x->done.local, x->length);
	expect(x->done.remote, x->length);
	return 0;
}

/* Only counters of this client, and no counter that this operation lacks. */
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
	x = vrnic_transfer_new(endpoint, length, false, done);
	if (x) {
		ret = offer(x, local, mr, header, header_len);
		if (ret)
			vrnic_transfer_drop(endpoint->context, x);
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

static int post_from_pool(struct vrnic_transfer *x, uint8_t opcode,
			  const void *from, uint64_t length, uint64_t remote,
			  uint32_t rkey)
{
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

	return vrnic_transfer_post(x, &req, VRNIC_QUEUE);
}

/*
 * Post the table with one put, and the first batch. If the batch cannot be posted, the put
 * is on its way. It does no harm: without a batch the peer never looks at its table.
 */
static int start(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	const struct vrnic_rts *rts = plan->rts;
	int ret;

	ret = vrnic_post_room(x->ep->context, 2);
	if (ret && !(ret == -EAGAIN && x->done.flags & VRNIC_QUEUE))
		return ret;
	if (plan->nr > 1) {
		ret = post_from_pool(x, VRNIC_NOP_PUT, vrnic_plan_table(x, plan),
				     (plan->nr - 1) * sizeof(struct vrnic_ndesc),
				     rts->table, rts->table_rkey);
		if (ret)
			return ret;
	}
	return post_from_pool(x, VRNIC_NOP_RGET, vrnic_plan_batch(x, 0),
			      vrnic_plan_batch_bytes(plan, 0), 0, 0);
}

/* Counters first: the engines may be quick. */
static int begin(struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	struct vrnic_counter *local = x->done.local;
	int ret;

	/* its value decides nothing, so peers may name it */
	ret = vrnic_counter_create(x->ep->context->client, VRNIC_COUNTER_PEERS,
				   &x->status);
	if (ret)
		return ret;
	/* the peer must not change what the engines do in our name */
	ret = vrnic_pool_alloc(x->ep, vrnic_plan_rows(plan), false, &x->piece);
	if (ret)
		return ret;
	vrnic_plan_write(x, plan);
	if (local)
		vrnic_cell_add(local->cell, (int64_t)x->length);
	ret = start(x, plan);
	if (ret && local)
		vrnic_cell_add(local->cell, -(int64_t)x->length);
	return ret;
}

static int accept_locked(struct vrnic_endpoint *ep, const struct vrnic_plan *plan,
			 const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret;

	x = vrnic_transfer_new(ep, plan->rts->length, true, done);
	if (!x)
		return -ENOMEM;
	x->peer_id = plan->rts->id;
	ret = begin(x, plan);
	if (ret)
		vrnic_transfer_drop(ep->context, x);
	return ret;
}

static bool accept_fits(const struct vrnic_endpoint *ep,
			const struct vrnic_rts *rts, uint64_t local,
			const struct vrnic_done *done)
{
	if (!vrnic_is_peer(ep, rts->source, rts->host) || rts->length > INT64_MAX ||
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
	struct vrnic_plan plan = { .rts = rts, .local = (uintptr_t)local };
	int ret;

	if (!endpoint || !rts || !mr ||
	    !accept_fits(endpoint, rts, plan.local, done))
		return -EINVAL;
	plan.rkey = mr->rkey;
	ret = vrnic_plan_cut(&plan, pace);
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

	if (!endpoint || !rts || !vrnic_is_peer(endpoint, rts->source, rts->host))
		return -EINVAL;
	vrnic_lock(endpoint->context);
	ret = vrnic_transfer_tell(endpoint, VRNIC_DISPATCH_REFUSED, rts->id,
				  IBV_WC_REM_OP_ERR, VRNIC_VERR_NONE);
	vrnic_unlock(endpoint->context);
	return ret;
}

/* ---- what arrives ---- */

/* No handler for offers: tell the peer, if there is an endpoint to it. */
static void refuse(struct vrnic_context *ctx, const struct vrnic_rts *rts)
{
	struct vrnic_endpoint *ep;
	uint32_t i;

	ctx->dropped++;
	vrnic_lock(ctx);
	for (i = 0; i < ctx->nr_endpoints; i++) {
		ep = ctx->endpoints[i];
		if (!ep || ep->dead || !vrnic_is_peer(ep, rts->source, rts->host))
			continue;
		vrnic_transfer_tell(ep, VRNIC_DISPATCH_REFUSED, rts->id,
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
	/* the peer's own claims about itself do not count */
	rts.source = rec->source;
	rts.task = rec->task;
	rts.host = rec->host;
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

/* The regular end of a transfer. */
void vrnic_pace_notify(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & VRNIC_COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (rec->arg != VRNIC_DISPATCH_TAKEN &&
	    rec->arg != VRNIC_DISPATCH_ARRIVED)
		return;
	x = vrnic_transfer_take(ctx, (uint32_t)rec->cookie, incoming, rec);
	if (x)
		vrnic_transfer_end(ctx, x, rec->status, rec->vendor_err);
}

/*
 * Nothing of the peer comes after this. A callback may start another transfer, which
 * fails by itself: so this loop ends.
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
 * A descriptor that we injected at the peer failed. If it was a put that was not the last
 * one, the chain goes on, and its end tells the failure.
 */
void vrnic_pace_error(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	bool incoming = rec->cookie & VRNIC_COOKIE_TARGET;
	struct vrnic_transfer *x;

	if (!rec->opcode) {
		peer_gone(ctx, rec);
		return;
	}
	if (rec->opcode == VRNIC_NOP_PUT && !(rec->cookie & VRNIC_COOKIE_LAST))
		return;
	x = vrnic_transfer_take(ctx, (uint32_t)rec->cookie, incoming, rec);
	if (x)
		vrnic_transfer_fail(ctx, x, rec->status, rec->vendor_err);
}
