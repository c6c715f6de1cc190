// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native_trace.h"

#define TRACING	"/sys/kernel/tracing/"
#define EVENTS	TRACING "events/vrnic/"

static int set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_TRUNC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int switch_event(const char *event, const char *value)
{
	char file[128];

	snprintf(file, sizeof(file), EVENTS "%s/enable", event);
	return set(file, value);
}

bool trace_there(void)
{
	return !access(EVENTS "enable", W_OK);
}

/*
 * Each CPU has a buffer of its own, and what is read is merged by time. A clock that stands still
 * for long, as on user-mode Linux, leaves the order of two CPUs open. A counter does not.
 */
static int set_clock(const char *clock)
{
	return set(TRACING "trace_clock", clock);
}

int trace_begin(const char *event)
{
	int ret = set_clock("counter");

	if (ret)
		return ret;
	set(TRACING "trace", "");
	return switch_event(event, "1");
}

void trace_end(const char *event)
{
	switch_event(event, "0");
	set(TRACING "trace", "");
	set_clock("local");
}

int trace_read(void (*each)(const char *line, void *arg), void *arg)
{
	FILE *f = fopen(TRACING "trace", "r");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) >= 0)
		each(line, arg);
	free(line);
	fclose(f);
	return 0;
}
