// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "native_foe.h"

#define PORT		4791
#define IP_BYTES	20
#define UDP_BYTES	8
#define BTH_BYTES	12
#define ICRC_BYTES	4
#define HEADS		(IP_BYTES + UDP_BYTES + BTH_BYTES)
#define OP_HELLO	0xe0
#define OP_FIRST	0xc0
#define OP_ONLY		0xc4
#define OP_ACK		0x11
#define HELLO_QPN	0xfffffe
#define MAGIC		0x76724e4c
#define PSN_MASK	0xffffff
#define DEVICE		INADDR_LOOPBACK

static_assert(sizeof(struct foe_header) == 72, "as wire.rst has it");
static_assert(sizeof(struct foe_hello) == 56, "as wire.rst has it");

static uint32_t crc(uint32_t crc, const uint8_t *data, size_t len)
{
	int bit;

	while (len--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* What routers may change counts as ones: annex A17. */
static uint32_t icrc(const uint8_t *ip, size_t len)
{
	uint8_t heads[8 + HEADS];

	memset(heads, 0xff, 8);
	memcpy(heads + 8, ip, HEADS);
	heads[8 + 1] = 0xff;			/* TOS */
	heads[8 + 8] = 0xff;			/* TTL */
	memset(heads + 8 + 10, 0xff, 2);	/* sum */
	memset(heads + 8 + IP_BYTES + 6, 0xff, 2);
	heads[8 + IP_BYTES + UDP_BYTES + 4] = 0xff;
	return ~crc(crc(~0U, heads, sizeof(heads)), ip + HEADS, len - HEADS);
}

static void put16(uint8_t *at, uint16_t v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* The headers; @len: of what follows, ICRC included. */
static void put_heads(const struct foe *foe, uint8_t *ip, size_t len)
{
	memset(ip, 0, HEADS);
	ip[0] = 0x45;
	put16(ip + 2, HEADS + len);
	put16(ip + 4, 1);	/* 0 would be filled in */
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	put32(ip + 12, foe->address);
	put32(ip + 16, DEVICE);
	put16(ip + IP_BYTES, 0xc000 | (foe->qpn & 0x3fff));
	put16(ip + IP_BYTES + 2, PORT);
	put16(ip + IP_BYTES + 4, UDP_BYTES + BTH_BYTES + len);
}

static int transmit(const struct foe *foe, uint8_t opcode, uint32_t qpn, uint32_t psn,
		    const struct iovec *part, int parts)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(DEVICE) };
	uint8_t packet[HEADS + FOE_MTU + 64], *bth = packet + IP_BYTES + UDP_BYTES;
	size_t len = HEADS;
	uint32_t sum;
	int i;

	for (i = 0; i < parts; i++) {
		memcpy(packet + len, part[i].iov_base, part[i].iov_len);
		len += part[i].iov_len;
	}
	while (len % 4)
		packet[len++] = 0;
	put_heads(foe, packet, len - HEADS + ICRC_BYTES);
	bth[0] = opcode;
	bth[1] = 0x40;
	put16(bth + 2, 0xffff);
	put32(bth + 4, qpn);
	put32(bth + 8, psn);
	sum = icrc(packet, len);
	/* least significant byte first */
	sum = htole32(sum);
	memcpy(packet + len, &sum, ICRC_BYTES);
	len += ICRC_BYTES;
	return sendto(foe->out, packet, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ?
	       -errno : 0;
}

static int send_hello(const struct foe *foe, struct foe_hello *h)
{
	struct iovec part = { h, sizeof(*h) };

	h->magic = htonl(MAGIC);
	h->version = 3;
	h->order = __BYTE_ORDER == __BIG_ENDIAN;
	h->qpn = htonl(foe->qpn);
	h->psn = htonl(foe->psn);
	h->mtu = htonl(FOE_MTU);
	return transmit(foe, OP_HELLO, HELLO_QPN, 0, &part, 1);
}

int foe_open(struct foe *foe, uint32_t address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	int much = 1 << 24;

	memset(foe, 0, sizeof(*foe));
	foe->address = address;
	foe->out = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	foe->in = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	if (foe->out < 0 || foe->in < 0 || bind(foe->in, (struct sockaddr *)&at, sizeof(at)) ||
	    setsockopt(foe->in, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof(much)))
		return -errno;
	return 0;
}

/* A test that misses a packet has to know whether it was sent. */
static void tell_of_losses(const struct foe *foe)
{
	uint32_t info[SK_MEMINFO_VARS] = {};
	socklen_t len = sizeof(info);

	if (!getsockopt(foe->in, SOL_SOCKET, SO_MEMINFO, info, &len) && info[SK_MEMINFO_DROPS])
		printf("# the other host's socket was full, and lost %u packets\n",
		       info[SK_MEMINFO_DROPS]);
}

void foe_close(struct foe *foe)
{
	tell_of_losses(foe);
	close(foe->out);
	close(foe->in);
}

/* Numbers of its own: far above those that the module begins with. */
static void new_end(struct foe *foe)
{
	static uint32_t ends;

	foe->qpn = 0xf00000 + ++ends;
	foe->psn = random() & PSN_MASK;
	foe->nonce = (uint64_t)random() << 32 | ends;
}

int foe_begin(struct foe *foe, const struct vrnic_address *to, uint32_t from_fifo)
{
	struct foe_hello h = { .kind = FOE_ASK };

	new_end(foe);
	h.secret = htobe64(to->secret);
	h.nonce = htobe64(foe->nonce);
	h.fifo = htonl(to->fifo);
	h.from_fifo = htonl(from_fifo);
	return send_hello(foe, &h);
}

int foe_ask(struct foe *foe, const struct vrnic_address *to, uint32_t from_fifo)
{
	int ret = foe_begin(foe, to, from_fifo);
	struct foe_packet packet;

	while (!ret) {
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
		if (ret || packet.opcode != OP_HELLO ||
		    packet.hello.nonce != htobe64(foe->nonce))
			continue;
		if (packet.hello.kind == FOE_NO)
			return packet.hello.why;
		if (packet.hello.kind == FOE_YES)
			break;
	}
	if (!ret) {
		foe->peer_qpn = ntohl(packet.hello.qpn);
		foe->heard = ntohl(packet.hello.psn);
	}
	return ret;
}

int foe_say_yes(struct foe *foe)
{
	struct foe_hello h = {
		.kind = FOE_YES, .nonce = foe->asked.nonce, .to_qpn = foe->asked.qpn,
	};

	new_end(foe);
	foe->peer_qpn = ntohl(foe->asked.qpn);
	foe->heard = ntohl(foe->asked.psn);
	return send_hello(foe, &h);
}

int foe_say_bye(struct foe *foe)
{
	struct foe_hello h = {
		.kind = FOE_BYE, .nonce = foe->asked.nonce, .to_qpn = foe->asked.qpn,
	};

	return send_hello(foe, &h);
}

int foe_send(struct foe *foe, const struct foe_header *header, const void *data, size_t len)
{
	foe->psn = (foe->psn + 1) & PSN_MASK;
	return foe_send_again(foe, header, data, len);
}

/* Of the packet that was sent last; with a request for an acknowledgment. */
static uint32_t last_psn(const struct foe *foe)
{
	return ((foe->psn - 1) & PSN_MASK) | 1U << 31;
}

static int send_part(struct foe *foe, uint8_t opcode, const struct foe_header *header,
		     const void *data, size_t len)
{
	struct foe_header h = *header;
	struct iovec part[] = { { &h, sizeof(h) }, { (void *)data, len } };

	h.version = 3;
	return transmit(foe, opcode, foe->peer_qpn, last_psn(foe), part, len ? 2 : 1);
}

int foe_send_again(struct foe *foe, const struct foe_header *header, const void *data,
		   size_t len)
{
	return send_part(foe, OP_ONLY, header, data, len);
}

int foe_send_first(struct foe *foe, const struct foe_header *header, const void *data,
		   size_t len)
{
	foe->psn = (foe->psn + 1) & PSN_MASK;
	return send_part(foe, OP_FIRST, header, data, len);
}

int foe_send_last(struct foe *foe, const void *data, size_t len)
{
	struct iovec part = { (void *)data, len };

	foe->psn = (foe->psn + 1) & PSN_MASK;
	return transmit(foe, FOE_LAST, foe->peer_qpn, last_psn(foe), &part, 1);
}

int foe_skip(struct foe *foe)
{
	return transmit(foe, FOE_SKIP, foe->peer_qpn, last_psn(foe), NULL, 0);
}

int foe_acknowledge(struct foe *foe, uint32_t psn, uint8_t syndrome)
{
	uint8_t aeth[4] = { syndrome };
	struct iovec part = { aeth, sizeof(aeth) };

	return transmit(foe, OP_ACK, foe->peer_qpn, psn & PSN_MASK, &part, 1);
}

int foe_refuse_part(struct foe *foe, uint32_t psn, uint8_t status, uint8_t vendor_err,
		    uint8_t part)
{
	uint8_t aeth[4] = { FOE_FAILED, part, vendor_err, status };
	struct iovec iov = { aeth, sizeof(aeth) };

	return transmit(foe, OP_ACK, foe->peer_qpn, psn & PSN_MASK, &iov, 1);
}

int foe_refuse(struct foe *foe, uint32_t psn, uint8_t status, uint8_t vendor_err)
{
	return foe_refuse_part(foe, psn, status, vendor_err, 0);
}

int foe_wait_ack(struct foe *foe, struct foe_packet *packet)
{
	int ret;

	do
		ret = foe_hear(foe, packet, FOE_PATIENCE_MS);
	while (!ret && packet->opcode != OP_ACK);
	return ret ? ret : packet->syndrome;
}

/* Return: it is for this link, or a datagram about links. */
static bool take(const struct foe *foe, const uint8_t *ip, size_t len,
		 struct foe_packet *packet)
{
	const uint8_t *bth = ip + IP_BYTES + UDP_BYTES, *rest = ip + HEADS;
	size_t n = len - HEADS, most;

	if (len < HEADS + ICRC_BYTES || bth - ip + 2 > (ssize_t)len ||
	    (ip[IP_BYTES + 2] << 8 | ip[IP_BYTES + 3]) != PORT)
		return false;
	memset(packet, 0, sizeof(*packet));
	packet->opcode = bth[0];
	packet->psn = get32(bth + 8) & PSN_MASK;
	packet->ackreq = bth[8] >> 7;
	most = packet->opcode == OP_HELLO ? sizeof(packet->hello) : sizeof(packet->header);
	memcpy(&packet->header, rest, n < most ? n : most);
	if (packet->opcode != OP_HELLO && n > most)
		memcpy(packet->data, rest + most,
		       n - most < FOE_MTU ? n - most : FOE_MTU);
	packet->syndrome = rest[0];
	packet->part = rest[1];
	packet->vendor_err = rest[2];
	packet->status = rest[3];
	return packet->opcode == OP_HELLO || (get32(bth + 4) & PSN_MASK) == foe->qpn;
}

/* Bytes of the first packet of those that came together, from its BTH. Only the last has less. */
static size_t train_packet(const struct foe *foe)
{
	const uint8_t *bth = foe->train + IP_BYTES + UDP_BYTES;
	size_t len = FOE_MTU;
	struct foe_header h;

	if (bth[0] == OP_ONLY) {
		memcpy(&h, bth + BTH_BYTES, sizeof(h));
		len = (sizeof(h) + ntohl(h.data) + 3) & ~3;
	}
	return BTH_BYTES + len + ICRC_BYTES;
}

/*
 * Take the first packet off those that came together: packets of one size that are sent together
 * are cut only by a network card, which lo has not. Return: is there another one?
 */
static bool next_of_train(struct foe *foe)
{
	const size_t heads = IP_BYTES + UDP_BYTES;
	size_t packet;

	if (foe->held < HEADS + sizeof(struct foe_header)) {
		foe->held = 0;
		return false;
	}
	packet = train_packet(foe);
	if (foe->held <= heads + packet) {
		foe->held = 0;
		return false;
	}
	foe->held -= packet;
	memmove(foe->train + heads, foe->train + heads + packet, foe->held - heads);
	return true;
}

/* Return: is there a packet? */
static bool next_packet(struct foe *foe)
{
	ssize_t n;

	if (next_of_train(foe))
		return true;
	n = recv(foe->in, foe->train, sizeof(foe->train), MSG_DONTWAIT);
	foe->held = n < 0 ? 0 : n;
	return n >= 0;
}

int foe_hear(struct foe *foe, struct foe_packet *packet, int ms)
{
	struct pollfd pfd = { .fd = foe->in, .events = POLLIN };

	do {
		while (!next_packet(foe)) {
			if (errno != EAGAIN)
				return -errno;
			if (poll(&pfd, 1, ms) <= 0)
				return -ETIMEDOUT;
		}
	} while (!take(foe, foe->train, foe->held, packet));
	if (packet->opcode == OP_HELLO && packet->hello.kind == FOE_ASK)
		foe->asked = packet->hello;
	return 0;
}

/* Begin of a message that it has not had yet. */
static bool is_new(struct foe *foe, const struct foe_packet *packet)
{
	if (packet->opcode >> 5 != 6 || packet->psn != foe->heard)
		return false;
	foe->heard = (foe->heard + 1) & PSN_MASK;
	return packet->opcode == 0xc0 || packet->opcode == OP_ONLY;
}

int foe_take(struct foe *foe, struct foe_packet *packet)
{
	int ret;

	do
		ret = foe_hear(foe, packet, FOE_PATIENCE_MS);
	while (!ret && !is_new(foe, packet));
	return ret;
}

int foe_wait(struct foe *foe, enum foe_op op, struct foe_header *header)
{
	struct foe_packet packet;
	int ret;

	for (;;) {
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
		if (ret)
			return ret;
		if (packet.opcode >> 5 != 6)
			continue;
		if (is_new(foe, &packet) && packet.header.op == op)
			break;
		foe_acknowledge(foe, foe->heard - 1, FOE_ACK);
	}
	*header = packet.header;
	return foe_acknowledge(foe, foe->heard - 1, FOE_ACK);
}

int foe_wait_hello(struct foe *foe, int kind, struct foe_hello *hello)
{
	struct foe_packet packet;
	int ret;

	do
		ret = foe_hear(foe, &packet, FOE_PATIENCE_MS);
	while (!ret && (packet.opcode != OP_HELLO || packet.hello.kind != kind));
	*hello = packet.hello;
	return ret;
}
