// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages for handlers that are longer than what a reception FIFO takes (vrnic_send() with a
 * region): a rendezvous. The sender offers the message, as vrnic_rts_send() does. The receiver's
 * library allocates and registers memory for it, accepts it, and calls the handler when all of it
 * is there.
 *
 * Peers decide how much they offer. So VRNIC_SEND_MAX bytes of a peer are on their way at a time.
 * Further messages wait, in the order of their offers, and there is a limit to these, too. What
 * strangers offer, to whom there is no endpoint, is dropped.
 *
 * A message belongs to its endpoint, which the context's lock protects, until one thread takes it:
 * the one that ends its transfer, or the one that destroys the endpoint. Only the thread that
 * advances the context lets messages come.
 */

#include <errno.h>
#include <stdlib.h>

#include "pace.h"

/**
 * struct vrnic_long - a long message that was offered to this context
 * @next: in struct vrnic_longs
 * @at: what points to it, while it is on its way
 * @rts: the offer
 * @ep: endpoint to its sender, while it is on its way
 * @id: of its handler
 * @data: memory for it
 * @mr: region of @data
 * @header_len: bytes of @header
 * @header: from the offer
 */
struct vrnic_long {
	struct vrnic_long *next;
	struct vrnic_long **at;
	struct vrnic_rts rts;
	struct vrnic_endpoint *ep;
	uint32_t id;
	void *data;
	struct ibv_mr *mr;
	size_t header_len;
	uint8_t header[];
};

/* ---- the sender ---- */

int vrnic_long_send(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		    const struct vrnic_done *done)
{
	const struct vrnic_rts_wr offer = {
		.local = wr->data,
		.mr = wr->mr,
		.length = wr->length,
		.header = wr->header,
		.header_len = wr->header_len,
	};

	if (wr->length > VRNIC_SEND_MAX)
		return -EMSGSIZE;
	/* no fence says that the data were taken; the peer's library counts nothing */
	if (!wr->data || !done || !(done->callback || done->local || done->remote) || done->target)
		return -EINVAL;
	return vrnic_offer(ep, &offer, wr, done);
}

/* ---- the messages of an endpoint; its context is locked ---- */

void vrnic_longs_init(struct vrnic_endpoint *ep)
{
	ep->longs.end = &ep->longs.waiting;
}

static void coming_add(struct vrnic_endpoint *ep, struct vrnic_long *l)
{
	l->ep = ep;
	l->at = &ep->longs.coming;
	l->next = ep->longs.coming;
	if (l->next)
		l->next->at = &l->next;
	ep->longs.coming = l;
	ep->longs.bytes += l->rts.length;
}

/* Take a message that is on its way, and whose endpoint the user has not destroyed. */
void vrnic_long_take(struct vrnic_long *l)
{
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
	l->next = NULL;
	l->ep->longs.bytes -= l->rts.length;
}

/* Return: false if there are too many. */
static bool waiting_add(struct vrnic_endpoint *ep, struct vrnic_long *l)
{
	if (ep->longs.nr_waiting == VRNIC_LONGS_WAITING)
		return false;
	*ep->longs.end = l;
	ep->longs.end = &l->next;
	ep->longs.nr_waiting++;
	return true;
}

/* Before all others, again. */
static void waiting_put_back(struct vrnic_endpoint *ep, struct vrnic_long *l)
{
	l->next = ep->longs.waiting;
	ep->longs.waiting = l;
	if (!l->next)
		ep->longs.end = &l->next;
	ep->longs.nr_waiting++;
}

/* Return: the first that waits, if there is room for it, or NULL. */
static struct vrnic_long *waiting_take(struct vrnic_endpoint *ep)
{
	struct vrnic_long *l = ep->longs.waiting;

	if (!l || l->rts.length > VRNIC_SEND_MAX - ep->longs.bytes)
		return NULL;
	ep->longs.waiting = l->next;
	if (!l->next)
		ep->longs.end = &ep->longs.waiting;
	l->next = NULL;
	ep->longs.nr_waiting--;
	return l;
}

static void tell(struct vrnic_endpoint *ep, const struct vrnic_rts *rts, uint32_t status)
{
	vrnic_transfer_tell(ep, VRNIC_DISPATCH_REFUSED, rts->id, status, VRNIC_VERR_NONE);
}

/*
 * Tell the peer that none of its messages is taken any more: the user destroys the endpoint.
 *
 * Return: all of them. The peer's engine may still write to their memory.
 */
struct vrnic_long *vrnic_longs_refuse(struct vrnic_endpoint *ep)
{
	struct vrnic_long *all = ep->longs.coming, **end = &all, *l;

	while (*end)
		end = &(*end)->next;
	*end = ep->longs.waiting;
	for (l = all; l; l = l->next)
		tell(ep, &l->rts, IBV_WC_REM_OP_ERR);
	ep->longs = (struct vrnic_longs){};
	vrnic_longs_init(ep);
	return all;
}

/*
 * Deregister the memory of a message: after this the peer does not change it. If that fails, the
 * engine may write to it for ever, so nobody frees it. The context is not locked.
 */
static bool close_region(struct vrnic_long *l)
{
	bool closed = !l->mr || !ibv_dereg_mr(l->mr);

	if (!closed)
		l->data = NULL;
	l->mr = NULL;
	return closed;
}

/* Free messages, after the last access of any engine. The context is not locked. */
void vrnic_longs_free(struct vrnic_long *l)
{
	struct vrnic_long *next;

	for (; l; l = next) {
		next = l->next;
		close_region(l);
		free(l->data);
		free(l);
	}
}

/* ---- the receiver ---- */

/* Tell the sender that its message is not taken. */
static void refuse(struct vrnic_context *ctx, const struct vrnic_rts *rts, uint32_t status)
{
	struct vrnic_endpoint *ep;

	ctx->dropped++;
	vrnic_lock(ctx);
	ep = vrnic_endpoint_lookup(ctx, &rts->peer);
	if (ep)
		tell(ep, rts, status);
	vrnic_unlock(ctx);
}

/* Zeroes, as the peer may end the transfer before it has written all. */
static int alloc(struct vrnic_context *ctx, struct vrnic_long *l)
{
	l->data = calloc(1, l->rts.length);
	if (l->data)
		l->mr = ibv_reg_mr(ctx->client->pd, l->data, l->rts.length,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (l->mr)
		return 0;
	free(l->data);
	l->data = NULL;
	return -ENOMEM;
}

/*
 * Accept a message, or have it wait until others of its sender have given back their memory.
 *
 * Return: 0; 1: it waits again; or a negative errno.
 */
static int accept(struct vrnic_context *ctx, struct vrnic_long *l)
{
	int ret = alloc(ctx, l);
	struct vrnic_endpoint *ep;

	vrnic_lock(ctx);
	ep = vrnic_endpoint_lookup(ctx, &l->rts.peer);
	if (!ep)
		ret = -ENOENT;
	else if (!ret)
		ret = vrnic_accept_message(ep, &l->rts, l, l->mr);
	if (!ret) {
		coming_add(ep, l);
	} else if (ret == -ENOMEM && !l->mr && ep->longs.coming) {
		waiting_put_back(ep, l);
		ret = 1;
	}
	vrnic_unlock(ctx);
	return ret;
}

/* Let the messages of a peer come, as far as there is room for them. */
static void start(struct vrnic_context *ctx, const struct vrnic_peer *peer)
{
	struct vrnic_endpoint *ep;
	struct vrnic_long *l;
	int ret = 0;

	while (ret <= 0) {
		vrnic_lock(ctx);
		ep = vrnic_endpoint_lookup(ctx, peer);
		l = ep ? waiting_take(ep) : NULL;
		vrnic_unlock(ctx);
		if (!l)
			break;
		ret = vrnic_dispatches(ctx, l->id) ? accept(ctx, l) : -ENOENT;
		if (ret < 0) {
			refuse(ctx, &l->rts, IBV_WC_REM_OP_ERR);
			vrnic_longs_free(l);
		}
	}
}

/*
 * Have it wait behind the others of its sender. Return: false if there are too many, or if there is
 * no endpoint to the sender.
 */
static bool enqueue(struct vrnic_context *ctx, struct vrnic_long *l)
{
	struct vrnic_endpoint *ep;
	bool added;

	vrnic_lock(ctx);
	ep = vrnic_endpoint_lookup(ctx, &l->rts.peer);
	added = ep && waiting_add(ep, l);
	vrnic_unlock(ctx);
	return added;
}

/* Return: the message that a record offers, or NULL: there is no memory. */
static struct vrnic_long *long_new(const struct vrnic_record *rec, const struct vrnic_rts *rts,
				   uint32_t id)
{
	const uint8_t *header = (const uint8_t *)(rec + 1) + rec->header_len;
	struct vrnic_long *l = calloc(1, sizeof(*l) + rec->length);

	if (!l)
		return NULL;
	l->rts = *rts;
	l->id = id;
	l->header_len = rec->length;
	memcpy(l->header, header, rec->length);
	return l;
}

/* A peer offers a message. What the record says of it is a claim. */
void vrnic_long_offered(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	const struct vrnic_peer peer = vrnic_sender(rec);
	struct vrnic_offer offer;
	struct vrnic_rts rts;
	struct vrnic_long *l;

	if (rec->header_len != sizeof(offer)) {
		ctx->dropped++;
		return;
	}
	memcpy(&offer, rec + 1, sizeof(offer));
	rts = vrnic_rts_of(rec);
	if (!rts.length || rts.length > VRNIC_SEND_MAX || rts.remote > UINT64_MAX - rts.length ||
	    offer.dispatch >= VRNIC_DISPATCH_MAX) {
		refuse(ctx, &rts, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	l = long_new(rec, &rts, (uint32_t)offer.dispatch);
	if (!l) {
		refuse(ctx, &rts, IBV_WC_REM_OP_ERR);
	} else if (enqueue(ctx, l)) {
		start(ctx, &peer);
	} else {
		free(l);
		refuse(ctx, &rts, IBV_WC_RNR_RETRY_EXC_ERR);
	}
}

/* A message that was taken has come, or never will. */
void vrnic_long_came(struct vrnic_context *ctx, struct vrnic_long *l, uint32_t status)
{
	const struct vrnic_peer peer = l->rts.peer;

	if (!close_region(l) || status)
		ctx->dropped++;
	else
		vrnic_dispatch(ctx, l->id, &(struct vrnic_message){
			.peer = peer,
			.header = l->header,
			.header_len = l->header_len,
			.data = l->data,
			.length = l->rts.length,
		});
	vrnic_longs_free(l);
	start(ctx, &peer);
}
