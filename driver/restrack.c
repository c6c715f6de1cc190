// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What `rdma resource show -dd` tells about an object beside what the core knows: for an operator
 * who asks why a queue pair does not go on.
 *
 * While the core calls a function of this file, it keeps the memory of its own object. Cores with
 * rdma_restrack_begin_del() also keep the driver's part; others may be running the destroy
 * function. So a queue pair is looked up, with a reference that its destroy function waits for; the
 * ring of a completion queue or of a shared receive queue is read under the lock under which the
 * destroy function (and resize_cq()) takes it away; and a connection over the wire, which
 * modify_qp() ends, is read under RCU. A runner may change all values meanwhile, so the values of
 * one object need not fit each other.
 *
 * The words that a process writes into its rings (the tail of a ring that it fills, the head of a
 * ring that it empties, arm) are shown as they are, without a check: nonsense in them is what an
 * operator looks for. Nothing here uses them as an index.
 *
 * Every user may ask. Only CAP_NET_ADMIN gets to know addresses, because they tell where a process
 * has its memory, and the PSNs of a connection, because they are what a forged packet needs. The
 * core shows every user the first PSNs, so the numbers of messages since then are secret, too.
 */

#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/net.h>
#include <linux/user_namespace.h>
#include <net/netlink.h>
#include <net/sock.h>
#include <rdma/restrack.h>
#include <rdma/rdma_netlink.h>

#include "base/stats.h"
#include "device.h"
#include "lib/psn.h"
#include "mem/mem.h"
#include "queue/cq.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/ring_mem.h"
#include "queue/srq.h"
#include "roce/roce.h"
#include "vrnic.h"

/**
 * struct details - the driver's part of a message about an object
 * @msg: the message
 * @table: the attribute that the details are in
 * @admin: the user who asks may know addresses and PSNs
 * @err: -EMSGSIZE: the message has no room for all
 */
struct details {
	struct sk_buff *msg;
	struct nlattr *table;
	bool admin;
	int err;
};

/*
 * May the user who asks know addresses and PSNs? A list comes in parts, whenever a task reads from
 * the socket. So both that task and the one that opened the socket have to be privileged. (The
 * answer about a single object does not tell its socket.)
 */
static bool is_admins(const struct sk_buff *msg)
{
	const struct socket *sock = msg->sk ? msg->sk->sk_socket : NULL;

	/* without an entry in the audit log: most users may not, and did not ask for it */
	if (!ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN))
		return false;
	return !sock || !sock->file || file_ns_capable(sock->file, &init_user_ns, CAP_NET_ADMIN);
}

static struct details details_begin(struct sk_buff *msg)
{
	struct details d = {
		.msg = msg,
		.table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER),
		.admin = is_admins(msg),
	};

	if (!d.table)
		d.err = -EMSGSIZE;
	return d;
}

static int details_end(struct details *d)
{
	if (!d->err)
		nla_nest_end(d->msg, d->table);
	else if (d->table)
		nla_nest_cancel(d->msg, d->table);
	return d->err;
}

static void put_u32(struct details *d, const char *name, u32 value)
{
	if (!d->err)
		d->err = rdma_nl_put_driver_u32(d->msg, name, value);
}

static void put_hex(struct details *d, const char *name, u32 value)
{
	if (!d->err)
		d->err = rdma_nl_put_driver_u32_hex(d->msg, name, value);
}

static void put_string(struct details *d, const char *name, const char *value)
{
	if (!d->err)
		d->err = rdma_nl_put_driver_string(d->msg, name, value);
}

/*
 * There is no function for 64 bits. Before such an attribute some kernels put another one, so that
 * it is aligned, and rdma(8) shows nothing that is behind that.
 */
static void put_address(struct details *d, const char *name, u64 value)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%llx", value);
	put_string(d, name, text);
}

/* Bytes a second as kbit/s, the unit of rate limits. */
static void put_rate(struct details *d, const char *name, u64 rate)
{
	put_u32(d, name, min_t(u64, rate / 125, U32_MAX));
}

static void put_us(struct details *d, const char *name, u64 ns)
{
	put_u32(d, name, min_t(u64, ns / NSEC_PER_USEC, U32_MAX));
}

/**
 * struct ring_names - names of what put_ring() shows
 * @entries: number of entries
 * @head: index of the next entry that the kernel takes
 * @tail: index behind the last entry that the owner filled
 * @filled: number of entries in between
 */
struct ring_names {
	const char *entries;
	const char *head;
	const char *tail;
	const char *filled;
};

static const struct ring_names sq_names = { "sq_entries", "sq_head", "sq_tail", "sq_filled" };
static const struct ring_names rq_names = { "rq_entries", "rq_head", "rq_tail", "rq_posted" };
static const struct ring_names srq_names = { "entries", "head", "tail", "posted" };

/* Put what is known of a ring that its owner fills. Return: number of entries that wait. */
static u32 put_ring(struct details *d, const struct vrnic_ring *ring,
		    const struct ring_names *names)
{
	u32 head = VRNIC_PEEK(ring->idx), tail = READ_ONCE(ring->hdr->prod);

	put_u32(d, names->entries, ring->entries);
	if (d->admin) {
		put_u32(d, names->head, head);
		put_u32(d, names->tail, tail);
	}
	put_u32(d, names->filled, tail - head);
	return tail - head;
}

/* ---- queue pairs ---- */

static const char *const wait_names[] = {
	[VRNIC_WAIT_RNR] = "rnr",
	[VRNIC_WAIT_PEER] = "peer",
	[VRNIC_WAIT_BUSY] = "busy",
	[VRNIC_WAIT_KEY] = "key",
	[VRNIC_WAIT_WIRE] = "wire",
	[VRNIC_WAIT_FULL] = "full",
	[VRNIC_WAIT_PAGE] = "page",
};

/* Why does the send ring not go on? Only the runner of a ring without a window says so in @op. */
static const char *local_waits(const struct vrnic_qp *qp, u32 filled)
{
	u64 now = ktime_get_ns();
	u8 why = VRNIC_PEEK(qp->op.waits);

	if (READ_ONCE(qp->state) < IB_QPS_RTS)
		return filled ? "state" : "nothing";
	if (VRNIC_PEEK(qp->paid_at) > now)
		return "rate";
	if (VRNIC_PEEK(qp->op.active) && VRNIC_PEEK(qp->run.wait_until) > now &&
	    why < ARRAY_SIZE(wait_names))
		return wait_names[why];
	return filled ? "run" : "nothing";
}

/* The same for a window: the requester has packets to send, or waits for answers, or for a run. */
static const char *window_waits(const struct vrnic_qp *qp, const struct vrnic_req *q, u32 filled)
{
	u64 una = VRNIC_PEEK(q->fly.una), cur = VRNIC_PEEK(q->fly.cur);
	u64 hold = VRNIC_PEEK(q->fly.hold);

	if (READ_ONCE(qp->state) < IB_QPS_RTS)
		return filled ? "state" : "nothing";
	if (VRNIC_PEEK(q->rnr_until))
		return "rnr";
	if (VRNIC_PEEK(qp->paid_at) > ktime_get_ns())
		return "rate";
	if (VRNIC_PEEK(q->fly.send) != VRNIC_PEEK(q->fly.tail)) {
		if (hold && cur >= hold)
			return "loss";
		return cur - una >= VRNIC_PEEK(q->window) ? "window" : "answer";
	}
	if (una != cur)
		return "ack";
	return filled ? "run" : "nothing";
}

/* The operation in progress, of a queue pair that executes one at a time. */
static void put_op(struct details *d, const struct vrnic_qp *qp)
{
	/* a row of a constant table */
	const struct vrnic_opdef *info = VRNIC_PEEK(qp->op.info);
	bool active = VRNIC_PEEK(qp->op.active);

	put_u32(d, "sq_active", active);
	if (!active)
		return;
	if (info)
		put_string(d, "op", info->name);
	put_u32(d, "op_bytes", VRNIC_PEEK(qp->op.total));
	put_u32(d, "op_moved", VRNIC_PEEK(qp->op.done));
	put_u32(d, "rnr_left", VRNIC_PEEK(qp->op.rnr_left));
	put_u32(d, "retry_left", VRNIC_PEEK(qp->op.retry_left));
}

/* The window of an RC queue pair whose peer is on another host. @roce is kept by RCU. */
static void put_window(struct details *d, const struct vrnic_roce *roce)
{
	const struct vrnic_req *q = &roce->req;

	put_u32(d, "sq_active", VRNIC_PEEK(q->fly.tail) - VRNIC_PEEK(q->fly.head));
	put_u32(d, "window", VRNIC_PEEK(q->window));
	put_u32(d, "window_bytes", VRNIC_PEEK(q->window) * roce->mtu);
	put_u32(d, "flight", VRNIC_PEEK(q->fly.cur) - VRNIC_PEEK(q->fly.una));
	put_u32(d, "reads", VRNIC_PEEK(q->fly.reads));
	put_us(d, "rtt_us", VRNIC_PEEK(q->rtt));
	put_us(d, "rtt_var_us", VRNIC_PEEK(q->rtt_var));
	put_u32(d, "rnr_left", VRNIC_PEEK(q->rnr_left));
	put_u32(d, "retry_left", VRNIC_PEEK(q->retry_left));
	if (!d->admin)
		return;
	put_u32(d, "unacked_psn", VRNIC_PEEK(q->fly.una) & VRNIC_PSN_MASK);
	put_u32(d, "send_psn", VRNIC_PEEK(q->fly.cur) & VRNIC_PSN_MASK);
}

static void put_wire(struct details *d, const struct vrnic_roce *roce)
{
	const struct vrnic_reply *reply = &roce->resp.reply;

	put_u32(d, "mtu", roce->mtu);
	put_rate(d, "cc_rate", VRNIC_PEEK(roce->cc.rate));
	put_u32(d, "early_bytes",
		VRNIC_PEEK(roce->req.early.room.bytes) + VRNIC_PEEK(roce->resp.early.room.bytes));
	put_u32(d, "read_left", VRNIC_PEEK(reply->active) ? VRNIC_PEEK(reply->left) : 0);
	if (d->admin)
		put_u32(d, "expected_psn", VRNIC_PEEK(roce->resp.served.psn) & VRNIC_PSN_MASK);
}

/* How messages reach the peer: verbs/flow.h. */
static const char *flow_of(const struct vrnic_qp *qp, const struct vrnic_roce *roce)
{
	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC)
		return "datagrams";
	if (roce)
		return "wire";
	return READ_ONCE(qp->state) < IB_QPS_RTR ? "none" : "local";
}

static void put_sender(struct details *d, const struct vrnic_qp *qp, u32 filled)
{
	const struct vrnic_roce *roce;
	const char *waits;

	rcu_read_lock();
	/* pairs with the release in vrnic_roce_connect() */
	roce = smp_load_acquire(&qp->roce);
	put_string(d, "flow", flow_of(qp, roce));
	if (roce && qp->type == IB_QPT_RC) {
		put_window(d, roce);
		waits = window_waits(qp, &roce->req, filled);
	} else {
		put_op(d, qp);
		waits = local_waits(qp, filled);
	}
	put_string(d, "waits", waits);
	if (roce)
		put_wire(d, roce);
	rcu_read_unlock();
	put_rate(d, "rate_limit", VRNIC_PEEK(qp->limit));
}

static void put_receiver(struct details *d, const struct vrnic_qp *qp)
{
	if (vrnic_qp_has_rq(qp))
		put_ring(d, &qp->rq.ring, &rq_names);
	else if (!qp->xrc && qp->srq)	/* that of an XRC target may go at any time */
		put_u32(d, "srqn", qp->srq->ibsrq.res.id);
	put_u32(d, "recv_active", VRNIC_PEEK(qp->recv.active));
	put_u32(d, "rxq_pkts", skb_queue_len_lockless(&qp->rxq));
	put_u32(d, "rxq_bytes", VRNIC_PEEK(qp->rxq_room.bytes));
}

int vrnic_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct vrnic_qp *qp = vrnic_qp_of(ibqp);
	struct details d;
	u32 filled;

	if (!qp)
		return -EAGAIN;
	d = details_begin(msg);
	filled = put_ring(&d, &qp->sq, &sq_names);
	if (d.admin)
		put_u32(&d, "sq_done", VRNIC_PEEK(qp->sq_done));
	put_sender(&d, qp, filled);
	put_receiver(&d, qp);
	vrnic_qp_put(qp);
	return details_end(&d);
}

/* ---- completion queues ---- */

static const char *arm_name(u32 arm)
{
	switch (arm) {
	case VRNIC_ARM_NONE:
		return "no";
	case VRNIC_ARM_NEXT:
		return "next";
	case VRNIC_ARM_SOLICITED:
		return "solicited";
	default:
		return "nonsense";
	}
}

int vrnic_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct vrnic_cq *cq = to_vcq(ibcq);
	u32 entries, head, tail, arm;
	unsigned long flags;
	struct details d;
	bool failed;

	spin_lock_irqsave(&cq->lock, flags);
	if (!cq->ring.hdr) {
		spin_unlock_irqrestore(&cq->lock, flags);
		return -EAGAIN;
	}
	entries = cq->ring.entries;
	head = READ_ONCE(cq->ring.hdr->cons);
	tail = cq->ring.idx;
	arm = READ_ONCE(cq->ring.hdr->arm);
	failed = cq->failed;
	spin_unlock_irqrestore(&cq->lock, flags);

	d = details_begin(msg);
	put_u32(&d, "entries", entries);
	if (d.admin) {
		put_u32(&d, "head", head);
		put_u32(&d, "tail", tail);
	}
	put_u32(&d, "unread", tail - head);
	put_string(&d, "armed", arm_name(arm));
	put_u32(&d, "overflowed", failed);
	return details_end(&d);
}

/* ---- memory ---- */

/* The compiler warns if a kind has no name. */
static const char *mr_kind_name(enum vrnic_mr_kind kind)
{
	switch (kind) {
	case VRNIC_MR_DMA:
		return "dma";
	case VRNIC_MR_USER:
		return "user";
	case VRNIC_MR_ODP:
		return "on-demand";
	case VRNIC_MR_FAST:
		return "fast";
	case VRNIC_MR_GAPS:
		return "fast-gaps";
	case VRNIC_MR_DM:
		return "device";
	case VRNIC_MR_DMABUF:
		return "dma-buf";
	}
	return "unknown";
}

int vrnic_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct vrnic_mr *mr = to_vmr(ibmr);
	struct details d = details_begin(msg);

	put_string(&d, "kind", mr_kind_name(mr->kind));
	if (mr->kind == VRNIC_MR_GAPS)
		put_u32(&d, "extents", VRNIC_PEEK(mr->nr_extents));
	else
		put_u32(&d, mr->kind == VRNIC_MR_USER ? "pinned_pages" : "pages",
			VRNIC_PEEK(mr->nr_pages));
	put_hex(&d, "access", VRNIC_PEEK(mr->access));
	put_u32(&d, "valid", VRNIC_PEEK(mr->valid));
	put_u32(&d, "windows", max(atomic_read(&mr->windows), 0));
	if (d.admin)
		put_address(&d, "iova", VRNIC_PEEK(mr->iova));
	return details_end(&d);
}

/* ---- shared receive queues ---- */

int vrnic_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct vrnic_rq *rq = &to_vsrq(ibsrq)->rq;
	struct details d = details_begin(msg);
	unsigned long flags;

	spin_lock_irqsave(&rq->lock, flags);
	if (rq->ring.hdr) {
		put_ring(&d, &rq->ring, &srq_names);
		put_u32(&d, "limit", rq->limit);
	} else {
		d.err = -EAGAIN;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return details_end(&d);
}
