// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Routes that a queue pair and an address handle keep, when the namespace goes that they
 * lead to, and the device is there still.
 */

#include <linux/delay.h>
#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/net.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "base/stats.h"
#include "consumer.h"
#include "engine/engine.h"
#include "queue/qp.h"
#include "roce/av_route.h"
#include "roce/roce.h"
#include "roce/socket.h"
#include "verbs/flow.h"
#include "verbs/verbs.h"
#include "vrnic.h"

#define MSG		64
#define QPN		17
#define QKEY		0x1234	/* what end_to_init() sets */
#define PATIENCE	(10 * HZ)

static void close_wire(void *dev)
{
	vrnic_wire_close(dev);
}

/*
 * A wire of the test's own, whose socket has another port: somebody else may have that of
 * RoCE. What is made later is undone before it goes.
 */
static struct vrnic_wire *open_wire(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct vrnic_dev *dev = to_vdev(c->dev);
	struct vrnic_wire *w = vrnic_wire_alloc(&init_net);

	KUNIT_ASSERT_NOT_NULL(test, w);
	vrnic_wire_close(dev);
	w->users = 1;
	list_add(&dev->wired, &w->devs);
	dev->wire = w;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, close_wire, dev));
	KUNIT_ASSERT_EQ(test, 0, sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
						  &w->sock[0]));
	rcu_assign_pointer(w->sk[0], w->sock[0]->sk);
	return w;
}

/* To an address that is no device's, though lo is the way there. */
static void ah_abroad(struct kunit *test, struct rdma_ah_attr *ah)
{
	end_ah_attr(test, ah);
	ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK + 1),
			       (struct in6_addr *)ah->grh.dgid.raw);
}

/* An RC queue pair whose peer never answers, and that waits for ever. */
static struct end *new_lonely_end(struct kunit *test)
{
	struct end *end = new_end(test, IB_QPT_RC);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = QPN,
	};

	end_to_init(test, end);
	ah_abroad(test, &attr.ah_attr);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(end->qp, &attr, IB_QP_STATE | IB_QP_AV |
					      IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					      IB_QP_MAX_DEST_RD_ATOMIC |
					      IB_QP_MIN_RNR_TIMER));
	attr.qp_state = IB_QPS_RTS;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(end->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
					      IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					      IB_QP_MAX_QP_RD_ATOMIC));
	return end;
}

static u64 lookups(struct vrnic_dev *dev)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(dev->stats, cpu)->count[VRNIC_STAT_ROUTE_LOOKUPS];
	return sum;
}

/* What is posted is sent, or tried to be: the way is looked for, once at least. */
static struct request *send_and_look(struct kunit *test, struct end *end, void *buf)
{
	struct vrnic_dev *dev = to_vqp(end->qp)->dev;
	unsigned long limit = jiffies + PATIENCE;
	u64 before = lookups(dev);
	struct request *req;

	req = post_send(test, end, IB_WR_SEND, buf, MSG, 0);
	while (lookups(dev) == before && time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_LT(test, before, lookups(dev));
	return req;
}

/* As the run that is under way leaves it. */
static bool has_route(struct end *end)
{
	struct vrnic_qp *qp = to_vqp(end->qp);
	bool has;

	vrnic_park(&qp->run);
	has = qp->roce->path.dst;
	vrnic_unpark(&qp->run);
	vrnic_queue(&qp->run);
	return has;
}

static void to_error(struct kunit *test, struct end *end)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(end->qp, &attr, IB_QP_STATE));
}

static void a_queue_pair_keeps_no_route_of_a_namespace_that_goes(struct kunit *test)
{
	void *buf = new_buffer(test, MSG);
	struct vrnic_wire *w = open_wire(test);
	struct request *first, *second;
	struct end *end;

	end = new_lonely_end(test);
	first = send_and_look(test, end, buf);
	KUNIT_EXPECT_TRUE(test, has_route(end));
	vrnic_wire_end(w);
	KUNIT_EXPECT_FALSE(test, has_route(end));
	/* it can be used, but leads nowhere */
	second = send_and_look(test, end, buf);
	KUNIT_EXPECT_FALSE(test, has_route(end));
	to_error(test, end);
	expect_status(test, end, first, IB_WC_WR_FLUSH_ERR);
	expect_status(test, end, second, IB_WC_WR_FLUSH_ERR);
}

/* Connected when nothing leads anywhere any more: also that can be used, and destroyed. */
static void a_queue_pair_that_comes_too_late_gets_no_route(struct kunit *test)
{
	void *buf = new_buffer(test, MSG);
	struct vrnic_wire *w = open_wire(test);
	struct request *req;
	struct end *end;

	vrnic_wire_end(w);
	end = new_lonely_end(test);
	req = send_and_look(test, end, buf);
	KUNIT_EXPECT_FALSE(test, has_route(end));
	to_error(test, end);
	expect_status(test, end, req, IB_WC_WR_FLUSH_ERR);
}

static struct vrnic_av *av_of(struct ib_ah *ah)
{
	return container_of(ah, struct vrnic_ah, ibah)->av;
}

static void an_address_handle_keeps_no_route_of_a_namespace_that_goes(struct kunit *test)
{
	struct vrnic_wire *w = open_wire(test);
	struct end *end = new_datagram_end(test);
	void *buf = new_buffer(test, MSG);
	struct consumer *c = test->priv;
	struct rdma_ah_attr attr;
	struct dst_entry *dst;
	struct vrnic_av *av;
	struct ib_ah *ah;
	u32 cookie;

	ah_abroad(test, &attr);
	ah = keep_ah(test, rdma_create_ah(c->pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
	av = av_of(ah);
	expect_done(test, end, send_datagram(test, end, ah, QPN, QKEY, buf, MSG), IB_WC_SEND);
	dst = vrnic_av_route(av, &cookie);
	KUNIT_EXPECT_NOT_NULL(test, dst);
	vrnic_wire_end(w);
	KUNIT_EXPECT_NULL(test, READ_ONCE(av->dst));
	/* by a thread that had looked the route up before */
	vrnic_av_keep(to_vdev(c->dev), av, dst, cookie);
	KUNIT_EXPECT_NULL(test, READ_ONCE(av->dst));
	dst_release(dst);
	/* it completes as one that is lost on its way */
	expect_done(test, end, send_datagram(test, end, ah, QPN, QKEY, buf, MSG), IB_WC_SEND);
	KUNIT_EXPECT_NULL(test, READ_ONCE(av->dst));
}

static struct kunit_case route_cases[] = {
	KUNIT_CASE(a_queue_pair_keeps_no_route_of_a_namespace_that_goes),
	KUNIT_CASE(a_queue_pair_that_comes_too_late_gets_no_route),
	KUNIT_CASE(an_address_handle_keeps_no_route_of_a_namespace_that_goes),
	{}
};

static struct kunit_suite route_suite = {
	.name = "vrnic_route",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = route_cases,
};

kunit_test_suite(route_suite);
