// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Outside influences on a process and its memory: an administrator limits the process or
 * puts the system to sleep, and the process itself moves and drops registered memory.
 */
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness.h"

#define LEN	(256 * 1024)
#define PAGE	4096
#define NOBODY	65534

BED(limits, LEN);

/* Run @fn in a process of its own. Return: what it returned, or -1. */
static int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fn(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* ---- RLIMIT_MEMLOCK ---- */

#define MAY_LOCK	(16 * PAGE)

static int reg_to_the_limit(void *arg)
{
	struct rlimit limit = { MAY_LOCK, MAY_LOCK };
	struct ibv_mr *mr;
	struct dev dev;
	int i;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgroups(0, NULL) ||
	    setgid(NOBODY) || setuid(NOBODY))
		return 1;
	if (dev_open(&dev))
		return 2;
	for (i = 0; i < 100; i++) {
		errno = 0;
		if (ibv_reg_mr(dev.pd, arg, MAY_LOCK + PAGE, ACCESS_REMOTE) || errno != ENOMEM)
			return 3;
		/* what was refused was not charged */
		mr = ibv_reg_mr(dev.pd, arg, MAY_LOCK, ACCESS_REMOTE);
		if (!mr)
			return 4;
		errno = 0;
		if (ibv_reg_mr(dev.pd, arg, PAGE, ACCESS_REMOTE) || errno != ENOMEM)
			return 5;
		/* other rights for what is pinned take no more of it */
		if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 i % 2 ? ACCESS_REMOTE : IBV_ACCESS_REMOTE_READ))
			return 7;
		if (ibv_dereg_mr(mr))
			return 6;
	}
	dev_close(&dev);
	return 0;
}

TEST_F(limits, locked_memory)
{
	void *map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	if (geteuid())
		SKIP(return, "only root can become somebody else");
	EXPECT_EQ(0, in_child(reg_to_the_limit, map));
	munmap(map, LEN);
}

/* ---- the rdma cgroup ---- */

#define OBJECTS	4

static char cgroup[64], group[96];

/* Into @name of the group @folder. */
static int cgroup_write(const char *folder, const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return write_file(path, text);
}

/* What the device has of the group's @name: nothing, or its line. */
static void read_usage(char *line, size_t len)
{
	char path[160], all[1024] = "", *at;
	int fd;

	snprintf(path, sizeof(path), "%s/rdma.current", group);
	fd = open(path, O_RDONLY);
	if (fd >= 0 && read(fd, all, sizeof(all) - 1) < 0)
		all[0] = '\0';
	if (fd >= 0)
		close(fd);
	at = strstr(all, dev_name());
	snprintf(line, len, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
}

/*
 * A group that goes with limits set leaves the core of 6.12 a pool of resources that is
 * still in the group's list, and which it removes from there when the device goes.
 */
static void leave_group(void)
{
	char text[96];

	snprintf(text, sizeof(text), "%s hca_object=max", dev_name());
	cgroup_write(group, "rdma.max", text);
	rmdir(group);
	umount(cgroup);
	rmdir(cgroup);
}

/* OBJECTS objects. Return: 0, or why there is no such group. */
static int make_group(void)
{
	char text[96];
	int ret;

	snprintf(cgroup, sizeof(cgroup), "/tmp/cgroup-%d", getpid());
	snprintf(group, sizeof(group), "%s/limits", cgroup);
	if (mkdir(cgroup, 0700))
		return -errno;
	if (mount("none", cgroup, "cgroup2", 0, NULL)) {
		ret = -errno;
		rmdir(cgroup);
		return ret;
	}
	ret = cgroup_write(cgroup, "cgroup.subtree_control", "+rdma");
	if (!ret && mkdir(group, 0700))
		ret = -errno;
	snprintf(text, sizeof(text), "%s hca_object=%d", dev_name(), OBJECTS);
	if (!ret)
		ret = cgroup_write(group, "rdma.max", text);
	if (ret)
		leave_group();
	return ret;
}

static int use_up_the_group(void *arg)
{
	struct ibv_pd *pd[OBJECTS];
	struct ibv_context *ctx;
	int i;

	if (cgroup_write(group, "cgroup.procs", "0"))
		return 1;
	ctx = dev_open_context();
	if (!ctx)
		return 2;
	/* not a second one: where it is refused, the core of 6.12 loses a task */
	for (i = 0; i < OBJECTS; i++) {
		pd[i] = ibv_alloc_pd(ctx);
		if (!pd[i])
			return 10 + i;
	}
	errno = 0;
	if (ibv_alloc_pd(ctx) || errno != EAGAIN)
		return 4;
	errno = 0;
	if (ibv_create_cq(ctx, 16, NULL, NULL, 0) || errno != EAGAIN)
		return 5;
	if (ibv_dealloc_pd(pd[0]))
		return 6;
	pd[0] = ibv_alloc_pd(ctx);
	/* what is left is for the kernel to take back */
	return pd[0] ? 0 : 7;
}

TEST_F(limits, rdma_cgroup)
{
	char usage[128];
	int ret;

	if (geteuid())
		SKIP(return, "only root can make groups");
	ret = make_group();
	if (ret)
		SKIP(return, "no rdma cgroup here: %s", strerror(-ret));
	EXPECT_EQ(0, in_child(use_up_the_group, NULL));
	read_usage(usage, sizeof(usage));
	EXPECT_TRUE(!usage[0] || (strstr(usage, "hca_handle=0") && strstr(usage, "hca_object=0")))
		TH_LOG("left: %s", usage);
	leave_group();
}

/* ---- memory that moves ---- */

struct mover {
	pthread_t thread;
	uint8_t *map, *elsewhere;
	bool stop;
	long moves;
};

/* Whatever is there goes away, and new memory is in its place. */
static bool change(void *map, size_t len)
{
	return mmap(map, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map;
}

static bool move(void *from, void *to)
{
	return mremap(from, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

static void *keep_moving(void *arg)
{
	struct mover *m = arg;

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		if (!change(m->map + LEN / 2, PAGE) || madvise(m->map, LEN, MADV_DONTNEED) ||
		    mprotect(m->map, LEN, PROT_NONE) ||
		    mprotect(m->map, LEN, PROT_READ | PROT_WRITE))
			return m;
		memset(m->map, 0xee, LEN / 2);
		/* in one piece, or it could not be moved; nobody else gets the place */
		if (!change(m->map, LEN) || !move(m->map, m->elsewhere) ||
		    !change(m->map, LEN) || !move(m->elsewhere, m->map) ||
		    !change(m->elsewhere, LEN))
			return m;
		__atomic_add_fetch(&m->moves, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The region is the pages that it had; what is mapped there now is something else. */
TEST_F(limits, registered_memory_moves_during_transfers)
{
	struct bed *bed = &self->bed;
	struct mover m = {};
	void *failed = NULL;
	struct ibv_mr *mr;
	int i;

	m.map = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, m.map);
	m.elsewhere = m.map + LEN;
	mr = ibv_reg_mr(bed->b->pd, m.map, LEN, ACCESS_REMOTE);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(pthread_create(&m.thread, NULL, keep_moving, &m));
	for (i = 0; i < 200 || (i < 20000 && !__atomic_load_n(&m.moves, __ATOMIC_RELAXED)); i++) {
		buf_fill(&bed->src, i);
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
				.raddr = (uintptr_t)m.map, .rkey = mr->rkey));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->dst, .len = LEN,
				.raddr = (uintptr_t)m.map, .rkey = mr->rkey));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, i, 0));
	}
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	ASSERT_OK(pthread_join(m.thread, &failed));
	EXPECT_EQ(NULL, failed);
	EXPECT_GT(m.moves, 0);
	EXPECT_OK(ibv_dereg_mr(mr));
	munmap(m.map, 2 * LEN);
}

/* ---- sleep ---- */

#define SLEEP_BATCH	48

static void *put_to_sleep(void *arg)
{
	int *ret = arg;

	*ret = write_file("/sys/power/state", "freeze");
	return NULL;
}

/*
 * Suspend the system during transfers. With pm_test "freezer" the kernel freezes all processes for
 * five seconds, but does not suspend devices. Each request still completes, once.
 */
TEST_F(limits, system_sleeps_during_transfers)
{
	struct bed *bed = &self->bed;
	time_t before = time(NULL);
	pthread_t sleeper;
	int i, ret = 1;

	if (geteuid() || write_file("/sys/power/pm_test", "freezer"))
		SKIP(return, "this kernel does not sleep for a test");
	ASSERT_OK(pthread_create(&sleeper, NULL, put_to_sleep, &ret));
	while (time(NULL) < before + 6 || __atomic_load_n(&ret, __ATOMIC_RELAXED) == 1) {
		buf_fill(&bed->src, before);
		for (i = 0; i < SLEEP_BATCH; i++)
			ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
				       .remote = &bed->dst, .len = LEN));
		for (i = 0; i < SLEEP_BATCH; i++)
			ASSERT_DONE(wait_send(bed->a));
		ASSERT_EQ(-1, buf_differs(&bed->dst, 0, LEN, before, 0));
	}
	ASSERT_OK(pthread_join(sleeper, NULL));
	EXPECT_OK(ret);
	EXPECT_OK(write_file("/sys/power/pm_test", "none"));
}

TEST_HARNESS_MAIN
