/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sizes and offsets at which transfers are tested: around a word, a cache
 * line, a page and the MTU, many packets, and one that is nothing special.
 */
#ifndef SELFTEST_SIZES_H
#define SELFTEST_SIZES_H

#include "harness.h"

#define SIZE_VARIANTS(fixture)				\
	SIZE_VARIANT(fixture, 0);			\
	SIZE_VARIANT(fixture, 1);			\
	SIZE_VARIANT(fixture, 7);			\
	SIZE_VARIANT(fixture, 8);			\
	SIZE_VARIANT(fixture, 9);			\
	SIZE_VARIANT(fixture, 63);			\
	SIZE_VARIANT(fixture, 64);			\
	SIZE_VARIANT(fixture, 4095);			\
	SIZE_VARIANT(fixture, 4096);			\
	SIZE_VARIANT(fixture, 4097);			\
	SIZE_VARIANT(fixture, 65536);			\
	SIZE_VARIANT(fixture, 1048576);			\
	SIZE_VARIANT(fixture, 16777219)

#define SIZE_VARIANT(fixture, bytes)			\
	FIXTURE_VARIANT_ADD(fixture, bytes_##bytes) { .size = (bytes) }

/* Room for the largest offset, and for bytes after the data to look at. */
#define SIZE_ROOM	8192

static const struct offsets {
	size_t src, dst;
} offsets[] = {
	{ 0, 0 }, { 1, 0 }, { 0, 3 }, { 5, 5 }, { 4093, 7 }, { 4096, 4095 },
};

static inline void before_transfer(struct bed *bed, uint32_t seed)
{
	buf_fill(&bed->src, seed);
	memset(bed->dst.addr, 0, bed->dst.len);
}

/* The bytes of the transfer are there, and no other byte was touched. */
static inline bool transferred(const struct bed *bed, const struct offsets *o,
			       size_t size, uint32_t seed)
{
	size_t end = o->dst + size;

	return buf_differs(&bed->dst, o->dst, size, seed, o->src) < 0 &&
	       buf_is_not(&bed->dst, 0, o->dst, 0) < 0 &&
	       buf_is_not(&bed->dst, end, bed->dst.len - end, 0) < 0;
}

#endif /* SELFTEST_SIZES_H */
