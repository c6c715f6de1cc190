// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Outstanding packets, and the meaning of acknowledgments: each rule by itself. */
#include <string.h>

#include "lib/ack.h"

#include "unit.h"

#define PSN	0xfffff0U	/* the first: 24 bits end soon */
#define ANY	100		/* answers that the peer keeps: enough */

struct req {
	struct vrnic_flight f;
	struct vrnic_wop ops[VRNIC_WINDOW_OPS];
};

static void start(struct req *r)
{
	memset(r, 0, sizeof(*r));
	r->f.ops = r->ops;
	r->f.nr_ops = VRNIC_WINDOW_OPS;
	vrnic_flight_start(&r->f, PSN);
}

static struct vrnic_wop *add(struct req *r, u32 pkts, bool answered, bool fenced)
{
	struct vrnic_wop *w = vrnic_wop_at(&r->f, r->f.tail);

	memset(w, 0, sizeof(*w));
	w->pkts = pkts;
	w->answered = answered;
	vrnic_flight_add(&r->f, w, fenced);
	return w;
}

static void send(struct req *r, const struct vrnic_wop *w)
{
	while (r->f.cur < vrnic_wop_end(w))
		vrnic_flight_sent(&r->f, w, w->answered ? w->pkts : 1);
}

static bool acked(struct req *r, u64 limit)
{
	bool all = vrnic_flight_acked(&r->f, limit);

	vrnic_flight_moved(&r->f);
	return all;
}

static void an_acknowledgment_settles_all_before_it(void)
{
	struct vrnic_wop *a, *b;
	struct req r;

	start(&r);
	a = add(&r, 3, false, false);
	b = add(&r, 2, false, false);
	send(&r, a);
	send(&r, b);
	CHECK(acked(&r, a->first + 2));
	CHECK_EQ(a->first + 2, r.f.una);
	CHECK(acked(&r, vrnic_wop_end(b)));
	CHECK_EQ(vrnic_wop_end(b), r.f.una);
}

static void an_acknowledgment_is_no_answer(void)
{
	struct vrnic_wop *a, *read, *b;
	struct req r;

	start(&r);
	a = add(&r, 1, false, false);
	read = add(&r, 2, true, false);
	b = add(&r, 1, false, false);
	send(&r, a);
	send(&r, read);
	send(&r, b);
	CHECK(!acked(&r, vrnic_wop_end(b)));
	CHECK_EQ(read->first, r.f.una);
	vrnic_flight_answered(&r.f, read, 1);
	CHECK(!acked(&r, vrnic_wop_end(b)));
	CHECK_EQ(1, r.f.reads);
	vrnic_flight_answered(&r.f, read, 1);
	CHECK_EQ(0, r.f.reads);
	CHECK(acked(&r, vrnic_wop_end(b)));
	CHECK_EQ(vrnic_wop_end(b), r.f.una);
}

/* Whatever is sent again meanwhile, and however far the peer goes on. */
static void fence_waits_for_a_read_that_was_lost(void)
{
	struct vrnic_wop *write, *read, *send_it;
	struct req r;

	start(&r);
	write = add(&r, 3, false, false);
	read = add(&r, 1, true, false);
	send_it = add(&r, 1, false, true);
	send(&r, write);
	send(&r, read);
	CHECK(!vrnic_flight_may_send(&r.f, send_it, ANY));
	vrnic_flight_go_back(&r.f);
	r.f.hold = r.f.una + 2;
	CHECK(!vrnic_flight_may_send(&r.f, send_it, ANY));
	vrnic_flight_sent(&r.f, write, 1);
	vrnic_flight_sent(&r.f, write, 1);
	CHECK(acked(&r, vrnic_wop_end(write)));
	CHECK(!vrnic_flight_may_send(&r.f, send_it, ANY));
	vrnic_flight_answered(&r.f, read, 1);
	vrnic_flight_moved(&r.f);
	CHECK(vrnic_flight_may_send(&r.f, send_it, ANY));
}

/* It does not wait for what comes behind it, nor for what is only acknowledged. */
static void fence_waits_for_reads_before_it_only(void)
{
	struct vrnic_wop *write, *fenced, *read;
	struct req r;

	start(&r);
	write = add(&r, 1, false, false);
	fenced = add(&r, 1, false, true);
	read = add(&r, 1, true, false);
	send(&r, write);
	CHECK(vrnic_flight_may_send(&r.f, fenced, ANY));
	send(&r, fenced);
	send(&r, read);
	CHECK(vrnic_flight_may_send(&r.f, add(&r, 1, false, false), ANY));
	CHECK(!vrnic_flight_may_send(&r.f, add(&r, 1, false, true), ANY));
}

static void reads_stay_outstanding_after_a_loss(void)
{
	struct vrnic_wop *a, *b, *c;
	struct req r;

	start(&r);
	a = add(&r, 1, true, false);
	b = add(&r, 1, true, false);
	c = add(&r, 1, true, false);
	send(&r, a);
	send(&r, b);
	CHECK(!vrnic_flight_may_send(&r.f, c, 2));
	vrnic_flight_go_back(&r.f);
	/* these, the peer may know; it is no more for it to keep */
	CHECK(vrnic_flight_may_send(&r.f, a, 2));
	send(&r, a);
	CHECK(vrnic_flight_may_send(&r.f, b, 2));
	send(&r, b);
	CHECK_EQ(2, r.f.reads);
	CHECK(!vrnic_flight_may_send(&r.f, c, 2));
	vrnic_flight_answered(&r.f, a, 1);
	CHECK(vrnic_flight_may_send(&r.f, c, 2));
}

static void a_long_read_is_several(void)
{
	struct vrnic_wop *w;
	struct req r;
	int i;

	start(&r);
	w = add(&r, 5, true, false);
	w->chunk = 2;
	vrnic_flight_sent(&r.f, w, 2);
	vrnic_flight_sent(&r.f, w, 2);
	CHECK(!vrnic_flight_may_send(&r.f, w, 2));
	for (i = 0; i < 3; i++)
		vrnic_flight_answered(&r.f, w, 1);
	CHECK_EQ(1, r.f.reads);
	CHECK(vrnic_flight_may_send(&r.f, w, 2));
	vrnic_flight_sent(&r.f, w, 1);
	vrnic_flight_answered(&r.f, w, 1);
	vrnic_flight_answered(&r.f, w, 1);
	CHECK_EQ(0, r.f.reads);
}

/* Requests that the peer cannot have kept are sent again, and those that it kept are not. */
static void who_keeps_what_came_early_has_no_reads(void)
{
	struct vrnic_wop *write, *read, *behind;
	struct req r;

	start(&r);
	write = add(&r, 4, false, false);
	read = add(&r, 1, true, false);
	behind = add(&r, 4, false, false);
	send(&r, write);
	send(&r, read);
	send(&r, behind);
	vrnic_flight_go_back(&r.f);
	r.f.hold = r.f.una + 2;
	send(&r, &(struct vrnic_wop){ .first = write->first, .pkts = 2 });
	CHECK(acked(&r, vrnic_wop_end(write)));
	CHECK_EQ(read->first, r.f.cur);
	CHECK_EQ(read->first + 1, r.f.hold);
	send(&r, read);
	vrnic_flight_answered(&r.f, read, 1);
	vrnic_flight_moved(&r.f);
	CHECK(acked(&r, vrnic_wop_end(behind)));
	CHECK_EQ(r.f.top, r.f.cur);
	CHECK_EQ(0, r.f.hold);
}

static struct vrnic_res kept[2];

static void served_start(struct vrnic_served *s)
{
	memset(s, 0, sizeof(*s));
	memset(kept, 0, sizeof(kept));
	s->res = kept;
	s->nr_res = 2;
	vrnic_served_start(s, PSN);
}

static void acknowledgments_name_no_read(void)
{
	struct vrnic_served s;
	u32 psn = 0;

	served_start(&s);
	CHECK(!vrnic_served_take_ack(&s, &psn));
	vrnic_served_data(&s, 3, true);
	CHECK(vrnic_served_take_ack(&s, &psn));
	CHECK_EQ(PSN + 2, psn);
	CHECK(!vrnic_served_take_ack(&s, &psn));
	vrnic_served_answered(&s, 20);
	CHECK(!vrnic_served_take_ack(&s, &psn));
	/* a duplicate of the SEND or WRITE before */
	s.due = true;
	CHECK(vrnic_served_take_ack(&s, &psn));
	CHECK_EQ(PSN + 2, psn);
	vrnic_served_data(&s, 1, false);
	CHECK(!s.due);
	vrnic_served_data(&s, 1, true);
	CHECK(vrnic_served_take_ack(&s, &psn));
	CHECK_EQ((PSN + 24) & VRNIC_PSN_MASK, psn);
}

static void a_nak_names_what_is_expected(void)
{
	struct vrnic_served s;
	u32 psn;

	served_start(&s);
	vrnic_served_data(&s, 3, true);
	vrnic_served_answered(&s, 2);
	s.due = true;
	CHECK_EQ(PSN + 5, vrnic_served_take_nak(&s));
	CHECK(!vrnic_served_take_ack(&s, &psn));
}

static void answers_are_found_by_what_they_answer(void)
{
	struct vrnic_served s;

	served_start(&s);
	vrnic_res_new(&s, 12, 100, 4);
	vrnic_res_new(&s, 20, 104, 1);
	CHECK(vrnic_res_find(&s, 12, 103) == &kept[0]);
	CHECK(!vrnic_res_find(&s, 12, 104));
	CHECK(vrnic_res_find(&s, 20, 104) == &kept[1]);
	CHECK(!vrnic_res_find(&s, 20, 103));
	vrnic_res_new(&s, 12, 105, 1);
	CHECK(!vrnic_res_find(&s, 12, 100));
}

/* 2^24 packets later, the same PSN is another request's. */
static void the_newest_answer_is_found(void)
{
	struct vrnic_served s;

	served_start(&s);
	vrnic_res_new(&s, 20, 100, 1)->result = 1;
	vrnic_res_new(&s, 20, 100, 1)->result = 2;
	CHECK_EQ(2, vrnic_res_find(&s, 20, 100)->result);
	vrnic_res_new(&s, 20, 100, 1)->result = 3;
	CHECK_EQ(3, vrnic_res_find(&s, 20, 100)->result);
}

static const struct unit_test tests[] = {
	UNIT(an_acknowledgment_settles_all_before_it),
	UNIT(an_acknowledgment_is_no_answer),
	UNIT(fence_waits_for_a_read_that_was_lost),
	UNIT(fence_waits_for_reads_before_it_only),
	UNIT(reads_stay_outstanding_after_a_loss),
	UNIT(a_long_read_is_several),
	UNIT(who_keeps_what_came_early_has_no_reads),
	UNIT(acknowledgments_name_no_read), UNIT(a_nak_names_what_is_expected),
	UNIT(answers_are_found_by_what_they_answer),
	UNIT(the_newest_answer_is_found),
};

UNIT_MAIN(tests)
