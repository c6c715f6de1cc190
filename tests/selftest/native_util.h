/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of libvrnic share: two ends that know each other, in one
 * process or in two, and being told by callbacks. As in verbs_util.h nothing
 * here asserts; functions return 0 or a negative errno.
 */
#ifndef NATIVE_UTIL_H
#define NATIVE_UTIL_H

#include <sys/types.h>

#include <vrnic.h>
#include <vrnic_group.h>
#include <vrnic_rts.h>
#include <vrnic_type.h>

#include "verbs_util.h"

#define WAIT_NS		((uint64_t)WAIT_SECONDS * 1000000000)
#define MSEC_NS		1000000ULL

#define DONE(...)	(&(struct vrnic_done){ __VA_ARGS__ })
#define CONTEXT(...)	(&(struct vrnic_context_attr){ __VA_ARGS__ })
#define WR(...)		(&(struct vrnic_wr){ __VA_ARGS__ })
#define TYPED(...)	(&(struct vrnic_typed_wr){ __VA_ARGS__ })
#define RMW(...)	(&(struct vrnic_rmw_wr){ __VA_ARGS__ })
#define SEND(...)	(&(struct vrnic_send_wr){ __VA_ARGS__ })
#define OFFER(...)	(&(struct vrnic_rts_wr){ __VA_ARGS__ })
#define ACCEPT(...)	(&(struct vrnic_accept_wr){ __VA_ARGS__ })

/* False on devices of other drivers, which these tests are not for. */
bool native_device(void);

/* @n, or a tenth of it where everything is ten times as slow. */
int scaled(int n);

/* The same numbers in each run. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* From 0 to @n - 1; 0 if @n is. */
uint64_t rng_below(struct rng *rng, uint64_t n);
void rng_fill(struct rng *rng, void *data, size_t len);

/* What the other side has to know of a node: plain data. */
struct node_info {
	struct vrnic_address address;
	uint64_t addr;
	uint32_t rkey;
	uint32_t counter;
};

/**
 * struct node - one end
 * @client: its own, or what was there before node_open()
 * @own_client: node_close() closes it
 * @context: context
 * @counter: of this process
 * @open: counter that peers may name
 * @to: the other end, after node_join()
 * @buf: memory that the peer may use
 * @peer: what the other end said of itself
 */
struct node {
	struct vrnic_client *client;
	bool own_client;
	struct vrnic_context *context;
	struct vrnic_counter *counter;
	struct vrnic_counter *open;
	struct vrnic_endpoint *to;
	struct buf buf;
	struct node_info peer;
};

int node_open(struct node *node, size_t len,
	      const struct vrnic_context_attr *attr);
/* 0 if everything could be destroyed and the guards are intact. */
int node_close(struct node *node);
struct node_info node_info(const struct node *node);
int node_join(struct node *node, const struct node_info *peer);
/* Swap infos over a socket and join; the other end does the same. */
int node_meet(struct node *node, int fd);
/*
 * Messages of @bytes to the other end, which does not look, until its reception FIFO
 * and this end's ring are full, not only the ring: over a wire a thread empties that,
 * which may be slower than the sender for a while. Returns how many, or -1.
 */
int node_fill(struct node *node, size_t bytes, const struct vrnic_done *done);

/**
 * struct nbed - two ends in one process, each with its own client
 */
struct nbed {
	struct node a, b;
};

int nbed_open(struct nbed *bed, size_t len,
	      const struct vrnic_context_attr *attr);
int nbed_close(struct nbed *bed);

/* A put of a's buffer into b's and the same for get, from offset to offset. */
int nbed_put(struct nbed *bed, size_t from, size_t to, size_t len,
	     const struct vrnic_done *done);
int nbed_get(struct nbed *bed, size_t to, size_t from, size_t len,
	     const struct vrnic_done *done);
/* b's buffer has at @to what buf_fill(@seed) put at @from of a's. */
bool nbed_arrived(const struct nbed *bed, uint32_t seed, size_t from,
		  size_t to, size_t len);

/* What a callback was told last, and how often it was called. */
struct told {
	int count;
	struct vrnic_status status;
};

void tell(struct vrnic_context *context, const struct vrnic_status *status,
	  void *told);
#define TELL(told)	.callback = tell, .arg = (told)

/* Advance until *@count is at least @n: 0, -ETIMEDOUT, or advance's error. */
int advance_until(struct vrnic_context *context, const int *count, int n);
/* The same with both ends' contexts in turn. */
int nbed_until(struct nbed *bed, const int *count, int n);

/* The counter falls to zero in time: 0, or what vrnic_counter_wait() said. */
int counter_done(struct vrnic_counter *counter);

/**
 * struct peer - another process, and a socket to it
 */
struct peer {
	pid_t pid;
	int fd;
};

/* Start it before anything is opened; it ends with what @run returns. */
int peer_start(struct peer *peer, int (*run)(int fd, const void *arg),
	       const void *arg);
/* Let it end: its exit status, 0 being good; -EINTR if a signal ended it. */
int peer_end(struct peer *peer);
/* The same with SIGKILL: 0 if that is what it died of. */
int peer_kill(struct peer *peer);

/* One byte to the other process, or from it. */
int say(int fd);
int hear(int fd);

/* Statistics native_* that count what there is: their names and sum. */
long long native_objects(char *text, size_t size);

uint64_t now_ns(void);
uint64_t cpu_ns(void);	/* of this process */
/* The step in which that clock goes: as coarse as a tick on some machines. */
uint64_t cpu_step_ns(void);

#endif /* NATIVE_UTIL_H */
