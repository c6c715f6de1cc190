// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "verbs_raw.h"

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

void raw_see(struct raw_seen *seen)
{
	seen->nr = raw_find_rings(seen->ring, RAW_MAPPINGS);
}

int raw_new(const struct raw_seen *seen, struct raw_ring *rings, int nr)
{
	const struct raw_ring *ring;
	struct raw_seen now;
	int at, n = 0;

	raw_see(&now);
	for (ring = now.ring; ring < now.ring + now.nr; ring++) {
		if (is_among(ring, seen->ring, seen->nr))
			continue;
		if (n == nr)
			return -ENXIO;
		for (at = n++; at && rings[at - 1].offset > ring->offset; at--)
			rings[at] = rings[at - 1];
		rings[at] = *ring;
	}
	return n == nr ? 0 : -ENXIO;
}

int raw_new_rings(const struct raw_seen *seen, bool srq, struct raw_ring rings[RINGS])
{
	struct raw_ring swap;
	int ret = raw_new(seen, rings, RINGS);

	if (!ret && srq) {
		swap = rings[SQ];
		rings[SQ] = rings[RQ];
		rings[RQ] = swap;
	}
	return ret;
}

int raw_side_open(struct side *side, struct dev *dev,
		  const struct pair_opts *opts, bool srq,
		  struct raw_ring rings[RINGS])
{
	struct raw_seen seen;
	int ret;

	raw_see(&seen);
	ret = side_open(side, dev, opts, srq);
	return ret ? ret : raw_new_rings(&seen, srq, rings);
}

int raw_ring_bell(int bell, uint32_t qpn)
{
	return ioctl(bell, VRNIC_DOORBELL, (unsigned long)qpn) ? -errno : 0;
}
