// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Endpoints: peers' contexts. */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

#define ENDPOINTS_MAX	(1U << 20)	/* far more than there can be */

/* Make room for number @number in the context's table. Return: 0 or a negative errno. */
static int table_fit(struct vrnic_context *ctx, uint32_t number)
{
	struct vrnic_endpoint **table;
	uint32_t nr = ctx->nr_endpoints ? ctx->nr_endpoints : 4;

	if (number < ctx->nr_endpoints)
		return 0;
	if (number >= ENDPOINTS_MAX)
		return -EPROTO;
	while (nr <= number)
		nr *= 2;
	table = realloc(ctx->endpoints, nr * sizeof(*table));
	if (!table)
		return -ENOMEM;
	memset(table + ctx->nr_endpoints, 0,
	       (nr - ctx->nr_endpoints) * sizeof(*table));
	ctx->endpoints = table;
	ctx->nr_endpoints = nr;
	return 0;
}

static int enter_locked(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	int ret = table_fit(ctx, ep->number);

	if (ret)
		return ret;
	ep->end = ctx->inject.next;
	ctx->endpoints[ep->number] = ep;
	ctx->live++;
	return 0;
}

/* The kernel may have to reach another host: other threads use the context meanwhile. */
static int create(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	/* an older module fills in less */
	struct vrnic_create_endpoint_resp resp = {};
	int ret;

	ret = vrnic_uv_endpoint_create(ctx, &ep->peer, &resp, &ep->handle);
	if (ret)
		return ret;
	ep->number = resp.endpoint;
	ep->host = resp.host;
	vrnic_lock(ctx);
	ret = enter_locked(ctx, ep);
	vrnic_unlock(ctx);
	if (ret)
		vrnic_uv_destroy(ctx->client, VRNIC_OBJECT_ENDPOINT, ep->handle);
	return ret;
}

VRNIC_EXPORT
int vrnic_endpoint_create(struct vrnic_context *context,
			  const struct vrnic_address *address,
			  struct vrnic_endpoint **endpoint)
{
	struct vrnic_endpoint *ep;
	int ret;

	if (!context || !address || !endpoint)
		return -EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -ENOMEM;
	ep->context = context;
	ep->peer = *address;
	vrnic_ops_init(&ep->ops);
	vrnic_longs_init(ep);
	ret = create(context, ep);
	if (ret)
		free(ep);
	else
		*endpoint = ep;
	return ret;
}

VRNIC_EXPORT
int vrnic_endpoint_find(struct vrnic_context *context, const char *name,
			uint32_t task, uint32_t number,
			struct vrnic_endpoint **endpoint)
{
	struct vrnic_lookup_req req = { .task = task, .context = number };
	struct vrnic_address address;
	int ret;

	if (!context || !name || !*name || strlen(name) >= sizeof(req.name))
		return -EINVAL;
	memcpy(req.name, name, strlen(name));
	ret = vrnic_uv_fifo_lookup(context->client, &req, &address);
	if (ret)
		return ret;
	return vrnic_endpoint_create(context, &address, endpoint);
}

VRNIC_EXPORT
void vrnic_endpoint_peer(const struct vrnic_endpoint *endpoint, struct vrnic_peer *peer)
{
	*peer = (struct vrnic_peer){
		.host = endpoint->host,
		.fifo = endpoint->peer.fifo,
		.task = endpoint->peer.task,
	};
}

/*
 * Find the endpoint to @peer. Caller has locked the context.
 *
 * Return: the endpoint, which the user has not destroyed, or NULL.
 */
struct vrnic_endpoint *vrnic_endpoint_lookup(const struct vrnic_context *ctx,
					     const struct vrnic_peer *peer)
{
	struct vrnic_endpoint *ep;
	uint32_t i;

	for (i = 0; i < ctx->nr_endpoints; i++) {
		ep = ctx->endpoints[i];
		if (ep && !ep->dead && vrnic_is_peer(ep, peer))
			return ep;
	}
	return NULL;
}

VRNIC_EXPORT
int vrnic_endpoint_of(struct vrnic_context *context, const struct vrnic_peer *peer,
		      struct vrnic_endpoint **endpoint)
{
	struct vrnic_endpoint *ep;

	if (!context || !peer || !endpoint)
		return -EINVAL;
	vrnic_lock(context);
	ep = vrnic_endpoint_lookup(context, peer);
	vrnic_unlock(context);
	if (!ep)
		return -ENOENT;
	*endpoint = ep;
	return 0;
}

/* ---- the end ---- */

/* Has the engine executed all descriptors to @ep, and have their records come? */
static bool is_idle(const struct vrnic_endpoint *ep)
{
	return !ep->ops.first &&
	       vrnic_ring_consumed(&ep->context->inject, ep->end);
}

/* Destroy the kernel's part first: after that no engine touches the memory of the pool. */
static int bury(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	struct vrnic_op *op;
	int ret;

	ret = vrnic_uv_destroy(ctx->client, VRNIC_OBJECT_ENDPOINT, ep->handle);
	if (ret)
		return ret;
	while ((op = ep->ops.first)) {
		ep->ops.first = op->next;
		free(op);
	}
	vrnic_transfers_bury(ctx, ep);
	vrnic_pool_destroy(ep);
	ctx->endpoints[ep->number] = NULL;
	ctx->dying--;
	free(ep);
	return 0;
}

/**
 * vrnic_endpoints_bury() - free destroyed endpoints that the engine is done with
 * @ctx: context, locked
 * @force: free also those that the engine is not done with, because the context goes
 *
 * An endpoint whose transfers a thread is ending stays in any case.
 *
 * Return: true if none is left.
 */
bool vrnic_endpoints_bury(struct vrnic_context *ctx, bool force)
{
	struct vrnic_endpoint *ep;
	uint32_t i;

	for (i = 0; ctx->dying && i < ctx->nr_endpoints; i++) {
		ep = ctx->endpoints[i];
		/* if bury() fails, the next call tries again */
		if (ep && ep->dead && !ep->ending && (force || is_idle(ep)))
			bury(ctx, ep);
	}
	return !ctx->dying;
}

static void destroy_locked(struct vrnic_context *ctx,
			   struct vrnic_endpoint *ep)
{
	ep->dead = true;
	ctx->live--;
	ctx->dying++;
	vrnic_fences_cancel(ep);
	vrnic_post_forget(ctx, ep);
	vrnic_transfers_forget(ctx, ep);
	vrnic_ops_mute(&ep->ops, NULL);
	/* ignore an error: the next post reports it */
	if (!vrnic_ring_consumed(&ctx->inject, ep->end))
		vrnic_uv_advance(ctx);
	vrnic_endpoints_bury(ctx, false);
}

VRNIC_EXPORT
int vrnic_endpoint_destroy(struct vrnic_endpoint *endpoint)
{
	struct vrnic_context *ctx;
	struct vrnic_long *orphans;

	if (!endpoint)
		return -EINVAL;
	ctx = endpoint->context;
	vrnic_lock(ctx);
	orphans = vrnic_longs_refuse(endpoint);
	destroy_locked(ctx, endpoint);
	vrnic_unlock(ctx);
	/* their memory, which the peer's engine may still write to: this ends it */
	vrnic_longs_free(orphans);
	return 0;
}
