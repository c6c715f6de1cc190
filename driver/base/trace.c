// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Defines the tracepoints of trace.h. */

#include "compat/compat.h"
#include "native/native.h"
#include "queue/op.h"
#include "queue/qp.h"
#include "vrnic.h"

#define CREATE_TRACE_POINTS
#include "base/trace.h"
