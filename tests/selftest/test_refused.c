// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the device does not offer is refused, and changes nothing. */
#include "harness.h"

BED(refused, 4096);

static int still_works(struct bed *bed)
{
	return RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8, .local = &bed->src,
		   .remote = &bed->dst);
}

TEST_F(refused, alternate_path)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_attr attr = {
		.alt_port_num = 1, .alt_timeout = 14,
		.alt_ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = bed->b->dev->gid, .hop_limit = 1,
				 .sgid_index = bed->a->dev->gid_index },
		},
	};

	EXPECT_NE(0, ibv_modify_qp(bed->a->qp, &attr, IBV_QP_ALT_PATH));
	EXPECT_NE(0, ibv_modify_qp(bed->a->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
	EXPECT_DONE(still_works(bed));
}

TEST_F(refused, migration)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_REARM };

	EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(bed->a->qp, &attr, IBV_QP_PATH_MIG_STATE));
	attr.path_mig_state = IBV_MIG_ARMED;
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(bed->a->qp, &attr, IBV_QP_PATH_MIG_STATE));
	attr.path_mig_state = IBV_MIG_MIGRATED;
	EXPECT_OK(ibv_modify_qp(bed->a->qp, &attr, IBV_QP_PATH_MIG_STATE));
	EXPECT_DONE(still_works(bed));
}

TEST_F(refused, enhanced_connection_establishment)
{
	struct bed *bed = &self->bed;
	struct ibv_ece ece = { .vendor_id = 0x15b3, .options = 1 };

	EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(bed->a->qp, &ece));
	EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(bed->a->qp, &ece));
	EXPECT_DONE(still_works(bed));
}

TEST_F(refused, tag_matching)
{
	struct bed *bed = &self->bed;
	struct ibv_device_attr_ex device;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM, .pd = bed->a->pd, .cq = bed->a->rcq,
		.tm_cap = { .max_num_tags = 8, .max_ops = 8 },
	};

	ASSERT_OK(ibv_query_device_ex(bed->a->qp->context, NULL, &device));
	EXPECT_EQ(0, device.tm_caps.max_num_tags);
	EXPECT_EQ(NULL, ibv_create_srq_ex(bed->a->qp->context, &attr));
	EXPECT_NE(0, errno);
}

TEST_HARNESS_MAIN
