// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Native lanes: two FIFOs that post to each other, and inject into each other's
 * engine. A wrong descriptor fails alone and the ring goes on, so wrong descriptors may be
 * anywhere in a round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "native_raw.h"
#include "ring.h"

#define INJECT_SLOTS	8192
#define RECEIVE_SLOTS	4096
#define ROUND_MAX	4096	/* slots filled for a doorbell */
#define PATIENCE	1.0	/* seconds until a ring is given up */
#define COUNTERS	4	/* of each side; the last is not open to peers */
#define TYPES		3
#define TYPE_BYTES	96	/* of each type */

/**
 * struct native - a lane's objects
 * @pair: the FIFOs, each in a context of its own
 * @counter: of each side
 * @type, @type_handle: of each side
 * @closed: memory of b that peers have no right to
 * @secret: memory of b in another domain, @other
 */
struct native {
	struct raw_pair pair;
	struct raw_counter counter[2][COUNTERS];
	uint32_t type[2][TYPES], type_handle[2][TYPES];
	struct buf closed, secret;
	struct ibv_pd *other;
};

static struct raw_fifo *fifo_of(struct native *n, int side)
{
	return side ? &n->pair.b : &n->pair.a;
}

/* ---- making ---- */

/* All of TYPE_BYTES, none of a span beyond 2048 bytes. */
static const struct {
	struct vrnic_type_row row[3];
	uint32_t nr;
} types[TYPES] = {
	{ { { 0, 96, 1, 0 } }, 1 },
	{ { { 0, 8, 12, 24 } }, 1 },
	{ { { 512, 5, 7, 13 }, { -64, 1, 29, 3 }, { 1000, 32, 1, 0 } }, 3 },
};

static int open_counters(struct native *n, int side)
{
	int i, ret = 0;

	for (i = 0; i < COUNTERS && !ret; i++)
		ret = raw_counter(fifo_of(n, side),
				  i < COUNTERS - 1 ? VRNIC_COUNTER_OPEN : 0,
				  &n->counter[side][i]);
	return ret;
}

static int open_types(struct native *n, int side)
{
	int i, ret = 0;

	for (i = 0; i < TYPES && !ret; i++)
		ret = raw_type(fifo_of(n, side), types[i].row, types[i].nr,
			       &n->type[side][i], &n->type_handle[side][i]);
	return ret;
}

static int open_secrets(struct native *n)
{
	struct dev *dev = &n->pair.b.dev;
	int ret;

	n->other = ibv_alloc_pd(dev->ctx);
	if (!n->other)
		return -errno;
	ret = buf_open(&n->closed, dev->pd, SECRET_LEN, 0, 0);
	if (!ret)
		ret = buf_open(&n->secret, n->other, SECRET_LEN, 0, ACCESS_REMOTE);
	if (!ret) {
		buf_fill(&n->closed, 2);
		buf_fill(&n->secret, 1);
	}
	return ret;
}

static void add_areas(struct lane *lane, struct native *n)
{
	struct raw_fifo *fifo;
	int i;

	for (i = 0; i < 2; i++) {
		fifo = fifo_of(n, i);
		lane_area(lane, fifo->inject, sizeof(*fifo->inject), 16);
		lane_area(lane, fifo->inject_slots,
			  fifo->inject_bytes - VRNIC_RING_DATA, 1);
		lane_area(lane, fifo->receive, sizeof(*fifo->receive), 100);
		lane_area(lane, fifo->receive_slots,
			  fifo->receive_bytes - VRNIC_RING_DATA, 1);
		lane_area(lane, n->counter[i][0].page, 4096, 1);
	}
}

static int native_open(struct lane *lane)
{
	struct native *n = calloc(1, sizeof(*n));
	int i, ret;

	lane->priv = n;
	if (!n)
		return -ENOMEM;
	ret = raw_pair_open(&n->pair, INJECT_SLOTS, RECEIVE_SLOTS, LANE_BUF);
	for (i = 0; i < 2 && !ret; i++) {
		ret = open_counters(n, i);
		if (!ret)
			ret = open_types(n, i);
	}
	if (!ret)
		ret = open_secrets(n);
	if (!ret)
		add_areas(lane, n);
	return ret;
}

static int close_objects(struct native *n, int side)
{
	int i, ret = 0;

	for (i = 0; i < COUNTERS && !ret; i++)
		ret = raw_counter_destroy(fifo_of(n, side), &n->counter[side][i]);
	for (i = 0; i < TYPES && !ret; i++)
		ret = raw_type_destroy(fifo_of(n, side), n->type_handle[side][i]);
	return ret;
}

static bool secrets_untouched(struct native *n)
{
	return buf_guards_intact(&n->closed) && buf_guards_intact(&n->secret) &&
	       buf_differs(&n->closed, 0, SECRET_LEN, 2, 0) < 0 &&
	       buf_differs(&n->secret, 0, SECRET_LEN, 1, 0) < 0;
}

/* The buffers' own guards are looked at by raw_pair_close(). */
static int native_close(struct lane *lane)
{
	struct native *n = lane->priv;
	int ret = secrets_untouched(n) ? 0 : -EFAULT;

	if (!ret)
		ret = close_objects(n, 0);
	if (!ret)
		ret = close_objects(n, 1);
	buf_close(&n->closed);
	buf_close(&n->secret);
	ibv_dealloc_pd(n->other);
	if (!ret)
		ret = raw_pair_close(&n->pair);
	free(n);
	lane->priv = NULL;
	return ret;
}

/* ---- descriptors ---- */

/**
 * struct nbatch - the descriptors that a round posts to one FIFO
 * @n: objects of the lane
 * @rng: of this round
 * @side: which FIFO
 * @at: index of the next slot
 * @left: slots that may still be filled
 */
struct nbatch {
	struct native *n;
	struct rng *rng;
	int side;
	uint32_t at;
	uint32_t left;
};

static const struct choice {
	uint8_t opcode;
	uint8_t weight;
} choices[] = {
	{ VRNIC_NOP_PUT, 42 }, { VRNIC_NOP_GET, 20 }, { VRNIC_NOP_RMW, 12 },
	{ VRNIC_NOP_MESSAGE, 8 }, { VRNIC_NOP_FENCE, 8 },
	{ VRNIC_NOP_FENCE_ALL, 4 }, { VRNIC_NOP_RGET, 3 }, { VRNIC_NOP_WAIT, 3 },
};

/* A chain of injected descriptors has to end, so few of them inject others. */
static const struct choice injected_choices[] = {
	{ VRNIC_NOP_PUT, 60 }, { VRNIC_NOP_GET, 10 }, { VRNIC_NOP_NOTIFY, 14 },
	{ VRNIC_NOP_MESSAGE, 8 }, { VRNIC_NOP_RGET, 5 }, { VRNIC_NOP_WAIT, 3 },
};

static uint8_t choose(struct rng *rng, const struct choice *c)
{
	uint32_t dice = rng_below(rng, 100);

	while (dice >= c->weight)
		dice -= c++->weight;
	return c->opcode;
}

static uint64_t some_addr(struct nbatch *b, int side)
{
	return (uintptr_t)fifo_of(b->n, side)->buf.addr + 2048 +
	       (rng_below(b->rng, LANE_BUF - 8192) & ~63U);
}

static uint32_t some_counter(struct nbatch *b, int side, bool open)
{
	if (rng_one_in(b->rng, 2))
		return 0;
	return b->n->counter[side][rng_below(b->rng, COUNTERS - open)].number;
}

static uint8_t some_kind(struct nbatch *b, uint8_t opcode)
{
	uint32_t dice = rng_below(b->rng, 32);

	if (opcode == VRNIC_NOP_PUT && dice < 10)
		return VRNIC_NDESC_INLINE;
	if (opcode == VRNIC_NOP_MESSAGE && dice < 20)
		return VRNIC_NDESC_INLINE;
	if (opcode == VRNIC_NOP_PUT || opcode == VRNIC_NOP_GET)
		if (dice >= 28)
			return VRNIC_NDESC_TYPED;
	if (opcode == VRNIC_NOP_PUT || opcode == VRNIC_NOP_MESSAGE)
		if (dice == 27)
			return VRNIC_NDESC_VIRTUAL;
	return 0;
}

static uint64_t some_length(struct nbatch *b, const struct vrnic_ndesc *d)
{
	switch (d->opcode) {
	case VRNIC_NOP_RGET:
		return sizeof(*d) * (1 + rng_below(b->rng, VRNIC_RGET_DESCS));
	case VRNIC_NOP_RMW:
		return rng_one_in(b->rng, 2) ? 4 : 8;
	case VRNIC_NOP_FENCE:
	case VRNIC_NOP_FENCE_ALL:
	case VRNIC_NOP_NOTIFY:
		return 0;
	}
	if (d->flags & VRNIC_NDESC_TYPED)
		return TYPE_BYTES;
	return rng_below(b->rng, rng_one_in(b->rng, 16) ? 1024 : 72);
}

/* The data of half the inline descriptors lies where they say. */
static void set_place(struct nbatch *b, struct vrnic_ndesc *d)
{
	if (!(d->flags & VRNIC_NDESC_INLINE) || rng_one_in(b->rng, 2))
		return;
	d->flags |= VRNIC_NDESC_PLACED;
	d->local_addr = VRNIC_SLOT_SIZE +
			(rng_one_in(b->rng, 4) ? rng_below(b->rng, 150) : 0);
	if (d->opcode == VRNIC_NOP_MESSAGE)
		d->local_addr += d->header_len;
}

static uint32_t slots_of(const struct vrnic_ndesc *d)
{
	uint64_t bytes = 0;

	if (d->opcode == VRNIC_NOP_RMW || d->flags & VRNIC_NDESC_TYPED)
		return 2;
	if (d->opcode == VRNIC_NOP_MESSAGE)
		bytes = d->header_len;
	if (d->flags & VRNIC_NDESC_PLACED)
		bytes = d->local_addr - VRNIC_SLOT_SIZE;
	if (d->flags & VRNIC_NDESC_INLINE)
		bytes += d->length;
	return 1 + (bytes + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE;
}

/* Until a counter of @side has fallen. It names neither peer nor memory. */
static struct vrnic_ndesc wait_desc(struct nbatch *b, int side, bool open)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_WAIT,
		.num_slots = 1,
		.cookie = rng_next(b->rng),
		.length = rng_below(b->rng, 1024),
		.lkey = some_counter(b, side, open),
		.arg = open ? 0 : rng_below(b->rng, VRNIC_WAIT_DESCS + 1),
	};
}

/* For the ring of @b's side. */
static struct vrnic_ndesc right_desc(struct nbatch *b)
{
	struct raw_pair *pair = &b->n->pair;
	int here = b->side, there = !here;
	struct vrnic_ndesc d = {
		.opcode = choose(b->rng, choices),
		.endpoint = here ? pair->b_to_a : pair->a_to_b,
		.cookie = rng_next(b->rng),
		.lkey = fifo_of(b->n, here)->buf.mr->lkey,
		.rkey = fifo_of(b->n, there)->buf.mr->rkey,
		.local_addr = some_addr(b, here),
		.remote_addr = some_addr(b, there),
		.local_counter = some_counter(b, here, false),
		.remote_counter = some_counter(b, here, false),
		.target_counter = some_counter(b, there, true),
	};

	if (d.opcode == VRNIC_NOP_WAIT)
		return wait_desc(b, here, false);
	d.flags = some_kind(b, d.opcode) |
		  (rng_one_in(b->rng, 32) ? VRNIC_NDESC_SIGNALED : 0);
	d.length = some_length(b, &d);
	if (d.opcode == VRNIC_NOP_MESSAGE)
		d.header_len = rng_below(b->rng, 100);
	if (d.opcode == VRNIC_NOP_RMW)
		d.arg = rng_below(b->rng, 6) |
			(rng_one_in(b->rng, 4) ? VRNIC_RMW_COMPARE : 0);
	set_place(b, &d);
	d.num_slots = slots_of(&d);
	return d;
}

/* For the other side's engine, which runs it with this side's rights. */
static struct vrnic_ndesc injected_desc(struct nbatch *b)
{
	int there = b->side, here = !there;
	struct vrnic_ndesc d = {
		.opcode = choose(b->rng, injected_choices),
		.num_slots = 1,
		.cookie = rng_next(b->rng),
		.lkey = fifo_of(b->n, here)->buf.mr->rkey,
		.rkey = fifo_of(b->n, there)->buf.mr->rkey,
		.local_addr = some_addr(b, here),
		.remote_addr = some_addr(b, there),
		.local_counter = some_counter(b, here, true),
		.remote_counter = some_counter(b, there, false),
		.target_counter = some_counter(b, there, false),
		.arg = rng_below(b->rng, 8),
	};

	if (d.opcode == VRNIC_NOP_WAIT)
		return wait_desc(b, here, true);
	if (d.opcode == VRNIC_NOP_NOTIFY)
		d.flags = rng_one_in(b->rng, 2) ? VRNIC_NDESC_BACK : 0;
	d.length = some_length(b, &d);
	if (d.opcode == VRNIC_NOP_PUT || d.opcode == VRNIC_NOP_GET)
		d.length = rng_below(b->rng, 256);
	if (d.opcode == VRNIC_NOP_GET)
		d.arg = 0;
	if (d.opcode == VRNIC_NOP_MESSAGE)
		d.header_len = 0;
	return d;
}

/*
 * One of @often has a field or two that are wrong, one of a thousand nothing else.
 * But no virtual get: it may write to any memory of this process, as it should.
 */
static void spoil(struct nbatch *b, struct vrnic_ndesc *d, uint32_t often)
{
	if (rng_one_in(b->rng, 1024))
		rng_fill(b->rng, d, sizeof(*d));
	if (rng_one_in(b->rng, often))
		rng_mutate(b->rng, d, sizeof(*d));
	if (rng_one_in(b->rng, 3 * often))
		rng_mutate(b->rng, d, sizeof(*d));
	if (d->flags & VRNIC_NDESC_PLACED && rng_one_in(b->rng, often))
		d->local_addr = rng_value(b->rng);
	if (d->opcode == VRNIC_NOP_GET)
		d->flags &= ~VRNIC_NDESC_VIRTUAL;
}

/* Descriptors for remote gets lie at the start of the buffers, before all targets. */
static void write_injected(struct nbatch *b)
{
	struct vrnic_ndesc *d = (void *)fifo_of(b->n, b->side)->buf.addr;
	unsigned int i;

	for (i = 0; i < 2048 / sizeof(*d); i++) {
		d[i] = injected_desc(b);
		spoil(b, &d[i], 8);
	}
}

static void *next_slot(struct nbatch *b)
{
	b->left--;
	return fifo_of(b->n, b->side)->inject_slots +
	       (size_t)(b->at++ & (INJECT_SLOTS - 1)) * VRNIC_SLOT_SIZE;
}

static void fill_second(struct nbatch *b, const struct vrnic_ndesc *d)
{
	struct vrnic_ndesc_typed typed = {
		.local_type = b->n->type[b->side][rng_below(b->rng, TYPES)],
		.remote_type = b->n->type[b->side][rng_below(b->rng, TYPES)],
		.mode = rng_below(b->rng, 4),
	};
	struct vrnic_ndesc_rmw rmw = {
		.operand = rng_next(b->rng), .compare = rng_below(b->rng, 2),
	};
	void *slot = next_slot(b);

	if (d->flags & VRNIC_NDESC_TYPED) {
		if (rng_one_in(b->rng, 16))
			rng_mutate(b->rng, &typed, sizeof(typed));
		memcpy(slot, &typed, sizeof(typed));
	} else if (d->opcode == VRNIC_NOP_RMW) {
		memcpy(slot, &rmw, sizeof(rmw));
	}
}

/* Data in the slots is what was there before. */
static void put_desc(struct nbatch *b, const struct vrnic_ndesc *d)
{
	uint32_t slots = d->num_slots;

	memcpy(next_slot(b), d, sizeof(*d));
	if (slots < 2 || slots > 128)
		return;
	if (b->left)
		fill_second(b, d);
	for (slots -= 2; slots && b->left; slots--)
		next_slot(b);
}

static void fill(struct nbatch *b)
{
	uint32_t often = 4U << rng_below(b->rng, 6);
	struct vrnic_ndesc d;

	while (b->left) {
		d = right_desc(b);
		/* the first 2048 bytes are for what is injected */
		if (d.opcode == VRNIC_NOP_RGET)
			d.local_addr = (uintptr_t)fifo_of(b->n, b->side)->buf.addr +
				       (rng_below(b->rng, 1025) & ~63U);
		spoil(b, &d, often);
		put_desc(b, &d);
	}
}

/* ---- a round ---- */

static void drain(struct raw_fifo *fifo)
{
	struct vrnic_ring_hdr *hdr = fifo->receive;

	__atomic_store_n(&hdr->cons, __atomic_load_n(&hdr->prod, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	if (hdr->flags & VRNIC_RING_DOORBELL)
		raw_ring(fifo);
}

static int post(struct native *n, struct rng *rng, int side)
{
	struct vrnic_ring_hdr *hdr = fifo_of(n, side)->inject;
	struct nbatch b = {
		.n = n, .rng = rng, .side = side, .at = hdr->prod,
		.left = ROUND_MAX >> rng_below(rng, 4),
	};
	uint32_t prod;

	write_injected(&b);
	fill(&b);
	prod = b.at;
	if (rng_one_in(rng, 256))
		prod += rng_one_in(rng, 2) ? rng_value(rng) :
					     rng_below(rng, 65) - 32;
	__atomic_store_n(&hdr->prod, prod, __ATOMIC_SEQ_CST);
	return raw_ring(fifo_of(n, side));
}

static bool is_done(struct raw_fifo *fifo)
{
	return __atomic_load_n(&fifo->inject->cons, __ATOMIC_ACQUIRE) ==
	       fifo->inject->prod;
}

/* Counters with any values in them end no WAIT by themselves. */
static void let_fall(struct native *n, int side)
{
	struct vrnic_count count = { .bytes = 1 };
	int i;

	for (i = 0; i < COUNTERS; i++) {
		count.id = n->counter[side][i].number;
		__atomic_store_n(&n->counter[side][i].cell->remaining, 1, __ATOMIC_SEQ_CST);
		ioctl(fifo_of(n, side)->bell, VRNIC_COUNT, &count);
	}
}

/* False if it waits in vain. */
static bool wait_done(struct native *n)
{
	double end = now() + PATIENCE;
	int looks = 0;

	while (!is_done(&n->pair.a) || !is_done(&n->pair.b)) {
		drain(&n->pair.a);
		drain(&n->pair.b);
		if (++looks > 8 && now() > end)
			return false;
		if (looks % 4 == 0) {
			let_fall(n, 0);
			let_fall(n, 1);
		}
		usleep(100);
	}
	drain(&n->pair.a);
	drain(&n->pair.b);
	return true;
}

static int native_round(struct lane *lane, struct rng *rng)
{
	struct native *n = lane->priv;
	int ret = post(n, rng, rng_below(rng, 2));

	if (!ret && rng_one_in(rng, 4))
		ret = post(n, rng, rng_below(rng, 2));
	if (ret)
		return ret;
	return wait_done(n) ? 0 : -EAGAIN;
}

const struct lane_ops lane_native = {
	.name = "native",
	.open = native_open,
	.round = native_round,
	.close = native_close,
};
