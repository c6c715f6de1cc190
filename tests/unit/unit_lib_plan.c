// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a target cuts a message into portions. The test plays both engines: it goes from batch to
 * batch by the rows of the table, and sees what moves.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../userlib/libvrnic/pace.h"
#include "unit.h"

#define MIB		(1ULL << 20)
#define REMOTE		0x10000000ULL
#define LOCAL		0x20000000ULL
#define TABLE		0x30000000ULL
#define PORTION_LEAST	65536

static struct ibv_mr pool_mr = { .rkey = 77 };
static uint64_t located;

const struct ibv_mr *vrnic_pool_mr(const struct vrnic_piece *piece)
{
	(void)piece;
	return &pool_mr;
}

int vrnic_type_create(struct vrnic_client *client, struct vrnic_type **type)
{
	(void)client;
	*type = (struct vrnic_type *)&pool_mr;
	return 0;
}

int vrnic_type_add_simple(struct vrnic_type *type, uint64_t bytes, int64_t offset, uint64_t count,
			  int64_t stride)
{
	(void)type;
	(void)bytes;
	(void)offset;
	(void)stride;
	located = count;
	return 0;
}

int vrnic_type_complete(struct vrnic_type *type)
{
	(void)type;
	return 0;
}

void vrnic_type_put(struct vrnic_type *type)
{
	(void)type;
}

/* A plan with its descriptors. */
struct bed {
	struct vrnic_rts rts;
	struct vrnic_plan plan;
	struct vrnic_counter status;
	struct vrnic_transfer x;
};

static int cut(struct bed *bed, uint64_t length, uint32_t hosts, uint64_t portion)
{
	*bed = (struct bed){
		.rts = { .length = length, .remote = REMOTE, .table = TABLE, .table_rows = 255,
			 .id = 5 },
		.plan = { .local = LOCAL, .hosts = hosts },
		.x = { .id = 9 },
	};
	bed->plan.rts = &bed->rts;
	bed->x.status = &bed->status;
	return vrnic_plan_cut(&bed->plan, portion);
}

static void write_plan(struct bed *bed)
{
	bed->x.piece.rows = vrnic_plan_rows(&bed->plan);
	bed->x.piece.mem = calloc(bed->x.piece.rows, sizeof(struct vrnic_ndesc));
	vrnic_plan_write(&bed->x, &bed->plan);
}

/* What the origin's engine does with a batch. Return: the row that it sends, or NULL. */
static const struct vrnic_ndesc *run_batch(struct bed *bed, const struct vrnic_ndesc *d,
					   uint64_t nr, uint64_t *moved, bool *told)
{
	const struct vrnic_ndesc *row = NULL;
	uint64_t pieces = 0;

	CHECK(nr && nr <= VRNIC_RGET_DESCS);
	for (; nr--; d++) {
		CHECK(!*told || d->opcode == VRNIC_NOP_NOTIFY);
		switch (d->opcode) {
		case VRNIC_NOP_RGET:
			/* before what moves */
			CHECK(!row && !pieces);
			row = vrnic_plan_table(&bed->x, &bed->plan) +
			      (d->local_addr - TABLE) / sizeof(*row);
			break;
		case VRNIC_NOP_PUT:
			CHECK_EQ(LOCAL + *moved, d->remote_addr);
			/* fallthrough */
		case VRNIC_NOP_MESSAGE:
			CHECK_EQ(REMOTE + *moved, d->local_addr);
			*moved += d->length;
			CHECK(!(d->cookie & VRNIC_COOKIE_LAST) == !!row);
			pieces++;
			break;
		default:
			CHECK_EQ(VRNIC_NOP_NOTIFY, d->opcode);
			CHECK_EQ(bed->rts.length, *moved);
			*told = true;
		}
	}
	return row;
}

/* Run all of it. Return: number of batches. */
static uint32_t run_plan(struct bed *bed)
{
	const struct vrnic_ndesc *batch = bed->x.piece.mem, *row;
	uint64_t moved = 0, nr;
	uint32_t batches = 1;
	bool told = false;

	nr = vrnic_plan_batch_bytes(&bed->plan, 0) / sizeof(*batch);
	while ((row = run_batch(bed, batch, nr, &moved, &told))) {
		CHECK_EQ(batches - 1, row - vrnic_plan_table(&bed->x, &bed->plan));
		CHECK_EQ(pool_mr.rkey, row->lkey);
		batch = (const struct vrnic_ndesc *)(uintptr_t)row->local_addr;
		nr = row->length / sizeof(*batch);
		batches++;
	}
	CHECK(told);
	CHECK_EQ(bed->rts.length, moved);
	return batches;
}

static void check_plan(struct bed *bed)
{
	struct vrnic_type *type;

	write_plan(bed);
	CHECK_EQ(bed->plan.batches, run_plan(bed));
	CHECK_EQ(0, vrnic_plan_location(NULL, &bed->plan, &type));
	CHECK_EQ(bed->plan.batches - 1, located);
	free(bed->x.piece.mem);
}

static uint64_t portion_for(uint64_t length, uint32_t hosts)
{
	struct bed bed;

	CHECK_EQ(0, cut(&bed, length, hosts, 0));
	check_plan(&bed);
	return bed.plan.portion;
}

static void portions_get_shorter_with_more_hosts(void)
{
	CHECK_EQ(4 * MIB, portion_for(64 * MIB, 0));
	CHECK_EQ(MIB, portion_for(64 * MIB, 1));
	CHECK_EQ(MIB, portion_for(64 * MIB, 4));
	CHECK_EQ(12 * PORTION_LEAST, portion_for(4 * MIB, 5));
	CHECK_EQ(MIB / 4, portion_for(4 * MIB, 16));
	CHECK_EQ(3 * PORTION_LEAST, portion_for(4 * MIB, 17));
	CHECK_EQ(PORTION_LEAST, portion_for(4 * MIB, 63));
	CHECK_EQ(PORTION_LEAST, portion_for(4 * MIB, 65));
	CHECK_EQ(PORTION_LEAST, portion_for(4 * MIB, UINT32_MAX));
}

/* The table of the origin may be too short for the portions that are wanted. */
static void tables_bound_the_portions(void)
{
	struct bed bed;

	CHECK_EQ(0, cut(&bed, 64 * MIB, 63, 0));
	CHECK_EQ(256, bed.plan.nr);
	CHECK_EQ(MIB / 4, bed.plan.portion);
	/* 256 portions take 255 rows, and there is no row left for a turn of the first one */
	CHECK(!bed.plan.lead);
	check_plan(&bed);
	CHECK_EQ(0, cut(&bed, 1, 63, 0));
	bed.rts.table_rows = 0;
	CHECK_EQ(0, vrnic_plan_cut(&bed.plan, 0));
	CHECK(!bed.plan.lead);
	check_plan(&bed);
}

static void only_the_first_of_several_hosts_starts_at_once(void)
{
	struct bed bed;
	uint32_t hosts;

	for (hosts = 0; hosts < 4; hosts++) {
		CHECK_EQ(0, cut(&bed, MIB, hosts, 0));
		CHECK_EQ(hosts > 1, bed.plan.lead);
		/* a remote get alone, or with a portion; or a portion and two NOTIFYs */
		CHECK_EQ(hosts > 1 ? 1 : 3,
			 vrnic_plan_batch_bytes(&bed.plan, 0) / sizeof(struct vrnic_ndesc));
		check_plan(&bed);
		CHECK_EQ(0, cut(&bed, 0, hosts, 0));
		CHECK(!bed.plan.lead);
		check_plan(&bed);
	}
}

static uint64_t draw(uint64_t below)
{
	return (uint64_t)random() % below;
}

/* Each byte moves once, whatever the plan. */
static void any_plan_moves_all(void)
{
	struct bed bed;
	uint64_t length, portion;
	uint32_t hosts;
	int i;

	srandom(1);
	for (i = 0; i < 20000; i++) {
		length = draw(draw(2) ? 300 : 8 * MIB);
		portion = draw(2) ? 0 : draw(draw(2) ? 100 : 100000) + 1;
		hosts = draw(2) ? draw(4) : draw(100);
		cut(&bed, length, hosts, 0);
		bed.plan.pieces = draw(2);
		bed.rts.table_rows = draw(300);
		if (vrnic_plan_cut(&bed.plan, portion))
			continue;
		CHECK(bed.plan.portion);
		CHECK(bed.plan.batches <= bed.rts.table_rows + 1);
		check_plan(&bed);
	}
}

static const struct unit_test tests[] = {
	UNIT(portions_get_shorter_with_more_hosts), UNIT(tables_bound_the_portions),
	UNIT(only_the_first_of_several_hosts_starts_at_once), UNIT(any_plan_moves_all),
};

UNIT_MAIN(tests)
