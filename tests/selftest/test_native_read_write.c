// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* S1: read and write of memory that nobody registered, with byte counters. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "native.h"

#define LEN	(1 << 20)

NBED(read_write, LEN, .inject_slots = 64);

static int read_to(struct nbed *bed, void *local, size_t len)
{
	return vrnic_read(bed->a.to, WR(.local = local, .length = len, .remote = bed->a.peer.addr,
					.rkey = bed->a.peer.rkey), DONE(.local = bed->a.counter));
}

static int write_from(struct nbed *bed, const void *local, size_t len)
{
	return vrnic_write(bed->a.to, WR(.local = (void *)local, .length = len,
					 .remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			   DONE(.local = bed->a.counter));
}

static const size_t lengths[] = {
	1, 7, 8, 9, 63, 64, 4095, 4096, 4097, 65536, LEN - 1, LEN,
};

/* Memory of every kind: on the heap, the stack, in a file, shared. */
struct memories {
	uint8_t *heap, *shared, *file;
	uint8_t stack[16384];
	FILE *f;
};

static int memories_open(struct memories *m)
{
	m->heap = malloc(LEN + 64);
	m->shared = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	m->f = tmpfile();
	if (!m->heap || m->shared == MAP_FAILED || !m->f ||
	    ftruncate(fileno(m->f), LEN))
		return -ENOMEM;
	m->file = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
		       fileno(m->f), 0);
	return m->file == MAP_FAILED ? -ENOMEM : 0;
}

static void memories_close(struct memories *m)
{
	free(m->heap);
	munmap(m->shared, LEN);
	munmap(m->file, LEN);
	fclose(m->f);
}

TEST_F(read_write, s1_1_read_unregistered)
{
	struct nbed *bed = &self->bed;
	struct memories m;
	unsigned int i, j;

	ASSERT_OK(memories_open(&m));
	buf_fill(&bed->b.buf, 11);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint8_t *to[] = {
			m.heap + i, m.shared, m.file,
			lengths[i] <= sizeof(m.stack) ? m.stack : m.heap,
		};

		for (j = 0; j < ARRAY_SIZE(to); j++) {
			memset(to[j], 0xee, lengths[i]);
			ASSERT_OK(read_to(bed, to[j], lengths[i]));
			ASSERT_OK(counter_done(bed->a.counter));
			EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
			EXPECT_OK(memcmp(to[j], bed->b.buf.addr, lengths[i]))
				TH_LOG("kind %u, %zu bytes", j, lengths[i]);
		}
	}
	memories_close(&m);
}

/* The target process sleeps: its engine serves, and its memory is read. */
static int sleeping_target(int fd, const void *arg)
{
	struct node node = {};
	int ret = node_open(&node, LEN, NULL);

	if (ret)
		return ret;
	buf_fill(&node.buf, 12);
	ret = node_meet(&node, fd);
	if (!ret)
		ret = hear(fd);
	if (!ret && buf_differs(&node.buf, 0, LEN, 13, 0) >= 0)
		ret = -EBADMSG;
	return ret ? ret : node_close(&node);
}

TEST(s1_2_peer_does_nothing)
{
	struct buf plain = {};
	struct node node = {};
	struct peer peer;

	NEED_NATIVE();
	ASSERT_OK(peer_start(&peer, sleeping_target, NULL));
	ASSERT_OK(node_open(&node, 4096, NULL));
	ASSERT_OK(node_meet(&node, peer.fd));
	ASSERT_OK(buf_open(&plain, NULL, LEN, 3, 0));
	ASSERT_OK(vrnic_read(node.to, WR(.local = plain.addr, .length = LEN,
					 .remote = node.peer.addr, .rkey = node.peer.rkey),
			     DONE(.local = node.counter)));
	ASSERT_OK(counter_done(node.counter));
	EXPECT_EQ(-1, buf_differs(&plain, 0, LEN, 12, 0));
	buf_fill(&plain, 13);
	ASSERT_OK(vrnic_write(node.to, WR(.local = plain.addr, .length = LEN,
					  .remote = node.peer.addr, .rkey = node.peer.rkey),
			      DONE(.local = node.counter)));
	ASSERT_OK(counter_done(node.counter));
	EXPECT_TRUE(buf_guards_intact(&plain));
	ASSERT_OK(say(peer.fd));
	EXPECT_OK(peer_end(&peer));
	buf_close(&plain);
	EXPECT_OK(node_close(&node));
}

TEST_F(read_write, s1_3_write_unregistered)
{
	struct nbed *bed = &self->bed;
	uint8_t *plain = malloc(LEN);
	unsigned int i;

	ASSERT_NE(NULL, plain);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(plain, i + 1, LEN);
		memset(bed->b.buf.addr, 0, LEN);
		ASSERT_OK(write_from(bed, plain, lengths[i]));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_OK(memcmp(plain, bed->b.buf.addr, lengths[i]));
		EXPECT_EQ(-1, buf_is_not(&bed->b.buf, lengths[i],
					 LEN - lengths[i], 0));
	}
	free(plain);
}

/* Constant data is written too: the engine only reads it. */
TEST_F(read_write, s1_3_write_from_read_only_memory)
{
	struct nbed *bed = &self->bed;
	void *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	memset(map, 0x3c, 8192);
	ASSERT_OK(mprotect(map, 8192, PROT_READ));
	ASSERT_OK(write_from(bed, map, 8192));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, 8192, 0x3c));
	munmap(map, 8192);
}

TEST_F(read_write, s1_4_told_by_wait_poll_or_load)
{
	struct nbed *bed = &self->bed;
	struct vrnic_counter *counter = bed->a.counter;
	uint64_t end = now_ns() + WAIT_NS;
	uint8_t *plain = malloc(LEN);

	ASSERT_NE(NULL, plain);
	ASSERT_OK(read_to(bed, plain, LEN));
	EXPECT_OK(vrnic_counter_wait(counter, 0, WAIT_NS));

	while (readable(vrnic_counter_fd(counter), 0)) {
		uint64_t value;

		ASSERT_EQ(8, read(vrnic_counter_fd(counter), &value, 8));
	}
	ASSERT_OK(read_to(bed, plain, LEN));
	EXPECT_TRUE(readable(vrnic_counter_fd(counter), WAIT_SECONDS * 1000));
	EXPECT_EQ(0, vrnic_counter_read(counter));

	ASSERT_OK(read_to(bed, plain, LEN));
	while (vrnic_counter_read(counter) && now_ns() < end)
		sched_yield();
	EXPECT_EQ(0, vrnic_counter_read(counter));
	free(plain);
}

static int failed(struct vrnic_counter *counter, struct vrnic_error *error)
{
	int ret = counter_done(counter);

	if (ret != -EIO)
		return ret ? ret : -ENODATA;
	return vrnic_counter_error(counter, error) == 1 ? 0 : -ERANGE;
}

/* After an error the counter is set, and the same request works. */
static bool retry_works(struct nbed *bed, void *plain)
{
	vrnic_counter_set(bed->a.counter, 0);
	return !read_to(bed, plain, LEN) && !counter_done(bed->a.counter) &&
	       !memcmp(plain, bed->b.buf.addr, LEN) &&
	       !vrnic_counter_error(bed->a.counter, NULL);
}

/* As every operation: with a callback, a cookie, and the other counters. */
TEST_F(read_write, told_by_callback)
{
	struct nbed *bed = &self->bed;
	struct told told = {};
	uint8_t plain[64];

	buf_fill(&bed->b.buf, 16);
	vrnic_counter_add(bed->b.open, sizeof(plain));
	ASSERT_OK(vrnic_read(bed->a.to, WR(.local = plain, .length = sizeof(plain),
					   .remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			     DONE(TELL(&told), .cookie = 77, .remote = bed->a.counter,
				  .target = bed->a.peer.counter, .flags = VRNIC_QUEUE)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_EQ(VRNIC_NOP_GET, told.status.opcode);
	EXPECT_EQ(77, told.status.cookie);
	EXPECT_EQ(sizeof(plain), told.status.value);
	EXPECT_OK(memcmp(plain, bed->b.buf.addr, sizeof(plain)));
	EXPECT_OK(counter_done(bed->a.counter));
	EXPECT_OK(counter_done(bed->b.open));
	memset(plain, 0xa5, sizeof(plain));
	ASSERT_OK(vrnic_write(bed->a.to, WR(.local = plain, .length = sizeof(plain),
					    .remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			      DONE(TELL(&told), .cookie = 78)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 2));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_EQ(VRNIC_NOP_PUT, told.status.opcode);
	EXPECT_EQ(78, told.status.cookie);
	EXPECT_OK(memcmp(plain, bed->b.buf.addr, sizeof(plain)));
}

TEST_F(read_write, s1_5_remote_address_invalid_then_retry)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	uint8_t *plain = malloc(LEN);

	ASSERT_NE(NULL, plain);
	buf_fill(&bed->b.buf, 15);
	ASSERT_OK(vrnic_read(bed->a.to, WR(.local = plain, .length = LEN,
					   .remote = bed->a.peer.addr + 1,
					   .rkey = bed->a.peer.rkey),
			     DONE(.local = bed->a.counter)));
	ASSERT_OK(failed(bed->a.counter, &error));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
	EXPECT_EQ(VRNIC_VERR_BOUNDS, error.vendor_err);
	EXPECT_EQ(VRNIC_NOP_GET, error.opcode);
	EXPECT_EQ(0, error.placed);
	EXPECT_TRUE(retry_works(bed, plain));
	free(plain);
}

TEST_F(read_write, s1_5_no_permission_then_retry)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	uint8_t *plain = malloc(LEN);

	ASSERT_NE(NULL, plain);
	ASSERT_OK(vrnic_write(bed->a.to, WR(.local = plain, .length = LEN,
					    .remote = bed->a.peer.addr,
					    .rkey = bed->a.peer.rkey ^ 1),
			      DONE(.local = bed->a.counter)));
	ASSERT_OK(failed(bed->a.counter, &error));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, error);
	EXPECT_EQ(VRNIC_VERR_KEY, error.vendor_err);
	EXPECT_EQ(VRNIC_NOP_PUT, error.opcode);
	EXPECT_TRUE(retry_works(bed, plain));
	free(plain);
}

/* Not mapped, kernel memory, half mapped, read-only: so much is placed. */
TEST_F(read_write, s1_5_local_memory_gone_then_retry)
{
	struct nbed *bed = &self->bed;
	struct vrnic_error error = {};
	uint8_t *map = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *plain = malloc(LEN);
	struct {
		void *at;
		size_t len, placed;
	} bad[] = {
		{ map + 8192, 4096, 0 },		/* hole */
		{ map + 4096, 8192, 4096 },		/* runs into it */
		{ map + 8000, 500, 192 },		/* runs into it */
		{ (void *)0xffffffff81000000, 64, 0 },	/* kernel */
		{ (void *)64, 64, 0 },			/* null */
		{ (void *)-64, 63, 0 },			/* the very last */
		{ map + 12288, 64, 0 },			/* read-only */
	};
	unsigned int i;

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_NE(NULL, plain);
	buf_fill(&bed->b.buf, 16);
	munmap(map + 8192, 4096);
	ASSERT_OK(mprotect(map + 12288, 4096, PROT_READ));
	EXPECT_EQ(-EINVAL, read_to(bed, (void *)-64, 128));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_OK(read_to(bed, bad[i].at, bad[i].len));
		ASSERT_OK(failed(bed->a.counter, &error))
			TH_LOG("case %u", i);
		EXPECT_FAILED(IBV_WC_LOC_PROT_ERR, error);
		EXPECT_EQ(VRNIC_VERR_FAULT, error.vendor_err);
		EXPECT_EQ(bad[i].placed, error.placed) TH_LOG("case %u", i);
		/* the counter is exact to the end */
		EXPECT_EQ(bad[i].len - error.placed,
			  vrnic_counter_read(bed->a.counter));
		EXPECT_TRUE(retry_works(bed, plain));
	}
	munmap(map, 16384);
	free(plain);
}

static int lives_a_moment(int fd, const void *arg)
{
	struct node node = {};
	int ret = node_open(&node, LEN, NULL);

	if (!ret)
		ret = node_meet(&node, fd);
	pause();
	return ret;
}

TEST(s1_5_peer_gone_then_another)
{
	struct vrnic_error error = {};
	struct node node = {};
	uint8_t *plain = malloc(LEN);
	struct peer peer;
	int i;

	NEED_NATIVE();
	ASSERT_NE(NULL, plain);
	for (i = 0; i < 3; i++) {
		ASSERT_OK(peer_start(&peer, lives_a_moment, NULL));
		if (!i)
			ASSERT_OK(node_open(&node, 4096, NULL));
		ASSERT_OK(node_meet(&node, peer.fd));
		ASSERT_OK(vrnic_read(node.to, WR(.local = plain, .length = LEN,
						 .remote = node.peer.addr, .rkey = node.peer.rkey),
				     DONE(.local = node.counter)));
		ASSERT_OK(counter_done(node.counter));
		ASSERT_OK(peer_kill(&peer));
		ASSERT_OK(vrnic_read(node.to, WR(.local = plain, .length = LEN,
						 .remote = node.peer.addr, .rkey = node.peer.rkey),
				     DONE(.local = node.counter)));
		ASSERT_OK(failed(node.counter, &error));
		EXPECT_NE(IBV_WC_SUCCESS, error.status);
		EXPECT_TRUE(error.vendor_err == VRNIC_VERR_PEER ||
			    error.vendor_err == VRNIC_VERR_KEY)
			TH_LOG("%s", vrnic_vendor_err_str(error.vendor_err));
		vrnic_counter_set(node.counter, 0);
		ASSERT_OK(vrnic_endpoint_destroy(node.to));
		node.to = NULL;
	}
	free(plain);
	EXPECT_OK(node_close(&node));
}

/* While a large transfer runs the counter only falls, and never below zero. */
struct sampler {
	struct vrnic_counter *counter;
	int64_t start;
	int bad, distinct;
};

static void *sample(void *arg)
{
	struct sampler *s = arg;
	uint64_t end = now_ns() + WAIT_NS;
	int64_t last = INT64_MAX, value;

	do {
		value = vrnic_counter_read(s->counter);
		s->bad += value > last || value < 0 || value > s->start;
		s->distinct += value != last;
		last = value;
		usleep(20);
	} while (last && !s->bad && now_ns() < end);
	s->bad += !!last;
	return NULL;
}

TEST(s1_6_large_requests_split_and_exact)
{
	size_t len = (size_t)scaled(128) * (1 << 20) + 13;
	struct nbed bed = {};
	struct sampler s = {};
	pthread_t thread;
	uint8_t *plain;

	NEED_NATIVE();
	ASSERT_OK(nbed_open(&bed, len, NULL));
	plain = malloc(len);
	ASSERT_NE(NULL, plain);
	buf_fill(&bed.b.buf, 17);
	s.counter = bed.a.counter;
	s.start = len;
	ASSERT_OK(read_to(&bed, plain, len));
	ASSERT_OK(pthread_create(&thread, NULL, sample, &s));
	ASSERT_OK(counter_done(bed.a.counter));
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(0, s.bad);
	EXPECT_EQ(0, vrnic_counter_read(bed.a.counter));
	EXPECT_OK(memcmp(plain, bed.b.buf.addr, len));
	TH_LOG("%d values of the counter were seen", s.distinct);
	free(plain);
	EXPECT_OK(nbed_close(&bed));
}

/* One counter for many requests, which end in whatever order. */
TEST_F(read_write, s1_6_one_counter_serves_several)
{
	struct nbed *bed = &self->bed;
	uint8_t *plain = malloc(LEN);
	size_t sum = 0;
	int i;

	ASSERT_NE(NULL, plain);
	buf_fill(&bed->b.buf, 18);
	for (i = 0; i < 16; i++) {
		ASSERT_OK(vrnic_read(bed->a.to, WR(.local = plain + sum, .length = 1000 * i + 1,
						   .remote = bed->a.peer.addr + sum,
						   .rkey = bed->a.peer.rkey),
				     DONE(.local = bed->a.counter)));
		sum += 1000 * i + 1;
	}
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
	EXPECT_OK(memcmp(plain, bed->b.buf.addr, sum));
	free(plain);
}

/* What peers get to see are handles that cannot be guessed from each other. */
TEST_F(read_write, s1_7_handles_are_opaque)
{
	struct vrnic_counter *counter[8];
	struct vrnic_address one, two;
	uint32_t n[8];
	int i, near = 0;

	vrnic_context_address(self->bed.a.context, &one);
	vrnic_context_address(self->bed.b.context, &two);
	EXPECT_NE(one.secret, two.secret);
	EXPECT_NE(0, one.secret);
	EXPECT_NE(one.fifo, two.fifo);
	for (i = 0; i < 8; i++) {
		ASSERT_OK(vrnic_counter_create(self->bed.a.client, 0, &counter[i]));
		n[i] = vrnic_counter_number(counter[i]);
		EXPECT_NE(0, n[i]);
		near += i && (n[i] - n[i - 1] == 1 || n[i - 1] - n[i] == 1);
	}
	EXPECT_LE(near, 1);
	for (i = 0; i < 8; i++)
		EXPECT_OK(vrnic_counter_destroy(counter[i]));
}

/* A peer's number of a counter that is not open to it moves nothing. */
TEST_F(read_write, s1_7_counter_of_the_target_is_validated)
{
	struct nbed *bed = &self->bed;
	uint32_t bad[] = {
		vrnic_counter_number(bed->b.counter),	/* not open */
		vrnic_counter_number(bed->a.counter),	/* not the target's */
		vrnic_counter_number(bed->b.open) ^ 1, 1, ~0U,
	};
	struct vrnic_error error = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_OK(nbed_put(bed, 0, 0, 64,
				   DONE(.remote = bed->a.counter,
					.target = bad[i])));
		ASSERT_OK(failed(bed->a.counter, &error))
			TH_LOG("case %u", i);
		EXPECT_NE(IBV_WC_SUCCESS, error.status);
		EXPECT_EQ(VRNIC_VERR_COUNTER, error.vendor_err);
		vrnic_counter_set(bed->a.counter, 0);
	}
	EXPECT_EQ(0, vrnic_counter_read(bed->b.counter));
	EXPECT_EQ(0, vrnic_counter_read(bed->b.open));
}

/* Pages that the machine has pinned now, by the kernel's two counts; -1: unknown. */
static long long pinned(long long *ever)
{
	long long value, acquired = -1, released = -1;
	FILE *f = fopen("/proc/vmstat", "r");
	char name[64];

	while (f && fscanf(f, "%63s %lld", name, &value) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			acquired = value;
		if (!strcmp(name, "nr_foll_pin_released"))
			released = value;
	}
	if (f)
		fclose(f);
	*ever = acquired;
	return released < 0 ? -1 : acquired - released;
}

/* What the processors count for themselves is added up once a second, or now. */
static long long pinned_after_a_while(long long *ever)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w");

	if (f) {
		fputs("1", f);
		fclose(f);
	}
	usleep(2200000);
	return pinned(ever);
}

/*
 * Memory is pinned while the engine uses it, and not a moment longer. What the
 * process moves itself is translated by its own page tables; so let it be little.
 */
TEST_F(read_write, s1_1_unpins_at_zero)
{
	struct nbed *bed = &self->bed;
	uint8_t *plain = malloc(LEN);
	long long before, after, ever, now;
	long was = module_param("caller_bytes");
	int i;

	ASSERT_NE(NULL, plain);
	if (set_module_param("caller_bytes", 65536))
		SKIP(return, "only root can change the module's parameters");
	before = pinned_after_a_while(&ever);
	ASSERT_GE(before, 0);
	for (i = 0; i < 100; i++) {
		ASSERT_OK(read_to(bed, plain, LEN));
		ASSERT_OK(counter_done(bed->a.counter));
	}
	after = pinned_after_a_while(&now);
	EXPECT_OK(set_module_param("caller_bytes", was));
	EXPECT_GE(now - ever, 100 * (LEN - 2 * 65536) / 4096);
	EXPECT_EQ(before, after);
	free(plain);
}

/*
 * Pages that had to be brought in for an operation are not those of the next one: other memory may
 * be mapped there by then.
 */
TEST_F(read_write, s1_1_pages_are_those_of_one_operation)
{
	struct nbed *bed = &self->bed;
	uint8_t *map, *at = NULL;
	int i;

	for (i = 1; i <= 3; i++) {
		map = mmap(at, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
		ASSERT_NE(MAP_FAILED, map);
		at = map;
		memset(bed->b.buf.addr, i, 4096);
		ASSERT_OK(read_to(bed, map, 4096));
		ASSERT_OK(counter_done(bed->a.counter));
		EXPECT_EQ(i, map[0]);
		EXPECT_OK(memcmp(map, bed->b.buf.addr, 4096));
	}
	munmap(at, 4096);
}

/* Unmapped while it runs: the pages stay until they are not used any more. */
TEST_F(read_write, memory_is_unmapped_under_way)
{
	struct nbed *bed = &self->bed;
	uint8_t *map;
	int i, ret;

	for (i = 0; i < 50; i++) {
		map = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, map);
		if (i & 1)
			memset(map, 1, LEN);
		ASSERT_OK(i & 2 ? read_to(bed, map, LEN) :
				  write_from(bed, map, LEN));
		munmap(map, LEN);
	}
	/* on a fast bed all is done; what was not pinned in time has failed */
	counter_done(bed->a.counter);
	vrnic_counter_set(bed->a.counter, 0);
	ret = vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
	EXPECT_TRUE(!ret || ret == -EIO);
	EXPECT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
}

TEST_HARNESS_MAIN
