// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How other code finds queue pairs, and takes references on them. */

#include <linux/completion.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>

#include "base/gid.h"
#include "base/port.h"
#include "lib/ids_find.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "vrnic.h"

/*
 * All queue pairs of this host by number, of all devices: the number alone finds the peer of a
 * loopback flow. Read under RCU.
 */
static struct vrnic_ids vrnic_qps;

#define QPN_MIN		16
#define QPN_MAX		(BIT(24) - 3)	/* above: VRNIC_HELLO_QPN, multicast */

/**
 * vrnic_qp_get() - find a queue pair by its number
 * @qpn: number
 *
 * Return: the queue pair with a reference held, or NULL.
 */
struct vrnic_qp *vrnic_qp_get(u32 qpn)
{
	struct vrnic_qp *qp;

	rcu_read_lock();
	qp = vrnic_ids_find(&vrnic_qps, qpn);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

/* As vrnic_qp_get(), for queue pair 1 of @dev. */
struct vrnic_qp *vrnic_gsi_get(struct vrnic_dev *dev)
{
	struct vrnic_qp *qp;

	rcu_read_lock();
	qp = rcu_dereference(dev->gsi);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

void vrnic_qp_put(struct vrnic_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->gone);
}

int vrnic_qps_init(void)
{
	return vrnic_ids_init(&vrnic_qps);
}

void vrnic_qps_exit(void)
{
	vrnic_ids_exit(&vrnic_qps);
}

/* Make @qp visible: from here on other code can find the queue pair. */
int vrnic_qp_publish(struct vrnic_qp *qp)
{
	int err = vrnic_ids_alloc(&vrnic_qps, qp, qp->gfp, QPN_MIN, QPN_MAX, &qp->qpn);

	if (err)
		return err;
	qp->ibqp->qp_num = qp->qpn;
	qp->key_user.qpn = qp->qpn;
	if (qp->type != IB_QPT_GSI)
		return 0;
	/* only the core's MAD layer makes a GSI queue pair, and only one at a time */
	qp->ibqp->qp_num = 1;
	rcu_assign_pointer(qp->dev->gsi, qp);
	return 0;
}

/* Hide @qp: nobody finds it from now on. Code that found it before has a reference. */
void vrnic_qp_hide(struct vrnic_qp *qp)
{
	if (qp->type == IB_QPT_GSI)
		rcu_assign_pointer(qp->dev->gsi, NULL);
	vrnic_ids_free(&vrnic_qps, qp->qpn);
}

/* ---- queue pair 1 ---- */

/**
 * struct gsi_search - the search for a queue pair 1
 * @best: network device whose queue pair is the first choice
 * @qp: first choice so far, with a reference held
 */
struct gsi_search {
	const struct net_device *best;
	struct vrnic_qp *qp;
};

static bool gsi_is_best(struct vrnic_dev *dev, void *arg)
{
	struct gsi_search *search = arg;
	struct vrnic_qp *found;

	if (search->qp && dev->ndev != search->best)
		return false;
	found = vrnic_gsi_get(dev);
	if (!found)
		return false;
	if (search->qp)
		vrnic_qp_put(search->qp);
	search->qp = found;
	return dev->ndev == search->best;
}

/* Find the queue pair 1 of a device that has @gid. The caller keeps @net. */
static struct vrnic_qp *gsi_find(const struct net *net, const union ib_gid *gid,
				 const struct net_device *best)
{
	struct gsi_search search = { .best = best };

	vrnic_gid_owners(net, gid, gsi_is_best, &search);
	return search.qp;
}

/**
 * vrnic_gsi_by_gid() - find the queue pair 1 that @gid leads to
 * @from: the sender's device, which is the first choice
 * @gid: destination
 *
 * Return: the queue pair with a reference held, or NULL.
 */
struct vrnic_qp *vrnic_gsi_by_gid(struct vrnic_dev *from,
				  const union ib_gid *gid)
{
	struct vrnic_qp *qp;

	rcu_read_lock();
	qp = gsi_find(vrnic_net(from->ndev), gid, from->ndev);
	rcu_read_unlock();
	return qp;
}

/*
 * As vrnic_gsi_by_gid(), for a packet from the network that came through @ndev, or NULL if that is
 * not known. The caller keeps @net.
 */
struct vrnic_qp *vrnic_gsi_by_net(struct net *net, struct net_device *ndev,
				  const union ib_gid *gid)
{
	return gsi_find(net, gid, ndev ? vrnic_lower(ndev) : NULL);
}
