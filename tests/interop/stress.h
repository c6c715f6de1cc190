/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What stress.c needs of verbs and sockets: one connected queue pair, two areas of memory. */
#ifndef STRESS_H
#define STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>
#include <linux/types.h>

/**
 * struct options - the command line; both hosts have to be given the same
 * @ops: operations in all
 * @max_size: bytes of the largest message
 * @window: operations that are posted at once
 * @timeout: exponent of the queue pair's timer
 * @limit: seconds after which a run that is not over has failed
 * @interval: print the progress, this many times a second; 0: do not
 * @tclass: traffic class
 * @host: the server's name, NULL for the server itself
 */
struct options {
	const char *device;
	const char *host;
	int gid_index;
	unsigned int mtu, ops, max_size, window, timeout, seed, limit, interval, port, tclass;
};

/* struct address - of a queue pair and its memory, as it goes over the socket */
struct address {
	union ibv_gid gid;
	__u64 data, results;
	uint32_t qpn, psn, data_rkey, results_rkey;
};

/**
 * struct host - one end
 * @data: what the peer writes, reads and sends to; @window slots for each
 * @results: where atomics work, and what they and READs return
 */
struct host {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_mr *data_mr, *results_mr;
	uint8_t *data, *results;
	size_t data_len, results_len;
	struct address mine, peer;
	int fd;
};

#define die(...)							\
	do {								\
		fflush(stdout);						\
		fprintf(stderr, "stress: " __VA_ARGS__);		\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

/* Each dies, with a reason, if it does not succeed. */
void host_open(struct host *host, const struct options *opt, size_t data_len,
	       size_t results_len);
void host_connect(struct host *host, const struct options *opt);
/* Both hosts came here. */
void host_meet(struct host *host);
void host_close(struct host *host);

#endif /* STRESS_H */
