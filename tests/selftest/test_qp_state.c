// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pair states: what may follow what, and that query tells what was set. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "harness.h"

FIXTURE(qp)
{
	struct dev dev;
	struct side side;
	struct pair_opts opts;
};

FIXTURE_VARIANT(qp)
{
	enum ibv_qp_type type;
};

FIXTURE_VARIANT_ADD(qp, rc) { .type = IBV_QPT_RC };
FIXTURE_VARIANT_ADD(qp, uc) { .type = IBV_QPT_UC };
FIXTURE_VARIANT_ADD(qp, ud) { .type = IBV_QPT_UD };

FIXTURE_SETUP(qp)
{
	struct pair_opts opts = { .type = variant->type };

	ASSERT_OK(dev_open(&self->dev));
	self->opts = pair_defaults(&opts);
	ASSERT_OK(side_open(&self->side, &self->dev, &self->opts, false));
}

FIXTURE_TEARDOWN(qp)
{
	EXPECT_OK(side_close(&self->side));
	dev_close(&self->dev);
}

/* One proper step up the ladder. */
static int step(FIXTURE_DATA(qp) *self, enum ibv_qp_state to)
{
	struct side *side = &self->side;

	switch (to) {
	case IBV_QPS_INIT:
		return side_to_init(side, &self->opts);
	case IBV_QPS_RTR:
		return side_to_rtr(side, &self->opts, side->qp->qp_num,
				   &self->dev.gid);
	case IBV_QPS_RTS:
		if (qp_state(side->qp) == IBV_QPS_SQD)
			return qp_to(side->qp, IBV_QPS_RTS);
		return side_to_rts(side, &self->opts);
	default:
		return qp_to(side->qp, to);
	}
}

/* From RESET to @state by proper steps; to ERR by way of INIT. */
static int climb(FIXTURE_DATA(qp) *self, enum ibv_qp_state state)
{
	static const enum ibv_qp_state ladder[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
	};
	int ret = qp_to(self->side.qp, IBV_QPS_RESET);
	unsigned int i;

	if (state == IBV_QPS_RESET)
		return ret;
	for (i = 0; i < ARRAY_SIZE(ladder) && !ret; i++) {
		ret = step(self, ladder[i]);
		if (state == IBV_QPS_ERR)
			return ret ? ret : step(self, IBV_QPS_ERR);
		if (ladder[i] == state)
			break;
	}
	return ret;
}

TEST_F(qp, legal_transitions)
{
	static const enum ibv_qp_state legal[][2] = {
		{ IBV_QPS_RESET, IBV_QPS_RESET }, { IBV_QPS_RESET, IBV_QPS_INIT },
		{ IBV_QPS_INIT, IBV_QPS_RESET }, { IBV_QPS_INIT, IBV_QPS_INIT },
		{ IBV_QPS_INIT, IBV_QPS_RTR }, { IBV_QPS_INIT, IBV_QPS_ERR },
		{ IBV_QPS_RTR, IBV_QPS_RESET }, { IBV_QPS_RTR, IBV_QPS_RTS },
		{ IBV_QPS_RTR, IBV_QPS_ERR },
		{ IBV_QPS_RTS, IBV_QPS_RESET }, { IBV_QPS_RTS, IBV_QPS_SQD },
		{ IBV_QPS_RTS, IBV_QPS_ERR },
		{ IBV_QPS_SQD, IBV_QPS_RESET }, { IBV_QPS_SQD, IBV_QPS_RTS },
		{ IBV_QPS_SQD, IBV_QPS_ERR },
		{ IBV_QPS_ERR, IBV_QPS_RESET }, { IBV_QPS_ERR, IBV_QPS_ERR },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(legal); i++) {
		ASSERT_OK(climb(self, legal[i][0]));
		EXPECT_OK(step(self, legal[i][1]))
			TH_LOG("from %d to %d", legal[i][0], legal[i][1]);
		EXPECT_EQ((int)legal[i][1], qp_state(self->side.qp));
	}
}

TEST_F(qp, illegal_transitions)
{
	static const enum ibv_qp_state illegal[][2] = {
		{ IBV_QPS_RESET, IBV_QPS_RTR }, { IBV_QPS_RESET, IBV_QPS_RTS },
		{ IBV_QPS_RESET, IBV_QPS_SQD }, { IBV_QPS_RESET, IBV_QPS_SQE },
		{ IBV_QPS_INIT, IBV_QPS_RTS }, { IBV_QPS_INIT, IBV_QPS_SQD },
		{ IBV_QPS_INIT, IBV_QPS_SQE },
		{ IBV_QPS_RTR, IBV_QPS_INIT }, { IBV_QPS_RTR, IBV_QPS_RTR },
		{ IBV_QPS_RTR, IBV_QPS_SQD }, { IBV_QPS_RTR, IBV_QPS_SQE },
		{ IBV_QPS_RTS, IBV_QPS_INIT }, { IBV_QPS_RTS, IBV_QPS_RTR },
		{ IBV_QPS_RTS, IBV_QPS_SQE },
		{ IBV_QPS_SQD, IBV_QPS_INIT }, { IBV_QPS_SQD, IBV_QPS_RTR },
		{ IBV_QPS_SQD, IBV_QPS_SQE },
		{ IBV_QPS_ERR, IBV_QPS_INIT }, { IBV_QPS_ERR, IBV_QPS_RTR },
		{ IBV_QPS_ERR, IBV_QPS_RTS }, { IBV_QPS_ERR, IBV_QPS_SQD },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(illegal); i++) {
		ASSERT_OK(climb(self, illegal[i][0]));
		EXPECT_NE(0, step(self, illegal[i][1]))
			TH_LOG("from %d to %d", illegal[i][0], illegal[i][1]);
		EXPECT_EQ((int)illegal[i][0], qp_state(self->side.qp));
	}
}

/* A false claim about the current state does not open a forbidden way. */
TEST_F(qp, wrong_current_state_is_refused)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.cur_qp_state = IBV_QPS_RESET,
		.port_num = 1,
	};

	ASSERT_OK(climb(self, IBV_QPS_RTS));
	EXPECT_NE(0, ibv_modify_qp(self->side.qp, &attr, IBV_QP_STATE |
				   IBV_QP_CUR_STATE | IBV_QP_PKEY_INDEX |
				   IBV_QP_PORT |
				   (variant->type == IBV_QPT_UD ?
				    IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->side.qp));
}

TEST_F(qp, missing_attributes_are_refused)
{
	EXPECT_NE(0, qp_to(self->side.qp, IBV_QPS_INIT));
	ASSERT_OK(climb(self, IBV_QPS_INIT));
	if (variant->type != IBV_QPT_UD)
		EXPECT_NE(0, qp_to(self->side.qp, IBV_QPS_RTR));
	ASSERT_OK(climb(self, IBV_QPS_RTR));
	EXPECT_NE(0, qp_to(self->side.qp, IBV_QPS_RTS));
}

TEST_F(qp, wrong_port_pkey_and_gid_are_refused)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   (variant->type == IBV_QPT_UD ? IBV_QP_QKEY :
						  IBV_QP_ACCESS_FLAGS);

	EXPECT_NE(0, ibv_modify_qp(self->side.qp, &attr, mask));
	attr.port_num = 1;
	attr.pkey_index = self->dev.port.pkey_tbl_len;
	EXPECT_NE(0, ibv_modify_qp(self->side.qp, &attr, mask));
	EXPECT_EQ(IBV_QPS_RESET, qp_state(self->side.qp));
	ASSERT_OK(climb(self, IBV_QPS_INIT));
	if (variant->type == IBV_QPT_UD)
		return;
	self->dev.gid_index = self->dev.port.gid_tbl_len - 1;
	EXPECT_NE(0, step(self, IBV_QPS_RTR));
}

TEST_F(qp, posting_needs_the_right_state)
{
	struct side *side = &self->side;

	EXPECT_NE(0, post_recv(side, NULL, 0, 0, 0));
	ASSERT_OK(climb(self, IBV_QPS_INIT));
	EXPECT_OK(post_recv(side, NULL, 0, 0, 0));
	if (variant->type != IBV_QPT_UD)
		EXPECT_NE(0, POST(side, .op = IBV_WR_SEND));
	ASSERT_OK(climb(self, IBV_QPS_RTR));
	EXPECT_OK(post_recv(side, NULL, 0, 0, 0));
	if (variant->type != IBV_QPT_UD)
		EXPECT_NE(0, POST(side, .op = IBV_WR_SEND));
}

/* A reset empties the queues; posted requests leave no completion behind. */
TEST_F(qp, reset_forgets_what_was_posted)
{
	struct side *side = &self->side;
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		ASSERT_OK(climb(self, IBV_QPS_INIT));
		for (i = 0; i < self->opts.max_wr; i++)
			ASSERT_OK(post_recv(side, NULL, 0, 0, i));
	}
	ASSERT_OK(climb(self, IBV_QPS_RESET));
	EXPECT_EQ(0, poll_stray(side->rcq));
}

TEST_F(qp, numbers_differ)
{
	struct side other = {};

	ASSERT_OK(side_open(&other, &self->dev, &self->opts, false));
	EXPECT_NE(self->side.qp->qp_num, other.qp->qp_num);
	EXPECT_GT(self->side.qp->qp_num, 1);
	EXPECT_LT(self->side.qp->qp_num, 1 << 24);
	EXPECT_OK(side_close(&other));
}

TEST_F(qp, query_tells_what_was_created)
{
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};

	ASSERT_OK(ibv_query_qp(self->side.qp, &attr, IBV_QP_CAP, &init));
	EXPECT_EQ(self->side.scq, init.send_cq);
	EXPECT_EQ(self->side.rcq, init.recv_cq);
	EXPECT_NULL(init.srq);
	EXPECT_EQ(variant->type, init.qp_type);
	EXPECT_GE(init.cap.max_send_wr, self->opts.max_wr);
	EXPECT_GE(init.cap.max_recv_wr, self->opts.max_wr);
	EXPECT_GE(init.cap.max_send_sge, self->opts.max_sge);
	EXPECT_GE(init.cap.max_recv_sge, self->opts.max_sge);
	EXPECT_EQ(IBV_QPS_RESET, attr.qp_state);
}

/* No more than advertised is granted; asking for the granted numbers gives just them. */
TEST_F(qp, grants_what_may_be_asked_for)
{
	static const struct { uint32_t sge, data; } of[] = {
		{ 0, 0 }, { 1, 0 }, { 9, 0 }, { 32, 0 }, { 1, 300 }, { 3, 992 },
	};
	int wr[] = { 1, 7, 100, self->dev.attr->max_qp_wr / 2 + 1,
		     self->dev.attr->max_qp_wr };
	struct ibv_qp_init_attr init, again;
	struct ibv_qp *qp, *twin;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(of) * ARRAY_SIZE(wr); i++) {
		init = (struct ibv_qp_init_attr){
			.send_cq = self->side.scq,
			.recv_cq = self->side.rcq,
			.cap.max_send_wr = wr[i % ARRAY_SIZE(wr)],
			.cap.max_recv_wr = 1,
			.cap.max_send_sge = of[i / ARRAY_SIZE(wr)].sge,
			.cap.max_inline_data = of[i / ARRAY_SIZE(wr)].data,
			.qp_type = variant->type,
		};
		qp = ibv_create_qp(self->dev.pd, &init);
		ASSERT_NE(NULL, qp);
		EXPECT_GE(init.cap.max_send_wr, wr[i % ARRAY_SIZE(wr)]);
		EXPECT_LE(init.cap.max_send_wr, self->dev.attr->max_qp_wr);
		EXPECT_LE(init.cap.max_recv_wr, self->dev.attr->max_qp_wr);
		again = init;
		twin = ibv_create_qp(self->dev.pd, &again);
		ASSERT_NE(NULL, twin);
		EXPECT_OK(memcmp(&init.cap, &again.cap, sizeof(init.cap)));
		EXPECT_OK(ibv_destroy_qp(twin));
		EXPECT_OK(ibv_destroy_qp(qp));
	}
}

FIXTURE(rc)
{
	struct bed bed;
};

FIXTURE_SETUP(rc)
{
	struct pair_opts opts = {
		.timeout = 13, .retry = 5, .rnr_retry = 3, .rnr_timer = 9,
		.rd_atomic = 3, .access = IBV_ACCESS_REMOTE_READ,
	};

	ASSERT_OK(bed_open(&self->bed, 4096, &opts));
}

FIXTURE_TEARDOWN(rc)
{
	EXPECT_OK(bed_close(&self->bed));
}

TEST_F(rc, query_tells_what_modify_set)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_OK(ibv_query_qp(bed->a->qp, &attr, ~0 & ((1 << 21) - 1), &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(IBV_QPS_RTS, attr.cur_qp_state);
	EXPECT_EQ(bed->dev.port.active_mtu, attr.path_mtu);
	EXPECT_EQ(bed->b->qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(IBV_ACCESS_REMOTE_READ, attr.qp_access_flags);
	EXPECT_EQ(13, attr.timeout);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(3, attr.rnr_retry);
	EXPECT_EQ(9, attr.min_rnr_timer);
	/* providers may round up to a power of two; never down */
	EXPECT_GE(attr.max_rd_atomic, 3);
	EXPECT_GE(attr.max_dest_rd_atomic, 3);
	EXPECT_EQ(0xfffff0, attr.rq_psn);
	EXPECT_EQ(0xfffff0, attr.sq_psn);
	EXPECT_EQ(1, attr.port_num);
	EXPECT_EQ(0, attr.pkey_index);
	EXPECT_EQ(0, attr.sq_draining);
	EXPECT_TRUE(attr.ah_attr.is_global);
	EXPECT_EQ(bed->dev.gid_index, attr.ah_attr.grh.sgid_index);
	EXPECT_OK(memcmp(&bed->b->dev->gid, &attr.ah_attr.grh.dgid, 16));
	EXPECT_EQ(64, attr.ah_attr.grh.hop_limit);
}

TEST_F(rc, attributes_change_in_rts)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.min_rnr_timer = 12,
	};

	ASSERT_OK(ibv_modify_qp(bed->b->qp, &attr, IBV_QP_STATE |
				IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER));
	ASSERT_OK(ibv_query_qp(bed->b->qp, &attr, IBV_QP_ACCESS_FLAGS |
			       IBV_QP_MIN_RNR_TIMER, &init));
	EXPECT_EQ(IBV_ACCESS_REMOTE_WRITE, attr.qp_access_flags);
	EXPECT_EQ(12, attr.min_rnr_timer);
	EXPECT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
			.len = 8, .remote = &bed->dst));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src,
			  .len = 8, .remote = &bed->dst));
}

/* SQD: what was posted before completes, what is posted after waits. */
TEST_F(rc, drained_queue_holds_new_requests_back)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};
	struct ibv_async_event event = {};

	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .wr_id = 1,
		       .local = &bed->src, .len = 4096, .remote = &bed->dst));
	ASSERT_OK(ibv_modify_qp(bed->a->qp, &attr, IBV_QP_STATE |
				IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ASSERT_EQ(IBV_EVENT_SQ_DRAINED, wait_event(bed->dev.ctx, &event));
	EXPECT_EQ(bed->a->qp, event.element.qp);
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .wr_id = 2,
		       .local = &bed->src, .len = 8, .remote = &bed->dst));
	EXPECT_EQ(0, poll_stray(bed->a->scq));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RTS));
	ASSERT_DONE(wait_send(bed->a));
	EXPECT_EQ(2, bed->a->wc.wr_id);
}

static int draining(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? : attr.sq_draining;
}

/* Nobody receives what is under way: it does not drain. */
TEST_F(rc, draining_ends_with_sqd)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src, .len = 8,
		       .remote = &bed->dst));
	ASSERT_DONE(wait_send(bed->a));
	ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
	ASSERT_OK(POST(bed->a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_SQD));
	EXPECT_EQ(1, draining(bed->a->qp));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RTS));
	EXPECT_EQ(0, draining(bed->a->qp));
}

static void rtr_attr(struct ibv_qp_attr *attr, const struct dev *dev)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = dev->port.active_mtu,
		.dest_qp_num = 0x4711,
		.rq_psn = 0x123,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 3,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = dev->gid,
				.sgid_index = dev->gid_index,
				.hop_limit = 64,
			},
		},
	};
}

#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

TEST_F(rc, path_mtu_is_not_above_that_of_the_port)
{
	struct ibv_qp *qp = self->bed.a->qp;
	struct ibv_qp_attr attr;
	struct pair_opts opts = self->bed.pair.opts;

	if (self->bed.dev.port.active_mtu == IBV_MTU_4096)
		SKIP(return, "there is no larger one");
	ASSERT_OK(qp_to(qp, IBV_QPS_RESET));
	ASSERT_OK(side_to_init(self->bed.a, &opts));
	rtr_attr(&attr, &self->bed.dev);
	attr.path_mtu++;
	EXPECT_NE(0, ibv_modify_qp(qp, &attr, RTR_MASK));
	attr.path_mtu--;
	EXPECT_OK(ibv_modify_qp(qp, &attr, RTR_MASK));
}

/* Another program has the socket's port: a queue pair cannot leave this host. */
TEST_F(rc, rtr_that_fails_changes_nothing)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_port = htons(4791),
	};
	struct ibv_qp *qp = self->bed.a->qp;
	struct pair_opts opts = self->bed.pair.opts;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr, now;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ASSERT_GE(fd, 0);
	/* if that fails, somebody has it */
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
		ASSERT_EQ(EADDRINUSE, errno);
	ASSERT_OK(qp_to(qp, IBV_QPS_RESET));
	ASSERT_OK(side_to_init(self->bed.a, &opts));
	rtr_attr(&attr, &self->bed.dev);
	inet_pton(AF_INET6, "::ffff:127.9.9.9", &attr.ah_attr.grh.dgid);
	if (!ibv_modify_qp(qp, &attr, RTR_MASK)) {
		close(fd);
		SKIP(return, "the device has its socket");
	}
	ASSERT_OK(ibv_query_qp(qp, &now, RTR_MASK, &init));
	EXPECT_EQ(IBV_QPS_INIT, now.qp_state);
	EXPECT_EQ(0, now.dest_qp_num);
	EXPECT_EQ(0, now.rq_psn);
	EXPECT_EQ(0, now.max_dest_rd_atomic);
	EXPECT_EQ(0, now.min_rnr_timer);
	EXPECT_FALSE(now.ah_attr.is_global);
	attr.ah_attr.grh.dgid = self->bed.dev.gid;
	EXPECT_OK(ibv_modify_qp(qp, &attr, RTR_MASK));
	close(fd);
}

/* The peer stays the same, the way to it need not. */
TEST_F(rc, address_changes_while_drained)
{
	struct bed *bed = &self->bed;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src,
			.len = 4096, .remote = &bed->dst));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_SQD));
	ASSERT_OK(ibv_query_qp(bed->a->qp, &attr, IBV_QP_AV, &init));
	attr.qp_state = IBV_QPS_SQD;
	attr.ah_attr.grh.traffic_class = 0x20;
	ASSERT_OK(ibv_modify_qp(bed->a->qp, &attr, IBV_QP_STATE | IBV_QP_AV));
	ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RTS));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src,
			.len = 4096, .remote = &bed->dst));
	ASSERT_OK(ibv_query_qp(bed->a->qp, &attr, IBV_QP_AV, &init));
	EXPECT_EQ(0x20, attr.ah_attr.grh.traffic_class);
}

TEST_F(rc, reset_and_connect_again)
{
	struct bed *bed = &self->bed;
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_OK(POST(bed->a, .op = IBV_WR_RDMA_READ,
			       .local = &bed->src, .len = 4096,
			       .remote = &bed->dst));
		ASSERT_OK(qp_to(bed->a->qp, IBV_QPS_RESET));
		ASSERT_OK(qp_to(bed->b->qp, IBV_QPS_RESET));
		while (ibv_poll_cq(bed->a->scq, 1, &bed->a->wc) > 0)
			;
		ASSERT_OK(pair_connect(&bed->pair));
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_READ, .wr_id = 77,
				.local = &bed->src, .len = 8,
				.remote = &bed->dst));
		ASSERT_EQ(77, bed->a->wc.wr_id);
	}
}

TEST_F(rc, destroyed_in_every_state)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = pair_defaults(NULL);
	struct side side;
	int i;

	for (i = 0; i < 5; i++) {
		memset(&side, 0, sizeof(side));
		ASSERT_OK(side_open(&side, &bed->dev, &opts, false));
		if (i > 0)
			ASSERT_OK(side_to_init(&side, &opts));
		if (i > 1)
			ASSERT_OK(side_to_rtr(&side, &opts, side.qp->qp_num,
					      &bed->dev.gid));
		if (i > 2)
			ASSERT_OK(side_to_rts(&side, &opts));
		if (i > 3)
			ASSERT_OK(qp_to(side.qp, IBV_QPS_SQD));
		if (i > 0)
			ASSERT_OK(post_recv(&side, NULL, 0, 0, 0));
		EXPECT_OK(side_close(&side));
	}
}

TEST_HARNESS_MAIN
