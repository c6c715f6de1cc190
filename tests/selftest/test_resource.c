// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What `rdma resource show -dd` tells of queue pairs, completion queues, shared receive queues and
 * regions: each number is one that the test has caused.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "rdma_tool.h"
#include "verbs_raw.h"

#define LEN		16384
#define WRITES		5
#define RECVS		9

static char shown[SAID_BYTES];

/* Show objects of a kind, and cut @shown down to the one with @name @value. */
static int show_one(const char *as, const char *kind, const char *name, unsigned long long value)
{
	char *text = said_by("%srdma -dd resource show %s 2>&1", as, kind);

	if (!text)
		return -EIO;
	memcpy(shown, text, strlen(text) + 1);
	free(text);
	return cut_entry(shown, name, value) ? 0 : -ENOENT;
}

static int show_qp(const struct side *side)
{
	return show_one("", "qp", "lqpn", side->qp->qp_num);
}

/* As JSON would have it: names of the driver begin with drv_. */
static long long number(const char *name)
{
	char full[80];

	snprintf(full, sizeof(full), "drv_%s", name);
	return number_after(shown, full);
}

static const char *word(const char *name)
{
	char full[80];

	snprintf(full, sizeof(full), "drv_%s", name);
	return word_after(shown, full);
}

/* Until the queue pair says that it waits for @why. A wait may end and begin anew meanwhile. */
static int wait_until_waits(const struct side *side, const char *why)
{
	struct timespec now, end;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAIT_SECONDS;
	do {
		err = show_qp(side);
		if (err || !strcmp(word("waits"), why))
			return err;
		usleep(1000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	printf("# waits for %s, not for %s\n", word("waits"), why);
	return -ETIMEDOUT;
}

/* Until the completion queue of @cqe entries has @n that are not read. */
static int wait_until_unread(int cqe, int n)
{
	struct patience patience = {};
	int err;

	do
		err = show_one("", "cq", "cqe", cqe);
	while (!err && number("unread") != n && still_patient(&patience, number("unread")));
	return err ?: number("unread") == n ? 0 : -ETIMEDOUT;
}

/* ---- with a peer in this process: without packets, and with packets ---- */

FIXTURE(resource)
{
	struct wire_bed wire;
	struct bed *bed;
};

FIXTURE_VARIANT(resource)
{
	bool wire;
};

FIXTURE_VARIANT_ADD(resource, loopback) { .wire = false };
FIXTURE_VARIANT_ADD(resource, wire) { .wire = true };

FIXTURE_SETUP(resource)
{
	/* RNR timer 31: 491 ms; ACK timeout 18: a second. An operator has time to look. */
	struct pair_opts opts = { .rnr_retry = 6, .rnr_timer = 31, .timeout = 18, .retry = 5 };

	if (system("rdma resource show >/dev/null 2>&1"))
		SKIP(return, "needs rdma(8)");
	self->bed = &self->wire.bed;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, &opts) :
				  bed_open(self->bed, LEN, &opts));
}

FIXTURE_TEARDOWN(resource)
{
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(self->bed));
}

/* Do packets go from side to side? */
static bool by_packets(const FIXTURE_VARIANT(resource) *variant)
{
	return variant->wire || over_a_wire();
}

TEST_F(resource, a_queue_pair_tells_how_far_its_rings_are)
{
	struct bed *bed = self->bed;
	int i;

	for (i = 0; i < RECVS; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, i));
	ASSERT_OK(show_qp(bed->b));
	EXPECT_EQ(RECVS, number("rq_posted"));
	EXPECT_EQ(0, number("rq_head"));
	EXPECT_EQ(RECVS, number("rq_tail"));
	EXPECT_LE(64, number("rq_entries"));
	for (i = 0; i < WRITES; i++) {
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
		ASSERT_DONE(wait_recv(bed->b));
	}
	ASSERT_OK(show_qp(bed->b));
	EXPECT_EQ(RECVS - WRITES, number("rq_posted"));
	EXPECT_EQ(WRITES, number("rq_head"));
	EXPECT_EQ(0, number("recv_active"));
	EXPECT_EQ(0, number("sq_done"));
	ASSERT_OK(show_qp(bed->a));
	EXPECT_EQ(WRITES, number("sq_done"));
	EXPECT_EQ(0, number("sq_filled"));
	EXPECT_EQ(0, number("sq_active"));
	EXPECT_EQ(number("sq_head"), number("sq_tail"));
	EXPECT_LE(WRITES, number("sq_head"));
	EXPECT_STREQ("nothing", word("waits"));
	EXPECT_STREQ(by_packets(variant) ? "wire" : "local", word("flow"));
}

TEST_F(resource, a_sender_waits_for_a_receive)
{
	struct bed *bed = self->bed;
	long long left;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 100));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 100));
	ASSERT_OK(wait_until_waits(bed->a, "rnr"));
	left = number("rnr_left");
	EXPECT_LE(0, left);
	EXPECT_GT(6, left);
	EXPECT_LE(1, number("sq_active"));
	EXPECT_LE(2, number("sq_filled"));
	EXPECT_EQ(0, number("sq_done"));
	if (!by_packets(variant)) {
		EXPECT_STREQ("SEND", word("op"));
		EXPECT_EQ(100, number("op_bytes"));
		EXPECT_EQ(0, number("op_moved"));
	}
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 0));
	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, 1));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_OK(show_qp(bed->a));
	EXPECT_STREQ("nothing", word("waits"));
	EXPECT_EQ(2, number("sq_done"));
}

TEST_F(resource, a_sender_waits_for_its_peer)
{
	struct bed *bed = self->bed;

	ASSERT_OK(ibv_destroy_qp(bed->b->qp));
	bed->b->qp = NULL;
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
		       .remote = &bed->dst));
	ASSERT_OK(wait_until_waits(bed->a, by_packets(variant) ? "ack" : "peer"));
	EXPECT_EQ(1, number("sq_active"));
	EXPECT_LE(0, number("retry_left"));
	/* without packets, the peer is missed at once */
	EXPECT_GE(by_packets(variant) ? 5 : 4, number("retry_left"));
	EXPECT_EQ(by_packets(variant) ? 1 : -1, number("flight"));
}

/* A kbit/s: the second message waits for minutes. */
TEST_F(resource, a_sender_waits_for_its_rate)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct bed *bed = self->bed;
	int i;

	ASSERT_EQ(0, ibv_modify_qp_rate_limit(bed->a->qp, &limit));
	for (i = 0; i < 16; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			       .remote = &bed->dst));
	ASSERT_OK(wait_until_waits(bed->a, "rate"));
	EXPECT_EQ(1, number("rate_limit"));
	EXPECT_LE(1, number("sq_active"));
	EXPECT_LE(1, number("sq_filled"));
}

TEST_F(resource, a_completion_queue_tells_what_is_unread)
{
	struct bed *bed = self->bed;
	struct ibv_wc wc;
	int i, cqe;

	/* a size that no other has finds it */
	ASSERT_OK(ibv_resize_cq(bed->a->scq, 5000));
	cqe = bed->a->scq->cqe;
	for (i = 0; i < WRITES; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			       .remote = &bed->dst));
	ASSERT_OK(wait_until_unread(cqe, WRITES));
	EXPECT_EQ(cqe, number("entries"));
	EXPECT_EQ(WRITES, number("unread"));
	EXPECT_EQ(number("tail"), number("head") + WRITES);
	EXPECT_EQ(0, number("overflowed"));
	EXPECT_STREQ("no", word("armed"));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(1, ibv_poll_cq(bed->a->scq, 1, &wc));
	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, true));
	ASSERT_OK(show_one("", "cq", "cqe", cqe));
	EXPECT_EQ(WRITES - 2, number("unread"));
	EXPECT_STREQ("solicited", word("armed"));
	for (; i < WRITES; i++)
		ASSERT_EQ(1, ibv_poll_cq(bed->a->scq, 1, &wc));
	ASSERT_OK(ibv_req_notify_cq(bed->a->scq, false));
	ASSERT_OK(show_one("", "cq", "cqe", cqe));
	EXPECT_EQ(0, number("unread"));
	EXPECT_STREQ("next", word("armed"));
}

TEST_F(resource, a_completion_queue_tells_that_it_overflowed)
{
	struct bed *bed = self->bed;
	int i, cqe;

	ASSERT_OK(ibv_resize_cq(bed->a->scq, 4));
	cqe = bed->a->scq->cqe;
	for (i = 0; i <= cqe; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			       .remote = &bed->dst));
	ASSERT_OK(qp_wait(bed->a->qp, IBV_QPS_ERR));
	ASSERT_OK(show_one("", "cq", "cqe", cqe));
	EXPECT_EQ(1, number("overflowed"));
	EXPECT_EQ(cqe, number("unread"));
}

/* What crosses 5 pages, and a bit of a sixth. */
TEST_F(resource, a_region_tells_its_pages)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	size_t page = sysconf(_SC_PAGESIZE), len = 5 * page;
	struct bed *bed = self->bed;
	struct ibv_mr *mr;
	char *mem;

	mem = aligned_alloc(page, 6 * page);
	ASSERT_NE(NULL, mem);
	mr = ibv_reg_mr(bed->a->pd, mem + 100, len, access);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(show_one("", "mr", "mrlen", len));
	EXPECT_STREQ("user", word("kind"));
	EXPECT_EQ(6, number("pinned_pages"));
	EXPECT_EQ(access, number("access"));
	EXPECT_EQ(1, number("valid"));
	EXPECT_EQ(0, number("windows"));
	EXPECT_EQ((uintptr_t)mem + 100, number("iova"));
	EXPECT_OK(ibv_dereg_mr(mr));
	free(mem);
}

TEST_F(resource, a_region_of_device_memory_says_so)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
	size_t page = sysconf(_SC_PAGESIZE), len = 2 * page + 4;
	struct ibv_alloc_dm_attr attr = { .length = 4 * page };
	struct bed *bed = self->bed;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	if (!bed->a->dev->ex.max_dm_size)
		SKIP(return, "the device has no memory of its own");
	dm = ibv_alloc_dm(bed->a->dev->ctx, &attr);
	ASSERT_NE(NULL, dm);
	mr = ibv_reg_dm_mr(bed->a->pd, dm, page - 4, len, access);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(show_one("", "mr", "mrlen", len));
	EXPECT_STREQ("device", word("kind"));
	EXPECT_EQ(3, number("pages"));
	EXPECT_EQ(access, number("access"));
	EXPECT_EQ(1, number("valid"));
	EXPECT_EQ(0, number("iova"));
	EXPECT_OK(ibv_dereg_mr(mr));
	EXPECT_OK(ibv_free_dm(dm));
}

TEST_F(resource, a_region_that_is_paged_on_demand_says_so)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	size_t len = 3 * sysconf(_SC_PAGESIZE) + 20;
	struct bed *bed = self->bed;
	struct ibv_mr *mr;
	void *mem;

	if (!(bed->a->dev->ex.odp_caps.general_caps & IBV_ODP_SUPPORT))
		SKIP(return, "this kernel has no on-demand paging");
	mem = malloc(len);
	ASSERT_NE(NULL, mem);
	mr = ibv_reg_mr(bed->a->pd, mem, len, access);
	ASSERT_NE(NULL, mr);
	ASSERT_OK(show_one("", "mr", "mrlen", len));
	EXPECT_STREQ("on-demand", word("kind"));
	EXPECT_EQ(access, number("access"));
	EXPECT_EQ(1, number("valid"));
	EXPECT_EQ((uintptr_t)mem, number("iova"));
	EXPECT_OK(ibv_dereg_mr(mr));
	free(mem);
}

/* Addresses and PSNs are for the administrator, and so is the number of messages. */
TEST_F(resource, a_user_is_not_told_all)
{
	struct bed *bed = self->bed;

	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			.remote = &bed->dst));
	ASSERT_OK(show_one(AS_NOBODY, "qp", "lqpn", bed->a->qp->qp_num));
	EXPECT_EQ(0, number("sq_filled"));
	EXPECT_EQ(NULL, strstr(shown, "_psn"));
	EXPECT_EQ(NULL, strstr(shown, "_head"));
	EXPECT_EQ(NULL, strstr(shown, "_tail"));
	EXPECT_EQ(NULL, strstr(shown, "sq_done"));
	ASSERT_OK(show_one(AS_NOBODY, "cq", "cqe", bed->a->scq->cqe));
	EXPECT_LE(0, number("unread"));
	EXPECT_EQ(NULL, strstr(shown, "_head"));
	EXPECT_EQ(NULL, strstr(shown, "_tail"));
	ASSERT_OK(show_one(AS_NOBODY, "mr", "mrlen", LEN));
	EXPECT_EQ(1, number("valid"));
	EXPECT_EQ(NULL, strstr(shown, "iova"));
	ASSERT_OK(show_one("", "mr", "mrlen", LEN));
	EXPECT_NE(NULL, strstr(shown, "iova"));
}

static long long psn_moved(const char *to, const char *from)
{
	return (number(to) - number_after(shown, from)) & 0xffffff;
}

/* Packets that the requester has sent are those that the responder has seen. */
TEST_F(resource, a_connection_tells_its_window)
{
	struct bed *bed = self->bed;
	int mtu, pkts;

	if (!by_packets(variant))
		SKIP(return, "needs packets");
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
			.remote = &bed->dst));
	ASSERT_OK(show_qp(bed->a));
	mtu = number("mtu");
	EXPECT_EQ(128 << bed->dev.port.active_mtu, mtu);
	pkts = LEN / mtu;
	EXPECT_LE(2, number("window"));
	EXPECT_EQ(number("window") * mtu, number("window_bytes"));
	EXPECT_EQ(0, number("flight"));
	EXPECT_LT(0, number("rtt_us"));
	EXPECT_EQ(6, number("rnr_left"));
	EXPECT_EQ(5, number("retry_left"));
	EXPECT_EQ(pkts, psn_moved("send_psn", "sq-psn"));
	EXPECT_EQ(pkts, psn_moved("unacked_psn", "sq-psn"));
	EXPECT_EQ(0, psn_moved("expected_psn", "rq-psn"));
	ASSERT_OK(show_qp(bed->b));
	EXPECT_EQ(pkts, psn_moved("expected_psn", "rq-psn"));
	EXPECT_EQ(0, psn_moved("send_psn", "sq-psn"));
}

/* ---- shared receive queues ---- */

BED(shared, LEN, .srq = true);

TEST_F(shared, a_shared_queue_tells_what_is_posted)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct bed *bed = &self->bed;
	long long srqn;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_OK(post_recv(bed->b, &bed->dst, 0, LEN, i));
	ASSERT_OK(ibv_modify_srq(bed->b->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_OK(show_qp(bed->b));
	srqn = number("srqn");
	EXPECT_EQ(-1, number("rq_posted"));
	ASSERT_LE(0, srqn);
	ASSERT_OK(show_one("", "srq", "srqn", srqn));
	if (number("entries") < 0)
		SKIP(return, "this kernel does not ask for details of these queues");
	EXPECT_EQ(3, number("posted"));
	EXPECT_EQ(3, number("tail"));
	EXPECT_EQ(2, number("limit"));
	for (i = 0; i < 2; i++) {
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
		ASSERT_DONE(wait_recv(bed->b));
	}
	ASSERT_OK(show_one("", "srq", "srqn", srqn));
	EXPECT_EQ(1, number("posted"));
	EXPECT_EQ(2, number("head"));
	/* the event has disarmed it */
	EXPECT_EQ(0, number("limit"));
}

/* ---- a process that writes nonsense into its rings ---- */

TEST(nonsense_in_a_ring_is_shown_and_not_used)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){});
	struct raw_ring rings[RINGS];
	struct side side = {};
	struct dev dev;

	ASSERT_OK(dev_open(&dev));
	ASSERT_OK(raw_side_open(&side, &dev, &opts, false, rings));
	rings[SQ].hdr->prod = 0xfffffff0;
	rings[RQ].hdr->prod = 0x80000001;
	rings[SCQ].hdr->cons = 0xdeadbeef;
	rings[SCQ].hdr->arm = 77;
	ASSERT_OK(show_qp(&side));
	EXPECT_EQ(0, number("sq_head"));
	EXPECT_EQ(0xfffffff0, number("sq_tail"));
	EXPECT_EQ(0xfffffff0, number("sq_filled"));
	EXPECT_EQ(0x80000001, number("rq_posted"));
	ASSERT_OK(show_one("", "cq", "drv_head", 0xdeadbeef));
	EXPECT_EQ(0, number("tail"));
	EXPECT_STREQ("nonsense", word("armed"));
	EXPECT_OK(side_close(&side));
	dev_close(&dev);
}

/* ---- objects that come and go meanwhile ---- */

/* Create a bed and end it, again and again, until nobody reads @ready any more. */
static void come_and_go(int ready)
{
	struct pair_opts opts = { .srq = true };
	struct bed bed;

	do {
		if (bed_open(&bed, LEN, &opts) || bed_close(&bed))
			_exit(1);
	} while (write(ready, "", 1) == 1 || errno == EAGAIN);
	_exit(0);
}

/* rdma(8) ends well: objects that are about to go are left out. KASAN looks at the rest. */
TEST(objects_come_and_go_while_they_are_shown)
{
	static const char *const kinds[] = { "qp", "cq", "srq", "mr", "pd" };
	int ready[2], status, i, j;
	pid_t child;

	signal(SIGPIPE, SIG_IGN);
	ASSERT_OK(pipe2(ready, O_NONBLOCK));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(ready[0]);
		come_and_go(ready[1]);
	}
	close(ready[1]);
	for (i = 0; i < 20; i++) {
		for (j = 0; j < ARRAY_SIZE(kinds); j++) {
			char *text = said_by("rdma -dd resource show %s 2>&1", kinds[j]);

			EXPECT_NE(NULL, text);
			free(text);
		}
	}
	close(ready[0]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
