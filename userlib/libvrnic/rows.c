// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Building, comparing and serializing the rows of a type. */

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "vrnic_type.h"

/* ---- bounds of sums ---- */

/* Compute the offset of the last of @count blocks. Return: false if it overflows. */
static bool last_offset(int64_t offset, uint64_t count, int64_t stride,
			int64_t *last)
{
	int64_t way;

	return !__builtin_mul_overflow(count - 1, stride, &way) &&
	       !__builtin_add_overflow(offset, way, last);
}

/* Do the bounds of a block, [@lower, @upper), fit into 64 bits for each of @count blocks? */
static bool extent_fits(int64_t lower, int64_t upper, int64_t offset,
			uint64_t count, int64_t stride)
{
	int64_t last, unused;

	return last_offset(offset, count, stride, &last) &&
	       !__builtin_add_overflow(lower, offset, &unused) &&
	       !__builtin_add_overflow(upper, offset, &unused) &&
	       !__builtin_add_overflow(lower, last, &unused) &&
	       !__builtin_add_overflow(upper, last, &unused);
}

/* Do @rows with @count blocks of @bytes more have at most INT64_MAX bytes? */
static bool total_fits(const struct vrnic_rows *rows, uint64_t bytes,
		       uint64_t count)
{
	uint64_t total;

	return !__builtin_mul_overflow(bytes, count, &total) &&
	       !__builtin_add_overflow(rows->bytes, total, &total) &&
	       total <= INT64_MAX;
}

/* ---- chunk after chunk ---- */

static int push(struct vrnic_rows *rows, int64_t offset, uint64_t bytes)
{
	size_t room = rows->room ? rows->room * 2 : 4;
	struct vrnic_type_row *row;

	if (rows->nr >= VRNIC_TYPE_ROWS_MAX)
		return -E2BIG;
	if (rows->nr == rows->room) {
		row = realloc(rows->row, room * sizeof(*row));
		if (!row)
			return -ENOMEM;
		rows->row = row;
		rows->room = room;
	}
	rows->row[rows->nr++] = (struct vrnic_type_row){
		.offset = offset,
		.bytes = bytes,
		.count = 1,
	};
	return 0;
}

static struct vrnic_type_row *last_row(const struct vrnic_rows *rows)
{
	return rows->nr ? &rows->row[rows->nr - 1] : NULL;
}

/* Return: false if the difference overflows. The offsets themselves fit into 64 bits. */
static bool distance(int64_t from, int64_t to, int64_t *stride)
{
	return !__builtin_sub_overflow(to, from, stride);
}

static int64_t last_chunk(const struct vrnic_type_row *row)
{
	return row->offset + (int64_t)(row->count - 1) * row->stride;
}

/* Does the chunk continue the row: has it the row's size and stride? Sets @stride. */
static bool extends(const struct vrnic_type_row *row, int64_t offset,
		    uint64_t bytes, int64_t *stride)
{
	return row->bytes == bytes &&
	       distance(last_chunk(row), offset, stride) &&
	       (row->count == 1 || row->stride == *stride);
}

/* Add a chunk that is not adjacent to the last one. */
static int append(struct vrnic_rows *rows, int64_t offset, uint64_t bytes)
{
	struct vrnic_type_row *row = last_row(rows);
	int64_t stride;

	if (!row || !extends(row, offset, bytes, &stride))
		return push(rows, offset, bytes);
	row->stride = stride;
	row->count++;
	return 0;
}

/* Take the last chunk off the rows. Return: its offset. */
static int64_t pop(struct vrnic_rows *rows)
{
	struct vrnic_type_row *row = last_row(rows);
	int64_t offset = last_chunk(row);

	if (--row->count == 0)
		rows->nr--;
	if (row->count == 1)
		row->stride = 0;
	return offset;
}

static int add_chunk(struct vrnic_rows *rows, int64_t offset, uint64_t bytes)
{
	struct vrnic_type_row *row = last_row(rows);

	if (!row || last_chunk(row) + (int64_t)row->bytes != offset)
		return append(rows, offset, bytes);
	bytes += row->bytes;
	return append(rows, pop(rows), bytes);
}

/* Is the chunk at @offset the last one of a row that has this size and stride? */
static bool in_step(const struct vrnic_rows *rows, int64_t offset,
		    uint64_t bytes, int64_t stride)
{
	const struct vrnic_type_row *row = last_row(rows);

	return row->count > 1 && row->bytes == bytes &&
	       row->stride == stride && last_chunk(row) == offset;
}

/*
 * Add chunks one by one until the last row has their size and stride, which takes few; then add
 * all the others to that row at once.
 */
static int add_chunks(struct vrnic_rows *rows, uint64_t bytes, int64_t offset,
		      uint64_t count, int64_t stride)
{
	int ret;

	if (stride > 0 && (uint64_t)stride == bytes) {
		bytes *= count;
		count = 1;
	}
	for (;;) {
		ret = add_chunk(rows, offset, bytes);
		if (ret || !--count)
			return ret;
		if (in_step(rows, offset, bytes, stride)) {
			last_row(rows)->count += count;
			return 0;
		}
		offset += stride;
	}
}

/* ---- all or nothing ---- */

/* The state of rows before something is added. Adding changes at most the last two of them. */
struct mark {
	size_t nr;
	uint64_t bytes;
	struct vrnic_type_row tail[2];
};

static size_t tail_of(size_t nr)
{
	return nr < 2 ? nr : 2;
}

static struct mark mark(const struct vrnic_rows *rows)
{
	struct mark m = { .nr = rows->nr, .bytes = rows->bytes };
	size_t n = tail_of(m.nr);

	if (n)
		memcpy(m.tail, rows->row + m.nr - n, n * sizeof(*m.tail));
	return m;
}

static void go_back(struct vrnic_rows *rows, const struct mark *m)
{
	size_t n = tail_of(m->nr);

	rows->nr = m->nr;
	rows->bytes = m->bytes;
	if (n)
		memcpy(rows->row + m->nr - n, m->tail, n * sizeof(*m->tail));
}

/**
 * vrnic_rows_add() - add a vector of blocks
 * @rows: rows
 * @bytes: of each block
 * @offset: of the first block
 * @count: how many blocks
 * @stride: from the start of one block to the start of the next
 *
 * Return: 0, -EINVAL (nothing to add), -EOVERFLOW, -E2BIG or -ENOMEM; after a failure
 * @rows are as before.
 */
int vrnic_rows_add(struct vrnic_rows *rows, uint64_t bytes, int64_t offset,
		   uint64_t count, int64_t stride)
{
	struct mark before = mark(rows);
	int ret;

	if (!bytes || !count)
		return -EINVAL;
	if (!total_fits(rows, bytes, count) ||
	    !extent_fits(0, (int64_t)bytes, offset, count, stride))
		return -EOVERFLOW;
	ret = add_chunks(rows, bytes, offset, count, stride);
	if (ret)
		go_back(rows, &before);
	else
		rows->bytes += bytes * count;
	return ret;
}

/* ---- nesting ---- */

static int add_shifted(struct vrnic_rows *rows, const struct vrnic_rows *sub,
		       int64_t offset)
{
	const struct vrnic_type_row *row;
	int ret = 0;

	for (row = sub->row; row < sub->row + sub->nr && !ret; row++)
		ret = add_chunks(rows, row->bytes, offset + row->offset,
				 row->count, row->stride);
	return ret;
}

static int add_each(struct vrnic_rows *rows, const struct vrnic_rows *sub,
		    int64_t offset, uint64_t count, int64_t stride)
{
	int ret;

	if (count > VRNIC_TYPE_ROWS_MAX / sub->nr)
		return -E2BIG;
	for (;;) {
		ret = add_shifted(rows, sub, offset);
		if (ret || !--count)
			return ret;
		offset += stride;
	}
}

/* A vector of vectors is one vector if each begins one stride behind the last chunk before it. */
static bool is_seamless(const struct vrnic_type_row *row, int64_t stride)
{
	int64_t whole;

	return !__builtin_mul_overflow(row->count, row->stride, &whole) &&
	       whole == stride;
}

static int add_nested(struct vrnic_rows *rows, const struct vrnic_rows *sub,
		      int64_t offset, uint64_t count, int64_t stride)
{
	const struct vrnic_type_row *row = sub->row;

	if (sub->nr == 1 && row->count == 1)
		return add_chunks(rows, row->bytes, offset + row->offset, count,
				  stride);
	if (sub->nr == 1 && is_seamless(row, stride))
		return add_chunks(rows, row->bytes, offset + row->offset,
				  row->count * count, row->stride);
	return add_each(rows, sub, offset, count, stride);
}

/**
 * vrnic_rows_add_rows() - add a vector of types
 * @rows: rows
 * @sub: rows of the block; not empty
 * @offset: where the first block's offsets count from
 * @count: how many blocks
 * @stride: from one block to the next
 *
 * Return: as vrnic_rows_add(); -E2BIG also if each block needs rows of its own, and that
 * could become too many rows.
 */
int vrnic_rows_add_rows(struct vrnic_rows *rows, const struct vrnic_rows *sub,
			int64_t offset, uint64_t count, int64_t stride)
{
	struct mark before = mark(rows);
	struct vrnic_type_info info;
	int ret;

	if (!sub->nr || !count)
		return -EINVAL;
	vrnic_rows_info(sub, &info);
	if (!total_fits(rows, sub->bytes, count) ||
	    !extent_fits(info.lower, info.upper, offset, count, stride))
		return -EOVERFLOW;
	ret = add_nested(rows, sub, offset, count, stride);
	if (ret)
		go_back(rows, &before);
	else
		rows->bytes += sub->bytes * count;
	return ret;
}

/* ---- looking at them ---- */

static int64_t min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void vrnic_rows_info(const struct vrnic_rows *rows,
		     struct vrnic_type_info *info)
{
	const struct vrnic_type_row *row;
	int64_t last;

	*info = (struct vrnic_type_info){
		.bytes = rows->bytes,
		.lower = rows->nr ? INT64_MAX : 0,
		.upper = rows->nr ? INT64_MIN : 0,
		.rows = rows->nr,
	};
	for (row = rows->row; row < rows->row + rows->nr; row++) {
		last = last_chunk(row);
		info->lower = min_of(info->lower, min_of(row->offset, last));
		info->upper = max_of(info->upper, max_of(row->offset, last) +
						  (int64_t)row->bytes);
		info->chunks += row->count;
	}
}

bool vrnic_rows_equal(const struct vrnic_rows *a, const struct vrnic_rows *b)
{
	return a->nr == b->nr &&
	       (!a->nr || !memcmp(a->row, b->row, a->nr * sizeof(*a->row)));
}

void vrnic_rows_free(struct vrnic_rows *rows)
{
	free(rows->row);
	*rows = (struct vrnic_rows){};
}

/* ---- as bytes, for any host ---- */

#define MAGIC	0x70797476U	/* "vtyp" */
#define VERSION	1U

/* All members are little-endian; @nr times struct saved_row follow. */
struct saved {
	uint32_t magic;
	uint32_t version;
	uint64_t nr;
	uint64_t bytes;
};

struct saved_row {
	uint64_t offset;
	uint64_t bytes;
	uint64_t count;
	uint64_t stride;
};

static void *save_row(void *to, const struct vrnic_type_row *row)
{
	struct saved_row saved = {
		.offset = htole64((uint64_t)row->offset),
		.bytes = htole64(row->bytes),
		.count = htole64(row->count),
		.stride = htole64((uint64_t)row->stride),
	};

	return (uint8_t *)memcpy(to, &saved, sizeof(saved)) + sizeof(saved);
}

/**
 * vrnic_rows_save() - serialize
 * @rows: rows
 * @buffer: where to, with any alignment; NULL: only compute the size
 * @length: the size of @buffer; the call sets it to the bytes that are needed
 *
 * Return: 0 or -ENOSPC.
 */
int vrnic_rows_save(const struct vrnic_rows *rows, void *buffer, size_t *length)
{
	struct saved head = {
		.magic = htole32(MAGIC),
		.version = htole32(VERSION),
		.nr = htole64(rows->nr),
		.bytes = htole64(rows->bytes),
	};
	size_t room = *length, i;
	uint8_t *to = buffer;

	*length = sizeof(head) + rows->nr * sizeof(struct saved_row);
	if (!buffer || room < *length)
		return -ENOSPC;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (i = 0; i < rows->nr; i++)
		to = save_row(to, &rows->row[i]);
	return 0;
}

static int load_row(struct vrnic_rows *rows, const void *from)
{
	struct saved_row saved;
	int ret;

	memcpy(&saved, from, sizeof(saved));
	ret = vrnic_rows_add(rows, le64toh(saved.bytes),
			     (int64_t)le64toh(saved.offset),
			     le64toh(saved.count),
			     (int64_t)le64toh(saved.stride));
	return ret == -ENOMEM ? ret : ret ? -EINVAL : 0;
}

static int load_rows(struct vrnic_rows *rows, const uint8_t *from,
		     const struct saved *head)
{
	uint64_t i;
	int ret;

	for (i = 0; i < le64toh(head->nr); i++) {
		ret = load_row(rows, from + i * sizeof(struct saved_row));
		if (ret)
			return ret;
	}
	return rows->bytes == le64toh(head->bytes) ? 0 : -EINVAL;
}

/**
 * vrnic_rows_load() - read what vrnic_rows_save() wrote
 * @rows: empty
 * @buffer: the bytes, which are not trusted
 * @length: their number
 *
 * Return: 0, -EINVAL (vrnic_rows_save() did not write this) or -ENOMEM.
 */
int vrnic_rows_load(struct vrnic_rows *rows, const void *buffer, size_t length)
{
	struct saved head;
	int ret;

	if (length < sizeof(head))
		return -EINVAL;
	memcpy(&head, buffer, sizeof(head));
	length -= sizeof(head);
	if (le32toh(head.magic) != MAGIC || le32toh(head.version) != VERSION ||
	    !head.nr || le64toh(head.nr) > VRNIC_TYPE_ROWS_MAX ||
	    length != le64toh(head.nr) * sizeof(struct saved_row))
		return -EINVAL;
	ret = load_rows(rows, (const uint8_t *)buffer + sizeof(head), &head);
	if (ret)
		vrnic_rows_free(rows);
	return ret;
}
