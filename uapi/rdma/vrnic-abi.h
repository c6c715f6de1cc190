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

#define VRNIC_ABI_VERSION	1

/* A private number, so that a renamed device is still recognised. */
#define VRNIC_DRIVER_ID		0x76726e31	/* "vrn1" */

#define VRNIC_SLOT_SIZE		64	/* bytes of a slot of a send ring */
#define VRNIC_RING_DATA		4096	/* where slots start in a mapping */

/**
 * struct vrnic_ring_hdr - the first page of every ring's mapping
 * @prod: producer index: entries ever written, modulo 2^32. Written by the
 *	process on send and receive rings, by the kernel on completion rings.
 * @cons: consumer index: entries ever taken. Written by the kernel on send and
 *	receive rings, by the process on completion rings.
 * @flags: VRNIC_RING_* bits, written by the kernel.
 * @arm: completion rings: VRNIC_ARM_*, written by the process to ask for an
 *	event, cleared by the kernel when the event is raised.
 *
 * Indices run freely; entry i lies in slot i & (entries - 1). Each field has a
 * cache line of its own. The kernel keeps its own index as the truth and only
 * publishes it here: what a process writes over it harms only the process.
 *
 * Producer of a send or receive ring: fill the slots, store @prod with release,
 * issue a full fence, load @flags, and ring the doorbell if VRNIC_RING_DOORBELL
 * is set. The kernel sets that flag, issues a full fence, and looks at @prod
 * once more before it goes away.
 */
struct vrnic_ring_hdr {
	__u32 prod;
	__u32 reserved0[15];
	__u32 cons;
	__u32 reserved1[15];
	__u32 flags;
	__u32 reserved2[15];
	__u32 arm;
	__u32 reserved3[15];
};

#define VRNIC_RING_DOORBELL	(1U << 0)	/* ring the doorbell after posting */
#define VRNIC_RING_ERROR	(1U << 1)	/* ring's owner is in error */

#define VRNIC_ARM_NONE		0U
#define VRNIC_ARM_NEXT		1U	/* event at the next completion */
#define VRNIC_ARM_SOLICITED	2U	/* at the next solicited or failed one */

/**
 * struct vrnic_sge - a local segment; laid out as struct ibv_sge
 * @addr: virtual address, or offset if the region is zero-based
 * @length: bytes, 0 to 2^31
 * @lkey: the region's local key
 */
struct vrnic_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

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

/**
 * struct vrnic_desc - a descriptor: the first slot of a send request
 * @opcode: enum vrnic_opcode
 * @flags: VRNIC_DESC_*
 * @num_slots: slots that descriptor, segments and inline data take together;
 *	the producer's index moves by it, and so does the engine's
 * @imm: immediate data in network order; or the key to invalidate
 * @flush: FLUSH: VRNIC_FLUSH_*
 * @cookie: comes back in the completion (wr_id)
 * @remote_addr: RDMA, ATOMIC and FLUSH operations: address at the target
 * @ah: UD: what create_ah returned
 * @dest_qpn: UD: queue pair at the target
 * @rkey: remote key
 * @qkey: UD: Q_Key; IBTA 3.5.3: bit 31 set means the sender's own
 * @num_sge: segments, without VRNIC_DESC_INLINE
 * @inline_len: bytes of inline data, with VRNIC_DESC_INLINE
 * @flush_len: FLUSH: bytes
 * @sge: the first segments; the others follow in the next slots
 * @data: inline data; goes on through the next slots
 * @atomic: ATOMIC: @sge receives the 8 bytes that were there;
 *	@swap_add: value to store or add; @compare: value to compare with
 * @bind: BIND_MW: window over [@addr, @addr + @length) of the region @lkey;
 *	@old_rkey names the window, @new_rkey is its key from now on (they differ
 *	in the low 8 bits); @access: IBV_ACCESS_* for the window
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
 * @cookie: comes back in the completion (wr_id)
 * @num_sge: segments that follow
 * @reserved: zero
 * @sge: where the message goes
 *
 * Entries lie struct vrnic_create_*_resp.rq_stride bytes apart.
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

/**
 * struct vrnic_cqe - an entry of a completion ring
 * @cookie: wr_id of the request
 * @qpn: number of the queue pair it was posted to (for an SRQ: received by)
 * @byte_len: bytes received, read or returned
 * @imm: immediate data in network order; or the key that was invalidated
 * @src_qp: UD: sender's queue pair number
 * @timestamp: nanoseconds of CLOCK_MONOTONIC_RAW, if the CQ was made with
 *	VRNIC_CQ_TIMESTAMP, else 0
 * @status: enum ibv_wc_status
 * @opcode: enum ibv_wc_opcode; only valid if @status is success
 * @wc_flags: VRNIC_WC_*
 * @sl: service level of a UD message
 * @pkey_index: of a UD message
 * @slid: zero on Ethernet
 * @vendor_err: enum vrnic_vendor_err: why, in more detail than @status
 * @phase: written last. Entry i of a ring of n is valid once @phase equals
 *	1 + ((i / n) & 1); a new ring's memory is zero. Load it with acquire.
 * @network_hdr: of a UD message: 3 IPv6 header as the GRH, 2 IPv4 header in
 *	its last 20 bytes (the kernel's enum rdma_network_type). Written before
 *	@phase.
 * @reserved0: zero
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
	__u8 reserved0[3];
	__u32 reserved[3];
};

/* enum vrnic_vendor_err - struct vrnic_cqe.vendor_err */
enum vrnic_vendor_err {
	VRNIC_VERR_NONE		= 0,
	VRNIC_VERR_OPCODE	= 1,	/* opcode not valid on this queue pair */
	VRNIC_VERR_SLOTS	= 2,	/* num_slots does not fit the contents */
	VRNIC_VERR_LENGTH	= 3,	/* message too long */
	VRNIC_VERR_KEY		= 4,	/* no region or window has this key */
	VRNIC_VERR_PD		= 5,	/* protection domains differ */
	VRNIC_VERR_ACCESS	= 6,	/* region or window lacks the right */
	VRNIC_VERR_BOUNDS	= 7,	/* offset and length leave the region */
	VRNIC_VERR_ALIGN	= 8,	/* atomic address not a multiple of 8 */
	VRNIC_VERR_PEER		= 9,	/* peer does not answer */
	VRNIC_VERR_RNR		= 10,	/* peer posts no receive */
	VRNIC_VERR_AH		= 11,	/* no such address handle */
	VRNIC_VERR_QP_ACCESS	= 12,	/* queue pair does not allow the operation */
	VRNIC_VERR_RING		= 13,	/* producer index is wild */
	VRNIC_VERR_BIND		= 14,	/* window cannot be bound so */
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
 * @reserved: zero
 */
struct vrnic_alloc_ucontext_resp {
	__u32 abi_version;
	__u32 max_inline;
	__u32 max_sge;
	__u32 reserved;
};

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
 * @ring: the completion ring. After a resize: a new ring; the completions that
 *	were not taken yet are in it from entry 0 on, in order.
 */
struct vrnic_create_cq_resp {
	struct vrnic_ring_info ring;
};

/**
 * struct vrnic_create_qp_resp - answer to create_qp
 * @sq: send ring; stride is VRNIC_SLOT_SIZE, entries are slots
 * @rq: receive ring; all zero if the queue pair uses an SRQ or receives nothing
 *
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
 * struct vrnic_create_ah_resp - answer to create_ah
 * @ah: for struct vrnic_desc.ah
 * @reserved: zero
 */
struct vrnic_create_ah_resp {
	__u32 ah;
	__u32 reserved;
};

/*
 * Driver-specific objects and methods of the uverbs ioctl interface. Their
 * numbers start at UVERBS_ID_DRIVER_NS (1 << 12).
 */
enum vrnic_objects {
	VRNIC_OBJECT_DOORBELL = (1U << 12),
};

enum vrnic_doorbell_methods {
	VRNIC_METHOD_DOORBELL_ALLOC = (1U << 12),
};

enum vrnic_doorbell_alloc_attrs {
	VRNIC_ATTR_DOORBELL_ALLOC_FD = (1U << 12),	/* out: the file */
};

/*
 * The doorbell file: one for each context. VRNIC_DOORBELL takes a queue pair
 * number as its argument (by value) and runs the queue pair's rings in the
 * caller's context within a budget; the rest goes to the engine's threads.
 * Returns 0, or -1 with errno EINVAL (no such queue pair in this context) or
 * EIO (device is gone).
 */
#define VRNIC_DOORBELL		_IO('V', 0x01)

#endif /* RDMA_VRNIC_ABI_H */
