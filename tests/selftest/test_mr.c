// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: what can be registered, how it is released. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 0x0004U
#endif

#define LEN	(256 * 1024)

BED(mr, LEN);

/* @map is written to and read from by the other side of the pair. */
static bool works_as_memory(struct bed *bed, struct buf *buf)
{
	int status;

	buf_fill(&bed->src, 1);
	status = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
		     .remote = buf, .len = buf->len);
	if (status)
		return false;
	if (buf_differs(buf, 0, buf->len, 1, 0) >= 0)
		return false;
	memset(bed->dst.addr, 0, bed->dst.len);
	status = RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->dst,
		     .remote = buf, .len = buf->len);
	if (status)
		return false;
	return buf_differs(&bed->dst, 0, buf->len, 1, 0) < 0 &&
	       buf_guards_intact(buf);
}

static bool works_as_mapping(struct bed *bed, void *map, size_t len)
{
	struct buf buf;
	bool ok;

	if (map == MAP_FAILED)
		return false;
	if (buf_wrap(&buf, bed->b->pd, map, len, len - 4096, ACCESS_REMOTE))
		return false;
	ok = works_as_memory(bed, &buf);
	buf_close(&buf);
	return ok;
}

TEST_F(mr, shared_anonymous_memory)
{
	void *map = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT_TRUE(works_as_mapping(&self->bed, map, LEN));
}

TEST_F(mr, memory_file_seen_through_another_mapping)
{
	struct bed *bed = &self->bed;
	int fd = memfd_create("mr", 0);
	uint8_t *one, *two;

	ASSERT_GE(fd, 0);
	ASSERT_OK(ftruncate(fd, LEN));
	one = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	two = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, two);
	ASSERT_TRUE(works_as_mapping(bed, one, LEN));
	EXPECT_OK(memcmp(two + GUARD_BYTES, bed->src.addr, LEN - 4096));
	munmap(two, LEN);
	close(fd);
}

TEST_F(mr, huge_pages)
{
	size_t len = 4 << 20;
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	struct buf buf;

	if (map == MAP_FAILED)
		SKIP(return, "no huge pages are reserved");
	ASSERT_OK(buf_wrap(&buf, self->bed.b->pd, map, len, LEN,
			   ACCESS_REMOTE));
	EXPECT_TRUE(works_as_memory(&self->bed, &buf));
	buf_close(&buf);
}

TEST_F(mr, transparent_huge_pages)
{
	size_t len = 8 << 20;
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buf buf;

	ASSERT_NE(MAP_FAILED, map);
	madvise(map, len, MADV_HUGEPAGE);	/* a kernel without is fine */
	ASSERT_OK(buf_wrap(&buf, self->bed.b->pd, map, len, LEN,
			   ACCESS_REMOTE));
	EXPECT_TRUE(works_as_memory(&self->bed, &buf));
	buf_close(&buf);
}

TEST_F(mr, read_only_file_can_be_read_remotely)
{
	struct bed *bed = &self->bed;
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;
	struct ibv_mr *mr;
	void *map;

	ASSERT_GE(fd, 0);
	ASSERT_OK(fstat(fd, &st));
	ASSERT_GE(st.st_size, 8192);
	map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	mr = ibv_reg_mr(bed->b->pd, map, 8192, IBV_ACCESS_REMOTE_READ);
	ASSERT_NE(NULL, mr);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->dst,
			.raddr = (uintptr_t)map, .rkey = mr->rkey,
			.len = 8192));
	EXPECT_OK(memcmp(map, bed->dst.addr, 8192));
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(map, 8192);
	close(fd);
}

TEST_F(mr, read_only_memory_is_not_registered_for_writing)
{
	void *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, map, 8192,
			       IBV_ACCESS_LOCAL_WRITE));
	munmap(map, 8192);
}

TEST_F(mr, unmapped_memory_is_refused)
{
	void *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	munmap((char *)map + 4096, 4096);
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, map, 8192,
			       IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EFAULT, errno);
	munmap(map, 4096);
}

TEST_F(mr, wrapping_address_range_is_refused)
{
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, self->bed.src.addr,
			       SIZE_MAX - 4095, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, (void *)(UINTPTR_MAX - 4095),
			       8192, IBV_ACCESS_LOCAL_WRITE));
}

/* IBTA: remote write and remote atomic need local write. */
TEST_F(mr, remote_write_needs_local_write)
{
	struct ibv_pd *pd = self->bed.b->pd;
	void *addr = self->bed.src.addr;

	EXPECT_NULL(ibv_reg_mr(pd, addr, 4096, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_NULL(ibv_reg_mr(pd, addr, 4096, IBV_ACCESS_REMOTE_ATOMIC));
}

TEST_F(mr, unknown_access_flags_are_refused)
{
	EXPECT_NULL(ibv_reg_mr(self->bed.b->pd, self->bed.src.addr, 4096,
			       IBV_ACCESS_LOCAL_WRITE | 1 << 18));
}

TEST_F(mr, one_byte_and_odd_lengths)
{
	static const size_t len[] = { 1, 2, 3, 4095, 4097, 12289 };
	struct bed *bed = &self->bed;
	struct buf buf;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(len); i++) {
		ASSERT_OK(buf_open(&buf, bed->b->pd, len[i], i, ACCESS_REMOTE));
		EXPECT_TRUE(works_as_memory(bed, &buf));
		buf_close(&buf);
	}
}

TEST_F(mr, same_memory_twice)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN,
				       IBV_ACCESS_REMOTE_READ);

	ASSERT_NE(NULL, mr);
	EXPECT_NE(mr->rkey, bed->dst.mr->rkey);
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.remote = &bed->dst, .len = 64));
}

TEST_F(mr, many)
{
	struct bed *bed = &self->bed;
	static struct ibv_mr *mr[2000];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		mr[i] = ibv_reg_mr(bed->b->pd, bed->dst.addr + i, 64,
				   ACCESS_REMOTE);
		ASSERT_NE(NULL, mr[i]);
	}
	for (i = 0; i < ARRAY_SIZE(mr); i += 97) {
		j = ARRAY_SIZE(mr) - 1 - i;
		memset(bed->src.addr, i, 64);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 64,
				.local = &bed->src, .rkey = mr[j]->rkey,
				.raddr = (uintptr_t)bed->dst.addr + j));
		ASSERT_EQ(-1, buf_is_not(&bed->dst, j, 64, i & 0xff));
	}
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		EXPECT_OK(ibv_dereg_mr(mr[i]));
}

TEST_F(mr, zero_based)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr = ibv_reg_mr_iova(bed->b->pd, bed->dst.addr + 4096,
					    8192, 0, ACCESS_REMOTE);

	ASSERT_NE(NULL, mr);
	buf_fill(&bed->src, 1);
	/* .raddr = 0 would mean the address of .remote, hence 1 */
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 8191, .raddr = 1, .rkey = mr->rkey));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 4097, 8191, 1, 0));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			  .len = 8192, .raddr = 1, .rkey = mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(mr, address_of_its_own)
{
	struct bed *bed = &self->bed;
	uint64_t iova = 0xabcdef0000000000ULL |
			((uintptr_t)bed->dst.addr & 4095);
	struct ibv_mr *mr = ibv_reg_mr_iova(bed->b->pd, bed->dst.addr, 8192,
					    iova, ACCESS_REMOTE);

	ASSERT_NE(NULL, mr);
	buf_fill(&bed->src, 2);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 5000, .raddr = iova + 7, .rkey = mr->rkey));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 7, 5000, 2, 0));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/* The pages belong to the region until it is deregistered. */
TEST_F(mr, outlives_munmap)
{
	struct bed *bed = &self->bed;
	void *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	ASSERT_NE(MAP_FAILED, map);
	mr = ibv_reg_mr(bed->b->pd, map, 8192, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(munmap(map, 8192));
	buf_fill(&bed->src, 9);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 8192, .raddr = (uintptr_t)map,
			.rkey = mr->rkey));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->dst,
			.len = 8192, .raddr = (uintptr_t)map,
			.rkey = mr->rkey));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 8192, 9, 0));
	EXPECT_OK(ibv_dereg_mr(mr));
}

/*
 * Deregistration in the middle of a stream of writes: each is either done or
 * refused, and none lands in the memory once dereg has returned.
 */
TEST_F(mr, dereg_during_traffic)
{
	struct bed *bed = &self->bed;
	uint8_t *copy = malloc(LEN);
	int i, status, errors = 0;

	ASSERT_NE(NULL, copy);
	for (i = 0; i < 32; i++) {
		memset(bed->src.addr, i + 1, LEN);
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			       .local = &bed->src, .remote = &bed->dst));
	}
	ASSERT_OK(ibv_dereg_mr(bed->dst.mr));
	bed->dst.mr = NULL;
	memcpy(copy, bed->dst.addr, LEN);
	for (i = 0; i < 32; i++) {
		status = wait_send(bed->a);
		if (status != IBV_WC_SUCCESS && !errors++)
			EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, status);
		else if (errors)
			EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, status);
	}
	EXPECT_OK(memcmp(copy, bed->dst.addr, LEN));
	free(copy);
}

TEST_F(mr, local_region_gone)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sge = sge_of(&bed->src, 0, 8);

	ASSERT_OK(ibv_dereg_mr(bed->src.mr));
	bed->src.mr = NULL;
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .sgl = &sge,
			  .num_sge = 1, .remote = &bed->dst));
}

TEST_F(mr, rereg_or_a_clear_refusal)
{
	struct bed *bed = &self->bed;
	struct buf other;
	int ret;

	ASSERT_OK(buf_open(&other, NULL, 8192, 0, 0));
	ret = ibv_rereg_mr(bed->dst.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			   other.addr, 8192, 0);
	if (ret)
		SKIP(goto out, "the device does not re-register: %d", ret);
	buf_fill(&bed->src, 3);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.raddr = (uintptr_t)other.addr, .len = 8192,
			.rkey = bed->dst.mr->rkey));
	EXPECT_EQ(-1, buf_differs(&other, 0, 8192, 3, 0));
out:
	buf_close(&other);
}

/* Rights that are taken, given back, and given to what was read-only memory. */
TEST_F(mr, rereg_of_rights_alone)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr;
	int ret;

	buf_fill(&bed->src, 3);
	ret = ibv_rereg_mr(bed->dst.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_READ);
	if (ret)
		SKIP(return, "the device does not re-register: %d", ret);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src,
			.len = 64, .remote = &bed->dst));
	ASSERT_OK(ibv_rereg_mr(bed->dst.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			       0, ACCESS_REMOTE));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 64, .remote = &bed->dst));
	mr = ibv_reg_mr(bed->b->pd, bed->dst.addr, 4096, IBV_ACCESS_REMOTE_READ);
	ASSERT_NE(NULL, mr);
	EXPECT_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       ACCESS_REMOTE));
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 64, .raddr = (uintptr_t)bed->dst.addr,
			.rkey = mr->rkey));
	EXPECT_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_REMOTE_READ));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			  .len = 64, .raddr = (uintptr_t)bed->dst.addr,
			  .rkey = mr->rkey));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_HARNESS_MAIN
