// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion counters, by the calls that libibverbs makes since rdma-core 65, and by what its
 * provider maps. Both ends of each connection have counters; on this host, and over the wire.
 */
#include "comp_raw.h"
#include "fault.h"

#define LEN	(512 * 1024)
#define PIECE	(LEN / 32)

/* The value in memory, when it has come to @least: the peer may count a little later. */
static uint64_t completed(const struct cntr *cntr, uint64_t least)
{
	struct patience p = {};
	uint64_t value;

	do
		value = __atomic_load_n(&cntr->cell->completed, __ATOMIC_ACQUIRE);
	while (value < least && still_patient(&p, value));
	return value;
}

static uint64_t errors(const struct cntr *cntr, uint64_t least)
{
	struct patience p = {};
	uint64_t value;

	do
		value = __atomic_load_n(&cntr->cell->errors, __ATOMIC_ACQUIRE);
	while (value < least && still_patient(&p, value));
	return value;
}

#define CNTRS	6

/**
 * struct comp - a connection, each of whose ends has a counter for every operation
 * @a, @b: counters of the ends, by operation
 */
FIXTURE(comp)
{
	struct wire_bed wire;
	struct bed local;
	struct bed *bed;
	struct cntr a[CNTRS], b[CNTRS];
};

FIXTURE_VARIANT(comp)
{
	bool wire;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(comp, local) {};
FIXTURE_VARIANT_ADD(comp, wire) { .wire = true };
FIXTURE_VARIANT_ADD(comp, local_bytes) { .flags = VRNIC_COMP_CNTR_BYTES };
FIXTURE_VARIANT_ADD(comp, wire_bytes) { .wire = true, .flags = VRNIC_COMP_CNTR_BYTES };

/* Does the kernel know counters? That of a device that lacks them knows the call. */
static bool there_are_counters(struct ibv_context *ctx)
{
	uint32_t most, ops;
	uint64_t value;

	return cntr_caps(ctx, &most, &value, &ops) != EPROTONOSUPPORT;
}

static int count_side(struct cntr *cntrs, const struct side *side, uint32_t flags)
{
	int i, ret = 0;

	for (i = 0; i < CNTRS && !ret; i++) {
		ret = cntr_open(&cntrs[i], side->dev->ctx, flags);
		if (!ret)
			ret = cntr_attach(&cntrs[i], side->qp, 1 << i);
	}
	return ret;
}

/* Counters are attached before the queue pairs are connected. */
static int count_pair(struct bed *bed, struct cntr *a, struct cntr *b, uint32_t flags)
{
	int ret = qp_to(bed->a->qp, IBV_QPS_RESET) ?: qp_to(bed->b->qp, IBV_QPS_RESET);

	ret = ret ?: count_side(a, bed->a, flags) ?: count_side(b, bed->b, flags);
	return ret ?: pair_connect(&bed->pair);
}

FIXTURE_SETUP(comp)
{
	const struct pair_opts opts = { .max_wr = 64, .timeout = 18 };

	self->bed = variant->wire ? &self->wire.bed : &self->local;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, &opts) :
				  bed_open(&self->local, LEN, &opts));
	if (!there_are_counters(self->bed->dev.ctx))
		SKIP(return, "this kernel has no completion counters");
	ASSERT_OK(count_pair(self->bed, self->a, self->b, variant->flags));
}

FIXTURE_TEARDOWN(comp)
{
	int i;

	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->local));
	/* with its context */
	for (i = 0; i < CNTRS; i++) {
		cntr_unmap(&self->a[i]);
		cntr_unmap(&self->b[i]);
	}
}

static struct cntr *of(struct cntr *cntrs, enum cc_op op)
{
	return &cntrs[__builtin_ctz(op)];
}

/* Requests of @len bytes each, counted as @variant does. */
#define COUNTED(n, len)	(variant->flags & VRNIC_COMP_CNTR_BYTES ? (uint64_t)(n) * (len) : (n))

/* @n signaled requests of @len bytes, one after the other. */
static int run(struct bed *bed, enum ibv_wr_opcode op, int n, size_t len)
{
	int i, ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = RUN(bed->a, .op = op, .local = &bed->src, .len = len, .remote = &bed->dst);
	return ret;
}

static unsigned int mtu_bytes(enum ibv_mtu mtu) { return 128 << mtu; }

static int recvs(struct bed *bed, int n, size_t len)
{
	int i, ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = post_recv(bed->b, &bed->dst, 0, len, i);
	return ret;
}

TEST_F(comp, counts_each_operation_at_each_end)
{
	struct bed *bed = self->bed;

	ASSERT_OK(recvs(bed, 3, 100));
	ASSERT_DONE(run(bed, IBV_WR_SEND, 3, 100));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 5, 9000));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_READ, 7, 10000));

	EXPECT_EQ(COUNTED(3, 100), completed(of(self->a, CC_SEND), COUNTED(3, 100)));
	EXPECT_EQ(COUNTED(3, 100), completed(of(self->b, CC_RECV), COUNTED(3, 100)));
	EXPECT_EQ(COUNTED(5, 9000), completed(of(self->a, CC_RDMA_WRITE), COUNTED(5, 9000)));
	EXPECT_EQ(COUNTED(5, 9000), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(5, 9000)));
	EXPECT_EQ(COUNTED(7, 10000), completed(of(self->a, CC_RDMA_READ), COUNTED(7, 10000)));
	EXPECT_EQ(COUNTED(7, 10000), completed(of(self->b, CC_REMOTE_READ), COUNTED(7, 10000)));

	/* the other end has had nothing of each */
	EXPECT_EQ(0, completed(of(self->a, CC_RECV), 0));
	EXPECT_EQ(0, completed(of(self->a, CC_REMOTE_WRITE), 0));
	EXPECT_EQ(0, completed(of(self->a, CC_REMOTE_READ), 0));
	EXPECT_EQ(0, completed(of(self->b, CC_SEND), 0));
	EXPECT_EQ(0, completed(of(self->b, CC_RDMA_WRITE), 0));
	EXPECT_EQ(0, completed(of(self->b, CC_RDMA_READ), 0));
}

/* With an immediate, a WRITE takes a receive, too. */
TEST_F(comp, a_write_with_immediate_counts_as_both)
{
	struct bed *bed = self->bed;
	int i;

	ASSERT_OK(recvs(bed, 2, 0));
	for (i = 0; i < 2; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE_WITH_IMM, .local = &bed->src,
				.len = 6000, .remote = &bed->dst, .imm = i));
	EXPECT_EQ(COUNTED(2, 6000), completed(of(self->a, CC_RDMA_WRITE), COUNTED(2, 6000)));
	EXPECT_EQ(COUNTED(2, 6000), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(2, 6000)));
	EXPECT_EQ(COUNTED(2, 6000), completed(of(self->b, CC_RECV), COUNTED(2, 6000)));
	EXPECT_EQ(0, completed(of(self->a, CC_SEND), 0));
}

/* No counter is for atomic operations. */
TEST_F(comp, leaves_out_atomics)
{
	struct bed *bed = self->bed;
	int i;

	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &bed->src, .len = 8,
			.remote = &bed->dst, .value = 1));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 1, 8));
	EXPECT_EQ(COUNTED(1, 8), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(1, 8)));
	for (i = 0; i < CNTRS; i++) {
		if (1 << i != CC_RDMA_WRITE)
			EXPECT_EQ(0, completed(&self->a[i], 0));
		if (1 << i != CC_REMOTE_WRITE)
			EXPECT_EQ(0, completed(&self->b[i], 0));
	}
}

/* The data are there when the counter says so. */
TEST_F(comp, needs_no_completions)
{
	struct bed *bed = self->bed;
	int i;

	buf_fill(&bed->src, 1);
	for (i = 0; i < 32; i++)
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			       .loff = i * PIECE, .len = PIECE, .remote = &bed->dst,
			       .roff = i * PIECE, .unsignaled = true));
	EXPECT_EQ(COUNTED(32, PIECE), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(32, PIECE)));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, LEN, 1, 0));
	EXPECT_EQ(COUNTED(32, PIECE), completed(of(self->a, CC_RDMA_WRITE), COUNTED(32, PIECE)));
	EXPECT_EQ(0, poll_stray(bed->a->scq));
}

/* A message of no bytes is a message. */
TEST_F(comp, counts_empty_messages)
{
	struct bed *bed = self->bed;

	ASSERT_OK(recvs(bed, 1, 0));
	ASSERT_DONE(run(bed, IBV_WR_SEND, 1, 0));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 1, 0));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_READ, 1, 0));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->a, CC_SEND), COUNTED(1, 0)));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->b, CC_RECV), COUNTED(1, 0)));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->a, CC_RDMA_WRITE), COUNTED(1, 0)));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(1, 0)));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->a, CC_RDMA_READ), COUNTED(1, 0)));
	EXPECT_EQ(COUNTED(1, 0), completed(of(self->b, CC_REMOTE_READ), COUNTED(1, 0)));
}

/* The requester asks for a long READ in parts: 64 packets each, over the wire. */
TEST_F(comp, counts_the_parts_of_a_long_read_at_the_target)
{
	struct bed *bed = self->bed;
	uint64_t at_target = COUNTED(1, LEN);

	if (variant->wire && !variant->flags)
		at_target = LEN / (64 * mtu_bytes(bed->dev.port.active_mtu));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_READ, 1, LEN));
	EXPECT_EQ(COUNTED(1, LEN), completed(of(self->a, CC_RDMA_READ), COUNTED(1, LEN)));
	EXPECT_EQ(at_target, completed(of(self->b, CC_REMOTE_READ), at_target));
}

/* What failed, and what was flushed after it, is not among the bytes. */
TEST_F(comp, counts_errors_apart)
{
	struct bed *bed = self->bed;

	ASSERT_OK(recvs(bed, 4, 100));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src, .len = 100,
		       .remote = &bed->dst, .rkey = ~bed->dst.mr->rkey));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 100));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 100));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, wait_send(bed->a));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_send(bed->a));
	EXPECT_EQ(1, errors(of(self->a, CC_RDMA_READ), 1));
	EXPECT_EQ(2, errors(of(self->a, CC_SEND), 2));
	EXPECT_EQ(4, errors(of(self->b, CC_RECV), 4));
	EXPECT_EQ(0, errors(of(self->b, CC_REMOTE_READ), 0));
	EXPECT_EQ(0, completed(of(self->a, CC_RDMA_READ), 0));
	EXPECT_EQ(0, completed(of(self->a, CC_SEND), 0));
	EXPECT_EQ(0, completed(of(self->b, CC_RECV), 0));
	EXPECT_EQ(0, completed(of(self->b, CC_REMOTE_READ), 0));
}

TEST_F(comp, stays_attached_over_a_reset)
{
	struct bed *bed = self->bed;

	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 1, 64));
	EXPECT_EQ(COUNTED(1, 64), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(1, 64)));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	ASSERT_OK(pair_connect(&bed->pair));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 1, 64));
	EXPECT_EQ(COUNTED(2, 64), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(2, 64)));
	EXPECT_EQ(COUNTED(2, 64), completed(of(self->a, CC_RDMA_WRITE), COUNTED(2, 64)));
}

/* A READ whose answer is sent again, in part or whole, counts once. */
TEST_F(comp, counts_once_what_is_sent_again)
{
	struct bed *bed = self->bed;
	int i;

	if (!variant->wire)
		SKIP(return, "nothing is sent");
	if (!faults_can_be_there())
		SKIP(return, "no debugfs, or another driver's device");
	ASSERT_OK(fault_write("seed", 5));
	ASSERT_OK(ARM("drop", .probability = 10));
	ASSERT_OK(recvs(bed, 20, 100));
	for (i = 0; i < 20; i++) {
		ASSERT_DONE(run(bed, IBV_WR_RDMA_READ, 1, PIECE));
		ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 1, PIECE));
		ASSERT_DONE(run(bed, IBV_WR_SEND, 1, 100));
	}
	ASSERT_OK(fault_disarm("drop"));
	EXPECT_LT(0, injected("drop"));
	EXPECT_EQ(COUNTED(20, PIECE), completed(of(self->b, CC_REMOTE_READ), COUNTED(20, PIECE)));
	EXPECT_EQ(COUNTED(20, PIECE), completed(of(self->b, CC_REMOTE_WRITE), COUNTED(20, PIECE)));
	EXPECT_EQ(COUNTED(20, 100), completed(of(self->b, CC_RECV), COUNTED(20, 100)));
	EXPECT_EQ(COUNTED(20, PIECE), completed(of(self->a, CC_RDMA_READ), COUNTED(20, PIECE)));
	EXPECT_EQ(COUNTED(20, PIECE), completed(of(self->a, CC_RDMA_WRITE), COUNTED(20, PIECE)));
	EXPECT_EQ(COUNTED(20, 100), completed(of(self->a, CC_SEND), COUNTED(20, 100)));
}

/* ---- the object ---- */

FIXTURE(object)
{
	struct bed bed;
	struct ibv_context *ctx;
	struct cntr cntr;
};

FIXTURE_SETUP(object)
{
	ASSERT_OK(bed_open(&self->bed, 4096, &(struct pair_opts){}));
	self->ctx = self->bed.dev.ctx;
	if (!there_are_counters(self->ctx))
		SKIP(return, "this kernel has no completion counters");
	ASSERT_OK(cntr_open(&self->cntr, self->ctx, 0));
}

FIXTURE_TEARDOWN(object)
{
	EXPECT_OK(bed_close(&self->bed));
	cntr_unmap(&self->cntr);
}

TEST_F(object, caps)
{
	uint32_t most, ops;
	uint64_t value;

	ASSERT_OK(cntr_caps(self->ctx, &most, &value, &ops));
	EXPECT_LT(1000U, most);
	EXPECT_EQ(~0ULL, value);
	EXPECT_EQ((uint32_t)CC_ALL, ops);
}

/* The kernel and the process have one value. */
TEST_F(object, is_set_and_raised_from_both_sides)
{
	struct cntr *cntr = &self->cntr;

	EXPECT_EQ(0, cntr_read(cntr, CC_COMPLETED));
	EXPECT_EQ(0, cntr_read(cntr, CC_ERRORS));
	ASSERT_OK(cntr_modify(cntr, CC_COMPLETED, CC_SET, 1000));
	ASSERT_OK(cntr_modify(cntr, CC_ERRORS, CC_SET, 7));
	EXPECT_EQ(1000, cntr->cell->completed);
	EXPECT_EQ(7, cntr->cell->errors);
	__atomic_fetch_add(&cntr->cell->completed, 24, __ATOMIC_RELEASE);
	EXPECT_EQ(1024, cntr_read(cntr, CC_COMPLETED));
	ASSERT_OK(cntr_modify(cntr, CC_COMPLETED, CC_INC, -1025ULL));
	EXPECT_EQ(~0ULL, cntr->cell->completed);
	ASSERT_OK(cntr_modify(cntr, CC_COMPLETED, CC_INC, 3));
	EXPECT_EQ(2, cntr_read(cntr, CC_COMPLETED));
	ASSERT_OK(cntr_modify(cntr, CC_ERRORS, CC_INC, 1));
	EXPECT_EQ(8, cntr_read(cntr, CC_ERRORS));
	EXPECT_EQ(EINVAL, cntr_modify(cntr, 2, CC_SET, 1));
	EXPECT_EQ(EINVAL, cntr_modify(cntr, CC_COMPLETED, 2, 1));
	EXPECT_EQ(~0ULL, cntr_read(cntr, 2));
	EXPECT_EQ(2, cntr->cell->completed);
}

TEST_F(object, refuses_unknown_flags)
{
	struct cntr cntr;

	EXPECT_EQ(EINVAL, cntr_open(&cntr, self->ctx, VRNIC_COMP_CNTR_BYTES << 1));
}

/* By a program that does not want to map it. */
TEST_F(object, can_be_made_without_memory)
{
	struct cntr cntr;

	ASSERT_OK(cntr_create(&cntr, self->ctx));
	ASSERT_OK(cntr_modify(&cntr, CC_COMPLETED, CC_SET, 5));
	EXPECT_EQ(5, cntr_read(&cntr, CC_COMPLETED));
	EXPECT_OK(cntr_destroy(&cntr));
}

TEST_F(object, attaches_before_the_queue_pair_is_connected)
{
	struct ibv_qp *qp = self->bed.a->qp;

	EXPECT_EQ(EINVAL, cntr_attach(&self->cntr, qp, CC_SEND));
	ASSERT_OK(qp_to(qp, IBV_QPS_ERR));
	EXPECT_EQ(EINVAL, cntr_attach(&self->cntr, qp, CC_SEND));
	ASSERT_OK(qp_to(qp, IBV_QPS_RESET));
	EXPECT_OK(cntr_attach(&self->cntr, qp, CC_SEND));
	ASSERT_OK(side_to_init(self->bed.a, &self->bed.pair.opts));
	EXPECT_OK(cntr_attach(&self->cntr, qp, CC_RECV));
}

TEST_F(object, an_operation_has_one_counter)
{
	struct ibv_qp *qp = self->bed.a->qp;
	struct cntr other;

	ASSERT_OK(cntr_open(&other, self->ctx, 0));
	ASSERT_OK(qp_to(qp, IBV_QPS_RESET));
	EXPECT_EQ(EINVAL, cntr_attach(&self->cntr, qp, 0));
	EXPECT_EQ(EINVAL, cntr_attach(&self->cntr, qp, CC_ALL + 1));
	EXPECT_OK(cntr_attach(&self->cntr, qp, CC_SEND | CC_RDMA_WRITE));
	EXPECT_EQ(EBUSY, cntr_attach(&other, qp, CC_SEND));
	EXPECT_EQ(EBUSY, cntr_attach(&other, qp, CC_RDMA_READ | CC_RDMA_WRITE));
	EXPECT_OK(cntr_attach(&other, qp, CC_RDMA_READ | CC_RECV));
	/* the queue pair has both */
	EXPECT_EQ(EBUSY, cntr_close(&other));
	EXPECT_EQ(EBUSY, cntr_destroy(&self->cntr));
}

TEST_F(object, goes_after_its_queue_pairs)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD, .send_cq = self->bed.a->scq, .recv_cq = self->bed.a->rcq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(self->bed.a->pd, &attr);

	ASSERT_NE(NULL, qp);
	ASSERT_OK(cntr_attach(&self->cntr, qp, CC_ALL));
	EXPECT_EQ(EBUSY, cntr_destroy(&self->cntr));
	ASSERT_OK(ibv_destroy_qp(qp));
	EXPECT_OK(cntr_destroy(&self->cntr));
}

/* One counter may be that of all operations, and of many queue pairs. */
TEST_F(object, adds_up)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	ASSERT_OK(cntr_attach(&self->cntr, bed->a->qp, CC_ALL));
	ASSERT_OK(cntr_attach(&self->cntr, bed->b->qp, CC_ALL));
	ASSERT_OK(pair_connect(&bed->pair));
	ASSERT_OK(recvs(bed, 3, 64));
	ASSERT_DONE(run(bed, IBV_WR_SEND, 3, 64));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_WRITE, 3, 64));
	ASSERT_DONE(run(bed, IBV_WR_RDMA_READ, 3, 64));
	EXPECT_EQ(18, completed(&self->cntr, 18));
	EXPECT_EQ(0, errors(&self->cntr, 0));
}

#define MANY	200	/* more than there are in three pages */

TEST_F(object, there_can_be_many)
{
	static struct cntr many[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		ASSERT_OK(cntr_open(&many[i], self->ctx, 0));
	for (i = 0; i < MANY; i++)
		ASSERT_OK(cntr_modify(&many[i], CC_COMPLETED, CC_SET, i));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i, many[i].cell->completed);
	for (i = 0; i < MANY; i++)
		ASSERT_OK(cntr_close(&many[i]));
	/* one that takes the place of an old one begins at zero */
	ASSERT_OK(cntr_open(&many[0], self->ctx, 0));
	EXPECT_EQ(0, many[0].cell->completed);
	ASSERT_OK(cntr_close(&many[0]));
}

/* A process that has got the file uses the counters of the context, as it does its queue pairs. */
static int child_counts(void *arg)
{
	struct cntr *cntr = arg, own;

	/* the mapping is there after the fork, and the counter can be mapped anew */
	__atomic_fetch_add(&cntr->cell->completed, 1, __ATOMIC_RELEASE);
	if (cntr_open(&own, cntr->ctx, 0))
		return -EIO;
	own.cell->completed = 7;
	return cntr_read(&own, CC_COMPLETED) == 7 ? cntr_close(&own) : -EIO;
}

TEST_F(object, is_there_after_a_fork)
{
	ASSERT_OK(run_child(child_counts, &self->cntr));
	EXPECT_EQ(1, cntr_read(&self->cntr, CC_COMPLETED));
}

/* ---- other queue pairs ---- */

FIXTURE(other)
{
	struct bed bed;
};

FIXTURE_VARIANT(other)
{
	enum ibv_qp_type type;
	bool srq;
	size_t extra;
};

FIXTURE_VARIANT_ADD(other, ud) { .type = IBV_QPT_UD, .extra = GRH_BYTES };
FIXTURE_VARIANT_ADD(other, uc) { .type = IBV_QPT_UC };
FIXTURE_VARIANT_ADD(other, srq) { .type = IBV_QPT_RC, .srq = true };

FIXTURE_SETUP(other)
{
	ASSERT_OK(bed_open(&self->bed, 4096, &(struct pair_opts){
			   .type = variant->type, .srq = variant->srq }));
}

FIXTURE_TEARDOWN(other)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(other, counts_messages)
{
	struct bed *bed = &self->bed;
	struct cntr cntr;

	if (!there_are_counters(bed->dev.ctx))
		SKIP(return, "this kernel has no completion counters");
	ASSERT_OK(cntr_open(&cntr, bed->dev.ctx, 0));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	ASSERT_OK(cntr_attach(&cntr, bed->a->qp, CC_SEND));
	ASSERT_OK(cntr_attach(&cntr, bed->b->qp, CC_RECV));
	ASSERT_OK(pair_connect(&bed->pair));
	ASSERT_OK(recvs(bed, 2, 64 + variant->extra));
	ASSERT_DONE(run(bed, IBV_WR_SEND, 2, 64));
	EXPECT_EQ(4, completed(&cntr, 4));
	cntr_unmap(&cntr);
}

TEST_HARNESS_MAIN
