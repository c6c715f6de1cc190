// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Progress: have the engine run, and deliver the records of the reception FIFO.
 *
 * Callbacks run with the context's advance_lock and no other. They may post, and
 * destroy endpoints; they may not advance their own context (EDEADLK).
 * advance_contexts.c has the forms for several contexts.
 */

#include <errno.h>
#include <sched.h>

#include "lib.h"

/* Call the user's callback, if there is one. */
void vrnic_tell(struct vrnic_context *ctx, vrnic_callback callback, void *arg,
		const struct vrnic_status *status)
{
	if (!callback)
		return;
	ctx->made++;
	callback(ctx, status, arg);
}

/* ---- records ---- */

static struct vrnic_op_list *list_of(struct vrnic_context *ctx,
				     const struct vrnic_record *rec)
{
	if (rec->opcode == VRNIC_NOP_FENCE_ALL)
		return &ctx->fences;
	if (rec->endpoint >= ctx->nr_endpoints ||
	    !ctx->endpoints[rec->endpoint])
		return NULL;
	return &ctx->endpoints[rec->endpoint]->ops;
}

/*
 * Find the operation that @rec completes, and copy it to @op with the callback that is next, or
 * NULL. If it is the last one, take the operation off its list.
 *
 * Return: true if it is the last one, so @rec can be given back.
 */
static bool take_op(struct vrnic_context *ctx, const struct vrnic_record *rec,
		    struct vrnic_op *op)
{
	struct vrnic_op_list *list;
	struct vrnic_op *found;
	bool last = true;

	*op = (struct vrnic_op){};
	vrnic_lock(ctx);
	list = list_of(ctx, rec);
	found = list ? vrnic_op_find(list, rec->opcode, rec->cookie) : NULL;
	if (found) {
		last = !found->local || !found->callback;
		*op = *found;
		if (op->local)
			op->callback = op->local;
		found->local = NULL;
		if (last)
			vrnic_op_remove(ctx, list, found);
	}
	vrnic_unlock(ctx);
	return last;
}

static struct vrnic_status status_of(const struct vrnic_record *rec)
{
	struct vrnic_status status = {
		.status = rec->status,
		.vendor_err = rec->vendor_err,
		.opcode = rec->opcode,
		.cookie = rec->cookie,
		.value = rec->value,
	};
	bool fence = rec->opcode == VRNIC_NOP_FENCE ||
		     rec->opcode == VRNIC_NOP_FENCE_ALL;

	if (fence && rec->status && rec->failed_opcode) {
		status.opcode = rec->failed_opcode;
		status.cookie = rec->failed_cookie;
	}
	return status;
}

/* Give the next record back, which has been used. */
static void give_back(struct vrnic_ring *ring, const struct vrnic_record *rec)
{
	ring->next += rec->num_slots;
	vrnic_ring_release(ring);
}

/*
 * One record tells both moments of an operation: its local buffer is free, and it is done at the
 * target. If there is a callback for each, the record stays in the ring after the first one, and is
 * looked at again. So each callback counts for the limit of vrnic_advance(), and the second is not
 * called if the first one destroys the endpoint.
 */
static void completion(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	struct vrnic_status status = status_of(rec);
	struct vrnic_op op;

	if (take_op(ctx, rec, &op))
		give_back(&ctx->receive, rec);
	if (!op.callback)
		return;
	if (op.internal)
		op.callback(ctx, &status, op.arg);
	else
		vrnic_tell(ctx, op.callback, op.arg, &status);
}

static void small_record(struct vrnic_context *ctx,
			 const struct vrnic_record *rec)
{
	switch (rec->kind) {
	case VRNIC_REC_NOTIFY:
		vrnic_pace_notify(ctx, rec);
		break;
	case VRNIC_REC_ERROR:
		vrnic_pace_error(ctx, rec);
		break;
	default:	/* padding, and kinds of records that later modules may have */
		break;
	}
}

/*
 * Handlers read a message in the ring, so it is given back afterwards. A record of one slot is
 * copied, and given back before its callback.
 */
static void deliver_one(struct vrnic_context *ctx,
			const struct vrnic_record *rec)
{
	struct vrnic_record copy;

	switch (rec->kind) {
	case VRNIC_REC_MESSAGE:
		vrnic_record_message(ctx, rec);
		give_back(&ctx->receive, rec);
		break;
	case VRNIC_REC_COMPLETION:
		completion(ctx, rec);
		break;
	default:
		copy = *rec;
		give_back(&ctx->receive, rec);
		small_record(ctx, &copy);
		break;
	}
}

/*
 * Deliver records until @max callbacks were called, or as many as the ring has room for: peers may
 * go on for ever to send what calls nothing. Return: records used, or a negative errno.
 */
static int deliver(struct vrnic_context *ctx, unsigned long max)
{
	struct vrnic_ring *ring = &ctx->receive;
	unsigned long begin = ctx->made;
	const struct vrnic_record *rec;
	int ret, n = 0;

	while (ctx->made - begin < max && n < (int)ring->entries &&
	       (rec = vrnic_ring_peek(ring))) {
		if (!rec->num_slots ||
		    rec->num_slots > vrnic_ring_filled(ring))
			return -EPROTO;
		deliver_one(ctx, rec);
		n++;
	}
	if (!n || !vrnic_ring_wants_doorbell(ring))
		return n;
	ret = vrnic_uv_advance(ctx);
	return ret ? ret : n;
}

/* ---- progress ---- */

/*
 * Post queued operations. Have the engine run the injection ring in this thread, if the engine
 * wants a doorbell, or if this thread has nothing else to do (@idle).
 */
static int drive(struct vrnic_context *ctx, bool idle)
{
	struct vrnic_ring *ring = &ctx->inject;
	bool call;
	int ret;

	vrnic_lock(ctx);
	ret = vrnic_post_flush(ctx);
	call = !vrnic_ring_consumed(ring, ring->next) &&
	       (idle || vrnic_ring_wants_doorbell(ring));
	if (ctx->dying)
		vrnic_endpoints_bury(ctx, false);
	vrnic_unlock(ctx);
	if (!ret && vrnic_ring_failed(ring) && idle)
		ret = -EIO;
	return !ret && call ? vrnic_uv_advance(ctx) : ret;
}

#define IDLE_LOOKS	16

/*
 * If there is one CPU only, the process that is to bring the record cannot run while this thread
 * looks for it.
 */
static void yield(struct vrnic_context *ctx, bool idle)
{
	if (!idle)
		ctx->idle = 0;
	else if (ctx->client->one_cpu && ++ctx->idle % IDLE_LOOKS == 0)
		sched_yield();
}

static int advance_locked(struct vrnic_context *ctx, int max)
{
	unsigned long begin = ctx->made;
	int ret;

	ret = drive(ctx, false);
	if (!ret)
		ret = deliver(ctx, (unsigned long)max);
	if (!ret) {
		ret = drive(ctx, true);
		if (!ret)
			ret = deliver(ctx, (unsigned long)max);
	}
	if (ret < 0)
		return ret;
	yield(ctx, !ret);
	return (int)(ctx->made - begin);
}

/**
 * vrnic_advance_one() - advance a context
 * @ctx: the context
 * @max: callbacks and handlers to call, at most
 * @skip: do not wait for another thread that advances it
 *
 * Return: how many were called, -EBUSY (@skip: a thread advances it), -EDEADLK (this thread does,
 * so it is in a callback), or another negative errno.
 */
int vrnic_advance_one(struct vrnic_context *ctx, int max, bool skip)
{
	int ret = skip ? pthread_mutex_trylock(&ctx->advance_lock) :
			 pthread_mutex_lock(&ctx->advance_lock);

	if (ret)
		return -ret;
	ret = advance_locked(ctx, max);
	pthread_mutex_unlock(&ctx->advance_lock);
	return ret;
}

VRNIC_EXPORT
int vrnic_advance(struct vrnic_context *context, int max)
{
	return context && max >= 0 ? vrnic_advance_one(context, max, false) : -EINVAL;
}

VRNIC_EXPORT
int vrnic_advance_try(struct vrnic_context *context, int max)
{
	return context && max >= 0 ? vrnic_advance_one(context, max, true) : -EINVAL;
}

/* ---- sleeping ---- */

/*
 * Sleep until there is a record. Room in the injection ring wakes no thread, so if operations wait
 * for room, the sleep takes VRNIC_QUEUED_NS at most.
 *
 * Return: 0: the caller has to look again; or -ETIME, -EINTR or -EIO.
 */
int vrnic_advance_sleep(struct vrnic_context *ctx, uint64_t deadline)
{
	struct vrnic_wait wait = {
		.what = VRNIC_WAIT_FIFO,
		.id = ctx->address.fifo,
		.timeout_ns = vrnic_left(deadline),
	};
	bool cut = wait.timeout_ns > VRNIC_QUEUED_NS && vrnic_is_queued(ctx);
	int ret;

	if (!wait.timeout_ns)
		return -ETIME;
	if (cut)
		wait.timeout_ns = VRNIC_QUEUED_NS;
	ret = vrnic_uv_wait(ctx->client, &wait);	/* C4 */
	return cut && ret == -ETIME ? 0 : ret;
}

VRNIC_EXPORT
int vrnic_advance_wait(struct vrnic_context *context, int max,
		       uint64_t timeout_ns)
{
	uint64_t deadline = vrnic_deadline(timeout_ns);
	int ret;

	for (;;) {
		ret = vrnic_advance(context, max);
		/* with @max 0 nobody takes the record that ends the wait */
		if (ret || (!max && vrnic_ring_pending(&context->receive)))
			return ret;
		ret = vrnic_advance_sleep(context, deadline);
		if (ret)
			return ret;
	}
}
