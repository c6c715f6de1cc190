// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The context of an open uverbs file, and its doorbell. The doorbell is a file of its own, an FD
 * object of the uverbs core, so an ioctl on it goes straight to the driver, without the uverbs
 * dispatch.
 */

#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "base/udata.h"
#include "base/user.h"
#include "compat/comp_cntr.h"
#include "engine/engine.h"
#include "engine/threads.h"
#include "mem/dm.h"
#include "mem/place.h"
#include "native/native.h"
#include "native/type.h"
#include "queue/qp_table.h"
#include "queue/srq.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

#define FEATURES	(VRNIC_FEATURE_SQ_DONE | VRNIC_FEATURE_PLACED | VRNIC_FEATURE_DEFER | \
			 VRNIC_FEATURE_PIECES | VRNIC_FEATURE_WAIT | VRNIC_FEATURE_NULL)

/* What a library has to know of this module. */
#define ABOUT_MODULE						\
	((struct vrnic_alloc_ucontext_resp) {			\
		.abi_version = VRNIC_ABI_VERSION,		\
		.max_inline = VRNIC_MAX_INLINE,			\
		.max_sge = VRNIC_MAX_SGE,			\
		.features = FEATURES,				\
	})

/* Number of contexts that were made. */
static atomic64_t contexts = ATOMIC64_INIT(0);

int vrnic_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	struct vrnic_alloc_ucontext_resp resp = ABOUT_MODULE;
	struct vrnic_ucontext *uc = to_vuc(uctx);
	int err;

	if (vrnic_udata_empty(udata))
		return -EINVAL;
	err = vrnic_udata_respond(udata, &resp, sizeof(resp), 0);
	if (err)
		return err;
	uc->crew = vrnic_crew_get(&to_vdev(uctx->device)->engine);
	if (IS_ERR(uc->crew))
		return PTR_ERR(uc->crew);
	uc->user = vrnic_user_get(current_uid());
	if (IS_ERR(uc->user)) {
		vrnic_crew_put(uc->crew);
		return PTR_ERR(uc->user);
	}
	uc->number = atomic64_inc_return(&contexts);
	mutex_init(&uc->place_lock);
	INIT_LIST_HEAD(&uc->place_pages);
	uc->mm = current->mm;
	mmgrab(uc->mm);
	/* taken now, because uc->mm has no owner, and so no memcg, once this process exits */
	uc->memcg = get_mem_cgroup_from_mm(uc->mm);
	return 0;
}

/*
 * For a library that imports the context: in another process, or a second time in the same one. Its
 * rings, its doorbell file and its files for events are its own. The rest is shared: the numbers of
 * objects, the crew, and the process whose memory the native interface uses.
 */
int vrnic_query_ucontext(struct ib_ucontext *uctx, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_alloc_ucontext_resp resp = ABOUT_MODULE;

	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

/* The core has destroyed all objects of the context. */
void vrnic_dealloc_ucontext(struct ib_ucontext *uctx)
{
	struct vrnic_ucontext *uc = to_vuc(uctx);

	vrnic_place_pages_free(uc);
	mem_cgroup_put(uc->memcg);
	mmdrop(uc->mm);
	vrnic_user_put(uc->user);
	vrnic_crew_put(uc->crew);
}

/*
 * Nothing is left to do. The core destroys the objects, so nobody serves the rings, or reaches
 * device memory, any more. Processes may keep both mapped, since the page tables hold the pages.
 */
void vrnic_disassociate_ucontext(struct ib_ucontext *uctx)
{
}

/**
 * struct vrnic_doorbell - an open doorbell file
 * @uobj: the core's part
 * @owner: number of the context whose queue pairs, FIFOs and counters the file may name; 0 when the
 *	context has gone, which the file may outlive
 */
struct vrnic_doorbell {
	struct ib_uobject uobj;
	u64 owner;
};

static long doorbell_ring(struct vrnic_doorbell *db, u32 qpn)
{
	u64 owner = READ_ONCE(db->owner);
	struct vrnic_qp *qp;
	long ret = -EINVAL;

	if (!owner)
		return -EIO;
	qp = vrnic_qp_get(qpn);
	if (!qp)
		return -EINVAL;
	if (qp->owner == owner) {
		vrnic_count(qp->dev, DOORBELLS);
		vrnic_kick(&qp->run);
		ret = 0;
	}
	vrnic_qp_put(qp);
	return ret;
}

static long doorbell_advance(struct vrnic_doorbell *db, u32 fifo)
{
	u64 owner = READ_ONCE(db->owner);

	return owner ? vrnic_fifo_advance(owner, fifo) : -EIO;
}

static long doorbell_advance_deferred(struct vrnic_doorbell *db, u32 fifo)
{
	u64 owner = READ_ONCE(db->owner);

	return owner ? vrnic_fifo_advance_deferred(owner, fifo) : -EIO;
}

static long doorbell_wait(struct vrnic_doorbell *db, void __user *arg)
{
	u64 owner = READ_ONCE(db->owner);
	struct vrnic_wait wait;

	if (!owner)
		return -EIO;
	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	switch (wait.what) {
	case VRNIC_WAIT_COUNTER:
		return vrnic_counter_wait(owner, &wait);
	case VRNIC_WAIT_FIFO:
		return vrnic_fifo_wait(owner, &wait);
	default:
		return -EINVAL;
	}
}

static long doorbell_wait_group(struct vrnic_doorbell *db, void __user *arg)
{
	u64 owner = READ_ONCE(db->owner);
	struct vrnic_wait_group wait;
	long ret;

	if (!owner)
		return -EIO;
	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	ret = vrnic_group_wait(owner, &wait);
	return copy_to_user(arg, &wait, sizeof(wait)) ? -EFAULT : ret;
}

static long doorbell_count(struct vrnic_doorbell *db, void __user *arg)
{
	u64 owner = READ_ONCE(db->owner);
	struct vrnic_count count;

	if (!owner)
		return -EIO;
	if (copy_from_user(&count, arg, sizeof(count)))
		return -EFAULT;
	return vrnic_counter_count(owner, &count);
}

static long doorbell_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct vrnic_doorbell *db = file->private_data;

	switch (cmd) {
	case VRNIC_DOORBELL:
		return arg > U32_MAX ? -EINVAL : doorbell_ring(db, arg);
	case VRNIC_ADVANCE:
		return arg > U32_MAX ? -EINVAL : doorbell_advance(db, arg);
	case VRNIC_ADVANCE_DEFERRED:
		return arg > U32_MAX ? -EINVAL : doorbell_advance_deferred(db, arg);
	case VRNIC_WAIT:
		return doorbell_wait(db, (void __user *)arg);
	case VRNIC_WAIT_GROUP:
		return doorbell_wait_group(db, (void __user *)arg);
	case VRNIC_COUNT:
		return doorbell_count(db, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations doorbell_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = doorbell_ioctl,
	.compat_ioctl = doorbell_ioctl,
	.release = uverbs_uobject_fd_release,
};

static void doorbell_destroy(struct ib_uobject *uobj,
			     enum rdma_remove_reason why)
{
	struct vrnic_doorbell *db =
		container_of(uobj, struct vrnic_doorbell, uobj);

	WRITE_ONCE(db->owner, 0);
}

static int UVERBS_HANDLER(VRNIC_METHOD_DOORBELL_ALLOC)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_DOORBELL_ALLOC_FD);
	struct vrnic_doorbell *db =
		container_of(uobj, struct vrnic_doorbell, uobj);
	u32 features = FEATURES;

	db->owner = to_vuc(attrs->context)->number;
	if (!uverbs_attr_is_valid(attrs, VRNIC_ATTR_DOORBELL_ALLOC_FEATURES))
		return 0;
	return uverbs_copy_to(attrs, VRNIC_ATTR_DOORBELL_ALLOC_FEATURES,
			      &features, sizeof(features));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_DOORBELL_ALLOC,
	UVERBS_ATTR_FD(VRNIC_ATTR_DOORBELL_ALLOC_FD,
		       VRNIC_OBJECT_DOORBELL,
		       UVERBS_ACCESS_NEW,
		       UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_DOORBELL_ALLOC_FEATURES,
			    UVERBS_ATTR_TYPE(u32), UA_OPTIONAL));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_DOORBELL,
	UVERBS_TYPE_ALLOC_FD(sizeof(struct vrnic_doorbell),
			     doorbell_destroy, &doorbell_fops,
			     "[vrnic-doorbell]", O_RDWR),
	&UVERBS_METHOD(VRNIC_METHOD_DOORBELL_ALLOC));

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	vrnic_query_context,
	UVERBS_OBJECT_DEVICE,
	UVERBS_METHOD_QUERY_CONTEXT,
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_QUERY_CONTEXT_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_alloc_ucontext_resp, features),
			    UA_MANDATORY));

/* The core has found the domain in the context, and that is all that is asked. */
static int UVERBS_HANDLER(VRNIC_METHOD_PD_QUERY)(
	struct uverbs_attr_bundle *attrs)
{
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_PD_QUERY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_PD_QUERY_HANDLE,
			UVERBS_OBJECT_PD,
			UVERBS_ACCESS_READ,
			UA_MANDATORY));

ADD_UVERBS_METHODS(vrnic_pd_methods,
		   UVERBS_OBJECT_PD,
		   &UVERBS_METHOD(VRNIC_METHOD_PD_QUERY));

const struct uapi_definition vrnic_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &vrnic_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &vrnic_pd_methods),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_DOORBELL),
	UAPI_DEF_CHAIN(vrnic_srq_defs),
	VRNIC_COMP_CNTR_DEFS
	UAPI_DEF_CHAIN(vrnic_dm_defs),
	UAPI_DEF_CHAIN(vrnic_fifo_defs),
	UAPI_DEF_CHAIN(vrnic_endpoint_defs),
	UAPI_DEF_CHAIN(vrnic_counter_defs),
	UAPI_DEF_CHAIN(vrnic_group_defs),
	UAPI_DEF_CHAIN(vrnic_type_defs),
	{},
};
