// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What flow steering reads of a frame, and when a rule matches: the frames are written here byte by
 * byte. Each is tried at every length, too, at the end of its memory, where a sanitizer sees what
 * is read beyond.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/frame.h"

#include "unit.h"

#define MACS	0x02, 1, 2, 3, 4, 5, 0x06, 7, 8, 9, 10, 11

#define UDP4									\
	0x45, 0xb8, 0, 28, 0, 1, 0x40, 0, 63, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, \
	0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0

static const u8 udp4[] = { MACS, 0x08, 0x00, UDP4 };
static const u8 tagged[] = { MACS, 0x81, 0x00, 0xa0, 0x05, 0x08, 0x00, UDP4 };
static const u8 twice[] = { MACS, 0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5, 0x08, 0x00, UDP4 };
static const u8 thrice[] = {
	MACS, 0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00, UDP4
};

/* 4 bytes of options */
static const u8 options4[] = {
	MACS, 0x08, 0x00,
	0x46, 0, 0, 32, 0, 1, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 1, 1, 1, 1,
	0, 80, 0x80, 1, 0, 0, 0, 0,
};

/* the second fragment of a packet: what follows the header are no ports */
static const u8 fragment4[] = {
	MACS, 0x08, 0x00,
	0x45, 0, 0, 28, 0, 1, 0x20, 2, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
	0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0,
};

static const u8 tcp6[] = {
	MACS, 0x86, 0xdd,
	0x6a, 0xbc, 0xde, 0xf1, 0, 4, 6, 9,
	0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	0, 80, 0x80, 1,
};

static struct vrnic_frame parsed(const u8 *at, u32 len)
{
	struct vrnic_frame f;

	/* what is not set would show */
	memset(&f, 0x5a, sizeof(f));
	vrnic_frame_parse(at, len, &f);
	return f;
}

#define PARSED(frame)	parsed(frame, sizeof(frame))

static void ethernet(void)
{
	struct vrnic_frame f = PARSED(udp4);

	CHECK(!memcmp(f.dst_mac, udp4, 6));
	CHECK(!memcmp(f.src_mac, udp4 + 6, 6));
	CHECK_EQ(0x0800, be16_to_cpu(f.ether_type));
	CHECK_EQ(0, f.tagged);
	CHECK_EQ(0, f.vlan_tag);
	CHECK_EQ(0, f.reserved);
}

static void check_udp4(struct vrnic_frame f)
{
	CHECK_EQ(4, f.net);
	CHECK_EQ(0xb8, f.tos);
	CHECK_EQ(63, f.ttl);
	CHECK_EQ(17, f.proto);
	CHECK_EQ(VRNIC_FRAME_DF, f.ip_flags);
	CHECK(!memcmp(f.src_ip, (u8[16]){ 192, 0, 2, 1 }, 16));
	CHECK(!memcmp(f.dst_ip, (u8[16]){ 192, 0, 2, 2 }, 16));
	CHECK_EQ(17, f.transport);
	CHECK_EQ(1234, be16_to_cpu(f.src_port));
	CHECK_EQ(5678, be16_to_cpu(f.dst_port));
}

static void ipv4_and_udp(void)
{
	check_udp4(PARSED(udp4));
}

static void tag(void)
{
	struct vrnic_frame f = PARSED(tagged);

	CHECK_EQ(1, f.tagged);
	CHECK_EQ(0xa005, be16_to_cpu(f.vlan_tag));
	CHECK_EQ(0x0800, be16_to_cpu(f.ether_type));
	check_udp4(f);
}

static void two_tags(void)
{
	struct vrnic_frame f = PARSED(twice);

	CHECK_EQ(1, f.tagged);
	CHECK_EQ(7, be16_to_cpu(f.vlan_tag));
	CHECK_EQ(0x0800, be16_to_cpu(f.ether_type));
	check_udp4(f);
}

static void three_tags(void)
{
	struct vrnic_frame f = PARSED(thrice);

	CHECK_EQ(7, be16_to_cpu(f.vlan_tag));
	CHECK_EQ(0x8100, be16_to_cpu(f.ether_type));
	CHECK_EQ(0, f.net);
}

static void ipv4_options(void)
{
	struct vrnic_frame f = PARSED(options4);

	CHECK_EQ(6, f.transport);
	CHECK_EQ(80, be16_to_cpu(f.src_port));
	CHECK_EQ(0x8001, be16_to_cpu(f.dst_port));
}

static void later_fragment_has_no_ports(void)
{
	struct vrnic_frame f = PARSED(fragment4);

	CHECK_EQ(4, f.net);
	CHECK_EQ(17, f.proto);
	CHECK_EQ(VRNIC_FRAME_MF, f.ip_flags);
	CHECK_EQ(0, f.transport);
	CHECK_EQ(0, f.src_port);
}

static void ipv6_and_tcp(void)
{
	struct vrnic_frame f = PARSED(tcp6);

	CHECK_EQ(6, f.net);
	CHECK_EQ(0xab, f.tos);
	CHECK_EQ(0xcdef1, be32_to_cpu(f.flow_label));
	CHECK_EQ(6, f.proto);
	CHECK_EQ(9, f.ttl);
	CHECK_EQ(1, f.src_ip[15]);
	CHECK_EQ(2, f.dst_ip[15]);
	CHECK_EQ(6, f.transport);
	CHECK_EQ(80, be16_to_cpu(f.src_port));
}

/* A version that the EtherType does not announce; a header shorter than the shortest. */
static void nonsense(void)
{
	u8 wrong[sizeof(udp4)];

	memcpy(wrong, udp4, sizeof(wrong));
	wrong[14] = 0x65;
	CHECK_EQ(0, PARSED(wrong).net);
	wrong[14] = 0x44;
	CHECK_EQ(0, PARSED(wrong).net);
	wrong[14] = 0x4f;
	CHECK_EQ(4, PARSED(wrong).net);
	CHECK_EQ(0, PARSED(wrong).transport);
}

static void try_lengths(const u8 *frame, u32 len)
{
	struct vrnic_frame whole = parsed(frame, len), f;
	u32 n;

	for (n = 0; n <= len; n++) {
		u8 *at = malloc(n ?: 1);

		memcpy(at, frame, n);
		f = parsed(at, n);
		free(at);
		/* a header that is not whole is not there */
		CHECK(!f.net || f.net == whole.net);
		CHECK(!f.transport || f.src_port == whole.src_port);
		CHECK(n >= VRNIC_ETH_BYTES || !f.ether_type);
	}
}

static void every_length(void)
{
	try_lengths(udp4, sizeof(udp4));
	try_lengths(tagged, sizeof(tagged));
	try_lengths(twice, sizeof(twice));
	try_lengths(options4, sizeof(options4));
	try_lengths(tcp6, sizeof(tcp6));
}

/* All fields lie within the first VRNIC_FRAME_HEAD bytes, also behind tags and long headers. */
static void head_is_enough(void)
{
	u8 frame[200] = { MACS, 0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5, 0x08, 0x00, 0x4f };
	struct vrnic_frame whole, f;

	frame[22 + 9] = 17;
	memcpy(frame + 22 + 60, (u8[]){ 1, 2, 3, 4 }, 4);
	whole = PARSED(frame);
	f = parsed(frame, VRNIC_FRAME_HEAD);
	CHECK_EQ(0x0304, be16_to_cpu(whole.dst_port));
	CHECK(!memcmp(&whole, &f, sizeof(f)));
	CHECK(parsed(frame, VRNIC_FRAME_HEAD - 1).transport == 0);
}

static void empty_rule_matches_all(void)
{
	struct vrnic_match any = {};
	struct vrnic_frame f = PARSED(tcp6);

	CHECK(vrnic_frame_matches(&f, &any));
}

/* Each byte of a frame's fields decides if its mask says so, and else does not. */
static void every_byte_counts(void)
{
	struct vrnic_frame f = PARSED(tagged);
	struct vrnic_match m;
	u32 i;

	for (i = 0; i < sizeof(f); i++) {
		memset(&m, 0, sizeof(m));
		((u8 *)&m.mask)[i] = 0xff;
		((u8 *)&m.value)[i] = ((u8 *)&f)[i];
		CHECK(vrnic_frame_matches(&f, &m));
		((u8 *)&m.value)[i] ^= 0x10;
		CHECK(!vrnic_frame_matches(&f, &m));
		((u8 *)&m.mask)[i] = 0x0f;
		((u8 *)&m.value)[i] = ((u8 *)&f)[i] & 0x0f;
		CHECK(vrnic_frame_matches(&f, &m));
	}
}

static void lengths_to_send(void)
{
	u8 frame[VRNIC_ETH_BYTES] = { MACS, 0x08, 0x00 };

	CHECK(!vrnic_frame_len_ok(frame, 0, 100));
	CHECK(!vrnic_frame_len_ok(frame, 13, 100));
	CHECK(vrnic_frame_len_ok(frame, 14, 100));
	CHECK(vrnic_frame_len_ok(frame, 114, 100));
	CHECK(!vrnic_frame_len_ok(frame, 115, 100));
	memcpy(frame + 12, (u8[]){ 0x81, 0x00 }, 2);
	CHECK(vrnic_frame_len_ok(frame, 118, 100));
	CHECK(!vrnic_frame_len_ok(frame, 119, 100));
	CHECK(!vrnic_frame_len_ok(frame, 0xffffffff, 100));
}

static const struct unit_test tests[] = {
	UNIT(ethernet),
	UNIT(ipv4_and_udp),
	UNIT(tag),
	UNIT(two_tags),
	UNIT(three_tags),
	UNIT(ipv4_options),
	UNIT(later_fragment_has_no_ports),
	UNIT(ipv6_and_tcp),
	UNIT(nonsense),
	UNIT(every_length),
	UNIT(head_is_enough),
	UNIT(empty_rule_matches_all),
	UNIT(every_byte_counts),
	UNIT(lengths_to_send),
};

UNIT_MAIN(tests)
