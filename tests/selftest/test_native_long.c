// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages for handlers that are longer than a reception FIFO takes: the receiver fetches them. */
#include <signal.h>

#include "native.h"

#define LEN	(4 << 20)

NBED(longer, LEN);

/* What came: it has to be some of @from, where the header says. */
struct inbox {
	const struct buf *from;
	int count, bad;
	size_t bytes;
	struct vrnic_peer peer;
};

static void compare(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	struct inbox *in = arg;
	uint32_t at = 0;

	if (m->header_len)
		memcpy(&at, m->header, sizeof(at));
	in->bad += at + m->length > LEN || memcmp(m->data, in->from->addr + at, m->length);
	in->bytes += m->length;
	in->peer = m->peer;
	in->count++;
}

static void count_calls(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	++*(int *)arg;
}

/* From @at in the buffer; where it is from is the header. */
static int send_some(struct node *node, uint32_t at, size_t length, const struct vrnic_done *done)
{
	return vrnic_send(node->to, SEND(.comp_mask = VRNIC_SEND_MR, .mr = node->buf.mr, .id = 3,
					 .data = node->buf.addr + at, .length = length,
					 .header = &at, .header_len = sizeof(at)), done);
}

TEST_F(longer, of_all_lengths)
{
	static const size_t lens[] = {
		0, 1, 4000, 4092, 4093, 4096, 4097, 5000, 65536, 100001, 1 << 20, LEN,
	};
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct vrnic_peer peer;
	struct told told = {};
	size_t sum = 0;
	int i;

	buf_fill(&bed->a.buf, 3);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ASSERT_OK(send_some(&bed->a, i && lens[i] < LEN ? i : 0, lens[i],
				    DONE(TELL(&told), .local = bed->a.counter,
					 .remote = bed->a.open)));
		ASSERT_OK(nbed_until(bed, &in.count, i + 1));
		ASSERT_OK(nbed_until(bed, &told.count, i + 1));
		EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
		/* they fall by one for each message, however long it is */
		EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
		EXPECT_EQ(0, vrnic_counter_read(bed->a.open));
		sum += lens[i];
	}
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(sum, in.bytes);
	vrnic_endpoint_peer(bed->b.to, &peer);
	EXPECT_EQ(peer.fifo, in.peer.fifo);
	EXPECT_EQ(peer.host, in.peer.host);
}

/* More at a time than a receiver has memory for: the others wait, and none is lost. */
TEST_F(longer, more_than_the_receiver_takes_at_a_time)
{
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct told told = {};
	int i, n = 3 * (VRNIC_SEND_MAX / LEN);

	buf_fill(&bed->a.buf, 4);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	for (i = 0; i < n; i++)
		ASSERT_OK(send_some(&bed->a, 8 * i, LEN - 8 * i,
				    DONE(TELL(&told), .flags = VRNIC_QUEUE)));
	ASSERT_OK(nbed_until(bed, &told.count, n));
	ASSERT_OK(nbed_until(bed, &in.count, n));
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
}

/* Handlers that answer each message with one as long. */
struct player {
	struct node *node;
	struct inbox in;
	struct told told;
	int left, failed;
};

static void play(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	struct player *player = arg;

	compare(context, m, &player->in);
	if (player->left) {
		player->left--;
		player->failed += !!send_some(player->node, 0, 100000,
					      DONE(TELL(&player->told), .flags = VRNIC_QUEUE));
	}
}

TEST_F(longer, to_and_fro)
{
	struct nbed *bed = &self->bed;
	struct player a = { .node = &bed->a, .in.from = &bed->b.buf, .left = 50 };
	struct player b = { .node = &bed->b, .in.from = &bed->a.buf, .left = 50 };

	buf_fill(&bed->a.buf, 5);
	buf_fill(&bed->b.buf, 6);
	ASSERT_OK(vrnic_dispatch_set(bed->a.context, 3, play, &a));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, play, &b));
	ASSERT_OK(send_some(&bed->a, 0, 100000, DONE(TELL(&a.told))));
	ASSERT_OK(nbed_until(bed, &a.in.count, 50));
	ASSERT_OK(nbed_until(bed, &b.in.count, 51));
	EXPECT_EQ(0, a.in.bad + b.in.bad + a.failed + b.failed);
}

TEST_F(longer, nobody_handles_it)
{
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct told told = {};

	ASSERT_OK(send_some(&bed->a, 0, 5000, DONE(TELL(&told), .local = bed->a.counter)));
	ASSERT_OK(nbed_until(bed, &told.count, 1));
	EXPECT_FAILED(IBV_WC_REM_OP_ERR, told.status);
	EXPECT_EQ(1, vrnic_counter_error(bed->a.counter, NULL));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	ASSERT_OK(send_some(&bed->a, 0, 5000, DONE(TELL(&told))));
	ASSERT_OK(nbed_until(bed, &told.count, 2));
	ASSERT_OK(nbed_until(bed, &in.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
}

/* The region does not let the peer read: both go on. */
TEST_F(longer, what_the_peer_may_not_read)
{
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct told told = {};
	struct ibv_mr *mr;

	mr = ibv_reg_mr(vrnic_client_pd(bed->a.client), bed->a.buf.addr, LEN,
			IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	ASSERT_OK(vrnic_send(bed->a.to, SEND(.comp_mask = VRNIC_SEND_MR, .mr = mr, .id = 3,
					     .data = bed->a.buf.addr, .length = LEN),
			     DONE(TELL(&told))));
	ASSERT_OK(nbed_until(bed, &told.count, 1));
	EXPECT_NE(IBV_WC_SUCCESS, told.status.status);
	ASSERT_OK(send_some(&bed->a, 0, LEN, DONE(TELL(&told))));
	ASSERT_OK(nbed_until(bed, &in.count, 1));
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(LEN, in.bytes);
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* Receivers that destroy their endpoint, with messages under way and some that wait. */
TEST_F(longer, the_endpoint_goes)
{
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	int i, n = 2 * (VRNIC_SEND_MAX / LEN);
	struct told told = {};

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	for (i = 0; i < n; i++)
		ASSERT_OK(send_some(&bed->a, 0, LEN, DONE(TELL(&told), .flags = VRNIC_QUEUE)));
	/* the offers are there, and none of their data has come */
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	ASSERT_LE(0, vrnic_advance(bed->b.context, 1));
	ASSERT_OK(vrnic_endpoint_destroy(bed->b.to));
	bed->b.to = NULL;
	ASSERT_LE(0, vrnic_advance(bed->b.context, 1000));
	EXPECT_EQ(0, in.bad);
	EXPECT_GT(n, in.count);
	/* and the sender learns that they are not taken */
	ASSERT_OK(advance_until(bed->a.context, &told.count, n));
}

/* A handler that wants no more of its sender. */
static void destroy(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	struct node *node = arg;

	vrnic_endpoint_destroy(node->to);
	node->to = NULL;
}

TEST_F(longer, the_handler_destroys_the_endpoint)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	struct patience patience = {};
	int i;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, destroy, &bed->b));
	for (i = 0; i < 20; i++)
		ASSERT_OK(send_some(&bed->a, 0, LEN / 4, DONE(TELL(&told), .flags = VRNIC_QUEUE)));
	while (bed->b.to && still_patient(&patience, 0)) {
		ASSERT_LE(0, vrnic_advance(bed->b.context, 1));
		ASSERT_LE(0, vrnic_advance(bed->a.context, 1));
	}
	EXPECT_EQ(NULL, bed->b.to);
	ASSERT_OK(advance_until(bed->a.context, &told.count, 20));
}

TEST_F(longer, the_longest)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	struct buf big;
	int calls = 0;

	ASSERT_OK(buf_open(&big, vrnic_client_pd(bed->a.client), VRNIC_SEND_MAX, 0, ACCESS_REMOTE));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 4, count_calls, &calls));
	ASSERT_OK(vrnic_send(bed->a.to, SEND(.comp_mask = VRNIC_SEND_MR, .mr = big.mr, .id = 4,
					     .data = big.addr, .length = VRNIC_SEND_MAX),
			     DONE(TELL(&told))));
	ASSERT_OK(nbed_until(bed, &calls, 1));
	ASSERT_OK(nbed_until(bed, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	buf_close(&big);
}

/* A sender that dies leaves nothing behind, and the receiver goes on. */
static int sends_until_it_is_killed(int fd, const void *arg)
{
	struct told told = {};
	struct node node = {};
	int ret = node_open(&node, LEN, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	while (!ret) {
		ret = send_some(&node, 0, LEN, DONE(TELL(&told), .flags = VRNIC_QUEUE));
		if (!ret && vrnic_advance(node.context, 10) < 0)
			ret = -EIO;
	}
	return ret;
}

TEST(the_sender_is_killed)
{
	struct inbox in = {};
	struct node node = {};
	struct peer peer;
	int i;

	NEED_NATIVE();
	for (i = 0; i < scaled(5); i++) {
		ASSERT_OK(peer_start(&peer, sends_until_it_is_killed, NULL));
		ASSERT_OK(node_open(&node, LEN, NULL));
		ASSERT_OK(vrnic_dispatch_set(node.context, 3, compare, &in));
		in = (struct inbox){ .from = &node.buf };
		ASSERT_OK(node_meet(&node, peer.fd));
		ASSERT_OK(advance_until(node.context, &in.count, 1 + i));
		ASSERT_OK(peer_kill(&peer));
		ASSERT_LE(0, vrnic_advance(node.context, 1000));
		/* all memory is zero, at both ends */
		EXPECT_EQ(0, in.bad);
		EXPECT_OK(node_close(&node));
	}
}

TEST_F(longer, what_makes_no_sense)
{
	struct node *a = &self->bed.a;
	static uint8_t header[1025];
	struct vrnic_send_wr good = { .comp_mask = VRNIC_SEND_MR, .mr = a->buf.mr, .id = 3,
				      .data = a->buf.addr, .length = 5000 }, wr;
	const struct vrnic_done *done = DONE(.local = a->counter);

	wr = good;
	wr.mr = NULL;
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &wr, done));
	wr = good;
	wr.data = NULL;
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &wr, done));
	wr = good;
	wr.comp_mask = 0;
	EXPECT_EQ(-EMSGSIZE, vrnic_send(a->to, &wr, done));
	wr = good;
	wr.length = VRNIC_SEND_MAX + 1;
	EXPECT_EQ(-EMSGSIZE, vrnic_send(a->to, &wr, done));
	wr = good;
	wr.header = header;
	wr.header_len = sizeof(header);
	EXPECT_EQ(-EMSGSIZE, vrnic_send(a->to, &wr, done));
	wr = good;
	wr.id = VRNIC_DISPATCH_MAX;
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &wr, done));
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &good, DONE(.local = a->counter, .target = 1)));
	/* nothing would say when the data may change */
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &good, NULL));
	EXPECT_EQ(-EINVAL, vrnic_send(a->to, &good, DONE(.flags = VRNIC_QUEUE)));
	EXPECT_EQ(-E2BIG, vrnic_sendv(a->to, &good, NULL, 0, NULL));
	wr.comp_mask = 2;
	EXPECT_EQ(-E2BIG, vrnic_send(a->to, &wr, done));
	EXPECT_EQ(0, vrnic_counter_read(a->counter));
}

TEST_HARNESS_MAIN
