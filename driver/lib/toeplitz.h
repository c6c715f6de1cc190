/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The Toeplitz hash, by which network devices spread frames over receive queues. */
#ifndef VRNIC_TOEPLITZ_H
#define VRNIC_TOEPLITZ_H

#include <linux/types.h>

u32 vrnic_toeplitz(const u8 *key, const u8 *input, u32 len);

#endif /* VRNIC_TOEPLITZ_H */
