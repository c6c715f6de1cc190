// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the library takes for granted about the ABI, checked when compiled. */

#include <assert.h>
#include <stddef.h>

#include "pace.h"

#define SIZE(type, size)						       \
	static_assert(sizeof(struct type) == (size), "size of struct " #type)
#define AT(type, member, offset)					       \
	static_assert(offsetof(struct type, member) == (offset),	       \
		      "offset of " #type "." #member)

SIZE(vrnic_ring_hdr, 256);
AT(vrnic_ring_hdr, cons, 64);
AT(vrnic_ring_hdr, flags, 128);
AT(vrnic_ring_hdr, arm, 192);
SIZE(vrnic_ring_info, 24);

SIZE(vrnic_ndesc, VRNIC_SLOT_SIZE);
AT(vrnic_ndesc, num_slots, 2);
AT(vrnic_ndesc, endpoint, 4);
AT(vrnic_ndesc, cookie, 8);
AT(vrnic_ndesc, length, 16);
AT(vrnic_ndesc, local_addr, 24);
AT(vrnic_ndesc, remote_addr, 32);
AT(vrnic_ndesc, lkey, 40);
AT(vrnic_ndesc, rkey, 44);
AT(vrnic_ndesc, header_len, 44);
AT(vrnic_ndesc, local_counter, 48);
AT(vrnic_ndesc, remote_counter, 52);
AT(vrnic_ndesc, target_counter, 56);
AT(vrnic_ndesc, arg, 60);
SIZE(vrnic_ndesc_rmw, VRNIC_SLOT_SIZE);
SIZE(vrnic_ndesc_typed, VRNIC_SLOT_SIZE);

SIZE(vrnic_record, VRNIC_SLOT_SIZE);
AT(vrnic_record, num_slots, 4);
AT(vrnic_record, header_len, 6);
AT(vrnic_record, length, 8);
AT(vrnic_record, arg, 12);
AT(vrnic_record, cookie, 16);
AT(vrnic_record, value, 24);
AT(vrnic_record, failed_cookie, 32);
AT(vrnic_record, endpoint, 40);
AT(vrnic_record, vendor_err, 44);
AT(vrnic_record, source, 48);
AT(vrnic_record, task, 52);
AT(vrnic_record, host, 56);

SIZE(vrnic_counter_cell, 64);
AT(vrnic_counter_cell, errors, 8);
AT(vrnic_counter_cell, status, 12);
AT(vrnic_counter_cell, opcode, 13);
AT(vrnic_counter_cell, vendor_err, 16);
AT(vrnic_counter_cell, cookie, 24);
AT(vrnic_counter_cell, placed, 32);
AT(vrnic_counter_cell, turn, 40);
SIZE(vrnic_group_cell, 64);
AT(vrnic_group_cell, failed, 8);

SIZE(vrnic_address, 32);
SIZE(vrnic_create_fifo_req, 64);
SIZE(vrnic_create_fifo_resp, 80);
SIZE(vrnic_lookup_req, 40);
SIZE(vrnic_create_endpoint_resp, 16);
AT(vrnic_create_endpoint_resp, host, 8);
SIZE(vrnic_create_counter_req, 8);
SIZE(vrnic_create_counter_resp, 16);
SIZE(vrnic_create_group_req, 8);
SIZE(vrnic_create_group_resp, 16);
SIZE(vrnic_type_row, 32);
SIZE(vrnic_create_type_req, 16);
SIZE(vrnic_create_type_resp, 8);
SIZE(vrnic_wait, 24);
SIZE(vrnic_count, 32);
SIZE(vrnic_wait_group, 40);

/* Programs are compiled with these: members stay where they are, new ones go to the end. */
AT(vrnic_context_attr, comp_mask, 0);
AT(vrnic_message, comp_mask, 0);
AT(vrnic_message, peer, 8);
AT(vrnic_error, comp_mask, 0);
AT(vrnic_error, opcode, 36);
AT(vrnic_status, comp_mask, 0);
AT(vrnic_status, opcode, 32);
AT(vrnic_type_info, comp_mask, 0);
AT(vrnic_type_info, rows, 40);
AT(vrnic_done, comp_mask, 0);
AT(vrnic_wr, comp_mask, 0);
AT(vrnic_typed_wr, comp_mask, 0);
AT(vrnic_rmw_wr, comp_mask, 0);
AT(vrnic_rmw_wr, compare, 24);
AT(vrnic_send_wr, comp_mask, 0);
AT(vrnic_send_wr, id, 40);
AT(vrnic_send_wr, mr, 48);
AT(vrnic_rts_wr, comp_mask, 0);
AT(vrnic_accept_wr, comp_mask, 0);

/* The origin's library sends an offer to the target's library as it lies in memory. */
SIZE(vrnic_offer, 56);
AT(vrnic_offer, length, 8);
AT(vrnic_offer, remote, 16);
AT(vrnic_offer, table, 24);
AT(vrnic_offer, rkey, 32);
AT(vrnic_offer, id, 44);
AT(vrnic_offer, counter, 48);

/* Programs copy these structs, so they never grow. */
SIZE(vrnic_peer, 16);
SIZE(vrnic_rts, 128);
AT(vrnic_rts, counter, 64);
