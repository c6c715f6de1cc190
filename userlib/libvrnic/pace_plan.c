// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the target of a self-paced transfer has the engines do: the portions, and the
 * descriptors for them. See pace.c.
 */

#include <errno.h>
#include <stddef.h>

#include "pace.h"

#define PORTION		(1ULL << 20)	/* bytes of a portion, unless the program chooses */
#define PORTION_LOCAL	(1ULL << 22)	/* the same, if the peer is on this host */
#define PORTION_LEAST	(1ULL << 16)	/* the same, if many hosts send */
#define PORTIONS_ROUND	(1ULL << 22)	/* and a portion of each of them together */
#define PORTION_PIECES	(1ULL << 15)	/* the same, if it goes in pieces */
#define PIECE		((uint64_t)VRNIC_MAX_MESSAGE)
#define PORTIONS_MAX	(1U << 20)
#define PORTIONS_PIECES	(1U << 14)	/* their descriptors are many */

static uint64_t ceil_div(uint64_t n, uint64_t by)
{
	return n / by + !!(n % by);
}

/*
 * Hosts that send at the same time take turns (driver/native/pacer.c), portion by portion. The more
 * they are, the shorter is a turn, so that a round of all of them does not take longer and longer.
 */
static uint64_t usual_portion(const struct vrnic_plan *plan)
{
	uint64_t share;

	if (plan->pieces)
		return PORTION_PIECES;
	if (!plan->hosts)
		return PORTION_LOCAL;
	share = PORTIONS_ROUND / plan->hosts / PORTION_LEAST * PORTION_LEAST;
	if (share > PORTION)
		return PORTION;
	return share ? share : PORTION_LEAST;
}

/* Return: bytes of a portion: more than usual if the origin's table is too short for that. */
static uint64_t portion_of(const struct vrnic_plan *plan)
{
	uint64_t usual = usual_portion(plan);
	uint64_t room = (uint64_t)plan->rts->table_rows + 1;

	if (ceil_div(plan->rts->length, usual) <= room)
		return usual;
	return ceil_div(plan->rts->length, room);
}

/*
 * Cut the message into portions of @portion bytes; 0: automatic. Return: 0, or -EINVAL if the
 * origin's table is too short, or a portion in pieces too long.
 */
int vrnic_plan_cut(struct vrnic_plan *plan, uint64_t portion)
{
	const struct vrnic_rts *rts = plan->rts;
	uint64_t nr;

	plan->portion = portion ? portion : portion_of(plan);
	if (plan->pieces && plan->portion > VRNIC_PIECES_MAX * PIECE)
		return -EINVAL;
	nr = rts->length ? ceil_div(rts->length, plan->portion) : 1;
	if (nr > (uint64_t)rts->table_rows + 1 ||
	    nr > (plan->pieces ? PORTIONS_PIECES : PORTIONS_MAX))
		return -EINVAL;
	plan->nr = (uint32_t)nr;
	/* the first portion waits for its turn, too: it has a row of its own */
	plan->lead = plan->hosts > 1 && rts->length && nr <= rts->table_rows;
	plan->batches = plan->nr + plan->lead;
	return 0;
}

/* Bytes of portion @k. */
static uint64_t portion_bytes(const struct vrnic_plan *plan, uint32_t k)
{
	uint64_t left = plan->rts->length - k * plan->portion;

	return left < plan->portion ? left : plan->portion;
}

/* Return: descriptors that move portion @k. */
static uint32_t portion_moves(const struct vrnic_plan *plan, uint32_t k)
{
	uint64_t bytes = portion_bytes(plan, k);

	return plan->pieces ? (uint32_t)ceil_div(bytes, PIECE) : !!bytes;
}

/* Return: descriptors of batch @k that move data. */
static uint32_t moves(const struct vrnic_plan *plan, uint32_t k)
{
	return plan->lead && !k ? 0 : portion_moves(plan, k - plan->lead);
}

/* Return: descriptors of batch @k: one remote get with the portion; at the end two NOTIFYs. */
static uint32_t batch_descs(const struct vrnic_plan *plan, uint32_t k)
{
	return moves(plan, k) + (k + 1 < plan->batches ? 1 : 2);
}

/* Return: descriptors before batch @k. All batches but the first and the last are equally long. */
static size_t descs_before(const struct vrnic_plan *plan, uint32_t k)
{
	size_t others = k > 1 ? (size_t)(k - 1) * batch_descs(plan, 1) : 0;

	return k ? batch_descs(plan, 0) + others : 0;
}

struct vrnic_ndesc *vrnic_plan_batch(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan, uint32_t k)
{
	return (struct vrnic_ndesc *)x->piece.mem + descs_before(plan, k);
}

uint64_t vrnic_plan_batch_bytes(const struct vrnic_plan *plan, uint32_t k)
{
	return batch_descs(plan, k) * sizeof(struct vrnic_ndesc);
}

/* Return: the rows that are to be put into the origin's table. They lie behind the batches. */
struct vrnic_ndesc *vrnic_plan_table(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan)
{
	return vrnic_plan_batch(x, plan, plan->batches - 1) +
	       batch_descs(plan, plan->batches - 1);
}

/* Return: number of all descriptors, with those that go into the origin's table. */
uint32_t vrnic_plan_rows(const struct vrnic_plan *plan)
{
	uint32_t others = plan->batches - 1;

	return (uint32_t)descs_before(plan, others) + batch_descs(plan, others) + others;
}

/*
 * Make the first descriptor of batch @k, which the origin's engine executes. The descriptor sends
 * row @k of the origin's table to the target's engine. Row @k makes the target's engine send batch
 * @k + 1 to the origin's engine.
 */
static struct vrnic_ndesc ask_next(const struct vrnic_transfer *x,
				   const struct vrnic_plan *plan, uint32_t k)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET,
		.length = sizeof(struct vrnic_ndesc),
		.local_addr = plan->rts->table +
			      (uint64_t)k * sizeof(struct vrnic_ndesc),
		.lkey = plan->rts->table_rkey,
	};
}

/* A row of the table of the origin whose transfer has number @id, without a location. */
struct vrnic_ndesc vrnic_plan_row(uint32_t id)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET,
		.num_slots = 1,
		.cookie = id,
	};
}

/*
 * Make row @k of the origin's table. The target's engine executes the row once the origin's engine
 * has sent it, and then sends batch @k + 1 to the origin's engine.
 */
static struct vrnic_ndesc origin_row(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan, uint32_t k)
{
	struct vrnic_ndesc row = vrnic_plan_row(plan->rts->id);

	row.length = vrnic_plan_batch_bytes(plan, k + 1);
	row.local_addr = (uintptr_t)vrnic_plan_batch(x, plan, k + 1);
	row.lkey = vrnic_pool_mr(&x->piece)->rkey;
	return row;
}

/* Make the type of the locations in all rows of the origin's table. Return: 0 or negative errno. */
int vrnic_plan_location(struct vrnic_client *client, const struct vrnic_plan *plan,
			struct vrnic_type **type)
{
	const int64_t row = sizeof(struct vrnic_ndesc);
	const uint64_t nr = plan->batches - 1;
	int ret;

	ret = vrnic_type_create(client, type);
	if (ret)
		return ret;
	/* length and local_addr lie side by side */
	ret = vrnic_type_add_simple(*type, 2 * sizeof(uint64_t),
				    offsetof(struct vrnic_ndesc, length), nr, row);
	if (!ret)
		ret = vrnic_type_add_simple(*type, sizeof(uint32_t),
					    offsetof(struct vrnic_ndesc, lkey), nr, row);
	if (!ret)
		ret = vrnic_type_complete(*type);
	if (ret) {
		vrnic_type_put(*type);
		*type = NULL;
	}
	return ret;
}

static struct vrnic_ndesc put_portion(const struct vrnic_transfer *x,
				      const struct vrnic_plan *plan, uint32_t k)
{
	uint64_t at = k * plan->portion;

	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET |
			  (k + 1 == plan->nr ? VRNIC_COOKIE_LAST : 0),
		.length = portion_bytes(plan, k),
		.local_addr = plan->rts->remote + at,
		.lkey = plan->rts->rkey,
		.remote_addr = plan->local + at,
		.rkey = plan->rkey,
		.local_counter = plan->rts->counter,
		.remote_counter = x->done.local ? x->done.local->number : 0,
		.target_counter = x->status->number,
	};
}

/*
 * Piece @i of portion @k: a message to the target. Messages count no bytes, so the libraries let
 * the counters fall at the end.
 */
static struct vrnic_ndesc send_piece(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan, uint32_t k, uint32_t i)
{
	uint64_t left = portion_bytes(plan, k) - i * PIECE;
	uint64_t nr = (uint64_t)k * portion_moves(plan, 0) + i;

	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_MESSAGE,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET | nr << VRNIC_COOKIE_PIECE |
			  (k + 1 == plan->nr ? VRNIC_COOKIE_LAST : 0),
		.length = left < PIECE ? left : PIECE,
		.local_addr = plan->rts->remote + k * plan->portion + i * PIECE,
		.lkey = plan->rts->rkey,
		.target_counter = x->status->number,
		.arg = VRNIC_DISPATCH_PIECE,
	};
}

/* Do the descriptors let the counter fall that the offer names? */
static bool counts_at_origin(const struct vrnic_plan *plan)
{
	return plan->rts->counter && !plan->pieces;
}

static struct vrnic_ndesc notify(const struct vrnic_transfer *x,
				 const struct vrnic_plan *plan, bool back)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY,
		.flags = back ? VRNIC_NDESC_BACK : 0,
		.num_slots = 1,
		.cookie = back ? x->id | VRNIC_COOKIE_TARGET :
				 plan->rts->id |
				 (counts_at_origin(plan) ? VRNIC_COOKIE_COUNTED : 0),
		.target_counter = x->status->number,
		.arg = back ? VRNIC_DISPATCH_ARRIVED : VRNIC_DISPATCH_TAKEN,
	};
}

static void write_batch(const struct vrnic_transfer *x, const struct vrnic_plan *plan,
			uint32_t k)
{
	struct vrnic_ndesc *d = vrnic_plan_batch(x, plan, k);
	bool last = k + 1 == plan->batches;
	uint32_t i, portion = k - plan->lead;

	if (!last)
		*d++ = ask_next(x, plan, k);
	for (i = 0; i < moves(plan, k); i++)
		*d++ = plan->pieces ? send_piece(x, plan, portion, i) :
				      put_portion(x, plan, portion);
	if (last) {
		*d++ = notify(x, plan, false);
		*d++ = notify(x, plan, true);
	}
}

/* Write all descriptors into @x->piece. */
void vrnic_plan_write(const struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	uint32_t k;

	for (k = 0; k < plan->batches; k++)
		write_batch(x, plan, k);
	for (k = 0; k + 1 < plan->batches; k++)
		vrnic_plan_table(x, plan)[k] = origin_row(x, plan, k);
}
