// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Operations on memory: read, write, put, get, rmw. */

#include <errno.h>
#include <limits.h>

#include "lib.h"

/* Is @length a number that a counter, which is signed, can hold, and does the address not wrap? */
static bool range_fits(uint64_t addr, uint64_t length)
{
	return length <= INT64_MAX && addr <= UINT64_MAX - length;
}

/* Return: 0, -EINVAL or -E2BIG. */
static int wr_check(const struct vrnic_endpoint *ep, const struct vrnic_wr *wr)
{
	if (!ep || !wr)
		return -EINVAL;
	if (vrnic_is_extended(wr->comp_mask, 0))
		return -E2BIG;
	if (!range_fits((uintptr_t)wr->local, wr->length) ||
	    !range_fits(wr->remote, wr->length))
		return -EINVAL;
	return 0;
}

static int post_virtual(uint8_t opcode, struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
			const struct vrnic_done *done)
{
	struct vrnic_request req = {};
	int ret = wr_check(ep, wr);

	if (ret)
		return ret;
	if (!wr->local && wr->length)
		return -EINVAL;
	req.desc = (struct vrnic_ndesc){
		.opcode = opcode,
		.flags = VRNIC_NDESC_VIRTUAL,
		.length = wr->length,
		.local_addr = (uintptr_t)wr->local,
		.remote_addr = wr->remote,
		.rkey = wr->rkey,
	};
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_read(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
	       const struct vrnic_done *done)
{
	return post_virtual(VRNIC_NOP_GET, ep, wr, done);
}

VRNIC_EXPORT
int vrnic_write(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		const struct vrnic_done *done)
{
	return post_virtual(VRNIC_NOP_PUT, ep, wr, done);
}

static inline int post_plain(uint8_t opcode, struct vrnic_endpoint *ep,
			     const struct vrnic_wr *wr, const struct vrnic_done *done)
{
	struct vrnic_request req;
	int ret = wr_check(ep, wr);

	if (ret)
		return ret;
	if (!wr->mr)
		return -EINVAL;
	req.desc = (struct vrnic_ndesc){
		.opcode = opcode,
		.length = wr->length,
		.local_addr = (uintptr_t)wr->local,
		.remote_addr = wr->remote,
		.lkey = wr->mr->lkey,
		.rkey = wr->rkey,
	};
	vrnic_request_plain(&req);
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_put(struct vrnic_endpoint *ep, const struct vrnic_wr *wr, const struct vrnic_done *done)
{
	return post_plain(VRNIC_NOP_PUT, ep, wr, done);
}

VRNIC_EXPORT
int vrnic_get(struct vrnic_endpoint *ep, const struct vrnic_wr *wr, const struct vrnic_done *done)
{
	return post_plain(VRNIC_NOP_GET, ep, wr, done);
}

/* ---- data in the slots of the ring (S2), from one buffer or several ---- */

/**
 * vrnic_iov_length() - check the buffers of a program, and add up their lengths
 * @iov: the buffers
 * @nr: number of buffers
 * @length: the sum; UINT64_MAX if it overflows: more than any operation takes
 *
 * Return: 0 or -EINVAL.
 */
int vrnic_iov_length(const struct iovec *iov, int nr, uint64_t *length)
{
	int i;

	if (nr < 0 || nr > IOV_MAX || (!iov && nr))
		return -EINVAL;
	*length = 0;
	for (i = 0; i < nr; i++) {
		if (!iov[i].iov_base && iov[i].iov_len)
			return -EINVAL;
		if (__builtin_add_overflow(*length, iov[i].iov_len, length))
			*length = UINT64_MAX;
	}
	return 0;
}

static int put_inline(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		      const struct iovec *iov, int nr, const struct vrnic_done *done)
{
	struct vrnic_request req = { .data = iov };
	uint64_t length;
	int ret = vrnic_iov_length(iov, nr, &length);

	if (ret)
		return ret;
	if (!range_fits(wr->remote, length))
		return -EINVAL;
	req.desc = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT,
		.flags = VRNIC_NDESC_INLINE,
		.length = length,
		.remote_addr = wr->remote,
		.rkey = wr->rkey,
	};
	req.nr_data = (unsigned int)nr;
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_put_inline(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		     const struct vrnic_done *done)
{
	struct iovec one;
	int ret = wr_check(ep, wr);

	if (ret)
		return ret;
	one = (struct iovec){ wr->local, wr->length };
	return put_inline(ep, wr, &one, 1, done);
}

VRNIC_EXPORT
int vrnic_put_inlinev(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		      const struct iovec *iov, int iovcnt, const struct vrnic_done *done)
{
	int ret = wr_check(ep, wr);

	if (ret)
		return ret;
	if (wr->local || wr->length)
		return -EINVAL;
	return put_inline(ep, wr, iov, iovcnt, done);
}

static int rmw_check(const struct vrnic_rmw_wr *wr)
{
	if (vrnic_is_extended(wr->comp_mask, 0))
		return -E2BIG;
	if ((wr->op & ~(uint32_t)VRNIC_RMW_COMPARE) > VRNIC_RMW_XOR ||
	    (wr->width != 4 && wr->width != 8) || wr->remote % wr->width ||
	    (wr->result && !wr->mr))
		return -EINVAL;
	return 0;
}

VRNIC_EXPORT
int vrnic_rmw(struct vrnic_endpoint *ep, const struct vrnic_rmw_wr *wr,
	      const struct vrnic_done *done)
{
	struct vrnic_request req = { .nr_parts = 1 };
	struct vrnic_ndesc_rmw more = {};
	int ret;

	if (!ep || !wr)
		return -EINVAL;
	ret = rmw_check(wr);
	if (ret)
		return ret;
	more.operand = wr->operand;
	more.compare = wr->compare;
	req.desc = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RMW,
		.length = wr->width,
		.local_addr = (uintptr_t)wr->result,
		.remote_addr = wr->remote,
		.lkey = wr->result ? wr->mr->lkey : 0,
		.rkey = wr->rkey,
		.arg = wr->op,
	};
	req.parts[0] = (struct iovec){ &more, sizeof(more) };
	return vrnic_post(ep->context, ep, &req, done);
}

/* ---- typed (S3) ---- */

static bool type_fits(const struct vrnic_context *ctx,
		      const struct vrnic_type *type)
{
	return type && type->complete && type->client == ctx->client;
}

static bool types_fit(const struct vrnic_context *ctx, const struct vrnic_typed_wr *wr)
{
	const struct vrnic_type *a = wr->local_type, *b = wr->remote_type;

	if (!type_fits(ctx, a) || !type_fits(ctx, b) ||
	    a->info.bytes != b->info.bytes || wr->mode > VRNIC_TYPED_CHUNKS)
		return false;
	return wr->mode != VRNIC_TYPED_SAME || a == b ||
	       vrnic_rows_equal(&a->rows, &b->rows);
}

static int post_typed(uint8_t opcode, struct vrnic_endpoint *ep,
		      const struct vrnic_typed_wr *wr, const struct vrnic_done *done)
{
	struct vrnic_request req = { .nr_parts = 1 };
	struct vrnic_ndesc_typed more = {};

	if (!ep || !wr)
		return -EINVAL;
	if (vrnic_is_extended(wr->comp_mask, 0))
		return -E2BIG;
	if (!wr->mr || !types_fit(ep->context, wr))
		return -EINVAL;
	more.local_type = wr->local_type->number;
	more.remote_type = wr->remote_type->number;
	more.mode = wr->mode;
	req.desc = (struct vrnic_ndesc){
		.opcode = opcode,
		.flags = VRNIC_NDESC_TYPED,
		.length = wr->local_type->info.bytes,
		.local_addr = (uintptr_t)wr->local,
		.remote_addr = wr->remote,
		.lkey = wr->mr->lkey,
		.rkey = wr->rkey,
	};
	req.parts[0] = (struct iovec){ &more, sizeof(more) };
	/* not const, because a queued operation takes references on its types */
	req.types[0] = (struct vrnic_type *)wr->local_type;
	req.types[1] = (struct vrnic_type *)wr->remote_type;
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_put_typed(struct vrnic_endpoint *ep, const struct vrnic_typed_wr *wr,
		    const struct vrnic_done *done)
{
	return post_typed(VRNIC_NOP_PUT, ep, wr, done);
}

VRNIC_EXPORT
int vrnic_get_typed(struct vrnic_endpoint *ep, const struct vrnic_typed_wr *wr,
		    const struct vrnic_done *done)
{
	return post_typed(VRNIC_NOP_GET, ep, wr, done);
}
