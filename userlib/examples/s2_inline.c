// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s2_inline: data in the slots of the ring (S2).
 *
 *	s2_inline [device]
 *
 * Task 1 puts a thousand records of different lengths into task 0's memory. A record is
 * a number and data, in two variables of the program, which are not registered. The call
 * copies both, one behind the other, into the slots that follow the descriptor, so task 1
 * overwrites them as soon as the call returns. When the ring is full the call fails with
 * EAGAIN.
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
#define DATA	(LONGEST - sizeof(unsigned int))

static size_t data_length(unsigned int record)
{
	return 1 + record * 37 % DATA;
}

static void make_data(unsigned char *data, unsigned int record)
{
	memset(data, record % 255 + 1, data_length(record));
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
		memcpy(right, &i, sizeof(i));
		make_data(right + sizeof(i), i);
		expect(!memcmp(place, right, PLACE), "record %u is wrong", i);
	}
	printf("task 0: %d records are there, whole, and nothing beside them\n",
	       RECORDS);
	close_memory(mr);
}

/* Returns how often a call found no room. */
static unsigned int put_records(struct task *task, const struct window *window)
{
	unsigned char data[DATA];
	struct vrnic_wr wr = { .rkey = window->rkey };
	unsigned int i, number, full = 0;
	struct iovec sources[2] = { { &number, sizeof(number) }, { data, 0 } };
	int ret;

	for (i = 0; i < RECORDS; i++) {
		number = i;
		make_data(data, i);
		sources[1].iov_len = data_length(i);
		wr.remote = window->address + i * PLACE;
		while ((ret = vrnic_put_inlinev(task->peer[0], &wr, sources, 2, NULL)) == -EAGAIN) {
			full++;
			must(vrnic_advance(task->context, 0));
		}
		must_be_good(ret, "vrnic_put_inlinev");
		number = 0;			/* the call has copied both */
		memset(data, 0, sizeof(data));
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
	unsigned int i, length, full, slots = 0, bytes = 0;
	double begin = now_us();

	full = put_records(task, window);
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	for (i = 0; i < RECORDS; i++) {
		length = sizeof(i) + data_length(i);
		slots += 1 + (length + SLOT - 1) / SLOT;
		bytes += length;
	}
	printf("task 1: %d records, %u bytes in %u slots, each from two variables: %.0f us\n",
	       RECORDS, bytes, slots, now_us() - begin);
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
