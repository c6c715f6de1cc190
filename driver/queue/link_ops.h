/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How the queue pair of a native link calls the link. */
#ifndef VRNIC_LINK_OPS_H
#define VRNIC_LINK_OPS_H

#include <linux/types.h>

struct sk_buff;
struct vrnic_desc;
struct vrnic_link;
struct vrnic_qp;
struct vrnic_sgl;

/* Bounds the messages of a link, in the ring that is only a count. Links have far fewer. */
#define VRNIC_LINK_MSGS	0x40000000U

/* What becomes of a message that the peer has refused. */
enum vrnic_refusal {
	VRNIC_REFUSAL_FALSE,	/* the peer must not refuse such a message: the link fails */
	VRNIC_REFUSAL_SKIP,	/* the message has failed: send SKIP in place of its last packet */
	VRNIC_REFUSAL_REST,	/* a part has failed: the message has changed, so send it again */
	VRNIC_REFUSAL_OLD,	/* the peer said so before */
};

/**
 * struct vrnic_link_ops - functions of a native link that its queue pair calls
 * @created: the queue pair exists, and no other code can find it yet
 * @fetch: take the next message; the queue pair knows that there is one. Return: its cookie
 * @describe: fill in the descriptor of a message, which has one slot
 * @alloc: allocate zeroed memory for the queue pair, which frees it by kfree(). @patient: wait for
 *	reclaim, once. Return: NULL if there is none
 * @open: describe the memory of a message to send; the message keeps the references
 * @sent: a message was acknowledged or has failed, so the queue pair needs its memory no more
 * @refused: the peer could not execute a message, or a part of it. If the link goes on, it calls
 *	@sent for the message later. @why: as of @receive
 * @receive: a packet of a message came. Return: 0; -EAGAIN: send an RNR NAK, so that the peer sends
 *	the packet again; -EREMOTEIO: the message failed, so send VRNIC_NAK_FAILED with *@why: the
 *	status, in the 8 bits above the vendor error, and in the 8 bits above which part failed;
 *	another negative errno: the packet makes no sense, so send a fatal NAK
 * @left: bytes of the message in progress that are to come, if several packets may be received as
 *	one (a train); else 0
 * @light: may softirq hand the packet to @receive? If not, a thread does. Called for the first
 *	packet of the queue, which @receive gets next, if it is one of a message
 * @congested: packets of the peer have met congestion: routers have marked them, or (@lost) they
 *	are missing, and others have to wait in a queue
 * @ran: a run of the queue pair is about to end
 * @broken: the queue pair is in ERR: let nobody post from now on; may be called again
 * @flushed: all messages were flushed, so none is in use any more; may be called again
 *
 * @cookie is that of the descriptor. Context: a run of the queue pair, except for @created.
 */
struct vrnic_link_ops {
	void (*created)(struct vrnic_link *link, struct vrnic_qp *qp);
	u64 (*fetch)(struct vrnic_link *link);
	void (*describe)(u64 cookie, struct vrnic_desc *d);
	void *(*alloc)(struct vrnic_link *link, size_t bytes, bool patient);
	void (*open)(struct vrnic_sgl *sgl, u64 cookie);
	void (*sent)(struct vrnic_link *link, u64 cookie, u8 status);
	enum vrnic_refusal (*refused)(struct vrnic_link *link, u64 cookie, u32 why);
	int (*receive)(struct vrnic_link *link, struct sk_buff *skb, u32 *why);
	u32 (*left)(const struct vrnic_link *link);
	bool (*light)(struct vrnic_link *link, struct sk_buff *skb);
	void (*congested)(struct vrnic_link *link, bool lost);
	void (*ran)(struct vrnic_link *link);
	void (*broken)(struct vrnic_link *link);
	void (*flushed)(struct vrnic_link *link);
};

#endif /* VRNIC_LINK_OPS_H */
