// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S3.1: types as objects: building, asking, writing down, reading back. */
#include "native.h"
#include "native_types.h"

FIXTURE(type)
{
	struct vrnic_client *client;
	struct vrnic_type *t;
};

FIXTURE_SETUP(type)
{
	NEED_NATIVE();
	ASSERT_OK(vrnic_client_open(dev_name(), &self->client));
	ASSERT_OK(vrnic_type_create(self->client, &self->t));
}

FIXTURE_TEARDOWN(type)
{
	if (self->t)
		EXPECT_OK(vrnic_type_destroy(self->t));
	if (self->client)
		EXPECT_OK(vrnic_client_close(self->client));
}

TEST_F(type, s3_1_rows_are_chunks_of_bytes)
{
	struct vrnic_type_info info = {};

	ASSERT_OK(vrnic_type_add_simple(self->t, 8, 16, 3, 24));
	ASSERT_OK(vrnic_type_add_simple(self->t, 5, -40, 1, 0));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_query(self->t, &info));
	EXPECT_EQ(3 * 8 + 5, info.bytes);
	EXPECT_EQ(-40, info.lower);
	EXPECT_EQ(16 + 2 * 24 + 8, info.upper);
	EXPECT_EQ(4, info.chunks);
	EXPECT_EQ(2, info.rows);
}

TEST_F(type, s3_1_nested)
{
	struct vrnic_type *column, *block;
	struct vrnic_type_info info = {};

	/* columns 2 and 3 of 10 rows of 8 doubles, and that four times */
	ASSERT_OK(vrnic_type_create(self->client, &column));
	ASSERT_OK(vrnic_type_add_simple(column, 8, 16, 10, 64));
	ASSERT_OK(vrnic_type_complete(column));
	ASSERT_OK(vrnic_type_create(self->client, &block));
	ASSERT_OK(vrnic_type_add_typed(block, column, 0, 2, 8));
	ASSERT_OK(vrnic_type_complete(block));
	ASSERT_OK(vrnic_type_add_typed(self->t, block, 1000, 4, 640));
	ASSERT_OK(vrnic_type_complete(self->t));
	/* what is nested may go */
	EXPECT_OK(vrnic_type_destroy(block));
	EXPECT_OK(vrnic_type_destroy(column));
	ASSERT_OK(vrnic_type_query(self->t, &info));
	EXPECT_EQ(4 * 2 * 10 * 8, info.bytes);
	EXPECT_EQ(1016, info.lower);
	EXPECT_EQ(1000 + 3 * 640 + 8 + 16 + 9 * 64 + 8, info.upper);
	EXPECT_EQ(4 * 2 * 10, info.chunks);
	EXPECT_LE(info.rows, 4 * 2 * 10);
}

/* The chunks of a vector are not written out one by one. */
TEST_F(type, s3_1_vectors_stay_compact)
{
	struct vrnic_type_info info = {};

	ASSERT_OK(vrnic_type_add_simple(self->t, 8, 0, 1ULL << 30, 16));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_query(self->t, &info));
	EXPECT_EQ(1, info.rows);
	EXPECT_EQ(1ULL << 30, info.chunks);
	EXPECT_EQ(1ULL << 33, info.bytes);
}

TEST_F(type, s3_1_chunks_that_touch_are_one)
{
	struct vrnic_type_info info = {};

	ASSERT_OK(vrnic_type_add_simple(self->t, 4, 0, 1, 0));
	ASSERT_OK(vrnic_type_add_simple(self->t, 4, 4, 1, 0));
	ASSERT_OK(vrnic_type_add_simple(self->t, 8, 8, 100, 8));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_query(self->t, &info));
	EXPECT_EQ(808, info.bytes);
	EXPECT_EQ(1, info.chunks);
	EXPECT_EQ(1, info.rows);
}

TEST_F(type, random_ones_know_their_extent)
{
	struct rng rng = { 31 };
	struct vrnic_type_info info = {};
	struct typed t;
	int i;

	for (i = 0; i < scaled(1000); i++) {
		ASSERT_OK(typed_random(&t, self->client, &rng,
				       1 + rng_below(&rng, 2000), 3));
		ASSERT_OK(vrnic_type_query(t.type, &info));
		EXPECT_EQ(t.model.bytes, info.bytes);
		EXPECT_EQ(model_lower(&t.model), info.lower);
		EXPECT_EQ(model_upper(&t.model), info.upper);
		EXPECT_LE(info.rows, info.chunks);
		EXPECT_LE(info.chunks, info.bytes);
		ASSERT_OK(typed_free(&t));
	}
}

TEST_F(type, refuses_what_makes_no_sense)
{
	struct vrnic_type_info info = {};
	struct vrnic_type *sub;

	EXPECT_EQ(-EINVAL, vrnic_type_complete(self->t));	/* empty */
	EXPECT_EQ(-EINVAL, vrnic_type_add_simple(self->t, 0, 0, 1, 0));
	EXPECT_EQ(-EINVAL, vrnic_type_add_simple(self->t, 8, 0, 0, 0));
	ASSERT_OK(vrnic_type_create(self->client, &sub));
	ASSERT_OK(vrnic_type_add_simple(sub, 8, 0, 2, 16));
	EXPECT_EQ(-EINVAL, vrnic_type_add_typed(self->t, sub, 0, 1, 0));
	EXPECT_EQ(-EINVAL, vrnic_type_add_typed(self->t, self->t, 0, 1, 0));
	ASSERT_OK(vrnic_type_complete(sub));
	EXPECT_EQ(-EINVAL, vrnic_type_add_simple(sub, 8, 0, 1, 0));
	EXPECT_EQ(-EINVAL, vrnic_type_add_typed(self->t, sub, 0, 0, 0));
	EXPECT_OK(vrnic_type_add_typed(self->t, sub, 0, 1, 0));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_query(self->t, &info));
	EXPECT_EQ(16, info.bytes);
	EXPECT_OK(vrnic_type_destroy(sub));
}

/* What cannot be expressed in 63 bits, by itself or together, is refused. */
static const struct huge {
	uint64_t bytes;
	int64_t offset;
	uint64_t count;
	int64_t stride;
} huge[] = {
	{ 1ULL << 63, 0, 1, 0 },
	{ UINT64_MAX, 0, 1, 0 },
	{ 2, INT64_MAX, 1, 0 },
	{ 1, INT64_MAX, 1, 0 },
	{ 1ULL << 62, INT64_MAX - (1LL << 61), 1, 0 },
	{ 8, 0, UINT64_MAX, 8 },
	{ 8, 0, 1ULL << 61, 8 },
	{ 1ULL << 32, 0, 1ULL << 32, 0 },
	{ 8, 0, 3, INT64_MAX },
	{ 8, 0, 3, INT64_MIN },
	{ 8, INT64_MIN, 2, -1 },
};

TEST_F(type, refuses_overflow)
{
	struct vrnic_type *t, *outer;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(huge); i++) {
		ASSERT_OK(vrnic_type_create(self->client, &t));
		ret = vrnic_type_add_simple(t, huge[i].bytes, huge[i].offset,
					    huge[i].count, huge[i].stride);
		if (!ret)
			ret = vrnic_type_complete(t);
		EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW)
			TH_LOG("case %u: %d", i, ret);
		EXPECT_OK(vrnic_type_destroy(t));
	}
	ASSERT_OK(vrnic_type_add_simple(self->t, 1ULL << 40, 1LL << 61, 1, 0));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_create(self->client, &outer));
	ret = vrnic_type_add_typed(outer, self->t, 0, 1ULL << 30, 0);
	if (!ret)
		ret = vrnic_type_complete(outer);
	EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW) TH_LOG("%d", ret);
	EXPECT_OK(vrnic_type_destroy(outer));
}

/* More rows than there may be are an error, not all the memory. */
TEST_F(type, refuses_too_many_rows)
{
	struct vrnic_type *level[8];
	int i, ret = 0;

	level[0] = self->t;
	ASSERT_OK(vrnic_type_add_simple(self->t, 1, 0, 1, 0));
	for (i = 0; i < 15; i++)
		ASSERT_OK(vrnic_type_add_simple(self->t, 1, 2 * i * i + 3, 1, 0));
	ASSERT_OK(vrnic_type_complete(self->t));
	for (i = 1; i < 8 && !ret; i++) {
		ASSERT_OK(vrnic_type_create(self->client, &level[i]));
		ret = vrnic_type_add_typed(level[i], level[i - 1], 0, 16,
					   1000LL << (5 * i));
		if (!ret)
			ret = vrnic_type_complete(level[i]);
	}
	EXPECT_EQ(-E2BIG, ret);
	while (--i)
		EXPECT_OK(vrnic_type_destroy(level[i]));
}

TEST_F(type, serialize_and_back)
{
	struct vrnic_type_info one = {}, two = {};
	struct rng rng = { 32 };
	struct vrnic_type *back;
	size_t len, again;
	struct typed t;
	uint8_t *text;
	int i;

	for (i = 0; i < scaled(300); i++) {
		ASSERT_OK(typed_random(&t, self->client, &rng,
				       1 + rng_below(&rng, 1000), 2));
		len = 0;
		ASSERT_EQ(-ENOSPC, vrnic_type_serialize(t.type, NULL, &len));
		ASSERT_GT(len, 0);
		text = malloc(len);
		ASSERT_NE(NULL, text);
		again = len - 1;
		EXPECT_EQ(-ENOSPC, vrnic_type_serialize(t.type, text, &again));
		EXPECT_EQ(len, again);
		ASSERT_OK(vrnic_type_serialize(t.type, text, &again));
		EXPECT_EQ(len, again);
		ASSERT_OK(vrnic_type_deserialize(self->client, text, len, &back));
		ASSERT_OK(vrnic_type_query(t.type, &one));
		ASSERT_OK(vrnic_type_query(back, &two));
		EXPECT_OK(memcmp(&one, &two, sizeof(one)));
		EXPECT_OK(vrnic_type_destroy(back));
		EXPECT_OK(typed_free(&t));
		free(text);
	}
}

/* It comes from elsewhere: nothing in it is believed. */
TEST_F(type, deserialize_distrusts)
{
	struct rng rng = { 33 };
	struct vrnic_type *back;
	uint8_t text[4096], bad[4096];
	size_t len = sizeof(text), i;
	int round, ret;

	ASSERT_OK(vrnic_type_add_simple(self->t, 8, 16, 3, 24));
	ASSERT_OK(vrnic_type_add_simple(self->t, 5, -40, 7, 100));
	ASSERT_OK(vrnic_type_complete(self->t));
	ASSERT_OK(vrnic_type_serialize(self->t, text, &len));
	for (i = 0; i < len; i++)
		EXPECT_EQ(-EINVAL, vrnic_type_deserialize(self->client, text, i,
							  &back));
	for (round = 0; round < 20000; round++) {
		memcpy(bad, text, len);
		for (i = 0; i < 1 + round % 4; i++)
			bad[rng_below(&rng, len)] = rng_next(&rng);
		ret = vrnic_type_deserialize(self->client, bad, len, &back);
		ASSERT_LE(ret, 0);
		if (!ret)
			ASSERT_OK(vrnic_type_destroy(back));
	}
}

TEST_F(type, client_stays_while_it_has_types)
{
	EXPECT_EQ(-EBUSY, vrnic_client_close(self->client));
}

TEST_HARNESS_MAIN
