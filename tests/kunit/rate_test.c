// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a queue pair may send under a limit of its consumer's. */

#include <kunit/test.h>
#include <linux/ktime.h>

#include "queue/qp.h"
#include "roce/rate.h"

#define LIMIT	1000	/* bytes a second */
#define UNIT	4096	/* that may always be sent */

static struct vrnic_qp *limited(struct kunit *test)
{
	struct vrnic_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->type = IB_QPT_UD;
	qp->limit = LIMIT;
	return qp;
}

static void what_was_sent_is_paid_for(struct kunit *test)
{
	struct vrnic_qp *qp = limited(test);
	u64 until = 0, now = ktime_get_ns();

	KUNIT_EXPECT_GE(test, vrnic_rate_room(qp, &until), UNIT);
	vrnic_rate_sent(qp, UNIT);
	KUNIT_EXPECT_EQ(test, 0, vrnic_rate_room(qp, &until));
	/* but for the time that passed before, which counts for a millisecond */
	KUNIT_EXPECT_GE(test, until + NSEC_PER_MSEC, now + UNIT * (NSEC_PER_SEC / LIMIT));
}

/* However much was charged, the sender waits for a bounded time. */
static void a_debt_is_bounded(struct kunit *test)
{
	struct vrnic_qp *qp = limited(test);
	u64 until = 0;

	vrnic_rate_room(qp, &until);
	vrnic_rate_sent(qp, 1 << 20);
	KUNIT_EXPECT_EQ(test, 0, vrnic_rate_room(qp, &until));
	KUNIT_EXPECT_LE(test, until, ktime_get_ns() + 8ULL * UNIT * (NSEC_PER_SEC / LIMIT));
}

static struct kunit_case rate_cases[] = {
	KUNIT_CASE(what_was_sent_is_paid_for),
	KUNIT_CASE(a_debt_is_bounded),
	{}
};

static struct kunit_suite rate_suite = {
	.name = "vrnic_rate",
	.test_cases = rate_cases,
};

kunit_test_suite(rate_suite);
