/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rings of a queue pair without their library: mapped memory that a test
 * writes by hand. They are found among the process's mappings, in the order in
 * which the provider made them.
 */
#ifndef VERBS_RAW_H
#define VERBS_RAW_H

#include <rdma/vrnic-abi.h>

#include "verbs_util.h"

/**
 * struct raw_ring - a ring as the process has it mapped
 * @offset: in the uverbs file; tells mappings of one context apart
 * @hdr: its indices
 * @slots: its entries
 * @bytes: of @slots
 */
struct raw_ring {
	uint64_t offset;
	struct vrnic_ring_hdr *hdr;
	uint8_t *slots;
	size_t bytes;
};

/* One side's rings, in the order in which they are made. */
enum raw_ring_kind { SCQ, RCQ, SQ, RQ, RINGS };

/* Find mappings of uverbs files: how many there are, at most @max. */
int raw_find_rings(struct raw_ring *rings, int max);

#define RAW_MAPPINGS	256	/* of uverbs files, in one process */

/* The mappings that there were at some time. */
struct raw_seen {
	struct raw_ring ring[RAW_MAPPINGS];
	int nr;
};

void raw_see(struct raw_seen *seen);
/* The @nr rings that were made since, in the order of their offsets: 0, or -ENXIO: not so many. */
int raw_new(const struct raw_seen *seen, struct raw_ring *rings, int nr);
/*
 * Where the rings are that were made since raw_see(), which are those of one side. With @srq, the
 * shared one was made before the send ring: 0, or -ENXIO if there are not the mappings that are
 * expected.
 */
int raw_new_rings(const struct raw_seen *seen, bool srq, struct raw_ring rings[RINGS]);

/*
 * side_open(), and where its rings are. With @srq, what is at RQ is the shared
 * one's: 0 or -errno, -ENXIO if there are not the mappings that are expected.
 */
int raw_side_open(struct side *side, struct dev *dev,
		  const struct pair_opts *opts, bool srq,
		  struct raw_ring rings[RINGS]);

/* The doorbell (raw_open_bell()) for a queue pair, whether or not that is needed: 0 or -errno. */
int raw_ring_bell(int bell, uint32_t qpn);

#endif /* VERBS_RAW_H */
