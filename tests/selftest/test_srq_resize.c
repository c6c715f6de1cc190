// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_modify_srq with IBV_SRQ_MAX_WR: no receive is lost or used twice; bad sizes are refused. */
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/vrnic-abi.h>

#include "harness.h"
#include "verbs_raw.h"

#define LEN	4096
#define BYTES	8	/* of a message */

FIXTURE(srq_resize) { struct bed bed; };

FIXTURE_SETUP(srq_resize)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(bed_open(bed, LEN, &(struct pair_opts){ .srq = true }));
	if (!(bed->b->dev->attr->device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		SKIP(return, "the device does not advertise SRQ resize");
}

FIXTURE_TEARDOWN(srq_resize)
{
	EXPECT_OK(bed_close(&self->bed));
}

static int resize(struct bed *bed, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_MAX_WR);
}

static uint32_t size_of(struct bed *bed)
{
	struct ibv_srq_attr attr = {};

	return ibv_query_srq(bed->b->srq, &attr) ? 0 : attr.max_wr;
}

static int post_some(struct bed *bed, int first, int n)
{
	int i, ret = 0;

	for (i = first; i < first + n && !ret; i++)
		ret = post_recv(bed->b, &bed->dst, 0, BYTES, i);
	return ret;
}

/* As many as there is room for: how many that are. */
static int post_all(struct bed *bed, int first)
{
	int n = 0;

	while (n < 1 << 20 && !post_some(bed, first + n, 1))
		n++;
	return n;
}

/* @n messages take the receives @first and so on: 0, or -errno, or the status that failed. */
static int take_some(struct bed *bed, int first, int n)
{
	int i, ret = 0;

	for (i = first; i < first + n && !ret; i++) {
		ret = RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = BYTES);
		if (!ret)
			ret = wait_recv(bed->b);
		if (!ret && bed->b->rwc.wr_id != (uint64_t)i)
			ret = -EILSEQ;
	}
	return ret;
}

TEST_F(srq_resize, grows_with_receives_inside)
{
	struct bed *bed = &self->bed;
	uint32_t before = size_of(bed);

	ASSERT_OK(post_some(bed, 0, 30));
	ASSERT_OK(resize(bed, 500));
	EXPECT_LE(500, size_of(bed));
	EXPECT_LT(before, size_of(bed));
	ASSERT_OK(post_some(bed, 30, 470));
	EXPECT_DONE(take_some(bed, 0, 500));
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
}

TEST_F(srq_resize, shrinks_with_receives_inside)
{
	struct bed *bed = &self->bed;
	int n;

	ASSERT_OK(resize(bed, 500));
	ASSERT_OK(post_some(bed, 0, 7));
	ASSERT_OK(resize(bed, 8));
	EXPECT_LE(8, size_of(bed));
	EXPECT_GT(500, size_of(bed));
	/* there is as much room as it says */
	n = post_all(bed, 7);
	EXPECT_EQ(size_of(bed), 7 + n);
	EXPECT_DONE(take_some(bed, 0, 7 + n));
}

TEST_F(srq_resize, to_what_is_inside)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(resize(bed, 64));
	ASSERT_OK(post_some(bed, 0, 16));
	ASSERT_OK(resize(bed, 16));
	EXPECT_EQ(ENOMEM, post_some(bed, 16, 1));
	EXPECT_DONE(take_some(bed, 0, 16));
}

TEST_F(srq_resize, below_what_is_inside_is_refused)
{
	struct bed *bed = &self->bed;
	uint32_t before;

	ASSERT_OK(resize(bed, 64));
	before = size_of(bed);
	ASSERT_OK(post_some(bed, 0, 17));
	EXPECT_EQ(EINVAL, resize(bed, 16));
	EXPECT_EQ(EINVAL, resize(bed, 1));
	EXPECT_EQ(before, size_of(bed));
	/* it goes on as if nobody had asked */
	EXPECT_DONE(take_some(bed, 0, 1));
	ASSERT_OK(resize(bed, 16));
	EXPECT_DONE(take_some(bed, 1, 16));
	ASSERT_OK(post_some(bed, 17, 4));
	EXPECT_DONE(take_some(bed, 17, 4));
}

TEST_F(srq_resize, empty)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 40; i++) {
		ASSERT_OK(resize(bed, 1 << i % 9));
		ASSERT_OK(post_some(bed, i, 1));
		ASSERT_DONE(take_some(bed, i, 1));
	}
}

/* Neither ring begins at its first slot. */
TEST_F(srq_resize, after_wrapping_around)
{
	struct bed *bed = &self->bed;
	int i, next = 0;

	for (i = 0; i < 30; i++) {
		ASSERT_OK(post_some(bed, next, 50));
		ASSERT_DONE(take_some(bed, next, 37));
		ASSERT_OK(resize(bed, i % 2 ? 64 : 256));
		ASSERT_DONE(take_some(bed, next + 37, 13));
		next += 50;
	}
}

/* A message that waits for a receive gets the first one after the resize. */
TEST_F(srq_resize, while_a_message_waits)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = BYTES));
	usleep(5000);
	ASSERT_OK(resize(bed, 1000));
	ASSERT_OK(post_some(bed, 1, 2));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(1, bed->b->rwc.wr_id);
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_DONE(take_some(bed, 2, 1));
}

TEST_F(srq_resize, bad_sizes_and_masks_are_refused)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .max_wr = 128 };
	uint32_t before = size_of(bed);

	EXPECT_EQ(EINVAL, resize(bed, 0));
	EXPECT_EQ(EINVAL, resize(bed, bed->dev.attr->max_srq_wr + 1));
	EXPECT_EQ(EINVAL, resize(bed, UINT32_MAX));
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_MAX_WR | 1 << 5));
	EXPECT_EQ(before, size_of(bed));
	EXPECT_OK(resize(bed, bed->dev.attr->max_srq_wr));
	EXPECT_EQ(bed->dev.attr->max_srq_wr, size_of(bed));
}

/* ---- the limit ---- */

TEST_F(srq_resize, keeps_the_limit)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct ibv_async_event event;

	ASSERT_OK(post_some(bed, 0, 8));
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_OK(resize(bed, 512));
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(4, attr.srq_limit);
	ASSERT_DONE(take_some(bed, 0, 4));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
	ASSERT_DONE(take_some(bed, 4, 1));
	ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(bed->b->srq, event.element.srq);
	EXPECT_DONE(take_some(bed, 5, 3));
}

TEST_F(srq_resize, below_the_limit_is_refused)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .max_wr = 512, .srq_limit = 300 };
	const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

	EXPECT_EQ(EINVAL, ibv_modify_srq(bed->b->srq,
					 &(struct ibv_srq_attr){ .max_wr = 64, .srq_limit = 65 },
					 both));
	/* both at once, as the new size allows it */
	ASSERT_OK(resize(bed, 512));
	ASSERT_OK(post_some(bed, 0, 300));
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, both));
	EXPECT_EQ(EINVAL, resize(bed, 256));
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(300, attr.srq_limit);
	EXPECT_LE(512, attr.max_wr);
	attr.max_wr = 64;
	attr.srq_limit = 65;
	EXPECT_EQ(EINVAL, ibv_modify_srq(bed->b->srq, &attr, both));
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(300, attr.srq_limit);
}

/* As the new size allows it; the event comes at once if there are too few receives. */
TEST_F(srq_resize, with_a_limit)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .max_wr = 64, .srq_limit = 64 };
	const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
	struct ibv_async_event event;

	ASSERT_OK(post_some(bed, 0, 60));
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, both));
	ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(bed->b->srq, event.element.srq);
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(0, attr.srq_limit);
	EXPECT_EQ(64, attr.max_wr);
	attr.srq_limit = 60;
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, both));
	ASSERT_OK(ibv_query_srq(bed->b->srq, &attr));
	EXPECT_EQ(60, attr.srq_limit);
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
}

/* ---- while others use it ---- */

#define POSTERS		2
#define RESIZERS	2
#define EACH		3000	/* receives of a poster */
#define AHEAD		24	/* messages that wait for receives */

struct worker {
	struct bed *bed;
	pthread_t thread;
	int number;
	const bool *stop;
	int ret, refused, done;
};

static void *post_on(void *arg)
{
	struct worker *w = arg;
	int i, ret;

	for (i = 0; i < EACH && !w->ret; ) {
		ret = post_recv(w->bed->b, &w->bed->dst, 0, BYTES, (uint64_t)w->number << 32 | i);
		if (ret == ENOMEM)
			sched_yield();
		else if (ret)
			w->ret = ret;
		else
			i++;
	}
	return NULL;
}

/* Sizes that are mostly too small for what is inside, or not: either is right. */
static void *resize_on(void *arg)
{
	static const uint32_t sizes[] = { 64, 512, 16, 256, 2048, 32 };
	struct worker *w = arg;
	int i, ret;

	for (i = w->number; !__atomic_load_n(w->stop, __ATOMIC_RELAXED) && !w->ret; i++) {
		ret = resize(w->bed, sizes[i % ARRAY_SIZE(sizes)]);
		if (ret == EINVAL)
			w->refused++;
		else if (ret)
			w->ret = ret;
		else
			w->done++;
		usleep(100);
	}
	return NULL;
}

static int start(struct worker *w, int n, struct bed *bed, const bool *stop,
		 void *(*run)(void *arg))
{
	int i, ret = 0;

	for (i = 0; i < n && !ret; i++) {
		w[i] = (struct worker){ .bed = bed, .number = i, .stop = stop };
		ret = pthread_create(&w[i].thread, NULL, run, &w[i]);
	}
	return ret;
}

static int join(struct worker *w, int n)
{
	int i, ret = 0;

	for (i = 0; i < n; i++)
		ret |= pthread_join(w[i].thread, NULL) ?: w[i].ret;
	return ret;
}

/* Each receive completes once; those of one thread complete in the order of its posts. */
TEST_F(srq_resize, while_threads_post_and_messages_come)
{
	struct worker poster[POSTERS] = {}, resizer[RESIZERS] = {};
	struct bed *bed = &self->bed;
	int i, sent = 0, next[POSTERS] = {};
	bool stop = false;
	uint64_t id;

	ASSERT_OK(start(poster, POSTERS, bed, &stop, post_on));
	ASSERT_OK(start(resizer, RESIZERS, bed, &stop, resize_on));
	for (i = 0; i < POSTERS * EACH; i++) {
		for (; sent < POSTERS * EACH && sent < i + AHEAD; sent++)
			ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
				       .len = BYTES));
		ASSERT_DONE(wait_recv(bed->b));
		id = bed->b->rwc.wr_id;
		ASSERT_GT(POSTERS, id >> 32);
		ASSERT_EQ(next[id >> 32]++, (uint32_t)id);
		ASSERT_DONE(wait_send(bed->a));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	EXPECT_OK(join(poster, POSTERS));
	EXPECT_OK(join(resizer, RESIZERS));
	EXPECT_LT(0, resizer[0].done);
	EXPECT_EQ(0, poll_stray(bed->b->rcq));
	/* nothing was left behind */
	EXPECT_EQ(size_of(bed), post_all(bed, 0));
}

/* With many inside, more than are copied in one go, and the largest descriptors. */
TEST_F(srq_resize, many_are_moved_while_messages_come)
{
	struct bed *bed = &self->bed;
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 4096, .max_sge = bed->dev.attr->max_srq_sge },
	};
	struct pair_opts opts = { .max_wr = 512 };
	struct pair pair = {};
	struct worker resizer = {};
	struct bed other = *bed;
	struct side *b = &pair.b;
	bool stop = false;
	int i, sent = 0;

	/* a pair whose receiver has an SRQ of such descriptors */
	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(ibv_destroy_qp(b->qp));
	b->srq = ibv_create_srq(b->pd, &init);
	ASSERT_NE(NULL, b->srq);
	b->qp = ibv_create_qp(b->pd, &(struct ibv_qp_init_attr){
		.send_cq = b->scq, .recv_cq = b->rcq, .srq = b->srq,
		.qp_type = IBV_QPT_RC, .cap = { 16, 0, 1, 0, 0 } });
	ASSERT_NE(NULL, b->qp);
	ASSERT_OK(pair_connect(&pair));
	other.a = &pair.a;
	other.b = b;
	ASSERT_OK(post_some(&other, 0, 3000));
	resizer = (struct worker){ .bed = &other, .number = 3, .stop = &stop };
	ASSERT_OK(pthread_create(&resizer.thread, NULL, resize_on, &resizer));
	for (i = 0; i < 3000; i++) {
		for (; sent < 3000 && sent < i + 100; sent++)
			ASSERT_OK(POST(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
				       .len = BYTES));
		ASSERT_DONE(wait_recv(b));
		ASSERT_EQ(i, b->rwc.wr_id);
		ASSERT_DONE(wait_send(&pair.a));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	EXPECT_OK(join(&resizer, 1));
	EXPECT_OK(pair_close(&pair));
}

/* ---- what fails ---- */

/*
 * The kernel has moved the receives to a ring for which the process has no address space. So posts
 * fail, and what was posted before is used nevertheless.
 */
TEST_F(srq_resize, no_room_for_the_mapping)
{
	struct bed *bed = &self->bed;
	struct rlimit before, none = {};
	struct ibv_recv_wr wr = {}, *bad;
	int ret;

	ASSERT_OK(post_some(bed, 0, 4));
	ASSERT_OK(getrlimit(RLIMIT_AS, &before));
	none.rlim_max = before.rlim_max;
	ASSERT_OK(setrlimit(RLIMIT_AS, &none));
	ret = resize(bed, 4096);
	ASSERT_OK(setrlimit(RLIMIT_AS, &before));
	EXPECT_EQ(ENOMEM, ret);
	EXPECT_EQ(EIO, ibv_post_srq_recv(bed->b->srq, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	EXPECT_DONE(take_some(bed, 0, 4));
}

/* The command itself, with other sizes and addresses than the provider's. Return: 0 or an errno. */
static int raw_resize(struct ibv_srq *srq, const void *req, size_t req_len, void *resp,
		      size_t resp_len)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} call = {
		.hdr = { .length = sizeof(call), .object_id = UVERBS_OBJECT_SRQ,
			 .method_id = VRNIC_METHOD_SRQ_RESIZE, .num_attrs = 3,
			 .driver_id = VRNIC_DRIVER_ID },
		.attrs = {
			{ .attr_id = VRNIC_ATTR_SRQ_RESIZE_HANDLE, .data = srq->handle },
			{ .attr_id = VRNIC_ATTR_SRQ_RESIZE_REQ, .len = req_len,
			  .data = (uintptr_t)req },
			{ .attr_id = VRNIC_ATTR_SRQ_RESIZE_RESP, .len = resp_len,
			  .data = (uintptr_t)resp },
		},
	};
	int i;

	for (i = 0; i < 3; i++)
		call.attrs[i].flags = UVERBS_ATTR_F_MANDATORY;
	return ioctl(srq->context->cmd_fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
}

/* The core's command has no answer: who resizes by it could not map the new ring. */
static int core_resize(struct ibv_srq *srq, uint32_t max_wr)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq cmd;
	} call = {
		.hdr = { .command = IB_USER_VERBS_CMD_MODIFY_SRQ, .in_words = sizeof(call) / 4 },
		.cmd = { .srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR,
			 .max_wr = max_wr },
	};

	return write(srq->context->cmd_fd, &call, sizeof(call)) == sizeof(call) ? 0 : errno;
}

/* What is refused, or has nowhere to put its answer, leaves the ring as it is. */
TEST_F(srq_resize, bad_commands_change_nothing)
{
	struct vrnic_resize_srq_req req = { .max_wr = 256 };
	struct bed *bed = &self->bed;
	struct ibv_srq *srq = bed->b->srq;
	struct vrnic_ring_info info = {};
	uint32_t before = size_of(bed);

	ASSERT_OK(post_some(bed, 0, 5));
	EXPECT_EQ(EOPNOTSUPP, core_resize(srq, 256));
	EXPECT_EQ(EFAULT, raw_resize(srq, &req, sizeof(req), (void *)16, sizeof(info)));
	EXPECT_EQ(EFAULT, raw_resize(srq, (void *)16, sizeof(req), &info, sizeof(info)));
	EXPECT_NE(0, raw_resize(srq, &req, sizeof(req) - 4, &info, sizeof(info)));
	EXPECT_NE(0, raw_resize(srq, &req, sizeof(req), &info, sizeof(info) - 4));
	req.flags = 2;
	EXPECT_EQ(EOPNOTSUPP, raw_resize(srq, &req, sizeof(req), &info, sizeof(info)));
	req.flags = 0;
	req.reserved = 1;
	EXPECT_EQ(EOPNOTSUPP, raw_resize(srq, &req, sizeof(req), &info, sizeof(info)));
	req.reserved = 0;
	req.max_wr = 0;
	EXPECT_EQ(EINVAL, raw_resize(srq, &req, sizeof(req), &info, sizeof(info)));
	EXPECT_EQ(before, size_of(bed));
	EXPECT_EQ(0, info.entries);
	EXPECT_DONE(take_some(bed, 0, 5));
	ASSERT_OK(post_some(bed, 5, 5));
	EXPECT_DONE(take_some(bed, 5, 5));
}

/* A library with a larger request and answer is served; the old ring says that it is dead. */
TEST_F(srq_resize, old_ring_is_dead)
{
	struct {
		struct vrnic_resize_srq_req req;
		uint64_t more;
	} req = { .req = { .max_wr = 256 } };
	struct {
		struct vrnic_ring_info info;
		uint64_t more;
	} resp = { .more = ~0ULL };
	struct bed *bed = &self->bed;

	ASSERT_OK(post_some(bed, 0, 5));
	ASSERT_OK(raw_resize(bed->b->srq, &req, sizeof(req), &resp, sizeof(resp)));
	EXPECT_EQ(256, resp.info.entries);
	EXPECT_EQ(0, resp.more);
	EXPECT_EQ(256, size_of(bed));
	/* the provider does not know */
	EXPECT_EQ(EIO, post_some(bed, 5, 1));
	EXPECT_DONE(take_some(bed, 0, 5));
}

/* An index that a process made up is found here, too, and nothing is copied. */
TEST_F(srq_resize, wild_index)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){});
	struct bed *bed = &self->bed;
	struct ibv_srq_attr attr = { .max_wr = 4096 };
	struct raw_ring rings[RINGS];
	struct side side = {};
	uint32_t prod;

	ASSERT_OK(raw_side_open(&side, bed->b->dev, &opts, true, rings));
	prod = rings[RQ].hdr->prod;
	rings[RQ].hdr->prod = prod - 1;
	EXPECT_EQ(EINVAL, ibv_modify_srq(side.srq, &attr, IBV_SRQ_MAX_WR));
	rings[RQ].hdr->prod = prod + 0x12345678;
	EXPECT_EQ(EINVAL, ibv_modify_srq(side.srq, &attr, IBV_SRQ_MAX_WR));
	/* repaired: no message has come that would have found it */
	rings[RQ].hdr->prod = prod;
	EXPECT_OK(ibv_modify_srq(side.srq, &attr, IBV_SRQ_MAX_WR));
	EXPECT_OK(side_close(&side));
}

/* ---- a process that is killed meanwhile ---- */

static int use_until_killed(void *arg)
{
	struct worker resizer[RESIZERS] = {}, poster[POSTERS] = {};
	struct bed bed = {};
	const struct pair_opts opts = { .srq = true };
	bool stop = false;
	int n, ret;

	if (bed_open(&bed, LEN, &opts) ||
	    start(poster, POSTERS, &bed, &stop, post_on) ||
	    start(resizer, RESIZERS, &bed, &stop, resize_on))
		return 1;
	for (n = 0; ; n++) {
		ret = POST(bed.a, .op = IBV_WR_SEND, .local = &bed.src, .len = BYTES);
		if (ret)
			return 2;
		if (wait_recv(bed.b) || wait_send(bed.a))
			return 3;
		if (n == 100 && write(*(int *)arg, "", 1) != 1)
			return 4;
		if (n == POSTERS * EACH - 1)
			pause();
	}
}

/* Its objects go, and those of others work on. */
TEST_F(srq_resize, killed_meanwhile)
{
	struct bed *bed = &self->bed;
	int i, status, fds[2];
	pid_t child;
	char byte;

	ASSERT_OK(pipe(fds));
	for (i = 0; i < 10; i++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(use_until_killed(&fds[1]));
		ASSERT_TRUE(readable(fds[0], WAIT_SECONDS * 1000));
		ASSERT_EQ(1, read(fds[0], &byte, 1));
		usleep(i * 1000);
		ASSERT_OK(kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_OK(resize(bed, 64 << i % 3));
		ASSERT_OK(post_some(bed, i, 1));
		ASSERT_DONE(take_some(bed, i, 1));
	}
	close(fds[0]);
	close(fds[1]);
}

TEST_HARNESS_MAIN
