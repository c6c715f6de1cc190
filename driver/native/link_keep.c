// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long links last. All links of this host are in one list. Deregistration of memory looks there
 * for messages that still hold the memory. A work item looks there for links whose peers have been
 * silent for long, and sends PINGs to these peers, to learn whether they still exist; for links
 * whose peers acknowledge requests and do not answer them, which it ends; and for links that nobody
 * uses, which give back memory (native/link_rest.c).
 *
 * A caller that ends a link takes it off the FIFO's list. Work items do the rest, which may take
 * LINGER_MAX_MS, because the peer may still have messages to acknowledge. They work in parallel, so
 * a FIFO with a thousand links ends as soon as one with a single link.
 */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "engine/engine.h"
#include "lib/link_wire.h"
#include "mem/mem.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/native.h"
#include "queue/qp_error.h"
#include "verbs/flow.h"
#include "verbs/verbs.h"
#include "vrnic.h"

/*
 * A link that ends waits so long for the next acknowledgment or answer, and for all of them, and
 * looks so often whether all have come. A peer acknowledges within a round trip, unless it is gone.
 * But the puts of an endpoint that was destroyed may be 64 MiB.
 */
#define LINGER_MS	500
#define LINGER_MAX_MS	3000
#define LINGER_STEP_MS	5

static unsigned int link_idle_s = 30;
module_param(link_idle_s, uint, 0644);
MODULE_PARM_DESC(link_idle_s, "seconds without a packet after which the peer of a native link is asked whether it is there; 0: never (default 30)");

static unsigned int link_answer_s = 60;
module_param(link_answer_s, uint, 0644);
MODULE_PARM_DESC(link_answer_s, "seconds after which a native link ends whose peer acknowledges a request and sends nothing more; 0: never (default 60)");

static LIST_HEAD(all_links);

/*
 * Every link in the list has a queue pair. Writers of the list hold all_lock. Readers hold
 * links_lock, without which no link leaves the list. Only work items take links_lock, because
 * their CPU time is never that of a control group.
 */
static DEFINE_SPINLOCK(all_lock);
static DEFINE_MUTEX(links_lock);

static struct workqueue_struct *ends;
/*
 * Runs let_go_work(). To free memory, the kernel may have to deregister a region, and then waits
 * for this work: hence WQ_MEM_RECLAIM, and a queue that links which end do not fill.
 */
static struct workqueue_struct *cuts;

static void look_around(struct work_struct *work);
static DECLARE_DELAYED_WORK(looks, look_around);

/* Look once a second, even if link_idle_s is large: it may be made smaller between two looks. */
static void look_later(void)
{
	queue_delayed_work(ends, &looks, HZ);
}

/* ---- the end ---- */

static bool msgs_gone(struct vrnic_link *link)
{
	bool gone;

	spin_lock_bh(&link->lock);
	gone = list_empty(&link->msgs);
	spin_unlock_bh(&link->lock);
	return gone;
}

static bool flights_gone(struct vrnic_link *link)
{
	bool gone;

	spin_lock_bh(&link->lock);
	gone = list_empty(&link->flights);
	spin_unlock_bh(&link->lock);
	return gone;
}

/* The link is in no list of its FIFO any more. Take it off the list of all links, and end it. */
static void link_end(struct vrnic_link *link)
{
	struct vrnic_fifo *fifo = link->fifo;

	mutex_lock(&links_lock);
	spin_lock(&all_lock);
	list_del_rcu(&link->all);
	spin_unlock(&all_lock);
	mutex_unlock(&links_lock);
	vrnic_count_add(fifo->dev, LINKS, -1);
	vrnic_link_say_bye(link);
	vrnic_destroy_link_qp(link->qp);
	vrnic_link_drain(link);
	vrnic_fifo_put(fifo);
	vrnic_link_put(link);
}

/* May the peer still acknowledge what was sent, or answer it? */
static bool may_linger(struct vrnic_link *link)
{
	u32 una = vrnic_roce_una(link->qp);

	if (una != link->una) {
		link->una = una;
		link->moved = jiffies;
	}
	/* answers */
	if (time_after(READ_ONCE(link->heard), link->moved))
		link->moved = READ_ONCE(link->heard);
	return !(msgs_gone(link) && flights_gone(link)) &&
	       time_before(jiffies, link->moved + msecs_to_jiffies(LINGER_MS)) &&
	       time_before(jiffies, link->killed + msecs_to_jiffies(LINGER_MAX_MS));
}

/* End the link when the peer has acknowledged all that was sent, or too much time has passed. */
static void link_end_work(struct work_struct *work)
{
	struct vrnic_link *link = container_of(work, struct vrnic_link, ending.work);

	if (may_linger(link))
		queue_delayed_work(ends, &link->ending, msecs_to_jiffies(LINGER_STEP_MS));
	else
		link_end(link);
}

/**
 * vrnic_link_kill() - start to end a link
 * @link: link, in no list of its FIFO any more. The caller must not use it after this.
 *
 * No message can be posted from now on. A work item ends the link: it fails the requests that have
 * no answer by then, and puts the link's references on itself and on its FIFO.
 */
void vrnic_link_kill(struct vrnic_link *link)
{
	vrnic_link_broken(link);
	link->killed = jiffies;
	link->moved = jiffies;
	queue_delayed_work(ends, &link->ending, 0);
}

/**
 * vrnic_links_reap() - end the accepted links that have failed
 * @fifo: FIFO that accepted them; its ctrl is held
 */
void vrnic_links_reap(struct vrnic_fifo *fifo)
{
	struct vrnic_link *link, *next;

	lockdep_assert_held(&fifo->ctrl);
	list_for_each_entry_safe(link, next, &fifo->links, owned) {
		if (!READ_ONCE(link->failed))
			continue;
		list_del_init(&link->owned);
		vrnic_link_kill(link);
	}
}

/**
 * vrnic_link_failed() - handle the failure of a link; called once for a link
 * @link: link; the caller holds the run bit of its queue pair
 */
void vrnic_link_failed(struct vrnic_link *link)
{
	vrnic_link_say_bye(link);
	if (!link->accepted)
		return;
	/* no notice if the peer ended the link because it does not need it any more */
	if (!READ_ONCE(link->left) && link->notice) {
		vrnic_notice_send(link->fifo, link->notice);
		link->notice = NULL;
	}
	/*
	 * Taking the link off the FIFO's list needs the FIFO's ctrl, whose holder may wait for this
	 * run. So hellos_run() does it.
	 */
	vrnic_hellos_failed(link->fifo);
}

/**
 * vrnic_links_kill() - end all links that a FIFO accepted
 * @fifo: FIFO that is being destroyed; vrnic_hellos_stop() was called, so it accepts no more links
 */
void vrnic_links_kill(struct vrnic_fifo *fifo)
{
	struct vrnic_link *link, *next;

	mutex_lock(&fifo->ctrl);
	list_for_each_entry_safe(link, next, &fifo->links, owned) {
		list_del_init(&link->owned);
		vrnic_link_kill(link);
	}
	mutex_unlock(&fifo->ctrl);
}

/* ---- while a link lives ---- */

/**
 * vrnic_link_begin() - add a new link to the list of all links
 * @link: link; it has its queue pair
 */
void vrnic_link_begin(struct vrnic_link *link)
{
	INIT_DELAYED_WORK(&link->ending, link_end_work);
	link->heard = jiffies;
	link->spoke = jiffies;
	spin_lock(&all_lock);
	list_add_rcu(&link->all, &all_links);
	spin_unlock(&all_lock);
	vrnic_count(link->fifo->dev, LINKS);
	look_later();
}

/* Has the peer nothing to acknowledge, and has this end heard nothing of it for @idle_s seconds? */
static bool link_is_idle(struct vrnic_link *link, unsigned int idle_s)
{
	return link->qp->roce && !READ_ONCE(link->dead) && msgs_gone(link) &&
	       time_after(jiffies, READ_ONCE(link->heard) + (unsigned long)idle_s * HZ);
}

/*
 * Send a message that the peer has to acknowledge. If the peer does not, the link fails. The caller
 * holds links_lock, for which links that end wait. So do not wait for memory: if there is none,
 * look_around() tries again a second later.
 */
static void link_ping(struct vrnic_link *link)
{
	struct vrnic_nmsg *msg = kzalloc(sizeof(*msg), GFP_NOWAIT | __GFP_NOWARN);
	struct vrnic_nhdr h = { .op = VRNIC_NWIRE_PING };
	bool sent;

	if (!msg)
		return;
	vrnic_nwire_fill(&msg->hdr, &h);
	spin_lock_bh(&link->lock);
	sent = !link->dead;
	if (sent)
		vrnic_link_enqueue(link, msg);
	spin_unlock_bh(&link->lock);
	if (sent)
		vrnic_queue(&link->qp->run);
	else
		kfree(msg);
}

/*
 * Has the peer acknowledged a request @answer_s seconds ago, and sent nothing since? A peer without
 * room says so at once. One that sends may have much to send before the answer.
 */
static bool link_is_mute(struct vrnic_link *link, unsigned int answer_s)
{
	unsigned long before = jiffies - (unsigned long)answer_s * HZ;
	struct vrnic_nawait *await;
	bool mute;

	spin_lock_bh(&link->lock);
	await = list_first_entry_or_null(&link->asks, struct vrnic_nawait, link);
	mute = await && await->acked && time_before(await->since, before) &&
	       time_before(READ_ONCE(link->spoke), before);
	spin_unlock_bh(&link->lock);
	return mute && !READ_ONCE(link->dead);
}

static void link_cut(struct vrnic_link *link)
{
	vrnic_count(link->fifo->dev, LINKS_CUT);
	vrnic_qp_error(link->qp, -1);
}

static void look_around(struct work_struct *work)
{
	unsigned int idle_s = READ_ONCE(link_idle_s), answer_s = READ_ONCE(link_answer_s);
	struct vrnic_link *link;
	bool any;

	mutex_lock(&links_lock);
	list_for_each_entry_rcu(link, &all_links, all, lockdep_is_held(&links_lock)) {
		if (idle_s && link_is_idle(link, idle_s))
			link_ping(link);
		if (answer_s && link_is_mute(link, answer_s))
			link_cut(link);
		if (vrnic_link_may_rest(link)) {
			set_bit(0, &link->rest);
			vrnic_queue(&link->qp->run);
		}
	}
	any = !list_empty(&all_links);
	mutex_unlock(&links_lock);
	if (any)
		look_later();
}

static bool msg_holds(const struct vrnic_nmsg *msg, const struct vrnic_mr *mr)
{
	unsigned int i;

	for (i = 0; i < msg->nr; i++)
		if (msg->seg[i].mr == mr)
			return true;
	return false;
}

/* Is the region in a message that the peer has not acknowledged, or in a request without answer? */
static bool link_holds(struct vrnic_link *link, const struct vrnic_mr *mr)
{
	struct vrnic_nmsg *msg;
	struct vrnic_nreq *req;
	bool found = false;

	spin_lock_bh(&link->lock);
	list_for_each_entry(msg, &link->msgs, link)
		found |= msg_holds(msg, mr);
	list_for_each_entry(req, &link->reqs, link)
		found |= msg_holds(&req->msg, mr);
	spin_unlock_bh(&link->lock);
	return found;
}

struct letting_go {
	struct work_struct work;
	const struct vrnic_mr *mr;
};

static void let_go_work(struct work_struct *work)
{
	const struct vrnic_mr *mr = container_of(work, struct letting_go, work)->mr;
	struct vrnic_link *link;

	mutex_lock(&links_lock);
	list_for_each_entry_rcu(link, &all_links, all, lockdep_is_held(&links_lock)) {
		if (link_holds(link, mr))
			link_cut(link);
	}
	mutex_unlock(&links_lock);
}

/**
 * links_let_go() - end the links whose messages hold a region
 * @mr: region whose deregistration has waited for long enough
 *
 * The peer alone decides when it acknowledges or answers, so deregistration does not wait for it.
 */
static void links_let_go(const struct vrnic_mr *mr)
{
	struct letting_go go = { .mr = mr };

	INIT_WORK_ONSTACK(&go.work, let_go_work);
	queue_work(cuts, &go.work);
	flush_work(&go.work);
	destroy_work_on_stack(&go.work);
}

int vrnic_links_init(void)
{
	int err = vrnic_link_cache_init();

	if (err)
		return err;
	vrnic_hosts_init();
	ends = alloc_workqueue("vrnic-links", WQ_UNBOUND, 0);
	if (!ends)
		goto err_cache;
	cuts = alloc_workqueue("vrnic-cuts", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!cuts)
		goto err_ends;
	vrnic_mr_on_long_use(links_let_go);
	return 0;

err_ends:
	destroy_workqueue(ends);
err_cache:
	vrnic_link_cache_exit();
	return -ENOMEM;
}

/* Called when no FIFO is left. Work items may still be about to free the last links. */
void vrnic_links_exit(void)
{
	cancel_delayed_work_sync(&looks);
	destroy_workqueue(cuts);
	destroy_workqueue(ends);
	vrnic_link_cache_exit();
}
