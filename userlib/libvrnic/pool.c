// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registered memory that a peer's engine fetches from and writes to in self-paced
 * transfers (S4). Each endpoint has its own, because a peer that holds the key
 * may read all of it: other peers' keys must not lie there. The peer fills tables. But it
 * must not change descriptors that run in this process's name: they lie in chunks that the
 * peer may only read.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib.h"

#define CHUNK_ROWS	1024U
#define KEPT_ROWS	4096U	/* of a table for 128 MiB: to register one takes long */

/**
 * struct vrnic_pool_chunk - a part of the pool
 * @next: the next one
 * @mr: the registration
 * @mem: the memory
 * @rows: its size in rows of VRNIC_SLOT_SIZE
 * @writable: the peer may write to it
 * @nr_used: how many rows are in use
 * @used: for each row: 1 if it is in use
 */
struct vrnic_pool_chunk {
	struct vrnic_pool_chunk *next;
	struct ibv_mr *mr;
	uint8_t *mem;
	uint32_t rows;
	bool writable;
	uint32_t nr_used;
	uint8_t used[];
};

static size_t chunk_bytes(uint32_t rows)
{
	return (size_t)rows * VRNIC_SLOT_SIZE;
}

static int chunk_register(struct vrnic_pool_chunk *chunk, struct ibv_pd *pd)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		     (chunk->writable ? IBV_ACCESS_REMOTE_WRITE : 0);
	void *mem = mmap(NULL, chunk_bytes(chunk->rows), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (mem == MAP_FAILED)
		return -ENOMEM;
	chunk->mr = ibv_reg_mr(pd, mem, chunk_bytes(chunk->rows), access);
	if (!chunk->mr) {
		ret = -errno;
		munmap(mem, chunk_bytes(chunk->rows));
		return ret;
	}
	chunk->mem = mem;
	return 0;
}

static int chunk_add(struct vrnic_endpoint *ep, uint32_t rows, bool writable)
{
	struct vrnic_pool_chunk *chunk;
	int ret;

	if (rows < CHUNK_ROWS)
		rows = CHUNK_ROWS;
	chunk = calloc(1, sizeof(*chunk) + rows);
	if (!chunk)
		return -ENOMEM;
	chunk->rows = rows;
	chunk->writable = writable;
	ret = chunk_register(chunk, ep->context->client->pd);
	if (ret) {
		free(chunk);
		return ret;
	}
	chunk->next = ep->pool;
	ep->pool = chunk;
	return 0;
}

/* Deregister the memory first: after that no engine touches it. */
static void chunk_free(struct vrnic_pool_chunk *chunk)
{
	/* if that fails, the memory stays registered, so it must stay mapped */
	if (!ibv_dereg_mr(chunk->mr))
		munmap(chunk->mem, chunk_bytes(chunk->rows));
	free(chunk);
}

/* First fit. Return: the first of @rows adjacent free rows, or @chunk->rows if there are none. */
static uint32_t find_rows(const struct vrnic_pool_chunk *chunk, uint32_t rows)
{
	uint32_t i, run = 0;

	if (chunk->rows - chunk->nr_used < rows)
		return chunk->rows;
	for (i = 0; i < chunk->rows; i++) {
		run = chunk->used[i] ? 0 : run + 1;
		if (run == rows)
			return i + 1 - rows;
	}
	return chunk->rows;
}

static bool take_rows(struct vrnic_pool_chunk *chunk, uint32_t rows,
		      struct vrnic_piece *piece)
{
	uint32_t first = find_rows(chunk, rows);

	if (first == chunk->rows)
		return false;
	memset(chunk->used + first, 1, rows);
	chunk->nr_used += rows;
	piece->chunk = chunk;
	piece->mem = chunk->mem + chunk_bytes(first);
	piece->rows = rows;
	memset(piece->mem, 0, chunk_bytes(rows));
	return true;
}

/**
 * vrnic_pool_alloc() - memory that the peer may read
 * @ep: the peer
 * @rows: its size in slots; 0 gives an empty piece
 * @writable: the peer may write to it, too
 * @piece: the result, cleared
 *
 * Caller has locked the context.
 *
 * Return: 0 or a negative errno.
 */
int vrnic_pool_alloc(struct vrnic_endpoint *ep, uint32_t rows, bool writable,
		     struct vrnic_piece *piece)
{
	struct vrnic_pool_chunk *chunk;
	int ret;

	*piece = (struct vrnic_piece){};
	if (!rows)
		return 0;
	for (chunk = ep->pool; chunk; chunk = chunk->next)
		if (chunk->writable == writable && take_rows(chunk, rows, piece))
			return 0;
	ret = chunk_add(ep, rows, writable);
	if (ret)
		return ret;
	take_rows(ep->pool, rows, piece);
	return 0;
}

/* Give a piece back. Its chunk is freed if it is empty, and larger than KEPT_ROWS. */
void vrnic_pool_free(struct vrnic_endpoint *ep, struct vrnic_piece *piece)
{
	struct vrnic_pool_chunk *chunk = piece->chunk, **at;
	size_t first;

	if (!chunk)
		return;
	piece->chunk = NULL;
	first = (size_t)((uint8_t *)piece->mem - chunk->mem) / VRNIC_SLOT_SIZE;
	memset(chunk->used + first, 0, piece->rows);
	chunk->nr_used -= piece->rows;
	if (chunk->nr_used || chunk->rows <= KEPT_ROWS)
		return;
	for (at = &ep->pool; *at != chunk; at = &(*at)->next)
		;
	*at = chunk->next;
	chunk_free(chunk);
}

const struct ibv_mr *vrnic_pool_mr(const struct vrnic_piece *piece)
{
	return piece->chunk->mr;
}

void vrnic_pool_destroy(struct vrnic_endpoint *ep)
{
	struct vrnic_pool_chunk *chunk;

	while ((chunk = ep->pool)) {
		ep->pool = chunk->next;
		chunk_free(chunk);
	}
}
