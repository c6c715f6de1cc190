// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Operations over a native link that their FIFO does not wait for. The other host, native_foe.c,
 * acknowledges and answers when it pleases.
 */
#include <arpa/inet.h>

#include "native.h"
#include "native_asking.h"

#define SLOTS		256
#define LEN		(1 << 20)
#define FLYING		64	/* operations of a FIFO that are in flight */
#define ASKING		24	/* those of them that wait for an answer */

FIXTURE(flight)
{
	struct raw_fifo fifo;
	struct foe foe;
};

FIXTURE_SETUP(flight)
{
	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe));
}

FIXTURE_TEARDOWN(flight)
{
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe));
}

/* ---- puts that nobody waits for ---- */

#define PUTS	32
#define ALONE	64	/* bytes of the longest put that shares a packet */

/*
 * Puts into the ring, with their numbers as cookies, and a fence behind them; and ring. Each is
 * larger than the one before: others may come to the other host's socket several at a time.
 */
static int post_puts(struct asking *a, int puts)
{
	struct buf *buf = &a->fifo->buf;
	struct vrnic_ndesc d = {
		.flags = VRNIC_NDESC_SIGNALED, .num_slots = 1, .endpoint = a->endpoint,
		.lkey = buf->mr->lkey, .rkey = 1,
	};
	int i;

	d.opcode = VRNIC_NOP_PUT;
	for (i = 0; i < puts; i++) {
		d.cookie = i;
		d.length = ALONE + 4 * (i + 1);
		d.local_addr = (uintptr_t)buf->addr + 8 * i;
		d.remote_addr = 8 * i;
		raw_fill(a->fifo, &d, NULL, 0);
	}
	d = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_FENCE, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = a->endpoint, .cookie = puts,
	};
	raw_fill(a->fifo, &d, NULL, 0);
	return raw_ring(a->fifo);
}

/* A put of @length bytes that gets a record, to the endpoint of @a. */
static struct vrnic_ndesc put_to(const struct asking *a, uint32_t length)
{
	const struct buf *buf = &a->fifo->buf;

	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = a->endpoint, .length = length, .local_addr = (uintptr_t)buf->addr,
		.lkey = buf->mr->lkey, .rkey = 1,
	};
}

/* It acknowledges nothing, and yet all come; and nothing is done before it is acknowledged. */
TEST_F(flight, puts_do_not_wait_for_each_other)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	int i;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(post_puts(&a, PUTS));
	for (i = 0; i < PUTS; i++) {
		ASSERT_OK(foe_take(foe, &packet));
		EXPECT_EQ(FOE_PUT, packet.header.op);
		EXPECT_EQ(8 * i, (int)be64toh(packet.header.addr));
	}
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	for (i = 0; i <= PUTS; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	}
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* One more than may be on their way: it comes when the first was acknowledged. */
TEST_F(flight, so_many_puts_are_on_their_way_and_no_more)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	int i;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(post_puts(&a, FLYING + 1));
	for (i = 0; i < FLYING; i++)
		ASSERT_OK(foe_take(foe, &packet));
	while (!foe_hear(foe, &packet, 50))
		EXPECT_NE(foe->heard, packet.psn);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - FLYING, FOE_ACK));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(8 * FLYING, (int)be64toh(packet.header.addr));
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	for (i = 0; i < FLYING + 2; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	}
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* What fails here, at once, is told behind the put before it, which has to come back first. */
TEST_F(flight, records_come_in_the_order_of_posting)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d;
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&a, foe));
	d = put_to(&a, 8);
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(foe_take(foe, &packet));
	/* a key that nothing has, and an opcode that nothing has */
	d.cookie = 1;
	d.lkey++;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	d.cookie = 2;
	d.opcode = 0xff;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(0, (int)record.cookie);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(1, (int)record.cookie);
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, record.status);
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(2, (int)record.cookie);
	EXPECT_EQ(VRNIC_VERR_OPCODE, (int)record.vendor_err);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* A put of several packets fails with its last one, and SKIP comes in its place alone. */
TEST_F(flight, a_long_put_that_fails_is_skipped)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d;
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&a, foe));
	d = put_to(&a, 2 * FOE_MTU);
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	do {
		ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
	} while (packet.opcode != FOE_LAST);
	EXPECT_OK(foe_refuse(foe, packet.psn, IBV_WC_REM_ACCESS_ERR, VRNIC_VERR_BOUNDS));
	foe->heard = packet.psn;
	do {
		ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
	} while (packet.opcode != FOE_SKIP_LAST);
	EXPECT_EQ(foe->heard, packet.psn);
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, record.status);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, (int)record.vendor_err);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* So that its data fills the packets behind the header's page by page. */
TEST_F(flight, a_long_put_has_its_header_alone)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d;
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	uint32_t first;

	ASSERT_OK(reach_foe(&a, foe));
	first = foe->heard;
	/* with the header it would fill 17 packets */
	d = put_to(&a, 17 * FOE_MTU - sizeof(struct foe_header));
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	do {
		ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
	} while (packet.opcode != FOE_LAST);
	EXPECT_EQ((first + 17) & 0xffffff, packet.psn);
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* One put fails at the peer. Those before and behind it do not, and the fence tells of it. */
TEST_F(flight, a_put_that_fails_is_skipped)
{
	struct asking a = asking_foe(&self->fifo);
	const int bad = PUTS / 2;
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	uint32_t psn = 0;
	int i;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(post_puts(&a, PUTS));
	for (i = 0; i < PUTS; i++) {
		ASSERT_OK(foe_take(foe, &packet));
		psn = i == bad ? packet.psn : psn;
	}
	/* twice: the second one says the same, and must not skip the next put */
	EXPECT_OK(foe_refuse(foe, psn, IBV_WC_REM_ACCESS_ERR, VRNIC_VERR_KEY));
	EXPECT_OK(foe_refuse(foe, psn, IBV_WC_REM_ACCESS_ERR, VRNIC_VERR_KEY));
	do {
		ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
	} while (packet.opcode != FOE_SKIP);
	EXPECT_EQ(psn, packet.psn);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	for (i = 0; i < PUTS; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(i == bad ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS, record.status);
		EXPECT_EQ(i == bad ? VRNIC_VERR_KEY : 0, (int)record.vendor_err);
	}
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, record.status);
	EXPECT_EQ(bad, (int)record.failed_cookie);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* All fail: each is refused and skipped by itself. */
TEST_F(flight, each_of_many_failures_is_told)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	int i, status;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(post_puts(&a, PUTS));
	for (i = 0; i < PUTS; i++) {
		status = IBV_WC_LOC_LEN_ERR + i % 10;
		ASSERT_OK(foe_take(foe, &packet));
		EXPECT_OK(foe_refuse(foe, packet.psn, status, i));
		do {
			ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
		} while (packet.opcode != FOE_SKIP);
		EXPECT_EQ(foe->heard - 1, packet.psn);
		EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
		/* one that comes late says nothing of the next put */
		EXPECT_OK(foe_refuse(foe, packet.psn, IBV_WC_GENERAL_ERR, 99));
	}
	for (i = 0; i < PUTS; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(IBV_WC_LOC_LEN_ERR + i % 10, record.status);
		EXPECT_EQ(i, (int)record.vendor_err);
	}
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* The endpoint goes while puts are on their way: they end, and so does the link. */
TEST_F(flight, puts_end_with_their_link)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	struct foe_hello bye;
	int i;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(post_puts(&a, PUTS));
	for (i = 0; i < PUTS; i++)
		ASSERT_OK(foe_take(foe, &packet));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
	EXPECT_OK(foe_wait_hello(foe, FOE_BYE, &bye));
	/* the fence fails, because it is the descriptor that was being executed */
	for (i = 0; i <= PUTS; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_NE(IBV_WC_SUCCESS, record.status);
	}
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
}

/*
 * The endpoint goes while a put is on its way, but the link does not: another endpoint uses it. The
 * put ends well. What has failed behind it, and waits to be told, is no failure of another
 * endpoint: until the last record has come, none has the number.
 */
TEST_F(flight, puts_outlive_their_endpoint)
{
	struct asking a = asking_foe(&self->fifo), b = a;
	struct vrnic_ndesc d;
	struct foe *foe = &self->foe;
	uint32_t endpoint, handle;
	struct vrnic_record record;
	struct foe_packet packet;

	ASSERT_OK(reach_foe(&a, foe));
	ASSERT_OK(make_endpoint(&b));
	d = put_to(&a, 8);
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(foe_take(foe, &packet));
	d.cookie = 1;
	d.lkey++;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
	ASSERT_OK(make_endpoint(&a));
	EXPECT_NE(d.endpoint, a.endpoint);
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(0, (int)record.cookie);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(1, (int)record.cookie);
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, record.status);
	/* now the number is free */
	endpoint = a.endpoint;
	handle = a.handle;
	ASSERT_OK(make_endpoint(&a));
	EXPECT_EQ(d.endpoint, a.endpoint);
	d = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_FENCE, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = a.endpoint,
	};
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	d.opcode = VRNIC_NOP_FENCE_ALL;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(1, (int)record.failed_cookie);
	EXPECT_NE(endpoint, a.endpoint);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, handle));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, b.handle));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/*
 * The FIFO goes with all that it has: a put on its way, what has failed behind it, and what waits
 * in the ring.
 */
TEST_F(flight, puts_end_with_their_fifo)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d;
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	struct foe_hello bye;

	ASSERT_OK(reach_foe(&a, foe));
	d = put_to(&a, 8);
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(foe_take(foe, &packet));
	d.lkey++;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
	EXPECT_OK(raw_close(&self->fifo));
	EXPECT_OK(foe_wait_hello(foe, FOE_BYE, &bye));
	ASSERT_OK(raw_open(&self->fifo, SLOTS, SLOTS, LEN));
}

/* A peer may refuse puts only; else the link ends. */
TEST_F(flight, what_has_an_answer_cannot_be_refused)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_GET, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.length = 8, .local_addr = (uintptr_t)self->fifo.buf.addr,
		.lkey = self->fifo.buf.mr->lkey, .rkey = 1,
	};
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	struct foe_hello bye;

	ASSERT_OK(reach_foe(&a, foe));
	d.endpoint = a.endpoint;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(FOE_GET, packet.header.op);
	EXPECT_OK(foe_refuse(foe, packet.psn, IBV_WC_REM_ACCESS_ERR, 0));
	EXPECT_OK(foe_wait_hello(foe, FOE_BYE, &bye));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, record.status);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* ---- what waits for an answer, and for no other ---- */

/* A GET, or an RMW that adds 1, of 8 bytes. It gets a record with the number @i as its cookie. */
static struct vrnic_ndesc asks(const struct asking *a, uint8_t opcode, int i)
{
	struct vrnic_ndesc d = put_to(a, 8);

	d.opcode = opcode;
	d.num_slots = opcode == VRNIC_NOP_RMW ? 2 : 1;
	d.arg = opcode == VRNIC_NOP_RMW ? VRNIC_RMW_ADD : 0;
	d.cookie = i;
	d.local_addr += 8 * i;
	d.remote_addr = 8 * i;
	return d;
}

static void fill_asking(struct asking *a, uint8_t opcode, int i)
{
	const struct vrnic_ndesc_rmw one = { .operand = 1 };
	struct vrnic_ndesc d = asks(a, opcode, i);

	raw_fill(a->fifo, &d, &one, opcode == VRNIC_NOP_RMW ? sizeof(one) : 0);
}

/* The next request, which has to be of @op and for the word @i. Return: its number, or 0. */
static __be32 heard_request(struct foe *foe, enum foe_op op, int i)
{
	struct foe_packet packet;

	if (foe_take(foe, &packet) || packet.header.op != op ||
	    be64toh(packet.header.addr) != 8 * (uint64_t)i)
		return 0;
	return packet.header.id;
}

/* Answer a GET with @value, or an RMW whose old value that is. */
static int foe_answer(struct foe *foe, enum foe_op op, __be32 id, uint64_t value)
{
	struct foe_header h = { .op = FOE_ANSWER, .id = id };

	if (op == FOE_GET)
		h.data = htonl(8);
	else
		h.pos = htobe64(value);
	return foe_send(foe, &h, &value, op == FOE_GET ? 8 : 0);
}

static bool nothing_comes(struct foe *foe)
{
	struct foe_packet packet;

	/* what is not acknowledged comes again */
	while (!foe_hear(foe, &packet, 50))
		if (packet.psn == foe->heard)
			return false;
	return true;
}

FIXTURE(asking)
{
	struct raw_fifo fifo;
	struct foe foe;
	struct asking a;
	uint64_t *words;
};

FIXTURE_VARIANT(asking)
{
	uint8_t opcode;
	enum foe_op op;
};

FIXTURE_VARIANT_ADD(asking, get) { .opcode = VRNIC_NOP_GET, .op = FOE_GET };
FIXTURE_VARIANT_ADD(asking, rmw) { .opcode = VRNIC_NOP_RMW, .op = FOE_RMW };

FIXTURE_SETUP(asking)
{
	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe));
	self->a = asking_foe(&self->fifo);
	self->words = (uint64_t *)self->fifo.buf.addr;
	memset(self->words, 0, LEN);
	ASSERT_OK(reach_foe(&self->a, &self->foe));
}

FIXTURE_TEARDOWN(asking)
{
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, self->a.handle));
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe));
}

/* It answers nothing until all have come that may; then the rest comes, and each has its answer. */
TEST_F(asking, so_many_wait_for_answers_and_no_more)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	__be32 id[ASKING + 1];
	int i;

	for (i = 0; i <= ASKING; i++)
		fill_asking(&self->a, variant->opcode, i);
	ASSERT_OK(raw_ring(&self->fifo));
	for (i = 0; i < ASKING; i++) {
		id[i] = heard_request(foe, variant->op, i);
		ASSERT_NE(0, id[i]);
	}
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_TRUE(nothing_comes(foe));
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_answer(foe, variant->op, id[0], 100));
	id[ASKING] = heard_request(foe, variant->op, ASKING);
	ASSERT_NE(0, id[ASKING]);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	for (i = 1; i <= ASKING; i++)
		EXPECT_OK(foe_answer(foe, variant->op, id[i], 100 + i));
	for (i = 0; i <= ASKING; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(IBV_WC_SUCCESS, record.status);
		EXPECT_EQ(100 + i, self->words[i]);
		if (variant->op == FOE_RMW)
			EXPECT_EQ(100 + i, record.value);
	}
}

/* Answers come before the acknowledgment that they are behind, and that one never comes. */
TEST_F(asking, an_answer_alone_is_not_the_end)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	__be32 id;

	fill_asking(&self->a, variant->opcode, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, id);
	EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	EXPECT_EQ(100, self->words[0]);
}

/* One fails at the peer. The others do not, and a put before it is told before it. */
TEST_F(asking, each_has_its_own_answer)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	struct foe_packet put;
	struct foe_header bad = {
		.op = FOE_ANSWER, .status = IBV_WC_REM_ACCESS_ERR, .vendor_err = VRNIC_VERR_KEY,
	};
	__be32 id[3];
	int i;

	d = put_to(&self->a, 8);
	d.cookie = 9;
	raw_fill(&self->fifo, &d, NULL, 0);
	for (i = 0; i < 3; i++)
		fill_asking(&self->a, variant->opcode, i);
	ASSERT_OK(raw_ring(&self->fifo));
	ASSERT_OK(foe_take(foe, &put));
	for (i = 0; i < 3; i++) {
		id[i] = heard_request(foe, variant->op, i);
		ASSERT_NE(0, id[i]);
	}
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	bad.id = id[1];
	EXPECT_OK(foe_answer(foe, variant->op, id[0], 100));
	EXPECT_OK(foe_send(foe, &bad, NULL, 0));
	EXPECT_OK(foe_answer(foe, variant->op, id[2], 102));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(9, (int)record.cookie);
	for (i = 0; i < 3; i++) {
		ASSERT_OK(raw_take(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(i == 1 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS, record.status);
		EXPECT_EQ(i == 1 ? VRNIC_VERR_KEY : 0, (int)record.vendor_err);
	}
}

/* The next completion. Other records say that the peer is gone. */
static int take_completion(struct raw_fifo *fifo, struct vrnic_record *record)
{
	int ret;

	do
		ret = raw_take(fifo, record);
	while (!ret && record->kind != VRNIC_REC_COMPLETION);
	return ret;
}

/* What the peer was not asked, or not next, ends the link, and all that waits for it fails. */
static bool ends_link(struct raw_fifo *fifo, struct foe *foe, int nr)
{
	struct vrnic_record record;
	struct foe_hello bye;
	int i;

	if (foe_wait_hello(foe, FOE_BYE, &bye))
		return false;
	for (i = 0; i < nr; i++)
		if (take_completion(fifo, &record) || (int)record.cookie != i ||
		    record.status != IBV_WC_RETRY_EXC_ERR)
			return false;
	return true;
}

TEST_F(asking, answers_keep_the_order)
{
	struct foe *foe = &self->foe;
	__be32 id[2];
	int i;

	for (i = 0; i < 2; i++)
		fill_asking(&self->a, variant->opcode, i);
	ASSERT_OK(raw_ring(&self->fifo));
	for (i = 0; i < 2; i++) {
		id[i] = heard_request(foe, variant->op, i);
		ASSERT_NE(0, id[i]);
	}
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_OK(foe_answer(foe, variant->op, id[1], 1));
	EXPECT_TRUE(ends_link(&self->fifo, foe, 2));
}

TEST_F(asking, there_is_one_answer)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	__be32 id;

	fill_asking(&self->a, variant->opcode, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, id);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
	EXPECT_OK(foe_answer(foe, variant->op, id, 101));
	EXPECT_TRUE(ends_link(&self->fifo, foe, 0));
	EXPECT_EQ(100, self->words[0]);
}

/* No answer says that there is no room: nothing that is asked for needs any. */
TEST_F(asking, it_is_not_asked_again)
{
	struct foe_header h = { .op = FOE_ANSWER, .flags = FOE_AGAIN };
	struct foe *foe = &self->foe;

	fill_asking(&self->a, variant->opcode, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	h.id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, h.id);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_OK(foe_send(foe, &h, NULL, 0));
	EXPECT_TRUE(ends_link(&self->fifo, foe, 1));
}

/* The peer reads the answer to a GET from memory that what is behind the GET may change. */
TEST_F(asking, what_changes_memory_waits)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct foe_packet packet;
	struct vrnic_ndesc d;
	__be32 id, next;

	fill_asking(&self->a, variant->opcode, 0);
	fill_asking(&self->a, VRNIC_NOP_RMW, 1);
	d = put_to(&self->a, 8);
	d.cookie = 2;
	raw_fill(&self->fifo, &d, NULL, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, id);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	if (variant->op == FOE_GET) {
		EXPECT_TRUE(nothing_comes(foe));
		EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	}
	next = heard_request(foe, FOE_RMW, 1);
	ASSERT_NE(0, next);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	/* the put may be of what the RMW has yet to bring */
	EXPECT_TRUE(nothing_comes(foe));
	if (variant->op == FOE_RMW)
		EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	EXPECT_OK(foe_answer(foe, FOE_RMW, next, 101));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(FOE_PUT, packet.header.op);
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	EXPECT_OK(raw_take(&self->fifo, &record) ?: raw_take(&self->fifo, &record) ?:
		  raw_take(&self->fifo, &record));
	EXPECT_EQ(2, (int)record.cookie);
}

/* A fence is complete with the last answer, not with its acknowledgment. */
TEST_F(asking, a_fence_waits_for_answers)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct vrnic_ndesc fence = {
		.opcode = VRNIC_NOP_FENCE, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = self->a.endpoint, .cookie = 1,
	};
	__be32 id;

	fill_asking(&self->a, variant->opcode, 0);
	raw_fill(&self->fifo, &fence, NULL, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, id);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_TRUE(nothing_comes(foe));
	EXPECT_EQ(-EAGAIN, raw_try(&self->fifo, &record));
	EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(0, (int)record.cookie);
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(1, (int)record.cookie);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
}

/* The link ends in the middle of an answer, and with others that have not begun. */
TEST_F(asking, all_end_with_their_link)
{
	struct foe_header half = { .op = FOE_ANSWER, .data = htonl(2 * FOE_MTU) };
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	struct vrnic_ndesc d = asks(&self->a, VRNIC_NOP_GET, 0);
	uint8_t bytes[FOE_MTU - sizeof(half)] = {};
	int i;

	d.length = 2 * FOE_MTU;
	raw_fill(&self->fifo, &d, NULL, 0);
	for (i = 1; i < 3; i++)
		fill_asking(&self->a, variant->opcode, i);
	ASSERT_OK(raw_ring(&self->fifo));
	half.id = heard_request(foe, FOE_GET, 0);
	ASSERT_NE(0, half.id);
	if (variant->op == FOE_GET)
		for (i = 1; i < 3; i++)
			ASSERT_NE(0, heard_request(foe, variant->op, i));
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	EXPECT_OK(foe_send_first(foe, &half, bytes, sizeof(bytes)));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &(struct foe_packet){}));
	EXPECT_OK(foe_say_bye(foe));
	for (i = 0; i < 3; i++) {
		ASSERT_OK(take_completion(&self->fifo, &record));
		EXPECT_EQ(i, (int)record.cookie);
		EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, record.status);
	}
}

/* The memory for an answer goes while the answer is on its way. */
TEST_F(asking, memory_may_go)
{
	struct foe *foe = &self->foe;
	struct vrnic_record record;
	__be32 id;

	fill_asking(&self->a, variant->opcode, 0);
	ASSERT_OK(raw_ring(&self->fifo));
	id = heard_request(foe, variant->op, 0);
	ASSERT_NE(0, id);
	EXPECT_OK(foe_acknowledge(foe, foe->heard - 1, FOE_ACK));
	ASSERT_OK(ibv_dereg_mr(self->fifo.buf.mr));
	self->fifo.buf.mr = NULL;
	EXPECT_OK(foe_answer(foe, variant->op, id, 100));
	ASSERT_OK(raw_take(&self->fifo, &record));
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, record.status);
	EXPECT_EQ(0, self->words[0]);
}

TEST_HARNESS_MAIN
