/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the run of a send ring keeps from one operation to the next. */
#ifndef VRNIC_HOLD_H
#define VRNIC_HOLD_H

#include "mem/seg.h"

struct vrnic_qp;
struct vrnic_xsrq;

/**
 * struct vrnic_hold - references and a lock that a run keeps from one operation to the next
 * @peer: the target, referenced and with its resp_lock held; or NULL
 * @local: region found first by a local key of the requester
 * @remote: region found first by a remote key: of @peer or, for packets, of this queue pair
 * @recv: region found first by a local key in a receive, of the same queue pair as @remote
 * @xsrq: SRQ that the target, an XRC target, is bound to, with a reference held; or NULL
 *
 * Operations that follow each other mostly use the same, and need no second look-up.
 */
struct vrnic_hold {
	struct vrnic_qp *peer;
	struct vrnic_held local;
	struct vrnic_held remote;
	struct vrnic_held recv;
	struct vrnic_xsrq *xsrq;
};

void vrnic_hold_regions_put(struct vrnic_hold *hold);
void vrnic_hold_release(struct vrnic_qp *qp);

#endif /* VRNIC_HOLD_H */
