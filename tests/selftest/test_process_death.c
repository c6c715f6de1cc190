// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that is killed in the middle of everything: its objects go, its peer
 * gets an error in due time, and nobody else notices.
 */
#include "rdma_tool.h"
#include "two.h"

#define LEN	(1 << 20)

FIXTURE(death)
{
	struct end end;
	int fd;
	pid_t child;
	char before[4096];
};

FIXTURE_VARIANT(death)
{
	enum ibv_wr_opcode op;
	bool child_sends;
};

FIXTURE_VARIANT_ADD(death, writer) { IBV_WR_RDMA_WRITE, true };
FIXTURE_VARIANT_ADD(death, reader) { IBV_WR_RDMA_READ, true };
FIXTURE_VARIANT_ADD(death, adder) { IBV_WR_ATOMIC_FETCH_AND_ADD, true };
FIXTURE_VARIANT_ADD(death, sender_without_receiver) { IBV_WR_SEND, true };
FIXTURE_VARIANT_ADD(death, written_to) { IBV_WR_RDMA_WRITE, false };
FIXTURE_VARIANT_ADD(death, read_from) { IBV_WR_RDMA_READ, false };

static const struct pair_opts death_opts = { .timeout = 8, .retry = 3 };

static int submit(struct end *end, enum ibv_wr_opcode op)
{
	return POST(&end->side, .op = op, .local = &end->buf,
		    .len = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : LEN,
		    .raddr = end->peer.addr, .rkey = end->peer.rkey,
		    .value = 1);
}

/* Keep the queue full; tell by a byte that the traffic runs. */
static void stream(struct end *end, int fd, enum ibv_wr_opcode op)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 32; i++)
		if (submit(end, op))
			_exit(2);
	if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
		_exit(3);
	for (;;) {
		if (ibv_poll_cq(end->side.scq, 1, &wc) > 0)
			submit(end, op);
		else
			sched_yield();
	}
}

static void child_main(int fd, enum ibv_wr_opcode op, bool sends)
{
	struct end end = {};

	if (end_open(&end, LEN, &death_opts) || end_connect(&end, fd))
		_exit(1);
	if (sends)
		stream(&end, fd, op);
	if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
		_exit(3);
	for (;;)
		pause();
}

static int start_child(FIXTURE_DATA(death) *self, enum ibv_wr_opcode op,
		       bool sends)
{
	char byte;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	self->child = fork();
	if (self->child < 0)
		return -errno;
	if (!self->child) {
		close(fds[0]);
		child_main(fds[1], op, sends);
	}
	close(fds[1]);
	self->fd = fds[0];
	if (end_connect(&self->end, self->fd))
		return -EPIPE;
	return recv(self->fd, &byte, 1, 0) == 1 ? 0 : -EPIPE;
}

FIXTURE_SETUP(death)
{
	ASSERT_OK(end_open(&self->end, LEN, &death_opts));
	ASSERT_OK(start_child(self, variant->op, variant->child_sends));
}

FIXTURE_TEARDOWN(death)
{
	EXPECT_TRUE(buf_guards_intact(&self->end.buf));
	end_close(&self->end);
	close(self->fd);
}

static int kill_child(FIXTURE_DATA(death) *self)
{
	int status;

	if (kill(self->child, SIGKILL) ||
	    waitpid(self->child, &status, 0) != self->child)
		return -errno;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -EIO;
}

TEST_F(death, leaves_nothing_behind)
{
	int held = resources_of(dev_name(), self->child);

	if (held < 0)
		SKIP(goto out, "there is no rdma command that shows resources");
	EXPECT_GT(held, 0);
out:
	ASSERT_OK(kill_child(self));
	if (held > 0)
		EXPECT_EQ(0, resources_of(dev_name(), self->child));
}

TEST_F(death, peer_gets_an_error)
{
	struct end *end = &self->end;
	int i, status = 0;

	if (!variant->child_sends)
		for (i = 0; i < 32; i++)
			ASSERT_OK(submit(end, variant->op));
	ASSERT_OK(kill_child(self));
	if (variant->child_sends)
		ASSERT_OK(submit(end, IBV_WR_RDMA_WRITE));
	for (i = 0; i < (variant->child_sends ? 1 : 32) && !status; i++)
		status = wait_send(&end->side);
	/* on a fast bed everything may have been done before the kill */
	if (!status) {
		ASSERT_OK(submit(end, IBV_WR_RDMA_WRITE));
		status = wait_send(&end->side);
	}
	/* the queue pair went first, or the memory did */
	EXPECT_TRUE(status == IBV_WC_RETRY_EXC_ERR ||
		    status == IBV_WC_REM_ACCESS_ERR)
		TH_LOG("status: %s", ibv_wc_status_str(status));
}

/* Once the process is gone, nothing of it writes to anybody's memory. */
TEST_F(death, no_write_after_it)
{
	struct end *end = &self->end;
	uint8_t *copy = malloc(LEN);

	ASSERT_NE(NULL, copy);
	ASSERT_OK(kill_child(self));
	memcpy(copy, end->buf.addr, LEN);
	usleep(30000);
	EXPECT_OK(memcmp(copy, end->buf.addr, LEN));
	free(copy);
}

TEST_F(death, device_goes_on)
{
	struct bed bed = {};
	int i;

	ASSERT_OK(kill_child(self));
	ASSERT_OK(bed_open(&bed, LEN, NULL));
	for (i = 0; i < 10; i++) {
		buf_fill(&bed.src, i);
		ASSERT_DONE(RUN(bed.a, .op = IBV_WR_RDMA_WRITE, .len = LEN,
				.local = &bed.src, .remote = &bed.dst));
		ASSERT_EQ(-1, buf_differs(&bed.dst, 0, LEN, i, 0));
	}
	EXPECT_OK(bed_close(&bed));
}

TEST_F(death, again_and_again)
{
	int i;

	ASSERT_OK(kill_child(self));
	for (i = 0; i < 15; i++) {
		close(self->fd);
		ASSERT_OK(qp_to(self->end.side.qp, IBV_QPS_RESET));
		ASSERT_OK(start_child(self, variant->op, variant->child_sends));
		usleep(i * 300);
		ASSERT_OK(kill_child(self));
	}
}

/* Exit without closing anything is the same, done politely. */
TEST(exit_without_cleaning_up)
{
	struct bed bed = {};
	int i, status;
	pid_t child;

	for (i = 0; i < 10; i++) {
		child = fork();
		ASSERT_GE(child, 0);
		if (!child) {
			if (bed_open(&bed, LEN, NULL))
				_exit(1);
			for (i = 0; i < 30; i++)
				POST(bed.a, .op = IBV_WR_RDMA_WRITE,
				     .local = &bed.src, .remote = &bed.dst,
				     .len = LEN);
			_exit(0);
		}
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_EQ(0, status);
	}
}

TEST_HARNESS_MAIN
