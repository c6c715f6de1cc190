/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ethernet frames as flow steering sees them: the fields that rules match, and the match itself.
 * This file needs nothing from ib_core.
 */
#ifndef VRNIC_FRAME_H
#define VRNIC_FRAME_H

#include <linux/types.h>
#include <asm/byteorder.h>

#define VRNIC_MAC_BYTES		6
#define VRNIC_ETH_BYTES		14	/* addresses and EtherType */
#define VRNIC_TAG_BYTES		4	/* a VLAN tag */

#define VRNIC_TAGS		2	/* most tags, one behind the other, to look behind */

/* Bytes at the start of a frame that have all fields: Ethernet, tags, IPv4 with options, ports. */
#define VRNIC_FRAME_HEAD	(VRNIC_ETH_BYTES + VRNIC_TAGS * VRNIC_TAG_BYTES + 60 + 4)

/**
 * struct vrnic_frame - the fields of a frame, or a value or mask for them
 * @dst_mac: destination
 * @src_mac: source
 * @ether_type: EtherType, in network order; of a tagged frame, the one behind the tags
 * @vlan_tag: first VLAN tag (PCP, DEI, VLAN id), in network order; 0: none
 * @src_ip: source address; IPv4 takes the first 4 bytes
 * @dst_ip: destination address, as @src_ip
 * @flow_label: IPv6 flow label, in network order
 * @proto: IPv4 protocol, or IPv6 next header
 * @tos: IPv4 type of service, or IPv6 traffic class
 * @ttl: IPv4 time to live, or IPv6 hop limit
 * @ip_flags: IPv4: VRNIC_FRAME_DF, VRNIC_FRAME_MF
 * @dst_port: TCP or UDP port, in network order
 * @src_port: as @dst_port
 * @tagged: 1: there is a VLAN tag
 * @net: 4 or 6: IP version; 0: neither, or the header is not whole
 * @transport: protocol number of the TCP or UDP header; 0: neither, or it is not here whole
 * @reserved: zero
 *
 * All of the fields that a frame does not have are zero.
 */
struct vrnic_frame {
	u8 dst_mac[VRNIC_MAC_BYTES];
	u8 src_mac[VRNIC_MAC_BYTES];
	__be16 ether_type;
	__be16 vlan_tag;
	u8 src_ip[16];
	u8 dst_ip[16];
	__be32 flow_label;
	u8 proto;
	u8 tos;
	u8 ttl;
	u8 ip_flags;
	__be16 dst_port;
	__be16 src_port;
	u8 tagged;
	u8 net;
	u8 transport;
	u8 reserved;
} __aligned(8);

#define VRNIC_FRAME_WORDS	(sizeof(struct vrnic_frame) / sizeof(u64))

#define VRNIC_FRAME_DF		0x2
#define VRNIC_FRAME_MF		0x4

/**
 * struct vrnic_match - what a rule wants a frame to be
 * @value: fields; zero where @mask is zero
 * @mask: the bits of the fields that count
 */
struct vrnic_match {
	struct vrnic_frame value;
	struct vrnic_frame mask;
};

void vrnic_frame_parse(const u8 *at, u32 len, struct vrnic_frame *f);
bool vrnic_frame_matches(const struct vrnic_frame *f, const struct vrnic_match *m);
bool vrnic_frame_len_ok(const u8 *at, u32 len, u32 mtu);

#endif /* VRNIC_FRAME_H */
