// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of other drivers: regions over a dma-buf, here over memory that udmabuf makes one of. */
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

#include "harness.h"

#define PAGE	4096UL
#define LEN	(32 * PAGE)
#define IOVA	0x123456000UL

FIXTURE(dmabuf)
{
	struct wire_bed wire;
	struct bed own, *bed;
	uint8_t *mem;	/* what is in the dma-buf */
	int memfd, fd;
};

FIXTURE_VARIANT(dmabuf)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(dmabuf, loop) { };
FIXTURE_VARIANT_ADD(dmabuf, wire) { .wire = true };

FIXTURE_SETUP(dmabuf)
{
	struct pair_opts opts = { .timeout = 18 };

	self->fd = udmabuf_open(LEN, &self->memfd);
	if (self->fd == -ENOENT)
		SKIP(return, "this kernel has no udmabuf that maps memory for the kernel");
	ASSERT_LE(0, self->fd);
	self->mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, self->memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->mem);
	if (variant->wire) {
		ASSERT_OK(wire_bed_open(&self->wire, LEN, &opts));
		self->bed = &self->wire.bed;
	} else {
		ASSERT_OK(bed_open(&self->own, LEN, &opts));
		self->bed = &self->own;
	}
}

FIXTURE_TEARDOWN(dmabuf)
{
	if (self->bed)
		EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->own));
	if (self->mem)
		munmap(self->mem, LEN);
	if (self->fd >= 0) {
		close(self->fd);
		close(self->memfd);
	}
}

static struct ibv_mr *reg(struct bed *bed, int fd, uint64_t offset, size_t len)
{
	return ibv_reg_dmabuf_mr(bed->b->pd, offset, len, IOVA + offset % PAGE, fd, ACCESS_REMOTE);
}

static void fill(uint8_t *mem, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = seed + i + i / PAGE;
}

static ssize_t differs(const uint8_t *mem, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != (uint8_t)(seed + i + i / PAGE))
			return i;
	return -1;
}

TEST_F(dmabuf, is_written_to)
{
	struct bed *bed = self->bed;
	struct ibv_mr *mr = reg(bed, self->fd, 0, LEN);

	ASSERT_NE(NULL, mr);
	fill((uint8_t *)bed->src.addr, LEN, 1);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			.raddr = IOVA, .rkey = mr->rkey));
	EXPECT_EQ(-1, differs(self->mem, LEN, 1));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(dmabuf, is_read)
{
	struct bed *bed = self->bed;
	struct ibv_mr *mr = reg(bed, self->fd, 0, LEN);

	ASSERT_NE(NULL, mr);
	fill(self->mem, LEN, 2);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src, .len = LEN,
			.raddr = IOVA, .rkey = mr->rkey));
	EXPECT_EQ(-1, differs((uint8_t *)bed->src.addr, LEN, 2));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* As local memory: of a send, and of a receive. */
TEST_F(dmabuf, is_sent_and_received_into)
{
	struct bed *bed = self->bed;
	struct ibv_mr *from = ibv_reg_dmabuf_mr(bed->a->pd, 0, LEN / 2, IOVA, self->fd,
						IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *to = reg(bed, self->fd, LEN / 2, LEN / 2);
	struct ibv_sge in, out;
	struct ibv_recv_wr wr = { .sg_list = &in, .num_sge = 1 }, *bad;

	ASSERT_TRUE(from && to);
	out = (struct ibv_sge){ IOVA, LEN / 2, from->lkey };
	in = (struct ibv_sge){ IOVA, LEN / 2, to->lkey };
	fill(self->mem, LEN / 2, 3);
	ASSERT_OK(ibv_post_recv(bed->b->qp, &wr, &bad));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .sgl = &out, .num_sge = 1));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(-1, differs(self->mem + LEN / 2, LEN / 2, 3));
	EXPECT_OK(ibv_dereg_mr(from));
	EXPECT_OK(ibv_dereg_mr(to));
}

/* A part that begins and ends within pages: nothing beside it is reached. */
TEST_F(dmabuf, a_part)
{
	struct bed *bed = self->bed;
	size_t at = 3 * PAGE + 100, len = 5 * PAGE - 300;
	struct ibv_mr *mr = reg(bed, self->fd, at, len);

	ASSERT_NE(NULL, mr);
	memset(self->mem, 0xee, LEN);
	fill((uint8_t *)bed->src.addr, len, 4);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = len,
			.raddr = IOVA + 100, .rkey = mr->rkey));
	EXPECT_EQ(-1, differs(self->mem + at, len, 4));
	EXPECT_EQ(0xee, self->mem[at - 1]);
	EXPECT_EQ(0xee, self->mem[at + len]);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			  .raddr = IOVA + 100 + len - 7, .rkey = mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(dmabuf, atomics)
{
	struct bed *bed = self->bed;
	struct ibv_mr *mr = reg(bed, self->fd, 0, LEN);
	uint64_t *word = (uint64_t *)(self->mem + PAGE);

	ASSERT_NE(NULL, mr);
	*word = 40;
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &bed->src, .len = 8,
			.raddr = IOVA + PAGE, .rkey = mr->rkey, .value = 2));
	EXPECT_EQ(42U, *word);
	EXPECT_EQ(40U, *(uint64_t *)bed->src.addr);
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* The region keeps the memory when the file of the dma-buf is closed. */
TEST_F(dmabuf, outlives_its_file)
{
	struct bed *bed = self->bed;
	struct ibv_mr *mr = reg(bed, self->fd, 0, LEN);

	ASSERT_NE(NULL, mr);
	close(self->fd);
	self->fd = dup(self->memfd);
	ASSERT_LE(0, self->fd);
	fill((uint8_t *)bed->src.addr, LEN, 5);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			.raddr = IOVA, .rkey = mr->rkey));
	EXPECT_EQ(-1, differs(self->mem, LEN, 5));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* What a region that cannot be had ends with; 0 if it can. */
static int refusal(struct bed *bed, int fd, uint64_t offset, size_t len, uint64_t iova, int access)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(bed->b->pd, offset, len, iova, fd, access);

	if (!mr)
		return errno;
	ibv_dereg_mr(mr);
	return 0;
}

TEST_F(dmabuf, refusals)
{
	struct bed *bed = self->bed;
	int fd = self->fd;

	EXPECT_EQ(0, refusal(bed, fd, 0, LEN, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, fd, 0, LEN + 1, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, fd, PAGE, LEN, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, fd, -PAGE, 2 * PAGE, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, fd, 0, 0, IOVA, 0));
	/* offsets within a page have to be the same */
	EXPECT_EQ(EINVAL, refusal(bed, fd, 1, PAGE, IOVA, 0));
	EXPECT_EQ(EBADF, refusal(bed, -1, 0, PAGE, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, self->memfd, 0, PAGE, IOVA, 0));
	EXPECT_EQ(EINVAL, refusal(bed, fd, 0, PAGE, IOVA, IBV_ACCESS_ON_DEMAND));
}

/* The process is charged for all of the buffer, as it stays in place as a whole. */
TEST_F(dmabuf, is_charged)
{
	long before = pinned_bytes();
	struct ibv_mr *mr = reg(self->bed, self->fd, PAGE, PAGE);

	ASSERT_NE(NULL, mr);
	ASSERT_LE(0, before);
	EXPECT_EQ(before + (long)LEN, pinned_bytes());
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_EQ(before, pinned_bytes());
}

TEST_F(dmabuf, is_bounded_by_the_limit_of_the_process)
{
	long before = pinned_bytes();

	ASSERT_LE(0, before);
	ASSERT_OK(obey_memlock());
	ASSERT_OK(may_pin(LEN - PAGE));
	EXPECT_EQ(ENOMEM, refusal(self->bed, self->fd, 0, PAGE, IOVA, 0));
	EXPECT_EQ(before, pinned_bytes());
	ASSERT_OK(may_pin(LEN));
	EXPECT_EQ(0, refusal(self->bed, self->fd, 0, PAGE, IOVA, 0));
}

/* libibverbs refuses that itself, so this does not ask it. */
static int rereg(struct ibv_mr *mr, uint32_t flags, void *addr)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr body;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.body = {
			.response = (uintptr_t)&resp,
			.mr_handle = mr->handle,
			.flags = flags,
			.start = (uintptr_t)addr,
			.length = PAGE,
			.hca_va = (uintptr_t)addr,
			.pd_handle = mr->pd->handle,
			.access_flags = IBV_ACCESS_LOCAL_WRITE,
		},
	};

	return write(mr->context->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

/* It is not memory of the process, whose pages could be registered in its place. */
TEST_F(dmabuf, is_not_reregistered)
{
	struct bed *bed = self->bed;
	struct ibv_mr *mr = reg(bed, self->fd, 0, LEN);
	void *addr = bed->src.addr;

	ASSERT_NE(NULL, mr);
	EXPECT_EQ(EINVAL, rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, addr));
	EXPECT_EQ(EINVAL, rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, addr));
	/* the command itself is right */
	EXPECT_EQ(0, rereg(bed->dst.mr, IBV_REREG_MR_CHANGE_ACCESS, bed->dst.addr));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/*
 * Write to the part of the dma-buf @fd at @offset, which is the memory @mem. Return: 0: it is
 * there, or the region was refused; -EBADMSG: it is not there.
 */
static int right_or_refused(struct bed *bed, int fd, size_t offset, size_t len, uint8_t *mem)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(bed->b->pd, offset, len, IOVA, fd, ACCESS_REMOTE);
	size_t n = len < LEN ? len : LEN;
	int status;

	if (!mr)
		return errno == EOPNOTSUPP ? 0 : -errno;
	fill((uint8_t *)bed->src.addr, n, 6);
	memset(mem, 0, n);
	status = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = n,
		     .raddr = IOVA, .rkey = mr->rkey);
	ibv_dereg_mr(mr);
	return status ?: differs(mem, n, 6) < 0 ? 0 : -EBADMSG;
}

#define HUGE	(2UL << 20)

/* Enough of them for two in a dma-buf and for its mapping, which reserves its own. */
static int have_huge_pages(void)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r");
	int nr = 0, got = f ? fscanf(f, "%d", &nr) : 0;

	if (f)
		fclose(f);
	return got == 1 && nr >= 4 ? 0 : write_file("/proc/sys/vm/nr_hugepages", "4");
}

/* Linux 6.12 maps the first page of each huge page instead of all of its pages. */
TEST_F(dmabuf, of_huge_pages_is_right_or_refused)
{
	struct bed *bed = self->bed;
	int memfd, fd, part;
	uint8_t *mem;

	if (have_huge_pages())
		SKIP(return, "this kernel has no huge pages");
	fd = udmabuf_huge(2 * HUGE, &memfd);
	if (fd == -ENOMEM)
		SKIP(return, "there are too few huge pages");
	ASSERT_LE(0, fd);
	mem = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)mem);
	EXPECT_OK(right_or_refused(bed, fd, 0, HUGE, mem));
	EXPECT_OK(right_or_refused(bed, fd, PAGE, PAGE, mem + PAGE));
	EXPECT_OK(right_or_refused(bed, fd, HUGE - PAGE, 2 * PAGE, mem + HUGE - PAGE));
	part = udmabuf_create(memfd, PAGE, PAGE);
	ASSERT_LE(0, part);
	EXPECT_OK(right_or_refused(bed, part, 0, PAGE, mem + PAGE));
	close(part);
	munmap(mem, 2 * HUGE);
	close(fd);
	close(memfd);
}

TEST_HARNESS_MAIN
