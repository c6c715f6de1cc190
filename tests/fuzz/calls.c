// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

int (*call_hook)(int fd, struct ib_uverbs_ioctl_hdr *hdr);

int call_kernel(int fd, unsigned long request, void *arg)
{
	return syscall(SYS_ioctl, fd, request, arg);
}

bool call_leaks(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id == UVERBS_OBJECT_DEVICE &&
	       hdr->method_id == UVERBS_METHOD_GET_CONTEXT;
}

bool call_warns(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id == UVERBS_OBJECT_MR && hdr->method_id == UVERBS_METHOD_REG_DMABUF_MR;
}

/* The libraries' calls come here, because the program's own symbols go first. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == RDMA_VERBS_IOCTL && call_hook)
		return call_hook(fd, arg);
	return call_kernel(fd, request, arg);
}

/* ---- the script ---- */

static int make_memory(struct script *s)
{
	struct ibv_pd *pd = s->dev.pd;
	struct ibv_mr *mr;
	int ret;

	ret = buf_open(&s->buf, pd, SCRIPT_LEN, 0,
		       ACCESS_REMOTE | IBV_ACCESS_MW_BIND);
	if (ret)
		return ret;
	s->mw[0] = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	s->mw[1] = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (!s->mw[0] || !s->mw[1])
		return -errno;
	mr = ibv_reg_mr_iova(pd, s->buf.addr, 4096, 0x10000, ACCESS_REMOTE);
	return mr ? -ibv_dereg_mr(mr) : -errno;
}

/* Device memory with a region, both once more by another context of the same file. */
static int make_dm(struct script *s)
{
	struct ibv_alloc_dm_attr attr = { .length = SCRIPT_LEN };
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	int ret;

	s->dm = ibv_alloc_dm(s->dev.ctx, &attr);
	if (!s->dm)
		return -errno;
	s->dm_mr = ibv_reg_dm_mr(s->dev.pd, s->dm, 64, SCRIPT_LEN - 64,
				 ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED);
	if (!s->dm_mr)
		return -errno;
	ctx = ibv_import_device(dup(s->dev.ctx->cmd_fd));
	if (!ctx)
		return -errno;
	dm = ibv_import_dm(ctx, s->dm->handle);
	ret = dm ? 0 : -errno;
	if (dm)
		ibv_unimport_dm(dm);
	ibv_close_device(ctx);
	return ret;
}

/* A region over a dma-buf. */
static int make_foreign(struct script *s)
{
	int memfd, fd = udmabuf_open(SCRIPT_LEN, &memfd), err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	s->foreign = ibv_reg_dmabuf_mr(s->dev.pd, 64, SCRIPT_LEN - 64, 64, fd, ACCESS_REMOTE);
	err = errno;
	close(fd);
	close(memfd);
	/* Linux 6.1 does not map it for the kernel, and says so */
	return s->foreign || err == EINVAL ? 0 : -err;
}

/* Regions without pinned pages: two on demand, one of which fetches some, and one of nothing. */
static int make_odp(struct script *s)
{
	const int access = ACCESS_REMOTE | IBV_ACCESS_ON_DEMAND;
	struct ibv_sge sge = { (uintptr_t)s->buf.addr, SCRIPT_LEN };

	s->null = ibv_alloc_null_mr(s->dev.pd);
	if (!s->null)
		return -errno;
	s->odp[0] = ibv_reg_mr(s->dev.pd, s->buf.addr, SCRIPT_LEN, access);
	if (!s->odp[0])
		return errno == EOPNOTSUPP ? 0 : -errno;
	s->odp[1] = ibv_reg_mr(s->dev.pd, NULL, SIZE_MAX, access);
	if (!s->odp[1])
		return -errno;
	sge.lkey = s->odp[0]->lkey;
	return -ibv_advise_mr(s->dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int end_odp(struct script *s)
{
	int i, ret = -ibv_dereg_mr(s->null);

	for (i = 0; i < 2 && !ret && s->odp[i]; i++)
		ret = -ibv_dereg_mr(s->odp[i]);
	return ret;
}

static int make_cqs(struct script *s)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	struct ibv_modify_cq_attr moderate = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 4, .cq_period = 100 },
	};
	int ret;

	s->cqx = ibv_create_cq_ex(s->dev.ctx, &attr);
	if (!s->cqx)
		return -errno;
	ret = -ibv_modify_cq(ibv_cq_ex_to_cq(s->cqx), &moderate);
	return ret ? ret : -ibv_resize_cq(ibv_cq_ex_to_cq(s->cqx), 64);
}

static int use_srq(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr = { .srq_limit = 2, .max_wr = 32 };
	int ret = -ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);

	if (!ret)
		ret = -ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	return ret ? ret : -ibv_query_srq(srq, &attr);
}

static int make_pairs(struct script *s)
{
	static const enum ibv_qp_type types[SCRIPT_TYPES] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
	};
	struct pair_opts opts;
	int i, ret = 0;

	for (i = 0; i < SCRIPT_TYPES && !ret; i++) {
		opts = (struct pair_opts){
			.type = types[i], .srq = i == 0, .channel = true,
			.max_wr = 8, .max_inline = 64,
		};
		ret = pair_open(&s->pair[i], &s->dev, &opts);
		if (!ret)
			ret = pair_connect(&s->pair[i]);
		if (!ret && qp_state(s->pair[i].a.qp) != IBV_QPS_RTS)
			ret = -EIO;
	}
	return ret ? ret : use_srq(s->pair[0].b.srq);
}

static int make_targets(struct script *s)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = s->xrcd,
	};
	struct ibv_qp_open_attr again = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.xrcd = s->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	s->tgt[0] = ibv_create_qp_ex(s->dev.ctx, &init);
	if (!s->tgt[0])
		return -errno;
	again.qp_num = s->tgt[0]->qp_num;
	s->tgt[1] = ibv_open_qp(s->dev.ctx, &again);
	return s->tgt[1] ? 0 : -errno;
}

static int make_xrc(struct script *s)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = s->dev.pd, .cq = ibv_cq_ex_to_cq(s->cqx),
	};

	s->xrcd = ibv_open_xrcd(s->dev.ctx, &domain);
	if (!s->xrcd)
		return -errno;
	init.xrcd = s->xrcd;
	s->xsrq = ibv_create_srq_ex(s->dev.ctx, &init);
	return s->xsrq ? make_targets(s) : -errno;
}

static int end_xrc(struct script *s)
{
	int ret = -ibv_destroy_qp(s->tgt[0]) ?: -ibv_destroy_qp(s->tgt[1]);

	return ret ?: -ibv_destroy_srq(s->xsrq) ?: -ibv_close_xrcd(s->xrcd);
}

/* A queue pair that spreads frames over two work queues. */
static int make_rss(struct script *s)
{
	static uint8_t key[40];
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
		.pd = s->dev.pd, .cq = ibv_cq_ex_to_cq(s->cqx),
	};
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = 1, .ind_tbl = s->wq };
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->dev.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4,
		},
	};
	int i, ret = 0;

	for (i = 0; i < 2 && !ret; i++) {
		s->wq[i] = ibv_create_wq(s->dev.ctx, &wq);
		ret = s->wq[i] ? -ibv_modify_wq(s->wq[i], &ready) : -errno;
	}
	if (ret)
		return ret;
	s->table = ibv_create_rwq_ind_table(s->dev.ctx, &table);
	if (!s->table)
		return -errno;
	qp.rwq_ind_tbl = s->table;
	s->rss = ibv_create_qp_ex(s->dev.ctx, &qp);
	return s->rss ? 0 : -errno;
}

/* A rule for frames that nobody sends, and its counters. */
static int make_rule(struct script *s)
{
	struct ibv_counter_attach_attr frames = { .counter_desc = IBV_COUNTER_PACKETS };
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed)) rule = {
		.attr = { .size = sizeof(rule), .num_of_specs = 2, .port = 1 },
		.eth = {
			.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			.val.dst_mac = { 2, 0, 0, 0, 0, 9 },
			.mask.dst_mac = { 255, 255, 255, 255, 255, 255 },
		},
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count) },
	};
	uint64_t value;
	int ret;

	s->counters = ibv_create_counters(s->dev.ctx, &(struct ibv_counters_init_attr){});
	if (!s->counters)
		return -errno;
	ret = -ibv_attach_counters_point_flow(s->counters, &frames, NULL);
	if (ret)
		return ret;
	rule.count.counters = s->counters;
	s->rule = ibv_create_flow(s->rss, (void *)&rule);
	if (!s->rule)
		return -errno;
	return -ibv_read_counters(s->counters, &value, 1, 0);
}

static int end_rss(struct script *s)
{
	int ret = -ibv_destroy_flow(s->rule) ?: -ibv_destroy_counters(s->counters);

	if (ret)
		return ret;
	ret = -ibv_destroy_qp(s->rss) ?: -ibv_destroy_rwq_ind_table(s->table);

	return ret ?: -ibv_destroy_wq(s->wq[0]) ?: -ibv_destroy_wq(s->wq[1]);
}

/* Two counters of a queue pair, if the kernel has counters. */
static int make_cntrs(struct script *s)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(s->cqx);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	uint32_t counters, ops;
	uint64_t value;
	int ret;

	ret = cntr_caps(s->dev.ctx, &counters, &value, &ops);
	if (ret)
		return ret == EPROTONOSUPPORT ? 0 : -ret;
	s->counted = ibv_create_qp(s->dev.pd, &attr);
	if (!s->counted)
		return -errno;
	ret = cntr_open(&s->cntr[0], s->dev.ctx, 0) ?:
	      cntr_open(&s->cntr[1], s->dev.ctx, VRNIC_COMP_CNTR_BYTES);
	ret = ret ?: cntr_attach(&s->cntr[0], s->counted, CC_SEND | CC_RDMA_READ);
	ret = ret ?: cntr_attach(&s->cntr[1], s->counted, CC_RECV);
	ret = ret ?: cntr_modify(&s->cntr[1], CC_COMPLETED, CC_INC, 1);
	return ret ? -ret : cntr_read(&s->cntr[1], CC_COMPLETED) == 1 ? 0 : -EIO;
}

static int end_cntrs(struct script *s)
{
	if (!s->counted)
		return 0;
	return -ibv_destroy_qp(s->counted) ?: -cntr_close(&s->cntr[0]) ?: -cntr_close(&s->cntr[1]);
}

static int make_ah(struct script *s)
{
	struct ibv_ah_attr attr = {
		.port_num = 1, .is_global = 1,
		.grh = { .dgid = s->dev.gid, .sgid_index = s->dev.gid_index,
			 .hop_limit = 64 },
	};

	s->ah = ibv_create_ah(s->dev.pd, &attr);
	return s->ah ? 0 : -errno;
}

/* 224.0.1.x as a GID */
static union ibv_gid group(void)
{
	return (union ibv_gid){
		.raw = { [10] = 0xff, [11] = 0xff, [12] = 224, [14] = 1, [15] = 9 },
	};
}

static int join(struct script *s)
{
	union ibv_gid gid = group();
	int ret = -ibv_attach_mcast(s->pair[2].a.qp, &gid, 0);

	s->member = !ret;
	return ret;
}

static int make_native(struct script *s)
{
	static const struct vrnic_type_row rows[2][2] = {
		{ { 0, 8, 4, 16 } }, { { 0, 16, 1, 0 }, { 64, 16, 1, 0 } },
	};
	int i, ret = raw_open(&s->fifo, 64, 256, SCRIPT_LEN);

	if (!ret)
		ret = raw_endpoint(&s->fifo, &s->fifo.address, &s->endpoint,
				   &s->endpoint_handle);
	if (!ret)
		ret = raw_group(&s->fifo, &s->group, &s->group_handle);
	if (!ret)
		ret = raw_counter_in(&s->fifo, s->group_handle, 5, VRNIC_COUNTER_OPEN,
				     &s->counter);
	for (i = 0; i < 2 && !ret; i++)
		ret = raw_type(&s->fifo, rows[i], i + 1, &s->type[i],
			       &s->type_handle[i]);
	s->eventfd = eventfd(0, 0);
	if (!ret)
		ret = raw_counter_eventfd(&s->fifo, &s->counter, s->eventfd);
	if (!ret)
		ret = raw_counter_bind(&s->fifo, &s->counter, s->endpoint_handle, true);
	if (!ret)
		ret = raw_counter_bind(&s->fifo, &s->counter, s->endpoint_handle, true);
	return ret ? ret : raw_counter_bind(&s->fifo, &s->counter, s->endpoint_handle,
					    false);
}

/* A second context on the same file, with the domain and the region of the first. */
static int import_all(const struct script *s)
{
	struct ibv_context *ctx = ibv_import_device(dup(s->dev.ctx->cmd_fd));
	struct ibv_pd *pd = ctx ? ibv_import_pd(ctx, s->dev.pd->handle) : NULL;
	struct ibv_mr *mr = pd ? ibv_import_mr(pd, s->buf.mr->handle) : NULL;
	int ret = mr ? 0 : -errno;

	if (mr)
		ibv_unimport_mr(mr);
	if (pd)
		ibv_unimport_pd(pd);
	if (ctx)
		ibv_close_device(ctx);
	return ret;
}

int script_begin(struct script *s)
{
	int ret;

	memset(s, 0, sizeof(*s));
	ret = dev_open(&s->dev);
	if (!ret)
		ret = make_memory(s);
	if (!ret)
		ret = import_all(s);
	if (!ret)
		ret = make_dm(s);
	if (!ret)
		ret = make_foreign(s);
	if (!ret)
		ret = make_odp(s);
	if (!ret)
		ret = make_cqs(s);
	if (!ret)
		ret = make_pairs(s);
	if (!ret)
		ret = make_xrc(s);
	if (!ret)
		ret = make_rss(s);
	if (!ret)
		ret = make_rule(s);
	if (!ret)
		ret = make_cntrs(s);
	if (!ret)
		ret = make_ah(s);
	if (!ret)
		ret = join(s);
	if (!ret)
		ret = make_native(s);
	return ret;
}

void script_refused(struct script *s)
{
	struct ibv_alloc_dm_attr dm = { .length = ~0UL };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1 << 20, .max_sge = 1,
		.pd = s->dev.pd, .cq = ibv_cq_ex_to_cq(s->cqx),
	};
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct vrnic_address nobody;

	ibv_alloc_dm(s->dev.ctx, &dm);
	ibv_create_wq(s->dev.ctx, &wq);
	ibv_create_flow(s->pair[2].a.qp, &flow);
	ibv_create_counters(s->dev.ctx, &(struct ibv_counters_init_attr){});
	ibv_rereg_mr(s->buf.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
	ibv_rereg_mr(s->dm_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
	ibv_reg_dmabuf_mr(s->dev.pd, 0, 4096, 0, -1, 0);
	raw_lookup(&s->fifo, "nobody", 0, 0, &nobody);
}

static int end_native(struct script *s)
{
	int i, ret = raw_counter_destroy(&s->fifo, &s->counter);

	if (!ret)
		ret = raw_group_destroy(&s->fifo, s->group_handle);
	for (i = 0; i < 2 && !ret; i++)
		ret = raw_type_destroy(&s->fifo, s->type_handle[i]);
	if (!ret)
		ret = raw_endpoint_destroy(&s->fifo, s->endpoint_handle);
	close(s->eventfd);
	return ret ? ret : raw_close(&s->fifo);
}

int script_end(struct script *s)
{
	union ibv_gid gid = group();
	int i, ret = end_native(s);

	if (!ret && s->member)
		ret = -ibv_detach_mcast(s->pair[2].a.qp, &gid, 0);
	if (!ret)
		ret = -ibv_destroy_ah(s->ah);
	for (i = 0; i < SCRIPT_TYPES && !ret; i++)
		ret = -pair_close(&s->pair[i]);
	if (!ret)
		ret = end_xrc(s);
	if (!ret)
		ret = end_rss(s);
	if (!ret)
		ret = end_cntrs(s);
	if (!ret)
		ret = -ibv_destroy_cq(ibv_cq_ex_to_cq(s->cqx));
	for (i = 0; i < 2 && !ret; i++)
		ret = -ibv_dealloc_mw(s->mw[i]);
	if (!ret)
		ret = end_odp(s);
	if (!ret && s->foreign)
		ret = -ibv_dereg_mr(s->foreign);
	if (!ret)
		ret = -ibv_dereg_mr(s->dm_mr);
	if (!ret)
		ret = -ibv_free_dm(s->dm);
	buf_close(&s->buf);
	dev_close(&s->dev);
	return ret;
}
