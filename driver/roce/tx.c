// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes packets.
 *
 * The packets that a queue pair sends in one run go to the network together, in one buffer: a UDP
 * GSO packet. The network splits the buffer as late as possible, or never if the peer is on this
 * machine. Each packet in it is complete, with a BTH, a PSN and an ICRC of its own. All have the
 * same length, except that the last may be shorter. The buffer is sent when it is full, or when the
 * run ends.
 *
 * The payload of a large SEND or WRITE is not copied: pages of the memory region become fragments
 * of the buffer. Their owner has posted the memory, and must not change it until the request is
 * complete. If the owner writes to a page while the packet is in flight, the ICRC is wrong, the
 * receiver drops the packet, and the requester sends a copy. Answers are copies: the owner of
 * memory that peers READ does not know of the READ.
 */

#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "base/trace.h"
#include "compat/compat.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "lib/hdr.h"
#include "lib/icrc.h"
#include "mem/mem.h"
#include "mem/seg.h"
#include "queue/qp.h"
#include "roce/rate.h"
#include "roce/roce.h"
#include "verbs/flow.h"
#include "vrnic.h"

/* Up to this size, a copy costs less than a fragment, of which a buffer has few. */
#define COPY_MAX	1024

/* A packet with at most so much payload is in one piece: the buffer's head if it is the first. */
#define HEAD_MAX	256

/* Most packets in a buffer, as for UDP_SEGMENT; and most bytes, with all headers. */
#define BURST_PKTS	VRNIC_ICRC_COUNT_MAX
#define BURST_BYTES	65535

static u32 net_bytes(const struct vrnic_path *path)
{
	return path->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static u8 pad_bytes(const struct vrnic_tx *tx)
{
	return -tx->len & 3;
}

/* Bytes of the packet, from BTH to ICRC. */
static u32 pkt_bytes(const struct vrnic_tx *tx)
{
	return sizeof(struct vrnic_bth) + tx->ext_len + tx->len +
	       pad_bytes(tx) + VRNIC_ICRC_BYTES;
}

static void tx_fill_ipv4(const struct vrnic_path *path, void *at)
{
	struct iphdr *ip = at;

	*ip = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = path->tos,
		/*
		 * DF is set, so the packet is never a fragment, and the identification may be
		 * anything: RFC 6864. It is 0 in the buffer. When the network splits the buffer, it
		 * counts up from there, and next_crc() expects that.
		 */
		.frag_off = htons(IP_DF),
		.ttl = path->ttl ?: ip4_dst_hoplimit(path->dst),
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, path->sgid.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw + 12, sizeof(ip->daddr));
}

static void tx_fill_ipv6(const struct vrnic_path *path, void *at)
{
	struct ipv6hdr *ip = at;

	ip6_flow_hdr(ip, path->tos, htonl(path->label));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = path->ttl ?: ip6_dst_hoplimit(path->dst);
	memcpy(&ip->saddr, path->sgid.raw, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw, sizeof(ip->daddr));
}

/* Fill in IP and UDP headers, except for the lengths. */
static void fill_net(const struct vrnic_path *path, void *at)
{
	struct udphdr *udp = at + net_bytes(path);

	if (path->ipv6)
		tx_fill_ipv6(path, at);
	else
		tx_fill_ipv4(path, at);
	*udp = (struct udphdr) {
		.source = htons(path->sport),
		.dest = htons(VRNIC_ROCE_PORT),
	};
}

static void put_net_headers(struct sk_buff *skb, const struct vrnic_path *path)
{
	void *at = skb_put(skb, net_bytes(path) + sizeof(struct udphdr));

	skb_reset_network_header(skb);
	skb_set_transport_header(skb, net_bytes(path));
	skb->protocol = path->ipv6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	fill_net(path, at);
}

/* Add a piece of @page as a fragment at the end of the buffer, with a reference on @page. */
static void put_frag(struct sk_buff *skb, struct page *page, u32 off, u32 n)
{
	struct skb_shared_info *info = skb_shinfo(skb);

	if (skb_can_coalesce(skb, info->nr_frags, page, off)) {
		skb_frag_size_add(&info->frags[info->nr_frags - 1], n);
	} else {
		get_page(page);
		skb_fill_page_desc(skb, info->nr_frags, page, off, n);
	}
	skb->len += n;
	skb->data_len += n;
	skb->truesize += n;
}

/* Add room for @n bytes at the end of the buffer. Return: the room; NULL if there is no memory. */
static void *burst_append(struct vrnic_burst *b, u32 n)
{
	struct sk_buff *skb = b->skb;
	void *at;

	if (!skb_is_nonlinear(skb) && skb_tailroom(skb) >= n)
		return skb_put(skb, n);
	if (!skb_page_frag_refill(n, &b->page, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	at = page_address(b->page.page) + b->page.offset;
	put_frag(skb, b->page.page, b->page.offset, n);
	b->page.offset += n;
	return at;
}

static bool put_copy(struct vrnic_burst *b, const struct vrnic_tx *tx, u32 *crc)
{
	void *to = burst_append(b, tx->len);

	if (!to)
		return false;
	vrnic_sgl_read(tx->src, to, tx->len);
	/* over the copy: the owner may change the source meanwhile */
	*crc = vrnic_icrc_more(*crc, to, tx->len);
	return true;
}

static void put_pages(struct vrnic_burst *b, const struct vrnic_tx *tx, u32 *crc)
{
	u64 left = tx->len, n;
	void *from;

	while (left) {
		from = vrnic_sgl_run(tx->src, left, &n);
		/* put_frag() takes a reference on one page, so the fragment ends with that page */
		n = min_t(u64, n, PAGE_SIZE - offset_in_page(from));
		put_frag(b->skb, virt_to_page(from), offset_in_page(from), n);
		*crc = vrnic_icrc_more(*crc, from, n);
		tx->src->pos += n;
		left -= n;
	}
	b->lent = true;
}

/*
 * Can the pages of @sgl be fragments? Only those of a user's region: other memory may be slab,
 * which a page reference does not keep. What is gathered is too many pieces.
 */
static bool can_lend(const struct vrnic_sgl *sgl)
{
	unsigned int i;

	for (i = sgl->cur; i < sgl->nr; i++)
		if (sgl->seg[i].len && (sgl->seg[i].pieces || !sgl->seg[i].mr ||
					sgl->seg[i].mr->kind != VRNIC_MR_USER))
			return false;
	return true;
}

/* Most fragments of the buffer that the packet takes. */
static u32 frags_for(const struct vrnic_tx *tx, bool lend)
{
	u32 frags = 2;	/* for headers; for pad and ICRC */
	unsigned int cur;
	u64 pos, left, n;
	void *from;

	/* copies lie one behind the other, so a packet reaches into two more pages at most */
	if (!lend)
		return frags + 2;
	cur = tx->src->cur;
	pos = tx->src->pos;
	for (left = tx->len; left; left -= n) {
		from = vrnic_sgl_run(tx->src, left, &n);
		n = min_t(u64, n, PAGE_SIZE - offset_in_page(from));
		tx->src->pos += n;
		frags++;
	}
	tx->src->cur = cur;
	tx->src->pos = pos;
	return frags;
}

/* Bytes for the link's header. A route does not keep its device for longer than a grace period. */
static u32 link_room(const struct vrnic_path *path)
{
	u32 bytes;

	rcu_read_lock();
	bytes = LL_RESERVED_SPACE(READ_ONCE(path->dst->dev));
	rcu_read_unlock();
	return bytes;
}

static bool burst_begin(struct vrnic_burst *b, const struct vrnic_path *path,
			const struct vrnic_tx *tx)
{
	u32 head = link_room(path);
	u32 bytes = net_bytes(path) + sizeof(struct udphdr) +
		    sizeof(struct vrnic_bth) + tx->ext_len;

	if (b->alone || tx->len <= HEAD_MAX)
		bytes += tx->len + pad_bytes(tx) + VRNIC_ICRC_BYTES;
	b->skb = alloc_skb(head + bytes, GFP_ATOMIC | __GFP_NOWARN);
	if (!b->skb)
		return false;
	skb_reserve(b->skb, head);
	b->skb->priority = path->priority;
	put_net_headers(b->skb, path);
	b->size = pkt_bytes(tx);
	b->nr = 0;
	b->payload = 0;
	b->full = false;
	b->lent = false;
	b->ack = false;
	return true;
}

/* Has the buffer room for this packet, and does it end no shorter packet? */
static bool burst_fits(const struct vrnic_burst *b, const struct vrnic_path *path,
		       const struct vrnic_tx *tx, u32 frags)
{
	return !b->full && pkt_bytes(tx) <= b->size && b->nr < BURST_PKTS &&
	       b->skb->len + pkt_bytes(tx) <= BURST_BYTES &&
	       skb_shinfo(b->skb)->nr_frags + frags <= MAX_SKB_FRAGS &&
	       !dst_xfrm(path->dst);
}

/* Bytes of an acknowledgment, from BTH to ICRC. */
#define ACK_BYTES (sizeof(struct vrnic_bth) + sizeof(struct vrnic_aeth) + VRNIC_ICRC_BYTES)

/* Compute the part of the ICRC that covers the IP and UDP headers of a packet of @size bytes. */
static u32 make_net_crc(const struct vrnic_path *path, u32 size)
{
	u8 net[sizeof(struct ipv6hdr) + sizeof(struct udphdr)] __aligned(4);
	u32 udp_len = sizeof(struct udphdr) + size;
	u32 ip = net_bytes(path);

	fill_net(path, net);
	((struct udphdr *)(net + ip))->len = htons(udp_len);
	if (path->ipv6)
		((struct ipv6hdr *)net)->payload_len = htons(udp_len);
	else
		((struct iphdr *)net)->tot_len = htons(ip + udp_len);
	return vrnic_icrc_net(net, path->ipv6);
}

/*
 * As make_net_crc(). Most packets of a path that are not acknowledgments have the same size, so
 * @path keeps the last result.
 */
static u32 net_crc(struct vrnic_path *path, u32 size)
{
	struct vrnic_net_crc *known = &path->crc[size == ACK_BYTES];

	if (known->size != size) {
		known->crc = make_net_crc(path, size);
		known->size = size;
	}
	return known->crc;
}

/* As net_crc(), for the next packet of the buffer: its IPv4 identification counts up from 0. */
static u32 next_crc(const struct vrnic_burst *b, struct vrnic_path *path, u32 size)
{
	u32 crc = net_crc(path, size);

	return path->ipv6 ? crc : vrnic_icrc_count(crc, b->nr);
}

static void fill_headers(struct vrnic_bth *bth, const struct vrnic_tx *tx)
{
	vrnic_bth_fill(bth, tx->opcode, pad_bytes(tx), tx->solicited, tx->dqpn, tx->psn,
		       tx->ackreq);
	memcpy(bth + 1, tx->ext, tx->ext_len);
}

/* Put a small packet, in one piece. Return: false if there is no memory. */
static bool put_small(struct vrnic_burst *b, struct vrnic_path *path,
		      const struct vrnic_tx *tx)
{
	struct vrnic_bth *bth = burst_append(b, pkt_bytes(tx));
	u32 size = pkt_bytes(tx);
	__le32 icrc;
	void *at;

	if (!bth)
		return false;
	fill_headers(bth, tx);
	at = (void *)(bth + 1) + tx->ext_len;
	vrnic_sgl_read(tx->src, at, tx->len);
	at += tx->len;
	memset(at, 0, pad_bytes(tx));
	at += pad_bytes(tx);
	icrc = vrnic_icrc_end(vrnic_icrc_from_bth(next_crc(b, path, size), bth,
						  size - sizeof(icrc)));
	memcpy(at, &icrc, sizeof(icrc));
	return true;
}

static bool put_large(struct vrnic_burst *b, struct vrnic_path *path,
		      const struct vrnic_tx *tx, bool lend)
{
	u8 pad = pad_bytes(tx);
	struct vrnic_bth *bth;
	__le32 icrc;
	void *end;
	u32 crc;

	bth = burst_append(b, sizeof(*bth) + tx->ext_len);
	if (!bth)
		return false;
	fill_headers(bth, tx);
	crc = vrnic_icrc_bth(next_crc(b, path, pkt_bytes(tx)), bth);
	crc = vrnic_icrc_more(crc, bth + 1, tx->ext_len);
	if (lend)
		put_pages(b, tx, &crc);
	else if (!put_copy(b, tx, &crc))
		return false;
	end = burst_append(b, pad + VRNIC_ICRC_BYTES);
	if (!end)
		return false;
	memset(end, 0, pad);
	icrc = vrnic_icrc_end(vrnic_icrc_more(crc, end, pad));
	memcpy(end + pad, &icrc, sizeof(icrc));
	return true;
}

/* Put a packet into the buffer. Return: false: no memory; then the buffer is useless. */
static bool burst_put_packet(struct vrnic_burst *b, struct vrnic_path *path,
			     const struct vrnic_tx *tx, bool lend)
{
	if (tx->len <= HEAD_MAX ? !put_small(b, path, tx) : !put_large(b, path, tx, lend))
		return false;
	b->nr++;
	b->payload += tx->len;
	b->full = pkt_bytes(tx) < b->size;
	return true;
}

static void set_lengths(struct sk_buff *skb, bool ipv6)
{
	u32 len = skb->len - skb_transport_offset(skb);

	udp_hdr(skb)->len = htons(len);
	if (ipv6)
		ipv6_hdr(skb)->payload_len = htons(len);
	else
		ip_hdr(skb)->tot_len = htons(skb->len);
}

/*
 * Ask the network device for a UDP checksum. GSO needs one, and so does each packet of a
 * connection: a receiver's GRO passes a packet without a checksum on at once, ahead of earlier
 * packets that it is still merging.
 */
static void ask_for_checksum(struct sk_buff *skb, bool ipv6)
{
	struct udphdr *udp = udp_hdr(skb);
	u32 len = skb->len - skb_transport_offset(skb);

	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (ipv6)
		udp->check = ~csum_ipv6_magic(&ipv6_hdr(skb)->saddr,
					      &ipv6_hdr(skb)->daddr, len,
					      IPPROTO_UDP, 0);
	else
		udp->check = ~csum_tcpudp_magic(ip_hdr(skb)->saddr,
						ip_hdr(skb)->daddr, len,
						IPPROTO_UDP, 0);
}

/* Complete the buffer, and take it out of @b. @connected: the sender is a connected queue pair. */
static struct sk_buff *burst_finish(const struct vrnic_path *path, struct vrnic_burst *b,
				    bool connected)
{
	struct sk_buff *skb = b->skb;

	b->skb = NULL;
	set_lengths(skb, path->ipv6);
	if (b->nr > 1) {
		skb_shinfo(skb)->gso_size = b->size;
		skb_shinfo(skb)->gso_segs = b->nr;
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	}
	if (b->nr > 1 || b->lent || connected) {
		/*
		 * the owner of lent pages may write to them; also the mark by which a receiver on
		 * this machine knows the packet: is_from_memory()
		 */
		skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
		ask_for_checksum(skb, path->ipv6);
	}
	return skb;
}

/*
 * After so long without a packet, the interface's queue counts as empty, unless requests are not
 * acknowledged. If it is not, packets may overtake those in it: the peer gets the right data all
 * the same, but later.
 */
#define QUEUE_QUIET	(HZ / 20)

static bool is_ack(const struct vrnic_burst *b)
{
	return b->ack && b->nr == 1;
}

/* May the interface's queue be another one now? */
static bool queue_is_free(const struct vrnic_qp *qp)
{
	const struct vrnic_tx_queue *q = &qp->roce->queue;

	if (!q->cpu)
		return true;
	return (q->answers || vrnic_roce_idle(qp)) && time_after(jiffies, q->used + QUEUE_QUIET);
}

/* Have the packet take the interface's queue that those before it took, if one may be under way. */
static void keep_queue(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_tx_queue *q = &qp->roce->queue;

	if (queue_is_free(qp)) {
		q->cpu = raw_smp_processor_id() + 1;
		q->answers = false;
	}
	if (qp->roce->resp.replied)
		q->answers = true;
	q->used = jiffies;
	vrnic_skb_sent_from(skb, q->cpu);
}

static int burst_push(struct vrnic_qp *qp, struct vrnic_path *path,
		      struct vrnic_burst *b)
{
	struct sk_buff *skb;
	int err;

	if (!is_ack(b) && !b->alone)
		vrnic_sends_in_order(&qp->run);
	skb = burst_finish(path, b, qp->roce);
	if (qp->roce)
		keep_queue(qp, skb);
	err = vrnic_path_send(path, skb);
	if (err) {
		vrnic_count_add(qp->dev, SEND_ERR, b->nr);
		return err;
	}
	vrnic_count_add(qp->dev, SENT_PKTS, b->nr);
	vrnic_count_add(qp->dev, XMIT_BYTES, b->payload);
	/* hellos of native links go by the GSI queue pair without its run bit */
	if (qp->type != IB_QPT_GSI) {
		qp->sent_pkts += b->nr;
		qp->xmit_bytes += b->payload;
	}
	return 0;
}

static bool add_packet(struct vrnic_qp *qp, struct vrnic_path *path,
		       struct vrnic_burst *b, const struct vrnic_tx *tx)
{
	bool lend = !tx->copy && tx->len > COPY_MAX && can_lend(tx->src);
	u32 frags = frags_for(tx, lend);

	if (frags > MAX_SKB_FRAGS) {
		lend = false;
		frags = frags_for(tx, lend);
	}
	if (b->skb && !burst_fits(b, path, tx, frags))
		burst_push(qp, path, b);
	if (!b->skb && !burst_begin(b, path, tx))
		return false;
	if (burst_put_packet(b, path, tx, lend))
		return true;
	vrnic_count_add(qp->dev, SEND_ERR, b->nr);
	kfree_skb(b->skb);
	b->skb = NULL;
	return false;
}

/* Send a packet of UD or GSI in a buffer of its own: the next may go to another peer. */
static int xmit_alone(struct vrnic_qp *qp, struct vrnic_path *path,
		      const struct vrnic_tx *tx)
{
	struct vrnic_burst b = { .alone = true };
	int err = -ENOMEM;

	if (add_packet(qp, path, &b, tx))
		err = burst_push(qp, path, &b);
	vrnic_burst_drop(&b);
	return err;
}

/*
 * Does the rate limit charge the packet? It charges requests, and the data of answers. The peer
 * decides how many acknowledgments and CNPs it gets, so these must not delay this end's own
 * packets.
 */
static bool is_charged(const struct vrnic_tx *tx)
{
	u32 info = vrnic_pkt_info(tx->opcode);

	return tx->len || !(info & (VRNIC_PKT_RESP | VRNIC_PKT_CNP));
}

/* The code that makes a packet of XRC names the operation only, as for RC. A CNP has no service. */
static void set_service(const struct vrnic_qp *qp, struct vrnic_tx *tx)
{
	if (unlikely(qp->xrc) && !(tx->opcode & VRNIC_SVC_MASK))
		tx->opcode |= VRNIC_SVC_XRC;
}

/**
 * vrnic_roce_xmit() - make a packet and send it
 * @qp: sender; if it is connected, the caller has to call vrnic_roce_push() in the same run
 * @path: path of the packet; if @qp is connected, its own path
 * @tx: the packet
 *
 * Return: 0 or a negative errno. A packet that could not be made or sent counts as lost. The
 * position of @tx->src has moved on as if it had been sent, except for -ENOMEM and -EHOSTUNREACH.
 */
int vrnic_roce_xmit(struct vrnic_qp *qp, struct vrnic_path *path,
		    struct vrnic_tx *tx)
{
	/* a packet that joins others in the buffer uses the route that was checked for the first */
	if (!(qp->roce && qp->roce->burst.skb) && !vrnic_path_route(qp, path)) {
		vrnic_count(qp->dev, SEND_ERR);
		return -EHOSTUNREACH;
	}
	set_service(qp, tx);
	trace_vrnic_packet(qp->qpn, true, tx->opcode, tx->psn, tx->len);
	if (!qp->roce)
		return xmit_alone(qp, path, tx);
	if (is_charged(tx))
		vrnic_rate_sent(qp, net_bytes(path) + sizeof(struct udphdr) + pkt_bytes(tx));
	if (add_packet(qp, path, &qp->roce->burst, tx))
		return 0;
	vrnic_count(qp->dev, SEND_ERR);
	return -ENOMEM;
}

/**
 * vrnic_roce_push() - send the packets that vrnic_roce_xmit() has collected in the buffer
 * @qp: sender; it is connected
 */
void vrnic_roce_push(struct vrnic_qp *qp)
{
	struct vrnic_path *path = &qp->roce->path;
	struct vrnic_burst *b = &qp->roce->burst;

	if (!b->skb)
		return;
	/* the route may have become invalid since; if there is no other, the packets are lost */
	if (vrnic_path_route(qp, path)) {
		burst_push(qp, path, b);
	} else {
		vrnic_count_add(qp->dev, SEND_ERR, b->nr);
		kfree_skb(b->skb);
		b->skb = NULL;
	}
}

/**
 * struct ack - an acknowledgment to be made: the contents of a struct vrnic_parcel
 * @path: path to the peer; holds a reference on the route until the delivery, with softirqs off
 * @psn: for struct vrnic_tx
 * @dqpn: for struct vrnic_tx
 * @cpu: for vrnic_skb_sent_from(): the acknowledgment must not overtake an answer
 * @aeth: extension header
 */
struct ack {
	struct vrnic_path path;
	u32 psn;
	u32 dqpn;
	u32 cpu;
	struct vrnic_aeth aeth;
};

static struct ack *to_ack(struct vrnic_parcel *parcel)
{
	BUILD_BUG_ON(sizeof(struct ack) > sizeof(parcel->room));
	return (struct ack *)parcel->room;
}

/**
 * vrnic_roce_parcel() - at the end of a run, leave the acknowledgment of what it executed
 * @qp: sender; it is connected, and its run bit is still held
 * @parcel: filled in if an acknowledgment is due; vrnic_roce_deliver() sends it
 *
 * A runner sends all other packets with the run bit, in order. But an acknowledgment may be
 * overtaken. To make and send it takes longer than what it acknowledges, and a process that sees
 * the result may want the run bit at once.
 */
void vrnic_roce_parcel(struct vrnic_qp *qp, struct vrnic_parcel *parcel)
{
	struct vrnic_path *path = &qp->roce->path;
	struct ack *ack = to_ack(parcel);
	struct vrnic_tx tx;

	if (!vrnic_resp_take_ack(qp, &tx))
		return;
	if (!vrnic_path_route(qp, path)) {
		vrnic_count(qp->dev, SEND_ERR);
		return;
	}
	set_service(qp, &tx);
	trace_vrnic_packet(qp->qpn, true, tx.opcode, tx.psn, 0);
	/* compute it in @path, so that this copy of the path and all later ones have it */
	net_crc(path, ACK_BYTES);
	ack->path = *path;
	dst_hold(ack->path.dst);
	ack->psn = tx.psn;
	ack->dqpn = tx.dqpn;
	ack->cpu = qp->roce->queue.cpu;
	memcpy(&ack->aeth, tx.ext, sizeof(ack->aeth));
	/* the delivery, which is without the run bit, counts it for the device */
	qp->sent_pkts++;
	parcel->full = true;
}

/**
 * vrnic_roce_deliver() - make and send the acknowledgment that vrnic_roce_parcel() left
 * @qp: sender; another runner may have its run bit by now
 * @parcel: the acknowledgment
 */
void vrnic_roce_deliver(struct vrnic_qp *qp, struct vrnic_parcel *parcel)
{
	struct ack *ack = to_ack(parcel);
	struct vrnic_burst b = {};
	struct vrnic_tx tx = {
		.opcode = VRNIC_BTH_ACK,
		.dqpn = ack->dqpn,
		.psn = ack->psn,
		.ext_len = sizeof(ack->aeth),
	};
	struct sk_buff *skb;
	int err = -ENOMEM;

	memcpy(tx.ext, &ack->aeth, sizeof(ack->aeth));
	set_service(qp, &tx);
	if (burst_begin(&b, &ack->path, &tx) && burst_put_packet(&b, &ack->path, &tx, false)) {
		skb = burst_finish(&ack->path, &b, true);
		vrnic_skb_sent_from(skb, ack->cpu);
		skb_dst_set(skb, ack->path.dst);
		ack->path.dst = NULL;
		err = vrnic_wire_send(ack->path.wire, skb);
	}
	if (err)
		vrnic_count(qp->dev, SEND_ERR);
	else
		vrnic_count(qp->dev, SENT_PKTS);
	vrnic_burst_drop(&b);
	vrnic_path_drop(&ack->path);
}

/* Free packets that were not sent, and the page for copies. */
void vrnic_burst_drop(struct vrnic_burst *b)
{
	kfree_skb(b->skb);
	b->skb = NULL;
	if (b->page.page)
		put_page(b->page.page);
	b->page.page = NULL;
}
