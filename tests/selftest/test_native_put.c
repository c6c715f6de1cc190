// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Put and get between registered memories: all sizes, all ways to be told. */
#include "native.h"
#include "sizes.h"

NBED(put, 65536, .inject_slots = 64);

FIXTURE(put_size)
{
	struct nbed bed;
};

FIXTURE_VARIANT(put_size)
{
	size_t size;
};

SIZE_VARIANTS(put_size);

FIXTURE_SETUP(put_size)
{
	NEED_NATIVE();
	ASSERT_OK(nbed_open(&self->bed, variant->size + SIZE_ROOM, NULL));
}

FIXTURE_TEARDOWN(put_size)
{
	EXPECT_OK(nbed_close(&self->bed));
}

/* [off, off + size) of @to is what the filled buffer has at @from; the rest is 0. */
static bool placed(const struct buf *to, size_t off, size_t from, size_t size,
		   uint32_t seed)
{
	return buf_differs(to, off, size, seed, from) < 0 &&
	       buf_is_not(to, 0, off, 0) < 0 &&
	       buf_is_not(to, off + size, to->len - off - size, 0) < 0;
}

TEST_F(put_size, put)
{
	struct nbed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		buf_fill(&bed->a.buf, i);
		memset(bed->b.buf.addr, 0, bed->b.buf.len);
		ASSERT_OK(nbed_put(bed, offsets[i].src, offsets[i].dst,
				   variant->size,
				   DONE(.remote = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_TRUE(placed(&bed->b.buf, offsets[i].dst, offsets[i].src,
				   variant->size, i));
	}
}

TEST_F(put_size, get)
{
	struct nbed *bed = &self->bed;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		buf_fill(&bed->b.buf, i);
		memset(bed->a.buf.addr, 0, bed->a.buf.len);
		ASSERT_OK(nbed_get(bed, offsets[i].dst, offsets[i].src,
				   variant->size,
				   DONE(.local = bed->a.counter)));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_TRUE(placed(&bed->a.buf, offsets[i].dst, offsets[i].src,
				   variant->size, i));
	}
}

/* A stream of puts that no call waits for: only the memory is looked at. */
TEST_F(put, nobody_waits)
{
	struct nbed *bed = &self->bed;
	const unsigned char *last = bed->b.buf.addr;
	struct patience p = {};
	unsigned int round, i;

	for (round = 1; round < 100; round++) {
		memset(bed->a.buf.addr, round, 64);
		for (i = 0; i < 48 - round % 16; i++)
			ASSERT_OK(nbed_put(bed, i, i, 1, NULL));
		while (__atomic_load_n(last + i - 1, __ATOMIC_ACQUIRE) != round &&
		       still_patient(&p, round))
			;
		ASSERT_EQ(round, last[i - 1]);
	}
}

/* Blue Gene: one signal for "buffer reusable", another for "remote done". */
TEST_F(put, three_counters)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *local;

	ASSERT_OK(vrnic_counter_create(bed->a.client, 0, &local));
	vrnic_counter_set(bed->b.open, 3 * 5000);
	ASSERT_OK(nbed_put(bed, 0, 0, 5000,
			   DONE(.local = local, .remote = bed->a.counter,
				.target = bed->a.peer.counter)));
	EXPECT_OK(counter_done(local));
	EXPECT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(2 * 5000, vrnic_counter_read(bed->b.open));
	ASSERT_OK(nbed_put(bed, 0, 0, 10000,
			   DONE(.target = bed->a.peer.counter)));
	EXPECT_OK(counter_done(bed->b.open));
	EXPECT_EQ(0, vrnic_counter_read(bed->b.open));
	EXPECT_OK(vrnic_counter_destroy(local));
}

/* Nothing to move is moved at once; also that is told. */
TEST_F(put, zero_bytes)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	ASSERT_OK(nbed_put(bed, 0, 0, 0, DONE(TELL(&told),
					      .target = bed->a.peer.counter)));
	ASSERT_OK(nbed_get(bed, 0, 0, 0, DONE(TELL(&told))));
	ASSERT_OK(vrnic_put_inline(bed->a.to, WR(.remote = bed->a.peer.addr,
						 .rkey = bed->a.peer.rkey), DONE(TELL(&told))));
	ASSERT_OK(vrnic_read(bed->a.to, WR(.remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			     DONE(.local = bed->a.counter)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 3));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_EQ(0, told.status.value);
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	EXPECT_EQ(0, vrnic_counter_read(bed->b.open));
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, 65536, 0));
}

TEST_F(put, counts_as_data_of_the_port)
{
	long long xmit = statistic("xmit_bytes"), rcvd = statistic("rcvd_bytes");
	struct nbed *bed = &self->bed;

	if (over_a_wire())
		SKIP(return, "the other end has a port of its own");
	ASSERT_LE(0, xmit);
	ASSERT_OK(nbed_put(bed, 0, 0, 65536, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	ASSERT_OK(nbed_get(bed, 0, 0, 1000, DONE(.local = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(66536, statistic("xmit_bytes") - xmit);
	EXPECT_EQ(66536, statistic("rcvd_bytes") - rcvd);
}

TEST_F(put, callback_and_cookie)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	ASSERT_OK(nbed_put(bed, 0, 0, 100,
			   DONE(TELL(&told), .cookie = 0xfedcba9876543210)));
	ASSERT_EQ(0, told.count);
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_EQ(VRNIC_NOP_PUT, told.status.opcode);
	EXPECT_EQ(0xfedcba9876543210, told.status.cookie);
	EXPECT_EQ(100, told.status.value);
	usleep(1000);
	EXPECT_EQ(0, vrnic_advance(bed->a.context, 10));
	EXPECT_EQ(1, told.count);
}

/* At most max callbacks, and the rest is not lost. */
TEST_F(put, advance_makes_at_most_max_callbacks)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	int i, before;

	for (i = 0; i < 20; i++)
		ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(TELL(&told))));
	ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
	before = told.count;
	EXPECT_EQ(0, vrnic_advance(bed->a.context, 0));
	EXPECT_EQ(before, told.count);
	for (i = 0; i < 1000 && told.count < 20; i++) {
		before = told.count;
		ASSERT_LE(vrnic_advance(bed->a.context, 3), 3);
		EXPECT_LE(told.count - before, 3);
	}
	EXPECT_EQ(20, told.count);
}

struct chain {
	struct nbed *bed;
	int done, failed;
};

/* Each callback posts the next put. */
static void post_next(struct vrnic_context *context,
		      const struct vrnic_status *status, void *arg)
{
	struct chain *chain = arg;

	chain->failed += !!status->status;
	if (++chain->done < 500)
		chain->failed += !!nbed_put(chain->bed, 0, 0, 8,
					    DONE(.callback = post_next,
						 .arg = chain));
}

TEST_F(put, callbacks_may_post)
{
	struct chain chain = { &self->bed };

	ASSERT_OK(nbed_put(chain.bed, 0, 0, 8,
			   DONE(.callback = post_next, .arg = &chain)));
	ASSERT_OK(advance_until(self->bed.a.context, &chain.done, 500));
	EXPECT_EQ(0, chain.failed);
}

/* Many more than the ring has slots, with EAGAIN as the brake. */
TEST_F(put, ring_wraps_many_times)
{
	struct nbed *bed = &self->bed;
	struct rng rng = { 1 };
	int i, ret;
	size_t at;

	buf_fill(&bed->a.buf, 1);
	for (i = 0; i < 5000; i++) {
		at = rng_below(&rng, 65536 - 16);
		while ((ret = nbed_put(bed, at, at, 16,
				       DONE(.remote = bed->a.counter))) == -EAGAIN)
			ASSERT_GE(vrnic_advance(bed->a.context, 10), 0);
		ASSERT_OK(ret);
	}
	ASSERT_OK(counter_done(bed->a.counter));
	rng.state = 1;
	for (i = 0; i < 5000; i++) {
		at = rng_below(&rng, 65536 - 16);
		ASSERT_TRUE(nbed_arrived(bed, 1, at, at, 16));
	}
}

/*
 * Links over which nothing goes ask each other whether their peers still exist, and stay. Four
 * seconds: an end asks after one in silence, and looks once in a second.
 */
TEST_F(put, silent_links_stay)
{
	struct nbed *bed = &self->bed;
	long was = module_param("link_idle_s");
	long long links;

	if (!over_a_wire())
		SKIP(return, "needs a wire");
	ASSERT_OK(set_module_param("link_idle_s", 1));
	EXPECT_OK(nbed_put(bed, 0, 0, 8, DONE(.remote = bed->a.counter)));
	EXPECT_OK(counter_done(bed->a.counter));
	links = statistic("native_links");
	EXPECT_LT(0, links);
	sleep(4);
	EXPECT_EQ(links, statistic("native_links"));
	EXPECT_OK(nbed_put(bed, 8, 8, 8, DONE(.remote = bed->a.counter)));
	EXPECT_OK(counter_done(bed->a.counter));
	EXPECT_OK(set_module_param("link_idle_s", was));
}

/* In order: of two puts to one place, the later one stays. */
TEST_F(put, later_puts_win)
{
	struct nbed *bed = &self->bed;
	uint64_t *src = (uint64_t *)bed->a.buf.addr;
	uint64_t *dst = (uint64_t *)bed->b.buf.addr;
	int i, j;

	for (i = 0; i < 50; i++) {
		for (j = 0; j < 32; j++) {
			src[j] = i * 32 + j;
			ASSERT_OK(nbed_put(bed, 8 * j, 0, 8, NULL));
		}
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		ASSERT_EQ(i * 32 + 31, *dst);
	}
}

/* To oneself. */
TEST_F(put, endpoint_of_the_own_context)
{
	struct node *a = &self->bed.a;
	struct vrnic_address address;
	struct vrnic_endpoint *self_ep;

	vrnic_context_address(a->context, &address);
	ASSERT_OK(vrnic_endpoint_create(a->context, &address, &self_ep));
	buf_fill(&a->buf, 4);
	ASSERT_OK(vrnic_put(self_ep, WR(.local = a->buf.addr, .mr = a->buf.mr, .length = 1000,
					.remote = (uintptr_t)a->buf.addr + 2000,
					.rkey = a->buf.mr->rkey), DONE(.remote = a->counter)));
	ASSERT_OK(counter_done(a->counter));
	EXPECT_OK(memcmp(a->buf.addr, a->buf.addr + 2000, 1000));
	EXPECT_OK(vrnic_endpoint_destroy(self_ep));
}

/* The rights of a remote key are the verbs ones. */
static const struct denied {
	const char *what;
	int access;
	bool get;
} denied[] = {
	{ "put without remote write", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, false },
	{ "put into local memory", IBV_ACCESS_LOCAL_WRITE, false },
	{ "get without remote read", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, true },
	{ "get from local memory", IBV_ACCESS_LOCAL_WRITE, true },
};

static int try_denied(struct nbed *bed, const struct denied *d, uint32_t rkey)
{
	if (d->get)
		return vrnic_get(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					       .length = 64, .remote = bed->a.peer.addr,
					       .rkey = rkey), DONE(.local = bed->a.counter));
	return vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr, .length = 64,
				       .remote = bed->a.peer.addr, .rkey = rkey),
			 DONE(.remote = bed->a.counter));
}

TEST_F(put, remote_rights)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(denied); i++) {
		mr = ibv_reg_mr(vrnic_client_pd(bed->b.client), bed->b.buf.addr,
				4096, denied[i].access);
		ASSERT_NE(NULL, mr);
		ASSERT_OK(try_denied(bed, &denied[i], mr->rkey));
		EXPECT_EQ(-EIO, counter_done(bed->a.counter))
			TH_LOG("%s", denied[i].what);
		EXPECT_EQ(1, vrnic_counter_error(bed->a.counter, &error));
		EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
		EXPECT_EQ(VRNIC_VERR_ACCESS, error.vendor_err);
		vrnic_counter_set(bed->a.counter, 0);
		EXPECT_OK(ibv_dereg_mr(mr));
	}
}

static const struct bounds {
	int64_t off;
	uint64_t len;
} bounds[] = {
	{ -1, 1 }, { -8, 16 }, { 65536, 1 }, { 65535, 2 }, { 0, 65537 },
	{ 1, 65536 }, { 65536, 8 }, { -65536, 65536 }, { INT64_MIN, 8 },
};

TEST_F(put, remote_bounds)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	struct buf big;
	unsigned int i;

	ASSERT_OK(buf_open(&big, vrnic_client_pd(bed->a.client), 2 * 65536, 0,
			   ACCESS_REMOTE));
	for (i = 0; i < ARRAY_SIZE(bounds); i++) {
		ASSERT_OK(vrnic_put(bed->a.to, WR(.local = big.addr, .mr = big.mr,
						  .length = bounds[i].len,
						  .remote = bed->a.peer.addr + bounds[i].off,
						  .rkey = bed->a.peer.rkey),
				    DONE(.remote = bed->a.counter)));
		EXPECT_EQ(-EIO, counter_done(bed->a.counter))
			TH_LOG("%lld + %llu", (long long)bounds[i].off,
			       (unsigned long long)bounds[i].len);
		EXPECT_EQ(1, vrnic_counter_error(bed->a.counter, &error));
		EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
		EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
		vrnic_counter_set(bed->a.counter, 0);
	}
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, 65536, 0));
	buf_close(&big);
}

/* A FIFO goes on after a failure: the next operations are done. */
TEST_F(put, goes_on_after_a_failure)
{
	struct nbed *bed = &self->bed;
	struct told bad = {}, good = {};

	buf_fill(&bed->a.buf, 9);
	ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					  .length = 8, .remote = bed->a.peer.addr,
					  .rkey = ~bed->a.peer.rkey),
			    DONE(TELL(&bad), .cookie = 1)));
	ASSERT_OK(nbed_put(bed, 0, 0, 8, DONE(TELL(&good), .cookie = 2)));
	ASSERT_OK(advance_until(bed->a.context, &good.count, 1));
	EXPECT_EQ(1, bad.count);
	EXPECT_EQ(1, bad.status.cookie);
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, bad.status);
	EXPECT_EQ(VRNIC_VERR_KEY, bad.status.vendor_err);
	EXPECT_EQ(IBV_WC_SUCCESS, good.status.status);
	EXPECT_TRUE(nbed_arrived(bed, 9, 0, 0, 8));
}

/* The memory of another process, which does nothing for it. */
struct two_arg {
	size_t len;
};

static int idle_peer(int fd, const void *arg)
{
	const struct two_arg *two = arg;
	struct node node = {};
	int ret = node_open(&node, two->len, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	if (!ret)
		ret = hear(fd);
	if (!ret && buf_differs(&node.buf, 0, two->len, 21, 0) >= 0)
		ret = -EBADMSG;
	if (!ret)
		buf_fill(&node.buf, 22);
	if (!ret)
		ret = say(fd);
	if (!ret)
		ret = hear(fd);
	return ret ? ret : node_close(&node);
}

TEST(two_processes)
{
	struct two_arg two = { 3 << 20 };
	struct node node = {};
	struct peer peer;

	NEED_NATIVE();
	ASSERT_OK(peer_start(&peer, idle_peer, &two));
	ASSERT_OK(node_open(&node, two.len, NULL));
	ASSERT_OK(node_meet(&node, peer.fd));
	buf_fill(&node.buf, 21);
	ASSERT_OK(vrnic_put(node.to, WR(.local = node.buf.addr, .mr = node.buf.mr,
					.length = two.len, .remote = node.peer.addr,
					.rkey = node.peer.rkey), DONE(.remote = node.counter)));
	ASSERT_OK(counter_done(node.counter));
	ASSERT_OK(say(peer.fd));
	ASSERT_OK(hear(peer.fd));
	ASSERT_OK(vrnic_get(node.to, WR(.local = node.buf.addr, .mr = node.buf.mr,
					.length = two.len, .remote = node.peer.addr,
					.rkey = node.peer.rkey), DONE(.local = node.counter)));
	ASSERT_OK(counter_done(node.counter));
	EXPECT_EQ(-1, buf_differs(&node.buf, 0, two.len, 22, 0));
	ASSERT_OK(say(peer.fd));
	EXPECT_OK(peer_end(&peer));
	EXPECT_OK(node_close(&node));
}

TEST_HARNESS_MAIN
