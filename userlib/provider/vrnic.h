/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's objects, and what each file offers to the others.
 *
 * Locks: one for each side (send, receive) of a queue pair, two for each SRQ, four for each CQ.
 * They nest like this: vrnic_gate.mutex of an SRQ outside of vrnic_srq.rq.lock; that of a CQ
 * outside of vrnic_cq.lock, and that outside of vrnic_cq.arm_lock or vrnic_cq.sides_lock. No
 * spinlock is held during an ioctl().
 */
#ifndef VRNIC_PROVIDER_H
#define VRNIC_PROVIDER_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "compat.h"
#include <rdma/vrnic-abi.h>

#include "../ring.h"

struct vrnic_device {
	struct verbs_device vdev;
};

/**
 * struct vrnic_context - an opened device
 * @vctx: libibverbs' part
 * @doorbell_fd: the doorbell file
 * @features: VRNIC_FEATURE_* of the module
 * @one_cpu: the thread that opened the device may use one CPU only
 * @late: queue pairs whose doorbell waits for more to be posted
 * @vain: reads of completion counters that had not changed; atomic
 */
struct vrnic_context {
	struct verbs_context vctx;
	int doorbell_fd;
	uint32_t features;
	bool one_cpu;
	struct vrnic_late late;
	unsigned int vain;
};

/**
 * struct vrnic_lock - a spinlock, unless the program vouches for one thread
 * @spin: the lock
 * @unused: the object's thread domain makes it superfluous
 */
struct vrnic_lock {
	pthread_spinlock_t spin;
	bool unused;
};

/**
 * struct vrnic_gate - keeps threads away from a ring that is being replaced: gate.c
 * @mutex: protects @waiting
 * @opened: signalled when @closed or @waiting goes back to zero
 * @waiting: number of threads that found @closed set, and have not got their lock since
 * @lock: lock of the ring
 * @other: one more lock or NULL
 * @closed: written with @mutex, @lock and @other; read with any of them
 */
struct vrnic_gate {
	pthread_mutex_t mutex;	/* protects @waiting */
	pthread_cond_t opened;
	unsigned int waiting;
	struct vrnic_lock *lock;
	struct vrnic_lock *other;
	bool closed;
};

/**
 * struct vrnic_td - a thread domain
 * @td: libibverbs' part
 * @users: parent domains that have it
 */
struct vrnic_td {
	struct ibv_td td;
	atomic_uint users;
};

/**
 * struct vrnic_pd - a protection domain or a parent domain
 * @pd: libibverbs' part; a parent domain's handle is its protection domain's
 * @users: number of parent domains that contain it; for a parent domain: number of objects that
 *	were made in it, because the kernel does not know parent domains
 * @contained: for a parent domain: its protection domain; else NULL
 * @td: for a parent domain: its thread domain or NULL
 */
struct vrnic_pd {
	struct ibv_pd pd;
	atomic_uint users;
	struct vrnic_pd *contained;
	struct vrnic_td *td;
};

struct vrnic_ah {
	struct ibv_ah ah;
	uint32_t id;
};

/**
 * struct vrnic_polled - send or receive side of a queue pair, as its completion queue knows it
 * @apart: puts @key and @done on another cache line than the members before this struct: a thread
 *	that polls writes @done, and a thread that posts uses those members
 * @key: vrnic_polled_key()
 * @done: number of requests of this side that are not under way any more, because their
 *	completion, or that of a later request, was polled; modulo 2^32; written with
 *	vrnic_cq.lock
 */
struct vrnic_polled {
	uint8_t apart[56];
	uint32_t key;
	uint32_t done;
};

/**
 * struct vrnic_credit - how many requests may be posted to one side of a queue pair
 * @max: how many requests may be under way; 0: as many as there are slots
 * @posted: how many were posted since RESET, modulo 2^32
 * @done: @polled->done as last read
 * @polled: counts the requests that are not under way any more
 *
 * A request is under way until the program has polled its completion, not only until the request
 * ended. So a completion queue with room for @max of each of its sides does not overflow.
 */
struct vrnic_credit {
	uint32_t max;
	uint32_t posted;
	uint32_t done;
	const struct vrnic_polled *polled;
};

/**
 * struct vrnic_dm - device memory
 * @vdm: libibverbs' part
 * @mem: the mapping
 * @bytes: length of the mapping
 * @length: bytes that were allocated
 */
struct vrnic_dm {
	struct verbs_dm vdm;
	uint8_t *mem;
	size_t bytes;
	size_t length;
};

struct vrnic_sides;

/**
 * struct vrnic_cq - a completion queue
 * @vcq: libibverbs' part
 * @gate: keeps all other threads away from @ring while one thread replaces it
 * @lock: protects @ring and @cur; held from start_poll to end_poll
 * @arm_lock: protects @ring's arm word: arming must not wait for @lock, since a
 *	program may arm before it calls end_poll
 * @ring: completions
 * @cur: extended poll: the completion that the read functions look at
 * @copy: the completion that was taken last; its place in the ring is the kernel's again
 * @idle: polls since the last one that found a completion
 * @vain: polls that found none
 * @parent: parent domain that it was made in, or NULL
 * @arms: how often it was armed; written with @arm_lock
 * @raised: value of @arms when the arm word was last found cleared; written with @lock
 * @sides: the queue pairs that complete here; NULL: none yet. Read with @lock, without
 *	@sides_lock; written with @sides_lock, and with both to take a queue pair out
 * @sides_lock: protects writes of @sides. Adding a queue pair takes this lock alone, because a
 *	program may create one before it calls end_poll, which releases @lock.
 *
 * A thread that posts reads @vain, @arms and @raised without a lock. It must not read
 * the ring, which may be unmapped meanwhile.
 */
struct vrnic_cq {
	struct verbs_cq vcq;
	struct vrnic_gate gate;
	struct vrnic_lock lock;
	struct vrnic_lock arm_lock;
	struct vrnic_ring ring;
	const struct vrnic_cqe *cur;
	struct vrnic_cqe copy;
	unsigned int idle;
	unsigned int vain;
	struct ibv_pd *parent;
	uint32_t arms;
	uint32_t raised;
	struct vrnic_sides *sides;
	pthread_mutex_t sides_lock;	/* protects writes of @sides */
};

/**
 * struct vrnic_rq - the receive ring of a queue pair, or of an SRQ
 * @lock: protects @ring and @credit
 * @ring: entries of struct vrnic_recv_desc
 * @credit: requests of a queue pair; those of an SRQ are not counted
 * @max_sge: segments that an entry may have
 */
struct vrnic_rq {
	struct vrnic_lock lock;
	struct vrnic_ring ring;
	struct vrnic_credit credit;
	uint32_t max_sge;
};

/**
 * struct vrnic_srq - a shared receive queue
 * @vsrq: libibverbs' part
 * @srqn: its number
 * @gate: keeps all other threads away from the ring of @rq while one thread replaces it
 * @rq: receive ring
 */
struct vrnic_srq {
	struct verbs_srq vsrq;
	uint32_t srqn;
	struct vrnic_gate gate;
	struct vrnic_rq rq;
};

/**
 * struct vrnic_build - a descriptor that is being built in its slots
 * @op: the row of the descriptor's operation in vrnic_send_ops
 * @desc: its first slot; NULL: none is being built
 * @slot: index of the first slot
 * @in_slots: XRC: part of the SRQ's number that is in vrnic_desc.num_slots; else 0
 * @in_len: XRC: part of the SRQ's number that is in vrnic_desc.num_sge; else 0
 */
struct vrnic_build {
	const struct vrnic_send_op *op;
	struct vrnic_desc *desc;
	uint32_t slot;
	uint16_t in_slots;
	uint32_t in_len;
};

/**
 * struct vrnic_qp - a queue pair
 * @vqp: libibverbs' part
 * @sq_lock: protects @sq, @credit, @build, @first, @first_posted and @error; held
 *	from wr_start to wr_complete or wr_abort
 * @sq: send ring; not mapped of an XRC target
 * @credit: how many more requests may be posted
 * @build: the descriptor that is being built
 * @vain: vrnic_cq.vain of the send completion queue and vrnic_context.vain at the last post;
 *	protected by @sq_lock, as is @streak
 * @streak: posts in a row between which no thread polled that completion queue in vain, or read a
 *	counter
 * @first: for the ibv_wr functions: @sq.next at wr_start
 * @first_posted: for the ibv_wr functions: @credit.posted at wr_start
 * @error: for the ibv_wr functions: the first error since wr_start
 * @always: VRNIC_DESC_SIGNALED if every request makes a completion, else 0
 * @max_sge: segments that a send request may have
 * @max_inline: inline bytes that a send request may have
 * @rq: receive ring; not mapped if there is an SRQ, or of XRC
 * @polled: counts of polled requests, by enum vrnic_side
 */
struct vrnic_qp {
	struct verbs_qp vqp;
	struct vrnic_lock sq_lock;
	struct vrnic_ring sq;
	struct vrnic_credit credit;
	struct vrnic_build build;
	unsigned int vain;
	unsigned int streak;
	uint32_t first;
	uint32_t first_posted;
	int error;
	uint8_t always;
	uint32_t max_sge;
	uint32_t max_inline;
	struct vrnic_rq rq;
	struct vrnic_polled polled[2];
};

enum vrnic_side { VRNIC_SIDE_RECV, VRNIC_SIDE_SEND };

/**
 * struct vrnic_wq - a work queue
 * @wq: libibverbs' part
 * @rq: receive ring
 * @polled: counts the requests that were polled
 */
struct vrnic_wq {
	struct ibv_wq wq;
	struct vrnic_rq rq;
	struct vrnic_polled polled;
};

static inline struct vrnic_context *to_vctx(struct ibv_context *context)
{
	return container_of(context, struct vrnic_context, vctx.context);
}

static inline struct vrnic_pd *to_vpd(struct ibv_pd *pd)
{
	return container_of(pd, struct vrnic_pd, pd);
}

static inline struct vrnic_td *to_vtd(struct ibv_td *td)
{
	return container_of(td, struct vrnic_td, td);
}

static inline struct vrnic_ah *to_vah(struct ibv_ah *ah)
{
	return container_of(ah, struct vrnic_ah, ah);
}

static inline struct vrnic_dm *to_vdm(struct ibv_dm *dm)
{
	return container_of(dm, struct vrnic_dm, vdm.dm);
}

static inline struct vrnic_cq *to_vcq(struct ibv_cq *cq)
{
	return container_of(cq, struct vrnic_cq, vcq.cq);
}

static inline struct vrnic_srq *to_vsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct vrnic_srq, vsrq.srq);
}

static inline struct vrnic_qp *to_vqp(struct ibv_qp *qp)
{
	return container_of(qp, struct vrnic_qp, vqp.qp);
}

static inline struct vrnic_wq *to_vwq(struct ibv_wq *wq)
{
	return container_of(wq, struct vrnic_wq, wq);
}

static inline void vrnic_lock_init(struct vrnic_lock *lock, bool unused)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->unused = unused;
}

static inline void vrnic_lock_destroy(struct vrnic_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void vrnic_lock(struct vrnic_lock *lock)
{
	if (!lock->unused)
		pthread_spin_lock(&lock->spin);
}

static inline void vrnic_unlock(struct vrnic_lock *lock)
{
	if (!lock->unused)
		pthread_spin_unlock(&lock->spin);
}

/* gate.c */
void vrnic_gate_init(struct vrnic_gate *gate, struct vrnic_lock *lock, struct vrnic_lock *other);
void vrnic_gate_fini(struct vrnic_gate *gate);
void vrnic_gate_close(struct vrnic_gate *gate);
void vrnic_gate_open(struct vrnic_gate *gate);
void vrnic_gate_await(struct vrnic_gate *gate, struct vrnic_lock *lock);

/* Take @lock, which is one of @gate's, when the gate is open. */
static inline void vrnic_gate_lock(struct vrnic_gate *gate, struct vrnic_lock *lock)
{
	vrnic_lock(lock);
	if (__builtin_expect(gate->closed, false))
		vrnic_gate_await(gate, lock);
}

/* cpu.c */
bool vrnic_has_one_cpu(void);

/* pd.c */
struct ibv_pd *vrnic_alloc_pd(struct ibv_context *context);
int vrnic_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *vrnic_import_pd(struct ibv_context *context, uint32_t handle);
void vrnic_unimport_pd(struct ibv_pd *pd);
struct ibv_td *vrnic_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr);
int vrnic_dealloc_td(struct ibv_td *td);
struct ibv_pd *
vrnic_alloc_parent_domain(struct ibv_context *context,
			  struct ibv_parent_domain_init_attr *attr);
bool vrnic_pd_one_thread(struct ibv_pd *pd);

/* An object was made in @pd: if that is a parent domain, it cannot be freed before the put. */
static inline void vrnic_pd_get(struct ibv_pd *pd)
{
	if (to_vpd(pd)->contained)
		atomic_fetch_add(&to_vpd(pd)->users, 1);
}

static inline void vrnic_pd_put(struct ibv_pd *pd)
{
	if (to_vpd(pd)->contained)
		atomic_fetch_sub(&to_vpd(pd)->users, 1);
}

/* buf.c */
#ifdef VRNIC_HAVE_BUF
void *vrnic_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out);
void vrnic_free_buf(struct ibv_buf *buf);
#endif

/* comp_cntr.c */
#ifdef VRNIC_HAVE_COMP_CNTR
struct ibv_comp_cntr *vrnic_create_comp_cntr(struct ibv_context *context,
					     struct ibv_comp_cntr_init_attr *attr);
int vrnic_destroy_comp_cntr(struct ibv_comp_cntr *ibcc);
int vrnic_read_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t *value);
int vrnic_read_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t *value);
int vrnic_set_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t value);
int vrnic_set_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t value);
int vrnic_inc_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t amount);
int vrnic_inc_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t amount);
int vrnic_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			       size_t size);
#endif

/* mr.c */
struct ibv_mr *vrnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access);
int vrnic_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sges, uint32_t nr);
int vrnic_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access);
int vrnic_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *vrnic_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access);
struct ibv_mr *vrnic_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
			       size_t length, unsigned int access);
struct ibv_mr *vrnic_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *vrnic_import_mr(struct ibv_pd *pd, uint32_t handle);
void vrnic_unimport_mr(struct ibv_mr *mr);
struct ibv_mw *vrnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vrnic_dealloc_mw(struct ibv_mw *mw);
int vrnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind);

/* flow.c */
struct ibv_flow *vrnic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int vrnic_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *vrnic_create_counters(struct ibv_context *context,
					   struct ibv_counters_init_attr *attr);
int vrnic_destroy_counters(struct ibv_counters *counters);
int vrnic_attach_counters_point_flow(struct ibv_counters *counters,
				     struct ibv_counter_attach_attr *attr,
				     struct ibv_flow *flow);
int vrnic_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t nr,
			uint32_t flags);

/* dm.c */
struct ibv_dm *vrnic_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vrnic_free_dm(struct ibv_dm *dm);
struct ibv_dm *vrnic_import_dm(struct ibv_context *context, uint32_t handle);
void vrnic_unimport_dm(struct ibv_dm *dm);

/* ah.c */
struct ibv_ah *vrnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int vrnic_destroy_ah(struct ibv_ah *ah);

/* cq.c */
struct ibv_cq *vrnic_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *vrnic_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int vrnic_resize_cq(struct ibv_cq *cq, int cqe);
int vrnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int vrnic_destroy_cq(struct ibv_cq *cq);
int vrnic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int vrnic_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
void vrnic_cq_forget_qp(struct ibv_cq *cq, uint32_t qpn);

/* wq.c */
struct ibv_wq *vrnic_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int vrnic_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vrnic_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *vrnic_create_rwq_ind_table(struct ibv_context *context,
						     struct ibv_rwq_ind_table_init_attr *attr);
int vrnic_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_qp *vrnic_create_qp_rss(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
void vrnic_tell_rss(struct ibv_rss_caps *caps);

/* credit.c */
int vrnic_credit_open_side(struct vrnic_credit *credit, struct vrnic_polled *polled,
			   struct ibv_cq *cq, uint32_t qpn, enum vrnic_side side);
void vrnic_credit_close_side(struct vrnic_credit *credit, struct vrnic_polled *polled,
			     struct ibv_cq *cq);
int vrnic_credit_open(struct vrnic_qp *qp);
void vrnic_credit_close(struct vrnic_qp *qp);
void vrnic_credit_reset(struct vrnic_credit *credit);

/**
 * vrnic_credit_room() - may one more request be posted
 * @credit: of a ring whose lock the caller holds
 *
 * Reads the word that another CPU writes only if its last value does not suffice.
 * Return: true if so.
 */
static inline bool vrnic_credit_room(struct vrnic_credit *credit)
{
	if (credit->posted - credit->done < credit->max || !credit->max)
		return true;
	/* D1: acquire of the count, with the release in vrnic_cq_retire() */
	credit->done = __atomic_load_n(&credit->polled->done, __ATOMIC_ACQUIRE);
	return credit->posted - credit->done < credit->max;
}

/* cq_ex.c */
void vrnic_cq_ex_init(struct vrnic_cq *cq, uint64_t wc_flags);

/* srq.c */
struct ibv_srq *vrnic_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr);
struct ibv_srq *vrnic_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr);
int vrnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int vrnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int vrnic_destroy_srq(struct ibv_srq *srq);
int vrnic_get_srq_num(struct ibv_srq *srq, uint32_t *srqn);
int vrnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad);

/* xrc.c */
struct ibv_xrcd *vrnic_open_xrcd(struct ibv_context *context,
				 struct ibv_xrcd_init_attr *attr);
int vrnic_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *vrnic_open_qp(struct ibv_context *context,
			     struct ibv_qp_open_attr *attr);

/* qp.c */
struct ibv_qp *vrnic_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr);
struct ibv_qp *vrnic_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
int vrnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int vrnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int vrnic_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *limit);
int vrnic_destroy_qp(struct ibv_qp *qp);

/* ring.c */
int vrnic_ring_map(struct vrnic_ring *ring, struct ibv_context *context,
		   const struct vrnic_ring_info *info);
void vrnic_ring_unmap(struct vrnic_ring *ring, struct ibv_context *context);

/* Have all use of @ring fail, because the kernel has another one, which could not be mapped. */
static inline void vrnic_ring_fail(struct vrnic_ring *ring)
{
	__atomic_fetch_or(&ring->hdr->flags, VRNIC_RING_ERROR, __ATOMIC_RELAXED);
}

/* Start the ring anew. The kernel has put the indices in its header back to zero. */
static inline void vrnic_ring_reset(struct vrnic_ring *ring)
{
	ring->next = 0;
	ring->cons = 0;
}

/* rq.c */
int vrnic_rq_init(struct vrnic_rq *rq, struct ibv_context *context,
		  const struct vrnic_ring_info *info, uint32_t max_sge,
		  bool one_thread);
void vrnic_rq_fini(struct vrnic_rq *rq, struct ibv_context *context);
int vrnic_rq_put(struct vrnic_rq *rq, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);
int vrnic_rq_post(struct vrnic_rq *rq, struct ibv_context *context, uint32_t qpn,
		  struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vrnic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad);

/* post.c */
int vrnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad);

/* wr.c */
uint64_t vrnic_wr_supported(enum ibv_qp_type type);
void vrnic_wr_init(struct vrnic_qp *qp);

/* doorbell.c */
int vrnic_doorbell_open(struct vrnic_context *ctx);
int vrnic_doorbell_ring(struct ibv_context *context, uint32_t qpn);
void vrnic_doorbell_later(struct ibv_qp *qp);
void vrnic_doorbell_ring_late(struct vrnic_context *ctx);

/* Ring all doorbells that are due, because the program may wait for their requests. */
static inline void vrnic_doorbell_flush(struct vrnic_context *ctx)
{
	if (vrnic_late_any(&ctx->late))
		vrnic_doorbell_ring_late(ctx);
}

#endif /* VRNIC_PROVIDER_H */
