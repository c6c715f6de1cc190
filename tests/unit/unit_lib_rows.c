// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The library's types against a naive model: a plain list of chunks, each added
 * by itself, where a chunk that is adjacent to the one before makes that longer.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../userlib/libvrnic/rows.h"
#include "../../userlib/libvrnic/vrnic_type.h"
#include "unit.h"

#define MODEL_CHUNKS	20000

struct chunk {
	int64_t offset;
	uint64_t bytes;
};

/* The model of a type, and the type of the library. */
struct pair {
	struct chunk *chunk;
	size_t nr;
	struct vrnic_rows rows;
};

static uint64_t random_state = 1;

static uint64_t below(uint64_t n)
{
	random_state = random_state * 6364136223846793005ULL +
		       1442695040888963407ULL;
	return (random_state >> 33) % n;
}

static void pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->chunk = calloc(MODEL_CHUNKS, sizeof(*p->chunk));
	if (!p->chunk)
		abort();
}

static void pair_free(struct pair *p)
{
	free(p->chunk);
	vrnic_rows_free(&p->rows);
}

static void model_chunk(struct pair *p, int64_t offset, uint64_t bytes)
{
	struct chunk *last = p->nr ? &p->chunk[p->nr - 1] : NULL;

	if (last && last->offset + (int64_t)last->bytes == offset) {
		last->bytes += bytes;
		return;
	}
	if (p->nr == MODEL_CHUNKS)
		abort();
	p->chunk[p->nr++] = (struct chunk){ offset, bytes };
}

static void add(struct pair *p, uint64_t bytes, int64_t offset, uint64_t count,
		int64_t stride)
{
	uint64_t i;

	CHECK_EQ(0, vrnic_rows_add(&p->rows, bytes, offset, count, stride));
	for (i = 0; i < count; i++)
		model_chunk(p, offset + (int64_t)i * stride, bytes);
}

static void add_pair(struct pair *p, const struct pair *sub, int64_t offset,
		     uint64_t count, int64_t stride)
{
	uint64_t i;
	size_t k;

	CHECK_EQ(0, vrnic_rows_add_rows(&p->rows, &sub->rows, offset, count,
					stride));
	for (i = 0; i < count; i++)
		for (k = 0; k < sub->nr; k++)
			model_chunk(p, offset + (int64_t)i * stride +
				       sub->chunk[k].offset,
				    sub->chunk[k].bytes);
}

/* Counted out, the rows are the model's chunks, one by one. */
static bool same_chunks(const struct pair *p)
{
	size_t at = 0, i;
	uint64_t k;

	for (i = 0; i < p->rows.nr; i++) {
		const struct vrnic_type_row *row = &p->rows.row[i];

		for (k = 0; k < row->count; k++, at++)
			if (at == p->nr || p->chunk[at].bytes != row->bytes ||
			    p->chunk[at].offset !=
			    row->offset + (int64_t)k * row->stride)
				return false;
	}
	return at == p->nr;
}

static void check_info(const struct pair *p)
{
	struct vrnic_type_info info, want = { .lower = INT64_MAX,
					      .upper = INT64_MIN };
	size_t i;

	for (i = 0; i < p->nr; i++) {
		const struct chunk *c = &p->chunk[i];

		want.bytes += c->bytes;
		if (c->offset < want.lower)
			want.lower = c->offset;
		if (c->offset + (int64_t)c->bytes > want.upper)
			want.upper = c->offset + (int64_t)c->bytes;
	}
	vrnic_rows_info(&p->rows, &info);
	CHECK_EQ(want.bytes, info.bytes);
	CHECK_EQ(want.lower, info.lower);
	CHECK_EQ(want.upper, info.upper);
	CHECK_EQ(p->nr, info.chunks);
	CHECK_EQ(p->rows.nr, info.rows);
}

/* Rows depend on the chunks, not on the calls that added them. */
static void check_canonical(const struct pair *p)
{
	struct vrnic_rows one_by_one = {};
	size_t i;

	for (i = 0; i < p->nr; i++)
		CHECK_EQ(0, vrnic_rows_add(&one_by_one, p->chunk[i].bytes,
					   p->chunk[i].offset, 1, 0));
	CHECK(vrnic_rows_equal(&one_by_one, &p->rows));
	vrnic_rows_free(&one_by_one);
}

static void check_saved(const struct pair *p)
{
	struct vrnic_rows loaded = {};
	size_t need = 0, length;
	uint8_t *buffer;

	CHECK_EQ(-ENOSPC, vrnic_rows_save(&p->rows, NULL, &need));
	length = need - 1;
	buffer = malloc(need);
	CHECK_EQ(-ENOSPC, vrnic_rows_save(&p->rows, buffer, &length));
	CHECK_EQ(need, length);
	CHECK_EQ(0, vrnic_rows_save(&p->rows, buffer, &length));
	CHECK_EQ(0, vrnic_rows_load(&loaded, buffer, length));
	CHECK(vrnic_rows_equal(&loaded, &p->rows));
	CHECK_EQ(p->rows.bytes, loaded.bytes);
	vrnic_rows_free(&loaded);
	CHECK_EQ(-EINVAL, vrnic_rows_load(&loaded, buffer, length - 1));
	free(buffer);
}

static void check_all(const struct pair *p)
{
	CHECK(same_chunks(p));
	check_info(p);
	check_canonical(p);
	check_saved(p);
}

static void add_random(struct pair *p)
{
	/* small numbers, so that chunks meet and strides agree */
	uint64_t bytes = 1 + below(4), count = 1 + below(5);
	int64_t stride = (int64_t)below(12) - 4;

	add(p, bytes, (int64_t)below(24) - 8, count, stride);
}

static void random_types(void)
{
	struct pair p;
	int i, k;

	for (i = 0; i < 3000 && !unit_bad; i++) {
		pair_init(&p);
		for (k = 1 + (int)below(8); k; k--)
			add_random(&p);
		check_all(&p);
		pair_free(&p);
	}
}

static void random_nested_types(void)
{
	struct pair inner, outer, outmost;
	int i;

	for (i = 0; i < 2000 && !unit_bad; i++) {
		pair_init(&inner);
		pair_init(&outer);
		pair_init(&outmost);
		for (int k = 1 + (int)below(3); k; k--)
			add_random(&inner);
		add_random(&outer);
		add_pair(&outer, &inner, (int64_t)below(40) - 20, 1 + below(6),
			 (int64_t)below(40) - 10);
		add_pair(&outmost, &outer, (int64_t)below(40), 1 + below(4),
			 (int64_t)below(100) - 20);
		add_random(&outmost);
		check_all(&inner);
		check_all(&outer);
		check_all(&outmost);
		pair_free(&inner);
		pair_free(&outer);
		pair_free(&outmost);
	}
}

static void vectors_stay_one_row(void)
{
	struct vrnic_rows column = {}, matrix = {}, block = {};

	CHECK_EQ(0, vrnic_rows_add(&column, 8, 0, 1ULL << 40, 16));
	CHECK_EQ(1, column.nr);
	CHECK_EQ(1ULL << 40, column.row[0].count);
	/* the second vector goes on where the first one ends */
	CHECK_EQ(0, vrnic_rows_add(&matrix, 8, 0, 4, 16));
	CHECK_EQ(0, vrnic_rows_add_rows(&block, &matrix, 0, 1ULL << 40, 64));
	CHECK_EQ(1, block.nr);
	CHECK_EQ(1ULL << 42, block.row[0].count);
	vrnic_rows_free(&block);
	/* contiguous blocks are one chunk */
	CHECK_EQ(0, vrnic_rows_add(&block, 4096, -4096, 1ULL << 40, 4096));
	CHECK_EQ(1, block.nr);
	CHECK_EQ(1, block.row[0].count);
	CHECK_EQ(1ULL << 52, block.row[0].bytes);
	vrnic_rows_free(&column);
	vrnic_rows_free(&matrix);
	vrnic_rows_free(&block);
}

/* S3.6: the tables of the text. */
static void worked_example(void)
{
	struct pair origin, target;

	pair_init(&origin);
	pair_init(&target);
	add(&origin, 2, 1, 1, 0);
	add(&origin, 1, 5, 1, 0);
	add(&origin, 1, 7, 1, 0);
	add(&target, 1, 0, 1, 0);
	add(&target, 1, 3, 1, 0);
	add(&target, 2, 5, 1, 0);
	check_all(&origin);
	check_all(&target);
	CHECK_EQ(3, origin.nr);
	CHECK_EQ(3, target.nr);
	pair_free(&origin);
	pair_free(&target);
}

/* A call that is refused leaves the rows as they were. */
static void refused(struct pair *p, int want, uint64_t bytes, int64_t offset,
		    uint64_t count, int64_t stride)
{
	CHECK_EQ(want, vrnic_rows_add(&p->rows, bytes, offset, count, stride));
	check_all(p);
}

static void nonsense_is_refused(void)
{
	struct vrnic_rows empty = {};
	struct pair p, sub;

	pair_init(&p);
	pair_init(&sub);
	add(&p, 8, 0, 3, 16);
	add(&p, 4, 1000, 1, 0);
	add(&sub, 1, 0, 1, 0);
	add(&sub, 2, 5, 1, 0);
	refused(&p, -EINVAL, 0, 0, 1, 0);
	refused(&p, -EINVAL, 1, 0, 0, 0);
	refused(&p, -EOVERFLOW, 1ULL << 63, 0, 1, 0);
	refused(&p, -EOVERFLOW, 1ULL << 32, 0, 1ULL << 31, 0);
	refused(&p, -EOVERFLOW, INT64_MAX, 0, 1, 0);
	refused(&p, -EOVERFLOW, 1, INT64_MAX, 1, 0);
	refused(&p, -EOVERFLOW, 1, 0, 3, INT64_MAX);
	refused(&p, -EOVERFLOW, 1, -2, 2, INT64_MIN);
	refused(&p, -EOVERFLOW, 1, 0, UINT64_MAX, 1);
	CHECK_EQ(-EINVAL, vrnic_rows_add_rows(&p.rows, &empty, 0, 1, 0));
	CHECK_EQ(-EINVAL, vrnic_rows_add_rows(&p.rows, &sub.rows, 0, 0, 0));
	CHECK_EQ(-EOVERFLOW, vrnic_rows_add_rows(&p.rows, &sub.rows,
						 INT64_MAX - 6, 1, 0));
	CHECK_EQ(-EOVERFLOW, vrnic_rows_add_rows(&p.rows, &sub.rows, 0, 3,
						 INT64_MAX / 2));
	CHECK_EQ(-E2BIG, vrnic_rows_add_rows(&p.rows, &sub.rows, 0, 1ULL << 40,
					     8));
	check_all(&p);
	pair_free(&p);
	pair_free(&sub);
}

/* An addition meets the limit in the middle, and is undone as a whole. */
static void too_many_rows(void)
{
	struct vrnic_rows rows = {}, sub = {}, before = {};
	uint32_t i;
	int ret = 0;

	/* bytes and distance change each time, so that nothing is merged */
	for (i = 0; i < VRNIC_TYPE_ROWS_MAX - 5 && !ret; i++)
		ret = vrnic_rows_add(&rows, 1 + i % 2,
				     (int64_t)i * 100, 1, 0);
	CHECK_EQ(0, ret);
	for (i = 0; i < 8; i++)
		CHECK_EQ(0, vrnic_rows_add(&sub, 1 + i % 2, -(int64_t)i * 10, 1,
					   0));
	before = rows;
	CHECK_EQ(-E2BIG, vrnic_rows_add_rows(&rows, &sub, 0, 1, 0));
	CHECK_EQ(before.nr, rows.nr);
	CHECK_EQ(before.bytes, rows.bytes);
	for (i = 0; i < 5; i++)
		CHECK_EQ(0, vrnic_rows_add(&rows, 7 + i % 2, i * 50, 1, 0));
	CHECK_EQ(VRNIC_TYPE_ROWS_MAX, rows.nr);
	CHECK_EQ(-E2BIG, vrnic_rows_add(&rows, 3, 0, 1, 0));
	CHECK_EQ(VRNIC_TYPE_ROWS_MAX, rows.nr);
	vrnic_rows_free(&rows);
	vrnic_rows_free(&sub);
}

static uint64_t sum_of_rows(const struct vrnic_rows *rows)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < rows->nr; i++)
		sum += rows->row[i].bytes * rows->row[i].count;
	return sum;
}

/* Any bytes are refused, or make a sound type; the sanitizers look for bad accesses. */
static void garbage_is_not_loaded(void)
{
	struct vrnic_rows loaded = {};
	size_t length = 0;
	uint8_t *buffer;
	struct pair p;
	int i, k, ok = 0;

	pair_init(&p);
	add(&p, 8, 0, 3, 16);
	add(&p, 4, 1000, 2, -7);
	vrnic_rows_save(&p.rows, NULL, &length);
	buffer = malloc(length);
	for (i = 0; i < 50000; i++) {
		CHECK_EQ(0, vrnic_rows_save(&p.rows, buffer, &length));
		for (k = 1 + (int)below(3); k; k--)
			buffer[below(length)] = (uint8_t)below(256);
		if (vrnic_rows_load(&loaded, buffer, below(50) ? length :
				    below(length)))
			continue;
		CHECK_EQ(sum_of_rows(&loaded), loaded.bytes);
		vrnic_rows_free(&loaded);
		ok++;
	}
	CHECK(ok > 0 && ok < 50000);
	free(buffer);
	pair_free(&p);
}

static const struct unit_test tests[] = {
	UNIT(worked_example),
	UNIT(vectors_stay_one_row),
	UNIT(random_types),
	UNIT(random_nested_types),
	UNIT(nonsense_is_refused),
	UNIT(too_many_rows),
	UNIT(garbage_is_not_loaded),
};

UNIT_MAIN(tests)
