// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Self-paced transfers under way: how records find them by number, and how they end.
 */

#include <errno.h>
#include <stdlib.h>

#include "pace.h"

/* ---- transfers by number ---- */

#define ID_SLOT(id)	((id) & ((1U << VRNIC_TRANSFER_PLACE_BITS) - 1))

static int table_grow(struct vrnic_transfers *t)
{
	uint32_t nr = t->nr ? t->nr * 2 : 16;
	struct vrnic_transfer **slot;
	uint16_t *uses;

	if (nr > 1U << VRNIC_TRANSFER_PLACE_BITS)
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
	x->id = i | (uint32_t)t->uses[i] << VRNIC_TRANSFER_PLACE_BITS;
	return 0;
}

/* Find a transfer by its number, also one that is over. Return: NULL if there is none. */
static struct vrnic_transfer *table_look(const struct vrnic_transfers *t, uint32_t id)
{
	uint32_t i = ID_SLOT(id);

	return i < t->nr && t->slot[i] && t->slot[i]->id == id ? t->slot[i] :
								 NULL;
}

static struct vrnic_transfer *table_find(const struct vrnic_transfers *t,
					 uint32_t id)
{
	struct vrnic_transfer *x = table_look(t, id);

	return x && !x->over ? x : NULL;
}

/* Return: the transfer that the sender of @rec knows as @id, or NULL. */
static struct vrnic_transfer *table_find_peer(const struct vrnic_transfers *t,
					      const struct vrnic_record *rec,
					      uint32_t id)
{
	const struct vrnic_peer peer = vrnic_sender(rec);
	struct vrnic_transfer *x;
	uint32_t i;

	for (i = 0; i < t->nr; i++) {
		x = t->slot[i];
		if (x && !x->over && x->incoming && !x->alone && x->peer_id == id &&
		    vrnic_is_peer(x->ep, &peer))
			return x;
	}
	return NULL;
}

static void table_remove(struct vrnic_transfers *t,
			 const struct vrnic_transfer *x)
{
	t->slot[ID_SLOT(x->id)] = NULL;
}

/*
 * Make sure that no other thread finds the transfer, so that one thread alone ends it. This
 * thread works without the lock, while another may destroy the endpoint. So the endpoint
 * counts this thread in @ending, and stays until vrnic_transfer_end() is done with it. Caller
 * has locked the context. @x may be NULL.
 */
static struct vrnic_transfer *claim(struct vrnic_transfer *x)
{
	if (x) {
		x->over = true;
		x->ep->ending++;
	}
	return x;
}

/*
 * Unbind a counter, or NULL. If the user has destroyed it, it is not bound any more.
 *
 * Return: true if the peer is gone, so that the kernel has failed the counter for this transfer.
 */
static bool unbind(const struct vrnic_transfer *x, struct vrnic_counter *counter)
{
	return counter && vrnic_counter_unbind(counter, x->ep) == -EPIPE;
}

/*
 * Bind the counters of the transfer to its endpoint. The kernel fails bound counters when the peer
 * goes, and descriptors that are relayed for the peer may name them.
 */
static int bind(struct vrnic_transfer *x)
{
	struct vrnic_counter *local = x->done.local, *remote = x->done.remote;
	int ret = local ? vrnic_uv_counter_bind(local, x->ep) : 0;

	if (!ret && remote) {
		ret = vrnic_uv_counter_bind(remote, x->ep);
		if (ret)
			unbind(x, local);
	}
	x->bound = !ret;
	return ret;
}

static void unbind_both(struct vrnic_transfer *x)
{
	if (x->bound) {
		unbind(x, x->done.local);
		unbind(x, x->done.remote);
	}
	x->bound = false;
}

/* Return: peers on other hosts that will send once @ep's does, or 0 if that is on this host. */
uint32_t vrnic_transfer_hosts(const struct vrnic_endpoint *ep)
{
	return ep->host ? ep->context->hosts + !ep->incoming : 0;
}

/* The peer is going to send, portion by portion, until the transfer is over. */
void vrnic_transfer_sends(struct vrnic_transfer *x)
{
	x->sends = true;
	if (!x->ep->incoming++ && x->ep->host)
		x->ep->context->hosts++;
}

static void sends_no_more(struct vrnic_transfer *x)
{
	if (x->sends && !--x->ep->incoming && x->ep->host)
		x->ep->context->hosts--;
	x->sends = false;
}

/*
 * Make transfer *@new: put it into the table, take references on the counters of @done, and bind
 * them to the endpoint. Caller has locked the context. Return: 0 or a negative errno.
 */
int vrnic_transfer_new(struct vrnic_endpoint *ep, uint64_t length, bool incoming,
		       const struct vrnic_done *done, struct vrnic_transfer **new)
{
	struct vrnic_transfer *x = calloc(1, sizeof(*x));
	int ret;

	if (!x)
		return -ENOMEM;
	x->ep = ep;
	x->length = length;
	x->unit = length;
	x->incoming = incoming;
	x->refs = 1;
	if (done)
		x->done = (struct vrnic_done){
			.local = done->local,
			.remote = done->remote,
			.callback = done->callback,
			.arg = done->arg,
			.cookie = done->cookie,
			.flags = done->flags,
		};
	ret = bind(x);
	if (ret) {
		free(x);
		return ret;
	}
	ret = table_add(&ep->context->transfers, x);
	if (ret) {
		unbind_both(x);
		free(x);
		return ret;
	}
	vrnic_counter_get(x->done.local);
	vrnic_counter_get(x->done.remote);
	*new = x;
	return 0;
}

/* Drop a reference. The last one frees memory that the engine may read: vrnic_transfer.refs. */
static void transfer_put(struct vrnic_context *ctx, struct vrnic_transfer *x)
{
	if (--x->refs)
		return;
	vrnic_pool_free(x->ep, &x->piece);
	vrnic_type_put(x->location);
	table_remove(&ctx->transfers, x);
	free(x);
}

/* Drop the transfer. Memory that the engine may read stays. Caller has locked the context. */
void vrnic_transfer_drop(struct vrnic_context *ctx, struct vrnic_transfer *x)
{
	x->over = true;
	sends_no_more(x);
	if (x->status)
		vrnic_counter_destroy(x->status);
	unbind_both(x);
	vrnic_counter_put(x->done.local);
	vrnic_counter_put(x->done.remote);
	transfer_put(ctx, x);
}

/* Claim the transfer that the sender of @rec knows as @id. Return: the transfer, or NULL. */
struct vrnic_transfer *vrnic_transfer_take_theirs(struct vrnic_context *ctx,
						  const struct vrnic_record *rec,
						  uint32_t id)
{
	struct vrnic_transfer *x;

	vrnic_lock(ctx);
	x = claim(table_find_peer(&ctx->transfers, rec, id));
	vrnic_unlock(ctx);
	return x;
}

/* Claim any transfer with the sender of @rec. Return: the transfer, or NULL. */
struct vrnic_transfer *vrnic_transfer_take_any(struct vrnic_context *ctx,
					       const struct vrnic_record *rec)
{
	const struct vrnic_peer peer = vrnic_sender(rec);
	struct vrnic_transfers *t = &ctx->transfers;
	struct vrnic_transfer *x = NULL;
	uint32_t i;

	vrnic_lock(ctx);
	for (i = 0; i < t->nr && !x; i++)
		if (t->slot[i] && !t->slot[i]->over &&
		    vrnic_is_peer(t->slot[i]->ep, &peer))
			x = claim(t->slot[i]);
	vrnic_unlock(ctx);
	return x;
}

/* ---- how transfers end ---- */

/*
 * Tell one of the origin's counters of the end. The engine has taken the bytes off the counter that
 * the offer named, if the target says so, but it has not noted an error there.
 */
static void settle_origin(const struct vrnic_transfer *x, struct vrnic_counter *const *counter,
			  const struct vrnic_status *status)
{
	if (status->status || !x->counted || counter != x->tracked)
		vrnic_counter_end(*counter, x->unit, status);
}

/*
 * Do with the user's counters what the engine has not done. The engine takes arriving bytes off
 * the target's counter, and notes an error there if a put fails, but not if the chain of remote
 * gets fails. It takes nothing off for pieces. If the peer is gone, the kernel has failed bound
 * counters. So unbind first: after that the kernel has failed the counter already, or never will.
 */
static void settle(struct vrnic_transfer *x, const struct vrnic_status *status)
{
	struct vrnic_counter *local = x->done.local, *remote = x->done.remote;
	bool local_failed = unbind(x, local) && status->status;
	bool remote_failed = unbind(x, remote) && status->status;

	x->bound = false;
	if (!x->incoming) {
		if (!local_failed)
			settle_origin(x, &x->done.local, status);
		if (!remote_failed)
			settle_origin(x, &x->done.remote, status);
	} else if (x->deliver) {
		if (!local_failed)
			vrnic_counter_end(local, x->length, status);
	} else if (status->status && local && !local_failed && !local->dead &&
		   !vrnic_cell_errors(local->cell)) {
		vrnic_counter_fail(local, status);
	}
}

/*
 * End a transfer that the caller has claimed; no lock is held. The last step calls the user's
 * callback, unless the user has destroyed the endpoint meanwhile.
 */
void vrnic_transfer_end(struct vrnic_context *ctx, struct vrnic_transfer *x,
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
	struct vrnic_long *message = x->message;
	struct vrnic_endpoint *ep = x->ep;
	void *arg = x->done.arg;

	settle(x, &told);
	vrnic_lock(ctx);
	vrnic_transfer_drop(ctx, x);
	if (ep->dead) {
		callback = NULL;
		/* who has destroyed the endpoint frees its messages */
		message = NULL;
	}
	if (message)
		vrnic_long_take(message);
	ep->ending--;	/* the last access: the endpoint may be freed from here on */
	vrnic_unlock(ctx);
	if (message)
		vrnic_long_came(ctx, message, status);
	vrnic_tell(ctx, callback, arg, &told);
}

/* There is a record, so that a destroyed endpoint lasts until the message has been sent. */
static void tell_nobody(struct vrnic_context *context, const struct vrnic_status *status,
			void *arg)
{
	(void)context, (void)status, (void)arg;
}

/*
 * Verdicts for one peer that may wait for room. A peer causes them by offers, and may never take
 * them. One that takes them has no use for so many offers at a time.
 */
#define VERDICTS	16384

/*
 * Tell the peer that a transfer has failed. If there is no memory for the message, or too many
 * wait, the peer keeps its transfer until it destroys its endpoint, or this context is gone.
 */
int vrnic_transfer_tell(struct vrnic_endpoint *ep, uint32_t dispatch,
			uint32_t id, uint32_t status, uint32_t vendor_err)
{
	static const struct vrnic_done done = { .callback = tell_nobody, .flags = VRNIC_QUEUE };
	struct vrnic_verdict verdict = {
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
		.verdict = true,
	};
	int ret = 0;

	/* a program that only rejects, and never advances, would find no room: run the engine */
	if (ep->verdicts >= VERDICTS)
		ret = vrnic_post_room(ep->context, 1);
	if (ep->verdicts >= VERDICTS)
		return ret ? ret : -EAGAIN;
	return vrnic_post_locked(ep->context, ep, &req, &done, true);
}

/*
 * Find the transfer @id, if it has this direction and the sender of @rec is its peer. Caller has
 * locked the context. Return: the transfer, or NULL.
 */
struct vrnic_transfer *vrnic_transfer_find(struct vrnic_context *ctx, uint32_t id,
					   bool incoming,
					   const struct vrnic_record *rec)
{
	const struct vrnic_peer peer = vrnic_sender(rec);
	struct vrnic_transfer *x = table_find(&ctx->transfers, id);

	return x && x->incoming == incoming && vrnic_is_peer(x->ep, &peer) ? x : NULL;
}

/* As vrnic_transfer_find(), and claim the transfer. The context is not locked. */
struct vrnic_transfer *vrnic_transfer_take(struct vrnic_context *ctx, uint32_t id,
					   bool incoming,
					   const struct vrnic_record *rec)
{
	struct vrnic_transfer *x;

	vrnic_lock(ctx);
	x = claim(vrnic_transfer_find(ctx, id, incoming, rec));
	vrnic_unlock(ctx);
	return x;
}

/*
 * End a claimed transfer that failed on this side, and tell the peer, which may not know. Post
 * nothing to an endpoint that was destroyed meanwhile, because its queue was dropped already.
 */
void vrnic_transfer_fail(struct vrnic_context *ctx, struct vrnic_transfer *x,
			 uint32_t status, uint32_t vendor_err)
{
	uint32_t dispatch = x->incoming ? VRNIC_DISPATCH_REFUSED :
					  VRNIC_DISPATCH_BROKEN;

	vrnic_lock(ctx);
	if (!x->ep->dead && !x->alone)
		vrnic_transfer_tell(x->ep, dispatch,
				    x->incoming ? x->peer_id : x->id, status,
				    vendor_err);
	vrnic_unlock(ctx);
	vrnic_transfer_end(ctx, x, status, vendor_err);
}

/*
 * Callback of vrnic_transfer_post(): the record of a descriptor has come, whose transfer may be
 * over. The engine no longer reads the descriptor's memory. A failure ends the transfer.
 */
static void posted(struct vrnic_context *ctx, const struct vrnic_status *status,
		   void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg;
	struct vrnic_transfer *x, *failed = NULL;

	vrnic_lock(ctx);
	x = table_look(&ctx->transfers, id);
	if (x) {
		if (status->status && !x->over)
			failed = claim(x);
		transfer_put(ctx, x);
	}
	vrnic_unlock(ctx);
	if (!failed)
		return;
	if (failed->incoming)
		vrnic_transfer_fail(ctx, failed, status->status, status->vendor_err);
	else	/* the offer itself did not arrive */
		vrnic_transfer_end(ctx, failed, status->status, status->vendor_err);
}

/**
 * vrnic_transfer_post() - post a descriptor for a transfer
 * @x: transfer, which fails if the descriptor does; its context is locked
 * @req: the descriptor
 * @flags: VRNIC_QUEUE or 0
 *
 * @x->piece, which the descriptor may name, stays until its record has come. If the engine
 * could not be called, no record will come, but then the FIFO is gone.
 *
 * Return: 0 or a negative errno.
 */
int vrnic_transfer_post(struct vrnic_transfer *x, struct vrnic_request *req, uint32_t flags)
{
	const struct vrnic_done done = {
		.flags = flags,
		.callback = posted,
		.arg = (void *)(uintptr_t)x->id,
		.cookie = x->done.cookie,
	};
	int ret = vrnic_post_locked(x->ep->context, x->ep, req, &done, true);

	if (!ret)
		x->refs++;
	return ret;
}

/* ---- the end of endpoints and contexts ---- */

/*
 * The user destroys the endpoint: end its transfers without a callback. Fail their counters,
 * so that a thread that waits for one wakes up.
 */
void vrnic_transfers_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	struct vrnic_transfers *t = &ctx->transfers;
	struct vrnic_transfer *x;
	uint32_t i;

	for (i = 0; i < t->nr; i++) {
		x = t->slot[i];
		if (!x || x->over || x->ep != ep)
			continue;
		settle(x, &(struct vrnic_status){
			.status = IBV_WC_WR_FLUSH_ERR,
			.vendor_err = VRNIC_VERR_CANCELED,
			.cookie = x->done.cookie,
		});
		vrnic_transfer_drop(ctx, x);
	}
}

/* Free the endpoint's transfers. Its part in the kernel is gone: no record of it will come. */
void vrnic_transfers_bury(struct vrnic_context *ctx, const struct vrnic_endpoint *ep)
{
	struct vrnic_transfers *t = &ctx->transfers;
	struct vrnic_transfer *x;
	uint32_t i;

	for (i = 0; i < t->nr; i++) {
		x = t->slot[i];
		if (!x || x->ep != ep)
			continue;
		t->slot[i] = NULL;
		vrnic_type_put(x->location);
		free(x);
	}
}

/* Free the table. It is empty: transfers belong to endpoints, and all endpoints are gone. */
void vrnic_transfers_destroy(struct vrnic_context *ctx)
{
	free(ctx->transfers.slot);
	free(ctx->transfers.uses);
}
