// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attacks with packets out of an ordinary socket, at queue pairs of the attacker's own.
 * Over IPv6 the header is known in advance, and with it the ICRC.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/hdr.h"
#include "lib/icrc.h"
#include "neighbour.h"

#define PAIRS	8
#define DATA	1024
#define ACROSS	32	/* packets of a burst */
#define PACKET	(sizeof(struct vrnic_bth) + DATA + VRNIC_ICRC_BYTES)
#define EXPECTED 0xfffff0	/* by side_to_rtr() */
#define AHEAD	1000	/* numbers that are early, not late */

static struct dev dev;
static struct side target[PAIRS];
static struct in6_addr here;
static u8 burst[ACROSS * PACKET];
static int sock;

static void put16(u8 *at, u16 v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static void put24(u8 *at, u32 v)
{
	at[0] = v >> 16;
	put16(at + 1, v);
}

/* The first GID that is an IPv6 address of a network. */
static void find_gid(void)
{
	union ibv_gid gid;
	int i;

	for (i = 0; !ibv_query_gid(dev.ctx, 1, i, &gid); i++)
		if (gid.raw[0] == 0xfd) {
			dev.gid = gid;
			dev.gid_index = i;
			memcpy(&here, gid.raw, sizeof(here));
			return;
		}
	die("there is no GID for IPv6");
}

static void open_socket(void)
{
	int size = PACKET;

	sock = socket(AF_INET6, SOCK_DGRAM, 0);
	if (sock < 0 || setsockopt(sock, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)))
		die("no socket that takes bursts: %d", errno);
}

static void begin(void)
{
	struct pair_opts opts = pair_defaults(NULL);
	unsigned int i;

	must(dev_open(&dev));
	find_gid();
	open_socket();
	for (i = 0; i < PAIRS; i++) {
		must(side_open(&target[i], &dev, &opts, false));
		must(side_to_init(&target[i], &opts));
		must(side_to_rtr(&target[i], &opts, target[i].qp->qp_num, &dev.gid));
	}
}

static void put_icrc(u8 *packet, u16 sport)
{
	u8 net[sizeof(struct in6_addr) * 2 + 8 + 8 + sizeof(struct vrnic_bth)] = { 0x60 };
	u8 *udp = net + 40, *end = packet + PACKET - VRNIC_ICRC_BYTES;
	__le32 icrc;
	u32 crc;

	put16(net + 4, 8 + PACKET);
	net[6] = IPPROTO_UDP;
	memcpy(net + 8, &here, sizeof(here));
	memcpy(net + 24, &here, sizeof(here));
	put16(udp, sport);
	put16(udp + 2, VRNIC_ROCE_PORT);
	put16(udp + 4, 8 + PACKET);
	memcpy(udp + 8, packet, sizeof(struct vrnic_bth));
	crc = vrnic_icrc_begin(net, true);
	crc = vrnic_icrc_more(crc, packet + sizeof(struct vrnic_bth), DATA);
	icrc = vrnic_icrc_end(crc);
	memcpy(end, &icrc, sizeof(icrc));
}

/* The middle of a SEND, of number @psn. */
static void put_packet(u8 *packet, u32 qpn, u32 psn)
{
	memset(packet, 0, PACKET);
	packet[0] = VRNIC_BTH_SEND_MIDDLE;
	packet[1] = VRNIC_BTH_MIG;
	put16(packet + 2, 0xffff);
	put24(packet + 5, qpn);
	put24(packet + 9, psn);
}

static struct sockaddr_in6 to_here(void)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(VRNIC_ROCE_PORT), .sin6_addr = here,
	};
}

static u16 bind_here(void)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = here };
	socklen_t len = sizeof(from);

	if (bind(sock, (struct sockaddr *)&from, len) ||
	    getsockname(sock, (struct sockaddr *)&from, &len))
		die("cannot bind the socket: %d", errno);
	return ntohs(from.sin6_port);
}

static void send_burst(void)
{
	struct sockaddr_in6 to = to_here();

	sendto(sock, burst, sizeof(burst), 0, (struct sockaddr *)&to, sizeof(to));
}

/* Packets without a right ICRC, as many as there is room for. */
void queued_begin(const struct victim *victim)
{
	begin();
	bind_here();
}

void queued_turn(unsigned int thread)
{
	static unsigned int n;
	unsigned int i;

	for (i = 0; i < ACROSS; i++)
		put_packet(burst + i * PACKET, target[n % PAIRS].qp->qp_num, i);
	n++;
	send_burst();
}

static u16 port;

void early_begin(const struct victim *victim)
{
	begin();
	port = bind_here();
}

/* Right ones behind a packet that never comes. */
void early_turn(unsigned int thread)
{
	static unsigned int n;
	unsigned int i, ahead;
	u8 *packet;

	for (i = 0; i < ACROSS; i++) {
		packet = burst + i * PACKET;
		ahead = 1 + (n / PAIRS * ACROSS + i) % AHEAD;
		put_packet(packet, target[n % PAIRS].qp->qp_num, EXPECTED + ahead);
		put_icrc(packet, port);
	}
	n++;
	send_burst();
}
