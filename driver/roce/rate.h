/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How fast a queue pair may send. */
#ifndef VRNIC_RATE_H
#define VRNIC_RATE_H

#include <linux/limits.h>
#include <linux/types.h>

#include "queue/qp.h"

#define VRNIC_RATE_ANY	U64_MAX

/* May vrnic_rate_room() say anything else than VRNIC_RATE_ANY? */
static inline bool vrnic_rate_limits(const struct vrnic_qp *qp)
{
	return qp->limit || qp->roce;
}

u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until);
void vrnic_rate_sent(struct vrnic_qp *qp, u64 bytes);

#endif /* VRNIC_RATE_H */
