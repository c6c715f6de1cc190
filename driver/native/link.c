// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes native links. A process that makes an endpoint for a FIFO of another host asks that host
 * for a link with datagrams (ASK), until an answer comes or time is up. A host without vrnic never
 * answers. The answer YES has what an RC queue pair needs to know of its peer; NO has the reason.
 *
 * A link belongs to endpoints at the end that asked, and to the FIFO at the end that was asked. If
 * the owner goes, or the link fails, a datagram (BYE) tells the other end. If the BYE is lost, the
 * other end finds out when it next sends a message: a request, or a PING (native/link_keep.c).
 *
 * Accepting a link takes the FIFO's lock, and memory for which the FIFO's process pays. So threads
 * of this process's crew accept links (native/link_hello.c), and only processes in the same control
 * groups may have to wait for them.
 */

#include <linux/bottom_half.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "base/fault.h"
#include "base/port.h"
#include "lib/hdr.h"
#include "lib/link_wire.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "queue/link_ops.h"
#include "queue/qp_error.h"
#include "queue/qp_table.h"
#include "roce/roce.h"
#include "roce/socket.h"
#include "verbs/verbs.h"
#include "vrnic.h"

#define LINKS_MAX	4096	/* most links that a FIFO accepts */
#define LINKS_HOST	1024	/* most of these from one host */

/* First time to wait for an answer, which doubles, and number of ASKs: 1.3 seconds in all. */
#define ASK_FIRST_MS	20
#define ASK_TIMES	6

/*
 * If the peer acknowledges nothing for eight ACK timeouts of 0.27 s, the link fails. The requester
 * finds a lost packet sooner, because its timer follows the round-trip time.
 */
#define LINK_TIMEOUT	16
#define LINK_RETRIES	7
#define LINK_RNR_TIMER	5	/* 60 us */
#define RNR_FOREVER	7

/* There may be very many: none of their memory is rounded up to a power of two. */
static struct kmem_cache *cache;

/* Links for which this host has asked, and has no answer yet. */
static LIST_HEAD(asking);
static DEFINE_SPINLOCK(asking_lock);	/* protects the list, and @asking of the links in it */

/**
 * struct vrnic_asking - what the task that asks for a link waits for
 * @answered: completed when the peer has answered whether it makes the link
 * @hello: this answer; its kind is 0 before
 */
struct vrnic_asking {
	struct completion answered;
	struct vrnic_hello hello;
};

/* ---- life of a link ---- */

static void link_created(struct vrnic_link *link, struct vrnic_qp *qp)
{
	link->qp = qp;
}

static const struct vrnic_link_ops link_ops = {
	.created = link_created,
	.fetch = vrnic_native_fetch,
	.describe = vrnic_native_describe,
	.alloc = vrnic_native_alloc,
	.open = vrnic_native_open,
	.sent = vrnic_native_sent,
	.refused = vrnic_native_refused,
	.ran = vrnic_native_ran,
	.receive = vrnic_native_receive,
	.left = vrnic_native_left,
	.light = vrnic_native_light,
	.congested = vrnic_pace_congested,
	.broken = vrnic_link_broken,
	.flushed = vrnic_link_flushed,
};

static struct vrnic_link *link_new(struct vrnic_fifo *fifo, const union ib_gid *peer)
{
	struct vrnic_link *link = kmem_cache_zalloc(cache, VRNIC_GFP_LINK);
	int err = -ENOMEM;

	if (!link)
		return ERR_PTR(err);
	link->host = vrnic_host_get(fifo->dev->net, peer);
	if (!link->host)
		goto err_free;
	refcount_set(&link->refs, 1);
	INIT_LIST_HEAD(&link->owned);
	INIT_LIST_HEAD(&link->endpoints);
	INIT_LIST_HEAD(&link->pushed);
	INIT_LIST_HEAD(&link->reqs);
	INIT_LIST_HEAD(&link->flights);
	INIT_LIST_HEAD(&link->asks);
	INIT_LIST_HEAD(&link->msgs);
	link->fetched = &link->msgs;
	spin_lock_init(&link->lock);
	vrnic_pace_init(&link->pace);
	link->fifo = fifo;
	memcpy(link->peer.gid, peer, sizeof(*peer));
	err = vrnic_create_link_qp(&fifo->shell, link, &link_ops, fifo->crew, fifo->user,
				   VRNIC_GFP_LINK);
	if (err)
		goto err_host;
	refcount_inc(&fifo->refs);
	vrnic_link_begin(link);
	return link;

err_host:
	vrnic_host_put(link->host);
err_free:
	kmem_cache_free(cache, link);
	return ERR_PTR(err);
}

/* A remote get that came over the link may put it long after its end, and does not use it then. */
void vrnic_link_put(struct vrnic_link *link)
{
	if (!refcount_dec_and_test(&link->refs))
		return;
	vrnic_host_put(link->host);
	kfree(link->types);
	kfree(link->told);
	kmem_cache_free(cache, link);
}

static struct rdma_ah_attr path_attr(const struct ib_gid_attr *sgid,
				     const union ib_gid *to)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, (union ib_gid *)to, 0, sgid->index, 0, 0);
	attr.grh.sgid_attr = sgid;
	return attr;
}

static const struct ib_gid_attr *own_gid(struct vrnic_dev *dev,
					 const union ib_gid *gid)
{
	return rdma_find_gid(&dev->ibdev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
}

/* Move the queue pair to INIT, RTR and RTS. @h: ASK or YES, with the peer's queue pair */
static int link_up(struct vrnic_link *link, const struct ib_gid_attr *sgid,
		   const union ib_gid *to, const struct vrnic_hello *h, u32 psn)
{
	struct vrnic_dev *dev = link->fifo->dev;
	int mtu = min_t(u32, h->mtu, ib_mtu_enum_to_int(vrnic_active_mtu(dev)));
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.ah_attr = path_attr(sgid, to),
		.path_mtu = ib_mtu_int_to_enum(mtu),
		.dest_qp_num = h->qpn,
		.rq_psn = h->psn,
		.sq_psn = psn,
		.min_rnr_timer = LINK_RNR_TIMER,
		.timeout = LINK_TIMEOUT,
		.retry_cnt = LINK_RETRIES,
		.rnr_retry = RNR_FOREVER,
	};
	int err;

	link->peer_qpn = h->qpn;
	err = vrnic_modify_link_qp(link->qp, &attr, IB_QP_STATE | IB_QP_PORT |
				   IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	err = vrnic_modify_link_qp(link->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
				   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	/* no RoCE flow: @to has become an address of this host meanwhile */
	if (!link->qp->roce)
		return -EHOSTUNREACH;
	attr.qp_state = IB_QPS_RTS;
	return vrnic_modify_link_qp(link->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* ---- datagrams out ---- */

struct hello_packet {
	struct vrnic_sgl sgl;
	struct vrnic_seg seg;
	struct vrnic_hello_wire wire;
};

/* @qp: queue pair that sends the datagram; it is not connected */
static int hello_from(struct vrnic_qp *qp, const struct ib_gid_attr *sgid,
		      const union ib_gid *to, const struct vrnic_hello *h)
{
	struct rdma_ah_attr attr = path_attr(sgid, to);
	struct hello_packet *pkt;
	struct vrnic_path path;
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_HELLO,
		.copy = true,
		.dqpn = VRNIC_HELLO_QPN,
		.len = sizeof(pkt->wire),
	};
	int err;

	pkt = kzalloc(sizeof(*pkt), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!pkt)
		return -ENOMEM;
	vrnic_hello_fill(&pkt->wire, h);
	pkt->sgl.seg = &pkt->seg;
	vrnic_sgl_kva(&pkt->sgl, &pkt->wire, sizeof(pkt->wire));
	tx.src = &pkt->sgl;
	err = vrnic_path_init(&path, qp->dev, &sgid->gid, &attr,
			      vrnic_gid_oif(qp->dev, sgid), qp->qpn, tx.dqpn);
	if (err)
		goto out_free;
	/*
	 * vrnic_roce_send() also sends with softirqs off. Besides, this is an RCU reader, for which
	 * the network namespace of the route in @path waits before it ends.
	 */
	local_bh_disable();
	err = vrnic_roce_xmit(qp, &path, &tx);
	vrnic_path_drop(&path);
	local_bh_enable();
out_free:
	kfree(pkt);
	return err;
}

/*
 * Send a datagram about a link, from queue pair 1 of the device: only the link's own run may send
 * from the link's queue pair.
 */
static int hello_send(struct vrnic_dev *dev, const struct ib_gid_attr *sgid,
		      const union ib_gid *to, const struct vrnic_hello *h)
{
	struct vrnic_qp *qp = vrnic_gsi_get(dev);
	int err;

	if (!qp)
		return -ENODEV;
	err = hello_from(qp, sgid, to, h);
	vrnic_qp_put(qp);
	return err;
}

static struct vrnic_hello hello_of(const struct vrnic_link *link,
				   enum vrnic_hello_kind kind)
{
	return (struct vrnic_hello) {
		.kind = kind,
		.nonce = link->nonce,
		.qpn = link->qp->qpn,
		.to_qpn = link->peer_qpn,
		.mtu = ib_mtu_enum_to_int(vrnic_active_mtu(link->fifo->dev)),
		.from_fifo = link->fifo->id,
		.task = link->fifo->address.task,
	};
}

/**
 * vrnic_link_say_bye() - tell the peer, once, that this end of a link is gone, or has failed
 * @link: link
 *
 * The peer is also told if this end asked and got no answer: the peer may have made its end, and
 * the answer may be lost.
 */
void vrnic_link_say_bye(struct vrnic_link *link)
{
	struct vrnic_hello h = hello_of(link, VRNIC_HELLO_BYE);
	const struct ib_gid_attr *sgid;
	union ib_gid to, own;

	/* no peer has another end, or the peer's end is gone, or the peer was told before */
	if (!(link->qp->roce || link->asked) || READ_ONCE(link->bye) ||
	    test_and_set_bit(0, &link->said_bye))
		return;
	h.fifo = link->peer.fifo;
	h.why = link->failed ? VRNIC_WHY_FAILED : VRNIC_WHY_NONE;
	memcpy(&to, link->peer.gid, sizeof(to));
	memcpy(&own, link->fifo->address.gid, sizeof(own));
	sgid = own_gid(link->fifo->dev, link->qp->roce ? &link->qp->sgid : &own);
	if (IS_ERR(sgid))
		return;
	hello_send(link->fifo->dev, sgid, &to, &h);
	rdma_put_gid_attr(sgid);
}

/* ---- the end that asks ---- */

static int why_errno(u8 why)
{
	switch (why) {
	case VRNIC_WHY_NO_FIFO:
		return -ENOENT;
	case VRNIC_WHY_SECRET:
		return -EACCES;
	default:
		return -EHOSTUNREACH;
	}
}

static void start_asking(struct vrnic_link *link, struct vrnic_asking *ask)
{
	init_completion(&ask->answered);
	ask->hello.kind = 0;
	spin_lock(&asking_lock);
	link->asking = ask;
	list_add(&link->owned, &asking);
	spin_unlock(&asking_lock);
}

static void stop_asking(struct vrnic_link *link)
{
	spin_lock(&asking_lock);
	list_del_init(&link->owned);
	link->asking = NULL;
	spin_unlock(&asking_lock);
}

/*
 * Has the peer refused only because it has no memory, or too many links? It may accept soon, so
 * forget this answer and let the next one count.
 */
static bool refused_for_now(struct vrnic_asking *ask)
{
	const struct vrnic_hello *h = &ask->hello;
	bool refused;

	spin_lock(&asking_lock);
	refused = h->kind == VRNIC_HELLO_NO && h->why == VRNIC_WHY_RESOURCES;
	if (refused) {
		ask->hello.kind = 0;
		reinit_completion(&ask->answered);
	}
	spin_unlock(&asking_lock);
	return refused;
}

/*
 * Wait for an answer. A refusal for want of memory or room may not last: then wait for another
 * answer for the rest of the time.
 *
 * Return: 0: YES, or a final NO; -EHOSTUNREACH: no answer came; -ENOMEM: such a refusal
 * came last; -EINTR.
 */
static int link_await(struct vrnic_asking *ask, unsigned long wait)
{
	int err = -EHOSTUNREACH;
	long left = wait;

	while (left > 0) {
		left = wait_for_completion_interruptible_timeout(&ask->answered, left);
		if (left < 0)
			return -EINTR;
		if (!left)
			break;
		if (!refused_for_now(ask))
			return 0;
		err = -ENOMEM;
	}
	return err;
}

/* Ask for a link. Return: 0 if an answer has come, or a negative errno. */
static int link_ask(struct vrnic_link *link, const struct ib_gid_attr *sgid,
		    const union ib_gid *to, const struct vrnic_hello *h)
{
	unsigned int i;
	int err;

	for (i = 0; i < ASK_TIMES; i++) {
		err = hello_send(link->fifo->dev, sgid, to, h);
		/* after any other error try again: a new address may get its route soon */
		if (err == -ENODEV || err == -ENOMEM)
			return err;
		err = link_await(link->asking, msecs_to_jiffies(ASK_FIRST_MS << i));
		if (!err || err == -EINTR)
			return err;
	}
	return err;
}

static int link_dial(struct vrnic_link *link, const struct vrnic_address *peer,
		     const struct ib_gid_attr *sgid)
{
	u32 psn = get_random_u32() & VRNIC_PSN_MASK;
	struct vrnic_asking ask;
	struct vrnic_hello h;
	union ib_gid to;
	int err;

	memcpy(&to, peer->gid, sizeof(to));
	link->peer = *peer;
	link->peer.secret = 0;
	WRITE_ONCE(link->nonce, get_random_u64() ?: 1);
	h = hello_of(link, VRNIC_HELLO_ASK);
	h.fifo = peer->fifo;
	h.secret = peer->secret;
	h.psn = psn;
	start_asking(link, &ask);
	link->asked = true;
	err = link_ask(link, sgid, &to, &h);
	stop_asking(link);
	if (err)
		return err;
	/* vrnic_link_answered() does not find the link any more, so the answer does not change */
	if (ask.hello.kind != VRNIC_HELLO_YES) {
		link->asked = false;
		return why_errno(ask.hello.why);
	}
	link->peer_qpn = ask.hello.qpn;
	if (!vrnic_hello_fits(&ask.hello))
		return -EHOSTUNREACH;
	return link_up(link, sgid, &to, &ask.hello, psn);
}

static struct vrnic_link *link_connect(struct vrnic_fifo *fifo,
				       const struct vrnic_address *peer)
{
	const struct ib_gid_attr *sgid;
	struct vrnic_link *link;
	union ib_gid own, to;
	int err;

	if (ipv6_addr_v4mapped((struct in6_addr *)peer->gid) !=
	    ipv6_addr_v4mapped((struct in6_addr *)fifo->address.gid))
		return ERR_PTR(-EHOSTUNREACH);
	err = vrnic_wire_open(fifo->dev);
	if (err)
		return ERR_PTR(err);
	memcpy(&own, fifo->address.gid, sizeof(own));
	sgid = own_gid(fifo->dev, &own);
	if (IS_ERR(sgid))
		return ERR_PTR(-EHOSTUNREACH);
	memcpy(&to, peer->gid, sizeof(to));
	link = link_new(fifo, &to);
	if (IS_ERR(link))
		goto out;
	err = link_dial(link, peer, sgid);
	if (err) {
		vrnic_link_kill(link);
		link = ERR_PTR(err);
	}
out:
	rdma_put_gid_attr(sgid);
	return link;
}

/* Find a link to @peer that other endpoints of the FIFO use already. */
static struct vrnic_link *link_share(struct vrnic_fifo *fifo,
				     const struct vrnic_address *peer)
{
	struct vrnic_link *link;

	lockdep_assert_held(&fifo->ctrl);
	list_for_each_entry(link, &fifo->ways, owned) {
		if (link->peer.fifo != peer->fifo ||
		    link->secret != peer->secret || READ_ONCE(link->dead) ||
		    memcmp(link->peer.gid, peer->gid, sizeof(peer->gid)))
			continue;
		link->users++;
		return link;
	}
	return NULL;
}

/**
 * vrnic_link_get() - get a link to a FIFO of another host
 * @fifo: the FIFO at this end
 * @peer: address of the other FIFO
 *
 * Return: link, for vrnic_link_leave(); or an ERR_PTR: -EHOSTUNREACH (no answer), -ENOENT (no such
 * FIFO there), -EACCES (that FIFO has another secret), -EADDRINUSE (other software has the UDP port
 * here), -EINTR, -ENOMEM (also at the other host), -ENODEV.
 */
struct vrnic_link *vrnic_link_get(struct vrnic_fifo *fifo,
				  const struct vrnic_address *peer)
{
	struct vrnic_link *link;

	mutex_lock(&fifo->ctrl);
	link = link_share(fifo, peer);
	mutex_unlock(&fifo->ctrl);
	if (link)
		return link;
	link = link_connect(fifo, peer);
	if (IS_ERR(link))
		return link;
	link->secret = peer->secret;
	link->users = 1;
	mutex_lock(&fifo->ctrl);
	list_add(&link->owned, &fifo->ways);
	mutex_unlock(&fifo->ctrl);
	return link;
}

/**
 * vrnic_link_leave() - an endpoint does not use a link any more
 * @link: link; the injector of the FIFO's ring is parked, or never used it
 */
void vrnic_link_leave(struct vrnic_link *link)
{
	lockdep_assert_held(&link->fifo->ctrl);
	if (--link->users)
		return;
	list_del_init(&link->owned);
	vrnic_link_kill(link);
}

/*
 * Does the datagram come from the peer of the link, and in the link's network namespace? If
 * @heard->net is NULL, is_there() has compared the namespaces before.
 */
static bool is_of_peer(const struct vrnic_link *link, const struct vrnic_heard *heard)
{
	return READ_ONCE(link->nonce) == heard->h.nonce &&
	       !memcmp(link->peer.gid, &heard->from, sizeof(heard->from)) &&
	       (!heard->net || vrnic_in_net(link->fifo->dev, heard->net));
}

/**
 * vrnic_link_answered() - an answer to a request for a link has come
 * @heard: the answer; its sender is not trusted
 */
void vrnic_link_answered(const struct vrnic_heard *heard)
{
	const struct vrnic_hello *h = &heard->h;
	struct vrnic_link *link;

	spin_lock(&asking_lock);
	list_for_each_entry(link, &asking, owned) {
		if (!is_of_peer(link, heard))
			continue;
		/* only the first answer counts */
		if (!link->asking->hello.kind) {
			link->asking->hello = *h;
			complete(&link->asking->answered);
		}
		break;
	}
	spin_unlock(&asking_lock);
}

/* ---- the end that is asked ---- */

/* Is this accepted link dead, or does the peer ask for a new link for the same queue pair? */
static bool is_stale(struct vrnic_link *link, const struct vrnic_heard *heard)
{
	return READ_ONCE(link->dead) ||
	       (link->peer_qpn == heard->h.qpn &&
		!memcmp(link->peer.gid, &heard->from, sizeof(heard->from)));
}

/*
 * Find the link that this FIFO accepted for an earlier copy of this request. Ends stale links.
 * @full: set if the FIFO must accept no more links, or none from this host
 * Return: the link, or NULL.
 */
static struct vrnic_link *link_find_accepted(struct vrnic_fifo *fifo,
					     const struct vrnic_heard *heard, bool *full)
{
	struct vrnic_link *link, *next, *found = NULL;
	/* if the process takes no note of links that failed, new ones would only add to them */
	unsigned int nr = READ_ONCE(fifo->rgets.nr_notices), of_host = 0;

	lockdep_assert_held(&fifo->ctrl);
	list_for_each_entry_safe(link, next, &fifo->links, owned) {
		if (is_of_peer(link, heard) && !READ_ONCE(link->dead)) {
			found = link;
		} else if (is_stale(link, heard)) {
			list_del_init(&link->owned);
			vrnic_link_kill(link);
			continue;
		}
		nr++;
		of_host += !memcmp(link->peer.gid, &heard->from, sizeof(heard->from));
	}
	*full = nr >= LINKS_MAX || of_host >= LINKS_HOST;
	return found;
}

static struct vrnic_link *link_accept(struct vrnic_fifo *fifo,
				      const struct vrnic_heard *heard,
				      const struct ib_gid_attr *sgid)
{
	struct vrnic_link *link = link_new(fifo, &heard->from);
	int err;

	if (IS_ERR(link))
		return link;
	link->accepted = true;
	WRITE_ONCE(link->nonce, heard->h.nonce);
	link->peer.fifo = heard->h.from_fifo;
	link->peer.task = heard->h.task;
	/* this end's first PSN, which vrnic_link_asked() repeats in each copy of the answer */
	link->psn = get_random_u32() & VRNIC_PSN_MASK;
	link->notice = vrnic_notice_new(&link->peer, vrnic_host_number(link->host),
					VRNIC_GFP_LINK);
	if (!link->notice || vrnic_fault(link->qp, VRNIC_FAULT_LINK)) {
		err = -ENOMEM;
		goto err_kill;
	}
	err = link_up(link, sgid, &heard->from, &heard->h, link->psn);
	if (err)
		goto err_kill;
	return link;

err_kill:
	vrnic_link_kill(link);
	return ERR_PTR(err);
}

/* Charge the link to the process with the FIFO, which has chosen who knows the FIFO's address. */
static struct vrnic_link *link_accept_charged(struct vrnic_fifo *fifo,
					      const struct vrnic_heard *heard,
					      const struct ib_gid_attr *sgid)
{
	struct mem_cgroup *was = vrnic_charge_begin(fifo);
	struct vrnic_link *link = link_accept(fifo, heard, sgid);

	vrnic_charge_end(was);
	return link;
}

/*
 * Accept a link, or find the link that was accepted for an earlier copy of the request.
 * Return: the link; or NULL, and enum vrnic_hello_why in @why.
 */
static struct vrnic_link *link_for(struct vrnic_fifo *fifo, const struct vrnic_heard *heard,
				   const struct ib_gid_attr *sgid, u8 *why)
{
	struct vrnic_link *link;
	bool full;

	*why = VRNIC_WHY_NO_FIFO;
	if (fifo->dead)
		return NULL;
	*why = VRNIC_WHY_RESOURCES;
	link = link_find_accepted(fifo, heard, &full);
	if (link || full)
		return link;
	link = link_accept_charged(fifo, heard, sgid);
	if (IS_ERR(link))
		return NULL;
	list_add(&link->owned, &fifo->links);
	return link;
}

static struct vrnic_hello refusal_of(const struct vrnic_heard *heard, u8 why)
{
	return (struct vrnic_hello) {
		.kind = VRNIC_HELLO_NO,
		.why = why,
		.nonce = heard->h.nonce,
		.to_qpn = heard->h.qpn,
	};
}

/**
 * vrnic_link_asked() - accept or refuse a link, and answer
 * @fifo: FIFO that is asked; its ctrl is held
 * @heard: the request; it has the FIFO's secret
 *
 * Context: a thread of the FIFO's crew. The thread may have to wait for memory that is charged to
 * the FIFO's process.
 */
void vrnic_link_asked(struct vrnic_fifo *fifo, const struct vrnic_heard *heard)
{
	const struct ib_gid_attr *sgid = own_gid(fifo->dev, &heard->to);
	struct vrnic_hello answer;
	struct vrnic_link *link;
	u8 why;

	lockdep_assert_held(&fifo->ctrl);
	/* the address that was asked is gone, so no answer can come from it */
	if (IS_ERR(sgid))
		return;
	link = link_for(fifo, heard, sgid, &why);
	if (link) {
		answer = hello_of(link, VRNIC_HELLO_YES);
		answer.psn = link->psn;
	} else {
		answer = refusal_of(heard, why);
	}
	hello_send(fifo->dev, sgid, &heard->from, &answer);
	rdma_put_gid_attr(sgid);
}

/**
 * vrnic_link_refuse() - refuse a request for a link
 * @heard: the request, and the reason
 *
 * The FIFO may not exist, so the address that was asked leads to the device that sends the refusal.
 */
void vrnic_link_refuse(const struct vrnic_heard *heard)
{
	struct vrnic_hello no = refusal_of(heard, heard->why);
	const struct ib_gid_attr *sgid;
	struct vrnic_qp *qp;

	qp = vrnic_gsi_by_net(heard->net, NULL, &heard->to);
	if (!qp)
		return;
	sgid = own_gid(qp->dev, &heard->to);
	if (!IS_ERR(sgid)) {
		hello_from(qp, sgid, &heard->from, &no);
		rdma_put_gid_attr(sgid);
	}
	vrnic_qp_put(qp);
}

/*
 * If the goodbye is from the link's peer, let the link fail. A link that no other host knows yet
 * has nonce 0, which no datagram has.
 */
static void link_bye(struct vrnic_link *link, const struct vrnic_heard *heard)
{
	if (!is_of_peer(link, heard))
		return;
	WRITE_ONCE(link->left, heard->h.why != VRNIC_WHY_FAILED);
	WRITE_ONCE(link->bye, true);
	vrnic_qp_error(link->qp, -1);
}

/**
 * vrnic_link_bye_unanswered() - a peer is gone that asked for a link and saw no answer
 * @fifo: FIFO that was asked, and may have accepted the link; its ctrl is held
 * @heard: the goodbye; it names no queue pair of this host
 */
void vrnic_link_bye_unanswered(struct vrnic_fifo *fifo, const struct vrnic_heard *heard)
{
	struct vrnic_link *link;

	lockdep_assert_held(&fifo->ctrl);
	list_for_each_entry(link, &fifo->links, owned)
		link_bye(link, heard);
}

/**
 * vrnic_link_bye() - the other end of a link is gone
 * @heard: the goodbye; it names the queue pair of this end
 *
 * The queue pair goes to error: requests in progress fail, and their injectors run.
 */
void vrnic_link_bye(const struct vrnic_heard *heard)
{
	struct vrnic_qp *qp = vrnic_qp_get(heard->h.to_qpn);

	if (!qp)
		return;
	if (qp->link)
		link_bye(qp->link, heard);
	vrnic_qp_put(qp);
}

int vrnic_link_cache_init(void)
{
	cache = KMEM_CACHE(vrnic_link, 0);
	return cache ? 0 : -ENOMEM;
}

/* Called when no link is left. */
void vrnic_link_cache_exit(void)
{
	kmem_cache_destroy(cache);
}
