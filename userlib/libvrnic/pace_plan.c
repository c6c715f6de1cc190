// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the target of a self-paced transfer has the engines do: the portions, and the
 * descriptors for them. See pace.c.
 */

#include <errno.h>

#include "pace.h"

#define PORTION		(1ULL << 20)	/* bytes of a portion, unless the program chooses */
#define PORTIONS_MAX	(1U << 20)

static uint64_t ceil_div(uint64_t n, uint64_t by)
{
	return n / by + !!(n % by);
}

/* Return: bytes of a portion: more than PORTION if the origin's table is too short for that. */
static uint64_t portion_of(const struct vrnic_rts *rts)
{
	uint64_t room = (uint64_t)rts->table_rows + 1;

	if (ceil_div(rts->length, PORTION) <= room)
		return PORTION;
	return ceil_div(rts->length, room);
}

/*
 * Cut the message into portions of @portion bytes; 0: automatic. Return: 0, or -EINVAL if the
 * origin's table is too short.
 */
int vrnic_plan_cut(struct vrnic_plan *plan, uint64_t portion)
{
	const struct vrnic_rts *rts = plan->rts;
	uint64_t nr;

	plan->portion = portion ? portion : portion_of(rts);
	nr = rts->length ? ceil_div(rts->length, plan->portion) : 1;
	if (nr > (uint64_t)rts->table_rows + 1 || nr > PORTIONS_MAX)
		return -EINVAL;
	plan->nr = (uint32_t)nr;
	return 0;
}

/* Return: batch @k. Batches have two descriptors each, but the last one may have three. */
struct vrnic_ndesc *vrnic_plan_batch(const struct vrnic_transfer *x, uint32_t k)
{
	return (struct vrnic_ndesc *)x->piece.mem + (size_t)k * 2;
}

static uint32_t last_descs(const struct vrnic_plan *plan)
{
	return plan->rts->length ? 3 : 2;
}

uint64_t vrnic_plan_batch_bytes(const struct vrnic_plan *plan, uint32_t k)
{
	return (k + 1 < plan->nr ? 2 : last_descs(plan)) *
	       sizeof(struct vrnic_ndesc);
}

/* Return: the rows that are to be put into the origin's table. They lie behind the batches. */
struct vrnic_ndesc *vrnic_plan_table(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan)
{
	return vrnic_plan_batch(x, plan->nr - 1) + last_descs(plan);
}

/* Return: number of all descriptors, with those that go into the origin's table. */
uint32_t vrnic_plan_rows(const struct vrnic_plan *plan)
{
	return (plan->nr - 1) * 3 + last_descs(plan);
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

/*
 * Make row @k of the origin's table. The target's engine executes the row once the origin's engine
 * has sent it, and then sends batch @k + 1 to the origin's engine.
 */
static struct vrnic_ndesc origin_row(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan, uint32_t k)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET,
		.num_slots = 1,
		.cookie = plan->rts->id,
		.length = vrnic_plan_batch_bytes(plan, k + 1),
		.local_addr = (uintptr_t)vrnic_plan_batch(x, k + 1),
		.lkey = vrnic_pool_mr(&x->piece)->rkey,
	};
}

static struct vrnic_ndesc put_portion(const struct vrnic_transfer *x,
				      const struct vrnic_plan *plan, uint32_t k)
{
	uint64_t at = k * plan->portion, left = plan->rts->length - at;

	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT,
		.num_slots = 1,
		.cookie = x->id | VRNIC_COOKIE_TARGET |
			  (k + 1 == plan->nr ? VRNIC_COOKIE_LAST : 0),
		.length = left < plan->portion ? left : plan->portion,
		.local_addr = plan->rts->remote + at,
		.lkey = plan->rts->rkey,
		.remote_addr = plan->local + at,
		.rkey = plan->rkey,
		.local_counter = plan->rts->counter,
		.remote_counter = x->done.local ? x->done.local->number : 0,
		.target_counter = x->status->number,
	};
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
				 (plan->rts->counter ? VRNIC_COOKIE_COUNTED : 0),
		.target_counter = x->status->number,
		.arg = back ? VRNIC_DISPATCH_ARRIVED : VRNIC_DISPATCH_TAKEN,
	};
}

static void write_batch(const struct vrnic_transfer *x, const struct vrnic_plan *plan,
			uint32_t k)
{
	struct vrnic_ndesc *d = vrnic_plan_batch(x, k);
	bool last = k + 1 == plan->nr;

	if (!last)
		*d++ = ask_next(x, plan, k);
	if (plan->rts->length)
		*d++ = put_portion(x, plan, k);
	if (last) {
		*d++ = notify(x, plan, false);
		*d++ = notify(x, plan, true);
	}
}

/* Write all descriptors into @x->piece. */
void vrnic_plan_write(const struct vrnic_transfer *x, const struct vrnic_plan *plan)
{
	uint32_t k;

	for (k = 0; k < plan->nr; k++)
		write_batch(x, plan, k);
	for (k = 0; k + 1 < plan->nr; k++)
		vrnic_plan_table(x, plan)[k] = origin_row(x, plan, k);
}
