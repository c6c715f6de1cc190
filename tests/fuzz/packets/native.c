// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Native links: the fuzzer is a host that asks a FIFO of the device's for links, and then
 * sends messages over them of which most are right, with keys that open and counters that
 * may be named; others have any field changed, or any bits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "native_raw.h"

#include "lib/link_wire.h"
#include "packets.h"

#define SLOTS		1024
#define TYPE_NUMBERS	2000	/* more than a link remembers */
#define ANSWER_TIMES	400	/* looks of some ms for the answer to an ASK */
#define PUT_TIMES	50	/* the same for what a remote get asks for; none is promised */

static struct raw_fifo fifo;
static struct raw_counter counters[2];	/* one that peers may name, one that they may not */
static struct target *asking;	/* until the answer has come */
u64 goodbyes_lost;

void native_open(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct vrnic_create_fifo_req req = {
		.gid_index = opt.gid[0], .inject_slots = 64, .receive_slots = SLOTS, .eventfd = -1,
	};
	struct vrnic_create_fifo_resp resp = {};

	fifo.dev.ctx = ctx;
	fifo.dev.pd = pd;
	fifo.bell = raw_open_bell(ctx);
	if (fifo.bell < 0 || raw_create_fifo(&fifo, &req, &fifo.handle, &resp) ||
	    raw_map_rings(&fifo, &resp) ||
	    raw_counter(&fifo, VRNIC_COUNTER_OPEN, &counters[0]) ||
	    raw_counter(&fifo, 0, &counters[1]))
		die("no FIFO for native links: %s", strerror(errno));
}

void native_close(void)
{
	u32 i;

	for (i = 0; i < 2; i++)
		if (raw_counter_destroy(&fifo, &counters[i]))
			die("a counter cannot be destroyed");
	if (raw_destroy(fifo.dev.ctx, VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_DESTROY,
			VRNIC_ATTR_FIFO_DESTROY_HANDLE, fifo.handle))
		die("the FIFO cannot be destroyed");
	close(fifo.bell);
}

/* ---- how links are made and end ---- */

static void hello(struct target *t, const struct vrnic_hello *h)
{
	struct vrnic_hello_wire w;
	struct pkt p;

	vrnic_hello_fill(&w, h);
	pkt_init(&p, t, VRNIC_BTH_HELLO, 0);
	p.qpn = VRNIC_HELLO_QPN;
	memcpy(p.data, &w, sizeof(w));
	p.len = sizeof(w);
	pkt_send(&p);
}

/* As the peer of @t would ask. */
static struct vrnic_hello question(struct target *t)
{
	return (struct vrnic_hello){
		.kind = VRNIC_HELLO_ASK,
		.nonce = t->nonce,
		.fifo = fifo.address.fifo,
		.secret = fifo.address.secret,
		.qpn = t->peer,
		.psn = t->psn,
		.mtu = t->mtu,
		.from_fifo = 77,
	};
}

/*
 * The device answers, at some time: with the link that has the nonce, or a new one. Meanwhile the
 * link that was there before may still acknowledge something, which is no answer.
 */
static void ask_for_link(struct target *t)
{
	struct vrnic_hello h = question(t);
	u32 i;

	t->dead = false;
	asking = t;
	for (i = 0; i < ANSWER_TIMES && asking; i++) {
		if (i % 16 == 0)
			hello(t, &h);
		wire_flush();
		wire_read(i ? 10 : 0);
	}
	if (asking)
		die("%s: nobody answers who asks for a link", t->name);
	t->live = true;
	seen[SEEN_LINKS]++;
}

void native_connect(struct target *t)
{
	t->nonce = draw();
	t->psn = draw() & VRNIC_PSN_MASK;
	ask_for_link(t);
}

/*
 * A link that ends says so once, and that may be lost, as any datagram: then this question
 * makes a link anew.
 */
bool native_is_another(struct target *t)
{
	u32 was = t->qpn;

	ask_for_link(t);
	if (t->qpn == was)
		return false;
	goodbyes_lost++;
	return true;
}

void native_take_hello(const u8 *data, u32 len)
{
	struct vrnic_hello_wire w;
	struct vrnic_hello h;
	u32 i;

	if (len < sizeof(w))
		die("a datagram about links with %u bytes", len);
	memcpy(&w, data, sizeof(w));
	if (!vrnic_hello_read(&w, &h))
		die("a datagram about links that is none");
	seen[SEEN_LINK_BYES] += h.kind == VRNIC_HELLO_BYE;
	for (i = 0; i < nr_targets; i++)
		targets[i].dead |= h.kind == VRNIC_HELLO_BYE && targets[i].link &&
				   h.nonce == targets[i].nonce;
	if (!asking || h.nonce != asking->nonce)
		return;
	if (h.kind == VRNIC_HELLO_NO)
		die("%s: refused: %u", asking->name, h.why);
	if (h.kind != VRNIC_HELLO_YES)
		return;
	asking->qpn = h.qpn;
	asking->heard = h.psn;
	asking = NULL;
}

/* Datagrams of which most are wrong; no FIFO with that secret is asked for. */
static void odd_hello(struct target *t)
{
	struct vrnic_hello h = question(t);
	u32 fields[] = { h.fifo, h.qpn, h.psn, h.to_qpn, h.mtu };

	fields[below(5)] = draw();
	h.kind = below(6);
	h.secret = one_in(2) ? draw() : 0;
	h.nonce = one_in(4) ? t->nonce : draw();
	h.fifo = fields[0];
	h.qpn = fields[1];
	h.psn = fields[2];
	h.to_qpn = one_in(2) ? t->qpn : fields[3];
	h.mtu = fields[4];
	/* a goodbye with all that it needs is one */
	t->dead |= h.kind == VRNIC_HELLO_BYE && h.nonce == t->nonce;
	hello(t, &h);
}

/* ---- what comes back ---- */

static void acknowledge(struct target *t)
{
	struct pkt p;

	pkt_init(&p, t, VRNIC_BTH_ACK, vrnic_psn_add(t->heard, -1));
	p.ext[0] = VRNIC_AETH_ACK | VRNIC_AETH_UNLIMITED;
	p.ext_len = sizeof(struct vrnic_aeth);
	pkt_send(&p);
}

static void take_header(struct target *t, const u8 *data, u32 len)
{
	struct vrnic_nwire w;
	struct vrnic_nhdr h;

	if (len < sizeof(w))
		die("%s: a message without a header", t->name);
	memcpy(&w, data, sizeof(w));
	if (!vrnic_nwire_read(&w, &h))
		die("%s: a message that makes no sense", t->name);
	t->quiet = vrnic_nhdr_is_quiet(&h);
	t->asks = h.op != VRNIC_NWIRE_ANSWER && h.op != VRNIC_NWIRE_PING && !t->quiet;
	t->ask = h.id;
	if (h.op != VRNIC_NWIRE_ANSWER)
		return;
	if (h.flags & VRNIC_NWIRE_AGAIN)
		seen[SEEN_LINK_AGAIN]++;
	else
		seen[h.status ? SEEN_LINK_REFUSALS : SEEN_LINK_ANSWERS]++;
}

/* What was injected at the device asks for something: it is done, or refused. */
static void give(struct target *t)
{
	struct vrnic_nhdr h = {
		.op = VRNIC_NWIRE_ANSWER, .id = t->ask, .status = one_in(8) ? below(30) : 0,
		.flags = one_in(16) ? VRNIC_NWIRE_AGAIN : 0,
	};
	struct vrnic_nwire w;
	struct pkt p;

	t->asks = false;
	vrnic_nwire_fill(&w, &h);
	pkt_init(&p, t, VRNIC_BTH_SEND_ONLY | VRNIC_SVC_NATIVE, t->psn);
	p.psn |= VRNIC_BTH_ACKREQ;
	memcpy(p.data, &w, sizeof(w));
	p.len = sizeof(w);
	pkt_send(&p);
	t->psn = vrnic_psn_add(t->psn, 1);
}

/* A put of the device's fails: the device has to skip it. */
static void refuse(struct target *t)
{
	struct pkt p;

	pkt_init(&p, t, VRNIC_BTH_ACK, t->heard);
	p.ext[0] = VRNIC_AETH_NAK | VRNIC_NAK_FAILED;
	p.ext[1] = one_in(16) ? below(4) : 0;
	p.ext[2] = draw();
	p.ext[3] = draw();
	p.ext_len = sizeof(struct vrnic_aeth);
	pkt_send(&p);
}

/* The last message with several puts that was all right. */
static struct {
	const struct target *to;
	u32 psn, bytes;
	u8 data[sizeof(struct vrnic_nwire) + MAX_DATA];
} last_puts;

/* Put number @part of them failed: go on behind it, mostly. */
static void send_rest(struct target *t, u8 part)
{
	u64 pos = htobe64(one_in(16) ? below(VRNIC_NPUTS_MAX) : part + 1u);
	struct pkt p;

	memcpy(last_puts.data + offsetof(struct vrnic_nwire, pos), &pos, sizeof(pos));
	pkt_init(&p, t, VRNIC_SVC_NATIVE | VRNIC_BTH_SEND_ONLY, last_puts.psn);
	p.psn |= VRNIC_BTH_ACKREQ;
	memcpy(p.data, last_puts.data, last_puts.bytes);
	p.len = last_puts.bytes;
	pkt_send(&p);
	t->psn = vrnic_psn_add(last_puts.psn, 1);
}

/* A put at the device failed: skip it, mostly, and in the right way. */
void native_refused(struct target *t, u32 psn, u8 part)
{
	bool only = t->only[psn % PSNS_KEPT] ^ one_in(64);
	struct pkt p;

	seen[SEEN_NAK_FAILED]++;
	if (one_in(16))
		return;
	if (last_puts.to == t && last_puts.psn == psn && !one_in(8)) {
		seen[SEEN_LINK_RESTS]++;
		send_rest(t, part);
		return;
	}
	pkt_init(&p, t, (only ? VRNIC_BTH_SKIP_ONLY : VRNIC_BTH_SKIP_LAST) | VRNIC_SVC_NATIVE, psn);
	p.psn |= VRNIC_BTH_ACKREQ;
	pkt_send(&p);
	t->psn = vrnic_psn_add(psn, 1);
}

/* The next packet. Return: false if it is refused. */
static bool take_next(struct target *t, u32 info, const u8 *data, u32 len)
{
	if (info & VRNIC_PKT_SKIP) {
		seen[SEEN_LINK_SKIPS]++;
		t->awaits_put = false;
		return true;
	}
	if (info & VRNIC_PKT_START)
		take_header(t, data, len);
	if (t->quiet && info & VRNIC_PKT_END && one_in(4)) {
		refuse(t);
		return false;
	}
	if (t->quiet && info & VRNIC_PKT_END)
		t->awaits_put = false;
	if (t->asks && info & VRNIC_PKT_END)
		give(t);
	return true;
}

void native_take(struct target *t, u8 opcode, u32 psn, const u8 *data, u32 len)
{
	if (psn == t->heard) {
		if (!take_next(t, vrnic_pkt_info(opcode), data, len))
			return;
		t->heard = vrnic_psn_add(psn, 1);
	}
	/* late, sometimes, or not at all */
	if (!one_in(8))
		acknowledge(t);
}

/* ---- what is sent ---- */

static u32 some_counter(void)
{
	if (!one_in(3))
		return 0;
	return one_in(8) ? counters[1].number : one_in(8) ? (u32)draw() : counters[0].number;
}

static const struct area *some_area(int right)
{
	const struct area *a;

	do {
		a = &areas[below(AREAS)];
	} while (!(a->rights & right) && !one_in(16));
	return a;
}

/* Of @h: where, and how much. */
static void aim(struct vrnic_nhdr *h, int right, u32 most)
{
	const struct area *a = some_area(right);
	u32 len = below(most + 1);

	h->key = a->rkey;
	h->addr = a->va + below(a->len - len + 1);
	h->total = len;
}

static void typed(struct vrnic_nhdr *h)
{
	h->flags = VRNIC_NWIRE_TYPED;
	h->type = below(TYPE_NUMBERS);
	h->total = 64;
	h->pos = 0;
}

/* Rows that are 64 bytes in all, or anything. Return: their number of bytes. */
static u32 some_rows(u8 *data)
{
	struct vrnic_type_row *row = (struct vrnic_type_row *)data;
	u32 i, nr = 1 + below(8);

	for (i = 0; i < nr; i++)
		row[i] = (struct vrnic_type_row){
			.offset = one_in(16) ? (s64)draw() : (s64)below(4096),
			.bytes = one_in(16) ? draw() : 8, .count = one_in(16) ? draw() : 8 / nr,
			.stride = below(64),
		};
	return nr * sizeof(*row);
}

/* The data of a typed operation begin with the rows of the type. Return: their number of bytes. */
static u32 with_rows(struct vrnic_nhdr *h, u8 *data)
{
	h->flags |= VRNIC_NWIRE_ROWS;
	h->pos = 0;
	return some_rows(data);
}

static void put(struct vrnic_nhdr *h, u8 *data)
{
	h->op = VRNIC_NWIRE_PUT;
	aim(h, IBV_ACCESS_REMOTE_WRITE, MAX_DATA / 2);
	if (one_in(4))
		typed(h);
	h->pos = one_in(8) ? below(h->total + 1) : 0;
	if (h->flags && one_in(2))
		h->arg = with_rows(h, data);
	h->data = h->arg + h->total - h->pos;
}

/* Several in one packet; @room: bytes there. Some have a length that does not fit. */
static void small_puts(struct vrnic_nhdr *h, u8 *data, u32 room)
{
	struct vrnic_nput put;
	struct vrnic_nhdr to;
	u32 at = 0, nr = 0, most = 1 + below(VRNIC_NPUTS_MAX);

	for (; nr < most; nr++) {
		aim(&to, IBV_ACCESS_REMOTE_WRITE, 64);
		if (!to.total || at + vrnic_nput_bytes(to.total) > room)
			break;
		put.addr = htobe64(to.addr);
		put.key = htobe32(to.key);
		put.len = htobe32(one_in(64) ? draw() : to.total);
		memcpy(data + at, &put, sizeof(put));
		at += vrnic_nput_bytes(to.total);
	}
	h->op = VRNIC_NWIRE_PUTS;
	h->total = one_in(16) ? below(VRNIC_NPUTS_MAX + 1) : nr;
	h->pos = one_in(4) ? below(h->total + 1) : 0;
	h->data = at;
	h->counter[1] = 0;
}

static void get(struct vrnic_nhdr *h, u8 *data)
{
	h->op = VRNIC_NWIRE_GET;
	aim(h, IBV_ACCESS_REMOTE_READ, MAX_DATA);
	if (one_in(4))
		typed(h);
	h->pos = one_in(8) ? below(h->total + 1) : 0;
	if (h->flags && one_in(4))
		h->flags |= VRNIC_NWIRE_PACK;
	if (h->flags && one_in(2))
		h->data = with_rows(h, data);
	h->arg = h->total - h->pos;
}

static void rmw(struct vrnic_nhdr *h)
{
	h->op = VRNIC_NWIRE_RMW;
	aim(h, IBV_ACCESS_REMOTE_ATOMIC, 8);
	h->total = one_in(2) ? 4 : 8;
	h->addr &= ~7ULL;
	h->pos = draw();
	h->cookie = draw();
	h->arg = below(VRNIC_RMW_XOR + 1);
}

static void note(struct vrnic_nhdr *h)
{
	h->op = one_in(3) ? VRNIC_NWIRE_ERROR : one_in(3) ? VRNIC_NWIRE_PING : VRNIC_NWIRE_NOTIFY;
	h->flags = h->op == VRNIC_NWIRE_NOTIFY && one_in(2) ? VRNIC_NWIRE_BACK : 0;
	h->arg = draw();
	h->cookie = draw();
}

static void letter(struct vrnic_nhdr *h)
{
	h->op = VRNIC_NWIRE_MESSAGE;
	h->key = below(1024);
	h->total = below(1024);
	h->data = h->key + h->total;
	h->arg = draw();
}

static void type(struct vrnic_nhdr *h, u8 *data)
{
	h->op = VRNIC_NWIRE_TYPE;
	h->key = below(TYPE_NUMBERS);
	h->total = some_rows(data);
	h->data = h->total;
}

/* Descriptors that the device runs in the peer's name, back to it. */
static void remote_get(struct vrnic_nhdr *h, u8 *data)
{
	struct vrnic_ndesc *d = (struct vrnic_ndesc *)data;
	u32 i, nr = 1 + below(VRNIC_RGET_DESCS);
	const struct area *a;

	h->op = VRNIC_NWIRE_RGET;
	h->data = nr * sizeof(*d);
	for (i = 0; i < nr; i++) {
		a = some_area(IBV_ACCESS_REMOTE_READ);
		d[i] = (struct vrnic_ndesc){
			.opcode = one_in(8) ? draw() : one_in(2) ? VRNIC_NOP_PUT : VRNIC_NOP_NOTIFY,
			.num_slots = 1, .length = below(2000), .local_addr = a->va,
			.lkey = a->rkey, .cookie = draw(), .local_counter = some_counter(),
		};
	}
}

/* One put, and all of it right. */
static void right_remote_get(struct vrnic_nhdr *h, struct vrnic_ndesc *d)
{
	*h = (struct vrnic_nhdr){ .op = VRNIC_NWIRE_RGET, .id = draw(), .data = sizeof(*d) };
	*d = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = below(2000),
		.local_addr = areas[OPEN].va, .lkey = areas[OPEN].rkey,
	};
}

/* To nothing that was asked, mostly. */
static void answer(struct vrnic_nhdr *h)
{
	h->op = VRNIC_NWIRE_ANSWER;
	h->id = one_in(2) ? below(8) : draw();
	h->pos = draw();
}

static void draw_header(struct vrnic_nhdr *h, u8 *data, u32 mtu)
{
	u64 word = draw();
	u32 at;

	memset(h, 0, sizeof(*h));
	for (at = 0; at < MAX_DATA; at += sizeof(word))
		memcpy(data + at, &word, sizeof(word));
	h->id = draw();
	h->counter[0] = some_counter();
	h->counter[1] = some_counter();
	switch (below(16)) {
	case 0 ... 3:
		put(h, data);
		break;
	case 4 ... 6:
		get(h, data);
		break;
	case 7:
		rmw(h);
		break;
	case 8 ... 9:
		letter(h);
		break;
	case 10 ... 11:
		type(h, data);
		break;
	case 12 ... 13:
		remote_get(h, data);
		break;
	case 14:
		small_puts(h, data, mtu - sizeof(struct vrnic_nwire));
		break;
	default:
		note(h);
	}
}

/* One field anything, or one that is at the edge. */
static void spoil(struct vrnic_nwire *w)
{
	static const u64 edges[] = { 0, 1, ~0ULL, 1ULL << 63, 1ULL << 31, 0xffffffff, 1 << 20 };
	u8 *at = (u8 *)w + below(sizeof(*w) / 8) * 8;
	u64 value = one_in(2) ? draw() : edges[below(7)];

	if (one_in(2))
		memcpy(at, &value, 8);
	else
		*((u8 *)w + below(sizeof(*w))) ^= 1 << below(8);
}

static u8 opcode(bool first, bool last)
{
	u8 op = first ? last ? VRNIC_BTH_SEND_ONLY : VRNIC_BTH_SEND_FIRST :
			last ? VRNIC_BTH_SEND_LAST : VRNIC_BTH_SEND_MIDDLE;

	return op | VRNIC_SVC_NATIVE;
}

/* A message in its packets; @cut: sometimes not all of them, or the wrong ones. */
static void message(struct target *t, struct pkt *pkt, const u8 *bytes, u32 total, bool cut,
		    void (*shoot)(bool right))
{
	u32 off = 0, n;

	do {
		n = total - off < t->mtu ? total - off : t->mtu;
		pkt_init(pkt, t, opcode(!off, off + n == total), t->psn);
		pkt->psn |= VRNIC_BTH_ACKREQ;
		if (cut && one_in(8))
			pkt->opcode = opcode(one_in(2), one_in(2));
		if (cut && one_in(32))
			pkt->opcode = VRNIC_SVC_NATIVE |
				      (one_in(2) ? VRNIC_BTH_SKIP_LAST : VRNIC_BTH_SKIP_ONLY);
		t->only[t->psn % PSNS_KEPT] = !off && off + n == total;
		if (cut && one_in(8))
			n = below(n + 1);
		memcpy(pkt->data, bytes + off, n);
		pkt->len = n;
		pkt->pad = -n & 3;
		shoot(!cut);
		t->psn = vrnic_psn_add(t->psn, 1);
		off += n;
	} while (n && off < total && !(cut && one_in(16)));
}

/* The first packet of a message, with bits that are wrong. */
static void flip(struct target *t, struct pkt *pkt, const u8 *bytes, u32 total)
{
	pkt_init(pkt, t, opcode(true, total <= t->mtu), t->psn);
	pkt->len = total < t->mtu ? total : t->mtu;
	pkt->pad = -pkt->len & 3;
	memcpy(pkt->data, bytes, pkt->len);
	pkt_send_spoilt(pkt, 1 + below(4), false, !one_in(6));
}

/*
 * What chance alone seldom gets to: the device puts something, because it has the time until the
 * link ends. It is refused, sometimes, and skipped.
 */
static void fetch(struct target *t, struct pkt *pkt, void (*shoot)(bool right))
{
	static u8 bytes[sizeof(struct vrnic_nwire) + sizeof(struct vrnic_ndesc)];
	struct vrnic_ndesc d;
	struct vrnic_nhdr h;
	struct vrnic_nwire w;
	u32 i;

	right_remote_get(&h, &d);
	vrnic_nwire_fill(&w, &h);
	memcpy(bytes, &w, sizeof(w));
	memcpy(bytes + sizeof(w), &d, sizeof(d));
	message(t, pkt, bytes, sizeof(bytes), false, shoot);
	t->awaits_put = true;
	for (i = 0; i < PUT_TIMES && t->awaits_put && !t->dead; i++) {
		wire_flush();
		wire_read(10);
	}
	t->awaits_put = false;
}

void native_shoot(struct target *t, struct pkt *pkt, void (*shoot)(bool right))
{
	static u8 bytes[sizeof(struct vrnic_nwire) + MAX_DATA];
	struct vrnic_nhdr h;
	struct vrnic_nwire w;
	bool odd = false;
	u32 n = 4 + below(24);

	if (one_in(2))
		fetch(t, pkt, shoot);
	while (n-- && !odd) {
		if (one_in(16))
			odd_hello(t);
		draw_header(&h, bytes + sizeof(w), t->mtu);
		if (one_in(32))
			answer(&h);
		vrnic_nwire_fill(&w, &h);
		odd = one_in(12);
		if (odd)
			spoil(&w);
		memcpy(bytes, &w, sizeof(w));
		if (h.op == VRNIC_NWIRE_PUTS && !odd) {
			last_puts.to = t;
			last_puts.psn = t->psn;
			last_puts.bytes = sizeof(w) + h.data;
			memcpy(last_puts.data, bytes, last_puts.bytes);
		}
		if (one_in(16))
			flip(t, pkt, bytes, sizeof(w) + h.data);
		message(t, pkt, bytes, sizeof(w) + h.data, odd && one_in(2), shoot);
		if (one_in(4)) {
			wire_flush();
			wire_read(0);
			native_poll();
		}
	}
}

/* Records make room for others. */
void native_poll(void)
{
	struct vrnic_record record;

	while (!raw_try(&fifo, &record))
		seen[SEEN_LINK_RECORDS]++;
}
