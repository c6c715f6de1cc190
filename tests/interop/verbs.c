// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stress.h"

#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define READS	8	/* READs and atomics under way */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("cannot open the device %s", name);
	ibv_free_device_list(list);
	return ctx;
}

static uint8_t *map_memory(size_t len)
{
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		die("no memory of %zu bytes", len);
	return map;
}

static struct ibv_mr *region(struct ibv_pd *pd, void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, ACCESS);

	if (!mr)
		die("cannot register %zu bytes: %s", len, strerror(errno));
	return mr;
}

static void open_qp(struct host *host, const struct options *opt)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = opt->window + 1,
			.max_recv_wr = opt->window + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};

	host->scq = ibv_create_cq(host->ctx, 2 * opt->window + 2, NULL, NULL, 0);
	host->rcq = ibv_create_cq(host->ctx, 2 * opt->window + 2, NULL, NULL, 0);
	if (!host->scq || !host->rcq)
		die("cannot create completion queues: %s", strerror(errno));
	init.send_cq = host->scq;
	init.recv_cq = host->rcq;
	host->qp = ibv_create_qp(host->pd, &init);
	if (!host->qp)
		die("cannot create a queue pair: %s", strerror(errno));
	if (ibv_modify_qp(host->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("queue pair does not become INIT");
}

void host_open(struct host *host, const struct options *opt, size_t data_len,
	       size_t results_len)
{
	memset(host, 0, sizeof(*host));
	host->ctx = open_device(opt->device);
	host->pd = ibv_alloc_pd(host->ctx);
	if (!host->pd)
		die("no protection domain");
	host->data_len = data_len;
	host->results_len = results_len;
	host->data = map_memory(data_len);
	host->results = map_memory(results_len);
	host->data_mr = region(host->pd, host->data, data_len);
	host->results_mr = region(host->pd, host->results, results_len);
	open_qp(host, opt);
	if (ibv_query_gid(host->ctx, 1, opt->gid_index, &host->mine.gid))
		die("%s has no GID %d", opt->device, opt->gid_index);
	host->mine.qpn = host->qp->qp_num;
	/* so high that the numbers wrap in the middle of the run */
	host->mine.psn = (0xffffff - opt->ops / 4) & 0xffffff;
	host->mine.data = (uintptr_t)host->data;
	host->mine.results = (uintptr_t)host->results;
	host->mine.data_rkey = host->data_mr->rkey;
	host->mine.results_rkey = host->results_mr->rkey;
}

/* The one that listens, for all connections of this process. */
static int listener = -1;

static int listen_for(const struct options *opt)
{
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6, .sin6_port = htons(opt->port),
	};
	int one = 1;

	if (listener < 0) {
		listener = socket(AF_INET6, SOCK_STREAM, 0);
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(listener, (struct sockaddr *)&any, sizeof(any)) ||
		    listen(listener, 8))
			die("cannot listen on port %u: %s", opt->port,
			    strerror(errno));
	}
	return accept(listener, NULL, NULL);
}

static int call(const struct options *opt)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *found;
	char port[8];
	int fd;

	snprintf(port, sizeof(port), "%u", opt->port);
	if (getaddrinfo(opt->host, port, &hint, &found))
		die("%s: no such host", opt->host);
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(fd, found->ai_addr, found->ai_addrlen))
		die("cannot connect to %s: %s", opt->host, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

/* A socket's buffer holds an address: none waits for the other to read first. */
static void swap(int fd, const void *mine, void *peer, size_t len)
{
	if (send(fd, mine, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(fd, peer, len, MSG_WAITALL) != (ssize_t)len)
		die("the peer is gone");
}

static enum ibv_mtu mtu_code(unsigned int bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && (128U << code) < bytes)
		code++;
	return code;
}

static void to_rtr(struct host *host, const struct options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(opt->mtu),
		.dest_qp_num = host->peer.qpn,
		.rq_psn = host->peer.psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = host->peer.gid,
				.sgid_index = opt->gid_index,
				.hop_limit = 64,
				.traffic_class = opt->tclass,
			},
		},
	};

	if (ibv_modify_qp(host->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("queue pair does not become RTR: %s", strerror(errno));
}

static void to_rts(struct host *host, const struct options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = host->mine.psn,
		.timeout = opt->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = READS,
	};

	if (ibv_modify_qp(host->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("queue pair does not become RTS: %s", strerror(errno));
}

void host_connect(struct host *host, const struct options *opt)
{
	host->fd = opt->host ? call(opt) : listen_for(opt);
	swap(host->fd, &host->mine, &host->peer, sizeof(host->mine));
	to_rtr(host, opt);
	to_rts(host, opt);
	host_meet(host);
}

void host_meet(struct host *host)
{
	char byte = 0;

	swap(host->fd, &byte, &byte, 1);
}

void host_close(struct host *host)
{
	int ret;

	ret = ibv_destroy_qp(host->qp);
	ret |= ibv_destroy_cq(host->scq) | ibv_destroy_cq(host->rcq);
	ret |= ibv_dereg_mr(host->data_mr) | ibv_dereg_mr(host->results_mr);
	ret |= ibv_dealloc_pd(host->pd) | ibv_close_device(host->ctx);
	if (ret)
		die("an object cannot be destroyed");
	munmap(host->data, host->data_len);
	munmap(host->results, host->results_len);
	close(host->fd);
}
