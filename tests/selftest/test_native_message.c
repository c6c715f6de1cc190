// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Short messages through the reception FIFO: none lost, none twice, in order. */
#include <pthread.h>
#include <signal.h>

#include "native.h"

#define LEN	4096

NBED(message, LEN, .inject_slots = 128, .receive_slots = 256);

/* What the receiver checks of a stream whose messages say what they are. */
struct inbox {
	int count, bad;
	uint32_t next;
	struct vrnic_message last;
	uint8_t header[VRNIC_MAX_MESSAGE], data[VRNIC_MAX_MESSAGE];
};

static void keep_last(struct vrnic_context *context,
		      const struct vrnic_message *m, void *arg)
{
	struct inbox *in = arg;

	in->last = *m;
	memcpy(in->header, m->header, m->header_len);
	memcpy(in->data, m->data, m->length);
	in->count++;
}

static uint8_t pattern(uint32_t seq, size_t i)
{
	return seq * 31 + i * 7 + 1;
}

static void stamp(uint8_t *data, size_t len, uint32_t seq)
{
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = pattern(seq, i);
}

/* The header is the sequence number, and says what the data has to be. */
static void check_next(struct vrnic_context *context,
		       const struct vrnic_message *m, void *arg)
{
	struct inbox *in = arg;
	uint32_t seq = ~0U;
	size_t i;

	if (m->header_len == sizeof(seq))
		memcpy(&seq, m->header, sizeof(seq));
	in->bad += seq != in->next || m->length != seq % 500;
	for (i = 0; i < m->length; i++)
		in->bad += ((const uint8_t *)m->data)[i] != pattern(seq, i);
	in->next++;
	in->count++;
}

static int send_seq(struct vrnic_endpoint *to, uint32_t seq, uint32_t id,
		    const struct vrnic_done *done)
{
	uint8_t data[500];

	stamp(data, seq % 500, seq);
	return vrnic_send(to, SEND(.id = id, .header = &seq, .header_len = sizeof(seq),
				   .data = data, .length = seq % 500), done);
}

static const struct split {
	size_t header, data;
} splits[] = {
	{ 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 }, { 8, 8 }, { 63, 1 }, { 64, 0 },
	{ 0, 64 }, { 65, 0 }, { 32, 33 }, { 100, 1000 }, { 1000, 100 },
	{ 4096, 0 }, { 0, 4096 }, { 1, 4095 }, { 4095, 1 }, { 2048, 2048 },
};

/* A message names its sender: host and number together, as the endpoint to it does. */
TEST_F(message, sender_is_found_by_its_name)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(1, sizeof(*in));
	struct vrnic_endpoint *back = NULL;
	struct vrnic_peer peer;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 7, keep_last, in));
	ASSERT_OK(vrnic_send(bed->a.to, SEND(.id = 7), NULL));
	ASSERT_OK(advance_until(bed->b.context, &in->count, 1));
	EXPECT_EQ(0, in->last.comp_mask);
	vrnic_endpoint_peer(bed->b.to, &peer);
	EXPECT_EQ(peer.fifo, in->last.peer.fifo);
	EXPECT_EQ(peer.host, in->last.peer.host);
	EXPECT_EQ(peer.task, in->last.peer.task);
	EXPECT_OK(vrnic_endpoint_of(bed->b.context, &in->last.peer, &back));
	EXPECT_EQ(bed->b.to, back);
	/* the same number on another host is another peer */
	peer.host ^= 1;
	EXPECT_EQ(-ENOENT, vrnic_endpoint_of(bed->b.context, &peer, &back));
	peer.host ^= 1;
	peer.fifo ^= 1;
	EXPECT_EQ(-ENOENT, vrnic_endpoint_of(bed->b.context, &peer, &back));
	/* and what the peer says of its task does not matter */
	in->last.peer.task ^= 1;
	EXPECT_OK(vrnic_endpoint_of(bed->b.context, &in->last.peer, &back));
	ASSERT_OK(vrnic_endpoint_destroy(bed->b.to));
	bed->b.to = NULL;
	EXPECT_EQ(-ENOENT, vrnic_endpoint_of(bed->b.context, &in->last.peer, &back));
	free(in);
}

TEST_F(message, header_and_data)
{
	struct nbed *bed = &self->bed;
	uint8_t header[VRNIC_MAX_MESSAGE], data[VRNIC_MAX_MESSAGE];
	struct inbox *in = calloc(1, sizeof(*in));
	struct vrnic_address source;
	unsigned int i;
	int ret;

	ASSERT_NE(NULL, in);
	vrnic_context_address(bed->a.context, &source);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 7, keep_last, in));
	for (i = 0; i < ARRAY_SIZE(splits); i++) {
		stamp(header, splits[i].header, 2 * i);
		stamp(data, splits[i].data, 2 * i + 1);
		/* a message that came keeps its slots until the wire says so */
		while ((ret = vrnic_send(bed->a.to, SEND(.id = 7, .header = header,
							 .header_len = splits[i].header,
							 .data = data, .length = splits[i].data),
					 NULL)) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->b.context, 100), 0);
		ASSERT_OK(ret);
		memset(header, 0, sizeof(header));
		memset(data, 0, sizeof(data));
		ASSERT_OK(advance_until(bed->b.context, &in->count, i + 1));
		ASSERT_EQ(splits[i].header, in->last.header_len);
		ASSERT_EQ(splits[i].data, in->last.length);
		EXPECT_EQ(source.fifo, in->last.peer.fifo);
		stamp(header, splits[i].header, 2 * i);
		stamp(data, splits[i].data, 2 * i + 1);
		EXPECT_OK(memcmp(header, in->header, splits[i].header));
		EXPECT_OK(memcmp(data, in->data, splits[i].data));
	}
	free(in);
}

TEST_F(message, longer_than_a_message_may_be)
{
	static uint8_t data[2 * VRNIC_MAX_MESSAGE];
	struct vrnic_endpoint *to = self->bed.a.to;

	EXPECT_EQ(-EMSGSIZE, vrnic_send(to, SEND(.id = 1, .data = data, .length = 4097), NULL));
	EXPECT_EQ(-EMSGSIZE, vrnic_send(to, SEND(.id = 1, .header = data, .header_len = 4097),
					NULL));
	EXPECT_EQ(-EMSGSIZE, vrnic_send(to, SEND(.id = 1, .header = data, .header_len = 4096,
						 .data = data, .length = 1), NULL));
	EXPECT_EQ(-EMSGSIZE, vrnic_send(to, SEND(.id = 1, .header = data, .header_len = SIZE_MAX,
						 .data = data, .length = 1), NULL));
	EXPECT_EQ(-EMSGSIZE, vrnic_send(to, SEND(.id = 1, .header = data, .header_len = 8,
						 .data = data, .length = SIZE_MAX - 4), NULL));
	EXPECT_EQ(-EINVAL, vrnic_send(to, SEND(.id = VRNIC_DISPATCH_MAX, .header = data,
					       .header_len = 8), NULL));
	EXPECT_EQ(-EINVAL, vrnic_send(to, SEND(.id = ~0U, .header = data, .header_len = 8), NULL));
}

/* Of one context in sequence, of all sizes, around the ring many times. */
TEST_F(message, order)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(1, sizeof(*in));
	uint32_t i;
	int ret;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 4095, check_next, in));
	for (i = 0; i < 5000; i++) {
		while ((ret = send_seq(bed->a.to, i, 4095, NULL)) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->b.context, 100), 0);
		ASSERT_OK(ret);
	}
	ASSERT_OK(nbed_until(bed, &in->count, 5000));
	EXPECT_EQ(0, in->bad);
	free(in);
}

/* 10,000 are posted while the receiver sleeps: the sender waits, nothing is lost. */
#define MANY	10000

static int sends_many(int fd, const void *arg)
{
	struct node node = {};
	struct told told = {};
	int i, ret = node_open(&node, LEN, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	for (i = 0; i < MANY && !ret; i++)
		ret = send_seq(node.to, i, 5, DONE(TELL(&told),
						   .flags = VRNIC_QUEUE));
	if (!ret)
		ret = say(fd);
	if (!ret)
		ret = advance_until(node.context, &told.count, MANY);
	if (!ret && told.status.status)
		ret = -EIO;
	return ret ? ret : node_close(&node);
}

TEST(receiver_sleeps)
{
	struct inbox *in = calloc(1, sizeof(*in));
	struct node node = {};
	struct peer peer;

	NEED_NATIVE();
	ASSERT_NE(NULL, in);
	ASSERT_OK(peer_start(&peer, sends_many, NULL));
	ASSERT_OK(node_open(&node, LEN, CONTEXT(.receive_slots = 256)));
	ASSERT_OK(vrnic_dispatch_set(node.context, 5, check_next, in));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(hear(peer.fd));
	usleep(200000);
	EXPECT_EQ(0, in->count);
	ASSERT_OK(advance_until(node.context, &in->count, MANY));
	EXPECT_EQ(0, in->bad);
	EXPECT_OK(peer_end(&peer));
	EXPECT_EQ(0, vrnic_advance(node.context, 10));
	EXPECT_EQ(MANY, in->count);
	EXPECT_OK(node_close(&node));
	free(in);
}

/* A stalled sender goes on by itself: its process sleeps until it is told. */
TEST_F(message, stalled_sender_sleeps)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	struct inbox *in = calloc(1, sizeof(*in));
	int i;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, keep_last, in));
	i = node_fill(&bed->a, 1000, DONE(.remote = bed->a.counter));
	ASSERT_LT(0, i);
	EXPECT_EQ(-ETIME, vrnic_counter_wait(bed->a.counter, 0, MSEC_NS));
	/* only the receiver does something, and then all is through */
	ASSERT_OK(advance_until(bed->b.context, &in->count, i));
	EXPECT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(0, told.count);
	free(in);
}

/* Both are full, and both only receive: they come free of each other. */
TEST_F(message, both_full)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(2, sizeof(*in));
	int i, j;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->a.context, 1, keep_last, &in[0]));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, keep_last, &in[1]));
	i = node_fill(&bed->a, 3000, NULL);
	j = node_fill(&bed->b, 3000, NULL);
	ASSERT_LT(0, i);
	ASSERT_LT(0, j);
	ASSERT_OK(nbed_until(bed, &in[0].count, j));
	ASSERT_OK(nbed_until(bed, &in[1].count, i));
	free(in);
}

/* To oneself, until it is full. */
TEST_F(message, to_oneself)
{
	struct node *a = &self->bed.a;
	struct inbox *in = calloc(1, sizeof(*in));
	struct vrnic_address address;
	struct vrnic_endpoint *me;
	int i;

	ASSERT_NE(NULL, in);
	vrnic_context_address(a->context, &address);
	ASSERT_OK(vrnic_endpoint_create(a->context, &address, &me));
	ASSERT_OK(vrnic_dispatch_set(a->context, 1, check_next, in));
	for (i = 0; !send_seq(me, i, 1, NULL); i++)
		ASSERT_LT(i, 10000);
	ASSERT_OK(advance_until(a->context, &in->count, i));
	EXPECT_EQ(0, in->bad);
	EXPECT_OK(vrnic_endpoint_destroy(me));
	free(in);
}

/* Nobody asked for this number: it is dropped, and the next one arrives. */
TEST_F(message, unknown_dispatch_id)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(1, sizeof(*in));
	int i, ret;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 9, keep_last, in));
	for (i = 0; i < 1000; i++) {
		while ((ret = send_seq(bed->a.to, i, i % 10 ? 8 : 9,
				       DONE(.remote = bed->a.counter))) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->b.context, 100), 0);
		ASSERT_OK(ret);
	}
	ASSERT_OK(advance_until(bed->b.context, &in->count, 100));
	EXPECT_OK(counter_done(bed->a.counter));
	/* taken back: it is dropped from now on */
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 9, NULL, NULL));
	ASSERT_OK(send_seq(bed->a.to, 1, 9, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_GE(vrnic_advance(bed->b.context, 10), 0);
	EXPECT_EQ(100, in->count);
	EXPECT_EQ(-EINVAL, vrnic_dispatch_set(bed->b.context, VRNIC_DISPATCH_MAX,
					      keep_last, in));
	free(in);
}

/* A handler answers, and the answer's handler too: ping-pong within advance. */
struct ball {
	struct vrnic_endpoint *back;
	int hits, failed;
};

static void hit(struct vrnic_context *context, const struct vrnic_message *m,
		void *arg)
{
	struct ball *ball = arg;

	ball->hits++;
	if (ball->hits < 500)
		ball->failed += !!vrnic_send(ball->back, SEND(.id = 2, .header = m->header,
							      .header_len = m->header_len),
					     DONE(.flags = VRNIC_QUEUE));
}

TEST_F(message, handlers_may_answer)
{
	struct nbed *bed = &self->bed;
	struct ball a = { bed->a.to }, b = { bed->b.to };

	ASSERT_OK(vrnic_dispatch_set(bed->a.context, 2, hit, &a));
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 2, hit, &b));
	ASSERT_OK(vrnic_send(bed->a.to, SEND(.id = 2, .header = "ball", .header_len = 4), NULL));
	ASSERT_OK(nbed_until(bed, &b.hits, 500));
	EXPECT_EQ(0, a.failed + b.failed);
}

TEST_F(message, arm_and_poll)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(1, sizeof(*in));
	int i, fd = vrnic_context_fd(bed->b.context);

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, keep_last, in));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, vrnic_context_arm(bed->b.context));
		ASSERT_FALSE(readable(fd, 0));
		ASSERT_OK(vrnic_send(bed->a.to, SEND(.id = 1, .header = "x", .header_len = 1),
				     NULL));
		ASSERT_TRUE(readable(fd, WAIT_SECONDS * 1000));
		ASSERT_EQ(1, vrnic_context_arm(bed->b.context));
		ASSERT_OK(advance_until(bed->b.context, &in->count, i + 1));
	}
	free(in);
}

static void *send_after_a_while(void *arg)
{
	struct nbed *bed = arg;

	usleep(20000);
	vrnic_send(bed->a.to, SEND(.id = 1, .header = "x", .header_len = 1), NULL);
	return NULL;
}

TEST_F(message, advance_wait)
{
	struct nbed *bed = &self->bed;
	struct inbox *in = calloc(1, sizeof(*in));
	uint64_t start = now_ns();
	pthread_t thread;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, keep_last, in));
	EXPECT_EQ(-ETIME, vrnic_advance_wait(bed->b.context, 1, 20 * MSEC_NS));
	EXPECT_GE(now_ns() - start, 20 * MSEC_NS);
	ASSERT_OK(pthread_create(&thread, NULL, send_after_a_while, bed));
	EXPECT_EQ(1, vrnic_advance_wait(bed->b.context, 10, WAIT_NS));
	EXPECT_EQ(1, in->count);
	ASSERT_OK(pthread_join(thread, NULL));
	free(in);
}

/* It goes to sleep just as the message comes: no wake-up is lost. */
struct pinger {
	struct nbed *bed;
	int rounds, error;
};

static void *echo(void *arg)
{
	struct pinger *p = arg;
	struct ball ball = { p->bed->b.to };

	p->error = vrnic_dispatch_set(p->bed->b.context, 2, hit, &ball);
	while (ball.hits < p->rounds && p->error >= 0)
		p->error = vrnic_advance_wait(p->bed->b.context, 1, WAIT_NS);
	if (p->error > 0)
		p->error = ball.failed;
	return NULL;
}

TEST_F(message, advance_wait_races)
{
	struct nbed *bed = &self->bed;
	struct pinger p = { bed, 499 };
	struct inbox *in = calloc(1, sizeof(*in));
	pthread_t thread;
	int i, ret;

	ASSERT_NE(NULL, in);
	ASSERT_OK(vrnic_dispatch_set(bed->a.context, 2, keep_last, in));
	ASSERT_OK(pthread_create(&thread, NULL, echo, &p));
	for (i = 0; i < p.rounds; i++) {
		ASSERT_OK(vrnic_send(bed->a.to, SEND(.id = 2, .header = "x", .header_len = 1),
				     NULL));
		while (in->count <= i) {
			ret = vrnic_advance_wait(bed->a.context, 1, WAIT_NS);
			ASSERT_GE(ret, 0) TH_LOG("round %d", i);
		}
	}
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_OK(p.error);
	free(in);
}

/* Many senders, one receiver: each one's order holds. */
#define SENDERS	4

struct crowd {
	int count, bad;
	uint32_t next[SENDERS];
};

static void check_crowd(struct vrnic_context *context,
			const struct vrnic_message *m, void *arg)
{
	struct crowd *crowd = arg;
	uint32_t seq;

	memcpy(&seq, m->header, sizeof(seq));
	crowd->count++;
	if (m->peer.task >= SENDERS)
		crowd->bad++;
	else
		crowd->bad += seq != crowd->next[m->peer.task]++;
}

static int one_of_many(int fd, const void *arg)
{
	struct node node = {};
	int task = *(const int *)arg;
	int i, ret = node_open(&node, 64, CONTEXT(.task = task));

	if (!ret)
		ret = node_meet(&node, fd);
	for (i = 0; i < 1000 && !ret; i++)
		while ((ret = send_seq(node.to, i, 1,
				       DONE(.remote = node.counter))) == -EAGAIN)
			vrnic_counter_wait(node.counter, 10, WAIT_NS);
	if (!ret)
		ret = counter_done(node.counter);
	return ret ? ret : node_close(&node);
}

TEST(many_senders)
{
	struct crowd crowd = {};
	struct peer peers[SENDERS];
	struct node node = {};
	int i;

	NEED_NATIVE();
	for (i = 0; i < SENDERS; i++)
		ASSERT_OK(peer_start(&peers[i], one_of_many, &i));
	ASSERT_OK(node_open(&node, 64, CONTEXT(.receive_slots = 256)));
	ASSERT_OK(vrnic_dispatch_set(node.context, 1, check_crowd, &crowd));
	for (i = 0; i < SENDERS; i++) {
		if (node.to)
			ASSERT_OK(vrnic_endpoint_destroy(node.to));
		ASSERT_OK(node_meet(&node, peers[i].fd));
	}
	ASSERT_OK(advance_until(node.context, &crowd.count, SENDERS * 1000));
	EXPECT_EQ(0, crowd.bad);
	for (i = 0; i < SENDERS; i++)
		EXPECT_OK(peer_end(&peers[i]));
	EXPECT_OK(node_close(&node));
}

/* The receiver goes while its FIFO is full: the sender is told, and not stuck. */
TEST_F(message, receiver_goes)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};

	ASSERT_LT(0, node_fill(&bed->a, 3000, DONE(.remote = bed->a.counter)));
	ASSERT_OK(node_close(&bed->b));
	EXPECT_EQ(-EIO, counter_done(bed->a.counter));
	vrnic_counter_error(bed->a.counter, &error);
	EXPECT_NE(IBV_WC_SUCCESS, error.status);
	EXPECT_EQ(VRNIC_NOP_MESSAGE, error.opcode);
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

TEST_HARNESS_MAIN
