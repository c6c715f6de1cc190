/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The ring fuzzer: lanes, each with rings of its own that a thread fills with
 * descriptors, most of which are right, and a vandal: a thread that writes noise into all rings.
 */
#ifndef FUZZ_RING_H
#define FUZZ_RING_H

#include <pthread.h>
#include <sys/types.h>

#include "fuzz.h"

#define LANE_AREAS	24
#define LANE_BUF	65536
#define SECRET_LEN	4096

/**
 * struct area - mapped memory that the vandal may write to
 * @at: where
 * @bytes: how long it is
 * @dear: 1 in how many visits writes to it, because it takes long to mend
 */
struct area {
	uint8_t *at;
	size_t bytes;
	unsigned int dear;
};

/**
 * struct lane - a set of rings and the thread that fills them
 * @ops: of what kind
 * @number: of the lane
 * @opts: the command line
 * @thread: fills the rings
 * @lock: held while mappings come and go, and while the vandal is at them
 * @area, @nr_areas: protected by @lock
 * @rounds: fills and doorbells; as what follows, for the progress line
 * @mended: queue pairs brought back from error
 * @renewed: all of it closed and opened
 * @error: why it stopped, or 0
 * @stop: it is to stop
 * @priv: the kind's own
 */
struct lane {
	const struct lane_ops *ops;
	unsigned int number;
	const struct options *opts;
	pthread_t thread;
	pthread_mutex_t lock;
	struct area area[LANE_AREAS];
	unsigned int nr_areas;
	uint64_t rounds;
	uint64_t mended;
	uint64_t renewed;
	int error;
	bool stop;
	void *priv;
};

/**
 * struct lane_ops - a kind of lane
 * @name: for the command line
 * @open: make it, with @priv and areas: 0 or -errno
 * @round: fill, ring, wait, mend. 0; -EAGAIN: what was done to it can only be
 *	mended by a new one; or another -errno, which is a failure
 * @close: take it down: 0; -EFAULT: memory was touched that must not be
 */
struct lane_ops {
	const char *name;
	int (*open)(struct lane *lane);
	int (*round)(struct lane *lane, struct rng *rng);
	int (*close)(struct lane *lane);
};

extern const struct lane_ops lane_rc, lane_uc, lane_ud, lane_raw, lane_xrc, lane_native;

static inline void lane_area(struct lane *lane, void *at, size_t bytes,
			     unsigned int dear)
{
	if (lane->nr_areas < LANE_AREAS)
		lane->area[lane->nr_areas++] = (struct area){ at, bytes, dear };
}

#endif /* FUZZ_RING_H */
