/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What requester and responder of the wire need of the kernel and of the rest of the
 * driver, in small: their files are compiled for user space as they are. One thread, a
 * clock that unit_roce.c moves, packets without headers, and memory that is what its
 * address says.
 */
#ifndef UNIT_ROCE_KERNEL_H
#define UNIT_ROCE_KERNEL_H

/* Instead of the headers of the driver that have these names. */
#define VRNIC_H
#define VRNIC_BUDGET_H
#define VRNIC_COMPAT_H
#define VRNIC_ENGINE_H
#define VRNIC_FAULT_H
#define VRNIC_LINK_H
#define VRNIC_MEM_H
#define VRNIC_MW_H
#define VRNIC_OP_H
#define VRNIC_PORT_H
#define VRNIC_QP_H
#define VRNIC_QP_ERROR_H
#define VRNIC_RATE_H
#define VRNIC_RECV_H
#define VRNIC_RQ_H
#define VRNIC_SEG_H

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bug.h>
#include <linux/types.h>
#include <rdma/vrnic-abi.h>

/* ---- words of the language ---- */

#define __force
#define __rcu
#define __percpu
#define noinline
#define __aligned(n)	__attribute__((aligned(n)))
#define fallthrough	__attribute__((fallthrough))
#define likely(x)	(x)
#define unlikely(x)	(x)

#define U16_MAX		0xffff
#define U32_MAX		0xffffffffU
#define U64_MAX		(~0ULL)
#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L
#define SZ_1M		(1 << 20)
#define SZ_64K		(64 << 10)
#define SZ_4M		(4 << 20)
#define INET_ECN_ECT_0	2

#define BIT(n)			(1UL << (n))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define BUILD_BUG_ON(c)		static_assert(!(c), #c)

#include <linux/minmax.h>
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define clamp_t(t, v, lo, hi)	clamp((t)(v), (t)(lo), (t)(hi))
#define min_not_zero(a, b)	((a) ? (b) ? min(a, b) : (a) : (b))
#define abs(v)			((v) < 0 ? -(v) : (v))

#define container_of(p, type, member)					\
	((type *)((char *)(p) - offsetof(type, member)))

#define READ_ONCE(v)		(v)
#define WRITE_ONCE(v, n)	((v) = (n))
/* there is no other thread */
#define smp_mb()		do { } while (0)
/* there is no other thread */
#define smp_load_acquire(p)	(*(p))
/* there is no other thread */
#define smp_store_release(p, v)	(*(p) = (v))
#define xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_RELAXED)
#define get_unaligned(p)						\
	({								\
		__typeof__(*(p) + 0) __v;				\
		memcpy(&__v, p, sizeof(__v));				\
		__v;							\
	})

/* ---- memory, time, locks ---- */

#define gfp_t			unsigned int
#define GFP_KERNEL		0
#define GFP_KERNEL_ACCOUNT	0
#define kzalloc(size, gfp)	calloc(1, size)
#define kcalloc(n, size, gfp)	calloc(n, size)
#define kvcalloc(n, size, gfp)	calloc(n, size)
#define kfree(p)		free(p)

struct kmem_cache {
	size_t size;
};

#define KMEM_CACHE(name, flags)						\
	memcpy(calloc(1, sizeof(struct kmem_cache)),			\
	       &(size_t){ sizeof(struct name) }, sizeof(size_t))
#define kmem_cache_zalloc(cache, gfp)	calloc(1, (cache)->size)
#define kmem_cache_free(cache, p)	free(p)
#define kmem_cache_destroy(cache)	free(cache)
#define kfree_rcu(p, member)	free(p)
#define rcu_read_lock()
#define rcu_read_unlock()
#define call_rcu(head, release)	(release)(head)
#define rcu_barrier()
#define kvfree(p)		free(p)

typedef s64 ktime_t;

u64 ktime_get_ns(void);
#define ktime_get()		((ktime_t)ktime_get_ns())
#define ktime_to_ns(t)		(t)

#define local_bh_disable()	do { } while (0)
#define local_bh_enable()	do { } while (0)

struct number { s64 v; };

#define atomic_long_t	struct number
#define atomic64_t	struct number
#define spinlock_t	int

#define ATOMIC_LONG_INIT(n)		{ n }
#define atomic_long_add_return(n, a)	((a)->v += (n))
#define atomic_long_sub(n, a)		((a)->v -= (n))
#define spin_lock_bh(l)			((void)(l))
#define spin_unlock_bh(l)		((void)(l))

static inline u64 atomic64_fetch_add(u64 n, atomic64_t *a)
{
	u64 old = a->v;

	a->v = old + n;
	return old;
}

static inline u64 cmpxchg(u64 *p, u64 old, u64 new)
{
	u64 was = *p;

	if (was == old)
		*p = new;
	return was;
}

/* ---- packets ---- */

struct rcu_head { void *unused; };
struct mutex;

struct list_head {
	struct list_head *next, *prev;
};

struct page;
struct page_frag { struct page *page; };

/* The links come first, as in their queue. */
struct sk_buff {
	struct sk_buff *next, *prev;
	ktime_t tstamp;
	u32 mark;
	u32 len;
	u16 source;
	char cb[48] __aligned(8);
	u8 *data;
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	u32 qlen;
	spinlock_t lock;	/* of nobody */
};

/* The only member of this header that is used: the source port. */
struct udphdr { u16 source; };

#define udp_hdr(skb)	((struct udphdr *)&(skb)->source)
#define ntohs(v)	(v)

void kfree_skb(struct sk_buff *skb);
int skb_copy_bits(const struct sk_buff *skb, int off, void *to, int len);

#define skb_queue_empty(l)		((l)->next == (struct sk_buff *)(l))
#define skb_queue_empty_lockless(l)	skb_queue_empty(l)
#define skb_queue_len(l)		((l)->qlen)
#define skb_queue_len_lockless(l)	((l)->qlen)
#define skb_peek(l)			(skb_queue_empty(l) ? NULL : (l)->next)
#define skb_peek_tail(l)		(skb_queue_empty(l) ? NULL : (l)->prev)

#define skb_queue_walk(l, skb)						\
	for (skb = (l)->next; skb != (struct sk_buff *)(l); skb = skb->next)
#define skb_queue_walk_safe(l, skb, n)					\
	for (skb = (l)->next, n = skb->next; skb != (struct sk_buff *)(l); \
	     skb = n, n = skb->next)
#define skb_queue_reverse_walk(l, skb)					\
	for (skb = (l)->prev; skb != (struct sk_buff *)(l); skb = skb->prev)

static inline void __skb_queue_head_init(struct sk_buff_head *l)
{
	l->next = (struct sk_buff *)l;
	l->prev = (struct sk_buff *)l;
	l->qlen = 0;
}

static inline void __skb_queue_after(struct sk_buff_head *l, struct sk_buff *at,
				     struct sk_buff *skb)
{
	skb->prev = at;
	skb->next = at->next;
	at->next->prev = skb;
	at->next = skb;
	l->qlen++;
}

#define __skb_queue_head(l, skb)	__skb_queue_after(l, (struct sk_buff *)(l), skb)
#define __skb_queue_tail(l, skb)	__skb_queue_after(l, (l)->prev, skb)
#define skb_queue_head(l, skb)		__skb_queue_head(l, skb)

static inline void __skb_unlink(struct sk_buff *skb, struct sk_buff_head *l)
{
	skb->next->prev = skb->prev;
	skb->prev->next = skb->next;
	l->qlen--;
}

static inline struct sk_buff *__skb_dequeue(struct sk_buff_head *l)
{
	struct sk_buff *skb = skb_peek(l);

	if (skb)
		__skb_unlink(skb, l);
	return skb;
}

static inline void skb_queue_purge(struct sk_buff_head *l)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(l)))
		kfree_skb(skb);
}

/* ---- the RDMA core ---- */

union ib_gid { u8 raw[16]; };
struct ib_gid_attr { union ib_gid gid; };
struct ib_global_route { const struct ib_gid_attr *sgid_attr; };
struct rdma_ah_attr { struct ib_global_route grh; };

struct ib_qp_attr {
	u8 timeout, retry_cnt, rnr_retry, max_rd_atomic, max_dest_rd_atomic;
	u8 min_rnr_timer, path_mtu;
	u32 sq_psn, rq_psn, dest_qp_num;
	int qp_access_flags;
	struct rdma_ah_attr ah_attr;
};

enum ib_qp_type { IB_QPT_RC = 2, IB_QPT_UC = 3, IB_QPT_UD = 4, IB_QPT_GSI = 1,
	IB_QPT_RAW_PACKET = 8 };
enum ib_qp_state {
	IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD, IB_QPS_SQE, IB_QPS_ERR,
};

enum ib_event_type {
	IB_EVENT_QP_FATAL = 1, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR, IB_EVENT_COMM_EST,
};

enum ib_wc_status {
	IB_WC_SUCCESS, IB_WC_LOC_LEN_ERR, IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_EEC_OP_ERR,
	IB_WC_LOC_PROT_ERR, IB_WC_WR_FLUSH_ERR, IB_WC_MW_BIND_ERR, IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR, IB_WC_REM_INV_REQ_ERR, IB_WC_REM_ACCESS_ERR, IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR, IB_WC_RNR_RETRY_EXC_ERR,
};

enum ib_wc_opcode {
	IB_WC_SEND, IB_WC_RDMA_WRITE, IB_WC_RDMA_READ, IB_WC_COMP_SWAP, IB_WC_FETCH_ADD,
	IB_WC_LOCAL_INV = 6, IB_WC_REG_MR, VRNIC_WC_FLUSH, VRNIC_WC_ATOMIC_WRITE,
	IB_WC_RECV = 128, IB_WC_RECV_RDMA_WITH_IMM,
};

enum {
	IB_ACCESS_LOCAL_WRITE = 1, IB_ACCESS_REMOTE_WRITE = 2, IB_ACCESS_REMOTE_READ = 4,
	IB_ACCESS_REMOTE_ATOMIC = 8, VRNIC_ACCESS_FLUSH = 256,
};

#define ib_mtu_enum_to_int(mtu)	(128 << (mtu))

/* ---- the rest of the driver ---- */

#include "queue/ring.h"
#include "base/stats.h"

#define VRNIC_MAX_MSG		BIT(31)
#define VRNIC_GRH_BYTES		40

struct vrnic_parcel;

struct vrnic_dev {
	u64 count[VRNIC_STAT_NR];
};

#define vrnic_count(dev, stat)		((dev)->count[VRNIC_STAT_##stat]++)
#define vrnic_count_add(dev, stat, n)	((dev)->count[VRNIC_STAT_##stat] += (n))

struct vrnic_runnable {
	u64 at;		/* timer; 0: none */
	u64 wait_until;
};

struct vrnic_budget {
	u64 bytes;
	u32 descs;
	bool atomic;
	bool rung;
	u32 taken;
};

#define vrnic_budget_left(budget)	((budget)->descs && (budget)->bytes)
#define vrnic_budget_spend(budget, n)	((budget)->descs -= min((budget)->descs, (u32)(n)))

/* Whose keys they are is known by where this is. */
struct vrnic_key_user {
	u32 qpn;
};

struct vrnic_held {
	u32 key;
};

struct vrnic_page_wait {
	const void *odp;
};

struct vrnic_seg {
	u8 *kva;
	u64 len;
};

struct vrnic_sgl {
	unsigned int nr, cur;
	u64 pos;
	struct vrnic_seg seg[2];
};

enum vrnic_op_wait {
	VRNIC_WAIT_KEY,
	VRNIC_WAIT_PAGE,
};

struct vrnic_op {
	bool active;
	const struct vrnic_opdef *info;
	u64 total, done;
	u8 status, vendor_err, waits, tries;
	u32 srqn;
	u8 slots[VRNIC_MAX_SLOTS * VRNIC_SLOT_SIZE] __aligned(8);
};

static inline struct vrnic_desc *vrnic_op_desc(struct vrnic_op *op)
{
	return (struct vrnic_desc *)op->slots;
}

enum vrnic_xrc {
	VRNIC_XRC_NO, VRNIC_XRC_INI, VRNIC_XRC_TGT,
};

struct vrnic_recv {
	bool active;
	u32 num_sge;
	struct vrnic_sge sge[2];
};

#include "queue/comp.h"
#include "queue/hold.h"
#include "queue/room.h"

struct vrnic_qp {
	struct vrnic_dev *dev;
	u32 qpn;
	struct vrnic_key_user key_user;
	enum ib_qp_type type;
	enum vrnic_xrc xrc;
	struct vrnic_qp_comp *comp;
	u64 owner;
	struct ib_qp_attr attr;
	enum ib_qp_state state;
	bool comm_est;
	struct vrnic_runnable run;
	struct vrnic_ring sq;
	u32 posted;
	struct vrnic_op op;
	struct vrnic_sgl sgl, recv_sgl;
	struct vrnic_page_wait send_wait, peer_wait, recv_wait;
	struct vrnic_hold hold;
	struct vrnic_recv recv;
	struct vrnic_roce *roce;
	struct sk_buff_head rxq;
	struct vrnic_room rxq_room;
	u64 limit;
	struct vrnic_link *link;
	const struct vrnic_link_ops *link_ops;
	struct {
		u64 retransmitted_pkts, ack_timeouts, retries, rnr_waits, local_errors, flushed;
	} rare;
	u64 target_errors, target_rnr;
};

#define VRNIC_RATE_ANY	U64_MAX

/* What unit_roce.c is. */
void vrnic_qp_count(struct vrnic_qp *qp, enum vrnic_comp_op op, u64 bytes, u8 status);
u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until);
void vrnic_rate_congested(struct vrnic_qp *qp);
void vrnic_rate_notified(struct vrnic_qp *qp);
void vrnic_rate_marked(struct vrnic_qp *qp, u32 packets);
void vrnic_queue_at(struct vrnic_runnable *r, u64 at);
void vrnic_queue_after(struct vrnic_runnable *r, u64 ns);
#define vrnic_queue(r)		((void)(r))	/* all runs are those of a thread, too */
int vrnic_gid_oif(struct vrnic_dev *dev, const struct ib_gid_attr *attr);
void vrnic_qp_error(struct vrnic_qp *qp, int event);
void vrnic_qp_event(struct vrnic_qp *qp, int event);
void vrnic_sq_error(struct vrnic_qp *qp);
int vrnic_recv_take(struct vrnic_qp *qp);
u32 vrnic_rnr_ns(u8 code);
void vrnic_recv_complete(struct vrnic_qp *qp, struct vrnic_cqe *cqe, bool solicited);
int vrnic_key_invalidate(const struct vrnic_key_user *user, u32 key, bool remote);
int vrnic_mw_bind(const struct vrnic_key_user *user, const struct vrnic_desc *d);
int vrnic_mr_fast_reg(const struct vrnic_key_user *user, const struct vrnic_desc *d);

int vrnic_seg_remote(const struct vrnic_key_user *user, u32 rkey, u64 addr, u64 len,
		     int access, struct vrnic_held *held, struct vrnic_seg *seg);
int vrnic_seg_whole(const struct vrnic_key_user *user, u32 rkey, int access,
		    struct vrnic_seg *seg);
int vrnic_sgl_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge, u32 nr,
		    int access, struct vrnic_held *held, struct vrnic_sgl *sgl);
void vrnic_sgl_kva(struct vrnic_sgl *sgl, void *kva, u64 len);
void vrnic_sgl_write(struct vrnic_sgl *dst, const void *from, u64 n, bool final);
int vrnic_sgl_ready(struct vrnic_sgl *sgl, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait);
int vrnic_sgl_ready_all(struct vrnic_sgl *sgl, u64 n, bool write, struct vrnic_page_wait *wait);

#define vrnic_held_put(held)		((void)(held))
#define vrnic_seg_put(seg)		((void)(seg))
#define vrnic_seg_word(seg, width)	((u64 *)(seg)->kva)
#define vrnic_sgl_put(sgl)		((void)(sgl))
#define vrnic_sgl_skip(sgl, n)		((sgl)->pos += (n))
#define vrnic_sge_total(sge, n)		((n) ? (u64)(sge)->length : 0)

#endif /* UNIT_ROCE_KERNEL_H */
