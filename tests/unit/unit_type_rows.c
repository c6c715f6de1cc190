// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rows of types and what two types have in common (S3.1, S3.5), against a model
 * that lists the place of each byte.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>

#include "lib/type_rows.h"
#include "unit.h"

#define ROUNDS		20000
#define MAX_ROWS	12
#define MAX_BYTES	4096
#define MAX_COMMON	4096

/* struct type - a type as it was described, and as it was checked */
struct type {
	struct vrnic_type_row given[MAX_ROWS];
	struct vrnic_type_row row[MAX_ROWS];
	struct vrnic_rows rows;
};

static unsigned int seed = 1;

static u32 below(u32 n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

static int check(struct type *t, u32 nr)
{
	memcpy(t->row, t->given, sizeof(t->row));
	t->rows = (struct vrnic_rows){ .nr = nr, .row = t->row };
	return vrnic_rows_check(&t->rows);
}

/* The model: the place of each byte of some rows, one by one. */
static u64 list_bytes(const struct vrnic_type_row *row, u32 nr, s64 *place)
{
	u64 n = 0, c, b;
	u32 i;

	for (i = 0; i < nr; i++)
		for (c = 0; c < row[i].count; c++)
			for (b = 0; b < row[i].bytes; b++)
				place[n++] = (s64)((u64)row[i].offset +
						   c * (u64)row[i].stride + b);
	return n;
}

/* The same of a table of common chunks, for one side. */
static u64 list_common(const struct vrnic_common_row *row, u32 nr, int side,
		       s64 *place)
{
	u64 n = 0, c, b;
	u32 i;

	for (i = 0; i < nr; i++)
		for (c = 0; c < row[i].count; c++)
			for (b = 0; b < row[i].bytes; b++)
				place[n++] = (s64)(row[i].side[side].offset +
						   c * row[i].side[side].stride + b);
	return n;
}

/* A description of exactly @bytes, with what programs like to do. */
static u32 describe(struct type *t, u64 bytes)
{
	u32 i, unit;
	s64 next = (s64)below(200) - 100;

	for (i = 0; i < MAX_ROWS && bytes; i++) {
		struct vrnic_type_row *row = &t->given[i];

		unit = 1 + below(below(2) ? 8 : 64);
		row->bytes = unit < bytes && i < MAX_ROWS - 1 ? unit : bytes;
		row->count = 1 + below(bytes / row->bytes > 40 ? 40 : bytes / row->bytes);
		if (i == MAX_ROWS - 1)
			row->count = 1;
		row->stride = below(4) ? (s64)(row->bytes + below(24)) : (s64)below(200) - 100;
		row->offset = below(3) ? next : (s64)below(20000) - 10000;
		next = row->offset + (s64)row->count * row->stride;
		bytes -= row->bytes * row->count;
	}
	return i;
}

static void expect_same_bytes(struct type *t, u32 nr)
{
	static s64 given[MAX_BYTES], seen[MAX_BYTES];
	s64 lower = LLONG_MAX, upper = LLONG_MIN;
	u64 n, i;

	n = list_bytes(t->given, nr, given);
	CHECK_EQ(n, t->rows.bytes);
	CHECK_EQ(n, list_bytes(t->row, t->rows.nr, seen));
	for (i = 0; i < n; i++) {
		CHECK_EQ(given[i], seen[i] + t->rows.lower);
		lower = given[i] < lower ? given[i] : lower;
		upper = given[i] + 1 > upper ? given[i] + 1 : upper;
	}
	CHECK_EQ(lower, t->rows.lower);
	CHECK_EQ(upper - lower, t->rows.span);
	CHECK(t->rows.nr <= nr);
}

static void random_rows_keep_their_bytes(void)
{
	struct type t;
	int round;
	u32 nr;

	for (round = 0; round < ROUNDS && !unit_bad; round++) {
		nr = describe(&t, 1 + below(1000));
		CHECK_EQ(0, check(&t, nr));
		expect_same_bytes(&t, nr);
	}
}

/* No two neighbours in a table could have been one row of the naive kind. */
static void expect_common(const struct type *a, const struct type *b,
			  const struct vrnic_common_row *row, u32 nr)
{
	static s64 want[2][MAX_BYTES], seen[2][MAX_BYTES];
	u64 n = a->rows.bytes, i;
	int side;

	list_bytes(a->row, a->rows.nr, want[VRNIC_SIDE_LOCAL]);
	list_bytes(b->row, b->rows.nr, want[VRNIC_SIDE_REMOTE]);
	for (side = 0; side < VRNIC_SIDES; side++) {
		CHECK_EQ(n, list_common(row, nr, side, seen[side]));
		for (i = 0; i < n; i++)
			CHECK_EQ(want[side][i], seen[side][i]);
	}
}

/* A pair with the same number of bytes. */
static void random_pair(struct type *a, struct type *b)
{
	u64 bytes = 1 + below(below(2) ? 64 : 2000);

	CHECK_EQ(0, check(a, describe(a, bytes)));
	CHECK_EQ(0, check(b, describe(b, bytes)));
}

static void random_pairs_have_common_chunks(void)
{
	static struct vrnic_common_row table[MAX_COMMON];
	u64 most = 0, chunks = 0, rows = 0;
	struct type a, b;
	u32 nr, counted, i;
	int round;

	for (round = 0; round < ROUNDS && !unit_bad; round++) {
		random_pair(&a, &b);
		CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, NULL,
					      MAX_COMMON, &counted));
		CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, table, counted,
					      &nr));
		CHECK_EQ(counted, nr);
		expect_common(&a, &b, table, nr);
		for (i = 0; i < nr; i++)
			chunks += table[i].count;
		rows += nr;
		most = nr > most ? nr : most;
	}
	/* the pairs are such that something happens */
	CHECK(most > 20);
	CHECK(chunks > 2 * rows);
}

/* Row by row, as a transfer without a table goes. */
static void random_pairs_merge(void)
{
	static struct vrnic_common_row table[MAX_COMMON];
	struct vrnic_merge m;
	struct type a, b;
	int round;
	u32 nr;

	for (round = 0; round < ROUNDS && !unit_bad; round++) {
		random_pair(&a, &b);
		vrnic_merge_begin(&m, &a.rows, &b.rows);
		for (nr = 0; vrnic_merge_next(&m, &table[nr]); nr++)
			;
		CHECK_EQ(0, m.left);
		expect_common(&a, &b, table, nr);
	}
}

/* A table is given up exactly when it does not fit. */
static void room_is_exact(void)
{
	static struct vrnic_common_row table[MAX_COMMON];
	struct type a, b;
	int round;
	u32 nr, again;

	for (round = 0; round < ROUNDS / 10 && !unit_bad; round++) {
		random_pair(&a, &b);
		CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, NULL,
					      MAX_COMMON, &nr));
		if (nr == 1)
			continue;
		memset(table, 0xee, sizeof(table));
		CHECK(vrnic_rows_common(&a.rows, &b.rows, table, nr - 1,
					&again) < 0);
		CHECK_EQ(0xeeeeeeeeeeeeeeeeULL, table[nr - 1].bytes);
	}
}

static void set(struct type *t, u32 nr, const struct vrnic_type_row *rows)
{
	memcpy(t->given, rows, nr * sizeof(*rows));
	CHECK_EQ(0, check(t, nr));
}

#define ROW(_offset, _bytes, _count, _stride)				\
	((struct vrnic_type_row){ .offset = _offset, .bytes = _bytes,	\
				  .count = _count, .stride = _stride })
#define SET(t, ...) do {						\
	struct vrnic_type_row __rows[] = { __VA_ARGS__ };		\
									\
	set(t, sizeof(__rows) / sizeof(__rows[0]), __rows);		\
} while (0)

/* S3.6: tables 2 and 4 of the text; four common chunks of one byte. */
static void s3_6_worked_example(void)
{
	static const u64 origin[] = { 1, 2, 5, 7 }, target[] = { 0, 3, 5, 6 };
	struct vrnic_common_row table[4];
	struct type o, t;
	u64 c, seen = 0;
	u32 i, nr;

	SET(&o, ROW(1, 2, 1, 0), ROW(5, 1, 1, 0), ROW(7, 1, 1, 0));
	SET(&t, ROW(0, 1, 1, 0), ROW(3, 1, 1, 0), ROW(5, 2, 1, 0));
	CHECK_EQ(4, o.rows.bytes);
	CHECK_EQ(4, t.rows.bytes);
	CHECK_EQ(0, vrnic_rows_common(&o.rows, &t.rows, table, 4, &nr));
	for (i = 0; i < nr; i++) {
		CHECK_EQ(1, table[i].bytes);
		for (c = 0; c < table[i].count && seen < 4; c++, seen++) {
			CHECK_EQ(origin[seen], table[i].side[0].offset + o.rows.lower +
				 c * table[i].side[0].stride);
			CHECK_EQ(target[seen], table[i].side[1].offset + t.rows.lower +
				 c * table[i].side[1].stride);
		}
	}
	CHECK_EQ(4, seen);
}

/*
 * Three rows of a walk through both (the end of one row, a chunk, the begin of the next row) are
 * one row of the table. It takes more steps than its rows tell, and has to be filled nevertheless.
 */
static void a_table_takes_more_steps_than_rows(void)
{
	static struct vrnic_common_row table[MAX_COMMON];
	struct type a, b;
	u32 nr, counted;

	SET(&a, ROW(0, 16, 2, 1000), ROW(1016, 16, 1, 0), ROW(1032, 16, 2, 1000),
	    ROW(2048, 16, 1, 0), ROW(2064, 16, 2, 1000), ROW(3080, 16, 1, 0),
	    ROW(3096, 16, 2, 1000), ROW(4112, 16, 1, 0), ROW(4128, 16, 2, 1000));
	SET(&b, ROW(0, 8, 28, 24));
	CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, NULL, MAX_COMMON, &counted));
	CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, table, counted, &nr));
	CHECK_EQ(counted, nr);
	expect_common(&a, &b, table, nr);
}

/* However it was described. */
static void strided_chunks_are_one_row(void)
{
	static struct vrnic_type_row rows[4096];
	struct vrnic_rows vector = { .nr = 1, .row = &ROW(0, 8, 4096, 24) };
	struct vrnic_rows listed = { .nr = 4096, .row = rows };
	struct vrnic_common_row table;
	u32 i, nr;

	for (i = 0; i < 4096; i++)
		rows[i] = ROW(i * 64LL - 100, 8, 1, 12345);
	CHECK_EQ(0, vrnic_rows_check(&vector));
	CHECK_EQ(0, vrnic_rows_check(&listed));
	CHECK_EQ(1, listed.nr);
	CHECK_EQ(0, vrnic_rows_common(&vector, &listed, &table, 1, &nr));
	CHECK_EQ(1, nr);
	CHECK_EQ(8, table.bytes);
	CHECK_EQ(4096, table.count);
	CHECK_EQ(24, table.side[0].stride);
	CHECK_EQ(64, table.side[1].stride);
}

static void what_lies_together_is_one_chunk(void)
{
	struct type a, b;

	SET(&a, ROW(10, 4, 1, 0), ROW(14, 4, 1, 99), ROW(18, 8, 4, 8));
	CHECK_EQ(1, a.rows.nr);
	CHECK_EQ(40, a.row[0].bytes);
	CHECK_EQ(10, a.rows.lower);
	SET(&b, ROW(-30, 1, 40, 1));
	CHECK_EQ(40, b.rows.span);
	CHECK(vrnic_rows_equal(&a.rows, &b.rows));
	SET(&b, ROW(-30, 1, 41, 1));
	CHECK(!vrnic_rows_equal(&a.rows, &b.rows));
}

/* The order of the data stays: the last of what overlaps counts. */
static void order_stays(void)
{
	struct type a, b;

	SET(&a, ROW(8, 8, 1, 0), ROW(0, 8, 1, 0));
	SET(&b, ROW(0, 16, 1, 0));
	CHECK(!vrnic_rows_equal(&a.rows, &b.rows));
	CHECK_EQ(8, a.row[0].offset);
	SET(&a, ROW(0, 8, 3, -8));
	CHECK_EQ(16, a.row[0].offset);
	CHECK_EQ(-16, a.rows.lower);
	CHECK_EQ(24, a.rows.span);
}

static void explosion_is_bounded(void)
{
	struct type a, b;
	u32 nr;

	SET(&a, ROW(0, 12, 1ULL << 40, 16));
	SET(&b, ROW(0, 8, 3ULL << 39, 16));
	CHECK_EQ(a.rows.bytes, b.rows.bytes);
	CHECK(vrnic_rows_common(&a.rows, &b.rows, NULL, 65536, &nr) < 0);
}

/* Chunks of one that divide those of the other are a row for each of these. */
static void divided_chunks(void)
{
	static struct vrnic_common_row table[16];
	struct type a, b;
	u32 i, nr;

	SET(&a, ROW(0, 64, 16, 100));
	SET(&b, ROW(0, 8, 128, 16));
	CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, table, 16, &nr));
	CHECK_EQ(16, nr);
	for (i = 0; i < nr; i++)
		CHECK_EQ(8, table[i].count);
	SET(&b, ROW(0, 1024, 1, 0));
	CHECK_EQ(0, vrnic_rows_common(&b.rows, &a.rows, table, 1, &nr));
	CHECK_EQ(16, table[0].count);
}

static void refuse(struct vrnic_type_row row)
{
	struct type t;

	t.given[0] = ROW(0, 8, 1, 0);
	t.given[1] = row;
	CHECK(check(&t, 2) < 0);
	t.given[0] = row;
	CHECK(check(&t, 1) < 0);
}

static void nonsense_is_refused(void)
{
	refuse(ROW(0, 0, 1, 0));
	refuse(ROW(0, 1, 0, 0));
	refuse(ROW(S64_MAX, 1, 1, 0));
	refuse(ROW(S64_MAX - 7, 8, 1, 0));
	refuse(ROW(S64_MAX - 8, 4, 2, 8));
	refuse(ROW(S64_MIN, 4, 2, -1));
	refuse(ROW(-8, 8, 2, S64_MIN));
	refuse(ROW(0, 1, 3, S64_MAX));
	refuse(ROW(0, U64_MAX, 1, 0));
	refuse(ROW(S64_MIN, 1ULL << 63, 1, 0));
	refuse(ROW(0, 1, U64_MAX, 0));
	refuse(ROW(0, 1, 1ULL << 63, 1));
	refuse(ROW(0, 1ULL << 32, 1ULL << 32, 0));
	refuse(ROW(0, 1ULL << 33, 1ULL << 33, 0));
}

/* Each row is fine, all of them are not. */
static void total_is_checked(void)
{
	struct type t;
	u32 i;

	for (i = 0; i < 3; i++)
		t.given[i] = ROW(0, 8, (1ULL << 60) - 1, 0);
	CHECK_EQ(0, check(&t, 2));
	t.given[2] = ROW(0, 15, 1, 0);
	CHECK_EQ(0, check(&t, 3));
	CHECK_EQ(U64_MAX, t.rows.bytes);
	t.given[2].bytes = 16;
	CHECK(check(&t, 3) < 0);
}

/* Rows that reach the limits of s64 and u64: the results are still right. */
static void widest(void)
{
	struct type a, b;
	u32 nr;

	SET(&a, ROW(S64_MIN, 8, 1, 0), ROW(S64_MAX - 8, 8, 1, 0));
	CHECK_EQ(U64_MAX, a.rows.span);
	CHECK_EQ(16, a.rows.bytes);
	SET(&a, ROW(S64_MIN, S64_MAX, 1, 0), ROW(-1, S64_MAX, 1, 0));
	CHECK_EQ(1, a.rows.nr);
	CHECK_EQ(U64_MAX - 1, a.row[0].bytes);
	SET(&b, ROW(0, 2, S64_MAX, 0));
	CHECK_EQ(0, vrnic_rows_common(&a.rows, &b.rows, NULL, 2, &nr));
	CHECK_EQ(1, nr);
}

static const struct unit_test tests[] = {
	UNIT(s3_6_worked_example), UNIT(a_table_takes_more_steps_than_rows),
	UNIT(strided_chunks_are_one_row),
	UNIT(what_lies_together_is_one_chunk), UNIT(order_stays),
	UNIT(divided_chunks), UNIT(explosion_is_bounded),
	UNIT(nonsense_is_refused), UNIT(total_is_checked), UNIT(widest),
	UNIT(random_rows_keep_their_bytes),
	UNIT(random_pairs_have_common_chunks), UNIT(random_pairs_merge),
	UNIT(room_is_exact),
};

UNIT_MAIN(tests)
