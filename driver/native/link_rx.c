// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What all that receives messages of a native link needs: failures, the memory and the counters
 * that a message names, and memory at the expense of the peer's host.
 */

#include <linux/slab.h>

#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/link_rx.h"
#include "native/native.h"
#include "roce/roce.h"
#include "vrnic.h"

/**
 * vrnic_rx_refuse() - the message fails; the first reason stays
 * @link: link that it comes over
 * @status: enum ib_wc_status
 * @verr: enum vrnic_vendor_err
 */
void vrnic_rx_refuse(struct vrnic_link *link, u8 status, int verr)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (rx->status != IB_WC_SUCCESS)
		return;
	if (rx->h.op != VRNIC_NWIRE_ANSWER)
		vrnic_count(link->fifo->dev, REMOTE_ERRORS);
	rx->status = status;
	rx->vendor_err = verr;
}

void vrnic_rx_refuse_access(struct vrnic_link *link, int verr)
{
	vrnic_rx_refuse(link, IB_WC_REM_ACCESS_ERR, verr);
}

/*
 * May a message of the peer name this counter? Yes, if it is open or bound to the peer, or if it is
 * in a descriptor that this end injected over the link.
 */
bool vrnic_rx_may_name(struct vrnic_link *link, u32 id)
{
	return !id || vrnic_granted(link, id) ||
	       vrnic_counter_may_name(id, link->fifo->owner, &link->peer);
}

/* Let the counters that the message names fall by @n. */
void vrnic_rx_count(struct vrnic_link *link, u64 n)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	int i, missing = 0;

	for (i = 0; i < ARRAY_SIZE(h->counter); i++)
		if (h->counter[i])
			missing |= vrnic_counter_down(h->counter[i],
						      link->fifo->owner, n);
	if (missing)
		vrnic_rx_refuse(link, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_COUNTER);
}

/* Open memory of this process by the key in the message. Return: 0 or enum vrnic_vendor_err. */
int vrnic_rx_region(struct vrnic_link *link, u64 addr, u64 len, int access,
		    struct vrnic_held *held, struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = link->fifo;

	return vrnic_seg_region(fifo->dev, fifo->pd, link->rx.h.key, true, addr,
				len, access, held, seg);
}

/* Does @pkt end the operation? Programs poll on the last bytes, so the copy stores these last. */
bool vrnic_rx_is_final(const struct vrnic_link *link, const struct vrnic_pkt *pkt)
{
	const struct vrnic_nhdr *h = &link->rx.h;
	const struct vrnic_nop *op;

	if (!(pkt->info & VRNIC_PKT_END))
		return false;
	if (h->op == VRNIC_NWIRE_PUT)
		return h->pos + h->data - vrnic_nhdr_rows(h) == h->total;
	if (h->op != VRNIC_NWIRE_ANSWER)
		return false;
	op = link->rx.await->op;
	return op->done + h->data == op->d.length;
}

/*
 * Charge the memory to the peer's host, and to the process with the FIFO, which has chosen who
 * knows the FIFO's address.
 */
void *vrnic_rx_alloc(struct vrnic_link *link, u64 bytes)
{
	struct mem_cgroup *was;
	void *mem;

	if (!vrnic_host_charge(link->host, bytes))
		return NULL;
	was = vrnic_charge_begin(link->fifo);
	/*
	 * The memory cgroup of the FIFO's owner pays. If that is at its limit, __GFP_NORETRY
	 * makes the allocation reclaim once and then fail. The reclaim delays only threads that
	 * run rings of this cgroup.
	 */
	mem = kvmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN);
	vrnic_charge_end(was);
	if (!mem)
		vrnic_host_uncharge(link->host, bytes);
	return mem;
}
