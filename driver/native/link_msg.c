// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages of a native link, from their posting until the peer has acknowledged them. A message is
 * kept that long because a lost packet is made again from it.
 */

#include <linux/jiffies.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "engine/engine.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "queue/opcode.h"
#include "queue/qp.h"

#define LONG_BYTES	SZ_16K	/* at least four packets */

static struct vrnic_nmsg *to_msg(u64 cookie)
{
	return (struct vrnic_nmsg *)(uintptr_t)cookie;
}

void vrnic_nmsg_add(struct vrnic_nmsg *msg, const struct vrnic_seg *seg)
{
	if (seg->len)
		msg->seg[msg->nr++] = *seg;
}

void vrnic_nmsg_release(struct vrnic_nmsg *msg)
{
	while (msg->nr)
		vrnic_seg_put(&msg->seg[--msg->nr]);
	/* to free none takes a while, too, and few messages have a buffer */
	if (!msg->buf)
		return;
	kvfree(msg->buf);
	msg->buf = NULL;
}

/* The caller holds the run bit of the link's queue pair, or the queue pair has ended. */
void vrnic_nmsg_free(struct vrnic_link *link, struct vrnic_nmsg *msg)
{
	if (!msg)
		return;
	vrnic_nmsg_release(msg);
	vrnic_link_type_put(link, msg->type);
	vrnic_host_uncharge(link->host, msg->charged);
	link->answers -= msg->answer;
	link->answer_bytes -= msg->charged;
	kfree(msg);
}

u64 vrnic_nmsg_bytes(const struct vrnic_nmsg *msg)
{
	u64 bytes = sizeof(msg->hdr);
	unsigned int i;

	for (i = 0; i < msg->nr; i++)
		bytes += msg->seg[i].len;
	return bytes;
}

/**
 * vrnic_native_alloc() - allocate memory for a link, or its queue pair
 * @link: link
 * @bytes: size
 * @patient: wait for reclaim, once; the caller may sleep
 *
 * The process with the FIFO pays. Return: zeroed memory, or NULL.
 * Context: any but hard interrupts.
 */
void *vrnic_native_alloc(struct vrnic_link *link, size_t bytes, bool patient)
{
	struct mem_cgroup *was = vrnic_charge_begin(link->fifo);
	void *mem = kzalloc(bytes, patient ? VRNIC_GFP_LINK :
					     GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN);

	vrnic_charge_end(was);
	return mem;
}

/**
 * vrnic_native_open() - describe the memory of a message to send
 * @sgl: to be filled in; need not be put
 * @cookie: cookie of the descriptor: address of the message
 */
void vrnic_native_open(struct vrnic_sgl *sgl, u64 cookie)
{
	struct vrnic_nmsg *msg = to_msg(cookie);
	unsigned int i;

	vrnic_sgl_kva(sgl, &msg->hdr, sizeof(msg->hdr));
	for (i = 0; i < msg->nr; i++) {
		sgl->seg[sgl->nr] = msg->seg[i];
		/* the message has the reference on the region, and puts it */
		sgl->seg[sgl->nr++].held = true;
	}
}

/*
 * Long data go without the header: then they begin where packets and pages begin, if their memory
 * does, and a packet has one page rather than two.
 */
static u32 head_alone(const struct vrnic_nmsg *msg, u32 bytes)
{
	return bytes > LONG_BYTES ? sizeof(msg->hdr) : 0;
}

/* Post a message to the link's queue pair. The caller holds link->lock. */
void vrnic_link_enqueue(struct vrnic_link *link, struct vrnic_nmsg *msg)
{
	struct vrnic_qp *qp = link->qp;

	lockdep_assert_held(&link->lock);
	list_add_tail(&msg->link, &link->msgs);
	/* pairs with the acquire in vrnic_sq_posted() */
	smp_store_release(&qp->posted, qp->posted + 1);
}

/* Take a message off the list, when the queue pair is done with it. The caller holds link->lock. */
void vrnic_nmsg_unlink(struct vrnic_link *link, struct vrnic_nmsg *msg)
{
	lockdep_assert_held(&link->lock);
	if (link->fetched == &msg->link)
		link->fetched = msg->link.prev;
	list_del_init(&msg->link);
}

/**
 * vrnic_native_fetch() - take the next message
 * @link: link; its queue pair has seen that there is another message
 *
 * Needs no lock: while the queue pair exists, only its run takes messages off the list, and the
 * message is in the list since before the queue pair could see it: vrnic_link_enqueue().
 *
 * Return: its cookie.
 */
u64 vrnic_native_fetch(struct vrnic_link *link)
{
	link->fetched = READ_ONCE(link->fetched->next);
	return (uintptr_t)list_entry(link->fetched, struct vrnic_nmsg, link);
}

/**
 * vrnic_native_describe() - fill in the descriptor of a message
 * @cookie: address of the message
 * @d: descriptor of one slot
 */
void vrnic_native_describe(u64 cookie, struct vrnic_desc *d)
{
	const struct vrnic_nmsg *msg = to_msg(cookie);
	u32 bytes = vrnic_nmsg_bytes(msg);

	*d = (struct vrnic_desc) {
		.opcode = VRNIC_OP_NATIVE,
		.flags = msg->posted ? VRNIC_DESC_POSTED : 0,
		.num_slots = 1,
		.cookie = cookie,
		.num_sge = 1,
		.imm = head_alone(msg, bytes),
		.sge[0].length = bytes,
	};
}

/* Give the request that is about to be posted a number, and await its answer. */
void vrnic_link_ask(struct vrnic_link *link, struct vrnic_nawait *await)
{
	lockdep_assert_held(&link->lock);
	await->id = ++link->asked_id;
	await->acked = false;
	list_add_tail(&await->link, &link->asks);
}

/* The peer has the request. It may take time to answer, but not for ever: native/link_keep.c. */
void vrnic_link_ask_acked(struct vrnic_link *link, struct vrnic_nawait *await)
{
	lockdep_assert_held(&link->lock);
	await->acked = true;
	await->since = jiffies;
}

/**
 * vrnic_link_run() - run the queue pair of a link, because messages were posted
 * @qp: queue pair, with a reference
 *
 * A process runs it as a doorbell does. Softirqs, and threads that also run the rings of others, do
 * so within a softirq's budget.
 */
void vrnic_link_run(struct vrnic_qp *qp)
{
	if (!in_softirq() && !(current->flags & PF_KTHREAD)) {
		vrnic_kick(&qp->run);
		return;
	}
	local_bh_disable();
	vrnic_poke(&qp->run, false);
	local_bh_enable();
}

/* ---- the link's run: messages in progress ---- */

/*
 * Give a request back to its injector, and let the injector run. The caller holds the run bit of
 * the link's queue pair, or the queue pair has ended.
 */
void vrnic_nreq_complete(struct vrnic_link *link, struct vrnic_nreq *req)
{
	struct vrnic_injector *inj = vrnic_nreq_injector(req);

	spin_lock_bh(&link->lock);
	list_del(&req->link);
	if (!req->await.answered)
		list_del(&req->await.link);
	spin_unlock_bh(&link->lock);
	if (link->rx.await == &req->await)
		link->rx.await = NULL;
	vrnic_nmsg_release(&req->msg);
	/* once @pending is cleared, @inj may be freed, but only after an RCU grace period */
	rcu_read_lock();
	/* pairs with the acquire in vrnic_wire_waits() */
	smp_store_release(&req->pending, false);
	vrnic_queue(&inj->run);
	rcu_read_unlock();
}

/* The process gets the status that the peer sent, so replace a value that is no ib_wc_status. */
static u8 known_failure(u8 status)
{
	return status && status < IB_WC_GENERAL_ERR ? status : IB_WC_GENERAL_ERR;
}

/**
 * vrnic_native_refused() - the peer could not execute a message, or one of the puts in it
 * @link: link
 * @cookie: cookie of the descriptor: address of the message
 * @why: as the peer says: enum ib_wc_status, in the 8 bits above enum vrnic_vendor_err, and in the
 *	8 bits above the index of the put
 *
 * Return: what becomes of the message.
 */
enum vrnic_refusal vrnic_native_refused(struct vrnic_link *link, u64 cookie, u32 why)
{
	struct vrnic_nmsg *msg = to_msg(cookie);
	u8 status = known_failure(why);

	/* the peer is there, although it acknowledges nothing: so a link that ends waits for it */
	WRITE_ONCE(link->heard, jiffies);
	if (msg->flight)
		return vrnic_nflight_refused(link, msg->flight, status, why >> 8, why >> 16);
	if (!msg->req || !msg->req->quiet)
		return VRNIC_REFUSAL_FALSE;
	msg->req->await.status = status;
	msg->req->await.vendor_err = why >> 8;
	return VRNIC_REFUSAL_SKIP;
}

/* The peer has the data of a GET. A counter that has gone meanwhile misses nothing. */
static void count_taken(struct vrnic_link *link, const struct vrnic_nmsg *msg)
{
	unsigned int i;

	for (i = 0; msg->taken && i < ARRAY_SIZE(msg->counter); i++)
		if (msg->counter[i])
			vrnic_counter_down(msg->counter[i], link->fifo->owner, msg->taken);
}

/**
 * vrnic_native_sent() - a message of a link was acknowledged or has failed
 * @link: link
 * @cookie: cookie of the descriptor: address of the message
 * @status: enum ib_wc_status
 */
void vrnic_native_sent(struct vrnic_link *link, u64 cookie, u8 status)
{
	struct vrnic_nmsg *msg = to_msg(cookie);
	struct vrnic_nreq *req = msg->req;

	if (status == IB_WC_SUCCESS)
		WRITE_ONCE(link->heard, jiffies);
	if (msg->flight) {
		vrnic_nflight_sent(link, msg->flight, status);
		return;
	}
	spin_lock_bh(&link->lock);
	vrnic_nmsg_unlink(link, msg);
	if (req)
		vrnic_link_ask_acked(link, &req->await);
	spin_unlock_bh(&link->lock);
	if (!req) {
		if (status == IB_WC_SUCCESS)
			count_taken(link, msg);
		vrnic_nmsg_free(link, msg);
		return;
	}
	/* after a failure, vrnic_link_flushed() completes the requests */
	if (status != IB_WC_SUCCESS)
		return;
	req->sent = true;
	if (req->await.answered)
		vrnic_nreq_complete(link, req);
}

/* Let the injector count the flights that have landed. */
static void land(struct vrnic_link *link)
{
	if (!link->landed)
		return;
	link->landed = false;
	vrnic_nflights_run(&link->fifo->inject);
}

/* A run of the link's queue pair is about to end. */
void vrnic_native_ran(struct vrnic_link *link)
{
	land(link);
	if (unlikely(READ_ONCE(link->rest)))
		vrnic_link_rest(link);
}

/* From now on no message can be posted to the link. */
void vrnic_link_broken(struct vrnic_link *link)
{
	spin_lock_bh(&link->lock);
	WRITE_ONCE(link->dead, true);
	spin_unlock_bh(&link->lock);
}

static void fail_pending(struct vrnic_link *link)
{
	struct vrnic_nreq *req, *next;

	/* no lock: a dead link gets no new requests */
	list_for_each_entry_safe(req, next, &link->reqs, link) {
		if (!req->await.answered || (req->quiet && !req->sent)) {
			req->await.status = IB_WC_RETRY_EXC_ERR;
			req->await.vendor_err = VRNIC_VERR_PEER;
		}
		vrnic_nreq_complete(link, req);
	}
}

/**
 * vrnic_link_flushed() - a link has failed, and its queue pair uses no message any more
 * @link: link; vrnic_link_broken() was called
 */
void vrnic_link_flushed(struct vrnic_link *link)
{
	fail_pending(link);
	vrnic_nflights_lost(link);
	vrnic_pace_settle(link);
	/* nothing is received any more, so the link may rest: vrnic_link_rest() */
	WRITE_ONCE(link->rx.left, 0);
	if (!link->failed) {
		WRITE_ONCE(link->failed, true);
		vrnic_link_failed(link);
	}
	/*
	 * Pairs with endpoint_watch(): either endpoint_watch() sees that the link is dead, or
	 * vrnic_endpoints_lost() sees the new endpoint.
	 */
	smp_mb();
	vrnic_endpoints_lost(link);
}

static void msgs_drop(struct vrnic_link *link)
{
	struct vrnic_nmsg *msg, *next;

	list_for_each_entry_safe(msg, next, &link->msgs, link) {
		if (msg->flight) {
			vrnic_nflight_sent(link, msg->flight, IB_WC_WR_FLUSH_ERR);
			continue;
		}
		spin_lock_bh(&link->lock);
		vrnic_nmsg_unlink(link, msg);
		spin_unlock_bh(&link->lock);
		if (!msg->req)
			vrnic_nmsg_free(link, msg);
	}
}

/* Free all that a link has, and fail its requests. The queue pair, in whatever state, has ended. */
void vrnic_link_drain(struct vrnic_link *link)
{
	vrnic_pace_settle(link);
	msgs_drop(link);
	vrnic_nflights_lost(link);
	land(link);
	vrnic_nmsg_free(link, link->rx.answer);
	link->rx.answer = NULL;
	kfree(link->rx.buf);
	link->rx.buf = NULL;
	fail_pending(link);
	vrnic_types_forget(link);
	vrnic_rx_rows_free(link);
	vrnic_grants_free(link);
	vrnic_rget_free(link->notice);
	link->notice = NULL;
}
