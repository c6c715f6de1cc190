// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The port's counters in sysfs, as monitoring programs read them: a program that finds
 * no folder "counters" on one device leaves out all devices of the host.
 */
#include <dirent.h>

#include "harness.h"

#define LEN	(256 * 1024)

BED(port_counters, LEN);

static void path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "/sys/class/infiniband/%s/%s", dev_name(), name);
}

/* The first line of a file of the device. */
static int first_line(const char *name, char *line, int size)
{
	char path[300];
	FILE *f;
	int err;

	path_of(path, sizeof(path), name);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	err = fgets(line, size, f) ? 0 : -EIO;
	fclose(f);
	return err;
}

static int read_number(const char *name, unsigned long long *value)
{
	char line[64], *end;
	int err;

	err = first_line(name, line, sizeof(line));
	if (err)
		return err;
	*value = strtoull(line, &end, 10);
	return end != line && (*end == '\n' || !*end) ? 0 : -EINVAL;
}

/* How many files there are, each with a number in it. Hidden ones are not counters. */
static int read_all(const char *folder)
{
	unsigned long long value;
	struct dirent *entry;
	int n = 0, err = 0;
	char path[300];
	DIR *dir;

	path_of(path, sizeof(path), folder);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		if (entry->d_type != DT_REG || !strcmp(entry->d_name, "lifespan"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		err = read_number(path, &value);
		n++;
	}
	closedir(dir);
	return err ?: n;
}

TEST_F(port_counters, all_are_numbers)
{
	EXPECT_GE(read_all("ports/1/counters"), 17);
	EXPECT_GT(read_all("ports/1/hw_counters"), 0);
}

/* A file whose line begins with a number and goes on with @rest. */
static bool begins_with_number(const char *name, const char *rest)
{
	char line[64], *end;

	if (first_line(name, line, sizeof(line)))
		return false;
	strtod(line, &end);
	return end != line && !strncmp(end, rest, strlen(rest));
}

TEST_F(port_counters, the_port_is_told_as_programs_parse_it)
{
	char line[64];

	EXPECT_TRUE(begins_with_number("ports/1/state", ": "));
	EXPECT_TRUE(begins_with_number("ports/1/phys_state", ": "));
	EXPECT_TRUE(begins_with_number("ports/1/rate", " Gb/sec"));
	EXPECT_OK(first_line("fw_ver", line, sizeof(line)));
}

/* struct port - what it counted */
struct port {
	unsigned long long xmit_data, rcv_data;
};

static int read_port(struct port *port)
{
	return read_number("ports/1/counters/port_xmit_data", &port->xmit_data) ?:
	       read_number("ports/1/counters/port_rcv_data", &port->rcv_data);
}

/* On a wire, some may have been sent twice. */
#define EXPECT_WORDS(before, after, bytes) do {						\
	EXPECT_GE((after).xmit_data - (before).xmit_data, (bytes) / 4ULL);		\
	EXPECT_LT((after).xmit_data - (before).xmit_data, (bytes) / 2ULL);		\
	EXPECT_GE((after).rcv_data - (before).rcv_data, (bytes) / 4ULL);		\
	EXPECT_LT((after).rcv_data - (before).rcv_data, (bytes) / 2ULL);		\
} while (0)

TEST_F(port_counters, data_are_words_of_four_bytes)
{
	struct bed *bed = &self->bed;
	struct port before, after;

	if (over_a_wire())
		SKIP(return, "the other end has a port of its own");
	ASSERT_OK(read_port(&before));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			.remote = &bed->dst));
	ASSERT_OK(read_port(&after));
	EXPECT_WORDS(before, after, LEN);
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src, .len = LEN,
			.remote = &bed->dst));
	ASSERT_OK(read_port(&before));
	EXPECT_WORDS(after, before, LEN);
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 1));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = LEN));
	ASSERT_DONE(wait_recv(bed->b));
	ASSERT_OK(read_port(&after));
	EXPECT_WORDS(before, after, LEN);
}

TEST_HARNESS_MAIN
