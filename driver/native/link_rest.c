// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that links give back while nobody uses them: there may be thousands, and most are idle.
 * A link in use has a window in its queue pair, a fragment for copies of data, and a buffer for
 * what it receives. What it knows of its peer stays: types, and counters that the peer may name.
 */

#include <linux/bitops.h>
#include <linux/slab.h>

#include "native/link.h"
#include "verbs/flow.h"

/**
 * vrnic_link_may_rest() - has a link memory to give back, and was it not used of late?
 * @link: link in the list of all links, whose lock the caller holds
 *
 * Return: true if so: nobody has used it since this was last asked. Pings are no use.
 */
bool vrnic_link_may_rest(struct vrnic_link *link)
{
	bool used = READ_ONCE(link->used);

	WRITE_ONCE(link->used, false);
	return !used && ((READ_ONCE(link->rx.buf) && !READ_ONCE(link->rx.left)) ||
			 !vrnic_roce_rests(link->qp));
}

/**
 * vrnic_link_rest() - give back memory, if nothing is in progress
 * @link: link; the caller holds the run bit of its queue pair
 *
 * If something is, the link is asked again later.
 */
void vrnic_link_rest(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	clear_bit(0, &link->rest);
	if (READ_ONCE(link->used))
		return;
	vrnic_roce_rest(link->qp);
	if (rx->left)
		return;
	kfree(rx->buf);
	WRITE_ONCE(rx->buf, NULL);
	vrnic_nmsg_free(link, rx->answer);
	rx->answer = NULL;
}
