/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The files of fault injection, and the counters of its effects. */
#ifndef SELFTEST_FAULT_H
#define SELFTEST_FAULT_H

#include <errno.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <linux/magic.h>

#include "harness.h"

#define DEBUGFS		"/sys/kernel/debug"

/* Room for a path of ours. */
#define PATH_BYTES	200

static inline void fault_path(char *path, const char *file)
{
	snprintf(path, PATH_BYTES, DEBUGFS "/vrnic/%s/fault/%s", dev_name(),
		 file);
}

static inline int fault_write(const char *file, long long value)
{
	char path[PATH_BYTES], text[24];

	fault_path(path, file);
	snprintf(text, sizeof(text), "%lld", value);
	return write_file(path, text);
}

static inline long long fault_read(const char *file)
{
	char path[PATH_BYTES];
	long long value;
	FILE *f;

	fault_path(path, file);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	if (fscanf(f, "%lld", &value) != 1)
		value = -EIO;
	fclose(f);
	return value;
}

/*
 * Of the device, once what was kept of the last reading is too old. By netlink,
 * because the files in /sys are those of one network namespace.
 */
static inline long long dev_counter(const char *name)
{
	char command[PATH_BYTES], word[80];
	long long value = -ENOENT;
	bool found = false;
	FILE *f;

	usleep(30000);
	snprintf(command, sizeof(command), "rdma statistic show link %s/1",
		 dev_name());
	f = popen(command, "r");
	if (!f)
		return -errno;
	while (!found && fscanf(f, "%79s", word) == 1)
		found = !strcmp(word, name);
	if (found && fscanf(f, "%lld", &value) != 1)
		value = -EIO;
	pclose(f);
	return value;
}

/**
 * struct fault - how to arm a kind of fault
 * @probability: percent [100]
 * @interval: [1]
 * @times: [no limit]
 * @own: the file that is the kind's own, and what to write to it
 */
struct fault {
	int probability, interval, space, times;
	const char *own;
	long long value;
};

#define ARM(kind, ...)	fault_arm(kind, &(struct fault){ __VA_ARGS__ })

/* Arming is the last step: events are counted from there. */
static inline int fault_arm(const char *kind, const struct fault *f)
{
	const struct {
		const char *file;
		long long value;
	} files[] = {
		{ "interval", f->interval ? f->interval : 1 },
		{ "space", f->space },
		{ "times", f->times ? f->times : -1 },
		{ f->own ? f->own : "space", f->own ? f->value : f->space },
		{ "probability", f->probability ? f->probability : 100 },
	};
	char file[60];
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(file, sizeof(file), "%s/%s", kind, files[i].file);
		ret = fault_write(file, files[i].value);
	}
	return ret;
}

static inline int fault_disarm(const char *kind)
{
	char file[60];

	snprintf(file, sizeof(file), "%s/probability", kind);
	return fault_write(file, 0);
}

static inline long long fault_count(const char *kind, const char *what)
{
	char file[60];

	snprintf(file, sizeof(file), "%s/%s", kind, what);
	return fault_read(file);
}

static inline long long injected(const char *kind)
{
	return fault_count(kind, "injected");
}

/* Tests of a device of another driver, and where nobody mounted debugfs. */
static inline bool faults_can_be_there(void)
{
	struct statfs fs;

	return !statfs(DEBUGFS, &fs) && fs.f_type == DEBUGFS_MAGIC &&
	       !access("/sys/module/vrnic", F_OK) &&
	       strncmp(dev_name(), "rxe", 3) && strncmp(dev_name(), "siw", 3);
}

#endif /* SELFTEST_FAULT_H */
