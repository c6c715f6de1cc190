// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * stress -d DEVICE -g GID-INDEX [OPTION...] [SERVER]
 *
 * SEND, WRITE, READ and ATOMIC in random order and size over one RC queue pair, and
 * SEND and WRITE, behind a fence, of data that was just READ. Both hosts check every byte,
 * and expect every completion exactly once and in order. The atomics show if one of them
 * was executed twice. The client posts a round of operations at once. The
 * last one is a SEND, upon which the server checks the results of the round in its
 * memory, and answers.
 * Both hosts draw the same operations from the same seed.
 *
 *   -n OPERATIONS (2000)  -D SECONDS instead  -s LARGEST (65536)  -w WINDOW (16)
 *   -m PATH-MTU (1024)  -u TIMEOUT-EXPONENT (14)  -S SEED (1)
 *   -l SECONDS that it may take (50)  -i REPORTS per second (0)  -p PORT (18600)
 *   -T TRAFFIC-CLASS (0)  -z least SIZE (0)
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

#define GUARD		64	/* bytes after each slot; WRITEs begin that late at most */
#define UNTOUCHED	0xee
#define WORDS		8	/* that atomics work on */
#define READ_TAG	(1ULL << 40)	/* pattern of what is read; sent data have their number */

enum kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, FETCH_ADD, CMP_SWAP, KINDS };

/*
 * struct op - operation @number, as both hosts know it: its data are the pattern @tag from
 * word @first on. With @relay, it carries what the one before it READs.
 */
struct op {
	__u64 number, value, tag, first;
	enum kind kind;
	bool relay;
	unsigned int size, offset, word;
};

static struct options opt = {
	.mtu = 1024, .ops = 2000, .max_size = 65536, .window = 16, .timeout = 14,
	.seed = 1, .limit = 50, .port = 18600,
};

static unsigned int duration, min_size;
static struct host host;
static __u64 words[WORDS];	/* what the atomics have made of the server's */
static volatile __u64 at;	/* number of the operation that is waited for */

static __u64 mix(__u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static bool last_of_round(__u64 number)
{
	return number % opt.window == opt.window - 1;
}

/* Small ones are as frequent as large ones, and sizes around powers of two too. */
static unsigned int draw_size(__u64 random)
{
	unsigned int power = 1U << random % 24, size;

	while (power > opt.max_size)
		power >>= 1 + random % 3;
	size = power + (random >> 8) % 5 - 2;
	if ((random >> 16) % 4 == 0)
		size = (random >> 20) % (power + 1);
	return size > opt.max_size ? opt.max_size : size;
}

/* READs begin at a whole word, so that the pattern does. */
static unsigned int read_offset(const struct op *op)
{
	unsigned int room = (opt.max_size - op->size) / 8;

	return room ? op->value % room * 8 : 0;
}

static struct op draw_alone(__u64 number)
{
	__u64 random = mix(((__u64)opt.seed << 40) ^ number);
	struct op op = {
		.number = number,
		.tag = number,
		.value = mix(random),
		.kind = random % KINDS,
		.size = draw_size(random >> 8),
		.offset = (random >> 48) % GUARD,
		.word = (random >> 56) % WORDS,
	};

	if (last_of_round(number))
		op.kind = SEND_IMM;
	if (op.kind == READ && !op.size)
		op.size = 1;
	if (op.size < min_size)
		op.size = min_size;
	return op;
}

/* Every second SEND or WRITE behind a READ carries what that fetches. */
static struct op draw(__u64 number)
{
	struct op op = draw_alone(number), before;

	if (op.kind >= READ || !(number % opt.window) || op.value & 2)
		return op;
	before = draw_alone(number - 1);
	if (before.kind != READ)
		return op;
	op.relay = true;
	op.size = before.size;
	op.tag = READ_TAG + before.value % opt.window;
	op.first = read_offset(&before) / 8;
	return op;
}

static bool consumes_receive(const struct op *op)
{
	return op->kind == SEND || op->kind == SEND_IMM || op->kind == WRITE_IMM;
}

static bool writes(const struct op *op)
{
	return op->kind == WRITE || op->kind == WRITE_IMM;
}

/* Areas of the data: slots of a message and a guard each. */
static size_t slot_len(void)
{
	return (opt.max_size + 2 * GUARD + 7) & ~7UL;
}

enum area { SENT, TARGET, SOURCE, CONTROL, AREAS };

static size_t slot_offset(enum area area, __u64 number)
{
	return (area * opt.window + number % opt.window) * slot_len();
}

static uint8_t *slot(enum area area, __u64 number)
{
	return host.data + slot_offset(area, number);
}

static __u64 pattern_word(__u64 tag, size_t index)
{
	return mix(tag * 0x10001 + opt.seed) + index * 0x9e3779b97f4a7c15ULL;
}

static void fill(uint8_t *to, __u64 tag, size_t len)
{
	__u64 word;
	size_t at;

	for (at = 0; at < len; at += 8) {
		word = pattern_word(tag, at / 8);
		memcpy(to + at, &word, len - at < 8 ? len - at : 8);
	}
}

/* check WHAT: the pattern from word @first on, and nothing behind it. */
static void check(const char *what, const struct op *op, const uint8_t *seen,
		  __u64 tag, size_t first, size_t len)
{
	__u64 word;
	size_t at;

	for (at = 0; at < len; at += 8) {
		word = pattern_word(tag, first + at / 8);
		if (memcmp(seen + at, &word, len - at < 8 ? len - at : 8))
			die("%s %llu of %u bytes: wrong data in the 8 bytes from %zu on",
			    what, op->number, op->size, at);
	}
	for (at = len; at < len + GUARD; at++)
		if (seen[at] != UNTOUCHED)
			die("%s %llu of %u bytes: byte %zu behind it was written to",
			    what, op->number, op->size, at - len);
}

static struct ibv_sge sge_of(struct ibv_mr *mr, void *addr, size_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)addr, .length = len, .lkey = mr->lkey,
	};
}

static void post_receive(enum area area, __u64 number)
{
	struct ibv_sge sge = sge_of(host.data_mr, slot(area, number),
				    opt.max_size + GUARD);
	struct ibv_recv_wr *bad, wr = {
		.wr_id = number, .sg_list = &sge, .num_sge = 1,
	};

	memset(slot(area, number), UNTOUCHED, slot_len());
	if (ibv_post_recv(host.qp, &wr, &bad))
		die("cannot post a receive");
}

static void post_wr(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(host.qp, wr, &bad))
		die("cannot post operation %llu", (__u64)wr->wr_id);
}

/* next_wc: the one completion that may come now. */
static struct ibv_wc next_wc(struct ibv_cq *cq, const char *queue, __u64 wr_id)
{
	struct ibv_wc wc;
	int n;

	at = wr_id;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	if (n < 0)
		die("the %s completion queue failed", queue);
	if (wc.status != IBV_WC_SUCCESS)
		die("%s %llu ended with: %s", queue, wr_id,
		    ibv_wc_status_str(wc.status));
	if (wc.wr_id != wr_id)
		die("%s %llu completed, where %llu was to be next",
		    queue, (__u64)wc.wr_id, wr_id);
	return wc;
}

static void none_left(void)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(host.scq, 1, &wc) || ibv_poll_cq(host.rcq, 1, &wc))
		die("one completion too many: %llu", (__u64)wc.wr_id);
}

/* What @op sends: filled, or to be there once the operation before it is complete. */
static uint8_t *outgoing(const struct op *op)
{
	uint8_t *from = slot(SENT, op->number);

	if (op->relay)
		return slot(TARGET, op->number - 1);
	fill(from, op->number, op->size);
	return from;
}

static void post_send_like(const struct op *op, bool final)
{
	bool imm = op->kind == SEND_IMM;
	struct ibv_sge sge = sge_of(host.data_mr, outgoing(op), op->size);
	struct ibv_send_wr wr = {
		.wr_id = op->number, .sg_list = &sge, .num_sge = 1,
		.send_flags = op->relay ? IBV_SEND_FENCE : 0,
		.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htonl(last_of_round(op->number) ? final : op->number),
	};

	post_wr(&wr);
}

static void post_write(const struct op *op)
{
	struct ibv_sge sge = sge_of(host.data_mr, outgoing(op), op->size);
	struct ibv_send_wr wr = {
		.wr_id = op->number, .sg_list = &sge, .num_sge = 1,
		.send_flags = op->relay ? IBV_SEND_FENCE : 0,
		.opcode = op->kind == WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(op->number),
		.wr.rdma = {
			.remote_addr = host.peer.data +
				slot_offset(TARGET, op->number) + op->offset,
			.rkey = host.peer.data_rkey,
		},
	};

	post_wr(&wr);
}

static void post_read(const struct op *op)
{
	uint8_t *to = slot(TARGET, op->number);
	struct ibv_sge sge = sge_of(host.data_mr, to, op->size);
	struct ibv_send_wr wr = {
		.wr_id = op->number, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {
			.remote_addr = host.peer.data +
				slot_offset(SOURCE, op->value) + read_offset(op),
			.rkey = host.peer.data_rkey,
		},
	};

	memset(to, UNTOUCHED, slot_len());
	post_wr(&wr);
}

/* compared: every second CMP_SWAP finds what it compares with. */
static __u64 compared(const struct op *op)
{
	return words[op->word] ^ (op->value & 1);
}

static void post_atomic(const struct op *op)
{
	__u64 *to = (__u64 *)host.results + op->number % opt.window;
	struct ibv_sge sge = sge_of(host.results_mr, to, 8);
	struct ibv_send_wr wr = {
		.wr_id = op->number, .sg_list = &sge, .num_sge = 1,
		.wr.atomic = {
			.remote_addr = host.peer.results + 8 * op->word,
			.rkey = host.peer.results_rkey,
		},
	};

	if (op->kind == FETCH_ADD) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.compare_add = op->value;
	} else {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.compare_add = compared(op);
		wr.wr.atomic.swap = op->value;
	}
	post_wr(&wr);
}

/* What the words are after @op; the answer to it is what they were. */
static __u64 apply(const struct op *op)
{
	__u64 was = words[op->word];

	if (op->kind == FETCH_ADD)
		words[op->word] += op->value;
	else if (compared(op) == was)
		words[op->word] = op->value;
	return was;
}

static void post_op(const struct op *op, bool final)
{
	switch (op->kind) {
	case SEND:
	case SEND_IMM:
		post_send_like(op, final);
		break;
	case WRITE:
	case WRITE_IMM:
		post_write(op);
		break;
	case READ:
		post_read(op);
		break;
	default:
		post_atomic(op);
	}
}

static void check_atomic(const struct op *op, __u64 expected)
{
	__u64 seen = ((__u64 *)host.results)[op->number % opt.window];

	if (seen != expected)
		die("atomic %llu returned %llx, not %llx",
		    op->number, seen, expected);
}

/* The answer to a round: the words as the server has them. */
static void check_answer(__u64 round)
{
	struct ibv_wc wc = next_wc(host.rcq, "answer", round);

	if (wc.byte_len != sizeof(words) ||
	    memcmp(slot(CONTROL, round), words, sizeof(words)))
		die("after round %llu, the words that atomics work on are wrong", round);
}

static void client_round(__u64 round, bool final)
{
	__u64 expected[opt.window], number = round * opt.window;
	unsigned int i;
	struct op op;

	post_receive(CONTROL, round);
	for (i = 0; i < opt.window; i++) {
		op = draw(number + i);
		post_op(&op, final);
		/* in the order of the queue: what @op will be compared with is known */
		expected[i] = op.kind >= FETCH_ADD ? apply(&op) : 0;
	}
	for (i = 0; i < opt.window; i++) {
		op = draw(number + i);
		next_wc(host.scq, "operation", op.number);
		if (op.kind == READ)
			check("READ", &op, slot(TARGET, op.number),
			      READ_TAG + op.value % opt.window,
			      read_offset(&op) / 8, op.size);
		else if (op.kind >= FETCH_ADD)
			check_atomic(&op, expected[i]);
	}
	check_answer(round);
	none_left();
}

static __u64 round_bytes(__u64 round)
{
	__u64 bytes = 0, i;
	struct op op;

	for (i = 0; i < opt.window; i++) {
		op = draw(round * opt.window + i);
		bytes += op.kind >= FETCH_ADD ? 8 : op.size;
	}
	return bytes;
}

static bool is_final(__u64 round, double start)
{
	if (duration)
		return now() - start >= duration;
	return (round + 1) * opt.window >= opt.ops;
}

/* Print the rate since the last report, opt.interval times a second. */
static void report(double start, __u64 bytes)
{
	static double last;
	static __u64 told;
	double t = now() - start;

	if (!opt.interval || t - last < 1.0 / opt.interval)
		return;
	printf("at %.2f s: %.3f MB/s\n", t, (bytes - told) / (t - last) / 1e6);
	fflush(stdout);
	last = t;
	told = bytes;
}

static void client(void)
{
	__u64 round = 0, bytes = 0;
	double start = now(), took;
	bool final;

	do {
		final = is_final(round, start);
		client_round(round, final);
		bytes += round_bytes(round);
		report(start, bytes);
		round++;
	} while (!final);
	took = now() - start;
	printf("verified %llu operations, %llu bytes in %.2f s, %.1f MB/s\n",
	       round * opt.window, bytes, took, bytes / took / 1e6);
}

static void check_receive(const struct op *op, __u64 number, const struct ibv_wc *wc)
{
	bool imm = op->kind != SEND;

	if (wc->byte_len != op->size)
		die("message %llu of %u bytes: %u were told", op->number,
		    op->size, wc->byte_len);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != imm)
		die("message %llu: immediate data, or not, against its kind",
		    op->number);
	if (imm && !last_of_round(op->number) && ntohl(wc->imm_data) != (uint32_t)op->number)
		die("message %llu: its immediate data are %u", op->number,
		    ntohl(wc->imm_data));
	/* A receive that WRITE_IMM consumed has nothing in it. */
	check("message", op, slot(SENT, number), op->tag, op->first,
	      op->kind == WRITE_IMM ? 0 : op->size);
}

/* The bytes before a WRITE, too, are nobody's. */
static void check_write(const struct op *op)
{
	uint8_t *target = slot(TARGET, op->number);
	unsigned int i;

	for (i = 0; i < op->offset; i++)
		if (target[i] != UNTOUCHED)
			die("WRITE %llu: byte %u before it was written to",
			    op->number, op->offset - i);
	check("WRITE", op, target + op->offset, op->tag, op->first, op->size);
	memset(target, UNTOUCHED, slot_len());
}

static void answer(__u64 round)
{
	struct ibv_sge sge = sge_of(host.results_mr, host.results, sizeof(words));
	struct ibv_send_wr wr = {
		.wr_id = round, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	post_wr(&wr);
	next_wc(host.scq, "answer", round);
}

/* server_round: sets @received, the number of the next receive. True: the last one. */
static bool server_round(__u64 round, __u64 *received)
{
	__u64 number = round * opt.window, i, from = *received;
	struct ibv_wc wc = { 0 };
	struct op op;

	for (i = 0; i < opt.window; i++) {
		op = draw(number + i);
		if (!consumes_receive(&op))
			continue;
		wc = next_wc(host.rcq, "receive", *received);
		check_receive(&op, *received, &wc);
		++*received;
	}
	for (i = 0; i < opt.window; i++) {
		op = draw(number + i);
		if (writes(&op))
			check_write(&op);
	}
	none_left();
	for (; from < *received; from++)
		post_receive(SENT, from + opt.window);
	answer(round);
	return ntohl(wc.imm_data);
}

static void server(void)
{
	__u64 round = 0, received = 0;

	while (!server_round(round, &received))
		round++;
	printf("looked at %llu messages in %llu rounds\n", received, round + 1);
}

/* prepare: what a server has to have before the client's first operation. */
static void prepare(void)
{
	unsigned int i;

	memset(host.data, UNTOUCHED, host.data_len);
	memset(host.results, 0, host.results_len);
	for (i = 0; i < opt.window; i++) {
		fill(slot(SOURCE, i), READ_TAG + i, opt.max_size);
		if (!opt.host)
			post_receive(SENT, i);
	}
}

static void too_long(int signal)
{
	char text[100];
	int len = snprintf(text, sizeof(text),
			   "stress: not over after %u s; waiting for number %llu\n",
			   opt.limit, at);

	(void)signal;
	if (write(STDERR_FILENO, text, len) != len)
		_exit(3);
	_exit(2);
}

static void wrong_usage(void)
{
	die("usage: stress -d DEVICE -g GID-INDEX [OPTION...] [SERVER]; options: see stress.c");
}

static unsigned int *option(int letter)
{
	switch (letter) {
	case 'n': return &opt.ops;
	case 'D': return &duration;
	case 's': return &opt.max_size;
	case 'w': return &opt.window;
	case 'm': return &opt.mtu;
	case 'u': return &opt.timeout;
	case 'S': return &opt.seed;
	case 'l': return &opt.limit;
	case 'i': return &opt.interval;
	case 'p': return &opt.port;
	case 'T': return &opt.tclass;
	case 'z': return &min_size;
	}
	wrong_usage();
	return NULL;
}

static void parse(int argc, char **argv)
{
	int letter;

	opt.gid_index = -1;
	while ((letter = getopt(argc, argv, "d:g:n:D:s:w:m:u:S:l:i:p:T:z:")) != -1) {
		if (letter == 'd')
			opt.device = optarg;
		else if (letter == 'g')
			opt.gid_index = atoi(optarg);
		else
			*option(letter) = strtoul(optarg, NULL, 0);
	}
	if (optind < argc)
		opt.host = argv[optind];
	if (!opt.device || opt.gid_index < 0 || !opt.max_size || !opt.window ||
	    min_size > opt.max_size)
		wrong_usage();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	signal(SIGALRM, too_long);
	alarm(opt.limit);
	host_open(&host, &opt, AREAS * opt.window * slot_len(),
		  8 * (opt.window + WORDS));
	prepare();
	host_connect(&host, &opt);
	if (opt.host)
		client();
	else
		server();
	host_meet(&host);
	host_close(&host);
	return 0;
}
