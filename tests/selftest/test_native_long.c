// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages for handlers that are longer than a reception FIFO takes: the receiver fetches them. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <pace_wire.h>

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

/* ---- two senders ---- */

#define MESSAGES	40	/* of each sender, up to LEN bytes: more than may be on their way */

/**
 * struct sender - a thread that sends
 * @node: its end
 * @go: all its offers are posted before the receiver looks at any
 * @ret: 0, or what went wrong
 * @back: the receiver's endpoint to it
 * @peer: how the receiver knows it
 * @came: which messages have come, by their number
 * @bad: those that were not what was sent, or came twice
 */
struct sender {
	struct node node;
	pthread_barrier_t *go;
	int ret;
	struct vrnic_endpoint *back;
	struct vrnic_peer peer;
	uint8_t came[MESSAGES];
	int bad;
};

struct crowd {
	struct sender of[2];
	int count, strangers;
};

/* Message @i is some of the sender's buffer. */
static uint32_t start_of(uint32_t i)
{
	return i * 4096 + i;
}

static size_t length_of(uint32_t i)
{
	return i % 3 ? LEN - start_of(i) : 5000 + i;
}

static void sort(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	struct crowd *crowd = arg;
	struct sender *from = NULL;
	uint32_t i = MESSAGES;
	int k;

	for (k = 0; k < 2; k++)
		if (m->peer.fifo == crowd->of[k].peer.fifo &&
		    m->peer.host == crowd->of[k].peer.host)
			from = &crowd->of[k];
	if (m->header_len == sizeof(i))
		memcpy(&i, m->header, sizeof(i));
	crowd->count++;
	if (!from || i >= MESSAGES)
		crowd->strangers++;
	else if (from->came[i]++ || m->length != length_of(i) ||
		 memcmp(m->data, from->node.buf.addr + start_of(i), m->length))
		from->bad++;
}

static void *send_all(void *arg)
{
	struct sender *sender = arg;
	struct node *node = &sender->node;
	struct told told = {};
	uint32_t i;

	for (i = 0; !sender->ret && i < MESSAGES; i++)
		sender->ret = vrnic_send(node->to, SEND(.comp_mask = VRNIC_SEND_MR, .id = 3,
							.mr = node->buf.mr, .header = &i,
							.header_len = sizeof(i),
							.data = node->buf.addr + start_of(i),
							.length = length_of(i)),
					 DONE(TELL(&told), .flags = VRNIC_QUEUE,
					      .local = node->counter));
	pthread_barrier_wait(sender->go);
	if (!sender->ret)
		sender->ret = advance_until(node->context, &told.count, MESSAGES);
	if (!sender->ret)
		sender->ret = vrnic_counter_read(node->counter) ? -EIO : 0;
	return NULL;
}

/* Both know each other. */
static int introduce(struct sender *sender, struct node *receiver)
{
	struct node_info info = node_info(receiver);
	int ret = node_join(&sender->node, &info);

	info = node_info(&sender->node);
	ret = ret ?: vrnic_endpoint_create(receiver->context, &info.address, &sender->back);
	if (!ret)
		vrnic_endpoint_peer(sender->back, &sender->peer);
	return ret;
}

TEST(of_two_senders_at_the_same_time)
{
	static struct crowd crowd;
	struct node receiver = {};
	pthread_barrier_t go;
	pthread_t thread[2];
	int i, k;

	NEED_NATIVE();
	other_side();
	ASSERT_OK(node_open(&receiver, 4096, NULL));
	other_side();
	ASSERT_OK(pthread_barrier_init(&go, NULL, 3));
	ASSERT_OK(vrnic_dispatch_set(receiver.context, 3, sort, &crowd));
	for (k = 0; k < 2; k++) {
		crowd.of[k].go = &go;
		ASSERT_OK(node_open(&crowd.of[k].node, LEN, NULL));
		ASSERT_OK(introduce(&crowd.of[k], &receiver));
		buf_fill(&crowd.of[k].node.buf, 7 + k);
	}
	for (k = 0; k < 2; k++)
		ASSERT_OK(pthread_create(&thread[k], NULL, send_all, &crowd.of[k]));
	pthread_barrier_wait(&go);
	EXPECT_OK(advance_until(receiver.context, &crowd.count, 2 * MESSAGES));
	for (k = 0; k < 2; k++) {
		/* it may have to hear of the end of its last message */
		while (pthread_tryjoin_np(thread[k], NULL))
			ASSERT_LE(0, vrnic_advance(receiver.context, 16));
		EXPECT_OK(crowd.of[k].ret);
		EXPECT_EQ(0, crowd.of[k].bad);
		for (i = 0; i < MESSAGES; i++)
			EXPECT_EQ(1, crowd.of[k].came[i]);
		EXPECT_OK(vrnic_endpoint_destroy(crowd.of[k].back));
	}
	EXPECT_EQ(0, crowd.strangers);
	EXPECT_OK(node_close(&receiver));
	for (k = 0; k < 2; k++)
		EXPECT_OK(node_close(&crowd.of[k].node));
	pthread_barrier_destroy(&go);
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

/* ---- a receiver that has no memory ---- */

/* Bytes that this process has allocated. */
static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The next message of @length has come to its end. Return: its status, or a negative errno. */
static int send_one(struct nbed *bed, size_t length, const struct vrnic_done *done)
{
	struct told *told = done->arg;
	int ret = send_some(&bed->a, 0, length, done);

	ret = ret ?: nbed_until(bed, &told->count, told->count + 1);
	return ret ?: (int)told->status.status;
}

#define REFUSALS	30

TEST_F(longer, the_receiver_cannot_register_memory)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct inbox in = { .from = &a->buf };
	struct told told = {};
	const struct vrnic_done *done = DONE(TELL(&told), .local = a->counter);
	size_t heap = 0;
	long before;
	int i;

	buf_fill(&a->buf, 8);
	ASSERT_OK(obey_memlock());
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	/* after this one, both ends have what they keep for each other */
	ASSERT_STATUS(IBV_WC_SUCCESS, send_one(bed, LEN, done));
	ASSERT_OK(nbed_until(bed, &in.count, 1));
	before = pinned_bytes();
	ASSERT_OK(may_pin(LEN / 2));
	for (i = 0; i < REFUSALS; i++) {
		ASSERT_STATUS(IBV_WC_REM_OP_ERR, send_one(bed, LEN, done));
		EXPECT_EQ(before, pinned_bytes());
		/* the first ones leave something in the caches of malloc() */
		if (i == 3)
			heap = allocated();
	}
	EXPECT_GT(heap + 1024, allocated());
	EXPECT_EQ(REFUSALS, vrnic_counter_error(a->counter, NULL));
	EXPECT_EQ(1, in.count);
	/* the next that is short enough is taken, and with more memory all are */
	ASSERT_STATUS(IBV_WC_SUCCESS, send_one(bed, LEN / 4, done));
	ASSERT_OK(may_pin(2L * LEN));
	ASSERT_STATUS(IBV_WC_SUCCESS, send_one(bed, LEN, done));
	ASSERT_OK(nbed_until(bed, &in.count, 3));
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(2 * LEN + LEN / 4, in.bytes);
	EXPECT_EQ(before, pinned_bytes());
}

/* There is memory for one: the others wait until it is over, and none is refused. */
TEST_F(longer, the_receiver_has_memory_for_one)
{
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct told told = {};
	int i;

	buf_fill(&bed->a.buf, 9);
	ASSERT_OK(obey_memlock());
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	ASSERT_STATUS(IBV_WC_SUCCESS, send_one(bed, LEN, DONE(TELL(&told))));
	ASSERT_OK(may_pin(LEN + LEN / 2));
	for (i = 0; i < 6; i++)
		ASSERT_OK(send_some(&bed->a, 0, LEN, DONE(TELL(&told), .flags = VRNIC_QUEUE,
							  .local = bed->a.counter)));
	ASSERT_OK(nbed_until(bed, &told.count, 7));
	ASSERT_OK(nbed_until(bed, &in.count, 7));
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(0, vrnic_counter_error(bed->a.counter, NULL));
}

/* ---- as many as may wait, and one more ---- */

/* Ends of messages, and the one that failed. */
struct ends {
	int count, failed;
	struct vrnic_status failure;
};

static void note_end(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct ends *ends = arg;

	ends->count++;
	if (status->status) {
		ends->failed++;
		ends->failure = *status;
	}
}

/* From here on b's remote gets wait at a, until let_go(). */
static int hold_up(struct nbed *bed)
{
	struct node *b = &bed->b;

	vrnic_counter_set(bed->a.open, 1);
	return vrnic_rget(b->to, &(struct vrnic_rget_wr){ .local = b->buf.addr, .mr = b->buf.mr,
							  .after = b->peer.counter }, NULL);
}

static int let_go(struct nbed *bed)
{
	struct node *b = &bed->b;

	return vrnic_put(b->to, WR(.local = b->buf.addr, .mr = b->buf.mr, .length = 1,
				   .remote = b->peer.addr, .rkey = b->peer.rkey),
			 DONE(.target = b->peer.counter));
}

TEST_F(longer, one_more_than_may_wait)
{
	enum { WAITING = VRNIC_LONGS_WAITING };
	struct nbed *bed = &self->bed;
	struct inbox in = { .from = &bed->a.buf };
	struct ends ends = {};
	struct buf big;
	int i, calls = 0;

	ASSERT_OK(buf_open(&big, vrnic_client_pd(bed->a.client), VRNIC_SEND_MAX, 0, ACCESS_REMOTE));
	buf_fill(&bed->a.buf, 10);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 4, count_calls, &calls));
	ASSERT_OK(hold_up(bed));
	/* this one takes all the room that b gives a sender */
	ASSERT_OK(vrnic_send(bed->a.to, SEND(.comp_mask = VRNIC_SEND_MR, .mr = big.mr, .id = 4,
					     .data = big.addr, .length = VRNIC_SEND_MAX),
			     DONE(.callback = note_end, .arg = &ends)));
	for (i = 0; i <= WAITING; i++)
		ASSERT_OK(send_some(&bed->a, 8 * i, 5000,
				    DONE(.callback = note_end, .arg = &ends, .cookie = i,
					 .flags = VRNIC_QUEUE)));
	ASSERT_OK(nbed_until(bed, &ends.count, 1));
	EXPECT_FAILED(IBV_WC_RNR_RETRY_EXC_ERR, ends.failure);
	EXPECT_EQ(WAITING, ends.failure.cookie);
	EXPECT_EQ(0, in.count + calls);
	ASSERT_OK(let_go(bed));
	ASSERT_OK(nbed_until(bed, &ends.count, WAITING + 2));
	ASSERT_OK(nbed_until(bed, &in.count, WAITING));
	EXPECT_EQ(1, ends.failed);
	EXPECT_EQ(1, calls);
	EXPECT_EQ(0, in.bad);
	EXPECT_EQ(WAITING * 5000, in.bytes);
	/* there is room again */
	ASSERT_OK(send_some(&bed->a, 0, 5000, DONE(.callback = note_end, .arg = &ends)));
	ASSERT_OK(nbed_until(bed, &ends.count, WAITING + 3));
	EXPECT_EQ(1, ends.failed);
	buf_close(&big);
}

/* ---- receivers without an endpoint ---- */

/*
 * A receiver that has no endpoint to the sender cannot answer. Its sender hears nothing, until it
 * destroys its own endpoint.
 */
TEST_F(longer, the_receiver_has_no_endpoint)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct node_info info = node_info(&bed->b);
	struct inbox in = { .from = &a->buf };
	struct vrnic_error error = {};
	struct told told = {};
	int calls = 0;

	ASSERT_OK(vrnic_endpoint_destroy(bed->b.to));
	bed->b.to = NULL;
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, compare, &in));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 4, count_calls, &calls));
	ASSERT_OK(send_some(a, 0, 5000, DONE(TELL(&told), .local = a->counter)));
	/* b has looked at the offer when a message behind it is there */
	ASSERT_OK(vrnic_send(a->to, SEND(.id = 4), NULL));
	ASSERT_OK(nbed_until(bed, &calls, 1));
	ASSERT_LE(0, vrnic_advance(a->context, 16));
	EXPECT_EQ(0, told.count + in.count);
	EXPECT_EQ(0, vrnic_counter_error(a->counter, NULL));
	EXPECT_EQ(1, vrnic_counter_read(a->counter));
	ASSERT_OK(vrnic_endpoint_destroy(a->to));
	a->to = NULL;
	EXPECT_EQ(1, vrnic_counter_error(a->counter, &error));
	EXPECT_FAILED(IBV_WC_WR_FLUSH_ERR, error);
	EXPECT_EQ(0, told.count);
	/* with endpoints at both ends, the same message is taken */
	ASSERT_OK(node_join(a, &info));
	info = node_info(a);
	ASSERT_OK(node_join(&bed->b, &info));
	ASSERT_OK(send_some(a, 0, 5000, DONE(TELL(&told))));
	ASSERT_OK(nbed_until(bed, &told.count, 1));
	ASSERT_OK(nbed_until(bed, &in.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
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
	/* all offers are there: one that comes later is a stranger's */
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
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
