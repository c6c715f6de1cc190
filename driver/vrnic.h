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
 * A runner holds the run bit of one send ring and at most one resp_lock: the resp_lock of its
 * target or, to flush, that of its own queue pair. A runner never waits for a run bit or a
 * resp_lock, so runners cannot wait for each other in a circle.
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

/* The objects that consumers make. Only the advertised limits bound their number. */
#define VRNIC_KERNEL_SHARE	BIT(16)		/* objects of each kind that users cannot take */

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
 * @ndev: the network device below this device; a reference is held
 * @ndev_tracker: for the reference on @ndev
 * @keys: local and remote keys: number = key >> 8, entry = region or tagged window; read under RCU
 * @avs: address vectors by number; read under RCU
 * @types: types by number; read under RCU
 * @gsi: queue pair 1, or NULL; read under RCU
 * @engine: the threads that run its rings
 * @stats: counters
 * @objects: number of objects, by enum vrnic_object
 * @of_users: those of @objects that belong to processes, not to kernel consumers
 * @faults: faults to inject, for tests
 * @port_up: port state that was announced last; protected by RTNL
 * @rescan: makes the core look at the addresses of lo again
 * @mcast_lock: serialises joins and leaves of multicast groups
 * @groups: struct vrnic_group by GID; read under RCU
 * @attached: members of all groups; protected by @mcast_lock
 * @wire: sockets of the device's network namespace, once there are any; set once
 * @wired: entry in the list of @wire, if @wire is set
 * @link: entry in the table of devices; read under RCU
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
	struct mutex mcast_lock;	/* protects @attached and writes of @groups */
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

/* Count data that leave by the port of @from and arrive at that of @to without a packet. */
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
 * struct vrnic_ucontext - an open device file
 * @ibuc: the core's part
 * @mm: memory of the process that opened the file; its mm_count is held
 * @memcg: memory cgroup of the process when it opened the file; a reference is held. It pays for
 *	what is kept for the context, also when the process has gone and others have the file. May
 *	be NULL
 * @crew: the engine threads in the cgroups of the process; a reference is held
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
 * struct vrnic_av - where a UD message goes
 * @rcu: for kfree_rcu()
 * @pd: protection domain; queue pairs of other domains must not use this vector
 * @attr: as the consumer gave it, without the reference on its GID
 * @sgid: the sender's own GID
 * @oif: index of the interface that has @sgid
 * @vlan: 1 + the VLAN of @oif; 0: none
 * @id: number by which user space names this vector
 * @lock: protects what follows
 * @dst: the route that was found last, with a reference; or NULL
 * @cookie: of @dst, for dst_check()
 * @gone: keep no route any more: this vector is about to be replaced or destroyed, or its device's
 *	network namespace ends
 *
 * A vector is freed an RCU grace period after its address handle.
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
	bool user;	/* the owner is a process, not a kernel consumer */
};

/**
 * struct vrnic_cq - a completion queue
 * @ibcq: the core's part
 * @lock: protects what follows, except the consumer's side of @ring
 * @ring: completions
 * @failed: the ring overflowed once; no completion is written any more
 * @timestamps: the process asked for timestamps
 * @poll_idx: kernel consumers: next entry to poll
 * @resize: serialises resize calls, which replace @ring; the core does not serialise them
 */
struct vrnic_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* protects all below, except the consumer's side */
	struct vrnic_ring ring;
	bool failed;
	bool timestamps;
	u32 poll_idx;
	struct mutex resize;	/* serialises calls that replace @ring */
};

static inline struct vrnic_cq *to_vcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct vrnic_cq, ibcq);
}

/**
 * struct vrnic_rq - the receive ring of a queue pair, or a shared one
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
 * @active: a request was taken, and is not complete
 * @cookie: wr_id
 * @num_sge: segments
 * @sge: the segments that the message goes to
 */
struct vrnic_recv {
	bool active;
	u64 cookie;
	u32 num_sge;
	struct vrnic_sge sge[VRNIC_MAX_SGE];
};

/**
 * struct vrnic_op - the descriptor that a send ring is working on
 * @active: there is a descriptor
 * @info: row of its opcode; NULL if the opcode is not known
 * @total: bytes of its message
 * @done: bytes moved by earlier bursts
 * @moved: all bytes were moved and their memory may be gone, but the operation is not complete
 * @status: enum ib_wc_status, if the operation failed
 * @vendor_err: enum vrnic_vendor_err, if the operation failed
 * @rnr_left: RNR retries left; 7 means for ever
 * @retry_left: transport retries left
 * @tries: a datagram: how often its target was locked by another runner
 * @member: a datagram to a group: members below this number have their copy
 * @slots: private copy of the descriptor and of its slots
 *
 * The run bit of the queue pair protects all members.
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
 * struct vrnic_hold - references and a lock that a send ring keeps during a burst
 * @peer: the target, referenced and with its resp_lock held; or NULL
 * @local: for local keys of the requester
 * @remote: for remote keys that the requester claims at @peer
 * @recv: for local keys of the receives at @peer
 *
 * So operations that follow each other need no second look-up.
 */
struct vrnic_hold {
	struct vrnic_qp *peer;
	struct vrnic_held local;
	struct vrnic_held remote;
	struct vrnic_held recv;
};

/**
 * struct vrnic_link_ops - what the queue pair of a native link asks of the link
 * @created: the queue pair exists, and no other code can find it yet
 * @open: describe the memory of a message to send; the caller need not put it
 * @sent: a message was acknowledged or has failed: its memory is not needed any more
 * @receive: a packet of a message came. Return: 0; -EAGAIN if the packet is to be offered again;
 *	another negative errno if the packet makes no sense
 * @broken: nothing can be posted from now on
 * @flushed: the queue pair has failed, and uses nothing of the link any more
 *
 * @cookie is that of the descriptor. Context: the run of the queue pair.
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
 * @rcu: for the RCU grace period between the end of the queue pair and its release
 * @refs: one reference of the owner, and one of each peer during a burst
 * @gone: the last reference was put
 * @dev: device; valid while a reference is held
 * @ibqp: the core's part; valid while a reference is held
 * @qpn: number; unique on this host, also for a GSI queue pair, whose number
 *	on the wire is 1
 * @type: IB_QPT_*
 * @uctx: context of the process that maps the rings; NULL for a kernel consumer's queue pair. Only
 *	compared, never followed.
 * @sig_all: every send request makes a completion
 * @cap: capabilities that were granted
 * @ctrl: serialises modify and destroy
 * @attr: attributes as last modified; protected by @ctrl. The attributes that runners read are
 *	stable from RTR on, or are single words.
 * @sgid: the queue pair's own GID, once it has an address vector
 * @state_lock: protects writes of @state
 * @state: enum ib_qp_state
 * @sq_draining: the state is SQD, and the event was not raised yet; protected by @state_lock
 * @comm_est: COMM_EST was raised; protected by @resp_lock
 * @last_wqe: LAST_WQE_REACHED was raised; protected by @resp_lock
 * @run: the engine's handle; its run bit protects @sq, @sq_done, @op and @sgl
 * @sq: send ring
 * @sq_done: send requests that have ended since RESET
 * @op: the descriptor that the send ring is working on
 * @sgl: scratch: the local memory of @op during a burst
 * @hold: what a burst keeps; protected by the run bit
 * @wait_until: time before which @op must not run; 0: @op may run
 * @limit: bytes a second that the consumer allows this queue pair to send; 0: no limit. Changed
 *	with the ring parked.
 * @paid_at: time, in ns, from which the rate allows to send more; protected by the run bit
 * @post_lock: kernel consumers: serialises calls of post_send()
 * @rq: receive ring, if there is no @srq
 * @srq: shared receive ring or NULL
 * @resp_lock: serialises peers that use this queue pair as a target; protects @recv
 * @recv: the receive request that takes the present message; protected by @resp_lock
 * @recv_sgl: scratch: the memory of @recv that a burst reaches; protected by @resp_lock
 * @roce: wire to the peer; NULL: the peer is on this host. Changed with the ring parked, in a state
 *	in which no local peer looks at the pointer. While it is set, no local peer uses this queue
 *	pair, and the run bit protects @recv and @recv_sgl. Softirqs that bring packets read the
 *	path in it.
 * @rxq: packets that wait for a run; has a lock of its own
 * @rxq_bytes: memory of the packets in @rxq; protected by the lock of @rxq
 * @ud_psn: PSN of the next datagram to the wire; protected by the run bit
 * @groups: number of multicast groups with this queue pair; protected by vrnic_dev.mcast_lock
 * @link: the native link that this queue pair carries; NULL: a consumer has the queue pair
 * @link_ops: what the queue pair asks of @link
 * @wired: entry in the list of the wire while the queue pair may have a route; changed with @ctrl
 *	held
 * @gfp: flags for allocations
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
	spinlock_t post_lock;		/* serialises post_send() of kernel consumers */
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

/* The core allocates and frees this structure; a struct vrnic_qp has to live longer. */
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
