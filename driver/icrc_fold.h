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

/* icrc_pick.c */
extern bool vrnic_fold_pays;
void vrnic_icrc_init(void);

static inline bool vrnic_fold_begin(void)
{
	if (!vrnic_fold_pays || !irq_fpu_usable())
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

static inline void vrnic_icrc_init(void) {}
#endif

#endif /* VRNIC_ICRC_FOLD_H */
