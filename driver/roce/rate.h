/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How fast a queue pair may send. */
#ifndef VRNIC_RATE_H
#define VRNIC_RATE_H

#include <linux/limits.h>
#include <linux/types.h>

struct vrnic_qp;

#define VRNIC_RATE_ANY	U64_MAX
u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until);
void vrnic_rate_sent(struct vrnic_qp *qp, u64 bytes);

#endif /* VRNIC_RATE_H */
