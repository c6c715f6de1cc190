// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fast registration: REG_MR, LOCAL_INV, SEND with invalidate, changing keys. */

#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "consumer.h"
#include "mem/mem.h"

#define SIZE	(3 * PAGE_SIZE)

/* struct scene - a region of b's, and what a writes to it */
struct scene {
	struct end *a;
	struct end *b;
	u8 *from;
	u8 *to;
	struct ib_mr *mr;
};

static struct scene *new_scene(struct kunit *test, int access)
{
	struct scene *s = new_buffer(test, sizeof(*s));
	u32 i;

	new_pair(test, &s->a, &s->b);
	s->from = new_buffer(test, SIZE);
	s->to = new_buffer(test, SIZE);
	for (i = 0; i < SIZE; i++)
		s->from[i] = i * 7 + i / 251;
	s->mr = new_region(test, s->b, s->to, SIZE, access);
	return s;
}

static struct request *write_by(struct kunit *test, struct scene *s, u32 rkey)
{
	return post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->from, SIZE,
			 s->mr->iova, rkey);
}

/* The write is refused, and not a byte of it is there. */
static void expect_refused(struct kunit *test, struct scene *s,
			   struct request *req)
{
	expect_status(test, s->a, req, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->to, 0, SIZE));
	KUNIT_EXPECT_TRUE(test, end_saw(s->b, IB_EVENT_QP_ACCESS_ERR));
}

static void register_and_write(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);

	KUNIT_EXPECT_EQ(test, s->mr->length, SIZE);
	expect_done(test, s->a, write_by(test, s, s->mr->rkey), IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, s->to, s->from, SIZE);
}

static void not_before_registration(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct ib_mr *fresh = new_mr(test, 4);

	map_buffer(test, fresh, s->to, SIZE);
	expect_refused(test, s, write_by(test, s, fresh->rkey));
}

static void not_after_invalidation(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);

	expect_done(test, s->b, post_send(test, s->b, IB_WR_LOCAL_INV, NULL, 0,
					  s->mr->rkey), IB_WC_LOCAL_INV);
	expect_refused(test, s, write_by(test, s, s->mr->rkey));
}

static void not_after_remote_invalidation(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct request *recv, *send;

	recv = post_recv(test, s->b, new_buffer(test, 16), 16);
	send = post_send(test, s->a, IB_WR_SEND_WITH_INV, s->from, 16,
			 s->mr->rkey);
	expect_done(test, s->a, send, IB_WC_SEND);
	expect_done(test, s->b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, recv->wc.ex.invalidate_rkey, s->mr->rkey);
	expect_refused(test, s, write_by(test, s, s->mr->rkey));
}

/* The receiver's own key is not the peer's to invalidate with. */
static void remote_invalidation_of_nothing(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct request *recv, *send;

	recv = post_recv(test, s->b, new_buffer(test, 16), 16);
	send = post_send(test, s->a, IB_WR_SEND_WITH_INV, s->from, 16,
			 s->mr->rkey ^ 1);
	expect_status(test, s->a, send, IB_WC_REM_ACCESS_ERR);
	expect_status(test, s->b, recv, IB_WC_LOC_PROT_ERR);
}

/* A segment of the region itself, not of all memory. */
static struct ib_sge inside(struct scene *s, u32 off, u32 len)
{
	return (struct ib_sge){
		.addr = s->mr->iova + off, .length = len,
		.lkey = s->mr->lkey,
	};
}

/* What a message comes from, and what it comes into, may be what it invalidates. */
static void remote_invalidation_of_the_buffers_themselves(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct request *recv = new_request(test), *sent = new_request(test);
	struct ib_sge from = inside(s, 0, 16), to = inside(s, PAGE_SIZE, 16);
	struct ib_recv_wr rwr = {
		.wr_cqe = &recv->cqe, .sg_list = &to, .num_sge = 1,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &sent->cqe, .sg_list = &from, .num_sge = 1,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = s->mr->rkey,
	};

	memset(s->to, 0x5a, 16);
	KUNIT_ASSERT_EQ(test, ib_post_recv(s->b->qp, &rwr, NULL), 0);
	post(test, s->a, &wr);
	expect_done(test, s->a, sent, IB_WC_SEND);
	expect_done(test, s->b, recv, IB_WC_RECV);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->to + PAGE_SIZE, 0x5a, 16));
	memset(s->to, 0, SIZE);
	expect_refused(test, s, write_by(test, s, s->mr->rkey));
}

/* The last one to use a region is the ring of another queue pair: that ends. */
static void invalidation_waits_for_the_last_user(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct vrnic_mr *mr = to_vmr(s->mr);
	struct request *recv, *send, *inv;

	recv = post_recv(test, s->b, new_buffer(test, 16), 16);
	refcount_inc(&mr->refs);
	send = post_send(test, s->a, IB_WR_SEND_WITH_INV, s->from, 16,
			 s->mr->rkey);
	KUNIT_EXPECT_TRUE(test, stays_open(s->a, send));
	inv = post_send(test, s->b, IB_WR_LOCAL_INV, NULL, 0, s->mr->rkey);
	KUNIT_EXPECT_TRUE(test, stays_open(s->b, inv));
	vrnic_mr_put(mr);
	expect_done(test, s->a, send, IB_WC_SEND);
	expect_done(test, s->b, recv, IB_WC_RECV);
	expect_done(test, s->b, inv, IB_WC_LOCAL_INV);
}

/* That is the owner's own key. */
static void remote_invalidation_by_local_key(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct request *recv, *send;

	KUNIT_ASSERT_NE(test, s->mr->lkey, s->mr->rkey);
	recv = post_recv(test, s->b, new_buffer(test, 16), 16);
	send = post_send(test, s->a, IB_WR_SEND_WITH_INV, s->from, 16,
			 s->mr->lkey);
	expect_status(test, s->a, send, IB_WC_REM_ACCESS_ERR);
	expect_status(test, s->b, recv, IB_WC_LOC_PROT_ERR);
}

/* As storage protocols do for each command: a new key, the old one is void. */
static void keys_change(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	u32 old = s->mr->rkey;
	int i;

	for (i = 0; i < 300; i++) {
		expect_done(test, s->b, post_send(test, s->b, IB_WR_LOCAL_INV,
						  NULL, 0, s->mr->rkey),
			    IB_WC_LOCAL_INV);
		ib_update_fast_reg_key(s->mr, ib_inc_rkey(s->mr->rkey));
		map_buffer(test, s->mr, s->to, SIZE);
		expect_done(test, s->b, post_reg(test, s->b, s->mr,
						 CONSUMER_ACCESS), IB_WC_REG_MR);
		KUNIT_ASSERT_EQ(test, s->mr->rkey & ~0xffU, old & ~0xffU);
		memset(s->to, 0, SIZE);
		expect_done(test, s->a, write_by(test, s, s->mr->rkey),
			    IB_WC_RDMA_WRITE);
		KUNIT_ASSERT_EQ(test, memcmp(s->to, s->from, SIZE), 0);
	}
	memset(s->to, 0, SIZE);
	expect_refused(test, s, write_by(test, s, ib_inc_rkey(s->mr->rkey)));
}

static void old_key_is_void(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	u32 old = s->mr->rkey;

	expect_done(test, s->b, post_send(test, s->b, IB_WR_LOCAL_INV, NULL, 0,
					  old), IB_WC_LOCAL_INV);
	ib_update_fast_reg_key(s->mr, ib_inc_rkey(old));
	map_buffer(test, s->mr, s->to, SIZE);
	expect_done(test, s->b, post_reg(test, s->b, s->mr, CONSUMER_ACCESS),
		    IB_WC_REG_MR);
	expect_refused(test, s, write_by(test, s, old));
}

static void rights_as_registered(struct kunit *test)
{
	struct scene *s = new_scene(test, IB_ACCESS_LOCAL_WRITE |
					  IB_ACCESS_REMOTE_READ);

	memset(s->to, 0x5a, SIZE);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_READ, s->from,
					  SIZE, s->mr->iova, s->mr->rkey),
		    IB_WC_RDMA_READ);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->from, 0x5a, SIZE));
	memset(s->to, 0, SIZE);
	expect_refused(test, s, write_by(test, s, s->mr->rkey));
}

static void one_byte_too_far(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);

	expect_refused(test, s, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->from,
					  SIZE, s->mr->iova + 1, s->mr->rkey));
}

static void registered_twice(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);

	expect_status(test, s->b, post_reg(test, s->b, s->mr, CONSUMER_ACCESS),
		      IB_WC_LOC_QP_OP_ERR);
}

/* A consumer may map the next command's memory while a peer still has the key of the last one. */
static void mapping_gives_no_access(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	u8 *next = new_buffer(test, SIZE);
	u64 iova = s->mr->iova;

	map_buffer(test, s->mr, next, SIZE);
	expect_done(test, s->a, post_rdma(test, s->a, IB_WR_RDMA_WRITE, s->from, SIZE, iova,
					  s->mr->rkey), IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, s->to, s->from, SIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(next, 0, SIZE));
}

/* The ring of another queue pair may still use what was registered before. */
static void registration_waits_for_the_last_user(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct vrnic_mr *mr = to_vmr(s->mr);
	struct request *reg;

	expect_done(test, s->b, post_send(test, s->b, IB_WR_LOCAL_INV, NULL, 0,
					  s->mr->rkey), IB_WC_LOCAL_INV);
	refcount_inc(&mr->refs);
	map_buffer(test, s->mr, s->to, SIZE);
	reg = post_reg(test, s->b, s->mr, CONSUMER_ACCESS);
	KUNIT_EXPECT_TRUE(test, stays_open(s->b, reg));
	vrnic_mr_put(mr);
	expect_done(test, s->b, reg, IB_WC_REG_MR);
	expect_done(test, s->a, write_by(test, s, s->mr->rkey), IB_WC_RDMA_WRITE);
}

static void dealloc_pd(void *pd)
{
	ib_dealloc_pd(pd);
}

static void dereg_mr(void *mr)
{
	WARN_ON(ib_dereg_mr(mr));
}

static void other_protection_domain(struct kunit *test)
{
	struct scene *s = new_scene(test, CONSUMER_ACCESS);
	struct consumer *c = test->priv;
	struct ib_pd *pd = ib_alloc_pd(c->dev, 0);
	struct ib_mr *mr;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pd);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dealloc_pd, pd), 0);
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dereg_mr, mr), 0);
	map_buffer(test, mr, s->to, SIZE);
	expect_status(test, s->b, post_reg(test, s->b, mr, CONSUMER_ACCESS),
		      IB_WC_LOC_QP_OP_ERR);
}

static void alloc_limits(struct kunit *test)
{
	struct consumer *c = test->priv;
	u32 most = c->dev->attrs.max_fast_reg_page_list_len;

	new_mr(test, most);
	KUNIT_EXPECT_TRUE(test, IS_ERR(ib_alloc_mr(c->pd, IB_MR_TYPE_MEM_REG,
						   most + 1)));
	KUNIT_EXPECT_TRUE(test, IS_ERR(ib_alloc_mr(c->pd, IB_MR_TYPE_DM, 4)));
}

static void free_page_of(void *page)
{
	__free_page(page);
}

#define PAGES	5

/* Pages from anywhere, the first not from its start, the last not to its end. */
static void scattered_pages(struct kunit *test)
{
	struct scatterlist *sg = new_buffer(test, PAGES * sizeof(*sg));
	const u32 skip = 123, tail = 45;
	struct consumer *c = test->priv;
	u8 *from, *at;
	struct end *a, *b;
	struct ib_mr *mr;
	u32 i, done = 0, len;

	new_pair(test, &a, &b);
	from = new_buffer(test, PAGES * PAGE_SIZE);
	for (i = 0; i < PAGES * PAGE_SIZE; i++)
		from[i] = i * 3 + i / 241;
	sg_init_table(sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		KUNIT_ASSERT_NOT_NULL(test, page);
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_page_of,
								page), 0);
		/* descending, so that neighbours in memory are none in the list */
		sg_set_page(&sg[PAGES - 1 - i], page, PAGE_SIZE, 0);
	}
	sg[0].offset = skip;
	sg[0].length -= skip;
	sg[PAGES - 1].length = tail;
	mr = new_mr(test, PAGES);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, sg, PAGES, DMA_BIDIRECTIONAL),
			PAGES);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, sg, PAGES, NULL, PAGE_SIZE), PAGES);
	len = (PAGES - 1) * PAGE_SIZE - skip + tail;
	KUNIT_ASSERT_EQ(test, mr->length, len);
	expect_done(test, b, post_reg(test, b, mr, CONSUMER_ACCESS), IB_WC_REG_MR);
	expect_done(test, a, post_rdma(test, a, IB_WR_RDMA_WRITE, from, len,
				       mr->iova, mr->rkey), IB_WC_RDMA_WRITE);
	for (i = 0; i < PAGES; i++, done += sg[i - 1].length) {
		at = page_address(sg_page(&sg[i]));
		KUNIT_EXPECT_MEMEQ(test, at + sg[i].offset, from + done,
				   sg[i].length);
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(sg_page(&sg[0])), 0, skip));
	KUNIT_EXPECT_NULL(test, memchr_inv(at + tail, 0, PAGE_SIZE - tail));
}

/* A list with a hole in the middle of a page does not map as one. */
static void gaps_end_the_mapping(struct kunit *test)
{
	u8 *buf = new_buffer(test, 4 * PAGE_SIZE);
	struct consumer *c = test->priv;
	struct ib_mr *mr = new_mr(test, 4);
	struct scatterlist sg[2];

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], buf, PAGE_SIZE - 1);
	sg_set_buf(&sg[1], buf + 2 * PAGE_SIZE, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, sg, 2, DMA_BIDIRECTIONAL), 2);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(mr, sg, 2, NULL, PAGE_SIZE), 1);
}

/* More pages than it was made for: it maps what it can. */
static void too_many_pages(struct kunit *test)
{
	u8 *buf = new_buffer(test, 4 * PAGE_SIZE);
	struct consumer *c = test->priv;
	struct ib_mr *mr = new_mr(test, 2);
	struct scatterlist sg;

	sg_init_one(&sg, buf, 3 * PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
	KUNIT_EXPECT_LE(test, mr->length, 2 * PAGE_SIZE);
	KUNIT_EXPECT_LE(test, to_vmr(mr)->nr_mapped, 2);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(register_and_write),
	KUNIT_CASE(not_before_registration),
	KUNIT_CASE(not_after_invalidation),
	KUNIT_CASE(not_after_remote_invalidation),
	KUNIT_CASE(remote_invalidation_of_nothing),
	KUNIT_CASE(remote_invalidation_of_the_buffers_themselves),
	KUNIT_CASE(invalidation_waits_for_the_last_user),
	KUNIT_CASE(remote_invalidation_by_local_key),
	KUNIT_CASE(keys_change),
	KUNIT_CASE(old_key_is_void),
	KUNIT_CASE(rights_as_registered),
	KUNIT_CASE(one_byte_too_far),
	KUNIT_CASE(registered_twice),
	KUNIT_CASE(mapping_gives_no_access),
	KUNIT_CASE(registration_waits_for_the_last_user),
	KUNIT_CASE(other_protection_domain),
	KUNIT_CASE(alloc_limits),
	KUNIT_CASE(scattered_pages),
	KUNIT_CASE(gaps_end_the_mapping),
	KUNIT_CASE(too_many_pages),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "vrnic_verbs_mr",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
