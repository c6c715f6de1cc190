// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Endpoints: the peers that a FIFO's descriptors can name. */

#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "native.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/* Is there a FIFO at this address, and may it be used? */
static int address_check(struct vrnic_dev *dev,
			 const struct vrnic_address *address)
{
	struct vrnic_fifo *peer;
	union ib_gid gid;
	int err = 0;

	memcpy(&gid, address->gid, sizeof(gid));
	if (!vrnic_gid_is_local(dev, &gid))
		return -EHOSTUNREACH;
	peer = vrnic_fifo_get(address->fifo);
	if (!peer)
		return -ENOENT;
	if (!vrnic_reaches(dev, &gid, peer->dev))
		err = -EHOSTUNREACH;
	else if (peer->address.secret != address->secret)
		err = -EACCES;
	vrnic_fifo_put(peer);
	return err;
}

/*
 * Descriptors that name the endpoint find it gone; the one under way, too. What
 * is in the ring behind it goes on.
 */
static int endpoint_destroy(struct ib_uobject *uobj,
			    enum rdma_remove_reason why,
			    struct uverbs_attr_bundle *attrs)
{
	struct vrnic_endpoint *ep = uobj->object;
	struct vrnic_fifo *fifo = ep->fifo;

	mutex_lock(&fifo->ctrl);
	vrnic_park(&fifo->inject.run);
	xa_erase(&fifo->endpoints, ep->number);
	vrnic_unpark(&fifo->inject.run);
	mutex_unlock(&fifo->ctrl);
	vrnic_queue(&fifo->inject.run);
	vrnic_count_add(fifo->dev, ENDPOINTS, -1);
	vrnic_fifo_put(fifo);
	kfree(ep);
	return 0;
}

static int endpoint_new(struct vrnic_fifo *fifo,
			const struct vrnic_address *address,
			struct vrnic_endpoint **result)
{
	struct vrnic_endpoint *ep;
	int err;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	if (!ep)
		return -ENOMEM;
	ep->fifo = fifo;
	ep->peer = *address;
	/* complete before it can be found: xa_alloc() publishes it */
	err = xa_alloc(&fifo->endpoints, &ep->number, ep, xa_limit_31b,
		       GFP_KERNEL_ACCOUNT);
	if (err) {
		kfree(ep);
		return err;
	}
	refcount_inc(&fifo->refs);
	vrnic_count(fifo->dev, ENDPOINTS);
	*result = ep;
	return 0;
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
	if (!err)
		err = address_check(fifo->dev, &address);
	if (!err)
		err = endpoint_new(fifo, &address, &ep);
	if (err)
		return err;
	uobj->object = ep;
	resp.endpoint = ep->number;
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
