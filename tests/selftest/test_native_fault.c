// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that is not registered, and whose pages do not come (userfaultfd): only its process
 * waits for them. A device can be deleted meanwhile, and the process can be killed.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "native.h"

#define LEN	(16 * 4096)
#define DEV	"vrnicuf"
#define NETDEV	"vrnuf"
#define HANG	20	/* seconds: longer than anything that ends by itself */

static bool have_userfaultfd(void)
{
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Memory whose pages nobody will bring; the file must stay open. */
static uint8_t *unserved(int *fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *mem;

	/* one that blocks cannot be polled */
	*fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*fd < 0 || mem == MAP_FAILED || ioctl(*fd, UFFDIO_API, &api))
		return NULL;
	reg.range.start = (uintptr_t)mem;
	reg.range.len = LEN;
	return ioctl(*fd, UFFDIO_REGISTER, &reg) ? NULL : mem;
}

/* Is this process asleep over a fault that its handler was told of? */
static bool is_asked_for(int fd)
{
	return readable(fd, HANG * 1000);
}

/* Writes from such memory, and says so when the first page is asked for. */
struct stuck {
	struct nbed bed;
	uint8_t *mem;
	int uffd;
};

static void *write_from_it(void *arg)
{
	struct stuck *s = arg;

	vrnic_write(s->bed.a.to, WR(.local = s->mem, .length = LEN, .remote = s->bed.a.peer.addr,
				    .rkey = s->bed.a.peer.rkey), DONE(.local = s->bed.a.counter));
	return NULL;
}

static int be_stuck(int fd, const void *arg)
{
	struct stuck s = {};
	pthread_t thread;
	int ret;

	setenv("VRNIC_DEV", arg, 1);
	s.mem = unserved(&s.uffd);
	if (!s.mem)
		return -ENOMEM;
	ret = nbed_open(&s.bed, LEN, NULL);
	if (ret)
		return ret;
	if (pthread_create(&thread, NULL, write_from_it, &s))
		return -ENOMEM;
	if (!is_asked_for(s.uffd))
		return -ETIMEDOUT;
	ret = say(fd);
	for (;;)
		pause();
	return ret;
}

/* Whether it ended, however it did. */
static bool ends(pid_t pid, int seconds)
{
	uint64_t end = now_ns() + seconds * 1000 * MSEC_NS;
	int status;

	while (now_ns() < end) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

static pid_t command(const char *line)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	_exit(127);
}

static bool does(const char *line)
{
	return ends(command(line), HANG);
}

FIXTURE(fault)
{
	struct peer peer;
};

FIXTURE_SETUP(fault)
{
	NEED_NATIVE();
	if (!have_userfaultfd())
		SKIP(return, "this kernel has no userfaultfd");
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_TRUE(does("ip link add " NETDEV " type dummy"));
	ASSERT_TRUE(does("ip link set " NETDEV " up"));
	ASSERT_TRUE(does("ip addr add 192.168.98.1/24 dev " NETDEV));
	ASSERT_TRUE(does("rdma link add " DEV " type vrnic netdev " NETDEV));
	ASSERT_OK(peer_start(&self->peer, be_stuck, DEV));
	ASSERT_OK(hear(self->peer.fd));
}

FIXTURE_TEARDOWN(fault)
{
	does("rdma link del " DEV " 2>/dev/null; ip link del " NETDEV);
}

TEST_F(fault, a_device_goes_while_a_page_is_waited_for)
{
	pid_t del = command("rdma link del " DEV);
	bool ended = ends(del, HANG);

	EXPECT_TRUE(ended)
		TH_LOG("it waits for a page that does not come");
	EXPECT_OK(peer_kill(&self->peer));
	if (!ended)
		ends(del, HANG);
}

TEST_F(fault, a_process_dies_while_a_page_is_waited_for)
{
	ASSERT_OK(kill(self->peer.pid, SIGKILL));
	EXPECT_TRUE(ends(self->peer.pid, HANG))
		TH_LOG("it waits for a page that does not come");
	EXPECT_TRUE(does("rdma link del " DEV));
}

TEST_HARNESS_MAIN
