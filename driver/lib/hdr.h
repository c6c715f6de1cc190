/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The headers of a RoCEv2 packet: IBTA chapters 5 and 9, annexes A14, A17 and A19.
 * This file needs nothing from ib_core.
 *
 *	IP, UDP, BTH, extension headers, payload, 0 to 3 bytes of pad, ICRC
 *
 * The extension headers follow the BTH in a fixed order: DETH, XRCETH, FETH, RETH,
 * AtomicETH, AETH, AtomicAckETH, ImmDt, IETH; an opcode has at most two besides XRCETH.
 */
#ifndef VRNIC_HDR_H
#define VRNIC_HDR_H

#include <linux/types.h>
#include <asm/byteorder.h>

#define VRNIC_ROCE_PORT		4791
#define VRNIC_ICRC_BYTES	4

/* The upper three bits of an opcode: the transport service. */
#define VRNIC_SVC_MASK		0xe0
#define VRNIC_SVC_RC		0x00
#define VRNIC_SVC_UC		0x20
#define VRNIC_SVC_UD		0x60
#define VRNIC_SVC_XRC		0xa0

#define VRNIC_BTH_CNP		0x81	/* congestion notification, A17.9.3 */
#define VRNIC_CNP_BYTES		16	/* reserved bytes of its payload, zero */

/*
 * Opcodes of the manufacturer-specific range, used only between hosts with this driver: messages of
 * a native link, in packets like those of a SEND, and the datagrams by which two hosts agree on
 * such a link; see lib/link_wire.h.
 */
#define VRNIC_SVC_NATIVE	0xc0
#define VRNIC_BTH_HELLO		0xe0

/* The lower five bits: the operation; IBTA table 38. */
enum vrnic_bth_op {
	VRNIC_BTH_SEND_FIRST		= 0x00,
	VRNIC_BTH_SEND_MIDDLE		= 0x01,
	VRNIC_BTH_SEND_LAST		= 0x02,
	VRNIC_BTH_SEND_LAST_IMM		= 0x03,
	VRNIC_BTH_SEND_ONLY		= 0x04,
	VRNIC_BTH_SEND_ONLY_IMM		= 0x05,
	VRNIC_BTH_WRITE_FIRST		= 0x06,
	VRNIC_BTH_WRITE_MIDDLE		= 0x07,
	VRNIC_BTH_WRITE_LAST		= 0x08,
	VRNIC_BTH_WRITE_LAST_IMM	= 0x09,
	VRNIC_BTH_WRITE_ONLY		= 0x0a,
	VRNIC_BTH_WRITE_ONLY_IMM	= 0x0b,
	VRNIC_BTH_READ_REQUEST		= 0x0c,
	VRNIC_BTH_READ_RESP_FIRST	= 0x0d,
	VRNIC_BTH_READ_RESP_MIDDLE	= 0x0e,
	VRNIC_BTH_READ_RESP_LAST	= 0x0f,
	VRNIC_BTH_READ_RESP_ONLY	= 0x10,
	VRNIC_BTH_ACK			= 0x11,
	VRNIC_BTH_ATOMIC_ACK		= 0x12,
	VRNIC_BTH_CMP_SWAP		= 0x13,
	VRNIC_BTH_FETCH_ADD		= 0x14,
	VRNIC_BTH_SEND_LAST_INV		= 0x16,
	VRNIC_BTH_SEND_ONLY_INV		= 0x17,
	VRNIC_BTH_FLUSH			= 0x1c,
	VRNIC_BTH_ATOMIC_WRITE		= 0x1d,
	VRNIC_BTH_SKIP_LAST		= 0x1e,	/* these two: native links only */
	VRNIC_BTH_SKIP_ONLY		= 0x1f,
	VRNIC_BTH_OPS			= 0x20,
};

/* Properties of an operation: vrnic_bth_info(). 0: there is no such operation. */
#define VRNIC_PKT_SEND		0x00001U
#define VRNIC_PKT_WRITE		0x00002U
#define VRNIC_PKT_READ		0x00004U	/* READ request */
#define VRNIC_PKT_ATOMIC	0x00008U	/* CmpSwap, FetchAdd */
#define VRNIC_PKT_OTHER		0x00010U	/* FLUSH, ATOMIC WRITE */
#define VRNIC_PKT_RESP		0x00020U	/* goes back to the requester */
#define VRNIC_PKT_START		0x00040U	/* first packet of a message */
#define VRNIC_PKT_END		0x00080U	/* last packet of a message */
#define VRNIC_PKT_PAYLOAD	0x00100U	/* may have a payload */
#define VRNIC_PKT_DETH		0x00200U	/* this and those up to IETH: extension headers */
#define VRNIC_PKT_FETH		0x00400U
#define VRNIC_PKT_RETH		0x00800U
#define VRNIC_PKT_ATOMICETH	0x01000U
#define VRNIC_PKT_AETH		0x02000U
#define VRNIC_PKT_ATOMICACK	0x04000U
#define VRNIC_PKT_IMM		0x08000U
#define VRNIC_PKT_IETH		0x10000U
#define VRNIC_PKT_RC_ONLY	0x20000U	/* UC has no such operation */
#define VRNIC_PKT_CNP		0x40000U	/* congestion notification; of no service */

/* Requests that are answered by more than an acknowledgment. */
#define VRNIC_PKT_ANSWERED	\
	(VRNIC_PKT_READ | VRNIC_PKT_ATOMIC | VRNIC_PKT_OTHER)
#define VRNIC_PKT_NATIVE	0x80000U	/* message of a native link */
#define VRNIC_PKT_HELLO		0x100000U	/* datagram about native links */
#define VRNIC_PKT_SKIP		0x200000U	/* in place of a packet that got VRNIC_NAK_FAILED */
#define VRNIC_PKT_XRC		0x400000U	/* the service is XRC */
#define VRNIC_PKT_XRCETH	0x800000U	/* first of them: a request of XRC has it */

/* Requests whose messages have any number of packets. */
#define VRNIC_PKT_DATA	(VRNIC_PKT_SEND | VRNIC_PKT_WRITE | VRNIC_PKT_NATIVE)

/**
 * struct vrnic_bth - base transport header
 * @opcode: service and operation
 * @flags: solicited event, migration state, pad count, version
 * @pkey: partition
 * @qpn: 8 bits that routers may change (FECN, BECN, reserved), then the
 *	destination queue pair
 * @psn: bit 31: an acknowledgment is requested; 24 bits of PSN
 */
struct vrnic_bth {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;
	__be32 psn;
};

#define VRNIC_BTH_SE		0x80
#define VRNIC_BTH_MIG		0x40
#define VRNIC_BTH_PAD_SHIFT	4
#define VRNIC_BTH_PAD		0x30
#define VRNIC_BTH_VERSION	0x0f
#define VRNIC_BTH_BECN		0x40000000U	/* in vrnic_bth.qpn */
#define VRNIC_BTH_QPN		0x00ffffffU
#define VRNIC_BTH_ACKREQ	0x80000000U	/* in vrnic_bth.psn */

/* UD: Q_Key that the receiving queue pair must have, and number of the sending queue pair. */
struct vrnic_deth {
	__be32 qkey;
	__be32 sqpn;
};

struct vrnic_reth {
	__be64 va;
	__be32 rkey;
	__be32 len;
};

struct vrnic_atomiceth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;

/* Syndrome in the upper 8 bits, message sequence number in the others. */
struct vrnic_aeth {
	__be32 v;
};

#define VRNIC_AETH_KIND		0x60	/* kind of the syndrome */
#define VRNIC_AETH_ACK		0x00
#define VRNIC_AETH_RNR		0x20	/* lower 5 bits: timer code */
#define VRNIC_AETH_NAK		0x60	/* lower 5 bits: VRNIC_NAK_* */
#define VRNIC_AETH_VALUE	0x1f
#define VRNIC_AETH_UNLIMITED	0x1f	/* ACK: no credits are counted */
#define VRNIC_AETH_MSN		0xffffffU

enum vrnic_nak {
	VRNIC_NAK_PSN		= 0,
	VRNIC_NAK_INVALID	= 1,
	VRNIC_NAK_ACCESS	= 2,
	VRNIC_NAK_OPERATION	= 3,
	/*
	 * Native links only: the message that ends with this packet failed. The MSN has the status,
	 * the vendor error, and, for PUTS, which of the puts it was. The requester sends SKIP in
	 * place of the packet, or the PUTS that begins behind this put, and goes on.
	 */
	VRNIC_NAK_FAILED	= 31,
};

struct vrnic_atomicack {
	__be64 orig;
};

/* FLUSH: annex A19.4. */
#define VRNIC_FETH_TYPE		0x0000000fU	/* placement: bit 0 global, 1 persistent */
#define VRNIC_FETH_RANGE	0x00000030U	/* 0 range, 1 whole region */
#define VRNIC_FETH_RANGE_SHIFT	4

/* XRC: number of the SRQ at the target; the upper 8 bits are reserved. */
struct vrnic_xrceth {
	__be32 srqn;
};

#define VRNIC_XRCETH_SRQN	0x00ffffffU

#define VRNIC_EXT_MAX		28	/* bytes of extension headers, without XRCETH: AtomicETH */

/*
 * Bytes that a data packet has on the wire besides its data, within a few bytes: IPv6, UDP, BTH,
 * RETH and ICRC. The sender estimates with it how many packets its rate allows; each packet then
 * counts with its actual size.
 */
#define VRNIC_HDR_BYTES		80

/**
 * vrnic_bth_info() - get the properties of an operation
 * @op: operation, enum vrnic_bth_op
 *
 * Return: VRNIC_PKT_*; 0 if the operation is not defined.
 */
static inline u32 vrnic_bth_info(u8 op)
{
#define S VRNIC_PKT_START
#define E VRNIC_PKT_END
#define D VRNIC_PKT_PAYLOAD
#define SND (VRNIC_PKT_SEND | D)
#define WRT (VRNIC_PKT_WRITE | D)
#define RSP (VRNIC_PKT_RESP | VRNIC_PKT_RC_ONLY)
#define RCREQ (S | E | VRNIC_PKT_RC_ONLY)
	static const u32 info[VRNIC_BTH_OPS] = {
		[VRNIC_BTH_SEND_FIRST] = SND | S,
		[VRNIC_BTH_SEND_MIDDLE] = SND,
		[VRNIC_BTH_SEND_LAST] = SND | E,
		[VRNIC_BTH_SEND_LAST_IMM] = SND | E | VRNIC_PKT_IMM,
		[VRNIC_BTH_SEND_ONLY] = SND | S | E,
		[VRNIC_BTH_SEND_ONLY_IMM] = SND | S | E | VRNIC_PKT_IMM,
		[VRNIC_BTH_SEND_LAST_INV] =
			SND | E | VRNIC_PKT_IETH | VRNIC_PKT_RC_ONLY,
		[VRNIC_BTH_SEND_ONLY_INV] =
			SND | S | E | VRNIC_PKT_IETH | VRNIC_PKT_RC_ONLY,
		[VRNIC_BTH_WRITE_FIRST] = WRT | S | VRNIC_PKT_RETH,
		[VRNIC_BTH_WRITE_MIDDLE] = WRT,
		[VRNIC_BTH_WRITE_LAST] = WRT | E,
		[VRNIC_BTH_WRITE_LAST_IMM] = WRT | E | VRNIC_PKT_IMM,
		[VRNIC_BTH_WRITE_ONLY] = WRT | S | E | VRNIC_PKT_RETH,
		[VRNIC_BTH_WRITE_ONLY_IMM] =
			WRT | S | E | VRNIC_PKT_RETH | VRNIC_PKT_IMM,
		[VRNIC_BTH_READ_REQUEST] =
			RCREQ | VRNIC_PKT_READ | VRNIC_PKT_RETH,
		[VRNIC_BTH_CMP_SWAP] =
			RCREQ | VRNIC_PKT_ATOMIC | VRNIC_PKT_ATOMICETH,
		[VRNIC_BTH_FETCH_ADD] =
			RCREQ | VRNIC_PKT_ATOMIC | VRNIC_PKT_ATOMICETH,
		[VRNIC_BTH_FLUSH] = RCREQ | VRNIC_PKT_OTHER | VRNIC_PKT_FETH |
				    VRNIC_PKT_RETH,
		[VRNIC_BTH_ATOMIC_WRITE] =
			RCREQ | VRNIC_PKT_OTHER | VRNIC_PKT_RETH | D,
		[VRNIC_BTH_READ_RESP_FIRST] = RSP | S | D | VRNIC_PKT_AETH,
		[VRNIC_BTH_READ_RESP_MIDDLE] = RSP | D,
		[VRNIC_BTH_READ_RESP_LAST] = RSP | E | D | VRNIC_PKT_AETH,
		[VRNIC_BTH_READ_RESP_ONLY] = RSP | S | E | D | VRNIC_PKT_AETH,
		[VRNIC_BTH_ACK] = RSP | S | E | VRNIC_PKT_AETH,
		[VRNIC_BTH_ATOMIC_ACK] =
			RSP | S | E | VRNIC_PKT_AETH | VRNIC_PKT_ATOMICACK,
	};
#undef S
#undef E
#undef D
#undef SND
#undef WRT
#undef RSP
#undef RCREQ

	return op < VRNIC_BTH_OPS ? info[op] : 0;
}

/**
 * vrnic_pkt_info() - get the properties of an opcode with its service
 * @opcode: struct vrnic_bth.opcode
 *
 * Return: VRNIC_PKT_*; 0 if this driver does not have the service or operation.
 */
static inline u32 vrnic_pkt_info(u8 opcode)
{
	u32 info = vrnic_bth_info(opcode & ~VRNIC_SVC_MASK);

	if (opcode == VRNIC_BTH_CNP)
		return VRNIC_PKT_CNP | VRNIC_PKT_PAYLOAD;
	if (opcode == VRNIC_BTH_HELLO)
		return VRNIC_PKT_HELLO | VRNIC_PKT_START | VRNIC_PKT_END |
		       VRNIC_PKT_PAYLOAD;
	switch (opcode & VRNIC_SVC_MASK) {
	case VRNIC_SVC_RC:
		return info;
	case VRNIC_SVC_XRC:
		if (!info)
			return 0;
		return info | VRNIC_PKT_XRC | (info & VRNIC_PKT_RESP ? 0 : VRNIC_PKT_XRCETH);
	case VRNIC_SVC_UC:
		return info & VRNIC_PKT_RC_ONLY ? 0 : info;
	case VRNIC_SVC_UD:
		if ((info & (VRNIC_PKT_SEND | VRNIC_PKT_START | VRNIC_PKT_END |
			     VRNIC_PKT_IETH)) ==
		    (VRNIC_PKT_SEND | VRNIC_PKT_START | VRNIC_PKT_END))
			return info | VRNIC_PKT_DETH;
		return 0;
	case VRNIC_SVC_NATIVE:
		if (opcode == (VRNIC_SVC_NATIVE | VRNIC_BTH_SKIP_LAST))
			return VRNIC_PKT_NATIVE | VRNIC_PKT_SKIP | VRNIC_PKT_END;
		if (opcode == (VRNIC_SVC_NATIVE | VRNIC_BTH_SKIP_ONLY))
			return VRNIC_PKT_NATIVE | VRNIC_PKT_SKIP | VRNIC_PKT_START | VRNIC_PKT_END;
		if (!(info & VRNIC_PKT_SEND) ||
		    info & (VRNIC_PKT_IMM | VRNIC_PKT_IETH))
			return 0;
		return (info & ~VRNIC_PKT_SEND) | VRNIC_PKT_NATIVE;
	default:
		return 0;
	}
}

/* Bytes of the extension headers, without XRCETH. */
static inline u32 vrnic_ext_len(u32 info)
{
	u32 len = 0;

	if (info & VRNIC_PKT_DETH)
		len += sizeof(struct vrnic_deth);
	if (info & VRNIC_PKT_FETH)
		len += sizeof(__be32);
	if (info & VRNIC_PKT_RETH)
		len += sizeof(struct vrnic_reth);
	if (info & VRNIC_PKT_ATOMICETH)
		len += sizeof(struct vrnic_atomiceth);
	if (info & VRNIC_PKT_AETH)
		len += sizeof(struct vrnic_aeth);
	if (info & VRNIC_PKT_ATOMICACK)
		len += sizeof(struct vrnic_atomicack);
	if (info & (VRNIC_PKT_IMM | VRNIC_PKT_IETH))
		len += sizeof(__be32);
	return len;
}

/* Bytes of all extension headers. */
static inline u32 vrnic_exts_len(u32 info)
{
	return vrnic_ext_len(info) + (info & VRNIC_PKT_XRCETH ? sizeof(struct vrnic_xrceth) : 0);
}

static inline u8 vrnic_bth_pad(const struct vrnic_bth *bth)
{
	return (bth->flags & VRNIC_BTH_PAD) >> VRNIC_BTH_PAD_SHIFT;
}

static inline u32 vrnic_bth_qpn(const struct vrnic_bth *bth)
{
	return be32_to_cpu(bth->qpn) & VRNIC_BTH_QPN;
}

static inline u32 vrnic_bth_psn(const struct vrnic_bth *bth)
{
	return be32_to_cpu(bth->psn) & 0xffffff;
}

static inline bool vrnic_bth_ackreq(const struct vrnic_bth *bth)
{
	return be32_to_cpu(bth->psn) & VRNIC_BTH_ACKREQ;
}

/**
 * vrnic_bth_fill() - write a BTH
 * @bth: header to be filled in
 * @opcode: service and operation
 * @pad: bytes of pad, 0 to 3
 * @solicited: solicited event
 * @qpn: destination queue pair number
 * @psn: PSN, of which the low 24 bits count
 * @ackreq: request an acknowledgment
 */
static inline void vrnic_bth_fill(struct vrnic_bth *bth, u8 opcode, u8 pad,
				  bool solicited, u32 qpn, u32 psn, bool ackreq)
{
	bth->opcode = opcode;
	bth->flags = VRNIC_BTH_MIG | pad << VRNIC_BTH_PAD_SHIFT |
		     (solicited ? VRNIC_BTH_SE : 0);
	bth->pkey = cpu_to_be16(0xffff);
	bth->qpn = cpu_to_be32((qpn & VRNIC_BTH_QPN) |
			       (opcode == VRNIC_BTH_CNP ? VRNIC_BTH_BECN : 0));
	bth->psn = cpu_to_be32((psn & 0xffffff) |
			       (ackreq ? VRNIC_BTH_ACKREQ : 0));
}

static inline u8 vrnic_aeth_syndrome(const struct vrnic_aeth *aeth)
{
	return be32_to_cpu(aeth->v) >> 24;
}

static inline u32 vrnic_aeth_msn(const struct vrnic_aeth *aeth)
{
	return be32_to_cpu(aeth->v) & VRNIC_AETH_MSN;
}

static inline void vrnic_aeth_fill(struct vrnic_aeth *aeth, u8 syndrome, u32 msn)
{
	aeth->v = cpu_to_be32((u32)syndrome << 24 | (msn & VRNIC_AETH_MSN));
}

#endif /* VRNIC_HDR_H */
