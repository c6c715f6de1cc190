/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

#define min(a, b) ({ __typeof__(a) __a = (a), __b = (b); __a < __b ? __a : __b; })
#define max(a, b) ({ __typeof__(a) __a = (a), __b = (b); __a > __b ? __a : __b; })

#endif /* SHIM_LINUX_MINMAX_H */
