// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/memfd.h>
#include <linux/udmabuf.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_util.h"

#define PORT		1
#define GUARD_VALUE	0xa5
#define PARAMETERS	"/sys/module/vrnic/parameters"

/* A time limit and the pause between two looks, which grows from nothing. */
struct waiter {
	time_t end;
	unsigned int looks;
};

int wait_seconds(void)
{
	const char *s = getenv("VRNIC_WAIT");

	return s ? atoi(s) : 100;
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

bool still_patient(struct patience *p, unsigned long progress)
{
	time_t t = now();

	if (!p->end || progress != p->seen) {
		p->seen = progress;
		p->end = t + WAIT_SECONDS;
	}
	return t <= p->end;
}

static struct waiter waiter_start(void)
{
	return (struct waiter){ .end = now() + WAIT_SECONDS };
}

/* False once the time is over. One CPU is all there may be: let others run. */
static bool waiter_pause(struct waiter *w)
{
	w->looks++;
	if (w->looks > 20)
		usleep(w->looks < 200 ? 50 : 2000);
	return now() <= w->end;
}

const char *dev_name(void)
{
	const char *name = getenv("VRNIC_DEV");

	return name && *name ? name : "vrnic0";
}

static bool has_other_side(void)
{
	const char *peer = getenv("VRNIC_PEER_DEV");

	return peer && *peer;
}

void other_side(void)
{
	char *mine;

	if (!has_other_side())
		return;
	mine = strdup(dev_name());
	setenv("VRNIC_DEV", getenv("VRNIC_PEER_DEV"), 1);
	setenv("VRNIC_PEER_DEV", mine, 1);
	free(mine);
}

struct ibv_context *dev_open_context(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), dev_name()))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static bool gid_usable(const struct ibv_gid_entry *e)
{
	return e->port_num == PORT && e->gid_type == IBV_GID_TYPE_ROCE_V2;
}

static bool gid_link_local(const struct ibv_gid_entry *e)
{
	return e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80;
}

static bool gid_preferred(const struct ibv_gid_entry *e)
{
	const char *wanted = getenv("VRNIC_GID");

	if (wanted)
		return e->gid_index == strtoul(wanted, NULL, 0);
	return gid_usable(e) && !gid_link_local(e);
}

static int dev_find_gid(struct dev *dev)
{
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(dev->ctx, entries, 64, 0);
	ssize_t i, found = -1;

	for (i = 0; i < n; i++) {
		if (gid_preferred(&entries[i])) {
			found = i;
			break;
		}
		if (found < 0 && gid_usable(&entries[i]))
			found = i;
	}
	if (found < 0)
		return -ENODEV;
	dev->gid = entries[found].gid;
	dev->gid_index = entries[found].gid_index;
	return 0;
}

static int dev_query(struct dev *dev)
{
	dev->attr = &dev->ex.orig_attr;
	if (ibv_query_device_ex(dev->ctx, NULL, &dev->ex) ||
	    ibv_query_port(dev->ctx, PORT, &dev->port))
		return -EIO;
	return dev_find_gid(dev);
}

int dev_open(struct dev *dev)
{
	int ret;

	memset(dev, 0, sizeof(*dev));
	dev->ctx = dev_open_context();
	if (!dev->ctx)
		return -ENODEV;
	dev->pd = ibv_alloc_pd(dev->ctx);
	ret = dev->pd ? dev_query(dev) : -errno;
	if (ret)
		dev_close(dev);
	return ret;
}

void dev_close(struct dev *dev)
{
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	memset(dev, 0, sizeof(*dev));
}

bool dev_has(const struct dev *dev, uint64_t cap_flags_ex)
{
	uint64_t flags = dev->ex.device_cap_flags_ex | dev->attr->device_cap_flags;

	return (flags & cap_flags_ex) == cap_flags_ex;
}

bool dev_advertises(uint64_t cap_flags_ex)
{
	struct dev dev;
	bool has;

	if (dev_open(&dev))
		return false;
	has = dev_has(&dev, cap_flags_ex);
	dev_close(&dev);
	return has;
}

static uint64_t pattern_word(uint32_t seed, size_t n)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ULL + n;

	return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
}

static void set_guards(struct buf *buf)
{
	memset(buf->addr - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES);
	memset(buf->addr + buf->len, GUARD_VALUE, GUARD_BYTES);
}

static int buf_place(struct buf *buf, struct ibv_pd *pd, size_t offset,
		     int access)
{
	buf->addr = buf->map + offset;
	set_guards(buf);
	if (!pd)
		return 0;
	buf->mr = ibv_reg_mr(pd, buf->addr, buf->len, access);
	return buf->mr ? 0 : -errno;
}

int buf_open(struct buf *buf, struct ibv_pd *pd, size_t len, size_t misalign,
	     int access)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int ret;

	memset(buf, 0, sizeof(*buf));
	buf->len = len;
	buf->map_len = page + misalign + len + GUARD_BYTES;
	buf->map = mmap(NULL, buf->map_len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->map == MAP_FAILED) {
		buf->map = NULL;
		return -errno;
	}
	ret = buf_place(buf, pd, page + misalign, access);
	if (ret)
		buf_close(buf);
	return ret;
}

int buf_wrap(struct buf *buf, struct ibv_pd *pd, void *map, size_t map_len,
	     size_t len, int access)
{
	memset(buf, 0, sizeof(*buf));
	if (map_len < len + 2 * GUARD_BYTES)
		return -EINVAL;
	buf->map = map;
	buf->map_len = map_len;
	buf->len = len;
	return buf_place(buf, pd, GUARD_BYTES, access);
}

void buf_close(struct buf *buf)
{
	if (buf->twin)
		ibv_dereg_mr(buf->twin);
	if (buf->mr)
		ibv_dereg_mr(buf->mr);
	if (buf->map)
		munmap(buf->map, buf->map_len);
	memset(buf, 0, sizeof(*buf));
}

void buf_fill(struct buf *buf, uint32_t seed)
{
	uint64_t word;
	size_t i;

	for (i = 0; i < buf->len; i += sizeof(word)) {
		word = htole64(pattern_word(seed, i / sizeof(word)));
		memcpy(buf->addr + i, &word,
		       buf->len - i < sizeof(word) ? buf->len - i : sizeof(word));
	}
}

ssize_t buf_differs(const struct buf *buf, size_t off, size_t len,
		    uint32_t seed, size_t src)
{
	uint64_t word = pattern_word(seed, src / sizeof(word));
	size_t i;

	for (i = 0; i < len; i++) {
		if (!((src + i) % sizeof(word)))
			word = pattern_word(seed, (src + i) / sizeof(word));
		if (buf->addr[off + i] != (uint8_t)(word >> 8 * ((src + i) % sizeof(word))))
			return off + i;
	}
	return -1;
}

/* All bytes are alike if each is like the one before it. */
static bool all_are(const uint8_t *p, size_t len, uint8_t value)
{
	return !len || (*p == value && !memcmp(p, p + 1, len - 1));
}

ssize_t buf_is_not(const struct buf *buf, size_t off, size_t len, uint8_t value)
{
	size_t i = off;

	if (all_are(buf->addr + off, len, value))
		return -1;
	while (buf->addr[i] == value)
		i++;
	return i;
}

bool buf_guards_intact(const struct buf *buf)
{
	return all_are(buf->addr - GUARD_BYTES, GUARD_BYTES, GUARD_VALUE) &&
	       all_are(buf->addr + buf->len, GUARD_BYTES, GUARD_VALUE);
}

static uint32_t or_default(uint32_t value, uint32_t instead)
{
	return value ? value : instead;
}

static uint32_t or_none(uint32_t value, uint32_t none)
{
	return value == none ? 0 : value;
}

struct pair_opts pair_defaults(const struct pair_opts *opts)
{
	struct pair_opts o = opts ? *opts : (struct pair_opts){};

	o.type = or_default(o.type, IBV_QPT_RC);
	o.max_wr = or_default(o.max_wr, 64);
	o.max_sge = or_default(o.max_sge, 4);
	o.cqe = or_default(o.cqe, 256);
	o.timeout = or_default(o.timeout, 17);
	o.retry = or_none(or_default(o.retry, 7), NO_RETRY);
	o.rnr_retry = or_none(or_default(o.rnr_retry, 7), NO_RETRY);
	o.rnr_timer = or_default(o.rnr_timer, 12);
	o.rd_atomic = or_default(o.rd_atomic, 4);
	o.access = or_default(o.access, o.type == IBV_QPT_UC ?
			      IBV_ACCESS_REMOTE_WRITE : ACCESS_REMOTE);
	o.access = or_none(o.access, NO_ACCESS);
	return o;
}

static int side_open_srq(struct side *side, const struct pair_opts *o)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = o->max_wr, .max_sge = o->max_sge },
	};

	side->srq = ibv_create_srq(side->pd, &attr);
	return side->srq ? 0 : -errno;
}

static int side_open_qp(struct side *side, const struct pair_opts *o)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = side->scq,
		.recv_cq = side->rcq,
		.srq = side->srq,
		.cap = {
			.max_send_wr = o->max_wr,
			.max_recv_wr = side->srq ? 0 : o->max_wr,
			.max_send_sge = o->max_sge,
			.max_recv_sge = side->srq ? 0 : o->max_sge,
			.max_inline_data = o->max_inline,
		},
		.qp_type = o->type,
		.sq_sig_all = o->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
	};

	if (o->send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = o->send_ops;
	}
	side->qp = ibv_create_qp_ex(side->dev->ctx, &attr);
	if (!side->qp)
		return -errno;
	side->qpx = o->send_ops ? ibv_qp_to_qp_ex(side->qp) : NULL;
	return 0;
}

static int side_open_cqs(struct side *side, const struct pair_opts *o)
{
	struct ibv_context *ctx = side->dev->ctx;

	if (o->channel) {
		side->channel = ibv_create_comp_channel(ctx);
		if (!side->channel)
			return -errno;
	}
	side->scq = ibv_create_cq(ctx, o->cqe, side, side->channel, 0);
	side->rcq = ibv_create_cq(ctx, o->cqe, side, side->channel, 0);
	return side->scq && side->rcq ? 0 : -errno;
}

int side_open(struct side *side, struct dev *dev, const struct pair_opts *o,
	      bool srq)
{
	int ret;

	side->dev = dev;
	if (!side->pd)
		side->pd = dev->pd;
	ret = side_open_cqs(side, o);
	if (!ret && srq)
		ret = side_open_srq(side, o);
	if (!ret)
		ret = side_open_qp(side, o);
	if (ret)
		side_close(side);
	return ret;
}

int side_close(struct side *side)
{
	int ret = 0;

	if (side->ah)
		ret |= ibv_destroy_ah(side->ah);
	if (side->qp)
		ret |= ibv_destroy_qp(side->qp);
	if (side->srq)
		ret |= ibv_destroy_srq(side->srq);
	if (side->scq)
		ret |= ibv_destroy_cq(side->scq);
	if (side->rcq)
		ret |= ibv_destroy_cq(side->rcq);
	if (side->channel)
		ret |= ibv_destroy_comp_channel(side->channel);
	memset(side, 0, sizeof(*side));
	return ret;
}

int side_to_init(struct side *side, const struct pair_opts *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = UD_QKEY,
		.qp_access_flags = o->access,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= o->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (o->type == IBV_QPT_RAW_PACKET)
		mask = IBV_QP_STATE | IBV_QP_PORT;
	return -ibv_modify_qp(side->qp, &attr, mask);
}

static struct ibv_ah_attr ah_attr_to(const struct dev *dev,
				     const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.port_num = PORT,
		.is_global = 1,
		.grh = {
			.dgid = *gid,
			.sgid_index = dev->gid_index,
			.hop_limit = 64,
		},
	};
}

int side_to_rtr(struct side *side, const struct pair_opts *o,
		uint32_t peer_qpn, const union ibv_gid *peer_gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = side->dev->port.active_mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = 0xfffff0,	/* wraps soon */
		.max_dest_rd_atomic = o->rd_atomic,
		.min_rnr_timer = o->rnr_timer,
		.ah_attr = ah_attr_to(side->dev, peer_gid),
	};
	int mask = IBV_QP_STATE;

	if (o->type != IBV_QPT_UD && o->type != IBV_QPT_RAW_PACKET)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (o->type == IBV_QPT_RC || o->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return -ibv_modify_qp(side->qp, &attr, mask);
}

int side_to_rts(struct side *side, const struct pair_opts *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0xfffff0,
		.timeout = o->timeout,
		.retry_cnt = o->retry,
		.rnr_retry = o->rnr_retry,
		.max_rd_atomic = o->rd_atomic,
	};
	int mask = IBV_QP_STATE;

	if (o->type != IBV_QPT_RAW_PACKET)
		mask |= IBV_QP_SQ_PSN;

	if (o->type == IBV_QPT_RC || o->type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (o->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	return -ibv_modify_qp(side->qp, &attr, mask);
}

static int side_open_ah(struct side *side, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = ah_attr_to(side->dev, gid);

	side->ah = ibv_create_ah(side->pd, &attr);
	return side->ah ? 0 : -errno;
}

int side_connect(struct side *side, const struct pair_opts *o,
		 uint32_t peer_qpn, const union ibv_gid *peer_gid)
{
	int ret = side_to_init(side, o);

	side->peer_qpn = peer_qpn;
	if (!ret)
		ret = side_to_rtr(side, o, peer_qpn, peer_gid);
	if (!ret)
		ret = side_to_rts(side, o);
	if (!ret && o->type == IBV_QPT_UD)
		ret = side_open_ah(side, peer_gid);
	return ret;
}

/* Side b is on @peer. */
static int pair_open_between(struct pair *pair, struct dev *dev, struct dev *peer,
			     const struct pair_opts *opts)
{
	int ret;

	memset(pair, 0, sizeof(*pair));
	pair->opts = pair_defaults(opts);
	ret = side_open(&pair->a, dev, &pair->opts, false);
	if (!ret)
		ret = side_open(&pair->b, peer, &pair->opts, pair->opts.srq);
	pair->a.peer = peer;
	pair->b.peer = dev;
	if (ret)
		pair_close(pair);
	return ret;
}

int pair_open(struct pair *pair, struct dev *dev, const struct pair_opts *opts)
{
	return pair_open_between(pair, dev, dev, opts);
}

int pair_connect(struct pair *pair)
{
	int ret = side_connect(&pair->a, &pair->opts, pair->b.qp->qp_num,
			       &pair->b.dev->gid);

	if (!ret)
		ret = side_connect(&pair->b, &pair->opts, pair->a.qp->qp_num,
				   &pair->a.dev->gid);
	return ret;
}

int pair_close(struct pair *pair)
{
	int a = side_close(&pair->a);
	int b = side_close(&pair->b);

	return a ? a : b;
}

int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

	return ret ? -ret : (int)attr.qp_state;
}

int qp_wait(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct waiter w = waiter_start();

	do {
		if (qp_state(qp) == (int)state)
			return 0;
	} while (waiter_pause(&w));
	return -ETIMEDOUT;
}

struct ibv_sge sge_of(const struct buf *buf, size_t off, size_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)buf->addr + off,
		.length = len,
		.lkey = buf->mr ? buf->mr->lkey : 0,
	};
}

static const struct ibv_mr *mr_on(const struct dev *dev, const struct buf *buf)
{
	return buf->twin && buf->twin->context == dev->ctx ? buf->twin : buf->mr;
}

const struct ibv_mr *mr_at(const struct side *side, const struct buf *buf)
{
	return mr_on(side->dev, buf);
}

struct ibv_sge sge_at(const struct side *side, const struct buf *buf, size_t off, size_t len)
{
	struct ibv_sge sge = sge_of(buf, off, len);

	if (buf->mr)
		sge.lkey = mr_at(side, buf)->lkey;
	return sge;
}

int buf_twin(struct buf *buf, const struct side *side, int access)
{
	if (buf->mr->context == side->dev->ctx)
		return 0;
	buf->twin = ibv_reg_mr(side->pd, buf->addr, buf->len, access);
	return buf->twin ? 0 : -errno;
}

static bool is_atomic(const struct request *req)
{
	return req->op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       req->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void set_atomic(struct ibv_send_wr *wr, const struct request *req,
		       uint64_t addr, uint32_t rkey)
{
	bool swap = req->op == IBV_WR_ATOMIC_CMP_AND_SWP;

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = swap ? req->compare : req->value;
	wr->wr.atomic.swap = swap ? req->value : 0;
}

static void set_target(struct ibv_send_wr *wr, const struct side *side,
		       const struct request *req)
{
	uint64_t addr = req->raddr;
	uint32_t rkey = req->rkey;

	if (!addr && req->remote)
		addr = (uintptr_t)req->remote->addr + req->roff;
	if (!rkey && req->remote)
		rkey = mr_on(side->peer ?: side->dev, req->remote)->rkey;
	if (side->qp->qp_type == IBV_QPT_UD) {
		wr->wr.ud.ah = req->ah ? req->ah : side->ah;
		wr->wr.ud.remote_qpn = req->qpn ? req->qpn : side->peer_qpn;
		wr->wr.ud.remote_qkey = req->qkey ? req->qkey : UD_QKEY;
	} else if (is_atomic(req)) {
		set_atomic(wr, req, addr, rkey);
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

static void set_argument(struct ibv_send_wr *wr, const struct request *req)
{
	switch (req->op) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = req->inv_rkey;
		break;
	case IBV_WR_BIND_MW:
		wr->bind_mw.mw = req->mw;
		wr->bind_mw.rkey = req->mw_rkey;
		wr->bind_mw.bind_info = req->bind;
		break;
	default:
		wr->imm_data = htobe32(req->imm);
	}
}

static void set_segments(struct ibv_send_wr *wr, const struct side *side,
			 const struct request *req, struct ibv_sge *sge)
{
	if (req->sgl) {
		wr->sg_list = req->sgl;
		wr->num_sge = req->num_sge;
	} else if (req->local) {
		*sge = sge_at(side, req->local, req->loff,
			      is_atomic(req) && !req->len ? 8 : req->len);
		if (req->lkey)
			sge->lkey = req->lkey;
		wr->sg_list = sge;
		wr->num_sge = 1;
	}
}

int post_request(struct side *side, const struct request *req)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = req->wr_id,
		.opcode = req->op,
		.send_flags = req->flags,
	};
	struct ibv_sge sge;

	if (!req->unsignaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	set_segments(&wr, side, req, &sge);
	set_argument(&wr, req);
	if (req->op != IBV_WR_LOCAL_INV && req->op != IBV_WR_BIND_MW)
		set_target(&wr, side, req);
	if (side->qp->qp_type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = req->srqn;
	return ibv_post_send(side->qp, &wr, &bad);
}

int run_request(struct side *side, const struct request *req)
{
	int ret = post_request(side, req);

	return ret ? -abs(ret) : wait_send(side);
}

int post_recv_sgl(struct side *side, struct ibv_sge *sgl, int num_sge,
		  uint64_t wr_id)
{
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = sgl,
		.num_sge = num_sge,
	};

	if (side->srq)
		return ibv_post_srq_recv(side->srq, &wr, &bad);
	return ibv_post_recv(side->qp, &wr, &bad);
}

int post_recv(struct side *side, struct buf *buf, size_t off, size_t len,
	      uint64_t wr_id)
{
	struct ibv_sge sge;

	if (!buf)
		return post_recv_sgl(side, NULL, 0, wr_id);
	sge = sge_at(side, buf, off, len);
	return post_recv_sgl(side, &sge, 1, wr_id);
}

/*
 * On user-mode Linux with several CPUs, a process that runs sees what the kernel has changed in its
 * page tables, as for memory that comes on demand, when it next enters the kernel.
 */
static void see_mappings(void)
{
	getppid();
}

int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct waiter w = waiter_start();
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (n) {
			see_mappings();
			return n == 1 ? 0 : -EIO;
		}
	} while (waiter_pause(&w));
	return -ETIMEDOUT;
}

int wait_send(struct side *side)
{
	int ret = poll_one(side->scq, &side->wc);

	return ret ? ret : (int)side->wc.status;
}

int wait_recv(struct side *side)
{
	int ret = poll_one(side->rcq, &side->rwc);

	return ret ? ret : (int)side->rwc.status;
}

int poll_stray(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	usleep(20000);
	return ibv_poll_cq(cq, 1, &wc);
}

bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1 && (pfd.revents & POLLIN);
}

int wait_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	if (!readable(ctx->async_fd, WAIT_SECONDS * 1000))
		return -ETIMEDOUT;
	if (ibv_get_async_event(ctx, event))
		return -EIO;
	ibv_ack_async_event(event);
	return event->event_type;
}

int wait_channel(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	void *context;

	if (!readable(channel->fd, WAIT_SECONDS * 1000))
		return -ETIMEDOUT;
	if (ibv_get_cq_event(channel, cq, &context))
		return -EIO;
	ibv_ack_cq_events(*cq, 1);
	return 0;
}

long long kept_statistic(const char *name)
{
	long long value = -1;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/%s", dev_name(),
		 name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* More than a jiffy, if there are at least a hundred in a second. */
long long statistic(const char *name)
{
	usleep(15000);
	return kept_statistic(name);
}

int run_child(int (*fn)(void *arg), void *arg)
{
	pid_t child = fork();
	int status, ms;

	if (child < 0)
		return -errno;
	if (!child)
		_exit(fn(arg));
	for (ms = 0; ms < WAIT_SECONDS * 1000; ms++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
		usleep(1000);
	}
	kill(child, SIGKILL);
	return -ETIMEDOUT;
}

long pinned_bytes(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %ld", &kb);
	if (f)
		fclose(f);
	return kb < 0 ? -1 : kb * 1024;
}

int obey_memlock(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &h, caps))
		return -errno;
	caps[0].effective &= ~(1U << CAP_IPC_LOCK);
	return syscall(SYS_capset, &h, caps) ? -errno : 0;
}

int may_pin(long more)
{
	struct rlimit limit;
	long pinned = pinned_bytes();

	if (pinned < 0 || getrlimit(RLIMIT_MEMLOCK, &limit))
		return -EIO;
	limit.rlim_cur = pinned + more;
	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

int udmabuf_create(int memfd, size_t offset, size_t len)
{
	struct udmabuf_create create = { .memfd = memfd, .offset = offset, .size = len };
	int dev = open("/dev/udmabuf", O_RDWR), fd;

	if (dev < 0)
		return -errno;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	fd = fd < 0 ? -errno : fd;
	close(dev);
	return fd;
}

static int udmabuf_of(size_t len, unsigned int flags, int *memfd)
{
	int fd;

	*memfd = memfd_create("udmabuf", MFD_ALLOW_SEALING | flags);
	if (*memfd < 0)
		return -errno;
	if (ftruncate(*memfd, len) || fcntl(*memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = -errno;
	else
		fd = udmabuf_create(*memfd, 0, len);
	if (fd < 0)
		close(*memfd);
	return fd;
}

/* Linux 6.1 exports such memory, but does not map it for the kernel. */
static bool udmabuf_is_mapped(void)
{
	struct utsname uts;
	int major, minor;

	return uname(&uts) || sscanf(uts.release, "%d.%d", &major, &minor) != 2 ||
	       major > 6 || (major == 6 && minor > 1);
}

int udmabuf_open(size_t len, int *memfd)
{
	return udmabuf_is_mapped() ? udmabuf_of(len, 0, memfd) : -ENOENT;
}

int udmabuf_huge(size_t len, int *memfd)
{
	return udmabuf_of(len, MFD_HUGETLB | MFD_HUGE_2MB, memfd);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;
	ssize_t len = strlen(text), written;

	if (fd < 0)
		return -errno;
	/* in one call: files of the kernel take each one for a whole value */
	written = write(fd, text, len);
	if (written != len)
		ret = written < 0 ? -errno : -EIO;
	close(fd);
	return ret;
}

long module_param(const char *name)
{
	char path[128], text[32];
	long value = -EIO;
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	if (fgets(text, sizeof(text), file)) {
		if (*text == 'Y' || *text == 'N')
			value = *text == 'Y';
		else
			sscanf(text, "%ld", &value);
	}
	fclose(file);
	return value;
}

int set_module_param(const char *name, long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	return write_file(path, text);
}

/* Wait until one of two files can be read, or has no writer any more. */
static void wait_either(int one, int other)
{
	struct pollfd fds[] = {
		{ .fd = one, .events = POLLIN },
		{ .fd = other, .events = POLLIN },
	};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
}

/* The keeper's life. @test: pidfd; it can be read when the process of the test has ended. */
static void keep_param(const char *name, long was, int told, int lock, int test)
{
	int failed;

	dup2(told, STDIN_FILENO);
	dup2(lock, STDOUT_FILENO);
	dup2(test, STDERR_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	wait_either(STDIN_FILENO, STDERR_FILENO);
	failed = set_module_param(name, was);
	/* children of the test may have the file open, too */
	flock(STDOUT_FILENO, LOCK_UN);
	_exit(!!failed);
}

static int lock_param(const char *name)
{
	struct patience patience = {};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (!still_patient(&patience, 0)) {
			close(fd);
			return -ETIMEDOUT;
		}
		usleep(1000);
	}
	return fd;
}

static int start_keeper(struct held_param *held, const char *name)
{
	int test = syscall(SYS_pidfd_open, getpid(), 0);
	long was = module_param(name);
	int ends[2], ret;

	if (was < 0 || test < 0 || pipe2(ends, O_CLOEXEC)) {
		ret = was < 0 ? was : -errno;
		close(test);
		return ret;
	}
	held->tell = ends[1];
	held->keeper = fork();
	if (!held->keeper)
		keep_param(name, was, ends[0], held->lock, test);
	/* in a process group of its own, as a test that hangs is killed with its group */
	ret = held->keeper < 0 || setpgid(held->keeper, 0) ? -errno : 0;
	close(ends[0]);
	close(test);
	return ret;
}

int param_hold(struct held_param *held, const char *name, long value)
{
	int ret;

	memset(held, 0, sizeof(*held));
	held->lock = lock_param(name);
	if (held->lock < 0)
		return held->lock;
	ret = start_keeper(held, name) ?: set_module_param(name, value);
	if (ret)
		param_release(held);
	return ret;
}

int param_release(struct held_param *held)
{
	int status = 0, ret = 0;

	if (held->keeper > 0) {
		if (write(held->tell, "", 1) != 1 ||
		    waitpid(held->keeper, &status, 0) != held->keeper || status)
			ret = -EIO;
		close(held->tell);
	}
	if (held->lock > 0)
		close(held->lock);
	memset(held, 0, sizeof(*held));
	return ret;
}

bool over_a_wire(void)
{
	return has_other_side() || module_param("force_roce") > 0;
}

static int bed_open_bufs(struct bed *bed, size_t len)
{
	int ret = buf_open(&bed->src, bed->a->pd, len, 0, ACCESS_REMOTE);

	if (!ret)
		ret = buf_open(&bed->dst, bed->b->pd, len, 0, ACCESS_REMOTE);
	if (!ret)
		ret = buf_twin(&bed->src, bed->b, ACCESS_REMOTE);
	return ret ?: buf_twin(&bed->dst, bed->a, ACCESS_REMOTE);
}

static int bed_open_apart(struct bed *bed, size_t len, const struct pair_opts *opts, bool apart)
{
	int ret = dev_open(&bed->dev);

	bed->a = &bed->pair.a;
	bed->b = &bed->pair.b;
	memset(&bed->peer, 0, sizeof(bed->peer));
	if (!ret && apart) {
		other_side();
		ret = dev_open(&bed->peer);
		other_side();
	}
	if (!ret)
		ret = bed_pair_open(bed, &bed->pair, opts);
	if (!ret)
		ret = pair_connect(&bed->pair);
	return ret ?: bed_open_bufs(bed, len);
}

int bed_open(struct bed *bed, size_t len, const struct pair_opts *opts)
{
	return bed_open_apart(bed, len, opts, has_other_side() && getenv("VRNIC_BEDS_APART"));
}

int bed_pair_open(struct bed *bed, struct pair *pair, const struct pair_opts *opts)
{
	return pair_open_between(pair, &bed->dev, bed->peer.ctx ? &bed->peer : &bed->dev, opts);
}

int bed_close(struct bed *bed)
{
	bool intact = buf_guards_intact(&bed->src) &&
		      buf_guards_intact(&bed->dst);
	int ret = pair_close(&bed->pair);

	buf_close(&bed->src);
	buf_close(&bed->dst);
	dev_close(&bed->peer);
	dev_close(&bed->dev);
	return ret ? ret : intact ? 0 : -EFAULT;
}

int wire_device(void)
{
	return rdma_link_apart(WIRE_DEVICE) ?: setenv("VRNIC_DEV", WIRE_DEVICE, 1);
}

int wire_bed_open(struct wire_bed *wire, size_t len, const struct pair_opts *opts)
{
	int ret;

	/* the first touch: QEMU 7.2 loses the flags of a comparison whose result faults */
	memset(wire, 0, sizeof(*wire));
	ret = wire_device() ?: param_hold(&wire->forced, "force_roce", true);
	return ret ?: bed_open_apart(&wire->bed, len, opts, false);
}

int wire_bed_close(struct wire_bed *wire)
{
	int ret = bed_close(&wire->bed);
	int restored = param_release(&wire->forced);
	int gone = rdma_link_del(WIRE_DEVICE);

	return ret ?: restored ?: gone;
}
