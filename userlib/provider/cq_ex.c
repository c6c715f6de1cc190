// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The extended way to poll: one completion at a time, read field by field. */

#include <errno.h>
#include <time.h>

#include "cq.h"
#include "vrnic.h"

#define NSEC_PER_SEC	1000000000LL

static struct vrnic_cq *ex_to_vcq(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct vrnic_cq, vcq.cq_ex);
}

static bool take(struct vrnic_cq *cq)
{
	const struct vrnic_cqe *cqe = vrnic_cq_take(cq);

	if (!cqe)
		return false;
	cq->cur = cqe;
	cq->vcq.cq_ex.wr_id = cqe->cookie;
	cq->vcq.cq_ex.status = cqe->status;
	return true;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct vrnic_cq *cq = ex_to_vcq(ibcq);

	vrnic_ring_release(&cq->ring);
	vrnic_cq_unlock(cq, false);
}

/* If there is a completion, @cq->lock stays held until end_poll. If not, no end_poll follows. */
static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct vrnic_cq *cq = ex_to_vcq(ibcq);
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	vrnic_cq_lock(cq, &cq->lock);
	if (take(cq))
		return 0;
	ret = vrnic_ring_failed(&cq->ring) ? EIO : ENOENT;
	vrnic_ring_release(&cq->ring);
	vrnic_cq_unlock(cq, true);
	return ret;
}

/* The lock stays held also if there is no further completion, because end_poll follows. */
static int next_poll(struct ibv_cq_ex *ibcq)
{
	return take(ex_to_vcq(ibcq)) ? 0 : ENOENT;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->imm;
}

/* Of a raw packet; others have immediate data there, or none. */
static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
	const struct vrnic_cqe *cqe = ex_to_vcq(cq)->cur;

	return cqe->flags & VRNIC_CQE_TAG ? cqe->imm : 0;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->sl;
}

/* There are no LIDs, and so no path bits, on Ethernet. */
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return ex_to_vcq(cq)->cur->timestamp;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Completions have stamps of CLOCK_MONOTONIC_RAW; add its present distance to the wall clock. */
static uint64_t read_wallclock_ns(struct ibv_cq_ex *cq)
{
	int64_t distance = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC_RAW);

	return read_completion_ts(cq) + distance;
}

/**
 * vrnic_cq_ex_init() - set the functions for extended polling
 * @cq: the completion queue
 * @wc_flags: fields that the program asked for, a subset of VRNIC_CQ_EX_FIELDS
 */
void vrnic_cq_ex_init(struct vrnic_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_wallclock_ns;
}
