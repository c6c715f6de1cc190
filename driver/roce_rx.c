// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: a queue pair as the target of a peer on the network. IBTA 9.7
 * for RC, 9.8 for UC. Each byte is copied once, from the packet to where it
 * belongs; every packet's memory is looked up and checked anew.
 *
 * All of this runs with the queue pair's run bit, mostly in softirq.
 */

#include <linux/ktime.h>
#include <linux/slab.h>

#include "link.h"
#include "roce.h"

/* What became of a request packet. */
enum rx {
	RX_DONE,	/* executed */
	RX_DROP,	/* it has no effect */
	RX_AGAIN,	/* something is in use: try again */
};

static struct vrnic_resp *to_resp(struct vrnic_qp *qp)
{
	return &qp->roce->resp;
}

int vrnic_resp_init(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	r->nr_res = max_t(u32, qp->attr.max_dest_rd_atomic, 1);
	r->res = kcalloc(r->nr_res, sizeof(*r->res), GFP_KERNEL);
	if (!r->res)
		return -ENOMEM;
	r->psn = qp->attr.rq_psn & VRNIC_PSN_MASK;
	return 0;
}

void vrnic_resp_free(struct vrnic_qp *qp)
{
	kfree(to_resp(qp)->res);
}

/* A READ is being answered: what comes behind it has to wait. */
bool vrnic_resp_busy(const struct vrnic_qp *qp)
{
	return qp->roce->resp.reply.active;
}

static void respond(struct vrnic_qp *qp, struct vrnic_tx *tx)
{
	tx->dqpn = qp->attr.dest_qp_num;
	vrnic_roce_xmit(qp, &qp->roce->path, tx);
}

static void put_aeth(struct vrnic_qp *qp, struct vrnic_tx *tx, u8 syndrome)
{
	vrnic_aeth_fill((struct vrnic_aeth *)tx->ext, syndrome,
			to_resp(qp)->msn);
	tx->ext_len = sizeof(struct vrnic_aeth);
}

static void send_aeth(struct vrnic_qp *qp, u8 opcode, u8 syndrome, u32 psn)
{
	struct vrnic_tx tx = { .opcode = opcode, .psn = psn };

	put_aeth(qp, &tx, syndrome);
	respond(qp, &tx);
}

/* Acknowledge all that was executed, if that is due. */
void vrnic_resp_ack(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	if (!r->ack)
		return;
	r->ack = false;
	send_aeth(qp, VRNIC_BTH_ACK, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED,
		  vrnic_psn_add(r->psn, -1));
}

/* A NAK says that all before @r->psn was executed, too. */
static void nak(struct vrnic_qp *qp, u8 syndrome)
{
	struct vrnic_resp *r = to_resp(qp);

	r->ack = false;
	send_aeth(qp, VRNIC_BTH_ACK, syndrome, r->psn);
}

/* UC: what is left of the message is dropped, and nobody is told. */
static enum rx drop_message(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	vrnic_count(qp->dev, UC_DROPPED);
	r->kind = 0;
	r->uc_drop = true;
	return RX_DROP;
}

/* The request is refused: a NAK for the peer, ERR and @event for this side. */
static enum rx refuse(struct vrnic_qp *qp, enum vrnic_nak code,
		      enum ib_event_type event)
{
	vrnic_count(qp->dev, REMOTE_ERRORS);
	if (qp->type == IB_QPT_UC)
		return drop_message(qp);
	nak(qp, VRNIC_AETH_NAK | code);
	vrnic_qp_error(qp, event);
	return RX_DROP;
}

static enum rx refuse_access(struct vrnic_qp *qp)
{
	return refuse(qp, VRNIC_NAK_ACCESS, IB_EVENT_QP_ACCESS_ERR);
}

static enum rx refuse_request(struct vrnic_qp *qp)
{
	return refuse(qp, VRNIC_NAK_INVALID, IB_EVENT_QP_REQ_ERR);
}

/* The receive that is under way fails, and the queue pair with it. */
static enum rx refuse_recv(struct vrnic_qp *qp, u8 status, int verr,
			   enum vrnic_nak code)
{
	struct vrnic_cqe cqe = { .status = status, .vendor_err = verr };

	vrnic_recv_complete(qp, &cqe, true);
	return refuse(qp, code, -1);
}

/* No receive is posted. The peer comes back with this very packet. */
static enum rx not_ready(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);

	if (qp->type == IB_QPT_UC)
		return drop_message(qp);
	vrnic_count(qp->dev, SEND_RNR_ERR);
	nak(qp, VRNIC_AETH_RNR | qp->attr.min_rnr_timer);
	r->naked = true;
	r->again = false;
	return RX_DROP;
}

/* Have a receive in qp->recv; RX_DONE with one. */
static enum rx need_recv(struct vrnic_qp *qp)
{
	switch (vrnic_recv_take(qp)) {
	case 0:
		return RX_DONE;
	case -EAGAIN:
		return not_ready(qp);
	default:
		return refuse(qp, VRNIC_NAK_OPERATION, -1);
	}
}

static bool allows(const struct vrnic_qp *qp, int access)
{
	return (qp->attr.qp_access_flags & access) == access;
}

/* The lengths that the packets of a message may have: IBTA 9.7.4.1.6. */
static bool length_fits(const struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	u32 mtu = qp->roce->mtu;

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

static void deliver(struct vrnic_qp *qp, struct sk_buff *skb, u8 opcode,
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

static enum rx invalidate(struct vrnic_qp *qp, struct sk_buff *skb)
{
	int ret;

	/* invalidation waits until nobody uses the region */
	vrnic_held_put(&qp->hold.remote);
	ret = vrnic_key_invalidate(qp, be32_to_cpu(last_word(skb)), true);
	if (!ret)
		return RX_DONE;
	if (ret == -EAGAIN)
		return RX_AGAIN;
	return refuse_recv(qp, IB_WC_LOC_PROT_ERR, ret, VRNIC_NAK_ACCESS);
}

static enum rx send_data(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_recv *recv = &qp->recv;
	struct vrnic_resp *r = to_resp(qp);
	int verr;

	if (r->len + pkt->len > vrnic_sge_total(recv->sge, recv->num_sge))
		return refuse_recv(qp, IB_WC_LOC_LEN_ERR, VRNIC_VERR_LENGTH,
				   VRNIC_NAK_INVALID);
	verr = vrnic_sgl_local(qp, recv->sge, recv->num_sge,
			       IB_ACCESS_LOCAL_WRITE, &qp->hold.recv,
			       &qp->recv_sgl);
	if (verr)
		return refuse_recv(qp, IB_WC_LOC_PROT_ERR, verr,
				   VRNIC_NAK_OPERATION);
	vrnic_sgl_skip(&qp->recv_sgl, r->len);
	vrnic_pkt_copy(skb, &qp->recv_sgl, pkt->info & VRNIC_PKT_END);
	vrnic_sgl_put(&qp->recv_sgl);
	return RX_DONE;
}

static enum rx rx_send(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	enum rx rx;

	if (!length_fits(qp, pkt))
		return refuse_request(qp);
	if (pkt->info & VRNIC_PKT_START) {
		r->len = 0;
		rx = need_recv(qp);
		if (rx != RX_DONE)
			return rx;
	} else if (!qp->recv.active) {
		return refuse(qp, VRNIC_NAK_OPERATION, -1);
	}
	rx = send_data(qp, skb);
	if (rx == RX_DONE && pkt->info & VRNIC_PKT_IETH)
		rx = invalidate(qp, skb);
	if (rx != RX_DONE)
		return rx;
	r->len += pkt->len;
	if (pkt->info & VRNIC_PKT_END)
		deliver(qp, skb, IB_WC_RECV, r->len);
	return RX_DONE;
}

static int open_remote(struct vrnic_qp *qp, u32 rkey, u64 va, u64 len,
		       int access)
{
	struct vrnic_sgl *sgl = &qp->recv_sgl;

	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	return vrnic_seg_remote(qp, rkey, va, len, access, &qp->hold.remote,
				&sgl->seg[0]);
}

/* The first packet says where all go: it is refused if one must not. */
static enum rx begin_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	struct vrnic_resp *r = to_resp(qp);

	if (!allows(qp, IB_ACCESS_REMOTE_WRITE))
		return refuse_request(qp);
	r->va = be64_to_cpu(reth->va);
	r->rkey = be32_to_cpu(reth->rkey);
	r->left = be32_to_cpu(reth->len);
	r->len = 0;
	if (r->left > VRNIC_MAX_MSG)
		return refuse_request(qp);
	if (open_remote(qp, r->rkey, r->va, r->left, IB_ACCESS_REMOTE_WRITE))
		return refuse_access(qp);
	vrnic_sgl_put(&qp->recv_sgl);
	return RX_DONE;
}

static enum rx rx_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	bool end = pkt->info & VRNIC_PKT_END;
	struct vrnic_resp *r = to_resp(qp);
	enum rx rx;

	if (!length_fits(qp, pkt))
		return refuse_request(qp);
	if (pkt->info & VRNIC_PKT_START) {
		rx = begin_write(qp, skb);
		if (rx != RX_DONE)
			return rx;
	}
	if (end ? pkt->len != r->left : pkt->len >= r->left)
		return refuse_request(qp);
	if (pkt->info & VRNIC_PKT_IMM) {
		rx = need_recv(qp);
		if (rx != RX_DONE)
			return rx;
	}
	if (open_remote(qp, r->rkey, r->va, pkt->len, IB_ACCESS_REMOTE_WRITE))
		return refuse_access(qp);
	vrnic_pkt_copy(skb, &qp->recv_sgl, end);
	vrnic_sgl_put(&qp->recv_sgl);
	r->va += pkt->len;
	r->left -= pkt->len;
	r->len += pkt->len;
	if (pkt->info & VRNIC_PKT_IMM)
		deliver(qp, skb, IB_WC_RECV_RDMA_WITH_IMM, r->len);
	return RX_DONE;
}

/* Remember an answer, in the place of the oldest. */
static struct vrnic_res *new_res(struct vrnic_qp *qp, struct sk_buff *skb,
				 u32 pkts)
{
	struct vrnic_resp *r = to_resp(qp);
	struct vrnic_res *res = &r->res[r->next_res];

	r->next_res = (r->next_res + 1) % r->nr_res;
	*res = (struct vrnic_res) {
		.op = vrnic_pkt(skb)->opcode,
		.psn = vrnic_pkt(skb)->psn,
		.pkts = pkts,
	};
	return res;
}

static struct vrnic_res *find_res(struct vrnic_resp *r,
				  const struct vrnic_pkt *pkt)
{
	u32 i;

	for (i = 0; i < r->nr_res; i++) {
		struct vrnic_res *res = &r->res[i];

		if (res->op == pkt->opcode && res->pkts &&
		    vrnic_psn_diff(pkt->psn, res->psn) >= 0 &&
		    vrnic_psn_diff(pkt->psn, res->psn) < (s32)res->pkts)
			return res;
	}
	return NULL;
}

static enum rx rx_read(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	struct vrnic_resp *r = to_resp(qp);
	u32 len = be32_to_cpu(reth->len);
	struct vrnic_res *res;

	if (!allows(qp, IB_ACCESS_REMOTE_READ) || len > VRNIC_MAX_MSG)
		return refuse_request(qp);
	if (open_remote(qp, be32_to_cpu(reth->rkey), be64_to_cpu(reth->va), len,
			IB_ACCESS_REMOTE_READ))
		return refuse_access(qp);
	vrnic_sgl_put(&qp->recv_sgl);
	res = new_res(qp, skb, vrnic_psn_count(len, qp->roce->mtu));
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
	};
	return RX_DONE;
}

static void send_atomic_ack(struct vrnic_qp *qp, const struct vrnic_res *res)
{
	struct vrnic_tx tx = { .opcode = VRNIC_BTH_ATOMIC_ACK, .psn = res->psn };
	struct vrnic_atomicack ack = { .orig = cpu_to_be64(res->result) };

	put_aeth(qp, &tx, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED);
	memcpy(tx.ext + tx.ext_len, &ack, sizeof(ack));
	tx.ext_len += sizeof(ack);
	respond(qp, &tx);
}

/* A real atomic of the CPU on the page, as in the loopback flow. */
static u64 atomic_apply(u8 op, u64 *target, const struct vrnic_atomiceth *eth)
{
	u64 value = be64_to_cpu(eth->swap_add);

	if (op == VRNIC_BTH_CMP_SWAP)
		return cmpxchg(target, be64_to_cpu(eth->compare), value);
	return atomic64_fetch_add(value, (atomic64_t *)target);
}

static enum rx rx_atomic(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_atomiceth *eth = vrnic_pkt_ext(skb);
	u64 va = be64_to_cpu(eth->va), old = 0, *word;
	struct vrnic_res *res;

	if (!allows(qp, IB_ACCESS_REMOTE_ATOMIC) || va % sizeof(u64))
		return refuse_request(qp);
	if (open_remote(qp, be32_to_cpu(eth->rkey), va, sizeof(u64),
			IB_ACCESS_REMOTE_ATOMIC))
		return refuse_access(qp);
	word = vrnic_seg_word(&qp->recv_sgl.seg[0], sizeof(*word));
	if (word)
		old = atomic_apply(vrnic_pkt(skb)->opcode, word, eth);
	vrnic_sgl_put(&qp->recv_sgl);
	if (!word)
		return refuse_request(qp);
	res = new_res(qp, skb, 1);
	res->result = old;
	to_resp(qp)->msn++;
	send_atomic_ack(qp, res);
	/* counted by the caller, for all requests alike */
	to_resp(qp)->msn--;
	return RX_DONE;
}

static enum rx rx_atomic_write(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	u64 va = be64_to_cpu(reth->va), value, *word;

	if (!allows(qp, IB_ACCESS_REMOTE_WRITE) || va % sizeof(u64) ||
	    vrnic_pkt(skb)->len != sizeof(u64) ||
	    be32_to_cpu(reth->len) != sizeof(u64) ||
	    skb_copy_bits(skb, vrnic_pkt(skb)->payload, &value, sizeof(value)))
		return refuse_request(qp);
	if (open_remote(qp, be32_to_cpu(reth->rkey), va, sizeof(u64),
			IB_ACCESS_REMOTE_WRITE))
		return refuse_access(qp);
	word = vrnic_seg_word(&qp->recv_sgl.seg[0], sizeof(*word));
	if (word)
		WRITE_ONCE(*word, value);
	vrnic_sgl_put(&qp->recv_sgl);
	return word ? RX_DONE : refuse_request(qp);
}

/* As in the loopback flow: all that is left to do is to check the rights. */
static enum rx rx_flush(struct vrnic_qp *qp, struct sk_buff *skb)
{
	const __be32 *feth = vrnic_pkt_ext(skb);
	const struct vrnic_reth *reth = (const void *)(feth + 1);
	u32 what = be32_to_cpu(*feth);
	struct vrnic_seg seg;
	int verr;

	if (!VRNIC_ACCESS_FLUSH || !(what & VRNIC_FETH_TYPE))
		return refuse_request(qp);
	if ((what & VRNIC_FETH_TYPE) != VRNIC_FLUSH_GLOBAL ||
	    !allows(qp, VRNIC_ACCESS_FLUSH))
		return refuse_access(qp);
	if (what & VRNIC_FETH_RANGE)
		verr = vrnic_seg_whole(qp, be32_to_cpu(reth->rkey),
				       VRNIC_ACCESS_FLUSH, &seg);
	else
		verr = vrnic_seg_remote(qp, be32_to_cpu(reth->rkey),
					be64_to_cpu(reth->va),
					be32_to_cpu(reth->len),
					VRNIC_ACCESS_FLUSH, NULL, &seg);
	if (verr)
		return refuse_access(qp);
	vrnic_seg_put(&seg);
	smp_mb();	/* all earlier stores, before the answer */
	return RX_DONE;
}

/* FLUSH and ATOMIC WRITE are answered as a READ of nothing would be. */
static enum rx rx_other(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	enum rx rx;

	if (pkt->opcode == VRNIC_BTH_FLUSH)
		rx = rx_flush(qp, skb);
	else
		rx = rx_atomic_write(qp, skb);
	if (rx != RX_DONE)
		return rx;
	new_res(qp, skb, 1);
	to_resp(qp)->ack = false;
	send_aeth(qp, VRNIC_BTH_READ_RESP_ONLY,
		  VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED, pkt->psn);
	return RX_DONE;
}

static enum rx rx_native(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (!length_fits(qp, vrnic_pkt(skb)))
		return refuse_request(qp);
	switch (vrnic_native_receive(qp->link, skb)) {
	case 0:
		return RX_DONE;
	case -EAGAIN:
		return not_ready(qp);
	default:
		return refuse_request(qp);
	}
}

static enum rx execute(struct vrnic_qp *qp, struct sk_buff *skb)
{
	u32 info = vrnic_pkt(skb)->info;

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

/*
 * A packet that was executed before: its answer was lost, or is on its way. An
 * answer that is not remembered any more cannot be given: the packet is dropped.
 */
static void duplicate(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	const struct vrnic_reth *reth = vrnic_pkt_ext(skb);
	struct vrnic_res *res;
	u64 off;

	vrnic_count(qp->dev, DUPLICATE_REQUEST);
	vrnic_early_again(&r->early, pkt->psn);
	if (pkt->info & VRNIC_PKT_DATA) {
		r->ack = true;
		return;
	}
	res = find_res(r, pkt);
	if (!res)
		return;
	if (pkt->info & VRNIC_PKT_ATOMIC) {
		send_atomic_ack(qp, res);
		return;
	}
	if (pkt->info & VRNIC_PKT_OTHER) {
		send_aeth(qp, VRNIC_BTH_READ_RESP_ONLY,
			  VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED, pkt->psn);
		return;
	}
	/* the same READ or the rest of it, nothing else */
	off = (u64)vrnic_psn_diff(pkt->psn, res->psn) * qp->roce->mtu;
	if (be64_to_cpu(reth->va) != res->va + off ||
	    be32_to_cpu(reth->rkey) != res->rkey ||
	    be32_to_cpu(reth->len) > res->len - off)
		return;
	r->reply = (struct vrnic_reply) {
		.active = true,
		/* the rest goes on as if nothing had been lost */
		.first = !off,
		.replay = true,
		.psn = pkt->psn,
		.va = res->va + off,
		.rkey = res->rkey,
		.left = be32_to_cpu(reth->len),
	};
}

/*
 * A packet came too early: one before it is lost, or late. If it came before, the
 * peer has gone back once more, and what is missing was lost once more.
 */
static void too_early(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_resp *r = to_resp(qp);
	int err;

	vrnic_count(qp->dev, OUT_OF_SEQ_REQUEST);
	if (r->naked && vrnic_pkt(skb)->info & VRNIC_PKT_ANSWERED) {
		kfree_skb(skb);
		return;
	}
	err = vrnic_early_keep(&r->early, skb, r->psn);
	if (err == -EEXIST)
		r->again = true;
	/* what cannot be kept is lost, and the peer's timer will tell it so */
	if (err)
		kfree_skb(skb);
}

/**
 * vrnic_resp_gap() - all that came was looked at: is a packet missing?
 * @qp: target
 *
 * One NAK for each time that the peer goes back.
 */
void vrnic_resp_gap(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);
	struct sk_buff *skb;
	u64 due;

	if (skb_queue_empty(&r->early.list) || r->reply.active)
		return;
	skb = vrnic_early_peek(&r->early, r->psn);
	if (!skb || (r->naked && !r->again))
		return;
	due = vrnic_early_due(&r->early, skb);
	if (due > ktime_get_ns()) {
		vrnic_roce_wake_at(qp, due);
		return;
	}
	r->naked = true;
	r->again = false;
	vrnic_early_asked(&r->early, r->psn);
	vrnic_early_drop_answered(&r->early);
	nak(qp, VRNIC_AETH_NAK | VRNIC_NAK_PSN);
}

/* The packet that was missing is there: on with those that came early. */
static void next_early(struct vrnic_qp *qp)
{
	struct vrnic_resp *r = to_resp(qp);
	struct sk_buff *skb;

	if (skb_queue_empty(&r->early.list))
		return;
	skb = vrnic_early_peek(&r->early, r->psn);
	if (!skb || vrnic_pkt(skb)->psn != r->psn)
		return;
	vrnic_early_take(&r->early, skb);
	skb_queue_head(&qp->rxq, skb);
}

/* Return: true if the packet is the next one; it is not ahead of that. */
static bool in_sequence_rc(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_resp *r = to_resp(qp);

	if (vrnic_pkt(skb)->psn != r->psn) {
		duplicate(qp, skb);
		return false;
	}
	vrnic_early_came(&r->early, r->psn);
	r->naked = false;
	r->again = false;
	return true;
}

/* UC: what was lost is lost; a new message starts afresh. */
static bool in_sequence_uc(struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	struct vrnic_resp *r = to_resp(qp);
	bool start = pkt->info & VRNIC_PKT_START;

	if (pkt->psn != r->psn || start) {
		if (r->kind)
			vrnic_count(qp->dev, UC_DROPPED);
		r->kind = 0;
		r->uc_drop = !start;
		r->psn = pkt->psn;
	}
	if (!r->uc_drop)
		return true;
	r->psn = vrnic_psn_add(r->psn, 1);
	return false;
}

/* First, middle and last packets of a message have to come in that order. */
static bool order_fits(const struct vrnic_resp *r, u32 info)
{
	u32 kind = info & VRNIC_PKT_DATA;

	if (info & VRNIC_PKT_START)
		return !r->kind;
	return r->kind && r->kind == kind;
}

static void advance(struct vrnic_qp *qp, const struct vrnic_pkt *pkt)
{
	struct vrnic_resp *r = to_resp(qp);
	u32 pkts = 1;

	if (pkt->info & VRNIC_PKT_READ)
		pkts = vrnic_psn_count(r->reply.left, qp->roce->mtu);
	r->psn = vrnic_psn_add(r->psn, pkts);
	if (pkt->info & VRNIC_PKT_END) {
		r->kind = 0;
		r->msn++;
	} else {
		r->kind = pkt->info & VRNIC_PKT_DATA;
	}
	/* the other requests are answered anyway */
	if (pkt->info & VRNIC_PKT_DATA)
		r->ack |= pkt->ackreq && qp->type == IB_QPT_RC;
	else
		r->ack = false;
}

/**
 * vrnic_resp_request() - execute a request packet
 * @qp: target
 * @skb: packet; gone afterwards, kept, or back in the queue
 */
void vrnic_resp_request(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_resp *r = to_resp(qp);
	enum rx rx = RX_DROP;

	if (qp->type == IB_QPT_RC && vrnic_psn_diff(pkt->psn, r->psn) > 0) {
		too_early(qp, skb);
		return;
	}
	if (qp->type == IB_QPT_RC ? in_sequence_rc(qp, skb) :
				    in_sequence_uc(qp, pkt))
		rx = order_fits(r, pkt->info) ? execute(qp, skb) :
						refuse_request(qp);
	else
		goto out;
	if (rx == RX_AGAIN) {
		skb_queue_head(&qp->rxq, skb);
		return;
	}
	if (rx == RX_DONE) {
		advance(qp, pkt);
		next_early(qp);
	} else if (qp->type == IB_QPT_UC) {
		r->psn = vrnic_psn_add(r->psn, 1);
	}
out:
	kfree_skb(skb);
}

static u8 reply_opcode(const struct vrnic_reply *reply, u32 n)
{
	bool last = n == reply->left;

	if (reply->first)
		return last ? VRNIC_BTH_READ_RESP_ONLY :
			      VRNIC_BTH_READ_RESP_FIRST;
	return last ? VRNIC_BTH_READ_RESP_LAST : VRNIC_BTH_READ_RESP_MIDDLE;
}

/* Return: false: it was not sent, or it was the last. */
static bool reply_one(struct vrnic_qp *qp, struct vrnic_reply *reply)
{
	u32 n = min(reply->left, qp->roce->mtu);
	struct vrnic_tx tx = {
		.opcode = reply_opcode(reply, n),
		.psn = reply->psn,
		.src = &qp->recv_sgl,
		.len = n,
		.copy = reply->replay,
		.dqpn = qp->attr.dest_qp_num,
	};
	int err;

	if (tx.opcode != VRNIC_BTH_READ_RESP_MIDDLE)
		put_aeth(qp, &tx, VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED);
	if (reply->replay)
		vrnic_count(qp->dev, RETRANSMITTED_PKTS);
	err = vrnic_roce_xmit(qp, &qp->roce->path, &tx);
	reply->first = false;
	reply->psn = vrnic_psn_add(reply->psn, 1);
	reply->va += n;
	reply->left -= n;
	reply->active = reply->left;
	return reply->active && err != -ENOMEM && err != -EHOSTUNREACH;
}

/**
 * vrnic_resp_reply() - go on with the answer to a READ
 * @qp: target
 * @budget: its bytes bound this burst
 *
 * Return: false if nothing may be sent now: the timer runs.
 */
bool vrnic_resp_reply(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_reply *reply = &to_resp(qp)->reply;
	u64 n, until, room;

	room = vrnic_rate_room(qp, &until);
	if (!room) {
		vrnic_roce_wake_at(qp, until);
		return false;
	}
	if (open_remote(qp, reply->rkey, reply->va, reply->left,
			IB_ACCESS_REMOTE_READ)) {
		/* the memory went away in the meantime */
		reply->active = false;
		vrnic_count(qp->dev, REMOTE_ERRORS);
		send_aeth(qp, VRNIC_BTH_ACK, VRNIC_AETH_NAK | VRNIC_NAK_ACCESS,
			  reply->psn);
		vrnic_qp_error(qp, IB_EVENT_QP_ACCESS_ERR);
		return true;
	}
	do {
		n = min_t(u64, reply->left, qp->roce->mtu);
		budget->bytes -= min(budget->bytes, n);
		room -= min(room, n);
	} while (reply_one(qp, reply) && budget->bytes && room);
	vrnic_sgl_put(&qp->recv_sgl);
	return true;
}
