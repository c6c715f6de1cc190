/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A control group of the test's own, and what is done in it at its cost. As in
 * verbs_util.h nothing here asserts; functions return 0 or a negative errno.
 */
#ifndef SELFTEST_CGROUP_H
#define SELFTEST_CGROUP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "harness.h"

#define ENOUGH_NS	20000000	/* of CPU time: more than a few ticks of the clock */

/**
 * struct group - a group below the root of the unified hierarchy
 * @root: where that is mounted, for this test
 * @path: the group
 */
struct group {
	char root[48];
	char path[64];
};

/* Into the file @name of the group in @folder. */
static int group_write(const char *folder, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return write_file(path, text);
}

/* All of the file @name, or nothing. */
static void group_read(const struct group *group, const char *name, char *text, size_t size)
{
	char path[128];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group->path, name);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		len = read(fd, text, size - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
}

/* Nobody may be in it: 0, or why the group does not go. */
static int group_close(const struct group *group)
{
	int ret = rmdir(group->path) ? -errno : 0;

	umount(group->root);
	rmdir(group->root);
	return ret;
}

static int group_open(struct group *group)
{
	int ret = 0;

	snprintf(group->root, sizeof(group->root), "/tmp/cgroup-%d", getpid());
	snprintf(group->path, sizeof(group->path), "%s/own", group->root);
	if (mkdir(group->root, 0700))
		return -errno;
	if (mount("none", group->root, "cgroup2", 0, NULL))
		ret = -errno;
	else if (mkdir(group->path, 0700))
		ret = -errno;
	if (ret)
		group_close(group);
	return ret;
}

static int group_enter(const struct group *group)
{
	return group_write(group->path, "cgroup.procs", "0");
}

static int group_leave(const struct group *group)
{
	return group_write(group->root, "cgroup.procs", "0");
}

static bool is_engine(const char *pid)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "r");
	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = '\0';
		fclose(f);
	}
	return !strncmp(name, "vrnic-", 6);
}

/* Engine threads that are in it. */
static int group_threads(const struct group *group)
{
	char text[4096], *pid, *rest = text;
	int n = 0;

	group_read(group, "cgroup.procs", text, sizeof(text));
	while ((pid = strsep(&rest, "\n")))
		n += pid[0] && is_engine(pid);
	return n;
}

/* CPU time that it was charged for, in ns. */
static uint64_t group_cpu_ns(const struct group *group)
{
	char text[1024];
	unsigned long us;

	group_read(group, "cpu.stat", text, sizeof(text));
	return sscanf(text, "usage_usec %lu", &us) == 1 ? us * 1000 : 0;
}

/* CPU time that this process was charged for. */
static uint64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/*
 * What the group was charged for beyond this process's share: to be compared with what it
 * was before. The process uses some more while it looks, which is never too much here.
 */
static int64_t group_cpu_of_others(const struct group *group)
{
	int64_t all = group_cpu_ns(group);

	return all - (int64_t)own_cpu_ns();
}

/* Why this test cannot be, or NULL. */
static const char *no_groups(struct group *group)
{
	int ret;

	if (statistic("doorbells") < 0)
		return "the device has no engine";
	if (geteuid())
		return "only root can make groups";
	ret = group_open(group);
	return ret ? strerror(-ret) : NULL;
}

#endif /* SELFTEST_CGROUP_H */
