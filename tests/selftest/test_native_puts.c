// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Small puts that share a packet of a native link: from the end that sends them, and from the end
 * that executes them, where the other host is native_foe.c; and over a wire between two real ends.
 */
#include <arpa/inet.h>

#include "native.h"
#include "native_asking.h"

#define SLOTS		256
#define LEN		(1 << 20)
#define SHARING		32	/* most puts of a packet */
#define SMALL		64	/* bytes of the longest put that shares one */

FIXTURE(puts)
{
	struct raw_fifo fifo;
	struct foe foe;
	struct asking a;
};

FIXTURE_SETUP(puts)
{
	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe));
	self->a = asking_foe(&self->fifo);
}

FIXTURE_TEARDOWN(puts)
{
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe));
}

/* ---- the end that puts ---- */

/* Put number @i, of @length bytes, into the ring; its data begin with @i. */
static void fill_put(struct asking *a, int i, uint32_t length, uint32_t counter)
{
	struct buf *buf = &a->fifo->buf;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_PUT, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = a->endpoint, .cookie = i, .length = length, .lkey = buf->mr->lkey,
		.local_addr = (uintptr_t)buf->addr + 2 * SMALL * i, .rkey = 7,
		.remote_addr = 1000 * i, .target_counter = counter,
	};

	memset(buf->addr + 2 * SMALL * i, i + 1, 2 * SMALL);
	raw_fill(a->fifo, &d, NULL, 0);
}

/* @n puts, each a byte longer than the one before, in one ringing. */
static int post_small(struct asking *a, int n)
{
	int i;

	for (i = 0; i < n; i++)
		fill_put(a, i, i + 1, 0);
	return raw_ring(a->fifo);
}

/* Does the packet have puts [@first, @first + @n), of @length(i) = i + 1 bytes? */
static bool has_small(const struct foe_packet *packet, int first, int n)
{
	const uint8_t *at = packet->data;
	struct foe_put put;
	int i, j;

	if (packet->header.op != FOE_PUTS || be64toh(packet->header.total) != (uint64_t)n)
		return false;
	for (i = first; i < first + n; i++) {
		memcpy(&put, at, sizeof(put));
		at += sizeof(put);
		if (be64toh(put.addr) != 1000ULL * i || ntohl(put.key) != 7 ||
		    ntohl(put.len) != (uint32_t)i + 1)
			return false;
		/* the padding tells nothing of this host */
		for (j = 0; j < (i + 8) / 8 * 8; j++)
			if (at[j] != (j <= i ? i + 1 : 0))
				return false;
		at += j;
	}
	return at - packet->data == (long)ntohl(packet->header.data);
}

/* The next record of an operation; the one that tells that the other host is gone is none. */
static int take_record(struct raw_fifo *fifo, struct vrnic_record *record)
{
	int ret;

	do
		ret = raw_take(fifo, record);
	while (!ret && record->kind != VRNIC_REC_COMPLETION);
	return ret;
}

/* Records 0 to @n - 1 come, in order; @want is the status of number i. */
#define EXPECT_RECORDS(n, want)						\
	do {								\
		struct vrnic_record __record;				\
		int i;							\
									\
		for (i = 0; i < (n); i++) {				\
			ASSERT_OK(take_record(&self->fifo, &__record));	\
			EXPECT_EQ(i, (int)__record.cookie);		\
			EXPECT_EQ((int)(want), (int)__record.status);	\
		}							\
	} while (0)

TEST_F(puts, they_share_a_packet)
{
	long long together = statistic("native_puts_together");
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&self->a, foe));
	/* the last one does not fit any more */
	ASSERT_OK(post_small(&self->a, 28));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_TRUE(has_small(&packet, 0, 27));
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(FOE_PUT, packet.header.op);
	EXPECT_EQ(27000, (int)be64toh(packet.header.addr));
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_RECORDS(28, IBV_WC_SUCCESS);
	EXPECT_EQ(together + 1, statistic("native_puts_together"));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* What is not alike, or not small, goes by itself, and in its place. */
TEST_F(puts, others_go_by_themselves)
{
	static const struct {
		uint32_t length, counter;
	} put[] = {
		{ 8, 0 }, { 8, 0 }, { 8, 5 }, { 8, 5 }, { SMALL + 1, 5 }, { SMALL, 5 }, { 8, 5 },
		{ 0, 5 }, { 8, 5 },
	};
	static const struct {
		enum foe_op op;
		int puts, length;
	} want[] = {
		{ FOE_PUTS, 2 }, { FOE_PUTS, 2 }, { FOE_PUT, 1, SMALL + 1 }, { FOE_PUTS, 2 },
		{ FOE_PUT, 1, 0 }, { FOE_PUT, 1, 8 },
	};
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	unsigned int n, at = 0;

	ASSERT_OK(reach_foe(&self->a, foe));
	for (n = 0; n < ARRAY_SIZE(put); n++)
		fill_put(&self->a, n, put[n].length, put[n].counter);
	ASSERT_OK(raw_ring(&self->fifo));
	for (n = 0; n < ARRAY_SIZE(want); at += want[n++].puts) {
		ASSERT_OK(foe_take(foe, &packet));
		EXPECT_EQ(want[n].op, packet.header.op);
		EXPECT_EQ(put[at].counter, ntohl(packet.header.counter[0]));
		EXPECT_EQ(want[n].op == FOE_PUTS ? want[n].puts : want[n].length,
			  (int)be64toh(packet.header.total));
	}
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_RECORDS((int)ARRAY_SIZE(put), IBV_WC_SUCCESS);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* Wait for the packet @psn again, which now begins with put @from. */
static int wait_rest(struct foe *foe, uint32_t psn, int from)
{
	struct foe_packet packet;
	int ret;

	do
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
	while (!ret && (packet.psn != psn || packet.header.op != FOE_PUTS ||
			be64toh(packet.header.pos) != (uint64_t)from));
	return ret;
}

/* Some fail, the first and the last among them; the others do not, and what is behind waits. */
TEST_F(puts, each_fails_by_itself)
{
	static const int bad[] = { 0, 1, 5, 19 };
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	unsigned int n;
	int i, at = 0;
	uint32_t psn;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 20));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_TRUE(has_small(&packet, 0, 20));
	psn = packet.psn;
	for (n = 0; n < ARRAY_SIZE(bad); n++) {
		/* twice: the second one is old by then */
		EXPECT_OK(foe_refuse_part(foe, psn, IBV_WC_REM_ACCESS_ERR, n + 1, bad[n]));
		EXPECT_OK(foe_refuse_part(foe, psn, IBV_WC_REM_ACCESS_ERR, 99, bad[n]));
		ASSERT_OK(wait_rest(foe, psn, bad[n] + 1));
	}
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_acknowledge(foe, psn, FOE_ACK));
	for (i = 0; i < 20; i++) {
		bool fails = at < (int)ARRAY_SIZE(bad) && i == bad[at];

		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(fails ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS, (int)record.status);
		EXPECT_EQ(fails ? ++at : 0, (int)record.vendor_err);
	}
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* The rest is lost on its way: it is sent again as it was. */
TEST_F(puts, the_rest_is_sent_again)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	uint32_t psn;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 8));
	ASSERT_OK(foe_take(foe, &packet));
	psn = packet.psn;
	EXPECT_OK(foe_refuse_part(foe, psn, IBV_WC_REM_ACCESS_ERR, 1, 3));
	ASSERT_OK(wait_rest(foe, psn, 4));
	ASSERT_OK(wait_rest(foe, psn, 4));
	EXPECT_OK(foe_acknowledge(foe, psn, FOE_ACK));
	EXPECT_RECORDS(8, i == 3 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* The link ends. What the other host has told of those at the front holds. */
TEST_F(puts, those_that_were_told_of_are_done)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 8));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_OK(foe_refuse_part(foe, packet.psn, IBV_WC_REM_ACCESS_ERR, 1, 3));
	ASSERT_OK(wait_rest(foe, packet.psn, 4));
	ASSERT_OK(foe_say_bye(foe));
	EXPECT_RECORDS(8, i < 3 ? IBV_WC_SUCCESS :
		       i == 3 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_RETRY_EXC_ERR);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* The endpoint goes, and the other host takes its time: as long as it is heard, all is done. */
TEST_F(puts, refusals_are_signs_of_life)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	uint32_t psn;
	int i;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 8));
	ASSERT_OK(foe_take(foe, &packet));
	psn = packet.psn;
	ASSERT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
	for (i = 0; i < 7; i++) {
		usleep(120000);
		EXPECT_OK(foe_refuse_part(foe, psn, IBV_WC_REM_ACCESS_ERR, 1, i));
		ASSERT_OK(wait_rest(foe, psn, i + 1));
	}
	EXPECT_OK(foe_acknowledge(foe, psn, FOE_ACK));
	EXPECT_RECORDS(8, i < 7 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
}

/* There is no such put, so what the other host says makes no sense: all end with the link. */
TEST_F(puts, one_that_was_not_sent_cannot_fail)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 8));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_OK(foe_refuse_part(foe, packet.psn, IBV_WC_REM_ACCESS_ERR, 1, 8));
	EXPECT_RECORDS(8, IBV_WC_RETRY_EXC_ERR);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* Two packets are on their way when the link ends, and the rest is in the ring. */
TEST_F(puts, all_end_with_their_link)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(post_small(&self->a, 60));
	ASSERT_OK(foe_take(foe, &packet));
	ASSERT_OK(foe_say_bye(foe));
	EXPECT_RECORDS(60, IBV_WC_RETRY_EXC_ERR);
	ASSERT_OK(post_small(&self->a, 60));
	EXPECT_RECORDS(60, IBV_WC_RETRY_EXC_ERR);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
}

/* ---- the end that executes them ---- */

#define PLACE(i)	(64 * (i))

/* A packet with @n puts of 8 bytes to the buffer; number @bad, if there is one, to no region. */
static size_t make_puts(struct raw_fifo *fifo, int n, int bad, struct foe_header *h, uint8_t *data)
{
	struct buf *buf = &fifo->buf;
	uint8_t *at = data;
	struct foe_put put;
	uint64_t value;
	int i;

	for (i = 0; i < n; i++) {
		put = (struct foe_put){
			.addr = htobe64((uintptr_t)buf->addr + PLACE(i)),
			.key = htonl(buf->mr->rkey + (i == bad)),
			.len = htonl(8),
		};
		memcpy(at, &put, sizeof(put));
		value = 100 + i;
		memcpy(at + sizeof(put), &value, sizeof(value));
		at += sizeof(put) + sizeof(value);
	}
	*h = (struct foe_header){
		.op = FOE_PUTS, .data = htonl(at - data), .total = htobe64(n),
	};
	return at - data;
}

static int64_t left_of(const struct raw_counter *counter)
{
	return __atomic_load_n(&counter->cell->remaining, __ATOMIC_ACQUIRE);
}

static uint64_t placed(const struct raw_fifo *fifo, int i)
{
	return *(volatile uint64_t *)(fifo->buf.addr + PLACE(i));
}

TEST_F(puts, they_are_executed_and_counted)
{
	struct raw_fifo *fifo = &self->fifo;
	struct foe *foe = &self->foe;
	struct raw_counter counter;
	uint8_t data[FOE_MTU];
	struct foe_packet packet;
	struct foe_header h;
	size_t len;
	int i;

	ASSERT_OK(raw_counter(fifo, VRNIC_COUNTER_OPEN, &counter));
	counter.cell->remaining = 1000;
	ASSERT_OK(foe_ask(foe, &fifo->address, 77));
	len = make_puts(fifo, SHARING, -1, &h, data);
	h.counter[0] = htonl(counter.number);
	ASSERT_OK(foe_send(foe, &h, data, len));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	for (i = 0; i < SHARING; i++)
		EXPECT_EQ(100 + i, placed(fifo, i));
	EXPECT_EQ(1000 - 8 * SHARING, left_of(&counter));
	/* again: it was executed */
	memset(fifo->buf.addr, 0, LEN);
	ASSERT_OK(foe_send_again(foe, &h, data, len));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_EQ(0, placed(fifo, 0));
	EXPECT_OK(raw_counter_destroy(fifo, &counter));
}

/* One fails: those before it are done and are not done again, those behind it wait for the rest. */
TEST_F(puts, the_rest_is_executed_once)
{
	struct raw_fifo *fifo = &self->fifo;
	struct foe *foe = &self->foe;
	struct raw_counter counter;
	uint8_t data[FOE_MTU];
	struct foe_packet packet;
	struct foe_header h;
	size_t len;
	int i;

	ASSERT_OK(raw_counter(fifo, VRNIC_COUNTER_OPEN, &counter));
	counter.cell->remaining = 1000;
	ASSERT_OK(foe_ask(foe, &fifo->address, 77));
	len = make_puts(fifo, 8, 3, &h, data);
	h.counter[0] = htonl(counter.number);
	ASSERT_OK(foe_send(foe, &h, data, len));
	/* the same again, once they are done: it changes nothing */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
		EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, packet.status);
		EXPECT_EQ(VRNIC_VERR_KEY, packet.vendor_err);
		EXPECT_EQ(3, packet.part);
		EXPECT_EQ(i ? 0 : 102, (int)placed(fifo, 2));
		EXPECT_EQ(0, placed(fifo, 4));
		EXPECT_EQ(1000 - 24, left_of(&counter));
		memset(fifo->buf.addr, 0, LEN);
		if (i < 2)
			ASSERT_OK(foe_send_again(foe, &h, data, len));
	}
	h.pos = htobe64(4);
	ASSERT_OK(foe_send_again(foe, &h, data, len));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i < 4 ? 0 : 100 + i, (int)placed(fifo, i));
	EXPECT_EQ(1000 - 56, left_of(&counter));
	EXPECT_OK(raw_counter_destroy(fifo, &counter));
}

/* The last one fails: there is no rest, and the packet says so. */
TEST_F(puts, a_rest_of_none)
{
	struct foe *foe = &self->foe;
	uint8_t data[FOE_MTU];
	struct foe_packet packet;
	struct foe_header h;
	size_t len;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	len = make_puts(&self->fifo, 4, 3, &h, data);
	ASSERT_OK(foe_send(foe, &h, data, len));
	ASSERT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
	EXPECT_EQ(3, packet.part);
	h.pos = htobe64(4);
	ASSERT_OK(foe_send_again(foe, &h, data, len));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	len = make_puts(&self->fifo, 4, -1, &h, data);
	ASSERT_OK(foe_send(foe, &h, data, len));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_EQ(103, placed(&self->fifo, 3));
}

/* A counter that the other host may not name: all fail, one by one, and none is executed. */
TEST_F(puts, a_counter_of_others)
{
	struct foe *foe = &self->foe;
	struct raw_counter counter;
	uint8_t data[FOE_MTU];
	struct foe_packet packet;
	struct foe_header h;
	size_t len;
	int i;

	ASSERT_OK(raw_counter(&self->fifo, 0, &counter));
	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	len = make_puts(&self->fifo, 4, -1, &h, data);
	h.counter[0] = htonl(counter.number);
	ASSERT_OK(foe_send(foe, &h, data, len));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
		EXPECT_EQ(VRNIC_VERR_COUNTER, packet.vendor_err);
		EXPECT_EQ(i, packet.part);
		EXPECT_EQ(0, placed(&self->fifo, i));
		h.pos = htobe64(i + 1);
		ASSERT_OK(foe_send_again(foe, &h, data, len));
	}
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_OK(raw_counter_destroy(&self->fifo, &counter));
}

/* Have the FIFO inject a put at the other host that names the counter: so the host may, too. */
static int grant(struct raw_fifo *fifo, struct foe *foe, const struct asking *a, uint32_t counter)
{
	struct vrnic_ndesc batch = {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 8, .remote_counter = counter,
	}, rget = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .length = sizeof(batch),
		.endpoint = a->endpoint, .lkey = fifo->buf.mr->lkey,
		.local_addr = (uintptr_t)fifo->buf.addr,
	};
	struct foe_header got, answer = { .op = FOE_ANSWER };
	struct foe_packet packet;
	int ret;

	memcpy(fifo->buf.addr, &batch, sizeof(batch));
	ret = raw_post(fifo, &rget, NULL, 0);
	if (!ret)
		ret = foe_wait(foe, FOE_RGET, &got);
	answer.id = got.id;
	if (!ret)
		ret = foe_send(foe, &answer, NULL, 0);
	return ret ? ret : foe_wait_ack(foe, &packet) == FOE_ACK ? 0 : -EPROTO;
}

/* The counter goes: each put fails, and none is executed twice. */
TEST_F(puts, a_counter_that_is_gone)
{
	struct raw_fifo *fifo = &self->fifo;
	struct foe *foe = &self->foe;
	struct raw_counter counter;
	uint8_t data[FOE_MTU];
	struct foe_packet packet;
	struct foe_header h;
	size_t len;
	int i, round;

	ASSERT_OK(reach_foe(&self->a, foe));
	ASSERT_OK(raw_counter(fifo, 0, &counter));
	ASSERT_OK(grant(fifo, foe, &self->a, counter.number));
	ASSERT_OK(raw_counter_destroy(fifo, &counter));
	len = make_puts(fifo, 4, -1, &h, data);
	h.counter[0] = htonl(counter.number);
	ASSERT_OK(foe_send(foe, &h, data, len));
	for (round = 0; round < 4; round++) {
		ASSERT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
		EXPECT_EQ(VRNIC_VERR_COUNTER, packet.vendor_err);
		EXPECT_EQ(round, packet.part);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(round ? 0 : 100 + i, (int)placed(fifo, i));
		memset(fifo->buf.addr, 0, LEN);
		h.pos = htobe64(round + 1);
		ASSERT_OK(foe_send_again(foe, &h, data, len));
	}
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_OK(raw_endpoint_destroy(fifo, self->a.handle));
}

/* Lengths that do not fit each other end the link. */
FIXTURE(senseless)
{
	struct raw_fifo fifo;
	struct foe foe;
};

FIXTURE_VARIANT(senseless)
{
	int extra;		/* bytes behind the puts */
	int more;		/* puts that the header has more */
	uint32_t len;		/* of the last put */
	int from;
};

FIXTURE_VARIANT_ADD(senseless, longer) { .extra = 8, .len = 8 };
FIXTURE_VARIANT_ADD(senseless, one_missing) { .more = 1, .len = 8 };
FIXTURE_VARIANT_ADD(senseless, one_missing_before_it) { .extra = 16, .more = 1, .len = 8 };
FIXTURE_VARIANT_ADD(senseless, too_many) { .more = SHARING, .len = 8 };
FIXTURE_VARIANT_ADD(senseless, empty) { .len = 0 };
FIXTURE_VARIANT_ADD(senseless, beyond_the_end) { .len = 9 };
FIXTURE_VARIANT_ADD(senseless, far_beyond_the_end) { .len = 0xffffffff };
FIXTURE_VARIANT_ADD(senseless, from_behind_the_end) { .len = 8, .from = 5 };

FIXTURE_SETUP(senseless)
{
	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe));
}

FIXTURE_TEARDOWN(senseless)
{
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe));
}

TEST_F(senseless, ends_the_link)
{
	struct foe *foe = &self->foe;
	uint8_t data[FOE_MTU] = {};
	struct foe_packet packet;
	struct foe_header h;
	struct foe_put put;
	size_t len;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	len = make_puts(&self->fifo, 4, -1, &h, data);
	memcpy(&put, data + len - 24, sizeof(put));
	put.len = htonl(variant->len);
	memcpy(data + len - 24, &put, sizeof(put));
	h.data = htonl(len + variant->extra);
	h.total = htobe64(4 + variant->more);
	h.pos = htobe64(variant->from);
	ASSERT_OK(foe_send(foe, &h, data, len + variant->extra));
	EXPECT_EQ(FOE_INVALID, foe_wait_ack(foe, &packet));
}

/* They are for one packet. */
TEST_F(puts, two_packets_end_the_link)
{
	struct foe *foe = &self->foe;
	uint8_t data[2 * FOE_MTU] = {};
	struct foe_packet packet;
	struct foe_header h;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	make_puts(&self->fifo, 4, -1, &h, data);
	h.data = htonl(FOE_MTU);
	ASSERT_OK(foe_send_first(foe, &h, data, FOE_MTU - sizeof(h)));
	EXPECT_EQ(FOE_INVALID, foe_wait_ack(foe, &packet));
}

/* ---- both ends ---- */

NBED(both, 1 << 16, .inject_slots = 256);

#define ROUNDS	100
#define ROUND	100

/* Puts of all small sizes, of which some fail: each is done and counted, or fails, by itself. */
TEST_F(both, some_of_many_fail)
{
	struct nbed *bed = &self->bed;
	struct vrnic_done done = { .target = bed->a.peer.counter };
	int64_t left = 1LL << 40;
	unsigned int seed = 1;
	int round, i, bad, ret;

	vrnic_counter_set(bed->b.open, left);
	buf_fill(&bed->a.buf, 3);
	for (round = 0; round < ROUNDS; round++) {
		bad = 0;
		memset(bed->b.buf.addr, 0, bed->b.buf.len);
		for (i = 0; i < ROUND; i++) {
			size_t len = 1 + rand_r(&seed) % (SMALL + 8);
			bool fails = !(rand_r(&seed) % 16);
			struct vrnic_wr wr = {
				.local = bed->a.buf.addr + 128 * i, .mr = bed->a.buf.mr,
				.length = len, .remote = bed->a.peer.addr + 128 * i,
				.rkey = bed->a.peer.rkey ^ fails,
			};

			do
				ret = vrnic_put(bed->a.to, &wr, &done);
			while (ret == -EAGAIN && vrnic_advance(bed->a.context, 0) >= 0);
			ASSERT_OK(ret);
			/* what has arrived is looked at below; this says which have not */
			bed->a.buf.addr[128 * i + 127] = fails ? 0 : len;
			left -= fails ? 0 : len;
			bad += fails;
		}
		ret = vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
		EXPECT_EQ(bad ? -EIO : 0, ret);
		ASSERT_EQ(left, vrnic_counter_read(bed->b.open));
		for (i = 0; i < ROUND; i++) {
			size_t len = (uint8_t)bed->a.buf.addr[128 * i + 127];

			EXPECT_EQ(0, memcmp(bed->b.buf.addr + 128 * i,
					    bed->a.buf.addr + 128 * i, len));
			EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 128 * i + len, 128 - len, 0));
		}
	}
}

TEST_HARNESS_MAIN
