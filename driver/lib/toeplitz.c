// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The Toeplitz hash. */

#include "lib/toeplitz.h"

/**
 * vrnic_toeplitz() - hash the fields of a frame
 * @key: key of at least @len + 4 bytes
 * @input: the fields, in network order, one behind the other
 * @len: length of @input
 *
 * Each bit of @input that is set adds (exclusive or) the 32 bits of the key that begin at the bit's
 * own place.
 *
 * Return: the hash.
 */
u32 vrnic_toeplitz(const u8 *key, const u8 *input, u32 len)
{
	u32 window = (u32)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	u32 hash = 0, i, bit;

	for (i = 0; i < len; i++) {
		for (bit = 8; bit--; ) {
			if (input[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1);
		}
	}
	return hash;
}
