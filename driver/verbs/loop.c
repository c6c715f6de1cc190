// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The loopback flow: the peer is on this host, so the runner of the requester's ring executes an
 * operation directly on the peer's memory and queues. There are no packets; each byte is copied
 * once.
 *
 * There are two ways. The short one, loop_near(), is for the bytes of one page at each end, in the
 * regions that the run keeps: most small messages go it. All others go the long one, loop_far(),
 * and so do operations with which something is wrong: it has the reasons.
 *
 * Problems have the same result as on the wire. A peer that is not ready costs the requester
 * transport retries, and a peer without a receive costs it RNR retries. A bad key is a remote
 * access error for the requester, and moves the peer, the responder, to ERR.
 */

#include <linux/ktime.h>
#include <linux/netdevice.h>

#include "compat/compat.h"
#include "engine/budget.h"
#include "mem/mem.h"
#include "mem/near.h"
#include "mem/seg.h"
#include "queue/hold.h"
#include "queue/op.h"
#include "queue/opcode.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/qp_table.h"
#include "queue/recv.h"
#include "queue/rq.h"
#include "queue/target.h"
#include "queue/xrc.h"
#include "verbs/flow.h"
#include "vrnic.h"

/**
 * struct loop - an operation of which this run executes a part (a burst) or all
 * @qp: requester
 * @peer: responder; this run holds its resp_lock
 * @op: the operation
 * @d: descriptor of @op
 * @budget: bytes that this run may still move
 * @bytes: of the operation, which loop_burst() copies now
 * @own: the requester's memory is the reason for an error of loop_ready()
 */
struct loop {
	struct vrnic_qp *qp;
	struct vrnic_qp *peer;
	struct vrnic_op *op;
	struct vrnic_desc *d;
	struct vrnic_budget *budget;
	u64 bytes;
	bool own;
};

#define RNR_FOREVER	7

static enum vrnic_step wait_for(struct vrnic_qp *qp, u64 ns, enum vrnic_op_wait what)
{
	qp->op.waits = what;
	qp->run.wait_until = ktime_get_ns() + ns;
	return VRNIC_STEP_WAIT;
}

/* Pages of the operation are being brought in. */
static enum vrnic_step wait_page(struct vrnic_qp *qp)
{
	return wait_for(qp, vrnic_page_patience(&qp->op.tries), VRNIC_WAIT_PAGE);
}

/* The peer has no receive posted: wait for its RNR timer, or fail if no retry is left. */
static enum vrnic_step wait_rnr(struct loop *l)
{
	if (l->qp->type == IB_QPT_UC) {
		vrnic_count(l->qp->dev, UC_DROPPED);
		return VRNIC_STEP_DROP;
	}
	if (!l->op->rnr_left)
		return vrnic_op_fail(l->op, IB_WC_RNR_RETRY_EXC_ERR,
				     VRNIC_VERR_RNR);
	if (l->op->rnr_left != RNR_FOREVER)
		l->op->rnr_left--;
	vrnic_count(l->qp->dev, RNR_WAITS);
	l->qp->rare.rnr_waits++;
	return wait_for(l->qp, vrnic_rnr_ns(l->peer->attr.min_rnr_timer), VRNIC_WAIT_RNR);
}

/*
 * No peer is connected to @qp. As on the wire, wait for an ACK timeout of 4.096 us * 2^timeout,
 * which costs a retry. Timeout 0 means to wait for ever: then look for the peer every 100 ms.
 */
static enum vrnic_step wait_peer(struct vrnic_qp *qp, struct vrnic_op *op)
{
	/* the peer may come back with other receives, and other memory */
	qp->peer_wait.odp = NULL;
	if (qp->type == IB_QPT_UC) {
		vrnic_count(qp->dev, UC_DROPPED);
		return VRNIC_STEP_DROP;
	}
	if (!qp->attr.timeout)
		return wait_for(qp, 100 * NSEC_PER_MSEC, VRNIC_WAIT_PEER);
	if (!op->retry_left)
		return vrnic_op_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	op->retry_left--;
	vrnic_count(qp->dev, RETRIES);
	qp->rare.retries++;
	return wait_for(qp, 4096ULL << qp->attr.timeout, VRNIC_WAIT_PEER);
}

/*
 * The peer refuses the operation: move the peer to ERR with @event, and let the operation fail with
 * @status. On UC, only drop the message.
 */
static enum vrnic_step loop_refuse(struct loop *l, enum ib_event_type event,
				   u8 status, int verr)
{
	vrnic_count(l->peer->dev, REMOTE_ERRORS);
	l->peer->target_errors++;
	if (l->qp->type == IB_QPT_UC) {
		vrnic_count(l->qp->dev, UC_DROPPED);
		return VRNIC_STEP_DROP;
	}
	vrnic_qp_error(l->peer, event);
	return vrnic_op_fail(l->op, status, verr);
}

static enum vrnic_step loop_refuse_access(struct loop *l, int verr)
{
	return loop_refuse(l, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR, verr);
}

static enum vrnic_step loop_refuse_request(struct loop *l, int verr)
{
	return loop_refuse(l, IB_EVENT_QP_REQ_ERR, IB_WC_REM_INV_REQ_ERR, verr);
}

/*
 * Fail the receive that the message goes to with @recv_status, and move the peer to ERR. The
 * requester's operation fails with @status, unless on UC.
 */
static enum vrnic_step loop_refuse_recv(struct loop *l, u8 recv_status,
					u8 status, int verr)
{
	struct vrnic_cqe cqe = { .status = recv_status, .vendor_err = verr };

	vrnic_recv_complete(l->peer, &cqe, true);
	if (l->qp->type == IB_QPT_UC)
		vrnic_qp_error(l->peer, -1);
	return loop_refuse(l, -1, status, verr);
}

/*
 * The message does not fit into the receive. On UC, drop it as if it were lost, and leave the
 * receive for the next message (IBTA 9.9.3, class D).
 */
static enum vrnic_step loop_refuse_length(struct loop *l)
{
	if (l->qp->type == IB_QPT_UC)
		return loop_refuse(l, -1, IB_WC_SUCCESS, VRNIC_VERR_LENGTH);
	return loop_refuse_recv(l, IB_WC_LOC_LEN_ERR, IB_WC_REM_INV_REQ_ERR,
				VRNIC_VERR_LENGTH);
}

/* Count bytes that went from the requester to the peer. */
static __always_inline void count_sent(struct vrnic_qp *qp, struct vrnic_qp *peer, u64 bytes)
{
	vrnic_count_moved(qp->dev, peer->dev, bytes);
	qp->xmit_bytes += bytes;
	peer->target_rcvd += bytes;
}

static __always_inline void count_written(struct vrnic_qp *qp, struct vrnic_qp *peer, u64 bytes)
{
	vrnic_count_add(qp->dev, BYTES_WRITTEN, bytes);
	count_sent(qp, peer, bytes);
}

/* All of a WRITE has come. */
static __always_inline void count_write(struct vrnic_qp *qp, struct vrnic_qp *peer, u64 bytes)
{
	count_written(qp, peer, bytes);
	vrnic_qp_count(peer, VRNIC_COMP_REMOTE_RDMA_WRITE, bytes, IB_WC_SUCCESS);
}

static void count_read(struct vrnic_qp *qp, struct vrnic_qp *peer, u64 bytes)
{
	vrnic_count_add(qp->dev, BYTES_READ, bytes);
	vrnic_count_moved(peer->dev, qp->dev, bytes);
	peer->target_xmit += bytes;
	qp->read_bytes += bytes;
	vrnic_qp_count(peer, VRNIC_COMP_REMOTE_RDMA_READ, bytes, IB_WC_SUCCESS);
}

static void count_delivered(struct vrnic_qp *qp, struct vrnic_qp *peer, u64 bytes)
{
	vrnic_count_add(qp->dev, BYTES_SENT, bytes);
	count_sent(qp, peer, bytes);
}

static bool allows(const struct vrnic_qp *peer, int access)
{
	return (peer->attr.qp_access_flags & access) == access;
}

static bool peer_allows(const struct loop *l, int access)
{
	return allows(l->peer, access);
}

/* Find the peer's memory that the operation names. Return: 0 (it has to be put) or the error. */
static int loop_open_remote(struct loop *l, u64 len, int access)
{
	struct vrnic_sgl *sgl = &l->peer->recv_sgl;

	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	return vrnic_seg_remote(&l->peer->key_user, l->d->rkey, l->d->remote_addr, len,
				access, &l->qp->hold.remote, &sgl->seg[0]);
}

/*
 * The memory of the peer that the operation names cannot be used: wait, or let @refuse fail the
 * operation.
 */
static enum vrnic_step loop_no_memory(struct loop *l, int verr,
				      enum vrnic_step (*refuse)(struct loop *l, int verr))
{
	return verr == -EAGAIN ? wait_page(l->qp) : refuse(l, verr);
}

/*
 * See how many of l->bytes can be copied, if memory has its pages on demand. Return: 0; -EAGAIN:
 * none now; else why none: l->own tells whether the requester's memory is the reason.
 */
static noinline int loop_ready(struct loop *l)
{
	bool in = l->op->info->data == VRNIC_DATA_IN;
	u64 want = l->bytes;
	int verr;

	verr = vrnic_sgl_ready(&l->qp->sgl, &l->bytes, 1, in, &l->qp->send_wait);
	l->own = verr;
	/* ask for all pages that are missing, at both ends */
	if (!verr)
		verr = vrnic_sgl_ready(&l->peer->recv_sgl, l->bytes ? &l->bytes : &want, 1, !in,
				       &l->qp->peer_wait);
	return verr ?: l->bytes ? 0 : -EAGAIN;
}

static noinline enum vrnic_step loop_not_ready(struct loop *l, int verr,
					       enum vrnic_step (*refuse)(struct loop *l, int verr))
{
	vrnic_sgl_put(&l->peer->recv_sgl);
	if (verr != -EAGAIN && l->own)
		return vrnic_op_fail(l->op, IB_WC_LOC_PROT_ERR, verr);
	return loop_no_memory(l, verr, refuse);
}

/*
 * Copy as many bytes as the budget allows, in the operation's direction; put the peer's memory.
 * @refuse fails the operation if the process of the peer lacks the memory.
 */
static __always_inline enum vrnic_step loop_burst(struct loop *l,
						  enum vrnic_step (*refuse)(struct loop *l,
									    int verr))
{
	struct vrnic_sgl *local = &l->qp->sgl, *remote = &l->peer->recv_sgl;
	struct vrnic_op *op = l->op;
	u64 most = min(op->total - op->done, l->budget->bytes);
	bool final;
	int verr;

	l->bytes = most;
	if (unlikely(op->done)) {
		vrnic_sgl_skip(local, op->done);
		vrnic_sgl_skip(remote, op->done);
	}
	if (unlikely(vrnic_sgl_on_demand(local) || vrnic_sgl_on_demand(remote)) && most) {
		verr = loop_ready(l);
		if (verr)
			return loop_not_ready(l, verr, refuse);
		op->tries = 0;
	}
	final = op->done + l->bytes == op->total;
	if (op->info->data == VRNIC_DATA_IN)
		vrnic_sgl_copy(local, remote, l->bytes, final);
	else
		vrnic_sgl_copy(remote, local, l->bytes, final);
	vrnic_sgl_put(remote);
	op->done += l->bytes;
	l->budget->bytes -= l->bytes;
	if (unlikely(l->bytes < most))
		return VRNIC_STEP_WAIT;	/* for nothing: the next step asks for the rest */
	return final ? VRNIC_STEP_DONE : VRNIC_STEP_MORE;
}

/* Make sure that peer->recv has a receive. Return: VRNIC_STEP_DONE: there is one. */
static enum vrnic_step loop_need_recv(struct loop *l)
{
	/* the receive with the first part of the message is gone: the rest has no place */
	if ((l->op->done || l->op->moved) && !l->peer->recv.active)
		return l->qp->type == IB_QPT_UC ? VRNIC_STEP_DROP :
			vrnic_op_fail(l->op, IB_WC_RETRY_EXC_ERR,
				      VRNIC_VERR_PEER);
	if (!l->peer->recv.active)
		l->qp->peer_wait.odp = NULL;
	switch (vrnic_recv_take(l->peer)) {
	case 0:
		return VRNIC_STEP_DONE;
	case -EAGAIN:
		return wait_rnr(l);
	default:
		return vrnic_op_fail(l->op, IB_WC_REM_OP_ERR, VRNIC_VERR_RING);
	}
}

static void loop_deliver(struct loop *l, u8 opcode, u64 byte_len)
{
	struct vrnic_cqe cqe = { .opcode = opcode, .byte_len = byte_len };

	switch (l->d->opcode) {
	case VRNIC_OP_SEND_WITH_IMM:
	case VRNIC_OP_RDMA_WRITE_WITH_IMM:
		cqe.imm = l->d->imm;
		cqe.wc_flags = VRNIC_WC_WITH_IMM;
		break;
	case VRNIC_OP_SEND_WITH_INV:
		cqe.imm = l->d->imm;
		cqe.wc_flags = VRNIC_WC_WITH_INV;
		break;
	}
	vrnic_recv_complete(l->peer, &cqe, l->d->flags & VRNIC_DESC_SOLICITED);
}

/*
 * Invalidate a key of the peer. That succeeds only when no run uses the region, so this run first
 * has to put the regions that it keeps.
 */
static enum vrnic_step loop_invalidate(struct loop *l)
{
	int ret;

	vrnic_sgl_put(&l->qp->sgl);
	vrnic_hold_regions_put(&l->qp->hold);
	ret = vrnic_key_invalidate(&l->peer->key_user, l->d->imm, true);
	if (!ret)
		return VRNIC_STEP_DONE;
	if (ret == -EAGAIN)
		return wait_for(l->qp, VRNIC_TARGET_BUSY_NS, VRNIC_WAIT_KEY);
	return loop_refuse_recv(l, IB_WC_LOC_PROT_ERR, IB_WC_REM_ACCESS_ERR, ret);
}

/* The memory that the receive names cannot be used. */
static enum vrnic_step loop_refuse_memory(struct loop *l, int verr)
{
	return loop_refuse_recv(l, IB_WC_LOC_PROT_ERR, IB_WC_REM_OP_ERR, verr);
}

/* Copy as many bytes as the budget allows into the receive. */
static enum vrnic_step loop_fill_recv(struct loop *l)
{
	struct vrnic_recv *recv = &l->peer->recv;
	enum vrnic_step step;
	int verr;

	if (l->op->total > vrnic_sge_total(recv->sge, recv->num_sge))
		return loop_refuse_length(l);
	verr = vrnic_sgl_local(&l->peer->key_user, recv->sge, recv->num_sge,
			       IB_ACCESS_LOCAL_WRITE, &l->qp->hold.recv,
			       &l->peer->recv_sgl);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_memory);
	step = loop_burst(l, loop_refuse_memory);
	l->op->moved = step == VRNIC_STEP_DONE;
	return step;
}

static enum vrnic_step loop_send(struct loop *l)
{
	enum vrnic_step step = loop_need_recv(l);

	if (step != VRNIC_STEP_DONE)
		return step;
	if (!l->op->moved)
		step = loop_fill_recv(l);
	if (step != VRNIC_STEP_DONE)
		return step;
	if (l->d->opcode == VRNIC_OP_SEND_WITH_INV)
		step = loop_invalidate(l);
	if (step != VRNIC_STEP_DONE)
		return step;
	count_delivered(l->qp, l->peer, l->op->total);
	loop_deliver(l, IB_WC_RECV, l->op->total);
	return VRNIC_STEP_DONE;
}

static enum vrnic_step loop_write(struct loop *l)
{
	bool imm = l->d->opcode == VRNIC_OP_RDMA_WRITE_WITH_IMM;
	enum vrnic_step step;
	int verr;

	if (!peer_allows(l, IB_ACCESS_REMOTE_WRITE))
		return loop_refuse_request(l, VRNIC_VERR_QP_ACCESS);
	if (imm) {
		step = loop_need_recv(l);
		if (step != VRNIC_STEP_DONE)
			return step;
	}
	verr = loop_open_remote(l, l->op->total, IB_ACCESS_REMOTE_WRITE);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_access);
	step = loop_burst(l, loop_refuse_access);
	if (step != VRNIC_STEP_DONE)
		return step;
	count_write(l->qp, l->peer, l->op->total);
	if (imm)
		loop_deliver(l, IB_WC_RECV_RDMA_WITH_IMM, l->op->total);
	return VRNIC_STEP_DONE;
}

static enum vrnic_step loop_read(struct loop *l)
{
	enum vrnic_step step;
	int verr;

	if (!peer_allows(l, IB_ACCESS_REMOTE_READ))
		return loop_refuse_request(l, VRNIC_VERR_QP_ACCESS);
	verr = loop_open_remote(l, l->op->total, IB_ACCESS_REMOTE_READ);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_access);
	step = loop_burst(l, loop_refuse_access);
	if (step != VRNIC_STEP_DONE)
		return step;
	count_read(l->qp, l->peer, l->op->total);
	return VRNIC_STEP_DONE;
}

/* Use an atomic instruction of the CPU, so this is atomic against those of processes, too. */
static u64 loop_atomic_apply(const struct vrnic_desc *d, u64 *target)
{
	switch (d->opcode) {
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
		return cmpxchg(target, d->atomic.compare, d->atomic.swap_add);
	default:
		return atomic64_fetch_add(d->atomic.swap_add,
					  (atomic64_t *)target);
	}
}

static enum vrnic_step loop_atomic(struct loop *l)
{
	struct vrnic_sgl *remote = &l->peer->recv_sgl;
	u64 *word, old = 0;
	int verr;

	if (!peer_allows(l, IB_ACCESS_REMOTE_ATOMIC))
		return loop_refuse_request(l, VRNIC_VERR_QP_ACCESS);
	if (l->d->remote_addr % sizeof(u64))
		return loop_refuse_request(l, VRNIC_VERR_ALIGN);
	verr = loop_open_remote(l, sizeof(u64), IB_ACCESS_REMOTE_ATOMIC);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_access);
	verr = vrnic_sgl_ready_all(&l->qp->sgl, sizeof(old), true, &l->qp->send_wait);
	if (verr && verr != -EAGAIN) {
		vrnic_sgl_put(remote);
		return vrnic_op_fail(l->op, IB_WC_LOC_PROT_ERR, verr);
	}
	verr = vrnic_sgl_ready_all(remote, sizeof(old), true, &l->qp->peer_wait) ?: verr;
	if (verr) {
		vrnic_sgl_put(remote);
		return loop_no_memory(l, verr, loop_refuse_access);
	}
	word = vrnic_seg_word(&remote->seg[0], sizeof(*word));
	if (word)
		old = loop_atomic_apply(l->d, word);
	vrnic_sgl_put(remote);
	if (!word)
		return loop_refuse_request(l, VRNIC_VERR_ALIGN);
	vrnic_sgl_kva(remote, &old, sizeof(old));
	vrnic_sgl_copy(&l->qp->sgl, remote, sizeof(old), true);
	l->op->total = sizeof(old);
	vrnic_count(l->qp->dev, ATOMICS);
	return VRNIC_STEP_DONE;
}

static enum vrnic_step loop_atomic_write(struct loop *l)
{
	struct vrnic_sgl *remote = &l->peer->recv_sgl;
	u64 *word, value;
	int verr;

	if (!peer_allows(l, IB_ACCESS_REMOTE_WRITE))
		return loop_refuse_request(l, VRNIC_VERR_QP_ACCESS);
	if (l->d->remote_addr % sizeof(u64))
		return loop_refuse_request(l, VRNIC_VERR_ALIGN);
	verr = loop_open_remote(l, sizeof(u64), IB_ACCESS_REMOTE_WRITE);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_access);
	verr = vrnic_sgl_ready_all(remote, sizeof(u64), true, &l->qp->peer_wait);
	if (verr) {
		vrnic_sgl_put(remote);
		return loop_no_memory(l, verr, loop_refuse_access);
	}
	memcpy(&value, l->d->data, sizeof(value));
	word = vrnic_seg_word(&remote->seg[0], sizeof(*word));
	if (word)
		WRITE_ONCE(*word, value);
	vrnic_sgl_put(remote);
	if (!word)
		return loop_refuse_request(l, VRNIC_VERR_ALIGN);
	count_written(l->qp, l->peer, sizeof(u64));
	return VRNIC_STEP_DONE;
}

/*
 * What earlier operations wrote is visible to all CPUs already, as memory is coherent. So a flush
 * only checks that the requester may ask for it.
 */
static enum vrnic_step loop_flush(struct loop *l)
{
	u32 what = l->d->flush;
	struct vrnic_seg seg;
	int verr;

	if (!VRNIC_ACCESS_FLUSH || !(what & ~VRNIC_FLUSH_MR))
		return loop_refuse_request(l, VRNIC_VERR_OPCODE);
	/* no memory is persistent here, so no region grants flushes to persistence */
	if (what & ~(VRNIC_FLUSH_GLOBAL | VRNIC_FLUSH_MR) ||
	    !peer_allows(l, VRNIC_ACCESS_FLUSH))
		return loop_refuse_access(l, VRNIC_VERR_ACCESS);
	if (what & VRNIC_FLUSH_MR)
		verr = vrnic_seg_whole(&l->peer->key_user, l->d->rkey, VRNIC_ACCESS_FLUSH,
				       &seg);
	else
		verr = vrnic_seg_remote(&l->peer->key_user, l->d->rkey, l->d->remote_addr,
					l->d->flush_len, VRNIC_ACCESS_FLUSH,
					NULL, &seg);
	if (verr)
		return loop_no_memory(l, verr, loop_refuse_access);
	vrnic_seg_put(&seg);
	smp_mb();	/* the stores of earlier operations, before the completion of the flush */
	return VRNIC_STEP_DONE;
}

static enum vrnic_step (*const loop_ops[VRNIC_OP_MAX])(struct loop *l) = {
	[VRNIC_OP_SEND] = loop_send,
	[VRNIC_OP_SEND_WITH_IMM] = loop_send,
	[VRNIC_OP_SEND_WITH_INV] = loop_send,
	[VRNIC_OP_RDMA_WRITE] = loop_write,
	[VRNIC_OP_RDMA_WRITE_WITH_IMM] = loop_write,
	[VRNIC_OP_RDMA_READ] = loop_read,
	[VRNIC_OP_ATOMIC_CMP_AND_SWP] = loop_atomic,
	[VRNIC_OP_ATOMIC_FETCH_AND_ADD] = loop_atomic,
	[VRNIC_OP_ATOMIC_WRITE] = loop_atomic_write,
	[VRNIC_OP_FLUSH] = loop_flush,
};

/*
 * Has the owner of @peer connected it to @qp? If not, do not take its lock: a stranger must not
 * delay it. Needs no lock, as it reads only single words, and what never changes. The queue pair of
 * a native link has nothing for a peer on this host: no receives, and no lists of segments.
 */
static bool names_us(const struct vrnic_qp *peer, const struct vrnic_qp *qp)
{
	return vrnic_qp_suits(qp, peer) && !peer->link &&
	       READ_ONCE(peer->attr.dest_qp_num) == qp->qpn &&
	       vrnic_same_net(qp->dev, peer->dev);
}

/* Does each queue pair have the number and GID that the other one is connected to? */
static bool loop_is_connected(const struct vrnic_qp *qp, const struct vrnic_qp *peer)
{
	lockdep_assert_held(&peer->resp_lock);
	/* the runner of a queue pair that is connected over the wire does not take this lock */
	if (!names_us(peer, qp) || peer->roce)
		return false;
	return !memcmp(&peer->sgid, &qp->attr.ah_attr.grh.dgid, sizeof(qp->sgid)) &&
	       !memcmp(&qp->sgid, &peer->attr.ah_attr.grh.dgid, sizeof(qp->sgid));
}

static bool loop_receives(const struct vrnic_qp *peer)
{
	switch (READ_ONCE(peer->state)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* The first message to a queue pair in RTR raises COMM_EST: IBTA 11.6.3.1. */
static void loop_note_contact(struct vrnic_qp *peer)
{
	if (peer->comm_est || READ_ONCE(peer->state) != IB_QPS_RTR)
		return;
	peer->comm_est = true;
	vrnic_qp_event(peer, IB_EVENT_COMM_EST);
}

/* @peer is locked now: check its state again, and the GIDs, too, and keep it if all fits. */
static bool loop_hold_locked(struct vrnic_qp *qp, struct vrnic_qp *peer)
{
	if (!loop_receives(peer) || !loop_is_connected(qp, peer))
		return false;
	qp->hold.peer = peer;
	loop_note_contact(peer);
	return true;
}

/*
 * Find the peer, lock it, check that it is connected to @qp, and keep it in @qp->hold until
 * vrnic_hold_release(). Of all that was checked, only the peer's state may change meanwhile.
 *
 * Return: 0; -EBUSY: another runner has the peer's lock; -ENOTCONN: there is no such peer.
 */
static int loop_hold_peer(struct vrnic_qp *qp)
{
	struct vrnic_qp *peer = qp->hold.peer;
	int err = -ENOTCONN;

	if (peer)
		return loop_receives(peer) ? 0 : -ENOTCONN;
	peer = vrnic_qp_get(qp->attr.dest_qp_num);
	if (!peer)
		return -ENOTCONN;
	if (!loop_receives(peer) || !names_us(peer, qp))
		goto err_put;
	if (!vrnic_target_trylock(peer)) {
		err = -EBUSY;
		goto err_put;
	}
	if (loop_hold_locked(qp, peer))
		return 0;
	vrnic_target_unlock(peer);
err_put:
	vrnic_qp_put(peer);
	return err;
}

/* Local memory of an operation with one segment, or with its data in the descriptor; or NULL. */
static __always_inline void *near_local(struct vrnic_qp *qp, struct vrnic_op *op, int access)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);
	const struct vrnic_sge *sge = &d->sge[0];

	if (d->flags & VRNIC_DESC_INLINE)
		return op->slots + offsetof(struct vrnic_desc, data);
	if (unlikely(d->num_sge != 1))
		return NULL;
	return vrnic_near(&qp->hold.local, &qp->key_user, sge->lkey, false, sge->addr,
			  sge->length, sge->length, access);
}

/* The peer, if it is there and receives; or NULL. */
static __always_inline struct vrnic_qp *near_peer(struct vrnic_qp *qp)
{
	struct vrnic_qp *peer = qp->hold.peer;

	if (unlikely(!peer)) {
		if (loop_hold_peer(qp))
			return NULL;
		peer = qp->hold.peer;
	}
	return likely(loop_receives(peer) && !peer->xrc) ? peer : NULL;
}

/* Memory of the peer that the operation names; or NULL. */
static __always_inline void *near_remote(struct vrnic_qp *qp, struct vrnic_op *op, int access)
{
	const struct vrnic_desc *d = vrnic_op_desc(op);
	const struct vrnic_qp *peer = near_peer(qp);

	if (unlikely(!peer || !allows(peer, access)))
		return NULL;
	return vrnic_near(&qp->hold.remote, &peer->key_user, d->rkey, true, d->remote_addr,
			  op->total, op->total, access);
}

/* Memory of the peer's receive, if the message fits; or NULL. */
static __always_inline void *near_recv(const struct loop *l)
{
	const struct vrnic_recv *recv = &l->peer->recv;
	const struct vrnic_sge *sge = &recv->sge[0];

	if (unlikely(recv->num_sge != 1 || l->op->total > sge->length))
		return NULL;
	return vrnic_near(&l->qp->hold.recv, &l->peer->key_user, sge->lkey, false, sge->addr,
			  sge->length, l->op->total, IB_ACCESS_LOCAL_WRITE);
}

/* All bytes of the operation were copied. */
static __always_inline void near_moved(struct vrnic_op *op, struct vrnic_budget *budget)
{
	op->done = op->total;
	budget->bytes -= op->total;
}

static __always_inline bool near_write(struct vrnic_qp *qp, struct vrnic_op *op,
				       struct vrnic_budget *budget)
{
	const void *from = near_local(qp, op, 0);
	void *to = from ? near_remote(qp, op, IB_ACCESS_REMOTE_WRITE) : NULL;

	if (unlikely(!to))
		return false;
	vrnic_copy_final(to, from, op->total);
	near_moved(op, budget);
	count_write(qp, qp->hold.peer, op->total);
	return true;
}

static noinline bool near_read(struct vrnic_qp *qp, struct vrnic_op *op,
			       struct vrnic_budget *budget)
{
	void *to = near_local(qp, op, IB_ACCESS_LOCAL_WRITE);
	const void *from = to ? near_remote(qp, op, IB_ACCESS_REMOTE_READ) : NULL;

	if (unlikely(!from))
		return false;
	vrnic_copy_final(to, from, op->total);
	near_moved(op, budget);
	count_read(qp, qp->hold.peer, op->total);
	return true;
}

static noinline bool near_send(struct vrnic_qp *qp, struct vrnic_op *op,
			       struct vrnic_budget *budget, enum vrnic_step *step)
{
	struct loop l = { .qp = qp, .op = op, .d = vrnic_op_desc(op), .budget = budget };
	const void *from = near_local(qp, op, 0);
	void *to;

	l.peer = from ? near_peer(qp) : NULL;
	if (unlikely(!l.peer))
		return false;
	*step = loop_need_recv(&l);
	if (unlikely(*step != VRNIC_STEP_DONE))
		return true;
	to = near_recv(&l);
	if (unlikely(!to))
		return false;	/* the receive is there for the long way */
	vrnic_copy_final(to, from, op->total);
	near_moved(op, budget);
	count_delivered(qp, l.peer, op->total);
	loop_deliver(&l, IB_WC_RECV, op->total);
	return true;
}

/*
 * The short way: between memory of the regions that the run keeps, and within one page at each end.
 * Most small messages go it. What is wrong with an operation is found in the same order on the long
 * way. Return: true: *@step is what to do next; false: the operation has to take the long way.
 */
static __always_inline bool loop_near(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget, enum vrnic_step *step)
{
	if (unlikely(op->done || op->moved || !op->total || op->total > budget->bytes))
		return false;
	*step = VRNIC_STEP_DONE;
	switch (vrnic_op_desc(op)->opcode) {
	case VRNIC_OP_RDMA_WRITE:
		return near_write(qp, op, budget);
	case VRNIC_OP_RDMA_READ:
		return near_read(qp, op, budget);
	case VRNIC_OP_SEND:
	case VRNIC_OP_SEND_WITH_IMM:
		return near_send(qp, op, budget, step);
	default:
		return false;
	}
}

static enum vrnic_step loop_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				    struct vrnic_budget *budget)
{
	struct loop l = { .qp = qp, .op = op, .d = vrnic_op_desc(op), .budget = budget };

	switch (loop_hold_peer(qp)) {
	case 0:
		break;
	case -EBUSY:
		return wait_for(qp, VRNIC_TARGET_BUSY_NS, VRNIC_WAIT_BUSY);
	default:
		return wait_peer(qp, op);
	}
	l.peer = qp->hold.peer;
	if (unlikely(l.peer->xrc) && vrnic_xrc_request(l.peer, &qp->hold, op->srqn))
		return loop_refuse_request(&l, VRNIC_VERR_SRQ);
	return loop_ops[l.d->opcode](&l);
}

/* The long way of an operation. */
static noinline enum vrnic_step loop_far(struct vrnic_qp *qp, struct vrnic_op *op,
					 struct vrnic_budget *budget)
{
	enum vrnic_step step;
	int verr;

	verr = op->moved ? 0 : vrnic_op_open(qp, op);
	if (verr == -EAGAIN)
		return wait_page(qp);
	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	step = loop_execute(qp, op, budget);
	vrnic_sgl_put(&qp->sgl);
	return step;
}

/**
 * vrnic_loop_execute() - execute an operation of an RC or UC queue pair
 * @qp: requester
 * @op: operation that vrnic_op_check() accepted
 * @budget: its bytes bound what this run moves
 *
 * Each run of a long operation looks the memory up again. So dereg_mr() waits for the current run
 * only, and the next one fails.
 *
 * Return: what to do next with the operation.
 */
enum vrnic_step vrnic_loop_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				   struct vrnic_budget *budget)
{
	enum vrnic_step step;

	return loop_near(qp, op, budget, &step) ? step : loop_far(qp, op, budget);
}
