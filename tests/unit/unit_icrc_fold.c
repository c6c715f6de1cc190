// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The CRC by multiplication, against that bit by bit. */
#include <stdlib.h>
#include <linux/crc32.h>

#include "compat/icrc_pick.h"

#include "unit.h"

#define MOST	5000

static u8 bytes[MOST + 16];

/* All lengths at which something is different, and addresses. */
static void lengths(void)
{
	size_t len, off;

	for (len = 64; len < 400; len++)
		for (off = 0; off < 16; off++)
			CHECK_EQ(crc32_le(len, bytes + off, len),
				 vrnic_icrc_fold(len, bytes + off, len));
}

static void random_data(void)
{
	int i;

	for (i = 0; i < 300; i++) {
		size_t len = 64 + rand() % (MOST - 64), off = rand() % 16;
		u32 crc = rand() * 2u + rand() % 2;

		CHECK_EQ(crc32_le(crc, bytes + off, len), vrnic_icrc_fold(crc, bytes + off, len));
	}
}

static const struct unit_test tests[] = {
	UNIT(lengths), UNIT(random_data),
};

#define COUNT	(sizeof(tests) / sizeof(tests[0]))

int main(void)
{
	size_t i;

	if (!__builtin_cpu_supports("pclmul")) {
		printf("1..0 # SKIP this CPU has no PCLMULQDQ\n");
		return 0;
	}
	srand(1);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = rand();
	return unit_main(tests, COUNT);
}
