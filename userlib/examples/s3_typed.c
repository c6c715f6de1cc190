// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * s3_typed: data of one shape goes into another shape, without buffers (S3).
 *
 *	s3_typed [device]
 *
 * Task 1 puts bytes that lie scattered in its memory to where they belong in the
 * memory of task 0: a small table that can be followed by hand, a column of a matrix
 * into a row, and a whole matrix transposed, which is 16,384 pieces in one put.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <vrnic_type.h>

#include "tasks.h"

#define N	128		/* rows and columns of the matrix */
#define COLUMN	5
#define ROW	2
#define SMALL	8		/* bytes of the small table */

struct store {
	char small[SMALL];
	double row[N][N];
	double transposed[N][N];
};

static double element(int row, int column)
{
	return row * 1000 + column;
}

static struct vrnic_type *new_type(struct task *task)
{
	struct vrnic_type *type;

	must(vrnic_type_create(task->client, &type));
	return type;
}

static struct vrnic_type *vector(struct task *task, size_t bytes, size_t count,
				 size_t stride)
{
	struct vrnic_type *type = new_type(task);

	must(vrnic_type_add_simple(type, bytes, 0, count, stride));
	must(vrnic_type_complete(type));
	return type;
}

/* A contiguous chunk of a type. */
struct chunk {
	int64_t offset;
	uint64_t bytes;
};

static struct vrnic_type *chunks(struct task *task, const struct chunk *chunk,
				 unsigned int count)
{
	struct vrnic_type *type = new_type(task);
	unsigned int i;

	for (i = 0; i < count; i++)
		must(vrnic_type_add_simple(type, chunk[i].bytes, chunk[i].offset, 1, 0));
	must(vrnic_type_complete(type));
	return type;
}

/* Put, and wait until the data is there. Returns the time in microseconds. */
static double put(struct task *task, const struct vrnic_typed_wr *wr)
{
	double begin = now_us();

	must(vrnic_put_typed(task->peer[0], wr, NULL));
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	return now_us() - begin;
}

/* Offset:bytes of the chunks here: 1:2, 5:1, 7:1; there: 0:1, 3:1, 5:2; in common: four bytes. */
static void put_small(struct task *task, const struct window *window)
{
	static const struct chunk here[] = { { 1, 2 }, { 5, 1 }, { 7, 1 } };
	static const struct chunk there[] = { { 0, 1 }, { 3, 1 }, { 5, 2 } };
	struct ibv_mr *mr = open_memory(task, SMALL, IBV_ACCESS_LOCAL_WRITE);
	struct vrnic_type *from = chunks(task, here, 3);
	struct vrnic_type *to = chunks(task, there, 3);
	struct vrnic_typed_wr wr = {
		.local = mr->addr,
		.mr = mr,
		.local_type = from,
		.remote = window->address,
		.rkey = window->rkey,
		.remote_type = to,
		.mode = VRNIC_TYPED_SAME,
	};

	memcpy(mr->addr, ".AB..C.D", SMALL);
	expect(vrnic_put_typed(task->peer[0], &wr, NULL) == -EINVAL,
	       "different types are taken for the same");
	wr.mode = VRNIC_TYPED_PACKED;
	put(task, &wr);
	wr.mode = VRNIC_TYPED_CHUNKS;
	put(task, &wr);
	printf("task 1: '%.8s', bytes 1-2, 5 and 7, to bytes 0, 3 and 5-6\n",
	       (char *)mr->addr);
	must(vrnic_type_destroy(from));
	must(vrnic_type_destroy(to));
	close_memory(mr);
}

/* The type that reads a matrix column by column: N columns, one beside the other. */
static struct vrnic_type *all_columns(struct task *task,
				      const struct vrnic_type *column)
{
	struct vrnic_type *type = new_type(task);

	must(vrnic_type_add_typed(type, column, 0, N, sizeof(double)));
	must(vrnic_type_complete(type));
	return type;
}

static void put_matrix(struct task *task, const struct window *window)
{
	struct ibv_mr *mr = open_memory(task, N * N * sizeof(double),
					IBV_ACCESS_LOCAL_WRITE);
	struct vrnic_type *column = vector(task, sizeof(double), N, N * sizeof(double));
	struct vrnic_type *row = vector(task, N * sizeof(double), 1, 0);
	struct vrnic_type *columns = all_columns(task, column);
	struct vrnic_type *rows = vector(task, N * N * sizeof(double), 1, 0);
	struct vrnic_type_info info = {};
	struct vrnic_typed_wr wr = { .mr = mr, .rkey = window->rkey };
	double *matrix = mr->addr, us;
	int i;

	for (i = 0; i < N * N; i++)
		matrix[i] = element(i / N, i % N);
	wr.local = matrix + COLUMN;
	wr.local_type = column;
	wr.remote = window->address + offsetof(struct store, row[ROW]);
	wr.remote_type = row;
	us = put(task, &wr);
	printf("task 1: column %d to row %d: %d chunks of 8 bytes, %.0f us\n", COLUMN,
	       ROW, N, us);

	must(vrnic_type_query(columns, &info));
	wr.local = matrix;
	wr.local_type = columns;
	wr.remote = window->address + offsetof(struct store, transposed);
	wr.remote_type = rows;
	us = put(task, &wr);
	printf("task 1: transposed: %llu bytes, %llu chunks, %llu rows of metadata, %.0f us\n",
	       (unsigned long long)info.bytes, (unsigned long long)info.chunks,
	       (unsigned long long)info.rows, us);
	must(vrnic_type_destroy(column));
	must(vrnic_type_destroy(row));
	must(vrnic_type_destroy(columns));
	must(vrnic_type_destroy(rows));
	close_memory(mr);
}

static void check_store(const struct store *store)
{
	int i, j;

	expect(!memcmp(store->small, "A\0\0B\0CD\0", SMALL), "the small table is wrong");
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			expect(store->row[i][j] == (i == ROW ? element(j, COLUMN) : 0),
			       "row %d, column %d is wrong", i, j);
			expect(store->transposed[i][j] == element(j, i),
			       "transposed row %d, column %d is wrong", i, j);
		}
	}
}

static void receive(struct task *task)
{
	struct ibv_mr *mr = open_memory(task, sizeof(struct store), IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE);
	struct window window = window_of(mr);
	const struct store *store = mr->addr;
	int i;

	tell(task, 1, &window);
	hear(task, 1);
	check_store(store);
	printf("task 0: my eight bytes are '");
	for (i = 0; i < SMALL; i++)
		putchar(store->small[i] ? store->small[i] : '.');
	printf("'; row %d and the transposed matrix are right\n", ROW);
	close_memory(mr);
}

static void send_all(struct task *task)
{
	const struct window *window = hear(task, 0);

	put_small(task, window);
	put_matrix(task, window);
	tell(task, 0, NULL);
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
