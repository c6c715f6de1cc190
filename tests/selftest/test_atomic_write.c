// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ATOMIC WRITE, which exists in the extended post alone. */
#include "harness.h"

#define LEN	8192

FIXTURE(atomic_write)
{
	struct bed bed;
};

FIXTURE_SETUP(atomic_write)
{
	struct pair_opts opts = {
		.send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE |
			    IBV_QP_EX_WITH_RDMA_READ,
	};

	if (!dev_advertises(DEVICE_ATOMIC_WRITE))
		SKIP(return, "the device does not advertise ATOMIC WRITE");
	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
}

FIXTURE_TEARDOWN(atomic_write)
{
	if (self->bed.a)
		EXPECT_OK(bed_close(&self->bed));
}

static int atomic_write(struct bed *bed, size_t off, uint64_t value,
			uint32_t rkey)
{
	struct ibv_qp_ex *qp = bed->a->qpx;
	int ret;

	ibv_wr_start(qp);
	qp->wr_id = off;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, rkey, (uintptr_t)bed->dst.addr + off, &value);
	ret = ibv_wr_complete(qp);
	return ret ? -abs(ret) : wait_send(bed->a);
}

TEST_F(atomic_write, stores_eight_bytes)
{
	struct bed *bed = &self->bed;
	uint64_t value = 0x0123456789abcdef;

	ASSERT_DONE(atomic_write(bed, 4088, value, bed->dst.mr->rkey));
	EXPECT_EQ(IBV_WC_ATOMIC_WRITE, bed->a->wc.opcode);
	EXPECT_EQ(4088, bed->a->wc.wr_id);
	EXPECT_OK(memcmp(&value, bed->dst.addr + 4088, 8));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 4088, 0));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 4096, LEN - 4096, 0));
}

TEST_F(atomic_write, misaligned_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      atomic_write(bed, 4, ~0ULL, bed->dst.mr->rkey));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
}

TEST_F(atomic_write, wrong_key_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      atomic_write(bed, 0, ~0ULL, bed->dst.mr->rkey ^ 0x10));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
}

TEST_F(atomic_write, beyond_the_region_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      atomic_write(bed, LEN, ~0ULL, bed->dst.mr->rkey));
}

TEST_F(atomic_write, needs_remote_write)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN,
				       IBV_ACCESS_REMOTE_READ);

	ASSERT_NE(NULL, mr);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      atomic_write(bed, 0, ~0ULL, mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_HARNESS_MAIN
