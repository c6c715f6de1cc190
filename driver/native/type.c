// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Types (S3.1) are made by a process, and named by its descriptors. A table of the chunks that two
 * types have in common (struct vrnic_pair, S3.5) is computed once and kept.
 *
 * A table is found in a list of its local type. It is unlinked when the last reference on either
 * type is put, or when the local type gets too many tables. That may be at any time, as each
 * transfer that uses a table has a reference on it.
 */

#include <linux/memcontrol.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "lib/ids_find.h"
#include "lib/type_rows.h"
#include "native/type.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/*
 * Most rows of a table: 1.5 MiB of memory. VRNIC_COMMON_STEPS bounds the time that a run may spend
 * to compute a table, to about half a millisecond.
 */
#define PAIR_ROWS	32768

/* Most tables that have the same type as the local one. */
#define PAIRS_MAX	8

/* Last serial number. Unlike its number, the serial number of a type is never used again. */
static atomic64_t serials;

static DEFINE_SPINLOCK(pairs_lock);	/* protects the lists of tables of all types */

/*
 * Allocate memory that comes with @type, charged to the process that made @type, even if a thread
 * of the engine calls this. Return: memory for kvfree(), or NULL.
 */
void *vrnic_type_alloc(struct vrnic_type *type, size_t bytes)
{
	struct mem_cgroup *old = set_active_memcg(type->memcg);
	void *mem = kvmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	set_active_memcg(old);
	return mem;
}

/**
 * vrnic_type_get() - find a type
 * @dev: device
 * @owner: number of the context that names the type
 * @number: number that the context claims
 *
 * Return: type with a reference held, or NULL: the context has no such type.
 */
struct vrnic_type *vrnic_type_get(struct vrnic_dev *dev, u64 owner, u32 number)
{
	struct vrnic_type *type;

	rcu_read_lock();
	type = vrnic_ids_find(&dev->types, number);
	if (type && (type->owner != owner || !refcount_inc_not_zero(&type->refs)))
		type = NULL;
	rcu_read_unlock();
	return type;
}

void vrnic_pair_put(struct vrnic_pair *pair)
{
	if (refcount_dec_and_test(&pair->refs))
		kvfree_rcu(pair, rcu);
}

/* Unlink a table, so that no other transfer finds it. */
static void pair_unlink(struct vrnic_type *local, struct vrnic_pair *pair)
{
	lockdep_assert_held(&pairs_lock);
	list_del_rcu(&pair->in_local);
	list_del(&pair->in_remote);
	local->nr_pairs--;
	vrnic_pair_put(pair);
}

static struct vrnic_pair *first_pair(struct vrnic_type *type)
{
	return list_first_entry_or_null(&type->as_local, struct vrnic_pair, in_local) ?:
	       list_first_entry_or_null(&type->as_remote, struct vrnic_pair, in_remote);
}

static void pairs_unlink(struct vrnic_type *type)
{
	struct vrnic_pair *pair;

	spin_lock(&pairs_lock);
	while ((pair = first_pair(type))) {
		pair_unlink(pair->local, pair);
		/* there may be as many tables as the process has types */
		cond_resched_lock(&pairs_lock);
	}
	spin_unlock(&pairs_lock);
}

/**
 * vrnic_type_put() - give a reference back
 * @type: type
 *
 * Context: process context, may sleep.
 */
void vrnic_type_put(struct vrnic_type *type)
{
	if (!refcount_dec_and_test(&type->refs))
		return;
	/* no task has a reference on the type, so none can add a table of it */
	pairs_unlink(type);
	kvfree(type->rows.row);
	mem_cgroup_put(type->memcg);
	kfree_rcu(type, rcu);
}

/**
 * vrnic_pair_find() - find the table of the chunks that two types have in common
 * @local: type; the caller has a reference
 * @remote: type; the caller has a reference
 *
 * Return: the table, with a reference held; or NULL: nobody has asked for it lately.
 */
struct vrnic_pair *vrnic_pair_find(const struct vrnic_type *local,
				   const struct vrnic_type *remote)
{
	struct vrnic_pair *pair;

	rcu_read_lock();
	list_for_each_entry_rcu(pair, &local->as_local, in_local) {
		if (pair->remote == remote &&
		    refcount_inc_not_zero(&pair->refs)) {
			rcu_read_unlock();
			return pair;
		}
	}
	rcu_read_unlock();
	return NULL;
}

static struct vrnic_pair *pair_alloc(struct vrnic_type *local,
				     struct vrnic_type *remote,
				     enum vrnic_pair_kind kind, u32 nr)
{
	struct vrnic_pair *pair;

	pair = vrnic_type_alloc(local, struct_size(pair, row, nr));
	if (!pair)
		return NULL;
	refcount_set(&pair->refs, 1);
	pair->local = local;
	pair->remote = remote;
	pair->kind = kind;
	pair->nr = nr;
	return pair;
}

static struct vrnic_pair *pair_compute(struct vrnic_type *local,
				       struct vrnic_type *remote)
{
	struct vrnic_pair *pair;
	int err;
	u32 nr;

	if (vrnic_rows_equal(&local->rows, &remote->rows))
		return pair_alloc(local, remote, VRNIC_PAIR_SAME, 0);
	if (vrnic_rows_common(&local->rows, &remote->rows, NULL, PAIR_ROWS, &nr))
		return pair_alloc(local, remote, VRNIC_PAIR_LARGE, 0);
	pair = pair_alloc(local, remote, VRNIC_PAIR_TABLE, nr);
	if (!pair)
		return NULL;
	err = vrnic_rows_common(&local->rows, &remote->rows, pair->row, pair->nr, &nr);
	/* nothing checks the rows when they are used */
	if (WARN_ON_ONCE(err || nr != pair->nr)) {
		vrnic_pair_put(pair);
		return NULL;
	}
	vrnic_count(local->dev, TYPE_PAIRS);
	return pair;
}

/* Keep @pair; or drop it, and return the table that another task has added meanwhile. */
static struct vrnic_pair *pair_keep(struct vrnic_type *local,
				    struct vrnic_type *remote,
				    struct vrnic_pair *pair)
{
	struct vrnic_pair *other;

	spin_lock(&pairs_lock);
	other = vrnic_pair_find(local, remote);
	if (!other) {
		if (local->nr_pairs == PAIRS_MAX)
			pair_unlink(local, list_last_entry(&local->as_local,
							   struct vrnic_pair,
							   in_local));
		/* the reference of the lists */
		refcount_inc(&pair->refs);
		list_add_rcu(&pair->in_local, &local->as_local);
		list_add(&pair->in_remote, &remote->as_remote);
		local->nr_pairs++;
	}
	spin_unlock(&pairs_lock);
	if (!other)
		return pair;
	vrnic_pair_put(pair);
	return other;
}

/**
 * vrnic_pair_get() - find or compute the table of the chunks that two types have in common
 * @local: type; the caller has a reference
 * @remote: type with as many bytes; the caller has a reference
 *
 * Return: the table with a reference held; or NULL if there is no memory for it.
 */
struct vrnic_pair *vrnic_pair_get(struct vrnic_type *local,
				  struct vrnic_type *remote)
{
	struct vrnic_pair *pair = vrnic_pair_find(local, remote);

	if (pair)
		return pair;
	pair = pair_compute(local, remote);
	return pair ? pair_keep(local, remote, pair) : NULL;
}

static struct vrnic_type *type_alloc(struct vrnic_dev *dev, u64 owner)
{
	struct vrnic_type *type = kzalloc(sizeof(*type), GFP_KERNEL_ACCOUNT);

	if (!type)
		return NULL;
	refcount_set(&type->refs, 1);
	type->serial = atomic64_inc_return(&serials);
	type->dev = dev;
	type->owner = owner;
	type->memcg = get_mem_cgroup_from_mm(current->mm);
	INIT_LIST_HEAD(&type->as_local);
	INIT_LIST_HEAD(&type->as_remote);
	return type;
}

/* Free the memory of rows that vrnic_rows_check() has merged with others. */
static int rows_shrink(struct vrnic_rows *rows, u32 had)
{
	struct vrnic_type_row *row;

	if (rows->nr == had)
		return 0;
	row = kvmalloc_array(rows->nr, sizeof(*row), GFP_KERNEL_ACCOUNT);
	if (!row)
		return -ENOMEM;
	memcpy(row, rows->row, rows->nr * sizeof(*row));
	kvfree(rows->row);
	rows->row = row;
	return 0;
}

static int type_init(struct vrnic_type *type, struct vrnic_type_row *row, u32 nr)
{
	int err;

	type->rows.row = row;
	type->rows.nr = nr;
	err = vrnic_rows_check(&type->rows);
	if (err)
		return err;
	err = rows_shrink(&type->rows, nr);
	if (err)
		return err;
	return vrnic_ids_alloc(&type->dev->types, type, GFP_KERNEL_ACCOUNT, 1, U32_MAX,
			       &type->number);
}

/**
 * vrnic_type_create() - make a type
 * @dev: device
 * @owner: number of the context that is to have the type
 * @row: unchecked rows, from kvmalloc(); freed here if this fails, else with the type
 * @nr: number of rows; not 0
 *
 * Return: type, or an ERR_PTR of -EINVAL, -ENOMEM or -EBUSY.
 */
struct vrnic_type *vrnic_type_create(struct vrnic_dev *dev,
				     u64 owner, struct vrnic_type_row *row, u32 nr)
{
	struct vrnic_type *type = type_alloc(dev, owner);
	int err;

	if (!type) {
		kvfree(row);
		return ERR_PTR(-ENOMEM);
	}
	err = type_init(type, row, nr);
	if (err) {
		vrnic_type_put(type);
		return ERR_PTR(err);
	}
	vrnic_count(dev, TYPES);
	return type;
}

/**
 * vrnic_type_destroy() - let no other descriptor name the type
 * @type: type; freed after the last transfer that uses it
 */
void vrnic_type_destroy(struct vrnic_type *type)
{
	vrnic_ids_free(&type->dev->types, type->number);
	vrnic_count_add(type->dev, TYPES, -1);
	vrnic_type_put(type);
}

static struct vrnic_type_row *rows_read(const struct vrnic_create_type_req *req)
{
	struct vrnic_type_row *row;

	if (!req->nr_rows || req->nr_rows > VRNIC_TYPE_ROWS_MAX || req->reserved)
		return ERR_PTR(-EINVAL);
	row = kvmalloc_array(req->nr_rows, sizeof(*row), GFP_KERNEL_ACCOUNT);
	if (!row)
		return ERR_PTR(-ENOMEM);
	if (!copy_from_user(row, u64_to_user_ptr(req->rows),
			    array_size(req->nr_rows, sizeof(*row))))
		return row;
	kvfree(row);
	return ERR_PTR(-EFAULT);
}

static int type_uobj_destroy(struct ib_uobject *uobj,
			     enum rdma_remove_reason why,
			     struct uverbs_attr_bundle *attrs)
{
	vrnic_type_destroy(uobj->object);
	return 0;
}

static int UVERBS_HANDLER(VRNIC_METHOD_TYPE_CREATE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, VRNIC_ATTR_TYPE_CREATE_HANDLE);
	struct vrnic_create_type_resp resp = {};
	struct vrnic_create_type_req req;
	struct vrnic_type_row *row;
	struct vrnic_type *type;
	int err;

	err = uverbs_copy_from(&req, attrs, VRNIC_ATTR_TYPE_CREATE_REQ);
	if (err)
		return err;
	row = rows_read(&req);
	if (IS_ERR(row))
		return PTR_ERR(row);
	type = vrnic_type_create(to_vdev(attrs->context->device),
				 to_vuc(attrs->context)->number, row, req.nr_rows);
	if (IS_ERR(type))
		return PTR_ERR(type);
	resp.type = type->number;
	uobj->object = type;
	/* from here on the uverbs core destroys the type if this fails */
	uverbs_finalize_uobj_create(attrs, VRNIC_ATTR_TYPE_CREATE_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_TYPE_CREATE_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_TYPE_CREATE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_TYPE_CREATE_HANDLE,
			VRNIC_OBJECT_TYPE,
			UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_TYPE_CREATE_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_create_type_req,
					      reserved),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_TYPE_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_type_resp,
					       type),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	VRNIC_METHOD_TYPE_DESTROY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_TYPE_DESTROY_HANDLE,
			VRNIC_OBJECT_TYPE,
			UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_TYPE,
	UVERBS_TYPE_ALLOC_IDR(type_uobj_destroy),
	&UVERBS_METHOD(VRNIC_METHOD_TYPE_CREATE),
	&UVERBS_METHOD(VRNIC_METHOD_TYPE_DESTROY));

const struct uapi_definition vrnic_type_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_TYPE),
	{},
};
