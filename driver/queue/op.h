/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The operation that a send ring is working on. */
#ifndef VRNIC_OP_H
#define VRNIC_OP_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

struct vrnic_opdef;

/* What an operation waits for until vrnic_runnable.wait_until, if it is not for its rate. */
enum vrnic_op_wait {
	VRNIC_WAIT_RNR,		/* the peer has no receive posted */
	VRNIC_WAIT_PEER,	/* no queue pair of this host is connected to this one */
	VRNIC_WAIT_BUSY,	/* another runner has locked the target */
	VRNIC_WAIT_KEY,		/* a run uses the region that is to change */
	VRNIC_WAIT_WIRE,	/* the sockets are being opened */
	VRNIC_WAIT_FULL,	/* the queue of the interface is full: raw packets */
	VRNIC_WAIT_PAGE,	/* memory that is paged on demand is being brought in */
};

/**
 * struct vrnic_op - the descriptor that a send ring is working on
 * @active: there is a descriptor
 * @info: its row in the opcode table; NULL: not checked yet, or the opcode is unknown
 * @total: bytes of its message
 * @done: bytes moved by earlier runs
 * @moved: all bytes are in the receive; only an invalidation is left. The source may be gone
 * @status: enum ib_wc_status, if the operation failed
 * @vendor_err: enum vrnic_vendor_err, if the operation failed
 * @rnr_left: RNR retries left; 7 means for ever
 * @retry_left: transport retries left
 * @waits: enum vrnic_op_wait; valid while the operation waits. For operators: see vrnic_fill_qp()
 * @tries: how often it had to wait, one time after the other: a datagram, as another runner had
 *	locked its target, a raw packet, for the interface, or any operation, for a page
 * @srqn: XRC: number of the SRQ at the target; 0: the descriptor names none
 * @member: of a datagram to a group: group members below this number were served. Of a raw packet
 *	to a group: not 0 if they were
 * @slots: private copy of the descriptor and of its further slots: in struct vrnic_scratch
 *
 * The queue pair's run bit protects this structure.
 */
struct vrnic_op {
	/* together: what vrnic_sq_fetch() sets, which takes fewer stores so */
	bool active;
	bool moved;
	u8 status;
	u8 vendor_err;
	u32 srqn;
	const struct vrnic_opdef *info;
	u64 total;
	u64 done;
	unsigned long member;
	u8 tries;
	u8 rnr_left;
	u8 retry_left;
	u8 waits;
	u8 *slots;
};

static inline struct vrnic_desc *vrnic_op_desc(struct vrnic_op *op)
{
	return (struct vrnic_desc *)op->slots;
}

#endif /* VRNIC_OP_H */
