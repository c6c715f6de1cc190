// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The wire format, as compiled for the kernel and with its crc32: packets that
 * another implementation sent. tests/unit goes through every bit.
 */
#include <kunit/test.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "lib/hdr.h"
#include "lib/icrc.h"
#include "lib/psn.h"
#include "packets.h"

static const u8 *transport(const struct packet *p)
{
	return p->bytes + (p->ipv6 ? 40 : 20) + 8;
}

static void wire_icrc(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct packet *p = &packets[i];
		const u8 *rest = transport(p) + sizeof(struct vrnic_bth);
		const u8 *icrc = p->bytes + p->len - VRNIC_ICRC_BYTES;
		u32 crc = vrnic_icrc_begin(p->bytes, p->ipv6);

		crc = vrnic_icrc_more(crc, rest, icrc - rest);
		KUNIT_EXPECT_EQ_MSG(test, get_unaligned_le32(icrc),
				    le32_to_cpu(vrnic_icrc_end(crc)), "%s", p->name);
	}
}

static void wire_headers(struct kunit *test)
{
	struct vrnic_bth bth;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct packet *p = &packets[i];

		memcpy(&bth, transport(p), sizeof(bth));
		KUNIT_EXPECT_EQ(test, p->opcode, bth.opcode);
		KUNIT_EXPECT_EQ(test, p->pad, vrnic_bth_pad(&bth));
		KUNIT_EXPECT_EQ(test, p->ext,
				vrnic_ext_len(vrnic_pkt_info(bth.opcode)));
	}
}

static void wire_psn(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, vrnic_psn_add(VRNIC_PSN_MASK, 1));
	KUNIT_EXPECT_EQ(test, 1, vrnic_psn_diff(0, VRNIC_PSN_MASK));
	KUNIT_EXPECT_EQ(test, -1, vrnic_psn_diff(VRNIC_PSN_MASK, 0));
	KUNIT_EXPECT_EQ(test, 0x1000000ULL, vrnic_psn_extend(0, VRNIC_PSN_MASK));
	KUNIT_EXPECT_EQ(test, 1 << 23, vrnic_psn_count(1ULL << 31, 256));
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(wire_icrc),
	KUNIT_CASE(wire_headers),
	KUNIT_CASE(wire_psn),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "vrnic_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);
