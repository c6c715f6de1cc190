/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How the queue pair of a native link calls the link. */
#ifndef VRNIC_LINK_OPS_H
#define VRNIC_LINK_OPS_H

#include <linux/types.h>

struct sk_buff;
struct vrnic_link;
struct vrnic_qp;
struct vrnic_sgl;

/**
 * struct vrnic_link_ops - functions of a native link that its queue pair calls
 * @created: the queue pair exists, and no other code can find it yet
 * @open: describe the memory of a message to send; the message keeps the references
 * @sent: a message was acknowledged or has failed, so the queue pair needs its memory no more
 * @receive: a packet of a message came. Return: 0; -EAGAIN: send an RNR NAK, so that the peer sends
 *	the packet again; another negative errno: the packet makes no sense, so send a fatal NAK
 * @broken: the queue pair is in ERR: let nobody post from now on; may be called again
 * @flushed: the send ring was flushed, so no message is in use any more; may be called again
 *
 * @cookie is that of the descriptor. Context: a run of the queue pair, except for @created.
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
