/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive side scaling: a queue pair that spreads its frames over work queues. */
#ifndef VRNIC_RSS_H
#define VRNIC_RSS_H

#include <rdma/ib_verbs.h>
#include <rdma/vrnic-abi.h>

#include "queue/qp.h"

struct vrnic_frame;

/**
 * struct vrnic_wq - a work queue: a raw packet queue pair that only receives
 * @ibwq: the core's part
 * @shell: takes the place of the core's part in the queue pair
 */
struct vrnic_wq {
	struct ib_wq ibwq;
	struct vrnic_ibqp shell;
};

static inline struct vrnic_wq *to_vwq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct vrnic_wq, ibwq);
}

/**
 * struct vrnic_rwq_table - a table of work queues
 * @ibtbl: the core's part
 * @mask: number of entries, less 1
 * @qp: the queue pairs of the work queues, which the core keeps as long as the table
 */
struct vrnic_rwq_table {
	struct ib_rwq_ind_table ibtbl;
	u32 mask;
	struct vrnic_qp **qp;
};

static inline struct vrnic_rwq_table *to_vrwq_table(struct ib_rwq_ind_table *ibtbl)
{
	return container_of(ibtbl, struct vrnic_rwq_table, ibtbl);
}

/**
 * struct vrnic_rss - how an RSS queue pair spreads frames
 * @table: work queues; the core keeps it as long as the queue pair
 * @fields: VRNIC_RX_HASH_*: the fields that are hashed
 * @key: key of the hash
 */
struct vrnic_rss {
	const struct vrnic_rwq_table *table;
	u32 fields;
	u8 key[VRNIC_RX_HASH_KEY];
};

int vrnic_create_rwq_ind_table(struct ib_rwq_ind_table *ibtbl,
			       struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata);
int vrnic_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtbl);
struct vrnic_rss *vrnic_rss_new(struct ib_rwq_ind_table *ibtbl, struct ib_udata *udata);
struct vrnic_qp *vrnic_rss_pick(const struct vrnic_rss *rss, const struct vrnic_frame *f);

#endif /* VRNIC_RSS_H */
