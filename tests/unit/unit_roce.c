// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requester and responder of the wire, the sources of the driver unchanged, at both ends of a
 * network that loses, repeats, delays, reorders and spoils packets, with a clock of its own.
 * A plain model of what IBTA allows checks them:
 *
 *  - requests are executed once each, and in their order;
 *  - nothing completes that has not happened, and all of it in order;
 *  - nothing is sent behind a fence before what is READ in front of it is there;
 *  - a READ returns data that was written before it, or newer data;
 *  - no more READs and atomics are outstanding than the peer keeps answers for;
 *  - an acknowledgment has the PSN of a SEND or WRITE, and all before it came;
 *  - no rightful invalidation of a region is an error;
 *  - a SEND whose region is still in use asks for it again after a while, not at once;
 *  - messages of a native link that fail are told of, and skipped, and no others;
 *  - messages of which parts fail are sent again from behind each part, and executed once.
 *
 * Each host is requester and responder at once. Data written is the number of the
 * operation and the place, so a check knows the operation that wrote a word.
 */
#include "queue/link_ops.h"
#include "queue/target.h"
#include "roce/req.h"
#include "roce/resp.h"
#include "verbs/flow.h"

#include "unit.h"

#define OPS		512	/* operations that are known of each side; a power of two */
#define WORDS		8192	/* of 8 bytes, that are written and read */
#define MOST		2560	/* words of the longest message: two chunks of a READ */
#define COUNTERS	4	/* words of atomics */
#define KEYS		4	/* of either kind; the first is never invalidated */
#define STALE		0xeeeeeeeeeeeeeeeeULL
#define MTU		256
#define PSNS		65536	/* that are remembered, of those on the way */
#define SOURCE_NONE	(~0ULL)
#define FIRST_KEY	0x100

enum kind {
	SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, ADD, SWAP, ATOMIC_WRITE, FLUSH,
	LOCAL_INV, BIND, NOP, NATIVE, KINDS,
};

/**
 * struct op - an operation
 * @source: number of the READ whose data it carries, or SOURCE_NONE
 * @at: word at the peer
 * @rkey: index of the key at the peer, @lkey of its own
 * @expect: atomics: what is there before
 * @fails: NATIVE: the peer refuses it; @told: it has said so
 * @parts: NATIVE: parts that the peer refuses one after the other; their number so far is the first
 *	word of the message
 * @data: what it sends, or what came
 * @was: READ: the operation that last wrote each word before
 */
struct op {
	u64 number, source;
	enum kind kind;
	bool fenced, fails, told;
	u32 parts;
	u32 at, words;
	u32 rkey, lkey;
	u64 expect, add, compare;
	u64 data[MOST + 1];
	u64 was[MOST];
};

struct key {
	u32 value;
	bool valid;
	u64 pending;	/* 1 + number of the operation that invalidates it */
};

/* What a PSN is of. */
enum of { NOTHING, DATA, READS, ATOMICS, OTHERS };

struct psn {
	u32 psn;
	u32 messages;	/* that end here or before; a READ ends where it begins */
	enum of of;
	bool came;
	bool asked;	/* a READ request began there */
	bool answered;
};

/**
 * struct side - one host, with the queue pair to the other one
 * @read, @written: bytes of its READs, and of its WRITEs, that are complete
 * @fetched, @stored: bytes of those of the peer that its completion counters have counted
 * @words, @counters, @copies: memory of the host, which the peer works on
 * @version: for the peer's words: the last operation that wrote each, in the order of the queue
 * @value: for the peer's counters: their value, in the order of the queue
 * @in_use: when the peer's SEND may ask again for a region that was in use
 * @next_psn: of its next new packet
 * @messages: that it has sent
 * @psns: what its packets are; @low: the first that did not come; @told: all before it
 *	that have answers of their own were answered
 * @asked: where READs and atomics end that were sent, in a circle
 * @reply_psn: of the next packet of the READ that it answers, if @in_reply
 * @link_got: bytes of the message of a native link that have come, into @inbox
 * @refused: it failed, and is to be skipped; @part: parts of it that were refused
 */
struct side {
	struct vrnic_qp qp;
	struct vrnic_dev dev;
	struct vrnic_ring_hdr hdr;
	struct side *peer;
	struct op *ops;
	u64 posted, completed, received, last_read;
	u32 receives;
	u64 read, written, fetched, stored;
	u64 *words, *counters, *copies;
	u64 *version, *value;
	u64 aw[COUNTERS];
	struct key rkeys[KEYS], lkeys[KEYS];
	u64 in_use;
	u64 inbox[MOST + 1];
	u32 next_psn, messages, low, told;
	struct psn *psns;
	u64 asked[256];
	u32 asked_head, asked_tail;
	u32 reply_psn;
	bool in_reply;
	u32 link_got, part;
	bool refused;
};

/**
 * struct scenario - a network, and its traffic
 * @loss: of 1000 packets that a sends, and that b sends
 * @late: of 1000 that come later than others, by up to @later
 * @wrong: of 1000 packets, receives and completions that are said to be wrong
 * @paged: of 1000 looks at memory of an operation that find a page missing
 * @link: the queue pairs are those of a native link; @fails: of 1000 messages
 */
struct scenario {
	const char *name;
	u32 seed;
	u64 ops;
	u32 loss[2], twice, late, spoiled, not_ready, held, wrong, paged;
	u64 delay, later;
	u32 max_rd, window;
	bool link;
	u32 fails;
};

static const struct scenario *now_in;
static struct side sides[2];
static u64 now, progress_at, seed, total_ops, total_packets, total_coupled;
static bool broken;

#define FAIL(...)							\
	do {								\
		if (!broken) {						\
			printf("# %s, seed %u, at %llu ns: ", now_in->name,	\
			       now_in->seed, (unsigned long long)now);	\
			printf(__VA_ARGS__);				\
			printf("\n");					\
		}							\
		broken = true;						\
		unit_bad = 1;						\
	} while (0)

static u32 draw(u32 n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(seed >> 33) % n;
}

static bool chance(u32 of_1000)
{
	return of_1000 && draw(1000) < of_1000;
}

static void maybe_wrong(void)
{
	if (chance(now_in->wrong))
		FAIL("this was to be wrong");
}

static struct side *side_of(const struct vrnic_qp *qp)
{
	return container_of(qp, struct side, qp);
}

static struct side *side_of_user(const struct vrnic_key_user *user)
{
	return container_of(user, struct side, qp.key_user);
}

static struct op *op_at(struct side *s, u64 number)
{
	return &s->ops[number % OPS];
}

static u64 word_of(u64 number, u32 at)
{
	return (number + 1) << 16 | (at & 0xffff);
}

u64 ktime_get_ns(void)
{
	return now;
}

/* ---- packets, and the network ---- */

static struct sk_buff *spare, *on_the_way[4096];
static u32 nr_on_the_way;
static long alive;
static u64 order;

/**
 * struct packet - a packet, or the first of a train
 * @behind: the next packet of the train
 */
struct packet {
	struct sk_buff skb;
	struct side *to;
	u64 order;
	struct packet *behind;
	u8 bytes[MTU];
};

static struct packet *packet_of(struct sk_buff *skb)
{
	return container_of(skb, struct packet, skb);
}

void kfree_skb(struct sk_buff *skb)
{
	struct packet *p = packet_of(skb), *behind;

	for (; p; p = behind) {
		behind = p->behind;
		p->behind = NULL;
		p->skb.next = spare;
		spare = &p->skb;
		alive--;
	}
}

static struct packet *new_packet(void)
{
	struct packet *p;

	if (spare) {
		p = container_of(spare, struct packet, skb);
		spare = spare->next;
	} else {
		p = malloc(sizeof(*p));
	}
	alive++;
	return p;
}

static void free_spares(void)
{
	struct sk_buff *skb;

	while ((skb = spare)) {
		spare = skb->next;
		free(container_of(skb, struct packet, skb));
	}
}

int skb_copy_bits(const struct sk_buff *skb, int off, void *to, int len)
{
	memcpy(to, skb->data + off, len);
	return 0;
}

/* Nobody forges packets here: what has the same number says the same. */
bool vrnic_pkt_same(struct sk_buff *a, struct sk_buff *b)
{
	return vrnic_pkt(a)->opcode == vrnic_pkt(b)->opcode;
}

/* ---- packets that wait: there is room for all of them ---- */

bool vrnic_room_put(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *prev,
		    struct sk_buff *skb)
{
	if (prev)
		__skb_queue_after(list, prev, skb);
	else
		__skb_queue_head(list, skb);
	return true;
}

void vrnic_room_take(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *skb)
{
	__skb_unlink(skb, list);
}

struct sk_buff *vrnic_rxq_take(struct vrnic_qp *qp)
{
	return __skb_dequeue(&qp->rxq);
}

void vrnic_rxq_return(struct vrnic_qp *qp, struct sk_buff *skb)
{
	__skb_queue_head(&qp->rxq, skb);
}

void vrnic_rxq_purge(struct vrnic_qp *qp)
{
	skb_queue_purge(&qp->rxq);
}

/* Of datagrams' targets, of which there are none. */
bool vrnic_target_catch(struct vrnic_qp *qp)
{
	return true;
}

void vrnic_target_unlock(struct vrnic_qp *qp)
{
}

static bool is_before(const struct sk_buff *a, const struct sk_buff *b)
{
	if (a->tstamp != b->tstamp)
		return a->tstamp < b->tstamp;
	return container_of(a, struct packet, skb)->order <
	       container_of(b, struct packet, skb)->order;
}

/* A heap: the first to arrive is at the top. */
static void put_on_the_way(struct sk_buff *skb)
{
	u32 i = nr_on_the_way++;

	while (i && is_before(skb, on_the_way[(i - 1) / 2])) {
		on_the_way[i] = on_the_way[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	on_the_way[i] = skb;
}

static struct sk_buff *take_first(void)
{
	struct sk_buff *first = on_the_way[0], *last = on_the_way[--nr_on_the_way];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < nr_on_the_way) {
		if (child + 1 < nr_on_the_way &&
		    is_before(on_the_way[child + 1], on_the_way[child]))
			child++;
		if (!is_before(on_the_way[child], last))
			break;
		on_the_way[i] = on_the_way[child];
		i = child;
	}
	on_the_way[i] = last;
	return first;
}

static void network_send(struct side *from, const struct packet *what)
{
	struct packet *p;

	if (nr_on_the_way == ARRAY_SIZE(on_the_way) || chance(now_in->loss[from == &sides[1]]))
		return;
	p = new_packet();
	*p = *what;
	p->skb.data = p->bytes;
	p->behind = NULL;
	p->skb.tstamp = now + now_in->delay;
	if (chance(now_in->late))
		p->skb.tstamp += draw(now_in->later);
	p->to = from->peer;
	p->order = order++;
	vrnic_pkt(&p->skb)->spoiled = chance(now_in->spoiled);
	put_on_the_way(&p->skb);
}

/* ---- checks of the packets that are sent ---- */

static struct psn *psn_at(struct side *s, u32 psn)
{
	return &s->psns[(psn & VRNIC_PSN_MASK) % PSNS];
}

static bool is_fetched(struct side *s, u64 number)
{
	const struct op *op = op_at(s, number);
	u32 i;

	if (op->kind == ADD || op->kind == SWAP)
		return op->data[0] != STALE;
	for (i = 0; op->kind == READ && i < op->words; i++)
		if (op->data[i] == STALE)
			return false;
	return true;
}

/* All that is READ in front of @number is there. */
static void check_fence(struct side *s, u64 number)
{
	u64 k;

	for (k = s->completed; k < number; k++)
		if (!is_fetched(s, k))
			FAIL("%llu is behind a fence, and %llu was not fetched",
			     (unsigned long long)number, (unsigned long long)k);
}

static enum of of_info(u32 info)
{
	if (info & VRNIC_PKT_DATA)
		return DATA;
	if (info & VRNIC_PKT_READ)
		return READS;
	return info & VRNIC_PKT_ATOMIC ? ATOMICS : OTHERS;
}

/* No more than the peer keeps: of those that were sent and are not settled. */
static void check_asked(struct side *s, u64 end)
{
	while (s->asked_head != s->asked_tail &&
	       s->asked[s->asked_head % ARRAY_SIZE(s->asked)] <= s->qp.roce->req.fly.una)
		s->asked_head++;
	s->asked[s->asked_tail++ % ARRAY_SIZE(s->asked)] = end;
	if (s->asked_tail - s->asked_head > now_in->max_rd)
		FAIL("%u READs and atomics are asked for", s->asked_tail - s->asked_head);
}

static u32 psns_of(const struct vrnic_pkt *pkt)
{
	const struct vrnic_reth *reth = (const void *)pkt->ext;

	return pkt->info & VRNIC_PKT_READ ?
		       vrnic_psn_count(be32_to_cpu(reth->len), MTU) : 1;
}

/* An answer that is here and waits for a page is not missing, so it is not asked for again. */
static void check_again(const struct side *s, const struct vrnic_pkt *pkt)
{
	const struct vrnic_req *q = &s->qp.roce->req;

	if (q->answer_at && q->went_back == q->fly.una)
		FAIL("%x is sent again, and the answer that is missing waits for a page", pkt->psn);
}

static void check_request(struct side *s, const struct vrnic_pkt *pkt)
{
	const struct op *op = op_at(s, vrnic_op_desc(&s->qp.op)->cookie);
	u32 n = psns_of(pkt), i;

	if (op->fenced)
		check_fence(s, op->number);
	if (vrnic_psn_diff(pkt->psn, s->next_psn) < 0) {
		check_again(s, pkt);
		return;
	}
	if (pkt->psn != s->next_psn)
		FAIL("PSN %x is sent, where %x is next", pkt->psn, s->next_psn);
	if (pkt->info & VRNIC_PKT_ANSWERED)
		check_asked(s, vrnic_psn_extend(vrnic_psn_add(pkt->psn, n),
						s->qp.roce->req.fly.una));
	if (pkt->info & (VRNIC_PKT_END | VRNIC_PKT_ANSWERED))
		s->messages++;
	for (i = 0; i < n; i++)
		*psn_at(s, pkt->psn + i) = (struct psn) {
			.psn = vrnic_psn_add(pkt->psn, i), .of = of_info(pkt->info),
			.messages = s->messages,
		};
	s->next_psn = vrnic_psn_add(pkt->psn, n);
}

static void check_ack(struct side *to, const struct vrnic_pkt *pkt)
{
	u8 syndrome = vrnic_aeth_syndrome((const void *)pkt->ext);
	const struct psn *p = psn_at(to, pkt->psn);
	s32 ahead = vrnic_psn_diff(pkt->psn, to->low);

	if ((syndrome & VRNIC_AETH_KIND) != VRNIC_AETH_ACK) {
		if (ahead > 0)
			FAIL("a NAK of %x, and %x has not come", pkt->psn, to->low);
		return;
	}
	if (ahead >= 0)
		FAIL("%x is acknowledged, and %x has not come", pkt->psn, to->low);
	if (p->psn != pkt->psn || p->of != DATA)
		FAIL("%x is acknowledged, which is no SEND or WRITE", pkt->psn);
}

/* An answer to a READ begins as what it is, wherever the request did. */
static void check_reply(struct side *s, const struct vrnic_pkt *pkt)
{
	if (pkt->info & VRNIC_PKT_START) {
		if (!psn_at(s->peer, pkt->psn)->asked)
			FAIL("an answer begins at %x, where no request did", pkt->psn);
		if (s->in_reply)
			FAIL("%x is answered before the answer is over that %x is of",
			     pkt->psn, s->reply_psn);
	} else if (!s->in_reply || pkt->psn != s->reply_psn) {
		FAIL("an answer goes on at %x, and never began", pkt->psn);
	}
	s->in_reply = !(pkt->info & VRNIC_PKT_END);
	s->reply_psn = vrnic_psn_add(pkt->psn, 1);
}

/* No request is left out, and none answered before its turn. */
static void check_order(struct side *to, u32 psn)
{
	const struct psn *p;

	for (; vrnic_psn_diff(to->told, psn) < 0; to->told = vrnic_psn_add(to->told, 1)) {
		p = psn_at(to, to->told);
		if (p->of != DATA && !p->answered)
			FAIL("%x is answered, and %x never was", psn, to->told);
	}
}

/* The MSN of an answer counts the message that is answered: IBTA 9.7.7. */
static void check_msn(struct side *to, const struct vrnic_pkt *pkt)
{
	u32 msn = be32_to_cpu(((const struct vrnic_aeth *)pkt->ext)->v) & VRNIC_AETH_MSN;
	u32 least = psn_at(to, pkt->psn)->messages & VRNIC_AETH_MSN;

	if (vrnic_psn_diff(msn, least) < 0 || vrnic_psn_diff(to->messages, msn) < 0)
		FAIL("the answer to %x has MSN %u, and %u messages end there or before, of %u",
		     pkt->psn, msn, least, to->messages);
}

static void check_answer(struct side *s, const struct vrnic_pkt *pkt)
{
	enum of of = psn_at(s->peer, pkt->psn)->of;

	check_order(s->peer, pkt->psn);
	if (pkt->info & VRNIC_PKT_AETH &&
	    (vrnic_aeth_syndrome((const void *)pkt->ext) & VRNIC_AETH_KIND) == VRNIC_AETH_ACK)
		check_msn(s->peer, pkt);
	if (pkt->opcode == VRNIC_BTH_ACK) {
		check_ack(s->peer, pkt);
		return;
	}
	if (!psn_at(s->peer, pkt->psn)->came)
		FAIL("an answer to %x, which has not come", pkt->psn);
	if (pkt->opcode == VRNIC_BTH_ATOMIC_ACK ? of != ATOMICS : of != READS && of != OTHERS)
		FAIL("the answer to %x is of another kind", pkt->psn);
	psn_at(s->peer, pkt->psn)->answered = true;
	if (of == READS)
		check_reply(s, pkt);
}

/* An intact packet arrives. */
static void note_arrival(struct side *s, const struct vrnic_pkt *pkt)
{
	struct side *from = s->peer;
	u32 n = psns_of(pkt), i;

	for (i = 0; i < n; i++)
		psn_at(from, pkt->psn + i)->came = true;
	if (pkt->info & VRNIC_PKT_READ)
		psn_at(from, pkt->psn)->asked = true;
	while (from->low != from->next_psn && psn_at(from, from->low)->came)
		from->low = vrnic_psn_add(from->low, 1);
}

/* ---- the rest of the driver: packets ---- */

int vrnic_roce_xmit(struct vrnic_qp *qp, struct vrnic_path *path, struct vrnic_tx *tx)
{
	struct side *s = side_of(qp);
	struct packet p = { 0 };
	struct vrnic_pkt *pkt = vrnic_pkt(&p.skb);

	*pkt = (struct vrnic_pkt) {
		.info = vrnic_pkt_info(tx->opcode), .psn = tx->psn & VRNIC_PSN_MASK,
		.opcode = tx->opcode, .ackreq = tx->ackreq, .solicited = tx->solicited,
		.len = tx->len,
	};
	if (tx->ext_len != vrnic_ext_len(pkt->info))
		FAIL("%u bytes of headers in packet %x", tx->ext_len, tx->opcode);
	memcpy(pkt->ext, tx->ext, tx->ext_len);
	if (tx->len && pkt->info & VRNIC_PKT_RESP && !tx->copy)
		FAIL("packet %x, an answer, lends memory that its owner may write to", tx->opcode);
	if (tx->len) {
		memcpy(p.bytes, tx->src->seg[0].kva + tx->src->pos, tx->len);
		tx->src->pos += tx->len;
	}
	p.skb.len = tx->len + 16;
	p.skb.source = 0xc000;
	if (pkt->info & VRNIC_PKT_RESP)
		check_answer(s, pkt);
	else
		check_request(s, pkt);
	maybe_wrong();
	total_packets++;
	network_send(s, &p);
	if (chance(now_in->twice))
		network_send(s, &p);
	return 0;
}

void vrnic_roce_push(struct vrnic_qp *qp)
{
}

void vrnic_burst_drop(struct vrnic_burst *b)
{
}

int vrnic_path_init(struct vrnic_path *path, struct vrnic_dev *dev, const union ib_gid *sgid,
		    const struct rdma_ah_attr *attr, int oif, u32 sqpn, u32 dqpn)
{
	return 0;
}

void vrnic_path_drop(struct vrnic_path *path)
{
}

void vrnic_wire_join(struct vrnic_wire *w, struct vrnic_qp *qp)
{
}

void vrnic_roce_leave(struct vrnic_qp *qp)
{
}

bool vrnic_pkt_is_from(struct sk_buff *skb, const struct vrnic_path *path)
{
	return true;
}

bool vrnic_pkt_intact(struct sk_buff *skb)
{
	return !vrnic_pkt(skb)->spoiled;
}

/* The last goes to the head of the queue first. */
static void put_back(struct vrnic_qp *qp, struct packet *p)
{
	if (!p)
		return;
	put_back(qp, p->behind);
	p->behind = NULL;
	vrnic_rxq_return(qp, &p->skb);
}

void vrnic_pkt_uncouple(struct vrnic_qp *qp, struct sk_buff *skb)
{
	struct packet *p = packet_of(skb);

	vrnic_pkt(skb)->train = false;
	put_back(qp, p->behind);
	p->behind = NULL;
}

void vrnic_pkt_copy(struct sk_buff *skb, struct vrnic_sgl *dst, bool final)
{
	struct packet *p;

	for (p = packet_of(skb); p; p = p->behind)
		vrnic_sgl_write(dst, p->bytes, vrnic_pkt(skb)->len, final && !p->behind);
}

void vrnic_ud_receive(struct vrnic_qp *qp, struct sk_buff *skb)
{
	kfree_skb(skb);
}

u64 vrnic_rate_room(struct vrnic_qp *qp, u64 *until)
{
	if (!chance(now_in->held))
		return VRNIC_RATE_ANY;
	*until = now + 20 * NSEC_PER_USEC;
	return 0;
}

void vrnic_rate_congested(struct vrnic_qp *qp)
{
}

void vrnic_rate_notified(struct vrnic_qp *qp)
{
}

void vrnic_rate_marked(struct vrnic_qp *qp, u32 packets)
{
}

void vrnic_queue_at(struct vrnic_runnable *r, u64 at)
{
	if (!r->at || r->at > at)
		r->at = at;
}

void vrnic_queue_after(struct vrnic_runnable *r, u64 ns)
{
	vrnic_queue_at(r, now + ns);
}

u32 vrnic_rnr_ns(u8 code)
{
	return 30 * NSEC_PER_USEC;
}

int vrnic_gid_oif(struct vrnic_dev *dev, const struct ib_gid_attr *attr)
{
	return 0;
}

/* ---- the rest of the driver: states ---- */

void vrnic_qp_error(struct vrnic_qp *qp, int event)
{
	FAIL("the queue pair %u fails, event %d", qp->qpn, event);
	qp->state = IB_QPS_ERR;
}

void vrnic_qp_event(struct vrnic_qp *qp, int event)
{
}

void vrnic_sq_error(struct vrnic_qp *qp)
{
	vrnic_qp_error(qp, 0);
}

void vrnic_hold_release(struct vrnic_qp *qp)
{
}

void vrnic_hold_regions_put(struct vrnic_hold *hold)
{
}

/* These queue pairs are none of XRC. */

u32 vrnic_pkt_srqn(struct sk_buff *skb)
{
	return 0;
}

int vrnic_xrc_bind(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn)
{
	return -EINVAL;
}

int vrnic_xrc_request(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn)
{
	return -EINVAL;
}

/* ---- the rest of the driver: memory ---- */

void vrnic_sgl_kva(struct vrnic_sgl *sgl, void *kva, u64 len)
{
	*sgl = (struct vrnic_sgl) { .nr = 1, .seg[0] = { kva, len } };
}

void vrnic_sgl_write(struct vrnic_sgl *dst, const void *from, u64 n, bool final)
{
	if (dst->pos + n > dst->seg[0].len)
		FAIL("%llu bytes are written behind the end", (unsigned long long)n);
	else if (n)
		memcpy(dst->seg[0].kva + dst->pos, from, n);
	dst->pos += n;
}

/* Memory that is paged on demand: some of the bytes are not there, and are when asked again. */
int vrnic_sgl_ready(struct vrnic_sgl *sgl, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait)
{
	if (*n && chance(now_in->paged))
		*n = draw(*n);
	return 0;
}

int vrnic_sgl_ready_all(struct vrnic_sgl *sgl, u64 n, bool write, struct vrnic_page_wait *wait)
{
	u64 some = n;

	vrnic_sgl_ready(sgl, &some, n, write, wait);
	return some < n ? -EAGAIN : 0;
}

static int check_key(const struct key *keys, u32 value)
{
	const struct key *key = &keys[value % KEYS];

	return key->valid && key->value == value ? 0 : VRNIC_VERR_KEY;
}

int vrnic_seg_remote(const struct vrnic_key_user *user, u32 rkey, u64 addr, u64 len,
		     int access, struct vrnic_held *held, struct vrnic_seg *seg)
{
	*seg = (struct vrnic_seg) { (u8 *)(uintptr_t)addr, len };
	return check_key(side_of_user(user)->rkeys, rkey);
}

int vrnic_seg_whole(const struct vrnic_key_user *user, u32 rkey, int access,
		    struct vrnic_seg *seg)
{
	return check_key(side_of_user(user)->rkeys, rkey);
}

int vrnic_sgl_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge, u32 nr,
		    int access, struct vrnic_held *held, struct vrnic_sgl *sgl)
{
	struct side *s = side_of_user(user);

	if (!nr) {
		*sgl = (struct vrnic_sgl) { 0 };
		return 0;
	}
	vrnic_sgl_kva(sgl, (void *)(uintptr_t)sge->addr, sge->length);
	/* a receive's is always valid */
	return held == &s->qp.hold.recv ? 0 : check_key(s->lkeys, sge->lkey);
}

static void renew(struct key *key)
{
	key->value += KEYS;
	key->valid = true;
}

int vrnic_key_invalidate(const struct vrnic_key_user *user, u32 value, bool remote)
{
	struct side *s = side_of_user(user);
	struct key *key = &(remote ? s->rkeys : s->lkeys)[value % KEYS];

	if (remote && now < s->in_use)
		FAIL("a region in use is asked for again %llu ns too early",
		     (unsigned long long)(s->in_use - now));
	if (chance(200)) {
		if (remote)
			s->in_use = now + VRNIC_TARGET_BUSY_NS;
		return -EAGAIN;
	}
	if (!key->valid || key->value != value)
		return VRNIC_VERR_KEY;
	if (!remote && vrnic_op_desc(&s->qp.op)->cookie != s->completed)
		FAIL("%llu is invalidated, and %llu is not complete",
		     (unsigned long long)vrnic_op_desc(&s->qp.op)->cookie,
		     (unsigned long long)s->completed);
	key->valid = false;
	return 0;
}

int vrnic_mw_bind(const struct vrnic_key_user *user, const struct vrnic_desc *d)
{
	struct side *s = side_of_user(user);

	if (op_at(s, d->cookie)->fenced)
		check_fence(s, d->cookie);
	return 0;
}

int vrnic_mr_fast_reg(const struct vrnic_key_user *user, const struct vrnic_desc *d)
{
	return 0;
}

/* ---- a native link ---- */

static struct side *running;

static void describe(struct side *s, struct op *op, struct vrnic_desc *d);

static void link_open(struct vrnic_sgl *sgl, u64 cookie)
{
	struct op *op = op_at(running, cookie);

	vrnic_sgl_kva(sgl, op->data, 8 * op->words);
}

/* Why a message fails: a status, and in the 8 bits above it what tells it from others. */
static u32 why_fails(const struct op *op)
{
	return IB_WC_REM_ACCESS_ERR | (op->number & 0xff) << 8;
}

static enum vrnic_refusal link_refused(struct vrnic_link *link, u64 cookie, u32 why)
{
	struct op *op = op_at(running, cookie);
	u32 part = why >> 16;

	if (op->told)
		FAIL("message %llu is refused twice", (unsigned long long)op->number);
	if (!(op->fails || part < op->parts) || (why & 0xffff) != why_fails(op))
		FAIL("message %llu is refused for reason %x", (unsigned long long)op->number, why);
	if (op->fails) {
		op->told = true;
		return VRNIC_REFUSAL_SKIP;
	}
	if (part < op->data[0])
		return VRNIC_REFUSAL_OLD;
	if (part > op->data[0])
		FAIL("message %llu: part %u is refused, and not the one before",
		     (unsigned long long)op->number, part);
	op->data[0] = part + 1;
	return VRNIC_REFUSAL_REST;
}

/* What has come of the message that is being received. */
static void link_take(struct side *s, struct sk_buff *skb)
{
	u32 len = vrnic_pkt(skb)->len;
	struct packet *p;

	for (p = packet_of(skb); p; p = p->behind, s->link_got += len)
		if (s->link_got + len <= sizeof(s->inbox))
			memcpy((u8 *)s->inbox + s->link_got, p->bytes, len);
}

static void link_execute(struct side *s, struct op *op)
{
	if (s->link_got != 8 * op->words || memcmp(s->inbox, op->data, s->link_got))
		FAIL("message %llu: wrong data", (unsigned long long)op->number);
	s->link_got = 0;
	s->part = 0;
	s->received++;
}

/* The first word of a message of which parts fail. */
static u64 begins_with(struct sk_buff *skb)
{
	u64 word;

	memcpy(&word, packet_of(skb)->bytes, sizeof(word));
	return word;
}

/* Is it the message whose parts were refused, behind the last one of them? */
static bool is_rest(const struct side *s, const struct op *op, struct sk_buff *skb)
{
	u64 from = op->parts ? begins_with(skb) : 0;

	if (op->parts && from > s->part)
		FAIL("message %llu begins with part %llu, and %u were refused",
		     (unsigned long long)op->number, (unsigned long long)from, s->part);
	return op->parts && from == s->part;
}

static int link_receive(struct vrnic_link *link, struct sk_buff *skb, u32 *why)
{
	const struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct side *s = (struct side *)link;
	struct op *op = op_at(s->peer, s->received);
	bool skip = pkt->info & VRNIC_PKT_SKIP;

	*why = why_fails(op) | (s->part ? s->part - 1 : 0) << 16;
	if (skip && (!s->refused || op->parts))
		FAIL("message %llu is skipped unasked", (unsigned long long)op->number);
	if (s->refused && !skip && !is_rest(s, op, skb))
		return -EREMOTEIO;
	if (pkt->info & VRNIC_PKT_START && !skip) {
		if (chance(now_in->not_ready))
			return -EAGAIN;
		s->link_got = 0;
	}
	if (!skip)
		link_take(s, skb);
	if (!(pkt->info & VRNIC_PKT_END))
		return 0;
	s->refused = (op->fails && !skip) || s->part < op->parts;
	if (s->part < op->parts)
		*why = why_fails(op) | s->part++ << 16;
	if (s->refused)
		return -EREMOTEIO;
	link_execute(s, op);
	return 0;
}

static u32 link_left(const struct vrnic_link *link)
{
	const struct side *s = (const struct side *)link;

	/* between messages, nothing is to come of the one that was last */
	return s->refused || !s->link_got ? 0 :
		8 * op_at(s->peer, s->received)->words - s->link_got;
}

static bool link_light(struct vrnic_link *link, struct sk_buff *skb)
{
	return draw(4);
}

static void link_describe(u64 cookie, struct vrnic_desc *d)
{
	describe(running, op_at(running, cookie), d);
}

/* There is not always memory. */
static void *link_alloc(struct vrnic_link *link, size_t bytes, bool patient)
{
	return draw(4) ? calloc(1, bytes) : NULL;
}

static void link_congested(struct vrnic_link *link, bool lost)
{
}

static const struct vrnic_link_ops link_ops = {
	.open = link_open, .refused = link_refused, .receive = link_receive, .left = link_left,
	.light = link_light, .describe = link_describe, .alloc = link_alloc,
	.congested = link_congested,
};

static void check_native(struct side *s, const struct op *op)
{
	if (s->peer->received <= op->number)
		FAIL("message %llu is complete, and was not received",
		     (unsigned long long)op->number);
	if (op->told != op->fails || (op->parts && op->data[0] != op->parts))
		FAIL("message %llu failed, and its sender was not told",
		     (unsigned long long)op->number);
}

/* ---- descriptors, as the process posts them ---- */

static const u8 opcodes[KINDS] = {
	[SEND] = VRNIC_OP_SEND, [SEND_IMM] = VRNIC_OP_SEND_WITH_IMM,
	[SEND_INV] = VRNIC_OP_SEND_WITH_INV, [WRITE] = VRNIC_OP_RDMA_WRITE,
	[WRITE_IMM] = VRNIC_OP_RDMA_WRITE_WITH_IMM, [READ] = VRNIC_OP_RDMA_READ,
	[ADD] = VRNIC_OP_ATOMIC_FETCH_AND_ADD, [SWAP] = VRNIC_OP_ATOMIC_CMP_AND_SWP,
	[ATOMIC_WRITE] = VRNIC_OP_ATOMIC_WRITE, [FLUSH] = VRNIC_OP_FLUSH,
	[LOCAL_INV] = VRNIC_OP_LOCAL_INV, [BIND] = VRNIC_OP_BIND_MW, [NOP] = VRNIC_OP_NOP,
	[NATIVE] = VRNIC_OP_NATIVE,
};

static bool is_send(const struct op *op)
{
	return op->kind <= SEND_INV;
}

static bool is_write(const struct op *op)
{
	return op->kind == WRITE || op->kind == WRITE_IMM;
}

static bool takes_receive(const struct op *op)
{
	return is_send(op) || op->kind == WRITE_IMM;
}

/* Where a WRITE of what was READ goes: to a place of its own. */
static u64 *copy_at(struct side *to, u64 number)
{
	return to->copies + number % OPS * MOST;
}

static u64 *data_of(struct side *s, struct op *op)
{
	return op->source == SOURCE_NONE ? op->data : op_at(s, op->source)->data;
}

static u64 *target_of(struct side *s, const struct op *op)
{
	if (op->kind == ADD || op->kind == SWAP)
		return s->peer->counters + op->at;
	if (op->kind == ATOMIC_WRITE)
		return s->peer->aw + op->at;
	return op->source == SOURCE_NONE ? s->peer->words + op->at :
					   copy_at(s->peer, op->number);
}

static void describe_atomic(struct op *op, struct vrnic_desc *d)
{
	d->atomic.swap_add = op->add;
	d->atomic.compare = op->compare;
}

/* Bytes of the first packet, if it is not full: there is something behind it. */
static u32 native_head(const struct op *op)
{
	u32 most = min_t(u32, op->words - 1, 256 / 8);

	return op->words < 2 || op->number % 2 ? 0 : 8 * (1 + op->number / 2 % most);
}

static void describe(struct side *s, struct op *op, struct vrnic_desc *d)
{
	*d = (struct vrnic_desc) {
		.opcode = opcodes[op->kind], .num_slots = 1, .cookie = op->number,
		.flags = VRNIC_DESC_SIGNALED | (op->fenced ? VRNIC_DESC_FENCE : 0),
		.remote_addr = (uintptr_t)target_of(s, op),
		.rkey = s->peer->rkeys[op->rkey].value,
		.num_sge = !!op->words,
		.sge[0] = {
			.addr = (uintptr_t)data_of(s, op), .length = 8 * op->words,
			.lkey = s->lkeys[op->lkey].value,
		},
	};
	d->imm = op->number;
	if (op->kind == SEND_INV)
		d->imm = d->rkey;
	else if (op->kind == LOCAL_INV)
		d->imm = s->lkeys[op->lkey].value;
	else if (op->kind == NATIVE)
		d->imm = native_head(op);
	else if (op->kind == FLUSH)
		d->flush = VRNIC_FLUSH_GLOBAL;
	else if (op->kind == ADD || op->kind == SWAP)
		describe_atomic(op, d);
	if (op->kind == ATOMIC_WRITE) {
		d->flags |= VRNIC_DESC_INLINE;
		d->inline_len = 8;
		memcpy(d->data, op->data, 8);
	}
}

bool vrnic_sq_fetch(struct vrnic_qp *qp, u32 ahead)
{
	struct side *s = side_of(qp);

	if (s->completed + ahead >= s->posted)
		return false;
	describe(s, op_at(s, s->completed + ahead), vrnic_op_desc(&qp->op));
	qp->op.active = true;
	qp->op.done = 0;
	qp->op.total = 0;
	qp->op.status = 0;
	qp->op.vendor_err = 0;
	qp->op.info = NULL;
	return true;
}

/* ---- operations, drawn ---- */

/* Small ones are frequent, and those around a packet's end; a few are long. */
static u32 draw_words(void)
{
	switch (draw(16)) {
	case 0:
		return draw(MOST);
	case 1 ... 3:
		return draw(10 * MTU / 8);
	case 4 ... 6:
		return MTU / 8 * draw(4) + draw(3);
	default:
		return draw(8);
	}
}

static u32 draw_key(const struct key *keys)
{
	u32 key = draw(KEYS);

	return keys[key].pending ? 0 : key;
}

static void draw_data(struct side *s, struct op *op)
{
	u32 i;

	for (i = 0; i < op->words; i++)
		op->data[i] = word_of(op->number, op->at + i);
	for (i = 0; is_write(op) && i < op->words; i++)
		s->version[op->at + i] = op->data[i];
}

static void draw_read(struct side *s, struct op *op)
{
	u32 i;

	for (i = 0; i < op->words; i++) {
		op->was[i] = s->version[op->at + i];
		op->data[i] = STALE;
	}
	if (op->words)
		s->last_read = op->number;
}

static void draw_atomic(struct side *s, struct op *op)
{
	op->at = draw(COUNTERS);
	op->words = 1;
	op->data[0] = STALE;
	op->expect = s->value[op->at];
	op->add = op->number * 2 + 1;
	op->compare = op->expect + draw(2);
	if (op->kind == ADD)
		s->value[op->at] += op->add;
	else if (op->compare == op->expect)
		s->value[op->at] = op->add;
}

static void draw_atomic_write(struct op *op)
{
	op->at = draw(COUNTERS);
	op->words = 1;
	op->data[0] = word_of(op->number, 0);
}

static void draw_invalidation(struct op *op, struct key *keys, u32 *index)
{
	*index = draw(KEYS);
	if (!*index || keys[*index].pending) {
		op->kind = op->kind == SEND_INV ? SEND : NOP;
		*index = 0;
		return;
	}
	keys[*index].pending = op->number + 1;
	/* READs by the key have to be done */
	op->fenced = true;
}

/* Carry on what the last READ fetches, if it may still be on its way. */
static void draw_source(struct side *s, struct op *op)
{
	if (s->last_read == SOURCE_NONE || s->last_read < s->completed || !chance(500))
		return;
	op->source = s->last_read;
	op->words = op_at(s, op->source)->words;
	op->fenced = true;
}

static void draw_op(struct side *s, struct op *op)
{
	static const u8 often[] = {
		SEND, SEND, SEND_IMM, SEND_INV, WRITE, WRITE, WRITE, WRITE, WRITE_IMM, READ,
		READ, READ, READ, ADD, ADD, SWAP, ATOMIC_WRITE, FLUSH, LOCAL_INV, BIND, NOP,
	};

	op->number = s->posted;
	op->source = SOURCE_NONE;
	op->kind = now_in->link ? NATIVE : often[draw(ARRAY_SIZE(often))];
	op->fenced = !now_in->link && chance(150);
	op->fails = now_in->link && chance(now_in->fails);
	op->told = false;
	op->parts = 0;
	op->words = draw_words() + now_in->link;
	op->at = draw(WORDS - op->words);
	op->rkey = draw_key(s->peer->rkeys);
	op->lkey = draw_key(s->lkeys);
	if (op->kind == SEND_INV)
		draw_invalidation(op, s->peer->rkeys, &op->rkey);
	if (op->kind == LOCAL_INV)
		draw_invalidation(op, s->lkeys, &op->lkey);
	if (is_send(op) || is_write(op))
		draw_source(s, op);
	if (op->kind == READ)
		draw_read(s, op);
	else if (op->kind == ADD || op->kind == SWAP)
		draw_atomic(s, op);
	else if (op->kind == ATOMIC_WRITE)
		draw_atomic_write(op);
	else if (op->kind > ATOMIC_WRITE && op->kind != NATIVE)
		op->words = 0;
	else if (op->source == SOURCE_NONE)
		draw_data(s, op);
	if (op->fails && op->words <= MTU / sizeof(u64) && !native_head(op) && draw(2)) {
		op->fails = false;
		op->parts = 1 + draw(3);
		op->data[0] = 0;
	}
}

static void post_some(struct side *s)
{
	u32 n = 1 + draw(8);

	while (n-- && s->posted < now_in->ops && s->posted - s->completed < now_in->window) {
		draw_op(s, op_at(s, s->posted));
		s->posted++;
	}
	s->hdr.prod = s->posted;
	s->qp.posted = s->posted;
}

/* ---- checks of completions ---- */

static void check_read(struct side *s, const struct op *op)
{
	u64 seen;
	u32 i;

	for (i = 0; i < op->words; i++) {
		seen = op->data[i];
		if (seen == op->was[i] || (seen != STALE && (u16)seen == (u16)(op->at + i) &&
					   seen >> 16 > op->number + 1 &&
					   seen >> 16 <= s->posted))
			continue;
		FAIL("READ %llu of %u words: word %u is %llx, and was written %llx before",
		     (unsigned long long)op->number, op->words, i, (unsigned long long)seen,
		     (unsigned long long)op->was[i]);
		return;
	}
}

/* By the first and the last word: what is there is of this one, or newer. */
static void check_write(struct side *s, struct op *op)
{
	const u64 *there = target_of(s, op), least = word_of(op->number, 0) >> 16;

	if (!op->words)
		return;
	if (op->source != SOURCE_NONE) {
		if (memcmp(there, data_of(s, op), 8 * op->words))
			FAIL("WRITE %llu carried what was not READ",
			     (unsigned long long)op->number);
	} else if (there[0] >> 16 < least || there[op->words - 1] >> 16 < least) {
		FAIL("WRITE %llu is complete, and has not happened",
		     (unsigned long long)op->number);
	}
}

static void check_done(struct side *s, struct op *op)
{
	if (takes_receive(op) && s->peer->received <= op->number)
		FAIL("message %llu is complete, and was not received",
		     (unsigned long long)op->number);
	if (op->kind == NATIVE)
		check_native(s, op);
	else if (is_write(op))
		check_write(s, op);
	else if (op->kind == READ)
		check_read(s, op);
	else if ((op->kind == ADD || op->kind == SWAP) && op->data[0] != op->expect)
		FAIL("atomic %llu has returned %llx, not %llx", (unsigned long long)op->number,
		     (unsigned long long)op->data[0], (unsigned long long)op->expect);
	else if (op->kind == ATOMIC_WRITE && *target_of(s, op) < op->data[0])
		FAIL("ATOMIC WRITE %llu has not happened", (unsigned long long)op->number);
}

void vrnic_sq_complete(struct vrnic_qp *qp)
{
	u64 number = vrnic_op_desc(&qp->op)->cookie;
	struct side *s = side_of(qp);
	struct op *op = op_at(s, number);

	if (broken)
		return;
	maybe_wrong();
	if (number != s->completed)
		FAIL("%llu completes, where %llu is next", (unsigned long long)number,
		     (unsigned long long)s->completed);
	if (qp->op.status)
		FAIL("%llu, kind %d, ends with status %u, error %u", (unsigned long long)number,
		     op->kind, qp->op.status, qp->op.vendor_err);
	check_done(s, op);
	s->read += op->kind == READ ? 8 * op->words : 0;
	s->written += is_write(op) ? 8 * op->words : 0;
	if (op->kind == SEND_INV)
		s->peer->rkeys[op->rkey].pending = 0;
	if (op->kind == LOCAL_INV) {
		s->lkeys[op->lkey].pending = 0;
		renew(&s->lkeys[op->lkey]);
	}
	qp->op.active = false;
	qp->sq.idx++;
	s->completed++;
	progress_at = now;
	total_ops++;
}

int vrnic_recv_take(struct vrnic_qp *qp)
{
	struct side *s = side_of(qp);

	if (qp->recv.active)
		return 0;
	if (!s->receives || chance(now_in->not_ready))
		return -EAGAIN;
	s->receives--;
	qp->recv = (struct vrnic_recv) {
		.active = true, .num_sge = 1,
		.sge[0] = { .addr = (uintptr_t)s->inbox, .length = sizeof(s->inbox) },
	};
	return 0;
}

static void check_message(struct side *s, struct op *op, const struct vrnic_cqe *cqe)
{
	if (cqe->byte_len != 8 * op->words)
		FAIL("message %llu of %u words: %u bytes were told",
		     (unsigned long long)op->number, op->words, cqe->byte_len);
	else if (is_send(op) && memcmp(s->inbox, data_of(s->peer, op), 8 * op->words))
		FAIL("message %llu, which carries %lld: wrong data",
		     (unsigned long long)op->number, (long long)op->source);
	if (op->kind == SEND_INV)
		renew(&s->rkeys[op->rkey]);
	else if (op->kind != SEND && cqe->imm != (u32)op->number)
		FAIL("message %llu has immediate data %u", (unsigned long long)op->number,
		     cqe->imm);
}

void vrnic_recv_complete(struct vrnic_qp *qp, struct vrnic_cqe *cqe, bool solicited)
{
	struct side *s = side_of(qp);
	u64 number = s->received;

	qp->recv.active = false;
	while (number < s->peer->posted && !takes_receive(op_at(s->peer, number)))
		number++;
	if (cqe->status || number == s->peer->posted) {
		FAIL("a receive too many, status %u", cqe->status);
		return;
	}
	maybe_wrong();
	check_message(s, op_at(s->peer, number), cqe);
	s->received = number + 1;
}

/* ---- completion counters ---- */

/* That of the memory's owner: what it counts is done. */
void vrnic_qp_count(struct vrnic_qp *qp, enum vrnic_comp_op op, u64 bytes, u8 status)
{
	struct side *s = side_of(qp);

	assert(qp->comp && !status);
	if (op == VRNIC_COMP_REMOTE_RDMA_READ)
		s->fetched += bytes;
	else
		s->stored += bytes;
}

/* Each READ and each WRITE was counted by its peer, and once. */
static void check_counted(const struct side *s)
{
	if (s->peer->fetched != s->read || s->peer->stored != s->written)
		FAIL("%llu and %llu bytes were counted, of %llu READ and %llu written",
		     (unsigned long long)s->peer->fetched, (unsigned long long)s->peer->stored,
		     (unsigned long long)s->read, (unsigned long long)s->written);
}

/* ---- running it ---- */

static bool step(struct side *s, struct vrnic_budget *budget)
{
	if (s->qp.state == IB_QPS_ERR)
		return false;
	if (now_in->link && !draw(8))
		vrnic_roce_rest(&s->qp);
	if (!draw(8))
		vrnic_window_grow_patiently(&s->qp);
	return vrnic_roce_receive(&s->qp, budget) || vrnic_roce_send(&s->qp, budget);
}

/* As sq.c and the engine would: until nothing is left to do. */
static void run(struct side *s)
{
	bool more = true;

	running = s;
	while (more && !broken) {
		struct vrnic_budget budget = {
			.bytes = 1 + draw(20000), .descs = 1 + draw(20),
			.atomic = draw(2), .rung = draw(4),
		};

		more = false;
		vrnic_roce_begin(&s->qp, &budget);
		while (step(s, &budget)) {
			more = !budget.descs || !budget.bytes;
			if (more)
				break;
		}
		more |= vrnic_roce_left(&s->qp) || !budget.rung;
		if (budget.atomic)
			vrnic_resp_ack(&s->qp);
	}
}

static bool is_in_the_middle(const struct vrnic_pkt *pkt)
{
	return pkt->info & VRNIC_PKT_PAYLOAD && !(pkt->info & (VRNIC_PKT_START | VRNIC_PKT_END)) &&
	       !pkt->ackreq && !pkt->spoiled && pkt->len;
}

/* Make a train of the packet that waits last and of @skb, as the receiving softirq does. */
static bool couple(struct sk_buff *last, struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = last ? vrnic_pkt(last) : NULL, *next = vrnic_pkt(skb);
	struct packet *p;

	if (!last || !is_in_the_middle(pkt) || !is_in_the_middle(next) ||
	    next->opcode != pkt->opcode || next->len != pkt->len ||
	    next->psn != vrnic_psn_add(pkt->psn, vrnic_pkt_count(pkt)) || !chance(800))
		return false;
	for (p = packet_of(last); p->behind; )
		p = p->behind;
	p->behind = packet_of(skb);
	pkt->more = pkt->train ? pkt->more + 1 : 1;
	pkt->train = true;
	pkt->stride = pkt->len;
	return true;
}

static void arrive(struct sk_buff *skb)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	struct side *s = packet_of(skb)->to;

	if (!pkt->spoiled && !(pkt->info & VRNIC_PKT_RESP))
		note_arrival(s, pkt);
	if (couple(skb_peek_tail(&s->qp.rxq), skb))
		total_coupled++;
	else
		__skb_queue_tail(&s->qp.rxq, skb);
}

static bool is_waiting(const struct side *s)
{
	return s->completed != s->posted || s->completed == now_in->ops;
}

/* All packets that come at one time, then the hosts that they came for. */
static void next_event(void)
{
	u64 at = nr_on_the_way ? (u64)on_the_way[0]->tstamp : U64_MAX;
	int i;

	for (i = 0; i < 2; i++)
		if (sides[i].qp.run.at)
			at = min(at, max(sides[i].qp.run.at, now));
	if (at == U64_MAX && is_waiting(&sides[0]) && is_waiting(&sides[1]))
		FAIL("nothing will ever happen");
	else if (at != U64_MAX)
		now = at;
	while (nr_on_the_way && (u64)on_the_way[0]->tstamp <= now)
		arrive(take_first());
	for (i = 0; i < 2; i++)
		if (sides[i].qp.run.at && sides[i].qp.run.at <= now)
			sides[i].qp.run.at = 0;
}

/* If nothing overtakes anything, there is nothing to be patient for. */
static void check_patience(struct side *s)
{
	if (!now_in->late && !now_in->twice && !now_in->loss[0] && !now_in->loss[1] &&
	    !now_in->spoiled && s->qp.roce->resp.early.patience)
		FAIL("the responder waits %llu ns before it asks for a packet again",
		     (unsigned long long)s->qp.roce->resp.early.patience);
}

static bool is_done(const struct side *s)
{
	return s->completed == now_in->ops;
}

static void play(void)
{
	int i;

	while (!broken && !(is_done(&sides[0]) && is_done(&sides[1]))) {
		for (i = 0; i < 2; i++) {
			struct side *s = &sides[i];

			if (s->posted == s->completed || chance(300))
				post_some(s);
			if (s->receives < 4 || chance(200))
				s->receives += draw(16);
			run(s);
		}
		if (is_done(&sides[0]) && is_done(&sides[1]))
			break;
		next_event();
		if (now - progress_at > 100000 * NSEC_PER_MSEC)
			FAIL("nothing was completed for 100 s");
	}
}

/* ---- a scenario ---- */

static void open_keys(struct key *keys)
{
	u32 i;

	for (i = 0; i < KEYS; i++)
		keys[i] = (struct key) { .value = FIRST_KEY + i, .valid = true };
}

static void open_memory(struct side *s)
{
	s->ops = calloc(OPS, sizeof(*s->ops));
	s->words = calloc(WORDS, 8);
	s->version = calloc(WORDS, 8);
	s->counters = calloc(COUNTERS, 8);
	s->value = calloc(COUNTERS, 8);
	s->copies = calloc((size_t)OPS * MOST, 8);
	s->psns = calloc(PSNS, sizeof(*s->psns));
	s->last_read = SOURCE_NONE;
	open_keys(s->rkeys);
	open_keys(s->lkeys);
}

static void open_qp(struct side *s, u32 own_psn, u32 peer_psn)
{
	static const struct ib_gid_attr gid;
	static struct vrnic_qp_comp comp;
	struct vrnic_qp *qp = &s->qp;

	qp->dev = &s->dev;
	qp->type = IB_QPT_RC;
	qp->comp = &comp;
	qp->link = now_in->link ? (struct vrnic_link *)s : NULL;
	qp->link_ops = &link_ops;
	qp->qpn = 16 + (s == &sides[1]);
	qp->sq.hdr = &s->hdr;
	qp->attr.timeout = 14;
	qp->attr.retry_cnt = 7;
	qp->attr.rnr_retry = 7;
	qp->attr.max_rd_atomic = now_in->max_rd;
	qp->attr.max_dest_rd_atomic = now_in->max_rd;
	qp->attr.path_mtu = 1;
	qp->attr.sq_psn = own_psn;
	qp->attr.rq_psn = peer_psn;
	qp->attr.qp_access_flags = -1;
	qp->attr.ah_attr.grh.sgid_attr = &gid;
	__skb_queue_head_init(&qp->rxq);
	if (vrnic_roce_connect(qp, &qp->attr))
		FAIL("no memory");
	vrnic_roce_ready(qp);
	qp->state = IB_QPS_RTS;
	s->next_psn = own_psn;
	s->low = own_psn;
	s->told = own_psn;
}

static void open_sides(void)
{
	/* so that 24 bits end soon, and not at the same time */
	const u32 psn[] = { 0xffff00, 0xfff000 + draw(0xfff) };
	int i;

	if (vrnic_roce_init())
		FAIL("no memory");
	memset(sides, 0, sizeof(sides));
	for (i = 0; i < 2; i++) {
		sides[i].peer = &sides[1 - i];
		open_memory(&sides[i]);
		open_qp(&sides[i], psn[i], psn[1 - i]);
	}
}

static void close_side(struct side *s)
{
	while (vrnic_roce_flush(&s->qp))
		;
	vrnic_roce_disconnect(&s->qp);
	free(s->ops);
	free(s->words);
	free(s->version);
	free(s->counters);
	free(s->value);
	free(s->copies);
	free(s->psns);
}

static void close_sides(void)
{
	while (nr_on_the_way)
		kfree_skb(take_first());
	close_side(&sides[0]);
	close_side(&sides[1]);
	vrnic_roce_exit();
	if (alive && !broken)
		FAIL("%ld packets are left over", alive);
	alive = 0;
	free_spares();
}

static void check_end(struct side *s)
{
	if (memcmp(s->peer->words, s->version, 8 * WORDS))
		FAIL("the memory is not what was written to it");
	if (memcmp(s->peer->counters, s->value, 8 * COUNTERS))
		FAIL("the atomics were not executed once each");
}

static void scenario(const struct scenario *sc)
{
	now_in = sc;
	broken = false;
	seed = sc->seed * 0x9e3779b97f4a7c15ULL;
	now = NSEC_PER_MSEC;
	progress_at = now;
	open_sides();
	play();
	if (!broken) {
		check_end(&sides[0]);
		check_end(&sides[1]);
		check_counted(&sides[0]);
		check_counted(&sides[1]);
		check_patience(&sides[0]);
		check_patience(&sides[1]);
	}
	close_sides();
}

/* Each run begins anew, with PSNs near their end. */
static void runs(struct scenario sc, u32 n)
{
	u64 ops = total_ops, packets = total_packets, coupled = total_coupled;

	for (sc.seed = 1; sc.seed <= n && !unit_bad; sc.seed++)
		scenario(&sc);
	printf("# %s: %llu operations, %llu packets, %llu of them coupled to others\n", sc.name,
	       (unsigned long long)(total_ops - ops),
	       (unsigned long long)(total_packets - packets),
	       (unsigned long long)(total_coupled - coupled));
	fflush(stdout);
	CHECK(total_coupled > coupled);
}

#define US	((u64)NSEC_PER_USEC)
#define RUN(n, ...)	runs((struct scenario) { .name = __func__, __VA_ARGS__ }, n)
#define COMMON		.ops = 20000, .delay = 20 * US, .max_rd = 4, .window = 40

static void nothing_is_lost(void)
{
	RUN(1, COMMON, .held = 5);
}

static void requests_are_lost(void)
{
	RUN(3, COMMON, .loss = { 50, 5 });
}

static void answers_are_lost(void)
{
	RUN(3, COMMON, .loss = { 0, 100 });
}

static void a_fifth_is_lost(void)
{
	RUN(1, COMMON, .loss = { 200, 10 }, .held = 100);
}

static void packets_come_twice(void)
{
	RUN(3, COMMON, .twice = 200, .late = 100, .later = 100 * US);
}

static void packets_overtake_each_other(void)
{
	RUN(3, COMMON, .late = 250, .later = 300 * US);
}

static void packets_come_very_late(void)
{
	RUN(3, COMMON, .twice = 20, .late = 20, .later = 20000 * US);
}

/* Few operations: so that an answer may be next while another one is under way. */
static void packets_are_spoiled(void)
{
	RUN(3, .ops = 20000, .delay = 20 * US, .max_rd = 4, .window = 3,
	    .spoiled = 100, .held = 500);
}

static void the_receiver_is_not_ready(void)
{
	RUN(3, COMMON, .not_ready = 300, .loss = { 20, 20 });
}

static void everything_at_once(void)
{
	RUN(5, COMMON, .loss = { 40, 40 }, .twice = 50, .late = 100, .later = 200 * US,
	    .spoiled = 10, .not_ready = 50, .held = 5);
}

static void memory_is_paged_on_demand(void)
{
	RUN(3, COMMON, .paged = 100);
	RUN(3, COMMON, .paged = 500, .loss = { 20, 20 }, .late = 50, .later = 200 * US);
}

static void one_read_at_a_time(void)
{
	RUN(3, .ops = 20000, .delay = 20 * US, .max_rd = 1, .window = 40,
	    .loss = { 40, 40 }, .twice = 50, .late = 50, .later = 200 * US);
}

static void many_reads_and_a_long_wire(void)
{
	RUN(3, .ops = 20000, .delay = 3000 * US, .max_rd = 16, .window = 200,
	    .loss = { 20, 20 }, .twice = 20, .late = 50, .later = 500 * US);
}

#define LINK		COMMON, .link = true, .fails = 100

static void messages_fail(void)
{
	RUN(3, LINK, .held = 5);
}

static void messages_fail_and_their_packets_are_lost(void)
{
	RUN(3, LINK, .loss = { 50, 50 });
	/* more than the window of a link ever has room for */
	RUN(3, .ops = 20000, .delay = 20 * US, .max_rd = 4, .window = 300, .link = true,
	    .fails = 100, .loss = { 20, 20 });
}

static void messages_fail_at_a_receiver_that_is_not_ready(void)
{
	RUN(3, LINK, .not_ready = 300, .loss = { 20, 20 });
}

static void messages_fail_and_all_else_happens(void)
{
	RUN(5, LINK, .loss = { 40, 40 }, .twice = 50, .late = 100, .later = 200 * US,
	    .spoiled = 10, .not_ready = 50, .held = 5);
}

static void all_messages_fail(void)
{
	RUN(3, COMMON, .link = true, .fails = 1000, .loss = { 40, 40 }, .late = 100,
	    .later = 200 * US);
}

/* Wherever it is noticed. */
static void a_test_that_fails_comes_to_an_end(void)
{
	const struct scenario sc = {
		.name = __func__, COMMON, .loss = { 40, 40 }, .late = 100, .later = 200 * US,
		.wrong = 1,
	};
	struct scenario next = sc;
	bool failed;

	for (next.seed = 1; next.seed <= 20; next.seed++) {
		scenario(&next);
		failed = unit_bad;
		unit_bad = 0;
		CHECK(failed);
	}
}

static const struct unit_test tests[] = {
	UNIT(nothing_is_lost), UNIT(requests_are_lost), UNIT(answers_are_lost),
	UNIT(a_fifth_is_lost), UNIT(packets_come_twice),
	UNIT(packets_overtake_each_other), UNIT(packets_come_very_late),
	UNIT(packets_are_spoiled), UNIT(the_receiver_is_not_ready),
	UNIT(everything_at_once), UNIT(memory_is_paged_on_demand), UNIT(one_read_at_a_time),
	UNIT(many_reads_and_a_long_wire), UNIT(messages_fail),
	UNIT(messages_fail_and_their_packets_are_lost),
	UNIT(messages_fail_at_a_receiver_that_is_not_ready),
	UNIT(messages_fail_and_all_else_happens), UNIT(all_messages_fail),
	UNIT(a_test_that_fails_comes_to_an_end),
};

UNIT_MAIN(tests)
