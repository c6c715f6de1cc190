/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kernel's names for what the wire format's files use, in user space. */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include_next <linux/types.h>

#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define __packed __attribute__((packed))

#endif /* SHIM_LINUX_TYPES_H */
