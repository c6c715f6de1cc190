// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fast registration of lists with gaps. */

#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "consumer.h"

#define SIZE	(8 * PAGE_SIZE)

/* struct piece - bytes of a buffer */
struct piece {
	u32 off;
	u32 len;
};

/* Bytes of one page, whole pages, and much that no list of pages can have. */
static const struct piece pieces[] = {
	{ 8, 12 }, { 40, 1 }, { 100, PAGE_SIZE }, { 2 * PAGE_SIZE + 17, 2 * PAGE_SIZE - 1 },
	{ 5 * PAGE_SIZE, PAGE_SIZE }, { 4 * PAGE_SIZE + 512, 3 }, { 7 * PAGE_SIZE + 1, 14 },
};

#define PIECES	ARRAY_SIZE(pieces)

/**
 * struct scene - a region with gaps of b's, which a uses
 * @a: its user
 * @b: its owner
 * @buf: what the pieces are in
 * @flat: memory of a's, as if the pieces lay together
 * @mr: the region
 * @len: bytes of it
 */
struct scene {
	struct end *a;
	struct end *b;
	u8 *buf;
	u8 *flat;
	struct ib_mr *mr;
	u32 len;
};

static void dereg_mr(void *mr)
{
	WARN_ON(ib_dereg_mr(mr));
}

static struct ib_mr *new_gaps_mr(struct kunit *test, u32 max)
{
	struct consumer *c = test->priv;
	struct ib_mr *mr = ib_alloc_mr(c->pd, IB_MR_TYPE_SG_GAPS, max);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dereg_mr, mr), 0);
	return mr;
}

static struct scatterlist *new_list(struct kunit *test, u8 *buf)
{
	struct scatterlist *sg = new_buffer(test, PIECES * sizeof(*sg));
	struct consumer *c = test->priv;
	u32 i;

	sg_init_table(sg, PIECES);
	for (i = 0; i < PIECES; i++)
		sg_set_buf(&sg[i], buf + pieces[i].off, pieces[i].len);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, sg, PIECES, DMA_BIDIRECTIONAL), PIECES);
	return sg;
}

static u32 sum(u32 nr)
{
	u32 total = 0, i;

	for (i = 0; i < nr; i++)
		total += pieces[i].len;
	return total;
}

static struct scene *new_scene(struct kunit *test)
{
	struct scene *s = new_buffer(test, sizeof(*s));
	struct scatterlist *sg;
	u32 i;

	new_pair(test, &s->a, &s->b);
	s->buf = new_buffer(test, SIZE);
	s->flat = new_buffer(test, SIZE);
	for (i = 0; i < SIZE; i++)
		s->flat[i] = i * 7 + i / 251;
	s->len = sum(PIECES);
	s->mr = new_gaps_mr(test, PIECES);
	sg = new_list(test, s->buf);
	/* its size of a page does not matter */
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(s->mr, sg, PIECES, NULL, PAGE_SIZE), PIECES);
	KUNIT_ASSERT_EQ(test, s->mr->length, s->len);
	expect_done(test, s->b, post_reg(test, s->b, s->mr, CONSUMER_ACCESS), IB_WC_REG_MR);
	return s;
}

/* What the pieces are to have, in the order of the list, and what is between them. */
static void expect_pieces(struct kunit *test, struct scene *s, const u8 *flat, u8 between)
{
	u8 *want = new_buffer(test, SIZE);
	u32 i, done = 0;

	memset(want, between, SIZE);
	for (i = 0; i < PIECES; done += pieces[i++].len)
		memcpy(want + pieces[i].off, flat + done, pieces[i].len);
	KUNIT_EXPECT_MEMEQ(test, s->buf, want, SIZE);
}

static void write_to_pieces(struct kunit *test)
{
	struct scene *s = new_scene(test);

	memset(s->buf, 0x5a, SIZE);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, s->len,
					  s->mr->iova, s->mr->rkey), IB_WC_RDMA_WRITE);
	expect_pieces(test, s, s->flat, 0x5a);
}

/* From around the beginning of each piece, to around the end of each one. */
static void parts_of_pieces(struct kunit *test)
{
	struct scene *s = new_scene(test);
	u8 *back = new_buffer(test, SIZE);
	u32 i, j, k, from, to;

	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, s->len,
					  s->mr->iova, s->mr->rkey), IB_WC_RDMA_WRITE);
	for (i = 0; i < PIECES; i++)
		for (j = i + 1; j <= PIECES; j++)
			for (k = 0; k < 4; k++) {
				from = sum(i) + (k & 1);
				to = sum(j) - (k >> 1);
				if (from >= to)
					continue;
				memset(back, 0, to - from);
				expect_done(test, s->a,
					    post_rdma(test, s->a, IB_WR_RDMA_READ, back, to - from,
						      s->mr->iova + from, s->mr->rkey),
					    IB_WC_RDMA_READ);
				KUNIT_ASSERT_EQ(test, memcmp(back, s->flat + from, to - from), 0);
			}
}

static void message_from_and_to_pieces(struct kunit *test)
{
	struct request *recv = new_request(test), *sent = new_request(test);
	struct scene *s = new_scene(test);
	struct ib_sge sge = { .addr = s->mr->iova, .length = s->len, .lkey = s->mr->lkey };
	struct ib_recv_wr rwr = { .wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr wr = {
		.wr_cqe = &sent->cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};
	u8 *back = new_buffer(test, SIZE);

	KUNIT_ASSERT_EQ(test, ib_post_recv(s->b->qp, &rwr, NULL), 0);
	expect_done(test, s->a, post_send(test, s->a, IB_WR_SEND, s->flat, s->len, 0), IB_WC_SEND);
	expect_done(test, s->b, recv, IB_WC_RECV);
	expect_pieces(test, s, s->flat, 0);
	recv = post_recv(test, s->a, back, SIZE);
	post(test, s->b, &wr);
	expect_done(test, s->b, sent, IB_WC_SEND);
	expect_done(test, s->a, recv, IB_WC_RECV);
	KUNIT_EXPECT_MEMEQ(test, back, s->flat, s->len);
}

static void not_a_byte_too_far(struct kunit *test)
{
	struct scene *s = new_scene(test);

	expect_status(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, s->len,
					    s->mr->iova + 1, s->mr->rkey), IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, SIZE));
}

static struct request *add_at(struct kunit *test, struct scene *s, u32 off)
{
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, s->flat, sizeof(u64));
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = s->mr->iova + off,
		.compare_add = 0x0102030405060708,
		.rkey = s->mr->rkey,
	};

	post(test, s->a, &wr.wr);
	return req;
}

/* A CPU's atomics are of one word: that the region shows one is not enough. */
static void words_in_one_piece_only(struct kunit *test)
{
	struct scene *s = new_scene(test);

	expect_done(test, s->a, add_at(test, s, 0), IB_WC_FETCH_ADD);
	KUNIT_EXPECT_EQ(test, *(u64 *)(s->buf + pieces[0].off), 0x0102030405060708);
	memset(s->buf, 0, SIZE);
	KUNIT_ASSERT_LT(test, pieces[0].len, 16);
	expect_status(test, s->a, add_at(test, s, 8), IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, SIZE));
}

/* As storage does for each command: other memory, in another number of pieces, and a new key. */
static void pieces_change(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct consumer *c = test->priv;
	struct scatterlist sg[2];
	u32 old = s->mr->rkey;

	expect_done(test, s->b, post_send(test, s->b, IB_WR_LOCAL_INV, NULL, 0, old),
		    IB_WC_LOCAL_INV);
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], s->buf + 1000, 10);
	sg_set_buf(&sg[1], s->buf + 2000, 20);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, sg, 2, DMA_BIDIRECTIONAL), 2);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(s->mr, sg, 2, NULL, PAGE_SIZE), 2);
	ib_update_fast_reg_key(s->mr, ib_inc_rkey(old));
	expect_done(test, s->b, post_reg(test, s->b, s->mr, CONSUMER_ACCESS), IB_WC_REG_MR);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, 30, s->mr->iova,
					  s->mr->rkey), IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, s->buf + 1000, s->flat, 10);
	KUNIT_EXPECT_MEMEQ(test, s->buf + 2000, s->flat + 10, 20);
	expect_status(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, 31, s->mr->iova,
					    s->mr->rkey), IB_WC_REM_ACCESS_ERR);
}

/* It maps what it has room for, and from where it is told to. */
static void maps_what_it_can(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct scatterlist *sg = new_list(test, s->buf);
	struct ib_mr *mr = new_gaps_mr(test, PIECES - 2);
	u32 len = sum(PIECES - 2) - 5, i, done = 0;
	unsigned int skip = 5, off;

	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, sg, PIECES, &skip, PAGE_SIZE), PIECES - 2);
	KUNIT_EXPECT_EQ(test, mr->length, len);
	KUNIT_EXPECT_EQ(test, mr->iova, (unsigned long)s->buf + pieces[0].off + 5);
	KUNIT_EXPECT_EQ(test, skip, 0);
	expect_done(test, s->b, post_reg(test, s->b, mr, CONSUMER_ACCESS), IB_WC_REG_MR);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, len, mr->iova,
					  mr->rkey), IB_WC_RDMA_WRITE);
	for (i = 0; i < PIECES - 2; i++, done += pieces[i - 1].len - off) {
		off = i ? 0 : 5;
		KUNIT_EXPECT_MEMEQ(test, s->buf + pieces[i].off + off, s->flat + done,
				   pieces[i].len - off);
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf + pieces[0].off, 0, 5));
}

/* Pieces of no bytes at all are nowhere. */
static void empty_pieces(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct ib_mr *mr = new_gaps_mr(test, PIECES);
	struct scatterlist *sg = new_list(test, s->buf);
	u32 len = pieces[1].len + pieces[3].len;

	sg_dma_len(&sg[0]) = 0;
	sg_dma_len(&sg[2]) = 0;
	sg_dma_len(&sg[4]) = 0;
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, sg, 5, NULL, PAGE_SIZE), 5);
	KUNIT_ASSERT_EQ(test, mr->length, len);
	expect_done(test, s->b, post_reg(test, s->b, mr, CONSUMER_ACCESS), IB_WC_REG_MR);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->flat, len, mr->iova,
					  mr->rkey), IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, s->buf + pieces[1].off, s->flat, pieces[1].len);
	KUNIT_EXPECT_MEMEQ(test, s->buf + pieces[3].off, s->flat + pieces[1].len, pieces[3].len);
	KUNIT_EXPECT_EQ(test, s->buf[pieces[0].off], 0);
	KUNIT_EXPECT_EQ(test, s->buf[pieces[4].off], 0);
}

static void lists_that_are_none(struct kunit *test)
{
	u8 *buf = new_buffer(test, SIZE);
	struct scatterlist *sg = new_list(test, buf);
	struct ib_mr *mr = new_gaps_mr(test, PIECES);
	unsigned int skip = pieces[0].len + 1;

	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(mr, sg, PIECES, &skip, PAGE_SIZE), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(mr, sg, 0, NULL, PAGE_SIZE), -EINVAL);
}

static void as_many_as_pages(struct kunit *test)
{
	struct consumer *c = test->priv;
	u32 most = c->dev->attrs.max_fast_reg_page_list_len;

	KUNIT_EXPECT_TRUE(test, c->dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG);
	new_gaps_mr(test, most);
	KUNIT_EXPECT_TRUE(test, IS_ERR(ib_alloc_mr(c->pd, IB_MR_TYPE_SG_GAPS, most + 1)));
}

static struct kunit_case gaps_cases[] = {
	KUNIT_CASE(write_to_pieces),
	KUNIT_CASE(parts_of_pieces),
	KUNIT_CASE(message_from_and_to_pieces),
	KUNIT_CASE(not_a_byte_too_far),
	KUNIT_CASE(words_in_one_piece_only),
	KUNIT_CASE(pieces_change),
	KUNIT_CASE(maps_what_it_can),
	KUNIT_CASE(empty_pieces),
	KUNIT_CASE(lists_that_are_none),
	KUNIT_CASE(as_many_as_pages),
	{}
};

static struct kunit_suite gaps_suite = {
	.name = "vrnic_verbs_gaps",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = gaps_cases,
};

kunit_test_suite(gaps_suite);
