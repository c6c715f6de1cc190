// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: where UD messages go. */

#include <linux/slab.h>
#include <net/dst.h>
#include <rdma/ib_cache.h>
#include <rdma/vrnic-abi.h>

#include "base/objects.h"
#include "base/port.h"
#include "base/udata.h"
#include "roce/av_route.h"
#include "verbs/verbs.h"
#include "vrnic.h"

#define NO_VLAN	0xffff	/* what rdma_read_gid_l2_fields() returns for "none" */

static struct vrnic_ah *to_vah(struct ib_ah *ibah)
{
	return container_of(ibah, struct vrnic_ah, ibah);
}

static void av_fill(struct vrnic_av *av, struct rdma_ah_attr *attr)
{
	u16 vlan = NO_VLAN;

	av->attr = *attr;
	av->attr.grh.sgid_attr = NULL;
	av->sgid = attr->grh.sgid_attr->gid;
	av->oif = vrnic_gid_oif(to_vdev(attr->grh.sgid_attr->device),
				attr->grh.sgid_attr);
	if (!rdma_read_gid_l2_fields(attr->grh.sgid_attr, &vlan, NULL) &&
	    vlan != NO_VLAN)
		av->vlan = vlan + 1;
}

static int ah_respond(struct vrnic_ah *ah, struct ib_udata *udata)
{
	struct vrnic_create_ah_resp resp = { .ah = ah->av->id };

	if (!udata)
		return 0;
	return vrnic_udata_respond(udata, &resp, sizeof(resp),
				   offsetofend(struct vrnic_create_ah_resp, reserved));
}

static struct vrnic_av *av_new(struct ib_ah *ibah, struct rdma_ah_attr *attr,
			       gfp_t gfp)
{
	struct vrnic_av *av = kzalloc(sizeof(*av), gfp | __GFP_ACCOUNT);

	if (!av)
		return NULL;
	av->pd = ibah->pd;
	spin_lock_init(&av->lock);
	av_fill(av, attr);
	return av;
}

static int ah_create(struct ib_ah *ibah, struct rdma_ah_attr *attr, gfp_t gfp,
		     struct ib_udata *udata)
{
	struct vrnic_dev *dev = to_vdev(ibah->device);
	struct vrnic_ah *ah = to_vah(ibah);
	unsigned long flags;
	int err;

	ah->av = av_new(ibah, attr, gfp);
	if (!ah->av)
		return -ENOMEM;
	xa_lock_irqsave(&dev->avs, flags);
	err = __xa_alloc(&dev->avs, &ah->av->id, ah->av, xa_limit_31b, gfp);
	xa_unlock_irqrestore(&dev->avs, flags);
	if (err)
		goto err_free;
	err = ah_respond(ah, udata);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	vrnic_av_forget(dev, ah->av);
	xa_erase_irq(&dev->avs, ah->av->id);
err_free:
	kfree_rcu(ah->av, rcu);
	return err;
}

/*
 * Kernel consumers may create a handle in atomic context; then RDMA_CREATE_AH_SLEEPABLE is not set.
 */
int vrnic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL :
							     GFP_ATOMIC;
	struct vrnic_dev *dev = to_vdev(ibah->device);
	int err;

	if (!(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH) ||
	    !init->ah_attr->grh.sgid_attr)
		return -EINVAL;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_AH, udata))
		return -ENOMEM;
	to_vah(ibah)->user = udata;
	err = ah_create(ibah, init->ah_attr, gfp, udata);
	if (err)
		vrnic_object_put(dev, VRNIC_OBJECT_AH, udata);
	return err;
}

/* Senders copy a vector under RCU, so it must not change: replace it by a new one. */
int vrnic_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct vrnic_dev *dev = to_vdev(ibah->device);
	struct vrnic_ah *ah = to_vah(ibah);
	struct vrnic_av *old = ah->av, *av;
	unsigned long flags;

	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !attr->grh.sgid_attr)
		return -EINVAL;
	av = av_new(ibah, attr, GFP_ATOMIC);
	if (!av)
		return -ENOMEM;
	av->id = old->id;
	vrnic_av_forget(dev, old);
	xa_lock_irqsave(&dev->avs, flags);
	/* replaces an existing entry, so nothing is allocated */
	__xa_store(&dev->avs, av->id, av, GFP_ATOMIC);
	xa_unlock_irqrestore(&dev->avs, flags);
	ah->av = av;
	kfree_rcu(old, rcu);
	return 0;
}

int vrnic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_vah(ibah)->av->attr;
	attr->grh.sgid_attr = NULL;
	return 0;
}

int vrnic_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct vrnic_dev *dev = to_vdev(ibah->device);
	struct vrnic_av *av = to_vah(ibah)->av;
	unsigned long irq;

	vrnic_av_forget(dev, av);
	xa_lock_irqsave(&dev->avs, irq);
	__xa_erase(&dev->avs, av->id);
	xa_unlock_irqrestore(&dev->avs, irq);
	kfree_rcu(av, rcu);
	vrnic_object_put(dev, VRNIC_OBJECT_AH, to_vah(ibah)->user);
	return 0;
}
