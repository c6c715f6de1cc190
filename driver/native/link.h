/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A native link connects a FIFO of this host with a FIFO of another host, its peer. At each end it
 * has an RC queue pair of the driver's own, which no consumer sees. Requests and their answers are
 * messages, and go over the link in packets like those of a SEND.
 *
 *	native/link.c		makes links
 *	native/link_hello.c	queues datagrams about links until they are handled
 *	native/link_keep.c	watches links, and ends them
 *	native/link_rest.c	memory that idle links give back
 *	native/link_host.c	other hosts, and the memory that each may use here
 *	native/link_grant.c	counters that a peer may name
 *	native/pacer.c		when a peer is asked for its next portion
 *	native/link_msg.c	messages, until the peer has acknowledged them
 *	native/remote.c		turns descriptors into requests
 *	native/link_serve.c	receives requests and answers, and answers requests
 *	native/link_type.c	types that the peer has sent, and data of them
 *	native/link_exec.c	executes requests
 *	native/link_rx.c	what these three share
 *	native/link_puts.c	small puts that share a packet
 *	native/link_gather.c	data of a type, as packets read them
 *	native/remote_flight.c	operations that an injector does not wait for
 *
 * An injector executes the descriptors of a FIFO's ring, or those that one peer injected. It makes
 * one request of a descriptor, or several in turn, and does not run until the answer has come. A
 * put has no answer, unless it is typed: the peer executes it before it acknowledges it. Puts, gets
 * and read-modify-writes of registered memory, and puts of data in the ring, go on by themselves:
 * the injector of the ring goes on, too, and has up to VRNIC_LINK_FLIGHTS of them in flight.
 *
 * Softirqs run the queue pair, too, as they run those of verbs. What may sleep, and what is more
 * work than its bytes tell, such a run leaves to a thread.
 */
#ifndef VRNIC_LINK_H
#define VRNIC_LINK_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/lane.h"
#include "native/pacer.h"
#include "native/type.h"
#include "queue/link_ops.h"
#include "queue/opcode.h"
#include "queue/qp.h"

struct net;
struct sk_buff;
struct vrnic_asking;
struct vrnic_budget;
struct vrnic_endpoint;
struct vrnic_fifo;
struct vrnic_host;
struct vrnic_injector;
struct vrnic_mr;
struct vrnic_nflight;
struct vrnic_nop;
struct vrnic_nputs;
struct vrnic_nreq;
struct vrnic_rget;

/*
 * Flags for the memory of a link. If one reclaim does not help, the asker gives up, or the end
 * that is asked refuses. Only the process that pays waits for reclaim, or a thread of its crew.
 */
#define VRNIC_GFP_LINK	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

#define VRNIC_NMSG_SEGS		3	/* message data that wraps, and a region */
static_assert(1 + VRNIC_NMSG_SEGS <= VRNIC_LINK_SEGS);

/* Most chunks of a gathered message: if a packet is lost, a softirq looks for its first chunk. */
#define VRNIC_GATHER_CHUNKS	16384

/**
 * struct vrnic_ngather - data of a message that lie in many places, by a type
 * @pieces: reads the data, for each packet again
 * @half: position in the storage
 * @was: @half where the message's data begin
 * @storage: the storage; the message has the reference on its region
 */
struct vrnic_ngather {
	struct vrnic_pieces pieces;
	struct vrnic_half half;
	struct vrnic_half was;
	struct vrnic_seg storage;
};

/**
 * struct vrnic_nmsg - a message of a link, until the peer has acknowledged it
 * @hdr: header
 * @nr: number of segments
 * @seg: data after the header; has references on regions, to make a lost packet again from them
 * @buf: memory that @seg is in, or NULL; freed with the message
 * @charged: bytes of @buf that are charged to the peer's host
 * @type: of the data that @buf gathers, if this is an answer; with a reference
 * @answer: the message is an answer
 * @posted: the owner of the data posted the message, and so leaves the data alone meanwhile
 * @taken: answer to a GET: its bytes, which @counter count once the peer has them; else 0
 * @counter: counters of this process that the GET names, or 0
 * @req: request with this message, or NULL
 * @flight: flight with this message, or NULL. If there is neither, the message is freed after its
 *	acknowledgment
 * @link: in struct vrnic_link.msgs; protected by the link's lock
 */
struct vrnic_nmsg {
	struct vrnic_nwire hdr;
	unsigned int nr;
	struct vrnic_seg seg[VRNIC_NMSG_SEGS];
	void *buf;
	u32 charged;
	struct vrnic_link_type *type;
	bool answer;
	bool posted;
	u32 taken;
	u32 counter[2];
	struct vrnic_nreq *req;
	struct vrnic_nflight *flight;
	struct list_head link;
};

/**
 * struct vrnic_nawait - the answer that an operation waits for
 * @op: the operation
 * @flight: it is this flight's; NULL: a struct vrnic_nreq's
 * @link: in struct vrnic_link.asks until the answer has come; protected by the link's lock
 * @acked: the peer has acknowledged the request; protected by the link's lock
 * @since: when it has acknowledged it, in jiffies
 * @id: number of the request
 * @answered: the answer has come. The link's run bit protects this and all that follows.
 * @wants: GET: bytes of data in a good answer; else 0
 * @into: GET: pinned memory for the answer's data; if its length is 0, @key and @addr name memory
 * @injected: the peer injected the operation: @key is a remote key of this end
 * @key: GET: key of the memory for the answer's data: a local one, unless @injected
 * @addr: GET: local address
 * @again: the peer answered AGAIN: it has no room yet, or (TYPED) does not know the type
 * @status: enum ib_wc_status, from the peer or the link
 * @vendor_err: enum vrnic_vendor_err, from the peer or the link
 * @value: RMW: old value; NOTIFY: failure of the peer's counter
 */
struct vrnic_nawait {
	const struct vrnic_nop *op;
	struct vrnic_nflight *flight;
	struct list_head link;
	bool acked;
	unsigned long since;
	u32 id;
	bool answered;
	u32 wants;
	struct vrnic_seg into;
	bool injected;
	u32 key;
	u64 addr;
	bool again;
	u8 status;
	u8 vendor_err;
	u64 value;
};

/**
 * struct vrnic_nreq - the request that an injector waits for
 * @msg: the message
 * @await: its answer
 * @link: in struct vrnic_link.reqs while @pending; protected by the link's lock
 * @posted: there is a request. The injector's run bit protects this, and all below while @pending
 *	is not set.
 * @pending: the link has the request. Cleared with release.
 * @sent: the peer has acknowledged the message. While @pending is set, the link's run bit protects
 *	this, @await, and all that follows.
 * @quiet: the peer answers only by acknowledging the message, or by refusing it
 * @n: bytes that the request moves: data, or rows of a type
 * @pinned: pages of the process are pinned for the request (S1)
 * @gather: TYPED: position in the local storage, and before this request, in case the peer has
 *	forgotten the type
 * @telling: the message has rows of a type, which the peer does not know, and no data
 * @told: bytes of these rows that the peer has received
 * @rows: TYPED: bytes of rows before the data of the message
 * @forgotten: TYPED: 1 + bytes of the operation that had moved when the peer said last that it has
 *	forgotten the type; 0: it has not
 * @span: TYPED: bytes of the local storage, from the type's lowest byte to its highest
 */
struct vrnic_nreq {
	struct vrnic_nmsg msg;
	struct vrnic_nawait await;
	struct list_head link;
	bool posted;
	bool pending;
	bool sent;
	bool quiet;
	u32 n;
	bool pinned;
	struct vrnic_ngather gather;
	bool telling;
	u64 told;
	u32 rows;
	u64 forgotten;
	u64 span;
};

/**
 * struct vrnic_link_rx - the message that is being received
 * @h: header of the message
 * @left: bytes of data to come
 * @status: enum ib_wc_status; if not success, the rest of the message is ignored
 * @vendor_err: enum vrnic_vendor_err
 * @await: ANSWER: who waits for it; NULL: nobody does any more
 * @answer: requests: the answer that this end is going to send
 * @buf: MESSAGE, RGET: the data, until all have come: room for VRNIC_MAX_MESSAGE, or NULL
 * @refused: the message failed, and the peer was told so; it has to send SKIP, or the rest of PUTS
 * @put: PUTS: index of the put in progress, or of the one that failed
 * @placed: PUTS: puts whose data are in place, up to here
 * @unknown: TYPED: this end does not know the type, so it answers AGAIN
 * @rows: TYPE, and with ROWS: the rows, until all have come
 * @rows_bytes: size of all these rows; charged to the peer's host while @rows is set
 * @rows_there: bytes of these rows that have come
 */
struct vrnic_link_rx {
	struct vrnic_nhdr h;
	u32 left;
	u8 status;
	u8 vendor_err;
	struct vrnic_nawait *await;
	struct vrnic_nmsg *answer;
	u8 *buf;
	bool refused;
	u8 put;
	u8 placed;
	bool unknown;
	struct vrnic_type_row *rows;
	u64 rows_bytes;
	u64 rows_there;
};

/* Most operations of an injector that are in flight, and most of these that wait for an answer. */
#define VRNIC_LINK_FLIGHTS	64
#define VRNIC_LINK_ASKS		24

/*
 * Most answers that the peer has not acknowledged: to as many flights of an injector as wait for
 * them, to the requests of two injectors and of all lanes, and some for acknowledgments on the way.
 */
#define VRNIC_LINK_ANSWERS	44
static_assert(VRNIC_LINK_ASKS + 2 + VRNIC_LANES <= VRNIC_LINK_ANSWERS);

/**
 * struct vrnic_grants - counters that are not open to all peers, but that one peer may name
 * @slot: hash table of their numbers; 0: empty slot
 * @size: number of slots; a power of two, or 0
 * @nr: number of counters
 */
struct vrnic_grants {
	u32 *slot;
	u32 size;
	u32 nr;
};

/**
 * struct vrnic_link_type - a type whose rows the peer has sent
 * @node: in struct vrnic_link.types
 * @number: the peer's number for the type
 * @refs: one while the type is in @types, and one of each answer that gathers its data; protected
 *	by the run bit of the link's queue pair
 * @bytes: size of the rows that came, charged to the peer's host; @rows may have fewer
 * @rows: the type
 */
struct vrnic_link_type {
	struct hlist_node node;
	u32 number;
	u32 refs;
	u32 bytes;
	struct vrnic_rows rows;
};

#define VRNIC_LINK_TYPE_BITS	6

/**
 * struct vrnic_link_types - types that the peer has sent
 * @hash: struct vrnic_link_type, by hash of their numbers
 * @half: position in the storage at this end of the TYPED operation in progress, and its type
 */
struct vrnic_link_types {
	struct hlist_head hash[1 << VRNIC_LINK_TYPE_BITS];
	struct vrnic_half half;
};

#define VRNIC_LINK_TOLD_BITS	6
#define VRNIC_LINK_TOLD_WAYS	4

/* Most bytes of a typed transfer in one message: it may be packed into a buffer. */
#define VRNIC_PACK_BYTES	SZ_256K

/**
 * struct vrnic_link - one end of a native link
 * @refs: one reference until the end of the link, and one of each remote get that came over it
 * @qp: queue pair; exists while the link is in the list of all links
 * @fifo: the FIFO at this end; a reference is held until the link has ended
 * @host: host of the peer
 * @accepted: the peer asked for the link, and this end accepted it
 * @endpoints: endpoints that use the link, to be told when it fails; protected by watch_lock
 * @owned: entry in the list @ways or @links of @fifo, or in the list of links that wait for an
 *	answer
 * @all: in the list of all links
 * @asked: this end has asked the peer, which may have made its end of the link
 * @said_bye: bit 0: this end has told the peer that it is gone
 * @ending: work that ends the link
 * @killed: time, in jiffies, when the link began to end: vrnic_link_kill()
 * @moved: time, in jiffies, of the last acknowledgment since then
 * @una: PSN that was acknowledged then
 * @notice: accepted links: tells the process of @fifo that the link failed; NULL: it was sent;
 *	protected by the run bit of @qp
 * @heard: time of the peer's last sign of life, in jiffies
 * @spoke: time of the peer's last packet that is none of a PING, in jiffies
 * @nonce: random number that names the link in datagrams; 0: no other host knows the link yet
 * @peer: address of the peer; its secret is 0
 * @peer_qpn: number of the peer's queue pair
 * @psn: accepted links: the first PSN that this end sends, in each copy of the answer
 * @asking: the task that asks the peer for the link, while it does
 * @lock: protects what follows, up to @rx
 * @dead: no message can be posted any more
 * @bye: the peer has said that its end is gone
 * @left: the peer's end did not fail: the peer does not need the link any more
 * @failed: the run of @qp has noticed the failure; only this run sets it
 * @landed: puts have landed, so @fifo->inject has to run; protected by the run bit of @qp
 * @used: something but a ping has been sent or received since vrnic_link_may_rest()
 * @rest: bit 0: the next run of @qp has to give back memory
 * @reqs: struct vrnic_nreq that injectors wait for
 * @flights: struct vrnic_nflight, in the order of their posting, that the link is not done with
 * @asks: struct vrnic_nawait without an answer, in the order of their requests: the peer executes
 *	one request after the other, so answers come in this order
 * @asked_id: number of the last request
 * @msgs: struct vrnic_nmsg that were posted, in order, until the queue pair is done with them
 * @fetched: entry of the last of @msgs that the queue pair has fetched, or @msgs itself. The queue
 *	pair's run bit protects this; it changes with the lock held if its message goes
 * @grants: counters in descriptors that this end injected over the link: the peer may name them
 *	although they are not open
 * @rx: message that is being received; protected by the run bit of @qp, as what follows up to
 *	@answer_bytes
 * @types: types that the peer has sent; NULL: none
 * @types_nr: number of @types
 * @types_bytes: bytes of the rows of all @types
 * @answers: number of answers that the peer has not acknowledged
 * @answer_bytes: bytes that were packed for answers which the peer has not acknowledged
 * @told: serials of types that this end has sent, by hash of their numbers; 0: none. It sends types
 *	that are not here again. NULL: it has sent none. Protected by the run bit of @fifo->inject
 * @told_next: entry of a hash bucket in @told that is replaced next; protected as @told
 * @pushed: in the list @pushed of @fifo->inject, and protected as @told
 * @pace: portions that the peer was asked for; protected by the lock of the device's pacer
 * @users: number of endpoints that use the link; protected by the FIFO's ctrl
 * @secret: secret of the address that the link was made for; protected by the FIFO's ctrl
 */
struct vrnic_link {
	refcount_t refs;
	struct vrnic_qp *qp;
	struct vrnic_fifo *fifo;
	struct vrnic_host *host;
	bool accepted;
	struct list_head endpoints;
	struct list_head owned;
	struct list_head all;
	bool asked;
	unsigned long said_bye;
	struct delayed_work ending;
	unsigned long killed;
	unsigned long moved;
	u32 una;
	struct vrnic_rget *notice;
	unsigned long heard;
	unsigned long spoke;
	u64 nonce;
	struct vrnic_address peer;
	u32 peer_qpn;
	u32 psn;
	struct vrnic_asking *asking;
	spinlock_t lock;	/* protects what follows, up to @rx */
	bool dead;
	bool bye;
	bool left;
	bool failed;
	bool landed;
	bool used;
	unsigned long rest;
	struct list_head reqs;
	struct list_head flights;
	struct list_head asks;
	u32 asked_id;
	struct list_head msgs;
	struct list_head *fetched;
	struct vrnic_grants grants;
	struct vrnic_link_rx rx;
	struct vrnic_link_types *types;
	u32 types_nr;
	u64 types_bytes;
	u32 answers;
	u32 answer_bytes;
	u64 (*told)[VRNIC_LINK_TOLD_WAYS];
	u32 told_next;
	struct list_head pushed;
	struct vrnic_pace pace;
	unsigned int users;
	u64 secret;
};

/**
 * struct vrnic_heard - a received datagram about links
 * @link: in struct vrnic_hello_queue.list
 * @net: network namespace, with a reference, as the datagram may outlive its socket. NULL: the
 *	datagram waits at a FIFO, which ends before its network namespace does
 * @from: address of the sender
 * @to: destination address
 * @h: contents
 * @why: ASK: enum vrnic_hello_why; not 0: this end refuses for this reason
 */
struct vrnic_heard {
	struct list_head link;
	struct net *net;
	union ib_gid from;
	union ib_gid to;
	struct vrnic_hello h;
	u8 why;
};

/**
 * struct vrnic_hello_queue - datagrams that wait to be handled in turn
 * @lock: protects what follows; bh
 * @list: struct vrnic_heard
 * @nr: number of datagrams, by enum vrnic_hello_kind
 * @closed: no datagram is accepted any more
 */
struct vrnic_hello_queue {
	spinlock_t lock;	/* protects what follows; bh */
	struct list_head list;
	unsigned int nr[VRNIC_HELLO_MAX];
	bool closed;
};

/**
 * struct vrnic_hellos - work for the links that a FIFO accepts
 * @run: runnable; threads of the FIFO's crew run it, and do the work
 * @queue: datagrams that ask for a link, and goodbyes of peers that asked and saw no answer
 * @failed: bit 0: a link that the FIFO accepted has failed
 */
struct vrnic_hellos {
	struct vrnic_runnable run;
	struct vrnic_hello_queue queue;
	unsigned long failed;
};

/* A message that is no ping goes over the link, in either direction. */
static inline void vrnic_link_note_use(struct vrnic_link *link)
{
	if (!READ_ONCE(link->used))
		WRITE_ONCE(link->used, true);
}

/* native/link.c */
struct vrnic_link *vrnic_link_get(struct vrnic_fifo *fifo,
				  const struct vrnic_address *peer);
void vrnic_link_leave(struct vrnic_link *link);
void vrnic_link_put(struct vrnic_link *link);
void vrnic_link_say_bye(struct vrnic_link *link);
void vrnic_link_answered(const struct vrnic_heard *heard);
void vrnic_link_asked(struct vrnic_fifo *fifo, const struct vrnic_heard *heard);
void vrnic_link_refuse(const struct vrnic_heard *heard);
void vrnic_link_bye_unanswered(struct vrnic_fifo *fifo, const struct vrnic_heard *heard);
void vrnic_link_bye(const struct vrnic_heard *heard);
int vrnic_link_cache_init(void);
void vrnic_link_cache_exit(void);

/* native/link_hello.c */
bool vrnic_hello_wait(struct vrnic_fifo *fifo, const struct vrnic_heard *heard);
void vrnic_hellos_init(struct vrnic_fifo *fifo);
void vrnic_hellos_stop(struct vrnic_fifo *fifo);
void vrnic_hellos_failed(struct vrnic_fifo *fifo);
void vrnic_hello_init(void);
void vrnic_hello_exit(void);

/* native/link_keep.c */
void vrnic_link_begin(struct vrnic_link *link);
void vrnic_link_kill(struct vrnic_link *link);
void vrnic_link_failed(struct vrnic_link *link);
void vrnic_links_reap(struct vrnic_fifo *fifo);
void vrnic_links_kill(struct vrnic_fifo *fifo);
int vrnic_links_init(void);
void vrnic_links_exit(void);

/* native/link_grant.c */
int vrnic_grant(struct vrnic_link *link, const struct vrnic_ndesc *d, u32 nr);
bool vrnic_granted(struct vrnic_link *link, u32 id);
void vrnic_grants_free(struct vrnic_link *link);

/* native/link_msg.c */
void vrnic_nmsg_add(struct vrnic_nmsg *msg, const struct vrnic_seg *seg);
void vrnic_nmsg_release(struct vrnic_nmsg *msg);
void vrnic_nmsg_free(struct vrnic_link *link, struct vrnic_nmsg *msg);
u64 vrnic_nmsg_bytes(const struct vrnic_nmsg *msg);
void vrnic_link_enqueue(struct vrnic_link *link, struct vrnic_nmsg *msg);
void vrnic_nmsg_unlink(struct vrnic_link *link, struct vrnic_nmsg *msg);
void vrnic_link_ask(struct vrnic_link *link, struct vrnic_nawait *await);
void vrnic_link_ask_acked(struct vrnic_link *link, struct vrnic_nawait *await);
void vrnic_link_run(struct vrnic_qp *qp);
void vrnic_nreq_complete(struct vrnic_link *link, struct vrnic_nreq *req);
u64 vrnic_native_fetch(struct vrnic_link *link);
void vrnic_native_describe(u64 cookie, struct vrnic_desc *d);
void *vrnic_native_alloc(struct vrnic_link *link, size_t bytes, bool patient);
void vrnic_native_open(struct vrnic_sgl *sgl, u64 cookie);
void vrnic_native_sent(struct vrnic_link *link, u64 cookie, u8 status);
void vrnic_native_ran(struct vrnic_link *link);
enum vrnic_refusal vrnic_native_refused(struct vrnic_link *link, u64 cookie, u32 why);
void vrnic_link_broken(struct vrnic_link *link);
void vrnic_link_flushed(struct vrnic_link *link);
void vrnic_link_drain(struct vrnic_link *link);

/* native/link_rest.c */
bool vrnic_link_may_rest(struct vrnic_link *link);
void vrnic_link_rest(struct vrnic_link *link);

/* native/link_serve.c */
int vrnic_native_receive(struct vrnic_link *link, struct sk_buff *skb, u32 *why);
u32 vrnic_native_left(const struct vrnic_link *link);
bool vrnic_native_light(struct vrnic_link *link, struct sk_buff *skb);

/* native/link_puts.c */
void vrnic_nputs_put(struct vrnic_injector *inj, struct vrnic_nputs *puts);
void vrnic_nputs_free_spare(struct vrnic_injector *inj);
bool vrnic_nputs_join(struct vrnic_link *link, struct vrnic_nflight *first,
		      struct vrnic_nflight *flight);
void vrnic_nputs_fill(struct vrnic_nflight *first);
u32 vrnic_nputs_behind(const struct vrnic_nflight *first);
u32 vrnic_nputs_done(const struct vrnic_nflight *first);
enum vrnic_refusal vrnic_nputs_refused(struct vrnic_nflight *first, u32 index,
				       struct vrnic_nflight **refused);

/* native/link_gather.c */
void vrnic_ngather_seek(struct vrnic_ngather *gather, u64 pos);
struct vrnic_seg vrnic_ngather_seg(struct vrnic_ngather *gather, const struct vrnic_seg *storage,
				   u64 n);

/* native/link_type.c */
void vrnic_link_type_put(struct vrnic_link *link, struct vrnic_link_type *type);
void vrnic_types_forget(struct vrnic_link *link);
void vrnic_rx_rows_free(struct vrnic_link *link);

/* native/remote.c */
enum vrnic_step vrnic_wire_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget);
bool vrnic_wire_tell(struct vrnic_injector *inj);
bool vrnic_wire_waits(const struct vrnic_injector *inj);
void vrnic_wire_forget(struct vrnic_injector *inj);
int vrnic_wire_open_own(struct vrnic_injector *inj, u64 addr, u64 len, bool write,
			struct vrnic_seg *seg);

/* native/remote_flight.c */
struct vrnic_nflight *vrnic_nflight_new(struct vrnic_injector *inj, size_t bytes);
void vrnic_nflight_depart(struct vrnic_injector *inj, struct vrnic_nflight *flight);
void vrnic_nflight_result(struct vrnic_nflight *flight, const struct vrnic_nop *op);
bool vrnic_nflight_fits(const struct vrnic_injector *inj);
enum vrnic_step vrnic_nflight_post(struct vrnic_injector *inj, struct vrnic_budget *budget);
void vrnic_nflights_push(struct vrnic_injector *inj);
enum vrnic_refusal vrnic_nflight_refused(struct vrnic_link *link, struct vrnic_nflight *flight,
					 u8 status, u8 verr, u8 index);
void vrnic_nflight_sent(struct vrnic_link *link, struct vrnic_nflight *flight, u8 status);
void vrnic_nflight_answered(struct vrnic_link *link, struct vrnic_nflight *flight);
void vrnic_nflights_lost(struct vrnic_link *link);
void vrnic_nflights_run(struct vrnic_injector *inj);
struct vrnic_nflight *vrnic_nflights_next(struct vrnic_injector *inj);
void vrnic_nflight_free(struct vrnic_injector *inj, struct vrnic_nflight *flight);
void vrnic_nflights_free_spare(struct vrnic_injector *inj);

#endif /* VRNIC_LINK_H */
