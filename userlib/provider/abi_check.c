// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the provider takes for granted about the ABI, checked when compiled. */

#include <assert.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <rdma/vrnic-abi.h>

#define SIZE(type, size)						       \
	static_assert(sizeof(struct type) == (size), "size of struct " #type)
#define AT(type, member, offset)					       \
	static_assert(offsetof(struct type, member) == (offset),	       \
		      "offset of " #type "." #member)

SIZE(vrnic_ring_hdr, 256);
AT(vrnic_ring_hdr, prod, 0);
AT(vrnic_ring_hdr, cons, 64);
AT(vrnic_ring_hdr, flags, 128);
AT(vrnic_ring_hdr, arm, 192);
AT(vrnic_ring_hdr, told, 196);

SIZE(vrnic_sge, 16);
SIZE(vrnic_sge, sizeof(struct ibv_sge));
AT(vrnic_sge, addr, offsetof(struct ibv_sge, addr));
AT(vrnic_sge, length, offsetof(struct ibv_sge, length));
AT(vrnic_sge, lkey, offsetof(struct ibv_sge, lkey));

SIZE(vrnic_desc, VRNIC_SLOT_SIZE);
AT(vrnic_desc, opcode, 0);
AT(vrnic_desc, flags, 1);
AT(vrnic_desc, num_slots, 2);
AT(vrnic_desc, imm, 4);
AT(vrnic_desc, flush, 4);
AT(vrnic_desc, cookie, 8);
AT(vrnic_desc, remote_addr, 16);
AT(vrnic_desc, ah, 16);
AT(vrnic_desc, dest_qpn, 20);
AT(vrnic_desc, rkey, 24);
AT(vrnic_desc, qkey, 24);
AT(vrnic_desc, num_sge, 28);
AT(vrnic_desc, inline_len, 28);
AT(vrnic_desc, flush_len, 28);
AT(vrnic_desc, sge, 32);
AT(vrnic_desc, data, 32);
AT(vrnic_desc, atomic.sge, 32);
AT(vrnic_desc, atomic.swap_add, 48);
AT(vrnic_desc, atomic.compare, 56);
AT(vrnic_desc, bind.addr, 32);
AT(vrnic_desc, bind.length, 40);
AT(vrnic_desc, bind.lkey, 48);
AT(vrnic_desc, bind.old_rkey, 52);
AT(vrnic_desc, bind.new_rkey, 56);
AT(vrnic_desc, bind.access, 60);

SIZE(vrnic_recv_desc, 16);
AT(vrnic_recv_desc, num_sge, 8);
AT(vrnic_recv_desc, sge, 16);

SIZE(vrnic_cqe, 64);
AT(vrnic_cqe, cookie, 0);
AT(vrnic_cqe, qpn, 8);
AT(vrnic_cqe, byte_len, 12);
AT(vrnic_cqe, imm, 16);
AT(vrnic_cqe, src_qp, 20);
AT(vrnic_cqe, timestamp, 24);
AT(vrnic_cqe, status, 32);
AT(vrnic_cqe, opcode, 33);
AT(vrnic_cqe, wc_flags, 34);
AT(vrnic_cqe, sl, 35);
AT(vrnic_cqe, pkey_index, 36);
AT(vrnic_cqe, slid, 38);
AT(vrnic_cqe, vendor_err, 40);
AT(vrnic_cqe, phase, 44);
AT(vrnic_cqe, network_hdr, 48);
AT(vrnic_cqe, flags, 49);
AT(vrnic_cqe, vlan, 50);
AT(vrnic_cqe, sq_done, 52);

SIZE(vrnic_ring_info, 24);
AT(vrnic_ring_info, bytes, 8);
AT(vrnic_ring_info, entries, 16);
AT(vrnic_ring_info, stride, 20);
SIZE(vrnic_alloc_ucontext_resp, 16);
AT(vrnic_alloc_ucontext_resp, features, 12);
SIZE(vrnic_create_cq_req, 8);
SIZE(vrnic_create_cq_resp, 24);
SIZE(vrnic_comp_cell, 64);
AT(vrnic_comp_cell, errors, 8);
SIZE(vrnic_create_comp_cntr_resp, 16);
AT(vrnic_create_comp_cntr_resp, cell, 8);
SIZE(vrnic_create_qp_req, 48);
AT(vrnic_create_qp_req, rx_hash_function, 4);
AT(vrnic_create_qp_req, rx_hash_key, 8);
SIZE(vrnic_create_qp_resp, 48);
AT(vrnic_create_qp_resp, rq, 24);
SIZE(vrnic_create_srq_resp, 32);
AT(vrnic_create_srq_resp, srqn, 24);
SIZE(vrnic_resize_srq_req, 16);
SIZE(vrnic_create_ah_resp, 8);
SIZE(vrnic_dm_info, 24);
AT(vrnic_dm_info, bytes, 8);
AT(vrnic_dm_info, length, 16);

#define SAME(a, b)	static_assert((a) == (b), #a " is not " #b)

/* The provider copies flags, status and opcodes between verbs and descriptors as they are. */
SAME(VRNIC_DESC_FENCE, IBV_SEND_FENCE);
SAME(VRNIC_DESC_SIGNALED, IBV_SEND_SIGNALED);
SAME(VRNIC_DESC_SOLICITED, IBV_SEND_SOLICITED);
SAME(VRNIC_DESC_INLINE, IBV_SEND_INLINE);
#ifdef HAVE_FLUSH
SAME(VRNIC_FLUSH_GLOBAL, IBV_FLUSH_GLOBAL);
SAME(VRNIC_FLUSH_PERSISTENT, IBV_FLUSH_PERSISTENT);
#endif
static_assert(IBV_WC_RECV_RDMA_WITH_IMM <= UINT8_MAX, "completion opcodes");

/* The largest request of each kind fits the slots that a descriptor may have. */
SAME(VRNIC_DESC_DATA + (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SIZE, VRNIC_MAX_INLINE);
static_assert(VRNIC_DESC_SGES + (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SGES >=
	      VRNIC_MAX_SGE, "segment limit");
