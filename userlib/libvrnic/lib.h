/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the library's files share.
 *
 * Locks, in the order in which they nest:
 *
 *	vrnic_context.advance_lock	always; held while callbacks run
 *	  vrnic_context.lock		only with VRNIC_CONTEXT_SHARED; never
 *					held while callbacks run
 *	    vrnic_client.lock		always
 *
 * Once a lock is released, another thread may free an object that was found under it.
 * A thread that goes on with an endpoint is counted in vrnic_endpoint.ending, with a
 * counter or type in its refs. Everything else is copied, or looked up again.
 */
#ifndef LIBVRNIC_LIB_H
#define LIBVRNIC_LIB_H

#include <pthread.h>
#include <sys/uio.h>

#include "record.h"
#include "rows.h"
#include "vrnic.h"

#define VRNIC_EXPORT	__attribute__((visibility("default")))

#define VRNIC_PAGE_BUCKETS	64

/*
 * Does a struct have members that this library does not know? @known: bits of comp_mask that the
 * library knows of this kind of struct; no kind has one yet. A program's struct ends where the
 * program's own header says: so the library reads and writes members that were there from the
 * beginning, one by one, and others only if their bit is set. It never copies such a struct as a
 * whole.
 */
static inline bool vrnic_is_extended(uint64_t comp_mask, uint64_t known)
{
	return comp_mask & ~known;
}

/* ---- objects ---- */

struct vrnic_counter_page;
struct vrnic_op;
struct vrnic_pool_chunk;
struct vrnic_queued;
struct vrnic_transfer;

/**
 * struct vrnic_client - an open device
 * @verbs: libibverbs' context; its file is the door into the kernel
 * @pd: protection domain of all memory
 * @own_verbs: @verbs is closed with the client
 * @own_pd: @pd is freed with the client
 * @doorbell_fd: ours alone, beside the provider's
 * @one_cpu: the thread that opened the device may use one CPU only
 * @page_size: of this machine; a page of counters has it
 * @vain: looks in vain for records and counters; atomic
 * @late: doorbells that are due; atomic
 * @fds: counters for whose events a thread may sleep; atomic
 * @lock: protects all below
 * @users: contexts, counters and types
 * @contexts: through vrnic_context.sibling
 * @retired: types that were destroyed while descriptors may name them
 * @pages: mapped pages of counters, by their offset
 */
struct vrnic_client {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	bool own_verbs;
	bool own_pd;
	int doorbell_fd;
	bool one_cpu;
	size_t page_size;
	unsigned int vain;
	struct vrnic_late late;
	unsigned int fds;
	pthread_mutex_t lock;	/* protects all below */
	unsigned int users;
	struct vrnic_context *contexts;
	struct vrnic_type *retired;
	struct vrnic_counter_page *pages[VRNIC_PAGE_BUCKETS];
};

/**
 * struct vrnic_op - an operation that will have a record
 * @next: the next one posted to the same endpoint, or free
 * @callback: to be called; NULL: nobody is to be told any more
 * @arg: for @callback
 * @cookie: of the descriptor
 * @opcode: of the descriptor
 * @internal: @callback is the library's, not the user's
 */
struct vrnic_op {
	struct vrnic_op *next;
	vrnic_callback callback;
	void *arg;
	uint64_t cookie;
	uint8_t opcode;
	bool internal;
};

/* Operations in the order in which they were posted. */
struct vrnic_op_list {
	struct vrnic_op *first;
	struct vrnic_op **end;
};

/**
 * struct vrnic_handler_entry - the handler of a dispatch id
 * @handler: gets the messages; NULL: there is none
 * @arg: for @handler
 */
struct vrnic_handler_entry {
	vrnic_handler handler;
	void *arg;
};

#define VRNIC_DISPATCH_GROUP	64	/* ids whose table is made at once */
#define VRNIC_DISPATCH_GROUPS	(VRNIC_DISPATCH_MAX / VRNIC_DISPATCH_GROUP)

/**
 * struct vrnic_transfers - self-paced transfers by number
 * @slot: under way, or over while a descriptor may name their memory; NULL: free
 * @uses: how often a slot was used, so that late news do not hit a new transfer
 * @nr: slots
 */
struct vrnic_transfers {
	struct vrnic_transfer **slot;
	uint16_t *uses;
	uint32_t nr;
};

/**
 * struct vrnic_context - an injection FIFO and a reception FIFO
 * @client: whose it is
 * @sibling: next context of @client; protected by its lock
 * @shared: threads share it
 * @handle: uverbs object
 * @address: for peers; @address.fifo for ioctls
 * @eventfd: for poll(2)
 * @advance_lock: held by the thread that takes records
 * @receive: reception ring; protected by @advance_lock
 * @made: callbacks of the user's made so far; protected by @advance_lock
 * @dropped: messages without a handler; protected by @advance_lock
 * @idle: looks in vain; protected by @advance_lock
 * @lock: protects all below, if @shared; else the user does
 * @inject: injection ring
 * @vain: its client's, at the last post
 * @streak: posts in a row, none of which was waited for
 * @typed_end: vrnic_ring.next after the last typed descriptor; also read by
 *	a thread that destroys a type
 * @queue: operations that wait for room in @inject (VRNIC_QUEUE)
 * @queue_end: where the next one is linked
 * @free_ops: records to be used again
 * @fences: operations that go to all endpoints
 * @endpoints: by number; includes those that wait for their end
 * @nr_endpoints: size of @endpoints
 * @live: endpoints that the user did not destroy
 * @dying: endpoints that the user did destroy
 * @dispatch: tables of handlers, made when needed
 * @rts_handler: gets offers
 * @rts_arg: for @rts_handler
 * @transfers: self-paced transfers
 */
struct vrnic_context {
	struct vrnic_client *client;
	struct vrnic_context *sibling;
	bool shared;
	uint32_t handle;
	struct vrnic_address address;
	int eventfd;
	pthread_mutex_t advance_lock;	/* protects what is named there */
	struct vrnic_ring receive;
	unsigned long made;
	unsigned long dropped;
	unsigned int idle;
	pthread_mutex_t lock;	/* protects all below, if @shared */
	struct vrnic_ring inject;
	unsigned int vain;
	unsigned int streak;
	uint32_t typed_end;
	struct vrnic_queued *queue;
	struct vrnic_queued **queue_end;
	struct vrnic_op *free_ops;
	struct vrnic_op_list fences;
	struct vrnic_endpoint **endpoints;
	uint32_t nr_endpoints;
	uint32_t live;
	uint32_t dying;
	struct vrnic_handler_entry *dispatch[VRNIC_DISPATCH_GROUPS];
	vrnic_rts_handler rts_handler;
	void *rts_arg;
	struct vrnic_transfers transfers;
};

/**
 * struct vrnic_endpoint - a peer's context
 * @context: whose it is
 * @number: for descriptors
 * @handle: uverbs object
 * @peer: address of the peer
 * @host: the peer's host, as records tell of it
 * @dead: the user destroyed it; it stays until the engine is done with it, so
 *	that its number is not given to another one whose descriptors lie in the
 *	ring behind those of this one
 * @ending: its transfers that a thread is ending: this thread uses the endpoint without
 *	the lock, so the endpoint stays
 * @end: vrnic_ring.next after the last descriptor to it
 * @ops: operations whose records are to come
 * @pool: registered memory for self-paced transfers with this peer, and no other
 */
struct vrnic_endpoint {
	struct vrnic_context *context;
	uint32_t number;
	uint32_t handle;
	struct vrnic_address peer;
	uint64_t host;
	bool dead;
	uint32_t ending;
	uint32_t end;
	struct vrnic_op_list ops;
	struct vrnic_pool_chunk *pool;
};

/**
 * struct vrnic_counter - a counter
 * @client: whose it is
 * @cell: shared with the kernel
 * @page: mapping that @cell lies in
 * @number: for descriptors and for peers
 * @handle: uverbs object; once @dead, it may be that of another counter
 * @refs: user and self-paced transfers
 * @dead: the user destroyed it
 * @eventfd: for poll(2), or -1 until it is asked for
 */
struct vrnic_counter {
	struct vrnic_client *client;
	struct vrnic_counter_cell *cell;
	struct vrnic_counter_page *page;
	uint32_t number;
	uint32_t handle;
	unsigned int refs;
	bool dead;
	int eventfd;
};

/* Injection rings that have to pass an index before a retired type may go. */
struct vrnic_retiring {
	struct vrnic_context *context;
	uint32_t end;
};

/**
 * struct vrnic_type - a type
 * @client: whose it is
 * @rows: its metadata
 * @info: what vrnic_type_query() says; valid once it is complete
 * @complete: it has a number
 * @number: for descriptors
 * @handle: uverbs object
 * @refs: user and queued operations; atomic
 * @next: in vrnic_client.retired; protected by the client's lock as what follows
 * @retiring: contexts that it waits for
 * @nr_retiring: how many
 */
struct vrnic_type {
	struct vrnic_client *client;
	struct vrnic_rows rows;
	struct vrnic_type_info info;
	bool complete;
	uint32_t number;
	uint32_t handle;
	unsigned int refs;
	struct vrnic_type *next;
	struct vrnic_retiring *retiring;
	unsigned int nr_retiring;
};

static inline void vrnic_lock(struct vrnic_context *ctx)
{
	if (ctx->shared)
		pthread_mutex_lock(&ctx->lock);
}

static inline void vrnic_unlock(struct vrnic_context *ctx)
{
	if (ctx->shared)
		pthread_mutex_unlock(&ctx->lock);
}

/* ---- uverbs.c: the kernel's door ---- */

int vrnic_uv_doorbell(struct ibv_context *verbs, int *fd);
int vrnic_uv_fifo_create(struct vrnic_client *client,
			 const struct vrnic_create_fifo_req *req,
			 struct vrnic_create_fifo_resp *resp, uint32_t *handle);
int vrnic_uv_fifo_lookup(struct vrnic_client *client,
			 const struct vrnic_lookup_req *req,
			 struct vrnic_address *address);
int vrnic_uv_endpoint_create(struct vrnic_context *ctx,
			     const struct vrnic_address *address,
			     struct vrnic_create_endpoint_resp *resp,
			     uint32_t *handle);
int vrnic_uv_counter_create(struct vrnic_client *client,
			    const struct vrnic_create_counter_req *req,
			    struct vrnic_create_counter_resp *resp,
			    uint32_t *handle);
int vrnic_uv_counter_eventfd(struct vrnic_counter *counter, int32_t fd);
int vrnic_uv_counter_bind(struct vrnic_counter *counter,
			  const struct vrnic_endpoint *ep);
int vrnic_uv_counter_unbind(struct vrnic_counter *counter,
			    const struct vrnic_endpoint *ep);
int vrnic_uv_count(struct vrnic_client *client, const struct vrnic_count *count);
int vrnic_uv_type_create(struct vrnic_client *client,
			 const struct vrnic_create_type_req *req,
			 struct vrnic_create_type_resp *resp, uint32_t *handle);
int vrnic_uv_destroy(struct vrnic_client *client, unsigned int object,
		     uint32_t handle);
int vrnic_uv_advance(struct vrnic_context *ctx);
void vrnic_uv_advance_later(struct vrnic_context *ctx);
void vrnic_uv_advance_late(struct vrnic_client *client);
int vrnic_uv_wait(struct vrnic_client *client, struct vrnic_wait *wait);

/* A look in vain: what the program posted is to be done now. */
static inline void vrnic_uv_looked_in_vain(struct vrnic_client *client)
{
	__atomic_fetch_add(&client->vain, 1, __ATOMIC_RELAXED);
	if (vrnic_late_any(&client->late))
		vrnic_uv_advance_late(client);
}

/* ---- client.c ---- */

void vrnic_client_hold(struct vrnic_client *client);
void vrnic_client_drop(struct vrnic_client *client);
uint64_t vrnic_now_ns(void);
uint64_t vrnic_deadline(uint64_t timeout_ns);
uint64_t vrnic_left(uint64_t deadline);

/* ---- counter.c ---- */

void vrnic_counter_get(struct vrnic_counter *counter);
void vrnic_counter_put(struct vrnic_counter *counter);
int vrnic_counter_unbind(struct vrnic_counter *counter,
			 const struct vrnic_endpoint *ep);
void vrnic_counter_fail(struct vrnic_counter *counter,
			const struct vrnic_status *status);
void vrnic_counter_end(struct vrnic_counter *counter, uint64_t bytes,
		       const struct vrnic_status *status);

/* ---- post.c: into the injection ring, and records of what was posted ---- */

/**
 * struct vrnic_request - an operation to be posted
 * @desc: descriptor; endpoint, cookie, counters and number of slots are filled in
 * @parts: what follows its first slot
 * @nr_parts: how many
 * @types: types that it names, or NULL
 */
struct vrnic_request {
	struct vrnic_ndesc desc;
	struct iovec parts[2];
	unsigned int nr_parts;
	struct vrnic_type *types[2];
};

int vrnic_done_check(const struct vrnic_context *ctx, const struct vrnic_done *done);
int vrnic_post(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
	       struct vrnic_request *req, const struct vrnic_done *done);
int vrnic_post_locked(struct vrnic_context *ctx, struct vrnic_endpoint *ep,
		      struct vrnic_request *req, const struct vrnic_done *done,
		      bool internal);
int vrnic_post_room(struct vrnic_context *ctx, uint32_t slots);
int vrnic_post_flush(struct vrnic_context *ctx);
void vrnic_post_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep);
void vrnic_ops_init(struct vrnic_op_list *list);
struct vrnic_op *vrnic_op_take(struct vrnic_op_list *list, uint8_t opcode,
			       uint64_t cookie);
void vrnic_op_free(struct vrnic_context *ctx, struct vrnic_op *op);
void vrnic_ops_mute(struct vrnic_op_list *list, const void *arg);
void vrnic_ops_destroy(struct vrnic_context *ctx);

/* ---- fence.c ---- */

void vrnic_fences_cancel(struct vrnic_endpoint *ep);

/* ---- endpoint.c ---- */

/*
 * Is @peer, of a record, this endpoint's? The number of a peer on another host is the peer's
 * own claim; only the address of its host is sure.
 */
static inline bool vrnic_is_peer(const struct vrnic_endpoint *ep, const struct vrnic_peer *peer)
{
	return ep->peer.fifo == peer->fifo && ep->host == peer->host;
}

static inline struct vrnic_peer vrnic_sender(const struct vrnic_record *rec)
{
	return (struct vrnic_peer){ .host = rec->host, .fifo = rec->source, .task = rec->task };
}

struct vrnic_endpoint *vrnic_endpoint_lookup(const struct vrnic_context *ctx,
					     const struct vrnic_peer *peer);
bool vrnic_endpoints_bury(struct vrnic_context *ctx, bool force);

/* ---- message.c ---- */

void vrnic_record_message(struct vrnic_context *ctx,
			  const struct vrnic_record *rec);
void vrnic_dispatch_free(struct vrnic_context *ctx);

/* ---- advance.c ---- */

void vrnic_tell(struct vrnic_context *ctx, vrnic_callback callback, void *arg,
		const struct vrnic_status *status);
int vrnic_advance_sleep(struct vrnic_context *ctx, uint64_t deadline);

/* ---- pool.c: registered memory that one peer may read, or read and write ---- */

/**
 * struct vrnic_piece - memory from a pool
 * @chunk: where it comes from; NULL: none
 * @mem: its start, cleared
 * @rows: its size in rows of VRNIC_SLOT_SIZE bytes
 */
struct vrnic_piece {
	struct vrnic_pool_chunk *chunk;
	void *mem;
	uint32_t rows;
};

int vrnic_pool_alloc(struct vrnic_endpoint *ep, uint32_t rows, bool writable,
		     struct vrnic_piece *piece);
void vrnic_pool_free(struct vrnic_endpoint *ep, struct vrnic_piece *piece);
const struct ibv_mr *vrnic_pool_mr(const struct vrnic_piece *piece);
void vrnic_pool_destroy(struct vrnic_endpoint *ep);

/* ---- pace.c ---- */

/* Dispatch ids of the library's own messages. */
enum {
	VRNIC_DISPATCH_RTS = VRNIC_DISPATCH_MAX,	/* an offer */
	VRNIC_DISPATCH_REFUSED,		/* to the origin: it will not be taken */
	VRNIC_DISPATCH_BROKEN,		/* to the target: no more will come */
	VRNIC_DISPATCH_TAKEN,		/* NOTIFY at the origin */
	VRNIC_DISPATCH_ARRIVED,		/* NOTIFY at the target */
};

void vrnic_pace_message(struct vrnic_context *ctx,
			const struct vrnic_record *rec);
void vrnic_pace_notify(struct vrnic_context *ctx,
		       const struct vrnic_record *rec);
void vrnic_pace_error(struct vrnic_context *ctx,
		      const struct vrnic_record *rec);

/* ---- transfer.c ---- */

void vrnic_transfers_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep);
void vrnic_transfers_bury(struct vrnic_context *ctx, const struct vrnic_endpoint *ep);
void vrnic_transfers_destroy(struct vrnic_context *ctx);

/* ---- type.c ---- */

void vrnic_type_get(struct vrnic_type *type);
void vrnic_type_put(struct vrnic_type *type);
void vrnic_types_reap(struct vrnic_client *client, struct vrnic_context *gone);

#endif /* LIBVRNIC_LIB_H */
