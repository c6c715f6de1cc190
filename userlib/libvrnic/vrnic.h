/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libvrnic: operations that verbs lack. libvrnic(7) is the introduction, and each function has a
 * man page. Unless that page says otherwise, a function returns 0 or a negative errno.
 *
 *	client > context > endpoint	(a device, a pair of rings, a peer); counters of a client
 *
 * <vrnic_type.h> adds typed transfers, <vrnic_rts.h> offers of large messages, and <vrnic_group.h>
 * groups of counters and of contexts.
 *
 * Structs may grow: each new member has a bit in comp_mask, which says that it is there. The
 * program sets the bits of the new members that it uses, also in a struct that a function fills in.
 * A function that finds an unknown bit returns -E2BIG. Zero is the default of all members.
 */
#ifndef LIBVRNIC_H
#define LIBVRNIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <infiniband/verbs.h>
#include <rdma/vrnic-abi.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vrnic_client;
struct vrnic_context;
struct vrnic_endpoint;
struct vrnic_counter;

#define VRNIC_NO_TIMEOUT	UINT64_MAX	/* for all timeouts, which are in nanoseconds */
#define VRNIC_DISPATCH_MAX	4096		/* ids of messages are smaller */

enum vrnic_flags {
	VRNIC_CONTEXT_SHARED	= 1 << 0,	/* context: threads share it, every call locks */
	VRNIC_CONTEXT_OPEN	= 1 << 1,	/* context: other users find it by name */
	VRNIC_CONTEXT_DEFER	= 1 << 2,	/* context: all operations are VRNIC_DEFER */
	VRNIC_COUNTER_PEERS	= 1 << 0,	/* counter: peers may count it down */
	VRNIC_QUEUE		= 1 << 0,	/* operation: queue it if there is no room */
	VRNIC_DEFER		= 1 << 1,	/* operation: a thread of the kernel moves data */
	VRNIC_DONE_LOCAL_CALLBACK = 1 << 0,	/* comp_mask: vrnic_done has local_callback */
	VRNIC_DONE_AFTER	= 1 << 1,	/* comp_mask: it has after and after_left */
};

struct vrnic_context_attr {	/* what a context is to be */
	uint64_t comp_mask;
	const char *name;	/* client name to be found by on this host, up to 31 bytes */
	uint32_t task;		/* number of this process within the client */
	uint32_t number;	/* number of this context within the task */
	uint32_t inject_slots;	/* of 64 bytes: 2 to 65536, default 256 */
	uint32_t receive_slots;	/* of 64 bytes: 132 to 65536, default 512 */
	uint32_t flags;		/* VRNIC_CONTEXT_* */
};

struct vrnic_peer {		/* who sent a message or offer; plain data that does not grow */
	uint64_t host;		/* this host's number for the other host's address; 0: this host */
	uint32_t fifo;		/* number of the peer's context on its host */
	uint32_t task;		/* number of the peer's task, as the peer claims */
};

struct vrnic_error {		/* what a counter knows of the first failure */
	uint64_t comp_mask;
	uint64_t placed;	/* bytes that the operation had placed */
	uint64_t cookie;	/* of its struct vrnic_done */
	uint32_t count;		/* failures since the counter was set; 0: none */
	uint32_t status;	/* enum ibv_wc_status */
	uint32_t vendor_err;	/* enum vrnic_vendor_err */
	uint32_t opcode;	/* enum vrnic_native_opcode */
};

struct vrnic_status {		/* outcome of an operation; fence: of the first one that failed */
	uint64_t comp_mask;
	uint64_t cookie;	/* of its struct vrnic_done */
	uint64_t value;		/* rmw: the old value; others: bytes that were placed */
	uint32_t status;	/* enum ibv_wc_status; IBV_WC_SUCCESS is 0 */
	uint32_t vendor_err;	/* enum vrnic_vendor_err */
	uint32_t opcode;	/* enum vrnic_native_opcode */
};

struct vrnic_message {		/* a message; header and data are valid until the handler returns */
	uint64_t comp_mask;
	struct vrnic_peer peer;
	const void *header;
	size_t header_len;
	const void *data;
	size_t length;
};

typedef void (*vrnic_callback)(struct vrnic_context *context, const struct vrnic_status *status,
			       void *arg);
typedef void (*vrnic_handler)(struct vrnic_context *context, const struct vrnic_message *message,
			      void *arg);
struct vrnic_done {		/* how the program learns the outcome; NULL: only by a fence */
	uint64_t comp_mask;
	struct vrnic_counter *local;	/* falls once the local buffer is free, or filled */
	struct vrnic_counter *remote;	/* falls once the operation is done at the target */
	vrnic_callback callback;	/* called once it is done at the target, or has failed */
	void *arg;			/* for the callbacks, which vrnic_advance() makes */
	uint64_t cookie;		/* vrnic_status and vrnic_error repeat it */
	uint32_t target;		/* number of a counter of the target process that falls */
	uint32_t flags;			/* VRNIC_QUEUE, VRNIC_DEFER */
	vrnic_callback local_callback;	/* called once the local buffer is free, or filled */
	struct vrnic_counter *after;	/* start once no more than after_left remains in it */
	uint64_t after_left;		/* at most INT64_MAX */
};

struct vrnic_wr {		/* put, get, read, write, put_inline; put_inlinev has no local */
	uint64_t comp_mask;
	void *local;		/* get and read write to it, the others only read it */
	const struct ibv_mr *mr;	/* of local; only put and get look at it */
	size_t length;
	uint64_t remote;
	uint32_t rkey;
};

struct vrnic_rmw_wr {
	uint64_t comp_mask;
	uint64_t remote;	/* a multiple of width */
	uint64_t operand;
	uint64_t compare;
	void *result;		/* for the old value, in mr; NULL: only the callback gets it */
	const struct ibv_mr *mr;
	uint32_t rkey;
	uint32_t width;		/* 4 or 8 bytes */
	uint32_t op;		/* enum vrnic_rmw_op, possibly with VRNIC_RMW_COMPARE */
};

enum vrnic_send_mask {
	VRNIC_SEND_MR = 1 << 0,		/* vrnic_send_wr.comp_mask: there is mr */
};

#define VRNIC_SEND_MAX	(1U << 26)	/* most bytes of data of a message with mr */

struct vrnic_send_wr {		/* up to VRNIC_MAX_MESSAGE bytes; sendv has no data here */
	uint64_t comp_mask;
	const void *header;
	size_t header_len;
	const void *data;
	size_t length;
	uint32_t id;		/* of the peer's handler */
	const struct ibv_mr *mr;	/* of data, allows remote read; or not there */
};

int vrnic_client_open(const char *device, struct vrnic_client **client);
int vrnic_client_from_verbs(struct ibv_context *verbs, struct ibv_pd *pd,
			    struct vrnic_client **client);
int vrnic_client_close(struct vrnic_client *client);
struct ibv_context *vrnic_client_verbs(struct vrnic_client *client);
struct ibv_pd *vrnic_client_pd(struct vrnic_client *client);

int vrnic_context_create(struct vrnic_client *client, const struct vrnic_context_attr *attr,
			 struct vrnic_context **context);
int vrnic_context_destroy(struct vrnic_context *context);
void vrnic_context_address(const struct vrnic_context *context, struct vrnic_address *address);
int vrnic_context_fd(const struct vrnic_context *context);
int vrnic_context_arm(struct vrnic_context *context);

int vrnic_advance(struct vrnic_context *context, int max);
int vrnic_advance_try(struct vrnic_context *context, int max);
int vrnic_advance_wait(struct vrnic_context *context, int max, uint64_t timeout_ns);
int vrnic_dispatch_set(struct vrnic_context *context, uint32_t id, vrnic_handler handler,
		       void *arg);

int vrnic_endpoint_create(struct vrnic_context *context, const struct vrnic_address *address,
			  struct vrnic_endpoint **endpoint);
int vrnic_endpoint_find(struct vrnic_context *context, const char *name, uint32_t task,
			uint32_t number, struct vrnic_endpoint **endpoint);
int vrnic_endpoint_of(struct vrnic_context *context, const struct vrnic_peer *peer,
		      struct vrnic_endpoint **endpoint);
void vrnic_endpoint_peer(const struct vrnic_endpoint *endpoint, struct vrnic_peer *peer);
int vrnic_endpoint_destroy(struct vrnic_endpoint *endpoint);

int vrnic_counter_create(struct vrnic_client *client, uint32_t flags,
			 struct vrnic_counter **counter);
int vrnic_counter_destroy(struct vrnic_counter *counter);
uint32_t vrnic_counter_number(const struct vrnic_counter *counter);
void vrnic_counter_add(struct vrnic_counter *counter, uint64_t bytes);
void vrnic_counter_set(struct vrnic_counter *counter, int64_t bytes);
int64_t vrnic_counter_read(const struct vrnic_counter *counter);
int vrnic_counter_error(const struct vrnic_counter *counter, struct vrnic_error *error);
int vrnic_counter_wait(struct vrnic_counter *counter, int64_t threshold, uint64_t timeout_ns);
int vrnic_counter_fd(struct vrnic_counter *counter);

int vrnic_read(struct vrnic_endpoint *ep, const struct vrnic_wr *wr, const struct vrnic_done *done);
int vrnic_write(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		const struct vrnic_done *done);
int vrnic_put(struct vrnic_endpoint *ep, const struct vrnic_wr *wr, const struct vrnic_done *done);
int vrnic_get(struct vrnic_endpoint *ep, const struct vrnic_wr *wr, const struct vrnic_done *done);
int vrnic_put_inline(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		     const struct vrnic_done *done);
int vrnic_put_inlinev(struct vrnic_endpoint *ep, const struct vrnic_wr *wr,
		      const struct iovec *iov, int iovcnt, const struct vrnic_done *done);
int vrnic_rmw(struct vrnic_endpoint *ep, const struct vrnic_rmw_wr *wr,
	      const struct vrnic_done *done);
int vrnic_send(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
	       const struct vrnic_done *done);
int vrnic_sendv(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		const struct iovec *iov, int iovcnt, const struct vrnic_done *done);
int vrnic_fence(struct vrnic_endpoint *ep, const struct vrnic_done *done);
int vrnic_fence_all(struct vrnic_context *context, const struct vrnic_done *done);
int vrnic_fence_wait(struct vrnic_endpoint *ep, uint64_t timeout_ns, struct vrnic_status *status);
int vrnic_fence_all_wait(struct vrnic_context *context, uint64_t timeout_ns,
			 struct vrnic_status *status);
int vrnic_fence_begin(struct vrnic_context *context);
int vrnic_fence_end(struct vrnic_context *context);

const char *vrnic_version(void);
const char *vrnic_vendor_err_str(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif /* LIBVRNIC_H */
