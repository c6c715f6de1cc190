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

#endif /* VRNIC_PROVIDER_CQ_H */
