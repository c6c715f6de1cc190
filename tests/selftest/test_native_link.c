// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Native links and peers that behave badly: hosts that keep memory busy, say that they
 * are others, leave without a word, or ask for too much. Each test has a network
 * namespace with a device on its lo; the other host is native_foe.c.
 */
#include <arpa/inet.h>
#include <sched.h>

#include "fault.h"
#include "native.h"
#include "native_asking.h"
#include "native_claim.h"
#include "native_foe.h"
#include "native_raw.h"

#define SLOTS		256
#define LEN		(1 << 20)
#define HOST_LINKS	1024	/* that a FIFO accepts of one host */
#define TYPES		1024	/* that it remembers of a link */

FIXTURE(link)
{
	struct raw_fifo fifo;
	struct foe foe;
};

FIXTURE_SETUP(link)
{
	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe));
}

FIXTURE_TEARDOWN(link)
{
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe));
}

static int dereg(void *mr)
{
	return ibv_dereg_mr(mr);
}

/* All of the buffer, which is more than a window has room for. */
static int foe_get(struct foe *foe, const struct buf *buf)
{
	struct foe_header h = {
		.op = FOE_GET,
		.id = htonl(2),
		.key = htonl(buf->mr->rkey),
		.addr = htobe64((uintptr_t)buf->addr),
		.total = htobe64(LEN),
		.arg = htonl(LEN),
	};

	return foe_send(foe, &h, NULL, 0);
}

/* Deregister, while the foe answers each packet in a way that is no progress. */
static bool deregisters(struct raw_fifo *fifo, struct foe *foe,
			int (*reply)(struct foe *foe, const struct foe_packet *packet))
{
	uint64_t until = now_ns() + WAIT_NS;
	struct foe_packet packet;
	struct doing d;

	if (begin(&d, dereg, fifo->buf.mr))
		return false;
	while (!is_over(&d)) {
		if (now_ns() > until)
			return false;
		if (!foe_hear(foe, &packet, 10) && packet.opcode >> 5 == 6)
			reply(foe, &packet);
	}
	fifo->buf.mr = NULL;
	return !d.ret;
}

/*
 * A responder that is not ready answers the packet that it expects, and drops those that follow.
 * Each answer brings the window again. If this process answered each packet of a window, windows
 * would come faster than it reads them, and its socket would overflow and lose the goodbye.
 */
static int never_ready(struct foe *foe, const struct foe_packet *packet)
{
	if (packet->psn != foe->heard)
		return 0;
	return foe_acknowledge(foe, foe->heard, FOE_NOT_READY);
}

TEST_F(link, dereg_ends_what_a_peer_is_never_ready_for)
{
	ASSERT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	ASSERT_OK(foe_get(&self->foe, &self->fifo.buf));
	EXPECT_TRUE(deregisters(&self->fifo, &self->foe, never_ready));
}

static int one_at_a_time(struct foe *foe, const struct foe_packet *packet)
{
	usleep(100000);
	return foe_acknowledge(foe, foe->heard++, FOE_ACK);
}

TEST_F(link, dereg_ends_what_is_acknowledged_packet_by_packet)
{
	ASSERT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	ASSERT_OK(foe_get(&self->foe, &self->fifo.buf));
	EXPECT_TRUE(deregisters(&self->fifo, &self->foe, one_at_a_time));
}

/* A peer that is never ready ends the link without anybody's deregistering anything. */
TEST_F(link, waiting_for_a_peer_to_be_ready_ends)
{
	uint64_t until = now_ns() + WAIT_NS;
	struct foe_packet packet = {};
	struct foe *foe = &self->foe;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_get(foe, &self->fifo.buf));
	while (packet.opcode != 0xe0 && now_ns() < until)
		if (!foe_hear(foe, &packet, 10) && packet.opcode >> 5 == 6)
			never_ready(foe, &packet);
	EXPECT_EQ(0xe0, packet.opcode);
	EXPECT_EQ(FOE_BYE, packet.hello.kind);
}

/* ---- what a process asks of such a host ---- */

/* It acknowledges all that comes, and answers nothing. */
static int takes_all(struct foe *foe, const struct foe_packet *packet)
{
	if (packet->psn == foe->heard)
		foe->heard++;
	return foe_acknowledge(foe, foe->heard - 1, FOE_ACK);
}

TEST_F(link, dereg_ends_what_a_peer_does_not_answer)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe_hello hello;
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE,
		.num_slots = 1,
		.length = 64,
		.local_addr = (uintptr_t)self->fifo.buf.addr,
		.lkey = self->fifo.buf.mr->lkey,
	};
	struct doing doing;

	ASSERT_OK(begin(&doing, make_endpoint, &a));
	ASSERT_OK(foe_wait_hello(&self->foe, FOE_ASK, &hello));
	ASSERT_OK(foe_say_yes(&self->foe));
	ASSERT_OK(pthread_join(doing.thread, NULL));
	ASSERT_OK(doing.ret);
	d.endpoint = a.endpoint;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	EXPECT_TRUE(deregisters(&self->fifo, &self->foe, takes_all));
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
}

/* The same, and nobody deregisters: what waits behind the request does not do so for ever. */
TEST_F(link, who_does_not_answer_is_given_up)
{
	struct asking a = asking_foe(&self->fifo);
	struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE,
		.num_slots = 1,
		.length = 64,
		.local_addr = (uintptr_t)self->fifo.buf.addr,
		.lkey = self->fifo.buf.mr->lkey,
	};
	struct held_param answer = {};
	struct foe_packet packet = {};

	ASSERT_OK(param_hold(&answer, "link_answer_s", 1));
	ASSERT_OK(reach_foe(&a, &self->foe));
	d.endpoint = a.endpoint;
	ASSERT_OK(raw_post(&self->fifo, &d, NULL, 0));
	do {
		ASSERT_OK(foe_hear(&self->foe, &packet, FOE_PATIENCE_MS));
		if (packet.opcode >> 5 == 6)
			takes_all(&self->foe, &packet);
	} while (packet.opcode != 0xe0);
	EXPECT_EQ(FOE_BYE, packet.hello.kind);
	EXPECT_OK(raw_endpoint_destroy(&self->fifo, a.handle));
	EXPECT_OK(param_release(&answer));
}

/* A host that gives up asking says so, because the peer may have accepted meanwhile. */
TEST_F(link, who_gives_up_asking_says_goodbye)
{
	struct asking a = asking_foe(&self->fifo);
	struct foe_hello hello;
	struct doing doing;

	ASSERT_OK(begin(&doing, make_endpoint, &a));
	ASSERT_OK(foe_wait_hello(&self->foe, FOE_BYE, &hello));
	EXPECT_EQ(self->foe.asked.nonce, hello.nonce);
	EXPECT_EQ(self->foe.asked.fifo, hello.fifo);
	ASSERT_OK(pthread_join(doing.thread, NULL));
	EXPECT_EQ(-EHOSTUNREACH, doing.ret);
}

/*
 * It is the target of a transfer that paces itself, and takes none of it: it does not answer
 * the first put. By then it was asked for what brings the next portion.
 */
TEST_F(link, the_next_portion_is_asked_for_while_one_moves)
{
	struct buf *buf = &self->fifo.buf;
	struct foe *foe = &self->foe;
	const struct vrnic_ndesc batch[] = { {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .lkey = buf->mr->rkey,
		.local_addr = (uintptr_t)buf->addr, .length = sizeof(batch[0]),
	}, {
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .lkey = buf->mr->rkey,
		.local_addr = (uintptr_t)buf->addr, .length = LEN,
	} };
	struct foe_header h = {
		.op = FOE_RGET, .id = htonl(2), .data = htonl(sizeof(batch)),
		.total = htobe64(sizeof(batch)),
	};

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send(foe, &h, batch, sizeof(batch)));
	/* behind a put it would never come */
	ASSERT_OK(foe_wait(foe, FOE_RGET, &h));
	EXPECT_EQ(sizeof(batch[0]), ntohl(h.data));
	h = (struct foe_header){ .op = FOE_ANSWER, .id = h.id };
	ASSERT_OK(foe_send(foe, &h, NULL, 0));
	ASSERT_OK(foe_wait(foe, FOE_PUT, &h));
	EXPECT_EQ(LEN, be64toh(h.total));
}

/* ---- how it executes what comes ---- */

static struct foe_header put_header(const struct buf *buf, uint32_t rkey)
{
	return (struct foe_header){
		.op = FOE_PUT, .id = htonl(2), .data = htonl(8), .key = htonl(rkey),
		.addr = htobe64((uintptr_t)buf->addr), .total = htobe64(8),
	};
}

/*
 * It puts to memory that it may not use, and does not hear that this failed. Nothing behind that
 * put is executed before it says that it knows.
 */
TEST_F(link, a_failed_put_holds_up_those_behind_it)
{
	struct buf *buf = &self->fifo.buf;
	struct foe *foe = &self->foe;
	struct foe_header bad = put_header(buf, buf->mr->rkey + 1);
	struct foe_header good = put_header(buf, buf->mr->rkey);
	volatile uint64_t *word = (volatile uint64_t *)buf->addr;
	const uint64_t value = 0x1122334455667788;
	struct foe_packet packet;

	*word = 0;
	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send(foe, &bad, &value, 8));
	ASSERT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, packet.status);
	EXPECT_EQ(VRNIC_VERR_KEY, packet.vendor_err);
	ASSERT_OK(foe_send_again(foe, &bad, &value, 8));
	EXPECT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
	/* in the same place, even what would be right now */
	ASSERT_OK(foe_send_again(foe, &good, &value, 8));
	EXPECT_EQ(FOE_FAILED, foe_wait_ack(foe, &packet));
	EXPECT_EQ(0, *word);
	ASSERT_OK(foe_skip(foe));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	ASSERT_OK(foe_send(foe, &good, &value, 8));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_EQ(value, *word);
}

/* It gets, and does not acknowledge what it was sent: until then it may be sent again. */
TEST_F(link, a_get_counts_when_its_data_were_taken)
{
	struct buf *buf = &self->fifo.buf;
	struct foe *foe = &self->foe;
	struct raw_counter counter;
	uint64_t until = now_ns() + WAIT_NS;
	volatile int64_t *remaining;
	struct foe_packet packet;
	struct foe_header h = {
		.op = FOE_GET, .id = htonl(2), .key = htonl(buf->mr->rkey),
		.addr = htobe64((uintptr_t)buf->addr), .total = htobe64(8), .arg = htonl(8),
	};

	ASSERT_OK(raw_counter(&self->fifo, VRNIC_COUNTER_OPEN, &counter));
	remaining = (volatile int64_t *)&counter.cell->remaining;
	*remaining = 8;
	h.counter[0] = htonl(counter.number);
	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send(foe, &h, NULL, 0));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(FOE_ANSWER, packet.header.op);
	EXPECT_EQ(8, ntohl(packet.header.data));
	EXPECT_EQ(8, *remaining);
	EXPECT_OK(foe_acknowledge(foe, packet.psn, FOE_ACK));
	while (*remaining && now_ns() < until)
		usleep(100);
	EXPECT_EQ(0, *remaining);
	EXPECT_OK(raw_counter_destroy(&self->fifo, &counter));
}

TEST_F(link, a_first_packet_may_be_short)
{
	struct buf *buf = &self->fifo.buf;
	struct foe *foe = &self->foe;
	struct foe_header h = put_header(buf, buf->mr->rkey);
	volatile uint64_t *word = (volatile uint64_t *)buf->addr;
	const uint64_t value = 0x1122334455667788;
	struct foe_packet packet;

	*word = 0;
	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send_first(foe, &h, NULL, 0));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_EQ(0, *word);
	ASSERT_OK(foe_send_last(foe, &value, 8));
	EXPECT_EQ(FOE_ACK, foe_wait_ack(foe, &packet));
	EXPECT_EQ(value, *word);
}

TEST_F(link, nothing_is_skipped_unasked)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	foe->psn++;
	ASSERT_OK(foe_skip(foe));
	EXPECT_EQ(FOE_INVALID, foe_wait_ack(foe, &packet));
}

/* ---- what such a host leaves behind, and asks for ---- */

TEST_F(link, silent_peers_are_asked_and_then_forgotten)
{
	long was = module_param("link_idle_s");
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	bool pinged = false;

	ASSERT_LE(0, was);
	ASSERT_OK(set_module_param("link_idle_s", 1));
	EXPECT_OK(foe_ask(foe, &self->fifo.address, 77));
	do {
		ASSERT_OK(foe_hear(foe, &packet, FOE_PATIENCE_MS));
		pinged |= packet.opcode >> 5 == 6 && packet.header.op == FOE_PING;
	} while (packet.opcode != 0xe0);
	EXPECT_TRUE(pinged);
	EXPECT_EQ(FOE_BYE, packet.hello.kind);
	EXPECT_EQ(htobe64(foe->nonce), packet.hello.nonce);
	EXPECT_OK(set_module_param("link_idle_s", was));
}

TEST_F(link, one_host_does_not_use_up_all_links)
{
	struct foe other;
	int i, why = 0;

	for (i = 0; i < 2 * HOST_LINKS && !why; i++)
		why = foe_ask(&self->foe, &self->fifo.address, 77);
	EXPECT_EQ(FOE_RESOURCES, why);
	EXPECT_EQ(HOST_LINKS + 1, i);
	ASSERT_OK(foe_open(&other, FOE + 1));
	EXPECT_OK(foe_ask(&other, &self->fifo.address, 77));
	foe_close(&other);
}

#define FLOOD		200
#define LANE_HOST	32	/* datagrams of one host that wait */

/* How many others were answered since it asked, until it was. */
static int answered_before(struct foe *watch, const struct foe *foe)
{
	uint64_t nonce = htobe64(foe->nonce);
	struct foe_packet packet;
	bool asked = false;
	int ret, n = 0;

	for (;;) {
		ret = foe_hear(watch, &packet, FOE_PATIENCE_MS);
		if (ret)
			return ret;
		if (packet.opcode != 0xe0)
			continue;
		asked |= packet.hello.kind == FOE_ASK && packet.hello.nonce == nonce;
		if (packet.hello.kind != FOE_YES)
			continue;
		if (packet.hello.nonce == nonce)
			return n;
		n += asked;
	}
}

/* With one CPU, nothing is answered while they ask. */
static int ask_all(FIXTURE_DATA(link) *self, struct foe *last)
{
	struct sched_param first = { .sched_priority = 1 }, usual = {};
	int i, ret = sched_setscheduler(0, SCHED_FIFO, &first) ? -errno : 0;

	for (i = 0; !ret && i < FLOOD; i++)
		ret = foe_begin(&self->foe, &self->fifo.address, 77);
	if (!ret)
		ret = foe_begin(last, &self->fifo.address, 77);
	sched_setscheduler(0, SCHED_OTHER, &usual);
	return ret;
}

TEST_F(link, who_asks_waits_for_few_of_another_host)
{
	struct foe other, watch;
	int n;

	ASSERT_OK(foe_open(&other, FOE + 1));
	ASSERT_OK(foe_open(&watch, 0));
	ASSERT_OK(ask_all(self, &other));
	n = answered_before(&watch, &other);
	EXPECT_LE(0, n);
	/* and what was at work; a second CPU may be ahead of what is heard here */
	EXPECT_GE(2 * LANE_HOST, n);
	/* what was dropped may be asked for again */
	EXPECT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	foe_close(&watch);
	foe_close(&other);
}

TEST_F(link, who_is_refused_without_memory_may_ask_again)
{
	if (!faults_can_be_there())
		SKIP(return, "no debugfs");
	ASSERT_OK(ARM("link", .times = 1));
	EXPECT_EQ(FOE_RESOURCES, foe_ask(&self->foe, &self->fifo.address, 77));
	EXPECT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	EXPECT_EQ(1, injected("link"));
	EXPECT_OK(fault_disarm("link"));
}

/* Each has an answer that is not acknowledged. One after the other would take a minute. */
TEST_F(link, a_fifo_ends_all_its_links_at_once)
{
	struct foe_header h = { .op = FOE_NOTIFY };
	uint64_t begun;
	int i;

	for (i = 0; i < 300; i++) {
		ASSERT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
		ASSERT_OK(foe_send(&self->foe, &h, NULL, 0));
	}
	begun = now_ns();
	EXPECT_OK(raw_close(&self->fifo));
	EXPECT_LT(now_ns() - begun, 300 * 200 * MSEC_NS / 2);
}

static int foe_send_rows(struct foe *foe, uint32_t number, const struct vrnic_type_row *row,
			 unsigned int nr)
{
	struct foe_header h = {
		.op = FOE_TYPE,
		.id = htonl(2 * number),
		.data = htonl(nr * sizeof(*row)),
		.key = htonl(number * 2654435761U),
		.total = htobe64(nr * sizeof(*row)),
	};

	return foe_send(foe, &h, row, nr * sizeof(*row));
}

static int foe_send_type(struct foe *foe, uint32_t number)
{
	const struct vrnic_type_row row = { .bytes = 16, .count = 1 };

	return foe_send_rows(foe, number, &row, 1);
}

static int foe_tell(struct foe *foe, uint32_t number, struct foe_header *answer)
{
	int ret = foe_send_type(foe, number);

	return ret ? ret : foe_wait(foe, FOE_ANSWER, answer);
}

/* @len bytes of the typed memory that a type of number @number describes. */
static int foe_get_typed(struct foe *foe, const struct buf *buf, uint32_t number, size_t len,
			 uint8_t more)
{
	struct foe_header h = {
		.op = FOE_GET,
		.flags = FOE_TYPED | more,
		.key = htonl(buf->mr->rkey),
		.addr = htobe64((uintptr_t)buf->addr),
		.total = htobe64(len),
		.arg = htonl(len),
		.type = htonl(number * 2654435761U),
	};

	return foe_send(foe, &h, NULL, 0);
}

TEST_F(link, a_peer_has_so_many_types_and_no_more)
{
	struct foe *foe = &self->foe;
	struct foe_header answer;
	uint32_t i;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	for (i = 1; i <= TYPES; i++) {
		ASSERT_OK(foe_tell(foe, i, &answer));
		ASSERT_EQ(0, answer.status);
	}
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 16, 0));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(0, answer.flags);
	EXPECT_EQ(0, answer.status);
	/* one more, and it is told all of them again when they are needed */
	ASSERT_OK(foe_tell(foe, i, &answer));
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 16, 0));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(FOE_AGAIN, answer.flags);
}

/* The next packet of a message with this PSN, new or not. */
static int foe_hear_psn(struct foe *foe, uint32_t psn)
{
	struct foe_packet packet;
	int ret;

	do {
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
	} while (!ret && (packet.opcode >> 5 != 6 || packet.psn != psn));
	return ret;
}

/* Packets of an answer are made again by its type, although the peer has replaced the type. */
TEST_F(link, s3_5_an_answer_keeps_its_type)
{
	struct foe *foe = &self->foe;
	struct foe_packet packet;
	struct foe_header answer;
	uint32_t next;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_tell(foe, 1, &answer));
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 16, 0));
	ASSERT_OK(foe_take(foe, &packet));
	EXPECT_EQ(FOE_ANSWER, packet.header.op);
	EXPECT_EQ(16, ntohl(packet.header.data));
	next = foe->heard;
	ASSERT_OK(foe_send_type(foe, 1));
	ASSERT_OK(foe_hear_psn(foe, next));
	ASSERT_OK(foe_acknowledge(foe, packet.psn, FOE_LOST));
	ASSERT_OK(foe_hear_psn(foe, packet.psn));
	ASSERT_OK(foe_acknowledge(foe, next, FOE_ACK));
	foe->heard = (next + 1) & 0xffffff;
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 16, 0));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(0, answer.status);
	EXPECT_EQ(0, answer.flags);
}

/* Of typed memory, too, a peer may want no bytes: no reference is left behind. */
TEST_F(link, typed_gets_of_no_bytes)
{
	struct foe *foe = &self->foe;
	struct foe_header answer, h = {
		.op = FOE_GET,
		.flags = FOE_TYPED,
		.key = htonl(self->fifo.buf.mr->rkey),
		.addr = htobe64((uintptr_t)self->fifo.buf.addr),
		.total = htobe64(16),
		.type = htonl(2654435761U),
	};
	int i;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_tell(foe, 1, &answer));
	for (i = 0; i < 8; i++) {
		ASSERT_OK(foe_send(foe, &h, NULL, 0));
		ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
		EXPECT_EQ(0, answer.status);
		EXPECT_EQ(0, ntohl(answer.data));
	}
	/* hangs if one of them keeps the region */
	EXPECT_OK(dereg(self->fifo.buf.mr));
	self->fifo.buf.mr = NULL;
}

/* A typed PUT whose data begin with the rows of its type; @cut: bytes of the first packet, or 0. */
struct rows_put {
	struct vrnic_type_row row[2];
	uint64_t total;
	uint8_t data[16];
};

static int foe_put_rows(struct foe *foe, const struct buf *buf, const struct rows_put *put,
			size_t cut, struct foe_header *answer)
{
	uint8_t bytes[sizeof(put->row) + sizeof(put->data)];
	struct foe_header h = {
		.op = FOE_PUT,
		.flags = FOE_TYPED | FOE_ROWS,
		.id = htonl(9),
		.data = htonl(sizeof(bytes)),
		.key = htonl(buf->mr->rkey),
		.addr = htobe64((uintptr_t)buf->addr),
		.total = htobe64(put->total),
		.arg = htonl(sizeof(put->row)),
		.type = htonl(5),
	};
	int ret;

	memcpy(bytes, put->row, sizeof(put->row));
	memcpy(bytes + sizeof(put->row), put->data, sizeof(put->data));
	if (cut) {
		ret = foe_send_first(foe, &h, bytes, cut);
		if (!ret)
			ret = foe_send_last(foe, bytes + cut, sizeof(bytes) - cut);
	} else {
		ret = foe_send(foe, &h, bytes, sizeof(bytes));
	}
	return ret ? ret : foe_wait(foe, FOE_ANSWER, answer);
}

static const struct rows_put good_rows = {
	.row = {
		{ .offset = 0, .bytes = 8, .count = 1 },
		{ .offset = 24, .bytes = 8, .count = 1 },
	},
	.total = 16,
	.data = "sixteen bytes...",
};

static bool rows_arrived(const struct buf *buf)
{
	return !memcmp(buf->addr, good_rows.data, 8) &&
	       !memcmp(buf->addr + 24, good_rows.data + 8, 8) &&
	       buf_is_not(buf, 8, 16, 0) < 0 && buf_is_not(buf, 32, 96, 0) < 0;
}

/* Wherever the message is cut into packets. */
TEST_F(link, s3_3_rows_come_with_the_data)
{
	struct buf *buf = &self->fifo.buf;
	struct foe_header answer, get = {
		.op = FOE_GET,
		.flags = FOE_TYPED,
		.key = htonl(buf->mr->rkey),
		.addr = htobe64((uintptr_t)buf->addr),
		.total = htobe64(16),
		.arg = htonl(16),
		.type = htonl(5),
	};
	size_t cut;

	ASSERT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	for (cut = 0; cut < sizeof(good_rows.row) + 16; cut += 4) {
		memset(buf->addr, 0, 128);
		ASSERT_OK(foe_put_rows(&self->foe, buf, &good_rows, cut, &answer));
		EXPECT_EQ(0, answer.status);
		EXPECT_EQ(0, answer.flags);
		EXPECT_TRUE(rows_arrived(buf)) TH_LOG("cut at %zu", cut);
	}
	/* and the type is known */
	ASSERT_OK(foe_send(&self->foe, &get, NULL, 0));
	ASSERT_OK(foe_wait(&self->foe, FOE_ANSWER, &answer));
	EXPECT_EQ(0, answer.flags);
	EXPECT_EQ(0, answer.status);
	EXPECT_EQ(16, ntohl(answer.data));
}

/* Rows that make no sense, or do not fit: the message fails, and the link goes on. */
TEST_F(link, rows_with_data_are_checked)
{
	struct buf *buf = &self->fifo.buf;
	struct rows_put bad[7];
	struct foe_header answer;
	unsigned int i, cut;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_rows;
	bad[0].row[0].bytes = 0;
	bad[1].row[1].count = 0;
	bad[2].row[1].count = ~0ULL;
	bad[3].row[1].bytes = 16;		/* more than there is */
	bad[4].total = 24;
	bad[5].row[1].offset = LEN;		/* beyond the region */
	bad[6].row[0].offset = -8;
	ASSERT_OK(foe_ask(&self->foe, &self->fifo.address, 77));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		for (cut = 0; cut <= 80; cut += 40) {
			memset(buf->addr, 0, 128);
			ASSERT_OK(foe_put_rows(&self->foe, buf, &bad[i], cut % 80, &answer));
			EXPECT_NE(0, answer.status) TH_LOG("number %u", i);
			EXPECT_EQ(-1, buf_is_not(buf, 0, 128, 0)) TH_LOG("number %u", i);
			ASSERT_OK(foe_put_rows(&self->foe, buf, &good_rows, 0, &answer));
			EXPECT_EQ(0, answer.status);
			EXPECT_TRUE(rows_arrived(buf));
		}
}

/* 8 bytes at @pos of the 16 that a type describes. Return: status of the answer, or -1. */
static int foe_put_half(struct foe *foe, uint32_t type, uint32_t key, const void *addr,
			uint64_t pos)
{
	struct foe_header answer, h = {
		.op = FOE_PUT,
		.flags = FOE_TYPED,
		.id = htonl(9),
		.data = htonl(8),
		.key = htonl(key),
		.addr = htobe64((uintptr_t)addr),
		.total = htobe64(16),
		.pos = htobe64(pos),
		.type = htonl(type * 2654435761U),
	};

	if (foe_send(foe, &h, "eight...", 8) || foe_wait(foe, FOE_ANSWER, &answer))
		return -1;
	return answer.flags ? -1 : answer.status;
}

/*
 * A put whose memory was refused does not go on where that of another type ended: the checks are
 * those of one type, and the places those of the other.
 */
TEST_F(link, a_refused_put_has_no_rest)
{
	const struct vrnic_type_row far[2] = {
		{ .offset = 0, .bytes = 8, .count = 1 },
		{ .offset = LEN / 2, .bytes = 8, .count = 1 },
	};
	struct buf *buf = &self->fifo.buf;
	struct foe *foe = &self->foe;
	struct foe_header answer;
	uint32_t key = buf->mr->rkey;
	uint8_t *end = (uint8_t *)buf->addr + LEN - 16;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send_rows(foe, 1, far, 2));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	ASSERT_OK(foe_tell(foe, 2, &answer));
	EXPECT_EQ(0, foe_put_half(foe, 1, key, buf->addr, 0));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, foe_put_half(foe, 2, key + 1, end, 0));
	EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, foe_put_half(foe, 2, key, end, 8));
	/* that of the first type may go on */
	EXPECT_EQ(0, foe_put_half(foe, 1, key, buf->addr, 8));
	EXPECT_EQ(0, memcmp((uint8_t *)buf->addr + LEN / 2, "eight...", 8));
}

/* Between two messages with rows of another type: these are not taken for its own. */
TEST_F(link, rows_between_rows)
{
	struct foe_header answer, h = {
		.op = FOE_TYPE,
		.id = htonl(3),
		.data = htonl(32),
		.key = htonl(6),
		.total = htobe64(64),
	};
	struct foe *foe = &self->foe;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send(foe, &h, &good_rows.row[0], 32));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(0, answer.status);
	memset(self->fifo.buf.addr, 0, 128);
	ASSERT_OK(foe_put_rows(foe, &self->fifo.buf, &good_rows, 0, &answer));
	EXPECT_EQ(0, answer.status);
	EXPECT_TRUE(rows_arrived(&self->fifo.buf));
	h.pos = htobe64(32);
	ASSERT_OK(foe_send(foe, &h, &good_rows.row[1], 32));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_NE(0, answer.status);
}

/* Answers that are packed wait for acknowledgments in memory, of which there is so much. */
TEST_F(link, answers_that_nobody_takes_are_few)
{
	struct foe_header answer, h = {
		.op = FOE_TYPE,
		.id = htonl(2),
		.data = htonl(sizeof(struct vrnic_type_row)),
		.key = htonl(2654435761U),
		.total = htobe64(sizeof(struct vrnic_type_row)),
	};
	const struct vrnic_type_row row = { .bytes = 1 << 18, .count = 1 };
	struct foe_packet packet = {};
	struct foe *foe = &self->foe;
	int i, ret = 0;

	ASSERT_OK(foe_ask(foe, &self->fifo.address, 77));
	ASSERT_OK(foe_send(foe, &h, &row, sizeof(row)));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	for (i = 0; i < 20; i++)
		ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 1 << 18, FOE_PACK));
	while (!ret && (packet.opcode != 0x11 || packet.syndrome >> 5 != 1))
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
	EXPECT_OK(ret);
}

/* ---- peers of ours, and one that says that it is one of them ---- */

FIXTURE(others)
{
	struct nbed bed;
	struct foe foe;
	struct vrnic_rts offer;
	int offers;
	struct told sent, taken;
	struct held_param forced;
};

static void keep_offer(struct vrnic_context *context, const struct vrnic_rts *rts,
		       const void *header, size_t header_len, void *arg)
{
	FIXTURE_DATA(others) *self = arg;

	self->offer = *rts;
	self->offers++;
}

FIXTURE_SETUP(others)
{
	NEED_NATIVE();
	ASSERT_OK(wire_device());
	/* contexts use GID 0, which is no address of lo before */
	ASSERT_OK(system("ip addr add fe80::200:ff:fe00:0/64 dev lo nodad"));
	ASSERT_OK(param_hold(&self->forced, "force_roce", 1));
	ASSERT_OK(nbed_open(&self->bed, LEN, NULL));
	ASSERT_OK(vrnic_rts_handler_set(self->bed.b.context, keep_offer, self));
	ASSERT_OK(foe_open(&self->foe, FOE));
}

FIXTURE_TEARDOWN(others)
{
	foe_close(&self->foe);
	EXPECT_OK(nbed_close(&self->bed));
	EXPECT_OK(param_release(&self->forced));
	EXPECT_OK(rdma_link_del(WIRE_DEVICE));
}

static int offer(FIXTURE_DATA(others) *self)
{
	struct node *a = &self->bed.a;
	int n = self->offers;
	int ret = vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = a->buf.mr, .length = LEN),
				 DONE(TELL(&self->sent)));

	return ret ? ret : nbed_until(&self->bed, &self->offers, n + 1);
}

static int take(FIXTURE_DATA(others) *self)
{
	struct node *b = &self->bed.b;

	return vrnic_accept(b->to, &self->offer, ACCEPT(.local = b->buf.addr, .mr = b->buf.mr),
			    DONE(TELL(&self->taken)));
}

/* A foe has b's number, and ends what a has with b: by a refusal and by an error. */
TEST_F(others, nobody_ends_the_transfers_of_another_host)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	struct vrnic_verdict verdict = {};
	struct foe_header answer, refusal = {
		.op = FOE_MESSAGE, .key = htonl(sizeof(verdict)), .data = htonl(sizeof(verdict)),
		.arg = htonl(VRNIC_DISPATCH_REFUSED),
	}, error = { .op = FOE_ERROR, .status = IBV_WC_RETRY_EXC_ERR };
	struct vrnic_address to, from;
	int i;

	vrnic_context_address(a->context, &to);
	vrnic_context_address(b->context, &from);
	ASSERT_OK(offer(self));
	ASSERT_OK(foe_ask(&self->foe, &to, from.fifo));
	verdict.id = self->offer.id;
	ASSERT_OK(foe_send(&self->foe, &refusal, &verdict, sizeof(verdict)));
	ASSERT_OK(foe_wait(&self->foe, FOE_ANSWER, &answer));
	ASSERT_OK(foe_send(&self->foe, &error, NULL, 0));
	ASSERT_OK(foe_wait(&self->foe, FOE_ANSWER, &answer));
	for (i = 0; i < 10; i++)
		ASSERT_LE(0, vrnic_advance(a->context, 16));
	EXPECT_EQ(0, self->sent.count);
	/* and b gets what it was offered */
	ASSERT_OK(take(self));
	ASSERT_OK(nbed_until(&self->bed, &self->sent.count, 1));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, self->sent.status.status);
	EXPECT_EQ(IBV_WC_SUCCESS, self->taken.status.status);
}

/* What comes of a message must be what a has. */
struct pieces {
	const uint8_t *is;
	uint64_t next;
	int bad;
};

static void compare(struct vrnic_context *context, const void *piece, size_t length,
		    uint64_t offset, void *arg)
{
	struct pieces *p = arg;

	p->bad += offset != p->next || memcmp(p->is + offset, piece, length);
	p->next += length;
}

/*
 * The first piece of a message that b takes. tests/unit/unit_lib_pieces.c shows that such a piece
 * is taken if it comes from the peer.
 */
static int forge_piece(struct foe *foe, uint32_t use, uint32_t place)
{
	const struct foe_header piece = {
		.op = FOE_MESSAGE, .data = htonl(8), .total = htobe64(8),
		.arg = htonl(VRNIC_DISPATCH_PIECE),
		.cookie = htobe64(piece_cookie(use, place, 0)),
	};
	struct foe_header answer;
	int ret = foe_send(foe, &piece, "forgery", 8);

	return ret ? ret : foe_wait(foe, FOE_ANSWER, &answer);
}

/* A foe has a's number, and sends some of what b takes from a. */
TEST_F(others, nobody_sends_pieces_for_another_host)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	struct pieces pieces = { .is = a->buf.addr };
	struct vrnic_address to, from;
	uint32_t use, place;

	buf_fill(&a->buf, 5);
	vrnic_context_address(b->context, &to);
	vrnic_context_address(a->context, &from);
	ASSERT_OK(offer(self));
	ASSERT_OK(foe_ask(&self->foe, &to, from.fifo));
	/* they are in the FIFO before the first of a's */
	for (use = 0; use < 4; use++)
		for (place = 0; place < 4; place++)
			ASSERT_OK(forge_piece(&self->foe, use, place));
	ASSERT_OK(vrnic_accept(b->to, &self->offer,
			       ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER, .deliver = compare,
				      .deliver_arg = &pieces),
			       DONE(TELL(&self->taken))));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, self->taken.status.status);
	EXPECT_EQ(0, pieces.bad);
	EXPECT_EQ(LEN, pieces.next);
}

static void count_calls(struct vrnic_context *context, const struct vrnic_message *message,
			void *arg)
{
	++*(int *)arg;
}

/* Offers of long messages, right and wrong, of a host to which there is no endpoint. */
TEST_F(others, long_messages_of_strangers)
{
	struct node *b = &self->bed.b;
	struct vrnic_address to;
	struct vrnic_offer offer = {};
	struct foe_header answer, h = {
		.op = FOE_MESSAGE, .key = htonl(sizeof(offer)), .data = htonl(sizeof(offer)),
		.arg = htonl(VRNIC_DISPATCH_LONG),
	};
	static const uint64_t lens[] = { 5000, 0, VRNIC_SEND_MAX, VRNIC_SEND_MAX + 1, ~0ULL };
	struct told told = {};
	unsigned int i;
	int calls = 0;

	vrnic_context_address(b->context, &to);
	ASSERT_OK(vrnic_dispatch_set(b->context, 3, count_calls, &calls));
	ASSERT_OK(foe_ask(&self->foe, &to, 77));
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		offer.dispatch = i < ARRAY_SIZE(lens) ? 3 : ~0ULL - i;
		offer.length = lens[i % ARRAY_SIZE(lens)];
		ASSERT_OK(foe_send(&self->foe, &h, &offer, sizeof(offer)));
		ASSERT_OK(foe_wait(&self->foe, FOE_ANSWER, &answer));
		EXPECT_EQ(0, answer.status);
		ASSERT_LE(0, vrnic_advance(b->context, 16));
	}
	EXPECT_EQ(0, calls);
	/* and those that b knows go on */
	ASSERT_OK(vrnic_send(self->bed.a.to, SEND(.comp_mask = VRNIC_SEND_MR, .id = 3,
						  .mr = self->bed.a.buf.mr,
						  .data = self->bed.a.buf.addr, .length = LEN),
			     DONE(TELL(&told))));
	ASSERT_OK(nbed_until(&self->bed, &calls, 1));
	ASSERT_OK(nbed_until(&self->bed, &told.count, 1));
}

/* While there is no memory for a link at the other end, it is asked for again. */
TEST_F(others, a_link_that_was_refused_without_memory_comes_up)
{
	struct vrnic_context *context;
	struct vrnic_endpoint *ep;
	struct vrnic_address to;

	if (!faults_can_be_there())
		SKIP(return, "no debugfs");
	vrnic_context_address(self->bed.b.context, &to);
	ASSERT_OK(vrnic_context_create(self->bed.a.client, NULL, &context));
	ASSERT_OK(ARM("link", .times = 3));
	EXPECT_OK(vrnic_endpoint_create(context, &to, &ep));
	EXPECT_EQ(3, injected("link"));
	EXPECT_OK(vrnic_endpoint_destroy(ep));
	/* not for ever */
	ASSERT_OK(ARM("link"));
	EXPECT_EQ(-ENOMEM, vrnic_endpoint_create(context, &to, &ep));
	EXPECT_OK(fault_disarm("link"));
	EXPECT_OK(vrnic_endpoint_create(context, &to, &ep));
	EXPECT_OK(vrnic_endpoint_destroy(ep));
	EXPECT_OK(vrnic_context_destroy(context));
}

#define MANY	200

/* So many counters may be named at a time by descriptors that run at the peer. */
TEST_F(others, many_accepts_at_a_time)
{
	struct node *b = &self->bed.b;
	struct vrnic_counter *counter[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		ASSERT_OK(vrnic_counter_create(b->client, 0, &counter[i]));
	ASSERT_OK(offer(self));
	for (i = 0; i < MANY; i++) {
		if (i)
			ASSERT_OK(offer(self));
		ASSERT_OK(vrnic_accept(b->to, &self->offer, ACCEPT(.local = b->buf.addr,
								   .mr = b->buf.mr,
								   .portion = LEN / 16),
				       DONE(.local = counter[i], TELL(&self->taken),
					    .flags = VRNIC_QUEUE)));
	}
	ASSERT_OK(nbed_until(&self->bed, &self->sent.count, MANY));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, MANY));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(0, vrnic_counter_read(counter[i]));
		EXPECT_OK(vrnic_counter_destroy(counter[i]));
	}
}

/* The wire is cut while a transfer paces itself: the side that offered hears of it. */
TEST_F(others, the_origin_hears_of_a_wire_that_was_cut)
{
	struct node *b = &self->bed.b;
	long was = module_param("link_idle_s");

	if (!faults_can_be_there())
		SKIP(return, "no debugfs");
	ASSERT_OK(set_module_param("link_idle_s", 1));
	ASSERT_OK(offer(self));
	ASSERT_OK(ARM("drop"));
	ASSERT_OK(vrnic_accept(b->to, &self->offer, ACCEPT(.local = b->buf.addr, .mr = b->buf.mr,
							   .portion = 4096),
			       DONE(TELL(&self->taken))));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
	EXPECT_NE(IBV_WC_SUCCESS, self->taken.status.status);
	ASSERT_OK(fault_disarm("drop"));
	EXPECT_OK(nbed_until(&self->bed, &self->sent.count, 1));
	EXPECT_NE(IBV_WC_SUCCESS, self->sent.status.status);
	EXPECT_OK(set_module_param("link_idle_s", was));
}

TEST_HARNESS_MAIN
