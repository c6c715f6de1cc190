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
 * counter, group or type in its refs. Everything else is copied, or looked up again.
 */
#ifndef LIBVRNIC_LIB_H
#define LIBVRNIC_LIB_H

#include <pthread.h>
#include <sys/uio.h>

#include "pace_wire.h"
#include "record.h"
#include "rows.h"
#include "vrnic.h"
#include "vrnic_group.h"
#include "vrnic_rts.h"
#include "vrnic_type.h"

#define VRNIC_EXPORT	__attribute__((visibility("default")))

#define VRNIC_PAGE_BUCKETS	64

/*
 * Does a struct have members that this library does not know? @known: bits of comp_mask that the
 * library knows of this kind of struct. A program's struct ends where the program's own header
 * says: so the library reads and writes members that were there from the beginning, one by one, and
 * others only if their bit is set. It never copies such a struct as a whole.
 */
static inline bool vrnic_is_extended(uint64_t comp_mask, uint64_t known)
{
	return comp_mask & ~known;
}

/* The callback for the local buffer, if there is one. @done may be NULL. */
static inline vrnic_callback vrnic_done_local(const struct vrnic_done *done)
{
	return done && done->comp_mask & VRNIC_DONE_LOCAL_CALLBACK ? done->local_callback : NULL;
}

/* ---- objects ---- */

struct vrnic_counter_page;
struct vrnic_op;
struct vrnic_pool_chunk;
struct vrnic_queued;
struct vrnic_transfer;

/**
 * struct vrnic_client - an open device
 * @verbs: libibverbs' context, whose file takes the commands of uverbs.c
 * @pd: protection domain of all memory
 * @own_verbs: @verbs is closed with the client
 * @own_pd: @pd is freed with the client
 * @doorbell_fd: doorbell file of this client; the provider has another one
 * @one_cpu: the thread that opened the device may use one CPU only
 * @features: VRNIC_FEATURE_* of the module
 * @page_size: of this machine; a page of counters has it
 * @vain: how often a look at records or counters was in vain; atomic
 * @late: doorbells that are due; atomic
 * @fds: counters with an eventfd, on which a thread may sleep; atomic
 * @lock: protects all below
 * @users: number of contexts, counters, groups of counters and types
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
	uint32_t features;
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
 * @next: next in a struct vrnic_op_list, or in vrnic_context.free_ops
 * @local: to be called when the record comes, before @callback; NULL: not at all, or not again
 * @callback: to be called when the record comes; NULL: the user is not told any more
 * @arg: for @local and @callback
 * @cookie: of the descriptor
 * @opcode: of the descriptor
 * @internal: @callback is the library's, not the user's
 */
struct vrnic_op {
	struct vrnic_op *next;
	vrnic_callback local;
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

#define VRNIC_DISPATCH_GROUP	64	/* ids in one table of handlers */
#define VRNIC_DISPATCH_GROUPS	(VRNIC_DISPATCH_MAX / VRNIC_DISPATCH_GROUP)

/**
 * struct vrnic_longs - long messages that a peer has offered
 * @coming: those that are on their way
 * @bytes: their data
 * @waiting: the others, in the order of their offers
 * @end: where the next one is linked
 * @nr_waiting: number of @waiting
 */
struct vrnic_longs {
	struct vrnic_long *coming;
	uint64_t bytes;
	struct vrnic_long *waiting;
	struct vrnic_long **end;
	uint32_t nr_waiting;
};

/**
 * struct vrnic_transfers - self-paced transfers by number
 * @slot: a transfer under way, or one that is over while descriptors may name its memory; or NULL
 * @uses: how often a slot was used: a part of the number, so no late record finds a new transfer
 * @nr: number of slots
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
 * @made: number of calls of the user's callbacks; protected by @advance_lock
 * @dropped: messages without a handler; protected by @advance_lock
 * @idle: looks in vain since the last record; protected by @advance_lock
 * @turn: the higher, the later vrnic_advance_contexts() had time for the context; atomic
 * @lock: protects all below, if @shared; otherwise one thread at a time uses the context
 * @inject: injection ring
 * @defer: operations are VRNIC_DEFER
 * @deferred: one was put into @inject since the last call of the kernel
 * @vain: @client->vain at the last post
 * @streak: posts in a row between which @client->vain did not change
 * @typed_end: @inject.next after the last typed descriptor; a thread that destroys
 *	a type reads it without @lock
 * @queue: operations that wait for room in @inject (VRNIC_QUEUE)
 * @queue_end: where the next one is linked
 * @free_ops: free structs, to be used again
 * @fences: operations that go to all endpoints
 * @fencing: vrnic_fence_begin() was called, and vrnic_fence_end() not yet
 * @endpoints: by number, with those that the user destroyed and that are not freed yet
 * @nr_endpoints: size of @endpoints
 * @live: number of endpoints that the user did not destroy
 * @dying: number of endpoints that the user destroyed and that are not freed yet
 * @dispatch: tables of handlers, allocated when needed
 * @rts_handler: gets offers
 * @rts_arg: for @rts_handler
 * @transfers: self-paced transfers
 * @hosts: endpoints with peers on other hosts that send such transfers here
 */
struct vrnic_context {
	struct vrnic_client *client;
	struct vrnic_context *sibling;
	bool shared;
	uint32_t handle;
	struct vrnic_address address;
	int eventfd;
	pthread_mutex_t advance_lock;	/* protects what is said above */
	struct vrnic_ring receive;
	unsigned long made;
	unsigned long dropped;
	unsigned int idle;
	uint64_t turn;
	pthread_mutex_t lock;	/* protects all below, if @shared */
	struct vrnic_ring inject;
	bool defer;
	bool deferred;
	unsigned int vain;
	unsigned int streak;
	uint32_t typed_end;
	struct vrnic_queued *queue;
	struct vrnic_queued **queue_end;
	struct vrnic_op *free_ops;
	struct vrnic_op_list fences;
	bool fencing;
	struct vrnic_endpoint **endpoints;
	uint32_t nr_endpoints;
	uint32_t live;
	uint32_t dying;
	struct vrnic_handler_entry *dispatch[VRNIC_DISPATCH_GROUPS];
	vrnic_rts_handler rts_handler;
	void *rts_arg;
	struct vrnic_transfers transfers;
	uint32_t hosts;
};

/**
 * struct vrnic_endpoint - a peer's context
 * @context: whose it is
 * @number: for descriptors
 * @handle: uverbs object
 * @peer: address of the peer
 * @host: number of the peer's host, as in struct vrnic_record
 * @dead: the user destroyed it. It stays until the engine is done with it, because the
 *	kernel may give its number to a new endpoint: descriptors in the ring would then
 *	go to the wrong peer
 * @ending: number of its transfers that threads are ending. Such a thread uses the endpoint
 *	without the lock, so the endpoint stays
 * @incoming: number of those that this end has accepted, and that are not over
 * @end: vrnic_context.inject.next after the last descriptor to it
 * @ops: operations whose records are to come
 * @pool: registered memory for self-paced transfers with this peer, and no other
 * @longs: long messages of the peer
 * @verdicts: number of verdicts on the peer's transfers that wait for room in the ring
 */
struct vrnic_endpoint {
	struct vrnic_context *context;
	uint32_t number;
	uint32_t handle;
	struct vrnic_address peer;
	uint64_t host;
	bool dead;
	uint32_t ending;
	uint32_t incoming;
	uint32_t end;
	struct vrnic_op_list ops;
	struct vrnic_pool_chunk *pool;
	struct vrnic_longs longs;
	uint32_t verdicts;
};

/**
 * struct vrnic_counter - a counter
 * @client: whose it is
 * @cell: its values; an array of one, so that its name is a pointer. Has a reference on its group
 * @page: mapping that the values lie in
 * @number: for descriptors and for peers
 * @handle: uverbs object; once @dead, it may be that of another counter
 * @refs: of the user, of self-paced transfers and of waiting threads; atomic
 * @dead: the user destroyed it
 * @open: peers may name it
 * @eventfd: for poll(2), or -1 until it is asked for
 */
struct vrnic_counter {
	struct vrnic_client *client;
	struct vrnic_cell cell[1];
	struct vrnic_counter_page *page;
	uint32_t number;
	uint32_t handle;
	unsigned int refs;
	bool dead;
	bool open;
	int eventfd;
};

/**
 * struct vrnic_counter_group - a group of counters
 * @client: whose it is
 * @words: shared with the kernel
 * @page: mapping that @words lies in
 * @number: for VRNIC_WAIT_GROUP
 * @handle: uverbs object
 * @refs: of the user, of counters and of waiting threads; atomic
 * @members: bits that have a counter; atomic
 */
struct vrnic_counter_group {
	struct vrnic_client *client;
	struct vrnic_group_cell *words;
	struct vrnic_counter_page *page;
	uint32_t number;
	uint32_t handle;
	unsigned int refs;
	uint64_t members;
};

/* A context whose engine has to pass slot @end before a retired type may be destroyed. */
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
 * @refs: of the user and of queued operations; atomic
 * @next: in vrnic_client.retired; protected by the client's lock, as are the members below
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

/* Do operations wait for room in the injection ring? */
static inline bool vrnic_is_queued(struct vrnic_context *ctx)
{
	bool queued;

	vrnic_lock(ctx);
	queued = ctx->queue;
	vrnic_unlock(ctx);
	return queued;
}

/* ---- uverbs.c: calls into the kernel ---- */

int vrnic_uv_doorbell(struct ibv_context *verbs, int *fd, uint32_t *features);
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
			    const struct vrnic_counter_group *group,
			    const struct vrnic_create_counter_req *req,
			    struct vrnic_create_counter_resp *resp,
			    uint32_t *handle);
int vrnic_uv_counter_eventfd(struct vrnic_counter *counter, int32_t fd);
int vrnic_uv_counter_bind(struct vrnic_counter *counter,
			  const struct vrnic_endpoint *ep);
int vrnic_uv_counter_unbind(struct vrnic_counter *counter,
			    const struct vrnic_endpoint *ep);
int vrnic_uv_count(struct vrnic_client *client, const struct vrnic_count *count);
int vrnic_uv_group_create(struct vrnic_client *client,
			  const struct vrnic_create_group_req *req,
			  struct vrnic_create_group_resp *resp, uint32_t *handle);
int vrnic_uv_type_create(struct vrnic_client *client,
			 const struct vrnic_create_type_req *req,
			 struct vrnic_create_type_resp *resp, uint32_t *handle);
int vrnic_uv_destroy(struct vrnic_client *client, unsigned int object,
		     uint32_t handle);
int vrnic_uv_advance(struct vrnic_context *ctx);
int vrnic_uv_advance_deferred(struct vrnic_context *ctx);
void vrnic_uv_advance_later(struct vrnic_context *ctx);
void vrnic_uv_advance_late(struct vrnic_client *client);
int vrnic_uv_wait(struct vrnic_client *client, struct vrnic_wait *wait);
int vrnic_uv_wait_group(struct vrnic_client *client, struct vrnic_wait_group *wait);

/* Note that a look was in vain, and ring the doorbells that are due: the program waits. */
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

/* ---- context.c ---- */

bool vrnic_context_rearm(struct vrnic_context *ctx);

/* ---- counter.c ---- */

int vrnic_page_map(struct vrnic_client *client, uint64_t offset, uint32_t index,
		   struct vrnic_counter_page **page);
void *vrnic_page_piece(const struct vrnic_counter_page *page, uint32_t index);
void vrnic_page_unmap(struct vrnic_client *client, struct vrnic_counter_page *page);
int vrnic_counter_make(struct vrnic_client *client, struct vrnic_counter_group *group,
		       uint32_t flags, uint32_t bit, struct vrnic_counter **counter);
void vrnic_counter_tell(struct vrnic_cell *cell);
void vrnic_counter_get(struct vrnic_counter *counter);
void vrnic_counter_put(struct vrnic_counter *counter);
int vrnic_counter_unbind(struct vrnic_counter *counter,
			 const struct vrnic_endpoint *ep);
void vrnic_counter_fail(struct vrnic_counter *counter,
			const struct vrnic_status *status);
void vrnic_counter_end(struct vrnic_counter *counter, uint64_t bytes,
		       const struct vrnic_status *status);
void vrnic_counter_undo(struct vrnic_counter *counter, uint64_t n);

/* ---- group.c ---- */

void vrnic_group_put(struct vrnic_counter_group *group);
void vrnic_group_member(const struct vrnic_cell *cell, bool there);

/* ---- post.c: into the injection ring, and records of what was posted ---- */

/**
 * struct vrnic_request - an operation to be posted
 * @desc: descriptor; the post functions fill in endpoint, cookie, counters, number of slots,
 *	and where the data in the slots lies
 * @parts: what follows its first slot
 * @nr_parts: how many
 * @data: buffers of the program, which follow the parts
 * @nr_data: how many
 * @types: types that it names, or NULL
 * @defer: a thread of the kernel is to execute it; the post functions fill this in
 * @waits: a WAIT goes before it; the post functions fill in this and @wait
 * @wait: the WAIT
 * @verdict: it tells the peer that a transfer has failed, see vrnic_transfer_tell()
 */
struct vrnic_request {
	struct vrnic_ndesc desc;
	struct iovec parts[2];
	unsigned int nr_parts;
	const struct iovec *data;
	unsigned int nr_data;
	struct vrnic_type *types[2];
	bool defer;
	bool waits;
	bool verdict;
	struct vrnic_ndesc wait;
};

/* A request of a descriptor alone: it has neither parts nor data in the ring, and names no type. */
static inline void vrnic_request_plain(struct vrnic_request *req)
{
	req->nr_parts = 0;
	req->nr_data = 0;
	req->types[0] = NULL;
	req->types[1] = NULL;
	req->verdict = false;
}

int vrnic_iov_length(const struct iovec *iov, int nr, uint64_t *length);
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
struct vrnic_op *vrnic_op_find(const struct vrnic_op_list *list, uint8_t opcode, uint64_t cookie);
void vrnic_op_remove(struct vrnic_context *ctx, struct vrnic_op_list *list, struct vrnic_op *op);
void vrnic_ops_mute(struct vrnic_op_list *list, const void *arg);
void vrnic_ops_destroy(struct vrnic_context *ctx);

/* ---- fence.c ---- */

void vrnic_fences_cancel(struct vrnic_endpoint *ep);

/* ---- endpoint.c ---- */

/*
 * Is @peer, which sent a record, the peer of @ep? A peer on another host itself claims its fifo;
 * only its host, which the kernel finds by its address, is sure.
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

void vrnic_dispatch(struct vrnic_context *ctx, uint32_t id, const struct vrnic_message *message);
bool vrnic_dispatches(struct vrnic_context *ctx, uint32_t id);
void vrnic_record_message(struct vrnic_context *ctx,
			  const struct vrnic_record *rec);
void vrnic_dispatch_free(struct vrnic_context *ctx);

/* ---- advance.c ---- */

#define VRNIC_QUEUED_NS	1000000ULL	/* no longer sleep while operations wait for room */

void vrnic_tell(struct vrnic_context *ctx, vrnic_callback callback, void *arg,
		const struct vrnic_status *status);
int vrnic_advance_one(struct vrnic_context *ctx, int max, bool skip);
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

void vrnic_pace_message(struct vrnic_context *ctx,
			const struct vrnic_record *rec);
void vrnic_pace_notify(struct vrnic_context *ctx,
		       const struct vrnic_record *rec);
void vrnic_pace_error(struct vrnic_context *ctx,
		      const struct vrnic_record *rec);

/* ---- long.c ---- */

int vrnic_long_send(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		    const struct vrnic_done *done);
void vrnic_longs_init(struct vrnic_endpoint *ep);
struct vrnic_long *vrnic_longs_refuse(struct vrnic_endpoint *ep);
void vrnic_longs_free(struct vrnic_long *l);

/* ---- transfer.c ---- */

void vrnic_transfers_forget(struct vrnic_context *ctx, struct vrnic_endpoint *ep);
void vrnic_transfers_bury(struct vrnic_context *ctx, const struct vrnic_endpoint *ep);
void vrnic_transfers_destroy(struct vrnic_context *ctx);

/* ---- type.c ---- */

void vrnic_type_get(struct vrnic_type *type);
void vrnic_type_put(struct vrnic_type *type);
void vrnic_types_reap(struct vrnic_client *client, struct vrnic_context *gone);

#endif /* LIBVRNIC_LIB_H */
