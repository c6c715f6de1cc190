/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CRC-32 of long data, where the CPU has an instruction that helps. */
#ifndef VRNIC_ICRC_FOLD_H
#define VRNIC_ICRC_FOLD_H

#include <linux/types.h>

/* Shorter data gain less than it costs to have the FPU. */
#define VRNIC_FOLD_MIN	256

u32 vrnic_icrc_fold(u32 crc, const void *data, size_t len);

#if defined(__KERNEL__) && defined(CONFIG_X86_64)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

static inline bool vrnic_fold_begin(void)
{
	if (!boot_cpu_has(X86_FEATURE_PCLMULQDQ) || !irq_fpu_usable())
		return false;
	kernel_fpu_begin();
	return true;
}

static inline void vrnic_fold_end(void)
{
	kernel_fpu_end();
}
#else
static inline bool vrnic_fold_begin(void)
{
	return false;
}

static inline void vrnic_fold_end(void) {}
#endif

#endif /* VRNIC_ICRC_FOLD_H */
