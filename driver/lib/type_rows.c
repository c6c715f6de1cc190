// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Descriptions of types. This file needs nothing from ib_core.
 *
 * Rows are merged as far as possible without changing the order of the data: adjacent bytes are one
 * chunk, and chunks at equal distances are one row, however the user described them. The rows of
 * the table of common chunks are merged, too: 4,096 chunks of 8 bytes, strided on both sides, are
 * one row of it.
 *
 * All positions are offsets from a type's lowest byte, computed modulo 2^64. Once
 * vrnic_rows_check() has accepted a type, the true offset of each chunk is between 0 and the span,
 * so intermediate sums may wrap without harm.
 */

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "lib/type_rows.h"

/*
 * Compute the offset of the lowest byte of a row, and the offset behind its highest byte. Return:
 * false if one of them does not fit an s64.
 */
static bool row_extent(const struct vrnic_type_row *row, s64 *lower, s64 *upper)
{
	s64 last;

	if (row->count == 1) {
		last = 0;
	} else if (row->count - 1 > S64_MAX ||
		   check_mul_overflow((s64)(row->count - 1), row->stride, &last)) {
		return false;
	}
	if (row->bytes > S64_MAX ||
	    check_add_overflow(row->offset, last, &last))
		return false;
	*lower = min(row->offset, last);
	return !check_add_overflow(max(row->offset, last), (s64)row->bytes,
				   upper);
}

static bool add_bytes(const struct vrnic_type_row *row, u64 *total)
{
	u64 bytes;

	return row->bytes && row->count &&
	       !check_mul_overflow(row->bytes, row->count, &bytes) &&
	       !check_add_overflow(*total, bytes, total);
}

/* Check each row, and compute the extent and the number of bytes of all rows. */
static int rows_measure(struct vrnic_rows *rows)
{
	s64 lower, upper, top = S64_MIN;
	u32 i;

	rows->bytes = 0;
	rows->lower = S64_MAX;
	for (i = 0; i < rows->nr; i++) {
		if (!add_bytes(&rows->row[i], &rows->bytes) ||
		    !row_extent(&rows->row[i], &lower, &upper))
			return -EINVAL;
		rows->lower = min(rows->lower, lower);
		top = max(top, upper);
	}
	if (!rows->bytes)
		return -EINVAL;
	rows->span = (u64)top - (u64)rows->lower;
	return 0;
}

/**
 * struct steps - chunks at equal distances
 * @at: offset of the first chunk
 * @stride: distance of neighbours; meaningless for a single chunk
 * @count: number of chunks
 */
struct steps {
	u64 at;
	u64 stride;
	u64 count;
};

/* Do the steps of @b continue those of @a? If so, set the stride that both have together in @a. */
static bool steps_join(struct steps *a, const struct steps *b)
{
	if (a->count == 1)
		a->stride = b->count == 1 ? b->at - a->at : b->stride;
	return b->at == a->at + a->count * a->stride &&
	       (b->count == 1 || b->stride == a->stride);
}

/*
 * The only form of a row in the result: offset from @lower, chunks that touch as one chunk, and
 * stride 0 for a single chunk. So vrnic_rows_equal() can compare bytes.
 */
static struct vrnic_type_row row_canonical(struct vrnic_type_row row, s64 lower)
{
	/* the true offset is not negative; above S64_MAX it looks negative, which does no harm */
	row.offset = (s64)((u64)row.offset - (u64)lower);
	if (row.count > 1 && row.stride == (s64)row.bytes) {
		row.bytes *= row.count;
		row.count = 1;
	}
	if (row.count == 1)
		row.stride = 0;
	return row;
}

/* Merge @next into @row, which it follows, if the two can be one row. */
static bool row_join(struct vrnic_type_row *row,
		     const struct vrnic_type_row *next)
{
	struct steps a = { row->offset, row->stride, row->count };
	struct steps b = { next->offset, next->stride, next->count };

	if (a.count == 1 && b.count == 1 && b.at == a.at + row->bytes) {
		row->bytes += next->bytes;
		return true;
	}
	if (row->bytes != next->bytes || !steps_join(&a, &b))
		return false;
	row->stride = (s64)a.stride;
	row->count += next->count;
	return true;
}

/**
 * vrnic_rows_check() - check a user's description of a type
 * @rows: @nr, not 0, and @row are set; the rest is filled in. Offsets of the rows then count from
 *	the lowest byte, and there are fewer rows if some could be merged.
 *
 * Return: 0; -EINVAL if a row is empty, or an offset or the number of bytes does not fit 64 bits.
 */
int vrnic_rows_check(struct vrnic_rows *rows)
{
	struct vrnic_type_row next;
	u32 i, nr = 0;
	int err;

	err = rows_measure(rows);
	if (err)
		return err;
	for (i = 0; i < rows->nr; i++) {
		next = row_canonical(rows->row[i], rows->lower);
		if (!nr || !row_join(&rows->row[nr - 1], &next))
			rows->row[nr++] = next;
	}
	rows->nr = nr;
	rows->least = rows->bytes;
	for (i = 0; i < nr; i++)
		rows->least = min(rows->least, rows->row[i].bytes);
	return 0;
}

/* Do both types describe the same bytes in the same order, apart from where the storage starts? */
bool vrnic_rows_equal(const struct vrnic_rows *a, const struct vrnic_rows *b)
{
	return a->nr == b->nr && a->span == b->span && a->bytes == b->bytes &&
	       !memcmp(a->row, b->row, a->nr * sizeof(*a->row));
}

static void cursor_load(struct vrnic_cursor *c)
{
	c->left = c->row->count;
	c->offset = c->row->offset;
}

/* If the cursor's row is done, go to the next one; the caller knows that there is one. */
static void cursor_settle(struct vrnic_cursor *c)
{
	if (!c->left) {
		c->row++;
		cursor_load(c);
	}
}

static void cursor_chunks(struct vrnic_cursor *c, u64 n)
{
	c->left -= n;
	c->offset += n * (u64)c->row->stride;
}

/* Move on by @count pieces of @bytes: whole chunks, or all in the same chunk. */
static void cursor_move(struct vrnic_cursor *c, u64 bytes, u64 count)
{
	if (bytes == c->row->bytes) {
		cursor_chunks(c, count);
		return;
	}
	c->skip += bytes * count;
	if (c->skip == c->row->bytes) {
		c->skip = 0;
		cursor_chunks(c, 1);
	}
}

/*
 * How many pieces of @bytes follow this position at equal distances, and at which distance? If a
 * piece is a whole chunk, these are the chunks left in the row; if it is smaller, the pieces left
 * in the chunk.
 */
static u64 cursor_pieces(const struct vrnic_cursor *c, u64 bytes, u64 *stride)
{
	u64 left = c->row->bytes - c->skip;

	*stride = bytes;
	if (bytes == c->row->bytes) {
		*stride = c->row->stride;
		return c->left;
	}
	return left - bytes < bytes ? 1 : div64_u64(left, bytes);
}

/**
 * vrnic_merge_begin() - start to walk through two types side by side
 * @m: position in both, to be filled in
 * @local: type
 * @remote: type with as many bytes
 */
void vrnic_merge_begin(struct vrnic_merge *m, const struct vrnic_rows *local,
		       const struct vrnic_rows *remote)
{
	m->left = local->bytes;
	m->at[VRNIC_SIDE_LOCAL] = (struct vrnic_cursor){ .row = local->row };
	m->at[VRNIC_SIDE_REMOTE] = (struct vrnic_cursor){ .row = remote->row };
	cursor_load(&m->at[VRNIC_SIDE_LOCAL]);
	cursor_load(&m->at[VRNIC_SIDE_REMOTE]);
}

/**
 * vrnic_merge_next() - get the next chunks that are contiguous on both sides
 * @m: position; moves on
 * @row: to be filled in
 *
 * Return: true, or false if there is no more data.
 */
bool vrnic_merge_next(struct vrnic_merge *m, struct vrnic_common_row *row)
{
	struct vrnic_cursor *l = &m->at[VRNIC_SIDE_LOCAL];
	struct vrnic_cursor *r = &m->at[VRNIC_SIDE_REMOTE];

	if (!m->left)
		return false;
	cursor_settle(l);
	cursor_settle(r);
	row->side[VRNIC_SIDE_LOCAL].offset = l->offset + l->skip;
	row->side[VRNIC_SIDE_REMOTE].offset = r->offset + r->skip;
	row->bytes = min(l->row->bytes - l->skip, r->row->bytes - r->skip);
	row->count = min(cursor_pieces(l, row->bytes,
				       &row->side[VRNIC_SIDE_LOCAL].stride),
			 cursor_pieces(r, row->bytes,
				       &row->side[VRNIC_SIDE_REMOTE].stride));
	cursor_move(l, row->bytes, row->count);
	cursor_move(r, row->bytes, row->count);
	m->left -= row->bytes * row->count;
	return true;
}

static bool common_join(struct vrnic_common_row *row,
			const struct vrnic_common_row *next)
{
	struct steps a[VRNIC_SIDES], b;
	bool adjacent = row->count == 1 && next->count == 1;
	bool joins = row->bytes == next->bytes;
	int i;

	for (i = 0; i < VRNIC_SIDES; i++) {
		a[i] = (struct steps){ row->side[i].offset, row->side[i].stride,
				       row->count };
		b = (struct steps){ next->side[i].offset, next->side[i].stride,
				    next->count };
		adjacent = adjacent && b.at == a[i].at + row->bytes;
		joins = joins && steps_join(&a[i], &b);
	}
	if (adjacent) {
		row->bytes += next->bytes;
	} else if (joins) {
		row->count += next->count;
		for (i = 0; i < VRNIC_SIDES; i++)
			row->side[i].stride = a[i].stride;
	}
	return adjacent || joins;
}

/**
 * vrnic_rows_common() - compute the table of what two types have in common
 * @local: type
 * @remote: type with as many bytes
 * @out: room for the table, or NULL to count its rows only
 * @room: most rows of the table
 * @nr: set to the number of rows
 *
 * VRNIC_COMMON_STEPS bounds the time that this takes, whatever the types and @room are: what could
 * be counted fits into a table of as many rows.
 *
 * Return: 0, or -E2BIG if the table would have more rows than @room, or take too long.
 */
int vrnic_rows_common(const struct vrnic_rows *local,
		      const struct vrnic_rows *remote,
		      struct vrnic_common_row *out, u32 room, u32 *nr)
{
	struct vrnic_common_row last, next;
	u32 steps = VRNIC_COMMON_STEPS;
	struct vrnic_merge m;

	*nr = 0;
	vrnic_merge_begin(&m, local, remote);
	vrnic_merge_next(&m, &last);
	while (vrnic_merge_next(&m, &next)) {
		if (!steps--)
			return -E2BIG;
		if (common_join(&last, &next))
			continue;
		/* @last takes a row, and @next will take at least one more */
		if (*nr + 1 >= room)
			return -E2BIG;
		if (out)
			out[*nr] = last;
		++*nr;
		last = next;
	}
	if (out)
		out[*nr] = last;
	++*nr;
	return 0;
}
