/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ways to compute the CRC-32 of long data, and which of them are fast on this machine. */
#ifndef VRNIC_ICRC_PICK_H
#define VRNIC_ICRC_PICK_H

#include <linux/types.h>

/* For shorter data, folding gains less than kernel_fpu_begin() costs. */
#define VRNIC_FOLD_MIN	256
/* Of shorter data, most would be in the last words, which vrnic_icrc_shift() leaves to tables. */
#define VRNIC_SHIFT_MIN	160

/* icrc_fold.c */
u32 vrnic_icrc_fold(u32 crc, const void *data, size_t len);
/* icrc_shift.c */
u32 vrnic_icrc_shift(u32 crc, const void *data, size_t len);

#ifdef __KERNEL__
/* icrc_pick.c */
extern bool vrnic_shift_pays;
void vrnic_icrc_init(void);
#else
#define vrnic_shift_pays	false
#endif

#if defined(__KERNEL__) && defined(CONFIG_X86_64)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

extern bool vrnic_fold_pays;

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
#endif

#endif /* VRNIC_ICRC_PICK_H */
