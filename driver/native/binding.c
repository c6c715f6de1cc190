// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bindings of counters to endpoints. A process may bind a counter to an endpoint during a transfer
 * with the endpoint's peer. The kernel fails the counter when the peer goes, so that no task sleeps
 * for bytes that will not come. Descriptors that the peer chose may name the counter meanwhile,
 * although it is not open to peers.
 */

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "native/counter.h"
#include "native/native.h"

/**
 * struct vrnic_binding - binds a counter to an endpoint
 * @of_counter: entry in the list of @counter
 * @of_endpoint: entry in the list of @ep
 * @counter: the counter
 * @ep: the endpoint
 * @uses: how often the counter was bound to the endpoint
 */
struct vrnic_binding {
	struct list_head of_counter;
	struct list_head of_endpoint;
	struct vrnic_counter *counter;
	struct vrnic_endpoint *ep;
	u32 uses;
};

/*
 * Most bindings of a counter, and of an endpoint. Their lists are walked with bind_lock held, which
 * all processes share.
 */
#define BINDINGS_MAX	1024

/* Protects the bindings of all counters. They change rarely, so one lock will do. */
static DEFINE_SPINLOCK(bind_lock);

static struct vrnic_binding *find_binding(struct vrnic_counter *c,
					  const struct vrnic_endpoint *ep)
{
	struct vrnic_binding *b;

	lockdep_assert_held(&bind_lock);
	list_for_each_entry(b, &c->bindings, of_counter)
		if (b->ep == ep)
			return b;
	return NULL;
}

static const struct vrnic_failure peer_lost = {
	.status = IB_WC_RETRY_EXC_ERR,
	.vendor_err = VRNIC_VERR_PEER,
};

static const struct vrnic_failure endpoint_gone = {
	.status = IB_WC_WR_FLUSH_ERR,
	.vendor_err = VRNIC_VERR_CANCELED,
};

/*
 * Write a failure into a bound counter, and have the caller tell those who wait, after it has
 * released bind_lock. If another task was about to do so, this one does it instead.
 */
static void binding_fail(struct vrnic_binding *b, const struct vrnic_failure *failure,
			 struct list_head *failed)
{
	lockdep_assert_held(&bind_lock);
	rcu_read_lock();
	vrnic_counter_note(b->counter, failure, 0, b->uses);
	rcu_read_unlock();
	list_move_tail(&b->counter->failed, failed);
}

/* Unlink and free a binding. Caller holds bind_lock. */
static void binding_drop(struct vrnic_binding *b)
{
	lockdep_assert_held(&bind_lock);
	list_del(&b->of_counter);
	b->counter->nr_bindings--;
	list_del(&b->of_endpoint);
	b->ep->nr_bindings--;
	kfree(b);
}

/* Link a binding with its counter and endpoint. Caller holds bind_lock. */
static int binding_add(struct vrnic_binding *b)
{
	lockdep_assert_held(&bind_lock);
	if (b->counter->nr_bindings == BINDINGS_MAX || b->ep->nr_bindings == BINDINGS_MAX)
		return -ENOMEM;
	list_add(&b->of_counter, &b->counter->bindings);
	b->counter->nr_bindings++;
	list_add(&b->of_endpoint, &b->ep->bindings);
	b->ep->nr_bindings++;
	return 0;
}

/**
 * vrnic_counter_bind() - fail a counter when the peer of an endpoint goes
 * @c: counter
 * @ep: endpoint of the same context. If its peer has gone already, the counter fails now
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_counter_bind(struct vrnic_counter *c, struct vrnic_endpoint *ep)
{
	struct vrnic_binding *b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT), *old;
	bool lost;
	int err = 0;

	if (!b)
		return -ENOMEM;
	b->counter = c;
	b->ep = ep;
	b->uses = 1;
	spin_lock_bh(&bind_lock);
	old = find_binding(c, ep);
	if (old)
		old->uses++;
	else
		err = binding_add(b);
	/* if the peer goes later, vrnic_bindings_fail() finds the binding */
	lost = !err && ep->lost;
	spin_unlock_bh(&bind_lock);
	if (lost)
		vrnic_counter_fail(c->id, c->owner, &peer_lost, 0);
	if (old || err)
		kfree(b);
	return err;
}

/**
 * vrnic_counter_unbind() - take one vrnic_counter_bind() back
 * @c: counter
 * @ep: endpoint
 *
 * Return: 0; -EPIPE: the peer has gone; -EINVAL: the counter is not bound to the endpoint.
 */
int vrnic_counter_unbind(struct vrnic_counter *c, struct vrnic_endpoint *ep)
{
	struct vrnic_binding *b;
	int ret = -EINVAL;

	spin_lock_bh(&bind_lock);
	b = find_binding(c, ep);
	if (b) {
		ret = ep->lost ? -EPIPE : 0;
		if (!--b->uses)
			binding_drop(b);
	}
	spin_unlock_bh(&bind_lock);
	return ret;
}

/**
 * vrnic_counter_unbind_all() - a counter is being destroyed: drop its bindings
 * @c: counter, which no descriptor finds any more
 */
void vrnic_counter_unbind_all(struct vrnic_counter *c)
{
	struct vrnic_binding *b, *next;

	spin_lock_bh(&bind_lock);
	list_for_each_entry_safe(b, next, &c->bindings, of_counter)
		binding_drop(b);
	list_del_init(&c->failed);
	spin_unlock_bh(&bind_lock);
}

/*
 * No reference is taken, because the owner would have to wait for this task, which may be another
 * user's. vrnic_counter_unbind_all() takes the counter off the list, and it is freed a grace period
 * later.
 * Return: false if the list is empty.
 */
static bool tell_first(struct list_head *failed, const struct vrnic_failure *failure)
{
	struct vrnic_counter *c;

	rcu_read_lock();
	spin_lock_bh(&bind_lock);
	c = list_first_entry_or_null(failed, struct vrnic_counter, failed);
	if (c)
		list_del_init(&c->failed);
	spin_unlock_bh(&bind_lock);
	if (c)
		vrnic_counter_tell(c, failure);
	rcu_read_unlock();
	return c;
}

static void counters_tell(struct list_head *failed, const struct vrnic_failure *failure)
{
	while (tell_first(failed, failure))
		cond_resched();
}

/**
 * vrnic_counters_tell() - tell those who wait for counters whose peer is gone
 * @failed: list that vrnic_bindings_fail() has filled; becomes empty
 *
 * Context: process context, without locks.
 */
void vrnic_counters_tell(struct list_head *failed)
{
	counters_tell(failed, &peer_lost);
}

/**
 * vrnic_bindings_fail() - the peer of an endpoint is gone: fail the bound counters
 * @ep: endpoint. Counters that are bound to it later fail at once
 * @failed: list of the caller, who calls vrnic_counters_tell() with it
 */
void vrnic_bindings_fail(struct vrnic_endpoint *ep, struct list_head *failed)
{
	struct vrnic_binding *b;

	spin_lock_bh(&bind_lock);
	ep->lost = true;
	list_for_each_entry(b, &ep->bindings, of_endpoint)
		binding_fail(b, &peer_lost, failed);
	spin_unlock_bh(&bind_lock);
}

/**
 * vrnic_bindings_drop() - an endpoint is being destroyed: fail the bound counters
 * @ep: endpoint; no bytes come from its peer any more
 */
void vrnic_bindings_drop(struct vrnic_endpoint *ep)
{
	struct vrnic_binding *b, *next;
	LIST_HEAD(failed);

	spin_lock_bh(&bind_lock);
	list_for_each_entry_safe(b, next, &ep->bindings, of_endpoint) {
		binding_fail(b, &endpoint_gone, &failed);
		binding_drop(b);
	}
	spin_unlock_bh(&bind_lock);
	counters_tell(&failed, &endpoint_gone);
}

static bool counter_is_bound(struct vrnic_counter *c, const struct vrnic_address *peer)
{
	struct vrnic_binding *b;
	bool bound = false;

	spin_lock_bh(&bind_lock);
	list_for_each_entry(b, &c->bindings, of_counter) {
		bound = vrnic_address_is(&b->ep->peer, peer);
		if (bound)
			break;
	}
	spin_unlock_bh(&bind_lock);
	return bound;
}

/**
 * vrnic_counter_may_name() - may a descriptor that a peer chose name this counter?
 * @id: number that the descriptor claims
 * @owner: number of the context that the counter must belong to
 * @peer: the peer
 *
 * Return: true if the counter is open to peers, or bound to an endpoint that leads to @peer.
 */
bool vrnic_counter_may_name(u32 id, u64 owner, const struct vrnic_address *peer)
{
	struct vrnic_counter *c;
	bool may;

	rcu_read_lock();
	c = vrnic_counter_find(id, owner);
	may = c && (c->open || counter_is_bound(c, peer));
	rcu_read_unlock();
	return may;
}
