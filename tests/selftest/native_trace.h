/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kernel's trace of an event of the module. Functions return 0 or a negative errno. */
#ifndef NATIVE_TRACE_H
#define NATIVE_TRACE_H

#include <stdbool.h>

/* Is there a trace, and may this process use it? */
bool trace_there(void);

/* Trace one event of vrnic from now on, in the order of all CPUs; what was there is lost. */
int trace_begin(const char *event);
void trace_end(const char *event);

/* Call @each for each line: "  program-PID  [CPU] flags number: event: what". */
int trace_read(void (*each)(const char *line, void *arg), void *arg);

#endif /* NATIVE_TRACE_H */
