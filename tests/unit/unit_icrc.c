// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The invariant CRC, against packets of another implementation. */
#include <string.h>

#include "lib/hdr.h"
#include "lib/icrc.h"
#include "packets.h"

#include "unit.h"

#define COUNT	(sizeof(packets) / sizeof(packets[0]))

static size_t ip_bytes(const struct packet *p)
{
	return p->ipv6 ? 40 : 20;
}

/* Headers, CRC over them, and the rest, in pieces of @piece bytes. */
static u32 icrc_of(const struct packet *p, const u8 *bytes, size_t piece)
{
	size_t at = ip_bytes(p) + 8 + sizeof(struct vrnic_bth);
	size_t end = p->len - VRNIC_ICRC_BYTES;
	u32 crc = vrnic_icrc_begin(bytes, p->ipv6);

	for (; at < end; at += piece)
		crc = vrnic_icrc_more(crc, bytes + at, end - at < piece ? end - at : piece);
	return le32_to_cpu(vrnic_icrc_end(crc));
}

static u32 icrc_in(const struct packet *p)
{
	const u8 *at = p->bytes + p->len - VRNIC_ICRC_BYTES;

	return at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
}

static void known_packets(void)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		CHECK_EQ(icrc_in(&packets[i]), icrc_of(&packets[i], packets[i].bytes, 4096));
}

static void in_pieces(void)
{
	size_t piece;
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		for (piece = 1; piece < 9; piece++)
			CHECK_EQ(icrc_in(&packets[i]),
				 icrc_of(&packets[i], packets[i].bytes, piece));
}

/* As packets that lie in one piece are looked at, and made. */
static void in_one_piece(void)
{
	const struct packet *p;
	u8 copy[sizeof(packets[0].bytes)];
	unsigned int i;
	size_t net;
	u32 crc;

	for (i = 0; i < COUNT; i++) {
		p = &packets[i];
		net = ip_bytes(p) + 8;
		memcpy(copy, p->bytes, p->len);
		crc = vrnic_icrc_from_bth(vrnic_icrc_net(copy, p->ipv6),
					  (struct vrnic_bth *)(copy + net),
					  p->len - VRNIC_ICRC_BYTES - net);
		CHECK_EQ(icrc_in(p), le32_to_cpu(vrnic_icrc_end(crc)));
		CHECK_EQ(0, memcmp(copy, p->bytes, p->len));
		crc = vrnic_icrc_whole(copy, p->ipv6, p->len - VRNIC_ICRC_BYTES);
		CHECK_EQ(icrc_in(p), le32_to_cpu(vrnic_icrc_end(crc)));
	}
}

/* What only counts in a burst need not be computed anew. */
static void counted(void)
{
	u8 net[28];
	unsigned int i, id;
	u32 crc;

	for (i = 0; i < COUNT; i++) {
		if (packets[i].ipv6)
			continue;
		memcpy(net, packets[i].bytes, sizeof(net));
		net[4] = 0;
		net[5] = 0;
		crc = vrnic_icrc_net(net, false);
		for (id = 0; id < VRNIC_ICRC_COUNT_MAX; id++) {
			net[5] = id;
			CHECK_EQ(vrnic_icrc_net(net, false), vrnic_icrc_count(crc, id));
		}
	}
}

/* on_its_way BYTE: the bits of a packet's headers that may change, as a mask. */
static u8 on_its_way(const struct packet *p, size_t at)
{
	size_t udp = ip_bytes(p);

	if (at == udp + 6 || at == udp + 7 || at == udp + 12)
		return 0xff;	/* UDP checksum; first byte of the queue pair's word */
	if (p->ipv6)
		return at == 0 ? 0x0f : at < 4 || at == 7 ? 0xff : 0;
	return at == 1 || at == 8 || at == 10 || at == 11 ? 0xff : 0;
}

/* Each bit by itself: it is either allowed to change, or found out. */
static void every_bit_counts(void)
{
	u8 copy[sizeof(packets[0].bytes)];
	const struct packet *p;
	unsigned int i, bit;
	bool may, same;

	for (i = 0; i < COUNT; i++) {
		p = &packets[i];
		for (bit = 0; bit < 8U * (p->len - VRNIC_ICRC_BYTES); bit++) {
			memcpy(copy, p->bytes, p->len);
			copy[bit / 8] ^= 1 << bit % 8;
			may = on_its_way(p, bit / 8) >> bit % 8 & 1;
			same = icrc_of(p, copy, 4096) == icrc_in(p);
			CHECK_EQ(may, same);
		}
	}
}

/* The headers say of themselves what they are. */
static void known_packets_parse(void)
{
	const struct vrnic_bth *bth;
	const struct packet *p;
	struct vrnic_bth copy;
	unsigned int i;
	u32 info;

	for (i = 0; i < COUNT; i++) {
		p = &packets[i];
		memcpy(&copy, p->bytes + ip_bytes(p) + 8, sizeof(copy));
		bth = &copy;
		info = vrnic_pkt_info(bth->opcode);
		CHECK_EQ(p->opcode, bth->opcode);
		CHECK_EQ(p->ext, vrnic_ext_len(info));
		CHECK_EQ(p->pad, vrnic_bth_pad(bth));
		CHECK(p->pad == 0 || info & VRNIC_PKT_PAYLOAD);
	}
}

/* What the module would have written for them is what is there. */
static void known_headers_are_made(void)
{
	struct vrnic_bth bth, made;
	const struct packet *p;
	unsigned int i;

	for (i = 0; i < COUNT; i++) {
		p = &packets[i];
		memcpy(&bth, p->bytes + ip_bytes(p) + 8, sizeof(bth));
		vrnic_bth_fill(&made, bth.opcode, vrnic_bth_pad(&bth),
			       bth.flags & VRNIC_BTH_SE, vrnic_bth_qpn(&bth),
			       vrnic_bth_psn(&bth), vrnic_bth_ackreq(&bth));
		/* rdma_rxe leaves the migration state out */
		made.flags &= ~VRNIC_BTH_MIG;
		bth.flags &= ~VRNIC_BTH_MIG;
		CHECK(!memcmp(&bth, &made, sizeof(bth)));
	}
}

static const struct unit_test tests[] = {
	UNIT(known_packets), UNIT(in_pieces), UNIT(in_one_piece),
	UNIT(counted), UNIT(every_bit_counts),
	UNIT(known_packets_parse), UNIT(known_headers_are_made),
};

UNIT_MAIN(tests)
