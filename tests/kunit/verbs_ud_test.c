// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams with address handles, and shared receive queues. */

#include <linux/delay.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>

#include "consumer.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "queue/cq.h"
#include "queue/datagram.h"
#include "queue/mcast.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "verbs/verbs.h"
#include "vrnic.h"

#define MSG	500
#define GRH	VRNIC_GRH_BYTES
#define QKEY	0x1234		/* what end_to_init() sets */

static struct ib_ah *new_ah(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct rdma_ah_attr attr;

	end_ah_attr(test, &attr);
	return keep_ah(test, rdma_create_ah(c->pd, &attr,
					    RDMA_CREATE_AH_SLEEPABLE));
}

/* The buffer starts with 40 bytes of header: here, IPv4 in the last 20. */
static void expect_header(struct kunit *test, const void *grh, u32 len)
{
	const struct iphdr *ip = grh + GRH - sizeof(*ip);

	KUNIT_EXPECT_EQ(test, (u8)ip->version, 4);
	KUNIT_EXPECT_EQ(test, ip->protocol, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, ntohl(ip->saddr), INADDR_LOOPBACK);
	KUNIT_EXPECT_EQ(test, ntohl(ip->daddr), INADDR_LOOPBACK);
	/* IPv4, UDP, BTH, DETH, immediate data, data, ICRC */
	KUNIT_EXPECT_GE(test, ntohs(ip->tot_len), 20 + 8 + 12 + 8 + len + 4);
}

static void datagram(struct kunit *test)
{
	struct end *a = new_datagram_end(test), *b = new_datagram_end(test);
	u8 *from = new_buffer(test, MSG), *to = new_buffer(test, GRH + MSG);
	struct request *recv = post_recv(test, b, to, GRH + MSG);

	memset(from, 0x5a, MSG);
	expect_done(test, a, send_datagram(test, a, new_ah(test), b->qp->qp_num,
					   QKEY, from, MSG), IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, GRH + MSG);
	KUNIT_EXPECT_EQ(test, recv->wc.src_qp, a->qp->qp_num);
	KUNIT_EXPECT_EQ(test, recv->wc.wc_flags, IB_WC_GRH | IB_WC_WITH_IMM |
			IB_WC_WITH_NETWORK_HDR_TYPE);
	KUNIT_EXPECT_EQ(test, recv->wc.network_hdr_type, RDMA_NETWORK_IPV4);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), MSG);
	expect_header(test, to, MSG);
	KUNIT_EXPECT_MEMEQ(test, to + GRH, from, MSG);
}

/* As the connection manager does it: the way back is made from what came. */
static void answer(struct kunit *test)
{
	struct end *a = new_datagram_end(test), *b = new_datagram_end(test);
	void *from = new_buffer(test, MSG), *to = new_buffer(test, GRH + MSG);
	void *back = new_buffer(test, GRH + MSG);
	struct request *recv = post_recv(test, b, to, GRH + MSG);
	struct consumer *c = test->priv;
	struct ib_ah *ah;

	expect_done(test, a, send_datagram(test, a, new_ah(test), b->qp->qp_num,
					   QKEY, from, MSG), IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	ah = keep_ah(test, ib_create_ah_from_wc(c->pd, &recv->wc, to, 1));
	memset(from, 0x77, MSG);
	recv = post_recv(test, a, back, GRH + MSG);
	expect_done(test, b, send_datagram(test, b, ah, a->qp->qp_num, QKEY,
					   from, MSG), IB_WC_SEND);
	expect_done(test, a, recv, IB_WC_RECV);
	KUNIT_EXPECT_MEMEQ(test, back + GRH, from, MSG);
}

/* The queue pair sends by what the handle says now, not by what it was made from. */
static void changed_address_handle(struct kunit *test)
{
	struct end *a = new_datagram_end(test), *b = new_datagram_end(test);
	void *from = new_buffer(test, MSG), *to = new_buffer(test, GRH + MSG);
	struct request *recv = post_recv(test, b, to, GRH + MSG);
	const struct iphdr *ip = to + GRH - sizeof(*ip);
	struct ib_ah *ah = new_ah(test);
	struct rdma_ah_attr attr;

	end_ah_attr(test, &attr);
	attr.grh.traffic_class = 0x20;
	attr.grh.hop_limit = 7;
	KUNIT_ASSERT_EQ(test, rdma_modify_ah(ah, &attr), 0);
	memset(&attr, 0, sizeof(attr));
	KUNIT_ASSERT_EQ(test, rdma_query_ah(ah, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.grh.traffic_class, 0x20);
	KUNIT_EXPECT_EQ(test, attr.grh.hop_limit, 7);
	expect_done(test, a, send_datagram(test, a, ah, b->qp->qp_num, QKEY,
					   from, MSG), IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, ip->tos & ~3, 0x20);
	KUNIT_EXPECT_EQ(test, ip->ttl, 7);
}

/* The sender is content with each of them; the receiver sees only the last. */
static void dropped_datagrams(struct kunit *test)
{
	struct end *a = new_datagram_end(test), *b = new_datagram_end(test);
	u8 *from = new_buffer(test, MSG), *to = new_buffer(test, GRH + MSG);
	struct ib_ah *ah = new_ah(test);
	u32 qpn = b->qp->qp_num;
	struct request *recv;

	/* no receive is posted; the Q_Key is wrong; there is nobody */
	expect_done(test, a, send_datagram(test, a, ah, qpn, QKEY, from, 8),
		    IB_WC_SEND);
	recv = post_recv(test, b, to, GRH + MSG);
	expect_done(test, a, send_datagram(test, a, ah, qpn, QKEY + 1, from, 8),
		    IB_WC_SEND);
	expect_done(test, a, send_datagram(test, a, ah, 0xffffff, QKEY, from, 8),
		    IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, stays_open(b, recv));
	expect_done(test, a, send_datagram(test, a, ah, qpn, QKEY, from, MSG),
		    IB_WC_SEND);
	expect_done(test, b, recv, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, GRH + MSG);
}

static void too_long_for_the_port(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct end *a = new_datagram_end(test), *b = new_datagram_end(test);
	struct ib_port_attr port;
	u32 mtu;
	void *buf;

	KUNIT_ASSERT_EQ(test, ib_query_port(c->dev, 1, &port), 0);
	mtu = ib_mtu_enum_to_int(port.active_mtu);
	buf = new_buffer(test, mtu + 1);
	expect_done(test, a, send_datagram(test, a, new_ah(test), b->qp->qp_num,
					   QKEY, buf, mtu), IB_WC_SEND);
	expect_status(test, a, send_datagram(test, a, new_ah(test), b->qp->qp_num,
					     QKEY, buf, mtu + 1),
		      IB_WC_LOC_LEN_ERR);
}

#define MEMBERS	5

/* To 239.1.2.4, a group of nobody else. */
static struct ib_ah *group_ah(struct kunit *test, union ib_gid *group)
{
	struct consumer *c = test->priv;
	struct rdma_ah_attr attr;

	end_ah_attr(test, &attr);
	*group = attr.grh.dgid;
	memcpy(group->raw + 12, "\xef\x01\x02\x04", 4);
	attr.grh.dgid = *group;
	return keep_ah(test, rdma_create_ah(c->pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
}

/* @copies: how many of @members have received something. */
static void run_with(struct kunit *test, struct end *end, u32 descs,
		     enum vrnic_verdict verdict, struct end **members,
		     int copies)
{
	struct vrnic_budget budget = { .bytes = SZ_1M, .descs = descs };
	struct vrnic_qp *qp = to_vqp(end->qp);
	int i, n = 0;

	KUNIT_EXPECT_EQ(test, vrnic_sq_ops.run(&qp->run, &budget), verdict);
	for (i = 0; i < MEMBERS; i++)
		n += to_vcq(members[i]->cq)->ring.idx;
	KUNIT_EXPECT_EQ(test, n, copies);
}

/* A datagram for many goes on where the budget ended, and nobody gets it twice. */
static void a_copy_for_a_member_costs_budget(struct kunit *test)
{
	u8 *from = new_buffer(test, MSG), *to = new_buffer(test, GRH + MSG);
	struct end *a = new_datagram_end(test), *members[MEMBERS];
	struct request *req, *recv[MEMBERS];
	union ib_gid group;
	struct ib_ah *ah = group_ah(test, &group);
	int i;

	for (i = 0; i < MEMBERS; i++) {
		members[i] = new_datagram_end(test);
		KUNIT_ASSERT_EQ(test, ib_attach_mcast(members[i]->qp, &group, 0), 0);
		recv[i] = post_recv(test, members[i], to, GRH + MSG);
		post_recv(test, members[i], to, GRH + MSG);
	}
	vrnic_park(&to_vqp(a->qp)->run);
	req = send_datagram(test, a, ah, 0xffffff, QKEY, from, MSG);
	run_with(test, a, 2, VRNIC_MORE, members, 2);
	run_with(test, a, 2, VRNIC_MORE, members, 4);
	run_with(test, a, 64, VRNIC_IDLE, members, MEMBERS);
	vrnic_unpark(&to_vqp(a->qp)->run);
	expect_done(test, a, req, IB_WC_SEND);
	for (i = 0; i < MEMBERS; i++) {
		expect_done(test, members[i], recv[i], IB_WC_RECV);
		KUNIT_EXPECT_EQ(test, ib_detach_mcast(members[i]->qp, &group, 0), 0);
	}
}

struct joining {
	struct work_struct work;
	struct completion done;
	struct ib_qp *qp;
	union ib_gid group;
	int err;
};

static void join(struct work_struct *work)
{
	struct joining *j = container_of(work, struct joining, work);

	j->err = ib_attach_mcast(j->qp, &j->group, 0);
	complete(&j->done);
}

static struct joining *join_later(struct kunit *test, const union ib_gid *group, u8 number)
{
	struct joining *j = kunit_kzalloc(test, sizeof(*j), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, j);
	j->qp = new_datagram_end(test)->qp;
	j->group = *group;
	j->group.raw[15] = number;
	INIT_WORK(&j->work, join);
	init_completion(&j->done);
	return j;
}

static bool is_member(struct kunit *test, struct joining *j)
{
	struct consumer *c = test->priv;
	unsigned long number = 0;
	struct vrnic_qp *qp = vrnic_mcast_next(to_vdev(c->dev), &j->group, &number);

	if (qp)
		vrnic_qp_put(qp);
	return qp;
}

/* A caller that waits for RTNL to join a group does not keep another one from joining. */
static void a_join_waits_for_nobody_who_waits_for_rtnl(struct kunit *test)
{
	struct net_device *lo = init_net.loopback_dev;
	struct joining *waits, *joins;
	union ib_gid group;
	bool joined;
	int tries = 0;

	group_ah(test, &group);
	waits = join_later(test, &group, 2);
	joins = join_later(test, &group, 3);
	KUNIT_ASSERT_EQ(test, ib_attach_mcast(joins->qp, &joins->group, 0), 0);

	rtnl_lock();
	/* the groups of lo are not announced otherwise */
	lo->flags &= ~IFF_LOOPBACK;
	schedule_work(&waits->work);
	while (!is_member(test, waits) && tries++ < 10000)
		usleep_range(1000, 2000);
	schedule_work(&joins->work);
	joined = wait_for_completion_timeout(&joins->done, 10 * HZ);
	rtnl_unlock();

	flush_work(&joins->work);
	flush_work(&waits->work);
	rtnl_lock();
	lo->flags |= IFF_LOOPBACK;
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, joined);
	KUNIT_EXPECT_EQ(test, waits->err, 0);
	KUNIT_EXPECT_EQ(test, joins->err, 0);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(waits->qp, &waits->group, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(joins->qp, &joins->group, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(joins->qp, &joins->group, 0), 0);
	KUNIT_EXPECT_FALSE(test, is_member(test, waits));
}

/* The device of lo has no sockets, until a datagram leaves that no address of this host gets. */
static void a_datagram_opens_the_sockets(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct vrnic_dev *dev = to_vdev(c->dev);
	struct end *a = new_datagram_end(test);
	u8 *from = new_buffer(test, MSG);
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	if (READ_ONCE(dev->wire))
		kunit_skip(test, "the device has its sockets");
	end_ah_attr(test, &attr);
	/* 192.0.2.1, which is for documents only */
	memcpy(attr.grh.dgid.raw + 12, (u8[]) { 192, 0, 2, 1 }, 4);
	ah = keep_ah(test, rdma_create_ah(c->pd, &attr, 0));
	expect_done(test, a, send_datagram(test, a, ah, 0x123, QKEY, from, MSG), IB_WC_SEND);
	/* -EADDRINUSE: rdma_rxe has the port */
	if (READ_ONCE(dev->wire_err) != -EADDRINUSE)
		KUNIT_EXPECT_NOT_NULL(test, READ_ONCE(dev->wire));
}

/**
 * struct shared - two connections to one shared receive queue
 * @srq: it
 * @events: bits 1 << IB_EVENT_*
 * @a: senders
 * @b: receivers
 * @recv: what is posted
 * @buf: for each of them
 */
struct shared {
	struct ib_srq *srq;
	unsigned long events;
	struct end *a[2];
	struct end *b[2];
	struct request *recv[4];
	u32 *buf[4];
};

static void note_srq_event(struct ib_event *event, void *context)
{
	struct shared *s = context;

	set_bit(event->event, &s->events);
}

static void destroy_srq(void *srq)
{
	ib_destroy_srq(srq);
}

static void post_shared(struct kunit *test, struct shared *s, int i)
{
	struct ib_recv_wr wr = { .num_sge = 1 };
	struct ib_sge sge;

	s->recv[i] = new_request(test);
	s->buf[i] = new_buffer(test, 64);
	sge = sge_of(test, s->buf[i], 64);
	wr.wr_cqe = &s->recv[i]->cqe;
	wr.sg_list = &sge;
	KUNIT_ASSERT_EQ(test, ib_post_srq_recv(s->srq, &wr, NULL), 0);
}

/* The receivers share a completion queue too: either of them may get a request. */
static void connect_shared(struct kunit *test, struct shared *s)
{
	struct ib_cq *cq = consumer_cq(test, CONSUMER_DEPTH);
	struct ib_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = s->srq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR, .qp_type = IB_QPT_RC,
	};
	int i;

	for (i = 0; i < 2; i++) {
		s->a[i] = new_end(test, IB_QPT_RC);
		s->b[i] = consumer_end(test, &init);
		connect_ends(test, s->a[i], s->b[i]);
	}
}

static struct shared *new_shared(struct kunit *test)
{
	struct shared *s = new_buffer(test, sizeof(*s));
	struct consumer *c = test->priv;
	struct ib_srq_init_attr init = {
		.event_handler = note_srq_event,
		.srq_context = s,
		.attr = { .max_wr = 16, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	int i;

	s->srq = ib_create_srq(c->pd, &init);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, s->srq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy_srq, s->srq), 0);
	connect_shared(test, s);
	for (i = 0; i < 4; i++)
		post_shared(test, s, i);
	return s;
}

static void send_number(struct kunit *test, struct end *end, u32 number)
{
	u32 *buf = new_buffer(test, sizeof(*buf));

	*buf = number;
	expect_done(test, end, post_send(test, end, IB_WR_SEND, buf, sizeof(*buf),
					 0), IB_WC_SEND);
}

static void srq_serves_both(struct kunit *test)
{
	struct shared *s = new_shared(test);
	int i;

	for (i = 0; i < 4; i++) {
		send_number(test, s->a[i % 2], 100 + i);
		expect_done(test, s->b[i % 2], s->recv[i], IB_WC_RECV);
		KUNIT_EXPECT_EQ(test, *s->buf[i], 100 + i);
	}
}

static void srq_limit(struct kunit *test)
{
	struct ib_srq_attr attr = { .srq_limit = 3 };
	struct shared *s = new_shared(test);

	KUNIT_ASSERT_EQ(test, ib_modify_srq(s->srq, &attr, IB_SRQ_LIMIT), 0);
	send_number(test, s->a[0], 1);
	KUNIT_EXPECT_FALSE(test, test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &s->events));
	send_number(test, s->a[1], 2);
	KUNIT_EXPECT_TRUE(test, test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &s->events));
	/* once, until it is armed again */
	KUNIT_EXPECT_EQ(test, ib_query_srq(s->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
	s->events = 0;
	send_number(test, s->a[0], 3);
	KUNIT_EXPECT_EQ(test, s->events, 0);
}

/* One of its queue pairs fails: what is in the queue is for the other. */
static void srq_survives_a_failure(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct shared *s = new_shared(test);

	KUNIT_ASSERT_EQ(test, ib_modify_qp(s->b[0]->qp, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_TRUE(test, end_saw(s->b[0], IB_EVENT_QP_LAST_WQE_REACHED));
	KUNIT_EXPECT_TRUE(test, stays_open(s->b[1], s->recv[0]));
	send_number(test, s->a[1], 42);
	expect_done(test, s->b[1], s->recv[0], IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, *s->buf[0], 42);
}

/* With an SRQ, receives are not posted to the queue pair. */
static void srq_instead_of_rq(struct kunit *test)
{
	struct shared *s = new_shared(test);
	struct ib_recv_wr wr = { .wr_cqe = &s->recv[0]->cqe };

	KUNIT_EXPECT_EQ(test, ib_post_recv(s->b[0]->qp, &wr, NULL), -EINVAL);
}

static struct kunit_case ud_cases[] = {
	KUNIT_CASE(datagram),
	KUNIT_CASE(answer),
	KUNIT_CASE(changed_address_handle),
	KUNIT_CASE(dropped_datagrams),
	KUNIT_CASE(too_long_for_the_port),
	KUNIT_CASE(a_copy_for_a_member_costs_budget),
	KUNIT_CASE(a_join_waits_for_nobody_who_waits_for_rtnl),
	KUNIT_CASE(a_datagram_opens_the_sockets),
	KUNIT_CASE(srq_serves_both),
	KUNIT_CASE(srq_limit),
	KUNIT_CASE(srq_survives_a_failure),
	KUNIT_CASE(srq_instead_of_rq),
	{}
};

static struct kunit_suite ud_suite = {
	.name = "vrnic_verbs_ud_srq",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = ud_cases,
};

kunit_test_suite(ud_suite);
