// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Operations on memory: read, write, put, get, rmw. */

#include <errno.h>

#include "lib.h"

/* A counter's value is signed, and addresses do not wrap. */
static bool range_fits(uint64_t addr, uint64_t length)
{
	return length <= INT64_MAX && addr <= UINT64_MAX - length;
}

static int post_virtual(uint8_t opcode, struct vrnic_endpoint *ep,
			const void *local, size_t length, uint64_t remote,
			uint32_t rkey, struct vrnic_counter *counter)
{
	const struct vrnic_done done = { .local = counter };
	struct vrnic_request req = {
		.desc = {
			.opcode = opcode,
			.flags = VRNIC_NDESC_VIRTUAL,
			.length = length,
			.local_addr = (uintptr_t)local,
			.remote_addr = remote,
			.rkey = rkey,
		},
	};

	if (!ep || (!local && length) || !range_fits((uintptr_t)local, length) ||
	    !range_fits(remote, length))
		return -EINVAL;
	return vrnic_post(ep->context, ep, &req, &done);
}

VRNIC_EXPORT
int vrnic_read(struct vrnic_endpoint *endpoint, void *local, size_t length,
	       uint64_t remote, uint32_t rkey, struct vrnic_counter *counter)
{
	return post_virtual(VRNIC_NOP_GET, endpoint, local, length, remote,
			    rkey, counter);
}

VRNIC_EXPORT
int vrnic_write(struct vrnic_endpoint *endpoint, const void *local,
		size_t length, uint64_t remote, uint32_t rkey,
		struct vrnic_counter *counter)
{
	return post_virtual(VRNIC_NOP_PUT, endpoint, local, length, remote,
			    rkey, counter);
}

static inline int post_plain(uint8_t opcode, struct vrnic_endpoint *ep,
			     const void *local, const struct ibv_mr *mr,
			     size_t length, uint64_t remote, uint32_t rkey,
			     const struct vrnic_done *done)
{
	struct vrnic_request req;

	if (!ep || !mr || !range_fits((uintptr_t)local, length) ||
	    !range_fits(remote, length))
		return -EINVAL;
	req.desc = (struct vrnic_ndesc){
		.opcode = opcode,
		.length = length,
		.local_addr = (uintptr_t)local,
		.remote_addr = remote,
		.lkey = mr->lkey,
		.rkey = rkey,
	};
	req.nr_parts = 0;
	req.types[0] = NULL;
	req.types[1] = NULL;
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_put(struct vrnic_endpoint *endpoint, const void *local,
	      const struct ibv_mr *mr, size_t length, uint64_t remote,
	      uint32_t rkey, const struct vrnic_done *done)
{
	return post_plain(VRNIC_NOP_PUT, endpoint, local, mr, length, remote,
			  rkey, done);
}

VRNIC_EXPORT
int vrnic_get(struct vrnic_endpoint *endpoint, void *local,
	      const struct ibv_mr *mr, size_t length, uint64_t remote,
	      uint32_t rkey, const struct vrnic_done *done)
{
	return post_plain(VRNIC_NOP_GET, endpoint, local, mr, length, remote,
			  rkey, done);
}

VRNIC_EXPORT
int vrnic_put_inline(struct vrnic_endpoint *endpoint, const void *data,
		     size_t length, uint64_t remote, uint32_t rkey,
		     const struct vrnic_done *done)
{
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_PUT,
			.flags = VRNIC_NDESC_INLINE,
			.length = length,
			.remote_addr = remote,
			.rkey = rkey,
		},
		.parts = { { .iov_base = (void *)data, .iov_len = length } },
		.nr_parts = 1,
	};

	if (!endpoint || (!data && length) || !range_fits(remote, length))
		return -EINVAL;
	return vrnic_post(endpoint->context, endpoint, &req, done);
}

static bool rmw_fits(uint32_t op, uint32_t width, uint64_t remote)
{
	return (op & ~(uint32_t)VRNIC_RMW_COMPARE) <= VRNIC_RMW_XOR &&
	       (width == 4 || width == 8) && !(remote % width);
}

VRNIC_EXPORT
int vrnic_rmw(struct vrnic_endpoint *endpoint, uint32_t op, uint32_t width,
	      uint64_t remote, uint32_t rkey, uint64_t operand,
	      uint64_t compare, void *result, const struct ibv_mr *mr,
	      const struct vrnic_done *done)
{
	struct vrnic_ndesc_rmw more = { .operand = operand, .compare = compare };
	struct vrnic_request req = {
		.desc = {
			.opcode = VRNIC_NOP_RMW,
			.length = width,
			.local_addr = (uintptr_t)result,
			.remote_addr = remote,
			.lkey = result && mr ? mr->lkey : 0,
			.rkey = rkey,
			.arg = op,
		},
		.parts = { { .iov_base = &more, .iov_len = sizeof(more) } },
		.nr_parts = 1,
	};

	if (!endpoint || (result && !mr) || !rmw_fits(op, width, remote))
		return -EINVAL;
	return vrnic_post(endpoint->context, endpoint, &req, done);
}

/* ---- typed (S3) ---- */

static bool type_fits(const struct vrnic_context *ctx,
		      const struct vrnic_type *type)
{
	return type && type->complete && type->client == ctx->client;
}

static bool types_fit(const struct vrnic_context *ctx,
		      const struct vrnic_type *a, const struct vrnic_type *b,
		      uint32_t mode)
{
	if (!type_fits(ctx, a) || !type_fits(ctx, b) ||
	    a->info.bytes != b->info.bytes || mode > VRNIC_TYPED_CHUNKS)
		return false;
	return mode != VRNIC_TYPED_SAME || a == b ||
	       vrnic_rows_equal(&a->rows, &b->rows);
}

static int post_typed(uint8_t opcode, struct vrnic_endpoint *ep,
		      const void *local, const struct ibv_mr *mr,
		      const struct vrnic_type *local_type, uint64_t remote,
		      uint32_t rkey, const struct vrnic_type *remote_type,
		      uint32_t mode, const struct vrnic_done *done)
{
	struct vrnic_ndesc_typed more = { .mode = mode };
	struct vrnic_request req = {
		.desc = {
			.opcode = opcode,
			.flags = VRNIC_NDESC_TYPED,
			.local_addr = (uintptr_t)local,
			.remote_addr = remote,
			.rkey = rkey,
		},
		.parts = { { .iov_base = &more, .iov_len = sizeof(more) } },
		.nr_parts = 1,
		/* held, not changed */
		.types = { (void *)local_type, (void *)remote_type },
	};

	if (!ep || !mr || !types_fit(ep->context, local_type, remote_type, mode))
		return -EINVAL;
	more.local_type = local_type->number;
	more.remote_type = remote_type->number;
	req.desc.length = local_type->info.bytes;
	req.desc.lkey = mr->lkey;
	return vrnic_post(ep->context, ep, &req, done);
}

VRNIC_EXPORT
int vrnic_put_typed(struct vrnic_endpoint *endpoint, const void *local,
		    const struct ibv_mr *mr, const struct vrnic_type *local_type,
		    uint64_t remote, uint32_t rkey,
		    const struct vrnic_type *remote_type, uint32_t mode,
		    const struct vrnic_done *done)
{
	return post_typed(VRNIC_NOP_PUT, endpoint, local, mr, local_type,
			  remote, rkey, remote_type, mode, done);
}

VRNIC_EXPORT
int vrnic_get_typed(struct vrnic_endpoint *endpoint, void *local,
		    const struct ibv_mr *mr, const struct vrnic_type *local_type,
		    uint64_t remote, uint32_t rkey,
		    const struct vrnic_type *remote_type, uint32_t mode,
		    const struct vrnic_done *done)
{
	return post_typed(VRNIC_NOP_GET, endpoint, local, mr, local_type,
			  remote, rkey, remote_type, mode, done);
}
