// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s1_read: memory that nobody registered, and a counter that says how much of it
 * is still to come (S1).
 *
 *	s1_read [device]
 *
 * Task 0 registers a book, and does nothing more. Task 1 reads it into memory from
 * malloc(), and writes a page back; the kernel pins this memory while it copies. A
 * read behind the end of the book leaves an error in the counter; task 1 then reads
 * within the book.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks.h"

#define BOOK	(10000000UL + 123)	/* bytes; not a multiple of anything */
#define PAGE	4096

static unsigned char letter(size_t place)
{
	return place * 31 + place / 251;
}

static void write_book(unsigned char *book)
{
	size_t i;

	for (i = 0; i < BOOK; i++)
		book[i] = letter(i);
}

/* Task 0, which has the memory. It learns of no read or write until task 1 tells it. */
static void lend(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, BOOK, IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_WRITE);
	struct window window = window_of(mr);
	unsigned char *book = mr->addr;
	size_t i;

	write_book(book);
	tell(task, 1, &window);
	hear(task, 1);
	for (i = 0; i < BOOK; i++)
		expect(book[i] == (i < PAGE ? 0x5a : letter(i)),
		       "wrong byte %zu after the write", i);
	printf("task 0: the first %d bytes of my book are new, the others as they were\n",
	       PAGE);
	close_memory(mr);
}

/*
 * Read behind the end of the book, then the same length inside of it. The next fence also reports
 * the failure, so wait for one.
 */
static void fail_and_retry(struct task *task, unsigned char *copy,
			   const struct window *window, struct vrnic_counter *counter)
{
	struct vrnic_done done = { .local = counter };
	struct vrnic_error error = {};
	struct vrnic_wr wr = {
		.local = copy,
		.length = PAGE,
		.remote = window->address + BOOK - PAGE + 1,
		.rkey = window->rkey,
	};
	int ret;

	must(vrnic_read(task->peer[0], &wr, &done));
	ret = vrnic_counter_wait(counter, 0, PATIENCE_NS);
	expect(ret == -EIO, "reading behind the end gives %d", ret);
	expect(vrnic_counter_error(counter, &error) == 1, "%u errors", error.count);
	printf("task 1: a read over the end fails: %s (%s), %llu bytes placed\n",
	       ibv_wc_status_str(error.status),
	       vrnic_vendor_err_str(error.vendor_err),
	       (unsigned long long)error.placed);

	expect(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL) == -EIO,
	       "the fence does not know of the failure");
	vrnic_counter_set(counter, 0);
	wr.remote--;
	must(vrnic_read(task->peer[0], &wr, &done));
	must(vrnic_counter_wait(counter, 0, PATIENCE_NS));
	expect(copy[PAGE - 1] == letter(BOOK - 1), "wrong byte after the retry");
	printf("task 1: tried again, one byte further down: right\n");
}

/* Read the whole book. The counter is memory, so a look at it needs no system call. */
static void read_book(struct task *task, unsigned char *copy,
		      const struct window *window, struct vrnic_counter *counter)
{
	struct vrnic_done done = { .local = counter };
	struct vrnic_wr wr = {
		.local = copy,
		.length = BOOK,
		.remote = window->address,
		.rkey = window->rkey,
	};
	double begin = now_us(), us;
	int64_t left;
	size_t i;

	must(vrnic_read(task->peer[0], &wr, &done));
	left = vrnic_counter_read(counter);
	must(vrnic_counter_wait(counter, 0, PATIENCE_NS));
	us = now_us() - begin;
	for (i = 0; i < BOOK; i++)
		expect(copy[i] == letter(i), "wrong byte %zu after the read", i);
	printf("task 1: read %lu bytes; when the call returned %lld were still to come\n",
	       BOOK, (long long)left);
	printf("task 1: all there after %.0f us, %.0f MB/s, and right\n", us, BOOK / us);
}

/* Write a page, and learn in another way that it is done: by a file descriptor for poll(2). */
static void write_page(struct task *task, unsigned char *page,
		       const struct window *window, struct vrnic_counter *counter)
{
	struct pollfd fell = {
		.fd = vrnic_counter_fd(counter),
		.events = POLLIN,
	};
	struct vrnic_done done = { .local = counter };
	struct vrnic_wr wr = {
		.local = page,
		.length = PAGE,
		.remote = window->address,
		.rkey = window->rkey,
	};
	uint64_t times;

	memset(page, 0x5a, PAGE);
	must(vrnic_write(task->peer[0], &wr, &done));
	while (vrnic_counter_read(counter) > 0 && !vrnic_counter_error(counter, NULL)) {
		expect(poll(&fell, 1, PATIENCE_NS / 1000000) == 1, "poll");
		expect(read(fell.fd, &times, sizeof(times)) == sizeof(times), "eventfd");
	}
	expect(!vrnic_counter_error(counter, NULL), "the write failed");
	printf("task 1: wrote %d bytes, and poll(2) said that they are taken\n", PAGE);
}

static void borrow(struct task *task)
{
	const struct window *window = hear(task, 0);
	unsigned char *copy = malloc(BOOK);	/* and no ibv_reg_mr() */
	struct vrnic_counter *counter;

	expect(copy, "no memory");
	memset(copy, 0xff, BOOK);
	must(vrnic_counter_create(task->client, 0, &counter));
	fail_and_retry(task, copy, window, counter);
	read_book(task, copy, window, counter);
	write_page(task, copy, window, counter);
	tell(task, 0, NULL);
	must(vrnic_counter_destroy(counter));
	free(copy);
}

static void run(struct task *task)
{
	if (task->number == 0)
		lend(task);
	else
		borrow(task);
}

int main(int argc, char **argv)
{
	return run_tasks(argc, argv, 2, 0, run);
}
