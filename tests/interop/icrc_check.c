// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * icrc_check FILE.pcap: compare the ICRC of every RoCEv2 packet of a capture
 * with what the module's own code makes of it, and its lengths with each
 * other. Exits with 1 if one is wrong, or if there is none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hdr.h"
#include "lib/icrc.h"

#define PCAP_MAGIC	0xa1b2c3d4	/* microseconds, this machine's byte order */
#define PCAP_MAGIC_NS	0xa1b23c4d
#define ETHERNET	1
#define ETH_IP4		0x0800
#define ETH_IP6		0x86dd
#define ETH_VLAN	0x8100
#define IP_UDP		17
#define UDP_BYTES	8
#define TOLD		10	/* bad packets that are described */

struct pcap_file {
	u32 magic;
	u16 major, minor;
	u32 zone, accuracy, snap, link;
};

struct pcap_packet {
	u32 seconds, fraction, captured, len;
};

/* struct packet - the parts of a frame; @net is NULL if it is not RoCEv2 */
struct packet {
	const u8 *net;
	const struct vrnic_bth *bth;
	size_t ip_bytes, udp_len;
	bool ipv6;
};

static u16 be16_at(const u8 *p)
{
	return p[0] << 8 | p[1];
}

/* The IP header of a frame, which has no tag, or one; NULL: another protocol. */
static const u8 *ip_header(const u8 *frame, size_t *len, u16 *type)
{
	size_t at = 14;

	if (*len < 18)
		return NULL;
	*type = be16_at(frame + 12);
	if (*type == ETH_VLAN) {
		*type = be16_at(frame + 16);
		at = 18;
	}
	*len -= at;
	return frame + at;
}

static struct packet parse(const u8 *frame, size_t len)
{
	struct packet p = { 0 };
	const u8 *ip, *udp;
	u16 type;

	ip = ip_header(frame, &len, &type);
	if (!ip || (type != ETH_IP4 && type != ETH_IP6))
		return p;
	p.ipv6 = type == ETH_IP6;
	p.ip_bytes = p.ipv6 ? 40 : 20;
	if (len < p.ip_bytes + UDP_BYTES + sizeof(*p.bth) + VRNIC_ICRC_BYTES)
		return p;
	if (ip[p.ipv6 ? 6 : 9] != IP_UDP || (!p.ipv6 && ip[0] != 0x45))
		return p;
	udp = ip + p.ip_bytes;
	if (be16_at(udp + 2) != VRNIC_ROCE_PORT)
		return p;
	p.net = ip;
	p.udp_len = be16_at(udp + 4);
	p.bth = (const void *)(udp + UDP_BYTES);
	if (p.ip_bytes + p.udp_len > len)
		p.udp_len = 0;
	return p;
}

static bool icrc_right(const struct packet *p)
{
	const u8 *after = (const u8 *)(p->bth + 1);
	size_t len = p->udp_len - UDP_BYTES - sizeof(*p->bth) - VRNIC_ICRC_BYTES;
	u32 crc = vrnic_icrc_begin(p->net, p->ipv6);
	__le32 icrc = vrnic_icrc_end(vrnic_icrc_more(crc, after, len));

	return !memcmp(after + len, &icrc, sizeof(icrc));
}

/* What is wrong with a packet; NULL: nothing. */
static const char *fault(const struct packet *p)
{
	u32 info = vrnic_pkt_info(p->bth->opcode);
	size_t rest = UDP_BYTES + sizeof(*p->bth) + VRNIC_ICRC_BYTES;

	if (p->udp_len < rest)
		return "is cut short";
	if (!info)
		return "has an unknown opcode";
	if (p->bth->flags & VRNIC_BTH_VERSION)
		return "has another version";
	if (p->udp_len < rest + vrnic_exts_len(info) + vrnic_bth_pad(p->bth))
		return "has no room for its headers";
	if ((p->udp_len - rest) % 4)
		return "is not padded to 4 bytes";
	return icrc_right(p) ? NULL : "has a wrong ICRC";
}

static unsigned long packets, bad;

static void judge(const struct packet *p, unsigned long number)
{
	const char *what = fault(p);

	packets++;
	if (!what)
		return;
	if (bad++ < TOLD)
		printf("packet %lu, opcode %#x, PSN %u: %s\n", number,
		       p->bth->opcode, vrnic_bth_psn(p->bth), what);
}

static int go_through(FILE *file)
{
	static u8 frame[1 << 18];
	struct pcap_packet head;
	unsigned long number = 0;
	struct packet p;

	while (fread(&head, sizeof(head), 1, file) == 1) {
		number++;
		if (head.captured > sizeof(frame) ||
		    fread(frame, 1, head.captured, file) != head.captured) {
			printf("packet %lu is not whole in the file\n", number);
			return 1;
		}
		p = parse(frame, head.captured);
		if (p.net)
			judge(&p, number);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pcap_file head;
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	int err;

	if (!file || fread(&head, sizeof(head), 1, file) != 1 ||
	    (head.magic != PCAP_MAGIC && head.magic != PCAP_MAGIC_NS) ||
	    head.link != ETHERNET) {
		fputs("usage: icrc_check FILE.pcap, of an Ethernet interface\n", stderr);
		return 2;
	}
	err = go_through(file);
	fclose(file);
	printf("%lu RoCEv2 packets, %lu of them bad\n", packets, bad);
	return err || bad || !packets;
}
