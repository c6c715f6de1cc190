// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Small puts share a packet: most of the work for a put of a few bytes is that for its packet. The
 * injector of a ring collects the small puts that follow each other to the same link and the same
 * counter of the peer, until its run ends, or it posts anything else. Each of them is a flight, as
 * if it had a message of its own (native/remote_flight.c). The first has the message, PUTS, and the
 * others follow it in the list of the link's flights.
 *
 * The peer executes the puts one by one. If one fails, the peer counts those before it, and refuses
 * the packet with the index of the one that failed. This end then sends the message again, in the
 * packet's place, with the index of the put behind. So the peer executes each put once, and in
 * order, and each fails for itself.
 */

#include <linux/skbuff.h>
#include <linux/slab.h>

#include "lib/link_wire.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_rx.h"
#include "native/native.h"
#include "queue/qp.h"
#include "roce/roce.h"
#include "vrnic.h"

/* Message data that fit into a packet of the smallest MTU that an Ethernet of 1500 bytes allows. */
#define PUTS_BYTES	(1024 - sizeof(struct vrnic_nwire))

/* An injector keeps some buffers, as it keeps flights. */
#define SPARE_PUTS	4

/**
 * struct vrnic_nputs - data of a PUTS
 * @spare: next one in @spare_puts of the injector
 * @counter: counter of the peer that the puts name, or 0
 * @from: index of the put to begin with
 * @nr: number of puts
 * @bytes: bytes of @data that are used
 * @data: struct vrnic_nput, each with its data
 */
struct vrnic_nputs {
	struct vrnic_nputs *spare;
	u32 counter;
	u32 from;
	u32 nr;
	u32 bytes;
	u8 data[PUTS_BYTES];
};

/* ---- the end that puts ---- */

static struct vrnic_nputs *puts_get(struct vrnic_injector *inj)
{
	struct vrnic_nputs *puts = inj->spare_puts;
	struct mem_cgroup *was;

	if (puts) {
		inj->spare_puts = puts->spare;
		inj->nr_spare_puts--;
		return puts;
	}
	was = vrnic_charge_begin(inj->fifo);
	puts = kmalloc(sizeof(*puts), GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN);
	vrnic_charge_end(was);
	return puts;
}

/* Free the data of a PUTS, or keep the memory. @puts: may be NULL */
void vrnic_nputs_put(struct vrnic_injector *inj, struct vrnic_nputs *puts)
{
	if (!puts)
		return;
	if (inj->nr_spare_puts == SPARE_PUTS) {
		kfree(puts);
		return;
	}
	puts->spare = inj->spare_puts;
	inj->spare_puts = puts;
	inj->nr_spare_puts++;
}

/* Free the memory that an injector keeps. Nobody runs it any more. */
void vrnic_nputs_free_spare(struct vrnic_injector *inj)
{
	struct vrnic_nputs *puts;

	while ((puts = inj->spare_puts)) {
		inj->spare_puts = puts->spare;
		inj->nr_spare_puts--;
		kfree(puts);
	}
}

static bool has_room(const struct vrnic_link *link, const struct vrnic_nputs *puts, u32 len)
{
	u32 most = min_t(u32, PUTS_BYTES, link->qp->roce->mtu - sizeof(struct vrnic_nwire));

	return puts->nr < VRNIC_NPUTS_MAX && puts->bytes + vrnic_nput_bytes(len) <= most;
}

static void append(struct vrnic_nputs *puts, const struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &flight->op.d;
	const struct vrnic_nput put = {
		.addr = cpu_to_be64(d->remote_addr),
		.key = cpu_to_be32(d->rkey),
		.len = cpu_to_be32(d->length),
	};
	u8 *to = puts->data + puts->bytes;
	u32 bytes = vrnic_nput_bytes(d->length);

	memcpy(to, &put, sizeof(put));
	/* no byte of this host's memory goes with the padding */
	memset(to + bytes - sizeof(u64), 0, sizeof(u64));
	memcpy(to + sizeof(put), flight->data, d->length);
	puts->bytes += bytes;
	puts->nr++;
}

/**
 * vrnic_nputs_join() - have a small put share the message of those before it
 * @link: link of both
 * @first: the first of those; it is not posted yet
 * @flight: the put; its data are in @flight->data
 *
 * Return: false if it does not fit there, or there is no memory.
 */
bool vrnic_nputs_join(struct vrnic_link *link, struct vrnic_nflight *first,
		      struct vrnic_nflight *flight)
{
	const struct vrnic_ndesc *d = &flight->op.d;
	struct vrnic_nputs *puts = first->puts;

	if (first->op.d.target_counter != d->target_counter)
		return false;
	if (!puts) {
		puts = puts_get(flight->inj);
		if (!puts)
			return false;
		puts->counter = d->target_counter;
		puts->from = 0;
		puts->nr = 0;
		puts->bytes = 0;
		first->puts = puts;
		append(puts, first);
	}
	if (!has_room(link, puts, d->length))
		return false;
	append(puts, flight);
	return true;
}

/* Fill in the message of a PUTS. Its one segment is kernel memory, which needs no reference. */
void vrnic_nputs_fill(struct vrnic_nflight *first)
{
	struct vrnic_nputs *puts = first->puts;
	const struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_PUTS,
		.data = puts->bytes,
		.total = puts->nr,
		.pos = puts->from,
		.counter = { puts->counter },
	};

	vrnic_nwire_fill(&first->msg.hdr, &h);
	first->msg.seg[0] = (struct vrnic_seg){ .kva = puts->data, .len = puts->bytes };
	first->msg.nr = 1;
}

/* Number of flights that follow @first, and share its message. */
u32 vrnic_nputs_behind(const struct vrnic_nflight *first)
{
	return first->puts ? first->puts->nr - 1 : 0;
}

/* Number of flights, @first and those behind it, that the peer says it has executed or refused. */
u32 vrnic_nputs_done(const struct vrnic_nflight *first)
{
	return first->puts ? first->puts->from : 0;
}

/**
 * vrnic_nputs_refused() - the peer has refused one of the puts
 * @first: the first of them; the caller holds the lock of its link
 * @index: which one, as the peer says
 * @refused: set to this one, for REST
 *
 * Return: VRNIC_REFUSAL_REST: the message begins behind that put now; OLD: it did before; FALSE: it
 * has no such put.
 */
enum vrnic_refusal vrnic_nputs_refused(struct vrnic_nflight *first, u32 index,
				       struct vrnic_nflight **refused)
{
	struct vrnic_nputs *puts = first->puts;
	u32 i;

	if (index >= puts->nr)
		return VRNIC_REFUSAL_FALSE;
	if (index < puts->from)
		return VRNIC_REFUSAL_OLD;
	*refused = first;
	for (i = 0; i < index; i++)
		*refused = list_next_entry(*refused, link);
	puts->from = index + 1;
	vrnic_nputs_fill(first);
	return VRNIC_REFUSAL_REST;
}

/* ---- the end that executes the puts ---- */

/* Return: 0 or enum vrnic_vendor_err. */
static int place(struct vrnic_link *link, const struct vrnic_nput *put, const void *data)
{
	struct vrnic_seg from = { .kva = (void *)data, .len = be32_to_cpu(put->len) };
	struct vrnic_fifo *fifo = link->fifo;
	struct vrnic_seg to;
	int verr;

	verr = vrnic_seg_region(fifo->dev, fifo->pd, be32_to_cpu(put->key), true,
				be64_to_cpu(put->addr), from.len, IB_ACCESS_REMOTE_WRITE,
				&link->qp->hold.remote, &to);
	if (verr)
		return verr;
	vrnic_seg_copy(&to, 0, &from, 0, from.len, true);
	vrnic_seg_put(&to);
	return 0;
}

/*
 * Count the bytes of the puts from the first of this packet on. If the counter is gone, the first
 * of them fails, and so will each of the others, as each would have by itself. Their data are in
 * place, and are not placed again.
 */
static void count(struct vrnic_link *link, u64 bytes)
{
	if (!bytes)
		return;
	vrnic_rx_count(link, bytes);
	if (link->rx.status != IB_WC_SUCCESS)
		link->rx.put = link->rx.h.pos;
}

/* A put with the most data that one in a PUTS may have. */
struct puts_entry {
	u8 bytes[sizeof(struct vrnic_nput) + VRNIC_NPUT_BYTES];
};

/*
 * Read the put at byte @at of the packet's data, and move @at behind it. Return: its data, in
 * @entry; or NULL if there is no whole put.
 */
static const void *read_put(struct sk_buff *skb, u32 *at, struct puts_entry *entry,
			    struct vrnic_nput *put)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 n = min_t(u32, sizeof(*entry), pkt->len - *at), read = 0;
	const void *data;

	if (skb_copy_bits(skb, pkt->payload + *at, entry, n))
		return NULL;
	data = vrnic_nput_next(entry, n, &read, put);
	*at += read;
	return data;
}

/**
 * vrnic_rx_puts() - execute a PUTS, up to the first put that fails
 * @link: link that it came over; the run bit of its queue pair is held
 * @skb: its packet, behind the header
 *
 * Return: 0; -EPROTO: the data are not what the header says.
 */
int vrnic_rx_puts(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct puts_entry entry;
	struct vrnic_nput put;
	const void *data;
	u64 bytes = 0;
	int verr = 0;
	u32 at = 0, i;

	for (i = 0; i < rx->h.total; i++) {
		data = read_put(skb, &at, &entry, &put);
		if (!data)
			return -EPROTO;
		if (i < rx->h.pos)
			continue;
		rx->put = i;
		if (i >= rx->placed)
			verr = place(link, &put, data);
		if (verr)
			break;
		rx->placed = max_t(u8, rx->placed, i + 1);
		bytes += be32_to_cpu(put.len);
	}
	count(link, bytes);
	if (verr && rx->status == IB_WC_SUCCESS)
		vrnic_rx_refuse_access(link, verr);
	return !verr && at != rx->h.data ? -EPROTO : 0;
}
