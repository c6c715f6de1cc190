// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting: look for room, raise counters, fill slots, publish them, and call the
 * kernel if it wants a doorbell. With room in the ring and no struct vrnic_done,
 * that is the filling of one slot and a fence.
 *
 * A descriptor has the user's cookie, which counters and records repeat. So the cookie
 * cannot name the operation of a record. The library finds it by order: the engine
 * completes the operations to one endpoint in the order in which they were posted.
 */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

/**
 * struct vrnic_queued - an operation that waits for room
 * @next: the next one
 * @ep: endpoint that it goes to; NULL: FENCE_ALL
 * @op: the operation whose record will come, or NULL
 * @types: types that it holds
 * @slots: how many it needs
 * @defer: a thread of the kernel is to execute it
 * @verdict: counted in vrnic_endpoint.verdicts
 * @image: what goes into them
 */
struct vrnic_queued {
	struct vrnic_queued *next;
	struct vrnic_endpoint *ep;
	struct vrnic_op *op;
	struct vrnic_type *types[2];
	uint32_t slots;
	bool defer;
	bool verdict;
	uint64_t image[];
};

/* ---- operations that will have a record ---- */

void vrnic_ops_init(struct vrnic_op_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void op_append(struct vrnic_op_list *list, struct vrnic_op *op)
{
	op->next = NULL;
	*list->end = op;
	list->end = &op->next;
}

/**
 * vrnic_op_find() - find the operation of a record
 * @list: of its endpoint, or of fences
 * @opcode: of the record
 * @cookie: of the record
 *
 * The operation is the first one, unless an engine completes out of order.
 *
 * Return: the operation, or NULL.
 */
struct vrnic_op *vrnic_op_find(const struct vrnic_op_list *list, uint8_t opcode, uint64_t cookie)
{
	struct vrnic_op *op = list->first;

	while (op && (op->opcode != opcode || op->cookie != cookie))
		op = op->next;
	return op;
}

/* Take an operation off its list, and free it. @op may be NULL. */
void vrnic_op_remove(struct vrnic_context *ctx, struct vrnic_op_list *list, struct vrnic_op *op)
{
	struct vrnic_op **at = &list->first;

	if (!op)
		return;
	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	if (!op->next)
		list->end = at;
	op->next = ctx->free_ops;
	ctx->free_ops = op;
}

static struct vrnic_op *op_new(struct vrnic_context *ctx)
{
	struct vrnic_op *op = ctx->free_ops;

	if (!op)
		return malloc(sizeof(*op));
	ctx->free_ops = op->next;
	return op;
}

/* Call the callbacks of operations with @arg no more; if @arg is NULL, those of all operations. */
void vrnic_ops_mute(struct vrnic_op_list *list, const void *arg)
{
	struct vrnic_op *op;

	for (op = list->first; op; op = op->next) {
		if (arg && op->arg != arg)
			continue;
		op->local = NULL;
		op->callback = NULL;
	}
}

static void free_list(struct vrnic_op *op)
{
	struct vrnic_op *next;

	for (; op; op = next) {
		next = op->next;
		free(op);
	}
}

static struct vrnic_op_list *list_of(struct vrnic_context *ctx,
				     struct vrnic_endpoint *ep)
{
	return ep ? &ep->ops : &ctx->fences;
}

/* ---- how the user is told ---- */

/* @known: members beyond those of the first library that the operation can use */
static int done_check(const struct vrnic_context *ctx, const struct vrnic_done *done,
		      uint64_t known)
{
	if (!done)
		return 0;
	if (vrnic_is_extended(done->comp_mask, known))
		return -E2BIG;
	if ((done->local && done->local->client != ctx->client) ||
	    (done->remote && done->remote->client != ctx->client) ||
	    done->flags & ~(uint32_t)(VRNIC_QUEUE | VRNIC_DEFER))
		return -EINVAL;
	if (done->flags & VRNIC_DEFER && !(ctx->client->features & VRNIC_FEATURE_DEFER))
		return -EOPNOTSUPP;
	return 0;
}

/* @done may be NULL, or name counters of this client. Return: 0, -EINVAL or -E2BIG. */
int vrnic_done_check(const struct vrnic_context *ctx, const struct vrnic_done *done)
{
	return done_check(ctx, done, 0);
}

static void desc_set_done(struct vrnic_ndesc *desc,
			  const struct vrnic_done *done)
{
	desc->cookie = done->cookie;
	if (done->local)
		desc->local_counter = done->local->number;
	if (done->remote)
		desc->remote_counter = done->remote->number;
	desc->target_counter = done->target;
	if (done->callback || vrnic_done_local(done))
		desc->flags |= VRNIC_NDESC_SIGNALED;
}

static uint64_t units(const struct vrnic_ndesc *desc)
{
	return desc->opcode == VRNIC_NOP_PUT || desc->opcode == VRNIC_NOP_GET ?
	       desc->length : 1;
}

/* Have the operation start when a counter has fallen. @done may be NULL. Return: 0 or an errno. */
static int set_wait(const struct vrnic_context *ctx, struct vrnic_request *req,
		    const struct vrnic_done *done)
{
	req->waits = done && done->comp_mask & VRNIC_DONE_AFTER;
	if (!req->waits)
		return 0;
	if (!done->after || done->after->client != ctx->client || done->after_left > INT64_MAX)
		return -EINVAL;
	/* it is raised by what waits for its fall */
	if (done->after == done->local || done->after == done->remote)
		return -EINVAL;
	if (!(ctx->client->features & VRNIC_FEATURE_WAIT))
		return -EOPNOTSUPP;
	req->wait = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_WAIT,
		.num_slots = 1,
		.length = done->after_left,
		.lkey = done->after->number,
		.arg = 1,
	};
	return 0;
}

/* Raise the counters, before the engine can see the descriptor: see P1. */
static inline void count(const struct vrnic_done *done, int64_t n)
{
	if (done->local)
		vrnic_cell_add(done->local->cell, n);
	if (done->remote)
		vrnic_cell_add(done->remote->cell, n);
}

/* Nothing was posted. */
static void count_no_more(const struct vrnic_done *done, int64_t n)
{
	vrnic_counter_undo(done->local, (uint64_t)n);
	vrnic_counter_undo(done->remote, (uint64_t)n);
}

/* ---- into the ring ---- */

static bool has_room(struct vrnic_context *ctx, uint32_t slots)
{
	return vrnic_ring_room(&ctx->inject, ctx->inject.next + slots);
}

/* Slots that the request takes. */
static uint32_t slots_of(const struct vrnic_request *req)
{
	return req->desc.num_slots + req->waits;
}

/*
 * Write a descriptor into the ring, behind the WAIT for it, if any. Parts and data follow the first
 * slot without a gap.
 */
static void fill(struct vrnic_ring *ring, const struct vrnic_request *req)
{
	uint32_t at = ring->next + req->waits;
	size_t offset = sizeof(req->desc);

	if (req->waits)
		*(struct vrnic_ndesc *)vrnic_ring_slot(ring, ring->next) = req->wait;
	*(struct vrnic_ndesc *)vrnic_ring_slot(ring, at) = req->desc;
	offset = vrnic_ring_copy_iov(ring, at, offset, req->parts, req->nr_parts);
	vrnic_ring_copy_iov(ring, at, offset, req->data, req->nr_data);
}

/* Move on behind @slots slots that were filled with a descriptor to @ep. */
static void step(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		 uint32_t slots, bool typed, bool defer)
{
	ctx->inject.next += slots;
	ctx->deferred |= defer;
	if (ep)
		ep->end = ctx->inject.next;
	if (typed)	/* a thread that destroys a type reads this without the lock */
		__atomic_store_n(&ctx->typed_end, ctx->inject.next,
				 __ATOMIC_RELAXED);
}

#define STREAM_POSTS	8

/*
 * Does the program post a stream, that is, has it posted STREAM_POSTS times without a look in vain
 * in between? Then one doorbell for several posts may be better.
 */
static bool streams(struct vrnic_context *ctx)
{
	unsigned int vain = __atomic_load_n(&ctx->client->vain, __ATOMIC_RELAXED);

	ctx->streak = vain == ctx->vain ? ctx->streak + 1 : 0;
	ctx->vain = vain;
	return ctx->streak >= STREAM_POSTS;
}

/* May the doorbell be late? Not if the program asked for an event, for which it may sleep next. */
static bool may_be_late(const struct vrnic_context *ctx)
{
	return vrnic_ring_may_gather(&ctx->inject) &&
	       !__atomic_load_n(&ctx->client->fds, __ATOMIC_RELAXED) &&
	       !(ctx->receive.hdr && vrnic_ring_is_armed(&ctx->receive));
}

#define DEFER_BYTES	16384	/* less is copied sooner than a thread is woken */

/* Is a thread of the kernel to execute the operation? */
static bool is_deferred(const struct vrnic_context *ctx, const struct vrnic_ndesc *desc,
			uint32_t flags)
{
	return (ctx->defer || flags & VRNIC_DEFER) && units(desc) >= DEFER_BYTES;
}

/* Return: 0, or a negative errno: then the FIFO is gone, with the operations in its ring. */
static int publish(struct vrnic_context *ctx)
{
	bool deferred = ctx->deferred;

	ctx->deferred = false;
	vrnic_ring_tell_stream(&ctx->inject, streams(ctx));
	vrnic_ring_publish(&ctx->inject);
	if (!vrnic_ring_wants_doorbell(&ctx->inject))
		return 0;
	if (deferred)
		return vrnic_uv_advance_deferred(ctx);
	if (!may_be_late(ctx))
		return vrnic_uv_advance(ctx);
	vrnic_uv_advance_later(ctx);
	return 0;
}

/* ---- the queue of operations that wait for room ---- */

static void queued_free(struct vrnic_queued *item)
{
	vrnic_type_put(item->types[0]);
	vrnic_type_put(item->types[1]);
	free(item);
}

static uint8_t *copy_iov(uint8_t *to, const struct iovec *iov, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; to += iov[i++].iov_len)
		if (iov[i].iov_len)	/* otherwise the address may be NULL */
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
	return to;
}

/* The descriptor need not know its slot: what it says of its data counts from its own start. */
static int queue_add(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		     const struct vrnic_request *req, struct vrnic_op *op)
{
	struct vrnic_queued *item;
	unsigned int i;
	uint8_t *to;

	item = calloc(1, sizeof(*item) + (size_t)slots_of(req) * VRNIC_SLOT_SIZE);
	if (!item)
		return -ENOMEM;
	item->ep = ep;
	item->op = op;
	item->slots = slots_of(req);
	item->defer = req->defer;
	item->verdict = req->verdict;
	if (item->verdict)
		ep->verdicts++;
	to = (uint8_t *)item->image;
	if (req->waits)
		to = copy_iov(to, &(struct iovec){ (void *)&req->wait, sizeof(req->wait) }, 1);
	memcpy(to, &req->desc, sizeof(req->desc));
	to = copy_iov(to + sizeof(req->desc), req->parts, req->nr_parts);
	copy_iov(to, req->data, req->nr_data);
	for (i = 0; i < 2; i++) {
		item->types[i] = req->types[i];
		vrnic_type_get(req->types[i]);
	}
	*ctx->queue_end = item;
	ctx->queue_end = &item->next;
	return 0;
}

static void queue_remove_first(struct vrnic_context *ctx)
{
	struct vrnic_queued *item = ctx->queue;

	ctx->queue = item->next;
	if (!ctx->queue)
		ctx->queue_end = &ctx->queue;
	if (item->verdict)
		item->ep->verdicts--;
	queued_free(item);
}

/**
 * vrnic_post_flush() - post queued operations, as far as there is room
 * @ctx: context, locked
 */
int vrnic_post_flush(struct vrnic_context *ctx)
{
	struct vrnic_queued *item;
	bool posted = false;

	while ((item = ctx->queue) && has_room(ctx, item->slots)) {
		vrnic_ring_copy_in(&ctx->inject, ctx->inject.next, 0, item->image,
				   (size_t)item->slots * VRNIC_SLOT_SIZE);
		step(ctx, item->ep, item->slots, item->types[0], item->defer);
		queue_remove_first(ctx);
		posted = true;
	}
	return posted ? publish(ctx) : 0;
}

/* Drop the operations that are queued for an endpoint, because the user destroys it. */
void vrnic_post_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep)
{
	struct vrnic_queued **at = &ctx->queue, *item;

	while ((item = *at)) {
		if (item->ep != ep) {
			at = &item->next;
			continue;
		}
		vrnic_op_remove(ctx, &ep->ops, item->op);
		*at = item->next;
		queued_free(item);
	}
	ctx->queue_end = at;
}

/* ---- posting ---- */

/**
 * vrnic_post_room() - find room for slots, after all queued operations were posted
 * @ctx: context, locked
 * @slots: how many
 *
 * If there is no room, it has the engine run once, in this thread, and looks again.
 *
 * Return: 0, -EAGAIN (no room), -EMSGSIZE (the ring is too small) or another negative errno.
 */
int vrnic_post_room(struct vrnic_context *ctx, uint32_t slots)
{
	int ret;

	if (slots > ctx->inject.entries)
		return -EMSGSIZE;
	ret = vrnic_post_flush(ctx);
	if (ret || (!ctx->queue && has_room(ctx, slots)))
		return ret;
	ret = vrnic_uv_advance(ctx);
	if (!ret)
		ret = vrnic_post_flush(ctx);
	if (ret || (!ctx->queue && has_room(ctx, slots)))
		return ret;
	return -EAGAIN;
}

static int add_op(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		  const struct vrnic_request *req,
		  const struct vrnic_done *done, struct vrnic_op **added)
{
	struct vrnic_op *op = op_new(ctx);

	if (!op)
		return -ENOMEM;
	*op = (struct vrnic_op){
		.local = vrnic_done_local(done),
		.callback = done->callback,
		.arg = done->arg,
		.cookie = done->cookie,
		.opcode = req->desc.opcode,
	};
	op_append(list_of(ctx, ep), op);
	*added = op;
	return 0;
}

/*
 * Put @req into the ring, where the caller has found room; or, if @queue, into the queue of
 * operations that wait for room. The caller has already raised the counters that the descriptor
 * names and listed @op, because the engine may finish the operation before this returns. @op is
 * NULL if the descriptor is not SIGNALED.
 */
static int place(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		 const struct vrnic_request *req, struct vrnic_op *op,
		 bool queue)
{
	if (queue)
		return queue_add(ctx, ep, req, op);
	fill(&ctx->inject, req);
	step(ctx, ep, slots_of(req), req->types[0], req->defer);
	return publish(ctx);
}

static int post_done(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		     const struct vrnic_request *req,
		     const struct vrnic_done *done, bool queue, bool internal)
{
	int64_t n = (int64_t)units(&req->desc);
	struct vrnic_op *op = NULL;
	int ret;

	if (req->desc.flags & VRNIC_NDESC_SIGNALED) {
		ret = add_op(ctx, ep, req, done, &op);
		if (ret)
			return ret;
		op->internal = internal;
	}
	count(done, n);
	ret = place(ctx, ep, req, op, queue);
	if (ret) {
		count_no_more(done, n);
		vrnic_op_remove(ctx, list_of(ctx, ep), op);
	}
	return ret;
}

static bool add_length(size_t *bytes, const struct iovec *iov, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (__builtin_add_overflow(*bytes, iov[i].iov_len, bytes))
			return false;
	return true;
}

/* Set the number of slots that descriptor, parts and data take. Return: 0 or -EMSGSIZE. */
static int set_slots(struct vrnic_context *ctx, struct vrnic_request *req)
{
	size_t bytes = VRNIC_SLOT_SIZE;

	req->desc.num_slots = 1;
	if (!req->nr_parts && !req->nr_data)
		return 0;
	if (!add_length(&bytes, req->parts, req->nr_parts) ||
	    !add_length(&bytes, req->data, req->nr_data))
		return -EMSGSIZE;
	if (bytes > (size_t)ctx->inject.entries * VRNIC_SLOT_SIZE ||
	    bytes > (size_t)UINT16_MAX * VRNIC_SLOT_SIZE)
		return -EMSGSIZE;
	req->desc.num_slots =
		(uint16_t)((bytes + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE);
	return 0;
}

/* Record where the data in the slots lies (S2.2), if the module knows the flag that says so. */
static void set_place(const struct vrnic_context *ctx, struct vrnic_ndesc *desc)
{
	if (!(desc->flags & VRNIC_NDESC_INLINE) ||
	    !(ctx->client->features & VRNIC_FEATURE_PLACED))
		return;
	desc->flags |= VRNIC_NDESC_PLACED;
	desc->local_addr = VRNIC_SLOT_SIZE;
	if (desc->opcode == VRNIC_NOP_MESSAGE)
		desc->local_addr += desc->header_len;
}

/**
 * vrnic_post_locked() - post an operation
 * @ctx: context, locked
 * @ep: endpoint that it goes to; NULL: FENCE_ALL
 * @req: the operation
 * @done: how the user is told, or NULL
 * @internal: @done->callback is the library's own
 *
 * Return: 0 or a negative errno, see vrnic_put(3); then counters are as before.
 */
int vrnic_post_locked(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		      struct vrnic_request *req, const struct vrnic_done *done,
		      bool internal)
{
	bool queue = false;
	int ret;

	ret = done_check(ctx, done, VRNIC_DONE_LOCAL_CALLBACK | VRNIC_DONE_AFTER);
	if (!ret)
		ret = set_wait(ctx, req, done);
	if (!ret)
		ret = set_slots(ctx, req);
	if (ret)
		return ret;
	if (vrnic_ring_failed(&ctx->inject))
		return -EIO;
	if (ctx->queue || !has_room(ctx, slots_of(req))) {
		ret = vrnic_post_room(ctx, slots_of(req));
		queue = ret == -EAGAIN && done && done->flags & VRNIC_QUEUE;
		if (ret && !queue)
			return ret;
	}
	req->desc.endpoint = ep ? ep->number : 0;
	set_place(ctx, &req->desc);
	req->defer = is_deferred(ctx, &req->desc, done ? done->flags : 0);
	if (!done)
		return place(ctx, ep, req, NULL, false);
	desc_set_done(&req->desc, done);
	return post_done(ctx, ep, req, done, queue, internal);
}

int vrnic_post(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
	       struct vrnic_request *req, const struct vrnic_done *done)
{
	int ret;

	vrnic_lock(ctx);
	ret = vrnic_post_locked(ctx, ep, req, done, false);
	vrnic_unlock(ctx);
	return ret;
}

/* Free all operations: the context is being destroyed, and its FIFO is gone. */
void vrnic_ops_destroy(struct vrnic_context *ctx)
{
	while (ctx->queue)
		queue_remove_first(ctx);
	free_list(ctx->fences.first);
	free_list(ctx->free_ops);
}
