// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which way to the ICRC of long data is the faster one here. That the CPU has an
 * instruction does not say that it is fast: an emulated one may take more time for
 * it than tables take for all.
 */

#include <linux/crc32.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "icrc.h"
#include "icrc_fold.h"

#define ROUNDS	8

bool vrnic_fold_pays __ro_after_init;

static u32 by_tables(u32 crc, const void *data, size_t len)
{
	return crc32_le(crc, data, len);
}

/* The least of some tries, in ns: others may have been interrupted. */
static u64 __init time_of(u32 (*crc)(u32 crc, const void *data, size_t len),
			  const void *data)
{
	u64 least = U64_MAX, began;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		began = ktime_get_ns();
		crc(i, data, SZ_4K);
		least = min(least, ktime_get_ns() - began);
	}
	return least;
}

/**
 * vrnic_icrc_init() - measure, and choose
 *
 * Without memory or the instruction, or with a clock that stands still, it will
 * be tables.
 */
void __init vrnic_icrc_init(void)
{
	void *data;
	u64 fold;

	if (!boot_cpu_has(X86_FEATURE_PCLMULQDQ))
		return;
	data = kzalloc(SZ_4K, GFP_KERNEL);
	if (!data)
		return;
	kernel_fpu_begin();
	fold = time_of(vrnic_icrc_fold, data);
	kernel_fpu_end();
	vrnic_fold_pays = fold < time_of(by_tables, data);
	kfree(data);
}
