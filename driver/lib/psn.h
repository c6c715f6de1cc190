/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet sequence numbers: 24 bits, in a circle. IBTA 9.7.1. This file needs
 * nothing of ib_core.
 */
#ifndef VRNIC_PSN_H
#define VRNIC_PSN_H

#include <linux/types.h>

#define VRNIC_PSN_MASK	0xffffffU

static inline u32 vrnic_psn_add(u32 psn, u32 n)
{
	return (psn + n) & VRNIC_PSN_MASK;
}

/**
 * vrnic_psn_diff() - how far @a is ahead of @b
 * @a: PSN; bits above the 24 do not count
 * @b: likewise
 *
 * Return: -2^23 to 2^23 - 1; negative: @a is older.
 */
static inline s32 vrnic_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/**
 * vrnic_psn_extend() - the 64-bit count that a PSN of the wire stands for
 * @psn: from the wire
 * @near: a count that it is less than 2^23 away from
 *
 * A requester counts in 64 bits, so that a message of any length has its PSNs
 * in order; only their low 24 bits travel.
 */
static inline u64 vrnic_psn_extend(u32 psn, u64 near)
{
	return near + vrnic_psn_diff(psn, (u32)near);
}

/* Packets that @len bytes take; a message has at least one. */
static inline u32 vrnic_psn_count(u64 len, u32 mtu)
{
	return len ? (u32)((len + mtu - 1) / mtu) : 1;
}

#endif /* VRNIC_PSN_H */
