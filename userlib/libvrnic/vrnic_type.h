/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libvrnic: layouts of memory, and transfers between two of them without a buffer. See
 * vrnic_type_create(3) and vrnic_put_typed(3). A type belongs to a client.
 */
#ifndef LIBVRNIC_TYPE_H
#define LIBVRNIC_TYPE_H

#include "vrnic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vrnic_type;

struct vrnic_typed_wr {		/* put_typed, get_typed; types count offsets from local, remote */
	uint64_t comp_mask;
	void *local;
	const struct ibv_mr *mr;
	const struct vrnic_type *local_type;
	uint64_t remote;
	const struct vrnic_type *remote_type;
	uint32_t rkey;
	uint32_t mode;		/* enum vrnic_typed_mode */
};

struct vrnic_type_info {
	uint64_t comp_mask;
	uint64_t bytes;		/* data in it */
	int64_t lower;		/* offset of its first byte */
	int64_t upper;		/* offset after its last byte */
	uint64_t chunks;	/* contiguous ones; each element of a vector counts */
	uint64_t rows;		/* of its metadata */
};

int vrnic_type_create(struct vrnic_client *client, struct vrnic_type **type);
int vrnic_type_add_simple(struct vrnic_type *type, uint64_t bytes, int64_t offset,
			  uint64_t count, int64_t stride);
int vrnic_type_add_typed(struct vrnic_type *type, const struct vrnic_type *subtype,
			 int64_t offset, uint64_t count, int64_t stride);
int vrnic_type_complete(struct vrnic_type *type);
int vrnic_type_query(const struct vrnic_type *type, struct vrnic_type_info *info);
int vrnic_type_serialize(const struct vrnic_type *type, void *buffer, size_t *length);
int vrnic_type_deserialize(struct vrnic_client *client, const void *buffer, size_t length,
			   struct vrnic_type **type);
int vrnic_type_destroy(struct vrnic_type *type);

int vrnic_put_typed(struct vrnic_endpoint *ep, const struct vrnic_typed_wr *wr,
		    const struct vrnic_done *done);
int vrnic_get_typed(struct vrnic_endpoint *ep, const struct vrnic_typed_wr *wr,
		    const struct vrnic_done *done);

#ifdef __cplusplus
}
#endif

#endif /* LIBVRNIC_TYPE_H */
