// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC: over all that does not change on the way, IBTA 7.8.1 and
 * A17.3.3. What routers may change counts as ones: type of service or traffic
 * class and flow label, time to live, the IP and UDP checksums, and the first
 * byte of the BTH's queue pair word. An LRH of ones stands before it all.
 *
 * This file needs nothing of ib_core.
 */

#include <linux/crc32.h>
#include <linux/string.h>

#include "hdr.h"
#include "icrc.h"
#include "icrc_fold.h"

#define IP4_BYTES	20
#define IP6_BYTES	40
#define UDP_BYTES	8

/* CRC of the eight bytes of ones that stand for the LRH, from a seed of ones. */
#define ICRC_SEED	0xdebb20e3U

/* Offsets of what counts as ones. */
#define IP4_TOS		1
#define IP4_TTL		8
#define IP4_CHECK	10
#define IP6_HOPS	7
#define UDP_CHECK	6
#define BTH_RESV8A	4

/**
 * vrnic_icrc_begin() - the CRC over the headers up to the BTH
 * @net: IP header without options, UDP header and BTH, one after the other
 * @ipv6: it is IPv6
 *
 * Return: to be given to vrnic_icrc_more(), with what follows the BTH.
 */
u32 vrnic_icrc_begin(const void *net, bool ipv6)
{
	u8 h[IP6_BYTES + UDP_BYTES + sizeof(struct vrnic_bth)];
	size_t ip = ipv6 ? IP6_BYTES : IP4_BYTES;
	size_t len = ip + UDP_BYTES + sizeof(struct vrnic_bth);

	memcpy(h, net, len);
	if (ipv6) {
		h[0] |= 0x0f;
		memset(h + 1, 0xff, 3);
		h[IP6_HOPS] = 0xff;
	} else {
		h[IP4_TOS] = 0xff;
		h[IP4_TTL] = 0xff;
		memset(h + IP4_CHECK, 0xff, 2);
	}
	memset(h + ip + UDP_CHECK, 0xff, 2);
	h[ip + UDP_BYTES + BTH_RESV8A] = 0xff;
	return crc32_le(ICRC_SEED, h, len);
}

/* Go on with @len bytes: extension headers, payload, pad. */
u32 vrnic_icrc_more(u32 crc, const void *data, size_t len)
{
	if (len >= VRNIC_FOLD_MIN && vrnic_fold_begin()) {
		crc = vrnic_icrc_fold(crc, data, len);
		vrnic_fold_end();
		return crc;
	}
	return crc32_le(crc, data, len);
}
