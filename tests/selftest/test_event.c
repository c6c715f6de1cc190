// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Asynchronous events that no other program of the suite asks for. */
#include <stdlib.h>

#include "harness.h"

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
