// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s2_inline: data in the slots of the ring (S2).
 *
 *	s2_inline [device]
 *
 * Task 1 puts a thousand records of different lengths into task 0's memory. It makes
 * all of them in the same little buffer, which is not registered, and overwrites it
 * as soon as the call returns: the call copies the data into the slots that follow
 * the descriptor. When the ring is full the call fails with EAGAIN.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tasks.h"

#define SLOTS	16		/* of the ring: 1 KiB */
#define SLOT	64		/* bytes of a slot */
#define RECORDS	1000
#define PLACE	1024		/* bytes between records at the target */
#define LONGEST	((SLOTS - 1) * SLOT)

static size_t length_of(unsigned int record)
{
	return 1 + record * 37 % LONGEST;
}

static void make_record(unsigned char *data, unsigned int record)
{
	memset(data, record % 255 + 1, length_of(record));
}

static void receive(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, RECORDS * PLACE, IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE);
	struct window window = window_of(mr);
	unsigned char right[PLACE], *place = mr->addr;
	unsigned int i;

	tell(task, 1, &window);
	hear(task, 1);
	for (i = 0; i < RECORDS; i++, place += PLACE) {
		memset(right, 0, sizeof(right));
		make_record(right, i);
		expect(!memcmp(place, right, PLACE), "record %u is wrong", i);
	}
	printf("task 0: %d records are there, whole, and nothing beside them\n",
	       RECORDS);
	close_memory(mr);
}

/* Returns how often a call found no room. */
static unsigned int put_records(struct task *task, const struct window *window)
{
	unsigned char data[LONGEST];
	struct vrnic_wr wr = { .local = data, .rkey = window->rkey };
	unsigned int i, full = 0;
	int ret;

	for (i = 0; i < RECORDS; i++) {
		make_record(data, i);
		wr.length = length_of(i);
		wr.remote = window->address + i * PLACE;
		while ((ret = vrnic_put_inline(task->peer[0], &wr, NULL)) == -EAGAIN) {
			full++;
			must(vrnic_advance(task->context, 0));
		}
		must_be_good(ret, "vrnic_put_inline");
		memset(data, 0, sizeof(data));	/* the call has copied the data */
	}
	return full;
}

static void send_records(struct task *task)
{
	const struct window *window = hear(task, 0);
	static unsigned char much[LONGEST + 1];
	struct vrnic_wr wr = {
		.local = much,
		.length = sizeof(much),
		.remote = window->address,
		.rkey = window->rkey,
	};
	unsigned int i, full, slots = 0, bytes = 0;
	double begin = now_us();

	full = put_records(task, window);
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	for (i = 0; i < RECORDS; i++) {
		slots += 1 + (length_of(i) + SLOT - 1) / SLOT;
		bytes += length_of(i);
	}
	printf("task 1: %d records, %u bytes in %u slots, from one buffer of %zu bytes: %.0f us\n",
	       RECORDS, bytes, slots, (size_t)LONGEST, now_us() - begin);
	printf("task 1: the ring has %d slots; %u times there was no room, and the call said so\n",
	       SLOTS, full);
	expect(vrnic_put_inline(task->peer[0], &wr, NULL) == -EMSGSIZE,
	       "a record that never fits is not refused");
	printf("task 1: %zu bytes need %d slots: EMSGSIZE\n", sizeof(much), SLOTS + 1);
	tell(task, 0, NULL);
}

static void run(struct task *task)
{
	if (task->number == 0)
		receive(task);
	else
		send_records(task);
}

int main(int argc, char **argv)
{
	return run_tasks(argc, argv, 2, SLOTS, run);
}
