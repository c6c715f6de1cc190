// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * modify_qp(): the states of a queue pair (IBTA 10.3.1) and its attributes. Runners also change the
 * state, after errors: queue/qp_error.c. Both write the state under state_lock.
 */

#include "base/gid.h"
#include "base/port.h"
#include "engine/engine.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/ring_mem.h"
#include "queue/target.h"
#include "roce/socket.h"
#include "verbs/flow.h"
#include "verbs/verbs.h"
#include "vrnic.h"

#define KBPS	125	/* bytes a second in one unit of a rate limit (kbit/s) */

static int check_path(struct vrnic_qp *qp, const struct rdma_ah_attr *ah)
{
	if (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH) || !ah->grh.sgid_attr)
		return -EINVAL;
	return 0;
}

/* Is the peer to be reached over the wire, because no device of this namespace has its GID? */
static bool qp_needs_wire(struct vrnic_qp *qp, const struct rdma_ah_attr *ah)
{
	return vrnic_force_roce() ||
	       !vrnic_gid_is_local(qp->dev, &ah->grh.dgid);
}

/*
 * The queue pair goes to RTR, or gets another path later. On the way to RTR, choose the flow to the
 * peer (verbs/flow.h), which does not change afterwards. @qp->attr still has the old values.
 */
static int qp_connect(struct vrnic_qp *qp, const struct ib_qp_attr *attr,
		      enum ib_qp_state next)
{
	int err;

	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC)
		return 0;
	if (next != IB_QPS_RTR)
		return qp->roce ? vrnic_roce_reroute(qp, &attr->ah_attr) : 0;
	if (!qp_needs_wire(qp, &attr->ah_attr))
		return 0;
	err = vrnic_wire_open(qp->dev);
	return err ?: vrnic_roce_connect(qp, attr);
}

/* Once it is connected, a responder remembers no more READs and atomic operations than then. */
static u32 most_dest_rd(const struct vrnic_qp *qp)
{
	return qp->roce ? vrnic_roce_remembers(qp) : VRNIC_MAX_RD_ATOM;
}

static int check_values(struct vrnic_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	if (mask & IB_QP_PATH_MIG_STATE &&
	    attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC &&
	    attr->max_rd_atomic > VRNIC_MAX_RD_ATOM)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > most_dest_rd(qp))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 ||
	     attr->path_mtu > vrnic_active_mtu(qp->dev)))
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_AV)
		return check_path(qp, &attr->ah_attr);
	return 0;
}

static void take_values(struct vrnic_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_PATH_MIG_STATE)
		to->path_mig_state = attr->path_mig_state;
	if (mask & IB_QP_RATE_LIMIT) {
		to->rate_limit = attr->rate_limit;
		qp->limit = attr->rate_limit * (u64)KBPS;
	}
	if (mask & IB_QP_AV) {
		to->ah_attr = attr->ah_attr;
		to->ah_attr.grh.sgid_attr = NULL;
		qp->sgid = attr->ah_attr.grh.sgid_attr->gid;
	}
}

/*
 * Discard all posted requests, without completions. The caller holds a spinlock, so qp_change()
 * ends the connection afterwards: vrnic_roce_disconnect() may sleep.
 */
static void to_reset(struct vrnic_qp *qp)
{
	vrnic_ring_reset(&qp->sq);
	WRITE_ONCE(qp->sq.hdr->flags, VRNIC_RING_DOORBELL);
	if (vrnic_qp_has_rq(qp)) {
		vrnic_ring_reset(&qp->rq.ring);
		WRITE_ONCE(qp->rq.ring.hdr->flags, 0);
	}
	qp->op.active = false;
	qp->sq_done = 0;
	qp->recv.active = false;
	qp->send_wait.odp = NULL;
	qp->peer_wait.odp = NULL;
	qp->recv_wait.odp = NULL;
	qp->run.wait_until = 0;
	qp->limit = 0;
	qp->paid_at = 0;
	qp->comm_est = false;
	qp->last_wqe = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

/*
 * Move from @cur to @next, with new attributes. Moves to RESET and ERR always succeed. Any other
 * move fails if an error has changed the state since @cur was read.
 */
static int qp_move(struct vrnic_qp *qp, const struct ib_qp_attr *attr, int mask,
		   enum ib_qp_state cur, enum ib_qp_state next)
{
	unsigned long flags;

	lockdep_assert_held(&qp->resp_lock);
	spin_lock_irqsave(&qp->state_lock, flags);
	if (qp->state != cur && next != IB_QPS_RESET && next != IB_QPS_ERR) {
		spin_unlock_irqrestore(&qp->state_lock, flags);
		return -EINVAL;
	}
	if (next == IB_QPS_RESET)
		to_reset(qp);
	take_values(qp, attr, mask);
	if (next != cur)
		WRITE_ONCE(qp->sq_draining, next == IB_QPS_SQD);
	WRITE_ONCE(qp->state, next);
	spin_unlock_irqrestore(&qp->state_lock, flags);
	if (next == IB_QPS_ERR)
		vrnic_rings_fail(qp);
	return 0;
}

/* The type that the attributes of a transition depend on. */
static enum ib_qp_type modified_type(const struct vrnic_qp *qp)
{
	switch (qp->xrc) {
	case VRNIC_XRC_INI:
		return IB_QPT_XRC_INI;
	case VRNIC_XRC_TGT:
		return IB_QPT_XRC_TGT;
	default:
		return qp->type;
	}
}

static int check_transition(struct vrnic_qp *qp, struct ib_qp_attr *attr,
			    int mask, enum ib_qp_state cur,
			    enum ib_qp_state *next)
{
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		return -EINVAL;
	*next = mask & IB_QP_STATE ? attr->qp_state : cur;
	/* checked here, as ib_modify_qp_is_ok() allows rate limits for raw packets only */
	if (mask & IB_QP_RATE_LIMIT && *next != IB_QPS_RTS)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(cur, *next, modified_type(qp), mask & ~IB_QP_RATE_LIMIT))
		return -EINVAL;
	return check_values(qp, attr, mask);
}

/*
 * Code that holds resp_lock must not sleep, so connect before, and disconnect after. Local peers do
 * not see a connection in between: they do not use a queue pair before RTR, nor after RESET.
 */
static int qp_change(struct vrnic_qp *qp, const struct ib_qp_attr *attr, int mask,
		     enum ib_qp_state cur, enum ib_qp_state next)
{
	int err;

	if (mask & IB_QP_AV) {
		err = qp_connect(qp, attr, next);
		if (err)
			return err;
	}
	vrnic_target_lock(qp);
	err = qp_move(qp, attr, mask, cur, next);
	vrnic_target_unlock(qp);
	if (err)
		return err;
	if (next == IB_QPS_RESET)
		vrnic_roce_disconnect(qp);
	if (cur == IB_QPS_RTR && next == IB_QPS_RTS && qp->roce)
		vrnic_roce_ready(qp);
	return 0;
}

/* The ring is parked, so no run is in progress; but an operation may be half done. */
static int qp_change_parked(struct vrnic_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state), next;
	int err;

	err = check_transition(qp, attr, mask, cur, &next);
	return err ?: qp_change(qp, attr, mask, cur, next);
}

static int qp_modify(struct vrnic_qp *qp, struct ib_qp_attr *attr, int mask)
{
	int err;

	mutex_lock(&qp->ctrl);
	vrnic_park(&qp->run);
	err = qp_change_parked(qp, attr, mask);
	vrnic_unpark(&qp->run);
	mutex_unlock(&qp->ctrl);
	/* this run flushes in ERR, reports the end of draining in SQD, goes on in RTS */
	vrnic_kick(&qp->run);
	return err;
}

int vrnic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct vrnic_qp *qp = to_vqp(ibqp);

	/* with a table of work queues it is they who have a state */
	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT) || qp->rss)
		return -EOPNOTSUPP;
	return qp_modify(qp, attr, mask);
}

/* Modify the queue pair of a native link, which never goes to RESET. */
int vrnic_modify_link_qp(struct vrnic_qp *qp, struct ib_qp_attr *attr, int mask)
{
	return qp_modify(qp, attr, mask);
}
