// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that came too early, because one before them was lost or is late. They are kept for a
 * while, so that only what is missing has to come again. To the peer it looks as if all of them
 * came, in order, after the missing packet.
 */

#include <linux/ktime.h>
#include <linux/udp.h>

#include "lib/hdr.h"
#include "lib/psn.h"
#include "roce/roce.h"

/*
 * Bounds for one queue pair and direction, so that no peer can take more. A peer that expects
 * packets to be kept has no more in flight than this driver would have. So a list has at most two
 * packets for each PSN: an answer, and an acknowledgment.
 */
#define KEEP_PSNS	VRNIC_WINDOW_PKTS
#define KEEP_BYTES	SZ_1M
#define KEEP_NS		(4 * NSEC_PER_SEC)	/* without progress for so long: the peer is gone */

/*
 * How long a missing packet may be late before it counts as lost. At first it may not be late at
 * all; packets that came again needlessly tell how late packets really are. This has to be less
 * than the time after which a peer looks for its packets.
 */
#define PATIENCE_MIN	(250 * NSEC_PER_USEC)
#define PATIENCE_MAX	(3 * NSEC_PER_MSEC)

static void early_drop(struct vrnic_early *e, struct sk_buff *skb)
{
	vrnic_early_take(e, skb);
	kfree_skb(skb);
}

static u16 port_of(const struct sk_buff *skb)
{
	return ntohs(udp_hdr(skb)->source);
}

/*
 * How far @a is behind @b: 0 if they are the same. An acknowledgment with the PSN of an answer says
 * that the answer was sent, so the acknowledgment comes after it.
 */
static s32 early_behind(const struct vrnic_pkt *a, const struct vrnic_pkt *b)
{
	return 2 * vrnic_psn_diff(a->psn, b->psn) +
	       (a->opcode == VRNIC_BTH_ACK) - (b->opcode == VRNIC_BTH_ACK);
}

/* Find the last kept packet that is not behind @pkt; NULL if there is none. */
static struct sk_buff *early_before(struct vrnic_early *e, const struct vrnic_pkt *pkt)
{
	struct sk_buff *at;

	skb_queue_reverse_walk(&e->list, at)
		if (early_behind(pkt, vrnic_pkt(at)) >= 0)
			return at;
	return NULL;
}

/*
 * May the packet be kept? Only its addresses say that the peer sent it, so it also has to be within
 * the window, and from the port that the peer sends from. Packets that come in order are executed
 * from any port: the port may change, and then nothing is kept until the new one is known.
 */
static bool is_likely(const struct vrnic_early *e, struct sk_buff *skb, u32 psn)
{
	return vrnic_psn_diff(vrnic_pkt(skb)->psn, psn) < KEEP_PSNS &&
	       e->port && port_of(skb) == e->port;
}

/*
 * Note that an early packet was not kept and has to come again; of several, the last one counts. If
 * @missing was asked for, the peer goes back to it, and sends this packet again anyway.
 */
static void early_miss(struct vrnic_early *e, u32 psn, u32 missing)
{
	if (e->was_asked && e->asked == missing)
		return;
	if (!e->missed || vrnic_psn_diff(psn, e->missed_psn) > 0)
		e->missed_psn = psn;
	e->missed = true;
}

/*
 * Another packet with the PSN of @at came. If they differ, one of them is forged, and there is no
 * way to tell which.
 */
static int keep_twice(struct vrnic_early *e, struct sk_buff *at, struct sk_buff *skb,
		      u32 missing)
{
	if (vrnic_pkt_same(at, skb))
		return -EEXIST;
	early_drop(e, at);
	early_miss(e, vrnic_pkt(skb)->psn, missing);
	return -EBADMSG;
}

/**
 * vrnic_early_keep() - keep a packet until those before it have come
 * @e: early packets; protected by the run bit
 * @skb: packet; remains the caller's if it is not kept
 * @psn: PSN that is missing
 *
 * Return: 0; -EEXIST: the packet came before; -EBADMSG: another packet with this PSN came before,
 * and is dropped; -ENOSPC: the packet is not likely to be the peer's, or there is no room. A packet
 * that is not kept is missing, too: vrnic_early_any().
 */
int vrnic_early_keep(struct vrnic_early *e, struct sk_buff *skb, u32 psn)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct sk_buff *at = early_before(e, pkt);
	bool first = skb_queue_empty(&e->list);

	if (at && !early_behind(pkt, vrnic_pkt(at)))
		return keep_twice(e, at, skb, psn);
	if (!is_likely(e, skb, psn) ||
	    !vrnic_room_put(&e->list, at, skb, &e->bytes, KEEP_BYTES)) {
		early_miss(e, pkt->psn, psn);
		return -ENOSPC;
	}
	skb->tstamp = ktime_get();
	if (first)
		e->since = ktime_to_ns(skb->tstamp);
	return 0;
}

/**
 * vrnic_early_learn() - learn the peer's port from a packet that came in order
 * @e: early packets of the same queue pair and direction
 * @skb: packet
 */
void vrnic_early_learn(struct vrnic_early *e, const struct sk_buff *skb)
{
	e->port = port_of(skb);
}

/**
 * vrnic_early_peek() - get the next of the packets that were kept
 * @e: early packets
 * @psn: PSN; packets before it are not needed any more, and are dropped
 *
 * Return: the packet, still in the list, or NULL. If NULL, there may still be packets that came and
 * were not kept: vrnic_early_any().
 */
struct sk_buff *vrnic_early_peek(struct vrnic_early *e, u32 psn)
{
	struct sk_buff *skb;

	if (e->missed && vrnic_psn_diff(e->missed_psn, psn) < 0)
		e->missed = false;
	while ((skb = skb_peek(&e->list)) &&
	       vrnic_psn_diff(vrnic_pkt(skb)->psn, psn) < 0)
		early_drop(e, skb);
	return skb;
}

/* Take @skb, which vrnic_early_peek() returned, out of the list. */
void vrnic_early_take(struct vrnic_early *e, struct sk_buff *skb)
{
	vrnic_room_take(&e->list, skb, &e->bytes);
}

/**
 * vrnic_early_due() - when does the missing packet count as lost?
 * @e: early packets; vrnic_early_any() is true
 *
 * Return: time in ns; 0: no packet is kept, so there is nothing to wait for
 */
u64 vrnic_early_due(const struct vrnic_early *e)
{
	const struct sk_buff *first = skb_peek(&e->list);

	return first ? ktime_to_ns(first->tstamp) + e->patience : 0;
}

/**
 * vrnic_early_age() - drop packets that were kept for a peer that is gone
 * @e: early packets
 * @now: time in ns
 *
 * Return: time to call this again, in ns; 0: nothing is left
 */
u64 vrnic_early_age(struct vrnic_early *e, u64 now)
{
	if (!skb_queue_empty(&e->list) && now >= e->since + KEEP_NS)
		vrnic_early_purge(e);
	return skb_queue_empty(&e->list) ? 0 : e->since + KEEP_NS;
}

static void have_patience(struct vrnic_early *e, u64 ns)
{
	u64 least = max_t(u64, e->patience, PATIENCE_MIN);

	e->patience = clamp_t(u64, ns, least, PATIENCE_MAX);
}

/*
 * The packet @psn is asked for again. A packet that was asked for once, and did not come twice, was
 * lost: there was no need for patience. After a second request there is no way to tell.
 */
void vrnic_early_asked(struct vrnic_early *e, u32 psn)
{
	bool first = !e->was_asked || e->asked != psn;

	if (e->has_asked && first)
		e->patience -= e->patience / 8;
	e->asked = psn;
	e->was_asked = true;
	e->has_asked = first;
	e->missed = false;
}

/* The packet @psn, for which others were kept, has come: learn how late it was. */
void vrnic_early_came(struct vrnic_early *e, u32 psn)
{
	const struct sk_buff *first = skb_peek(&e->list);
	u64 late;

	if (!first)
		return;
	e->since = ktime_get_ns();
	if (e->was_asked && e->asked == psn)
		return;
	late = e->since - ktime_to_ns(first->tstamp);
	have_patience(e, late + late / 4);
}

/* The packet @psn came again: if this side had asked for it, that was needless. */
void vrnic_early_again(struct vrnic_early *e, u32 psn)
{
	if (!e->has_asked || e->asked != psn)
		return;
	e->has_asked = false;
	have_patience(e, 2 * e->patience);
}

/*
 * The peer goes back now. Some peers do not expect answers to requests that they have not sent
 * again yet. So of the early requests, only those without an answer stay.
 */
void vrnic_early_drop_answered(struct vrnic_early *e)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&e->list, skb, next) {
		if (vrnic_pkt(skb)->info & VRNIC_PKT_ANSWERED)
			early_drop(e, skb);
	}
}

void vrnic_early_init(struct vrnic_early *e)
{
	__skb_queue_head_init(&e->list);
}

void vrnic_early_purge(struct vrnic_early *e)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&e->list)))
		early_drop(e, skb);
	e->missed = false;
}
