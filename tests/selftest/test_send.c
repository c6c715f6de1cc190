// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* SEND and SEND with immediate over RC, into a receive queue or an SRQ. */
#include "sizes.h"

FIXTURE(send)
{
	struct bed bed;
};

FIXTURE_VARIANT(send)
{
	size_t size;
	bool srq;
};

SIZE_VARIANTS(send);
FIXTURE_VARIANT_ADD(send, srq_0) { .size = 0, .srq = true };
FIXTURE_VARIANT_ADD(send, srq_9) { .size = 9, .srq = true };
FIXTURE_VARIANT_ADD(send, srq_4097) { .size = 4097, .srq = true };
FIXTURE_VARIANT_ADD(send, srq_1048576) { .size = 1048576, .srq = true };

FIXTURE_SETUP(send)
{
	struct pair_opts opts = { .srq = variant->srq };

	ASSERT_OK(bed_open(&self->bed, variant->size + SIZE_ROOM, &opts));
}

FIXTURE_TEARDOWN(send)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(send, fills_the_receive_and_tells_the_length)
{
	struct bed *bed = &self->bed;
	const struct offsets *o;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		o = &offsets[i];
		before_transfer(bed, i);
		ASSERT_OK(post_recv(bed->b, &bed->dst, o->dst,
				    bed->dst.len - o->dst, 100 + i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
				.loff = o->src, .len = variant->size));
		EXPECT_EQ(IBV_WC_SEND, bed->a->wc.opcode);
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(IBV_WC_RECV, bed->b->rwc.opcode);
		EXPECT_EQ(100 + i, bed->b->rwc.wr_id);
		EXPECT_EQ(bed->b->qp->qp_num, bed->b->rwc.qp_num);
		EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
		EXPECT_FALSE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
		ASSERT_TRUE(transferred(bed, o, variant->size, i));
	}
}

TEST_F(send, into_a_receive_of_exactly_that_size)
{
	struct bed *bed = &self->bed;

	before_transfer(bed, 1);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, variant->size, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = variant->size));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
	EXPECT_TRUE(transferred(bed, &offsets[0], variant->size, 1));
}

TEST_F(send, immediate_data)
{
	static const uint32_t values[] = { 0, 1, 0x80000000, 0xdeadbeef, ~0u };
	struct bed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, bed->dst.len, i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND_WITH_IMM,
				.local = &bed->src, .len = variant->size,
				.imm = values[i]));
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(IBV_WC_RECV, bed->b->rwc.opcode);
		EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
		EXPECT_EQ(htobe32(values[i]), bed->b->rwc.imm_data);
		EXPECT_EQ(variant->size, bed->b->rwc.byte_len);
	}
}

BED(send_many, 65536, .max_wr = 128);

TEST_F(send_many, receives_are_taken_in_order)
{
	struct bed *bed = &self->bed;
	int i;

	buf_fill(&bed->src, 1);
	for (i = 0; i < 100; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 512, 512, i));
	for (i = 0; i < 100; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			       .loff = i * 512, .len = i + 1));
	for (i = 0; i < 100; i++) {
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_EQ(i, bed->b->rwc.wr_id);
		ASSERT_EQ(i + 1, bed->b->rwc.byte_len);
		ASSERT_EQ(-1, buf_differs(&bed->dst, i * 512, i + 1, 1,
					  i * 512));
		ASSERT_DONE(wait_send(bed->a));
	}
}

TEST_F(send_many, ping_pong)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 500; i++) {
		memset(bed->src.addr, i, 64);
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, i));
		ASSERT_OK(post_recv(bed->a, &bed->src, 4096, 64, i));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
				.len = 64));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_DONE(RUN(bed->b, .op = IBV_WR_SEND, .local = &bed->dst,
				.len = 64));
		ASSERT_DONE(wait_recv(bed->a));
		ASSERT_EQ(-1, buf_is_not(&bed->src, 4096, 64, i & 0xff));
	}
}

/* A list of requests goes in as a whole, and the last alone is signaled. */
TEST_F(send_many, list_of_requests)
{
	struct bed *bed = &self->bed;
	struct ibv_send_wr wr[8] = {}, *bad;
	struct ibv_sge sge[8];
	int i;

	buf_fill(&bed->src, 5);
	for (i = 0; i < 8; i++) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, i * 100, 100, i));
		sge[i] = sge_of(&bed->src, i * 100, 100);
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i < 7 ? &wr[i + 1] : NULL;
	}
	wr[7].send_flags = IBV_SEND_SIGNALED;
	ASSERT_OK(ibv_post_send(bed->a->qp, wr, &bad));
	ASSERT_DONE(wait_send(bed->a));
	for (i = 0; i < 8; i++)
		ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 800, 5, 0));
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

/* More than the queue holds: the first that does not fit is named. */
TEST_F(send_many, full_queue_is_refused)
{
	struct bed *bed = &self->bed;
	int ret = 0, posted;

	for (posted = 0; posted < 100000 && !ret; posted++)
		ret = POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			   .len = 8);
	ASSERT_EQ(ENOMEM, ret);
	ASSERT_GT(posted, 128);
	for (posted--; posted; posted--) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 8, 0));
		ASSERT_DONE(wait_recv(bed->b));
		ASSERT_DONE(wait_send(bed->a));
	}
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 8, 0));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 8));
}

TEST_F(send_many, full_receive_queue_is_refused)
{
	struct bed *bed = &self->bed;
	int ret = 0, posted;

	for (posted = 0; posted < 100000 && !ret; posted++)
		ret = post_recv(bed->b, &bed->dst, 0, 8, posted);
	EXPECT_EQ(ENOMEM, ret);
	EXPECT_GT(posted, 128);
}

BED(send_sig_all, 4096, .sig_all = true);

TEST_F(send_sig_all, unsignaled_requests_complete_too)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 8, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 8, .unsignaled = true));
}

TEST_HARNESS_MAIN
