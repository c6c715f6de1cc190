// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * load [--pairs N] [--one-region] [--send] [--bytes N] [--writes N] [--one-at-a-time] [--quiet N]
 *	[--maps FILE]
 *
 * Pairs of processes on the CPUs 2n and 2n+1: one has a queue pair and a region, the other writes
 * to it, on the device $VRNIC_DEV. With --one-region a single process has the queue pairs and one
 * region, with a place for each. With --send they send messages instead, which the other one
 * receives, each with a completion. With --quiet only each Nth request has a completion. While
 * all of them post, a plugin of QEMU watches. Prints the number of requests; FILE gets the memory
 * map of the first process that posts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "mark.h"

#define PAIRS_MAX	32
#define DEPTH		64
#define RECVS		512
#define WARM		2000	/* WRITEs before the others are counted */

static unsigned int pairs = 4, bytes = 8, writes = 20000, depth = DEPTH, every = 1;
static const char *maps;
static bool sends;

/* One end of a connection, as the other has to know it. */
struct end {
	uint32_t qpn, rkey;
	uint64_t addr;
	atomic_uint known;
};

/* All processes have it. Lines of it move between pairs, but not while the WRITEs are watched. */
static struct shared {
	union ibv_gid gid;
	struct end target[PAIRS_MAX], source[PAIRS_MAX];
	atomic_uint connected, warm, done;
	atomic_bool go;
} *shared;

struct nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int gid_index;
};

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	kill(0, SIGTERM);
	exit(1);
}

static void pin(unsigned int cpu)
{
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void wait_for(atomic_uint *what, unsigned int value)
{
	while (atomic_load(what) < value)
		usleep(1000);
}

static struct nic nic_open(void)
{
	const char *wanted = getenv("VRNIC_DEV") ?: "vrnic0";
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry gid;
	struct nic nic = {};

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), wanted))
			nic.ctx = ibv_open_device(list[i]);
	check(nic.ctx, wanted);
	nic.pd = ibv_alloc_pd(nic.ctx);
	nic.cq = ibv_create_cq(nic.ctx, DEPTH + PAIRS_MAX * RECVS, NULL, NULL, 0);
	check(nic.pd && nic.cq, "protection domain, completion queue");
	while (!ibv_query_gid_ex(nic.ctx, 1, nic.gid_index, &gid, 0) &&
	       gid.gid_type != IBV_GID_TYPE_ROCE_V2)
		nic.gid_index++;
	shared->gid = gid.gid;
	return nic;
}

static struct ibv_qp *qp_open(const struct nic *nic)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = nic->cq, .recv_cq = nic->cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp(nic->pd, &init);

	check(qp, "queue pair");
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS), "INIT");
	return qp;
}

/* No two pairs write to one page, nor to two lines that a CPU would fetch together. */
static size_t place(void)
{
	return (bytes + 8191) & ~4095UL;
}

/* A region with @places places. */
static struct ibv_mr *region_open(const struct nic *nic, unsigned int places)
{
	size_t size = places * place();
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct ibv_mr *mr = at == MAP_FAILED ? NULL :
		ibv_reg_mr(nic->pd, at, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	check(mr, "memory region");
	return mr;
}

static void tell(struct end *end, const struct ibv_qp *qp, const struct ibv_mr *mr,
		 unsigned int which)
{
	end->qpn = qp->qp_num;
	end->rkey = mr->rkey;
	end->addr = (uintptr_t)mr->addr + which * place();
	atomic_store(&end->known, 1);
}

static void connect_to(struct ibv_qp *qp, const struct nic *nic, struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = shared->gid, .sgid_index = nic->gid_index,
				      .hop_limit = 64 } },
	};

	wait_for(&peer->known, 1);
	attr.dest_qp_num = peer->qpn;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	atomic_fetch_add(&shared->connected, 1);
}

static void post_recv(struct ibv_qp *qp, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, bytes, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Receive for ever: messages of the pairs from @first to before @end. */
static void receive(struct ibv_qp **qp, unsigned int first, unsigned int end,
		    const struct ibv_mr *mr)
{
	struct ibv_wc wc[16];
	unsigned int i;
	int n;

	for (;;) {
		n = ibv_poll_cq(qp[first]->recv_cq, 16, wc);
		if (!n)
			sched_yield();
		while (n-- > 0) {
			check(wc[n].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[n].status));
			for (i = first; i < end && qp[i]->qp_num != wc[n].qp_num; i++)
				;
			post_recv(qp[i], mr);
		}
	}
}

/* The targets of the pairs from @first to before @end. */
static void run_targets(unsigned int first, unsigned int end)
{
	struct ibv_qp *qp[PAIRS_MAX];
	struct ibv_mr *mr;
	struct nic nic;

	pin(2 * first);
	nic = nic_open();
	mr = region_open(&nic, end - first);
	for (unsigned int i = first; i < end; i++) {
		qp[i] = qp_open(&nic);
		tell(&shared->target[i], qp[i], mr, i - first);
		for (unsigned int k = 0; sends && k < RECVS; k++)
			post_recv(qp[i], mr);
	}
	for (unsigned int i = first; i < end; i++)
		connect_to(qp[i], &nic, &shared->source[i]);
	while (!sends)
		pause();
	receive(qp, first, end, mr);
}

/* WRITEs, as many at a time as there is room for. */
static void write_many(struct ibv_qp *qp, const struct ibv_mr *mr, const struct end *to,
		       unsigned int n)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = sends ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = to->addr, .rkey = to->rkey },
	}, *bad;
	unsigned int posted = 0, done = 0;
	struct ibv_wc wc;

	while (done < n) {
		while (posted < n && posted - done < depth) {
			wr.send_flags = ++posted % every && posted < n ? 0 : IBV_SEND_SIGNALED;
			check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
		}
		while (ibv_poll_cq(qp->send_cq, 1, &wc) > 0) {
			check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
			done = done + every < n ? done + every : n;
		}
	}
}

static void copy_maps(void)
{
	FILE *from = fopen("/proc/self/maps", "r"), *to = fopen(maps, "w");
	char line[512];

	check(from && to, maps);
	while (fgets(line, sizeof(line), from))
		fputs(line, to);
	check(!fclose(to), maps);
	fclose(from);
}

static void run_source(unsigned int pair)
{
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct nic nic;

	pin(2 * pair + 1);
	nic = nic_open();
	qp = qp_open(&nic);
	mr = region_open(&nic, 1);
	tell(&shared->source[pair], qp, mr, 0);
	connect_to(qp, &nic, &shared->target[pair]);
	wait_for(&shared->connected, 2 * pairs);
	write_many(qp, mr, &shared->target[pair], WARM);
	atomic_fetch_add(&shared->warm, 1);
	if (pair == 0) {
		wait_for(&shared->warm, pairs);
		mark_start();
		atomic_store(&shared->go, true);
	}
	while (!atomic_load(&shared->go))
		;
	write_many(qp, mr, &shared->target[pair], writes);
	atomic_fetch_add(&shared->done, 1);
	/* a process that ends makes other lines move */
	while (atomic_load(&shared->done) < pairs)
		;
	if (pair == 0)
		mark_stop();
	if (pair == 0 && maps)
		copy_maps();
	exit(0);
}

static pid_t start(void (*run)(unsigned int, unsigned int), unsigned int a, unsigned int b)
{
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (!pid)
		run(a, b);
	return pid;
}

static void source(unsigned int pair, unsigned int unused)
{
	(void)unused;
	run_source(pair);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "pairs", required_argument, NULL, 'p' },
		{ "one-region", no_argument, NULL, 'o' },
		{ "send", no_argument, NULL, 's' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "writes", required_argument, NULL, 'w' },
		{ "one-at-a-time", no_argument, NULL, '1' },
		{ "quiet", required_argument, NULL, 'q' },
		{ "maps", required_argument, NULL, 'm' },
		{}
	};
	pid_t targets[PAIRS_MAX], sources[PAIRS_MAX];
	unsigned int i, groups;
	bool one = false;
	int c, status, bad = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			pairs = atoi(optarg);
			break;
		case 'o':
			one = true;
			break;
		case 's':
			sends = true;
			break;
		case 'b':
			bytes = atoi(optarg);
			break;
		case 'w':
			writes = atoi(optarg);
			break;
		case '1':
			depth = 1;
			break;
		case 'q':
			every = atoi(optarg);
			break;
		case 'm':
			maps = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!pairs || pairs > PAIRS_MAX || !bytes || !writes || !every || every > depth)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	check(shared != MAP_FAILED, "mmap");
	groups = one ? 1 : pairs;
	for (i = 0; i < groups; i++)
		targets[i] = start(run_targets, i, one ? pairs : i + 1);
	for (i = 0; i < pairs; i++)
		sources[i] = start(source, i, 0);
	for (i = 0; i < pairs; i++)
		bad |= waitpid(sources[i], &status, 0) < 0 || status;
	for (i = 0; i < groups; i++)
		kill(targets[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (!bad)
		printf("%u\n", pairs * writes);
	return bad;
}
