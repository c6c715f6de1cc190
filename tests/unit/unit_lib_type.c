// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A destroyed type is freed after every injection ring has passed the descriptors that
 * name it, or is gone. The library must not look at rings that are gone: the test frees their
 * memory, so that the sanitizer sees such a look.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../userlib/libvrnic/lib.h"
#include "unit.h"

static unsigned int destroyed;

int vrnic_uv_type_create(struct vrnic_client *client,
			 const struct vrnic_create_type_req *req,
			 struct vrnic_create_type_resp *resp, uint32_t *handle)
{
	(void)client;
	(void)req;
	*resp = (struct vrnic_create_type_resp){ .type = 1 };
	*handle = 1;
	return 0;
}

int vrnic_uv_destroy(struct vrnic_client *client, unsigned int object,
		     uint32_t handle)
{
	(void)client;
	(void)handle;
	destroyed += object == VRNIC_OBJECT_TYPE;
	return 0;
}

void vrnic_client_hold(struct vrnic_client *client)
{
	client->users++;
}

void vrnic_client_drop(struct vrnic_client *client)
{
	client->users--;
}

#define CONTEXTS	4

struct bed {
	struct vrnic_client client;
	struct vrnic_context *context[CONTEXTS];
};

/* Each context has a descriptor in its ring that the engine did not take yet. */
static void begin(struct bed *bed)
{
	struct vrnic_context *ctx;
	unsigned int i;

	memset(bed, 0, sizeof(*bed));
	pthread_mutex_init(&bed->client.lock, NULL);
	destroyed = 0;
	for (i = 0; i < CONTEXTS; i++) {
		ctx = calloc(1, sizeof(*ctx));
		ctx->inject.hdr = calloc(1, sizeof(*ctx->inject.hdr));
		ctx->inject.entries = 16;
		ctx->inject.hdr->prod = 1;
		ctx->typed_end = 1;
		ctx->sibling = bed->client.contexts;
		bed->client.contexts = ctx;
		bed->context[i] = ctx;
	}
}

static void retire_one(struct bed *bed)
{
	struct vrnic_type *type;

	CHECK_EQ(0, vrnic_type_create(&bed->client, &type));
	CHECK_EQ(0, vrnic_type_add_simple(type, 8, 0, 1, 0));
	CHECK_EQ(0, vrnic_type_complete(type));
	CHECK_EQ(0, vrnic_type_destroy(type));
}

/* As vrnic_context_destroy() does it. */
static void context_end(struct bed *bed, unsigned int i)
{
	struct vrnic_context *ctx = bed->context[i], **at = &bed->client.contexts;

	while (*at != ctx)
		at = &(*at)->sibling;
	*at = ctx->sibling;
	vrnic_types_reap(&bed->client, ctx);
	free(ctx->inject.hdr);
	free(ctx);
}

static void contexts_go_in_any_order(void)
{
	static const unsigned int orders[][CONTEXTS] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 },
	};
	struct bed bed;
	unsigned int i, n;

	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		begin(&bed);
		retire_one(&bed);
		for (n = 0; n < CONTEXTS; n++) {
			CHECK_EQ(0, destroyed);
			context_end(&bed, orders[i][n]);
		}
		CHECK_EQ(1, destroyed);
		CHECK(!bed.client.retired);
	}
}

/* A ring that is behind does not hide that others have passed. */
static void rings_pass_in_any_order(void)
{
	struct bed bed;
	unsigned int n;

	begin(&bed);
	retire_one(&bed);
	for (n = 0; n < CONTEXTS; n++) {
		CHECK_EQ(0, destroyed);
		bed.context[n]->inject.hdr->cons = 1;
		vrnic_types_reap(&bed.client, NULL);
	}
	CHECK_EQ(1, destroyed);
	for (n = 0; n < CONTEXTS; n++)
		context_end(&bed, n);
}

/*
 * The library frees a type that left the queue before it publishes the descriptor that names it.
 * And a descriptor that was passed long ago is not taken for one that is still to come.
 */
static void rings_pass_what_is_published_later(void)
{
	static const uint32_t starts[] = { 1, 100, UINT32_MAX - 3, UINT32_MAX, 1U << 31 };
	struct vrnic_ring_hdr *hdr;
	struct bed bed;
	unsigned int i, n;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		begin(&bed);
		for (n = 0; n < CONTEXTS; n++) {
			hdr = bed.context[n]->inject.hdr;
			hdr->prod = starts[i];
			hdr->cons = starts[i];
			bed.context[n]->typed_end = n ? starts[i] - (n << 29) : starts[i] + 2;
		}
		retire_one(&bed);
		CHECK_EQ(0, destroyed);
		hdr = bed.context[0]->inject.hdr;
		hdr->prod += 3;
		vrnic_types_reap(&bed.client, NULL);
		CHECK_EQ(0, destroyed);
		hdr->cons += 2;
		vrnic_types_reap(&bed.client, NULL);
		CHECK_EQ(1, destroyed);
		for (n = 0; n < CONTEXTS; n++)
			context_end(&bed, n);
	}
}

/* A program's struct ends where its own header says: nothing behind @rows is written. */
static void query_writes_what_it_was_asked_for(void)
{
	struct {
		struct vrnic_type_info info;
		uint8_t behind[64];
	} of;
	struct vrnic_client client = {};
	struct vrnic_type *type;
	unsigned int i;

	pthread_mutex_init(&client.lock, NULL);
	CHECK_EQ(0, vrnic_type_create(&client, &type));
	CHECK_EQ(0, vrnic_type_add_simple(type, 8, 16, 3, 32));
	CHECK_EQ(0, vrnic_type_complete(type));
	memset(&of, 0xaa, sizeof(of));
	for (i = 0; i < 64; i++) {
		of.info.comp_mask = 1ULL << i;
		CHECK_EQ(-E2BIG, vrnic_type_query(type, &of.info));
		CHECK_EQ(0xaaaaaaaaaaaaaaaaULL, of.info.bytes);
	}
	of.info.comp_mask = 0;
	CHECK_EQ(0, vrnic_type_query(type, &of.info));
	CHECK_EQ(24, of.info.bytes);
	CHECK_EQ(16, of.info.lower);
	CHECK_EQ(88, of.info.upper);
	CHECK_EQ(3, of.info.chunks);
	CHECK_EQ(1, of.info.rows);
	for (i = 0; i < sizeof(of.behind); i++)
		CHECK_EQ(0xaa, of.behind[i]);
	CHECK_EQ(0, vrnic_type_destroy(type));
}

static const struct unit_test tests[] = {
	UNIT(query_writes_what_it_was_asked_for),
	UNIT(contexts_go_in_any_order),
	UNIT(rings_pass_in_any_order),
	UNIT(rings_pass_what_is_published_later),
};

UNIT_MAIN(tests)
