// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */

#include <errno.h>
#include <stdlib.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "abi.h"
#include "vrnic.h"

static int srq_setup(struct vrnic_srq *srq, struct ibv_pd *pd,
		     const struct vrnic_create_srq_resp *resp,
		     const struct ibv_srq_init_attr *attr)
{
	int ret;

	ret = vrnic_rq_init(&srq->rq, pd->context, &resp->rq,
			    attr->attr.max_sge, vrnic_pd_one_thread(pd));
	if (ret)
		return ret;
	srq->srqn = resp->srqn;
	vrnic_gate_init(&srq->gate, &srq->rq.lock, NULL);
	return 0;
}

struct ibv_srq *vrnic_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr)
{
	struct vrnic_cmd_create_srq_resp resp = {};
	struct vrnic_cmd_create_srq cmd = {};
	struct vrnic_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto free_srq;
	ret = srq_setup(srq, pd, &resp.drv_payload, attr);
	if (ret)
		goto destroy_srq;
	vrnic_pd_get(pd);
	return &srq->vsrq.srq;

destroy_srq:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
free_srq:
	free(srq);
	errno = ret;
	return NULL;
}

/* Make @info the ring. If it cannot be mapped, posts fail from then on. */
static int swap_ring(struct vrnic_rq *rq, struct ibv_context *context,
		     const struct vrnic_ring_info *info)
{
	struct vrnic_ring ring;
	int ret;

	ret = info->stride == rq->ring.stride ? vrnic_ring_map(&ring, context, info) : EPROTO;
	if (ret) {
		vrnic_ring_fail(&rq->ring);
		return ret;
	}
	ring.next = rq->ring.next;	/* entries have kept their indices */
	ring.cons = vrnic_ring_cons(&ring);
	vrnic_ring_unmap(&rq->ring, context);
	rq->ring = ring;
	return 0;
}

/* A module that cannot resize does not know the method. Return: 0 or an errno. */
static int resize_in_kernel(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask,
			    struct vrnic_ring_info *info)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_SRQ, VRNIC_METHOD_SRQ_RESIZE, 3);
	struct vrnic_resize_srq_req req = { .max_wr = attr->max_wr };
	int ret;

	if (mask & IBV_SRQ_LIMIT) {
		req.flags = VRNIC_RESIZE_SRQ_LIMIT;
		req.limit = attr->srq_limit;
	}
	fill_attr_in_obj(cmd, VRNIC_ATTR_SRQ_RESIZE_HANDLE, srq->handle);
	fill_attr_in_ptr(cmd, VRNIC_ATTR_SRQ_RESIZE_REQ, &req);
	fill_attr_out_ptr(cmd, VRNIC_ATTR_SRQ_RESIZE_RESP, info);
	ret = execute_ioctl(srq->context, cmd);
	return ret == EPROTONOSUPPORT ? EOPNOTSUPP : ret;
}

static int resize(struct vrnic_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct vrnic_ring_info info = {};
	int ret;

	vrnic_gate_close(&srq->gate);
	ret = resize_in_kernel(&srq->vsrq.srq, attr, mask, &info);
	if (!ret)
		ret = swap_ring(&srq->rq, srq->vsrq.srq.context, &info);
	vrnic_gate_open(&srq->gate);
	return ret;
}

static int xsrq_create(struct vrnic_srq *srq, struct ibv_context *context,
		       struct ibv_srq_init_attr_ex *attr)
{
	const struct ibv_srq_init_attr basic = { .attr = attr->attr };
	struct vrnic_cmd_create_srq_ex_resp resp = {};
	struct vrnic_cmd_create_srq_ex cmd = {};
	int ret;

	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	ret = srq_setup(srq, attr->pd, &resp.drv_payload, &basic);
	if (ret)
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
	return ret;
}

static struct ibv_srq *create_xsrq(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct vrnic_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	ret = xsrq_create(srq, context, attr);
	if (ret) {
		free(srq);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(attr->pd);
	return &srq->vsrq.srq;
}

#define XSRQ_COMP_MASK	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | \
			 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)

struct ibv_srq *vrnic_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr)
{
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ?
				 attr->srq_type : IBV_SRQT_BASIC;
	struct ibv_srq *srq;

	if (!check_comp_mask(attr->comp_mask, XSRQ_COMP_MASK) ||
	    (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	/* the older structure is how the extended one begins */
	if (type == IBV_SRQT_BASIC)
		return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
	srq = create_xsrq(context, attr);
	if (!srq)
		return NULL;
	/* libibverbs sets these only in ibv_create_srq() */
	srq->pd = attr->pd;
	srq->srq_context = attr->srq_context;
	return srq;
}

int vrnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EOPNOTSUPP;
	if (mask & IBV_SRQ_MAX_WR)
		return resize(to_vsrq(srq), attr, mask);
	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

int vrnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int vrnic_destroy_srq(struct ibv_srq *ibsrq)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;
	vrnic_rq_fini(&srq->rq, ibsrq->context);
	vrnic_gate_fini(&srq->gate);
	vrnic_pd_put(ibsrq->pd);
	free(srq);
	return 0;
}

int vrnic_get_srq_num(struct ibv_srq *srq, uint32_t *srqn)
{
	*srqn = to_vsrq(srq)->srqn;
	return 0;
}

int vrnic_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad)
{
	struct vrnic_srq *srq = to_vsrq(ibsrq);
	int ret;

	vrnic_gate_lock(&srq->gate, &srq->rq.lock);
	ret = vrnic_rq_put(&srq->rq, wr, bad);
	vrnic_unlock(&srq->rq.lock);
	return ret;
}
