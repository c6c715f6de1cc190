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

/* A queue pair that can be attached, and no more. */
static struct ibv_qp *small_qp(struct bed *bed)
{
	struct ibv_qp_init_attr init = {
		.send_cq = bed->b->scq, .recv_cq = bed->b->rcq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(bed->dev.pd, &init);
}

TEST_F(mcast, no_more_members_than_advertised)
{
	int i, max = self->bed.dev.attr->max_mcast_qp_attach;
	struct ibv_qp **qp;

	if (max > 1024)
		SKIP(return, "more queue pairs than a test should make");
	qp = calloc(max + 1, sizeof(*qp));
	ASSERT_NE(NULL, qp);
	for (i = 0; i <= max; i++) {
		qp[i] = small_qp(&self->bed);
		ASSERT_NE(NULL, qp[i]);
		if (i == max)
			break;
		ASSERT_OK(ibv_attach_mcast(qp[i], &self->mgid, 0));
	}
	EXPECT_NE(0, ibv_attach_mcast(qp[max], &self->mgid, 0));
	/* a member that leaves makes room */
	EXPECT_OK(ibv_detach_mcast(qp[max / 2], &self->mgid, 0));
	EXPECT_OK(ibv_attach_mcast(qp[max], &self->mgid, 0));
	for (i = 0; i <= max; i++) {
		EXPECT_EQ(i == max / 2, !!ibv_detach_mcast(qp[i], &self->mgid, 0));
		EXPECT_OK(ibv_destroy_qp(qp[i]));
	}
	free(qp);
}

/* On an interface with neighbours, the network's own limit may come first. */
TEST_F(mcast, no_more_groups_than_advertised)
{
	int i, n, max = self->bed.dev.attr->max_mcast_grp;
	union ibv_gid group = self->mgid;

	for (n = 0; n <= max; n++) {
		group.raw[14] = n >> 8;
		group.raw[15] = n;
		if (ibv_attach_mcast(self->bed.b->qp, &group, 0))
			break;
	}
	EXPECT_GT(n, 0);
	EXPECT_LE(n, max);
	for (i = 0; i < n; i++) {
		group.raw[14] = i >> 8;
		group.raw[15] = i;
		ASSERT_OK(ibv_detach_mcast(self->bed.b->qp, &group, 0));
	}
	/* a member that leaves makes room */
	ASSERT_OK(ibv_attach_mcast(self->bed.b->qp, &group, 0));
	ASSERT_OK(ibv_detach_mcast(self->bed.b->qp, &group, 0));
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
