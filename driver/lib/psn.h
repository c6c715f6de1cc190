/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet sequence numbers: 24 bits, used in a circle. IBTA 9.7.1. This file needs nothing from
 * ib_core.
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
 * vrnic_psn_diff() - how far is @a ahead of @b?
 * @a: PSN; only the low 24 bits count
 * @b: PSN; only the low 24 bits count
 *
 * Return: -2^23 to 2^23 - 1; negative if @a is older.
 */
static inline s32 vrnic_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/**
 * vrnic_psn_extend() - get the 64-bit count of a PSN on the wire
 * @psn: PSN on the wire
 * @near: count that differs from the result by less than 2^23
 *
 * Return: the count. A requester counts in 64 bits, so that packets of a message of any length have
 * an order. Only the low 24 bits are on the wire.
 */
static inline u64 vrnic_psn_extend(u32 psn, u64 near)
{
	return near + vrnic_psn_diff(psn, (u32)near);
}

/* Number of packets of a message of @len bytes: at least one. */
static inline u32 vrnic_psn_count(u64 len, u32 mtu)
{
	return len ? (u32)((len + mtu - 1) / mtu) : 1;
}

#endif /* VRNIC_PSN_H */
