// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A device has as many objects as it advertises, and not one more. */

#include "consumer.h"
#include "vrnic.h"

/* Say that there are @n of them, which is what there were until the end. */
static int pretend(struct kunit *test, enum vrnic_object kind, int n)
{
	struct consumer *c = test->priv;

	return atomic_xchg(&to_vdev(c->dev)->objects[kind], n);
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

static void as_many_as_advertised(struct kunit *test)
{
	struct consumer *c = test->priv;
	void *last, *more;
	int i, max, were;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		max = *(int *)((void *)&c->dev->attrs + kinds[i].max);
		were = pretend(test, kinds[i].kind, max - 1);
		last = kinds[i].make(c);
		more = kinds[i].make(c);
		KUNIT_EXPECT_FALSE_MSG(test, IS_ERR_OR_NULL(last), "%s", kinds[i].name);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(more), -ENOMEM, "%s",
				    kinds[i].name);
		if (!IS_ERR_OR_NULL(more))
			kinds[i].drop(more);
		if (!IS_ERR_OR_NULL(last))
			kinds[i].drop(last);
		KUNIT_EXPECT_EQ_MSG(test, pretend(test, kinds[i].kind, were), max - 1,
				    "%s", kinds[i].name);
	}
}

static void as_many_queue_pairs(struct kunit *test)
{
	struct consumer *c = test->priv;
	int max = c->dev->attrs.max_qp, were;
	struct ib_qp_init_attr init = {
		.send_cq = consumer_cq(test, 4),
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ib_qp *last, *more;

	init.recv_cq = init.send_cq;
	were = pretend(test, VRNIC_OBJECT_QP, max - 1);
	last = ib_create_qp(c->pd, &init);
	more = ib_create_qp(c->pd, &init);
	KUNIT_EXPECT_FALSE(test, IS_ERR(last));
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(more), -ENOMEM);
	if (!IS_ERR(more))
		ib_destroy_qp(more);
	if (!IS_ERR(last))
		ib_destroy_qp(last);
	KUNIT_EXPECT_EQ(test, pretend(test, VRNIC_OBJECT_QP, were), max - 1);
}

static struct kunit_case limit_cases[] = {
	KUNIT_CASE(as_many_as_advertised),
	KUNIT_CASE(as_many_queue_pairs),
	{}
};

static struct kunit_suite limit_suite = {
	.name = "vrnic_limit",
	.init = consumer_init,
	.exit = consumer_exit,
	.test_cases = limit_cases,
};

kunit_test_suite(limit_suite);
