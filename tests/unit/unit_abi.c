// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ABI header, from outside: sizes and offsets are written here as numbers, so
 * that a change which would break an installed library shows as a failure.
 */
#include <stddef.h>
#include <stdint.h>

#include <rdma/vrnic-abi.h>

#include "unit.h"

#define CHECK_OFFSET(offset, type, member) \
	CHECK_EQ(offset, offsetof(struct type, member))

static void ring_header(void)
{
	CHECK_EQ(256, sizeof(struct vrnic_ring_hdr));
	CHECK_OFFSET(0, vrnic_ring_hdr, prod);
	CHECK_OFFSET(64, vrnic_ring_hdr, cons);
	CHECK_OFFSET(128, vrnic_ring_hdr, flags);
	CHECK_OFFSET(192, vrnic_ring_hdr, arm);
	CHECK(sizeof(struct vrnic_ring_hdr) <= VRNIC_RING_DATA);
}

static void descriptor(void)
{
	CHECK_EQ(64, sizeof(struct vrnic_desc));
	CHECK_EQ(VRNIC_SLOT_SIZE, sizeof(struct vrnic_desc));
	CHECK_OFFSET(0, vrnic_desc, opcode);
	CHECK_OFFSET(1, vrnic_desc, flags);
	CHECK_OFFSET(2, vrnic_desc, num_slots);
	CHECK_OFFSET(4, vrnic_desc, imm);
	CHECK_OFFSET(4, vrnic_desc, flush);
	CHECK_OFFSET(8, vrnic_desc, cookie);
	CHECK_OFFSET(16, vrnic_desc, remote_addr);
	CHECK_OFFSET(16, vrnic_desc, ah);
	CHECK_OFFSET(20, vrnic_desc, dest_qpn);
	CHECK_OFFSET(24, vrnic_desc, rkey);
	CHECK_OFFSET(24, vrnic_desc, qkey);
	CHECK_OFFSET(28, vrnic_desc, num_sge);
	CHECK_OFFSET(28, vrnic_desc, inline_len);
	CHECK_OFFSET(28, vrnic_desc, flush_len);
	CHECK_OFFSET(32, vrnic_desc, sge);
	CHECK_OFFSET(32, vrnic_desc, data);
}

static void descriptor_variants(void)
{
	CHECK_OFFSET(32, vrnic_desc, atomic.sge);
	CHECK_OFFSET(48, vrnic_desc, atomic.swap_add);
	CHECK_OFFSET(56, vrnic_desc, atomic.compare);
	CHECK_OFFSET(32, vrnic_desc, bind.addr);
	CHECK_OFFSET(40, vrnic_desc, bind.length);
	CHECK_OFFSET(48, vrnic_desc, bind.lkey);
	CHECK_OFFSET(52, vrnic_desc, bind.old_rkey);
	CHECK_OFFSET(56, vrnic_desc, bind.new_rkey);
	CHECK_OFFSET(60, vrnic_desc, bind.access);
	CHECK_OFFSET(32, vrnic_desc, reg.mr);
	CHECK_OFFSET(40, vrnic_desc, reg.key);
	CHECK_OFFSET(44, vrnic_desc, reg.access);
}

/* What a descriptor may carry fits the slots that it may take. */
static void slots(void)
{
	CHECK_EQ(16, sizeof(struct vrnic_sge));
	CHECK_EQ(VRNIC_DESC_DATA, VRNIC_DESC_SGES * sizeof(struct vrnic_sge));
	CHECK_EQ(VRNIC_SLOT_SIZE, VRNIC_SLOT_SGES * sizeof(struct vrnic_sge));
	CHECK_EQ(VRNIC_MAX_INLINE, VRNIC_DESC_DATA +
		 (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SIZE);
	CHECK(VRNIC_MAX_SGE <= VRNIC_DESC_SGES +
	      (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SGES);
}

static void receive_descriptor(void)
{
	CHECK_EQ(16, sizeof(struct vrnic_recv_desc));
	CHECK_OFFSET(0, vrnic_recv_desc, cookie);
	CHECK_OFFSET(8, vrnic_recv_desc, num_sge);
	CHECK_OFFSET(16, vrnic_recv_desc, sge);
}

static void completion(void)
{
	CHECK_EQ(64, sizeof(struct vrnic_cqe));
	CHECK_OFFSET(0, vrnic_cqe, cookie);
	CHECK_OFFSET(8, vrnic_cqe, qpn);
	CHECK_OFFSET(12, vrnic_cqe, byte_len);
	CHECK_OFFSET(16, vrnic_cqe, imm);
	CHECK_OFFSET(20, vrnic_cqe, src_qp);
	CHECK_OFFSET(24, vrnic_cqe, timestamp);
	CHECK_OFFSET(32, vrnic_cqe, status);
	CHECK_OFFSET(33, vrnic_cqe, opcode);
	CHECK_OFFSET(34, vrnic_cqe, wc_flags);
	CHECK_OFFSET(35, vrnic_cqe, sl);
	CHECK_OFFSET(36, vrnic_cqe, pkey_index);
	CHECK_OFFSET(38, vrnic_cqe, slid);
	CHECK_OFFSET(40, vrnic_cqe, vendor_err);
	CHECK_OFFSET(44, vrnic_cqe, phase);
	CHECK_OFFSET(48, vrnic_cqe, network_hdr);
	CHECK_OFFSET(49, vrnic_cqe, flags);
	CHECK_OFFSET(50, vrnic_cqe, vlan);
	CHECK_OFFSET(52, vrnic_cqe, sq_done);
}

static void answers(void)
{
	CHECK_EQ(24, sizeof(struct vrnic_ring_info));
	CHECK_EQ(16, sizeof(struct vrnic_alloc_ucontext_resp));
	CHECK_OFFSET(12, vrnic_alloc_ucontext_resp, features);
	CHECK_EQ(8, sizeof(struct vrnic_create_cq_req));
	CHECK_EQ(24, sizeof(struct vrnic_create_cq_resp));
	CHECK_EQ(48, sizeof(struct vrnic_create_qp_resp));
	CHECK_EQ(32, sizeof(struct vrnic_create_srq_resp));
	CHECK_EQ(16, sizeof(struct vrnic_resize_srq_req));
	CHECK_EQ(8, sizeof(struct vrnic_create_ah_resp));
	CHECK_EQ(24, sizeof(struct vrnic_dm_info));
}

/* Numbers that are on disk in every built program. */
static void numbers(void)
{
	CHECK_EQ(2, VRNIC_ABI_VERSION);
	CHECK(VRNIC_ABI_OLDEST <= VRNIC_ABI_VERSION);
	CHECK_EQ(1, VRNIC_OP_SEND);
	CHECK_EQ(4, VRNIC_OP_RDMA_WRITE);
	CHECK_EQ(6, VRNIC_OP_RDMA_READ);
	CHECK_EQ(13, VRNIC_OP_REG_MR);
	CHECK_EQ(1, VRNIC_DESC_FENCE);
	CHECK_EQ(2, VRNIC_DESC_SIGNALED);
	CHECK_EQ(4, VRNIC_DESC_SOLICITED);
	CHECK_EQ(8, VRNIC_DESC_INLINE);
	CHECK_EQ(14, VRNIC_VERR_BIND);
	CHECK_EQ(0xd601, VRNIC_DOORBELL);
	CHECK_EQ(0xd602, VRNIC_ADVANCE);
	CHECK_EQ(0x4018d603, VRNIC_WAIT);
}

static const struct unit_test tests[] = {
	UNIT(ring_header), UNIT(descriptor), UNIT(descriptor_variants),
	UNIT(slots), UNIT(receive_descriptor), UNIT(completion), UNIT(answers),
	UNIT(numbers),
};

UNIT_MAIN(tests)
