// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive rings: a consumer posts requests, and runners take them in the same order. */

#include <linux/log2.h>
#include <rdma/ib_verbs.h>

#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "queue/rq.h"

/**
 * vrnic_rq_ring() - allocate memory for a receive ring
 * @ring: to be filled in
 * @max_wr: number of requests; rounded up to a power of two
 * @max_sge: most segments of a request
 * @gfp: flags for the allocation
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_rq_ring(struct vrnic_ring *ring, u32 max_wr, u32 max_sge, gfp_t gfp)
{
	u32 stride = roundup_pow_of_two(sizeof(struct vrnic_recv_desc) +
					max(max_sge, 1U) *
					sizeof(struct vrnic_sge));

	return vrnic_ring_alloc(ring, max_wr, stride, gfp);
}

/**
 * vrnic_rq_init() - make an empty receive ring
 * @rq: to be filled in; zeroed by the caller
 * @max_wr: number of requests; rounded up to a power of two
 * @max_sge: most segments of a request
 * @gfp: flags for the allocation
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_rq_init(struct vrnic_rq *rq, u32 max_wr, u32 max_sge, gfp_t gfp)
{
	int err;

	spin_lock_init(&rq->lock);
	err = vrnic_rq_ring(&rq->ring, max_wr, max_sge, gfp);
	if (err)
		return err;
	rq->max_sge = max_sge;
	rq->max_wr = rq->ring.entries;
	return 0;
}

/* Post @wr for a kernel consumer. The caller holds rq->lock. Return: as vrnic_rq_post(). */
static int rq_write(struct vrnic_rq *rq, const struct ib_recv_wr *wr)
{
	struct vrnic_ring *ring = &rq->ring;
	u32 prod = READ_ONCE(ring->hdr->prod);
	struct vrnic_recv_desc *d = vrnic_ring_slot(ring, prod);
	int i;

	lockdep_assert_held(&rq->lock);
	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (prod - ring->idx == ring->entries)
		return -ENOMEM;
	d->cookie = wr->wr_id;
	d->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		d->sge[i].addr = wr->sg_list[i].addr;
		d->sge[i].length = wr->sg_list[i].length;
		d->sge[i].lkey = wr->sg_list[i].lkey;
	}
	/* the producer's half of P1 */
	smp_store_release(&ring->hdr->prod, prod + 1);
	return 0;
}

/**
 * vrnic_rq_post() - add receive requests of a kernel consumer
 * @rq: a ring that no process maps
 * @wr: list of requests
 * @bad: set to the first request that could not be added
 *
 * Return: 0; -EINVAL: too many segments; -ENOMEM: the ring is full.
 * Context: any.
 */
int vrnic_rq_post(struct vrnic_rq *rq, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr && !err; wr = err ? wr : wr->next) {
		err = rq_write(rq, wr);
		if (err)
			*bad = wr;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return err;
}

/**
 * vrnic_rq_take() - take the oldest receive request
 * @rq: receive ring; the caller holds its lock
 * @recv: private copy of the request, to be filled in
 *
 * Return: 0; -EAGAIN: there is no request; -EINVAL: the request has too many segments, but was
 * taken, and the caller has to fail it; -EOVERFLOW: the producer index is invalid.
 */
int vrnic_rq_take(struct vrnic_rq *rq, struct vrnic_recv *recv)
{
	const struct vrnic_recv_desc *d;
	u32 avail, num_sge;

	lockdep_assert_held(&rq->lock);
	avail = vrnic_ring_avail(&rq->ring);
	if (!avail)
		return -EAGAIN;
	if (avail > rq->ring.entries) {
		/* no entry can be trusted: make the ring empty */
		vrnic_ring_consume(&rq->ring, avail);
		return -EOVERFLOW;
	}
	d = vrnic_ring_slot(&rq->ring, rq->ring.idx);
	recv->cookie = READ_ONCE(d->cookie);
	num_sge = READ_ONCE(d->num_sge);
	recv->num_sge = min(num_sge, rq->max_sge);
	memcpy(recv->sge, d->sge, recv->num_sge * sizeof(recv->sge[0]));
	vrnic_ring_consume(&rq->ring, 1);
	recv->active = true;
	return num_sge > rq->max_sge ? -EINVAL : 0;
}
