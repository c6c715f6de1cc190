/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The metadata of a type: its contiguous chunks, as rows (S3.1). Nothing here
 * knows of a device, so tests/unit can compile it alone.
 *
 * Chunks are kept in the order of the type's bytes. A chunk that starts where the
 * one before it ends is part of it; chunks of one size at equal distances are one
 * row. The rows depend on the chunks only, not on the calls that added them: so
 * two types are equal if their rows are.
 */
#ifndef LIBVRNIC_ROWS_H
#define LIBVRNIC_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/vrnic-abi.h>

struct vrnic_type_info;

/**
 * struct vrnic_rows - rows of a type
 * @row: the rows; the stride of a row with one chunk is 0
 * @nr: how many
 * @room: how many fit into @row
 * @bytes: of all chunks; at most INT64_MAX, since counters are signed
 */
struct vrnic_rows {
	struct vrnic_type_row *row;
	size_t nr;
	size_t room;
	uint64_t bytes;
};

int vrnic_rows_add(struct vrnic_rows *rows, uint64_t bytes, int64_t offset,
		   uint64_t count, int64_t stride);
int vrnic_rows_add_rows(struct vrnic_rows *rows, const struct vrnic_rows *sub,
			int64_t offset, uint64_t count, int64_t stride);
void vrnic_rows_info(const struct vrnic_rows *rows,
		     struct vrnic_type_info *info);
bool vrnic_rows_equal(const struct vrnic_rows *a, const struct vrnic_rows *b);
int vrnic_rows_save(const struct vrnic_rows *rows, void *buffer,
		    size_t *length);
int vrnic_rows_load(struct vrnic_rows *rows, const void *buffer, size_t length);
void vrnic_rows_free(struct vrnic_rows *rows);

#endif /* LIBVRNIC_ROWS_H */
