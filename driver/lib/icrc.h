/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The invariant CRC at the end of a packet. Needs nothing from ib_core. */
#ifndef VRNIC_ICRC_H
#define VRNIC_ICRC_H

#include <linux/types.h>
#include <asm/byteorder.h>

struct vrnic_bth;

/* Identifications that vrnic_icrc_count() knows: 0 to this - 1, one for each packet of a burst. */
#define VRNIC_ICRC_COUNT_MAX	64

u32 vrnic_icrc_net(const void *net, bool ipv6);
u32 vrnic_icrc_count(u32 crc, u32 id);
u32 vrnic_icrc_bth(u32 crc, const struct vrnic_bth *bth);
u32 vrnic_icrc_from_bth(u32 crc, struct vrnic_bth *bth, size_t len);
u32 vrnic_icrc_whole(void *copy, bool ipv6, size_t len);
u32 vrnic_icrc_begin(const void *net, bool ipv6);
u32 vrnic_icrc_more(u32 crc, const void *data, size_t len);

/* The ICRC in the packet: the complement of @crc, least significant byte first. */
static inline __le32 vrnic_icrc_end(u32 crc)
{
	return cpu_to_le32(~crc);
}

#endif /* VRNIC_ICRC_H */
