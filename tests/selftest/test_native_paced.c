// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S4: transfers that pace themselves: offered, accepted, and then left alone. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "native.h"
#include "native_trace.h"

#define LEN	(1 << 20)
#define OFFERS	64

/* Offers as the handler keeps them. */
struct offers {
	int count;
	struct vrnic_rts rts[OFFERS];
	uint8_t header[1024];
	size_t header_len;
};

static void keep_offer(struct vrnic_context *context,
		       const struct vrnic_rts *rts, const void *header,
		       size_t header_len, void *arg)
{
	struct offers *o = arg;

	o->rts[o->count % OFFERS] = *rts;
	memcpy(o->header, header, header_len);
	o->header_len = header_len;
	o->count++;
}

FIXTURE(paced)
{
	struct nbed bed;
	struct offers *offers;
	struct told sent, taken;
};

FIXTURE_SETUP(paced)
{
	NEED_NATIVE();
	self->offers = calloc(1, sizeof(*self->offers));
	ASSERT_NE(NULL, self->offers);
	ASSERT_OK(nbed_open(&self->bed, LEN, NULL));
	ASSERT_OK(vrnic_rts_handler_set(self->bed.b.context, keep_offer,
					self->offers));
}

FIXTURE_TEARDOWN(paced)
{
	EXPECT_OK(nbed_close(&self->bed));
	free(self->offers);
}

/* Offer [from, from + len) of a's buffer, and see the offer at b. */
static int offer(FIXTURE_DATA(paced) *self, size_t from, size_t len)
{
	struct node *a = &self->bed.a;
	int n = self->offers->count;
	int ret = vrnic_rts_send(a->to, OFFER(.local = a->buf.addr + from, .mr = a->buf.mr,
					      .length = len, .header = "head", .header_len = 4),
				 DONE(TELL(&self->sent), .remote = a->counter));

	return ret ? ret : nbed_until(&self->bed, &self->offers->count, n + 1);
}

/* Accept the last offer into b's buffer at @to. */
static int take(FIXTURE_DATA(paced) *self, size_t to, uint64_t portion)
{
	struct node *b = &self->bed.b;

	return vrnic_accept(b->to, &self->offers->rts[(self->offers->count - 1) % OFFERS],
			    ACCEPT(.local = b->buf.addr + to, .mr = b->buf.mr,
				   .portion = portion),
			    DONE(TELL(&self->taken), .local = b->counter));
}

/* Both sides are told of the end, with success. */
static int both_told(FIXTURE_DATA(paced) *self, int n)
{
	int ret = nbed_until(&self->bed, &self->taken.count, n);

	if (!ret)
		ret = nbed_until(&self->bed, &self->sent.count, n);
	if (!ret && (self->sent.status.status || self->taken.status.status))
		ret = -EIO;
	return ret;
}

/* Of a later library, or made up. What is refused does not use the offer up. */
TEST_F(paced, offers_that_the_library_does_not_understand)
{
	struct node *b = &self->bed.b;
	struct vrnic_accept_wr wr = { .local = b->buf.addr, .mr = b->buf.mr };
	struct vrnic_rts rts;
	unsigned int i;

	ASSERT_OK(offer(self, 0, 5000));
	for (i = 0; i < 64; i++) {
		rts = self->offers->rts[0];
		EXPECT_EQ(VRNIC_RTS_ROWS, rts.comp_mask);
		rts.comp_mask = 1ULL << i;
		if (rts.comp_mask & ~(uint64_t)(VRNIC_RTS_COUNTER | VRNIC_RTS_ROWS)) {
			EXPECT_EQ(-E2BIG, vrnic_accept(b->to, &rts, &wr, NULL));
			EXPECT_EQ(-E2BIG, vrnic_reject(b->to, &rts));
		}
		wr.comp_mask = 1ULL << i;
		/* the first bit wants deliver, which is not there */
		EXPECT_EQ(i ? -E2BIG : -EINVAL,
			  vrnic_accept(b->to, &self->offers->rts[0], &wr, NULL));
		wr.comp_mask = 0;
		EXPECT_EQ(-E2BIG, vrnic_accept(b->to, &self->offers->rts[0], &wr,
					       DONE(.comp_mask = 1ULL << i)));
	}
	for (i = 0; i < ARRAY_SIZE(rts.reserved); i++) {
		rts = self->offers->rts[0];
		EXPECT_EQ(0, rts.reserved[i]);
		rts.reserved[i] = 1ULL << 63;
		EXPECT_EQ(-EINVAL, vrnic_accept(b->to, &rts, &wr, NULL));
		EXPECT_EQ(-EINVAL, vrnic_reject(b->to, &rts));
	}
	rts = self->offers->rts[0];
	rts.counter = vrnic_counter_number(self->bed.a.open);
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, &rts, &wr, NULL));
	rts = self->offers->rts[0];
	rts.reserved0 = 1;
	EXPECT_EQ(-EINVAL, vrnic_reject(b->to, &rts));
	rts = self->offers->rts[0];
	rts.peer.fifo ^= 1;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, &rts, &wr, NULL));
	rts.peer.fifo ^= 1;
	rts.peer.host ^= 1;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, &rts, &wr, NULL));
	EXPECT_EQ(0, self->sent.count);
	ASSERT_OK(take(self, 0, 0));
	EXPECT_OK(both_told(self, 1));
}

TEST_F(paced, s4_1_offer_says_what_there_is)
{
	struct node *a = &self->bed.a;
	struct vrnic_address source;
	const struct vrnic_rts *rts = &self->offers->rts[0];

	vrnic_context_address(a->context, &source);
	ASSERT_OK(offer(self, 100, 5000));
	EXPECT_EQ(5000, rts->length);
	EXPECT_EQ(source.fifo, rts->peer.fifo);
	EXPECT_EQ((uintptr_t)a->buf.addr + 100, rts->remote);
	EXPECT_EQ(4, self->offers->header_len);
	EXPECT_OK(memcmp(self->offers->header, "head", 4));
	/* nothing moves before the answer */
	usleep(1000);
	EXPECT_EQ(0, self->sent.count);
	EXPECT_EQ(-1, buf_is_not(&self->bed.b.buf, 0, LEN, 0));
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(both_told(self, 1));
}

/* Offer all of a's buffer, with these counters, and see the offer at b. */
static int offer_counted(FIXTURE_DATA(paced) *self, struct vrnic_counter *local,
			 struct vrnic_counter *remote)
{
	struct node *a = &self->bed.a;
	int n = self->offers->count;
	int ret = vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = a->buf.mr,
					      .length = LEN),
				 DONE(TELL(&self->sent), .local = local, .remote = remote));

	return ret ? ret : nbed_until(&self->bed, &self->offers->count, n + 1);
}

/* Peers may name the counters that the program has opened to them; of these the offer has one. */
TEST_F(paced, s4_1_offer_names_the_counter_that_tracks_it)
{
	struct node *a = &self->bed.a;
	struct vrnic_rts *rts = self->offers->rts;
	struct vrnic_counter *other;

	ASSERT_OK(vrnic_counter_create(a->client, VRNIC_COUNTER_PEERS, &other));
	ASSERT_OK(offer_counted(self, NULL, NULL));
	ASSERT_OK(offer_counted(self, a->counter, a->counter));
	ASSERT_OK(offer_counted(self, a->open, a->counter));
	ASSERT_OK(offer_counted(self, a->open, other));
	EXPECT_EQ(VRNIC_RTS_ROWS, rts[0].comp_mask);
	EXPECT_EQ(0, rts[0].counter);
	EXPECT_EQ(VRNIC_RTS_ROWS, rts[1].comp_mask);
	EXPECT_EQ(0, rts[1].counter);
	EXPECT_EQ(VRNIC_RTS_ROWS | VRNIC_RTS_COUNTER, rts[2].comp_mask);
	EXPECT_EQ(vrnic_counter_number(a->open), rts[2].counter);
	EXPECT_EQ(VRNIC_RTS_ROWS | VRNIC_RTS_COUNTER, rts[3].comp_mask);
	EXPECT_EQ(vrnic_counter_number(other), rts[3].counter);
	EXPECT_EQ(LEN, vrnic_counter_read(other));
	EXPECT_OK(vrnic_endpoint_destroy(a->to));
	a->to = NULL;
	EXPECT_OK(vrnic_counter_destroy(other));
}

/* The origin's process does nothing: its counter falls by itself. It falls once. */
TEST_F(paced, s4_1_origins_counter_falls_as_the_message_is_taken)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	int n;

	for (n = 1; n <= 4; n++) {
		ASSERT_OK(offer_counted(self, n & 1 ? a->counter : a->open,
					n & 2 ? NULL : a->open));
		EXPECT_EQ(n & 1 && n & 2 ? 0 : LEN * (n == 4 ? 2 : 1),
			  vrnic_counter_read(a->open));
		ASSERT_OK(take(self, 0, LEN / 16));
		if (n != 3)
			EXPECT_OK(vrnic_counter_wait(a->open, n == 4 ? LEN : 0, WAIT_NS));
		EXPECT_OK(vrnic_counter_wait(b->counter, 0, WAIT_NS));
		EXPECT_EQ(n - 1, self->sent.count);
		ASSERT_OK(both_told(self, n));
		EXPECT_EQ(0, vrnic_counter_read(a->open));
		EXPECT_EQ(0, vrnic_counter_read(a->counter));
		EXPECT_EQ(LEN, self->sent.status.value);
	}
}

/* It falls by the portions that were taken, and tells what became of the others. */
TEST_F(paced, s4_1_origins_counter_tells_how_much_was_taken)
{
	struct node *a = &self->bed.a;

	ASSERT_OK(offer_counted(self, NULL, a->open));
	/* the second half does not fit b's memory */
	ASSERT_OK(take(self, LEN / 2, LEN / 16));
	ASSERT_OK(nbed_until(&self->bed, &self->sent.count, 1));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
	EXPECT_NE(0, self->sent.status.status);
	EXPECT_NE(0, self->taken.status.status);
	EXPECT_EQ(LEN / 2, vrnic_counter_read(a->open));
	EXPECT_EQ(1, vrnic_counter_error(a->open, NULL));
}

/* A target's library that knows no counter of the offer: then the origin's counts at the end. */
TEST_F(paced, s4_1_targets_that_know_no_counter)
{
	struct node *a = &self->bed.a;
	struct vrnic_rts *rts = &self->offers->rts[0];

	ASSERT_OK(offer_counted(self, a->open, a->open));
	rts->comp_mask &= ~(uint64_t)VRNIC_RTS_COUNTER;
	rts->counter = 0;
	ASSERT_OK(take(self, 0, LEN / 16));
	EXPECT_OK(vrnic_counter_wait(self->bed.b.counter, 0, WAIT_NS));
	EXPECT_EQ(2 * LEN, vrnic_counter_read(a->open));
	ASSERT_OK(both_told(self, 1));
	EXPECT_EQ(0, vrnic_counter_read(a->open));
}

/* Nobody's counter falls who did not open it, whatever an offer claims. */
TEST_F(paced, s4_1_offers_that_name_what_is_not_theirs)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	struct vrnic_rts *rts = self->offers->rts;
	const uint32_t forged[] = {
		vrnic_counter_number(a->counter), vrnic_counter_number(b->open), 1, UINT32_MAX,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(forged); i++) {
		ASSERT_OK(offer_counted(self, NULL, a->open));
		rts[i].counter = forged[i];
		ASSERT_OK(take(self, 0, 0));
		ASSERT_OK(nbed_until(&self->bed, &self->taken.count, i + 1));
		ASSERT_OK(nbed_until(&self->bed, &self->sent.count, i + 1));
		EXPECT_EQ(VRNIC_VERR_COUNTER, self->taken.status.vendor_err);
		EXPECT_NE(0, self->sent.status.status);
		EXPECT_EQ(0, vrnic_counter_read(a->counter));
		EXPECT_EQ(0, vrnic_counter_read(b->open));
		vrnic_counter_set(b->counter, 0);
	}
}

/* A row of the origin's table: made by the origin, but for the location of what it sends. */
static bool is_row(const struct vrnic_ndesc *row, uint32_t id, bool located)
{
	struct vrnic_ndesc bare = *row;

	if (!row->length != !located || !row->local_addr != !located || !row->lkey != !located)
		return false;
	bare.length = 0;
	bare.local_addr = 0;
	bare.lkey = 0;
	return !memcmp(&bare, &(struct vrnic_ndesc){
		.opcode = VRNIC_NOP_RGET, .num_slots = 1, .cookie = id,
	}, sizeof(bare));
}

TEST_F(paced, s4_2_target_stores_only_locations)
{
	const struct vrnic_rts *rts = &self->offers->rts[0];
	const struct vrnic_ndesc *row;
	unsigned int k;

	buf_fill(&self->bed.a.buf, 5);
	ASSERT_OK(offer(self, 0, LEN));
	EXPECT_TRUE(rts->comp_mask & VRNIC_RTS_ROWS);
	ASSERT_LE(20, rts->table_rows);
	/* the table is in this process, too */
	row = (const void *)(uintptr_t)rts->table;
	for (k = 0; k < rts->table_rows; k++)
		EXPECT_TRUE(is_row(&row[k], rts->id, false));
	ASSERT_OK(take(self, 0, LEN / 16));
	ASSERT_OK(both_told(self, 1));
	for (k = 0; k < rts->table_rows; k++)
		EXPECT_TRUE(is_row(&row[k], rts->id, k < 15)) TH_LOG("row %u", k);
	EXPECT_TRUE(nbed_arrived(&self->bed, 5, 0, 0, LEN));
}

/* An origin's library that makes no rows: then the target puts whole ones. */
TEST_F(paced, s4_2_origins_that_make_no_rows)
{
	struct vrnic_rts *rts = &self->offers->rts[0];

	buf_fill(&self->bed.a.buf, 6);
	ASSERT_OK(offer(self, 0, LEN));
	rts->comp_mask = 0;
	memset((void *)(uintptr_t)rts->table, 0, rts->table_rows * sizeof(struct vrnic_ndesc));
	ASSERT_OK(take(self, 0, LEN / 16));
	ASSERT_OK(both_told(self, 1));
	EXPECT_TRUE(nbed_arrived(&self->bed, 6, 0, 0, LEN));
}

/* What the engines did: rows that the target's has begun, portions that the origin's has moved. */
struct order {
	uint32_t origin, target;
	unsigned int rows, portions, late;
};

static void note_row(const char *line, struct order *order)
{
	const char *what = strstr(line, "vrnic_native_fetch: fifo=");
	unsigned int fifo, opcode;

	if (!what ||
	    sscanf(what, "vrnic_native_fetch: fifo=%u endpoint=%*u opcode=%x", &fifo, &opcode) != 2)
		return;
	if (fifo == order->target && opcode == VRNIC_NOP_RGET)
		order->rows++;
}

static void note_portion(const char *line, struct order *order)
{
	const char *what = strstr(line, "vrnic_native_execute: fifo=");
	unsigned int fifo, opcode;

	if (!what || !strstr(what, ": done ") ||
	    sscanf(what, "vrnic_native_execute: fifo=%u opcode=%x", &fifo, &opcode) != 2)
		return;
	if (fifo != order->origin || opcode != VRNIC_NOP_PUT)
		return;
	/* the target's own RGET, which sends batch 0, is one of them; the last portion has none */
	order->portions++;
	if (order->rows <= order->portions && order->portions < 4)
		order->late++;
}

static void note_step(const char *line, void *arg)
{
	note_row(line, arg);
	note_portion(line, arg);
}

/* A message in four portions; what the engines did with it is in @order. */
static int trace_message(struct nbed *bed, struct offers *offers, size_t len, struct order *order)
{
	struct told sent = {}, taken = {};
	int ret;

	offers->count = 0;
	ret = vrnic_rts_send(bed->a.to, OFFER(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					      .length = len), DONE(TELL(&sent)));
	if (!ret)
		ret = nbed_until(bed, &offers->count, 1);
	if (!ret)
		ret = trace_begin("vrnic_native_fetch");
	if (!ret)
		ret = trace_begin("vrnic_native_execute");
	if (!ret)
		ret = vrnic_accept(bed->b.to, &offers->rts[0],
				   ACCEPT(.local = bed->b.buf.addr, .mr = bed->b.buf.mr,
					  .portion = len / 4), DONE(TELL(&taken)));
	if (!ret)
		ret = nbed_until(bed, &taken.count, 1);
	if (!ret)
		ret = nbed_until(bed, &sent.count, 1);
	if (!ret)
		ret = trace_read(note_step, order);
	trace_end("vrnic_native_execute");
	trace_end("vrnic_native_fetch");
	return ret;
}

#define TRIES	10

/*
 * Portion k + 1 is asked for while portion k moves. A portion takes several bursts, between which
 * the other engine gets its turn, also on one CPU. But a host that is busy may keep a CPU of this
 * machine away for as long as a portion moves; it does not do so for each message.
 */
TEST(s4_4_the_next_portion_is_asked_for_while_one_moves)
{
	const size_t len = 32 << 20;
	struct offers *offers = calloc(1, sizeof(*offers));
	struct vrnic_address address;
	struct order ends = {}, order;
	struct nbed bed = {};
	int i;

	NEED_NATIVE();
	if (!trace_there())
		SKIP(return, "needs tracefs");
	ASSERT_NE(NULL, offers);
	ASSERT_OK(nbed_open(&bed, len, NULL));
	ASSERT_OK(vrnic_rts_handler_set(bed.b.context, keep_offer, offers));
	vrnic_context_address(bed.a.context, &address);
	ends.origin = address.fifo;
	vrnic_context_address(bed.b.context, &address);
	ends.target = address.fifo;
	for (i = 0; i < TRIES; i++) {
		order = ends;
		ASSERT_OK(trace_message(&bed, offers, len, &order));
		ASSERT_EQ(4, order.portions);
		ASSERT_EQ(4, order.rows);
		if (!order.late)
			break;
	}
	EXPECT_EQ(0, order.late);
	EXPECT_OK(nbed_close(&bed));
	free(offers);
}

/* A counter of a group may track a message, at either side: S4.1 and S4.6 together. */
TEST_F(paced, s4_6_words_tell_that_transfers_are_done)
{
	struct node *node[] = { &self->bed.a, &self->bed.b };
	struct vrnic_counter *c[2], *kept[2];
	struct vrnic_counter_group *group[2];
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_OK(vrnic_counter_group_create(node[i]->client, 0, &group[i]));
		ASSERT_OK(vrnic_counter_create_in(group[i], 17, VRNIC_COUNTER_PEERS, &c[i]));
	}
	kept[1] = node[1]->counter;
	node[1]->counter = c[1];
	ASSERT_OK(offer_counted(self, NULL, c[0]));
	EXPECT_EQ(0, vrnic_counter_group_read(group[0], NULL));
	ASSERT_OK(take(self, 0, LEN / 4));
	for (i = 0; i < 2; i++)
		EXPECT_OK(vrnic_counter_group_wait(group[i], 1 << 17, 0, WAIT_NS, NULL));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(1 << 17, vrnic_counter_group_read(group[i], NULL));
	ASSERT_OK(both_told(self, 1));
	node[1]->counter = kept[1];
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(1 << 17, vrnic_counter_group_read(group[i], NULL));
		EXPECT_OK(vrnic_counter_destroy(c[i]));
		EXPECT_OK(vrnic_counter_group_destroy(group[i]));
	}
}

TEST_F(paced, s4_2_one_answer)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;

	buf_fill(&a->buf, 42);
	ASSERT_OK(offer(self, 0, LEN));
	ASSERT_OK(take(self, 0, 65536));
	/* no call of the library from here to the end, on either side */
	ASSERT_OK(vrnic_counter_wait(b->counter, 0, WAIT_NS));
	EXPECT_TRUE(nbed_arrived(&self->bed, 42, 0, 0, LEN));
	EXPECT_EQ(0, self->sent.count);
	EXPECT_EQ(0, self->taken.count);
	ASSERT_OK(both_told(self, 1));
	EXPECT_EQ(0, vrnic_counter_read(b->counter));
	EXPECT_EQ(0, vrnic_counter_read(a->counter));
}

static const struct cut {
	size_t len, portion;
} cuts[] = {
	{ 1, 0 }, { 1, 1 }, { 7, 1 }, { 64, 8 }, { 4096, 4096 }, { 4097, 4096 },
	{ 65537, 0 }, { 65536, 65535 }, { 100000, 12345 }, { LEN, 0 },
	{ LEN - 1, 65521 }, { LEN, LEN }, { LEN, 1ULL << 40 }, { LEN, UINT64_MAX },
};

TEST_F(paced, s4_5_any_number_of_portions)
{
	struct nbed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cuts); i++) {
		buf_fill(&bed->a.buf, i);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(offer(self, LEN - cuts[i].len, cuts[i].len));
		ASSERT_OK(take(self, 0, cuts[i].portion))
			TH_LOG("%zu by %zu", cuts[i].len, cuts[i].portion);
		ASSERT_OK(both_told(self, i + 1))
			TH_LOG("%zu by %zu", cuts[i].len, cuts[i].portion);
		EXPECT_TRUE(nbed_arrived(bed, i, LEN - cuts[i].len, 0, cuts[i].len))
			TH_LOG("%zu by %zu", cuts[i].len, cuts[i].portion);
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, cuts[i].len,
					 LEN - cuts[i].len, 0));
		EXPECT_EQ(cuts[i].len, self->taken.status.value);
	}
}

/* More portions than the sender's table has rows. */
TEST_F(paced, s4_5_too_many_portions)
{
	ASSERT_OK(offer(self, 0, LEN));
	EXPECT_EQ(-EINVAL, take(self, 0, 1));
	/* which is not the end of the offer */
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(both_told(self, 1));
}

TEST(s4_5_large)
{
	static const size_t portions[] = { 0, 999999, 4 << 20 };
	size_t len = (size_t)scaled(64) * (1 << 20) - 5;
	struct offers *offers = calloc(1, sizeof(*offers));
	struct told sent = {}, taken = {};
	struct nbed bed = {};
	unsigned int i;

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	ASSERT_OK(nbed_open(&bed, len, NULL));
	ASSERT_OK(vrnic_rts_handler_set(bed.b.context, keep_offer, offers));
	for (i = 0; i < ARRAY_SIZE(portions); i++) {
		buf_fill(&bed.a.buf, i);
		ASSERT_OK(vrnic_rts_send(bed.a.to, OFFER(.local = bed.a.buf.addr,
							 .mr = bed.a.buf.mr, .length = len),
					 DONE(TELL(&sent))));
		ASSERT_OK(nbed_until(&bed, &offers->count, i + 1));
		ASSERT_OK(vrnic_accept(bed.b.to, &offers->rts[i], ACCEPT(.local = bed.b.buf.addr,
									 .mr = bed.b.buf.mr,
									 .portion = portions[i]),
				       DONE(TELL(&taken))));
		ASSERT_OK(nbed_until(&bed, &taken.count, i + 1));
		ASSERT_OK(nbed_until(&bed, &sent.count, i + 1));
		EXPECT_EQ(IBV_WC_SUCCESS, sent.status.status);
		EXPECT_EQ(IBV_WC_SUCCESS, taken.status.status);
		EXPECT_TRUE(nbed_arrived(&bed, i, 0, 0, len));
	}
	EXPECT_OK(nbed_close(&bed));
	free(offers);
}

/*
 * Between accept and completion both processes sleep: the origin on its context's
 * file, the target on its counter's. Their processor time is taken before and after
 * this sleep.
 */
struct big {
	size_t len;
};

/* Where processor time is counted in ticks, one may fall into the moment. */
static uint64_t cpu_limit(void)
{
	uint64_t step = cpu_step_ns();

	return step > MSEC_NS ? step : MSEC_NS;
}

static int sleep_on(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, WAIT_SECONDS * 4000) == 1 ? 0 : -ETIMEDOUT;
}

/* Once in vain: what a first call costs is not the transfer's. */
static void warm_up(int fd)
{
	int i;

	for (i = 0; i < 20; i++)
		readable(fd, 1);
}

/* Sends how long it ran, in ns, while the data moved. */
static int big_origin(int fd, const void *arg)
{
	const struct big *big = arg;
	struct told sent = {};
	struct node node = {};
	uint64_t before, ran = 0;
	int ret = node_open(&node, big->len, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	buf_fill(&node.buf, 99);
	if (!ret)
		ret = vrnic_rts_send(node.to, OFFER(.local = node.buf.addr, .mr = node.buf.mr,
						    .length = big->len), DONE(TELL(&sent)));
	if (!ret)
		warm_up(vrnic_context_fd(node.context));
	/* the offer's own record is not what to wait for */
	if (!ret)
		ret = vrnic_fence_wait(node.to, WAIT_NS, NULL);
	if (!ret && vrnic_context_arm(node.context))
		ret = -EBUSY;
	if (!ret)
		ret = say(fd);
	before = cpu_ns();
	if (!ret)
		ret = sleep_on(vrnic_context_fd(node.context));
	ran = cpu_ns() - before;
	if (!ret)
		ret = advance_until(node.context, &sent.count, 1);
	if (!ret && sent.status.status)
		ret = -EIO;
	if (write(fd, &ran, sizeof(ran)) != sizeof(ran))
		ret = -EPIPE;
	if (!ret)
		ret = hear(fd) == -EPIPE ? 0 : -EPROTO;
	return ret ? ret : node_close(&node);
}

/* One transfer; the CPU time of both processes while it went on, in ns. */
static void watch_big(struct __test_metadata *_metadata, const struct big *big,
		      uint64_t *mine, uint64_t *its)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct told taken = {};
	struct node node = {};
	uint64_t before, start;
	struct peer peer;
	int ret;

	ASSERT_NE(NULL, offers);
	ASSERT_OK(peer_start(&peer, big_origin, big));
	ASSERT_OK(node_open(&node, big->len, NULL));
	ASSERT_OK(vrnic_rts_handler_set(node.context, keep_offer, offers));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(advance_until(node.context, &offers->count, 1));
	vrnic_counter_set(node.counter, 1);
	warm_up(vrnic_counter_fd(node.counter));
	vrnic_counter_set(node.counter, 0);
	ASSERT_OK(hear(peer.fd));
	usleep(100000);	/* until the origin sleeps */
	start = now_ns();
	ret = vrnic_accept(node.to, &offers->rts[0], ACCEPT(.local = node.buf.addr,
							    .mr = node.buf.mr),
			   DONE(TELL(&taken), .local = node.counter));
	before = cpu_ns();
	ASSERT_OK(ret);
	ASSERT_OK(sleep_on(vrnic_counter_fd(node.counter)));
	*mine = cpu_ns() - before;
	start = now_ns() - start;
	EXPECT_EQ(0, vrnic_counter_read(node.counter));
	ASSERT_EQ(sizeof(*its), read(peer.fd, its, sizeof(*its)));
	TH_LOG("%zu MiB in %llu us; target ran %llu us, origin %llu us",
	       big->len >> 20, (unsigned long long)start / 1000,
	       (unsigned long long)*mine / 1000, (unsigned long long)*its / 1000);
	EXPECT_EQ(-1, buf_differs(&node.buf, 0, big->len, 99, 0));
	ASSERT_OK(advance_until(node.context, &taken.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, taken.status.status);
	EXPECT_OK(peer_end(&peer));
	EXPECT_OK(node_close(&node));
	free(offers);
}

/*
 * A process that ran would do so each time. A virtual CPU that stands still while
 * the process is on it, because its host has other work, is charged to the process:
 * not each time.
 */
TEST(s4_4_neither_process_runs)
{
	struct big big = { (size_t)scaled(256) << 20 };
	uint64_t mine = ~0ULL, its = ~0ULL, limit;
	int i;

	NEED_NATIVE();
	limit = cpu_limit();
	for (i = 0; i < 5 && (mine > limit || its > limit); i++)
		watch_big(_metadata, &big, &mine, &its);
	EXPECT_LE(mine, limit);
	EXPECT_LE(its, limit);
}

/* At the target a counter, at the origin a record in its reception FIFO. */
TEST_F(paced, s4_6_endings)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;

	ASSERT_OK(offer(self, 0, LEN));
	/* the offer's own record may come later than the offer: it is not the end */
	ASSERT_OK(vrnic_fence_wait(a->to, WAIT_NS, NULL));
	ASSERT_EQ(0, vrnic_context_arm(a->context));
	EXPECT_FALSE(readable(vrnic_context_fd(a->context), 0));
	ASSERT_OK(take(self, 0, 100000));
	EXPECT_TRUE(readable(vrnic_counter_fd(b->counter), WAIT_SECONDS * 1000));
	EXPECT_EQ(0, vrnic_counter_read(b->counter));
	EXPECT_TRUE(readable(vrnic_context_fd(a->context), WAIT_SECONDS * 1000));
	EXPECT_EQ(0, self->sent.count);
	ASSERT_OK(advance_until(a->context, &self->sent.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, self->sent.status.status);
	EXPECT_EQ(0, vrnic_counter_read(a->counter));
	ASSERT_OK(both_told(self, 1));
}

TEST_F(paced, reject)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_OK(offer(self, 0, LEN));
		ASSERT_OK(vrnic_reject(b->to, &self->offers->rts[i % OFFERS]));
		ASSERT_OK(nbed_until(&self->bed, &self->sent.count, i + 1));
		ASSERT_EQ(IBV_WC_REM_OP_ERR, self->sent.status.status);
	}
	EXPECT_EQ(-1, buf_is_not(&b->buf, 0, LEN, 0));
	vrnic_counter_set(a->counter, 0);
	ASSERT_OK(offer(self, 0, LEN));
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(nbed_until(&self->bed, &self->sent.count, i + 1));
	EXPECT_EQ(IBV_WC_SUCCESS, self->sent.status.status);
}

/* What is offered must be readable, what it goes to writable, by the peer. */
TEST_F(paced, rights)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	struct ibv_mr *mr;
	int ret;

	mr = ibv_reg_mr(vrnic_client_pd(a->client), a->buf.addr, LEN,
			IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	ret = vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = mr, .length = LEN),
			     DONE(TELL(&self->sent)));
	if (!ret) {
		ASSERT_OK(nbed_until(&self->bed, &self->offers->count, 1));
		ASSERT_OK(take(self, 0, 0));
		ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
		EXPECT_NE(IBV_WC_SUCCESS, self->taken.status.status);
		EXPECT_EQ(-1, buf_is_not(&b->buf, 0, LEN, 0));
		vrnic_counter_set(b->counter, 0);
	}
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* The offered memory is gone when it is fetched: both sides hear of it. */
TEST_F(paced, offered_memory_is_deregistered)
{
	struct node *a = &self->bed.a, *b = &self->bed.b;
	struct ibv_mr *mr;
	struct buf buf;

	ASSERT_OK(buf_open(&buf, vrnic_client_pd(a->client), LEN, 0,
			   ACCESS_REMOTE));
	mr = buf.mr;
	ASSERT_OK(vrnic_rts_send(a->to, OFFER(.local = buf.addr, .mr = mr, .length = LEN),
				 DONE(TELL(&self->sent))));
	ASSERT_OK(nbed_until(&self->bed, &self->offers->count, 1));
	buf_close(&buf);
	ASSERT_OK(take(self, 0, 65536));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 1));
	EXPECT_NE(IBV_WC_SUCCESS, self->taken.status.status);
	EXPECT_EQ(-EIO, counter_done(b->counter));
	vrnic_counter_set(b->counter, 0);
	/* and the next transfer works */
	ASSERT_OK(offer(self, 0, LEN));
	ASSERT_OK(take(self, 0, 65536));
	ASSERT_OK(nbed_until(&self->bed, &self->taken.count, 2));
	EXPECT_EQ(IBV_WC_SUCCESS, self->taken.status.status);
}

/* An answer that is not to an offer, or to a changed one. */
TEST_F(paced, forged_answers)
{
	struct node *b = &self->bed.b;
	struct vrnic_rts rts;
	struct rng rng = { 44 };
	/* who, how much, where; what the library does not know has a test of its own */
	const size_t at = offsetof(struct vrnic_rts, peer);
	uint64_t words[(offsetof(struct vrnic_rts, reserved) - offsetof(struct vrnic_rts, peer)) /
		       8];
	int i, n = 0, ret;

	ASSERT_OK(offer(self, 0, LEN));
	for (i = 0; i < 300; i++) {
		rts = self->offers->rts[0];
		memcpy(words, (uint8_t *)&rts + at, sizeof(words));
		words[rng_below(&rng, ARRAY_SIZE(words))] ^= rng_next(&rng);
		memcpy((uint8_t *)&rts + at, words, sizeof(words));
		if (rts.length > LEN)
			rts.length = LEN;
		ret = vrnic_accept(b->to, &rts, ACCEPT(.local = b->buf.addr, .mr = b->buf.mr),
				   DONE(TELL(&self->taken), .flags = VRNIC_QUEUE));
		ASSERT_LE(ret, 0);
		if (!ret && nbed_until(&self->bed, &self->taken.count, ++n))
			TH_LOG("%d: no answer to length %llu id %u rows %u", i,
			       (unsigned long long)rts.length, rts.id,
			       rts.table_rows);
	}
	EXPECT_EQ(n, self->taken.count);
}

/* Many at once, of all sizes, in both directions, accepted by the handler. */
struct busy {
	struct node *node;
	struct vrnic_endpoint *back;
	uint32_t taken_bytes;
	size_t at[OFFERS];
	int accepted, failed;
	struct told taken;
};

static void accept_at_once(struct vrnic_context *context,
			   const struct vrnic_rts *rts, const void *header,
			   size_t header_len, void *arg)
{
	struct busy *b = arg;
	struct vrnic_accept_wr wr = { .mr = b->node->buf.mr };
	uint32_t at;

	memcpy(&at, header, sizeof(at));
	b->failed += header_len != sizeof(at);
	b->accepted++;
	wr.local = b->node->buf.addr + at;
	wr.portion = at & 1 ? 1000 + rts->length / 7 : 0;
	b->failed += !!vrnic_accept(b->back, rts, &wr,
				    DONE(TELL(&b->taken), .flags = VRNIC_QUEUE));
}

static int offer_all(struct busy *b, struct buf *src, struct told *sent,
		     uint64_t seed)
{
	struct rng rng = { seed };
	uint32_t at = 0, i;
	size_t len;
	int ret = 0;

	for (i = 0; i < OFFERS && !ret; i++) {
		len = 1 + rng_below(&rng, LEN / OFFERS - 1);
		ret = vrnic_rts_send(b->back, OFFER(.local = src->addr + at, .mr = src->mr,
						    .length = len, .header = &at,
						    .header_len = sizeof(at)),
				     DONE(TELL(sent), .flags = VRNIC_QUEUE));
		at += len;
	}
	return ret;
}

TEST(many_at_once_both_ways)
{
	struct busy a = {}, b = {};
	struct told sent_a = {}, sent_b = {};
	struct buf src_a, src_b;
	struct nbed bed = {};
	int round;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, LEN, CONTEXT(.inject_slots = 64,
					       .receive_slots = 256)));
	ASSERT_OK(buf_open(&src_a, vrnic_client_pd(bed.a.client), LEN, 0, ACCESS_REMOTE));
	ASSERT_OK(buf_open(&src_b, vrnic_client_pd(bed.b.client), LEN, 0, ACCESS_REMOTE));
	a.node = &bed.a;
	b.node = &bed.b;
	a.back = bed.a.to;
	b.back = bed.b.to;
	ASSERT_OK(vrnic_rts_handler_set(bed.a.context, accept_at_once, &a));
	ASSERT_OK(vrnic_rts_handler_set(bed.b.context, accept_at_once, &b));
	for (round = 1; round <= scaled(30); round++) {
		buf_fill(&src_a, 2 * round);
		buf_fill(&src_b, 2 * round + 1);
		ASSERT_OK(offer_all(&a, &src_a, &sent_a, round));
		ASSERT_OK(offer_all(&b, &src_b, &sent_b, round));
		ASSERT_OK(nbed_until(&bed, &a.taken.count, round * OFFERS));
		ASSERT_OK(nbed_until(&bed, &b.taken.count, round * OFFERS));
		ASSERT_OK(nbed_until(&bed, &sent_a.count, round * OFFERS));
		ASSERT_OK(nbed_until(&bed, &sent_b.count, round * OFFERS));
		EXPECT_EQ(-1, buf_differs(&bed.b.buf, 0, LEN / 4, 2 * round, 0));
		EXPECT_EQ(-1, buf_differs(&bed.a.buf, 0, LEN / 4, 2 * round + 1, 0));
		EXPECT_EQ(0, a.failed + b.failed);
	}
	buf_close(&src_a);
	buf_close(&src_b);
	EXPECT_OK(nbed_close(&bed));
}

/* The origin dies while its data is being fetched: the target is told. */
static int offers_and_waits(int fd, const void *arg)
{
	const struct big *big = arg;
	struct told sent = {};
	struct node node = {};
	int ret = node_open(&node, big->len, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	if (!ret)
		ret = vrnic_rts_send(node.to, OFFER(.local = node.buf.addr, .mr = node.buf.mr,
						    .length = big->len), DONE(TELL(&sent)));
	for (;;)
		pause();
	return ret;
}

TEST(origin_is_killed)
{
	struct big big = { 64 << 20 };
	struct offers *offers = calloc(1, sizeof(*offers));
	struct told taken = {};
	struct node node = {};
	struct peer peer;
	int i, failed = 0;

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	for (i = 0; i < 10; i++) {
		ASSERT_OK(peer_start(&peer, offers_and_waits, &big));
		if (!i)
			ASSERT_OK(node_open(&node, big.len, NULL));
		ASSERT_OK(vrnic_rts_handler_set(node.context, keep_offer, offers));
		ASSERT_OK(node_meet(&node, peer.fd));
		ASSERT_OK(advance_until(node.context, &offers->count, i + 1));
		ASSERT_OK(vrnic_accept(node.to, &offers->rts[i], ACCEPT(.local = node.buf.addr,
									.mr = node.buf.mr,
									.portion = 1 << 18),
				       DONE(TELL(&taken))));
		usleep(i * 200);
		ASSERT_OK(peer_kill(&peer));
		ASSERT_OK(advance_until(node.context, &taken.count, i + 1));
		failed += !!taken.status.status;
		ASSERT_OK(vrnic_endpoint_destroy(node.to));
		node.to = NULL;
	}
	TH_LOG("%d of %d were cut off", failed, i);
	EXPECT_OK(node_close(&node));
	free(offers);
}

/* The target dies with an offer that it did not answer: the origin is told. */
static int answers_nothing(int fd, const void *arg)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct node node = {};
	int ret = offers ? node_open(&node, LEN, NULL) : -ENOMEM;

	if (!ret)
		ret = vrnic_rts_handler_set(node.context, keep_offer, offers);
	if (!ret)
		ret = node_meet(&node, fd);
	if (!ret && *(const int *)arg)
		ret = advance_until(node.context, &offers->count, 3);
	if (!ret)
		ret = say(fd);
	for (;;)
		pause();
	return ret;
}

/* A thread that sleeps on a counter in the kernel, and nothing else. */
struct sleeper {
	struct vrnic_counter *counter;
	pthread_t thread;
	int done;
	int ret;
};

struct group_sleeper {
	struct vrnic_counter_group *group;
	pthread_t thread;
	uint64_t done;
	int ret;
};

static void *sleep_forever(void *arg)
{
	struct sleeper *s = arg;

	s->ret = vrnic_counter_wait(s->counter, 0, UINT64_MAX);
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int sleeper_start(struct sleeper *s, struct vrnic_counter *counter)
{
	*s = (struct sleeper){ .counter = counter };
	if (pthread_create(&s->thread, NULL, sleep_forever, s))
		return -EAGAIN;
	usleep(100000);	/* until it sleeps */
	return 0;
}

/* The sleeper's result; -ETIMEDOUT: it still sleeps, and the end of its counter wakes it. */
static int sleeper_end(struct sleeper *s)
{
	uint64_t end = now_ns() + WAIT_NS;
	int done;

	do {
		usleep(1000);
		done = __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
	} while (!done && now_ns() < end);
	if (!done)
		vrnic_counter_destroy(s->counter);
	pthread_join(s->thread, NULL);
	return done ? s->ret : -ETIMEDOUT;
}

/* The target sleeps on its counter and does not advance; its peer dies. */
TEST(a_sleeper_hears_that_the_origin_died)
{
	struct big big = { LEN };
	struct offers *offers = calloc(1, sizeof(*offers));
	struct sleeper sleeper;
	struct node node = {};
	struct peer peer;

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	ASSERT_OK(peer_start(&peer, offers_and_waits, &big));
	ASSERT_OK(node_open(&node, big.len, NULL));
	ASSERT_OK(vrnic_rts_handler_set(node.context, keep_offer, offers));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(advance_until(node.context, &offers->count, 1));
	/* however much comes, one byte more is waited for */
	vrnic_counter_add(node.counter, 1);
	ASSERT_OK(vrnic_accept(node.to, &offers->rts[0], ACCEPT(.local = node.buf.addr,
								.mr = node.buf.mr),
			       DONE(.local = node.counter)));
	ASSERT_OK(sleeper_start(&sleeper, node.counter));
	ASSERT_OK(peer_kill(&peer));
	ASSERT_EQ(-EIO, sleeper_end(&sleeper));
	EXPECT_OK(node_close(&node));
	free(offers);
}

static void *sleep_on_group(void *arg)
{
	struct group_sleeper *s = arg;

	s->ret = vrnic_counter_group_wait(s->group, 3, 0, WAIT_NS, &s->done);
	return NULL;
}

/* The same for a group, one of whose counters goes on. */
TEST(s4_6_a_group_hears_that_the_origin_died)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct big big = { LEN };
	struct group_sleeper s = {};
	struct vrnic_counter *c[2];
	struct node node = {};
	struct peer peer;
	uint64_t failed;
	uint32_t i;

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	ASSERT_OK(peer_start(&peer, offers_and_waits, &big));
	ASSERT_OK(node_open(&node, big.len, NULL));
	ASSERT_OK(vrnic_counter_group_create(node.client, 0, &s.group));
	for (i = 0; i < 2; i++) {
		ASSERT_OK(vrnic_counter_create_in(s.group, i, 0, &c[i]));
		vrnic_counter_add(c[i], 1);
	}
	ASSERT_OK(vrnic_rts_handler_set(node.context, keep_offer, offers));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(advance_until(node.context, &offers->count, 1));
	ASSERT_OK(vrnic_accept(node.to, &offers->rts[0], ACCEPT(.local = node.buf.addr,
								.mr = node.buf.mr),
			       DONE(.local = c[1])));
	ASSERT_OK(pthread_create(&s.thread, NULL, sleep_on_group, &s));
	usleep(100000);	/* until it sleeps */
	ASSERT_OK(peer_kill(&peer));
	ASSERT_OK(pthread_join(s.thread, NULL));
	EXPECT_EQ(-EIO, s.ret);
	EXPECT_EQ(2, s.done);
	EXPECT_EQ(2, vrnic_counter_group_read(s.group, &failed));
	EXPECT_EQ(2, failed);
	for (i = 0; i < 2; i++)
		EXPECT_OK(vrnic_counter_destroy(c[i]));
	EXPECT_OK(vrnic_counter_group_destroy(s.group));
	EXPECT_OK(node_close(&node));
	free(offers);
}

/* The other way round: the origin sleeps, and the target is destroyed. */
TEST(a_sleeper_hears_that_the_target_died)
{
	struct sleeper sleeper;
	struct nbed bed = {};

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, LEN, NULL));
	ASSERT_OK(vrnic_rts_send(bed.a.to, OFFER(.local = bed.a.buf.addr, .mr = bed.a.buf.mr,
						 .length = LEN), DONE(.remote = bed.a.counter)));
	ASSERT_OK(sleeper_start(&sleeper, bed.a.counter));
	ASSERT_OK(node_close(&bed.b));
	ASSERT_EQ(-EIO, sleeper_end(&sleeper));
	EXPECT_OK(node_close(&bed.a));
}

/*
 * A transfer whose counter was destroyed ends; the kernel has given the counter's handle to
 * the next one, for whose transfer somebody sleeps.
 */
TEST(a_sleeper_hears_it_with_a_handle_that_was_given_out_again)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct vrnic_counter *first, *second;
	struct sleeper sleeper;
	struct told sent = {};
	struct nbed bed = {};

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	ASSERT_OK(nbed_open(&bed, LEN, NULL));
	ASSERT_OK(vrnic_rts_handler_set(bed.b.context, keep_offer, offers));
	ASSERT_OK(vrnic_counter_create(bed.a.client, 0, &first));
	ASSERT_OK(vrnic_rts_send(bed.a.to, OFFER(.local = bed.a.buf.addr, .mr = bed.a.buf.mr,
						 .length = LEN),
				 DONE(TELL(&sent), .remote = first)));
	ASSERT_OK(vrnic_counter_destroy(first));
	ASSERT_OK(vrnic_counter_create(bed.a.client, 0, &second));
	ASSERT_OK(vrnic_rts_send(bed.a.to, OFFER(.local = bed.a.buf.addr, .mr = bed.a.buf.mr,
						 .length = LEN), DONE(.remote = second)));
	ASSERT_OK(advance_until(bed.b.context, &offers->count, 2));
	ASSERT_OK(vrnic_reject(bed.b.to, &offers->rts[0]));
	ASSERT_OK(nbed_until(&bed, &sent.count, 1));
	EXPECT_EQ(LEN, vrnic_counter_read(second));
	EXPECT_EQ(0, vrnic_counter_error(second, NULL));
	ASSERT_OK(sleeper_start(&sleeper, second));
	ASSERT_OK(node_close(&bed.b));
	ASSERT_EQ(-EIO, sleeper_end(&sleeper));
	EXPECT_OK(vrnic_counter_destroy(second));
	EXPECT_OK(node_close(&bed.a));
	free(offers);
}

/*
 * The thread went to sleep before the counter was used for a transfer. The library, in another
 * thread, takes the end of the transfer off the counter.
 */
TEST_F(paced, a_sleeper_sees_the_last_subtraction)
{
	struct node *a = &self->bed.a;
	struct sleeper sleeper;
	int ret;

	vrnic_counter_add(a->counter, 1);
	ASSERT_OK(sleeper_start(&sleeper, a->counter));
	ASSERT_OK(offer(self, 0, LEN));
	/* wakes nobody: LEN bytes are left */
	vrnic_counter_add(a->counter, (uint64_t)-1);
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(both_told(self, 1));
	EXPECT_EQ(0, vrnic_counter_read(a->counter));
	ret = sleeper_end(&sleeper);
	if (ret == -ETIMEDOUT)
		a->counter = NULL;
	ASSERT_OK(ret);
}

TEST(target_dies_without_an_answer)
{
	struct told sent = {};
	struct node node = {};
	struct peer peer;
	int i, j;

	NEED_NATIVE();
	for (i = 0; i < 6; i++) {
		int sees_them = i & 1;

		ASSERT_OK(peer_start(&peer, answers_nothing, &sees_them));
		if (!i)
			ASSERT_OK(node_open(&node, LEN, NULL));
		ASSERT_OK(node_meet(&node, peer.fd));
		for (j = 0; j < 3; j++)
			ASSERT_OK(vrnic_rts_send(node.to, OFFER(.local = node.buf.addr,
								.mr = node.buf.mr, .length = LEN),
						 DONE(TELL(&sent), .remote = node.counter)));
		ASSERT_OK(hear(peer.fd));
		EXPECT_EQ(3 * i, sent.count);
		ASSERT_OK(peer_kill(&peer));
		ASSERT_OK(advance_until(node.context, &sent.count, 3 * i + 3));
		EXPECT_NE(IBV_WC_SUCCESS, sent.status.status);
		EXPECT_EQ(3, vrnic_counter_error(node.counter, NULL));
		vrnic_counter_set(node.counter, 0);
		ASSERT_OK(vrnic_endpoint_destroy(node.to));
		node.to = NULL;
	}
	EXPECT_OK(node_close(&node));
}

/* The target dies after it accepted: the origin is told. */
static int accepts_and_waits(int fd, const void *arg)
{
	const struct big *big = arg;
	struct offers offers = {};
	struct told taken = {};
	struct node node = {};
	int ret = node_open(&node, big->len, NULL);

	if (!ret)
		ret = vrnic_rts_handler_set(node.context, keep_offer, &offers);
	if (!ret)
		ret = node_meet(&node, fd);
	if (!ret)
		ret = advance_until(node.context, &offers.count, 1);
	if (!ret)
		ret = vrnic_accept(node.to, &offers.rts[0], ACCEPT(.local = node.buf.addr,
								   .mr = node.buf.mr,
								   .portion = 1 << 18),
				   DONE(TELL(&taken)));
	if (!ret)
		ret = say(fd);
	for (;;)
		pause();
	return ret;
}

TEST(target_is_killed)
{
	struct big big = { 64 << 20 };
	struct told sent = {};
	struct node node = {};
	struct peer peer;
	int i, failed = 0;

	NEED_NATIVE();
	for (i = 0; i < 10; i++) {
		ASSERT_OK(peer_start(&peer, accepts_and_waits, &big));
		if (!i)
			ASSERT_OK(node_open(&node, big.len, NULL));
		ASSERT_OK(node_meet(&node, peer.fd));
		ASSERT_OK(vrnic_rts_send(node.to, OFFER(.local = node.buf.addr, .mr = node.buf.mr,
							.length = big.len), DONE(TELL(&sent))));
		ASSERT_OK(hear(peer.fd));
		usleep(i * 200);
		ASSERT_OK(peer_kill(&peer));
		ASSERT_OK(advance_until(node.context, &sent.count, i + 1));
		failed += !!sent.status.status;
		ASSERT_OK(vrnic_endpoint_destroy(node.to));
		node.to = NULL;
	}
	TH_LOG("%d of %d were cut off", failed, i);
	EXPECT_OK(node_close(&node));
}

/* Contexts go while transfers are under way: no callback, no touch of the memory. */
TEST(contexts_are_closed_under_way)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct told sent = {}, taken = {};
	struct nbed bed;
	int i;

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	for (i = 0; i < 20; i++) {
		memset(&bed, 0, sizeof(bed));
		memset(offers, 0, sizeof(*offers));
		ASSERT_OK(nbed_open(&bed, 8 << 20, NULL));
		ASSERT_OK(vrnic_rts_handler_set(bed.b.context, keep_offer, offers));
		ASSERT_OK(vrnic_rts_send(bed.a.to, OFFER(.local = bed.a.buf.addr,
							 .mr = bed.a.buf.mr, .length = 8 << 20),
					 DONE(TELL(&sent))));
		ASSERT_OK(nbed_until(&bed, &offers->count, 1));
		ASSERT_OK(vrnic_accept(bed.b.to, &offers->rts[0], ACCEPT(.local = bed.b.buf.addr,
									 .mr = bed.b.buf.mr),
				       DONE(TELL(&taken))));
		EXPECT_OK(node_close(i & 1 ? &bed.a : &bed.b));
		EXPECT_OK(node_close(i & 1 ? &bed.b : &bed.a));
		EXPECT_EQ(0, sent.count + taken.count);
	}
	free(offers);
}

/* A thread that advances the origin, and hears of ends, while another breaks it. */
struct advancer {
	struct vrnic_context *context;
	pthread_t thread;
	bool stop;
	int error;
};

static void *advance_on(void *arg)
{
	struct advancer *a = arg;
	int ret = 0;

	while (ret >= 0 && !__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
		ret = vrnic_advance(a->context, 10);
		sched_yield();
	}
	a->error = ret < 0 ? ret : 0;
	return NULL;
}

/* All is there; the origin's endpoint goes as it hears of it, or just before. */
static int move_and_break(struct nbed *bed, struct offers *offers, struct told *sent)
{
	struct node *a = &bed->a, *b = &bed->b;
	struct node_info info = node_info(b);
	int n = offers->count, ret;

	ret = vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = a->buf.mr, .length = 4096),
			     DONE(TELL(sent), .local = a->counter));
	if (!ret)
		ret = advance_until(b->context, &offers->count, n + 1);
	if (!ret)
		ret = vrnic_accept(b->to, &offers->rts[n % OFFERS], ACCEPT(.local = b->buf.addr,
									   .mr = b->buf.mr),
				   DONE(.local = b->counter));
	if (!ret)
		ret = counter_done(b->counter);
	if (!ret)
		ret = vrnic_endpoint_destroy(a->to);
	if (!ret)
		ret = node_join(a, &info);
	vrnic_counter_set(a->counter, 0);
	return ret;
}

TEST(endpoints_go_while_their_transfers_end)
{
	struct offers *offers = calloc(1, sizeof(*offers));
	struct advancer advancer = {};
	struct told sent = {};
	struct nbed bed = {};
	int i, told, rounds = scaled(500);

	NEED_NATIVE();
	ASSERT_NE(NULL, offers);
	ASSERT_OK(nbed_open(&bed, 4096, CONTEXT(.flags = VRNIC_CONTEXT_SHARED)));
	ASSERT_OK(vrnic_rts_handler_set(bed.b.context, keep_offer, offers));
	advancer.context = bed.a.context;
	ASSERT_OK(pthread_create(&advancer.thread, NULL, advance_on, &advancer));
	for (i = 0; i < rounds; i++)
		ASSERT_OK(move_and_break(&bed, offers, &sent)) TH_LOG("round %d", i);
	/* the callbacks of other threads have returned, and no more come */
	ASSERT_EQ(0, vrnic_advance(bed.a.context, 0));
	told = __atomic_load_n(&sent.count, __ATOMIC_RELAXED);
	EXPECT_LE(told, rounds);
	__atomic_store_n(&advancer.stop, true, __ATOMIC_RELAXED);
	ASSERT_OK(pthread_join(advancer.thread, NULL));
	EXPECT_OK(advancer.error);
	EXPECT_EQ(told, sent.count);
	EXPECT_OK(nbed_close(&bed));
	free(offers);
}

/* A message without data is still offered, answered, and over. */
TEST_F(paced, zero_bytes)
{
	ASSERT_OK(offer(self, 0, 0));
	EXPECT_EQ(0, self->offers->rts[0].length);
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(both_told(self, 1));
	EXPECT_EQ(0, self->taken.status.value);
	EXPECT_EQ(-1, buf_is_not(&self->bed.b.buf, 0, LEN, 0));
}

TEST_F(paced, refuses_what_makes_no_sense)
{
	struct node *a = &self->bed.a;
	static uint8_t header[1025];

	EXPECT_EQ(-EMSGSIZE, vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = a->buf.mr,
							 .length = 8, .header = header,
							 .header_len = 1025), NULL));
	ASSERT_OK(vrnic_rts_send(a->to, OFFER(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
					      .header = header, .header_len = 1024), NULL));
	ASSERT_OK(nbed_until(&self->bed, &self->offers->count, 1));
	EXPECT_EQ(1024, self->offers->header_len);
}

/* ---- S4.5: portions that are memory-FIFO transfers ---- */

#define PIECE	VRNIC_MAX_MESSAGE

/* What came of a message, piece by piece; the endpoint is destroyed when @most have come. */
struct pieces {
	uint8_t *to;
	uint64_t next;
	int calls, bad, most;
	struct vrnic_endpoint **ep;
};

static void collect(struct vrnic_context *context, const void *piece, size_t length,
		    uint64_t offset, void *arg)
{
	struct pieces *p = arg;

	if (offset != p->next || length > PIECE || offset + length > LEN) {
		p->bad++;
		return;
	}
	memcpy(p->to + offset, piece, length);
	p->next += length;
	if (++p->calls == p->most) {
		vrnic_endpoint_destroy(*p->ep);
		*p->ep = NULL;
	}
}

static int take_pieces(FIXTURE_DATA(paced) *self, struct pieces *p, uint64_t portion)
{
	struct node *b = &self->bed.b;

	return vrnic_accept(b->to, &self->offers->rts[(self->offers->count - 1) % OFFERS],
			    ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER, .portion = portion,
				   .deliver = collect, .deliver_arg = p),
			    DONE(TELL(&self->taken), .local = b->counter));
}

TEST_F(paced, s4_5_portions_through_the_reception_fifo)
{
	static const size_t lens[] = { 0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE, 14 * PIECE,
				       14 * PIECE + 1, 100000, LEN };
	static const uint64_t portions[] = { 0, 10000, PIECE, PIECE + 1, 14 * PIECE };
	static uint8_t there[LEN];
	struct nbed *bed = &self->bed;
	struct pieces p;
	unsigned int i, j;
	int n = 0;

	buf_fill(&bed->a.buf, 7);
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		for (j = 0; j < ARRAY_SIZE(portions); j++) {
			memset(there, 0, LEN);
			p = (struct pieces){ .to = there };
			ASSERT_OK(offer(self, 0, lens[i]));
			ASSERT_OK(take_pieces(self, &p, portions[j]));
			EXPECT_EQ(lens[i], vrnic_counter_read(bed->b.counter));
			ASSERT_OK(both_told(self, ++n));
			EXPECT_EQ(0, p.bad);
			EXPECT_EQ(lens[i], p.next);
			EXPECT_OK(memcmp(there, bed->a.buf.addr, lens[i]));
			EXPECT_EQ(lens[i], self->taken.status.value);
			EXPECT_EQ(0, vrnic_counter_read(bed->b.counter));
			EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
		}
	/* the engine has put nothing into memory */
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, LEN, 0));
}

/* The target's process sets the pace: the engines of both sides wait for it alone. */
TEST_F(paced, s4_5_a_full_fifo_stops_the_origin)
{
	static uint8_t there[LEN];
	struct nbed *bed = &self->bed;
	struct pieces p = { .to = there };
	long long stalls = statistic("reception_stalls");
	struct patience patience = {};

	buf_fill(&bed->a.buf, 8);
	ASSERT_OK(offer(self, 0, LEN));
	ASSERT_OK(take_pieces(self, &p, 0));
	while (statistic("reception_stalls") == stalls && still_patient(&patience, 0))
		;
	EXPECT_LT(stalls, statistic("reception_stalls"));
	EXPECT_EQ(0, p.calls);
	EXPECT_EQ(0, self->sent.count);
	/* a's own operations go on */
	ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					  .length = 8, .remote = bed->a.peer.addr,
					  .rkey = bed->a.peer.rkey), NULL));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	ASSERT_OK(both_told(self, 1));
	EXPECT_EQ(0, p.bad);
	EXPECT_EQ(LEN, p.next);
	EXPECT_OK(memcmp(there, bed->a.buf.addr, LEN));
}

/* Two messages share the target's FIFO, whose process pauses: each goes on where it was. */
TEST_F(paced, s4_5_two_through_a_full_fifo)
{
	static uint8_t there[2][LEN];
	struct nbed *bed = &self->bed;
	struct pieces p[2] = { { .to = there[0] }, { .to = there[1] } };
	long long stalls = statistic("reception_stalls");
	struct patience patience = {};
	int i;

	buf_fill(&bed->a.buf, 8);
	for (i = 0; i < 2; i++)
		ASSERT_OK(offer(self, i * LEN / 4, LEN / 2));
	for (i = 0; i < 2; i++)
		ASSERT_OK(vrnic_accept(bed->b.to, &self->offers->rts[i],
				       ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER, .deliver = collect,
					      .deliver_arg = &p[i]),
				       DONE(TELL(&self->taken))));
	while (statistic("reception_stalls") == stalls && still_patient(&patience, 0))
		;
	EXPECT_LT(stalls, statistic("reception_stalls"));
	/* a few at a time, and a pause again */
	for (i = 0; i < 20; i++) {
		ASSERT_LE(0, vrnic_advance(bed->b.context, 3));
		usleep(2000);
	}
	ASSERT_OK(both_told(self, 2));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, p[i].bad);
		EXPECT_EQ(LEN / 2, p[i].next);
		EXPECT_OK(memcmp(there[i], bed->a.buf.addr + i * LEN / 4, LEN / 2));
	}
}

/* An offer whose memory is not what it says: both are told, and their counters fail. */
TEST_F(paced, s4_5_pieces_that_fail)
{
	static uint8_t there[LEN];
	struct nbed *bed = &self->bed;
	struct pieces p = { .to = there };

	ASSERT_OK(offer(self, LEN / 2, LEN / 2));
	self->offers->rts[0].length = LEN;
	ASSERT_OK(take_pieces(self, &p, 0));
	ASSERT_OK(nbed_until(bed, &self->taken.count, 1));
	ASSERT_OK(nbed_until(bed, &self->sent.count, 1));
	EXPECT_NE(0, self->taken.status.status);
	EXPECT_NE(0, self->sent.status.status);
	EXPECT_EQ(1, vrnic_counter_error(bed->b.counter, NULL));
	EXPECT_EQ(1, vrnic_counter_error(bed->a.counter, NULL));
	EXPECT_EQ(0, p.bad);
	EXPECT_GE(LEN / 2, p.next);
}

/* The next transfer, begun as soon as the one that failed has ended. */
struct after {
	FIXTURE_DATA(paced) *self;
	struct pieces *p;
	int ret;
};

static void take_next(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct after *after = arg;
	struct node *b = &after->self->bed.b;

	after->ret = vrnic_accept(b->to, &after->self->offers->rts[1],
				  ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER, .deliver = collect,
					 .deliver_arg = after->p),
				  DONE(TELL(&after->self->taken)));
}

/* What a failed transfer has left to the engines disturbs no other one. */
TEST_F(paced, s4_5_behind_pieces_that_fail)
{
	static uint8_t there[LEN], unused[LEN];
	struct nbed *bed = &self->bed;
	struct pieces lost = { .to = unused }, p = { .to = there };
	struct after after = { self, &p, -EINVAL };
	struct node *a = &bed->a;
	size_t at;

	buf_fill(&a->buf, 9);
	for (at = LEN / 8; at <= LEN; at += LEN / 8) {
		self->offers->count = 0;
		self->sent.count = 0;
		self->taken.count = 0;
		p = (struct pieces){ .to = there };
		lost = (struct pieces){ .to = unused };
		memset(there, 0, LEN);
		/* the first message ends sooner than the offer says */
		ASSERT_OK(offer(self, LEN - at, at));
		ASSERT_OK(offer(self, 0, LEN));
		self->offers->rts[0].length = LEN + 1;
		ASSERT_OK(vrnic_accept(bed->b.to, &self->offers->rts[0],
				       ACCEPT(.comp_mask = VRNIC_ACCEPT_DELIVER,
					      .deliver = collect, .deliver_arg = &lost),
				       DONE(.callback = take_next, .arg = &after)));
		ASSERT_OK(nbed_until(bed, &self->taken.count, 1));
		ASSERT_OK(nbed_until(bed, &self->sent.count, 2));
		EXPECT_OK(after.ret);
		EXPECT_EQ(IBV_WC_SUCCESS, self->taken.status.status);
		EXPECT_EQ(0, p.bad + lost.bad);
		EXPECT_EQ(LEN, p.next);
		EXPECT_OK(memcmp(there, a->buf.addr, LEN));
		vrnic_counter_set(a->counter, 0);
	}
}

/* The endpoint goes while pieces come: no more of them is delivered, and nobody is told. */
TEST_F(paced, s4_5_the_endpoint_goes)
{
	static uint8_t there[LEN];
	struct nbed *bed = &self->bed;
	struct pieces p = { .to = there, .most = 3, .ep = &bed->b.to };
	struct patience patience = {};

	ASSERT_OK(offer(self, 0, LEN));
	ASSERT_OK(take_pieces(self, &p, 0));
	while (bed->b.to && still_patient(&patience, p.calls))
		ASSERT_LE(0, vrnic_advance(bed->b.context, 1));
	ASSERT_EQ(NULL, bed->b.to);
	ASSERT_LE(0, vrnic_advance(bed->b.context, 1000));
	EXPECT_EQ(3, p.calls);
	EXPECT_EQ(0, self->taken.count);
	EXPECT_EQ(1, vrnic_counter_error(bed->b.counter, NULL));
}

TEST_F(paced, s4_5_what_makes_no_sense)
{
	struct node *b = &self->bed.b;
	struct vrnic_accept_wr wr = { .comp_mask = VRNIC_ACCEPT_DELIVER, .deliver = collect };
	const struct vrnic_rts *rts = &self->offers->rts[0];

	ASSERT_OK(offer(self, 0, LEN));
	wr.portion = 14 * PIECE + 1;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, rts, &wr, NULL));
	wr.portion = 100;	/* more portions than the table has rows for */
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, rts, &wr, NULL));
	wr.portion = 0;
	wr.mr = b->buf.mr;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, rts, &wr, NULL));
	wr.mr = NULL;
	wr.local = b->buf.addr;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, rts, &wr, NULL));
	wr.local = NULL;
	wr.deliver = NULL;
	EXPECT_EQ(-EINVAL, vrnic_accept(b->to, rts, &wr, NULL));
	ASSERT_OK(take(self, 0, 0));
	ASSERT_OK(both_told(self, 1));
}

TEST_HARNESS_MAIN
