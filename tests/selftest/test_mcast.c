// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast: every attached queue pair gets a copy, a detached one does not. */
#include "harness.h"

#define LEN	4096
#define MCAST_QPN	0xffffff

FIXTURE(mcast)
{
	struct bed bed;
	union ibv_gid mgid;
	struct ibv_ah *ah;
};

/* The group in the address family of the device's own GID. */
static union ibv_gid group_of(const union ibv_gid *gid)
{
	union ibv_gid group = *gid;
	bool ipv4 = !memcmp(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

	if (ipv4)
		memcpy(group.raw + 12, "\xef\x01\x02\x03", 4);
	else
		memcpy(group.raw, "\xff\x0e\0\0\0\0\0\0\0\0\0\0\0\0\x77\x77", 16);
	return group;
}

FIXTURE_SETUP(mcast)
{
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };

	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
	if (!self->bed.dev.attr->max_mcast_grp)
		SKIP(return, "the device does not advertise multicast");
	self->mgid = group_of(&self->bed.dev.gid);
	attr.grh.dgid = self->mgid;
	attr.grh.sgid_index = self->bed.dev.gid_index;
	attr.grh.hop_limit = 1;
	self->ah = ibv_create_ah(self->bed.dev.pd, &attr);
	ASSERT_NE(NULL, self->ah);
}

FIXTURE_TEARDOWN(mcast)
{
	if (self->ah)
		EXPECT_OK(ibv_destroy_ah(self->ah));
	EXPECT_OK(bed_close(&self->bed));
}

static int send_group(FIXTURE_DATA(mcast) *self, size_t len)
{
	return RUN(self->bed.a, .op = IBV_WR_SEND, .local = &self->bed.src,
		   .len = len, .ah = self->ah, .qpn = MCAST_QPN);
}

TEST_F(mcast, attached_queue_pair_receives)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(ibv_attach_mcast(bed->b->qp, &self->mgid, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	buf_fill(&bed->src, 1);
	ASSERT_DONE(send_group(self, 100));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(GRH_BYTES + 100, bed->b->rwc.byte_len);
	EXPECT_EQ(bed->a->qp->qp_num, bed->b->rwc.src_qp);
	EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, 100, 1, 0));
	ASSERT_OK(ibv_detach_mcast(bed->b->qp, &self->mgid, 0));
}

TEST_F(mcast, every_member_gets_a_copy)
{
	struct bed *bed = &self->bed;
	struct pair other;

	ASSERT_OK(bed_pair_open(bed, &other, &bed->pair.opts));
	ASSERT_OK(pair_connect(&other));
	ASSERT_OK(ibv_attach_mcast(bed->b->qp, &self->mgid, 0));
	ASSERT_OK(ibv_attach_mcast(other.b.qp, &self->mgid, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 1024, 0));
	ASSERT_OK(post_recv(&other.b, &bed->dst, 2048, 1024, 0));
	buf_fill(&bed->src, 2);
	ASSERT_DONE(send_group(self, 200));
	ASSERT_DONE(wait_recv(bed->b));
	ASSERT_DONE(wait_recv(&other.b));
	EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, 200, 2, 0));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 2048 + GRH_BYTES, 200, 2, 0));
	ASSERT_OK(ibv_detach_mcast(other.b.qp, &self->mgid, 0));
	ASSERT_OK(ibv_detach_mcast(bed->b->qp, &self->mgid, 0));
	EXPECT_OK(pair_close(&other));
}

TEST_F(mcast, detached_queue_pair_does_not_receive)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(ibv_attach_mcast(bed->b->qp, &self->mgid, 0));
	ASSERT_OK(ibv_detach_mcast(bed->b->qp, &self->mgid, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(send_group(self, 100));
	/* a message that does arrive proves that the other did not */
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 33));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(GRH_BYTES + 33, bed->b->rwc.byte_len);
}

TEST_F(mcast, detach_of_a_stranger_is_refused)
{
	EXPECT_NE(0, ibv_detach_mcast(self->bed.b->qp, &self->mgid, 0));
}

TEST_F(mcast, unicast_address_is_no_group)
{
	EXPECT_NE(0, ibv_attach_mcast(self->bed.b->qp, &self->bed.dev.gid, 0));
}

TEST_F(mcast, connected_queue_pair_cannot_attach)
{
	struct pair rc;

	ASSERT_OK(bed_pair_open(&self->bed, &rc, NULL));
	EXPECT_NE(0, ibv_attach_mcast(rc.a.qp, &self->mgid, 0));
	EXPECT_OK(pair_close(&rc));
}

/*
 * On Ethernet the LID means nothing, but the core takes the group under another LID
 * for another group: attached twice, and detached as often.
 */
TEST_F(mcast, twice_under_different_lids)
{
	struct bed *bed = &self->bed;
	struct pair other;

	ASSERT_OK(bed_pair_open(bed, &other, &bed->pair.opts));
	ASSERT_OK(pair_connect(&other));
	ASSERT_OK(ibv_attach_mcast(other.b.qp, &self->mgid, 0));
	ASSERT_OK(ibv_attach_mcast(other.b.qp, &self->mgid, 7));
	ASSERT_OK(ibv_detach_mcast(other.b.qp, &self->mgid, 0));
	/* still a member, and one copy is enough */
	ASSERT_OK(post_recv(&other.b, &bed->dst, 0, 1024, 0));
	ASSERT_OK(post_recv(&other.b, &bed->dst, 1024, 1024, 1));
	ASSERT_DONE(send_group(self, 100));
	ASSERT_DONE(wait_recv(&other.b));
	EXPECT_EQ(0, poll_stray(other.b.rcq));
	EXPECT_OK(ibv_detach_mcast(other.b.qp, &self->mgid, 7));
	EXPECT_OK(pair_close(&other));
}

/* IBTA 10.5.2: it is refused, or it is released; it never leaves a member behind. */
TEST_F(mcast, destroy_while_attached)
{
	struct bed *bed = &self->bed;
	int i, ret;

	for (i = 0; i < 10; i++) {
		struct pair other;

		ASSERT_OK(bed_pair_open(bed, &other, &bed->pair.opts));
		ASSERT_OK(pair_connect(&other));
		ASSERT_OK(ibv_attach_mcast(other.b.qp, &self->mgid, 0));
		ret = ibv_destroy_qp(other.b.qp);
		if (ret)
			ASSERT_OK(ibv_detach_mcast(other.b.qp, &self->mgid, 0));
		if (!ret)
			other.b.qp = NULL;
		EXPECT_OK(pair_close(&other));
		ASSERT_DONE(send_group(self, 10));
	}
}

TEST_HARNESS_MAIN
