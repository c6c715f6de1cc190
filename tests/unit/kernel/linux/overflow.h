/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef UNIT_LINUX_OVERFLOW_H
#define UNIT_LINUX_OVERFLOW_H

#define check_add_overflow(a, b, sum)		__builtin_add_overflow(a, b, sum)
#define check_mul_overflow(a, b, product)	__builtin_mul_overflow(a, b, product)

#endif /* UNIT_LINUX_OVERFLOW_H */
