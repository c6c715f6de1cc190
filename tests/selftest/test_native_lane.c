// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A receiver that does not look holds up nobody else: what finds no room there waits in a lane,
 * with what follows it to the same endpoint. a sends to b, whose reception FIFO is full soon, and
 * to c, another context of b's process.
 */
#include <sys/mman.h>

#include "native.h"

#define LEN	4096
#define SLOTS	256		/* of the reception FIFOs: messages of one slot take two */
#define FULL	(SLOTS / 2)
#define PARKED	20		/* more than b has room for, and fewer than a lane takes */
#define LANE	64		/* operations that a lane takes */
#define LANES	16

struct box {
	int count, bad;
};

/* Messages that say which number they have. */
static void number(struct vrnic_context *context, const struct vrnic_message *m, void *arg)
{
	struct box *box = arg;
	int i;

	memcpy(&i, m->data, sizeof(i));
	box->bad += i != box->count++;
}

static int send_number(struct vrnic_endpoint *to, int i, const struct vrnic_done *done)
{
	return vrnic_send(to, SEND(.id = 1, .data = &i, .length = sizeof(i)), done);
}

FIXTURE(lane)
{
	struct nbed bed;
	struct vrnic_context *c;
	struct vrnic_endpoint *to_c;
	struct box at_b, at_c;
};

FIXTURE_SETUP(lane)
{
	struct vrnic_context_attr attr = { .inject_slots = 1024, .receive_slots = SLOTS };
	struct vrnic_address address;

	NEED_NATIVE();
	memset(&self->at_b, 0, sizeof(self->at_b));
	memset(&self->at_c, 0, sizeof(self->at_c));
	ASSERT_OK(nbed_open(&self->bed, LEN, &attr));
	ASSERT_OK(vrnic_context_create(self->bed.b.client, &attr, &self->c));
	vrnic_context_address(self->c, &address);
	ASSERT_OK(vrnic_endpoint_create(self->bed.a.context, &address, &self->to_c));
	ASSERT_OK(vrnic_dispatch_set(self->bed.b.context, 1, number, &self->at_b));
	ASSERT_OK(vrnic_dispatch_set(self->c, 1, number, &self->at_c));
}

FIXTURE_TEARDOWN(lane)
{
	if (self->to_c)
		EXPECT_OK(vrnic_endpoint_destroy(self->to_c));
	EXPECT_OK(vrnic_context_destroy(self->c));
	EXPECT_OK(nbed_close(&self->bed));
}

/* Fill b's reception FIFO, and have @parked more messages wait. Return: 0 or a negative errno. */
static int stop(struct nbed *bed, int parked, const struct vrnic_done *done)
{
	int i, ret = 0;

	for (i = 0; i < FULL + parked && !ret; i++)
		ret = send_number(bed->a.to, i, done);
	return ret;
}

/* A message to c comes. */
static int reach_c(FIXTURE_DATA(lane) *self)
{
	return send_number(self->to_c, self->at_c.count, NULL) ?:
	       advance_until(self->c, &self->at_c.count, self->at_c.count + 1);
}

TEST_F(lane, others_go_on)
{
	struct nbed *bed = &self->bed;
	int i;

	ASSERT_OK(stop(bed, PARKED, NULL));
	for (i = 0; i < FULL; i++)
		ASSERT_OK(reach_c(self));
	EXPECT_EQ(0, self->at_b.count);
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED));
	EXPECT_EQ(0, self->at_b.bad);
	EXPECT_EQ(0, self->at_c.bad);
	/* the lane is free, and the endpoint as it was */
	ASSERT_OK(send_number(bed->a.to, FULL + PARKED, NULL));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED + 1));
	EXPECT_EQ(0, self->at_b.bad);
}

/* What is behind a message that waits is not before it, whatever it is. */
TEST_F(lane, an_endpoint_keeps_its_order)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	volatile uint64_t *theirs = (uint64_t *)bed->b.buf.addr;
	uint64_t *ours = (uint64_t *)a->buf.addr;
	const uint64_t inlined = 44;

	memset(ours, 0, LEN);
	memset(bed->b.buf.addr, 0, LEN);
	ours[0] = 11;
	ASSERT_OK(stop(bed, 1, NULL));
	ASSERT_OK(vrnic_put(a->to, WR(.local = &ours[0], .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = a->peer.rkey), NULL));
	ASSERT_OK(vrnic_rmw(a->to, RMW(.op = VRNIC_RMW_ADD, .width = 8, .operand = 5,
				       .remote = a->peer.addr, .rkey = a->peer.rkey,
				       .result = &ours[1], .mr = a->buf.mr), NULL));
	ASSERT_OK(vrnic_get(a->to, WR(.local = &ours[2], .mr = a->buf.mr, .length = 8,
				      .remote = a->peer.addr, .rkey = a->peer.rkey), NULL));
	ASSERT_OK(vrnic_put_inline(a->to, WR(.local = (void *)&inlined, .length = 8,
					     .remote = a->peer.addr + 8, .rkey = a->peer.rkey),
				   DONE(.remote = a->counter)));
	ASSERT_OK(reach_c(self));
	EXPECT_EQ(0, theirs[0]);
	EXPECT_EQ(0, theirs[1]);
	EXPECT_EQ(8, vrnic_counter_read(a->counter));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + 1));
	ASSERT_OK(counter_done(a->counter));
	EXPECT_EQ(16, theirs[0]);
	EXPECT_EQ(44, theirs[1]);
	EXPECT_EQ(11, ours[1]);
	EXPECT_EQ(16, ours[2]);
}

/* One context to another keeps its order, by whichever endpoint. */
TEST_F(lane, a_peer_keeps_its_order)
{
	struct nbed *bed = &self->bed;
	struct vrnic_address address;
	struct vrnic_endpoint *again;
	int i;

	vrnic_context_address(bed->b.context, &address);
	ASSERT_OK(vrnic_endpoint_create(bed->a.context, &address, &again));
	ASSERT_OK(stop(bed, 1, NULL));
	for (i = FULL + 1; i < FULL + PARKED; i++)
		ASSERT_OK(send_number(i % 2 ? again : bed->a.to, i, NULL));
	/* some room, not for all */
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, 1));
	for (i = FULL + PARKED; i < FULL + 2 * PARKED; i++)
		ASSERT_OK(send_number(i % 2 ? again : bed->a.to, i, NULL));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + 2 * PARKED));
	EXPECT_EQ(0, self->at_b.bad);
	EXPECT_OK(vrnic_endpoint_destroy(again));
}

/* What does not fit a lane waits in the ring: memory that is not registered, and types. */
TEST_F(lane, the_ring_waits_for_the_rest)
{
	struct nbed *bed = &self->bed;
	struct node *a = &bed->a;
	struct vrnic_type *type;
	char *fresh = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, fresh);
	buf_fill(&bed->b.buf, 3);
	ASSERT_OK(stop(bed, PARKED, NULL));
	ASSERT_OK(vrnic_read(a->to, WR(.local = fresh, .length = LEN, .remote = a->peer.addr,
				       .rkey = a->peer.rkey), DONE(.local = a->counter)));
	ASSERT_OK(vrnic_type_create(a->client, &type));
	ASSERT_OK(vrnic_type_add_simple(type, 8, 0, 4, 16));
	ASSERT_OK(vrnic_type_complete(type));
	ASSERT_OK(vrnic_get_typed(a->to, TYPED(.local = a->buf.addr, .mr = a->buf.mr,
					       .remote = a->peer.addr, .rkey = a->peer.rkey,
					       .local_type = type, .remote_type = type),
				  DONE(.local = a->counter)));
	ASSERT_OK(vrnic_type_destroy(type));
	ASSERT_OK(send_number(self->to_c, 0, NULL));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED));
	ASSERT_OK(counter_done(a->counter));
	EXPECT_EQ(0, memcmp(fresh, bed->b.buf.addr, LEN));
	EXPECT_EQ(0, memcmp(a->buf.addr + 16, bed->b.buf.addr + 16, 8));
	ASSERT_OK(advance_until(self->c, &self->at_c.count, 1));
	munmap(fresh, LEN);
}

/* What fails behind a message that waits is told behind it, and holds up nobody. */
TEST_F(lane, failures_wait_too)
{
	struct nbed *bed = &self->bed;
	struct told good = {}, bad = {};
	struct vrnic_status status = {};

	ASSERT_OK(stop(bed, 1, DONE(TELL(&good))));
	ASSERT_OK(vrnic_put(bed->a.to, WR(.local = bed->a.buf.addr, .mr = bed->a.buf.mr,
					  .length = 8, .remote = bed->a.peer.addr,
					  .rkey = bed->a.peer.rkey + 1), DONE(TELL(&bad))));
	ASSERT_OK(reach_c(self));
	ASSERT_OK(advance_until(bed->a.context, &good.count, FULL));
	EXPECT_EQ(0, bad.count);
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + 1));
	ASSERT_OK(advance_until(bed->a.context, &bad.count, 1));
	EXPECT_EQ(FULL + 1, good.count);
	EXPECT_EQ(IBV_WC_SUCCESS, good.status.status);
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, bad.status.status);
	EXPECT_EQ(-EIO, vrnic_fence_wait(bed->a.to, WAIT_NS, &status));
}

/* A fence waits for what its endpoint has in a lane; one over all for all; of others, none. */
TEST_F(lane, fences_know_lanes)
{
	struct nbed *bed = &self->bed;
	struct told one = {}, all = {};

	ASSERT_OK(stop(bed, PARKED, NULL));
	EXPECT_OK(vrnic_fence_wait(self->to_c, WAIT_NS, NULL));
	ASSERT_OK(vrnic_fence(bed->a.to, DONE(TELL(&one))));
	ASSERT_OK(reach_c(self));
	ASSERT_OK(vrnic_fence_all(bed->a.context, DONE(TELL(&all))));
	EXPECT_GE(vrnic_advance(bed->a.context, 10), 0);
	EXPECT_EQ(0, one.count);
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED));
	ASSERT_OK(advance_until(bed->a.context, &all.count, 1));
	EXPECT_EQ(1, one.count);
	EXPECT_EQ(IBV_WC_SUCCESS, one.status.status);
	EXPECT_EQ(IBV_WC_SUCCESS, all.status.status);
}

/* Each is told once, and counted once. */
TEST_F(lane, all_are_counted)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	ASSERT_OK(stop(bed, PARKED, DONE(TELL(&told), .remote = bed->a.counter)));
	ASSERT_OK(advance_until(bed->a.context, &told.count, FULL));
	EXPECT_EQ(FULL, told.count);
	EXPECT_EQ(PARKED, vrnic_counter_read(bed->a.counter));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED));
	ASSERT_OK(advance_until(bed->a.context, &told.count, FULL + PARKED));
	EXPECT_EQ(IBV_WC_SUCCESS, told.status.status);
	EXPECT_OK(counter_done(bed->a.counter));
	EXPECT_EQ(0, vrnic_counter_read(bed->a.counter));
}

/* A lane has no room any more, so the ring waits; nothing is lost, and nothing comes too early. */
TEST_F(lane, a_lane_fills)
{
	struct nbed *bed = &self->bed;

	ASSERT_OK(stop(bed, LANE + PARKED, NULL));
	ASSERT_OK(send_number(self->to_c, 0, NULL));
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + LANE + PARKED));
	EXPECT_EQ(0, self->at_b.bad);
	ASSERT_OK(advance_until(self->c, &self->at_c.count, 1));
	EXPECT_EQ(0, self->at_c.bad);
}

/* More endpoints wait than there are lanes. */
TEST_F(lane, lanes_are_few)
{
	struct vrnic_context_attr attr = { .receive_slots = SLOTS };
	struct vrnic_context *to[LANES + 4];
	struct vrnic_endpoint *ep[LANES + 4];
	struct box box[LANES + 4] = {};
	struct nbed *bed = &self->bed;
	struct vrnic_address address;
	int i, k;

	for (k = 0; k < LANES + 4; k++) {
		ASSERT_OK(vrnic_context_create(bed->b.client, &attr, &to[k]));
		ASSERT_OK(vrnic_dispatch_set(to[k], 1, number, &box[k]));
		vrnic_context_address(to[k], &address);
		ASSERT_OK(vrnic_endpoint_create(bed->a.context, &address, &ep[k]));
	}
	for (k = 0; k < LANES + 4; k++)
		for (i = 0; i < FULL + 2; i++)
			ASSERT_OK(send_number(ep[k], i, DONE(.flags = VRNIC_QUEUE)));
	for (k = 0; k < LANES + 4; k++) {
		for (i = 0; i < 10 * WAIT_SECONDS && box[k].count < FULL + 2; i++) {
			/* what the library has queued */
			ASSERT_GE(vrnic_advance(bed->a.context, 10), 0);
			ASSERT_GE(vrnic_advance(to[k], 10), 0);
			usleep(box[k].count < FULL + 2 ? 10000 : 0);
		}
		EXPECT_EQ(FULL + 2, box[k].count);
		EXPECT_EQ(0, box[k].bad);
	}
	for (k = 0; k < LANES + 4; k++) {
		EXPECT_OK(vrnic_endpoint_destroy(ep[k]));
		EXPECT_OK(vrnic_context_destroy(to[k]));
	}
}

/* The endpoint goes before what waits in its lane: that comes, if the peer is on this host. */
TEST_F(lane, an_endpoint_goes)
{
	struct nbed *bed = &self->bed;

	ASSERT_OK(stop(bed, PARKED, NULL));
	ASSERT_OK(vrnic_endpoint_destroy(bed->a.to));
	bed->a.to = NULL;
	ASSERT_OK(reach_c(self));
	/* no fence waits for what nobody can name any more; what is lost over a wire has failed */
	EXPECT_EQ(getenv("VRNIC_PEER_DEV") ? -EIO : 0,
		  vrnic_fence_all_wait(bed->a.context, WAIT_NS, NULL));
	if (!getenv("VRNIC_PEER_DEV"))
		ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL + PARKED));
	EXPECT_EQ(0, self->at_b.bad);
}

/* The receiver goes: all that waits fails, and others go on. */
TEST_F(lane, the_receiver_goes)
{
	struct nbed *bed = &self->bed;
	struct told told = {};

	ASSERT_OK(stop(bed, PARKED, DONE(TELL(&told))));
	ASSERT_OK(advance_until(bed->a.context, &told.count, FULL));
	ASSERT_OK(vrnic_endpoint_destroy(bed->b.to));
	bed->b.to = NULL;
	ASSERT_OK(vrnic_context_destroy(bed->b.context));
	bed->b.context = NULL;
	ASSERT_OK(advance_until(bed->a.context, &told.count, FULL + PARKED));
	EXPECT_NE(IBV_WC_SUCCESS, told.status.status);
	ASSERT_OK(reach_c(self));
}

/* The sender goes. */
TEST_F(lane, the_sender_goes)
{
	struct nbed *bed = &self->bed;

	ASSERT_OK(stop(bed, PARKED, NULL));
	ASSERT_OK(vrnic_endpoint_destroy(self->to_c));
	self->to_c = NULL;
	ASSERT_OK(vrnic_endpoint_destroy(bed->a.to));
	bed->a.to = NULL;
	ASSERT_OK(vrnic_context_destroy(bed->a.context));
	bed->a.context = NULL;
	ASSERT_OK(advance_until(bed->b.context, &self->at_b.count, FULL));
	EXPECT_EQ(0, self->at_b.bad);
}

TEST_HARNESS_MAIN
