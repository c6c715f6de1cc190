// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tables to find queue pairs in, and the references that a look-up takes. */

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
 * The queue pairs of all devices of this host by number. The number alone finds a peer on this
 * host, whichever device it is on. Read under RCU.
 */
static struct vrnic_ids vrnic_qps;

#define GSI_NUMBER	1
#define QPN_MIN		16
#define QPN_MAX		(BIT(24) - 3)	/* 0xfffffe is VRNIC_HELLO_QPN, 0xffffff multicast */

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

/* Find the GSI queue pair of @dev. Return: it, with a reference held, or NULL. */
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

/**
 * vrnic_qp_of() - the queue pair of the core's object
 * @ibqp: object of the core, whose memory stays for the call
 *
 * For questions of operators: cores without rdma_restrack_begin_del() ask for queue pairs whose
 * destroy_qp() runs at the same time.
 *
 * Return: the queue pair with a reference held, or NULL if it is being destroyed.
 */
struct vrnic_qp *vrnic_qp_of(struct ib_qp *ibqp)
{
	struct vrnic_qp *qp;

	if (ibqp->qp_num == GSI_NUMBER)
		qp = vrnic_gsi_get(to_vdev(ibqp->device));
	else
		qp = vrnic_qp_get(ibqp->qp_num);
	if (!qp || qp->ibqp == ibqp)
		return qp;
	vrnic_qp_put(qp);
	return NULL;
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

/* Give @qp its number, by which other code can find it from now on. Return: 0 or -errno. */
int vrnic_qp_publish(struct vrnic_qp *qp)
{
	int err = vrnic_ids_alloc(&vrnic_qps, qp, qp->gfp, QPN_MIN, QPN_MAX, &qp->qpn);

	if (err)
		return err;
	/* links share the core's part */
	if (!qp->link)
		qp->ibqp->qp_num = qp->qpn;
	qp->key_user.qpn = qp->qpn;
	if (qp->type != IB_QPT_GSI)
		return 0;
	/* only the core's MAD layer makes GSI queue pairs, and only one for a device */
	qp->ibqp->qp_num = GSI_NUMBER;
	rcu_assign_pointer(qp->dev->gsi, qp);
	return 0;
}

/* No code finds @qp from now on. Code that found it before has a reference. */
void vrnic_qp_hide(struct vrnic_qp *qp)
{
	if (qp->type == IB_QPT_GSI)
		rcu_assign_pointer(qp->dev->gsi, NULL);
	vrnic_ids_free(&vrnic_qps, qp->qpn);
}

/* ---- GSI queue pairs, which have number 1 on the wire ---- */

/**
 * struct gsi_search - the search for a GSI queue pair
 * @best: interface of the device that is the first choice, if several have the GID; or NULL
 * @qp: best so far, with a reference held
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

/* Find the GSI queue pair of a device that has @gid, in the namespace with the cookie @net. */
static struct vrnic_qp *gsi_find(u64 net, const union ib_gid *gid,
				 const struct net_device *best)
{
	struct gsi_search search = { .best = best };

	vrnic_gid_owners(net, gid, gsi_is_best, &search);
	return search.qp;
}

/**
 * vrnic_gsi_by_gid() - find the GSI queue pair that a local datagram to @gid is for
 * @from: the sender's device; the first choice, if several have the GID
 * @gid: destination
 *
 * Return: the queue pair with a reference held, or NULL.
 */
struct vrnic_qp *vrnic_gsi_by_gid(struct vrnic_dev *from,
				  const union ib_gid *gid)
{
	return gsi_find(from->net, gid, from->ndev);
}

/*
 * As vrnic_gsi_by_gid(), for a packet from the network. @ndev: interface that the packet came
 * through, or NULL if it is not known.
 */
struct vrnic_qp *vrnic_gsi_by_net(struct net *net, struct net_device *ndev,
				  const union ib_gid *gid)
{
	return gsi_find(net->net_cookie, gid, ndev ? vrnic_lower(ndev) : NULL);
}
