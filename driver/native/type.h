/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types, and transfers between memory of one type and memory of another (S3).
 *
 * The rows of a type never change. Tables (struct vrnic_pair) keep what two types have in common.
 */
#ifndef VRNIC_TYPE_H
#define VRNIC_TYPE_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <rdma/uverbs_ioctl.h>

#include "lib/type_rows.h"

struct mem_cgroup;
struct vrnic_dev;
struct vrnic_seg;

/**
 * struct vrnic_type - a type
 * @rcu: for the RCU grace period after the last reference
 * @refs: references of the owner, and of each transfer that uses the type
 * @dev: device
 * @owner: number of the context that made the type
 * @number: number by which descriptors name the type
 * @serial: serial number that no other type has or had
 * @memcg: memory cgroup of the process that made the type; charged for tables; a reference is held
 * @as_local: list of struct vrnic_pair with this type as @local, newest first; written with
 *	pairs_lock held, read under RCU
 * @as_remote: list of struct vrnic_pair with this type as @remote; protected by pairs_lock
 * @nr_pairs: number of tables in @as_local; protected by pairs_lock
 * @rows: the description of the type
 */
struct vrnic_type {
	struct rcu_head rcu;
	refcount_t refs;
	struct vrnic_dev *dev;
	u64 owner;
	u32 number;
	u64 serial;
	struct mem_cgroup *memcg;
	struct list_head as_local;
	struct list_head as_remote;
	unsigned int nr_pairs;
	struct vrnic_rows rows;
};

/* Offset of the lowest byte from the base address. The sum may wrap, so the caller checks. */
static inline s64 vrnic_type_lower(const struct vrnic_type *type)
{
	return type->rows.lower;
}

/* Bytes of storage from the lowest to the highest byte, both included. */
static inline u64 vrnic_type_span(const struct vrnic_type *type)
{
	return type->rows.span;
}

/* Bytes of data. */
static inline u64 vrnic_type_bytes(const struct vrnic_type *type)
{
	return type->rows.bytes;
}

enum vrnic_pair_kind {
	VRNIC_PAIR_SAME,	/* no table: the types differ at most in where the storage begins */
	VRNIC_PAIR_TABLE,	/* there is a table */
	VRNIC_PAIR_LARGE,	/* no table: it would be too large */
};

/**
 * struct vrnic_pair - a table of the chunks that two types have in common, computed once
 * @rcu: for the RCU grace period after the last reference
 * @refs: one reference of the two lists, and one of each transfer that uses the table
 * @in_local: entry in @local->as_local
 * @in_remote: entry in @remote->as_remote
 * @local: type; only valid while the table is in the lists
 * @remote: type; only valid while the table is in the lists
 * @kind: is there a table?
 * @nr: number of rows
 * @row: the table
 */
struct vrnic_pair {
	struct rcu_head rcu;
	refcount_t refs;
	struct list_head in_local;
	struct list_head in_remote;
	struct vrnic_type *local;
	struct vrnic_type *remote;
	enum vrnic_pair_kind kind;
	u32 nr;
	struct vrnic_common_row row[];
};

/**
 * struct vrnic_walk - a position in a sequence of chunks that two types have in common
 * @row: current row: in a table, or &@own
 * @own: last row that @merge made; at first an empty row
 * @merge: makes one row after the other if there is no table
 * @chunk: number of chunks of @row that are done
 * @skip: number of bytes that are done of the next chunk
 */
struct vrnic_walk {
	const struct vrnic_common_row *row;
	struct vrnic_common_row own;
	struct vrnic_merge merge;
	u64 chunk;
	u64 skip;
};

/**
 * struct vrnic_typed - a typed transfer in progress
 * @type: types of the local and of the remote memory; references are held
 * @mode: enum vrnic_typed_mode that is used; not VRNIC_TYPED_AUTO
 * @left: bytes to come
 * @work: bytes of rows that were compared to begin it; U64_MAX: a table was computed
 * @pair: CHUNKS: the table, with a reference held; NULL: walk[0].merge makes the rows
 * @walk: walk[0]: the position; PACKED: the position in each type
 * @flat: PACKED: the one row that describes all of the data, packed
 * @bounce: PACKED: buffer for a portion of the data, packed at the origin
 *
 * No lock: the caller uses a transfer in one task at a time. It must stay at its address, as @walk
 * points into it.
 */
struct vrnic_typed {
	struct vrnic_type *type[VRNIC_SIDES];
	u32 mode;
	u64 left;
	u64 work;
	struct vrnic_pair *pair;
	struct vrnic_walk walk[VRNIC_SIDES];
	struct vrnic_type_row flat;
	void *bounce;
};

/**
 * struct vrnic_half - a position in the data of one type, while they are packed or unpacked
 * @rows: the type; NULL: none
 * @walk: the position in the storage
 * @flat: the one row that describes all of the data, packed
 * @pos: number of bytes that are done
 *
 * @walk points into this structure, so vrnic_half_set() copies it.
 */
struct vrnic_half {
	const struct vrnic_rows *rows;
	struct vrnic_walk walk;
	struct vrnic_type_row flat;
	u64 pos;
};

/* type.c */
extern const struct uapi_definition vrnic_type_defs[];
struct vrnic_type *vrnic_type_create(struct vrnic_dev *dev,
				     u64 owner, struct vrnic_type_row *row, u32 nr);
void vrnic_type_destroy(struct vrnic_type *type);
struct vrnic_type *vrnic_type_get(struct vrnic_dev *dev, u64 owner, u32 number);
void vrnic_type_put(struct vrnic_type *type);
void *vrnic_type_alloc(struct vrnic_type *type, size_t bytes);
struct vrnic_pair *vrnic_pair_find(const struct vrnic_type *local,
				   const struct vrnic_type *remote);
struct vrnic_pair *vrnic_pair_get(struct vrnic_type *local,
				  struct vrnic_type *remote);
void vrnic_pair_put(struct vrnic_pair *pair);

/* typed_copy.c */
int vrnic_typed_begin(struct vrnic_typed *t, struct vrnic_type *local,
		      struct vrnic_type *remote, u32 mode);
u64 vrnic_typed_copy(struct vrnic_typed *t, const struct vrnic_seg *dst,
		     const struct vrnic_seg *src, bool dst_is_remote,
		     u64 max_bytes);
void vrnic_typed_end(struct vrnic_typed *t);
void vrnic_half_begin(struct vrnic_half *half, const struct vrnic_rows *rows);
void vrnic_half_set(struct vrnic_half *half, const struct vrnic_half *from);
void vrnic_half_skip(struct vrnic_half *half, u64 n);
void vrnic_half_copy(struct vrnic_half *half, const struct vrnic_seg *storage,
		     void *packed, u64 n, bool pack, bool final);

#endif /* VRNIC_TYPE_H */
