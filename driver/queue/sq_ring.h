/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How the code that executes descriptors takes them from the send ring, and completes them. */
#ifndef VRNIC_SQ_RING_H
#define VRNIC_SQ_RING_H

#include <linux/types.h>

#include "queue/qp.h"

/* Return: index behind the last request that the consumer has posted, which is not trusted. */
static inline u32 vrnic_sq_posted(const struct vrnic_qp *qp)
{
	const u32 *prod = qp->link ? &qp->posted : &qp->sq.hdr->prod;

	/* P1 in queue/ring.h; of a link, with the release in vrnic_link_enqueue() */
	return smp_load_acquire(prod);
}

bool vrnic_sq_fetch(struct vrnic_qp *qp, u32 ahead);
void vrnic_sq_complete(struct vrnic_qp *qp);

#endif /* VRNIC_SQ_RING_H */
