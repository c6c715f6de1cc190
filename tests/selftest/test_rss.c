// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive side scaling: work queues, tables of them, and raw packet queue pairs that spread frames
 * over such a table.
 */
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/vrnic-abi.h>
#include <sched.h>

#include "rss_bed.h"
#include "verbs_raw.h"

#define LOG	3	/* so each work queue is in the table twice */
#define FLOWS	48

FIXTURE(rss) {
	struct raw_bed bed;
	struct queue queue[QUEUES];
	struct ibv_rwq_ind_table *table;
};

FIXTURE_SETUP(rss)
{
	make_hash_key();
	ASSERT_OK(raw_bed_open(&self->bed));
	for (int i = 0; i < QUEUES; i++) {
		ASSERT_OK(queue_open(&self->queue[i], self->bed.pd));
		ASSERT_OK(queue_start(&self->queue[i]));
	}
	self->table = table_of(self->queue, self->bed.ctx, LOG);
	ASSERT_NE(NULL, self->table);
}

FIXTURE_TEARDOWN(rss)
{
	if (self->table)
		EXPECT_OK(ibv_destroy_rwq_ind_table(self->table));
	for (int i = 0; i < QUEUES; i++)
		EXPECT_OK(queue_close(&self->queue[i]));
	EXPECT_OK(raw_bed_close(&self->bed));
}

/* What a queue pair that cannot be had ends with; 0 if it can. */
static int refusal(struct raw_bed *bed, struct ibv_qp_init_attr_ex attr)
{
	struct ibv_qp *qp = ibv_create_qp_ex(bed->ctx, &attr);

	if (!qp)
		return errno;
	ibv_destroy_qp(qp);
	return 0;
}

/* ---- frames, and where they belong ---- */

struct shape {
	bool v6, tcp;
	unsigned int flow;
	uint16_t frag;
	size_t fill;	/* bytes of payload, beyond the 32 that all have */
};

static const char *address(const struct shape *s, bool src, char *text, size_t len)
{
	unsigned int n = src ? s->flow * 7 + 1 : s->flow * 3 + 2;

	if (s->v6)
		snprintf(text, len, "2001:db8:%x::%x", n * 113, n);
	else
		snprintf(text, len, "10.%u.%u.%u", n % 200, n % 13, n % 251 + 1);
	return text;
}

static struct frame frame_of(const struct raw_bed *bed, struct shape s)
{
	char src[40], dst[40];
	uint8_t proto = s.tcp ? IPPROTO_TCP : IPPROTO_UDP;
	struct ip4 ip4 = { address(&s, true, src, sizeof(src)),
			   address(&s, false, dst, sizeof(dst)), proto, .frag = s.frag };
	struct ip6 ip6 = { ip4.src, ip4.dst, proto };
	struct frame f;

	put_eth(&f, bed->mac, bed->peer_mac, -1);
	if (s.v6)
		put_ip6(&f, &ip6, 40 + s.fill);
	else
		put_ip4(&f, &ip4, 40 + s.fill);
	put_udp(&f, 1000 + s.flow, 2000 + s.flow * 5, 32 + s.fill);
	put_data(&f, 32 + s.fill, s.flow);
	return f;
}

/* One bit after the other, with the whole key shifted: slow, but told as the standard tells it. */
static uint32_t toeplitz(const uint8_t *in, size_t len)
{
	uint8_t key[sizeof(hash_key)];
	uint32_t hash = 0;

	memcpy(key, hash_key, sizeof(key));
	for (size_t bit = 0; bit < len * 8; bit++) {
		if (in[bit / 8] & 0x80 >> bit % 8)
			hash ^= (uint32_t)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
		for (size_t i = 0; i < sizeof(key); i++)
			key[i] = key[i] << 1 | (i + 1 < sizeof(key) ? key[i + 1] >> 7 : 0);
	}
	return hash;
}

/* Which queue gets the frame if @addresses and @ports are hashed? */
static unsigned int belongs_to(const struct frame *f, bool v6, bool addresses, bool ports)
{
	const uint8_t *ip = f->at + 14;
	size_t n = 0, len = v6 ? 32 : 8;
	uint8_t in[36];

	if (addresses) {
		memcpy(in, ip + (v6 ? 8 : 12), len);
		n = len;
	}
	if (ports) {
		memcpy(in + n, ip + (v6 ? 40 : 20), 4);
		n += 4;
	}
	return toeplitz(in, n) % (1 << LOG) % QUEUES;
}

#define V4	(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define V6	(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define UDP	(IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define TCP	(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)

/* Frames of many flows get to the queues that their hashes say, and to all of the queues. */
static void spreads(struct __test_metadata *_metadata, struct raw_bed *bed, struct queue *queue,
		    struct ibv_rwq_ind_table *table, uint64_t fields, struct shape s,
		    bool addresses, bool ports)
{
	unsigned int seen = 0, to;
	struct spread spread;
	struct frame f;

	ASSERT_OK(spread_open(&spread, bed, table, fields));
	for (s.flow = 0; s.flow < FLOWS; s.flow++) {
		f = frame_of(bed, s);
		to = belongs_to(&f, s.v6, addresses, ports);
		ASSERT_OK(net_send(bed, &f));
		ASSERT_OK(queue_expect(&queue[to], &f)) TH_LOG("flow %u, queue %u", s.flow, to);
		seen |= 1 << to;
	}
	EXPECT_EQ(addresses || ports ? (1 << QUEUES) - 1 : 1, seen);
	for (int i = 0; i < QUEUES; i++)
		EXPECT_EQ(0, queue_left(&queue[i]));
	EXPECT_OK(spread_close(&spread));
}

#define SPREADS(fields, addresses, ports, ...)						\
	spreads(_metadata, &self->bed, self->queue, self->table, (fields),		\
		(struct shape){ __VA_ARGS__ }, (addresses), (ports))

TEST_F(rss, spreads_by_addresses)
{
	SPREADS(V4, true, false, .v6 = false);
	SPREADS(V6, true, false, .v6 = true);
}

TEST_F(rss, spreads_by_ports)
{
	SPREADS(V4 | UDP, true, true, .tcp = false);
	SPREADS(V6 | TCP, true, true, .v6 = true, .tcp = true);
	SPREADS(UDP, false, true, .v6 = true);
}

/* What is not there does not count; and where nothing is, the first queue gets the frame. */
TEST_F(rss, fields_that_a_frame_lacks)
{
	SPREADS(V4 | TCP, true, false, .tcp = false);
	SPREADS(V4 | V6 | UDP | TCP, true, true, .v6 = true);
	SPREADS(V4, false, false, .v6 = true);
	SPREADS(0, false, false, .v6 = false);
}

/* Only the first fragment has ports, and all of them are to go one way. */
TEST_F(rss, fragments_go_one_way)
{
	SPREADS(V4 | UDP, true, false, .frag = 0x2000);
	SPREADS(V4 | UDP, true, false, .frag = 0x2005);
	SPREADS(V4 | UDP, true, false, .frag = 0x0005);
}

TEST_F(rss, one_connection_stays_in_order)
{
	struct raw_bed *bed = &self->bed;
	struct shape s = { .flow = 5 };
	struct spread spread;
	struct frame f[RECVS];
	cpu_set_t one;
	unsigned int to;

	/* the two ends of a veth pair are in order only on one CPU */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_OK(sched_setaffinity(0, sizeof(one), &one));
	ASSERT_OK(spread_open(&spread, bed, self->table, V4 | UDP));
	for (int i = 0; i < RECVS; i++) {
		s.fill = i;
		f[i] = frame_of(bed, s);
		ASSERT_OK(net_send(bed, &f[i]));
	}
	to = belongs_to(&f[0], false, true, true);
	for (int i = 0; i < RECVS; i++)
		ASSERT_OK(queue_expect(&self->queue[to], &f[i]));
	EXPECT_OK(spread_close(&spread));
}

/* ---- states ---- */

/* The queue that all frames go to if nothing is hashed. */
TEST_F(rss, a_queue_that_is_not_ready_gets_nothing)
{
	struct queue *q = &self->queue[0];
	struct raw_bed *bed = &self->bed;
	struct frame f = frame_of(bed, (struct shape){});
	long long dropped = statistic("rcvd_dropped");
	struct spread spread;
	int ms;

	ASSERT_OK(spread_open(&spread, bed, self->table, 0));
	ASSERT_OK(queue_move(q, IBV_WQS_RESET));
	EXPECT_EQ(EINVAL, queue_post(q, 0));
	ASSERT_LE(0, dropped);
	ASSERT_OK(net_send(bed, &f));
	for (ms = 0; ms < WAIT_SECONDS * 1000 && statistic("rcvd_dropped") == dropped; ms++)
		usleep(1000);
	EXPECT_LT(dropped, statistic("rcvd_dropped"));
	EXPECT_EQ(0, queue_left(q));
	/* what was posted before, in slots 0 to RECVS - 1, is gone */
	ASSERT_OK(queue_move(q, IBV_WQS_RDY));
	ASSERT_OK(queue_post(q, 9));
	ASSERT_OK(net_send(bed, &f));
	EXPECT_OK(queue_expect(q, &f));
	EXPECT_EQ(9U, q->wc.wr_id);
	EXPECT_OK(spread_close(&spread));
}

TEST_F(rss, a_queue_in_error_is_flushed)
{
	struct queue *q = &self->queue[0];

	ASSERT_OK(queue_move(q, IBV_WQS_ERR));
	for (unsigned int i = 0; i < RECVS; i++) {
		ASSERT_OK(poll_one(q->cq, &q->wc));
		EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, q->wc.status);
		EXPECT_EQ(i, q->wc.wr_id);
	}
	ASSERT_OK(queue_post(q, 7));
	ASSERT_OK(poll_one(q->cq, &q->wc));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, q->wc.status);
	EXPECT_EQ(EINVAL, queue_move(q, IBV_WQS_RDY));
	EXPECT_OK(queue_move(q, IBV_WQS_RESET));
	EXPECT_OK(queue_start(q));
}

/* A receive whose memory is not the process's. */
TEST_F(rss, a_bad_receive_ends_in_error)
{
	struct queue *q = &self->queue[0];
	struct raw_bed *bed = &self->bed;
	struct frame f = frame_of(bed, (struct shape){});
	struct ibv_sge sge = { (uintptr_t)q->in.addr, RECV_BYTES, q->in.mr->lkey ^ 0x100 };
	struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct spread spread;

	ASSERT_OK(queue_move(q, IBV_WQS_RESET));
	ASSERT_OK(queue_move(q, IBV_WQS_RDY));
	ASSERT_OK(ibv_post_wq_recv(q->wq, &wr, &bad));
	ASSERT_OK(spread_open(&spread, bed, self->table, 0));
	ASSERT_OK(net_send(bed, &f));
	ASSERT_OK(poll_one(q->cq, &q->wc));
	EXPECT_STATUS(IBV_WC_LOC_PROT_ERR, q->wc.status);
	EXPECT_EQ(77U, q->wc.wr_id);
	ASSERT_OK(queue_post(q, 3));
	ASSERT_OK(poll_one(q->cq, &q->wc));
	EXPECT_STATUS(IBV_WC_WR_FLUSH_ERR, q->wc.status);
	EXPECT_EQ(EINVAL, queue_move(q, IBV_WQS_RDY));
	EXPECT_OK(spread_close(&spread));
}

/* A ring that the process has spoiled: it is told of it by an event. */
TEST_F(rss, a_spoiled_ring_ends_in_an_event)
{
	struct raw_bed *bed = &self->bed;
	struct frame f = frame_of(bed, (struct shape){});
	struct ibv_async_event event;
	struct raw_ring ring[2];	/* of the completion queue, and of the work queue */
	struct ibv_rwq_ind_table *table;
	struct vrnic_recv_desc *d;
	struct queue broken[QUEUES] = {};
	struct spread spread;
	struct raw_seen seen;

	raw_see(&seen);
	ASSERT_OK(queue_open(&broken[0], bed->pd));
	ASSERT_OK(raw_new(&seen, ring, 2));
	ASSERT_OK(queue_start(&broken[0]));
	d = (void *)ring[1].slots;
	ASSERT_EQ(1U, d->num_sge);
	d->num_sge = 1000;
	for (unsigned int i = 1; i < QUEUES; i++)
		broken[i].wq = broken[0].wq;
	table = table_of(broken, bed->ctx, 0);
	ASSERT_NE(NULL, table);
	ASSERT_OK(spread_open(&spread, bed, table, 0));
	ASSERT_OK(net_send(bed, &f));
	ASSERT_EQ(IBV_EVENT_WQ_FATAL, wait_event(bed->ctx, &event));
	EXPECT_EQ(broken[0].wq, event.element.wq);
	EXPECT_EQ(EINVAL, queue_move(&broken[0], IBV_WQS_RDY));
	EXPECT_OK(spread_close(&spread));
	EXPECT_OK(ibv_destroy_rwq_ind_table(table));
	EXPECT_OK(queue_close(&broken[0]));
}

TEST_F(rss, states)
{
	struct queue *q = &self->queue[1];
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RDY, .curr_wq_state = IBV_WQS_RESET,
	};

	EXPECT_OK(queue_move(q, IBV_WQS_RDY));
	EXPECT_EQ(EINVAL, ibv_modify_wq(q->wq, &attr));
	EXPECT_OK(queue_move(q, IBV_WQS_RESET));
	EXPECT_OK(queue_move(q, IBV_WQS_RESET));
	EXPECT_OK(ibv_modify_wq(q->wq, &attr));
	EXPECT_EQ(IBV_WQS_RDY, q->wq->state);
	attr = (struct ibv_wq_attr){
		.attr_mask = IBV_WQ_ATTR_FLAGS, .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING,
	};
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_wq(q->wq, &attr));
}

/* As many receives as were asked for, until their completions are polled. */
TEST_F(rss, a_full_queue)
{
	struct queue *q = &self->queue[0];

	EXPECT_EQ(ENOMEM, queue_post(q, 0));
	ASSERT_OK(queue_move(q, IBV_WQS_ERR));
	ASSERT_OK(poll_one(q->cq, &q->wc));
	EXPECT_OK(queue_post(q, 0));
	EXPECT_EQ(ENOMEM, queue_post(q, 0));
}

/* ---- objects ---- */

TEST_F(rss, what_is_in_use_stays)
{
	struct spread spread;

	ASSERT_OK(spread_open(&spread, &self->bed, self->table, V4));
	EXPECT_EQ(EBUSY, ibv_destroy_wq(self->queue[0].wq));
	EXPECT_EQ(EBUSY, ibv_destroy_rwq_ind_table(self->table));
	EXPECT_OK(spread_close(&spread));
}

struct flood {
	struct raw_bed *bed;
	struct frame frame;
	bool stop;
};

static void *flood(void *arg)
{
	struct flood *flood = arg;

	while (!__atomic_load_n(&flood->stop, __ATOMIC_RELAXED))
		net_send(flood->bed, &flood->frame);
	return NULL;
}

#define FLOOD_ROUNDS	20

/* Queue pairs, tables and work queues come and go while frames come. */
TEST_F(rss, ends_under_fire)
{
	struct raw_bed *bed = &self->bed;
	static struct flood fire;	/* the thread outlives a test that fails */
	struct queue *q = &self->queue[0];
	pthread_t thread;

	fire = (struct flood){ .bed = bed, .frame = frame_of(bed, (struct shape){}) };
	ASSERT_OK(raw_keep_hook());
	ASSERT_OK(ibv_destroy_rwq_ind_table(self->table));
	self->table = NULL;
	ASSERT_OK(pthread_create(&thread, NULL, flood, &fire));
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct ibv_rwq_ind_table *table = table_of(self->queue, bed->ctx, LOG);
		struct spread spread = {};

		ASSERT_NE(NULL, table);
		ASSERT_OK(spread_open(&spread, bed, table, 0));
		ASSERT_OK(poll_one(q->cq, &q->wc));
		EXPECT_STATUS(IBV_WC_SUCCESS, q->wc.status);
		if (i & 1)
			ASSERT_OK(queue_move(q, i & 2 ? IBV_WQS_ERR : IBV_WQS_RESET));
		EXPECT_OK(spread_close(&spread));
		EXPECT_OK(ibv_destroy_rwq_ind_table(table));
		ASSERT_OK(queue_close(q));
		memset(q, 0, sizeof(*q));
		ASSERT_OK(queue_open(q, bed->pd));
		ASSERT_OK(queue_start(q));
	}
	fire.stop = true;
	pthread_join(thread, NULL);
}

TEST_F(rss, what_it_tells)
{
	struct ibv_device_attr_ex attr;

	ASSERT_OK(ibv_query_device_ex(self->bed.ctx, NULL, &attr));
	EXPECT_EQ(1U << IBV_QPT_RAW_PACKET, attr.rss_caps.supported_qpts);
	EXPECT_EQ(IBV_RX_HASH_FUNC_TOEPLITZ, attr.rss_caps.rx_hash_function);
	EXPECT_EQ(V4 | V6 | TCP | UDP, attr.rss_caps.rx_hash_fields_mask);
	EXPECT_LT(0U, attr.rss_caps.max_rwq_indirection_tables);
	EXPECT_EQ(256U, attr.rss_caps.max_rwq_indirection_table_size);
	EXPECT_LT(0U, attr.max_wq_type_rq);
}

TEST_F(rss, tables)
{
	struct ibv_context *ctx = self->bed.ctx;
	struct ibv_rwq_ind_table *table = table_of(self->queue, ctx, 8);

	ASSERT_NE(NULL, table);
	EXPECT_OK(ibv_destroy_rwq_ind_table(table));
	EXPECT_EQ(NULL, table_of(self->queue, ctx, 9));
	EXPECT_EQ(EINVAL, errno);
	table = table_of(self->queue, ctx, 0);
	ASSERT_NE(NULL, table);
	EXPECT_EQ(0, refusal(&self->bed, rss_attr(self->bed.pd, table, V4)));
	EXPECT_OK(ibv_destroy_rwq_ind_table(table));
}

TEST_F(rss, unsupported)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_qp_init_attr_ex attr;

	EXPECT_EQ(0, refusal(bed, rss_attr(bed->pd, self->table, V4 | V6 | TCP | UDP)));
	EXPECT_EQ(EOPNOTSUPP, refusal(bed, rss_attr(bed->pd, self->table, IBV_RX_HASH_INNER)));
	EXPECT_EQ(EOPNOTSUPP, refusal(bed, rss_attr(bed->pd, self->table, 1 << 8)));

	attr = rss_attr(bed->pd, self->table, V4);
	attr.rx_hash_conf.rx_hash_key_len = 39;
	EXPECT_EQ(EINVAL, refusal(bed, attr));

	attr = rss_attr(bed->pd, self->table, V4);
	attr.rx_hash_conf.rx_hash_function = 0;
	EXPECT_EQ(EOPNOTSUPP, refusal(bed, attr));

	attr = rss_attr(bed->pd, self->table, V4);
	attr.qp_type = IBV_QPT_UD;
	EXPECT_EQ(EOPNOTSUPP, refusal(bed, attr));

	/* it would have to send by itself */
	attr = rss_attr(bed->pd, self->table, V4);
	attr.cap.max_send_wr = 1;
	attr.send_cq = bed->a.scq;
	EXPECT_EQ(EOPNOTSUPP, refusal(bed, attr));

	attr = rss_attr(bed->pd, self->table, V4);
	attr.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH;
	EXPECT_EQ(EINVAL, refusal(bed, attr));
}

/* ---- as libibverbs does not ask ---- */

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[12];
};

static void call_add(struct call *c, unsigned int id, unsigned int len, uint64_t data)
{
	c->attr[c->hdr.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
}

static int call_make(struct call *c, struct ibv_context *ctx, unsigned int method)
{
	c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attr[0]);
	c->hdr.object_id = UVERBS_OBJECT_WQ;
	c->hdr.method_id = method;
	c->hdr.driver_id = VRNIC_DRIVER_ID;
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

/* Make a work queue, with or without a completion queue, and destroy it. */
static int by_ioctl(struct raw_bed *bed, const struct ibv_cq *cq)
{
	struct vrnic_create_qp_resp rings;
	struct call make = {}, end = {};
	uint32_t out[3], events;
	int ret;

	call_add(&make, UVERBS_ATTR_CREATE_WQ_HANDLE, 0, 0);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, 0, bed->pd->handle);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8, 0);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_TYPE, 8, IBV_WQT_RQ);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, 1);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, 1);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_FLAGS, 4, 0);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4, (uintptr_t)&out[0]);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4, (uintptr_t)&out[1]);
	call_add(&make, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4, (uintptr_t)&out[2]);
	call_add(&make, UVERBS_ATTR_UHW_OUT, sizeof(rings), (uintptr_t)&rings);
	if (cq)
		call_add(&make, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, 0, cq->handle);
	ret = call_make(&make, bed->ctx, UVERBS_METHOD_WQ_CREATE);
	if (ret)
		return ret;
	call_add(&end, UVERBS_ATTR_DESTROY_WQ_HANDLE, 0, make.attr[0].data);
	call_add(&end, UVERBS_ATTR_DESTROY_WQ_RESP, 4, (uintptr_t)&events);
	return call_make(&end, bed->ctx, UVERBS_METHOD_WQ_DESTROY) ? -1 : 0;
}

TEST_F(rss, a_work_queue_has_a_completion_queue)
{
	EXPECT_EQ(0, by_ioctl(&self->bed, self->bed.a.cq));
	EXPECT_EQ(EINVAL, by_ioctl(&self->bed, NULL));
}

TEST_F(rss, work_queues)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 5, .max_sge = 2, .pd = bed->pd, .cq = bed->a.cq,
	};
	struct ibv_wq *wq = ibv_create_wq(bed->ctx, &attr);

	ASSERT_NE(NULL, wq);
	EXPECT_LE(5U, attr.max_wr);
	EXPECT_OK(ibv_destroy_wq(wq));
	attr.max_wr = 1 << 20;
	EXPECT_EQ(NULL, ibv_create_wq(bed->ctx, &attr));
	EXPECT_EQ(EINVAL, errno);
	attr.max_wr = 5;
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	EXPECT_EQ(NULL, ibv_create_wq(bed->ctx, &attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

/* It sends nothing and receives nothing itself. */
TEST_F(rss, nothing_is_posted_to_the_queue_pair)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_sge sge = sge_of(&bed->a.out, 0, 64);
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct spread spread;

	ASSERT_OK(spread_open(&spread, bed, self->table, V4));
	EXPECT_EQ(EOPNOTSUPP, raw_to_rts(spread.qp));
	EXPECT_EQ(EINVAL, ibv_post_send(spread.qp, &swr, &bad));
	EXPECT_EQ(EINVAL, ibv_post_recv(spread.qp, &rwr, &rbad));
	EXPECT_OK(spread_close(&spread));
}

TEST_F(rss, needs_the_capability)
{
	struct raw_bed *bed = &self->bed;
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = bed->pd, .cq = bed->a.cq,
	};

	ASSERT_OK(drop_net_raw());
	EXPECT_EQ(NULL, ibv_create_wq(bed->ctx, &attr));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(EPERM, refusal(bed, rss_attr(bed->pd, self->table, V4)));
}

TEST_HARNESS_MAIN
