// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads received packets: their headers, their ICRC and their payload. A buffer may hold several
 * packets behind one network and one UDP header. Each packet, or train of packets, has a clone of
 * the buffer, and struct vrnic_pkt has its offset in the data.
 *
 * The headers are copied to skb->cb, checked there and used from there, because the packet may lie
 * in memory that a program can write to.
 */

#include <linux/if_vlan.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "lib/hdr.h"
#include "lib/icrc.h"
#include "lib/psn.h"
#include "mem/seg.h"
#include "queue/qp.h"
#include "roce/roce.h"
#include "vrnic.h"

/* No IP options and no IPv6 extension headers: RoCEv2 packets have none. Sets @ipv6. */
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
 * Return: false if the packet is not a valid one for this host.
 */
bool vrnic_pkt_parse(struct sk_buff *skb, u32 at, u32 size)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct {
		struct vrnic_bth bth;
		u8 ext[sizeof(struct vrnic_xrceth) + VRNIC_EXT_MAX];
	} h;
	u32 hdrs, ext;
	bool ipv6;
	u8 pad;

	/* one copy of all headers that there may be: a search for their fragment costs more */
	if (size < sizeof(h.bth) || size % 4 || at + size > U16_MAX ||
	    !network_fits(skb, &ipv6) ||
	    skb_copy_bits(skb, at, &h, min_t(u32, size, sizeof(h))))
		return false;
	*pkt = (struct vrnic_pkt) {
		.info = vrnic_pkt_info(h.bth.opcode),
		.psn = vrnic_bth_psn(&h.bth),
		.qpn = vrnic_bth_qpn(&h.bth),
		.opcode = h.bth.opcode,
		.ipv6 = ipv6,
		.solicited = !!(h.bth.flags & VRNIC_BTH_SE),
		.ackreq = vrnic_bth_ackreq(&h.bth),
		.ce = met_congestion(skb, ipv6),
		.vlan = is_vlan_dev(skb->dev) ? vlan_dev_vlan_id(skb->dev) + 1 : 0,
	};
	pad = vrnic_bth_pad(&h.bth);
	ext = vrnic_ext_len(pkt->info);
	hdrs = sizeof(h.bth) + vrnic_exts_len(pkt->info);
	if (unlikely(pkt->info & VRNIC_PKT_XRC))
		pkt->opcode &= ~VRNIC_SVC_MASK;
	if (!pkt->info || h.bth.flags & VRNIC_BTH_VERSION ||
	    (h.bth.pkey & htons(0x7fff)) != htons(0x7fff) ||
	    size < hdrs + pad + VRNIC_ICRC_BYTES)
		return false;
	memcpy(pkt->ext, (u8 *)&h + hdrs - ext, ext);
	pkt->payload = at + hdrs;
	pkt->len = size - hdrs - pad - VRNIC_ICRC_BYTES;
	return pkt->info & VRNIC_PKT_PAYLOAD || !(pkt->len + pad);
}

/* Does only the PSN change from such a packet to the next? In the middle of a message it does. */
static bool can_couple(const struct vrnic_pkt *pkt)
{
	if (pkt->opcode == VRNIC_BTH_READ_RESP_MIDDLE)
		return true;
	return pkt->info & VRNIC_PKT_DATA &&
	       !(pkt->info & (VRNIC_PKT_START | VRNIC_PKT_END));
}

/*
 * Count the packets of @size bytes behind the one at @at whose BTHs differ from its BTH only in the
 * PSN, which counts up, and of XRC those that name its SRQ. One walk over the fragments finds all
 * BTHs. A BTH that lies in two fragments ends the walk.
 */
static u32 count_followers(struct sk_buff *skb, u32 at, u32 size)
{
	bool xrc = vrnic_pkt(skb)->info & VRNIC_PKT_XRCETH;
	u32 end = min_t(u32, skb->len, U16_MAX), n = 0;
	struct skb_seq_state state;
	struct {
		struct vrnic_bth bth;
		struct vrnic_xrceth xrc;
	} next;
	u32 len = xrc ? sizeof(next) : sizeof(next.bth);
	const u8 *heads;

	if (skb_copy_bits(skb, at, &next, len))
		return 0;
	skb_prepare_seq_read(skb, at, end, &state);
	while (at + (n + 2) * size <= end &&
	       skb_seq_read((n + 1) * size, &heads, &state) >= len) {
		be32_add_cpu(&next.bth.psn, 1);
		if (memcmp(&next, heads, len))
			break;
		n++;
	}
	skb_abort_seq_read(&state);
	return n;
}

/**
 * vrnic_pkt_couple() - make a train of a packet and of those that continue it
 * @skb: buffer; vrnic_pkt_parse() accepted the packet
 * @at: offset of the packet's BTH
 * @size: bytes of each packet
 *
 * Packets in the middle of a message are checked and executed together, unless they request an
 * acknowledgment.
 *
 * Return: number of packets that were added.
 */
u32 vrnic_pkt_couple(struct sk_buff *skb, u32 at, u32 size)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 more = 0;

	if (can_couple(pkt) && !pkt->ackreq)
		more = count_followers(skb, at, size);
	if (more) {
		pkt->train = true;
		pkt->more = more;
		pkt->stride = size;
	}
	return more;
}

/**
 * vrnic_pkt_uncouple() - split a train into packets
 * @qp: queue pair; all packets but the first go back to the head of its queue
 * @skb: train; afterwards only its first packet
 */
void vrnic_pkt_uncouple(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct sk_buff *one;
	u32 n;

	pkt->train = false;
	/* from the last to the second, each to the head of the queue */
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
 * Copy the IP and UDP headers of packet @index of a GSO buffer, as if the stack had split it: with
 * the lengths of a packet of @size bytes. @size 0: the buffer has one packet, whose headers are
 * right. Return: bytes.
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

/* Up to this size, from the BTH on, one copy costs less than a walk over the fragments. */
#define COPY_MAX	128

/* Is @icrc right for the bytes from @at to @end, if they are packet @index of the buffer? */
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
 * Was the packet never on a wire? Its fragments are then those that roce/tx.c made and marked as
 * shared; buffers that devices receive have no such mark. (A program that sends lent pages from a
 * socket of its own sets the mark, too, but it could as well send a right ICRC.) Code that changes
 * shared fragments, or computes a checksum over them, copies them first, and the copy has no mark.
 * So only memory itself can have spoiled the packet, as it can spoil the copy that follows.
 * CHECKSUM_PARTIAL would prove more, but the stack clears it when it pulls the UDP header.
 */
static bool is_from_memory(const struct sk_buff *skb)
{
	return skb_has_shared_frag(skb);
}

/* Is the ICRC right of packet @n of a train, counted from 0, or of the only packet? */
static bool is_intact(struct sk_buff *skb, u32 n)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	u32 payload = pkt->payload + (n ? n * pkt->stride : 0);
	u32 at = payload - vrnic_exts_len(pkt->info) - sizeof(struct vrnic_bth);
	u32 end = payload + ALIGN(pkt->len, 4);
	u32 index = skb_is_gso(skb) ? at / skb_shinfo(skb)->gso_size : 0;
	__le32 icrc;

	if (skb_copy_bits(skb, end, &icrc, sizeof(icrc)))
		return false;
	/* fault injection spoils the copy: the buffer may be shared */
	if (pkt->spoiled)
		icrc ^= cpu_to_le32(1);
	/* GRO joins packets whose IP identifications count up, or are all equal */
	return icrc_fits(skb, at, end, index, icrc) ||
	       (index && !pkt->ipv6 && icrc_fits(skb, at, end, 0, icrc));
}

/**
 * vrnic_pkt_intact() - has a packet, or each packet of a train, arrived unchanged?
 * @skb: packet; vrnic_pkt_parse() accepted it
 *
 * Return: true if it has.
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

/**
 * vrnic_pkt_srqn() - read the number of the SRQ that a request of XRC names
 * @skb: packet with an XRCETH, or a train, of which only the first packet counts
 *
 * skb->cb has no room for the number, so it is read where it lies, once for each request.
 *
 * Return: the number; 0: cannot be read, and no SRQ has this number.
 */
u32 vrnic_pkt_srqn(struct sk_buff *skb)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct vrnic_xrceth eth;

	if (skb_copy_bits(skb, pkt->payload - vrnic_exts_len(pkt->info), &eth, sizeof(eth)))
		return 0;
	return be32_to_cpu(eth.srqn) & VRNIC_XRCETH_SRQN;
}

static bool same_srqn(struct sk_buff *a, struct sk_buff *b)
{
	return !(vrnic_pkt(a)->info & VRNIC_PKT_XRCETH) || vrnic_pkt_srqn(a) == vrnic_pkt_srqn(b);
}

static u32 payload_crc(struct sk_buff *skb)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);

	return pkt->len ? icrc_data(skb, pkt->payload, pkt->payload + pkt->len, ~0) : 0;
}

/**
 * vrnic_pkt_same() - do two packets with one PSN have the same contents?
 * @a: packet; no train
 * @b: packet; no train
 *
 * The packets may differ in AckReq and ECN: a packet that is sent again may.
 *
 * Return: true if they do.
 */
bool vrnic_pkt_same(struct sk_buff *a, struct sk_buff *b)
{
	const struct vrnic_pkt *p = vrnic_pkt(a), *q = vrnic_pkt(b);

	return p->opcode == q->opcode && p->len == q->len && p->solicited == q->solicited &&
	       !memcmp(p->ext, q->ext, vrnic_ext_len(p->info)) && same_srqn(a, b) &&
	       payload_crc(a) == payload_crc(b);
}

/* Get the source or destination address of a packet as a GID. */
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
 * vrnic_pkt_is_from() - does a packet have the addresses of a path?
 * @skb: packet
 * @path: path to the peer
 *
 * Return: true if the peer's address has sent the packet to this end's address.
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
	/* the last word of an IPv4-mapped GID is the IPv4 address */
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
 * vrnic_pkt_copy() - copy the payload of a packet or a train
 * @skb: packet
 * @dst: target; its position moves behind the payload
 * @final: the message ends with this packet
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
