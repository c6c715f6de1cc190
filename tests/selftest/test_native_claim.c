// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A peer that speaks to the library as libraries do, and claims what is not true. It is a FIFO
 * without a library, so the real peer says all this, and nobody forges it.
 */
#include "native.h"
#include "native_claim.h"
#include "native_raw.h"

#define LEN	(1 << 17)
#define SLOTS	256
#define MINE	(LEN / 2)	/* in the peer's buffer: what no offer names */
#define HANDLER	3
#define SHORT	100		/* bytes of the last piece of a message */

/* What a handler or the receiver of pieces has got. */
struct got {
	int count;
	size_t length[4];
	uint64_t offset[4];
	uint8_t data[LEN];
};

static void note(struct got *got, const void *data, size_t length, uint64_t offset)
{
	int i = got->count++;

	if (i >= ARRAY_SIZE(got->length))
		return;
	got->length[i] = length;
	got->offset[i] = offset;
	if (offset <= LEN && length <= LEN - offset)
		memcpy(got->data + offset, data, length);
}

static void handle(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	note(arg, m->data, m->length, 0);
}

static void take_piece(struct vrnic_context *context, const void *piece, size_t length,
		       uint64_t offset, void *arg)
{
	note(arg, piece, length, offset);
}

FIXTURE(claim)
{
	struct raw_fifo raw;
	struct node b;
	uint32_t to_b, handle;
	struct vrnic_rts offer;
	int offers;
	struct told taken;
	struct got got;
};

static void keep_offer(struct vrnic_context *context, const struct vrnic_rts *rts,
		       const void *header, size_t header_len, void *arg)
{
	FIXTURE_DATA(claim) *self = arg;

	self->offer = *rts;
	self->offers++;
}

FIXTURE_SETUP(claim)
{
	struct vrnic_address address;

	NEED_NATIVE();
	/* as the library's FIFOs: a link's two ends have addresses of one kind */
	ASSERT_OK(setenv("VRNIC_GID", "0", 1));
	ASSERT_OK(raw_open(&self->raw, SLOTS, SLOTS, LEN));
	other_side();
	ASSERT_OK(node_open(&self->b, LEN, NULL));
	other_side();
	vrnic_context_address(self->b.context, &address);
	ASSERT_OK(raw_endpoint(&self->raw, &address, &self->to_b, &self->handle));
	ASSERT_OK(vrnic_dispatch_set(self->b.context, HANDLER, handle, &self->got));
	ASSERT_OK(vrnic_rts_handler_set(self->b.context, keep_offer, self));
	buf_fill(&self->raw.buf, 1);
}

FIXTURE_TEARDOWN(claim)
{
	EXPECT_OK(node_close(&self->b));
	EXPECT_OK(raw_endpoint_destroy(&self->raw, self->handle));
	EXPECT_OK(raw_close(&self->raw));
}

/* b gets to know its peer. */
static int meet(FIXTURE_DATA(claim) *self)
{
	return vrnic_endpoint_create(self->b.context, &self->raw.address, &self->b.to);
}

/* A message whose header is @header, and of which b's FIFO has all when this returns. */
static int say_header(FIXTURE_DATA(claim) *self, uint32_t dispatch, const void *header, size_t len)
{
	const struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE, .flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_SIGNALED,
		.num_slots = 1 + (len + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE,
		.endpoint = self->to_b, .header_len = len, .arg = dispatch,
	};
	struct vrnic_record record;
	int ret;

	ret = raw_post(&self->raw, &d, header, len) ?: raw_take(&self->raw, &record);
	return ret ?: record.kind == VRNIC_REC_COMPLETION ? record.status : -EPROTO;
}

/* A good offer of what is at the start of the peer's buffer, in one portion. */
static struct vrnic_offer good(const FIXTURE_DATA(claim) *self, uint64_t dispatch, uint64_t length)
{
	return (struct vrnic_offer){
		.dispatch = dispatch, .length = length, .id = 77,
		.remote = (uintptr_t)self->raw.buf.addr, .rkey = self->raw.buf.mr->rkey,
	};
}

/* The next record of the peer, while b goes on. */
static int answer(FIXTURE_DATA(claim) *self, struct vrnic_record *record)
{
	struct patience patience = {};
	int ret;

	do {
		ret = vrnic_advance(self->b.context, 16);
		if (ret < 0)
			return ret;
		ret = raw_try(&self->raw, record);
		if (ret == -EAGAIN)
			usleep(100);
	} while (ret == -EAGAIN && still_patient(&patience, 0));
	return ret;
}

/* The record says that b has taken the message, whose number was 77. */
static bool is_taken(const struct vrnic_record *record)
{
	return record->kind == VRNIC_REC_NOTIFY && record->arg == VRNIC_DISPATCH_TAKEN &&
	       (uint32_t)record->cookie == 77 && !record->status;
}

/* A long message of the peer is taken, so what it says is what a library says. */
static int send_good(FIXTURE_DATA(claim) *self, size_t length)
{
	const struct vrnic_offer offer = good(self, HANDLER, length);
	struct vrnic_record record;
	int ret = say_header(self, VRNIC_DISPATCH_LONG, &offer, sizeof(offer));

	ret = ret ?: answer(self, &record);
	return ret ?: is_taken(&record) ? advance_until(self->b.context, &self->got.count, 1) :
					  -EPROTO;
}

/* ---- long messages ---- */

/* A verdict came in @record, for the offer with number 77. Return: its status, or -EPROTO. */
static int refusal(FIXTURE_DATA(claim) *self, const struct vrnic_record *record)
{
	uint32_t at = (self->raw.receive->cons - 1) & (self->raw.receive_entries - 1);
	struct vrnic_verdict verdict;

	/* raw_try() has given the slots back, and nothing has come since */
	memcpy(&verdict, self->raw.receive_slots + (size_t)at * VRNIC_SLOT_SIZE, sizeof(verdict));
	if (record->kind != VRNIC_REC_MESSAGE || record->arg != VRNIC_DISPATCH_REFUSED ||
	    record->header_len != sizeof(verdict) || record->num_slots != 2 || verdict.id != 77)
		return -EPROTO;
	return verdict.status;
}

TEST_F(claim, long_messages_that_cannot_be)
{
	struct vrnic_offer bad[7];
	struct vrnic_record record;
	int i;

	ASSERT_OK(meet(self));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good(self, HANDLER, 5000);
	bad[0].length = 0;
	bad[1].length = VRNIC_SEND_MAX + 1;
	bad[2].length = UINT64_MAX;
	bad[3].remote = UINT64_MAX - 4999;
	bad[4].dispatch = VRNIC_DISPATCH_MAX;
	bad[5].dispatch = UINT64_MAX;
	/* what the library has to compare before it cuts it to 32 bits */
	bad[6].dispatch = 1ULL << 32 | HANDLER;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_OK(say_header(self, VRNIC_DISPATCH_LONG, &bad[i], sizeof(bad[i])));
		ASSERT_OK(answer(self, &record));
		EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, refusal(self, &record))
			TH_LOG("offer %d", i);
	}
	/* one that is too short, or too long, to be an offer, gets no answer: the next one does */
	ASSERT_OK(say_header(self, VRNIC_DISPATCH_LONG, bad, sizeof(bad[0]) - 1));
	ASSERT_OK(say_header(self, VRNIC_DISPATCH_LONG, bad, sizeof(bad[0]) + 1));
	EXPECT_EQ(0, self->got.count);
	ASSERT_OK(send_good(self, 5000));
	EXPECT_EQ(5000, self->got.length[0]);
	EXPECT_OK(memcmp(self->got.data, self->raw.buf.addr, 5000));
}

/* A receiver without an endpoint to the sender drops an offer, and cannot say so. */
TEST_F(claim, long_messages_of_a_stranger)
{
	const struct vrnic_offer offer = good(self, HANDLER, 5000);
	struct vrnic_record record;
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_OK(say_header(self, VRNIC_DISPATCH_LONG, &offer, sizeof(offer)));
		ASSERT_LE(0, vrnic_advance(self->b.context, 16));
	}
	EXPECT_EQ(-EAGAIN, raw_try(&self->raw, &record));
	EXPECT_EQ(0, self->got.count);
	/* the same message, once the sender is no stranger */
	ASSERT_OK(meet(self));
	ASSERT_OK(send_good(self, 5000));
	EXPECT_EQ(1, self->got.count);
}

#define ROUNDS	5000
#define BATCH	4
#define MOST	19000	/* answers that the library and the rings keep: fewer than were asked for */

/* BATCH offers at once, whose completions nobody takes. */
static int say_without_looking(FIXTURE_DATA(claim) *self, const struct vrnic_offer *offer)
{
	const struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE, .flags = VRNIC_NDESC_INLINE,
		.num_slots = 1 + (sizeof(*offer) + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE,
		.endpoint = self->to_b, .header_len = sizeof(*offer), .arg = VRNIC_DISPATCH_LONG,
	};
	int i, ret = 0;

	for (i = 0; i < BATCH; i++)
		raw_fill(&self->raw, &d, offer, sizeof(*offer));
	ret = raw_ring(&self->raw);
	for (i = 0; i < 2 * BATCH && ret >= 0; i++)
		ret = vrnic_advance(self->b.context, BATCH);
	return ret < 0 ? ret : 0;
}

/* Take verdicts until none comes any more. Return: how many, or a negative errno. */
static int take_verdicts(FIXTURE_DATA(claim) *self)
{
	struct vrnic_record record;
	int ret, n = 0, quiet = 0;

	while (quiet < 100) {
		ret = vrnic_advance(self->b.context, 16);
		if (ret < 0)
			return ret;
		ret = raw_try(&self->raw, &record);
		if (ret == -EAGAIN) {
			quiet++;
			usleep(1000);
			continue;
		}
		if (ret || refusal(self, &record) != IBV_WC_REM_INV_REQ_ERR)
			return -EPROTO;
		quiet = 0;
		n++;
	}
	return n;
}

/* Answers for one who takes none are not kept without end; and later ones come. */
TEST_F(claim, offers_of_one_who_takes_no_answer)
{
	const struct vrnic_offer bad = good(self, HANDLER, 0);
	int i, n;

	ASSERT_OK(meet(self));
	for (i = 0; i < ROUNDS; i++)
		ASSERT_OK(say_without_looking(self, &bad));
	n = take_verdicts(self);
	EXPECT_LT(1000, n);
	EXPECT_GT(MOST, n);
	ASSERT_OK(say_without_looking(self, &bad));
	EXPECT_EQ(BATCH, take_verdicts(self));
	ASSERT_OK(send_good(self, 5000));
}

/* ---- pieces ---- */

/* Piece @nr of the first message that b takes, from @at in the peer's buffer. */
static int say_piece(FIXTURE_DATA(claim) *self, uint64_t nr, size_t at, uint32_t length)
{
	const struct vrnic_ndesc d = {
		.opcode = VRNIC_NOP_MESSAGE, .flags = VRNIC_NDESC_SIGNALED, .num_slots = 1,
		.endpoint = self->to_b, .length = length, .arg = VRNIC_DISPATCH_PIECE,
		.local_addr = (uintptr_t)self->raw.buf.addr + at, .lkey = self->raw.buf.mr->lkey,
		/* b's table of transfers is empty, so it takes the first place of it */
		.cookie = piece_cookie(1, 0, nr),
	};
	struct vrnic_record record;
	int ret;

	ret = raw_post(&self->raw, &d, NULL, 0) ?: raw_take(&self->raw, &record);
	return ret ?: record.kind == VRNIC_REC_COMPLETION ? record.status : -EPROTO;
}

/* Offer @length bytes. When b accepts, what was said meanwhile is in its FIFO before them. */
static int offer_pieces(FIXTURE_DATA(claim) *self, uint64_t length)
{
	const struct vrnic_offer offer = good(self, 0, length);

	return say_header(self, VRNIC_DISPATCH_RTS, &offer, sizeof(offer));
}

static int accept_pieces(FIXTURE_DATA(claim) *self)
{
	struct vrnic_context *context = self->b.context;
	struct patience patience = {};
	int ret = 0;

	/* the handler of the offer is the one call: what is behind the offer stays in the FIFO */
	while (!ret && !self->offers && still_patient(&patience, 0))
		ret = vrnic_advance(context, 1);
	if (self->offers != 1)
		return -EPROTO;
	ret = vrnic_accept(self->b.to, &self->offer,
			   ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER, .deliver = take_piece,
				  .deliver_arg = &self->got), DONE(TELL(&self->taken)));
	return ret ?: advance_until(context, &self->taken.count, 1);
}

/*
 * A process does not choose which transfer its messages are for: only descriptors that a peer has
 * injected have a cookie. So b gets both pieces from its own descriptors. If the sender is another
 * host without this rule, tests/unit/unit_lib_pieces.c has what the library does.
 */
TEST_F(claim, pieces_that_the_peer_sends_itself)
{
	const size_t length = VRNIC_MAX_MESSAGE + SHORT;

	ASSERT_OK(meet(self));
	ASSERT_OK(offer_pieces(self, length));
	ASSERT_OK(say_piece(self, 0, MINE, VRNIC_MAX_MESSAGE));
	ASSERT_OK(say_piece(self, 1, MINE, SHORT));
	ASSERT_OK(say_piece(self, 1, MINE, SHORT + 1));
	ASSERT_OK(accept_pieces(self));
	EXPECT_EQ(IBV_WC_SUCCESS, self->taken.status.status);
	ASSERT_EQ(2, self->got.count);
	EXPECT_EQ(VRNIC_MAX_MESSAGE, self->got.length[0]);
	EXPECT_EQ(SHORT, self->got.length[1]);
	EXPECT_OK(memcmp(self->got.data, self->raw.buf.addr, length));
}

TEST_HARNESS_MAIN
