// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Users who do not know each other: names, secrets, numbers. */
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "native.h"
#include "native_raw.h"

#define LEN	4096
#define NOBODY	65534

FIXTURE(isolation)
{
	struct node node;
	char open[32], closed[32];
	struct vrnic_context *c_open, *c_closed;
};

static int make_context(struct vrnic_client *client, const char *name,
			uint32_t flags, struct vrnic_context **context)
{
	return vrnic_context_create(client, CONTEXT(.name = name, .flags = flags),
				    context);
}

FIXTURE_SETUP(isolation)
{
	NEED_NATIVE();
	if (geteuid())
		SKIP(return, "only root can be two users");
	ASSERT_OK(node_open(&self->node, LEN, NULL));
	snprintf(self->open, sizeof(self->open), "open-%d", getpid());
	snprintf(self->closed, sizeof(self->closed), "closed-%d", getpid());
	ASSERT_OK(make_context(self->node.client, self->open, VRNIC_CONTEXT_OPEN,
			       &self->c_open));
	ASSERT_OK(make_context(self->node.client, self->closed, 0,
			       &self->c_closed));
}

FIXTURE_TEARDOWN(isolation)
{
	if (!self->c_closed)
		return;
	EXPECT_OK(vrnic_context_destroy(self->c_open));
	EXPECT_OK(vrnic_context_destroy(self->c_closed));
	EXPECT_OK(node_close(&self->node));
}

/* The call that the other process tries, its user, and the expected result. */
struct trial {
	uid_t user;
	const char *name;
	struct vrnic_address address;
	bool by_name;
	int expected;
};

static int try_it(int fd, const void *arg)
{
	const struct trial *t = arg;
	struct vrnic_endpoint *to = NULL;
	struct node node = {};
	int ret;

	if (setgroups(0, NULL) || setgid(t->user) || setuid(t->user))
		return 101;
	ret = node_open(&node, LEN, NULL);
	if (ret) {
		fprintf(stderr, "# user %u cannot open: %d\n", t->user, ret);
		return 102;
	}
	if (t->by_name)
		ret = vrnic_endpoint_find(node.context, t->name, 0, 0, &to);
	else
		ret = vrnic_endpoint_create(node.context, &t->address, &to);
	if (ret != t->expected) {
		fprintf(stderr, "# %d instead of %d\n", ret, t->expected);
		return 103;
	}
	if (!ret && vrnic_endpoint_destroy(to))
		return 104;
	return node_close(&node) ? 105 : 0;
}

static int trial(const struct trial *t)
{
	struct peer peer;
	int ret = peer_start(&peer, try_it, t);

	return ret ? ret : peer_end(&peer);
}

#define TRIAL(...)	trial(&(struct trial){ __VA_ARGS__ })

TEST_F(isolation, found_by_name)
{
	EXPECT_OK(TRIAL(0, self->closed, .by_name = true));
	EXPECT_OK(TRIAL(0, self->open, .by_name = true));
}

TEST_F(isolation, not_by_other_users)
{
	EXPECT_OK(TRIAL(NOBODY, self->closed, .by_name = true, .expected = -EACCES));
	EXPECT_OK(TRIAL(NOBODY, "nobody has this name", .by_name = true, .expected = -ENOENT));
}

TEST_F(isolation, by_other_users_if_open)
{
	EXPECT_OK(TRIAL(NOBODY, self->open, .by_name = true));
}

/* Any user who was given the address may use it. */
TEST_F(isolation, address_is_enough)
{
	struct trial t = { NOBODY };

	vrnic_context_address(self->c_closed, &t.address);
	EXPECT_OK(trial(&t));
}

TEST_F(isolation, wrong_secret)
{
	struct trial t = { NOBODY, .expected = -EACCES };
	int bit;

	for (bit = 0; bit < 64; bit += 9) {
		vrnic_context_address(self->c_open, &t.address);
		t.address.secret ^= 1ULL << bit;
		EXPECT_OK(trial(&t));
	}
}

TEST_F(isolation, name_is_free_again_after_death)
{
	struct trial t = { 0, self->closed, .by_name = true };
	struct vrnic_context *again;

	ASSERT_OK(vrnic_context_destroy(self->c_closed));
	t.expected = -ENOENT;
	EXPECT_OK(trial(&t));
	ASSERT_OK(make_context(self->node.client, self->closed, 0, &again));
	t.expected = 0;
	EXPECT_OK(trial(&t));
	self->c_closed = again;
}

/* Numbers of another process's FIFOs and counters open nothing at the doorbell. */
TEST_F(isolation, doorbell_of_others)
{
	struct vrnic_wait wait = { .what = VRNIC_WAIT_COUNTER, .timeout_ns = 0 };
	struct vrnic_address address;
	struct raw_fifo fifo;

	ASSERT_OK(raw_open(&fifo, 64, 256, LEN));
	vrnic_context_address(self->node.context, &address);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_ADVANCE, (unsigned long)address.fifo));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_ADVANCE,
			    (unsigned long)fifo.address.fifo | 1UL << 32));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_ADVANCE_DEFERRED, (unsigned long)address.fifo));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_ADVANCE_DEFERRED,
			    (unsigned long)fifo.address.fifo | 1UL << 32));
	EXPECT_EQ(EINVAL, errno);
	wait.id = vrnic_counter_number(self->node.counter);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(EINVAL, errno);
	wait.what = VRNIC_WAIT_FIFO;
	wait.id = address.fifo;
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(EINVAL, errno);
	wait.id = fifo.address.fifo;
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(ETIME, errno);
	wait.what = 3;
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fifo.bell, VRNIC_WAIT, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_OK(raw_close(&fifo));
}

/* In the child: which parts of the parent's FIFO it can reach. Exit status. */
static int as_child(struct raw_fifo *fifo,
		    const struct vrnic_create_fifo_req *req,
		    const struct vrnic_create_fifo_resp *parents)
{
	struct vrnic_create_fifo_resp resp = {};
	uint32_t handle;
	void *map;

	if (!msync(fifo->inject, 4096, MS_ASYNC) || errno != ENOMEM)
		return 101;
	map = mmap(NULL, parents->inject.bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fifo->dev.ctx->cmd_fd, parents->inject.offset);
	if (map != MAP_FAILED || errno != EPERM)
		return 102;
	return raw_create_fifo(fifo, req, &handle, &resp) == -EPERM ? 0 : 103;
}

/*
 * A descriptor may name any address of the process that made the FIFO. So only this
 * process may use the rings, even if other processes have the file.
 */
TEST_F(isolation, rings_are_not_inherited)
{
	struct vrnic_create_fifo_req req = {
		.inject_slots = 64, .receive_slots = 256, .eventfd = -1,
	};
	struct vrnic_create_fifo_resp resp = {};
	struct raw_fifo fifo;
	uint32_t handle;
	int status;
	pid_t pid;

	ASSERT_OK(raw_open(&fifo, 64, 256, LEN));
	req.gid_index = fifo.dev.gid_index;
	ASSERT_OK(raw_create_fifo(&fifo, &req, &handle, &resp));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(as_child(&fifo, &req, &resp));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_OK(raw_destroy(fifo.dev.ctx, VRNIC_OBJECT_FIFO,
			      VRNIC_METHOD_FIFO_DESTROY,
			      VRNIC_ATTR_FIFO_DESTROY_HANDLE, handle));
	EXPECT_OK(raw_close(&fifo));
}

TEST_HARNESS_MAIN
