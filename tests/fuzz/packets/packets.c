// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * packets -d DEVICE -4 GID-INDEX -6 GID-INDEX -n NAMESPACE -i INTERFACE -m MAC
 *	   -a ADDRESS -A ADDRESS6 [-p PACKETS] [-S SEED] [-f FIRST-SESSION]
 *
 * Shoots random and mutated RoCEv2 packets at queue pairs of DEVICE, in every
 * state, out of INTERFACE in the network namespace of its peer, with the peer's
 * addresses. Most packets have a right ICRC and the sequence number that is expected next,
 * so that the device executes them: the fuzzer reads the answers and keeps up with the
 * responders. It dies if memory changes that no key opens, if an answer contains
 * memory that no key opens, or if a queue pair that is well does not
 * answer. It also fails if one of the effects in the list below never happened.
 *
 * The number of a session, the seed and the answers determine the session: -f starts with
 * another session than the first.
 */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "packets.h"

#define PROBE_BACK	5000	/* a PSN that is a duplicate wherever the responder is */
#define PROBE_TIMES	2000	/* looks of some ms for the answer to it */
#define CHECK_EVERY	512	/* sessions */

struct options opt = { .gid = { -1, -1 }, .packets = 50000, .seed = 1 };

static u64 state;

u64 draw(void)
{
	u64 x = state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* What is sent. "sure" ones reach the device's socket; it has to count them all. */
#define CLASSES(X)							\
	X(SEND, "SENDs in order", true)					\
	X(WRITE, "WRITEs in order", true)				\
	X(READ, "READs in order", true)					\
	X(ATOMIC, "atomics in order", true)				\
	X(OTHER, "FLUSH and ATOMIC WRITE", true)			\
	X(DATAGRAM, "datagrams", true)					\
	X(MAD, "MADs to QP 1", true)					\
	X(NATIVE, "native messages in order", true)			\
	X(NATIVE_ODD, "native messages that are cut or mixed up", true)	\
	X(GROUP, "datagrams to a group", false)				\
	X(WRONG_GROUP, "to a group, but no datagrams", false)		\
	X(ANSWER, "answers to the device's requests", true)		\
	X(ANSWER_TRAIN, "middles of such answers, joined", true)	\
	X(PROBE, "probes", true)					\
	X(NO_RIGHT, "keys that do not open it", true)			\
	X(BOUNDS, "addresses out of bounds", true)			\
	X(LENGTH, "lengths that do not fit", true)			\
	X(ORDER, "first, middle and last mixed up", true)		\
	X(FORM, "atomics, FLUSH, invalidation that make no sense", true) \
	X(TOO_LONG, "messages too long for their receive", true)	\
	X(PSN, "PSNs old and far ahead", true)				\
	X(QPN, "wrong queue pairs", true)				\
	X(SERVICE, "another transport's opcodes", true)			\
	X(OPCODE, "unknown and manufacturers' opcodes", true)		\
	X(CNP, "congestion notifications", true)			\
	X(BTH, "version, P_Key, reserved bits", true)			\
	X(PAD, "pads and odd lengths", true)				\
	X(CUT, "truncated", true)					\
	X(ICRC, "wrong ICRCs", true)					\
	X(UNASKED, "answers nobody asked for", true)			\
	X(FOREIGN, "other sources", false)				\
	X(VLAN, "VLAN tags", false)					\
	X(NETWORK, "IP options, UDP lengths and sums", false)		\
	X(FRAGMENT, "fragments", false)					\
	X(SEGMENT, "joined by the peer's stack", true)			\
	X(TRAIN, "middles of messages, joined", true)			\
	X(BAD_TRAIN, "such, and one of them is wrong", true)		\
	X(FLIPPED, "flipped bits of the transport", true)		\
	X(FLIPPED_IP, "flipped bits anywhere", false)

#define X(sym, name, sure) CLASS_##sym,
enum class { CLASSES(X) CLASS_NR };
#undef X

static const struct {
	const char *name;
	bool sure;
} classes[] = {
#define X(sym, name, sure) { name, sure },
	CLASSES(X)
#undef X
};

static u64 sent[CLASS_NR];

static void shoot(enum class k, const struct pkt *p)
{
	sent[k]++;
	pkt_send(p);
}

static struct pkt pkt;	/* the one that is being made */

static void put32(u32 v)
{
	v = htonl(v);
	memcpy(pkt.ext + pkt.ext_len, &v, 4);
	pkt.ext_len += 4;
}

static void put64(u64 v)
{
	put32(v >> 32);
	put32(v);
}

static void put_reth(u64 va, u32 rkey, u32 len)
{
	put64(va);
	put32(rkey);
	put32(len);
}

/* Payload of @len bytes, with the pad that it needs. */
static void put_data(u32 len)
{
	u64 word = draw();
	u32 at;

	for (at = 0; at < len; at += 8, word += 0x0101010101010101ULL)
		memcpy(pkt.data + at, &word, len - at < 8 ? len - at : 8);
	pkt.len = len;
	pkt.pad = -len & 3;
}

static u8 service(const struct target *t)
{
	if (t->link)
		return VRNIC_SVC_NATIVE;
	switch (t->type) {
	case IBV_QPT_RC:
		return t->xrc ? VRNIC_SVC_XRC : VRNIC_SVC_RC;
	case IBV_QPT_UC:
		return VRNIC_SVC_UC;
	default:
		return VRNIC_SVC_UD;
	}
}

/* begin: a packet that comes next at @t. */
static void begin(const struct target *t, u8 op)
{
	pkt_init(&pkt, t, op | service(t), t->psn);
	if (one_in(3))
		pkt.psn |= VRNIC_BTH_ACKREQ;
	if (one_in(4))
		pkt.flags |= VRNIC_BTH_SE;
	if (vrnic_pkt_info(pkt.opcode) & VRNIC_PKT_XRCETH)
		put32(target_srqn());
}

static void next(struct target *t, u32 psns)
{
	t->psn = vrnic_psn_add(t->psn, psns);
}

/* Sizes around powers of two are as frequent as all others. */
static u32 draw_len(u32 max)
{
	u32 len = one_in(2) ? below(max + 1) : (1U << below(14)) + below(5) - 2;

	return len > max ? below(max + 1) : len;
}

/* One of the areas that give @right. */
static const struct area *open_area(int right)
{
	const struct area *a;

	do {
		a = &areas[below(AREAS)];
	} while (!(a->rights & right));
	return a;
}

/* place: @len bytes somewhere in @a. */
static u64 place(const struct area *a, u32 len)
{
	return a->va + below(a->len - len + 1);
}

static void imm_or_key(u8 op)
{
	if (vrnic_bth_info(op) & (VRNIC_PKT_IMM | VRNIC_PKT_IETH))
		put32(draw());
}

static u8 send_op(bool first, bool last)
{
	if (!last)
		return first ? VRNIC_BTH_SEND_FIRST : VRNIC_BTH_SEND_MIDDLE;
	return (first ? VRNIC_BTH_SEND_ONLY : VRNIC_BTH_SEND_LAST) + one_in(3);
}

static u8 write_op(bool first, bool last)
{
	if (!last)
		return first ? VRNIC_BTH_WRITE_FIRST : VRNIC_BTH_WRITE_MIDDLE;
	return (first ? VRNIC_BTH_WRITE_ONLY : VRNIC_BTH_WRITE_LAST) + one_in(4);
}

/* A message in its packets, whole and right. @a: NULL for a SEND. */
static void message(struct target *t, enum class k, const struct area *a, u64 va, u32 total)
{
	u32 off = 0, n;
	u8 op;

	do {
		n = total - off < t->mtu ? total - off : t->mtu;
		op = a ? write_op(!off, off + n == total) : send_op(!off, off + n == total);
		begin(t, op);
		if (vrnic_bth_info(op) & VRNIC_PKT_RETH)
			put_reth(va, a->rkey, total);
		imm_or_key(op);
		put_data(n);
		shoot(k, &pkt);
		next(t, 1);
		off += n;
	} while (off < total);
}

static void right_send(struct target *t)
{
	message(t, CLASS_SEND, NULL, 0, draw_len(one_in(3) ? 60 : 1100));
}

static void right_write(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);
	u32 len = draw_len(one_in(8) ? 16000 : 3 * t->mtu);

	message(t, CLASS_WRITE, a, place(a, len), len);
}

static void right_read(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_READ);
	u32 len = draw_len(one_in(8) ? 16000 : 2 * t->mtu);

	begin(t, VRNIC_BTH_READ_REQUEST);
	put_reth(place(a, len), a->rkey, len);
	shoot(CLASS_READ, &pkt);
	next(t, vrnic_psn_count(len, t->mtu));
}

static void right_atomic(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_ATOMIC);

	begin(t, one_in(2) ? VRNIC_BTH_CMP_SWAP : VRNIC_BTH_FETCH_ADD);
	put64((place(a, 16) + 7) & ~7ULL);
	put32(a->rkey);
	put64(draw());
	put64(draw());
	shoot(CLASS_ATOMIC, &pkt);
	next(t, 1);
}

static void right_other(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);

	begin(t, VRNIC_BTH_ATOMIC_WRITE);
	put_reth((place(a, 16) + 7) & ~7ULL, a->rkey, 8);
	put_data(8);
	shoot(CLASS_OTHER, &pkt);
	next(t, 1);
}

static void right(struct target *t)
{
	switch (below(8)) {
	case 0 ... 2:
		right_send(t);
		break;
	case 3 ... 4:
		if (t->access & IBV_ACCESS_REMOTE_WRITE)
			right_write(t);
		break;
	case 5:
		if (t->access & IBV_ACCESS_REMOTE_READ)
			right_read(t);
		break;
	case 6:
		if (t->access & IBV_ACCESS_REMOTE_ATOMIC)
			right_atomic(t);
		break;
	default:
		if (t->type == IBV_QPT_RC && t->access & IBV_ACCESS_REMOTE_WRITE && one_in(2))
			right_other(t);
	}
}

/* A key that does not give the right, of all kinds that there are. */
static u32 wrong_key(const struct area **a, int right)
{
	do {
		*a = &areas[below(AREAS)];
	} while ((*a)->rights & right);
	switch (below(8)) {
	case 0:
		return draw();
	case 1:
		return (*a)->rkey ^ 1 << below(32);
	case 2:
		return (*a)->lkey;
	case 3:
		return areas[OPEN].lkey;
	default:
		return (*a)->rkey;
	}
}

static u64 wrong_place(const struct area *a, u32 len)
{
	switch (below(8)) {
	case 0:
		return a->va - 1;
	case 1:
		return a->va + a->len - len + 1;
	case 2:
		return a->va + a->len;
	case 3:
		return 0ULL - len;
	case 4:
		return 1ULL << 63;
	case 5:
		return a->va + (1ULL << 32);
	case 6:
		return a->va ^ 1ULL << 63;
	default:
		return draw();
	}
}

/* One packet that asks for @len bytes at @va: a WRITE, READ or atomic. */
static void ask(struct target *t, enum class k, int right, u64 va, u32 rkey, u32 len)
{
	switch (right) {
	case IBV_ACCESS_REMOTE_WRITE:
		begin(t, len <= t->mtu ? write_op(true, true) :
					 VRNIC_BTH_WRITE_FIRST);
		put_reth(va, rkey, len);
		imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
		put_data(len < t->mtu ? len : t->mtu);
		break;
	case IBV_ACCESS_REMOTE_READ:
		begin(t, VRNIC_BTH_READ_REQUEST);
		put_reth(va, rkey, len);
		break;
	default:
		begin(t, one_in(2) ? VRNIC_BTH_CMP_SWAP : VRNIC_BTH_FETCH_ADD);
		put64(va);
		put32(rkey);
		put64(draw());
		put64(draw());
	}
	shoot(k, &pkt);
}

static int draw_right(void)
{
	static const int rights[] = {
		IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC,
	};

	return rights[below(3)];
}

static void no_right(struct target *t)
{
	int right = draw_right();
	const struct area *a;
	u32 rkey = wrong_key(&a, right), len = 8 << below(8);

	ask(t, CLASS_NO_RIGHT, right, place(a, len) & ~7ULL, rkey, len);
}

static void out_of_bounds(struct target *t)
{
	int right = draw_right();
	const struct area *a = open_area(right);
	u32 len = 1 + below(3000);

	ask(t, CLASS_BOUNDS, right, wrong_place(a, len), a->rkey, len);
}

static void wrong_length(struct target *t)
{
	static const u32 odd[] = { 0x80000001, 0xffffffff, 0x80000000, 0x7fffffff, 0x1000000, 0 };
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);
	u32 len = 1 + below(t->mtu);

	switch (below(4)) {
	case 0:	/* what the RETH says is not what comes */
		begin(t, write_op(true, true));
		put_reth(place(a, len), a->rkey, one_in(2) ? len + 1 : len - 1);
		imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
		put_data(len);
		break;
	case 1:	/* a length that no message has */
		begin(t, one_in(2) ? VRNIC_BTH_READ_REQUEST : VRNIC_BTH_WRITE_FIRST);
		put_reth(place(a, len), a->rkey, odd[below(6)]);
		if (pkt.opcode != VRNIC_BTH_READ_REQUEST)
			put_data(t->mtu);
		break;
	case 2:	/* a first packet that is not full */
		begin(t, VRNIC_BTH_SEND_FIRST);
		put_data(t->mtu - 1 - below(t->mtu - 1));
		break;
	default: /* more than the path's MTU */
		begin(t, VRNIC_BTH_SEND_ONLY);
		put_data(t->mtu + 1 + below(4000));
	}
	shoot(CLASS_LENGTH, &pkt);
}

static void out_of_order(struct target *t)
{
	static const u8 ops[] = {
		VRNIC_BTH_SEND_FIRST, VRNIC_BTH_SEND_MIDDLE, VRNIC_BTH_SEND_LAST,
		VRNIC_BTH_SEND_LAST_IMM, VRNIC_BTH_SEND_LAST_INV, VRNIC_BTH_WRITE_MIDDLE,
		VRNIC_BTH_WRITE_LAST, VRNIC_BTH_WRITE_LAST_IMM, VRNIC_BTH_WRITE_FIRST,
		VRNIC_BTH_READ_REQUEST, VRNIC_BTH_FETCH_ADD,
	};
	const struct area *a = open_area(IBV_ACCESS_REMOTE_ATOMIC);
	u32 i, n = 2 + below(3), info;

	for (i = 0; i < n; i++) {
		begin(t, ops[below(sizeof(ops))]);
		info = vrnic_bth_info(pkt.opcode & ~VRNIC_SVC_MASK);
		if (info & VRNIC_PKT_RETH)
			put_reth(place(a, 10000), a->rkey, 10000);
		if (info & VRNIC_PKT_ATOMICETH)
			ask(t, CLASS_ORDER, IBV_ACCESS_REMOTE_ATOMIC, place(a, 8) & ~7ULL,
			    a->rkey, 8);
		imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
		if (info & VRNIC_PKT_PAYLOAD)
			put_data(t->mtu);
		if (!(info & VRNIC_PKT_ATOMICETH))
			shoot(CLASS_ORDER, &pkt);
		next(t, 1);
	}
}

static void wrong_form(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_ATOMIC);

	switch (below(4)) {
	case 0:
		ask(t, CLASS_FORM, IBV_ACCESS_REMOTE_ATOMIC, (place(a, 16) | 7) - below(7),
		    a->rkey, 8);
		return;
	case 1:
		begin(t, VRNIC_BTH_ATOMIC_WRITE);
		put_reth(place(a, 16), a->rkey, one_in(2) ? 8 : below(100));
		put_data(one_in(2) ? 8 : below(20));
		break;
	case 2:
		begin(t, VRNIC_BTH_FLUSH);
		put32(one_in(2) ? below(64) : draw());
		put_reth(one_in(2) ? draw() : a->va, a->rkey, draw());
		break;
	default:
		begin(t, one_in(2) ? VRNIC_BTH_SEND_ONLY_INV : VRNIC_BTH_SEND_LAST_INV);
		put32(one_in(2) ? areas[below(AREAS)].rkey : draw());
		put_data(below(64));
	}
	shoot(CLASS_FORM, &pkt);
}

static void too_long(struct target *t)
{
	message(t, CLASS_TOO_LONG, NULL, 0, 4200 + below(8000));
}

/* An otherwise right packet with changed bits. */
static void flipped(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_ATOMIC);
	bool anywhere = one_in(6);

	switch (below(4)) {
	case 0:
		begin(t, send_op(true, true));
		imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
		put_data(below(200));
		break;
	case 1:
		begin(t, VRNIC_BTH_READ_REQUEST);
		put_reth(place(a, 1000), a->rkey, 1000);
		break;
	case 2:
		begin(t, VRNIC_BTH_WRITE_ONLY);
		put_reth(place(a, 64), a->rkey, 64);
		put_data(64);
		break;
	default:
		begin(t, VRNIC_BTH_FETCH_ADD);
		put64((place(a, 16) + 7) & ~7ULL);
		put32(a->rkey);
		put64(draw());
		put64(draw());
	}
	sent[anywhere ? CLASS_FLIPPED_IP : CLASS_FLIPPED]++;
	pkt_send_spoilt(&pkt, 1 + below(4), anywhere, !one_in(6));
}

/* One packet of a message of @total bytes to @a, or to a receive. */
static void part(struct target *t, const struct area *a, u8 op, u32 total, u32 len)
{
	begin(t, op);
	pkt.psn &= VRNIC_PSN_MASK;
	if (vrnic_bth_info(op) & VRNIC_PKT_RETH)
		put_reth(a->va, a->rkey, total);
	imm_or_key(op);
	put_data(len);
}

/*
 * A message whose middle comes in one buffer, which is taken as one packet.
 * @wrong: one of its packets is none that can be executed.
 */
static void train(struct target *t, bool wrong)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);
	enum class k = wrong ? CLASS_BAD_TRAIN : CLASS_TRAIN;
	u32 n = a->len / t->mtu, total, bad;
	bool write = !wrong || one_in(2);

	if (!t->ipv6 || service(t) == VRNIC_SVC_UD || n < 4 ||
	    (write && !(t->access & IBV_ACCESS_REMOTE_WRITE)))
		return;
	n = 2 + below(n < 16 ? n - 3 : 13);
	bad = n;	/* none */
	total = (n + 1) * t->mtu + 1 + below(t->mtu);
	/* some middle packet is the last that the message has room for */
	part(t, a, write ? write_op(true, false) : send_op(true, false),
	     wrong && one_in(3) ? total - (1 + below(n)) * t->mtu : total, t->mtu);
	shoot(k, &pkt);
	next(t, 1);
	part(t, a, write ? write_op(false, false) : send_op(false, false), total, t->mtu);
	if (wrong && one_in(3))
		bad = below(n);
	if (wrong && one_in(3))
		pkt.psn = vrnic_psn_add(pkt.psn, below(9) - 4);
	sent[k] += n;
	pkt_send_gso(&pkt, n, bad);
	next(t, n);
	part(t, a, write ? write_op(false, true) : send_op(false, true), total,
	     total - (n + 1) * t->mtu);
	shoot(k, &pkt);
	next(t, 1);
}

static void wrong_train(struct target *t)
{
	train(t, true);
}

/* What may end a connection: the last of a session. */
static void fatal(struct target *t)
{
	static void (*const kinds[])(struct target *t) = {
		no_right, no_right, out_of_bounds, out_of_bounds, wrong_length, out_of_order,
		wrong_form, too_long, wrong_train, wrong_train, flipped, flipped,
	};

	kinds[below(sizeof(kinds) / sizeof(kinds[0]))](t);
}

/* A small packet of the kind that @t takes, for what is wrong with it otherwise. */
static void small(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);
	u32 len = below(24);

	if (service(t) == VRNIC_SVC_UD) {
		begin(t, VRNIC_BTH_SEND_ONLY + one_in(2));
		put32(t->type == IBV_QPT_UD ? QKEY : GSI_QKEY);
		put32(2 + below(1000));
		imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
	} else if (one_in(2)) {
		begin(t, VRNIC_BTH_WRITE_ONLY);
		len = 32;
		put_reth(place(a, len), a->rkey, len);
	} else {
		begin(t, VRNIC_BTH_SEND_ONLY);
	}
	put_data(len);
}

/* Sequence numbers that are not the next one: nothing but an answer may come of it. */
static void wrong_psn(struct target *t)
{
	u32 far = one_in(2) ? 1 + below(300) : 1 + below((1 << 23) - 4096);

	small(t);
	if (t->type != IBV_QPT_RC)
		return;
	if (one_in(3)) {
		begin(t, VRNIC_BTH_READ_REQUEST);
		put_reth(areas[OPEN].va + below(1000), areas[OPEN].rkey, below(5000));
	}
	pkt.psn = vrnic_psn_add(t->psn, one_in(2) ? far : -far) | (pkt.psn & VRNIC_BTH_ACKREQ);
	shoot(CLASS_PSN, &pkt);
}

static void wrong_qpn(struct target *t)
{
	static const u32 qpns[] = { 0, 1, 2, 0xffffff, 0xff000001 };

	small(t);
	pkt.qpn = one_in(2) ? qpns[below(5)] : one_in(2) ? (u32)draw() & VRNIC_BTH_QPN :
		  t->qpn ^ 1 << below(24);
	shoot(CLASS_QPN, &pkt);
}

static void wrong_service(struct target *t)
{
	static const u8 others[] = { VRNIC_SVC_UC, VRNIC_SVC_UD, VRNIC_SVC_XRC };

	small(t);
	pkt.opcode ^= others[below(sizeof(others))];
	shoot(CLASS_SERVICE, &pkt);
}

static void wrong_opcode(struct target *t)
{
	small(t);
	do {
		pkt.opcode = one_in(2) ? 0xc0 | below(64) : draw();
	} while (vrnic_pkt_info(pkt.opcode) || pkt.opcode == VRNIC_BTH_CNP);
	shoot(CLASS_OPCODE, &pkt);
}

static void cnp(struct target *t)
{
	begin(t, 0);
	pkt.opcode = VRNIC_BTH_CNP;
	pkt.qpn |= VRNIC_BTH_BECN;
	put64(draw());
	put64(draw());
	if (one_in(4))
		put_data(below(64));
	shoot(CLASS_CNP, &pkt);
}

static void wrong_bth(struct target *t)
{
	small(t);
	switch (below(3)) {
	case 0:
		pkt.flags |= 1 + below(VRNIC_BTH_VERSION);
		break;
	case 1:
		pkt.pkey = one_in(2) ? 0x8001 : draw() & 0xfffe;
		break;
	default: /* routers may do this */
		pkt.psn = vrnic_psn_add(t->psn, -20);
		pkt.qpn |= (u32)draw() << 24;
		pkt.flags ^= VRNIC_BTH_MIG;
	}
	shoot(CLASS_BTH, &pkt);
}

static void wrong_pad(struct target *t)
{
	small(t);
	if (one_in(2)) {
		/* more pad claimed than there is */
		pkt.flags |= VRNIC_BTH_PAD;
		pkt.len = 0;
		pkt.pad = 0;
	} else {
		pkt.pad = (pkt.pad + 1 + below(3)) & 3;
	}
	shoot(CLASS_PAD, &pkt);
}

static void truncated(struct target *t)
{
	small(t);
	pkt.cut = 1 + below(70);
	shoot(CLASS_CUT, &pkt);
}

static void wrong_icrc(struct target *t)
{
	small(t);
	pkt.bad_icrc = true;
	shoot(CLASS_ICRC, &pkt);
}

/* An answer, of whatever kind, to a packet that was never sent. */
static void unasked(struct target *t)
{
	static const u8 ops[] = {
		VRNIC_BTH_ACK, VRNIC_BTH_ACK, VRNIC_BTH_READ_RESP_FIRST,
		VRNIC_BTH_READ_RESP_MIDDLE, VRNIC_BTH_READ_RESP_LAST,
		VRNIC_BTH_READ_RESP_ONLY, VRNIC_BTH_ATOMIC_ACK,
	};
	u8 op;

	if (t->type != IBV_QPT_RC)
		return;
	op = ops[below(sizeof(ops))];
	begin(t, op);
	pkt.psn = draw();
	if (vrnic_bth_info(op) & VRNIC_PKT_AETH)
		put32(draw());
	if (op == VRNIC_BTH_ATOMIC_ACK)
		put64(draw());
	else if (op != VRNIC_BTH_ACK)
		put_data(below(t->mtu + 1));
	shoot(CLASS_UNASKED, &pkt);
}

/* In sequence, but not from the peer, or not to the address that it knows. */
static void foreign(struct target *t)
{
	small(t);
	if (t->type != IBV_QPT_RC && t->type != IBV_QPT_UC)
		return;
	if (one_in(4))
		pkt.dst[15] ^= 64;
	else
		pkt.src[15] ^= 1 + below(15) * 2;
	shoot(CLASS_FOREIGN, &pkt);
}

static void tagged(struct target *t)
{
	small(t);
	pkt.psn = vrnic_psn_add(t->psn, -30);
	pkt.vlan = one_in(2) ? 0 : below(0x10000);
	shoot(CLASS_VLAN, &pkt);
}

static void odd_network(struct target *t)
{
	small(t);
	switch (below(3)) {
	case 0:
		pkt.ext_net = true;
		break;
	case 1:
		pkt.udp_len = below(200) - 100;
		break;
	default:
		pkt.bad_sum = true;
	}
	shoot(CLASS_NETWORK, &pkt);
}

/* IP fragments, which the stack reassembles: to the whole packet, or a spoilt one. */
static void fragments(struct target *t)
{
	const struct area *a = open_area(IBV_ACCESS_REMOTE_WRITE);
	u32 len = 64 + below(t->mtu - 64);

	if (service(t) == VRNIC_SVC_UD) {
		small(t);
		put_data(len);
	} else {
		begin(t, VRNIC_BTH_WRITE_ONLY);
		put_reth(place(a, len), a->rkey, len);
		put_data(len);
		pkt.psn = vrnic_psn_add(t->psn, -40);
	}
	pkt.fragments = 2 + below(3);
	pkt.bad_icrc = one_in(4);
	shoot(CLASS_FRAGMENT, &pkt);
}

static void segments(struct target *t)
{
	u32 n = 2 + below(6);

	if (!t->ipv6 || t->type == IBV_QPT_DRIVER)
		return;
	small(t);
	put_data(4 * below(60) + 4);
	if (service(t) != VRNIC_SVC_UD) {
		begin(t, VRNIC_BTH_SEND_ONLY);
		put_data(4 * below(14) + 4);
		next(t, n);
	}
	sent[CLASS_SEGMENT] += n;
	pkt_send_gso(&pkt, n, n);
}

/* Packets that change no responder's state. */
static void harmless(struct target *t)
{
	static void (*const kinds[])(struct target *t) = {
		wrong_psn, wrong_psn, wrong_qpn, wrong_service, wrong_opcode, cnp, wrong_bth,
		wrong_pad, truncated, wrong_icrc, unasked, foreign, tagged, odd_network,
		fragments,
	};

	kinds[below(sizeof(kinds) / sizeof(kinds[0]))](t);
}

static void to_group(const struct target *t)
{
	pkt.qpn = VRNIC_BTH_QPN;
	if (t->ipv6)
		memcpy(pkt.dst, GROUP6, 16);
	else
		memcpy(pkt.dst + 12, GROUP4, 4);
}

/*
 * To a group, as if it took more than datagrams: the headers have the Q_Key where a datagram has
 * it. In what the module notes of a train of three such packets, it is in the same place.
 */
static void wrong_group(struct target *t)
{
	static const u8 ops[] = {
		VRNIC_BTH_SEND_ONLY, VRNIC_BTH_WRITE_ONLY, VRNIC_BTH_CMP_SWAP, VRNIC_BTH_ACK,
		VRNIC_SVC_UC | VRNIC_BTH_SEND_ONLY, VRNIC_SVC_UC | VRNIC_BTH_WRITE_ONLY,
	};
	bool several = t->ipv6 && one_in(2);
	u32 i;

	begin(t, VRNIC_BTH_SEND_ONLY);
	to_group(t);
	pkt.opcode = several ? VRNIC_BTH_READ_RESP_MIDDLE : ops[below(sizeof(ops))];
	put_data(256);
	if (several) {
		pkt.psn &= VRNIC_PSN_MASK;
		sent[CLASS_WRONG_GROUP] += 3;
		pkt_send_gso(&pkt, 3, 3);
		return;
	}
	for (i = 0; i < vrnic_ext_len(vrnic_pkt_info(pkt.opcode)); i += 4)
		put32(i ? draw() : QKEY);
	shoot(CLASS_WRONG_GROUP, &pkt);
}

static void datagram(struct target *t)
{
	bool group = t->type == IBV_QPT_UD && !t->srq && one_in(4);

	if (group && one_in(4)) {
		wrong_group(t);
		return;
	}
	begin(t, VRNIC_BTH_SEND_ONLY + one_in(3));
	put32(one_in(8) ? draw() : QKEY);
	put32(draw());
	imm_or_key(pkt.opcode & ~VRNIC_SVC_MASK);
	put_data(one_in(8) ? below(8000) : draw_len(1000));
	if (group) {
		to_group(t);
		/* sometimes another group, or another number in this one */
		pkt.dst[15] ^= one_in(8);
		pkt.qpn = one_in(8) ? t->qpn : pkt.qpn;
	}
	shoot(group ? CLASS_GROUP : CLASS_DATAGRAM, &pkt);
	next(t, 1);
}

/* A management datagram: mostly of the connection manager, and mostly well-formed. */
static void mad(struct target *t)
{
	static const u8 mad_classes[] = { 0x07, 0x07, 0x07, 0x03, 0x01, 0x04, 0x81 };
	static const u8 methods[] = { 0x03, 0x03, 0x03, 0x01, 0x02, 0x81, 0x06, 0x12, 0x92 };

	begin(t, VRNIC_BTH_SEND_ONLY);
	put32(one_in(16) ? draw() : GSI_QKEY);
	put32(one_in(8) ? draw() : 1);
	put_data(one_in(8) ? below(4096) : 256);
	pkt.data[0] = one_in(16) ? draw() : 1;
	pkt.data[1] = one_in(8) ? draw() : mad_classes[below(sizeof(mad_classes))];
	pkt.data[2] = one_in(16) ? draw() : 2;
	pkt.data[3] = one_in(16) ? draw() : methods[below(sizeof(methods))];
	memset(pkt.data + 4, 0, 4);
	pkt.data[16] = 0;
	pkt.data[17] = one_in(16) ? draw() : 0x10 + below(12);
	memset(pkt.data + 18, 0, 6);
	shoot(CLASS_MAD, &pkt);
	next(t, 1);
}

/* The headers of an answer to request @i of the device. */
static void answer_header(struct target *t, u32 i, u8 op, u8 syndrome)
{
	begin(t, op);
	pkt.psn = t->req[i].psn;
	if (vrnic_bth_info(op) & VRNIC_PKT_AETH)
		put32((u32)syndrome << 24 | below(1 << 24));
}

static u8 answer_op(bool first, bool last)
{
	if (first)
		return last ? VRNIC_BTH_READ_RESP_ONLY : VRNIC_BTH_READ_RESP_FIRST;
	return last ? VRNIC_BTH_READ_RESP_LAST : VRNIC_BTH_READ_RESP_MIDDLE;
}

/*
 * The middle of the answer to READ @i from @psn on, @n packets, in one buffer. @spoil: these are
 * more than the READ lacks, or not the next ones, or one of them is wrong.
 */
static void answer_train(struct target *t, u32 i, u32 psn, u32 n, bool spoil)
{
	u32 bad = n;	/* none */

	answer_header(t, i, VRNIC_BTH_READ_RESP_MIDDLE, 0);
	pkt.psn = psn;
	put_data(t->mtu);
	if (spoil && one_in(2)) {
		n += 1 + below(8);
		bad = n;
	}
	if (spoil && one_in(3))
		bad = below(n);
	if (spoil && one_in(3))
		pkt.psn = vrnic_psn_add(psn, below(9) - 4);
	sent[CLASS_ANSWER_TRAIN] += n;
	pkt_send_gso(&pkt, n, bad);
}

/* @spoil: some of it is wrong. */
static void answer_read(struct target *t, u32 i, bool spoil)
{
	u32 left = t->req[i].len, psn = t->req[i].psn, middles, n;
	bool first = true, last;

	do {
		middles = !first && left ? (left - 1) / t->mtu : 0;
		if (t->ipv6 && middles > 1 && one_in(2)) {
			n = 2 + below(middles - 1);
			answer_train(t, i, psn, n, spoil);
			psn = vrnic_psn_add(psn, n);
			left -= n * t->mtu;
		}
		n = left < t->mtu ? left : t->mtu;
		last = n == left;
		answer_header(t, i, answer_op(first, last), VRNIC_AETH_UNLIMITED);
		pkt.psn = psn;
		put_data(spoil && one_in(2) ? below(2 * t->mtu) : n);
		if (spoil && one_in(3))
			pkt.psn = vrnic_psn_add(psn, below(5) - 2);
		shoot(CLASS_ANSWER, &pkt);
		psn = vrnic_psn_add(psn, 1);
		left -= n;
		first = false;
	} while (!last);
}

static void answer_right(struct target *t, u32 i, bool spoil)
{
	switch (t->req[i].opcode) {
	case VRNIC_BTH_READ_REQUEST:
		answer_read(t, i, spoil);
		return;
	case VRNIC_BTH_CMP_SWAP:
	case VRNIC_BTH_FETCH_ADD:
		answer_header(t, i, VRNIC_BTH_ATOMIC_ACK, VRNIC_AETH_UNLIMITED);
		put64(draw());
		break;
	default:
		answer_header(t, i, VRNIC_BTH_ACK, VRNIC_AETH_UNLIMITED);
	}
	shoot(CLASS_ANSWER, &pkt);
}

static void answer_wrong(struct target *t, u32 i)
{
	switch (below(6)) {
	case 0:	/* not ready, for the shortest time */
		answer_header(t, i, VRNIC_BTH_ACK, VRNIC_AETH_RNR | 1);
		break;
	case 1:	/* any syndrome */
		answer_header(t, i, VRNIC_BTH_ACK, draw());
		break;
	case 2:	/* go back */
		answer_header(t, i, VRNIC_BTH_ACK, VRNIC_AETH_NAK);
		break;
	case 3:	/* the answer to something else */
		answer_header(t, i, VRNIC_BTH_ATOMIC_ACK, 0);
		put64(draw());
		break;
	case 4:
		answer_header(t, i, VRNIC_BTH_READ_RESP_ONLY, 0);
		put_data(below(t->mtu));
		break;
	default: /* to what was not sent yet */
		answer_header(t, i, VRNIC_BTH_ACK, VRNIC_AETH_UNLIMITED);
		pkt.psn = vrnic_psn_add(pkt.psn, below(64) - 32);
	}
	shoot(CLASS_ANSWER, &pkt);
}

/* The device asks, the fuzzer answers: mostly as it should, sometimes late, twice, or wrong. */
static void answers(struct target *t)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	enum ibv_wr_opcode op;
	u32 i, n = 1 + below(4), round;

	t->nr_req = 0;
	for (i = 0; i < n; i++) {
		op = ops[below(6)];
		target_request(t, op, op >= IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : draw_len(5000));
	}
	for (round = 0; round < 6; round++) {
		wire_read(0);
		n = t->nr_req;
		for (i = 0; i < n; i++) {
			if (one_in(5))
				answer_wrong(t, i);
			if (!one_in(8))
				answer_right(t, i, one_in(8));
			if (one_in(8))
				harmless(t);
		}
		t->nr_req = 0;
		wire_flush();
	}
	wire_read(0);
	t->nr_req = 0;
}

/*
 * Where is the responder? A SEND that it has had long ago is answered by an
 * acknowledgment of the last packet, and does nothing else.
 */
static void probe(struct target *t)
{
	int i;

	wire_flush();
	wire_read(0);
	t->live = false;
	for (i = 0; i < PROBE_TIMES && !t->live && !t->dead; i++) {
		if (i % 64 == 0) {
			begin(t, VRNIC_BTH_SEND_ONLY);
			pkt.psn = vrnic_psn_add(t->psn, -PROBE_BACK) | VRNIC_BTH_ACKREQ;
			shoot(CLASS_PROBE, &pkt);
			wire_flush();
		}
		wire_read(i ? 2 : 0);
		if (!t->live && target_state(t) != t->rest)
			t->dead = true;
	}
	if (!t->live && !t->dead && !(t->link && native_is_another(t)))
		die("%s: does not answer any more", t->name);
}

static void shoot_native(bool right)
{
	shoot(right ? CLASS_NATIVE : CLASS_NATIVE_ODD, &pkt);
}

/* No packet may change the state of a queue pair that takes no packets or owes no answer. */
static void still_at_rest(struct target *t)
{
	wire_flush();
	if (target_state(t) != t->rest)
		die("%s: is in state %u now", t->name, target_state(t));
}

static void shoot_connected(struct target *t)
{
	u32 n = 4 + below(24);

	while (n--) {
		if (one_in(3))
			harmless(t);
		else if (one_in(16))
			segments(t);
		else if (one_in(16))
			train(t, false);
		else
			right(t);
	}
	if (one_in(3))
		fatal(t);
}

static void shoot_datagrams(struct target *t)
{
	u32 n = 4 + below(24);

	while (n--) {
		if (one_in(3))
			harmless(t);
		else if (one_in(16))
			segments(t);
		else if (one_in(16))
			flipped(t);
		else if (t->type == IBV_QPT_UD)
			datagram(t);
		else
			mad(t);
	}
	wire_flush();
}

static void session(struct target *t)
{
	/* sometimes there is nothing to receive with */
	if (!one_in(6))
		target_receives(t);
	if (t->requests && one_in(2))
		answers(t);
	if (t->link)
		native_shoot(t, &pkt, shoot_native);
	else if (t->type == IBV_QPT_RC || t->type == IBV_QPT_UC)
		shoot_connected(t);
	else
		shoot_datagrams(t);
	if (t->rest == IBV_QPS_RESET || t->rest == IBV_QPS_INIT || t->rest == IBV_QPS_ERR)
		still_at_rest(t);
	else if (t->type == IBV_QPT_RC || t->link)
		probe(t);
	wire_flush();
	wire_read(0);
	verbs_poll();
	native_poll();
	if (t->type == IBV_QPT_UC || t->type == IBV_QPT_UD)
		still_at_rest(t);
	if (t->dead || one_in(64))
		target_connect(t);
}

static u64 total(void)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < CLASS_NR; i++)
		n += sent[i];
	return n;
}

static u64 run(void)
{
	u64 number = opt.first;

	for (; total() < opt.packets; number++) {
		state = (opt.seed << 40) ^ number * 0x2545f4914f6cdd1dULL;
		session(&targets[below(nr_targets)]);
		if (number % CHECK_EVERY == 0)
			memory_check();
	}
	memory_check();
	return number - opt.first;
}

static void tell_sent(void)
{
	u64 sure = 0;
	u32 i;

	for (i = 0; i < CLASS_NR; i++) {
		printf("  %10llu %s\n", sent[i], classes[i].name);
		if (classes[i].sure)
			sure += sent[i];
	}
	printf("sent: %llu packets, %llu frames; %llu reach the socket for sure\n", total(),
	       frames_sent, sure);
}

static void tell_seen(void)
{
#define X(sym, name) name,
	static const char *const names[] = { SEEN(X) };
#undef X
	u32 i;

	for (i = 0; i < SEEN_NR; i++)
		printf("  %10llu %s\n", seen[i], names[i]);
	printf("  %10llu goodbyes of native links lost\n", goodbyes_lost);
	for (i = 0; opt.packets >= 20000 && i < SEEN_NR; i++)
		if (!seen[i])
			die("no %s: the packets do not get deep enough", names[i]);
	/* a datagram may get lost, not several in a hundred */
	if (goodbyes_lost > seen[SEEN_LINK_BYES] / 100 + 1)
		die("native links end without a goodbye");
}

static void set_address(u8 *gid, const char *text)
{
	memset(gid, 0, 16);
	if (strchr(text, ':') ? inet_pton(AF_INET6, text, gid) == 1 :
				inet_pton(AF_INET, text, gid + 12) == 1) {
		if (!strchr(text, ':'))
			memset(gid + 10, 0xff, 2);
		return;
	}
	die("%s is no address", text);
}

static void set_option(int letter, const char *value)
{
	switch (letter) {
	case 'd':
		opt.device = value;
		break;
	case '4':
		opt.gid[0] = atoi(value);
		break;
	case '6':
		opt.gid[1] = atoi(value);
		break;
	case 'n':
		opt.netns = value;
		break;
	case 'i':
		opt.interface = value;
		break;
	case 'm':
		opt.mac = value;
		break;
	case 'a':
		set_address(opt.peer[0], value);
		break;
	case 'A':
		set_address(opt.peer[1], value);
		break;
	case 'p':
		opt.packets = strtoull(value, NULL, 0);
		break;
	case 'S':
		opt.seed = strtoull(value, NULL, 0);
		break;
	case 'f':
		opt.first = strtoull(value, NULL, 0);
		break;
	default:
		die("usage: see packets.c");
	}
}

int main(int argc, char **argv)
{
	u64 sessions;
	int letter;

	while ((letter = getopt(argc, argv, "d:4:6:n:i:m:a:A:p:S:f:")) != -1)
		set_option(letter, optarg);
	if (!opt.device || opt.gid[0] < 0 || opt.gid[1] < 0 || !opt.netns || !opt.interface ||
	    !opt.mac || !opt.peer[0][15] || !opt.peer[1][15])
		die("usage: see packets.c");
	printf("seed %llu, from session %llu on\n", opt.seed, opt.first);
	fflush(stdout);
	wire_open();
	verbs_open();
	sessions = run();
	printf("%llu sessions; memory is what it has to be. What was sent:\n", sessions);
	tell_sent();
	printf("What came of it:\n");
	tell_seen();
	verbs_close();
	return 0;
}
