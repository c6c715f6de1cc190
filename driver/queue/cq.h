/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues. */
#ifndef VRNIC_CQ_H
#define VRNIC_CQ_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "queue/ring_mem.h"

#define VRNIC_MAX_CQE		BIT(20)

/**
 * struct vrnic_cq - a completion queue
 * @ibcq: the core's part
 * @lock: protects @ring, except what a process writes in its header (cons, arm), and what follows
 *	until @poll_idx
 * @ring: completions
 * @told: the last event told of all entries before this one
 * @solicited: the entry behind the last one that was solicited or failed
 * @count: an event waits for so many entries, but no longer than @period; 0: for @period alone
 * @period: an event waits for so many microseconds; 0: for @count alone
 * @failed: the ring overflowed once; no completion is written any more
 * @due: there is something to tell, and the event waits for @count or @period
 * @timestamps: the process asked for timestamps; set at creation
 * @poll_idx: next entry that poll_cq() returns to a kernel consumer
 * @timer: raises the event that is due when @period is over
 * @resize: serialises calls of resize_cq(), which replace @ring; the core does not serialise them
 */
struct vrnic_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* protects what follows, until @poll_idx */
	struct vrnic_ring ring;
	u32 told;
	u32 solicited;
	u16 count;
	u16 period;
	bool failed;
	bool due;
	bool timestamps;
	u32 poll_idx;
	struct hrtimer timer;
	struct mutex resize;	/* serialises calls that replace @ring */
};

static inline struct vrnic_cq *to_vcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct vrnic_cq, ibcq);
}

int vrnic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct ib_udata *udata);
int vrnic_pre_destroy_cq(struct ib_cq *ibcq);
int vrnic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int vrnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int vrnic_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int vrnic_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int vrnic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
int vrnic_cq_post(struct vrnic_cq *cq, const struct vrnic_cqe *cqe,
		  bool solicited);

#endif /* VRNIC_CQ_H */
