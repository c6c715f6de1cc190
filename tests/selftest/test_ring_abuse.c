// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that writes anything into its own mapped rings. It harms only
 * itself: its queue pair ends in error, with an event. Another queue pair of
 * the same process and another process go on, and the engine comes to rest.
 * The test machine checks that the kernel's log has no complaint.
 */
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <rdma/vrnic-abi.h>

#include "native_raw.h"
#include "two.h"
#include "verbs_raw.h"

#define LEN		65536
#define MAX_WR		64
#define COOKIE		0xc00c1e
#define SEED		20250117
#define GARBAGE		100000	/* random descriptors in all */
#define ROUND		32	/* of them, for one doorbell */

FIXTURE(abuse)
{
	struct bed bed;		/* another queue pair of this process */
	struct dev dev, peer;	/* its devices, with a domain of their own */
	struct pair pair;	/* the one that is abused */
	struct side *a, *b;
	struct raw_ring ra[RINGS], rb[RINGS];
	struct buf src, dst;
	int bell, peer_bell;	/* a's, b's */
	pid_t other;		/* another process */
	int fd;
};

static uint64_t random_state;

static uint64_t rnd(void)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 29) ^ random_state;
}

static int ring_bell(FIXTURE_DATA(abuse) *self, const struct side *side)
{
	int bell = side == self->a ? self->bell : self->peer_bell;

	return raw_ring_bell(bell, side->qp->qp_num);
}

/* Events of the abused objects, thrown away; a mask of their types. */
static unsigned int drain_events(struct dev *dev)
{
	struct ibv_async_event event;
	unsigned int seen = 0;

	while (readable(dev->ctx->async_fd, 0)) {
		if (ibv_get_async_event(dev->ctx, &event))
			break;
		seen |= 1U << event.event_type;
		ibv_ack_async_event(&event);
	}
	return seen;
}

static bool saw_event(struct dev *dev, enum ibv_event_type type)
{
	struct ibv_async_event event;

	while (readable(dev->ctx->async_fd, WAIT_SECONDS * 1000)) {
		if (ibv_get_async_event(dev->ctx, &event))
			return false;
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return true;
	}
	return false;
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];

	while (ibv_poll_cq(cq, ARRAY_SIZE(wc), wc) > 0)
		;
}

/* Both ends start anew: reset has to repair the rings, whatever was written to them. */
static int recover(FIXTURE_DATA(abuse) *self)
{
	int ret = qp_to(self->a->qp, IBV_QPS_RESET);

	if (!ret)
		ret = qp_to(self->b->qp, IBV_QPS_RESET);
	drain(self->a->scq);
	drain(self->a->rcq);
	drain(self->b->scq);
	drain(self->b->rcq);
	drain_events(&self->dev);
	drain_events(&self->peer);
	return ret ? ret : pair_connect(&self->pair);
}

/* If the pair does not work, the log has to say why. */
static bool pair_works(FIXTURE_DATA(abuse) *self, uint32_t seed)
{
	const struct ibv_wc *wc = &self->a->wc;
	ssize_t wrong;
	int status;

	buf_fill(&self->src, seed);
	status = RUN(self->a, .op = IBV_WR_RDMA_WRITE, .local = &self->src,
		     .remote = &self->dst, .len = LEN);
	wrong = buf_differs(&self->dst, 0, LEN, seed, 0);
	if (status == IBV_WC_SUCCESS && wrong < 0)
		return true;
	fprintf(stderr, "# WRITE %u: status %d, vendor_err %u, wr_id %#llx\n",
		seed, status, wc->vendor_err, (unsigned long long)wc->wr_id);
	fprintf(stderr, "# wrong from byte %zd on, queue pairs' states %d and %d\n",
		wrong, qp_state(self->a->qp), qp_state(self->b->qp));
	return false;
}

static bool bystander_works(struct bed *bed, uint32_t seed)
{
	buf_fill(&bed->src, seed);
	if (post_recv(bed->b, &bed->dst, 0, LEN, seed))
		return false;
	return RUN(bed->a, .op = IBV_WR_SEND, .local = &bed->src,
		   .len = LEN) == IBV_WC_SUCCESS &&
	       wait_recv(bed->b) == IBV_WC_SUCCESS &&
	       bed->b->rwc.wr_id == seed &&
	       buf_differs(&bed->dst, 0, LEN, seed, 0) < 0;
}

/* The other process sends to itself until it is told to stop. */
static void other_main(int fd)
{
	struct bed bed = {};
	uint32_t i = 0;

	if (bed_open(&bed, LEN, NULL) || send(fd, "", 1, MSG_NOSIGNAL) != 1)
		_exit(2);
	do {
		if (!bystander_works(&bed, i++))
			_exit(1);
	} while (!readable(fd, 5));
	_exit(bed_close(&bed) ? 3 : 0);
}

static int start_other(FIXTURE_DATA(abuse) *self)
{
	int fds[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	self->other = fork();
	if (self->other < 0)
		return -errno;
	if (!self->other) {
		close(fds[0]);
		other_main(fds[1]);
	}
	close(fds[1]);
	self->fd = fds[0];
	return recv(self->fd, &byte, 1, 0) == 1 ? 0 : -EPIPE;
}

static int stop_other(FIXTURE_DATA(abuse) *self)
{
	int status;

	close(self->fd);
	return waitpid(self->other, &status, 0) == self->other ? status : -errno;
}

#define STAT_TIMES	") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu"

/* Clock ticks that the engine's threads have run so far. */
static long engine_ticks(void)
{
	unsigned long user, sys;
	char path[300], line[512];
	DIR *dir = opendir("/proc");
	struct dirent *d;
	long sum = 0;
	FILE *f;

	while (dir && (d = readdir(dir))) {
		if (!isdigit(d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		f = fopen(path, "r");
		if (f && fgets(line, sizeof(line), f) && strstr(line, "(vrnic") &&
		    sscanf(strchr(line, ')'), STAT_TIMES, &user, &sys) == 2)
			sum += user + sys;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* It must not run on with what cannot get anywhere. */
static bool engine_rests(void)
{
	long before;
	int i;

	/* the engine may have other work, and time that a CPU was away counts, too */
	for (i = 0; i < 10; i++) {
		before = engine_ticks();
		usleep(300000);
		if (engine_ticks() - before < sysconf(_SC_CLK_TCK) / 8)
			return true;
	}
	return false;
}

/* The bed's devices; if they are one, there is one domain. */
static int open_devices(FIXTURE_DATA(abuse) *self)
{
	self->dev = self->bed.dev;
	self->dev.pd = ibv_alloc_pd(self->dev.ctx);
	self->peer = self->dev;
	if (self->bed.peer.ctx) {
		self->peer = self->bed.peer;
		self->peer.pd = ibv_alloc_pd(self->peer.ctx);
	}
	return self->dev.pd && self->peer.pd ? 0 : -errno;
}

static int open_abused(FIXTURE_DATA(abuse) *self)
{
	struct pair_opts opts = pair_defaults(&(struct pair_opts){
		.max_wr = MAX_WR, .timeout = 8, .retry = 1,
		.rnr_retry = NO_RETRY,
	});
	int ret = open_devices(self);

	self->pair.opts = opts;
	self->a = &self->pair.a;
	self->b = &self->pair.b;
	if (!ret)
		ret = raw_side_open(self->a, &self->dev, &opts, false, self->ra);
	if (!ret)
		ret = raw_side_open(self->b, &self->peer, &opts, false, self->rb);
	self->a->peer = &self->peer;
	self->b->peer = &self->dev;
	if (!ret)
		ret = pair_connect(&self->pair);
	if (!ret)
		ret = buf_open(&self->src, self->dev.pd, LEN, 0, ACCESS_REMOTE);
	if (!ret)
		ret = buf_open(&self->dst, self->peer.pd, LEN, 0, ACCESS_REMOTE);
	if (!ret)
		ret = buf_twin(&self->src, self->b, ACCESS_REMOTE);
	return ret ?: buf_twin(&self->dst, self->a, ACCESS_REMOTE);
}

/* A completion is there to be taken before the ring's head counts it, and that is all soon. */
static bool has_completed(const struct raw_ring *cq, uint32_t n)
{
	struct patience p = {};

	while (__atomic_load_n(&cq->hdr->prod, __ATOMIC_ACQUIRE) != n && still_patient(&p, 0))
		usleep(1000);
	return __atomic_load_n(&cq->hdr->prod, __ATOMIC_ACQUIRE) == n;
}

/* The mappings are taken for what they are by their order: see if that is so. */
static bool rings_are_known(FIXTURE_DATA(abuse) *self)
{
	int ret = post_recv(self->b, &self->dst, 0, LEN, 1);

	if (ret || self->rb[RQ].hdr->prod != 1 || self->rb[SQ].hdr->prod)
		return false;
	ret = RUN(self->a, .op = IBV_WR_SEND, .local = &self->src, .len = 8);
	if (ret || self->ra[SQ].hdr->prod != 1 || !has_completed(&self->ra[SCQ], 1))
		return false;
	return !wait_recv(self->b) && has_completed(&self->rb[RCQ], 1) &&
	       !self->rb[SCQ].hdr->prod && !self->ra[RCQ].hdr->prod;
}

FIXTURE_SETUP(abuse)
{
	if (strncmp(dev_name(), "vrnic", 5))
		SKIP(return, "%s has no rings of vrnic", dev_name());
	random_state = SEED;
	ASSERT_OK(start_other(self));
	ASSERT_OK(bed_open(&self->bed, LEN, NULL));
	ASSERT_OK(open_abused(self));
	self->bell = raw_open_bell(self->dev.ctx);
	ASSERT_GE(self->bell, 0);
	self->peer_bell = raw_open_bell(self->peer.ctx);
	ASSERT_GE(self->peer_bell, 0);
	ASSERT_TRUE(rings_are_known(self));
	ASSERT_OK(recover(self));
}

FIXTURE_TEARDOWN(abuse)
{
	if (!self->other)
		return;
	drain_events(&self->dev);
	drain_events(&self->peer);
	EXPECT_TRUE(bystander_works(&self->bed, 77));
	EXPECT_OK(stop_other(self));
	EXPECT_TRUE(engine_rests());
	EXPECT_TRUE(buf_guards_intact(&self->src));
	EXPECT_TRUE(buf_guards_intact(&self->dst));
	EXPECT_OK(pair_close(&self->pair));
	buf_close(&self->src);
	buf_close(&self->dst);
	if (self->peer.pd != self->dev.pd)
		EXPECT_OK(ibv_dealloc_pd(self->peer.pd));
	EXPECT_OK(ibv_dealloc_pd(self->dev.pd));
	close(self->bell);
	close(self->peer_bell);
	EXPECT_OK(bed_close(&self->bed));
}

/* Put @d, which says it takes what it likes, into one slot more, and ring. */
static int inject(FIXTURE_DATA(abuse) *self, const struct vrnic_desc *d)
{
	struct raw_ring *sq = &self->ra[SQ];
	uint32_t entries = sq->bytes / VRNIC_SLOT_SIZE;
	uint32_t prod = sq->hdr->prod;

	memcpy(sq->slots + prod % entries * VRNIC_SLOT_SIZE, d, sizeof(*d));
	__atomic_store_n(&sq->hdr->prod, prod + 1, __ATOMIC_SEQ_CST);
	return ring_bell(self, self->a);
}

/* Descriptors with which something is wrong, and how that has to end. */
static const struct bad_desc {
	const char *name;
	struct vrnic_desc d;
	int status;
} bad_descs[] = {
#define BAD(what, ended, ...) { what, { __VA_ARGS__ }, ended }
	BAD("no slots", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_NOP, .num_slots = 0),
	BAD("more slots than posted", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_NOP, .num_slots = 2),
	BAD("more slots than a descriptor may have", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_NOP, .num_slots = VRNIC_MAX_SLOTS + 1),
	BAD("65535 slots", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_NOP, .num_slots = 65535),
	BAD("number of an SRQ, which is XRC's", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_NOP, .num_slots = VRNIC_XRC_DESC | 1),
	BAD("first opcode that is none", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_MAX, .num_slots = 1),
	BAD("opcode 255", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = 255, .num_slots = 1),
	BAD("REG_MR is the kernel's", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_REG_MR, .num_slots = 1,
	    .reg = { .mr = 0xffff888000000000ULL, .key = 1, .access = 15 }),
	BAD("one segment too many", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_SEND, .num_slots = 1, .num_sge = VRNIC_MAX_SGE + 1),
	BAD("2^32 - 1 segments", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_SEND, .num_slots = 1, .num_sge = ~0U),
	BAD("segments that make slots wrap", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_SEND, .num_slots = 1, .num_sge = 0xfffffffe),
	BAD("segments beyond the slots", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_RDMA_READ, .num_slots = 1, .num_sge = 3),
	BAD("inline data beyond the slots", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_RDMA_WRITE, .num_slots = 1,
	    .flags = VRNIC_DESC_INLINE, .inline_len = 33),
	BAD("inline data beyond the limit", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_RDMA_WRITE, .num_slots = 1,
	    .flags = VRNIC_DESC_INLINE, .inline_len = VRNIC_MAX_INLINE + 1),
	BAD("2^32 - 1 bytes inline", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_SEND, .num_slots = 1,
	    .flags = VRNIC_DESC_INLINE, .inline_len = ~0U),
	BAD("inline READ", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_RDMA_READ, .num_slots = 1,
	    .flags = VRNIC_DESC_INLINE, .inline_len = 8),
	BAD("longer than a message may be", IBV_WC_LOC_LEN_ERR,
	    .opcode = VRNIC_OP_RDMA_WRITE, .num_slots = 1, .num_sge = 2,
	    .sge = { { 0, ~0U, 0 }, { 0, ~0U, 0 } }),
	BAD("memory of nobody", IBV_WC_LOC_PROT_ERR,
	    .opcode = VRNIC_OP_RDMA_WRITE, .num_slots = 1, .num_sge = 1,
	    .sge = { { 0x1000, 8, 0xdeadbeef } }),
	BAD("atomic without segment", IBV_WC_LOC_LEN_ERR,
	    .opcode = VRNIC_OP_ATOMIC_FETCH_AND_ADD, .num_slots = 1),
	BAD("atomic with 2^32 - 1 segments", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_ATOMIC_CMP_AND_SWP, .num_slots = 1,
	    .num_sge = ~0U),
	BAD("ATOMIC WRITE that is not inline", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_ATOMIC_WRITE, .num_slots = 1, .num_sge = 3),
	BAD("key of nobody invalidated", IBV_WC_LOC_QP_OP_ERR,
	    .opcode = VRNIC_OP_LOCAL_INV, .num_slots = 1, .imm = 0xdeadbeef),
	BAD("window over nothing", IBV_WC_MW_BIND_ERR,
	    .opcode = VRNIC_OP_BIND_MW, .num_slots = 1,
	    .bind = { .addr = ~0ULL, .length = ~0ULL, .lkey = ~0U,
		      .old_rkey = ~0U, .new_rkey = 1, .access = ~0U }),
#undef BAD
};

TEST_F(abuse, bad_descriptors_are_told_by_their_completion)
{
	struct vrnic_desc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_descs); i++) {
		d = bad_descs[i].d;
		d.cookie = COOKIE + i;
		ASSERT_OK(inject(self, &d));
		EXPECT_EQ(bad_descs[i].status, wait_send(self->a))
			TH_LOG("%s", bad_descs[i].name);
		EXPECT_EQ(COOKIE + i, self->a->wc.wr_id)
			TH_LOG("%s", bad_descs[i].name);
		EXPECT_EQ(IBV_QPS_ERR, qp_state(self->a->qp))
			TH_LOG("%s", bad_descs[i].name);
		EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp))
			TH_LOG("%s", bad_descs[i].name);
		ASSERT_OK(inject(self, &(struct vrnic_desc){
			.opcode = VRNIC_OP_NOP, .num_slots = 1 }));
		EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(self->a));
		ASSERT_OK(recover(self));
		ASSERT_TRUE(pair_works(self, i));
	}
}

/* Far from where the kernel is: before it, beyond the ring, half the world away. */
static const uint32_t wild[] = {
	-1, -2, -64, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xdeadbeef,
};

TEST_F(abuse, wild_producer_index_of_the_send_ring)
{
	struct vrnic_ring_hdr *hdr = self->ra[SQ].hdr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		ASSERT_TRUE(pair_works(self, i));
		hdr->prod += wild[i];
		ASSERT_OK(ring_bell(self, self->a));
		EXPECT_TRUE(saw_event(&self->dev, IBV_EVENT_QP_FATAL));
		EXPECT_EQ(IBV_QPS_ERR, qp_state(self->a->qp));
		EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp));
		ASSERT_OK(recover(self));
	}
	EXPECT_TRUE(pair_works(self, i));
}

TEST_F(abuse, wild_producer_index_of_the_receive_ring)
{
	struct vrnic_ring_hdr *hdr = self->rb[RQ].hdr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		hdr->prod += wild[i];
		EXPECT_STATUS(IBV_WC_REM_OP_ERR,
			      RUN(self->a, .op = IBV_WR_SEND, .len = 8,
				  .local = &self->src));
		EXPECT_TRUE(saw_event(&self->peer, IBV_EVENT_QP_FATAL));
		EXPECT_EQ(IBV_QPS_ERR, qp_state(self->b->qp));
		if (!i)
			EXPECT_TRUE(engine_rests());
		ASSERT_OK(recover(self));
		ASSERT_TRUE(pair_works(self, i));
	}
}

static const struct bad_recv {
	uint32_t num_sge;
	struct vrnic_sge sge;
	int status;
} bad_recvs[] = {
	{ 33, {}, IBV_WC_LOC_QP_OP_ERR },
	{ ~0U, {}, IBV_WC_LOC_QP_OP_ERR },
	{ 0x10000001, {}, IBV_WC_LOC_QP_OP_ERR },
	{ 1, { 0x1000, 64, 0xdeadbeef }, IBV_WC_LOC_PROT_ERR },
	{ 1, { ~0ULL, ~0U, 0 }, IBV_WC_LOC_PROT_ERR },
};

TEST_F(abuse, bad_receives)
{
	struct raw_ring *rq = &self->rb[RQ];
	struct vrnic_recv_desc *d = (void *)rq->slots;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_recvs); i++) {
		d->cookie = COOKIE;
		d->num_sge = bad_recvs[i].num_sge;
		memcpy(d->sge, &bad_recvs[i].sge, sizeof(d->sge[0]));
		__atomic_store_n(&rq->hdr->prod, 1, __ATOMIC_SEQ_CST);
		EXPECT_STATUS(IBV_WC_REM_OP_ERR,
			      RUN(self->a, .op = IBV_WR_SEND, .len = 8,
				  .local = &self->src));
		EXPECT_STATUS(bad_recvs[i].status, wait_recv(self->b));
		EXPECT_EQ(COOKIE, self->b->rwc.wr_id);
		EXPECT_EQ(IBV_QPS_ERR, qp_state(self->b->qp));
		ASSERT_OK(recover(self));
		ASSERT_TRUE(pair_works(self, i));
	}
}

/* Receives of a kind that nobody can foresee, while the peer sends. */
TEST_F(abuse, garbage_in_the_receive_ring)
{
	struct raw_ring *rq = &self->rb[RQ];
	unsigned int i;
	size_t n;
	int j;

	for (i = 0; i < 300; i++) {
		for (n = 0; n < rq->bytes; n += sizeof(uint64_t))
			*(uint64_t *)(rq->slots + n) = rnd();
		__atomic_store_n(&rq->hdr->prod, i % 2 ? 8 : (uint32_t)rnd(),
				 __ATOMIC_SEQ_CST);
		for (j = 0; j < 8; j++)
			ASSERT_OK(POST(self->a, .op = IBV_WR_SEND,
				       .local = &self->src, .len = 64));
		for (j = 0; j < 8; j++)
			ASSERT_GE(wait_send(self->a), 0);
		EXPECT_NE(IBV_WC_SUCCESS, self->a->wc.status);
		ASSERT_OK(recover(self));
	}
	EXPECT_TRUE(pair_works(self, 1));
}

/*
 * The completion of a, whose queue's flags are anything: where they have
 * VRNIC_RING_ERROR, a poll fails for as long as the queue is empty.
 */
static int wait_despite_flags(FIXTURE_DATA(abuse) *self)
{
	int i, ret = wait_send(self->a);

	for (i = 0; i < 300000 && ret == -EIO; i++) {
		usleep(100);
		ret = wait_send(self->a);
	}
	return ret;
}

/* What the kernel publishes is for the process: it does not read it back. */
TEST_F(abuse, what_the_kernel_writes_is_overwritten)
{
	struct vrnic_desc nop = { .opcode = VRNIC_OP_NOP, .num_slots = 1,
				  .flags = VRNIC_DESC_SIGNALED };
	int i;

	for (i = 0; i < 50; i++) {
		self->ra[SCQ].hdr->prod = rnd();
		self->ra[SQ].hdr->cons = rnd();
		self->ra[SQ].hdr->flags = rnd();
		self->ra[SCQ].hdr->flags = rnd();
		nop.cookie = i;
		ASSERT_OK(inject(self, &nop));
		ASSERT_DONE(wait_despite_flags(self));
		EXPECT_EQ(i, self->a->wc.wr_id);
	}
	ASSERT_OK(recover(self));
	EXPECT_TRUE(pair_works(self, 2));
}

TEST_F(abuse, garbage_as_a_request_for_events)
{
	int i;

	for (i = 0; i < 50; i++) {
		self->ra[SCQ].hdr->arm = rnd();
		ASSERT_TRUE(pair_works(self, i));
	}
}

/* The kernel takes the completion queue for full: it says so, and goes no further. */
TEST_F(abuse, wild_consumer_index_of_the_completion_ring)
{
	struct vrnic_ring_hdr *hdr = self->ra[SCQ].hdr;

	hdr->cons = hdr->prod + 0x7fffffff;
	ASSERT_OK(inject(self, &(struct vrnic_desc){
		.opcode = VRNIC_OP_NOP, .num_slots = 1,
		.flags = VRNIC_DESC_SIGNALED }));
	EXPECT_TRUE(saw_event(&self->dev, IBV_EVENT_CQ_ERR));
	EXPECT_OK(qp_wait(self->a->qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp));
}

static struct vrnic_sge random_sge(FIXTURE_DATA(abuse) *self)
{
	struct buf *buf = rnd() & 1 ? &self->src : &self->dst;
	uint32_t dice = rnd() % 8;

	return (struct vrnic_sge){
		.addr = dice ? (uintptr_t)buf->addr + rnd() % LEN : rnd(),
		.length = dice == 1 ? rnd() : rnd() % 512,
		.lkey = dice == 2 ? rnd() : mr_at(self->a, buf)->lkey,
	};
}

/* Pure garbage, or nearly right: the latter gets further. */
static struct vrnic_desc random_desc(FIXTURE_DATA(abuse) *self)
{
	struct vrnic_desc d;
	unsigned int i;

	for (i = 0; i < sizeof(d) / 8; i++)
		((uint64_t *)&d)[i] = rnd();
	if (rnd() % 8 == 0)
		return d;
	d.opcode = rnd() % (VRNIC_OP_MAX + 1);
	d.flags = rnd() & 15;
	d.num_slots = rnd() % 8 ? 1 : rnd() % 20;
	d.num_sge = rnd() % 8 ? rnd() % 3 : rnd() % 40;
	d.remote_addr = (uintptr_t)self->dst.addr + rnd() % LEN;
	d.rkey = rnd() % 8 ? self->dst.mr->rkey : rnd();
	for (i = 0; i < VRNIC_DESC_SGES; i++)
		d.sge[i] = random_sge(self);
	if (d.flags & VRNIC_DESC_INLINE)
		d.inline_len = rnd() % 8 ? rnd() % 40 : rnd() % 2000;
	return d;
}

static void fill_round(FIXTURE_DATA(abuse) *self)
{
	struct raw_ring *sq = &self->ra[SQ];
	uint32_t entries = sq->bytes / VRNIC_SLOT_SIZE;
	uint32_t i, prod = sq->hdr->prod;
	struct vrnic_desc d;

	for (i = 0; i < ROUND; i++) {
		d = random_desc(self);
		memcpy(sq->slots + (prod + i) % entries * VRNIC_SLOT_SIZE,
		       &d, sizeof(d));
	}
	__atomic_store_n(&sq->hdr->prod, prod + ROUND, __ATOMIC_SEQ_CST);
}

TEST_F(abuse, random_descriptors)
{
	int i;

	for (i = 0; i < GARBAGE / ROUND; i++) {
		fill_round(self);
		ASSERT_OK(ring_bell(self, self->a));
		if (i % 64 == 0)
			ASSERT_TRUE(bystander_works(&self->bed, i));
		/* what waits is cut off now and then, and may end at times */
		if (i % 8 == 0)
			usleep(2000);
		ASSERT_OK(recover(self));
	}
	EXPECT_TRUE(pair_works(self, 3));
}

/* Rings of both sides are written to at random while they are in use. */
struct scribbler {
	struct raw_ring *rings[8];
	int nr;
	bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t state = SEED;
	struct raw_ring *r;
	int i = 0;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		r = s->rings[(state >> 60) % s->nr];
		if (state >> 40 & 1)
			*(volatile uint32_t *)(r->slots + (state >> 8) % r->bytes / 4 * 4) =
				state >> 32;
		else
			((volatile uint32_t *)r->hdr)[(state >> 33) % 64 / 16 * 16] =
				state >> 41 & 1 ? state >> 32 : state >> 59;
		if (++i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

TEST_F(abuse, rings_change_under_the_kernels_feet)
{
	struct scribbler s = { .nr = 8 };
	pthread_t thread;
	int i, ret = 0;

	for (i = 0; i < RINGS; i++) {
		s.rings[2 * i] = &self->ra[i];
		s.rings[2 * i + 1] = &self->rb[i];
	}
	ASSERT_OK(pthread_create(&thread, NULL, scribble, &s));
	/* the completions are garbage too: nobody looks at them */
	for (i = 0; i < 1500 && !ret; i++) {
		ret = ring_bell(self, self->a);
		if (!ret)
			ret = ring_bell(self, self->b);
		if (!ret && i % 8 == 7)
			ret = qp_to(self->a->qp, IBV_QPS_RESET);
		if (!ret && i % 8 == 7)
			ret = qp_to(self->b->qp, IBV_QPS_RESET);
		if (!ret && i % 8 == 7)
			ret = pair_connect(&self->pair);
		if (i % 64 == 0 && !bystander_works(&self->bed, i))
			ret = -EIO;
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_OK(ret);
}

/* The doorbell is one's own, too. */
TEST_F(abuse, doorbell_of_others)
{
	int i;

	EXPECT_EQ(-1, ioctl(self->bell, VRNIC_DOORBELL, ~0UL));
	EXPECT_EQ(-1, ioctl(self->bell, VRNIC_DOORBELL, 1UL << 32));
	EXPECT_EQ(-1, ioctl(self->bell, VRNIC_DOORBELL + 1, 0));
	for (i = 0; i < 2000; i++)
		ioctl(self->bell, VRNIC_DOORBELL, rnd() & 0xffffff);
	EXPECT_TRUE(pair_works(self, 4));
}

TEST_HARNESS_MAIN
