// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FIFOs: each is an injection FIFO with a reception FIFO. Peers find a FIFO by its number, and take
 * references on it. Processes of this host can also find a FIFO by its name.
 */

#include <linux/eventfd.h>
#include <linux/hashtable.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "engine/engine.h"
#include "lib/ids_find.h"
#include "mem/mmap.h"
#include "native/link.h"
#include "native/native.h"
#include "queue/ring.h"
#include "queue/ring_mem.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/*
 * A reception ring has room for two of the longest records, so such a record and its padding fit if
 * more than half of the ring is free: see receive_has_room().
 */
#define RECORD_SLOTS_MAX	(1 + VRNIC_MAX_MESSAGE / VRNIC_SLOT_SIZE)
#define RECEIVE_SLOTS_MIN	(2 * RECORD_SLOTS_MAX + 2)

/* All FIFOs of this host by number. Read under RCU. */
static struct vrnic_ids vrnic_fifos;

/* FIFOs of this host that have a name; protected by names_lock. */
static DEFINE_HASHTABLE(names, 8);
static DEFINE_SPINLOCK(names_lock);

/*
 * Key of name_hash(). get_random_once() would patch the kernel's code when it is first called,
 * which an emulated CPU may not survive (QEMU 7.2).
 */
static siphash_key_t names_key __ro_after_init;

int vrnic_fifos_init(void)
{
	get_random_bytes(&names_key, sizeof(names_key));
	return vrnic_ids_init(&vrnic_fifos);
}

void vrnic_fifos_exit(void)
{
	vrnic_ids_exit(&vrnic_fifos);
}

/**
 * vrnic_fifo_get() - find a FIFO by its number
 * @id: number that a user or a peer claims
 *
 * Return: the FIFO with a reference held, or NULL.
 */
struct vrnic_fifo *vrnic_fifo_get(u32 id)
{
	struct vrnic_fifo *fifo;

	rcu_read_lock();
	fifo = vrnic_ids_find(&vrnic_fifos, id);
	if (fifo && !refcount_inc_not_zero(&fifo->refs))
		fifo = NULL;
	rcu_read_unlock();
	return fifo;
}

void vrnic_fifo_put(struct vrnic_fifo *fifo)
{
	if (refcount_dec_and_test(&fifo->refs))
		complete(&fifo->gone);
}

static struct vrnic_fifo *fifo_get_own(u64 owner, u32 id)
{
	struct vrnic_fifo *fifo = vrnic_fifo_get(id);

	if (!fifo || fifo->owner == owner)
		return fifo;
	vrnic_fifo_put(fifo);
	return NULL;
}

/* A doorbell for a FIFO of @owner: wake who waits for room. Return: the FIFO, with a reference. */
static struct vrnic_fifo *fifo_rung(u64 owner, u32 id)
{
	struct vrnic_fifo *fifo = fifo_get_own(owner, id);

	if (!fifo)
		return NULL;
	vrnic_count(fifo->dev, DOORBELLS);
	if (!list_empty_careful(&fifo->stalled))
		vrnic_stalled_wake(fifo, false);
	return fifo;
}

/*
 * Run the FIFO's injection ring in this task. Return: pages of this process that the run needs,
 * which the caller faults in without a reference on the FIFO; NULL: none; or ERR_PTR(-EINVAL).
 */
static struct vrnic_virtual *fifo_advance(u64 owner, u32 id)
{
	struct vrnic_fifo *fifo = fifo_rung(owner, id);
	struct vrnic_virtual *virt;

	if (!fifo)
		return ERR_PTR(-EINVAL);
	vrnic_kick(&fifo->inject.run);
	virt = vrnic_virtual_faults(&fifo->inject);
	vrnic_fifo_put(fifo);
	return virt;
}

#define FAULT_TURNS	4	/* faults in one system call; then a thread goes on */

/*
 * VRNIC_ADVANCE: run the ring. If pages of the process are missing, this task faults them in
 * between two runs. It holds nothing then, so the task may be killed, and the FIFO and its device
 * may go.
 */
int vrnic_fifo_advance(u64 owner, u32 id)
{
	struct vrnic_virtual *virt = fifo_advance(owner, id);
	int turns = FAULT_TURNS;

	if (IS_ERR(virt))
		return PTR_ERR(virt);
	while (!IS_ERR_OR_NULL(virt)) {
		vrnic_virtual_fault(virt, !--turns);
		virt = turns ? fifo_advance(owner, id) : NULL;
	}
	return 0;
}

/* VRNIC_ADVANCE_DEFERRED: have a thread run the ring. */
int vrnic_fifo_advance_deferred(u64 owner, u32 id)
{
	struct vrnic_fifo *fifo = fifo_rung(owner, id);

	if (!fifo)
		return -EINVAL;
	vrnic_queue(&fifo->inject.run);
	vrnic_fifo_put(fifo);
	return 0;
}

static bool has_record(struct vrnic_fifo *fifo)
{
	return vrnic_ring_used(&fifo->receive) || READ_ONCE(fifo->dead);
}

/* VRNIC_WAIT for a record. Return: 0, -ETIME, -EINTR, -EINVAL or -ECANCELED. */
int vrnic_fifo_wait(u64 owner, const struct vrnic_wait *wait)
{
	struct vrnic_fifo *fifo = fifo_get_own(owner, wait->id);
	int ret;

	if (!fifo)
		return -EINVAL;
	ret = wait_event_interruptible_hrtimeout(fifo->wait, has_record(fifo),
						 vrnic_timeout(wait->timeout_ns));
	if (READ_ONCE(fifo->dead))
		ret = -ECANCELED;
	vrnic_fifo_put(fifo);
	return ret == -ERESTARTSYS ? -EINTR : ret;
}

/* ---- names ---- */

static u32 name_hash(const char *name, u32 task, u32 context)
{
	/* users choose all three, and must not be able to put many FIFOs into one bucket */
	return siphash_3u32(siphash(name, strlen(name), &names_key), task, context, &names_key);
}

/* Names are unique within a network namespace, because its FIFOs can reach each other. */
static struct vrnic_fifo *find_name(const struct vrnic_dev *dev, const char *name, u32 task,
				    u32 context)
{
	struct vrnic_fifo *fifo;

	lockdep_assert_held(&names_lock);
	hash_for_each_possible(names, fifo, named,
			       name_hash(name, task, context))
		if (fifo->address.task == task && fifo->context == context &&
		    !strcmp(fifo->name, name) &&
		    vrnic_same_net(fifo->dev, dev))
			return fifo;
	return NULL;
}

static int name_add(struct vrnic_fifo *fifo)
{
	int err = -EEXIST;

	if (!fifo->name[0])
		return 0;
	spin_lock(&names_lock);
	if (!find_name(fifo->dev, fifo->name, fifo->address.task, fifo->context)) {
		hash_add(names, &fifo->named,
			 name_hash(fifo->name, fifo->address.task, fifo->context));
		err = 0;
	}
	spin_unlock(&names_lock);
	return err;
}

static void name_del(struct vrnic_fifo *fifo)
{
	spin_lock(&names_lock);
	hash_del(&fifo->named);
	spin_unlock(&names_lock);
}

static bool may_find(const struct vrnic_fifo *fifo)
{
	return fifo->open || uid_eq(fifo->euid, current_euid()) ||
	       capable(CAP_IPC_OWNER);
}

static int fifo_lookup(struct vrnic_dev *dev, const struct vrnic_lookup_req *req,
		       struct vrnic_address *address)
{
	struct vrnic_fifo *fifo;
	int err = 0;

	spin_lock(&names_lock);
	fifo = find_name(dev, req->name, req->task, req->context);
	/* one that is being created has no number yet */
	if (!fifo || !fifo->address.fifo)
		err = -ENOENT;
	else if (!may_find(fifo))
		err = -EACCES;
	else
		*address = fifo->address;
	spin_unlock(&names_lock);
	return err;
}

static bool name_is_good(const char *name)
{
	return strnlen(name, VRNIC_CLIENT_NAME) < VRNIC_CLIENT_NAME;
}

static int UVERBS_HANDLER(VRNIC_METHOD_FIFO_LOOKUP)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct vrnic_address address;
	struct vrnic_lookup_req req;
	int err;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	err = uverbs_copy_from(&req, attrs, VRNIC_ATTR_FIFO_LOOKUP_REQ);
	if (err)
		return err;
	if (!name_is_good(req.name) || !req.name[0])
		return -EINVAL;
	err = fifo_lookup(to_vdev(uctx->device), &req, &address);
	if (err)
		return err;
	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_FIFO_LOOKUP_RESP,
					     &address, sizeof(address));
}

/* ---- the object ---- */

static int check_req(const struct vrnic_create_fifo_req *req)
{
	if (!name_is_good(req->name) || req->flags & ~VRNIC_FIFO_OPEN ||
	    req->reserved)
		return -EINVAL;
	if (req->inject_slots < VRNIC_FIFO_SLOTS_MIN ||
	    req->inject_slots > VRNIC_FIFO_SLOTS_MAX ||
	    req->receive_slots < RECEIVE_SLOTS_MIN ||
	    req->receive_slots > VRNIC_FIFO_SLOTS_MAX)
		return -EINVAL;
	return 0;
}

static int address_init(struct vrnic_fifo *fifo,
			const struct vrnic_create_fifo_req *req)
{
	union ib_gid gid;
	int err;

	err = rdma_query_gid(&fifo->dev->ibdev, 1, req->gid_index, &gid);
	if (err)
		return err;
	memcpy(fifo->address.gid, &gid, sizeof(gid));
	fifo->address.task = req->task;
	fifo->address.secret = get_random_u64();
	return 0;
}

static struct vrnic_fifo *fifo_new(struct vrnic_ucontext *uc, struct ib_pd *pd,
				   const struct vrnic_create_fifo_req *req)
{
	struct vrnic_fifo *fifo = kzalloc(sizeof(*fifo), GFP_KERNEL_ACCOUNT);

	if (!fifo)
		return NULL;
	refcount_set(&fifo->refs, 1);
	init_completion(&fifo->gone);
	fifo->dev = to_vdev(pd->device);
	fifo->pd = pd;
	fifo->shell.device = pd->device;
	fifo->shell.pd = pd;
	fifo->owner = uc->number;
	fifo->mm = uc->mm;
	fifo->memcg = uc->memcg;
	fifo->crew = uc->crew;
	fifo->user = uc->user;
	strscpy(fifo->name, req->name, sizeof(fifo->name));
	fifo->context = req->context;
	fifo->open = req->flags & VRNIC_FIFO_OPEN;
	fifo->euid = current_euid();
	INIT_HLIST_NODE(&fifo->named);
	mutex_init(&fifo->ctrl);
	xa_init_flags(&fifo->endpoints, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
	spin_lock_init(&fifo->receive_lock);
	init_waitqueue_head(&fifo->wait);
	INIT_LIST_HEAD(&fifo->lanes);
	INIT_LIST_HEAD(&fifo->stalled);
	INIT_LIST_HEAD(&fifo->watchers);
	INIT_LIST_HEAD(&fifo->links);
	INIT_LIST_HEAD(&fifo->ways);
	vrnic_injector_init(&fifo->inject, fifo, &vrnic_inject_ops);
	vrnic_rgets_init(fifo);
	vrnic_hellos_init(fifo);
	return fifo;
}

static int ring_init(struct vrnic_ring *ring, u32 slots, struct ib_ucontext *uctx,
		     struct vrnic_ring_info *info)
{
	int err;

	err = vrnic_ring_alloc(ring, slots, VRNIC_SLOT_SIZE, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	return vrnic_ring_export(ring, uctx, true, info);
}

static int eventfd_init(struct vrnic_fifo *fifo, s32 fd)
{
	struct eventfd_ctx *eventfd;

	if (fd == -1)
		return 0;
	eventfd = eventfd_ctx_fdget(fd);
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	fifo->eventfd = eventfd;
	return 0;
}

/* If this fails, the caller calls fifo_free(), which frees what was made so far. */
static int fifo_init(struct vrnic_fifo *fifo, struct ib_ucontext *uctx,
		     const struct vrnic_create_fifo_req *req,
		     struct vrnic_create_fifo_resp *resp)
{
	int err;

	err = address_init(fifo, req);
	if (err)
		return err;
	err = ring_init(&fifo->ring, req->inject_slots, uctx, &resp->inject);
	if (err)
		return err;
	err = ring_init(&fifo->receive, req->receive_slots, uctx, &resp->receive);
	if (err)
		return err;
	err = eventfd_init(fifo, req->eventfd);
	if (err)
		return err;
	vrnic_ring_spare_doorbell(&fifo->receive);
	vrnic_ring_ask_doorbell(&fifo->ring);
	return 0;
}

/*
 * Make the FIFO visible. The number is the last step: doorbells and datagrams that claim it may
 * queue the FIFO and wait for it, and only fifo_destroy() stops all that. Nobody finds the name
 * before.
 */
static int fifo_publish(struct vrnic_fifo *fifo)
{
	int err;

	err = name_add(fifo);
	if (err)
		return err;
	err = vrnic_ids_alloc(&vrnic_fifos, fifo, GFP_KERNEL_ACCOUNT, 1, U32_MAX - 1,
			      &fifo->id);
	if (err) {
		name_del(fifo);
		return err;
	}
	/* no peer knows the secret yet, so none can use @address before it is complete */
	spin_lock(&names_lock);
	fifo->address.fifo = fifo->id;
	spin_unlock(&names_lock);
	return 0;
}

static void fifo_free(struct vrnic_fifo *fifo)
{
	vrnic_lanes_drain(fifo);
	vrnic_injector_free(&fifo->inject);
	vrnic_lanes_free(fifo);
	vrnic_rgets_free(fifo);
	if (fifo->eventfd)
		eventfd_ctx_put(fifo->eventfd);
	vrnic_ring_free(&fifo->ring);
	vrnic_ring_free(&fifo->receive);
	xa_destroy(&fifo->endpoints);
	kfree_rcu(fifo, rcu);
}

/* Stop the FIFO's injectors and links, and wake the tasks and injectors that wait for the FIFO. */
static void fifo_stop(struct vrnic_fifo *fifo)
{
	mutex_lock(&fifo->ctrl);
	WRITE_ONCE(fifo->dead, true);
	vrnic_park(&fifo->inject.run);
	vrnic_lanes_park(fifo);
	vrnic_rgets_park(fifo);
	mutex_unlock(&fifo->ctrl);
	vrnic_hellos_stop(fifo);
	vrnic_links_kill(fifo);
	wake_up_all(&fifo->wait);
	vrnic_unstall(&fifo->inject);
	vrnic_lanes_unstall(fifo);
	vrnic_rgets_unstall(fifo);
	vrnic_stalled_wake(fifo, true);
}

/*
 * First make the FIFO unfindable, then stop its own injectors, then wait for the references of
 * peers' injectors, which last for one run at most, and of links. The FIFO's endpoints have
 * references, too. So they go first: if the process dies, the uverbs core tries again after -EBUSY.
 */
static int fifo_destroy(struct ib_uobject *uobj, enum rdma_remove_reason why,
			struct uverbs_attr_bundle *attrs)
{
	struct vrnic_fifo *fifo = uobj->object;

	if (vrnic_endpoints_any(fifo))
		return -EBUSY;
	name_del(fifo);
	vrnic_ids_free(&vrnic_fifos, fifo->id);
	fifo_stop(fifo);
	vrnic_watchers_tell(fifo);
	vrnic_fifo_put(fifo);
	wait_for_completion(&fifo->gone);
	atomic_dec(&fifo->pd->usecnt);
	vrnic_count_add(fifo->dev, FIFOS, -1);
	fifo_free(fifo);
	return 0;
}

static int UVERBS_HANDLER(VRNIC_METHOD_FIFO_CREATE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_FIFO_CREATE_HANDLE);
	struct ib_pd *pd = uverbs_attr_get_obj(attrs,
					       VRNIC_ATTR_FIFO_CREATE_PD);
	struct vrnic_ucontext *uc = to_vuc(attrs->context);
	struct vrnic_create_fifo_resp resp = {};
	struct vrnic_create_fifo_req req;
	struct vrnic_fifo *fifo;
	int err;

	err = uverbs_copy_from(&req, attrs, VRNIC_ATTR_FIFO_CREATE_REQ);
	if (err)
		return err;
	err = check_req(&req);
	if (err)
		return err;
	/* VIRTUAL descriptors name memory of the process that opened uc: no other may post them */
	if (current->mm != uc->mm)
		return -EPERM;
	fifo = fifo_new(uc, pd, &req);
	if (!fifo)
		return -ENOMEM;
	err = fifo_init(fifo, &uc->ibuc, &req, &resp);
	if (err)
		goto err_free;
	err = fifo_publish(fifo);
	if (err)
		goto err_free;
	atomic_inc(&pd->usecnt);
	vrnic_count(fifo->dev, FIFOS);
	uobj->object = fifo;
	resp.address = fifo->address;
	uverbs_finalize_uobj_create(attrs, VRNIC_ATTR_FIFO_CREATE_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_FIFO_CREATE_RESP,
					     &resp, sizeof(resp));

err_free:
	fifo_free(fifo);	/* nobody has found it */
	return err;
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_FIFO_CREATE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_FIFO_CREATE_HANDLE, VRNIC_OBJECT_FIFO,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_IDR(VRNIC_ATTR_FIFO_CREATE_PD, UVERBS_OBJECT_PD,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_FIFO_CREATE_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_create_fifo_req,
					      reserved),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_FIFO_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_fifo_resp,
					       address),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	VRNIC_METHOD_FIFO_DESTROY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_FIFO_DESTROY_HANDLE, VRNIC_OBJECT_FIFO,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_FIFO_LOOKUP,
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_FIFO_LOOKUP_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_lookup_req, context),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_FIFO_LOOKUP_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_address, secret),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_FIFO,
	UVERBS_TYPE_ALLOC_IDR(fifo_destroy),
	&UVERBS_METHOD(VRNIC_METHOD_FIFO_CREATE),
	&UVERBS_METHOD(VRNIC_METHOD_FIFO_DESTROY),
	&UVERBS_METHOD(VRNIC_METHOD_FIFO_LOOKUP));

const struct uapi_definition vrnic_fifo_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_FIFO),
	{},
};
