// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that came too early, because one before them was lost or is late. They
 * are kept for a while, so that only what is missing has to come again. To the
 * peer it looks as if all of them came, in order, after the missing one.
 */

#include <linux/ktime.h>

#include "roce.h"

/* Of one queue pair and direction, and of all, so that no peer can take more. */
#define FAR		1024		/* PSNs ahead */
#define KEEP_MAX	512		/* packets */
#define KEEP_BYTES	(64L << 20)	/* bytes of all queue pairs */

/*
 * How long a missing packet may be late before it is taken for lost. At first,
 * not at all; what came again for nothing says how late packets really are. It
 * has to be less than what a peer waits before it looks after its packets.
 */
#define PATIENCE_MIN	(250 * NSEC_PER_USEC)
#define PATIENCE_MAX	(3 * NSEC_PER_MSEC)

static atomic_long_t kept_bytes = ATOMIC_LONG_INIT(0);

static void forget(struct vrnic_early *e, struct sk_buff *skb)
{
	__skb_unlink(skb, &e->list);
	atomic_long_sub(skb->truesize, &kept_bytes);
}

/*
 * How far @a is behind @b: 0 if they are the same. An acknowledgment that has the
 * PSN of an answer says that the answer was sent: it comes after that.
 */
static s32 behind(const struct vrnic_pkt *a, const struct vrnic_pkt *b)
{
	return 2 * vrnic_psn_diff(a->psn, b->psn) +
	       (a->opcode == VRNIC_BTH_ACK) - (b->opcode == VRNIC_BTH_ACK);
}

/* The last one that is not behind @pkt, or NULL. */
static struct sk_buff *before(struct vrnic_early *e, const struct vrnic_pkt *pkt)
{
	struct sk_buff *at;

	skb_queue_reverse_walk(&e->list, at)
		if (behind(pkt, vrnic_pkt(at)) >= 0)
			return at;
	return NULL;
}

/**
 * vrnic_early_keep() - keep a packet until those before it are there
 * @e: where; protected by the run bit
 * @skb: packet; the caller's, if it is not kept
 * @psn: the packet that is missing
 *
 * Return: 0; -EEXIST: it came before; -ENOSPC: it is too far ahead, or there are
 * too many.
 */
int vrnic_early_keep(struct vrnic_early *e, struct sk_buff *skb, u32 psn)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct sk_buff *at = before(e, pkt);

	if (at && !behind(pkt, vrnic_pkt(at)))
		return -EEXIST;
	if (vrnic_psn_diff(pkt->psn, psn) >= FAR ||
	    skb_queue_len(&e->list) >= KEEP_MAX)
		return -ENOSPC;
	if (atomic_long_add_return(skb->truesize, &kept_bytes) > KEEP_BYTES) {
		atomic_long_sub(skb->truesize, &kept_bytes);
		return -ENOSPC;
	}
	skb->tstamp = ktime_get();
	if (at)
		__skb_queue_after(&e->list, at, skb);
	else
		__skb_queue_head(&e->list, skb);
	return 0;
}

/**
 * vrnic_early_peek() - the next of the packets that were kept
 * @e: where
 * @psn: packets before it are done with, and are dropped
 *
 * Return: the packet, still in the list, or NULL.
 */
struct sk_buff *vrnic_early_peek(struct vrnic_early *e, u32 psn)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&e->list)) &&
	       vrnic_psn_diff(vrnic_pkt(skb)->psn, psn) < 0) {
		forget(e, skb);
		kfree_skb(skb);
	}
	return skb;
}

/* Take @skb, which vrnic_early_peek() returned, out of the list. */
void vrnic_early_take(struct vrnic_early *e, struct sk_buff *skb)
{
	forget(e, skb);
}

/**
 * vrnic_early_due() - when what is missing before @skb is to be taken for lost
 * @e: where
 * @skb: the first packet that was kept
 *
 * Return: in ns
 */
u64 vrnic_early_due(const struct vrnic_early *e, const struct sk_buff *skb)
{
	return ktime_to_ns(skb->tstamp) + e->patience;
}

static void have_patience(struct vrnic_early *e, u64 ns)
{
	u64 least = max_t(u64, e->patience, PATIENCE_MIN);

	e->patience = clamp_t(u64, ns, least, PATIENCE_MAX);
}

/*
 * The packet @psn is asked for again. What was asked for once, and did not come
 * twice, was lost: there was no need to be patient. After a second time nobody
 * can tell.
 */
void vrnic_early_asked(struct vrnic_early *e, u32 psn)
{
	bool first = !e->was_asked || e->asked != psn;

	if (e->has_asked && first)
		e->patience -= e->patience / 8;
	e->asked = psn;
	e->was_asked = true;
	e->has_asked = first;
}

/* The packet @psn, which others were kept for, is there: how late was it? */
void vrnic_early_came(struct vrnic_early *e, u32 psn)
{
	const struct sk_buff *first = skb_peek(&e->list);
	u64 late;

	if (!first || (e->was_asked && e->asked == psn))
		return;
	late = ktime_get_ns() - ktime_to_ns(first->tstamp);
	have_patience(e, late + late / 4);
}

/* The packet @psn came again: if that was because we asked, it was for nothing. */
void vrnic_early_again(struct vrnic_early *e, u32 psn)
{
	if (!e->has_asked || e->asked != psn)
		return;
	e->has_asked = false;
	have_patience(e, 2 * e->patience);
}

/*
 * The peer goes back now. One that knows no better does not expect answers to what
 * it has not sent again yet: of requests, only those that are not answered stay.
 */
void vrnic_early_drop_answered(struct vrnic_early *e)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&e->list, skb, next) {
		if (!(vrnic_pkt(skb)->info & VRNIC_PKT_ANSWERED))
			continue;
		forget(e, skb);
		kfree_skb(skb);
	}
}

void vrnic_early_init(struct vrnic_early *e)
{
	__skb_queue_head_init(&e->list);
}

void vrnic_early_purge(struct vrnic_early *e)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&e->list))) {
		forget(e, skb);
		kfree_skb(skb);
	}
}
