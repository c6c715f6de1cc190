// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the suites of a kernel consumer share. */

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/vrnic-abi.h>

#include "consumer.h"

#define PATIENCE	(10 * HZ)

static void put_ibdev(void *dev)
{
	ib_device_put(dev);
}

static void dealloc_pd(void *pd)
{
	ib_dealloc_pd(pd);
}

static void put_gid(void *gid)
{
	rdma_put_gid_attr(gid);
}

static void free_cq(void *cq)
{
	ib_free_cq(cq);
}

static void destroy_qp(void *qp)
{
	WARN_ON(ib_destroy_qp(qp));
}

static void destroy_ah(void *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static void dereg_mr(void *mr)
{
	WARN_ON(ib_dereg_mr(mr));
}

/* Have @undo called when the test ends; at once if that cannot be arranged. */
static void undo_later(struct kunit *test, kunit_action_t *undo, const void *arg)
{
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, undo, (void *)arg), 0);
}

static const struct ib_gid_attr *find_gid(struct ib_device *dev)
{
	union ib_gid gid;

	ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK), (struct in6_addr *)&gid);
	return rdma_find_gid(dev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
}

/* struct kunit_suite.init */
int consumer_init(struct kunit *test)
{
	struct consumer *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	INIT_LIST_HEAD(&c->ends);
	/* the core takes 100 ms to drain what is polled directly */
	c->ctx = IB_POLL_SOFTIRQ;
	test->priv = c;
	c->dev = ib_device_get_by_netdev(init_net.loopback_dev,
					 (enum rdma_driver_id)VRNIC_DRIVER_ID);
	KUNIT_ASSERT_NOT_NULL_MSG(test, c->dev, "load the module with loopback=Y");
	undo_later(test, put_ibdev, c->dev);
	c->pd = ib_alloc_pd(c->dev, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c->pd);
	undo_later(test, dealloc_pd, c->pd);
	c->gid = find_gid(c->dev);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c->gid);
	undo_later(test, put_gid, c->gid);
	return 0;
}

/* struct kunit_suite.exit: no request completes any more after this. */
void consumer_exit(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct end *end;

	if (!c)
		return;
	list_for_each_entry(end, &c->ends, link)
		ib_drain_qp(end->qp);
}

struct ib_cq *consumer_cq(struct kunit *test, int entries)
{
	struct consumer *c = test->priv;
	struct ib_cq *cq = ib_alloc_cq(c->dev, NULL, entries, 0, c->ctx);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	undo_later(test, free_cq, cq);
	return cq;
}

static void note_event(struct ib_event *event, void *context)
{
	struct end *end = context;

	set_bit(event->event, &end->events);
}

/* A queue pair as @init says; its queues have room for draining. */
struct end *consumer_end(struct kunit *test, struct ib_qp_init_attr *init)
{
	struct consumer *c = test->priv;
	struct end *end = kunit_kzalloc(test, sizeof(*end), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, end);
	init->event_handler = note_event;
	init->qp_context = end;
	end->cq = init->send_cq;
	end->qp = ib_create_qp(c->pd, init);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, end->qp);
	undo_later(test, destroy_qp, end->qp);
	list_add_tail(&end->link, &c->ends);
	return end;
}

struct end *new_end(struct kunit *test, enum ib_qp_type type)
{
	struct ib_cq *cq = consumer_cq(test, 4 * CONSUMER_DEPTH);
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = CONSUMER_DEPTH,
			.max_recv_wr = CONSUMER_DEPTH,
			.max_send_sge = CONSUMER_SGES,
			.max_recv_sge = CONSUMER_SGES,
			.max_inline_data = CONSUMER_INLINE,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = type,
		.port_num = 1,
	};

	return consumer_end(test, &init);
}

void end_to_init(struct kunit *test, struct end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = 0x1234,
		.qp_access_flags = CONSUMER_ACCESS,
	};
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;

	mask |= end->qp->qp_type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	KUNIT_ASSERT_EQ(test, ib_modify_qp(end->qp, &attr, mask), 0);
}

/* To where everything goes: this host. */
void end_ah_attr(struct kunit *test, struct rdma_ah_attr *ah)
{
	struct consumer *c = test->priv;
	union ib_gid dgid = c->gid->gid;

	memset(ah, 0, sizeof(*ah));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_grh(ah, &dgid, 0, c->gid->index, 64, 0);
}

/* @ah goes when the test ends. */
struct ib_ah *keep_ah(struct kunit *test, struct ib_ah *ah)
{
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	undo_later(test, destroy_ah, ah);
	return ah;
}

void end_to_rtr(struct kunit *test, struct end *end, struct end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
	};

	end_ah_attr(test, &attr.ah_attr);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(end->qp, &attr, IB_QP_STATE |
					   IB_QP_AV | IB_QP_PATH_MTU |
					   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					   IB_QP_MAX_DEST_RD_ATOMIC |
					   IB_QP_MIN_RNR_TIMER), 0);
}

/* Failures come soon: two tries of a millisecond, two RNR retries of 10 us. */
void end_to_rts(struct kunit *test, struct end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.max_rd_atomic = 16,
	};

	KUNIT_ASSERT_EQ(test, ib_modify_qp(end->qp, &attr, IB_QP_STATE |
					   IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					   IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					   IB_QP_MAX_QP_RD_ATOMIC), 0);
}

void connect_ends(struct kunit *test, struct end *a, struct end *b)
{
	end_to_init(test, a);
	end_to_init(test, b);
	end_to_rtr(test, a, b);
	end_to_rtr(test, b, a);
	end_to_rts(test, a);
	end_to_rts(test, b);
}

void new_pair(struct kunit *test, struct end **a, struct end **b)
{
	*a = new_end(test, IB_QPT_RC);
	*b = new_end(test, IB_QPT_RC);
	connect_ends(test, *a, *b);
}

struct end *new_datagram_end(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	struct end *end = new_end(test, IB_QPT_UD);

	end_to_init(test, end);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(end->qp, &attr, IB_QP_STATE), 0);
	attr.qp_state = IB_QPS_RTS;
	KUNIT_ASSERT_EQ(test, ib_modify_qp(end->qp, &attr, IB_QP_STATE |
					   IB_QP_SQ_PSN), 0);
	return end;
}

bool end_saw(struct end *end, enum ib_event_type event)
{
	unsigned long limit = jiffies + PATIENCE;

	while (!test_bit(event, &end->events) && time_before(jiffies, limit))
		usleep_range(100, 200);
	return test_bit(event, &end->events);
}

void *new_buffer(struct kunit *test, size_t bytes)
{
	void *buf = kunit_kzalloc(test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	return buf;
}

/* Mapping for a device without DMA holds nothing that would be to be undone. */
struct ib_sge sge_of(struct kunit *test, void *buf, u32 len)
{
	struct consumer *c = test->priv;
	struct ib_sge sge = { .length = len, .lkey = c->pd->local_dma_lkey };

	sge.addr = ib_dma_map_single(c->dev, buf, len, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(c->dev, sge.addr), 0);
	return sge;
}

struct ib_mr *new_mr(struct kunit *test, u32 pages)
{
	struct consumer *c = test->priv;
	struct ib_mr *mr = ib_alloc_mr(c->pd, IB_MR_TYPE_MEM_REG, pages);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	undo_later(test, dereg_mr, mr);
	return mr;
}

void map_buffer(struct kunit *test, struct ib_mr *mr, void *buf, u32 len)
{
	struct consumer *c = test->priv;
	struct scatterlist sg;

	sg_init_one(&sg, buf, len);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(c->dev, &sg, 1, DMA_BIDIRECTIONAL), 1);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
}

/* @buf as peers of @end may reach it. */
struct ib_mr *new_region(struct kunit *test, struct end *end, void *buf,
			 u32 len, int access)
{
	struct ib_mr *mr = new_mr(test, len / PAGE_SIZE + 2);

	map_buffer(test, mr, buf, len);
	expect_done(test, end, post_reg(test, end, mr, access), IB_WC_REG_MR);
	return mr;
}

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *req = container_of(wc->wr_cqe, struct request, cqe);

	req->wc = *wc;
	complete(&req->done);
}

struct request *new_request(struct kunit *test)
{
	struct request *req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, req);
	req->cqe.done = request_done;
	init_completion(&req->done);
	return req;
}

void post(struct kunit *test, struct end *end, struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad;

	KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, wr, &bad), 0);
}

struct request *post_recv(struct kunit *test, struct end *end, void *buf,
			  u32 len)
{
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, buf, len);
	struct ib_recv_wr wr = {
		.wr_cqe = &req->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	KUNIT_ASSERT_EQ(test, ib_post_recv(end->qp, &wr, NULL), 0);
	return req;
}

/* @ex: immediate data, or the key to invalidate */
struct request *post_send(struct kunit *test, struct end *end,
			  enum ib_wr_opcode opcode, void *buf, u32 len, u32 ex)
{
	struct request *req = new_request(test);
	struct ib_send_wr wr = {
		.wr_cqe = &req->cqe,
		.opcode = opcode,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_sge sge;

	if (buf) {
		sge = sge_of(test, buf, len);
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	if (opcode == IB_WR_SEND_WITH_IMM)
		wr.ex.imm_data = cpu_to_be32(ex);
	else
		wr.ex.invalidate_rkey = ex;
	post(test, end, &wr);
	return req;
}

struct request *post_rdma(struct kunit *test, struct end *end,
			  enum ib_wr_opcode opcode, void *buf, u32 len,
			  u64 addr, u32 rkey)
{
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, buf, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe,
			.opcode = opcode,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(0x12345678),
		},
		.remote_addr = addr,
		.rkey = rkey,
	};

	post(test, end, &wr.wr);
	return req;
}

struct request *post_reg(struct kunit *test, struct end *end, struct ib_mr *mr,
			 int access)
{
	struct request *req = new_request(test);
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	post(test, end, &wr.wr);
	return req;
}

struct request *send_datagram(struct kunit *test, struct end *from,
			      struct ib_ah *ah, u32 qpn, u32 qkey,
			      void *buf, u32 len)
{
	struct request *req = new_request(test);
	struct ib_sge sge = sge_of(test, buf, len);
	struct ib_ud_wr wr = {
		.wr = {
			.wr_cqe = &req->cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_SEND_WITH_IMM,
			.send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(len),
		},
		.ah = ah,
		.remote_qpn = qpn,
		.remote_qkey = qkey,
	};

	post(test, from, &wr.wr);
	return req;
}

static bool completes_within(struct end *end, struct request *req,
			     unsigned long patience)
{
	unsigned long limit = jiffies + patience;

	if (end->cq->poll_ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&req->done, patience);
	while (!completion_done(&req->done) && time_before(jiffies, limit)) {
		ib_process_cq_direct(end->cq, -1);
		if (!completion_done(&req->done))
			usleep_range(20, 50);
	}
	return completion_done(&req->done);
}

bool completes(struct end *end, struct request *req)
{
	return completes_within(end, req, PATIENCE);
}

/* It has had its time, and did not complete. */
bool stays_open(struct end *end, struct request *req)
{
	return !completes_within(end, req, HZ / 20);
}

void expect_status(struct kunit *test, struct end *end, struct request *req,
		   enum ib_wc_status status)
{
	KUNIT_ASSERT_TRUE_MSG(test, completes(end, req), "no completion");
	KUNIT_EXPECT_EQ_MSG(test, req->wc.status, status, "%s, not %s",
			    ib_wc_status_msg(req->wc.status),
			    ib_wc_status_msg(status));
	KUNIT_EXPECT_PTR_EQ(test, req->wc.qp, end->qp);
}

void expect_done(struct kunit *test, struct end *end, struct request *req,
		 enum ib_wc_opcode opcode)
{
	expect_status(test, end, req, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, req->wc.opcode, opcode);
}
