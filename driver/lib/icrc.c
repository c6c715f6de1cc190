// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC covers all that does not change on the way, IBTA 7.8.1 and A17.3.3. Fields that
 * routers may change count as ones: type of service or traffic class and flow label, time to live,
 * the IP and UDP checksums, and the first byte of the BTH's queue pair word. Eight bytes of ones,
 * in the place of an LRH, come before the packet.
 *
 * This file needs nothing from ib_core.
 */

#include <linux/crc32.h>
#include <linux/string.h>

#include "compat/icrc_pick.h"
#include "lib/hdr.h"
#include "lib/icrc.h"

#define IP4_BYTES	20
#define IP6_BYTES	40
#define UDP_BYTES	8

/* CRC of the eight bytes of ones that stand for the LRH, from a seed of ones. */
#define ICRC_SEED	0xdebb20e3U

/* Offsets of fields that count as ones. */
#define IP4_TOS		1
#define IP4_TTL		8
#define IP4_CHECK	10
#define IP6_HOPS	7
#define UDP_CHECK	6
#define BTH_RESV8A	4

static void mask_net(u8 *h, bool ipv6)
{
	if (ipv6) {
		h[0] |= 0x0f;
		memset(h + 1, 0xff, 3);
		h[IP6_HOPS] = 0xff;
	} else {
		h[IP4_TOS] = 0xff;
		h[IP4_TTL] = 0xff;
		memset(h + IP4_CHECK, 0xff, 2);
	}
	memset(h + (ipv6 ? IP6_BYTES : IP4_BYTES) + UDP_CHECK, 0xff, 2);
}

/**
 * vrnic_icrc_net() - the CRC over IP and UDP header
 * @net: IP header without options, and UDP header behind it
 * @ipv6: the IP header is an IPv6 header
 *
 * Return: CRC for vrnic_icrc_bth().
 */
u32 vrnic_icrc_net(const void *net, bool ipv6)
{
	size_t len = (ipv6 ? IP6_BYTES : IP4_BYTES) + UDP_BYTES;
	u8 h[IP6_BYTES + UDP_BYTES];

	memcpy(h, net, len);
	mask_net(h, ipv6);
	return crc32_le(ICRC_SEED, h, len);
}

/**
 * vrnic_icrc_whole() - the CRC of a packet in one piece
 * @copy: IP header without options, UDP header, BTH and what follows; changed here
 * @ipv6: the IP header is an IPv6 header
 * @len: number of bytes before the ICRC
 *
 * Return: CRC for vrnic_icrc_end().
 */
u32 vrnic_icrc_whole(void *copy, bool ipv6, size_t len)
{
	size_t net = (ipv6 ? IP6_BYTES : IP4_BYTES) + UDP_BYTES;

	mask_net(copy, ipv6);
	((u8 *)copy)[net + BTH_RESV8A] = 0xff;
	return crc32_le(ICRC_SEED, copy, len);
}

/**
 * vrnic_icrc_count() - change a CRC of vrnic_icrc_net() to that of another packet of a burst
 * @crc: CRC of an IPv4 packet whose identification is 0
 * @id: identification of the other packet; below VRNIC_ICRC_COUNT_MAX
 *
 * A CRC is linear: each bit of the identification changes the same bits of the CRC, whatever the
 * other fields are, because the same number of bytes follows.
 *
 * Return: CRC for vrnic_icrc_bth().
 */
u32 vrnic_icrc_count(u32 crc, u32 id)
{
	static const u32 changes[] = {
		0x9b73ead4, 0xed96d3e9, 0x005ca193, 0x00b94326, 0x0172864c, 0x02e50c98,
	};
	unsigned int bit;

	for (bit = 0; id; bit++, id >>= 1)
		if (id & 1)
			crc ^= changes[bit];
	return crc;
}

/**
 * vrnic_icrc_bth() - continue a CRC with the BTH
 * @crc: CRC of the headers before the BTH
 * @bth: BTH
 *
 * Return: CRC for vrnic_icrc_more(), for what follows.
 */
u32 vrnic_icrc_bth(u32 crc, const struct vrnic_bth *bth)
{
	u8 h[sizeof(*bth)];

	memcpy(h, bth, sizeof(h));
	h[BTH_RESV8A] = 0xff;
	return crc32_le(crc, h, sizeof(h));
}

/**
 * vrnic_icrc_from_bth() - continue a CRC with the BTH and all that follows it in one piece
 * @crc: CRC of the headers before the BTH
 * @bth: BTH; changed, and restored at the end, so no other code may read it meanwhile
 * @len: number of bytes from the BTH on, without the ICRC
 *
 * Return: CRC for vrnic_icrc_end().
 */
u32 vrnic_icrc_from_bth(u32 crc, struct vrnic_bth *bth, size_t len)
{
	u8 *resv8a = (u8 *)bth + BTH_RESV8A, is = *resv8a;

	*resv8a = 0xff;
	crc = crc32_le(crc, (u8 *)bth, len);
	*resv8a = is;
	return crc;
}

/**
 * vrnic_icrc_begin() - the CRC over the headers up to the BTH
 * @net: IP header without options, UDP header and BTH, one after the other
 * @ipv6: the IP header is an IPv6 header
 *
 * Return: CRC for vrnic_icrc_more(), for what follows the BTH.
 */
u32 vrnic_icrc_begin(const void *net, bool ipv6)
{
	size_t ip = ipv6 ? IP6_BYTES : IP4_BYTES;

	return vrnic_icrc_bth(vrnic_icrc_net(net, ipv6), net + ip + UDP_BYTES);
}

/* Continue a CRC with @len bytes: extension headers, payload, pad. */
u32 vrnic_icrc_more(u32 crc, const void *data, size_t len)
{
	if (len >= VRNIC_FOLD_MIN && vrnic_fold_begin()) {
		crc = vrnic_icrc_fold(crc, data, len);
		vrnic_fold_end();
		return crc;
	}
	if (len >= VRNIC_SHIFT_MIN && vrnic_shift_pays)
		return vrnic_icrc_shift(crc, data, len);
	return crc32_le(crc, data, len);
}
