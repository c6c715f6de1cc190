// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The remote get (S4.3) as an operation of its own: the peer's engine puts some of its process's
 * memory into this process's, or takes from there (S1.3), perhaps once a counter there has fallen.
 * The peer's process does nothing; it has agreed by a key for the memory, and by opening the
 * counter.
 *
 *	WAIT		for the counter of the peer's process, if there is one
 *	PUT or GET	the bytes
 *	NOTIFY		back: all is there
 */

#include <errno.h>

#include "pace.h"

#define DESCS_MAX	3

static int rget_check(const struct vrnic_endpoint *ep, const struct vrnic_rget_wr *wr,
		      const struct vrnic_done *done)
{
	int ret = vrnic_done_check(ep->context, done);

	if (ret)
		return ret;
	if (vrnic_is_extended(wr->comp_mask, 0))
		return -E2BIG;
	if (wr->flags & ~(uint32_t)VRNIC_RGET_TAKE)
		return -EINVAL;
	if (!wr->mr || wr->length > INT64_MAX || wr->after_left > INT64_MAX ||
	    wr->remote > UINT64_MAX - wr->length ||
	    (uintptr_t)wr->local > UINT64_MAX - wr->length)
		return -EINVAL;
	/* only the arrival of the bytes can be counted here, by a local counter */
	return done && (done->remote || done->target) ? -EINVAL : 0;
}

static struct vrnic_ndesc wait_for(const struct vrnic_transfer *x, const struct vrnic_rget_wr *wr)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_WAIT,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET,
		.length = wr->after_left,
		.lkey = wr->after,
	};
}

/* Of the peer's engine: what is local is the peer's. */
static struct vrnic_ndesc move(const struct vrnic_transfer *x, const struct vrnic_rget_wr *wr)
{
	return (struct vrnic_ndesc){
		.opcode = wr->flags & VRNIC_RGET_TAKE ? VRNIC_NOP_GET : VRNIC_NOP_PUT,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET | VRNIC_COOKIE_LAST,
		.length = wr->length,
		.local_addr = wr->remote,
		.lkey = wr->rkey,
		.remote_addr = (uintptr_t)wr->local,
		.rkey = wr->mr->rkey,
		.local_counter = wr->target,
		.remote_counter = x->done.local ? x->done.local->number : 0,
	};
}

static struct vrnic_ndesc notify_back(const struct vrnic_transfer *x)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY,
		.flags = VRNIC_NDESC_BACK,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET,
		.arg = VRNIC_DISPATCH_ARRIVED,
	};
}

/* Write the descriptors into @x->piece. Return: their number. */
static uint32_t write_descs(const struct vrnic_transfer *x, const struct vrnic_rget_wr *wr)
{
	struct vrnic_ndesc *first = x->piece.mem, *d = first;

	if (wr->after)
		*d++ = wait_for(x, wr);
	if (wr->length)
		*d++ = move(x, wr);
	*d++ = notify_back(x);
	return (uint32_t)(d - first);
}

static int post_rget(struct vrnic_transfer *x, uint32_t nr)
{
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_RGET,
			.length = nr * sizeof(struct vrnic_ndesc),
			.local_addr = (uintptr_t)x->piece.mem,
			.lkey = vrnic_pool_mr(&x->piece)->lkey,
		},
	};

	/* there is room, or the caller wants to queue it */
	return vrnic_transfer_post(x, &req, x->done.flags | VRNIC_QUEUE);
}

/* Raise the counter before the descriptors are posted: the engines may lower it at once. */
static int begin(struct vrnic_transfer *x, const struct vrnic_rget_wr *wr)
{
	struct vrnic_counter *local = x->done.local;
	int ret;

	ret = vrnic_post_room(x->ep->context, 1);
	if (ret && !(ret == -EAGAIN && x->done.flags & VRNIC_QUEUE))
		return ret;
	ret = vrnic_pool_alloc(x->ep, DESCS_MAX, false, &x->piece);
	if (ret)
		return ret;
	if (local)
		vrnic_cell_add(local->cell, (int64_t)x->length);
	ret = post_rget(x, write_descs(x, wr));
	if (ret)
		vrnic_counter_undo(local, x->length);
	return ret;
}

static int rget_locked(struct vrnic_endpoint *ep, const struct vrnic_rget_wr *wr,
		       const struct vrnic_done *done)
{
	struct vrnic_transfer *x;
	int ret;

	ret = vrnic_transfer_new(ep, wr->length, true, done, &x);
	if (ret)
		return ret;
	x->alone = true;
	ret = begin(x, wr);
	if (ret)
		vrnic_transfer_drop(ep->context, x);
	return ret;
}

VRNIC_EXPORT
int vrnic_rget(struct vrnic_endpoint *ep, const struct vrnic_rget_wr *wr,
	       const struct vrnic_done *done)
{
	int ret;

	if (!ep || !wr)
		return -EINVAL;
	ret = rget_check(ep, wr, done);
	if (ret)
		return ret;
	vrnic_lock(ep->context);
	ret = rget_locked(ep, wr, done);
	vrnic_unlock(ep->context);
	return ret;
}
