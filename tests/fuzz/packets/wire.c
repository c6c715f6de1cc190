// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames out of a packet socket in the peer's namespace, and the answers that come back. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/udp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/icrc.h"
#include "lib/link_wire.h"
#include "packets.h"

#define BATCH		32
#define IP4_BYTES	20
#define IP6_BYTES	40
#define UDP_BYTES	8
#define GSO_SPORT	50001

u64 frames_sent;

static int raw, gso;
static u8 batch[BATCH][FRAME_MAX + 64];
static u32 batch_len[BATCH], batched;
static u8 macs[12];	/* to, from */

static void put16(u8 *at, u16 v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static u32 get32(const u8 *at)
{
	return (u32)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static bool is_group(const struct pkt *p)
{
	return p->ipv6 ? p->dst[0] == 0xff : p->dst[12] >> 4 == 0xe;
}

void pkt_init(struct pkt *p, const struct target *t, u8 opcode, u32 psn)
{
	memset(p, 0, offsetof(struct pkt, data));
	p->ipv6 = t->ipv6;
	p->vlan = -1;
	p->fragments = 1;
	memcpy(p->src, opt.peer[t->ipv6], 16);
	memcpy(p->dst, opt.mine[t->ipv6], 16);
	p->opcode = opcode;
	p->flags = VRNIC_BTH_MIG;
	p->pkey = 0xffff;
	p->qpn = t->qpn;
	p->psn = psn & VRNIC_PSN_MASK;
}

static void ip4_sum(u8 *ip, u32 len)
{
	u32 sum = 0, i;

	put16(ip + 10, 0);
	for (i = 0; i < len; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~(sum + (sum >> 16)));
}

/* The ICRC over a packet whose IP header is at @net, without options. */
static void put_icrc(u8 *net, bool ipv6, u8 *end)
{
	const u8 *rest = net + (ipv6 ? IP6_BYTES : IP4_BYTES) + UDP_BYTES +
			 sizeof(struct vrnic_bth);
	u32 crc = vrnic_icrc_begin(net, ipv6);
	__le32 icrc;

	if (end > rest)
		crc = vrnic_icrc_more(crc, rest, end - rest);
	icrc = vrnic_icrc_end(crc);
	memcpy(end, &icrc, sizeof(icrc));
}

static void put_ip(const struct pkt *p, u8 *net, u32 udp_len)
{
	if (p->ipv6) {
		memset(net, 0, IP6_BYTES);
		net[0] = 0x60;
		put16(net + 4, udp_len);
		net[6] = IPPROTO_UDP;
		net[7] = 64;
		memcpy(net + 8, p->src, 16);
		memcpy(net + 24, p->dst, 16);
	} else {
		memset(net, 0, IP4_BYTES);
		net[0] = 0x45;
		put16(net + 2, IP4_BYTES + udp_len);
		/* what was reassembled has no DF, and the ICRC covers that */
		if (p->fragments > 1)
			put16(net + 4, draw());
		else
			net[6] = 0x40;
		net[8] = 64;
		net[9] = IPPROTO_UDP;
		memcpy(net + 12, p->src + 12, 4);
		memcpy(net + 16, p->dst + 12, 4);
		ip4_sum(net, IP4_BYTES);
	}
}

static u8 *put_transport(const struct pkt *p, u8 *at)
{
	u32 qpn = htonl(p->qpn), psn = htonl(p->psn);

	at[0] = p->opcode;
	at[1] = p->flags | p->pad << VRNIC_BTH_PAD_SHIFT;
	put16(at + 2, p->pkey);
	memcpy(at + 4, &qpn, 4);
	memcpy(at + 8, &psn, 4);
	at += sizeof(struct vrnic_bth);
	memcpy(at, p->ext, p->ext_len);
	at += p->ext_len;
	memcpy(at, p->data, p->len);
	at += p->len;
	memset(at, 0, p->pad);
	return at + p->pad;
}

/* From the IP header on, without what would make it anything but a plain packet. */
static u32 build(const struct pkt *p, u8 *net)
{
	u32 ip = p->ipv6 ? IP6_BYTES : IP4_BYTES, len;
	u8 *udp = net + ip, *end;

	end = put_transport(p, udp + UDP_BYTES);
	len = end - udp + VRNIC_ICRC_BYTES;
	if (p->cut) {
		/* there is an ICRC, at least */
		len = p->cut >= len - UDP_BYTES ? UDP_BYTES + VRNIC_ICRC_BYTES : len - p->cut;
		end = udp + len - VRNIC_ICRC_BYTES;
	}
	put_ip(p, net, len);
	put16(udp, 0xc000 | (p->qpn & 0x3fff));
	put16(udp + 2, VRNIC_ROCE_PORT);
	put16(udp + 4, len + p->udp_len);
	put16(udp + 6, p->bad_sum ? 0x1234 : 0);
	put_icrc(net, p->ipv6, end);
	end[0] ^= p->bad_icrc;
	return ip + len;
}

/* A group's hardware address is made of its own. */
static void put_group(const struct pkt *p, u8 *frame)
{
	const u8 v4[] = { 1, 0, 0x5e, p->dst[13] & 0x7f, p->dst[14], p->dst[15] };
	const u8 v6[] = { 0x33, 0x33, p->dst[12], p->dst[13], p->dst[14], p->dst[15] };

	memcpy(frame, p->ipv6 ? v6 : v4, 6);
}

static u8 *put_eth(const struct pkt *p, u8 *frame)
{
	memcpy(frame, macs, 12);
	if (is_group(p))
		put_group(p, frame);
	frame += 12;
	if (p->vlan >= 0) {
		put16(frame, 0x8100);
		put16(frame + 2, p->vlan);
		frame += 4;
	}
	put16(frame, p->ipv6 ? 0x86dd : 0x0800);
	return frame + 2;
}

static u8 *next_frame(void)
{
	if (batched == BATCH)
		wire_flush();
	return batch[batched];
}

static void queue_frame(u32 len)
{
	batch_len[batched++] = len;
	frames_sent++;
}

/* Four NOPs behind the IPv4 header, or destination options that are padding. */
static u32 insert_options(const struct pkt *p, u8 *net, u32 len)
{
	u32 ip = p->ipv6 ? IP6_BYTES : IP4_BYTES, more = p->ipv6 ? 8 : 4;

	memmove(net + ip + more, net + ip, len - ip);
	if (p->ipv6) {
		memcpy(net + ip, (u8[]){ IPPROTO_UDP, 0, 1, 4, 0, 0, 0, 0 }, 8);
		net[6] = IPPROTO_DSTOPTS;
		put16(net + 4, len - ip + more);
	} else {
		memset(net + ip, 1, 4);
		net[0] = 0x46;
		put16(net + 2, len + more);
		ip4_sum(net, ip + more);
	}
	return len + more;
}

/* One of the pieces of @whole: bytes @from to @to behind the IP header. */
static void send_piece(const struct pkt *p, const u8 *whole, u32 from, u32 to, bool last, u32 id)
{
	u32 ip = p->ipv6 ? IP6_BYTES : IP4_BYTES, more = p->ipv6 ? 8 : 0;
	u8 *frame = next_frame(), *net = put_eth(p, frame);

	memcpy(net, whole, ip);
	memcpy(net + ip + more, whole + ip + from, to - from);
	if (p->ipv6) {
		memset(net + ip, 0, 8);
		net[ip] = IPPROTO_UDP;
		put16(net + ip + 2, from | !last);
		memcpy(net + ip + 4, &id, 4);
		net[6] = IPPROTO_FRAGMENT;
		put16(net + 4, to - from + 8);
	} else {
		put16(net + 2, ip + to - from);
		put16(net + 6, from / 8 | (last ? 0 : 0x2000));
		ip4_sum(net, ip);
	}
	queue_frame(net + ip + more + (to - from) - frame);
}

static void send_pieces(const struct pkt *p)
{
	static u8 whole[FRAME_MAX];
	u32 ip = p->ipv6 ? IP6_BYTES : IP4_BYTES, len = build(p, whole) - ip, id = draw();
	u32 step = (len / p->fragments + 7) & ~7U, at;

	for (at = 0; at < len; at += step)
		send_piece(p, whole, at, at + step < len ? at + step : len, at + step >= len, id);
}

void pkt_send(const struct pkt *p)
{
	u8 *frame, *net;
	u32 len;

	if (p->fragments > 1) {
		send_pieces(p);
		return;
	}
	frame = next_frame();
	net = put_eth(p, frame);
	len = build(p, net);
	if (p->ext_net)
		len = insert_options(p, net, len);
	queue_frame(net + len - frame);
}

void pkt_send_spoilt(const struct pkt *p, unsigned int n, bool anywhere, bool fit)
{
	u32 ip = p->ipv6 ? IP6_BYTES : IP4_BYTES, len, from, room;
	u8 *frame = next_frame(), *net = put_eth(p, frame);

	len = build(p, net);
	from = anywhere ? 0 : ip + UDP_BYTES;
	room = len - VRNIC_ICRC_BYTES - from;
	/* mostly where the headers are */
	if (room > 60 && !one_in(4))
		room = 60;
	while (n--)
		net[from + below(room)] ^= 1 << below(8);
	if (anywhere && !p->ipv6)
		ip4_sum(net, IP4_BYTES);
	if (fit)
		put_icrc(net, p->ipv6, net + len - VRNIC_ICRC_BYTES);
	queue_frame(net + len - frame);
}

/*
 * The peer's stack joins equal packets into one, and the device's has to take it
 * apart. IPv6: there every part's header is known before, as its ICRC needs.
 */
void pkt_send_gso(const struct pkt *p, unsigned int n, unsigned int bad)
{
	static u8 parts[65000], part[FRAME_MAX];
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(VRNIC_ROCE_PORT) };
	struct pkt one = *p;
	u32 len = 0, i;
	int size = 0;

	wire_flush();
	memcpy(&to.sin6_addr, p->dst, 16);
	for (i = 0; i < n && (!size || len + size < sizeof(parts)); i++) {
		one.psn = vrnic_psn_add(p->psn, i);
		size = build(&one, part) - IP6_BYTES - UDP_BYTES;
		put16(part + IP6_BYTES, GSO_SPORT);
		put_icrc(part, true, part + IP6_BYTES + UDP_BYTES + size - VRNIC_ICRC_BYTES);
		part[IP6_BYTES + UDP_BYTES + size - 1] ^= i == bad;
		memcpy(parts + len, part + IP6_BYTES + UDP_BYTES, size);
		len += size;
		frames_sent++;
	}
	if (setsockopt(gso, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) ||
	    sendto(gso, parts, len, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)len)
		die("segments of %d bytes, %u in all: %s", size, len, strerror(errno));
}

void wire_flush(void)
{
	struct mmsghdr msg[BATCH] = {};
	struct iovec iov[BATCH];
	u32 i, at = 0;
	int n;

	for (i = 0; i < batched; i++) {
		iov[i] = (struct iovec){ batch[i], batch_len[i] };
		msg[i].msg_hdr.msg_iov = &iov[i];
		msg[i].msg_hdr.msg_iovlen = 1;
	}
	while (at < batched) {
		n = sendmmsg(raw, msg + at, batched - at, 0);
		if (n < 0 && errno == ENOBUFS)
			continue;
		if (n < 0)
			die("a frame of %u bytes: %s", batch_len[at], strerror(errno));
		at += n;
	}
	batched = 0;
}

static struct target *by_peer(u32 qpn)
{
	u32 i = qpn - PHANTOM;

	return i < nr_targets ? &targets[i] : NULL;
}

/* Nothing that no key opens may be in an answer. */
static void scan(const struct target *t, const u8 *data, u32 len)
{
	u64 secret = SECRET;

	if (memmem(data, len, &secret, sizeof(secret)))
		die("%s: a READ was answered with memory that nobody may read", t->name);
}

static void take_ack(struct target *t, const u8 *aeth, u32 psn)
{
	static const enum seen naks[] = {
		SEEN_NAK_PSN, SEEN_NAK_INVALID, SEEN_NAK_ACCESS, SEEN_NAK_OPERATION,
	};
	u8 syndrome = aeth[0], value = syndrome & VRNIC_AETH_VALUE;

	t->psn = psn;
	t->live = true;
	seen[SEEN_LINK_PACKETS] += t->link;
	switch (syndrome & VRNIC_AETH_KIND) {
	case VRNIC_AETH_ACK:
		seen[SEEN_ACKS]++;
		t->psn = vrnic_psn_add(psn, 1);
		break;
	case VRNIC_AETH_RNR:
		seen[SEEN_RNR_NAKS]++;
		break;
	default:
		if (t->link && value == VRNIC_NAK_FAILED) {
			native_refused(t, psn, aeth[1]);
			break;
		}
		if (value > VRNIC_NAK_OPERATION)
			die("%s: NAK of code %u", t->name, value);
		seen[naks[value]]++;
		seen[SEEN_LINK_NAKS] += t->link && value != VRNIC_NAK_PSN;
		t->dead |= value != VRNIC_NAK_PSN;
	}
}

static void take_request(struct target *t, u8 opcode, u32 psn, const u8 *ext)
{
	seen[SEEN_REQUESTS]++;
	if (t->nr_req == sizeof(t->req) / sizeof(t->req[0]))
		return;
	t->req[t->nr_req].opcode = opcode;
	t->req[t->nr_req].psn = psn;
	t->req[t->nr_req++].len = opcode == VRNIC_BTH_READ_REQUEST ? get32(ext + 12) : 0;
}

static void take(const u8 *frame, u32 len)
{
	u32 ip = frame[12] == 0x86 ? IP6_BYTES : IP4_BYTES, psn, hdrs;
	const u8 *bth = frame + ETH_HLEN + ip + UDP_BYTES, *ext = bth + sizeof(struct vrnic_bth);
	u32 info = vrnic_pkt_info(bth[0]);
	struct target *t = by_peer(get32(bth + 4) & VRNIC_BTH_QPN);
	u8 op = info & VRNIC_PKT_XRC ? bth[0] & ~VRNIC_SVC_MASK : bth[0];

	if (bth[0] == VRNIC_BTH_HELLO)
		native_take_hello(ext, len - (ext - frame) - VRNIC_ICRC_BYTES);
	if (!t)
		return;
	hdrs = ext - frame + vrnic_exts_len(info) + VRNIC_ICRC_BYTES;
	if (!info || len < hdrs)
		die("%s: sent a packet with opcode %#x and %u bytes", t->name, bth[0], len);
	psn = get32(bth + 8) & VRNIC_PSN_MASK;
	if (info & VRNIC_PKT_NATIVE) {
		native_take(t, bth[0], psn, ext, len - (ext - frame) - VRNIC_ICRC_BYTES);
	} else if (!(info & VRNIC_PKT_RESP)) {
		take_request(t, bth[0], psn, ext);
	} else if (op == VRNIC_BTH_ACK) {
		take_ack(t, ext, psn);
	} else if (op == VRNIC_BTH_ATOMIC_ACK) {
		seen[SEEN_ATOMIC_ANSWERS]++;
	} else {
		seen[SEEN_READ_ANSWERS]++;
		scan(t, ext, len - (ext - frame));
	}
}

/* Look at what came back; wait so long for it. Returns false if nothing did. */
bool wire_read(int ms)
{
	static u8 frame[FRAME_MAX * 2];
	struct pollfd pfd = { .fd = raw, .events = POLLIN };
	bool any = false;
	ssize_t n;

	if (ms && poll(&pfd, 1, ms) <= 0)
		return false;
	while ((n = recv(raw, frame, sizeof(frame), MSG_DONTWAIT)) > 0) {
		any = true;
		take(frame, n);
	}
	return any;
}

/* Of what comes in: RoCEv2 to queue pairs that begin with the byte of PHANTOM, or 0xff. */
static void set_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 0, 6),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + IP4_BYTES + 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRNIC_ROCE_PORT, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + IP4_BYTES + UDP_BYTES + 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PHANTOM >> 16, 9, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRNIC_HELLO_QPN >> 16, 8, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 0, 5),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + IP6_BYTES + 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRNIC_ROCE_PORT, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + IP6_BYTES + UDP_BYTES + 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PHANTOM >> 16, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRNIC_HELLO_QPN >> 16, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, FRAME_MAX * 2),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (setsockopt(raw, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		die("the filter of the packet socket: %s", strerror(errno));
}

static void open_raw(void)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(opt.interface),
	};
	int one = 1, much = 1 << 26;

	raw = socket(AF_PACKET, SOCK_RAW, 0);
	if (raw < 0)
		die("no packet socket: %s", strerror(errno));
	set_filter();
	if (setsockopt(raw, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof(much)) ||
	    bind(raw, (struct sockaddr *)&at, sizeof(at)))
		die("the packet socket on %s: %s", opt.interface, strerror(errno));
}

static void open_gso(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(GSO_SPORT) };

	memcpy(&at.sin6_addr, opt.peer[1], 16);
	gso = socket(AF_INET6, SOCK_DGRAM, 0);
	if (gso < 0 || bind(gso, (struct sockaddr *)&at, sizeof(at)))
		die("the UDP socket: %s", strerror(errno));
}

void wire_open(void)
{
	int home = open("/proc/self/ns/net", O_RDONLY), there = open(opt.netns, O_RDONLY);
	u32 i, byte;

	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
		die("no way into %s: %s", opt.netns, strerror(errno));
	open_raw();
	open_gso();
	if (setns(home, CLONE_NEWNET))
		die("no way back: %s", strerror(errno));
	close(home);
	close(there);
	for (i = 0; i < 6; i++) {
		if (sscanf(opt.mac + 3 * i, "%2x", &byte) != 1)
			die("%s is no hardware address", opt.mac);
		macs[i] = byte;
		macs[6 + i] = 0x02;
	}
}
