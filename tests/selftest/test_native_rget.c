// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * S4.3, by itself: the peer's engine is asked to put its memory into that of this process, perhaps
 * when a counter there has fallen. The peer's process agrees by its key and its open counter.
 */
#include "native.h"

#define LEN	(1 << 20)

#define RGET(...)	(&(struct vrnic_rget_wr){ __VA_ARGS__ })

NBED(rget, LEN);

static int fetch(struct nbed *bed, size_t to, size_t from, size_t len, uint32_t after,
		 uint64_t left, const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	return vrnic_rget(a->to, RGET(.local = a->buf.addr + to, .mr = a->buf.mr, .length = len,
				      .remote = a->peer.addr + from, .rkey = a->peer.rkey,
				      .after = after, .after_left = left), done);
}

/* [to, to + len) of a's buffer is what b's has at @from. */
static bool fetched(const struct nbed *bed, size_t to, size_t from, size_t len, uint32_t seed)
{
	return buf_differs(&bed->a.buf, to, len, seed, from) < 0;
}

TEST_F(rget, s4_3_of_all_lengths)
{
	static const size_t lens[] = { 0, 1, 8, 4095, 4096, 4097, 100000, LEN - 100 };
	struct nbed *bed = &self->bed;
	struct told told = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		buf_fill(&bed->b.buf, i);
		memset(bed->a.buf.addr, 0, LEN);
		ASSERT_OK(fetch(bed, 50, 100, lens[i], 0, 0,
				DONE(TELL(&told), .local = bed->a.counter)));
		ASSERT_OK(advance_until(bed->a.context, &told.count, i + 1));
		EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
		EXPECT_EQ(lens[i], told.status.value);
		EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
		EXPECT_TRUE(fetched(bed, 50, 100, lens[i], i));
		EXPECT_EQ(-1, buf_is_not(&bed->a.buf, 0, 50, 0));
		EXPECT_EQ(-1, buf_is_not(&bed->a.buf, 50 + lens[i], LEN - 50 - lens[i], 0));
	}
}

/* "DMA read from me": the peer's engine takes the bytes, and the object counts them. */
TEST_F(rget, s1_3_the_peer_takes)
{
	static const size_t lens[] = { 0, 1, 8, 4095, 4096, 4097, 100000, LEN - 100 };
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a, *b = &bed->b;
	struct told told = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		buf_fill(&a->buf, i);
		memset(b->buf.addr, 0, LEN);
		vrnic_counter_set(b->open, lens[i]);
		ASSERT_OK(vrnic_rget(a->to, RGET(.local = a->buf.addr + 50, .mr = a->buf.mr,
						 .length = lens[i], .remote = a->peer.addr + 100,
						 .rkey = a->peer.rkey, .flags = VRNIC_RGET_TAKE,
						 .target = a->peer.counter),
				     DONE(TELL(&told), .local = a->counter)));
		ASSERT_OK(advance_until(a->context, &told.count, i + 1));
		EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
		ASSERT_OK(counter_done(a->counter));
		EXPECT_OK(counter_done(b->open));
		EXPECT_EQ(0, vrnic_counter_read(a->counter));
		EXPECT_EQ(0, vrnic_counter_read(b->open));
		EXPECT_TRUE(nbed_arrived(bed, i, 50, 100, lens[i]));
		EXPECT_EQ(-1, buf_is_not(&b->buf, 0, 100, 0));
		EXPECT_EQ(-1, buf_is_not(&b->buf, 100 + lens[i], LEN - 100 - lens[i], 0));
	}
}

/* So the target paces those that write to it: it takes when it has room. */
TEST_F(rget, s1_3_the_target_paces)
{
	enum { PIECES = 16, PIECE = LEN / PIECES };
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a, *b = &bed->b;
	struct told told = {};
	int i;

	buf_fill(&a->buf, 6);
	vrnic_counter_set(b->open, PIECES);
	for (i = 0; i < PIECES; i++)
		ASSERT_OK(vrnic_rget(a->to, RGET(.local = a->buf.addr + i * PIECE, .mr = a->buf.mr,
						 .length = PIECE,
						 .remote = a->peer.addr + i * PIECE,
						 .rkey = a->peer.rkey, .flags = VRNIC_RGET_TAKE,
						 .after = a->peer.counter,
						 .after_left = PIECES - 1 - i),
				     DONE(TELL(&told), .local = a->counter)));
	for (i = 0; i < PIECES; i++) {
		usleep(1000);
		EXPECT_EQ((PIECES - i) * PIECE, vrnic_counter_read(a->counter));
		/* room for one more */
		ASSERT_OK(vrnic_put(a->to, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 1,
					      .remote = a->peer.addr, .rkey = a->peer.rkey),
				    DONE(.target = a->peer.counter)));
		ASSERT_OK(advance_until(a->context, &told.count, i + 1));
		ASSERT_OK(vrnic_counter_wait(a->counter, (PIECES - 1 - i) * PIECE, WAIT_NS));
	}
	EXPECT_TRUE(nbed_arrived(bed, 6, 0, 0, LEN));
}

/* A get is asked for now; its data come when the peer has them, and its counter has fallen. */
TEST_F(rget, waits_for_a_counter_of_the_peer)
{
	struct nbed *bed = &self->bed;
	struct node *b = &bed->b;
	struct told told = {};

	memset(b->buf.addr, 0, LEN);
	vrnic_counter_set(b->open, 100);
	ASSERT_OK(fetch(bed, 0, 0, 5000, bed->a.peer.counter, 10,
			DONE(TELL(&told), .local = bed->a.counter)));
	usleep(3000);
	EXPECT_EQ(5000, vrnic_counter_read(bed->a.counter));
	/* the memory is made meanwhile */
	buf_fill(&b->buf, 3);
	ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr + LEN / 2, .mr = bed->a.buf.mr,
					  .length = 90, .remote = bed->a.peer.addr + LEN / 2,
					  .rkey = bed->a.peer.rkey),
			    DONE(.target = bed->a.peer.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_TRUE(fetched(bed, 0, 0, 5000, 3));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	vrnic_counter_set(b->open, 0);
}

/* Many at a time, each with its own place and its own end. */
TEST_F(rget, many)
{
	enum { MANY = 200, PIECE = 5000 };
	struct nbed *bed = &self->bed;
	struct told told = {};
	unsigned int i;

	buf_fill(&bed->b.buf, 4);
	for (i = 0; i < MANY; i++)
		ASSERT_OK(fetch(bed, i * PIECE, i * PIECE, PIECE, 0, 0,
				DONE(TELL(&told), .flags = VRNIC_QUEUE,
				     .local = bed->a.counter)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, MANY));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	EXPECT_TRUE(fetched(bed, 0, 0, MANY * PIECE, 4));
}

/* What the peer has not agreed to. */
TEST_F(rget, needs_consent)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct ibv_mr *write_only, *read_only;
	struct told told = {};
	int n = 0;

	write_only = ibv_reg_mr(vrnic_client_pd(bed->b.client), bed->b.buf.addr, LEN,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ASSERT_NE(NULL, write_only);
	memset(a->buf.addr, 0x55, LEN);
	ASSERT_OK(vrnic_rget(a->to, RGET(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
					 .remote = a->peer.addr, .rkey = write_only->rkey),
			     DONE(TELL(&told), .local = a->counter)));
	ASSERT_OK(advance_until(a->context, &told.count, ++n));
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, told.status);
	EXPECT_EQ(1, vrnic_counter_error(a->counter, NULL));
	/* to take, the peer's region needs the right to be written to */
	read_only = ibv_reg_mr(vrnic_client_pd(bed->b.client), bed->b.buf.addr, LEN,
			       IBV_ACCESS_REMOTE_READ);
	ASSERT_NE(NULL, read_only);
	ASSERT_OK(vrnic_rget(a->to, RGET(.local = a->buf.addr, .mr = a->buf.mr, .length = 8,
					 .remote = a->peer.addr, .rkey = read_only->rkey,
					 .flags = VRNIC_RGET_TAKE), DONE(TELL(&told))));
	ASSERT_OK(advance_until(a->context, &told.count, ++n));
	EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, told.status);
	EXPECT_OK(ibv_dereg_mr(read_only));
	/* a counter that is not open, or not there */
	ASSERT_OK(fetch(bed, 0, 0, 8, vrnic_counter_number(bed->b.counter), 1 << 20,
			DONE(TELL(&told))));
	ASSERT_OK(advance_until(a->context, &told.count, ++n));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, told.status);
	ASSERT_OK(fetch(bed, 0, 0, 8, UINT32_MAX, 1 << 20, DONE(TELL(&told))));
	ASSERT_OK(advance_until(a->context, &told.count, ++n));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, told.status);
	EXPECT_EQ(-1, buf_is_not(&a->buf, 0, LEN, 0x55));
	/* the peer's process has heard of nothing */
	EXPECT_EQ(0, vrnic_advance(bed->b.context, 100));
	EXPECT_OK(ibv_dereg_mr(write_only));
}

TEST_F(rget, what_makes_no_sense)
{
	struct node *a = &self->bed.a;
	struct vrnic_rget_wr good = { .local = a->buf.addr, .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = a->peer.rkey }, wr;

	EXPECT_EQ(-EINVAL, vrnic_rget(NULL, &good, NULL));
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, NULL, NULL));
	wr = good;
	wr.comp_mask = 1;
	EXPECT_EQ(-E2BIG, vrnic_rget(a->to, &wr, NULL));
	wr = good;
	wr.mr = NULL;
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &wr, NULL));
	wr = good;
	wr.length = 1ULL << 63;
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &wr, NULL));
	wr = good;
	wr.flags = 2;
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &wr, NULL));
	wr = good;
	wr.after_left = 1ULL << 63;
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &wr, NULL));
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &good, DONE(.remote = a->counter)));
	EXPECT_EQ(-EINVAL, vrnic_rget(a->to, &good, DONE(.target = 1)));
}

/* Either end goes while it waits. */
TEST_F(rget, the_endpoint_goes)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	vrnic_counter_set(bed->b.open, 1);
	ASSERT_OK(fetch(bed, 0, 0, 8, bed->a.peer.counter, 0,
			DONE(TELL(&told), .local = bed->a.counter)));
	ASSERT_OK(vrnic_endpoint_destroy(bed->a.to));
	bed->a.to = NULL;
	EXPECT_EQ(-EIO, counter_done(bed->a.counter));
	EXPECT_EQ(0, told.count);
}

static int waits_to_be_killed(int fd, const void *arg)
{
	struct node node = {};
	int ret = node_open(&node, LEN, NULL);

	if (!ret) {
		vrnic_counter_set(node.open, 1);
		ret = node_meet(&node, fd);
	}
	hear(fd);
	return ret;
}

TEST(the_peer_is_killed_while_it_waits)
{
	struct told told = {};
	struct node node = {};
	struct peer peer;

	NEED_NATIVE();
	ASSERT_OK(peer_start(&peer, waits_to_be_killed, NULL));
	ASSERT_OK(node_open(&node, LEN, NULL));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(vrnic_rget(node.to, RGET(.local = node.buf.addr, .mr = node.buf.mr, .length = 8,
					   .remote = node.peer.addr, .rkey = node.peer.rkey,
					   .after = node.peer.counter),
			     DONE(TELL(&told), .local = node.counter)));
	usleep(3000);
	ASSERT_OK(peer_kill(&peer));
	EXPECT_EQ(-EIO, counter_done(node.counter));
	ASSERT_OK(advance_until(node.context, &told.count, 1));
	/* what the peer has goes piece by piece: its counter may be the first */
	EXPECT_TRUE(told.status.status == IBV_WC_RETRY_EXC_ERR ||
		    told.status.status == IBV_WC_REM_ACCESS_ERR);
	EXPECT_OK(node_close(&node));
}

TEST_HARNESS_MAIN
