/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work queues, tables of them, and raw packet queue pairs that spread frames over such a table. */
#ifndef SELFTEST_RSS_BED_H
#define SELFTEST_RSS_BED_H

#include "raw_bed.h"

#define QUEUES	4

static uint8_t hash_key[40];

static inline void make_hash_key(void)
{
	for (unsigned int i = 0; i < sizeof(hash_key); i++)
		hash_key[i] = i * 73 + 41;
}

/* A work queue with receives of its own, and who completes them. */
struct queue {
	struct ibv_cq *cq;
	struct ibv_wq *wq;
	struct buf in;
	struct ibv_wc wc;
};

static inline int queue_open(struct queue *q, struct ibv_pd *pd)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = RECVS, .max_sge = 1, .pd = pd,
	};

	q->cq = ibv_create_cq(pd->context, 4 * RECVS, NULL, NULL, 0);
	attr.cq = q->cq;
	q->wq = q->cq ? ibv_create_wq(pd->context, &attr) : NULL;
	if (!q->wq)
		return -errno;
	return buf_open(&q->in, pd, RECVS * RECV_BYTES, 0, IBV_ACCESS_LOCAL_WRITE);
}

static inline int queue_close(struct queue *q)
{
	int ret = q->wq ? ibv_destroy_wq(q->wq) : 0;

	ret = ret ?: q->cq ? ibv_destroy_cq(q->cq) : 0;
	if (q->in.map && !buf_guards_intact(&q->in))
		ret = -EFAULT;
	buf_close(&q->in);
	return ret;
}

static inline int queue_move(struct queue *q, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(q->wq, &attr);
}

static inline int queue_post(struct queue *q, unsigned int slot)
{
	struct ibv_sge sge = sge_of(&q->in, slot * RECV_BYTES, RECV_BYTES);
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_wq_recv(q->wq, &wr, &bad);
}

/* RDY, with receives in every slot. */
static inline int queue_start(struct queue *q)
{
	int ret = queue_move(q, IBV_WQS_RDY);

	for (unsigned int i = 0; !ret && i < RECVS; i++)
		ret = queue_post(q, i);
	return ret;
}

/* Wait for a frame: 0 if it is @f, byte for byte; the receive is posted again. */
static inline int queue_expect(struct queue *q, const struct frame *f)
{
	int ret = poll_one(q->cq, &q->wc);

	if (ret || q->wc.status)
		return ret ?: (int)q->wc.status;
	if (q->wc.opcode != IBV_WC_RECV || q->wc.qp_num != q->wq->wq_num ||
	    q->wc.byte_len != f->len)
		return -EMSGSIZE;
	if (memcmp(q->in.addr + q->wc.wr_id * RECV_BYTES, f->at, f->len))
		return -EBADMSG;
	return queue_post(q, q->wc.wr_id);
}

/* Return: how many completions the queue has. */
static inline int queue_left(struct queue *q)
{
	return ibv_poll_cq(q->cq, 1, &q->wc);
}

static inline struct ibv_rwq_ind_table *table_of(struct queue *queue, struct ibv_context *ctx,
						 unsigned int log)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log };
	struct ibv_wq *list[1 << 9];

	for (unsigned int i = 0; i < 1U << log; i++)
		list[i] = queue[i % QUEUES].wq;
	attr.ind_tbl = list;
	return ibv_create_rwq_ind_table(ctx, &attr);
}

static inline struct ibv_qp_init_attr_ex rss_attr(struct ibv_pd *pd,
						  struct ibv_rwq_ind_table *table,
						  uint64_t fields)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET, .pd = pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(hash_key), .rx_hash_key = hash_key,
			.rx_hash_fields_mask = fields,
		},
	};
}

/* A queue pair that spreads all frames that come by @fields, and its rule. */
struct spread {
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

static inline int spread_open(struct spread *s, struct raw_bed *bed,
			      struct ibv_rwq_ind_table *table, uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = rss_attr(bed->pd, table, fields);
	struct rule all = normal(0);

	s->qp = ibv_create_qp_ex(bed->ctx, &attr);
	if (!s->qp)
		return -errno;
	s->flow = ibv_create_flow(s->qp, &all.attr);
	return s->flow ? 0 : -errno;
}

static inline int spread_close(struct spread *s)
{
	return ibv_destroy_flow(s->flow) ?: ibv_destroy_qp(s->qp);
}

#endif /* SELFTEST_RSS_BED_H */
