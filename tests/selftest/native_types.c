// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "native_types.h"

static int model_grow(struct model *m, size_t bytes)
{
	int64_t *at = realloc(m->at, (m->bytes + bytes + 1) * sizeof(*at));

	if (!at)
		return -ENOMEM;
	m->at = at;
	return 0;
}

int model_add_simple(struct model *m, uint64_t bytes, int64_t offset,
		     uint64_t count, int64_t stride)
{
	uint64_t i, j;

	if (model_grow(m, bytes * count))
		return -ENOMEM;
	for (i = 0; i < count; i++)
		for (j = 0; j < bytes; j++)
			m->at[m->bytes++] = offset + (int64_t)i * stride + j;
	return 0;
}

int model_add_typed(struct model *m, const struct model *sub, int64_t offset,
		    uint64_t count, int64_t stride)
{
	uint64_t i, j;

	if (model_grow(m, sub->bytes * count))
		return -ENOMEM;
	for (i = 0; i < count; i++)
		for (j = 0; j < sub->bytes; j++)
			m->at[m->bytes++] = offset + (int64_t)i * stride + sub->at[j];
	return 0;
}

int64_t model_lower(const struct model *m)
{
	int64_t lower = INT64_MAX;
	size_t i;

	for (i = 0; i < m->bytes; i++)
		lower = m->at[i] < lower ? m->at[i] : lower;
	return lower;
}

int64_t model_upper(const struct model *m)
{
	int64_t upper = INT64_MIN;
	size_t i;

	for (i = 0; i < m->bytes; i++)
		upper = m->at[i] >= upper ? m->at[i] + 1 : upper;
	return upper;
}

void model_free(struct model *m)
{
	free(m->at);
	memset(m, 0, sizeof(*m));
}

void model_copy(uint8_t *dst, const struct model *to, const uint8_t *src,
		const struct model *from)
{
	size_t i;

	for (i = 0; i < to->bytes; i++)
		dst[to->at[i]] = src[from->at[i]];
}

static int typed_start(struct typed *t, struct vrnic_client *client)
{
	memset(t, 0, sizeof(*t));
	return vrnic_type_create(client, &t->type);
}

/*
 * Where to put @count pieces of [@lower, @upper): mostly one after the other with
 * gaps, sometimes backwards or on top of each other. False: not within REACH.
 */
static bool place(struct rng *rng, int64_t lower, int64_t upper, uint64_t count,
		  int64_t *offset, int64_t *stride)
{
	int64_t span = upper - lower, first, last;

	*stride = span + (rng_below(rng, 4) ? rng_below(rng, 40) : 0);
	if (rng_below(rng, 16) == 0)
		*stride = rng_below(rng, 2 * span + 1) - span;
	else if (rng_below(rng, 8) == 0)
		*stride = -*stride;
	*offset = (int64_t)rng_below(rng, 2 * REACH) - REACH - lower;
	first = *offset + lower;
	last = first + (int64_t)(count - 1) * *stride;
	return first >= -REACH && first + span <= REACH &&
	       last >= -REACH && last + span <= REACH;
}

static int add_simple(struct typed *t, struct rng *rng, uint64_t bytes,
		      uint64_t count)
{
	int64_t offset, stride;
	int ret;

	while (!place(rng, 0, bytes, count, &offset, &stride))
		;
	ret = vrnic_type_add_simple(t->type, bytes, offset, count, stride);
	return ret ? ret : model_add_simple(&t->model, bytes, offset, count,
					    stride);
}

/* At most @most bytes of a nested type; none, if it does not fit anywhere. */
static int add_nested(struct typed *t, struct vrnic_client *client,
		      struct rng *rng, size_t most, int depth)
{
	int64_t lower, upper, offset, stride;
	uint64_t count = 1 + rng_below(rng, 4);
	struct typed sub;
	int ret, tries = 0;

	if (most < count)
		return 0;
	ret = typed_random(&sub, client, rng, 1 + rng_below(rng, most / count),
			   depth - 1);
	if (ret)
		return ret;
	lower = model_lower(&sub.model);
	upper = model_upper(&sub.model);
	while (!place(rng, lower, upper, count, &offset, &stride))
		if (++tries == 20) {
			count = 1;
			offset = 0;
			stride = 0;
			break;
		}
	ret = vrnic_type_add_typed(t->type, sub.type, offset, count, stride);
	if (!ret)
		ret = model_add_typed(&t->model, &sub.model, offset, count,
				      stride);
	if (!ret)
		ret = typed_free(&sub);
	return ret;
}

static int add_some(struct typed *t, struct vrnic_client *client,
		    struct rng *rng, size_t left, int depth)
{
	uint64_t bytes, count;

	if (depth && rng_below(rng, 3) == 0)
		return add_nested(t, client, rng, left, depth);
	bytes = rng_below(rng, 4) ? 1ULL << rng_below(rng, 6) :
				    1 + rng_below(rng, 100);
	if (bytes > left)
		bytes = left;
	count = rng_below(rng, 2) ? 1 : 1 + rng_below(rng, 20);
	if (count > left / bytes)
		count = left / bytes;
	return add_simple(t, rng, bytes, count);
}

int typed_random(struct typed *t, struct vrnic_client *client, struct rng *rng,
		 size_t bytes, int depth)
{
	int ret = typed_start(t, client);

	while (!ret && t->model.bytes < bytes)
		ret = add_some(t, client, rng, bytes - t->model.bytes, depth);
	if (!ret)
		ret = vrnic_type_complete(t->type);
	return ret;
}

int typed_free(struct typed *t)
{
	model_free(&t->model);
	return vrnic_type_destroy(t->type);
}
