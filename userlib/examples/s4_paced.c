// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s4_paced: a large transfer that needs no processor time of either process (S4).
 *
 *	s4_paced [device]
 *
 * Task 1 offers 64 MiB. Task 0 accepts once, in portions of 1 MiB. From then on the
 * two engines ask each other for the next portion, while both processes sleep. The counter of
 * task 1 falls with each portion that was taken (S4.1). Task 0 waits for a bit in the word of a
 * group of counters (S4.6). At the end each process says how much processor time it has used since.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <vrnic_group.h>
#include <vrnic_rts.h>

#include "tasks.h"

#define BYTES	(64UL << 20)
#define PORTION	(1UL << 20)
#define TITLE	"sixty-four mebibytes"

static uint64_t word(size_t place)
{
	return place * 0x9e3779b97f4a7c15ULL;
}

/* What the callbacks below tell the code that waits for them. */
struct transfer {
	bool offered;
	bool ended;
	struct vrnic_rts rts;
};

static void note_offer(struct vrnic_context *context, const struct vrnic_rts *rts,
		       const void *header, size_t header_len, void *arg)
{
	struct transfer *transfer = arg;

	(void)context;
	transfer->rts = *rts;
	transfer->offered = true;
	printf("task 0: task %u offers %llu bytes: '%.*s'\n", rts->peer.task,
	       (unsigned long long)rts->length, (int)header_len,
	       (const char *)header);
}

static void note_end(struct vrnic_context *context,
		     const struct vrnic_status *status, void *arg)
{
	struct transfer *transfer = arg;

	(void)context;
	if (status->status)
		errx(1, "the transfer failed: %s (%s)", ibv_wc_status_str(status->status),
		     vrnic_vendor_err_str(status->vendor_err));
	transfer->ended = true;
}

static void wait_until(struct task *task, const bool *flag)
{
	while (!*flag)
		must(vrnic_advance_wait(task->context, 1, PATIENCE_NS));
}

#define BIT	0	/* of the transfer in the word of the group, which has room for 64 */

/* A counter in a group, or a lone one (@group: NULL), because older modules have no groups. */
static struct vrnic_counter *new_counter(struct task *task, struct vrnic_counter_group **group)
{
	int ret = vrnic_counter_group_create(task->client, 0, group);
	struct vrnic_counter *counter;

	if (ret == -EOPNOTSUPP) {
		*group = NULL;
		must(vrnic_counter_create(task->client, 0, &counter));
		return counter;
	}
	must_be_good(ret, "vrnic_counter_group_create");
	must(vrnic_counter_create_in(*group, BIT, 0, &counter));
	return counter;
}

/* Both sleep until nothing remains. */
static void wait_for_bytes(struct vrnic_counter_group *group, struct vrnic_counter *counter)
{
	if (!group) {
		must(vrnic_counter_wait(counter, 0, PATIENCE_NS));
		return;
	}
	must(vrnic_counter_group_wait(group, 1ULL << BIT, 0, PATIENCE_NS, NULL));
	expect(vrnic_counter_group_read(group, NULL) == 1ULL << BIT, "the word is wrong");
}

/* Accept with one call. Then the process only waits for the counter, which the engine lowers. */
static void accept_offer(struct task *task, struct ibv_mr *mr, struct vrnic_counter_group *group,
			 struct vrnic_counter *counter, struct transfer *transfer)
{
	struct vrnic_accept_wr wr = { .local = mr->addr, .mr = mr, .portion = PORTION };
	struct vrnic_done done = {
		.local = counter,
		.callback = note_end,
		.arg = transfer,
	};
	double begin = now_us(), cpu, end;

	must(vrnic_accept(task->peer[1], &transfer->rts, &wr, &done));
	cpu = cpu_us();
	wait_for_bytes(group, counter);
	cpu = cpu_us() - cpu;
	end = now_us();
	wait_until(task, &transfer->ended);
	printf("task 0: all there after %.0f us, %.0f MB/s; my processor time %.0f us\n",
	       end - begin, BYTES / (end - begin), cpu);
}

static void take(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, BYTES, IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE);
	struct transfer transfer = {};
	struct vrnic_counter_group *group;
	struct vrnic_counter *counter;
	const uint64_t *words = mr->addr;
	size_t i;

	counter = new_counter(task, &group);
	must(vrnic_rts_handler_set(task->context, note_offer, &transfer));
	tell(task, 1, NULL);
	wait_until(task, &transfer.offered);
	expect(transfer.rts.length == BYTES, "an offer of another size");
	accept_offer(task, mr, group, counter, &transfer);
	for (i = 0; i < BYTES / sizeof(*words); i++)
		expect(words[i] == word(i), "word %zu is wrong", i);
	printf("task 0: every word is right\n");
	must(vrnic_counter_destroy(counter));
	if (group)
		must(vrnic_counter_group_destroy(group));
	close_memory(mr);
}

static void offer(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, BYTES, IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_READ);
	struct transfer transfer = {};
	struct vrnic_done done = { .callback = note_end, .arg = &transfer };
	struct vrnic_rts_wr wr = {
		.local = mr->addr,
		.mr = mr,
		.length = BYTES,
		.header = TITLE,
		.header_len = strlen(TITLE),
	};
	struct vrnic_counter *counter;
	uint64_t *words = mr->addr;
	double cpu;
	size_t i;

	for (i = 0; i < BYTES / sizeof(*words); i++)
		words[i] = word(i);
	/* the offer names the counter, if peers may name it */
	must(vrnic_counter_create(task->client, VRNIC_COUNTER_PEERS, &counter));
	done.remote = counter;
	hear(task, 0);
	must(vrnic_rts_send(task->peer[0], &wr, &done));
	cpu = cpu_us();
	must(vrnic_counter_wait(counter, BYTES / 2, PATIENCE_NS));
	printf("task 1: half of it was taken\n");
	wait_until(task, &transfer.ended);
	expect(!vrnic_counter_read(counter), "the counter has not fallen to zero");
	printf("task 1: it was taken, in %lu portions; my processor time %.0f us\n",
	       BYTES / PORTION, cpu_us() - cpu);
	must(vrnic_counter_destroy(counter));
	close_memory(mr);
}

static void run(struct task *task)
{
	if (task->number == 0)
		take(task);
	else
		offer(task);
}

int main(int argc, char **argv)
{
	return run_tasks(argc, argv, 2, 0, run);
}
