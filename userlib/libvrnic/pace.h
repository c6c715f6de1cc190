/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Self-paced transfers: what their files share.
 *
 *	pace.c		offers, and messages about them
 *	pace_plan.c	the descriptors of a transfer, for the engines
 *	transfer.c	transfers by number, and how they end
 *	rget.c		remote gets by themselves
 *	long.c		long messages for handlers
 *	pace_wire.h	what libraries send each other
 */
#ifndef VRNIC_PACE_H
#define VRNIC_PACE_H

#include "lib.h"

/* Most pieces of a portion: a batch has them, one more descriptor, and two at the end. */
#define VRNIC_PIECES_MAX	(VRNIC_RGET_DESCS - 2)

/**
 * struct vrnic_transfer - a transfer under way
 * @ep: endpoint of the peer
 * @id: this process's number for the transfer
 * @incoming: this process is the target
 * @peer_id: if @incoming: the origin's number for the transfer
 * @sends: if @incoming: it is one of @ep->incoming
 * @alone: the peer's process knows nothing of the transfer
 * @length: bytes
 * @unit: what the counters of @done fall by: @length, or 1 for a long message
 * @done: how to tell the user; the transfer holds references on its counters
 * @bound: the counters of @done are bound to @ep
 * @tracked: if not @incoming: which counter of @done the offer names, or NULL
 * @counted: the target says that it has let @tracked fall
 * @status: if @incoming: counter that the descriptors name, so that it notes their failures
 * @message: if @incoming: the long message that it is, for a handler; or NULL
 * @deliver: if @incoming: gets the message piece by piece; NULL: the engine puts it into memory
 * @deliver_arg: for @deliver
 * @arrived: bytes that @deliver has got
 * @pieces: pieces that it has got
 * @piece: from the endpoint's pool: the origin's table, or the target's batches
 * @location: if @incoming: type of the locations in the origin's table, or NULL
 * @over: the transfer has ended, and is not found any more
 * @refs: one until the transfer is over, and one for each descriptor that was posted for it
 *	and whose record has not come yet. Such a descriptor may name @piece, so @piece
 *	stays, and no other transfer gets @id.
 */
struct vrnic_transfer {
	struct vrnic_endpoint *ep;
	uint32_t id;
	bool incoming;
	uint32_t peer_id;
	bool sends;
	bool alone;
	uint64_t length;
	uint64_t unit;
	struct vrnic_done done;
	bool bound;
	struct vrnic_counter **tracked;
	bool counted;
	struct vrnic_counter *status;
	struct vrnic_long *message;
	vrnic_deliver deliver;
	void *deliver_arg;
	uint64_t arrived;
	uint64_t pieces;
	struct vrnic_piece piece;
	struct vrnic_type *location;
	bool over;
	uint32_t refs;
};

/**
 * struct vrnic_plan - an accepted offer, cut into portions
 * @rts: the offer
 * @pieces: the message goes through the reception FIFO, in pieces; else with a put for each portion
 * @message: the message is this one, for a handler; or NULL
 * @local: where the message goes, unless @pieces
 * @rkey: remote key of @local's region
 * @hosts: if the peer is on another host: peers on other hosts that send, with this one; else 0
 * @portion: bytes of each portion but the last
 * @nr: portions
 * @lead: batch 0 moves nothing, and only asks for batch 1
 * @batches: of descriptors: one for each portion, and that one
 */
struct vrnic_plan {
	const struct vrnic_rts *rts;
	bool pieces;
	struct vrnic_long *message;
	uint64_t local;
	uint32_t rkey;
	uint32_t hosts;
	uint64_t portion;
	uint32_t nr;
	bool lead;
	uint32_t batches;
};

/* pace.c */
int vrnic_offer(struct vrnic_endpoint *ep, const struct vrnic_rts_wr *wr,
		const struct vrnic_send_wr *message, const struct vrnic_done *done);
struct vrnic_rts vrnic_rts_of(const struct vrnic_record *rec);
int vrnic_accept_message(struct vrnic_endpoint *ep, const struct vrnic_rts *rts,
			 struct vrnic_long *message, const struct ibv_mr *mr);

/* long.c */
void vrnic_long_offered(struct vrnic_context *ctx, const struct vrnic_record *rec);
void vrnic_long_take(struct vrnic_long *message);
void vrnic_long_came(struct vrnic_context *ctx, struct vrnic_long *message, uint32_t status);

/* pace_plan.c */
int vrnic_plan_cut(struct vrnic_plan *plan, uint64_t portion);
uint32_t vrnic_plan_rows(const struct vrnic_plan *plan);
struct vrnic_ndesc vrnic_plan_row(uint32_t id);
int vrnic_plan_location(struct vrnic_client *client, const struct vrnic_plan *plan,
			struct vrnic_type **type);
void vrnic_plan_write(const struct vrnic_transfer *x, const struct vrnic_plan *plan);
struct vrnic_ndesc *vrnic_plan_batch(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan, uint32_t k);
uint64_t vrnic_plan_batch_bytes(const struct vrnic_plan *plan, uint32_t k);
struct vrnic_ndesc *vrnic_plan_table(const struct vrnic_transfer *x,
				     const struct vrnic_plan *plan);

/* transfer.c */
uint32_t vrnic_transfer_hosts(const struct vrnic_endpoint *ep);
void vrnic_transfer_sends(struct vrnic_transfer *x);
int vrnic_transfer_new(struct vrnic_endpoint *ep, uint64_t length, bool incoming,
		       const struct vrnic_done *done, struct vrnic_transfer **new);
void vrnic_transfer_drop(struct vrnic_context *ctx, struct vrnic_transfer *x);
struct vrnic_transfer *vrnic_transfer_take(struct vrnic_context *ctx, uint32_t id,
					   bool incoming,
					   const struct vrnic_record *rec);
struct vrnic_transfer *vrnic_transfer_find(struct vrnic_context *ctx, uint32_t id,
					   bool incoming,
					   const struct vrnic_record *rec);
struct vrnic_transfer *vrnic_transfer_take_theirs(struct vrnic_context *ctx,
						  const struct vrnic_record *rec,
						  uint32_t id);
struct vrnic_transfer *vrnic_transfer_take_any(struct vrnic_context *ctx,
					       const struct vrnic_record *rec);
void vrnic_transfer_end(struct vrnic_context *ctx, struct vrnic_transfer *x,
			uint32_t status, uint32_t vendor_err);
void vrnic_transfer_fail(struct vrnic_context *ctx, struct vrnic_transfer *x,
			 uint32_t status, uint32_t vendor_err);
int vrnic_transfer_tell(struct vrnic_endpoint *ep, uint32_t dispatch,
			uint32_t id, uint32_t status, uint32_t vendor_err);
int vrnic_transfer_post(struct vrnic_transfer *x, struct vrnic_request *req, uint32_t flags);

#endif /* VRNIC_PACE_H */
