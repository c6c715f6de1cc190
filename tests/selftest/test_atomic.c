// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compare-and-swap and fetch-and-add, alone and against others. */
#include <pthread.h>

#include "harness.h"

BED(atomic, 8192);

static uint64_t *word(struct buf *buf, size_t off)
{
	return (uint64_t *)(buf->addr + off);
}

#define SWAP(off, old, new)						\
	RUN(self->bed.a, .op = IBV_WR_ATOMIC_CMP_AND_SWP,		\
	    .local = &self->bed.src, .remote = &self->bed.dst,		\
	    .roff = (off), .compare = (old), .value = (new))
#define ADD(off, n)							\
	RUN(self->bed.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,		\
	    .local = &self->bed.src, .remote = &self->bed.dst,		\
	    .roff = (off), .value = (n))

TEST_F(atomic, swap_if_equal)
{
	*word(&self->bed.dst, 8) = 0x1122334455667788;
	ASSERT_DONE(SWAP(8, 0x1122334455667788, 0x99aabbccddeeff00));
	EXPECT_EQ(IBV_WC_COMP_SWAP, self->bed.a->wc.opcode);
	EXPECT_EQ(8, self->bed.a->wc.byte_len);
	EXPECT_EQ(0x1122334455667788, *word(&self->bed.src, 0));
	EXPECT_EQ(0x99aabbccddeeff00, *word(&self->bed.dst, 8));
	EXPECT_EQ(0, *word(&self->bed.dst, 0));
	EXPECT_EQ(0, *word(&self->bed.dst, 16));
}

TEST_F(atomic, no_swap_if_different)
{
	*word(&self->bed.dst, 0) = 5;
	ASSERT_DONE(SWAP(0, 6, 7));
	EXPECT_EQ(5, *word(&self->bed.src, 0));
	EXPECT_EQ(5, *word(&self->bed.dst, 0));
	/* all 64 bits are compared */
	ASSERT_DONE(SWAP(0, 5 | 1ULL << 32, 7));
	EXPECT_EQ(5, *word(&self->bed.dst, 0));
}

TEST_F(atomic, fetch_and_add)
{
	*word(&self->bed.dst, 0) = 40;
	ASSERT_DONE(ADD(0, 2));
	EXPECT_EQ(IBV_WC_FETCH_ADD, self->bed.a->wc.opcode);
	EXPECT_EQ(8, self->bed.a->wc.byte_len);
	EXPECT_EQ(40, *word(&self->bed.src, 0));
	EXPECT_EQ(42, *word(&self->bed.dst, 0));
}

TEST_F(atomic, add_carries_and_wraps)
{
	*word(&self->bed.dst, 0) = 0xffffffff;
	ASSERT_DONE(ADD(0, 1));
	EXPECT_EQ(0x100000000, *word(&self->bed.dst, 0));
	*word(&self->bed.dst, 0) = UINT64_MAX;
	ASSERT_DONE(ADD(0, 2));
	EXPECT_EQ(1, *word(&self->bed.dst, 0));
	EXPECT_EQ(UINT64_MAX, *word(&self->bed.src, 0));
}

TEST_F(atomic, last_word_of_the_region)
{
	ASSERT_DONE(ADD(8184, 3));
	EXPECT_EQ(3, *word(&self->bed.dst, 8184));
}

TEST_F(atomic, beyond_the_region_is_refused)
{
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, ADD(8192, 1));
}

/* IBTA 9.4.5: the address is a multiple of 8, or the request is invalid. */
FIXTURE(misaligned)
{
	struct bed bed;
};

FIXTURE_VARIANT(misaligned)
{
	size_t off;
};

FIXTURE_VARIANT_ADD(misaligned, by_1) { .off = 1 };
FIXTURE_VARIANT_ADD(misaligned, by_4) { .off = 4 };
FIXTURE_VARIANT_ADD(misaligned, across_pages) { .off = 4092 };

FIXTURE_SETUP(misaligned)
{
	ASSERT_OK(bed_open(&self->bed, 8192, NULL));
}

FIXTURE_TEARDOWN(misaligned)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(misaligned, is_refused)
{
	int status = ADD(variant->off, 1);

	/* a provider may refuse what the responder would */
	if (status != -EINVAL)
		EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, status);
	EXPECT_EQ(-1, buf_is_not(&self->bed.dst, 0, 8192, 0));
}

TEST_F(atomic, order_among_others)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 30; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			       .local = &bed->src, .loff = i * 8, .wr_id = i,
			       .remote = &bed->dst, .value = 1));
	for (i = 0; i < 30; i++) {
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(i, bed->a->wc.wr_id);
		ASSERT_EQ(i, *word(&bed->src, i * 8));
	}
	EXPECT_EQ(30, *word(&bed->dst, 0));
}

/* The result is scattered over segments, or the request refused as a whole. */
TEST_F(atomic, result_in_two_segments)
{
	struct bed *bed = &self->bed;
	struct ibv_sge sgl[2] = {
		sge_of(&bed->src, 3, 5), sge_of(&bed->src, 101, 3),
	};
	uint64_t old = 0x0807060504030201;
	int status;

	*word(&bed->dst, 0) = old;
	status = RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .sgl = sgl,
		     .num_sge = 2, .remote = &bed->dst, .value = 1);
	if (status == -EINVAL) {
		EXPECT_EQ(old, *word(&bed->dst, 0));
		EXPECT_EQ(-1, buf_is_not(&bed->src, 0, 8192, 0));
		return;
	}
	ASSERT_DONE(status);
	EXPECT_OK(memcmp(&old, bed->src.addr + 3, 5));
	EXPECT_OK(memcmp((char *)&old + 5, bed->src.addr + 101, 3));
	EXPECT_EQ(0, bed->src.addr[8]);
	EXPECT_EQ(old + 1, *word(&bed->dst, 0));
}

#define ROUNDS	500

struct adder {
	uint64_t *word;
	volatile bool stop;
	uint64_t added;
};

static void *cpu_adder(void *arg)
{
	struct adder *adder = arg;

	while (!adder->stop) {
		__atomic_fetch_add(adder->word, 1, __ATOMIC_RELAXED);
		adder->added++;
		if (adder->added % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

/* Atomic against the processor's own atomics, not only among themselves. */
TEST_F(atomic, against_the_processor)
{
	struct bed *bed = &self->bed;
	struct adder adder = { .word = word(&bed->dst, 0) };
	pthread_t thread;
	int i;

	ASSERT_OK(pthread_create(&thread, NULL, cpu_adder, &adder));
	for (i = 0; i < ROUNDS; i++)
		ASSERT_DONE(ADD(0, 1ULL << 32));
	adder.stop = true;
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(((uint64_t)ROUNDS << 32) + adder.added, *word(&bed->dst, 0));
}

TEST_F(atomic, two_queue_pairs_on_one_word)
{
	struct bed *bed = &self->bed;
	struct pair other;
	int i;

	ASSERT_OK(bed_pair_open(bed, &other, NULL));
	ASSERT_OK(pair_connect(&other));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_OK(POST(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			       .local = &bed->src, .remote = &bed->dst,
			       .value = 1));
		ASSERT_OK(POST(&other.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			       .local = &bed->src, .loff = 64,
			       .remote = &bed->dst, .value = 1ULL << 32));
		ASSERT_DONE(wait_send(bed->a));
		ASSERT_DONE(wait_send(&other.a));
	}
	EXPECT_EQ(ROUNDS + ((uint64_t)ROUNDS << 32), *word(&bed->dst, 0));
	EXPECT_OK(pair_close(&other));
}

/*
 * A zero-based region has aligned addresses for words that are not aligned in
 * memory: this one begins 4 bytes before the end of a page.
 */
TEST_F(atomic, aligned_address_of_a_word_that_is_not)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr = ibv_reg_mr(bed->b->pd, bed->dst.addr + 4084, 64,
				       ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED);

	ASSERT_NE(NULL, mr);
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			  .local = &bed->src, .raddr = 8, .rkey = mr->rkey,
			  .value = -1));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 4084, 64, 0));
	EXPECT_OK(ibv_dereg_mr(mr));
}

TEST_HARNESS_MAIN
