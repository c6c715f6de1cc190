// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of queue pairs, `rdma statistic qp`: they say exactly what the queue pairs that are
 * bound to them moved meanwhile, and the port's statistics count it once.
 */
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"
#include "rdma_tool.h"

#define LEN		16384
#define SENDS		7
#define SEND_LEN	300
#define WRITES		5
#define READS		3
#define REQUESTS	(SENDS + WRITES + READS)
#define OUT		(SENDS * SEND_LEN + WRITES * LEN)	/* bytes from a to b */
#define IN		(READS * LEN)				/* from b to a */
#define ROUNDS		40

/* ---- rdma(8) ---- */

static const char *link_of(const struct side *side)
{
	return ibv_get_device_name(side->dev->ctx->device);
}

/* Is the command content? */
static bool done(char *said)
{
	free(said);
	return said;
}

static bool are_apart(const struct side *a, const struct side *b)
{
	return strcmp(link_of(a), link_of(b));
}

static bool set_auto(const struct side *side, const char *how)
{
	return done(said_by("rdma statistic qp set link %s/1 auto %s 2>&1", link_of(side), how));
}

static bool bind_qp(const struct side *side)
{
	return done(said_by("rdma statistic qp bind link %s/1 lqpn %u 2>&1", link_of(side),
			    side->qp->qp_num));
}

static bool bind_qp_to(const struct side *side, long long id)
{
	return done(said_by("rdma statistic qp bind link %s/1 lqpn %u cntn %lld 2>&1",
			    link_of(side), side->qp->qp_num, id));
}

static bool unbind_qp(const struct side *side, long long id)
{
	return done(said_by("rdma statistic qp unbind link %s/1 cntn %lld lqpn %u 2>&1",
			    link_of(side), id, side->qp->qp_num));
}

/* What there is of a device's counters, to be freed. */
static char *counters_of(const struct side *side)
{
	return said_by("rdma statistic qp show link %s/1 2>&1", link_of(side));
}

static bool has_counters(const struct side *side)
{
	char *text = counters_of(side);
	bool any = text && strstr(text, "cntn");

	free(text);
	return any;
}

/* A number of the counter, or -1. */
static long long counter(const struct side *side, long long id, const char *name)
{
	char *text = counters_of(side);
	long long value = -1;

	if (text && cut_entry(text, "cntn", id))
		value = number_after(text, name);
	free(text);
	return value;
}

/* Does the counter's list of queue pairs have this one? It is like <17,18>. */
static bool lists(const char *text, uint32_t qpn)
{
	const char *at = strstr(text, "LQPN: <");

	for (at = at ? at + strlen("LQPN: ") : ">"; *at != '>'; at += strcspn(at + 1, ",>") + 1)
		if (strtoul(at + 1, NULL, 10) == qpn)
			return true;
	return false;
}

/* Does this entry of @said name the queue pair? */
static bool binds(const char *said, long long id, const struct side *side)
{
	char *text = said ? strdup(said) : NULL;
	bool bound = text && cut_entry(text, "cntn", id) && lists(text, side->qp->qp_num);

	free(text);
	return bound;
}

static bool is_bound(const struct side *side, long long id)
{
	char *text = counters_of(side);
	bool bound = binds(text, id, side);

	free(text);
	return bound;
}

#define MOST_COUNTERS	64

/* The counter that the queue pair is bound to, or -1. One look at all: rdma(8) takes its time. */
static long long counter_id(const struct side *side)
{
	char *text = counters_of(side);
	long long id = 1;

	while (id < MOST_COUNTERS && !binds(text, id, side))
		id++;
	free(text);
	return id < MOST_COUNTERS ? id : -1;
}

/* What the port has counted, in all. */
static long long port(const struct side *side, const char *name)
{
	long long value;
	char *text;

	usleep(30000);	/* the core may keep what it has read for as long */
	text = said_by("rdma statistic show link %s/1 2>&1", link_of(side));
	value = text ? number_after(text, name) : -1;
	free(text);
	return value;
}

/* ---- traffic ---- */

static int times(struct side *side, int n, const struct request *req)
{
	int err = 0;

	while (n-- && !err)
		err = run_request(side, req);
	return err;
}

/* All kinds, and as many as the constants say. Status of the first that fails. */
static int move(struct bed *bed, struct side *a, struct side *b)
{
	int i, err = 0;

	for (i = 0; i < SENDS && !err; i++) {
		err = post_recv(b, &bed->dst, 0, LEN, i);
		err = err ?: RUN(a, .op = IBV_WR_SEND, .local = &bed->src, .len = SEND_LEN);
		err = err ?: wait_recv(b);
	}
	err = err ?: times(a, WRITES, &(struct request){ .op = IBV_WR_RDMA_WRITE,
			.local = &bed->src, .len = LEN, .remote = &bed->dst });
	return err ?: times(a, READS, &(struct request){ .op = IBV_WR_RDMA_READ,
			.local = &bed->src, .len = LEN, .remote = &bed->dst });
}

FIXTURE(qp_counter)
{
	struct wire_bed wire;
	struct bed *bed;
	struct side *a, *b;
};

FIXTURE_VARIANT(qp_counter)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(qp_counter, loopback) { .wire = false };
FIXTURE_VARIANT_ADD(qp_counter, wire) { .wire = true };

FIXTURE_SETUP(qp_counter)
{
	/* one RNR retry; nothing is sent twice because this machine is slow */
	struct pair_opts opts = { .rnr_retry = 1, .timeout = 22 };

	if (system("rdma statistic show >/dev/null 2>&1"))
		SKIP(return, "needs rdma(8)");
	self->bed = &self->wire.bed;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, &opts) :
				  bed_open(self->bed, LEN, &opts));
	self->a = self->bed->a;
	self->b = self->bed->b;
}

FIXTURE_TEARDOWN(qp_counter)
{
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(self->bed));
}

static bool by_packets(const FIXTURE_VARIANT(qp_counter) *variant)
{
	return variant->wire || over_a_wire();
}

#define COUNTS(side, id, name, value) EXPECT_EQ(value, counter(side, id, name))

/* Each end has a counter: what one sends the other receives. */
TEST_F(qp_counter, a_counter_says_what_its_queue_pair_moved)
{
	int mtu = 128 << self->bed->dev.port.active_mtu;
	int out = SENDS + WRITES * LEN / mtu + READS;
	long long a, b;

	ASSERT_DONE(move(self->bed, self->a, self->b));
	ASSERT_TRUE(bind_qp(self->a));
	ASSERT_TRUE(bind_qp(self->b));
	a = counter_id(self->a);
	b = counter_id(self->b);
	COUNTS(self->a, a, "descriptors", 0);
	COUNTS(self->a, a, "xmit_bytes", 0);
	COUNTS(self->b, b, "rcvd_bytes", 0);
	ASSERT_DONE(move(self->bed, self->a, self->b));
	COUNTS(self->a, a, "descriptors", REQUESTS);
	COUNTS(self->a, a, "xmit_bytes", OUT);
	COUNTS(self->a, a, "rcvd_bytes", IN);
	COUNTS(self->b, b, "descriptors", 0);
	COUNTS(self->b, b, "xmit_bytes", IN);
	COUNTS(self->b, b, "rcvd_bytes", OUT);
	COUNTS(self->a, a, "retransmitted_pkts", 0);
	COUNTS(self->a, a, "local_errors", 0);
	COUNTS(self->a, a, "sent_pkts", by_packets(variant) ? out : 0);
	COUNTS(self->b, b, "rcvd_pkts", by_packets(variant) ? out : 0);
	COUNTS(self->a, a, "rcvd_pkts", counter(self->b, b, "sent_pkts"));
	/* data of READs, and an acknowledgment for each other request at most */
	if (by_packets(variant)) {
		EXPECT_LT(READS * LEN / mtu, counter(self->a, a, "rcvd_pkts"));
		EXPECT_GE(READS * LEN / mtu + SENDS + WRITES, counter(self->a, a, "rcvd_pkts"));
	}
}

TEST_F(qp_counter, the_port_counts_once)
{
	const char *const names[] = { "descriptors", "xmit_bytes", "rcvd_bytes", "sent_pkts" };
	long long before[ARRAY_SIZE(names)], id;
	unsigned int i;

	if (are_apart(self->a, self->b))
		SKIP(return, "the other end has a port of its own");
	ASSERT_DONE(move(self->bed, self->a, self->b));
	for (i = 0; i < ARRAY_SIZE(names); i++)
		before[i] = port(self->a, names[i]);
	ASSERT_TRUE(bind_qp(self->a));
	id = counter_id(self->a);
	ASSERT_TRUE(bind_qp_to(self->b, id));
	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(before[i], port(self->a, names[i]));
	ASSERT_DONE(move(self->bed, self->a, self->b));
	COUNTS(self->a, id, "xmit_bytes", OUT + IN);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(before[i] + counter(self->a, id, names[i]), port(self->a, names[i]));
	ASSERT_TRUE(unbind_qp(self->a, id));
	ASSERT_TRUE(unbind_qp(self->b, id));
	EXPECT_FALSE(has_counters(self->a));
	ASSERT_DONE(move(self->bed, self->a, self->b));
	EXPECT_EQ(before[0] + 2 * REQUESTS, port(self->a, "descriptors"));
	EXPECT_EQ(before[1] + 2 * (OUT + IN), port(self->a, "xmit_bytes"));
	EXPECT_EQ(before[2] + 2 * (OUT + IN), port(self->a, "rcvd_bytes"));
}

TEST_F(qp_counter, unbinding_keeps_the_sum)
{
	struct pair pair;
	long long id;

	ASSERT_OK(bed_pair_open(self->bed, &pair, &self->bed->pair.opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_TRUE(bind_qp(self->a));
	id = counter_id(self->a);
	ASSERT_DONE(move(self->bed, &pair.a, &pair.b));
	ASSERT_TRUE(bind_qp_to(&pair.a, id));
	COUNTS(self->a, id, "xmit_bytes", 0);
	ASSERT_DONE(move(self->bed, self->a, self->b));
	ASSERT_DONE(move(self->bed, &pair.a, &pair.b));
	COUNTS(self->a, id, "xmit_bytes", 2 * OUT);
	ASSERT_TRUE(unbind_qp(self->a, id));
	EXPECT_FALSE(is_bound(self->a, id));
	EXPECT_TRUE(is_bound(&pair.a, id));
	EXPECT_FALSE(unbind_qp(self->a, id));
	COUNTS(self->a, id, "xmit_bytes", 2 * OUT);
	ASSERT_DONE(move(self->bed, self->a, self->b));
	COUNTS(self->a, id, "xmit_bytes", 2 * OUT);
	ASSERT_DONE(move(self->bed, &pair.a, &pair.b));
	COUNTS(self->a, id, "xmit_bytes", 3 * OUT);
	/* what it counted while it was not bound does not count when it is bound again */
	ASSERT_TRUE(bind_qp_to(self->a, id));
	COUNTS(self->a, id, "xmit_bytes", 3 * OUT);
	EXPECT_OK(pair_close(&pair));
}

TEST_F(qp_counter, destroying_keeps_the_sum)
{
	long long id, before;
	struct pair pair;

	ASSERT_OK(bed_pair_open(self->bed, &pair, &self->bed->pair.opts));
	ASSERT_OK(pair_connect(&pair));
	before = port(self->a, "descriptors");
	ASSERT_TRUE(bind_qp(&pair.a));
	id = counter_id(&pair.a);
	ASSERT_TRUE(bind_qp_to(self->a, id));
	ASSERT_DONE(move(self->bed, &pair.a, &pair.b));
	EXPECT_OK(pair_close(&pair));
	COUNTS(self->a, id, "descriptors", REQUESTS);
	COUNTS(self->a, id, "rcvd_bytes", IN);
	ASSERT_DONE(move(self->bed, self->a, self->b));
	COUNTS(self->a, id, "descriptors", 2 * REQUESTS);
	COUNTS(self->a, id, "rcvd_bytes", 2 * IN);
	ASSERT_OK(ibv_destroy_qp(self->a->qp));
	self->a->qp = NULL;
	EXPECT_FALSE(has_counters(self->a));
	EXPECT_EQ(before + 2 * REQUESTS, port(self->a, "descriptors"));
}

/* RESET is no end: a queue pair that begins anew counts on. */
TEST_F(qp_counter, a_reset_keeps_the_sum)
{
	long long id;

	ASSERT_TRUE(bind_qp(self->a));
	id = counter_id(self->a);
	ASSERT_DONE(move(self->bed, self->a, self->b));
	ASSERT_OK(qp_to(self->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(self->b->qp, IBV_QPS_RESET));
	COUNTS(self->a, id, "xmit_bytes", OUT);
	ASSERT_OK(pair_connect(&self->bed->pair));
	EXPECT_TRUE(is_bound(self->a, id));
	ASSERT_DONE(move(self->bed, self->a, self->b));
	COUNTS(self->a, id, "xmit_bytes", 2 * OUT);
	COUNTS(self->a, id, "rcvd_bytes", 2 * IN);
}

TEST_F(qp_counter, errors_are_counted_where_they_happen)
{
	struct bed *bed = self->bed;
	struct pair pair;
	long long a, b;

	ASSERT_OK(bed_pair_open(bed, &pair, &bed->pair.opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_TRUE(bind_qp(self->a));
	a = counter_id(self->a);
	ASSERT_TRUE(bind_qp(self->b));
	b = counter_id(self->b);
	/* the second request waits behind the first, which fails after one retry */
	ASSERT_OK(POST(self->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_OK(POST(self->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR, wait_send(self->a));
	ASSERT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(self->a));
	COUNTS(self->a, a, "rnr_waits", 1);
	COUNTS(self->a, a, "local_errors", 1);
	COUNTS(self->a, a, "flushed", 1);
	COUNTS(self->b, b, "send_rnr_err", by_packets(variant) ? 2 : 0);
	COUNTS(self->b, b, "remote_errors", 0);
	/* a key that nobody has */
	ASSERT_TRUE(bind_qp_to(&pair.b, b));
	ASSERT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(&pair.a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			  .remote = &bed->dst, .rkey = 0x123));
	COUNTS(self->b, b, "remote_errors", 1);
	COUNTS(self->a, a, "local_errors", 1);
	EXPECT_OK(pair_close(&pair));
}

/* A rule binds queue pairs when they are initialized: one counter for those of a type. */
TEST_F(qp_counter, a_rule_binds_by_type)
{
	struct pair_opts rc = pair_defaults(&(struct pair_opts){ .timeout = 22 });
	struct pair_opts ud = pair_defaults(&(struct pair_opts){ .type = IBV_QPT_UD });
	long long of_rc, of_ud;
	struct pair one, two, dg;

	if (are_apart(self->a, self->b))
		SKIP(return, "one rule for one device");
	ASSERT_TRUE(set_auto(self->a, "type on"));
	ASSERT_OK(bed_pair_open(self->bed, &one, &rc));
	ASSERT_OK(pair_connect(&one));
	ASSERT_OK(bed_pair_open(self->bed, &two, &rc));
	ASSERT_OK(pair_connect(&two));
	ASSERT_OK(bed_pair_open(self->bed, &dg, &ud));
	ASSERT_OK(pair_connect(&dg));
	of_rc = counter_id(&one.a);
	of_ud = counter_id(&dg.a);
	EXPECT_NE(of_rc, of_ud);
	EXPECT_TRUE(is_bound(&one.b, of_rc));
	EXPECT_TRUE(is_bound(&two.a, of_rc));
	EXPECT_TRUE(is_bound(&dg.b, of_ud));
	/* it was there before the rule */
	EXPECT_EQ(-1, counter_id(self->a));
	ASSERT_DONE(move(self->bed, self->a, self->b));
	ASSERT_DONE(move(self->bed, &one.a, &one.b));
	ASSERT_DONE(move(self->bed, &two.a, &two.b));
	ASSERT_OK(post_recv(&dg.b, &self->bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&dg.a, .op = IBV_WR_SEND, .local = &self->bed->src, .len = 1000));
	ASSERT_DONE(wait_recv(&dg.b));
	COUNTS(self->a, of_rc, "descriptors", 2 * REQUESTS);
	COUNTS(self->a, of_rc, "xmit_bytes", 2 * (OUT + IN));
	COUNTS(self->a, of_rc, "rcvd_bytes", 2 * (OUT + IN));
	COUNTS(self->a, of_ud, "descriptors", 1);
	COUNTS(self->a, of_ud, "xmit_bytes", 1000);
	COUNTS(self->a, of_ud, "rcvd_bytes", 1000);
	COUNTS(self->a, of_ud, "sent_pkts", by_packets(variant));
	COUNTS(self->a, of_ud, "rcvd_pkts", by_packets(variant));
	EXPECT_OK(pair_close(&two));
	COUNTS(self->a, of_rc, "xmit_bytes", 2 * (OUT + IN));
	EXPECT_OK(pair_close(&one));
	EXPECT_OK(pair_close(&dg));
	EXPECT_FALSE(has_counters(self->a));
	ASSERT_TRUE(set_auto(self->a, "off"));
}

/* A process that reads all the time, while queue pairs come, move and go. */
TEST_F(qp_counter, queue_pairs_go_while_counters_are_read)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){ .timeout = 22 });
	long long before;
	struct pair pair;
	pid_t reader;
	int i;

	if (are_apart(self->a, self->b))
		SKIP(return, "one rule for one device");
	before = port(self->a, "xmit_bytes");
	ASSERT_TRUE(set_auto(self->a, "type on"));
	reader = fork();
	ASSERT_LE(0, reader);
	if (!reader) {
		execlp("sh", "sh", "-c", "while :; do rdma statistic qp show; rdma statistic show; "
		       "rdma -dd resource show qp; done >/dev/null 2>&1", NULL);
		_exit(1);
	}
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_OK(bed_pair_open(self->bed, &pair, &opts));
		ASSERT_OK(pair_connect(&pair));
		ASSERT_DONE(move(self->bed, &pair.a, &pair.b));
		ASSERT_OK(pair_close(&pair));
	}
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	EXPECT_FALSE(has_counters(self->a));
	EXPECT_TRUE(set_auto(self->a, "off"));
	EXPECT_EQ(before + ROUNDS * (long long)(OUT + IN), port(self->a, "xmit_bytes"));
}

TEST_F(qp_counter, only_the_administrator_binds)
{
	ASSERT_FALSE(done(said_by(AS_NOBODY "rdma statistic qp bind link %s/1 lqpn %u 2>&1",
				  link_of(self->a), self->a->qp->qp_num)));
	EXPECT_FALSE(has_counters(self->a));
}

TEST_HARNESS_MAIN
