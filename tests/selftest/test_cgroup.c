// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Engine threads work in the control group of the process that posted, at its cost. */
#include "cgroup.h"

#define LEN	(8 << 20)	/* of which a doorbell moves a part only */
#define POSTS	8
#define ROUNDS	256

static const struct pair_opts opts = { .channel = true };

FIXTURE(cgroup) {
	struct group group;
};

/* The process is in the group from now on, and has no context open. */
FIXTURE_SETUP(cgroup)
{
	const char *why = no_groups(&self->group);

	if (why)
		SKIP(return, "no group: %s", why);
	ASSERT_OK(group_enter(&self->group));
}

/* The group goes at once: nobody is left in it. */
FIXTURE_TEARDOWN(cgroup)
{
	EXPECT_OK(group_leave(&self->group));
	EXPECT_OK(group_close(&self->group));
}

/* Sleep until the last of a few long requests is done. */
static int write_much(struct bed *bed)
{
	struct ibv_cq *cq;
	int ret, i;

	ret = ibv_req_notify_cq(bed->a->scq, 0);
	for (i = 0; !ret && i < POSTS; i++)
		ret = POST(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN, .local = &bed->src,
			   .remote = &bed->dst, .unsignaled = i < POSTS - 1);
	return ret ?: wait_channel(bed->a->channel, &cq) ?: wait_send(bed->a);
}

/* In a number of rounds that makes up for a clock that goes in ticks. */
TEST_F(cgroup, its_rings_are_run_at_its_cost)
{
	struct group *group = &self->group;
	int64_t before, spent = 0;
	struct bed bed = {};
	int i;

	if (over_a_wire())
		SKIP(return, "softirqs do most of the work of a wire, at nobody's cost");
	ASSERT_OK(bed_open(&bed, LEN, &opts));
	EXPECT_LT(0, group_threads(group));
	before = group_cpu_of_others(group);
	for (i = 0; i < ROUNDS && spent < ENOUGH_NS; i++) {
		ASSERT_DONE(write_much(&bed));
		spent = group_cpu_of_others(group) - before;
	}
	EXPECT_LE(ENOUGH_NS, spent);
	EXPECT_OK(bed_close(&bed));
	EXPECT_EQ(0, group_threads(group));
}

/* Threads are there as long as anybody in the group has a context open. */
TEST_F(cgroup, contexts_of_a_group_share_its_threads)
{
	struct group *group = &self->group;
	struct ibv_context *a, *b;
	int threads;

	EXPECT_EQ(0, group_threads(group));
	a = dev_open_context();
	ASSERT_NE(NULL, a);
	threads = group_threads(group);
	EXPECT_LT(0, threads);
	EXPECT_GE(module_param("engine_threads"), threads);
	b = dev_open_context();
	ASSERT_NE(NULL, b);
	EXPECT_EQ(threads, group_threads(group));
	EXPECT_OK(ibv_close_device(a));
	EXPECT_EQ(threads, group_threads(group));
	EXPECT_OK(ibv_close_device(b));
	EXPECT_EQ(0, group_threads(group));
}

/* Those of others run what processes in the root group leave to them. */
TEST_F(cgroup, another_group_has_threads_of_its_own)
{
	struct group *group = &self->group;
	struct ibv_context *a, *b;

	ASSERT_OK(group_leave(group));
	a = dev_open_context();
	ASSERT_NE(NULL, a);
	EXPECT_EQ(0, group_threads(group));
	ASSERT_OK(group_enter(group));
	EXPECT_EQ(0, group_threads(group));
	b = dev_open_context();
	ASSERT_NE(NULL, b);
	EXPECT_LT(0, group_threads(group));
	EXPECT_OK(ibv_close_device(a));
	EXPECT_LT(0, group_threads(group));
	EXPECT_OK(ibv_close_device(b));
	EXPECT_EQ(0, group_threads(group));
}

static int post_and_go(void *arg)
{
	struct bed bed = {};
	int ret, i;

	ret = bed_open(&bed, LEN, &opts);
	for (i = 0; !ret && i < POSTS; i++)
		ret = POST(bed.a, .op = IBV_WR_RDMA_WRITE, .len = LEN, .local = &bed.src,
			   .remote = &bed.dst);
	/* what is left is for the kernel to take back */
	return !!ret;
}

/* Threads are not in the group any more when its last process is gone. */
TEST_F(cgroup, goes_with_its_last_process)
{
	int i;

	for (i = 0; i < 8; i++) {
		ASSERT_OK(group_enter(&self->group));
		ASSERT_EQ(0, run_child(post_and_go, NULL));
		ASSERT_OK(group_leave(&self->group));
		ASSERT_OK(rmdir(self->group.path));
		ASSERT_OK(mkdir(self->group.path, 0700));
	}
}

#define USER_GROUPS	128	/* that one user may have threads in */

/* A context in a group of its own, number @i; its threads stay there. */
static struct ibv_context *context_in(const struct group *parent, int i)
{
	struct ibv_context *context;
	struct group group = *parent;

	snprintf(group.path, sizeof(group.path), "%s/user-%d", parent->root, i);
	if (mkdir(group.path, 0700) || group_enter(&group))
		return NULL;
	context = dev_open_context();
	if (!context)
		i = errno;
	group_leave(&group);
	if (!context)
		errno = i;
	return context;
}

static void remove_groups(const struct group *parent, int n)
{
	char path[80];

	while (n--) {
		snprintf(path, sizeof(path), "%s/user-%d", parent->root, n);
		rmdir(path);
	}
}

/* A user with a subtree of groups does not take all threads. */
TEST_F(cgroup, one_user_has_threads_in_a_share_of_the_groups)
{
	struct ibv_context *contexts[USER_GROUPS + 1];
	int i;

	ASSERT_OK(group_leave(&self->group));
	ASSERT_EQ(0, setreuid(1000, 0));
	for (i = 0; i < USER_GROUPS; i++) {
		contexts[i] = context_in(&self->group, i);
		ASSERT_NE(NULL, contexts[i]);
	}
	EXPECT_EQ(NULL, context_in(&self->group, USER_GROUPS));
	EXPECT_EQ(ENOMEM, errno);
	ASSERT_EQ(0, setreuid(0, 0));
	contexts[USER_GROUPS] = context_in(&self->group, USER_GROUPS + 1);
	EXPECT_NE(NULL, contexts[USER_GROUPS]);
	for (i = 0; i <= USER_GROUPS; i++)
		if (contexts[i])
			EXPECT_OK(ibv_close_device(contexts[i]));
	remove_groups(&self->group, USER_GROUPS + 2);
}

TEST_HARNESS_MAIN
