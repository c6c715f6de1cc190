// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The Toeplitz hash, with the key and the results by which Windows' drivers are verified. */
#include <arpa/inet.h>
#include <string.h>

#include "lib/toeplitz.h"

#include "unit.h"

static const u8 key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	const char *src, *dst;
	u16 sport, dport;
	u32 of_addresses, of_all;
} known[] = {
	{ "66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178 },
	{ "199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea },
	{ "24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a },
	{ "38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f },
	{ "153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d },
	{ "3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0f0c461c, 0xdde51bbf },
	{ "3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024,
	  0x4b61e985, 0x02d1feef },
};

static u32 put_addresses(u8 *input, const char *src, const char *dst)
{
	int family = strchr(src, ':') ? AF_INET6 : AF_INET;
	u32 n = family == AF_INET6 ? 16 : 4;

	CHECK_EQ(1, inet_pton(family, src, input));
	CHECK_EQ(1, inet_pton(family, dst, input + n));
	return 2 * n;
}

static void hashes_what_others_hash(void)
{
	u8 input[36];
	u32 i, n;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		n = put_addresses(input, known[i].src, known[i].dst);
		CHECK_EQ(known[i].of_addresses, vrnic_toeplitz(key, input, n));
		input[n++] = known[i].sport >> 8;
		input[n++] = known[i].sport & 0xff;
		input[n++] = known[i].dport >> 8;
		input[n++] = known[i].dport & 0xff;
		CHECK_EQ(known[i].of_all, vrnic_toeplitz(key, input, n));
	}
}

static void nothing_hashes_to_zero(void)
{
	CHECK_EQ(0, vrnic_toeplitz(key, NULL, 0));
	CHECK_EQ(0, vrnic_toeplitz(key, (u8[36]){ 0 }, 36));
}

/* The hash of a sum (exclusive or) is the sum of the hashes. */
static void is_linear(void)
{
	u8 a[36], b[36], sum[36];
	u32 i;

	for (i = 0; i < 36; i++) {
		a[i] = i * 37;
		b[i] = i * i;
		sum[i] = a[i] ^ b[i];
	}
	CHECK_EQ(vrnic_toeplitz(key, a, 36) ^ vrnic_toeplitz(key, b, 36),
		 vrnic_toeplitz(key, sum, 36));
}

static const struct unit_test tests[] = {
	UNIT(hashes_what_others_hash), UNIT(nothing_hashes_to_zero), UNIT(is_linear),
};

UNIT_MAIN(tests)
