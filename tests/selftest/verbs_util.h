/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What every test of the suite needs: the device under test, buffers with guard
 * zones, a connected pair of queue pairs, and requests written in one line.
 * Nothing here asserts: functions return 0 or a negative errno (or a work
 * completion status where they say so), and the test says what it expected.
 */
#ifndef VERBS_UTIL_H
#define VERBS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "rdma_link.h"

/*
 * Beds with sanitizers are slow: a limit that ends a hang, never a measurement.
 * $VRNIC_WAIT shortens it where many waits are known to be in vain.
 */
#define WAIT_SECONDS	wait_seconds()
int wait_seconds(void);

/**
 * struct patience - waiting for what comes bit by bit, on a machine that may be slow
 * @seen: how far it was
 * @end: it hangs, if that is so then; 0: nobody has looked yet
 */
struct patience {
	unsigned long seen;
	time_t end;
};

/* @progress is how far it is: false if that has not changed for WAIT_SECONDS. */
bool still_patient(struct patience *p, unsigned long progress);

#define DEVICE_FLUSH_GLOBAL	(1ULL << 38)	/* device_cap_flags_ex */
#define DEVICE_FLUSH_PERSISTENT	(1ULL << 39)
#define DEVICE_ATOMIC_WRITE	(1ULL << 40)

#define ACCESS_REMOTE	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define GRH_BYTES	40
#define UD_QKEY		0x11223344

/**
 * struct dev - the device under test: $VRNIC_DEV, or vrnic0
 * @gid_index: $VRNIC_GID, or the first RoCEv2 GID that is not link-local
 */
struct dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr *attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

const char *dev_name(void);
/*
 * From here on dev_name() is the device that VRNIC_PEER_DEV names, and the other
 * way round: so the ends of a test may be on two hosts. Without that variable both
 * are on one device.
 */
void other_side(void);
int dev_open(struct dev *dev);
void dev_close(struct dev *dev);
bool dev_has(const struct dev *dev, uint64_t cap_flags_ex);
/* The same of a device that is not open yet; false if it cannot be opened. */
bool dev_advertises(uint64_t cap_flags_ex);
/* The device once more, as a second process would have it. */
struct ibv_context *dev_open_context(void);

/**
 * struct buf - registered memory between two guard zones
 * @map: the whole mapping; @addr lies in it with a guard on either side
 * @mr: NULL for memory that is not registered
 * @twin: the same memory on another device: buf_twin()
 */
struct buf {
	uint8_t *map;
	size_t map_len;
	uint8_t *addr;
	size_t len;
	struct ibv_mr *mr, *twin;
};

#define GUARD_BYTES	256

int buf_open(struct buf *buf, struct ibv_pd *pd, size_t len, size_t misalign,
	     int access);
/* The same in memory of the caller's choice: shared, huge, a file. */
int buf_wrap(struct buf *buf, struct ibv_pd *pd, void *map, size_t map_len,
	     size_t len, int access);
void buf_close(struct buf *buf);
/* A pattern in which no two neighbouring 8-byte words are alike. */
void buf_fill(struct buf *buf, uint32_t seed);
/*
 * Offset of the first byte in [off, off + len) that differs from what
 * buf_fill(seed) puts at [src, src + len); -1 if there is none.
 */
ssize_t buf_differs(const struct buf *buf, size_t off, size_t len,
		    uint32_t seed, size_t src);
/* Offset of the first byte in [off, off + len) that is not @value, or -1. */
ssize_t buf_is_not(const struct buf *buf, size_t off, size_t len, uint8_t value);
bool buf_guards_intact(const struct buf *buf);

/**
 * struct side - one end of a pair, and the last completions taken from it
 * @peer: the device of the other end; NULL if that is the same
 */
struct side {
	struct dev *dev, *peer;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_ah *ah;
	uint32_t peer_qpn;
	struct ibv_wc wc;	/* last completion of a send request */
	struct ibv_wc rwc;	/* last completion of a receive */
};

/**
 * struct pair_opts - what a pair is made of; 0 means the default in brackets
 * @type: [IBV_QPT_RC]
 * @max_wr: requests in either queue [64]
 * @max_sge: [4]
 * @max_inline: [0]
 * @cqe: completion queue entries [256]
 * @timeout: exponent of the transport timer [17: 0.5 s: seven retries take longer
 *	than the machine may leave one side without a CPU]
 * @retry: [7]; NO_RETRY for none
 * @rnr_retry: [7: for ever]; NO_RETRY for none
 * @rnr_timer: code of min_rnr_timer [12: 0.64 ms; where a timer's interrupt
 *	takes as long as the timer, as on user-mode Linux, a sender that waits
 *	leaves no time to anybody else]
 * @rd_atomic: outstanding reads and atomics [4]
 * @access: of the queue pairs [ACCESS_REMOTE]; NO_ACCESS for none
 * @send_ops: IBV_QP_EX_WITH_*: make the queue pairs with the extended post
 * @srq: side b receives through a shared receive queue
 * @channel: completion queues have a completion channel
 * @sig_all: every request is signaled
 */
struct pair_opts {
	enum ibv_qp_type type;
	uint32_t max_wr, max_sge, max_inline, cqe;
	uint8_t timeout, retry, rnr_retry, rnr_timer, rd_atomic;
	int access;
	uint64_t send_ops;
	bool srq, channel, sig_all;
};

#define NO_RETRY	0xff
#define NO_ACCESS	(1 << 30)

struct pair {
	struct pair_opts opts;
	struct side a, b;
};

struct pair_opts pair_defaults(const struct pair_opts *opts);
int side_open(struct side *side, struct dev *dev, const struct pair_opts *opts,
	      bool srq);
int side_close(struct side *side);
int side_to_init(struct side *side, const struct pair_opts *opts);
int side_to_rtr(struct side *side, const struct pair_opts *opts,
		uint32_t peer_qpn, const union ibv_gid *peer_gid);
int side_to_rts(struct side *side, const struct pair_opts *opts);
int side_connect(struct side *side, const struct pair_opts *opts,
		 uint32_t peer_qpn, const union ibv_gid *peer_gid);
int pair_open(struct pair *pair, struct dev *dev, const struct pair_opts *opts);
int pair_connect(struct pair *pair);
int pair_close(struct pair *pair);

int qp_to(struct ibv_qp *qp, enum ibv_qp_state state);
int qp_state(struct ibv_qp *qp);
/* Wait until the queue pair is in @state: 0, or -ETIMEDOUT. */
int qp_wait(struct ibv_qp *qp, enum ibv_qp_state state);

/**
 * struct request - a send request in the words of a test
 * @local, @loff, @len: local segment; no segment if @local is NULL
 * @remote, @roff: remote memory
 * @raddr, @rkey, @lkey: instead of what @remote and @local say, unless 0
 * @sgl, @num_sge: segments instead of @local
 * @imm: host order
 * @flags: IBV_SEND_* beside IBV_SEND_SIGNALED
 * @unsignaled: no IBV_SEND_SIGNALED
 * @srqn: XRC: number of the SRQ at the target
 * @compare, @value: atomics: value to compare with; to store or to add
 */
struct request {
	enum ibv_wr_opcode op;
	struct buf *local;
	size_t loff, len;
	struct buf *remote;
	size_t roff;
	uint64_t raddr;
	uint32_t rkey, lkey;
	struct ibv_sge *sgl;
	int num_sge;
	uint32_t imm, inv_rkey;
	unsigned int flags;
	bool unsignaled;
	uint64_t wr_id, compare, value;
	struct ibv_mw *mw;
	uint32_t mw_rkey;
	struct ibv_mw_bind_info bind;
	struct ibv_ah *ah;
	uint32_t qpn, qkey, srqn;
};

/* POST(side, .op = ..., ...): 0, or what ibv_post_send returned */
#define POST(side, ...) post_request((side), &(struct request){ __VA_ARGS__ })
/* RUN(side, ...): POST, wait for its completion, give its status */
#define RUN(side, ...) run_request((side), &(struct request){ __VA_ARGS__ })

int post_request(struct side *side, const struct request *req);
int run_request(struct side *side, const struct request *req);

int post_recv(struct side *side, struct buf *buf, size_t off, size_t len,
	      uint64_t wr_id);
int post_recv_sgl(struct side *side, struct ibv_sge *sgl, int num_sge,
		  uint64_t wr_id);

struct ibv_sge sge_of(const struct buf *buf, size_t off, size_t len);
/* The same by the key that @buf has on the device of @side. */
struct ibv_sge sge_at(const struct side *side, const struct buf *buf, size_t off, size_t len);
/* What @buf is registered as on the device of @side. */
const struct ibv_mr *mr_at(const struct side *side, const struct buf *buf);
/* Register @buf on the device of @side as well, unless it is: 0 or a negative errno. */
int buf_twin(struct buf *buf, const struct side *side, int access);

/* One completion within WAIT_SECONDS: 0, -ETIMEDOUT or -EIO. */
int poll_one(struct ibv_cq *cq, struct ibv_wc *wc);
/* The same into side->wc or side->rwc; the completion's status, or as above. */
int wait_send(struct side *side);
int wait_recv(struct side *side);
/* Completions that are in the queue after a while of quiet: 0 is expected. */
int poll_stray(struct ibv_cq *cq);

/* The next asynchronous event, acknowledged: its type, or -ETIMEDOUT. */
int wait_event(struct ibv_context *ctx, struct ibv_async_event *event);
/* Wait for and take one event of a completion channel: 0 or -ETIMEDOUT. */
int wait_channel(struct ibv_comp_channel *channel, struct ibv_cq **cq);
/* True if @fd becomes readable within @ms milliseconds. */
bool readable(int fd, int ms);

/* A statistic of the device, or -1 if there is none of the name. */
long long statistic(const char *name);
/* The same without a rest before it: the core may have read it earlier in this jiffy. */
long long kept_statistic(const char *name);

/*
 * @fn in a child process, which is killed if it takes longer than WAIT_SECONDS, and left
 * alone if the signal does not end it. Return: the result of @fn, or -ETIMEDOUT.
 */
int run_child(int (*fn)(void *arg), void *arg);

/* Bytes that this process has pinned, or -1. */
long pinned_bytes(void);
/* From now on RLIMIT_MEMLOCK holds for this process, also for root's: 0 or -errno. */
int obey_memlock(void);
/* It may pin @more bytes than now: 0 or -errno. */
int may_pin(long more);

/*
 * A dma-buf of @len bytes of shared memory, whose own file @memfd is. Return: its file, or -errno;
 * -ENOENT: the kernel has no udmabuf that maps memory for the kernel.
 */
int udmabuf_open(size_t len, int *memfd);
/* The same of huge pages, of which there may be none: -ENOMEM. */
int udmabuf_huge(size_t len, int *memfd);
/* Another dma-buf, of a part of @memfd. */
int udmabuf_create(int memfd, size_t offset, size_t len);

/* All of @text into the file at @path, which exists: 0 or a negative errno. */
int write_file(const char *path, const char *text);

/* A parameter of the driver, Y and N as 1 and 0, or a negative errno. */
long module_param(const char *name);
/* To be so from now on: 0 or a negative errno. */
int set_module_param(const char *name, long value);

/**
 * struct held_param - a parameter of the driver that one process at a time has changed
 * @lock: the parameter's file, which is locked while anybody holds the parameter
 * @tell: pipe to the keeper
 * @keeper: process that restores the parameter when it is told to, or when this process has ended;
 *	0: none
 *
 * So the parameter is restored also if a step of the test fails, and if the test is killed.
 */
struct held_param {
	int lock, tell;
	pid_t keeper;
};

/*
 * Set a parameter until param_release(), or the end of this process. Wait until another test's
 * keeper has restored it. Hold it before anything is opened: the keeper is a fork.
 */
int param_hold(struct held_param *held, const char *name, long value);
/* 0 if the parameter is as it was before param_hold(), or was not held. */
int param_release(struct held_param *held);

/* Peers are on another host, or reached as if they were: what one does, the other learns later. */
bool over_a_wire(void);

/**
 * struct bed - a device, a connected pair on it and two buffers: most tests
 * @peer: the device of side b and of @dst, if other_side() is another one and
 *	$VRNIC_BEDS_APART says so: native tests have beds of one device. Either side
 *	can use @src and @dst; what a test registers for a side, it registers with the
 *	protection domain of this side.
 */
struct bed {
	struct dev dev, peer;
	struct pair pair;
	struct side *a, *b;
	struct buf src, dst;
};

int bed_open(struct bed *bed, size_t len, const struct pair_opts *opts);
/* 0 if everything could be destroyed and the guards are intact. */
int bed_close(struct bed *bed);
/* One more pair with its sides where those of @bed are; pair_connect() connects it. */
int bed_pair_open(struct bed *bed, struct pair *pair, const struct pair_opts *opts);

#define WIRE_DEVICE	"vrnic_wire"

/**
 * struct wire_bed - a bed whose two sides send packets to each other
 * @bed: on WIRE_DEVICE, which is on lo, in a network namespace of the process's own: so
 *	nobody else has the port, and all that is sent comes to that device
 * @forced: force_roce
 */
struct wire_bed {
	struct bed bed;
	struct held_param forced;
};

/* A namespace with WIRE_DEVICE on lo, which is dev_name() from then on: 0 or -errno. */
int wire_device(void);
int wire_bed_open(struct wire_bed *wire, size_t len, const struct pair_opts *opts);
int wire_bed_close(struct wire_bed *wire);

#endif /* VERBS_UTIL_H */
