// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Nine defects of an earlier driver of this kind, each as a test that finds it. The comments
 * give the defects' numbers.
 */
#include <sys/mman.h>

#include "harness.h"

#define LEN	8192

BED(defects, LEN);

static int write_with_key(struct bed *bed, uint32_t rkey)
{
	return RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 64,
		   .local = &bed->src, .remote = &bed->dst, .rkey = rkey);
}

/* 1. Keys were small sequential numbers, equal on both sides... */
TEST_F(defects, defect_1_keys_are_not_sequential)
{
	struct ibv_mr *mr[16];
	unsigned int i, close_by = 0;

	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		mr[i] = ibv_reg_mr(self->bed.b->pd, self->bed.dst.addr, 64,
				   ACCESS_REMOTE);
		ASSERT_NE(NULL, mr[i]);
		EXPECT_NE(mr[i]->lkey, mr[i]->rkey);
		EXPECT_GT(mr[i]->rkey, 255);
	}
	for (i = 1; i < ARRAY_SIZE(mr); i++)
		close_by += mr[i]->rkey - mr[i - 1]->rkey == 1;
	EXPECT_LT(close_by, ARRAY_SIZE(mr) / 2);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		EXPECT_OK(ibv_dereg_mr(mr[i]));
}

TEST_F(defects, defect_1_local_key_is_no_remote_key)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      write_with_key(&self->bed, self->bed.dst.mr->lkey));
	EXPECT_EQ(-1, buf_is_not(&self->bed.dst, 0, LEN, 0));
}

/* ... and rights and protection domain were never checked. */
TEST_F(defects, defect_1_rights_are_checked)
{
	struct ibv_mr *mr = ibv_reg_mr(self->bed.b->pd, self->bed.dst.addr,
				       LEN, IBV_ACCESS_REMOTE_READ);

	ASSERT_NE(NULL, mr);
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      write_with_key(&self->bed, mr->rkey));
	EXPECT_EQ(-1, buf_is_not(&self->bed.dst, 0, LEN, 0));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_F(defects, defect_1_protection_domain_is_checked)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->bed.b->dev->ctx);
	struct ibv_mr *mr;

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, self->bed.dst.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	memset(self->bed.src.addr, 1, LEN);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      write_with_key(&self->bed, mr->rkey));
	EXPECT_EQ(-1, buf_is_not(&self->bed.dst, 0, LEN, 0));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

/* 2. A bad key, or too many fragments, from a peer hit an assertion. */
TEST_F(defects, defect_2_bad_keys_from_a_peer)
{
	struct bed *bed = &self->bed;
	uint32_t key = 0x9e3779b9;
	int i;

	for (i = 0; i < 100; i++, key = key * 1664525 + 1013904223) {
		if (key == bed->dst.mr->rkey)
			continue;
		ASSERT_STATUS(IBV_WC_REM_ACCESS_ERR, write_with_key(bed, key));
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
		ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
		ASSERT_OK(pair_connect(&bed->pair));
	}
	EXPECT_DONE(write_with_key(bed, bed->dst.mr->rkey));
}

/* The most segments there are, a byte each, into as many on the other side. */
TEST_F(defects, defect_2_many_fragments_from_a_peer)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .max_sge = bed->dev.attr->max_sge };
	int i, n = opts.max_sge;
	struct ibv_sge from[n], to[n];
	struct pair pair;

	ASSERT_OK(bed_pair_open(bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	buf_fill(&bed->src, 1);
	for (i = 0; i < n; i++) {
		from[i] = sge_of(&bed->src, i * 3, 1);
		to[i] = sge_of(&bed->dst, (n - i) * 5, 1);
	}
	ASSERT_OK(post_recv_sgl(&pair.b, to, n, 0));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .sgl = from, .num_sge = n));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(n, pair.b.rwc.byte_len);
	for (i = 0; i < n; i++)
		EXPECT_EQ(bed->src.addr[i * 3], bed->dst.addr[(n - i) * 5]);
	EXPECT_OK(pair_close(&pair));
}

/* 3. Only the length, not offset + length, was checked against a region. */
TEST_F(defects, defect_3_offset_plus_length)
{
	struct bed *bed = &self->bed;

	memset(bed->src.addr, 1, LEN);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN / 2,
			  .local = &bed->src, .remote = &bed->dst,
			  .roff = LEN / 2 + 1));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, LEN, 0));
	EXPECT_TRUE(buf_guards_intact(&bed->dst));
}

/* 4. A receive reported the posted buffer's size instead of the message's. */
TEST_F(defects, defect_4_receive_length_is_the_messages)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
			.len = 77));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_EQ(77, bed->b->rwc.byte_len);
}

/* 5. Immediate value 0 was taken for "no immediate". */
TEST_F(defects, defect_5_immediate_zero)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND_WITH_IMM, .len = 8,
			.local = &bed->src, .imm = 0));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_TRUE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(0, bed->b->rwc.imm_data);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_FALSE(bed->b->rwc.wc_flags & IBV_WC_WITH_IMM);
}

/* 6. WRITE with immediate consumed no receive. */
TEST_F(defects, defect_6_write_with_immediate_takes_a_receive)
{
	struct bed *bed = &self->bed;
	uint32_t len;

	for (len = 0; len <= 64; len += 64) {
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 1));
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 2));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM,
				.local = &bed->src, .remote = &bed->dst,
				.len = len, .imm = 5));
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(1, bed->b->rwc.wr_id);
		EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, bed->b->rwc.opcode);
		EXPECT_EQ(len, bed->b->rwc.byte_len);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 1,
				.local = &bed->src));
		ASSERT_DONE(wait_recv(bed->b));
		EXPECT_EQ(2, bed->b->rwc.wr_id);
	}
}

/* 7. A receive flushed half-way was reported as success. */
TEST_F(defects, defect_7_flushed_receive_is_no_success)
{
	struct bed *bed = &self->bed;
	struct pair pair;
	struct buf src, dst;
	size_t len = 32 << 20;
	int status;

	ASSERT_OK(buf_open(&src, bed->dev.pd, len, 0, ACCESS_REMOTE));
	ASSERT_OK(buf_open(&dst, bed->b->pd, len, 0, ACCESS_REMOTE));
	ASSERT_OK(bed_pair_open(bed, &pair, &(struct pair_opts){
		.timeout = 8, .retry = 1 }));
	ASSERT_OK(pair_connect(&pair));
	memset(src.addr, 1, len);
	ASSERT_OK(post_recv(&pair.b, &dst, 0, len, 0));
	ASSERT_OK(POST(&pair.a, .op = IBV_WR_SEND, .local = &src, .len = len));
	ASSERT_OK(qp_to(pair.b.qp, IBV_QPS_ERR));
	status = wait_recv(&pair.b);
	/* done before the error came, and then whole; or flushed */
	if (status == IBV_WC_SUCCESS) {
		EXPECT_EQ(len, pair.b.rwc.byte_len);
		EXPECT_EQ(-1, buf_is_not(&dst, 0, len, 1));
	} else {
		EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, status);
	}
	EXPECT_OK(pair_close(&pair));
	buf_close(&src);
	buf_close(&dst);
}

/* The same where it is certain that the message cannot arrive whole. */
TEST_F(defects, defect_7_sender_fails_in_the_second_segment)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sgl[2] = {
		sge_of(&bed->src, 0, LEN / 2), sge_of(&bed->src, 0, LEN / 2),
	};

	sgl[1].lkey ^= 0x5500;
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	EXPECT_NE(IBV_WC_SUCCESS, RUN(bed->a, .op = IBV_WR_SEND, .sgl = sgl,
				      .num_sge = 2));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(bed->b));
}

/* 8. Completion queues could overflow without notice. */
TEST_F(defects, defect_8_overflow_is_noticed)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = pair_defaults(NULL);
	struct ibv_async_event event = {};
	struct side side = { .dev = &bed->dev, .pd = bed->dev.pd };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = { 0, 1, 1, 1, 0 },
	};
	unsigned int i;

	side.scq = ibv_create_cq(bed->dev.ctx, 4, NULL, NULL, 0);
	ASSERT_NE(NULL, side.scq);
	attr.send_cq = side.scq;
	attr.recv_cq = side.scq;
	attr.cap.max_send_wr = 2 * side.scq->cqe + 8;
	side.qp = ibv_create_qp(bed->dev.pd, &attr);
	ASSERT_NE(NULL, side.qp);
	ASSERT_OK(side_connect(&side, &opts, side.qp->qp_num, &bed->dev.gid));
	for (i = 0; i < attr.cap.max_send_wr; i++)
		POST(&side, .op = IBV_WR_RDMA_WRITE, .len = 8,
		     .local = &bed->src, .remote = &bed->dst);
	do {
		ASSERT_LE(0, wait_event(bed->dev.ctx, &event));
	} while (event.event_type == IBV_EVENT_QP_FATAL);
	EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
	EXPECT_OK(side_close(&side));
}

/*
 * 9. Region lengths were truncated to 32 bits. Shared memory of a small file
 * mapped again and again makes 4 GiB of addresses from few pages.
 */
#define CHUNK	(64UL << 20)
#define CHUNKS	65

static uint8_t *map_large(void)
{
	uint8_t *base = mmap(NULL, CHUNKS * CHUNK, PROT_NONE, MAP_PRIVATE |
			     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("chunk", 0);
	unsigned int i;

	if (base == MAP_FAILED || fd < 0 || ftruncate(fd, CHUNK))
		return NULL;
	for (i = 0; i < CHUNKS; i++)
		if (mmap(base + i * CHUNK, CHUNK, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			return NULL;
	close(fd);
	return base;
}

/* User-mode Linux spends a mapping of its host on each page that is pinned. */
static bool user_mode_linux(void)
{
	char text[4096] = "";
	int fd = open("/proc/cpuinfo", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
	return strstr(text, "User Mode Linux");
}

TEST_F(defects, defect_9_region_of_more_than_4_gib)
{
	struct bed *bed = &self->bed;
	uint64_t top = 1ULL << 32;
	struct ibv_mr *mr;
	uint8_t *base;

	if (user_mode_linux())
		SKIP(return, "user-mode Linux cannot map a million pages");
	base = map_large();
	ASSERT_NE(NULL, base);
	mr = ibv_reg_mr(bed->b->pd, base, CHUNKS * CHUNK, ACCESS_REMOTE);
	if (!mr && errno == ENOMEM)
		SKIP(return, "4 GiB cannot be pinned here");
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(CHUNKS * CHUNK, mr->length);
	buf_fill(&bed->src, 1);
	/* 2^32 + 5000 is within the region; the low 32 bits of it are too */
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &bed->src, .rkey = mr->rkey,
			.raddr = (uintptr_t)base + top + 5000));
	EXPECT_OK(memcmp(base + top + 5000, bed->src.addr, LEN));
	/* the last byte is in, the one behind it is not */
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 1,
			.local = &bed->src, .rkey = mr->rkey,
			.raddr = (uintptr_t)base + CHUNKS * CHUNK - 1));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 2,
			  .local = &bed->src, .rkey = mr->rkey,
			  .raddr = (uintptr_t)base + CHUNKS * CHUNK - 1));
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(base, CHUNKS * CHUNK);
}

/* Truncated, the offset would be inside this region of 8 KiB. */
TEST_F(defects, defect_9_offset_beyond_32_bits)
{
	struct bed *bed = &self->bed;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &bed->src, .rkey = bed->dst.mr->rkey,
			  .raddr = (uintptr_t)bed->dst.addr + (1ULL << 32)));
}

TEST_HARNESS_MAIN
