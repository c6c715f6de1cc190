// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bounds the memory of packets that wait for a run of their queue pair, or for a packet that is
 * missing. What counts is the memory that packets hold, not their number: a packet of a few bytes
 * may be a clone of a buffer of 64 KiB. Each list has a bound, so that no peer can take more, and
 * all lists together have one. Lists with much in them share one half of the total: when a few
 * queue pairs that nobody runs, or whose pages never come, have filled that, the others still
 * receive, with short queues. And a user has half of the total, shared in the same way, so that one
 * with very many such queue pairs leaves room for the others.
 */

#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>

#include "base/user.h"
#include "queue/room.h"

/* All lists together hold at most TOTAL_BYTES, and at most 1/TOTAL_PART of the memory. */
#define TOTAL_BYTES	SZ_64M
#define TOTAL_PART	16

/* All lists of one user hold at most 1/USER_PART of what all lists together may hold. */
#define USER_PART	2

/* A list that holds no more, or its first packet alone, may use all of the total and of a share. */
#define LITTLE		SZ_32K

/* Each CPU counts at least so many bytes by itself before it updates the sum of all CPUs. */
#define BATCH_MIN	SZ_32K

/* Lists take room from the total in pieces, so that most packets do not touch the sum. */
#define PIECE		SZ_4K

static struct percpu_counter waiting;
static s64 total;
static s32 batch;

static bool same_head(const struct sk_buff *a, const struct sk_buff *b)
{
	return a && b && a->head == b->head;
}

/*
 * Bytes that @skb adds to a list between @prev and @next, either of which may be NULL. Neighbours
 * that share a buffer count it once. If @skb separates two such neighbours, their buffer counts
 * twice.
 */
static u32 bytes_of(const struct sk_buff *prev, const struct sk_buff *skb,
		    const struct sk_buff *next)
{
	u32 bytes = sizeof(*skb);

	if (same_head(prev, skb) || same_head(skb, next))
		return bytes;
	if (same_head(prev, next))
		bytes += next->truesize;
	return bytes + skb->truesize;
}

/* By how much does the list's room grow if its bytes grow from @bytes by @more? */
static s32 room_step(u32 bytes, s32 more)
{
	return round_up(bytes + more, PIECE) - round_up(bytes, PIECE);
}

static void room_count(struct vrnic_room *room, const struct sk_buff_head *list, s32 more)
{
	s32 step = room_step(room->bytes, more);

	room->bytes += more;
	if (step)
		percpu_counter_add_batch(&waiting, step, batch);
	if (step && room->user)
		percpu_counter_add_batch(&room->user->waiting, step, batch / USER_PART);
	/* an empty list holds no bytes */
	WARN_ON_ONCE(skb_queue_empty(list) && room->bytes);
}

/* May @sum, which @most bounds, grow by @step for a list with little, or much, in it? */
static bool may_grow(struct percpu_counter *sum, s32 step, bool little, s64 most)
{
	return percpu_counter_read(sum) + step <= (little ? most : most / 2);
}

/**
 * vrnic_room_for() - would there be room for packets?
 * @room: room of their list
 * @more: bytes that they add to it
 *
 * Return: true if there is room now.
 */
bool vrnic_room_for(const struct vrnic_room *room, u32 more)
{
	u32 bytes = READ_ONCE(room->bytes);
	bool little = !bytes || bytes + more <= LITTLE;
	s32 step = room_step(bytes, more);

	if (bytes + more > room->most || !may_grow(&waiting, step, little, total))
		return false;
	return !room->user || may_grow(&room->user->waiting, step, little, total / USER_PART);
}

static void room_add(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *prev,
		     struct sk_buff *skb, u32 more)
{
	if (prev)
		__skb_queue_after(list, prev, skb);
	else
		__skb_queue_head(list, skb);
	room_count(room, list, more);
}

/**
 * vrnic_room_put() - put a packet into a list, if there is room
 * @room: room of @list
 * @list: list; the caller excludes all other users of it and of @room, as for all that follow
 * @prev: packet before @skb; NULL: @skb becomes the first
 * @skb: packet; remains the caller's if there is no room
 *
 * Return: false if there is no room.
 */
bool vrnic_room_put(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *prev,
		    struct sk_buff *skb)
{
	struct sk_buff *next = prev ? skb_peek_next(prev, list) : skb_peek(list);
	u32 more = bytes_of(prev, skb, next);

	if (!vrnic_room_for(room, more))
		return false;
	room_add(room, list, prev, skb, more);
	return true;
}

/**
 * vrnic_room_return() - put a packet that was in a list before back at its head
 * @room: room of @list
 * @list: list
 * @skb: packet; finds room in any case
 */
void vrnic_room_return(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *skb)
{
	room_add(room, list, NULL, skb, bytes_of(NULL, skb, skb_peek(list)));
}

/**
 * vrnic_room_take() - take a packet out of its list
 * @room: room of @list
 * @list: list
 * @skb: packet
 */
void vrnic_room_take(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *skb)
{
	struct sk_buff *prev = skb_queue_is_first(list, skb) ? NULL : skb_queue_prev(list, skb);
	u32 less = bytes_of(prev, skb, skb_peek_next(skb, list));

	__skb_unlink(skb, list);
	room_count(room, list, -(s32)less);
}

int vrnic_room_init(void)
{
	u64 part = ((u64)totalram_pages() << PAGE_SHIFT) / TOTAL_PART;

	total = min_t(u64, part, TOTAL_BYTES);
	batch = max_t(s64, total / 8 / nr_cpu_ids, BATCH_MIN);
	return percpu_counter_init(&waiting, 0, GFP_KERNEL);
}

/* Called when no list is left. */
void vrnic_room_exit(void)
{
	WARN_ON_ONCE(percpu_counter_sum(&waiting));
	percpu_counter_destroy(&waiting);
}
