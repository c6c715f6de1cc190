/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The pacer of a device: which of the peers on other hosts may send its next portion (S4). */
#ifndef VRNIC_PACER_H
#define VRNIC_PACER_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "lib/pace_window.h"

struct vrnic_injector;
struct vrnic_link;
struct vrnic_ndesc;

/**
 * struct vrnic_pacer - what a device has asked its peers for, in portions
 * @lock: protects all below; bh
 * @window: how much may be on its way
 * @asked: bytes that are on their way, without those that are late
 * @vtime: where the sender began that was asked last: see pacer.c
 * @queue: struct vrnic_turn that wait for the window, the one with the least @start first
 * @waiting: number of turns that wait, for the window or for their own link
 * @asking: struct vrnic_pace with bytes in @asked, the one that was asked last at the end
 * @late: struct vrnic_pace of which bytes are late, in the same order
 * @look: looks for bytes that are late, while turns wait
 */
struct vrnic_pacer {
	spinlock_t lock;	/* protects all below; bh */
	struct vrnic_pace_window window;
	u64 asked;
	u64 vtime;
	struct rb_root_cached queue;
	u32 waiting;
	struct list_head asking;
	struct list_head late;
	struct delayed_work look;
};

/**
 * struct vrnic_pace - what the peer of a link was asked for; protected by the pacer's lock
 * @entry: in @asking or @late of the pacer, or in neither
 * @asked: bytes that have not landed
 * @counted: those of them that are in the pacer's @asked; the others are late
 * @since: time, in ns, when the peer was asked last
 * @finish: where its last portion ended: see pacer.c
 * @excused: when, in ns, @excuses began to count
 * @excuses: how often a failure has ended the wait since then
 * @held: struct vrnic_turn that wait because the peer has enough to send
 */
struct vrnic_pace {
	struct list_head entry;
	u64 asked;
	u64 counted;
	u64 since;
	u64 finish;
	u64 excused;
	u32 excuses;
	struct list_head held;
};

enum vrnic_turn_state {
	VRNIC_TURN_NONE,
	VRNIC_TURN_HELD,	/* waits for what its own peer was asked for */
	VRNIC_TURN_QUEUED,	/* waits for the window */
	VRNIC_TURN_COME,	/* the injector may ask */
};

/**
 * struct vrnic_turn - an injector that wants to ask for a portion; protected by the pacer's lock
 * @state: where it is. Only the injector's run ends COME
 * @pace: of the link that @state is about; the injector's remote get keeps the link
 * @bytes: bytes of the portion
 * @start: its place in the pacer's @queue
 * @node: in the pacer's @queue, if QUEUED
 * @entry: in @pace->held, if HELD
 */
struct vrnic_turn {
	enum vrnic_turn_state state;
	struct vrnic_pace *pace;
	u64 bytes;
	u64 start;
	struct rb_node node;
	struct list_head entry;
};

void vrnic_pacer_init(struct vrnic_pacer *pacer);
void vrnic_pacer_stop(struct vrnic_pacer *pacer);
void vrnic_pace_init(struct vrnic_pace *pace);

u64 vrnic_pace_bytes(const struct vrnic_ndesc *d, u32 nr);
bool vrnic_pace_may_ask(struct vrnic_injector *inj, u64 bytes);
void vrnic_pace_leave(struct vrnic_injector *inj);
void vrnic_pace_landed(struct vrnic_link *link, u32 bytes);
void vrnic_pace_failed(struct vrnic_link *link);
void vrnic_pace_settle(struct vrnic_link *link);
void vrnic_pace_congested(struct vrnic_link *link, bool lost);

#endif /* VRNIC_PACER_H */
