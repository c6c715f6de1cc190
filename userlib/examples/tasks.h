/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the native examples have in common: a program is started once, forks its
 * tasks, each of them opens the device, and they find each other by name.
 *
 * Nothing here goes on after a failure: it says what failed, and ends the task
 * with status 1. The others are killed then, and the program ends with status 1.
 */
#ifndef EXAMPLES_TASKS_H
#define EXAMPLES_TASKS_H

#include <err.h>
#include <stdint.h>
#include <vrnic.h>

#define TASKS_MAX	4
#define PATIENCE_NS	30000000000ULL	/* nothing here takes half a minute */

/* Memory that a task opens to another, and counters that go with it (or 0). */
struct window {
	uint64_t address;
	uint32_t rkey;
	uint32_t counter[2];
};

/**
 * struct task - one of the processes, as it sees the others
 * @number: 0 to @count - 1
 * @count: how many there are
 * @client: the device
 * @context: its rings
 * @peer: endpoints to the other tasks
 * @window: what each task told last
 * @told: how often it told
 * @heard: how often this task listened
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

/* main() of an example: [device] is its argument. Returns the exit status. */
int run_tasks(int argc, char **argv, unsigned int count, uint32_t inject_slots,
	      void (*run)(struct task *task));

/* Message to a task; @window may be NULL: then only that this point is reached. */
void tell(struct task *task, unsigned int to, const struct window *window);

/* Wait for the next message of a task. */
const struct window *hear(struct task *task, unsigned int from);

/* @result of the call is 0, or a number; a negative errno ends the task. */
#define must(call)	must_be_good(call, #call)
int must_be_good(int result, const char *call);

/* End the task unless the data is what it has to be; a format and values follow. */
#define expect(good, ...)	((good) ? (void)0 : errx(1, __VA_ARGS__))

/* Memory of the process, registered; and both given back. */
struct ibv_mr *open_memory(struct task *task, size_t bytes, int access);
void close_memory(struct ibv_mr *mr);

struct window window_of(const struct ibv_mr *mr);

/* Microseconds: by the clock, and of processor time that this process has used. */
double now_us(void);
double cpu_us(void);

#endif /* EXAMPLES_TASKS_H */
