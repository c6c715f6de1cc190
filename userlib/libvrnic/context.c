// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Contexts: pairs of rings. */

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib.h"

#define INJECT_SLOTS		256	/* unless asked for otherwise */
#define RECEIVE_SLOTS		512
#define RECEIVE_SLOTS_MIN	132	/* two of the longest messages, and more */

#define CONTEXT_FLAGS	(VRNIC_CONTEXT_SHARED | VRNIC_CONTEXT_OPEN | VRNIC_CONTEXT_DEFER)

/* ---- rings ---- */

/*
 * Map a ring. A child process gets no copy of the mapping, because two processes that post to one
 * ring would overwrite each other's descriptors.
 */
static int ring_map(struct vrnic_ring *ring, struct vrnic_client *client,
		    const struct vrnic_ring_info *info)
{
	void *base;
	int ret;

	if (!vrnic_ring_info_is_sane(info) || info->stride != VRNIC_SLOT_SIZE)
		return -EPROTO;
	base = mmap(NULL, info->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		    client->verbs->cmd_fd, (off_t)info->offset);
	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, info->bytes, MADV_DONTFORK)) {
		ret = -errno;
		munmap(base, info->bytes);
		return ret;
	}
	vrnic_ring_init(ring, base, info);
	return 0;
}

static void ring_unmap(struct vrnic_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->bytes);
	ring->hdr = NULL;
}

/* ---- making one ---- */

static bool slots_fit(uint32_t slots, uint32_t min)
{
	return !slots || (slots >= min && slots <= VRNIC_FIFO_SLOTS_MAX);
}

static bool attr_fits(const struct vrnic_context_attr *attr)
{
	return !(attr->flags & ~(uint32_t)CONTEXT_FLAGS) &&
	       (!attr->name || strlen(attr->name) < VRNIC_CLIENT_NAME) &&
	       slots_fit(attr->inject_slots, VRNIC_FIFO_SLOTS_MIN) &&
	       slots_fit(attr->receive_slots, RECEIVE_SLOTS_MIN);
}

static struct vrnic_create_fifo_req request(const struct vrnic_context *ctx,
					    const struct vrnic_context_attr *attr)
{
	struct vrnic_create_fifo_req req = {
		.task = attr->task,
		.context = attr->number,
		.inject_slots = attr->inject_slots ? attr->inject_slots :
						     INJECT_SLOTS,
		.receive_slots = attr->receive_slots ? attr->receive_slots :
						       RECEIVE_SLOTS,
		.flags = attr->flags & VRNIC_CONTEXT_OPEN ? VRNIC_FIFO_OPEN : 0,
		.eventfd = ctx->eventfd,
	};

	if (attr->name)
		memcpy(req.name, attr->name, strlen(attr->name));
	return req;
}

static int create_rings(struct vrnic_context *ctx,
			const struct vrnic_context_attr *attr)
{
	struct vrnic_create_fifo_req req = request(ctx, attr);
	struct vrnic_create_fifo_resp resp;
	int ret;

	ret = vrnic_uv_fifo_create(ctx->client, &req, &resp, &ctx->handle);
	if (ret)
		return ret;
	ctx->address = resp.address;
	ret = ring_map(&ctx->inject, ctx->client, &resp.inject);
	if (!ret)
		ret = ring_map(&ctx->receive, ctx->client, &resp.receive);
	if (ret) {
		ring_unmap(&ctx->inject);
		vrnic_uv_destroy(ctx->client, VRNIC_OBJECT_FIFO, ctx->handle);
	}
	return ret;
}

static void init_locks(struct vrnic_context *ctx)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	/* a callback that advances its own context gets EDEADLK, and does not hang */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&ctx->advance_lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&ctx->lock, NULL);
}

static struct vrnic_context *context_new(struct vrnic_client *client,
					 bool shared)
{
	struct vrnic_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->client = client;
	ctx->shared = shared;
	ctx->queue_end = &ctx->queue;
	vrnic_ops_init(&ctx->fences);
	init_locks(ctx);
	return ctx;
}

static void context_free(struct vrnic_context *ctx)
{
	vrnic_ops_destroy(ctx);
	vrnic_transfers_destroy(ctx);
	vrnic_dispatch_free(ctx);
	free(ctx->endpoints);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->advance_lock);
	free(ctx);
}

static void context_link(struct vrnic_context *ctx)
{
	struct vrnic_client *client = ctx->client;

	pthread_mutex_lock(&client->lock);
	ctx->sibling = client->contexts;
	client->contexts = ctx;
	client->users++;
	pthread_mutex_unlock(&client->lock);
}

static void context_unlink(struct vrnic_context *ctx)
{
	struct vrnic_client *client = ctx->client;
	struct vrnic_context **at;

	pthread_mutex_lock(&client->lock);
	for (at = &client->contexts; *at != ctx; at = &(*at)->sibling)
		;
	*at = ctx->sibling;
	pthread_mutex_unlock(&client->lock);
}

static int create_parts(struct vrnic_context *ctx,
			const struct vrnic_context_attr *attr)
{
	int ret;

	ctx->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->eventfd < 0)
		return -errno;
	ret = create_rings(ctx, attr);
	if (ret)
		close(ctx->eventfd);
	return ret;
}

VRNIC_EXPORT
int vrnic_context_create(struct vrnic_client *client,
			 const struct vrnic_context_attr *attr,
			 struct vrnic_context **context)
{
	static const struct vrnic_context_attr none;
	struct vrnic_context *ctx;
	int ret;

	if (!attr)
		attr = &none;
	if (!client || !context)
		return -EINVAL;
	if (vrnic_is_extended(attr->comp_mask, 0))
		return -E2BIG;
	if (!attr_fits(attr))
		return -EINVAL;
	if (attr->flags & VRNIC_CONTEXT_DEFER && !(client->features & VRNIC_FEATURE_DEFER))
		return -EOPNOTSUPP;
	ctx = context_new(client, attr->flags & VRNIC_CONTEXT_SHARED);
	if (!ctx)
		return -ENOMEM;
	ctx->defer = attr->flags & VRNIC_CONTEXT_DEFER;
	ret = create_parts(ctx, attr);
	if (ret) {
		context_free(ctx);
		return ret;
	}
	context_link(ctx);
	*context = ctx;
	return 0;
}

/* ---- the end ---- */

/*
 * Destroy the kernel's objects of the context, the endpoints before the FIFO that they refer to.
 * The caller then unmaps the rings, which no engine uses once the FIFO is gone. Each endpoint's
 * pool is freed here, after the kernel's endpoint: see bury().
 */
static int destroy_in_kernel(struct vrnic_context *ctx)
{
	struct vrnic_client *client = ctx->client;
	int ret;

	if (!vrnic_endpoints_bury(ctx, true))
		return -EBUSY;
	ret = vrnic_uv_destroy(client, VRNIC_OBJECT_FIFO, ctx->handle);
	if (ret)
		return ret;
	context_unlink(ctx);
	vrnic_types_reap(client, ctx);
	return 0;
}

/*
 * No other thread may use the context any more; while one runs a callback, this fails with EBUSY.
 * The context gives its client back last: another thread may wait for that to close the client.
 */
VRNIC_EXPORT
int vrnic_context_destroy(struct vrnic_context *context)
{
	struct vrnic_client *client;
	int ret;

	if (!context)
		return -EINVAL;
	client = context->client;
	if (context->live || pthread_mutex_trylock(&context->advance_lock))
		return -EBUSY;
	ret = destroy_in_kernel(context);
	pthread_mutex_unlock(&context->advance_lock);
	if (ret)
		return ret;
	ring_unmap(&context->inject);
	ring_unmap(&context->receive);
	close(context->eventfd);
	context_free(context);
	vrnic_client_drop(client);
	return 0;
}

/* ---- what there is to know ---- */

VRNIC_EXPORT
void vrnic_context_address(const struct vrnic_context *context,
			   struct vrnic_address *address)
{
	*address = context->address;
}

VRNIC_EXPORT
int vrnic_context_fd(const struct vrnic_context *context)
{
	return context->eventfd;
}

/* Clear the old event, then ask for a new one. Return: true if a record is there already. */
bool vrnic_context_rearm(struct vrnic_context *ctx)
{
	eventfd_t seen;
	bool pending;

	/* EAGAIN: there was no event */
	(void)!eventfd_read(ctx->eventfd, &seen);
	vrnic_ring_arm(&ctx->receive, false);
	pending = vrnic_ring_pending(&ctx->receive);
	/* posts from now on ring at once; doorbells of earlier posts may still be due */
	vrnic_uv_looked_in_vain(ctx->client);
	return pending;
}

/*
 * No event announces room in the injection ring, so an operation that waits for room counts as
 * pending.
 */
VRNIC_EXPORT
int vrnic_context_arm(struct vrnic_context *context)
{
	bool queued;

	if (!context)
		return -EINVAL;
	queued = vrnic_is_queued(context);
	return vrnic_context_rearm(context) || queued;
}
