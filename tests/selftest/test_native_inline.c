// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S2: message data in the slots that follow the descriptor. */
#include "native.h"
#include "native_raw.h"

#define SLOTS	64
#define LEN	8192
#define FITS	((SLOTS - 1) * VRNIC_SLOT_SIZE)

NBED(inline_put, LEN, .inject_slots = SLOTS);

static int put_inline(struct nbed *bed, const void *data, size_t len, size_t to,
		      const struct vrnic_done *done)
{
	return vrnic_put_inline(bed->a.to, WR(.local = (void *)data, .length = len,
					      .remote = bed->a.peer.addr + to,
					      .rkey = bed->a.peer.rkey), done);
}

/* One descriptor of @len bytes in a ring of its own. */
static struct vrnic_ndesc inline_desc(const struct raw_pair *pair, size_t len)
{
	return (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT,
		.flags = VRNIC_NDESC_INLINE | VRNIC_NDESC_SIGNALED,
		.num_slots = 1 + (len + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE,
		.endpoint = pair->a_to_b,
		.length = len,
		.cookie = len,
		.remote_addr = (uintptr_t)pair->b.buf.addr,
		.rkey = pair->b.buf.mr->rkey,
	};
}

FIXTURE(raw_inline)
{
	struct raw_pair pair;
	uint8_t data[LEN];
};

FIXTURE_SETUP(raw_inline)
{
	size_t i;

	NEED_NATIVE();
	ASSERT_OK(raw_pair_open(&self->pair, SLOTS, 256, LEN));
	for (i = 0; i < LEN; i++)
		self->data[i] = i * 7 + (i >> 8);
}

FIXTURE_TEARDOWN(raw_inline)
{
	EXPECT_OK(raw_pair_close(&self->pair));
}

/* The producer's tail and the engine's head, as the memory shows them. */
TEST_F(raw_inline, s2_1_slots_with_head_and_tail)
{
	struct raw_fifo *a = &self->pair.a;
	struct vrnic_ndesc d = inline_desc(&self->pair, 8);
	struct vrnic_record record;

	EXPECT_EQ(SLOTS, a->inject_entries);
	EXPECT_EQ(0, a->inject->prod);
	EXPECT_EQ(0, a->inject->cons);
	raw_fill(a, &d, self->data, 8);
	EXPECT_EQ(0, a->inject->cons);
	ASSERT_OK(raw_ring(a));
	ASSERT_OK(raw_take(a, &record));
	EXPECT_EQ(2, a->inject->prod);
	EXPECT_EQ(2, a->inject->cons);
	EXPECT_EQ(VRNIC_REC_COMPLETION, record.kind);
	EXPECT_EQ(8, record.cookie);
	EXPECT_EQ(IBV_WC_SUCCESS, record.status);
}

TEST_F(raw_inline, s2_2_data_in_the_slots_that_follow)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	size_t len;

	for (len = 1; len <= FITS; len += len < 200 ? 1 : 61) {
		memset(pair->b.buf.addr, 0, LEN);
		d = inline_desc(pair, len);
		ASSERT_OK(raw_post(&pair->a, &d, self->data, len));
		ASSERT_OK(raw_take(&pair->a, &record));
		ASSERT_EQ(IBV_WC_SUCCESS, record.status);
		ASSERT_EQ(len, record.value);
		ASSERT_OK(memcmp(pair->b.buf.addr, self->data, len));
		ASSERT_EQ(-1, buf_is_not(&pair->b.buf, len, LEN - len, 0));
	}
}

/* The same descriptor, which says that its data lies @at bytes behind its start. */
static struct vrnic_ndesc placed_desc(const struct raw_pair *pair, size_t len, uint64_t at)
{
	struct vrnic_ndesc d = inline_desc(pair, len);

	d.flags |= VRNIC_NDESC_PLACED;
	d.local_addr = at;
	d.num_slots = (at + len + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE;
	return d;
}

/* Post a descriptor with @data where it says; all other bytes of its slots are 0xee. */
static int post_placed(struct raw_fifo *from, const struct vrnic_ndesc *d, const uint8_t *data)
{
	uint8_t slots[SLOTS * VRNIC_SLOT_SIZE];
	size_t behind = (d->num_slots - 1) * VRNIC_SLOT_SIZE;

	memset(slots, 0xee, behind);
	memcpy(slots + d->local_addr - VRNIC_SLOT_SIZE, data, d->length);
	return raw_post(from, d, slots, behind);
}

TEST_F(raw_inline, s2_2_module_says_that_it_reads_the_place)
{
	uint32_t features = 0;

	ASSERT_OK(raw_features(self->pair.a.dev.ctx, &features));
	EXPECT_TRUE(features & VRNIC_FEATURE_PLACED);
	/* the provider is told the same, and by another way */
	EXPECT_TRUE(features & VRNIC_FEATURE_SQ_DONE);
}

/* Data from any byte of the slots on, and around the end of the ring. */
TEST_F(raw_inline, s2_2_descriptor_records_the_datas_place)
{
	static const size_t lens[] = { 0, 1, 63, 64, 65, 127, 500, 1000 };
	struct raw_pair *pair = &self->pair;
	uint32_t wraps = 0, prod;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;
	uint64_t at;

	for (at = VRNIC_SLOT_SIZE; at < 900; at += at < 130 ? 3 : 37) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			memset(pair->b.buf.addr, 0, LEN);
			d = placed_desc(pair, lens[i], at);
			prod = pair->a.inject->prod;
			ASSERT_OK(post_placed(&pair->a, &d, self->data));
			ASSERT_OK(raw_take(&pair->a, &record));
			ASSERT_EQ(IBV_WC_SUCCESS, record.status)
				TH_LOG("%zu bytes at %lu", lens[i], (unsigned long)at);
			ASSERT_EQ(lens[i], record.value);
			ASSERT_OK(memcmp(pair->b.buf.addr, self->data, lens[i]));
			ASSERT_EQ(-1, buf_is_not(&pair->b.buf, lens[i], LEN - lens[i], 0));
			ASSERT_EQ(prod + d.num_slots, pair->a.inject->cons);
			wraps += prod % SLOTS + d.num_slots > SLOTS;
		}
	}
	EXPECT_GT(wraps, 20);
}

/* Header and data of the message that came last: its slots are given back, but still there. */
static const uint8_t *last_message(const struct raw_fifo *fifo, const struct vrnic_record *record)
{
	uint32_t slot = (fifo->receive->cons - record->num_slots + 1) & (fifo->receive_entries - 1);

	return fifo->receive_slots + (size_t)slot * VRNIC_SLOT_SIZE;
}

/* The header follows the descriptor; the data may lie further behind. */
TEST_F(raw_inline, s2_2_message_records_the_datas_place)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record, done;
	const uint8_t *message;
	uint8_t slots[1024];
	struct vrnic_ndesc d;
	uint32_t header, gap;

	for (header = 0; header < 200; header += 23) {
		for (gap = 0; gap < 200; gap += 17) {
			d = placed_desc(pair, 300, VRNIC_SLOT_SIZE + header + gap);
			d.opcode = VRNIC_NOP_MESSAGE;
			d.header_len = header;
			d.arg = gap;
			memset(slots, 0xee, sizeof(slots));
			memcpy(slots, self->data, header);
			memcpy(slots + header + gap, self->data + header, 300);
			ASSERT_OK(raw_post(&pair->a, &d, slots, header + gap + 300));
			ASSERT_OK(raw_take(&pair->b, &record));
			ASSERT_EQ(VRNIC_REC_MESSAGE, record.kind);
			ASSERT_EQ(header, record.header_len);
			ASSERT_EQ(300, record.length);
			ASSERT_EQ(gap, record.arg);
			message = last_message(&pair->b, &record);
			ASSERT_OK(memcmp(message, self->data, header + 300))
				TH_LOG("header of %u, gap of %u", header, gap);
			ASSERT_OK(raw_take(&pair->a, &done));
			ASSERT_EQ(IBV_WC_SUCCESS, done.status);
		}
	}
}

/* Outside of the descriptor's slots: refused, and the ring goes on with the next descriptor. */
TEST_F(raw_inline, s2_2_places_that_cannot_be)
{
	static const uint64_t places[] = {
		0, 1, 63, 165, 192, 193, 256, 4096, 1ULL << 16, 1ULL << 32, (1ULL << 32) + 64,
		1ULL << 63, (1ULL << 63) + 64, -100, -64, -1,
	};
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		memset(pair->b.buf.addr, 0, LEN);
		d = placed_desc(pair, 100, 64);
		d.local_addr = places[i];
		ASSERT_OK(raw_post(&pair->a, &d, self->data, 100));
		ASSERT_OK(raw_take(&pair->a, &record));
		EXPECT_NE(IBV_WC_SUCCESS, record.status)
			TH_LOG("%llx", (unsigned long long)places[i]);
		EXPECT_EQ(VRNIC_VERR_BOUNDS, record.vendor_err)
			TH_LOG("%llx", (unsigned long long)places[i]);
		EXPECT_EQ(-1, buf_is_not(&pair->b.buf, 0, LEN, 0));
		d = placed_desc(pair, 100, 64);
		ASSERT_OK(post_placed(&pair->a, &d, self->data));
		ASSERT_OK(raw_take(&pair->a, &record));
		ASSERT_EQ(IBV_WC_SUCCESS, record.status);
		ASSERT_OK(memcmp(pair->b.buf.addr, self->data, 100));
	}
}

/* Libraries from before the flag wrote no place; what is there without the flag says nothing. */
TEST_F(raw_inline, s2_2_without_the_flag_there_is_no_place)
{
	static const uint64_t places[] = { 0, 1, 64, 100, 1ULL << 40, -1 };
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		memset(pair->b.buf.addr, 0, LEN);
		d = inline_desc(pair, 100);
		d.local_addr = places[i];
		ASSERT_OK(raw_post(&pair->a, &d, self->data, 100));
		ASSERT_OK(raw_take(&pair->a, &record));
		ASSERT_EQ(IBV_WC_SUCCESS, record.status);
		ASSERT_OK(memcmp(pair->b.buf.addr, self->data, 100));
	}
}

/* The recorded number moves the head past descriptor and data together. */
TEST_F(raw_inline, s2_3_number_of_slots_moves_the_head)
{
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	uint32_t prod = 0;
	size_t len;

	for (len = 1; len < 2000; len += 17) {
		d = inline_desc(pair, len);
		prod += d.num_slots;
		ASSERT_OK(raw_post(&pair->a, &d, self->data, len));
		ASSERT_OK(raw_take(&pair->a, &record));
		ASSERT_EQ(prod, pair->a.inject->prod);
		ASSERT_EQ(prod, pair->a.inject->cons);
	}
}

/* A number of slots that does not fit the contents is refused. */
TEST_F(raw_inline, s2_3_wrong_number_of_slots)
{
	static const int off[] = { -2, -1, 1, 2, 30 };
	struct raw_pair *pair = &self->pair;
	struct vrnic_record record;
	struct vrnic_ndesc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		d = inline_desc(pair, 100);
		d.num_slots += off[i];
		ASSERT_OK(raw_reopen(pair));
		d.endpoint = pair->a_to_b;
		ASSERT_OK(raw_post(&pair->a, &d, self->data, 100));
		if (raw_take(&pair->a, &record))
			continue;	/* the FIFO is in error, as its owner sees */
		EXPECT_NE(IBV_WC_SUCCESS, record.status);
		EXPECT_EQ(VRNIC_VERR_SLOTS, record.vendor_err);
	}
}

TEST_F(inline_put, s2_4_source_reusable_at_once)
{
	struct nbed *bed = &self->bed;
	uint8_t data[FITS], expected[FITS];
	size_t len;
	int ret, i;

	for (len = 1, i = 0; len <= FITS; len += len < 300 ? 1 : 37, i++) {
		memset(data, i, len);
		memset(expected, i, len);
		while ((ret = put_inline(bed, data, len, 0,
					 DONE(.remote = bed->a.counter))) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->a.context, 0), 0);
		memset(data, ~i, len);
		ASSERT_OK(ret);
		ASSERT_OK(counter_done(bed->a.counter));
		ASSERT_OK(memcmp(expected, bed->b.buf.addr, len))
			TH_LOG("%zu bytes", len);
	}
}

/* The source may be anything that can be read, also constants. */
TEST_F(inline_put, s2_4_source_is_not_registered)
{
	static const char text[] = "nobody registered this";

	ASSERT_OK(put_inline(&self->bed, text, sizeof(text), 100,
			     DONE(.remote = self->bed.a.counter)));
	ASSERT_OK(counter_done(self->bed.a.counter));
	EXPECT_OK(memcmp(self->bed.b.buf.addr + 100, text, sizeof(text)));
}

/* "Local buffer reusable" is true at once, and its counter is exact. */
TEST_F(inline_put, s2_4_local_counter)
{
	struct nbed *bed = &self->bed;
	uint8_t data[500] = {};
	int i;

	for (i = 0; i < 50; i++) {
		ASSERT_OK(put_inline(bed, data, sizeof(data), 0,
				     DONE(.local = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		ASSERT_EQ(0, vrnic_counter_read(bed->a.counter));
	}
}

/* Parity with Blue Gene: 128 bytes at least. */
TEST_F(inline_put, at_least_128_bytes)
{
	struct nbed *bed = &self->bed;
	uint8_t data[128];
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i + 1;
	ASSERT_OK(put_inline(bed, data, 128, 0, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_OK(memcmp(data, bed->b.buf.addr, 128));
}

TEST_F(inline_put, s2_5_what_can_never_fit)
{
	struct nbed *bed = &self->bed;
	uint8_t data[FITS + 1] = {};

	EXPECT_EQ(-EMSGSIZE, put_inline(bed, data, FITS + 1, 0, NULL));
	EXPECT_EQ(-EMSGSIZE, put_inline(bed, data, 1ULL << 40, 0, NULL));
	EXPECT_EQ(-EMSGSIZE, put_inline(bed, data, FITS + 1, 0,
					DONE(.flags = VRNIC_QUEUE)));
	ASSERT_OK(put_inline(bed, data, FITS, 0, DONE(.remote = bed->a.counter)));
	EXPECT_OK(counter_done(bed->a.counter));
}

/* A slow one in front keeps the slots: a receiver that is full. */
static void ignore(struct vrnic_context *context,
		   const struct vrnic_message *message, void *arg)
{
	++*(int *)arg;
}

TEST_F(inline_put, s2_5_try_again)
{
	struct nbed *bed = &self->bed;
	uint8_t data[FITS] = { 1 };
	int got = 0, sent;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, ignore, &got));
	sent = node_fill(&bed->a, 3000, NULL);
	ASSERT_GT(sent, 0);
	EXPECT_EQ(-EAGAIN, put_inline(bed, data, FITS, 0,
				      DONE(.remote = bed->a.counter)));
	/* what was not taken is not expected either */
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	ASSERT_OK(nbed_until(bed, &got, sent));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_OK(put_inline(bed, data, FITS, 0, DONE(.remote = bed->a.counter)));
	EXPECT_OK(counter_done(bed->a.counter));
}

/* Queued operations keep their order and their data, even if the source changes. */
TEST_F(inline_put, s2_5_or_queue)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	uint8_t data[1000];
	int i, got = 0, sent;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, ignore, &got));
	sent = node_fill(&bed->a, 3000, NULL);
	ASSERT_GT(sent, 0);
	for (i = 0; i < 200; i++) {
		memset(data, i, sizeof(data));
		ASSERT_OK(put_inline(bed, data, sizeof(data), 0,
				     DONE(TELL(&told), .flags = VRNIC_QUEUE,
					  .remote = bed->a.counter, .cookie = i)));
	}
	memset(data, 0xaa, sizeof(data));
	EXPECT_EQ(0, told.count);
	EXPECT_EQ(200 * 1000, vrnic_counter_read(bed->a.counter));
	/* later posts do not overtake them */
	EXPECT_EQ(-EAGAIN, put_inline(bed, data, 8, 0, NULL));
	for (i = 0; i < 200; i++) {
		ASSERT_OK(nbed_until(bed, &told.count, i + 1));
		ASSERT_EQ(IBV_WC_SUCCESS, told.status.status);
	}
	EXPECT_EQ(199, told.status.cookie);
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, sizeof(data), 199));
	ASSERT_OK(nbed_until(bed, &got, sent));
}

TEST_F(inline_put, ring_wraps_at_every_slot)
{
	struct nbed *bed = &self->bed;
	uint8_t data[700];
	int i, j, ret;
	size_t len;

	for (i = 0; i < 3000; i++) {
		len = 1 + (i * 13) % sizeof(data);
		for (j = 0; j < (int)len; j++)
			data[j] = i + j;
		while ((ret = put_inline(bed, data, len, 0,
					 DONE(.remote = bed->a.counter))) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->a.context, 0), 0);
		ASSERT_OK(ret);
		ASSERT_OK(counter_done(bed->a.counter));
		ASSERT_OK(memcmp(data, bed->b.buf.addr, len))
			TH_LOG("round %d, %zu bytes", i, len);
	}
}

/* ---- several sources in one message ---- */

#define PIECES	7

static int put_inlinev(struct nbed *bed, const struct iovec *iov, int n, size_t to,
		       const struct vrnic_done *done)
{
	return vrnic_put_inlinev(bed->a.to, WR(.remote = bed->a.peer.addr + to,
					       .rkey = bed->a.peer.rkey), iov, n, done);
}

/*
 * Cut @total bytes of @data into pieces of different lengths, one of them empty. They lie in memory
 * the other way round.
 */
static void cut(struct iovec iov[PIECES], uint8_t *data, size_t total)
{
	uint8_t *at = data + total;
	size_t left = total, n;
	int i;

	for (i = 0; i < PIECES; i++) {
		n = i == PIECES - 1 ? left : i == 2 ? 0 : left / (i + 2);
		left -= n;
		at -= n;
		iov[i] = (struct iovec){ n ? at : NULL, n };
	}
}

static void gather(uint8_t *to, const struct iovec *iov, int n)
{
	int i;

	for (i = 0; i < n; to += iov[i++].iov_len)
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
}

/* One after the other in the target's memory, and the sources are free when the call returns. */
TEST_F(inline_put, s2_iov_several_sources_arrive_as_one)
{
	struct nbed *bed = &self->bed;
	uint8_t data[FITS], expected[FITS];
	struct iovec iov[PIECES];
	size_t len, i;
	int ret;

	for (len = 0; len <= FITS; len += len < 300 ? 7 : 37) {
		memset(bed->b.buf.addr, 0, LEN);
		for (i = 0; i < len; i++)
			data[i] = i * 5 + len;
		cut(iov, data, len);
		gather(expected, iov, PIECES);
		while ((ret = put_inlinev(bed, iov, PIECES, 0,
					  DONE(.remote = bed->a.counter))) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->a.context, 0), 0);
		memset(data, 0xdd, sizeof(data));
		memset(iov, 0, sizeof(iov));
		ASSERT_OK(ret);
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		ASSERT_EQ(0, vrnic_counter_read(bed->a.counter));
		ASSERT_OK(memcmp(expected, bed->b.buf.addr, len)) TH_LOG("%zu bytes", len);
		ASSERT_EQ(-1, buf_is_not(&bed->b.buf, len, LEN - len, 0));
	}
}

/* A single byte from each of as many places as writev() takes. */
TEST_F(inline_put, s2_iov_many_sources)
{
	struct nbed *bed = &self->bed;
	struct iovec iov[1024];
	uint8_t data[2048];
	int i;

	for (i = 0; i < 1024; i++) {
		data[2 * i] = i * 3;
		iov[i] = (struct iovec){ &data[2 * i], 1 };
	}
	ASSERT_OK(put_inlinev(bed, iov, 1024, 0, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	for (i = 0; i < 1024; i++)
		ASSERT_EQ((uint8_t)(i * 3), ((uint8_t *)bed->b.buf.addr)[i]);
}

/* What comes in one message, as its handler sees it. */
struct seen {
	int count;
	size_t header_len, length;
	uint8_t bytes[VRNIC_MAX_MESSAGE];
};

static void see(struct vrnic_context *context, const struct vrnic_message *message, void *arg)
{
	struct seen *seen = arg;

	seen->header_len = message->header_len;
	seen->length = message->length;
	memcpy(seen->bytes, message->header, message->header_len);
	memcpy(seen->bytes + message->header_len, message->data, message->length);
	seen->count++;
}

TEST_F(inline_put, s2_iov_several_sources_in_a_message)
{
	uint8_t data[3000], expected[3000], header[64];
	struct nbed *bed = &self->bed;
	struct iovec iov[PIECES];
	struct seen seen = {};
	size_t len, header_len;
	int i = 0;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 3, see, &seen));
	for (len = 0; len <= sizeof(data); len += len < 130 ? 5 : 97, i++) {
		header_len = i % sizeof(header);
		memset(header, i + 1, sizeof(header));
		memset(data, i, sizeof(data));
		if (len)
			data[len / 2] = ~i;
		cut(iov, data, len);
		gather(expected, iov, PIECES);
		/* over a wire, the slots of the last one may not be free yet */
		ASSERT_OK(vrnic_sendv(bed->a.to, SEND(.id = 3, .header = header,
						      .header_len = header_len),
				      iov, PIECES, DONE(.flags = VRNIC_QUEUE)));
		memset(data, 0xdd, sizeof(data));
		ASSERT_OK(nbed_until(bed, &seen.count, i + 1));
		ASSERT_EQ(header_len, seen.header_len);
		ASSERT_EQ(len, seen.length);
		ASSERT_OK(memcmp(seen.bytes, header, header_len));
		ASSERT_OK(memcmp(seen.bytes + header_len, expected, len))
			TH_LOG("%zu bytes", len);
	}
}

/* The errors of the single forms, and nothing is posted. */
TEST_F(inline_put, s2_iov_what_cannot_be)
{
	struct nbed *bed = &self->bed;
	struct vrnic_endpoint *to = bed->a.to;
	uint8_t data[FITS + 1] = {};
	struct iovec iov[2] = { { data, FITS }, { data, 1 } };
	struct iovec huge[2] = { { data, SIZE_MAX }, { data, 2 } };
	struct iovec nowhere = { NULL, 1 };
	struct vrnic_done *done = DONE(.remote = bed->a.counter);

	EXPECT_EQ(-EMSGSIZE, put_inlinev(bed, iov, 2, 0, done));
	EXPECT_EQ(-EMSGSIZE, put_inlinev(bed, iov, 2, 0, DONE(.flags = VRNIC_QUEUE)));
	EXPECT_EQ(-EINVAL, put_inlinev(bed, huge, 2, 0, done));
	EXPECT_EQ(-EINVAL, put_inlinev(bed, &nowhere, 1, 0, done));
	EXPECT_EQ(-EINVAL, put_inlinev(bed, NULL, 1, 0, done));
	EXPECT_EQ(-EINVAL, put_inlinev(bed, iov, -1, 0, done));
	EXPECT_EQ(-EINVAL, put_inlinev(bed, iov, 1025, 0, done));
	EXPECT_EQ(-EINVAL, vrnic_put_inlinev(to, NULL, iov, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_put_inlinev(NULL, WR(), iov, 1, done));
	/* data from one place, or from several */
	EXPECT_EQ(-EINVAL, vrnic_put_inlinev(to, WR(.local = data), iov, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_put_inlinev(to, WR(.length = 1), iov, 1, done));
	EXPECT_EQ(-E2BIG, vrnic_put_inlinev(to, WR(.comp_mask = 1), iov, 1, done));
	iov[0].iov_len = VRNIC_MAX_MESSAGE;
	EXPECT_EQ(-EMSGSIZE, vrnic_sendv(to, SEND(.id = 1), iov, 2, done));
	EXPECT_EQ(-EMSGSIZE, vrnic_sendv(to, SEND(.id = 1), huge, 2, done));
	EXPECT_EQ(-EMSGSIZE, vrnic_sendv(to, SEND(.id = 1, .header = data,
						  .header_len = VRNIC_MAX_MESSAGE), iov + 1, 1,
					 done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.id = 1), &nowhere, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.id = 1), NULL, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.id = 1), iov, -1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.id = VRNIC_DISPATCH_MAX), iov + 1, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.data = data), iov + 1, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, SEND(.length = 1), iov + 1, 1, done));
	EXPECT_EQ(-EINVAL, vrnic_sendv(to, NULL, iov + 1, 1, done));
	EXPECT_EQ(-E2BIG, vrnic_sendv(to, SEND(.comp_mask = 1), iov + 1, 1, done));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	/* no buffer is no data */
	ASSERT_OK(put_inlinev(bed, NULL, 0, 0, done));
	ASSERT_OK(vrnic_fence_wait(to, WAIT_NS, NULL));
}

/* Without room: try again, or queue; what is queued is copied from all sources. */
TEST_F(inline_put, s2_iov_try_again_or_queue)
{
	struct nbed *bed = &self->bed;
	struct iovec iov[PIECES];
	uint8_t data[1000], expected[1000];
	struct told told = {};
	int got = 0, sent;

	ASSERT_OK(vrnic_dispatch_set(bed->b.context, 1, ignore, &got));
	sent = node_fill(&bed->a, 3000, NULL);
	ASSERT_GT(sent, 0);
	memset(data, 1, sizeof(data));
	memset(data, 2, 700);
	cut(iov, data, sizeof(data));
	gather(expected, iov, PIECES);
	EXPECT_EQ(-EAGAIN, put_inlinev(bed, iov, PIECES, 0, DONE(.remote = bed->a.counter)));
	EXPECT_EQ(-EAGAIN, vrnic_sendv(bed->a.to, SEND(.id = 1), iov, PIECES, NULL));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	ASSERT_OK(put_inlinev(bed, iov, PIECES, 0, DONE(TELL(&told), .flags = VRNIC_QUEUE)));
	memset(data, 0xdd, sizeof(data));
	ASSERT_OK(nbed_until(bed, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_OK(memcmp(bed->b.buf.addr, expected, sizeof(expected)));
	ASSERT_OK(nbed_until(bed, &got, sent));
}

TEST_HARNESS_MAIN
