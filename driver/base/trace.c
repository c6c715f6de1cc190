// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Where the tracepoints are made. */

#define CREATE_TRACE_POINTS
#include "base/trace.h"
