/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the native examples have in common: the user starts a program once. It forks
 * its tasks, each task opens the device, and the tasks find each other by name. With two
 * devices, which may be on two hosts, the tasks take them in turn, and tell each other their
 * addresses.
 *
 * After a failure, each function here prints what failed, and ends the task with
 * status 1. Then run_tasks() kills the other tasks, and the program ends with status 1.
 */
#ifndef EXAMPLES_TASKS_H
#define EXAMPLES_TASKS_H

#include <err.h>
#include <stdint.h>
#include <vrnic.h>

#define TASKS_MAX	4
#define PATIENCE_NS	30000000000ULL	/* timeout: nothing here takes half a minute */

/* Memory that a task opens to others, and numbers of counters for it; 0: none. */
struct window {
	uint64_t address;
	uint32_t rkey;
	uint32_t counter[2];
};

/**
 * struct task - one of the processes, as it sees the others
 * @number: 0 to @count - 1
 * @count: how many tasks there are
 * @client: the device
 * @context: the rings of this task
 * @peer: endpoints to the other tasks
 * @window: what each task told last
 * @told: how many messages of each task have come
 * @heard: for how many of them hear() has returned
 */
struct task {
	unsigned int number;
	unsigned int count;
	struct vrnic_client *client;
	struct vrnic_context *context;
	struct vrnic_endpoint *peer[TASKS_MAX];
	struct window window[TASKS_MAX];
	unsigned int told[TASKS_MAX];
	unsigned int heard[TASKS_MAX];
};

/* main() of an example: [device[,device]] is its argument. Returns the exit status. */
int run_tasks(int argc, char **argv, unsigned int count, uint32_t inject_slots,
	      void (*run)(struct task *task));

/* Send a message to a task. If @window is NULL, it only says that the sender got here. */
void tell(struct task *task, unsigned int to, const struct window *window);

/* Wait for the next message of a task. Returns the last window that the task told. */
const struct window *hear(struct task *task, unsigned int from);

/* Make a call. Returns its result, which is 0 or a number; a negative errno ends the task. */
#define must(call)	must_be_good(call, #call)
int must_be_good(int result, const char *call);

/* End the task unless @good. A format and values of the message follow. */
#define expect(good, ...)	((good) ? (void)0 : errx(1, __VA_ARGS__))

/* Allocate and register memory; deregister and free it. */
struct ibv_mr *open_memory(struct task *task, size_t bytes, int access);
void close_memory(struct ibv_mr *mr);

struct window window_of(const struct ibv_mr *mr);

/* Microseconds of the clock, and of processor time that this process has used. */
double now_us(void);
double cpu_us(void);

#endif /* EXAMPLES_TASKS_H */
