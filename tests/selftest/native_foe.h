/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A host that is not ours: it speaks what native links speak (Documentation/wire.rst),
 * packet by packet, and does with it whatever a test wants. It has another address of
 * lo, in the network namespace of the device; functions return 0 or a negative errno.
 */
#ifndef NATIVE_FOE_H
#define NATIVE_FOE_H

#include <rdma/vrnic-abi.h>

#include "verbs_util.h"

#define FOE_MTU		1024
#define FOE_PATIENCE_MS	(WAIT_SECONDS * 1000)

/* Messages of a link. */
enum foe_op {
	FOE_ANSWER = 1, FOE_PUT, FOE_GET, FOE_RMW, FOE_MESSAGE, FOE_RGET, FOE_NOTIFY,
	FOE_ERROR, FOE_TYPE, FOE_PING, FOE_PUTS,
};

#define FOE_TYPED	0x01
#define FOE_AGAIN	0x04
#define FOE_ROWS	0x08
#define FOE_PACK	0x10

/* Datagrams about links, and why not. */
enum { FOE_ASK = 1, FOE_YES, FOE_NO, FOE_BYE };
enum { FOE_NO_FIFO = 1, FOE_SECRET, FOE_FORMAT, FOE_RESOURCES };

/* Syndromes of acknowledgments. */
#define FOE_ACK		0x1f
#define FOE_NOT_READY	0x21	/* for 10 us */
#define FOE_LOST	0x60	/* send from this packet on */
#define FOE_INVALID	0x61	/* ends the link */
#define FOE_FAILED	0x7f	/* the message failed; the requester sends SKIP */

/* Opcodes. */
#define FOE_LAST	0xc2
#define FOE_SKIP_LAST	0xde
#define FOE_SKIP	0xdf	/* in place of a message of one packet */

/* The header of a message, as it travels. */
struct foe_header {
	uint8_t version, op, flags, status;
	__be32 id, data, key;
	__be64 addr, total, pos;
	__be32 counter[2], arg;
	uint8_t vendor_err, reserved[3];
	__be32 type, reserved2;
	__be64 cookie;
};

/* A put in FOE_PUTS; its data follow, up to a multiple of 8 bytes. */
struct foe_put {
	__be64 addr;
	__be32 key, len;
};

/* A datagram about links. */
struct foe_hello {
	__be32 magic;
	uint8_t version, kind, order, why;
	__be64 secret, nonce;
	__be32 fifo, qpn, psn, mtu, to_qpn, from_fifo, task, reserved;
};

/**
 * struct foe - one end of one link of such a host
 * @address: its own, host order
 * @qpn, @peer_qpn: this end and the other
 * @psn: of the next packet that it sends
 * @heard: PSN of the next packet that it expects
 * @asked: what it was asked for last
 * @train: packets that came together, of which the first was heard last; @held bytes
 */
struct foe {
	int out, in;
	uint32_t address;
	uint32_t qpn, peer_qpn, psn, heard;
	uint64_t nonce;
	struct foe_hello asked;
	uint8_t train[1 << 16];
	size_t held;
};

/**
 * struct foe_packet - a packet that came
 * @opcode: of the transport: 0xc0 to 0xc4 messages, 0x11 acknowledgments, 0xe0 datagrams
 * @syndrome: of an acknowledgment
 * @status, @vendor_err, @part: of an acknowledgment that says FOE_FAILED
 * @data: of a message, behind the header
 */
struct foe_packet {
	uint8_t opcode, syndrome, status, vendor_err, part;
	bool ackreq;
	uint32_t psn;
	uint8_t data[FOE_MTU];
	union {
		struct foe_header header;
		struct foe_hello hello;
	};
};

/* @address: one of 127.0.0.0/8 that no device has; 0: it only hears, what is for any */
int foe_open(struct foe *foe, uint32_t address);
void foe_close(struct foe *foe);
/*
 * A new link to a FIFO whose address it knows, in the name of number @from_fifo.
 * Return: 0, why not (FOE_NO_FIFO...), or a negative errno.
 */
int foe_ask(struct foe *foe, const struct vrnic_address *to, uint32_t from_fifo);
/* The same, and not to wait for the answer; @foe->nonce says which it is of. */
int foe_begin(struct foe *foe, const struct vrnic_address *to, uint32_t from_fifo);
/* Say yes to what @foe->asked holds. */
int foe_say_yes(struct foe *foe);
/* Say that its end of the link is gone. */
int foe_say_bye(struct foe *foe);
/* A message in one packet; header and data are at most FOE_MTU bytes. */
int foe_send(struct foe *foe, const struct foe_header *header, const void *data,
	     size_t len);
/* The same packet again: @foe->psn does not move. */
int foe_send_again(struct foe *foe, const struct foe_header *header, const void *data,
		   size_t len);
/* The first packet of a message that has more of them, and the last one. */
int foe_send_first(struct foe *foe, const struct foe_header *header, const void *data,
		   size_t len);
int foe_send_last(struct foe *foe, const void *data, size_t len);
/* SKIP, in place of the message that was sent last. */
int foe_skip(struct foe *foe);
int foe_acknowledge(struct foe *foe, uint32_t psn, uint8_t syndrome);
int foe_refuse(struct foe *foe, uint32_t psn, uint8_t status, uint8_t vendor_err);
/* The same for put number @part of FOE_PUTS. */
int foe_refuse_part(struct foe *foe, uint32_t psn, uint8_t status, uint8_t vendor_err,
		    uint8_t part);
/* The next acknowledgment: its syndrome, or -ETIMEDOUT. */
int foe_wait_ack(struct foe *foe, struct foe_packet *packet);
/* The next message that is new, which is not acknowledged. */
int foe_take(struct foe *foe, struct foe_packet *packet);
/* The next packet for this link, or datagram: -ETIMEDOUT. */
int foe_hear(struct foe *foe, struct foe_packet *packet, int ms);
/*
 * Acknowledge all that comes, until a message of kind @op comes, or -ETIMEDOUT.
 * Return: 0, with its header in @header.
 */
int foe_wait(struct foe *foe, enum foe_op op, struct foe_header *header);
/* The same for a datagram about links, of whatever link. */
int foe_wait_hello(struct foe *foe, int kind, struct foe_hello *hello);

#endif /* NATIVE_FOE_H */
