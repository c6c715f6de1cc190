// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Types, as objects of a client. The kernel looks a type up when it executes a
 * descriptor. So the library destroys the kernel's part of a type only when the engine
 * has passed the descriptors that name the type in every injection ring.
 */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

static struct vrnic_type *type_new(struct vrnic_client *client)
{
	struct vrnic_type *type = calloc(1, sizeof(*type));

	if (!type)
		return NULL;
	type->client = client;
	type->refs = 1;
	vrnic_client_hold(client);
	return type;
}

static void type_free(struct vrnic_type *type)
{
	vrnic_rows_free(&type->rows);
	free(type->retiring);
	free(type);
}

VRNIC_EXPORT
int vrnic_type_create(struct vrnic_client *client, struct vrnic_type **type)
{
	if (!client || !type)
		return -EINVAL;
	*type = type_new(client);
	return *type ? 0 : -ENOMEM;
}

VRNIC_EXPORT
int vrnic_type_add_simple(struct vrnic_type *type, uint64_t bytes,
			  int64_t offset, uint64_t count, int64_t stride)
{
	if (!type || type->complete)
		return -EINVAL;
	return vrnic_rows_add(&type->rows, bytes, offset, count, stride);
}

VRNIC_EXPORT
int vrnic_type_add_typed(struct vrnic_type *type,
			 const struct vrnic_type *subtype, int64_t offset,
			 uint64_t count, int64_t stride)
{
	if (!type || type->complete || !subtype || !subtype->complete)
		return -EINVAL;
	return vrnic_rows_add_rows(&type->rows, &subtype->rows, offset, count,
				   stride);
}

VRNIC_EXPORT
int vrnic_type_complete(struct vrnic_type *type)
{
	struct vrnic_create_type_resp resp;
	struct vrnic_create_type_req req;
	int ret;

	if (!type || type->complete || !type->rows.nr)
		return -EINVAL;
	req = (struct vrnic_create_type_req){
		.rows = (uintptr_t)type->rows.row,
		.nr_rows = (uint32_t)type->rows.nr,
	};
	ret = vrnic_uv_type_create(type->client, &req, &resp, &type->handle);
	if (ret)
		return ret;
	type->number = resp.type;
	vrnic_rows_info(&type->rows, &type->info);
	type->complete = true;
	return 0;
}

VRNIC_EXPORT
int vrnic_type_query(const struct vrnic_type *type,
		     struct vrnic_type_info *info)
{
	if (!type || !info || !type->complete)
		return -EINVAL;
	if (vrnic_is_extended(info->comp_mask, 0))
		return -E2BIG;
	info->bytes = type->info.bytes;
	info->lower = type->info.lower;
	info->upper = type->info.upper;
	info->chunks = type->info.chunks;
	info->rows = type->info.rows;
	return 0;
}

VRNIC_EXPORT
int vrnic_type_serialize(const struct vrnic_type *type, void *buffer,
			 size_t *length)
{
	if (!type || !length || !type->complete)
		return -EINVAL;
	return vrnic_rows_save(&type->rows, buffer, length);
}

VRNIC_EXPORT
int vrnic_type_deserialize(struct vrnic_client *client, const void *buffer,
			   size_t length, struct vrnic_type **type)
{
	struct vrnic_type *made;
	int ret;

	if (!client || !buffer || !type)
		return -EINVAL;
	made = type_new(client);
	if (!made)
		return -ENOMEM;
	ret = vrnic_rows_load(&made->rows, buffer, length);
	if (!ret)
		ret = vrnic_type_complete(made);
	if (ret)
		vrnic_type_put(made);
	else
		*type = made;
	return ret;
}

/* ---- the end ---- */

void vrnic_type_get(struct vrnic_type *type)
{
	if (type)
		__atomic_fetch_add(&type->refs, 1, __ATOMIC_RELAXED);
}

/*
 * Has the engine passed the descriptor that ends at @end? What it has not passed ends within a
 * ring's length of its index, also if the library has not published it yet.
 */
static bool passed(const struct vrnic_context *ctx, uint32_t end)
{
	return end - vrnic_ring_cons(&ctx->inject) - 1 >= ctx->inject.entries;
}

/* Note the rings that may still name @type. Caller holds the client's lock. */
static int note_contexts(struct vrnic_client *client, struct vrnic_type *type)
{
	struct vrnic_context *ctx;
	unsigned int n = 0;
	uint32_t end;

	for (ctx = client->contexts; ctx; ctx = ctx->sibling)
		n++;
	type->retiring = calloc(n ? n : 1, sizeof(*type->retiring));
	if (!type->retiring)
		return -ENOMEM;
	for (ctx = client->contexts; ctx; ctx = ctx->sibling) {
		end = __atomic_load_n(&ctx->typed_end, __ATOMIC_RELAXED);
		if (!passed(ctx, end))
			type->retiring[type->nr_retiring++] =
				(struct vrnic_retiring){ ctx, end };
	}
	return 0;
}

/*
 * Take the contexts that have passed, and @gone, off the type's list. Each call looks at all of
 * them: a context that is gone must not stay in the list. Caller holds the client's lock.
 *
 * Return: true if no ring can name the type any more.
 */
static bool is_retired(struct vrnic_type *type,
		       const struct vrnic_context *gone)
{
	struct vrnic_retiring *at = type->retiring;
	unsigned int nr = 0, i;

	for (i = 0; i < type->nr_retiring; i++)
		if (at[i].context != gone && !passed(at[i].context, at[i].end))
			at[nr++] = at[i];
	type->nr_retiring = nr;
	return !nr;
}

/**
 * vrnic_types_reap() - free retired types that no ring names any more
 * @client: client of the types
 * @gone: a context whose FIFO was destroyed, but not unmapped; or NULL
 */
void vrnic_types_reap(struct vrnic_client *client, struct vrnic_context *gone)
{
	struct vrnic_type **at, *type;

	pthread_mutex_lock(&client->lock);
	at = &client->retired;
	while ((type = *at)) {
		/* an engine that is using the type has a reference of its own in the kernel */
		if (!is_retired(type, gone) ||
		    vrnic_uv_destroy(client, VRNIC_OBJECT_TYPE, type->handle)) {
			at = &type->next;
			continue;
		}
		*at = type->next;
		type_free(type);
	}
	pthread_mutex_unlock(&client->lock);
}

/*
 * Destroy a type as soon as no ring names it. If note_contexts() gets no memory, the type goes at
 * once, and descriptors that name it fail.
 */
static void retire(struct vrnic_type *type)
{
	struct vrnic_client *client = type->client;

	pthread_mutex_lock(&client->lock);
	note_contexts(client, type);
	type->next = client->retired;
	client->retired = type;
	pthread_mutex_unlock(&client->lock);
	vrnic_types_reap(client, NULL);
}

/* Drop a reference: the user's, or that of an operation that leaves the queue. */
void vrnic_type_put(struct vrnic_type *type)
{
	struct vrnic_client *client;

	if (!type || __atomic_sub_fetch(&type->refs, 1, __ATOMIC_ACQ_REL))
		return;
	client = type->client;
	if (type->complete)
		retire(type);
	else
		type_free(type);
	vrnic_client_drop(client);
}

VRNIC_EXPORT
int vrnic_type_destroy(struct vrnic_type *type)
{
	if (!type)
		return -EINVAL;
	vrnic_type_put(type);
	return 0;
}
