// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */

#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "vrnic.h"

static int srq_setup(struct vrnic_srq *srq, struct ibv_pd *pd,
		     const struct vrnic_create_srq_resp *resp,
		     const struct ibv_srq_init_attr *attr)
{
	srq->srqn = resp->srqn;
	return vrnic_rq_init(&srq->rq, pd->context, &resp->rq,
			     attr->attr.max_sge, vrnic_pd_one_thread(pd));
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

int vrnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

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
	vrnic_pd_put(ibsrq->pd);
	free(srq);
	return 0;
}

int vrnic_get_srq_num(struct ibv_srq *srq, uint32_t *srqn)
{
	*srqn = to_vsrq(srq)->srqn;
	return 0;
}

int vrnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad)
{
	return vrnic_rq_post(&to_vsrq(srq)->rq, wr, bad);
}
