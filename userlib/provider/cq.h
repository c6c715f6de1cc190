/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Taking completions, in the ordinary and in the extended way. */
#ifndef VRNIC_PROVIDER_CQ_H
#define VRNIC_PROVIDER_CQ_H

#include "vrnic.h"

/* In place of a number, which has 24 bits: the queue pair is gone. */
#define VRNIC_QPN_GONE		UINT32_MAX

/* What the extended way offers. */
#define VRNIC_CQ_EX_FIELDS	(IBV_WC_STANDARD_FLAGS |		     \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |	     \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/**
 * vrnic_cq_take() - take the next completion
 * @cq: the completion queue, locked
 *
 * The entry may be read until vrnic_ring_release().
 *
 * Return: the entry, or NULL if there is none.
 */
static inline const struct vrnic_cqe *vrnic_cq_take(struct vrnic_cq *cq)
{
	const struct vrnic_cqe *cqe;

	while ((cqe = vrnic_ring_peek_cqe(&cq->ring, cq->ring.next))) {
		cq->ring.next++;
		if (cqe->qpn != VRNIC_QPN_GONE)
			break;
	}
	return cqe;
}

#define VRNIC_IDLE_POLLS	16	/* before another process gets its turn */

/* With the queue locked: has the program polled in vain, often and alone? */
static inline bool vrnic_cq_should_yield(struct vrnic_cq *cq, bool empty)
{
	if (!empty) {
		cq->idle = 0;
		return false;
	}
	__atomic_store_n(&cq->vain, cq->vain + 1, __ATOMIC_RELAXED);
	return ++cq->idle % VRNIC_IDLE_POLLS == 0 &&
	       to_vctx(cq->vcq.cq.context)->one_cpu;
}

/**
 * vrnic_cq_unlock() - end a poll; ring doorbells that are due, if it was in vain
 * @cq: the completion queue
 * @empty: nothing was found
 *
 * On a machine with one CPU, whoever is to bring the completion cannot run while
 * we spin: two processes that poll for each other would spend a timer tick, some
 * milliseconds, on each message.
 */
static inline void vrnic_cq_unlock(struct vrnic_cq *cq, bool empty)
{
	bool yield = vrnic_cq_should_yield(cq, empty);

	vrnic_unlock(&cq->lock);
	if (empty)
		vrnic_doorbell_flush(to_vctx(cq->vcq.cq.context));
	if (yield)
		sched_yield();
}

#endif /* VRNIC_PROVIDER_CQ_H */
