/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory windows. */
#ifndef VRNIC_MW_H
#define VRNIC_MW_H

#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct vrnic_desc;
struct vrnic_mr;
struct vrnic_key_user;
struct vrnic_seg;

/**
 * struct vrnic_window - a memory window
 * @rcu: for the RCU grace period between the end of the key and the release
 * @lock: protects what follows
 * @rkey: key; a bind sets its low 8 bits
 * @bound: the window is bound to @mr
 * @dead: the window was deallocated: code that found it before must not bind it
 * @type: IB_MW_TYPE_1 or IB_MW_TYPE_2
 * @pd: protection domain
 * @mr: region that the window is bound to; counted in @mr->windows
 * @qpn: type 2: number of the queue pair that bound the window, and that alone may use it
 * @access: IB_ACCESS_*
 * @addr: address of the first byte, as users of the region see it
 * @base: address of the first byte, as users of the window see it
 * @length: bytes
 *
 * Not a part of struct vrnic_mw, because the RDMA core frees that without an RCU grace period.
 */
struct vrnic_window {
	struct rcu_head rcu;
	spinlock_t lock;	/* protects all below */
	u32 rkey;
	bool bound;
	bool dead;
	enum ib_mw_type type;
	struct ib_pd *pd;
	struct vrnic_mr *mr;
	u32 qpn;
	int access;
	u64 addr;
	u64 base;
	u64 length;
};

struct vrnic_mw {
	struct ib_mw ibmw;
	struct vrnic_window *win;
};

int vrnic_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int vrnic_dealloc_mw(struct ib_mw *ibmw);
int vrnic_mw_bind(const struct vrnic_key_user *user, const struct vrnic_desc *d);
int vrnic_window_bind(const struct vrnic_key_user *user, struct vrnic_window *win,
		      const struct vrnic_desc *d);
int vrnic_mw_invalidate(const struct vrnic_key_user *user, struct vrnic_window *win, u32 key,
			bool remote);
int vrnic_mw_open(const struct vrnic_key_user *user, struct vrnic_window *win, u32 key,
		  u64 addr, u64 len, int access, struct vrnic_seg *seg);

#endif /* VRNIC_MW_H */
