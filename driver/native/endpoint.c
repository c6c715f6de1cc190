// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Endpoints: the peers that a FIFO's descriptors can name. */

#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "base/gid.h"
#include "engine/engine.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "verbs/flow.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/*
 * Protects the lists of endpoints of FIFOs and of links. They change rarely, so one lock will do.
 */
static DEFINE_SPINLOCK(watch_lock);

static bool endpoint_needs_wire(struct vrnic_dev *dev, const struct vrnic_address *address)
{
	union ib_gid gid;

	memcpy(&gid, address->gid, sizeof(gid));
	return vrnic_force_roce() || !vrnic_gid_is_local(dev, &gid);
}

/*
 * Find the FIFO at an address of this host. Return: the FIFO, with a reference held; or an ERR_PTR:
 * there is none, @dev does not reach it, or the secret is wrong.
 */
static struct vrnic_fifo *address_get(struct vrnic_dev *dev,
				      const struct vrnic_address *address)
{
	struct vrnic_fifo *peer;
	union ib_gid gid;
	int err;

	memcpy(&gid, address->gid, sizeof(gid));
	peer = vrnic_fifo_get(address->fifo);
	if (!peer)
		return ERR_PTR(-ENOENT);
	if (!vrnic_reaches(dev, &gid, peer->dev)) {
		err = -EHOSTUNREACH;
		goto err_put;
	}
	if (peer->address.secret != address->secret) {
		err = -EACCES;
		goto err_put;
	}
	return peer;

err_put:
	vrnic_fifo_put(peer);
	return ERR_PTR(err);
}

/* List @ep with its link or @peer, so that the owner of @ep is told when the link or @peer goes. */
static int endpoint_watch(struct vrnic_endpoint *ep, struct vrnic_fifo *peer)
{
	int err = 0;

	spin_lock(&watch_lock);
	if (ep->link)
		list_add_tail(&ep->watch, &ep->link->endpoints);
	else if (peer->gone_told)
		err = -ENOENT;
	else
		list_add_tail(&ep->watch, &peer->watchers);
	spin_unlock(&watch_lock);
	/*
	 * pairs with vrnic_link_flushed(): we see that the link is dead, or that function sees @ep
	 */
	smp_mb();
	if (ep->link && READ_ONCE(ep->link->dead))
		vrnic_endpoints_lost(ep->link);
	return err;
}

static void endpoint_unwatch(struct vrnic_endpoint *ep)
{
	struct vrnic_rget *notice;

	spin_lock(&watch_lock);
	list_del_init(&ep->watch);
	notice = ep->notice;
	ep->notice = NULL;
	spin_unlock(&watch_lock);
	vrnic_rget_free(notice);
}

/*
 * Take an endpoint off the list, fail its counters, and send its notice. @failed gets the counters.
 * Return: false if there is none.
 */
static bool tell_one(struct list_head *endpoints, struct list_head *failed)
{
	struct vrnic_endpoint *ep;

	lockdep_assert_held(&watch_lock);
	ep = list_first_entry_or_null(endpoints, struct vrnic_endpoint, watch);
	if (!ep)
		return false;
	list_del_init(&ep->watch);
	vrnic_bindings_fail(ep, failed);
	vrnic_notice_send(ep->fifo, ep->notice);
	ep->notice = NULL;
	return true;
}

/*
 * Tell the owners of all endpoints in a list, to which none is added any more. The list may be
 * long, so watch_lock is dropped after each endpoint.
 */
static void tell_all(struct list_head *endpoints)
{
	LIST_HEAD(failed);
	bool any;

	do {
		spin_lock(&watch_lock);
		any = tell_one(endpoints, &failed);
		spin_unlock(&watch_lock);
		vrnic_counters_tell(&failed);
		cond_resched();
	} while (any);
}

/**
 * vrnic_watchers_tell() - a FIFO is gone: tell the owners of endpoints that lead to it
 * @fifo: the FIFO; its injectors have stopped, so the owners get no record from it after the notice
 */
void vrnic_watchers_tell(struct vrnic_fifo *fifo)
{
	spin_lock(&watch_lock);
	fifo->gone_told = true;
	spin_unlock(&watch_lock);
	tell_all(&fifo->watchers);
}

/**
 * vrnic_endpoints_lost() - a link has failed: tell the owners of endpoints that use it
 * @link: the link; dead
 */
void vrnic_endpoints_lost(struct vrnic_link *link)
{
	tell_all(&link->endpoints);
}

/* ---- endpoints, by number ---- */

/**
 * vrnic_endpoint_named() - find the endpoint that a descriptor names
 * @fifo: FIFO; the caller holds the run bit of its injector, or has parked it
 * @number: number of the endpoint
 *
 * Return: NULL if there is none, or if it was destroyed.
 */
struct vrnic_endpoint *vrnic_endpoint_named(struct vrnic_fifo *fifo, u32 number)
{
	struct vrnic_endpoint *ep = xa_load(&fifo->endpoints, number);

	return ep && !ep->gone ? ep : NULL;
}

/* Has the FIFO an endpoint that was not destroyed? */
bool vrnic_endpoints_any(struct vrnic_fifo *fifo)
{
	struct vrnic_endpoint *ep;
	unsigned long number;
	bool any = false;

	rcu_read_lock();
	/* few are gone: those of puts on their way, and of the operation in progress */
	xa_for_each(&fifo->endpoints, number, ep) {
		any = !READ_ONCE(ep->gone);
		if (any)
			break;
	}
	rcu_read_unlock();
	return any;
}

static void endpoint_free(struct vrnic_fifo *fifo, struct vrnic_endpoint *ep)
{
	xa_erase_bh(&fifo->endpoints, ep->number);
	kfree_rcu(ep, rcu);
}

/**
 * vrnic_nop_landed() - an operation was counted, and its record was delivered
 * @fifo: FIFO of the operation; the caller holds the run bit of its injector, or has parked it
 * @op: the operation. Its endpoint is freed if that was destroyed, and this is its last operation
 */
void vrnic_nop_landed(struct vrnic_fifo *fifo, struct vrnic_nop *op)
{
	struct vrnic_endpoint *ep = op->ep;

	if (!ep)
		return;
	op->ep = NULL;
	ep->landed++;
	if (ep->gone && ep->landed == ep->posted)
		endpoint_free(fifo, ep);
}

/* Fail the operation in progress if it names @ep. */
static void end_operation(struct vrnic_fifo *fifo, const struct vrnic_endpoint *ep)
{
	struct vrnic_nop *op = &fifo->inject.op;

	if (!op->active || op->over || op->ep != ep)
		return;
	vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, VRNIC_VERR_ENDPOINT);
	/* the operation may have waited for its next try: the ring goes on now */
	fifo->inject.run.wait_until = 0;
}

/*
 * The operation in progress fails now if its descriptor names the endpoint. A later descriptor that
 * names the endpoint fails when the engine comes to the descriptor, unless a new endpoint has the
 * number by then. The ring goes on behind a failed descriptor.
 *
 * Puts go on. No other endpoint gets the number before the last record that names it was delivered.
 */
static int endpoint_destroy(struct ib_uobject *uobj,
			    enum rdma_remove_reason why,
			    struct uverbs_attr_bundle *attrs)
{
	struct vrnic_endpoint *ep = uobj->object;
	struct vrnic_fifo *fifo = ep->fifo;

	mutex_lock(&fifo->ctrl);
	vrnic_park(&fifo->inject.run);
	WRITE_ONCE(ep->gone, true);
	end_operation(fifo, ep);
	vrnic_lane_leave(ep);
	endpoint_unwatch(ep);
	vrnic_bindings_drop(ep);
	if (ep->link)
		vrnic_link_leave(ep->link);
	if (ep->landed == ep->posted)
		endpoint_free(fifo, ep);
	vrnic_unpark(&fifo->inject.run);
	mutex_unlock(&fifo->ctrl);
	vrnic_queue(&fifo->inject.run);
	vrnic_count_add(fifo->dev, ENDPOINTS, -1);
	vrnic_fifo_put(fifo);
	return 0;
}

static u64 endpoint_host(const struct vrnic_endpoint *ep)
{
	return ep->link ? vrnic_host_number(ep->link->host) : 0;
}

/*
 * Make an endpoint for @link, or, if @link is NULL, for @peer on this host. On success the endpoint
 * owns the caller's use of @link.
 */
static int endpoint_new(struct vrnic_fifo *fifo, struct vrnic_fifo *peer,
			struct vrnic_link *link, struct vrnic_endpoint **result)
{
	struct vrnic_endpoint *ep;
	int err;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	if (!ep)
		return -ENOMEM;
	ep->fifo = fifo;
	ep->peer = link ? link->peer : peer->address;
	ep->link = link;
	INIT_LIST_HEAD(&ep->watch);
	INIT_LIST_HEAD(&ep->bindings);
	ep->notice = vrnic_notice_new(&ep->peer, endpoint_host(ep), GFP_KERNEL_ACCOUNT);
	err = ep->notice ? endpoint_watch(ep, peer) : -ENOMEM;
	if (err)
		goto free;
	/* xa_alloc() publishes the endpoint, so this comes last */
	err = xa_alloc_bh(&fifo->endpoints, &ep->number, ep, xa_limit_31b,
			  GFP_KERNEL_ACCOUNT);
	if (err)
		goto free;
	refcount_inc(&fifo->refs);
	vrnic_count(fifo->dev, ENDPOINTS);
	*result = ep;
	return 0;

free:
	endpoint_unwatch(ep);
	kfree(ep);
	return err;
}

static int endpoint_wired(struct vrnic_fifo *fifo,
			  const struct vrnic_address *address,
			  struct vrnic_endpoint **ep)
{
	struct vrnic_link *link = vrnic_link_get(fifo, address);
	int err;

	if (IS_ERR(link))
		return PTR_ERR(link);
	err = endpoint_new(fifo, NULL, link, ep);
	if (err) {
		mutex_lock(&fifo->ctrl);
		vrnic_link_leave(link);
		mutex_unlock(&fifo->ctrl);
	}
	return err;
}

static int endpoint_near(struct vrnic_fifo *fifo,
			 const struct vrnic_address *address,
			 struct vrnic_endpoint **ep)
{
	struct vrnic_fifo *peer = address_get(fifo->dev, address);
	int err;

	if (IS_ERR(peer))
		return PTR_ERR(peer);
	err = endpoint_new(fifo, peer, NULL, ep);
	vrnic_fifo_put(peer);
	return err;
}

static int UVERBS_HANDLER(VRNIC_METHOD_ENDPOINT_CREATE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_ENDPOINT_CREATE_HANDLE);
	struct vrnic_fifo *fifo = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_ENDPOINT_CREATE_FIFO);
	struct vrnic_create_endpoint_resp resp = {};
	struct vrnic_address address;
	struct vrnic_endpoint *ep;
	int err;

	err = uverbs_copy_from(&address, attrs,
			       VRNIC_ATTR_ENDPOINT_CREATE_ADDRESS);
	if (err)
		return err;
	if (endpoint_needs_wire(fifo->dev, &address))
		err = endpoint_wired(fifo, &address, &ep);
	else
		err = endpoint_near(fifo, &address, &ep);
	if (err)
		return err;
	uobj->object = ep;
	resp.endpoint = ep->number;
	resp.host = endpoint_host(ep);
	uverbs_finalize_uobj_create(attrs, VRNIC_ATTR_ENDPOINT_CREATE_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs,
					     VRNIC_ATTR_ENDPOINT_CREATE_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_ENDPOINT_CREATE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_ENDPOINT_CREATE_HANDLE,
			VRNIC_OBJECT_ENDPOINT, UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_IDR(VRNIC_ATTR_ENDPOINT_CREATE_FIFO, VRNIC_OBJECT_FIFO,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_ENDPOINT_CREATE_ADDRESS,
			   UVERBS_ATTR_STRUCT(struct vrnic_address, secret),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_ENDPOINT_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_endpoint_resp,
					       endpoint),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	VRNIC_METHOD_ENDPOINT_DESTROY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_ENDPOINT_DESTROY_HANDLE,
			VRNIC_OBJECT_ENDPOINT, UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_ENDPOINT,
	UVERBS_TYPE_ALLOC_IDR(endpoint_destroy),
	&UVERBS_METHOD(VRNIC_METHOD_ENDPOINT_CREATE),
	&UVERBS_METHOD(VRNIC_METHOD_ENDPOINT_DESTROY));

const struct uapi_definition vrnic_endpoint_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_ENDPOINT),
	{},
};
