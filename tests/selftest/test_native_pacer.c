// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * S4: when a target asks several other hosts for their next portions. Those hosts are
 * native_foe.c's: each sends a remote get, as the table of a transfer does, that makes the target
 * ask for a portion. Then it sends what it pleases.
 */
#include <arpa/inet.h>

#include "native.h"
#include "native_asking.h"

#define SLOTS		256
#define LEN		(1 << 16)
#define HOSTS		3
#define WINDOW		(256 << 10)	/* bytes of the first window */
#define LARGE		(1 << 20)	/* more than that */
#define SMALL		(1 << 16)	/* two of them may be on their way */
#define PIECE		900		/* fits into a packet */
#define DROP		4		/* the least that makes a packet without a pad */
#define TRIES		10

FIXTURE(pacer)
{
	struct raw_fifo fifo;
	struct foe foe[HOSTS];
	long long waits, late;
};

static long long waits_since(const FIXTURE_DATA(pacer) *self)
{
	return statistic("native_paced_waits") - self->waits;
}

static long long late_since(const FIXTURE_DATA(pacer) *self)
{
	return statistic("native_paced_late") - self->late;
}

static void look(FIXTURE_DATA(pacer) *self)
{
	self->waits = statistic("native_paced_waits");
	self->late = statistic("native_paced_late");
}

FIXTURE_SETUP(pacer)
{
	int i;

	NEED_NATIVE();
	ASSERT_OK(foe_set_up(&self->fifo, SLOTS, LEN, &self->foe[0]));
	for (i = 1; i < HOSTS; i++)
		ASSERT_OK(foe_open(&self->foe[i], FOE + i));
	for (i = 0; i < HOSTS; i++)
		ASSERT_OK(foe_ask(&self->foe[i], &self->fifo.address, 77 + i));
	look(self);
}

/* The kernel's log says so if portions are left on their way, or turns. */
FIXTURE_TEARDOWN(pacer)
{
	int i;

	for (i = 1; i < HOSTS; i++)
		foe_close(&self->foe[i]);
	EXPECT_OK(foe_tear_down(&self->fifo, &self->foe[0]));
}

/*
 * The host has the target's engine ask it for a portion of @bytes: it sends a remote get of a batch
 * that lies in the target's memory.
 */
static int want(FIXTURE_DATA(pacer) *self, int host, uint64_t bytes)
{
	struct buf *buf = &self->fifo.buf;
	struct vrnic_ndesc *batch = (struct vrnic_ndesc *)buf->addr + host;
	const struct vrnic_ndesc row = {
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .lkey = buf->mr->rkey,
		.local_addr = (uintptr_t)batch, .length = sizeof(*batch),
	};
	struct foe_header h = {
		.op = FOE_RGET, .id = htonl(2), .data = htonl(sizeof(row)),
		.total = htobe64(sizeof(row)),
	};

	*batch = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = bytes,
	};
	return foe_send(&self->foe[host], &h, &row, sizeof(row)) ?:
	       foe_wait(&self->foe[host], FOE_ANSWER, &h);
}

/* The host is asked for a portion, and takes the request, or (FOE_AGAIN) has no room for it. */
static int answer(FIXTURE_DATA(pacer) *self, int host, uint8_t flags)
{
	struct foe_header h;
	int ret = foe_wait(&self->foe[host], FOE_RGET, &h);

	h = (struct foe_header){ .op = FOE_ANSWER, .flags = flags, .id = h.id };
	return ret ?: foe_send(&self->foe[host], &h, NULL, 0);
}

static int asked(FIXTURE_DATA(pacer) *self, int host)
{
	return answer(self, host, 0);
}

/* The same, if it comes within @ms. */
static bool is_asked(FIXTURE_DATA(pacer) *self, int host, int ms)
{
	struct foe *foe = &self->foe[host];
	struct foe_packet packet;
	struct foe_header h;

	while (!foe_hear(foe, &packet, ms)) {
		if (packet.opcode >> 5 != 6 || packet.psn != foe->heard)
			continue;
		foe->heard = (foe->heard + 1) & 0xffffff;
		foe_acknowledge(foe, packet.psn, FOE_ACK);
		if (packet.header.op != FOE_RGET)
			continue;
		h = (struct foe_header){ .op = FOE_ANSWER, .id = packet.header.id };
		return !foe_send(foe, &h, NULL, 0);
	}
	return false;
}

/* A turn waits. */
static int until_waits(FIXTURE_DATA(pacer) *self, long long n)
{
	struct patience p = {};

	while (waits_since(self) < n) {
		if (!still_patient(&p, 0))
			return -ETIMEDOUT;
		usleep(100);
	}
	return 0;
}

static int send_piece(FIXTURE_DATA(pacer) *self, int host, uint32_t bytes, uint32_t key)
{
	static const uint8_t data[PIECE];
	struct foe_header h = {
		.op = FOE_PUT, .data = htonl(bytes), .key = htonl(key),
		.addr = htobe64((uintptr_t)self->fifo.buf.addr + LEN / 2),
		.total = htobe64(bytes),
	};

	return foe_send(&self->foe[host], &h, data, bytes);
}

/* The host sends so many bytes. */
static int land(FIXTURE_DATA(pacer) *self, int host, uint32_t bytes)
{
	struct foe_packet packet;
	uint32_t n;
	int ret;

	for (; bytes; bytes -= n) {
		n = bytes < PIECE ? bytes : PIECE;
		ret = send_piece(self, host, n, self->fifo.buf.mr->rkey);
		if (!ret && foe_wait_ack(&self->foe[host], &packet) != FOE_ACK)
			ret = -EIO;
		if (ret)
			return ret;
	}
	return 0;
}

/* The host says that it could not do something that was injected there. */
static int fail(FIXTURE_DATA(pacer) *self, int host)
{
	struct foe_header h = {
		.op = FOE_ERROR, .id = htonl(3), .status = IBV_WC_REM_ACCESS_ERR,
		.arg = htonl(VRNIC_NOP_PUT),
	};

	return foe_send(&self->foe[host], &h, NULL, 0) ?:
	       foe_wait(&self->foe[host], FOE_ANSWER, &h);
}

TEST_F(pacer, s4_4_a_peer_alone_does_not_wait)
{
	int i;

	ASSERT_OK(want(self, 0, 64 * LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, 64 * LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(fail(self, 0));
	for (i = 0; i < 20; i++) {
		ASSERT_OK(want(self, 0, SMALL));
		ASSERT_OK(asked(self, 0));
		ASSERT_OK(land(self, 0, SMALL));
	}
	EXPECT_EQ(0, waits_since(self));
	EXPECT_EQ(0, late_since(self));
}

/* One moves, and one is asked for meanwhile. */
TEST_F(pacer, s4_4_two_portions_of_a_peer_are_on_their_way)
{
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	EXPECT_EQ(0, waits_since(self));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(until_waits(self, 1));
	/* nearly one has landed, and then one has */
	ASSERT_OK(land(self, 0, SMALL - PIECE));
	EXPECT_FALSE(is_asked(self, 0, 20));
	ASSERT_OK(land(self, 0, PIECE));
	ASSERT_OK(asked(self, 0));
}

/* Another peer waits until what is on its way fits the window again; here before that is late. */
TEST_F(pacer, s4_7_peers_share_a_window)
{
	bool early;
	int i;

	for (i = 0; i < TRIES; i++) {
		look(self);
		ASSERT_OK(want(self, 0, WINDOW + PIECE));
		ASSERT_OK(asked(self, 0));
		ASSERT_OK(want(self, 1, SMALL));
		ASSERT_OK(until_waits(self, 1));
		ASSERT_OK(land(self, 0, PIECE));
		early = is_asked(self, 1, 0);
		EXPECT_FALSE(early && !late_since(self));
		ASSERT_OK(land(self, 0, DROP));
		if (!early)
			ASSERT_OK(asked(self, 1));
		ASSERT_OK(fail(self, 0));
		ASSERT_OK(fail(self, 1));
		if (!late_since(self))
			break;
	}
	EXPECT_LT(i, TRIES);
}

/* Who has got less is next, though it asked later. */
TEST_F(pacer, s4_7_the_next_is_who_has_got_least)
{
	bool early;
	int i;

	/* the second has got something, and may not have it counted as its own late portion */
	ASSERT_OK(want(self, 1, 4 * LARGE));
	ASSERT_OK(asked(self, 1));
	ASSERT_OK(fail(self, 1));
	for (i = 0; i < TRIES; i++) {
		look(self);
		ASSERT_OK(want(self, 0, LARGE));
		ASSERT_OK(asked(self, 0));
		ASSERT_OK(want(self, 1, SMALL));
		ASSERT_OK(until_waits(self, 1));
		ASSERT_OK(want(self, 2, LARGE));
		ASSERT_OK(until_waits(self, 2));
		ASSERT_OK(fail(self, 0));
		ASSERT_OK(asked(self, 2));
		early = is_asked(self, 1, 0);
		EXPECT_FALSE(early && !late_since(self));
		ASSERT_OK(fail(self, 2));
		if (!early)
			ASSERT_OK(asked(self, 1));
		ASSERT_OK(fail(self, 1));
		if (!late_since(self))
			break;
	}
	EXPECT_LT(i, TRIES);
}

/* It was asked, and sends nothing: the others do not wait for it for ever. */
TEST_F(pacer, s4_7_a_silent_peer_holds_up_nobody)
{
	uint64_t begin = now_ns();
	bool early;

	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 1, SMALL));
	ASSERT_OK(asked(self, 1));
	EXPECT_EQ(1, waits_since(self));
	EXPECT_EQ(1, late_since(self));
	/* it gets no third portion, and the other one gets all that it wants */
	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(until_waits(self, 2));
	ASSERT_OK(land(self, 1, SMALL));
	ASSERT_OK(want(self, 1, LARGE));
	ASSERT_OK(asked(self, 1));
	ASSERT_OK(want(self, 1, LARGE));
	ASSERT_OK(asked(self, 1));
	EXPECT_LE(2, waits_since(self));
	/* in the end, after four seconds, it may try again */
	early = is_asked(self, 0, 0);
	EXPECT_FALSE(early && now_ns() - begin < 4000 * MSEC_NS);
	if (!early)
		EXPECT_OK(asked(self, 0));
}

/* A few bytes now and then are no sign that the portion will land. */
TEST_F(pacer, s4_7_a_peer_that_trickles_holds_up_nobody)
{
	struct patience p = {};

	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 1, SMALL));
	ASSERT_OK(until_waits(self, 1));
	while (!is_asked(self, 1, 5)) {
		ASSERT_OK(land(self, 0, DROP));
		ASSERT_TRUE(still_patient(&p, 0));
	}
	EXPECT_EQ(1, late_since(self));
}

/* What the peer could not do, or was refused, is not waited for. */
TEST_F(pacer, s4_7_failures_end_the_wait)
{
	uint64_t begin = now_ns();
	struct foe_packet packet;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_OK(want(self, 0, SMALL));
		ASSERT_OK(asked(self, 0));
	}
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(until_waits(self, 1));
	ASSERT_OK(fail(self, 0));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(until_waits(self, 2));
	ASSERT_OK(send_piece(self, 0, PIECE, 1));
	EXPECT_EQ(FOE_FAILED, foe_wait_ack(&self->foe[0], &packet));
	ASSERT_OK(foe_skip(&self->foe[0]));
	ASSERT_OK(asked(self, 0));
	/* if this process was as slow as that, a portion was late */
	if (now_ns() - begin < 100 * MSEC_NS)
		EXPECT_EQ(0, late_since(self));
}

/* But not for ever: who fails all the time is asked no sooner than who is late. */
TEST_F(pacer, s4_7_failures_are_no_way_to_be_asked_again)
{
	uint64_t begin = now_ns();
	bool early;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_OK(want(self, 0, SMALL));
		ASSERT_OK(asked(self, 0));
		ASSERT_OK(fail(self, 0));
	}
	ASSERT_OK(want(self, 0, SMALL));
	early = is_asked(self, 0, 50);
	EXPECT_FALSE(early && now_ns() - begin < 3000000000);
	/* in the end it may try again */
	if (!early)
		EXPECT_OK(asked(self, 0));
}

/* It has no room for what asks it, time after time: that is one portion. */
TEST_F(pacer, s4_4_a_portion_that_is_asked_for_again_counts_once)
{
	int i;

	ASSERT_OK(want(self, 0, SMALL));
	for (i = 0; i < 4; i++)
		ASSERT_OK(answer(self, 0, FOE_AGAIN));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	EXPECT_EQ(0, waits_since(self));
	/* nor is it on its way after it has landed */
	ASSERT_OK(land(self, 0, 2 * SMALL));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, SMALL));
	ASSERT_OK(asked(self, 0));
	EXPECT_EQ(0, waits_since(self));
}

/* The process changes what the peer is to do, while that waits: it is no portion any more. */
TEST_F(pacer, s4_7_what_waits_may_change)
{
	struct vrnic_ndesc *batch = (struct vrnic_ndesc *)self->fifo.buf.addr;
	int i;

	for (i = 0; i < 4; i++) {
		look(self);
		ASSERT_OK(want(self, 0, LARGE));
		ASSERT_OK(asked(self, 0));
		ASSERT_OK(want(self, 1, LARGE));
		ASSERT_OK(until_waits(self, 1));
		batch[1].opcode = i & 1 ? VRNIC_NOP_NOTIFY : VRNIC_NOP_PUT;
		batch[1].length = i & 2 ? UINT64_MAX : 0;
		ASSERT_OK(fail(self, 0));
		ASSERT_OK(asked(self, 1));
		ASSERT_OK(want(self, 1, SMALL));
		ASSERT_OK(asked(self, 1));
		ASSERT_OK(fail(self, 1));
	}
}

/* Links end with portions on their way, and with a turn that waits. */
TEST_F(pacer, s4_7_who_is_gone_leaves_nothing)
{
	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(asked(self, 0));
	ASSERT_OK(want(self, 0, LARGE));
	ASSERT_OK(until_waits(self, 1));
	ASSERT_OK(want(self, 1, SMALL));
	self->foe[0].asked.nonce = htobe64(self->foe[0].nonce);
	self->foe[0].asked.qpn = htonl(self->foe[0].peer_qpn);
	ASSERT_OK(foe_say_bye(&self->foe[0]));
	ASSERT_OK(asked(self, 1));
	ASSERT_OK(land(self, 1, SMALL));
	ASSERT_OK(want(self, 1, LARGE));
	ASSERT_OK(asked(self, 1));
	ASSERT_OK(want(self, 2, SMALL));
	ASSERT_OK(asked(self, 2));
}

TEST_HARNESS_MAIN
