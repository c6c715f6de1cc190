/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Descriptions of types: rows of chunks, and the chunks that two types have in common (S3.1, S3.5
 * of Documentation/native.rst). Only arithmetic; this file needs nothing from ib_core.
 */
#ifndef VRNIC_TYPE_ROWS_H
#define VRNIC_TYPE_ROWS_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

/**
 * struct vrnic_rows - the checked description of a type
 * @nr: number of rows
 * @lower: offset of the lowest byte
 * @span: bytes from the lowest to the highest byte, both included
 * @bytes: bytes of data; not 0
 * @least: bytes of the smallest chunk; not 0
 * @row: the rows. Their offsets are not negative: they count from @lower.
 */
struct vrnic_rows {
	u32 nr;
	s64 lower;
	u64 span;
	u64 bytes;
	u64 least;
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
 * @bytes: bytes of each chunk
 * @count: number of chunks
 * @side: offset of the first chunk from the side's lowest byte, and distance of neighbours, modulo
 *	2^64
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
 * @row: current row; the row that is done if @left is 0
 * @left: chunks of the row that are not done
 * @offset: offset of the current chunk
 * @skip: bytes of the chunk that are done; fewer than the chunk has
 */
struct vrnic_cursor {
	const struct vrnic_type_row *row;
	u64 left;
	u64 offset;
	u64 skip;
};

/**
 * struct vrnic_merge - a position in what two types have in common
 * @at: position in each type; the same number of bytes is done in both
 * @left: bytes that are not done
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
/* Most steps that vrnic_rows_common() takes; more would keep a run for too long. */
#define VRNIC_COMMON_STEPS	65536

int vrnic_rows_common(const struct vrnic_rows *local,
		      const struct vrnic_rows *remote,
		      struct vrnic_common_row *out, u32 room, u32 *nr);

#endif /* VRNIC_TYPE_ROWS_H */
