/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is outstanding between the two ends of an RC connection, and what an acknowledgment means:
 * IBTA 9.7. Only lib/ack.[ch] decide that, for requester and responder. They need nothing from
 * ib_core. tests/unit/unit_ack.c tests each rule, and tests/unit/unit_roce.c the whole requester
 * and responder, through a network that loses and reorders packets.
 *
 * A requester counts packets: una is the oldest that is not settled, cur the next to be sent, top
 * the first that was never sent, next the first of the next operation. After a loss, cur goes back
 * to una. The packets from una to top are outstanding, wherever cur is: the responder may have
 * executed all of them.
 *
 * An operation is settled by an acknowledgment of its last packet, or of any later one. But an
 * operation that is answered by more than an acknowledgment (READ, atomics, FLUSH, ATOMIC WRITE) is
 * settled by this answer alone, and una does not pass it before. So a fence is a count that una has
 * to reach, and a packet that is sent again cannot open a fence too early.
 *
 * A responder acknowledges with the PSN of a SEND or WRITE, never with that of a request that has
 * an answer of its own: a requester might take the acknowledgment for the answer.
 */
#ifndef VRNIC_ACK_H
#define VRNIC_ACK_H

#include <linux/types.h>

#include "lib/psn.h"

#define VRNIC_WINDOW_OPS	256	/* most operations in flight; a power of two */

struct vrnic_opdef;

/**
 * struct vrnic_wop - an operation in flight
 * @info: row of the opcode table; NULL if there is none
 * @first: count of its first packet
 * @after: fence: the operation waits until all packets before this count are settled
 * @pkts: number of packets; 0 if the operation needs none
 * @total: number of bytes
 * @head: bytes of the first packet, if that is not to be full; else 0
 * @chunk: READ: packets that one request asks for
 * @slot: where the copy of its descriptor starts in vrnic_req.slots
 * @num_slots: slots of the copy
 * @status: enum ib_wc_status; if not success, the operation fails when it is the oldest
 * @vendor_err: enum vrnic_vendor_err
 * @answered: the responder answers with more than an acknowledgment
 * @skip: the peer of a native link refused the message, so its last packet tells the peer to go on
 * @cookie: native link: the descriptor's cookie, from which the link makes the descriptor again
 * @srqn: XRC: number of the SRQ
 */
struct vrnic_wop {
	const struct vrnic_opdef *info;
	u64 first;
	u64 after;
	u32 pkts;
	u32 total;
	u32 head;
	u32 chunk;
	u16 slot;
	u16 num_slots;
	u8 status;
	u8 vendor_err;
	bool answered;
	bool skip;
	union {
		u64 cookie;
		u32 srqn;
	};
};

/**
 * struct vrnic_flight - what a requester has in flight
 * @ops: the window: operations by index modulo its size
 * @nr_ops: size of the window; a power of two
 * @head: index of the oldest operation; indices run freely
 * @send: index of the operation of the next packet
 * @tail: next index to be used
 * @oldest: all operations before this index are settled, or have left the window
 * @una: oldest packet that is not settled; counts run freely, and their low 24 bits are on the wire
 * @cur: next packet to send
 * @top: first packet that was never sent
 * @next: count of the next operation's first packet
 * @fence: end of the last operation that is answered by more than an acknowledgment
 * @hold: first packet that must not be sent before @una moves; 0: none
 * @reads: number of requests before @top that are answered by more than an acknowledgment, and
 *	whose answers are not complete; each chunk of a READ is a request
 */
struct vrnic_flight {
	struct vrnic_wop *ops;
	u32 nr_ops;
	u32 head;
	u32 send;
	u32 tail;
	u32 oldest;
	u64 una;
	u64 cur;
	u64 top;
	u64 next;
	u64 fence;
	u64 hold;
	u32 reads;
};

static inline struct vrnic_wop *vrnic_wop_at(struct vrnic_flight *f, u32 i)
{
	return &f->ops[i & (f->nr_ops - 1)];
}

static inline u64 vrnic_wop_end(const struct vrnic_wop *w)
{
	return w->first + w->pkts;
}

/**
 * vrnic_flight_may_send() - may packet @f->cur be sent?
 * @f: requester
 * @w: operation of the packet
 * @max_reads: number of requests whose answers the responder remembers
 *
 * Return: false if it has to wait for a fence, or for answers. A packet that is sent again need not
 * wait for answers: @f->reads counts it already.
 */
static inline bool vrnic_flight_may_send(const struct vrnic_flight *f,
					 const struct vrnic_wop *w, u32 max_reads)
{
	if (f->una < w->after)
		return false;
	return !w->answered || f->cur < f->top || f->reads < max_reads;
}

void vrnic_flight_start(struct vrnic_flight *f, u32 psn);
void vrnic_flight_add(struct vrnic_flight *f, struct vrnic_wop *w, bool fenced);
struct vrnic_wop *vrnic_flight_oldest(struct vrnic_flight *f, u32 *index);
void vrnic_flight_sent(struct vrnic_flight *f, const struct vrnic_wop *w, u32 n);
bool vrnic_flight_acked(struct vrnic_flight *f, u64 limit);
void vrnic_flight_answered(struct vrnic_flight *f, const struct vrnic_wop *w, u32 pkts);
void vrnic_flight_moved(struct vrnic_flight *f);
void vrnic_flight_go_back(struct vrnic_flight *f);

/**
 * struct vrnic_res - an answer that the requester may ask for again
 * @op: enum vrnic_bth_op of the request; 0: unused entry
 * @counted: READ: the last packet of the answer was sent once, and the READ counted
 * @psn: PSN of the request
 * @pkts: number of packets of the answer
 * @va: READ: address
 * @rkey: READ: remote key
 * @len: READ: number of bytes
 * @result: atomic: the old value
 */
struct vrnic_res {
	u8 op;
	bool counted;
	u32 psn;
	u32 pkts;
	u64 va;
	u32 rkey;
	u32 len;
	u64 result;
};

/**
 * struct vrnic_served - what a responder has executed
 * @psn: PSN that is expected next; all packets before it were executed
 * @ack_psn: PSN for acknowledgments: that of the last packet of a SEND or WRITE
 * @msn: number of messages that were completed
 * @due: the responder has to send an acknowledgment
 * @res: ring of answers that the requester may ask for again
 * @nr_res: number of entries of @res
 * @next_res: index of the oldest entry
 */
struct vrnic_served {
	u32 psn;
	u32 ack_psn;
	u32 msn;
	bool due;
	struct vrnic_res *res;
	u32 nr_res;
	u32 next_res;
};

/* Has the responder to send an acknowledgment? */
static inline bool vrnic_served_owes_ack(const struct vrnic_served *s)
{
	return s->due;
}

void vrnic_served_start(struct vrnic_served *s, u32 psn);
void vrnic_served_data(struct vrnic_served *s, u32 pkts, bool ackreq);
void vrnic_served_answered(struct vrnic_served *s, u32 pkts);
bool vrnic_served_take_ack(struct vrnic_served *s, u32 *psn);
u32 vrnic_served_take_nak(struct vrnic_served *s);
struct vrnic_res *vrnic_res_new(struct vrnic_served *s, u8 op, u32 psn, u32 pkts);
struct vrnic_res *vrnic_res_find(struct vrnic_served *s, u8 op, u32 psn);

#endif /* VRNIC_ACK_H */
