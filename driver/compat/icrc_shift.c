// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 with shifts, for CPUs without carry-less multiplication, or with a slow one. Tables are
 * slow on an emulated CPU: they take eight memory accesses for eight bytes, and the emulator
 * translates the address of each.
 *
 * The CRC's polynomial P divides a polynomial that has only five terms:
 *
 *	x^300 + x^155 + x^117 + x^89 + 1  =  0	(mod P)
 *
 * So a bit may be taken out of the data if it is added 145, 183, 211 and 300 bits later. All of
 * these are more than 64, so a word of 64 bits can be taken out at once. What is still to be added
 * to the data is kept in five words (a to e), and tables do the last five words. (A search through
 * all sums of four terms found this polynomial. Chorba, by K. Palaschke and others, is this method,
 * with much longer polynomials, too.)
 *
 * This file needs nothing from ib_core.
 */

#include <linux/crc32.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#include "compat/icrc_pick.h"

#define WORDS	5
#define BYTES	(WORDS * sizeof(u64))

/* A word without alignment. */
struct word {
	__le64 v;
} __packed;

/*
 * Take a word out, and add it to the second to fifth word after it. The bit that comes first is the
 * lowest: 145 is 2 words and 17 bits, 183 is 2 and 55, 211 is 3 and 19, 300 is 4 and 44. @fifth is
 * overwritten, because nothing was added to it before.
 */
static inline void shift_word(u64 word, u64 *second, u64 *third, u64 *fourth,
			      u64 *fifth)
{
	*second ^= word << 17 ^ word << 55;
	*third ^= word >> 47 ^ word >> 9 ^ word << 19;
	*fourth ^= word >> 45 ^ word << 44;
	*fifth = word >> 20;
}

/**
 * vrnic_icrc_shift() - crc32_le() for long data
 * @crc: CRC of the data before
 * @data: bytes, not aligned
 * @len: number of bytes, at least 40
 *
 * Return: CRC of the data before and @data.
 */
u32 vrnic_icrc_shift(u32 crc, const void *data, size_t len)
{
	const struct word *at = data;
	u64 a = crc, b = 0, c = 0, d = 0, e = 0, f;
	__le64 last[WORDS];

	for (; len >= 2 * BYTES; at += WORDS, len -= BYTES) {
		shift_word(le64_to_cpu(at[0].v) ^ a, &c, &d, &e, &f);
		shift_word(le64_to_cpu(at[1].v) ^ b, &d, &e, &f, &a);
		shift_word(le64_to_cpu(at[2].v) ^ c, &e, &f, &a, &b);
		shift_word(le64_to_cpu(at[3].v) ^ d, &f, &a, &b, &c);
		shift_word(le64_to_cpu(at[4].v) ^ e, &a, &b, &c, &d);
		e = d;
		d = c;
		c = b;
		b = a;
		a = f;
	}
	last[0] = at[0].v ^ cpu_to_le64(a);
	last[1] = at[1].v ^ cpu_to_le64(b);
	last[2] = at[2].v ^ cpu_to_le64(c);
	last[3] = at[3].v ^ cpu_to_le64(d);
	last[4] = at[4].v ^ cpu_to_le64(e);
	return crc32_le(crc32_le(0, (const u8 *)last, BYTES),
			(const u8 *)(at + WORDS), len - BYTES);
}
