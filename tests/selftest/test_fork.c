// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* fork(2) while objects exist: parent and child do not harm each other. */
#include "two.h"

#define LEN	65536

BED(forked, LEN);

static int wait_child(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return status;
}

/*
 * The child writes to its copy of the pages; the device still moves the parent's.
 * Without care copy-on-write would hand the parent other pages.
 */
TEST_F(forked, device_stays_with_the_parents_pages)
{
	struct bed *bed = &self->bed;
	pid_t child;

	buf_fill(&bed->src, 1);
	child = fork();
	if (!child) {
		memset(bed->src.addr, 0xcc, LEN);
		memset(bed->dst.addr, 0xcc, LEN);
		_exit(bed->dst.addr[5] == 0xcc ? 0 : 1);
	}
	buf_fill(&bed->src, 2);		/* the parent's first write after fork */
	bed->dst.addr[0] = 0;
	ASSERT_OK(wait_child(child));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &bed->src, .remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 2, 0));
}

TEST_F(forked, childs_exit_leaves_the_parents_objects)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		ASSERT_OK(wait_child(child));
		buf_fill(&bed->src, i);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
				.local = &bed->src, .remote = &bed->dst));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, i, 0));
	}
}

TEST_F(forked, during_traffic)
{
	struct bed *bed = &self->bed;
	pid_t child;
	int i, j;

	buf_fill(&bed->src, 9);
	for (i = 0; i < 10; i++) {
		for (j = 0; j < 16; j++)
			ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE,
				       .len = LEN, .local = &bed->src,
				       .remote = &bed->dst));
		child = fork();
		if (!child)
			_exit(0);
		for (j = 0; j < 16; j++)
			ASSERT_DONE(wait_send(bed->a));
		ASSERT_OK(wait_child(child));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 9, 0));
	}
}

/* The child opens the device for itself and talks to the parent. */
TEST_F(forked, child_with_a_context_of_its_own)
{
	struct end end = {};
	int fds[2], i;
	pid_t child;

	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	child = fork();
	if (!child) {
		if (end_open(&end, LEN, NULL) || end_connect(&end, fds[1]))
			_exit(1);
		buf_fill(&end.buf, 5);
		for (i = 0; i < 20; i++)
			if (end_write(&end, LEN))
				_exit(2);
		end_close(&end);
		_exit(0);
	}
	ASSERT_OK(end_open(&end, LEN, NULL));
	ASSERT_OK(end_connect(&end, fds[0]));
	ASSERT_OK(wait_child(child));
	EXPECT_EQ(-1, buf_differs(&end.buf, 0, LEN, 5, 0));
	EXPECT_TRUE(buf_guards_intact(&end.buf));
	end_close(&end);
}

/*
 * The parent is gone, the child still holds the file: a key of the parent's memory
 * stays valid or is refused, and neither it nor the module comes to harm.
 */
TEST(parent_dies_first)
{
	struct bed bed = {};
	int fds[2], status;
	pid_t parent;
	char byte;

	ASSERT_OK(pipe(fds));
	parent = fork();
	ASSERT_GE(parent, 0);
	if (!parent) {
		if (bed_open(&bed, LEN, NULL))
			_exit(1);
		if (fork())
			_exit(0);
		usleep(50000);		/* orphaned, with the parent's file */
		if (write(fds[1], "", 1) != 1)
			_exit(2);
		_exit(0);
	}
	ASSERT_EQ(parent, waitpid(parent, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(1, read(fds[0], &byte, 1));
	ASSERT_OK(bed_open(&bed, LEN, NULL));
	EXPECT_DONE(RUN(bed.a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
			.local = &bed.src, .remote = &bed.dst));
	EXPECT_OK(bed_close(&bed));
}

TEST_HARNESS_MAIN
