/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Native links: how native operations reach a FIFO on another host. A link is an
 * RC queue pair of the driver's own at either end, between the FIFO of an
 * endpoint and its peer; messages go over it as they would over any other.
 *
 *	native/link.c		makes links
 *	native/link_hello.c		datagrams about them, until they are looked at
 *	native/link_keep.c		how long they last
 *	native/link_host.c		whose they are, and what each host may cost
 *	native/link_grant.c		counters that a peer may name
 *	native/link_msg.c		messages, until the peer has them
 *	native/remote.c	descriptors become requests
 *	native/link_serve.c		requests are executed; answers come in
 *
 * Each descriptor becomes one request or, if it is long, one after the other.
 * Its injector goes away until the answer is there.
 *
 * The queue pair is run by threads, and by who posts: so executing may sleep.
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
#include "mem/mem.h"
#include "native/type.h"
#include "queue/opcode.h"
#include "vrnic.h"

struct net;
struct sk_buff;
struct vrnic_fifo;
struct vrnic_host;
struct vrnic_injector;
struct vrnic_mr;
struct vrnic_nreq;
struct vrnic_rget;

/*
 * For what a link is made of. Reclaim is tried once, then the peer that asked is refused, and
 * asks again. Until then whose memory it is waits: a thread of his crew, or he himself.
 */
#define VRNIC_GFP_LINK	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

#define VRNIC_NMSG_SEGS		3	/* message data that wraps, and a region */

/**
 * struct vrnic_nmsg - a message of a link, until the peer has acknowledged it
 * @hdr: header
 * @nr: segments
 * @seg: data after the header; regions have references, so that a packet that
 *	is lost can be made again
 * @buf: memory that @seg is of, or NULL; freed with the message
 * @charged: bytes of @buf that the peer's host was charged with
 * @req: request that this is; NULL: it is freed when it is sent
 * @link: in struct vrnic_link.msgs; protected by its lock
 */
struct vrnic_nmsg {
	struct vrnic_nwire hdr;
	unsigned int nr;
	struct vrnic_seg seg[VRNIC_NMSG_SEGS];
	void *buf;
	u32 charged;
	struct vrnic_nreq *req;
	struct list_head link;
};

/**
 * struct vrnic_nreq - the request that an injector waits for
 * @msg: what is sent
 * @posted: there is one. Protected by the injector's run bit, as all below while
 *	not @pending.
 * @pending: the link has it. Cleared with release.
 * @sent: the peer's transport has it; protected by the link's run bit, as what
 *	follows while @pending
 * @answered: the answer is there
 * @id: number; the lowest bit says which injector
 * @n: bytes that it moves
 * @wants: bytes of data that the answer has if all is well: GET, if any
 * @into: GET: where the answer's data goes, if it is not looked up:
 * @key: GET: local key; or, of an injected descriptor, remote key
 * @addr: GET: address
 * @pinned: memory was pinned for it
 * @half: TYPED: the local side's position
 * @was: it, before what is on its way was packed
 * @telling: it tells rows of a type
 * @told: bytes of them that the peer has
 * @span: TYPED: bytes of the local storage
 * @again: the peer has no room yet
 * @status: enum ib_wc_status, as the peer or the link has it
 * @vendor_err: enum vrnic_vendor_err, likewise
 * @value: of the answer
 */
struct vrnic_nreq {
	struct vrnic_nmsg msg;
	bool posted;
	bool pending;
	bool sent;
	bool answered;
	u32 id;
	u32 n;
	u32 wants;
	struct vrnic_seg into;
	u32 key;
	u64 addr;
	bool pinned;
	struct vrnic_half half;
	struct vrnic_half was;
	bool telling;
	u64 told;
	u64 span;
	bool again;
	u8 status;
	u8 vendor_err;
	u64 value;
};

/**
 * struct vrnic_link_rx - the message that is coming in
 * @h: its header
 * @left: bytes of data to come
 * @status: enum ib_wc_status; not success: the rest is ignored
 * @vendor_err: enum vrnic_vendor_err
 * @req: ANSWER: the request; NULL: nobody waits for it any more
 * @answer: other: the answer to be
 * @buf: data that is not put into place packet by packet
 * @unknown: TYPED: of a type that nobody told of: to be told, and sent again
 * @half: TYPED: the position in the storage
 * @type: TYPED: the type that @half is of
 * @rows: TYPE: rows that are coming in
 * @rows_bytes: all of them; what @rows has the peer's host charged with
 * @rows_there: bytes of them that came
 */
struct vrnic_link_rx {
	struct vrnic_nhdr h;
	u32 left;
	u8 status;
	u8 vendor_err;
	struct vrnic_nreq *req;
	struct vrnic_nmsg *answer;
	u8 buf[VRNIC_MAX_MESSAGE];
	bool unknown;
	struct vrnic_half half;
	const struct vrnic_rows *type;
	struct vrnic_type_row *rows;
	u64 rows_bytes;
	u64 rows_there;
};

/* Slots of a link's ring that answers leave to the requests of two injectors. */
#define VRNIC_LINK_KEEP_SLOTS	4

/**
 * struct vrnic_grants - counters that a peer may name although they are not open
 * @slot: their numbers, hashed; 0: none
 * @size: slots; a power of two, or 0
 * @nr: how many are there
 */
struct vrnic_grants {
	u32 *slot;
	u32 size;
	u32 nr;
};

/**
 * struct vrnic_link_type - a type that the peer told of
 * @node: in struct vrnic_link.types
 * @number: the peer's number for it
 * @bytes: what its rows took when they came, which the peer's host is charged with; fewer
 *	rows may do
 * @rows: it
 */
struct vrnic_link_type {
	struct hlist_node node;
	u32 number;
	u32 bytes;
	struct vrnic_rows rows;
};

#define VRNIC_LINK_TYPE_BITS	6
#define VRNIC_LINK_TOLD_BITS	6
#define VRNIC_LINK_TOLD_WAYS	4

/* So much of a typed transfer is packed at a time. */
#define VRNIC_PACK_BYTES	SZ_256K

/**
 * struct vrnic_link - one end of a native link
 * @refs: its owner, and what the peer injected
 * @shell: what stands for the core's part of its queue pair
 * @qp: its queue pair; not to be used once @dead, but by its own run
 * @fifo: the FIFO at this end; a reference is held until the link has ended
 * @host: where the peer is
 * @accepted: the peer asked for it
 * @endpoints: those that use it, to be told when it fails; protected by watch_lock
 * @owned: in one of the FIFO's lists, or in that of links that connect
 * @all: in that of all links
 * @asked: whoever was asked may have a link by now
 * @said_bye: the peer was told that this end is gone
 * @ending: does what ending it takes
 * @linger_until: the peer may acknowledge until then, in jiffies
 * @notice: that it failed, to be sent to @fifo; accepted links have it, until it is
 *	sent; protected by the queue pair's run bit
 * @heard: when the peer last gave a sign of life, in jiffies
 * @nonce: which link, for datagrams about it; 0: nobody was told of it yet
 * @peer: where the other end is; secret: 0
 * @peer_qpn: its queue pair
 * @answered: there is an answer to what was asked
 * @hello: it
 * @lock: protects what follows
 * @dead: nothing can be posted
 * @bye: the peer's end is gone
 * @left: because nobody there had a use for it
 * @failed: it is known that it does not work; written with the queue pair's run bit
 * @pending: requests of the FIFO's two injectors
 * @msgs: struct vrnic_nmsg in the queue pair's ring and window
 * @grants: counters that descriptors named which were injected over this link
 * @rx: protected by the queue pair's run bit, as all that follows
 * @types: struct vrnic_link_type, by hash
 * @types_nr: how many
 * @types_bytes: of all their rows
 * @answer_bytes: packed for answers that the peer has not acknowledged
 * @told: serials of types that the peer was told of, by hash of their numbers: it is
 *	told of others again; 0: none. For the injector of the FIFO's ring, with its
 *	run bit
 * @told_next: which of a hash is the next to be forgotten; likewise
 * @users: endpoints that use it; protected by the FIFO's ctrl, as what follows
 * @secret: of the address it was made for
 */
struct vrnic_link {
	refcount_t refs;
	struct vrnic_ibqp shell;
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
	unsigned long linger_until;
	struct vrnic_rget *notice;
	unsigned long heard;
	u64 nonce;
	struct vrnic_address peer;
	u32 peer_qpn;
	struct completion answered;
	struct vrnic_hello hello;
	spinlock_t lock;	/* protects what follows, up to @rx */
	bool dead;
	bool bye;
	bool left;
	bool failed;
	struct vrnic_nreq *pending[2];
	struct list_head msgs;
	struct vrnic_grants grants;
	struct vrnic_link_rx rx;
	struct hlist_head types[1 << VRNIC_LINK_TYPE_BITS];
	u32 types_nr;
	u64 types_bytes;
	u32 answer_bytes;
	u64 told[1 << VRNIC_LINK_TOLD_BITS][VRNIC_LINK_TOLD_WAYS];
	u32 told_next;
	unsigned int users;
	u64 secret;
};

/**
 * struct vrnic_heard - a datagram about links that came
 * @link: in struct vrnic_hello_queue.list
 * @net: where; with a reference, as it may wait for longer than its socket is there. NULL:
 *	it waits for a FIFO, which goes before its network namespace does
 * @from: sender's address
 * @to: address it came to
 * @h: what it says
 * @why: ASK: enum vrnic_hello_why; not 0: there will be no link
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
 * struct vrnic_hello_queue - datagrams that wait to be looked at, one after the other
 * @lock: protects what follows; bh
 * @list: struct vrnic_heard
 * @nr: how many, by enum vrnic_hello_kind
 * @closed: there will be no more
 */
struct vrnic_hello_queue {
	spinlock_t lock;	/* protects what follows; bh */
	struct list_head list;
	unsigned int nr[VRNIC_HELLO_MAX];
	bool closed;
};

/**
 * struct vrnic_hellos - what there is to do about the links that a FIFO accepts
 * @run: a thread of the FIFO's crew does it
 * @queue: who wants one; and who wanted one, and never knew whether it got one
 * @failed: bit 0: there is one that does not work any more
 */
struct vrnic_hellos {
	struct vrnic_runnable run;
	struct vrnic_hello_queue queue;
	unsigned long failed;
};

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

/* native/link_host.c */
struct vrnic_host *vrnic_host_get(const struct net *net, const union ib_gid *gid);
void vrnic_host_put(struct vrnic_host *host);
u64 vrnic_host_number(const struct vrnic_host *host);
bool vrnic_host_charge(struct vrnic_host *host, u64 bytes);
void vrnic_host_uncharge(struct vrnic_host *host, u64 bytes);

/* native/link_grant.c */
int vrnic_grant(struct vrnic_link *link, const struct vrnic_ndesc *d, u32 nr);
bool vrnic_granted(struct vrnic_link *link, u32 id);
void vrnic_grants_free(struct vrnic_link *link);

/* native/link_msg.c */
void vrnic_nmsg_add(struct vrnic_nmsg *msg, const struct vrnic_seg *seg);
void vrnic_nmsg_release(struct vrnic_nmsg *msg);
void vrnic_nmsg_free(struct vrnic_link *link, struct vrnic_nmsg *msg);
u64 vrnic_nmsg_bytes(const struct vrnic_nmsg *msg);
bool vrnic_link_has_room(struct vrnic_link *link, u32 keep);
void vrnic_link_enqueue(struct vrnic_link *link, struct vrnic_nmsg *msg);
void vrnic_nreq_complete(struct vrnic_link *link, struct vrnic_nreq *req);
void vrnic_native_open(struct vrnic_sgl *sgl, u64 cookie);
void vrnic_native_sent(struct vrnic_link *link, u64 cookie, u8 status);
void vrnic_link_broken(struct vrnic_link *link);
void vrnic_link_flushed(struct vrnic_link *link);
void vrnic_link_drain(struct vrnic_link *link);

/* native/link_serve.c */
int vrnic_native_receive(struct vrnic_link *link, struct sk_buff *skb);
void vrnic_types_forget(struct vrnic_link *link);
void vrnic_rx_rows_free(struct vrnic_link *link);

/* native/remote.c */
enum vrnic_step vrnic_wire_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget);
bool vrnic_wire_tell(struct vrnic_injector *inj);
bool vrnic_wire_waits(const struct vrnic_injector *inj);
void vrnic_wire_forget(struct vrnic_injector *inj);

#endif /* VRNIC_LINK_H */
