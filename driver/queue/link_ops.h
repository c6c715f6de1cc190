/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the queue pair of a native link asks of the link. */
#ifndef VRNIC_LINK_OPS_H
#define VRNIC_LINK_OPS_H

#include <linux/types.h>

struct sk_buff;
struct vrnic_link;
struct vrnic_qp;
struct vrnic_sgl;

/**
 * struct vrnic_link_ops - what the queue pair of a native link asks of the link
 * @created: the queue pair exists, and no other code can find it yet
 * @open: describe the memory of a message to send; the caller need not put it
 * @sent: a message was acknowledged or has failed: its memory is not needed any more
 * @receive: a packet of a message came. Return: 0; -EAGAIN if the packet is to be offered again;
 *	another negative errno if the packet makes no sense
 * @broken: nothing can be posted from now on
 * @flushed: the queue pair has failed, and uses nothing of the link any more
 *
 * @cookie is that of the descriptor. Context: the run of the queue pair.
 */
struct vrnic_link_ops {
	void (*created)(struct vrnic_link *link, struct vrnic_qp *qp);
	void (*open)(struct vrnic_sgl *sgl, u64 cookie);
	void (*sent)(struct vrnic_link *link, u64 cookie, u8 status);
	int (*receive)(struct vrnic_link *link, struct sk_buff *skb);
	void (*broken)(struct vrnic_link *link);
	void (*flushed)(struct vrnic_link *link);
};

#endif /* VRNIC_LINK_OPS_H */
