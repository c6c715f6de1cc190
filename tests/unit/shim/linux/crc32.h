/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* crc32_le() from its polynomial, bit by bit: slow, and nothing to be wrong. */
#ifndef SHIM_LINUX_CRC32_H
#define SHIM_LINUX_CRC32_H

#include <linux/types.h>

static inline u32 crc32_le(u32 crc, const void *data, size_t len)
{
	const u8 *byte = data;
	int bit;

	while (len--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

#endif /* SHIM_LINUX_CRC32_H */
