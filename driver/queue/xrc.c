// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC SRQs by number, and how an XRC target uses them: see xrc.h. */

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#include "lib/ids_find.h"
#include "queue/cq.h"
#include "queue/hold.h"
#include "queue/qp.h"
#include "queue/srq.h"
#include "queue/xrc.h"

#define SRQN_BITS	24
#define SRQN_MAX	(BIT(SRQN_BITS) - 1)

/**
 * struct vrnic_xsrq - an XRC SRQ as runs of targets find it
 * @rcu: to free it after a grace period: a look-up may still read it
 * @refs: one of the SRQ, and one of each run that uses the SRQ
 * @gone: completed when the last reference was put
 * @srq: the SRQ, with its completion queue and protection domain; valid while a reference is held
 * @xrcd: XRC domain of the SRQ
 */
struct vrnic_xsrq {
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	struct vrnic_srq *srq;
	const struct ib_xrcd *xrcd;
};

/* The XRC SRQs of all devices by number; read under RCU. */
static struct vrnic_ids xsrqs;

/* Makes vrnic_srq.serial different from that of each earlier SRQ. */
static atomic64_t next_serial;

int vrnic_xsrqs_init(void)
{
	return vrnic_ids_init(&xsrqs);
}

void vrnic_xsrqs_exit(void)
{
	vrnic_ids_exit(&xsrqs);
}

static void xsrq_put(struct vrnic_xsrq *x)
{
	if (refcount_dec_and_test(&x->refs))
		complete(&x->gone);
}

/* Find the SRQ @srqn of the domain @xrcd. Return: it, with a reference held, or NULL. */
static struct vrnic_xsrq *xsrq_get(const struct ib_xrcd *xrcd, u32 srqn)
{
	struct vrnic_xsrq *x;

	rcu_read_lock();
	x = vrnic_ids_find(&xsrqs, srqn);
	if (x && (x->xrcd != xrcd || !refcount_inc_not_zero(&x->refs)))
		x = NULL;
	rcu_read_unlock();
	return x;
}

/**
 * vrnic_xsrq_publish() - give an XRC SRQ its number, by which targets find it from now on
 * @srq: SRQ, which is ready to receive
 *
 * Return: 0 or a negative errno.
 */
int vrnic_xsrq_publish(struct vrnic_srq *srq)
{
	struct vrnic_xsrq *x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	u64 serial = atomic64_inc_return(&next_serial);
	int err;

	if (!x)
		return -ENOMEM;
	refcount_set(&x->refs, 1);
	init_completion(&x->gone);
	x->srq = srq;
	x->xrcd = srq->ibsrq.ext.xrc.xrcd;
	srq->xsrq = x;
	srq->serial = serial;
	err = vrnic_ids_alloc(&xsrqs, x, GFP_KERNEL_ACCOUNT, 1, SRQN_MAX, &srq->srqn);
	if (err) {
		srq->xsrq = NULL;
		kfree(x);
	}
	return err;
}

/**
 * vrnic_xsrq_hide() - no target finds the SRQ any more, and none uses it when this returns
 * @srq: SRQ
 *
 * Waits for the runs that use the SRQ, until their ends.
 */
void vrnic_xsrq_hide(struct vrnic_srq *srq)
{
	struct vrnic_xsrq *x = srq->xsrq;

	vrnic_ids_free(&xsrqs, srq->srqn);
	xsrq_put(x);
	wait_for_completion(&x->gone);
	srq->xsrq = NULL;
	kfree_rcu(x, rcu);
}

/**
 * vrnic_xrc_bind() - let an XRC target have the receives, CQ and protection domain of an SRQ
 * @target: XRC target; the caller may use it as one: see assert_target() in recv.c
 * @hold: what the run of the caller keeps; vrnic_hold_release() undoes this
 * @srqn: number of the SRQ, as the peer claims
 *
 * Return: 0, or -EINVAL: the target's domain has no such SRQ.
 */
int vrnic_xrc_bind(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn)
{
	struct vrnic_xsrq *x;

	if (hold->xsrq && hold->xsrq->srq->srqn == srqn)
		return 0;
	vrnic_xrc_unbind(target, hold);
	x = xsrq_get(target->xrcd, srqn);
	if (!x)
		return -EINVAL;
	hold->xsrq = x;
	target->srq = x->srq;
	target->recv_cq = to_vcq(x->srq->ibsrq.ext.cq);
	target->key_user.pd = x->srq->ibsrq.pd;
	return 0;
}

/* Undo vrnic_xrc_bind(), if it succeeded. */
void vrnic_xrc_unbind(struct vrnic_qp *target, struct vrnic_hold *hold)
{
	if (!hold->xsrq)
		return;
	target->srq = NULL;
	target->recv_cq = NULL;
	target->key_user.pd = NULL;
	xsrq_put(hold->xsrq);
	hold->xsrq = NULL;
}

/* Is the receive under way, if there is one, from the SRQ that @target is bound to? */
static bool recv_fits(const struct vrnic_qp *target)
{
	return !target->recv.active || target->recv.serial == target->srq->serial;
}

/**
 * vrnic_xrc_request() - bind an XRC target to the SRQ that a request, or a part of one, names
 * @target: as for vrnic_xrc_bind()
 * @hold: as for vrnic_xrc_bind()
 * @srqn: number of the SRQ
 *
 * Return: 0; -EINVAL: the target has to refuse the request: its domain has no such SRQ, or the SRQ
 * is not the one from which the message under way has its receive.
 */
int vrnic_xrc_request(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn)
{
	int err = vrnic_xrc_bind(target, hold, srqn);

	if (err)
		return err;
	return recv_fits(target) ? 0 : -EINVAL;
}

/**
 * vrnic_xrc_regain() - bind an XRC target to the SRQ that the receive under way is from
 * @target: as for vrnic_xrc_bind(); a receive is under way
 * @hold: as for vrnic_xrc_bind()
 *
 * Return: false if the SRQ is gone, and with it the process that posted the receive.
 */
bool vrnic_xrc_regain(struct vrnic_qp *target, struct vrnic_hold *hold)
{
	return !vrnic_xrc_request(target, hold, target->recv.srqn);
}
