// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Injectors that wait for counters: the WAIT of a triggered operation. */

#include "engine/engine.h"
#include "native/counter.h"
#include "native/native.h"

/* Protects the injectors that wait for counters. They are few at a time, so one lock will do. */
static DEFINE_SPINLOCK(trigger_lock);

/* Most injectors on a counter's list. They are told one after the other; others look by time. */
#define TRIGGERS_MAX	64

/* counter_wake() (counter.c) reads the level without the lock. */
static void trigger_set_level(struct vrnic_counter *c)
{
	struct vrnic_trigger *first;

	lockdep_assert_held(&trigger_lock);
	first = list_first_entry_or_null(&c->triggers, struct vrnic_trigger, link);
	WRITE_ONCE(c->trigger_level, first ? first->threshold : S64_MIN);
}

/* Take the injector off its counter's list, if it is on one. */
static void trigger_remove(struct vrnic_trigger *t)
{
	lockdep_assert_held(&trigger_lock);
	if (!t->counter)
		return;
	list_del(&t->link);
	t->counter->nr_triggers--;
	trigger_set_level(t->counter);
	t->counter = NULL;
}

/* The wait is over. vrnic_untrigger() takes trigger_lock before the injector is freed. */
static void trigger_fire(struct vrnic_trigger *t, enum vrnic_fired fired,
			 const struct vrnic_failure *failure)
{
	lockdep_assert_held(&trigger_lock);
	trigger_remove(t);
	if (failure) {
		t->status = failure->status;
		t->vendor_err = failure->vendor_err;
	}
	/* vrnic_trigger_fired() reads it without the lock */
	WRITE_ONCE(t->fired, fired);
	vrnic_queue(&container_of(t, struct vrnic_injector, trigger)->run);
}

/**
 * vrnic_triggers_fire() - end the wait of injectors whose threshold is reached
 * @c: counter; the caller has found it under RCU, or keeps it otherwise
 * @left: bytes that remain; injectors whose threshold is this or more are told
 * @fired: what ends their wait
 * @failure: FAILED: the failure; otherwise NULL
 */
void vrnic_triggers_fire(struct vrnic_counter *c, s64 left, enum vrnic_fired fired,
			 const struct vrnic_failure *failure)
{
	struct vrnic_trigger *t, *next;

	spin_lock_bh(&trigger_lock);
	list_for_each_entry_safe(t, next, &c->triggers, link) {
		if (t->threshold < left)
			break;
		trigger_fire(t, fired, failure);
	}
	spin_unlock_bh(&trigger_lock);
}

/* Has the counter fallen so far, has it failed, or is it gone? */
static enum vrnic_fired trigger_look(struct vrnic_counter *c, struct vrnic_trigger *t,
				     s64 threshold)
{
	/* counter_destroy() (counter.c) sets it before it takes trigger_lock */
	if (READ_ONCE(c->gone))
		return VRNIC_FIRED_GONE;
	/* the process may have written anything into the cell, so only report the values */
	if (smp_load_acquire(&c->cell->errors)) {
		t->status = READ_ONCE(c->cell->status);
		t->vendor_err = READ_ONCE(c->cell->vendor_err);
		return VRNIC_FIRED_FAILED;
	}
	/* what made the counter fall happens before what was triggered */
	return atomic64_read_acquire(vrnic_counter_remaining(c)) <= threshold ?
	       VRNIC_FIRED_FELL : VRNIC_FIRED_NOT;
}

/* Put @t on the list of @c, behind those with higher thresholds. */
static void trigger_add(struct vrnic_counter *c, struct vrnic_trigger *t, s64 threshold)
{
	struct list_head *at;

	lockdep_assert_held(&trigger_lock);
	list_for_each(at, &c->triggers)
		if (list_entry(at, struct vrnic_trigger, link)->threshold < threshold)
			break;
	list_add_tail(&t->link, at);
	t->counter = c;
	t->threshold = threshold;
	c->nr_triggers++;
	trigger_set_level(c);
	/* pairs with the atomic subtraction of counter_fall(): see counter_wake() (counter.c) */
	smp_mb();
}

static enum vrnic_fired trigger_begin(struct vrnic_counter *c, struct vrnic_injector *inj,
				      s64 threshold)
{
	struct vrnic_trigger *t = &inj->trigger;
	enum vrnic_fired fired;

	lockdep_assert_held(&trigger_lock);
	fired = trigger_look(c, t, threshold);
	/* peers leave room for the process's own rings */
	if (fired || c->nr_triggers >= (inj->rget ? TRIGGERS_MAX / 2 : TRIGGERS_MAX))
		return fired;
	trigger_add(c, t, threshold);
	fired = trigger_look(c, t, threshold);
	if (fired)
		trigger_remove(t);
	return fired;
}

/**
 * vrnic_counter_trigger() - has a counter fallen so far? If not, have the injector run when it has
 * @inj: injector with a WAIT; the caller holds its run bit, and ends its run if the answer is "not"
 * @id: number that a user or a peer claims
 * @threshold: most bytes that may remain
 *
 * The counter may have too many injectors: then @inj->trigger.counter is NULL, and the caller has
 * to look again later.
 *
 * Return: enum vrnic_fired; GONE also if the process of the injector's FIFO has no such counter, or
 * does not let the peer name it that has injected the WAIT.
 */
enum vrnic_fired vrnic_counter_trigger(struct vrnic_injector *inj, u32 id, s64 threshold)
{
	struct vrnic_trigger *t = &inj->trigger;
	enum vrnic_fired fired = VRNIC_FIRED_GONE;
	struct vrnic_counter *c;

	rcu_read_lock();
	c = vrnic_counter_find(id, inj->fifo->owner);
	spin_lock_bh(&trigger_lock);
	if (t->fired)
		fired = t->fired;
	else if (t->counter)
		fired = VRNIC_FIRED_NOT;
	else if (c && (c->open || !inj->rget))
		fired = trigger_begin(c, inj, threshold);
	t->fired = VRNIC_FIRED_NOT;
	spin_unlock_bh(&trigger_lock);
	rcu_read_unlock();
	return fired;
}

/* Has the wait ended? The caller holds the injector's run bit. */
bool vrnic_trigger_fired(const struct vrnic_injector *inj)
{
	return READ_ONCE(inj->trigger.fired) != VRNIC_FIRED_NOT;
}

/* Wait for no counter any more. */
void vrnic_untrigger(struct vrnic_injector *inj)
{
	spin_lock_bh(&trigger_lock);
	trigger_remove(&inj->trigger);
	inj->trigger.fired = VRNIC_FIRED_NOT;
	spin_unlock_bh(&trigger_lock);
}
