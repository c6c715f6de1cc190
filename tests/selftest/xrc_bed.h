/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* XRC domains, their SRQs, initiators, and targets, which are where side b is, as their domain. */
#ifndef SELFTEST_XRC_BED_H
#define SELFTEST_XRC_BED_H

#include "verbs_util.h"

#define MAX_WR		64

/**
 * struct box - an SRQ of the domain, with its completion queue and protection domain
 * @side: what receives are posted to and completions taken from
 */
struct box {
	struct side side;
	uint32_t srqn;
};

static inline struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static inline struct ibv_srq *open_xsrq(struct ibv_context *ctx, struct ibv_pd *pd,
					struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = MAX_WR, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(ctx, &attr);
}

static inline int box_open(struct box *box, struct dev *dev, struct ibv_xrcd *xrcd)
{
	box->side.dev = dev;
	box->side.pd = dev->pd;
	box->side.rcq = ibv_create_cq(dev->ctx, 256, NULL, NULL, 0);
	if (!box->side.rcq)
		return -errno;
	box->side.srq = open_xsrq(dev->ctx, dev->pd, xrcd, box->side.rcq);
	if (!box->side.srq)
		return -errno;
	return -ibv_get_srq_num(box->side.srq, &box->srqn);
}

static inline int box_close(struct box *box)
{
	return side_close(&box->side);
}

static inline struct ibv_qp *open_target(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(ctx, &attr);
}

static inline int open_initiator(struct side *ini, struct bed *bed, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = bed->a->scq,
		.cap = { .max_send_wr = MAX_WR, .max_send_sge = 3, .max_inline_data = 236 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = bed->a->pd,
	};

	if (send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = send_ops;
	}
	*ini = (struct side){ .dev = bed->a->dev, .peer = bed->b->dev, .pd = bed->a->pd,
			      .scq = bed->a->scq };
	ini->qp = ibv_create_qp_ex(bed->a->dev->ctx, &attr);
	if (!ini->qp)
		return -errno;
	ini->qpx = send_ops ? ibv_qp_to_qp_ex(ini->qp) : NULL;
	return 0;
}

#endif /* SELFTEST_XRC_BED_H */
