// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Asynchronous events that no other program of the suite asks for. */
#include <stdlib.h>

#include "harness.h"
#include "verbs_raw.h"

BED(event, 4096);

TEST_F(event, none_in_peace)
{
	struct bed *bed = &self->bed;

	ASSERT_OK(post_recv(bed->b, &bed->dst, 0, 64, 0));
	ASSERT_DONE(RUN(bed->a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_DONE(wait_recv(bed->b));
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
}

/* IBTA 11.6.3: the first packet in RTR tells that the connection stands. */
TEST_F(event, communication_established)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = bed->pair.opts;
	struct ibv_async_event event = {};
	struct pair pair;

	ASSERT_OK(bed_pair_open(bed, &pair, NULL));
	ASSERT_OK(side_to_init(&pair.b, &opts));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, 64, 0));
	ASSERT_OK(side_to_rtr(&pair.b, &opts, pair.a.qp->qp_num,
			      &pair.a.dev->gid));
	ASSERT_OK(side_connect(&pair.a, &opts, pair.b.qp->qp_num,
			       &pair.b.dev->gid));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .len = 8,
			.local = &bed->src));
	ASSERT_EQ(IBV_EVENT_COMM_EST, wait_event(pair.b.dev->ctx, &event));
	EXPECT_EQ(pair.b.qp, event.element.qp);
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_OK(pair_close(&pair));
}

/* Destroying an object waits until its events are acknowledged, no longer. */
TEST_F(event, unread_events_do_not_hold_an_object)
{
	struct bed *bed = &self->bed;
	struct pair_opts opts = { .srq = true };
	struct pair pair;

	ASSERT_OK(bed_pair_open(bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(qp_to(pair.b.qp, IBV_QPS_ERR));
	ASSERT_TRUE(readable(bed->b->dev->ctx->async_fd, WAIT_SECONDS * 1000));
	ASSERT_OK(ibv_destroy_qp(pair.b.qp));
	pair.b.qp = NULL;
	EXPECT_FALSE(readable(bed->b->dev->ctx->async_fd, 20));
	EXPECT_OK(pair_close(&pair));
}

/* An error of one context is no event of another. */
TEST_F(event, stays_in_its_context)
{
	struct bed *bed = &self->bed;
	struct ibv_context *other = dev_open_context();

	ASSERT_NE(NULL, other);
	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			  .local = &bed->src, .remote = &bed->dst,
			  .rkey = ~0u));
	EXPECT_FALSE(readable(other->async_fd, 20));
	EXPECT_OK(ibv_close_device(other));
}

/* ---- what a peer does ---- */

FIXTURE(refusal) { struct wire_bed wire; struct bed own, *bed; };

FIXTURE_VARIANT(refusal) { bool wire; };

FIXTURE_VARIANT_ADD(refusal, loop) {};

FIXTURE_VARIANT_ADD(refusal, wire) { .wire = true };

FIXTURE_SETUP(refusal)
{
	if (variant->wire) {
		ASSERT_OK(wire_bed_open(&self->wire, 4096, NULL));
		self->bed = &self->wire.bed;
	} else {
		ASSERT_OK(bed_open(&self->own, 4096, NULL));
		self->bed = &self->own;
	}
}

FIXTURE_TEARDOWN(refusal)
{
	EXPECT_OK(variant->wire ? wire_bed_close(&self->wire) : bed_close(&self->own));
}

/* IBTA C9-222: no completion of the responder tells of these. */
TEST_F(refusal, no_access)
{
	struct bed *bed = self->bed;
	struct ibv_async_event event;

	EXPECT_STATUS(IBV_WC_REM_ACCESS_ERR,
		      RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .len = 8, .local = &bed->src,
			  .remote = &bed->dst, .rkey = ~0u));
	ASSERT_EQ(IBV_EVENT_QP_ACCESS_ERR, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(bed->b->qp, event.element.qp);
}

TEST_F(refusal, no_such_request)
{
	struct bed *bed = self->bed;
	struct ibv_async_event event;

	EXPECT_STATUS(IBV_WC_REM_INV_REQ_ERR,
		      RUN(bed->a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8,
			  .local = &bed->src, .remote = &bed->dst, .roff = 4));
	ASSERT_EQ(IBV_EVENT_QP_REQ_ERR, wait_event(bed->b->dev->ctx, &event));
	EXPECT_EQ(bed->b->qp, event.element.qp);
}

/* The program has spoilt the queue of its receives. */
TEST_F(refusal, no_sound_srq)
{
	struct pair pair = { .opts = pair_defaults(&(struct pair_opts){}) };
	struct bed *bed = self->bed;
	struct ibv_async_event event;
	struct raw_ring rings[RINGS];
	int i, type = 0;

	ASSERT_OK(side_open(&pair.a, bed->a->dev, &pair.opts, false));
	ASSERT_OK(raw_side_open(&pair.b, bed->b->dev, &pair.opts, true, rings));
	ASSERT_OK(pair_connect(&pair));
	rings[RQ].hdr->prod += 1 << 20;
	EXPECT_STATUS(IBV_WC_REM_OP_ERR, RUN(&pair.a, .op = IBV_WR_SEND, .len = 8,
					     .local = &bed->src));
	for (i = 0; i < 4 && type >= 0 && type != IBV_EVENT_SRQ_ERR; i++)
		type = wait_event(pair.b.dev->ctx, &event);
	ASSERT_EQ(IBV_EVENT_SRQ_ERR, type);
	EXPECT_EQ(pair.b.srq, event.element.srq);
	EXPECT_OK(pair_close(&pair));
}

/* ---- the port ---- */

#define LINK_DEVICE	"vrnic_event"

/* How often events said that the port went down, and that it came up. */
struct port_events {
	int down, up;
};

/* Count until the first of these events, and half a second on, as a second one may follow. */
static int count_port_events(struct ibv_context *ctx, struct port_events *count)
{
	struct ibv_async_event event;
	int ms = WAIT_SECONDS * 1000;

	memset(count, 0, sizeof(*count));
	while (readable(ctx->async_fd, ms)) {
		if (ibv_get_async_event(ctx, &event))
			return -errno;
		count->down += event.event_type == IBV_EVENT_PORT_ERR;
		count->up += event.event_type == IBV_EVENT_PORT_ACTIVE;
		ibv_ack_async_event(&event);
		if (count->down || count->up)
			ms = 500;
	}
	return 0;
}

static int lo_is(const char *state)
{
	char command[40];

	snprintf(command, sizeof(command), "ip link set lo %s", state);
	return system(command) ? -EIO : 0;
}

/* Since 6.14 the core reports such changes, so a driver that reports them, too, does so twice. */
TEST(a_change_of_the_port_is_told_of_once)
{
	struct port_events count;
	struct dev dev;

	ASSERT_OK(rdma_link_apart(LINK_DEVICE));
	ASSERT_OK(setenv("VRNIC_DEV", LINK_DEVICE, 1));
	ASSERT_OK(dev_open(&dev));
	/* events of the device's beginning do not count */
	while (readable(dev.ctx->async_fd, 500)) {
		struct ibv_async_event event;

		ASSERT_OK(ibv_get_async_event(dev.ctx, &event));
		ibv_ack_async_event(&event);
	}
	ASSERT_OK(lo_is("down"));
	ASSERT_OK(count_port_events(dev.ctx, &count));
	EXPECT_EQ(1, count.down);
	EXPECT_EQ(0, count.up);
	ASSERT_OK(lo_is("up"));
	ASSERT_OK(count_port_events(dev.ctx, &count));
	EXPECT_EQ(0, count.down);
	EXPECT_EQ(1, count.up);
	dev_close(&dev);
	ASSERT_OK(rdma_link_del(LINK_DEVICE));
}

TEST_HARNESS_MAIN
