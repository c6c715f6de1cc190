// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that came too early, because one before them was lost or is late. Requester and responder
 * keep them for a while, so that the peer has to send only the missing packet again. It seems to
 * the peer as if all packets came in order, after the missing one.
 */

#include <linux/ktime.h>
#include <linux/udp.h>

#include "lib/hdr.h"
#include "lib/psn.h"
#include "roce/roce.h"

/*
 * Bounds for one queue pair and direction, so that no peer can take more memory. A vrnic peer has
 * at most VRNIC_WINDOW_PKTS packets in flight. A list has at most two packets for each PSN: an
 * answer with data, and an acknowledgment.
 */
#define KEEP_PSNS	VRNIC_WINDOW_PKTS
#define KEEP_BYTES	SZ_1M
#define KEEP_NS		(4 * NSEC_PER_SEC)	/* a peer without progress for so long is gone */

/*
 * Patience is how long a missing packet may be late before it counts as lost: at first not at all.
 * If a packet that was asked for again comes twice, asking was needless, and patience grows. It has
 * to stay below the time after which a requester sends again by itself.
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
 * Place of @a in the list: negative: before @b; positive: behind @b; 0: the same. An acknowledgment
 * that has the PSN of an answer with data belongs behind this answer, because the responder sends
 * it later.
 */
static s32 early_behind(const struct vrnic_pkt *a, const struct vrnic_pkt *b)
{
	return 2 * vrnic_psn_diff(a->psn, b->psn) +
	       (a->opcode == VRNIC_BTH_ACK) - (b->opcode == VRNIC_BTH_ACK);
}

/* Find the last kept packet that is not behind @pkt; NULL if @pkt belongs first. */
static struct sk_buff *early_before(struct vrnic_early *e, const struct vrnic_pkt *pkt)
{
	struct sk_buff *at;

	skb_queue_reverse_walk(&e->list, at)
		if (early_behind(pkt, vrnic_pkt(at)) >= 0)
			return at;
	return NULL;
}

/*
 * May the packet be kept? Its addresses can be forged, so it also has to be within a window of
 * @psn, and come from the UDP port that the peer sends from. The port may change: packets in order
 * are executed from any port, and vrnic_early_learn() notes it. Until then no packet is kept.
 */
static bool is_likely(const struct vrnic_early *e, struct sk_buff *skb, u32 psn)
{
	return vrnic_psn_diff(vrnic_pkt(skb)->psn, psn) < KEEP_PSNS &&
	       e->port && port_of(skb) == e->port;
}

/*
 * Note that an early packet was not kept, so the peer has to send it again. Only the highest PSN is
 * noted. If the peer was asked for @missing, it goes back to that, and sends this packet again
 * anyway.
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
 * @skb has the same place as the kept packet @at. If the two differ, one of them is forged, and
 * nothing tells which, so neither is kept.
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
 * @skb: packet; remains the caller's unless this returns 0
 * @psn: PSN of the missing packet
 *
 * Return: 0; -EEXIST: the same packet is kept already; -EBADMSG: a different packet with this PSN
 * was kept, and is dropped; -ENOSPC: the packet is not likely to be the peer's, or there is no
 * room. After -EBADMSG and -ENOSPC, the peer has to send the packet again: early_miss().
 */
int vrnic_early_keep(struct vrnic_early *e, struct sk_buff *skb, u32 psn)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct sk_buff *at = early_before(e, pkt);
	bool first = skb_queue_empty(&e->list);

	if (at && !early_behind(pkt, vrnic_pkt(at)))
		return keep_twice(e, at, skb, psn);
	if (!is_likely(e, skb, psn) ||
	    !vrnic_room_put(&e->room, &e->list, at, skb)) {
		early_miss(e, pkt->psn, psn);
		return -ENOSPC;
	}
	skb->tstamp = ktime_get();
	if (first)
		e->since = ktime_to_ns(skb->tstamp);
	return 0;
}

/**
 * vrnic_early_learn() - learn the peer's UDP port from a packet that came in order
 * @e: early packets of the same queue pair and direction
 * @skb: packet
 */
void vrnic_early_learn(struct vrnic_early *e, const struct sk_buff *skb)
{
	e->port = port_of(skb);
}

/**
 * vrnic_early_peek() - get the first of the packets that are kept
 * @e: early packets
 * @psn: PSN that is expected; packets before it are not needed any more, and are dropped
 *
 * Return: the packet, still in the list, or NULL. Even then a packet may be missing that came and
 * was not kept: vrnic_early_any().
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
	vrnic_room_take(&e->room, &e->list, skb);
}

/**
 * vrnic_early_due() - when does the missing packet count as lost?
 * @e: early packets; vrnic_early_any() is true
 *
 * Return: time in ns; 0: now, because no packet is kept, so to wait would save nothing
 */
u64 vrnic_early_due(const struct vrnic_early *e)
{
	const struct sk_buff *first = skb_peek(&e->list);

	return first ? ktime_to_ns(first->tstamp) + e->patience : 0;
}

/**
 * vrnic_early_age() - drop all packets if there was no progress for so long that the peer is gone
 * @e: early packets
 * @now: time in ns
 *
 * Return: time to call this again, in ns; 0: no packet is kept
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
 * The caller asks the peer for packet @psn again. If the peer was asked once for the packet before,
 * which did not come twice, that packet was lost, and less patience would have done. After a second
 * request nothing tells which request a packet answers.
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

/*
 * The peer is going to send another packet, SKIP, in the place of the one that is missing now. SKIP
 * comes alone, so what is missing behind it has to be asked for.
 */
void vrnic_early_skips(struct vrnic_early *e)
{
	e->was_asked = false;
	e->has_asked = false;
}

/* Packet @psn has come, behind which others were kept. If it was missing, learn how late it was. */
void vrnic_early_came(struct vrnic_early *e, u32 psn, bool was_missing)
{
	const struct sk_buff *first = skb_peek(&e->list);
	u64 late;

	if (!first)
		return;
	e->since = ktime_get_ns();
	if (!was_missing || (e->was_asked && e->asked == psn))
		return;
	late = e->since - ktime_to_ns(first->tstamp);
	have_patience(e, late + late / 4);
}

/* The packet @psn came twice: if the peer was asked for it, that was needless, so wait longer. */
void vrnic_early_again(struct vrnic_early *e, u32 psn)
{
	if (!e->has_asked || e->asked != psn)
		return;
	e->has_asked = false;
	have_patience(e, 2 * e->patience);
}

/*
 * Drop the kept requests that take more than an acknowledgment (READs, atomics). The caller sends a
 * NAK next, and the requester goes back to the missing packet. Some requesters drop the answer to a
 * request that they have not sent again yet, so such a request must not be executed from the list.
 */
void vrnic_early_drop_answered(struct vrnic_early *e)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&e->list, skb, next) {
		if (vrnic_pkt(skb)->info & VRNIC_PKT_ANSWERED)
			early_drop(e, skb);
	}
}

/**
 * vrnic_early_init() - prepare a list of early packets
 * @e: early packets
 * @user: user who has the queue pair, which has a reference; NULL: root, or the kernel
 */
void vrnic_early_init(struct vrnic_early *e, struct vrnic_user *user)
{
	__skb_queue_head_init(&e->list);
	e->room.user = user;
	e->room.most = KEEP_BYTES;
}

void vrnic_early_purge(struct vrnic_early *e)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&e->list)))
		early_drop(e, skb);
	e->missed = false;
}
