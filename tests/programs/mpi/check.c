// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an MPI program asks of a network, each byte looked at: messages short and long,
 * one-sided transfers with derived types, atomics, and sums over all ranks. Each rank
 * talks to the next one, in a ring. Rank 0 says "N ranks: all right".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST	(1 << 20)
#define ROWS	64
#define COLS	64

static int rank, ranks, next, before;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s: wrong data\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(int from, size_t i)
{
	return (i * 31 + i / 251 + from * 17 + 1) & 0xff;
}

static int is_pattern(const unsigned char *data, size_t len, int from)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (data[i] != pattern(from, i))
			return 0;
	return 1;
}

/* Eager ones and those that are fetched: each size takes another way. */
static void messages(void)
{
	unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
	MPI_Request request;
	size_t i;
	int len;

	for (i = 0; i < LONGEST; i++)
		out[i] = pattern(rank, i);
	for (len = 1; len <= LONGEST; len *= 8) {
		memset(in, 0, len);
		MPI_Isend(out, len, MPI_BYTE, next, len, MPI_COMM_WORLD, &request);
		MPI_Recv(in, len, MPI_BYTE, before, len, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check(is_pattern(in, len, before), "Send/Recv");
	}
	free(out);
	free(in);
}

/* A column of a matrix here becomes a row of the next rank's. */
static void put_columns(void)
{
	int mine[ROWS][COLS], *theirs, i, j;
	MPI_Datatype column;
	MPI_Win win;

	MPI_Win_allocate(sizeof(mine), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &win);
	for (i = 0; i < ROWS; i++)
		for (j = 0; j < COLS; j++)
			mine[i][j] = rank * 10000 + i * COLS + j;
	MPI_Type_vector(ROWS, 1, COLS, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Win_fence(0, win);
	for (j = 0; j < COLS; j++)
		MPI_Put(&mine[0][j], 1, column, next, j * ROWS, ROWS, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (j = 0; j < COLS; j++)
		for (i = 0; i < ROWS; i++)
			check(theirs[j * ROWS + i] == before * 10000 + i * COLS + j, "Put");
	MPI_Type_free(&column);
	MPI_Win_free(&win);
}

/* All ranks add to the same words, those of rank 0. */
static void accumulate(void)
{
	long one[16], *sum;
	MPI_Win win;
	int i, round;

	MPI_Win_allocate(sizeof(one), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &win);
	for (i = 0; i < 16; i++) {
		one[i] = i + rank;
		sum[i] = 0;
	}
	MPI_Win_fence(0, win);
	for (round = 0; round < 10; round++)
		MPI_Accumulate(one, 16, MPI_LONG, 0, 0, 16, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < 16 && !rank; i++)
		check(sum[i] == 10L * (i * ranks + ranks * (ranks - 1) / 2), "Accumulate");
	MPI_Win_free(&win);
}

static void allreduce(void)
{
	static double mine[10000], sum[10000];
	int i;

	for (i = 0; i < 10000; i++)
		mine[i] = i + rank;
	MPI_Allreduce(mine, sum, 10000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < 10000; i++)
		check(sum[i] == (double)i * ranks + ranks * (ranks - 1) / 2, "Allreduce");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	next = (rank + 1) % ranks;
	before = (rank + ranks - 1) % ranks;
	messages();
	put_columns();
	accumulate();
	allreduce();
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks: all right\n", ranks);
	MPI_Finalize();
	return 0;
}
