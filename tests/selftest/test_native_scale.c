// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Many objects, many processes, and what they cost. Figures are printed. */
#include <sys/resource.h>

#include "native.h"

#define CONTEXTS	1000
#define COUNTERS	10000
#define ENDPOINTS	10000
#define TYPES		10000
#define PROCESSES	200

static long mem_free_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[200];
	long kb, sum = 0;

	/* what the page cache took in the meantime is not ours */
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemFree: %ld", &kb) == 1 ||
		    sscanf(line, "Cached: %ld", &kb) == 1 ||
		    sscanf(line, "Buffers: %ld", &kb) == 1)
			sum += kb;
	if (f)
		fclose(f);
	return sum;
}

FIXTURE(scale)
{
	struct nbed bed;
	long before;
};

static int many_files(void)
{
	struct rlimit limit = { 65536, 65536 };

	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

/* Objects of earlier tests leave room in the kernel's slabs: give it back. */
static void shrink_slabs(void)
{
	if (system("for i in /sys/kernel/slab/*/shrink; do echo 1 >$i; done 2>/dev/null"))
		fprintf(stderr, "# the kernel's slabs cannot be shrunk\n");
}

FIXTURE_SETUP(scale)
{
	NEED_NATIVE();
	if (many_files())
		SKIP(return, "only root may open so many files");
	shrink_slabs();
	ASSERT_OK(nbed_open(&self->bed, 4096, NULL));
	self->before = mem_free_kb();
}

FIXTURE_TEARDOWN(scale)
{
	EXPECT_OK(nbed_close(&self->bed));
}

/* How much memory is gone since the set-up, for each of @n. */
static void print_cost(struct __test_metadata *_metadata,
		       FIXTURE_DATA(scale) *self, const char *what, int n)
{
	TH_LOG("%d %s: %ld bytes each", n, what,
	       (self->before - mem_free_kb()) * 1024 / n);
}

TEST_F(scale, contexts)
{
	struct vrnic_context **c = calloc(CONTEXTS, sizeof(*c));
	struct vrnic_endpoint *to;
	struct vrnic_address address;
	struct vrnic_counter *counter = self->bed.a.counter;
	int i, n = scaled(CONTEXTS);

	ASSERT_NE(NULL, c);
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_context_create(self->bed.b.client, CONTEXT(),
					       &c[i])) TH_LOG("context %d", i);
	print_cost(_metadata, self, "contexts of default size", n);
	/* each can be reached, and none is another */
	for (i = 0; i < n; i += 37) {
		vrnic_context_address(c[i], &address);
		ASSERT_OK(vrnic_endpoint_create(self->bed.a.context, &address,
						&to));
		ASSERT_OK(vrnic_send(to, SEND(.id = 1, .header = "x", .header_len = 1),
				     DONE(.remote = counter)));
		ASSERT_OK(counter_done(counter));
		EXPECT_EQ(1, vrnic_context_arm(c[i]));
		if (i + 1 < n)
			EXPECT_EQ(0, vrnic_context_arm(c[i + 1]));
		ASSERT_OK(vrnic_endpoint_destroy(to));
	}
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_context_destroy(c[i]));
	free(c);
}

TEST_F(scale, counters)
{
	struct vrnic_counter **c = calloc(COUNTERS, sizeof(*c));
	int i, n = scaled(COUNTERS);

	ASSERT_NE(NULL, c);
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_counter_create(self->bed.b.client,
					       VRNIC_COUNTER_PEERS, &c[i]))
			TH_LOG("counter %d", i);
	print_cost(_metadata, self, "counters", n);
	for (i = 0; i < n; i++)
		vrnic_counter_set(c[i], i);
	for (i = 0; i < n; i += 101) {
		ASSERT_OK(nbed_put(&self->bed, 0, 0, 8,
				   DONE(.target = vrnic_counter_number(c[i]),
					.remote = self->bed.a.counter)));
		ASSERT_OK(counter_done(self->bed.a.counter));
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(i % 101 ? i : i - 8, vrnic_counter_read(c[i]));
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_counter_destroy(c[(i * 7919) % n]));
	free(c);
}

TEST_F(scale, endpoints)
{
	struct vrnic_endpoint **to = calloc(ENDPOINTS, sizeof(*to));
	struct vrnic_address address;
	int i, n = scaled(ENDPOINTS);

	ASSERT_NE(NULL, to);
	vrnic_context_address(self->bed.b.context, &address);
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_endpoint_create(self->bed.a.context, &address,
						&to[i])) TH_LOG("endpoint %d", i);
	print_cost(_metadata, self, "endpoints", n);
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_endpoint_destroy(to[i]));
	free(to);
}

TEST_F(scale, types)
{
	struct vrnic_type **t = calloc(TYPES, sizeof(*t));
	int i, n = scaled(TYPES);

	ASSERT_NE(NULL, t);
	for (i = 0; i < n; i++) {
		ASSERT_OK(vrnic_type_create(self->bed.a.client, &t[i]));
		ASSERT_OK(vrnic_type_add_simple(t[i], 8, 0, 10, 16 + i % 5));
		ASSERT_OK(vrnic_type_complete(t[i]));
	}
	print_cost(_metadata, self, "types of one row", n);
	/* all pairs with one of them: the tables that are kept are bounded */
	for (i = 0; i < n; i++) {
		ASSERT_OK(vrnic_put_typed(self->bed.a.to, TYPED(.local = self->bed.a.buf.addr,
								.mr = self->bed.a.buf.mr,
								.local_type = t[i],
								.remote = self->bed.a.peer.addr,
								.rkey = self->bed.a.peer.rkey,
								.remote_type = t[n - 1 - i],
								.mode = VRNIC_TYPED_AUTO),
					  DONE(.remote = self->bed.a.counter)));
		ASSERT_OK(counter_done(self->bed.a.counter));
	}
	print_cost(_metadata, self, "types and their common tables", n);
	for (i = 0; i < n; i++)
		ASSERT_OK(vrnic_type_destroy(t[i]));
	free(t);
}

/* A context has a file: as many as the process may have, then a clear error. */
TEST_F(scale, runs_out_of_files)
{
	struct vrnic_context *c[200];
	struct rlimit limit = { 100, 65536 };
	int i, n, ret = 0;

	ASSERT_OK(setrlimit(RLIMIT_NOFILE, &limit));
	for (n = 0; n < 200 && !ret; n++)
		ret = vrnic_context_create(self->bed.a.client, CONTEXT(), &c[n]);
	EXPECT_EQ(-EMFILE, ret);
	for (i = 0; i < n - 1; i++)
		EXPECT_OK(vrnic_context_destroy(c[i]));
	ASSERT_OK(vrnic_context_create(self->bed.a.client, CONTEXT(), &c[0]));
	EXPECT_OK(vrnic_context_destroy(c[0]));
}

/* Each puts into one memory, counts down one counter, and sends a message. */
static int one_process(int fd, const void *arg)
{
	struct node node = {};
	int task = *(const int *)arg;
	int ret = node_open(&node, 64, CONTEXT(.task = task));

	if (!ret)
		ret = node_meet(&node, fd);
	/* all have met before the first one begins */
	if (!ret)
		ret = hear(fd);
	if (ret)
		return ret;
	*(uint64_t *)node.buf.addr = task + 1;
	ret = vrnic_put(node.to, WR(.local = node.buf.addr, .mr = node.buf.mr, .length = 8,
				    .remote = node.peer.addr + 8 * task, .rkey = node.peer.rkey),
			DONE(.target = node.peer.counter));
	if (!ret)
		ret = vrnic_send(node.to, SEND(.id = 1, .header = &task,
					       .header_len = sizeof(task)),
				 DONE(.remote = node.counter));
	if (!ret)
		ret = counter_done(node.counter);
	return ret ? ret : node_close(&node);
}

struct roll {
	int count;
	bool there[PROCESSES];
};

static void call_roll(struct vrnic_context *context,
		      const struct vrnic_message *m, void *arg)
{
	struct roll *roll = arg;
	int task;

	memcpy(&task, m->header, sizeof(task));
	roll->there[task] = true;
	roll->count++;
}

TEST(processes)
{
	struct peer *peers = calloc(PROCESSES, sizeof(*peers));
	struct roll roll = {};
	struct node node = {};
	int i, n = scaled(PROCESSES);
	long before;

	NEED_NATIVE();
	ASSERT_NE(NULL, peers);
	before = mem_free_kb();
	for (i = 0; i < n; i++)
		ASSERT_OK(peer_start(&peers[i], one_process, &i));
	ASSERT_OK(node_open(&node, 8 * PROCESSES, NULL));
	ASSERT_OK(vrnic_dispatch_set(node.context, 1, call_roll, &roll));
	vrnic_counter_set(node.open, 8 * n);
	for (i = 0; i < n; i++) {
		if (node.to)
			ASSERT_OK(vrnic_endpoint_destroy(node.to));
		ASSERT_OK(node_meet(&node, peers[i].fd)) TH_LOG("process %d", i);
	}
	TH_LOG("%d processes: %ld KiB each, all in all", n,
	       (before - mem_free_kb()) / n);
	for (i = 0; i < n; i++)
		ASSERT_OK(say(peers[i].fd));
	ASSERT_OK(advance_until(node.context, &roll.count, n));
	EXPECT_OK(counter_done(node.open));
	for (i = 0; i < n; i++) {
		EXPECT_OK(peer_end(&peers[i]));
		EXPECT_TRUE(roll.there[i]);
		EXPECT_EQ(i + 1, ((uint64_t *)node.buf.addr)[i]);
	}
	EXPECT_OK(node_close(&node));
	free(peers);
}

TEST_HARNESS_MAIN
