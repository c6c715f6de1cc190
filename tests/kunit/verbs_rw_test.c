// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the RDMA core does for servers of block and file protocols: queues from its pool, and
 * transfers of lists of memory, with regions and without.
 */

#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/rw.h>

#include "consumer.h"

#define PAGES	20
#define SIZE	(PAGES * PAGE_SIZE)
#define CONTEXTS 4	/* transfers at a time, for which the queue pair has room */

/**
 * struct scene - a server, and memory of its client
 * @server: queue pair of the server, on a queue of the pool
 * @client: queue pair of the client
 * @mine: memory of the server
 * @list: every second page of it
 * @theirs: memory of the client, half as much
 * @region: the same, for the server
 */
struct scene {
	struct end *server;
	struct end *client;
	u8 *mine;
	struct scatterlist list[PAGES / 2];
	u8 *theirs;
	struct ib_mr *region;
};

/* struct borrowed - a part of a queue of the pool */
struct borrowed {
	struct ib_cq *cq;
	unsigned int entries;
};

static void put_borrowed(void *arg)
{
	struct borrowed *b = arg;

	ib_cq_pool_put(b->cq, b->entries);
}

static struct ib_cq *pool_cq(struct kunit *test, unsigned int entries)
{
	struct borrowed *b = new_buffer(test, sizeof(*b));
	struct consumer *c = test->priv;

	b->cq = ib_cq_pool_get(c->dev, entries, 0, IB_POLL_WORKQUEUE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b->cq);
	b->entries = entries;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_borrowed, b), 0);
	return b->cq;
}

static struct end *pool_end(struct kunit *test, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = CONSUMER_DEPTH,
			.max_recv_wr = CONSUMER_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_rdma_ctxs = CONTEXTS,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = 1,
	};

	return consumer_end(test, &init);
}

static struct scene *new_scene(struct kunit *test)
{
	struct scene *s = new_buffer(test, sizeof(*s));
	u32 i;

	s->server = pool_end(test, pool_cq(test, 4 * CONSUMER_DEPTH));
	s->client = new_end(test, IB_QPT_RC);
	connect_ends(test, s->server, s->client);
	s->mine = new_buffer(test, SIZE);
	s->theirs = new_buffer(test, SIZE / 2);
	s->region = new_region(test, s->client, s->theirs, SIZE / 2, CONSUMER_ACCESS);
	sg_init_table(s->list, PAGES / 2);
	for (i = 0; i < PAGES / 2; i++)
		sg_set_buf(&s->list[i], s->mine + 2 * i * PAGE_SIZE, PAGE_SIZE);
	return s;
}

static void fill(u8 *to, u32 n, u32 seed)
{
	u32 i;

	for (i = 0; i < n; i++)
		to[i] = seed + i * 7 + i / 251;
}

/* Move the whole list, as a server does for one command. Return: requests that it takes. */
static int transfer(struct kunit *test, struct scene *s, enum dma_data_direction dir,
		    enum ib_wc_opcode opcode)
{
	struct request *req = new_request(test);
	struct rdma_rw_ctx ctx;
	int n;

	n = rdma_rw_ctx_init(&ctx, s->server->qp, 1, s->list, PAGES / 2, 0, s->region->iova,
			     s->region->rkey, dir);
	KUNIT_ASSERT_GT(test, n, 0);
	KUNIT_EXPECT_EQ(test, rdma_rw_ctx_post(&ctx, s->server->qp, 1, &req->cqe, NULL), 0);
	expect_done(test, s->server, req, opcode);
	rdma_rw_ctx_destroy(&ctx, s->server->qp, 1, s->list, PAGES / 2, dir);
	return n;
}

/* The pages of the list are those of the client, and the pages between them are @between. */
static void expect_transferred(struct kunit *test, struct scene *s, u8 between)
{
	u32 i;

	for (i = 0; i < PAGES / 2; i++) {
		KUNIT_EXPECT_MEMEQ(test, s->mine + 2 * i * PAGE_SIZE, s->theirs + i * PAGE_SIZE,
				   PAGE_SIZE);
		KUNIT_EXPECT_NULL(test, memchr_inv(s->mine + (2 * i + 1) * PAGE_SIZE, between,
						   PAGE_SIZE));
	}
}

static void read_list(struct kunit *test, struct scene *s, u32 seed)
{
	memset(s->mine, 0x5a, SIZE);
	fill(s->theirs, SIZE / 2, seed);
	transfer(test, s, DMA_FROM_DEVICE, IB_WC_RDMA_READ);
	expect_transferred(test, s, 0x5a);
}

static void write_list(struct kunit *test, struct scene *s, u32 seed)
{
	u32 i;

	memset(s->mine, 0x5a, SIZE);
	for (i = 0; i < PAGES / 2; i++)
		fill(s->mine + 2 * i * PAGE_SIZE, PAGE_SIZE, seed + i);
	memset(s->theirs, 0, SIZE / 2);
	transfer(test, s, DMA_TO_DEVICE, IB_WC_RDMA_WRITE);
	expect_transferred(test, s, 0x5a);
}

static void transfers_by_segments(struct kunit *test)
{
	struct scene *s = new_scene(test);
	u32 i;

	KUNIT_EXPECT_TRUE(test, list_empty(&s->server->qp->rdma_mrs));
	for (i = 0; i < 10; i++) {
		read_list(test, s, i);
		write_list(test, s, i);
	}
}

static void back_to_segments(void *arg)
{
	struct ib_device *dev = arg;

	dev->attrs.max_sgl_rd = 0;
}

/* The core takes regions if a device says that it reads long lists better with them. */
static void transfers_by_regions(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct scene *s;
	u32 i;

	KUNIT_ASSERT_EQ(test, c->dev->attrs.max_sgl_rd, 0);
	c->dev->attrs.max_sgl_rd = 1;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, back_to_segments, c->dev), 0);
	s = new_scene(test);
	KUNIT_EXPECT_FALSE(test, list_empty(&s->server->qp->rdma_mrs));
	/* a region is used again after as many as there are, under a new key */
	for (i = 0; i < 10 * CONTEXTS; i++)
		read_list(test, s, i);
	KUNIT_EXPECT_EQ(test, transfer(test, s, DMA_FROM_DEVICE, IB_WC_RDMA_READ), 3);
}

/* Users of one queue, each with its share, until it is full. */
static void pool_is_shared(struct kunit *test)
{
	struct ib_cq *one = pool_cq(test, 8), *two = pool_cq(test, 8);
	struct end *a = pool_end(test, one), *b = pool_end(test, two);
	u8 *buf = new_buffer(test, 2 * PAGE_SIZE);
	struct request *recv;

	KUNIT_EXPECT_PTR_EQ(test, one, two);
	connect_ends(test, a, b);
	fill(buf, PAGE_SIZE, 1);
	recv = post_recv(test, b, buf + PAGE_SIZE, PAGE_SIZE);
	expect_done(test, a, post_send(test, a, IB_WR_SEND, buf, PAGE_SIZE, 0), IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_MEMEQ(test, buf, buf + PAGE_SIZE, PAGE_SIZE);
}

/* Who wants more than a queue has left gets another one. */
static void pool_grows(struct kunit *test)
{
	struct ib_cq *one = pool_cq(test, 3000), *two = pool_cq(test, 3000), *three;

	three = pool_cq(test, 3000);
	KUNIT_EXPECT_PTR_NE(test, one, two);
	KUNIT_EXPECT_PTR_NE(test, two, three);
	KUNIT_EXPECT_PTR_NE(test, three, one);
}

static struct kunit_case rw_cases[] = {
	KUNIT_CASE(transfers_by_segments),
	KUNIT_CASE(transfers_by_regions),
	KUNIT_CASE(pool_is_shared),
	KUNIT_CASE(pool_grows),
	{}
};

static struct kunit_suite rw_suite = {
	.name = "vrnic_verbs_rw",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = rw_cases,
};

kunit_test_suite(rw_suite);
