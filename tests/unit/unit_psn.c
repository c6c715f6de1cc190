// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Packet sequence numbers, above all where 24 bits end. */
#include "lib/psn.h"

#include "unit.h"

#define LAST	0xffffffU

static void adding_wraps(void)
{
	CHECK_EQ(1, vrnic_psn_add(0, 1));
	CHECK_EQ(0, vrnic_psn_add(LAST, 1));
	CHECK_EQ(LAST, vrnic_psn_add(LAST, 0));
	CHECK_EQ(LAST - 1, vrnic_psn_add(LAST, LAST));
	CHECK_EQ(0x10, vrnic_psn_add(0xfffff0, 0x20));
	CHECK_EQ(5, vrnic_psn_add(5, 0x1000000));
}

static void difference_is_the_short_way_round(void)
{
	CHECK_EQ(0, vrnic_psn_diff(7, 7));
	CHECK(vrnic_psn_diff(8, 7) == 1);
	CHECK(vrnic_psn_diff(7, 8) == -1);
	CHECK(vrnic_psn_diff(0, LAST) == 1);
	CHECK(vrnic_psn_diff(LAST, 0) == -1);
	CHECK(vrnic_psn_diff(0x7fffff, 0) == 0x7fffff);
	CHECK(vrnic_psn_diff(0x800000, 0) == -0x800000);
	CHECK(vrnic_psn_diff(0, 0x7fffff) == -0x7fffff);
	CHECK(vrnic_psn_diff(0x400000, 0xc00001) == 0x7fffff);
}

static void difference_looks_at_24_bits(void)
{
	CHECK(vrnic_psn_diff(0xab000005, 3) == 2);
	CHECK(vrnic_psn_diff(3, 0xff000005) == -2);
}

/* Whatever the distance, adding and taking the difference are each other's opposite. */
static void difference_undoes_adding(void)
{
	static const u32 starts[] = { 0, 1, 0x7fffff, 0x800000, LAST - 1, LAST };
	unsigned int i;
	u32 n;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		for (n = 0; n < 0x800000; n += 4093)
			CHECK(vrnic_psn_diff(vrnic_psn_add(starts[i], n),
					     starts[i]) == (s32)n);
}

static void extending(void)
{
	CHECK_EQ(5, vrnic_psn_extend(5, 3));
	CHECK_EQ(0x1000000, vrnic_psn_extend(0, LAST));
	CHECK_EQ(LAST, vrnic_psn_extend(LAST, 0x1000000));
	CHECK_EQ(0x123456789abULL, vrnic_psn_extend(0x6789ab, 0x12345678900ULL));
	CHECK_EQ(0xfffffffffULL, vrnic_psn_extend(LAST, 0x1000000002ULL));
}

/* A message of 2^31 bytes in the smallest packets has more than 2^22 of them. */
static void extending_follows_a_long_count(void)
{
	u64 count = 0xfffffe, end = count + (1 << 23) + 10;

	for (; count < end; count += 1021)
		CHECK_EQ(count, vrnic_psn_extend(count & LAST, count - 1000));
}

static void packets_of_a_message(void)
{
	CHECK_EQ(1, vrnic_psn_count(0, 1024));
	CHECK_EQ(1, vrnic_psn_count(1, 1024));
	CHECK_EQ(1, vrnic_psn_count(1024, 1024));
	CHECK_EQ(2, vrnic_psn_count(1025, 1024));
	CHECK_EQ(1 << 23, vrnic_psn_count(1ULL << 31, 256));
	CHECK_EQ(1 << 19, vrnic_psn_count(1ULL << 31, 4096));
}

static const struct unit_test tests[] = {
	UNIT(adding_wraps), UNIT(difference_is_the_short_way_round),
	UNIT(difference_looks_at_24_bits), UNIT(difference_undoes_adding),
	UNIT(extending), UNIT(extending_follows_a_long_count),
	UNIT(packets_of_a_message),
};

UNIT_MAIN(tests)
