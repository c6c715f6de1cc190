// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Transfers that pace themselves (S4), from several other hosts at once. Each peer has the next
 * portion asked for by a remote get, which this end's engine executes. Here it waits for its turn,
 * so that all peers together have no more to send than the wire takes, and none of them more than
 * its share. One peer alone does not wait for the window.
 *
 * How much. A portion that was asked for and has not landed is on its way. What is on its way, of
 * all peers, is kept to a window (lib/pace_window.h), which follows the marks and the losses that
 * this end sees. Of one peer no more than two portions are on their way: the one that moves, and
 * the next.
 *
 * Who. Start-time fair queueing: a portion starts where the peer's last one ended, in bytes, or
 * where the portion started that was asked for last, if that is further. The portion that starts
 * first is next. So peers get the same number of bytes, whatever the size of their portions, and a
 * peer that was silent saves nothing up.
 *
 * How long. A peer that is slow, or does not send at all, must not keep the others waiting: what
 * has not landed some rounds after the peer was asked is late, and counts no more. That time begins
 * when the peer is asked, not when something lands, so to trickle does not extend it. A peer that
 * is late is asked again when that has landed, or after FORGET_NS. A failure of what the peer was
 * to do ends the wait for all that it was asked for; the peer itself may go on at once, but only a
 * few times in FORGET_NS.
 */

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "engine/engine.h"
#include "native/link.h"
#include "native/native.h"
#include "native/pacer.h"
#include "vrnic.h"

#define LATE_ROUNDS	4
#define LATE_MIN	(20 * NSEC_PER_MSEC)
#define LATE_FIRST	(100 * NSEC_PER_MSEC)	/* as long as the time of a round is not known */
#define LATE_MAX	NSEC_PER_SEC
#define FORGET_NS	(4ULL * NSEC_PER_SEC)	/* what is late is not waited for any longer */
#define EXCUSES		4	/* failures in that time that let the peer itself go on at once */

#define LEAST_PORTION	SZ_64K	/* smaller ones share the room of one */
#define MOST_PORTION	BIT_ULL(36)
#define MOST_BYTES	(VRNIC_RGET_DESCS * MOST_PORTION)

static struct vrnic_pacer *pacer_of(const struct vrnic_link *link)
{
	return &link->fifo->dev->pacer;
}

static struct vrnic_link *link_of(struct vrnic_pace *pace)
{
	return container_of(pace, struct vrnic_link, pace);
}

static struct vrnic_turn *first_turn(const struct vrnic_pacer *pacer)
{
	return rb_entry_safe(rb_first_cached(&pacer->queue), struct vrnic_turn, node);
}

static bool starts_before(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(rb_entry(a, struct vrnic_turn, node)->start -
		     rb_entry(b, struct vrnic_turn, node)->start) < 0;
}

/* A portion ends no further than this from the last start. Any other value is old. */
static u64 start_of(const struct vrnic_pacer *pacer, const struct vrnic_pace *pace)
{
	return pace->finish - pacer->vtime <= MOST_BYTES ? pace->finish : pacer->vtime;
}

/* ---- what is on its way ---- */

/* Of @pace, @bytes are not waited for any more. */
static void uncount(struct vrnic_pacer *pacer, struct vrnic_pace *pace, u64 bytes)
{
	lockdep_assert_held(&pacer->lock);
	pace->counted -= bytes;
	pacer->asked -= bytes;
	if (!pacer->asked)
		vrnic_pace_window_idle(&pacer->window);
}

static void settle(struct vrnic_pacer *pacer, struct vrnic_pace *pace)
{
	uncount(pacer, pace, pace->counted);
	pace->asked = 0;
	list_del_init(&pace->entry);
}

/*
 * The peer will not send all that it was asked for. Others do not wait for it any longer. Nor does
 * it wait itself, unless it says so all the time: to fail must not be a way to be asked again soon.
 */
static void excuse(struct vrnic_pacer *pacer, struct vrnic_pace *pace)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&pacer->lock);
	if (now - pace->excused >= FORGET_NS) {
		pace->excused = now;
		pace->excuses = 0;
	}
	if (pace->excuses < EXCUSES) {
		pace->excuses++;
		settle(pacer, pace);
	} else if (pace->asked) {
		uncount(pacer, pace, pace->counted);
		list_move_tail(&pace->entry, &pacer->late);
	}
}

/* The caller is about to ask. A link that is dead has no account, as nobody would close it. */
static void give_turn(struct vrnic_pacer *pacer, struct vrnic_pace *pace, u64 start, u64 bytes)
{
	lockdep_assert_held(&pacer->lock);
	/* vrnic_link_broken() comes before vrnic_pace_settle() */
	if (READ_ONCE(link_of(pace)->dead))
		return;
	pacer->vtime = start;
	pace->finish = start + bytes;
	pace->asked += bytes;
	pace->counted += bytes;
	pacer->asked += bytes;
	pace->since = ktime_get_ns();
	list_move_tail(&pace->entry, &pacer->asking);
}

/* Has the peer enough to send, or is it late with what it has? */
static bool has_enough(const struct vrnic_pace *pace, u64 bytes)
{
	return pace->asked > max_t(u64, bytes, LEAST_PORTION) || pace->asked != pace->counted;
}

/* Is there room in the window? A peer has as much as it wants while no other one has anything. */
static bool window_has_room(const struct vrnic_pacer *pacer, const struct vrnic_pace *pace)
{
	return pacer->asked < pacer->window.bytes || pacer->asked == pace->counted;
}

/* ---- turns ---- */

static void serve(struct vrnic_pacer *pacer)
{
	struct vrnic_turn *turn;

	lockdep_assert_held(&pacer->lock);
	while ((turn = first_turn(pacer)) && window_has_room(pacer, turn->pace)) {
		rb_erase_cached(&turn->node, &pacer->queue);
		pacer->waiting--;
		give_turn(pacer, turn->pace, turn->start, turn->bytes);
		turn->state = VRNIC_TURN_COME;
		/* vrnic_pace_leave() takes the lock before the injector is freed */
		vrnic_queue(&container_of(turn, struct vrnic_injector, turn)->run);
	}
}

static void enqueue(struct vrnic_pacer *pacer, struct vrnic_turn *turn)
{
	turn->start = start_of(pacer, turn->pace);
	turn->state = VRNIC_TURN_QUEUED;
	rb_add_cached(&turn->node, &pacer->queue, starts_before);
}

/* The peer has less to send than before: go on with the turns that it held up. */
static void release_held(struct vrnic_pacer *pacer, struct vrnic_pace *pace)
{
	struct vrnic_turn *turn, *next;

	list_for_each_entry_safe(turn, next, &pace->held, entry) {
		if (has_enough(pace, turn->bytes))
			return;
		list_del(&turn->entry);
		enqueue(pacer, turn);
	}
}

static u64 late_ns(const struct vrnic_pacer *pacer)
{
	u64 took = pacer->window.took;

	return took ? clamp_t(u64, LATE_ROUNDS * took, LATE_MIN, LATE_MAX) : LATE_FIRST;
}

static void late_look_soon(struct vrnic_pacer *pacer)
{
	schedule_delayed_work(&pacer->look, nsecs_to_jiffies(late_ns(pacer) / 2) + 1);
}

/* Return: the first entry of a list whose peer was asked @ns ago, or longer; or NULL. */
static struct vrnic_pace *asked_before(struct list_head *list, u64 now, u64 ns)
{
	struct vrnic_pace *pace = list_first_entry_or_null(list, struct vrnic_pace, entry);

	return pace && (s64)(now - pace->since - ns) >= 0 ? pace : NULL;
}

static void look_for_late(struct work_struct *work)
{
	struct vrnic_pacer *pacer = container_of(work, struct vrnic_pacer, look.work);
	struct vrnic_pace *pace;
	u64 now;

	spin_lock_bh(&pacer->lock);
	/* not before: who was asked while this waited for the lock would be late */
	now = ktime_get_ns();
	while ((pace = asked_before(&pacer->asking, now, late_ns(pacer)))) {
		uncount(pacer, pace, pace->counted);
		list_move_tail(&pace->entry, &pacer->late);
		vrnic_count(link_of(pace)->fifo->dev, PACED_LATE);
	}
	while ((pace = asked_before(&pacer->late, now, FORGET_NS))) {
		settle(pacer, pace);
		release_held(pacer, pace);
	}
	serve(pacer);
	if (pacer->waiting)
		late_look_soon(pacer);
	spin_unlock_bh(&pacer->lock);
}

static bool begin_turn(struct vrnic_pacer *pacer, struct vrnic_injector *inj, u64 bytes)
{
	struct vrnic_pace *pace = &inj->link->pace;
	struct vrnic_turn *turn = &inj->turn;

	lockdep_assert_held(&pacer->lock);
	turn->pace = pace;
	turn->bytes = bytes;
	if (has_enough(pace, bytes)) {
		turn->state = VRNIC_TURN_HELD;
		list_add_tail(&turn->entry, &pace->held);
	} else if (first_turn(pacer) || !window_has_room(pacer, pace)) {
		pacer->window.limits = true;
		enqueue(pacer, turn);
	} else {
		give_turn(pacer, pace, start_of(pacer, pace), bytes);
		return true;
	}
	pacer->waiting++;
	vrnic_count(inj->fifo->dev, PACED_WAITS);
	late_look_soon(pacer);
	return false;
}

/**
 * vrnic_pace_may_ask() - may an injector ask its peer for a portion now?
 * @inj: injector of remote gets that executes one; it has a link, and its run bit is held
 * @bytes: bytes of the portion; 0: it asks for none
 *
 * Return: true if it has to ask now, and false if it runs again when it may.
 */
bool vrnic_pace_may_ask(struct vrnic_injector *inj, u64 bytes)
{
	struct vrnic_pacer *pacer = pacer_of(inj->link);
	bool may;

	/* the peer had no room for what asks it, so this is the same portion once more */
	if (inj->op.paced)
		return true;
	if (!bytes) {
		/* the process may have changed the descriptors while they waited */
		vrnic_pace_leave(inj);
		return true;
	}
	spin_lock_bh(&pacer->lock);
	if (inj->turn.state == VRNIC_TURN_NONE) {
		may = begin_turn(pacer, inj, bytes);
	} else {
		may = inj->turn.state == VRNIC_TURN_COME;
		if (may)
			inj->turn.state = VRNIC_TURN_NONE;
	}
	spin_unlock_bh(&pacer->lock);
	inj->op.paced = may;
	return may;
}

/* The injector does not want to ask any more. Its run bit is held, or nobody runs it. */
void vrnic_pace_leave(struct vrnic_injector *inj)
{
	struct vrnic_turn *turn = &inj->turn;
	struct vrnic_pacer *pacer;

	/* only the injector's run begins a turn */
	if (READ_ONCE(turn->state) == VRNIC_TURN_NONE)
		return;
	pacer = &inj->fifo->dev->pacer;
	spin_lock_bh(&pacer->lock);
	pacer->waiting -= turn->state != VRNIC_TURN_COME;
	if (turn->state == VRNIC_TURN_HELD)
		list_del(&turn->entry);
	else if (turn->state == VRNIC_TURN_QUEUED)
		rb_erase_cached(&turn->node, &pacer->queue);
	else	/* the peer will not be asked for what its account has */
		settle(pacer, turn->pace);
	turn->state = VRNIC_TURN_NONE;
	release_held(pacer, turn->pace);
	serve(pacer);
	spin_unlock_bh(&pacer->lock);
}

/**
 * vrnic_pace_bytes() - how much will some descriptors make a peer send?
 * @d: descriptors that this end is about to inject at the peer
 * @nr: number of descriptors
 *
 * Return: bytes.
 */
u64 vrnic_pace_bytes(const struct vrnic_ndesc *d, u32 nr)
{
	u64 bytes = 0;

	for (; nr--; d++)
		if (d->opcode == VRNIC_NOP_PUT || d->opcode == VRNIC_NOP_MESSAGE)
			bytes += min_t(u64, d->length, MOST_PORTION);
	return bytes;
}

/* ---- what the link sees ---- */

/**
 * vrnic_pace_landed() - data of the peer have come
 * @link: link that they came over
 * @bytes: how many
 *
 * Nothing says whether the peer was asked for them. If it was not, it is asked for more too early.
 */
void vrnic_pace_landed(struct vrnic_link *link, u32 bytes)
{
	struct vrnic_pacer *pacer = pacer_of(link);
	struct vrnic_pace *pace = &link->pace;
	u64 landed, late;

	/* nothing but data behind a remote get of this end counts, so an old value does no harm */
	if (!READ_ONCE(pace->asked))
		return;
	spin_lock_bh(&pacer->lock);
	landed = min_t(u64, bytes, pace->asked);
	late = pace->asked - pace->counted;
	pace->asked -= landed;
	if (vrnic_pace_window_landed(&pacer->window, landed))
		vrnic_pace_window_round(&pacer->window, ktime_get_ns());
	/* what is late was asked for first */
	uncount(pacer, pace, landed - min(landed, late));
	if (!pace->asked)
		list_del_init(&pace->entry);
	release_held(pacer, pace);
	serve(pacer);
	pacer->window.limits |= !!first_turn(pacer);
	spin_unlock_bh(&pacer->lock);
}

/**
 * vrnic_pace_failed() - the peer could not do something that this end injected
 * @link: link to the peer
 */
void vrnic_pace_failed(struct vrnic_link *link)
{
	struct vrnic_pacer *pacer = pacer_of(link);

	spin_lock_bh(&pacer->lock);
	excuse(pacer, &link->pace);
	release_held(pacer, &link->pace);
	serve(pacer);
	spin_unlock_bh(&pacer->lock);
}

/**
 * vrnic_pace_settle() - do not wait any longer for what the peer was asked for
 * @link: link that has failed, or is about to end
 */
void vrnic_pace_settle(struct vrnic_link *link)
{
	struct vrnic_pacer *pacer = pacer_of(link);

	spin_lock_bh(&pacer->lock);
	settle(pacer, &link->pace);
	release_held(pacer, &link->pace);
	serve(pacer);
	spin_unlock_bh(&pacer->lock);
}

/**
 * vrnic_pace_congested() - data of the peer have met congestion
 * @link: link that they came over
 * @lost: they were lost, not only marked
 *
 * What one peer sends by itself is between the two ends of its link.
 */
void vrnic_pace_congested(struct vrnic_link *link, bool lost)
{
	struct vrnic_pacer *pacer = pacer_of(link);

	if (!READ_ONCE(link->pace.asked))
		return;
	spin_lock_bh(&pacer->lock);
	if (link->pace.asked && (pacer->waiting || pacer->asked != link->pace.counted))
		vrnic_pace_window_congested(&pacer->window, lost);
	spin_unlock_bh(&pacer->lock);
}

/* ---- life ---- */

void vrnic_pace_init(struct vrnic_pace *pace)
{
	INIT_LIST_HEAD(&pace->entry);
	INIT_LIST_HEAD(&pace->held);
}

void vrnic_pacer_init(struct vrnic_pacer *pacer)
{
	spin_lock_init(&pacer->lock);
	vrnic_pace_window_init(&pacer->window);
	pacer->queue = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&pacer->asking);
	INIT_LIST_HEAD(&pacer->late);
	INIT_DELAYED_WORK(&pacer->look, look_for_late);
}

/* No link of the device is left, and no injector. */
void vrnic_pacer_stop(struct vrnic_pacer *pacer)
{
	cancel_delayed_work_sync(&pacer->look);
	WARN_ON(pacer->asked || pacer->waiting);
}
