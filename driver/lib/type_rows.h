/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Metadata of types: rows of chunks, and the chunks that two types have in
 * common (S3.1, S3.5). Arithmetic only; this file needs nothing of ib_core.
 */
#ifndef VRNIC_TYPE_ROWS_H
#define VRNIC_TYPE_ROWS_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

/**
 * struct vrnic_rows - a type's metadata, checked
 * @nr: rows
 * @lower: offset of its lowest byte
 * @span: bytes from there to after its highest one
 * @bytes: data in it; not 0
 * @row: the rows. Their offsets are not negative: they count from @lower.
 */
struct vrnic_rows {
	u32 nr;
	s64 lower;
	u64 span;
	u64 bytes;
	struct vrnic_type_row *row;
};

/* The sides of a pair of types. */
enum vrnic_side {
	VRNIC_SIDE_LOCAL,
	VRNIC_SIDE_REMOTE,
	VRNIC_SIDES
};

/**
 * struct vrnic_common_row - @count chunks that are contiguous on both sides
 * @bytes: of each chunk
 * @count: how many
 * @side: where they are: offset of the first one from the side's lowest byte,
 *	and from the start of one to the start of the next, modulo 2^64
 */
struct vrnic_common_row {
	u64 bytes;
	u64 count;
	struct {
		u64 offset;
		u64 stride;
	} side[VRNIC_SIDES];
};

/**
 * struct vrnic_cursor - a position in a type's data
 * @row: row; after the last one at the end
 * @left: chunks of the row that are not done
 * @offset: of the current chunk
 * @skip: bytes of it that are done; less than the chunk has
 */
struct vrnic_cursor {
	const struct vrnic_type_row *row;
	u64 left;
	u64 offset;
	u64 skip;
};

/**
 * struct vrnic_merge - a position in what two types have in common
 * @at: position in either; both have the same data behind them
 * @left: bytes to come
 */
struct vrnic_merge {
	struct vrnic_cursor at[VRNIC_SIDES];
	u64 left;
};

int vrnic_rows_check(struct vrnic_rows *rows);
bool vrnic_rows_equal(const struct vrnic_rows *a, const struct vrnic_rows *b);

void vrnic_merge_begin(struct vrnic_merge *m, const struct vrnic_rows *local,
		       const struct vrnic_rows *remote);
bool vrnic_merge_next(struct vrnic_merge *m, struct vrnic_common_row *row);
int vrnic_rows_common(const struct vrnic_rows *local,
		      const struct vrnic_rows *remote,
		      struct vrnic_common_row *out, u32 room, u32 *nr);

#endif /* VRNIC_TYPE_ROWS_H */
