// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What engine threads do of a FIFO is done in the control group of its process. */
#include "cgroup.h"
#include "native_util.h"

#define LEN	(4 << 20)
#define PUTS	8
#define ROUNDS	256

/* Both ways: what it injects, and what its peer gets from it. */
static int move_much(struct nbed *bed)
{
	int ret = 0, i;

	for (i = 0; !ret && i < PUTS; i++)
		ret = i % 2 ? nbed_put(bed, 0, 0, LEN, NULL) : nbed_get(bed, 0, 0, LEN, NULL);
	return ret ?: vrnic_fence_wait(bed->a.to, WAIT_NS, NULL);
}

TEST(its_fifos_are_run_at_its_cost)
{
	int64_t before, spent = 0;
	struct group group;
	const char *why;
	struct nbed bed = {};
	int i;

	why = no_groups(&group);
	if (why)
		SKIP(return, "no group: %s", why);
	ASSERT_OK(group_enter(&group));
	ASSERT_OK(nbed_open(&bed, LEN, NULL));
	EXPECT_LT(0, group_threads(&group));
	before = group_cpu_of_others(&group);
	for (i = 0; i < ROUNDS && spent < ENOUGH_NS; i++) {
		ASSERT_OK(move_much(&bed));
		spent = group_cpu_of_others(&group) - before;
	}
	EXPECT_LE(ENOUGH_NS, spent);
	EXPECT_OK(nbed_close(&bed));
	EXPECT_EQ(0, group_threads(&group));
	EXPECT_OK(group_leave(&group));
	EXPECT_OK(group_close(&group));
}

TEST_HARNESS_MAIN
