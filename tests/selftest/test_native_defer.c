// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Operations that are deferred: the call that posts one returns, and a thread of the kernel moves
 * the data. The kernel's trace says which task executed what.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "native.h"
#include "native_trace.h"

#define EVENT	"vrnic_native_execute"
#define LEN	(1 << 20)
#define SMALL	64

/* How often something of a context was executed: by this thread, and by others. */
struct ran {
	int here, elsewhere;
};

struct look {
	uint32_t fifo;
	struct ran *ran;
};

static void look_at(const char *line, void *arg)
{
	const char *cpu = strstr(line, " ["), *what = strstr(line, EVENT ": fifo=");
	struct look *look = arg;

	if (!cpu || !what || strtoul(strchr(what, '=') + 1, NULL, 10) != look->fifo)
		return;
	while (cpu > line && *cpu == ' ')
		cpu--;
	while (cpu > line && *cpu != '-')
		cpu--;
	if (strtol(cpu + 1, NULL, 10) == syscall(SYS_gettid))
		look->ran->here++;
	else
		look->ran->elsewhere++;
}

/* What is done was executed, but the thread that did it may have yet to write the trace. */
static int who_ran(struct vrnic_context *context, struct ran *ran)
{
	struct look look = { .ran = ran };
	struct vrnic_address address;
	uint64_t end = now_ns() + WAIT_NS;
	int ret;

	vrnic_context_address(context, &address);
	look.fifo = address.fifo;
	memset(ran, 0, sizeof(*ran));
	do {
		ret = trace_read(look_at, &look);
	} while (!ret && !ran->here && !ran->elsewhere && now_ns() < end);
	return ret;
}

static int traced_open(struct nbed *bed, const struct vrnic_context_attr *attr)
{
	int ret = nbed_open(bed, LEN, attr);

	if (ret)
		return ret;
	buf_fill(&bed->a.buf, 1);
	return trace_there() ? trace_begin(EVENT) : 0;
}

static int traced_close(struct nbed *bed)
{
	trace_end(EVENT);
	return nbed_close(bed);
}

FIXTURE(defer)
{
	struct nbed bed;
};

FIXTURE_SETUP(defer)
{
	NEED_NATIVE();
	ASSERT_OK(traced_open(&self->bed, CONTEXT(.inject_slots = 64)));
}

FIXTURE_TEARDOWN(defer)
{
	EXPECT_OK(traced_close(&self->bed));
}

/* This thread executes what it posts, unless it says otherwise. */
TEST_F(defer, not_by_default)
{
	struct nbed *bed = &self->bed;
	struct ran ran;

	if (!trace_there())
		SKIP(return, "needs tracefs");
	ASSERT_OK(nbed_put(bed, 0, 0, LEN / 16, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	ASSERT_OK(who_ran(bed->a.context, &ran));
	EXPECT_LT(0, ran.here);
}

TEST_F(defer, a_thread_of_the_kernel_executes)
{
	struct nbed *bed = &self->bed;
	struct ran ran;

	if (!trace_there())
		SKIP(return, "needs tracefs");
	ASSERT_OK(nbed_put(bed, 0, 0, LEN / 16,
			   DONE(.remote = bed->a.counter, .flags = VRNIC_DEFER)));
	ASSERT_OK(counter_done(bed->a.counter));
	ASSERT_OK(who_ran(bed->a.context, &ran));
	EXPECT_EQ(0, ran.here);
	EXPECT_LT(0, ran.elsewhere);
	EXPECT_TRUE(nbed_arrived(bed, 1, 0, 0, LEN / 16));
}

/* To wake a thread takes longer than to copy a few bytes. */
TEST_F(defer, small_ones_are_executed_at_once)
{
	struct nbed *bed = &self->bed;
	struct ran ran;

	if (!trace_there())
		SKIP(return, "needs tracefs");
	ASSERT_OK(nbed_put(bed, 0, 0, SMALL,
			   DONE(.remote = bed->a.counter, .flags = VRNIC_DEFER)));
	ASSERT_OK(counter_done(bed->a.counter));
	ASSERT_OK(who_ran(bed->a.context, &ran));
	EXPECT_LT(0, ran.here);
}

/* The queue of what finds no room keeps in mind what is deferred. */
TEST_F(defer, queued)
{
	const unsigned int nr = 3 * 64, len = LEN / 64;
	struct nbed *bed = &self->bed;
	struct told told = {};
	unsigned int i;

	for (i = 0; i < nr; i++)
		ASSERT_OK(nbed_put(bed, i % 64 * len, i % 64 * len, len,
				   DONE(TELL(&told), .flags = VRNIC_DEFER | VRNIC_QUEUE)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, nr));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_TRUE(nbed_arrived(bed, 1, 0, 0, LEN));
}

/* What is posted behind a deferred operation stays behind it. */
TEST_F(defer, order_is_kept)
{
	struct nbed *bed = &self->bed;
	int round;

	for (round = 1; round <= 20; round++) {
		buf_fill(&bed->a.buf, round);
		ASSERT_OK(nbed_put(bed, 0, 0, LEN, DONE(.flags = VRNIC_DEFER)));
		ASSERT_OK(nbed_put(bed, 0, LEN - SMALL, SMALL, NULL));
		ASSERT_OK(vrnic_fence_wait(bed->a.to, WAIT_NS, NULL));
		ASSERT_TRUE(nbed_arrived(bed, round, 0, 0, LEN - SMALL));
		ASSERT_TRUE(nbed_arrived(bed, round, 0, LEN - SMALL, SMALL));
	}
}

/* Memory that is not registered, and not even there: no thread of the engine waits for it. */
TEST_F(defer, memory_that_is_not_there)
{
	struct nbed *bed = &self->bed;
	struct ran ran;
	void *page;

	page = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, page);
	memset(bed->b.buf.addr, 1, LEN);
	ASSERT_OK(vrnic_write(bed->a.to, WR(.local = page, .length = LEN,
					    .remote = bed->a.peer.addr, .rkey = bed->a.peer.rkey),
			      DONE(.remote = bed->a.counter, .flags = VRNIC_DEFER)));
	ASSERT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(-1, buf_is_not(&bed->b.buf, 0, LEN, 0));
	if (trace_there()) {
		ASSERT_OK(who_ran(bed->a.context, &ran));
		EXPECT_EQ(0, ran.here);
	}
	munmap(page, LEN);
}

/* A failure is told as that of any other. */
TEST_F(defer, failures)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					  .length = LEN, .remote = bed->a.peer.addr + 1,
					  .rkey = bed->a.peer.rkey),
			    DONE(TELL(&told), .flags = VRNIC_DEFER)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, 1));
	EXPECT_FAILED(IBV_WC_REM_ACCESS_ERR, told.status);
}

FIXTURE(defer_context)
{
	struct nbed bed;
};

FIXTURE_SETUP(defer_context)
{
	NEED_NATIVE();
	ASSERT_OK(traced_open(&self->bed, CONTEXT(.flags = VRNIC_CONTEXT_DEFER)));
}

FIXTURE_TEARDOWN(defer_context)
{
	EXPECT_OK(traced_close(&self->bed));
}

TEST_F(defer_context, all_operations)
{
	struct nbed *bed = &self->bed;
	struct ran ran;

	if (!trace_there())
		SKIP(return, "needs tracefs");
	ASSERT_OK(nbed_put(bed, 0, 0, LEN / 16, DONE(.remote = bed->a.counter)));
	ASSERT_OK(counter_done(bed->a.counter));
	ASSERT_OK(who_ran(bed->a.context, &ran));
	EXPECT_EQ(0, ran.here);
	EXPECT_LT(0, ran.elsewhere);
	EXPECT_TRUE(nbed_arrived(bed, 1, 0, 0, LEN / 16));
}

TEST_HARNESS_MAIN
