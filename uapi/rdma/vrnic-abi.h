/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * vrnic: an RDMA NIC made of software. The interface between the kernel module
 * and the libraries that map its rings.
 *
 * Rules of this file, as of every RDMA ABI: fixed-size types, 8-byte aligned
 * structures, reserved fields that are zero, no kernel pointers. Structures
 * only grow at the end. Sizes and offsets are asserted in driver/abi_check.c
 * and in the provider.
 */
#ifndef RDMA_VRNIC_ABI_H
#define RDMA_VRNIC_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * The module's number is raised for a change that libraries of the last number could not work
 * with. A library works with modules of the numbers VRNIC_ABI_OLDEST to VRNIC_ABI_VERSION. With
 * the same number, library or module may be the older one: requests and answers of commands grow
 * at their ends only, what the shorter one lacks counts as zero, and VRNIC_FEATURE_* has the rest.
 */
#define VRNIC_ABI_VERSION	2
#define VRNIC_ABI_OLDEST	2

/* A private number, so that a renamed device is still recognised. */
#define VRNIC_DRIVER_ID		0x76726e31	/* "vrn1" */

#define VRNIC_SLOT_SIZE		64	/* bytes of a slot of a send ring */
#define VRNIC_RING_DATA		4096	/* where slots start in a mapping */

/**
 * struct vrnic_ring_hdr - the first page of every ring's mapping
 * @prod: producer index: entries ever written, modulo 2^32. Written by the
 *	process on send and receive rings, by the kernel on completion rings.
 * @stream: send rings: not zero while the process posts requests without waiting for
 *	results, and prefers one doorbell for several requests; written by the process.
 * @cons: consumer index: entries ever taken. Written by the kernel on send and
 *	receive rings, by the process on completion rings.
 * @flags: VRNIC_RING_* bits, written by the kernel.
 * @gather: send rings: how many slots may wait for one doorbell, written by the
 *	kernel; 0: each post rings.
 * @arm: completion rings: VRNIC_ARM_*, written by the process to ask for an
 *	event, cleared by the kernel when the event is raised.
 * @told: completion rings: the last event told of all entries before this one; written
 *	by the kernel. A process that asks for an event and finds @prod ahead of this and of
 *	@cons asks by req_notify_cq, which raises the event at once.
 *
 * Indices run freely; entry i lies in slot i & (entries - 1). @prod with @stream,
 * @cons, @flags with @gather, and @arm with @told have a cache line each, so that process and
 * kernel mostly write different lines. The kernel keeps its index elsewhere and only
 * publishes it here: a process that overwrites the index harms only itself.
 *
 * Producer of a send or receive ring: fill the slots, store @prod with release,
 * issue a full fence, load @flags, and ring the doorbell if VRNIC_RING_DOORBELL
 * is set. The kernel sets that flag, issues a full fence, and looks at @prod
 * once more before it leaves the ring.
 *
 * If @stream is not zero, the kernel may set @gather at a doorbell. While @gather
 * is not zero, the kernel looks at the ring by itself within about a millisecond, so the
 * process may ring only when @prod is @gather ahead of @cons. A process that is about to
 * wait for its requests rings first. After the kernel has cleared @gather, it issues a
 * full fence and looks at @prod once more, as after it has set VRNIC_RING_DOORBELL.
 */
struct vrnic_ring_hdr {
	__u32 prod;
	__u32 stream;
	__u32 reserved0[14];
	__u32 cons;
	__u32 reserved1[15];
	__u32 flags;
	__u32 gather;
	__u32 reserved2[14];
	__u32 arm;
	__u32 told;
	__u32 reserved3[14];
};

#define VRNIC_RING_DOORBELL	(1U << 0)	/* ring the doorbell after posting */
#define VRNIC_RING_ERROR	(1U << 1)	/* bad index, CQ overflow, or object gone */

#define VRNIC_ARM_NONE		0U
#define VRNIC_ARM_NEXT		1U	/* event at the next completion */
#define VRNIC_ARM_SOLICITED	2U	/* at the next solicited or failed one */

/**
 * struct vrnic_sge - a local segment; laid out as struct ibv_sge
 * @addr: virtual address, or offset if the region is zero-based
 * @length: bytes, 0 to 2^31
 * @lkey: the region's local key, or VRNIC_NULL_LKEY
 */
struct vrnic_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/*
 * The null region, which every queue pair has (VRNIC_FEATURE_NULL): what is written there is
 * forgotten, and what is read there is zero. Any @addr will do. It is not ~0, by which programs
 * mean a key that is none.
 */
#define VRNIC_NULL_LKEY		0xffffff6eU

/* enum vrnic_opcode - what a descriptor asks the engine to do */
enum vrnic_opcode {
	VRNIC_OP_NOP			= 0,
	VRNIC_OP_SEND			= 1,
	VRNIC_OP_SEND_WITH_IMM		= 2,
	VRNIC_OP_SEND_WITH_INV		= 3,	/* imm: the key to invalidate */
	VRNIC_OP_RDMA_WRITE		= 4,
	VRNIC_OP_RDMA_WRITE_WITH_IMM	= 5,
	VRNIC_OP_RDMA_READ		= 6,
	VRNIC_OP_ATOMIC_CMP_AND_SWP	= 7,
	VRNIC_OP_ATOMIC_FETCH_AND_ADD	= 8,
	VRNIC_OP_ATOMIC_WRITE		= 9,	/* 8 bytes, always inline */
	VRNIC_OP_FLUSH			= 10,
	VRNIC_OP_LOCAL_INV		= 11,	/* imm: the key to invalidate */
	VRNIC_OP_BIND_MW		= 12,
	VRNIC_OP_REG_MR			= 13,	/* kernel consumers only */
	VRNIC_OP_MAX
};

/* Descriptor flags; the values are those of enum ibv_send_flags. */
#define VRNIC_DESC_FENCE	(1U << 0)
#define VRNIC_DESC_SIGNALED	(1U << 1)
#define VRNIC_DESC_SOLICITED	(1U << 2)
#define VRNIC_DESC_INLINE	(1U << 3)

#define VRNIC_DESC_SGES		2	/* segments in the first slot */
#define VRNIC_SLOT_SGES		4	/* segments in each further slot */
#define VRNIC_DESC_DATA		32	/* inline bytes in the first slot */

#define VRNIC_MAX_SGE		32	/* segments of a descriptor */
#define VRNIC_MAX_INLINE	992	/* inline bytes of a verbs descriptor */
#define VRNIC_MAX_SLOTS		16	/* slots of a verbs descriptor */

/* struct vrnic_desc.flush: what FLUSH makes sure of; IBTA A19.4.1 */
#define VRNIC_FLUSH_GLOBAL	(1U << 0)	/* data is visible globally */
#define VRNIC_FLUSH_PERSISTENT	(1U << 1)	/* data is persistent */
#define VRNIC_FLUSH_MR		(1U << 8)	/* the whole region, not a range */

/*
 * A request of an XRC initiator names a shared receive queue of the target by a number of 24 bits,
 * which takes what the descriptor has no use for: the low 16 bits are the upper 16 of @num_sge or
 * @inline_len, the high 8 bits are the upper 8 of @num_slots, and VRNIC_XRC_DESC is set. FLUSH has
 * no room for it. Requests that are local (NOP, LOCAL_INV, BIND_MW) need none of this.
 */
#define VRNIC_XRC_DESC		(1U << 7)	/* in num_slots: both have a part of the number */
#define VRNIC_XRC_SLOTS		0x7fU		/* in num_slots: slots */
#define VRNIC_XRC_LEN		0xffffU		/* in num_sge and inline_len: what they are */

/* The number of the SRQ, from num_slots and num_sge; and the reverse. */
#define VRNIC_XRC_SRQN(slots, len)	(((slots) >> 8) << 16 | (len) >> 16)
#define VRNIC_XRC_IN_SLOTS(srqn)	(VRNIC_XRC_DESC | ((srqn) >> 16 & 0xff) << 8)
#define VRNIC_XRC_IN_LEN(srqn)		(((srqn) & 0xffff) << 16)

/**
 * struct vrnic_desc - a descriptor: the first slot of a send request
 * @opcode: enum vrnic_opcode
 * @flags: VRNIC_DESC_*
 * @num_slots: slots that descriptor, segments and inline data take together;
 *	vrnic_ring_hdr.prod and cons move by this number. XRC: VRNIC_XRC_*
 * @imm: immediate data in network order; or the key to invalidate
 * @flush: FLUSH: VRNIC_FLUSH_*
 * @cookie: wr_id; the completion repeats it
 * @remote_addr: RDMA, ATOMIC and FLUSH operations: address at the target
 * @ah: UD: the number that create_ah returned
 * @dest_qpn: UD: queue pair at the target
 * @rkey: remote key
 * @qkey: UD: Q_Key; IBTA 3.5.3: bit 31 set means that of the sending queue pair
 * @num_sge: segments, without VRNIC_DESC_INLINE. XRC: VRNIC_XRC_*
 * @inline_len: bytes of inline data, with VRNIC_DESC_INLINE. XRC: VRNIC_XRC_*
 * @flush_len: FLUSH: bytes
 * @sge: the first segments; the others follow in the next slots
 * @data: inline data; goes on through the next slots
 * @atomic: ATOMIC: @sge receives the old 8 bytes;
 *	@swap_add: value to store or add; @compare: value to compare with
 * @bind: BIND_MW: window over [@addr, @addr + @length) of the region @lkey;
 *	@old_rkey names the window, @new_rkey is its key from now on (they may differ
 *	in the low 8 bits only); @access: IBV_ACCESS_* for the window
 * @reg: REG_MR: kernel consumers; not valid in a mapped ring
 */
struct vrnic_desc {
	__u8 opcode;
	__u8 flags;
	__u16 num_slots;
	union {
		__u32 imm;
		__u32 flush;
	};
	__aligned_u64 cookie;
	union {
		__aligned_u64 remote_addr;
		struct {
			__u32 ah;
			__u32 dest_qpn;
		};
	};
	union {
		__u32 rkey;
		__u32 qkey;
	};
	union {
		__u32 num_sge;
		__u32 inline_len;
		__u32 flush_len;
	};
	union {
		struct vrnic_sge sge[VRNIC_DESC_SGES];
		__u8 data[VRNIC_DESC_DATA];
		struct {
			struct vrnic_sge sge;
			__aligned_u64 swap_add;
			__aligned_u64 compare;
		} atomic;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 lkey;
			__u32 old_rkey;
			__u32 new_rkey;
			__u32 access;
		} bind;
		struct {
			__aligned_u64 mr;
			__u32 key;
			__u32 access;
			__aligned_u64 reserved[2];
		} reg;
	};
};

/**
 * struct vrnic_recv_desc - an entry of a receive ring (RQ or SRQ)
 * @cookie: wr_id; the completion repeats it
 * @num_sge: segments that follow
 * @reserved: zero
 * @sge: where the message goes
 *
 * Entries lie vrnic_ring_info.stride bytes apart: that of @rq in struct
 * vrnic_create_qp_resp or struct vrnic_create_srq_resp.
 */
struct vrnic_recv_desc {
	__aligned_u64 cookie;
	__u32 num_sge;
	__u32 reserved;
	struct vrnic_sge sge[];
};

/* struct vrnic_cqe.wc_flags; the values are those of enum ibv_wc_flags. */
#define VRNIC_WC_GRH		(1U << 0)
#define VRNIC_WC_WITH_IMM	(1U << 1)
#define VRNIC_WC_WITH_INV	(1U << 3)

/*
 * struct vrnic_cqe.sl: RoCE has no service level. In its place is the kind of the packet,
 * as ConnectX reports it (1 IPv6, 2 IPv4, and bit 3: in UDP). A struct ibv_wc has no other
 * member for the kind, and programs read it there to find the header in the GRH's 40 bytes.
 */
#define VRNIC_WC_SL_IPV6	9
#define VRNIC_WC_SL_IPV4	10

/**
 * struct vrnic_cqe - an entry of a completion ring
 * @cookie: wr_id of the request
 * @qpn: number of the queue pair that the request was posted to; for an SRQ, of
 *	the queue pair that received the message
 * @byte_len: bytes received, read, or returned by an atomic
 * @imm: immediate data in network order; or the key that was invalidated; or, with
 *	VRNIC_CQE_TAG, the tag of the flow that brought the raw packet
 * @src_qp: UD: sender's queue pair number
 * @timestamp: nanoseconds of CLOCK_MONOTONIC_RAW, if the CQ was made with
 *	VRNIC_CQ_TIMESTAMP, else 0
 * @status: enum ibv_wc_status
 * @opcode: enum ibv_wc_opcode; only valid if @status is success
 * @wc_flags: VRNIC_WC_*
 * @sl: of a UD message: VRNIC_WC_SL_*
 * @pkey_index: of a UD message
 * @slid: zero on Ethernet
 * @vendor_err: enum vrnic_vendor_err: the reason, in more detail than @status
 * @phase: written last. Entry i of a ring of n is valid once @phase equals
 *	1 + ((i / n) & 1); a new ring's memory is zero. Load it with acquire.
 * @network_hdr: of a UD message: 3 IPv6 header as the GRH, 2 IPv4 header in
 *	the GRH's last 20 bytes (the kernel's enum rdma_network_type). This member and
 *	those that follow are written before @phase.
 * @flags: VRNIC_CQE_*
 * @vlan: of a UD message: 1 + the number of its VLAN; 0: it came by none
 * @sq_done: with VRNIC_CQE_SEND: requests of the send queue that have ended since
 *	the queue pair left RESET, up to this one, modulo 2^32. Requests without a
 *	completion are counted, too.
 * @reserved: zero
 */
struct vrnic_cqe {
	__aligned_u64 cookie;
	__u32 qpn;
	__u32 byte_len;
	__u32 imm;
	__u32 src_qp;
	__aligned_u64 timestamp;
	__u8 status;
	__u8 opcode;
	__u8 wc_flags;
	__u8 sl;
	__u16 pkey_index;
	__u16 slid;
	__u32 vendor_err;
	__u32 phase;
	__u8 network_hdr;
	__u8 flags;
	__u16 vlan;
	__u32 sq_done;
	__u32 reserved[2];
};

#define VRNIC_CQE_SEND		(1U << 0)	/* of a send queue */
#define VRNIC_CQE_TAG		(1U << 1)	/* imm is the tag of the flow */

/* enum vrnic_vendor_err - struct vrnic_cqe.vendor_err */
enum vrnic_vendor_err {
	VRNIC_VERR_NONE		= 0,
	VRNIC_VERR_OPCODE	= 1,	/* opcode not valid on this queue pair */
	VRNIC_VERR_SLOTS	= 2,	/* num_slots is not what the contents need */
	VRNIC_VERR_LENGTH	= 3,	/* message too long */
	VRNIC_VERR_KEY		= 4,	/* no region or window has this key */
	VRNIC_VERR_PD		= 5,	/* protection domains differ */
	VRNIC_VERR_ACCESS	= 6,	/* region or window lacks the right */
	VRNIC_VERR_BOUNDS	= 7,	/* offset and length leave the region, or the slots */
	VRNIC_VERR_ALIGN	= 8,	/* atomic address not a multiple of 8 */
	VRNIC_VERR_PEER		= 9,	/* peer does not answer */
	VRNIC_VERR_RNR		= 10,	/* peer posts no receive */
	VRNIC_VERR_AH		= 11,	/* no such address handle */
	VRNIC_VERR_QP_ACCESS	= 12,	/* queue pair does not allow the operation */
	VRNIC_VERR_RING		= 13,	/* producer index is not valid */
	VRNIC_VERR_BIND		= 14,	/* window cannot be bound in this way */
	VRNIC_VERR_ENDPOINT	= 15,	/* no such endpoint */
	VRNIC_VERR_COUNTER	= 16,	/* no such counter, or not open to peers */
	VRNIC_VERR_TYPE		= 17,	/* no such type, or sizes differ */
	VRNIC_VERR_FAULT	= 18,	/* address cannot be pinned, or has no page */
	VRNIC_VERR_FULL		= 19,	/* peer's queue of remote gets stays full */
	VRNIC_VERR_CANCELED	= 20,	/* peer or FIFO went during the operation */
	VRNIC_VERR_INJECTED	= 21,	/* fault injection failed the request */
	VRNIC_VERR_SRQ		= 22,	/* target's XRC domain has no such SRQ */
};

/**
 * struct vrnic_ring_info - how to map a ring
 * @offset: for mmap(2) on the uverbs file
 * @bytes: length of the mapping: VRNIC_RING_DATA + entries * stride
 * @entries: a power of two
 * @stride: bytes from one entry to the next
 */
struct vrnic_ring_info {
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__u32 entries;
	__u32 stride;
};

/**
 * struct vrnic_alloc_ucontext_resp - answer to alloc_ucontext
 * @abi_version: VRNIC_ABI_VERSION of the module
 * @max_inline: largest inline message of a verbs queue pair, bytes
 * @max_sge: most segments of a request
 * @features: VRNIC_FEATURE_*: what the module can do beyond the first module of its ABI
 *	version
 */
struct vrnic_alloc_ucontext_resp {
	__u32 abi_version;
	__u32 max_inline;
	__u32 max_sge;
	__u32 features;
};

#define VRNIC_FEATURE_SQ_DONE	(1U << 0)	/* struct vrnic_cqe.flags and sq_done */
#define VRNIC_FEATURE_PLACED	(1U << 1)	/* VRNIC_NDESC_PLACED */
#define VRNIC_FEATURE_DEFER	(1U << 2)	/* VRNIC_ADVANCE_DEFERRED */
#define VRNIC_FEATURE_PIECES	(1U << 3)	/* injected MESSAGEs, whose records have a cookie */
#define VRNIC_FEATURE_WAIT	(1U << 4)	/* VRNIC_NOP_WAIT */
#define VRNIC_FEATURE_NULL	(1U << 5)	/* VRNIC_NULL_LKEY */

#define VRNIC_CQ_TIMESTAMP	(1U << 0)

/**
 * struct vrnic_create_cq_req - driver part of create_cq (may be absent)
 * @flags: VRNIC_CQ_*
 * @reserved: zero
 */
struct vrnic_create_cq_req {
	__u32 flags;
	__u32 reserved;
};

/**
 * struct vrnic_create_cq_resp - answer to create_cq and to resize_cq
 * @ring: the completion ring. After a resize it is a new ring. The completions
 *	that were not polled yet are in the new ring, from entry 0 on, in order.
 */
struct vrnic_create_cq_resp {
	struct vrnic_ring_info ring;
};

/* The values are those of enum ibv_rx_hash_fields and ibv_rx_hash_function_flags. */
#define VRNIC_RX_HASH_SRC_IPV4		(1U << 0)
#define VRNIC_RX_HASH_DST_IPV4		(1U << 1)
#define VRNIC_RX_HASH_SRC_IPV6		(1U << 2)
#define VRNIC_RX_HASH_DST_IPV6		(1U << 3)
#define VRNIC_RX_HASH_SRC_PORT_TCP	(1U << 4)
#define VRNIC_RX_HASH_DST_PORT_TCP	(1U << 5)
#define VRNIC_RX_HASH_SRC_PORT_UDP	(1U << 6)
#define VRNIC_RX_HASH_DST_PORT_UDP	(1U << 7)
#define VRNIC_RX_HASH_TOEPLITZ		1
#define VRNIC_RX_HASH_KEY		40	/* bytes */
#define VRNIC_RSS_LOG_MAX		8	/* a table has 2^8 entries at most */

/**
 * struct vrnic_create_qp_req - driver part of create_qp, for a queue pair with a table of work
 *	queues; else absent
 * @rx_hash_fields: VRNIC_RX_HASH_*: what is hashed of a frame, in this order: source address,
 *	destination address, source port, destination port. A frame that has none of the fields
 *	goes to the first work queue of the table.
 * @rx_hash_function: VRNIC_RX_HASH_TOEPLITZ
 * @rx_hash_key_len: VRNIC_RX_HASH_KEY
 * @reserved: zero
 * @rx_hash_key: key of the hash
 */
struct vrnic_create_qp_req {
	__u32 rx_hash_fields;
	__u8 rx_hash_function;
	__u8 rx_hash_key_len;
	__u16 reserved;
	__u8 rx_hash_key[VRNIC_RX_HASH_KEY];
};

/**
 * struct vrnic_create_qp_resp - answer to create_qp, and to create_wq
 * @sq: send ring; stride is VRNIC_SLOT_SIZE, entries are slots; all zero of a work queue, and of a
 *	queue pair that has a table of work queues
 * @rq: receive ring; all zero if the queue pair uses an SRQ or work queues, or receives nothing
 *
 * An XRC target has neither ring, and nobody writes this answer for it.
 * The capabilities granted come back in the core's own part of the answer.
 */
struct vrnic_create_qp_resp {
	struct vrnic_ring_info sq;
	struct vrnic_ring_info rq;
};

/**
 * struct vrnic_create_srq_resp - answer to create_srq
 * @rq: receive ring
 * @srqn: number of the SRQ
 * @reserved: zero
 */
struct vrnic_create_srq_resp {
	struct vrnic_ring_info rq;
	__u32 srqn;
	__u32 reserved;
};

/**
 * struct vrnic_resize_srq_req - what VRNIC_METHOD_SRQ_RESIZE changes
 * @max_wr: number of requests that there has to be room for
 * @limit: VRNIC_RESIZE_SRQ_LIMIT: the limit to arm; else zero
 * @flags: VRNIC_RESIZE_SRQ_LIMIT or 0: the limit stays as it is
 * @reserved: zero
 *
 * The answer tells how to map the new ring. Entries keep their indices: a request that was posted
 * as entry i is entry i of the new ring. From the command until it has mapped the new ring, the
 * process must not post. EINVAL: the requests that are inside, or the limit, do not fit; nothing
 * changes.
 */
struct vrnic_resize_srq_req {
	__u32 max_wr;
	__u32 limit;
	__u32 flags;
	__u32 reserved;
};

#define VRNIC_RESIZE_SRQ_LIMIT	(1U << 0)

/**
 * struct vrnic_create_ah_resp - answer to create_ah
 * @ah: for struct vrnic_desc.ah
 * @reserved: zero
 */
struct vrnic_create_ah_resp {
	__u32 ah;
	__u32 reserved;
};

/**
 * struct vrnic_dm_info - answer to VRNIC_METHOD_DM_QUERY
 * @offset: for mmap(2) on the uverbs file
 * @bytes: length of the mapping: whole pages
 * @length: bytes that were allocated; the mapping's other bytes belong to nobody
 */
struct vrnic_dm_info {
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__aligned_u64 length;
};

/*
 * The native interface has operations that verbs lack. libvrnic is its library.
 * Documentation/native.rst explains it, and the numbers S1 to S5.5 in comments.
 *
 * An injection FIFO is a send ring whose descriptors (struct vrnic_ndesc) each
 * name an endpoint. A reception FIFO is a ring of records (struct vrnic_record)
 * that the engine writes and the process consumes. One object, called a FIFO, has
 * one of each. Slots of both are VRNIC_SLOT_SIZE bytes.
 */

#define VRNIC_CLIENT_NAME	32	/* bytes of a client's name, with its zero */
#define VRNIC_FIFO_SLOTS_MIN	2
#define VRNIC_FIFO_SLOTS_MAX	65536
#define VRNIC_MAX_MESSAGE	4096	/* header and data of a message, bytes */
#define VRNIC_RGET_DESCS	16	/* descriptors of one remote get */
#define VRNIC_WAIT_DESCS	16	/* descriptors that one WAIT may take along when it fails */

/* enum vrnic_native_opcode - struct vrnic_ndesc.opcode */
enum vrnic_native_opcode {
	VRNIC_NOP_PUT		= 0x41,	/* local memory to remote memory */
	VRNIC_NOP_GET		= 0x42,	/* remote memory to local memory */
	VRNIC_NOP_RMW		= 0x43,	/* read, modify, write one word */
	VRNIC_NOP_MESSAGE	= 0x44,	/* into the peer's reception FIFO */
	VRNIC_NOP_RGET		= 0x45,	/* remote get: descriptors for the peer to execute */
	VRNIC_NOP_NOTIFY	= 0x46,	/* injected ones only: a record */
	VRNIC_NOP_FENCE		= 0x47,	/* for all before it to this endpoint */
	VRNIC_NOP_FENCE_ALL	= 0x48,	/* for all before it in this FIFO */
	VRNIC_NOP_WAIT		= 0x49,	/* until a counter has fallen: what follows is triggered */
};

/* struct vrnic_ndesc.flags */
#define VRNIC_NDESC_SIGNALED	(1U << 1)	/* a record when it is complete */
#define VRNIC_NDESC_INLINE	(1U << 3)	/* data in the slots that follow */
#define VRNIC_NDESC_VIRTUAL	(1U << 4)	/* local_addr is not in a region */
#define VRNIC_NDESC_TYPED	(1U << 5)	/* struct vrnic_ndesc_typed follows */
#define VRNIC_NDESC_BACK	(1U << 6)	/* NOTIFY: record for the peer that sent it */
#define VRNIC_NDESC_PLACED	(1U << 7)	/* INLINE: local_addr says where the data lies */

/**
 * struct vrnic_ndesc - a native descriptor: the first slot of an operation
 * @opcode: enum vrnic_native_opcode
 * @flags: VRNIC_NDESC_*
 * @num_slots: slots of the descriptor and of all that follows it (S2.3)
 * @endpoint: number of the endpoint it goes to; FENCE_ALL: ignored
 * @cookie: records and a counter's error repeat it
 * @length: bytes to move. RMW: 4 or 8. MESSAGE: bytes of data, without the
 *	header. RGET: a multiple of 64, up to VRNIC_RGET_DESCS descriptors. WAIT: most
 *	bytes that may remain in the counter @lkey
 * @local_addr: in the region @lkey; with VRNIC_NDESC_VIRTUAL any address of the
 *	process that made the FIFO, whose memory need not be registered (S1).
 *	RMW: where the old value goes, if @lkey is not 0. With VRNIC_NDESC_PLACED the
 *	offset of the data from the start of this descriptor, in bytes (S2.2).
 * @remote_addr: in the region @rkey of the peer
 * @lkey: local key. WAIT: number of a counter of the process that made the FIFO
 * @rkey: remote key
 * @header_len: MESSAGE: bytes of header. They follow the first slot.
 * @local_counter: counter of this process, or 0: falls by @length (FENCE, RMW,
 *	MESSAGE, RGET: by 1) once the local buffer may be reused (PUT, MESSAGE,
 *	RGET) or holds the data (GET, RMW), or all earlier ones are done (FENCE)
 * @remote_counter: counter of this process, or 0: falls by the same number once
 *	the operation is done at the target
 * @target_counter: counter of the target's process, or 0: falls by the same number
 *	once the operation is done at the target. Fences: 0
 * @arg: MESSAGE and NOTIFY: dispatch id, for the record. RMW: enum vrnic_rmw_op.
 *	WAIT: number of descriptors behind it, up to VRNIC_WAIT_DESCS, that fail
 *	(IB_WC_WR_FLUSH_ERR) if it fails. Otherwise zero.
 *
 * INLINE: @length bytes of data lie in the slots that @num_slots covers, and end in the
 * last one; @lkey is ignored. PLACED: they begin @local_addr bytes behind the start of the
 * descriptor, so an offset does not change with the slot that the descriptor gets, and
 * cannot lead to other descriptors. It is at least VRNIC_SLOT_SIZE, plus @header_len of a
 * MESSAGE. At the end of the ring the bytes go on in the ring's first slot. A module
 * without VRNIC_FEATURE_PLACED refuses PLACED. Without PLACED @local_addr is ignored, and
 * the data follows the first slot (MESSAGE: the header) without a gap.
 *
 * PUT and MESSAGE can be INLINE; PUT and GET can be VIRTUAL (MESSAGE's data, too)
 * or TYPED. RMW has a second slot, struct vrnic_ndesc_rmw.
 *
 * What is behind a WAIT in the ring starts when no more than @length bytes remain in the
 * counter. If the counter has failed, so does the WAIT. It is for no endpoint, and names
 * no memory: @endpoint, the addresses, @rkey and @target_counter are zero. Injected: the
 * counter has to be open to peers, and @arg is zero.
 *
 * Injected descriptors are those of a remote get that process B sent to process A. They
 * may be PUT, GET, MESSAGE, RGET, NOTIFY and WAIT. The engine executes them for A, but with
 * the rights of B. @lkey is a *remote* key of A and needs the right to remote read (GET: to
 * remote write). All of them go back to B, or take from B, and @endpoint is ignored. A MESSAGE
 * has no header. @local_counter is a counter of A that is open to peers. @remote_counter and
 * @target_counter are counters of B.
 * NOTIFY makes a record in the FIFO of A (with VRNIC_NDESC_BACK: of B). The status
 * of this record is that of the first failure of @target_counter, if @target_counter
 * is not 0. When an injected descriptor fails, the rest of its remote get is dropped,
 * and B gets a VRNIC_REC_ERROR.
 *
 * If the remote get comes from B's own ring, B chose its descriptors, and they may name
 * any counters of B. If a descriptor that A injected at B sends it, the remote get is
 * *relayed*: A chose where its descriptors lie. Their @remote_counter and @target_counter
 * have to be open, or bound to A (VRNIC_METHOD_COUNTER_BIND).
 */
struct vrnic_ndesc {
	__u8 opcode;
	__u8 flags;
	__u16 num_slots;
	__u32 endpoint;
	__aligned_u64 cookie;
	__aligned_u64 length;
	__aligned_u64 local_addr;
	__aligned_u64 remote_addr;
	__u32 lkey;
	union {
		__u32 rkey;
		__u32 header_len;
	};
	__u32 local_counter;
	__u32 remote_counter;
	__u32 target_counter;
	__u32 arg;
};

/* enum vrnic_rmw_op - what RMW does to the word */
enum vrnic_rmw_op {
	VRNIC_RMW_FETCH		= 0,	/* nothing */
	VRNIC_RMW_SET		= 1,
	VRNIC_RMW_ADD		= 2,
	VRNIC_RMW_AND		= 3,
	VRNIC_RMW_OR		= 4,
	VRNIC_RMW_XOR		= 5,
	VRNIC_RMW_COMPARE	= 0x100,	/* flag: only if the word equals compare */
};

/**
 * struct vrnic_ndesc_rmw - second slot of RMW
 * @operand: 4-byte words: in the low half
 * @compare: with VRNIC_RMW_COMPARE; 4-byte words: in the low half
 * @reserved: zero
 */
struct vrnic_ndesc_rmw {
	__aligned_u64 operand;
	__aligned_u64 compare;
	__aligned_u64 reserved[6];
};

/* enum vrnic_typed_mode - how a typed transfer is done (S3.3 to S3.5) */
enum vrnic_typed_mode {
	VRNIC_TYPED_AUTO	= 0,
	VRNIC_TYPED_SAME	= 1,	/* equal types: the rows of one serve both sides */
	VRNIC_TYPED_PACKED	= 2,	/* packed at the origin, cut by the target's type */
	VRNIC_TYPED_CHUNKS	= 3,	/* one piece per common contiguous chunk */
};

/**
 * struct vrnic_ndesc_typed - second slot of a typed PUT or GET
 * @local_type: type of the local memory, made in this context; chunk offsets
 *	count from @local_addr
 * @remote_type: type of the remote memory, also made in this context; chunk
 *	offsets count from @remote_addr
 * @mode: enum vrnic_typed_mode
 * @reserved0: zero
 * @reserved: zero
 *
 * Both types have the same number of bytes. struct vrnic_ndesc.length is this number.
 */
struct vrnic_ndesc_typed {
	__u32 local_type;
	__u32 remote_type;
	__u32 mode;
	__u32 reserved0;
	__aligned_u64 reserved[6];
};

/* enum vrnic_record_kind - struct vrnic_record.kind */
enum vrnic_record_kind {
	VRNIC_REC_PAD		= 0,	/* skip it: records do not wrap */
	VRNIC_REC_COMPLETION	= 1,	/* of a SIGNALED descriptor */
	VRNIC_REC_MESSAGE	= 2,	/* header and data follow in the next slots */
	VRNIC_REC_NOTIFY	= 3,	/* an injected NOTIFY ran here */
	VRNIC_REC_ERROR		= 4,	/* a descriptor sent in a remote get failed; */
					/* opcode 0: the peer of an endpoint is gone */
};

/**
 * struct vrnic_record - the first slot of a record in a reception FIFO
 * @kind: enum vrnic_record_kind
 * @opcode: of the descriptor
 * @status: enum ibv_wc_status. FENCE: of the first operation that failed since
 *	the endpoint's last fence
 * @failed_opcode: FENCE: that operation's opcode, or 0
 * @num_slots: slots of the record and its data
 * @header_len: MESSAGE: bytes of header, at the start of the second slot
 * @length: MESSAGE: bytes of data, right after the header
 * @arg: MESSAGE and NOTIFY: dispatch id
 * @cookie: of the descriptor; MESSAGE: of the injected descriptor that has sent it, or 0. Peers
 *	choose this one as they choose @arg: it is a claim
 * @value: RMW: the old value. Others: bytes that were placed.
 * @failed_cookie: FENCE: cookie of the first operation that failed
 * @endpoint: COMPLETION: the descriptor's
 * @vendor_err: enum vrnic_vendor_err
 * @source: MESSAGE, NOTIFY, ERROR: number of the peer's FIFO
 * @task: MESSAGE, NOTIFY, ERROR: task of the peer
 * @host: MESSAGE, NOTIFY, ERROR: the peer's host, by the number that struct
 *	vrnic_create_endpoint_resp has; 0: this host. Each host numbers its FIFOs by
 *	itself: a FIFO of another host may have, or claim to have, the same @source
 *
 * Records lie in slots [cons, prod) of the ring. The kernel stores
 * vrnic_ring_hdr.prod with release after a record; the process stores cons with
 * release when it is done with one. Then the process issues a full fence and looks
 * at the ring's flags. If VRNIC_RING_DOORBELL is set, a sender waits for room: the
 * process calls VRNIC_ADVANCE to wake it.
 */
struct vrnic_record {
	__u8 kind;
	__u8 opcode;
	__u8 status;
	__u8 failed_opcode;
	__u16 num_slots;
	__u16 header_len;
	__u32 length;
	__u32 arg;
	__aligned_u64 cookie;
	__aligned_u64 value;
	__aligned_u64 failed_cookie;
	__u32 endpoint;
	__u32 vendor_err;
	__u32 source;
	__u32 task;
	__aligned_u64 host;
};

/**
 * struct vrnic_counter_cell - a counter, in memory that process and kernel share
 * @remaining: bytes that are still to come; both sides use atomic additions.
 *	May fall below zero: data can arrive before it is expected.
 * @errors: operations that failed; stored with release after the fields below.
 *	The process sets it to 0, when nothing is under way, to start again.
 * @status: enum ibv_wc_status of the first operation that failed since @errors was 0
 * @opcode: opcode of this operation
 * @reserved0: zero
 * @vendor_err: enum vrnic_vendor_err of this operation
 * @reserved1: zero
 * @cookie: cookie of this operation
 * @placed: bytes that this operation had placed
 * @turn: of a counter in a group: odd while the kernel changes @remaining or @errors and then the
 *	counter's bits in struct vrnic_group_cell
 * @reserved2: zero
 * @reserved: zero
 */
struct vrnic_counter_cell {
	__s64 remaining;
	__u32 errors;
	__u8 status;
	__u8 opcode;
	__u16 reserved0;
	__u32 vendor_err;
	__u32 reserved1;
	__aligned_u64 cookie;
	__aligned_u64 placed;
	__u32 turn;
	__u32 reserved2;
	__aligned_u64 reserved[2];
};

/**
 * struct vrnic_comp_cell - a completion counter of verbs, in memory that process and kernel share
 * @completed: send requests, receives, or operations of the peer that have completed with success,
 *	or their bytes (VRNIC_COMP_CNTR_BYTES); modulo 2^64, as @errors. The kernel adds to it with
 *	release. The process reads it with acquire, and may add to it atomically, or overwrite it.
 * @errors: those that have failed
 * @reserved: zero
 */
struct vrnic_comp_cell {
	__aligned_u64 completed;
	__aligned_u64 errors;
	__aligned_u64 reserved[6];
};

#define VRNIC_GROUP_COUNTERS	64	/* most counters of a group */

/**
 * struct vrnic_group_cell - the status of a group of counters, in memory that both share (S4.6)
 * @done: bit i is set if the i-th counter is done: nothing remains (vrnic_counter_cell.remaining
 *	is zero or less), or it has failed
 * @failed: bit i is set if the i-th counter has failed (vrnic_counter_cell.errors is not 0)
 * @reserved: zero
 *
 * The kernel sets bits when it lets a counter fall to zero, or fail. It sets them in @failed first,
 * and clears them in @done first. It never reads either.
 *
 * The process clears the bits of a counter when it has raised @remaining above zero, or has set
 * @errors to 0. It does so in these steps, after which @done and @failed are right:
 *
 *	1. Change @remaining or @errors. Issue a full fence. Load @turn with acquire.
 *	2. If the counter is not done, and its bit is set: clear the bit in @done, atomically. Do
 *	   so with @failed. Issue a full fence.
 *	3. If @turn was odd, or if @remaining, @errors and the bits do not fit each other now,
 *	   call VRNIC_COUNT with zero bytes: the kernel sets the bits to what they have to be.
 *
 * driver/native/counter_group.c shows why no bit is lost and no old bit is left.
 */
struct vrnic_group_cell {
	__aligned_u64 done;
	__aligned_u64 failed;
	__aligned_u64 reserved[6];
};

/**
 * struct vrnic_address - where a FIFO is; to be handed to processes that may use it
 * @gid: GID of the FIFO's device
 * @fifo: number of the FIFO
 * @task: number that the FIFO's process gave itself
 * @secret: a process that knows it may make an endpoint
 */
struct vrnic_address {
	__u8 gid[16];
	__u32 fifo;
	__u32 task;
	__aligned_u64 secret;
};

#define VRNIC_FIFO_OPEN		(1U << 0)	/* other users' processes find it by name */

/**
 * struct vrnic_create_fifo_req - what a FIFO is to be
 * @name: client it belongs to; empty: cannot be found by name
 * @task: number of the process within the client
 * @context: number of the FIFO within the task
 * @inject_slots: VRNIC_FIFO_SLOTS_MIN to _MAX, rounded up to a power of two
 * @receive_slots: rounded up to a power of two, up to VRNIC_FIFO_SLOTS_MAX; at
 *	least two of the longest messages must fit
 * @gid_index: which of the device's GIDs its address has
 * @flags: VRNIC_FIFO_*
 * @eventfd: signalled when a record comes and the ring is armed; or -1
 * @reserved: zero
 */
struct vrnic_create_fifo_req {
	char name[VRNIC_CLIENT_NAME];
	__u32 task;
	__u32 context;
	__u32 inject_slots;
	__u32 receive_slots;
	__u32 gid_index;
	__u32 flags;
	__s32 eventfd;
	__u32 reserved;
};

/**
 * struct vrnic_create_fifo_resp - the FIFO that was made
 * @inject: injection ring
 * @receive: reception ring
 * @address: for its peers; @address.fifo also names it in VRNIC_ADVANCE and VRNIC_WAIT
 */
struct vrnic_create_fifo_resp {
	struct vrnic_ring_info inject;
	struct vrnic_ring_info receive;
	struct vrnic_address address;
};

/**
 * struct vrnic_lookup_req - a FIFO of this host, by name
 * @name: of its client
 * @task: number of the process
 * @context: number of the FIFO
 */
struct vrnic_lookup_req {
	char name[VRNIC_CLIENT_NAME];
	__u32 task;
	__u32 context;
};

/**
 * struct vrnic_create_endpoint_resp - a peer, as descriptors name it
 * @endpoint: for struct vrnic_ndesc.endpoint; valid in its FIFO only
 * @reserved: zero
 * @host: number that this host gave to the address of the peer's host; 0: the peer
 *	is on this host
 */
struct vrnic_create_endpoint_resp {
	__u32 endpoint;
	__u32 reserved;
	__aligned_u64 host;
};

#define VRNIC_COUNTER_OPEN	(1U << 0)	/* peers' descriptors may name it */

/**
 * struct vrnic_create_counter_req - what a counter is to be
 * @flags: VRNIC_COUNTER_*
 * @bit: of a counter in a group (VRNIC_ATTR_COUNTER_CREATE_GROUP): its number in the group, below
 *	VRNIC_GROUP_COUNTERS; EBUSY: another counter has it. Else zero
 */
struct vrnic_create_counter_req {
	__u32 flags;
	__u32 bit;
};

/**
 * struct vrnic_create_counter_resp - where the counter is
 * @offset: of the counter's page, for mmap(2); a page holds many counters
 * @cell: index of its struct vrnic_counter_cell in the page
 * @counter: number, never 0; descriptors of this process and of peers name it by this
 */
struct vrnic_create_counter_resp {
	__aligned_u64 offset;
	__u32 cell;
	__u32 counter;
};

/**
 * struct vrnic_create_comp_cntr_resp - where a completion counter of verbs is
 * @offset: of its page, for mmap(2); a page holds many counters
 * @cell: index of its struct vrnic_comp_cell in the page
 * @reserved: zero
 */
struct vrnic_create_comp_cntr_resp {
	__aligned_u64 offset;
	__u32 cell;
	__u32 reserved;
};

enum vrnic_comp_cntr_flags {
	VRNIC_COMP_CNTR_BYTES	= 1U << 0,	/* success counts bytes, not requests */
};

/**
 * struct vrnic_create_group_req - what a group of counters is to be
 * @flags: zero
 * @reserved: zero
 */
struct vrnic_create_group_req {
	__u32 flags;
	__u32 reserved;
};

/**
 * struct vrnic_create_group_resp - where the group's status is
 * @offset: of its page, for mmap(2); counters may lie in the same page
 * @cell: index of its struct vrnic_group_cell in the page
 * @group: number, never 0; struct vrnic_wait_group names the group by this
 */
struct vrnic_create_group_resp {
	__aligned_u64 offset;
	__u32 cell;
	__u32 group;
};

/**
 * struct vrnic_type_row - @count contiguous chunks
 * @offset: of the first chunk, from the start of the storage
 * @bytes: of each chunk; not 0
 * @count: number of chunks; not 0
 * @stride: from the start of one chunk to that of the next; ignored if @count is 1
 *
 * A type's bytes are those of its rows, in order (S3.1).
 */
struct vrnic_type_row {
	__s64 offset;
	__aligned_u64 bytes;
	__aligned_u64 count;
	__s64 stride;
};

#define VRNIC_TYPE_ROWS_MAX	(1U << 20)

/**
 * struct vrnic_create_type_req - the metadata of a type
 * @rows: address of an array of struct vrnic_type_row
 * @nr_rows: 1 to VRNIC_TYPE_ROWS_MAX
 * @reserved: zero
 */
struct vrnic_create_type_req {
	__aligned_u64 rows;
	__u32 nr_rows;
	__u32 reserved;
};

/**
 * struct vrnic_create_type_resp - the type, as descriptors name it
 * @type: number, never 0
 * @reserved: zero
 */
struct vrnic_create_type_resp {
	__u32 type;
	__u32 reserved;
};

/*
 * Driver-specific objects and methods of the uverbs ioctl interface. Their
 * numbers start at UVERBS_ID_DRIVER_NS (1 << 12).
 */
enum vrnic_objects {
	VRNIC_OBJECT_DOORBELL = (1U << 12),
	VRNIC_OBJECT_FIFO,
	VRNIC_OBJECT_ENDPOINT,
	VRNIC_OBJECT_COUNTER,
	VRNIC_OBJECT_TYPE,
	VRNIC_OBJECT_GROUP,
};

/* Of UVERBS_OBJECT_SRQ. The core's modify_srq has no answer, in which the new ring could be. */
enum vrnic_srq_methods {
	VRNIC_METHOD_SRQ_RESIZE = (1U << 12),
};

enum vrnic_srq_resize_attrs {
	VRNIC_ATTR_SRQ_RESIZE_HANDLE = (1U << 12),	/* in: object */
	VRNIC_ATTR_SRQ_RESIZE_REQ,	/* in: struct vrnic_resize_srq_req */
	VRNIC_ATTR_SRQ_RESIZE_RESP,	/* out: struct vrnic_ring_info */
};

/* Of UVERBS_METHOD_QUERY_CONTEXT: what alloc_ucontext answered, for a library that imports it. */
enum vrnic_query_context_attrs {
	VRNIC_ATTR_QUERY_CONTEXT_RESP = (1U << 12),	/* out: struct vrnic_alloc_ucontext_resp */
};

/* Of UVERBS_OBJECT_PD. QUERY fails if the context has no such protection domain. */
enum vrnic_pd_methods {
	VRNIC_METHOD_PD_QUERY = (1U << 12),
};

enum vrnic_pd_query_attrs {
	VRNIC_ATTR_PD_QUERY_HANDLE = (1U << 12),	/* in: object */
};

enum vrnic_doorbell_methods {
	VRNIC_METHOD_DOORBELL_ALLOC = (1U << 12),
};

enum vrnic_doorbell_alloc_attrs {
	VRNIC_ATTR_DOORBELL_ALLOC_FD = (1U << 12),	/* out: the file */
	/*
	 * out: __u32 VRNIC_FEATURE_*, for a library that does not see the answer to
	 * alloc_ucontext. Optional: an older module ignores it.
	 */
	VRNIC_ATTR_DOORBELL_ALLOC_FEATURES,
};

/* of the core's object UVERBS_OBJECT_DM */
enum vrnic_dm_methods {
	VRNIC_METHOD_DM_QUERY = (1U << 12),
};

enum vrnic_dm_query_attrs {
	VRNIC_ATTR_DM_QUERY_HANDLE = (1U << 12),	/* in: object */
	VRNIC_ATTR_DM_QUERY_RESP,	/* out: struct vrnic_dm_info */
};

/* of the core's UVERBS_METHOD_COMP_CNTR_CREATE, since Linux 7.3; each may be absent */
enum vrnic_comp_cntr_create_attrs {
	VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS = (1U << 12),	/* in: enum vrnic_comp_cntr_flags */
	VRNIC_ATTR_COMP_CNTR_CREATE_RESP,	/* out: struct vrnic_create_comp_cntr_resp */
};

enum vrnic_fifo_methods {
	VRNIC_METHOD_FIFO_CREATE = (1U << 12),
	VRNIC_METHOD_FIFO_DESTROY,
	VRNIC_METHOD_FIFO_LOOKUP,
};

enum vrnic_fifo_create_attrs {
	VRNIC_ATTR_FIFO_CREATE_HANDLE = (1U << 12),	/* out: object */
	VRNIC_ATTR_FIFO_CREATE_PD,	/* in: object */
	VRNIC_ATTR_FIFO_CREATE_REQ,	/* in: struct vrnic_create_fifo_req */
	VRNIC_ATTR_FIFO_CREATE_RESP,	/* out: struct vrnic_create_fifo_resp */
};

enum vrnic_fifo_destroy_attrs {
	VRNIC_ATTR_FIFO_DESTROY_HANDLE = (1U << 12),	/* EBUSY: it has endpoints */
};

enum vrnic_fifo_lookup_attrs {
	VRNIC_ATTR_FIFO_LOOKUP_REQ = (1U << 12),	/* in: struct vrnic_lookup_req */
	VRNIC_ATTR_FIFO_LOOKUP_RESP,	/* out: struct vrnic_address */
};

enum vrnic_endpoint_methods {
	VRNIC_METHOD_ENDPOINT_CREATE = (1U << 12),
	VRNIC_METHOD_ENDPOINT_DESTROY,
};

enum vrnic_endpoint_create_attrs {
	VRNIC_ATTR_ENDPOINT_CREATE_HANDLE = (1U << 12),	/* out: object */
	VRNIC_ATTR_ENDPOINT_CREATE_FIFO,	/* in: object */
	VRNIC_ATTR_ENDPOINT_CREATE_ADDRESS,	/* in: struct vrnic_address */
	VRNIC_ATTR_ENDPOINT_CREATE_RESP,	/* out: struct vrnic_create_endpoint_resp */
};

enum vrnic_endpoint_destroy_attrs {
	VRNIC_ATTR_ENDPOINT_DESTROY_HANDLE = (1U << 12),
};

enum vrnic_counter_methods {
	VRNIC_METHOD_COUNTER_CREATE = (1U << 12),
	VRNIC_METHOD_COUNTER_DESTROY,
	VRNIC_METHOD_COUNTER_EVENTFD,
	VRNIC_METHOD_COUNTER_BIND,
	VRNIC_METHOD_COUNTER_UNBIND,
};

enum vrnic_counter_create_attrs {
	VRNIC_ATTR_COUNTER_CREATE_HANDLE = (1U << 12),	/* out: object */
	VRNIC_ATTR_COUNTER_CREATE_REQ,	/* in: struct vrnic_create_counter_req */
	VRNIC_ATTR_COUNTER_CREATE_RESP,	/* out: struct vrnic_create_counter_resp */
	VRNIC_ATTR_COUNTER_CREATE_GROUP,	/* in: object; may be absent */
};

enum vrnic_counter_destroy_attrs {
	VRNIC_ATTR_COUNTER_DESTROY_HANDLE = (1U << 12),
};

/*
 * An eventfd that is signalled when the counter falls to zero or below, and at a
 * failure. It is signalled at once if this has happened before. EBUSY: the counter
 * has an eventfd already.
 */
enum vrnic_counter_eventfd_attrs {
	VRNIC_ATTR_COUNTER_EVENTFD_HANDLE = (1U << 12),
	VRNIC_ATTR_COUNTER_EVENTFD_FD,	/* in: __s32 */
};

/*
 * The counter is bound to the endpoint until it is unbound as often as it was bound, or
 * one of the two is destroyed. While it is bound, the counter fails when the endpoint's
 * peer goes, or is gone. Relayed descriptors that this peer executes (see struct
 * vrnic_ndesc) may name a bound counter as if it were open.
 */
enum vrnic_counter_bind_attrs {
	VRNIC_ATTR_COUNTER_BIND_HANDLE = (1U << 12),
	VRNIC_ATTR_COUNTER_BIND_ENDPOINT,	/* in: object */
};

/* EINVAL: the counter is not bound. EPIPE: the peer is gone, so the counter failed. */
enum vrnic_counter_unbind_attrs {
	VRNIC_ATTR_COUNTER_UNBIND_HANDLE = (1U << 12),
	VRNIC_ATTR_COUNTER_UNBIND_ENDPOINT,	/* in: object */
};

enum vrnic_group_methods {
	VRNIC_METHOD_GROUP_CREATE = (1U << 12),
	VRNIC_METHOD_GROUP_DESTROY,
};

enum vrnic_group_create_attrs {
	VRNIC_ATTR_GROUP_CREATE_HANDLE = (1U << 12),	/* out: object */
	VRNIC_ATTR_GROUP_CREATE_REQ,	/* in: struct vrnic_create_group_req */
	VRNIC_ATTR_GROUP_CREATE_RESP,	/* out: struct vrnic_create_group_resp */
};

enum vrnic_group_destroy_attrs {
	VRNIC_ATTR_GROUP_DESTROY_HANDLE = (1U << 12),	/* EBUSY: it has counters */
};

enum vrnic_type_methods {
	VRNIC_METHOD_TYPE_CREATE = (1U << 12),
	VRNIC_METHOD_TYPE_DESTROY,
};

enum vrnic_type_create_attrs {
	VRNIC_ATTR_TYPE_CREATE_HANDLE = (1U << 12),	/* out: object */
	VRNIC_ATTR_TYPE_CREATE_REQ,	/* in: struct vrnic_create_type_req */
	VRNIC_ATTR_TYPE_CREATE_RESP,	/* out: struct vrnic_create_type_resp */
};

enum vrnic_type_destroy_attrs {
	VRNIC_ATTR_TYPE_DESTROY_HANDLE = (1U << 12),
};

/*
 * All calls of a context's doorbell file are ioctls. No other driver has their numbers
 * (Documentation/userspace-api/ioctl/ioctl-number.rst in the kernel): tools such as strace
 * know an ioctl by its number alone, and would show the argument as that of the other
 * driver.
 */
#define VRNIC_IOC_MAGIC		0xd6

/*
 * VRNIC_DOORBELL takes a queue pair number as its argument (by value) and runs
 * the queue pair's send ring within a budget, unless another thread runs it; threads
 * of the engine do what is left. Returns 0, or -1 with errno EINVAL (no such queue
 * pair in this context) or EIO (device is gone).
 */
#define VRNIC_DOORBELL		_IO(VRNIC_IOC_MAGIC, 0x01)

/*
 * VRNIC_ADVANCE takes a FIFO's number (by value) and does the same for its
 * injection ring, but not for descriptors that peers injected. It wakes senders that wait
 * for room in the FIFO's reception ring. Errors are those of VRNIC_DOORBELL.
 */
#define VRNIC_ADVANCE		_IO(VRNIC_IOC_MAGIC, 0x02)

/*
 * VRNIC_ADVANCE_DEFERRED does the same, but a thread of the engine runs the ring, and the
 * call does not wait for it.
 */
#define VRNIC_ADVANCE_DEFERRED	_IO(VRNIC_IOC_MAGIC, 0x06)

/**
 * struct vrnic_count - make a counter fall or fail for what the engine does not count
 * @id: number of a counter of this context
 * @status: enum ibv_wc_status; success: the counter falls by @bytes. Others: it fails.
 * @opcode: of the operation that failed
 * @reserved0: zero
 * @vendor_err: enum vrnic_vendor_err of the operation that failed
 * @reserved1: zero
 * @bytes: to be taken off the counter; for a failure, bytes that were placed
 * @cookie: of the operation that failed
 *
 * The process does not do so in memory, because threads may sleep until a counter falls
 * or fails, and only the kernel can wake them. Zero bytes taken off a counter in a group
 * make its bits right, see struct vrnic_group_cell. Errors: EINVAL, EIO (device is gone).
 */
struct vrnic_count {
	__u32 id;
	__u8 status;
	__u8 opcode;
	__u16 reserved0;
	__u32 vendor_err;
	__u32 reserved1;
	__aligned_u64 bytes;
	__aligned_u64 cookie;
};

/* enum vrnic_wait_for - struct vrnic_wait.what */
enum vrnic_wait_for {
	VRNIC_WAIT_COUNTER	= 1,	/* remaining <= threshold, or errors */
	VRNIC_WAIT_FIFO		= 2,	/* a record in the reception ring */
};

#define VRNIC_WAIT_FOREVER	(~0ULL)

/**
 * struct vrnic_wait - what to sleep for
 * @what: enum vrnic_wait_for
 * @id: number of the counter or of the FIFO
 * @threshold: COUNTER: most bytes that remain when the sleep ends
 * @timeout_ns: relative; or VRNIC_WAIT_FOREVER
 *
 * Errors: ETIME, EINTR, EINVAL (no such object in this context), EIO (device is
 * gone), ECANCELED (the object was destroyed meanwhile).
 */
struct vrnic_wait {
	__u32 what;
	__u32 id;
	__s64 threshold;
	__aligned_u64 timeout_ns;
};

#define VRNIC_WAIT		_IOW(VRNIC_IOC_MAGIC, 0x03, struct vrnic_wait)
#define VRNIC_COUNT		_IOW(VRNIC_IOC_MAGIC, 0x04, struct vrnic_count)

#define VRNIC_WAIT_ALL		(1U << 0)	/* for all counters, not for any of them */

/**
 * struct vrnic_wait_group - sleep for counters of a group
 * @group: number of the group
 * @flags: VRNIC_WAIT_ALL or 0
 * @mask: bits of the counters to wait for
 * @timeout_ns: relative; or VRNIC_WAIT_FOREVER
 * @done: out: bits of @mask whose counters are done, now that the call returns
 * @failed: out: bits of @mask whose counters have failed
 *
 * The sleep ends when any (VRNIC_WAIT_ALL: each) of the counters is done, or when one has failed.
 * @done and @failed are also stored if the call fails with ETIME or EINTR. Errors: ETIME, EINTR,
 * EINVAL (no such group in this context, or @mask is zero or has a bit without a counter), EIO
 * (device is gone), ECANCELED (one of the counters was destroyed meanwhile).
 */
struct vrnic_wait_group {
	__u32 group;
	__u32 flags;
	__aligned_u64 mask;
	__aligned_u64 timeout_ns;
	__aligned_u64 done;
	__aligned_u64 failed;
};

#define VRNIC_WAIT_GROUP	_IOWR(VRNIC_IOC_MAGIC, 0x05, struct vrnic_wait_group)

#endif /* RDMA_VRNIC_ABI_H */
