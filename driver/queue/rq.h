/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive rings, of a queue pair or shared. */
#ifndef VRNIC_RQ_H
#define VRNIC_RQ_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/vrnic-abi.h>

#include "queue/ring_mem.h"

struct ib_recv_wr;

/**
 * struct vrnic_rq - the receive ring of a queue pair, or that of an SRQ
 * @lock: protects what follows
 * @ring: entries of struct vrnic_recv_desc
 * @max_sge: most segments of an entry
 * @max_wr: number of entries; a power of two
 * @limit: SRQ: raise an event when fewer than this are left; 0: no event
 */
struct vrnic_rq {
	spinlock_t lock;	/* protects all below */
	struct vrnic_ring ring;
	u32 max_sge;
	u32 max_wr;
	u32 limit;
};

/**
 * struct vrnic_recv - a receive request that was taken off its ring
 * @active: there is a request, and it is not complete yet
 * @cookie: wr_id
 * @num_sge: number of segments in @sge
 * @srqn: SRQ: its number
 * @serial: SRQ: that of struct vrnic_srq
 * @sge: the segments that the message goes to: in struct vrnic_scratch
 */
struct vrnic_recv {
	bool active;
	u64 cookie;
	u32 num_sge;
	u32 srqn;
	u64 serial;
	struct vrnic_sge *sge;
};

int vrnic_rq_ring(struct vrnic_ring *ring, u32 max_wr, u32 max_sge, gfp_t gfp);
int vrnic_rq_init(struct vrnic_rq *rq, u32 max_wr, u32 max_sge, gfp_t gfp);
int vrnic_rq_post(struct vrnic_rq *rq, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
int vrnic_rq_take(struct vrnic_rq *rq, struct vrnic_recv *recv);

#endif /* VRNIC_RQ_H */
