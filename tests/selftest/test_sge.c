// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Scatter and gather: up to as many segments as the device advertises. */
#include "harness.h"

#define LEN	(256 * 1024)
#define MAX	64

FIXTURE(sge)
{
	struct bed bed;
	struct ibv_sge sgl[MAX];
	int n;
};

FIXTURE_VARIANT(sge)
{
	int n;
	size_t unit;
};

FIXTURE_VARIANT_ADD(sge, one) { .n = 1, .unit = 1000 };
FIXTURE_VARIANT_ADD(sge, two) { .n = 2, .unit = 1000 };
FIXTURE_VARIANT_ADD(sge, three) { .n = 3, .unit = 7 };
FIXTURE_VARIANT_ADD(sge, six) { .n = 6, .unit = 4096 };
FIXTURE_VARIANT_ADD(sge, seven_bytes) { .n = 7, .unit = 1 };
FIXTURE_VARIANT_ADD(sge, all) { .n = 0, .unit = 100 };
FIXTURE_VARIANT_ADD(sge, all_large) { .n = 0, .unit = 5000 };

static int at_most(int n, int limit)
{
	return n && n < limit ? n : limit < MAX ? limit : MAX;
}

FIXTURE_SETUP(sge)
{
	struct pair_opts opts = {};
	struct dev dev;

	ASSERT_OK(dev_open(&dev));
	self->n = at_most(variant->n, dev.attr->max_sge);
	dev_close(&dev);
	opts.max_sge = self->n;
	ASSERT_OK(bed_open(&self->bed, LEN, &opts));
}

FIXTURE_TEARDOWN(sge)
{
	EXPECT_OK(bed_close(&self->bed));
}

/*
 * Segment i has @unit * (i % 3 + 1) bytes, every fourth none, and lies in the
 * reverse order of the list. The total is returned.
 */
static size_t cut(FIXTURE_DATA(sge) *self, const struct side *side, struct buf *buf,
		  size_t unit)
{
	size_t stride = LEN / MAX, total = 0;
	int i;

	for (i = 0; i < self->n; i++) {
		size_t len = i % 4 == 3 ? 0 : unit * (i % 3 + 1);

		if (len > stride)
			len = stride;
		self->sgl[i] = sge_at(side, buf, (MAX - 1 - i) * stride, len);
		total += len;
	}
	return total;
}

/* The segments in @buf hold what buf_fill(seed) puts at offset 0. */
static bool scattered(FIXTURE_DATA(sge) *self, struct buf *buf, uint32_t seed)
{
	size_t done = 0;
	int i;

	for (i = 0; i < self->n; i++) {
		size_t off = self->sgl[i].addr - (uintptr_t)buf->addr;

		if (buf_differs(buf, off, self->sgl[i].length, seed, done) >= 0)
			return false;
		done += self->sgl[i].length;
	}
	return true;
}

/* And the other way: @buf holds at 0 what the segments of a filled one held. */
static bool gathered(FIXTURE_DATA(sge) *self, struct buf *from, struct buf *to,
		     uint32_t seed)
{
	size_t done = 0;
	int i;

	for (i = 0; i < self->n; i++) {
		size_t off = self->sgl[i].addr - (uintptr_t)from->addr;

		if (buf_differs(to, done, self->sgl[i].length, seed, off) >= 0)
			return false;
		done += self->sgl[i].length;
	}
	return true;
}

TEST_F(sge, write_gathers)
{
	struct bed *bed = &self->bed;
	size_t total = cut(self, bed->a, &bed->src, variant->unit);

	buf_fill(&bed->src, 1);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = self->sgl,
			.num_sge = self->n, .remote = &bed->dst));
	EXPECT_TRUE(gathered(self, &bed->src, &bed->dst, 1));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, total, LEN - total, 0));
}

TEST_F(sge, read_scatters)
{
	struct bed *bed = &self->bed;
	size_t total = cut(self, bed->a, &bed->dst, variant->unit);

	buf_fill(&bed->src, 2);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .sgl = self->sgl,
			.num_sge = self->n, .remote = &bed->src));
	EXPECT_EQ(total, bed->a->wc.byte_len);
	EXPECT_TRUE(scattered(self, &bed->dst, 2));
}

TEST_F(sge, receive_scatters)
{
	struct bed *bed = &self->bed;
	size_t total = cut(self, bed->b, &bed->dst, variant->unit);

	buf_fill(&bed->src, 3);
	ASSERT_OK(post_recv_sgl(bed->b, self->sgl, self->n, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = total));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(total, bed->b->rwc.byte_len);
	EXPECT_TRUE(scattered(self, &bed->dst, 3));
}

TEST_F(sge, send_gathers)
{
	struct bed *bed = &self->bed;
	size_t total = cut(self, bed->a, &bed->src, variant->unit);

	buf_fill(&bed->src, 4);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .sgl = self->sgl,
			.num_sge = self->n));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(total, bed->b->rwc.byte_len);
	EXPECT_TRUE(gathered(self, &bed->src, &bed->dst, 4));
}

TEST_F(sge, one_bad_segment_spoils_the_request)
{
	struct bed *bed = &self->bed;

	cut(self, bed->a, &bed->src, variant->unit);
	self->sgl[self->n - 1].length = 8;
	self->sgl[self->n - 1].lkey ^= 0x5500;
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = self->sgl,
			  .num_sge = self->n, .remote = &bed->dst));
}

TEST_F(sge, more_than_granted_is_refused)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	static struct ibv_sge sgl[1024];

	ASSERT_OK(ibv_query_qp(bed->a->qp, &attr, IBV_QP_CAP, &init));
	ASSERT_LT(init.cap.max_send_sge, ARRAY_SIZE(sgl));
	EXPECT_NE(0, POST(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sgl,
			  .num_sge = init.cap.max_send_sge + 1,
			  .remote = &bed->dst));
	EXPECT_NE(0, post_recv_sgl(bed->b, sgl, init.cap.max_recv_sge + 1, 0));
}

/* Segments of two regions, registered with different addresses. */
TEST_F(sge, of_different_regions)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sgl[2];
	struct buf other;

	if (self->n < 2)
		return;
	ASSERT_OK(buf_open(&other, bed->a->pd, 5000, 77, ACCESS_REMOTE));
	buf_fill(&bed->src, 1);
	buf_fill(&other, 2);
	sgl[0] = sge_of(&bed->src, 10, 4097);
	sgl[1] = sge_of(&other, 0, 5000);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sgl,
			.num_sge = 2, .remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 4097, 1, 10));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 4097, 5000, 2, 0));
	buf_close(&other);
}

TEST_HARNESS_MAIN
