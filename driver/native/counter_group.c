// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Groups of counters: one word says which of up to 64 counters are done (S4.6).
 *
 * A group has a struct vrnic_group_cell in memory that the process maps. Bit i of @done is to be
 * set exactly while the i-th counter is done: nothing remains, or it has failed. @failed says which
 * have failed. The kernel never reads this cell. What decides is in the counters' own cells, also
 * for a task that waits. So a process that overwrites the words harms itself alone.
 *
 * Two sides change a counter, and then its bits. The kernel lets it fall or fail, with the
 * counter's lock held, and sets bits. The process raises it, without any lock or system call, and
 * clears bits. The steps of both can be mixed in any way: the process may raise a counter just
 * after it fell to zero, and before the kernel has set the bit; it may clear the bit late, when the
 * counter has fallen to zero once more. Three pairs of barriers, and vrnic_cell.turn, make both
 * right. (turn is odd while the kernel has the lock. The process has its half in
 * userlib/libvrnic/group.c.)
 *
 *  G1  the kernel: turn becomes odd, full barrier, the counter falls
 *      the process: the counter is raised, full fence, turn is read
 *        If the fall was before the rise, the process reads an odd turn, or a later even one. Then
 *        the bit for the fall may still come: the process makes a system call, which waits for
 *        the lock. If it does not read one, the kernel does its work on the new value.
 *  G2  the kernel: bits are set, turn becomes even with release
 *      the process: turn is read with acquire, bits are cleared
 *        If the process reads the even turn that follows a fall, it clears the bit after the kernel
 *        has set it. So no old bit is left.
 *  G3  the kernel: the counter falls, full barrier, bits are set
 *      the process: bits are cleared, full fence, the counter is read
 *        If the process misses a fall to zero, the bit for this fall is set after it was cleared.
 *        If it does not miss the fall, it asks the kernel to set the bit. So no bit is lost.
 *
 * The system call is VRNIC_COUNT with zero bytes. It makes the bits what the counter's cell
 * says, with the lock held and turn odd, so G1 and G2 hold for a process that raises the counter
 * meanwhile. Two threads may raise a counter at a time. Each looks at the bit and at turn, also if
 * the other one raised the counter above zero, so the bit is right for each of them when it has
 * done its steps.
 *
 * A task that waits needs no bits. C4 of userlib/libvrnic/record.h is between its look at the
 * counters, behind the barrier of set_current_state(), and wq_has_sleeper() here.
 */

#include <linux/bitops.h>
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "compat/compat.h"
#include "lib/ids_find.h"
#include "mem/mmap.h"
#include "native/counter.h"
#include "native/native.h"
#include "ucontext.h"
#include "vrnic.h"

#define UVERBS_MODULE_NAME vrnic
#include <rdma/uverbs_named_ioctl.h>

/**
 * struct vrnic_counter_group - a group of counters
 * @rcu: for kfree_rcu()
 * @refs: references of the owner and of tasks that wait; destruction waits for the latter
 * @id: number; unique on this host
 * @owner: number of the process's context
 * @place: where @cell is
 * @cell: the words
 * @wait: tasks that sleep until counters are done
 * @lock: protects @member, @members and @left
 * @member: counter of each bit, or NULL; read under RCU
 * @members: bits that have a counter
 * @left: how many counters of each bit have left the group; read under RCU, after @member
 * @unused: completed when the last reference was put
 */
struct vrnic_counter_group {
	struct rcu_head rcu;
	refcount_t refs;
	u32 id;
	u64 owner;
	struct vrnic_place place;
	struct vrnic_group_cell *cell;
	wait_queue_head_t wait;
	spinlock_t lock;	/* protects @member, @members and @left */
	struct vrnic_counter __rcu *member[VRNIC_GROUP_COUNTERS];
	u64 members;
	u32 left[VRNIC_GROUP_COUNTERS];
	struct completion unused;
};

/* All groups of this host by number. Read under RCU. */
static struct vrnic_ids vrnic_groups;

int vrnic_groups_init(void)
{
	return vrnic_ids_init(&vrnic_groups);
}

void vrnic_groups_exit(void)
{
	vrnic_ids_exit(&vrnic_groups);
}

/* ---- the words ---- */

static void bit_write(__u64 *word, u64 bit, bool set)
{
	if (set)
		atomic64_or(bit, (atomic64_t *)word);
	else
		atomic64_andnot(bit, (atomic64_t *)word);
}

/* Failed before done, and the other way around: who sees a bit in done sees it in failed, too. */
static void bits_write(struct vrnic_group_cell *cell, u64 bit, bool done, bool failed)
{
	if (done) {
		bit_write(&cell->failed, bit, failed);
		smp_wmb();	/* with the process's acquire of done: N1 */
		bit_write(&cell->done, bit, true);
	} else {
		bit_write(&cell->done, bit, false);
		smp_wmb();	/* the other way around: with the acquire of N1 */
		bit_write(&cell->failed, bit, false);
	}
}

static void turn_begin(struct vrnic_counter *c)
{
	lockdep_assert_held(&c->lock);
	WRITE_ONCE(c->cell->turn, ++c->turn);
	/* the full barrier of G1 is the caller's */
}

static void turn_end(struct vrnic_counter *c)
{
	lockdep_assert_held(&c->lock);
	smp_store_release(&c->cell->turn, ++c->turn);	/* G2 */
}

/* Make the counter's bits what its cell says. Return: the counter is done. */
static bool group_tell(struct vrnic_counter *c)
{
	bool failed = READ_ONCE(c->cell->errors), done = vrnic_counter_is_done(c);

	lockdep_assert_held(&c->lock);
	if (c->gone)
		return false;
	bits_write(c->group->cell, BIT_ULL(c->bit), done, failed);
	return done;
}

/*
 * Wake the tasks that wait. There may be many, so not with a counter's lock held, for which the
 * engine of a peer may wait. RCU keeps the group.
 */
static void group_wake(struct vrnic_counter_group *group)
{
	/* has the barrier of C4 */
	if (wq_has_sleeper(&group->wait))
		wake_up_all(&group->wait);
}

/**
 * vrnic_group_fall() - count bytes that have come down from a counter in a group
 * @c: counter; caller holds the RCU read lock, or a reference
 * @n: number of bytes; 0: only make the bits right
 *
 * Return: the bytes that remain.
 */
s64 vrnic_group_fall(struct vrnic_counter *c, u64 n)
{
	bool done = false;
	s64 left;

	rcu_read_lock();
	spin_lock_bh(&c->lock);
	turn_begin(c);
	/* a full barrier, before it for G1, and after it for G3 */
	left = atomic64_sub_return(n, vrnic_counter_remaining(c));
	if (!n || (left <= 0 && (u64)-left < n))
		done = group_tell(c);
	turn_end(c);
	spin_unlock_bh(&c->lock);
	if (done)
		group_wake(c->group);
	rcu_read_unlock();
	return left;
}

/* Before an error is written into the cell of a counter in a group. */
void vrnic_group_fail_begin(struct vrnic_counter *c)
{
	turn_begin(c);
	smp_mb();	/* G1 */
}

/* After it was written. */
void vrnic_group_fail_end(struct vrnic_counter *c)
{
	smp_mb();	/* G3 */
	group_tell(c);
	turn_end(c);
}

/*
 * After the counter's lock was released. The caller has held the RCU read lock since it found the
 * counter by its number, or bound.
 */
void vrnic_group_fail_wake(struct vrnic_counter *c)
{
	group_wake(c->group);
}

/* ---- members ---- */

/**
 * vrnic_group_join() - make a new counter a member of a group
 * @group: group, which the caller keeps
 * @c: counter, which nobody else knows yet
 * @bit: number of the counter in the group, as the user claims
 *
 * Return: 0, -EINVAL or -EBUSY: another counter has this bit.
 */
int vrnic_group_join(struct vrnic_counter_group *group, struct vrnic_counter *c, u32 bit)
{
	int err = 0;

	if (bit >= VRNIC_GROUP_COUNTERS)
		return -EINVAL;
	spin_lock(&group->lock);
	if (group->members & BIT_ULL(bit)) {
		err = -EBUSY;
	} else {
		c->group = group;
		c->bit = bit;
		group->members |= BIT_ULL(bit);
		rcu_assign_pointer(group->member[bit], c);
		/* a new counter is at zero */
		bits_write(group->cell, BIT_ULL(bit), true, false);
	}
	spin_unlock(&group->lock);
	return err;
}

/**
 * vrnic_group_leave() - a counter is being destroyed
 * @c: counter, which is @gone, so that nobody who still counts on it writes its bits; the call that
 *	made it so held its lock
 *
 * The group may go as soon as its lock is released.
 */
void vrnic_group_leave(struct vrnic_counter *c)
{
	struct vrnic_counter_group *group = c->group;

	spin_lock(&group->lock);
	bits_write(group->cell, BIT_ULL(c->bit), false, false);
	WRITE_ONCE(group->left[c->bit], group->left[c->bit] + 1);
	RCU_INIT_POINTER(group->member[c->bit], NULL);
	group->members &= ~BIT_ULL(c->bit);
	wake_up_all(&group->wait);
	spin_unlock(&group->lock);
}

/* ---- waiting ---- */

static void group_drop(struct vrnic_counter_group *group)
{
	if (refcount_dec_and_test(&group->refs))
		complete(&group->unused);
}

static struct vrnic_counter_group *group_hold(u32 id, u64 owner)
{
	struct vrnic_counter_group *group;

	rcu_read_lock();
	group = vrnic_ids_find(&vrnic_groups, id);
	if (group && (group->owner != owner || !refcount_inc_not_zero(&group->refs)))
		group = NULL;
	rcu_read_unlock();
	return group;
}

/* Return: a number that another one follows when a counter of @mask leaves the group. */
static u32 group_left(const struct vrnic_counter_group *group, u64 mask)
{
	u32 sum = 0;

	for (; mask; mask &= mask - 1)
		sum += READ_ONCE(group->left[__ffs64(mask)]);
	return sum;
}

/*
 * Fill in what the process is told. @before: group_left() at the beginning of the wait.
 * Return: false if a bit has no counter, or another one than at the beginning.
 */
static bool group_look(struct vrnic_counter_group *group, struct vrnic_wait_group *wait,
		       u32 before)
{
	struct vrnic_counter *c;
	bool complete = true;
	unsigned int i;
	u64 left;

	wait->done = 0;
	wait->failed = 0;
	rcu_read_lock();
	for (left = wait->mask; left; left &= left - 1) {
		i = __ffs64(left);
		c = rcu_dereference(group->member[i]);
		if (!c) {
			complete = false;
			continue;
		}
		if (READ_ONCE(c->cell->errors))
			wait->failed |= BIT_ULL(i);
		if (vrnic_counter_is_done(c))
			wait->done |= BIT_ULL(i);
	}
	rcu_read_unlock();
	/* with rcu_assign_pointer() of vrnic_group_join(): who sees a successor sees the leave */
	smp_rmb();
	return complete && group_left(group, wait->mask) == before;
}

/* Is the wait over? @complete: set to false if a counter is gone, which ends it, too. */
static bool group_reached(struct vrnic_counter_group *group, struct vrnic_wait_group *wait,
			  u32 before, bool *complete)
{
	*complete = group_look(group, wait, before);
	if (!*complete || wait->failed)
		return true;
	return wait->flags & VRNIC_WAIT_ALL ? wait->done == wait->mask : wait->done;
}

static int group_sleep(struct vrnic_counter_group *group, struct vrnic_wait_group *wait,
		       u32 before)
{
	bool complete = true;
	int ret;

	ret = wait_event_interruptible_hrtimeout(group->wait,
						 group_reached(group, wait, before, &complete),
						 vrnic_timeout(wait->timeout_ns));
	if (!complete)
		return -ECANCELED;
	return ret == -ERESTARTSYS ? -EINTR : ret;
}

/**
 * vrnic_group_wait() - VRNIC_WAIT_GROUP
 * @owner: number of the process's context
 * @wait: private copy of the request; @done and @failed are filled in
 *
 * Return: 0, -ETIME, -EINTR, -EINVAL or -ECANCELED.
 */
int vrnic_group_wait(u64 owner, struct vrnic_wait_group *wait)
{
	struct vrnic_counter_group *group;
	bool complete;
	int ret = 0;
	u32 before;

	if (!wait->mask || wait->flags & ~VRNIC_WAIT_ALL)
		return -EINVAL;
	group = group_hold(wait->group, owner);
	if (!group)
		return -EINVAL;
	before = group_left(group, wait->mask);
	if (!group_reached(group, wait, before, &complete))
		ret = wait->timeout_ns ? group_sleep(group, wait, before) : -ETIME;
	else if (!complete)
		ret = -EINVAL;
	/* with those who count, for the data behind the counters: N1 */
	smp_acquire__after_ctrl_dep();
	group_drop(group);
	return ret;
}

/* ---- the object ---- */

/*
 * Counters go before their group: if the process dies, the uverbs core tries again after -EBUSY.
 * The core calls this with the handle locked, so no counter joins meanwhile.
 */
static int group_destroy(struct ib_uobject *uobj, enum rdma_remove_reason why,
			 struct uverbs_attr_bundle *attrs)
{
	struct vrnic_counter_group *group = uobj->object;
	bool used;

	spin_lock(&group->lock);
	used = group->members;
	spin_unlock(&group->lock);
	if (used)
		return -EBUSY;
	vrnic_ids_free(&vrnic_groups, group->id);
	/* tasks that slept know that their counters are gone: they are on their way out */
	group_drop(group);
	wait_for_completion(&group->unused);
	vrnic_place_put(&group->place);
	kfree_rcu(group, rcu);
	return 0;
}

static struct vrnic_counter_group *group_new(struct vrnic_ucontext *uc)
{
	struct vrnic_counter_group *group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);

	if (!group)
		return NULL;
	if (vrnic_place_get(uc, true, &group->place)) {
		kfree(group);
		return NULL;
	}
	group->cell = group->place.mem;
	refcount_set(&group->refs, 1);
	group->owner = uc->number;
	init_waitqueue_head(&group->wait);
	spin_lock_init(&group->lock);
	init_completion(&group->unused);
	return group;
}

static int UVERBS_HANDLER(VRNIC_METHOD_GROUP_CREATE)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(
		attrs, VRNIC_ATTR_GROUP_CREATE_HANDLE);
	struct vrnic_ucontext *uc = to_vuc(attrs->context);
	struct vrnic_create_group_resp resp;
	struct vrnic_create_group_req req;
	struct vrnic_counter_group *group;
	int err;

	err = uverbs_copy_from(&req, attrs, VRNIC_ATTR_GROUP_CREATE_REQ);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	group = group_new(uc);
	if (!group)
		return -ENOMEM;
	err = vrnic_ids_alloc(&vrnic_groups, group, GFP_KERNEL_ACCOUNT, 1, U32_MAX - 1,
			      &group->id);
	if (err) {
		vrnic_place_put(&group->place);
		kfree(group);
		return err;
	}
	uobj->object = group;
	resp = (struct vrnic_create_group_resp) {
		.offset = vrnic_place_offset(&group->place),
		.cell = group->place.index,
		.group = group->id,
	};
	uverbs_finalize_uobj_create(attrs, VRNIC_ATTR_GROUP_CREATE_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs, VRNIC_ATTR_GROUP_CREATE_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	VRNIC_METHOD_GROUP_CREATE,
	UVERBS_ATTR_IDR(VRNIC_ATTR_GROUP_CREATE_HANDLE, VRNIC_OBJECT_GROUP,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(VRNIC_ATTR_GROUP_CREATE_REQ,
			   UVERBS_ATTR_STRUCT(struct vrnic_create_group_req,
					      reserved),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(VRNIC_ATTR_GROUP_CREATE_RESP,
			    UVERBS_ATTR_STRUCT(struct vrnic_create_group_resp,
					       group),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	VRNIC_METHOD_GROUP_DESTROY,
	UVERBS_ATTR_IDR(VRNIC_ATTR_GROUP_DESTROY_HANDLE, VRNIC_OBJECT_GROUP,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	VRNIC_OBJECT_GROUP,
	UVERBS_TYPE_ALLOC_IDR(group_destroy),
	&UVERBS_METHOD(VRNIC_METHOD_GROUP_CREATE),
	&UVERBS_METHOD(VRNIC_METHOD_GROUP_DESTROY));

const struct uapi_definition vrnic_group_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(VRNIC_OBJECT_GROUP),
	{},
};
