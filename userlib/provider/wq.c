// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work queues, tables of them, and the queue pairs that spread frames over such a table. For the
 * module a work queue is a queue pair that only receives.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "vrnic.h"

#define HASH_FIELDS	(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |			\
			 IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 |			\
			 IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |		\
			 IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

/* The kernel has told of tables, but what is hashed is between module and provider. */
void vrnic_tell_rss(struct ibv_rss_caps *caps)
{
	if (!caps->supported_qpts)
		return;
	caps->rx_hash_fields_mask = HASH_FIELDS;
	caps->rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
}

/* ---- work queues ---- */

static int post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrnic_wq *wq = to_vwq(ibwq);

	if (ibwq->state == IBV_WQS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	return vrnic_rq_post(&wq->rq, ibwq->context, ibwq->wq_num, wr, bad);
}

/* @attr has what the kernel has granted. Return: 0 or an errno. */
static int set_up(struct vrnic_wq *wq, const struct vrnic_ring_info *info,
		  const struct ibv_wq_init_attr *attr)
{
	struct ibv_context *context = wq->wq.context;
	int ret;

	ret = vrnic_rq_init(&wq->rq, context, info, attr->max_sge, vrnic_pd_one_thread(attr->pd));
	if (ret)
		return ret;
	wq->rq.credit.max = attr->max_wr;
	ret = vrnic_credit_open_side(&wq->rq.credit, &wq->polled, attr->cq, wq->wq.wq_num,
				     VRNIC_SIDE_RECV);
	if (ret)
		vrnic_rq_fini(&wq->rq, context);
	return ret;
}

/* Return: 0 or an errno. */
static int create(struct vrnic_wq *wq, struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct vrnic_cmd_create_wq_resp resp = {};
	struct vrnic_cmd_create_wq cmd = {};
	int ret;

	ret = ibv_cmd_create_wq(context, attr, &wq->wq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	ret = set_up(wq, &resp.drv_payload.rq, attr);
	if (ret) {
		ibv_cmd_destroy_wq(&wq->wq);
		return ret;
	}
	wq->wq.state = IBV_WQS_RESET;
	wq->wq.post_recv = post_recv;
	return 0;
}

struct ibv_wq *vrnic_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct vrnic_wq *wq;
	int ret;

	if (!check_comp_mask(attr->comp_mask, IBV_WQ_INIT_ATTR_FLAGS) ||
	    (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;
	ret = create(wq, context, attr);
	if (ret) {
		free(wq);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(attr->pd);
	return &wq->wq;
}

/* No completion may name a work queue that was reset or destroyed. */
static void start_anew(struct vrnic_wq *wq)
{
	vrnic_cq_forget_qp(wq->wq.cq, wq->wq.wq_num);
	vrnic_lock(&wq->rq.lock);
	vrnic_ring_reset(&wq->rq.ring);
	vrnic_credit_reset(&wq->rq.credit);
	vrnic_unlock(&wq->rq.lock);
}

int vrnic_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct ibv_modify_wq cmd;
	int ret;

	ret = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (!ret && attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RESET)
		start_anew(to_vwq(ibwq));
	return ret;
}

int vrnic_destroy_wq(struct ibv_wq *ibwq)
{
	struct vrnic_wq *wq = to_vwq(ibwq);
	int ret;

	ret = ibv_cmd_destroy_wq(ibwq);
	if (ret)
		return ret;
	vrnic_cq_forget_qp(ibwq->cq, ibwq->wq_num);
	vrnic_credit_close_side(&wq->rq.credit, &wq->polled, ibwq->cq);
	vrnic_rq_fini(&wq->rq, ibwq->context);
	vrnic_pd_put(ibwq->pd);
	free(wq);
	return 0;
}

/* ---- tables ---- */

struct ibv_rwq_ind_table *vrnic_create_rwq_ind_table(struct ibv_context *context,
						     struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int ret;

	/* before libibverbs puts so many numbers on its stack */
	if (attr->log_ind_tbl_size > VRNIC_RSS_LOG_MAX) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	ret = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp, sizeof(resp));
	if (ret) {
		free(table);
		errno = ret;
		return NULL;
	}
	return table;
}

int vrnic_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int ret = ibv_cmd_destroy_rwq_ind_table(table);

	if (!ret)
		free(table);
	return ret;
}

/* ---- queue pairs ---- */

/* Return: 0 or an errno. */
static int check_rss(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;
	const uint32_t needed = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
				IBV_QP_INIT_ATTR_RX_HASH;

	if (!check_comp_mask(attr->comp_mask, needed | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return EOPNOTSUPP;
	if ((attr->comp_mask & needed) != needed)
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RAW_PACKET || attr->cap.max_send_wr ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
		return EOPNOTSUPP;
	if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
	    conf->rx_hash_fields_mask & ~(uint64_t)HASH_FIELDS)
		return EOPNOTSUPP;
	return conf->rx_hash_key_len == VRNIC_RX_HASH_KEY ? 0 : EINVAL;
}

/* Return: 0 or an errno. */
static int create_rss(struct vrnic_qp *qp, struct ibv_context *context,
		      struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;
	struct vrnic_cmd_create_qp_rss_resp resp = {};
	struct vrnic_cmd_create_qp_rss cmd = {
		.rx_hash_fields = conf->rx_hash_fields_mask,
		.rx_hash_function = conf->rx_hash_function,
		.rx_hash_key_len = conf->rx_hash_key_len,
	};

	memcpy(cmd.rx_hash_key, conf->rx_hash_key, sizeof(cmd.rx_hash_key));
	return ibv_cmd_create_qp_ex2(context, &qp->vqp, attr, &cmd.ibv_cmd, sizeof(cmd),
				     &resp.ibv_resp, sizeof(resp));
}

/* A queue pair with a table of work queues: it has no rings, and stays in RESET. */
struct ibv_qp *vrnic_create_qp_rss(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex core = *attr;
	struct vrnic_qp *qp;
	int ret = check_rss(attr);

	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	core.send_cq = NULL;
	ret = create_rss(qp, context, &core);
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	vrnic_lock_init(&qp->sq_lock, false);
	attr->cap = core.cap;
	vrnic_pd_get(attr->pd);
	return &qp->vqp.qp;
}
