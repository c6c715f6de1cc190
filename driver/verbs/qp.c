// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: create, query, destroy. */

#include <linux/cred.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "base/objects.h"
#include "base/trace.h"
#include "base/udata.h"
#include "base/user.h"
#include "engine/engine.h"
#include "queue/cq.h"
#include "queue/link_ops.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "queue/rq.h"
#include "queue/srq.h"
#include "queue/target.h"
#include "raw/raw.h"
#include "raw/rss.h"
#include "ucontext.h"
#include "verbs/flow.h"
#include "verbs/verbs.h"
#include "vrnic.h"

/* struct link_qp - the queue pair of a native link, which has little of what others have */
struct link_qp {
	struct vrnic_qp qp;
	struct vrnic_link_scratch scratch;
};

/* There may be very many: none of their memory is rounded up to a power of two. */
static struct kmem_cache *link_qps;

/* Has the queue pair the completion queues that its type needs? */
static bool has_cqs(const struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_XRC_INI:
		return init->send_cq;
	case IB_QPT_XRC_TGT:
		return init->xrcd;
	case IB_QPT_RAW_PACKET:
		/* a work queue sends nothing; who has a table of them has no receives, either */
		if (init->rwq_ind_tbl)
			return !init->send_cq && !init->recv_cq;
		return init->recv_cq;
	default:
		return init->send_cq && init->recv_cq;
	}
}

static int check_init(struct vrnic_dev *dev, const struct ib_qp_init_attr *init, bool user)
{
	const struct ib_qp_cap *cap = &init->cap;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_GSI:
	case IB_QPT_XRC_TGT:
		break;
	case IB_QPT_RAW_PACKET:
		if (!user || !vrnic_raw_supported(dev))
			return -EOPNOTSUPP;
		if (!vrnic_raw_allowed(dev))
			return -EPERM;
		break;
	case IB_QPT_XRC_INI:
		/* no struct ib_send_wr can name an SRQ */
		if (user)
			break;
		return -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags || (init->rwq_ind_tbl && init->qp_type != IB_QPT_RAW_PACKET))
		return -EOPNOTSUPP;
	if (!has_cqs(init))
		return -EINVAL;
	/* rings_init() ignores the capabilities of an XRC target */
	if (init->qp_type == IB_QPT_XRC_TGT)
		return 0;
	if (cap->max_send_wr > VRNIC_MAX_WR || cap->max_send_sge > VRNIC_MAX_SGE ||
	    cap->max_inline_data > VRNIC_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > VRNIC_MAX_WR ||
			   cap->max_recv_sge > VRNIC_MAX_SGE))
		return -EINVAL;
	return 0;
}

/*
 * Make a ring for max_send_wr of the largest requests. If rounding leaves room for more requests or
 * inline data, grant it, within the device's limits. So a consumer that asks for what was granted
 * gets the same.
 */
static int sq_init(struct vrnic_qp *qp, struct ib_qp_cap *cap)
{
	u32 slots = max(vrnic_desc_slots(cap->max_send_sge, 0),
			vrnic_desc_slots(0, cap->max_inline_data));
	int err;

	err = vrnic_ring_alloc(&qp->sq, cap->max_send_wr * slots,
			       VRNIC_SLOT_SIZE, qp->gfp);
	if (err)
		return err;
	qp->sq.hdr->flags = VRNIC_RING_DOORBELL;
	cap->max_send_wr = min_t(u32, VRNIC_MAX_WR, qp->sq.entries / slots);
	cap->max_inline_data = min_t(u32, VRNIC_MAX_INLINE, VRNIC_DESC_DATA +
				     (slots - 1) * VRNIC_SLOT_SIZE);
	return 0;
}

static int rq_init(struct vrnic_qp *qp, struct ib_qp_cap *cap)
{
	int err;

	if (!vrnic_qp_has_rq(qp)) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	err = vrnic_rq_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge, qp->gfp);
	if (err)
		return err;
	cap->max_recv_wr = qp->rq.max_wr;
	return 0;
}

/*
 * A queue pair that sends nothing has an empty send ring to which nobody can post, so that its runs
 * need not know.
 */
static int sq_init_empty(struct vrnic_qp *qp, struct ib_qp_cap *cap)
{
	cap->max_send_wr = 0;
	cap->max_send_sge = 0;
	cap->max_inline_data = 0;
	return vrnic_ring_alloc(&qp->sq, 1, VRNIC_SLOT_SIZE, qp->gfp);
}

/* After a failure, the caller calls qp_free(), which frees the rings that there are. */
static int rings_init(struct vrnic_qp *qp, struct ib_qp_init_attr *init)
{
	int err;

	err = init->send_cq ? sq_init(qp, &init->cap) : sq_init_empty(qp, &init->cap);
	return err ?: rq_init(qp, &init->cap);
}

static int rings_export(struct vrnic_qp *qp, const struct ib_qp_init_attr *init,
			struct ib_udata *udata)
{
	struct ib_ucontext *uctx = vrnic_udata_ucontext(udata);
	struct vrnic_create_qp_resp resp = {};
	int err;

	if (init->send_cq) {
		err = vrnic_ring_export(&qp->sq, uctx, false, &resp.sq);
		if (err)
			return err;
	}
	if (vrnic_qp_has_rq(qp)) {
		err = vrnic_ring_export(&qp->rq.ring, uctx, false, &resp.rq);
		if (err)
			return err;
	}
	return vrnic_udata_respond(udata, &resp, sizeof(resp),
				   offsetofend(struct vrnic_create_qp_resp, rq));
}

/* XRC queue pairs are of type RC from here on. */
static void qp_init_type(struct vrnic_qp *qp, const struct ib_qp_init_attr *init)
{
	qp->type = init->qp_type;
	if (init->qp_type != IB_QPT_XRC_INI && init->qp_type != IB_QPT_XRC_TGT)
		return;
	qp->type = IB_QPT_RC;
	qp->xrc = init->qp_type == IB_QPT_XRC_INI ? VRNIC_XRC_INI : VRNIC_XRC_TGT;
	qp->xrcd = init->xrcd;
}

/* @crew: threads that run the queue pair when no process or softirq does */
static void qp_init(struct vrnic_qp *qp, struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct vrnic_crew *crew, gfp_t gfp)
{
	qp->gfp = gfp;
	refcount_set(&qp->refs, 1);
	init_completion(&qp->gone);
	qp->dev = to_vdev(ibqp->device);
	qp->ibqp = ibqp;
	qp->key_user.dev = qp->dev;
	qp->key_user.pd = ibqp->pd;
	qp_init_type(qp, init);
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	if (!qp->xrc) {
		qp->srq = init->srq ? to_vsrq(init->srq) : NULL;
		qp->recv_cq = init->recv_cq ? to_vcq(init->recv_cq) : NULL;
	}
	qp->state = IB_QPS_RESET;
	vrnic_runnable_init(&qp->run, crew, &vrnic_sq_ops);
	mutex_init(&qp->ctrl);
	vrnic_target_init(qp);
	spin_lock_init(&qp->state_lock);
	spin_lock_init(&qp->post_lock);
	INIT_LIST_HEAD(&qp->wired);
	INIT_LIST_HEAD(&qp->counted);
	skb_queue_head_init(&qp->rxq);
	qp->rxq_room.most = VRNIC_RXQ_BYTES;
}

static struct vrnic_qp *qp_new(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			       struct vrnic_crew *crew, gfp_t gfp)
{
	struct {
		struct vrnic_qp qp;
		struct vrnic_scratch scratch;
	} *new = kzalloc(sizeof(*new), gfp);
	struct vrnic_qp *qp;

	if (!new)
		return NULL;
	qp = &new->qp;
	qp_init(qp, ibqp, init, crew, gfp);
	qp->op.slots = new->scratch.slots;
	qp->sgl.seg = new->scratch.seg;
	qp->recv.sge = new->scratch.recv_sge;
	qp->recv_sgl.seg = new->scratch.recv_seg;
	return qp;
}

static void qp_free(struct vrnic_qp *qp)
{
	WARN_ON_ONCE(!list_empty(&qp->counted));
	vrnic_roce_disconnect(qp);
	vrnic_user_put(qp->rxq_room.user);
	vrnic_ring_free(&qp->sq);
	vrnic_ring_free(&qp->rq.ring);
	kfree(qp->rss);
	kfree(qp->comp);
	kfree_rcu(qp, rcu);
}

/*
 * Who pays for packets that wait: the user who opened the context, also if another has the file
 * now. An XRC target has no context, so it is the user who makes it.
 */
static int qp_set_user(struct vrnic_qp *qp, const struct vrnic_ucontext *uc)
{
	struct vrnic_user *user = NULL;

	if (uc)
		user = vrnic_user_share(uc->user);
	else if (vrnic_qp_is_users(qp))
		user = vrnic_user_get(current_uid());
	if (IS_ERR(user))
		return PTR_ERR(user);
	qp->rxq_room.user = user;
	return 0;
}

static int qp_set_rss(struct vrnic_qp *qp, const struct ib_qp_init_attr *init,
		      struct ib_udata *udata)
{
	struct vrnic_rss *rss;

	if (!init->rwq_ind_tbl)
		return vrnic_udata_empty(udata) ? -EINVAL : 0;
	rss = vrnic_rss_new(init->rwq_ind_tbl, udata);
	if (IS_ERR(rss))
		return PTR_ERR(rss);
	qp->rss = rss;
	return 0;
}

static struct vrnic_qp *qp_create(struct ib_qp *ibqp,
				  struct ib_qp_init_attr *init,
				  struct ib_udata *udata)
{
	struct vrnic_ucontext *uc = udata ? to_vuc(vrnic_udata_ucontext(udata)) : NULL;
	struct vrnic_qp *qp;
	int err;

	qp = qp_new(ibqp, init, uc ? uc->crew : to_vdev(ibqp->device)->engine.own,
		    GFP_KERNEL_ACCOUNT);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->owner = uc ? uc->number : 0;
	err = qp_set_user(qp, uc) ?: qp_set_rss(qp, init, udata) ?: rings_init(qp, init);
	if (err)
		goto err_free;
	if (udata) {
		err = rings_export(qp, init, udata);
		if (err)
			goto err_free;
	}
	qp->cap = init->cap;
	err = vrnic_qp_publish(qp);
	if (err)
		goto err_free;
	return qp;

err_free:
	qp_free(qp);
	return ERR_PTR(err);
}

int vrnic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata)
{
	/* processes share an XRC target, so the core makes it as if for the kernel */
	bool user = udata || init->qp_type == IB_QPT_XRC_TGT;
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_qp *qp;
	int err;

	err = check_init(dev, init, user);
	if (err)
		return err;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_QP, user))
		return -ENOMEM;
	qp = qp_create(ibqp, init, udata);
	if (IS_ERR(qp)) {
		vrnic_object_put(dev, VRNIC_OBJECT_QP, user);
		return PTR_ERR(qp);
	}
	container_of(ibqp, struct vrnic_ibqp, ibqp)->qp = qp;
	trace_vrnic_qp_create(qp);
	return 0;
}

static struct vrnic_qp *link_qp_new(struct ib_qp *ibqp, struct vrnic_crew *crew, gfp_t gfp)
{
	struct ib_qp_init_attr init = { .qp_type = IB_QPT_RC };
	struct link_qp *new = kmem_cache_zalloc(link_qps, gfp);
	struct vrnic_qp *qp;

	if (!new)
		return NULL;
	qp = &new->qp;
	qp_init(qp, ibqp, &init, crew, gfp);
	qp->run.ops = &vrnic_link_sq_ops;
	qp->sq.entries = VRNIC_LINK_MSGS;
	qp->op.slots = new->scratch.slot;
	qp->sgl.seg = new->scratch.seg;
	qp->recv_sgl.seg = &new->scratch.recv_seg;
	return qp;
}

static void link_qp_release(struct rcu_head *rcu)
{
	kmem_cache_free(link_qps, container_of(rcu, struct link_qp, qp.rcu));
}

/**
 * vrnic_create_link_qp() - create the queue pair of a native link
 * @ibqp: takes the place of the core's part; has device and protection domain
 * @link: the native link
 * @ops: functions of @link that the queue pair calls
 * @crew: threads that run the queue pair: those of the FIFO at this end
 * @user: user who has that FIFO; NULL: root
 * @gfp: flags for allocations
 *
 * The core does not know this queue pair, which has no completion queues, and no rings.
 *
 * Return: 0: link_ops.created() was called; or a negative errno. Undone by vrnic_destroy_link_qp().
 */
int vrnic_create_link_qp(struct ib_qp *ibqp, struct vrnic_link *link,
			 const struct vrnic_link_ops *ops, struct vrnic_crew *crew,
			 struct vrnic_user *user, gfp_t gfp)
{
	struct vrnic_qp *qp = link_qp_new(ibqp, crew, gfp);
	int err;

	if (!qp)
		return -ENOMEM;
	qp->rxq_room.user = vrnic_user_share(user);
	qp->link = link;
	qp->link_ops = ops;
	/* before vrnic_qp_publish(): code that finds @qp by its number uses link->qp */
	ops->created(link, qp);
	err = vrnic_qp_publish(qp);
	if (err) {
		vrnic_user_put(qp->rxq_room.user);
		kmem_cache_free(link_qps, container_of(qp, struct link_qp, qp));
	}
	return err;
}

int vrnic_link_qps_init(void)
{
	link_qps = kmem_cache_create("vrnic_link_qp", sizeof(struct link_qp),
				     __alignof__(struct link_qp), 0, NULL);
	return link_qps ? 0 : -ENOMEM;
}

/* Called when no link is left. */
void vrnic_link_qps_exit(void)
{
	rcu_barrier();	/* for link_qp_release() */
	kmem_cache_destroy(link_qps);
}

/* -EAGAIN: the core's netlink code goes on with the next queue pair. */
int vrnic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct vrnic_qp *qp = vrnic_qp_of(ibqp);

	if (!qp)
		return -EAGAIN;
	mutex_lock(&qp->ctrl);
	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	attr->sq_draining = READ_ONCE(qp->sq_draining);
	mutex_unlock(&qp->ctrl);

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	vrnic_qp_put(qp);
	return 0;
}

/*
 * First hide the queue pair from look-ups, then stop its own ring, then wait for the references of
 * code that found it before. Runners that use it as a target put theirs at the end of their run.
 */
static void qp_end(struct vrnic_qp *qp)
{
	vrnic_qp_hide(qp);
	mutex_lock(&qp->ctrl);
	vrnic_park(&qp->run);
	vrnic_roce_leave(qp);
	mutex_unlock(&qp->ctrl);
	vrnic_qp_put(qp);
	wait_for_completion(&qp->gone);
}

int vrnic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct vrnic_qp *qp = to_vqp(ibqp);

	qp_end(qp);
	vrnic_qp_counter_leave(qp);
	vrnic_object_put(qp->dev, VRNIC_OBJECT_QP, vrnic_qp_is_users(qp));
	qp_free(qp);
	return 0;
}

/* Destroy the queue pair of a native link. */
void vrnic_destroy_link_qp(struct vrnic_qp *qp)
{
	qp_end(qp);
	vrnic_roce_disconnect(qp);
	vrnic_user_put(qp->rxq_room.user);
	call_rcu(&qp->rcu, link_qp_release);
}
