// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Inline data: every size, no key needed, the buffer is free at once. */
#include "harness.h"

#define LEN	4096

FIXTURE(inl)
{
	struct bed bed;
	size_t max;
};

FIXTURE_VARIANT(inl)
{
	uint32_t ask;
};

FIXTURE_VARIANT_ADD(inl, one_byte) { .ask = 1 };
FIXTURE_VARIANT_ADD(inl, bytes_32) { .ask = 32 };
FIXTURE_VARIANT_ADD(inl, bytes_33) { .ask = 33 };
FIXTURE_VARIANT_ADD(inl, bytes_256) { .ask = 256 };
FIXTURE_VARIANT_ADD(inl, most) { .ask = 0 };

/* The largest that the device grants, found by asking for less and less. */
static int open_with_most(struct bed *bed, uint32_t ask)
{
	struct pair_opts opts = { .max_inline = ask ? ask : 992 };
	int ret;

	do {
		memset(bed, 0, sizeof(*bed));
		ret = bed_open(bed, LEN, &opts);
		if (!ret || ask)
			return ret;
		dev_close(&bed->dev);
		opts.max_inline -= 8;
	} while (opts.max_inline > 8);
	return ret;
}

FIXTURE_SETUP(inl)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_OK(open_with_most(&self->bed, variant->ask));
	ASSERT_OK(ibv_query_qp(self->bed.a->qp, &attr, IBV_QP_CAP, &init));
	self->max = init.cap.max_inline_data;
	ASSERT_GE(self->max, variant->ask);
	ASSERT_LT(self->max, LEN);
}

FIXTURE_TEARDOWN(inl)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(inl, write_of_every_size)
{
	struct bed *bed = &self->bed;
	size_t i;

	buf_fill(&bed->src, 1);
	for (i = 0; i <= self->max; i++) {
		memset(bed->dst.addr, 0, LEN);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = i,
				.local = &bed->src, .loff = i % 64,
				.remote = &bed->dst, .roff = i % 7,
				.flags = IBV_SEND_INLINE, .lkey = 0xbad));
		ASSERT_EQ(-1, buf_differs(&bed->dst, i % 7, i, 1, i % 64));
		ASSERT_EQ(-1, buf_is_not(&bed->dst, i % 7 + i,
					 LEN - i % 7 - i, 0));
	}
}

TEST_F(inl, send_of_every_size)
{
	struct bed *bed = &self->bed;
	size_t i;

	buf_fill(&bed->src, 2);
	for (i = 0; i <= self->max; i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND_WITH_IMM, .len = i,
				.local = &bed->src, .imm = i,
				.flags = IBV_SEND_INLINE));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_EQ(i, bed->b->rwc.byte_len);
		ASSERT_EQ(htobe32(i), bed->b->rwc.imm_data);
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, i, 2, 0));
	}
}

TEST_F(inl, beyond_the_maximum_is_refused)
{
	struct bed *bed = &self->bed;

	EXPECT_NE(0, POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			  .len = self->max + 1, .remote = &bed->dst,
			  .flags = IBV_SEND_INLINE));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = self->max, .remote = &bed->dst,
			.flags = IBV_SEND_INLINE));
}

/* The source may change as soon as the post has returned. */
TEST_F(inl, source_is_free_after_the_post)
{
	struct bed *bed = &self->bed;
	size_t n = self->max;
	int i;

	for (i = 0; i < 30; i++) {
		memset(bed->src.addr, i + 1, n);
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .len = n, .flags = IBV_SEND_INLINE));
	}
	memset(bed->src.addr, 0xee, n);
	for (i = 0; i < 30; i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, i));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_EQ(-1, buf_is_not(&bed->dst, 0, n, i + 1));
		ASSERT_DONE(wait_send(bed->a));
	}
}

TEST_F(inl, from_several_segments)
{
	struct bed *bed = &self->bed;
	size_t third = self->max / 3;
	struct ibv_sge sgl[3] = {
		sge_of(&bed->src, 0, third),
		sge_of(&bed->src, 1024, third),
		sge_of(&bed->src, 2048, third),
	};

	buf_fill(&bed->src, 5);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sgl,
			.num_sge = 3, .remote = &bed->dst,
			.flags = IBV_SEND_INLINE));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, third, 5, 0));
	EXPECT_EQ(-1, buf_differs(&bed->dst, third, third, 5, 1024));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 2 * third, third, 5, 2048));
}

/* Requests of one and of many slots in turn, over the ring's end. */
TEST_F(inl, mixed_with_others_around_the_ring)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 6);
	for (i = 0; i < 1000; i++) {
		bool inl = i % 3;
		size_t n = inl ? i % (self->max + 1) : 500;

		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = n,
				.local = &bed->src, .loff = i % 100,
				.remote = &bed->dst, .wr_id = i,
				.flags = inl ? IBV_SEND_INLINE : 0));
		ASSERT_EQ(i, bed->a->wc.wr_id);
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, n, 6, i % 100));
	}
}

TEST_HARNESS_MAIN
