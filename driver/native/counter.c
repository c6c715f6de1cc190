// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters: how many bytes are still to come (S1).
 *
 * The values of a counter lie in a page that the process maps. The process and the kernel add to
 * them with atomic instructions. The kernel reads them only to wake tasks and to report a failure,
 * so a process that overwrites its counters harms itself alone.
 *
 * A cell is used again an RCU grace period after its counter is gone, because an injector may still
 * count on a counter that it found under RCU before.
 */

#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "compat/compat.h"
#include "lib/ids_find.h"
#include "native/counter.h"
#include "native/native.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/* All counters of this host by number. Read under RCU. */
static struct vrnic_ids vrnic_counters;

int vrnic_counters_init(void)
{
	int err = vrnic_ids_init(&vrnic_counters);

	if (err)
		return err;
	err = vrnic_groups_init();
	if (err)
		vrnic_ids_exit(&vrnic_counters);
	return err;
}

void vrnic_counters_exit(void)
{
	vrnic_groups_exit();
	vrnic_ids_exit(&vrnic_counters);
	rcu_barrier();	/* for cell_release() */
}

/* ---- counting ---- */

/**
 * vrnic_counter_find() - find a counter by its number
 * @id: number that a user or a peer claims
 * @owner: number of the context that the counter must belong to
 *
 * Caller holds the RCU read lock, under which the counter stays.
 *
 * Return: the counter, or NULL.
 */
struct vrnic_counter *vrnic_counter_find(u32 id, u64 owner)
{
	struct vrnic_counter *c = vrnic_ids_find(&vrnic_counters, id);

	return c && c->owner == owner ? c : NULL;
}

/**
 * vrnic_counter_is_open() - may peers name this counter?
 * @id: number that a user or a peer claims
 * @owner: number of the context that the counter must belong to
 *
 * Return: false also if @owner has no such counter.
 */
bool vrnic_counter_is_open(u32 id, u64 owner)
{
	struct vrnic_counter *c;
	bool open;

	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	open = c && c->open;
	rcu_read_unlock();
	return open;
}

/* Does @owner have this counter, open or not? */
bool vrnic_counter_is_own(u32 id, u64 owner)
{
	bool own;

	rcu_read_lock();
	own = vrnic_counter_find(id, owner);
	rcu_read_unlock();
	return own;
}

static void counter_signal(struct vrnic_counter *c)
{
	/* pairs with the cmpxchg() in the handler of VRNIC_METHOD_COUNTER_EVENTFD */
	struct eventfd_ctx *eventfd = smp_load_acquire(&c->eventfd);

	if (eventfd)
		vrnic_eventfd_signal(eventfd);
}

/*
 * The counter has fallen by @n, to @left: wake tasks and injectors whose threshold is reached, and
 * signal the eventfd if the counter has just reached zero. The caller's atomic subtraction is a
 * full barrier. It pairs with the one of set_current_state() in counter_sleep(), and with that in
 * trigger_add() (native/trigger.c): the sleeper sees the new value, or we see its threshold.
 */
static void counter_wake(struct vrnic_counter *c, s64 left, u64 n)
{
	/* see above for the barrier that waitqueue_active() needs */
	if (left <= READ_ONCE(c->threshold) && waitqueue_active(&c->wait))
		wake_up_all(&c->wait);
	if (left <= READ_ONCE(c->trigger_level))
		vrnic_triggers_fire(c, left, VRNIC_FIRED_FELL, NULL);
	if (left <= 0 && (u64)-left < n)
		counter_signal(c);
}

/* Return: the bytes that remain. */
static s64 counter_fall(struct vrnic_counter *c, u64 n)
{
	if (unlikely(c->group))
		return vrnic_group_fall(c, n);
	return atomic64_sub_return(n, vrnic_counter_remaining(c));
}

/**
 * vrnic_counter_down() - count bytes that have come
 * @id: number that a user or a peer claims
 * @owner: number of the context that the counter must belong to
 * @n: number of bytes
 *
 * Return: 0 or -ENOENT.
 */
int vrnic_counter_down(u32 id, u64 owner, u64 n)
{
	struct vrnic_counter *c;

	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	if (c)
		counter_wake(c, counter_fall(c, n), n);
	rcu_read_unlock();
	return c ? 0 : -ENOENT;
}

/* Write the first failure into the cell, and only count later ones. */
static void cell_fail(struct vrnic_counter_cell *cell,
		      const struct vrnic_failure *failure, u64 placed, u32 times)
{
	u32 errors = READ_ONCE(cell->errors);

	if (!errors) {
		cell->status = failure->status;
		cell->opcode = failure->opcode;
		cell->vendor_err = failure->vendor_err;
		cell->cookie = failure->cookie;
		cell->placed = placed;
	}
	/* pairs with the acquire in vrnic_counter_failure(), and with the process's acquire */
	smp_store_release(&cell->errors, errors + times);
}

/**
 * vrnic_counter_note() - write a failure, of which vrnic_counter_tell() tells
 * @c: counter; the caller has the RCU read lock, under which it found it
 * @failure: the failure
 * @placed: bytes that the operation placed before it failed
 * @times: number of operations that failed, of which @failure describes the first
 */
void vrnic_counter_note(struct vrnic_counter *c, const struct vrnic_failure *failure, u64 placed,
			u32 times)
{
	spin_lock_bh(&c->lock);
	if (c->group)
		vrnic_group_fail_begin(c);
	cell_fail(c->cell, failure, placed, times);
	if (c->group)
		vrnic_group_fail_end(c);
	spin_unlock_bh(&c->lock);
}

/**
 * vrnic_counter_tell() - tell those who wait for a counter that it has failed
 * @c: counter; the caller still has the RCU read lock. Its owner chooses how many wait, so the
 *	caller holds no lock that others need
 * @failure: the failure that vrnic_counter_note() has written
 */
void vrnic_counter_tell(struct vrnic_counter *c, const struct vrnic_failure *failure)
{
	if (c->group)
		vrnic_group_fail_wake(c);
	vrnic_triggers_fire(c, S64_MIN, VRNIC_FIRED_FAILED, failure);
	wake_up_all(&c->wait);
	counter_signal(c);
}

/**
 * vrnic_counter_fail() - an operation failed that should have counted down a counter
 * @id: number that a user or a peer claims; 0: none
 * @owner: number of the context that the counter must belong to
 * @failure: the failure
 * @placed: bytes that the operation placed before it failed
 */
void vrnic_counter_fail(u32 id, u64 owner, const struct vrnic_failure *failure, u64 placed)
{
	struct vrnic_counter *c;

	if (!id)
		return;
	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	if (c) {
		vrnic_counter_note(c, failure, placed, 1);
		vrnic_counter_tell(c, failure);
	}
	rcu_read_unlock();
}

/**
 * vrnic_counter_failure() - read a counter's first failure, to report it in a record
 * @id: number that a user or a peer claims; 0: none
 * @owner: number of the context that the counter must belong to
 * @failure: status and reason are filled in, if the counter has failed
 *
 * Return: true if the counter has failed.
 */
bool vrnic_counter_failure(u32 id, u64 owner, struct vrnic_failure *failure)
{
	struct vrnic_counter *c;
	bool failed = false;

	if (!id)
		return false;
	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	/* the process may have written anything into the cell, so only report the values */
	if (c && smp_load_acquire(&c->cell->errors)) {
		failure->status = READ_ONCE(c->cell->status);
		failure->vendor_err = READ_ONCE(c->cell->vendor_err);
		failed = true;
	}
	rcu_read_unlock();
	return failed;
}

/**
 * vrnic_counter_count() - VRNIC_COUNT: the process itself counts bytes, or fails a counter
 * @owner: number of the process's context
 * @count: private copy of the request
 *
 * Return: 0; or -EINVAL: reserved members are not zero, or bytes are for an unknown counter.
 */
int vrnic_counter_count(u64 owner, const struct vrnic_count *count)
{
	struct vrnic_failure failure = {
		.cookie = count->cookie,
		.opcode = count->opcode,
		.status = count->status,
		.vendor_err = count->vendor_err,
	};

	if (count->reserved0 || count->reserved1)
		return -EINVAL;
	if (count->status == IB_WC_SUCCESS)
		return vrnic_counter_down(count->id, owner, count->bytes) ? -EINVAL : 0;
	vrnic_counter_fail(count->id, owner, &failure, count->bytes);
	return 0;
}

/* ---- waiting ---- */

static void cell_release(struct rcu_head *rcu)
{
	struct vrnic_counter *c = container_of(rcu, struct vrnic_counter, rcu);

	vrnic_place_put(&c->place);
	if (c->eventfd)
		eventfd_ctx_put(c->eventfd);
	kfree(c);
}

static void counter_put(struct vrnic_counter *c)
{
	if (refcount_dec_and_test(&c->refs))
		complete(&c->unused);
}

static struct vrnic_counter *counter_get(u32 id, u64 owner)
{
	struct vrnic_counter *c;

	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	if (c && !refcount_inc_not_zero(&c->refs))
		c = NULL;
	rcu_read_unlock();
	return c;
}

static bool counter_reached(struct vrnic_counter *c, s64 threshold)
{
	return atomic64_read(vrnic_counter_remaining(c)) <= threshold ||
	       READ_ONCE(c->cell->errors) || READ_ONCE(c->gone);
}

static void counter_wait_begin(struct vrnic_counter *c, s64 threshold)
{
	spin_lock_bh(&c->lock);
	if (c->waiters++)
		threshold = max(c->threshold, threshold);
	/* counter_wake() reads it without the lock */
	WRITE_ONCE(c->threshold, threshold);
	spin_unlock_bh(&c->lock);
}

static void counter_wait_end(struct vrnic_counter *c)
{
	spin_lock_bh(&c->lock);
	if (!--c->waiters)
		WRITE_ONCE(c->threshold, S64_MIN);
	spin_unlock_bh(&c->lock);
}

static int counter_sleep(struct vrnic_counter *c, const struct vrnic_wait *wait)
{
	int ret;

	counter_wait_begin(c, wait->threshold);
	ret = wait_event_interruptible_hrtimeout(c->wait,
						 counter_reached(c, wait->threshold),
						 vrnic_timeout(wait->timeout_ns));
	counter_wait_end(c);
	if (READ_ONCE(c->gone))
		return -ECANCELED;
	return ret == -ERESTARTSYS ? -EINTR : ret;
}

/* VRNIC_WAIT for a counter. Return: 0, -ETIME, -EINTR, -EINVAL or -ECANCELED. */
int vrnic_counter_wait(u64 owner, const struct vrnic_wait *wait)
{
	struct vrnic_counter *c = counter_get(wait->id, owner);
	int ret = 0;

	if (!c)
		return -EINVAL;
	if (!counter_reached(c, wait->threshold))
		ret = wait->timeout_ns ? counter_sleep(c, wait) : -ETIME;
	counter_put(c);
	return ret;
}

/* ---- the object ---- */

static int counter_destroy(struct ib_uobject *uobj, enum rdma_remove_reason why,
			   struct uverbs_attr_bundle *attrs)
{
	struct vrnic_counter *c = uobj->object;

	vrnic_ids_free(&vrnic_counters, c->id);
	vrnic_counter_unbind_all(c);
	spin_lock_bh(&c->lock);
	WRITE_ONCE(c->gone, true);
	spin_unlock_bh(&c->lock);
	vrnic_triggers_fire(c, S64_MIN, VRNIC_FIRED_GONE, NULL);
	wake_up_all(&c->wait);
	if (c->group)
		vrnic_group_leave(c);
	vrnic_count_add(c->dev, COUNTERS, -1);
	/* wait for the tasks that slept: they read the cell once more, so it must not go before */
	counter_put(c);
	wait_for_completion(&c->unused);
	call_rcu(&c->rcu, cell_release);
	return 0;
}

static struct vrnic_counter *counter_new(struct vrnic_ucontext *uc, u32 flags)
{
	struct vrnic_counter *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);

	if (!c)
		return NULL;
	if (vrnic_place_get(uc, true, &c->place)) {
		kfree(c);
		return NULL;
	}
	c->cell = c->place.mem;
	refcount_set(&c->refs, 1);
	c->dev = to_vdev(uc->ibuc.device);
	c->owner = uc->number;
	c->open = flags & VRNIC_COUNTER_OPEN;
	c->threshold = S64_MIN;
	INIT_LIST_HEAD(&c->triggers);
	c->trigger_level = S64_MIN;
	init_waitqueue_head(&c->wait);
	init_completion(&c->unused);
	INIT_LIST_HEAD(&c->bindings);
	INIT_LIST_HEAD(&c->failed);
	spin_lock_init(&c->lock);
	return c;
}

/* Make the counter visible: from here on other code can find it. */
static int counter_publish(struct vrnic_counter *c, struct vrnic_counter_group *group, u32 bit)
{
	int err = group ? vrnic_group_join(group, c, bit) : 0;

	if (err)
		return err;
	err = vrnic_ids_alloc(&vrnic_counters, c, GFP_KERNEL_ACCOUNT, 1, U32_MAX - 1,
			      &c->id);
	if (err && group)
		vrnic_group_leave(c);
	return err;
}

static void counter_resp(const struct vrnic_counter *c,
			 struct vrnic_create_counter_resp *resp)
{
	*resp = (struct vrnic_create_counter_resp) {
		.offset = vrnic_place_offset(&c->place),
		.cell = c->place.index,
		.counter = c->id,
	};
}

static int UVERBS_HANDLER(VRNIC_METHOD_COUNTER_CREATE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_COUNTER_CREATE_HANDLE);
	struct vrnic_ucontext *uc = to_vuc(attrs->context);
	struct vrnic_create_counter_resp resp;
	struct vrnic_create_counter_req req;
	struct vrnic_counter_group *group = NULL;
	struct vrnic_counter *c;
	int err;

	err = uverbs_copy_from(&req, attrs, VRNIC_ATTR_COUNTER_CREATE_REQ);
	if (err)
		return err;
	if (uverbs_attr_is_valid(attrs, VRNIC_ATTR_COUNTER_CREATE_GROUP))
		group = uverbs_attr_get_obj(attrs, VRNIC_ATTR_COUNTER_CREATE_GROUP);
	if (req.flags & ~VRNIC_COUNTER_OPEN || (req.bit && !group))
		return -EINVAL;
	c = counter_new(uc, req.flags);
	if (!c)
		return -ENOMEM;
	err = counter_publish(c, group, req.bit);
	if (err) {
		/* not at once: a task that waits for the group may have found the counter there */
		call_rcu(&c->rcu, cell_release);
		return err;
	}
	vrnic_count(c->dev, COUNTERS);
	uobj->object = c;
	counter_resp(c, &resp);
	uverbs_finalize_uobj_create(attrs, VRNIC_ATTR_COUNTER_CREATE_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs,
					     VRNIC_ATTR_COUNTER_CREATE_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_COUNTER_CREATE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_CREATE_HANDLE, VRNIC_OBJECT_COUNTER,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_COUNTER_CREATE_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_create_counter_req,
					      bit),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_COUNTER_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_counter_resp,
					       counter),
			    UA_MANDATORY),
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_CREATE_GROUP, VRNIC_OBJECT_GROUP,
			UVERBS_ACCESS_READ, UA_OPTIONAL));

/*
 * Attach an eventfd on which the process wants to poll(2). The counter may have reached zero, or
 * failed, before: then signal at once.
 */
static int UVERBS_HANDLER(VRNIC_METHOD_COUNTER_EVENTFD)(
	struct uverbs_attr_bundle *attrs)
{
	struct vrnic_counter *c = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_COUNTER_EVENTFD_HANDLE);
	struct eventfd_ctx *eventfd;
	s32 fd;
	int err;

	err = uverbs_copy_from(&fd, attrs, VRNIC_ATTR_COUNTER_EVENTFD_FD);
	if (err)
		return err;
	eventfd = eventfd_ctx_fdget(fd);
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	/*
	 * cmpxchg() is a full barrier, as is the subtraction before counter_signal(): we see the
	 * counter at zero, or counter_signal() sees the eventfd. Pairs with the acquire there.
	 */
	if (cmpxchg(&c->eventfd, NULL, eventfd)) {
		eventfd_ctx_put(eventfd);
		return -EBUSY;
	}
	if (counter_reached(c, 0))
		counter_signal(c);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_COUNTER_EVENTFD,
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_EVENTFD_HANDLE, VRNIC_OBJECT_COUNTER,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_COUNTER_EVENTFD_FD, UVERBS_ATTR_TYPE(s32),
			   UA_MANDATORY));

static int UVERBS_HANDLER(VRNIC_METHOD_COUNTER_BIND)(
	struct uverbs_attr_bundle *attrs)
{
	struct vrnic_counter *c = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_COUNTER_BIND_HANDLE);
	struct vrnic_endpoint *ep = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_COUNTER_BIND_ENDPOINT);

	return vrnic_counter_bind(c, ep);
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_COUNTER_BIND,
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_BIND_HANDLE, VRNIC_OBJECT_COUNTER,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_BIND_ENDPOINT, VRNIC_OBJECT_ENDPOINT,
			UVERBS_ACCESS_READ, UA_MANDATORY));

static int UVERBS_HANDLER(VRNIC_METHOD_COUNTER_UNBIND)(
	struct uverbs_attr_bundle *attrs)
{
	struct vrnic_counter *c = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_COUNTER_UNBIND_HANDLE);
	struct vrnic_endpoint *ep = uverbs_attr_get_obj(
		attrs, VRNIC_ATTR_COUNTER_UNBIND_ENDPOINT);

	return vrnic_counter_unbind(c, ep);
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_COUNTER_UNBIND,
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_UNBIND_HANDLE, VRNIC_OBJECT_COUNTER,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_UNBIND_ENDPOINT, VRNIC_OBJECT_ENDPOINT,
			UVERBS_ACCESS_READ, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	VRNIC_METHOD_COUNTER_DESTROY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_COUNTER_DESTROY_HANDLE, VRNIC_OBJECT_COUNTER,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_COUNTER,
	UVERBS_TYPE_ALLOC_IDR(counter_destroy),
	&UVERBS_METHOD(VRNIC_METHOD_COUNTER_CREATE),
	&UVERBS_METHOD(VRNIC_METHOD_COUNTER_EVENTFD),
	&UVERBS_METHOD(VRNIC_METHOD_COUNTER_BIND),
	&UVERBS_METHOD(VRNIC_METHOD_COUNTER_UNBIND),
	&UVERBS_METHOD(VRNIC_METHOD_COUNTER_DESTROY));

const struct uapi_definition vrnic_counter_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_COUNTER),
	{},
};
