// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA WRITE, with and without immediate data, over RC. */
#include "sizes.h"

FIXTURE(write)
{
	struct bed bed;
};

FIXTURE_VARIANT(write)
{
	size_t size;
};

SIZE_VARIANTS(write);

FIXTURE_SETUP(write)
{
	ASSERT_OK(bed_open(&self->bed, variant->size + SIZE_ROOM, NULL));
}

FIXTURE_TEARDOWN(write)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(write, moves_the_bytes_and_no_others)
{
	struct bed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		before_transfer(bed, i);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
				.local = &bed->src, .loff = offsets[i].src,
				.remote = &bed->dst, .roff = offsets[i].dst,
				.len = variant->size));
		EXPECT_EQ(IBV_WC_RDMA_WRITE, bed->a->wc.opcode);
		EXPECT_EQ(i, bed->a->wc.wr_id);
		EXPECT_EQ(bed->a->qp->qp_num, bed->a->wc.qp_num);
		ASSERT_TRUE(transferred(bed, &offsets[i], variant->size, i));
	}
}

TEST_F(write, with_immediate_takes_one_receive)
{
	struct bed *bed = &self->bed;

	before_transfer(bed, 1);
	ASSERT_OK(post_recv(bed->b, NULL, 0, 0, 11));
	ASSERT_OK(post_recv(bed->b, NULL, 0, 0, 12));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM,
			.local = &bed->src, .remote = &bed->dst,
			.len = variant->size, .imm = 0x01020304));
	EXPECT_EQ(IBV_WC_RDMA_WRITE, bed->a->wc.opcode);
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(11, bed->b->rwc.wr_id);
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, bed->b->rwc.opcode);
	EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
	EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(htobe32(0x01020304), bed->b->rwc.imm_data);
	EXPECT_TRUE(transferred(bed, &offsets[0], variant->size, 1));
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
}

BED(write_order, 65536);

/* The last of many writes to one place is what stays there. */
TEST_F(write_order, requests_run_in_order)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 1);
	for (i = 0; i < 32; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			       .local = &bed->src, .loff = i, .len = 1000,
			       .remote = &bed->dst));
	for (i = 0; i < 32; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 1000, 1, 31));
}

TEST_F(write_order, unsignaled_requests_complete_silently)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 2);
	for (i = 0; i < 300; i++) {
		bool last = i % 30 == 29;

		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .wr_id = i,
			       .local = &bed->src, .loff = i * 64, .len = 64,
			       .remote = &bed->dst, .roff = i * 64,
			       .unsignaled = !last));
		if (!last)
			continue;
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(0, poll_stray(bed->a->scq));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 300 * 64, 2, 0));
}

/* Programs poll on the last byte of a transfer: what is before it is there. */
TEST_F(write_order, last_byte_arrives_last)
{
	struct bed *bed = &self->bed;
	volatile uint8_t *last = &bed->dst.addr[65535];
	struct patience p = {};
	int i;

	for (i = 1; i < 50; i++) {
		memset(bed->src.addr, i, 65536);
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE,
			       .local = &bed->src, .len = 65536,
			       .remote = &bed->dst));
		while (*last != i && still_patient(&p, i))
			sched_yield();
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		ASSERT_EQ(-1, buf_is_not(&bed->dst, 0, 65536, i));
		ASSERT_DONE(wait_send(bed->a));
	}
}

TEST_F(write_order, both_directions_at_once)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 16; i++) {
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE,
			       .local = &bed->src, .len = 4096,
			       .remote = &bed->dst, .roff = 0));
		ASSERT_OK(POST(bed->b, .op = IBV_WR_RDMA_WRITE,
			       .local = &bed->dst, .loff = 8192, .len = 4096,
			       .remote = &bed->src, .roff = 8192));
	}
	for (i = 0; i < 16; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_DONE(wait_send(bed->b));
	}
}

TEST_F(write_order, to_itself)
{
	struct bed *bed = &self->bed;
	struct side self_side = {};
	struct pair_opts opts = pair_defaults(NULL);

	ASSERT_OK(side_open(&self_side, &bed->dev, &opts, false));
	ASSERT_OK(side_connect(&self_side, &opts, self_side.qp->qp_num,
			       &bed->dev.gid));
	buf_fill(&bed->src, 3);
	ASSERT_DONE(RUN(&self_side, .op = IBV_WR_RDMA_WRITE, .len = 10000,
			.local = &bed->src, .remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 10000, 3, 0));
	EXPECT_OK(side_close(&self_side));
}

TEST_HARNESS_MAIN
