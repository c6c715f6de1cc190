/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Where datagrams go, and the routes that they take. */
#ifndef VRNIC_AV_ROUTE_H
#define VRNIC_AV_ROUTE_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct dst_entry;
struct vrnic_dev;

/**
 * struct vrnic_av - where a UD message goes
 * @rcu: for kfree_rcu()
 * @pd: protection domain; queue pairs of other domains must not use this vector
 * @attr: as the consumer gave it, without the reference on its GID
 * @sgid: the sender's own GID
 * @oif: index of the interface that has @sgid
 * @vlan: 1 + the VLAN of @oif; 0: none
 * @id: number that names this vector in descriptors
 * @lock: protects all members below it
 * @dst: the route that was found last, with a reference; or NULL
 * @cookie: of @dst, for dst_check()
 * @gone: @dst stays NULL: the address handle is about to replace or destroy this vector, or the
 *	device's network namespace ends
 *
 * A vector is freed an RCU grace period after its address handle.
 */
struct vrnic_av {
	struct rcu_head rcu;
	struct ib_pd *pd;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
	int oif;
	u16 vlan;
	u32 id;
	spinlock_t lock;	/* protects the members below */
	struct dst_entry *dst;
	u32 cookie;
	bool gone;
};

struct dst_entry *vrnic_av_route(struct vrnic_av *av, u32 *cookie);
void vrnic_av_keep(struct vrnic_dev *dev, struct vrnic_av *av, struct dst_entry *dst,
		   u32 cookie);
void vrnic_avs_forget(struct vrnic_dev *dev);
void vrnic_av_forget(struct vrnic_dev *dev, struct vrnic_av *av);

#endif /* VRNIC_AV_ROUTE_H */
