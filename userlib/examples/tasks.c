// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Start processes, and have them find each other: see tasks.h. Any program sets up the
 * native interface like this: a client, a context with a name, an endpoint to each peer.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"

#define PAGE		4096
#define TELL		1	/* dispatch id of what tell() sends */

int must_be_good(int result, const char *call)
{
	if (result < 0)
		errx(1, "%s: %s", call, strerror(-result));
	return result;
}

static double clock_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

double now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

double cpu_us(void)
{
	return clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

struct ibv_mr *open_memory(struct task *task, size_t bytes, int access)
{
	size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
	void *memory = aligned_alloc(PAGE, rounded);
	struct ibv_mr *mr = NULL;

	if (memory) {
		memset(memory, 0, rounded);
		mr = ibv_reg_mr(vrnic_client_pd(task->client), memory, bytes, access);
	}
	if (!mr)
		err(1, "cannot register %zu bytes (ulimit -l?)", bytes);
	return mr;
}

void close_memory(struct ibv_mr *mr)
{
	void *memory = mr->addr;

	expect(!ibv_dereg_mr(mr), "cannot deregister memory");
	free(memory);
}

struct window window_of(const struct ibv_mr *mr)
{
	return (struct window){ .address = (uintptr_t)mr->addr, .rkey = mr->rkey };
}

static void note_window(struct vrnic_context *context,
			const struct vrnic_message *message, void *arg)
{
	struct task *task = arg;

	(void)context;
	expect(message->peer.task < task->count, "a message of task %u", message->peer.task);
	task->told[message->peer.task]++;
	if (message->length == sizeof(struct window))
		memcpy(&task->window[message->peer.task], message->data,
		       sizeof(struct window));
}

void tell(struct task *task, unsigned int to, const struct window *window)
{
	struct vrnic_done done = { .flags = VRNIC_QUEUE };
	struct vrnic_send_wr wr = {
		.data = window,
		.length = window ? sizeof(*window) : 0,
		.id = TELL,
	};

	must(vrnic_send(task->peer[to], &wr, &done));
}

const struct window *hear(struct task *task, unsigned int from)
{
	while (task->told[from] == task->heard[from])
		must(vrnic_advance_wait(task->context, 16, PATIENCE_NS));
	task->heard[from]++;
	return &task->window[from];
}

/*
 * Where tasks on two hosts leave the addresses of their contexts. Here it is memory that all of
 * them share; the tasks of a real cluster have a launcher, or a socket, for that.
 */
struct board {
	struct vrnic_address address[TASKS_MAX];
	bool there[TASKS_MAX];
};

static struct board *open_board(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (board == MAP_FAILED)
		err(1, "mmap");
	return board;
}

static void write_address(struct board *board, const struct task *task)
{
	vrnic_context_address(task->context, &board->address[task->number]);
	/* pairs with the acquire in meet_peer() */
	__atomic_store_n(&board->there[task->number], true, __ATOMIC_RELEASE);
}

static void meet_peer(struct task *task, struct board *board, unsigned int peer)
{
	double end = now_us() + PATIENCE_NS / 1e3;

	while (!__atomic_load_n(&board->there[peer], __ATOMIC_ACQUIRE)) {
		expect(now_us() < end, "task %u has no context", peer);
		usleep(1000);
	}
	must(vrnic_endpoint_create(task->context, &board->address[peer], &task->peer[peer]));
}

/* Find the context of a peer. Try again while the peer has not made it yet. */
static void find_peer(struct task *task, const char *name, unsigned int peer)
{
	double end = now_us() + PATIENCE_NS / 1e3;
	int ret;

	do {
		ret = vrnic_endpoint_find(task->context, name, peer, 0,
					  &task->peer[peer]);
		if (ret == -ENOENT)
			usleep(1000);
	} while (ret == -ENOENT && now_us() < end);
	must_be_good(ret, "vrnic_endpoint_find");
}

/* @board: NULL: all tasks are on one host, and find each other by @name */
static void open_task(struct task *task, const char *device, const char *name,
		      struct board *board, uint32_t inject_slots)
{
	struct vrnic_context_attr attr = {
		.name = name,
		.task = task->number,
		.inject_slots = inject_slots,
	};
	unsigned int i;

	must(vrnic_client_open(device, &task->client));
	must(vrnic_context_create(task->client, &attr, &task->context));
	must(vrnic_dispatch_set(task->context, TELL, note_window, task));
	if (board)
		write_address(board, task);
	for (i = 0; i < task->count; i++) {
		if (i == task->number)
			continue;
		if (board)
			meet_peer(task, board, i);
		else
			find_peer(task, name, i);
	}
}

/* Tell all tasks that this one is done, and wait until all are: they may still need its memory. */
static void part(struct task *task)
{
	unsigned int i;

	for (i = 0; i < task->count; i++)
		if (i != task->number)
			tell(task, i, NULL);
	must(vrnic_fence_all_wait(task->context, PATIENCE_NS, NULL));
	for (i = 0; i < task->count; i++)
		if (i != task->number)
			hear(task, i);
}

static void close_task(struct task *task)
{
	unsigned int i;

	for (i = 0; i < task->count; i++)
		if (i != task->number)
			must(vrnic_endpoint_destroy(task->peer[i]));
	must(vrnic_context_destroy(task->context));
	must(vrnic_client_close(task->client));
}

/* Wait for all tasks. Once one has failed, kill the others, which would only wait for it. */
static int reap_tasks(pid_t *pids, unsigned int count)
{
	unsigned int left, i;
	int status, bad = 0;
	pid_t ended;

	for (left = count; left; left--) {
		ended = wait(&status);
		if (ended < 0)
			err(1, "wait");
		bad |= status;
		for (i = 0; i < count; i++) {
			if (pids[i] == ended)
				pids[i] = 0;
			else if (bad && pids[i])
				kill(pids[i], SIGKILL);
		}
	}
	return !!bad;
}

int run_tasks(int argc, char **argv, unsigned int count, uint32_t inject_slots,
	      void (*run)(struct task *task))
{
	char *first = argc > 1 ? argv[1] : NULL;
	char *second = first ? strchr(first, ',') : NULL;
	struct board *board = second ? open_board() : NULL;
	struct task task = { .count = count };
	char name[VRNIC_CLIENT_NAME];
	pid_t pids[TASKS_MAX];

	if (second)
		*second++ = '\0';
	snprintf(name, sizeof(name), "example-%d", getpid());
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; task.number < count; task.number++) {
		pids[task.number] = fork();
		if (pids[task.number] < 0)
			err(1, "fork");
		if (pids[task.number])
			continue;
		open_task(&task, second && task.number % 2 ? second : first, name, board,
			  inject_slots);
		run(&task);
		part(&task);
		close_task(&task);
		exit(0);
	}
	return reap_tasks(pids, count);
}
