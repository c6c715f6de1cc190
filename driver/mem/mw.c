// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows, type 1 and type 2B.
 *
 * Any queue pair of its protection domain may use a type 1 window. Only the queue pair that bound a
 * type 2B window may use it. A bind is a descriptor, and executed in the order of the send ring.
 */

#include <linux/slab.h>

#include "base/objects.h"
#include "base/udata.h"
#include "compat/compat.h"
#include "lib/ids_find.h"
#include "mem/mem.h"
#include "mem/mw.h"
#include "mem/seg.h"
#include "vrnic.h"

static struct vrnic_mw *to_vmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct vrnic_mw, ibmw);
}

int vrnic_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct vrnic_dev *dev = to_vdev(ibmw->device);
	struct vrnic_window *win;
	int err;

	if (vrnic_udata_empty(udata))
		return -EINVAL;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_MW, true))
		return -ENOMEM;
	err = -ENOMEM;
	win = kzalloc(sizeof(*win), GFP_KERNEL_ACCOUNT);
	if (!win)
		goto err_put;
	spin_lock_init(&win->lock);
	win->pd = ibmw->pd;
	win->type = ibmw->type;
	err = vrnic_key_alloc(dev, xa_tag_pointer(win, VRNIC_KEY_WINDOW),
			      &win->rkey);
	if (err)
		goto err_free;
	ibmw->rkey = win->rkey;
	to_vmw(ibmw)->win = win;
	return 0;

err_free:
	kfree(win);
err_put:
	vrnic_object_put(dev, VRNIC_OBJECT_MW, true);
	return err;
}

static void window_mr_put(struct vrnic_mr *mr)
{
	atomic_dec(&mr->windows);
	vrnic_mr_put(mr);
}

/* Unbind the window, if it is bound. Caller holds win->lock. */
static void window_unbind(struct vrnic_window *win)
{
	lockdep_assert_held(&win->lock);
	if (!win->bound)
		return;
	win->bound = false;
	window_mr_put(win->mr);
	win->mr = NULL;
}

int vrnic_dealloc_mw(struct ib_mw *ibmw)
{
	struct vrnic_dev *dev = to_vdev(ibmw->device);
	struct vrnic_window *win = to_vmw(ibmw)->win;

	vrnic_key_free(dev, win->rkey);
	spin_lock_bh(&win->lock);
	win->dead = true;
	window_unbind(win);
	spin_unlock_bh(&win->lock);
	kfree_rcu(win, rcu);
	vrnic_object_put(dev, VRNIC_OBJECT_MW, true);
	return 0;
}

/* Rights that a bind may name. LOCAL_WRITE has no effect, but consumers pass it on. */
#define WINDOW_ACCESS (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |	\
		       IB_ACCESS_REMOTE_ATOMIC | IB_ZERO_BASED |	\
		       IB_ACCESS_LOCAL_WRITE | VRNIC_ACCESS_FLUSH)

/*
 * Do both keys of a bind name @win? Only the upper 24 bits count: a consumer knows the low 8 bits
 * from the bind that it posted last, which need not be the last one that was executed.
 */
static bool names_window(const struct vrnic_window *win,
			 const struct vrnic_desc *d)
{
	return win->rkey >> 8 == d->bind.old_rkey >> 8 &&
	       win->rkey >> 8 == d->bind.new_rkey >> 8;
}

static int bind_check(const struct vrnic_key_user *user, const struct vrnic_window *win,
		      const struct vrnic_desc *d, const struct vrnic_mr *mr)
{
	if (win->pd != user->pd || mr->ibmr.pd != win->pd)
		return VRNIC_VERR_PD;
	if (win->dead || !names_window(win, d))
		return VRNIC_VERR_KEY;
	if (win->type == IB_MW_TYPE_2 && win->bound)
		return VRNIC_VERR_BIND;
	if (win->type == IB_MW_TYPE_1 && d->bind.access & IB_ZERO_BASED)
		return VRNIC_VERR_BIND;
	if (d->bind.access & ~WINDOW_ACCESS || !(mr->access & IB_ACCESS_MW_BIND))
		return VRNIC_VERR_ACCESS;
	/* IBTA 10.6.7.2.2: a window with write rights needs a writable region */
	if (d->bind.access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return VRNIC_VERR_ACCESS;
	if (d->bind.addr < mr->iova ||
	    d->bind.addr - mr->iova > mr->length ||
	    d->bind.length > mr->length - (d->bind.addr - mr->iova))
		return VRNIC_VERR_BOUNDS;
	return 0;
}

/*
 * Bind @win to @mr. Caller holds win->lock. @win takes over the caller's reference on @mr and count
 * in @mr->windows, from window_mr_get().
 */
static void window_bind(struct vrnic_window *win, struct vrnic_mr *mr, u32 qpn,
			const struct vrnic_desc *d)
{
	lockdep_assert_held(&win->lock);
	window_unbind(win);
	win->bound = true;
	win->mr = mr;
	win->qpn = qpn;
	win->access = d->bind.access;
	win->addr = d->bind.addr;
	win->base = d->bind.access & IB_ZERO_BASED ? 0 : d->bind.addr;
	win->length = d->bind.length;
	WRITE_ONCE(win->rkey, d->bind.new_rkey);
}

/* A bind of length 0 unbinds a type 1 window, and changes its key. */
static int unbind_type1(const struct vrnic_key_user *user, struct vrnic_window *win,
			const struct vrnic_desc *d)
{
	int verr = 0;

	spin_lock_bh(&win->lock);
	if (win->pd != user->pd)
		verr = VRNIC_VERR_PD;
	else if (!names_window(win, d))
		verr = VRNIC_VERR_KEY;
	if (!verr) {
		window_unbind(win);
		WRITE_ONCE(win->rkey, d->bind.new_rkey);
	}
	spin_unlock_bh(&win->lock);
	return verr;
}

/*
 * Count a window that is bound to @mr, and take a reference for it. The caller has a reference on
 * @mr of its own. Return: false if the region refuses binds.
 */
static bool window_mr_get(struct vrnic_mr *mr)
{
	if (!atomic_inc_unless_negative(&mr->windows))
		return false;
	refcount_inc(&mr->refs);
	return true;
}

/**
 * vrnic_window_bind() - bind a window to the region that a descriptor names
 * @user: queue pair with the descriptor
 * @win: window; it may have been deallocated since it was found
 * @d: private copy of the descriptor
 *
 * Return: 0 or enum vrnic_vendor_err.
 * Context: the RCU read-side critical section in which @win was found.
 */
int vrnic_window_bind(const struct vrnic_key_user *user, struct vrnic_window *win,
		      const struct vrnic_desc *d)
{
	struct vrnic_mr *mr = vrnic_ids_find(&user->dev->keys,
					     d->bind.lkey >> 8);
	int verr = VRNIC_VERR_KEY;

	if (!mr || xa_pointer_tag(mr) || mr->kind == VRNIC_MR_DMA)
		return VRNIC_VERR_KEY;
	if (mr->kind == VRNIC_MR_ODP)
		return VRNIC_VERR_BIND;
	if (!vrnic_mr_get(mr))
		return VRNIC_VERR_KEY;
	/* check the domain first: while a window is counted, @mr's owner cannot deregister @mr */
	if (mr->ibmr.pd != user->pd) {
		verr = VRNIC_VERR_PD;
	} else if (mr->lkey == d->bind.lkey && window_mr_get(mr)) {
		spin_lock_bh(&win->lock);
		verr = bind_check(user, win, d, mr);
		if (!verr)
			window_bind(win, mr, user->qpn, d);
		spin_unlock_bh(&win->lock);
		if (verr)
			window_mr_put(mr);
	}
	vrnic_mr_put(mr);
	return verr;
}

/**
 * vrnic_mw_bind() - execute BIND_MW
 * @user: queue pair with the descriptor
 * @d: private copy of the descriptor
 *
 * Return: 0 or enum vrnic_vendor_err.
 */
int vrnic_mw_bind(const struct vrnic_key_user *user, const struct vrnic_desc *d)
{
	struct vrnic_window *win;
	void *entry;
	int verr;

	rcu_read_lock();
	entry = vrnic_ids_find(&user->dev->keys, d->bind.old_rkey >> 8);
	win = xa_untag_pointer(entry);
	if (!entry || !xa_pointer_tag(entry))
		verr = VRNIC_VERR_KEY;
	else if (!d->bind.length && win->type == IB_MW_TYPE_1)
		verr = unbind_type1(user, win, d);
	else
		verr = vrnic_window_bind(user, win, d);
	rcu_read_unlock();
	return verr;
}

/*
 * Invalidate a type 2 window: see vrnic_key_invalidate(). Caller holds the RCU read lock. Return: 0
 * or enum vrnic_vendor_err.
 */
int vrnic_mw_invalidate(const struct vrnic_key_user *user, struct vrnic_window *win, u32 key,
			bool remote)
{
	int verr = 0;

	spin_lock_bh(&win->lock);
	if (win->rkey != key || win->type != IB_MW_TYPE_2)
		verr = VRNIC_VERR_KEY;
	else if (win->pd != user->pd)
		verr = VRNIC_VERR_PD;
	else if (remote && (!win->bound || win->qpn != user->qpn))
		verr = VRNIC_VERR_ACCESS;
	else
		window_unbind(win);
	spin_unlock_bh(&win->lock);
	return verr;
}

static int open_check(const struct vrnic_key_user *user, const struct vrnic_window *win,
		      u32 key, u64 addr, u64 len, int access)
{
	if (!win->bound || win->rkey != key)
		return VRNIC_VERR_KEY;
	if (win->pd != user->pd)
		return VRNIC_VERR_PD;
	if (win->type == IB_MW_TYPE_2 && win->qpn != user->qpn)
		return VRNIC_VERR_ACCESS;
	if ((win->access & access) != access)
		return VRNIC_VERR_ACCESS;
	if (addr < win->base || addr - win->base > win->length ||
	    len > win->length - (addr - win->base))
		return VRNIC_VERR_BOUNDS;
	return 0;
}

/**
 * vrnic_mw_open() - find the memory behind a window
 * @user: queue pair of the target
 * @win: window that was found for @key
 * @key: key that the requester claims
 * @addr: address that the requester claims
 * @len: bytes that the requester claims
 * @access: rights that the operation needs
 * @seg: to be filled in; the caller has to put it
 *
 * Return: 0 or enum vrnic_vendor_err.
 * Context: the RCU read-side critical section in which @win was found.
 */
int vrnic_mw_open(const struct vrnic_key_user *user, struct vrnic_window *win, u32 key,
		  u64 addr, u64 len, int access, struct vrnic_seg *seg)
{
	struct vrnic_mr *mr;
	int verr;

	spin_lock_bh(&win->lock);
	verr = open_check(user, win, key, addr, len, access);
	if (!verr) {
		mr = win->mr;
		/* the window has a reference on @mr, so the count is not zero */
		refcount_inc(&mr->refs);
		*seg = (struct vrnic_seg){
			.mr = mr,
			.off = win->addr + (addr - win->base) - mr->iova + mr->offset,
			.len = len,
		};
	}
	spin_unlock_bh(&win->lock);
	return verr;
}
