// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet headers, byte by byte as IBTA draws them: what is expected is written
 * here as bytes and numbers, not with the header's own names.
 */
#include <string.h>

#include "lib/hdr.h"

#include "unit.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static void sizes(void)
{
	CHECK_EQ(12, sizeof(struct vrnic_bth));
	CHECK_EQ(8, sizeof(struct vrnic_deth));
	CHECK_EQ(16, sizeof(struct vrnic_reth));
	CHECK_EQ(28, sizeof(struct vrnic_atomiceth));
	CHECK_EQ(4, sizeof(struct vrnic_aeth));
	CHECK_EQ(8, sizeof(struct vrnic_atomicack));
}

static void bth_is_packed(void)
{
	static const u8 expected[] = {
		0x04, 0xe0, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56,
		0x80, 0xab, 0xcd, 0xef,
	};
	struct vrnic_bth bth;

	memset(&bth, 0x5a, sizeof(bth));
	vrnic_bth_fill(&bth, 0x04, 2, true, 0x123456, 0xabcdef, true);
	CHECK(!memcmp(&bth, expected, sizeof(expected)));
}

/* Bits above the 24 must not get into their neighbours. */
static void bth_keeps_to_its_bits(void)
{
	static const u8 expected[] = {
		0x11, 0x40, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff,
		0x00, 0xff, 0xff, 0xff,
	};
	struct vrnic_bth bth;

	vrnic_bth_fill(&bth, 0x11, 0, false, 0xffffffff, 0xffffffff, false);
	CHECK(!memcmp(&bth, expected, sizeof(expected)));
}

static void bth_is_unpacked(void)
{
	static const u8 wire[] = {
		0x0a, 0x70, 0xff, 0xff, 0xc0, 0x00, 0x00, 0x11,
		0xff, 0x00, 0x00, 0x2a,
	};
	struct vrnic_bth bth;

	memcpy(&bth, wire, sizeof(bth));
	CHECK_EQ(3, vrnic_bth_pad(&bth));
	CHECK_EQ(0x11, vrnic_bth_qpn(&bth));
	CHECK_EQ(0x2a, vrnic_bth_psn(&bth));
	CHECK(vrnic_bth_ackreq(&bth));
	bth.psn &= ~cpu_to_be32(0x80000000);
	CHECK(!vrnic_bth_ackreq(&bth));
}

static void bth_survives_the_round(void)
{
	struct vrnic_bth bth;
	u32 i, qpn, psn;

	for (i = 0; i < 24; i++) {
		qpn = 1U << i;
		psn = 0xffffff ^ qpn;
		vrnic_bth_fill(&bth, i, i % 4, i % 2, qpn, psn, i % 3 == 0);
		CHECK_EQ(i, bth.opcode);
		CHECK_EQ(i % 4, vrnic_bth_pad(&bth));
		CHECK_EQ(qpn, vrnic_bth_qpn(&bth));
		CHECK_EQ(psn, vrnic_bth_psn(&bth));
		CHECK_EQ(i % 3 == 0, vrnic_bth_ackreq(&bth));
		CHECK_EQ(i % 2, bth.flags >> 7);
		CHECK_EQ(0, bth.flags & 0x0f);
	}
}

static void aeth(void)
{
	static const u8 ack[] = { 0x1f, 0x00, 0x01, 0x02 };
	static const u8 nak[] = { 0x62, 0xff, 0xff, 0xff };
	struct vrnic_aeth aeth;

	vrnic_aeth_fill(&aeth, 0x1f, 0x102);
	CHECK(!memcmp(&aeth, ack, sizeof(ack)));
	CHECK_EQ(0x1f, vrnic_aeth_syndrome(&aeth));
	vrnic_aeth_fill(&aeth, 0x62, 0x12ffffff);
	CHECK(!memcmp(&aeth, nak, sizeof(nak)));
	CHECK_EQ(0x62, vrnic_aeth_syndrome(&aeth));
}

static void aeth_syndromes(void)
{
	CHECK_EQ(0x00, 0x1f & VRNIC_AETH_KIND & ~0x1f);
	CHECK_EQ(VRNIC_AETH_ACK, 0x1f & VRNIC_AETH_KIND);
	CHECK_EQ(VRNIC_AETH_RNR, 0x2c & VRNIC_AETH_KIND);
	CHECK_EQ(12, 0x2c & VRNIC_AETH_VALUE);
	CHECK_EQ(VRNIC_AETH_NAK, 0x60 & VRNIC_AETH_KIND);
	CHECK_EQ(VRNIC_NAK_PSN, 0x60 & VRNIC_AETH_VALUE);
	CHECK_EQ(VRNIC_NAK_INVALID, 0x61 & VRNIC_AETH_VALUE);
	CHECK_EQ(VRNIC_NAK_ACCESS, 0x62 & VRNIC_AETH_VALUE);
	CHECK_EQ(VRNIC_NAK_OPERATION, 0x63 & VRNIC_AETH_VALUE);
}

/*
 * What follows the BTH: all opcodes that are defined, with the bytes of their
 * extension headers, and whether a payload and the ends of a message.
 */
#define FIRST	1
#define MIDDLE	0
#define LAST	2
#define ONLY	3
#define DATA	4

static const struct {
	u8 opcode, ext, ends;
} opcodes[] = {
	{ 0x00, 0, FIRST | DATA }, { 0x01, 0, MIDDLE | DATA },
	{ 0x02, 0, LAST | DATA }, { 0x03, 4, LAST | DATA },
	{ 0x04, 0, ONLY | DATA }, { 0x05, 4, ONLY | DATA },
	{ 0x06, 16, FIRST | DATA }, { 0x07, 0, MIDDLE | DATA },
	{ 0x08, 0, LAST | DATA }, { 0x09, 4, LAST | DATA },
	{ 0x0a, 16, ONLY | DATA }, { 0x0b, 20, ONLY | DATA },
	{ 0x0c, 16, ONLY },
	{ 0x0d, 4, FIRST | DATA }, { 0x0e, 0, MIDDLE | DATA },
	{ 0x0f, 4, LAST | DATA }, { 0x10, 4, ONLY | DATA },
	{ 0x11, 4, ONLY }, { 0x12, 12, ONLY },
	{ 0x13, 28, ONLY }, { 0x14, 28, ONLY },
	{ 0x16, 4, LAST | DATA }, { 0x17, 4, ONLY | DATA },
	{ 0x1c, 20, ONLY }, { 0x1d, 16, ONLY | DATA },
	/* UC */
	{ 0x20, 0, FIRST | DATA }, { 0x21, 0, MIDDLE | DATA },
	{ 0x22, 0, LAST | DATA }, { 0x23, 4, LAST | DATA },
	{ 0x24, 0, ONLY | DATA }, { 0x25, 4, ONLY | DATA },
	{ 0x26, 16, FIRST | DATA }, { 0x27, 0, MIDDLE | DATA },
	{ 0x28, 0, LAST | DATA }, { 0x29, 4, LAST | DATA },
	{ 0x2a, 16, ONLY | DATA }, { 0x2b, 20, ONLY | DATA },
	/* UD */
	{ 0x64, 8, ONLY | DATA }, { 0x65, 12, ONLY | DATA },
	/* congestion notification */
	{ 0x81, 0, MIDDLE | DATA },
	/* XRC: XRCETH comes first, but not in answers */
	{ 0xa0, 4, FIRST | DATA }, { 0xa1, 4, MIDDLE | DATA },
	{ 0xa2, 4, LAST | DATA }, { 0xa3, 8, LAST | DATA },
	{ 0xa4, 4, ONLY | DATA }, { 0xa5, 8, ONLY | DATA },
	{ 0xa6, 20, FIRST | DATA }, { 0xa7, 4, MIDDLE | DATA },
	{ 0xa8, 4, LAST | DATA }, { 0xa9, 8, LAST | DATA },
	{ 0xaa, 20, ONLY | DATA }, { 0xab, 24, ONLY | DATA },
	{ 0xac, 20, ONLY },
	{ 0xad, 4, FIRST | DATA }, { 0xae, 0, MIDDLE | DATA },
	{ 0xaf, 4, LAST | DATA }, { 0xb0, 4, ONLY | DATA },
	{ 0xb1, 4, ONLY }, { 0xb2, 12, ONLY },
	{ 0xb3, 32, ONLY }, { 0xb4, 32, ONLY },
	{ 0xb6, 8, LAST | DATA }, { 0xb7, 8, ONLY | DATA },
	{ 0xbc, 24, ONLY }, { 0xbd, 20, ONLY | DATA },
	/* ours, of the manufacturer's range */
	{ 0xc0, 0, FIRST | DATA }, { 0xc1, 0, MIDDLE | DATA },
	{ 0xc2, 0, LAST | DATA }, { 0xc4, 0, ONLY | DATA },
	{ 0xde, 0, LAST }, { 0xdf, 0, ONLY }, { 0xe0, 0, ONLY | DATA },
};

static u8 ends_of(u32 info)
{
	return (info & VRNIC_PKT_START ? FIRST : 0) |
	       (info & VRNIC_PKT_END ? LAST : 0) |
	       (info & VRNIC_PKT_PAYLOAD ? DATA : 0);
}

static void opcodes_that_are(void)
{
	unsigned int i;
	u32 info;

	for (i = 0; i < COUNT(opcodes); i++) {
		info = vrnic_pkt_info(opcodes[i].opcode);
		CHECK(info != 0);
		CHECK_EQ(opcodes[i].ext, vrnic_exts_len(info));
		CHECK_EQ(opcodes[i].ends, ends_of(info));
		CHECK(vrnic_ext_len(info) <= VRNIC_EXT_MAX);
	}
}

static bool is_listed(unsigned int opcode)
{
	unsigned int i;

	for (i = 0; i < COUNT(opcodes); i++)
		if (opcodes[i].opcode == opcode)
			return true;
	return false;
}

static void no_other_opcode_is(void)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++)
		if (!is_listed(opcode))
			CHECK_EQ(0, vrnic_pkt_info(opcode));
}

/* A packet is a request or a response, and does one thing. */
static void one_kind_each(void)
{
	const u32 kinds = VRNIC_PKT_SEND | VRNIC_PKT_WRITE | VRNIC_PKT_READ |
			  VRNIC_PKT_ATOMIC | VRNIC_PKT_OTHER | VRNIC_PKT_RESP |
			  VRNIC_PKT_CNP | VRNIC_PKT_NATIVE |
			  VRNIC_PKT_HELLO;
	unsigned int i;

	for (i = 0; i < COUNT(opcodes); i++)
		CHECK_EQ(1, __builtin_popcount(vrnic_pkt_info(opcodes[i].opcode) & kinds));
	for (i = 0x0d; i <= 0x12; i++) {
		CHECK(vrnic_pkt_info(i) & VRNIC_PKT_RESP);
		CHECK(vrnic_pkt_info(VRNIC_SVC_XRC | i) & VRNIC_PKT_RESP);
	}
}

static const struct unit_test tests[] = {
	UNIT(sizes), UNIT(bth_is_packed), UNIT(bth_keeps_to_its_bits),
	UNIT(bth_is_unpacked), UNIT(bth_survives_the_round), UNIT(aeth),
	UNIT(aeth_syndromes), UNIT(opcodes_that_are), UNIT(no_other_opcode_is),
	UNIT(one_kind_each),
};

UNIT_MAIN(tests)
