// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_import_device, ibv_import_pd, ibv_import_mr: a second context on the file of the first, in
 * the same process and in another one, which gets the file by SCM_RIGHTS.
 */
#include <pthread.h>

#include "two.h"

#define LEN	65536

/* The side, and a peer to talk to, have their devices as in struct bed. */
BED(import, LEN, .channel = true);

/* The context of @from once more: 0 or a negative errno. */
static int dev_import(struct dev *dev, int fd, uint32_t pd, const struct dev *from)
{
	*dev = *from;
	dev->attr = &dev->ex.orig_attr;
	dev->pd = NULL;
	dev->ctx = ibv_import_device(fd);
	if (!dev->ctx)
		return -errno;
	dev->pd = ibv_import_pd(dev->ctx, pd);
	if (dev->pd)
		return 0;
	ibv_close_device(dev->ctx);
	return -errno;
}

static void dev_unimport(struct dev *dev)
{
	ibv_unimport_pd(dev->pd);
	dev->pd = NULL;
	dev_close(dev);
}

static int import_own(struct dev *dev, const struct dev *from)
{
	return dev_import(dev, dup(from->ctx->cmd_fd), from->pd->handle, from);
}

/* A pair whose sending side is of the imported context. */
static int imported_pair(struct bed *bed, struct dev *dev, struct pair *pair)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){ .channel = true });
	int ret;

	memset(pair, 0, sizeof(*pair));
	pair->opts = opts;
	ret = side_open(&pair->a, dev, &opts, false);
	if (ret)
		return ret;
	ret = side_open(&pair->b, bed->b->dev, &opts, false);
	pair->a.peer = pair->b.dev;
	pair->b.peer = dev;
	return ret ?: pair_connect(pair);
}

TEST_F(import, what_the_first_context_tells)
{
	struct bed *bed = &self->bed;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct dev dev;

	ASSERT_OK(import_own(&dev, &bed->dev));
	EXPECT_STREQ(dev_name(), ibv_get_device_name(dev.ctx->device));
	EXPECT_EQ(bed->dev.ctx->num_comp_vectors, dev.ctx->num_comp_vectors);
	EXPECT_EQ(bed->dev.pd->handle, dev.pd->handle);
	ASSERT_OK(ibv_query_device(dev.ctx, &attr));
	EXPECT_OK(memcmp(&attr, bed->dev.attr, sizeof(attr)));
	EXPECT_OK(ibv_query_port(dev.ctx, 1, &port));
	dev_unimport(&dev);
}

/* Memory of either context, by queue pairs of the other. */
TEST_F(import, memory_is_shared)
{
	struct bed *bed = &self->bed;
	struct pair pair;
	struct ibv_mr *mr;
	struct dev dev;
	struct buf own;

	ASSERT_OK(import_own(&dev, &bed->dev));
	ASSERT_OK(imported_pair(bed, &dev, &pair));
	mr = ibv_import_mr(dev.pd, mr_at(bed->a, &bed->src)->handle);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(mr_at(bed->a, &bed->src)->lkey, mr->lkey);
	EXPECT_EQ(mr_at(bed->a, &bed->src)->rkey, mr->rkey);
	EXPECT_EQ(LEN, mr->length);
	EXPECT_NULL(mr->addr);
	EXPECT_EQ(dev.pd, mr->pd);

	/* from the first context's memory, by the imported key */
	buf_fill(&bed->src, 1);
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .lkey = mr->lkey,
			.len = LEN, .raddr = (uintptr_t)bed->dst.addr,
			.rkey = mr_at(bed->b, &bed->dst)->rkey));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 1, 0));

	/* a queue pair of the first context, from memory of the second */
	ASSERT_OK(buf_open(&own, dev.pd, LEN, 0, ACCESS_REMOTE));
	buf_fill(&own, 2);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &own, .lkey = own.mr->lkey,
			.len = LEN, .raddr = (uintptr_t)bed->dst.addr,
			.rkey = mr_at(bed->b, &bed->dst)->rkey));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 2, 0));
	buf_close(&own);

	/* the first context keeps what the second lets go of */
	ibv_unimport_mr(mr);
	EXPECT_OK(pair_close(&pair));
	dev_unimport(&dev);
	buf_fill(&bed->src, 3);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			.remote = &bed->dst));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 3, 0));
}

/* Handles and files that name nothing, or something else. */
TEST_F(import, nonsense_is_refused)
{
	struct bed *bed = &self->bed;
	uint32_t mr = mr_at(bed->a, &bed->src)->handle;
	int fd = open("/dev/null", O_RDWR), fds[2];
	struct dev dev;

	ASSERT_LE(0, fd);
	EXPECT_NULL(ibv_import_device(fd));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_OK(close(fd));
	ASSERT_OK(pipe(fds));
	EXPECT_NULL(ibv_import_device(fds[0]));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_NULL(ibv_import_device(-1));
	close(fds[0]);
	close(fds[1]);

	ASSERT_OK(import_own(&dev, &bed->dev));
	EXPECT_NULL(ibv_import_pd(dev.ctx, 12345678));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_NULL(ibv_import_mr(dev.pd, 12345678));
	EXPECT_EQ(ENOENT, errno);
	/* of the other kind */
	EXPECT_NULL(ibv_import_pd(dev.ctx, mr));
	EXPECT_NULL(ibv_import_mr(dev.pd, dev.pd->handle));
	dev_unimport(&dev);
}

/* The uverbs file before anybody has made it a context. */
TEST_F(import, a_file_without_a_context_is_refused)
{
	struct bed *bed = &self->bed;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", bed->dev.ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_NULL(ibv_import_device(fd));
	EXPECT_NE(0, errno);
}

/* A parent domain around an imported domain, with objects in it. */
TEST_F(import, in_a_parent_domain)
{
	struct bed *bed = &self->bed;
	struct ibv_parent_domain_init_attr attr = {};
	struct ibv_pd *parent;
	struct ibv_mr *mr;
	struct dev dev;

	ASSERT_OK(import_own(&dev, &bed->dev));
	attr.pd = dev.pd;
	parent = ibv_alloc_parent_domain(dev.ctx, &attr);
	ASSERT_NE(NULL, parent);
	mr = ibv_import_mr(parent, mr_at(bed->a, &bed->src)->handle);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	ibv_unimport_mr(mr);
	EXPECT_OK(ibv_dealloc_pd(parent));
	dev_unimport(&dev);
}

/* Events of an object come to the context that made the object. */
TEST_F(import, events_are_its_own)
{
	struct bed *bed = &self->bed;
	struct ibv_async_event event;
	struct ibv_cq *cq = NULL;
	struct pair pair;
	struct dev dev;

	ASSERT_OK(import_own(&dev, &bed->dev));
	ASSERT_OK(imported_pair(bed, &dev, &pair));
	ASSERT_OK(ibv_req_notify_cq(pair.a.scq, 0));
	ASSERT_OK(POST(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
		       .remote = &bed->dst));
	ASSERT_OK(wait_channel(pair.a.channel, &cq));
	EXPECT_EQ(pair.a.scq, cq);
	ASSERT_DONE(wait_send(&pair.a));

	/* a key that names nothing: the target's queue pair fails, with an event */
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(&pair.b, .op = IBV_WR_RDMA_WRITE, .len = 8, .local = &bed->dst,
			  .remote = &bed->src, .rkey = ~0u));
	ASSERT_EQ(IBV_EVENT_QP_ACCESS_ERR, wait_event(dev.ctx, &event));
	EXPECT_EQ(pair.a.qp, event.element.qp);
	EXPECT_FALSE(readable(bed->dev.ctx->async_fd, 20));
	EXPECT_OK(pair_close(&pair));
	dev_unimport(&dev);
}

struct writer {
	struct side *side;
	struct buf *src, *dst;
	int rounds, ret;
};

static void *write_on(void *arg)
{
	struct writer *w = arg;
	int i;

	for (i = 0; i < w->rounds && !w->ret; i++)
		w->ret = RUN(w->side, .op = IBV_WR_RDMA_WRITE, .local = w->src, .len = 64,
			     .remote = w->dst);
	return NULL;
}

/* Both contexts at once: doorbells, rings and credit are each their own. */
TEST_F(import, both_at_once)
{
	struct bed *bed = &self->bed;
	struct writer first = { bed->a, &bed->src, &bed->dst, 3000, 0 }, second = first;
	pthread_t thread;
	struct pair pair;
	struct dev dev;

	ASSERT_OK(import_own(&dev, &bed->dev));
	ASSERT_OK(imported_pair(bed, &dev, &pair));
	second.side = &pair.a;
	ASSERT_OK(pthread_create(&thread, NULL, write_on, &second));
	write_on(&first);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_DONE(first.ret);
	EXPECT_DONE(second.ret);
	EXPECT_OK(pair_close(&pair));
	dev_unimport(&dev);
}

/* The importer may also destroy: the first context then lets go of what is gone. */
TEST_F(import, importer_deregisters)
{
	struct bed *bed = &self->bed;
	struct ibv_mr *mr, *first;
	struct dev dev;

	first = ibv_reg_mr(bed->b->pd, bed->dst.addr, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, first);
	ASSERT_OK(import_own(&dev, bed->b->dev));
	mr = ibv_import_mr(dev.pd, first->handle);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(ibv_dereg_mr(mr));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			  .raddr = (uintptr_t)bed->dst.addr, .rkey = first->rkey));
	ibv_unimport_mr(first);
	dev_unimport(&dev);
}

/* The first context is closed; its file is not, so all that it made stays. */
TEST_F(import, first_context_is_closed)
{
	struct bed *bed = &self->bed;
	struct dev first, dev;
	struct pair pair;

	ASSERT_OK(dev_open(&first));
	ASSERT_OK(import_own(&dev, &first));
	ASSERT_OK(ibv_close_device(first.ctx));
	ASSERT_OK(imported_pair(bed, &dev, &pair));
	buf_fill(&bed->dst, 9);
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src, .len = 0));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_OK(pair_close(&pair));
	/* nobody else has it */
	EXPECT_OK(ibv_dealloc_pd(dev.pd));
	dev.pd = NULL;
	dev_close(&dev);
}

/* ---- two processes ---- */

/**
 * struct offer - what the first process tells the second
 * @dev: its device; only what is not a pointer is used
 * @pd: handle of its protection domain
 * @mr: handle of its region
 * @addr: where that is
 */
struct offer {
	struct dev dev;
	uint32_t pd, mr;
	uint64_t addr;
};

static int send_offer(int socket, const struct offer *offer, int fd)
{
	struct iovec iov = { (void *)offer, sizeof(*offer) };
	char control[CMSG_SPACE(sizeof(fd))] = {};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == sizeof(*offer) ? 0 : -EPIPE;
}

/* The file that comes with it, or a negative errno. */
static int recv_offer(int socket, struct offer *offer)
{
	struct iovec iov = { offer, sizeof(*offer) };
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != sizeof(*offer) || !CMSG_FIRSTHDR(&msg))
		return -EPIPE;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The second process: its own memory, queue pairs to itself, and the first one's region. */
struct second {
	struct dev dev;
	struct ibv_mr *mr;
	struct pair pair;
	struct buf buf;
	struct offer offer;
};

static int second_open(struct second *s, int socket)
{
	struct pair_opts opts = { .channel = true };
	int fd = recv_offer(socket, &s->offer), ret;

	if (fd < 0)
		return fd;
	ret = dev_import(&s->dev, fd, s->offer.pd, &s->offer.dev);
	if (ret)
		return ret;
	s->mr = ibv_import_mr(s->dev.pd, s->offer.mr);
	if (!s->mr)
		return -errno;
	ret = pair_open(&s->pair, &s->dev, &opts) ?: pair_connect(&s->pair);
	return ret ?: buf_open(&s->buf, s->dev.pd, LEN, 0, ACCESS_REMOTE);
}

/* All of its buffer into the first process's region, and back. */
static int second_write(struct second *s, uint32_t seed)
{
	int ret;

	buf_fill(&s->buf, seed);
	ret = RUN(&s->pair.a, .op = IBV_WR_RDMA_WRITE, .local = &s->buf, .len = LEN,
		  .raddr = s->offer.addr, .rkey = s->mr->rkey);
	if (ret)
		return ret;
	memset(s->buf.addr, 0, LEN);
	ret = RUN(&s->pair.a, .op = IBV_WR_RDMA_READ, .local = &s->buf, .len = LEN,
		  .raddr = s->offer.addr, .rkey = s->mr->rkey);
	return ret ?: buf_differs(&s->buf, 0, LEN, seed, 0) < 0 ? 0 : -EILSEQ;
}

static void second_close(struct second *s)
{
	pair_close(&s->pair);
	buf_close(&s->buf);
	ibv_unimport_mr(s->mr);
	dev_unimport(&s->dev);
}

static int tell(int socket, char what)
{
	return send(socket, &what, 1, MSG_NOSIGNAL) == 1 ? 0 : -EPIPE;
}

static int hear(int socket)
{
	char what;

	return readable(socket, WAIT_SECONDS * 1000) && recv(socket, &what, 1, 0) == 1 ? what : -1;
}

/*
 * The second process. It writes whenever it is told to, with the byte as the seed, and says 'y' if
 * that was good. 'q' ends it, and 'l' has it write for ever.
 */
static int second_main(int socket)
{
	struct second s = {};
	int what, ret = second_open(&s, socket);

	if (ret)
		return 100 + (-ret & 63);
	if (tell(socket, 'r'))
		return 2;
	while ((what = hear(socket)) > 0 && what != 'q') {
		do {
			ret = second_write(&s, what);
		} while (!ret && what == 'l');
		if (tell(socket, ret ? 'n' : 'y'))
			return 3;
	}
	second_close(&s);
	return 0;
}

/* The second process, which is there before the first opens its device. Return: its id. */
static pid_t second_start(int *socket)
{
	pid_t child;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	child = fork();
	if (!child) {
		close(fds[0]);
		_exit(second_main(fds[1]));
	}
	close(fds[1]);
	*socket = fds[0];
	return child;
}

FIXTURE(two) {
	struct dev dev;
	struct buf buf;
	pid_t second;
	int socket;
};

FIXTURE_SETUP(two)
{
	struct offer offer;

	self->second = second_start(&self->socket);
	ASSERT_LT(0, self->second);
	ASSERT_OK(dev_open(&self->dev));
	ASSERT_OK(buf_open(&self->buf, self->dev.pd, LEN, 0, ACCESS_REMOTE));
	offer = (struct offer){ .dev = self->dev, .pd = self->dev.pd->handle,
				.mr = self->buf.mr->handle,
				.addr = (uintptr_t)self->buf.addr };
	ASSERT_OK(send_offer(self->socket, &offer, self->dev.ctx->cmd_fd));
	ASSERT_EQ('r', hear(self->socket));
}

FIXTURE_TEARDOWN(two)
{
	int status;

	if (self->second > 0) {
		EXPECT_OK(tell(self->socket, 'q'));
		EXPECT_EQ(self->second, waitpid(self->second, &status, 0));
		EXPECT_EQ(0, status);
	}
	close(self->socket);
	EXPECT_TRUE(buf_guards_intact(&self->buf));
	buf_close(&self->buf);
	dev_close(&self->dev);
}

TEST_F(two, second_moves_data)
{
	ASSERT_OK(tell(self->socket, 'a'));
	ASSERT_EQ('y', hear(self->socket));
	EXPECT_EQ(-1, buf_differs(&self->buf, 0, LEN, 'a', 0));
	ASSERT_OK(tell(self->socket, 'b'));
	ASSERT_EQ('y', hear(self->socket));
	EXPECT_EQ(-1, buf_differs(&self->buf, 0, LEN, 'b', 0));
}

/* Both use the context at once, and each polls what is its own. */
TEST_F(two, both_move_data)
{
	struct pair pair;
	struct buf own;
	int i;

	ASSERT_OK(pair_open(&pair, &self->dev, NULL));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(buf_open(&own, self->dev.pd, LEN, 0, ACCESS_REMOTE));
	for (i = 'A'; i < 'A' + 20; i++) {
		ASSERT_OK(tell(self->socket, i));
		buf_fill(&own, i);
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &own, .len = LEN,
				.remote = &own));
		ASSERT_EQ('y', hear(self->socket));
		ASSERT_EQ(-1, buf_differs(&self->buf, 0, LEN, i, 0));
	}
	buf_close(&own);
	EXPECT_OK(pair_close(&pair));
}

/* Its queue pairs stay until the file is closed, and the first process goes on. */
TEST_F(two, second_is_killed)
{
	struct pair pair;
	int i, status;

	ASSERT_OK(tell(self->socket, 'l'));
	usleep(20000);
	ASSERT_OK(kill(self->second, SIGKILL));
	ASSERT_EQ(self->second, waitpid(self->second, &status, 0));
	self->second = 0;
	ASSERT_OK(pair_open(&pair, &self->dev, NULL));
	ASSERT_OK(pair_connect(&pair));
	buf_fill(&self->buf, 7);
	for (i = 0; i < 100; i++)
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &self->buf,
				.len = LEN / 2, .remote = &self->buf, .roff = LEN / 2));
	EXPECT_EQ(-1, buf_differs(&self->buf, LEN / 2, LEN / 2, 7, 0));
	EXPECT_OK(pair_close(&pair));
}

/* As FIXTURE_SETUP, in a process of its own, which is killed then. */
static int first_main(int socket)
{
	struct offer offer;
	struct dev dev;
	struct buf buf;

	if (dev_open(&dev) || buf_open(&buf, dev.pd, LEN, 0, ACCESS_REMOTE))
		return 1;
	offer = (struct offer){ .dev = dev, .pd = dev.pd->handle, .mr = buf.mr->handle,
				.addr = (uintptr_t)buf.addr };
	if (send_offer(socket, &offer, dev.ctx->cmd_fd))
		return 2;
	for (;;)
		pause();
}

/*
 * The second process goes on when the first is gone: with what it made itself, with the first one's
 * region, whose memory stays pinned, and with new objects.
 */
TEST(first_is_killed)
{
	int socket, status, i;
	pid_t first, second;

	second = second_start(&socket);
	ASSERT_LT(0, second);
	first = fork();
	ASSERT_LE(0, first);
	if (!first)
		_exit(first_main(socket));
	ASSERT_EQ('r', hear(socket));
	ASSERT_OK(tell(socket, 'a'));
	ASSERT_EQ('y', hear(socket));
	ASSERT_OK(kill(first, SIGKILL));
	ASSERT_EQ(first, waitpid(first, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	for (i = 'b'; i < 'k'; i++) {
		ASSERT_OK(tell(socket, i));
		ASSERT_EQ('y', hear(socket));
	}
	ASSERT_OK(tell(socket, 'q'));
	ASSERT_EQ(second, waitpid(second, &status, 0));
	EXPECT_EQ(0, status);
	close(socket);
}

/* In the middle of the second one's transfers, many times. */
TEST(first_is_killed_meanwhile)
{
	int socket, status, i;
	pid_t first, second;

	for (i = 0; i < 10; i++) {
		second = second_start(&socket);
		ASSERT_LT(0, second);
		first = fork();
		ASSERT_LE(0, first);
		if (!first)
			_exit(first_main(socket));
		ASSERT_EQ('r', hear(socket));
		ASSERT_OK(tell(socket, 'l'));
		usleep(i * 500);
		ASSERT_OK(kill(first, SIGKILL));
		ASSERT_EQ(first, waitpid(first, &status, 0));
		/* it writes on */
		EXPECT_FALSE(readable(socket, 10));
		ASSERT_OK(kill(second, SIGKILL));
		ASSERT_EQ(second, waitpid(second, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		close(socket);
	}
}

TEST_HARNESS_MAIN
