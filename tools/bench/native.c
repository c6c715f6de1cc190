// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * native [--wire] [--few] [--seconds S]: what libvrnic's operations cost, beside what one
 * would use instead, in the same two processes and with the same memory: verbs,
 * process_vm_readv(2), packing by hand. --wire: a few of them only, and the peer's
 * device is $VRNIC_PEER_DEV. --few: those that tools/bench/instructions counts.
 *
 * Two processes: this one starts all operations; its peer owns the memory that
 * they go to, and sleeps, except where it offers a message to be paced. Each
 * operation is waited for where it says so, otherwise they are posted as a
 * stream of which at most WINDOW are under way. Prints "name size quantity
 * value" lines: us for one operation, Mops (million per second), MBps (10^6 bytes).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <vrnic.h>
#include <vrnic_rts.h>
#include <vrnic_type.h>

#define WINDOW		64
#define BUFFER		(64ul << 20)
#define SKEW		(37 * 4096)	/* as in limits.c */
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define OFFER		1	/* message: offer the buffer */

static double seconds = 0.3;

/* What a process tells the other one. */
struct introduction {
	uint64_t addr;
	struct vrnic_address address;
	uint32_t rkey;
	uint32_t on_demand_rkey;
	uint32_t qpn;
	union ibv_gid gid;
	pid_t pid;
};

struct side {
	struct vrnic_client *client;
	struct vrnic_context *context;
	struct vrnic_endpoint *peer;
	struct vrnic_counter *counter;
	char *buf;
	struct ibv_mr *mr;
	struct ibv_mr *on_demand;	/* of the same memory; NULL: this kernel cannot */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct introduction own, other;
};

static void die(const char *what)
{
	fprintf(stderr, "native: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* For calls that return a negative errno. */
static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	errno = -ret;
	die(what);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* ---- two processes that know each other ---- */

static char *map(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	memset(p, 0x5a, bytes);
	return p;
}

static void open_native(struct side *s, const char *device)
{
	struct vrnic_context_attr attr = { .inject_slots = 4096 };

	check(vrnic_client_open(device, &s->client), "vrnic_client_open");
	check(vrnic_context_create(s->client, &attr, &s->context),
	      "vrnic_context_create");
	check(vrnic_counter_create(s->client, 0, &s->counter),
	      "vrnic_counter_create");
	vrnic_context_address(s->context, &s->own.address);
}

static void open_memory(struct side *s, size_t skew)
{
	s->buf = map(BUFFER + skew) + skew;
	s->mr = ibv_reg_mr(vrnic_client_pd(s->client), s->buf, BUFFER, ACCESS);
	if (!s->mr)
		die("ibv_reg_mr");
	s->own.addr = (uintptr_t)s->buf;
	s->own.rkey = s->mr->rkey;
	s->on_demand = ibv_reg_mr(vrnic_client_pd(s->client), s->buf, BUFFER,
				  ACCESS | IBV_ACCESS_ON_DEMAND);
	if (s->on_demand)
		s->own.on_demand_rkey = s->on_demand->rkey;
	else if (errno != EOPNOTSUPP)
		die("ibv_reg_mr, on demand");
}

static void open_verbs(struct side *s)
{
	struct ibv_context *verbs = vrnic_client_verbs(s->client);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2 * WINDOW, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = 64 },
	};

	s->cq = ibv_create_cq(verbs, 2 * WINDOW, NULL, NULL, 0);
	if (!s->cq)
		die("ibv_create_cq");
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = ibv_create_qp(vrnic_client_pd(s->client), &init);
	if (!s->qp || ibv_query_gid(verbs, 1, 0, &s->own.gid))
		die("ibv_create_qp");
	s->own.qpn = s->qp->qp_num;
	s->own.pid = getpid();
}

static void connect_verbs(struct side *s)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = ACCESS,
	};

	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	if (ibv_query_port(vrnic_client_verbs(s->client), 1, &port))
		die("ibv_query_port");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = port.active_mtu,
		.dest_qp_num = s->other.qpn, .max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1, .is_global = 1,
			     .grh = { .dgid = s->other.gid, .hop_limit = 1 } },
	};
	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 16,
	};
	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

static void meet(struct side *s, int sock)
{
	if (write(sock, &s->own, sizeof(s->own)) !=
		    (ssize_t)sizeof(s->own) ||
	    read(sock, &s->other, sizeof(s->other)) != sizeof(s->other))
		die("the other process is gone");
	check(vrnic_endpoint_create(s->context, &s->other.address, &s->peer),
	      "vrnic_endpoint_create");
	connect_verbs(s);
}

static void side_open(struct side *s, const char *device, int sock, size_t skew)
{
	open_native(s, device);
	open_memory(s, skew);
	open_verbs(s);
	meet(s, sock);
}

static void on_offer(struct vrnic_context *context,
		     const struct vrnic_message *message, void *arg)
{
	const size_t *length = message->data;
	struct side *s = arg;

	(void)context;
	check(vrnic_rts_send(s->peer, &(struct vrnic_rts_wr){
			.local = s->buf, .mr = s->mr, .length = *length }, NULL),
	      "vrnic_rts_send");
}

static void run_peer(const char *device, int sock)
{
	struct side s = {};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open(&s, device, sock, 0);
	check(vrnic_dispatch_set(s.context, OFFER, on_offer, &s),
	      "vrnic_dispatch_set");
	for (;;)
		check(vrnic_advance_wait(s.context, 16, VRNIC_NO_TIMEOUT),
		      "vrnic_advance_wait");
}

/* ---- timing ---- */

struct job {
	struct side *s;
	size_t size;
	struct vrnic_type *type;
	unsigned int chunks;
	bool on_demand;
};

typedef void (*operation)(struct job *job);

/* Nanoseconds per call, by doubling the count until it takes @least seconds. */
static double time_per_call(operation op, struct job *job, double least)
{
	uint64_t count = 1, i, start, ns;

	for (;;) {
		start = now_ns();
		for (i = 0; i < count; i++)
			op(job);
		ns = now_ns() - start;
		if (ns >= least * 1e9)
			return (double)ns / count;
		count *= ns < least * 1e8 ? 4 : 2;
	}
}

static void print(const char *name, size_t size, const char *quantity,
		  double value)
{
	printf("%s\t%zu\t%s\t%.6g\n", name, size, quantity, value);
	fflush(stdout);
}

static void measure_us(const char *name, struct job *job, operation op)
{
	print(name, job->size, "us", time_per_call(op, job, seconds) / 1000);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

/* struct rival - one of those that are compared; @op does @n operations */
struct rival {
	const char *name;
	operation op;
	unsigned int n;
};

#define RIVALS	4
#define TURNS	9

static void print_rival(const struct rival *r, size_t size, double ns)
{
	if (r->n == 1) {
		print(r->name, size, "us", ns / 1000);
		return;
	}
	print(r->name, size, "Mops", 1000 * r->n / ns);
	print(r->name, size, "MBps", size * 1000.0 * r->n / ns);
}

/*
 * By turns, and of each the median: what else the machine's host does changes from
 * second to second, and is to meet all of them alike.
 */
static void measure_rivals(struct job *job, const struct rival *r, unsigned int n)
{
	double ns[RIVALS][TURNS];
	unsigned int i, turn;

	for (turn = 0; turn < TURNS; turn++)
		for (i = 0; i < n; i++)
			ns[i][turn] = time_per_call(r[i].op, job, seconds / TURNS);
	for (i = 0; i < n; i++)
		print_rival(&r[i], job->size, median(ns[i], TURNS));
}

/* ---- operations ---- */

static void wait_for(struct side *s)
{
	if (vrnic_counter_read(s->counter) > 0 || vrnic_counter_error(s->counter, NULL))
		check(vrnic_counter_wait(s->counter, 0, VRNIC_NO_TIMEOUT),
		      "an operation failed");
}

/* The ring is full: have it run. */
#define POST(s, call)							\
	do {								\
		int __ret;						\
									\
		while ((__ret = (call)) == -EAGAIN)			\
			vrnic_advance((s)->context, 0);			\
		check(__ret, #call);					\
	} while (0)

/* From the start of this process's memory to the start of the peer's, or back. */
static struct vrnic_wr wr_of(const struct job *j)
{
	return (struct vrnic_wr){
		.local = j->s->buf,
		.mr = j->s->mr,
		.length = j->size,
		.remote = j->s->other.addr,
		.rkey = j->s->other.rkey,
	};
}

static struct vrnic_done done_of(const struct job *j)
{
	return (struct vrnic_done){ .local = j->s->counter };
}

static void post_put(struct job *j, const struct vrnic_done *done)
{
	struct vrnic_wr wr = wr_of(j);

	POST(j->s, vrnic_put(j->s->peer, &wr, done));
}

static void op_put(struct job *j)
{
	struct vrnic_done done = done_of(j);

	post_put(j, &done);
	wait_for(j->s);
}

/* Only the last is waited for, as the stream of WRITEs does it: they are in order. */
static void op_put_stream(struct job *j)
{
	for (int i = 1; i < WINDOW; i++)
		post_put(j, NULL);
	op_put(j);
}

static void op_get(struct job *j)
{
	struct vrnic_done done = done_of(j);
	struct vrnic_wr wr = wr_of(j);

	POST(j->s, vrnic_get(j->s->peer, &wr, &done));
	wait_for(j->s);
}

static void op_get_stream(struct job *j)
{
	struct vrnic_wr wr = wr_of(j);

	for (int i = 1; i < WINDOW; i++)
		POST(j->s, vrnic_get(j->s->peer, &wr, NULL));
	op_get(j);
}

static void op_put_inline(struct job *j)
{
	struct vrnic_done done = done_of(j);
	struct vrnic_wr wr = wr_of(j);

	POST(j->s, vrnic_put_inline(j->s->peer, &wr, &done));
	wait_for(j->s);
}

static void op_read(struct job *j)
{
	struct vrnic_done done = done_of(j);
	struct vrnic_wr wr = wr_of(j);

	POST(j->s, vrnic_read(j->s->peer, &wr, &done));
	wait_for(j->s);
}

static void op_write(struct job *j)
{
	struct vrnic_done done = done_of(j);
	struct vrnic_wr wr = wr_of(j);

	POST(j->s, vrnic_write(j->s->peer, &wr, &done));
	wait_for(j->s);
}

static uint32_t lkey_of(const struct job *j)
{
	return j->on_demand ? j->s->on_demand->lkey : j->s->mr->lkey;
}

static uint32_t rkey_of(const struct job *j)
{
	return j->on_demand ? j->s->other.on_demand_rkey : j->s->other.rkey;
}

static void post_verbs(struct job *j, enum ibv_wr_opcode opcode, unsigned int n,
		       size_t stride)
{
	struct ibv_sge sge[WINDOW];
	struct ibv_send_wr wr[WINDOW], *bad;
	struct side *s = j->s;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)s->buf + i * stride,
			.length = j->size, .lkey = lkey_of(j),
		};
		wr[i] = (struct ibv_send_wr) {
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i], .num_sge = 1, .opcode = opcode,
			.send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = s->other.addr + i * stride,
				     .rkey = rkey_of(j) },
		};
	}
	if (ibv_post_send(s->qp, wr, &bad))
		die("ibv_post_send");
	while (!ibv_poll_cq(s->cq, 1, &wc))
		;
	if (wc.status) {
		fprintf(stderr, "native: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void op_verbs_write(struct job *j)
{
	post_verbs(j, IBV_WR_RDMA_WRITE, 1, 0);
}

/* As a stream of puts: a call for each, the last one is waited for. */
static void verbs_stream(struct job *j, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)j->s->buf, .length = j->size,
		.lkey = lkey_of(j),
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { .remote_addr = j->s->other.addr,
			     .rkey = rkey_of(j) },
	};

	for (int i = 1; i < WINDOW; i++)
		if (ibv_post_send(j->s->qp, &wr, &bad))
			die("ibv_post_send");
	post_verbs(j, opcode, 1, 0);
}

static void op_verbs_write_stream(struct job *j)
{
	verbs_stream(j, IBV_WR_RDMA_WRITE);
}

static void op_on_demand_stream(struct job *j)
{
	j->on_demand = true;
	verbs_stream(j, IBV_WR_RDMA_WRITE);
	j->on_demand = false;
}

static void op_verbs_read(struct job *j)
{
	post_verbs(j, IBV_WR_RDMA_READ, 1, 0);
}

static void op_verbs_read_stream(struct job *j)
{
	verbs_stream(j, IBV_WR_RDMA_READ);
}

static void op_vm_readv(struct job *j)
{
	struct iovec local = { j->s->buf, j->size };
	struct iovec remote = { (void *)(uintptr_t)j->s->other.addr, j->size };

	if (process_vm_readv(j->s->other.pid, &local, 1, &remote, 1, 0) !=
	    (ssize_t)j->size)
		die("process_vm_readv");
}

static void op_vm_writev(struct job *j)
{
	struct iovec local = { j->s->buf, j->size };
	struct iovec remote = { (void *)(uintptr_t)j->s->other.addr, j->size };

	if (process_vm_writev(j->s->other.pid, &local, 1, &remote, 1, 0) !=
	    (ssize_t)j->size)
		die("process_vm_writev");
}

/* ---- typed: every other chunk of the memory, on both sides ---- */

static void post_typed(struct job *j, const struct vrnic_type *remote_type)
{
	struct vrnic_done done = done_of(j);
	struct vrnic_typed_wr wr = {
		.local = j->s->buf,
		.mr = j->s->mr,
		.local_type = j->type,
		.remote = j->s->other.addr,
		.rkey = j->s->other.rkey,
		.remote_type = remote_type,
		.mode = VRNIC_TYPED_AUTO,
	};

	POST(j->s, vrnic_put_typed(j->s->peer, &wr, &done));
	wait_for(j->s);
}

static void op_typed(struct job *j)
{
	post_typed(j, j->type);
}

/* Types that differ: from every other chunk into every third one. */
static struct vrnic_type *third;

static void op_typed_differ(struct job *j)
{
	post_typed(j, third);
}

/*
 * The unpacking is done here, on memory of this process's: without the message
 * that would have to tell the peer, which favours this way.
 */
static void op_pack(struct job *j)
{
	static char packed[1 << 20], landed[1 << 20];
	static struct ibv_mr *mr;
	size_t bytes = j->size * j->chunks;
	struct vrnic_done done = done_of(j);
	struct vrnic_wr wr = wr_of(j);
	char *from = j->s->buf;

	if (!mr)
		mr = ibv_reg_mr(vrnic_client_pd(j->s->client), packed,
				sizeof(packed), ACCESS);
	for (size_t i = 0; i < j->chunks; i++)
		memcpy(packed + i * j->size, from + 2 * i * j->size, j->size);
	wr.local = packed;
	wr.mr = mr;
	wr.length = bytes;
	POST(j->s, vrnic_put(j->s->peer, &wr, &done));
	wait_for(j->s);
	for (size_t i = 0; i < j->chunks; i++)
		memcpy(from + (2 * i + 1) * j->size, landed + i * j->size,
		       j->size);
}

static void op_chunk_writes(struct job *j)
{
	for (unsigned int i = 0; i < j->chunks; i += WINDOW)
		post_verbs(j, IBV_WR_RDMA_WRITE, WINDOW, 2 * j->size);
}

static struct vrnic_type *vector(struct side *s, size_t bytes,
				 unsigned int count, size_t stride)
{
	struct vrnic_type *type;

	check(vrnic_type_create(s->client, &type), "vrnic_type_create");
	check(vrnic_type_add_simple(type, bytes, 0, count, stride),
	      "vrnic_type_add_simple");
	check(vrnic_type_complete(type), "vrnic_type_complete");
	return type;
}

static void measure_typed(struct side *s, size_t size, unsigned int chunks)
{
	struct job j = { .s = s, .size = size, .chunks = chunks };

	j.type = vector(s, size, chunks, 2 * size);
	third = vector(s, size, chunks, 3 * size);
	measure_us("typed_put", &j, op_typed);
	measure_us("typed_put_differ", &j, op_typed_differ);
	measure_us("pack_put_unpack", &j, op_pack);
	measure_us("write_per_chunk", &j, op_chunk_writes);
	check(vrnic_type_destroy(j.type), "vrnic_type_destroy");
	check(vrnic_type_destroy(third), "vrnic_type_destroy");
}

/* ---- fences ---- */

/* What is measured behind other puts: a fence, or one more put in its place. */
typedef void (*last)(struct job *job);

static void last_fence(struct job *j)
{
	POST(j->s, vrnic_fence(j->s->peer, &(struct vrnic_done){
				.local = j->s->counter }));
	wait_for(j->s);
}

/* Behind @puts that nobody waited for; by then they have been executed. */
static double ns_behind(struct job *j, unsigned int puts, last run)
{
	uint64_t start;

	for (unsigned int i = 0; i < puts; i++)
		post_put(j, i + 1 < puts ? NULL :
			 &(struct vrnic_done){ .local = j->s->counter });
	wait_for(j->s);
	start = now_ns();
	run(j);
	return now_ns() - start;
}

#define FENCES 51

/*
 * A fence and a put in the same place, by turns. Behind 10,000 puts either finds
 * caches colder than behind one, and timer ticks have come in between: what of
 * its cost is not that of the place is the fence's.
 */
static void measure_fences(struct side *s)
{
	static const unsigned int counts[] = { 1, 100, 10000 };
	struct job j = { .s = s, .size = 8 };
	double fence[FENCES], put[FENCES];
	unsigned int c;
	int i;

	for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		for (i = 0; i < FENCES; i++) {
			fence[i] = ns_behind(&j, counts[c], last_fence);
			put[i] = ns_behind(&j, counts[c], op_put);
		}
		print("fence", counts[c], "us", median(fence, FENCES) / 1000);
		print("put_behind", counts[c], "us", median(put, FENCES) / 1000);
	}
}

static void op_put_fence(struct job *j)
{
	post_put(j, NULL);
	last_fence(j);
}

/* ---- paced ---- */

struct arrival {
	struct side *s;
	bool begun, done;
};

static void on_done(struct vrnic_context *context,
		    const struct vrnic_status *status, void *arg)
{
	struct arrival *a = arg;

	(void)context;
	if (status->status) {
		fprintf(stderr, "native: a paced transfer failed: status %u\n",
			status->status);
		exit(1);
	}
	a->done = true;
}

static void on_rts(struct vrnic_context *context, const struct vrnic_rts *rts,
		   const void *header, size_t header_len, void *arg)
{
	struct arrival *a = arg;

	(void)context, (void)header, (void)header_len;
	check(vrnic_accept(a->s->peer, rts,
			   &(struct vrnic_accept_wr){ .local = a->s->buf, .mr = a->s->mr },
			   &(struct vrnic_done){ .callback = on_done, .arg = a }),
	      "vrnic_accept");
}

static void op_paced(struct job *j)
{
	struct arrival a = { .s = j->s };
	struct vrnic_send_wr wr = {
		.data = &j->size,
		.length = sizeof(j->size),
		.id = OFFER,
	};

	check(vrnic_rts_handler_set(j->s->context, on_rts, &a),
	      "vrnic_rts_handler_set");
	check(vrnic_send(j->s->peer, &wr, NULL), "vrnic_send");
	while (!a.done)
		check(vrnic_advance_wait(j->s->context, 16, VRNIC_NO_TIMEOUT),
		      "vrnic_advance_wait");
}

/* ---- computing while data move ---- */

static uint64_t steps;	/* of a computation, which need no memory */

static void op_compute(struct job *j)
{
	uint64_t i, x = j->size;

	for (i = 0; i < steps; i++)
		__asm__ volatile("imul $0x5851f42d, %0, %0" : "+r" (x));
}

static void post_deferred(struct job *j)
{
	struct vrnic_done done = done_of(j);

	done.flags = VRNIC_DEFER;
	post_put(j, &done);
}

static void op_deferred(struct job *j)
{
	post_deferred(j);
	wait_for(j->s);
}

static void op_overlapped(struct job *j)
{
	post_deferred(j);
	op_compute(j);
	wait_for(j->s);
}

/* A computation that takes as long as the transfer: then there is most to gain, and to lose. */
static void measure_overlap(struct side *s)
{
	static const struct rival all[] = {
		{ "deferred", op_deferred, 1 },
		{ "computing", op_compute, 1 },
		{ "overlapped", op_overlapped, 1 },
	};
	struct job j = { .s = s, .size = BUFFER };

	steps = 1 << 20;
	steps *= time_per_call(op_deferred, &j, seconds) /
		 time_per_call(op_compute, &j, seconds);
	measure_rivals(&j, all, 3);
}

/* ---- all ---- */

static const struct rival singles[] = {
	{ "put", op_put, 1 },
	{ "get", op_get, 1 },
	{ "verbs_write", op_verbs_write, 1 },
	{ "put_inline", op_put_inline, 1 },	/* last: only what fits the ring */
};

static const struct rival streams[] = {
	{ "put", op_put_stream, WINDOW },
	{ "get", op_get_stream, WINDOW },
	{ "verbs_write", op_verbs_write_stream, WINDOW },
};

static const struct rival unregistered[] = {
	{ "read", op_read, 1 },
	{ "vm_readv", op_vm_readv, 1 },
	{ "write", op_write, 1 },
	{ "vm_writev", op_vm_writev, 1 },
};

static void measure_transfers(struct side *s)
{
	static const size_t sizes[] = { 8, 64, 4096, 65536, 1 << 20, 4 << 20 };
	struct job j = { .s = s };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		j.size = sizes[i];
		measure_rivals(&j, singles, j.size <= 4096 ? 4 : 3);
		measure_rivals(&j, streams, 3);
		if (j.size >= 4096)
			measure_rivals(&j, unregistered, 4);
	}
}

/* The same memory, which has all of its pages: what is left is what finding them costs. */
static void measure_on_demand(struct side *s)
{
	static const struct rival all[] = {
		{ "resident_pinned", op_verbs_write_stream, WINDOW },
		{ "resident_on_demand", op_on_demand_stream, WINDOW },
	};
	static const size_t sizes[] = { 8, 4096, 65536, 1 << 20 };
	struct job j = { .s = s };

	if (!s->on_demand)
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		j.size = sizes[i];
		measure_rivals(&j, all, 2);
	}
}

static void measure_paced(struct side *s)
{
	struct job j = { .s = s, .size = BUFFER };

	measure_us("paced", &j, op_paced);
	measure_us("unpaced", &j, op_get);
}

/* The peer is on another host: what is asked of it goes over a wire. */
static void measure_wire(struct side *s)
{
	static const struct rival one[] = {
		{ "put_fence", op_put_fence, 1 },
		{ "verbs_write", op_verbs_write, 1 },
		{ "get", op_get, 1 },
		{ "verbs_read", op_verbs_read, 1 },
	}, many[] = {
		{ "put", op_put_stream, WINDOW },
		{ "verbs_write", op_verbs_write_stream, WINDOW },
		{ "get", op_get_stream, WINDOW },
		{ "verbs_read", op_verbs_read_stream, WINDOW },
	};
	struct job j = { .s = s, .size = 8 };

	measure_rivals(&j, one, 4);
	measure_rivals(&j, many, 4);
	j.size = 1 << 20;
	measure_rivals(&j, many, 4);
	measure_typed(s, 8, 4096);
	measure_fences(s);
	measure_overlap(s);
}

static void measure_here(struct side *s)
{
	measure_transfers(s);
	measure_on_demand(s);
	measure_typed(s, 8, 4096);
	measure_typed(s, 4096, 64);
	measure_fences(s);
	measure_paced(s);
	measure_overlap(s);
}

/* What is counted in instructions, which need no second size to be seen. */
static void measure_few(struct side *s, bool wire)
{
	static const struct rival one[] = {
		{ "put_fence", op_put_fence, 1 },
		{ "get", op_get, 1 },
	}, many[] = {
		{ "put", op_put_stream, WINDOW },
		{ "get", op_get_stream, WINDOW },
	};
	struct job j = { .s = s, .size = 8 };

	if (wire)
		measure_rivals(&j, one, 2);
	else
		measure_rivals(&j, singles, 4);
	measure_rivals(&j, many, 2);
}

int main(int argc, char **argv)
{
	const char *device = getenv("VRNIC_DEV");
	struct side s = {};
	int sock[2], i = 1;
	bool wire = false, few = false;
	pid_t pid;

	if (i < argc && !strcmp(argv[i], "--wire"))
		wire = i++;
	if (i < argc && !strcmp(argv[i], "--few"))
		few = i++;
	if (i + 1 < argc && !strcmp(argv[i], "--seconds"))
		seconds = atof(argv[i + 1]);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		die("socketpair");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		run_peer(wire ? getenv("VRNIC_PEER_DEV") : device, sock[1]);
	side_open(&s, device, sock[0], SKEW);
	if (few)
		measure_few(&s, wire);
	else if (wire)
		measure_wire(&s);
	else
		measure_here(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
