// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Either side is killed in the middle of traffic of each kind: its objects go, the
 * other side is told or finds out, and nothing is left.
 */
#include <signal.h>

#include "native.h"

#define LEN	(1 << 20)
#define TIMES	20

enum traffic { PUT, GET, READ, WRITE, INLINE, MESSAGE, TYPED, RMW, FENCE, PACED };

FIXTURE(death)
{
	struct node node;
	struct peer peer;
	struct vrnic_type *type;
	long long before;
	char objects[200];
};

FIXTURE_VARIANT(death)
{
	enum traffic kind;
};

FIXTURE_VARIANT_ADD(death, put) { PUT };
FIXTURE_VARIANT_ADD(death, get) { GET };
FIXTURE_VARIANT_ADD(death, read) { READ };
FIXTURE_VARIANT_ADD(death, write) { WRITE };
FIXTURE_VARIANT_ADD(death, put_inline) { INLINE };
FIXTURE_VARIANT_ADD(death, message) { MESSAGE };
FIXTURE_VARIANT_ADD(death, typed) { TYPED };
FIXTURE_VARIANT_ADD(death, rmw) { RMW };
FIXTURE_VARIANT_ADD(death, fence) { FENCE };
FIXTURE_VARIANT_ADD(death, paced) { PACED };

static int make_type(struct vrnic_client *client, struct vrnic_type **type)
{
	int ret = vrnic_type_create(client, type);

	if (!ret)
		ret = vrnic_type_add_simple(*type, 24, 0, LEN / 32, 32);
	return ret ? ret : vrnic_type_complete(*type);
}

/* One operation of the kind; 0, -EAGAIN, or what is wrong. */
static int submit(struct node *n, enum traffic kind, struct vrnic_type *type)
{
	static uint8_t data[3000];
	const struct vrnic_done *done = DONE(.remote = n->counter);
	int ret;

	switch (kind) {
	case PUT:
		return vrnic_put(n->to, WR(.local = n->buf.addr, .mr = n->buf.mr, .length = LEN,
					   .remote = n->peer.addr, .rkey = n->peer.rkey), done);
	case GET:
		return vrnic_get(n->to, WR(.local = n->buf.addr, .mr = n->buf.mr, .length = LEN,
					   .remote = n->peer.addr, .rkey = n->peer.rkey),
				 DONE(.local = n->counter));
	case READ:
		return vrnic_read(n->to, WR(.local = n->buf.addr, .length = LEN,
					    .remote = n->peer.addr, .rkey = n->peer.rkey),
				  DONE(.local = n->counter));
	case WRITE:
		return vrnic_write(n->to, WR(.local = n->buf.addr, .length = LEN,
					     .remote = n->peer.addr, .rkey = n->peer.rkey),
				   DONE(.local = n->counter));
	case INLINE:
		return vrnic_put_inline(n->to, WR(.local = data, .length = sizeof(data),
						  .remote = n->peer.addr, .rkey = n->peer.rkey),
					done);
	case MESSAGE:
		return vrnic_send(n->to, SEND(.id = 1, .data = data, .length = sizeof(data)), done);
	case TYPED:
		return vrnic_put_typed(n->to, TYPED(.local = n->buf.addr, .mr = n->buf.mr,
						    .local_type = type, .remote = n->peer.addr,
						    .rkey = n->peer.rkey, .remote_type = type,
						    .mode = VRNIC_TYPED_CHUNKS), done);
	case RMW:
		return vrnic_rmw(n->to, RMW(.op = VRNIC_RMW_ADD, .width = 8, .remote = n->peer.addr,
					    .rkey = n->peer.rkey, .operand = 1), done);
	case FENCE:
		ret = vrnic_put_inline(n->to, WR(.local = data, .length = 8, .remote = n->peer.addr,
						 .rkey = n->peer.rkey), NULL);
		return ret ? ret : vrnic_fence(n->to, done);
	case PACED:
		return vrnic_rts_send(n->to, OFFER(.local = n->buf.addr, .mr = n->buf.mr,
						   .length = LEN), done);
	}
	return -EINVAL;
}

/* What arrives is taken: messages dropped, offers accepted. */
static void accept_into(struct vrnic_context *context,
			const struct vrnic_rts *rts, const void *header,
			size_t header_len, void *arg)
{
	struct node *n = arg;

	vrnic_accept(n->to, rts, ACCEPT(.local = n->buf.addr, .mr = n->buf.mr,
					.portion = 65536), NULL);
}

/* Keep the queue full; tell by a byte that the traffic runs. */
static int sender(int fd, const void *arg)
{
	enum traffic kind = *(const enum traffic *)arg;
	struct vrnic_type *type = NULL;
	struct node n = {};
	int i, ret = node_open(&n, LEN, NULL);

	if (!ret)
		ret = make_type(n.client, &type);
	if (!ret)
		ret = node_meet(&n, fd);
	for (i = 0; !ret; i++) {
		ret = submit(&n, kind, type);
		if (ret == -EAGAIN)
			ret = vrnic_advance(n.context, 100) < 0 ? -EIO : 0;
		if (i == 3)
			ret = say(fd);
	}
	return ret;
}

static int receiver(int fd, const void *arg)
{
	struct node n = {};
	int ret = node_open(&n, LEN, NULL);

	if (!ret)
		ret = vrnic_rts_handler_set(n.context, accept_into, &n);
	if (!ret)
		ret = node_meet(&n, fd);
	if (!ret)
		ret = say(fd);
	while (ret >= 0) {
		ret = vrnic_advance(n.context, 100);
		usleep(100);
	}
	return ret;
}

FIXTURE_SETUP(death)
{
	NEED_NATIVE();
	self->before = native_objects(self->objects, sizeof(self->objects));
	ASSERT_GE(self->before, 0);
	ASSERT_OK(node_open(&self->node, LEN, NULL));
	ASSERT_OK(make_type(self->node.client, &self->type));
	ASSERT_OK(vrnic_rts_handler_set(self->node.context, accept_into,
					&self->node));
}

/*
 * The device's counts of objects fall in a while. An endpoint stays until the operations
 * posted to it are done, which advance sees.
 */
static bool nothing_left(FIXTURE_DATA(death) *self, long long expected)
{
	int i;

	for (i = 0; i < 2000; i++) {
		if (self->node.context)
			while (vrnic_advance(self->node.context, 100) > 0)
				;
		if (native_objects(self->objects,
				   sizeof(self->objects)) == expected)
			return true;
		usleep(20000);
	}
	return false;
}

FIXTURE_TEARDOWN(death)
{
	if (!self->type)
		return;
	EXPECT_OK(vrnic_type_destroy(self->type));
	EXPECT_OK(node_close(&self->node));
	EXPECT_TRUE(nothing_left(self, self->before))
		TH_LOG("before: %lld, now: %s", self->before, self->objects);
}

static int start(FIXTURE_DATA(death) *self, enum traffic kind,
		 int (*run)(int fd, const void *arg))
{
	int ret = peer_start(&self->peer, run, &kind);

	if (!ret)
		ret = node_meet(&self->node, self->peer.fd);
	return ret ? ret : hear(self->peer.fd);
}

static int finish(FIXTURE_DATA(death) *self)
{
	struct node *n = &self->node;
	int ret = vrnic_endpoint_destroy(n->to);

	n->to = NULL;
	return ret;
}

TEST_F(death, sender_is_killed)
{
	struct node *n = &self->node;
	long long mine = native_objects(self->objects, sizeof(self->objects));
	int i, j;

	for (i = 0; i < scaled(TIMES); i++) {
		ASSERT_OK(start(self, variant->kind, sender));
		for (j = 0; j < i; j++) {
			ASSERT_GE(vrnic_advance(n->context, 10), 0);
			usleep(100);
		}
		ASSERT_OK(peer_kill(&self->peer));
		ASSERT_OK(finish(self));
		ASSERT_TRUE(nothing_left(self, mine))
			TH_LOG("round %d: %s", i, self->objects);
	}
}

/* Once the process is gone, nothing of it writes to anybody's memory. */
TEST_F(death, no_write_after_it)
{
	uint8_t *copy = malloc(LEN);

	ASSERT_NE(NULL, copy);
	ASSERT_OK(start(self, variant->kind, sender));
	ASSERT_OK(peer_kill(&self->peer));
	memcpy(copy, self->node.buf.addr, LEN);
	usleep(30000);
	EXPECT_OK(memcmp(copy, self->node.buf.addr, LEN));
	ASSERT_OK(finish(self));
	free(copy);
}

TEST_F(death, receiver_is_killed)
{
	struct node *n = &self->node;
	struct vrnic_error error = {};
	int i, j, ret;

	for (i = 0; i < scaled(TIMES); i++) {
		ASSERT_OK(start(self, variant->kind, receiver));
		for (j = 0; j < 20 + i; j++) {
			ret = submit(n, variant->kind, self->type);
			if (ret == -EAGAIN)
				ret = vrnic_advance(n->context, 100) < 0;
			ASSERT_OK(ret);
		}
		ASSERT_OK(peer_kill(&self->peer));
		/* there may be no room until what is under way has failed */
		for (j = 0; j < 500000; j++) {
			ret = submit(n, variant->kind, self->type);
			if (ret != -EAGAIN)
				break;
			ASSERT_GE(vrnic_advance(n->context, 100), 0);
			usleep(100);
		}
		ASSERT_OK(ret);
		for (j = 0; j < 500000 && !vrnic_counter_error(n->counter, NULL); j++) {
			ASSERT_GE(vrnic_advance(n->context, 100), 0);
			usleep(100);
		}
		EXPECT_GT(vrnic_counter_error(n->counter, &error), 0);
		EXPECT_NE(IBV_WC_SUCCESS, error.status);
		ASSERT_OK(finish(self));
		ret = vrnic_fence_all_wait(n->context, WAIT_NS, NULL);
		EXPECT_TRUE(!ret || ret == -EIO) TH_LOG("%d", ret);
		vrnic_counter_set(n->counter, 0);
	}
}

/* Exit without closing anything is the same, done politely. */
static int leaves(int fd, const void *arg)
{
	enum traffic kind = *(const enum traffic *)arg;
	struct vrnic_type *type = NULL;
	struct node n = {};
	int i, ret = node_open(&n, LEN, NULL);

	if (!ret)
		ret = make_type(n.client, &type);
	if (!ret)
		ret = node_meet(&n, fd);
	for (i = 0; i < 50 && !ret; i++)
		ret = submit(&n, kind, type);
	if (ret == -EAGAIN)
		ret = 0;
	return ret ? ret : say(fd);
}

TEST_F(death, exit_without_cleaning_up)
{
	long long mine = native_objects(self->objects, sizeof(self->objects));
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_OK(start(self, variant->kind, leaves));
		EXPECT_OK(peer_end(&self->peer));
		ASSERT_OK(finish(self));
		EXPECT_TRUE(nothing_left(self, mine))
			TH_LOG("%s", self->objects);
	}
}

TEST_HARNESS_MAIN
