// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that came in: what they say, whether it can be believed, and their
 * payload. A buffer may hold several, which share its network and UDP headers:
 * each has a clone of it, and knows where in the data it lies.
 *
 * What a packet says is copied to skb->cb, checked there and used from there: it
 * may lie in memory that somebody else writes to.
 */

#include <linux/if_vlan.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "lib/icrc.h"
#include "roce/roce.h"

/* IP options and extension headers are none of RoCEv2. */
static bool network_fits(const struct sk_buff *skb, bool *ipv6)
{
	u32 len = skb_transport_offset(skb) - skb_network_offset(skb);

	*ipv6 = skb->protocol == htons(ETH_P_IPV6);
	return len == (*ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
}

static bool met_congestion(const struct sk_buff *skb, bool ipv6)
{
	return INET_ECN_is_ce(ipv6 ? ipv6_get_dsfield(ipv6_hdr(skb)) :
				     ip_hdr(skb)->tos);
}

/**
 * vrnic_pkt_parse() - read the headers of a packet into skb->cb
 * @skb: buffer; skb->data is behind the UDP header
 * @at: offset of the packet's BTH
 * @size: bytes of the packet; the buffer has them
 *
 * Return: false if this is no packet that we could have been sent.
 */
bool vrnic_pkt_parse(struct sk_buff *skb, u32 at, u32 size)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_bth bth;
	u32 hdrs, ext;
	bool ipv6;
	u8 pad;

	if (size < sizeof(bth) || size % 4 || at + size > U16_MAX ||
	    !network_fits(skb, &ipv6) ||
	    skb_copy_bits(skb, at, &bth, sizeof(bth)))
		return false;
	*pkt = (struct vrnic_pkt) {
		.info = vrnic_pkt_info(bth.opcode),
		.psn = vrnic_bth_psn(&bth),
		.qpn = vrnic_bth_qpn(&bth),
		.opcode = bth.opcode,
		.ipv6 = ipv6,
		.solicited = !!(bth.flags & VRNIC_BTH_SE),
		.ackreq = vrnic_bth_ackreq(&bth),
		.ce = met_congestion(skb, ipv6),
		.vlan = is_vlan_dev(skb->dev) ? vlan_dev_vlan_id(skb->dev) + 1 : 0,
	};
	pad = vrnic_bth_pad(&bth);
	ext = vrnic_ext_len(pkt->info);
	hdrs = sizeof(bth) + ext;
	if (!pkt->info || bth.flags & VRNIC_BTH_VERSION ||
	    (bth.pkey & htons(0x7fff)) != htons(0x7fff) ||
	    size < hdrs + pad + VRNIC_ICRC_BYTES ||
	    skb_copy_bits(skb, at + sizeof(bth), pkt->ext, ext))
		return false;
	pkt->payload = at + hdrs;
	pkt->len = size - hdrs - pad - VRNIC_ICRC_BYTES;
	return pkt->info & VRNIC_PKT_PAYLOAD || !(pkt->len + pad);
}

/**
 * vrnic_pkt_couple() - make a train of a packet and those that only go on with it
 * @skb: buffer; vrnic_pkt_parse() was content with the packet
 * @at: offset of its BTH
 * @size: bytes of each packet
 *
 * In the middle of a message nothing but the PSN changes, and nothing is asked for:
 * such packets are looked at once, and executed at once.
 *
 * Return: packets that were added to it.
 */
u32 vrnic_pkt_couple(struct sk_buff *skb, u32 at, u32 size)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_bth first, bth;
	u32 more, end;

	if (!(pkt->info & (VRNIC_PKT_SEND | VRNIC_PKT_WRITE)) ||
	    pkt->info & (VRNIC_PKT_START | VRNIC_PKT_END) || pkt->ackreq ||
	    skb_copy_bits(skb, at, &first, sizeof(first)))
		return 0;
	end = min_t(u32, skb->len, U16_MAX);
	for (more = 0; at + (more + 2) * size <= end; more++) {
		if (skb_copy_bits(skb, at + (more + 1) * size, &bth, sizeof(bth)))
			break;
		be32_add_cpu(&first.psn, 1);
		if (memcmp(&first, &bth, sizeof(bth)))
			break;
	}
	if (more) {
		pkt->train = true;
		pkt->more = more;
		pkt->stride = size;
	}
	return more;
}

/**
 * vrnic_pkt_uncouple() - make packets of a train again
 * @qp: queue pair; those behind the first become the next in its queue
 * @skb: train; afterwards, its first packet
 */
void vrnic_pkt_uncouple(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct sk_buff *one;
	u32 n;

	pkt->train = false;
	/* each is put ahead of those behind it */
	for (n = pkt->more; n; n--) {
		one = skb_clone(skb, GFP_ATOMIC);
		if (!one) {
			vrnic_count(qp->dev, RCVD_DROPPED);
			continue;
		}
		vrnic_pkt(one)->psn = vrnic_psn_add(pkt->psn, n);
		vrnic_pkt(one)->payload += n * pkt->stride;
		vrnic_rxq_return(qp, one);
	}
}

/*
 * The network headers of the @index-th packet of a buffer that was not taken apart, of
 * @size bytes; or of the only one, if @size is 0. Return: bytes.
 */
static u32 copy_net(const struct sk_buff *skb, u32 index, u32 size, u8 *net)
{
	bool ipv6 = vrnic_pkt((struct sk_buff *)skb)->ipv6;
	u32 ip = ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	u32 udp_len = sizeof(struct udphdr) + size;
	struct iphdr *ip4 = (void *)net;

	memcpy(net, skb_network_header(skb), ip + sizeof(struct udphdr));
	if (size) {
		((struct udphdr *)(net + ip))->len = htons(udp_len);
		if (ipv6) {
			((struct ipv6hdr *)net)->payload_len = htons(udp_len);
		} else {
			ip4->tot_len = htons(ip + udp_len);
			ip4->id = htons(ntohs(ip4->id) + index);
		}
	}
	return ip + sizeof(struct udphdr);
}

static u32 icrc_data(struct sk_buff *skb, u32 from, u32 to, u32 crc)
{
	struct skb_seq_state state;
	u32 done = 0, n;
	const u8 *data;

	skb_prepare_seq_read(skb, from, to, &state);
	while ((n = skb_seq_read(done, &data, &state))) {
		n = min(n, to - from - done);
		crc = vrnic_icrc_more(crc, data, n);
		done += n;
	}
	return crc;
}

/* Up to here, from BTH to ICRC, a copy costs less than to go through the pieces. */
#define COPY_MAX	128

/* Is @icrc that of the packet from @at to @end, if it is the @index-th? */
static bool icrc_fits(struct sk_buff *skb, u32 at, u32 end, u32 index,
		      __le32 icrc)
{
	u8 h[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + COPY_MAX] __aligned(4);
	u32 size = skb_is_gso(skb) ? end + VRNIC_ICRC_BYTES - at : 0;
	u32 net = copy_net(skb, index, size, h), len = end - at;
	bool ipv6 = vrnic_pkt(skb)->ipv6;
	struct vrnic_bth bth;
	u32 crc;

	if (skb_copy_bits(skb, at, h + net, len <= COPY_MAX ? len : sizeof(bth)))
		return false;
	if (len <= COPY_MAX) {
		crc = vrnic_icrc_whole(h, ipv6, net + len);
	} else {
		memcpy(&bth, h + net, sizeof(bth));
		crc = vrnic_icrc_bth(vrnic_icrc_net(h, ipv6), &bth);
		crc = icrc_data(skb, at + sizeof(bth), end, crc);
	}
	return icrc == vrnic_icrc_end(crc);
}

/*
 * It was never on a wire, but has the fragments that roce/tx.c made, which are marked as
 * shared; what devices receive has no such mark. (A program that lends pages to a
 * socket of its own has it, and could as well have made an ICRC that fits.) Whatever
 * changes such fragments, or computes a checksum over them, has to copy them first, and
 * the copy is not marked. No more can go wrong here than with the copy that follows.
 * That the UDP checksum was left to a device would say more, but the socket forgets it
 * with the UDP header.
 */
static bool is_from_memory(const struct sk_buff *skb)
{
	return skb_has_shared_frag(skb);
}

/* Is the ICRC of the @n-th packet of a train right, or that of the only one? */
static bool is_intact(struct sk_buff *skb, u32 n)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 payload = pkt->payload + (n ? n * pkt->stride : 0);
	u32 at = payload - vrnic_ext_len(pkt->info) - sizeof(struct vrnic_bth);
	u32 end = payload + ALIGN(pkt->len, 4);
	u32 index = skb_is_gso(skb) ? at / skb_shinfo(skb)->gso_size : 0;
	__le32 icrc;

	if (skb_copy_bits(skb, end, &icrc, sizeof(icrc)))
		return false;
	/* the packet itself may be shared: it is left as it is */
	if (pkt->spoiled)
		icrc ^= cpu_to_le32(1);
	/* IP identifications may have counted, or have been the same */
	return icrc_fits(skb, at, end, index, icrc) ||
	       (index && !pkt->ipv6 && icrc_fits(skb, at, end, 0, icrc));
}

/**
 * vrnic_pkt_intact() - has a packet, or a train, come as it was sent?
 * @skb: vrnic_pkt_parse() was content with it
 */
bool vrnic_pkt_intact(struct sk_buff *skb)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 n;

	if (is_from_memory(skb) && !pkt->spoiled)
		return true;
	for (n = 0; n < vrnic_pkt_count(pkt); n++)
		if (!is_intact(skb, n))
			return false;
	return true;
}

static u32 payload_crc(struct sk_buff *skb)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);

	return pkt->len ? icrc_data(skb, pkt->payload, pkt->payload + pkt->len, ~0) : 0;
}

/**
 * vrnic_pkt_same() - do two packets say the same?
 * @a: packet; no train
 * @b: packet; no train
 *
 * That one asks for an acknowledgment, or met congestion, is no difference.
 */
bool vrnic_pkt_same(struct sk_buff *a, struct sk_buff *b)
{
	const struct vrnic_pkt *p = vrnic_pkt(a), *q = vrnic_pkt(b);

	return p->opcode == q->opcode && p->len == q->len && p->solicited == q->solicited &&
	       !memcmp(p->ext, q->ext, vrnic_ext_len(p->info)) &&
	       payload_crc(a) == payload_crc(b);
}

/* The address that a packet came from or went to, as a GID. */
static void packet_gid(const struct sk_buff *skb, bool source, union ib_gid *gid)
{
	if (vrnic_pkt((struct sk_buff *)skb)->ipv6) {
		const struct ipv6hdr *ip6 = ipv6_hdr(skb);

		memcpy(gid, source ? &ip6->saddr : &ip6->daddr, sizeof(*gid));
	} else {
		const struct iphdr *ip = ip_hdr(skb);

		ipv6_addr_set_v4mapped(source ? ip->saddr : ip->daddr,
				       (struct in6_addr *)gid);
	}
}

/**
 * vrnic_pkt_is_from() - has a packet come from the peer, to the address that it knows?
 * @skb: packet
 * @path: to the peer
 */
bool vrnic_pkt_is_from(struct sk_buff *skb, const struct vrnic_path *path)
{
	const struct in6_addr *own = (const void *)path->sgid.raw;
	const struct in6_addr *peer = (const void *)path->dgid.raw;

	if (vrnic_pkt(skb)->ipv6 != path->ipv6)
		return false;
	if (path->ipv6)
		return ipv6_addr_equal(&ipv6_hdr(skb)->saddr, peer) &&
		       ipv6_addr_equal(&ipv6_hdr(skb)->daddr, own);
	/* the last word of the GID, as for vrnic_path_route() */
	return ip_hdr(skb)->saddr == peer->s6_addr32[3] &&
	       ip_hdr(skb)->daddr == own->s6_addr32[3];
}

void vrnic_pkt_gids(const struct sk_buff *skb, union ib_gid *from,
		    union ib_gid *to)
{
	packet_gid(skb, true, from);
	packet_gid(skb, false, to);
}

/**
 * vrnic_pkt_copy() - the payload of a packet or a train, to where it belongs
 * @skb: packet
 * @dst: memory; its position moves on
 * @final: the message ends with it
 */
void vrnic_pkt_copy(struct sk_buff *skb, struct vrnic_sgl *dst, bool final)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 from = pkt->payload, len = pkt->len, stride = 0, last = 0;
	u32 at, done, n;
	struct skb_seq_state state;
	const u8 *data;

	if (!pkt->train && from + len <= skb_headlen(skb)) {
		vrnic_sgl_write(dst, skb->data + from, len, final);
		return;
	}
	if (pkt->train) {
		stride = pkt->stride;
		last = pkt->more * stride;
	}
	skb_prepare_seq_read(skb, from, from + last + len, &state);
	for (at = 0, done = 0; (n = skb_seq_read(at + done, &data, &state)); ) {
		n = min(n, len - done);
		done += n;
		vrnic_sgl_write(dst, data, n, final && at == last && done == len);
		if (done == len && at != last) {
			at += stride;
			done = 0;
		}
	}
}
