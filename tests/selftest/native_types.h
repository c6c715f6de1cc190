/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types beside a model of them: the offset of every byte, in order. What a
 * transfer has to do is then one line: remote[remote_at[i]] = local[local_at[i]].
 */
#ifndef NATIVE_TYPES_H
#define NATIVE_TYPES_H

#include "native_util.h"

/**
 * struct model - what a type means, byte by byte
 * @bytes: data in it
 * @at: offset of each byte
 */
struct model {
	size_t bytes;
	int64_t *at;
};

/* Offsets stay within [-REACH, REACH). */
#define REACH		8192

int model_add_simple(struct model *m, uint64_t bytes, int64_t offset,
		     uint64_t count, int64_t stride);
int model_add_typed(struct model *m, const struct model *sub, int64_t offset,
		    uint64_t count, int64_t stride);
int64_t model_lower(const struct model *m);
int64_t model_upper(const struct model *m);
void model_free(struct model *m);

/* What the transfer does, on plain memory. */
void model_copy(uint8_t *dst, const struct model *to, const uint8_t *src,
		const struct model *from);

/**
 * struct typed - a type and its model
 */
struct typed {
	struct vrnic_type *type;
	struct model model;
};

/* A complete type of @bytes from simple chunks and nested types. */
int typed_random(struct typed *t, struct vrnic_client *client, struct rng *rng,
		 size_t bytes, int depth);
int typed_free(struct typed *t);

#endif /* NATIVE_TYPES_H */
