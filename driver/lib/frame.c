// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads the headers of a frame. Anybody on the network may have made the frame, so each header is
 * read only if all of it is there.
 */

#include <linux/string.h>
#include <linux/types.h>

#include "lib/frame.h"

#define TYPE_IPV4	0x0800
#define TYPE_IPV6	0x86dd
#define TYPE_VLAN	0x8100
#define TYPE_QINQ	0x88a8

#define PROTO_TCP	6
#define PROTO_UDP	17

#define IPV4_MIN	20
#define IPV6_BYTES	40
#define PORTS_BYTES	4

/* Does TCP or UDP follow, with @len bytes? Then take the ports. */
static void take_ports(const u8 *at, u32 len, struct vrnic_frame *f)
{
	if (f->proto != PROTO_TCP && f->proto != PROTO_UDP)
		return;
	if (len < PORTS_BYTES)
		return;
	f->transport = f->proto;
	memcpy(&f->src_port, at, sizeof(f->src_port));
	memcpy(&f->dst_port, at + 2, sizeof(f->dst_port));
}

static void take_ipv4(const u8 *at, u32 len, struct vrnic_frame *f)
{
	u32 hdr;

	if (len < IPV4_MIN || at[0] >> 4 != 4)
		return;
	hdr = (at[0] & 0xf) * 4;
	if (hdr < IPV4_MIN)
		return;
	f->net = 4;
	f->tos = at[1];
	f->ip_flags = (at[6] & 0x40 ? VRNIC_FRAME_DF : 0) | (at[6] & 0x20 ? VRNIC_FRAME_MF : 0);
	f->ttl = at[8];
	f->proto = at[9];
	memcpy(f->src_ip, at + 12, 4);
	memcpy(f->dst_ip, at + 16, 4);
	/* only the first fragment of a packet has the ports */
	if (len > hdr && !(at[6] & 0x1f) && !at[7])
		take_ports(at + hdr, len - hdr, f);
}

static void take_ipv6(const u8 *at, u32 len, struct vrnic_frame *f)
{
	if (len < IPV6_BYTES || at[0] >> 4 != 6)
		return;
	f->net = 6;
	f->tos = (at[0] & 0xf) << 4 | at[1] >> 4;
	memcpy(&f->flow_label, at, sizeof(f->flow_label));
	f->flow_label &= cpu_to_be32(0xfffff);
	f->proto = at[6];
	f->ttl = at[7];
	memcpy(f->src_ip, at + 8, 16);
	memcpy(f->dst_ip, at + 24, 16);
	take_ports(at + IPV6_BYTES, len - IPV6_BYTES, f);
}

static u16 type_at(const u8 *at)
{
	return at[0] << 8 | at[1];
}

static bool is_tag(const u8 *at)
{
	return type_at(at) == TYPE_VLAN || type_at(at) == TYPE_QINQ;
}

/**
 * vrnic_frame_parse() - read the fields of a frame
 * @at: start of the frame
 * @len: bytes that are there; VRNIC_FRAME_HEAD are enough for all fields
 * @f: set to the fields
 */
void vrnic_frame_parse(const u8 *at, u32 len, struct vrnic_frame *f)
{
	u32 tags;

	memset(f, 0, sizeof(*f));
	if (len < VRNIC_ETH_BYTES)
		return;
	memcpy(f->dst_mac, at, VRNIC_MAC_BYTES);
	memcpy(f->src_mac, at + VRNIC_MAC_BYTES, VRNIC_MAC_BYTES);
	at += 2 * VRNIC_MAC_BYTES;
	len -= 2 * VRNIC_MAC_BYTES;
	if (is_tag(at) && len >= VRNIC_TAG_BYTES + 2) {
		f->tagged = 1;
		memcpy(&f->vlan_tag, at + 2, sizeof(f->vlan_tag));
	}
	for (tags = 0; tags < VRNIC_TAGS && is_tag(at) && len >= VRNIC_TAG_BYTES + 2; tags++) {
		at += VRNIC_TAG_BYTES;
		len -= VRNIC_TAG_BYTES;
	}
	memcpy(&f->ether_type, at, sizeof(f->ether_type));
	if (type_at(at) == TYPE_IPV4)
		take_ipv4(at + 2, len - 2, f);
	else if (type_at(at) == TYPE_IPV6)
		take_ipv6(at + 2, len - 2, f);
}

/* Does the frame have all that the rule wants? */
bool vrnic_frame_matches(const struct vrnic_frame *f, const struct vrnic_match *m)
{
	const u64 *seen = (const u64 *)f;
	const u64 *value = (const u64 *)&m->value;
	const u64 *mask = (const u64 *)&m->mask;
	u64 differ = 0;
	u32 i;

	for (i = 0; i < VRNIC_FRAME_WORDS; i++)
		differ |= (seen[i] ^ value[i]) & mask[i];
	return !differ;
}

/**
 * vrnic_frame_len_ok() - may a frame of this length be sent?
 * @at: start of the frame, of which VRNIC_ETH_BYTES are there
 * @len: bytes of the frame
 * @mtu: most bytes behind the header that the interface takes
 *
 * Return: true if it is neither too short to have a header, nor too long. The MTU does not count a
 * VLAN tag.
 */
bool vrnic_frame_len_ok(const u8 *at, u32 len, u32 mtu)
{
	if (len < VRNIC_ETH_BYTES)
		return false;
	len -= VRNIC_ETH_BYTES;
	if (len <= mtu)
		return true;
	return len - mtu <= VRNIC_TAG_BYTES && is_tag(at + 2 * VRNIC_MAC_BYTES);
}
