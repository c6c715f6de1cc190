// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams about links, from their arrival in softirq until they are handled.
 *
 * Some need a FIFO's lock, or memory for which the FIFO's process pays: requests that have the
 * FIFO's secret, and goodbyes of peers that saw no answer to a request. They wait at the FIFO until
 * a thread of the process's crew handles them. So a process without memory, or without CPU time,
 * holds up only its own links and those of processes in its control groups.
 *
 * Two work items handle all others: one handles answers to requests of this host, the other handles
 * requests that must be refused, and goodbyes to a link's queue pair.
 */

#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "base/gid.h"
#include "base/port.h"
#include "base/stats.h"
#include "compat/compat.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/link_wire.h"
#include "native/link.h"
#include "native/native.h"
#include "roce/roce.h"
#include "roce/socket.h"
#include "vrnic.h"

#define QUEUE_MAX	128	/* most datagrams of a kind that wait in one queue */
#define QUEUE_HOST	32	/* most datagrams of a kind and from one address */

/* Time after which a thread tries again to take a FIFO's lock. */
#define BUSY_NS		NSEC_PER_MSEC

/**
 * struct desk - datagrams that need no FIFO
 * @work: work item that handles the datagrams
 * @queue: the datagrams
 */
struct desk {
	struct work_struct work;
	struct vrnic_hello_queue queue;
};

static struct desk answers, others;

/* ---- queues ---- */

static void queue_init(struct vrnic_hello_queue *queue)
{
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->list);
}

static void heard_free(struct vrnic_heard *heard)
{
	if (heard->net)
		put_net(heard->net);
	kfree(heard);
}

static struct vrnic_heard *queue_take(struct vrnic_hello_queue *queue)
{
	struct vrnic_heard *heard;

	spin_lock_bh(&queue->lock);
	heard = list_first_entry_or_null(&queue->list, struct vrnic_heard, link);
	if (heard) {
		list_del(&heard->link);
		queue->nr[heard->h.kind]--;
	}
	spin_unlock_bh(&queue->lock);
	return heard;
}

/* Is there room for @heard? One host may fill only a part, so other hosts do not wait for long. */
static bool queue_has_room(const struct vrnic_hello_queue *queue,
			   const struct vrnic_heard *heard)
{
	const struct vrnic_heard *other;
	unsigned int of_host = 0;

	lockdep_assert_held(&queue->lock);
	if (queue->closed || queue->nr[heard->h.kind] >= QUEUE_MAX)
		return false;
	list_for_each_entry(other, &queue->list, link)
		of_host += other->h.kind == heard->h.kind &&
			   !memcmp(&other->from, &heard->from, sizeof(heard->from));
	return of_host < QUEUE_HOST;
}

/* The queue owns @heard from now on. Return: false if there is no room; then @heard was freed. */
static bool queue_add(struct vrnic_hello_queue *queue, struct vrnic_heard *heard)
{
	bool room;

	spin_lock_bh(&queue->lock);
	room = queue_has_room(queue, heard);
	if (room) {
		list_add_tail(&heard->link, &queue->list);
		queue->nr[heard->h.kind]++;
	}
	spin_unlock_bh(&queue->lock);
	if (!room)
		heard_free(heard);
	return room;
}

/* Free the datagrams that were not handled, and accept no more. */
static void queue_close(struct vrnic_hello_queue *queue)
{
	struct vrnic_heard *heard;

	spin_lock_bh(&queue->lock);
	queue->closed = true;
	spin_unlock_bh(&queue->lock);
	while ((heard = queue_take(queue)))
		heard_free(heard);
}

/* ---- datagrams that need a FIFO ---- */

/* Handle failed links, and one datagram, with fifo->ctrl held. Return: false if there was none. */
static bool hellos_serve(struct vrnic_fifo *fifo)
{
	struct vrnic_hellos *hellos = &fifo->hellos;
	bool failed = test_and_clear_bit(0, &hellos->failed);
	struct vrnic_heard *heard;

	if (failed)
		vrnic_links_reap(fifo);
	heard = queue_take(&hellos->queue);
	if (!heard)
		return failed;
	/* in the queue a goodbye is behind its request, so it finds the link of the request */
	if (heard->h.kind == VRNIC_HELLO_ASK)
		vrnic_link_asked(fifo, heard);
	else
		vrnic_link_bye_unanswered(fifo, heard);
	heard_free(heard);
	return true;
}

/*
 * Handle the FIFO's failed links and queued hellos. A holder of fifo->ctrl may wait in vrnic_park()
 * for a thread of fifo->crew, so such a thread, which runs this, only tries ctrl. If ctrl is taken,
 * the thread does other work until the next try.
 */
static enum vrnic_verdict hellos_run(struct vrnic_runnable *r, struct vrnic_budget *budget)
{
	struct vrnic_fifo *fifo = container_of(r, struct vrnic_fifo, hellos.run);
	bool busy;

	might_sleep();
	while (vrnic_budget_left(budget)) {
		if (!mutex_trylock(&fifo->ctrl)) {
			vrnic_queue_after(r, BUSY_NS);
			return VRNIC_IDLE;
		}
		busy = hellos_serve(fifo);
		mutex_unlock(&fifo->ctrl);
		if (!busy)
			return VRNIC_IDLE;
		vrnic_budget_spend(budget, 1);
		cond_resched();
	}
	return VRNIC_MORE;
}

/* Only threads run this, as only vrnic_queue() starts it: no system call does, and no softirq. */
static const struct vrnic_runnable_ops hellos_ops = {
	.run = hellos_run,
};

void vrnic_hellos_init(struct vrnic_fifo *fifo)
{
	struct vrnic_hellos *hellos = &fifo->hellos;

	queue_init(&hellos->queue);
	vrnic_runnable_init(&hellos->run, fifo->crew, &hellos_ops);
}

/**
 * vrnic_hellos_stop() - let a FIFO accept no more links
 * @fifo: FIFO that is being destroyed; its crew still exists
 *
 * Waits for a run that is accepting a link, which needs the FIFO's ctrl: the caller must not hold
 * ctrl.
 */
void vrnic_hellos_stop(struct vrnic_fifo *fifo)
{
	struct vrnic_hellos *hellos = &fifo->hellos;

	lockdep_assert_not_held(&fifo->ctrl);
	vrnic_park(&hellos->run);
	queue_close(&hellos->queue);
}

/**
 * vrnic_hellos_failed() - note that a link that a FIFO accepted has failed
 * @fifo: the FIFO; the link has a reference on it
 *
 * Context: any.
 */
void vrnic_hellos_failed(struct vrnic_fifo *fifo)
{
	/*
	 * Pairs with test_and_clear_bit() in hellos_serve(): if hellos_serve() sees the bit,
	 * vrnic_links_reap() sees that the link has failed.
	 */
	smp_mb__before_atomic();
	set_bit(0, &fifo->hellos.failed);
	vrnic_queue(&fifo->hellos.run);
}

/**
 * vrnic_hello_wait() - put a datagram into a FIFO's queue, for a thread of the FIFO's crew
 * @fifo: FIFO that the datagram is about; the caller holds a reference
 * @heard: the datagram; copied
 *
 * Return: false if there is no room, or the FIFO's process has no memory for the copy.
 * Context: any but hard interrupts.
 */
bool vrnic_hello_wait(struct vrnic_fifo *fifo, const struct vrnic_heard *heard)
{
	struct vrnic_hellos *hellos = &fifo->hellos;
	struct mem_cgroup *was = vrnic_charge_begin(fifo);
	struct vrnic_heard *copy;

	copy = kmemdup(heard, sizeof(*heard), GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN);
	vrnic_charge_end(was);
	if (!copy)
		return false;
	copy->net = NULL;
	if (!queue_add(&hellos->queue, copy))
		return false;
	vrnic_queue(&hellos->run);
	return true;
}

/* ---- datagrams that need no FIFO ---- */

static void look_at(const struct vrnic_heard *heard)
{
	switch (heard->h.kind) {
	case VRNIC_HELLO_ASK:
		vrnic_link_refuse(heard);
		break;
	case VRNIC_HELLO_YES:
	case VRNIC_HELLO_NO:
		vrnic_link_answered(heard);
		break;
	default:
		vrnic_link_bye(heard);
	}
}

static void desk_work(struct work_struct *work)
{
	struct desk *desk = container_of(work, struct desk, work);
	struct vrnic_heard *heard;

	while ((heard = queue_take(&desk->queue))) {
		look_at(heard);
		heard_free(heard);
		cond_resched();
	}
}

static bool desk_add(struct net *net, const struct vrnic_heard *heard)
{
	bool answer = heard->h.kind == VRNIC_HELLO_YES || heard->h.kind == VRNIC_HELLO_NO;
	struct desk *desk = answer ? &answers : &others;
	struct vrnic_heard *copy;

	copy = kmemdup(heard, sizeof(*heard), GFP_ATOMIC | __GFP_NOWARN);
	if (!copy)
		return false;
	copy->net = maybe_get_net(net);
	if (!copy->net) {
		kfree(copy);
		return false;
	}
	if (!queue_add(&desk->queue, copy))
		return false;
	queue_work(system_dfl_wq, &desk->work);
	return true;
}

/* ---- datagrams in ---- */

static bool heard_read(struct vrnic_heard *heard, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_hello_wire wire;

	if (pkt->qpn != VRNIC_HELLO_QPN || pkt->len != sizeof(wire) ||
	    skb_copy_bits(skb, pkt->payload, &wire, sizeof(wire)))
		return false;
	vrnic_pkt_gids(skb, &heard->from, &heard->to);
	return vrnic_hello_read(&wire, &heard->h);
}

/* Is there a FIFO that the sender can reach: in @net, and at the datagram's destination address? */
static bool is_there(struct vrnic_fifo *fifo, struct net *net, const struct vrnic_heard *heard)
{
	return fifo && vrnic_in_net(fifo->dev, net) &&
	       vrnic_reaches(fifo->dev, &heard->to, fifo->dev);
}

/* Must a request to @fifo be refused at once? Return: the reason, or VRNIC_WHY_NONE. */
static u8 why_not(const struct vrnic_fifo *fifo, const struct vrnic_heard *heard)
{
	if (fifo->address.secret != heard->h.secret)
		return VRNIC_WHY_SECRET;
	return vrnic_hello_fits(&heard->h) ? VRNIC_WHY_NONE : VRNIC_WHY_FORMAT;
}

/* Handle a datagram that names a FIFO of this host. Return: false if it was dropped. */
static bool hello_hear_for_fifo(struct net *net, struct vrnic_heard *heard)
{
	struct vrnic_fifo *fifo = vrnic_fifo_get(heard->h.fifo);
	bool there = is_there(fifo, net, heard), taken;

	if (heard->h.kind == VRNIC_HELLO_ASK)
		heard->why = there ? why_not(fifo, heard) : VRNIC_WHY_NO_FIFO;
	if (heard->why)
		taken = desk_add(net, heard);
	else
		/* if there is no such FIFO, a goodbye has no link to end */
		taken = !there || vrnic_hello_wait(fifo, heard);
	if (fifo)
		vrnic_fifo_put(fifo);
	return taken;
}

static bool hello_hear(struct net *net, struct sk_buff *skb)
{
	struct vrnic_heard heard = {};

	if (!heard_read(&heard, skb))
		return false;
	if (heard.h.kind == VRNIC_HELLO_ASK ||
	    (heard.h.kind == VRNIC_HELLO_BYE && !heard.h.to_qpn))
		return hello_hear_for_fifo(net, &heard);
	return desk_add(net, &heard);
}

/* A datagram about links has come. Called in softirq; frees @skb. */
static void hello_receive(struct net *net, struct sk_buff *skb)
{
	bool intact = vrnic_pkt_intact(skb);

	if (!intact)
		vrnic_dev_count(net, skb->dev, VRNIC_STAT_BAD_ICRC, 1);
	if (!intact || !hello_hear(net, skb))
		vrnic_dev_count(net, skb->dev, VRNIC_STAT_RCVD_DROPPED, 1);
	kfree_skb(skb);
}

static void desk_init(struct desk *desk)
{
	INIT_WORK(&desk->work, desk_work);
	queue_init(&desk->queue);
}

static void desk_exit(struct desk *desk)
{
	cancel_work_sync(&desk->work);
	queue_close(&desk->queue);
}

/* Called before a socket can receive a datagram. */
void vrnic_hello_init(void)
{
	desk_init(&answers);
	desk_init(&others);
	vrnic_wire_on_hello(hello_receive);
}

/* Called when no packet can come any more, and no FIFO is left. */
void vrnic_hello_exit(void)
{
	desk_exit(&answers);
	desk_exit(&others);
}
