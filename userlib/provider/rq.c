// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive rings, of a queue pair or shared. */

#include <errno.h>

#include "vrnic.h"

/* Return: 0 or an errno. */
int vrnic_rq_init(struct vrnic_rq *rq, struct ibv_context *context,
		  const struct vrnic_ring_info *info, uint32_t max_sge,
		  bool one_thread)
{
	size_t need = sizeof(struct vrnic_recv_desc) +
		      (size_t)max_sge * sizeof(struct vrnic_sge);
	int ret;

	if (info->stride < need)
		return EPROTO;
	ret = vrnic_ring_map(&rq->ring, context, info);
	if (ret)
		return ret;
	rq->max_sge = max_sge;
	vrnic_lock_init(&rq->lock, one_thread);
	return 0;
}

/* @rq may also be one without a ring. */
void vrnic_rq_fini(struct vrnic_rq *rq, struct ibv_context *context)
{
	if (!rq->ring.hdr)
		return;
	vrnic_lock_destroy(&rq->lock);
	vrnic_ring_unmap(&rq->ring, context);
}

static int put_recv(struct vrnic_rq *rq, const struct ibv_recv_wr *wr)
{
	struct vrnic_recv_desc *desc;

	if ((uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (!vrnic_credit_room(&rq->credit) ||
	    !vrnic_ring_room(&rq->ring, rq->ring.next + 1))
		return ENOMEM;
	desc = vrnic_ring_slot(&rq->ring, rq->ring.next);
	desc->cookie = wr->wr_id;
	desc->num_sge = wr->num_sge;
	desc->reserved = 0;
	for (int i = 0; i < wr->num_sge; i++)
		desc->sge[i] = (struct vrnic_sge){
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	rq->ring.next++;
	rq->credit.posted++;
	return 0;
}

/**
 * vrnic_rq_put() - post a list of receive requests
 * @rq: the ring, whose lock the caller holds
 * @wr: the list
 * @bad: the first request that was not posted, on failure
 *
 * Return: 0 or an errno: EIO if the device is gone, so no message takes the requests.
 */
int vrnic_rq_put(struct vrnic_rq *rq, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	int ret = 0;

	if (vrnic_ring_failed(&rq->ring)) {
		*bad = wr;
		return EIO;
	}
	for (; wr; wr = wr->next) {
		ret = put_recv(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	vrnic_ring_publish(&rq->ring);
	return ret;
}

/**
 * vrnic_rq_post() - post a list of receive requests, and ring if the kernel wants it
 * @rq: the ring
 * @context: of the queue pair that has the ring
 * @qpn: number of the queue pair
 * @wr: the list
 * @bad: the first request that was not posted, on failure
 *
 * The kernel wants a doorbell only while the queue pair is in error, to flush the receives.
 *
 * Return: as vrnic_rq_put().
 */
int vrnic_rq_post(struct vrnic_rq *rq, struct ibv_context *context, uint32_t qpn,
		  struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err, ret;

	vrnic_lock(&rq->lock);
	ret = vrnic_rq_put(rq, wr, bad);
	vrnic_unlock(&rq->lock);
	if (!(vrnic_ring_flags(&rq->ring) & VRNIC_RING_DOORBELL))
		return ret;
	err = vrnic_doorbell_ring(context, qpn);
	if (err && !ret)
		*bad = wr;
	return ret ? ret : err;
}

int vrnic_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad)
{
	struct vrnic_qp *qp = to_vqp(ibqp);

	if (!qp->rq.ring.hdr || ibqp->state == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	return vrnic_rq_post(&qp->rq, ibqp->context, ibqp->qp_num, wr, bad);
}
