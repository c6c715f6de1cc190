// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Opening the device, and whether what it says of itself is true. */
#include "harness.h"

FIXTURE(device)
{
	struct dev dev;
};

FIXTURE_SETUP(device)
{
	ASSERT_OK(dev_open(&self->dev));
}

FIXTURE_TEARDOWN(device)
{
	dev_close(&self->dev);
}

TEST_F(device, opens_many_times)
{
	struct ibv_context *ctx[32];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ctx); i++) {
		ctx[i] = dev_open_context();
		ASSERT_NE(NULL, ctx[i]);
	}
	for (i = 0; i < ARRAY_SIZE(ctx); i++)
		EXPECT_OK(ibv_close_device(ctx[i]));
}

TEST_F(device, limits_are_there)
{
	struct ibv_device_attr *a = self->dev.attr;

	EXPECT_GT(a->max_qp, 0);
	EXPECT_GT(a->max_qp_wr, 0);
	EXPECT_GT(a->max_sge, 0);
	EXPECT_GT(a->max_cq, 0);
	EXPECT_GT(a->max_cqe, 0);
	EXPECT_GT(a->max_mr, 0);
	EXPECT_GT(a->max_pd, 0);
	EXPECT_GT(a->max_ah, 0);
	EXPECT_GT(a->max_srq, 0);
	EXPECT_GT(a->max_srq_wr, 0);
	EXPECT_GT(a->max_srq_sge, 0);
	EXPECT_GT(a->max_qp_rd_atom, 0);
	EXPECT_GT(a->max_qp_init_rd_atom, 0);
	EXPECT_GT(a->max_mr_size, 1ULL << 32);
	EXPECT_GT(a->max_pkeys, 0);
	EXPECT_EQ(1, a->phys_port_cnt);
	EXPECT_NE(0, a->node_guid);
	EXPECT_TRUE(a->page_size_cap & 4096);
}

TEST_F(device, port)
{
	struct ibv_port_attr *p = &self->dev.port;

	EXPECT_EQ(IBV_PORT_ACTIVE, p->state);
	EXPECT_EQ(IBV_LINK_LAYER_ETHERNET, p->link_layer);
	EXPECT_LE(p->active_mtu, p->max_mtu);
	EXPECT_GE(p->active_mtu, IBV_MTU_256);
	EXPECT_GT(p->gid_tbl_len, 0);
	EXPECT_GE(p->pkey_tbl_len, 1);
	EXPECT_GE(p->max_msg_sz, 1 << 30);
}

TEST_F(device, only_its_ports_answer)
{
	struct ibv_port_attr attr;

	EXPECT_NE(0, ibv_query_port(self->dev.ctx, 0, &attr));
	EXPECT_NE(0, ibv_query_port(self->dev.ctx, 2, &attr));
}

TEST_F(device, default_pkey)
{
	__be16 pkey;

	ASSERT_OK(ibv_query_pkey(self->dev.ctx, 1, 0, &pkey));
	EXPECT_EQ(0xffff, be16toh(pkey));
}

TEST_F(device, gid_table_agrees_with_single_queries)
{
	struct ibv_gid_entry table[64];
	union ibv_gid gid;
	ssize_t i, n;

	n = ibv_query_gid_table(self->dev.ctx, table, 64, 0);
	ASSERT_GT(n, 0);
	for (i = 0; i < n; i++) {
		ASSERT_OK(ibv_query_gid(self->dev.ctx, table[i].port_num,
					table[i].gid_index, &gid));
		EXPECT_OK(memcmp(&gid, &table[i].gid, sizeof(gid)));
		EXPECT_GT(table[i].ndev_ifindex, 0);
	}
}

/* The largest counts that are advertised can be had. */
TEST_F(device, largest_queue_pair)
{
	struct ibv_device_attr *a = self->dev.attr;
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.max_wr = a->max_qp_wr < 16384 ? a->max_qp_wr : 16384,
		.max_sge = a->max_sge,
	});
	struct side side = {};

	ASSERT_OK(side_open(&side, &self->dev, &opts, false));
	EXPECT_OK(side_close(&side));
}

TEST_F(device, beyond_the_limits_is_refused)
{
	struct ibv_device_attr *a = self->dev.attr;
	struct pair_opts opts = pair_defaults(NULL);
	struct side side = {};

	opts.max_wr = a->max_qp_wr + 1;
	EXPECT_NE(0, side_open(&side, &self->dev, &opts, false));
	opts = pair_defaults(NULL);
	opts.max_sge = a->max_sge + 1;
	EXPECT_NE(0, side_open(&side, &self->dev, &opts, false));
	EXPECT_NULL(ibv_create_cq(self->dev.ctx, a->max_cqe + 1, NULL, NULL, 0));
}

TEST_F(device, atomics_are_told)
{
	EXPECT_NE(IBV_ATOMIC_NONE, self->dev.attr->atomic_cap);
	EXPECT_GT(self->dev.attr->max_qp_rd_atom, 0);
}

/* What is not advertised does not half work. */
TEST_F(device, no_xrc_unless_advertised)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	if (dev_has(&self->dev, IBV_DEVICE_XRC))
		SKIP(return, "the device advertises XRC");
	xrcd = ibv_open_xrcd(self->dev.ctx, &attr);
	EXPECT_NULL(xrcd);
}

TEST_F(device, no_on_demand_paging_unless_advertised)
{
	struct ibv_mr *mr;

	if (self->dev.ex.odp_caps.general_caps & IBV_ODP_SUPPORT)
		SKIP(return, "the device advertises on-demand paging");
	mr = ibv_reg_mr(self->dev.pd, self, sizeof(*self),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	EXPECT_NULL(mr);
}

TEST_F(device, no_raw_packets_unless_advertised)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.type = IBV_QPT_RAW_PACKET,
	});
	struct side side = {};

	if (self->dev.attr->max_raw_ethy_qp || self->dev.ex.raw_packet_caps)
		SKIP(return, "the device advertises raw packets");
	EXPECT_NE(0, side_open(&side, &self->dev, &opts, false));
}

TEST_F(device, no_device_memory_unless_advertised)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	if (self->dev.ex.max_dm_size)
		SKIP(return, "the device advertises device memory");
	EXPECT_NULL(ibv_alloc_dm(self->dev.ctx, &attr));
}

TEST_HARNESS_MAIN
