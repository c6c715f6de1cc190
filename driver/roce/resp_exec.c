// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Executes requests of a requester on another host. Each byte is copied once, from the packet to
 * its place. For each packet, the memory is looked up and checked again.
 */

#include "compat/compat.h"
#include "lib/ack.h"
#include "lib/hdr.h"
#include "lib/psn.h"
#include "mem/mem.h"
#include "mem/seg.h"
#include "queue/hold.h"
#include "queue/link_ops.h"
#include "queue/qp.h"
#include "queue/qp_error.h"
#include "queue/recv.h"
#include "queue/rq.h"
#include "queue/xrc.h"
#include "roce/resp.h"
#include "roce/roce.h"
#include "vrnic.h"

/* UC: drop the rest of the message, and tell nobody. */
static enum vrnic_rx drop_message(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	vrnic_count(qp->dev, UC_DROPPED);
	r->kind = 0;
	r->uc_drop = true;
	qp->recv_wait.odp = NULL;
	return VRNIC_RX_DROP;
}

/* Refuse the request: NAK, ERR and @event; on UC, drop the message. */
static enum vrnic_rx resp_refuse(struct vrnic_qp *qp, enum vrnic_nak code,
				 enum ib_event_type event)
{
	vrnic_count(qp->dev, REMOTE_ERRORS);
	qp->target_errors++;
	if (qp->type == IB_QPT_UC)
		return drop_message(qp);
	vrnic_resp_nak(qp, VRNIC_AETH_NAK | code);
	vrnic_qp_error(qp, event);
	return VRNIC_RX_DROP;
}

static enum vrnic_rx resp_refuse_access(struct vrnic_qp *qp)
{
	return resp_refuse(qp, VRNIC_NAK_ACCESS, IB_EVENT_QP_ACCESS_ERR);
}

static enum vrnic_rx resp_refuse_request(struct vrnic_qp *qp)
{
	return resp_refuse(qp, VRNIC_NAK_INVALID, IB_EVENT_QP_REQ_ERR);
}

/*
 * Complete the receive with an error, and refuse the request. On UC, go to ERR as well, without a
 * NAK.
 */
static enum vrnic_rx resp_refuse_recv(struct vrnic_qp *qp, u8 status, int verr,
				      enum vrnic_nak code)
{
	struct vrnic_cqe cqe = { .status = status, .vendor_err = verr };

	vrnic_recv_complete(qp, &cqe, true);
	if (qp->type == IB_QPT_UC)
		vrnic_qp_error(qp, -1);
	return resp_refuse(qp, code, -1);
}

/*
 * The message does not fit into the receive. On UC the message is dropped, and the receive stays
 * for the next one, as in loop_refuse_length().
 */
static enum vrnic_rx resp_refuse_length(struct vrnic_qp *qp)
{
	if (qp->type == IB_QPT_UC)
		return resp_refuse(qp, VRNIC_NAK_INVALID, -1);
	return resp_refuse_recv(qp, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH,
				VRNIC_NAK_INVALID);
}

/*
 * RNR NAK: no receive is posted, or the native link has no room. The requester sends this packet
 * again.
 */
static enum vrnic_rx resp_not_ready(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	if (qp->type == IB_QPT_UC)
		return drop_message(qp);
	vrnic_count(qp->dev, SEND_RNR_ERR);
	qp->target_rnr++;
	vrnic_resp_nak(qp, VRNIC_AETH_RNR | qp->attr.min_rnr_timer);
	r->naked = true;
	r->again = false;
	return VRNIC_RX_DROP;
}

#define PAGE_TRIES	5

/*
 * A page of this host is being brought in. If that takes long, do not let the requester think that
 * nobody is there: it has to try again later, as if a receive were missing.
 */
static enum vrnic_rx resp_wait_page(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	if (qp->type != IB_QPT_RC || r->page_tries < PAGE_TRIES)
		return VRNIC_RX_AGAIN;
	return resp_not_ready(qp);
}

/* Take a receive into qp->recv, if none is there. Return: VRNIC_RX_DONE if there is one now. */
static enum vrnic_rx resp_need_recv(struct vrnic_qp *qp)
{
	switch (vrnic_recv_take(qp)) {
	case 0:
		return VRNIC_RX_DONE;
	case -EAGAIN:
		return resp_not_ready(qp);
	default:
		return resp_refuse(qp, VRNIC_NAK_OPERATION, -1);
	}
}

bool vrnic_resp_allows(const struct vrnic_qp *qp, int access)
{
	return (qp->attr.qp_access_flags & access) == access;
}

/*
 * Has the packet a length that its place in the message allows? IBTA 9.7.4.1.6. The first packet of
 * a native message need not be full.
 */
static bool resp_length_fits(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	u32 mtu = qp->roce->mtu;

	if (pkt->info & VRNIC_PKT_NATIVE && pkt->info & VRNIC_PKT_START)
		return pkt->len <= mtu;
	if (!(pkt->info & VRNIC_PKT_END))
		return pkt->len == mtu;
	return pkt->len <= mtu &&
	       (pkt->len || pkt->info & VRNIC_PKT_START);
}

static __be32 last_word(struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);

	return get_unaligned((__be32 *)(pkt->ext + vrnic_ext_len(pkt->info) -
					sizeof(__be32)));
}

static void resp_deliver(struct vrnic_qp *qp, struct sk_buff *skb, u8 opcode,
			 u64 byte_len)
{
	struct vrnic_cqe cqe = { .opcode = opcode, .byte_len = byte_len };
	struct vrnic_pkt *pkt = vrnic_pkt(skb);

	if (pkt->info & VRNIC_PKT_IMM) {
		cqe.imm = (__force u32)last_word(skb);
		cqe.wc_flags = VRNIC_WC_WITH_IMM;
	} else if (pkt->info & VRNIC_PKT_IETH) {
		cqe.imm = be32_to_cpu(last_word(skb));
		cqe.wc_flags = VRNIC_WC_WITH_INV;
	}
	vrnic_recv_complete(qp, &cqe, pkt->solicited);
}

static enum vrnic_rx resp_invalidate(struct vrnic_qp *qp, struct sk_buff *skb)
{
	int ret;

	/* -EAGAIN as long as any run holds the region: this run must not be the one */
	vrnic_hold_regions_put(&qp->hold);
	ret = vrnic_key_invalidate(&qp->key_user, be32_to_cpu(last_word(skb)), true);
	if (!ret)
		return VRNIC_RX_DONE;
	if (ret == -EAGAIN)
		return VRNIC_RX_AGAIN;
	return resp_refuse_recv(qp, IB_WC_LOC_PROT_ERR, ret, VRNIC_NAK_ACCESS);
}

/* Find the memory of the receive, of which @n bytes from @off on are to be written now. */
static int open_recv_at(struct vrnic_qp *qp, u64 off, u64 n)
{
	struct vrnic_recv *recv = &qp->recv;
	int verr;

	verr = vrnic_sgl_local(&qp->key_user, recv->sge, recv->num_sge,
			       IB_ACCESS_LOCAL_WRITE, &qp->hold.recv,
			       &qp->recv_sgl);
	if (verr)
		return verr;
	vrnic_sgl_skip(&qp->recv_sgl, off);
	verr = vrnic_sgl_ready_all(&qp->recv_sgl, n, true, &qp->recv_wait);
	if (verr)
		vrnic_sgl_put(&qp->recv_sgl);
	return verr;
}

static enum vrnic_rx resp_fill_recv(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_recv *recv = &qp->recv;
	struct vrnic_resp *r = to_resp(qp);
	int verr;

	if (r->len + vrnic_pkt_bytes(pkt) > vrnic_sge_total(recv->sge, recv->num_sge))
		return resp_refuse_length(qp);
	verr = open_recv_at(qp, r->len, vrnic_pkt_bytes(pkt));
	if (verr == -EAGAIN)
		return resp_wait_page(qp);
	if (verr)
		return resp_refuse_recv(qp, IB_WC_LOC_PROT_ERR, verr,
					VRNIC_NAK_OPERATION);
	vrnic_pkt_copy(skb, &qp->recv_sgl, pkt->info & VRNIC_PKT_END);
	vrnic_sgl_put(&qp->recv_sgl);
	return VRNIC_RX_DONE;
}

static enum vrnic_rx rx_send(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	enum vrnic_rx rx;

	if (!resp_length_fits(qp, pkt))
		return resp_refuse_request(qp);
	if (pkt->info & VRNIC_PKT_START) {
		r->len = 0;
		rx = resp_need_recv(qp);
		if (rx != VRNIC_RX_DONE)
			return rx;
	} else if (!qp->recv.active) {
		return resp_refuse(qp, VRNIC_NAK_OPERATION, -1);
	}
	if (!pkt->moved) {
		rx = resp_fill_recv(qp, skb);
		if (rx != VRNIC_RX_DONE)
			return rx;
	}
	rx = pkt->info & VRNIC_PKT_IETH ? resp_invalidate(qp, skb) : VRNIC_RX_DONE;
	/* after AGAIN the data stay in place: the next try may find their memory invalidated */
	pkt->moved = rx == VRNIC_RX_AGAIN;
	if (rx != VRNIC_RX_DONE)
		return rx;
	r->len += vrnic_pkt_bytes(pkt);
	if (pkt->info & VRNIC_PKT_END)
		resp_deliver(qp, skb, IB_WC_RECV, r->len);
	return VRNIC_RX_DONE;
}

/**
 * vrnic_resp_open() - let qp->recv_sgl describe memory that a requester names
 * @qp: target
 * @rkey: key that the requester claims
 * @va: address
 * @len: bytes
 * @access: IB_ACCESS_REMOTE_*
 *
 * Return: 0: the caller has to call vrnic_sgl_put(); -EAGAIN; else enum vrnic_vendor_err.
 */
int vrnic_resp_open(struct vrnic_qp *qp, u32 rkey, u64 va, u64 len,
		    int access)
{
	struct vrnic_sgl *sgl = &qp->recv_sgl;

	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	return vrnic_seg_remote(&qp->key_user, rkey, va, len, access, &qp->hold.remote,
				&sgl->seg[0]);
}

/* As vrnic_resp_open(), for bytes that are to be used now. Return: VRNIC_RX_DONE if they can be. */
static enum vrnic_rx open_now(struct vrnic_qp *qp, u32 rkey, u64 va, u64 len, int access)
{
	int verr = vrnic_resp_open(qp, rkey, va, len, access);

	if (!verr) {
		verr = vrnic_sgl_ready_all(&qp->recv_sgl, len, access != IB_ACCESS_REMOTE_READ,
					   &qp->recv_wait);
		if (likely(!verr))
			return VRNIC_RX_DONE;
		vrnic_sgl_put(&qp->recv_sgl);
	}
	return verr == -EAGAIN ? resp_wait_page(qp) : resp_refuse_access(qp);
}

/* May the requester use this memory, now or later? Return: VRNIC_RX_DONE if so. */
static enum vrnic_rx check_rights(struct vrnic_qp *qp, u32 rkey, u64 va, u64 len, int access)
{
	int verr = vrnic_resp_open(qp, rkey, va, len, access);

	if (verr)
		return verr == -EAGAIN ? resp_wait_page(qp) : resp_refuse_access(qp);
	vrnic_sgl_put(&qp->recv_sgl);
	return VRNIC_RX_DONE;
}

/* Begin a WRITE: if the memory that its first packet names is not all allowed, refuse all of it. */
static enum vrnic_rx begin_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);

	if (!vrnic_resp_allows(qp, IB_ACCESS_REMOTE_WRITE))
		return resp_refuse_request(qp);
	r->va = be64_to_cpu(reth->va);
	r->rkey = be32_to_cpu(reth->rkey);
	r->left = be32_to_cpu(reth->len);
	r->len = 0;
	if (r->left > VRNIC_MAX_MSG)
		return resp_refuse_request(qp);
	/*
	 * without an immediate, a single packet has no effect before rx_write() checks its memory
	 */
	if (pkt->info & VRNIC_PKT_END && !(pkt->info & VRNIC_PKT_IMM))
		return VRNIC_RX_DONE;
	return check_rights(qp, r->rkey, r->va, r->left, IB_ACCESS_REMOTE_WRITE);
}

static enum vrnic_rx rx_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	bool end = pkt->info & VRNIC_PKT_END;
	struct vrnic_resp *r = to_resp(qp);
	u32 len = vrnic_pkt_bytes(pkt);
	enum vrnic_rx rx;

	if (!resp_length_fits(qp, pkt))
		return resp_refuse_request(qp);
	if (pkt->info & VRNIC_PKT_START) {
		rx = begin_write(qp, skb);
		if (rx != VRNIC_RX_DONE)
			return rx;
	}
	if (end ? len != r->left : len >= r->left)
		return resp_refuse_request(qp);
	if (pkt->info & VRNIC_PKT_IMM) {
		rx = resp_need_recv(qp);
		if (rx != VRNIC_RX_DONE)
			return rx;
	}
	rx = open_now(qp, r->rkey, r->va, len, IB_ACCESS_REMOTE_WRITE);
	if (rx != VRNIC_RX_DONE)
		return rx;
	vrnic_pkt_copy(skb, &qp->recv_sgl, end);
	vrnic_sgl_put(&qp->recv_sgl);
	r->va += len;
	r->left -= len;
	r->len += len;
	if (end)
		vrnic_qp_count(qp, VRNIC_COMP_REMOTE_RDMA_WRITE, r->len, IB_WC_SUCCESS);
	if (pkt->info & VRNIC_PKT_IMM)
		resp_deliver(qp, skb, IB_WC_RECV_RDMA_WITH_IMM, r->len);
	return VRNIC_RX_DONE;
}

/* Remember the request, because the requester may ask for the answer again. */
static struct vrnic_res *keep_res(struct vrnic_qp *qp, struct sk_buff *skb, u32 pkts)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);

	return vrnic_res_new(&to_resp(qp)->served, pkt->opcode, pkt->psn, pkts);
}

static enum vrnic_rx rx_read(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	struct vrnic_resp *r = to_resp(qp);
	u32 len = be32_to_cpu(reth->len);
	struct vrnic_res *res;
	enum vrnic_rx rx;

	if (!vrnic_resp_allows(qp, IB_ACCESS_REMOTE_READ) || len > VRNIC_MAX_MSG)
		return resp_refuse_request(qp);
	rx = check_rights(qp, be32_to_cpu(reth->rkey), be64_to_cpu(reth->va), len,
			  IB_ACCESS_REMOTE_READ);
	if (rx != VRNIC_RX_DONE)
		return rx;
	res = keep_res(qp, skb, vrnic_psn_count(len, qp->roce->mtu));
	res->va = be64_to_cpu(reth->va);
	res->rkey = be32_to_cpu(reth->rkey);
	res->len = len;
	r->reply = (struct vrnic_reply) {
		.active = true,
		.first = true,
		.psn = res->psn,
		.va = res->va,
		.rkey = res->rkey,
		.left = len,
		.srqn = vrnic_pkt(skb)->info & VRNIC_PKT_XRCETH ? r->srqn : 0,
	};
	return VRNIC_RX_DONE;
}

/* An atomic instruction of the CPU on the page, as in the loopback flow. */
static u64 resp_atomic_apply(u8 op, u64 *target, const struct vrnic_atomiceth *eth)
{
	u64 value = be64_to_cpu(eth->swap_add);

	if (op == VRNIC_BTH_CMP_SWAP)
		return cmpxchg(target, be64_to_cpu(eth->compare), value);
	return atomic64_fetch_add(value, (atomic64_t *)target);
}

static enum vrnic_rx rx_atomic(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_atomiceth *eth = vrnic_pkt_ext(skb);
	u64 va = be64_to_cpu(eth->va), old = 0, *word;
	struct vrnic_res *res;
	enum vrnic_rx rx;

	if (!vrnic_resp_allows(qp, IB_ACCESS_REMOTE_ATOMIC) || va % sizeof(u64))
		return resp_refuse_request(qp);
	rx = open_now(qp, be32_to_cpu(eth->rkey), va, sizeof(u64), IB_ACCESS_REMOTE_ATOMIC);
	if (rx != VRNIC_RX_DONE)
		return rx;
	word = vrnic_seg_word(&qp->recv_sgl.seg[0], sizeof(*word));
	if (word)
		old = resp_atomic_apply(vrnic_pkt(skb)->opcode, word, eth);
	vrnic_sgl_put(&qp->recv_sgl);
	if (!word)
		return resp_refuse_request(qp);
	res = keep_res(qp, skb, 1);
	res->result = old;
	return VRNIC_RX_DONE;
}

static enum vrnic_rx rx_atomic_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	u64 va = be64_to_cpu(reth->va), value, *word;
	enum vrnic_rx rx;

	if (!vrnic_resp_allows(qp, IB_ACCESS_REMOTE_WRITE) || va % sizeof(u64) ||
	    vrnic_pkt(skb)->len != sizeof(u64) ||
	    be32_to_cpu(reth->len) != sizeof(u64) ||
	    skb_copy_bits(skb, vrnic_pkt(skb)->payload, &value, sizeof(value)))
		return resp_refuse_request(qp);
	rx = open_now(qp, be32_to_cpu(reth->rkey), va, sizeof(u64), IB_ACCESS_REMOTE_WRITE);
	if (rx != VRNIC_RX_DONE)
		return rx;
	word = vrnic_seg_word(&qp->recv_sgl.seg[0], sizeof(*word));
	if (word)
		WRITE_ONCE(*word, value);
	vrnic_sgl_put(&qp->recv_sgl);
	return word ? VRNIC_RX_DONE : resp_refuse_request(qp);
}

/* A FLUSH has nothing to move, as in the loopback flow: it only checks the rights. */
static enum vrnic_rx rx_flush(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const __be32 *feth = vrnic_pkt_ext(skb);
	const struct vrnic_reth *reth = (const void *)(feth + 1);
	u32 what = be32_to_cpu(*feth);
	struct vrnic_seg seg;
	int verr;

	if (!VRNIC_ACCESS_FLUSH || !(what & VRNIC_FETH_TYPE))
		return resp_refuse_request(qp);
	if ((what & VRNIC_FETH_TYPE) != VRNIC_FLUSH_GLOBAL ||
	    !vrnic_resp_allows(qp, VRNIC_ACCESS_FLUSH))
		return resp_refuse_access(qp);
	if (what & VRNIC_FETH_RANGE)
		verr = vrnic_seg_whole(&qp->key_user, be32_to_cpu(reth->rkey),
				       VRNIC_ACCESS_FLUSH, &seg);
	else
		verr = vrnic_seg_remote(&qp->key_user, be32_to_cpu(reth->rkey),
					be64_to_cpu(reth->va),
					be32_to_cpu(reth->len),
					VRNIC_ACCESS_FLUSH, NULL, &seg);
	if (verr == -EAGAIN)
		return resp_wait_page(qp);
	if (verr)
		return resp_refuse_access(qp);
	vrnic_seg_put(&seg);
	smp_mb();	/* earlier stores are visible before the answer is sent */
	return VRNIC_RX_DONE;
}

/* FLUSH and ATOMIC WRITE: the answer is that of a READ of no bytes. */
static enum vrnic_rx rx_other(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	enum vrnic_rx rx;

	if (pkt->opcode == VRNIC_BTH_FLUSH)
		rx = rx_flush(qp, skb);
	else
		rx = rx_atomic_write(qp, skb);
	if (rx == VRNIC_RX_DONE)
		keep_res(qp, skb, 1);
	return rx;
}

/* The message of a native link failed: the packet stays, until the requester sends SKIP for it. */
static enum vrnic_rx resp_failed(struct vrnic_qp *qp, u32 why)
{
	struct vrnic_resp *r = to_resp(qp);

	vrnic_resp_nak_failed(qp, why);
	vrnic_early_skips(&r->early);
	r->refused = true;
	r->naked = true;
	r->again = false;
	return VRNIC_RX_DROP;
}

static enum vrnic_rx rx_native(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 why;

	if (!(pkt->info & VRNIC_PKT_SKIP) && !resp_length_fits(qp, pkt))
		return resp_refuse_request(qp);
	switch (qp->link_ops->receive(qp->link, skb, &why)) {
	case 0:
		return VRNIC_RX_DONE;
	case -EAGAIN:
		return resp_not_ready(qp);
	case -EREMOTEIO:
		return resp_failed(qp, why);
	default:
		return resp_refuse_request(qp);
	}
}

/* Does the packet continue the message in progress, or begin one if there is none? */
static bool order_fits(const struct vrnic_resp *r, u32 info)
{
	u32 kind = info & VRNIC_PKT_DATA;

	if (info & VRNIC_PKT_START)
		return !r->kind;
	return r->kind && r->kind == kind;
}

/**
 * vrnic_resp_has_room() - does a train fit into the message in progress?
 * @qp: target
 * @pkt: train
 *
 * Return: false if one of its packets will be refused; then the caller has to execute them singly.
 */
bool vrnic_resp_has_room(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	const struct vrnic_resp *r = &qp->roce->resp;
	const struct vrnic_recv *recv = &qp->recv;
	u32 len = vrnic_pkt_bytes(pkt);

	if (!order_fits(r, pkt->info) || !resp_length_fits(qp, pkt))
		return false;
	if (pkt->info & VRNIC_PKT_WRITE)
		return len < r->left;
	if (pkt->info & VRNIC_PKT_NATIVE)
		return len < qp->link_ops->left(qp->link);
	return recv->active &&
	       r->len + len <= vrnic_sge_total(recv->sge, recv->num_sge);
}

/* Bind the target to the SRQ that a packet names; all packets of a message name the same one. */
static bool xrc_enters(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_resp *r = to_resp(qp);
	u32 srqn = vrnic_pkt_srqn(skb);

	if (vrnic_pkt(skb)->info & VRNIC_PKT_START)
		r->srqn = srqn;
	return srqn == r->srqn && !vrnic_xrc_request(qp, &qp->hold, srqn);
}

/**
 * vrnic_resp_execute() - execute a request
 * @qp: target
 * @skb: packet that the responder expects next, or a train that begins with it
 *
 * Return: what became of the request.
 */
enum vrnic_rx vrnic_resp_execute(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 info = vrnic_pkt(skb)->info;

	if (!order_fits(to_resp(qp), info))
		return resp_refuse_request(qp);
	if (unlikely(info & VRNIC_PKT_XRCETH) && !xrc_enters(qp, skb))
		return resp_refuse_request(qp);
	if (info & VRNIC_PKT_SEND)
		return rx_send(qp, skb);
	if (info & VRNIC_PKT_WRITE)
		return rx_write(qp, skb);
	if (info & VRNIC_PKT_READ)
		return rx_read(qp, skb);
	if (info & VRNIC_PKT_ATOMIC)
		return rx_atomic(qp, skb);
	if (info & VRNIC_PKT_NATIVE)
		return rx_native(qp, skb);
	return rx_other(qp, skb);
}
