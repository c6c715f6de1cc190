/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The operation that a send ring is working on. */
#ifndef VRNIC_OP_H
#define VRNIC_OP_H

#include <linux/types.h>
#include <rdma/vrnic-abi.h>

struct vrnic_opdef;

/**
 * struct vrnic_op - the descriptor that a send ring is working on
 * @active: there is a descriptor
 * @info: row of its opcode; NULL if the opcode is not known
 * @total: bytes of its message
 * @done: bytes moved by earlier bursts
 * @moved: all bytes were moved and their memory may be gone, but the operation is not complete
 * @status: enum ib_wc_status, if the operation failed
 * @vendor_err: enum vrnic_vendor_err, if the operation failed
 * @rnr_left: RNR retries left; 7 means for ever
 * @retry_left: transport retries left
 * @tries: a datagram: how often its target was locked by another runner
 * @member: a datagram to a group: members below this number have their copy
 * @slots: private copy of the descriptor and of its slots
 *
 * The run bit of the queue pair protects all members.
 */
struct vrnic_op {
	bool active;
	const struct vrnic_opdef *info;
	u64 total;
	u64 done;
	bool moved;
	u8 status;
	u8 vendor_err;
	u8 rnr_left;
	u8 retry_left;
	u8 tries;
	unsigned long member;
	u8 slots[VRNIC_MAX_SLOTS * VRNIC_SLOT_SIZE] __aligned(8);
};

static inline struct vrnic_desc *vrnic_op_desc(struct vrnic_op *op)
{
	return (struct vrnic_desc *)op->slots;
}

#endif /* VRNIC_OP_H */
