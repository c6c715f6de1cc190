// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 with carry-less multiplication. The remainder of a long polynomial is that of a shorter
 * one in which the upper part is replaced by its own remainder:
 *	a * x^n + b  =  a * (x^n mod P) + b	(mod P)
 *
 * So 64 bytes at a time are multiplied onto the next 64, in four independent lanes of 16 bytes. In
 * the end the lanes are multiplied onto each other, and crc32_le() does the last 16 bytes and the
 * rest. Bits are reflected, as everywhere in this CRC. Therefore n is the distance in bits plus 32
 * for the first half of a lane, and minus 32 for the second, and the constants are shifted by one
 * bit.
 *
 * crc32_le() works like this from Linux 6.14 on. Before, the crypto API has a similar function, but
 * not in user-mode Linux, and at the cost of a call for each piece. This file is compiled with SSE:
 * its function may only be called between kernel_fpu_begin() and kernel_fpu_end(), and must not
 * call functions that use the FPU themselves.
 */

#include <linux/crc32.h>
#include <linux/types.h>

#include "compat/icrc_pick.h"

#ifdef __CHECKER__
/* sparse does not know vectors */
u32 vrnic_icrc_fold(u32 crc, const void *data, size_t len)
{
	return crc32_le(crc, data, len);
}
#else

#define vec	long long __attribute__((vector_size(16)))

/* A vector without alignment. */
struct piece {
	vec v;
} __packed;

#define LANES	4
#define BYTES	sizeof(vec)

/* far moves a lane on by 64 bytes: x^544 and x^480 mod P. near: by 16 bytes: x^160 and x^96. */
static const vec far = { 0x154442bd4LL, 0x1c6e41596LL };
static const vec near = { 0x1751997d0LL, 0x0ccaa009eLL };

static inline vec fold(vec from, vec by, vec to)
{
	return __builtin_ia32_pclmulqdq128(from, by, 0x00) ^
	       __builtin_ia32_pclmulqdq128(from, by, 0x11) ^ to;
}

/**
 * vrnic_icrc_fold() - crc32_le() for long data
 * @crc: CRC of the data before
 * @data: bytes, not aligned
 * @len: number of bytes, at least 64
 *
 * Return: CRC of the data before and @data.
 * Context: between kernel_fpu_begin() and kernel_fpu_end(); the CPU has PCLMULQDQ.
 */
u32 vrnic_icrc_fold(u32 crc, const void *data, size_t len)
{
	const struct piece *at = data;
	vec x0 = at[0].v ^ (vec){ crc, 0 };
	vec x1 = at[1].v, x2 = at[2].v, x3 = at[3].v;
	struct piece last;

	for (at += LANES, len -= LANES * BYTES; len >= LANES * BYTES;
	     at += LANES, len -= LANES * BYTES) {
		x0 = fold(x0, far, at[0].v);
		x1 = fold(x1, far, at[1].v);
		x2 = fold(x2, far, at[2].v);
		x3 = fold(x3, far, at[3].v);
	}
	x1 = fold(x0, near, x1);
	x2 = fold(x1, near, x2);
	x3 = fold(x2, near, x3);
	for (; len >= BYTES; at++, len -= BYTES)
		x3 = fold(x3, near, at[0].v);
	last.v = x3;
	return crc32_le(crc32_le(0, (const u8 *)&last, BYTES), (const u8 *)at,
			len);
}

#endif /* __CHECKER__ */
