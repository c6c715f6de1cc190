// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s5_fence: puts that the program does not count, and a fence behind them (S5).
 *
 *	s5_fence [device]
 *
 * Task 1 puts 1, 100 and 10,000 numbers into task 0's memory, without a counter,
 * a callback or a completion for any of them; a fence says when all are there.
 * Then one put among a hundred has a wrong key, and the fence says which one.
 */
#include <errno.h>
#include <stdio.h>

#include "tasks.h"

#define NUMBERS	10000
#define BAD	42		/* the put that fails */

static uint64_t number(unsigned int i)
{
	return i * 3ULL + 1;
}

static void receive(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, NUMBERS * sizeof(uint64_t),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct window window = window_of(mr);
	const uint64_t *numbers = mr->addr;
	unsigned int i;

	tell(task, 1, &window);
	hear(task, 1);
	for (i = 0; i < NUMBERS; i++)
		expect(numbers[i] == number(i), "number %u is wrong", i);
	printf("task 0: all %d numbers are there when the fence says so\n", NUMBERS);
	close_memory(mr);
}

/* Put one number; wait only while the ring is full. The fence names a failed put by its cookie. */
static void put(struct task *task, const struct ibv_mr *mr, unsigned int i,
		const struct window *window, uint32_t rkey, uint64_t cookie)
{
	struct vrnic_done named = { .cookie = cookie };
	struct vrnic_wr wr = {
		.local = (uint64_t *)mr->addr + i,
		.mr = mr,
		.length = sizeof(uint64_t),
		.remote = window->address + i * sizeof(uint64_t),
		.rkey = rkey,
	};
	int ret;

	while ((ret = vrnic_put(task->peer[0], &wr, cookie ? &named : NULL)) == -EAGAIN)
		must(vrnic_advance(task->context, 0));
	must_be_good(ret, "vrnic_put");
}

static void put_and_fence(struct task *task, const struct ibv_mr *mr,
			  const struct window *window, unsigned int count)
{
	double begin = now_us(), posted, end;
	unsigned int i;

	for (i = 0; i < count; i++)
		put(task, mr, i, window, window->rkey, 0);
	posted = now_us();
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	end = now_us();
	printf("task 1: %5u puts: %8.1f us; the fence: %5.1f us\n", count,
	       posted - begin, end - posted);
}

static void fence_says_what_failed(struct task *task, const struct ibv_mr *mr,
				   const struct window *window)
{
	struct vrnic_status status = {};
	unsigned int i;
	int ret;

	for (i = 1; i <= 100; i++)
		put(task, mr, i, window, i == BAD ? ~window->rkey : window->rkey, i);
	ret = vrnic_fence_wait(task->peer[0], PATIENCE_NS, &status);
	expect(ret == -EIO, "a wrong key gives %d", ret);
	expect(status.cookie == BAD && status.opcode == VRNIC_NOP_PUT,
	       "the fence names another put: %llu", (unsigned long long)status.cookie);
	printf("task 1: put %llu of 100 failed, says the fence: %s (%s)\n",
	       (unsigned long long)status.cookie, ibv_wc_status_str(status.status),
	       vrnic_vendor_err_str(status.vendor_err));
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	printf("task 1: the next fence is good again\n");
}

static void send_all(struct task *task)
{
	const struct window *window = hear(task, 0);
	struct ibv_mr *mr = open_memory(task, NUMBERS * sizeof(uint64_t),
					IBV_ACCESS_LOCAL_WRITE);
	uint64_t *numbers = mr->addr;
	unsigned int i;

	for (i = 0; i < NUMBERS; i++)
		numbers[i] = number(i);
	/* not measured: the first put and fence take page faults of the program */
	put(task, mr, 0, window, window->rkey, 0);
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	put_and_fence(task, mr, window, 1);
	put_and_fence(task, mr, window, 100);
	put_and_fence(task, mr, window, NUMBERS);
	fence_says_what_failed(task, mr, window);
	tell(task, 0, NULL);
	close_memory(mr);
}

static void run(struct task *task)
{
	if (task->number == 0)
		receive(task);
	else
		send_all(task);
}

int main(int argc, char **argv)
{
	return run_tasks(argc, argv, 2, 0, run);
}
