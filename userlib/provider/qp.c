// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: life and state. Posting is in post.c, wr.c and rq.c. */

#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "vrnic.h"

#define QP_COMP_MASK	(IBV_QP_INIT_ATTR_PD |		\
			 IBV_QP_INIT_ATTR_XRCD |	\
			 IBV_QP_INIT_ATTR_CREATE_FLAGS |	\
			 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/*
 * If the queue pair has no receive ring, @resp->rq is all zeroes. An XRC target has no ring, and
 * the kernel sends no driver's part for it.
 */
static int map_rings(struct vrnic_qp *qp,
		     const struct vrnic_create_qp_resp *resp,
		     const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_context *context = qp->vqp.qp.context;
	bool one_thread;
	int ret;

	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		vrnic_lock_init(&qp->sq_lock, false);
		return 0;
	}
	one_thread = vrnic_pd_one_thread(attr->pd);
	if (resp->sq.stride != VRNIC_SLOT_SIZE)
		return EPROTO;
	ret = vrnic_ring_map(&qp->sq, context, &resp->sq);
	if (ret)
		return ret;
	if (resp->rq.entries)
		ret = vrnic_rq_init(&qp->rq, context, &resp->rq,
				    attr->cap.max_recv_sge, one_thread);
	if (ret) {
		vrnic_ring_unmap(&qp->sq, context);
		return ret;
	}
	vrnic_lock_init(&qp->sq_lock, one_thread);
	return 0;
}

static void unmap_rings(struct vrnic_qp *qp)
{
	struct ibv_context *context = qp->vqp.qp.context;

	vrnic_lock_destroy(&qp->sq_lock);
	vrnic_rq_fini(&qp->rq, context);
	if (qp->sq.hdr)
		vrnic_ring_unmap(&qp->sq, context);
}

/*
 * Have requests counted that are under way. If the module does not tell how many requests have
 * ended, only the slots of the rings limit them.
 */
static int count_requests(struct vrnic_qp *qp, const struct ibv_qp_cap *cap)
{
	if (!(to_vctx(qp->vqp.qp.context)->features & VRNIC_FEATURE_SQ_DONE) ||
	    !qp->sq.hdr)
		return 0;
	qp->credit.max = cap->max_send_wr;
	if (qp->rq.ring.hdr)
		qp->rq.credit.max = cap->max_recv_wr;
	return vrnic_credit_open(qp);
}

static int qp_setup(struct vrnic_qp *qp, struct ibv_context *context,
		    struct ibv_qp_init_attr_ex *attr)
{
	struct vrnic_cmd_create_qp_resp resp = {};
	struct vrnic_cmd_create_qp cmd = {};
	int ret;

	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, attr, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	ret = map_rings(qp, &resp.drv_payload, attr);
	if (ret)
		goto destroy;
	ret = count_requests(qp, &attr->cap);
	if (ret)
		goto unmap;
	qp->always = attr->sq_sig_all ? VRNIC_DESC_SIGNALED : 0;
	qp->max_sge = attr->cap.max_send_sge;
	qp->max_inline = attr->cap.max_inline_data;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && qp->sq.hdr)
		vrnic_wr_init(qp);
	return 0;

unmap:
	unmap_rings(qp);
destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
	return ret;
}

/* The program may name creation flags in @attr->comp_mask, but may set none. */
static int check_attr(const struct ibv_qp_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, QP_COMP_MASK))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    attr->send_ops_flags & ~vrnic_wr_supported(attr->qp_type))
		return EOPNOTSUPP;
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? 0 : EINVAL;
	return attr->comp_mask & IBV_QP_INIT_ATTR_PD ? 0 : EINVAL;
}

/*
 * A program need not clear what queue pairs of this type lack. An XRC target keeps the protection
 * domain that the program names, for the program alone: librdmacm takes it from there, for the SRQ.
 */
static void drop_unused(struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_XRC_RECV:
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
			attr->pd = NULL;
		attr->send_cq = NULL;
		attr->cap = (struct ibv_qp_cap){};
		/* fallthrough */
	case IBV_QPT_XRC_SEND:
		attr->recv_cq = NULL;
		attr->srq = NULL;
		break;
	default:
		break;
	}
}

/* Of @attr only the capabilities are changed. */
static struct ibv_qp *create_qp(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex core = *attr;
	struct vrnic_qp *qp;
	int ret;

	/* ibv_cmd_create_qp_ex() refuses creation flags, even if none is set */
	core.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS;
	drop_unused(&core);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ret = qp_setup(qp, context, &core);
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	attr->cap = core.cap;
	if (core.pd)
		vrnic_pd_get(core.pd);
	return &qp->vqp.qp;
}

struct ibv_qp *vrnic_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr)
{
	int ret;

	if (attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return vrnic_create_qp_rss(context, attr);
	ret = check_attr(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	return create_qp(context, attr);
}

struct ibv_qp *vrnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = create_qp(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int vrnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd = {};

	return ibv_cmd_query_qp(qp, attr, mask, init, &cmd, sizeof(cmd));
}

/* No completion may name a queue pair that was reset or destroyed. */
static void forget_completions(struct ibv_qp *qp)
{
	vrnic_cq_forget_qp(qp->send_cq, qp->qp_num);
	if (qp->recv_cq != qp->send_cq)
		vrnic_cq_forget_qp(qp->recv_cq, qp->qp_num);
}

/* After RESET: the kernel has put its indices of both rings back to zero. */
static void start_anew(struct vrnic_qp *qp)
{
	forget_completions(&qp->vqp.qp);
	if (!qp->sq.hdr)
		return;
	vrnic_lock(&qp->sq_lock);
	vrnic_ring_reset(&qp->sq);
	vrnic_credit_reset(&qp->credit);
	vrnic_unlock(&qp->sq_lock);
	if (qp->rq.ring.hdr) {
		vrnic_lock(&qp->rq.lock);
		vrnic_ring_reset(&qp->rq.ring);
		vrnic_credit_reset(&qp->rq.credit);
		vrnic_unlock(&qp->rq.lock);
	}
}

/* Use the extended command, because the older one has no place for a rate limit. */
static int modify_limited(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ibv_modify_qp_ex cmd = {};

	return ibv_cmd_modify_qp_ex(qp, attr, mask, &cmd, sizeof(cmd), &resp,
				    sizeof(resp));
}

int vrnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};
	int ret;

	if (mask & IBV_QP_RATE_LIMIT)
		ret = modify_limited(qp, attr, mask);
	else
		ret = ibv_cmd_modify_qp(qp, attr, mask, &cmd, sizeof(cmd));
	if (!ret && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		start_anew(to_vqp(qp));
	return ret;
}

/* The driver sends bursts of a millisecond at most. A program cannot choose their size. */
int vrnic_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *limit)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.cur_qp_state = IBV_QPS_RTS,
		.rate_limit = limit->rate_limit,
	};
	int mask = IBV_QP_STATE | IBV_QP_RATE_LIMIT;

	if (limit->comp_mask)
		return EOPNOTSUPP;
	if (limit->max_burst_sz || limit->typical_pkt_sz)
		return EINVAL;
	/* the core lets no raw packet queue pair say in which state it is */
	if (qp->qp_type != IBV_QPT_RAW_PACKET)
		mask |= IBV_QP_CUR_STATE;
	return modify_limited(qp, &attr, mask);
}

int vrnic_destroy_qp(struct ibv_qp *ibqp)
{
	struct vrnic_qp *qp = to_vqp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	forget_completions(ibqp);
	vrnic_credit_close(qp);
	unmap_rings(qp);
	if (ibqp->pd)
		vrnic_pd_put(ibqp->pd);
	free(qp);
	return 0;
}
