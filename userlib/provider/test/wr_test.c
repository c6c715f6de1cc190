// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posts with ibv_wr_start() and what follows it. */

#include <errno.h>
#include <stdio.h>

#include "ring_test.h"

void test_wr_batch(void)
{
	struct ibv_sge sge[30];
	struct fixture f;

	make_sges(sge, 30);
	qp_make(&f, IBV_QPT_RC, 16, 14);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	ibv_wr_start(f.ex);
	f.ex->wr_id = 1;
	f.ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ibv_wr_rdma_write(f.ex, 9, 0x100);
	ibv_wr_set_sge_list(f.ex, 10, sge);
	f.ex->wr_id = 2;
	ibv_wr_rdma_read(f.ex, 9, 0x100);
	ibv_wr_set_sge(f.ex, 1, 2, 3);
	CHECK(prod(&f) == 14 && !doorbells);
	CHECK(!ibv_wr_complete(f.ex));
	CHECK(prod(&f) == 18 && doorbells == 1);
	CHECK(desc_at(&f, 14)->flags == VRNIC_DESC_SIGNALED);
	CHECK(desc_at(&f, 14)->num_slots == 3 && desc_at(&f, 14)->num_sge == 10);
	check_sges(&f, 14, sge, 10);
	CHECK(desc_at(&f, 17)->cookie == 2 && desc_at(&f, 17)->num_sge == 1);
	qp_free(&f);
}

void test_wr_flush(void)
{
#ifdef HAVE_FLUSH
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 16, 14);
	ibv_wr_start(f.ex);
	ibv_wr_flush(f.ex, 9, 0x100, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	ibv_wr_set_sge(f.ex, 1, 2, 3);
	CHECK(!ibv_wr_complete(f.ex));
	CHECK(desc_at(&f, 14)->num_slots == 1);
	CHECK(desc_at(&f, 14)->flush_len == 64);
	CHECK(desc_at(&f, 14)->flush == (VRNIC_FLUSH_GLOBAL | VRNIC_FLUSH_MR));
	qp_free(&f);
#else
	puts("# libibverbs has no FLUSH");
#endif
}

/* An error anywhere undoes the batch, and the next batch is not affected. */
void test_wr_undo(void)
{
	struct ibv_sge sge[31];
	struct fixture f;

	make_sges(sge, 31);
	qp_make(&f, IBV_QPT_RC, 8, 3);
	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_sge_list(f.ex, 31, sge);
	ibv_wr_send(f.ex);
	ibv_wr_set_inline_data(f.ex, sge, 10);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);
	CHECK(prod(&f) == 3 && f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	for (int i = 0; i < 9; i++)
		ibv_wr_send(f.ex);
	CHECK(ibv_wr_complete(f.ex) == ENOMEM && f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_sge_list(f.ex, 30, sge);
	ibv_wr_abort(f.ex);
	CHECK(f.qp.sq.next == 3);

	ibv_wr_start(f.ex);
	ibv_wr_atomic_cmp_swp(f.ex, 1, 8, 2, 3);
	ibv_wr_set_sge_list(f.ex, 2, sge);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);

	ibv_wr_start(f.ex);
	ibv_wr_send(f.ex);
	ibv_wr_set_ud_addr(f.ex, NULL, 1, 2);
	CHECK(ibv_wr_complete(f.ex) == EINVAL);

	ibv_wr_start(f.ex);
	ibv_wr_atomic_cmp_swp(f.ex, 1, 8, 2, 3);
	ibv_wr_set_sge(f.ex, 7, 0x1000, 8);
	CHECK(!ibv_wr_complete(f.ex) && prod(&f) == 4);
	CHECK(desc_at(&f, 3)->atomic.compare == 2 &&
	      desc_at(&f, 3)->atomic.swap_add == 3);
	qp_free(&f);
}
