// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion counters: objects that count what completes on queue pairs. A process reads them in
 * memory that it maps, or asks the kernel.
 */

#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/vrnic-abi.h>

#include "base/objects.h"
#include "compat/comp_cntr.h"
#include "queue/qp.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

#define SAME_BIT(op) \
	static_assert(IB_QP_ATTACH_COMP_CNTR_OP_##op == BIT(VRNIC_COMP_##op))

SAME_BIT(SEND);
SAME_BIT(RECV);
SAME_BIT(REMOTE_RDMA_READ);
SAME_BIT(REMOTE_RDMA_WRITE);
SAME_BIT(RDMA_READ);
SAME_BIT(RDMA_WRITE);
static_assert(sizeof(struct vrnic_comp_cell) <= VRNIC_PLACE_BYTES);

static struct vrnic_comp_cntr *to_vcc(struct ib_comp_cntr *ibcc)
{
	return container_of(ibcc, struct vrnic_comp_cntr, ibcc);
}

/* Return: the value, or NULL: the core hands on what a program claims. */
static atomic64_t *entry_of(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry)
{
	struct vrnic_comp_cell *cell = to_vcc(ibcc)->comp.cell;

	switch (entry) {
	case IB_COMP_CNTR_ENTRY_COMP:
		return (atomic64_t *)&cell->completed;
	case IB_COMP_CNTR_ENTRY_ERR:
		return (atomic64_t *)&cell->errors;
	default:
		return NULL;
	}
}

int vrnic_query_comp_cntr_caps(struct ib_device *ibdev, struct ib_comp_cntr_caps *caps,
			       struct uverbs_attr_bundle *attrs)
{
	caps->max_value = U64_MAX;
	caps->max_counters = vrnic_object_max(VRNIC_OBJECT_COMP_CNTR);
	caps->supported_qp_attach_ops = BIT(VRNIC_COMP_OPS) - 1;
	return 0;
}

static int comp_cntr_tell(const struct vrnic_comp_cntr *cc, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_create_comp_cntr_resp resp = {
		.offset = vrnic_place_offset(&cc->place),
		.cell = cc->place.index,
	};

	/* absent if nobody wants to map the values */
	if (!uverbs_attr_is_valid(attrs, VRNIC_ATTR_COMP_CNTR_CREATE_RESP))
		return 0;
	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_COMP_CNTR_CREATE_RESP, &resp,
					     sizeof(resp));
}

int vrnic_create_comp_cntr(struct ib_comp_cntr *ibcc, struct uverbs_attr_bundle *attrs)
{
	struct vrnic_dev *dev = to_vdev(ibcc->device);
	struct vrnic_comp_cntr *cc = to_vcc(ibcc);
	u32 flags;
	int err;

	err = uverbs_get_flags32(&flags, attrs, VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS,
				 VRNIC_COMP_CNTR_BYTES);
	if (err)
		return err;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_COMP_CNTR, true))
		return -ENOMEM;
	/* as a ring: for all processes that have the file, and after fork() */
	err = vrnic_place_get(to_vuc(attrs->context), false, &cc->place);
	if (err)
		goto err_object;
	cc->comp.cell = cc->place.mem;
	cc->comp.bytes = flags & VRNIC_COMP_CNTR_BYTES;
	err = comp_cntr_tell(cc, attrs);
	if (err)
		goto err_place;
	return 0;

err_place:
	vrnic_place_put(&cc->place);
err_object:
	vrnic_object_put(dev, VRNIC_OBJECT_COMP_CNTR, true);
	return err;
}

/* No queue pair counts on it any more: the core refuses as long as one does. */
int vrnic_destroy_comp_cntr(struct ib_comp_cntr *ibcc)
{
	vrnic_place_put(&to_vcc(ibcc)->place);
	vrnic_object_put(to_vdev(ibcc->device), VRNIC_OBJECT_COMP_CNTR, true);
	return 0;
}

int vrnic_modify_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry,
			   enum ib_comp_cntr_modify_op op, u64 value)
{
	atomic64_t *to = entry_of(ibcc, entry);

	if (!to)
		return -EINVAL;
	switch (op) {
	case IB_COMP_CNTR_MODIFY_OP_SET:
		atomic64_set(to, value);
		return 0;
	case IB_COMP_CNTR_MODIFY_OP_INC:
		atomic64_add(value, to);
		return 0;
	default:
		return -EINVAL;
	}
}

int vrnic_read_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry, u64 *value)
{
	atomic64_t *from = entry_of(ibcc, entry);

	if (!from)
		return -EINVAL;
	*value = atomic64_read_acquire(from);
	return 0;
}

/*
 * The core has seen to it that none of @ops has a counter. Caller holds @qp->ctrl. In these states
 * nothing completes. On the way out of them modify_qp() parks the ring, and takes resp_lock: so
 * those who count see the counters.
 */
static int comp_attach(struct vrnic_qp *qp, struct vrnic_comp *comp, unsigned long ops)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	struct vrnic_qp_comp *all = qp->comp;
	int op;

	if (state != IB_QPS_RESET && state != IB_QPS_INIT)
		return -EINVAL;
	if (!all)
		all = kzalloc(sizeof(*all), GFP_KERNEL_ACCOUNT);
	if (!all)
		return -ENOMEM;
	for_each_set_bit(op, &ops, VRNIC_COMP_OPS)
		all->of[op] = comp;
	qp->comp = all;
	return 0;
}

/* A queue pair with work queues completes nothing itself. */
int vrnic_qp_attach_comp_cntr(struct ib_qp *ibqp, struct ib_comp_cntr *ibcc,
			      struct ib_qp_attach_comp_cntr_attr *attr)
{
	struct vrnic_qp *qp = to_vqp(ibqp);
	int err;

	if (qp->rss)
		return -EOPNOTSUPP;
	mutex_lock(&qp->ctrl);
	err = comp_attach(qp, &to_vcc(ibcc)->comp, attr->op_mask);
	mutex_unlock(&qp->ctrl);
	return err;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	vrnic_comp_cntr_create,
	UVERBS_OBJECT_COMP_CNTR,
	UVERBS_METHOD_COMP_CNTR_CREATE,
	UVERBS_ATTR_FLAGS_IN(VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS, enum vrnic_comp_cntr_flags,
			     UA_OPTIONAL),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_COMP_CNTR_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_comp_cntr_resp, cell),
			    UA_OPTIONAL));

const struct uapi_definition vrnic_comp_cntr_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_COMP_CNTR, &vrnic_comp_cntr_create),
	{},
};
