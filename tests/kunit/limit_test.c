// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Users get as many objects of a device as it advertises, and not one more. They cannot take
 * the objects that are kept for kernel consumers, which get no more than these.
 */

#include "base/objects.h"
#include "consumer.h"
#include "vrnic.h"

struct counts {
	int all;
	int users;
};

/* Say that there are so many, which is what there were until the end. */
static struct counts pretend(struct kunit *test, enum vrnic_object kind, struct counts n)
{
	struct consumer *c = test->priv;
	struct vrnic_dev *dev = to_vdev(c->dev);

	return (struct counts) {
		.all = atomic_xchg(&dev->objects[kind], n.all),
		.users = atomic_xchg(&dev->of_users[kind], n.users),
	};
}

static void *make_pd(struct consumer *c)
{
	return ib_alloc_pd(c->dev, 0);
}

static void drop_pd(void *pd)
{
	ib_dealloc_pd(pd);
}

static void *make_cq(struct consumer *c)
{
	return ib_alloc_cq(c->dev, NULL, 1, 0, IB_POLL_DIRECT);
}

static void drop_cq(void *cq)
{
	ib_free_cq(cq);
}

static void *make_srq(struct consumer *c)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = 1, .max_sge = 1 },
	};

	return ib_create_srq(c->pd, &init);
}

static void drop_srq(void *srq)
{
	ib_destroy_srq(srq);
}

static void *make_mr(struct consumer *c)
{
	return ib_alloc_mr(c->pd, IB_MR_TYPE_MEM_REG, 1);
}

static void drop_mr(void *mr)
{
	ib_dereg_mr(mr);
}

static void *make_ah(struct consumer *c)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	union ib_gid dgid = c->gid->gid;

	rdma_ah_set_port_num(&ah, 1);
	rdma_ah_set_grh(&ah, &dgid, 0, c->gid->index, 64, 0);
	return rdma_create_ah(c->pd, &ah, RDMA_CREATE_AH_SLEEPABLE);
}

static void drop_ah(void *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static const struct {
	const char *name;
	enum vrnic_object kind;
	size_t max;
	void *(*make)(struct consumer *c);
	void (*drop)(void *object);
} kinds[] = {
#define KIND(NAME, name, attr)						\
	{ #name, VRNIC_OBJECT_##NAME, offsetof(struct ib_device_attr, attr),	\
	  make_##name, drop_##name }
	KIND(PD, pd, max_pd),
	KIND(CQ, cq, max_cq),
	KIND(SRQ, srq, max_srq),
	KIND(MR, mr, max_mr),
	KIND(AH, ah, max_ah),
#undef KIND
};

/* All that users may have are there, and all but @left of what is kept for the kernel. */
static struct counts full(int max, int left)
{
	return (struct counts) { max + (int)VRNIC_KERNEL_SHARE - left, max };
}

static int advertised(struct consumer *c, int kind)
{
	return *(int *)((void *)&c->dev->attrs + kinds[kind].max);
}

static void users_leave_a_share_to_the_kernel(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct counts were, end;
	void *last, *more;
	int i, max;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		max = advertised(c, i);
		were = pretend(test, kinds[i].kind, full(max, 1));
		last = kinds[i].make(c);
		more = kinds[i].make(c);
		KUNIT_EXPECT_FALSE_MSG(test, IS_ERR_OR_NULL(last), "%s", kinds[i].name);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(more), -ENOMEM, "%s",
				    kinds[i].name);
		if (!IS_ERR_OR_NULL(more))
			kinds[i].drop(more);
		if (!IS_ERR_OR_NULL(last))
			kinds[i].drop(last);
		end = pretend(test, kinds[i].kind, were);
		KUNIT_EXPECT_EQ_MSG(test, end.all, full(max, 1).all, "%s", kinds[i].name);
		KUNIT_EXPECT_EQ_MSG(test, end.users, max, "%s", kinds[i].name);
	}
}

/* However many the kernel's consumers have, of their share. */
static void users_have_as_many_as_advertised(struct kunit *test)
{
	struct consumer *c = test->priv;
	struct vrnic_dev *dev = to_vdev(c->dev);
	struct counts were, end;
	int i, max;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		max = advertised(c, i);
		were = pretend(test, kinds[i].kind, (struct counts) {
			max - 1 + (int)VRNIC_KERNEL_SHARE, max - 1 });
		KUNIT_EXPECT_TRUE(test, vrnic_object_get(dev, kinds[i].kind, true));
		KUNIT_EXPECT_FALSE(test, vrnic_object_get(dev, kinds[i].kind, true));
		vrnic_object_put(dev, kinds[i].kind, true);
		end = pretend(test, kinds[i].kind, were);
		KUNIT_EXPECT_EQ_MSG(test, end.users, max - 1, "%s", kinds[i].name);
	}
}

static void queue_pairs_for_the_kernel(struct kunit *test)
{
	struct consumer *c = test->priv;
	int max = c->dev->attrs.max_qp;
	struct ib_qp_init_attr init = {
		.send_cq = consumer_cq(test, 4),
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ib_qp *last, *more;
	struct counts were;

	init.recv_cq = init.send_cq;
	were = pretend(test, VRNIC_OBJECT_QP, full(max, 1));
	last = ib_create_qp(c->pd, &init);
	more = ib_create_qp(c->pd, &init);
	KUNIT_EXPECT_FALSE(test, IS_ERR(last));
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(more), -ENOMEM);
	if (!IS_ERR(more))
		ib_destroy_qp(more);
	if (!IS_ERR(last))
		ib_destroy_qp(last);
	KUNIT_EXPECT_EQ(test, pretend(test, VRNIC_OBJECT_QP, were).all, full(max, 1).all);
}

static struct kunit_case limit_cases[] = {
	KUNIT_CASE(users_leave_a_share_to_the_kernel),
	KUNIT_CASE(users_have_as_many_as_advertised),
	KUNIT_CASE(queue_pairs_for_the_kernel),
	{}
};

static struct kunit_suite limit_suite = {
	.name = "vrnic_limit",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = limit_cases,
};

kunit_test_suite(limit_suite);
