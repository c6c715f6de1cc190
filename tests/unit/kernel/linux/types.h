/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kernel's names for what user space has, for the files of the driver that are tested here. */
#ifndef UNIT_LINUX_TYPES_H
#define UNIT_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include_next <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#endif /* UNIT_LINUX_TYPES_H */
