// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that knows all numbers, addresses and keys of other processes, but has no right
 * to use them, cannot reach their memory. In each test the same request succeeds for a
 * process with the right, so only its author can be the reason for the refusal.
 */
#include <grp.h>
#include <sys/wait.h>

#include "harness.h"

#define LEN	4096
#define NOBODY	65534
#define OTHER	"vrnic_other"

BED(isolation, LEN);

static int reconnect(struct pair *pair)
{
	int ret = qp_to(pair->a.qp, IBV_QPS_RESET);

	if (!ret)
		ret = qp_to(pair->b.qp, IBV_QPS_RESET);
	return ret ? ret : pair_connect(pair);
}

/* ---- another user, who was told all numbers ---- */

struct known {
	uint64_t addr;
	uint32_t rkey, lkey;
};

/* One try of each kind, from a pair of his own. Return: 0, or which went wrong. */
static int try_remote(struct bed *own, const struct known *k)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	unsigned int i;
	int status;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		status = RUN(own->a, .op = ops[i], .local = &own->src, .len = 8,
			     .raddr = k->addr, .rkey = k->rkey, .value = 1);
		if (status != IBV_WC_REM_ACCESS_ERR || reconnect(&own->pair))
			return 10 + i;
	}
	return 0;
}

/* As a source, and as a place to receive into. */
static int try_local(struct bed *own, const struct known *k)
{
	struct ibv_sge sge = { k->addr, 8, k->lkey };
	int status;

	status = RUN(own->a, .op = IBV_WR_SEND, .sgl = &sge, .num_sge = 1);
	if (status != IBV_WC_LOC_PROT_ERR || reconnect(&own->pair))
		return 20;
	status = RUN(own->a, .op = IBV_WR_RDMA_READ, .sgl = &sge, .num_sge = 1,
		     .remote = &own->dst);
	if (status != IBV_WC_LOC_PROT_ERR || reconnect(&own->pair))
		return 21;
	if (post_recv_sgl(own->b, &sge, 1, 0))
		return 22;
	status = RUN(own->a, .op = IBV_WR_SEND, .local = &own->src, .len = 8);
	if (status != IBV_WC_REM_OP_ERR || reconnect(&own->pair))
		return 23;
	return 0;
}

static int other_user(const struct known *k)
{
	struct bed own = {};
	int ret;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	if (bed_open(&own, LEN, NULL))
		return 2;
	memset(own.src.addr, 1, LEN);
	/* the user can use objects of its own */
	ret = RUN(own.a, .op = IBV_WR_RDMA_WRITE, .local = &own.src, .len = 8,
		  .remote = &own.dst);
	if (ret)
		return 3;
	ret = try_remote(&own, k);
	if (!ret)
		ret = try_local(&own, k);
	if (!ret && buf_is_not(&own.src, 0, LEN, 1) != -1)
		ret = 30;
	return bed_close(&own) ? 4 : ret;
}

TEST_F(isolation, another_user_who_knows_the_keys)
{
	struct buf *dst = &self->bed.dst;
	struct known k = { (uintptr_t)dst->addr, dst->mr->rkey, dst->mr->lkey };
	int status;
	pid_t pid;

	if (geteuid())
		SKIP(return, "only root can be two users");
	memset(dst->addr, 0x5a, LEN);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(other_user(&k));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(-1, buf_is_not(dst, 0, LEN, 0x5a));
	/* and they are the right ones */
	EXPECT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			.local = &self->bed.src, .raddr = k.addr,
			.rkey = k.rkey));
}

/* ---- keys that are guessed ---- */

/* The place is known, and all tags are tried but the right one. */
TEST_F(isolation, each_other_tag_of_the_key)
{
	struct bed *bed = &self->bed;
	uint32_t rkey = bed->dst.mr->rkey;
	unsigned int tag;

	memset(bed->src.addr, 1, LEN);
	for (tag = 1; tag < 256; tag++) {
		ASSERT_STATUS(IBV_WC_REM_ACCESS_ERR,
			      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
				  .local = &bed->src, .remote = &bed->dst,
				  .rkey = rkey ^ tag));
		ASSERT_OK(reconnect(&bed->pair));
	}
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			.local = &bed->src, .remote = &bed->dst));
}

/* ---- keys that were good once ---- */

/* The memory is registered again and again: only the last key opens it. */
TEST_F(isolation, keys_of_the_past)
{
	struct bed *bed = &self->bed;
	uint32_t rkeys[64];
	struct ibv_mr *mr;
	int i;

	memset(bed->src.addr, 1, LEN);
	for (i = 0; i < 64; i++) {
		mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN, ACCESS_REMOTE);
		ASSERT_NE(NULL, mr);
		rkeys[i] = mr->rkey;
		ASSERT_OK(ibv_dereg_mr(mr));
	}
	mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	for (i = 0; i < 64; i++) {
		ASSERT_STATUS(IBV_WC_REM_ACCESS_ERR,
			      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
				  .local = &bed->src, .remote = &bed->dst,
				  .rkey = rkeys[i]));
		ASSERT_OK(reconnect(&bed->pair));
	}
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			.local = &bed->src, .remote = &bed->dst,
			.rkey = mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* ---- lengths that become something else when they are added up ---- */

TEST_F(isolation, regions_of_2_63_bytes)
{
	static const uint64_t lens[] = {
		1ULL << 63, (1ULL << 63) - 1, (1ULL << 63) + 4096,
		~0ULL, ~0ULL - 4095, 1ULL << 48,
	};
	struct bed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		EXPECT_NULL(ibv_reg_mr(bed->b->pd, bed->dst.addr, lens[i],
				       ACCESS_REMOTE));
		/* named so that address and length meet at 2^64 */
		EXPECT_NULL(ibv_reg_mr_iova(bed->b->pd, bed->dst.addr, lens[i],
					    -lens[i], ACCESS_REMOTE));
	}
}

/* Segments of 2^31 bytes each: their sum is zero in 32 bits. */
TEST_F(isolation, segments_whose_sum_wraps)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sge[2] = {
		sge_of(&bed->src, 0, 0x80000000), sge_of(&bed->src, 0, 0x80000000),
	};
	int status;

	status = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sge, .num_sge = 2,
		     .remote = &bed->dst);
	EXPECT_TRUE(status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR)
		TH_LOG("status: %d", status);
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
}

/* ---- another network namespace ---- */

/* Both have a device on lo, and 127.0.0.1 is both's address. */
FIXTURE(apart)
{
	struct bed bed;
	struct dev other;
};

FIXTURE_SETUP(apart)
{
	struct pair_opts opts = { .timeout = 8, .retry = 1 };

	if (geteuid() || access("/sys/module/vrnic", F_OK))
		SKIP(return, "needs root, and vrnic");
	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
	ASSERT_OK(rdma_link_apart(OTHER));
	ASSERT_OK(setenv("VRNIC_DEV", OTHER, 1));
	ASSERT_OK(dev_open(&self->other));
	/* or this would be about addresses */
	ASSERT_OK(memcmp(&self->other.gid, &self->bed.dev.gid,
			 sizeof(self->other.gid)));
}

FIXTURE_TEARDOWN(apart)
{
	dev_close(&self->other);
	EXPECT_OK(bed_close(&self->bed));
	EXPECT_OK(rdma_link_del(OTHER));
}

/* A pair of this type from @dev to side b of the bed; then a WRITE. */
static int write_from(struct dev *dev, struct bed *bed, enum ibv_qp_type type)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.type = type, .timeout = 8, .retry = 1,
	});
	struct side from = {}, to = {};
	struct buf src = {};
	int ret;

	ret = side_open(&from, dev, &opts, false);
	if (!ret)
		ret = side_open(&to, &bed->dev, &opts, false);
	if (!ret)
		ret = buf_open(&src, dev->pd, LEN, 0, ACCESS_REMOTE);
	if (!ret)
		ret = side_connect(&to, &opts, from.qp->qp_num, &dev->gid);
	if (!ret)
		ret = side_connect(&from, &opts, to.qp->qp_num, &bed->dev.gid);
	if (!ret) {
		memset(src.addr, 1, LEN);
		ret = RUN(&from, .op = IBV_WR_RDMA_WRITE, .local = &src,
			  .len = LEN, .remote = &bed->dst);
	}
	side_close(&from);
	side_close(&to);
	buf_close(&src);
	return ret;
}

TEST_F(apart, rc_does_not_reach)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR,
		      write_from(&self->other, bed, IBV_QPT_RC));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
	EXPECT_DONE(write_from(&bed->dev, bed, IBV_QPT_RC));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 1));
}

TEST_F(apart, uc_does_not_reach)
{
	struct bed *bed = &self->bed;

	/* nobody tells the sender */
	EXPECT_DONE(write_from(&self->other, bed, IBV_QPT_UC));
	usleep(100000);
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
	EXPECT_DONE(write_from(&bed->dev, bed, IBV_QPT_UC));
}

TEST_F(apart, datagrams_do_not_reach)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct pair here = {}, there = {};
	struct buf src = {};

	ASSERT_OK(pair_open(&here, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&here));
	ASSERT_OK(pair_open(&there, &self->other, &opts));
	ASSERT_OK(pair_connect(&there));
	ASSERT_OK(buf_open(&src, self->other.pd, LEN, 0, ACCESS_REMOTE));
	ASSERT_OK(post_recv(&here.b, &bed->dst, 0, LEN, 0));
	EXPECT_DONE(RUN(&there.a, .op = IBV_WR_SEND, .local = &src, .len = 11,
			.qpn = here.b.qp->qp_num));
	EXPECT_DONE(RUN(&here.a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 22));
	EXPECT_DONE(wait_recv(&here.b));
	EXPECT_EQ(GRH_BYTES + 22, here.b.rwc.byte_len);
	EXPECT_OK(pair_close(&there));
	EXPECT_OK(pair_close(&here));
	buf_close(&src);
}

TEST_HARNESS_MAIN
