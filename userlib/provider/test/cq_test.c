// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: polling and arming. */

#include <errno.h>
#include <stdlib.h>

#include "ring_test.h"

void test_poll(void)
{
	struct ibv_wc wc[8];
	struct vrnic_cq cq;
	uint32_t i, got = 0;

	cq_make(&cq, 4);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	for (i = 0; i < 100; got = i) {
		uint32_t batch = 1 + i % 4;

		for (uint32_t k = 0; k < batch; k++)
			cq_put(&cq, i++, 7);
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == (int)batch);
		CHECK(wc[0].wr_id == got && wc[batch - 1].wr_id == i - 1);
		CHECK(wc[0].qp_num == 7 && wc[0].byte_len == got * 3);
		CHECK(wc[0].opcode == IBV_WC_RECV && cq.ring.hdr->cons == i);
		CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	}
	cq.ring.hdr->flags = VRNIC_RING_ERROR;
	cq_put(&cq, i, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 1);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == -EIO);
	free(cq.ring.hdr);
}

void test_forget(void)
{
	struct ibv_wc wc[8];
	struct vrnic_cq cq;

	cq_make(&cq, 8);
	for (uint32_t i = 0; i < 8; i++)
		cq_put(&cq, i, i % 2 ? 7 : 8);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, wc) == 1);
	vrnic_cq_forget_qp(&cq.vcq.cq, 8);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 2, wc) == 2);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 3 && wc[1].qp_num == 7);
	CHECK(cq.ring.hdr->cons == 6);	/* two completions are left */
	vrnic_cq_forget_qp(&cq.vcq.cq, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 8, wc) == 0);
	CHECK(cq.ring.hdr->cons == 8);	/* dropped entries are given back, too */
	free(cq.ring.hdr);
}

void test_poll_ex(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct vrnic_cq cq;
	struct ibv_cq_ex *ex = &cq.vcq.cq_ex;

	cq_make(&cq, 4);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	cq_put(&cq, 0, 7);
	cq_put(&cq, 1, 9);
	CHECK(!ibv_start_poll(ex, &attr));
	CHECK(ex->wr_id == 0 && ibv_wc_read_qp_num(ex) == 7);
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));	/* no deadlock with start_poll */
	CHECK(!ibv_next_poll(ex));
	CHECK(ex->wr_id == 1 && ibv_wc_read_qp_num(ex) == 9);
	CHECK(ibv_next_poll(ex) == ENOENT);
	CHECK(cq.ring.hdr->cons == 2);	/* entries that were taken are given back at once */
	ibv_end_poll(ex);
	CHECK(cq.ring.hdr->cons == 2);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	cq_put(&cq, 2, 7);
	CHECK(!ibv_start_poll(ex, &attr));
	ibv_end_poll(ex);
	CHECK(cq.ring.hdr->cons == 3);
	attr.comp_mask = 1;
	CHECK(ibv_start_poll(ex, &attr) == EINVAL);
	free(cq.ring.hdr);
}

static unsigned int asked;
static int answer;

/* Instead of the kernel's. */
int ibv_cmd_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	asked++;
	if (!answer)
		to_vcq(ibcq)->ring.hdr->arm = solicited_only ? VRNIC_ARM_SOLICITED : VRNIC_ARM_NEXT;
	return answer;
}

/* The kernel is asked only if there is an entry that no event told of. */
void test_arm_filled(void)
{
	struct ibv_wc wc;
	struct vrnic_cq cq;

	cq_make(&cq, 4);
	cq_put(&cq, 0, 7);
	asked = 0;
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 1));
	CHECK(asked == 1 && cq.ring.hdr->arm == VRNIC_ARM_SOLICITED && vrnic_cq_is_armed(&cq));
	cq.ring.hdr->arm = VRNIC_ARM_NONE;
	cq.ring.hdr->told = 1;
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
	CHECK(asked == 1 && cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 1);
	cq_put(&cq, 1, 7);
	cq.ring.hdr->arm = VRNIC_ARM_NONE;
	/* an older module; and one whose device is gone */
	answer = EOPNOTSUPP;
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
	CHECK(asked == 2 && cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	answer = EIO;
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
	answer = ENOMEM;
	CHECK(vrnic_req_notify_cq(&cq.vcq.cq, 0) == ENOMEM);
	answer = 0;
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 1);
	CHECK(!vrnic_req_notify_cq(&cq.vcq.cq, 0));
	CHECK(asked == 4);
	free(cq.ring.hdr);
}

void test_arm(void)
{
	struct vrnic_cq cq;

	cq_make(&cq, 4);
	vrnic_req_notify_cq(&cq.vcq.cq, 1);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_SOLICITED);
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	vrnic_req_notify_cq(&cq.vcq.cq, 1);
	CHECK(cq.ring.hdr->arm == VRNIC_ARM_NEXT);
	free(cq.ring.hdr);
}

/* Once a poll has noted that the event came, posts need no longer ring at once. */
void test_armed(void)
{
	struct ibv_wc wc;
	struct vrnic_cq cq;

	cq_make(&cq, 4);
	CHECK(!vrnic_cq_is_armed(&cq));
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(vrnic_cq_is_armed(&cq));
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 0 && vrnic_cq_is_armed(&cq));
	cq.ring.hdr->arm = VRNIC_ARM_NONE;
	cq_put(&cq, 0, 7);
	CHECK(vrnic_poll_cq(&cq.vcq.cq, 1, &wc) == 1 && !vrnic_cq_is_armed(&cq));
	vrnic_req_notify_cq(&cq.vcq.cq, 0);
	CHECK(vrnic_cq_is_armed(&cq));
	free(cq.ring.hdr);
}
