// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Picks the fastest way to compute the ICRC of long data on this machine. The CPU's features do not
 * tell: an instruction that is emulated may take longer than tables do, and crc32_le(), which uses
 * tables up to Linux 6.13, may be the fastest from then on.
 */

#include <linux/crc32.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "compat/icrc_pick.h"
#include "lib/icrc.h"

#define ROUNDS	8

bool vrnic_shift_pays __ro_after_init;

static u32 as_it_is(u32 crc, const void *data, size_t len)
{
	return crc32_le(crc, data, len);
}

/* The time that @crc takes, in ns: the shortest of several tries, as tries may be interrupted. */
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

#ifdef CONFIG_X86_64
bool vrnic_fold_pays __ro_after_init;

static void __init time_fold(const void *data, u64 best)
{
	if (!boot_cpu_has(X86_FEATURE_PCLMULQDQ))
		return;
	kernel_fpu_begin();
	vrnic_fold_pays = time_of(vrnic_icrc_fold, data) < best;
	kernel_fpu_end();
}
#else
static void __init time_fold(const void *data, u64 best) {}
#endif

/**
 * vrnic_icrc_init() - measure the ways to the CRC, and choose the fastest
 *
 * If there is no memory, or the clock stands still, the choice is crc32_le().
 */
void __init vrnic_icrc_init(void)
{
	u64 shift, best;
	void *data;

	data = kzalloc(SZ_4K, GFP_KERNEL);
	if (!data)
		return;
	best = time_of(as_it_is, data);
	shift = time_of(vrnic_icrc_shift, data);
	vrnic_shift_pays = shift < best;
	time_fold(data, min(shift, best));
	kfree(data);
}
