// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that is registered without being pinned (on-demand paging), while the process maps,
 * unmaps, forks and discards it: on one host, and between two sides that send packets.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.h"

#define PAGE	4096UL
#define LEN	(64 * PAGE)
/* A second to an acknowledgment: pages take their time on a busy machine, and may go again. */
#define PATIENT	18
#define CHUNK	(128 * PAGE)	/* addresses of one of the driver's tables of pages */
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND)

FIXTURE(odp)
{
	struct wire_bed wire;
	struct bed own, *bed;
	uint8_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
};

/* wire: what is sent are packets; implicit: one region is all memory of the process */
FIXTURE_VARIANT(odp)
{
	bool wire, implicit;
};

FIXTURE_VARIANT_ADD(odp, loop) { };
FIXTURE_VARIANT_ADD(odp, wire) { .wire = true };
FIXTURE_VARIANT_ADD(odp, all_loop) { .implicit = true };
FIXTURE_VARIANT_ADD(odp, all_wire) { .wire = true, .implicit = true };

static uint8_t *map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

static struct ibv_mr *reg(struct ibv_pd *pd, bool implicit, void *addr, size_t len)
{
	if (implicit)
		return ibv_reg_mr(pd, NULL, SIZE_MAX, ACCESS);
	return ibv_reg_mr(pd, addr, len, ACCESS);
}

static struct ibv_odp_caps odp_caps(void)
{
	struct ibv_device_attr_ex attr = {};
	struct ibv_context *ctx = dev_open_context();

	if (!ctx)
		return attr.odp_caps;
	if (ibv_query_device_ex(ctx, NULL, &attr))
		memset(&attr, 0, sizeof(attr));
	ibv_close_device(ctx);
	return attr.odp_caps;
}

static bool can_do_odp(void)
{
	return odp_caps().general_caps & IBV_ODP_SUPPORT;
}

FIXTURE_SETUP(odp)
{
	struct pair_opts opts = { .rd_atomic = 16, .timeout = PATIENT };

	if (!can_do_odp())
		SKIP(return, "this kernel has no on-demand paging");
	if (variant->wire) {
		ASSERT_OK(wire_bed_open(&self->wire, LEN, &opts));
		self->bed = &self->wire.bed;
	} else {
		ASSERT_OK(bed_open(&self->own, LEN, &opts));
		self->bed = &self->own;
	}
	self->from = map(LEN);
	self->to = map(LEN);
	ASSERT_TRUE(self->from && self->to);
	self->from_mr = reg(self->bed->a->pd, variant->implicit, self->from, LEN);
	ASSERT_NE(NULL, self->from_mr);
	self->to_mr = reg(self->bed->b->pd, variant->implicit, self->to, LEN);
	ASSERT_NE(NULL, self->to_mr);
}

FIXTURE_TEARDOWN(odp)
{
	if (!self->bed)
		return;
	if (self->from_mr)
		EXPECT_OK(ibv_dereg_mr(self->from_mr));
	if (self->to_mr)
		EXPECT_OK(ibv_dereg_mr(self->to_mr));
	munmap(self->from, LEN);
	munmap(self->to, LEN);
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->own));
}

static void fill(uint8_t *mem, size_t len, uint8_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		mem[i] = (uint8_t)(seed + i + i / PAGE);
}

static ssize_t differs(const uint8_t *mem, size_t len, uint8_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (mem[i] != (uint8_t)(seed + i + i / PAGE))
			return i;
	return -1;
}

/* From a's memory at @local to, or from, b's at @remote. */
#define MOVE(self, opcode, local, remote, n, ...)					\
	RUN((self)->bed->a, .op = (opcode),						\
	    .sgl = &(struct ibv_sge){ (uintptr_t)(local), (n), (self)->from_mr->lkey },	\
	    .num_sge = 1, .raddr = (uintptr_t)(remote), .rkey = (self)->to_mr->rkey,	\
	    ##__VA_ARGS__)

TEST_F(odp, write_to_pages_that_were_never_touched)
{
	fill(self->from, LEN, 1);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	EXPECT_EQ(-1, differs(self->to, LEN, 1));
}

TEST_F(odp, read_into_pages_that_were_never_touched)
{
	fill(self->to, LEN, 2);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_READ, self->from, self->to, LEN));
	EXPECT_EQ(-1, differs(self->from, LEN, 2));
}

TEST_F(odp, untouched_memory_is_read_as_zero_and_then_written)
{
	uint8_t *zero = self->to;

	fill(self->from, LEN, 3);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_READ, self->from, zero, LEN));
	EXPECT_OK(memcmp(self->from, self->from + PAGE, PAGE));
	EXPECT_EQ(0, self->from[LEN - 1]);
	/* the page of zeros that all processes share must not be written to */
	fill(self->from, LEN, 4);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, zero, LEN));
	EXPECT_EQ(-1, differs(zero, LEN, 4));
	zero = map(PAGE);
	ASSERT_NE(NULL, zero);
	EXPECT_EQ(0, zero[100]);
	munmap(zero, PAGE);
}

TEST_F(odp, send_and_receive)
{
	struct ibv_sge sge = { (uintptr_t)self->to + 100, LEN - 200, self->to_mr->lkey };

	fill(self->from, LEN, 5);
	ASSERT_OK(post_recv_sgl(self->bed->b, &sge, 1, 7));
	ASSERT_DONE(MOVE(self, IBV_WR_SEND, self->from, 0, LEN - 200));
	ASSERT_DONE(wait_recv(self->bed->b));
	EXPECT_EQ(LEN - 200, self->bed->b->rwc.byte_len);
	EXPECT_OK(memcmp(self->from, self->to + 100, LEN - 200));
	EXPECT_EQ(0, self->to[99]);
}

TEST_F(odp, atomics)
{
	uint64_t *word = (uint64_t *)(self->to + 8 * PAGE);
	uint64_t *old = (uint64_t *)(self->from + 4 * PAGE);

	ASSERT_DONE(MOVE(self, IBV_WR_ATOMIC_FETCH_AND_ADD, old, word, 8, .value = 5));
	EXPECT_EQ(0, *old);
	EXPECT_EQ(5, *word);
	ASSERT_DONE(MOVE(self, IBV_WR_ATOMIC_CMP_AND_SWP, old + 512, word, 8, .compare = 5,
			 .value = 9));
	EXPECT_EQ(5, old[512]);
	EXPECT_EQ(9, *word);
}

TEST_F(odp, segments_of_several_pages)
{
	struct ibv_sge sges[4];
	int i;

	fill(self->from, LEN, 6);
	for (i = 0; i < 4; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)self->from + i * 16 * PAGE + 4000, 200,
					    self->from_mr->lkey };
	ASSERT_DONE(RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = sges, .num_sge = 4,
			.raddr = (uintptr_t)self->to + PAGE - 300, .rkey = self->to_mr->rkey));
	for (i = 0; i < 4; i++)
		EXPECT_OK(memcmp(self->to + PAGE - 300 + 200 * i,
				 self->from + i * 16 * PAGE + 4000, 200));
}

/* The region goes on with what the process has mapped there since. */
TEST_F(odp, memory_that_is_mapped_anew)
{
	int i;

	for (i = 0; i < 8; i++) {
		fill(self->from, LEN, i);
		ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
		EXPECT_EQ(-1, differs(self->to, LEN, i));
		ASSERT_OK(munmap(self->to, LEN));
		ASSERT_EQ(self->to, mmap(self->to, LEN, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	}
	EXPECT_EQ(0, self->to[0]);
}

/*
 * That the process does not have a page concerns those who need it then. A page that one write has
 * asked for, and that the pager found missing after this write, does not fail the next one.
 */
TEST_F(odp, page_that_was_missing_before)
{
	const size_t len = LEN, room = 2 * CHUNK;
	struct ibv_mr *mr;
	uint8_t *all = map(room), *to;
	int i, status = 0;

	ASSERT_NE(NULL, all);
	mr = reg(self->bed->b->pd, variant->implicit, all, room);
	ASSERT_NE(NULL, mr);
	/* half of it in each of two of the driver's tables, so each write asks for pages twice */
	to = (uint8_t *)(((uintptr_t)all + len / 2 + CHUNK - 1) & ~(CHUNK - 1)) - len / 2;
	ASSERT_TRUE(to >= all && to + len <= all + room);
	for (i = 0; i < 50 && !status; i++) {
		fill(self->from, len, i);
		status = RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE,
			     .sgl = &(struct ibv_sge){ (uintptr_t)self->from, len,
						       self->from_mr->lkey },
			     .num_sge = 1, .raddr = (uintptr_t)to, .rkey = mr->rkey);
		EXPECT_EQ(-1, differs(to, len, i));
		munmap(to, len);
		mmap(to, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
	}
	EXPECT_DONE(status);
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(all, room);
}

/*
 * Post a receive in memory that is unmapped then, and mapped again after the first datagram if
 * @there. Send a datagram a second until the receive completes, eight at most. Return: its status,
 * or -1: it waits still.
 */
static int datagrams(struct bed *bed, struct pair *pair, struct ibv_sge *sge, bool there)
{
	struct ibv_wc wc = {};
	void *at = (void *)(uintptr_t)sge->addr;
	int i, n = 0, status;

	if (post_recv_sgl(&pair->b, sge, 1, 7) || munmap(at, sge->length))
		return -1;
	for (i = 0; i < 8 && !n; i++) {
		status = RUN(&pair->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8);
		if (status)
			return -1;
		usleep(1200000);
		n = ibv_poll_cq(pair->b.rcq, 1, &wc);
		if (there && !i &&
		    mmap(at, sge->length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
			return -1;
	}
	return n == 1 && wc.wr_id == 7 ? (int)wc.status : -1;
}

/*
 * A datagram waits for no page. One of the next finds out whether the receive's memory is there,
 * however late it comes; else nothing would ever come in there.
 */
TEST_F(odp, datagrams_that_seldom_come_into_a_hole)
{
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct ibv_sge sge = { (uintptr_t)self->to, LEN };
	struct bed *bed = self->bed;
	struct pair pair;
	struct ibv_mr *mr;

	if (!variant->wire || variant->implicit)
		SKIP(return, "a datagram on this host waits, and pages of all memory are the same");
	ASSERT_OK(bed_pair_open(bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	mr = reg(pair.b.pd, false, self->to, LEN);
	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	EXPECT_EQ(IBV_WC_SUCCESS, datagrams(bed, &pair, &sge, true));
	EXPECT_EQ(IBV_WC_LOC_PROT_ERR, datagrams(bed, &pair, &sge, false));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

TEST_F(odp, memory_that_is_discarded)
{
	int i;

	for (i = 0; i < 8; i++) {
		fill(self->from, LEN, i);
		ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
		EXPECT_EQ(-1, differs(self->to, LEN, i));
		ASSERT_OK(madvise(self->to, LEN, MADV_DONTNEED));
		EXPECT_EQ(0, self->to[LEN / 2]);
	}
}

TEST_F(odp, memory_that_moves)
{
	uint8_t *moved;

	fill(self->from, LEN, 1);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	moved = map(LEN);
	ASSERT_NE(NULL, moved);
	ASSERT_EQ(moved, mremap(self->to, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	ASSERT_EQ(self->to, mmap(self->to, LEN, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_EQ(-1, differs(moved, LEN, 1));
	fill(self->from, LEN, 2);
	/* a peer writes to the region's addresses, not to the pages that were there */
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	EXPECT_EQ(-1, differs(moved, LEN, 1));
	EXPECT_EQ(-1, differs(self->to, LEN, 2));
	munmap(moved, LEN);
}

/* After a fork, parent and child share pages until one of them writes, the peer for the parent. */
TEST_F(odp, fork_and_copy_on_write)
{
	int status, go[2];
	char c = 0;
	pid_t pid;

	fill(self->from, LEN, 1);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	ASSERT_OK(pipe(go));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(2);
		_exit(differs(self->to, LEN, 1) != -1);
	}
	fill(self->from, LEN, 2);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	EXPECT_EQ(-1, differs(self->to, LEN, 2));
	ASSERT_EQ(1, write(go[1], &c, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(go[0]);
	close(go[1]);
}

TEST_F(odp, remote_hole_is_refused)
{
	ASSERT_OK(munmap(self->to + 4 * PAGE, PAGE));
	fill(self->from, LEN, 1);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to + 4 * PAGE, 8));
	EXPECT_EQ(0, self->to[0]);
}

TEST_F(odp, local_hole_is_refused)
{
	ASSERT_OK(munmap(self->from + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      MOVE(self, IBV_WR_RDMA_WRITE, self->from + 4 * PAGE, self->to, 8));
}

TEST_F(odp, read_of_a_hole_is_refused)
{
	ASSERT_OK(munmap(self->to + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      MOVE(self, IBV_WR_RDMA_READ, self->from, self->to, 8 * PAGE));
}

TEST_F(odp, memory_that_may_not_be_written)
{
	fill(self->to, LEN, 1);
	ASSERT_OK(mprotect(self->to, PAGE, PROT_READ));
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_READ, self->from, self->to, PAGE));
	EXPECT_EQ(-1, differs(self->from, PAGE, 1));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, 8));
	ASSERT_OK(mprotect(self->to, PAGE, PROT_READ | PROT_WRITE));
}

TEST_F(odp, receive_into_a_hole)
{
	struct ibv_sge sge = { (uintptr_t)self->to, PAGE, self->to_mr->lkey };

	ASSERT_OK(munmap(self->to, PAGE));
	ASSERT_OK(post_recv_sgl(self->bed->b, &sge, 1, 7));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR, MOVE(self, IBV_WR_SEND, self->from, 0, 8));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(self->bed->b));
}

/* Fetch pages: where nothing is sent again, a message that finds one missing may be lost. */
static int fetch(struct ibv_pd *pd, void *addr, size_t len, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, mr->lkey };

	return ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			     &sge, 1);
}

/* A pair of unreliable connection, whose b can write its memory @to by @mr. */
static int open_unreliable(FIXTURE_DATA(odp) *self, struct pair *pair, bool implicit,
			   struct ibv_mr **mr)
{
	struct pair_opts opts = { .type = IBV_QPT_UC };

	if (bed_pair_open(self->bed, pair, &opts) || pair_connect(pair))
		return -EIO;
	*mr = reg(pair->b.pd, implicit, self->to, LEN);
	return *mr ? 0 : -errno;
}

TEST_F(odp, unreliable_connection)
{
	const uint32_t can = odp_caps().per_transport_caps.uc_odp_caps;
	struct ibv_sge from = { (uintptr_t)self->from, LEN, self->from_mr->lkey };
	struct ibv_sge to = { (uintptr_t)self->to, LEN };
	struct pair pair;
	struct ibv_mr *mr;

	EXPECT_EQ(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		  IBV_ODP_SUPPORT_SRQ_RECV, can);
	ASSERT_OK(open_unreliable(self, &pair, variant->implicit, &mr));
	ASSERT_OK(fetch(pair.b.pd, self->to, LEN, mr));
	fill(self->from, LEN, 1);
	ASSERT_OK(post_recv(&pair.b, NULL, 0, 0, 7));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE_WITH_IMM, .sgl = &from, .num_sge = 1,
			.raddr = (uintptr_t)self->to, .rkey = mr->rkey));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(-1, differs(self->to, LEN, 1));
	fill(self->from, LEN, 2);
	to.lkey = mr->lkey;
	ASSERT_OK(post_recv_sgl(&pair.b, &to, 1, 8));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .sgl = &from, .num_sge = 1));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(LEN, pair.b.rwc.byte_len);
	EXPECT_EQ(-1, differs(self->to, LEN, 2));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

/* Over the edge of two pages at either end. */
TEST_F(odp, datagrams)
{
	const uint32_t can = odp_caps().per_transport_caps.ud_odp_caps;
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct ibv_sge from = { (uintptr_t)self->from + PAGE - 100, 512, self->from_mr->lkey };
	struct ibv_sge to = { (uintptr_t)self->to + PAGE - 200, 40 + 512 };
	struct pair pair;
	struct ibv_mr *mr;

	EXPECT_EQ(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV, can);
	ASSERT_OK(bed_pair_open(self->bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	mr = reg(pair.b.pd, variant->implicit, self->to, LEN);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(fetch(pair.b.pd, self->to, 2 * PAGE, mr));
	fill(self->from, LEN, 1);
	to.lkey = mr->lkey;
	ASSERT_OK(post_recv_sgl(&pair.b, &to, 1, 7));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .sgl = &from, .num_sge = 1));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(40 + 512, pair.b.rwc.byte_len);
	EXPECT_OK(memcmp(self->from + PAGE - 100, self->to + PAGE - 200 + 40, 512));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

/* The receives of an SRQ are in pages that were never touched; then in a hole. */
TEST_F(odp, shared_receives)
{
	struct pair_opts opts = { .srq = true, .timeout = PATIENT };
	struct ibv_sge from = { (uintptr_t)self->from, LEN, self->from_mr->lkey };
	struct ibv_sge to = { (uintptr_t)self->to, LEN };
	struct pair pair;
	struct ibv_mr *mr;

	EXPECT_TRUE(odp_caps().per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV);
	ASSERT_OK(bed_pair_open(self->bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	mr = reg(pair.b.pd, variant->implicit, self->to, LEN);
	ASSERT_NE(NULL, mr);
	fill(self->from, LEN, 1);
	to.lkey = mr->lkey;
	ASSERT_OK(post_recv_sgl(&pair.b, &to, 1, 7));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .sgl = &from, .num_sge = 1));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(7, pair.b.rwc.wr_id);
	EXPECT_EQ(-1, differs(self->to, LEN, 1));
	ASSERT_OK(munmap(self->to, PAGE));
	ASSERT_OK(post_recv_sgl(&pair.b, &to, 1, 8));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR,
		      RUN(&pair.a, .op = IBV_WR_SEND, .sgl = &from, .num_sge = 1));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(&pair.b));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

/* The requester does not learn of it. The peer is told of no message that it does not have. */
TEST_F(odp, unreliable_write_into_a_hole)
{
	struct request write = { .op = IBV_WR_RDMA_WRITE_WITH_IMM, .local = &self->bed->src,
				 .len = 8, .raddr = (uintptr_t)self->to };
	struct pair pair;
	struct ibv_mr *mr;

	ASSERT_OK(open_unreliable(self, &pair, variant->implicit, &mr));
	ASSERT_OK(munmap(self->to, PAGE));
	ASSERT_OK(post_recv(&pair.b, NULL, 0, 0, 7));
	write.rkey = mr->rkey;
	EXPECT_DONE(run_request(&pair.a, &write));
	EXPECT_EQ(0, poll_stray(pair.b.rcq));
	write.op = IBV_WR_SEND_WITH_IMM;
	write.len = 0;
	write.imm = 5;
	EXPECT_DONE(run_request(&pair.a, &write));
	EXPECT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(htobe32(5), pair.b.rwc.imm_data);
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

TEST_F(odp, unreliable_message_into_a_hole)
{
	struct ibv_sge sge = { (uintptr_t)self->to, PAGE };
	struct pair pair;
	struct ibv_mr *mr;

	ASSERT_OK(open_unreliable(self, &pair, variant->implicit, &mr));
	ASSERT_OK(munmap(self->to, PAGE));
	sge.lkey = mr->lkey;
	ASSERT_OK(post_recv_sgl(&pair.b, &sge, 1, 7));
	EXPECT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &self->bed->src, .len = 8));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(&pair.b));
	EXPECT_EQ(7, pair.b.rwc.wr_id);
	EXPECT_EQ(0, poll_stray(pair.b.rcq));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(pair_close(&pair));
}

/* The first bytes are there, but not all that one packet has. */
TEST_F(odp, hole_behind_the_first_bytes_written)
{
	ASSERT_OK(munmap(self->to + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to + 4 * PAGE - 100, 200));
}

TEST_F(odp, hole_behind_the_first_bytes_to_write_from)
{
	ASSERT_OK(munmap(self->from + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      MOVE(self, IBV_WR_RDMA_WRITE, self->from + 4 * PAGE - 100, self->to, 200));
}

TEST_F(odp, hole_behind_the_first_bytes_read)
{
	ASSERT_OK(munmap(self->to + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      MOVE(self, IBV_WR_RDMA_READ, self->from, self->to + 4 * PAGE - 100, 200));
}

TEST_F(odp, hole_behind_the_first_bytes_to_read_into)
{
	ASSERT_OK(munmap(self->from + 4 * PAGE, PAGE));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      MOVE(self, IBV_WR_RDMA_READ, self->from + 4 * PAGE - 100, self->to, 200));
}

TEST_F(odp, hole_behind_the_first_bytes_of_a_receive)
{
	struct ibv_sge sge = { (uintptr_t)self->to + PAGE - 100, 200, self->to_mr->lkey };

	ASSERT_OK(munmap(self->to + PAGE, PAGE));
	ASSERT_OK(post_recv_sgl(self->bed->b, &sge, 1, 7));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR, MOVE(self, IBV_WR_SEND, self->from, 0, 200));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(self->bed->b));
}

TEST_F(odp, windows_cannot_be_bound)
{
	struct ibv_mr *mr = ibv_reg_mr(self->bed->a->pd, self->from, LEN,
				       ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(self->bed->a->pd, IBV_MW_TYPE_2);

	ASSERT_TRUE(mr && mw);
	EXPECT_STATUS(IBV_WC_MW_BIND_ERR,
		      RUN(self->bed->a, .op = IBV_WR_BIND_MW, .mw = mw,
			  .mw_rkey = ibv_inc_rkey(mw->rkey),
			  .bind = { mr, (uintptr_t)self->from, PAGE, IBV_ACCESS_REMOTE_READ }));
	EXPECT_OK(ibv_dealloc_mw(mw));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(odp, rereg_is_refused)
{
	EXPECT_NE(0, ibv_rereg_mr(self->to_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_REMOTE_READ));
	fill(self->from, LEN, 1);
	ASSERT_DONE(MOVE(self, IBV_WR_RDMA_WRITE, self->from, self->to, LEN));
	EXPECT_EQ(-1, differs(self->to, LEN, 1));
}

TEST_F(odp, advice)
{
	struct ibv_sge sge = { (uintptr_t)self->to, LEN, self->to_mr->lkey };
	struct ibv_pd *pd = self->bed->b->pd;

	EXPECT_OK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
				&sge, 1));
	EXPECT_OK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	EXPECT_OK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	sge.lkey ^= 0x100000;
	EXPECT_EQ(ENOENT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	sge.lkey = self->bed->dst.mr->lkey;
	EXPECT_EQ(ENOENT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	sge.lkey = self->to_mr->lkey;
	ASSERT_OK(munmap(self->to, PAGE));
	EXPECT_EQ(EFAULT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
}

/* What cannot be fetched is said if the caller waits, and else if it can be known at once. */
TEST_F(odp, advice_that_is_refused)
{
	struct ibv_sge sge[2] = { { (uintptr_t)self->to, LEN, self->to_mr->lkey } };
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_pd *pd = self->bed->b->pd, *other;
	struct ibv_mr *read_only;

	other = ibv_alloc_pd(pd->context);
	read_only = ibv_reg_mr(pd, self->to, LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	ASSERT_TRUE(other && read_only);
	EXPECT_NE(0, ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, sge, 1));
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 30, sge, 1));
	EXPECT_NE(0, ibv_advise_mr(pd, 77, flush, sge, 1));
	sge[1] = (struct ibv_sge){ (uintptr_t)self->to, LEN, read_only->lkey };
	EXPECT_OK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, sge, 2));
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flush, sge, 2));
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, 2));
	sge[1].addr += PAGE;
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, sge, 2));
	sge[1].length = UINT32_MAX;
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, sge, 2));
	EXPECT_OK(ibv_dereg_mr(read_only));
	EXPECT_OK(ibv_dealloc_pd(other));
}

struct churn {
	uint8_t *mem;
	bool stop;
	unsigned long rounds;
};

/* Change the memory in all ways that keep it mapped, while peers write to it and read it. */
static void *churn(void *arg)
{
	struct churn *c = arg;
	unsigned int seed = 1;
	size_t at;
	pid_t pid;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		at = rand_r(&seed) % 60 * PAGE;
		switch (rand_r(&seed) % 5) {
		case 0:
			madvise(c->mem + at, 4 * PAGE, MADV_DONTNEED);
			break;
		case 1:
			mmap(c->mem + at, 4 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 2:
			mprotect(c->mem + at, PAGE, PROT_READ);
			mprotect(c->mem + at, PAGE, PROT_READ | PROT_WRITE);
			break;
		case 3:
			c->mem[at] = 1;
			break;
		default:
			if (c->rounds % 8)
				break;
			pid = fork();
			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
		__atomic_fetch_add(&c->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Return when the thread changes memory: when @rounds, which it counts, is not 0. */
static int start_changes(pthread_t *thread, void *(*changes)(void *), void *arg,
			 unsigned long *rounds)
{
	int ret = pthread_create(thread, NULL, changes, arg);

	while (!ret && !__atomic_load_n(rounds, __ATOMIC_RELAXED))
		usleep(100);
	return ret;
}

/* The other end's memory changes all the time, and what is written there comes back, or is gone. */
TEST_F(odp, memory_changes_under_traffic)
{
	struct churn c = { .mem = self->to };
	pthread_t thread;
	int i, status;

	ASSERT_OK(start_changes(&thread, churn, &c, &c.rounds));
	fill(self->from, LEN, 1);
	for (i = 0; i < 200; i++) {
		status = MOVE(self, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			      self->from + i % 7 * 100, self->to + i % 5 * 1000, 32 * PAGE);
		/* mprotect() may have made it unwritable at that moment */
		if (status == IBV_WC_REM_ACCESS_ERR)
			break;
		EXPECT_EQ(IBV_WC_SUCCESS, status);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* Regions come and go while the process's memory changes. */
TEST_F(odp, registration_under_changes)
{
	struct churn c = { .mem = self->to };
	struct ibv_mr *mr;
	pthread_t thread;
	int i;

	ASSERT_OK(start_changes(&thread, churn, &c, &c.rounds));
	for (i = 0; i < 100; i++) {
		mr = reg(self->bed->b->pd, variant->implicit, self->to, LEN);
		ASSERT_NE(NULL, mr);
		EXPECT_EQ(0, ibv_advise_mr(self->bed->b->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0,
					   &(struct ibv_sge){ (uintptr_t)self->to, LEN, mr->lkey },
					   1));
		EXPECT_OK(ibv_dereg_mr(mr));
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

#define SLOTS		64
#define SLOT_BYTES	(32 * PAGE)

struct slots {
	uint8_t *mem, *aside;
	pthread_mutex_t lock[SLOTS];
	bool stop;
	unsigned long rounds;
};

/* Unmap, map, discard, move and fork, with slots that the main thread does not use. */
static void *change_slots(void *arg)
{
	struct slots *s = arg;
	unsigned int seed = 7;
	uint8_t *at;
	int i;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		if (!(__atomic_fetch_add(&s->rounds, 1, __ATOMIC_RELAXED) % 32)) {
			pid_t pid = fork();

			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
		i = rand_r(&seed) % SLOTS;
		if (pthread_mutex_trylock(&s->lock[i]))
			continue;
		at = s->mem + i * SLOT_BYTES;
		switch (rand_r(&seed) % 5) {
		case 0:
			munmap(at, SLOT_BYTES);
			mmap(at, SLOT_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 1:
			madvise(at, SLOT_BYTES, MADV_DONTNEED);
			break;
		case 2:
			madvise(at, SLOT_BYTES, MADV_FREE);
			break;
		case 3:
			mremap(at, SLOT_BYTES, SLOT_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, s->aside);
			mremap(s->aside, SLOT_BYTES, SLOT_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at);
			break;
		default:
			mprotect(at, SLOT_BYTES, PROT_READ);
			mprotect(at, SLOT_BYTES, PROT_READ | PROT_WRITE);
		}
		pthread_mutex_unlock(&s->lock[i]);
	}
	return NULL;
}

/* How many bytes to move: as many as the variable says, or 32 MiB. */
static uint64_t bytes_to_move(void)
{
	const char *text = getenv("VRNIC_ODP_BYTES");

	return text ? strtoull(text, NULL, 0) : 32 << 20;
}

FIXTURE(odp_slots)
{
	struct wire_bed wire;
	struct bed own, *bed;
	struct slots s;
	struct ibv_mr *mr, *remote;
};

FIXTURE_VARIANT(odp_slots)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(odp_slots, loop) { };
FIXTURE_VARIANT_ADD(odp_slots, wire) { .wire = true };

FIXTURE_SETUP(odp_slots)
{
	struct pair_opts opts = { .timeout = PATIENT };
	int i;

	if (!can_do_odp())
		SKIP(return, "this kernel has no on-demand paging");
	if (variant->wire) {
		ASSERT_OK(wire_bed_open(&self->wire, LEN, &opts));
		self->bed = &self->wire.bed;
	} else {
		ASSERT_OK(bed_open(&self->own, LEN, &opts));
		self->bed = &self->own;
	}
	self->s.mem = map((SLOTS + 1) * SLOT_BYTES);
	ASSERT_NE(NULL, self->s.mem);
	self->s.aside = self->s.mem + SLOTS * SLOT_BYTES;
	for (i = 0; i < SLOTS; i++)
		pthread_mutex_init(&self->s.lock[i], NULL);
	self->mr = ibv_reg_mr(self->bed->a->pd, NULL, SIZE_MAX, ACCESS);
	self->remote = ibv_reg_mr(self->bed->b->pd, NULL, SIZE_MAX, ACCESS);
	ASSERT_TRUE(self->mr && self->remote);
}

FIXTURE_TEARDOWN(odp_slots)
{
	if (!self->bed)
		return;
	EXPECT_OK(ibv_dereg_mr(self->mr));
	EXPECT_OK(ibv_dereg_mr(self->remote));
	munmap(self->s.mem, (SLOTS + 1) * SLOT_BYTES);
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->own));
}

/* From slot @from to slot @to, which takes @left down. Return: what went wrong, or NULL. */
static const char *move_piece(struct bed *bed, struct ibv_mr *mr, uint32_t rkey, struct slots *s,
			      int from, int to, unsigned int *seed, uint64_t *left)
{
	uint8_t *src = s->mem + from * SLOT_BYTES, *dst = s->mem + to * SLOT_BYTES;
	size_t off = rand_r(seed) % PAGE, len = SLOT_BYTES - PAGE - rand_r(seed) % (8 * PAGE);
	bool read = rand_r(seed) % 2;
	struct ibv_sge sge = { (uintptr_t)(read ? dst : src) + off, len, mr->lkey };
	uint8_t fills = rand_r(seed);
	static char failed[64];
	int status;

	fill(src, SLOT_BYTES, fills);
	status = RUN(bed->a, .op = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .sgl = &sge,
		     .num_sge = 1, .raddr = (uintptr_t)(read ? src : dst) + off, .rkey = rkey);
	if (status != IBV_WC_SUCCESS) {
		snprintf(failed, sizeof(failed), "a %s of %zu bytes: status %d",
			 read ? "READ" : "WRITE", len, status);
		return failed;
	}
	if (memcmp(src + off, dst + off, len))
		return "bytes differ";
	*left -= len < *left ? len : *left;
	return differs(src, SLOT_BYTES, fills) < 0 ? NULL : "the source has changed";
}

/* All memory is one region; what is moved is right, whatever happens to the memory beside it. */
TEST_F_TIMEOUT(odp_slots, every_byte_arrives_while_other_memory_changes, 3000)
{
	uint64_t left = bytes_to_move();
	const char *wrong = NULL;
	unsigned int seed = 3;
	pthread_t thread;
	int from, to;

	ASSERT_OK(start_changes(&thread, change_slots, &self->s, &self->s.rounds));
	while (left && !wrong) {
		from = rand_r(&seed) % SLOTS;
		to = (from + 1 + rand_r(&seed) % (SLOTS - 1)) % SLOTS;
		/* the other thread only tries, so the order of the two locks does not matter */
		pthread_mutex_lock(&self->s.lock[from]);
		pthread_mutex_lock(&self->s.lock[to]);
		wrong = move_piece(self->bed, self->mr, self->remote->rkey, &self->s, from, to,
				   &seed, &left);
		pthread_mutex_unlock(&self->s.lock[to]);
		pthread_mutex_unlock(&self->s.lock[from]);
	}
	__atomic_store_n(&self->s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

/* Serves the faults of a page, as a virtual machine that is moved does, after a while. */
struct server {
	int fd;
	uint8_t *page, *content;
};

static void *serve_fault(void *arg)
{
	struct server *server = arg;
	struct uffd_msg msg;
	struct uffdio_copy copy = {
		.dst = (uintptr_t)server->page,
		.src = (uintptr_t)server->content,
		.len = PAGE,
	};

	if (read(server->fd, &msg, sizeof(msg)) != sizeof(msg))
		return NULL;
	usleep(100000);
	ioctl(server->fd, UFFDIO_COPY, &copy);
	return NULL;
}

TEST_F(odp, page_that_a_thread_serves)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)self->to, PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct server server = { .page = self->to, .content = self->from };
	pthread_t thread;
	int status;

	server.fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (server.fd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_OK(ioctl(server.fd, UFFDIO_API, &api));
	ASSERT_OK(ioctl(server.fd, UFFDIO_REGISTER, &range));
	fill(self->from, PAGE, 9);
	ASSERT_OK(pthread_create(&thread, NULL, serve_fault, &server));
	status = MOVE(self, IBV_WR_RDMA_READ, self->from + PAGE, self->to, PAGE);
	/* many kernels do not ask the process on behalf of others */
	EXPECT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR);
	if (status == IBV_WC_SUCCESS)
		EXPECT_EQ(-1, differs(self->from + PAGE, PAGE, 9));
	/* if nobody has asked the thread yet, this does */
	EXPECT_EQ(9, *(volatile uint8_t *)self->to);
	pthread_join(thread, NULL);
	close(server.fd);
}

/* At @where, or anywhere if that is NULL. */
static uint8_t *secret_page(void *where)
{
#ifdef SYS_memfd_secret
	int fd = syscall(SYS_memfd_secret, 0);
	void *page;

	if (fd < 0 || ftruncate(fd, PAGE))
		return NULL;
	page = mmap(where, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | (where ? MAP_FIXED : 0), fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
#else
	return NULL;
#endif
}

/* Pages that the kernel itself cannot read. Pinning refuses them. */
TEST_F(odp, secret_memory_is_refused)
{
	uint8_t *page = secret_page(NULL);
	struct ibv_sge sge;
	struct ibv_mr *mr;

	if (!page)
		SKIP(return, "no secret memory");
	page[0] = 77;
	mr = reg(self->bed->a->pd, variant->implicit, page, PAGE);
	ASSERT_NE(NULL, mr);
	sge = (struct ibv_sge){ (uintptr_t)page, PAGE, mr->lkey };
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &sge, .num_sge = 1,
			  .raddr = (uintptr_t)self->to, .rkey = self->to_mr->rkey));
	EXPECT_EQ(0, self->to[0]);
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(page, PAGE);
}

/*
 * Its neighbours can be used, and go like other pages: the core had all of them when the secret one
 * was refused, and would say so in the kernel's log if one of them was still there.
 */
TEST_F(odp, secret_memory_has_neighbours)
{
	uint8_t *pages = map(3 * PAGE);
	struct ibv_sge sge;
	struct ibv_mr *mr;

	ASSERT_NE(NULL, pages);
	if (!secret_page(pages + PAGE))
		SKIP(return, "no secret memory");
	memset(pages, 11, PAGE);
	memset(pages + 2 * PAGE, 13, PAGE);
	mr = reg(self->bed->a->pd, variant->implicit, pages, 3 * PAGE);
	ASSERT_NE(NULL, mr);
	sge = (struct ibv_sge){ (uintptr_t)pages, 3 * PAGE, mr->lkey };
	EXPECT_EQ(EFAULT, ibv_advise_mr(self->bed->a->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	ASSERT_EQ(pages + 2 * PAGE, mmap(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	sge.addr += 2 * PAGE;
	sge.length = PAGE;
	ibv_advise_mr(self->bed->a->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
		      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	memset(pages + 2 * PAGE, 17, PAGE);
	EXPECT_STATUS(IBV_WC_SUCCESS,
		      RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &sge, .num_sge = 1,
			  .raddr = (uintptr_t)self->to, .rkey = self->to_mr->rkey));
	EXPECT_EQ(17, self->to[0]);
	sge.addr = (uintptr_t)pages;
	EXPECT_STATUS(IBV_WC_SUCCESS,
		      RUN(self->bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &sge, .num_sge = 1,
			  .raddr = (uintptr_t)self->to, .rkey = self->to_mr->rkey));
	EXPECT_EQ(11, self->to[0]);
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(pages, 3 * PAGE);
}

TEST_HARNESS_MAIN
