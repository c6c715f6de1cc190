/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef UNIT_LINUX_LIMITS_H
#define UNIT_LINUX_LIMITS_H

#include_next <linux/limits.h>
#include <stdint.h>

#define S64_MAX	INT64_MAX
#define S64_MIN	INT64_MIN
#define U64_MAX	UINT64_MAX

#endif /* UNIT_LINUX_LIMITS_H */
