// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How many requests are under way. A poll finds the queue pair of a completion by its number, in a
 * table of the completion queue with open addressing, and counts the request as done. Polls may
 * read the table while another thread adds a queue pair. So a table that has become too small is
 * kept until no poll can be reading it.
 */

#include <errno.h>
#include <stdlib.h>

#include "cq.h"
#include "vrnic.h"

#define SIDES_MIN	8

static struct vrnic_polled left;	/* marks an emptied slot: a search goes on behind it */

/*
 * Make a table that is at most a quarter full with the sides of @old and one more. Caller holds
 * sides_lock. Return: the empty table, or NULL.
 */
static struct vrnic_sides *sides_new(struct vrnic_sides *old)
{
	uint32_t size = SIDES_MIN, alive = 0;
	struct vrnic_sides *sides;

	for (uint32_t i = 0; old && i <= old->mask; i++)
		alive += old->slot[i] && old->slot[i] != &left;
	while (size < 4 * (alive + 1))
		size *= 2;
	sides = calloc(1, sizeof(*sides) + size * sizeof(sides->slot[0]));
	if (!sides)
		return NULL;
	sides->mask = size - 1;
	sides->older = old;
	return sides;
}

/* Caller holds sides_lock, and has made sure that there is a free slot. */
static void sides_put(struct vrnic_sides *sides, struct vrnic_polled *polled)
{
	uint32_t i = polled->key & sides->mask;

	while (sides->slot[i] && sides->slot[i] != &left)
		i = (i + 1) & sides->mask;
	sides->used += !sides->slot[i];
	/* D2: release of a slot after what it points to, with vrnic_cq_find() */
	__atomic_store_n(&sides->slot[i], polled, __ATOMIC_RELEASE);
}

/*
 * Replace the table of @cq by one with more free slots. The old table stays, as polls may still be
 * reading the old table: drop() frees it. Caller holds sides_lock. Return: 0 or ENOMEM.
 */
static int sides_grow(struct vrnic_cq *cq)
{
	struct vrnic_sides *old = cq->sides, *sides = sides_new(old);

	if (!sides)
		return ENOMEM;
	for (uint32_t i = 0; old && i <= old->mask; i++)
		if (old->slot[i] && old->slot[i] != &left)
			sides_put(sides, old->slot[i]);
	/* D2: release of the table after its slots, with vrnic_cq_find() */
	__atomic_store_n(&cq->sides, sides, __ATOMIC_RELEASE);
	return 0;
}

/* At least half of the slots stay NULL, where a search for an absent key ends. */
static int add(struct vrnic_cq *cq, struct vrnic_polled *polled, uint32_t qpn,
	       enum vrnic_side side)
{
	int ret = 0;

	polled->key = vrnic_polled_key(qpn, side);
	pthread_mutex_lock(&cq->sides_lock);
	if (!cq->sides || 2 * (cq->sides->used + 1) > cq->sides->mask)
		ret = sides_grow(cq);
	if (!ret)
		sides_put(cq->sides, polled);
	pthread_mutex_unlock(&cq->sides_lock);
	return ret;
}

/* Caller holds lock and sides_lock of the completion queue. */
static void sides_take(struct vrnic_sides *sides, const struct vrnic_polled *polled)
{
	uint32_t i = polled->key & sides->mask;

	while (sides->slot[i] && sides->slot[i] != polled)
		i = (i + 1) & sides->mask;
	if (sides->slot[i])
		sides->slot[i] = &left;
}

static void free_older(struct vrnic_sides *sides)
{
	struct vrnic_sides *old, *older;

	for (old = sides->older; old; old = older) {
		older = old->older;
		free(old);
	}
	sides->older = NULL;
}

/* With @cq->lock held no thread polls, so the older tables can be freed. */
static void drop(struct vrnic_cq *cq, const struct vrnic_polled *polled)
{
	vrnic_cq_lock(cq, &cq->lock);
	pthread_mutex_lock(&cq->sides_lock);
	if (cq->sides) {
		sides_take(cq->sides, polled);
		free_older(cq->sides);
	}
	pthread_mutex_unlock(&cq->sides_lock);
	vrnic_unlock(&cq->lock);
}

void vrnic_sides_free(struct vrnic_cq *cq)
{
	if (!cq->sides)
		return;
	free_older(cq->sides);
	free(cq->sides);
}

/**
 * vrnic_credit_open_side() - have the requests of one side of a queue pair counted
 * @credit: with its max set; 0: they are not counted
 * @polled: counts them
 * @cq: where they complete
 * @qpn: number of the queue pair
 * @side: which side
 *
 * Return: 0 or ENOMEM.
 */
int vrnic_credit_open_side(struct vrnic_credit *credit, struct vrnic_polled *polled,
			   struct ibv_cq *cq, uint32_t qpn, enum vrnic_side side)
{
	credit->polled = polled;
	return credit->max ? add(to_vcq(cq), polled, qpn, side) : 0;
}

/* Undo vrnic_credit_open_side(), also if it failed. */
void vrnic_credit_close_side(struct vrnic_credit *credit, struct vrnic_polled *polled,
			     struct ibv_cq *cq)
{
	if (credit->max)
		drop(to_vcq(cq), polled);
}

/**
 * vrnic_credit_open() - have the requests of a queue pair counted
 * @qp: the queue pair, with max of its two credits set; 0: that side is not counted
 *
 * Return: 0 or ENOMEM.
 */
int vrnic_credit_open(struct vrnic_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	int ret;

	ret = vrnic_credit_open_side(&qp->credit, &qp->polled[VRNIC_SIDE_SEND], ibqp->send_cq,
				     ibqp->qp_num, VRNIC_SIDE_SEND);
	if (!ret)
		ret = vrnic_credit_open_side(&qp->rq.credit, &qp->polled[VRNIC_SIDE_RECV],
					     ibqp->recv_cq, ibqp->qp_num, VRNIC_SIDE_RECV);
	if (ret)
		vrnic_credit_close(qp);
	return ret;
}

/* Undo vrnic_credit_open(), also if it failed halfway. */
void vrnic_credit_close(struct vrnic_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	vrnic_credit_close_side(&qp->credit, &qp->polled[VRNIC_SIDE_SEND], ibqp->send_cq);
	vrnic_credit_close_side(&qp->rq.credit, &qp->polled[VRNIC_SIDE_RECV], ibqp->recv_cq);
}

/* Start anew after RESET. vrnic_cq_forget_qp() has put the counts in struct vrnic_polled back. */
void vrnic_credit_reset(struct vrnic_credit *credit)
{
	credit->posted = 0;
	credit->done = 0;
}
