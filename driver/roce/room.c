// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bounds the memory of packets that wait for a run of their queue pair, or for a packet that is
 * missing. What counts is the memory that packets hold, not their number: a packet of a few bytes
 * may be a clone of a buffer of 64 KiB. Each list has a bound, so that no peer can take more, and
 * all lists together have one. Lists with much in them share one half of the total: when a few
 * queue pairs that nobody runs, or whose pages never come, have filled that, the others still
 * receive, with short queues.
 */

#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/sizes.h>

#include "roce/roce.h"

/* All lists together hold at most TOTAL_BYTES, and at most 1/TOTAL_PART of the memory. */
#define TOTAL_BYTES	SZ_64M
#define TOTAL_PART	16

/* A list that holds no more, or its first packet alone, may use all of the total. */
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

static void room_count(struct sk_buff_head *list, u32 *bytes, s32 more)
{
	s32 step = room_step(*bytes, more);

	*bytes += more;
	if (step)
		percpu_counter_add_batch(&waiting, step, batch);
	/* an empty list holds no bytes */
	WARN_ON_ONCE(skb_queue_empty(list) && *bytes);
}

/**
 * vrnic_room_for() - would there be room for packets?
 * @bytes: bytes of their list
 * @more: bytes that they add to it
 * @most: bound on @bytes
 *
 * Return: true if there is room now.
 */
bool vrnic_room_for(u32 bytes, u32 more, u32 most)
{
	s64 all = !bytes || bytes + more <= LITTLE ? total : total / 2;

	return bytes + more <= most &&
	       percpu_counter_read(&waiting) + room_step(bytes, more) <= all;
}

/**
 * vrnic_room_put() - put a packet into a list, if there is room
 * @list: list; the caller excludes all other users of it, as for vrnic_room_take()
 * @prev: packet before @skb; NULL: @skb becomes the first
 * @skb: packet; remains the caller's if there is no room
 * @bytes: bytes of @list
 * @most: bound on @bytes; VRNIC_ROOM_ANY: none, as the packet was in the list before
 *
 * Return: false if there is no room.
 */
bool vrnic_room_put(struct sk_buff_head *list, struct sk_buff *prev, struct sk_buff *skb,
		    u32 *bytes, u32 most)
{
	struct sk_buff *next = prev ? skb_peek_next(prev, list) : skb_peek(list);
	u32 more = bytes_of(prev, skb, next);

	if (most != VRNIC_ROOM_ANY && !vrnic_room_for(*bytes, more, most))
		return false;
	if (prev)
		__skb_queue_after(list, prev, skb);
	else
		__skb_queue_head(list, skb);
	room_count(list, bytes, more);
	return true;
}

/**
 * vrnic_room_take() - take a packet out of its list
 * @list: list
 * @skb: packet
 * @bytes: bytes of @list
 */
void vrnic_room_take(struct sk_buff_head *list, struct sk_buff *skb, u32 *bytes)
{
	struct sk_buff *prev = skb_queue_is_first(list, skb) ? NULL : skb_queue_prev(list, skb);
	u32 less = bytes_of(prev, skb, skb_peek_next(skb, list));

	__skb_unlink(skb, list);
	room_count(list, bytes, -(s32)less);
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
