// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fences (S5). A fence is one descriptor, whatever was posted before it. */

#include <errno.h>
#include <limits.h>

#include "lib.h"

/* Does @done name a counter of the target? A fence tells the target nothing. */
static bool has_target(const struct vrnic_done *done)
{
	return done && done->target;
}

static void fence_request(struct vrnic_request *req, uint8_t opcode)
{
	req->desc = (struct vrnic_ndesc){ .opcode = opcode };
	vrnic_request_plain(req);
}

VRNIC_EXPORT
int vrnic_fence(struct vrnic_endpoint *ep, const struct vrnic_done *done)
{
	struct vrnic_request req;

	if (!ep || has_target(done))
		return -EINVAL;
	fence_request(&req, VRNIC_NOP_FENCE);
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_fence_all(struct vrnic_context *context,
		    const struct vrnic_done *done)
{
	struct vrnic_request req;

	if (!context || has_target(done))
		return -EINVAL;
	fence_request(&req, VRNIC_NOP_FENCE_ALL);
	return vrnic_post(context, NULL, &req, done);
}

/*
 * ---- regions ----
 *
 * A system that counts outstanding operations for its fences counts between begin and end only.
 * Here the ring's order has what a fence needs, so a region changes nothing: a fence covers all
 * that was posted before it. What is left to do is to check the calls, because a program that
 * begins and ends regions in the wrong order would not work elsewhere.
 */

VRNIC_EXPORT
int vrnic_fence_begin(struct vrnic_context *context)
{
	int ret;

	if (!context)
		return -EINVAL;
	vrnic_lock(context);
	ret = context->fencing ? -EALREADY : 0;
	context->fencing = true;
	vrnic_unlock(context);
	return ret;
}

VRNIC_EXPORT
int vrnic_fence_end(struct vrnic_context *context)
{
	int ret;

	if (!context)
		return -EINVAL;
	vrnic_lock(context);
	ret = context->fencing ? 0 : -ENOENT;
	context->fencing = false;
	vrnic_unlock(context);
	return ret;
}

/* ---- waiting ---- */

/* What fence_done() or vrnic_fences_cancel() tells a thread that waits for a fence. */
struct waiter {
	bool done;
	bool canceled;
	struct vrnic_status status;
};

static void fence_done(struct vrnic_context *ctx,
		       const struct vrnic_status *status, void *arg)
{
	struct waiter *waiter = arg;

	(void)ctx;
	waiter->status = *status;
	__atomic_store_n(&waiter->done, true, __ATOMIC_RELEASE);
}

/**
 * vrnic_fences_cancel() - wake the threads that wait for fences of an endpoint
 * @ep: the endpoint, which is being destroyed; its context is locked
 *
 * A waiter lies on its thread's stack, and may be gone as soon as @done is set.
 */
void vrnic_fences_cancel(struct vrnic_endpoint *ep)
{
	struct waiter *waiter;
	struct vrnic_op *op;

	for (op = ep->ops.first; op; op = op->next) {
		if (op->callback != fence_done)
			continue;
		waiter = op->arg;
		op->callback = NULL;
		waiter->canceled = true;
		__atomic_store_n(&waiter->done, true, __ATOMIC_RELEASE);
	}
}

static bool is_done(const struct waiter *waiter)
{
	return __atomic_load_n(&waiter->done, __ATOMIC_ACQUIRE);
}

#define SHARED_NS	1000000ULL
#define AWAIT_CALLS	64	/* callbacks before await() looks at the time again */

/*
 * In a shared context another thread may take the record that this thread sleeps for, and
 * perhaps no other record wakes it. So it sleeps for SHARED_NS at most.
 */
static int await(struct vrnic_context *ctx, const struct waiter *waiter,
		 uint64_t deadline)
{
	uint64_t left;
	bool cut;
	int ret;

	while (!is_done(waiter)) {
		left = vrnic_left(deadline);
		cut = ctx->shared && left > SHARED_NS;
		ret = vrnic_advance_wait(ctx, left ? AWAIT_CALLS : INT_MAX,
					 cut ? SHARED_NS : left);
		if (is_done(waiter))
			break;
		if (ret < 0 && !(cut && ret == -ETIME))
			return ret;
		if (!left)
			return -ETIME;
	}
	return 0;
}

/*
 * Make sure that no callback uses @waiter, which leaves the stack. With advance_lock held no
 * callback runs; EDEADLK: this thread is in a callback itself. If @waiter is done, the endpoint
 * may have been destroyed, so @ep is not used.
 */
static void forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		   const struct waiter *waiter)
{
	bool locked = !pthread_mutex_lock(&ctx->advance_lock);

	vrnic_lock(ctx);
	if (!is_done(waiter))
		vrnic_ops_mute(ep ? &ep->ops : &ctx->fences, waiter);
	vrnic_unlock(ctx);
	if (locked)
		pthread_mutex_unlock(&ctx->advance_lock);
}

/* Copy member by member, because the program's struct may be shorter: see vrnic_is_extended(). */
static void report(struct vrnic_status *status, const struct vrnic_status *told)
{
	status->cookie = told->cookie;
	status->value = told->value;
	status->status = told->status;
	status->vendor_err = told->vendor_err;
	status->opcode = told->opcode;
}

static int fence_wait(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		      uint64_t timeout_ns, struct vrnic_status *status)
{
	struct waiter waiter = { .done = false };
	const struct vrnic_done done = {
		.flags = VRNIC_QUEUE,
		.callback = fence_done,
		.arg = &waiter,
	};
	struct vrnic_request req;
	int ret;

	if (status && vrnic_is_extended(status->comp_mask, 0))
		return -E2BIG;
	fence_request(&req, ep ? VRNIC_NOP_FENCE : VRNIC_NOP_FENCE_ALL);
	vrnic_lock(ctx);
	ret = vrnic_post_locked(ctx, ep, &req, &done, false);
	vrnic_unlock(ctx);
	if (ret)
		return ret;
	ret = await(ctx, &waiter, vrnic_deadline(timeout_ns));
	if (ret) {
		forget(ctx, ep, &waiter);
		if (!is_done(&waiter))
			return ret;
	}
	if (waiter.canceled)
		return -ECANCELED;
	if (status)
		report(status, &waiter.status);
	return waiter.status.status ? -EIO : 0;
}

VRNIC_EXPORT
int vrnic_fence_wait(struct vrnic_endpoint *ep, uint64_t timeout_ns,
		     struct vrnic_status *status)
{
	if (!ep)
		return -EINVAL;
	return fence_wait(ep->context, ep, timeout_ns, status);
}

VRNIC_EXPORT
int vrnic_fence_all_wait(struct vrnic_context *context, uint64_t timeout_ns,
			 struct vrnic_status *status)
{
	if (!context)
		return -EINVAL;
	return fence_wait(context, NULL, timeout_ns, status);
}
