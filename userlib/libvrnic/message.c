// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages into the peer's reception FIFO, and the handlers of those that arrive. */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

/* @known: members beyond those of the first library. Return: 0, -EINVAL or -E2BIG. */
static int wr_check(const struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		    uint64_t known)
{
	if (!ep || !wr)
		return -EINVAL;
	if (vrnic_is_extended(wr->comp_mask, known))
		return -E2BIG;
	if (wr->id >= VRNIC_DISPATCH_MAX || (!wr->header && wr->header_len))
		return -EINVAL;
	return 0;
}

/* Send the header of @wr, which was checked, and the data of @nr buffers. */
static int send_iov(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		    const struct iovec *iov, int nr, const struct vrnic_done *done)
{
	struct vrnic_request req = { .nr_parts = 1, .data = iov };
	uint64_t length;
	int ret = vrnic_iov_length(iov, nr, &length);

	if (ret)
		return ret;
	if (wr->header_len > VRNIC_MAX_MESSAGE ||
	    length > VRNIC_MAX_MESSAGE - wr->header_len)
		return -EMSGSIZE;
	req.desc = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_MESSAGE,
		.flags = VRNIC_NDESC_INLINE,
		.length = length,
		.header_len = (uint32_t)wr->header_len,
		.arg = wr->id,
	};
	req.parts[0] = (struct iovec){ (void *)wr->header, wr->header_len };
	req.nr_data = (unsigned int)nr;
	return vrnic_post(ep->context, ep, &req, done);
}

/* Does it not fit into the peer's reception FIFO, so that the peer fetches it? */
static bool is_long(const struct vrnic_send_wr *wr)
{
	return wr->comp_mask & VRNIC_SEND_MR &&
	       (wr->header_len > VRNIC_MAX_MESSAGE ||
		wr->length > VRNIC_MAX_MESSAGE - wr->header_len);
}

VRNIC_EXPORT
int vrnic_send(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
	       const struct vrnic_done *done)
{
	struct iovec one;
	int ret = wr_check(ep, wr, VRNIC_SEND_MR);

	if (ret)
		return ret;
	if (is_long(wr))
		return vrnic_long_send(ep, wr, done);
	one = (struct iovec){ (void *)wr->data, wr->length };
	return send_iov(ep, wr, &one, 1, done);
}

VRNIC_EXPORT
int vrnic_sendv(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		const struct iovec *iov, int iovcnt, const struct vrnic_done *done)
{
	int ret = wr_check(ep, wr, 0);

	if (ret)
		return ret;
	if (wr->data || wr->length)
		return -EINVAL;
	return send_iov(ep, wr, iov, iovcnt, done);
}

/* ---- handlers ---- */

static struct vrnic_handler_entry *entry(struct vrnic_context *ctx, uint32_t id)
{
	struct vrnic_handler_entry *group;

	group = ctx->dispatch[id / VRNIC_DISPATCH_GROUP];
	return group ? &group[id % VRNIC_DISPATCH_GROUP] : NULL;
}

static int dispatch_set(struct vrnic_context *ctx, uint32_t id,
			vrnic_handler handler, void *arg)
{
	struct vrnic_handler_entry *at = entry(ctx, id);

	if (!at) {
		ctx->dispatch[id / VRNIC_DISPATCH_GROUP] =
			calloc(VRNIC_DISPATCH_GROUP, sizeof(*at));
		at = entry(ctx, id);
	}
	if (!at)
		return -ENOMEM;
	*at = (struct vrnic_handler_entry){ .handler = handler, .arg = arg };
	return 0;
}

VRNIC_EXPORT
int vrnic_dispatch_set(struct vrnic_context *context, uint32_t id,
		       vrnic_handler handler, void *arg)
{
	int ret;

	if (!context || id >= VRNIC_DISPATCH_MAX)
		return -EINVAL;
	vrnic_lock(context);
	ret = dispatch_set(context, id, handler, arg);
	vrnic_unlock(context);
	return ret;
}

void vrnic_dispatch_free(struct vrnic_context *ctx)
{
	unsigned int i;

	for (i = 0; i < VRNIC_DISPATCH_GROUPS; i++)
		free(ctx->dispatch[i]);
}

/* ---- arrival ---- */

/* Does the message fit its slots? The engine sees to that, but the check costs nothing. */
static bool is_whole(const struct vrnic_record *rec)
{
	return (uint64_t)rec->header_len + rec->length <=
	       (rec->num_slots - 1ULL) * VRNIC_SLOT_SIZE;
}

static struct vrnic_handler_entry handler_of(struct vrnic_context *ctx, uint32_t id)
{
	struct vrnic_handler_entry to = {}, *at;

	vrnic_lock(ctx);
	at = entry(ctx, id);
	if (at)
		to = *at;
	vrnic_unlock(ctx);
	return to;
}

/* Is there a handler for messages of this kind? */
bool vrnic_dispatches(struct vrnic_context *ctx, uint32_t id)
{
	return handler_of(ctx, id).handler;
}

/* Call the handler of a message, or drop it. */
void vrnic_dispatch(struct vrnic_context *ctx, uint32_t id, const struct vrnic_message *message)
{
	struct vrnic_handler_entry to = handler_of(ctx, id);

	if (!to.handler) {
		ctx->dropped++;
		return;
	}
	ctx->made++;
	to.handler(ctx, message, to.arg);
}

static void short_message(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	const uint8_t *header = (const uint8_t *)(rec + 1);

	vrnic_dispatch(ctx, rec->arg, &(struct vrnic_message){
		.peer = vrnic_sender(rec),
		.header = header,
		.header_len = rec->header_len,
		.data = header + rec->header_len,
		.length = rec->length,
	});
}

/* The caller keeps the record in the ring until this returns. */
void vrnic_record_message(struct vrnic_context *ctx,
			  const struct vrnic_record *rec)
{
	if (!is_whole(rec))
		ctx->dropped++;
	else if (rec->arg < VRNIC_DISPATCH_MAX)
		short_message(ctx, rec);
	else
		vrnic_pace_message(ctx, rec);
}
