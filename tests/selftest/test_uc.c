// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unreliable connections: SEND and WRITE; what cannot be delivered is dropped. */
#include "sizes.h"

FIXTURE(uc)
{
	struct bed bed;
};

FIXTURE_VARIANT(uc)
{
	size_t size;
};

SIZE_VARIANTS(uc);

FIXTURE_SETUP(uc)
{
	struct pair_opts opts = { .type = IBV_QPT_UC };

	ASSERT_OK(bed_open(&self->bed, variant->size + SIZE_ROOM, &opts));
}

FIXTURE_TEARDOWN(uc)
{
	EXPECT_OK(bed_close(&self->bed));
}

/* A UC write completes when it is sent; a receive tells that it is there. */
TEST_F(uc, write_with_immediate)
{
	struct bed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		before_transfer(bed, i);
		ASSERT_OK(post_recv(bed->b, NULL, 0, 0, i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM,
				.local = &bed->src, .loff = offsets[i].src,
				.remote = &bed->dst, .roff = offsets[i].dst,
				.len = variant->size, .imm = i));
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, bed->b->rwc.opcode);
		EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
		EXPECT_EQ(htobe32(i), bed->b->rwc.imm_data);
		ASSERT_TRUE(transferred(bed, &offsets[i], variant->size, i));
	}
}

TEST_F(uc, send)
{
	struct bed *bed = &self->bed;

	before_transfer(bed, 1);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, bed->dst.len, 4));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = variant->size));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(4, bed->b->rwc.wr_id);
	EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
	EXPECT_TRUE(transferred(bed, &offsets[0], variant->size, 1));
}

BED(uc_errors, 8192, .type = IBV_QPT_UC);

/* No receive: the message is lost, the next one is not, nobody is in error. */
TEST_F(uc_errors, send_without_receive_is_dropped)
{
	struct bed *bed = &self->bed;

	buf_fill(&bed->src, 1);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 64));
	usleep(20000);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 8192, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.loff = 64, .len = 100));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(100, bed->b->rwc.byte_len);
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 100, 1, 64));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
}

/* A message that is too long is dropped, and the receive waits for the next message. */
TEST_F(uc_errors, message_that_does_not_fit_leaves_the_receive)
{
	struct bed *bed = &self->bed;

	buf_fill(&bed->src, 1);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 7));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 65));
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.loff = 128, .len = 64));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(7, bed->b->rwc.wr_id);
	EXPECT_EQ(64, bed->b->rwc.byte_len);
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 64, 1, 128));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->b->qp));
}

/* The receiver's own mistake: its receive fails, and so its queue pair. */
TEST_F(uc_errors, receive_that_fails_takes_its_queue_pair_along)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sge = sge_of(&bed->dst, 0, 64);

	sge.lkey ^= 0x55;
	ASSERT_OK(post_recv_sgl(bed->b, &sge, 1, 1));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 2));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 64));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(bed->b));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->b));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(bed->b->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
}

TEST_F(uc_errors, wrong_key_is_dropped_silently)
{
	struct bed *bed = &self->bed;

	memset(bed->src.addr, 1, 8192);
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 64,
			.local = &bed->src, .remote = &bed->dst,
			.rkey = bed->dst.mr->rkey ^ 0x55));
	usleep(20000);
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 8192, 0));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(bed->a->qp));
}

TEST_F(uc_errors, reads_and_atomics_do_not_exist)
{
	struct bed *bed = &self->bed;
	int status;

	status = RUN(bed->a, .op = IBV_WR_RDMA_READ, .len = 8,
		     .local = &bed->src, .remote = &bed->dst);
	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
}

TEST_F(uc_errors, local_errors_are_told)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			  .local = &bed->src, .lkey = ~0u));
}

TEST_HARNESS_MAIN
