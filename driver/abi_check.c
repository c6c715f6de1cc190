// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Checks that the sizes and offsets that libraries were built with stay the same. */

#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <rdma/ib_verbs.h>
#include <rdma/vrnic-abi.h>

#define CHECK_OFFSET(type, field, offset) \
	static_assert(offsetof(struct type, field) == (offset))

static_assert(sizeof(struct vrnic_ring_hdr) == 256);
CHECK_OFFSET(vrnic_ring_hdr, prod, 0);
CHECK_OFFSET(vrnic_ring_hdr, cons, 64);
CHECK_OFFSET(vrnic_ring_hdr, flags, 128);
CHECK_OFFSET(vrnic_ring_hdr, arm, 192);
CHECK_OFFSET(vrnic_ring_hdr, told, 196);

static_assert(sizeof(struct vrnic_sge) == 16);
static_assert(sizeof(struct vrnic_desc) == VRNIC_SLOT_SIZE);
CHECK_OFFSET(vrnic_desc, num_slots, 2);
CHECK_OFFSET(vrnic_desc, imm, 4);
CHECK_OFFSET(vrnic_desc, cookie, 8);
CHECK_OFFSET(vrnic_desc, remote_addr, 16);
CHECK_OFFSET(vrnic_desc, rkey, 24);
CHECK_OFFSET(vrnic_desc, num_sge, 28);
CHECK_OFFSET(vrnic_desc, sge, 32);
CHECK_OFFSET(vrnic_desc, data, 32);
CHECK_OFFSET(vrnic_desc, atomic.swap_add, 48);
CHECK_OFFSET(vrnic_desc, atomic.compare, 56);
CHECK_OFFSET(vrnic_desc, bind.access, 60);

static_assert(sizeof(struct vrnic_recv_desc) == 16);
static_assert(sizeof(struct vrnic_cqe) == 64);
CHECK_OFFSET(vrnic_cqe, timestamp, 24);
CHECK_OFFSET(vrnic_cqe, status, 32);
CHECK_OFFSET(vrnic_cqe, vendor_err, 40);
CHECK_OFFSET(vrnic_cqe, phase, 44);
CHECK_OFFSET(vrnic_cqe, flags, 49);
CHECK_OFFSET(vrnic_cqe, sq_done, 52);

static_assert(sizeof(struct vrnic_ring_info) == 24);
static_assert(sizeof(struct vrnic_alloc_ucontext_resp) == 16);
static_assert(sizeof(struct vrnic_create_cq_req) == 8);
static_assert(sizeof(struct vrnic_create_cq_resp) == 24);
static_assert(sizeof(struct vrnic_create_qp_req) == 48);
CHECK_OFFSET(vrnic_create_qp_req, rx_hash_key, 8);
static_assert(sizeof(struct vrnic_create_qp_resp) == 48);
static_assert(sizeof(struct vrnic_create_srq_resp) == 32);
static_assert(sizeof(struct vrnic_resize_srq_req) == 16);
static_assert(sizeof(struct vrnic_create_ah_resp) == 8);
static_assert(sizeof(struct vrnic_dm_info) == 24);

static_assert(sizeof(struct vrnic_ndesc) == VRNIC_SLOT_SIZE);
CHECK_OFFSET(vrnic_ndesc, num_slots, 2);
CHECK_OFFSET(vrnic_ndesc, endpoint, 4);
CHECK_OFFSET(vrnic_ndesc, cookie, 8);
CHECK_OFFSET(vrnic_ndesc, length, 16);
CHECK_OFFSET(vrnic_ndesc, local_addr, 24);
CHECK_OFFSET(vrnic_ndesc, remote_addr, 32);
CHECK_OFFSET(vrnic_ndesc, lkey, 40);
CHECK_OFFSET(vrnic_ndesc, rkey, 44);
CHECK_OFFSET(vrnic_ndesc, local_counter, 48);
CHECK_OFFSET(vrnic_ndesc, arg, 60);
static_assert(sizeof(struct vrnic_ndesc_rmw) == VRNIC_SLOT_SIZE);
static_assert(sizeof(struct vrnic_ndesc_typed) == VRNIC_SLOT_SIZE);
static_assert(sizeof(struct vrnic_record) == VRNIC_SLOT_SIZE);
CHECK_OFFSET(vrnic_record, length, 8);
CHECK_OFFSET(vrnic_record, cookie, 16);
CHECK_OFFSET(vrnic_record, failed_cookie, 32);
CHECK_OFFSET(vrnic_record, task, 52);
CHECK_OFFSET(vrnic_record, host, 56);
static_assert(sizeof(struct vrnic_counter_cell) == 64);
CHECK_OFFSET(vrnic_counter_cell, errors, 8);
CHECK_OFFSET(vrnic_counter_cell, cookie, 24);
CHECK_OFFSET(vrnic_counter_cell, turn, 40);
static_assert(sizeof(struct vrnic_comp_cell) == 64);
CHECK_OFFSET(vrnic_comp_cell, errors, 8);
static_assert(sizeof(struct vrnic_create_comp_cntr_resp) == 16);
static_assert(sizeof(struct vrnic_group_cell) == 64);
CHECK_OFFSET(vrnic_group_cell, failed, 8);
static_assert(sizeof(struct vrnic_address) == 32);
static_assert(sizeof(struct vrnic_create_fifo_req) == 64);
static_assert(sizeof(struct vrnic_create_fifo_resp) == 80);
static_assert(sizeof(struct vrnic_lookup_req) == 40);
static_assert(sizeof(struct vrnic_create_endpoint_resp) == 16);
static_assert(sizeof(struct vrnic_create_counter_req) == 8);
static_assert(sizeof(struct vrnic_create_counter_resp) == 16);
static_assert(sizeof(struct vrnic_create_group_req) == 8);
static_assert(sizeof(struct vrnic_create_group_resp) == 16);
static_assert(sizeof(struct vrnic_type_row) == 32);
static_assert(sizeof(struct vrnic_create_type_req) == 16);
static_assert(sizeof(struct vrnic_create_type_resp) == 8);
static_assert(sizeof(struct vrnic_wait) == 24);
static_assert(sizeof(struct vrnic_count) == 32);
static_assert(sizeof(struct vrnic_wait_group) == 40);

/* A kernel consumer's send_flags become descriptor flags unchanged: verbs/post.c. */
static_assert(VRNIC_DESC_FENCE == IB_SEND_FENCE);
static_assert(VRNIC_DESC_SIGNALED == IB_SEND_SIGNALED);
static_assert(VRNIC_DESC_SOLICITED == IB_SEND_SOLICITED);
static_assert(VRNIC_DESC_INLINE == IB_SEND_INLINE);

/* Page tables of regions and requests of kernel consumers hold kernel addresses as __u64. */
static_assert(sizeof(void *) == sizeof(__u64));

/* The engine's private copy, VRNIC_MAX_SLOTS slots, holds the largest verbs request. */
static_assert(VRNIC_DESC_DATA + (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SIZE ==
	      VRNIC_MAX_INLINE);
static_assert(VRNIC_DESC_SGES + (VRNIC_MAX_SLOTS - 1) * VRNIC_SLOT_SGES >=
	      VRNIC_MAX_SGE);
