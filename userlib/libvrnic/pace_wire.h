/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What libraries send each other about transfers that pace themselves. Another version of the
 * library may be at the other end, so numbers and layouts do not change. This header needs nothing
 * but vrnic.h, because tests that play a bad peer use it, too.
 */
#ifndef VRNIC_PACE_WIRE_H
#define VRNIC_PACE_WIRE_H

#include "vrnic.h"

/* Dispatch ids of the library's own messages. */
enum {
	VRNIC_DISPATCH_RTS = VRNIC_DISPATCH_MAX,	/* an offer */
	VRNIC_DISPATCH_REFUSED,		/* to the origin: the target does not take the message */
	VRNIC_DISPATCH_BROKEN,		/* to the target: the origin sends no more */
	VRNIC_DISPATCH_TAKEN,		/* NOTIFY at the origin */
	VRNIC_DISPATCH_ARRIVED,		/* NOTIFY at the target */
	VRNIC_DISPATCH_PIECE,		/* to the target: some of the message */
	VRNIC_DISPATCH_LONG,		/* an offer of a long message for a handler */
};

/*
 * The number of a transfer is its place in a table, and above that how often the place was used.
 * Only the library that made the number reads it.
 */
#define VRNIC_TRANSFER_PLACE_BITS	20

/* A descriptor that the engines run has the number of its transfer as cookie, with these bits: */
#define VRNIC_COOKIE_TARGET	(1ULL << 32)	/* the target's number, not the origin's */
#define VRNIC_COOKIE_LAST	(1ULL << 33)	/* PUT or MESSAGE of the last portion */
#define VRNIC_COOKIE_COUNTED	(1ULL << 34)	/* NOTIFY: the origin's counter has fallen */
#define VRNIC_COOKIE_PIECE	35		/* MESSAGE: from this bit on, which piece it is */

/* Long messages of a peer that wait for room; the receiver refuses more. */
#define VRNIC_LONGS_WAITING	1024U

/**
 * struct vrnic_offer - what an offer holds on its way from library to library
 * @dispatch: VRNIC_DISPATCH_LONG: id of the handler. Otherwise zero
 * @length: bytes of the message
 * @remote: address of the message
 * @table: address of the sender's table of origin RGET descriptors
 * @rkey: key of the message
 * @table_rkey: key of the table
 * @table_rows: rows in it; each portion after the first needs one
 * @id: the sender's number for the offer
 * @counter: number of the sender's counter that the target's descriptors let fall by each portion;
 *	0: none. Libraries that do not know this member write 0, and do not read it: then the
 *	sender itself lets the counter fall, when it is told of the end without
 *	VRNIC_COOKIE_COUNTED
 * @flags: VRNIC_OFFER_*; libraries that do not know this member write 0, and do not read it
 */
struct vrnic_offer {
	uint64_t dispatch;
	uint64_t length;
	uint64_t remote;
	uint64_t table;
	uint32_t rkey;
	uint32_t table_rkey;
	uint32_t table_rows;
	uint32_t id;
	uint32_t counter;
	uint32_t flags;
};

/*
 * The sender has filled its table with origin RGET descriptors that lack only the location of what
 * they send: where it begins, how long it is, and its key.
 */
#define VRNIC_OFFER_ROWS	(1U << 0)

/**
 * struct vrnic_verdict - contents of a message VRNIC_DISPATCH_REFUSED or _BROKEN
 * @id: the origin's number for the transfer
 * @status: enum ibv_wc_status
 * @vendor_err: enum vrnic_vendor_err
 * @reserved: zero
 */
struct vrnic_verdict {
	uint32_t id;
	uint32_t status;
	uint32_t vendor_err;
	uint32_t reserved;
};

#endif /* VRNIC_PACE_WIRE_H */
