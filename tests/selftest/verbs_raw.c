// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "verbs_raw.h"

#define MAPPINGS	256	/* of uverbs files, in one process */

/* By address, because offsets are those of one context, and there may be several. */
int raw_find_rings(struct raw_ring *rings, int max)
{
	unsigned long from, to, offset;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	while (f && n < max && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/uverbs") ||
		    sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3)
			continue;
		rings[n++] = (struct raw_ring){
			.offset = offset,
			.hdr = (void *)from,
			.slots = (uint8_t *)from + VRNIC_RING_DATA,
			.bytes = to - from - VRNIC_RING_DATA,
		};
	}
	if (f)
		fclose(f);
	return n;
}

static bool is_among(const struct raw_ring *ring, const struct raw_ring *rings,
		     int n)
{
	while (n--)
		if (rings[n].hdr == ring->hdr)
			return true;
	return false;
}

/* Those of @after that are not in @before, in the order of their offsets. */
static int new_rings(const struct raw_ring *before, int had,
		     const struct raw_ring *after, int have,
		     struct raw_ring *rings)
{
	int i, at, n = 0;

	for (i = 0; i < have; i++) {
		if (is_among(&after[i], before, had))
			continue;
		if (n == RINGS)
			return -ENXIO;
		for (at = n++; at && rings[at - 1].offset > after[i].offset; at--)
			rings[at] = rings[at - 1];
		rings[at] = after[i];
	}
	return n == RINGS ? 0 : -ENXIO;
}

int raw_side_open(struct side *side, struct dev *dev,
		  const struct pair_opts *opts, bool srq,
		  struct raw_ring rings[RINGS])
{
	struct raw_ring before[MAPPINGS], after[MAPPINGS], swap;
	int had = raw_find_rings(before, MAPPINGS);
	int ret = side_open(side, dev, opts, srq);
	int have = raw_find_rings(after, MAPPINGS);

	if (!ret)
		ret = new_rings(before, had, after, have, rings);
	if (!ret && srq) {
		/* it was made before the queue pair */
		swap = rings[SQ];
		rings[SQ] = rings[RQ];
		rings[RQ] = swap;
	}
	return ret;
}

int raw_ring_bell(int bell, uint32_t qpn)
{
	return ioctl(bell, VRNIC_DOORBELL, (unsigned long)qpn) ? -errno : 0;
}
