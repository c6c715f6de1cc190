/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RoCEv2 flow: what its files share.
 *
 *	roce/socket.c	sockets, routes; packets from and to the network
 *	roce/arrive.c	puts packets into the queue of their queue pair
 *	roce/tx.c	makes packets
 *	roce/pkt.c	reads packets
 *	lib/ack.h	what is outstanding, and what an acknowledgment means
 *	roce/resp.h	requests of a peer: the responder and its files
 *	roce/flow.c	connects queue pairs, handles their packets
 *	roce/req.h	requests to a peer: the requester and its files
 *	roce/window.c	memory of the requester's window
 *	roce/early.c	packets that came before one that is missing
 *	roce/ud_wire.c	datagrams, both ways
 *
 * The run bit (VRNIC_RUN_BUSY) of a queue pair protects all its state here, except its queue of
 * received packets. A runner has the bit while it handles packets. Mostly the runner is the softirq
 * that brought the packets, so nothing here may sleep.
 */
#ifndef VRNIC_ROCE_H
#define VRNIC_ROCE_H

#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

#include "lib/ack.h"
#include "lib/cc.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/room.h"

struct dst_entry;
struct vrnic_budget;
struct vrnic_dev;
struct vrnic_qp;
struct vrnic_sgl;
struct vrnic_user;

#define VRNIC_WINDOW_SLOTS	512	/* slots for copies of the descriptors of a window */
#define VRNIC_LINK_OPS		128	/* most operations in flight of a native link */
#define VRNIC_LINK_OPS_FEW	2	/* as many need no memory: in struct vrnic_req */
#define VRNIC_WINDOW_PKTS	128	/* most packets in flight */
#define VRNIC_WINDOW_MIN	8	/* the window that losses leave */
#define VRNIC_WINDOW_QUEUED	2	/* the window that losses leave if a queue delays packets */
#define VRNIC_PROBE		2	/* packets that are sent again at first after a loss */
#define VRNIC_CLEAN_PKTS	1024	/* packets without a loss after which a wire is clean */
#define VRNIC_ACK_EVERY		32	/* most packets from one AckReq to the next */

/**
 * struct vrnic_wire - the sockets of a network namespace
 * @rcu: for kfree_rcu(): softirqs find it by a socket, under RCU
 * @link: in wires; protected by wires_lock
 * @users: number of @devs and of tasks that empty @qps; protected by wires_lock
 * @devs: struct vrnic_dev; protected by wires_lock
 * @net: network namespace; NULL once it ends; protected by wires_lock
 * @sock: sockets for IPv4 and IPv6; NULL if there is none; protected by wires_lock
 * @sk: @sock, for senders, which read it under RCU
 * @order: keeps the packets of a flow in order until they are in the queue of their queue pair
 * @qps_lock: protects @qps and @shut; a leaf
 * @qps: queue pairs that may have a route
 * @shut: no queue pair may join @qps any more
 * @over: no route of the namespace is kept or used any more; written once
 */
struct vrnic_wire {
	struct rcu_head rcu;
	struct list_head link;
	unsigned int users;
	struct list_head devs;
	struct net *net;
	struct socket *sock[2];
	struct sock __rcu *sk[2];
	spinlock_t order;	/* keeps packets in order from a socket to queue pairs */
	spinlock_t qps_lock;	/* protects @qps and @shut */
	struct list_head qps;
	bool shut;
	bool over;
};

/**
 * struct vrnic_net_crc - the part of the ICRC that all packets of a path and length have in common
 * @size: bytes from BTH to ICRC; 0: @crc is not valid
 * @crc: vrnic_icrc_net() of the headers of such a packet
 */
struct vrnic_net_crc {
	u32 size;
	u32 crc;
};

/**
 * struct vrnic_path - the path of packets to a peer
 * @wire: sockets to send from; a reference is held
 * @ipv6: the addresses are IPv6 addresses
 * @tos: type of service or traffic class, with ECN
 * @ttl: hop limit
 * @priority: priority of packets, for queueing disciplines and VLANs
 * @label: IPv6 flow label
 * @oif: index of the interface
 * @sport: UDP source port
 * @sgid: own address
 * @dgid: peer's address
 * @dst: route, or NULL: to be looked up. The path of a queue pair in @wire->qps may keep it. Any
 *	other path has it only under RCU, or with softirqs held off
 * @cookie: of @dst, for dst_check()
 * @crc: start of the ICRC, which depends on the packet's size: [true] for the size of an
 *	acknowledgment, [false] for the latest other size
 */
struct vrnic_path {
	struct vrnic_wire *wire;
	bool ipv6;
	u8 tos;
	u8 ttl;
	u8 priority;
	u32 label;
	int oif;
	u16 sport;
	union ib_gid sgid;
	union ib_gid dgid;
	struct dst_entry *dst;
	u32 cookie;
	struct vrnic_net_crc crc[2];
};

/**
 * struct vrnic_pkt - a received packet; lies in skb->cb, and takes all of it
 * @info: VRNIC_PKT_*
 * @psn: PSN, 24 bits
 * @qpn: destination queue pair number
 * @opcode: service and operation; of XRC, only the operation, as for RC
 * @ipv6: the network header is IPv6
 * @solicited: solicited event
 * @ackreq: an acknowledgment is requested
 * @payload: offset of the payload from skb->data
 * @ce: a router has marked the packet: congestion
 * @kept: the packet came early, and waited in struct vrnic_early for those before it; or it has
 *	waited for a page
 * @moved: its data are in place, but it waits to invalidate a key
 * @light: link_ops.light() allowed softirq to handle the packet
 * @spoiled: fault injection: treat the ICRC as wrong
 * @swapped: fault injection: the packet waits to be overtaken by the next one
 * @train: @more packets follow in the buffer that differ only in their PSNs, which count up. They
 *	have no extension headers, so @more and @stride take the place of @ext
 * @vlan: 1 + the VLAN through which the packet came; 0: none
 * @len: bytes of payload, without pad
 * @ext: extension headers, without XRCETH: vrnic_pkt_srqn()
 * @more: train: number of packets behind the first
 * @stride: train: bytes from one packet to the next
 */
struct vrnic_pkt {
	u32 info;
	u32 psn;
	u32 qpn : 24;
	u32 kept : 1;
	u32 moved : 1;
	u8 opcode;
	u8 ipv6 : 1;
	u8 solicited : 1;
	u8 ackreq : 1;
	u8 ce : 1;
	u8 light : 1;
	u8 spoiled : 1;
	u8 swapped : 1;
	u8 train : 1;
	u16 payload;
	u16 vlan;
	u16 len;
	union {
		u8 ext[VRNIC_EXT_MAX];
		struct {
			u16 more;
			u16 stride;
		};
	};
};

static inline struct vrnic_pkt *vrnic_pkt(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct vrnic_pkt) > sizeof(skb->cb));
	return (struct vrnic_pkt *)skb->cb;
}

/* Packets in a buffer up to this size take longer to hand to another CPU than to execute. */
#define VRNIC_PKT_SMALL	1024

static inline bool vrnic_pkt_small(const struct sk_buff *skb)
{
	return skb->len <= VRNIC_PKT_SMALL;
}

/* Number of packets: that of a train, or 1. */
static inline u32 vrnic_pkt_count(const struct vrnic_pkt *pkt)
{
	return pkt->train ? pkt->more + 1 : 1;
}

/* Bytes of payload: those of a train, or of the one packet. */
static inline u32 vrnic_pkt_bytes(const struct vrnic_pkt *pkt)
{
	return vrnic_pkt_count(pkt) * pkt->len;
}

/* The extension headers, behind the BTH. */
static inline void *vrnic_pkt_ext(struct sk_buff *skb)
{
	return vrnic_pkt(skb)->ext;
}

/**
 * struct vrnic_burst - packets that a run collects in one buffer
 * @skb: buffer, or NULL
 * @size: bytes of each packet, from BTH to ICRC
 * @nr: number of packets in @skb
 * @payload: bytes of payload in @skb
 * @full: the last packet is shorter, so no other can follow
 * @lent: fragments of @skb are pages of a memory region, not copies
 * @ack: the first packet is an acknowledgment
 * @alone: the buffer is for one packet, all of it in the linear part
 * @page: page fragment that copies are put into
 */
struct vrnic_burst {
	struct sk_buff *skb;
	u32 size;
	u32 nr;
	u32 payload;
	bool full;
	bool lent;
	bool ack;
	bool alone;
	struct page_frag page;
};

/**
 * struct vrnic_tx - a packet to be made
 * @opcode: service and operation; for XRC, the operation is enough
 * @solicited: solicited event
 * @ackreq: request an acknowledgment
 * @copy: copy the payload, because the packet is sent again, or the owner of the memory may write
 *	to it before the packet is acknowledged
 * @dqpn: destination queue pair number
 * @psn: PSN, of which the low 24 bits count
 * @ext: extension headers
 * @ext_len: bytes of @ext
 * @src: payload; its position moves behind the packet. NULL: no payload
 * @len: bytes of payload
 */
struct vrnic_tx {
	u8 opcode;
	bool solicited;
	bool ackreq;
	bool copy;
	u32 dqpn;
	u32 psn;
	u8 ext[VRNIC_EXT_MAX + sizeof(struct vrnic_xrceth)] __aligned(8);
	u32 ext_len;
	struct vrnic_sgl *src;
	u32 len;
};

/**
 * struct vrnic_early - packets that came before one that is missing
 * @list: packets that are kept, in the order of their PSNs
 * @room: room that they take
 * @port: UDP source port of the last packet that came in order; 0: none came
 * @since: time of the last progress, in ns: @list got its first packet, or a missing packet came
 * @patience: time, in ns, that a missing packet may be late
 * @asked: PSN of the packet that the peer was last asked to send again
 * @was_asked: @asked is valid
 * @has_asked: the peer was asked once for @asked, which has not come twice since
 * @missed: an early packet was not kept, so the peer has to send it again
 * @missed_psn: highest PSN of such a packet
 */
struct vrnic_early {
	struct sk_buff_head list;
	struct vrnic_room room;
	u16 port;
	u64 since;
	u64 patience;
	u32 asked;
	bool was_asked;
	bool has_asked;
	bool missed;
	u32 missed_psn;
};

/* Have packets come too early, whether or not they were kept? */
static inline bool vrnic_early_any(const struct vrnic_early *e)
{
	return e->missed || !skb_queue_empty(&e->list);
}

/**
 * struct vrnic_req - the requester
 * @fly: operations in flight, and how far they are settled
 * @few: @fly.ops of a native link with few operations in flight: see roce/window.c
 * @slots: copies of their descriptors, by slot modulo VRNIC_WINDOW_SLOTS. A copy does not wrap: the
 *	buffer has more slots at its end. NULL: native link, which keeps no copies
 * @slot_head: oldest slot of the copies
 * @slot_tail: next slot to be used
 * @ahead: slots of the send ring that the window's operations take
 * @rung: index in the send ring; the process has rung the doorbell for the slots before it
 * @loaded: window index of the operation that is in vrnic_qp.op
 * @has_loaded: @loaded is valid
 * @blocked: an operation failed, so the window takes no new one
 * @wants_room: a window could not grow for want of memory, and a thread is to try again
 * @page_tries: how often the next packet, or the next answer, waited for a page of this host
 * @tried: @fly.tail when a thread last did
 * @acked_at: last packet that requested an acknowledgment
 * @went_back: @fly.una when an early answer last made the requester go back; 0: not since a timeout
 * @recover: @window has shrunk already for losses of packets before this one
 * @probe: packets sent again at first after the last loss; the next loss before @recover doubles it
 * @early: answers that came before one that is missing
 * @lossy: until @fly.una gets here, a recent loss makes first_wait() shorter
 * @window: most packets in flight; a loss makes it smaller, progress larger
 * @arrived: packets that were acknowledged, but have not made @window grow yet
 * @rnr_left: RNR retries left
 * @retry_left: transport retries left
 * @since: start of the present try, in ns. A try lasts as long as the ACK timeout
 * @deadline: time by which an answer is due; 0: none is due
 * @wait: time from the last packet to @deadline; doubles with each timeout
 * @looked: @since of the try in which a @deadline had packets sent again; 0: none
 * @patience: least first @wait, from the time that a late answer took; 0 once an answer is timed
 * @rtt: smoothed time from a packet to its answer, in ns; 0: not known
 * @rtt_var: smoothed deviation from @rtt
 * @rtt_min: least time from a packet to its answer of late, in ns; 0: not known
 * @timed: packet whose answer is timed; 0: none
 * @timed_at: when @timed was sent
 * @rnr_until: end, in ns, of the wait after an RNR NAK; 0: none
 * @rnr_since: native link: when the first RNR NAK since the last progress came
 * @answer_at: time, in ns, to try again to put the next answer in place, as a page is brought in;
 *	0: no answer waits
 * @answer_wait: the page that the answer waits for
 */
struct vrnic_req {
	struct vrnic_flight fly;
	struct vrnic_wop few[VRNIC_LINK_OPS_FEW];
	u8 *slots;
	u32 slot_head;
	u32 slot_tail;
	u32 ahead;
	u32 rung;
	u32 loaded;
	bool has_loaded;
	bool blocked;
	bool wants_room;
	u8 page_tries;
	u32 tried;
	u64 acked_at;
	u64 went_back;
	u64 recover;
	u32 probe;
	u64 lossy;
	struct vrnic_early early;
	u32 window;
	u64 arrived;
	u8 rnr_left;
	u8 retry_left;
	u64 since;
	u64 deadline;
	u64 wait;
	u64 looked;
	u64 patience;
	u64 rtt;
	u64 rtt_var;
	u64 rtt_min;
	u64 timed;
	u64 timed_at;
	u64 rnr_until;
	u64 rnr_since;
	u64 answer_at;
	struct vrnic_page_wait answer_wait;
};

/**
 * struct vrnic_reply - the READ that the responder is answering
 * @active: a READ is being answered
 * @first: the next packet is the first of the answer
 * @replay: the READ is a duplicate, so the answer is sent again
 * @psn: PSN of the next packet
 * @va: address of the next packet's bytes
 * @rkey: remote key
 * @left: bytes that are not sent yet
 * @srqn: XRC: number of the SRQ
 */
struct vrnic_reply {
	bool active;
	bool first;
	bool replay;
	u32 psn;
	u64 va;
	u32 rkey;
	u32 left;
	u32 srqn;
};

/**
 * struct vrnic_resp - the responder
 * @served: requests that were executed, and how they were answered
 * @kind: bit of VRNIC_PKT_DATA of the message in progress; 0: no message is
 * @uc_drop: UC: drop the rest of the message
 * @retry_at: time, in ns, to try the next request again, which waits to invalidate a key, or for a
 *	page; 0: none waits
 * @page_tries: how often the next request, or the next packet of an answer, waited for a page
 * @naked: a NAK for @served.psn is out; the next one waits for that packet, or for @again
 * @again: the requester has gone back after that NAK, and @served.psn was lost once more
 * @replied: the present run has sent an answer other than an acknowledgment
 * @early: requests that came before one that is missing
 * @va: WRITE: address of the next packet's data
 * @rkey: WRITE: remote key
 * @left: WRITE: bytes that are still to come
 * @len: bytes of the message that are in place
 * @srqn: XRC: number of the SRQ that the first packet of the message named
 * @refused: native link: the requester was told that the message of the packet that is expected has
 *	failed, and has to send SKIP in the packet's place
 * @reply: the READ that is being answered
 */
struct vrnic_resp {
	struct vrnic_served served;
	u32 kind;
	bool uc_drop;
	bool naked;
	bool again;
	bool refused;
	bool replied;
	u8 page_tries;
	u64 retry_at;
	struct vrnic_early early;
	u64 va;
	u32 rkey;
	u32 left;
	u64 len;
	u32 srqn;
	struct vrnic_reply reply;
};

/**
 * struct vrnic_tx_queue - which of the interface's queues the packets of a connection take
 * @cpu: number, plus 1, of the CPU that they count as sent from, whichever CPU sends them; 0:
 *	that of the next one
 * @answers: answers are among them, of which nobody says when they have arrived
 * @used: when the last one was sent, in jiffies
 *
 * The queues overtake each other, and the stack picks one by the CPU (XPS). So the CPU changes only
 * when all requests are acknowledged or, if there were packets that nobody acknowledges, after a
 * while without a packet.
 */
struct vrnic_tx_queue {
	u32 cpu;
	bool answers;
	unsigned long used;
};

/**
 * struct vrnic_roce - what an RC or UC queue pair needs to reach a peer over the wire
 * @rcu: to free it after a grace period: softirqs compare addresses of packets with @path under RCU
 * @path: path to the peer
 * @mtu: path MTU, bytes of payload
 * @burst: packets that the run has made and not sent; empty between runs
 * @queue: the interface's queue for them
 * @cc: congestion control
 * @told_at: when the last CNP went to the peer, in ns; 0: never
 * @due: RC: received packets that the present run does not leave to the softirqs that brought them:
 *	those that had come when it began. U32_MAX in a thread, which leaves none
 * @req: the requester
 * @resp: the responder
 */
struct vrnic_roce {
	struct rcu_head rcu;
	struct vrnic_path path;
	u32 mtu;
	struct vrnic_burst burst;
	struct vrnic_tx_queue queue;
	struct vrnic_cc cc;
	u64 told_at;
	u32 due;
	struct vrnic_req req;
	struct vrnic_resp resp;
};

/* roce/socket.c */
int vrnic_path_init(struct vrnic_path *path, struct vrnic_dev *dev,
		    const union ib_gid *sgid, const struct rdma_ah_attr *attr,
		    int oif, u32 sqpn, u32 dqpn);
void vrnic_path_drop(struct vrnic_path *path);
struct dst_entry *vrnic_path_route(struct vrnic_qp *qp, struct vrnic_path *path);
int vrnic_path_send(struct vrnic_path *path, struct sk_buff *skb);
int vrnic_wire_send(struct vrnic_wire *w, struct sk_buff *skb);
void vrnic_wire_join(struct vrnic_wire *w, struct vrnic_qp *qp);
struct vrnic_wire *vrnic_wire_alloc(struct net *net);
void vrnic_wire_end(struct vrnic_wire *w);

/* roce/flow.c */
int vrnic_roce_init(void);
void vrnic_roce_exit(void);

/* roce/arrive.c */
bool vrnic_pkt_welcome(const struct vrnic_qp *qp, struct sk_buff *skb);
bool vrnic_pkt_arrive(struct vrnic_qp *qp, struct sk_buff *skb);
void vrnic_pkt_run(struct vrnic_qp *qp, bool small);
struct sk_buff *vrnic_rxq_take(struct vrnic_qp *qp);
void vrnic_rxq_return(struct vrnic_qp *qp, struct sk_buff *skb);
void vrnic_rxq_purge(struct vrnic_qp *qp);

/* roce/tx.c */
int vrnic_roce_xmit(struct vrnic_qp *qp, struct vrnic_path *path,
		    struct vrnic_tx *tx);
void vrnic_roce_push(struct vrnic_qp *qp);
void vrnic_burst_drop(struct vrnic_burst *b);

/* roce/pkt.c */
bool vrnic_pkt_parse(struct sk_buff *skb, u32 at, u32 size);
u32 vrnic_pkt_couple(struct sk_buff *skb, u32 at, u32 size);
void vrnic_pkt_uncouple(struct vrnic_qp *qp, struct sk_buff *skb);
bool vrnic_pkt_intact(struct sk_buff *skb);
bool vrnic_pkt_same(struct sk_buff *a, struct sk_buff *b);
u32 vrnic_pkt_srqn(struct sk_buff *skb);
bool vrnic_pkt_is_from(struct sk_buff *skb, const struct vrnic_path *path);
void vrnic_pkt_gids(const struct sk_buff *skb, union ib_gid *from,
		    union ib_gid *to);
void vrnic_pkt_copy(struct sk_buff *skb, struct vrnic_sgl *dst, bool final);

/* roce/resp.c */
int vrnic_resp_init(struct vrnic_qp *qp, const struct ib_qp_attr *attr);
void vrnic_resp_free(struct vrnic_qp *qp);
bool vrnic_resp_busy(const struct vrnic_qp *qp);
bool vrnic_resp_waits(struct vrnic_qp *qp);
void vrnic_resp_request(struct vrnic_qp *qp, struct sk_buff *skb);
void vrnic_resp_gap(struct vrnic_qp *qp);
bool vrnic_resp_take_ack(struct vrnic_qp *qp, struct vrnic_tx *tx);
void vrnic_resp_ack(struct vrnic_qp *qp);

/* roce/resp_reply.c */
bool vrnic_resp_reply(struct vrnic_qp *qp, struct vrnic_budget *budget);

/* roce/early.c */
void vrnic_early_init(struct vrnic_early *e, struct vrnic_user *user);
void vrnic_early_purge(struct vrnic_early *e);
int vrnic_early_keep(struct vrnic_early *e, struct sk_buff *skb, u32 psn);
struct sk_buff *vrnic_early_peek(struct vrnic_early *e, u32 psn);
void vrnic_early_take(struct vrnic_early *e, struct sk_buff *skb);
void vrnic_early_learn(struct vrnic_early *e, const struct sk_buff *skb);
u64 vrnic_early_due(const struct vrnic_early *e);
u64 vrnic_early_age(struct vrnic_early *e, u64 now);
void vrnic_early_asked(struct vrnic_early *e, u32 psn);
void vrnic_early_drop_answered(struct vrnic_early *e);
void vrnic_early_skips(struct vrnic_early *e);
void vrnic_early_came(struct vrnic_early *e, u32 psn, bool was_missing);
void vrnic_early_again(struct vrnic_early *e, u32 psn);

/* rate.c */
void vrnic_rate_marked(struct vrnic_qp *qp, u32 count);
void vrnic_rate_congested(struct vrnic_qp *qp);
void vrnic_rate_notified(struct vrnic_qp *qp);

/* roce/req_retry.c */
bool vrnic_req_queued(const struct vrnic_qp *qp);

/* roce/req_ack.c */
void vrnic_req_answer(struct vrnic_qp *qp, struct sk_buff *skb);
bool vrnic_req_waits(struct vrnic_qp *qp);

/* roce/ud_wire.c */
void vrnic_ud_receive(struct vrnic_qp *qp, struct sk_buff *skb);

#endif /* VRNIC_ROCE_H */
