// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues. Polling needs no system call, and arming none while nothing is new. */

#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "cq.h"
#include "vrnic.h"

#define CQ_COMP_MASK	(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define CQ_FLAGS	IBV_CREATE_CQ_ATTR_SINGLE_THREADED
#define CQ_TIMESTAMPS	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

void vrnic_cq_init(struct vrnic_cq *cq, bool one_thread)
{
	vrnic_lock_init(&cq->lock, one_thread);
	vrnic_lock_init(&cq->arm_lock, one_thread);
	pthread_mutex_init(&cq->sides_lock, NULL);
	vrnic_gate_init(&cq->gate, &cq->lock, &cq->arm_lock);
}

void vrnic_cq_fini(struct vrnic_cq *cq)
{
	vrnic_gate_fini(&cq->gate);
	pthread_mutex_destroy(&cq->sides_lock);
	vrnic_sides_free(cq);
	vrnic_lock_destroy(&cq->arm_lock);
	vrnic_lock_destroy(&cq->lock);
}

static bool cq_one_thread(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return true;
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	       vrnic_pd_one_thread(attr->parent_domain);
}

static int cq_setup(struct vrnic_cq *cq, struct ibv_context *context,
		    const struct ibv_cq_init_attr_ex *attr)
{
	struct vrnic_cmd_create_cq_resp resp = {};
	struct vrnic_cmd_create_cq cmd = {};
	int ret;

	if (attr->wc_flags & CQ_TIMESTAMPS)
		cmd.flags = VRNIC_CQ_TIMESTAMP;
	ret = ibv_cmd_create_cq_ex(context, attr, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp),
				   0);
	if (ret)
		return ret;
	ret = vrnic_ring_map(&cq->ring, context, &resp.ring);
	if (ret) {
		ibv_cmd_destroy_cq(&cq->vcq.cq);
		return ret;
	}
	vrnic_cq_init(cq, cq_one_thread(attr));
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = attr->parent_domain;
		vrnic_pd_get(cq->parent);
	}
	return 0;
}

static struct vrnic_cq *create_cq(struct ibv_context *context,
				  const struct ibv_cq_init_attr_ex *attr)
{
	struct vrnic_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	ret = cq_setup(cq, context, attr);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	return cq;
}

struct ibv_cq *vrnic_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct vrnic_cq *cq = create_cq(context, &attr);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *vrnic_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct vrnic_cq *cq;

	if (!check_comp_mask(attr->comp_mask, CQ_COMP_MASK) ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~CQ_FLAGS) ||
	    attr->wc_flags & ~(uint64_t)VRNIC_CQ_EX_FIELDS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = create_cq(context, attr);
	if (!cq)
		return NULL;
	vrnic_cq_ex_init(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/* Replace the ring. If the new one cannot be mapped, polls fail from then on. */
static int swap_ring(struct vrnic_cq *cq, int cqe)
{
	struct vrnic_cmd_resize_cq_resp resp = {};
	struct vrnic_cmd_resize_cq cmd = {};
	struct vrnic_ring ring;
	int ret;

	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	ret = vrnic_ring_map(&ring, cq->vcq.cq.context, &resp.ring);
	if (ret) {
		vrnic_ring_fail(&cq->ring);
		return ret;
	}
	vrnic_ring_unmap(&cq->ring, cq->vcq.cq.context);
	cq->ring = ring;
	return 0;
}

int vrnic_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	int ret;

	vrnic_gate_close(&cq->gate);
	ret = swap_ring(cq, cqe);
	vrnic_gate_open(&cq->gate);
	return ret;
}

int vrnic_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int vrnic_destroy_cq(struct ibv_cq *ibcq)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;
	vrnic_cq_fini(cq);
	vrnic_ring_unmap(&cq->ring, ibcq->context);
	if (cq->parent)
		vrnic_pd_put(cq->parent);
	free(cq);
	return 0;
}

/*
 * Ask for an event, without a system call if nothing is new. An entry that is filled meanwhile has
 * raised the event, or the request is taken back, and the kernel has to be asked.
 * The caller holds @cq->arm_lock. Return: true if nothing is left to do.
 */
static bool arm_ring(struct vrnic_cq *cq, int *solicited_only)
{
	uint32_t arm;

	if (vrnic_ring_untold(&cq->ring))
		return false;
	vrnic_cq_arm(cq, *solicited_only);
	if (!vrnic_ring_untold(&cq->ring))
		return true;
	arm = vrnic_ring_disarm(&cq->ring);
	*solicited_only = arm == VRNIC_ARM_SOLICITED;
	return arm == VRNIC_ARM_NONE;
}

/*
 * The kernel raises the event at once if there is a completion that no event told of. A module that
 * does not know this command has nothing but the arm word. If the device is gone, asking is no
 * error: the program first polls the completions that there are, and then learns of it.
 */
static int arm_by_kernel(struct vrnic_cq *cq, int solicited_only)
{
	int ret;

	ret = ibv_cmd_req_notify_cq(&cq->vcq.cq, solicited_only);
	if (ret && ret != EOPNOTSUPP && ret != EIO)
		return ret;
	vrnic_cq_lock(cq, &cq->arm_lock);
	if (ret)
		vrnic_cq_arm(cq, solicited_only);
	else
		vrnic_cq_note_armed(cq);
	vrnic_unlock(&cq->arm_lock);
	return 0;
}

/*
 * A program should poll once more before it sleeps, but UCX does not: on other devices, asking
 * raises the event for a completion that came after the last poll. So it does here.
 */
int vrnic_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	int ret = 0;
	bool done;

	vrnic_cq_lock(cq, &cq->arm_lock);
	done = arm_ring(cq, &solicited_only);
	vrnic_unlock(&cq->arm_lock);
	if (!done)
		ret = arm_by_kernel(cq, solicited_only);
	vrnic_doorbell_flush(to_vctx(ibcq->context));
	return ret;
}

static void fill_wc(struct ibv_wc *wc, const struct vrnic_cqe *cqe)
{
	*wc = (struct ibv_wc){
		.wr_id = cqe->cookie,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.invalidated_rkey = cqe->imm,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qp,
		.wc_flags = cqe->wc_flags,
		.pkey_index = cqe->pkey_index,
		.slid = cqe->slid,
		.sl = cqe->sl,
	};
}

/* Return: number of completions, or -EIO if there is none and the ring is dead (an overflow). */
int vrnic_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	const struct vrnic_cqe *cqe;
	int n = 0;

	vrnic_cq_lock(cq, &cq->lock);
	while (n < num && (cqe = vrnic_cq_take(cq)))
		fill_wc(&wc[n++], cqe);
	vrnic_ring_release(&cq->ring);
	if (!n && num > 0 && vrnic_ring_failed(&cq->ring))
		n = -EIO;
	vrnic_cq_unlock(cq, !n && num > 0);
	return n;
}

/* Count later requests of the side from 0. Caller holds @cq->lock. */
static void count_anew(struct vrnic_cq *cq, uint32_t qpn, enum vrnic_side side)
{
	struct vrnic_polled *polled =
		vrnic_cq_find(cq, vrnic_polled_key(qpn, side));

	if (polled)
		__atomic_store_n(&polled->done, 0, __ATOMIC_RELAXED);
}

/*
 * Drop the completions of @qpn: move those of other queue pairs to the end of the filled entries,
 * and give the entries before them back. Phases belong to places, and stay. Caller holds @cq->lock.
 */
static void forget(struct vrnic_cq *cq, uint32_t qpn)
{
	struct vrnic_cqe *from, *to;
	uint32_t i = cq->ring.next, kept;
	uint32_t phase;

	while (i - cq->ring.next < cq->ring.entries && vrnic_ring_peek_cqe(&cq->ring, i))
		i++;
	for (kept = i; i != cq->ring.next; ) {
		from = vrnic_ring_slot(&cq->ring, --i);
		if (from->qpn == qpn)
			continue;
		to = vrnic_ring_slot(&cq->ring, --kept);
		phase = to->phase;
		*to = *from;
		to->phase = phase;
	}
	cq->ring.next = kept;
	vrnic_ring_release(&cq->ring);
}

/**
 * vrnic_cq_forget_qp() - drop the completions of a queue pair that has ended
 * @ibcq: the completion queue; may be NULL
 * @qpn: the queue pair, which the kernel has reset or destroyed
 *
 * The kernel gets their entries back, so as many requests may be posted anew.
 */
void vrnic_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qpn)
{
	struct vrnic_cq *cq;

	if (!ibcq)
		return;
	cq = to_vcq(ibcq);
	vrnic_cq_lock(cq, &cq->lock);
	forget(cq, qpn);
	count_anew(cq, qpn, VRNIC_SIDE_SEND);
	count_anew(cq, qpn, VRNIC_SIDE_RECV);
	vrnic_unlock(&cq->lock);
}
