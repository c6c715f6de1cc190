/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the packet fuzzer share: packets.c draws, wire.c
 * makes frames and reads the answers, verbs.c has the queue pairs that
 * are shot at and the memory that must stay what it is, native.c the native links.
 */
#ifndef PACKETS_H
#define PACKETS_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/hdr.h"
#include "lib/psn.h"

#define SECRET		0x5ec2e7a15ec2e70dULL	/* what memory has that nobody may read */
#define GROUP4		"\xef\x01\x02\x4d"	/* 239.1.2.77 */
#define GROUP6		"\xff\x0e\0\0\0\0\0\0\0\0\0\0\0\0\x77\x4d"
#define QKEY		0x02001001U	/* wrong_group() has the reason */
#define GSI_QKEY	0x80010000U
#define PHANTOM		0xf00000U	/* queue pairs of the peer: nobody has them */
#define MAX_DATA	8800
#define PSNS_KEPT	1024
#define FRAME_MAX	9100

#define die(...)							\
	do {								\
		fflush(stdout);						\
		fprintf(stderr, "packets: " __VA_ARGS__);		\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

struct options {
	const char *device, *netns, *interface, *mac;
	int gid[2];		/* of IPv4, of IPv6 */
	u8 peer[2][16];		/* the peer's addresses, as GIDs */
	u8 mine[2][16];		/* the device's */
	u64 packets, seed, first;
};

extern struct options opt;

/* The number of a session and the seed determine all of its random values. */
u64 draw(void);
static inline u32 below(u32 n) { return draw() % n; }
static inline bool one_in(u32 n) { return !below(n); }

enum area_kind { OPEN, READ_ONLY, WRITE_ONLY, LOCAL, OTHER_PD, STALE, WINDOW, RECV, RESULT, AREAS };

/**
 * struct area - memory, and the key that opens it, if one does
 * @va: first byte of the region or window
 * @len: bytes of it
 * @rkey: key that packets may name
 * @lkey: key that they must not
 * @rights: IBV_ACCESS_REMOTE_* that the key gives within its domain
 */
struct area {
	u64 va;
	u32 len;
	u32 rkey;
	u32 lkey;
	int rights;
};

extern struct area areas[AREAS];

/**
 * struct target - a queue pair that is shot at
 * @rest: the state that it is kept in
 * @access: qp_access_flags
 * @xrc: it is an XRC target, which is used like one of RC
 * @requests: it posts requests, for answers to be shot at it
 * @psn: what its responder expects, as far as is known
 * @live: a probe was answered since its last packet
 * @dead: it has to be connected anew
 * @req: requests of its own that the peer has seen: opcode, PSN, length
 * @link: it is one of the device's own, for native messages; @qp is NULL
 * @nonce: of the link
 * @heard: PSN of the next message's packet that the link sends
 * @ask: number of the request that is coming in
 * @asks: there is one, and it wants an answer
 * @quiet: there is a put, which has none
 * @awaits_put: until the device has put something, or skipped it
 */
struct target {
	const char *name;
	enum ibv_qp_type type;
	bool ipv6, srq, xrc, other_pd, requests, link;
	unsigned int mtu;
	enum ibv_qp_state rest;
	int access;
	struct ibv_qp *qp;
	u32 qpn, peer, psn;
	bool live, dead;
	struct { u8 opcode; u32 psn, len; } req[64];
	u32 nr_req;
	u64 nonce;
	u32 heard, ask;
	bool asks, quiet, awaits_put;
	bool only[PSNS_KEPT];	/* by PSN: the message has one packet */
};

extern struct target targets[];
extern const unsigned int nr_targets;

/* Effects of packets; a long run has to see all of them. */
#define SEEN(X)									\
	X(ACKS, "acknowledgments")						\
	X(RNR_NAKS, "RNR NAKs")							\
	X(NAK_PSN, "NAKs: sequence")						\
	X(NAK_INVALID, "NAKs: invalid request")					\
	X(NAK_ACCESS, "NAKs: access")						\
	X(NAK_OPERATION, "NAKs: operation")					\
	X(NAK_FAILED, "NAKs: native put failed")				\
	X(READ_ANSWERS, "packets of READ answers")				\
	X(ATOMIC_ANSWERS, "atomics answered")					\
	X(REQUESTS, "requests of the device's own")				\
	X(RC_RECEIVED, "messages received by RC")				\
	X(UC_RECEIVED, "messages received by UC")				\
	X(UD_RECEIVED, "datagrams received")					\
	X(RECV_ERRORS, "receives that failed")					\
	X(SENDS_DONE, "own requests that succeeded")				\
	X(SENDS_FAILED, "own requests that failed")				\
	X(EVENTS, "events")							\
	X(CONNECTED, "queue pairs connected anew")				\
	X(LINKS, "native links made")						\
	X(LINK_PACKETS, "packets that a link's queue pair acknowledged")	\
	X(LINK_ANSWERS, "native messages executed")				\
	X(LINK_REFUSALS, "native messages refused")				\
	X(LINK_AGAIN, "native messages to be sent again")			\
	X(LINK_SKIPS, "puts that the device skipped")				\
	X(LINK_RESTS, "small puts sent from behind one that failed")		\
	X(LINK_NAKS, "native links ended by a NAK")				\
	X(LINK_BYES, "goodbyes of native links")				\
	X(LINK_RECORDS, "records of native messages")

#define X(sym, name) SEEN_##sym,
enum seen { SEEN(X) SEEN_NR };
#undef X
extern u64 seen[SEEN_NR];
extern u64 goodbyes_lost;	/* of links that ended, by a host that is short of time */

/**
 * struct pkt - a packet to be made; pkt_init() makes it a right one
 * @vlan: tag; -1: none
 * @ext_net: IP options or an extension header
 * @fragments: send it in so many
 * @udp_len: added to the length that the UDP header claims
 * @bad_sum: a UDP checksum that is wrong
 * @bad_icrc: an ICRC that is wrong
 * @cut: bytes that are missing at the end, ICRC made anew
 */
struct pkt {
	bool ipv6, ext_net, bad_sum, bad_icrc;
	int vlan, fragments, udp_len;
	u8 src[16], dst[16];
	u8 opcode, flags, pad;
	u16 pkey;
	u32 qpn, psn;
	u8 ext[64];
	u32 ext_len, len, cut;
	u8 data[MAX_DATA];
};

/* wire.c */
void wire_open(void);
void pkt_init(struct pkt *p, const struct target *t, u8 opcode, u32 psn);
void pkt_send(const struct pkt *p);
/* Flip @n bits behind the IP header, or anywhere in the frame; the ICRC is made to fit, or not. */
void pkt_send_spoilt(const struct pkt *p, unsigned int n, bool anywhere, bool fit);
/* @n packets, of which @bad, if there is one, has a wrong ICRC. */
void pkt_send_gso(const struct pkt *p, unsigned int n, unsigned int bad);
void wire_flush(void);
bool wire_read(int ms);
extern u64 frames_sent;

/* verbs.c */
void verbs_open(void);
void target_connect(struct target *t);
enum ibv_qp_state target_state(struct target *t);
void target_receives(struct target *t);
/* The XRC SRQ that @t's requests are to name, or now and then another number. */
u32 target_srqn(void);
void target_request(struct target *t, enum ibv_wr_opcode opcode, u32 len);
void verbs_poll(void);
void memory_check(void);
void verbs_close(void);

/* native.c */
void native_open(struct ibv_context *ctx, struct ibv_pd *pd);
void native_close(void);
void native_connect(struct target *t);
bool native_is_another(struct target *t);
/* A packet of the other end; the hello datagrams are of any link. */
void native_take(struct target *t, u8 opcode, u32 psn, const u8 *data, u32 len);
void native_refused(struct target *t, u32 psn, u8 part);
void native_take_hello(const u8 *data, u32 len);
/* What one session does to a link; what it has to say goes into @pkt. */
void native_shoot(struct target *t, struct pkt *pkt, void (*shoot)(bool right));
void native_poll(void);

#endif /* PACKETS_H */
