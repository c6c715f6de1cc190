// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S3: typed transfers, in all modes, against plain copies. */
#include "fault.h"
#include "native.h"
#include "native_trace.h"
#include "native_types.h"

#define LEN	(2 * REACH)

NBED(typed, LEN);

static const uint32_t modes[] = {
	VRNIC_TYPED_AUTO, VRNIC_TYPED_PACKED, VRNIC_TYPED_CHUNKS,
};

struct transfer {
	const struct typed *local, *remote;
	uint32_t mode;
	bool get;
};

/* Offsets count from the middle of both buffers. */
static int start(struct nbed *bed, const struct transfer *t,
		 const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	if (t->get)
		return vrnic_get_typed(a->to, TYPED(.local = a->buf.addr + REACH, .mr = a->buf.mr,
						    .local_type = t->local->type,
						    .remote = a->peer.addr + REACH,
						    .rkey = a->peer.rkey,
						    .remote_type = t->remote->type,
						    .mode = t->mode), done);
	return vrnic_put_typed(a->to, TYPED(.local = a->buf.addr + REACH, .mr = a->buf.mr,
					    .local_type = t->local->type,
					    .remote = a->peer.addr + REACH, .rkey = a->peer.rkey,
					    .remote_type = t->remote->type, .mode = t->mode), done);
}

/* The transfer, beside the model's; false if one byte of the buffer differs. */
static bool as_the_model(struct nbed *bed, const struct transfer *t,
			 uint32_t seed)
{
	struct buf *src = t->get ? &bed->b.buf : &bed->a.buf;
	struct buf *dst = t->get ? &bed->a.buf : &bed->b.buf;
	const struct model *from = t->get ? &t->remote->model : &t->local->model;
	const struct model *to = t->get ? &t->local->model : &t->remote->model;
	static uint8_t expected[LEN];
	int ret;

	buf_fill(src, seed);
	memset(dst->addr, 0x77, LEN);
	memset(expected, 0x77, LEN);
	model_copy(expected + REACH, to, src->addr + REACH, from);
	ret = start(bed, t, t->get ? DONE(.local = bed->a.counter) :
				     DONE(.remote = bed->a.counter));
	if (!ret)
		ret = counter_done(bed->a.counter);
	if (ret)
		fprintf(stderr, "# typed transfer: %d\n", ret);
	return !ret && !vrnic_counter_read(bed->a.counter) &&
	       !memcmp(expected, dst->addr, LEN);
}

/* A type of the rows that are given, and its model. */
struct row {
	int64_t offset;
	uint64_t bytes, count;
	int64_t stride;
};

static int typed_rows(struct typed *t, struct vrnic_client *client,
		      const struct row *rows, int n)
{
	int i, ret;

	memset(t, 0, sizeof(*t));
	ret = vrnic_type_create(client, &t->type);
	for (i = 0; i < n && !ret; i++) {
		ret = vrnic_type_add_simple(t->type, rows[i].bytes,
					    rows[i].offset, rows[i].count,
					    rows[i].stride);
		if (!ret)
			ret = model_add_simple(&t->model, rows[i].bytes,
					       rows[i].offset, rows[i].count,
					       rows[i].stride);
	}
	return ret ? ret : vrnic_type_complete(t->type);
}

#define ROWS(t, bed, ...)						\
	typed_rows((t), (bed)->a.client, (struct row[]){ __VA_ARGS__ },	\
		   sizeof((struct row[]){ __VA_ARGS__ }) / sizeof(struct row))

TEST_F(typed, s3_2_types_differ)
{
	struct nbed *bed = &self->bed;
	struct typed column, row;
	unsigned int i;

	ASSERT_OK(ROWS(&column, bed, { 0, 8, 64, 64 }));
	ASSERT_OK(ROWS(&row, bed, { 100, 512, 1, 0 }));
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&column, &row, modes[i], false }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&row, &column, modes[i], false }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&column, &row, modes[i], true }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&row, &column, modes[i], true }, i));
	}
	EXPECT_OK(typed_free(&column));
	EXPECT_OK(typed_free(&row));
}

/* Metadata is taken over once: the types may be used again and again. */
TEST_F(typed, s3_3_same_type)
{
	struct nbed *bed = &self->bed;
	struct typed t, twin;
	int i;

	ASSERT_OK(ROWS(&t, bed, { -100, 8, 20, 24 }, { 2000, 33, 4, 50 }));
	ASSERT_OK(ROWS(&twin, bed, { -100, 8, 20, 24 }, { 2000, 33, 4, 50 }));
	for (i = 0; i < 100; i++) {
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&t, &t, VRNIC_TYPED_SAME, i & 1 }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&t, &twin, VRNIC_TYPED_SAME, i & 1 }, i));
	}
	EXPECT_OK(typed_free(&t));
	EXPECT_OK(typed_free(&twin));
}

static long long told(void)
{
	return dev_counter("native_types_told");
}

/* Messages of links that were begun; one may begin again, when its packet was lost. */
struct messages {
	unsigned int nr;
	unsigned long qpn[64], psn[64];
};

static void note_message(const char *line, void *arg)
{
	const char *what = strstr(line, "vrnic_packet: qpn=");
	unsigned long qpn, opcode, psn;
	struct messages *m = arg;
	unsigned int i;

	if (!what || sscanf(what, "vrnic_packet: qpn=%lu tx opcode=%lx psn=%lx", &qpn, &opcode,
			    &psn) != 3)
		return;
	if (opcode != 0xc0 && opcode != 0xc4)	/* FIRST or ONLY */
		return;
	for (i = 0; i < m->nr && (m->qpn[i] != qpn || m->psn[i] != psn); i++)
		;
	if (i < m->nr || i == ARRAY_SIZE(m->qpn))
		return;
	m->qpn[i] = qpn;
	m->psn[i] = psn;
	m->nr++;
}

/* How many messages the transfer takes, with the answers; -1: it failed. */
static int messages_of(struct nbed *bed, const struct transfer *t)
{
	struct messages m = {};
	bool good;

	if (trace_begin("vrnic_packet"))
		return -1;
	good = as_the_model(bed, t, 1) && !trace_read(note_message, &m);
	trace_end("vrnic_packet");
	return good ? (int)m.nr : -1;
}

/* The first transfer of a type takes the rows along: no message more than any other transfer. */
TEST_F(typed, s3_3_metadata_travels_with_the_first_data)
{
	struct nbed *bed = &self->bed;
	struct typed one, two;
	long long before = told();

	if (!over_a_wire() || !trace_there())
		SKIP(return, "needs a wire, and tracefs");
	ASSERT_OK(ROWS(&one, bed, { 0, 8, 64, 64 }));
	ASSERT_OK(ROWS(&two, bed, { 100, 512, 1, 0 }));
	EXPECT_EQ(2, messages_of(bed, &(struct transfer){ &one, &two, 0, false }));
	EXPECT_EQ(before + 1, told());
	EXPECT_EQ(2, messages_of(bed, &(struct transfer){ &one, &two, 0, false }));
	EXPECT_EQ(2, messages_of(bed, &(struct transfer){ &two, &one, 0, true }));
	EXPECT_EQ(before + 2, told());
	EXPECT_EQ(2, messages_of(bed, &(struct transfer){ &two, &one, 0, true }));
	EXPECT_EQ(before + 2, told());
	EXPECT_OK(typed_free(&one));
	EXPECT_OK(typed_free(&two));
}

/* Rows, and data behind them, cut into packets anywhere; and more than such a message may have. */
TEST_F(typed, rows_of_all_lengths)
{
	static const unsigned int rows[] = {
		1, 3, 31, 32, 33, 100, 127, 128, 1000, 8191, 8192, 8193, 20000,
	};
	struct nbed *bed = &self->bed;
	struct rng rng = { 1007 };
	struct row *row;
	struct typed t;
	unsigned int i, j;

	row = calloc(20000, sizeof(*row));
	ASSERT_NE(NULL, row);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		/* anywhere, so that hardly two of them become one */
		for (j = 0; j < rows[i]; j++)
			row[j] = (struct row){ .offset = rng_below(&rng, REACH), .bytes = 1,
					       .count = 1 };
		for (j = 0; j < 2; j++) {
			ASSERT_OK(typed_rows(&t, bed->a.client, row, rows[i]));
			EXPECT_TRUE(as_the_model(bed, &(struct transfer){ &t, &t, 0, j }, i))
				TH_LOG("%u rows", rows[i]);
			EXPECT_OK(typed_free(&t));
		}
	}
	free(row);
}

/* A packet that is made again gathers its data again: each one of a transfer is lost in turn. */
TEST_F(typed, s3_5_packets_are_lost)
{
	struct nbed *bed = &self->bed;
	struct typed from, to;
	long long lost, seen = 0;
	unsigned int i;

	if (!over_a_wire() || !faults_can_be_there() || injected("drop") < 0)
		SKIP(return, "needs a wire, and fault injection");
	ASSERT_OK(ROWS(&from, bed, { -8000, 7, 900, 9 }, { 600, 40, 5, 41 }));
	ASSERT_OK(ROWS(&to, bed, { -100, 50, 100, 60 }, { -4000, 1, 1500, 2 }));
	for (lost = 0; lost < 24; lost++)
		for (i = 0; i < ARRAY_SIZE(modes); i++) {
			ASSERT_OK(ARM("drop", .space = lost, .times = 1));
			EXPECT_TRUE(as_the_model(bed, &(struct transfer){
				&from, &to, modes[i], false }, lost));
			EXPECT_TRUE(as_the_model(bed, &(struct transfer){
				&from, &to, modes[i], true }, lost));
			seen += injected("drop");
			ASSERT_OK(fault_disarm("drop"));
		}
	/* a device drops what it receives: of two, one sees fewer packets */
	EXPECT_LT(5, seen);
	EXPECT_OK(typed_free(&from));
	EXPECT_OK(typed_free(&to));
}

/* Data of @from at b go to @to at a, which receives nothing yet, while b's memory changes. */
static int move_and_change(struct nbed *bed, const struct typed *from, const struct typed *to,
			   bool get, uint32_t mode)
{
	struct node *a = &bed->a, *b = &bed->b, *node = get ? a : b;
	struct vrnic_typed_wr wr = {
		.local = node->buf.addr + REACH, .mr = node->buf.mr,
		.local_type = get ? to->type : from->type,
		.remote = node->peer.addr + REACH, .rkey = node->peer.rkey,
		.remote_type = get ? from->type : to->type, .mode = mode,
	};
	struct patience patience = {};
	int ret = ARM("drop");

	buf_fill(&b->buf, 1);
	memset(a->buf.addr, 0x77, LEN);
	if (!ret && get)
		ret = vrnic_get_typed(a->to, &wr, DONE(.local = a->counter));
	else if (!ret)
		ret = vrnic_put_typed(b->to, &wr, DONE(.remote = b->counter));
	/* data among them, and again */
	while (!ret && injected("drop") < 4)
		ret = still_patient(&patience, 0) ? 0 : -ETIMEDOUT;
	buf_fill(&b->buf, 2);
	fault_disarm("drop");
	return ret ? ret : counter_done(node->counter);
}

/* Data come from where they are, each time that a packet is made; PACKED takes them before. */
static bool as_gathered(struct nbed *bed, const struct typed *from, const struct typed *to,
			bool get, uint32_t mode)
{
	static uint8_t packed[LEN], expected[LEN];
	const uint8_t *is = mode == VRNIC_TYPED_PACKED ? packed : bed->b.buf.addr;

	buf_fill(&bed->b.buf, 1);
	memcpy(packed, bed->b.buf.addr, LEN);
	if (move_and_change(bed, from, to, get, mode))
		return false;
	memset(expected, 0x77, LEN);
	model_copy(expected + REACH, &to->model, is + REACH, &from->model);
	return !memcmp(expected, bed->a.buf.addr, LEN);
}

TEST_F(typed, s3_5_gathered_from_storage)
{
	struct row column = { 0, 16, 64, 24 }, row = { 100, 1024, 1, 0 };
	struct nbed *bed = &self->bed;
	struct typed from, to;
	int get;

	if (!over_a_wire() || !faults_can_be_there() || injected("drop") < 0)
		SKIP(return, "needs a wire, and fault injection");
	for (get = 0; get < 2; get++) {
		struct node *node = get ? &bed->a : &bed->b;

		ASSERT_OK(typed_rows(&from, node->client, &column, 1));
		ASSERT_OK(typed_rows(&to, node->client, &row, 1));
		EXPECT_TRUE(as_gathered(bed, &from, &to, get, VRNIC_TYPED_AUTO));
		/* one device drops the request of a get, too: nothing is packed in time */
		if (!get || getenv("VRNIC_PEER_DEV"))
			EXPECT_TRUE(as_gathered(bed, &from, &to, get, VRNIC_TYPED_PACKED));
		EXPECT_OK(typed_free(&from));
		EXPECT_OK(typed_free(&to));
	}
}

/* Over a wire, a peer is told each type once; where there are no packets, nobody is. */
TEST_F(typed, a_peer_is_told_a_type_once)
{
	struct nbed *bed = &self->bed;
	long long packets = dev_counter("sent_pkts"), before = told(), each;
	struct typed column, row;
	int i;

	if (before < 0)
		SKIP(return, "no counters");
	ASSERT_OK(ROWS(&column, bed, { 0, 8, 64, 64 }));
	ASSERT_OK(ROWS(&row, bed, { 100, 512, 1, 0 }));
	for (i = 0; i < 10; i++)
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){ &column, &row, 0, i & 1 }, i));
	each = dev_counter("sent_pkts") > packets;
	EXPECT_EQ(before + each, told());
	for (i = 0; i < 10; i++) {
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){ &row, &column, 0, i & 1 }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){ &column, &row, 0, i & 1 }, i));
	}
	EXPECT_EQ(before + 2 * each, told());
	EXPECT_OK(typed_free(&column));
	EXPECT_OK(typed_free(&row));
}

TEST_F(typed, s3_3_same_is_refused_when_types_differ)
{
	struct nbed *bed = &self->bed;
	struct typed t, other;

	ASSERT_OK(ROWS(&t, bed, { 0, 8, 20, 24 }));
	ASSERT_OK(ROWS(&other, bed, { 0, 8, 20, 32 }));
	EXPECT_EQ(-EINVAL, start(bed, &(struct transfer){
		&t, &other, VRNIC_TYPED_SAME, false }, NULL));
	EXPECT_OK(typed_free(&t));
	EXPECT_OK(typed_free(&other));
}

/* More than any buffer for packing holds: it goes in portions. */
TEST_F(typed, s3_4_packed)
{
	struct nbed *bed = &self->bed;
	struct typed from, to;

	ASSERT_OK(ROWS(&from, bed, { -8000, 3, 2000, 7 }));
	ASSERT_OK(ROWS(&to, bed, { 7000, 5, 1200, -11 }));
	EXPECT_TRUE(as_the_model(bed, &(struct transfer){
		&from, &to, VRNIC_TYPED_PACKED, false }, 1));
	EXPECT_TRUE(as_the_model(bed, &(struct transfer){
		&to, &from, VRNIC_TYPED_PACKED, true }, 2));
	EXPECT_OK(typed_free(&from));
	EXPECT_OK(typed_free(&to));
}

TEST_F(typed, s3_5_common_chunks)
{
	struct nbed *bed = &self->bed;
	struct typed from, to;
	int i;

	/* lengths without a common divisor: each piece is cut at both ends */
	ASSERT_OK(ROWS(&from, bed, { -8000, 7, 900, 9 }, { 600, 40, 5, 41 }));
	ASSERT_OK(ROWS(&to, bed, { -100, 50, 100, 60 }, { -4000, 1, 1500, 2 }));
	for (i = 0; i < 20; i++) {
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&from, &to, VRNIC_TYPED_CHUNKS, i & 1 }, i));
		EXPECT_TRUE(as_the_model(bed, &(struct transfer){
			&to, &from, VRNIC_TYPED_CHUNKS, i & 1 }, i));
	}
	EXPECT_OK(typed_free(&from));
	EXPECT_OK(typed_free(&to));
}

/*
 * Tables 1 to 4 of the text: origin chunks 1:2, 5:1, 7:1 and target chunks 0:1,
 * 3:1, 5:2 have four common chunks of one byte: 1->0, 2->3, 5->5, 7->6.
 */
TEST_F(typed, s3_6_worked_example)
{
	static const uint8_t origin[8] = "ABCDEFGH";
	static const char target[8] = "B..C.FH.";
	struct nbed *bed = &self->bed;
	uint8_t *local = bed->a.buf.addr + REACH;
	uint8_t *remote = bed->b.buf.addr + REACH;
	struct typed from, to;
	unsigned int i;

	ASSERT_OK(ROWS(&from, bed, { 1, 2, 1, 0 }, { 5, 1, 1, 0 }, { 7, 1, 1, 0 }));
	ASSERT_OK(ROWS(&to, bed, { 0, 1, 1, 0 }, { 3, 1, 1, 0 }, { 5, 2, 1, 0 }));
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		memset(bed->b.buf.addr, '.', LEN);
		memcpy(local, origin, 8);
		ASSERT_OK(start(bed, &(struct transfer){ &from, &to, modes[i] },
				DONE(.remote = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_OK(memcmp(remote, target, 8)) TH_LOG("mode %u", modes[i]);
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, REACH, '.'));
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, REACH + 8, REACH - 8, '.'));
		/* and back: what was taken from each place returns to it */
		memset(local, '.', 8);
		ASSERT_OK(start(bed, &(struct transfer){ &from, &to, modes[i], true },
				DONE(.local = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_OK(memcmp(local, ".BC..F.H", 8));
	}
	EXPECT_OK(typed_free(&from));
	EXPECT_OK(typed_free(&to));
}

/* Thousands of pairs, nested, ascending or not, overlapping or not. */
static void random_pairs(struct __test_metadata *_metadata, struct nbed *bed,
			 uint64_t seed, int rounds, size_t most)
{
	struct rng rng = { seed };
	struct typed from, to;
	struct transfer t;
	size_t bytes;
	int i, j;

	for (i = 0; i < rounds; i++) {
		bytes = 1 + rng_below(&rng, most);
		ASSERT_OK(typed_random(&from, bed->a.client, &rng, bytes, 3));
		ASSERT_OK(typed_random(&to, bed->a.client, &rng, bytes, 3));
		for (j = 0; j < 3; j++) {
			t = (struct transfer){ &from, &to, modes[j],
					       rng_below(&rng, 2) };
			ASSERT_TRUE(as_the_model(bed, &t, i))
				TH_LOG("pair %d of seed %llu, mode %u, %s", i,
				       (unsigned long long)seed, modes[j],
				       t.get ? "get" : "put");
		}
		t = (struct transfer){ &from, &from, VRNIC_TYPED_SAME, i & 1 };
		ASSERT_TRUE(as_the_model(bed, &t, i)) TH_LOG("same, pair %d", i);
		ASSERT_OK(typed_free(&from));
		ASSERT_OK(typed_free(&to));
	}
}

TEST_F(typed, random_pairs_of_few_bytes)
{
	random_pairs(_metadata, &self->bed, 1001, scaled(3000), 40);
}

TEST_F(typed, random_pairs_of_many_bytes)
{
	random_pairs(_metadata, &self->bed, 1002, scaled(1000), 4000);
}

/* Transfers that follow each other, of types that go while they are under way. */
TEST_F(typed, types_are_destroyed_under_way)
{
	struct nbed *bed = &self->bed;
	struct rng rng = { 1003 };
	struct typed from, to;
	struct told told = {};
	int i;

	for (i = 0; i < scaled(500); i++) {
		ASSERT_OK(typed_random(&from, bed->a.client, &rng, 3000, 2));
		ASSERT_OK(typed_random(&to, bed->a.client, &rng, 3000, 2));
		ASSERT_OK(start(bed, &(struct transfer){ &from, &to },
				DONE(TELL(&told), .flags = VRNIC_QUEUE)));
		ASSERT_OK(typed_free(&from));
		ASSERT_OK(typed_free(&to));
		if (i % 10)
			continue;
		ASSERT_OK(advance_until(bed->a.context, &told.count, i + 1));
		ASSERT_EQ(IBV_WC_SUCCESS, told.status.status);
	}
	ASSERT_OK(advance_until(bed->a.context, &told.count, i));
}

/* The extent has to lie in the region, on both sides. */
TEST_F(typed, bounds)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	struct typed in, out, under;

	ASSERT_OK(ROWS(&in, bed, { 0, 8, 2, 16 }));
	ASSERT_OK(ROWS(&out, bed, { REACH - 16, 8, 2, 9 }));
	ASSERT_OK(ROWS(&under, bed, { 0, 8, 2, -REACH - 1 }));
	ASSERT_OK(start(bed, &(struct transfer){ &in, &out },
			DONE(.remote = bed->a.counter)));
	EXPECT_EQ(-EIO, counter_done(bed->a.counter));
	vrnic_counter_error(bed->a.counter, &error);
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	vrnic_counter_set(bed->a.counter, 0);
	ASSERT_OK(start(bed, &(struct transfer){ &under, &in, 0, true },
			DONE(.local = bed->a.counter)));
	EXPECT_EQ(-EIO, counter_done(bed->a.counter));
	vrnic_counter_error(bed->a.counter, &error);
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, error);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	vrnic_counter_set(bed->a.counter, 0);
	EXPECT_OK(typed_free(&in));
	EXPECT_OK(typed_free(&out));
	EXPECT_OK(typed_free(&under));
}

TEST_F(typed, refuses_what_makes_no_sense)
{
	struct nbed *bed = &self->bed;
	struct typed t, less, open = {};

	ASSERT_OK(ROWS(&t, bed, { 0, 8, 2, 16 }));
	ASSERT_OK(ROWS(&less, bed, { 0, 8, 1, 0 }));
	ASSERT_OK(vrnic_type_create(bed->a.client, &open.type));
	ASSERT_OK(vrnic_type_add_simple(open.type, 16, 0, 1, 0));
	EXPECT_EQ(-EINVAL, start(bed, &(struct transfer){ &t, &less }, NULL));
	EXPECT_EQ(-EINVAL, start(bed, &(struct transfer){ &t, &open }, NULL));
	EXPECT_EQ(-EINVAL, start(bed, &(struct transfer){ &t, &t, 4 }, NULL));
	EXPECT_EQ(-EINVAL, start(bed, &(struct transfer){ &t, &t, ~0U }, NULL));
	EXPECT_OK(typed_free(&t));
	EXPECT_OK(typed_free(&less));
	EXPECT_OK(typed_free(&open));
}

/* Types are the client's: another client's mean nothing here. */
TEST_F(typed, types_of_another_client)
{
	struct nbed *bed = &self->bed;
	struct typed mine, other = {};
	int ret;

	ASSERT_OK(ROWS(&mine, bed, { 0, 16, 1, 0 }));
	ASSERT_OK(vrnic_type_create(bed->b.client, &other.type));
	ASSERT_OK(vrnic_type_add_simple(other.type, 16, 0, 1, 0));
	ASSERT_OK(vrnic_type_complete(other.type));
	ret = start(bed, &(struct transfer){ &mine, &other },
		    DONE(.remote = bed->a.counter));
	if (!ret)
		ret = counter_done(bed->a.counter);
	EXPECT_TRUE(ret == -EINVAL || ret == -EIO) TH_LOG("%d", ret);
	EXPECT_OK(typed_free(&mine));
	EXPECT_OK(typed_free(&other));
}

/* From one process into another: a matrix becomes its transpose. */
#define SIDE	100

static int transposed_here(int fd, const void *arg)
{
	struct node node = {};
	int ret = node_open(&node, SIDE * SIDE * 8, NULL);
	uint64_t *m, i;

	if (!ret)
		ret = node_meet(&node, fd);
	if (!ret)
		ret = hear(fd);
	if (ret)
		return ret;
	m = (uint64_t *)node.buf.addr;
	for (i = 0; i < SIDE * SIDE; i++)
		if (m[i] != i % SIDE * SIDE + i / SIDE)
			return EBADMSG;
	return node_close(&node);
}

TEST(two_processes)
{
	struct vrnic_type *column, *columns, *rows;
	struct node node = {};
	struct peer peer;
	uint64_t i;

	NEED_NATIVE();
	ASSERT_OK(peer_start(&peer, transposed_here, NULL));
	ASSERT_OK(node_open(&node, SIDE * SIDE * 8, NULL));
	ASSERT_OK(node_meet(&node, peer.fd));
	for (i = 0; i < SIDE * SIDE; i++)
		((uint64_t *)node.buf.addr)[i] = i;
	ASSERT_OK(vrnic_type_create(node.client, &column));
	ASSERT_OK(vrnic_type_add_simple(column, 8, 0, SIDE, SIDE * 8));
	ASSERT_OK(vrnic_type_complete(column));
	ASSERT_OK(vrnic_type_create(node.client, &columns));
	ASSERT_OK(vrnic_type_add_typed(columns, column, 0, SIDE, 8));
	ASSERT_OK(vrnic_type_complete(columns));
	ASSERT_OK(vrnic_type_create(node.client, &rows));
	ASSERT_OK(vrnic_type_add_simple(rows, SIDE * SIDE * 8, 0, 1, 0));
	ASSERT_OK(vrnic_type_complete(rows));
	ASSERT_OK(vrnic_put_typed(node.to, TYPED(.local = node.buf.addr, .mr = node.buf.mr,
						 .local_type = columns, .remote = node.peer.addr,
						 .rkey = node.peer.rkey, .remote_type = rows,
						 .mode = VRNIC_TYPED_AUTO),
				  DONE(.remote = node.counter)));
	ASSERT_OK(counter_done(node.counter));
	ASSERT_OK(say(peer.fd));
	EXPECT_OK(peer_end(&peer));
	EXPECT_OK(vrnic_type_destroy(column));
	EXPECT_OK(vrnic_type_destroy(columns));
	EXPECT_OK(vrnic_type_destroy(rows));
	EXPECT_OK(node_close(&node));
}

TEST_HARNESS_MAIN
