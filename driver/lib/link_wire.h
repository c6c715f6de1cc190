/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Native operations on the wire, between two hosts with this driver.
 *
 * A native link is an RC connection of the driver's own. Its messages travel in packets like those
 * of a SEND, with opcodes of the manufacturer's range. A message starts with a header. Datagrams
 * make and end links. All numbers are big endian; data are in the order of memory.
 *
 * A header is not trusted: the receiver looks up each key, counter and type that it names. A sender
 * does not send its own memory addresses: the answer repeats the number of the request.
 *
 * This file needs nothing from ib_core.
 */
#ifndef VRNIC_NATIVE_WIRE_H
#define VRNIC_NATIVE_WIRE_H

#include <linux/types.h>
#include <asm/byteorder.h>
#include <rdma/vrnic-abi.h>

#define VRNIC_NWIRE_VERSION	3
#define VRNIC_NWIRE_BURST	0x100000	/* most data of one message, bytes */

/* enum vrnic_nwire_op - struct vrnic_nwire.op */
enum vrnic_nwire_op {
	VRNIC_NWIRE_ANSWER	= 1,	/* one for each message, but see vrnic_nhdr_is_quiet() */
	VRNIC_NWIRE_PUT		= 2,
	VRNIC_NWIRE_GET		= 3,
	VRNIC_NWIRE_RMW		= 4,
	VRNIC_NWIRE_MESSAGE	= 5,
	VRNIC_NWIRE_RGET	= 6,
	VRNIC_NWIRE_NOTIFY	= 7,
	VRNIC_NWIRE_ERROR	= 8,	/* an operation that the receiver injected failed */
	VRNIC_NWIRE_TYPE	= 9,	/* rows of a type, before the first use on this link */
	VRNIC_NWIRE_PING	= 10,	/* does the peer exist? It acknowledges, without ANSWER */
	VRNIC_NWIRE_PUTS	= 11,	/* several small puts: struct vrnic_nput, in one packet */
	VRNIC_NWIRE_MAX
};

/* struct vrnic_nwire.flags */
#define VRNIC_NWIRE_TYPED	0x01	/* PUT, GET: @type says where the data is in memory */
#define VRNIC_NWIRE_BACK	0x02	/* NOTIFY: the receiver makes a record, not the sender */
#define VRNIC_NWIRE_AGAIN	0x04	/* ANSWER: no room, or type unknown: send it again */
#define VRNIC_NWIRE_ROWS	0x08	/* TYPED, @pos 0: the data begin with the rows of @type */
#define VRNIC_NWIRE_PACK	0x10	/* TYPED GET: pack the data before the answer goes */

/**
 * struct vrnic_nwire - header of a message, as it travels
 * @version: VRNIC_NWIRE_VERSION
 * @op: enum vrnic_nwire_op
 * @flags: VRNIC_NWIRE_*
 * @status: ANSWER, ERROR: enum ibv_wc_status
 * @id: number of the request, chosen by its sender; ANSWER: number of the request it answers
 * @data: number of bytes that follow, with those of rows
 * @key: PUT, GET, RMW: remote key. MESSAGE: bytes of the header. TYPE: number of the type
 * @addr: PUT, GET, RMW: address in the region; TYPED: start of the storage
 * @total: PUT, GET: bytes of the whole operation. RMW: width. MESSAGE: bytes of
 *	data. TYPE: bytes of all rows. ERROR: bytes that were placed. PUTS: number of puts
 * @pos: PUT, GET, TYPE: offset of this message's data in @total. RMW: operand. ANSWER: old value
 *	(RMW), or status | vendor_err << 8 of the counter (NOTIFY). PUTS: index of the put to begin
 *	with; those before it were executed, or refused
 * @counter: numbers of counters of the receiver, or 0
 * @arg: GET: bytes to answer with. PUT with ROWS: bytes of rows. RMW: enum vrnic_rmw_op. MESSAGE,
 *	NOTIFY: dispatch id. ERROR: opcode
 * @vendor_err: ANSWER, ERROR: enum vrnic_vendor_err
 * @reserved: 0
 * @type: TYPED: number of a type that the receiver was told, or is told now
 * @reserved2: 0
 * @cookie: NOTIFY, ERROR, MESSAGE (0 if the receiver did not inject it): cookie of the descriptor.
 *	RMW: value to compare with
 */
struct vrnic_nwire {
	u8 version;
	u8 op;
	u8 flags;
	u8 status;
	__be32 id;
	__be32 data;
	__be32 key;
	__be64 addr;
	__be64 total;
	__be64 pos;
	__be32 counter[2];
	__be32 arg;
	u8 vendor_err;
	u8 reserved[3];
	__be32 type;
	__be32 reserved2;
	__be64 cookie;
};

/* struct vrnic_nhdr - struct vrnic_nwire in the host's byte order */
struct vrnic_nhdr {
	u8 op;
	u8 flags;
	u8 status;
	u8 vendor_err;
	u32 id;
	u32 data;
	u32 key;
	u64 addr;
	u64 total;
	u64 pos;
	u32 counter[2];
	u32 arg;
	u32 type;
	u64 cookie;
};

/**
 * struct vrnic_nput - one of the puts in a PUTS, as it travels
 * @addr: address in the region
 * @key: remote key
 * @len: bytes of data that follow, 1 to VRNIC_NPUT_BYTES; the next put begins at a multiple of 8
 */
struct vrnic_nput {
	__be64 addr;
	__be32 key;
	__be32 len;
};

/* Most puts in a PUTS: their index has 8 bits in VRNIC_NAK_FAILED */
#define VRNIC_NPUTS_MAX		32
#define VRNIC_NPUT_BYTES	64	/* most data of such a put */

/* Bytes of a put with @len bytes of data in a PUTS. */
static inline u32 vrnic_nput_bytes(u32 len)
{
	return sizeof(struct vrnic_nput) + ((len + 7) & ~7U);
}

/**
 * vrnic_nput_next() - read the next put of a PUTS
 * @puts: data of the message
 * @bytes: of these data
 * @at: where the put begins; moves behind it
 * @put: to be filled in, in the byte order of the wire
 *
 * Return: the data of the put, or NULL if @puts has no whole put there.
 */
static inline const void *vrnic_nput_next(const void *puts, u32 bytes, u32 *at,
					  struct vrnic_nput *put)
{
	const void *data;
	u32 len;

	if (bytes < sizeof(*put) || *at > bytes - sizeof(*put))
		return NULL;
	__builtin_memcpy(put, puts + *at, sizeof(*put));
	data = puts + *at + sizeof(*put);
	len = be32_to_cpu(put->len);
	if (!len || len > VRNIC_NPUT_BYTES || vrnic_nput_bytes(len) > bytes - *at)
		return NULL;
	*at += vrnic_nput_bytes(len);
	return data;
}

/*
 * Has a message no ANSWER? The receiver of a PUT executes it before its acknowledgment, or refuses
 * it with VRNIC_NAK_FAILED. A TYPED one has an answer, as the receiver may not know the type.
 */
static inline bool vrnic_nhdr_is_quiet(const struct vrnic_nhdr *h)
{
	return (h->op == VRNIC_NWIRE_PUT && !(h->flags & VRNIC_NWIRE_TYPED)) ||
	       h->op == VRNIC_NWIRE_PUTS;
}

/* Bytes of rows with which the data begin. A GET has no other data. */
static inline u32 vrnic_nhdr_rows(const struct vrnic_nhdr *h)
{
	if (!(h->flags & VRNIC_NWIRE_ROWS))
		return 0;
	return h->op == VRNIC_NWIRE_GET ? h->data : h->arg;
}

static inline void vrnic_nwire_fill(struct vrnic_nwire *w,
				    const struct vrnic_nhdr *h)
{
	*w = (struct vrnic_nwire) {
		.version = VRNIC_NWIRE_VERSION,
		.op = h->op,
		.flags = h->flags,
		.status = h->status,
		.id = cpu_to_be32(h->id),
		.data = cpu_to_be32(h->data),
		.key = cpu_to_be32(h->key),
		.addr = cpu_to_be64(h->addr),
		.total = cpu_to_be64(h->total),
		.pos = cpu_to_be64(h->pos),
		.counter = { cpu_to_be32(h->counter[0]),
			     cpu_to_be32(h->counter[1]) },
		.arg = cpu_to_be32(h->arg),
		.vendor_err = h->vendor_err,
		.type = cpu_to_be32(h->type),
		.cookie = cpu_to_be64(h->cookie),
	};
}

/* Are bytes [@pos, @pos + @n) within @total, and is @total a valid length? */
static inline bool vrnic_nhdr_within(u64 pos, u64 n, u64 total)
{
	return !(total >> 63) && pos <= total && n <= total - pos;
}

/* Are there whole rows, at the start of an operation, where the flags say that there are some? */
static inline bool vrnic_nhdr_rows_fit(const struct vrnic_nhdr *h)
{
	u32 rows = vrnic_nhdr_rows(h);

	if (!(h->flags & VRNIC_NWIRE_ROWS))
		return true;
	return !h->pos && rows && !(rows % sizeof(struct vrnic_type_row)) && rows <= h->data;
}

/* Do the lengths agree with each other, and with the limits? */
static inline bool vrnic_nhdr_lengths_fit(const struct vrnic_nhdr *h)
{
	switch (h->op) {
	case VRNIC_NWIRE_ANSWER:
		return true;
	case VRNIC_NWIRE_PUT:
		return vrnic_nhdr_rows_fit(h) &&
		       vrnic_nhdr_within(h->pos, h->data - vrnic_nhdr_rows(h), h->total);
	case VRNIC_NWIRE_GET:
		return h->data == vrnic_nhdr_rows(h) && vrnic_nhdr_rows_fit(h) &&
		       h->arg <= VRNIC_NWIRE_BURST &&
		       vrnic_nhdr_within(h->pos, h->arg, h->total);
	case VRNIC_NWIRE_RMW:
		return !h->data &&
		       (h->total == sizeof(u32) || h->total == sizeof(u64)) &&
		       !(h->addr & (h->total - 1)) &&
		       (h->arg & ~VRNIC_RMW_COMPARE) <= VRNIC_RMW_XOR;
	case VRNIC_NWIRE_MESSAGE:
		return h->total <= VRNIC_MAX_MESSAGE &&
		       h->key <= VRNIC_MAX_MESSAGE &&
		       h->data <= VRNIC_MAX_MESSAGE &&
		       h->data == h->key + h->total;
	case VRNIC_NWIRE_PUTS:
		return h->data <= VRNIC_MAX_MESSAGE && h->total && h->total <= VRNIC_NPUTS_MAX &&
		       h->pos <= h->total && !h->counter[1];
	case VRNIC_NWIRE_RGET:
		return h->data && !(h->data % VRNIC_SLOT_SIZE) &&
		       h->data <= VRNIC_RGET_DESCS * VRNIC_SLOT_SIZE;
	case VRNIC_NWIRE_NOTIFY:
	case VRNIC_NWIRE_ERROR:
	case VRNIC_NWIRE_PING:
		return !h->data;
	case VRNIC_NWIRE_TYPE:
		return h->total &&
		       !(h->total % sizeof(struct vrnic_type_row)) &&
		       h->total / sizeof(struct vrnic_type_row) <=
			       VRNIC_TYPE_ROWS_MAX &&
		       vrnic_nhdr_within(h->pos, h->data, h->total);
	default:
		return false;
	}
}

/* Is the message TYPED, with no other flags than @more? */
static inline bool vrnic_nhdr_typed_fit(const struct vrnic_nhdr *h, u8 more)
{
	return h->flags & VRNIC_NWIRE_TYPED && !(h->flags & ~(VRNIC_NWIRE_TYPED | more));
}

static inline bool vrnic_nhdr_flags_fit(const struct vrnic_nhdr *h)
{
	switch (h->op) {
	case VRNIC_NWIRE_ANSWER:
		return !(h->flags & ~VRNIC_NWIRE_AGAIN);
	case VRNIC_NWIRE_PUT:
		return !h->flags || vrnic_nhdr_typed_fit(h, VRNIC_NWIRE_ROWS);
	case VRNIC_NWIRE_GET:
		return !h->flags || vrnic_nhdr_typed_fit(h, VRNIC_NWIRE_ROWS | VRNIC_NWIRE_PACK);
	case VRNIC_NWIRE_NOTIFY:
		return !(h->flags & ~VRNIC_NWIRE_BACK);
	default:
		return !h->flags;
	}
}

/**
 * vrnic_nwire_read() - read a header, and check it as far as it can be checked alone
 * @w: a copy of the received header
 * @h: to be filled in
 *
 * Return: false if a sender of this version never sends such a message.
 */
static inline bool vrnic_nwire_read(const struct vrnic_nwire *w,
				    struct vrnic_nhdr *h)
{
	*h = (struct vrnic_nhdr) {
		.op = w->op,
		.flags = w->flags,
		.status = w->status,
		.vendor_err = w->vendor_err,
		.id = be32_to_cpu(w->id),
		.data = be32_to_cpu(w->data),
		.key = be32_to_cpu(w->key),
		.addr = be64_to_cpu(w->addr),
		.total = be64_to_cpu(w->total),
		.pos = be64_to_cpu(w->pos),
		.counter = { be32_to_cpu(w->counter[0]),
			     be32_to_cpu(w->counter[1]) },
		.arg = be32_to_cpu(w->arg),
		.type = be32_to_cpu(w->type),
		.cookie = be64_to_cpu(w->cookie),
	};
	return w->version == VRNIC_NWIRE_VERSION && !w->reserved2 &&
	       !(w->reserved[0] | w->reserved[1] | w->reserved[2]) &&
	       h->data <= VRNIC_NWIRE_BURST && vrnic_nhdr_flags_fit(h) &&
	       vrnic_nhdr_lengths_fit(h);
}

/* ---- datagrams that make and end links ---- */

#define VRNIC_HELLO_MAGIC	0x76724e4cU	/* "vrNL" */
#define VRNIC_HELLO_VERSION	3
#define VRNIC_HELLO_QPN		0xfffffeU	/* their destination; no queue pair has it */

enum vrnic_hello_kind {
	VRNIC_HELLO_ASK		= 1,	/* make a link to this FIFO */
	VRNIC_HELLO_YES		= 2,
	VRNIC_HELLO_NO		= 3,
	VRNIC_HELLO_BYE		= 4,	/* the sender's end is gone */
	VRNIC_HELLO_MAX
};

/* Reasons of a NO or BYE: struct vrnic_hello.why */
enum vrnic_hello_why {
	VRNIC_WHY_NONE		= 0,
	VRNIC_WHY_NO_FIFO	= 1,
	VRNIC_WHY_SECRET	= 2,
	VRNIC_WHY_FORMAT	= 3,	/* another version, or byte order */
	VRNIC_WHY_RESOURCES	= 4,
	VRNIC_WHY_FAILED	= 5,	/* BYE: the link failed; neither end had closed it */
};

/* not __BIG_ENDIAN, which the C library (of tests/unit) defines on every machine */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define VRNIC_HELLO_ORDER	1
#else
#define VRNIC_HELLO_ORDER	0
#endif

/**
 * struct vrnic_hello_wire - a datagram about links, as it travels
 * @magic: VRNIC_HELLO_MAGIC
 * @version: version of these datagrams, and of the messages of a link
 * @kind: enum vrnic_hello_kind
 * @order: byte order of the sender's memory: 0 little endian, 1 big endian
 * @why: NO, BYE: enum vrnic_hello_why
 * @secret: ASK: secret of the FIFO's address
 * @nonce: ASK: random, not 0; the other kinds repeat it
 * @fifo: ASK, and BYE without @to_qpn: FIFO that the link is, or was, asked for
 * @qpn: queue pair of the sender's end
 * @psn: first PSN that the sender uses
 * @mtu: largest payload that the sender takes in a packet, in bytes
 * @to_qpn: YES, NO, BYE: queue pair of the receiver's end; BYE: 0 if the sender got no answer
 * @from_fifo: FIFO of the sender
 * @task: task of the sender's process, as claimed
 * @reserved: zero
 */
struct vrnic_hello_wire {
	__be32 magic;
	u8 version;
	u8 kind;
	u8 order;
	u8 why;
	__be64 secret;
	__be64 nonce;
	__be32 fifo;
	__be32 qpn;
	__be32 psn;
	__be32 mtu;
	__be32 to_qpn;
	__be32 from_fifo;
	__be32 task;
	__be32 reserved;
};

struct vrnic_hello {
	u8 version;
	u8 kind;
	u8 order;
	u8 why;
	u64 secret;
	u64 nonce;
	u32 fifo;
	u32 qpn;
	u32 psn;
	u32 mtu;
	u32 to_qpn;
	u32 from_fifo;
	u32 task;
};

static inline void vrnic_hello_fill(struct vrnic_hello_wire *w,
				    const struct vrnic_hello *h)
{
	*w = (struct vrnic_hello_wire) {
		.magic = cpu_to_be32(VRNIC_HELLO_MAGIC),
		.version = VRNIC_HELLO_VERSION,
		.kind = h->kind,
		.order = VRNIC_HELLO_ORDER,
		.why = h->why,
		.secret = cpu_to_be64(h->secret),
		.nonce = cpu_to_be64(h->nonce),
		.fifo = cpu_to_be32(h->fifo),
		.qpn = cpu_to_be32(h->qpn),
		.psn = cpu_to_be32(h->psn),
		.mtu = cpu_to_be32(h->mtu),
		.to_qpn = cpu_to_be32(h->to_qpn),
		.from_fifo = cpu_to_be32(h->from_fifo),
		.task = cpu_to_be32(h->task),
	};
}

/* Return: false if @w is no datagram about links. vrnic_hello_fits() checks version and order. */
static inline bool vrnic_hello_read(const struct vrnic_hello_wire *w,
				    struct vrnic_hello *h)
{
	*h = (struct vrnic_hello) {
		.version = w->version,
		.kind = w->kind,
		.order = w->order,
		.why = w->why,
		.secret = be64_to_cpu(w->secret),
		.nonce = be64_to_cpu(w->nonce),
		.fifo = be32_to_cpu(w->fifo),
		.qpn = be32_to_cpu(w->qpn),
		.psn = be32_to_cpu(w->psn),
		.mtu = be32_to_cpu(w->mtu),
		.to_qpn = be32_to_cpu(w->to_qpn),
		.from_fifo = be32_to_cpu(w->from_fifo),
		.task = be32_to_cpu(w->task),
	};
	return w->magic == cpu_to_be32(VRNIC_HELLO_MAGIC) && h->kind &&
	       h->kind < VRNIC_HELLO_MAX && h->nonce && !(h->qpn >> 24) &&
	       !(h->psn >> 24) && !(h->to_qpn >> 24);
}

static inline bool vrnic_hello_fits(const struct vrnic_hello *h)
{
	return h->version == VRNIC_HELLO_VERSION &&
	       h->order == VRNIC_HELLO_ORDER && h->mtu >= 256;
}

#endif /* VRNIC_NATIVE_WIRE_H */
