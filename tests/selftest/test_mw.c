// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows of types 1 and 2B. */
#include <pthread.h>
#include <sys/mman.h>

#include "harness.h"

#define LEN	8192
#define WINDOW_ACCESS	(ACCESS_REMOTE & ~IBV_ACCESS_LOCAL_WRITE)

FIXTURE(mw)
{
	struct bed bed;
	struct buf buf;		/* the region that windows look into */
	struct ibv_mw *mw;
};

FIXTURE_VARIANT(mw)
{
	enum ibv_mw_type type;
};

FIXTURE_VARIANT_ADD(mw, type_1) { .type = IBV_MW_TYPE_1 };
FIXTURE_VARIANT_ADD(mw, type_2) { .type = IBV_MW_TYPE_2 };

FIXTURE_SETUP(mw)
{
	struct ibv_device_attr *attr;

	ASSERT_OK(bed_open(&self->bed, LEN, NULL));
	attr = self->bed.dev.attr;
	if (!(attr->device_cap_flags & (variant->type == IBV_MW_TYPE_1 ?
					IBV_DEVICE_MEM_WINDOW :
					IBV_DEVICE_MEM_WINDOW_TYPE_2B)))
		SKIP(return, "the device does not advertise such windows");
	ASSERT_OK(buf_open(&self->buf, self->bed.b->pd, LEN, 0,
			   ACCESS_REMOTE | IBV_ACCESS_MW_BIND));
	self->mw = ibv_alloc_mw(self->bed.b->pd, variant->type);
	ASSERT_NE(NULL, self->mw);
}

FIXTURE_TEARDOWN(mw)
{
	if (self->mw)
		EXPECT_OK(ibv_dealloc_mw(self->mw));
	buf_close(&self->buf);
	EXPECT_OK(bed_close(&self->bed));
}

/* Side b, the owner, binds; the status of the bind's completion. */
static int bind_info(FIXTURE_DATA(mw) *self, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = info,
	};
	uint32_t rkey = ibv_inc_rkey(self->mw->rkey);
	int ret;

	if (self->mw->type == IBV_MW_TYPE_1) {
		ret = ibv_bind_mw(self->bed.b->qp, self->mw, &bind);
		return ret ? -abs(ret) : wait_send(self->bed.b);
	}
	ret = RUN(self->bed.b, .op = IBV_WR_BIND_MW, .mw = self->mw,
		  .mw_rkey = rkey, .bind = info);
	if (ret == IBV_WC_SUCCESS)
		self->mw->rkey = rkey;
	return ret;
}

static int bind(FIXTURE_DATA(mw) *self, size_t off, size_t len, int access)
{
	return bind_info(self, (struct ibv_mw_bind_info){
		.mr = self->buf.mr,
		.addr = (uintptr_t)self->buf.addr + off,
		.length = len,
		.mw_access_flags = access,
	});
}

static int write_at(FIXTURE_DATA(mw) *self, size_t off, size_t len)
{
	return RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = len,
		   .local = &self->bed.src, .rkey = self->mw->rkey,
		   .raddr = (uintptr_t)self->buf.addr + off);
}

TEST_F(mw, opens_a_part_of_the_region)
{
	ASSERT_DONE(bind(self, 1000, 500, WINDOW_ACCESS));
	EXPECT_EQ(IBV_WC_BIND_MW, self->bed.b->wc.opcode);
	buf_fill(&self->bed.src, 1);
	ASSERT_DONE(write_at(self, 1000, 500));
	EXPECT_EQ(-1, buf_differs(&self->buf, 1000, 500, 1, 0));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 0, 1000, 0));
	EXPECT_EQ(-1, buf_is_not(&self->buf, 1500, LEN - 1500, 0));
}

TEST_F(mw, before_its_start)
{
	ASSERT_DONE(bind(self, 1000, 500, WINDOW_ACCESS));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_at(self, 999, 2));
}

TEST_F(mw, behind_its_end)
{
	ASSERT_DONE(bind(self, 1000, 500, WINDOW_ACCESS));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_at(self, 1499, 2));
}

TEST_F(mw, unbound_has_no_key)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_at(self, 0, 8));
}

TEST_F(mw, rights_of_its_own)
{
	ASSERT_DONE(bind(self, 0, LEN, IBV_ACCESS_REMOTE_READ));
	EXPECT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_READ, .len = 8,
			.local = &self->bed.src, .rkey = self->mw->rkey,
			.raddr = (uintptr_t)self->buf.addr));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, write_at(self, 0, 8));
}

/*
 * What the target has left in its list of segments from an earlier operation, here of memory that
 * is paged on demand, means nothing for the window.
 */
TEST_F(mw, behind_memory_on_demand)
{
	const size_t page = 4096;
	void *addr = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	mr = ibv_reg_mr(self->bed.b->pd, addr, page, ACCESS_REMOTE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		SKIP(return, "this kernel has no on-demand paging");
	buf_fill(&self->bed.src, 1);
	ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = page, .local = &self->bed.src,
			.rkey = mr->rkey, .raddr = (uintptr_t)addr));
	ASSERT_DONE(write_at(self, 0, 64));
	EXPECT_EQ(-1, buf_differs(&self->buf, 0, 64, 1, 0));
	ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &self->bed.src,
			.rkey = self->mw->rkey, .raddr = (uintptr_t)self->buf.addr, .value = 1));
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(addr, page);
}

TEST_F(mw, read_and_atomic)
{
	ASSERT_DONE(bind(self, 64, 64, WINDOW_ACCESS));
	self->buf.addr[64] = 9;
	ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.local = &self->bed.src, .rkey = self->mw->rkey,
			.raddr = (uintptr_t)self->buf.addr + 64, .value = 1));
	EXPECT_EQ(9, self->bed.src.addr[0]);
	ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_READ, .len = 64,
			.local = &self->bed.src, .rkey = self->mw->rkey,
			.raddr = (uintptr_t)self->buf.addr + 64));
	EXPECT_EQ(10, self->bed.src.addr[0]);
}

TEST_F(mw, range_beyond_the_region_cannot_be_bound)
{
	int status = bind(self, LEN - 8, 9, WINDOW_ACCESS);

	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
}

TEST_F(mw, region_must_allow_binding)
{
	struct ibv_mw_bind_info info = {
		.mr = self->bed.dst.mr,		/* has no IBV_ACCESS_MW_BIND */
		.addr = (uintptr_t)self->bed.dst.addr,
		.length = 64,
		.mw_access_flags = WINDOW_ACCESS,
	};
	int status = bind_info(self, info);

	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
}

/* IBTA 10.6.7.2.2: a window that can be written needs a region that can. */
TEST_F(mw, write_needs_a_writable_region)
{
	struct ibv_mr *mr = ibv_reg_mr(self->bed.b->pd, self->bed.dst.addr,
				       LEN, IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_MW_BIND);
	int status;

	ASSERT_NE(NULL, mr);
	status = bind_info(self, (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = (uintptr_t)self->bed.dst.addr,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	});
	EXPECT_NE(IBV_WC_SUCCESS, status);
	EXPECT_NE(-ETIMEDOUT, status);
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(mw, region_is_busy_while_bound)
{
	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	ASSERT_NE(0, ibv_dereg_mr(self->buf.mr));
	EXPECT_DONE(write_at(self, 0, 64));
}

struct dereg {
	struct ibv_mr *mr;
	volatile bool stop;
	long tried, done;
};

static void *dereg_until_stopped(void *arg)
{
	struct dereg *t = arg;

	for (; !t->stop; t->tried++)
		t->done += !ibv_dereg_mr(t->mr);
	return NULL;
}

TEST_F(mw, refused_dereg_disturbs_nobody)
{
	struct dereg t = { .mr = self->buf.mr };
	pthread_t thread;
	int i;

	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	ASSERT_OK(pthread_create(&thread, NULL, dereg_until_stopped, &t));
	for (i = 0; i < 2000; i++) {
		ASSERT_DONE(write_at(self, 0, 64));
		ASSERT_DONE(RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
				.local = &self->bed.src, .remote = &self->buf));
	}
	t.stop = true;
	pthread_join(thread, NULL);
	EXPECT_NE(0, t.tried);
	EXPECT_EQ(0, t.done);
}

#define REREG_LEN	(32 << 20)
#define BOUND_LATE	77	/* the bind was refused: it came while nobody may */

struct rereg {
	struct ibv_mr *mr;
	void *map;
	volatile int done, refused, other;
};

/* Most of the time of this loop is pinning. */
static void *rereg_until_refused(void *arg)
{
	struct rereg *t = arg;
	int err;

	while (!t->refused && !t->other) {
		err = ibv_rereg_mr(t->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				   t->map, REREG_LEN, 0);
		t->done += !err;
		t->refused += err && errno == EBUSY;
		t->other += err && errno != EBUSY;
	}
	return NULL;
}

/* The process ends with its window bound. */
static int bind_beside_rereg(void *arg)
{
	FIXTURE_DATA(mw) self = {};
	struct rereg t = {};
	pthread_t thread;

	t.map = mmap(NULL, REREG_LEN, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (t.map == MAP_FAILED || bed_open(&self.bed, LEN, NULL))
		return 1;
	t.mr = ibv_reg_mr(self.bed.b->pd, t.map, REREG_LEN,
			  ACCESS_REMOTE | IBV_ACCESS_MW_BIND);
	self.mw = ibv_alloc_mw(self.bed.b->pd, *(enum ibv_mw_type *)arg);
	if (!t.mr || !self.mw)
		return 2;
	self.buf.mr = t.mr;
	self.buf.addr = t.map;
	if (pthread_create(&thread, NULL, rereg_until_refused, &t))
		return 3;
	while (!t.done && !t.other)
		usleep(1000);
	if (bind(&self, 0, 64, WINDOW_ACCESS))
		return BOUND_LATE;
	pthread_join(thread, NULL);
	if (write_at(&self, 0, 64))
		return 4;
	return t.other ? 5 : 0;
}

TEST_F(mw, rereg_ends_although_a_window_was_bound_meanwhile)
{
	enum ibv_mw_type type = variant->type;
	int i, ret;

	for (i = 0; i < 4; i++) {
		do {
			ret = run_child(bind_beside_rereg, &type);
		} while (ret == BOUND_LATE);
		ASSERT_EQ(0, ret);
	}
}

TEST_F(mw, dealloc_closes_it)
{
	uint32_t rkey;

	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	rkey = self->mw->rkey;
	ASSERT_OK(ibv_dealloc_mw(self->mw));
	self->mw = NULL;
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &self->bed.src, .rkey = rkey,
			  .raddr = (uintptr_t)self->buf.addr));
	EXPECT_OK(ibv_dereg_mr(self->buf.mr));
	self->buf.mr = NULL;
}

/* A bind is executed in its place in the queue: the old key is dead then. */
TEST_F(mw, old_key_dies_with_the_next_bind)
{
	uint32_t old;

	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	old = self->mw->rkey;
	if (variant->type == IBV_MW_TYPE_2)
		ASSERT_DONE(RUN(self->bed.b, .op = IBV_WR_LOCAL_INV,
				.inv_rkey = old));
	ASSERT_DONE(bind(self, 64, 64, WINDOW_ACCESS));
	EXPECT_NE(old, self->mw->rkey);
	EXPECT_DONE(write_at(self, 64, 64));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &self->bed.src, .rkey = old,
			  .raddr = (uintptr_t)self->buf.addr));
}

TEST_F(mw, many)
{
	struct ibv_mw *mw[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mw); i++) {
		mw[i] = ibv_alloc_mw(self->bed.b->pd, variant->type);
		ASSERT_NE(NULL, mw[i]);
	}
	for (i = 0; i < ARRAY_SIZE(mw); i++)
		EXPECT_OK(ibv_dealloc_mw(mw[i]));
}

TEST_F(mw, length_zero_unbinds_type_1)
{
	uint32_t rkey;

	if (variant->type != IBV_MW_TYPE_1)
		return;
	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	rkey = self->mw->rkey;
	ASSERT_DONE(bind(self, 0, 0, 0));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(self->bed.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &self->bed.src, .rkey = rkey,
			  .raddr = (uintptr_t)self->buf.addr));
}

/* Type 2B: the window belongs to the queue pair that bound it. */
TEST_F(mw, type_2b_answers_only_its_queue_pair)
{
	struct pair other;

	if (variant->type != IBV_MW_TYPE_2)
		return;
	ASSERT_DONE(bind(self, 0, 64, WINDOW_ACCESS));
	ASSERT_OK(bed_pair_open(&self->bed, &other, NULL));
	ASSERT_OK(pair_connect(&other));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(&other.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &self->bed.src, .rkey = self->mw->rkey,
			  .raddr = (uintptr_t)self->buf.addr));
	EXPECT_OK(pair_close(&other));
	EXPECT_DONE(write_at(self, 0, 64));
}

TEST_HARNESS_MAIN
