// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that chooses devices by itself as collective libraries for
 * accelerators do (NCCL, RCCL): every port of Ethernet or InfiniBand that is
 * active is a rail, and there is no fallback to anything else. The GID is the
 * first one that is an IPv4 address, of the type RoCE v2 by sysfs; GID 0 if
 * there is none. Each rail has to carry data: here, between two queue pairs of
 * this process.
 *
 *   rails	prints a line for each rail. Fails if one does not work.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	(1 << 20)
#define FLAG	0x7a11

struct rail {
	const char *name;
	struct ibv_context *context;
	struct ibv_port_attr attr;
	uint8_t port;
	int gid_index;
	union ibv_gid gid;
};

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void fail(const struct rail *rail, const char *what)
{
	fprintf(stderr, "rails: %s port %u: %s: %s\n", rail->name, rail->port, what,
		strerror(errno));
	exit(1);
}

/* Libraries look for "RoCE v2" in sysfs, as old libibverbs does not tell. */
static bool is_rocev2(const struct rail *rail, int index)
{
	char path[256], type[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/%d",
		 rail->name, rail->port, index);
	file = fopen(path, "r");
	if (!file)
		return false;
	/* An entry without a GID cannot be read. */
	if (!fgets(type, sizeof(type), file))
		type[0] = 0;
	fclose(file);
	return !strncmp(type, "RoCE v2", 7);
}

static bool is_ipv4(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && be64toh(gid->global.interface_id) >> 32 == 0xffff;
}

static void choose_gid(struct rail *rail)
{
	int i;

	for (i = 0; i < rail->attr.gid_tbl_len; i++) {
		if (ibv_query_gid(rail->context, rail->port, i, &rail->gid))
			fail(rail, "ibv_query_gid");
		if (is_ipv4(&rail->gid) && is_rocev2(rail, i))
			break;
	}
	rail->gid_index = i < rail->attr.gid_tbl_len ? i : 0;
	if (ibv_query_gid(rail->context, rail->port, rail->gid_index, &rail->gid))
		fail(rail, "ibv_query_gid");
}

static struct end make_end(const struct rail *rail, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 256, .max_recv_wr = 256,
			.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64,
		},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = rail->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_ece ece = { 0 };
	struct end end;
	int error;

	end.cq = ibv_create_cq(rail->context, 512, NULL, NULL, 0);
	if (!end.cq)
		fail(rail, "ibv_create_cq");
	init.send_cq = end.cq;
	init.recv_cq = end.cq;
	end.qp = ibv_create_qp(pd, &init);
	if (!end.qp)
		fail(rail, "ibv_create_qp");
	/* Who asks for this is content with EOPNOTSUPP, and with nothing else. */
	error = ibv_query_ece(end.qp, &ece);
	if (error && error != EOPNOTSUPP) {
		errno = error;
		fail(rail, "ibv_query_ece");
	}
	errno = ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS);
	if (errno)
		fail(rail, "to INIT");
	return end;
}

static void connect_end(const struct rail *rail, struct end *end, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = rail->attr.active_mtu,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = rail->port,
			.grh = {
				.dgid = rail->gid, .sgid_index = rail->gid_index, .hop_limit = 255,
			},
		},
	};

	errno = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		fail(rail, "to RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	errno = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		fail(rail, "to RTS");
}

static void await(const struct rail *rail, struct ibv_cq *cq, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	if (wc.status == IBV_WC_SUCCESS && wc.opcode == opcode)
		return;
	fprintf(stderr, "rails: %s: %s\n", rail->name, ibv_wc_status_str(wc.status));
	exit(1);
}

/* The data, and behind it a write that takes a receive: what says that it is there. */
static void carry(const struct rail *rail, struct ibv_pd *pd, struct end *from, struct end *to)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_RELAXED_ORDERING;
	char *source = malloc(BYTES), *target = calloc(1, BYTES);
	struct ibv_mr *source_mr, *target_mr;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr flag = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(FLAG),
	};
	struct ibv_sge sge = { .length = BYTES };
	struct ibv_send_wr data = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .next = &flag,
	};
	struct ibv_send_wr *bad;

	memset(source, 0x5a, BYTES);
	source_mr = ibv_reg_mr_iova2(pd, source, BYTES, (uintptr_t)source, access);
	target_mr = ibv_reg_mr_iova2(pd, target, BYTES, (uintptr_t)target, access);
	if (!source_mr || !target_mr)
		fail(rail, "ibv_reg_mr");
	sge.addr = (uintptr_t)source;
	sge.lkey = source_mr->lkey;
	data.wr.rdma.remote_addr = (uintptr_t)target;
	data.wr.rdma.rkey = target_mr->rkey;
	flag.wr.rdma = data.wr.rdma;
	errno = ibv_post_recv(to->qp, &recv, &bad_recv);
	if (!errno)
		errno = ibv_post_send(from->qp, &data, &bad);
	if (errno)
		fail(rail, "post");
	await(rail, from->cq, IBV_WC_RDMA_WRITE);
	await(rail, to->cq, IBV_WC_RECV_RDMA_WITH_IMM);
	if (memcmp(source, target, BYTES)) {
		fprintf(stderr, "rails: %s: the data is not what was sent\n", rail->name);
		exit(1);
	}
	ibv_dereg_mr(source_mr);
	ibv_dereg_mr(target_mr);
	free(source);
	free(target);
}

static void use(struct rail *rail)
{
	struct ibv_pd *pd = ibv_alloc_pd(rail->context);
	struct end one, two;

	if (!pd)
		fail(rail, "ibv_alloc_pd");
	choose_gid(rail);
	one = make_end(rail, pd);
	two = make_end(rail, pd);
	connect_end(rail, &one, &two);
	connect_end(rail, &two, &one);
	carry(rail, pd, &one, &two);
	carry(rail, pd, &two, &one);
	printf("%s port %u, GID %d: %u bytes each way\n", rail->name, rail->port, rail->gid_index,
	       BYTES);
}

static bool is_rail(struct rail *rail)
{
	if (ibv_query_port(rail->context, rail->port, &rail->attr))
		fail(rail, "ibv_query_port");
	return rail->attr.state == IBV_PORT_ACTIVE &&
	       (rail->attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
		rail->attr.link_layer == IBV_LINK_LAYER_INFINIBAND);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL), **device;
	int rails = 0;

	for (device = devices; device && *device; device++) {
		struct rail rail = { .name = ibv_get_device_name(*device) };
		struct ibv_device_attr attr;

		rail.context = ibv_open_device(*device);
		if (!rail.context || ibv_query_device(rail.context, &attr))
			fail(&rail, "open");
		for (rail.port = 1; rail.port <= attr.phys_port_cnt; rail.port++) {
			if (!is_rail(&rail))
				continue;
			use(&rail);
			rails++;
		}
	}
	printf("%d rails\n", rails);
	return 0;
}
