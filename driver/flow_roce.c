// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RoCEv2 flow: the requester of RC, and what UC sends.
 *
 * Operations are taken from the send ring into a window, where they stay until
 * the peer has acknowledged them; their slots of the ring are the process's
 * again only then. What has to be sent again is made from the window's private
 * copy of the descriptor, and its memory is looked up and checked again.
 *
 * A requester counts packets from una (the oldest that is not acknowledged) over
 * cur (the next to be sent) to next (the first of the next operation). Something
 * was lost: cur goes back to una. A long READ is asked for in chunks, so that
 * its answers never exceed the window either.
 */

#include <linux/bottom_half.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "roce.h"

#define RNR_FOREVER	7
#define RETRY_FOREVER	7
#define BURST		16	/* packets between looks at what came in */

static struct vrnic_req *to_req(struct vrnic_qp *qp)
{
	return &qp->roce->req;
}

static struct vrnic_wop *wop_at(struct vrnic_req *q, u32 i)
{
	return &q->ops[i % VRNIC_WINDOW_OPS];
}

static u64 wop_end(const struct vrnic_wop *w)
{
	return w->first + w->pkts;
}

static bool is_local(const struct vrnic_wop *w)
{
	return w->info && w->info->execute;
}

/* Have operation @i in qp->op. */
static void load(struct vrnic_qp *qp, u32 i)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = wop_at(q, i);

	if (q->has_loaded && q->loaded == i)
		return;
	memcpy(qp->op.slots, q->slots + w->slot * VRNIC_SLOT_SIZE,
	       w->num_slots * VRNIC_SLOT_SIZE);
	qp->op.info = w->info;
	qp->op.total = w->total;
	qp->op.done = 0;
	q->loaded = i;
	q->has_loaded = true;
}

static void wop_fail(struct vrnic_qp *qp, struct vrnic_wop *w, u8 status,
		     int verr)
{
	if (w->status != IB_WC_SUCCESS)
		return;
	w->status = status;
	w->vendor_err = verr;
	to_req(qp)->blocked = true;
}

static u64 timeout_ns(const struct vrnic_qp *qp)
{
	return 4096ULL << qp->attr.timeout;
}

/*
 * When to look whether something was lost, if nobody answers: some times the
 * usual time, but not so early that a peer that was only held up is bothered.
 */
static u64 first_wait(const struct vrnic_qp *qp)
{
	const struct vrnic_req *q = &qp->roce->req;

	return clamp(2 * q->rtt + 4 * q->rtt_var, timeout_ns(qp) / 8,
		     timeout_ns(qp));
}

/* As TCP does it: RFC 6298. */
static void take_time(struct vrnic_req *q)
{
	s64 took = ktime_get_ns() - q->timed_at;

	if (q->rtt) {
		q->rtt_var += (abs(took - (s64)q->rtt) - (s64)q->rtt_var) / 4;
		q->rtt += (took - (s64)q->rtt) / 8;
	} else {
		q->rtt = took;
		q->rtt_var = took / 2;
	}
	q->timed = 0;
}

/* Packets from @before on were acknowledged: time and retries start anew. */
static void progress(struct vrnic_qp *qp, u64 before)
{
	struct vrnic_req *q = to_req(qp);

	if (q->timed && q->una > q->timed)
		take_time(q);
	q->deadline = 0;
	q->since = 0;
	q->wait = 0;
	q->rnr_left = qp->attr.rnr_retry;
	q->retry_left = qp->attr.retry_cnt;
	q->window = min_t(u64, q->window + q->una - before, VRNIC_WINDOW_PKTS);
	if (q->cur <= q->una) {
		q->cur = q->una;
		q->reads = 0;
	}
}

static void go_back(struct vrnic_req *q)
{
	q->cur = q->una;
	q->send = q->head;
	q->reads = 0;
	q->acked_at = q->una;
	/* an answer may be to either packet */
	q->timed = 0;
}

/* A loss: what is on the way is sent again, so have less of it. */
static void go_back_lost(struct vrnic_req *q)
{
	q->window = max_t(u32, q->window / 2, VRNIC_WINDOW_MIN);
	go_back(q);
}

/* Go back because of an answer: once, until there is progress or a timeout. */
static void go_back_once(struct vrnic_req *q)
{
	if (q->went_back == q->una)
		return;
	q->went_back = q->una;
	go_back_lost(q);
}

/*
 * All packets before @limit were executed. What is answered by more than an
 * acknowledgment is not complete without that answer.
 *
 * Return: false if such an answer is missing.
 */
static bool acked(struct vrnic_qp *qp, u64 limit)
{
	struct vrnic_req *q = to_req(qp);
	u64 before = q->una;
	bool missing = false;
	u32 i;

	for (i = q->head; i != q->tail && q->una < limit; i++) {
		struct vrnic_wop *w = wop_at(q, i);

		if (wop_end(w) <= q->una)
			continue;
		if (w->answered) {
			missing = true;
			break;
		}
		q->una = min(wop_end(w), limit);
	}
	if (q->una != before)
		progress(qp, before);
	return !missing;
}

/* The operation that packet @q->una is of. */
static struct vrnic_wop *oldest(struct vrnic_req *q, u32 *index)
{
	u32 i;

	for (i = q->head; i != q->tail; i++) {
		if (wop_end(wop_at(q, i)) <= q->una)
			continue;
		*index = i;
		return wop_at(q, i);
	}
	return NULL;
}

static void rnr_nak(struct vrnic_qp *qp, u8 code)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	vrnic_count(qp->dev, RCVD_RNR_ERR);
	w = oldest(q, &i);
	if (!w || q->rnr_until)
		return;
	if (!q->rnr_left) {
		vrnic_count(qp->dev, RETRY_RNR_EXCEEDED_ERR);
		wop_fail(qp, w, IB_WC_RNR_RETRY_EXC_ERR, VRNIC_VERR_RNR);
		return;
	}
	if (q->rnr_left != RNR_FOREVER)
		q->rnr_left--;
	vrnic_count(qp->dev, RNR_WAITS);
	q->rnr_until = ktime_get_ns() + vrnic_rnr_ns(code);
	q->deadline = 0;
	q->since = 0;
	q->wait = 0;
	go_back(q);
}

static void remote_error(struct vrnic_qp *qp, u8 code)
{
	static const u8 status[] = {
		[VRNIC_NAK_INVALID] = IB_WC_REM_INV_REQ_ERR,
		[VRNIC_NAK_ACCESS] = IB_WC_REM_ACCESS_ERR,
		[VRNIC_NAK_OPERATION] = IB_WC_REM_OP_ERR,
	};
	struct vrnic_wop *w;
	u32 i;

	w = oldest(to_req(qp), &i);
	if (w && code < ARRAY_SIZE(status))
		wop_fail(qp, w, status[code], VRNIC_VERR_NONE);
}

static void rx_ack(struct vrnic_qp *qp, struct sk_buff *skb, u64 psn)
{
	u8 syndrome = vrnic_aeth_syndrome(vrnic_pkt_ext(skb));
	u8 value = syndrome & VRNIC_AETH_VALUE;
	struct vrnic_req *q = to_req(qp);

	if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_ACK) {
		if (!acked(qp, psn + 1))
			go_back_once(q);
		return;
	}
	if (!acked(qp, psn)) {
		go_back_once(q);
		return;
	}
	if (q->una != psn)
		return;
	if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_RNR) {
		rnr_nak(qp, value);
	} else if ((syndrome & VRNIC_AETH_KIND) == VRNIC_AETH_NAK) {
		if (value != VRNIC_NAK_PSN) {
			remote_error(qp, value);
			return;
		}
		vrnic_count(qp->dev, RCVD_SEQ_ERR);
		if (!q->rnr_until)
			go_back_lost(q);
	}
}

/* One packet of an answer came, in order. */
static void answer_done(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	struct vrnic_req *q = to_req(qp);
	u64 n = ++q->una - w->first;

	if ((n == w->pkts || (w->chunk && !(n % w->chunk))) && q->reads)
		q->reads--;
	progress(qp, q->una - 1);
}

static void rx_read(struct vrnic_qp *qp, struct sk_buff *skb,
		    struct vrnic_wop *w, u32 i)
{
	u64 off = (to_req(qp)->una - w->first) * qp->roce->mtu;
	u32 want = min_t(u64, qp->roce->mtu, w->total - off);
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	int verr;

	if (pkt->len != want) {
		vrnic_count(qp->dev, MALFORMED_PKTS);
		return;
	}
	load(qp, i);
	verr = vrnic_op_open(qp, &qp->op);
	if (verr) {
		wop_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return;
	}
	vrnic_sgl_skip(&qp->sgl, off);
	vrnic_pkt_copy(skb, &qp->sgl, off + want == w->total);
	vrnic_sgl_put(&qp->sgl);
	answer_done(qp, w);
}

static void rx_atomic(struct vrnic_qp *qp, struct sk_buff *skb,
		      struct vrnic_wop *w, u32 i)
{
	const struct vrnic_atomicack *ack =
		vrnic_pkt_ext(skb) + sizeof(struct vrnic_aeth);
	u64 orig = be64_to_cpu(get_unaligned(&ack->orig));
	int verr;

	load(qp, i);
	verr = vrnic_op_open(qp, &qp->op);
	if (verr) {
		wop_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return;
	}
	vrnic_sgl_write(&qp->sgl, &orig, sizeof(orig), true);
	vrnic_sgl_put(&qp->sgl);
	answer_done(qp, w);
}

/* The answer to a READ, an atomic, FLUSH or ATOMIC WRITE. */
static void rx_answer(struct vrnic_qp *qp, struct sk_buff *skb, u64 psn)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_req *q = to_req(qp);
	bool atomic = pkt->opcode == VRNIC_BTH_ATOMIC_ACK;
	struct vrnic_wop *w;
	u32 i;

	/* it acknowledges what was asked for before */
	if (!acked(qp, psn)) {
		go_back_once(q);
		return;
	}
	w = oldest(q, &i);
	if (!w || q->una != psn || !w->answered || w->status)
		return;
	switch (w->info->wc) {
	case IB_WC_RDMA_READ:
		if (!atomic)
			rx_read(qp, skb, w, i);
		break;
	case IB_WC_COMP_SWAP:
	case IB_WC_FETCH_ADD:
		if (atomic)
			rx_atomic(qp, skb, w, i);
		break;
	default:
		if (pkt->opcode == VRNIC_BTH_READ_RESP_ONLY && !pkt->len)
			answer_done(qp, w);
	}
}

/**
 * vrnic_req_answer() - an answer of the peer
 * @qp: requester
 * @skb: packet
 */
void vrnic_req_answer(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_req *q = to_req(qp);
	u64 psn = vrnic_psn_extend(pkt->psn, q->una);

	/* answers to what was complete before, and to what was never sent */
	if (psn < q->una || psn >= q->top)
		return;
	if (pkt->opcode == VRNIC_BTH_ACK)
		rx_ack(qp, skb, psn);
	else
		rx_answer(qp, skb, psn);
}

/* What the peer answers by more than an acknowledgment. */
static bool is_answered(u8 opcode)
{
	switch (opcode) {
	case VRNIC_OP_RDMA_READ:
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
	case VRNIC_OP_ATOMIC_WRITE:
	case VRNIC_OP_FLUSH:
		return true;
	default:
		return false;
	}
}

/* Private copy of the slots; there is room. */
static void keep_slots(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	struct vrnic_req *q = to_req(qp);

	w->num_slots = vrnic_op_desc(&qp->op)->num_slots;
	w->slot = q->slot_tail % VRNIC_WINDOW_SLOTS;
	memcpy(q->slots + w->slot * VRNIC_SLOT_SIZE, qp->op.slots,
	       w->num_slots * VRNIC_SLOT_SIZE);
	q->slot_tail += w->num_slots;
	q->ahead += w->num_slots;
}

static void check_op(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	struct vrnic_op *op = &qp->op;
	int verr;

	w->status = op->status;
	w->vendor_err = op->vendor_err;
	if (w->status != IB_WC_SUCCESS)
		return;
	verr = vrnic_op_check(qp, op);
	if (verr) {
		w->status = verr == VRNIC_VERR_LENGTH ? IB_WC_LOC_LEN_ERR :
							IB_WC_LOC_QP_OP_ERR;
		w->vendor_err = verr;
	}
	w->info = op->info;
}

/* How many packets it takes, of each side. */
static void plan(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);

	w->total = qp->op.total;
	w->answered = is_answered(d->opcode);
	switch (d->opcode) {
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		w->total = sizeof(u64);
		w->pkts = 1;
		break;
	case VRNIC_OP_RDMA_READ:
		/* two chunks on the way, where two requests may be */
		w->chunk = qp->attr.max_rd_atomic > 1 ?
				   VRNIC_WINDOW_PKTS / 2 : VRNIC_WINDOW_PKTS;
		fallthrough;
	default:
		w->pkts = vrnic_psn_count(w->total, qp->roce->mtu);
	}
	qp->op.total = w->total;
}

/*
 * Operations that need no peer. What only makes something valid may be done at
 * once; LOCAL_INV takes something away that earlier operations may be using, so
 * it waits until it is the oldest.
 */
static void run_local(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	enum vrnic_step step;

	/* it may wait for the last user of a region: not for us */
	vrnic_loop_release(qp);
	step = w->info->execute(qp, &qp->op);
	if (step == VRNIC_STEP_FAIL)
		wop_fail(qp, w, qp->op.status, qp->op.vendor_err);
	if (step != VRNIC_STEP_MORE)
		w->chunk = 1;	/* done */
}

/* Take the next descriptor into the window. */
static bool admit(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;

	if (q->blocked || READ_ONCE(qp->state) != IB_QPS_RTS ||
	    q->tail - q->head == VRNIC_WINDOW_OPS ||
	    q->slot_tail - q->slot_head > VRNIC_WINDOW_SLOTS - VRNIC_MAX_SLOTS)
		return false;
	q->has_loaded = false;
	if (!vrnic_sq_fetch(qp, q->ahead))
		return false;
	qp->op.active = false;
	w = wop_at(q, q->tail);
	memset(w, 0, sizeof(*w));
	w->first = q->next;
	check_op(qp, w);
	keep_slots(qp, w);
	q->loaded = q->tail;
	q->has_loaded = true;
	q->tail++;
	if (w->status != IB_WC_SUCCESS)
		q->blocked = true;
	else if (!is_local(w))
		plan(qp, w);
	else if (w->info->wc != IB_WC_LOCAL_INV)
		run_local(qp, w);
	q->next += w->pkts;
	return true;
}

static void put_reth(struct vrnic_tx *tx, u64 va, u32 rkey, u32 len)
{
	struct vrnic_reth reth = {
		.va = cpu_to_be64(va),
		.rkey = cpu_to_be32(rkey),
		.len = cpu_to_be32(len),
	};

	memcpy(tx->ext + tx->ext_len, &reth, sizeof(reth));
	tx->ext_len += sizeof(reth);
}

static void put_word(struct vrnic_tx *tx, __be32 word)
{
	memcpy(tx->ext + tx->ext_len, &word, sizeof(word));
	tx->ext_len += sizeof(word);
}

/* The operation of a data packet, without its service. */
static u8 data_opcode(u8 opcode, bool first, bool last)
{
	bool write = opcode == VRNIC_OP_RDMA_WRITE ||
		     opcode == VRNIC_OP_RDMA_WRITE_WITH_IMM;

	if (!last)
		return (write ? VRNIC_BTH_WRITE_FIRST : VRNIC_BTH_SEND_FIRST) +
		       !first;
	switch (opcode) {
	case VRNIC_OP_SEND:
		return first ? VRNIC_BTH_SEND_ONLY : VRNIC_BTH_SEND_LAST;
	case VRNIC_OP_SEND_WITH_IMM:
		return first ? VRNIC_BTH_SEND_ONLY_IMM : VRNIC_BTH_SEND_LAST_IMM;
	case VRNIC_OP_SEND_WITH_INV:
		return first ? VRNIC_BTH_SEND_ONLY_INV : VRNIC_BTH_SEND_LAST_INV;
	case VRNIC_OP_RDMA_WRITE:
		return first ? VRNIC_BTH_WRITE_ONLY : VRNIC_BTH_WRITE_LAST;
	default:
		return first ? VRNIC_BTH_WRITE_ONLY_IMM :
			       VRNIC_BTH_WRITE_LAST_IMM;
	}
}

/* Headers of the packet of a SEND or WRITE that starts at byte @off. */
static void fill_data(struct vrnic_qp *qp, struct vrnic_tx *tx, u64 off)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	u64 left = qp->op.total - off;
	bool last = left <= qp->roce->mtu;
	u8 op = data_opcode(d->opcode, !off, last);
	u32 info = vrnic_bth_info(op);

	tx->opcode = op | (qp->type == IB_QPT_UC ? VRNIC_SVC_UC : VRNIC_SVC_RC);
	tx->dqpn = qp->attr.dest_qp_num;
	tx->src = &qp->sgl;
	tx->len = last ? left : qp->roce->mtu;
	tx->ext_len = 0;
	tx->solicited = last && d->flags & VRNIC_DESC_SOLICITED;
	if (info & VRNIC_PKT_RETH)
		put_reth(tx, d->remote_addr, d->rkey, qp->op.total);
	if (info & VRNIC_PKT_IMM)
		put_word(tx, (__force __be32)d->imm);
	if (info & VRNIC_PKT_IETH)
		put_word(tx, cpu_to_be32(d->imm));
}

/* Send the packet @q->cur, of @pkts PSNs. */
static bool send_next(struct vrnic_qp *qp, struct vrnic_tx *tx, u32 pkts)
{
	struct vrnic_req *q = to_req(qp);
	int err;

	tx->psn = q->cur;
	tx->copy = q->cur < q->top;
	if (tx->copy)
		vrnic_count(qp->dev, RETRANSMITTED_PKTS);
	if (tx->ackreq)
		q->acked_at = q->cur;
	if (tx->ackreq && !q->timed && !tx->copy) {
		q->timed = q->cur;
		q->timed_at = ktime_get_ns();
	}
	err = vrnic_roce_xmit(qp, &qp->roce->path, tx);
	q->cur += pkts;
	q->top = max(q->top, q->cur);
	/* as good as lost: it is sent again when time is up */
	return err != -ENOMEM && err != -EHOSTUNREACH;
}

static bool window_open(const struct vrnic_req *q)
{
	return q->cur - q->una < q->window;
}

/* Return: false if nothing more can be sent now. */
static bool send_data(struct vrnic_qp *qp, struct vrnic_wop *w,
		      struct vrnic_budget *budget)
{
	struct vrnic_req *q = to_req(qp);
	u64 off = (q->cur - w->first) * qp->roce->mtu;
	struct vrnic_tx tx;
	bool ok = true;
	int verr, n;

	verr = vrnic_op_open(qp, &qp->op);
	if (verr) {
		wop_fail(qp, w, IB_WC_LOC_PROT_ERR, verr);
		return true;
	}
	vrnic_sgl_skip(&qp->sgl, off);
	for (n = 0; ok && n < BURST && q->cur < wop_end(w) && window_open(q) &&
	     budget->bytes; n++) {
		fill_data(qp, &tx, off);
		tx.ackreq = q->cur + 1 == wop_end(w) ||
			    q->cur + 1 - q->una == q->window ||
			    q->cur - q->acked_at >= VRNIC_ACK_EVERY;
		ok = send_next(qp, &tx, 1);
		off += tx.len;
		budget->bytes -= min_t(u64, budget->bytes, tx.len);
	}
	vrnic_sgl_put(&qp->sgl);
	return ok;
}

static bool may_ask(struct vrnic_qp *qp)
{
	return to_req(qp)->reads < max_t(u32, qp->attr.max_rd_atomic, 1);
}

static bool send_read(struct vrnic_qp *qp, struct vrnic_wop *w)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_req *q = to_req(qp);
	u32 at = q->cur - w->first;
	u32 n = min(w->chunk - at % w->chunk, w->pkts - at);
	u64 off = (u64)at * qp->roce->mtu;
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_READ_REQUEST,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
	};

	if (!may_ask(qp) ||
	    (q->cur != q->una && q->cur + n - q->una > q->window))
		return false;
	put_reth(&tx, d->remote_addr + off, d->rkey,
		 min_t(u64, (u64)n * qp->roce->mtu, w->total - off));
	q->reads++;
	return send_next(qp, &tx, n);
}

static bool send_atomic(struct vrnic_qp *qp)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_atomiceth eth = {
		.va = cpu_to_be64(d->remote_addr),
		.rkey = cpu_to_be32(d->rkey),
		.swap_add = cpu_to_be64(d->atomic.swap_add),
		.compare = cpu_to_be64(d->atomic.compare),
	};
	struct vrnic_tx tx = {
		.opcode = d->opcode == VRNIC_OP_ATOMIC_CMP_AND_SWP ?
				  VRNIC_BTH_CMP_SWAP : VRNIC_BTH_FETCH_ADD,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
		.ext_len = sizeof(eth),
	};

	if (!may_ask(qp))
		return false;
	memcpy(tx.ext, &eth, sizeof(eth));
	to_req(qp)->reads++;
	return send_next(qp, &tx, 1);
}

static bool send_atomic_write(struct vrnic_qp *qp)
{
	struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_ATOMIC_WRITE,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
		.src = &qp->sgl,
		.len = sizeof(u64),
	};

	if (!may_ask(qp))
		return false;
	put_reth(&tx, d->remote_addr, d->rkey, sizeof(u64));
	vrnic_sgl_kva(&qp->sgl, d->data, sizeof(u64));
	to_req(qp)->reads++;
	return send_next(qp, &tx, 1);
}

static bool send_flush(struct vrnic_qp *qp)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	u32 what = d->flush & VRNIC_FETH_TYPE;
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_FLUSH,
		.dqpn = qp->attr.dest_qp_num,
		.ackreq = true,
	};

	if (!may_ask(qp))
		return false;
	if (d->flush & VRNIC_FLUSH_MR)
		what |= 1 << VRNIC_FETH_RANGE_SHIFT;
	put_word(&tx, cpu_to_be32(what));
	put_reth(&tx, d->remote_addr, d->rkey, d->flush_len);
	to_req(qp)->reads++;
	return send_next(qp, &tx, 1);
}

static bool send_op(struct vrnic_qp *qp, struct vrnic_wop *w,
		    struct vrnic_budget *budget)
{
	const struct vrnic_desc *d = vrnic_op_desc(&qp->op);
	struct vrnic_req *q = to_req(qp);

	/* IBTA 10.8.3.3: not before earlier READs and atomics are complete */
	if (d->flags & VRNIC_DESC_FENCE && q->cur == w->first && q->reads)
		return false;
	if (!window_open(q))
		return false;
	switch (d->opcode) {
	case VRNIC_OP_RDMA_READ:
		return send_read(qp, w);
	case VRNIC_OP_ATOMIC_CMP_AND_SWP:
	case VRNIC_OP_ATOMIC_FETCH_AND_ADD:
		return send_atomic(qp);
	case VRNIC_OP_ATOMIC_WRITE:
		return send_atomic_write(qp);
	case VRNIC_OP_FLUSH:
		return send_flush(qp);
	default:
		return send_data(qp, w, budget);
	}
}

/* The operation that @q->cur is of, or NULL: all was sent that may be. */
static struct vrnic_wop *next_op(struct vrnic_req *q)
{
	struct vrnic_wop *w;

	for (; q->send != q->tail; q->send++) {
		w = wop_at(q, q->send);
		if (w->status != IB_WC_SUCCESS || (is_local(w) && !w->chunk))
			return NULL;
		if (q->cur < wop_end(w))
			return w;
	}
	return NULL;
}

/* Return: true if packets were sent or operations begun. */
static bool transmit(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct vrnic_req *q = to_req(qp);
	bool busy = false;
	struct vrnic_wop *w;
	int n;

	if (q->rnr_until)
		return false;
	for (n = 0; n < BURST && budget->bytes; n++) {
		w = next_op(q);
		if (!w) {
			if (!window_open(q) || q->send != q->tail || !admit(qp))
				break;
			busy = true;
			continue;
		}
		load(qp, q->send);
		if (!send_op(qp, w, budget))
			break;
		busy = true;
	}
	return busy;
}

static void count_done(struct vrnic_qp *qp, const struct vrnic_wop *w)
{
	switch (w->info->wc) {
	case IB_WC_RDMA_WRITE:
		vrnic_count_add(qp->dev, BYTES_WRITTEN, w->total);
		break;
	case IB_WC_RDMA_READ:
		vrnic_count_add(qp->dev, BYTES_READ, w->total);
		break;
	case IB_WC_COMP_SWAP:
	case IB_WC_FETCH_ADD:
		vrnic_count(qp->dev, ATOMICS);
		break;
	case IB_WC_SEND:
		vrnic_count_add(qp->dev, BYTES_SENT, w->total);
		break;
	}
}

/* Complete the oldest operation with @status. */
static void retire_op(struct vrnic_qp *qp, u8 status, u8 verr)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = wop_at(q, q->head);

	load(qp, q->head);
	q->has_loaded = false;
	qp->op.status = status;
	qp->op.vendor_err = verr;
	if (q->send == q->head)
		q->send++;
	q->head++;
	q->slot_head += w->num_slots;
	q->ahead -= w->num_slots;
	vrnic_sq_complete(qp);
}

/* Return: true if an operation was completed. */
static bool retire_one(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w = wop_at(q, q->head);

	if (q->head == q->tail)
		return false;
	if (w->status == IB_WC_SUCCESS && is_local(w) && !w->chunk) {
		load(qp, q->head);
		run_local(qp, w);
		if (!w->chunk)
			return true;
	}
	if (w->status != IB_WC_SUCCESS) {
		vrnic_count(qp->dev, LOCAL_ERRORS);
		retire_op(qp, w->status, w->vendor_err);
		vrnic_sq_error(qp);
		return true;
	}
	if (q->una < wop_end(w))
		return false;
	count_done(qp, w);
	retire_op(qp, IB_WC_SUCCESS, VRNIC_VERR_NONE);
	return true;
}

static bool retire(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy = false;

	while (budget->descs && READ_ONCE(qp->state) != IB_QPS_ERR &&
	       retire_one(qp)) {
		budget->descs--;
		busy = true;
	}
	return busy;
}

/*
 * Nobody answered in time. The time that the consumer set makes up one try, but
 * what was lost is looked for several times within it.
 */
static void timed_out(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_wop *w;
	u32 i;

	q->deadline = 0;
	vrnic_count(qp->dev, ACK_TIMEOUTS);
	w = oldest(q, &i);
	if (!w)
		return;
	if (now - q->since >= timeout_ns(qp)) {
		if (!q->retry_left) {
			vrnic_count(qp->dev, RETRY_EXCEEDED_ERR);
			wop_fail(qp, w, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
			return;
		}
		q->retry_left--;
		q->since = now;
		vrnic_count(qp->dev, RETRIES);
	}
	q->went_back = 0;
	go_back_lost(q);
}

static void look_at_clock(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now;

	if (!q->timer_at && !q->rnr_until && !q->deadline)
		return;
	now = ktime_get_ns();
	if (q->timer_at && now >= q->timer_at)
		q->timer_at = 0;
	if (q->rnr_until && now >= q->rnr_until)
		q->rnr_until = 0;
	if (q->deadline && now >= q->deadline)
		timed_out(qp, now);
}

static void set_deadline(struct vrnic_qp *qp, u64 now)
{
	struct vrnic_req *q = to_req(qp);

	if (!q->since)
		q->since = now;
	q->wait = q->wait ? 2 * q->wait : first_wait(qp);
	/* the last look within a try is at its end */
	q->deadline = min(now + q->wait, q->since + timeout_ns(qp));
	if (q->deadline <= now)
		q->deadline = now + first_wait(qp);
}

/* Have the timer run if an answer is due, or the peer is to be left alone. */
static void set_timer(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);
	u64 now = 0, at;

	if (q->una < q->cur && !q->deadline && qp->attr.timeout) {
		now = ktime_get_ns();
		set_deadline(qp, now);
	}
	at = q->rnr_until ?: q->deadline;
	if (!at || (q->timer_at && q->timer_at <= at))
		return;
	if (!now)
		now = ktime_get_ns();
	q->timer_at = at;
	vrnic_queue_after(&qp->run, at > now ? at - now : 1);
}

/**
 * vrnic_roce_send() - go on with the requests of an RC queue pair
 * @qp: requester; in RTS, or in SQD: then nothing new is begun
 * @budget: bounds this burst
 *
 * Return: true if there may be more to do at once.
 */
bool vrnic_roce_send(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy;

	/*
	 * What the peer answers meanwhile is looked at together, and not at the
	 * bottom of a stack that has the way out of the network on it.
	 */
	local_bh_disable();
	look_at_clock(qp);
	busy = retire(qp, budget);
	if (READ_ONCE(qp->state) != IB_QPS_ERR) {
		busy |= transmit(qp, budget);
		/* what needs no peer, or failed at once, is complete by now */
		busy |= retire(qp, budget);
		set_timer(qp);
	}
	local_bh_enable();
	return busy;
}

/* The first message says that the connection is there: IBTA 11.6.3.1. */
static void note_contact(struct vrnic_qp *qp)
{
	if (qp->comm_est || READ_ONCE(qp->state) != IB_QPS_RTR)
		return;
	qp->comm_est = true;
	vrnic_qp_event(qp, IB_EVENT_COMM_EST);
}

/* Is it from the peer, and to the address that the peer knows? */
static bool from_peer(struct vrnic_qp *qp, const struct sk_buff *skb)
{
	const struct vrnic_path *path = &qp->roce->path;
	union ib_gid from, to;

	vrnic_pkt_gids(skb, &from, &to);
	return !memcmp(&from, &path->dgid, sizeof(from)) &&
	       !memcmp(&to, &path->sgid, sizeof(to));
}

static void receive_connected(struct vrnic_qp *qp, struct sk_buff *skb)
{
	if (!qp->roce || !from_peer(qp, skb)) {
		vrnic_count(qp->dev, RCVD_DROPPED);
		kfree_skb(skb);
		return;
	}
	note_contact(qp);
	if (vrnic_pkt(skb)->info & VRNIC_PKT_RESP) {
		vrnic_req_answer(qp, skb);
		kfree_skb(skb);
	} else {
		vrnic_resp_request(qp, skb);
	}
}

static struct sk_buff *next_packet(struct vrnic_qp *qp,
				   struct vrnic_budget *budget)
{
	struct sk_buff *skb = skb_dequeue(&qp->rxq);

	if (skb)
		budget->bytes -= min_t(u64, budget->bytes,
				       vrnic_pkt(skb)->len + 64);
	return skb;
}

/* Go on with a READ that is being answered, or with the next packet. */
static bool receive_one(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb;

	if (qp->roce && vrnic_resp_busy(qp)) {
		vrnic_resp_reply(qp, budget);
		return true;
	}
	skb = next_packet(qp, budget);
	if (skb)
		receive_connected(qp, skb);
	return skb;
}

static bool receive_all(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	bool busy = false;

	/* as in vrnic_roce_send() */
	local_bh_disable();
	while (budget->bytes && READ_ONCE(qp->state) != IB_QPS_ERR &&
	       receive_one(qp, budget))
		busy = true;
	if (qp->roce)
		vrnic_resp_ack(qp);
	local_bh_enable();
	return busy;
}

/* Datagrams go into a pair that local senders use too, with its mutex. */
static bool receive_datagrams(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	struct sk_buff *skb;
	bool busy = false;

	while (budget->bytes) {
		skb = next_packet(qp, budget);
		if (!skb)
			break;
		vrnic_ud_receive(qp, skb);
		busy = true;
	}
	return busy;
}

/**
 * vrnic_roce_receive() - look at the packets that came for a queue pair
 * @qp: queue pair, in a state in which it receives
 * @budget: bounds this burst
 *
 * Return: true if there was something to do.
 */
bool vrnic_roce_receive(struct vrnic_qp *qp, struct vrnic_budget *budget)
{
	if (skb_queue_empty_lockless(&qp->rxq) &&
	    !(qp->roce && vrnic_resp_busy(qp)))
		return false;
	if (qp->type == IB_QPT_RC || qp->type == IB_QPT_UC)
		return receive_all(qp, budget);
	return receive_datagrams(qp, budget);
}

/* The oldest operation ends in WR_FLUSH_ERR. Return: false: there is none. */
bool vrnic_roce_flush(struct vrnic_qp *qp)
{
	struct vrnic_req *q;

	skb_queue_purge(&qp->rxq);
	if (!qp->roce)
		return false;
	q = to_req(qp);
	qp->roce->resp.reply.active = false;
	if (q->head == q->tail)
		return false;
	vrnic_count(qp->dev, FLUSHED);
	retire_op(qp, IB_WC_WR_FLUSH_ERR, VRNIC_VERR_NONE);
	return true;
}

/* Nothing is under way. */
bool vrnic_roce_idle(const struct vrnic_qp *qp)
{
	return qp->roce->req.head == qp->roce->req.tail;
}

static int req_init(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	if (qp->type == IB_QPT_UC)
		return 0;
	q->ops = kvcalloc(VRNIC_WINDOW_OPS, sizeof(*q->ops), GFP_KERNEL_ACCOUNT);
	/* one that would wrap goes on behind the end */
	q->slots = kvcalloc(VRNIC_WINDOW_SLOTS + VRNIC_MAX_SLOTS,
			    VRNIC_SLOT_SIZE, GFP_KERNEL_ACCOUNT);
	return q->ops && q->slots ? 0 : -ENOMEM;
}

/**
 * vrnic_roce_connect() - a queue pair goes to RTR, and its peer is elsewhere
 * @qp: parked; its attributes are set
 * @attr: address vector, with its GID
 *
 * Return: 0 or a negative errno; nothing has to be undone then.
 */
int vrnic_roce_connect(struct vrnic_qp *qp, const struct rdma_ah_attr *attr)
{
	struct vrnic_roce *roce;
	int err;

	roce = kzalloc(sizeof(*roce), GFP_KERNEL_ACCOUNT);
	if (!roce)
		return -ENOMEM;
	roce->mtu = ib_mtu_enum_to_int(qp->attr.path_mtu);
	qp->roce = roce;
	err = vrnic_path_init(&roce->path, qp->dev, &attr->grh.sgid_attr->gid,
			      attr, vrnic_gid_oif(qp->dev, attr->grh.sgid_attr),
			      qp->qpn, qp->attr.dest_qp_num);
	if (!err)
		err = vrnic_resp_init(qp);
	if (!err)
		err = req_init(qp);
	if (err)
		vrnic_roce_disconnect(qp);
	return err;
}

/* Likewise, another path to the same peer: in SQD. */
int vrnic_roce_reroute(struct vrnic_qp *qp, const struct rdma_ah_attr *attr)
{
	struct vrnic_path *path = &qp->roce->path;

	vrnic_path_drop(path);
	return vrnic_path_init(path, qp->dev, &attr->grh.sgid_attr->gid, attr,
			       vrnic_gid_oif(qp->dev, attr->grh.sgid_attr),
			       qp->qpn, qp->attr.dest_qp_num);
}

/* It goes to RTS: the first PSN is known. */
void vrnic_roce_ready(struct vrnic_qp *qp)
{
	struct vrnic_req *q = to_req(qp);

	/* far from zero, so that a count can be less than the first */
	q->una = (1ULL << 32) | (qp->attr.sq_psn & VRNIC_PSN_MASK);
	q->cur = q->una;
	q->top = q->una;
	q->next = q->una;
	q->acked_at = q->una;
	q->window = VRNIC_WINDOW_PKTS;
	q->rnr_left = qp->attr.rnr_retry;
	q->retry_left = qp->attr.retry_cnt;
}

/* The timer was cancelled while it was parked. */
void vrnic_roce_resume(struct vrnic_qp *qp)
{
	if (qp->roce)
		qp->roce->req.timer_at = 0;
}

/* Parked. */
void vrnic_roce_disconnect(struct vrnic_qp *qp)
{
	struct vrnic_roce *roce = qp->roce;

	skb_queue_purge(&qp->rxq);
	if (!roce)
		return;
	vrnic_path_drop(&roce->path);
	vrnic_resp_free(qp);
	kvfree(roce->req.ops);
	kvfree(roce->req.slots);
	qp->roce = NULL;
	kfree(roce);
}

/**
 * vrnic_roce_execute_uc() - send a message of a UC queue pair
 * @qp: requester
 * @op: checked by vrnic_op_check()
 * @budget: its bytes bound this burst
 *
 * It is complete when it is sent, so the packets have copies of the data.
 */
enum vrnic_step vrnic_roce_execute_uc(struct vrnic_qp *qp, struct vrnic_op *op,
				      struct vrnic_budget *budget)
{
	struct vrnic_req *q = to_req(qp);
	struct vrnic_tx tx = {};
	int verr = vrnic_op_open(qp, op);

	if (verr)
		return vrnic_op_fail(op, IB_WC_LOC_PROT_ERR, verr);
	vrnic_sgl_skip(&qp->sgl, op->done);
	local_bh_disable();
	do {
		fill_data(qp, &tx, op->done);
		tx.psn = q->next++;
		tx.copy = true;
		/* the rest of a message without this packet is of no use */
		if (vrnic_roce_xmit(qp, &qp->roce->path, &tx)) {
			op->done = op->total;
			break;
		}
		op->done += tx.len;
		budget->bytes -= min_t(u64, budget->bytes, tx.len);
	} while (op->done < op->total && budget->bytes);
	local_bh_enable();
	vrnic_sgl_put(&qp->sgl);
	return op->done == op->total ? VRNIC_STEP_DONE : VRNIC_STEP_MORE;
}
