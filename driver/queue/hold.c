// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the run of a send ring keeps from one operation to the next: locked target, and regions. */

#include "mem/seg.h"
#include "queue/hold.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/target.h"
#include "queue/xrc.h"

/* Put the regions that the run keeps. The next operation looks them up again. */
void vrnic_hold_regions_put(struct vrnic_hold *hold)
{
	vrnic_held_put(&hold->local);
	vrnic_held_put(&hold->remote);
	vrnic_held_put(&hold->recv);
}

/**
 * vrnic_hold_release() - unlock the target and put the regions that the run keeps
 * @qp: requester
 *
 * The runner calls this at the end of a run. Also before it takes the resp_lock of @qp, sleeps, or
 * executes an operation that goes on only when no run uses a region.
 */
void vrnic_hold_release(struct vrnic_qp *qp)
{
	struct vrnic_hold *hold = &qp->hold;

	vrnic_hold_regions_put(hold);
	/* without a peer on this host, this queue pair itself is the target, of packets */
	if (unlikely(hold->xsrq))
		vrnic_xrc_unbind(hold->peer ?: qp, hold);
	if (!hold->peer)
		return;
	vrnic_target_unlock(hold->peer);
	vrnic_qp_put(hold->peer);
	hold->peer = NULL;
}
