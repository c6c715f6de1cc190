// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC: domains, their SRQs, initiators and targets; in memory and with packets. The target and its
 * domain are where side b of the bed is.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fault.h"
#include "harness.h"
#include "native_raw.h"
#include "native_trace.h"
#include "verbs_raw.h"
#include "xrc_bed.h"

#define LEN		(1 << 18)
#define NO_SUCH_SRQ	0xabcdefU

FIXTURE(xrc)
{
	struct wire_bed wire;
	struct bed *bed;
	struct pair_opts to_ini, to_tgt;
	struct ibv_xrcd *xrcd;
	struct box box[2];
	struct side ini, tgt;
};

FIXTURE_VARIANT(xrc) { bool wire; };
FIXTURE_VARIANT_ADD(xrc, memory) { .wire = false };
FIXTURE_VARIANT_ADD(xrc, packets) { .wire = true };

static int connect_target(FIXTURE_DATA(xrc) *self, struct side *tgt, struct side *ini)
{
	return side_connect(tgt, &self->to_tgt, ini->qp->qp_num, &self->bed->a->dev->gid);
}

static int connect_both(FIXTURE_DATA(xrc) *self, struct side *ini, struct side *tgt)
{
	int ret = side_connect(ini, &self->to_ini, tgt->qp->qp_num, &self->bed->b->dev->gid);

	return ret ?: connect_target(self, tgt, ini);
}

FIXTURE_SETUP(xrc)
{
	const struct pair_opts ini = { .type = IBV_QPT_XRC_SEND, .access = NO_ACCESS };
	const struct pair_opts tgt = { .type = IBV_QPT_XRC_RECV };
	int i;

	self->to_ini = pair_defaults(&ini);
	self->to_tgt = pair_defaults(&tgt);
	self->bed = &self->wire.bed;
	ASSERT_OK(variant->wire ? wire_bed_open(&self->wire, LEN, NULL) :
				  bed_open(self->bed, LEN, NULL));
	self->xrcd = open_domain(self->bed->b->dev->ctx, -1, O_CREAT);
	ASSERT_NE(NULL, self->xrcd);
	for (i = 0; i < 2; i++)
		ASSERT_OK(box_open(&self->box[i], self->bed->b->dev, self->xrcd));
	ASSERT_NE(self->box[0].srqn, self->box[1].srqn);
	ASSERT_OK(open_initiator(&self->ini, self->bed, 0));
	self->tgt.dev = self->bed->b->dev;
	self->tgt.qp = open_target(self->bed->b->dev->ctx, self->xrcd);
	ASSERT_NE(NULL, self->tgt.qp);
	ASSERT_OK(connect_both(self, &self->ini, &self->tgt));
	buf_fill(&self->bed->src, 1);
}

FIXTURE_TEARDOWN(xrc)
{
	int i;

	if (self->ini.qp)
		EXPECT_OK(ibv_destroy_qp(self->ini.qp));
	if (self->tgt.qp)
		EXPECT_OK(ibv_destroy_qp(self->tgt.qp));
	for (i = 0; i < 2; i++)
		EXPECT_OK(box_close(&self->box[i]));
	if (self->xrcd)
		EXPECT_OK(ibv_close_xrcd(self->xrcd));
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(self->bed));
}

TEST_F(xrc, advertised)
{
	EXPECT_TRUE(self->bed->dev.attr->device_cap_flags & IBV_DEVICE_XRC);
}

static const size_t sizes[] = { 0, 1, 63, 1024, 4097, 100000 };

TEST_F(xrc, each_message_goes_to_the_srq_that_it_names)
{
	struct bed *bed = self->bed;
	struct box *box;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		size_t len = sizes[i / 2];

		box = &self->box[i % 2];
		ASSERT_OK(post_recv(&box->side, &bed->dst, 0, LEN, 100 + i));
		ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND_WITH_IMM, .local = &bed->src,
				.len = len, .imm = i, .srqn = box->srqn));
		ASSERT_DONE(wait_recv(&box->side));
		EXPECT_EQ(100 + i, box->side.rwc.wr_id);
		EXPECT_EQ(IBV_WC_RECV, box->side.rwc.opcode);
		EXPECT_EQ(len, box->side.rwc.byte_len);
		EXPECT_EQ(i, be32toh(box->side.rwc.imm_data));
		EXPECT_EQ(self->tgt.qp->qp_num, box->side.rwc.qp_num);
		EXPECT_EQ(-1, buf_differs(&bed->dst, 0, len, 1, 0));
		memset(bed->dst.addr, 0, len);
	}
	EXPECT_EQ(0, poll_stray(self->box[0].side.rcq));
	EXPECT_EQ(0, poll_stray(self->box[1].side.rcq));
}

/* A run of the ring finds many messages, and no two neighbours name the same SRQ. */
TEST_F(xrc, many_at_once)
{
	struct bed *bed = self->bed;
	struct box *box;
	int i, n;

	for (i = 0; i < 2 * MAX_WR; i++)
		ASSERT_OK(post_recv(&self->box[i % 2].side, &bed->dst, i * 64, 64, i));
	for (n = 0; n < 2; n++) {
		for (i = 0; i < MAX_WR; i++)
			ASSERT_OK(POST(&self->ini, .op = IBV_WR_SEND, .local = &bed->src,
				       .loff = (n * MAX_WR + i) * 64, .len = 64,
				       .srqn = self->box[i % 2].srqn));
		for (i = 0; i < MAX_WR; i++)
			ASSERT_DONE(wait_send(&self->ini));
	}
	for (i = 0; i < 2 * MAX_WR; i++) {
		box = &self->box[i % 2];
		ASSERT_DONE(wait_recv(&box->side));
		EXPECT_EQ(i, box->side.rwc.wr_id);
	}
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 2 * MAX_WR * 64, 1, 0));
}

TEST_F(xrc, inline_and_segments)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[1];
	struct ibv_sge sge[3];
	int i;

	for (i = 0; i < 3; i++)
		sge[i] = sge_at(&self->ini, &bed->src, i * 100, 100);
	for (i = 0; i < 2; i++)
		ASSERT_OK(post_recv(&box->side, &bed->dst, i * 1000, 1000, i));
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 236,
			.flags = IBV_SEND_INLINE, .srqn = box->srqn));
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .sgl = sge, .num_sge = 3,
			.srqn = box->srqn));
	ASSERT_DONE(wait_recv(&box->side));
	EXPECT_EQ(236, box->side.rwc.byte_len);
	ASSERT_DONE(wait_recv(&box->side));
	EXPECT_EQ(300, box->side.rwc.byte_len);
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 236, 1, 0));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 1000, 300, 1, 0));
}

TEST_F(xrc, write_and_read)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(bed->dst.addr, 0, LEN);
		ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
				.len = sizes[i], .remote = &bed->dst, .srqn = box->srqn));
		EXPECT_EQ(-1, buf_differs(&bed->dst, 0, sizes[i], 1, 0));
		buf_fill(&bed->dst, i + 2);
		ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_RDMA_READ, .local = &bed->src,
				.len = sizes[i], .remote = &bed->dst, .srqn = box->srqn));
		EXPECT_EQ(-1, buf_differs(&bed->src, 0, sizes[i], i + 2, 0));
		buf_fill(&bed->src, 1);
	}
	EXPECT_EQ(0, poll_stray(box->side.rcq));
}

TEST_F(xrc, write_with_imm)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[1];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(bed->dst.addr, 0, LEN);
		ASSERT_OK(post_recv(&box->side, NULL, 0, 0, i));
		ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_RDMA_WRITE_WITH_IMM, .local = &bed->src,
				.len = sizes[i], .remote = &bed->dst, .imm = 77 + i,
				.srqn = box->srqn));
		ASSERT_DONE(wait_recv(&box->side));
		EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, box->side.rwc.opcode);
		EXPECT_EQ(77 + i, be32toh(box->side.rwc.imm_data));
		EXPECT_EQ(self->tgt.qp->qp_num, box->side.rwc.qp_num);
		EXPECT_EQ(-1, buf_differs(&bed->dst, 0, sizes[i], 1, 0));
	}
}

TEST_F(xrc, atomics)
{
	struct bed *bed = self->bed;
	uint64_t *word = (uint64_t *)bed->dst.addr, *old = (uint64_t *)bed->src.addr;
	uint32_t srqn = self->box[0].srqn;

	*word = 5;
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = &bed->src,
			.remote = &bed->dst, .value = 7, .srqn = srqn));
	EXPECT_EQ(5, *old);
	EXPECT_EQ(12, *word);
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_ATOMIC_CMP_AND_SWP, .local = &bed->src,
			.remote = &bed->dst, .compare = 12, .value = 99, .srqn = srqn));
	EXPECT_EQ(12, *old);
	EXPECT_EQ(99, *word);
}

#define EXTENDED_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_ATOMIC_WRITE)

/* The number may be set before the data or afterwards. */
static int post_extended(struct side *ini, struct bed *bed, uint32_t srqn)
{
	const struct ibv_mr *remote = mr_at(bed->b, &bed->dst);
	const struct ibv_mr *local = mr_at(ini, &bed->src);
	uint64_t value = 0x1234567890abcdef;
	struct ibv_qp_ex *qpx = ini->qpx;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_xrc_srqn(qpx, srqn);
	ibv_wr_set_sge(qpx, local->lkey, (uintptr_t)bed->src.addr, 1000);
	ibv_wr_rdma_write_imm(qpx, remote->rkey, (uintptr_t)bed->dst.addr + 2000, htobe32(3));
	ibv_wr_set_inline_data(qpx, bed->src.addr, 200);
	ibv_wr_set_xrc_srqn(qpx, srqn);
	ibv_wr_atomic_write(qpx, remote->rkey, (uintptr_t)bed->dst.addr + 4096, &value);
	ibv_wr_set_xrc_srqn(qpx, srqn);
	return ibv_wr_complete(qpx);
}

TEST_F(xrc, extended_post)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[1];
	struct side ini, tgt = { .dev = bed->b->dev };
	int i;

	ASSERT_OK(open_initiator(&ini, bed, EXTENDED_OPS));
	ASSERT_NE(NULL, ini.qpx);
	tgt.qp = open_target(bed->b->dev->ctx, self->xrcd);
	ASSERT_NE(NULL, tgt.qp);
	ASSERT_OK(connect_both(self, &ini, &tgt));
	for (i = 0; i < 2; i++)
		ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 1000, i));
	ASSERT_OK(post_extended(&ini, bed, box->srqn));
	for (i = 0; i < 3; i++)
		ASSERT_DONE(wait_send(&ini));
	for (i = 0; i < 2; i++) {
		ASSERT_DONE(wait_recv(&box->side));
		EXPECT_EQ(tgt.qp->qp_num, box->side.rwc.qp_num);
	}
	EXPECT_EQ(-1, buf_differs(&bed->dst, 0, 1000, 1, 0));
	EXPECT_EQ(-1, buf_differs(&bed->dst, 2000, 200, 1, 0));
	EXPECT_EQ(0x1234567890abcdef, *(uint64_t *)(bed->dst.addr + 4096));
	EXPECT_OK(ibv_destroy_qp(ini.qp));
	EXPECT_OK(ibv_destroy_qp(tgt.qp));
}

/* Keys count in the protection domain of the SRQ: a target has none. */
TEST_F(xrc, keys_of_another_domain_are_refused)
{
	struct bed *bed = self->bed;
	struct ibv_pd *pd = ibv_alloc_pd(bed->b->dev->ctx);
	struct ibv_cq *cq = self->box[0].side.rcq;
	struct ibv_srq *srq;
	uint32_t srqn;

	ASSERT_NE(NULL, pd);
	srq = open_xsrq(bed->b->dev->ctx, pd, self->xrcd, cq);
	ASSERT_NE(NULL, srq);
	ASSERT_OK(ibv_get_srq_num(srq, &srqn));
	/* the run keeps the region of the first of these, and must not take it for the second */
	ASSERT_OK(POST(&self->ini, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 64,
		       .remote = &bed->dst, .srqn = self->box[0].srqn));
	ASSERT_OK(POST(&self->ini, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 64,
		       .remote = &bed->dst, .roff = 64, .srqn = srqn));
	EXPECT_DONE(wait_send(&self->ini));
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR, wait_send(&self->ini));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 64, 64, 0));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_OK(ibv_destroy_srq(srq));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

TEST_F(xrc, receive_of_another_domain_is_refused)
{
	struct bed *bed = self->bed;
	struct ibv_pd *pd = ibv_alloc_pd(bed->b->dev->ctx);
	struct side other = { .dev = bed->b->dev, .pd = pd, .rcq = self->box[0].side.rcq };
	uint32_t srqn;

	ASSERT_NE(NULL, pd);
	other.srq = open_xsrq(bed->b->dev->ctx, pd, self->xrcd, other.rcq);
	ASSERT_NE(NULL, other.srq);
	ASSERT_OK(ibv_get_srq_num(other.srq, &srqn));
	ASSERT_OK(post_recv(&other, &bed->dst, 0, 64, 5));
	EXPECT_STATUS(IBV_WC_REM_OP_ERR, RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src,
					     .len = 64, .srqn = srqn));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, wait_recv(&other));
	EXPECT_EQ(5, other.rwc.wr_id);
	EXPECT_OK(ibv_destroy_srq(other.srq));
	EXPECT_OK(ibv_dealloc_pd(pd));
}

static int refused(FIXTURE_DATA(xrc) *self, enum ibv_wr_opcode op, uint32_t srqn)
{
	struct bed *bed = self->bed;

	return RUN(&self->ini, .op = op, .local = &bed->src, .len = 64, .remote = &bed->dst,
		   .srqn = srqn);
}

TEST_F(xrc, wrong_number)
{
	struct ibv_async_event event = {};

	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, refused(self, IBV_WR_SEND, NO_SUCH_SRQ));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, wait_event(self->bed->b->dev->ctx, &event));
	EXPECT_EQ(self->tgt.qp, event.element.qp);
	EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, wait_event(self->bed->b->dev->ctx, &event));
}

TEST_F(xrc, no_number)
{
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, refused(self, IBV_WR_RDMA_WRITE, 0));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_EQ(-1, buf_is_not(&self->bed->dst, 0, 64, 0));
}

TEST_F(xrc, read_and_write_need_the_srq_too)
{
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, refused(self, IBV_WR_RDMA_READ, NO_SUCH_SRQ));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
}

TEST_F(xrc, srq_of_another_domain)
{
	struct dev *dev = self->bed->b->dev;
	struct ibv_xrcd *xrcd = open_domain(dev->ctx, -1, O_CREAT);
	struct box box = {};

	ASSERT_NE(NULL, xrcd);
	ASSERT_OK(box_open(&box, dev, xrcd));
	ASSERT_OK(post_recv(&box.side, &self->bed->dst, 0, 64, 0));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, refused(self, IBV_WR_SEND, box.srqn));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_EQ(0, poll_stray(box.side.rcq));
	EXPECT_OK(box_close(&box));
	EXPECT_OK(ibv_close_xrcd(xrcd));
}

TEST_F(xrc, ordinary_srq_is_none_of_the_domain)
{
	struct dev *dev = self->bed->b->dev;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &attr);
	uint32_t srqn;

	ASSERT_NE(NULL, srq);
	ASSERT_OK(ibv_get_srq_num(srq, &srqn));
	if (srqn == self->box[0].srqn || srqn == self->box[1].srqn)
		srqn = NO_SUCH_SRQ;
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, refused(self, IBV_WR_SEND, srqn));
	EXPECT_OK(ibv_destroy_srq(srq));
}

TEST_F(xrc, empty_srq_costs_rnr_retries)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];

	ASSERT_OK(POST(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
		       .srqn = box->srqn));
	usleep(20000);
	ASSERT_OK(post_recv(&self->box[1].side, &bed->dst, 64, 64, 1));
	usleep(20000);
	ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 64, 2));
	ASSERT_DONE(wait_send(&self->ini));
	ASSERT_DONE(wait_recv(&box->side));
	EXPECT_EQ(2, box->side.rwc.wr_id);
	EXPECT_EQ(0, poll_stray(self->box[1].side.rcq));
}

TEST_F(xrc, empty_srq_and_no_retry)
{
	struct bed *bed = self->bed;
	struct side ini, tgt = { .dev = bed->b->dev };

	self->to_ini.rnr_retry = 0;
	ASSERT_OK(open_initiator(&ini, bed, 0));
	tgt.qp = open_target(bed->b->dev->ctx, self->xrcd);
	ASSERT_NE(NULL, tgt.qp);
	ASSERT_OK(connect_both(self, &ini, &tgt));
	EXPECT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR,
		      RUN(&ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
			  .srqn = self->box[0].srqn));
	/* only the requester fails */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(tgt.qp));
	EXPECT_OK(ibv_destroy_qp(ini.qp));
	EXPECT_OK(ibv_destroy_qp(tgt.qp));
}

TEST_F(xrc, message_longer_than_the_receive)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];

	ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 5000, 9));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 20000,
			  .srqn = box->srqn));
	EXPECT_STATUS(IBV_WC_LOC_LEN_ERR, wait_recv(&box->side));
	EXPECT_EQ(9, box->side.rwc.wr_id);
	EXPECT_EQ(self->tgt.qp->qp_num, box->side.rwc.qp_num);
}

TEST_F(xrc, limit_event)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event event = {};
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 64, i));
	ASSERT_OK(ibv_modify_srq(box->side.srq, &attr, IBV_SRQ_LIMIT));
	for (i = 0; i < 2; i++)
		ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
				.srqn = box->srqn));
	ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(box->side.srq, event.element.srq);
}

/* The receives belong to the SRQ, not to the target. */
TEST_F(xrc, target_in_error_leaves_the_receives)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];
	struct ibv_async_event event = {};

	ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 64, 3));
	ASSERT_OK(qp_to(self->tgt.qp, IBV_QPS_ERR));
	ASSERT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(self->tgt.qp, event.element.qp);
	EXPECT_EQ(0, poll_stray(box->side.rcq));
	ASSERT_OK(qp_to(self->tgt.qp, IBV_QPS_RESET));
	ASSERT_OK(qp_to(self->ini.qp, IBV_QPS_RESET));
	ASSERT_OK(connect_both(self, &self->ini, &self->tgt));
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
			.srqn = box->srqn));
	ASSERT_DONE(wait_recv(&box->side));
	EXPECT_EQ(3, box->side.rwc.wr_id);
}

TEST_F(xrc, initiator_in_error_flushes_its_requests)
{
	ASSERT_OK(qp_to(self->ini.qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR,
		      RUN(&self->ini, .op = IBV_WR_SEND, .local = &self->bed->src, .len = 64,
			  .srqn = self->box[0].srqn));
	/* it receives nothing, so no last receive is told of */
	EXPECT_FALSE(readable(self->bed->a->dev->ctx->async_fd, 50));
}

TEST_F(xrc, ends_have_one_direction)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_NE(0, ibv_post_send(self->tgt.qp, &send, &bad_send));
	EXPECT_NE(0, ibv_post_recv(self->tgt.qp, &recv, &bad_recv));
	EXPECT_NE(0, ibv_post_recv(self->ini.qp, &recv, &bad_recv));
	ASSERT_OK(ibv_query_qp(self->tgt.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(0, attr.cap.max_send_wr);
	EXPECT_EQ(0, attr.cap.max_recv_wr);
	EXPECT_EQ(0, attr.cap.max_inline_data);
}

/* librdmacm makes the SRQ in the domain that it has named for the target. */
TEST_F(xrc, target_remembers_the_domain_that_was_named)
{
	struct dev *dev = self->bed->b->dev;
	struct ibv_parent_domain_init_attr parent_attr = { .pd = dev->pd };
	struct ibv_pd *parent = ibv_alloc_parent_domain(dev->ctx, &parent_attr);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = self->xrcd, .pd = parent,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp *qp;

	ASSERT_NE(NULL, parent);
	qp = ibv_create_qp_ex(dev->ctx, &attr);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(parent, qp->pd);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_destroy_qp(qp));
	/* without the bit, the field may be anything */
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp = ibv_create_qp_ex(dev->ctx, &attr);
	ASSERT_NE(NULL, qp);
	EXPECT_NULL(qp->pd);
	EXPECT_OK(ibv_dealloc_pd(parent));
	EXPECT_OK(ibv_destroy_qp(qp));
}

/* An initiator is the peer of targets only, and RC queue pairs are peers of their like. */
TEST_F(xrc, services_do_not_mix)
{
	struct bed *bed = self->bed;
	struct pair_opts opts = { .timeout = 8, .retry = 1 };
	struct side tgt = { .dev = bed->b->dev }, rc = {};

	opts = pair_defaults(&opts);
	ASSERT_OK(side_open(&rc, bed->a->dev, &opts, false));
	tgt.qp = open_target(bed->b->dev->ctx, self->xrcd);
	ASSERT_NE(NULL, tgt.qp);
	ASSERT_OK(connect_target(self, &tgt, &rc));
	ASSERT_OK(side_connect(&rc, &opts, tgt.qp->qp_num, &bed->b->dev->gid));
	rc.peer = bed->b->dev;
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR, RUN(&rc, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
						.len = 64, .remote = &bed->dst));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(tgt.qp));
	EXPECT_EQ(-1, buf_is_not(&bed->dst, 0, 64, 0));
	EXPECT_OK(ibv_destroy_qp(tgt.qp));
	EXPECT_OK(side_close(&rc));
}

/* What operators ask for while both ends are there. */
TEST_F(xrc, resources_can_be_shown)
{
	EXPECT_EQ(0, system("rdma resource show qp -dd >/dev/null"));
	EXPECT_EQ(0, system("rdma resource show srq -dd >/dev/null"));
	EXPECT_EQ(0, system("rdma statistic qp show >/dev/null"));
}

TEST_F(xrc, busy_while_it_is_used)
{
	EXPECT_EQ(EBUSY, ibv_close_xrcd(self->xrcd));
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->box[0].side.rcq));
}

TEST_F(xrc, what_lacks_a_part_is_refused)
{
	struct dev *dev = self->bed->b->dev;
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = dev->pd,
		.xrcd = self->xrcd, .cq = self->box[0].side.rcq,
	};
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_XRC_RECV, .pd = dev->pd };
	const uint32_t all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	srq.comp_mask = all & ~IBV_SRQ_INIT_ATTR_XRCD;
	EXPECT_NULL(ibv_create_srq_ex(dev->ctx, &srq));
	srq.comp_mask = all & ~IBV_SRQ_INIT_ATTR_CQ;
	EXPECT_NULL(ibv_create_srq_ex(dev->ctx, &srq));
	srq.comp_mask = all & ~IBV_SRQ_INIT_ATTR_PD;
	EXPECT_NULL(ibv_create_srq_ex(dev->ctx, &srq));
	srq.comp_mask = all;
	srq.attr.max_wr = dev->attr->max_srq_wr + 1;
	EXPECT_NULL(ibv_create_srq_ex(dev->ctx, &srq));
	srq.attr.max_wr = 4;
	srq.srq_type = IBV_SRQT_TM;
	EXPECT_NULL(ibv_create_srq_ex(dev->ctx, &srq));
	qp.comp_mask = IBV_QP_INIT_ATTR_PD;
	EXPECT_NULL(ibv_create_qp_ex(dev->ctx, &qp));
}

TEST_F(xrc, target_opened_again)
{
	struct dev *dev = self->bed->b->dev;
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = self->tgt.qp->qp_num, .xrcd = self->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct box *box = &self->box[0];
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp *again;

	attr.qp_num++;
	EXPECT_NULL(ibv_open_qp(dev->ctx, &attr));
	attr.qp_num--;
	again = ibv_open_qp(dev->ctx, &attr);
	ASSERT_NE(NULL, again);
	EXPECT_NE(0, ibv_post_send(again, &wr, &bad));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(again));
	/* the queue pair ends with its last handle */
	ASSERT_OK(ibv_destroy_qp(self->tgt.qp));
	self->tgt.qp = again;
	ASSERT_OK(post_recv(&box->side, &self->bed->dst, 0, 64, 1));
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &self->bed->src, .len = 64,
			.srqn = box->srqn));
	ASSERT_DONE(wait_recv(&box->side));
}

/* ---- descriptors of a program without the library ---- */

#define MAPPINGS	256

/**
 * struct raw_ini - an initiator whose send ring is written by hand, and its target
 * @sq: the ring
 * @bell: doorbell file
 */
struct raw_ini {
	struct side ini, tgt;
	struct raw_ring sq;
	int bell;
};

static bool was_there(const struct raw_ring *ring, const struct raw_ring *before, int n)
{
	while (n--)
		if (before[n].hdr == ring->hdr)
			return true;
	return false;
}

static int raw_ini_open(FIXTURE_DATA(xrc) *self, struct raw_ini *raw)
{
	struct raw_ring before[MAPPINGS], after[MAPPINGS];
	int had = raw_find_rings(before, MAPPINGS), have;
	int ret = open_initiator(&raw->ini, self->bed, 0);

	have = raw_find_rings(after, MAPPINGS);
	while (have-- && was_there(&after[have], before, had))
		;
	if (ret || have < 0)
		return ret ?: -ENXIO;
	raw->sq = after[have];
	raw->tgt = (struct side){ .dev = self->bed->b->dev };
	raw->tgt.qp = open_target(self->bed->b->dev->ctx, self->xrcd);
	if (!raw->tgt.qp)
		return -errno;
	raw->bell = raw_open_bell(self->bed->a->dev->ctx);
	return raw->bell < 0 ? raw->bell : connect_both(self, &raw->ini, &raw->tgt);
}

static int raw_ini_mend(FIXTURE_DATA(xrc) *self, struct raw_ini *raw)
{
	struct ibv_wc wc;
	int ret = qp_to(raw->ini.qp, IBV_QPS_RESET) ?: qp_to(raw->tgt.qp, IBV_QPS_RESET);

	while (ibv_poll_cq(raw->ini.scq, 1, &wc) > 0)
		;
	return ret ?: connect_both(self, &raw->ini, &raw->tgt);
}

static int raw_ini_close(struct raw_ini *raw)
{
	close(raw->bell);
	return ibv_destroy_qp(raw->ini.qp) ?: ibv_destroy_qp(raw->tgt.qp);
}

static int ini_post(struct raw_ini *raw, const struct vrnic_desc *d, uint32_t slots)
{
	uint32_t entries = raw->sq.bytes / VRNIC_SLOT_SIZE, prod = raw->sq.hdr->prod;

	memcpy(raw->sq.slots + prod % entries * VRNIC_SLOT_SIZE, d, sizeof(*d));
	__atomic_store_n(&raw->sq.hdr->prod, prod + slots, __ATOMIC_SEQ_CST);
	return raw_ring_bell(raw->bell, raw->ini.qp->qp_num);
}

static struct vrnic_desc raw_write(FIXTURE_DATA(xrc) *self, uint32_t slots, uint32_t num_sge)
{
	struct ibv_sge sge = sge_at(&self->ini, &self->bed->src, 0, 8);

	return (struct vrnic_desc){
		.opcode = VRNIC_OP_RDMA_WRITE, .flags = VRNIC_DESC_SIGNALED,
		.num_slots = slots, .num_sge = num_sge,
		.remote_addr = (uintptr_t)self->bed->dst.addr,
		.rkey = mr_at(self->bed->b, &self->bed->dst)->rkey,
		.sge[0] = { .addr = sge.addr, .length = sge.length, .lkey = sge.lkey },
	};
}

TEST_F(xrc, descriptors_and_what_is_wrong_with_them)
{
	const uint32_t srqn = self->box[0].srqn, slots = VRNIC_XRC_IN_SLOTS(srqn);
	const uint32_t len = VRNIC_XRC_IN_LEN(srqn);
	const struct {
		uint32_t slots, num_sge, opcode;
		int status;
	} cases[] = {
		{ slots | 1, len | 1, VRNIC_OP_RDMA_WRITE, IBV_WC_SUCCESS },
		{ 1, 1, VRNIC_OP_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR },
		{ slots, len | 1, VRNIC_OP_RDMA_WRITE, IBV_WC_LOC_QP_OP_ERR },
		{ slots | 2, len | 1, VRNIC_OP_RDMA_WRITE, IBV_WC_LOC_QP_OP_ERR },
		{ slots | 17, len | 1, VRNIC_OP_RDMA_WRITE, IBV_WC_LOC_QP_OP_ERR },
		{ slots | 1, len | 0xffff, VRNIC_OP_RDMA_WRITE, IBV_WC_LOC_QP_OP_ERR },
		{ (slots & ~VRNIC_XRC_DESC) | 0x100 | 1, len | 1, VRNIC_OP_RDMA_WRITE,
		  IBV_WC_LOC_QP_OP_ERR },
		{ slots | 1, len, VRNIC_OP_FLUSH, IBV_WC_LOC_QP_OP_ERR },
		{ 1, 8, VRNIC_OP_FLUSH, IBV_WC_LOC_QP_OP_ERR },
		{ slots | 1, len, VRNIC_OP_NOP, IBV_WC_SUCCESS },
	};
	struct raw_ini raw = {};
	struct vrnic_desc d;
	unsigned int i;

	ASSERT_OK(raw_ini_open(self, &raw));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		d = raw_write(self, cases[i].slots, cases[i].num_sge);
		d.opcode = cases[i].opcode;
		ASSERT_OK(ini_post(&raw, &d, 1));
		EXPECT_EQ(cases[i].status, wait_send(&raw.ini))
			TH_LOG("case %u", i);
		ASSERT_OK(raw_ini_mend(self, &raw));
	}
	EXPECT_OK(raw_ini_close(&raw));
}

static uint32_t rnd(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 32;
}

static struct vrnic_desc random_desc(FIXTURE_DATA(xrc) *self)
{
	uint32_t srqn = rnd() % 8 ? self->box[rnd() % 2].srqn : rnd();
	struct vrnic_desc d = raw_write(self, 1 + !(rnd() % 8), rnd() % 3);

	d.opcode = rnd() % VRNIC_OP_MAX;
	d.flags = rnd() & 15;
	d.num_slots |= VRNIC_XRC_IN_SLOTS(srqn);
	d.num_sge |= VRNIC_XRC_IN_LEN(srqn);
	d.imm = rnd();
	if (rnd() % 4 == 0)
		((uint8_t *)&d)[rnd() % sizeof(d)] = rnd();
	return d;
}

TEST_F(xrc, random_descriptors)
{
	struct raw_ini raw = {};
	struct vrnic_desc d;
	int i, k;

	ASSERT_OK(raw_ini_open(self, &raw));
	for (i = 0; i < MAX_WR / 2; i++)
		ASSERT_OK(post_recv(&self->box[i % 2].side, &self->bed->dst, 0, 64, i));
	for (i = 0; i < 200; i++) {
		for (k = 0; k < 8; k++) {
			d = random_desc(self);
			ASSERT_OK(ini_post(&raw, &d, 1));
		}
		if (i % 8 == 0)
			usleep(2000);
		ASSERT_OK(raw_ini_mend(self, &raw));
	}
	EXPECT_OK(raw_ini_close(&raw));
	/* another connection of the domain has not noticed */
	EXPECT_DONE(RUN(&self->ini, .op = IBV_WR_RDMA_WRITE, .local = &self->bed->src, .len = 64,
			.remote = &self->bed->dst, .srqn = self->box[0].srqn));
}

/* ---- a bad network ---- */

static const char * const kinds[] = { "drop", "duplicate", "reorder" };

static int arm_all(int probability)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		ret = ret ?: ARM(kinds[i], .probability = probability);
	return ret;
}

static int disarm_all(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		ret = ret ?: fault_disarm(kinds[i]);
	return ret;
}

/* A dozen requests under way at once: messages to both SRQs, and a count between them. */
static int post_dozen(FIXTURE_DATA(xrc) *self, int round)
{
	struct bed *bed = self->bed;
	int i, ret = 0;

	for (i = 0; i < 12 && !ret; i++) {
		struct box *box = &self->box[i % 2];

		if (i % 4 == 3)
			ret = POST(&self->ini, .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
				   .local = &bed->src, .loff = LEN - 8,
				   .remote = &bed->dst, .roff = LEN - 8, .value = 1,
				   .srqn = box->srqn);
		else
			ret = post_recv(&box->side, &bed->dst, i * 16384, 16384, i) ?:
			      POST(&self->ini, .op = IBV_WR_SEND_WITH_IMM, .local = &bed->src,
				   .loff = i * 16384, .len = round * 127 % 16384, .imm = i,
				   .srqn = box->srqn);
	}
	return ret;
}

/* Each SRQ has got its messages, in order, and whole. */
static int take_dozen(FIXTURE_DATA(xrc) *self, int round)
{
	struct bed *bed = self->bed;
	int i, ret = 0;

	for (i = 0; i < 12 && !ret; i++)
		ret = wait_send(&self->ini);
	for (i = 0; i < 12 && !ret; i++) {
		struct side *side = &self->box[i % 2].side;

		if (i % 4 == 3)
			continue;
		ret = wait_recv(side) ?: side->rwc.wr_id != (uint64_t)i ||
		      be32toh(side->rwc.imm_data) != (uint32_t)i ||
		      buf_differs(&bed->dst, i * 16384, round * 127 % 16384, 1, i * 16384) >= 0;
	}
	return ret;
}

TEST_F(xrc, packets_are_lost_and_come_twice_and_late)
{
	struct bed *bed = self->bed;
	int i;

	if (!variant->wire)
		SKIP(return, "there are no packets");
	if (!faults_can_be_there())
		SKIP(return, "no fault injection");
	ASSERT_OK(arm_all(3));
	for (i = 1; i < 60; i++) {
		ASSERT_OK(post_dozen(self, i));
		ASSERT_EQ(0, take_dozen(self, i));
		memset(bed->dst.addr, 0, LEN - 8);
	}
	EXPECT_OK(disarm_all());
	EXPECT_LT(0, injected("drop"));
	EXPECT_EQ(59 * 3, *(uint64_t *)(bed->dst.addr + LEN - 8));
}

/* ---- destroyed while messages come ---- */

struct stream {
	struct side *ini;
	struct bed *bed;
	uint32_t srqn;
	int status;
};

static void *stream_sends(void *arg)
{
	struct stream *s = arg;

	do
		s->status = RUN(s->ini, .op = IBV_WR_SEND, .local = &s->bed->src, .len = 9000,
				.srqn = s->srqn);
	while (s->status == IBV_WC_SUCCESS);
	return NULL;
}

TEST_F(xrc, srq_is_destroyed_while_messages_come)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];
	struct stream s = { .ini = &self->ini, .bed = bed, .srqn = box->srqn };
	pthread_t thread;
	int i;

	for (i = 0; i < MAX_WR / 2; i++)
		ASSERT_OK(post_recv(&box->side, &bed->dst, 0, LEN, i));
	ASSERT_OK(pthread_create(&thread, NULL, stream_sends, &s));
	for (i = 0; i < 200; i++) {
		ASSERT_DONE(wait_recv(&box->side));
		ASSERT_OK(post_recv(&box->side, &bed->dst, 0, LEN, i));
	}
	EXPECT_OK(ibv_destroy_srq(box->side.srq));
	box->side.srq = NULL;
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, s.status);
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
}

#define SLOW		1000	/* kbit/s: LEN takes two seconds */

static int reconnect(FIXTURE_DATA(xrc) *self)
{
	return qp_to(self->ini.qp, IBV_QPS_RESET) ?: qp_to(self->tgt.qp, IBV_QPS_RESET) ?:
	       connect_both(self, &self->ini, &self->tgt);
}

/* Post a request that names the first SRQ, and return in the middle of its message. */
static int begin_slowly(FIXTURE_DATA(xrc) *self, enum ibv_wr_opcode op)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = SLOW };
	struct bed *bed = self->bed;
	int ret = ibv_modify_qp_rate_limit(self->ini.qp, &limit) ?:
		  ibv_modify_qp_rate_limit(self->tgt.qp, &limit) ?:
		  post_recv(&self->box[0].side, &bed->dst, 0, LEN, 7) ?:
		  POST(&self->ini, .op = op, .local = &bed->src, .len = LEN, .remote = &bed->dst,
		       .srqn = self->box[0].srqn);

	usleep(60000);
	return ret;
}

/* The other SRQ serves the same connection, made anew. */
static int other_serves(FIXTURE_DATA(xrc) *self)
{
	struct side *side = &self->box[1].side;
	struct bed *bed = self->bed;
	int ret = reconnect(self) ?: post_recv(side, &bed->dst, 0, 64, 8);

	if (!ret)
		ret = RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
			  .srqn = self->box[1].srqn);
	if (!ret)
		ret = wait_recv(side);
	return ret ?: side->rwc.wr_id != 8;
}

TEST_F(xrc, srq_goes_in_the_middle_of_a_message)
{
	ASSERT_OK(begin_slowly(self, IBV_WR_SEND));
	ASSERT_OK(box_close(&self->box[0]));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, wait_send(&self->ini));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_OK(other_serves(self));
}

TEST_F(xrc, srq_goes_while_a_read_is_answered)
{
	struct ibv_async_event event = {};

	ASSERT_OK(begin_slowly(self, IBV_WR_RDMA_READ));
	ASSERT_OK(box_close(&self->box[0]));
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, wait_send(&self->ini));
	EXPECT_OK(qp_wait(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, wait_event(self->bed->b->dev->ctx, &event));
	EXPECT_OK(other_serves(self));
}

/* The receive that has a part of the message goes back to whom it belongs. */
TEST_F(xrc, target_fails_in_the_middle_of_a_message)
{
	struct side *side = &self->box[0].side;

	ASSERT_OK(begin_slowly(self, IBV_WR_SEND));
	ASSERT_OK(qp_to(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, wait_recv(side));
	EXPECT_EQ(7, side->rwc.wr_id);
	EXPECT_EQ(self->tgt.qp->qp_num, side->rwc.qp_num);
	EXPECT_STATUS(IBV_WC_RETRY_EXC_ERR, wait_send(&self->ini));
	EXPECT_OK(other_serves(self));
}

/* That is, unless the SRQ is gone, and nobody is there any more to whom it belongs. */
TEST_F(xrc, target_fails_after_the_srq_of_its_receive)
{
	struct ibv_async_event event = {};

	ASSERT_OK(begin_slowly(self, IBV_WR_SEND));
	ASSERT_OK(qp_to(self->ini.qp, IBV_QPS_RESET));
	ASSERT_OK(box_close(&self->box[0]));
	ASSERT_OK(qp_to(self->tgt.qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, wait_event(self->bed->b->dev->ctx, &event));
	EXPECT_OK(other_serves(self));
}

/**
 * struct churn - a thread that sends to an SRQ which is there for milliseconds
 * @srqn: number of the SRQ that is there, or was
 * @done: requests that succeeded
 * @refused: requests that were too late
 * @error: why it stopped, or 0
 */
struct churn {
	FIXTURE_DATA(xrc) *self;
	uint32_t srqn;
	unsigned long done, refused;
	int error;
	bool stop;
};

static int churn_one(struct churn *c)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	};
	struct bed *bed = c->self->bed;
	int status = RUN(&c->self->ini, .op = ops[rnd() % ARRAY_SIZE(ops)], .local = &bed->src,
			 .len = rnd() % LEN, .remote = &bed->dst,
			 .srqn = __atomic_load_n(&c->srqn, __ATOMIC_RELAXED));

	if (status == IBV_WC_SUCCESS) {
		c->done++;
		return 0;
	}
	if (status != IBV_WC_REM_INV_REQ_ERR)
		return status;
	c->refused++;
	return reconnect(c->self);
}

static void *churn_sends(void *arg)
{
	struct churn *c = arg;

	while (!c->error && !__atomic_load_n(&c->stop, __ATOMIC_RELAXED))
		c->error = churn_one(c);
	return NULL;
}

TEST_F(xrc, srqs_come_and_go_while_messages_come)
{
	struct bed *bed = self->bed;
	struct churn c = { .self = self, .srqn = NO_SUCH_SRQ };
	struct box box;
	pthread_t thread;
	int i, k;

	ASSERT_OK(pthread_create(&thread, NULL, churn_sends, &c));
	for (i = 0; i < 150; i++) {
		box = (struct box){};
		ASSERT_OK(box_open(&box, bed->b->dev, self->xrcd));
		for (k = 0; k < i % 16; k++)
			ASSERT_OK(post_recv(&box.side, &bed->dst, 0, LEN, k));
		__atomic_store_n(&c.srqn, box.srqn, __ATOMIC_RELAXED);
		usleep(i % 7 * 500);
		ASSERT_OK(box_close(&box));
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	ASSERT_OK(pthread_join(thread, NULL));
	EXPECT_EQ(0, c.error);
	EXPECT_LT(0, c.done);
	EXPECT_LT(0, c.refused);
	TH_LOG("%lu requests were executed, and %lu refused", c.done, c.refused);
	ASSERT_OK(reconnect(self));
	ASSERT_OK(post_recv(&self->box[0].side, &bed->dst, 0, 64, 1));
	EXPECT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
			.srqn = self->box[0].srqn));
	EXPECT_DONE(wait_recv(&self->box[0].side));
}

/* The domain is another process's as well, and the SRQ of this one goes on. */
TEST_F(xrc, srq_that_nobody_uses_may_go)
{
	struct bed *bed = self->bed;
	struct box *box = &self->box[0];

	ASSERT_OK(box_close(&self->box[1]));
	ASSERT_OK(post_recv(&box->side, &bed->dst, 0, 64, 0));
	ASSERT_DONE(RUN(&self->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = 64,
			.srqn = box->srqn));
	ASSERT_DONE(wait_recv(&box->side));
}

/* ---- processes that share a domain by a file ---- */

/* What the child tells of its objects. */
struct hello {
	int error;
	uint32_t srqn, qpn;
};

static int domain_file(void)
{
	return memfd_create("vrnic xrc", 0);
}

static int open_dev_named(struct dev *dev, const char *name)
{
	setenv("VRNIC_DEV", name, 1);
	unsetenv("VRNIC_PEER_DEV");
	return dev_open(dev);
}

/**
 * struct child - a process with an SRQ, and a target, of the domain of a file
 * @peer: number of the queue pair that its target is for
 */
struct child {
	const char *dev_name;
	int file, sock;
	uint32_t peer;
	union ibv_gid peer_gid;
	pid_t pid;
	struct hello hello;
};

static int child_open(struct child *c, struct box *box, struct buf *buf)
{
	const struct pair_opts tgt = { .type = IBV_QPT_XRC_RECV };
	const struct pair_opts opts = pair_defaults(&tgt);
	static struct dev dev;
	struct ibv_xrcd *xrcd;
	struct side side = { .dev = &dev };
	int ret, i;

	ret = open_dev_named(&dev, c->dev_name);
	if (ret)
		return ret;
	xrcd = open_domain(dev.ctx, c->file, O_CREAT);
	if (!xrcd)
		return -errno;
	ret = box_open(box, &dev, xrcd) ?: buf_open(buf, dev.pd, 4096, 0, ACCESS_REMOTE);
	if (ret)
		return ret;
	side.qp = open_target(dev.ctx, xrcd);
	if (!side.qp)
		return -errno;
	for (i = 0; i < 8; i++)
		ret = ret ?: post_recv(&box->side, buf, 0, 64, i);
	c->hello = (struct hello){ .srqn = box->srqn, .qpn = side.qp->qp_num };
	return ret ?: side_connect(&side, &opts, c->peer, &c->peer_gid);
}

/* Receive one message, tell so, and wait to be killed. */
static void child_main(struct child *c)
{
	struct box box = {};
	struct buf buf = {};

	c->hello.error = child_open(c, &box, &buf);
	send(c->sock, &c->hello, sizeof(c->hello), MSG_NOSIGNAL);
	if (c->hello.error)
		_exit(1);
	c->hello.error = wait_recv(&box.side);
	send(c->sock, &c->hello, sizeof(c->hello), MSG_NOSIGNAL);
	for (;;)
		pause();
}

static int child_start(struct child *c)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (!c->pid) {
		close(fds[0]);
		c->sock = fds[1];
		child_main(c);
	}
	close(fds[1]);
	c->sock = fds[0];
	if (recv(c->sock, &c->hello, sizeof(c->hello), MSG_WAITALL) != sizeof(c->hello))
		return -EPIPE;
	return c->hello.error;
}

static int child_kill(struct child *c)
{
	close(c->sock);
	if (kill(c->pid, SIGKILL) || waitpid(c->pid, NULL, 0) != c->pid)
		return -errno;
	return 0;
}

FIXTURE(shared)
{
	struct bed bed;
	struct pair_opts to_ini;
	struct child child;
	struct ibv_xrcd *xrcd;
	struct box box;
	struct side ini;
	struct ibv_qp *tgt;
	int file;
};

/* The child makes the target, and this process opens it. */
static struct ibv_qp *open_childs(struct bed *bed, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(bed->b->dev->ctx, &attr);
}

FIXTURE_SETUP(shared)
{
	const struct pair_opts ini = { .type = IBV_QPT_XRC_SEND, .access = NO_ACCESS };
	struct bed *bed = &self->bed;

	ASSERT_OK(bed_open(bed, LEN, NULL));
	self->to_ini = pair_defaults(&ini);
	self->file = domain_file();
	ASSERT_LE(0, self->file);
	ASSERT_OK(open_initiator(&self->ini, bed, 0));
	self->child = (struct child){
		.dev_name = ibv_get_device_name(bed->b->dev->ctx->device), .file = self->file,
		.peer = self->ini.qp->qp_num, .peer_gid = bed->a->dev->gid,
	};
	ASSERT_OK(child_start(&self->child));
	/* without O_CREAT: the child has made the domain */
	self->xrcd = open_domain(bed->b->dev->ctx, self->file, 0);
	ASSERT_NE(NULL, self->xrcd);
	ASSERT_OK(box_open(&self->box, bed->b->dev, self->xrcd));
	self->tgt = open_childs(bed, self->xrcd, self->child.hello.qpn);
	ASSERT_NE(NULL, self->tgt);
	ASSERT_OK(side_connect(&self->ini, &self->to_ini, self->child.hello.qpn,
			       &bed->b->dev->gid));
}

FIXTURE_TEARDOWN(shared)
{
	if (self->child.pid > 0)
		child_kill(&self->child);
	if (self->tgt)
		EXPECT_OK(ibv_destroy_qp(self->tgt));
	if (self->ini.qp)
		EXPECT_OK(ibv_destroy_qp(self->ini.qp));
	EXPECT_OK(box_close(&self->box));
	if (self->xrcd)
		EXPECT_OK(ibv_close_xrcd(self->xrcd));
	close(self->file);
	EXPECT_OK(bed_close(&self->bed));
}

static int send_to(FIXTURE_DATA(shared) *self, uint32_t srqn)
{
	return RUN(&self->ini, .op = IBV_WR_SEND, .local = &self->bed.src, .len = 64,
		   .srqn = srqn);
}

TEST_F(shared, one_target_serves_two_processes)
{
	struct box *box = &self->box;
	struct hello hello;

	ASSERT_DONE(send_to(self, self->child.hello.srqn));
	ASSERT_EQ(sizeof(hello), recv(self->child.sock, &hello, sizeof(hello), MSG_WAITALL));
	EXPECT_EQ(0, hello.error);
	ASSERT_OK(post_recv(&box->side, &self->bed.dst, 0, 64, 4));
	ASSERT_DONE(send_to(self, box->srqn));
	ASSERT_DONE(wait_recv(&box->side));
	EXPECT_EQ(self->child.hello.qpn, box->side.rwc.qp_num);
}

/* The target lives as long as any process has it. */
TEST_F(shared, the_process_that_made_the_target_is_killed)
{
	struct box *box = &self->box;
	int i;

	ASSERT_OK(child_kill(&self->child));
	self->child.pid = 0;
	for (i = 0; i < 3; i++) {
		ASSERT_OK(post_recv(&box->side, &self->bed.dst, 0, 64, i));
		ASSERT_DONE(send_to(self, box->srqn));
		ASSERT_DONE(wait_recv(&box->side));
	}
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->tgt));
	/* but its SRQ is gone */
	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR, send_to(self, self->child.hello.srqn));
	EXPECT_OK(qp_wait(self->tgt, IBV_QPS_ERR));
}

TEST_F(shared, killed_while_messages_come_to_it)
{
	int i, status = IBV_WC_SUCCESS;

	for (i = 0; i < 4; i++)
		ASSERT_OK(POST(&self->ini, .op = IBV_WR_SEND, .local = &self->bed.src, .len = 64,
			       .srqn = self->child.hello.srqn));
	for (; i < 40; i++)	/* for these it has too few receives */
		ASSERT_OK(POST(&self->ini, .op = IBV_WR_SEND, .local = &self->bed.src, .len = 64,
			       .srqn = self->child.hello.srqn));
	ASSERT_OK(child_kill(&self->child));
	self->child.pid = 0;
	for (i = 0; i < 40 && status == IBV_WC_SUCCESS; i++)
		status = wait_send(&self->ini);
	EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, status);
	EXPECT_LE(8, i);
}

/* ---- domains ---- */

FIXTURE(domain)
{
	struct dev dev;
	int file;
};

FIXTURE_SETUP(domain)
{
	ASSERT_OK(dev_open(&self->dev));
	self->file = domain_file();
	ASSERT_LE(0, self->file);
}

FIXTURE_TEARDOWN(domain)
{
	close(self->file);
	dev_close(&self->dev);
}

TEST_F(domain, flags_of_open)
{
	struct ibv_context *ctx = self->dev.ctx;
	struct ibv_xrcd *first, *second;

	EXPECT_NULL(open_domain(ctx, self->file, 0));
	first = open_domain(ctx, self->file, O_CREAT | O_EXCL);
	ASSERT_NE(NULL, first);
	EXPECT_NULL(open_domain(ctx, self->file, O_CREAT | O_EXCL));
	second = open_domain(ctx, self->file, O_CREAT);
	ASSERT_NE(NULL, second);
	EXPECT_OK(ibv_close_xrcd(first));
	EXPECT_OK(ibv_close_xrcd(second));
	EXPECT_NULL(open_domain(ctx, self->file, 0));
}

/* What a line of the trace has to tell of a target. */
struct traced {
	char wanted[80];
	bool found;
};

static void look_for_target(const char *line, void *arg)
{
	struct traced *t = arg;

	t->found |= !!strstr(line, t->wanted);
}

TEST_F(domain, trace_names_the_process_that_makes_a_target)
{
	struct traced t = {};
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;

	if (!trace_there())
		SKIP(return, "this kernel has no trace");
	xrcd = open_domain(self->dev.ctx, -1, O_CREAT);
	ASSERT_NE(NULL, xrcd);
	ASSERT_OK(trace_begin("vrnic_qp_create"));
	qp = open_target(self->dev.ctx, xrcd);
	ASSERT_NE(NULL, qp);
	snprintf(t.wanted, sizeof(t.wanted), "qpn=%u dev=%s type=%u pid=%d comm=test_xrc",
		 qp->qp_num, dev_name(), IBV_QPT_XRC_RECV, getpid());
	EXPECT_OK(trace_read(look_for_target, &t));
	EXPECT_TRUE(t.found);
	trace_end("vrnic_qp_create");
	EXPECT_OK(ibv_destroy_qp(qp));
	EXPECT_OK(ibv_close_xrcd(xrcd));
}

TEST_F(domain, many)
{
	struct ibv_xrcd *xrcd[100];
	int i;

	for (i = 0; i < 100; i++) {
		xrcd[i] = open_domain(self->dev.ctx, -1, O_CREAT);
		ASSERT_NE(NULL, xrcd[i]);
	}
	while (i--)
		EXPECT_OK(ibv_close_xrcd(xrcd[i]));
}

/* A process that is killed, or closes the device, leaves nothing. */
TEST_F(domain, goes_with_its_process)
{
	struct child child = {
		.dev_name = dev_name(), .file = self->file, .peer = 17, .peer_gid = self->dev.gid,
	};
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_OK(child_start(&child));
		ASSERT_OK(child_kill(&child));
		EXPECT_NULL(open_domain(self->dev.ctx, self->file, 0));
	}
}

TEST_HARNESS_MAIN
