// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process's context, and its doorbell: a file of the uverbs core's FD kind,
 * so that ringing it costs one ioctl and nothing of the uverbs dispatch.
 */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/mm.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "native/native.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

struct ib_ucontext *vrnic_udata_ucontext(struct ib_udata *udata)
{
	struct vrnic_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct vrnic_ucontext, ibuc);

	return &uc->ibuc;
}

/* Nothing is expected in a command's driver part: true if there is something. */
int vrnic_udata_empty(struct ib_udata *udata)
{
	return udata && udata->inlen &&
	       !ib_is_udata_cleared(udata, 0, udata->inlen);
}

/**
 * vrnic_udata_request() - read a command's driver part
 * @udata: the command's; NULL: a kernel consumer's
 * @req: the result; zero where the library has nothing
 * @size: of @req
 * @oldest: of the driver part of the first library that spoke this ABI
 *
 * The library may be older than the module, or newer: then it must not ask for what the
 * module does not know.
 *
 * Return: 0 or a negative errno.
 */
int vrnic_udata_request(struct ib_udata *udata, void *req, size_t size,
			size_t oldest)
{
	memset(req, 0, size);
	if (!udata || !udata->inlen)
		return 0;
	if (udata->inlen < oldest)
		return -EINVAL;
	if (udata->inlen > size &&
	    !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

/**
 * vrnic_udata_respond() - answer a command
 * @udata: the command's
 * @resp: the answer, of which an older library takes the beginning
 * @size: of @resp
 * @oldest: of the answer that the first library takes that spoke this ABI
 *
 * Return: 0 or a negative errno.
 */
int vrnic_udata_respond(struct ib_udata *udata, void *resp, size_t size,
			size_t oldest)
{
	if (udata->outlen < oldest)
		return -EINVAL;
	return ib_copy_to_udata(udata, resp, min(size, udata->outlen));
}

int vrnic_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	struct vrnic_alloc_ucontext_resp resp = {
		.abi_version = VRNIC_ABI_VERSION,
		.max_inline = VRNIC_MAX_INLINE,
		.max_sge = VRNIC_MAX_SGE,
		.features = VRNIC_FEATURE_SQ_DONE,
	};
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
	mutex_init(&uc->counter_lock);
	INIT_LIST_HEAD(&uc->counter_pages);
	uc->mm = current->mm;
	mmgrab(uc->mm);
	return 0;
}

/* The core has destroyed what was made in the context. */
void vrnic_dealloc_ucontext(struct ib_ucontext *uctx)
{
	struct vrnic_ucontext *uc = to_vuc(uctx);

	vrnic_counter_pages_free(uc);
	mmdrop(uc->mm);
	vrnic_crew_put(uc->crew);
}

/* The core unmaps the rings itself; their memory is ordinary memory. */
void vrnic_disassociate_ucontext(struct ib_ucontext *uctx)
{
}

/**
 * struct vrnic_doorbell - an open doorbell file
 * @uobj: the core's part
 * @uctx: context whose queue pairs it may ring; NULL once that is gone.
 *	It is only compared, never followed.
 */
struct vrnic_doorbell {
	struct ib_uobject uobj;
	struct ib_ucontext *uctx;
};

static long doorbell_ring(struct vrnic_doorbell *db, u32 qpn)
{
	struct ib_ucontext *uctx = READ_ONCE(db->uctx);
	struct vrnic_qp *qp;
	long ret = -EINVAL;

	if (!uctx)
		return -EIO;
	qp = vrnic_qp_get(qpn);
	if (!qp)
		return -EINVAL;
	if (qp->uctx == uctx) {
		vrnic_count(qp->dev, DOORBELLS);
		vrnic_kick(&qp->run);
		ret = 0;
	}
	vrnic_qp_put(qp);
	return ret;
}

static long doorbell_advance(struct vrnic_doorbell *db, u32 fifo)
{
	struct ib_ucontext *uctx = READ_ONCE(db->uctx);

	return uctx ? vrnic_fifo_advance(uctx, fifo) : -EIO;
}

static long doorbell_wait(struct vrnic_doorbell *db, void __user *arg)
{
	struct ib_ucontext *uctx = READ_ONCE(db->uctx);
	struct vrnic_wait wait;

	if (!uctx)
		return -EIO;
	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	switch (wait.what) {
	case VRNIC_WAIT_COUNTER:
		return vrnic_counter_wait(uctx, &wait);
	case VRNIC_WAIT_FIFO:
		return vrnic_fifo_wait(uctx, &wait);
	default:
		return -EINVAL;
	}
}

static long doorbell_count(struct vrnic_doorbell *db, void __user *arg)
{
	struct ib_ucontext *uctx = READ_ONCE(db->uctx);
	struct vrnic_count count;

	if (!uctx)
		return -EIO;
	if (copy_from_user(&count, arg, sizeof(count)))
		return -EFAULT;
	return vrnic_counter_count(uctx, &count);
}

static long doorbell_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct vrnic_doorbell *db = file->private_data;

	if (cmd == VRNIC_WAIT)
		return doorbell_wait(db, (void __user *)arg);
	if (cmd == VRNIC_COUNT)
		return doorbell_count(db, (void __user *)arg);
	if (cmd != VRNIC_DOORBELL && cmd != VRNIC_ADVANCE)
		return -ENOTTY;
	if (arg > U32_MAX)
		return -EINVAL;
	return cmd == VRNIC_DOORBELL ? doorbell_ring(db, arg) :
				       doorbell_advance(db, arg);
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

	WRITE_ONCE(db->uctx, NULL);
}

static int UVERBS_HANDLER(VRNIC_METHOD_DOORBELL_ALLOC)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_DOORBELL_ALLOC_FD);
	struct vrnic_doorbell *db =
		container_of(uobj, struct vrnic_doorbell, uobj);

	db->uctx = attrs->context;
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_DOORBELL_ALLOC,
	UVERBS_ATTR_FD(VRNIC_ATTR_DOORBELL_ALLOC_FD,
		       VRNIC_OBJECT_DOORBELL,
		       UVERBS_ACCESS_NEW,
		       UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_DOORBELL,
	UVERBS_TYPE_ALLOC_FD(sizeof(struct vrnic_doorbell),
			     doorbell_destroy, &doorbell_fops,
			     "[vrnic-doorbell]", O_RDWR),
	&UVERBS_METHOD(VRNIC_METHOD_DOORBELL_ALLOC));

const struct uapi_definition vrnic_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_DOORBELL),
	UAPI_DEF_CHAIN(vrnic_fifo_defs),
	UAPI_DEF_CHAIN(vrnic_endpoint_defs),
	UAPI_DEF_CHAIN(vrnic_counter_defs),
	UAPI_DEF_CHAIN(vrnic_type_defs),
	{},
};
