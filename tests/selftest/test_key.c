// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys: wrong ones, ones without the right, ranges that leave the region. Each
 * must end in the proper status, touch nothing, and leave the device usable.
 */
#include "harness.h"

#define LEN	8192

BED(key, LEN);

/* The request failed as it should, on both sides, and moved nothing. */
#define EXPECT_REFUSED(status, request)					\
	do {								\
		EXPECT_STATUS(status, request);				\
		EXPECT_EQ(-1, buf_is_not(&self->bed.dst, 0, LEN, 0));	\
		EXPECT_OK(qp_wait(self->bed.a->qp, IBV_QPS_ERR));	\
	} while (0)

#define WRITE(...)							\
	RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .local = &self->bed.src, \
	    .remote = &self->bed.dst, .len = 64, __VA_ARGS__)
#define READ(...)							\
	RUN(self->bed.a, .op = IBV_WR_RDMA_READ, .local = &self->bed.src, \
	    .remote = &self->bed.dst, .len = 64, __VA_ARGS__)

TEST_F(key, wrong_rkey)
{
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR,
		       WRITE(.rkey = self->bed.dst.mr->rkey ^ 0x55));
	/* IBTA 9.9.3: the responder's queue pair goes to error as well */
	EXPECT_OK(qp_wait(self->bed.b->qp, IBV_QPS_ERR));
}

TEST_F(key, wrong_index)
{
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR,
		       WRITE(.rkey = self->bed.dst.mr->rkey ^ 0x7fff0000));
}

TEST_F(key, all_ones)
{
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR, WRITE(.rkey = ~0u));
}

TEST_F(key, small_numbers)
{
	unsigned int i;

	memset(self->bed.src.addr, 1, LEN);
	for (i = 1; i < 64; i++) {
		if (i == self->bed.dst.mr->rkey)
			continue;
		EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR, WRITE(.rkey = i));
		ASSERT_OK(qp_to(self->bed.a->qp, IBV_QPS_RESET));
		ASSERT_OK(qp_to(self->bed.b->qp, IBV_QPS_RESET));
		ASSERT_OK(pair_connect(&self->bed.pair));
	}
}

TEST_F(key, wrong_lkey)
{
	EXPECT_REFUSED(IBV_WC_LOC_PROT_ERR,
		       WRITE(.lkey = self->bed.src.mr->lkey ^ 0x55));
	/* Nothing was sent: the responder does not know */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->bed.b->qp));
}

TEST_F(key, stale_rkey)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN,
				       ACCESS_REMOTE);
	uint32_t rkey;

	ASSERT_NE(NULL, mr);
	rkey = mr->rkey;
	ASSERT_OK(ibv_dereg_mr(mr));
	mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	EXPECT_NE(rkey, mr->rkey);
	memset(bed->src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR, WRITE(.rkey = rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(key, responder_reports_the_access_error)
{
	struct ibv_async_event event = {};

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, WRITE(.rkey = ~0u));
	EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR,
		  wait_event(self->bed.b->dev->ctx, &event));
	EXPECT_EQ(self->bed.b->qp, event.element.qp);
}

TEST_F(key, device_works_after_errors)
{
	struct pair pair;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, WRITE(.rkey = ~0u));
	ASSERT_OK(bed_pair_open(&self->bed, &pair, NULL));
	ASSERT_OK(pair_connect(&pair));
	buf_fill(&self->bed.src, 1);
	EXPECT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &self->bed.src, .remote = &self->bed.dst));
	EXPECT_EQ(-1, buf_differs(&self->bed.dst, 0, LEN, 1, 0));
	EXPECT_OK(pair_close(&pair));
}

/* Ranges, as offsets from the region's start; they all leave the region. */
FIXTURE(range)
{
	struct bed bed;
};

FIXTURE_VARIANT(range)
{
	int64_t off;
	size_t len;
};

FIXTURE_VARIANT_ADD(range, one_byte_too_long) { .off = 0, .len = LEN + 1 };
FIXTURE_VARIANT_ADD(range, one_byte_late) { .off = 1, .len = LEN };
FIXTURE_VARIANT_ADD(range, one_byte_early) { .off = -1, .len = LEN };
FIXTURE_VARIANT_ADD(range, starts_before) { .off = -1, .len = 2 };
FIXTURE_VARIANT_ADD(range, ends_behind) { .off = LEN - 1, .len = 2 };
FIXTURE_VARIANT_ADD(range, at_the_end) { .off = LEN, .len = 1 };
FIXTURE_VARIANT_ADD(range, far_away) { .off = 1LL << 40, .len = 64 };
FIXTURE_VARIANT_ADD(range, low_32_bits_fit) { .off = 1LL << 32, .len = 64 };
FIXTURE_VARIANT_ADD(range, negative_far) { .off = -(1LL << 32), .len = 64 };

FIXTURE_SETUP(range)
{
	/* The local side is longer, so that only the remote range is wrong */
	ASSERT_OK(bed_open(&self->bed, LEN, NULL));
	buf_close(&self->bed.src);
	ASSERT_OK(buf_open(&self->bed.src, self->bed.a->pd, 2 * LEN, 0,
			   ACCESS_REMOTE));
	ASSERT_OK(buf_twin(&self->bed.src, self->bed.b, ACCESS_REMOTE));
	memset(self->bed.src.addr, 1, 2 * LEN);
}

FIXTURE_TEARDOWN(range)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(range, write)
{
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR,
		       RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE,
			   .local = &self->bed.src, .remote = &self->bed.dst,
			   .roff = variant->off, .len = variant->len));
}

TEST_F(range, read)
{
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR,
		       RUN(self->bed.a, .op = IBV_WR_RDMA_READ,
			   .local = &self->bed.src, .remote = &self->bed.dst,
			   .roff = variant->off, .len = variant->len));
	EXPECT_EQ(-1, buf_is_not(&self->bed.src, 0, LEN, 1));
}

TEST_F(range, local_segment)
{
	/* What was inside may have been written; the guards tell about the rest */
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(self->bed.a, .op = IBV_WR_RDMA_READ,
			  .local = &self->bed.dst, .loff = variant->off,
			  .remote = &self->bed.src, .len = variant->len));
	EXPECT_OK(qp_wait(self->bed.a->qp, IBV_QPS_ERR));
}

TEST_F(range, receive_segment)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, variant->off, variant->len, 0));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = variant->len));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(bed->b));
}

/* addr + len wraps around 2^64 to a place inside the region. */
TEST_F(key, range_that_wraps)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr;

	mr = ibv_reg_mr_iova(bed->b->pd, bed->dst.addr, LEN,
			     (uintptr_t)bed->dst.addr & 4095, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	memset(bed->src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_ACCESS_ERR,
		       WRITE(.raddr = UINT64_MAX - 15, .rkey = mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(key, length_up_to_2_31_is_not_truncated)
{
	EXPECT_REFUSED(IBV_WC_LOC_PROT_ERR, WRITE(.len = 0x7fffffff));
}

/* No bytes, no key: IBTA 9.4.2/9.7.4.1.5 does not check the key of length 0. */
TEST_F(key, zero_length_needs_no_valid_key)
{
	EXPECT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .raddr = 8,
			.rkey = 0x12345678));
}

TEST_F(key, zero_length_read_needs_no_valid_key)
{
	EXPECT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_READ, .raddr = 8,
			.rkey = 0x12345678));
}

/* A region has only the rights it was registered with. */
FIXTURE(rights)
{
	struct bed bed;
	struct buf buf;
};

FIXTURE_VARIANT(rights)
{
	int access;
};

FIXTURE_VARIANT_ADD(rights, none) { .access = 0 };
FIXTURE_VARIANT_ADD(rights, local_write) { .access = IBV_ACCESS_LOCAL_WRITE };
FIXTURE_VARIANT_ADD(rights, remote_read) {
	.access = IBV_ACCESS_REMOTE_READ,
};

FIXTURE_VARIANT_ADD(rights, remote_write) {
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
};

FIXTURE_VARIANT_ADD(rights, remote_atomic) {
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

FIXTURE_SETUP(rights)
{
	ASSERT_OK(bed_open(&self->bed, LEN, NULL));
	ASSERT_OK(buf_open(&self->buf, self->bed.b->pd, LEN, 0,
			   variant->access));
	ASSERT_OK(buf_twin(&self->buf, self->bed.a, variant->access));
	memset(self->bed.src.addr, 1, LEN);
}

FIXTURE_TEARDOWN(rights)
{
	EXPECT_TRUE(buf_guards_intact(&self->buf));
	buf_close(&self->buf);
	EXPECT_OK(bed_close(&self->bed));
}

static int remote_status(int access, int needed)
{
	return access & needed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

TEST_F(rights, write)
{
	int status = remote_status(variant->access, IBV_ACCESS_REMOTE_WRITE);

	EXPECT_STATUS(status, RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE,
				  .local = &self->bed.src, .len = 64,
				  .remote = &self->buf));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 64, !status));
}

TEST_F(rights, read)
{
	int status = remote_status(variant->access, IBV_ACCESS_REMOTE_READ);

	EXPECT_STATUS(status, RUN(self->bed.a, .op = IBV_WR_RDMA_READ,
				  .local = &self->bed.src, .len = 64,
				  .remote = &self->buf));
	EXPECT_EQ(-1, buf_is_not(&self->bed.src, 0, 64, !!status));
}

TEST_F(rights, atomic)
{
	int status = remote_status(variant->access, IBV_ACCESS_REMOTE_ATOMIC);

	EXPECT_STATUS(status, RUN(self->bed.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .local = &self->bed.src, .value = 5,
				  .remote = &self->buf));
	EXPECT_EQ(status ? 0 : 5, self->buf.addr[0]);
}

TEST_F(rights, write_with_immediate)
{
	struct bed *bed = &self->bed;
	int status = remote_status(variant->access, IBV_ACCESS_REMOTE_WRITE);

	ASSERT_OK(post_recv(bed->b, NULL, 0, 0, 0));
	EXPECT_STATUS(status, RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .local = &bed->src, .len = 64,
				  .remote = &self->buf));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 64, !status));
	/* success, or flushed: never a receive that succeeded for nothing */
	if (!status)
		EXPECT_DONE(wait_recv(bed->b));
	else
		EXPECT_NE(IBV_WC_SUCCESS, wait_recv(bed->b));
}

TEST_F(rights, as_receive_buffer)
{
	struct bed *bed = &self->bed;
	bool may = variant->access & IBV_ACCESS_LOCAL_WRITE;

	ASSERT_OK(post_recv(bed->b, &self->buf, 0, 64, 0));
	EXPECT_STATUS(may ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			  .len = 64));
	EXPECT_STATUS(may ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR,
		      wait_recv(bed->b));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 64, may));
}

TEST_F(rights, as_destination_of_a_read)
{
	struct bed *bed = &self->bed;
	bool may = variant->access & IBV_ACCESS_LOCAL_WRITE;

	EXPECT_STATUS(may ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &self->buf,
			  .len = 64, .remote = &bed->src));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 64, may));
}

/* Reading one's own memory to send it needs no right at all. */
TEST_F(rights, as_source)
{
	EXPECT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
			.local = &self->buf, .remote = &self->bed.dst));
}

/* The queue pair must allow the operation too; IBTA 11.6.2. */
FIXTURE(qp_rights)
{
	struct bed bed;
};

FIXTURE_VARIANT(qp_rights)
{
	enum ibv_wr_opcode op;
};

FIXTURE_VARIANT_ADD(qp_rights, write) { .op = IBV_WR_RDMA_WRITE };
FIXTURE_VARIANT_ADD(qp_rights, read) { .op = IBV_WR_RDMA_READ };
FIXTURE_VARIANT_ADD(qp_rights, cmp_swp) { .op = IBV_WR_ATOMIC_CMP_AND_SWP };
FIXTURE_VARIANT_ADD(qp_rights, fetch_add) { .op = IBV_WR_ATOMIC_FETCH_AND_ADD };

FIXTURE_SETUP(qp_rights)
{
	struct pair_opts opts = { .access = NO_ACCESS };

	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
}

FIXTURE_TEARDOWN(qp_rights)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(qp_rights, operation_is_refused)
{
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_REFUSED(IBV_WC_REM_INV_REQ_ERR,
		       RUN(self->bed.a, .op = variant->op, .len = 8,
			   .local = &self->bed.src, .remote = &self->bed.dst));
}

TEST_HARNESS_MAIN
