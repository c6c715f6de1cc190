/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A FIFO whose process asks something of the host of native_foe.h, while a test plays that host, in
 * a network namespace with a device on its lo.
 */
#ifndef NATIVE_ASKING_H
#define NATIVE_ASKING_H

#include <pthread.h>

#include "native_foe.h"
#include "native_raw.h"

#define FOE		0x7f000009	/* 127.0.0.9 */

/* Something that may take as long as a peer likes, while the peer is played. */
struct doing {
	pthread_t thread;
	int (*what)(void *arg);
	void *arg;
	int ret;
};

int begin(struct doing *d, int (*what)(void *arg), void *arg);
bool is_over(struct doing *d);

/* An endpoint that leads to the other host, and its FIFO. */
struct asking {
	struct raw_fifo *fifo;
	struct vrnic_address address;
	uint32_t endpoint, handle;
};

struct asking asking_foe(struct raw_fifo *fifo);
/* Make the endpoint of a struct asking. */
int make_endpoint(void *arg);
/* The same, and the other host says yes. */
int reach_foe(struct asking *a, struct foe *foe);

/* A device on lo, a FIFO of it, and the other host; and back. */
int foe_set_up(struct raw_fifo *fifo, uint32_t slots, size_t len, struct foe *foe);
int foe_tear_down(struct raw_fifo *fifo, struct foe *foe);

#endif /* NATIVE_ASKING_H */
