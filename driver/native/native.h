/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The native objects: FIFOs, endpoints and counters, and the injectors that run native descriptors.
 *
 * Locks, in the order in which they nest:
 *
 *	vrnic_fifo.ctrl		mutex; serialises parking; threads of the FIFO's crew only try it
 *	  vrnic_hello_queue.lock spinlock, bh; datagrams about links
 *	  an injector's run bit	VRNIC_RUN_BUSY; held by the task that runs the injector
 *	  a link's run bit	only tried, by an injector that has posted a message to the link.
 *				The link's run only tries the injector's run bit, too, for landed
 *				flights, as a lane's run does
 *	  watch_lock		spinlock; the endpoints that lead to each FIFO
 *	    bind_lock		spinlock; counters that are bound to endpoints
 *	      vrnic_counter.lock
 *	    vrnic_rgets.lock
 *	  stall_lock		spinlock; injectors that wait for room in a reception ring
 *	    vrnic_crew.lock
 *	  vrnic_pacer.lock	spinlock, bh; portions that peers on other hosts were asked for
 *	    vrnic_crew.lock
 *	  trigger_lock		spinlock; injectors that wait for a counter
 *	    vrnic_counter.lock
 *	    vrnic_crew.lock
 *	  vrnic_fifo.receive_lock  spinlock; writers of the reception ring
 *	  vrnic_rgets.lock	spinlock; the queues of remote gets
 *	    vrnic_crew.lock
 *	  vrnic_link.lock	spinlock; what is in progress on a link
 *	    vrnic_crew.lock
 *	  vrnic_counter.lock	spinlock; a counter's error and threshold
 *
 * A run executes descriptors of one injector, within a budget. An injector never waits for another
 * one: if it finds no room in a peer's reception ring, or in its own queue at the peer, its run
 * ends, and the injector runs again later.
 */
#ifndef VRNIC_NATIVE_H
#define VRNIC_NATIVE_H

#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include "engine/runnable.h"
#include "mem/seg.h"
#include "native/link.h"
#include "queue/opcode.h"
#include "queue/ring_mem.h"

struct eventfd_ctx;
struct vrnic_crew;
struct vrnic_dev;
struct vrnic_fifo;
struct vrnic_rget;
struct vrnic_typed;
struct vrnic_ucontext;
struct vrnic_user;
struct vrnic_virtual;

/**
 * struct vrnic_failure - the first operation that failed since the last fence
 * @seq: number of the operation in its FIFO; 0: no operation failed
 * @cookie: cookie of the descriptor
 * @opcode: opcode of the descriptor
 * @status: enum ib_wc_status
 * @vendor_err: enum vrnic_vendor_err
 */
struct vrnic_failure {
	u64 seq;
	u64 cookie;
	u8 opcode;
	u8 status;
	u8 vendor_err;
};

/**
 * struct vrnic_endpoint - a peer that a FIFO's descriptors can name
 * @rcu: for the RCU grace period before its release
 * @fifo: FIFO with the endpoint, with a reference until the endpoint is destroyed
 * @number: index in @fifo->endpoints
 * @gone: the endpoint was destroyed, and is freed with its last operation
 * @peer: address of the peer
 * @failure: first failure since the last fence; protected by the run bit of @fifo->inject
 * @posted: number of fetched operations that name the endpoint; protected by the run bit of
 *	@fifo->inject
 * @landed: number of those that were counted, with their records delivered; protected as @posted
 * @watch: entry in the peer's @watchers, or in @link->endpoints; protected by watch_lock
 * @bindings: struct vrnic_binding of bound counters; protected by bind_lock
 * @nr_bindings: number of @bindings; protected by bind_lock
 * @lost: the peer is gone; protected by bind_lock
 * @notice: tells @fifo that the peer is gone; NULL once it is sent; protected by watch_lock
 * @link: link to a peer on another host; NULL: the peer is on this host
 * @laned: number of its operations in lanes; protected as @posted
 */
struct vrnic_endpoint {
	struct rcu_head rcu;
	struct vrnic_fifo *fifo;
	u32 number;
	bool gone;
	struct vrnic_address peer;
	struct vrnic_failure failure;
	u64 posted;
	u64 landed;
	struct list_head watch;
	struct list_head bindings;
	u32 nr_bindings;
	bool lost;
	struct vrnic_rget *notice;
	struct vrnic_link *link;
	u32 laned;
};

/**
 * struct vrnic_nop - the native descriptor that an injector is working on
 * @active: there is a descriptor
 * @over: the operation is done or failed, or is @away
 * @finished: the operation is @over, and was counted; its record is to be delivered
 * @checked: the descriptor is well-formed
 * @seq: number of the operation in its FIFO
 * @ep: endpoint that @d names, which counts the operation; NULL: none
 * @away: a struct vrnic_nflight has a copy of the operation, and goes on with it
 * @status: enum ib_wc_status
 * @vendor_err: enum vrnic_vendor_err
 * @paced: RGET: vrnic_pace_may_ask() has let it ask
 * @tries: how often the operation found no room at the peer, or no memory
 * @done: bytes moved by earlier bursts
 * @value: RMW: the old value
 * @failure: the operation's own failure; of a fence: the earlier failure that it found
 * @d: private copy of the descriptor
 * @rmw: private copy of the second slot, for RMW
 * @typed: private copy of the second slot, for a typed transfer
 */
struct vrnic_nop {
	bool active;
	bool over;
	bool finished;
	bool checked;
	bool away;
	bool paced;
	u8 status;
	u8 vendor_err;
	u16 tries;
	u64 seq;
	struct vrnic_endpoint *ep;
	u64 done;
	u64 value;
	struct vrnic_failure failure;
	struct vrnic_ndesc d;
	union {
		struct vrnic_ndesc_rmw rmw;
		struct vrnic_ndesc_typed typed;
	};
};

/**
 * struct vrnic_nflight - an operation that its injector does not wait for
 * @lane: the lane that executes it; NULL: it is a message of a link, as follows up to @over
 * @msg: the message; not used if the put shares the message of a flight before it
 * @puts: the message has several puts, of which this is the first; or NULL. The run bit of the
 *	link's queue pair protects the contents
 * @await: the answer, if @asks
 * @inj: injector that posted it
 * @op: the operation; the link may only set its status, and the value of an RMW
 * @asks: it is a GET or an RMW. The peer only acknowledges a PUT
 * @sent: the peer has acknowledged @msg, or the link has failed. The run bit of the link's queue
 *	pair protects this and @over
 * @over: the link is done with the flight, and hands it back behind those that were posted before
 * @link: in struct vrnic_link.flights until then, or in struct vrnic_lane.queue; protected by
 *	their locks. While @inj collects puts: of the first, the list of the others
 * @landed: in @inj->landed, once the link or the lane has handed it back
 * @room: bytes that @data has room for
 * @data: data of an INLINE descriptor, or of a small put; in a lane: of all slots behind the first
 */
struct vrnic_nflight {
	struct vrnic_lane *lane;
	struct vrnic_nmsg msg;
	struct vrnic_nputs *puts;
	struct vrnic_nawait await;
	struct vrnic_injector *inj;
	struct vrnic_nop op;
	bool asks;
	bool sent;
	bool over;
	struct list_head link;
	struct llist_node landed;
	u32 room;
	u8 data[];
};

enum vrnic_fired {
	VRNIC_FIRED_NOT,
	VRNIC_FIRED_FELL,	/* the counter has fallen so far */
	VRNIC_FIRED_FAILED,
	VRNIC_FIRED_GONE,	/* it was destroyed */
};

/**
 * struct vrnic_trigger - an injector's wait for a counter; protected by trigger_lock
 * @link: in @counter->triggers
 * @counter: the counter; NULL: it does not wait any more
 * @threshold: most bytes that may remain
 * @fired: what has ended the wait. It holds, whatever becomes of the counter meanwhile
 * @status: FAILED: enum ib_wc_status, and below enum vrnic_vendor_err
 * @vendor_err: FAILED: see @status
 */
struct vrnic_trigger {
	struct list_head link;
	struct vrnic_counter *counter;
	s64 threshold;
	enum vrnic_fired fired;
	u8 status;
	u8 vendor_err;
};

/**
 * struct vrnic_injector - runs the native descriptors of a ring, or those that a peer injected
 * @run: the engine's handle; its run bit protects all below, except @stall and @stalled_on
 * @fifo: FIFO with this injector
 * @op: the operation in progress
 * @found: endpoint that the run has found last, or NULL
 * @peer: target on this host, with a reference until the run ends; or NULL
 * @local: region of @fifo's process that is kept until the run ends
 * @remote: region of @peer that is kept until the run ends
 * @link: link to the target of @op, if the target is on another host; then @peer is NULL
 * @req: request over @link
 * @nr_flights: number of struct vrnic_nflight that were posted and are not counted yet
 * @nr_laned: number of those in lanes; the others are messages of links
 * @nr_orphans: number of those in lanes for peers on this host whose endpoint was destroyed
 * @nr_gets: number of GETs among these others
 * @nr_rmws: number of RMWs among them
 * @rung: producer index at the last doorbell; softirq does not look behind it
 * @pushed: struct vrnic_link with flights that were posted in this run; each has a reference on its
 *	queue pair
 * @puts: first of the small puts that this run collects for one message, or NULL
 * @puts_link: link that they go to; the endpoint of @puts keeps it until the run ends
 * @landed: struct vrnic_nflight that links are done with, the last one first; links add to it
 * @landing: struct vrnic_nflight that were taken from @landed, in order
 * @spare: struct vrnic_nflight that are free, to be used again
 * @nr_spare: number of @spare
 * @spare_puts: struct vrnic_nputs that are free, to be used again
 * @nr_spare_puts: number of @spare_puts
 * @lane: this is the injector of the lane; NULL: of the ring, or of a peer's remote gets
 * @slots: lane: data of the slots of @op behind the first
 * @rget: remote get that brought @op; NULL: @op is from the ring
 * @relayed: the descriptor that sent @rget was itself injected into the sender, so another process
 *	chose the contents of @rget
 * @virt: memory that is not registered (S1); allocated when first needed
 * @typed: typed transfer (S3); allocated when first needed
 * @typed_begun: a transfer is in progress in @typed
 * @stall: entry in @stalled_on->stalled; protected by stall_lock
 * @stalled_on: FIFO whose reception ring this injector waits for, referenced; or NULL; protected by
 *	stall_lock
 * @trigger: what it waits for, if @op is a WAIT
 * @turn: for the pacer, if @op is an RGET that a peer injected
 * @doomed: ring: descriptors that fail because a WAIT before them has failed
 */
struct vrnic_injector {
	struct vrnic_runnable run;
	struct vrnic_fifo *fifo;
	struct vrnic_nop op;
	struct vrnic_endpoint *found;
	struct vrnic_fifo *peer;
	struct vrnic_held local;
	struct vrnic_held remote;
	struct vrnic_link *link;
	struct vrnic_nreq req;
	u32 nr_flights;
	u32 nr_laned;
	u32 nr_orphans;
	u32 nr_gets;
	u32 nr_rmws;
	u32 rung;
	struct list_head pushed;
	struct vrnic_nflight *puts;
	struct vrnic_link *puts_link;
	struct llist_head landed;
	struct llist_node *landing;
	struct llist_node *spare;
	u32 nr_spare;
	struct vrnic_nputs *spare_puts;
	u32 nr_spare_puts;
	struct vrnic_lane *lane;
	u8 *slots;
	struct vrnic_rget *rget;
	bool relayed;
	struct vrnic_virtual *virt;
	struct vrnic_typed *typed;
	bool typed_begun;
	struct list_head stall;
	struct vrnic_fifo *stalled_on;
	struct vrnic_trigger trigger;
	struct vrnic_turn turn;
	u32 doomed;
};

/**
 * struct vrnic_source - the queue of remote gets that one peer sent to a FIFO
 * @rcu: for the RCU grace period between parking and release
 * @node: entry in struct vrnic_rgets.sources
 * @peer: address of the peer
 * @queue: struct vrnic_rget that wait; protected by struct vrnic_rgets.lock
 * @descs: number of descriptors in @queue; protected by struct vrnic_rgets.lock
 * @busy: @queue is not empty, or @inj has a remote get; protected by struct vrnic_rgets.lock
 * @inj: runs the descriptors of @queue
 */
struct vrnic_source {
	struct rcu_head rcu;
	struct hlist_node node;
	struct vrnic_address peer;
	struct list_head queue;
	u32 descs;
	bool busy;
	struct vrnic_injector inj;
};

/**
 * struct vrnic_rgets - the remote gets that peers sent to a FIFO
 * @lock: protects what follows, and the queues of the sources
 * @sources: struct vrnic_source by the FIFO number of the peer
 * @nr: number of @sources
 * @closed: no remote get is accepted any more
 * @reap: frees sources that are idle
 * @nr_notices: notices that a peer is gone which have not become records yet
 * @notices: queue of notices that a peer is gone, if that peer has no source
 */
struct vrnic_rgets {
	spinlock_t lock;	/* protects all below, and the queues */
	DECLARE_HASHTABLE(sources, 4);
	u32 nr;
	bool closed;
	struct work_struct reap;
	u32 nr_notices;
	struct vrnic_source notices;
};

/**
 * struct vrnic_fifo - an injection FIFO with its reception FIFO
 * @rcu: for the RCU grace period between the end of the FIFO and its release
 * @refs: references of the owner, of the FIFO's endpoints and links, and of peers' injectors
 * @gone: completed when the last reference was put
 * @dev: device; valid while a reference is held
 * @pd: protection domain of the memory that the FIFO's descriptors name
 * @shell: takes the place of the core's part in the queue pairs of the FIFO's links
 * @owner: number of the context that made the FIFO
 * @crew: threads in the cgroups of the process; run injectors and links when no system call does
 * @user: user who opened the context, which has a reference, and outlives the FIFO; NULL: root
 * @mm: memory of the process; its context has a reference
 * @memcg: memory cgroup of the process; its context has a reference, and outlives the FIFO
 * @id: number; unique on this host
 * @address: address by which peers reach the FIFO
 * @name: name by which processes of this host find the FIFO; names_lock protects this and the
 *	members up to @named
 * @context: number of the FIFO within its task
 * @open: processes of other users may find the FIFO
 * @euid: effective user of the process that made the FIFO
 * @named: in the table of names
 * @ctrl: serialises the parking of the FIFO's injectors
 * @dead: the FIFO is being destroyed
 * @inject: runs @ring
 * @ring: injection ring; protected by the run bit of @inject
 * @endpoints: struct vrnic_endpoint by number; taken out by the runner of @inject, or with @inject
 *	parked
 * @stray: first failure that belongs to no endpoint; protected by the run bit of @inject
 * @fetched: number of operations that were fetched from @ring; protected by the run bit of @inject
 * @failures: number of operations that failed; protected by the run bit of @inject
 * @fenced: value of @failures at the last fence over all endpoints; protected by the run bit of
 *	@inject
 * @lanes: struct vrnic_lane, as many as were needed at a time; they last as long as the FIFO;
 *	protected by the run bit of @inject
 * @nr_lanes: number of @lanes
 * @rgets: remote gets that peers sent
 * @receive_lock: protects @receive
 * @receive: reception ring
 * @eventfd: signalled for an armed reception ring; or NULL
 * @wait: tasks that sleep until a record comes
 * @stalled: injectors that wait for room in @receive; protected by stall_lock
 * @closed: no injector may wait for room in @receive any more; protected by stall_lock
 * @watchers: endpoints of this host that lead to this FIFO; protected by watch_lock
 * @gone_told: @watchers are told that this FIFO is gone; protected by watch_lock
 * @hellos: datagrams about links that wait for @crew
 * @links: struct vrnic_link that other hosts asked for; protected by @ctrl
 * @ways: struct vrnic_link that the FIFO's endpoints use; protected by @ctrl
 */
struct vrnic_fifo {
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	struct vrnic_dev *dev;
	struct ib_pd *pd;
	struct ib_qp shell;
	u64 owner;
	struct vrnic_crew *crew;
	struct vrnic_user *user;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	u32 id;
	struct vrnic_address address;
	char name[VRNIC_CLIENT_NAME];
	u32 context;
	bool open;
	kuid_t euid;
	struct hlist_node named;
	struct mutex ctrl;		/* serialises parking */
	bool dead;
	struct vrnic_injector inject;
	struct vrnic_ring ring;
	struct xarray endpoints;
	struct vrnic_failure stray;
	u64 fetched;
	u64 failures;
	u64 fenced;
	struct list_head lanes;
	u32 nr_lanes;
	struct vrnic_rgets rgets;
	spinlock_t receive_lock;	/* protects @receive */
	struct vrnic_ring receive;
	struct eventfd_ctx *eventfd;
	wait_queue_head_t wait;
	struct list_head stalled;
	bool closed;
	struct list_head watchers;
	bool gone_told;
	struct vrnic_hellos hellos;
	struct list_head links;
	struct list_head ways;
};

/* Do two addresses name the same FIFO? The secrets may differ. */
static inline bool vrnic_address_is(const struct vrnic_address *a,
				    const struct vrnic_address *b)
{
	return a->fifo == b->fifo && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/*
 * Charge the current task's __GFP_ACCOUNT allocations to the memory cgroup of @fifo's process until
 * vrnic_charge_end(). Return: the argument for vrnic_charge_end().
 * Context: any.
 */
static inline struct mem_cgroup *vrnic_charge_begin(const struct vrnic_fifo *fifo)
{
	return set_active_memcg(fifo->memcg);
}

static inline void vrnic_charge_end(struct mem_cgroup *was)
{
	set_active_memcg(was);
}

/* Return: the injector that has this request. */
static inline struct vrnic_injector *vrnic_nreq_injector(struct vrnic_nreq *req)
{
	return container_of(req, struct vrnic_injector, req);
}

/* Convert the relative timeout of a process, which may be VRNIC_WAIT_FOREVER. */
static inline ktime_t vrnic_timeout(u64 ns)
{
	return ns >= KTIME_MAX ? KTIME_MAX : ns_to_ktime(ns);
}

/* fifo.c */
extern const struct uapi_definition vrnic_fifo_defs[];
struct vrnic_fifo *vrnic_fifo_get(u32 id);
void vrnic_fifo_put(struct vrnic_fifo *fifo);
int vrnic_fifo_advance(u64 owner, u32 id);
int vrnic_fifo_advance_deferred(u64 owner, u32 id);
int vrnic_fifo_wait(u64 owner, const struct vrnic_wait *wait);
int vrnic_fifos_init(void);
void vrnic_fifos_exit(void);

/* endpoint.c */
extern const struct uapi_definition vrnic_endpoint_defs[];
void vrnic_watchers_tell(struct vrnic_fifo *fifo);
void vrnic_endpoints_lost(struct vrnic_link *link);
struct vrnic_endpoint *vrnic_endpoint_named(struct vrnic_fifo *fifo, u32 number);
bool vrnic_endpoints_any(struct vrnic_fifo *fifo);
void vrnic_nop_landed(struct vrnic_fifo *fifo, struct vrnic_nop *op);

/* counter.c */
extern const struct uapi_definition vrnic_counter_defs[];
bool vrnic_counter_is_open(u32 id, u64 owner);
bool vrnic_counter_is_own(u32 id, u64 owner);
int vrnic_counter_count(u64 owner, const struct vrnic_count *count);
int vrnic_counter_down(u32 id, u64 owner, u64 n);
void vrnic_counter_fail(u32 id, u64 owner, const struct vrnic_failure *failure, u64 placed);
bool vrnic_counter_failure(u32 id, u64 owner, struct vrnic_failure *failure);
int vrnic_counter_wait(u64 owner, const struct vrnic_wait *wait);
int vrnic_counters_init(void);
void vrnic_counters_exit(void);

/* binding.c: counters that fail when the peer of an endpoint goes */
bool vrnic_counter_may_name(u32 id, u64 owner, const struct vrnic_address *peer);
void vrnic_bindings_fail(struct vrnic_endpoint *ep, struct list_head *failed);
void vrnic_counters_tell(struct list_head *failed);
void vrnic_bindings_drop(struct vrnic_endpoint *ep);

/* trigger.c: injectors that wait for counters */
enum vrnic_fired vrnic_counter_trigger(struct vrnic_injector *inj, u32 id, s64 threshold);
bool vrnic_trigger_fired(const struct vrnic_injector *inj);
void vrnic_untrigger(struct vrnic_injector *inj);
void vrnic_triggers_fire(struct vrnic_counter *c, s64 left, enum vrnic_fired fired,
			 const struct vrnic_failure *failure);

/* counter_group.c */
extern const struct uapi_definition vrnic_group_defs[];
int vrnic_group_wait(u64 owner, struct vrnic_wait_group *wait);

/* reception.c */
int vrnic_record_post(struct vrnic_fifo *to, struct vrnic_record *rec,
		      const struct vrnic_seg *seg, unsigned int nr_segs);
void vrnic_stall(struct vrnic_injector *inj, struct vrnic_fifo *on);
void vrnic_unstall(struct vrnic_injector *inj);
void vrnic_stalled_wake(struct vrnic_fifo *fifo, bool always);

/* desc_check.c */
int vrnic_nop_check(struct vrnic_nop *op, bool injected);

/* Are the counters of the operation counted by its bytes, or by 1? */
static inline bool vrnic_nop_counts_bytes(const struct vrnic_nop *op)
{
	return op->d.opcode == VRNIC_NOP_PUT || op->d.opcode == VRNIC_NOP_GET;
}

/* injector.c: what all injectors share */
enum vrnic_step vrnic_nop_fail(struct vrnic_nop *op, u8 status, int vendor_err);
void vrnic_injector_init(struct vrnic_injector *inj, struct vrnic_fifo *fifo,
			 const struct vrnic_runnable_ops *ops);
void vrnic_injector_release(struct vrnic_injector *inj);
void vrnic_injector_free(struct vrnic_injector *inj);
bool vrnic_injector_hold(struct vrnic_injector *inj, const struct vrnic_address *peer);
void vrnic_injector_reach(struct vrnic_injector *inj, struct vrnic_link *link);
bool vrnic_injector_ready(struct vrnic_injector *inj);
bool vrnic_injector_must_wait(struct vrnic_injector *inj);

/* Is it too early for the next step? Not for a WAIT that is over. */
static inline bool vrnic_injector_waits(struct vrnic_injector *inj)
{
	return (inj->run.wait_until || inj->req.posted) && vrnic_injector_must_wait(inj);
}

bool vrnic_nop_may_name(struct vrnic_injector *inj, u32 id);
int vrnic_nop_count(struct vrnic_injector *inj, u64 n);
void vrnic_nop_count_target(struct vrnic_injector *inj);
void vrnic_nop_failed(struct vrnic_injector *inj, const struct vrnic_failure *failure);
enum vrnic_step vrnic_native_wait(struct vrnic_injector *inj);

/* inject.c: runs an injection ring */
extern const struct vrnic_runnable_ops vrnic_inject_ops;
void vrnic_nflights_land(struct vrnic_injector *inj);

/* native/rget.c: runs the descriptors that peers injected */
extern const struct vrnic_runnable_ops vrnic_rget_ops;
int vrnic_rget_deliver(struct vrnic_fifo *to, const struct vrnic_address *from,
		       const struct vrnic_fifo *payer, struct vrnic_link *link,
		       const struct vrnic_seg *descs, bool relayed);
void vrnic_rget_make_room(const struct vrnic_fifo *payer, size_t bytes);
void vrnic_rgets_init(struct vrnic_fifo *fifo);
void vrnic_rgets_park(struct vrnic_fifo *fifo);
void vrnic_rgets_unstall(struct vrnic_fifo *fifo);
void vrnic_rgets_free(struct vrnic_fifo *fifo);
void vrnic_rget_free(struct vrnic_rget *rget);
struct vrnic_rget *vrnic_notice_new(const struct vrnic_address *peer, u64 host, gfp_t gfp);
void vrnic_notice_send(struct vrnic_fifo *to, struct vrnic_rget *notice);

/* native/pin.c: local memory that needs no region (S1) */
int vrnic_virtual_pin(struct vrnic_injector *inj, u64 addr, u64 len,
		      bool write, struct vrnic_seg *seg);
void vrnic_virtual_unpin(struct vrnic_injector *inj, bool dirty);
void vrnic_virtual_forget(struct vrnic_injector *inj);
void vrnic_virtual_free(struct vrnic_injector *inj);
struct vrnic_virtual *vrnic_virtual_faults(struct vrnic_injector *inj);
void vrnic_virtual_fault(struct vrnic_virtual *virt, bool leave);
int vrnic_virtual_init(void);
void vrnic_virtual_exit(void);

/* typed.c: typed descriptors (S3) */
int vrnic_nop_typed_begin(struct vrnic_injector *inj, struct vrnic_budget *budget);
bool vrnic_nop_typed_range(struct vrnic_injector *inj, bool remote, u64 *addr,
			   u64 *len);
void vrnic_nop_typed_end(struct vrnic_injector *inj);
void vrnic_nop_typed_free(struct vrnic_injector *inj);

/* native/local.c */
enum vrnic_step vrnic_loop_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget);
unsigned int vrnic_native_ring(struct vrnic_injector *inj, u64 pos, u64 n,
			       struct vrnic_seg *seg);
unsigned int vrnic_native_message(struct vrnic_injector *inj, struct vrnic_seg *seg);
u64 vrnic_native_rmw(void *word, unsigned int width, u32 arg,
		     const struct vrnic_ndesc_rmw *rmw);
enum vrnic_step vrnic_native_wait_full(struct vrnic_injector *inj);

/* native/remote.c, native/remote_flight.c */

/**
 * vrnic_wire_header() - fill in the header of a request for all of an operation
 * @op: PUT, GET or RMW of a ring
 * @h: to be filled in, but for its @id
 */
static inline void vrnic_wire_header(const struct vrnic_nop *op, struct vrnic_nhdr *h)
{
	const struct vrnic_ndesc *d = &op->d;

	*h = (struct vrnic_nhdr){
		.key = d->rkey,
		.addr = d->remote_addr,
		.total = d->length,
		.counter = { d->target_counter },
	};
	switch (d->opcode) {
	case VRNIC_NOP_PUT:
		h->op = VRNIC_NWIRE_PUT;
		h->data = d->length;
		break;
	case VRNIC_NOP_GET:
		h->op = VRNIC_NWIRE_GET;
		h->arg = d->length;
		break;
	default:
		h->op = VRNIC_NWIRE_RMW;
		h->pos = op->rmw.operand;
		h->cookie = op->rmw.compare;
		h->arg = d->arg;
	}
}

#endif /* VRNIC_NATIVE_H */
