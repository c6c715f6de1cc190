/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The verbs for queue pairs, address handles and protection domains. */
#ifndef VRNIC_VERBS_H
#define VRNIC_VERBS_H

#include <rdma/ib_verbs.h>

struct vrnic_av;
struct vrnic_crew;
struct vrnic_link;
struct vrnic_link_ops;
struct vrnic_qp;
struct vrnic_runnable_ops;
struct vrnic_user;

#define VRNIC_MAX_RD_ATOM	128		/* READs and atomics under way, at each end */

/* verbs/pd.c */
struct vrnic_pd {
	struct ib_pd ibpd;
};

struct vrnic_xrcd {
	struct ib_xrcd ibxrcd;
};

int vrnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrnic_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int vrnic_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* verbs/ah.c */
struct vrnic_ah {
	struct ib_ah ibah;
	struct vrnic_av *av;
	bool user;	/* a process has it, not a kernel consumer: for vrnic_object_put() */
};

int vrnic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int vrnic_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrnic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrnic_destroy_ah(struct ib_ah *ibah, u32 flags);

/* verbs/qp.c */
int vrnic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata);
int vrnic_create_link_qp(struct ib_qp *ibqp, struct vrnic_link *link,
			 const struct vrnic_link_ops *ops, struct vrnic_crew *crew,
			 struct vrnic_user *user, gfp_t gfp);
void vrnic_destroy_link_qp(struct vrnic_qp *qp);
int vrnic_link_qps_init(void);
void vrnic_link_qps_exit(void);
int vrnic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int vrnic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);

/* verbs/qp_modify.c */
int vrnic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int vrnic_modify_link_qp(struct vrnic_qp *qp, struct ib_qp_attr *attr, int mask);

/* verbs/wq.c */
struct ib_wq *vrnic_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
			      struct ib_udata *udata);
int vrnic_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata);
int vrnic_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);

/* verbs/qp_counter.c */
int vrnic_qp_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp);
int vrnic_qp_counter_unbind(struct ib_qp *ibqp);
void vrnic_qp_counter_leave(struct vrnic_qp *qp);
int vrnic_qp_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *vrnic_qp_counter_alloc_stats(struct rdma_counter *counter);
int vrnic_qp_counter_update_stats(struct rdma_counter *counter);
int vrnic_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
		       int index);

/* verbs/post.c: kernel consumers */
int vrnic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int vrnic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad);

/* verbs/sq.c: how the engine runs a queue pair */
extern const struct vrnic_runnable_ops vrnic_sq_ops;
extern const struct vrnic_runnable_ops vrnic_link_sq_ops;

#endif /* VRNIC_VERBS_H */
