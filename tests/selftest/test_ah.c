// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles. */
#include "harness.h"

BED(ah, 4096, .type = IBV_QPT_UD);

static struct ibv_ah_attr attr_of(struct bed *bed)
{
	return (struct ibv_ah_attr){
		.port_num = 1,
		.is_global = 1,
		.grh = {
			.dgid = bed->b->dev->gid,
			.sgid_index = bed->dev.gid_index,
			.hop_limit = 5,
		},
	};
}

TEST_F(ah, many)
{
	struct ibv_ah_attr attr = attr_of(&self->bed);
	static struct ibv_ah *ah[1000];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ah); i++) {
		ah[i] = ibv_create_ah(self->bed.dev.pd, &attr);
		ASSERT_NE(NULL, ah[i]);
	}
	for (i = 0; i < ARRAY_SIZE(ah); i++)
		EXPECT_OK(ibv_destroy_ah(ah[i]));
}

TEST_F(ah, wrong_attributes_are_refused)
{
	struct ibv_ah_attr attr = attr_of(&self->bed);

	attr.port_num = 2;
	EXPECT_NULL(ibv_create_ah(self->bed.dev.pd, &attr));
	attr = attr_of(&self->bed);
	attr.is_global = 0;		/* RoCE has nothing else */
	EXPECT_NULL(ibv_create_ah(self->bed.dev.pd, &attr));
	attr = attr_of(&self->bed);
	attr.grh.sgid_index = 255;	/* the table has no such entry */
	EXPECT_NULL(ibv_create_ah(self->bed.dev.pd, &attr));
}

/* The answer finds its way with what the completion and the GRH say. */
TEST_F(ah, from_a_completion)
{
	struct bed *bed = &self->bed;
	struct ibv_ah *ah;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 1000, 0));
	ASSERT_OK(post_recv(bed->a, &bed->src, 2000, 1000, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 10));
	ASSERT_DONE(wait_recv(bed->b));
	ah = ibv_create_ah_from_wc(bed->b->pd, &bed->b->rwc,
				   (struct ibv_grh *)bed->dst.addr, 1);
	ASSERT_NE(NULL, ah);
	ASSERT_DONE(RUN(bed->b, .op = IBV_WR_SEND, .local = &bed->dst,
			.len = 20, .ah = ah, .qpn = bed->b->rwc.src_qp));
	ASSERT_DONE(wait_recv(bed->a));
	EXPECT_EQ(GRH_BYTES + 20, bed->a->rwc.byte_len);
	EXPECT_OK(ibv_destroy_ah(ah));
}

/* Destroyed with messages still in the queue: they are sent or fail. */
TEST_F(ah, destroyed_while_in_use)
{
	struct bed *bed = &self->bed;
	struct ibv_ah_attr attr = attr_of(bed);
	struct ibv_ah *ah = ibv_create_ah(bed->dev.pd, &attr);
	int i;

	ASSERT_NE(NULL, ah);
	for (i = 0; i < 32; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .len = 64, .ah = ah,
			       .local = &bed->src));
	ASSERT_OK(ibv_destroy_ah(ah));
	for (i = 0; i < 32; i++)
		ASSERT_LE(0, wait_send(bed->a));
}

TEST_F(ah, protection_domain_is_busy)
{
	struct ibv_ah_attr attr = attr_of(&self->bed);
	struct ibv_pd *pd = ibv_alloc_pd(self->bed.dev.ctx);
	struct ibv_ah *ah;

	ASSERT_NE(NULL, pd);
	ah = ibv_create_ah(pd, &attr);
	ASSERT_NE(NULL, ah);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_OK(ibv_destroy_ah(ah));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

TEST_HARNESS_MAIN
