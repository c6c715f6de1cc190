/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a send ring keeps during a burst. */
#ifndef VRNIC_HOLD_H
#define VRNIC_HOLD_H

#include "mem/seg.h"

struct vrnic_qp;

/**
 * struct vrnic_hold - references and a lock that a send ring keeps during a burst
 * @peer: the target, referenced and with its resp_lock held; or NULL
 * @local: for local keys of the requester
 * @remote: for remote keys that the requester claims at @peer
 * @recv: for local keys of the receives at @peer
 *
 * So operations that follow each other need no second look-up.
 */
struct vrnic_hold {
	struct vrnic_qp *peer;
	struct vrnic_held local;
	struct vrnic_held remote;
	struct vrnic_held recv;
};

void vrnic_hold_regions_put(struct vrnic_hold *hold);
void vrnic_hold_release(struct vrnic_qp *qp);

#endif /* VRNIC_HOLD_H */
