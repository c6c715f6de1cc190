/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues. */
#ifndef VRNIC_SRQ_H
#define VRNIC_SRQ_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "queue/rq.h"

struct vrnic_xsrq;

/**
 * struct vrnic_srq - a shared receive queue
 * @ibsrq: the core's part
 * @rq: receive ring
 * @srqn: number; peers name an XRC SRQ by it
 * @resize: serialises calls that replace the ring of @rq; the core does not serialise them
 * @serial: XRC: number that no other SRQ ever had; else 0
 * @xsrq: XRC: by which targets find this SRQ; else NULL
 */
struct vrnic_srq {
	struct ib_srq ibsrq;
	struct vrnic_rq rq;
	u32 srqn;
	struct mutex resize;	/* serialises calls that replace rq.ring */
	u64 serial;
	struct vrnic_xsrq *xsrq;
};

static inline struct vrnic_srq *to_vsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct vrnic_srq, ibsrq);
}

extern const struct uapi_definition vrnic_srq_defs[];
int vrnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata);
int vrnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata);
int vrnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int vrnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int vrnic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);
int vrnic_srq_take(struct vrnic_srq *srq, struct vrnic_recv *recv);

#endif /* VRNIC_SRQ_H */
