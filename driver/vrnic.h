/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects of the device, and what each file offers to those above it.
 *
 * Locks, in the order in which they nest:
 *
 *	vrnic_qp.ctrl		mutex; modify, destroy
 *	  vrnic_qp.resp_lock	mutex; the queue pair as the target of a peer: target.h
 *	    vrnic_qp.state_lock	spinlock, irq
 *	    vrnic_rq.lock	spinlock, irq
 *	    vrnic_cq.lock	spinlock, irq
 *	      vrnic_crew.lock	spinlock, irq
 *
 * A runner holds the run bit of one send ring and at most one resp_lock: its
 * target's, or, to flush, its own; it never waits for a run bit, nor for a resp_lock.
 * So no chain of runners can close.
 */
#ifndef VRNIC_H
#define VRNIC_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/vrnic-abi.h>

#include "base/fault.h"
#include "base/stats.h"
#include "compat/compat.h"
#include "engine/engine.h"
#include "lib/ids.h"
#include "mem/mem.h"
#include "queue/ring.h"

struct mem_cgroup;
struct vrnic_link;

#define VRNIC_MAX_WR		16384
#define VRNIC_MAX_CQE		BIT(20)
#define VRNIC_MAX_RD_ATOM	128
#define VRNIC_MAX_MSG		BIT(31)	/* IBTA 9.7.7 */
#define VRNIC_GID_TABLE		256
#define VRNIC_PAGE_LIST		512		/* pages of a fast registration */
#define VRNIC_GRH_BYTES		40
#define VRNIC_MAX_GROUPS	8192		/* multicast groups with members */
#define VRNIC_MAX_MEMBERS	256		/* queue pairs in a group: copies of a datagram */
#define VRNIC_MAX_ATTACHED	BIT(16)		/* members of all groups */
#define VRNIC_MAX_MR		((u64)BIT(31) << PAGE_SHIFT)	/* bytes */

/* What consumers make, and a device has no end of but the one that it advertises. */
#define VRNIC_KERNEL_SHARE	BIT(16)		/* of each, that users cannot take */

enum vrnic_object {
	VRNIC_OBJECT_PD,
	VRNIC_OBJECT_CQ,
	VRNIC_OBJECT_SRQ,
	VRNIC_OBJECT_QP,
	VRNIC_OBJECT_MR,
	VRNIC_OBJECT_MW,
	VRNIC_OBJECT_AH,
	VRNIC_OBJECTS
};

/**
 * struct vrnic_dev - a device
 * @ibdev: the core's part
 * @ndev: what it sits on; a reference is held
 * @ndev_tracker: for that reference
 * @keys: local and remote keys: number = key >> 8, entry = region or tagged
 *	window; readers under RCU
 * @avs: address vectors by number; readers under RCU
 * @types: types by number; readers under RCU
 * @gsi: queue pair 1, or NULL; readers under RCU
 * @engine: the threads
 * @stats: counters
 * @objects: how many there are, by enum vrnic_object
 * @of_users: those of them that are not kernel consumers'
 * @faults: what goes wrong on purpose
 * @port_up: as last announced; protected by RTNL
 * @rescan: has the core look at the addresses of lo again
 * @mcast_lock: serialises who joins and leaves groups
 * @groups: struct vrnic_group by GID; readers under RCU
 * @attached: members of all groups; protected by @mcast_lock
 * @wire: the sockets of its network namespace, once it has any; set once
 * @wired: in the list of @wire, if there is one
 * @link: in the table of devices; readers under RCU
 */
struct vrnic_dev {
	struct ib_device ibdev;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	struct vrnic_ids keys;
	struct xarray avs;
	struct vrnic_ids types;
	struct vrnic_qp __rcu *gsi;
	struct vrnic_engine engine;
	struct vrnic_stats __percpu *stats;
	atomic_t objects[VRNIC_OBJECTS];
	atomic_t of_users[VRNIC_OBJECTS];
	struct vrnic_faults faults;
	bool port_up;
	struct work_struct rescan;
	struct mutex mcast_lock;	/* serialises writers of @groups, and @attached */
	struct rhashtable groups;
	u32 attached;
	struct vrnic_wire *wire;
	struct list_head wired;
	struct hlist_node link;
};

static inline struct vrnic_dev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct vrnic_dev, ibdev);
}

#define vrnic_count(dev, stat) \
	this_cpu_inc((dev)->stats->count[VRNIC_STAT_##stat])
#define vrnic_count_add(dev, stat, n) \
	this_cpu_add((dev)->stats->count[VRNIC_STAT_##stat], n)

/* Data that leave by one port and come in by another, without a packet. */
static inline void vrnic_count_moved(const struct vrnic_dev *from,
				     const struct vrnic_dev *to, u64 bytes)
{
	vrnic_count_add(from, XMIT_BYTES, bytes);
	vrnic_count_add(to, RCVD_BYTES, bytes);
}

struct vrnic_pd {
	struct ib_pd ibpd;
};

/**
 * struct vrnic_ucontext - what a process has open
 * @ibuc: the core's part
 * @mm: memory of the process that opened it; its count is held
 * @memcg: memory cgroup of that process when it did, which pays for what is kept for it, also
 *	when the process has gone, and others have the context; a reference is held. May be NULL
 * @crew: the engine threads in its cgroups; a reference is held
 * @counter_lock: protects @counter_pages
 * @counter_pages: struct vrnic_counter_page
 */
struct vrnic_ucontext {
	struct ib_ucontext ibuc;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	struct vrnic_crew *crew;
	struct mutex counter_lock;	/* protects @counter_pages */
	struct list_head counter_pages;
};

static inline struct vrnic_ucontext *to_vuc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct vrnic_ucontext, ibuc);
}

/**
 * struct vrnic_mmap - memory that a process maps: a ring, or counters
 * @rdma: the core's part
 * @mem: the memory
 * @private: only the process that opened the context may map it, and its
 *	children do not get it
 */
struct vrnic_mmap {
	struct rdma_user_mmap_entry rdma;
	void *mem;
	bool private;
};

/**
 * struct vrnic_av - where a UD message goes; lives until an RCU grace period
 * after its address handle
 * @rcu: for kfree_rcu()
 * @pd: a queue pair of another protection domain must not use it
 * @attr: as given, without the reference on its GID
 * @sgid: the sender's own GID
 * @oif: the interface that has it
 * @vlan: 1 + the VLAN of that interface; 0: none
 * @id: what user space calls it
 * @lock: protects what follows
 * @dst: the route there that was found last, with a reference; or NULL
 * @cookie: for dst_check()
 * @gone: it is about to be replaced or destroyed, or its device's namespace goes: no
 *	route is kept any more
 */
struct vrnic_av {
	struct rcu_head rcu;
	struct ib_pd *pd;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
	int oif;
	u16 vlan;
	u32 id;
	spinlock_t lock;	/* protects all below */
	struct dst_entry *dst;
	u32 cookie;
	bool gone;
};

struct vrnic_ah {
	struct ib_ah ibah;
	struct vrnic_av *av;
	bool user;	/* a process has it, not a kernel consumer */
};

/**
 * struct vrnic_cq - a completion queue
 * @ibcq: the core's part
 * @lock: protects what follows, but for @ring's consumer side
 * @ring: completions
 * @failed: it overflowed once; nothing is written any more
 * @timestamps: the process asked for them
 * @poll_idx: kernel consumers: next entry to poll
 * @resize: serialises those who replace @ring; the core does not
 */
struct vrnic_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* protects all below, but for the consumer's side */
	struct vrnic_ring ring;
	bool failed;
	bool timestamps;
	u32 poll_idx;
	struct mutex resize;	/* serialises who replaces @ring */
};

static inline struct vrnic_cq *to_vcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct vrnic_cq, ibcq);
}

/**
 * struct vrnic_rq - a receive ring: of a queue pair, or shared
 * @lock: protects what follows
 * @ring: entries of struct vrnic_recv_desc
 * @max_sge: segments that an entry may have
 * @max_wr: entries granted; a power of two
 * @limit: SRQ: raise an event when fewer than this are left; 0: no event
 */
struct vrnic_rq {
	spinlock_t lock;	/* protects all below */
	struct vrnic_ring ring;
	u32 max_sge;
	u32 max_wr;
	u32 limit;
};

struct vrnic_srq {
	struct ib_srq ibsrq;
	struct vrnic_rq rq;
	u32 srqn;
};

static inline struct vrnic_srq *to_vsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct vrnic_srq, ibsrq);
}

/**
 * struct vrnic_recv - a receive request that was taken off its ring
 * @active: there is one
 * @cookie: wr_id
 * @num_sge: segments
 * @sge: where the message goes
 */
struct vrnic_recv {
	bool active;
	u64 cookie;
	u32 num_sge;
	struct vrnic_sge sge[VRNIC_MAX_SGE];
};

/**
 * struct vrnic_op - the descriptor that a send ring is working on
 * @active: there is one
 * @info: its opcode's row, NULL if the opcode is not known
 * @total: bytes of its message
 * @done: bytes moved by earlier bursts
 * @moved: all of them were, and their memory may be gone; something else is left to do
 * @status: enum ib_wc_status, if it failed
 * @vendor_err: enum vrnic_vendor_err, if it failed
 * @rnr_left: RNR retries left; 7 means for ever
 * @retry_left: transport retries left
 * @tries: a datagram: how often its target was another's just then
 * @member: a datagram to a group: members below this number have had their copy
 * @slots: private copy of the descriptor with all that follows it
 *
 * Protected by the run bit of the queue pair.
 */
struct vrnic_op {
	bool active;
	const struct vrnic_opdef *info;
	u64 total;
	u64 done;
	bool moved;
	u8 status;
	u8 vendor_err;
	u8 rnr_left;
	u8 retry_left;
	u8 tries;
	unsigned long member;
	u8 slots[VRNIC_MAX_SLOTS * VRNIC_SLOT_SIZE] __aligned(8);
};

static inline struct vrnic_desc *vrnic_op_desc(struct vrnic_op *op)
{
	return (struct vrnic_desc *)op->slots;
}

/**
 * struct vrnic_hold - what a send ring keeps hold of during a burst, so that
 * operations that follow each other need not look it up again
 * @peer: referenced, and its resp_lock is held; or NULL
 * @local: for local keys of the requester
 * @remote: for remote keys that the requester claims at @peer
 * @recv: for local keys of the receives at @peer
 */
struct vrnic_hold {
	struct vrnic_qp *peer;
	struct vrnic_held local;
	struct vrnic_held remote;
	struct vrnic_held recv;
};

/**
 * struct vrnic_link_ops - what the queue pair of a native link asks of the link
 * @created: it is there, and nobody else finds it yet
 * @open: the memory of a message that is to be sent; need not be put
 * @sent: a message is not needed any more: it was acknowledged, or has failed
 * @receive: a packet of a message came. Return: 0, -EAGAIN: it is to come again, or
 *	another negative errno: it makes no sense
 * @broken: nothing can be posted from now on
 * @flushed: the queue pair has failed, and has nothing of the link in hand
 *
 * @cookie is the descriptor's. Context: the run of the queue pair.
 */
struct vrnic_link_ops {
	void (*created)(struct vrnic_link *link, struct vrnic_qp *qp);
	void (*open)(struct vrnic_sgl *sgl, u64 cookie);
	void (*sent)(struct vrnic_link *link, u64 cookie, u8 status);
	int (*receive)(struct vrnic_link *link, struct sk_buff *skb);
	void (*broken)(struct vrnic_link *link);
	void (*flushed)(struct vrnic_link *link);
};

/**
 * struct vrnic_qp - a queue pair
 * @rcu: it is freed an RCU grace period after it was destroyed
 * @refs: held by its owner, and by peers for the length of a burst
 * @gone: the last reference was put
 * @dev: device; valid while a reference is held
 * @ibqp: the core's part; valid while a reference is held
 * @qpn: number; unique on this host, also for a GSI queue pair, whose number
 *	on the wire is 1
 * @type: IB_QPT_*
 * @uctx: context of the process that maps its rings; NULL for a kernel
 *	consumer's. Only compared, never followed.
 * @sig_all: every send request makes a completion
 * @cap: what was granted
 * @ctrl: serialises modify and destroy
 * @attr: attributes as last modified; protected by @ctrl. What runners read
 *	of it is stable from RTR on, or a single word.
 * @sgid: its own GID, once it has an address vector
 * @state_lock: protects writes of @state
 * @state: enum ib_qp_state
 * @sq_draining: SQD, and the event was not raised yet; protected by @state_lock
 * @comm_est: COMM_EST was raised; protected by @resp_lock
 * @last_wqe: LAST_WQE_REACHED was raised; protected by @resp_lock
 * @run: the engine's handle; its run bit protects @sq, @sq_done, @op and @sgl
 * @sq: send ring
 * @sq_done: requests of it that have ended since RESET
 * @op: what the send ring is working on
 * @sgl: scratch: the local memory of @op during a burst
 * @hold: kept during a burst; protected by the run bit
 * @wait_until: do not run @op before; 0: run it
 * @limit: bytes a second that the consumer allows it to send; 0: any. Changed
 *	with the ring parked.
 * @paid_at: when what it sent will be paid for, in ns; protected by the run bit
 * @post_lock: kernel consumers: serialises post_send()
 * @rq: receive ring, if there is no @srq
 * @srq: shared receive ring or NULL
 * @resp_lock: serialises peers that use this queue pair as a target, and @recv
 * @recv: receive that a message is being put into; protected by @resp_lock
 * @recv_sgl: scratch: the memory that a burst reaches here; likewise
 * @roce: its wire to the peer; NULL: the peer is on this host. Changed with the
 *	ring parked, in a state in which no local peer looks at it. With it, @recv
 *	and @recv_sgl are protected by the run bit, as no local peer uses the queue
 *	pair then. Softirqs that bring packets look at its path.
 * @rxq: packets that wait for a run; has a lock of its own
 * @rxq_bytes: memory that they hold; protected by that lock
 * @ud_psn: of the next datagram to the wire; protected by the run bit
 * @groups: multicast groups that it is in; protected by vrnic_dev.mcast_lock
 * @link: the native link that it carries; NULL: it is a consumer's
 * @link_ops: what it asks of @link
 * @wired: in the list of its wire as long as it may have a route; changed with @ctrl held
 * @gfp: how it gets memory
 */
struct vrnic_qp {
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	struct vrnic_dev *dev;
	struct ib_qp *ibqp;
	u32 qpn;
	enum ib_qp_type type;
	struct ib_ucontext *uctx;
	bool sig_all;
	struct ib_qp_cap cap;
	struct mutex ctrl;		/* serialises modify and destroy */
	struct ib_qp_attr attr;
	union ib_gid sgid;
	spinlock_t state_lock;		/* protects writes of @state */
	enum ib_qp_state state;
	bool sq_draining;
	bool comm_est;
	bool last_wqe;
	struct vrnic_runnable run;
	struct vrnic_ring sq;
	u32 sq_done;
	struct vrnic_op op;
	struct vrnic_sgl sgl;
	struct vrnic_hold hold;
	u64 wait_until;
	u64 limit;
	u64 paid_at;
	spinlock_t post_lock;		/* kernel consumers' post_send() */
	struct vrnic_rq rq;
	struct vrnic_srq *srq;
	struct mutex resp_lock;		/* protects @recv and @recv_sgl */
	struct vrnic_recv recv;
	struct vrnic_sgl recv_sgl;
	struct vrnic_roce *roce;
	struct sk_buff_head rxq;
	u32 rxq_bytes;
	u32 ud_psn;
	u32 groups;
	struct vrnic_link *link;
	const struct vrnic_link_ops *link_ops;
	struct list_head wired;
	gfp_t gfp;
};

/* The core allocates and frees this; a struct vrnic_qp has to live longer. */
struct vrnic_ibqp {
	struct ib_qp ibqp;
	struct vrnic_qp *qp;
};

static inline struct vrnic_qp *to_vqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct vrnic_ibqp, ibqp)->qp;
}

static inline struct vrnic_cq *vrnic_send_cq(struct vrnic_qp *qp)
{
	return to_vcq(qp->ibqp->send_cq);
}

static inline struct vrnic_cq *vrnic_recv_cq(struct vrnic_qp *qp)
{
	return to_vcq(qp->ibqp->recv_cq);
}

/* ring.c */
struct vrnic_mmap *vrnic_mmap_new(struct ib_ucontext *uctx, size_t bytes);
int vrnic_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void vrnic_mmap_free(struct rdma_user_mmap_entry *entry);

/* objects.c */
int vrnic_object_max(enum vrnic_object kind);
bool vrnic_object_get(struct vrnic_dev *dev, enum vrnic_object kind, bool user);
void vrnic_object_put(struct vrnic_dev *dev, enum vrnic_object kind, bool user);
void vrnic_objects_gone(const struct vrnic_dev *dev);

/* device.c */
int vrnic_device_add(const char *name, struct net_device *ndev);
void vrnic_device_event(struct net_device *ndev, unsigned long event);
void vrnic_device_addr_event(struct net_device *ndev);

/* port.c */
void vrnic_port_open(struct vrnic_dev *dev);
void vrnic_port_close(struct vrnic_dev *dev);
struct vrnic_dev *vrnic_hearer(struct net_device *ndev);
struct net_device *vrnic_lower(struct net_device *ndev);
void vrnic_dev_count(struct net *net, struct net_device *ndev,
		     enum vrnic_stat stat, u32 count);
int vrnic_gid_oif(struct vrnic_dev *dev, const struct ib_gid_attr *attr);
struct net *vrnic_net(const struct net_device *ndev);
struct net *vrnic_net_get(const struct net_device *ndev);
enum ib_mtu vrnic_active_mtu(const struct vrnic_dev *dev);

/* gid.c */
int vrnic_add_gid(const struct ib_gid_attr *attr, void **context);
int vrnic_del_gid(const struct ib_gid_attr *attr, void **context);
bool vrnic_owns(struct vrnic_dev *dev, const union ib_gid *gid);
bool vrnic_gid_is_local(struct vrnic_dev *from, const union ib_gid *gid);
bool vrnic_reaches(struct vrnic_dev *from, const union ib_gid *gid,
		   struct vrnic_dev *to);
void vrnic_gid_owners(const struct net *net, const union ib_gid *gid,
		      bool (*fn)(struct vrnic_dev *dev, void *arg), void *arg);

/* rate.c */
#define VRNIC_RATE_ANY	U64_MAX
u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until);
void vrnic_rate_sent(struct vrnic_qp *qp, u64 bytes);

/* roce/arrive.c */
void vrnic_late_init(struct vrnic_dev *dev);
void vrnic_late_drop(struct vrnic_dev *dev);

/* roce/av_route.c */
struct dst_entry *vrnic_av_route(struct vrnic_av *av, u32 *cookie);
void vrnic_av_keep(struct vrnic_dev *dev, struct vrnic_av *av, struct dst_entry *dst,
		   u32 cookie);
void vrnic_avs_forget(struct vrnic_dev *dev);
void vrnic_av_forget(struct vrnic_dev *dev, struct vrnic_av *av);

/* roce/socket.c */
int vrnic_wire_init(void);
void vrnic_wire_exit(void);
void vrnic_wire_on_hello(void (*fn)(struct net *net, struct sk_buff *skb));
int vrnic_wire_open(struct vrnic_dev *dev);
void vrnic_wire_close(struct vrnic_dev *dev);
void vrnic_route_put(struct vrnic_dev *dev, struct dst_entry *dst);

/* sysfs.c */
extern const struct attribute_group vrnic_attr_group;

/* netlink.c */
int vrnic_process_mad(struct ib_device *ibdev, int flags, u32 port,
		      const struct ib_wc *wc, const struct ib_grh *grh,
		      const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index);

int vrnic_netlink_init(void);
void vrnic_netlink_exit(void);

/* ucontext.c, type.c, pd.c */
extern const struct uapi_definition vrnic_uapi_defs[];
extern const struct uapi_definition vrnic_type_defs[];
int vrnic_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
void vrnic_dealloc_ucontext(struct ib_ucontext *uctx);
void vrnic_disassociate_ucontext(struct ib_ucontext *uctx);
int vrnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* udata.c */
struct ib_ucontext *vrnic_udata_ucontext(struct ib_udata *udata);
int vrnic_udata_empty(struct ib_udata *udata);
int vrnic_udata_request(struct ib_udata *udata, void *req, size_t size,
			size_t oldest);
int vrnic_udata_respond(struct ib_udata *udata, void *resp, size_t size,
			size_t oldest);

/* ah.c */
int vrnic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int vrnic_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrnic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrnic_destroy_ah(struct ib_ah *ibah, u32 flags);

/* cq.c */
int vrnic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int vrnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int vrnic_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int vrnic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
int vrnic_cq_post(struct vrnic_cq *cq, const struct vrnic_cqe *cqe,
		  bool solicited);

/* rq.c */
int vrnic_rq_init(struct vrnic_rq *rq, u32 max_wr, u32 max_sge, gfp_t gfp);
int vrnic_rq_post(struct vrnic_rq *rq, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
int vrnic_rq_take(struct vrnic_rq *rq, struct vrnic_recv *recv);

/* srq.c */
int vrnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata);
int vrnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata);
int vrnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int vrnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int vrnic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);
int vrnic_srq_take(struct vrnic_srq *srq, struct vrnic_recv *recv);

/* qp.c */
int vrnic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata);
int vrnic_create_link_qp(struct vrnic_ibqp *ibqp, struct vrnic_link *link,
			 const struct vrnic_link_ops *ops, struct vrnic_crew *crew,
			 u32 slots, gfp_t gfp);
int vrnic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int vrnic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);

/* queue/qp_table.c */
int vrnic_qp_publish(struct vrnic_qp *qp);
void vrnic_qp_hide(struct vrnic_qp *qp);
struct vrnic_qp *vrnic_qp_get(u32 qpn);
struct vrnic_qp *vrnic_gsi_get(struct vrnic_dev *dev);
void vrnic_qp_put(struct vrnic_qp *qp);
int vrnic_qps_init(void);
void vrnic_qps_exit(void);
struct vrnic_qp *vrnic_gsi_by_gid(struct vrnic_dev *from,
				  const union ib_gid *gid);
struct vrnic_qp *vrnic_gsi_by_net(struct net *net, struct net_device *ndev,
				  const union ib_gid *gid);

/* post.c: kernel consumers */
int vrnic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int vrnic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad);

/* verbs/qp_modify.c */
int vrnic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);

/* queue/qp_error.c */
void vrnic_rings_fail(struct vrnic_qp *qp);
void vrnic_qp_error(struct vrnic_qp *qp, enum ib_event_type event);
void vrnic_qp_event(struct vrnic_qp *qp, enum ib_event_type event);
void vrnic_sq_error(struct vrnic_qp *qp);
void vrnic_sq_drained(struct vrnic_qp *qp);

/* sq.c: runs a send ring */
extern const struct vrnic_runnable_ops vrnic_sq_ops;

/* queue/recv.c: a queue pair as the target */
u32 vrnic_rnr_ns(u8 code);
int vrnic_recv_take(struct vrnic_qp *qp);
void vrnic_recv_complete(struct vrnic_qp *qp, struct vrnic_cqe *cqe,
			 bool solicited);
bool vrnic_recv_flush(struct vrnic_qp *qp, struct vrnic_budget *budget);

/* mcast.c */
int vrnic_mcast_init(struct vrnic_dev *dev);
void vrnic_mcast_exit(struct vrnic_dev *dev);
int vrnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int vrnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
struct vrnic_qp *vrnic_mcast_next(struct vrnic_dev *dev, const union ib_gid *gid,
				  unsigned long *number);
unsigned int vrnic_mcast_members(struct vrnic_dev *dev,
				 const union ib_gid *gid,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg);
unsigned int vrnic_mcast_receive(struct net *net, struct net_device *ndev,
				 const union ib_gid *from,
				 const union ib_gid *to,
				 void (*fn)(struct vrnic_qp *qp, void *arg),
				 void *arg);

#endif /* VRNIC_H */
