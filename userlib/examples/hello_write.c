// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hello_write: one process writes into another's memory with plain verbs.
 *
 *	hello_write [device]
 *
 * The parent registers a page and tells the child, over a socket pair, what a
 * program would otherwise send over the network: queue pair number, GID, address
 * and key. The child writes a greeting there with one RDMA WRITE. The parent does
 * not take part: it sees its memory change.
 */
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define PAGE	4096
#define PORT	1

struct address {		/* what each process must know of the other */
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t rkey;
	uint64_t memory;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
	int gid_index;
	enum ibv_mtu mtu;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		errx(1, "no RDMA device '%s': is the module loaded? (ibv_devices lists them)",
		     name);
	ibv_free_device_list(list);
	return ctx;
}

/*
 * RoCEv2 addresses a host by an IP address, in the form of a GID. Skip link-local
 * addresses: the device may have one as a GID that its interface does not have.
 */
static union ibv_gid find_gid(struct end *end)
{
	struct ibv_gid_entry table[32];
	ssize_t i, n = ibv_query_gid_table(end->ctx, table, 32, 0);

	for (i = 0; i < n; i++) {
		if (table[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    table[i].gid.raw[0] == 0xfe)
			continue;
		end->gid_index = table[i].gid_index;
		return table[i].gid;
	}
	errx(1, "the device has no RoCEv2 address: is its network interface up?");
}

static struct address open_end(struct end *end, const char *name)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_port_attr port;

	end->ctx = open_device(name);
	end->pd = ibv_alloc_pd(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 1, NULL, NULL, 0);
	end->memory = aligned_alloc(PAGE, PAGE);
	if (!end->pd || !end->cq || !end->memory ||
	    ibv_query_port(end->ctx, PORT, &port))
		err(1, "cannot set up the device");
	memset(end->memory, 0, PAGE);
	end->mtu = port.active_mtu;
	end->mr = ibv_reg_mr(end->pd, end->memory, PAGE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	if (!end->mr || !end->qp)
		err(1, "cannot register memory or create a queue pair");
	return (struct address){
		.gid = find_gid(end),
		.qpn = end->qp->qp_num,
		.rkey = end->mr->rkey,
		.memory = (uintptr_t)end->memory,
	};
}

static void modify(struct end *end, struct ibv_qp_attr attr, int mask)
{
	errno = ibv_modify_qp(end->qp, &attr, mask | IBV_QP_STATE);
	if (errno)
		err(1, "the queue pair does not go to state %d", attr.qp_state);
}

static void connect_end(struct end *end, const struct address *peer)
{
	modify(end, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	}, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(end, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->mtu,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = { .dgid = peer->gid, .hop_limit = 64,
				 .sgid_index = end->gid_index },
		},
	}, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(end, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	}, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void close_end(struct end *end)
{
	ibv_destroy_qp(end->qp);
	ibv_dereg_mr(end->mr);
	ibv_destroy_cq(end->cq);
	ibv_dealloc_pd(end->pd);
	ibv_close_device(end->ctx);
	free(end->memory);
}

static void exchange(int fd, const void *mine, void *theirs, size_t size)
{
	if (write(fd, mine, size) != (ssize_t)size ||
	    recv(fd, theirs, size, MSG_WAITALL) != (ssize_t)size)
		errx(1, "the other process is gone");
}

/* The heart of the program: describe the write, post it, poll for its completion. */
static void write_to_peer(struct end *end, const struct address *peer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->memory,
		.length = strlen(end->memory) + 1,
		.lkey = end->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = peer->memory, .rkey = peer->rkey },
	};
	struct ibv_wc wc = {};
	int n;

	if (ibv_post_send(end->qp, &wr, &bad))
		err(1, "cannot post the write");
	while ((n = ibv_poll_cq(end->cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		errx(1, "the write failed: %s", ibv_wc_status_str(wc.status));
}

static void run(int fd, const char *name, int writer)
{
	struct address mine, theirs;
	struct end end = {};
	char done = 1;

	mine = open_end(&end, name);
	exchange(fd, &mine, &theirs, sizeof(mine));
	connect_end(&end, &theirs);
	exchange(fd, &done, &done, 1);		/* both queue pairs are connected */
	if (writer) {
		snprintf(end.memory, PAGE, "hello from process %d, by RDMA WRITE",
			 getpid());
		write_to_peer(&end, &theirs);
	}
	exchange(fd, &done, &done, 1);		/* the write is complete */
	if (!writer)
		printf("process %d finds in its memory: '%s'\n", getpid(),
		       end.memory);
	if (!writer && !strstr(end.memory, "hello"))
		errx(1, "the greeting did not arrive");
	close_end(&end);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "vrnic0";
	int fds[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		err(1, "socketpair");
	child = fork();
	if (child < 0)
		err(1, "fork");
	close(fds[!child]);
	run(fds[!!child], name, !child);
	if (!child)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the writing process failed");
	return 0;
}
