// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a send ring keeps hold of during a burst. */

#include "mem/mem.h"
#include "queue/hold.h"
#include "queue/target.h"
#include "vrnic.h"

/* The regions that the run has kept; it may find them again. */
void vrnic_hold_regions_put(struct vrnic_hold *hold)
{
	vrnic_held_put(&hold->local);
	vrnic_held_put(&hold->remote);
	vrnic_held_put(&hold->recv);
}

/**
 * vrnic_hold_release() - let go of what the burst kept hold of
 * @qp: requester
 *
 * To be called at the end of a burst, and before this queue pair's own
 * resp_lock is taken, or anything waits for a region's last user, or sleeps.
 */
void vrnic_hold_release(struct vrnic_qp *qp)
{
	struct vrnic_hold *hold = &qp->hold;

	vrnic_hold_regions_put(hold);
	if (!hold->peer)
		return;
	vrnic_target_unlock(hold->peer);
	vrnic_qp_put(hold->peer);
	hold->peer = NULL;
}
