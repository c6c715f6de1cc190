// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Types (S3) that the peer of a native link has sent as rows, and data of typed transfers, which go
 * from each packet to the places that the type says, without a buffer in between.
 */

#include <linux/hash.h>
#include <linux/slab.h>

#include "lib/link_wire.h"
#include "lib/type_rows.h"
#include "mem/seg.h"
#include "native/link.h"
#include "native/link_host.h"
#include "native/link_rx.h"
#include "native/native.h"
#include "native/type.h"
#include "roce/roce.h"
#include "vrnic.h"

/*
 * Limits for the types that the peer of a link sends: bytes of rows, and number of types. If one
 * more type exceeds a limit, this end forgets all others. The peer sends them again when needed.
 */
#define TYPES_BYTES	SZ_4M
#define TYPES_MAX	1024

/* Of a type whose data answers gather: bytes of the smallest chunk, and most bytes of rows. */
#define GATHER_LEAST		(VRNIC_PACK_BYTES / VRNIC_GATHER_CHUNKS)
#define GATHER_ROWS_BYTES	SZ_64K

static struct hlist_head *types_like(struct vrnic_link *link, u32 number)
{
	return &link->types->hash[hash_32(number, VRNIC_LINK_TYPE_BITS)];
}

static struct vrnic_link_type *type_find(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_type *type;

	if (!link->types)
		return NULL;
	hlist_for_each_entry(type, types_like(link, number), node)
		if (type->number == number)
			return type;
	return NULL;
}

/* The last one who used the type is done with it. */
void vrnic_link_type_put(struct vrnic_link *link, struct vrnic_link_type *type)
{
	if (!type || --type->refs)
		return;
	vrnic_host_uncharge(link->host, type->bytes);
	kvfree(type->rows.row);
	kfree(type);
}

static void type_forget(struct vrnic_link *link, struct vrnic_link_type *type)
{
	if (link->types->half.rows == &type->rows)
		link->types->half.rows = NULL;
	hlist_del(&type->node);
	link->types_nr--;
	link->types_bytes -= type->bytes;
	vrnic_link_type_put(link, type);
}

void vrnic_types_forget(struct vrnic_link *link)
{
	struct vrnic_link_type *type;
	struct hlist_node *next;
	unsigned int i;

	for (i = 0; link->types && i < ARRAY_SIZE(link->types->hash); i++)
		hlist_for_each_entry_safe(type, next, &link->types->hash[i], node)
			type_forget(link, type);
}

/* Free the rows of a type of which not all rows have come. */
void vrnic_rx_rows_free(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	if (!rx->rows)
		return;
	vrnic_host_uncharge(link->host, rx->rows_bytes);
	kvfree(rx->rows);
	rx->rows = NULL;
}

/* What is small, and no more than the link's own bounds allow: the process pays alone. */
static void *link_zalloc(struct vrnic_link *link, size_t bytes)
{
	struct mem_cgroup *was = vrnic_charge_begin(link->fifo);
	void *mem = kzalloc(bytes, VRNIC_GFP_LINK);

	vrnic_charge_end(was);
	return mem;
}

/* Make a type of the rows, all of which have come. Return: NULL: no valid type, or no memory. */
static struct vrnic_link_type *type_new(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_link_type *type;

	if (!link->types)
		link->types = link_zalloc(link, sizeof(*link->types));
	type = link->types ? link_zalloc(link, sizeof(*type)) : NULL;
	if (!type) {
		vrnic_rx_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
		return NULL;
	}
	type->number = number;
	type->refs = 1;
	type->bytes = rx->rows_bytes;
	type->rows.nr = rx->rows_bytes / sizeof(*type->rows.row);
	type->rows.row = rx->rows;
	if (!vrnic_rows_check(&type->rows))
		return type;
	kfree(type);
	return NULL;
}

/* Add a type, in place of one with the same number. It owns the rows in @link->rx from now on. */
static void types_add(struct vrnic_link *link, struct vrnic_link_type *type)
{
	struct vrnic_link_type *old = type_find(link, type->number);

	if (old)
		type_forget(link, old);
	if (link->types_nr == TYPES_MAX ||
	    link->types_bytes + type->bytes > TYPES_BYTES)
		vrnic_types_forget(link);
	hlist_add_head(&type->node, types_like(link, type->number));
	link->types_nr++;
	link->types_bytes += type->bytes;
	link->rx.rows = NULL;
}

/* All rows of a type have come. */
static void types_learn(struct vrnic_link *link, u32 number)
{
	struct vrnic_link_type *type = type_new(link, number);

	if (type) {
		types_add(link, type);
		return;
	}
	vrnic_rx_rows_free(link);
	vrnic_rx_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
}

/* The first rows of a type come: allocate room for all of its rows, which are @bytes. */
void vrnic_rx_rows_begin(struct vrnic_link *link, u64 bytes)
{
	struct vrnic_link_rx *rx = &link->rx;

	vrnic_rx_rows_free(link);
	rx->rows_there = 0;
	rx->rows_bytes = bytes;
	if (bytes > TYPES_BYTES) {
		vrnic_rx_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	rx->rows = vrnic_rx_alloc(link, bytes);
	if (!rx->rows)
		vrnic_rx_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
}

/* Rows come in order. */
void vrnic_rx_rows_check(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	const struct vrnic_nhdr *h = &rx->h;

	if (!h->pos)
		vrnic_rx_rows_begin(link, h->total);
	if (!rx->rows || h->total != rx->rows_bytes || h->pos != rx->rows_there)
		vrnic_rx_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
}

void vrnic_rx_rows_come(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;

	rx->rows_there += rx->h.data;
	if (rx->rows_there == rx->rows_bytes)
		types_learn(link, rx->h.key);
}

/* Open the whole storage of a type: one check of key and bounds covers all of its chunks. */
static int open_storage(struct vrnic_link *link, const struct vrnic_rows *rows, int access,
			struct vrnic_held *held, struct vrnic_seg *seg)
{
	u64 base = link->rx.h.addr;
	u64 addr = base + rows->lower;

	if (rows->lower < 0 ? addr >= base : addr < base)
		return VRNIC_VERR_BOUNDS;
	return vrnic_rx_region(link, addr, rows->span, access, held, seg);
}

/*
 * Find the type that a typed request names, and check that the request goes on where the last one
 * of the transfer ended. If this end does not know the type, it answers AGAIN, and the peer sends
 * the type again.
 */
void vrnic_rx_typed_check(struct vrnic_link *link)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_link_type *type = type_find(link, rx->h.type);
	const struct vrnic_rows *rows = type ? &type->rows : NULL;
	int access = rx->h.op == VRNIC_NWIRE_PUT ? IB_ACCESS_REMOTE_WRITE :
						   IB_ACCESS_REMOTE_READ;
	struct vrnic_half *half;
	struct vrnic_seg seg;
	int verr;

	rx->unknown = !rows;
	if (!rows)
		return;
	half = &link->types->half;
	if (rx->h.total != rows->bytes || rx->h.arg > VRNIC_PACK_BYTES ||
	    (rx->h.pos && (half->rows != rows || half->pos != rx->h.pos))) {
		vrnic_rx_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	verr = open_storage(link, rows, access, &link->qp->hold.remote, &seg);
	if (verr) {
		vrnic_rx_refuse_access(link, verr);
		return;
	}
	vrnic_seg_put(&seg);
	if (!rx->h.pos)
		vrnic_half_begin(half, rows);
}

bool vrnic_rx_takes_rows(const struct vrnic_link_rx *rx)
{
	return rx->h.flags & VRNIC_NWIRE_ROWS && rx->rows_there < rx->rows_bytes;
}

/*
 * Take the rows with which the data begin (S3.3) out of a packet. After the last of them the type
 * is known, and what follows are data of it.
 */
void vrnic_rx_take_rows(struct vrnic_link *link, struct sk_buff *skb)
{
	struct vrnic_link_rx *rx = &link->rx;
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 n = min_t(u64, pkt->len, rx->rows_bytes - rx->rows_there);

	if (skb_copy_bits(skb, pkt->payload, (void *)rx->rows + rx->rows_there, n)) {
		vrnic_rx_refuse(link, IB_WC_REM_INV_REQ_ERR, VRNIC_VERR_TYPE);
		return;
	}
	pkt->payload += n;
	pkt->len -= n;
	rx->rows_there += n;
	if (rx->rows_there < rx->rows_bytes)
		return;
	types_learn(link, rx->h.type);
	if (rx->status == IB_WC_SUCCESS)
		vrnic_rx_typed_check(link);
}

/* The request of a typed GET, whose answer is coming: flights are not typed. */
static struct vrnic_nreq *typed_req(struct vrnic_link *link)
{
	return container_of(link->rx.await, struct vrnic_nreq, await);
}

/* The answer to a typed GET of this end has come: open the whole storage for its data. */
static int open_asked(struct vrnic_link *link, struct vrnic_seg *seg)
{
	struct vrnic_nreq *req = typed_req(link);
	struct vrnic_fifo *fifo = link->fifo;

	return vrnic_seg_region(fifo->dev, fifo->pd, req->await.key, false, req->await.addr,
				req->span, IB_ACCESS_LOCAL_WRITE,
				&link->qp->hold.local, seg);
}

/* Copy from the packet to the places that the type names, without a buffer in between. */
static void serve_scatter(struct vrnic_half *half, const struct vrnic_seg *storage,
			  struct sk_buff *skb, bool final)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	unsigned int done = 0, n;
	struct skb_seq_state seq;
	const u8 *data;

	skb_prepare_seq_read(skb, pkt->payload, pkt->payload + pkt->len, &seq);
	while (done < pkt->len && (n = skb_seq_read(done, &data, &seq))) {
		n = min(n, pkt->len - done);
		vrnic_half_copy(half, storage, (void *)data, n, false,
				final && done + n == pkt->len);
		done += n;
	}
	skb_abort_seq_read(&seq);
}

void vrnic_rx_place_typed(struct vrnic_link *link, struct sk_buff *skb)
{
	bool answer = link->rx.h.op == VRNIC_NWIRE_ANSWER;
	struct vrnic_half *half = answer ? &typed_req(link)->gather.half : &link->types->half;
	struct vrnic_seg seg;
	int verr;

	verr = answer ? open_asked(link, &seg) :
			open_storage(link, half->rows, IB_ACCESS_REMOTE_WRITE,
				     &link->qp->hold.remote, &seg);
	if (verr) {
		vrnic_rx_refuse(link, answer ? IB_WC_LOC_PROT_ERR : IB_WC_REM_ACCESS_ERR,
				verr);
		return;
	}
	serve_scatter(half, &seg, skb, vrnic_rx_is_final(link, vrnic_pkt(skb)));
	vrnic_seg_put(&seg);
}

/* ---- answers ---- */

/*
 * Pack the data into a buffer (S3.4). Packets are made of it later, and again if one is lost.
 * Return: false if there is no memory.
 */
static bool answer_packed(struct vrnic_link *link, const struct vrnic_seg *storage, u32 n)
{
	struct vrnic_nmsg *answer = link->rx.answer;
	struct vrnic_seg seg = { .len = n };

	answer->buf = vrnic_rx_alloc(link, n);
	if (!answer->buf)
		return false;
	answer->charged = n;
	link->answer_bytes += n;
	vrnic_half_copy(&link->types->half, storage, answer->buf, n, true, false);
	seg.kva = answer->buf;
	vrnic_nmsg_add(answer, &seg);
	return true;
}

/* Have each packet gather its data (S3.5). The answer takes over the reference of @storage. */
static bool answer_gathered(struct vrnic_link *link, const struct vrnic_seg *storage, u32 n)
{
	struct vrnic_nmsg *answer = link->rx.answer;
	struct vrnic_ngather *gather = link_zalloc(link, sizeof(*gather));
	struct vrnic_seg seg;

	if (!gather)
		return false;
	vrnic_half_set(&gather->half, &link->types->half);
	seg = vrnic_ngather_seg(gather, storage, n);
	vrnic_nmsg_add(answer, &seg);
	answer->buf = gather;
	answer->type = type_find(link, link->rx.h.type);
	answer->type->refs++;
	vrnic_half_skip(&link->types->half, n);
	return true;
}

/*
 * Is the answer gathered? A softirq may do so, for as many answers as the peer likes: not if the
 * chunks are small, which is more work than their bytes tell. Nor do answers keep large types.
 */
static bool gathers_answer(const struct vrnic_link *link)
{
	const struct vrnic_rows *rows = link->types->half.rows;
	const struct vrnic_nhdr *h = &link->rx.h;

	return h->arg && !(h->flags & VRNIC_NWIRE_PACK) && rows->least >= GATHER_LEAST &&
	       container_of(rows, struct vrnic_link_type, rows)->bytes <= GATHER_ROWS_BYTES;
}

/*
 * Add the data of a typed GET to its answer. Gathered or not, the answer counts when the peer has
 * acknowledged it, as that to any GET.
 */
void vrnic_rx_get_typed(struct vrnic_link *link)
{
	struct vrnic_nmsg *answer = link->rx.answer;
	const struct vrnic_nhdr *h = &link->rx.h;
	bool gathers = gathers_answer(link), good;
	struct vrnic_seg storage;
	int verr;

	verr = open_storage(link, link->types->half.rows, IB_ACCESS_REMOTE_READ, NULL, &storage);
	if (verr) {
		vrnic_rx_refuse_access(link, verr);
		return;
	}
	good = gathers ? answer_gathered(link, &storage, h->arg) :
			 answer_packed(link, &storage, h->arg);
	if (!good || !gathers)
		vrnic_seg_put(&storage);
	if (!good) {
		vrnic_rx_refuse(link, IB_WC_REM_OP_ERR, VRNIC_VERR_TYPE);
		return;
	}
	answer->taken = h->arg;
	memcpy(answer->counter, h->counter, sizeof(answer->counter));
}
