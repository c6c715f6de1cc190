// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Resizing completion queues. The rings lie in a file, which the process maps. */

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
