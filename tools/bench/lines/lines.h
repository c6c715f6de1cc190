/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How a program says to lines.c from where to where to watch: long forms of nop, with a number. */
#ifndef LINES_H
#define LINES_H

#define LINES_MARK_BYTES	8
#define LINES_START_BYTES	"\x0f\x1f\x84\x00\x01\x4e\x52\x56"
#define LINES_STOP_BYTES	"\x0f\x1f\x84\x00\x02\x4e\x52\x56"

static inline void lines_start(void)
{
	asm volatile("nopl 0x56524e01(%%rax,%%rax,1)" ::: "memory");
}

static inline void lines_stop(void)
{
	asm volatile("nopl 0x56524e02(%%rax,%%rax,1)" ::: "memory");
}

#endif /* LINES_H */
