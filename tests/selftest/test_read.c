// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA READ over RC. */
#include "sizes.h"

FIXTURE(read)
{
	struct bed bed;
};

FIXTURE_VARIANT(read)
{
	size_t size;
};

SIZE_VARIANTS(read);

FIXTURE_SETUP(read)
{
	ASSERT_OK(bed_open(&self->bed, variant->size + SIZE_ROOM, NULL));
}

FIXTURE_TEARDOWN(read)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(read, fetches_the_bytes_and_no_others)
{
	struct bed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		before_transfer(bed, i);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .wr_id = i,
				.local = &bed->dst, .loff = offsets[i].dst,
				.remote = &bed->src, .roff = offsets[i].src,
				.len = variant->size));
		EXPECT_EQ(IBV_WC_RDMA_READ, bed->a->wc.opcode);
		EXPECT_EQ(i, bed->a->wc.wr_id);
		EXPECT_EQ(variant->size, bed->a->wc.byte_len);
		ASSERT_TRUE(transferred(bed, &offsets[i], variant->size, i));
	}
}

BED(read_many, 1 << 20, .rd_atomic = 4);

/* More reads in the queue than the pair may have outstanding. */
TEST_F(read_many, beyond_rd_atomic)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 1);
	for (i = 0; i < 60; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .wr_id = i,
			       .local = &bed->dst, .loff = i * 5000,
			       .remote = &bed->src, .roff = i * 5000,
			       .len = 5000));
	for (i = 0; i < 60; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
	}
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 300000, 1, 0));
}

/* Without the fence flag the write may overtake the read's response. */
TEST_F(read_many, fenced_write_uses_what_was_read)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 20; i++) {
		buf_fill(&bed->src, i);
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .len = 100000,
			       .local = &bed->dst, .remote = &bed->src));
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 100000,
			       .local = &bed->dst,
			       .remote = &bed->dst, .roff = 500000,
			       .flags = IBV_SEND_FENCE));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 500000, 100000, i, 0));
	}
}

TEST_F(read_many, sees_the_write_before_it)
{
	struct bed *bed = &self->bed;

	buf_fill(&bed->src, 7);
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 70000,
		       .local = &bed->src, .remote = &bed->dst));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .len = 70000,
		       .local = &bed->src, .loff = 200000,
		       .remote = &bed->dst));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_EQ(-1, buf_differs(&bed->src, 200000, 70000, 7, 0));
}

TEST_HARNESS_MAIN
