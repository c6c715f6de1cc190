// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How many requests may be under way: polls find the queue pair of a completion by its
 * number, and count. The table of a completion queue is an open-addressed one. Polls
 * read it while a queue pair is added; a table that has become too small is kept until
 * no poll can be looking at it.
 */

#include <errno.h>
#include <stdlib.h>

#include "cq.h"
#include "vrnic.h"

#define SIDES_MIN	8

static struct vrnic_polled left;	/* a side was here, others may lie behind */

/* With sides_lock: a table that is at most a quarter full with the present sides. */
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

/* With sides_lock. There is a free slot. */
static void sides_put(struct vrnic_sides *sides, struct vrnic_polled *polled)
{
	uint32_t i = polled->key & sides->mask;

	while (sides->slot[i] && sides->slot[i] != &left)
		i = (i + 1) & sides->mask;
	sides->used += !sides->slot[i];
	/* D2: release of a slot after what it points to, with vrnic_cq_find() */
	__atomic_store_n(&sides->slot[i], polled, __ATOMIC_RELEASE);
}

/* With sides_lock. Return: 0 or ENOMEM. */
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

/* At least half of the slots stay free: so a search in vain ends. */
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

/* With both locks. */
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

/* While the lock is held nobody polls. */
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

static struct vrnic_polled *side(struct vrnic_qp *qp, enum vrnic_side side)
{
	return &qp->polled[side];
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
	int ret = 0;

	qp->credit.polled = side(qp, VRNIC_SIDE_SEND);
	qp->rq.credit.polled = side(qp, VRNIC_SIDE_RECV);
	if (qp->credit.max)
		ret = add(to_vcq(ibqp->send_cq), side(qp, VRNIC_SIDE_SEND),
			  ibqp->qp_num, VRNIC_SIDE_SEND);
	if (!ret && qp->rq.credit.max)
		ret = add(to_vcq(ibqp->recv_cq), side(qp, VRNIC_SIDE_RECV),
			  ibqp->qp_num, VRNIC_SIDE_RECV);
	if (ret)
		vrnic_credit_close(qp);
	return ret;
}

/* A credit that was never opened may be closed. */
void vrnic_credit_close(struct vrnic_qp *qp)
{
	if (qp->credit.max)
		drop(to_vcq(qp->vqp.qp.send_cq), side(qp, VRNIC_SIDE_SEND));
	if (qp->rq.credit.max)
		drop(to_vcq(qp->vqp.qp.recv_cq), side(qp, VRNIC_SIDE_RECV));
}

/* The queue pair starts anew; its completion queues have forgotten it. */
void vrnic_credit_reset(struct vrnic_credit *credit)
{
	credit->posted = 0;
	credit->done = 0;
}
