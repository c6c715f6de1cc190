// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A victim that lives on remote gets, and attacks with injected descriptors. */
#include <time.h>

#include "native_raw.h"
#include "neighbour.h"

#define LEN		65536
#define SLOTS		64
#define RECORDS		256
#define BATCH		16
#define BYTES		4096	/* of an operation of the victim */
#define DATA		8192	/* in the victim's buffer, where they go */

static struct raw_pair pair;
static uint32_t to_victim;

static int rget(struct raw_fifo *fifo, uint32_t endpoint, unsigned int n)
{
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .endpoint = endpoint,
		.length = n * sizeof(d), .local_addr = (uintptr_t)fifo->buf.addr,
		.lkey = fifo->buf.mr->lkey,
	};

	return raw_post(fifo, &d, NULL, 0);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* FIFO a has b's engine put b's data into a's memory, and hears of it. */
unsigned long native_victim(double seconds, void (*begin)(const struct victim *victim))
{
	struct vrnic_ndesc *batch;
	struct vrnic_record record;
	struct victim victim = {};
	unsigned long done = 0;
	double end;

	must(raw_pair_open(&pair, SLOTS, RECORDS, LEN));
	batch = (struct vrnic_ndesc *)pair.a.buf.addr;
	batch[0] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = BYTES,
		.local_addr = (uintptr_t)pair.b.buf.addr, .lkey = pair.b.buf.mr->rkey,
		.remote_addr = (uintptr_t)pair.a.buf.addr + DATA,
		.rkey = pair.a.buf.mr->rkey,
	};
	batch[1] = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY, .num_slots = 1, .flags = VRNIC_NDESC_BACK,
	};
	victim.address = pair.b.address;
	begin(&victim);
	for (end = now() + seconds; now() < end; done++) {
		must(rget(&pair.a, pair.a_to_b, 2));
		must(raw_take(&pair.a, &record));
		if (record.status)
			die("the victim's remote gets fail: %u", record.status);
	}
	return done;
}

static void fill_batch(struct vrnic_ndesc what)
{
	struct vrnic_ndesc *batch = (struct vrnic_ndesc *)pair.a.buf.addr;
	unsigned int i;

	what.num_slots = 1;
	for (i = 0; i < BATCH; i++)
		batch[i] = what;
}

/* What the victim is asked to tell fills a FIFO that nobody reads. */
void full_begin(const struct victim *victim)
{
	uint32_t handle;

	must(raw_pair_open(&pair, SLOTS, RECORDS, LEN));
	must(raw_endpoint(&pair.a, &victim->address, &to_victim, &handle));
	fill_batch((struct vrnic_ndesc){ .opcode = VRNIC_NOP_NOTIFY, .flags = VRNIC_NDESC_BACK });
}

/* Room in the ring is as much as was taken from it. */
static bool has_room(const struct raw_fifo *fifo)
{
	uint32_t prod = __atomic_load_n(&fifo->inject->prod, __ATOMIC_ACQUIRE);
	uint32_t cons = __atomic_load_n(&fifo->inject->cons, __ATOMIC_ACQUIRE);

	return prod - cons < fifo->inject_entries;
}

void full_turn(unsigned int thread)
{
	if (has_room(&pair.a))
		rget(&pair.a, to_victim, BATCH);
	else
		raw_ring(&pair.a);
}

/* Keys that nobody gave out, to be looked for by an engine for ever. */
void failing_begin(const struct victim *victim)
{
	must(raw_pair_open(&pair, SLOTS, RECORDS, LEN));
	fill_batch((struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .length = 8, .lkey = 1, .rkey = 1,
	});
}

void failing_turn(unsigned int thread)
{
	struct vrnic_record record;

	if (has_room(&pair.a))
		rget(&pair.a, pair.a_to_b, BATCH);
	else
		raw_ring(&pair.a);
	while (!raw_try(&pair.a, &record))
		;
	while (!raw_try(&pair.b, &record))
		;
}
