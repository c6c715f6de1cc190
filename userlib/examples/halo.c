// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * halo: puts, types, counters and fences together. Four processes share a grid, and relax it.
 *
 *	halo [device]
 *
 * Each task has a quarter of the grid, with a margin of one cell around it. In
 * every step each cell becomes the mean of its four neighbours; then the cells at
 * the inner edges go into the neighbours' margins: rows as they lie, columns with
 * a type. A counter of the receiver says when its margins are there, a fence of
 * the sender when its edges may change again. At the end task 0 collects the quarters,
 * with types too, and compares them with what one process computes alone.
 *
 * Each task has two grids; a step reads one and writes the other. A neighbour may be
 * one step ahead: then it writes the margins of the other grid. It cannot be two steps
 * ahead, because it needs this task's edges first. So two counters are enough.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vrnic_type.h>

#include "tasks.h"

#define N	128		/* cells of the grid, each way */
#define SIDE	2		/* tasks, each way */
#define TILE	(N / SIDE)
#define WIDE	(TILE + 2)	/* with the margins */
#define STEPS	200
#define HOT	100.0		/* the edge above the grid; the others are 0 */

/* What each task has in its memory region, where its neighbours write margins. */
struct tile {
	double grid[2][WIDE][WIDE];
};

struct quarter {
	struct task *task;
	struct ibv_mr *mr;
	struct tile *tile;
	unsigned int row, column;		/* which quarter it is */
	struct window there[TASKS_MAX];		/* the others' tiles */
	struct vrnic_counter *came[2];		/* bytes of margins that have not come yet */
	struct vrnic_counter *sent;		/* fences that are not complete yet */
	struct vrnic_type *row_type, *column_type;
};

/* An edge of a tile, and the margin of a neighbour's tile that it goes to. */
struct edge {
	int down, right;	/* which neighbour */
	int row, column;	/* first cell of the edge */
	int to_row, to_column;	/* first cell of the margin */
};

static const struct edge edges[] = {
	{ -1, 0, 1, 1, TILE + 1, 1 },
	{ 1, 0, TILE, 1, 0, 1 },
	{ 0, -1, 1, 1, 1, TILE + 1 },
	{ 0, 1, 1, TILE, 1, 0 },
};

#define EDGES	(sizeof(edges) / sizeof(edges[0]))

/* One step, of a tile or of the whole grid: @cells each way inside the margins. */
static void relax(const double *from, double *to, int cells)
{
	int wide = cells + 2, i, j;

	for (i = 1; i <= cells; i++) {
		for (j = 1; j <= cells; j++) {
			const double *cell = from + i * wide + j;

			to[i * wide + j] = 0.25 * (cell[-wide] + cell[wide] +
						   cell[-1] + cell[1]);
		}
	}
}

/* Cells begin at 0; only the row above the grid is hot, and stays so. */
static void heat(double *grid, int cells)
{
	int i;

	for (i = 0; i < cells + 2; i++)
		grid[i] = HOT;
}

/* Task number of a neighbour, or -1 at the edge of the grid. */
static int neighbour(const struct quarter *quarter, const struct edge *edge)
{
	int row = (int)quarter->row + edge->down;
	int column = (int)quarter->column + edge->right;

	if (row < 0 || row >= SIDE || column < 0 || column >= SIDE)
		return -1;
	return row * SIDE + column;
}

static unsigned int count_neighbours(const struct quarter *quarter)
{
	unsigned int i, count = 0;

	for (i = 0; i < EDGES; i++)
		count += neighbour(quarter, &edges[i]) >= 0;
	return count;
}

static struct vrnic_type *vector(struct task *task, size_t bytes, size_t count,
				 size_t stride)
{
	struct vrnic_type *type;

	must(vrnic_type_create(task->client, &type));
	must(vrnic_type_add_simple(type, bytes, 0, count, stride));
	must(vrnic_type_complete(type));
	return type;
}

/* Tell the others where the tile is, and which counter goes with which grid. */
static void exchange_windows(struct quarter *quarter)
{
	struct task *task = quarter->task;
	struct window window = window_of(quarter->mr);
	unsigned int i;

	window.counter[0] = vrnic_counter_number(quarter->came[0]);
	window.counter[1] = vrnic_counter_number(quarter->came[1]);
	for (i = 0; i < task->count; i++)
		if (i != task->number)
			tell(task, i, &window);
	for (i = 0; i < task->count; i++)
		if (i != task->number)
			quarter->there[i] = *hear(task, i);
}

static void open_quarter(struct quarter *quarter, struct task *task)
{
	*quarter = (struct quarter){
		.task = task,
		.row = task->number / SIDE,
		.column = task->number % SIDE,
		.mr = open_memory(task, sizeof(struct tile), IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE),
		.row_type = vector(task, TILE * sizeof(double), 1, 0),
		.column_type = vector(task, sizeof(double), TILE, WIDE * sizeof(double)),
	};
	quarter->tile = quarter->mr->addr;
	if (!quarter->row) {
		heat(quarter->tile->grid[0][0], TILE);
		heat(quarter->tile->grid[1][0], TILE);
	}
	must(vrnic_counter_create(task->client, VRNIC_COUNTER_PEERS, &quarter->came[0]));
	must(vrnic_counter_create(task->client, VRNIC_COUNTER_PEERS, &quarter->came[1]));
	must(vrnic_counter_create(task->client, 0, &quarter->sent));
	exchange_windows(quarter);
}

static void close_quarter(struct quarter *quarter)
{
	must(vrnic_counter_destroy(quarter->came[0]));
	must(vrnic_counter_destroy(quarter->came[1]));
	must(vrnic_counter_destroy(quarter->sent));
	must(vrnic_type_destroy(quarter->row_type));
	must(vrnic_type_destroy(quarter->column_type));
	close_memory(quarter->mr);
}

static uint64_t offset_of(unsigned int parity, int row, int column)
{
	return ((parity * WIDE + row) * WIDE + column) * sizeof(double);
}

static void put_edge(struct quarter *quarter, const struct edge *edge,
		     unsigned int parity)
{
	const struct vrnic_type *type = edge->down ? quarter->row_type :
						     quarter->column_type;
	int to = neighbour(quarter, edge);
	const struct window *there = &quarter->there[to];
	struct vrnic_done done = { .target = there->counter[parity] };
	struct vrnic_typed_wr wr = {
		.local = &quarter->tile->grid[parity][edge->row][edge->column],
		.mr = quarter->mr,
		.local_type = type,
		.remote = there->address + offset_of(parity, edge->to_row, edge->to_column),
		.rkey = there->rkey,
		.remote_type = type,
	};

	must(vrnic_put_typed(quarter->task->peer[to], &wr, &done));
}

/* The grid of this parity is computed: put its edges, and wait for its margins. */
static void exchange_margins(struct quarter *quarter, unsigned int parity)
{
	struct vrnic_done done = { .local = quarter->sent };
	unsigned int i;

	vrnic_counter_add(quarter->came[parity], count_neighbours(quarter) * TILE *
			  sizeof(double));
	for (i = 0; i < EDGES; i++)
		if (neighbour(quarter, &edges[i]) >= 0)
			put_edge(quarter, &edges[i], parity);
	must(vrnic_fence_all(quarter->task->context, &done));
	must(vrnic_counter_wait(quarter->came[parity], 0, PATIENCE_NS));
}

static void relax_together(struct quarter *quarter)
{
	struct tile *tile = quarter->tile;
	unsigned int step, from;

	for (step = 0; step < STEPS; step++) {
		from = step % 2;
		/*
		 * relax() overwrites the grid whose edges were put two steps ago: wait for the
		 * fences, so that no put still reads these edges.
		 */
		must(vrnic_counter_wait(quarter->sent, 0, PATIENCE_NS));
		relax(tile->grid[from][0], tile->grid[!from][0], TILE);
		exchange_margins(quarter, !from);
	}
	must(vrnic_counter_wait(quarter->sent, 0, PATIENCE_NS));
}

/* Put this task's quarter into task 0's memory for the whole grid, which has no margins. */
static void collect(struct quarter *quarter, const struct window *whole)
{
	struct task *task = quarter->task;
	struct vrnic_type *tile = vector(task, TILE * sizeof(double), TILE,
					 WIDE * sizeof(double));
	struct vrnic_type *place = vector(task, TILE * sizeof(double), TILE,
					  N * sizeof(double));
	size_t first = (quarter->row * N + quarter->column) * TILE;
	struct vrnic_typed_wr wr = {
		.local = &quarter->tile->grid[STEPS % 2][1][1],
		.mr = quarter->mr,
		.local_type = tile,
		.remote = whole->address + first * sizeof(double),
		.rkey = whole->rkey,
		.remote_type = place,
	};

	must(vrnic_put_typed(task->peer[0], &wr, NULL));
	must(vrnic_fence_wait(task->peer[0], PATIENCE_NS, NULL));
	must(vrnic_type_destroy(tile));
	must(vrnic_type_destroy(place));
}

/* Compute the same in one process. Returns the grid with its margins, and the time in @us. */
static double *relax_alone(double *us)
{
	size_t cells = (N + 2) * (N + 2);
	double *grid = calloc(2 * cells, sizeof(double)), begin = now_us();
	int step;

	expect(grid, "no memory");
	heat(grid, N);
	heat(grid + cells, N);
	for (step = 0; step < STEPS; step++)
		relax(grid + step % 2 * cells, grid + (step + 1) % 2 * cells, N);
	*us = now_us() - begin;
	if (STEPS % 2)
		memcpy(grid, grid + cells, cells * sizeof(double));
	return grid;
}

static void compare(const double *whole)
{
	double us, *alone = relax_alone(&us);
	int i, j;

	for (i = 0; i < N; i++)
		for (j = 0; j < N; j++)
			expect(whole[i * N + j] == alone[(i + 1) * (N + 2) + j + 1],
			       "cell %d, %d is %g, alone %g", i, j, whole[i * N + j],
			       alone[(i + 1) * (N + 2) + j + 1]);
	printf("task 0: one process alone: %.0f us; every cell is the same, to the last bit\n",
	       us);
	free(alone);
}

static void copy_own_quarter(const struct quarter *quarter, double *whole)
{
	int i;

	for (i = 0; i < TILE; i++)
		memcpy(whole + i * N, &quarter->tile->grid[STEPS % 2][i + 1][1],
		       TILE * sizeof(double));
}

static void gather_and_compare(struct quarter *quarter)
{
	struct task *task = quarter->task;
	struct ibv_mr *mr = open_memory(task, N * N * sizeof(double),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct window window = window_of(mr);
	unsigned int i;

	for (i = 1; i < task->count; i++)
		tell(task, i, &window);
	copy_own_quarter(quarter, mr->addr);
	for (i = 1; i < task->count; i++)
		hear(task, i);
	compare(mr->addr);
	close_memory(mr);
}

static void run(struct task *task)
{
	struct quarter quarter;
	double begin, us;

	open_quarter(&quarter, task);
	begin = now_us();
	relax_together(&quarter);
	us = now_us() - begin;
	if (task->number == 0) {
		printf("task 0: %d x %d cells, %d tasks, %d steps: %.0f us, %.1f us a step\n",
		       N, N, SIDE * SIDE, STEPS, us, us / STEPS);
		gather_and_compare(&quarter);
	} else {
		collect(&quarter, hear(task, 0));
		tell(task, 0, NULL);
	}
	close_quarter(&quarter);
}

int main(int argc, char **argv)
{
	return run_tasks(argc, argv, SIDE * SIDE, 0, run);
}
