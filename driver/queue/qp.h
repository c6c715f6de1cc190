/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs.
 *
 * Locks, in the order in which they nest:
 *
 *	vrnic_qp.ctrl		mutex; modify, destroy, attach a completion counter
 *	  vrnic_qp.resp_lock	mutex; the queue pair as the target of a peer: target.h
 *	    vrnic_qp.state_lock	spinlock, irq
 *	    vrnic_rq.lock	spinlock, irq
 *	    vrnic_cq.lock	spinlock, irq
 *	      vrnic_crew.lock	spinlock, irq
 *
 * The runner of a send ring (a thread, process or softirq) holds the ring's run bit,
 * VRNIC_RUN_BUSY, and at most one resp_lock: that of its target or, to flush, that of its own queue
 * pair. It waits no longer than 20 us for another run bit or resp_lock, so runners do not deadlock.
 */
#ifndef VRNIC_QP_H
#define VRNIC_QP_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

#include "engine/runnable.h"
#include "mem/seg.h"
#include "queue/comp.h"
#include "queue/hold.h"
#include "queue/op.h"
#include "queue/ring_mem.h"
#include "queue/room.h"
#include "queue/rq.h"

struct vrnic_cq;
struct vrnic_dev;
struct vrnic_link;
struct vrnic_link_ops;
struct vrnic_roce;
struct vrnic_rss;
struct vrnic_qp_counter;
struct vrnic_srq;

/* Is the queue pair one of XRC, and which end? See xrc.h. */
enum vrnic_xrc {
	VRNIC_XRC_NO,
	VRNIC_XRC_INI,	/* initiator: only sends */
	VRNIC_XRC_TGT,	/* target: only receives */
};

/**
 * struct vrnic_rare - what a queue pair counts seldom, under the names of base/stats.h
 * @retransmitted_pkts: packets sent again
 * @ack_timeouts: times that the timer for an acknowledgment fired
 * @retries: waits for a peer
 * @rnr_waits: waits for a receive of the peer
 * @local_errors: send requests that failed
 * @flushed: requests that were flushed
 */
struct vrnic_rare {
	u64 retransmitted_pkts;
	u64 ack_timeouts;
	u64 retries;
	u64 rnr_waits;
	u64 local_errors;
	u64 flushed;
};

/**
 * struct vrnic_qp - a queue pair
 * @rcu: to free it after a grace period: code that looks queue pairs up may still read it
 * @refs: one reference of the owner, and one for each use by other code that found the queue pair
 * @gone: completed when the last reference was put
 * @dev: device; valid while a reference is held
 * @ibqp: the core's part; valid while a reference is held. All links of a FIFO share one, which the
 *	core does not know
 * @qpn: number, unique on this host; a GSI queue pair has the number 1 on the wire instead
 * @key_user: device, domain and number that memory keys are checked against: those in the queue
 *	pair's own requests, and those that peers send to it. The domain of an XRC target is that of
 *	the SRQ that it is bound to, and protected as @recv
 * @type: IB_QPT_*; IB_QPT_RC also for XRC
 * @xrc: enum vrnic_xrc
 * @comp: completion counters, or NULL; changed with @ctrl held in RESET and INIT
 * @xrcd: XRC target: its XRC domain; only compared
 * @owner: number of the context that maps the rings; 0 for a kernel consumer's queue pair
 * @sig_all: every send request makes a completion
 * @cap: capabilities that were granted
 * @ctrl: serialises modify and destroy
 * @attr: attributes as last modified; protected by @ctrl. The attributes that runners read are
 *	stable from RTR on, or are single words.
 * @sgid: the queue pair's own GID; set together with the address vector
 * @state_lock: protects writes of @state
 * @state: enum ib_qp_state
 * @sq_draining: the state is SQD, and the event was not raised yet; protected by @state_lock
 * @comm_est: COMM_EST was raised; protected as @recv
 * @last_wqe: LAST_WQE_REACHED was raised; protected by @resp_lock
 * @run: the engine's handle; its run bit protects @sq, @sq_done, @op, @sgl, and the counts between
 *	them
 * @sq: send ring. That of a native link is only an index: link_ops.fetch() finds the messages
 * @sq_done: send requests that have ended since RESET
 * @descriptors: send requests that were taken off the ring
 * @xmit_bytes: bytes of messages that left, in packets or by @op
 * @sent_pkts: packets that were sent; not for GSI, by which other code sends, too
 * @read_bytes: bytes that READs brought from a peer on this host
 * @op: the descriptor that the send ring is working on
 * @sgl: scratch: the local memory of @op during a burst, which is what one run moves of @op
 * @hold: lock and references that a run keeps for the next operation; protected by the run bit
 * @send_wait: the page of its own memory that the next request waits for; protected by the run bit
 * @peer_wait: the page of the memory of a peer on this host that @op waits for; protected as
 *	@send_wait
 * @limit: bytes a second that the consumer allows this queue pair to send; 0: no limit. Changed
 *	with the ring parked.
 * @paid_at: time, in ns, from which the rate allows to send more; protected by the run bit
 * @post_lock: serialises post_send() of kernel consumers
 * @rq: receive ring, if vrnic_qp_has_rq()
 * @srq: shared receive ring or NULL. Of an XRC target: the SRQ that it is bound to, or NULL;
 *	protected as @recv
 * @recv_cq: where receives complete; of an XRC target as @srq
 * @resp_lock: serialises peers that use this queue pair as a target; protects @recv
 * @recv: the receive request that takes the present message; protected by @resp_lock
 * @target_rcvd: bytes of messages that peers on this host sent; protected as @recv
 * @target_xmit: bytes that READs of peers on this host took; protected as @recv
 * @recv_sgl: scratch: the memory of @recv that a burst reaches; protected by @resp_lock
 * @recv_wait: the page that the present receive, or a request from the wire, waits for; protected
 *	as @recv_sgl
 * @target_errors: requests of peers that were refused; protected as @recv
 * @target_rnr: RNR NAKs that were sent; protected as @recv
 * @roce: connection over the wire; NULL: UD, GSI, or the peer is on this host. Changed with @run
 *	parked, in a state in which no local peer reads the pointer. While it is set, no local peer
 *	uses this queue pair, and the run bit protects @recv and @recv_sgl instead of @resp_lock.
 *	Softirqs that bring packets read the path in it.
 * @rxq: received packets that no run has handled yet; has a lock of its own
 * @rxq_room: room that the packets in @rxq take; protected by the lock of @rxq. A reference on its
 *	user is held
 * @ud_psn: PSN of the next datagram to the wire; protected by the run bit
 * @rcvd_pkts: packets that came into @rxq; protected by its lock
 * @rcvd_bytes: bytes of payload of these packets; protected as they
 * @rss: raw packets: spreads frames over work queues; NULL: the queue pair receives itself
 * @groups: number of multicast groups with this queue pair; protected by vrnic_dev.mcast_lock
 * @link: the native link that this queue pair carries; NULL: a consumer has the queue pair
 * @link_ops: functions of @link that the queue pair calls
 * @posted: number of messages of @link that were posted, as the producer's index of a ring; written
 *	with the link's lock held
 * @rare: counts of what is no part of the fast path; protected by the run bit
 * @wired: entry in vrnic_wire.qps while the queue pair may have a route; changed with @ctrl held
 * @counter: counter that this queue pair is bound to, or NULL; atomic
 * @counted: entry in the list of @counter; protected by its lock
 * @gfp: flags for allocations
 *
 * Each count that the fast path makes lies beside fields that the same path writes anyway, so it
 * costs an addition to a cache line that this CPU has already:
 *
 * - @descriptors and @xmit_bytes are behind the index of @sq and @sq_done, which each request
 *   changes;
 * - @sent_pkts and @read_bytes are before the first fields of @op, which each request changes. A
 *   queue pair that only answers changes them once for a buffer of packets;
 * - @target_rcvd and @target_xmit are before the head of @recv_sgl, which each request of a peer on
 *   this host changes;
 * - @comp, which most queue pairs do not have, is beside @type and @xrc, which each request reads;
 * - @rcvd_pkts and @rcvd_bytes are before @rxq_room and @rxq, which each packet changes.
 */
struct vrnic_qp {
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	struct vrnic_dev *dev;
	struct ib_qp *ibqp;
	u32 qpn;
	struct vrnic_key_user key_user;
	enum ib_qp_type type __aligned(16);	/* so that no line ends before @comp */
	enum vrnic_xrc xrc;
	struct vrnic_qp_comp *comp;
	const struct ib_xrcd *xrcd;
	u64 owner;
	bool sig_all;
	struct ib_qp_cap cap;
	struct mutex ctrl;		/* serialises modify and destroy */
	struct ib_qp_attr attr;
	union ib_gid sgid;
	spinlock_t state_lock;		/* protects writes of @state */
	enum ib_qp_state state;
	bool sq_draining;
	bool comm_est;
	bool last_wqe;
	struct vrnic_runnable run;
	struct vrnic_ring sq ____cacheline_aligned;
	u32 sq_done;
	u64 descriptors;
	u64 xmit_bytes;
	u64 sent_pkts;
	u64 read_bytes;
	struct vrnic_op op;
	struct vrnic_sgl sgl;
	struct vrnic_hold hold;
	struct vrnic_page_wait send_wait;
	struct vrnic_page_wait peer_wait;
	u64 limit;
	u64 paid_at;
	spinlock_t post_lock;		/* serialises post_send() of kernel consumers */
	struct vrnic_rq rq;
	struct vrnic_srq *srq;
	struct vrnic_cq *recv_cq;
	struct mutex resp_lock;		/* protects @recv and @recv_sgl */
	struct vrnic_recv recv;
	u64 target_rcvd ____cacheline_aligned;
	u64 target_xmit;
	struct vrnic_sgl recv_sgl;
	struct vrnic_page_wait recv_wait;
	u64 target_errors;
	u64 target_rnr;
	struct vrnic_roce *roce;
	struct vrnic_link *link;
	const struct vrnic_link_ops *link_ops;
	u32 posted;
	struct vrnic_rare rare;
	u64 rcvd_pkts ____cacheline_aligned;
	u64 rcvd_bytes;
	struct vrnic_room rxq_room;
	u32 ud_psn;
	struct sk_buff_head rxq;	/* its lock is the last of it, and large in some kernels */
	struct vrnic_rss *rss;
	u32 groups;
	struct list_head wired;
	struct vrnic_qp_counter *counter;
	struct list_head counted;
	gfp_t gfp;
};

#define VRNIC_RXQ_BYTES	SZ_4M	/* most memory of packets that wait for a run */

/**
 * struct vrnic_scratch - arrays of a queue pair, behind it in its memory
 * @slots: of vrnic_qp.op
 * @seg: of vrnic_qp.sgl
 * @recv_sge: of vrnic_qp.recv
 * @recv_seg: of vrnic_qp.recv_sgl
 */
struct vrnic_scratch {
	u8 slots[VRNIC_MAX_SLOTS * VRNIC_SLOT_SIZE] __aligned(8);
	struct vrnic_seg seg[VRNIC_MAX_SGE];
	struct vrnic_sge recv_sge[VRNIC_MAX_SGE];
	struct vrnic_seg recv_seg[VRNIC_MAX_SGE];
};

#define VRNIC_LINK_SEGS	4	/* segments of a message of a native link, with its header */

/**
 * struct vrnic_link_scratch - the same of the queue pair of a native link
 * @slot: of vrnic_qp.op
 * @seg: of vrnic_qp.sgl
 * @recv_seg: of vrnic_qp.recv_sgl
 *
 * There may be very many links, so theirs is as small as can be.
 */
struct vrnic_link_scratch {
	u8 slot[VRNIC_SLOT_SIZE] __aligned(8);
	struct vrnic_seg seg[VRNIC_LINK_SEGS];
	struct vrnic_seg recv_seg;
};

/*
 * Has it a receive ring? One with an SRQ has none, nor has one of XRC, or that of a native link, or
 * one with work queues.
 */
static inline bool vrnic_qp_has_rq(const struct vrnic_qp *qp)
{
	return !qp->xrc && !qp->srq && !qp->link && !qp->rss;
}

/* Is it in a state in which it receives? */
static inline bool vrnic_qp_receives(const struct vrnic_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state >= IB_QPS_RTR && state <= IB_QPS_SQE;
}

/* Has a process made it? The core makes an XRC target, which processes share, as if for itself. */
static inline bool vrnic_qp_is_users(const struct vrnic_qp *qp)
{
	return qp->owner || qp->xrc == VRNIC_XRC_TGT;
}

/* Can @peer be the peer of @qp, a requester, by their types? */
static inline bool vrnic_qp_suits(const struct vrnic_qp *qp, const struct vrnic_qp *peer)
{
	return peer->type == qp->type &&
	       peer->xrc == (qp->xrc ? VRNIC_XRC_TGT : VRNIC_XRC_NO);
}

/* Count a request on the completion counter for @op, if there is one: see vrnic_comp_add(). */
static inline void vrnic_qp_count(struct vrnic_qp *qp, enum vrnic_comp_op op, u64 bytes, u8 status)
{
	if (unlikely(qp->comp))
		vrnic_comp_add(qp->comp, op, bytes, status);
}

/* Nothing is arranged for shorter lines. */
#define VRNIC_QP_SAME_LINE(a, b)						\
	static_assert(offsetof(struct vrnic_qp, a) / SMP_CACHE_BYTES ==		\
		      offsetof(struct vrnic_qp, b) / SMP_CACHE_BYTES ||		\
		      SMP_CACHE_BYTES < 64)

VRNIC_QP_SAME_LINE(type, comp);
VRNIC_QP_SAME_LINE(xrc, comp);
VRNIC_QP_SAME_LINE(sq_done, descriptors);
VRNIC_QP_SAME_LINE(sq_done, xmit_bytes);
VRNIC_QP_SAME_LINE(op.info, sent_pkts);
VRNIC_QP_SAME_LINE(op.info, read_bytes);
VRNIC_QP_SAME_LINE(recv_sgl.pos, target_rcvd);
VRNIC_QP_SAME_LINE(recv_sgl.pos, target_xmit);
VRNIC_QP_SAME_LINE(rxq.qlen, rcvd_pkts);
VRNIC_QP_SAME_LINE(rxq.qlen, rxq_room);

/* The core frees this after destroy_qp(); RCU readers may use the struct vrnic_qp for longer. */
struct vrnic_ibqp {
	struct ib_qp ibqp;
	struct vrnic_qp *qp;
};

static inline struct vrnic_qp *to_vqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct vrnic_ibqp, ibqp)->qp;
}

#endif /* VRNIC_QP_H */
