/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libvrnic: what verbs lack. Put and get with byte counters, messages whose
 * data lies in the descriptor ring, typed transfers without buffers, transfers
 * that pace themselves, fences without accounting.
 *
 *	client > context > endpoint	(a device, a pair of rings, a peer)
 *	counter, type			(belong to a client)
 *
 * Memory is an ibv_mr of the context's protection domain; so a program may use plain
 * verbs and libvrnic on one device.
 *
 * Unless it says otherwise a function returns 0 or a negative errno, is
 * documented in a man page of its name, and may be called from any thread as
 * long as no other thread uses the same context (for counters and types: the
 * same counter or type) at the same time. vrnic_advance() locks its context
 * itself; with VRNIC_CONTEXT_SHARED every function does.
 */
#ifndef LIBVRNIC_H
#define LIBVRNIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/vrnic-abi.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vrnic_client;
struct vrnic_context;
struct vrnic_endpoint;
struct vrnic_counter;
struct vrnic_type;

#define VRNIC_NO_TIMEOUT	UINT64_MAX

/* ---- clients ---- */

/**
 * vrnic_client_open() - open a device
 * @device: its name ("vrnic0"), or NULL for the first vrnic device
 * @client: the result
 *
 * Errors: ENODEV (no such device, or not a vrnic), EPROTO (the module speaks
 * another version of the interface), those of ibv_open_device().
 */
int vrnic_client_open(const char *device, struct vrnic_client **client);

/**
 * vrnic_client_from_verbs() - make a client of an open device
 * @verbs: stays the caller's; must outlive the client
 * @pd: protection domain; stays the caller's; NULL: the client makes one
 * @client: the result
 */
int vrnic_client_from_verbs(struct ibv_context *verbs, struct ibv_pd *pd,
			    struct vrnic_client **client);

/* EBUSY while it has contexts, counters or types. */
int vrnic_client_close(struct vrnic_client *client);

/* Never fail; the result belongs to the client. */
struct ibv_context *vrnic_client_verbs(struct vrnic_client *client);
struct ibv_pd *vrnic_client_pd(struct vrnic_client *client);

/* ---- contexts: an injection FIFO and a reception FIFO ---- */

enum {
	VRNIC_CONTEXT_SHARED = 1 << 0,	/* threads share it: every call locks */
	VRNIC_CONTEXT_OPEN = 1 << 1,	/* other users find it by name */
};

/**
 * struct vrnic_context_attr - what a context is to be; zero means the default
 * @name: client name, to be found by on this host, up to 31 bytes; NULL: none
 * @task: number of this process within the client
 * @number: number of this context within the task
 * @inject_slots: 64-byte slots of the injection FIFO, 2 to 65536; default 256
 * @receive_slots: 64-byte slots of the reception FIFO, 132 to 65536; default 512
 * @flags: VRNIC_CONTEXT_*
 */
struct vrnic_context_attr {
	const char *name;
	uint32_t task;
	uint32_t number;
	uint32_t inject_slots;
	uint32_t receive_slots;
	uint32_t flags;
};

int vrnic_context_create(struct vrnic_client *client,
			 const struct vrnic_context_attr *attr,
			 struct vrnic_context **context);

/* EBUSY while it has endpoints. */
int vrnic_context_destroy(struct vrnic_context *context);

/* The address that peers make endpoints of. Plain data: send it by any means. */
void vrnic_context_address(const struct vrnic_context *context,
			   struct vrnic_address *address);

/**
 * vrnic_context_fd() - a descriptor for poll(2)
 *
 * Readable if something has arrived since vrnic_context_arm(). Never fails; the
 * descriptor belongs to the context.
 */
int vrnic_context_fd(const struct vrnic_context *context);

/* Ask for an event at the next arrival. 0: armed; 1: something is there already. */
int vrnic_context_arm(struct vrnic_context *context);

/**
 * vrnic_advance() - make progress, and deliver what arrived
 * @context: context
 * @max: at most so many callbacks; 0: only progress
 *
 * Runs the context's rings in the caller's thread, posts queued operations, and
 * calls the callbacks and handlers of operations that completed and messages that
 * arrived.
 *
 * Return: callbacks made, or a negative errno. EIO: the device is gone.
 */
int vrnic_advance(struct vrnic_context *context, int max);

/* The same; EBUSY if another thread is at it. */
int vrnic_advance_try(struct vrnic_context *context, int max);

/**
 * vrnic_advance_wait() - the same, but sleep until there is something to do
 * @timeout_ns: nanoseconds, or VRNIC_NO_TIMEOUT
 *
 * Errors: ETIME, EINTR, EIO.
 */
int vrnic_advance_wait(struct vrnic_context *context, int max,
		       uint64_t timeout_ns);

/* ---- endpoints: a peer's context ---- */

/*
 * Errors: EACCES (the secret is wrong), ENOENT (nobody there), EHOSTUNREACH,
 * EADDRINUSE (another RDMA driver has the RoCEv2 port here).
 */
int vrnic_endpoint_create(struct vrnic_context *context,
			  const struct vrnic_address *address,
			  struct vrnic_endpoint **endpoint);

/* By name, on this host. Errors: ENOENT (not there yet), EACCES (another user's). */
int vrnic_endpoint_find(struct vrnic_context *context, const char *name,
			uint32_t task, uint32_t number,
			struct vrnic_endpoint **endpoint);

int vrnic_endpoint_destroy(struct vrnic_endpoint *endpoint);

/* Task number that the peer gave itself; never fails. */
uint32_t vrnic_endpoint_task(const struct vrnic_endpoint *endpoint);

/* ---- counters: how many bytes are still to come (S1) ---- */

enum {
	VRNIC_COUNTER_PEERS = 1 << 0,	/* peers may count it down */
};

/**
 * struct vrnic_error - what failed
 * @count: operations that failed since the counter was set; 0: none
 * @status: enum ibv_wc_status of the first
 * @vendor_err: enum vrnic_vendor_err of the first
 * @opcode: enum vrnic_native_opcode of the first
 * @placed: bytes that it had placed
 * @cookie: struct vrnic_done.cookie of the first
 */
struct vrnic_error {
	uint32_t count;
	uint32_t status;
	uint32_t vendor_err;
	uint32_t opcode;
	uint64_t placed;
	uint64_t cookie;
};

int vrnic_counter_create(struct vrnic_client *client, uint32_t flags,
			 struct vrnic_counter **counter);
int vrnic_counter_destroy(struct vrnic_counter *counter);

/* Number by which peers name the counter: struct vrnic_done.target. Never fails. */
uint32_t vrnic_counter_number(const struct vrnic_counter *counter);

/* Expect @bytes more. Never fails. */
void vrnic_counter_add(struct vrnic_counter *counter, uint64_t bytes);

/* Set the counter and forget its errors; only while nothing is under way. Never fails. */
void vrnic_counter_set(struct vrnic_counter *counter, int64_t bytes);

/* Bytes still to come; below zero, if more came than was expected. One load. */
int64_t vrnic_counter_read(const struct vrnic_counter *counter);

/* What failed; @error may be NULL. Returns the number of failures. */
uint32_t vrnic_counter_error(const struct vrnic_counter *counter,
			     struct vrnic_error *error);

/**
 * vrnic_counter_wait() - sleep until no more than @threshold bytes remain
 * @timeout_ns: nanoseconds; 0: only look; VRNIC_NO_TIMEOUT
 *
 * Errors: EIO (an operation failed: vrnic_counter_error()), ETIME, EINTR,
 * ECANCELED (destroyed by another thread).
 */
int vrnic_counter_wait(struct vrnic_counter *counter, int64_t threshold,
		       uint64_t timeout_ns);

/*
 * For poll(2): an eventfd, readable once the counter fell to zero or failed. Made at the
 * first call. Return: the descriptor, which belongs to the counter, or a
 * negative errno.
 */
int vrnic_counter_fd(struct vrnic_counter *counter);

/* ---- operations ---- */

/**
 * struct vrnic_status - the outcome of an operation, for a callback
 * @status: enum ibv_wc_status; IBV_WC_SUCCESS is 0
 * @vendor_err: enum vrnic_vendor_err
 * @opcode: enum vrnic_native_opcode; of a fence: that of the operation that failed, if
 *	one did
 * @cookie: struct vrnic_done.cookie; of a fence: that of the operation that failed
 * @value: RMW: the old value; others: bytes that were placed
 */
struct vrnic_status {
	uint32_t status;
	uint32_t vendor_err;
	uint32_t opcode;
	uint64_t cookie;
	uint64_t value;
};

typedef void (*vrnic_callback)(struct vrnic_context *context,
			       const struct vrnic_status *status, void *arg);

enum {
	VRNIC_QUEUE = 1 << 0,	/* no room: queue it (inline data is copied) */
};

/**
 * struct vrnic_done - how the program learns the outcome of an operation
 * @local: falls once the local buffer may be reused (put) or is filled (get)
 * @remote: falls once the operation is done at the target
 * @target: vrnic_counter_number() of a counter of the target's; 0: none
 * @flags: VRNIC_QUEUE
 * @callback: called from vrnic_advance() once it is done, also if it failed
 * @arg: for @callback
 * @cookie: repeated in struct vrnic_status and struct vrnic_error
 *
 * The operation adds its bytes to @local and @remote when it is posted (fences,
 * messages and rmw: 1), and the engine takes them away again. The target adds to
 * @target what it expects. A struct vrnic_done argument may be NULL: then only a fence
 * tells the outcome.
 */
struct vrnic_done {
	struct vrnic_counter *local;
	struct vrnic_counter *remote;
	uint32_t target;
	uint32_t flags;
	vrnic_callback callback;
	void *arg;
	uint64_t cookie;
};

/*
 * S1. Any memory of this process, registered or not. The counter, which may
 * serve several, has @length added and falls as bytes arrive.
 *
 * Errors of all operations: EAGAIN (no room in the injection FIFO and not
 * VRNIC_QUEUE: call vrnic_advance()), EMSGSIZE (can never fit), EINVAL, EIO.
 */
int vrnic_read(struct vrnic_endpoint *endpoint, void *local, size_t length,
	       uint64_t remote, uint32_t rkey, struct vrnic_counter *counter);
int vrnic_write(struct vrnic_endpoint *endpoint, const void *local,
		size_t length, uint64_t remote, uint32_t rkey,
		struct vrnic_counter *counter);

/* Registered memory, one descriptor. */
int vrnic_put(struct vrnic_endpoint *endpoint, const void *local,
	      const struct ibv_mr *mr, size_t length, uint64_t remote,
	      uint32_t rkey, const struct vrnic_done *done);
int vrnic_get(struct vrnic_endpoint *endpoint, void *local,
	      const struct ibv_mr *mr, size_t length, uint64_t remote,
	      uint32_t rkey, const struct vrnic_done *done);

/* S2. The data goes into the ring: @data may be reused at once. */
int vrnic_put_inline(struct vrnic_endpoint *endpoint, const void *data,
		     size_t length, uint64_t remote, uint32_t rkey,
		     const struct vrnic_done *done);

/**
 * vrnic_rmw() - read, modify, write one word of the target's memory
 * @op: enum vrnic_rmw_op, possibly with VRNIC_RMW_COMPARE
 * @width: 4 or 8 bytes; @remote is a multiple of it
 * @result: where the old value goes, in @mr; NULL: only to the callback
 *
 * Atomic against all other rmw, verbs atomics, and the target's own atomics.
 */
int vrnic_rmw(struct vrnic_endpoint *endpoint, uint32_t op, uint32_t width,
	      uint64_t remote, uint32_t rkey, uint64_t operand,
	      uint64_t compare, void *result, const struct ibv_mr *mr,
	      const struct vrnic_done *done);

/* ---- messages: into the peer's reception FIFO ---- */

/**
 * struct vrnic_message - a message that arrived
 * @source: number of the sender's context: struct vrnic_address.fifo
 * @task: the sender's task
 * @header: header; valid until the handler returns
 * @header_len: its bytes
 * @data: data; valid until the handler returns
 * @length: its bytes
 */
struct vrnic_message {
	uint32_t source;
	uint32_t task;
	const void *header;
	size_t header_len;
	const void *data;
	size_t length;
};

typedef void (*vrnic_handler)(struct vrnic_context *context,
			      const struct vrnic_message *message, void *arg);

#define VRNIC_DISPATCH_MAX	4096	/* ids 0 to 4095 are the user's */

/* @handler gets the messages with this id; NULL: they are dropped and counted. */
int vrnic_dispatch_set(struct vrnic_context *context, uint32_t id,
		       vrnic_handler handler, void *arg);

/*
 * Header and data together up to VRNIC_MAX_MESSAGE (4096) bytes; both may be
 * reused at once. A full reception FIFO stalls the sender; nothing is lost.
 */
int vrnic_send(struct vrnic_endpoint *endpoint, uint32_t id,
	       const void *header, size_t header_len, const void *data,
	       size_t length, const struct vrnic_done *done);

/* ---- types (S3) ---- */

/**
 * struct vrnic_type_info - what a type is
 * @bytes: data in it
 * @lower: offset of its first byte
 * @upper: offset after its last byte
 * @chunks: contiguous chunks, as vectors are counted out
 * @rows: rows of its metadata
 */
struct vrnic_type_info {
	uint64_t bytes;
	int64_t lower;
	int64_t upper;
	uint64_t chunks;
	uint64_t rows;
};

int vrnic_type_create(struct vrnic_client *client, struct vrnic_type **type);

/* @count blocks of @bytes, the first at @offset, then every @stride. */
int vrnic_type_add_simple(struct vrnic_type *type, uint64_t bytes,
			  int64_t offset, uint64_t count, int64_t stride);

/* The same with a complete type for the block. */
int vrnic_type_add_typed(struct vrnic_type *type,
			 const struct vrnic_type *subtype, int64_t offset,
			 uint64_t count, int64_t stride);

/* No more additions; only now can it be used. EINVAL: it is empty. */
int vrnic_type_complete(struct vrnic_type *type);

int vrnic_type_query(const struct vrnic_type *type,
		     struct vrnic_type_info *info);

/*
 * *length is the room in @buffer, and becomes the bytes needed. ENOSPC: too
 * little room; @buffer may be NULL then. Little-endian, any host reads it.
 */
int vrnic_type_serialize(const struct vrnic_type *type, void *buffer,
			 size_t *length);
int vrnic_type_deserialize(struct vrnic_client *client, const void *buffer,
			   size_t length, struct vrnic_type **type);

/* Transfers under way keep it alive. */
int vrnic_type_destroy(struct vrnic_type *type);

/*
 * @local and @remote are the addresses that the chunks' offsets count from.
 * Both types have the same number of bytes. @mode: enum vrnic_typed_mode;
 * VRNIC_TYPED_SAME with types that differ: EINVAL. If the target's chunks
 * overlap, the last of them in the type's order counts.
 */
int vrnic_put_typed(struct vrnic_endpoint *endpoint, const void *local,
		    const struct ibv_mr *mr, const struct vrnic_type *local_type,
		    uint64_t remote, uint32_t rkey,
		    const struct vrnic_type *remote_type, uint32_t mode,
		    const struct vrnic_done *done);
int vrnic_get_typed(struct vrnic_endpoint *endpoint, void *local,
		    const struct ibv_mr *mr, const struct vrnic_type *local_type,
		    uint64_t remote, uint32_t rkey,
		    const struct vrnic_type *remote_type, uint32_t mode,
		    const struct vrnic_done *done);

/* ---- self-pacing transfers (S4) ---- */

/**
 * struct vrnic_rts - a request to send that arrived; plain data, may be kept
 * @source: the sender's context
 * @task: the sender's task
 * @length: bytes of the message
 * @remote: address of the message
 * @rkey: key of the message
 * @table: address of the sender's table of origin RGET descriptors
 * @table_rkey: key of the table
 * @table_rows: rows in it: portions after the first
 * @id: the sender's number for it
 * @host: the sender's host, as this one tells hosts apart; 0: it is the same
 */
struct vrnic_rts {
	uint32_t source;
	uint32_t task;
	uint64_t length;
	uint64_t remote;
	uint64_t table;
	uint32_t rkey;
	uint32_t table_rkey;
	uint32_t table_rows;
	uint32_t id;
	uint64_t host;
};

typedef void (*vrnic_rts_handler)(struct vrnic_context *context,
				  const struct vrnic_rts *rts,
				  const void *header, size_t header_len,
				  void *arg);

int vrnic_rts_handler_set(struct vrnic_context *context,
			  vrnic_rts_handler handler, void *arg);

/**
 * vrnic_rts_send() - offer a message
 * @local: the message, in @mr, which allows remote read
 * @header: up to 1024 bytes for the peer's handler
 * @done: @remote and @callback tell that the whole message was taken. @target is not used.
 *
 * The message must not change until then. Errors as of all operations, and
 * ENOMEM.
 */
int vrnic_rts_send(struct vrnic_endpoint *endpoint, const void *local,
		   const struct ibv_mr *mr, size_t length, const void *header,
		   size_t header_len, const struct vrnic_done *done);

/**
 * struct vrnic_pace - how an accepted transfer is cut; zero means automatic
 * @portion: bytes of a portion; the last may be shorter
 */
struct vrnic_pace {
	uint64_t portion;
};

/**
 * vrnic_accept() - accept an offered message
 * @endpoint: to the context that offered it
 * @rts: the offer
 * @local: where to, in @mr, which allows remote write
 * @pace: NULL: automatic
 * @done: @local falls with each portion that arrives; @callback after the last
 *
 * From here on the engines of both sides do it: neither process runs.
 * EINVAL: more portions than the sender has room for.
 */
int vrnic_accept(struct vrnic_endpoint *endpoint, const struct vrnic_rts *rts,
		 void *local, const struct ibv_mr *mr,
		 const struct vrnic_pace *pace, const struct vrnic_done *done);

/* Reject an offer: the sender's @done says IBV_WC_REM_OP_ERR. */
int vrnic_reject(struct vrnic_endpoint *endpoint, const struct vrnic_rts *rts);

/* ---- fences (S5) ---- */

/*
 * A fence is done once every operation posted before it is complete at its target: to
 * this endpoint, or to all endpoints of the context. The callback is told the first
 * operation that failed since the last fence, if one did; counters of @done then
 * have an error. A fence costs one descriptor, however many operations come before.
 */
int vrnic_fence(struct vrnic_endpoint *endpoint, const struct vrnic_done *done);
int vrnic_fence_all(struct vrnic_context *context,
		    const struct vrnic_done *done);

/*
 * Post a fence and wait for it, making progress meanwhile. EIO: something
 * before it failed; @status, which may be NULL, says what.
 */
int vrnic_fence_wait(struct vrnic_endpoint *endpoint, uint64_t timeout_ns,
		     struct vrnic_status *status);
int vrnic_fence_all_wait(struct vrnic_context *context, uint64_t timeout_ns,
			 struct vrnic_status *status);

/* ---- for people ---- */

/* Never fail; constant strings. */
const char *vrnic_version(void);
const char *vrnic_vendor_err_str(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif /* LIBVRNIC_H */
