// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Native links and peers that behave badly: hosts that keep memory busy, say that they
 * are others, leave without a word, or ask for too much. Each test has a network
 * namespace with a device on its lo; the other host is native_foe.c.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>

#include "fault.h"
#include "native.h"
#include "native_foe.h"
#include "native_raw.h"

#define SLOTS		256
#define LEN		(1 << 20)
#define FOE		0x7f000009	/* 127.0.0.9 */
#define HOST_LINKS	1024	/* that a FIFO accepts of one host */
#define TYPES		1024	/* that it remembers of a link */
#define FLYING		64	/* puts of a FIFO that are on their way */

FIXTURE(link)
{
	struct raw_fifo fifo;
	struct foe foe;
	long was_forced;
};

/* On lo, a device has its port as soon as something leads to another host. */
static int open_port(struct dev *dev)
{
	struct pair_opts opts = {};
	struct pair pair;
	int ret = set_module_param("force_roce", 1);

	if (!ret)
		ret = pair_open(&pair, dev, &opts);
	if (!ret)
		ret = pair_connect(&pair) ?: pair_close(&pair);
	return ret;
}

FIXTURE_SETUP(link)
{
	NEED_NATIVE();
	/* GID 1 of lo is 127.0.0.1 */
	ASSERT_OK(setenv("VRNIC_GID", "1", 1));
	ASSERT_OK(wire_device());
	self->was_forced = module_param("force_roce");
	ASSERT_OK(raw_open(&self->fifo, SLOTS, SLOTS, LEN));
	ASSERT_OK(open_port(&self->fifo.dev));
	ASSERT_OK(foe_open(&self->foe, FOE));
}

FIXTURE_TEARDOWN(link)
{
	foe_close(&self->foe);
	EXPECT_OK(raw_close(&self->fifo));
	EXPECT_OK(set_module_param("force_roce", self->was_forced));
	EXPECT_OK(system("rdma link del " WIRE_DEVICE));
}

/* Something that may take as long as a peer likes, while the peer is played. */
struct doing {
	pthread_t thread;
	int (*what)(void *arg);
	void *arg;
	int ret;
};

static void *do_it(void *arg)
{
	struct doing *d = arg;

	d->ret = d->what(d->arg);
	return NULL;
}

static int begin(struct doing *d, int (*what)(void *arg), void *arg)
{
	d->what = what;
	d->arg = arg;
	return -pthread_create(&d->thread, NULL, do_it, d);
}

static bool is_over(struct doing *d)
{
	return !pthread_tryjoin_np(d->thread, NULL);
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

struct asking {
	struct raw_fifo *fifo;
	struct vrnic_address address;
	uint32_t endpoint, handle;
};

static int make_endpoint(void *arg)
{
	struct asking *a = arg;

	return raw_endpoint(a->fifo, &a->address, &a->endpoint, &a->handle);
}

static struct asking asking_foe(struct raw_fifo *fifo)
{
	struct asking a = { .fifo = fifo, .address = { .fifo = 77, .secret = 1 } };
	const uint8_t gid[] = { 0xff, 0xff, FOE >> 24, FOE >> 16 & 0xff, FOE >> 8 & 0xff,
				FOE & 0xff };

	memcpy(a.address.gid + 10, gid, sizeof(gid));
	return a;
}

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

/* ---- puts that nobody waits for ---- */

#define PUTS	32

/* An endpoint that leads to the other host, which says yes. */
static int reach_foe(struct asking *a, struct foe *foe)
{
	struct foe_hello hello;
	struct doing doing;
	int ret;

	ret = begin(&doing, make_endpoint, a) ?: foe_wait_hello(foe, FOE_ASK, &hello) ?:
	      foe_say_yes(foe);
	pthread_join(doing.thread, NULL);
	return ret ? ret : doing.ret;
}

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
		d.length = 4 * (i + 1);
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
TEST_F(link, puts_do_not_wait_for_each_other)
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
TEST_F(link, so_many_puts_are_on_their_way_and_no_more)
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
TEST_F(link, records_come_in_the_order_of_posting)
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
TEST_F(link, a_long_put_that_fails_is_skipped)
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

/* One put fails at the peer. Those before and behind it do not, and the fence tells of it. */
TEST_F(link, a_put_that_fails_is_skipped)
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
TEST_F(link, each_of_many_failures_is_told)
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
TEST_F(link, puts_end_with_their_link)
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
TEST_F(link, puts_outlive_their_endpoint)
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
TEST_F(link, puts_end_with_their_fifo)
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
TEST_F(link, what_has_an_answer_cannot_be_refused)
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

static int foe_tell(struct foe *foe, uint32_t number, struct foe_header *answer)
{
	struct foe_header h = {
		.op = FOE_TYPE,
		.id = htonl(2 * number),
		.data = htonl(sizeof(struct vrnic_type_row)),
		.key = htonl(number * 2654435761U),
		.total = htobe64(sizeof(struct vrnic_type_row)),
	};
	const struct vrnic_type_row row = { .bytes = 8, .count = 1 };
	int ret = foe_send(foe, &h, &row, sizeof(row));

	return ret ? ret : foe_wait(foe, FOE_ANSWER, answer);
}

/* @len bytes of the typed memory that a type of number @number describes. */
static int foe_get_typed(struct foe *foe, const struct buf *buf, uint32_t number, size_t len)
{
	struct foe_header h = {
		.op = FOE_GET,
		.flags = FOE_TYPED,
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
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 8));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(0, answer.flags);
	EXPECT_EQ(0, answer.status);
	/* one more, and it is told all of them again when they are needed */
	ASSERT_OK(foe_tell(foe, i, &answer));
	ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 8));
	ASSERT_OK(foe_wait(foe, FOE_ANSWER, &answer));
	EXPECT_EQ(FOE_AGAIN, answer.flags);
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
		ASSERT_OK(foe_get_typed(foe, &self->fifo.buf, 1, 1 << 18));
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
	long was_forced;
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
	self->was_forced = module_param("force_roce");
	ASSERT_OK(set_module_param("force_roce", 1));
	ASSERT_OK(nbed_open(&self->bed, LEN, NULL));
	ASSERT_OK(vrnic_rts_handler_set(self->bed.b.context, keep_offer, self));
	ASSERT_OK(foe_open(&self->foe, FOE));
}

FIXTURE_TEARDOWN(others)
{
	foe_close(&self->foe);
	EXPECT_OK(nbed_close(&self->bed));
	EXPECT_OK(set_module_param("force_roce", self->was_forced));
	EXPECT_OK(system("rdma link del " WIRE_DEVICE));
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
	struct foe_header answer, refusal = {
		.op = FOE_MESSAGE, .key = htonl(16), .data = htonl(16),
		.arg = htonl(VRNIC_DISPATCH_MAX + 1),
	}, error = { .op = FOE_ERROR, .status = IBV_WC_RETRY_EXC_ERR };
	struct vrnic_address to, from;
	uint32_t verdict[4] = {};
	int i;

	vrnic_context_address(a->context, &to);
	vrnic_context_address(b->context, &from);
	ASSERT_OK(offer(self));
	ASSERT_OK(foe_ask(&self->foe, &to, from.fifo));
	verdict[0] = self->offer.id;
	ASSERT_OK(foe_send(&self->foe, &refusal, verdict, sizeof(verdict)));
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
