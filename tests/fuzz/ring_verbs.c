// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lanes of verbs: a pair of queue pairs whose send, receive and completion rings
 * are written by hand. A wrong descriptor stops a queue pair. So hundreds of right
 * descriptors come first, and wrong ones come last.
 *
 * XRC has an initiator, a target and an SRQ at either end, and one domain. Most descriptors name
 * the SRQ of the other end, some that of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native_raw.h"
#include "ring.h"
#include "verbs_raw.h"

#define MAX_WR		4096	/* also the entries of a receive ring */
#define CQES		8192
#define ROUND_MAX	2048	/* slots filled for a doorbell */
#define TAIL		16	/* of them, in which something may be wrong */
#define PATIENCE	0.25	/* seconds until a round is given up */
#define INLINE_MAX	200

/**
 * struct verbs - a lane's objects
 * @dev, @pair, @bell: opened for it alone
 * @end: the pair's two ends; XRC: @tgt receives, and @srqn is the number of the SRQ
 * @xrcd: XRC: the domain
 * @buf: registered, with all rights, one for each end
 * @odp: the same with pages on demand; NULL: the kernel cannot
 * @closed: registered, but peers have no right to it
 * @secret: in another domain, @other
 * @mw: window that descriptors bind
 * @ah: UD: number of the address handle of each end
 * @flow: raw packets: the rule of each end
 */
struct verbs {
	struct dev dev;
	struct pair pair;
	int bell;
	struct end {
		struct side *side;
		struct raw_ring ring[RINGS];
		struct side tgt;
		uint32_t srqn;
	} end[2];
	struct ibv_xrcd *xrcd;
	struct buf buf[2];
	struct ibv_mr *odp[2];
	struct buf closed, secret;
	struct ibv_pd *other;
	struct ibv_mw *mw;
	uint32_t ah[2];
	struct ibv_flow *flow[2];
};

static uint32_t slots_of(const struct end *end)
{
	return end->ring[SQ].bytes / VRNIC_SLOT_SIZE;
}

static bool is_xrc(const struct verbs *v)
{
	return v->pair.opts.type == IBV_QPT_XRC_SEND;
}

/* ---- making and mending ---- */

static int connect_side(struct verbs *v, struct side *side, uint32_t peer)
{
	int ret = side_to_init(side, &v->pair.opts);

	if (!ret)
		ret = side_to_rtr(side, &v->pair.opts, peer, &v->dev.gid);
	return ret ? ret : side_to_rts(side, &v->pair.opts);
}

/* The initiator of end @i with the target of the other end. */
static int connect_xrc(struct verbs *v, int i)
{
	struct pair_opts opts = v->pair.opts;
	struct side *ini = v->end[i].side, *tgt = &v->end[!i].tgt;
	int ret = connect_side(v, ini, tgt->qp->qp_num);

	opts.type = IBV_QPT_XRC_RECV;
	return ret ? ret : side_connect(tgt, &opts, ini->qp->qp_num, &v->dev.gid);
}

static int connect_both(struct verbs *v)
{
	struct side *a = &v->pair.a, *b = &v->pair.b;
	int ret;

	if (is_xrc(v))
		return connect_xrc(v, 0) ?: connect_xrc(v, 1);
	ret = connect_side(v, a, b->qp->qp_num);
	return ret ? ret : connect_side(v, b, a->qp->qp_num);
}

/* Taken, and not looked at. */
static void drain(struct raw_ring *ring)
{
	__atomic_store_n(&ring->hdr->cons,
			 __atomic_load_n(&ring->hdr->prod, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static void drain_all(struct verbs *v)
{
	int i;

	for (i = 0; i < 2; i++) {
		drain(&v->end[i].ring[SCQ]);
		drain(&v->end[i].ring[RCQ]);
	}
}

static void drain_events(struct verbs *v)
{
	struct ibv_async_event event;

	while (readable(v->dev.ctx->async_fd, 0) &&
	       !ibv_get_async_event(v->dev.ctx, &event))
		ibv_ack_async_event(&event);
}

static int reset_end(struct end *end)
{
	int ret = qp_to(end->side->qp, IBV_QPS_RESET);

	return ret || !end->tgt.qp ? ret : qp_to(end->tgt.qp, IBV_QPS_RESET);
}

/* What was done to the rings has to be healed by this. */
static int mend(struct verbs *v)
{
	int ret = reset_end(&v->end[0]) ?: reset_end(&v->end[1]);

	drain_all(v);
	drain_events(v);
	return ret ? ret : connect_both(v);
}

/* The number by which a descriptor names an address handle is in one that was posted. */
static int learn_ah(struct verbs *v, int i)
{
	struct end *end = &v->end[i];
	struct vrnic_desc *d = (struct vrnic_desc *)end->ring[SQ].slots;
	const union ibv_gid *gid = &v->dev.gid;
	struct ibv_ah_attr attr = {
		.port_num = 1, .is_global = 1,
		.grh = { .dgid = *gid, .sgid_index = v->dev.gid_index,
			 .hop_limit = 64 },
	};
	int ret;

	end->side->ah = ibv_create_ah(v->dev.pd, &attr);
	if (!end->side->ah)
		return -errno;
	ret = POST(end->side, .op = IBV_WR_SEND, .local = &v->buf[i], .len = 8,
		   .ah = end->side->ah, .qpn = v->end[!i].side->qp->qp_num,
		   .qkey = UD_QKEY);
	v->ah[i] = d->ah;
	return ret;
}

static struct ibv_srq *open_xsrq(struct verbs *v, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = MAX_WR, .max_sge = v->pair.opts.max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = v->dev.pd, .xrcd = v->xrcd, .cq = cq,
	};

	return ibv_create_srq_ex(v->dev.ctx, &attr);
}

static struct ibv_qp *open_ini(struct verbs *v, struct ibv_cq *cq)
{
	struct pair_opts *opts = &v->pair.opts;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = cq,
		.cap = { .max_send_wr = MAX_WR, .max_send_sge = opts->max_sge,
			 .max_inline_data = opts->max_inline },
	};

	return ibv_create_qp(v->dev.pd, &attr);
}

static struct ibv_qp *open_tgt(struct verbs *v)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = v->xrcd,
	};

	return ibv_create_qp_ex(v->dev.ctx, &attr);
}

static int open_xrc_end(struct verbs *v, struct end *end)
{
	struct side *side = end->side;
	struct raw_seen seen;

	raw_see(&seen);
	side->dev = &v->dev;
	end->tgt.dev = &v->dev;
	side->pd = v->dev.pd;
	side->scq = ibv_create_cq(v->dev.ctx, CQES, NULL, NULL, 0);
	side->rcq = ibv_create_cq(v->dev.ctx, CQES, NULL, NULL, 0);
	if (!side->scq || !side->rcq)
		return -errno;
	side->srq = open_xsrq(v, side->rcq);
	side->qp = open_ini(v, side->scq);
	end->tgt.qp = open_tgt(v);
	if (!side->srq || !side->qp || !end->tgt.qp)
		return -errno;
	return -ibv_get_srq_num(side->srq, &end->srqn) ?:
	       raw_new_rings(&seen, true, end->ring);
}

static int open_xrc(struct verbs *v)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	v->xrcd = ibv_open_xrcd(v->dev.ctx, &attr);
	if (!v->xrcd)
		return -errno;
	return open_xrc_end(v, &v->end[0]) ?: open_xrc_end(v, &v->end[1]) ?: connect_both(v);
}

/* The targets before the SRQs, and these before the domain. */
static int close_ends(struct verbs *v)
{
	int ret = side_close(&v->end[0].tgt) ?: side_close(&v->end[1].tgt) ?: pair_close(&v->pair);

	if (!ret && v->xrcd)
		ret = ibv_close_xrcd(v->xrcd);
	return -ret;
}

/* Each end gets all frames of the interface, which go on to whom they are for. */
static int open_flow(struct verbs *v, int i)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1,
		.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP,
	};

	v->flow[i] = ibv_create_flow(v->end[i].side->qp, &attr);
	return v->flow[i] ? 0 : -errno;
}

/* One of the queues has a timer. */
static int moderate(struct ibv_cq *cq)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 3, .cq_period = 50 },
	};

	return -ibv_modify_cq(cq, &attr);
}

static int open_ends(struct verbs *v, enum ibv_qp_type type)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.type = type, .max_wr = MAX_WR, .cqe = CQES, .timeout = 8,
		.retry = 1, .rnr_retry = NO_RETRY, .max_inline = INLINE_MAX,
	});
	bool srq = type == IBV_QPT_RC;
	int ret;

	v->pair.opts = opts;
	v->end[0].side = &v->pair.a;
	v->end[1].side = &v->pair.b;
	if (is_xrc(v))
		return open_xrc(v);
	ret = raw_side_open(&v->pair.a, &v->dev, &opts, false, v->end[0].ring);
	if (!ret)
		ret = raw_side_open(&v->pair.b, &v->dev, &opts, srq,
				    v->end[1].ring);
	if (!ret)
		ret = moderate(v->pair.b.rcq);
	if (!ret)
		ret = connect_both(v);
	if (!ret && type == IBV_QPT_UD)
		ret = learn_ah(v, 0) ?: learn_ah(v, 1);
	if (!ret && type == IBV_QPT_RAW_PACKET)
		ret = open_flow(v, 0) ?: open_flow(v, 1);
	return ret;
}

static int open_on_demand(struct verbs *v, int end)
{
	v->odp[end] = ibv_reg_mr(v->dev.pd, v->buf[end].addr, LANE_BUF,
				 ACCESS_REMOTE | IBV_ACCESS_ON_DEMAND);
	return v->odp[end] || errno == EOPNOTSUPP ? 0 : -errno;
}

static int open_memory(struct verbs *v)
{
	int ret = buf_open(&v->buf[0], v->dev.pd, LANE_BUF, 0,
			   ACCESS_REMOTE | IBV_ACCESS_MW_BIND);

	if (!ret)
		ret = buf_open(&v->buf[1], v->dev.pd, LANE_BUF, 0,
			       ACCESS_REMOTE | IBV_ACCESS_MW_BIND);
	if (!ret)
		ret = open_on_demand(v, 0) ?: open_on_demand(v, 1);
	if (!ret)
		ret = buf_open(&v->closed, v->dev.pd, SECRET_LEN, 0, 0);
	v->other = ibv_alloc_pd(v->dev.ctx);
	v->mw = ibv_alloc_mw(v->dev.pd, IBV_MW_TYPE_2);
	if (!v->other || !v->mw)
		return -errno;
	if (!ret)
		ret = buf_open(&v->secret, v->other, SECRET_LEN, 0, ACCESS_REMOTE);
	if (!ret) {
		buf_fill(&v->secret, 1);
		buf_fill(&v->closed, 2);
	}
	return ret;
}

/* A vandal's send ring is cheap: a reset heals it. A completion ring is not. */
static void add_areas(struct lane *lane, struct verbs *v)
{
	struct raw_ring *ring;
	int i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < RINGS; k++) {
			ring = &v->end[i].ring[k];
			lane_area(lane, ring->hdr, sizeof(*ring->hdr),
				  k == SQ || k == RQ ? 4 : 200);
			lane_area(lane, ring->slots, ring->bytes, 1);
		}
	}
}

static int lane_open(struct lane *lane, enum ibv_qp_type type)
{
	struct verbs *v = calloc(1, sizeof(*v));
	int ret;

	lane->priv = v;
	if (!v)
		return -ENOMEM;
	v->bell = -1;
	ret = dev_open(&v->dev);
	if (!ret)
		ret = open_memory(v);
	if (!ret)
		ret = open_ends(v, type);
	if (ret)
		return ret;
	v->bell = raw_open_bell(v->dev.ctx);
	if (v->bell < 0)
		return v->bell;
	add_areas(lane, v);
	return 0;
}

static int rc_open(struct lane *lane) { return lane_open(lane, IBV_QPT_RC); }
static int uc_open(struct lane *lane) { return lane_open(lane, IBV_QPT_UC); }
static int ud_open(struct lane *lane) { return lane_open(lane, IBV_QPT_UD); }
static int xrc_open(struct lane *lane) { return lane_open(lane, IBV_QPT_XRC_SEND); }
static int packet_open(struct lane *lane) { return lane_open(lane, IBV_QPT_RAW_PACKET); }

static bool untouched(struct verbs *v)
{
	return buf_guards_intact(&v->buf[0]) && buf_guards_intact(&v->buf[1]) &&
	       buf_guards_intact(&v->closed) && buf_guards_intact(&v->secret) &&
	       buf_differs(&v->secret, 0, SECRET_LEN, 1, 0) < 0 &&
	       buf_differs(&v->closed, 0, SECRET_LEN, 2, 0) < 0;
}

static int verbs_close(struct lane *lane)
{
	struct verbs *v = lane->priv;
	int i, ret;

	drain_events(v);
	for (i = 0; i < 2; i++)
		if (v->flow[i])
			ibv_destroy_flow(v->flow[i]);
	ret = close_ends(v);
	if (!ret && !untouched(v))
		ret = -EFAULT;
	ibv_dealloc_mw(v->mw);
	for (i = 0; i < 2; i++) {
		if (v->odp[i])
			ibv_dereg_mr(v->odp[i]);
		buf_close(&v->buf[i]);
	}
	buf_close(&v->closed);
	buf_close(&v->secret);
	if (!ret)
		ret = -ibv_dealloc_pd(v->other);
	close(v->bell);
	dev_close(&v->dev);
	free(v);
	lane->priv = NULL;
	return ret;
}

/* ---- descriptors ---- */

/**
 * struct batch - what a round posts to one end
 * @v: the lane's
 * @rng: of this round
 * @from: which end
 * @at: index of the next slot
 * @left: slots that may still be filled
 * @receives: that the other end needs for it
 */
struct batch {
	struct verbs *v;
	struct rng *rng;
	int from;
	uint32_t at;
	uint32_t left;
	uint32_t receives;
};

static uint64_t some_addr(struct batch *b, int end, uint32_t len)
{
	return (uintptr_t)b->v->buf[end].addr +
	       (rng_below(b->rng, LANE_BUF - len) & ~7U);
}

/* A region of an end: pinned, or now and then on demand, and then a page may be missing. */
static struct ibv_mr *some_region(struct batch *b, int end)
{
	struct verbs *v = b->v;

	if (!v->odp[end] || !rng_one_in(b->rng, 4))
		return v->buf[end].mr;
	if (rng_one_in(b->rng, 64))
		madvise(v->buf[end].addr + rng_below(b->rng, LANE_BUF / 4096) * 4096, 4096,
			MADV_DONTNEED);
	return v->odp[end];
}

static struct vrnic_sge some_sge(struct batch *b, uint32_t max)
{
	uint32_t len = 8 + rng_below(b->rng, max - 7);

	return (struct vrnic_sge){
		.addr = some_addr(b, b->from, len),
		.length = len,
		.lkey = some_region(b, b->from)->lkey,
	};
}

/* What goes into descriptors, so often. */
struct choice {
	uint8_t opcode;
	uint8_t weight;
};

static const struct choice rc_choices[] = {
	{ VRNIC_OP_RDMA_WRITE, 40 }, { VRNIC_OP_RDMA_READ, 20 },
	{ VRNIC_OP_SEND, 10 }, { VRNIC_OP_SEND_WITH_IMM, 4 },
	{ VRNIC_OP_RDMA_WRITE_WITH_IMM, 4 }, { VRNIC_OP_ATOMIC_WRITE, 4 },
	{ VRNIC_OP_ATOMIC_CMP_AND_SWP, 6 }, { VRNIC_OP_ATOMIC_FETCH_AND_ADD, 6 },
	{ VRNIC_OP_NOP, 6 },
};

static const struct choice uc_choices[] = {
	{ VRNIC_OP_RDMA_WRITE, 60 }, { VRNIC_OP_SEND, 16 },
	{ VRNIC_OP_SEND_WITH_IMM, 8 }, { VRNIC_OP_RDMA_WRITE_WITH_IMM, 8 },
	{ VRNIC_OP_NOP, 8 },
};

static const struct choice ud_choices[] = {
	{ VRNIC_OP_SEND, 60 }, { VRNIC_OP_SEND_WITH_IMM, 30 },
	{ VRNIC_OP_NOP, 10 },
};

static const struct choice raw_choices[] = {
	{ VRNIC_OP_SEND, 90 }, { VRNIC_OP_NOP, 10 },
};

/* Those that change what keys stand for, or that most queue pairs refuse. */
static const struct choice odd_choices[] = {
	{ VRNIC_OP_BIND_MW, 40 }, { VRNIC_OP_LOCAL_INV, 20 },
	{ VRNIC_OP_SEND_WITH_INV, 20 }, { VRNIC_OP_FLUSH, 15 },
	{ VRNIC_OP_REG_MR, 5 },
};

static uint8_t choose(struct rng *rng, const struct choice *c)
{
	uint32_t dice = rng_below(rng, 100);

	while (dice >= c->weight)
		dice -= c++->weight;
	return c->opcode;
}

static uint8_t some_opcode(struct batch *b, bool odd)
{
	if (odd)
		return choose(b->rng, odd_choices);
	switch (b->v->pair.opts.type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return choose(b->rng, rc_choices);
	case IBV_QPT_UC:
		return choose(b->rng, uc_choices);
	case IBV_QPT_RAW_PACKET:
		return choose(b->rng, raw_choices);
	default:
		return choose(b->rng, ud_choices);
	}
}

static void set_inline(struct batch *b, struct vrnic_desc *d)
{
	d->flags |= VRNIC_DESC_INLINE;
	d->inline_len = rng_below(b->rng, rng_one_in(b->rng, 8) ?
				  INLINE_MAX : VRNIC_DESC_DATA + 1);
	if (d->inline_len > VRNIC_DESC_DATA)
		d->num_slots += (d->inline_len - VRNIC_DESC_DATA +
				 VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE;
}

/* Segments beyond the second lie in the slots that follow. */
static void set_segments(struct batch *b, struct vrnic_desc *d)
{
	uint32_t i;

	d->num_sge = rng_one_in(b->rng, 16) ? 3 + rng_below(b->rng, 5) :
					      1 + rng_below(b->rng, 2);
	for (i = 0; i < VRNIC_DESC_SGES; i++)
		d->sge[i] = some_sge(b, 24);
	if (d->num_sge > VRNIC_DESC_SGES)
		d->num_slots += (d->num_sge - VRNIC_DESC_SGES +
				 VRNIC_SLOT_SGES - 1) / VRNIC_SLOT_SGES;
}

static void set_data(struct batch *b, struct vrnic_desc *d, bool may_inline)
{
	if (may_inline && rng_one_in(b->rng, 2))
		set_inline(b, d);
	else
		set_segments(b, d);
}

static void set_atomic(struct batch *b, struct vrnic_desc *d)
{
	d->num_sge = 1;
	d->atomic.sge = some_sge(b, 8);
	d->atomic.swap_add = rng_next(b->rng);
	d->atomic.compare = rng_below(b->rng, 2);
}

static void set_bind(struct batch *b, struct vrnic_desc *d)
{
	uint32_t len = rng_below(b->rng, 4096);

	d->bind.addr = some_addr(b, b->from, len);
	d->bind.length = len;
	d->bind.lkey = b->v->buf[b->from].mr->lkey;
	d->bind.old_rkey = b->v->mw->rkey;
	d->bind.new_rkey = (b->v->mw->rkey & ~0xffU) | rng_below(b->rng, 256);
	d->bind.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
}

static void set_target(struct batch *b, struct vrnic_desc *d)
{
	int to = !b->from;

	if (b->v->pair.opts.type == IBV_QPT_UD) {
		d->ah = b->v->ah[b->from];
		d->dest_qpn = b->v->end[to].side->qp->qp_num;
		d->qkey = UD_QKEY;
		return;
	}
	d->remote_addr = some_addr(b, to, 256);
	d->rkey = rng_one_in(b->rng, 64) ? b->v->mw->rkey :
					   some_region(b, to)->rkey;
}

/* One that is right; or odd: one that would be, in some other state of things. */
static struct vrnic_desc some_desc(struct batch *b, bool odd)
{
	struct vrnic_desc d = {
		.opcode = some_opcode(b, odd),
		.flags = rng_one_in(b->rng, 16) ? VRNIC_DESC_SIGNALED : 0,
		.num_slots = 1,
		.cookie = rng_next(b->rng),
	};

	if (!odd && d.opcode != VRNIC_OP_NOP)
		set_target(b, &d);
	/* a key out of place is an error on RC, and those come last */
	if (!odd && (b->v->pair.opts.type == IBV_QPT_RC || is_xrc(b->v)))
		d.rkey = some_region(b, !b->from)->rkey;
	switch (d.opcode) {
	case VRNIC_OP_SEND_WITH_INV:
	case VRNIC_OP_LOCAL_INV:
		d.imm = rng_one_in(b->rng, 8) ? b->v->closed.mr->lkey :
						b->v->mw->rkey;
		break;
	case VRNIC_OP_SEND:
	case VRNIC_OP_SEND_WITH_IMM:
	case VRNIC_OP_RDMA_WRITE:
	case VRNIC_OP_RDMA_WRITE_WITH_IMM:
		set_data(b, &d, true);
		break;
	case VRNIC_OP_RDMA_READ:
		set_data(b, &d, false);
		break;
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		d.remote_addr &= ~7ULL;
		set_atomic(b, &d);
		break;
	case VRNIC_OP_ATOMIC_WRITE:
		d.flags |= VRNIC_DESC_INLINE;
		d.inline_len = 8;
		break;
	case VRNIC_OP_FLUSH:
		set_target(b, &d);
		d.flush = VRNIC_FLUSH_GLOBAL |
			  (rng_one_in(b->rng, 2) ? VRNIC_FLUSH_MR : 0);
		d.flush_len = rng_below(b->rng, 128);
		break;
	case VRNIC_OP_BIND_MW:
		set_bind(b, &d);
		break;
	}
	return d;
}

/* XRC: name an SRQ. An odd descriptor may name none, or one that is not there. */
static void name_srq(struct batch *b, struct vrnic_desc *d, bool odd)
{
	uint32_t srqn = b->v->end[!b->from].srqn;

	if (!is_xrc(b->v) || (odd && rng_one_in(b->rng, 8)))
		return;
	if (rng_one_in(b->rng, 16))
		srqn = b->v->end[b->from].srqn;
	if (odd && rng_one_in(b->rng, 8))
		srqn = rng_next(b->rng);
	d->num_slots |= VRNIC_XRC_IN_SLOTS(srqn);
	d->num_sge |= VRNIC_XRC_IN_LEN(srqn);
}

static uint32_t slots_in(struct batch *b, const struct vrnic_desc *d)
{
	return is_xrc(b->v) ? d->num_slots & VRNIC_XRC_SLOTS : d->num_slots;
}

static bool takes_receive(const struct vrnic_desc *d)
{
	return d->opcode == VRNIC_OP_SEND ||
	       d->opcode == VRNIC_OP_SEND_WITH_IMM ||
	       d->opcode == VRNIC_OP_SEND_WITH_INV ||
	       d->opcode == VRNIC_OP_RDMA_WRITE_WITH_IMM;
}

static void *next_slot(struct batch *b)
{
	struct end *end = &b->v->end[b->from];
	uint32_t slot = b->at++ & (slots_of(end) - 1);

	b->left--;
	return end->ring[SQ].slots + (size_t)slot * VRNIC_SLOT_SIZE;
}

/* Into the ring, with the slots that follow it. */
static void put_desc(struct batch *b, const struct vrnic_desc *d)
{
	uint32_t i, slots = slots_in(b, d);
	struct vrnic_sge *sge;

	memcpy(next_slot(b), d, sizeof(*d));
	/* one that lies about its slots takes what is there */
	while (--slots && slots < VRNIC_MAX_SLOTS && b->left) {
		sge = next_slot(b);
		for (i = 0; i < VRNIC_SLOT_SGES; i++)
			sge[i] = some_sge(b, 24);
	}
}

/* Receives for all of them, now and then with one that makes no sense. */
static void post_receives(struct batch *b)
{
	struct raw_ring *rq = &b->v->end[!b->from].ring[RQ];
	size_t stride = rq->bytes / MAX_WR;
	uint32_t prod = rq->hdr->prod, room = MAX_WR - (prod - rq->hdr->cons);
	uint32_t i, n = b->receives < room ? b->receives : room;
	struct vrnic_recv_desc *d;
	int end = b->from;

	b->from = !end;
	for (i = 0; i < n && n <= MAX_WR; i++) {
		d = (void *)(rq->slots + ((prod + i) & (MAX_WR - 1)) * stride);
		d->cookie = prod + i;
		d->num_sge = 1;
		d->sge[0] = some_sge(b, 8);
		d->sge[0].length = 1024;
		d->sge[0].addr = some_addr(b, b->from, 1024);
		if (rng_one_in(b->rng, 4096))
			rng_mutate(b->rng, d, sizeof(*d) + sizeof(d->sge[0]));
	}
	b->from = end;
	__atomic_store_n(&rq->hdr->prod, prod + i, __ATOMIC_RELEASE);
}

/* Return: true if something may have gone wrong. */
static bool fill(struct batch *b, bool noise)
{
	bool wrong = rng_one_in(b->rng, 2), odd;
	struct vrnic_desc d;

	while (b->left) {
		odd = wrong && b->left < TAIL && rng_one_in(b->rng, 3);
		d = some_desc(b, odd);
		name_srq(b, &d, odd);
		if (noise && rng_one_in(b->rng, 4))
			rng_fill(b->rng, &d, sizeof(d));
		if (wrong && b->left < TAIL && rng_one_in(b->rng, 3))
			rng_mutate(b->rng, &d, sizeof(d));
		b->receives += takes_receive(&d);
		/* all of its slots, or none: it would be wrong otherwise */
		if (!wrong && slots_in(b, &d) > b->left)
			d = (struct vrnic_desc){ .num_slots = 1 };
		put_desc(b, &d);
	}
	return wrong || noise;
}

/* An index far from, or near to, what it should be. */
static void publish(struct batch *b, bool wild)
{
	struct vrnic_ring_hdr *hdr = b->v->end[b->from].ring[SQ].hdr;
	uint32_t prod = b->at;

	if (wild)
		prod += rng_one_in(b->rng, 2) ? rng_value(b->rng) :
						rng_below(b->rng, 65) - 32;
	__atomic_store_n(&hdr->prod, prod, __ATOMIC_SEQ_CST);
}

/* ---- a round ---- */

static int post(struct verbs *v, struct rng *rng, int from, bool *doubtful)
{
	bool noise = rng_one_in(rng, 64), wild = rng_one_in(rng, 256);
	struct batch b = {
		.v = v, .rng = rng, .from = from,
		.at = v->end[from].ring[SQ].hdr->prod,
		.left = noise ? 32 : ROUND_MAX >> rng_below(rng, 4),
	};
	uint32_t slots = slots_of(&v->end[from]);

	if (b.left > slots)
		b.left = slots;
	*doubtful |= fill(&b, noise) || wild;
	post_receives(&b);
	publish(&b, wild);
	return raw_ring_bell(v->bell, v->end[from].side->qp->qp_num);
}

static bool is_done(const struct end *end)
{
	return __atomic_load_n(&end->ring[SQ].hdr->cons, __ATOMIC_ACQUIRE) ==
	       end->ring[SQ].hdr->prod;
}

/* False if it waits in vain. */
static bool wait_done(struct verbs *v)
{
	double end = now() + PATIENCE;
	int looks = 0;

	while (!is_done(&v->end[0]) || !is_done(&v->end[1])) {
		if (++looks > 4 && now() > end)
			return false;
		usleep(100);
	}
	return true;
}

static bool cq_failed(struct verbs *v)
{
	int i, flags = 0;

	for (i = 0; i < 2; i++)
		flags |= v->end[i].ring[SCQ].hdr->flags |
			 v->end[i].ring[RCQ].hdr->flags;
	return flags & VRNIC_RING_ERROR;
}

static bool both_run(struct verbs *v)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (qp_state(v->end[i].side->qp) != IBV_QPS_RTS ||
		    (v->end[i].tgt.qp && qp_state(v->end[i].tgt.qp) != IBV_QPS_RTS))
			return false;
	}
	return true;
}

static int verbs_round(struct lane *lane, struct rng *rng)
{
	struct verbs *v = lane->priv;
	bool doubtful = false;
	int ret = post(v, rng, rng_below(rng, 2), &doubtful);

	if (!ret && rng_one_in(rng, 4))
		ret = post(v, rng, rng_below(rng, 2), &doubtful);
	if (ret)
		return ret;
	if (!wait_done(v))
		doubtful = true;
	drain_all(v);
	if (cq_failed(v))
		return -EAGAIN;
	/* a vandal leaves no note; so it is looked at now and then in any case */
	if ((doubtful || lane->rounds % 16 == 0) && !both_run(v)) {
		lane->mended++;
		return mend(v);
	}
	return 0;
}

const struct lane_ops lane_rc = {
	.name = "rc", .open = rc_open, .round = verbs_round, .close = verbs_close,
};

const struct lane_ops lane_uc = {
	.name = "uc", .open = uc_open, .round = verbs_round, .close = verbs_close,
};

const struct lane_ops lane_ud = {
	.name = "ud", .open = ud_open, .round = verbs_round, .close = verbs_close,
};

const struct lane_ops lane_xrc = {
	.name = "xrc", .open = xrc_open, .round = verbs_round, .close = verbs_close,
};

const struct lane_ops lane_raw = {
	.name = "raw", .open = packet_open, .round = verbs_round, .close = verbs_close,
};
