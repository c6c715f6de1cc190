// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long links last. All of this host are in one list: who deregisters memory
 * looks there for a message that still holds it, and a work item for those of which
 * nothing was heard for long, whose peers are asked whether they are there.
 *
 * A link that is ended is out of its owner's lists. What else there is to do takes
 * time, since the peer may still have something to acknowledge; that is done by work
 * items, so that who ends a thousand links waits no longer than for one.
 */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "native/link.h"
#include "native/native.h"
#include "roce/roce.h"

/* Half a round trip is most of what it takes; and nobody waits for the dead. */
#define LINGER_MS	200
#define LINGER_STEP_MS	5

static unsigned int link_idle_s = 30;
module_param(link_idle_s, uint, 0644);
MODULE_PARM_DESC(link_idle_s, "seconds without a packet after which the peer of a native link is asked whether it is there; 0: never (default 30)");

static LIST_HEAD(links);
static DEFINE_MUTEX(links_lock);	/* protects the list; who is in it has a queue pair */

static struct workqueue_struct *ends;

static void look_around(struct work_struct *work);
static DECLARE_DELAYED_WORK(looks, look_around);

/* As often as a period passes; that may become shorter while nobody looks. */
static void look_later(void)
{
	queue_delayed_work(ends, &looks, HZ);
}

/* ---- the end ---- */

static bool msgs_gone(struct vrnic_link *link)
{
	bool gone;

	spin_lock(&link->lock);
	gone = list_empty(&link->msgs);
	spin_unlock(&link->lock);
	return gone;
}

/* Nobody finds it any more. */
static void end(struct vrnic_link *link)
{
	struct vrnic_fifo *fifo = link->fifo;

	mutex_lock(&links_lock);
	list_del(&link->all);
	mutex_unlock(&links_lock);
	vrnic_count_add(fifo->dev, LINKS, -1);
	vrnic_link_say_bye(link);
	vrnic_destroy_qp(&link->shell.ibqp, NULL);
	vrnic_link_drain(link);
	vrnic_fifo_put(fifo);
	vrnic_link_put(link);
}

/* The peer is to have what was sent, if it takes it in time. */
static void end_work(struct work_struct *work)
{
	struct vrnic_link *link = container_of(work, struct vrnic_link, ending.work);

	if (!msgs_gone(link) && time_before(jiffies, link->linger_until))
		queue_delayed_work(ends, &link->ending, msecs_to_jiffies(LINGER_STEP_MS));
	else
		end(link);
}

/**
 * vrnic_link_kill() - an end of a link goes, soon
 * @link: link; nobody finds it any more but what refers to it. The owner's reference
 *	is given back. It holds its FIFO until it is gone.
 *
 * Whoever waits for an answer gets to know that there will be none.
 */
void vrnic_link_kill(struct vrnic_link *link)
{
	vrnic_link_broken(link);
	link->linger_until = jiffies + msecs_to_jiffies(LINGER_MS);
	queue_delayed_work(ends, &link->ending, 0);
}

/**
 * vrnic_links_reap() - links that were accepted, and have failed, go
 * @fifo: whose; its ctrl is held
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
 * vrnic_link_failed() - a link does not work any more; called once
 * @link: link; its run is the caller
 */
void vrnic_link_failed(struct vrnic_link *link)
{
	vrnic_link_say_bye(link);
	if (!link->accepted)
		return;
	/* the peer ended it, and had no use for it: then nothing is lost */
	if (!READ_ONCE(link->left) && link->notice) {
		vrnic_notice_send(link->fifo, link->notice);
		link->notice = NULL;
	}
	/* whoever ends it waits for this run */
	vrnic_hellos_failed(link->fifo);
}

/**
 * vrnic_links_kill() - a FIFO is going: so do the links that it accepted
 * @fifo: dead, so that it accepts no more
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

/* ---- while it lives ---- */

/**
 * vrnic_link_begin() - a link is complete
 * @link: link
 */
void vrnic_link_begin(struct vrnic_link *link)
{
	INIT_DELAYED_WORK(&link->ending, end_work);
	link->heard = jiffies;
	mutex_lock(&links_lock);
	list_add(&link->all, &links);
	mutex_unlock(&links_lock);
	vrnic_count(link->fifo->dev, LINKS);
	look_later();
}

/* Nothing is under way that the peer would have to acknowledge. */
static bool is_idle(struct vrnic_link *link, unsigned int idle_s)
{
	return link->qp->roce && !READ_ONCE(link->dead) && msgs_gone(link) &&
	       time_after(jiffies, READ_ONCE(link->heard) + idle_s * HZ);
}

/*
 * Who does not acknowledge it is gone, as with any other message. The caller holds
 * links_lock, which whoever deregisters memory may need: no allocation waits here,
 * and without memory the next look does it.
 */
static void ping(struct vrnic_link *link)
{
	struct vrnic_nmsg *msg = kzalloc(sizeof(*msg), GFP_NOWAIT | __GFP_NOWARN);
	struct vrnic_nhdr h = { .op = VRNIC_NWIRE_PING };
	bool sent;

	if (!msg)
		return;
	vrnic_nwire_fill(&msg->hdr, &h);
	spin_lock(&link->lock);
	sent = !link->dead && vrnic_link_has_room(link, VRNIC_LINK_KEEP_SLOTS);
	if (sent)
		vrnic_link_enqueue(link, msg);
	spin_unlock(&link->lock);
	if (sent)
		vrnic_queue(&link->qp->run);
	else
		kfree(msg);
}

static void look_around(struct work_struct *work)
{
	unsigned int idle_s = READ_ONCE(link_idle_s);
	struct vrnic_link *link;
	bool any;

	mutex_lock(&links_lock);
	list_for_each_entry(link, &links, all)
		if (idle_s && is_idle(link, idle_s))
			ping(link);
	any = !list_empty(&links);
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

/* What the peer has not acknowledged, or not answered. */
static bool holds(struct vrnic_link *link, const struct vrnic_mr *mr)
{
	struct vrnic_nmsg *msg;
	bool found = false;
	int i;

	spin_lock(&link->lock);
	list_for_each_entry(msg, &link->msgs, link)
		found |= msg_holds(msg, mr);
	for (i = 0; i < ARRAY_SIZE(link->pending); i++)
		found |= link->pending[i] && msg_holds(&link->pending[i]->msg, mr);
	spin_unlock(&link->lock);
	return found;
}

/**
 * links_let_go() - end the links whose messages hold a region
 * @mr: region that somebody wants to be rid of, and waited for long enough
 *
 * When a peer acknowledges, or answers, is up to the peer.
 */
static void links_let_go(const struct vrnic_mr *mr)
{
	struct vrnic_link *link;

	mutex_lock(&links_lock);
	list_for_each_entry(link, &links, all) {
		if (!holds(link, mr))
			continue;
		vrnic_count(link->fifo->dev, LINKS_CUT);
		vrnic_qp_error(link->qp, -1);
	}
	mutex_unlock(&links_lock);
}

int vrnic_links_init(void)
{
	ends = alloc_workqueue("vrnic-links", WQ_UNBOUND, 0);
	if (!ends)
		return -ENOMEM;
	vrnic_mr_on_long_use(links_let_go);
	return 0;
}

/* No link is left, but what is left to do of the last ones. */
void vrnic_links_exit(void)
{
	cancel_delayed_work_sync(&looks);
	destroy_workqueue(ends);
}
