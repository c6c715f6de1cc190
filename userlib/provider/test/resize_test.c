// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Resizing completion and shared receive queues. The rings lie in a file, which is mapped. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_test.h"

#define RESIZE_RINGS	4	/* the new ring is never where the old one is */
#define RESIZE_ENTRIES	8
#define RESIZE_SPAN	(2 * 4096)
#define RESIZE_STRIDE	32	/* of a receive ring */

static unsigned int resizes;
static bool dontfork_fails;

/* Stands in for the function of libibverbs, which returns -1 and not an errno. */
int ibv_dontfork_range(void *base, size_t size)
{
	if (!dontfork_fails)
		return 0;
	errno = ENOMEM;
	return -1;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

/* Stands in for the kernel's command. It yields, so that other threads use the ring meanwhile. */
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size)
{
	struct vrnic_cmd_resize_cq_resp *answer = (void *)resp;

	sched_yield();
	answer->ring = (struct vrnic_ring_info){
		.offset = ++resizes % RESIZE_RINGS * RESIZE_SPAN,
		.bytes = RESIZE_SPAN,
		.entries = RESIZE_ENTRIES,
		.stride = sizeof(struct vrnic_cqe),
	};
	return 0;
}

/* The SRQ that is resized, and where its kernel puts the next ring. */
static struct vrnic_srq *resized;

/*
 * The same for an SRQ, in place of libibverbs' function for all other commands: a kernel that has
 * taken all requests.
 */
int execute_ioctl(struct ibv_context *ctx, struct ibv_command_buffer *cmd)
{
	const struct ib_uverbs_attr *attr = cmd->hdr.attrs;
	const struct vrnic_resize_srq_req *req = (void *)(uintptr_t)attr[1].data;
	struct vrnic_ring_info *info = (void *)(uintptr_t)attr[2].data;
	uint64_t at = ++resizes % RESIZE_RINGS * RESIZE_SPAN;
	uint32_t next = resized->rq.ring.next;

	CHECK(cmd->hdr.method_id == VRNIC_METHOD_SRQ_RESIZE && attr[1].len == sizeof(*req));
	sched_yield();
	CHECK(next == resized->rq.ring.next);
	CHECK(pwrite(ctx->cmd_fd, &next, 4, at) == 4);
	CHECK(pwrite(ctx->cmd_fd, &next, 4, at + offsetof(struct vrnic_ring_hdr, cons)) == 4);
	*info = (struct vrnic_ring_info){
		.offset = at,
		.bytes = RESIZE_SPAN,
		.entries = req->max_wr,
		.stride = RESIZE_STRIDE,
	};
	return 0;
}

static void cq_in_file(struct vrnic_cq *cq)
{
	int fd = memfd_create("rings", 0);

	if (fd < 0 || ftruncate(fd, RESIZE_RINGS * RESIZE_SPAN))
		abort();
	context.vctx.context.cmd_fd = fd;
	cq->vcq.cq.context = &context.vctx.context;
	vrnic_cq_init(cq, false);
	CHECK(!vrnic_resize_cq(&cq->vcq.cq, RESIZE_ENTRIES));
}

static void cq_close_file(struct vrnic_cq *cq)
{
	vrnic_ring_unmap(&cq->ring, cq->vcq.cq.context);
	vrnic_cq_fini(cq);
	close(context.vctx.context.cmd_fd);
}

struct resizer {
	struct ibv_cq *cq;
	bool stop;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
		CHECK(!vrnic_resize_cq(r->cq, RESIZE_ENTRIES));
	return NULL;
}

static void use_one_cpu(cpu_set_t *before)
{
	int first = 0;
	cpu_set_t one;

	if (sched_getaffinity(0, sizeof(*before), before))
		abort();
	while (!CPU_ISSET(first, before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

/* The kernel writes to a new ring that could not be mapped: polls fail. */
void test_map_fails(void)
{
	struct vrnic_cq cq = {};
	struct ibv_wc wc;

	cq_in_file(&cq);
	dontfork_fails = true;
	CHECK(vrnic_resize_cq(&cq.vcq.cq, RESIZE_ENTRIES) == ENOMEM);
	dontfork_fails = false;
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == -EIO);
	cq_close_file(&cq);
}

/* The CPUs that the thread may use count, not those of the machine. */
void test_one_cpu(void)
{
	cpu_set_t before;

	use_one_cpu(&before);
	CHECK(vrnic_has_one_cpu());
	sched_setaffinity(0, sizeof(before), &before);
	CHECK(vrnic_has_one_cpu() == (CPU_COUNT(&before) == 1));
}

#define POLLS_BESIDE	10000

/* A thread that polls or arms gets a turn, however often the queue is resized. */
void test_resize_starves_nobody(void)
{
	cpu_set_t before;
	struct vrnic_cq cq = {};
	struct resizer r = { .cq = &cq.vcq.cq };
	pthread_t thread;
	struct ibv_wc wc;

	use_one_cpu(&before);
	cq_in_file(&cq);
	if (pthread_create(&thread, NULL, resize_on, &r))
		abort();
	for (int i = 0; i < POLLS_BESIDE; i++) {
		CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 0);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cq_close_file(&cq);
	sched_setaffinity(0, sizeof(before), &before);
}

static void srq_in_file(struct vrnic_srq *srq, struct ibv_context *ctx)
{
	struct vrnic_ring_info info = {
		.bytes = RESIZE_SPAN, .entries = RESIZE_ENTRIES, .stride = RESIZE_STRIDE,
	};
	int fd = memfd_create("rings", 0);

	if (fd < 0 || ftruncate(fd, RESIZE_RINGS * RESIZE_SPAN))
		abort();
	ctx->cmd_fd = fd;
	srq->vsrq.srq.context = ctx;
	resized = srq;
	CHECK(!vrnic_rq_init(&srq->rq, ctx, &info, 1, false));
	vrnic_gate_init(&srq->gate, &srq->rq.lock, NULL);
}

static void srq_close_file(struct vrnic_srq *srq)
{
	struct ibv_context *ctx = srq->vsrq.srq.context;

	vrnic_gate_fini(&srq->gate);
	vrnic_rq_fini(&srq->rq, ctx);
	close(ctx->cmd_fd);
}

struct srq_resizer {
	struct ibv_srq *srq;
	bool stop;
};

static void *resize_srq_on(void *arg)
{
	struct srq_resizer *r = arg;
	struct ibv_srq_attr attr = {};

	for (int i = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); i++) {
		attr.max_wr = RESIZE_ENTRIES << i % 3;
		CHECK(!vrnic_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR));
	}
	return NULL;
}

#define SRQ_POSTS	10000

/* A thread that posts gets a turn, its indices go on, and it uses no ring that is unmapped. */
void test_srq_resize(void)
{
	struct vrnic_srq srq = {};
	struct srq_resizer r = { .srq = &srq.vsrq.srq };
	struct ibv_recv_wr wr = {}, *bad;
	cpu_set_t before;
	pthread_t thread;

	use_one_cpu(&before);
	srq_in_file(&srq, &context.vctx.context);
	if (pthread_create(&thread, NULL, resize_srq_on, &r))
		abort();
	for (int i = 0; i < SRQ_POSTS; i++) {
		while (vrnic_post_srq_recv(r.srq, &wr, &bad) == ENOMEM)
			sched_yield();	/* full until the next resize */
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK(srq.rq.ring.next == SRQ_POSTS);
	CHECK(srq.rq.ring.hdr->prod == SRQ_POSTS);
	srq_close_file(&srq);
	sched_setaffinity(0, sizeof(before), &before);
}

/* The kernel has moved the requests to a ring that could not be mapped: posts fail. */
void test_srq_map_fails(void)
{
	struct ibv_srq_attr attr = { .max_wr = RESIZE_ENTRIES };
	struct ibv_recv_wr wr = {}, *bad = NULL;
	struct vrnic_srq srq = {};

	srq_in_file(&srq, &context.vctx.context);
	dontfork_fails = true;
	CHECK(vrnic_modify_srq(&srq.vsrq.srq, &attr, IBV_SRQ_MAX_WR) == ENOMEM);
	dontfork_fails = false;
	CHECK(vrnic_post_srq_recv(&srq.vsrq.srq, &wr, &bad) == EIO && bad == &wr);
	srq_close_file(&srq);
}

#define POSTS_BESIDE	300000

/* A post reads nothing in the mapping of a completion ring, which another thread may replace. */
void test_post_beside_resize(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct resizer r;
	pthread_t thread;
	struct fixture f;

	qp_make(&f, IBV_QPT_RC, 32, 0);
	cq_in_file(&f.cq);
	f.qp.sq.hdr->flags = VRNIC_RING_DOORBELL;
	f.qp.sq.hdr->gather = 3;
	r = (struct resizer){ .cq = &f.cq.vcq.cq };
	if (pthread_create(&thread, NULL, resize_on, &r))
		abort();
	for (int i = 0; i < POSTS_BESIDE; i++) {
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
		f.qp.sq.hdr->cons = f.qp.sq.hdr->prod;
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK(late == POSTS_BESIDE);
	cq_close_file(&f.cq);
	qp_free(&f);
}
