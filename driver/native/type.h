/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types, and transfers between memory of one type and memory of another (S3).
 *
 * Types never change. The lists of tables that hang off them are protected by
 * a mutex in type.c and read under RCU.
 */
#ifndef VRNIC_TYPE_H
#define VRNIC_TYPE_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "lib/type_rows.h"

struct ib_ucontext;
struct mem_cgroup;
struct vrnic_dev;
struct vrnic_seg;

/**
 * struct vrnic_type - a type
 * @rcu: freed a grace period after the last reference
 * @refs: its owner, and each transfer that uses it
 * @dev: device
 * @uctx: context that made it. Only compared, never followed.
 * @number: what descriptors call it
 * @serial: no other type has it, or had it
 * @memcg: who pays for its tables; a reference is held
 * @as_local: struct vrnic_pair, a list, newest first; writers hold pairs_lock,
 *	readers RCU
 * @as_remote: the same from the other side; protected by pairs_lock
 * @nr_pairs: in @as_local; protected by pairs_lock
 * @rows: its metadata
 */
struct vrnic_type {
	struct rcu_head rcu;
	refcount_t refs;
	struct vrnic_dev *dev;
	struct ib_ucontext *uctx;
	u32 number;
	u64 serial;
	struct mem_cgroup *memcg;
	struct list_head as_local;
	struct list_head as_remote;
	unsigned int nr_pairs;
	struct vrnic_rows rows;
};

/* From a base address to the lowest byte; a base plus this may wrap: check. */
static inline s64 vrnic_type_lower(const struct vrnic_type *type)
{
	return type->rows.lower;
}

/* Bytes of storage from the lowest to after the highest one. */
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
	VRNIC_PAIR_SAME,	/* equal, but for where the storage begins */
	VRNIC_PAIR_TABLE,	/* here is the table */
	VRNIC_PAIR_LARGE,	/* it would be too large */
};

/**
 * struct vrnic_pair - what two types have in common, computed once
 * @rcu: freed a grace period after the last reference
 * @refs: the lists', and each transfer that uses it
 * @in_local: in @local's list
 * @in_remote: in @remote's list
 * @local: type; gone once this is in no list
 * @remote: type; likewise
 * @kind: what was found
 * @nr: rows
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
 * struct vrnic_walk - a position in a sequence of common chunks
 * @row: current row: in a table, or @own
 * @own: what @merge gave; to begin with, a row of nothing
 * @merge: where rows come from, if there is no table
 * @chunk: chunks of it that are done
 * @skip: bytes of the chunk after those that are done
 */
struct vrnic_walk {
	const struct vrnic_common_row *row;
	struct vrnic_common_row own;
	struct vrnic_merge merge;
	u64 chunk;
	u64 skip;
};

/**
 * struct vrnic_typed - a typed transfer under way
 * @type: the types; references are held
 * @mode: enum vrnic_typed_mode as it is done; not VRNIC_TYPED_AUTO
 * @left: bytes to come
 * @pair: CHUNKS: the table, with a reference held, or NULL: both types are
 *	followed side by side
 * @walk: where it is: the first one; PACKED: where it is in either type
 * @flat: PACKED: the one row of what is packed
 * @bounce: PACKED: what is packed at the origin
 *
 * Has no lock of its own: for one runner at a time. Must stay where it is, as
 * walks point into it.
 */
struct vrnic_typed {
	struct vrnic_type *type[VRNIC_SIDES];
	u32 mode;
	u64 left;
	struct vrnic_pair *pair;
	struct vrnic_walk walk[VRNIC_SIDES];
	struct vrnic_type_row flat;
	void *bounce;
};

/**
 * struct vrnic_half - a position in the data of one type, which are packed on the
 * other side; must stay where it is while the walk is in its own row
 * @walk: where it is in the storage
 * @flat: the one row of what is packed
 * @pos: bytes that are done
 */
struct vrnic_half {
	struct vrnic_walk walk;
	struct vrnic_type_row flat;
	u64 pos;
};

/* type.c */
struct vrnic_type *vrnic_type_create(struct vrnic_dev *dev,
				     struct ib_ucontext *uctx,
				     struct vrnic_type_row *row, u32 nr);
void vrnic_type_destroy(struct vrnic_type *type);
struct vrnic_type *vrnic_type_get(struct vrnic_dev *dev,
				  struct ib_ucontext *uctx, u32 number);
void vrnic_type_put(struct vrnic_type *type);
void *vrnic_type_alloc(struct vrnic_type *type, size_t bytes);
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
void vrnic_half_copy(struct vrnic_half *half, const struct vrnic_seg *storage,
		     void *packed, u64 n, bool pack, bool final);

#endif /* VRNIC_TYPE_H */
