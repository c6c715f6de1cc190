// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Making packets. The payload of a large packet is not copied: the pages of the
 * memory region become fragments of the packet. The owner may write to such a
 * page while the packet is on its way; then its ICRC is wrong, the receiver
 * drops it, and what is sent again is a copy.
 */

#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "icrc.h"
#include "roce.h"
#include "trace.h"

/* Up to here a copy costs less than a fragment. */
#define COPY_MAX	512

static void fill_ipv4(const struct vrnic_path *path, void *at, u32 len)
{
	struct iphdr *ip = at;

	*ip = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = path->tos,
		.tot_len = htons(len),
		/* never a fragment: so the identification may be 0, RFC 6864 */
		.frag_off = htons(IP_DF),
		.ttl = path->ttl ?: ip4_dst_hoplimit(path->dst),
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, path->sgid.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw + 12, sizeof(ip->daddr));
}

static void fill_ipv6(const struct vrnic_path *path, void *at, u32 len)
{
	struct ipv6hdr *ip = at;

	ip6_flow_hdr(ip, path->tos, htonl(path->label));
	ip->payload_len = htons(len - sizeof(*ip));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = path->ttl ?: ip6_dst_hoplimit(path->dst);
	memcpy(&ip->saddr, path->sgid.raw, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw, sizeof(ip->daddr));
}

/* Network, UDP and transport headers. Returns the ICRC so far. */
static u32 put_headers(struct sk_buff *skb, const struct vrnic_path *path,
		       const struct vrnic_tx *tx)
{
	u32 net = path->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	u8 pad = -tx->len & 3;
	u32 udp_len = sizeof(struct udphdr) + sizeof(struct vrnic_bth) +
		      tx->ext_len + tx->len + pad + VRNIC_ICRC_BYTES;
	void *at = skb_put(skb, net + sizeof(struct udphdr) +
			   sizeof(struct vrnic_bth) + tx->ext_len);
	struct udphdr *udp = at + net;
	struct vrnic_bth *bth = (void *)(udp + 1);

	skb_reset_network_header(skb);
	skb_set_transport_header(skb, net);
	skb->protocol = path->ipv6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	if (path->ipv6)
		fill_ipv6(path, at, net + udp_len);
	else
		fill_ipv4(path, at, net + udp_len);
	*udp = (struct udphdr) {
		.source = htons(path->sport),
		.dest = htons(VRNIC_ROCE_PORT),
		.len = htons(udp_len),
	};
	vrnic_bth_fill(bth, tx->opcode, pad, tx->solicited, tx->dqpn, tx->psn,
		       tx->ackreq);
	memcpy(bth + 1, tx->ext, tx->ext_len);
	return vrnic_icrc_more(vrnic_icrc_begin(at, path->ipv6), bth + 1,
			       tx->ext_len);
}

static u32 put_copy(struct sk_buff *skb, const struct vrnic_tx *tx, u32 crc)
{
	u64 left = tx->len, n;
	void *from, *to;

	while (left) {
		from = vrnic_sgl_run(tx->src, left, &n);
		to = skb_put(skb, n);
		vrnic_memcpy(to, from, n);
		/* over the copy: what it was made of may change */
		crc = vrnic_icrc_more(crc, to, n);
		tx->src->pos += n;
		left -= n;
	}
	return crc;
}

/* Return: false if the payload lies in pieces that are too many. */
static bool put_pages(struct sk_buff *skb, const struct vrnic_tx *tx, u32 *crc)
{
	u64 left = tx->len, n;
	void *from;

	while (left) {
		/* one is for the end of the packet */
		if (skb_shinfo(skb)->nr_frags == MAX_SKB_FRAGS - 1)
			return false;
		from = vrnic_sgl_run(tx->src, left, &n);
		/* a reference holds one page */
		n = min_t(u64, n, PAGE_SIZE - offset_in_page(from));
		get_page(virt_to_page(from));
		skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags,
				   virt_to_page(from), offset_in_page(from), n);
		*crc = vrnic_icrc_more(*crc, from, n);
		tx->src->pos += n;
		left -= n;
	}
	skb->len += tx->len;
	skb->data_len += tx->len;
	skb->truesize += tx->len;
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	return true;
}

/* Pad and ICRC, behind whatever the packet has. */
static bool put_end(struct sk_buff *skb, const struct vrnic_tx *tx, u32 crc)
{
	u8 pad = -tx->len & 3;
	u32 len = pad + VRNIC_ICRC_BYTES;
	struct page *page;
	void *at;
	__le32 icrc;

	if (skb_is_nonlinear(skb)) {
		at = netdev_alloc_frag(len);
		if (!at)
			return false;
		page = virt_to_head_page(at);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page,
				at - page_address(page), len, len);
	} else {
		at = skb_put(skb, len);
	}
	memset(at, 0, pad);
	icrc = vrnic_icrc_end(vrnic_icrc_more(crc, at, pad));
	memcpy(at + pad, &icrc, sizeof(icrc));
	return true;
}

/* Pages of a user's region can be fragments; other memory may be anything. */
static bool can_lend(const struct vrnic_sgl *sgl)
{
	unsigned int i;

	for (i = sgl->cur; i < sgl->nr; i++)
		if (sgl->seg[i].len &&
		    (!sgl->seg[i].mr || sgl->seg[i].mr->kind != VRNIC_MR_USER))
			return false;
	return true;
}

static struct sk_buff *build(struct vrnic_path *path, const struct vrnic_tx *tx,
			     bool copy)
{
	u32 head = LL_RESERVED_SPACE(path->dst->dev);
	u32 hdrs = sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		   sizeof(struct vrnic_bth) + tx->ext_len;
	struct sk_buff *skb;
	u32 crc;

	skb = alloc_skb(head + hdrs + (copy ? tx->len : 0) + 3 +
			VRNIC_ICRC_BYTES, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, head);
	crc = put_headers(skb, path, tx);
	if (copy)
		crc = put_copy(skb, tx, crc);
	else if (!put_pages(skb, tx, &crc))
		goto err_free;
	if (put_end(skb, tx, crc))
		return skb;
err_free:
	kfree_skb(skb);
	return NULL;
}

static struct sk_buff *build_any(struct vrnic_path *path, struct vrnic_tx *tx)
{
	struct sk_buff *skb;
	unsigned int cur;
	u64 pos;

	if (tx->copy || tx->len <= COPY_MAX || !can_lend(tx->src))
		return build(path, tx, true);
	cur = tx->src->cur;
	pos = tx->src->pos;
	skb = build(path, tx, false);
	if (skb)
		return skb;
	tx->src->cur = cur;
	tx->src->pos = pos;
	return build(path, tx, true);
}

/**
 * vrnic_roce_xmit() - make a packet and send it
 * @qp: sender
 * @path: where to
 * @tx: what
 *
 * Return: 0 or a negative errno. A packet that could not be made or sent is as
 * good as one that was lost on the way; the position of @tx->src is as if it
 * had been sent only if this is not -ENOMEM or -EHOSTUNREACH.
 */
int vrnic_roce_xmit(struct vrnic_qp *qp, struct vrnic_path *path,
		    struct vrnic_tx *tx)
{
	struct sk_buff *skb;
	int err;

	if (!vrnic_path_route(path)) {
		vrnic_count(qp->dev, SEND_ERR);
		return -EHOSTUNREACH;
	}
	skb = build_any(path, tx);
	if (!skb) {
		vrnic_count(qp->dev, SEND_ERR);
		return -ENOMEM;
	}
	trace_vrnic_packet(qp->qpn, true, tx->opcode, tx->psn, tx->len);
	err = vrnic_path_send(path, skb);
	if (err)
		vrnic_count(qp->dev, SEND_ERR);
	else
		vrnic_count(qp->dev, SENT_PKTS);
	return err;
}

/**
 * vrnic_pkt_copy() - the payload of a packet, to where it belongs
 * @skb: packet
 * @dst: memory; its position moves on
 * @final: the message ends with it
 */
void vrnic_pkt_copy(struct sk_buff *skb, struct vrnic_sgl *dst, bool final)
{
	u32 off = vrnic_pkt(skb)->payload, left = vrnic_pkt(skb)->len;
	u32 at = skb_headlen(skb), n;
	int i;

	if (left && off < at) {
		n = min(left, at - off);
		left -= n;
		vrnic_sgl_write(dst, skb->data + off, n, final && !left);
		off += n;
	}
	for (i = 0; left && i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u32 size = skb_frag_size(frag);

		if (off < at + size) {
			n = min(left, at + size - off);
			left -= n;
			vrnic_sgl_write(dst, skb_frag_address(frag) + (off - at),
					n, final && !left);
			off += n;
		}
		at += size;
	}
}
