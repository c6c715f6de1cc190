// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Credit: requests are under way until their completion was polled. */

#include <errno.h>
#include <stdlib.h>

#include "ring_test.h"

static void credit_make(struct fixture *f, uint32_t sends, uint32_t recvs)
{
	qp_make(f, IBV_QPT_RC, 32, -3);
	cq_make(&f->cq, 64);
	f->ibqp->recv_cq = f->ibqp->send_cq;
	f->qp.credit.max = sends;
	f->qp.rq.credit.max = recvs;
	CHECK(!vrnic_credit_open(&f->qp));
}

static void credit_free(struct fixture *f)
{
	vrnic_credit_close(&f->qp);
	vrnic_cq_fini(&f->cq);
	free(f->cq.ring.hdr);
	qp_free(f);
}

/* Play the kernel: take all requests, and complete the @done-th one. */
static void complete_send(struct fixture *f, uint32_t i, uint32_t done)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(&f->cq.ring, i);

	f->qp.sq.hdr->cons = f->qp.sq.hdr->prod;
	cqe->flags = VRNIC_CQE_SEND;
	cqe->sq_done = done;
	cq_put(&f->cq, i, f->ibqp->qp_num);
}

void test_credit(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct fixture f;
	struct ibv_wc wc;

	credit_make(&f, 3, 0);
	for (int i = 0; i < 3; i++)
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM && f.bad == &wr);
	complete_send(&f, 0, 2);	/* the first one was not signaled */
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM);
	CHECK(vrnic_poll_cq(&f.cq.vcq.cq, 1, &wc) == 1);
	for (int i = 0; i < 2; i++)
		CHECK(!vrnic_post_send(f.ibqp, &wr, &f.bad));
	CHECK(vrnic_post_send(f.ibqp, &wr, &f.bad) == ENOMEM);
	credit_free(&f);
}

/* A batch that is aborted does not count its requests as posted, nor does a refused one. */
void test_credit_undo(void)
{
	struct ibv_send_wr bad = { .opcode = IBV_WR_SEND, .num_sge = 31 };
	struct fixture f;

	credit_make(&f, 3, 0);
	for (int round = 0; round < 4; round++) {
		CHECK(vrnic_post_send(f.ibqp, &bad, &f.bad) == EINVAL);
		ibv_wr_start(f.ex);
		for (int i = 0; i < 3; i++)
			ibv_wr_send(f.ex);
		ibv_wr_abort(f.ex);
	}
	ibv_wr_start(f.ex);
	for (int i = 0; i < 4; i++)
		ibv_wr_send(f.ex);
	CHECK(ibv_wr_complete(f.ex) == ENOMEM);
	ibv_wr_start(f.ex);
	for (int i = 0; i < 3; i++)
		ibv_wr_send(f.ex);
	CHECK(!ibv_wr_complete(f.ex));
	credit_free(&f);
}

void test_credit_recv(void)
{
	struct ibv_recv_wr wr = {}, *bad;
	struct fixture f;
	struct ibv_wc wc;

	credit_make(&f, 3, 2);
	for (int i = 0; i < 2; i++)
		CHECK(!vrnic_post_recv(f.ibqp, &wr, &bad));
	f.qp.rq.ring.hdr->cons = f.qp.rq.ring.hdr->prod;
	CHECK(vrnic_post_recv(f.ibqp, &wr, &bad) == ENOMEM && bad == &wr);
	cq_put(&f.cq, 0, f.ibqp->qp_num);
	CHECK(vrnic_poll_cq(&f.cq.vcq.cq, 1, &wc) == 1);
	CHECK(!vrnic_post_recv(f.ibqp, &wr, &bad));
	CHECK(vrnic_post_recv(f.ibqp, &wr, &bad) == ENOMEM);
	credit_free(&f);
}

#define CREDIT_QPS	100

/*
 * A poll finds the right one of many queue pairs, also after all were removed from the completion
 * queue and added again. vrnic_cq_forget_qp(), as at RESET, sets the count of one to 0, and of no
 * other.
 */
void test_credit_many(void)
{
	static struct fixture f[CREDIT_QPS];
	struct vrnic_cq *cq = &f[0].cq;
	struct ibv_wc wc;

	cq_make(cq, 4);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < CREDIT_QPS; i++) {
			f[i].qp.vqp.qp.qp_num = 0x100 + i * 8;
			f[i].qp.vqp.qp.send_cq = &cq->vcq.cq;
			f[i].qp.credit.max = 1;
			CHECK(!vrnic_credit_open(&f[i].qp));
		}
		for (int i = 0; i < CREDIT_QPS; i++) {
			uint32_t n = round * CREDIT_QPS + i;
			struct vrnic_cqe *cqe = vrnic_ring_slot(&cq->ring, n);

			cqe->flags = VRNIC_CQE_SEND;
			cqe->sq_done = n;
			cq_put(cq, n, 0x100 + i * 8);
			CHECK(vrnic_poll_cq(&cq->vcq.cq, 1, &wc) == 1);
			CHECK(f[i].qp.polled[VRNIC_SIDE_SEND].done == n);
		}
		vrnic_cq_forget_qp(&cq->vcq.cq, 0x100);
		CHECK(!f[0].qp.polled[VRNIC_SIDE_SEND].done);
		CHECK(f[1].qp.polled[VRNIC_SIDE_SEND].done);
		for (int i = 0; i < CREDIT_QPS; i++)
			vrnic_credit_close(&f[i].qp);
	}
	vrnic_cq_fini(cq);
	free(cq->ring.hdr);
}
