// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Senseless calls are refused with the documented errno, and harm nothing. */
#include <pthread.h>

#include "native.h"
#include "native_raw.h"

#define LEN	65536

NBED(misuse, LEN, .inject_slots = 64);

TEST(clients)
{
	struct vrnic_client *client = NULL;

	NEED_NATIVE();
	EXPECT_EQ(-ENODEV, vrnic_client_open("no such device", &client));
	EXPECT_EQ(-ENODEV, vrnic_client_open("", &client));
	ASSERT_OK(vrnic_client_open(NULL, &client));
	ASSERT_NE(NULL, vrnic_client_verbs(client));
	ASSERT_NE(NULL, vrnic_client_pd(client));
	EXPECT_OK(strncmp("vrnic", vrnic_client_verbs(client)->device->name, 5));
	EXPECT_OK(vrnic_client_close(client));
}

TEST_F(misuse, busy_while_in_use)
{
	struct node *a = &self->bed.a;
	struct vrnic_client *client;
	struct vrnic_counter *counter;
	struct vrnic_context *context;
	struct vrnic_type *type;

	EXPECT_EQ(-EBUSY, vrnic_client_close(a->client));
	EXPECT_EQ(-EBUSY, vrnic_context_destroy(a->context));
	ASSERT_OK(vrnic_client_open(dev_name(), &client));
	ASSERT_OK(vrnic_counter_create(client, 0, &counter));
	EXPECT_EQ(-EBUSY, vrnic_client_close(client));
	ASSERT_OK(vrnic_type_create(client, &type));
	EXPECT_OK(vrnic_counter_destroy(counter));
	EXPECT_EQ(-EBUSY, vrnic_client_close(client));
	ASSERT_OK(vrnic_context_create(client, CONTEXT(), &context));
	EXPECT_OK(vrnic_type_destroy(type));
	EXPECT_EQ(-EBUSY, vrnic_client_close(client));
	EXPECT_OK(vrnic_context_destroy(context));
	EXPECT_OK(vrnic_client_close(client));
	/* and what was refused goes on */
	ASSERT_OK(nbed_put(&self->bed, 0, 0, 8, DONE(.remote = a->counter)));
	EXPECT_OK(counter_done(a->counter));
}

static const struct bad_attr {
	const char *name;
	uint32_t inject, receive, flags;
	int ret;
} bad_attrs[] = {
	{ NULL, 1, 0, 0, -EINVAL },
	{ NULL, 65537, 0, 0, -EINVAL },
	{ NULL, ~0U, 0, 0, -EINVAL },
	{ NULL, 0, 131, 0, -EINVAL },
	{ NULL, 0, 65537, 0, -EINVAL },
	{ NULL, 0, ~0U, 0, -EINVAL },
	{ NULL, 0, 0, 8, -EINVAL },
	{ NULL, 0, 0, ~0U, -EINVAL },
	{ "a name of thirty-two characters.", 0, 0, 0, -EINVAL },
	{ "a name that is a good deal longer than any name may be", 0, 0, 0, -EINVAL },
	{ "a name of 31 characters, no end", 0, 0, 0, 0 },
	{ NULL, 2, 132, 0, 0 },
	{ NULL, 3, 133, 0, 0 },
	{ NULL, 65536, 65536, 0, 0 },
};

TEST_F(misuse, context_attributes)
{
	struct vrnic_context_attr attr = {};
	struct vrnic_context *context;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(bad_attrs); i++) {
		attr.name = bad_attrs[i].name;
		attr.inject_slots = bad_attrs[i].inject;
		attr.receive_slots = bad_attrs[i].receive;
		attr.flags = bad_attrs[i].flags;
		ret = vrnic_context_create(self->bed.a.client, &attr, &context);
		EXPECT_EQ(bad_attrs[i].ret, ret) TH_LOG("case %u", i);
		if (!ret)
			EXPECT_OK(vrnic_context_destroy(context));
	}
}

/* A name, task and number is there once. */
TEST_F(misuse, names_are_unique)
{
	struct vrnic_context *one, *two;
	char name[32];

	snprintf(name, sizeof(name), "unique-%d", getpid());
	ASSERT_OK(vrnic_context_create(self->bed.a.client, CONTEXT(.name = name),
				       &one));
	EXPECT_EQ(-EEXIST, vrnic_context_create(self->bed.b.client,
						CONTEXT(.name = name), &two));
	ASSERT_OK(vrnic_context_create(self->bed.b.client,
				       CONTEXT(.name = name, .number = 1), &two));
	EXPECT_OK(vrnic_context_destroy(one));
	ASSERT_OK(vrnic_context_create(self->bed.b.client, CONTEXT(.name = name),
				       &one));
	EXPECT_OK(vrnic_context_destroy(one));
	EXPECT_OK(vrnic_context_destroy(two));
}

TEST_F(misuse, addresses)
{
	struct vrnic_endpoint *to;
	struct vrnic_address address, bad;
	struct rng rng = { 21 };
	int i, ret;

	vrnic_context_address(self->bed.b.context, &address);
	bad = address;
	bad.secret ^= 1;
	EXPECT_EQ(-EACCES, vrnic_endpoint_create(self->bed.a.context, &bad, &to));
	bad = address;
	bad.secret = 0;
	EXPECT_EQ(-EACCES, vrnic_endpoint_create(self->bed.a.context, &bad, &to));
	bad = address;
	bad.gid[15] ^= 0x55;
	bad.gid[0] = 0x20;
	ret = vrnic_endpoint_create(self->bed.a.context, &bad, &to);
	/* where rdma_rxe has the port of RoCEv2 there is no way to ask */
	EXPECT_TRUE(ret == -EHOSTUNREACH || ret == -EADDRINUSE) TH_LOG("%d", ret);
	for (i = 0; i < 1000; i++) {
		bad = address;
		bad.fifo = rng_next(&rng);
		if (bad.fifo == address.fifo)
			continue;
		ret = vrnic_endpoint_create(self->bed.a.context, &bad, &to);
		ASSERT_TRUE(ret == -ENOENT || ret == -EACCES) TH_LOG("%d", ret);
	}
	ASSERT_OK(node_close(&self->bed.b));
	for (i = 0; i < 100; i++) {
		ret = vrnic_endpoint_create(self->bed.a.context, &address, &to);
		if (ret)
			break;
		ASSERT_OK(vrnic_endpoint_destroy(to));
		usleep(10000);
	}
	EXPECT_EQ(-ENOENT, ret);
	if (!over_a_wire())
		EXPECT_EQ(0, i);
}

/* Lengths that no memory has. */
static const uint64_t lengths[] = {
	LEN + 1, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 8, 1ULL << 62,
	1ULL << 63, (1ULL << 63) + 8, ~0ULL - 7, ~0ULL,
};

enum kind { PUT, GET, READ, WRITE, KINDS };

static int start(struct nbed *bed, enum kind kind, uint64_t len, uint64_t remote)
{
	struct node *a = &bed->a;

	switch (kind) {
	case PUT:
		return vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = len,
					   .remote = remote, .rkey = a->peer.rkey),
				 DONE(.remote = a->counter));
	case GET:
		return vrnic_get(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = len,
					   .remote = remote, .rkey = a->peer.rkey),
				 DONE(.local = a->counter));
	case READ:
		return vrnic_read(a->to, WR(.local = a->buf.addr, .length = len, .remote = remote,
					    .rkey = a->peer.rkey), DONE(.local = a->counter));
	default:
		return vrnic_write(a->to, WR(.local = a->buf.addr, .length = len, .remote = remote,
					     .rkey = a->peer.rkey), DONE(.local = a->counter));
	}
}

TEST_F(misuse, lengths_that_cannot_be)
{
	struct nbed *bed = &self->bed;
	unsigned int i;
	int kind, ret;

	for (kind = PUT; kind < KINDS; kind++) {
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			ret = start(bed, kind, lengths[i], bed->a.peer.addr);
			if (!ret)
				ret = counter_done(bed->a.counter);
			EXPECT_TRUE(ret == -EINVAL || ret == -EIO)
				TH_LOG("kind %d, length %llx: %d", kind,
				       (unsigned long long)lengths[i], ret);
			vrnic_counter_set(bed->a.counter, 0);
		}
		EXPECT_EQ(-EINVAL, start(bed, kind, 8, ~0ULL - 3));
		EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
		/* and the FIFO goes on */
		ASSERT_OK(start(bed, kind, LEN, bed->a.peer.addr));
		ASSERT_OK(counter_done(bed->a.counter));
	}
}

/* ---- structs of a program that knows more of them than the library ---- */

static int with_context(struct nbed *bed, uint64_t mask)
{
	struct vrnic_context *context;
	int ret = vrnic_context_create(bed->a.client, CONTEXT(.comp_mask = mask), &context);

	return ret ? ret : vrnic_context_destroy(context);
}

static int with_done(struct nbed *bed, uint64_t mask)
{
	/* a counter that has fallen */
	return nbed_put(bed, 0, 0, 8, DONE(.comp_mask = mask, .remote = bed->a.counter,
					   .after = bed->a.open));
}

static int with_fence(struct nbed *bed, uint64_t mask)
{
	return vrnic_fence(bed->a.to, DONE(.comp_mask = mask, .remote = bed->a.counter,
					   .after = bed->a.open));
}

static struct vrnic_wr *extended_wr(struct nbed *bed, uint64_t mask)
{
	static struct vrnic_wr wr;

	wr = (struct vrnic_wr){
		.comp_mask = mask,
		.local = bed->a.buf.addr,
		.mr = bed->a.buf.mr,
		.length = 8,
		.remote = bed->a.peer.addr,
		.rkey = bed->a.peer.rkey,
	};
	return &wr;
}

static int with_put(struct nbed *bed, uint64_t mask)
{
	return vrnic_put(bed->a.to, extended_wr(bed, mask), DONE(.remote = bed->a.counter));
}

static int with_get(struct nbed *bed, uint64_t mask)
{
	return vrnic_get(bed->a.to, extended_wr(bed, mask), DONE(.remote = bed->a.counter));
}

static int with_put_inline(struct nbed *bed, uint64_t mask)
{
	return vrnic_put_inline(bed->a.to, extended_wr(bed, mask),
				DONE(.remote = bed->a.counter));
}

static int with_read(struct nbed *bed, uint64_t mask)
{
	return vrnic_read(bed->a.to, extended_wr(bed, mask), DONE(.local = bed->a.counter));
}

static int with_write(struct nbed *bed, uint64_t mask)
{
	return vrnic_write(bed->a.to, extended_wr(bed, mask), DONE(.local = bed->a.counter));
}

static int with_rmw(struct nbed *bed, uint64_t mask)
{
	return vrnic_rmw(bed->a.to, RMW(.comp_mask = mask, .op = VRNIC_RMW_ADD, .width = 8,
					.remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			 DONE(.remote = bed->a.counter));
}

static int with_send(struct nbed *bed, uint64_t mask)
{
	return vrnic_send(bed->a.to, SEND(.comp_mask = mask), DONE(.remote = bed->a.counter));
}

/* The peer has no handler for offers, so it rejects an offer that is made. */
static int with_rts_send(struct nbed *bed, uint64_t mask)
{
	return vrnic_rts_send(bed->a.to, OFFER(.comp_mask = mask, .local = bed->a.buf.addr,
					       .mr = bed->a.buf.mr, .length = 8), NULL);
}

static int with_rts_done(struct nbed *bed, uint64_t mask)
{
	return vrnic_rts_send(bed->a.to, OFFER(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					       .length = 8), DONE(.comp_mask = mask));
}

static int typed(struct nbed *bed, uint64_t mask, struct vrnic_type *type)
{
	struct vrnic_typed_wr wr = {
		.comp_mask = mask,
		.local = bed->a.buf.addr,
		.mr = bed->a.buf.mr,
		.local_type = type,
		.remote = bed->a.peer.addr,
		.rkey = bed->a.peer.rkey,
		.remote_type = type,
	};
	int put = vrnic_put_typed(bed->a.to, &wr, DONE(.remote = bed->a.counter));
	int get = vrnic_get_typed(bed->a.to, &wr, DONE(.remote = bed->a.counter));

	return put == get ? put : -ERANGE;
}

static int with_type(struct nbed *bed, uint64_t mask, bool query)
{
	struct vrnic_type_info info = { .comp_mask = mask, .bytes = 99 };
	struct vrnic_type *type;
	int ret;

	ret = vrnic_type_create(bed->a.client, &type);
	if (!ret)
		ret = vrnic_type_add_simple(type, 8, 0, 1, 0);
	if (!ret)
		ret = vrnic_type_complete(type);
	if (!ret)
		ret = query ? vrnic_type_query(type, &info) : typed(bed, mask, type);
	if (query && info.bytes != (ret ? 99 : 8))
		ret = -ERANGE;
	vrnic_type_destroy(type);
	return ret;
}

static int with_typed(struct nbed *bed, uint64_t mask)
{
	return with_type(bed, mask, false);
}

static int with_type_query(struct nbed *bed, uint64_t mask)
{
	return with_type(bed, mask, true);
}

static int with_counter_error(struct nbed *bed, uint64_t mask)
{
	struct vrnic_error error = { .comp_mask = mask, .count = 99 };
	int ret = vrnic_counter_error(bed->a.counter, &error);

	return error.count == (ret ? 99 : 0) ? ret : -ERANGE;
}

/* On a fence that has something to say. A refused call posts nothing: the failure stays. */
static int with_fence_wait(struct nbed *bed, uint64_t mask, bool all)
{
	struct vrnic_status status = { .comp_mask = mask };
	int ret;

	ret = vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr, .length = 8,
				      .remote = bed->a.peer.addr, .rkey = ~bed->a.peer.rkey),
			DONE(.cookie = 5));
	if (ret)
		return ret;
	ret = all ? vrnic_fence_all_wait(bed->a.context, WAIT_NS, &status) :
		    vrnic_fence_wait(bed->a.to, WAIT_NS, &status);
	if (ret == -EIO)
		return status.cookie == 5 ? 0 : -ERANGE;
	return vrnic_fence_wait(bed->a.to, WAIT_NS, NULL) == -EIO && !status.cookie ? ret : -ERANGE;
}

static int with_status(struct nbed *bed, uint64_t mask)
{
	return with_fence_wait(bed, mask, false);
}

static int with_status_of_all(struct nbed *bed, uint64_t mask)
{
	return with_fence_wait(bed, mask, true);
}

/* @known: bits of members that it has */
static const struct extended {
	const char *name;
	int (*call)(struct nbed *bed, uint64_t mask);
	uint64_t known;
} extended[] = {
	{ "context_create", with_context },
	{ "put, done", with_done, VRNIC_DONE_LOCAL_CALLBACK | VRNIC_DONE_AFTER },
	{ "fence, done", with_fence, VRNIC_DONE_LOCAL_CALLBACK | VRNIC_DONE_AFTER },
	{ "put", with_put }, { "get", with_get },
	{ "put_inline", with_put_inline }, { "read", with_read }, { "write", with_write },
	{ "rmw", with_rmw }, { "send", with_send, VRNIC_SEND_MR }, { "rts_send", with_rts_send },
	{ "rts_send, done", with_rts_done },
	{ "put_typed, get_typed", with_typed }, { "type_query", with_type_query },
	{ "counter_error", with_counter_error }, { "fence_wait", with_status },
	{ "fence_all_wait", with_status_of_all },
};

TEST_F(misuse, extensions_that_the_library_does_not_know)
{
	struct nbed *bed = &self->bed;
	unsigned int i, bit;

	for (i = 0; i < ARRAY_SIZE(extended); i++) {
		for (bit = 0; bit < 64; bit++) {
			if (extended[i].known & 1ULL << bit)
				continue;
			EXPECT_EQ(-E2BIG, extended[i].call(bed, 1ULL << bit))
				TH_LOG("%s, bit %u", extended[i].name, bit);
			ASSERT_EQ(0, vrnic_counter_read(bed->a.counter));
		}
		EXPECT_EQ(-E2BIG, extended[i].call(bed, ~0ULL));
		EXPECT_OK(extended[i].call(bed, extended[i].known))
			TH_LOG("%s", extended[i].name);
		EXPECT_OK(extended[i].call(bed, 0)) TH_LOG("%s", extended[i].name);
		EXPECT_OK(counter_done(bed->a.counter));
	}
}

/* What takes a struct takes no NULL for it, but for NULL that has a meaning. */
TEST_F(misuse, nothing_for_a_struct)
{
	struct vrnic_endpoint *to = self->bed.a.to;

	EXPECT_EQ(-EINVAL, vrnic_put(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_get(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_put_inline(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_read(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_write(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_put_typed(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_get_typed(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_rmw(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_send(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_rts_send(to, NULL, NULL));
	EXPECT_EQ(-EINVAL, vrnic_accept(to, NULL, ACCEPT(.mr = self->bed.a.buf.mr), NULL));
	EXPECT_EQ(-EINVAL, vrnic_reject(to, NULL));
	EXPECT_EQ(-EINVAL, vrnic_put(NULL, WR(), NULL));
	EXPECT_EQ(-EINVAL, vrnic_endpoint_of(self->bed.a.context, NULL, &to));
}

/* A region that is not of the context's protection domain. */
TEST_F(misuse, memory_of_another_domain)
{
	struct node *a = &self->bed.a;
	struct vrnic_error error = {};
	struct ibv_pd *pd = ibv_alloc_pd(vrnic_client_verbs(a->client));
	struct ibv_mr *mr;

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, a->buf.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = mr, .length = 64,
				      .remote = a->peer.addr, .rkey = a->peer.rkey),
			    DONE(.remote = a->counter)));
	EXPECT_EQ(-EIO, counter_done(a->counter));
	vrnic_counter_error(a->counter, &error);
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, error);
	EXPECT_EQ(VRNIC_VERR_PD, error.vendor_err);
	vrnic_counter_set(a->counter, 0);
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

/* Memory that is outside of its own region. */
TEST_F(misuse, local_bounds)
{
	struct node *a = &self->bed.a;
	struct vrnic_error error = {};

	ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr - 1, .mr = a->buf.mr, .length = 64,
				      .remote = a->peer.addr, .rkey = a->peer.rkey),
			    DONE(.remote = a->counter)));
	EXPECT_EQ(-EIO, counter_done(a->counter));
	vrnic_counter_error(a->counter, &error);
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, error);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	vrnic_counter_set(a->counter, 0);
}

/* A counter of another client: not this process's in the eyes of the engine. */
TEST_F(misuse, counter_of_another_client)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	int ret;

	ret = nbed_put(bed, 0, 0, 64, DONE(TELL(&told), .remote = bed->b.counter));
	if (ret) {
		EXPECT_EQ(-EINVAL, ret);
	} else {
		ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
		EXPECT_NE(IBV_WC_SUCCESS, told.status.status);
		EXPECT_EQ(VRNIC_VERR_COUNTER, told.status.vendor_err);
	}
}

/* Handles that are none, straight to the kernel. */
TEST_F(misuse, wrong_handles)
{
	struct ibv_context *ctx = vrnic_client_verbs(self->bed.a.client);
	struct rng rng = { 22 };
	uint32_t handle;
	int i;

	for (i = 0; i < 500; i++) {
		/* small ones are in use by the library */
		handle = 0x10000 + (rng_next(&rng) & 0x7fffffff);
		EXPECT_EQ(-ENOENT, raw_destroy(ctx, VRNIC_OBJECT_FIFO,
					       VRNIC_METHOD_FIFO_DESTROY,
					       VRNIC_ATTR_FIFO_DESTROY_HANDLE,
					       handle));
		EXPECT_EQ(-ENOENT, raw_destroy(ctx, VRNIC_OBJECT_ENDPOINT,
					       VRNIC_METHOD_ENDPOINT_DESTROY,
					       VRNIC_ATTR_ENDPOINT_DESTROY_HANDLE,
					       handle));
		EXPECT_EQ(-ENOENT, raw_destroy(ctx, VRNIC_OBJECT_COUNTER,
					       VRNIC_METHOD_COUNTER_DESTROY,
					       VRNIC_ATTR_COUNTER_DESTROY_HANDLE,
					       handle));
		EXPECT_EQ(-ENOENT, raw_destroy(ctx, VRNIC_OBJECT_TYPE,
					       VRNIC_METHOD_TYPE_DESTROY,
					       VRNIC_ATTR_TYPE_DESTROY_HANDLE,
					       handle));
	}
}

FIXTURE(abi)
{
	struct raw_fifo fifo;
};

FIXTURE_SETUP(abi)
{
	NEED_NATIVE();
	ASSERT_OK(raw_open(&self->fifo, 64, 256, 4096));
}

FIXTURE_TEARDOWN(abi)
{
	EXPECT_OK(raw_close(&self->fifo));
}

/* Requests that only somebody without the library could make. */
TEST_F(abi, create_fifo)
{
	static const struct vrnic_create_fifo_req good = {
		.inject_slots = 64, .receive_slots = 256, .eventfd = -1,
	};
	struct vrnic_create_fifo_resp resp;
	struct vrnic_create_fifo_req req;
	uint32_t handle;

#define REFUSED(...)							\
	do {								\
		req = good;						\
		req.gid_index = self->fifo.dev.gid_index;		\
		__VA_ARGS__;						\
		EXPECT_EQ(-EINVAL, raw_create_fifo(&self->fifo, &req,	\
						   &handle, &resp))	\
			TH_LOG(#__VA_ARGS__);				\
	} while (0)

	REFUSED(req.inject_slots = 0);
	REFUSED(req.inject_slots = VRNIC_FIFO_SLOTS_MAX + 1);
	REFUSED(req.inject_slots = 0x80000001);
	REFUSED(req.receive_slots = 131);
	REFUSED(req.receive_slots = ~0U);
	REFUSED(req.flags = ~VRNIC_FIFO_OPEN);
	REFUSED(req.reserved = 1);
	REFUSED(memset(req.name, 'x', sizeof(req.name)));
	REFUSED(req.gid_index = 100000);
#undef REFUSED
	req = good;
	req.gid_index = self->fifo.dev.gid_index;
	req.eventfd = 12345;
	EXPECT_EQ(-EBADF, raw_create_fifo(&self->fifo, &req, &handle, &resp));
	req.eventfd = 0;
	EXPECT_NE(0, raw_create_fifo(&self->fifo, &req, &handle, &resp));
	req.eventfd = -1;
	ASSERT_OK(raw_create_fifo(&self->fifo, &req, &handle, &resp));
	EXPECT_OK(raw_destroy(self->fifo.dev.ctx, VRNIC_OBJECT_FIFO,
			      VRNIC_METHOD_FIFO_DESTROY,
			      VRNIC_ATTR_FIFO_DESTROY_HANDLE, handle));
}

TEST_F(abi, create_counter)
{
	struct raw_counter counter;
	uint32_t bit;

	for (bit = 2; bit; bit <<= 1)
		EXPECT_EQ(-EINVAL, raw_counter(&self->fifo, bit, &counter));
	ASSERT_OK(raw_counter(&self->fifo, VRNIC_COUNTER_OPEN, &counter));
	EXPECT_EQ(0, counter.cell->remaining);
	EXPECT_OK(raw_counter_destroy(&self->fifo, &counter));
}

/* A new counter has nothing of the one whose cell it got. */
TEST_F(abi, counters_begin_at_zero)
{
	struct raw_counter counter;
	int i;

	for (i = 0; i < 300; i++) {
		ASSERT_OK(raw_counter(&self->fifo, 0, &counter));
		EXPECT_EQ(0, counter.cell->remaining);
		EXPECT_EQ(0, counter.cell->errors);
		memset(counter.cell, 0xff, sizeof(*counter.cell));
		EXPECT_OK(raw_counter_destroy(&self->fifo, &counter));
	}
}

static const struct bad_row {
	struct vrnic_type_row row;
	uint32_t nr;
} bad_rows[] = {
	{ { 0, 0, 1, 0 }, 1 },
	{ { 0, 1, 0, 0 }, 1 },
	{ { 0, 1, 1, 0 }, 0 },
	{ { 0, 1, 1, 0 }, VRNIC_TYPE_ROWS_MAX + 1 },
	{ { 0, 1, 1, 0 }, ~0U },
	{ { INT64_MAX, 1, 1, 0 }, 1 },
	{ { 0, ~0ULL, 1, 0 }, 1 },
	{ { 0, 1ULL << 63, 1, 0 }, 1 },
	{ { 0, 8, ~0ULL, 8 }, 1 },
	{ { 0, 1ULL << 32, 1ULL << 32, 1 }, 1 },
	{ { 0, 8, 3, INT64_MAX }, 1 },
	{ { 0, 8, 3, INT64_MIN }, 1 },
	{ { INT64_MIN, 8, 2, -8 }, 1 },
};

TEST_F(abi, create_type)
{
	struct vrnic_type_row row;
	uint32_t type, handle;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(bad_rows); i++) {
		row = bad_rows[i].row;
		ret = raw_type(&self->fifo, &row, bad_rows[i].nr, &type, &handle);
		EXPECT_TRUE(ret == -EINVAL || ret == -E2BIG || ret == -EOVERFLOW)
			TH_LOG("row %u: %d", i, ret);
	}
	EXPECT_EQ(-EFAULT, raw_type(&self->fifo, (void *)8, 1, &type, &handle));
	EXPECT_EQ(-EFAULT, raw_type(&self->fifo, (void *)-4096, 2, &type, &handle));
	row = (struct vrnic_type_row){ 0, 8, 1, 123 };
	ASSERT_OK(raw_type(&self->fifo, &row, 1, &type, &handle));
	EXPECT_NE(0, type);
	EXPECT_OK(raw_type_destroy(&self->fifo, handle));
}

/* An address is good only as a whole. */
TEST_F(abi, create_endpoint)
{
	struct vrnic_address address = self->fifo.address;
	uint32_t endpoint, handle;

	address.secret++;
	EXPECT_EQ(-EACCES, raw_endpoint(&self->fifo, &address, &endpoint, &handle));
	ASSERT_OK(raw_endpoint(&self->fifo, &self->fifo.address, &endpoint,
			       &handle));
	EXPECT_EQ(-EBUSY, raw_destroy(self->fifo.dev.ctx, VRNIC_OBJECT_FIFO,
				      VRNIC_METHOD_FIFO_DESTROY,
				      VRNIC_ATTR_FIFO_DESTROY_HANDLE,
				      self->fifo.handle));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, handle));
	EXPECT_EQ(-ENOENT, raw_endpoint_destroy(&self->fifo, handle));
}

/* An endpoint that went while descriptors name it. */
TEST_F(misuse, endpoint_destroyed_under_way)
{
	struct nbed *bed = &self->bed;
	struct node_info info = node_info(&bed->b);
	int i, j, ret;

	for (i = 0; i < scaled(200); i++) {
		for (j = 0; j < 50; j++)
			ASSERT_OK(nbed_put(bed, 0, 0, LEN,
					   DONE(.remote = bed->a.counter)));
		ASSERT_OK(vrnic_endpoint_destroy(bed->a.to));
		ASSERT_OK(node_join(&bed->a, &info));
		ret = vrnic_fence_all_wait(bed->a.context, WAIT_NS, NULL);
		ASSERT_TRUE(!ret || ret == -EIO) TH_LOG("%d", ret);
		vrnic_counter_set(bed->a.counter, 0);
	}
	ASSERT_OK(nbed_put(bed, 0, 0, LEN, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
}

/* Objects made and broken by several threads at once. */
#define THREADS	4

static void *make_and_break(void *arg)
{
	struct node node = { .client = ((struct nbed *)arg)->a.client };
	struct node_info info = node_info(&((struct nbed *)arg)->b);
	struct vrnic_type *type;
	intptr_t ret = 0;
	int i;

	for (i = 0; i < scaled(50) && !ret; i++) {
		ret = node_open(&node, 4096, NULL);
		if (!ret)
			ret = node_join(&node, &info);
		if (!ret)
			ret = vrnic_put(node.to, WR(.local = node.buf.addr, .mr = node.buf.mr,
						    .length = 4096, .remote = node.peer.addr,
						    .rkey = node.peer.rkey),
					DONE(.remote = node.counter));
		if (!ret)
			ret = vrnic_type_create(node.client, &type);
		if (!ret)
			ret = vrnic_type_destroy(type);
		if (!ret)
			ret = counter_done(node.counter);
		if (!ret)
			ret = node_close(&node);
		node.client = ((struct nbed *)arg)->a.client;
	}
	return (void *)ret;
}

TEST_F(misuse, make_and_break_in_parallel)
{
	pthread_t threads[THREADS];
	void *ret;
	int i;

	for (i = 0; i < THREADS; i++)
		ASSERT_OK(pthread_create(&threads[i], NULL, make_and_break,
					 &self->bed));
	for (i = 0; i < THREADS; i++) {
		ASSERT_OK(pthread_join(threads[i], &ret));
		EXPECT_EQ(NULL, ret);
	}
}

/* Strings for people: of every number, also of those that are none. */
TEST(strings)
{
	uint32_t i;

	EXPECT_NE(NULL, vrnic_version());
	for (i = 0; i < 100; i++)
		EXPECT_NE(NULL, vrnic_vendor_err_str(i));
	EXPECT_NE(NULL, vrnic_vendor_err_str(~0U));
}

TEST_HARNESS_MAIN
