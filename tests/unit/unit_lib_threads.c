// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Wherever the library gives a lock back, another thread destroys the object that the
 * first thread uses. Wherever the library asks for memory, there is none. The test tries each
 * place in turn, so the result does not depend on timing. The sanitizer sees a use of freed
 * memory.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib_kernel.h"
#include "wrap.h"

#define PEER		77U

/* ---- the other thread ---- */

/**
 * struct intruder - another thread, and when it comes
 * @lock: it comes when this lock is released; NULL: never
 * @at: releases of @lock before that
 * @came: it has come
 * @act: its action
 * @arg: for @act
 */
static struct intruder {
	pthread_mutex_t *lock;
	unsigned int at;
	bool came;
	void (*act)(void *arg);
	void *arg;
} intruder;

static void *intrude(void *unused)
{
	intruder.act(intruder.arg);
	return unused;
}

/* @lock may be gone at the end. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int ret = __real_pthread_mutex_unlock(lock);
	pthread_t thread;

	if (intruder.lock != lock || intruder.came || intruder.at--)
		return ret;
	intruder.came = true;
	CHECK_EQ(0, pthread_create(&thread, NULL, intrude, NULL));
	pthread_join(thread, NULL);
	return ret;
}

static void intruder_comes(pthread_mutex_t *lock, unsigned int at,
			   void (*act)(void *arg), void *arg)
{
	intruder = (struct intruder){
		.lock = lock,
		.at = at,
		.act = act,
		.arg = arg,
	};
}

/* Return: the intruder came, so there may be a place further on. */
static bool intruder_came(void)
{
	intruder.lock = NULL;
	return intruder.came;
}

/* ---- memory ---- */

/**
 * struct shortage - an allocation that fails
 * @armed: an allocation will fail
 * @at: allocations that succeed before that
 * @hit: an allocation has failed
 */
static struct shortage {
	bool armed;
	unsigned int at;
	bool hit;
} shortage;

static bool is_short(void)
{
	if (!shortage.armed || shortage.hit || shortage.at--)
		return false;
	shortage.hit = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return is_short() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_short() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return is_short() ? NULL : __real_realloc(old, size);
}

static void memory_runs_short(unsigned int at)
{
	shortage = (struct shortage){ .armed = true, .at = at };
}

/* Return: an allocation failed, so there may be another one further on. */
static bool memory_ran_short(void)
{
	shortage.armed = false;
	return shortage.hit;
}

/* ---- objects ---- */

static struct ibv_mr mr;

static struct vrnic_context *context_new(struct vrnic_client *client)
{
	static const struct vrnic_context_attr attr = {
		.flags = VRNIC_CONTEXT_SHARED,
		.inject_slots = SLOTS,
		.receive_slots = RECEIVE_SLOTS,
	};
	struct vrnic_context *context = NULL;

	CHECK_EQ(0, vrnic_context_create(client, &attr, &context));
	return context;
}

static struct vrnic_counter *counter_new(struct vrnic_client *client)
{
	struct vrnic_counter *counter = NULL;

	CHECK_EQ(0, vrnic_counter_create(client, 0, &counter));
	return counter;
}

/* ---- transfers ---- */

#define LENGTH		(1U << 20)
#define PORTIONS	16

struct bed {
	struct vrnic_client *client;
	struct vrnic_context *context;
	struct vrnic_endpoint *ep;
	struct vrnic_endpoint *other;
	struct vrnic_counter *counter;
	unsigned int told;
};

static void begin(struct bed *bed)
{
	const struct vrnic_address peer = { .fifo = PEER }, other = { .fifo = PEER + 1 };

	*bed = (struct bed){ .client = client_new() };
	bed->context = context_new(bed->client);
	bed->counter = counter_new(bed->client);
	CHECK_EQ(0, vrnic_endpoint_create(bed->context, &peer, &bed->ep));
	CHECK_EQ(0, vrnic_endpoint_create(bed->context, &other, &bed->other));
}

static void end(struct bed *bed)
{
	CHECK_EQ(0, vrnic_endpoint_destroy(bed->other));
	CHECK_EQ(0, vrnic_context_destroy(bed->context));
	CHECK_EQ(0, vrnic_counter_destroy(bed->counter));
	CHECK_EQ(0, vrnic_client_close(bed->client));
	kernel_end();
}

static void tell(struct vrnic_context *context, const struct vrnic_status *status,
		 void *arg)
{
	struct bed *bed = arg;

	(void)context;
	(void)status;
	bed->told++;
}

static int start(struct bed *bed, struct vrnic_counter *counter, bool incoming)
{
	static uint8_t memory[LENGTH];
	const struct vrnic_done done = {
		.flags = kernel.stopped ? VRNIC_QUEUE : 0,
		.callback = tell,
		.arg = bed,
		.local = counter,
	};
	const struct vrnic_rts rts = {
		.peer = { .fifo = PEER },
		.length = sizeof(memory),
		.table_rows = 255,
		.id = 5,
	};
	const struct vrnic_accept_wr accepted = {
		.local = memory,
		.mr = &mr,
		.portion = LENGTH / PORTIONS,
	};
	const struct vrnic_rts_wr offered = {
		.local = memory,
		.mr = &mr,
		.length = sizeof(memory),
	};

	if (incoming)
		return vrnic_accept(bed->ep, &rts, &accepted, &done);
	return vrnic_rts_send(bed->ep, &offered, &done);
}

static uint32_t transfer_id(const struct bed *bed, uint32_t slot)
{
	return bed->context->transfers.slot[slot]->id;
}

static void arrives(struct vrnic_context *ctx, struct vrnic_record rec,
		    const struct vrnic_verdict *verdict)
{
	struct vrnic_ring *ring = &ctx->receive;
	uint32_t prod = ring->hdr->prod;

	rec.num_slots = verdict ? 2 : 1;
	memcpy(vrnic_ring_slot(ring, prod), &rec, sizeof(rec));
	if (verdict)
		memcpy(vrnic_ring_slot(ring, prod + 1), verdict, sizeof(*verdict));
	ring->hdr->prod = prod + rec.num_slots;
}

/* Whatever was posted to the endpoint. */
static void completes(struct bed *bed, uint8_t status)
{
	const struct vrnic_op *op;

	vrnic_uv_advance(bed->context);
	for (op = bed->ep->ops.first; op; op = op->next)
		arrives(bed->context, (struct vrnic_record){
			.kind = VRNIC_REC_COMPLETION,
			.opcode = op->opcode,
			.status = status,
			.cookie = op->cookie,
			.endpoint = bed->ep->number,
		}, NULL);
}

enum ending {
	WELL,		/* as it should */
	POST_FAILS,	/* a descriptor of ours */
	INJECTED_FAILS,	/* one that a peer's engine ran, or ours at the peer */
	PEER_SAYS_NO,	/* it refused, or broke it off */
	PEER_GONE,
	NR_ENDINGS
};

static void ends(struct bed *bed, enum ending ending, bool incoming)
{
	uint32_t id = transfer_id(bed, 0);
	struct vrnic_verdict verdict = { .id = incoming ? 5 : id, .status = 1 };
	struct vrnic_record rec = {
		.cookie = id | (incoming ? VRNIC_COOKIE_TARGET : 0),
		.source = PEER,
	};

	switch (ending) {
	case WELL:
		rec.kind = VRNIC_REC_NOTIFY;
		rec.arg = incoming ? VRNIC_DISPATCH_ARRIVED : VRNIC_DISPATCH_TAKEN;
		break;
	case INJECTED_FAILS:
		rec.kind = VRNIC_REC_ERROR;
		rec.opcode = VRNIC_NOP_RGET;
		rec.status = IBV_WC_REM_ACCESS_ERR;
		break;
	case PEER_SAYS_NO:
		rec.kind = VRNIC_REC_MESSAGE;
		rec.arg = incoming ? VRNIC_DISPATCH_BROKEN : VRNIC_DISPATCH_REFUSED;
		rec.header_len = sizeof(verdict);
		break;
	case PEER_GONE:
		rec.kind = VRNIC_REC_ERROR;
		rec.status = IBV_WC_WR_FLUSH_ERR;
		break;
	default:
		completes(bed, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	arrives(bed->context, rec, ending == PEER_SAYS_NO ? &verdict : NULL);
}

static void destroy_endpoint(void *arg)
{
	struct bed *bed = arg;

	CHECK_EQ(0, vrnic_endpoint_destroy(bed->ep));
}

/* The engine takes nothing and the ring is full: later operations are queued. */
static void fill_ring(struct bed *bed)
{
	static const struct vrnic_send_wr empty;

	kernel.stopped = true;
	while (!vrnic_send(bed->other, &empty, NULL))
		;
}

static void advance(struct bed *bed)
{
	CHECK(vrnic_advance(bed->context, INT_MAX) >= 0);
}

/* A thread that waits for the origin's counter wakes up. */
static bool is_settled(const struct bed *bed)
{
	return !vrnic_counter_read(bed->counter) ||
	       vrnic_counter_error(bed->counter, NULL);
}

static bool destroyed_at(enum ending ending, bool incoming, bool full, unsigned int at)
{
	uint32_t number;
	struct bed bed;
	bool came;

	begin(&bed);
	number = bed.ep->number;
	CHECK_EQ(0, start(&bed, bed.counter, incoming));
	if (ending != POST_FAILS) {
		completes(&bed, IBV_WC_SUCCESS);
		advance(&bed);
	}
	ends(&bed, ending, incoming);
	if (full)
		fill_ring(&bed);
	intruder_comes(&bed.context->lock, at, destroy_endpoint, &bed);
	advance(&bed);
	came = intruder_came();
	CHECK(bed.told <= 1);
	CHECK(came || bed.told == 1);
	if (!came)
		destroy_endpoint(&bed);
	kernel.stopped = false;
	advance(&bed);
	advance(&bed);
	/* what the library told the peer has a record */
	if (bed.context->endpoints[number])
		completes(&bed, IBV_WC_SUCCESS);
	advance(&bed);
	advance(&bed);
	/* nothing of it is left, though the context is */
	CHECK_EQ(0, kernel.mrs);
	CHECK(!bed.context->dying);
	CHECK(!bed.context->queue);
	CHECK(incoming || is_settled(&bed));
	end(&bed);
	return came;
}

static void endpoints_go_while_their_transfers_end(void)
{
	unsigned int ending, way, at;

	for (ending = 0; ending < NR_ENDINGS; ending++)
		for (way = 0; way < 4; way++)
			for (at = 0; destroyed_at(ending, way & 1, way & 2, at); at++)
				;
}

static void fence_completes(struct bed *bed, uint32_t endpoint)
{
	arrives(bed->context, (struct vrnic_record){
		.kind = VRNIC_REC_COMPLETION,
		.opcode = VRNIC_NOP_FENCE,
		.endpoint = endpoint,
	}, NULL);
}

/* The fence is completed before or after its waiter gives up. */
static bool destroyed_while_waiting(bool in_time, unsigned int at)
{
	uint32_t endpoint;
	struct bed bed;
	bool came;
	int ret;

	begin(&bed);
	endpoint = bed.ep->number;
	if (in_time)
		fence_completes(&bed, endpoint);
	intruder_comes(&bed.context->lock, at, destroy_endpoint, &bed);
	ret = vrnic_fence_wait(bed.ep, 0, NULL);
	came = intruder_came();
	if (came) {
		CHECK(!ret || ret == -ECANCELED || ret == -ETIME);
	} else {
		CHECK_EQ(in_time ? 0 : -ETIME, ret);
		destroy_endpoint(&bed);
	}
	if (!in_time)
		fence_completes(&bed, endpoint);
	advance(&bed);
	advance(&bed);
	CHECK(!bed.context->dying);
	end(&bed);
	return came;
}

static void endpoints_go_while_a_fence_is_waited_for(void)
{
	unsigned int in_time, at;

	for (in_time = 0; in_time < 2; in_time++)
		for (at = 0; destroyed_while_waiting(in_time, at); at++)
			;
}

/* ---- memory that descriptors name ---- */

/* The engine has not taken a descriptor that reads what is in @piece. */
static bool is_named(const struct bed *bed, const struct vrnic_piece *piece)
{
	const struct vrnic_ring *ring = &bed->context->inject;
	uint64_t at = (uintptr_t)piece->mem, end = at + piece->rows * VRNIC_SLOT_SIZE;
	const struct vrnic_ndesc *desc;
	uint32_t i;

	for (i = ring->hdr->cons; i != ring->hdr->prod; i++) {
		desc = vrnic_ring_slot(ring, i);
		if (desc->opcode != VRNIC_NOP_MESSAGE && desc->local_addr < end &&
		    desc->local_addr + desc->length > at)
			return true;
	}
	return false;
}

/* Memory that is given out is in no descriptor that is still to be executed. */
static void check_next_piece(struct bed *bed)
{
	struct vrnic_piece piece;

	CHECK_EQ(0, vrnic_pool_alloc(bed->ep, 4 * PORTIONS, false, &piece));
	CHECK(!is_named(bed, &piece));
	vrnic_pool_free(bed->ep, &piece);
}

static unsigned int rows_used(const struct bed *bed)
{
	const struct vrnic_transfers *t = &bed->context->transfers;
	unsigned int rows = 0;
	uint32_t i;

	for (i = 0; i < t->nr; i++)
		rows += t->slot[i] ? t->slot[i]->piece.rows : 0;
	return rows;
}

/* All posted descriptors are executed, and their records delivered. */
static void engine_goes_on(struct bed *bed)
{
	kernel.stopped = false;
	completes(bed, IBV_WC_SUCCESS);
	advance(bed);
	CHECK_EQ(0, rows_used(bed));
}

static void stop_engine(struct bed *bed, bool full)
{
	kernel.stopped = true;
	if (full)
		fill_ring(bed);
}

/* Queued operations get room. */
static void make_room(struct bed *bed)
{
	kernel.stopped = false;
	vrnic_uv_advance(bed->context);
	kernel.stopped = true;
	CHECK_EQ(0, vrnic_post_flush(bed->context));
}

static bool accepted_with_little_memory(bool full, unsigned int at)
{
	struct bed bed;
	bool hit;
	int ret;

	begin(&bed);
	stop_engine(&bed, full);
	memory_runs_short(at);
	ret = start(&bed, bed.counter, true);
	hit = memory_ran_short();
	CHECK_EQ(hit, ret == -ENOMEM);
	if (full)
		make_room(&bed);
	if (hit) {
		CHECK_EQ(0, kernel.bound[bed.counter->handle]);
		check_next_piece(&bed);
		engine_goes_on(&bed);
	}
	kernel.stopped = false;
	destroy_endpoint(&bed);
	end(&bed);
	return hit;
}

static void an_accept_without_memory_leaves_alone_what_was_posted(void)
{
	unsigned int full, at;

	for (full = 0; full < 2; full++) {
		for (at = 0; accepted_with_little_memory(full, at); at++)
			;
		CHECK(at > 4);
	}
}

/* The descriptors of the transfer are in the ring, or wait for room there. */
static void ended_before_it_ran(enum ending ending, bool full)
{
	struct bed bed;

	begin(&bed);
	stop_engine(&bed, full);
	CHECK_EQ(0, start(&bed, bed.counter, true));
	ends(&bed, ending, true);
	advance(&bed);
	CHECK_EQ(1, bed.told);
	if (full)
		make_room(&bed);
	check_next_piece(&bed);
	engine_goes_on(&bed);
	destroy_endpoint(&bed);
	end(&bed);
}

static void what_was_posted_is_read_after_the_end_of_its_transfer(void)
{
	unsigned int ending, full;

	for (ending = INJECTED_FAILS; ending < NR_ENDINGS; ending++)
		for (full = 0; full < 2; full++)
			ended_before_it_ran(ending, full);
}

/* The descriptors of an accepted transfer, for the engines. */
static void the_next_portion_is_asked_for_before_one_moves(void)
{
	const struct vrnic_ndesc *first, *batch, *row;
	struct bed bed;
	uint32_t k;

	begin(&bed);
	CHECK_EQ(0, start(&bed, bed.counter, true));
	/* two in each batch, three in the last one; then the rows as they will be at the origin */
	first = bed.context->transfers.slot[0]->piece.mem;
	row = first + 2 * PORTIONS + 1;
	for (k = 0; k + 1 < PORTIONS; k++) {
		batch = first + 2 * k;
		CHECK_EQ(VRNIC_NOP_RGET, batch[0].opcode);
		CHECK_EQ(k * sizeof(*row), batch[0].local_addr);
		CHECK_EQ(VRNIC_NOP_PUT, batch[1].opcode);
		CHECK_EQ(VRNIC_NOP_RGET, row[k].opcode);
		CHECK_EQ((uintptr_t)(batch + 2), row[k].local_addr);
	}
	destroy_endpoint(&bed);
	end(&bed);
}

/* ---- counters ---- */

/* The user destroys the counter of the transfer, and makes another one for the next. */
static void replace_counter(void *arg)
{
	struct bed *bed = arg;
	uint32_t handle = bed->counter->handle;

	CHECK_EQ(0, vrnic_counter_destroy(bed->counter));
	bed->counter = counter_new(bed->client);
	CHECK_EQ(handle, bed->counter->handle);
	CHECK_EQ(0, start(bed, bed->counter, false));
}

static bool replaced_at(enum ending ending, bool early, unsigned int at)
{
	struct bed bed;
	bool came;

	begin(&bed);
	CHECK_EQ(0, start(&bed, bed.counter, false));
	completes(&bed, IBV_WC_SUCCESS);
	advance(&bed);
	ends(&bed, ending, false);
	if (early)
		replace_counter(&bed);
	else
		intruder_comes(&bed.context->lock, at, replace_counter, &bed);
	advance(&bed);
	came = intruder_came();
	if (early || came) {
		/* it is told if the peer goes, and is not told of the other transfer */
		CHECK_EQ(1, kernel.bound[bed.counter->handle]);
		CHECK_EQ(LENGTH, (uint64_t)vrnic_counter_read(bed.counter));
		CHECK_EQ(0, vrnic_counter_error(bed.counter, NULL));
	}
	destroy_endpoint(&bed);
	end(&bed);
	return came;
}

static void a_handle_given_out_again_is_another_counter(void)
{
	unsigned int at;

	replaced_at(WELL, true, 0);
	replaced_at(INJECTED_FAILS, true, 0);
	for (at = 0; replaced_at(WELL, false, at); at++)
		;
	for (at = 0; replaced_at(INJECTED_FAILS, false, at); at++)
		;
}

/* ---- clients ---- */

struct closing {
	struct vrnic_client *client;
	int ret;
};

static void close_client(void *arg)
{
	struct closing *closing = arg;

	closing->ret = vrnic_client_close(closing->client);
}

enum last { CONTEXT, COUNTER, TYPE, NR_LAST };

static bool closed_at(enum last last, unsigned int at)
{
	struct closing closing = { .client = client_new(), .ret = -EBUSY };
	struct vrnic_context *context = NULL;
	struct vrnic_counter *counter = NULL;
	struct vrnic_type *type = NULL;
	bool came;

	if (last == CONTEXT)
		context = context_new(closing.client);
	if (last == COUNTER)
		counter = counter_new(closing.client);
	if (last == TYPE) {
		CHECK_EQ(0, vrnic_type_create(closing.client, &type));
		CHECK_EQ(0, vrnic_type_add_simple(type, 8, 0, 1, 0));
		CHECK_EQ(0, vrnic_type_complete(type));
	}
	intruder_comes(&closing.client->lock, at, close_client, &closing);
	if (context)
		CHECK_EQ(0, vrnic_context_destroy(context));
	if (counter)
		CHECK_EQ(0, vrnic_counter_destroy(counter));
	if (type)
		CHECK_EQ(0, vrnic_type_destroy(type));
	came = intruder_came();
	CHECK(!closing.ret || closing.ret == -EBUSY);
	if (closing.ret)
		CHECK_EQ(0, vrnic_client_close(closing.client));
	kernel_end();
	return came;
}

static void clients_close_while_their_last_object_goes(void)
{
	unsigned int last, at;

	for (last = 0; last < NR_LAST; last++)
		for (at = 0; closed_at(last, at); at++)
			;
}

static const struct unit_test tests[] = {
	UNIT(endpoints_go_while_their_transfers_end),
	UNIT(endpoints_go_while_a_fence_is_waited_for),
	UNIT(an_accept_without_memory_leaves_alone_what_was_posted),
	UNIT(what_was_posted_is_read_after_the_end_of_its_transfer),
	UNIT(the_next_portion_is_asked_for_before_one_moves),
	UNIT(a_handle_given_out_again_is_another_counter),
	UNIT(clients_close_while_their_last_object_goes),
};

UNIT_MAIN(tests)
